-- The function of the map reads the sum of all elements.
entry main [n] (a: [n]f64) : f64 =
  let s = f64.sum a
  in f64.sum (map (\x -> x * x * s + x * s) a)
