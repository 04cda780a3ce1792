//! GMM, BA and LSTM of ADBench.

use crate::golden;
use crate::problem::{Numbers, Problem, Reference, all_close, close, norm};
use pullback_core::Value;
use pullback_driver::Kind;

pub(crate) const TESTS: &[(&str, fn())] = &[
    ("adbench::gmm::test", || gmm("gmm/test.txt", "gmm gmm/test.txt")),
    ("adbench::gmm::1k_d2_K5", || gmm("gmm/1k_d2_K5.txt", "gmm gmm/1k/gmm_d2_K5.txt")),
    ("adbench::gmm::1k_d10_K5", || gmm("gmm/1k_d10_K5.txt", "gmm gmm/1k/gmm_d10_K5.txt")),
    ("gradbench::gmm::test_data", gradbench_gmm),
    ("adbench::ba::test_objective", ba_objective),
    ("adbench::ba::test_jacobian", ba_jacobian),
    ("adbench::lstm::50_characters_against_dual_numbers", lstm_against_dual_numbers),
    ("gradbench::lstm::20_characters", lstm_golden),
];

/// The constant of the suite's programs.
#[allow(clippy::approx_constant, reason = "the suite's programs use exactly these digits")]
const ROUNDED_PI: f64 = 3.14159265359;

struct Gmm {
    d: usize,
    k: usize,
    x: Value,
    gamma: f64,
    m: i64,
    alpha: Value,
    mu: Value,
    q: Value,
    l: Value,
}

fn read_gmm(file: &str) -> Gmm {
    let mut f = Numbers::read(file);
    let (d, k, n) = (f.size(), f.size(), f.size());
    let t = d * (d - 1) / 2;
    let alpha = Value::f64s(&f.take(k));
    let mu = Value::f64_array(&[k, d], &f.take(k * d));
    let (mut q, mut l) = (Vec::new(), Vec::new());
    for _ in 0..k {
        q.extend(f.take(d));
        l.extend(f.take(t));
    }
    let x = Value::f64_array(&[n, d], &f.take(n * d));
    let (gamma, m) = (f.one(), f.one() as i64);
    let (q, l) = (Value::f64_array(&[k, d], &q), Value::f64_array(&[k, t], &l));
    Gmm { d, k, x, gamma, m, alpha, mu, q, l }
}

impl Gmm {
    fn args(&self, gamma: f64, m: i64) -> Vec<Value> {
        let params = [&self.alpha, &self.mu, &self.q, &self.l].map(Value::clone);
        [self.x.clone(), Value::f64(gamma), Value::i64(m)].into_iter().chain(params).collect()
    }
}

/// The order of core parameters is that of the entry's leaves: find each part by its path.
fn parts(problem: &Problem, gradient: &[Value]) -> [Vec<f64>; 4] {
    let params = problem.entry.parameters.iter().filter(|l| l.path.starts_with("params."));
    let named: Vec<(&str, Vec<f64>)> =
        params.map(|l| &l.path[7..]).zip(gradient.iter().map(Value::floats)).collect();
    ["alpha", "mu", "q", "l"].map(|n| named.iter().find(|p| p.0 == n).expect(n).1.clone())
}

/// Arguments in the order of the entry's leaves.
fn ordered(problem: &Problem, before: &[Value], g: &Gmm) -> Vec<Value> {
    let mut args = before.to_vec();
    for leaf in problem.entry.parameters.iter().filter(|l| l.path.starts_with("params.")) {
        args.push(match &leaf.path[7..] {
            "alpha" => g.alpha.clone(),
            "mu" => g.mu.clone(),
            "q" => g.q.clone(),
            "l" => g.l.clone(),
            other => panic!("unexpected field {other}"),
        });
    }
    args
}

fn gmm(file: &str, header: &str) {
    let g = read_gmm(file);
    let reference = Reference::find(header);
    let problem = Problem::new("examples/gmm.fut", "objective_adbench");
    let before = [Value::f64(ROUNDED_PI), g.x.clone(), Value::f64(g.gamma), Value::i64(g.m)];
    let (value, gradient) = problem.gradient("params", &ordered(&problem, &before, &g));
    close("objective", value, reference.objective[0]);
    let [alpha, mu, q, l] = parts(&problem, &gradient);
    let t = g.d * (g.d - 1) / 2;
    let mut packed = [alpha, mu].concat();
    for k in 0..g.k {
        packed.extend(&q[k * g.d..(k + 1) * g.d]);
        packed.extend(&l[k * t..(k + 1) * t]);
    }
    reference.check_gradient(&packed);
}

/// Values of GradBench's hand-written C++ program.
fn gradbench_gmm() {
    let g = read_gmm("gmm/test.txt");
    let problem = Problem::new("examples/gmm.fut", "objective");
    let run = |gamma: f64, m: i64| {
        let before = g.args(gamma, m)[..3].to_vec();
        let (value, gradient) = problem.gradient("params", &ordered(&problem, &before, &g));
        (value, parts(&problem, &gradient))
    };
    let (value, [alpha, mu, q, l]) = run(1.0, 0);
    close("objective", value, golden::gmm::OBJECTIVE);
    all_close("alpha", &alpha, &golden::gmm::ALPHA);
    all_close("mu", &mu, &golden::gmm::MU);
    all_close("q", &q, &golden::gmm::Q);
    all_close("l", &l, &golden::gmm::L);
    let (value, [_, _, q, l]) = run(0.7, 3);
    close("objective", value, golden::gmm::PRIOR_OBJECTIVE);
    let diagonals = [
        0.7706558776395339,
        2.841459584603791,
        3.000717661013108,
        -0.1709954449828343,
        2.638851905943929,
        3.830846535895078,
    ];
    all_close("q", &q, &diagonals);
    all_close("l", &l, &golden::gmm::PRIOR_L);
}

/// The test problem, expanded as the suite does: observation i sees point i mod m with camera i mod n.
fn ba_args() -> (Vec<Value>, usize) {
    let mut f = Numbers::read("ba/test.txt");
    let (n, m, p) = (f.size(), f.size(), f.size());
    let (cam, x, w, feat) = (f.take(11), f.take(3), f.one(), f.take(2));
    let cams = Value::f64_array(&[n, 11], &cam.repeat(n));
    let points = Value::f64_array(&[m, 3], &x.repeat(m));
    let feats = Value::f64_array(&[p, 2], &feat.repeat(p));
    let obs: Vec<i64> = (0..p).flat_map(|i| [(i % n) as i64, (i % m) as i64]).collect();
    let Value::Array(flat) = Value::i64s(&obs) else { panic!("an array") };
    let obs = Value::Array(pullback_core::Array { shape: vec![p, 2], ..flat });
    (vec![cams, points, Value::f64s(&vec![w; p]), feats, obs], p)
}

fn ba_objective() {
    let (args, p) = ba_args();
    let results = Problem::new("examples/ba.fut", "objective").run(&args);
    let (errors, weights) = (results[0].floats(), results[1].floats());
    for i in 0..p {
        // The residuals are differences of numbers near 500: their own relative error is larger.
        assert!((errors[2 * i] + 0.26904884923523686).abs() < 1e-10, "{}", errors[2 * i]);
        assert!((errors[2 * i + 1] - 0.25994479267793746).abs() < 1e-10, "{}", errors[2 * i + 1]);
        close("weight error", weights[i], golden::ba::WEIGHT_ERROR);
    }
}

fn ba_jacobian() {
    let (args, _) = ba_args();
    let results = Problem::new("examples/ba.fut", "jacobian").run(&args);
    let values = [results[0].floats(), results[1].floats()].concat();
    Reference::find("ba ba/test.txt").check_gradient(&values);
}

fn read_lstm(characters: usize) -> Vec<Value> {
    let mut f = Numbers::read("lstm/lstm_l2_c1024.txt");
    let (l, c, b) = (f.size(), f.size(), f.size());
    let main = Value::f64_array(&[2 * l, 4 * b], &f.take(8 * l * b));
    let extra = Value::f64_array(&[3, b], &f.take(3 * b));
    let state = Value::f64_array(&[2 * l, b], &f.take(2 * l * b));
    let sequence = f.take(c * b);
    vec![main, extra, state, Value::f64_array(&[characters, b], &sequence[..characters * b])]
}

/// Values of GradBench's hand-written C++ program on the first 20 characters.
fn lstm_golden() {
    let problem = Problem::new("examples/lstm.fut", "objective");
    let (value, gradient) = problem.gradient("main_params,extra_params", &read_lstm(20));
    close("objective", value, golden::lstm::OBJECTIVE);
    let g: Vec<f64> = gradient.iter().flat_map(Value::floats).collect();
    assert_eq!(g.len(), 266);
    close("norm", norm(&g), golden::lstm::NORM);
    assert!(g[..7].iter().all(|x| *x == 0.0), "the first seven bits of these characters are always zero");
    let next = [
        -1.525972213178843e-05,
        -3.118391873656307e-05,
        4.463413978489059e-06,
        -6.531852871324591e-06,
        -7.395225704041649e-07,
        -5.235481110036936e-06,
        -2.795121658085942e-07,
    ];
    all_close("entries 7 to 13", &g[7..14], &next);
    close("last", g[265], golden::lstm::LAST);
}

fn lstm_against_dual_numbers() {
    let problem = Problem::new("examples/lstm.fut", "objective");
    let args = read_lstm(50);
    let (_, gradient) = problem.gradient("main_params,extra_params", &args);
    let gradient: Vec<f64> = gradient.iter().flat_map(Value::floats).collect();
    let ready = problem.session.primal(&problem.entry).unwrap_or_else(|d| panic!("{}", d.message));
    let code = pullback_interp::core::Compiled::new(&ready.program);
    let floats: usize = args.iter().map(|v| v.floats().len()).sum();
    for k in 0..4u64 {
        // Directions with entries in [-1, 1) by a multiplicative hash of the position.
        let direction: Vec<f64> = (0..floats as u64)
            .map(|i| {
                if i < 266 {
                    ((i + 1 + 1000 * k).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as f64 / (1 << 23) as f64
                        - 1.0
                } else {
                    0.0
                }
            })
            .collect();
        let options = pullback_interp::core::Options::default();
        let oracle = pullback_interp::dual::directional(&code, ready.fun, &args, &direction, &options);
        let oracle = oracle.unwrap_or_else(|e| panic!("{e}")).tangent[0];
        let ours: f64 = gradient.iter().zip(&direction).map(|(g, d)| g * d).sum();
        assert!((ours - oracle).abs() <= 1e-12 * norm(&gradient) * norm(&direction), "{ours} {oracle}");
    }
    // Forward mode agrees as well.
    let tangents: Vec<Value> = args[..2].to_vec();
    let dots = problem.derivative(Kind::Jvp, "main_params,extra_params", &args, &tangents);
    let ours: f64 = gradient.iter().zip(args[..2].iter().flat_map(Value::floats)).map(|(g, d)| g * d).sum();
    close("jvp", dots[1].floats()[0], ours);
}
