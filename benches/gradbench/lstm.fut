-- GradBench's lstm: the loss of the character model and its gradient in the weights.
-- Two rows of parameters and of the state for each layer, four gates in each.
import "../../examples/lstm"

def loss [rows] [w] [b] [srows] [c] (main: [rows][w]f64) (extra: [3][b]f64) (state: [srows][b]f64) (sequence: [c][b]f64)
         : f64 =
  assert (rows % 2 == 0 && srows == rows) (assert (w == 4 * b) (objective main extra state sequence))

entry objective [rows] [w] [b] [srows] [c] (main_params: [rows][w]f64) (extra_params: [3][b]f64)
                (state: [srows][b]f64) (sequence: [c][b]f64) : f64 =
  loss main_params extra_params state sequence

-- The gradient as one list: the rows of the main parameters, then those of the extra ones.
entry jacobian [rows] [w] [b] [srows] [c] (main_params: [rows][w]f64) (extra_params: [3][b]f64)
               (state: [srows][b]f64) (sequence: [c][b]f64) : []f64 =
  let f (main, extra) = loss main extra state sequence
  let (main, extra) = vjp f (main_params, extra_params) 1
  in concat (flatten main) (flatten extra)
