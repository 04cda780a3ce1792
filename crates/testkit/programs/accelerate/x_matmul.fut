-- The product of two matrices is summed from an array of rank three.
entry main [n] (a: [n]f64) : f64 =
  let x = replicate 2 a
  let y = transpose (replicate 3 a)
  let products = tabulate_3d 2 3 n (\i j k -> x[i, k] * y[k, j])
  in f64.sum (flatten (map (map f64.sum) products))
