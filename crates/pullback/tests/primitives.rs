//! The functions of `pullback::dual` against the language's table of primitives: values and partial derivatives at special points.
//!
//! The two are written apart (the standard library's functions here, those of `libm` there), so values may differ by units in the last
//! place. Where they are no numbers, infinite, or signed zeros, they are so in both.

use pullback::dual::{Dual, Scalar, Var, gradient_forward, value_and_grad};
use pullback_prim::{Op, Prim, Scalar as Type, ScalarValue, eval_partial};

/// A function of one or two numbers: by its name, the primitive, and how the arguments of the primitive come from those of the function.
struct Row {
    name: &'static str,
    op: Op,
    arguments: fn(&[f64]) -> Vec<f64>,
    /// Which argument of the primitive each one of the function is.
    places: &'static [usize],
}

const fn row(name: &'static str, op: Op) -> Row {
    Row { name, op, arguments: <[f64]>::to_vec, places: &[0, 1] }
}

const ROWS: &[Row] = &[
    Row { name: "recip", op: Op::Div, arguments: |x| vec![1.0, x[0]], places: &[1] },
    row("sqrt", Op::Sqrt),
    row("cbrt", Op::Cbrt),
    row("exp", Op::Exp),
    Row { name: "exp2", op: Op::Pow, arguments: |x| vec![2.0, x[0]], places: &[1] },
    row("exp_m1", Op::Expm1),
    row("ln", Op::Log),
    row("log2", Op::Log2),
    row("log10", Op::Log10),
    row("ln_1p", Op::Log1p),
    row("sin", Op::Sin),
    row("cos", Op::Cos),
    row("tan", Op::Tan),
    row("asin", Op::Asin),
    row("acos", Op::Acos),
    row("atan", Op::Atan),
    row("sinh", Op::Sinh),
    row("cosh", Op::Cosh),
    row("tanh", Op::Tanh),
    row("asinh", Op::Asinh),
    row("acosh", Op::Acosh),
    row("atanh", Op::Atanh),
    row("abs", Op::Abs),
    row("signum", Op::Sgn),
    row("neg", Op::Neg),
    Row { name: "powi", op: Op::Pow, arguments: |x| vec![x[0], 3.0], places: &[0] },
    Row { name: "powi down", op: Op::Pow, arguments: |x| vec![x[0], -2.0], places: &[0] },
    Row { name: "powi none", op: Op::Pow, arguments: |x| vec![x[0], 0.0], places: &[0] },
    Row { name: "powf", op: Op::Pow, arguments: |x| vec![x[0], 0.5], places: &[0] },
    Row { name: "powf down", op: Op::Pow, arguments: |x| vec![x[0], -1.5], places: &[0] },
    Row { name: "powf none", op: Op::Pow, arguments: |x| vec![x[0], 0.0], places: &[0] },
    row("add", Op::Add),
    row("sub", Op::Sub),
    row("mul", Op::Mul),
    row("div", Op::Div),
    row("pow", Op::Pow),
    row("atan2", Op::Atan2),
    row("hypot", Op::Hypot),
    row("max", Op::Max),
    row("min", Op::Min),
];

fn unary<S: Scalar>(name: &str, x: S) -> S {
    let c = <S::Float as pullback::dual::Float>::of_f64;
    match name {
        "recip" => x.recip(),
        "sqrt" => x.sqrt(),
        "cbrt" => x.cbrt(),
        "exp" => x.exp(),
        "exp2" => x.exp2(),
        "exp_m1" => x.exp_m1(),
        "ln" => x.ln(),
        "log2" => x.log2(),
        "log10" => x.log10(),
        "ln_1p" => x.ln_1p(),
        "sin" => x.sin(),
        "cos" => x.cos(),
        "tan" => x.tan(),
        "asin" => x.asin(),
        "acos" => x.acos(),
        "atan" => x.atan(),
        "sinh" => x.sinh(),
        "cosh" => x.cosh(),
        "tanh" => x.tanh(),
        "asinh" => x.asinh(),
        "acosh" => x.acosh(),
        "atanh" => x.atanh(),
        "abs" => x.abs(),
        "signum" => x.signum(),
        "neg" => -x,
        "powi" => x.powi(3),
        "powi down" => x.powi(-2),
        "powi none" => x.powi(0),
        "powf" => x.powf(c(0.5)),
        "powf down" => x.powf(c(-1.5)),
        "powf none" => x.powf(c(0.0)),
        _ => panic!("no such function: {name}"),
    }
}

fn binary<S: Scalar>(name: &str, x: S, y: S) -> S {
    match name {
        "add" => x + y,
        "sub" => x - y,
        "mul" => x * y,
        "div" => x / y,
        "pow" => x.pow(y),
        "atan2" => x.atan2(y),
        "hypot" => x.hypot(y),
        "max" => x.max(y),
        "min" => x.min(y),
        _ => panic!("no such function: {name}"),
    }
}

/// Next to everything where functions change, and of every size.
fn points() -> Vec<f64> {
    let sizes = [
        0.0,
        5e-324,
        2.3e-308,
        1e-300,
        1e-160,
        1e-20,
        1e-8,
        0.1,
        0.5,
        0.9,
        1.0 - 1e-9,
        1.0f64.next_down(),
        1.0,
        1.0f64.next_up(),
        1.0 + 1e-9,
        1.5,
        2.0,
        3.0,
        5.0,
        10.0,
        19.5,
        25.0,
        40.0,
        300.0,
        700.0,
        710.4,
        745.5,
        800.0,
        1e5,
        3e8,
        1e16,
        1e100,
        1e160,
        1e300,
        1.7e308,
        f64::INFINITY,
    ];
    sizes.iter().flat_map(|x| [*x, -x]).chain([f64::NAN]).collect()
}

/// Whether two numbers are the same one up to `units` in the last place, signs of zeros too.
fn same(a: f64, b: f64, units: f64) -> bool {
    if a == 0.0 && b == 0.0 {
        return a.is_sign_negative() == b.is_sign_negative();
    }
    a == b
        || a.is_nan() && b.is_nan()
        || a.is_finite() && (a - b).abs() <= units * (b.abs().next_up() - b.abs())
}

/// The table's value and partial derivatives at double precision.
fn table(row: &Row, x: &[f64]) -> (f64, Vec<f64>) {
    let prim = Prim::Op(row.op, Type::F64);
    let args: Vec<ScalarValue> = (row.arguments)(x).iter().map(|x| Type::F64.from_f64(*x)).collect();
    let value = prim.eval(&args).expect("a float operation");
    let partials = prim.partials().expect("it has derivatives");
    let partial = |place: &usize| eval_partial(&partials[*place], &args, value).expect("a float operation");
    (value.as_f64(), row.places[..x.len()].iter().map(partial).collect())
}

/// The table's partial derivative, but where a convention is wanted in its place.
fn convention(row: &Row, x: &[f64], place: usize, partial: f64) -> f64 {
    let exponent = (row.arguments)(x).last().copied();
    match row.op {
        // Ties take halves.
        Op::Max | Op::Min if x[0] == x[1] => 0.5,
        // `x^0` is 1 everywhere, also where the table multiplies 0 by a power that overflows.
        Op::Pow if place == 0 && exponent == Some(0.0) && partial.is_nan() => 0.0,
        _ => partial,
    }
}

/// Whether two numbers differ by what the table loses in `1 - r * r`, which is next to 1.
fn cancels(row: &Row, found: f64, right: f64) -> bool {
    row.op == Op::Tanh && (found - right).abs() <= 2.0 * f64::EPSILON
}

#[test]
fn values_and_partial_derivatives_are_those_of_the_table() {
    let points = points();
    let (mut values, mut derivatives) = (0, 0);
    let mut differ = Vec::new();
    for row in ROWS {
        let pairs = points.iter().flat_map(|x| points.iter().map(move |y| vec![*x, *y]));
        let all: Vec<Vec<f64>> = if row.places.len() == 1 || row.op.row().arity == 1 {
            points.iter().map(|x| vec![*x]).collect()
        } else {
            pairs.collect()
        };
        for x in all {
            let (value, partials) = table(row, &x);
            let (found, reverse, forward) = match x[..] {
                [x] => {
                    let (value, d) = value_and_grad(|x: &Var<'_>| unary(row.name, *x), &x);
                    (value, vec![d], vec![pullback::dual::derivative(|x| unary(row.name, x), x).1])
                }
                _ => {
                    let at = [x[0], x[1]];
                    let (value, d) = value_and_grad(|&[x, y]| binary(row.name, x, y), &at);
                    let forward = gradient_forward::<2, _, _, _>(
                        |&[x, y]: &[Dual<'_, f64, 2>; 2]| binary(row.name, x, y),
                        &at,
                    );
                    (value, d.to_vec(), forward.1.to_vec())
                }
            };
            values += 1;
            if !same(found, value, 4.0) {
                differ.push(format!("{} {x:?}: {found:e}, the table {value:e}", row.name));
            }
            let is_finite = x.iter().all(|x| x.is_finite());
            for (place, right) in partials.iter().enumerate() {
                derivatives += 1;
                let right = convention(row, &x, place, *right);
                let agrees = |found: f64| same(found + 0.0, right + 0.0, 8.0) || cancels(row, found, right);
                if !agrees(reverse[place]) {
                    differ.push(format!(
                        "{} {x:?}: reverse {place}: {:e}, the table {right:e}",
                        row.name, reverse[place]
                    ));
                }
                // At other arguments a direction meets the infinite partial derivatives of products along the other one.
                if is_finite && !agrees(forward[place]) {
                    differ.push(format!(
                        "{} {x:?}: forward {place}: {:e}, the table {right:e}",
                        row.name, forward[place]
                    ));
                }
            }
        }
    }
    assert!(values > 20_000 && derivatives > 40_000, "{values} values, {derivatives} derivatives");
    assert!(differ.is_empty(), "{} of {values} and {derivatives}:\n{}", differ.len(), differ.join("\n"));
}

/// The names of all rules, in the sources of the library.
#[test]
fn every_rule_has_a_row() {
    let rules = include_str!("../../dual/src/rules.rs");
    for list in ["UNARY", "BINARY"] {
        let (_, after) = rules.split_once(&format!("const {list}: &[&str] = &[")).expect("a list of names");
        let (names, _) = after.split_once("];").expect("its end");
        for name in names.split(',').map(|name| name.trim().trim_matches('"')).filter(|name| !name.is_empty())
        {
            // The logistic function is no primitive; it is compared with mpmath.
            assert!(name == "sigmoid" || ROWS.iter().any(|row| row.name == name), "{name} is not compared");
        }
    }
}
