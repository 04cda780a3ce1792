-- Each branch reads an element that is out of bounds where the other branch runs.
entry main [n] (a: [n]f64) : f64 =
  f64.sum (tabulate (2 * n) (\i -> if i < n then a[i] else a[i - n]))
