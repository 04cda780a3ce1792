-- The only use of the argument stands in a branch that does not run.
entry main [n] (a: [n]f64) : f64 =
  f64.sum (if true then tabulate 1 (\_ -> 42) else a)
