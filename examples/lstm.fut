-- The character model of the ADBench and GradBench LSTM problem: layers of memory cells with diagonal weights.
--
-- main_params: two rows per layer, weights and biases, each [forget b | ingate b | outgate b | change b].
-- extra_params: rows input weight, output weight, output bias. state: two rows per layer, hidden and cell.

def sigmoid (x: f64) : f64 = 1 / (1 + f64.exp (-x))

-- One layer on one character: the new hidden and cell vectors. Ingate and change look at the old hidden vector.
def layer [b] [w] (weight: [w]f64) (bias: [w]f64) (hidden: [b]f64) (cell: [b]f64) (input: [b]f64)
          : ([b]f64, [b]f64) =
  let gate (k: i64) (f: f64 -> f64) (v: [b]f64) : [b]f64 =
    tabulate b (\j -> f (v[j] * weight[k * b + j] + bias[k * b + j]))
  let forget = gate 0 sigmoid input
  let ingate = gate 1 sigmoid hidden
  let outgate = gate 2 sigmoid input
  let change = gate 3 f64.tanh hidden
  let cell = map4 (\c f i ch -> c * f + i * ch) cell forget ingate change
  let hidden = map2 (\o c -> o * f64.tanh c) outgate cell
  in (hidden, cell)

entry objective [rows] [w] [b] [srows] [c] (main_params: [rows][w]f64) (extra_params: [3][b]f64)
                (state: [srows][b]f64) (sequence: [c][b]f64) : f64 =
  let layers = rows / 2
  let (_, total) =
    loop (state, total) = (state, 0f64) for t < c - 1 do
      let input = map2 (*) sequence[t] extra_params[0]
      let (state, out) =
        loop (state, x) = (state, input) for i < layers do
          let (hidden, cell) = layer main_params[2 * i] main_params[2 * i + 1] state[2 * i] state[2 * i + 1] x
          let state = state with [2 * i] = hidden
          let state = state with [2 * i + 1] = cell
          in (state, hidden)
      let y = map3 (\o weight bias -> o * weight + bias) out extra_params[1] extra_params[2]
      let normaliser = f64.log (2 + f64.sum (map f64.exp y))
      let score = f64.sum (map2 (\s v -> s * (v - normaliser)) sequence[t + 1] y)
      in (state, total + score)
  in -total / f64.i64 (b * (c - 1))
