-- A matrix is gathered from a vector.
entry main [n] (m: i64) (a: [n]f64) : f64 =
  let b = tabulate_2d m (2 * m) (\i j -> a[(i + j) % n])
  in f64.sum (flatten b)
