-- The branches read the argument at places.
entry main [n] (a: [n]f64) : f64 =
  f64.sum (if f64.sum a > 0
           then tabulate n (\i -> a[i] * a[n - 1 - i])
           else tabulate 1 (\_ -> a[0]))
