-- GradBench's gmm: the log posterior of a Gaussian mixture and its gradient. `l` has the elements below the diagonal.
import "../../examples/gmm"

def log_posterior [n] [d] [k] [t] (x: [n][d]f64) (gamma: f64) (m: i64) (p: params [d] [k] [t]) : f64 =
  assert (2 * t == d * (d - 1)) (objective x gamma m p)

entry objective [n] [d] [k] [t] (x: [n][d]f64) (gamma: f64) (m: i64)
                (alpha: [k]f64) (mu: [k][d]f64) (q: [k][d]f64) (l: [k][t]f64) : f64 =
  log_posterior x gamma m {alpha, mu, q, l}

entry jacobian [n] [d] [k] [t] (x: [n][d]f64) (gamma: f64) (m: i64)
               (alpha: [k]f64) (mu: [k][d]f64) (q: [k][d]f64) (l: [k][t]f64) : params [d] [k] [t] =
  vjp (log_posterior x gamma m) {alpha, mu, q, l} 1
