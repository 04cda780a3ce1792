-- The sign of the sum chooses one of two whole arrays.
entry main [n] (a: [n]f64) : f64 =
  f64.sum (if f64.sum a > 0 then a else map (* 2) a)
