-- Each of two matrices is too large in one dimension.
def zip_with [n] [m] 'x 'y 'z (f: x -> y -> z) (xs: [n]x) (ys: [m]y) : []z =
  let k = i64.min n m
  in map2 f (take k xs) (take k ys)

entry main [n] (a: [n]f64) : f64 =
  let columns = map (replicate 5) a
  let rows = replicate 4 a
  let m = i64.min 5 n
  let both xs ys : [m]f64 = sized m (zip_with (\x y -> f64.sin x * y) xs ys)
  in f64.sum (flatten (zip_with both columns rows))
