-- A network of two layers for one input, and sums of the shares (softmax) of its outputs.
type layer [m] [n] = {weights: [m][n]f64, bias: [m]f64}

def relu (x: f64) : f64 = if x >= 0 then x else 0

def activate [m] [n] (l: layer [m] [n]) (x: [n]f64) : [m]f64 =
  map2 (\row b -> relu (f64.sum (map2 (*) row x) + b)) l.weights l.bias

def softmax [n] (xs: [n]f64) : [n]f64 =
  let most = f64.max 0 (f64.maximum xs)
  let es = map (\x -> f64.exp (x - most)) xs
  let total = f64.sum es
  in map (/ total) es

def shares [n] [m] [k] (first: layer [m] [n]) (second: layer [k] [m]) (x: [n]f64) : [k]f64 =
  softmax (activate second (activate first x))

-- Always 1: a program to be timed.
entry total [n] [m] [k] (first: layer [m] [n]) (second: layer [k] [m]) (x: [n]f64) : f64 =
  f64.sum (shares first second x)

-- A weighted sum, which depends on everything.
entry weighted [n] [m] [k] (first: layer [m] [n]) (second: layer [k] [m]) (x: [n]f64) : f64 =
  let weights = tabulate k (\i -> f64.sin (0.41 * f64.i64 i))
  in f64.sum (map2 (*) weights (shares first second x))

entry gradient [n] [m] [k] (first: layer [m] [n]) (second: layer [k] [m]) (x: [n]f64)
               : (f64, (layer [m] [n], layer [k] [m], [n]f64)) =
  vjp2 (\(first, second, x) -> total first second x) (first, second, x) 1
