-- Bundle adjustment: reprojection errors of observations, and the blocks of their Jacobian.
--
-- A camera is [r0 r1 r2 | C0 C1 C2 | f | u0 v0 | k1 k2]: rotation (axis times angle), centre, focal length, principal
-- point, radial distortion. Observation i sees point obs[i, 1] with camera obs[i, 0].

type vec3 = (f64, f64, f64)

def dot3 (a: vec3) (b: vec3) : f64 = a.0 * b.0 + a.1 * b.1 + a.2 * b.2
def cross (a: vec3) (b: vec3) : vec3 =
  (a.1 * b.2 - a.2 * b.1, a.2 * b.0 - a.0 * b.2, a.0 * b.1 - a.1 * b.0)
def scale (s: f64) (a: vec3) : vec3 = (s * a.0, s * a.1, s * a.2)
def plus3 (a: vec3) (b: vec3) : vec3 = (a.0 + b.0, a.1 + b.1, a.2 + b.2)
def minus3 (a: vec3) (b: vec3) : vec3 = (a.0 - b.0, a.1 - b.1, a.2 - b.2)

-- Rodrigues' formula; at the zero rotation its first-order expansion, which has the right derivative there.
def rotate_by (r: vec3) (x: vec3) : vec3 =
  let squared = dot3 r r
  in if squared != 0 then
       let angle = f64.sqrt squared
       let axis = scale (1 / angle) r
       let (c, s) = (f64.cos angle, f64.sin angle)
       in plus3 (plus3 (scale c x) (scale s (cross axis x))) (scale (dot3 axis x * (1 - c)) axis)
     else plus3 x (cross r x)

def project (cam: [11]f64) (x: [3]f64) : (f64, f64) =
  let centred = minus3 (x[0], x[1], x[2]) (cam[3], cam[4], cam[5])
  let y = rotate_by (cam[0], cam[1], cam[2]) centred
  let (p0, p1) = (y.0 / y.2, y.1 / y.2)
  let s = p0 * p0 + p1 * p1
  let distortion = 1 + cam[9] * s + cam[10] * s * s
  in (cam[6] * distortion * p0 + cam[7], cam[6] * distortion * p1 + cam[8])

def reprojection_error (cam: [11]f64) (x: [3]f64) (w: f64) (feat: [2]f64) : [2]f64 =
  let (u, v) = project cam x
  in [w * (u - feat[0]), w * (v - feat[1])]

-- Both components of the error of every observation, and 1 - w^2 for every weight.
entry objective [n] [m] [p] (cams: [n][11]f64) (points: [m][3]f64) (weights: [p]f64) (feats: [p][2]f64)
                (obs: [p][2]i64) : ([p][2]f64, [p]f64) =
  let errors =
    tabulate p (\i -> reprojection_error cams[obs[i, 0]] points[obs[i, 1]] weights[i] feats[i])
  in (errors, map (\w -> 1 - w * w) weights)

-- The Jacobian by blocks: for every observation two rows of 11 camera, 3 point and 1 weight derivatives; then -2w.
entry jacobian [n] [m] [p] (cams: [n][11]f64) (points: [m][3]f64) (weights: [p]f64) (feats: [p][2]f64)
               (obs: [p][2]i64) : ([p][2][15]f64, [p]f64) =
  let row (i: i64) (seed: [2]f64) : [15]f64 =
    let f (c, x, w) = reprojection_error c x w feats[i]
    let (dc, dx, dw) = vjp f (cams[obs[i, 0]], points[obs[i, 1]], weights[i]) seed
    in tabulate 15 (\j -> if j < 11 then dc[j] else if j < 14 then dx[j - 11] else dw)
  let rows = tabulate p (\i -> [row i [1, 0], row i [0, 1]])
  let weight_rows = map (\w -> vjp (\v -> 1 - v * v) w 1f64) weights
  in (rows, weight_rows)

-- Half the sum of squares: a scalar objective for `pullback grad`.
entry cost [n] [m] [p] (cams: [n][11]f64) (points: [m][3]f64) (weights: [p]f64) (feats: [p][2]f64)
           (obs: [p][2]i64) : f64 =
  let (errors, weight_errors) = objective cams points weights feats obs
  in 0.5 * f64.sum (map (\e -> e[0] * e[0] + e[1] * e[1]) errors) + 0.5 * f64.sum (map (\e -> e * e) weight_errors)
