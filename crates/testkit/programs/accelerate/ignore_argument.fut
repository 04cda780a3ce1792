-- The function of the map does not use its argument.
entry main [n] (a: [n]f64) : f64 = f64.sum (map (\_ -> 42) a)
