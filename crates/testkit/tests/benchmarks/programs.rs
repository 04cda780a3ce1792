//! The small programs with their gradients in the language, at the sizes that are timed. Reference values are those of an independent
//! numpy program (closed forms, complex steps) unless a test says otherwise. Compiled, since the interpreter would take minutes.

#![allow(clippy::excessive_precision, reason = "golden numbers stand as their programs printed them")]

use crate::problem::{Problem, all_close, close, norm};
use pullback_core::{Array, Buffer, Value};
use pullback_testkit::problems::uniform as u;

pub(crate) const TESTS: &[(&str, fn())] = &[
    ("programs::mult_and_dot", products),
    ("programs::matvec", matvec),
    ("programs::rotate_vec_by_quat", rotate),
    ("programs::neural", neural),
    ("programs::particles", particles),
    ("programs::logistic_regression", logistic_regression),
    ("programs::mlp", mlp),
    ("programs::mlp in single precision", mlp_single),
    ("programs::stencil", stencil),
];

/// `n` numbers in [-1, 1).
fn sym(s: u32, n: usize) -> Vec<f64> {
    u(s, n).into_iter().map(|x| 2.0 * x - 1.0).collect()
}

/// The numbers of an entry point's results, one list for each leaf.
fn results(file: &str, entry: &str, args: &[Value]) -> Vec<Vec<f64>> {
    Problem::compiled(file, entry).run(args).iter().map(Value::floats).collect()
}

/// The sum of a list is only as good as the size of its elements allows.
fn sums_to(what: &str, xs: &[f64], sum: f64) {
    let got: f64 = xs.iter().sum();
    let scale = norm(xs) * (xs.len() as f64).sqrt();
    assert!((got - sum).abs() <= 1e-10 * scale, "{what}: the sum {got} is not {sum}");
}

/// The numbers 3, 5, 7, .. of the literature's inputs.
fn odd(n: usize) -> Vec<f64> {
    (1..=n).map(|i| (2 * i + 1) as f64).collect()
}

/// By hand: all numbers are integers, and sums of i (2 i + 1) have a closed form.
fn products() {
    let found = results("benches/programs/mult.fut", "gradient", &[Value::f64(3.0), Value::f64(4.0)]);
    assert_eq!(found, [[12.0], [4.0], [3.0]]);
    for (n, value) in [(5, 125.0), (1000, 668_167_500.0)] {
        let (a, b): (Vec<f64>, _) = ((1..=n).map(|i| i as f64).collect(), odd(n));
        let found = results("benches/programs/dot.fut", "gradient", &[Value::f64s(&a), Value::f64s(&b)]);
        assert_eq!(found, [vec![value], b, a]);
    }
    let (a, b) = (sym(1, 1000), sym(2, 1000));
    let found = results("benches/programs/dot.fut", "gradient", &[Value::f64s(&a), Value::f64s(&b)]);
    assert!((found[0][0] + 3.1527175444887998).abs() < 1e-12);
    assert_eq!(found[1..], [b, a]);
}

fn matvec() {
    let file = "benches/programs/matvec.fut";
    for (n, value) in [(3, 237.0), (32, 18_017_792.0)] {
        let m: Vec<f64> = (1..=n * n).map(|i| i as f64).collect();
        let found = results(file, "total", &[Value::f64_array(&[n, n], &m), Value::f64s(&odd(n))]);
        assert_eq!(found, [[value]], "integers, by the specification of the literature's program");
    }
    let (n, m) = (1000, 1000);
    let args = [Value::f64_array(&[n, m], &sym(3, n * m)), Value::f64s(&sym(4, m))];
    let found = results(file, "gradient", &args);
    close("value", found[0][0], 107361.83544253407);
    close("|dM|", norm(&found[1]), 11992.86487155435);
    sums_to("dM", &found[1], 4416.487348513115);
    let first = [-4.56227253654995, -22.15092323409243, 17.76836400833179, 14.11994982923806];
    first.iter().zip(&found[1]).for_each(|(want, got)| close("dM", *got, *want));
    close("last of dM", found[1][n * m - 1], 5.845186916684051);
    close("|dv|", norm(&found[2]), 16567.42316390368);
    sums_to("dv", &found[2], -1204.572683344663);
    let first = [-373.9551643733635, -725.66406693353, -239.9007110190663, 36.90751820276981];
    first.iter().zip(&found[2]).for_each(|(want, got)| close("dv", *got, *want));
    close("last of dv", found[2][m - 1], -571.2437456512007);
}

/// Two points by hand; the first has integers only.
fn rotate() {
    type Rows = [[f64; 7]; 3];
    let points: [([f64; 7], [f64; 3], Rows); 2] = [
        (
            [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0],
            [270.0, 180.0, 342.0],
            [
                [4.0, -44.0, 118.0, 64.0, 48.0, -16.0, 20.0],
                [124.0, 22.0, 4.0, -48.0, 64.0, 20.0, 16.0],
                [-22.0, 116.0, 44.0, 16.0, -20.0, 64.0, 48.0],
            ],
        ),
        (
            [5.5, 6.6, 7.7, 1.1, 2.2, 3.3, 4.4],
            [71.874, 303.468, 279.51],
            [
                [4.84, -24.2, 26.62, 91.96, 58.08, -77.44, 38.72],
                [33.88, 12.1, 4.84, -58.08, 91.96, 38.72, 77.44],
                [-12.1, 24.2, 24.2, 77.44, -38.72, 91.96, 58.08],
            ],
        ),
    ];
    let problem = Problem::compiled("benches/programs/rotate.fut", "jacobian");
    let order = ["v.x", "v.y", "v.z", "q.x", "q.y", "q.z", "q.w"];
    let place = |path: &str| order.iter().position(|p| *p == path).expect("a known path");
    let places: Vec<usize> = problem.entry.parameters.iter().map(|leaf| place(&leaf.path)).collect();
    for (point, out, rows) in points {
        let args: Vec<Value> = places.iter().map(|p| Value::f64(point[*p])).collect();
        let found: Vec<Vec<f64>> = problem.run(&args).iter().map(Value::floats).collect();
        let value: Vec<f64> = found[..3].concat();
        all_close("value", &value, &out);
        for (column, p) in found[3..].iter().zip(&places) {
            let want: Vec<f64> = rows.iter().map(|row| row[*p]).collect();
            all_close(order[*p], column, &want);
        }
    }
}

/// Weights sin (i + j), biases and input sin (0.41 i).
fn network() -> [Value; 5] {
    let matrix = |m: usize, n: usize| {
        let cells: Vec<f64> = (0..m).flat_map(|i| (0..n).map(move |j| ((i + j) as f64).sin())).collect();
        Value::f64_array(&[m, n], &cells)
    };
    let vector = |n: usize| Value::f64s(&(0..n).map(|i| (0.41 * i as f64).sin()).collect::<Vec<_>>());
    [matrix(100, 50), vector(100), matrix(50, 100), vector(50), vector(50)]
}

fn neural() {
    let problem = Problem::compiled("benches/programs/neural.fut", "weighted");
    let paths: Vec<&str> = problem.entry.parameters.iter().map(|leaf| leaf.path.as_str()).collect();
    assert_eq!(paths, ["first.weights", "first.bias", "second.weights", "second.bias", "x"]);
    let (value, g) = problem.gradient("", &network());
    let g: Vec<Vec<f64>> = g.iter().map(Value::floats).collect();
    close("value", value, 0.5234957939234065);
    close("|g|", norm(&g.concat()), 2.9848141412194606);
    sums_to("gradient", &g.concat(), -0.3427644715235);
    close("|dW1|", norm(&g[0]), 0.17795460973643737);
    close("|dx|", norm(&g[4]), 0.9004948243080411);
    close("dx[49]", g[4][49], -0.1689420766313332);
    close("dx[3]", g[4][3], 0.01730316913094636);
    // The sum of all shares is 1, whatever the weights are.
    let found = results("benches/programs/neural.fut", "gradient", &network());
    assert!((found[0][0] - 1.0).abs() < 1e-14);
    assert_eq!(found[1..].iter().map(Vec::len).sum::<usize>(), 10_200);
    assert!(found[1..].iter().flatten().all(|x| x.abs() < 1e-13));
}

/// Closed forms: the final place of a coordinate is a p + b v.
fn particles() {
    let problem = Problem::compiled("benches/programs/particles.fut", "gradient");
    let paths: Vec<&str> = problem.entry.parameters.iter().map(|leaf| leaf.path.as_str()).collect();
    let column = |path: &str| match path {
        "particles.px" => [0.5, 1.0, 1.5, 2.0],
        "particles.py" => [0.1; 4],
        _ => [1.0; 4],
    };
    let mut args: Vec<Value> = paths[..4].iter().map(|p| Value::f64s(&column(p))).collect();
    args.push(Value::i64(1000));
    let found: Vec<Vec<f64>> = problem.run(&args).iter().map(Value::floats).collect();
    close("value", found[0][0], 0.0010676233512900797);
    close("norm", norm(&found[1..].concat()), 0.0008148159652963078);
    sums_to("gradient", &found[1..].concat(), 0.002974629513510946);
    for (path, got) in paths.iter().zip(&found[1..]) {
        let (first, last) = match *path {
            "particles.px" => (0.0001243122891987404, None),
            "particles.py" => (0.0001741838697798096, None),
            "particles.vx" => (0.0001115154763240939, None),
            _ => (0.0001562532339454835, Some(0.0003240198250256945)),
        };
        close(path, got[0], first);
        last.into_iter().for_each(|last| close(path, got[3], last));
    }
    args[4] = Value::i64(500);
    close("500 steps", problem.run(&args)[0].floats()[0], 0.07740755531133967);
}

fn logistic_regression() {
    let (n, d) = (10_000, 100);
    let labels: Vec<f64> = u(7, n).into_iter().map(|x| if x < 0.5 { 1.0 } else { 0.0 }).collect();
    let w: Vec<f64> = sym(6, d).into_iter().map(|x| 0.1 * x).collect();
    let args = [
        Value::f64_array(&[n, d], &sym(5, n * d)),
        Value::f64s(&labels),
        Value::f64s(&w),
        Value::f64s(&sym(8, d)),
    ];
    let file = "examples/logreg.fut";
    close("value", results(file, "loss", &args[..3])[0][0], 0.70541091438327164);
    let g = results(file, "gradient", &args[..3]).concat();
    close("|g|", norm(&g), 0.05191893043083399);
    sums_to("gradient", &g, -0.02024244670253841);
    let first = [0.006784221551093894, -0.006351550855032308, -0.005143334613728244, 0.004673020449027884];
    first.iter().zip(&g).for_each(|(want, got)| close("gradient", *got, *want));
    close("last", g[99], -0.001702147905977508);
    let h = results(file, "hessian_vector", &args).concat();
    close("|Hs|", norm(&h), 0.4881321084326559);
    sums_to("Hs", &h, -0.2288353379283668);
    let first = [-0.02317982318173126, 0.0729513366013245, 0.01134164448970864, 0.08881413923100645];
    first.iter().zip(&h).for_each(|(want, got)| close("Hs", *got, *want));
    close("last", h[99], -0.0644125744603592);
}

/// What is known of a derivative: its name, norm, sum, first numbers and last number.
type Summary = (&'static str, f64, f64, [f64; 4], f64);

/// In the order of the network's fields.
const MLP: [Summary; 6] = [
    (
        "w0",
        0.2422782926084374,
        2.042154827752726,
        [-9.05740453271174e-05, -0.0002504650839791514, -0.0005031844309296759, 0.0004518593706819393],
        -0.0001677733726074968,
    ),
    (
        "b0",
        0.01509856754287567,
        0.005486108737907298,
        [-0.000677311851013265, 0.0007867280381999493, 0.00167475265510892, 0.0001505243171278016],
        0.0003986454345524803,
    ),
    (
        "w1",
        0.1538531141250391,
        0.4750124571042934,
        [-0.000771597660015571, -0.001569282150820624, -0.002629484684381056, -0.001571317256150591],
        7.535760621166324e-05,
    ),
    (
        "b1",
        0.03411349898558971,
        0.01262391867962345,
        [-0.003615920146015401, -0.003397761602341295, 0.001715494718926396, 0.003783539296360613],
        -0.001449652393819264,
    ),
    (
        "w2",
        0.08806218540251752,
        0.0,
        [-0.002468648608421006, -0.002043194982314976, 0.0004620726779977449, 9.832907118311713e-05],
        -0.001805953511876914,
    ),
    (
        "b2",
        0.0777752494250373,
        -5.204170427930421e-18,
        [-0.01805777495609113, -0.02234937425259085, -0.0115801881348935, 0.05381570220397136],
        -0.007196056283491055,
    ),
];

/// The network 784-300-100-10 and its batch of 128, as arrays that `make` gives.
fn mlp_arguments(file: &str, make: &dyn Fn(&[usize], &[f64]) -> Value) -> Vec<Value> {
    let sizes = [784, 300, 100, 10];
    let problem = Problem::new(file, "gradient");
    let one = |path: &str| -> Value {
        let layer = path.chars().last().and_then(|c| c.to_digit(10)).map_or(0, |k| k as usize);
        let (n, m) = (sizes[layer], sizes[layer + 1]);
        let scaled = |s: u32, count: usize, by: f64| -> Vec<f64> {
            sym(s + layer as u32, count).into_iter().map(|x| by * x).collect()
        };
        match path {
            "x" => make(&[128, 784], &u(40, 128 * 784)),
            "labels" => {
                let labels = u(41, 128).into_iter().map(|x| (10.0 * x) as i64).collect();
                Value::Array(Array::new(vec![128], Buffer::I64(labels)))
            }
            weights if weights.starts_with("net.w") => {
                make(&[m, n], &scaled(20, n * m, 1.0 / (n as f64).sqrt()))
            }
            _ => make(&[m], &scaled(30, m, 0.1)),
        }
    };
    problem.entry.parameters.iter().map(|leaf| one(&leaf.path)).collect()
}

fn mlp() {
    let args = mlp_arguments("benches/programs/mlp.fut", &Value::f64_array);
    let found = results("benches/programs/mlp.fut", "gradient", &args);
    close("loss", found[0][0], 2.3039549326707869);
    for ((name, size, sum, first, last), g) in MLP.iter().zip(&found[1..]) {
        close(name, norm(g), *size);
        sums_to(name, g, *sum);
        let most = g.iter().fold(0.0_f64, |m, x| m.max(x.abs()));
        let near = |got: f64, want: f64| assert!((got - want).abs() <= 1e-10 * most, "{name}: {got} {want}");
        first.iter().zip(g).for_each(|(want, got)| near(*got, *want));
        near(g[g.len() - 1], *last);
    }
}

/// The numbers of double precision, as near as single precision has to be.
fn mlp_single() {
    let single = |shape: &[usize], xs: &[f64]| {
        let rounded = xs.iter().map(|x| *x as f32).collect();
        Value::Array(Array::new(shape.to_vec(), Buffer::F32(rounded)))
    };
    let file = "benches/programs/mlp_f32.fut";
    let found = results(file, "gradient", &mlp_arguments(file, &single));
    let near = |what: &str, got: f64, want: f64, scale: f64| {
        assert!((got - want).abs() <= 1e-5 * scale, "{what}: {got} is not {want}");
    };
    near("loss", found[0][0], 2.3039549326707869, 2.3);
    for ((name, size, _, first, last), g) in MLP.iter().zip(&found[1..]) {
        near(name, norm(g), *size, *size);
        first.iter().zip(g).for_each(|(want, got)| near(name, *got, *want, *size));
        near(name, g[g.len() - 1], *last, *size);
    }
}

fn stencil() {
    let expected = [
        (16, 10, 24.135563149386929, 10.14971893523144, 7.092516796043378, -1.943771098740399),
        (512, 100, 1060.8985830518668, 77.67530560534286, 910.2636268537848, -0.3553500873968005),
        (128, 1000, 266.26642791530912, 47.34309532613335, 207.2326275232348, 0.7715703612193465),
    ];
    for (n, steps, loss, size, sum, last) in expected {
        let args = [Value::f64_array(&[n, n], &sym(50, n * n)), Value::i64(steps)];
        let found = results("benches/programs/stencil.fut", "gradient", &args);
        close("loss", found[0][0], loss);
        close("norm", norm(&found[1]), size);
        sums_to("gradient", &found[1], sum);
        close("first", found[1][0], 1.680736733600497);
        close("last", found[1][n * n - 1], last);
    }
}
