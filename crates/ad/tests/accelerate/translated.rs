//! Functions of core as programs of Idealised Accelerate, and their derivatives.

use crate::common::{add_function, add_vjp, mismatch_of, parse};
use pullback_ad::Unsupported;
use pullback_ad::accelerate::from_core::{VARIANTS, translate};
use pullback_ad::fast_chad::Config;
use pullback_core::{FunId, Lam, Program, Value};
use pullback_interp::core::{Options, run};
use pullback_prim::ScalarValue;

/// The function of the text, and its derivative in each variant.
pub(super) fn derived(text: &str, variant: usize) -> Result<(Program, FunId, FunId), Unsupported> {
    let mut program = parse(text);
    let Some(f) = program.funs.ids().last() else { panic!("a function") };
    let fun = program.funs[f].clone();
    let lam = Lam { params: fun.params, body: fun.body };
    let wanted = vec![true; lam.params.len()];
    let derivative = (VARIANTS[variant].0.transform)(&mut program, &lam, &wanted)?;
    let g = add_function(&mut program, "derivative", derivative);
    Ok((program, f, g))
}

pub(super) fn results(text: &str, args: &[Value]) -> Vec<Value> {
    let all = (0..VARIANTS.len()).map(|variant| {
        let (program, _, g) = derived(text, variant).unwrap_or_else(|e| panic!("{e}"));
        run(&program, g, args.to_vec(), &Options::default()).unwrap_or_else(|e| panic!("{e:?}")).results
    });
    let all: Vec<Vec<Value>> = all.collect();
    assert!(all.iter().all(|found| *found == all[0]), "{all:?}");
    all.into_iter().next().unwrap_or_default()
}

pub(super) fn f(x: f64) -> Value {
    Value::f64(x)
}

pub(super) fn truth(x: bool) -> Value {
    Value::Scalar(ScalarValue::Bool(x))
}

pub(super) fn fs(xs: &[f64]) -> Value {
    Value::f64_array(&[xs.len()], xs)
}

pub(super) fn sum(name: &str, n: &str, of: &str) -> String {
    format!(
        "let {name}: f64 = reduce_comm {n} [0.0f64] [{of}] ({name}x: f64, {name}y: f64) {{
            let {name}t: f64 = add.f64({name}x, {name}y)
            in {name}t
        }}"
    )
}

/// 2.3.2 of the text: the inner sum does not depend on the element, or it does. The text refuses the second; here a nest is one combinator.
#[test]
fn nested_parallelism_is_flattened() {
    let inner = |free: &str| {
        format!(
            "fun f(a: []f64): f64 {{
                let n: i64 = size(a, 0)
                let ys: []f64 = map n [a] (x: f64) {{
                    let zs: []f64 = map n [a] (v: f64) {{ let w: f64 = mul.f64(v, {free}) in w }}
                    {}
                    let y: f64 = add.f64(x, s)
                    in y
                }}
                {}
                in r
            }}",
            sum("s", "n", "zs"),
            sum("r", "n", "ys")
        )
    };
    // x + 3 (1 + 2) for both elements.
    assert_eq!(results(&inner("3.0f64"), &[fs(&[1.0, 2.0]), f(1.0)]), [f(21.0), fs(&[7.0, 7.0])]);
    // x + x (1 + 2): the sum of all is s + s^2.
    assert_eq!(results(&inner("x"), &[fs(&[1.0, 2.0]), f(1.0)]), [f(12.0), fs(&[7.0, 7.0])]);
    let (program, main, _) = derived(&inner("x"), 0).expect("taken");
    let lam = program.funs[main].clone();
    let lam = Lam { params: lam.params, body: lam.body };
    let source = translate(&program, &lam, &lam.params).expect("taken").source.to_string();
    assert_eq!(source.matches(" zipWith ").count(), 2, "{source}");
    assert!(!source.contains("permute"), "{source}");
}

/// A read that does not depend on the counter stays where it is: nothing is read if there is nothing to do.
#[test]
fn nothing_is_read_where_a_nest_is_empty() {
    let text = format!(
        "fun f(a: []f64): f64 {{
            let n: i64 = size(a, 0)
            let ys: []f64 = map n [a] (x: f64) {{
                let v: f64 = a[2i64]
                let y: f64 = mul.f64(x, v)
                in y
            }}
            {}
            in r
        }}",
        sum("r", "n", "ys")
    );
    assert_eq!(results(&text, &[fs(&[]), f(1.0)]), [f(0.0), fs(&[])]);
    assert_eq!(results(&text, &[fs(&[1.0, 2.0, 3.0]), f(1.0)]), [f(18.0), fs(&[3.0, 3.0, 9.0])]);
}

/// A body makes an array of `2 n + 1` numbers; the function gives an integer, an array that does not vary, and the argument.
#[test]
fn sizes_of_inner_bodies_and_several_results() {
    let text = "fun f(a: []f64): []f64, i64, []f64 {
        let n: i64 = size(a, 0)
        let ys: []f64 = map n [a] (x: f64) {
            let m: i64 = mul.i64(2i64, n)
            let k: i64 = add.i64(m, 1i64)
            let is: []i64 = iota(k)
            let vs: []f64 = map k [is] (i: i64) {
                let v: f64 = convert.i64.f64(i)
                let w: f64 = mul.f64(v, x)
                in w
            }
            let s: f64 = reduce_comm k [0.0f64] [vs] (p: f64, q: f64) { let t: f64 = add.f64(p, q) in t }
            in s
        }
        in ys, n, a
    }";
    // 0 + 1 + .. + 4 = 10.
    let found = results(text, &[fs(&[1.0, 2.0]), fs(&[1.0, 3.0]), fs(&[0.5, 0.25])]);
    assert_eq!(found, [fs(&[10.0, 20.0]), Value::i64(2), fs(&[1.0, 2.0]), fs(&[10.5, 30.25])]);
}

/// A branch of arrays of different sizes, and inside of it another one.
#[test]
fn branches_of_arrays_of_different_sizes() {
    let text = "fun f(a: []f64, c: bool, d: bool): f64 {
        let n: i64 = size(a, 0)
        let r: []f64 = if c {
            let s: []f64 = if d { in a } else {
                let ones: []f64 = replicate([2i64], 1.0f64)
                in ones
            }
            let m: i64 = size(s, 0)
            let twice: []f64 = map m [s] (v: f64) { let w: f64 = add.f64(v, v) in w }
            in twice
        } else {
            let none: []f64 = replicate([0i64], 1.0f64)
            in none
        }
        let k: i64 = size(r, 0)
        let s: f64 = reduce_comm k [0.0f64] [r] (p: f64, q: f64) { let t: f64 = add.f64(p, q) in t }
        in s
    }"
    .replace("let s: []f64", "let u: []f64")
    .replace("size(s, 0)", "size(u, 0)")
    .replace("[s] (v", "[u] (v");
    let at = |c: bool, d: bool| results(&text, &[fs(&[1.0, 2.0, 3.0]), truth(c), truth(d), f(1.0)]);
    assert_eq!(at(true, true), [f(12.0), fs(&[2.0, 2.0, 2.0])]);
    assert_eq!(at(true, false), [f(4.0), fs(&[0.0, 0.0, 0.0])]);
    assert_eq!(at(false, true), [f(0.0), fs(&[0.0, 0.0, 0.0])]);
}

/// The derivative is an ordinary function: Fast CHAD differentiates it again, and so does the algorithm itself.
#[test]
fn derivatives_are_differentiated_again() {
    let text = format!(
        "fun f(a: []f64): f64 {{
            let n: i64 = size(a, 0)
            let ys: []f64 = map n [a] (x: f64) {{
                let y: f64 = mul.f64(x, x)
                let z: f64 = mul.f64(x, y)
                in z
            }}
            {}
            in r
        }}",
        sum("r", "n", "ys")
    );
    let (mut program, _, g) = derived(&text, 0).expect("taken");
    let args = [fs(&[1.5, -2.0]), f(0.75)];
    let second = add_vjp(&mut program, g, &Config::default()).expect("supported");
    assert_eq!(mismatch_of(&program, g, second, &args), None);
    let fun = program.funs[g].clone();
    let lam = Lam { params: fun.params, body: fun.body };
    let again = (VARIANTS[0].0.transform)(&mut program, &lam, &[true, true]).expect("supported");
    let again = add_function(&mut program, "again", again);
    assert_eq!(mismatch_of(&program, g, again, &args), None);
}

/// The construct that is refused.
pub(super) fn refused(text: &str) -> String {
    match derived(text, 0) {
        Ok(_) => panic!("taken: {text}"),
        Err(e) => {
            assert_eq!(e.algorithm, "accelerate");
            assert!(e.help.contains("fast_chad"), "{}", e.help);
            e.construct
        }
    }
}

/// What has no form is refused by name.
#[test]
fn refusals_name_the_construct() {
    let sum = "type t = #a f64 | #b
    fun f(p: t): f64 { let x: f64 = match p
        case (y: f64) { in y }
        case () { in 0.0f64 }
        in x }";
    assert_eq!(refused(sum), "a value of a sum type");
}

/// A part of the function's own body may have a result whose size a branch decides.
#[test]
fn a_branch_in_a_part_decides_the_size_of_the_result() {
    let text = "fun f(a: []f64, c: bool): []f64 {
        let b: []f64 = recompute {
            let r: []f64 = if c {
                let x: f64 = a[0i64]
                let t: []f64 = replicate([3i64], x)
                in t
            } else {
                in a
            }
            in r
        }
        in b
    }";
    let seeds = fs(&[1.0, 10.0, 100.0]);
    assert_eq!(results(text, &[fs(&[2.0]), truth(true), seeds]), [fs(&[2.0; 3]), fs(&[111.0])]);
    assert_eq!(results(text, &[fs(&[2.0]), truth(false), fs(&[5.0])]), [fs(&[2.0]), fs(&[5.0])]);
}
