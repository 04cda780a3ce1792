-- The maximum is not added at the end of logsumexp1.
entry main [n] (a: [n]f64) : f64 =
  let m = f64.maximum a
  let shifted = map2 (-) a (replicate n m)
  in f64.log (f64.sum (map f64.exp shifted))
