//! The programs of the texts, by all stages of dual numbers and all evaluators of delta terms: values and derivatives that stand there, in the reference
//! implementation's test-suite as closed forms, or are worked out by hand; the delta term of the authors' slides, binding by binding.

use pullback_ad::chad::dense::dense_vjp;
use pullback_ad::delta::c_let;
use pullback_ad::on_lambda::OnLambda;
use pullback_core::Value;
use pullback_interp::lambda::{Compiled, Options, run};
use pullback_lambda::read::read;
use pullback_testkit::native::near;
use pullback_testkit::stages::{EXPONENTIAL, all};

/// Value and cotangents of the last function of a program of lambda, for a cotangent of its result.
fn derivative(text: &str, algorithm: &OnLambda, args: &[Value], seed: &Value) -> Value {
    let mut program = read(text, None).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
    let f = program.funs.ids().next_back().expect("a function");
    let made = (algorithm.vjp)(&mut program, f).unwrap_or_else(|e| panic!("{}: {e}\n{text}", algorithm.id));
    let made = dense_vjp(&mut program, f, made);
    assert_eq!(pullback_lambda::check::check(&program), Ok(()), "{}\n{text}", algorithm.id);
    let args = args.iter().chain([seed]).cloned().collect();
    let out = run(&program, made, args, &Options::default());
    out.unwrap_or_else(|e| panic!("{}: {e}\n{text}", algorithm.id)).result
}

/// By every algorithm: the numbers of value and cotangents, to so many places.
fn check(text: &str, args: &[Value], seed: &Value, expected: &[f64], rounding: f64) {
    for algorithm in all() {
        check_by(algorithm, text, args, seed, expected, rounding);
    }
}

fn check_by(algorithm: &OnLambda, text: &str, args: &[Value], seed: &Value, expected: &[f64], rounding: f64) {
    let found = derivative(text, algorithm, args, seed).floats();
    let same = found.len() == expected.len() && near(&Value::f64s(expected), &Value::f64s(&found), rounding);
    assert!(same, "{}: {found:?} instead of {expected:?}\n{text}", algorithm.id);
}

fn numbers(xs: &[f64]) -> Vec<Value> {
    xs.iter().copied().map(Value::f64).collect()
}

/// Thesis and slides: values and gradients at a point.
#[test]
fn programs_of_the_thesis_and_the_slides() {
    let rows: &[(&str, &[f64], &[f64])] = &[
        // f(x) = x sin x + 10 x
        (
            "def f (x: f64): f64 = add.f64(mul.f64(x, sin.f64(x)), mul.f64(10.0f64, x))",
            &[0.7],
            &[7.450952381066384, 11.179607218336834],
        ),
        // ln x1 + x1 x2 - sin x2
        (
            "def f (x: f64, y: f64): f64 = sub.f64(add.f64(log.f64(x), mul.f64(x, y)), sin.f64(y))",
            &[2.0, 5.0],
            &[11.652071455223084, 5.5, 1.7163378145367738],
        ),
        // Fig. 4.4
        (
            "def f (x: f64): f64 = let y = exp.f64(x) in let z = log.f64(y) in add.f64(y, div.f64(sin.f64(z), cos.f64(z)))",
            &[0.4],
            &[1.9146179163794321, 2.6705788034522455],
        ),
        // x^2 + 3 x y
        (
            "def f (x: f64, y: f64): f64 = add.f64(mul.f64(x, x), mul.f64(3.0f64, mul.f64(x, y)))",
            &[2.0, 5.0],
            &[34.0, 19.0, 6.0],
        ),
        // atan2(a, b): (b, -a) / (a^2 + b^2)
        ("def f (a: f64, b: f64): f64 = atan2.f64(a, b)", &[3.0, 4.0], &[0.75f64.atan(), 0.16, -0.12]),
        // Functions that capture, and one that does not: 2.2.10.
        (
            "def f (x: f64): f64 = let g = fun y: f64 -> add.f64(y, 1.0f64) in
             let h = (let z = exp.f64(x) in fun y: f64 -> mul.f64(z, y)) in add.f64((g)(mul.f64(2.0f64, x)), (h)(add.f64(x, 1.0f64)))",
            &[0.5],
            &[4.473081906050192, 6.121803176750321],
        ),
    ];
    for (text, args, expected) in rows {
        check(text, &numbers(args), &Value::f64(1.0), expected, 1e-13);
    }
    // (x^2 z + 3 x y, x z^2 + 4 y^2), row by row.
    let text = "def f (x: f64, y: f64, z: f64): (f64, f64) =
      (add.f64(mul.f64(mul.f64(x, x), z), mul.f64(3.0f64, mul.f64(x, y))),
       add.f64(mul.f64(x, mul.f64(z, z)), mul.f64(4.0f64, mul.f64(y, y))))";
    let rows = [([1.0, 0.0], [29.0, 6.0, 4.0]), ([0.0, 1.0], [25.0, 24.0, 20.0])];
    for (seed, row) in rows {
        let expected = [[38.0, 86.0].as_slice(), row.as_slice()].concat();
        check(text, &numbers(&[2.0, 3.0, 5.0]), &Value::Tuple(numbers(&seed)), &expected, 1e-14);
    }
}

/// The closed forms of the reference implementation's test-suite, at a few points.
#[test]
fn closed_forms_of_the_reference_test_suite() {
    let (add, mul) =
        (|a: &str, b: &str| format!("add.f64({a}, {b})"), |a: &str, b: &str| format!("mul.f64({a}, {b})"));
    type Gradient = fn(f64, f64) -> [f64; 2];
    // Programs in x and y, and their gradients.
    let mut rows: Vec<(String, Gradient)> = vec![
        (format!("sqrt.f64({})", add(&mul("x", "x"), "1.0f64")), |x, _| [x / (x * x + 1.0).sqrt(), 0.0]),
        ("log.f64(x)".into(), |x, _| [1.0 / x, 0.0]),
        (
            add(&add("log.f64(x)", "exp.f64(y)"), &format!("exp.f64(log.f64({}))", mul("x", "y"))),
            |x, y| [1.0 / x + y, y.exp() + x],
        ),
        ("let a = add.f64(3.0f64, x) in mul.f64(x, a)".into(), |x, _| [2.0 * x + 3.0, 0.0]),
        (
            "let a = mul.f64(2.0f64, x) in let b = mul.f64(a, add.f64(x, a)) in let c = sub.f64(add.f64(a, b), 1.0f64) in sub.f64(mul.f64(x, c), b)".into(),
            |x, _| [18.0 * x * x - 8.0 * x - 1.0, 0.0],
        ),
        (
            "let a = mul.f64(2.0f64, x) in let b = mul.f64(a, add.f64(x, a)) in let c = sub.f64(add.f64(a, b), 1.0f64) in let d = add.f64(c, b) in sub.f64(mul.f64(x, c), d)".into(),
            |x, _| [18.0 * x * x - 20.0 * x - 3.0, 0.0],
        ),
        (
            "let f = fun z: f64 -> add.f64(mul.f64(x, z), y) in mul.f64((f)(y), (f)(x))".into(),
            |x, y| [3.0 * x * x * y + 2.0 * x * y + y * y, x.powi(3) + x * x + 2.0 * x * y + 2.0 * y],
        ),
        (
            // Partial application: h = g f.
            "let f = fun z: f64 -> add.f64(mul.f64(x, z), y) in let g = fun k: <f64 -> f64> -> fun u: f64 -> mul.f64((k)(u), (k)(x)) in let h = (g)(f) in (h)(y)".into(),
            |x, y| [3.0 * x * x * y + 2.0 * x * y + y * y, x.powi(3) + x * x + 2.0 * x * y + 2.0 * y],
        ),
        (
            "let f = fun z: f64 -> mul.f64(z, z) in let g = fun z: f64 -> add.f64(mul.f64(2.0f64, sub.f64(x, z)), y) in add.f64((g)((f)(y)), (f)((g)(x)))".into(),
            |_, y| [2.0, -2.0 * y + 1.0],
        ),
        ("if lt.f64(y, x) then mul.f64(x, y) else add.f64(x, y)".into(), |x, y| if x > y { [y, x] } else { [1.0, 1.0] }),
        (
            "let p = par(mul.f64(mul.f64(x, y), x), add.f64(add.f64(y, y), x)) in add.f64(p.0, p.1)".into(),
            |x, y| [2.0 * x * y + 1.0, x * x + 2.0],
        ),
    ];
    // A chain of sums to 89 x + 55 y, squared.
    let mut chain = String::new();
    for (k, (a, b)) in [("x", "y")].into_iter().map(|(a, b)| (a.to_string(), b.to_string())).enumerate() {
        let mut last = [a, b];
        for n in k + 1..=9 {
            chain += &format!("let c{n} = add.f64({}, {}) in ", last[0], last[1]);
            last = [format!("c{n}"), last[0].clone()];
        }
        chain += &mul(&last[0], &last[0]);
    }
    rows.push((chain, |x, y| {
        let last = 55.0 * x + 34.0 * y;
        [110.0 * last, 68.0 * last]
    }));
    for (body, gradient) in &rows {
        let text = format!("def f (x: f64, y: f64): f64 = {body}");
        for (x, y) in [(1.5, 0.75), (0.25, 2.0), (3.0, 2.5)] {
            for algorithm in all() {
                let out = derivative(&text, algorithm, &numbers(&[x, y]), &Value::f64(1.0)).floats();
                let (found, expected) = (Value::f64s(&out[1..]), Value::f64s(&gradient(x, y)));
                assert!(
                    near(&expected, &found, 1e-12),
                    "{}: {found:?} instead of {expected:?}\n{text}",
                    algorithm.id
                );
            }
        }
    }
}

/// Eight uses of each number ten levels deep: 8^10 calls without sharing. 1e-6 (2^10 x)^2.
#[test]
fn many_uses_of_shared_numbers() {
    let mut text = String::new();
    let mut x = "x".to_string();
    for k in 1..=10 {
        let mut sum = x.clone();
        for _ in 0..4 {
            sum = format!("add.f64({sum}, {x})");
        }
        for _ in 0..3 {
            sum = format!("sub.f64({sum}, {x})");
        }
        text += &format!("let x{k} = {sum} in ");
        x = format!("x{k}");
    }
    let text = format!("def f (x: f64): f64 = {text}mul.f64(1.0e-6f64, mul.f64({x}, {x}))");
    for algorithm in all().filter(|a| !EXPONENTIAL.contains(&a.id)) {
        let expected = [1e-6 * 2f64.powi(20) * 2.25, 1e-6 * 2f64.powi(21) * 1.5];
        check_by(algorithm, &text, &numbers(&[1.5]), &Value::f64(1.0), &expected, 1e-12);
    }
}

/// Functions that call each other; derivatives are products of the factors on the way.
#[test]
fn mutual_recursion() {
    let text = "def g (x: f64): f64 = if lt.f64(x, 1.0f64) then x else add.f64(@h(sub.f64(x, 1.0f64)), 2.0f64)
      def h (x: f64): f64 = if lt.f64(x, 10.0f64) then add.f64(@g(mul.f64(0.6f64, x)), 1.0f64) else add.f64(@g(mul.f64(0.1f64, x)), 2.0f64)
      def f (x: f64): f64 = @h(x)";
    for (x, value, slope) in [(0.5, 1.3, 0.6), (5.0, 7.12, 0.216), (50.0, 8.84, 0.036), (37.0, 8.372, 0.036)]
    {
        check(text, &numbers(&[x]), &Value::f64(1.0), &[value, slope], 1e-13);
    }
}

/// Sums as arguments and results: the cotangent has the alternative of the value; another one is an error.
#[test]
fn alternatives_as_arguments_and_results() {
    let text = "def f (s: {#one f64 i64 f64 | #two (i64, f64)}): f64 = match s {
        #one x i y -> mul.f64(convert.i64.f64(i), mul.f64(x, y)) | #two p -> add.f64(convert.i64.f64(p.0), p.1) }";
    let one = Value::Sum(0, vec![Value::f64(2.0), Value::i64(3), Value::f64(5.0)].into());
    check(text, &[one], &Value::f64(1.0), &[30.0, 15.0, 6.0], 1e-14);
    let two = Value::Sum(1, vec![Value::Tuple(vec![Value::i64(3), Value::f64(0.5)])].into());
    check(text, &[two], &Value::f64(1.0), &[3.5, 1.0], 1e-14);

    let text = "def f (x: f64): {#none | #some f64 f64} = if lt.f64(x, 0.0f64) then
      inject[{#none | #some f64 f64}, 0]() else inject[{#none | #some f64 f64}, 1](mul.f64(3.0f64, x), mul.f64(x, x))";
    let some = Value::Sum(1, numbers(&[1.0, 10.0]).into());
    check(text, &numbers(&[2.0]), &some, &[6.0, 4.0, 43.0], 1e-14);
    let none = Value::Sum(0, Vec::new().into());
    check(text, &numbers(&[-2.0]), &none, &[0.0], 1e-14);
    for algorithm in all() {
        let mut program = read(text, None).expect("a program");
        let f = program.funs.ids().next_back().expect("a function");
        let made = (algorithm.vjp)(&mut program, f).expect("every construct has a rule");
        let made = dense_vjp(&mut program, f, made);
        let wrong = run(&program, made, vec![Value::f64(2.0), none.clone()], &Options::default());
        assert!(wrong.is_err(), "{}: {wrong:?}", algorithm.id);
    }
}

/// Two walks of 300 rotations in parallel, and the sum of all: `2 cos A` for both, with `A` the sum of the angles.
#[test]
fn walks_in_parallel() {
    let walk = |x: &str, y: &str| {
        format!(
            "loop s = ({x}, {y}) for i < 300i64 do
               let a = add.f64(0.1f64, mul.f64(0.05f64, sin.f64(convert.i64.f64(add.i64(i, 1i64))))) in
               (sub.f64(mul.f64(s.0, cos.f64(a)), mul.f64(s.1, sin.f64(a))), add.f64(mul.f64(s.0, sin.f64(a)), mul.f64(s.1, cos.f64(a))))"
        )
    };
    let text = format!(
        "def f (x: f64, y: f64): f64 = let p = par({}, {}) in add.f64(add.f64(p.0.0, p.0.1), add.f64(p.1.0, p.1.1))",
        walk("x", "y"),
        walk("y", "x")
    );
    let angle: f64 = (1..=300).map(|i| 0.1 + 0.05 * f64::from(i).sin()).sum();
    let slope = 2.0 * angle.cos();
    let value = slope * 0.3 + slope * 0.8;
    for algorithm in all().filter(|a| !EXPONENTIAL.contains(&a.id)) {
        check_by(algorithm, &text, &numbers(&[0.3, 0.8]), &Value::f64(1.0), &[value, slope, slope], 1e-10);
    }
}

/// `rotate_vec_by_quat` of the slides as a sequence of bindings; `{}`: what is returned.
const ROTATE: &str = "def f (qx: f64, qy: f64, qz: f64, qw: f64, vx: f64, vy: f64, vz: f64): f64 =
  let x1 = mul.f64(qy, vx) in let x2 = mul.f64(qx, vy) in let x3 = sub.f64(x2, x1) in
  let x4 = mul.f64(qx, vz) in let x5 = mul.f64(qz, vx) in let x6 = sub.f64(x5, x4) in
  let x7 = mul.f64(qz, vy) in let x8 = mul.f64(qy, vz) in let x9 = sub.f64(x8, x7) in
  let x10 = 2.0f64 in let x11 = mul.f64(x10, qw) in
  let x12 = mul.f64(x11, x3) in let x13 = mul.f64(x11, x6) in let x14 = mul.f64(x11, x9) in
  let x15 = mul.f64(qz, qz) in let x16 = mul.f64(qy, qy) in let x17 = mul.f64(qx, qx) in
  let x18 = add.f64(x17, x16) in let x19 = add.f64(x18, x15) in let x20 = mul.f64(qw, qw) in
  let x21 = sub.f64(x20, x19) in
  let x22 = mul.f64(x21, vz) in let x23 = mul.f64(x21, vy) in let x24 = mul.f64(x21, vx) in
  let x25 = mul.f64(qz, vz) in let x26 = mul.f64(qy, vy) in let x27 = mul.f64(qx, vx) in
  let x28 = add.f64(x27, x26) in let x29 = add.f64(x28, x25) in
  let x30 = 2.0f64 in let x31 = mul.f64(x30, x29) in
  let x32 = mul.f64(x31, qz) in let x33 = mul.f64(x31, qy) in let x34 = mul.f64(x31, qx) in
  let x35 = add.f64(x32, x22) in let x36 = add.f64(x33, x23) in let x37 = add.f64(x34, x24) in
  let x38 = add.f64(x35, x12) in let x39 = add.f64(x36, x13) in let x40 = add.f64(x37, x14) in {}";

/// The bindings of the slides: `A` adds, `c.v` scales, a name alone is itself.
const BINDINGS: &str = "x1=A 5.5.qy 2.2.vx; x2=A 6.6.qx 1.1.vy; x3=A x2 -1.x1; x4=A 7.7.qx 1.1.vz; x5=A 5.5.qz 3.3.vx; x6=A x5 -1.x4;
  x7=A 6.6.qz 3.3.vy; x8=A 7.7.qy 2.2.vz; x9=A x8 -1.x7; x10=Zero; x11=A 4.4.x10 2.qw;
  x12=A -4.84.x11 8.8.x3; x13=A 9.68.x11 8.8.x6; x14=A -4.84.x11 8.8.x9;
  x15=A 3.3.qz 3.3.qz; x16=A 2.2.qy 2.2.qy; x17=A 1.1.qx 1.1.qx; x18=A x17 x16; x19=A x18 x15; x20=A 4.4.qw 4.4.qw; x21=A x20 -1.x19;
  x22=A 7.7.x21 2.42.vz; x23=A 6.6.x21 2.42.vy; x24=A 5.5.x21 2.42.vx;
  x25=A 7.7.qz 3.3.vz; x26=A 6.6.qy 2.2.vy; x27=A 5.5.qx 1.1.vx; x28=A x27 x26; x29=A x28 x25; x30=Zero; x31=A 45.98.x30 2.x29;
  x32=A 3.3.x31 91.96.qz; x33=A 2.2.x31 91.96.qy; x34=A 1.1.x31 91.96.qx; x35=A x32 x22; x36=A x33 x23; x37=A x34 x24; x38=A x35 x12;
  x39=A x36 x13; x40=A x37 x14";

const NAMES: [&str; 7] = ["qx", "qy", "qz", "qw", "vx", "vy", "vz"];

/// A delta term as the slides write it, with factors to ten places.
fn written(term: &Value) -> String {
    let Value::Sum(k, fields) = term else { panic!("{term:?}") };
    match k {
        0 => "Zero".into(),
        1 => {
            let Value::Scalar(i) = fields[0] else { panic!("{term:?}") };
            let i = i.as_i64() as usize;
            NAMES.get(i).map_or_else(|| format!("x{}", i - 6), ToString::to_string)
        }
        2 => format!("A {} {}", written(&fields[0]), written(&fields[1])),
        3 => {
            let factor = fields[0].floats()[0];
            let rounded = (factor * 1e10).round() / 1e10;
            format!("{rounded}.{}", written(&fields[1]))
        }
        _ => panic!("{term:?}"),
    }
}

#[test]
fn the_delta_term_of_the_slides() {
    let point = [1.1, 2.2, 3.3, 4.4, 5.5, 6.6, 7.7];
    let text = ROTATE.replace("{}", "x40");
    let mut program = read(&text, None).unwrap_or_else(|e| panic!("{e:?}"));
    let f = program.funs.ids().next_back().expect("a function");
    c_let::vjp(&mut program, f).expect("every construct has a rule");
    let dual = program.funs.ids().find(|g| program.funs[*g].name.as_str() == "f_delta_let");
    let input = |(i, x): (usize, &f64)| {
        Value::Tuple(vec![Value::f64(*x), Value::Sum(1, vec![Value::i64(i as i64)].into())])
    };
    let mut args: Vec<Value> = point.iter().enumerate().map(input).collect();
    args.push(Value::Tuple(vec![Value::i64(7), Value::Sum(0, Vec::new().into())]));
    let out = run(&program, dual.expect("the forward pass"), args, &Options::default());
    let Value::Tuple(out) = out.unwrap_or_else(|e| panic!("{e}")).result else { panic!("no pair") };
    let Value::Tuple(state) = &out[1] else { panic!("no state") };
    let mut found = Vec::new();
    let mut log = state[1].clone();
    while let Value::Sum(1, fields) = &log {
        let Value::Scalar(i) = fields[0] else { panic!("no name") };
        found.push(format!("x{}={}", i.as_i64() - 6, written(&fields[1])));
        let rest = fields[2].clone();
        log = rest;
    }
    found.reverse();
    let expected: Vec<&str> = BINDINGS.split(';').map(str::trim).collect();
    assert_eq!(found, expected);
}

/// The rows of the Jacobian at that point, by all; 99 parts of terms are evaluated for each.
#[test]
fn rows_of_the_slides_rotation() {
    let point = numbers(&[1.1, 2.2, 3.3, 4.4, 5.5, 6.6, 7.7]);
    let rows = [
        ("x40", 71.874, [91.96, 58.08, -77.44, 38.72, 4.84, -24.2, 26.62]),
        ("x39", 303.468, [-58.08, 91.96, 38.72, 77.44, 33.88, 12.1, 4.84]),
        ("x38", 279.51, [77.44, -38.72, 91.96, 58.08, -12.1, 24.2, 24.2]),
    ];
    for (result, value, row) in rows {
        let text = ROTATE.replace("{}", result);
        let expected = [[value].as_slice(), row.as_slice()].concat();
        check(&text, &point, &Value::f64(1.0), &expected, 1e-12);
        let mut program = read(&text, None).expect("a program");
        let f = program.funs.ids().next_back().expect("a function");
        let made = c_let::vjp(&mut program, f).expect("every construct has a rule");
        let args: Vec<Value> = point.iter().cloned().chain([Value::f64(1.0)]).collect();
        let ran = Compiled::new(&program).profiled(made, &args, &Options::default());
        let (_, profile) = ran.unwrap_or_else(|e| panic!("{e}"));
        let evaluators = program.funs.ids().filter(|g| program.funs[*g].name.as_str().starts_with("eval_"));
        let visits: u64 = evaluators.filter_map(|g| profile.calls.get(g)).sum();
        assert_eq!(visits, 99, "{result}");
    }
}
