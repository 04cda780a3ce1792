-- Hand tracking: errors between measured points and a skinned hand model in a pose, and their Jacobian.
--
-- theta: 3 global rotation, 3 translation, then for each of five fingers four angles: flexion and abduction of its
-- second bone, flexion of the third, flexion of the fourth. Only the vertices that measurements name are skinned.

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

-- Positions of the named vertices in the pose.
def posed_vertices [bones] [verts] [p] (m: model [bones] [verts]) (theta: [26]f64) (named: [p]i64) : [p][3]f64 =
  let transforms = bone_transforms m theta
  let global = axis_angle theta[0:3]
  let place (v: i64) : [3]f64 =
    let blend (row: i64) : f64 =
      f64.sum (map2 (\w t -> w * f64.sum (map2 (*) t[row] m.base_positions[v])) m.weights[v] transforms)
    let skinned = [if m.is_mirrored then -(blend 0) else blend 0, blend 1, blend 2]
    in map2 (+) (matvec global skinned) theta[3:6]
  in map place named

-- Each point is measured at a vertex.
entry simple [bones] [verts] [n] (m: model [bones] [verts]) (correspondences: [n]i64) (points: [n][3]f64)
             (theta: [26]f64) : [n][3]f64 =
  map2 (map2 (-)) points (posed_vertices m theta correspondences)

-- Each point is measured at the barycentric coordinates u of a triangle.
entry complicated [bones] [verts] [n] [t] (m: model [bones] [verts]) (triangles: [t][3]i64) (correspondences: [n]i64)
                  (points: [n][3]f64) (us: [n][2]f64) (theta: [26]f64) : [n][3]f64 =
  let corner (k: i64) = posed_vertices m theta (map (\c -> triangles[c, k]) correspondences)
  let blend (p: [3]f64) (u: [2]f64) (a: [3]f64) (b: [3]f64) (c: [3]f64) : [3]f64 =
    map4 (\p x y z -> p - (u[0] * x + u[1] * y + (1 - u[0] - u[1]) * z)) p a b c
  in map5 blend points us (corner 0) (corner 1) (corner 2)

def unit_vector (n: i64) (k: i64) : [n]f64 = tabulate n (\i -> if i == k then 1 else 0)

-- Columns of the Jacobian: one forward pass per pose parameter.
entry simple_jacobian [bones] [verts] [n] (m: model [bones] [verts]) (correspondences: [n]i64) (points: [n][3]f64)
                      (theta: [26]f64) : [26][n][3]f64 =
  tabulate 26 (\k -> jvp (simple m correspondences points) theta (unit_vector 26 k))

-- First the derivatives by each point's own u (all points at the same time), then by theta.
entry complicated_jacobian [bones] [verts] [n] [t] (m: model [bones] [verts]) (triangles: [t][3]i64)
                           (correspondences: [n]i64) (points: [n][3]f64) (us: [n][2]f64) (theta: [26]f64)
                           : [28][n][3]f64 =
  let f (us, theta) = complicated m triangles correspondences points us theta
  in tabulate 28 (\k ->
       let us_dot = if k < 2 then replicate n (unit_vector 2 k) else replicate n (replicate 2 0)
       let theta_dot = if k < 2 then replicate 26 0 else unit_vector 26 (k - 2)
       in jvp f (us, theta) (us_dot, theta_dot))
