-- Pairs of arrays are exchanged several times. The logarithm may be of a negative number.
def zip_with [n] [m] 'x 'y 'z (f: x -> y -> z) (xs: [n]x) (ys: [m]y) : []z =
  let k = i64.min n m
  in map2 f (take k xs) (take k ys)

entry main [n] [m] (a: [n]f64) (b: [m]f64) : f64 =
  let (a1, a2) = (b, zip_with (*) a b)
  let (b1, b2) = (zip_with (+) a2 b, a1)
  let (c1, c2) = (b2, zip_with (+) a1 b2)
  let (d1, d2) = (f64.sum c2, f64.sum b1)
  in f64.log (d2 * f64.sum c1) + d1
