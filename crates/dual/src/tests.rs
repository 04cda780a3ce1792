//! Every partial derivative is checked: a wrong one, of whichever rule, fails the check of the rules.

use crate::rules::{self, BINARY, UNARY};
use crate::{Scalar, derivative, grad};

#[path = "../tests/common/functions.rs"]
mod functions;
use functions::binary;

/// The functions of one number by the names of their rules, each with points inside of its domain.
fn unary<S: Scalar>(rule: &str, x: S) -> S {
    match rule {
        "acosh" => (x + S::from_f64(1.0)).acosh(),
        "powi" => x.powi(-3),
        "powf" => x.powf(<S::Float as crate::Float>::of_f64(1.7)),
        rule => functions::unary(rule, x),
    }
}

/// Rules by their names, as both modes call them.
macro_rules! rules {
    ($rule:expr, $args:tt: $($name:ident)*) => {
        match $rule {
            $(stringify!($name) => rules::$name $args,)*
            name => panic!("no such rule: {name}"),
        }
    };
}

/// The value and the partial derivative that a rule of one argument gives.
fn unary_rule(rule: &str, x: f64) -> (f64, f64) {
    match rule {
        "acosh" => rules::acosh(x + 1.0),
        "powi" => rules::powi(x, -3),
        "powf" => rules::powf(x, 1.7),
        rule => {
            rules!(rule, (x): recip sqrt cbrt exp exp2 exp_m1 ln log2 log10 ln_1p sin cos tan asin acos atan sinh cosh tanh
            asinh atanh abs sigmoid)
        }
    }
}
/// The same of two arguments.
fn binary_rule(rule: &str, a: f64, b: f64) -> (f64, f64, f64) {
    rules!(rule, (a, b): add sub mul div pow atan2 hypot max min)
}

/// Changes partial derivatives: the rule, which argument, the derivative.
type Change<'a> = &'a dyn Fn(&str, usize, f64) -> f64;
/// What becomes of a wrong one.
type Fault = fn(f64) -> f64;

/// Whether both modes give what the rules say, and that, with a change, agrees with differences.
fn rules_hold(change: Change<'_>) -> bool {
    let near = |a: f64, b: f64| (a - b).abs() < 1e-6 * (1.0 + b.abs());
    let h = 1e-5;
    let one = UNARY.iter().chain(&["powi", "powf"]).all(|rule| {
        [0.3, 0.7].iter().all(|&x| {
            let difference = (unary(rule, x + h) - unary(rule, x - h)) / (2.0 * h);
            let (value, partial) = unary_rule(rule, x);
            let both = [grad(|x| unary(rule, *x), &x), derivative(|x| unary(rule, x), x).1];
            value == unary(rule, x)
                && both.iter().all(|d| near(change(rule, 0, *d), difference))
                && near(change(rule, 0, partial), difference)
                && both.iter().all(|d| near(*d, partial))
        })
    });
    let two = BINARY.iter().all(|rule| {
        [(0.4, 1.3), (1.2, 0.6)].iter().all(|&(a, b)| {
            let da = (binary(rule, a + h, b) - binary(rule, a - h, b)) / (2.0 * h);
            let db = (binary(rule, a, b + h) - binary(rule, a, b - h)) / (2.0 * h);
            let g = grad(|&[a, b]| binary(rule, a, b), &[a, b]);
            let (value, first, second) = binary_rule(rule, a, b);
            value == binary(rule, a, b)
                && near(change(rule, 0, g[0]), da)
                && near(change(rule, 1, g[1]), db)
                && near(change(rule, 0, first), da)
                && near(change(rule, 1, second), db)
        })
    });
    one && two
}

#[test]
fn the_rules_hold() {
    assert!(rules_hold(&|_, _, d| d));
}

#[test]
fn a_wrong_partial_derivative_is_noticed_whichever_it_is() {
    let one = UNARY.iter().chain(&["powi", "powf"]).map(|rule| (*rule, 0));
    let two = BINARY.iter().flat_map(|rule| [(*rule, 0), (*rule, 1)]);
    let faults: [(&str, Fault); 3] = [("negated", |d| -d), ("doubled", |d| d + d), ("dropped", |_| 0.0)];
    let mut killed = 0;
    for (rule, argument) in one.chain(two) {
        for (name, fault) in faults {
            let change =
                |of: &str, at: usize, d: f64| if (of, at) == (rule, argument) { fault(d) } else { d };
            assert!(!rules_hold(&change), "{rule}, partial derivative {argument}, {name}: not noticed");
            killed += 1;
        }
    }
    assert_eq!(killed, 3 * (26 + 2 * 9));
}

#[test]
fn negation_and_constants_are_rules_too() {
    assert_eq!(grad(|x| -x, &2.0), -1.0);
    assert_eq!(grad(|x| 3.0 / (5.0 - x * 2.0) + (x + 1.0) / 4.0 - (1.0 + x), &1.0), 6.0 / 9.0 + 0.25 - 1.0);
    assert_eq!(derivative(|x| 3.0 / (5.0 - x * 2.0) + (x - 1.0) / 4.0, 1.0).1, 6.0 / 9.0 + 0.25);
    assert_eq!(size_of::<crate::tape::Row<f64>>(), 24);
    assert_eq!(size_of::<crate::tape::Row<f32>>(), 16);
}
