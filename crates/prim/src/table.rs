//! The primitive table.

use crate::scalar::{Scalar, ScalarValue};

/// A scalar operation; with a [`Scalar`] type it becomes a [`Prim`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
#[allow(missing_docs, reason = "each row of the table documents its operation")]
pub enum Op {
    // unary, number -> same type
    Neg,
    Abs,
    Sgn,
    // unary, float -> same type
    Sqrt,
    Cbrt,
    Exp,
    Expm1,
    Log,
    Log2,
    Log10,
    Log1p,
    Sin,
    Cos,
    Tan,
    Asin,
    Acos,
    Atan,
    Sinh,
    Cosh,
    Tanh,
    Asinh,
    Acosh,
    Atanh,
    Floor,
    Ceil,
    Round,
    Trunc,
    Erf,
    Erfc,
    Lgamma,
    Gamma,
    Digamma,
    // unary, float -> bool
    IsNan,
    IsInf,
    // unary, integer or bool -> same type
    Not,
    // binary, number -> same type. Div on integers rounds down (as Mod), Quot and Rem round to zero.
    Add,
    Sub,
    Mul,
    Div,
    Mod,
    Quot,
    Rem,
    Pow,
    Min,
    Max,
    // binary, float -> same type. `Polygamma(n, x)`: the n-th derivative of digamma, n a whole number given as a float.
    Atan2,
    Hypot,
    Polygamma,
    // binary, integer or bool -> same type (shifts: integers only)
    And,
    Or,
    Xor,
    Shl,
    Shr,
    // binary, any scalar -> bool
    Eq,
    Ne,
    Lt,
    Le,
    // ternary: `Select(c: bool, a, b)`, both already evaluated
    Select,
}

/// A primitive: an operation at a type, or a conversion between scalar types.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub enum Prim {
    /// An operation whose (non-condition) arguments have this type.
    Op(Op, Scalar),
    /// `from` to `to`: float to integer truncates (saturating, NaN gives 0), integers wrap.
    Convert(Scalar, Scalar),
}

/// A partial derivative as data: an expression over the arguments and the result of the primitive.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Partial {
    /// The i-th argument.
    Arg(u8),
    /// The result of the primitive.
    Result,
    /// A constant of the primitive's type. `Const(0.0)` alone means: statically no contribution.
    Const(f64),
    /// An operation at the primitive's type (comparisons give the condition of a `Select`).
    Op(Op, &'static [Partial]),
}

/// Why a primitive has no value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PrimError {
    /// Integer division by zero.
    DivisionByZero,
    /// Arguments of the wrong number or type: a malformed program.
    IllTyped,
}

impl Prim {
    /// The type of the result.
    pub fn result(self) -> Scalar {
        match self {
            Prim::Convert(_, to) => to,
            Prim::Op(Op::Eq | Op::Ne | Op::Lt | Op::Le | Op::IsNan | Op::IsInf, _) => Scalar::Bool,
            Prim::Op(_, s) => s,
        }
    }
    /// The value of the primitive.
    pub fn eval(self, _args: &[ScalarValue]) -> Result<ScalarValue, PrimError> {
        Err(PrimError::IllTyped)
    }
}
