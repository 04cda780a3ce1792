-- The function has a kink at zero.
entry main [n] (a: [n]f64) : f64 =
  f64.sum (map (\x -> if x > 0 then x else 2 * x) a)
