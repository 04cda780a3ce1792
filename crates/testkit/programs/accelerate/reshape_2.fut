-- An array of even length becomes two rows, then a column.
entry main [n] (a: [n]f64) : f64 =
  let half = n / 2
  let b = unflatten a :> [2][half]f64
  let c = unflatten (flatten b) :> [n][1]f64
  in f64.sum (map f64.product c)
