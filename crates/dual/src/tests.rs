//! Every partial derivative is checked: a wrong one, of whichever rule, fails the check of the rules.

use crate::rules::mutation::{ACTIVE, Fault};
use crate::rules::{BINARY, UNARY};
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

/// Whether both modes agree with differences, for all rules.
fn rules_hold() -> bool {
    let near = |a: f64, b: f64| (a - b).abs() < 1e-6 * (1.0 + b.abs());
    let h = 1e-5;
    let one = UNARY.iter().chain(&["powi", "powf"]).all(|rule| {
        [0.3, 0.7].iter().all(|&x| {
            let difference = (unary(rule, x + h) - unary(rule, x - h)) / (2.0 * h);
            near(grad(|x| unary(rule, *x), &x), difference)
                && near(derivative(|x| unary(rule, x), x).1, difference)
        })
    });
    let two = BINARY.iter().all(|rule| {
        [(0.4, 1.3), (1.2, 0.6)].iter().all(|&(a, b)| {
            let da = (binary(rule, a + h, b) - binary(rule, a - h, b)) / (2.0 * h);
            let db = (binary(rule, a, b + h) - binary(rule, a, b - h)) / (2.0 * h);
            let g = grad(|&[a, b]| binary(rule, a, b), &[a, b]);
            near(g[0], da) && near(g[1], db)
        })
    });
    one && two
}

#[test]
fn the_rules_hold() {
    assert!(rules_hold());
}

#[test]
fn a_wrong_partial_derivative_is_noticed_whichever_it_is() {
    let one = UNARY.iter().chain(&["powi", "powf"]).map(|rule| (*rule, 0));
    let two = BINARY.iter().flat_map(|rule| [(*rule, 0), (*rule, 1)]);
    let mut killed = 0;
    for (rule, argument) in one.chain(two) {
        for fault in [Fault::Negated, Fault::Doubled, Fault::Dropped] {
            ACTIVE.set(Some((rule, argument, fault)));
            let noticed = !rules_hold();
            ACTIVE.set(None);
            assert!(noticed, "{rule}, partial derivative {argument}: {fault:?} is not noticed");
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
