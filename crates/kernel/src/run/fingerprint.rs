//! Fingerprints: which computation a float is the value of, however its sums were put in order.
//!
//! Two schedules of a program round differently, and a wrong element often holds the right number. So the executor computes a second value
//! beside each float: that of the same computation in the field of integers modulo a prime, where additions and multiplications are exact and may
//! be done in any order. Arguments are random there; other primitives are random functions, chosen by their name. Equal computations have equal
//! fingerprints. Different ones are equal with a chance of about one in 10¹⁸ for each multiplication that they nest. (Identity testing of
//! polynomials: Schwartz 1980, Zippel 1979; random interpretation: Gulwani and Necula, POPL 2003.)
//!
//! Values decide what is compared and chosen: fingerprints follow them. Integers and truth values are exact in any case, and stand for
//! themselves.
//!
//! Limits: where rounding makes a test come out otherwise, fingerprints differ although no schedule is wrong. Numbers that are the same
//! constant have the same fingerprint, wherever they were stored; zeros are one constant.
//!
//! Cost: a few operations on integers per primitive.

use pullback_prim::{Op, Prim, Scalar, ScalarValue};

/// 2⁶¹ - 1.
const PRIME: u64 = (1 << 61) - 1;

/// The fingerprint of a number: below 2⁶¹ - 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fingerprint(u64);

/// A scalar and its fingerprint.
pub(super) type Number = (ScalarValue, Fingerprint);

impl Fingerprint {
    const ZERO: Fingerprint = Fingerprint(0);

    /// That of a constant: a finite float is a fraction over a power of two, which the field has, too. Integers and truth values need none.
    pub fn of(x: ScalarValue) -> Fingerprint {
        if !x.scalar().is_float() {
            return Fingerprint::ZERO;
        }
        let x = x.as_f64();
        if !x.is_finite() {
            return Fingerprint(mixed([x.to_bits(), 1]));
        }
        let (mantissa, exponent) = parts(x.abs());
        // Multiplication by a power of two turns the 61 bits of a number round.
        let turned = exponent.rem_euclid(61) as u32;
        let magnitude = Fingerprint(((mantissa << turned) | (mantissa >> (61 - turned))) & PRIME);
        if x < 0.0 { Fingerprint::ZERO.minus(magnitude) } else { magnitude }
    }
    /// That of an argument, or of one of its elements: a random one, but for zeros, at which cotangents stop.
    pub(super) fn of_argument(x: ScalarValue, place: [u64; 2]) -> Fingerprint {
        let is_random = x.scalar().is_float() && !x.is_float_zero();
        if is_random { Fingerprint(mixed(place)) } else { Fingerprint::of(x) }
    }
    /// The float of this type whose bits are those of the fingerprint, of the narrower type half of them; `None`: it is no type of floats.
    pub fn as_float(self, ty: Scalar) -> Option<ScalarValue> {
        match ty {
            Scalar::F64 => Some(ScalarValue::F64(f64::from_bits(self.0))),
            Scalar::F32 => Some(ScalarValue::F32(f32::from_bits(self.0 as u32))),
            _ => None,
        }
    }
    /// That of a sum.
    pub fn plus(self, other: Fingerprint) -> Fingerprint {
        Fingerprint((self.0 + other.0) % PRIME)
    }
    fn minus(self, other: Fingerprint) -> Fingerprint {
        Fingerprint((self.0 + PRIME - other.0) % PRIME)
    }
    /// That of a product.
    pub fn times(self, other: Fingerprint) -> Fingerprint {
        Fingerprint((u128::from(self.0) * u128::from(other.0) % u128::from(PRIME)) as u64)
    }
    /// The other factor of one (Fermat); 0 for 0.
    fn inverse(self) -> Fingerprint {
        let (mut out, mut power, mut rest) = (Fingerprint(1), self, PRIME - 2);
        while rest > 0 {
            if rest & 1 == 1 {
                out = out.times(power);
            }
            power = power.times(power);
            rest >>= 1;
        }
        out
    }
}

/// That of the value of a primitive.
pub fn of_prim(prim: Prim, args: &[Number], value: ScalarValue) -> Fingerprint {
    if !value.scalar().is_float() {
        return Fingerprint::of(value);
    }
    match (prim, args) {
        // Only the value of a narrower type is rounded.
        (Prim::Convert(from, _), [(_, x)]) if from.is_float() => *x,
        (Prim::Convert(..), _) => Fingerprint::of(value),
        (Prim::Op(op, _), _) => of_op(op, args, value),
    }
}

fn of_op(op: Op, args: &[Number], value: ScalarValue) -> Fingerprint {
    match (op, args) {
        (Op::Neg, [(_, x)]) => Fingerprint::ZERO.minus(*x),
        (Op::Abs, [(v, x)]) if v.as_f64() < 0.0 => Fingerprint::ZERO.minus(*x),
        (Op::Abs, [(_, x)]) => *x,
        (Op::Sgn, _) => Fingerprint::of(value),
        (Op::Add, [(_, x), (_, y)]) => x.plus(*y),
        (Op::Sub, [(_, x), (_, y)]) => x.minus(*y),
        // Zero times anything is zero in a field: whether a value overflows depends on the order of products.
        (Op::Mul | Op::StrongMul | Op::MutualMul, [(_, x), (_, y)]) => x.times(*y),
        (Op::Div, [(_, x), (_, y)]) => x.times(y.inverse()),
        (Op::Select, [(c, _), (_, x), (_, y)]) => *if c.is_true() { x } else { y },
        (Op::Min | Op::Max | Op::MinFirst | Op::MaxFirst, [(v, x), (w, y)]) => {
            let (v, w) = (v.as_f64(), w.as_f64());
            match v.partial_cmp(&w) {
                Some(std::cmp::Ordering::Equal) => *x.min(y),
                Some(order) => *if order.is_lt() == matches!(op, Op::Min | Op::MinFirst) { x } else { y },
                None => Fingerprint::of(value),
            }
        }
        _ => {
            let mut words = vec![op as u64];
            words.extend(
                args.iter().map(|(v, x)| if v.scalar().is_float() { x.0 } else { v.as_i64() as u64 }),
            );
            Fingerprint(mixed(words))
        }
    }
}

/// A finite number that is not negative as `mantissa * 2^exponent`.
fn parts(x: f64) -> (u64, i64) {
    let bits = x.to_bits();
    let (exponent, fraction) = ((bits >> 52) as i64, bits & ((1 << 52) - 1));
    if exponent == 0 { (fraction, -1074) } else { (fraction | (1 << 52), exponent - 1075) }
}

/// A random number of the field, chosen by these words (the finaliser of SplitMix64, Steele et al., OOPSLA 2014).
fn mixed(words: impl IntoIterator<Item = u64>) -> u64 {
    let mix = |state: u64, word: u64| {
        let mut z = state.wrapping_add(word).wrapping_add(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    words.into_iter().fold(0, mix) % PRIME
}
