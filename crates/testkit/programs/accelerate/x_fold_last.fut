-- The operator takes the last element, or 0, and does not commute. Flags give it a neutral element.
entry main [n] (a: [n]f64) : f64 =
  let op (p: bool, x: f64) (q: bool, y: f64) = if q then (q, y) else (p, x)
  let (_, last) = op (true, 0) (reduce op (false, 0) (zip (replicate n true) a))
  in last
