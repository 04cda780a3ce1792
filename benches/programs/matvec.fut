-- Matrix-vector product, followed by a sum of squares or a sum.
def matvec [n] [m] (a: [n][m]f64) (v: [m]f64) : [n]f64 = map (\row -> f64.sum (map2 (*) row v)) a
entry squares [n] [m] (a: [n][m]f64) (v: [m]f64) : f64 = f64.sum (map (\y -> y * y) (matvec a v))
entry total [n] [m] (a: [n][m]f64) (v: [m]f64) : f64 = f64.sum (matvec a v)

entry gradient [n] [m] (a: [n][m]f64) (v: [m]f64) : (f64, ([n][m]f64, [m]f64)) =
  vjp2 (\(a, v) -> squares a v) (a, v) 1
