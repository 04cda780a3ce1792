-- Elements are read in a condition, in both of its branches, and in a condition inside of the condition.
entry main [n] (a: [n]f64) : f64 =
  let f (i: i64) : f64 =
    if (if i > 0 then a[i - 1] > a[i] else false)
    then a[i]
    else (a[i] + a[2]) * a[i64.abs (i64.f64 (f64.round a[i])) % n]
  in f64.sum (tabulate n f)
