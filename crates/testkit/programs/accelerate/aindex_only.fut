-- The argument is only read at places.
entry main [n] (a: [n]f64) : f64 = f64.sum (tabulate 5 (\i -> a[i % n]))
