-- The factors of cond_3a are exchanged.
entry main [n] (a: [n]f64) : f64 =
  let f (x: f64) : f64 =
    let u = 2 * x
    let v = if x <= 2 then u + 1 else 2 * u - 1
    in v * u
  in f64.sum (map f a)
