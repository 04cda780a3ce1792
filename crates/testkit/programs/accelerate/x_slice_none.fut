-- The slice is the whole array.
entry main [n] (a: [n]f64) : f64 =
  let b = a[:]
  in f64.sum (map (\x -> x * x + x) b)
