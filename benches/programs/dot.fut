-- Dot product.
entry dot [n] (a: [n]f64) (b: [n]f64) : f64 = f64.sum (map2 (*) a b)
