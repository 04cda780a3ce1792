-- Each of two dimensions gets a new one behind it.
entry main [n] (a: [n]f64) : f64 =
  map (replicate 2) a
  |> map (map (\x -> x * x + x))
  |> map (\row -> replicate 5 (map (replicate 3) row))
  |> map (map (map (map (* 2))))
  |> flatten_4d
  |> f64.sum
