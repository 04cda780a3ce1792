//! The small programs, at sizes the interpreter can take. Reference values are those of an independent numpy program
//! (closed-form gradients or complex steps) unless a test says otherwise.

#![allow(clippy::excessive_precision, reason = "golden numbers stand as their programs printed them")]

use crate::golden;
use crate::problem::{Problem, all_close, close, norm};
use pullback_core::Value;
use pullback_driver::Kind;
use pullback_testkit::problems::uniform as u;

pub(crate) const TESTS: &[(&str, fn())] = &[
    ("small::generator", generator),
    ("small::dot", dot),
    ("small::matvec", matvec),
    ("small::logistic_regression_and_hessian_vector", logistic_regression),
    ("small::kmeans", kmeans),
    ("small::stencil", stencil),
    ("small::rotate_vec_by_quat", rotate),
    ("small::particles", particles),
    ("gradbench::llsq", llsq),
    ("gradbench::lse", lse),
    ("gradbench::ode", ode),
    ("gradbench::det", det),
];

/// `n` numbers in [-1, 1).
fn sym(s: u32, n: usize) -> Vec<f64> {
    u(s, n).into_iter().map(|x| 2.0 * x - 1.0).collect()
}

fn generator() {
    assert_eq!(u(40, 2), [0.5233170131687075, 0.9588008313439786]);
}

fn dot() {
    let problem = Problem::new("benches/programs/dot.fut", "dot");
    let (a, b) = (sym(1, 1000), sym(2, 1000));
    let (value, g) = problem.gradient("a,b", &[Value::f64s(&a), Value::f64s(&b)]);
    assert!((value + 3.1527175444887998).abs() < 1e-12);
    assert_eq!(g[0].floats(), b);
    assert_eq!(g[1].floats(), a);
    close("|da|", norm(&b), 18.59528244885687);
}

/// At 1000 x 1000 the closed form has reference values; a smaller size is compared with the closed form itself.
fn matvec() {
    let (n, m) = (60, 40);
    let (a, v) = (sym(3, n * m), sym(4, m));
    let y: Vec<f64> = a.chunks(m).map(|row| row.iter().zip(&v).map(|(x, y)| x * y).sum()).collect();
    let args = [Value::f64_array(&[n, m], &a), Value::f64s(&v)];
    let (value, g) = Problem::new("benches/programs/matvec.fut", "squares").gradient("a,v", &args);
    close("value", value, y.iter().map(|x| x * x).sum());
    let da: Vec<f64> = y.iter().flat_map(|y| v.iter().map(move |v| 2.0 * y * v)).collect();
    all_close("da", &g[0].floats(), &da);
    let dv: Vec<f64> = (0..m).map(|j| (0..n).map(|i| 2.0 * y[i] * a[i * m + j]).sum()).collect();
    all_close("dv", &g[1].floats(), &dv);
    let (_, g) = Problem::new("benches/programs/matvec.fut", "total").gradient("a", &args);
    assert_eq!(g[0].floats(), v.repeat(n), "every row of the gradient is v");
}

/// Against the closed form, at a size the interpreter takes in no time.
fn logistic_regression() {
    let (n, d) = (300, 12);
    let (x, s) = (sym(5, n * d), sym(8, d));
    let w: Vec<f64> = sym(6, d).into_iter().map(|x| 0.1 * x).collect();
    let y: Vec<f64> = u(7, n).into_iter().map(|x| if x < 0.5 { 1.0 } else { 0.0 }).collect();
    let rows: Vec<&[f64]> = x.chunks(d).collect();
    let inner = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f64>();
    let sigma = |z: f64| 1.0 / (1.0 + (-z).exp());
    let combine = |c: &dyn Fn(usize) -> f64, v: &[f64]| -> Vec<f64> {
        (0..d).map(|j| (0..n).map(|i| c(i) * rows[i][j]).sum::<f64>() / n as f64 + 0.001 * v[j]).collect()
    };
    let gradient = combine(&|i| sigma(inner(rows[i], &w)) - y[i], &w);
    let hessian_vector = combine(
        &|i| {
            let p = sigma(inner(rows[i], &w));
            p * (1.0 - p) * inner(rows[i], &s)
        },
        &s,
    );
    let args = [Value::f64_array(&[n, d], &x), Value::f64s(&y), Value::f64s(&w), Value::f64s(&s)];
    let (_, g) = Problem::new("examples/logreg.fut", "loss").gradient("w", &args[..3]);
    all_close("gradient", &g[0].floats(), &gradient);
    let nested = Problem::new("examples/logreg.fut", "gradient").run(&args[..3]);
    all_close("gradient in the language", &nested[0].floats(), &gradient);
    let hv = Problem::new("examples/logreg.fut", "hessian_vector").run(&args);
    all_close("Hessian-vector product", &hv[0].floats(), &hessian_vector);

    // Where every fit begins: all scores are 0, where a softplus written with max and abs has a kink.
    let zero = vec![0.0; d];
    let gradient = combine(&|i| 0.5 - y[i], &zero);
    let hessian_vector = combine(&|i| 0.25 * inner(rows[i], &s), &s);
    let args = [args[0].clone(), args[1].clone(), Value::f64s(&zero), args[3].clone()];
    let (_, g) = Problem::new("examples/logreg.fut", "loss").gradient("w", &args[..3]);
    all_close("gradient at 0", &g[0].floats(), &gradient);
    let hv = Problem::new("examples/logreg.fut", "hessian_vector").run(&args);
    all_close("Hessian-vector product at 0", &hv[0].floats(), &hessian_vector);
}

fn kmeans() {
    let points = u(101, 300);
    let args = [Value::f64_array(&[100, 3], &points), Value::f64_array(&[5, 3], &points[285..])];
    let (value, g) = Problem::new("examples/kmeans.fut", "cost").gradient("centroids", &args);
    close("cost", value, golden::kmeans::COST);
    close("norm", norm(&g[0].floats()), 28.96669580703357);
    let direction = Problem::new("examples/kmeans.fut", "direction").run(&args)[0].floats();
    all_close("direction", &direction, &golden::kmeans::DIRECTION);
}

fn stencil() {
    let problem = Problem::new("benches/programs/stencil.fut", "loss");
    let args = [Value::f64_array(&[16, 16], &sym(50, 256)), Value::i64(10)];
    let (value, g) = problem.gradient("u", &args);
    let g = g[0].floats();
    close("loss", value, 24.135563149386929);
    close("norm", norm(&g), 10.14971893523144);
    close("sum", g.iter().sum(), 7.092516796043378);
    close("first", g[0], 1.680736733600497);
    close("last", g[255], -1.943771098740399);
}

/// By hand: all numbers are integers.
fn rotate() {
    let problem = Problem::new("benches/programs/rotate.fut", "rotate_vec");
    let paths: Vec<&str> = problem.entry.parameters.iter().map(|l| l.path.as_str()).collect();
    let value = |path: &str| match path {
        "v.x" => 1.0,
        "v.y" => 2.0,
        "v.z" => 3.0,
        "q.x" => 4.0,
        "q.y" => 5.0,
        "q.z" => 6.0,
        "q.w" => 7.0,
        other => panic!("unexpected {other}"),
    };
    let order = ["v.x", "v.y", "v.z", "q.x", "q.y", "q.z", "q.w"];
    let args: Vec<Value> = paths.iter().map(|p| Value::f64(value(p))).collect();
    let out: Vec<f64> = problem.run(&args).iter().flat_map(Value::floats).collect();
    assert_eq!(out, [270.0, 180.0, 342.0]);
    let rows = [
        [4.0, -44.0, 118.0, 64.0, 48.0, -16.0, 20.0],
        [124.0, 22.0, 4.0, -48.0, 64.0, 20.0, 16.0],
        [-22.0, 116.0, 44.0, 16.0, -20.0, 64.0, 48.0],
    ];
    for (k, row) in rows.iter().enumerate() {
        let seeds: Vec<Value> = (0..3).map(|i| Value::f64(if i == k { 1.0 } else { 0.0 })).collect();
        let results = problem.derivative(Kind::Vjp, "v,q", &args, &seeds);
        let bars: Vec<f64> = results[3..].iter().flat_map(Value::floats).collect();
        for (path, bar) in paths.iter().zip(bars) {
            let j = order.iter().position(|p| p == path).expect("a known path");
            assert_eq!(bar, row[j], "row {k}, {path}");
        }
    }
}

fn particles() {
    let problem = Problem::new("benches/programs/particles.fut", "product");
    let column = |path: &str| -> Value {
        match path.rsplit('.').next() {
            Some("px") => Value::f64s(&[0.5, 1.0, 1.5, 2.0]),
            Some("py") => Value::f64s(&[0.1; 4]),
            _ => Value::f64s(&[1.0; 4]),
        }
    };
    let mut args: Vec<Value> = problem.entry.parameters[..4].iter().map(|l| column(&l.path)).collect();
    args.push(Value::i64(1000));
    let (value, g) = problem.gradient("particles", &args);
    close("value", value, 0.0010676233512900797);
    let all: Vec<f64> = g.iter().flat_map(Value::floats).collect();
    close("norm", norm(&all), 0.0008148159652963078);
    close("sum", all.iter().sum(), 0.002974629513510946);
}

fn llsq() {
    let problem = Problem::new("examples/llsq.fut", "primal");
    let x = Value::f64s(&u(102, 8));
    let (value, g) = problem.gradient("x", &[x.clone(), Value::i64(16)]);
    close("value", value, golden::llsq::VALUE_16);
    all_close("gradient", &g[0].floats(), &golden::llsq::GRADIENT_16);
    // An odd number of points meets the sign function at zero.
    let (value, g) = problem.gradient("x", &[x, Value::i64(17)]);
    close("value", value, golden::llsq::VALUE_17);
    all_close("gradient", &g[0].floats(), &golden::llsq::GRADIENT_17);
}

fn lse() {
    let problem = Problem::new("examples/lse.fut", "primal");
    let (value, g) = problem.gradient("x", &[Value::f64s(&u(103, 2500))]);
    let g = g[0].floats();
    close("value", value, golden::lse::VALUE);
    close("norm", norm(&g), golden::lse::NORM);
    close("first", g[0], golden::lse::FIRST);
    close("last", g[2499], golden::lse::LAST);
    let wide: Vec<f64> = u(103, 2500).into_iter().map(|x| 200.0 * x - 100.0).collect();
    let (value, g) = problem.gradient("x", &[Value::f64s(&wide)]);
    let g = g[0].floats();
    close("value", value, golden::lse::WIDE_VALUE);
    close("norm", norm(&g), golden::lse::WIDE_NORM);
    close("first", g[0], golden::lse::WIDE_FIRST);
    close("last", g[2499], golden::lse::WIDE_LAST);
}

fn ode() {
    let problem = Problem::new("examples/ode.fut", "gradient");
    let g = problem.run(&[Value::f64s(&u(104, 4)), Value::i64(5)])[0].floats();
    all_close("gradient", &g, &golden::ode::GRADIENT_4);
    let g = problem.run(&[Value::f64s(&u(104, 8)), Value::i64(10)])[0].floats();
    all_close("gradient", &g, &golden::ode::GRADIENT_8);
    let g = problem.run(&[Value::f64s(&u(104, 8)), Value::i64(1)])[0].floats();
    assert_eq!(g, [0.0; 8], "after one step nothing has reached the last component");
}

/// Reverse mode of a recursive function, and one cofactor by forward mode.
fn det() {
    let problem = Problem::new("examples/det.fut", "primal");
    let a = Value::f64_array(&[5, 5], &u(105, 25));
    let (value, g) = problem.gradient("a", std::slice::from_ref(&a));
    close("det", value, golden::det::VALUE_5);
    all_close("cofactors", &g[0].floats(), &golden::det::GRADIENT_5);
    let mut hot = vec![0.0; 25];
    hot[1] = 1.0;
    let dots =
        problem.derivative(Kind::Jvp, "a", std::slice::from_ref(&a), &[Value::f64_array(&[5, 5], &hot)]);
    close("cofactor by forward mode", dots[1].floats()[0], golden::det::GRADIENT_5[1]);
    let a = Value::f64_array(&[6, 6], &u(106, 36));
    let (value, g) = problem.gradient("a", std::slice::from_ref(&a));
    let trace: f64 = g[0].floats().iter().zip(u(106, 36)).map(|(c, x)| c * x).sum();
    close("Euler: the determinant has degree 6", trace, 6.0 * value);
}
