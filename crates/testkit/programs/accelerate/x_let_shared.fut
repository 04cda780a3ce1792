-- Numbers are used several times.
entry main [n] (a: [n]f64) : f64 =
  let f (x: f64) : f64 =
    let u = x * x
    let v = u + x
    let w = u * v
    in w * (u + v)
  in f64.sum (map f a)
