-- The products of rows begin with the first number.
entry main [n] (a: [n]f64) : f64 =
  let rows = replicate 3 (map (/ 4) a)
  in f64.sum (map (\row -> row[0] * reduce (*) 1 row[1:]) rows)
