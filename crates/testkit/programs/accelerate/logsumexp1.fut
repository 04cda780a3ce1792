-- The logarithm of the sum of exponentials is shifted by the maximum.
entry main [n] (a: [n]f64) : f64 =
  let m = f64.maximum a
  let shifted = map2 (-) a (replicate n m)
  in f64.log (f64.sum (map f64.exp shifted)) + m
