-- The new dimension is the outer one.
entry main [n] (a: [n]f64) : f64 =
  map (\x -> x * x + x) a |> replicate 5 |> map (map (/ 20)) |> flatten |> f64.sum
