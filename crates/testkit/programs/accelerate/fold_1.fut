-- This is a product.
entry main [n] (a: [n]f64) : f64 = reduce (*) 1 a
