-- Conditions stand inside of a condition. Reads are out of bounds where the wrong branch runs.
entry main [n] (a: [n]f64) : f64 =
  let b = map (* 2) a
  let share = 1 / (1 + f64.exp (-(f64.sum a)))
  let k = i64.f64 (f64.floor (share * (f64.i64 (2 * n) - 0.01)))
  in f64.sum (if k < n
              then tabulate (2 * n) (\i -> if i <= k then a[i] else b[(i - k) / 2])
              else tabulate (2 * n) (\i -> a[k - n] + (if i >= n then b[i - n] else a[i])))
