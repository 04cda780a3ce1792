-- The operator takes the first of at least one element and does not commute. Flags give it a neutral element.
entry main [n] (a: [n]f64) : f64 =
  let op (p: bool, x: f64) (q: bool, y: f64) = if p then (p, x) else (q, y)
  let (_, first) = reduce op (false, 0) (zip (replicate n true) a)
  in first
