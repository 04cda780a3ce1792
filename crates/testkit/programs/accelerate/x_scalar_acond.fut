-- A condition chooses between numbers. They are arrays of rank zero in the thesis.
entry main [n] (a: [n]f64) : f64 =
  let s = f64.sum a
  in if s > 0 then s * s else s
