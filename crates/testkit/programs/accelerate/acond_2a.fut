-- Both branches and the rest of the program use one array.
entry main [n] (a: [n]f64) : f64 =
  let b = map (2 *) a
  let y = if f64.sum a <= 2 then map (+ 1) b else map (\x -> x - 1) (map (2 *) b)
  in f64.sum (map2 (*) b y)
