-- The sum begins at the number of elements.
entry main [n] (a: [n]f64) : f64 = f64.i64 n + reduce (+) 0 a
