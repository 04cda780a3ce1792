-- Least squares fit of a polynomial with coefficients x to the sign function on n points (GradBench's llsq).

entry primal [m] (x: [m]f64) (n: i64) : f64 =
  let residual (i: i64) : f64 =
    let t = 2 * f64.i64 i / f64.i64 (n - 1) - 1
    let (value, _) = loop (acc, power) = (0f64, 1f64) for j < m do (acc + x[j] * power, power * t)
    in f64.sgn t - value
  in 0.5 * f64.sum (map (\i -> let r = residual i in r * r) (iota n))

entry gradient [m] (x: [m]f64) (n: i64) : [m]f64 = vjp (\v -> primal v n) x 1
