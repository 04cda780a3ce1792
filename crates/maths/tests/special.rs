//! At special arguments the functions mean what the interpreter means by them.

use pullback_maths::portable::One;
use pullback_maths::{Function, apply, apply_single};
use pullback_prim::{Op, Prim, Scalar, ScalarValue};

const SPECIAL: &[f64] = &[
    f64::NAN,
    f64::INFINITY,
    f64::NEG_INFINITY,
    0.0,
    -0.0,
    5e-324,
    -5e-324,
    1e-310,
    -1e-310,
    f64::MIN_POSITIVE,
    -f64::MIN_POSITIVE,
    f64::MAX,
    f64::MIN,
    1.0,
    -1.0,
    2.0,
    -2.0,
    3.0,
    -3.0,
    0.5,
    -0.5,
    1.5,
    -1.5,
    -2.5,
    0.1,
    -0.1,
    10.0,
    1000.0,
    -1000.0,
    -6527.8564,
    1e-20,
    -1e-20,
    1e20,
    -1e20,
    1e300,
    -1e300,
    4503599627370497.0,
    -4503599627370497.0,
    9007199254740993.0,
    1.0000000000000002,
    -1.0000000000000002,
    0.9999999999999999,
    -0.9999999999999999,
    709.782712893384,
    709.7827128933841,
    -745.1332191019411,
    -745.1332191019412,
    710.4758600739439,
    710.475860073944,
    2.5599833278e305,
    2.56e305,
];

/// All tuples of special arguments.
fn tuples(function: Function) -> Vec<Vec<f64>> {
    if function.facts().arity == 1 {
        return SPECIAL.iter().map(|x| vec![*x]).collect();
    }
    SPECIAL.iter().flat_map(|x| SPECIAL.iter().map(|y| vec![*x, *y])).collect()
}

/// The same special value, or nearly the same number: the C library's functions err by some units themselves.
fn agree(a: f64, b: f64, unit: f64) -> bool {
    if a.is_nan() || b.is_nan() || a == 0.0 || b == 0.0 || a.is_infinite() || b.is_infinite() {
        let same = a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan());
        // Next to the smallest number or the zero of a function one of them may be zero.
        return same
            || (a.abs() <= 2.0 * unit
                && b.abs() <= 2.0 * unit
                && a.is_sign_negative() == b.is_sign_negative());
    }
    (a - b).abs() <= 8.0 * f64::EPSILON * a.abs() + 2.0 * unit
}

#[test]
fn special_arguments_have_the_values_of_the_interpreter() {
    for function in Function::ALL.iter().copied() {
        let Some(op) = function.facts().op else { continue };
        for args in tuples(function) {
            let ours = apply(&One, function, &args).expect("the arity");
            let values: Vec<_> = args.iter().map(|x| ScalarValue::F64(*x)).collect();
            let meant = Prim::Op(op, Scalar::F64).eval(&values).expect("floats have values").as_f64();
            assert!(
                agree(ours, meant, 5e-324),
                "{} {args:?}: {ours:?}, not {meant:?}",
                function.facts().name
            );
        }
    }
}

#[test]
fn special_arguments_of_single_precision_have_the_values_of_the_interpreter() {
    for function in Function::ALL.iter().copied() {
        let Some(op) = function.facts().op else { continue };
        for args in tuples(function) {
            let args: Vec<_> = args.iter().map(|x| *x as f32).collect();
            let ours = f64::from(apply_single(&One, function, &args).expect("the arity"));
            let values: Vec<_> = args.iter().map(|x| ScalarValue::F32(*x)).collect();
            let meant = Prim::Op(op, Scalar::F32).eval(&values).expect("floats have values").as_f64();
            let agrees = agree(ours, meant, 1.5e-45) || (ours - meant).abs() <= 1e-6 * meant.abs();
            assert!(agrees, "{} {args:?}: {ours:?}, not {meant:?}", function.facts().name);
        }
    }
}

#[test]
fn functions_without_a_primitive_have_their_limits() {
    let value = |function, x: f64| apply(&One, function, &[x]).expect("one argument");
    assert_eq!(value(Function::Exp2, f64::NEG_INFINITY), 0.0);
    assert_eq!(value(Function::Exp2, f64::INFINITY), f64::INFINITY);
    assert_eq!(value(Function::Exp2, 1024.0), f64::INFINITY);
    assert_eq!(value(Function::Exp2, -1074.0), 5e-324);
    assert_eq!(value(Function::Exp2, -1076.0), 0.0);
    assert_eq!(value(Function::Exp2, 10.0), 1024.0);
    assert!(value(Function::Exp2, f64::NAN).is_nan());
    assert_eq!(value(Function::Sigmoid, f64::NEG_INFINITY), 0.0);
    assert_eq!(value(Function::Sigmoid, f64::INFINITY), 1.0);
    assert_eq!(value(Function::Sigmoid, 0.0), 0.5);
    assert!(value(Function::Sigmoid, f64::NAN).is_nan());
}

/// Exact cases of which exactness is expected.
#[test]
fn round_numbers_come_out_exactly() {
    let value = |function, args: &[f64]| apply(&One, function, args).expect("the arity");
    for n in -300..=300 {
        let power = 2f64.powi(n);
        assert_eq!(value(Function::Log2, &[power]), f64::from(n));
        assert_eq!(value(Function::Exp2, &[f64::from(n)]), power);
        assert_eq!(value(Function::Pow, &[2.0, f64::from(n)]), power);
        assert_eq!(value(Function::Cbrt, &[power * power * power]), power);
    }
    for n in 0..=22 {
        let power = 10f64.powi(n);
        assert_eq!(value(Function::Log10, &[power]), f64::from(n));
        assert_eq!(value(Function::Pow, &[10.0, f64::from(n)]), power);
    }
    let huge = 2f64.powi(1000);
    assert_eq!(value(Function::Hypot, &[3.0 * huge, 4.0 * huge]), 5.0 * huge);
    assert_eq!(value(Function::Lgamma, &[1.0]), 0.0);
    assert_eq!(value(Function::Lgamma, &[2.0]), 0.0);
}

/// A new function of the primitive table has to be decided about.
#[test]
fn every_primitive_is_a_function_or_known_not_to_be() {
    let arithmetic = [Op::Neg, Op::Abs, Op::Sgn, Op::Sqrt, Op::Floor, Op::Ceil, Op::Round, Op::Trunc];
    let arithmetic_of_two =
        [Op::Add, Op::Sub, Op::Mul, Op::StrongMul, Op::MutualMul, Op::Div, Op::Mod, Op::Select];
    let extrema = [Op::Min, Op::Max, Op::MinFirst, Op::MaxFirst];
    let tests = [Op::IsNan, Op::IsInf, Op::Eq, Op::Ne, Op::Lt, Op::Le];
    // Without vector versions: the interpreter's are called.
    let scalar = [Op::Gamma, Op::Digamma, Op::Polygamma];
    for op in Op::ALL.iter().copied() {
        let is_known = [&arithmetic[..], &arithmetic_of_two, &extrema, &tests, &scalar]
            .iter()
            .any(|ops| ops.contains(&op));
        let is_float = Prim::Op(op, Scalar::F64).is_valid();
        assert_eq!(is_float && !is_known, Function::of_op(op).is_some(), "{op:?}");
    }
    for function in Function::ALL.iter().copied() {
        assert_eq!(Function::from_name(function.facts().name), Some(function));
        assert!(function.facts().op.is_none_or(|op| op.name() == function.facts().name));
    }
    assert_eq!(Function::from_name("nothing"), None);
}
