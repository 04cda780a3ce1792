-- The new dimension is the inner one.
entry main [n] (a: [n]f64) : f64 =
  map (\x -> x * x + x) a |> map (replicate 5) |> map (map (* 2)) |> map f64.sum |> f64.product
