-- The maximum is added to itself.
entry main [n] (a: [n]f64) : f64 =
  let m = f64.maximum a
  in m + m
