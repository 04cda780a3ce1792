-- Errors of bundle adjustment and their Jacobian in compressed rows, as the thesis on reverse AD for Accelerate writes
-- them (App. B.2 and C.2): each observation is differentiated alone, as a function of 15 numbers, in one map.
--
-- A camera is a rotation (axis times angle), a centre, a focal length, a principal point and two numbers of radial
-- distortion. Observation i sees point obs[i, 1] with camera obs[i, 0].

type vec3 = (f64, f64, f64)

def dot (a: vec3) (b: vec3) : f64 = a.0 * b.0 + a.1 * b.1 + a.2 * b.2
def cross (a: vec3) (b: vec3) : vec3 = (a.1 * b.2 - a.2 * b.1, a.2 * b.0 - a.0 * b.2, a.0 * b.1 - a.1 * b.0)
def scale (s: f64) (a: vec3) : vec3 = (s * a.0, s * a.1, s * a.2)
def plus (a: vec3) (b: vec3) : vec3 = (a.0 + b.0, a.1 + b.1, a.2 + b.2)
def minus (a: vec3) (b: vec3) : vec3 = (a.0 - b.0, a.1 - b.1, a.2 - b.2)

-- Rodrigues' formula. Where there is no rotation, its first-order expansion: the other branch would divide by zero.
def rotate_by (r: vec3) (x: vec3) : vec3 =
  let squared = dot r r
  in if squared == 0 then plus x (cross r x)
     else let angle = f64.sqrt squared
          let axis = scale (1 / angle) r
          let along = scale (dot axis x * (1 - f64.cos angle)) axis
          in plus (plus (scale (f64.cos angle) x) (scale (f64.sin angle) (cross axis x))) along

type camera = {rotation: vec3, centre: vec3, focal: f64, principal: (f64, f64), distortion: (f64, f64)}

-- Both components of the error of one observation.
def reprojection_error (c: camera) (x: vec3) (weight: f64) (feature: (f64, f64)) : (f64, f64) =
  let y = rotate_by c.rotation (minus x c.centre)
  let (u, v) = (y.0 / y.2, y.1 / y.2)
  let s = u * u + v * v
  let factor = c.focal * (1 + c.distortion.0 * s + c.distortion.1 * s * s)
  in (weight * (factor * u + c.principal.0 - feature.0), weight * (factor * v + c.principal.1 - feature.1))

def weight_error (w: f64) : f64 = 1 - w * w

def as_camera (c: [11]f64) : camera =
  {rotation = (c[0], c[1], c[2]), centre = (c[3], c[4], c[5]), focal = c[6], principal = (c[7], c[8]),
   distortion = (c[9], c[10])}

entry objective [n] [m] [p] (cams: [n][11]f64) (points: [m][3]f64) (weights: [p]f64) (features: [p][2]f64)
                            (obs: [p][2]i64) : ([p][2]f64, [p]f64) =
  let error (i: i64) : [2]f64 =
    let x = points[obs[i, 1]]
    let (u, v) = reprojection_error (as_camera cams[obs[i, 0]]) (x[0], x[1], x[2]) weights[i] (features[i, 0], features[i, 1])
    in [u, v]
  in (tabulate p error, map weight_error weights)

-- Derivatives of an error by its 15 numbers: camera, point, weight.
def row (cam: [11]f64) (point: [3]f64) (weight: f64) (f: camera -> vec3 -> f64 -> f64) : [15]f64 =
  let numbers = (as_camera cam, (point[0], point[1], point[2]), weight)
  let (c, x, w) = vjp (\(c, x, w) -> f c x w) numbers 1f64
  let (r, o) = (c.rotation, c.centre)
  in [r.0, r.1, r.2, o.0, o.1, o.2, c.focal, c.principal.0, c.principal.1, c.distortion.0, c.distortion.1,
      x.0, x.1, x.2, w]

-- Values, first places of rows, and columns. Two rows for each observation, then one for each weight; the columns are
-- those of all cameras, all points, all weights. Only what is zero by the form of the problem is left out.
entry jacobian [n] [m] [p] (cams: [n][11]f64) (points: [m][3]f64) (weights: [p]f64) (features: [p][2]f64)
                           (obs: [p][2]i64) : ([]f64, []i64, []i64) =
  let both (i: i64) : [2][15]f64 =
    let feature = (features[i, 0], features[i, 1])
    let of = row cams[obs[i, 0]] points[obs[i, 1]] weights[i]
    in [of (\c x w -> (reprojection_error c x w feature).0), of (\c x w -> (reprojection_error c x w feature).1)]
  let of_errors = flatten_3d (tabulate p both)
  let of_weights = map (\w -> vjp weight_error w 1) weights
  let column (i: i64) (j: i64) : i64 =
    if j < 11 then 11 * obs[i, 0] + j
    else if j < 14 then 11 * n + 3 * obs[i, 1] + j - 11
    else 11 * n + 3 * m + i
  let columns = flatten_3d (tabulate_3d p 2 15 (\i _ j -> column i j))
  in (concat of_errors of_weights,
      concat (tabulate (2 * p) (\i -> 15 * i)) (tabulate (p + 1) (\i -> 30 * p + i)),
      concat columns (tabulate p (\i -> 11 * n + 3 * m + i)))
