//! Lanes of plain Rust: one `f64`, or an array of them. The reference for every other implementation.
//!
//! Guarantees: the same bits on every platform. `f64::mul_add` is correct everywhere, but a call of the C library where
//! the program is not compiled for a processor with that instruction, so this is not the fast way there.

use crate::lanes::{Lanes, SingleLanes};

/// One lane: plain numbers.
#[derive(Clone, Copy, Debug, Default)]
pub struct One;

impl Lanes for One {
    type F = f64;
    type I = i64;
    type M = bool;

    #[inline(always)]
    fn float(&self, x: f64) -> f64 {
        x
    }
    #[inline(always)]
    fn int(&self, x: i64) -> i64 {
        x
    }
    #[inline(always)]
    fn add(&self, x: f64, y: f64) -> f64 {
        x + y
    }
    #[inline(always)]
    fn sub(&self, x: f64, y: f64) -> f64 {
        x - y
    }
    #[inline(always)]
    fn mul(&self, x: f64, y: f64) -> f64 {
        x * y
    }
    #[inline(always)]
    fn div(&self, x: f64, y: f64) -> f64 {
        x / y
    }
    #[inline(always)]
    fn fma(&self, x: f64, y: f64, z: f64) -> f64 {
        x.mul_add(y, z)
    }
    #[inline(always)]
    fn sqrt(&self, x: f64) -> f64 {
        x.sqrt()
    }
    #[inline(always)]
    fn round(&self, x: f64) -> f64 {
        x.round_ties_even()
    }
    #[inline(always)]
    fn neg(&self, x: f64) -> f64 {
        -x
    }
    #[inline(always)]
    fn abs(&self, x: f64) -> f64 {
        x.abs()
    }
    #[inline(always)]
    fn lt(&self, x: f64, y: f64) -> bool {
        x < y
    }
    #[inline(always)]
    fn le(&self, x: f64, y: f64) -> bool {
        x <= y
    }
    #[inline(always)]
    fn eq(&self, x: f64, y: f64) -> bool {
        x == y
    }
    #[inline(always)]
    fn any_bit(&self, x: i64, mask: i64) -> bool {
        x & mask != 0
    }
    #[inline(always)]
    fn both(&self, a: bool, b: bool) -> bool {
        a & b
    }
    #[inline(always)]
    fn either(&self, a: bool, b: bool) -> bool {
        a | b
    }
    #[inline(always)]
    fn not(&self, a: bool) -> bool {
        !a
    }
    #[inline(always)]
    fn select(&self, m: bool, x: f64, y: f64) -> f64 {
        if m { x } else { y }
    }
    #[inline(always)]
    fn bits(&self, x: f64) -> i64 {
        x.to_bits().cast_signed()
    }
    #[inline(always)]
    fn float_of_bits(&self, x: i64) -> f64 {
        f64::from_bits(x.cast_unsigned())
    }
    #[inline(always)]
    fn int_add(&self, x: i64, y: i64) -> i64 {
        x.wrapping_add(y)
    }
    #[inline(always)]
    fn int_sub(&self, x: i64, y: i64) -> i64 {
        x.wrapping_sub(y)
    }
    #[inline(always)]
    fn int_and(&self, x: i64, y: i64) -> i64 {
        x & y
    }
    #[inline(always)]
    fn int_xor(&self, x: i64, y: i64) -> i64 {
        x ^ y
    }
    #[inline(always)]
    fn shift_left(&self, x: i64, by: u32) -> i64 {
        x << by
    }
    #[inline(always)]
    fn shift_right(&self, x: i64, by: u32) -> i64 {
        (x.cast_unsigned() >> by).cast_signed()
    }
    #[inline(always)]
    fn table(&self, table: &'static [f64], index: i64) -> f64 {
        table[index.cast_unsigned() as usize & (table.len() - 1)]
    }
    #[inline(always)]
    fn rarely<const N: usize>(
        &self,
        m: bool,
        usual: [f64; N],
        unusual: impl FnOnce() -> [f64; N],
    ) -> [f64; N] {
        if m { unusual() } else { usual }
    }
}

impl SingleLanes for One {
    type S = f32;

    #[inline(always)]
    fn widen(&self, x: f32) -> f64 {
        f64::from(x)
    }
    #[inline(always)]
    fn narrow(&self, x: f64) -> f32 {
        x as f32
    }
}

/// `N` lanes: arrays, every operation element by element.
#[derive(Clone, Copy, Debug, Default)]
pub struct Many<const N: usize>;

/// Methods of [`Many`] that apply those of [`One`] to every lane.
macro_rules! element_by_element {
    ($($name:ident($($x:ident: $from:ty),+) -> $to:ty;)*) => {
        $(#[inline(always)]
        fn $name(&self, $($x: [$from; N]),+) -> [$to; N] {
            std::array::from_fn(|i| One.$name($($x[i]),+))
        })*
    };
}

impl<const N: usize> Lanes for Many<N> {
    type F = [f64; N];
    type I = [i64; N];
    type M = [bool; N];

    element_by_element! {
        add(x: f64, y: f64) -> f64;
        sub(x: f64, y: f64) -> f64;
        mul(x: f64, y: f64) -> f64;
        div(x: f64, y: f64) -> f64;
        fma(x: f64, y: f64, z: f64) -> f64;
        sqrt(x: f64) -> f64;
        round(x: f64) -> f64;
        neg(x: f64) -> f64;
        abs(x: f64) -> f64;
        lt(x: f64, y: f64) -> bool;
        le(x: f64, y: f64) -> bool;
        eq(x: f64, y: f64) -> bool;
        both(a: bool, b: bool) -> bool;
        either(a: bool, b: bool) -> bool;
        not(a: bool) -> bool;
        select(m: bool, x: f64, y: f64) -> f64;
        bits(x: f64) -> i64;
        float_of_bits(x: i64) -> f64;
        int_add(x: i64, y: i64) -> i64;
        int_sub(x: i64, y: i64) -> i64;
        int_and(x: i64, y: i64) -> i64;
        int_xor(x: i64, y: i64) -> i64;
    }

    #[inline(always)]
    fn float(&self, x: f64) -> [f64; N] {
        [x; N]
    }
    #[inline(always)]
    fn int(&self, x: i64) -> [i64; N] {
        [x; N]
    }
    #[inline(always)]
    fn any_bit(&self, x: [i64; N], mask: i64) -> [bool; N] {
        x.map(|x| One.any_bit(x, mask))
    }
    #[inline(always)]
    fn shift_left(&self, x: [i64; N], by: u32) -> [i64; N] {
        x.map(|x| One.shift_left(x, by))
    }
    #[inline(always)]
    fn shift_right(&self, x: [i64; N], by: u32) -> [i64; N] {
        x.map(|x| One.shift_right(x, by))
    }
    #[inline(always)]
    fn table(&self, table: &'static [f64], index: [i64; N]) -> [f64; N] {
        index.map(|i| One.table(table, i))
    }
}

impl<const N: usize> SingleLanes for Many<N> {
    type S = [f32; N];

    #[inline(always)]
    fn widen(&self, x: [f32; N]) -> [f64; N] {
        x.map(f64::from)
    }
    #[inline(always)]
    fn narrow(&self, x: [f64; N]) -> [f32; N] {
        x.map(|x| x as f32)
    }
}
