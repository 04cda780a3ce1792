-- All dimensions are kept, and none is new.
entry main [n] (a: [n]f64) : f64 =
  let b = map (\x -> x) a
  in f64.sum (map (\x -> x * x + x) b)
