-- The operator is of no special shape, and the fold begins at a half.
entry main [n] (a: [n]f64) : f64 =
  let op x y = x * y + x + y
  in op 0.5 (reduce op 0 a)
