-- The maximum of at least one number begins with the first.
entry main [n] (a: [n]f64) : f64 = f64.max a[0] (f64.maximum a[1:])
