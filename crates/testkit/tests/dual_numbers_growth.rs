//! What the steps of dual-numbers reverse AD and of delta terms cost: how often backpropagators are called and how much of cotangents is touched, exactly, for
//! programs whose formulas the texts give; how steps grow. A stage that has been refined fails what its successor passes.

use pullback_ad::delta::{a_unshared, b_shared, c_let};
use pullback_ad::dual_numbers::{
    a_naive, b_staged, c_cayley, d_scalars, e_arrays, f_contrib, f_taping, g_parallel,
};
use pullback_ad::on_lambda::find;
use pullback_core::Value;
use pullback_interp::lambda::{Compiled, Options, Profile};
use pullback_lambda::read::read;
use pullback_lambda::{FunId, Program};
use pullback_testkit::native::near;

/// A derivative that has run.
struct Ran {
    program: Program,
    result: Value,
    profile: Profile,
    work: u64,
    span: u64,
}

/// The derivative of the last function of a program of lambda by an algorithm, for this cotangent of its result.
fn ran(text: &str, algorithm: &str, args: &[Value], seed: Value) -> Ran {
    let mut program = read(text, None).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
    let f = program.funs.ids().next_back().expect("a function");
    let vjp = find(algorithm).expect("an algorithm").vjp;
    let made: FunId = vjp(&mut program, f).unwrap_or_else(|e| panic!("{algorithm}: {e}"));
    assert_eq!(pullback_lambda::check::check(&program), Ok(()), "{algorithm}\n{text}");
    let args: Vec<Value> = args.iter().cloned().chain([seed]).collect();
    let ran = Compiled::new(&program).profiled(made, &args, &Options::default());
    let (outcome, profile) = ran.unwrap_or_else(|e| panic!("{algorithm}: {e}\n{text}"));
    let (work, span) = (outcome.counts.work, outcome.counts.span);
    Ran { result: outcome.result, profile, work, span, program }
}

impl Ran {
    /// How often backpropagators were called: all, and at most one of them. They are the functions of a `z`.
    fn backpropagators(&self) -> (u64, u64) {
        let is_back = |v: &pullback_lambda::Var| self.program.vars[*v].hint.as_str() == "z";
        let counts = self.program.vars.ids().filter(is_back);
        let counts: Vec<u64> = counts.filter_map(|v| self.profile.applications.get(v).copied()).collect();
        (counts.iter().sum(), counts.iter().copied().max().unwrap_or(0))
    }
    /// How often functions whose names begin so were called.
    fn calls(&self, prefix: &str) -> u64 {
        let named =
            self.program.funs.ids().filter(|f| self.program.funs[*f].name.as_str().starts_with(prefix));
        named.filter_map(|f| self.profile.calls.get(f)).sum()
    }
    fn floats(&self) -> Vec<f64> {
        self.result.floats()
    }
}

/// `x1 = x0 + x0, .., xn = x(n-1) + x(n-1)`: POPL'23, 5.4.
fn doubling(n: usize) -> String {
    let mut text = String::new();
    for k in 1..=n {
        text += &format!("let x{k} = add.f64(x{0}, x{0}) in ", k - 1);
    }
    format!("def f (x0: f64): f64 = {text}x{n}")
}

/// `x2 = x0 + x1, x3 = x1 + x2, ..`: thesis, Fig. 3.2.
fn fibonacci(n: usize) -> String {
    let mut text = String::new();
    for k in 2..=n {
        text += &format!("let x{k} = add.f64(x{}, x{}) in ", k - 2, k - 1);
    }
    format!("def f (x0: f64, x1: f64): f64 = {text}x{n}")
}

/// The first of `inputs` arguments, negated `n` times.
fn chain(n: usize, inputs: usize) -> String {
    let params: Vec<String> = (0..inputs).map(|k| format!("x{k}: f64")).collect();
    let params = params.join(", ");
    let mut text = String::new();
    for k in 1..=n {
        let before = if k == 1 { "x0".to_string() } else { format!("y{}", k - 1) };
        text += &format!("let y{k} = neg.f64({before}) in ");
    }
    format!("def f ({params}): f64 = {text}y{n}")
}

/// The sum of the arguments.
fn sum(inputs: usize) -> String {
    let params: Vec<String> = (0..inputs).map(|k| format!("x{k}: f64")).collect();
    let params = params.join(", ");
    let mut text = String::new();
    for k in 1..inputs {
        let before = if k == 1 { "x0".to_string() } else { format!("y{}", k - 1) };
        text += &format!("let y{k} = add.f64({before}, x{k}) in ");
    }
    format!("def f ({params}): f64 = {text}y{}", inputs - 1)
}

fn ones(n: usize) -> Vec<Value> {
    vec![Value::f64(1.0); n]
}

/// The stages after the first.
const STAGED: [&str; 4] = [b_staged::ID, c_cayley::ID, d_scalars::ID, e_arrays::ID];

/// C1 and C2: every use of a number calls its backpropagator.
#[test]
fn the_naive_stage_calls_backpropagators_once_per_path() {
    for n in [1usize, 4, 8, 11] {
        let r = ran(&doubling(n), a_naive::ID, &ones(1), Value::f64(1.0));
        let power = 1u64 << n;
        assert_eq!(r.floats(), [power as f64, power as f64]);
        assert_eq!(r.backpropagators(), (2 * power - 1, power), "{n}");
    }
    for (n, calls, gradient) in [
        (5, 15, [3.0, 5.0]),
        (10, 177, [34.0, 55.0]),
        (15, 1973, [377.0, 610.0]),
        (20, 21891, [4181.0, 6765.0]),
    ] {
        let r = ran(&fibonacci(n), a_naive::ID, &ones(2), Value::f64(1.0));
        assert_eq!(r.floats()[1..], gradient);
        assert_eq!(r.backpropagators().0, calls, "{n}");
    }
}

/// C3: each backpropagator is called once.
#[test]
fn later_stages_call_each_backpropagator_once() {
    for stage in STAGED {
        for n in [1u64, 7, 40] {
            let r = ran(&doubling(n as usize), stage, &ones(1), Value::f64(1.0));
            assert_eq!(r.backpropagators(), (n + 1, 1), "{stage}: {n}");
            assert_eq!(r.floats()[1], 2f64.powi(n as i32));
        }
        for n in [2u64, 10, 60] {
            let r = ran(&fibonacci(n as usize), stage, &ones(2), Value::f64(1.0));
            assert_eq!(r.backpropagators(), (n + 1, 1), "{stage}: {n}");
        }
    }
}

/// C4, C5 and C7: what is touched of the cotangent of the arguments. The sum over the numbers of the result begins at zero here, which is made and added to: twice the inputs
/// beyond the formulas.
#[test]
fn what_is_touched_of_whole_cotangents() {
    for (n, inputs) in [(1u64, 2u64), (10, 8), (30, 16)] {
        let text = chain(n as usize, inputs as usize);
        let touched = |stage| ran(&text, stage, &ones(inputs as usize), Value::f64(1.0)).profile.touched;
        assert_eq!(touched(b_staged::ID), 2 * n * inputs + 2 * inputs);
        for stage in [d_scalars::ID, e_arrays::ID, f_contrib::ID, f_taping::ID] {
            assert_eq!(touched(stage), 0, "{stage}");
        }
        // Its only zero is made of zeros of numbers.
        assert_eq!(touched(c_cayley::ID), 0);
    }
    for (inputs, staged) in [(32u64, 4960), (64, 20160), (128, 81280)] {
        let text = sum(inputs as usize);
        let touched = |stage| ran(&text, stage, &ones(inputs as usize), Value::f64(1.0)).profile.touched;
        assert_eq!(staged, 5 * inputs * inputs - 5 * inputs);
        assert_eq!(touched(b_staged::ID), staged + 2 * inputs);
        assert_eq!(touched(a_naive::ID), inputs * inputs - inputs);
        for stage in [d_scalars::ID, e_arrays::ID, f_contrib::ID, f_taping::ID] {
            assert_eq!(touched(stage), 0, "{stage}");
        }
    }
}

/// The text of a nested pair of `n` numbers: its type, and the sum of its numbers in the variable `p`.
fn nested(n: usize, left: bool, place: &str) -> (String, Vec<String>) {
    if n == 1 {
        return ("f64".to_string(), vec![place.to_string()]);
    }
    let k = if left { n - 1 } else { n / 2 };
    let (a, mut xs) = nested(k, left, &format!("{place}.0"));
    let (b, ys) = nested(n - k, left, &format!("{place}.1"));
    xs.extend(ys);
    (format!("({a}, {b})"), xs)
}

/// A value of the type of [`nested`].
fn nested_value(n: usize, left: bool) -> Value {
    if n == 1 {
        return Value::f64(1.0);
    }
    let k = if left { n - 1 } else { n / 2 };
    Value::Tuple(vec![nested_value(k, left), nested_value(n - k, left)])
}

fn nested_sum(n: usize, left: bool) -> String {
    let (ty, places) = nested(n, left, "p");
    let mut text = String::new();
    for (k, place) in places.iter().enumerate() {
        text += &if k == 0 {
            format!("let y0 = {place} in ")
        } else {
            format!("let y{k} = add.f64(y{}, {place}) in ", k - 1)
        };
    }
    format!("def f (p: {ty}): f64 = {text}y{}", n - 1)
}

/// C6: a number that is deep in the arguments costs its depth in 3.5, and nothing of it in 3.6 and 3.7.
#[test]
fn deep_arguments_cost_their_depth_until_only_numbers_are_kept() {
    let work = |n: usize, left: bool, stage: &str| {
        let (deep, text) = (ran(&nested_sum(n, left), stage, &[nested_value(n, left)], Value::f64(1.0)), n);
        assert!(deep.floats().iter().skip(1).all(|x| *x == 1.0), "{stage} {text}");
        deep.work as f64 / n as f64
    };
    // The program itself takes a number apart that is so deep: compare with what does not change arguments at all.
    let beyond = |n: usize, left: bool, stage: &str| work(n, left, stage) - work(n, left, f_taping::ID);
    let (cayley, balanced) = (beyond(96, true, c_cayley::ID) / beyond(24, true, c_cayley::ID), |stage| {
        beyond(128, false, stage) - beyond(32, false, stage)
    });
    assert!(cayley > 2.5, "{cayley}");
    // Two levels more: a few steps for each.
    assert!((1.0..20.0).contains(&balanced(c_cayley::ID)), "{}", balanced(c_cayley::ID));
    for stage in [e_arrays::ID, f_contrib::ID] {
        let (small, large) = (beyond(24, true, stage), beyond(96, true, stage));
        assert!((small - large).abs() < 3.0, "{stage}: {small} {large}");
    }
}

/// C8 and C9: steps per element of sums of squares and of long loops. Maps cost a logarithm, arrays and tapes a constant.
#[test]
fn the_last_stages_cost_a_constant_per_operation() {
    let squares = "def f (a: []f64): f64 = reduce(fun x: f64 -> fun y: f64 -> add.f64(x, y), 0.0f64, map(fun x: f64 -> mul.f64(x, x), a))";
    let steps = "def f (a: []f64): f64 = let n = size[0](a) in loop x = index(a, 0i64) for i < n do add.f64(mul.f64(x, 0.5f64), mul.f64(index(a, i), x))";
    // Each iteration writes an element: in place, also where it is a computation.
    let writes = "def f (a: []f64): f64 = let n = size[0](a) in let b = loop b = a for i < sub.i64(n, 1i64) do
        update(b, add.i64(i, 1i64), add.f64(mul.f64(index(b, i), 0.5f64), index(b, add.i64(i, 1i64)))) in index(b, sub.i64(n, 1i64))";
    for text in [squares, steps, writes] {
        let per_element = |n: usize, stage: &str| {
            let a: Vec<f64> = (0..n).map(|k| (k % 7) as f64 / 8.0).collect();
            let r = ran(text, stage, &[Value::f64s(&a)], Value::f64(1.0));
            if text == squares {
                let expected: Vec<f64> = a.iter().map(|x| 2.0 * x).collect();
                assert_eq!(r.floats()[1..], expected, "{stage}");
            }
            r.work as f64 / n as f64
        };
        for stage in [e_arrays::ID, f_contrib::ID, f_taping::ID, g_parallel::ID] {
            let (small, large) = (per_element(250, stage), per_element(4000, stage));
            assert!((large / small - 1.0).abs() < 0.03, "{stage}: {small} {large}");
        }
        for stage in [d_scalars::ID, b_shared::ID, c_let::ID] {
            let per: Vec<f64> = [250, 1000, 4000].into_iter().map(|n| per_element(n, stage)).collect();
            // Four times as many: the same number of steps more each time.
            let (first, second) = (per[1] - per[0], per[2] - per[1]);
            assert!(first > 1.0 && (0.5..2.0).contains(&(second / first)), "{stage}: {per:?}");
        }
        let (small, large) = (per_element(100, b_staged::ID), per_element(400, b_staged::ID));
        assert!(large > 2.0 * small, "{small} {large}");
    }
}

/// C10 and C11: gradients of programs that ignore their arguments, and of many results.
#[test]
fn what_is_ignored_and_what_is_handed_out() {
    let n = 500;
    let a = Value::f64s(&vec![1.0; n]);
    for stage in [e_arrays::ID, f_contrib::ID, f_taping::ID, g_parallel::ID] {
        let ignored = ran("def f (a: []f64): f64 = 5.0f64", stage, std::slice::from_ref(&a), Value::f64(1.0));
        assert_eq!(ignored.floats()[1..], vec![0.0; n], "{stage}");
        assert!(ignored.work < 300 * n as u64, "{stage}: {}", ignored.work);
        let same = ran("def f (a: []f64): []f64 = a", stage, std::slice::from_ref(&a), a.clone());
        assert_eq!(same.floats()[n..], vec![1.0; n], "{stage}");
        assert!(same.work < 500 * n as u64, "{stage}: {}", same.work);
    }
    let many = "def f (x: f64): []f64 = map(fun i: i64 -> x, iota(500i64))";
    let ones = Value::f64s(&[1.0; 500]);
    for stage in STAGED {
        let r = ran(many, stage, &[Value::f64(1.0)], ones.clone());
        assert!(r.backpropagators().0 <= 1000, "{stage}");
        assert_eq!(r.floats()[500..], [500.0], "{stage}");
    }
}

/// C12 and 3.9: one identity per operation, constant and number of the arguments; none for what only conditions need; none for constants on a tape.
#[test]
fn identities_are_those_of_operations_that_matter() {
    // Identities beyond the arguments; the last call finds that there are none left.
    let identities = |text: &str| {
        let r = ran(text, f_contrib::ID, &[Value::f64(2.0)], Value::f64(1.0));
        r.calls("resolve_") - 1
    };
    assert_eq!(identities("def f (x: f64): f64 = mul.f64(add.f64(x, 1.0f64), sin.f64(x))"), 4);
    let branch = "def f (x: f64): f64 = if lt.f64(mul.f64(x, mul.f64(x, x)), 10.0f64) then neg.f64(x) else x";
    assert_eq!(identities(branch), 1);
    assert_eq!(
        identities(
            "def f (x: f64): f64 = let y = mul.f64(x, x) in if lt.f64(y, 10.0f64) then neg.f64(x) else x"
        ),
        2
    );
}

/// C21: without sharing a term is a tree, with it a graph. Three nodes more are those of the cotangent: `#add (#scale 1 d) #zero`.
#[test]
fn delta_terms_are_trees_until_sharing_is_seen() {
    for n in [1u64, 5, 10] {
        let text = doubling(n as usize);
        let one = |id: &str, evaluator: &str| {
            let r = ran(&text, id, &ones(1), Value::f64(1.0));
            assert_eq!(r.floats()[1], 2f64.powi(n as i32), "{id}");
            r.calls(evaluator)
        };
        let tree = (1 << (n + 1)) - 1;
        assert_eq!(one(a_unshared::DIRECT, "eval_0"), tree + 3);
        assert_eq!(one(a_unshared::VECTORS, "eval_1"), tree + 3);
        assert_eq!(one(a_unshared::CHANGES, "eval_2"), tree + 3);
        assert_eq!(one(a_unshared::INWARDS, "eval_3"), tree + 3);
        assert_eq!(one(b_shared::ID, "eval_4"), 3 * n + 1);
        assert_eq!(one(c_let::ID, "eval_"), 3 * n + 1);
    }
}

/// Erratum of 4.1.4: `eval_2` of `#scale` must not multiply what was collected before. `x + 2 y` has the gradient `(1, 2)`, not `(2, 2)`.
#[test]
fn scaling_leaves_alone_what_was_collected_before() {
    let text = "def f (x: f64, y: f64): f64 = add.f64(x, mul.f64(2.0f64, y))";
    for id in [a_unshared::DIRECT, a_unshared::VECTORS, a_unshared::CHANGES, a_unshared::INWARDS] {
        let r = ran(text, id, &ones(2), Value::f64(1.0));
        assert_eq!(r.floats(), [3.0, 1.0, 2.0], "{id}");
    }
}

/// A complete tree of forks of this depth, of a product and a sum of two numbers.
const TREE: &str = "def tree (d: i64, x: f64, y: f64): f64 =
  if eq.i64(d, 0i64) then mul.f64(sin.f64(x), y)
  else let p = par (@tree(sub.i64(d, 1i64), x, mul.f64(x, y)), @tree(sub.i64(d, 1i64), mul.f64(y, 0.5f64), x))
       in add.f64(p.0, mul.f64(p.0, p.1))
def f (d: i64, x: f64, y: f64): f64 = @tree(d, x, y)";

/// C17, C26: a tree of forks has as many jobs as 3.10 says; twice the tree is twice the work, and two levels more are a few steps of span more, forwards and back.
#[test]
fn forks_are_parallel_forwards_and_back() {
    let args = |d: i64| [Value::i64(d), Value::f64(0.7), Value::f64(0.9)];
    let deep = |d: i64, stage: &str| ran(TREE, stage, &args(d), Value::f64(1.0));
    for d in [0i64, 1, 4, 7] {
        let parallel = deep(d, g_parallel::ID);
        let forks = (1u64 << d) - 1;
        assert_eq!(parallel.calls("resolve_task_"), 1 + 3 * forks, "{d}");
        let (expected, found) = (deep(d, f_contrib::ID).floats(), parallel.floats());
        // The two tasks of a fork add to what they share in another order.
        let same = near(&Value::f64s(&expected), &Value::f64s(&found), 1e-14);
        assert!(same, "{d}: {expected:?} {found:?}");
    }
    let (small, large) = (deep(6, g_parallel::ID), deep(9, g_parallel::ID));
    let work = large.work as f64 / small.work as f64;
    assert!((7.5..8.6).contains(&work), "{work}");
    let span = large.span as f64 / small.span as f64;
    assert!(span < 1.7, "{span}");
    let sequential = deep(9, f_contrib::ID);
    assert!(sequential.span > 20 * large.span, "{} {}", sequential.span, large.span);
    // The results of both forks are used by both branches of the next one.
    let text = "def f (x: f64, y: f64): f64 =
      let p = par (mul.f64(x, y), sin.f64(y)) in let q = par (mul.f64(p.0, p.0), mul.f64(p.0, p.1)) in mul.f64(q.0, q.1)";
    let r = ran(text, g_parallel::ID, &[Value::f64(1.2), Value::f64(0.7)], Value::f64(1.0)).floats();
    for (found, expected) in r.iter().zip([0.3818304000965283, 0.9545760002, 2.0897410242]) {
        assert!((found - expected).abs() < 1e-9, "{r:?}");
    }
}

/// A program of a thousand forks one after the other, and a chain of a hundred thousand operations: nothing is as deep as they are long.
#[test]
fn long_programs_need_no_deep_stack() {
    let forks = "def f (x: f64): f64 = loop y = x for i < 1000i64 do
      let p = par (mul.f64(y, 0.5f64), mul.f64(y, 0.25f64)) in add.f64(p.0, add.f64(p.1, mul.f64(x, 0.25f64)))";
    let r = ran(forks, g_parallel::ID, &ones(1), Value::f64(1.0));
    assert!((r.floats()[1] - 1.0).abs() < 1e-12);
    let long = "def f (x: f64): f64 = loop y = x for i < 100000i64 do mul.f64(y, 1.0f64)";
    for stage in
        [d_scalars::ID, e_arrays::ID, f_contrib::ID, f_taping::ID, g_parallel::ID, b_shared::ID, c_let::ID]
    {
        let r = ran(long, stage, &ones(1), Value::f64(1.0));
        assert_eq!(r.floats(), [1.0, 1.0], "{stage}");
    }
}
