-- A number becomes a matrix, so all dimensions are new.
entry main [n] (a: [n]f64) : f64 =
  let s = f64.sum a
  let b = replicate 2 (replicate 3 s)
  in f64.sum (map (\x -> x * x) (flatten b))
