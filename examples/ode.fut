-- Runge-Kutta of order four on y_0' = x_0, y_i' = x_i y_(i-1), y(0) = 0, up to time 2 in s steps (GradBench's ode).

def field [n] (x: [n]f64) (y: [n]f64) : [n]f64 =
  tabulate n (\i -> if i == 0 then x[0] else x[i] * y[i - 1])

entry primal [n] (x: [n]f64) (s: i64) : [n]f64 =
  let h = 2 / f64.i64 s
  let axpy (a: f64) (k: [n]f64) (y: [n]f64) : [n]f64 = map2 (\u v -> v + a * u) k y
  in loop y = replicate n 0f64 for _step < s do
       let k1 = field x y
       let k2 = field x (axpy (h / 2) k1 y)
       let k3 = field x (axpy (h / 2) k2 y)
       let k4 = field x (axpy h k3 y)
       in map5 (\v a b c d -> v + h * (a + 2 * b + 2 * c + d) / 6) y k1 k2 k3 k4

-- Gradient of the last component.
entry gradient [n] (x: [n]f64) (s: i64) : [n]f64 =
  vjp (\v -> last (primal v s)) x 1
