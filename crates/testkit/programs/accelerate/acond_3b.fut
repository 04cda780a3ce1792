-- All uses of the argument stand in a branch that does not run.
entry main [n] (a: [n]f64) : f64 =
  if n >= 0 then 42 else f64.sum (map (* 2) a) + f64.sum (map (+ 3) a)
