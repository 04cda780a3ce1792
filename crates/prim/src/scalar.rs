//! Scalar types and values.

use std::fmt;

/// A scalar type.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub enum Scalar {
    /// 32-bit IEEE float.
    F32,
    /// 64-bit IEEE float.
    F64,
    /// Signed integers.
    I8,
    /// 16 bits, signed.
    I16,
    /// 32 bits, signed.
    I32,
    /// 64 bits, signed.
    I64,
    /// Unsigned integers.
    U8,
    /// 16 bits, unsigned.
    U16,
    /// 32 bits, unsigned.
    U32,
    /// 64 bits, unsigned.
    U64,
    /// Truth values.
    Bool,
}

impl Scalar {
    /// All scalar types.
    pub const ALL: [Scalar; 11] = [
        Scalar::F32,
        Scalar::F64,
        Scalar::I8,
        Scalar::I16,
        Scalar::I32,
        Scalar::I64,
        Scalar::U8,
        Scalar::U16,
        Scalar::U32,
        Scalar::U64,
        Scalar::Bool,
    ];
    /// Whether it is a floating point type: the types that carry derivatives.
    pub fn is_float(self) -> bool {
        matches!(self, Scalar::F32 | Scalar::F64)
    }
    /// Whether it is an integer type.
    pub fn is_integer(self) -> bool {
        !self.is_float() && self != Scalar::Bool
    }
    /// Whether it is a signed integer type.
    pub fn is_signed(self) -> bool {
        matches!(self, Scalar::I8 | Scalar::I16 | Scalar::I32 | Scalar::I64)
    }
    /// Its name in the language and in both IRs.
    pub fn name(self) -> &'static str {
        match self {
            Scalar::F32 => "f32",
            Scalar::F64 => "f64",
            Scalar::I8 => "i8",
            Scalar::I16 => "i16",
            Scalar::I32 => "i32",
            Scalar::I64 => "i64",
            Scalar::U8 => "u8",
            Scalar::U16 => "u16",
            Scalar::U32 => "u32",
            Scalar::U64 => "u64",
            Scalar::Bool => "bool",
        }
    }
    /// The type with this name.
    pub fn from_name(name: &str) -> Option<Scalar> {
        Scalar::ALL.into_iter().find(|s| s.name() == name)
    }
    /// Size of a value in bytes.
    pub fn bytes(self) -> usize {
        match self {
            Scalar::I8 | Scalar::U8 | Scalar::Bool => 1,
            Scalar::I16 | Scalar::U16 => 2,
            Scalar::F32 | Scalar::I32 | Scalar::U32 => 4,
            Scalar::F64 | Scalar::I64 | Scalar::U64 => 8,
        }
    }
    /// Its zero (`false` for booleans).
    pub fn zero(self) -> ScalarValue {
        self.from_i64(0)
    }
    /// Its one (`true` for booleans).
    pub fn one(self) -> ScalarValue {
        self.from_i64(1)
    }
    /// The largest value: infinity of floats. The neutral element of the minimum.
    pub fn greatest(self) -> ScalarValue {
        match self {
            Scalar::F32 | Scalar::F64 => self.from_f64(f64::INFINITY),
            Scalar::I8 => ScalarValue::I8(i8::MAX),
            Scalar::I16 => ScalarValue::I16(i16::MAX),
            Scalar::I32 => ScalarValue::I32(i32::MAX),
            Scalar::I64 => ScalarValue::I64(i64::MAX),
            Scalar::U8 => ScalarValue::U8(u8::MAX),
            Scalar::U16 => ScalarValue::U16(u16::MAX),
            Scalar::U32 => ScalarValue::U32(u32::MAX),
            Scalar::U64 => ScalarValue::U64(u64::MAX),
            Scalar::Bool => ScalarValue::Bool(true),
        }
    }
    /// The smallest value: minus infinity of floats. The neutral element of the maximum.
    pub fn least(self) -> ScalarValue {
        match self {
            Scalar::F32 | Scalar::F64 => self.from_f64(f64::NEG_INFINITY),
            Scalar::I8 => ScalarValue::I8(i8::MIN),
            Scalar::I16 => ScalarValue::I16(i16::MIN),
            Scalar::I32 => ScalarValue::I32(i32::MIN),
            Scalar::I64 => ScalarValue::I64(i64::MIN),
            Scalar::U8 | Scalar::U16 | Scalar::U32 | Scalar::U64 | Scalar::Bool => self.zero(),
        }
    }
    /// The value `x`, wrapped or rounded into the type.
    #[allow(clippy::wrong_self_convention, reason = "a constructor chosen by a run-time type")]
    pub fn from_i64(self, x: i64) -> ScalarValue {
        match self {
            Scalar::F32 => ScalarValue::F32(x as f32),
            Scalar::F64 => ScalarValue::F64(x as f64),
            Scalar::I8 => ScalarValue::I8(x as i8),
            Scalar::I16 => ScalarValue::I16(x as i16),
            Scalar::I32 => ScalarValue::I32(x as i32),
            Scalar::I64 => ScalarValue::I64(x),
            Scalar::U8 => ScalarValue::U8(x as u8),
            Scalar::U16 => ScalarValue::U16(x as u16),
            Scalar::U32 => ScalarValue::U32(x as u32),
            Scalar::U64 => ScalarValue::U64(x as u64),
            Scalar::Bool => ScalarValue::Bool(x != 0),
        }
    }
    /// The float value `x`; integers truncate, saturating, with NaN as 0; booleans are `x != 0`.
    #[allow(clippy::wrong_self_convention, reason = "a constructor chosen by a run-time type")]
    pub fn from_f64(self, x: f64) -> ScalarValue {
        match self {
            Scalar::F32 => ScalarValue::F32(x as f32),
            Scalar::F64 => ScalarValue::F64(x),
            Scalar::I8 => ScalarValue::I8(x as i8),
            Scalar::I16 => ScalarValue::I16(x as i16),
            Scalar::I32 => ScalarValue::I32(x as i32),
            Scalar::I64 => ScalarValue::I64(x as i64),
            Scalar::U8 => ScalarValue::U8(x as u8),
            Scalar::U16 => ScalarValue::U16(x as u16),
            Scalar::U32 => ScalarValue::U32(x as u32),
            Scalar::U64 => ScalarValue::U64(x as u64),
            Scalar::Bool => ScalarValue::Bool(x != 0.0),
        }
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A scalar with its type. Equality is by bits for floats (so that `NaN = NaN` and `-0 ≠ 0`).
#[derive(Clone, Copy, Debug)]
pub enum ScalarValue {
    /// `f32`
    F32(f32),
    /// `f64`
    F64(f64),
    /// `i8`
    I8(i8),
    /// `i16`
    I16(i16),
    /// `i32`
    I32(i32),
    /// `i64`
    I64(i64),
    /// `u8`
    U8(u8),
    /// `u16`
    U16(u16),
    /// `u32`
    U32(u32),
    /// `u64`
    U64(u64),
    /// `bool`
    Bool(bool),
}

impl ScalarValue {
    /// Its type.
    pub fn scalar(self) -> Scalar {
        match self {
            ScalarValue::F32(_) => Scalar::F32,
            ScalarValue::F64(_) => Scalar::F64,
            ScalarValue::I8(_) => Scalar::I8,
            ScalarValue::I16(_) => Scalar::I16,
            ScalarValue::I32(_) => Scalar::I32,
            ScalarValue::I64(_) => Scalar::I64,
            ScalarValue::U8(_) => Scalar::U8,
            ScalarValue::U16(_) => Scalar::U16,
            ScalarValue::U32(_) => Scalar::U32,
            ScalarValue::U64(_) => Scalar::U64,
            ScalarValue::Bool(_) => Scalar::Bool,
        }
    }
    /// As `i64` (floats truncate, `u64` wraps, booleans are 0 and 1).
    pub fn as_i64(self) -> i64 {
        match self {
            ScalarValue::F32(x) => x as i64,
            ScalarValue::F64(x) => x as i64,
            ScalarValue::I8(x) => x.into(),
            ScalarValue::I16(x) => x.into(),
            ScalarValue::I32(x) => x.into(),
            ScalarValue::I64(x) => x,
            ScalarValue::U8(x) => x.into(),
            ScalarValue::U16(x) => x.into(),
            ScalarValue::U32(x) => x.into(),
            ScalarValue::U64(x) => x as i64,
            ScalarValue::Bool(x) => x.into(),
        }
    }
    /// As `f64`.
    pub fn as_f64(self) -> f64 {
        match self {
            ScalarValue::F32(x) => x.into(),
            ScalarValue::F64(x) => x,
            ScalarValue::U64(x) => x as f64,
            ScalarValue::I8(_)
            | ScalarValue::I16(_)
            | ScalarValue::I32(_)
            | ScalarValue::I64(_)
            | ScalarValue::U8(_)
            | ScalarValue::U16(_)
            | ScalarValue::U32(_)
            | ScalarValue::Bool(_) => self.as_i64() as f64,
        }
    }
    /// Whether it is `true`.
    pub fn is_true(self) -> bool {
        matches!(self, ScalarValue::Bool(true))
    }
    /// Whether it is a float that is zero, of either sign.
    pub fn is_float_zero(self) -> bool {
        self.scalar().is_float() && self.as_f64() == 0.0
    }
    fn bits(self) -> (Scalar, u64) {
        let bits = match self {
            ScalarValue::F32(x) => x.to_bits().into(),
            ScalarValue::F64(x) => x.to_bits(),
            _ => self.as_i64() as u64,
        };
        (self.scalar(), bits)
    }
}

macro_rules! into_scalar_value {
    ($($t:ident $variant:ident),*) => { $(
        impl From<$t> for ScalarValue {
            fn from(x: $t) -> ScalarValue {
                ScalarValue::$variant(x)
            }
        }
    )* };
}
into_scalar_value! { f32 F32, f64 F64, i8 I8, i16 I16, i32 I32, i64 I64, u8 U8, u16 U16, u32 U32, u64 U64, bool Bool }

impl PartialEq for ScalarValue {
    fn eq(&self, other: &Self) -> bool {
        self.bits() == other.bits()
    }
}
impl Eq for ScalarValue {}
impl std::hash::Hash for ScalarValue {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.bits().hash(state);
    }
}

impl fmt::Display for ScalarValue {
    /// Futhark's spelling with a type suffix: `1.5f64`, `2i64`, `true`, `f64.nan`, `-f32.inf`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let t = self.scalar();
        match *self {
            ScalarValue::Bool(x) => write!(f, "{x}"),
            ScalarValue::F32(_) | ScalarValue::F64(_) => {
                let x = self.as_f64();
                if x.is_nan() {
                    write!(f, "{t}.nan")
                } else if x.is_infinite() {
                    write!(f, "{}{t}.inf", if x < 0.0 { "-" } else { "" })
                } else if let ScalarValue::F32(x) = *self {
                    write!(f, "{x:?}f32")
                } else {
                    write!(f, "{x:?}f64")
                }
            }
            ScalarValue::U64(x) => write!(f, "{x}u64"),
            _ => write!(f, "{}{t}", self.as_i64()),
        }
    }
}
