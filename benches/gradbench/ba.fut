-- GradBench's ba: errors of observations, and their Jacobian in compressed rows.
--
-- The message holds one camera, point, weight and feature; all cameras, points, weights and features are copies of it. The copies
-- are made before time is taken (`.._input`), and what is sent is a sample of the result (`.._output`).
import "../../examples/ba"

type input [n] [m] [p] = ([n][11]f64, [m][3]f64, [p]f64, [p][2]f64, [p][2]i64)

def copies (n: i64) (m: i64) (p: i64) (cam: [11]f64) (x: [3]f64) (w: f64) (feat: [2]f64) : input [n] [m] [p] =
  (replicate n cam, replicate m x, replicate p w, replicate p feat, tabulate p (\i -> [i % n, i % m]))

entry objective_input (n: i64) (m: i64) (p: i64) (cam: [11]f64) (x: [3]f64) (w: f64) (feat: [2]f64)
                      : input [n] [m] [p] = copies n m p cam x w feat

entry jacobian_input (n: i64) (m: i64) (p: i64) (cam: [11]f64) (x: [3]f64) (w: f64) (feat: [2]f64)
                     : input [n] [m] [p] = copies n m p cam x w feat

def errors [n] [m] [p] (cams: [n][11]f64) (points: [m][3]f64) (weights: [p]f64) (feats: [p][2]f64) (obs: [p][2]i64)
           : ([p][2]f64, [p]f64) =
  objective cams points weights feats obs

def blocks [n] [m] [p] (cams: [n][11]f64) (points: [m][3]f64) (weights: [p]f64) (feats: [p][2]f64) (obs: [p][2]i64)
           : ([p][2][15]f64, [p]f64) =
  jacobian cams points weights feats obs

entry objective [n] [m] [p] (cams: [n][11]f64) (points: [m][3]f64) (weights: [p]f64) (feats: [p][2]f64)
                (obs: [p][2]i64) : ([p][2]f64, [p]f64) =
  errors cams points weights feats obs

entry objective_output [p] (errors: [p][2]f64) (weight_errors: [p]f64)
                       : {reproj_error: {elements: [2]f64, repeated: i64}, w_err: {element: f64, repeated: i64}} =
  {reproj_error = {elements = errors[0], repeated = p}, w_err = {element = weight_errors[0], repeated = p}}

-- Two rows of 11 camera, 3 point and 1 weight columns for each observation, then a row of one column for each weight.
entry jacobian [n] [m] [p] (cams: [n][11]f64) (points: [m][3]f64) (weights: [p]f64) (feats: [p][2]f64)
               (obs: [p][2]i64) : ([]i32, []i32, []f64) =
  let rows = concat (tabulate (2 * p) (\i -> i32.i64 (15 * i))) (tabulate (p + 1) (\i -> i32.i64 (30 * p + i)))
  let column (i: i64) (j: i64) : i32 =
    i32.i64 (if j < 11 then 11 * obs[i, 0] + j
             else if j < 14 then 11 * n + 3 * obs[i, 1] + j - 11
             else 11 * n + 3 * m + i)
  let of_errors = flatten_3d (tabulate_3d p 2 15 (\i _ j -> column i j))
  let cols = concat of_errors (tabulate p (\i -> i32.i64 (11 * n + 3 * m + i)))
  let (of_errors, of_weights) = blocks cams points weights feats obs
  in (rows, cols, concat (flatten_3d of_errors) of_weights)

-- The first 30 entries, and the last.
def sample [n] 't (xs: [n]t) : [31]t = concat (take 30 xs) [last xs] :> [31]t

entry jacobian_output [r] [c] (rows: [r]i32) (cols: [c]i32) (vals: [c]f64)
                      : {rows: [31]i32, cols: [31]i32, vals: [31]f64} =
  {rows = sample rows, cols = sample cols, vals = sample vals}
