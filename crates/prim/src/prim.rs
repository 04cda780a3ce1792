//! Primitives: an operation of the table at a type, or a conversion; their evaluation and their derivatives.
//!
//! Assumes nothing about its input: ill-typed applications are the error [`PrimError::IllTyped`].
//! Guarantees: evaluation never panics, takes bounded time, and gives the same bits on every platform.

use std::fmt;

use crate::scalar::{Scalar, ScalarValue};
use crate::table::{Op, Row};

/// A primitive: an operation at a type, or a conversion between scalar types.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub enum Prim {
    /// An operation whose (non-condition) arguments have this type.
    Op(Op, Scalar),
    /// `from` to `to`: float to integer truncates (saturating, NaN gives 0), integers wrap, to `bool` is `x != 0`.
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

/// How a tangent or cotangent is multiplied by a partial derivative.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Product {
    /// As numbers: the partial derivative is finite at finite arguments.
    Plain,
    /// A tangent that is exactly zero stops at a partial derivative that is not finite ([`Op::StrongMul`]).
    Strong,
    /// A zero on either side stops ([`Op::MutualMul`]). The partial derivative is the first factor of a strong product, a tangent
    /// itself: what it stops is not taken in any order.
    Mutual,
}

/// Why a primitive has no value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PrimError {
    /// Integer division by zero.
    DivisionByZero,
    /// An integer power with a negative exponent.
    NegativeExponent,
    /// Arguments of the wrong number or type: a malformed program.
    IllTyped,
}

impl fmt::Display for PrimError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PrimError::DivisionByZero => "division by zero",
            PrimError::NegativeExponent => "negative exponent of an integer power",
            PrimError::IllTyped => "arguments of the wrong number or type",
        })
    }
}

/// The derivative of a conversion between floats, at either type: the caller converts the cotangent (or tangent).
const CONVERSION_PARTIALS: &[Partial] = &[Partial::Const(1.0)];

impl Prim {
    fn row(self) -> Option<&'static Row> {
        match self {
            Prim::Op(op, _) => Some(op.row()),
            Prim::Convert(..) => None,
        }
    }

    /// The number of arguments.
    pub fn arity(self) -> usize {
        self.row().map_or(1, |row| row.arity)
    }

    /// The types of the arguments.
    pub fn params(self) -> Vec<Scalar> {
        match self {
            Prim::Convert(from, _) => vec![from],
            Prim::Op(op, s) => {
                let row = op.row();
                let mut params = vec![s; row.arity];
                if row.has_condition {
                    params[0] = Scalar::Bool;
                }
                params
            }
        }
    }

    /// The type of the result.
    pub fn result(self) -> Scalar {
        match self {
            Prim::Convert(_, to) => to,
            Prim::Op(op, s) => {
                if op.row().is_test {
                    Scalar::Bool
                } else {
                    s
                }
            }
        }
    }

    /// Whether the operation exists at its type. All conversions do.
    pub fn is_valid(self) -> bool {
        match self {
            Prim::Convert(..) => true,
            Prim::Op(op, s) => op.row().allows(s),
        }
    }

    /// Whether there are arguments for which the primitive has no value and stops the program.
    pub fn may_stop(self) -> bool {
        match self {
            Prim::Op(Op::Div | Op::Mod | Op::Quot | Op::Rem, s) => s.is_integer(),
            Prim::Op(Op::Pow, s) => s.is_integer() && s.is_signed(),
            Prim::Op(..) | Prim::Convert(..) => false,
        }
    }

    /// The value of the primitive.
    ///
    /// # Errors
    /// [`PrimError::DivisionByZero`] and [`PrimError::NegativeExponent`] at integer types;
    /// [`PrimError::IllTyped`] if the arguments are not of the types [`Prim::params`] or the primitive is not valid.
    pub fn eval(self, args: &[ScalarValue]) -> Result<ScalarValue, PrimError> {
        match self {
            Prim::Op(op, s) => op.eval(s, args),
            Prim::Convert(from, to) => match *args {
                [x] if x.scalar() == from => Ok(convert(x, to)),
                _ => Err(PrimError::IllTyped),
            },
        }
    }

    /// The partial derivatives, one for each argument; `None` if the result does not vary differentiably with any
    /// argument (integers, booleans, comparisons). Arguments that are not floats have the partial `Const(0.0)`.
    ///
    /// For a conversion between float types the partial is 1 and the caller converts the product to the other type.
    pub fn partials(self) -> Option<&'static [Partial]> {
        match self {
            Prim::Convert(from, to) => (from.is_float() && to.is_float()).then_some(CONVERSION_PARTIALS),
            Prim::Op(op, s) => op.row().partials.filter(|_| s.is_float()),
        }
    }

    /// How tangents and cotangents are multiplied by the partial derivative by argument `i`, where these arguments are known
    /// constants. A power with a whole exponent is a product of factors, and multiplied as products are.
    pub fn product(self, i: usize, known: &[Option<ScalarValue>]) -> Product {
        let Some(row) = self.row() else { return Product::Plain };
        if row.singular.get(i) != Some(&true) {
            return Product::Plain;
        }
        let is_finite = |partial: &Partial| {
            let value = partial.of_constants(self.result(), known);
            value.is_some_and(|x| x.as_f64().is_finite())
        };
        match (row.op, known) {
            (Op::Pow, [_, Some(y)]) if i == 0 && y.as_f64() >= 1.0 && y.as_f64().fract() == 0.0 => {
                Product::Plain
            }
            _ if row.partials.is_some_and(|all| is_finite(&all[i])) => Product::Plain,
            (Op::StrongMul, _) if i == 1 => Product::Mutual,
            (Op::MutualMul, _) => Product::Mutual,
            _ => Product::Strong,
        }
    }

    /// The primitive as operators have it: minimum and maximum of floats choose the first of equal arguments.
    pub fn in_operator(self) -> Prim {
        match self {
            Prim::Op(Op::Min, s) if s.is_float() => Prim::Op(Op::MinFirst, s),
            Prim::Op(Op::Max, s) if s.is_float() => Prim::Op(Op::MaxFirst, s),
            Prim::Op(..) | Prim::Convert(..) => self,
        }
    }

    /// The primitive with the same values that executors know: what operators choose is a question of derivatives.
    pub fn of_values(self) -> Prim {
        match self {
            Prim::Op(Op::MinFirst, s) => Prim::Op(Op::Min, s),
            Prim::Op(Op::MaxFirst, s) => Prim::Op(Op::Max, s),
            Prim::Op(..) | Prim::Convert(..) => self,
        }
    }

    /// Steps charged for one evaluation by the interpreters' cost model.
    pub fn cost(self) -> u64 {
        self.row().map_or(1, |row| row.cost)
    }

    /// Its text form in both IRs: `add.f64`, `convert.i64.f64`.
    pub fn name(self) -> String {
        self.to_string()
    }

    /// The valid primitive with this text form.
    pub fn from_name(name: &str) -> Option<Prim> {
        let (operation, types) = name.split_once('.')?;
        if operation == "convert" {
            let (from, to) = types.split_once('.')?;
            return Some(Prim::Convert(Scalar::from_name(from)?, Scalar::from_name(to)?));
        }
        let prim = Prim::Op(Op::from_name(operation)?, Scalar::from_name(types)?);
        prim.is_valid().then_some(prim)
    }
}

impl fmt::Display for Prim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Prim::Op(op, s) => write!(f, "{}.{s}", op.name()),
            Prim::Convert(from, to) => write!(f, "convert.{from}.{to}"),
        }
    }
}

impl Partial {
    /// The value of the expression at float type `scalar`, given arguments and result of the primitive it belongs to.
    ///
    /// # Errors
    /// [`PrimError::IllTyped`] if `args` or `result` do not fit the primitive.
    pub fn eval(
        &self,
        scalar: Scalar,
        args: &[ScalarValue],
        result: ScalarValue,
    ) -> Result<ScalarValue, PrimError> {
        match *self {
            Partial::Arg(i) => args.get(usize::from(i)).copied().ok_or(PrimError::IllTyped),
            Partial::Result => Ok(result),
            Partial::Const(c) => Ok(scalar.from_f64(c)),
            Partial::Op(op, operands) => {
                let mut values = [result; MAX_ARITY];
                let values = values.get_mut(..operands.len()).ok_or(PrimError::IllTyped)?;
                for (value, operand) in values.iter_mut().zip(operands) {
                    *value = operand.eval(scalar, args, result)?;
                }
                op.eval(scalar, values)
            }
        }
    }

    /// The value, if it depends on no other arguments than those that are known.
    fn of_constants(&self, scalar: Scalar, known: &[Option<ScalarValue>]) -> Option<ScalarValue> {
        match *self {
            Partial::Arg(i) => known.get(usize::from(i)).copied().flatten(),
            Partial::Result => None,
            Partial::Const(c) => Some(scalar.from_f64(c)),
            Partial::Op(op, operands) => {
                let values: Option<Vec<ScalarValue>> =
                    operands.iter().map(|p| p.of_constants(scalar, known)).collect();
                op.eval(scalar, &values?).ok()
            }
        }
    }

    /// Steps charged for one evaluation of the expression.
    pub fn cost(&self) -> u64 {
        match self {
            Partial::Arg(_) | Partial::Result | Partial::Const(_) => 0,
            Partial::Op(op, operands) => op.row().cost + operands.iter().map(Partial::cost).sum::<u64>(),
        }
    }
}

/// The largest number of arguments of any operation.
pub const MAX_ARITY: usize = 3;

/// The value of `partial`, a partial derivative of a primitive of float type, as an `f64`.
///
/// # Errors
/// As [`Partial::eval`].
pub fn eval_partial(partial: &Partial, args: &[ScalarValue], result: ScalarValue) -> Result<f64, PrimError> {
    if !result.scalar().is_float() {
        return Err(PrimError::IllTyped);
    }
    partial.eval(result.scalar(), args, result).map(ScalarValue::as_f64)
}

/// `x` as a value of type `to`. Each pair of types has its own cast: going through `f64` would round twice.
/// A signed integer in a wider unsigned type gets zeros in front, as in Futhark.
fn convert(x: ScalarValue, to: Scalar) -> ScalarValue {
    macro_rules! cast {
        ($x:expr, $is_true:expr) => {
            cast!($x, $is_true, $x)
        };
        ($x:expr, $is_true:expr, $bits:expr) => {
            match to {
                Scalar::F32 => ScalarValue::F32($x as f32),
                Scalar::F64 => ScalarValue::F64($x as f64),
                Scalar::I8 => ScalarValue::I8($x as i8),
                Scalar::I16 => ScalarValue::I16($x as i16),
                Scalar::I32 => ScalarValue::I32($x as i32),
                Scalar::I64 => ScalarValue::I64($x as i64),
                Scalar::U8 => ScalarValue::U8($bits as u8),
                Scalar::U16 => ScalarValue::U16($bits as u16),
                Scalar::U32 => ScalarValue::U32($bits as u32),
                Scalar::U64 => ScalarValue::U64($bits as u64),
                Scalar::Bool => ScalarValue::Bool($is_true),
            }
        };
    }
    match x {
        ScalarValue::F32(x) => cast!(x, x != 0.0),
        ScalarValue::F64(x) => cast!(x, x != 0.0),
        ScalarValue::I8(x) => cast!(x, x != 0, x as u8),
        ScalarValue::I16(x) => cast!(x, x != 0, x as u16),
        ScalarValue::I32(x) => cast!(x, x != 0, x as u32),
        ScalarValue::I64(x) => cast!(x, x != 0, x as u64),
        ScalarValue::U8(x) => cast!(x, x != 0),
        ScalarValue::U16(x) => cast!(x, x != 0),
        ScalarValue::U32(x) => cast!(x, x != 0),
        ScalarValue::U64(x) => cast!(x, x != 0),
        ScalarValue::Bool(x) => cast!(u8::from(x), x),
    }
}
