//! Problems of the field's benchmark suite and a few small programs, with inputs of any size.
//!
//! Inputs come from the generator of the small programs' golden numbers (`uniform`), so that figures made from them can
//! be repeated by any other program. Sizes are small enough for the interpreter.

use pullback_core::{Array, Buffer, Value};
use pullback_driver::{Kind, Ready, Session, Settings, Wrt};
use pullback_prim::ScalarValue;

/// A program, its differentiable entry point, and inputs for it.
#[derive(Clone, Copy)]
pub struct Problem {
    /// Its name in tables.
    pub name: &'static str,
    /// The file, from the root of the repository.
    pub file: &'static str,
    /// The entry point.
    pub entry: &'static str,
    /// What to differentiate in, as `--wrt` takes it.
    pub wrt: &'static str,
    /// Inputs of a size, one value per leaf parameter in the entry's order. Bigger sizes mean more of the main data,
    /// not more parameters.
    pub args: fn(usize) -> Vec<Value>,
    /// What the size counts.
    pub size: &'static str,
}

impl Problem {
    /// The objective and its gradient, which takes cotangents after the arguments.
    ///
    /// # Panics
    /// If the problem does not compile.
    pub fn ready(&self) -> [Ready; 2] {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let text = std::fs::read_to_string(root.join(self.file)).expect(self.file);
        let session = Session::compile(self.file, &text, Settings::default()).expect(self.name);
        let entry = session.entry(Some(self.entry)).expect(self.name);
        let selected = session.select(&entry, &Wrt::parse(self.wrt)).expect(self.name);
        let primal = session.primal(&entry).expect(self.name);
        [primal, session.derivative(&entry, Kind::Vjp, &selected, &mut |_, _| {}).expect(self.name)]
    }
}

/// The problems that a program for measurements is asked for, and their size (1000): its arguments are a size, or none, and names, none for
/// all. One more is `gmm-large`, the mixture model with 10 dimensions and 25 components.
pub fn asked_for() -> (usize, Vec<Problem>) {
    let mut names: Vec<String> = std::env::args().skip(1).collect();
    let size = names.first().and_then(|s| s.parse().ok());
    names.drain(..usize::from(size.is_some()));
    let larger = |p: &Problem| Problem { name: "gmm-large", args: gmm_large, ..*p };
    let large = PROBLEMS.iter().filter(|p| p.name == "gmm").map(larger);
    let wanted = |p: &Problem| names.is_empty() || names.iter().any(|n| n == p.name);
    (size.unwrap_or(1000), PROBLEMS.iter().copied().chain(large).filter(wanted).collect())
}

/// Ones in place of the floats of these values: cotangents.
pub fn ones(values: &[Value]) -> Vec<Value> {
    let one = |v: &Value| match v {
        Value::Array(a) => Some(Value::f64_array(&a.shape, &vec![1.0; a.count()])),
        Value::Scalar(_) => Some(Value::f64(1.0)),
        _ => None,
    };
    values.iter().filter_map(one).collect()
}

/// All problems, in the order of the suite.
pub const PROBLEMS: &[Problem] = &[
    Problem {
        name: "hello",
        file: "benches/programs/hello.fut",
        entry: "square",
        wrt: "x",
        args: hello,
        size: "",
    },
    Problem {
        name: "gmm",
        file: "examples/gmm.fut",
        entry: "objective",
        wrt: "params",
        args: gmm,
        size: "points (d 4, k 5)",
    },
    Problem {
        name: "ba",
        file: "examples/ba.fut",
        entry: "cost",
        wrt: "cams,points,weights",
        args: ba,
        size: "observations",
    },
    Problem {
        name: "ht",
        file: "examples/hand.fut",
        entry: "complicated",
        wrt: "us,theta",
        args: hand,
        size: "measured points",
    },
    Problem {
        name: "lstm",
        file: "examples/lstm.fut",
        entry: "objective",
        wrt: "main_params,extra_params",
        args: lstm,
        size: "characters (2 layers, 14 bits)",
    },
    Problem {
        name: "kmeans",
        file: "examples/kmeans.fut",
        entry: "cost",
        wrt: "centroids",
        args: kmeans,
        size: "points (d 4, k 8)",
    },
    Problem {
        name: "llsq",
        file: "examples/llsq.fut",
        entry: "primal",
        wrt: "x",
        args: |n| vec![uniform_array(102, &[16]), Value::i64(n as i64)],
        size: "points (16 coefficients)",
    },
    Problem {
        name: "lse",
        file: "examples/lse.fut",
        entry: "primal",
        wrt: "x",
        args: |n| vec![uniform_array(103, &[n])],
        size: "elements",
    },
    Problem {
        name: "ode",
        file: "examples/ode.fut",
        entry: "primal",
        wrt: "x",
        args: |n| vec![uniform_array(104, &[32]), Value::i64(n as i64)],
        size: "time steps (32 components)",
    },
    Problem {
        name: "det",
        file: "examples/det.fut",
        entry: "primal",
        wrt: "a",
        args: det,
        size: "(4 x 4, then 5 x 5)",
    },
    Problem {
        name: "particle",
        file: "examples/particle.fut",
        entry: "path",
        wrt: "w",
        args: |_| vec![Value::f64(0.1)],
        size: "",
    },
    Problem {
        name: "saddle",
        file: "examples/saddle.fut",
        entry: "inner_value",
        wrt: "p1",
        args: |_| vec![Value::f64s(&[1.0, 1.0]), Value::f64s(&[1.0, 1.0])],
        size: "",
    },
    Problem {
        name: "logistic regression",
        file: "examples/logreg.fut",
        entry: "loss",
        wrt: "w",
        args: logreg,
        size: "rows (6 columns)",
    },
    Problem {
        name: "dot",
        file: "benches/programs/dot.fut",
        entry: "dot",
        wrt: "a,b",
        args: |n| vec![uniform_array(1, &[n]), uniform_array(2, &[n])],
        size: "elements",
    },
    Problem {
        name: "matmul",
        file: "benches/programs/matmul.fut",
        entry: "squares",
        wrt: "a,b",
        args: |n| vec![uniform_array(3, &[n, 8]), uniform_array(4, &[8, 8])],
        size: "rows (8 x 8)",
    },
    Problem {
        name: "stencil",
        file: "benches/programs/stencil.fut",
        entry: "loss",
        wrt: "u",
        args: |n| vec![uniform_array(50, &[8, 8]), Value::i64(n as i64)],
        size: "time steps (8 x 8)",
    },
];

/// `n` numbers in [0, 1), the same for the same `s`: a hash of the index (the generator of the golden numbers).
pub fn uniform(s: u32, n: usize) -> Vec<f64> {
    let hash = |mut x: u32| {
        x ^= x >> 16;
        x = x.wrapping_mul(0x7feb_352d);
        x ^= x >> 15;
        x = x.wrapping_mul(0x846c_a68b);
        x ^ (x >> 16)
    };
    let number = |i: u32| f64::from(hash(i.wrapping_add(1_000_003u32.wrapping_mul(s)))) / 4_294_967_296.0;
    (0..n as u32).map(number).collect()
}

fn uniform_array(s: u32, shape: &[usize]) -> Value {
    Value::f64_array(shape, &uniform(s, shape.iter().product()))
}

/// Arguments of the gradient of a Gaussian mixture (`benches/accelerate/gmm.fut`) with so many points, dimensions and components: random, near zero, so
/// that no exponential is too large.
pub fn mixture_in_forms([n, d, k]: [usize; 3]) -> Vec<Value> {
    let near_zero = |s: u32, shape: &[usize]| {
        let numbers = uniform(s, shape.iter().product());
        Value::f64_array(shape, &numbers.iter().map(|x| 0.4 * x - 0.2).collect::<Vec<f64>>())
    };
    let width = d + d * (d - 1) / 2;
    let prior = [near_zero(1, &[n, d]), Value::f64(1.0), Value::i64(0)];
    let parameters = [near_zero(2, &[k]), near_zero(3, &[k, d]), near_zero(4, &[k, width])];
    [prior, parameters].concat()
}

fn ints(shape: &[usize], values: Vec<i64>) -> Value {
    Value::Array(Array::new(shape.to_vec(), Buffer::I64(values)))
}

fn hello(_: usize) -> Vec<Value> {
    vec![Value::f64(3.0)]
}

fn gmm(n: usize) -> Vec<Value> {
    mixture(n, 4, 5)
}

fn gmm_large(n: usize) -> Vec<Value> {
    mixture(n, 10, 25)
}

fn mixture(n: usize, d: usize, k: usize) -> Vec<Value> {
    let parameters = [
        uniform_array(12, &[k]),
        uniform_array(13, &[k, d]),
        uniform_array(14, &[k, d]),
        uniform_array(15, &[k, d * (d - 1) / 2]),
    ];
    [uniform_array(11, &[n, d]), Value::f64(1.0), Value::i64(0)].into_iter().chain(parameters).collect()
}

fn ba(p: usize) -> Vec<Value> {
    let (n, m) = (3, 10);
    let camera = |c: usize| {
        let near = [0.2, -0.1, 0.3, 0.1, 0.2, -5.0, 400.0, 5.0, -8.0, 0.01, 0.002];
        near.map(|x| x * (1.0 + 0.01 * c as f64))
    };
    let cameras: Vec<f64> = (0..n).flat_map(camera).collect();
    let observed = (0..p as i64).flat_map(|i| [i % n as i64, i % m as i64]).collect();
    vec![
        Value::f64_array(&[n, 11], &cameras),
        uniform_array(21, &[m, 3]),
        uniform_array(22, &[p]),
        uniform_array(23, &[p, 2]),
        ints(&[p, 2], observed),
    ]
}

/// A hand of 22 bones as in the suite, with 40 vertices and 60 triangles at places of the generator.
fn hand(n: usize) -> Vec<Value> {
    let (bones, vertices, triangles) = (22usize, 40usize, 60usize);
    let parent = |b: usize| match b {
        0 => -1,
        b if b <= 20 && (b - 1) % 4 == 0 => 0,
        21 => 0,
        b => b as i64 - 1,
    };
    let rigid = |s: u32| -> Vec<f64> {
        let shifts = uniform(s, 3 * bones);
        let matrix = |b: usize| -> Vec<f64> {
            let cell = |k: usize| match (k / 4, k % 4) {
                (i, j) if i == j => 1.0,
                (i, 3) => shifts[3 * b + i],
                _ => 0.0,
            };
            (0..16).map(cell).collect()
        };
        (0..bones).flat_map(matrix).collect()
    };
    let places = uniform(33, 3 * vertices);
    let positions: Vec<f64> = places
        .chunks(3)
        .flat_map(|p| p.iter().copied().chain(std::iter::once(1.0)).collect::<Vec<f64>>())
        .collect();
    let weight = |k: usize| if k % bones == (k / bones) % bones { 1.0 } else { 0.0 };
    let weights: Vec<f64> = (0..vertices * bones).map(weight).collect();
    vec![
        ints(&[bones], (0..bones).map(parent).collect()),
        Value::f64_array(&[bones, 4, 4], &rigid(31)),
        Value::f64_array(&[bones, 4, 4], &rigid(32)),
        Value::f64_array(&[vertices, 4], &positions),
        Value::f64_array(&[vertices, bones], &weights),
        Value::Scalar(ScalarValue::Bool(false)),
        ints(&[triangles, 3], (0..3 * triangles).map(|k| (k * 7 % vertices) as i64).collect()),
        ints(&[n], (0..n).map(|k| (k % triangles) as i64).collect()),
        uniform_array(34, &[n, 3]),
        uniform_array(35, &[n, 2]),
        uniform_array(36, &[26]),
    ]
}

fn lstm(c: usize) -> Vec<Value> {
    let (layers, bits) = (2, 14);
    let sequence: Vec<f64> =
        uniform(44, c * bits).into_iter().map(|x| if x < 0.5 { 0.0 } else { 1.0 }).collect();
    vec![
        uniform_array(41, &[2 * layers, 4 * bits]),
        uniform_array(42, &[3, bits]),
        uniform_array(43, &[2 * layers, bits]),
        Value::f64_array(&[c, bits], &sequence),
    ]
}

fn kmeans(n: usize) -> Vec<Value> {
    vec![uniform_array(101, &[n, 4]), uniform_array(100, &[8, 4])]
}

/// The work grows as the factorial of the matrix's size.
fn det(n: usize) -> Vec<Value> {
    let l = if n <= 32 { 4 } else { 5 };
    vec![uniform_array(105, &[l, l])]
}

fn logreg(n: usize) -> Vec<Value> {
    let labels: Vec<f64> = uniform(7, n).into_iter().map(|x| if x < 0.5 { 1.0 } else { 0.0 }).collect();
    vec![uniform_array(5, &[n, 6]), Value::f64s(&labels), uniform_array(6, &[6])]
}
