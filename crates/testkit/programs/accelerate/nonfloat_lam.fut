-- The elements of an array are pairs with an integer inside.
entry main [n] (a: [n]f64) : f64 =
  let b = map (\x -> (i64.f64 (f64.round x), f64.sin x)) a
  in f64.sum (map (\(i, x) -> f64.i64 i * x) b)
