-- Every second element is read.
entry main [n] (a: [n]f64) : f64 = f64.sum (tabulate (n / 2) (\i -> a[2 * i]))
