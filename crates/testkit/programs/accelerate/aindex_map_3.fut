-- The elements choose which maximum over a gathered row is read.
entry main [n] (a: [n]f64) : f64 =
  let rows = tabulate_2d n n (\i j -> a[i & j])
  let b = map (\row -> f64.max (-20) (f64.maximum row)) rows
  in f64.sum (map (\x -> x * b[i64.abs (i64.f64 (f64.round x)) % n]) a)
