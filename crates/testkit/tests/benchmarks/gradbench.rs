//! `pullback gradbench` on the suite's problems: messages in, answers out. Golden numbers are those of the suite's own C++ programs, of
//! constants in it, or of an independent numpy program (closed forms); the tolerance is 1e-10 where the suite has 1e-4.

#![allow(clippy::excessive_precision, reason = "golden numbers stand as their programs printed them")]

use crate::problem::{Numbers, Reference, all_close, close, norm};
use pullback_driver::{Backend, Settings};
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

/// A tool with one problem defined.
struct Defined {
    tool: Tool<'static>,
    module: &'static str,
}

impl Defined {
    fn new(module: &'static str) -> Defined {
        let settings = Settings { backend: Backend::Vm, ..Settings::default() };
        let mut tool = Tool::new(settings, Options::default());
        let message = json!({"id": 1, "kind": "define", "module": module});
        let reply: Json = serde_json::from_str(&tool.reply(message.to_string().as_bytes())).expect("JSON");
        assert_eq!((&reply["id"], &reply["success"]), (&json!(1), &json!(true)), "{reply}");
        Defined { tool, module }
    }
    fn evaluate(&mut self, function: &str, input: &Json) -> Json {
        let message =
            json!({"id": 7, "kind": "evaluate", "module": self.module, "function": function, "input": input});
        let line = self.tool.reply(message.to_string().as_bytes());
        assert!(!line.contains('\n'));
        let mut reply: Json = serde_json::from_str(&line).expect("JSON");
        assert_eq!((&reply["id"], &reply["success"]), (&json!(7), &json!(true)), "{reply}");
        let runs = reply["timings"].as_array().expect("a list").iter();
        let evaluations = runs.filter(|t| t["name"] == "evaluate" && t["nanoseconds"].is_u64()).count();
        assert_eq!(evaluations as u64, input.get("min_runs").map_or(1, |n| n.as_u64().expect("a count")));
        reply["output"].take()
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
    assert_eq!(seen, [1.0, 2.0, 4.0, 8.0, 64.0, 128.0, 16384.0, 32768.0]);
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
    close("weight error", numbers(&output["w_err"]["element"])[0], 0.826092651516);
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
    close("cost", tool.numbers("cost", &input)[0], 21.610920569848552);
    let expected = [
        -0.01787512087529259,
        -0.0903956476665501,
        -0.03285914602955537,
        0.02798177851364016,
        -0.0913997877544413,
        0.12721530594863,
        0.2187823022112127,
        -0.004245980067507309,
        0.1425389861003222,
        0.1661959751264045,
        -0.02232749892496749,
        -0.1225378490910914,
        0.3709367465786636,
        -0.104844806175679,
        0.1616042359359562,
    ];
    all_close("direction", &tool.numbers("dir", &input), &expected);
    assert_eq!(tool.evaluate("dir", &input).as_array().map(Vec::len), Some(5), "a row for each centroid");
}

fn llsq() {
    let mut tool = Defined::new("llsq");
    let x = u(102, 8);
    let cases: [(i64, f64, [f64; 8]); 2] = [
        (
            16,
            13.127415825160634,
            [
                13.64936129046393,
                2.847317646345211,
                7.975303113101055,
                3.791935212877757,
                6.344223882091928,
                3.717113169087756,
                5.534722430654366,
                3.571791710358244,
            ],
        ),
        (
            17,
            13.252207405871244,
            [
                14.40813250545451,
                2.939761626140307,
                8.344577312694948,
                3.906331878853037,
                6.593834740384823,
                3.818730972486462,
                5.719877653170019,
                3.656350105912713,
            ],
        ),
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
    close("value", tool.numbers("primal", &input)[0], 8.3774727971573668);
    let gradient = tool.numbers("gradient", &input);
    close("norm", norm(&gradient), 0.02081725629402276);
    close("first", gradient[0], 0.0002983172389418424);
    close("last", gradient[2499], 0.0005830728605468441);
    let wide: Vec<f64> = x.iter().map(|x| 200.0 * x - 100.0).collect();
    let input = json!({"x": wide});
    close("value", tool.numbers("primal", &input)[0], 102.87469107912902);
    let gradient = tool.numbers("gradient", &input);
    close("norm", norm(&gradient), 0.1694552319928385);
    close("first", gradient[0], 3.064452706737275e-66);
    close("last", gradient[2499], 4.957334780072661e-08);
}

fn ode() {
    let mut tool = Defined::new("ode");
    let input = json!({"x": u(104, 4), "s": 5});
    let expected = [1.436951305251569, 0.3081551593770411, 0.02049801561511701, 0.005601778639756192];
    all_close("state", &tool.numbers("primal", &input), &expected);
    let expected = [0.007796755003852385, 0.02612152639079824, 0.05614257243047181, 0.01024900780755851];
    all_close("gradient", &tool.numbers("gradient", &input), &expected);
    let input = json!({"x": u(104, 8), "s": 10});
    close("last", tool.numbers("primal", &input)[7], 2.846089535417048e-06);
    let expected = [
        3.961288771603545e-06,
        1.327153529101372e-05,
        2.852429525717816e-05,
        5.207202166554987e-06,
        2.986040559262777e-06,
        8.835849067435608e-06,
        5.420787128099336e-06,
        8.562434960133383e-06,
    ];
    all_close("gradient", &tool.numbers("gradient", &input), &expected);
    let input = json!({"x": u(104, 16), "s": 100});
    close("last", tool.numbers("primal", &input)[15], 1.272987881964835e-17);
    close("norm", norm(&tool.numbers("gradient", &input)), 5.849878289081906e-16);
}

fn det() {
    let mut tool = Defined::new("det");
    let input = json!({"A": u(105, 25), "ell": 5});
    close("value", tool.numbers("primal", &input)[0], 0.07003124183758758);
    let expected = [
        0.1222402930414658,
        -0.07893077526551709,
        -0.02760639180243147,
        0.06454153810664816,
        -0.06197070995645942,
        0.04990458211924027,
        0.1652580071498485,
        0.1227995657924169,
        -0.2510646496239374,
        -0.1165120886708736,
        0.0663937497499477,
        0.1584330872217134,
        0.008580854958535944,
        -0.1164617861861156,
        -0.07298669899164993,
        -0.1282842159533091,
        -0.1159844113833383,
        -0.04562083088020702,
        0.1326801013502595,
        0.208985961926025,
        -0.07362738308669986,
        0.008150512475995759,
        0.03252765488673629,
        0.08205708085406987,
        -0.01993230131303709,
    ];
    all_close("gradient", &tool.numbers("gradient", &input), &expected);
    let input = json!({"A": u(105, 64), "ell": 8});
    close("value", tool.numbers("primal", &input)[0], 0.020410401289430224);
    let gradient = tool.numbers("gradient", &input);
    close("norm", norm(&gradient), 0.4443527044370014);
    close("sum", gradient.iter().sum(), 0.03586817975781272);
}

fn particle() {
    let mut tool = Defined::new("particle");
    for modes in ["rr", "ff", "fr", "rf"] {
        close(modes, tool.numbers(modes, &json!({"w": 0, "min_runs": 1}))[0], 0.2071918746486116);
    }
}

fn saddle() {
    let mut tool = Defined::new("saddle");
    for modes in ["rr", "ff", "fr", "rf"] {
        let points = tool.numbers(modes, &json!({"start": [1, 1], "min_runs": 1}));
        assert_eq!(points.len(), 4);
        points.iter().for_each(|x| close(modes, *x, 8.246324826140356e-06));
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
    close("objective", tool.numbers("objective", &input(1.0, 0))[0], -20.067360546658307);
    let g = tool.evaluate("jacobian", &input(1.0, 0));
    all_close("alpha", &numbers(&g["alpha"]), &[0.1086628555086525, -0.7412700395238985, 0.6326071840152462]);
    let means = [
        1.11692576532787,
        0.1633330135514553,
        -0.02199898240711931,
        0.2277782922542361,
        1.209630256128322,
        -0.06063759207339564,
    ];
    all_close("mu", &numbers(&g["mu"]), &means);
    let diagonals = [
        -3.877309539853597,
        -0.2513580570468236,
        -0.02420059544032302,
        -6.11097740927195,
        -1.073118770446086,
        0.8208366546891366,
    ];
    all_close("q", &numbers(&g["q"]), &diagonals);
    all_close("l", &numbers(&g["l"]), &[-1.214897690150388, 0.1640855903225535, 1.545501069533677]);
    assert_eq!(g["l"].as_array().map(Vec::len), Some(3), "the shapes are those of the input");
    close("objective", tool.numbers("objective", &input(0.7, 3))[0], -47.231033137548984);
    let g = tool.evaluate("jacobian", &input(0.7, 3));
    all_close("l", &numbers(&g["l"]), &[-0.8067339801503881, 0.0402626903225535, 0.8977648595336771]);
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
    close("objective", tool.numbers("objective", &input)[0], 0.44745457367013863);
    let g = tool.numbers("jacobian", &input);
    assert_eq!(g.len(), 266);
    close("norm", norm(&g), 0.05655429278641766);
    let middle =
        [-8.736552962169538e-05, -6.933654160807896e-05, 6.209597320430721e-06, -7.716491294092297e-05];
    all_close("entries 231 to 234", &g[231..235], &middle);
    close("last", g[265], -0.01230628453744167);
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
