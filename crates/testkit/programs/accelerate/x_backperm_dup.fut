-- The gather takes some elements twice and others never.
entry main [n] (a: [n]f64) : f64 =
  let b = tabulate 7 (\i -> a[3 * i % 5])
  in f64.sum (map (\x -> x * x) b)
