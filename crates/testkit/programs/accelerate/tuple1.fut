-- Tuples of arrays stand beside arrays of pairs, and one component is not used.
entry main [n] (a: [n]f64) : f64 =
  let (b, _) = (map (* 2) a, map (+ 3) a)
  let (a1, a2, a3) = (map2 (\x y -> f64.sin x * y) b a, a, b)
  in f64.sum (map2 (\(x, y) z -> x + y * z) (zip a1 a2) a3) + 5
