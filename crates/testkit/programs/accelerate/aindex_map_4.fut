-- The map over sums of gathered rows reads the array from which they were gathered.
entry main [n] (a: [n]f64) : f64 =
  let b = map f64.sum (tabulate_2d n n (\i j -> a[i64.min (i ^ j) (n - 1)]))
  in f64.sum (map (\x -> x * a[i64.abs (i64.f64 (f64.round x)) % n]) b)
