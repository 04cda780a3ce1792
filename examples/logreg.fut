-- Logistic regression with a small ridge penalty, its gradient and a Hessian-vector product.

-- The loss of a score: log (1 + exp z), without overflow and with right derivatives of every order, at z = 0 too.
def softplus (z: f64) : f64 = f64.softplus z

entry loss [n] [d] (x: [n][d]f64) (y: [n]f64) (w: [d]f64) : f64 =
  let scores = map (\row -> f64.sum (map2 (*) row w)) x
  let losses = map2 (\z label -> softplus z - label * z) scores y
  in f64.sum losses / f64.i64 n + 0.0005 * f64.sum (map (\a -> a * a) w)

entry gradient [n] [d] (x: [n][d]f64) (y: [n]f64) (w: [d]f64) : [d]f64 =
  vjp (loss x y) w 1

-- Forward over reverse: the cost of a few gradients, never a d x d matrix.
entry hessian_vector [n] [d] (x: [n][d]f64) (y: [n]f64) (w: [d]f64) (s: [d]f64) : [d]f64 =
  jvp (gradient x y) w s
