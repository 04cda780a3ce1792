//! The algorithms on lambda on programs in the source language: what `fast_chad` gives, what they cost, what they refuse.
#![allow(clippy::unwrap_used, reason = "tests")]

use pullback_core::Value;
use pullback_driver::{Backend, EntryPoint, Kind, Language, Ready, Session, Settings, Wrt, explain};
use pullback_interp::core::Options;
use pullback_prim::ScalarValue;

fn f32(x: f32) -> Value {
    Value::Scalar(ScalarValue::F32(x))
}

struct Row {
    text: &'static str,
    args: Vec<Value>,
    seeds: Vec<f64>,
    /// Results and cotangents, by hand.
    expected: Vec<Value>,
    /// The algorithms that have no rule for it.
    refuse: &'static [&'static str],
}

const RECURSION: &[&str] = &[
    "chad-accumulating",
    "chad-accumulating-map",
    "chad-accumulating-cells",
    "chad-arrays",
    "chad-closures",
];
const NO_RECURSION: &[&str] = &[
    "bulk",
    "bulk-scalar",
    "bulk-tape",
    "accelerate",
    "accelerate-store",
    "accelerate-recompute",
    "chad",
    "chad-sparse",
];

fn rows() -> Vec<Row> {
    let f = Value::f64;
    let row = |text, args, seeds: &[f64], expected, refuse| Row {
        text,
        args,
        seeds: seeds.to_vec(),
        expected,
        refuse,
    };
    vec![
        // (x y)^2 has the derivatives 2 x y^2 and 2 x^2 y.
        row(
            "entry f (x: f64) (y: f64): f64 = let a = x * y in if a < 1 then a + x else a * a",
            vec![f(1.5), f(2.0)],
            &[1.0],
            vec![f(9.0), f(12.0), f(9.0)],
            &[],
        ),
        // The other branch: x y + x.
        row(
            "entry f (x: f64) (y: f64): f64 = let a = x * y in if a < 1 then a + x else a * a",
            vec![f(0.5), f(0.25)],
            &[2.0],
            vec![f(0.625), f(2.5), f(1.0)],
            &[],
        ),
        // Records, tuples, integers, two precisions, an argument that is not used, a result without floats.
        row(
            "entry f (p: {a: f64, b: (f64, f32)}) (n: i64) (unused: f64): (f64, i64, f32) =
               (p.a * p.b.0 * f64.i64 n, n + 1, p.b.1 * p.b.1)",
            vec![f(2.0), f(3.0), f32(4.0), Value::i64(5), f(7.0)],
            &[1.0, 2.0],
            vec![f(30.0), Value::i64(6), f32(16.0), f(15.0), f(10.0), f32(16.0), f(0.0)],
            &[],
        ),
        // A sum, a match: x^2 + x.
        row(
            "type shape = #circle f64 | #box f64 f64
             def area (s: shape): f64 = match s case #circle r -> 3 * r * r case #box a b -> a * b
             entry f (x: f64) (big: bool): f64 = area (if big then #box x (x + 1) else #circle x)",
            vec![f(2.0), Value::Scalar(ScalarValue::Bool(true))],
            &[1.0],
            vec![f(6.0), f(5.0)],
            &["bulk", "bulk-scalar", "bulk-tape", "accelerate", "accelerate-store", "accelerate-recompute"],
        ),
        // Functions that take functions: x^4 y^3 with respect to both.
        row(
            "def twice 'a (g: a -> a) (x: a): a = g (g x)
             entry f (x: f64) (y: f64): f64 = twice (\\z -> z * z * y) x",
            vec![f(2.0), f(3.0)],
            &[1.0],
            vec![f(432.0), f(864.0), f(432.0)],
            &[],
        ),
        // x^5.
        row(
            "def power (x: f64) (n: i64): f64 = if n <= 0 then 1 else x * power x (n - 1)
             entry f (x: f64) (n: i64): f64 = power x n",
            vec![f(2.0), Value::i64(5)],
            &[1.0],
            vec![f(32.0), f(80.0)],
            NO_RECURSION,
        ),
        // y = x; y <- y * x, three times: x^4.
        row(
            "entry f (x: f64) (n: i64): f64 = loop y = x for _i < n do y * x",
            vec![f(1.5), Value::i64(3)],
            &[1.0],
            vec![f(5.0625), f(13.5)],
            &["chad", "chad-sparse"],
        ),
        // What is stopped is constant.
        row("entry f (x: f64): f64 = x * stop_gradient x", vec![f(3.0)], &[1.0], vec![f(9.0), f(3.0)], &[]),
    ]
}

fn session(text: &str, algorithm: &str) -> (Session, EntryPoint) {
    let mut session = Session::compile("program.fut", text, Settings::default()).unwrap();
    session.settings.choice.reverse = Some(algorithm.into());
    let entry = session.entry(None).unwrap();
    (session, entry)
}

fn derivative(session: &Session, entry: &EntryPoint) -> Result<Ready, pullback_base::Diagnostic> {
    let wanted = session.select(entry, &Wrt::default()).unwrap();
    session.derivative(entry, Kind::Vjp, &wanted, &mut |_, _| {})
}

fn with_seeds(row: &Row, entry: &EntryPoint) -> Vec<Value> {
    let scalars = entry.result_types.iter().filter_map(|t| t.scalar().filter(|s| s.is_float()));
    let seeds = scalars.zip(&row.seeds).map(|(s, x)| Value::Scalar(s.from_f64(*x)));
    row.args.iter().cloned().chain(seeds).collect()
}

#[test]
fn every_algorithm_gives_the_gradient_or_says_what_it_does_not_do() {
    for row in rows() {
        for algorithm in pullback_driver::reverse_algorithms() {
            let (id, text) = (algorithm.id, row.text);
            let (session, entry) = session(text, id);
            let made = derivative(&session, &entry);
            if row.refuse.contains(&id) {
                let d = made.expect_err(id);
                assert_eq!(d.code, pullback_base::Code::Unsupported);
                assert!(d.message.contains(id) && d.span.is_some() && !d.hints.is_empty(), "{id}: {d:?}");
                continue;
            }
            let ready = made.unwrap_or_else(|d| panic!("{id}: {}", d.render(&session.sources)));
            assert_eq!(ready.on_lambda.is_some(), algorithm.language == Language::Lambda);
            let found = ready.interpret(&with_seeds(&row, &entry), &Options::default()).unwrap();
            assert_eq!(found.results, row.expected, "{id} on {text}");
        }
    }
}

/// At points where nothing is exact: the same as `fast_chad` up to rounding.
#[test]
fn primitives_have_the_derivatives_that_they_have_elsewhere() {
    let text = "
def softplus (x: f64): f64 = f64.log (1 + f64.exp x)
entry f (x: f64) (y: f64) (k: f32): f64 =
  let (a, b) = (f64.sin x * y ** 1.5, softplus (x / y) - f64.sqrt (f64.abs (x - 3)))
  let c = f64.max a b + f64.min (a * b) 0.25 + f64.tanh (f64.f32 k * a)
  in if c > 100 then c else c * f64.lgamma (y + 2) - f64.atan2 x y";
    let args = [Value::f64(0.7), Value::f64(1.9), f32(0.3), Value::f64(1.0)];
    let gradient = |algorithm: &str| -> Vec<f64> {
        let (session, entry) = session(text, algorithm);
        let ready = derivative(&session, &entry).unwrap_or_else(|d| panic!("{}", d.render(&session.sources)));
        let out = ready.interpret(&args, &Options::default()).unwrap();
        out.results.iter().flat_map(Value::floats).collect()
    };
    let expected = gradient("fast_chad");
    assert_eq!(expected.len(), 4);
    assert!(expected.iter().all(|x| x.is_finite() && *x != 0.0), "{expected:?}");
    for algorithm in pullback_driver::reverse_algorithms() {
        let found = gradient(algorithm.id);
        // The cotangent of `k` is an f32.
        for ((a, b), limit) in found.iter().zip(&expected).zip([1e-13, 1e-13, 1e-13, 1e-6]) {
            assert!((a - b).abs() <= limit * b.abs(), "{}: {found:?} {expected:?}", algorithm.id);
        }
    }
}

/// `x * x` costs 4: the primitive 2, its arguments 1 each. By Efficient CHAD it becomes
/// `let p = ((x, \d. add d), (x, \d. add d)) in (p.0.0 * p.1.0, \d. ..)`: the `let` 1, the products 1 + 2 * 1, the variables 2, the functions 2;
/// then the product 1, the primitive 2, its arguments 3 each, the function, which captures `p`, 2. That is 19; the call and its argument make it 21.
#[test]
fn parts_cost_what_a_count_by_hand_says() {
    let (session, entry) = session("entry f (x: f64): f64 = x * x", "chad-accumulating");
    let ready = derivative(&session, &entry).unwrap();
    let (x, seed) = (Value::f64(3.0), Value::f64(1.0));
    let costs = ready.on_lambda.as_ref().unwrap().costs(
        std::slice::from_ref(&x),
        std::slice::from_ref(&seed),
        &Options::default(),
    );
    let costs = costs.unwrap();
    assert_eq!((costs.program, costs.forward), (4, 21));
    let beside = session.primal_beside(&entry, &ready).unwrap();
    assert_eq!(beside.interpret(std::slice::from_ref(&x), &Options::default()).unwrap().counts.work, 4);
    let whole = ready.interpret(&[x.clone(), seed], &Options::default()).unwrap();
    assert_eq!(whole.counts.work, costs.whole());
    let wanted = [true];
    let text = explain::costs(&session, &entry, Kind::Vjp, &wanted, &[x]).unwrap();
    let line =
        |what: &str, steps: u64| text.lines().any(|l| l.contains(what) && l.ends_with(&format!(" {steps}")));
    assert!(
        line("the program", 4) && line("forward pass", 21) && line("value and derivative", costs.whole()),
        "{text}"
    );
}

/// The forward pass does not depend on the cotangent: every algorithm has one, and it costs less than all.
#[test]
fn every_algorithm_has_a_forward_pass() {
    for row in rows() {
        for algorithm in pullback_ad::chad::ON_LAMBDA.iter().filter(|a| !row.refuse.contains(&a.id)) {
            let (session, entry) = session(row.text, algorithm.id);
            let ready = derivative(&session, &entry).unwrap();
            let all = with_seeds(&row, &entry);
            let seeds = &all[row.args.len()..];
            let costs = ready.on_lambda.as_ref().unwrap().costs(&row.args, seeds, &Options::default());
            let costs = costs.unwrap_or_else(|e| panic!("{}: {e:?}", algorithm.id));
            assert!(costs.program < costs.forward && costs.backward > 0, "{}: {costs:?}", algorithm.id);
        }
    }
}

/// A chain of functions each of which calls the next one in two places: its copy would have 2^40 parts.
#[test]
fn functions_that_would_grow_too_large_are_called() {
    let mut text = "def f0 (x: f64): f64 = x * x\n".to_string();
    for k in 1..41 {
        text += &format!("def f{k} (x: f64): f64 = if x < 0 then f{0} (-x) else f{0} (x + 1)\n", k - 1);
    }
    text += "entry f (x: f64): f64 = f40 x";
    let (session, entry) = session(&text, "chad-accumulating");
    let ready = derivative(&session, &entry).unwrap();
    // (x + 40)^2
    let found = ready.interpret(&[Value::f64(2.0), Value::f64(1.0)], &Options::default()).unwrap();
    assert_eq!(found.results, [Value::f64(1764.0), Value::f64(84.0)]);
    let (session, entry) = self::session(&text, "chad");
    let d = derivative(&session, &entry).expect_err("no functions");
    assert!(d.hints.iter().any(|h| h.contains("not replaced by their bodies")), "{d:?}");
}

/// Inner maps of different lengths: what their backpropagators capture has different shapes. The sum of `x[j] i` for `i` below `ks[j]` has the
/// derivative `ks[j] (ks[j] - 1) / 2`.
#[test]
fn inner_maps_may_have_different_lengths_in_compiled_code() {
    let text = "
entry f [n] (ks: [n]i64) (x: [n]f64): f64 =
  f64.sum (map2 (\\k v -> f64.sum (map (\\i -> v * f64.i64 i) (iota k))) ks x)";
    for backend in [Backend::Interp, Backend::Vm] {
        let (mut session, entry) = session(text, "chad-arrays");
        session.settings.backend = backend;
        let ready = derivative(&session, &entry).unwrap_or_else(|d| panic!("{}", d.render(&session.sources)));
        let args = [Value::i64s(&[4, 5]), Value::f64s(&[1.0, 2.0]), Value::f64(1.0)];
        let out = ready.run(&args, &Options::default()).unwrap_or_else(|e| panic!("{e:?}"));
        assert_eq!(out.results, [Value::f64(26.0), Value::f64s(&[6.0, 10.0])], "{backend:?}");
    }
}

/// The zero of a cotangent with an array is an array without elements; arrays of backpropagators come from branches. `xs` is `[1, 2]`: the first
/// has the derivative `y [1, 0]`, the second `2 xs`; the third adds what two
/// elements of one array have.
#[test]
fn naive_dual_numbers_with_arrays_are_compiled() {
    let chosen = "let v = if y > 0 then xs else map (* 2) xs in";
    for (body, value, bar) in [
        (format!("{chosen} y * v[0]"), 3.0, [3.0, 0.0]),
        (format!("{chosen} f64.sum (map2 (*) v xs)"), 5.0, [2.0, 4.0]),
        ("xs[0] * xs[1] * y + 1".into(), 7.0, [6.0, 3.0]),
    ] {
        let text = format!("entry f [n] (xs: [n]f64) (y: f64): f64 = {body}");
        for backend in [Backend::Interp, Backend::Vm] {
            let (mut session, entry) = session(&text, "dual-naive");
            session.settings.backend = backend;
            let ready =
                derivative(&session, &entry).unwrap_or_else(|d| panic!("{}", d.render(&session.sources)));
            let args = [Value::f64s(&[1.0, 2.0]), Value::f64(3.0), Value::f64(1.0)];
            let out = ready.run(&args, &Options::default()).unwrap_or_else(|e| panic!("{e:?}"));
            assert_eq!(out.results[..2], [Value::f64(value), Value::f64s(&bar)], "{backend:?}: {text}");
        }
    }
}

/// Rows and functions in arrays, loops and sums, by every algorithm, interpreted and compiled: the value and the gradient with respect to the first
/// argument, by hand, or a refusal that says where.
#[test]
fn what_algorithms_make_is_compiled_or_refused_with_a_place() {
    let rows = Value::f64_array(&[2, 2], &[1.0, 2.0, 3.0, 4.0]);
    let numbers = Value::f64s(&[1.0, 2.0]);
    let programs = [
        (
            // The sum of the products of first elements.
            "entry f [n] (x: [n][2]f64) (y: [n][2]f64): f64 = f64.sum (map2 (\\a b -> a[0] * b[0]) x y)",
            vec![rows.clone(), rows.clone()],
            10.0,
            vec![1.0, 0.0, 3.0, 0.0],
        ),
        (
            "entry f [n] (x: [n]f64): f64 = let fs = map (\\w -> \\(v: f64) -> v * w) x in fs[0] 2.0",
            vec![numbers.clone()],
            2.0,
            vec![2.0, 0.0],
        ),
        (
            // (3 x0) x1
            "entry f [n] (x: [n]f64): f64 =
               let fs = map (\\w -> \\(v: f64) -> v * w) x
               in loop y = 3 for i < n do fs[i] y",
            vec![numbers.clone()],
            6.0,
            vec![6.0, 3.0],
        ),
        (
            // x1 + 1
            "entry f [n] (x: [n]f64): f64 =
               let fs = if x[0] > 0 then map (\\w -> \\(v: f64) -> v + w) x else map (\\w -> \\(v: f64) -> v * w) x
               in fs[1] 1",
            vec![numbers.clone()],
            3.0,
            vec![0.0, 1.0],
        ),
        (
            // x0 + x1, of positive numbers.
            "entry f [n] (x: [n]f64): f64 = f64.sum (filter (\\v -> v > 0) x)",
            vec![numbers.clone()],
            3.0,
            vec![1.0, 1.0],
        ),
        (
            // (x0 x1)^2
            "entry f [n] (x: [n]f64): f64 =
               let a = map (\\v -> [v, v]) x in f64.product (map (\\r -> r[0] * r[1]) a)",
            vec![numbers],
            4.0,
            vec![8.0, 4.0],
        ),
    ];
    let (mut compiled, mut refused) = (0, 0);
    for (text, args, value, gradient) in programs {
        for algorithm in pullback_driver::reverse_algorithms() {
            for backend in [Backend::Interp, Backend::Vm] {
                let (mut session, entry) = session(text, algorithm.id);
                session.settings.backend = backend;
                let what = format!("{}, {backend:?}: {text}", algorithm.id);
                let ready = match derivative(&session, &entry) {
                    Ok(ready) => ready,
                    Err(d) => {
                        assert_eq!(d.code, pullback_base::Code::Unsupported, "{what}: {d:?}");
                        assert!(d.span.is_some() && !d.hints.is_empty(), "{what}: {d:?}");
                        refused += 1;
                        continue;
                    }
                };
                let args: Vec<Value> = args.iter().cloned().chain([Value::f64(1.0)]).collect();
                let out = ready.run(&args, &Options::default()).unwrap_or_else(|e| panic!("{what}: {e:?}"));
                let found: Vec<f64> = out.results[..2].iter().flat_map(Value::floats).collect();
                assert_eq!(found, [&[value], &gradient[..]].concat(), "{what}");
                compiled += 1;
            }
        }
    }
    assert!(compiled > refused, "{compiled} {refused}");
}

/// Constructs that take functions, which some algorithms turn into other things first: the error is that of a construct without a rule.
#[test]
fn constructs_without_a_rule_are_named() {
    let programs = [
        (
            "entry f (x: f64): f64 = (map (\\y -> y * x) [x, 2])[0]",
            "an operation on arrays",
            &["chad-arrays"][..],
        ),
        ("entry f (x: f64): f64 = f64.sum [x, x]", "an operation on arrays", &["chad-arrays"]),
        ("entry f (x: f64): f64 = vjp (\\y -> y * y) x 1", "a derivative inside of a program", &[]),
        (
            "entry f (x: f64): f64 = let g y = jvp (\\z -> z * y) x 1 in g x",
            "a derivative inside of a program",
            &[],
        ),
        ("entry f (x: f64): f64 = loop y = x for _i < 3 do y * x", "a loop", RECURSION),
        (
            "def g (x: f64): f64 = if x > 1 then g (x / 2) else x entry f (x: f64): f64 = g x",
            "a call of a function",
            RECURSION,
        ),
    ];
    for (text, construct, taken) in programs {
        for algorithm in pullback_ad::chad::ON_LAMBDA.iter().filter(|a| !taken.contains(&a.id)) {
            let (session, entry) = session(text, algorithm.id);
            let d = derivative(&session, &entry).expect_err(text);
            let wrong = format!("{}: {d:?}", algorithm.id);
            assert_eq!(d.code, pullback_base::Code::Unsupported, "{wrong}");
            let said = format!("{} cannot differentiate ", algorithm.id);
            assert!(d.message.starts_with(&said), "{wrong}");
            // The plain algorithm looks at types first.
            assert!(d.message.ends_with(construct) || d.message.contains("[]"), "{wrong}");
            assert!(d.span.is_some() && d.hints.iter().any(|h| h.contains("fast_chad")), "{wrong}");
        }
    }
}

#[test]
fn what_is_not_there_is_said() {
    let (mut session, entry) = session("entry f (x: f64): f64 = x * x", "chad");
    let said = |made: Result<Ready, pullback_base::Diagnostic>, part: &str| {
        let d = made.expect_err(part);
        assert!(d.message.contains(part) && !d.hints.is_empty(), "{d:?}");
    };
    for kind in [Kind::VjpMany, Kind::Hvp, Kind::HvpMany, Kind::GaussNewton, Kind::GaussNewtonMany] {
        said(session.derivative(&entry, kind, &[true], &mut |_, _| {}), "for one cotangent");
    }
    // Finite maps and growable arrays have no core form.
    session.settings.backend = Backend::Vm;
    for algorithm in pullback_ad::chad::ON_LAMBDA {
        session.settings.choice.reverse = Some(algorithm.id.into());
        match algorithm.id {
            "chad-sparse" | "chad-accumulating-map" => {
                said(derivative(&session, &entry), "a map cannot be compiled")
            }
            "chad-accumulating-cells" => {
                said(derivative(&session, &entry), "a mutable array cannot be compiled")
            }
            id => {
                let ready = derivative(&session, &entry).unwrap_or_else(|d| panic!("{id}: {d:?}"));
                let out = ready.run(&[Value::f64(3.0), Value::f64(1.0)], &Options::default()).expect(id);
                assert_eq!(out.results, [Value::f64(9.0), Value::f64(6.0)], "{id}");
            }
        }
    }
    // A derivative inside of a program is none of an entry point.
    let (session, entry) = self::session("entry f (x: f64): f64 = vjp (\\y -> y * y) x 1", "chad");
    said(session.primal(&entry), "inside of a program");
    let (session, entry) = self::session("entry f (x: f64): (f64, []i64) = (x, iota 3)", "chad-arrays");
    said(derivative(&session, &entry), "an array without floats");
}
