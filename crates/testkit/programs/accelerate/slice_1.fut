-- The sum reads one row of an array of rank three. All rows are equal.
entry main [n] (a: [n]f64) : f64 =
  let m = n / 4 + 3
  let rows = replicate m (replicate m a)
  in f64.sum rows[2, 1]
