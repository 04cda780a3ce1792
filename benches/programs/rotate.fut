-- Rotation of a vector by a quaternion.
type vec3 = {x: f64, y: f64, z: f64}
type quaternion = {x: f64, y: f64, z: f64, w: f64}

def dot (a: vec3) (b: vec3) : f64 = a.x * b.x + a.y * b.y + a.z * b.z
def cross (a: vec3) (b: vec3) : vec3 =
  {x = a.y * b.z - a.z * b.y, y = a.z * b.x - a.x * b.z, z = a.x * b.y - a.y * b.x}
def plus (a: vec3) (b: vec3) : vec3 = {x = a.x + b.x, y = a.y + b.y, z = a.z + b.z}
def scale (s: f64) (a: vec3) : vec3 = {x = s * a.x, y = s * a.y, z = s * a.z}

entry rotate_vec (v: vec3) (q: quaternion) : vec3 =
  let t = {x = q.x, y = q.y, z = q.z}
  let s = q.w
  in plus (plus (scale (2 * dot t v) t) (scale (s * s - dot t t) v)) (scale (2 * s) (cross t v))

-- The result and its Jacobian: a row for each of its components.
entry jacobian (v: vec3) (q: quaternion) : (vec3, [3](vec3, quaternion)) =
  mjp2 (\(v, q) -> rotate_vec v q) (v, q) [{x = 1, y = 0, z = 0}, {x = 0, y = 1, z = 0}, {x = 0, y = 0, z = 1}]
