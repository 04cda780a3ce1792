-- The products of rows begin at 2, and each number in a row is a sum of two elements.
entry main [n] (a: [n]f64) : f64 =
  let sums = tabulate_2d 3 3 (\i j -> a[i] + a[j])
  in f64.sum (map (\row -> 2 * reduce (*) 1 row) sums)
