-- Each of two dimensions gets a new one before it.
entry main [n] (a: [n]f64) : f64 =
  map (replicate 2) a
  |> map (map (\x -> x * x + x))
  |> map (replicate 3)
  |> replicate 5
  |> map (map (map (map (* 2))))
  |> flatten_4d
  |> f64.sum
