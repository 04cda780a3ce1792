-- Hand tracking: errors between measured points and a skinned hand model in a pose, and their Jacobian.
--
-- theta: 3 global rotation, 3 translation, then for each of five fingers four angles: flexion and abduction of its
-- second bone, flexion of the third, flexion of the fourth. Where there are fewer points than vertices, only what the points need
-- is skinned, else all vertices, once.

type mat3 = [3][3]f64
type mat4 = [4][4]f64

type model [bones] [verts] = {
  parents: [bones]i64,               -- -1 for a root; a parent precedes its children
  base_relatives: [bones]mat4,
  inverse_base_absolutes: [bones]mat4,
  base_positions: [verts][4]f64,
  weights: [verts][bones]f64,
  is_mirrored: bool
}

def matmul [n] [m] [p] (a: [n][m]f64) (b: [m][p]f64) : [n][p]f64 =
  map (\row -> map (\col -> f64.sum (map2 (*) row col)) (transpose b)) a

def matvec [n] [m] (a: [n][m]f64) (v: [m]f64) : [n]f64 = map (\row -> f64.sum (map2 (*) row v)) a

-- The pose of a bone as (x, z, y) angles; bone 0 is the wrist, the last one the forearm, four bones per finger between.
def bone_angles (theta: [26]f64) (bone: i64) : (f64, f64, f64) =
  let finger = (bone - 1) / 4
  let joint = (bone - 1) % 4
  let t = 6 + 4 * finger
  in if bone == 0 || bone > 20 || joint == 0 then (0, 0, 0)
     else if joint == 1 then (theta[t], theta[t + 1], 0)
     else (theta[t + joint], 0, 0)

-- Rz Ry Rx, extended to homogeneous coordinates.
def rotation (x: f64, z: f64, y: f64) : mat4 =
  let (sx, cx) = (f64.sin x, f64.cos x)
  let (sy, cy) = (f64.sin y, f64.cos y)
  let (sz, cz) = (f64.sin z, f64.cos z)
  in [[cz * cy, cz * sy * sx - sz * cx, cz * sy * cx + sz * sx, 0],
      [sz * cy, sz * sy * sx + cz * cx, sz * sy * cx - cz * sx, 0],
      [-sy, cy * sx, cy * cx, 0],
      [0, 0, 0, 1]]

-- The transform of every bone from base position to pose.
def bone_transforms [bones] [verts] (m: model [bones] [verts]) (theta: [26]f64) : [bones]mat4 =
  let relatives = map2 (\base b -> matmul base (rotation (bone_angles theta b))) m.base_relatives (iota bones)
  let absolutes =
    loop absolutes = copy relatives for b < bones do
      if m.parents[b] < 0 then absolutes
      else let here = matmul absolutes[m.parents[b]] relatives[b]
           in absolutes with [b] = here
  in map2 matmul absolutes m.inverse_base_absolutes

-- Rotation about the axis r by the angle |r|; the identity (with derivative zero) below 1e-4.
def axis_angle (r: [3]f64) : mat3 =
  let squared = r[0] * r[0] + r[1] * r[1] + r[2] * r[2]
  in if squared < 1e-8 then [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
     else
       let angle = f64.sqrt squared
       let (x, y, z) = (r[0] / angle, r[1] / angle, r[2] / angle)
       let (s, c) = (f64.sin angle, f64.cos angle)
       let k = 1 - c
       in [[x * x + (1 - x * x) * c, x * y * k - z * s, x * z * k + y * s],
           [x * y * k + z * s, y * y + (1 - y * y) * c, y * z * k - x * s],
           [x * z * k - y * s, z * y * k + x * s, z * z + (1 - z * z) * c]]

-- Where a pose takes points that are fixed to bones: a 3 x 4 matrix for each bone, side by side, with the global rotation, and
-- a shift of all points.
type pose [bones] = {transforms: [3][bones * 4]f64, shift: [3]f64}

def pose_of [bones] [verts] (m: model [bones] [verts]) (theta: [26]f64) : pose [bones] =
  let global = axis_angle theta[0:3]
  let mirrored = if m.is_mirrored then map (\row -> [-row[0], row[1], row[2]]) global else global
  let transforms = map (\t -> matmul mirrored t[0:3]) (bone_transforms m theta)
  in {transforms = map flatten (transpose transforms), shift = theta[3:6]}

-- What a vertex has of each bone: its weight times the base position. A point between vertices has what is between theirs.
def shares [bones] [verts] (m: model [bones] [verts]) (v: i64) : [bones][4]f64 =
  map (\w -> map (w *) m.base_positions[v]) m.weights[v]

-- What is at the barycentric coordinates u of a triangle, of what is at its corners.
def between (u: [2]f64) (x: f64) (y: f64) (z: f64) : f64 = u[0] * x + u[1] * y + (1 - u[0] - u[1]) * z

def shares_between [bones] [verts] (m: model [bones] [verts]) (triangle: [3]i64) (u: [2]f64) : [bones][4]f64 =
  map3 (map3 (between u)) (shares m triangle[0]) (shares m triangle[1]) (shares m triangle[2])

-- Where a pose takes what has these shares of bones.
def place [bones] (share: [bones][4]f64) (p: pose [bones]) : [3]f64 =
  map2 (+) (matvec p.transforms (flatten share)) p.shift

-- Where it takes all vertices.
def places [bones] [verts] (m: model [bones] [verts]) (p: pose [bones]) : [verts][3]f64 =
  map (\v -> place (shares m v) p) (iota verts)

def place_between [verts] (at: [verts][3]f64) (triangle: [3]i64) (u: [2]f64) : [3]f64 =
  map3 (between u) at[triangle[0]] at[triangle[1]] at[triangle[2]]

def error (point: [3]f64) (place: [3]f64) : [3]f64 = map2 (-) point place

-- Each point is measured at a vertex.
entry simple [bones] [verts] [n] (m: model [bones] [verts]) (correspondences: [n]i64) (points: [n][3]f64)
             (theta: [26]f64) : [n][3]f64 =
  let pose = pose_of m theta
  in if n <= verts
     then map2 (\c point -> error point (place (shares m c) pose)) correspondences points
     else let at = places m pose
          in map2 (\c point -> error point at[c]) correspondences points

-- Each point is measured at the barycentric coordinates u of a triangle.
entry complicated [bones] [verts] [n] [t] (m: model [bones] [verts]) (triangles: [t][3]i64) (correspondences: [n]i64)
                  (points: [n][3]f64) (us: [n][2]f64) (theta: [26]f64) : [n][3]f64 =
  let pose = pose_of m theta
  in if n <= verts
     then map3 (\c point u -> error point (place (shares_between m triangles[c] u) pose)) correspondences points us
     else let at = places m pose
          in map3 (\c point u -> error point (place_between at triangles[c] u)) correspondences points us

def unit_vector (n: i64) (k: i64) : [n]f64 = tabulate n (\i -> if i == k then 1 else 0)

-- The pose's derivatives by each of its parameters.
def pose_dots [bones] [verts] (m: model [bones] [verts]) (theta: [26]f64) : [26](pose [bones]) =
  jmp (pose_of m) theta (tabulate 26 (unit_vector 26))

-- Those of all vertices.
def places_dots [bones] [verts] (m: model [bones] [verts]) (p: pose [bones]) (dots: [26](pose [bones])) : [verts][3][26]f64 =
  map (\v -> transpose (map (jvp (place (shares m v)) p) dots)) (iota verts)

-- The rows of the Jacobian for each point. The pose depends on theta, vertices on the pose, points on vertices or the pose: forward
-- mode goes along with all steps.
def simple_rows [bones] [verts] [n] (m: model [bones] [verts]) (correspondences: [n]i64) (points: [n][3]f64)
                (theta: [26]f64) : [n][3][26]f64 =
  let (pose, dots) = (pose_of m theta, pose_dots m theta)
  in if n <= verts
     then let rows (c: i64) (point: [3]f64) : [3][26]f64 =
            transpose (map (jvp (\p -> error point (place (shares m c) p)) pose) dots)
          in map2 rows correspondences points
     else let (at, at_dots) = (places m pose, places_dots m pose dots)
          let row (point: f64) (at: f64) (dots: [26]f64) : [26]f64 = map (jvp (\at -> point - at) at) dots
          in map2 (\c point -> map3 row point at[c] at_dots[c]) correspondences points

-- The same; the first two columns are the derivatives by the point's own u.
def complicated_rows [bones] [verts] [n] [t] (m: model [bones] [verts]) (triangles: [t][3]i64) (correspondences: [n]i64)
                     (points: [n][3]f64) (us: [n][2]f64) (theta: [26]f64) : [n][3][28]f64 =
  let (pose, dots) = (pose_of m theta, pose_dots m theta)
  in if n <= verts
     then let rows (c: i64) (point: [3]f64) (u: [2]f64) : [3][28]f64 =
            let share = shares_between m triangles[c] u
            let by_u = tabulate 2 (\k -> jvp (\u -> error point (place (shares_between m triangles[c] u) pose)) u (unit_vector 2 k))
            let by_theta = map (jvp (\p -> error point (place share p)) pose) dots
            in transpose (by_u ++ by_theta :> [28][3]f64)
          in map3 rows correspondences points us
     else let (at, at_dots) = (places m pose, places_dots m pose dots)
          let row (point: f64) (u: [2]f64) (at: [3]f64) (dots: [3][26]f64) : [28]f64 =
            let error (at: [3]f64) (u: [2]f64) : f64 = point - between u at[0] at[1] at[2]
            let by_u = tabulate 2 (\k -> jvp (error at) u (unit_vector 2 k))
            let by_theta = map3 (\x y z -> jvp (\at -> error at u) at [x, y, z]) dots[0] dots[1] dots[2]
            in by_u ++ by_theta :> [28]f64
          let rows (c: i64) (point: [3]f64) (u: [2]f64) : [3][28]f64 =
            let corners = triangles[c]
            in tabulate 3 (\i -> row point[i] u (map (\v -> at[v, i]) corners) (map (\v -> at_dots[v, i]) corners))
          in map3 rows correspondences points us

-- Columns of the Jacobian.
entry simple_jacobian [bones] [verts] [n] (m: model [bones] [verts]) (correspondences: [n]i64) (points: [n][3]f64)
                      (theta: [26]f64) : [26][n][3]f64 =
  transpose (map transpose (simple_rows m correspondences points theta))

entry complicated_jacobian [bones] [verts] [n] [t] (m: model [bones] [verts]) (triangles: [t][3]i64)
                           (correspondences: [n]i64) (points: [n][3]f64) (us: [n][2]f64) (theta: [26]f64)
                           : [28][n][3]f64 =
  transpose (map transpose (complicated_rows m triangles correspondences points us theta))
