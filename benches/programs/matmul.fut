-- The sum of the squares of a matrix product.
def matmul [n] [m] [p] (a: [n][m]f64) (b: [m][p]f64) : [n][p]f64 =
  map (\row -> map (\col -> f64.sum (map2 (*) row col)) (transpose b)) a

entry squares [n] [m] [p] (a: [n][m]f64) (b: [m][p]f64) : f64 =
  f64.sum (map (\x -> x * x) (flatten (matmul a b)))
