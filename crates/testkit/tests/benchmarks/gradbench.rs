//! `pullback gradbench` on the suite's problems: messages in, answers out. Golden numbers are those of the suite's own C++ programs, of
//! constants in it, or of an independent numpy program (closed forms); the tolerance is 1e-10 where the suite has 1e-4.

#![allow(clippy::excessive_precision, reason = "golden numbers stand as their programs printed them")]

use crate::golden;
use crate::problem::{Numbers, Reference, all_close, close, norm};
use pullback_driver::{Backend, Settings, backend};
use pullback_gradbench::Tool;
use pullback_interp::core::Options;
use pullback_testkit::problems::uniform as u;
use serde_json::{Value as Json, json};

pub(crate) const TESTS: &[(&str, fn())] = &[
    ("gradbench tool::hello", hello),
    ("gradbench tool::ba", ba),
    ("gradbench tool::kmeans", kmeans),
    ("gradbench tool::llsq", llsq),
    ("gradbench tool::lse", lse),
    ("gradbench tool::ode", ode),
    ("gradbench tool::det", det),
    ("gradbench tool::particle", particle),
    ("gradbench tool::saddle", saddle),
    ("gradbench tool::gmm", gmm),
];

/// Those that read files.
pub(crate) const FILE_TESTS: &[(&str, fn())] = &[
    ("gradbench tool::gmm of ADBench's files", gmm_files),
    ("gradbench tool::lstm", lstm),
    ("gradbench tool::ht", ht),
];

/// The tool on each executor that there is, machine code last, with one problem defined.
struct Defined {
    tools: Vec<Tool<'static>>,
    module: &'static str,
}

impl Defined {
    fn new(module: &'static str) -> Defined {
        let has_native = backend::libraries().iter().any(|l| l.usable.is_ok());
        if !has_native {
            eprintln!("skipped: no LLVM");
        }
        let executors = [Backend::Vm].into_iter().chain(has_native.then_some(Backend::Llvm));
        let tool = |backend| {
            let mut tool = Tool::new(Settings { backend, ..Settings::default() }, Options::default());
            let message = json!({"id": 1, "kind": "define", "module": module});
            let reply: Json =
                serde_json::from_str(&tool.reply(message.to_string().as_bytes())).expect("JSON");
            assert_eq!((&reply["id"], &reply["success"]), (&json!(1), &json!(true)), "{reply}");
            tool
        };
        Defined { tools: executors.map(tool).collect(), module }
    }
    /// What the last executor gives; the others give the same numbers up to rounding.
    fn evaluate(&mut self, function: &str, input: &Json) -> Json {
        let message =
            json!({"id": 7, "kind": "evaluate", "module": self.module, "function": function, "input": input});
        let message = message.to_string();
        let mut outputs = self.tools.iter_mut().map(|tool| {
            let line = tool.reply(message.as_bytes());
            assert!(!line.contains('\n'));
            let mut reply: Json = serde_json::from_str(&line).expect("JSON");
            assert_eq!((&reply["id"], &reply["success"]), (&json!(7), &json!(true)), "{reply}");
            let runs = reply["timings"].as_array().expect("a list").iter();
            let evaluations = runs.filter(|t| t["name"] == "evaluate" && t["nanoseconds"].is_u64()).count();
            assert_eq!(evaluations as u64, input.get("min_runs").map_or(1, |n| n.as_u64().expect("a count")));
            reply["output"].take()
        });
        let first = outputs.next().expect("an executor");
        outputs.fold(first, |before, now| {
            let (xs, ys) = (numbers(&before), numbers(&now));
            assert_eq!(xs.len(), ys.len(), "{} {function}", self.module);
            for (x, y) in xs.iter().zip(&ys) {
                let most = 1e-10 * y.abs().max(1.0);
                assert!(
                    (x - y).abs() <= most,
                    "{} {function}: {x} on the vm, {y} as machine code",
                    self.module
                );
            }
            now
        })
    }
    fn numbers(&mut self, function: &str, input: &Json) -> Vec<f64> {
        numbers(&self.evaluate(function, input))
    }
}

/// All numbers of a value, in order.
fn numbers(json: &Json) -> Vec<f64> {
    match json {
        Json::Number(n) => vec![n.as_f64().expect("a float")],
        Json::Array(items) => items.iter().flat_map(numbers).collect(),
        Json::Object(fields) => fields.values().flat_map(numbers).collect(),
        other => panic!("{other} is no number"),
    }
}

fn rows(xs: &[f64], width: usize) -> Vec<Vec<f64>> {
    xs.chunks(width).map(<[f64]>::to_vec).collect()
}

fn hello() {
    let mut tool = Defined::new("hello");
    let mut x = json!(1.0);
    let mut seen = Vec::new();
    for _ in 0..4 {
        let y = tool.evaluate("square", &x);
        x = tool.evaluate("double", &y);
        seen.extend([numbers(&y)[0], numbers(&x)[0]]);
    }
    assert_eq!(seen, golden::hello::SEEN);
}

fn ba() {
    let (n, m, p) = (49, 7776, 31843);
    let input = json!({"n": n, "m": m, "p": p, "min_runs": 2, "min_seconds": 0,
        "cam": [-0.758453, -1.109613, -0.845551, 34.556073, 39.676747, 53.881673, 419.194514, 5.864426, -8.518870,
                0.087812, 0.002739],
        "x": [7.203245, 0.001144, 3.023326], "w": 0.417022, "feat": [271.760969, 834.209256]});
    let mut tool = Defined::new("ba");
    let output = tool.evaluate("objective", &input);
    let error = &output["reproj_error"];
    // Differences of numbers near 800: their own relative error is larger.
    let absolute = |x: &Json, y: f64| assert!((numbers(x)[0] - y).abs() < 1e-10, "{x} is not {y}");
    absolute(&error["elements"][0], 0.10133583791448515);
    absolute(&error["elements"][1], -0.06896776592448106);
    close("weight error", numbers(&output["w_err"]["element"])[0], golden::ba::WEIGHT_ERROR);
    assert_eq!((&error["repeated"], &output["w_err"]["repeated"]), (&json!(p), &json!(p)));

    let output = tool.evaluate("jacobian", &input);
    let offsets: Vec<i64> = (0..30).map(|i| 15 * i).chain([31 * p]).collect();
    assert_eq!(output["rows"], json!(offsets));
    let columns: Vec<i64> = (0..11).chain([539, 540, 541, 23867]).collect();
    let columns: Vec<i64> = columns.iter().chain(&columns).copied().chain([55709]).collect();
    assert_eq!(output["cols"], json!(columns));
    let expected = [
        -461.4463210015993,
        178.8679280144455,
        -19.42391647220625,
        -3.061598342041032,
        6.392457556226442,
        -3.340282281299017,
        0.2647602492070316,
        0.417022,
        0.0,
        243.62824566083,
        676.4867782658688,
        3.061598342041032,
        -6.392457556226442,
        3.340282281299017,
        0.2429987816337871,
        -803.7436233648792,
        -309.5954175234488,
        604.7802846625028,
        -15.04962817034055,
        6.248486312079824,
        3.219479951604924,
        0.8381960857313306,
        0.0,
        0.417022,
        771.2949451366334,
        2141.668061159955,
        15.04962817034055,
        -6.248486312079824,
        -3.219479951604924,
        -0.1653816007896012,
        -0.834044,
    ];
    all_close("values", &numbers(&output["vals"]), &expected);
    for (v, e) in numbers(&output["vals"]).iter().zip(expected) {
        // The derivative in the weight is a difference, as above.
        assert!((v - e).abs() <= 1e-12 * e.abs().max(10.0), "{v} is not {e}");
    }
}

fn kmeans() {
    let points = u(101, 300);
    let input = json!({"points": rows(&points, 3), "centroids": rows(&points[285..], 3), "min_runs": 1, "min_seconds": 0});
    let mut tool = Defined::new("kmeans");
    close("cost", tool.numbers("cost", &input)[0], golden::kmeans::COST);
    all_close("direction", &tool.numbers("dir", &input), &golden::kmeans::DIRECTION);
    assert_eq!(tool.evaluate("dir", &input).as_array().map(Vec::len), Some(5), "a row for each centroid");
}

fn llsq() {
    let mut tool = Defined::new("llsq");
    let x = u(102, 8);
    let cases: [(i64, f64, [f64; 8]); 2] = [
        (16, golden::llsq::VALUE_16, golden::llsq::GRADIENT_16),
        (17, golden::llsq::VALUE_17, golden::llsq::GRADIENT_17),
    ];
    for (n, value, gradient) in cases {
        let input = json!({"x": x, "n": n, "min_runs": 1});
        close("value", tool.numbers("primal", &input)[0], value);
        all_close("gradient", &tool.numbers("gradient", &input), &gradient);
    }
    let input = json!({"x": u(102, 128), "n": 16392});
    close("value", tool.numbers("primal", &input)[0], 147862.18365788303);
    close("norm", norm(&tool.numbers("gradient", &input)), 66475.9610494207);
}

/// Most entries are near 1 / n, which a tolerance of 1e-4 takes for zero: they are compared one by one, relative to themselves.
fn lse() {
    let mut tool = Defined::new("lse");
    let x = u(103, 2500);
    let input = json!({"x": x, "min_runs": 3});
    close("value", tool.numbers("primal", &input)[0], golden::lse::VALUE);
    let gradient = tool.numbers("gradient", &input);
    close("norm", norm(&gradient), golden::lse::NORM);
    close("first", gradient[0], golden::lse::FIRST);
    close("last", gradient[2499], golden::lse::LAST);
    let wide: Vec<f64> = x.iter().map(|x| 200.0 * x - 100.0).collect();
    let input = json!({"x": wide});
    close("value", tool.numbers("primal", &input)[0], golden::lse::WIDE_VALUE);
    let gradient = tool.numbers("gradient", &input);
    close("norm", norm(&gradient), golden::lse::WIDE_NORM);
    close("first", gradient[0], golden::lse::WIDE_FIRST);
    close("last", gradient[2499], golden::lse::WIDE_LAST);
}

fn ode() {
    let mut tool = Defined::new("ode");
    let input = json!({"x": u(104, 4), "s": 5});
    let expected = [1.436951305251569, 0.3081551593770411, 0.02049801561511701, 0.005601778639756192];
    all_close("state", &tool.numbers("primal", &input), &expected);
    all_close("gradient", &tool.numbers("gradient", &input), &golden::ode::GRADIENT_4);
    let input = json!({"x": u(104, 8), "s": 10});
    close("last", tool.numbers("primal", &input)[7], 2.846089535417048e-06);
    all_close("gradient", &tool.numbers("gradient", &input), &golden::ode::GRADIENT_8);
    let input = json!({"x": u(104, 16), "s": 100});
    close("last", tool.numbers("primal", &input)[15], 1.272987881964835e-17);
    close("norm", norm(&tool.numbers("gradient", &input)), 5.849878289081906e-16);
}

fn det() {
    let mut tool = Defined::new("det");
    let input = json!({"A": u(105, 25), "ell": 5});
    close("value", tool.numbers("primal", &input)[0], golden::det::VALUE_5);
    all_close("gradient", &tool.numbers("gradient", &input), &golden::det::GRADIENT_5);
    let input = json!({"A": u(105, 64), "ell": 8});
    close("value", tool.numbers("primal", &input)[0], 0.020410401289430224);
    let gradient = tool.numbers("gradient", &input);
    close("norm", norm(&gradient), 0.4443527044370014);
    close("sum", gradient.iter().sum(), 0.03586817975781272);
}

fn particle() {
    let mut tool = Defined::new("particle");
    for modes in ["rr", "ff", "fr", "rf"] {
        close(modes, tool.numbers(modes, &json!({"w": 0, "min_runs": 1}))[0], golden::particle::CONTROL);
    }
}

fn saddle() {
    let mut tool = Defined::new("saddle");
    for modes in ["rr", "ff", "fr", "rf"] {
        let points = tool.numbers(modes, &json!({"start": [1, 1], "min_runs": 1}));
        assert_eq!(points.len(), 4);
        points.iter().for_each(|x| close(modes, *x, golden::saddle::POINT));
    }
}

/// The data of ADBench's smallest file.
fn gmm() {
    let mut tool = Defined::new("gmm");
    let input = |gamma: f64, m: i64| {
        json!({"d": 2, "k": 3, "n": 1, "x": [[1.175171, 2.029160]], "m": m, "gamma": gamma,
               "alpha": [-0.649014, 1.181166, -0.758453],
               "mu": [[0.092339, 0.186260], [0.345561, 0.396767], [0.538817, 0.419195]],
               "q": [[0.586443, -0.851887], [-1.509405, 0.875874], [0.166813, -1.965419]],
               "l": [[0.800321], [-0.242790], [-1.270071]], "min_runs": 2, "min_seconds": 0.0})
    };
    close("objective", tool.numbers("objective", &input(1.0, 0))[0], golden::gmm::OBJECTIVE);
    let g = tool.evaluate("jacobian", &input(1.0, 0));
    all_close("alpha", &numbers(&g["alpha"]), &golden::gmm::ALPHA);
    all_close("mu", &numbers(&g["mu"]), &golden::gmm::MU);
    all_close("q", &numbers(&g["q"]), &golden::gmm::Q);
    all_close("l", &numbers(&g["l"]), &golden::gmm::L);
    assert_eq!(g["l"].as_array().map(Vec::len), Some(3), "the shapes are those of the input");
    close("objective", tool.numbers("objective", &input(0.7, 3))[0], golden::gmm::PRIOR_OBJECTIVE);
    let g = tool.evaluate("jacobian", &input(0.7, 3));
    all_close("l", &numbers(&g["l"]), &golden::gmm::PRIOR_L);
}

fn gmm_files() {
    let mut tool = Defined::new("gmm");
    let cases = [
        (
            "1k_d2_K5",
            -5396.0998384261356,
            [587.5386271064228, 697.3012676193171, 790.9093145165082, 537.4450700269894],
        ),
        (
            "1k_d10_K5",
            -32517.617280184379,
            [627.477414071534, 2931.651221781593, 3796.768080000606, 3027.214566864329],
        ),
    ];
    for (file, value, norms) in cases {
        let mut f = Numbers::read(&format!("gmm/{file}.txt"));
        let (d, k, n) = (f.size(), f.size(), f.size());
        let (alpha, mu) = (f.take(k), rows(&f.take(k * d), d));
        let factors: Vec<(Vec<f64>, Vec<f64>)> =
            (0..k).map(|_| (f.take(d), f.take(d * (d - 1) / 2))).collect();
        let (q, l): (Vec<_>, Vec<_>) = factors.into_iter().unzip();
        let input = json!({"d": d, "k": k, "n": n, "x": rows(&f.take(n * d), d), "m": 0, "gamma": 1.0,
                           "alpha": alpha, "mu": mu, "q": q, "l": l});
        close(file, tool.numbers("objective", &input)[0], value);
        let g = tool.evaluate("jacobian", &input);
        for (name, expected) in ["alpha", "mu", "q", "l"].iter().zip(norms) {
            close(name, norm(&numbers(&g[name])), expected);
        }
    }
}

fn lstm() {
    let mut f = Numbers::read("lstm/lstm_l2_c1024.txt");
    let (l, c, b) = (f.size(), f.size(), f.size());
    let input = json!({"main_params": rows(&f.take(8 * l * b), 4 * b), "extra_params": rows(&f.take(3 * b), b),
                       "state": rows(&f.take(2 * l * b), b), "sequence": rows(&f.take(c * b)[..20 * b], b)});
    let mut tool = Defined::new("lstm");
    close("objective", tool.numbers("objective", &input)[0], golden::lstm::OBJECTIVE);
    let g = tool.numbers("jacobian", &input);
    assert_eq!(g.len(), 266);
    close("norm", norm(&g), golden::lstm::NORM);
    let middle =
        [-8.736552962169538e-05, -6.933654160807896e-05, 6.209597320430721e-06, -7.716491294092297e-05];
    all_close("entries 231 to 234", &g[231..235], &middle);
    close("last", g[265], golden::lstm::LAST);
}

/// Both variants of the two test files, as messages.
fn ht() {
    let mut tool = Defined::new("ht");
    for (file, header, is_simple) in [
        ("hand/test.txt", "hands hand/test.txt", true),
        ("hand/hand_complicated.txt", "handc hand/hand_complicated.txt", false),
    ] {
        let mut f = Numbers::read(file);
        let (n, _) = (f.size(), f.size());
        let measured: Vec<(i64, Vec<f64>)> = (0..n).map(|_| (f.one() as i64, f.take(3))).collect();
        let (correspondences, points): (Vec<i64>, Vec<Vec<f64>>) = measured.into_iter().unzip();
        let us = if is_simple { Vec::new() } else { rows(&f.take(2 * n), 2) };
        let model = crate::hand::message();
        let input = json!({"theta": f.take(26), "us": us,
                           "data": {"correspondences": correspondences, "points": points, "model": model}});
        let reference = Reference::find(header);
        let errors = tool.numbers("objective", &input);
        close("norm of the errors", norm(&errors), reference.objective[1]);
        all_close("errors", &errors[..6], &reference.objective[2..8]);
        let jacobian = tool.evaluate("jacobian", &input);
        let rows: Vec<Vec<f64>> = jacobian.as_array().expect("rows").iter().map(numbers).collect();
        assert_eq!((rows.len(), rows[0].len()), (3 * n, if is_simple { 26 } else { 28 }));
        // The reference lists column after column.
        let columns: Vec<f64> = (0..rows[0].len()).flat_map(|j| rows.iter().map(move |r| r[j])).collect();
        reference.check_gradient(&columns);
    }
}
