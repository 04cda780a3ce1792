//! Floating point with `64 N` bits: the slow and simple arithmetic that the functions are compared with.
//!
//! Every operation errs by a few units in the last of its `64 N` bits. There are no infinities: exponents are `i64`.

use std::cmp::Ordering;

/// `m * 2^exp`, with the highest bit of `m` set (the last word is the highest), or zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Big<const N: usize> {
    pub(crate) is_negative: bool,
    pub(crate) exp: i64,
    words: [u64; N],
}

impl<const N: usize> Big<N> {
    pub(crate) const ZERO: Big<N> = Big { is_negative: false, exp: 0, words: [0; N] };

    pub(crate) fn from_u64(x: u64) -> Big<N> {
        if x == 0 {
            return Self::ZERO;
        }
        let mut words = [0; N];
        words[N - 1] = x << x.leading_zeros();
        Big { is_negative: false, exp: -i64::from(x.leading_zeros()) - 64 * (N as i64 - 1), words }
    }

    /// Exactly `x`, which is finite.
    pub(crate) fn from_f64(x: f64) -> Big<N> {
        assert!(x.is_finite(), "a finite number");
        let bits = x.to_bits();
        let field = (bits >> 52 & 0x7ff) as i64;
        let fraction = bits & ((1 << 52) - 1);
        let (whole, exponent) =
            if field == 0 { (fraction, -1074) } else { (fraction | 1 << 52, field - 1075) };
        let mut result = Self::from_u64(whole);
        result.exp += exponent;
        result.is_negative = x < 0.0;
        result
    }

    /// The float nearest to it, but for a unit in the last place; the exponent must be in the range of floats.
    pub(crate) fn to_f64(self) -> f64 {
        if self.is_zero() {
            return 0.0;
        }
        let top = self.words[N - 1] as f64;
        let exponent = self.exp + 64 * (N as i64 - 1);
        // In two steps, for the smallest numbers.
        let half = exponent / 2;
        let size = top * 2f64.powi(half as i32) * 2f64.powi((exponent - half) as i32);
        if self.is_negative { -size } else { size }
    }

    pub(crate) fn is_zero(&self) -> bool {
        self.words[N - 1] == 0
    }

    /// `e` with `2^e <= |x| < 2^(e+1)`.
    pub(crate) fn magnitude(&self) -> i64 {
        self.exp + 64 * N as i64 - 1
    }

    /// The same number with other precision.
    pub(crate) fn resize<const M: usize>(self) -> Big<M> {
        let mut words = [0; M];
        for i in 0..M.min(N) {
            words[M - 1 - i] = self.words[N - 1 - i];
        }
        let exp = if self.is_zero() { 0 } else { self.exp + 64 * (N as i64 - M as i64) };
        Big { is_negative: self.is_negative, exp, words }
    }

    pub(crate) fn abs(self) -> Self {
        Big { is_negative: false, ..self }
    }

    pub(crate) fn neg(self) -> Self {
        Big { is_negative: !self.is_negative && !self.is_zero(), ..self }
    }

    /// `x * 2^n`.
    pub(crate) fn shift(self, n: i64) -> Self {
        if self.is_zero() { self } else { Big { exp: self.exp + n, ..self } }
    }

    fn compare_sizes(&self, other: &Self) -> Ordering {
        match (self.is_zero(), other.is_zero()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            _ => self.exp.cmp(&other.exp).then_with(|| self.words.iter().rev().cmp(other.words.iter().rev())),
        }
    }

    pub(crate) fn less(self, other: Self) -> bool {
        let difference = self.sub(other);
        difference.is_negative && !difference.is_zero()
    }

    fn shifted_right(words: &[u64; N], by: i64) -> [u64; N] {
        let (skip, bits) = ((by / 64) as usize, by % 64);
        std::array::from_fn(|i| {
            let low = words.get(i + skip).copied().unwrap_or(0);
            let high = words.get(i + skip + 1).copied().unwrap_or(0);
            if bits == 0 { low } else { low >> bits | high << (64 - bits) }
        })
    }

    fn normalised(is_negative: bool, exp: i64, words: [u64; N]) -> Self {
        let Some(top) = (0..N).rev().find(|i| words[*i] != 0) else { return Self::ZERO };
        let skip = N - 1 - top;
        let bits = words[top].leading_zeros();
        let word = |i: usize| if i < skip { 0 } else { words[i - skip] };
        let shifted = std::array::from_fn(|i| {
            let low = if i == 0 { 0 } else { word(i - 1) };
            if bits == 0 { word(i) } else { word(i) << bits | low >> (64 - bits) }
        });
        Big { is_negative, exp: exp - 64 * skip as i64 - i64::from(bits), words: shifted }
    }

    pub(crate) fn add(self, other: Self) -> Self {
        let (a, b) = if self.compare_sizes(&other) == Ordering::Less { (other, self) } else { (self, other) };
        if b.is_zero() || a.exp - b.exp >= 64 * N as i64 {
            return a;
        }
        let aligned = Self::shifted_right(&b.words, a.exp - b.exp);
        let mut words = a.words;
        let mut carry = false;
        for (word, add) in words.iter_mut().zip(aligned) {
            let step =
                if a.is_negative == b.is_negative { u64::overflowing_add } else { u64::overflowing_sub };
            let (first, c1) = step(*word, add);
            let (second, c2) = step(first, u64::from(carry));
            (*word, carry) = (second, c1 | c2);
        }
        if carry && a.is_negative == b.is_negative {
            words = Self::shifted_right(&words, 1);
            words[N - 1] |= 1 << 63;
            return Big { is_negative: a.is_negative, exp: a.exp + 1, words };
        }
        Self::normalised(a.is_negative, a.exp, words)
    }

    pub(crate) fn sub(self, other: Self) -> Self {
        self.add(other.neg())
    }

    pub(crate) fn mul(self, other: Self) -> Self {
        if self.is_zero() || other.is_zero() {
            return Self::ZERO;
        }
        // The lower half is kept for the bit that normalising brings in.
        let mut low = [0u64; N];
        let mut high = [0u64; N];
        for i in 0..N {
            let mut carry = 0u128;
            for j in 0..N {
                let slot = if i + j < N { &mut low[i + j] } else { &mut high[i + j - N] };
                let sum = u128::from(self.words[i]) * u128::from(other.words[j]) + u128::from(*slot) + carry;
                *slot = sum as u64;
                carry = sum >> 64;
            }
            high[i] = carry as u64;
        }
        let is_negative = self.is_negative != other.is_negative;
        let mut result = Self::normalised(is_negative, self.exp + other.exp + 64 * N as i64, high);
        if high[N - 1] >> 63 == 0 {
            result.words[0] |= low[N - 1] >> 63;
        }
        result
    }

    pub(crate) fn square(self) -> Self {
        self.mul(self)
    }

    pub(crate) fn times(self, n: u64) -> Self {
        self.mul(Self::from_u64(n))
    }

    /// `x / n` for `n > 0`.
    pub(crate) fn over(self, n: u64) -> Self {
        if self.is_zero() {
            return self;
        }
        // One more word below, so that no bits are lost where the quotient is shifted up.
        let mut words = self.words;
        let mut rest = 0u128;
        for word in words.iter_mut().rev() {
            let value = rest << 64 | u128::from(*word);
            *word = (value / u128::from(n)) as u64;
            rest = value % u128::from(n);
        }
        let below = ((rest << 64) / u128::from(n)) as u64;
        let zeros = words[N - 1].leading_zeros();
        let mut result = Self::normalised(self.is_negative, self.exp, words);
        if words[N - 1] != 0 && zeros > 0 {
            result.words[0] |= below >> (64 - zeros);
        } else if words[N - 1] == 0 {
            let bits = words[N - 2].leading_zeros();
            result.words[0] |= if bits == 0 { below } else { below << bits };
            result.words[0] |= below;
        }
        result
    }

    /// `1 / x`, by Newton's iteration.
    pub(crate) fn inverse(self) -> Self {
        let unit = Big { is_negative: false, exp: 1 - 64 * N as i64, words: self.words };
        let mut y = Self::from_f64(1.0 / unit.to_f64());
        let one = Self::from_u64(1);
        let mut bits = 50;
        while bits < 64 * N {
            y = y.add(y.mul(one.sub(unit.mul(y))));
            bits *= 2;
        }
        Big { is_negative: self.is_negative, exp: y.exp + unit.exp - self.exp, words: y.words }
    }

    pub(crate) fn div(self, other: Self) -> Self {
        self.mul(other.inverse())
    }

    /// The square root of a positive number or zero, by Newton's iteration for its inverse.
    pub(crate) fn sqrt(self) -> Self {
        if self.is_zero() {
            return self;
        }
        let even = self.magnitude() & !1;
        let unit = self.shift(-even);
        let mut y = Self::from_f64(1.0 / unit.to_f64().sqrt());
        let one = Self::from_u64(1);
        let mut bits = 50;
        while bits < 64 * N {
            y = y.add(y.mul(one.sub(unit.mul(y.square()))).shift(-1));
            bits *= 2;
        }
        unit.mul(y).shift(even / 2)
    }

    /// The whole number nearest to a number below 2^62, and what is left.
    pub(crate) fn split(self) -> (i64, Self) {
        if self.is_zero() || self.magnitude() < -1 {
            return (0, self);
        }
        let by = 63 - self.magnitude();
        let whole = if by > 63 { 0 } else { self.words[N - 1] >> by };
        let half = by <= 64 && (self.words[N - 1] >> (by - 1)) & 1 == 1;
        let nearest = (whole + u64::from(half)) as i64;
        let nearest = if self.is_negative { -nearest } else { nearest };
        let size = Self::from_u64(nearest.unsigned_abs());
        (nearest, self.sub(if self.is_negative { size.neg() } else { size }))
    }

    /// What is left of it without its whole part; for numbers of any size.
    pub(crate) fn fraction_modulo_4(self) -> Self {
        // Bits of weight 4 and more go, by words.
        let mut words = self.words;
        let drop = self.magnitude() - 1;
        if drop <= 0 {
            return self;
        }
        for i in 0..drop {
            let at = 64 * N as i64 - 1 - i;
            if at < 0 {
                return Self::ZERO;
            }
            words[at as usize / 64] &= !(1 << (at % 64));
        }
        Self::normalised(self.is_negative, self.exp, words)
    }
}
