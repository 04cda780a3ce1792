-- The element is read under a condition.
entry main [n] (a: [n]f64) : f64 =
  f64.sum (tabulate (2 * n) (\i -> if i < 5 then a[i / 2] else 42))
