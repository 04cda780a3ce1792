//! Integer operations against arithmetic in 128 bits: all pairs of 8-bit numbers, and the edges of the other types.

use pullback_prim::{Op, Prim, PrimError, Scalar, ScalarValue};

/// The exact value of an integer scalar.
fn exact(x: ScalarValue) -> i128 {
    match x {
        ScalarValue::U64(x) => x.into(),
        other => other.as_i64().into(),
    }
}

/// `x` modulo the number of values of the type.
fn wrap(s: Scalar, x: i128) -> ScalarValue {
    s.from_i64(x as i64)
}

fn bits(s: Scalar) -> i128 {
    8 * s.bytes() as i128
}

fn integer_types() -> impl Iterator<Item = Scalar> {
    Scalar::ALL.into_iter().filter(|s| s.is_integer())
}

/// All numbers of the 8-bit types; of the others the edges and what is next to them.
fn samples(s: Scalar) -> Vec<ScalarValue> {
    if s.bytes() == 1 {
        return (0..256).map(|x| s.from_i64(x)).collect();
    }
    let width = bits(s);
    let smallest = if s.is_signed() { -(1i128 << (width - 1)) } else { 0 };
    let largest = smallest + (1i128 << width) - 1;
    let offsets =
        [smallest, smallest + 1, smallest + 2, -7, -2, -1, 0, 1, 2, 3, 7, width - 1, width, width + 1];
    let above = [largest / 2, largest / 2 + 1, largest - 1, largest];
    let inside = |x: &i128| (smallest..=largest).contains(x);
    offsets.into_iter().chain(above).filter(inside).map(|x| wrap(s, x)).collect()
}

fn power(s: Scalar, x: i128, y: i128) -> Result<i128, PrimError> {
    if y < 0 {
        return Err(PrimError::NegativeExponent);
    }
    // Powers repeat slowly; the reference multiplies bit by bit, modulo 2^64, which all widths divide.
    let (mut product, mut exponent, mut base) = (1u64, y, x as u64);
    while exponent > 0 {
        if exponent & 1 == 1 {
            product = product.wrapping_mul(base);
        }
        base = base.wrapping_mul(base);
        exponent >>= 1;
    }
    Ok(exact(wrap(s, product.into())))
}

/// Binary operations in exact arithmetic, before wrapping; `None` for those that are not arithmetic.
fn reference(op: Op, s: Scalar, x: i128, y: i128) -> Option<Result<i128, PrimError>> {
    let unless_zero =
        |value: fn(i128, i128) -> i128| if y == 0 { Err(PrimError::DivisionByZero) } else { Ok(value(x, y)) };
    let amount = if y < 0 { bits(s) } else { y.min(bits(s)) };
    Some(match op {
        Op::Add => Ok(x + y),
        Op::Sub => Ok(x - y),
        Op::Mul => Ok((x as i64).wrapping_mul(y as i64).into()),
        Op::Quot => unless_zero(|x, y| x / y),
        Op::Rem => unless_zero(|x, y| x % y),
        // Exact floor of the quotient: by Euclidean division, whose remainder is never negative.
        Op::Div => unless_zero(|x, y| if y > 0 { x.div_euclid(y) } else { (-x).div_euclid(-y) }),
        Op::Mod => unless_zero(|x, y| if y > 0 { x.rem_euclid(y) } else { -(-x).rem_euclid(-y) }),
        Op::Pow => power(s, x, y),
        Op::Min => Ok(if x < y { x } else { y }),
        Op::Max => Ok(if x > y { x } else { y }),
        Op::And => Ok(x & y),
        Op::Or => Ok(x | y),
        Op::Xor => Ok(x ^ y),
        Op::Shl => Ok(if amount >= 64 { 0 } else { x << amount }),
        Op::Shr => Ok(x >> amount),
        _ => return None,
    })
}

#[test]
fn binary_operations_wrap_the_exact_value() {
    let mut tested = 0;
    for s in integer_types() {
        let samples = samples(s);
        for &op in Op::ALL {
            let prim = Prim::Op(op, s);
            if prim.arity() != 2 || !prim.is_valid() || prim.result() == Scalar::Bool {
                continue;
            }
            for &x in &samples {
                for &y in &samples {
                    let want = reference(op, s, exact(x), exact(y))
                        .unwrap_or_else(|| panic!("no reference for {prim}"));
                    assert_eq!(prim.eval(&[x, y]), want.map(|v| wrap(s, v)), "{prim} {x} {y}");
                    tested += 1;
                }
            }
        }
    }
    assert!(tested > 1_900_000, "{tested}");
}

#[test]
fn unary_operations_wrap_the_exact_value() {
    for s in integer_types() {
        for x in samples(s) {
            let v = exact(x);
            let unary = |op| Prim::Op(op, s).eval(&[x]);
            assert_eq!(unary(Op::Neg), Ok(wrap(s, -v)), "neg {x}");
            assert_eq!(unary(Op::Abs), Ok(wrap(s, v.abs())), "abs {x}");
            assert_eq!(unary(Op::Sgn), Ok(wrap(s, v.signum())), "sgn {x}");
            assert_eq!(unary(Op::Not), Ok(wrap(s, -v - 1)), "not {x}");
            for op in [Op::Sqrt, Op::IsNan, Op::Floor] {
                assert_eq!(unary(op), Err(PrimError::IllTyped));
            }
        }
    }
}

#[test]
fn comparisons_follow_the_numbers() {
    for s in integer_types() {
        for &x in &samples(s) {
            for &y in &samples(s) {
                let (a, b) = (exact(x), exact(y));
                for (op, want) in [(Op::Eq, a == b), (Op::Ne, a != b), (Op::Lt, a < b), (Op::Le, a <= b)] {
                    assert_eq!(Prim::Op(op, s).eval(&[x, y]), Ok(ScalarValue::Bool(want)), "{op:?} {x} {y}");
                }
            }
        }
    }
}

#[test]
fn written_values_at_the_edges() {
    let i32s = |op, x: i32, y: i32| Prim::Op(op, Scalar::I32).eval(&[x.into(), y.into()]);
    assert_eq!(i32s(Op::Div, i32::MIN, -1), Ok(i32::MIN.into()));
    assert_eq!(i32s(Op::Quot, i32::MIN, -1), Ok(i32::MIN.into()));
    assert_eq!(i32s(Op::Mod, i32::MIN, -1), Ok(0.into()));
    assert_eq!(i32s(Op::Rem, i32::MIN, -1), Ok(0.into()));
    assert_eq!(i32s(Op::Div, -7, 2), Ok((-4).into()));
    assert_eq!(i32s(Op::Mod, -7, 2), Ok(1.into()));
    assert_eq!(i32s(Op::Mod, 7, -2), Ok((-1).into()));
    assert_eq!(i32s(Op::Quot, -7, 2), Ok((-3).into()));
    assert_eq!(i32s(Op::Rem, -7, 2), Ok((-1).into()));
    assert_eq!(i32s(Op::Div, 1, 0), Err(PrimError::DivisionByZero));
    assert_eq!(i32s(Op::Pow, 0, 0), Ok(1.into()));
    assert_eq!(i32s(Op::Pow, -3, 3), Ok((-27).into()));
    assert_eq!(i32s(Op::Pow, 2, 32), Ok(0.into()));
    assert_eq!(i32s(Op::Pow, 2, -1), Err(PrimError::NegativeExponent));
    assert_eq!(i32s(Op::Shr, -8, 1), Ok((-4).into()));
    assert_eq!(i32s(Op::Shr, -8, 32), Ok((-1).into()));
    assert_eq!(i32s(Op::Shr, 8, -1), Ok(0.into()));
    assert_eq!(i32s(Op::Shl, 1, 31), Ok(i32::MIN.into()));
    assert_eq!(i32s(Op::Shl, 1, 32), Ok(0.into()));
    let u8s = |op, x: u8, y: u8| Prim::Op(op, Scalar::U8).eval(&[x.into(), y.into()]);
    assert_eq!(u8s(Op::Sub, 0, 1), Ok(255u8.into()));
    assert_eq!(u8s(Op::Shr, 128, 7), Ok(1u8.into()));
}

#[test]
fn booleans() {
    let value = |x: bool| ScalarValue::Bool(x);
    for x in [false, true] {
        assert_eq!(Prim::Op(Op::Not, Scalar::Bool).eval(&[value(x)]), Ok(value(!x)));
        for y in [false, true] {
            let table = [
                (Op::And, x && y),
                (Op::Or, x || y),
                (Op::Xor, x != y),
                (Op::Eq, x == y),
                (Op::Ne, x != y),
                (Op::Lt, !x && y),
                (Op::Le, !x || y),
            ];
            for (op, want) in table {
                assert_eq!(
                    Prim::Op(op, Scalar::Bool).eval(&[value(x), value(y)]),
                    Ok(value(want)),
                    "{op:?} {x} {y}"
                );
            }
        }
    }
    assert!(!Prim::Op(Op::Add, Scalar::Bool).is_valid());
}
