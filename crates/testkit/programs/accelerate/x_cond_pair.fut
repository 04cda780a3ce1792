-- The condition gives a pair.
entry main [n] (a: [n]f64) : f64 =
  let f (x: f64) : f64 =
    let (u, v) = if x > 0 then (x, x * x) else (f64.sin x, 1)
    in u * v
  in f64.sum (map f a)
