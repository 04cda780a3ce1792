-- An array of even length becomes two rows.
entry main [n] (a: [n]f64) : f64 =
  let half = n / 2
  let rows = unflatten a :> [2][half]f64
  in f64.product (map f64.sum rows)
