//! The programs, for numbers of any library. Inputs and programs are those of the thesis on dual-numbers reverse AD (its benchmarks), and of
//! the problems GMM and LSTM of ADBench.

use crate::num::Num;

pub fn sum<T: Num>(mut xs: impl Iterator<Item = T>) -> T {
    let first = xs.next().expect("not empty");
    xs.fold(first, |a, b| a + b)
}

/// The first half of the list times the second.
pub fn dot<T: Num>(xs: &[T]) -> T {
    let (a, b) = xs.split_at(xs.len() / 2);
    T::dot(a, b)
}

/// The sum of a matrix (`n` by `n`, first in the list) times a vector.
pub fn sum_mat_vec<T: Num>(xs: &[T], n: usize) -> T {
    let (m, v) = xs.split_at(n * n);
    sum(m.chunks(n).map(|row| T::dot(row, v)))
}

fn dot3<T: Num>(a: [T; 3], b: [T; 3]) -> T {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

/// The vector `xs[..3]` turned by the quaternion `xs[3..]`.
pub fn rotate<T: Num>(xs: &[T]) -> [T; 3] {
    let (v, u, s) = ([xs[0], xs[1], xs[2]], [xs[3], xs[4], xs[5]], xs[6]);
    let cross = [u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]];
    let (a, b, c) = (dot3(u, v).times(2.0), s * s - dot3(u, u), s.times(2.0));
    std::array::from_fn(|i| a * u[i] + b * v[i] + c * cross[i])
}

fn dense<T: Num>(weights: &[T], bias: &[T], x: &[T]) -> Vec<T> {
    let relu = |z: T| if z.val() >= 0.0 { z } else { z.times(0.0) };
    weights.chunks(x.len()).zip(bias).map(|(row, b)| relu(T::dot(row, x) + *b)).collect()
}

/// 50 inputs, layers of 100 and 50, softmax, sum of the outputs.
pub fn neural<T: Num>(xs: &[T]) -> T {
    let (w1, xs) = xs.split_at(50 * 100);
    let (b1, xs) = xs.split_at(100);
    let (w2, xs) = xs.split_at(100 * 50);
    let (b2, x) = xs.split_at(50);
    let z = dense(w2, b2, &dense(w1, b1, x));
    let most = z.iter().fold(z[0], |m, z| if m.val() > z.val() { m } else { *z });
    let e: Vec<T> = z.iter().map(|z| (*z - most).exp()).collect();
    let total = sum(e.iter().copied());
    sum(e.iter().map(|e| *e / total))
}

/// The inputs of the network: weights, biases, input.
pub fn neural_inputs() -> Vec<f64> {
    let matrix = |inputs: usize, outputs: usize| {
        (0..outputs).flat_map(move |i| (0..inputs).map(move |j| ((i + j) as f64).sin()))
    };
    let vector = |n: usize| (0..n).map(|i| (0.41 * i as f64).sin());
    matrix(50, 100).chain(vector(100)).chain(matrix(100, 50)).chain(vector(50)).chain(vector(50)).collect()
}

/// A particle after `steps` steps: the product of its coordinates.
#[inline(always)]
pub fn particle<T: Num>(x: &[T], steps: usize) -> T {
    let dt = 0.05;
    let (mut px, mut py, mut vx, mut vy) = (x[0], x[1], x[2], x[3]);
    for _ in 0..steps {
        let ax = px.times(-0.5) + vx.times(-0.2);
        let ay = py.times(-0.5) + vy.times(-0.2);
        (px, py, vx, vy) = (px + vx.times(dt), py + vy.times(dt), vx + ax.times(dt), vy + ay.times(dt));
    }
    px * py
}

pub fn particles<T: Num>(xs: &[T]) -> T {
    sum(xs.chunks(4).map(|x| particle(x, 1000)))
}

pub fn particles_inputs() -> Vec<f64> {
    (1..=4).flat_map(|i| [0.5 * f64::from(i), 0.1, 1.0, 1.0]).collect()
}

/// Numbers between -1 and 1 (SplitMix64).
pub fn random(seed: u64, n: usize) -> Vec<f64> {
    let mut state = seed;
    let next = |_| {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) as f64 / 2f64.powi(63) - 1.0
    };
    (0..n).map(next).collect()
}

fn log_sum_exp<T: Num>(xs: &[T]) -> T {
    let top = xs.iter().fold(f64::MIN, |m, x| m.max(x.val()));
    sum(xs.iter().map(|x| x.plus(-top).exp())).ln().plus(top)
}

/// The log posterior of a mixture of `k` Gaussians in `d` dimensions, without its constants: `xs` holds alpha, mu, q and l.
pub fn gmm<T: Num>(xs: &[T], points: &[f64], d: usize, k: usize) -> T {
    let t = d * (d - 1) / 2;
    let (alpha, xs) = xs.split_at(k);
    let (mu, xs) = xs.split_at(k * d);
    let (q, l) = xs.split_at(k * d);
    let (gamma, m) = (1.0, 0.0);
    let diagonals: Vec<T> = q.iter().map(|q| q.exp()).collect();
    let determinants: Vec<T> = q.chunks(d).map(|q| sum(q.iter().copied())).collect();
    let n = points.len() / d;
    let point = |p: &[f64]| {
        let terms: Vec<T> = (0..k)
            .map(|c| {
                let (l, mu) = (&l[c * t..][..t], &mu[c * d..][..d]);
                let centred: Vec<T> = mu.iter().zip(p).map(|(m, p)| (-*m).plus(*p)).collect();
                let squares = (0..d).map(|i| {
                    let mut y = diagonals[c * d + i] * centred[i];
                    for j in 0..i {
                        y = y + l[j * (2 * d - j - 1) / 2 + i - j - 1] * centred[j];
                    }
                    y * y
                });
                alpha[c] + determinants[c] - sum(squares).times(0.5)
            })
            .collect();
        log_sum_exp(&terms)
    };
    let likelihood = sum(points.chunks(d).map(point)) - log_sum_exp(alpha).times(n as f64);
    let square = |x: &T| *x * *x;
    let frobenius = sum(diagonals.iter().map(square)) + sum(l.iter().map(square));
    likelihood - frobenius.times(0.5 * gamma * gamma) + sum(determinants.iter().copied()).times(m)
}

fn sigmoid<T: Num>(x: T) -> T {
    (-x).exp().plus(1.0).recip()
}

/// The loss of a character model with two layers of `b` cells: `xs` holds the main parameters (rows of weights and of biases for each
/// layer, `4 b` each) and the three extra rows.
pub fn lstm<T: Num>(xs: &[T], state: &[f64], sequence: &[f64], b: usize) -> T {
    let (main, extra) = xs.split_at(2 * 2 * 4 * b);
    let zero = xs[0].times(0.0);
    let mut state: Vec<Vec<T>> = state.chunks(b).map(|s| s.iter().map(|s| zero.plus(*s)).collect()).collect();
    let steps = sequence.len() / b;
    let mut total = zero;
    for t in 0..steps - 1 {
        let mut x: Vec<T> = (0..b).map(|j| extra[j].times(sequence[t * b + j])).collect();
        for i in 0..2 {
            let (weight, bias) = (&main[2 * i * 4 * b..][..4 * b], &main[(2 * i + 1) * 4 * b..][..4 * b]);
            let gate = |k: usize, v: &[T], j: usize| v[j] * weight[k * b + j] + bias[k * b + j];
            let (mut hidden, mut cell) = (Vec::with_capacity(b), Vec::with_capacity(b));
            for j in 0..b {
                let forget = sigmoid(gate(0, &x, j));
                let ingate = sigmoid(gate(1, &state[2 * i], j));
                let outgate = sigmoid(gate(2, &x, j));
                let change = gate(3, &state[2 * i], j).tanh();
                let c = state[2 * i + 1][j] * forget + ingate * change;
                hidden.push(outgate * c.tanh());
                cell.push(c);
            }
            x.clone_from(&hidden);
            state[2 * i] = hidden;
            state[2 * i + 1] = cell;
        }
        let y: Vec<T> = (0..b).map(|j| x[j] * extra[b + j] + extra[2 * b + j]).collect();
        let normaliser = sum(y.iter().map(|y| y.exp())).plus(2.0).ln();
        total = total + sum((0..b).map(|j| (y[j] - normaliser).times(sequence[(t + 1) * b + j])));
    }
    total.times(-1.0 / (b * (steps - 1)) as f64)
}
