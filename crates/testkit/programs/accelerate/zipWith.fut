-- The arrays have different lengths, and the longer one ends early.
def zip_with [n] [m] 'x 'y 'z (f: x -> y -> z) (xs: [n]x) (ys: [m]y) : []z =
  let k = i64.min n m
  in map2 f (take k xs) (take k ys)

entry main [n] [m] (a: [n]f64) (b: [m]f64) : f64 =
  f64.sum (zip_with (\x y -> f64.sin x * f64.cos (x + y)) a b)
