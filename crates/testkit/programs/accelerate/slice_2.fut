-- The sum reads one row of a gathered array of rank three. The place of the row is given.
entry main [n] (p1: i64) (p2: i64) (a: [n]f64) : f64 =
  let a1 = tabulate_3d n n (n + 1) (\i j k -> a[(i + j + k) % n])
  in f64.sum a1[p1 % n, p2 % n]
