-- Pairs with an integer inside are gathered.
entry main [n] (a: [n]f64) : f64 =
  let pairs = map2 (\i x -> (i % 3, x * f64.sin x)) (iota n) a
  let gathered = tabulate_2d 6 n (\_ j -> pairs[n - 1 - j])
  let value (x: f64) (k: i64, y: f64) : f64 = if k == 0 then x * y else 0
  in f64.sum (map (\row -> f64.sum (map2 value (reverse a) row)) gathered)
