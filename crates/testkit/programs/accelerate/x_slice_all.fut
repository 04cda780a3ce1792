-- The slice is one element, so no dimension is kept.
entry main [n] (a: [n]f64) : f64 =
  let b = map (\x -> x * x + x) a
  in b[0]
