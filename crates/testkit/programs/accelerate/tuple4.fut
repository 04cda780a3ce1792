-- Tuples stand in tuples, and one of them has no components.
entry main [n] [m] (a: [n]f64) (b: [m]f64) : f64 =
  let ((a1, s1, (s2, a2, ()), s3), a3) =
    ((b, f64.sum a, (f64.sum b, a, ()), f64.sum a), b)
  in s1 * f64.sum a3 + (f64.sum a1 * f64.product a2 + s2) * s3
