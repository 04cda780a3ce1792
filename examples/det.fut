-- The determinant by expansion along the first row, as a recursive function (GradBench's det).
-- `cols` names the columns that are left; the rows are the last ones.

def det2 (a: f64) (b: f64) (c: f64) (d: f64) : f64 = a * d - b * c

def minor [l] [k] (a: [l][l]f64) (cols: [k]i64) : f64 =
  let row = l - k
  in if k == 0 then 1
     else if k == 1 then a[row, cols[0]]
     else if k == 2 then det2 a[row, cols[0]] a[row, cols[1]] a[row + 1, cols[0]] a[row + 1, cols[1]]
     else if k == 3 then
       let (x, y, z) = (cols[0], cols[1], cols[2])
       in a[row, x] * det2 a[row + 1, y] a[row + 1, z] a[row + 2, y] a[row + 2, z]
          - a[row, y] * det2 a[row + 1, x] a[row + 1, z] a[row + 2, x] a[row + 2, z]
          + a[row, z] * det2 a[row + 1, x] a[row + 1, y] a[row + 2, x] a[row + 2, y]
     else f64.sum (tabulate k (\j ->
            let others = tabulate (k - 1) (\i -> cols[if i < j then i else i + 1])
            let sign = if j % 2 == 0 then 1f64 else -1f64
            in sign * a[row, cols[j]] * minor a others))

entry primal [l] (a: [l][l]f64) : f64 = minor a (iota l)
