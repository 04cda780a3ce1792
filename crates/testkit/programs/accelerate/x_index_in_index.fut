-- The place of one element depends on another element.
entry main [n] (a: [n]f64) : f64 =
  f64.sum (tabulate n (\i -> a[i] * a[i64.abs (i64.f64 (f64.round a[i])) % n]))
