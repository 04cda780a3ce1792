-- A condition chooses between pairs of arrays, and the rest uses the size of one array only.
entry main [n] (a: [n]f64) : f64 =
  let b = map (* 2) a
  let (a1, _) = if f64.sum a > 0 then (a, b) else (b, a)
  in f64.sum (map (\x -> x * f64.i64 (length a1)) b)
