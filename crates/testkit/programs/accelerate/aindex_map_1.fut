-- Every element is added to one and the same element.
entry main [n] (a: [n]f64) : f64 = f64.sum (map (\x -> x + a[2]) a)
