-- Conditions choose between pairs of a matrix and a vector.
def zip_with [n] [m] 'x 'y 'z (f: x -> y -> z) (xs: [n]x) (ys: [m]y) : []z =
  let k = i64.min n m
  in map2 f (take k xs) (take k ys)

entry main [n] [m] (a: [n]f64) (b: [m]f64) : f64 =
  let (a1, a2) =
    if n % 3 == 0
    then (map (replicate 3) b, a)
    else (tabulate_2d 1 2 (\i j -> f64.i64 (i + j)), b)
  let k = length a2
  let (b1, b2) =
    if (if length a1 > 0 then a1[0, 1] else 42) > 0
    then (a1, a2)
    else (tabulate_2d 4 4 (\i j -> a2[(i * j) % k]), map (\row -> row[0]) a1)
  in f64.sum (zip_with (+) b2 (map f64.sum b1))
