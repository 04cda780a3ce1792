//! The programs of chapter 5 of the Accelerate thesis have the values and derivatives of our notes, by all variants on all executors.
//!
//! The expected numbers are of a prototype in Python. It differentiates in reverse and forward mode, and both agree. Numbers of
//! Gaussian mixtures are rounded to nine digits behind the point there. Numbers of bundle adjustment have as many.

use crate::accelerate::{ALGORITHMS, backends};
use pullback_core::{Array, Buffer, Value};
use pullback_driver::{Backend, Ready, Session, Settings};
use pullback_interp::core::Options;
use pullback_prim::ScalarValue;
use pullback_testkit::fused::array_operations;
use pullback_testkit::problems::mixture_in_forms;
use std::num::NonZeroUsize;
use std::path::Path;

/// Half a unit of the ninth digit, with room for sums in another order.
const ROUNDED: f64 = 6e-10;

/// Reads a program of the experiments.
fn source(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../benches/accelerate").join(file);
    std::fs::read_to_string(path).expect(file)
}

/// Compiles one entry point, whose derivatives are by this algorithm.
fn ready(text: &str, entry: &str, algorithm: &str, backend: Backend) -> Ready {
    compiled(text, entry, algorithm, Settings { backend, ..Settings::default() })
}

/// The bytes that a call has in use at most, and its results. On one thread: else it depends on who takes which part.
fn peak(text: &str, entry: &str, (algorithm, backend): (&str, Backend), args: &[Value]) -> (u64, Vec<Value>) {
    let settings = Settings { backend, threads: NonZeroUsize::new(1), ..Settings::default() };
    let ready = compiled(text, entry, algorithm, settings);
    let out = ready.run(args, &Options::default()).unwrap_or_else(|e| panic!("{e}"));
    (out.counts.peak_bytes, out.results)
}

fn compiled(text: &str, entry: &str, algorithm: &str, mut settings: Settings) -> Ready {
    let backend = settings.backend;
    settings.choice.reverse = Some(algorithm.into());
    let session =
        Session::compile("experiment.fut", text, settings).unwrap_or_else(|e| panic!("{}", e.render()));
    let point = session.entry(Some(entry)).unwrap_or_else(|e| panic!("{}", e.message));
    session.primal(&point).unwrap_or_else(|e| panic!("{entry}, {algorithm}, {backend:?}: {}", e.message))
}

fn run(ready: &Ready, args: &[Value]) -> Vec<Value> {
    ready.run(args, &Options::default()).unwrap_or_else(|e| panic!("{e}")).results
}

fn ints(value: &Value) -> &[i64] {
    let Value::Array(Array { data, .. }) = value else { panic!("an array") };
    let Buffer::I64(xs) = &**data else { panic!("whole numbers") };
    xs
}

fn expect(what: &str, found: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (k, (x, y)) in found.iter().zip(expected).enumerate() {
        assert!((x - y).abs() <= tolerance * y.abs().max(1.0), "{what}, number {k}: {x}, not {y}");
    }
}

/// Each algorithm with each executor.
fn ways() -> impl Iterator<Item = (&'static str, Backend)> {
    ALGORITHMS.into_iter().flat_map(|a| backends().into_iter().map(move |b| (a, b)))
}

/// A Gaussian mixture with the inputs of our notes, the value to expect, and the derivatives in the order of parameters.
struct Mixture {
    sizes: [usize; 3],
    gamma: f64,
    m: i64,
    value: f64,
    gradient: [&'static [f64]; 3],
}

const MIXTURES: [Mixture; 2] = [
    Mixture {
        sizes: [3, 3, 2],
        gamma: 1.0,
        m: 0,
        value: 3.5823284556530,
        gradient: [
            &[-0.155821892, 0.155821892],
            &[-0.902300577, 0.48551143, 0.556166795, 1.818357509, -0.336192135, -0.799730404],
            &[
                2.185668979,
                2.147080883,
                1.304822425,
                -0.221323126,
                0.253935103,
                -0.079126659,
                1.7924334,
                1.742461296,
                1.227017687,
                -0.875062084,
                -0.211323743,
                -0.773042817,
            ],
        ],
    },
    Mixture {
        sizes: [4, 2, 3],
        gamma: 0.7,
        m: 2,
        value: 14.566774373551,
        gradient: [
            &[0.297223003, -0.442791579, 0.145568577],
            &[-1.388194546, 0.701836804, 0.270827504, 0.353147995, 0.680960497, -0.501755526],
            &[
                -0.560494203,
                -0.47802971,
                -0.146778716,
                -0.78239961,
                -0.809055745,
                -0.37106829,
                -0.854387558,
                -1.100447245,
                -0.100362449,
            ],
        ],
    },
];

impl Mixture {
    /// Points, the two numbers of the prior, and parameters. `float` makes an array of the precision that is wanted.
    fn args(&self, float: fn(&[usize], Vec<f64>) -> Value) -> (Vec<Value>, Vec<Value>) {
        let [n, d, k] = self.sizes;
        let w = d + d * (d - 1) / 2;
        let of = |shape: &[usize], f: &dyn Fn(f64) -> f64| {
            float(shape, (0..shape.iter().product()).map(|i: usize| f(i as f64)).collect())
        };
        let x = of(&[n, d], &|i| (0.7 * i + 0.1).sin());
        let prior = [x, float(&[], vec![self.gamma]), Value::i64(self.m)];
        let alpha = of(&[k], &|i| (1.0 + i).sin());
        let mu = of(&[k, d], &|i| (0.5 + i).cos());
        let icf = of(&[k, w], &|i| 0.3 * (2.0 + i).sin());
        (prior.to_vec(), vec![alpha, mu, icf])
    }
    /// Arguments of the constant.
    fn sizes_and_prior(&self, prior: &[Value]) -> Vec<Value> {
        let [n, d, k] = self.sizes.map(|size| Value::i64(size as i64));
        [vec![n, d, k], prior[1..].to_vec()].concat()
    }
    /// Compares value and gradient of a form of the program.
    fn check(
        &self,
        program: &[Ready; 3],
        what: &str,
        (prior, parameters): (Vec<Value>, Vec<Value>),
        tolerance: f64,
    ) {
        let [constant, objective, gradient] = program;
        let constant = run(constant, &self.sizes_and_prior(&prior));
        let value = run(objective, &[&prior[..], &constant, &parameters].concat());
        expect(what, &value[0].floats(), &[self.value], tolerance);
        let found = run(gradient, &[prior, parameters].concat());
        for (found, expected) in found.iter().zip(self.gradient) {
            expect(what, &found.floats(), expected, tolerance);
        }
    }
}

/// The constant, the objective and the gradient of a form of the mixture.
fn mixture(text: &str, form: &str, (algorithm, backend): (&str, Backend)) -> [Ready; 3] {
    ["constant", form, &format!("{form}_gradient")].map(|entry| ready(text, entry, algorithm, backend))
}

const FORMS: [&str; 3] = ["generate", "gather", "apart"];

#[test]
fn gaussian_mixtures_have_the_values_and_gradients_of_the_notes() {
    let text = source("gmm.fut");
    for (form, way) in FORMS.into_iter().flat_map(|form| ways().map(move |way| (form, way))) {
        let program = mixture(&text, form, way);
        for m in &MIXTURES {
            let args =
                m.args(
                    |shape, xs| {
                        if shape.is_empty() { Value::f64(xs[0]) } else { Value::f64_array(shape, &xs) }
                    },
                );
            m.check(&program, &format!("{form}, {way:?}, {:?}", m.sizes), args, ROUNDED);
        }
    }
}

/// The thesis computes with single precision, which has seven digits.
#[test]
fn gaussian_mixtures_of_single_precision() {
    let text = source("gmm.fut").replace("f64", "f32");
    let single = |shape: &[usize], xs: Vec<f64>| {
        let xs: Vec<f32> = xs.into_iter().map(|x| x as f32).collect();
        if shape.is_empty() {
            Value::Scalar(ScalarValue::F32(xs[0]))
        } else {
            Value::Array(Array::new(shape.to_vec(), Buffer::F32(xs)))
        }
    };
    for (form, algorithm) in FORMS.into_iter().flat_map(|form| ALGORITHMS.map(|algorithm| (form, algorithm)))
    {
        let program = mixture(&text, form, (algorithm, Backend::Interp));
        for m in &MIXTURES {
            m.check(&program, &format!("{form}, {algorithm}, {:?}", m.sizes), m.args(single), 1e-5);
        }
    }
}

/// Files of ADBench with the values of its program by hand, which rounds pi.
#[test]
fn gaussian_mixtures_have_the_gradients_of_adbench() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/adbench");
    let Ok(reference) = std::fs::read_to_string(folder.join("reference_values.txt")) else {
        return eprintln!("skipped: no files of ADBench are found, 2 are not compared");
    };
    for (file, header) in [("gmm/test.txt", "gmm/test.txt"), ("gmm/1k_d10_K5.txt", "gmm/1k/gmm_d10_K5.txt")] {
        let text = std::fs::read_to_string(folder.join(file)).expect(file);
        let (sizes, prior, parameters) = adbench(&text);
        // The objective; the length and norm of the gradient; its first and its last numbers.
        let title = format!("## gmm {header} ");
        let lines: Vec<Vec<f64>> =
            reference.lines().skip_while(|l| !l.starts_with(&title)).skip(1).take(4).map(numbers).collect();
        let [objective, length, first, last] = &lines[..] else { panic!("{header}: four lines") };
        for form in FORMS {
            let what = format!("{file}, {form}");
            let backend = *backends().last().expect("an executor");
            let [constant, value, gradient] = mixture(&source("gmm.fut"), form, ("accelerate", backend));
            let constant = run(&constant, &[&sizes[..], &prior[1..]].concat());
            let value = run(&value, &[&prior[..], &constant, &parameters].concat());
            expect(&what, &value[0].floats(), objective, 1e-10);
            let gradient = run(&gradient, &[&prior[..], &parameters].concat());
            let found: Vec<f64> = gradient.iter().flat_map(Value::floats).collect();
            let norm = found.iter().map(|x| x * x).sum::<f64>().sqrt();
            expect(&what, &[found.len() as f64, norm], &length[..2], 1e-10);
            expect(&what, &found[..first.len()], first, 1e-10);
            expect(&what, &found[found.len() - last.len()..], last, 1e-10);
        }
    }
}

/// The sizes as values; points and the two numbers of the prior; the parameters.
fn adbench(text: &str) -> (Vec<Value>, Vec<Value>, Vec<Value>) {
    let all = numbers(text);
    let [d, k, n] = [all[0], all[1], all[2]].map(|x| x as usize);
    let mut rest = &all[3..];
    let mut take = |shape: &[usize]| {
        let (found, after) = rest.split_at(shape.iter().product());
        rest = after;
        Value::f64_array(shape, found)
    };
    let parameters = vec![take(&[k]), take(&[k, d]), take(&[k, d + d * (d - 1) / 2])];
    let x = take(&[n, d]);
    let prior = vec![x, Value::f64(rest[0]), Value::i64(rest[1] as i64)];
    ([n, d, k].map(|size| Value::i64(size as i64)).to_vec(), prior, parameters)
}

fn numbers(text: &str) -> Vec<f64> {
    let words = text.split(|c: char| c.is_whitespace() || c == ',');
    words.filter_map(|word| word.parse().ok()).collect()
}

/// The errors of one observation and their derivatives by camera, point and weight.
struct Observation {
    rotation: [f64; 3],
    errors: [f64; 2],
    rows: [[f64; 15]; 2],
}

/// With a rotation, and without one, where the other branch would divide by zero.
const OBSERVATIONS: [Observation; 2] = [
    Observation {
        rotation: [0.1, -0.2, 0.3],
        errors: [-0.487538541793, 0.476947716486],
        rows: [
            [
                0.297234972,
                1.186806459,
                -0.450690713,
                -0.473888097,
                0.127951798,
                -0.10796512,
                -0.297025695,
                0.7,
                0.0,
                -0.132917289,
                -0.03976468,
                0.473888097,
                -0.127951798,
                0.10796512,
                -0.696483631,
            ],
            [
                -1.226031204,
                0.006279859,
                -0.321488359,
                -0.095997273,
                -0.428817797,
                0.215383435,
                0.243298478,
                0.0,
                0.7,
                0.108874669,
                0.032571883,
                0.095997273,
                0.428817797,
                -0.215383435,
                0.681353881,
            ],
        ],
    },
    Observation {
        rotation: [0.0; 3],
        errors: [-0.133545499548, 0.661272997291],
        rows: [
            [
                0.048845712,
                1.060914197,
                -0.549272997,
                -0.457788811,
                0.000367878,
                -0.039999659,
                -0.061030333,
                0.7,
                0.0,
                -0.025544506,
                -0.007146667,
                0.457788811,
                -0.000367878,
                0.039999659,
                -0.190779285,
            ],
            [
                -1.345847514,
                -0.048845712,
                -0.0915455,
                0.000367878,
                -0.459934769,
                0.239997956,
                0.366181998,
                0.0,
                0.7,
                0.153267034,
                0.042880002,
                -0.000367878,
                0.459934769,
                -0.239997956,
                0.94467571,
            ],
        ],
    },
];

/// Cameras with these rotations, one point for each, and observations of camera and point.
fn adjustment(rotations: &[[f64; 3]], points: usize, obs: &[[i64; 2]]) -> Vec<Value> {
    let rest = [0.5, -0.4, 0.2, 1.5, 0.05, -0.07, 0.01, -0.002];
    let cams: Vec<f64> = rotations.iter().flat_map(|r| r.iter().chain(&rest)).copied().collect();
    let (n, p) = (rotations.len(), obs.len());
    vec![
        Value::f64_array(&[n, 11], &cams),
        Value::f64_array(&[points, 3], &[0.3, 0.8, 2.5].repeat(points)),
        Value::f64s(&vec![0.7; p]),
        Value::f64_array(&[p, 2], &[0.11, -0.23].repeat(p)),
        Value::Array(Array::new(vec![p, 2], Buffer::I64(obs.concat()))),
    ]
}

#[test]
fn rows_of_bundle_adjustment_are_those_of_the_notes() {
    let text = source("ba.fut");
    let args = adjustment(&OBSERVATIONS.map(|o| o.rotation), 1, &[[1, 0], [0, 0]]);
    let rows = [1, 0].map(|k: usize| OBSERVATIONS[k].rows.concat()).concat();
    // The derivative of 1 - w^2 is -2 w.
    let values = [rows, vec![-1.4; 2]].concat();
    for way in ways() {
        let what = format!("{way:?}");
        let errors = run(&ready(&text, "objective", way.0, way.1), &args);
        let expected = [OBSERVATIONS[1].errors, OBSERVATIONS[0].errors].concat();
        expect(&what, &errors[0].floats(), &expected, 1e-11);
        // 1 - 0.49.
        expect(&what, &errors[1].floats(), &[0.51; 2], 1e-15);
        let found = run(&ready(&text, "jacobian", way.0, way.1), &args);
        expect(&what, &found[0].floats(), &values, ROUNDED);
    }
}

/// The picture of the thesis (Fig. 4): where a row has entries. Each row is written out by hand for its camera, its point and its weight.
#[test]
fn the_pattern_of_the_jacobian_is_that_of_the_picture() {
    let (n, m, p) = (6, 9, 16);
    let obs: Vec<[i64; 2]> = (0..p).map(|i| [i % n, i % m]).collect();
    let args = adjustment(&[[0.1, -0.2, 0.3]; 6], 9, &obs);
    let mut is_entry = vec![vec![false; (11 * n + 3 * m + p) as usize]; 3 * p as usize];
    for i in 0..p {
        let (camera, point, weight) = (11 * (i % n), 11 * n + 3 * (i % m), 11 * n + 3 * m + i);
        for row in [2 * i, 2 * i + 1] {
            let all = (camera..camera + 11).chain(point..point + 3).chain([weight]);
            all.for_each(|column| is_entry[row as usize][column as usize] = true);
        }
        is_entry[(2 * p + i) as usize][weight as usize] = true;
    }
    let text = source("ba.fut");
    for algorithm in ALGORITHMS {
        let found = run(&ready(&text, "jacobian", algorithm, Backend::Interp), &args);
        let [values, rows, columns] = &found[..] else { panic!("three arrays") };
        let (rows, columns) = (ints(rows), ints(columns));
        assert_eq!((values.floats().len(), columns.len()), (31 * 16, 31 * 16));
        assert_eq!((rows.len(), rows[0], rows[48]), (3 * 16 + 1, 0, 31 * 16));
        for (row, is_entry) in is_entry.iter().enumerate() {
            let expected: Vec<i64> =
                (0..).zip(is_entry).filter(|(_, e)| **e).map(|(column, _)| column).collect();
            assert_eq!(columns[rows[row] as usize..rows[row + 1] as usize], expected, "row {row}");
        }
    }
}

/// The gradient of Fig. 2 of the thesis is one kernel there. That of the mixture has 282.
#[test]
fn array_operations_of_a_gradient_are_joined() {
    let count = |text: &str, entry: &str, algorithm: &str| {
        let ready = ready(text, entry, algorithm, Backend::Interp);
        array_operations(&ready.program.funs[ready.fun].body)
    };
    let figure = "
def f [n] (a: [n]f64) : f64 = f64.sum (map2 (*) (map (\\x -> x * x) a) (map (+ 1) a))
entry gradient [n] (a: [n]f64) : [n]f64 = vjp f a 1";
    let ready = ready(figure, "gradient", "accelerate", Backend::Interp);
    // 3 x^2 + 2 x.
    let found = run(&ready, &[Value::f64s(&[0.7, -2.25, 1.2, 3.8])]);
    expect("Fig. 2", &found[0].floats(), &[2.87, 10.6875, 6.72, 50.92], 1e-14);
    let text = source("gmm.fut");
    for algorithm in &ALGORITHMS[1..] {
        assert_eq!(count(figure, "gradient", algorithm), 1, "{algorithm}");
        for form in FORMS {
            let found = count(&text, &format!("{form}_gradient"), algorithm);
            println!("{form}, {algorithm}: {found}");
            assert!((10..282).contains(&found), "{form}, {algorithm}: {found}");
        }
    }
}

/// The thesis: recomputing takes less memory. Here the largest arrays are computed again, too.
#[test]
fn mixtures_take_less_memory_where_values_are_computed_again() {
    let text = source("gmm.fut");
    let sizes: [[usize; 3]; 3] = [[1000, 2, 5], [300, 10, 4], [200, 7, 3]];
    for (form, sizes) in FORMS[..2].iter().flat_map(|form| sizes.map(|s| (form, s))) {
        let args = mixture_in_forms(sizes);
        for backend in backends() {
            let of = |algorithm| peak(&text, &format!("{form}_gradient"), (algorithm, backend), &args);
            let ((stored, expected), (again, found)) = (of("accelerate-store"), of("accelerate-recompute"));
            println!("{form}, {backend:?}: {stored} and {again}");
            assert!(again < stored, "{form}, {backend:?}, {sizes:?}: {stored} and {again}");
            for (a, b) in expected.iter().zip(&found) {
                expect(form, &b.floats(), &a.floats(), 1e-9);
            }
        }
    }
}

/// What a scalar function computes on its way is stored, or not. The logarithm keeps the two passes apart.
#[test]
fn inner_results_take_memory_only_where_they_are_stored() {
    let text = "
def f [n] (a: [n]f64) : f64 =
  f64.log (f64.sum (map (\\x -> let e = f64.exp x in f64.exp (f64.sin e) * f64.exp (f64.cos (e * x))) a))
entry gradient [n] (a: [n]f64) : [n]f64 = vjp f a 1";
    let n = 1000;
    let args = [Value::f64s(&(0..n).map(|i| f64::from(i) * 1e-3).collect::<Vec<f64>>())];
    for backend in backends() {
        let [stored, recomputed] = ["accelerate-store", "accelerate-recompute"]
            .map(|algorithm| peak(text, "gradient", (algorithm, backend), &args).0);
        println!("{backend:?}: {stored} and {recomputed}");
        // At least the product's two factors, of eight bytes for each element.
        assert!(stored >= recomputed + 16 * n as u64, "{backend:?}: {stored} and {recomputed}");
    }
}
