-- The slice takes one place in the middle one of three dimensions.
entry main [n] (a: [n]f64) : f64 =
  let b = tabulate_3d n 2 3 (\i j k -> a[i] * f64.i64 (j + k))
  let c = b[:, 1, :]
  in f64.sum (map (\x -> x * x + x) (flatten c))
