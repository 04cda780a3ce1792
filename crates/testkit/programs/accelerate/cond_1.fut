-- Two functions have the same slope where they meet.
entry main [n] (a: [n]f64) : f64 =
  f64.sum (map (\x -> 2 * (if x > 0 then f64.sin (x * x) else x * x * f64.exp x)) a)
