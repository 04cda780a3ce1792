-- GradBench's det: the determinant by expansion along the first row, and its gradient. The matrix comes row by row.
import "../../examples/det"

def det [n] (A: [n]f64) (ell: i64) : f64 = primal (unflatten (A :> [ell * ell]f64))

entry primal [n] (A: [n]f64) (ell: i64) : f64 = det A ell

entry gradient [n] (A: [n]f64) (ell: i64) : [n]f64 = vjp (\a -> det a ell) A 1
