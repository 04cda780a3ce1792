//! Which primitives may stop a program: exactly those that have no value for some arguments.

use pullback_prim::{Op, Prim, Scalar, ScalarValue};

/// The arguments tried for a parameter of this type.
fn tried(s: Scalar) -> Vec<ScalarValue> {
    let integers = [i64::MIN, -3, -1, 0, 1, 2, 7, i64::MAX];
    let floats = [f64::NEG_INFINITY, -2.5, -0.0, 0.0, 1.0, 3.25, f64::NAN];
    match s {
        Scalar::Bool => vec![ScalarValue::Bool(false), ScalarValue::Bool(true)],
        s if s.is_float() => {
            let convert = |x| Prim::Convert(Scalar::F64, s).eval(&[ScalarValue::F64(x)]);
            floats.into_iter().filter_map(|x| convert(x).ok()).collect()
        }
        s => integers.into_iter().map(|x| s.from_i64(x)).collect(),
    }
}

/// Whether the primitive has no value for some of the arguments tried.
fn stops(prim: Prim) -> bool {
    let mut all = vec![Vec::new()];
    for s in prim.params() {
        let longer = |given: Vec<ScalarValue>| {
            tried(s).into_iter().map(move |x| given.iter().copied().chain([x]).collect::<Vec<_>>())
        };
        all = all.into_iter().flat_map(longer).collect();
    }
    all.iter().any(|args| prim.eval(args).is_err())
}

#[test]
fn a_primitive_may_stop_the_program_exactly_if_some_arguments_do() {
    let mut seen = 0;
    for s in Scalar::ALL {
        let ops = Op::ALL.iter().map(|op| Prim::Op(*op, s));
        let conversions = Scalar::ALL.into_iter().map(|to| Prim::Convert(s, to));
        for prim in ops.chain(conversions).filter(|p| p.is_valid()) {
            assert_eq!(stops(prim), prim.may_stop(), "{prim:?}");
            seen += usize::from(prim.may_stop());
        }
    }
    // Division, modulo, quotient and remainder of eight integer types; powers of the four with a sign.
    assert_eq!(seen, 4 * 8 + 4);
}
