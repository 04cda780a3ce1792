-- Sums over a gathered matrix are gathered again, and a part of that is taken.
entry main [n] (m: i64) (a: [n]f64) : f64 =
  let b = tabulate_2d m (2 * m) (\i j -> a[(i + j) % n])
  let c = map f64.sum b
  let d = tabulate_3d 2 3 m (\_ i j -> c[i64.min (m - 1) (i * j)])
  let e = map (map (map (/ 2))) d
  let f = map (map (\row -> row[2])) e
  in f64.sum (flatten f)
