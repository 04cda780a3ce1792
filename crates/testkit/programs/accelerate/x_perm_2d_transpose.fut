-- A transposed matrix is multiplied by a matrix of the same shape.
entry main [n] (a: [n]f64) : f64 =
  let b = map (replicate 4) (map (\x -> x * x + x) a)
  let transposed = tabulate_2d 4 n (\i j -> b[j, i])
  in f64.sum (flatten (map2 (map2 (*)) transposed (replicate 4 a)))
