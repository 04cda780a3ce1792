-- All uses of an array stand in branches that do not run.
entry main [n] (a: [n]f64) : f64 =
  let squares = map (\x -> x * x) a
  in f64.sum (if n >= 0
              then (if n < 0 then squares else tabulate 2 (\_ -> 1))
              else map (* 3) squares)
