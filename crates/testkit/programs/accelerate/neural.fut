-- The network has three dense layers. Its weights are picked from a list.
def pick [k] (wd: [k]f64) (seed: i64) (i: i64) (j: i64) : f64 =
  wd[(i + j + j * j * seed) ** (1 + seed) % k]

def times [n] [m] (w: [n][m]f64) (v: [m]f64) : [n]f64 =
  map (\row -> f64.sum (map2 (*) row v)) w

def sigmoid (x: f64) : f64 = 1 / (1 + f64.exp (-x))

entry main [n] [k] (len1: i64) (len2: i64) (input: [n]f64) (wd: [k]f64) : f64 =
  let w1 = tabulate_2d len1 n (pick wd 1)
  let w2 = tabulate_2d len2 len1 (pick wd 2)
  let w3 = tabulate len2 (pick wd 3 0)
  let hidden1 = map sigmoid (times w1 input)
  let hidden2 = map sigmoid (times w2 hidden1)
  in sigmoid (f64.sum (map2 (*) w3 hidden2))
