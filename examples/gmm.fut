-- Gaussian mixture model: the log posterior of parameters given points, and steps of gradient ascent.
--
-- Every component k has a weight alpha_k (before softmax), a mean mu_k and an inverse Cholesky factor Q_k of its
-- covariance: lower triangular, diagonal exp(q_k), the part below the diagonal in l_k, column by column.
-- The prior on the precision is a Wishart distribution with parameters gamma and m. Formula: the GMM problem of GradBench.

def logsumexp [n] (xs: [n]f64) : f64 =
  let top = f64.maximum xs
  in top + f64.log (f64.sum (map (\x -> f64.exp (x - top)) xs))

def sum_of_squares [n] (xs: [n]f64) : f64 = f64.sum (map (\x -> x * x) xs)

-- The lower triangular matrix Q of one component. Column j of its strictly lower part starts at j(2d - j - 1)/2 in l.
def unpack [d] [t] (q: [d]f64) (l: [t]f64) : [d][d]f64 =
  tabulate_2d d d (\i j -> if i == j then f64.exp q[i]
                           else if i > j then l[j * (2 * d - j - 1) / 2 + i - j - 1]
                           else 0)

-- A lower triangular matrix times a vector.
def triangular_matvec [d] (a: [d][d]f64) (v: [d]f64) : [d]f64 =
  tabulate d (\i -> f64.sum (map (\j -> if j <= i then a[i, j] * v[j] else 0) (iota d)))

def log_likelihood [n] [d] [k] [t] (pi: f64) (x: [n][d]f64)
                   (alpha: [k]f64) (mu: [k][d]f64) (q: [k][d]f64) (l: [k][t]f64) : f64 =
  let factors = map2 unpack q l
  let log_dets = map f64.sum q
  let point (p: [d]f64) : f64 =
    logsumexp (map4 (\a m s f -> a + s - 0.5 * sum_of_squares (triangular_matvec f (map2 (-) p m)))
                    alpha mu log_dets factors)
  let constant = 0.5 * f64.i64 (n * d) * f64.log (2 * pi)
  in f64.sum (map point x) - f64.i64 n * logsumexp alpha - constant

-- Logarithm of the multivariate gamma function.
def log_gamma_d (pi: f64) (d: i64) (a: f64) : f64 =
  let terms = map (\j -> f64.lgamma (a - 0.5 * f64.i64 j)) (iota d)
  in 0.25 * f64.i64 (d * (d - 1)) * f64.log pi + f64.sum terms

-- Minus the logarithm of the prior.
def minus_log_prior [d] [k] [t] (pi: f64) (gamma: f64) (m: i64) (q: [k][d]f64) (l: [k][t]f64) : f64 =
  let df = f64.i64 (d + m + 1)
  let c = df * f64.i64 d * (f64.log gamma - 0.5 * f64.log 2) - log_gamma_d pi d (0.5 * df)
  let component (qk: [d]f64) (lk: [t]f64) : f64 =
    let frobenius = sum_of_squares (map f64.exp qk) + sum_of_squares lk
    in 0.5 * gamma * gamma * frobenius - f64.i64 m * f64.sum qk
  in f64.sum (map2 component q l) - f64.i64 k * c

type params [d] [k] [t] = {alpha: [k]f64, mu: [k][d]f64, q: [k][d]f64, l: [k][t]f64}

-- The log posterior.
entry objective [n] [d] [k] [t] (x: [n][d]f64) (gamma: f64) (m: i64) (params: params [d] [k] [t]) : f64 =
  log_likelihood f64.pi x params.alpha params.mu params.q params.l
  - minus_log_prior f64.pi gamma m params.q params.l

-- The variant of the ADBench suite: the prior with the other sign, and pi as an input, because that suite rounds it.
entry objective_adbench [n] [d] [k] [t] (pi: f64) (x: [n][d]f64) (gamma: f64) (m: i64)
                        (params: params [d] [k] [t]) : f64 =
  log_likelihood pi x params.alpha params.mu params.q params.l
  + minus_log_prior pi gamma m params.q params.l

-- Gradient ascent: the objective before each of the steps and after the last, and the parameters reached.
entry fit [n] [d] [k] [t] (x: [n][d]f64) (gamma: f64) (m: i64) (start: params [d] [k] [t]) (rate: f64) (steps: i64)
          : ([steps + 1]f64, params [d] [k] [t]) =
  let f (p: params [d] [k] [t]) = objective x gamma m p
  let history = replicate (steps + 1) 0f64
  let (history, p) =
    loop (history, p) = (history, start) for i < steps do
      let (value, g) = vjp2 f p 1
      let step (a: f64) (b: f64) = a + rate * b
      in (history with [i] = value,
          {alpha = map2 step p.alpha g.alpha, mu = map2 (map2 step) p.mu g.mu,
           q = map2 (map2 step) p.q g.q, l = map2 (map2 step) p.l g.l})
  in (history with [steps] = f p, p)
