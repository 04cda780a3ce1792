-- Dot product.
entry dot [n] (a: [n]f64) (b: [n]f64) : f64 = f64.sum (map2 (*) a b)

-- The value and both derivatives.
entry gradient [n] (a: [n]f64) (b: [n]f64) : (f64, ([n]f64, [n]f64)) =
  vjp2 (\(a, b) -> dot a b) (a, b) 1
