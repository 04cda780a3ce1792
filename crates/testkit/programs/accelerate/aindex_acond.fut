-- A branch reads an element, and it runs only where the place is in bounds.
entry main [n] (a: [n]f64) : f64 =
  let s = i64.f64 (f64.round (f64.sum a))
  in f64.sum (if 0 <= s && s < n then tabulate 1 (\_ -> a[s]) else tabulate 1 (\_ -> 0))
