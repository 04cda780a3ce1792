-- The branches of nested conditions use names from outside.
entry main [n] (a: [n]f64) : f64 =
  let f (x: f64) : f64 =
    let v = f64.exp (x / 10)
    in if x > 0
       then let w = x * v in if x > 2 then w * v else w + v
       else v * v
  in f64.sum (map f a)
