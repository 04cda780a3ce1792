-- A network of two hidden layers on a batch of inputs: the sum of squared differences between its outputs and targets.

def layer [batch] [n] [m] (w: [m][n]f64) (b: [m]f64) (xs: [batch][n]f64) : [batch][m]f64 =
  map (\x -> map2 (\weights c -> f64.tanh (f64.sum (map2 (*) weights x) + c)) w b) xs

def linear [batch] [n] [m] (w: [m][n]f64) (b: [m]f64) (xs: [batch][n]f64) : [batch][m]f64 =
  map (\x -> map2 (\weights c -> f64.sum (map2 (*) weights x) + c) w b) xs

entry loss [batch] [n] [h1] [h2] [k] (x: [batch][n]f64) (y: [batch][k]f64)
           (w0: [h1][n]f64) (b0: [h1]f64) (w1: [h2][h1]f64) (b1: [h2]f64) (w2: [k][h2]f64) (b2: [k]f64) : f64 =
  let out = linear w2 b2 (layer w1 b1 (layer w0 b0 x))
  in f64.sum (map2 (\a b -> f64.sum (map2 (\p q -> (p - q) * (p - q)) a b)) out y) / f64.i64 batch
