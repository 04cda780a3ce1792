-- This is one map under a sum.
entry main [n] (a: [n]f64) : f64 = f64.sum (map (* 3) a)
