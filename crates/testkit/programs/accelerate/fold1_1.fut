-- The product of at least one number begins with the first.
entry main [n] (a: [n]f64) : f64 = a[0] * reduce (*) 1 a[1:]
