-- One function reads several elements of an array and has an element of another one.
entry main [n] (a: [n]f64) : f64 =
  let twice = map (* 2) a
  in f64.sum (map2 (\i x -> 2 * (x * a[(i + 1) % n] + a[0] * a[0])) (iota n) twice)
