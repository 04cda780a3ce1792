-- A classifier of three layers on a batch of inputs: the mean cross entropy of its scores, and the gradient in all weights.
type network [n] [h1] [h2] [k] =
  {w0: [h1][n]f64, b0: [h1]f64, w1: [h2][h1]f64, b1: [h2]f64, w2: [k][h2]f64, b2: [k]f64}

def affine [batch] [n] [m] (w: [m][n]f64) (b: [m]f64) (x: [batch][n]f64) : [batch][m]f64 =
  map (\row -> map2 (\weights c -> f64.sum (map2 (*) weights row) + c) w b) x

def relu [batch] [m] (x: [batch][m]f64) : [batch][m]f64 = map (map (\a -> if a > 0 then a else 0)) x

def cross_entropy [k] (scores: [k]f64) (label: i64) : f64 =
  let most = f64.maximum scores
  in most + f64.log (f64.sum (map (\s -> f64.exp (s - most)) scores)) - scores[label]

entry loss [n] [h1] [h2] [k] [batch] (net: network [n] [h1] [h2] [k]) (x: [batch][n]f64) (labels: [batch]i64) : f64 =
  let first = relu (affine net.w0 net.b0 x)
  let second = relu (affine net.w1 net.b1 first)
  in f64.sum (map2 cross_entropy (affine net.w2 net.b2 second) labels) / f64.i64 batch

entry gradient [n] [h1] [h2] [k] [batch] (net: network [n] [h1] [h2] [k]) (x: [batch][n]f64) (labels: [batch]i64)
               : (f64, network [n] [h1] [h2] [k]) =
  vjp2 (\net -> loss net x labels) net 1
