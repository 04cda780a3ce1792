//! Floating point operations, conversions and the text form at written values: edges, kinks, NaN and infinities.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;

use pullback_prim::{Op, Partial, Prim, PrimError, Scalar, ScalarValue, eval_partial, table_as_markdown};

const INF: f64 = f64::INFINITY;
const NAN: f64 = f64::NAN;

/// Equal within some units in the last place (special functions of `libm` promise no more); NaN is NaN; zeros differ by sign.
fn same(got: f64, want: f64) -> bool {
    if want == 0.0 || want.is_infinite() {
        got == want && got.is_sign_negative() == want.is_sign_negative()
    } else {
        got.is_nan() && want.is_nan() || (got - want).abs() <= 4e-15 * want.abs()
    }
}

/// Operation, arguments, value, partial derivatives. Values computed with 50 digits (mpmath 1.3) or exact.
type Row = (Op, &'static [f64], f64, &'static [f64]);

const UNARY: &[Row] = &[
    (Op::Neg, &[0.0], -0.0, &[-1.0]),
    (Op::Neg, &[NAN], NAN, &[-1.0]),
    (Op::Abs, &[0.0], 0.0, &[0.0]),
    (Op::Abs, &[-0.0], 0.0, &[0.0]),
    (Op::Abs, &[-INF], INF, &[-1.0]),
    (Op::Sgn, &[0.0], 0.0, &[0.0]),
    (Op::Sgn, &[-0.0], 0.0, &[0.0]),
    (Op::Sgn, &[-INF], -1.0, &[0.0]),
    (Op::Sgn, &[NAN], NAN, &[0.0]),
    (Op::Sqrt, &[0.0], 0.0, &[INF]),
    (Op::Sqrt, &[4.0], 2.0, &[0.25]),
    (Op::Sqrt, &[-1.0], NAN, &[NAN]),
    (Op::Sqrt, &[INF], INF, &[0.0]),
    (Op::Cbrt, &[0.0], 0.0, &[INF]),
    (Op::Cbrt, &[-8.0], -2.0, &[1.0 / 12.0]),
    (Op::Cbrt, &[2.5], 1.3572088082974534, &[0.18096117443966045]),
    (Op::Exp, &[0.0], 1.0, &[1.0]),
    (Op::Exp, &[1.0], std::f64::consts::E, &[std::f64::consts::E]),
    (Op::Exp, &[-INF], 0.0, &[0.0]),
    (Op::Exp, &[1000.0], INF, &[INF]),
    (Op::Expm1, &[1e-10], 1.00000000005e-10, &[1.0000000001]),
    (Op::Expm1, &[-INF], -1.0, &[0.0]),
    (Op::Log, &[0.0], -INF, &[INF]),
    (Op::Log, &[2.5], 0.9162907318741551, &[0.4]),
    (Op::Log, &[-1.0], NAN, &[-1.0]),
    (Op::Log2, &[8.0], 3.0, &[0.1803368801111204]),
    (Op::Log10, &[1000.0], 3.0, &[4.342944819032518e-4]),
    (Op::Log1p, &[1e-10], 9.999999999500001e-11, &[0.9999999999]),
    (Op::Log1p, &[-1.0], -INF, &[INF]),
    (Op::Sin, &[0.0], 0.0, &[1.0]),
    (Op::Sin, &[2.5], 0.5984721441039565, &[-0.8011436155469337]),
    (Op::Sin, &[INF], NAN, &[NAN]),
    (Op::Cos, &[2.5], -0.8011436155469337, &[-0.5984721441039565]),
    (Op::Tan, &[2.5], -0.7470222972386603, &[1.5580423125717253]),
    (Op::Asin, &[1.0], std::f64::consts::FRAC_PI_2, &[INF]),
    (Op::Asin, &[0.5], std::f64::consts::FRAC_PI_6, &[1.1547005383792515]),
    (Op::Asin, &[1.5], NAN, &[NAN]),
    (Op::Acos, &[-1.0], std::f64::consts::PI, &[-INF]),
    (Op::Acos, &[0.5], std::f64::consts::FRAC_PI_3, &[-1.1547005383792515]),
    (Op::Atan, &[INF], std::f64::consts::FRAC_PI_2, &[0.0]),
    (Op::Atan, &[2.5], 1.1902899496825317, &[0.13793103448275862]),
    (Op::Sinh, &[2.5], 6.0502044810397875, &[6.132289479663686]),
    (Op::Cosh, &[2.5], 6.132289479663686, &[6.0502044810397875]),
    (Op::Tanh, &[INF], 1.0, &[0.0]),
    (Op::Tanh, &[0.5], 0.46211715726000974, &[0.7864477329659274]),
    (Op::Asinh, &[2.5], 1.6472311463710958, &[0.3713906763541037]),
    (Op::Asinh, &[1e200], 461.2101657793691, &[1e-200]),
    (Op::Acosh, &[1.0], 0.0, &[INF]),
    (Op::Acosh, &[2.5], 1.566799236972411, &[0.4364357804719848]),
    (Op::Acosh, &[-2.0], NAN, &[NAN]),
    (Op::Atanh, &[1.0], INF, &[INF]),
    (Op::Atanh, &[0.5], 0.5493061443340549, &[1.3333333333333333]),
    (Op::Floor, &[-0.5], -1.0, &[0.0]),
    (Op::Floor, &[2.0], 2.0, &[0.0]),
    (Op::Ceil, &[0.5], 1.0, &[0.0]),
    (Op::Ceil, &[-0.5], -0.0, &[0.0]),
    (Op::Round, &[0.5], 0.0, &[0.0]),
    (Op::Round, &[1.5], 2.0, &[0.0]),
    (Op::Round, &[-2.5], -2.0, &[0.0]),
    (Op::Trunc, &[-1.7], -1.0, &[0.0]),
    (Op::Erf, &[0.5], 0.5204998778130465, &[0.8787825789354448]),
    (Op::Erf, &[-INF], -1.0, &[0.0]),
    (Op::Erfc, &[5.0], 1.537459794428035e-12, &[-1.5670866531017336e-11]),
    (Op::Erfc, &[0.0], 1.0, &[-std::f64::consts::FRAC_2_SQRT_PI]),
    (Op::Lgamma, &[1.0], 0.0, &[-0.5772156649015329]),
    (Op::Lgamma, &[2.5], 0.2846828704729192, &[0.7031566406452432]),
    (Op::Lgamma, &[-1.5], 0.860047015376481, &[0.7031566406452432]),
    (Op::Lgamma, &[0.0], INF, &[-INF]),
    (Op::Lgamma, &[-2.0], INF, &[NAN]),
    (Op::Gamma, &[5.0], 24.0, &[36.14682404236321]),
    (Op::Gamma, &[-1.5], 2.363271801207355, &[1.6617502606685965]),
    (Op::Digamma, &[1.0], -0.5772156649015329, &[1.6449340668482264]),
    (Op::Digamma, &[0.5], -1.9635100260214235, &[4.934802200544679]),
];

const BINARY: &[Row] = &[
    (Op::Add, &[INF, -INF], NAN, &[1.0, 1.0]),
    (Op::Sub, &[1.0, 1.0], 0.0, &[1.0, -1.0]),
    (Op::Mul, &[0.0, INF], NAN, &[INF, 0.0]),
    (Op::Div, &[1.0, 0.0], INF, &[INF, -INF]),
    (Op::Div, &[0.0, 0.0], NAN, &[INF, NAN]),
    (Op::Div, &[6.0, -4.0], -1.5, &[-0.25, -0.375]),
    (Op::Mod, &[5.5, 2.0], 1.5, &[1.0, -2.0]),
    (Op::Mod, &[-5.5, 2.0], -1.5, &[1.0, 2.0]),
    (Op::Mod, &[5.5, -2.0], 1.5, &[1.0, 2.0]),
    (Op::Mod, &[6.0, 2.0], 0.0, &[1.0, -3.0]),
    (Op::Mod, &[1.0, 0.0], NAN, &[1.0, NAN]),
    (Op::Pow, &[0.0, 0.0], 1.0, &[0.0, 0.0]),
    (Op::Pow, &[0.0, 1.0], 0.0, &[1.0, 0.0]),
    (Op::Pow, &[0.0, 2.0], 0.0, &[0.0, 0.0]),
    (Op::Pow, &[0.0, 0.5], 0.0, &[INF, 0.0]),
    (Op::Pow, &[0.0, -1.0], INF, &[-INF, 0.0]),
    (Op::Pow, &[3.0, 0.0], 1.0, &[0.0, 1.0986122886681098]),
    (Op::Pow, &[-2.0, 3.0], -8.0, &[12.0, 0.0]),
    (Op::Pow, &[-2.0, 0.5], NAN, &[NAN, 0.0]),
    (Op::Pow, &[2.5, 1.5], 3.952847075210474, &[2.3717082451262845, 3.6219571395312187]),
    (Op::Min, &[1.0, 1.0], 1.0, &[0.5, 0.5]),
    (Op::Min, &[1.0, 2.0], 1.0, &[1.0, 0.0]),
    (Op::Min, &[2.0, 1.0], 1.0, &[0.0, 1.0]),
    (Op::Min, &[0.0, -0.0], -0.0, &[0.5, 0.5]),
    (Op::Min, &[-0.0, 0.0], -0.0, &[0.5, 0.5]),
    (Op::Min, &[NAN, 1.0], 1.0, &[0.0, 1.0]),
    (Op::Min, &[1.0, NAN], 1.0, &[1.0, 0.0]),
    (Op::Min, &[NAN, NAN], NAN, &[1.0, 0.0]),
    (Op::Min, &[-INF, INF], -INF, &[1.0, 0.0]),
    (Op::Min, &[INF, INF], INF, &[0.5, 0.5]),
    (Op::Max, &[1.0, 1.0], 1.0, &[0.5, 0.5]),
    (Op::Max, &[1.0, 2.0], 2.0, &[0.0, 1.0]),
    (Op::Max, &[2.0, 1.0], 2.0, &[1.0, 0.0]),
    (Op::Max, &[-0.0, 0.0], 0.0, &[0.5, 0.5]),
    (Op::Max, &[0.0, -0.0], 0.0, &[0.5, 0.5]),
    (Op::Max, &[NAN, 1.0], 1.0, &[0.0, 1.0]),
    (Op::Max, &[1.0, NAN], 1.0, &[1.0, 0.0]),
    (Op::Max, &[NAN, NAN], NAN, &[1.0, 0.0]),
    (Op::MinFirst, &[1.0, 1.0], 1.0, &[1.0, 0.0]),
    (Op::MinFirst, &[1.0, 2.0], 1.0, &[1.0, 0.0]),
    (Op::MinFirst, &[2.0, 1.0], 1.0, &[0.0, 1.0]),
    (Op::MinFirst, &[0.0, -0.0], -0.0, &[1.0, 0.0]),
    (Op::MinFirst, &[-0.0, 0.0], -0.0, &[1.0, 0.0]),
    (Op::MinFirst, &[NAN, 1.0], 1.0, &[0.0, 1.0]),
    (Op::MinFirst, &[1.0, NAN], 1.0, &[1.0, 0.0]),
    (Op::MinFirst, &[NAN, NAN], NAN, &[1.0, 0.0]),
    (Op::MinFirst, &[-INF, INF], -INF, &[1.0, 0.0]),
    (Op::MaxFirst, &[1.0, 1.0], 1.0, &[1.0, 0.0]),
    (Op::MaxFirst, &[1.0, 2.0], 2.0, &[0.0, 1.0]),
    (Op::MaxFirst, &[2.0, 1.0], 2.0, &[1.0, 0.0]),
    (Op::MaxFirst, &[-0.0, 0.0], 0.0, &[1.0, 0.0]),
    (Op::MaxFirst, &[0.0, -0.0], 0.0, &[1.0, 0.0]),
    (Op::MaxFirst, &[NAN, 1.0], 1.0, &[0.0, 1.0]),
    (Op::MaxFirst, &[1.0, NAN], 1.0, &[1.0, 0.0]),
    (Op::MaxFirst, &[NAN, NAN], NAN, &[1.0, 0.0]),
    (Op::StrongMul, &[0.0, INF], 0.0, &[INF, 0.0]),
    (Op::StrongMul, &[-0.0, NAN], 0.0, &[NAN, -0.0]),
    (Op::StrongMul, &[-0.0, 3.0], 0.0, &[3.0, -0.0]),
    (Op::StrongMul, &[0.0, -2.0], 0.0, &[-2.0, 0.0]),
    (Op::StrongMul, &[2.0, -INF], -INF, &[-INF, 2.0]),
    (Op::StrongMul, &[3.0, -2.0], -6.0, &[-2.0, 3.0]),
    (Op::StrongMul, &[INF, 0.0], NAN, &[0.0, INF]),
    (Op::StrongMul, &[NAN, 2.0], NAN, &[2.0, NAN]),
    (Op::StrongMul, &[5e-324, 2.0], 1e-323, &[2.0, 5e-324]),
    (Op::MutualMul, &[0.0, INF], 0.0, &[INF, 0.0]),
    (Op::MutualMul, &[-INF, -0.0], 0.0, &[-0.0, -INF]),
    (Op::MutualMul, &[NAN, 0.0], 0.0, &[0.0, NAN]),
    (Op::MutualMul, &[-0.0, 3.0], 0.0, &[3.0, -0.0]),
    (Op::MutualMul, &[2.0, -INF], -INF, &[-INF, 2.0]),
    (Op::MutualMul, &[3.0, NAN], NAN, &[NAN, 3.0]),
    (Op::Atan2, &[1.0, 0.0], std::f64::consts::FRAC_PI_2, &[0.0, -1.0]),
    (Op::Atan2, &[0.0, -1.0], std::f64::consts::PI, &[-1.0, -0.0]),
    (Op::Atan2, &[0.0, 0.0], 0.0, &[NAN, NAN]),
    (Op::Atan2, &[3e200, 4e200], 0.6435011087932844, &[1.6e-201, -1.2e-201]),
    (Op::Hypot, &[3.0, 4.0], 5.0, &[0.6, 0.8]),
    (Op::Hypot, &[3e200, 4e200], 5e200, &[0.6, 0.8]),
    (Op::Hypot, &[0.0, 0.0], 0.0, &[0.0, 0.0]),
    (Op::Hypot, &[0.0, -2.0], 2.0, &[0.0, -1.0]),
    (Op::Polygamma, &[0.0, 1.0], -0.5772156649015329, &[0.0, 1.6449340668482264]),
    (Op::Polygamma, &[1.0, 1.0], 1.6449340668482264, &[0.0, -2.4041138063191885]),
    (Op::Polygamma, &[0.5, 1.0], NAN, &[0.0, NAN]),
];

#[test]
fn values_and_derivatives_at_the_edges() {
    let mut seen = BTreeSet::new();
    for (op, args, value, partials) in UNARY.iter().chain(BINARY) {
        seen.insert(*op);
        let prim = Prim::Op(*op, Scalar::F64);
        let args: Vec<ScalarValue> = args.iter().map(|&x| x.into()).collect();
        let result = prim.eval(&args).unwrap();
        assert!(same(result.as_f64(), *value), "{prim} {args:?}: {result} and not {value}");
        let expressions = prim.partials().unwrap();
        assert_eq!(expressions.len(), partials.len());
        for (i, (expression, want)) in expressions.iter().zip(*partials).enumerate() {
            let got = eval_partial(expression, &args, result).unwrap();
            assert!(same(got, *want) || got == *want, "{prim} by {i} at {args:?}: {got} and not {want}");
        }
    }
    for op in Op::ALL {
        let is_listed = seen.contains(op) || op.row().partials.is_none() || *op == Op::Select;
        assert!(is_listed, "{op:?} has no edge case");
    }
}

#[test]
fn single_precision_edges_agree_in_kind() {
    for (op, args, value, _) in UNARY.iter().chain(BINARY) {
        if value.is_nan() || *value == 0.0 || value.is_infinite() {
            let args: Vec<ScalarValue> = args.iter().map(|&x| Scalar::F32.from_f64(x)).collect();
            let result = Prim::Op(*op, Scalar::F32).eval(&args).unwrap();
            assert!(same(result.as_f64(), *value), "{op:?} {args:?}: {result}");
        }
    }
}

#[test]
fn select_takes_either_side_whatever_the_other_is() {
    let select = Prim::Op(Op::Select, Scalar::F64);
    assert_eq!(select.params(), [Scalar::Bool, Scalar::F64, Scalar::F64]);
    for (condition, want, partials) in [(true, 2.0, [0.0, 1.0, 0.0]), (false, NAN, [0.0, 0.0, 1.0])] {
        let args = [condition.into(), ScalarValue::F64(2.0), ScalarValue::F64(NAN)];
        let result = select.eval(&args).unwrap();
        assert_eq!(result, ScalarValue::F64(want));
        for (expression, want) in select.partials().unwrap().iter().zip(partials) {
            assert_eq!(eval_partial(expression, &args, result), Ok(want));
        }
    }
    let swap = [true.into(), ScalarValue::Bool(false), true.into()];
    assert_eq!(Prim::Op(Op::Select, Scalar::Bool).eval(&swap), Ok(false.into()));
    assert_eq!(Prim::Op(Op::Select, Scalar::I64).partials(), None);
}

#[test]
fn tests_on_floats_are_those_of_ieee() {
    let test = |op, args: &[f64]| {
        let args: Vec<ScalarValue> = args.iter().map(|&x| x.into()).collect();
        Prim::Op(op, Scalar::F64).eval(&args) == Ok(ScalarValue::Bool(true))
    };
    assert!(test(Op::IsNan, &[NAN]) && !test(Op::IsNan, &[INF]));
    assert!(test(Op::IsInf, &[-INF]) && !test(Op::IsInf, &[NAN]));
    assert!(!test(Op::Eq, &[NAN, NAN]) && test(Op::Ne, &[NAN, NAN]));
    assert!(!test(Op::Lt, &[NAN, 1.0]) && !test(Op::Le, &[NAN, 1.0]));
    assert!(test(Op::Eq, &[0.0, -0.0]) && test(Op::Le, &[0.0, -0.0]) && !test(Op::Lt, &[-0.0, 0.0]));
    assert_eq!(Prim::Op(Op::Lt, Scalar::F64).partials(), None);
}

#[test]
fn conversions_saturate_wrap_and_round() {
    let convert = |x: ScalarValue, to| Prim::Convert(x.scalar(), to).eval(&[x]).unwrap();
    let cases: &[(ScalarValue, ScalarValue)] = &[
        (NAN.into(), 0i32.into()),
        (INF.into(), i32::MAX.into()),
        ((-INF).into(), i32::MIN.into()),
        (300.7.into(), 127i8.into()),
        ((-1.5).into(), 0u8.into()),
        ((-1.9).into(), (-1i64).into()),
        (1e20.into(), u64::MAX.into()),
        (1e19.into(), 10_000_000_000_000_000_000u64.into()),
        (1e20.into(), i64::MAX.into()),
        (0.5.into(), true.into()),
        (NAN.into(), true.into()),
        ((-0.0).into(), false.into()),
        (300i32.into(), 44i8.into()),
        // Signed integers in wider unsigned types: zeros in front, as Futhark's `u64.i32` has it.
        ((-1i32).into(), 4294967295u64.into()),
        ((-128i8).into(), 128u16.into()),
        ((-1i8).into(), 255u64.into()),
        ((-2i16).into(), 65534u32.into()),
        ((-1i64).into(), u64::MAX.into()),
        ((-1i32).into(), (-1i64).into()),
        ((-1i32).into(), 255u8.into()),
        (u64::MAX.into(), (-1i8).into()),
        (u64::MAX.into(), 18446744073709551615.0f64.into()),
        (u32::MAX.into(), 4294967295i64.into()),
        (256i32.into(), true.into()),
        (true.into(), 1.0f32.into()),
        (true.into(), 1u16.into()),
        (false.into(), 0.0.into()),
        (1e300.into(), f32::INFINITY.into()),
        (1e300.into(), 1e300.into()),
        (0.1f32.into(), 0.10000000149011612.into()),
        // Rounded once: through double precision it would round to 9007199791611904.
        (9007199791611905i64.into(), 9007200328482816.0f32.into()),
    ];
    for &(x, want) in cases {
        assert_eq!(convert(x, want.scalar()), want, "{x} to {}", want.scalar());
    }
    let one = [Partial::Const(1.0)];
    assert_eq!(Prim::Convert(Scalar::F64, Scalar::F32).partials(), Some(one.as_slice()));
    assert_eq!(Prim::Convert(Scalar::F64, Scalar::I64).partials(), None);
    assert_eq!(Prim::Convert(Scalar::I64, Scalar::F64).partials(), None);
}

/// All primitives, valid or not.
fn all_primitives() -> impl Iterator<Item = Prim> {
    let operations = Op::ALL.iter().flat_map(|&op| Scalar::ALL.into_iter().map(move |s| Prim::Op(op, s)));
    let conversions = Scalar::ALL
        .into_iter()
        .flat_map(|from| Scalar::ALL.into_iter().map(move |to| Prim::Convert(from, to)));
    operations.chain(conversions)
}

#[test]
fn names_and_primitives_correspond() {
    let mut names = BTreeSet::new();
    for prim in all_primitives() {
        assert!(names.insert(prim.name()));
        assert_eq!(Prim::from_name(&prim.name()), prim.is_valid().then_some(prim), "{prim}");
    }
    assert_eq!(Prim::Op(Op::Add, Scalar::F64).name(), "add.f64");
    assert_eq!(Prim::Convert(Scalar::I64, Scalar::F64).name(), "convert.i64.f64");
    for wrong in [
        "",
        "add",
        "add.",
        ".f64",
        "add.f65",
        "add.f64.f64",
        "convert.f64",
        "Add.f64",
        "sqrt.i32",
        "add.bool",
    ] {
        assert_eq!(Prim::from_name(wrong), None, "{wrong}");
    }
}

#[test]
fn evaluation_accepts_exactly_its_parameters() {
    for prim in all_primitives() {
        let fitting: Vec<ScalarValue> = prim.params().into_iter().map(Scalar::one).collect();
        assert_eq!(fitting.len(), prim.arity());
        match prim.eval(&fitting) {
            Ok(value) => assert!(prim.is_valid() && value.scalar() == prim.result(), "{prim}"),
            Err(error) => assert!(!prim.is_valid() && error == PrimError::IllTyped, "{prim}"),
        }
        assert_eq!(prim.eval(&[]), Err(PrimError::IllTyped));
        assert_eq!(prim.eval(&[fitting[0]; 4]), Err(PrimError::IllTyped));
        for i in 0..fitting.len() {
            for other in Scalar::ALL.into_iter().filter(|&s| s != fitting[i].scalar()) {
                let mut wrong = fitting.clone();
                wrong[i] = other.one();
                assert_eq!(prim.eval(&wrong), Err(PrimError::IllTyped), "{prim} {wrong:?}");
            }
        }
        assert!(prim.cost() > 0);
        assert!(prim.partials().is_none_or(|partials| partials.len() == prim.arity()));
    }
}

#[test]
fn the_book_page_has_every_row() {
    let page = table_as_markdown();
    for op in Op::ALL {
        assert!(page.contains(&format!("| `{}(", op.name())), "{op:?}");
        let derivatives = page.matches(&format!("\n| `{}` | ", op.name())).count();
        assert_eq!(derivatives, op.row().partials.map_or(0, <[Partial]>::len), "{op:?}");
    }
    for line in [
        "| `sqrt(x)` | float | 1 | Square root. Derivative infinity at 0. |",
        "| `sqrt` | `x` | `0.5 / r` | yes |",
        "| `div` | `y` | `-(r / y)` | yes |",
        "| `acos` | `x` | `-1 / sqrt((1 - x) * (1 + x))` | yes |",
        "| `max` | `y` | `if x = y then 0.5 else (if y = r then 1 else 0)` |  |",
        "| `max_first` | `y` | `if y <= x then 0 else (if is_nan(y) then 0 else 1)` |  |",
        "| `hypot` | `x` | `if r = 0 then 0 else x / r` |  |",
    ] {
        assert!(page.contains(line), "{line}\n{page}");
    }
    assert!(page.lines().filter(|l| l.starts_with('|')).all(|l| l.ends_with('|')));
}
