//! What the steps of CHAD cost as programs grow, by counted steps (C1 to C7 of the specification): the plain algorithm must grow where the
//! thesis says so, the accumulating one must not.

use pullback_ad::chad::monad::{Monad, implement};
use pullback_ad::chad::{a_plain, b_sparse, c_accumulating, e_closures};
use pullback_core::Value;
use pullback_interp::lambda::{Options, run};
use pullback_lambda::{FunId, Program, read};
use std::fmt::Write;

/// A program with one function to numbers, and arguments.
struct Case {
    program: Program,
    f: FunId,
    args: Vec<Value>,
}

fn case(text: &str, args: Vec<Value>) -> Case {
    let program = read::read(text, None).unwrap_or_else(|e| panic!("{e:?}"));
    let f = program.funs.ids().next().expect("a function");
    Case { program, f, args }
}

/// Steps of a function.
fn steps(program: &Program, f: FunId, args: &[Value]) -> (Value, f64) {
    let outcome = run(program, f, args.to_vec(), &Options::default()).unwrap_or_else(|e| panic!("{e}"));
    (outcome.result, outcome.counts.work as f64)
}

/// The gradient and its steps, by each algorithm: first the plain one; then how often as many steps as the function each takes.
fn ratios(case: &Case) -> ([Vec<f64>; 2], [f64; 2]) {
    let (_, primal) = steps(&case.program, case.f, &case.args);
    let mut program = case.program.clone();
    let plain = a_plain::vjp(&mut program, case.f).unwrap_or_else(|e| panic!("{e}"));
    let shape = c_accumulating::Shape::Figure;
    let accumulating = c_accumulating::vjp(&mut program, case.f, shape).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(pullback_lambda::check::check(&program), Ok(()));
    let args: Vec<Value> = case.args.iter().cloned().chain([Value::f64(1.0)]).collect();
    let (plain, plain_steps) = steps(&program, plain, &args);
    let (accumulated, accumulated_steps) = steps(&program, accumulating, &args);
    let floats = |v: &Value| {
        let mut out = Vec::new();
        if let Value::Tuple(parts) = v
            && let Value::Tuple(bars) = &parts[1]
        {
            case.args.iter().zip(bars).for_each(|(x, d)| pullback_testkit::chad::dense(x, d, &mut out));
        }
        out
    };
    ([floats(&plain), floats(&accumulated)], [plain_steps / primal, accumulated_steps / primal])
}

/// Doubles the size several times: the ratio of the plain algorithm must grow by `growth` at least each time, that of the accumulating one hardly.
fn grows(what: &str, sizes: &[usize], growth: f64, made: impl Fn(usize) -> Case) {
    let all: Vec<[f64; 2]> = sizes
        .iter()
        .map(|n| {
            let ([plain, accumulated], ratios) = ratios(&made(*n));
            assert_eq!(plain, accumulated, "{what}, {n}: the gradients");
            assert!(plain.iter().any(|x| *x != 0.0), "{what}, {n}: a gradient of zeros");
            ratios
        })
        .collect();
    for (k, pair) in all.windows(2).enumerate() {
        let message = format!("{what} from {} to {}: {pair:?}", sizes[k], sizes[k + 1]);
        assert!(pair[1][0] > growth * pair[0][0], "the plain algorithm should be slow: {message}");
        assert!(pair[1][1] <= 1.1 * pair[0][1], "the accumulating algorithm should not be: {message}");
    }
    let last = all[all.len() - 1][1];
    assert!(last < 24.0, "{what}: the accumulating algorithm takes {last} times the steps");
}

fn numbers(n: usize) -> Vec<Value> {
    (0..n).map(|k| Value::f64([1.0, -1.0, 2.0, 0.5][k % 4])).collect()
}

/// C1 and C2: `n` uses of a component of a product with `n` further ones: zeros must cost nothing, and sums little.
#[test]
fn many_uses_of_one_component() {
    grows("uses of a component", &[16, 32, 64, 128], 1.25, |n| {
        let ty = (0..n).fold("f64".to_string(), |t, _| format!("(f64, {t})"));
        let value = (0..n).fold(Value::f64(0.0), |v, _| Value::Tuple(vec![Value::f64(0.5), v]));
        let body = (1..n).fold("x.0".to_string(), |t, _| format!("add.f64(x.0, {t})"));
        case(
            &format!("def f (x: (f64, {ty})): f64 = {body}"),
            vec![Value::Tuple(vec![Value::f64(3.0), value])],
        )
    });
}

/// C3: a chain of `let`: environments must not be built, nor added whole.
#[test]
fn chains_of_let() {
    grows("let", &[32, 64, 128, 256], 1.25, |n| {
        let mut text = "def f (x0: f64): f64 = ".to_string();
        for k in 1..n {
            let _ = write!(text, "let x{k} = mul.f64(0.5f64, add.f64(x{0}, x{0})) in ", k - 1);
        }
        let _ = write!(text, "x{}", n - 1);
        case(&text, vec![Value::f64(1.0)])
    });
}

/// C3 with every binder alive to the end.
#[test]
fn chains_of_let_with_everything_used() {
    grows("let, all used", &[32, 64, 128, 256], 1.25, |n| {
        let mut text = "def f (x0: f64): f64 = ".to_string();
        for k in 1..n {
            let _ = write!(text, "let x{k} = mul.f64(0.5f64, x{}) in ", k - 1);
        }
        let sum = (0..n).map(|k| format!("x{k}")).reduce(|a, b| format!("add.f64({a}, {b})"));
        case(&format!("{text}{}", sum.unwrap_or_default()), vec![Value::f64(1.0)])
    });
}

/// C4: a complete tree of products of different variables (`t_magic`).
#[test]
fn trees_of_products() {
    grows("a tree of products", &[16, 32, 64, 128], 1.25, tree);
}

fn tree(n: usize) -> Case {
    let params: Vec<String> = (0..n).map(|k| format!("x{k}: f64")).collect();
    let mut level: Vec<String> = (0..n).map(|k| format!("x{k}")).collect();
    while level.len() > 1 {
        level = level.chunks(2).map(|pair| format!("mul.f64({}, {})", pair[0], pair[1])).collect();
    }
    case(&format!("def f ({}): f64 = {}", params.join(", "), level[0]), numbers(n))
}

/// C4 once more: sparse environments are united at every product. All else costs the same per leaf whatever the size, so that what is added per leaf by each
/// doubling is the work of unions, which is half a step per leaf and level; computations that accumulate need none.
#[test]
fn unions_cost_a_logarithm() {
    let per_leaf = |n: usize| {
        let mut case = tree(n);
        let sparse = b_sparse::transform(&mut case.program, case.f).unwrap_or_else(|e| panic!("{e}"));
        // The value alone: environments are no data.
        let mut b = pullback_lambda::Builder::new(&mut case.program);
        let params = b.params(sparse);
        let copies: Vec<_> = params.iter().map(|_| b.fresh(pullback_lambda::Type::F64, "x")).collect();
        let args = copies.iter().map(|x| b.var(*x)).collect();
        let pair = b.call(sparse, args);
        let value = b.proj(pair, 0);
        let g = b.declare("g", &[], pullback_lambda::Type::F64, None);
        b.program.funs[g].params = copies;
        b.define(g, value);
        let args: Vec<Value> = case.args.iter().cloned().chain([Value::f64(1.0)]).collect();
        let (_, sparse) = steps(&case.program, g, &args);
        let (_, [_, accumulating]) = ratios(&tree(n));
        let (_, primal) = steps(&case.program, case.f, &case.args);
        (sparse / n as f64, accumulating * primal / n as f64)
    };
    let all: Vec<(f64, f64)> = [32, 64, 128, 256].into_iter().map(per_leaf).collect();
    for (k, pair) in all.windows(2).enumerate() {
        // What is done once, at the root, is a smaller part of twice as many leaves.
        let (sparse, accumulating) = (pair[1].0 - pair[0].0, pair[1].1 - pair[0].1);
        let once = 2.0 / f64::from(1 << k);
        assert!((0.5 - once..0.5 + once).contains(&sparse), "{sparse} more per leaf: {all:?}");
        assert!(accumulating.abs() < once, "{accumulating} more per leaf: {all:?}");
    }
    let last = all[3].0 - all[2].0;
    assert!((0.4..0.6).contains(&last), "{last} more per leaf: {all:?}");
}

/// C5: a product of many components, each of them used once.
#[test]
fn each_component_of_a_large_product() {
    grows("components", &[16, 32, 64, 128], 1.25, |n| {
        let balanced = |leaf: &dyn Fn(usize) -> String, join: &dyn Fn(&str, &str) -> String| {
            let mut level: Vec<String> = (0..n).map(leaf).collect();
            while level.len() > 1 {
                level = level.chunks(2).map(|pair| join(&pair[0], &pair[1])).collect();
            }
            level.remove(0)
        };
        let pair = |a: &str, b: &str| format!("({a}, {b})");
        let p = balanced(&|k| format!("mul.f64(x, {k}.0f64)"), &pair);
        let depth = n.trailing_zeros();
        let component = |k: usize| {
            let path: Vec<String> = (0..depth).rev().map(|bit| format!(".{}", k >> bit & 1)).collect();
            format!("p{}", path.concat())
        };
        let sum = balanced(&component, &|a, b| format!("add.f64({a}, {b})"));
        case(&format!("def f (x: f64): f64 = let p = {p} in {sum}"), vec![Value::f64(2.0)])
    });
}

/// C6: with `m` variables that all live to the end, an accumulation over a map costs the logarithm of `m`, one over cells a constant; C14: so do cells
/// of scopes inside of each other.
#[test]
fn maps_cost_a_logarithm_and_cells_do_not() {
    let ratios = |n: usize| {
        let mut text = "def f (x0: f64): f64 = ".to_string();
        for k in 1..n {
            let _ = write!(text, "let x{k} = mul.f64(0.5f64, x{}) in ", k - 1);
        }
        let sum = (0..n).map(|k| format!("x{k}")).reduce(|a, b| format!("add.f64({a}, {b})"));
        let mut case = case(&format!("{text}{}", sum.unwrap_or_default()), vec![Value::f64(1.0)]);
        let shape = c_accumulating::Shape::Figure;
        let declared =
            c_accumulating::vjp(&mut case.program, case.f, shape).unwrap_or_else(|e| panic!("{e}"));
        let (_, primal) = steps(&case.program, case.f, &case.args);
        let args = [Value::f64(1.0), Value::f64(1.0)];
        let (expected, _) = steps(&case.program, declared, &args);
        [Monad::OverMap, Monad::OverCells].map(|m| {
            let g = implement(&mut case.program, declared, m);
            let (found, steps) = steps(&case.program, g, &args);
            assert_eq!(found, expected);
            steps / primal
        })
    };
    let all: Vec<[f64; 2]> = [32, 64, 128, 256, 512].into_iter().map(ratios).collect();
    for pair in all.windows(2) {
        // A step more of each of several operations on maps for each doubling.
        assert!(pair[1][0] - pair[0][0] > 0.3, "the map should cost more: {all:?}");
        assert!(pair[1][1] - pair[0][1] < 0.1, "cells should not: {all:?}");
    }
}

/// C15: many arguments of which one is used cost one step each and a few more, not a multiple per term.
#[test]
fn arguments_that_are_not_used() {
    let total = |n: usize| {
        let params: Vec<String> = (0..n).map(|k| format!("x{k}: f64")).collect();
        let body = "mul.f64(x0, mul.f64(x0, mul.f64(x0, mul.f64(x0, x0))))";
        let case = case(&format!("def f ({}): f64 = {body}", params.join(", ")), numbers(n));
        let (_, primal) = steps(&case.program, case.f, &case.args);
        let ([plain, accumulated], [plain_ratio, ratio]) = ratios(&case);
        assert_eq!(plain, accumulated);
        (plain_ratio * primal, ratio * primal)
    };
    let (few, many) = (total(10), total(1010));
    let per_argument = (many.1 - few.1) / 1000.0;
    assert!(per_argument <= 8.0, "{per_argument} steps per argument");
    assert!((many.0 - few.0) / 1000.0 > 40.0, "the plain algorithm should take several per term");
}

/// Golden t2 of chapter 5: `let h = \v. a v in h a + h (3 a)` is `4 a^2`.
#[test]
fn functions_that_capture() {
    let text =
        "def f (a: f64): f64 = let h = fun v: f64 -> mul.f64(a, v) in add.f64(h(a), h(mul.f64(3.0f64, a)))";
    let mut c = case(text, vec![Value::f64(1.5)]);
    let vjp = a_plain::vjp(&mut c.program, c.f).expect("functions");
    assert_eq!(pullback_lambda::check::check(&c.program), Ok(()));
    let (result, _) = steps(&c.program, vjp, &[Value::f64(1.5), Value::f64(1.0)]);
    assert_eq!(result, Value::Tuple(vec![Value::f64(9.0), Value::Tuple(vec![Value::f64(12.0)])]));
}

/// `t_n := (\x_{n-1}. .. ((\x_1. x_1) x_2) .. x_{n-1}) x_n`
fn nested(n: usize) -> Case {
    let mut body = "x1".to_string();
    for k in 1..n {
        body = format!("(fun x{k}: f64 -> {body})(x{})", k + 1);
    }
    case(&format!("def f (x{n}: f64): f64 = {body}"), vec![Value::f64(1.5)])
}

/// C8: the same, each function with a captured variable that matters.
fn capturing(n: usize) -> Case {
    let mut body = "mul.f64(x0, a)".to_string();
    for k in 0..n {
        body = format!("(fun x{k}: f64 -> {body})(mul.f64(a, 0.5f64))");
    }
    case(&format!("def f (a: f64): f64 = {body}"), vec![Value::f64(1.5)])
}

/// Gradient and its steps.
fn gradient(mut case: Case, vjp: &dyn Fn(&mut Program, FunId) -> FunId) -> (Value, f64) {
    let g = vjp(&mut case.program, case.f);
    assert_eq!(pullback_lambda::check::check(&case.program), Ok(()));
    let args: Vec<Value> = case.args.into_iter().chain([Value::f64(1.0)]).collect();
    steps(&case.program, g, &args)
}
fn plain(program: &mut Program, f: FunId) -> FunId {
    a_plain::vjp(program, f).unwrap_or_else(|e| panic!("{e}"))
}
fn closed(program: &mut Program, f: FunId) -> FunId {
    e_closures::vjp(program, f, c_accumulating::Shape::Figure).unwrap_or_else(|e| panic!("{e}"))
}

/// C7 and C8: functions nested `n` deep are reversed `2^n` times by the plain algorithm, and once after closure conversion.
#[test]
fn nested_functions_double_with_each_level() {
    for made in [nested, capturing] {
        for n in [2, 5, 9] {
            assert_eq!(gradient(made(n), &plain).0, gradient(made(n), &closed).0);
        }
        let growth = gradient(made(13), &plain).1 / gradient(made(12), &plain).1;
        assert!((1.8..2.3).contains(&growth), "{growth}");
    }
    let total = |n| gradient(nested(n), &closed).1;
    let [small, middle, large] = [total(16), total(32), total(64)];
    let growth = (large - middle) / (middle - small);
    assert!((1.9..2.1).contains(&growth), "not linear: {small}, {middle}, {large}");
}

/// The gradient of chapter 5's example with a function that captures, after closure conversion.
#[test]
fn functions_that_capture_as_closures() {
    let text =
        "def f (a: f64): f64 = let h = fun v: f64 -> mul.f64(a, v) in add.f64(h(a), h(mul.f64(3.0f64, a)))";
    let (result, _) = gradient(case(text, vec![Value::f64(1.5)]), &closed);
    assert_eq!(result, Value::Tuple(vec![Value::f64(9.0), Value::Tuple(vec![Value::f64(12.0)])]));
    // Functions that take and return functions, chosen at run time.
    let text = "
        def f (a: f64, b: f64): f64 =
          let twice = fun g: <f64 -> f64> -> fun x: f64 -> g(g(x)) in
          let g = if lt.f64(a, b) then (fun y: f64 -> mul.f64(y, a)) else (fun y: f64 -> mul.f64(y, b)) in
          twice(g)(mul.f64(b, b))";
    let result = |convert: &dyn Fn(&mut Program, FunId) -> Result<FunId, pullback_ad::Unsupported>| {
        let mut case = case(text, vec![Value::f64(2.0), Value::f64(3.0)]);
        let g = convert(&mut case.program, case.f)?;
        let args: Vec<Value> = case.args.into_iter().chain([Value::f64(1.0)]).collect();
        Ok::<_, pullback_ad::Unsupported>(steps(&case.program, g, &args).0)
    };
    // x^2 b^2 at x = a = 2, b = 3: derivatives 2 a b^2 and 2 a^2 b.
    let expected =
        Value::Tuple(vec![Value::f64(36.0), Value::Tuple(vec![Value::f64(36.0), Value::f64(24.0)])]);
    assert_eq!(result(&a_plain::vjp), Ok(expected));
    // A function of type f64 -> f64 captures one of that type.
    let refused = result(&|p, f| e_closures::vjp(p, f, c_accumulating::Shape::Figure));
    let message = refused.expect_err("a recursive sum").construct;
    assert!(message.contains("capture functions of their own type"), "{message}");
}

/// C13: the calls of one function are a list in the plain algorithm, and joining lists one after the other costs a square; closed functions have
/// no such list.
#[test]
fn calls_of_one_function_are_a_list() {
    let ratio = |n: usize, vjp: &dyn Fn(&mut Program, FunId) -> FunId| {
        let sum = (1..n).fold("h(a)".to_string(), |sum, k| format!("add.f64({sum}, h({k}.0f64))"));
        let text = format!("def f (a: f64): f64 = let h = fun v: f64 -> mul.f64(a, v) in {sum}");
        let case = case(&text, vec![Value::f64(1.5)]);
        let (_, primal) = steps(&case.program, case.f, &case.args);
        gradient(case, vjp).1 / primal
    };
    let ratios = |vjp: &dyn Fn(&mut Program, FunId) -> FunId| [64, 128, 256].map(|n| ratio(n, vjp));
    let (plain, closures) = (ratios(&plain), ratios(&closed));
    // A constant, and what grows with the length: the differences double.
    let (first, second) = (plain[1] - plain[0], plain[2] - plain[1]);
    assert!(first > 1.0 && second > 1.9 * first, "{plain:?}");
    assert!(closures[2] <= 1.05 * closures[0], "{closures:?}");
}
