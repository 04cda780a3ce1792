-- The log posterior of a Gaussian mixture, as the thesis on reverse AD for Accelerate writes it (App. B.1 and C.1).
--
-- `icf` holds a triangular matrix of each component: d logarithms of its diagonal, then its part below the diagonal,
-- column by column. That part is taken out of it in two ways, which give the same numbers:
--   generate  each element is read where it stands, or is zero
--   gather    a zero stands before the elements, and each place of the matrix reads one number
-- A third form is ours: `apart` is `gather` with matrices that are made once for each component, not for each point.
-- What does not depend on the parameters is computed apart, as there.

def sum_of_squares [n] (xs: [n]f64) : f64 = f64.sum (map (\x -> x * x) xs)

def logsumexp [n] (xs: [n]f64) : f64 =
  let top = f64.maximum xs
  in f64.log (f64.sum (map (\x -> f64.exp (x - top)) xs)) + top

-- Where the element in row i and column j stands, below the diagonal.
def place (d: i64) (i: i64) (j: i64) : i64 = d * (d - 1) / 2 - (d - 1 - j) * (d - j) / 2 + i - j - 1

def by_generate [w] (d: i64) (icf: [w]f64) : [d][d]f64 =
  tabulate_2d d d (\i j -> if i > j then icf[d + place d i j] else 0)

def by_gather [w] (d: i64) (icf: [w]f64) : [d][d]f64 =
  let padded = tabulate (w - d + 1) (\j -> (if j == 0 then 0 else 1) * icf[d - 1 + j])
  in tabulate_2d d d (\i j -> padded[if i > j then place d i j + 1 else 0])

-- The part of a component with matrix `lower` in the sum of a point.
def component [d] (p: [d]f64) (a: f64) (m: [d]f64) (s: f64) (diagonal: [d]f64) (lower: [d][d]f64) : f64 =
  let shifted = map2 (-) p m
  let products = map (\row -> f64.sum (map2 (*) row shifted)) lower
  in a + s - 0.5 * sum_of_squares (map2 (+) (map2 (*) diagonal shifted) products)

def diagonals [k] [w] (d: i64) (icf: [k][w]f64) : [k][d]f64 = map (\row -> tabulate d (\i -> f64.exp row[i])) icf
def log_dets [k] [w] (d: i64) (icf: [k][w]f64) : [k]f64 = map (\row -> f64.sum (tabulate d (\i -> row[i]))) icf

-- The sum over points, less n times that over components. Arrays of the thesis have four dimensions here: points,
-- components, rows and columns. So each point has its own matrices, and fusion decides whether they are in memory.
def likelihood [n] [d] [k] [w] (below: [w]f64 -> [d][d]f64) (x: [n][d]f64)
                               (alpha: [k]f64, mu: [k][d]f64, icf: [k][w]f64) : f64 =
  let (sums, qs) = (log_dets d icf, diagonals d icf)
  let point (p: [d]f64) : f64 =
    logsumexp (map5 (\a m s q row -> component p a m s q (below row)) alpha mu sums qs icf)
  in f64.sum (map point x) - f64.i64 n * logsumexp alpha

-- The same with matrices that are made before.
def likelihood_apart [n] [d] [k] [w] (x: [n][d]f64) (alpha: [k]f64, mu: [k][d]f64, icf: [k][w]f64) : f64 =
  let (sums, qs, lowers) = (log_dets d icf, diagonals d icf, map (by_gather d) icf)
  let point (p: [d]f64) : f64 = logsumexp (map5 (component p) alpha mu sums qs lowers)
  in f64.sum (map point x) - f64.i64 n * logsumexp alpha

-- The prior on the precisions.
def wishart [k] [w] (d: i64) (gamma: f64) (m: i64) (icf: [k][w]f64) : f64 =
  let component (row: [w]f64) : f64 =
    let diagonal = f64.sum (tabulate d (\i -> f64.exp row[i] * f64.exp row[i]))
    let rest = f64.sum (tabulate (w - d) (\i -> row[d + i] * row[d + i]))
    in 0.5 * gamma * gamma * (diagonal + rest) - f64.i64 m * f64.sum (tabulate d (\i -> row[i]))
  in f64.sum (map component icf)

-- What is subtracted from both.
entry constant (n: i64) (d: i64) (k: i64) (gamma: f64) (m: i64) : f64 =
  let df = f64.i64 (d + m + 1)
  let gammas = f64.sum (map (\i -> f64.lgamma (0.5 * df - 0.5 * f64.i64 i)) (iota d))
  let log_gamma = 0.25 * f64.i64 (d * (d - 1)) * f64.log f64.pi + gammas
  in 0.5 * f64.i64 (n * d) * f64.log (2 * f64.pi)
     + f64.i64 k * (df * f64.i64 d * (f64.log gamma - 0.5 * f64.log 2) - log_gamma)

type parameters [k] [d] [w] = ([k]f64, [k][d]f64, [k][w]f64)

def by_generates [n] [d] [k] [w] (x: [n][d]f64) (gamma: f64) (m: i64) (p: parameters [k] [d] [w]) : f64 =
  likelihood (by_generate d) x p + wishart d gamma m p.2
def by_gathers [n] [d] [k] [w] (x: [n][d]f64) (gamma: f64) (m: i64) (p: parameters [k] [d] [w]) : f64 =
  likelihood (by_gather d) x p + wishart d gamma m p.2
def by_matrices [n] [d] [k] [w] (x: [n][d]f64) (gamma: f64) (m: i64) (p: parameters [k] [d] [w]) : f64 =
  likelihood_apart x p + wishart d gamma m p.2

entry generate [n] [d] [k] [w] (x: [n][d]f64) (gamma: f64) (m: i64) (constant: f64)
                          (alpha: [k]f64) (mu: [k][d]f64) (icf: [k][w]f64) : f64 =
  by_generates x gamma m (alpha, mu, icf) - constant
entry generate_gradient [n] [d] [k] [w] (x: [n][d]f64) (gamma: f64) (m: i64)
                   (alpha: [k]f64) (mu: [k][d]f64) (icf: [k][w]f64) : parameters [k] [d] [w] =
  vjp (by_generates x gamma m) (alpha, mu, icf) 1

entry gather [n] [d] [k] [w] (x: [n][d]f64) (gamma: f64) (m: i64) (constant: f64)
                          (alpha: [k]f64) (mu: [k][d]f64) (icf: [k][w]f64) : f64 =
  by_gathers x gamma m (alpha, mu, icf) - constant
entry gather_gradient [n] [d] [k] [w] (x: [n][d]f64) (gamma: f64) (m: i64)
                   (alpha: [k]f64) (mu: [k][d]f64) (icf: [k][w]f64) : parameters [k] [d] [w] =
  vjp (by_gathers x gamma m) (alpha, mu, icf) 1

entry apart [n] [d] [k] [w] (x: [n][d]f64) (gamma: f64) (m: i64) (constant: f64)
                          (alpha: [k]f64) (mu: [k][d]f64) (icf: [k][w]f64) : f64 =
  by_matrices x gamma m (alpha, mu, icf) - constant
entry apart_gradient [n] [d] [k] [w] (x: [n][d]f64) (gamma: f64) (m: i64)
                   (alpha: [k]f64) (mu: [k][d]f64) (icf: [k][w]f64) : parameters [k] [d] [w] =
  vjp (by_matrices x gamma m) (alpha, mu, icf) 1
