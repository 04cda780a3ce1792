-- A product of two numbers, with both derivatives.
entry mult (x: f64) (y: f64) : f64 = x * y

entry gradient (x: f64) (y: f64) : (f64, (f64, f64)) = vjp2 (\(x, y) -> mult x y) (x, y) 1
