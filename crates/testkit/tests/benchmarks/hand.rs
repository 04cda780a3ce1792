//! HAND of ADBench: the two test inputs with the small model.

use crate::problem::{Numbers, Problem, Reference, data_folder, norm};
use pullback_core::{Array, Buffer, Value};
use pullback_prim::ScalarValue;

pub(crate) const TESTS: &[(&str, fn())] =
    &[("adbench::hand::simple_test", simple), ("adbench::hand::complicated_test", complicated)];

struct Model {
    /// By field name.
    fields: Vec<(&'static str, Value)>,
    triangles: Value,
}

fn read_model() -> Model {
    let read = |name: &str| std::fs::read_to_string(data_folder().join("hand/model").join(name)).expect(name);
    let fields = |line: &str| line.split(':').map(|w| w.trim().to_string()).collect::<Vec<_>>();
    let number = |w: &String| w.parse::<f64>().expect("a number");
    let bones: Vec<Vec<String>> =
        read("bones.txt").lines().filter(|l| !l.trim().is_empty()).map(fields).collect();
    let parents: Vec<i64> = bones.iter().map(|b| b[1].parse().expect("a parent")).collect();
    let matrices =
        |from: usize| bones.iter().flat_map(|b| b[from..from + 16].iter().map(number)).collect::<Vec<_>>();
    let n = bones.len();
    let vertices: Vec<Vec<String>> =
        read("vertices.txt").lines().filter(|l| !l.trim().is_empty()).map(fields).collect();
    let mut positions = Vec::new();
    let mut weights = vec![0.0; vertices.len() * n];
    for (v, line) in vertices.iter().enumerate() {
        positions.extend(line[..3].iter().map(number));
        positions.push(1.0);
        let count: usize = line[8].parse().expect("a count");
        for k in 0..count {
            let bone: usize = line[9 + 2 * k].parse().expect("a bone");
            weights[v * n + bone] = number(&line[10 + 2 * k]);
        }
    }
    let triangles: Vec<i64> = read("triangles.txt")
        .lines()
        .filter(|l| !l.trim().is_empty())
        .flat_map(fields)
        .map(|w| w.parse().expect("a vertex"))
        .collect();
    let shape = vec![triangles.len() / 3, 3];
    Model {
        fields: vec![
            ("m.parents", Value::i64s(&parents)),
            ("m.base_relatives", Value::f64_array(&[n, 4, 4], &matrices(2))),
            ("m.inverse_base_absolutes", Value::f64_array(&[n, 4, 4], &matrices(18))),
            ("m.base_positions", Value::f64_array(&[vertices.len(), 4], &positions)),
            ("m.weights", Value::f64_array(&[vertices.len(), n], &weights)),
            ("m.is_mirrored", Value::Scalar(ScalarValue::Bool(false))),
        ],
        triangles: Value::Array(Array::new(shape, Buffer::I64(triangles))),
    }
}

/// The model as a message of GradBench holds it, with the fields that nothing reads.
pub(crate) fn message() -> serde_json::Value {
    let model = read_model();
    let mut fields = serde_json::Map::new();
    for (name, value) in model.fields.iter().chain([&("m.triangles", model.triangles)]) {
        fields.insert(name["m.".len()..].to_string(), nested(value));
    }
    fields.insert("bone_count".into(), 22.into());
    fields.insert("bone_names".into(), vec!["wrist"; 22].into());
    fields.into()
}

/// A value as lists of lists.
fn nested(value: &Value) -> serde_json::Value {
    match value {
        Value::Scalar(ScalarValue::Bool(b)) => (*b).into(),
        Value::Array(a) => (0..a.shape[0]).map(|i| nested(&a.at(&[i]))).collect(),
        Value::Scalar(ScalarValue::F64(x)) => (*x).into(),
        Value::Scalar(ScalarValue::I64(x)) => (*x).into(),
        other => panic!("{other:?}"),
    }
}

/// Values in the order of the entry's leaves.
fn ordered(problem: &Problem, named: Vec<(&'static str, Value)>) -> Vec<Value> {
    let find =
        |path: &str| named.iter().find(|(n, _)| *n == path).unwrap_or_else(|| panic!("no {path}")).1.clone();
    problem.entry.parameters.iter().map(|l| find(&l.path)).collect()
}

fn check(simple: bool) {
    let (file, header) = match simple {
        true => ("hand/test.txt", "hands hand/test.txt"),
        false => ("hand/hand_complicated.txt", "handc hand/hand_complicated.txt"),
    };
    let mut f = Numbers::read(file);
    let (n, _) = (f.size(), f.size());
    let (mut indices, mut points) = (Vec::new(), Vec::new());
    for _ in 0..n {
        indices.push(f.one() as i64);
        points.extend(f.take(3));
    }
    let us = if simple { Vec::new() } else { f.take(2 * n) };
    let theta = f.take(26);
    let model = read_model();
    let mut named = model.fields;
    named.push(("triangles", model.triangles));
    named.push(("correspondences", Value::i64s(&indices)));
    named.push(("points", Value::f64_array(&[n, 3], &points)));
    named.push(("theta", Value::f64s(&theta)));
    if !simple {
        named.push(("us", Value::f64_array(&[n, 2], &us)));
    }
    let reference = Reference::find(header);
    let name = if simple { "simple" } else { "complicated" };
    let problem = Problem::new("examples/hand.fut", name);
    let args = ordered(&problem, named);
    let errors = problem.run(&args)[0].floats();
    // `len`, norm, then the first six errors.
    crate::problem::close("norm of the errors", norm(&errors), reference.objective[1]);
    crate::problem::all_close("errors", &errors[..6], &reference.objective[2..8]);
    // The reference is column-major, as is the result: one row of [n][3] per column.
    let columns = Problem::new("examples/hand.fut", &format!("{name}_jacobian"));
    reference.check_gradient(&columns.run(&args)[0].floats());
    // Reverse mode gives the same columns, transposed.
    let wrt = if simple { "theta" } else { "us,theta" };
    let jacobian = columns.run(&args)[0].floats();
    let rows = errors.len();
    for row in [0, rows - 1] {
        let mut seed = vec![0.0; rows];
        seed[row] = 1.0;
        let seed = Value::f64_array(&[n, 3], &seed);
        let results = problem.derivative(pullback_driver::Kind::Vjp, wrt, &args, &[seed]);
        let theta_bar = results.last().expect("a cotangent").floats();
        let offset = if simple { 0 } else { 2 };
        let column = |k: usize| jacobian[(k + offset) * rows + row];
        let expected: Vec<f64> = (0..26).map(column).collect();
        crate::problem::all_close("a row by reverse mode", &theta_bar, &expected);
    }
}

fn simple() {
    check(true);
}

fn complicated() {
    check(false);
}
