//! Elements of lanes and of memory, and what the exact operations of the primitive table are on them.
//!
//! Guarantees: nothing panics, and every result is that of the table. Integer division by zero, which has none, gives 0:
//! lanes that nobody wants may divide by anything.

/// A truth value in memory: 0 or 1. Lanes that were never set may hold any byte, which a `bool` must not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(transparent)]
pub(crate) struct Truth(pub(crate) u8);

impl From<bool> for Truth {
    #[inline(always)]
    fn from(x: bool) -> Truth {
        Truth(u8::from(x))
    }
}

/// A scalar type as it lies in memory.
pub(crate) trait Element: Copy + PartialEq + PartialOrd {
    /// Whether there are kernels for each instruction set: for the types that numerical programs are made of. Others have the
    /// portable ones only, which keeps the number of kernels down.
    const IS_COMMON: bool;
    /// The word of eight bytes that holds it: zero- or sign-extended.
    fn word(self) -> u64;
}

/// Numbers.
pub(crate) trait Number: Element {
    fn neg(self) -> Self;
    fn abs(self) -> Self;
    fn sgn(self) -> Self;
    fn add(self, y: Self) -> Self;
    fn sub(self, y: Self) -> Self;
    fn mul(self, y: Self) -> Self;
    fn min(self, y: Self) -> Self;
    fn max(self, y: Self) -> Self;
}

/// Floats.
pub(crate) trait Float: Number {
    fn div(self, y: Self) -> Self;
    fn strong_mul(self, y: Self) -> Self;
    fn mutual_mul(self, y: Self) -> Self;
    fn sqrt(self) -> Self;
    fn floor(self) -> Self;
    fn ceil(self) -> Self;
    fn round(self) -> Self;
    fn trunc(self) -> Self;
    fn fmod(self, y: Self) -> Self;
    fn is_inf(self) -> bool;
}

/// Integers.
pub(crate) trait Whole: Number {
    fn not(self) -> Self;
    fn floor_div(self, y: Self) -> Self;
    fn floor_mod(self, y: Self) -> Self;
    fn quot(self, y: Self) -> Self;
    fn rem(self, y: Self) -> Self;
    fn power(self, y: Self) -> Self;
    fn and(self, y: Self) -> Self;
    fn or(self, y: Self) -> Self;
    fn xor(self, y: Self) -> Self;
    fn shift_left(self, y: Self) -> Self;
    fn shift_right(self, y: Self) -> Self;
}

/// Conversion, as the primitive table has it.
pub(crate) trait To<T> {
    fn to(self) -> T;
}

impl Element for Truth {
    const IS_COMMON: bool = true;
    #[inline(always)]
    fn word(self) -> u64 {
        u64::from(self.0)
    }
}

macro_rules! float {
    ($t:ty) => {
        impl Element for $t {
            const IS_COMMON: bool = true;
            #[inline(always)]
            fn word(self) -> u64 {
                u64::from(self.to_bits())
            }
        }
        impl Number for $t {
            #[inline(always)]
            fn neg(self) -> $t {
                -self
            }
            #[inline(always)]
            fn abs(self) -> $t {
                <$t>::abs(self)
            }
            #[inline(always)]
            fn sgn(self) -> $t {
                let sign = if self > 0.0 { 1.0 } else { -1.0 };
                let not_zero = if self == 0.0 { 0.0 } else { sign };
                if self.is_nan() { self } else { not_zero }
            }
            #[inline(always)]
            fn add(self, y: $t) -> $t {
                self + y
            }
            #[inline(always)]
            fn sub(self, y: $t) -> $t {
                self - y
            }
            #[inline(always)]
            fn mul(self, y: $t) -> $t {
                self * y
            }
            #[inline(always)]
            fn min(self, y: $t) -> $t {
                let first = y.is_nan() | (self < y) | ((self == y) & self.is_sign_negative());
                if first { self } else { y }
            }
            #[inline(always)]
            fn max(self, y: $t) -> $t {
                let first = y.is_nan() | (self > y) | ((self == y) & self.is_sign_positive());
                if first { self } else { y }
            }
        }
        impl Float for $t {
            #[inline(always)]
            fn div(self, y: $t) -> $t {
                self / y
            }
            #[inline(always)]
            fn strong_mul(self, y: $t) -> $t {
                let product = self * y;
                if self == 0.0 { 0.0 } else { product }
            }
            #[inline(always)]
            fn mutual_mul(self, y: $t) -> $t {
                let product = self * y;
                if self == 0.0 || y == 0.0 { 0.0 } else { product }
            }
            #[inline(always)]
            fn sqrt(self) -> $t {
                <$t>::sqrt(self)
            }
            #[inline(always)]
            fn floor(self) -> $t {
                <$t>::floor(self)
            }
            #[inline(always)]
            fn ceil(self) -> $t {
                <$t>::ceil(self)
            }
            #[inline(always)]
            fn round(self) -> $t {
                <$t>::round_ties_even(self)
            }
            #[inline(always)]
            fn trunc(self) -> $t {
                <$t>::trunc(self)
            }
            #[inline(always)]
            fn fmod(self, y: $t) -> $t {
                self % y
            }
            #[inline(always)]
            fn is_inf(self) -> bool {
                <$t>::is_infinite(self)
            }
        }
        impl To<Truth> for $t {
            #[inline(always)]
            fn to(self) -> Truth {
                (self != 0.0).into()
            }
        }
        impl To<$t> for Truth {
            #[inline(always)]
            fn to(self) -> $t {
                <$t>::from(self.0)
            }
        }
    };
}
float!(f32);
float!(f64);

macro_rules! whole {
    ($($t:ident $wide:ident $unsigned:ident, |$x:ident| $abs:expr, $sgn:expr;)*) => { $(
        impl Element for $t {
            // Indices, and the sizes of floats.
            const IS_COMMON: bool = matches!(stringify!($t).as_bytes(), b"i64" | b"i32" | b"u64" | b"u32");
            #[inline(always)]
            fn word(self) -> u64 {
                $wide::from(self) as u64
            }
        }
        impl Number for $t {
            #[inline(always)]
            fn neg(self) -> $t {
                self.wrapping_neg()
            }
            #[inline(always)]
            fn abs(self) -> $t {
                let $x = self;
                $abs
            }
            #[inline(always)]
            fn sgn(self) -> $t {
                let $x = self;
                $sgn
            }
            #[inline(always)]
            fn add(self, y: $t) -> $t {
                self.wrapping_add(y)
            }
            #[inline(always)]
            fn sub(self, y: $t) -> $t {
                self.wrapping_sub(y)
            }
            #[inline(always)]
            fn mul(self, y: $t) -> $t {
                self.wrapping_mul(y)
            }
            #[inline(always)]
            fn min(self, y: $t) -> $t {
                Ord::min(self, y)
            }
            #[inline(always)]
            fn max(self, y: $t) -> $t {
                Ord::max(self, y)
            }
        }
        #[allow(unused_comparisons, reason = "one body serves signed and unsigned types")]
        impl Whole for $t {
            #[inline(always)]
            fn not(self) -> $t {
                !self
            }
            #[inline(always)]
            fn floor_div(self, y: $t) -> $t {
                let remainder = self.rem(y);
                let rounded_up = remainder != 0 && (remainder < 0) != (y < 0);
                self.quot(y).wrapping_sub($t::from(rounded_up))
            }
            #[inline(always)]
            fn floor_mod(self, y: $t) -> $t {
                let remainder = self.rem(y);
                let wrong_sign = remainder != 0 && (remainder < 0) != (y < 0);
                if wrong_sign { remainder.wrapping_add(y) } else { remainder }
            }
            #[inline(always)]
            fn quot(self, y: $t) -> $t {
                if y == 0 { 0 } else { self.wrapping_div(y) }
            }
            #[inline(always)]
            fn rem(self, y: $t) -> $t {
                if y == 0 { 0 } else { self.wrapping_rem(y) }
            }
            fn power(self, y: $t) -> $t {
                let (mut base, mut exponent, mut product) = (self, y, 1 as $t);
                while exponent > 0 {
                    if exponent % 2 == 1 {
                        product = product.wrapping_mul(base);
                    }
                    base = base.wrapping_mul(base);
                    exponent /= 2;
                }
                product
            }
            #[inline(always)]
            fn and(self, y: $t) -> $t {
                self & y
            }
            #[inline(always)]
            fn or(self, y: $t) -> $t {
                self | y
            }
            #[inline(always)]
            fn xor(self, y: $t) -> $t {
                self ^ y
            }
            #[inline(always)]
            fn shift_left(self, y: $t) -> $t {
                let by = y as $unsigned;
                if by < $t::BITS as $unsigned { self.wrapping_shl(by as u32) } else { 0 }
            }
            #[inline(always)]
            fn shift_right(self, y: $t) -> $t {
                let by = y as $unsigned;
                let far = self.wrapping_shr($t::BITS - 1).wrapping_shr(1);
                if by < $t::BITS as $unsigned { self.wrapping_shr(by as u32) } else { far }
            }
        }
        impl To<Truth> for $t {
            #[inline(always)]
            fn to(self) -> Truth {
                (self != 0).into()
            }
        }
        impl To<$t> for Truth {
            #[inline(always)]
            fn to(self) -> $t {
                self.0 as $t
            }
        }
    )* };
}
whole! {
    i8 i64 u8, |x| x.wrapping_abs(), x.signum();
    i16 i64 u16, |x| x.wrapping_abs(), x.signum();
    i32 i64 u32, |x| x.wrapping_abs(), x.signum();
    i64 i64 u64, |x| x.wrapping_abs(), x.signum();
    u8 u64 u8, |x| x, Ord::min(x, 1);
    u16 u64 u16, |x| x, Ord::min(x, 1);
    u32 u64 u32, |x| x, Ord::min(x, 1);
    u64 u64 u64, |x| x, Ord::min(x, 1);
}

macro_rules! conversions {
    ($($from:ident via $bits:ident)* => $all:tt) => { $(conversions!(from $from $bits $all);)* };
    (from $from:ident $bits:ident [$($to:ident)*]) => { $(
        impl To<$to> for $from {
            #[inline(always)]
            fn to(self) -> $to {
                self as $bits as $to
            }
        }
    )* };
}
conversions! { f32 via f32 f64 via f64 => [f32 f64 i8 i16 i32 i64 u8 u16 u32 u64] }
conversions! { u8 via u8 u16 via u16 u32 via u32 u64 via u64 => [f32 f64 i8 i16 i32 i64 u8 u16 u32 u64] }
conversions! { i8 via i8 i16 via i16 i32 via i32 i64 via i64 => [f32 f64 i8 i16 i32 i64] }
// In a wider unsigned type a signed integer gets zeros in front.
conversions! { i8 via u8 i16 via u16 i32 via u32 i64 via u64 => [u8 u16 u32 u64] }

impl To<Truth> for Truth {
    #[inline(always)]
    fn to(self) -> Truth {
        self
    }
}
