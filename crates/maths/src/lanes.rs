//! What an executor provides: straight-line operations on lanes of `f64`, and of the 64-bit integers that are their bits.
//!
//! A lane is one of several numbers that go through the same operations. How many there are, and whether they are
//! numbers at all or names in a text that is being written, is the executor's affair. Operations take the context by
//! shared reference, so that they nest; an emitter keeps its text in a cell.
//!
//! Assumes of an implementation: IEEE 754 arithmetic, rounding to nearest even, subnormals kept, `fma` rounded once.
//! The functions rely on every one of these, so no operation may be re-associated, contracted or flushed.
//!
//! Provided operations are written with the required ones. An executor may override them with a faster instruction
//! that gives the same bits.

/// Straight-line operations on lanes.
pub trait Lanes {
    /// Lanes of `f64`.
    type F: Copy;
    /// Lanes of 64-bit integers; arithmetic wraps.
    type I: Copy;
    /// Lanes of truth values.
    type M: Copy;

    /// A constant in all lanes.
    fn float(&self, x: f64) -> Self::F;
    /// A constant in all lanes.
    fn int(&self, x: i64) -> Self::I;

    /// Sum.
    fn add(&self, x: Self::F, y: Self::F) -> Self::F;
    /// Difference.
    fn sub(&self, x: Self::F, y: Self::F) -> Self::F;
    /// Product.
    fn mul(&self, x: Self::F, y: Self::F) -> Self::F;
    /// Quotient.
    fn div(&self, x: Self::F, y: Self::F) -> Self::F;
    /// `x * y + z`, rounded once.
    fn fma(&self, x: Self::F, y: Self::F, z: Self::F) -> Self::F;
    /// Square root.
    fn sqrt(&self, x: Self::F) -> Self::F;
    /// The nearest whole number, ties to even.
    fn round(&self, x: Self::F) -> Self::F;
    /// The number with the other sign.
    fn neg(&self, x: Self::F) -> Self::F;
    /// The number without its sign.
    fn abs(&self, x: Self::F) -> Self::F;

    /// `x < y`; false with NaN.
    fn lt(&self, x: Self::F, y: Self::F) -> Self::M;
    /// `x <= y`; false with NaN.
    fn le(&self, x: Self::F, y: Self::F) -> Self::M;
    /// `x == y`; false with NaN.
    fn eq(&self, x: Self::F, y: Self::F) -> Self::M;
    /// Whether some bit of `mask` is set in `x`.
    fn any_bit(&self, x: Self::I, mask: i64) -> Self::M;
    /// Both.
    fn both(&self, a: Self::M, b: Self::M) -> Self::M;
    /// One of them, or both.
    fn either(&self, a: Self::M, b: Self::M) -> Self::M;
    /// The contrary.
    fn not(&self, a: Self::M) -> Self::M;
    /// `x` where `m` holds, `y` elsewhere.
    fn select(&self, m: Self::M, x: Self::F, y: Self::F) -> Self::F;

    /// The bits of floats.
    fn bits(&self, x: Self::F) -> Self::I;
    /// Floats from their bits.
    fn float_of_bits(&self, x: Self::I) -> Self::F;
    /// Sum.
    fn int_add(&self, x: Self::I, y: Self::I) -> Self::I;
    /// Difference.
    fn int_sub(&self, x: Self::I, y: Self::I) -> Self::I;
    /// Conjunction of bits.
    fn int_and(&self, x: Self::I, y: Self::I) -> Self::I;
    /// Exclusive disjunction of bits.
    fn int_xor(&self, x: Self::I, y: Self::I) -> Self::I;
    /// Shift to the left by less than 64.
    fn shift_left(&self, x: Self::I, by: u32) -> Self::I;
    /// Shift to the right by less than 64, zeros from the left.
    fn shift_right(&self, x: Self::I, by: u32) -> Self::I;
    /// The element of `table` at `index`, of which only the low bits count: the length is a power of two.
    fn table(&self, table: &'static [f64], index: Self::I) -> Self::F;

    /// `usual`, but where `m` holds the result of `unusual`.
    ///
    /// Straight-line as all operations are. An executor may leave out `unusual` where `m` holds in no lane.
    #[inline(always)]
    fn rarely<const N: usize>(
        &self,
        m: Self::M,
        usual: [Self::F; N],
        unusual: impl FnOnce() -> [Self::F; N],
    ) -> [Self::F; N] {
        let others = unusual();
        std::array::from_fn(|i| self.select(m, others[i], usual[i]))
    }

    /// `x < y ? x : y`: the second argument if one is NaN.
    #[inline(always)]
    fn min(&self, x: Self::F, y: Self::F) -> Self::F {
        self.select(self.lt(x, y), x, y)
    }

    /// `y < x ? x : y`: the second argument if one is NaN.
    #[inline(always)]
    fn max(&self, x: Self::F, y: Self::F) -> Self::F {
        self.select(self.lt(y, x), x, y)
    }

    /// `z - x * y`, rounded once.
    #[inline(always)]
    fn fnma(&self, x: Self::F, y: Self::F, z: Self::F) -> Self::F {
        self.fma(self.neg(x), y, z)
    }

    /// `x * y - z`, rounded once.
    #[inline(always)]
    fn fms(&self, x: Self::F, y: Self::F, z: Self::F) -> Self::F {
        self.fma(x, y, self.neg(z))
    }

    /// `2^n` for `-1022 <= n <= 1023`; anything for another `n`.
    #[inline(always)]
    fn power_of_two(&self, n: Self::I) -> Self::F {
        self.float_of_bits(self.shift_left(self.int_add(n, self.int(1023)), 52))
    }

    /// `x * 2^n`, rounded once, for `2^-100 < |x| < 2^100` and `|n| <= 1900`.
    #[inline(always)]
    fn scale(&self, x: Self::F, n: Self::I) -> Self::F {
        scale_in_two_steps(self, x, n)
    }

    /// The whole number `0 <= n < 2^52` as a float.
    #[inline(always)]
    fn float_of_natural(&self, n: Self::I) -> Self::F {
        let shifted = self.float_of_bits(self.int_add(n, self.int(0x4330_0000_0000_0000)));
        self.sub(shifted, self.float(4_503_599_627_370_496.0))
    }

    /// `x` with its sign changed where the sign bit of `sign` is set.
    #[inline(always)]
    fn flip_sign(&self, x: Self::F, sign: Self::I) -> Self::F {
        let bit = self.int_and(sign, self.int(i64::MIN));
        self.float_of_bits(self.int_xor(self.bits(x), bit))
    }

    /// Whether `x` is NaN.
    #[inline(always)]
    fn is_nan(&self, x: Self::F) -> Self::M {
        self.not(self.eq(x, x))
    }
}

/// [`Lanes::scale`] by the other operations, for executors with the instruction for some numbers of lanes only.
#[inline(always)]
pub fn scale_in_two_steps<L: Lanes + ?Sized>(cx: &L, x: L::F, n: L::I) -> L::F {
    // Half of n, rounded down; the offset keeps it positive for the logical shift. The first product is exact.
    let half = cx.int_sub(cx.shift_right(cx.int_add(n, cx.int(4096)), 1), cx.int(2048));
    let rest = cx.int_sub(n, half);
    cx.mul(cx.mul(x, cx.power_of_two(half)), cx.power_of_two(rest))
}

/// Lanes of `f32` beside those of `f64`.
pub trait SingleLanes: Lanes {
    /// Lanes of `f32`, as many as of `f64`.
    type S: Copy;

    /// The same number, exactly.
    fn widen(&self, x: Self::S) -> Self::F;
    /// The nearest `f32`, ties to even; infinite if it is too large.
    fn narrow(&self, x: Self::F) -> Self::S;
}
