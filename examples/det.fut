-- The determinant by expansion along the first row, as a recursive function (GradBench's det).
-- `cols` marks the columns that are left; row r is expanded next.

def minor [l] (a: [l][l]f64) (r: i64) (cols: [l]bool) : f64 =
  if r == l then 1
  else
    let (total, _) =
      loop (total, sign) = (0f64, 1f64) for j < l do
        if cols[j] then (total + sign * a[r, j] * minor a (r + 1) (cols with [j] = false), -sign)
        else (total, sign)
    in total

entry primal [l] (a: [l][l]f64) : f64 = minor a 0 (replicate l true)
