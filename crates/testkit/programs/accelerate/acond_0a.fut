-- The branches of acond_0 are exchanged.
entry main [n] (a: [n]f64) : f64 =
  f64.sum (if f64.sum a > 0 then map (* 2) a else a)
