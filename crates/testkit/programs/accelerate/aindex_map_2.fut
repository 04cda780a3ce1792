-- The place of the element that is read depends on the elements.
entry main [n] (a: [n]f64) : f64 =
  f64.sum (map (\x -> x + a[i64.abs (i64.f64 (f64.round x)) % n]) a)
