//! Scalars of a running program, over a domain of floating point numbers.
//!
//! The same evaluator runs on plain floats ([`Primal`]) and on dual numbers. A [`Domain`] says what a float is; integers
//! and truth values are the same in every domain. Guarantee: the primal part of a result does not depend on the domain.

use super::code::DiffCode;
use super::machine::{Machine, Res};
use super::value::Val;
use pullback_prim::{Op, Prim, PrimError, Scalar, ScalarValue};
use std::fmt::Debug;

/// A kind of floating point numbers.
pub(crate) trait Domain: Clone + Debug + 'static {
    /// What an `f32` is.
    type F32: Clone + Debug;
    /// What an `f64` is.
    type F64: Clone + Debug;
    /// What evaluation in this domain remembers besides values.
    type State: Default;

    /// A constant.
    fn f32(x: f32) -> Self::F32;
    /// A constant.
    fn f64(x: f64) -> Self::F64;
    /// The primal part.
    fn primal32(x: &Self::F32) -> f32;
    /// The primal part.
    fn primal64(x: &Self::F64) -> f64;
    /// Addition of cotangents.
    fn add32(x: &Self::F32, y: &Self::F32) -> Self::F32;
    /// Addition of cotangents.
    fn add64(x: &Self::F64, y: &Self::F64) -> Self::F64;
    /// A primitive; `inside` of an operator of a reduction, scan or histogram.
    fn prim(
        state: &mut Self::State,
        prim: Prim,
        args: &[Num<Self>],
        inside: bool,
    ) -> Result<Num<Self>, PrimError>;
    /// The value without derivative.
    fn stop_gradient(machine: &mut Machine<'_, Self>, value: Val<Self>) -> Res<Val<Self>>;
    /// A derivative inside the program. Pushes its results on the stack.
    fn differentiate(machine: &mut Machine<'_, Self>, code: &DiffCode) -> Res<()>;
}

/// A scalar.
#[derive(Clone, Debug)]
pub(crate) enum Num<D: Domain> {
    F32(D::F32),
    F64(D::F64),
    I8(i8),
    I16(i16),
    I32(i32),
    I64(i64),
    U8(u8),
    U16(u16),
    U32(u32),
    U64(u64),
    Bool(bool),
}

impl<D: Domain> Num<D> {
    /// The scalar as a constant of the domain.
    #[inline]
    pub(crate) fn lift(value: ScalarValue) -> Self {
        match value {
            ScalarValue::F32(x) => Num::F32(D::f32(x)),
            ScalarValue::F64(x) => Num::F64(D::f64(x)),
            ScalarValue::I8(x) => Num::I8(x),
            ScalarValue::I16(x) => Num::I16(x),
            ScalarValue::I32(x) => Num::I32(x),
            ScalarValue::I64(x) => Num::I64(x),
            ScalarValue::U8(x) => Num::U8(x),
            ScalarValue::U16(x) => Num::U16(x),
            ScalarValue::U32(x) => Num::U32(x),
            ScalarValue::U64(x) => Num::U64(x),
            ScalarValue::Bool(x) => Num::Bool(x),
        }
    }
    /// The primal part.
    #[inline]
    pub(crate) fn primal(&self) -> ScalarValue {
        match self {
            Num::F32(x) => ScalarValue::F32(D::primal32(x)),
            Num::F64(x) => ScalarValue::F64(D::primal64(x)),
            Num::I8(x) => ScalarValue::I8(*x),
            Num::I16(x) => ScalarValue::I16(*x),
            Num::I32(x) => ScalarValue::I32(*x),
            Num::I64(x) => ScalarValue::I64(*x),
            Num::U8(x) => ScalarValue::U8(*x),
            Num::U16(x) => ScalarValue::U16(*x),
            Num::U32(x) => ScalarValue::U32(*x),
            Num::U64(x) => ScalarValue::U64(*x),
            Num::Bool(x) => ScalarValue::Bool(*x),
        }
    }
    /// Its type.
    pub(crate) fn scalar(&self) -> Scalar {
        match self {
            Num::F32(_) => Scalar::F32,
            Num::F64(_) => Scalar::F64,
            Num::I8(_) => Scalar::I8,
            Num::I16(_) => Scalar::I16,
            Num::I32(_) => Scalar::I32,
            Num::I64(_) => Scalar::I64,
            Num::U8(_) => Scalar::U8,
            Num::U16(_) => Scalar::U16,
            Num::U32(_) => Scalar::U32,
            Num::U64(_) => Scalar::U64,
            Num::Bool(_) => Scalar::Bool,
        }
    }
    /// Cotangent addition: floats add, everything else is the first argument.
    #[inline]
    pub(crate) fn plus(&self, other: &Self) -> Self {
        match (self, other) {
            (Num::F64(x), Num::F64(y)) => Num::F64(D::add64(x, y)),
            (Num::F32(x), Num::F32(y)) => Num::F32(D::add32(x, y)),
            _ => self.clone(),
        }
    }
}

/// Plain floats.
#[derive(Clone, Debug)]
pub(crate) struct Primal;

impl Domain for Primal {
    type F32 = f32;
    type F64 = f64;
    type State = ();

    #[inline]
    fn f32(x: f32) -> f32 {
        x
    }
    #[inline]
    fn f64(x: f64) -> f64 {
        x
    }
    #[inline]
    fn primal32(x: &f32) -> f32 {
        *x
    }
    #[inline]
    fn primal64(x: &f64) -> f64 {
        *x
    }
    #[inline]
    fn add32(x: &f32, y: &f32) -> f32 {
        x + y
    }
    #[inline]
    fn add64(x: &f64, y: &f64) -> f64 {
        x + y
    }
    #[inline]
    fn prim(_: &mut (), prim: Prim, args: &[Num<Self>], _: bool) -> Result<Num<Self>, PrimError> {
        // The commonest rows directly; all others through the table.
        if let (Prim::Op(op, _), [Num::F64(x), Num::F64(y)]) = (prim, args) {
            match op {
                Op::Add => return Ok(Num::F64(x + y)),
                Op::Sub => return Ok(Num::F64(x - y)),
                Op::Mul => return Ok(Num::F64(x * y)),
                Op::Div => return Ok(Num::F64(x / y)),
                _ => {}
            }
        }
        if let (Prim::Op(op, _), [Num::I64(x), Num::I64(y)]) = (prim, args) {
            match op {
                Op::Add => return Ok(Num::I64(x.wrapping_add(*y))),
                Op::Sub => return Ok(Num::I64(x.wrapping_sub(*y))),
                Op::Mul => return Ok(Num::I64(x.wrapping_mul(*y))),
                Op::Lt => return Ok(Num::Bool(x < y)),
                Op::Le => return Ok(Num::Bool(x <= y)),
                Op::Eq => return Ok(Num::Bool(x == y)),
                _ => {}
            }
        }
        Ok(Num::lift(eval_in_table(prim, args)?))
    }
    fn stop_gradient(_: &mut Machine<'_, Self>, value: Val<Self>) -> Res<Val<Self>> {
        Ok(value)
    }
    fn differentiate(machine: &mut Machine<'_, Self>, code: &DiffCode) -> Res<()> {
        crate::dual::derive::from_primal(machine, code)
    }
}

/// The primal value of a primitive, from the table.
pub(crate) fn eval_in_table<D: Domain>(prim: Prim, args: &[Num<D>]) -> Result<ScalarValue, PrimError> {
    match args {
        [x] => prim.eval(&[x.primal()]),
        [x, y] => prim.eval(&[x.primal(), y.primal()]),
        [x, y, z] => prim.eval(&[x.primal(), y.primal(), z.primal()]),
        _ => Err(PrimError::IllTyped),
    }
}
