//! Arithmetic that the rows of the table are written in: the same name at both float types, and at all integer types.
//!
//! Guarantees: nothing here panics. Float functions other than `+ - * /` and square root come from the `libm` crate,
//! whose results do not depend on the platform. Integers wrap.

use crate::prim::PrimError;
use crate::scalar::ScalarValue;
use crate::special;

/// What an evaluation in the table may give: a scalar, or a scalar unless there is an error.
pub(crate) trait Outcome {
    fn outcome(self) -> Result<ScalarValue, PrimError>;
}

impl<T: Into<ScalarValue>> Outcome for T {
    fn outcome(self) -> Result<ScalarValue, PrimError> {
        Ok(self.into())
    }
}

impl<T: Into<ScalarValue>> Outcome for Result<T, PrimError> {
    fn outcome(self) -> Result<ScalarValue, PrimError> {
        self.map(Into::into)
    }
}

macro_rules! real_functions {
    ($($name:ident($($x:ident),+) = $narrow:path, $wide:path;)*) => {
        /// Functions at both float types. Called as `Real::sin(x)`, never as `x.sin()`, which would be the platform's.
        pub(crate) trait Real: Copy + PartialOrd {
            fn sqrt(self) -> Self;
            fn abs(self) -> Self;
            fn sign(self) -> Self;
            fn minimum(self, y: Self) -> Self;
            fn maximum(self, y: Self) -> Self;
            fn strong_mul(self, y: Self) -> Self;
            fn mutual_mul(self, y: Self) -> Self;
            fn digamma(self) -> Self;
            fn polygamma(order: Self, x: Self) -> Self;
            $(fn $name($($x: Self),+) -> Self;)*
        }
        impl Real for f32 {
            real_common!(f32);
            $(fn $name($($x: f32),+) -> f32 { $narrow($($x),+) })*
        }
        impl Real for f64 {
            real_common!(f64);
            $(fn $name($($x: f64),+) -> f64 { $wide($($x),+) })*
        }
    };
}

macro_rules! real_common {
    ($t:ident) => {
        // IEEE 754 requires the correctly rounded square root, so the platform's is as portable as `+`.
        fn sqrt(self) -> $t {
            <$t>::sqrt(self)
        }
        fn abs(self) -> $t {
            <$t>::abs(self)
        }
        fn sign(self) -> $t {
            if self > 0.0 {
                1.0
            } else if self < 0.0 {
                -1.0
            } else if self.is_nan() {
                self
            } else {
                0.0
            }
        }
        // Zeros are ordered (-0 < 0) so that both are commutative and associative: reductions may re-associate them.
        fn minimum(self, y: $t) -> $t {
            if y.is_nan() || self < y || (self == y && self.is_sign_negative()) { self } else { y }
        }
        fn maximum(self, y: $t) -> $t {
            if y.is_nan() || self > y || (self == y && self.is_sign_positive()) { self } else { y }
        }
        // One comparison beside the product on all machines; a zero with the sign of the product would take three.
        fn strong_mul(self, y: $t) -> $t {
            if self == 0.0 { 0.0 } else { self * y }
        }
        fn mutual_mul(self, y: $t) -> $t {
            if self == 0.0 || y == 0.0 { 0.0 } else { self * y }
        }
        fn digamma(self) -> $t {
            special::digamma(f64::from(self)) as $t
        }
        fn polygamma(order: $t, x: $t) -> $t {
            special::polygamma(f64::from(order), f64::from(x)) as $t
        }
    };
}

real_functions! {
    cbrt(x) = libm::cbrtf, libm::cbrt;
    exp(x) = libm::expf, libm::exp;
    expm1(x) = libm::expm1f, libm::expm1;
    log(x) = libm::logf, libm::log;
    log2(x) = libm::log2f, libm::log2;
    log10(x) = libm::log10f, libm::log10;
    log1p(x) = libm::log1pf, libm::log1p;
    sin(x) = libm::sinf, libm::sin;
    cos(x) = libm::cosf, libm::cos;
    tan(x) = libm::tanf, libm::tan;
    asin(x) = libm::asinf, libm::asin;
    acos(x) = libm::acosf, libm::acos;
    atan(x) = libm::atanf, libm::atan;
    sinh(x) = libm::sinhf, libm::sinh;
    cosh(x) = libm::coshf, libm::cosh;
    tanh(x) = libm::tanhf, libm::tanh;
    asinh(x) = libm::asinhf, libm::asinh;
    acosh(x) = special::acosh_single, special::acosh;
    atanh(x) = libm::atanhf, libm::atanh;
    floor(x) = libm::floorf, libm::floor;
    ceil(x) = libm::ceilf, libm::ceil;
    round(x) = libm::rintf, libm::rint;
    trunc(x) = libm::truncf, libm::trunc;
    erf(x) = libm::erff, libm::erf;
    erfc(x) = libm::erfcf, libm::erfc;
    lgamma(x) = libm::lgammaf, libm::lgamma;
    gamma(x) = libm::tgammaf, libm::tgamma;
    fmod(x, y) = libm::fmodf, libm::fmod;
    pow(x, y) = libm::powf, libm::pow;
    atan2(y, x) = libm::atan2f, libm::atan2;
    hypot(x, y) = libm::hypotf, libm::hypot;
}

/// Wrapping arithmetic at all integer types.
pub(crate) trait Whole: Copy + Ord {
    /// Absolute value; the smallest signed number gives itself.
    fn magnitude(self) -> Self;
    /// -1, 0 or 1.
    fn sign(self) -> Self;
    /// Quotient rounded down.
    fn floor_div(self, y: Self) -> Result<Self, PrimError>;
    /// Remainder with the sign of the divisor.
    fn floor_mod(self, y: Self) -> Result<Self, PrimError>;
    /// Quotient rounded to zero.
    fn quot(self, y: Self) -> Result<Self, PrimError>;
    /// Remainder with the sign of the dividend.
    fn rem(self, y: Self) -> Result<Self, PrimError>;
    /// Power by repeated squaring.
    fn power(self, y: Self) -> Result<Self, PrimError>;
    /// Shift left; 0 if `y` (read as unsigned) is the width or more.
    fn shift_left(self, y: Self) -> Self;
    /// Shift right, keeping the sign; 0 or -1 if `y` (read as unsigned) is the width or more.
    fn shift_right(self, y: Self) -> Self;
}

macro_rules! whole {
    ($($t:ident: $unsigned:ident, |$x:ident| $magnitude:expr, $sign:expr;)*) => { $(
        impl Whole for $t {
            fn magnitude(self) -> $t {
                let $x = self;
                $magnitude
            }
            fn sign(self) -> $t {
                let $x = self;
                $sign
            }
            #[allow(unused_comparisons, reason = "one body serves signed and unsigned types")]
            fn floor_div(self, y: $t) -> Result<$t, PrimError> {
                let quotient = self.quot(y)?;
                let remainder = self.wrapping_rem(y);
                let rounded_up = remainder != 0 && (remainder < 0) != (y < 0);
                Ok(if rounded_up { quotient - 1 } else { quotient })
            }
            #[allow(unused_comparisons, reason = "one body serves signed and unsigned types")]
            fn floor_mod(self, y: $t) -> Result<$t, PrimError> {
                let remainder = self.rem(y)?;
                let wrong_sign = remainder != 0 && (remainder < 0) != (y < 0);
                Ok(if wrong_sign { remainder.wrapping_add(y) } else { remainder })
            }
            fn quot(self, y: $t) -> Result<$t, PrimError> {
                if y == 0 { Err(PrimError::DivisionByZero) } else { Ok(self.wrapping_div(y)) }
            }
            fn rem(self, y: $t) -> Result<$t, PrimError> {
                if y == 0 { Err(PrimError::DivisionByZero) } else { Ok(self.wrapping_rem(y)) }
            }
            #[allow(unused_comparisons, reason = "one body serves signed and unsigned types")]
            fn power(self, y: $t) -> Result<$t, PrimError> {
                if y < 0 {
                    return Err(PrimError::NegativeExponent);
                }
                let (mut base, mut exponent, mut product) = (self, y, 1 as $t);
                while exponent > 0 {
                    if exponent % 2 == 1 {
                        product = product.wrapping_mul(base);
                    }
                    base = base.wrapping_mul(base);
                    exponent /= 2;
                }
                Ok(product)
            }
            fn shift_left(self, y: $t) -> $t {
                if (y as $unsigned) < $t::BITS as $unsigned { self << y } else { 0 }
            }
            fn shift_right(self, y: $t) -> $t {
                if (y as $unsigned) < $t::BITS as $unsigned { self >> y } else { self >> ($t::BITS - 1) >> 1 }
            }
        }
    )* };
}

whole! {
    i8: u8, |x| x.wrapping_abs(), x.signum();
    i16: u16, |x| x.wrapping_abs(), x.signum();
    i32: u32, |x| x.wrapping_abs(), x.signum();
    i64: u64, |x| x.wrapping_abs(), x.signum();
    u8: u8, |x| x, x.min(1);
    u16: u16, |x| x, x.min(1);
    u32: u32, |x| x, x.min(1);
    u64: u64, |x| x, x.min(1);
}
