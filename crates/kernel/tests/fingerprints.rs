//! Fingerprints are numbers of a field, and tell computations apart.

use pullback_kernel::internals::of_prim;
use pullback_kernel::run::Fingerprint;
use pullback_prim::{Op, Prim, Scalar, ScalarValue};

fn f64_prim(op: Op, args: &[f64]) -> Fingerprint {
    let args: Vec<_> = args.iter().map(|x| ScalarValue::F64(*x)).map(|x| (x, Fingerprint::of(x))).collect();
    of_prim(Prim::Op(op, Scalar::F64), &args, ScalarValue::F64(1.0))
}

/// 3/4 and so on are numbers of the field, and `a / b * b` is `a` there.
#[test]
fn arithmetic_of_constants_is_that_of_fractions() {
    let of = |x: f64| Fingerprint::of(ScalarValue::F64(x));
    for (a, b) in [(0.75, -3.5), (1e-300, 2.0), (5e-324, 3.0), (-1.5e300, 0.125), (0.0, 7.0), (1.0, 1.0)] {
        assert_eq!(f64_prim(Op::Mul, &[a, b]), of(a).times(of(b)));
        assert_eq!(f64_prim(Op::Div, &[a, b]).times(of(b)), of(a), "{a} / {b}");
        assert_eq!(f64_prim(Op::Sub, &[a, a]), of(0.0));
        assert_eq!(f64_prim(Op::Neg, &[a]).plus(of(a)), of(0.0));
    }
    assert_eq!(f64_prim(Op::Add, &[0.75, -3.5]), of(-2.75));
    assert_eq!(f64_prim(Op::Mul, &[0.75, -3.5]), of(-2.625));
    assert_eq!(of(-0.0), of(0.0));
    assert_ne!(of(f64::INFINITY), of(f64::NEG_INFINITY));
}

#[test]
fn other_primitives_tell_their_arguments_apart() {
    let atan2 = |x, y| f64_prim(Op::Atan2, &[x, y]);
    assert_eq!(atan2(1.0, 2.0), atan2(1.0, 2.0));
    assert_ne!(atan2(1.0, 2.0), atan2(2.0, 1.0));
    assert_ne!(f64_prim(Op::Sin, &[0.0]), f64_prim(Op::Sinh, &[0.0]));
}

/// The chosen argument's, whichever comes first; of two equal ones always the same.
#[test]
fn a_choice_has_the_fingerprint_of_what_it_chooses() {
    let whole = |x: f64| Fingerprint::of(ScalarValue::F64(x));
    let args = |v: f64, w: f64| [(ScalarValue::F64(v), whole(5.0)), (ScalarValue::F64(w), whole(3.0))];
    let min = |v, w| of_prim(Prim::Op(Op::Min, Scalar::F64), &args(v, w), ScalarValue::F64(0.0));
    let max = |v, w| of_prim(Prim::Op(Op::Max, Scalar::F64), &args(v, w), ScalarValue::F64(0.0));
    assert_eq!([min(1.0, 2.0), min(2.0, 1.0), min(1.0, 1.0)], [5.0, 3.0, 3.0].map(whole));
    assert_eq!([max(1.0, 2.0), max(2.0, 1.0), max(1.0, 1.0)], [3.0, 5.0, 3.0].map(whole));
}
