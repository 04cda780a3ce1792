-- The operator adds absolute values. Zero is neutral for its results, which are never negative.
def absolute (v: f64) : f64 = if v < 0 then -v else v

entry main [n] (a: [n]f64) : f64 =
  let op x y = absolute x + absolute y
  in op 0 (reduce op 0 a)
