-- A condition on the result follows on nested conditions.
entry main [n] (a: [n]f64) : f64 =
  let f (x: f64) : f64 =
    let u =
      if x >= 1 then f64.log x + 1
      else if x - 2 < -3 then f64.exp (x + 1) - 2
      else x
    let y = 2 * f64.exp u
    in u * (if u < -1 then u + y else y)
  in f64.sum (map f a)
