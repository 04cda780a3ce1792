-- `mlp.fut` in single precision: a classifier of three layers on a batch of inputs: the mean cross entropy of its scores, and the gradient in all weights.
type network [n] [h1] [h2] [k] =
  {w0: [h1][n]f32, b0: [h1]f32, w1: [h2][h1]f32, b1: [h2]f32, w2: [k][h2]f32, b2: [k]f32}

def affine [batch] [n] [m] (w: [m][n]f32) (b: [m]f32) (x: [batch][n]f32) : [batch][m]f32 =
  map (\row -> map2 (\weights c -> f32.sum (map2 (*) weights row) + c) w b) x

def relu [batch] [m] (x: [batch][m]f32) : [batch][m]f32 = map (map (\a -> if a > 0 then a else 0)) x

def cross_entropy [k] (scores: [k]f32) (label: i64) : f32 =
  let most = f32.maximum scores
  in most + f32.log (f32.sum (map (\s -> f32.exp (s - most)) scores)) - scores[label]

entry loss [n] [h1] [h2] [k] [batch] (net: network [n] [h1] [h2] [k]) (x: [batch][n]f32) (labels: [batch]i64) : f32 =
  let first = relu (affine net.w0 net.b0 x)
  let second = relu (affine net.w1 net.b1 first)
  in f32.sum (map2 cross_entropy (affine net.w2 net.b2 second) labels) / f32.i64 batch

entry gradient [n] [h1] [h2] [k] [batch] (net: network [n] [h1] [h2] [k]) (x: [batch][n]f32) (labels: [batch]i64)
               : (f32, network [n] [h1] [h2] [k]) =
  vjp2 (\net -> loss net x labels) net 1
