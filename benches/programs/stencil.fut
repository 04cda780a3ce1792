-- A reaction-diffusion stencil: interior cells take one step at the same time, the border stays.
entry loss [n] (u: [n][n]f64) (steps: i64) : f64 =
  let step (u: [n][n]f64) : [n][n]f64 =
    tabulate_2d n n (\i j ->
      if i == 0 || j == 0 || i == n - 1 || j == n - 1 then u[i, j]
      else
        let around = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]
        let mixed = u[i, j] + 0.2 * (around - 4 * u[i, j])
        in mixed - 0.01 * mixed ** 3)
  let final = loop u for _t < steps do step u
  in f64.sum (map (\x -> x * x) (flatten final))

entry gradient [n] (u: [n][n]f64) (steps: i64) : (f64, [n][n]f64) = vjp2 (\u -> loss u steps) u 1
