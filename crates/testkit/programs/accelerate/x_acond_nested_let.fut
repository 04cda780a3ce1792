-- Branches make arrays, and an inner branch reads one of them.
entry main [n] (a: [n]f64) : f64 =
  f64.sum (if f64.sum a > 0
           then let squares = map (\x -> x * x) a in map2 (*) squares a
           else let sines = map f64.sin a
                in if n > 1 then map (\x -> x * sines[1]) sines else sines)
