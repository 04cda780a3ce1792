-- The maximum begins at 3.
entry main [n] (a: [n]f64) : f64 = f64.max 3 (f64.maximum a)
