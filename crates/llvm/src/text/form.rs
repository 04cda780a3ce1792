//! The types and constants of scalars and of lanes, as text.

use super::{constant, scalar};
use pullback_prim::{Scalar, ScalarValue};

/// What an instruction works on: one scalar, or several side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Form {
    /// The type of each.
    pub(super) scalar: Scalar,
    /// How many; 1 is the scalar itself.
    pub(super) lanes: usize,
}

/// So many side by side of an LLVM type.
pub(super) fn wide(lanes: usize, ty: &str) -> String {
    if lanes == 1 { ty.to_string() } else { format!("<{lanes} x {ty}>") }
}

/// The same constant in all lanes.
pub(super) fn splat(lanes: usize, ty: &str, constant: &str) -> String {
    if lanes == 1 { constant.to_string() } else { vector(ty, (0..lanes).map(|_| constant)) }
}

/// A constant vector.
pub(super) fn vector<T: std::fmt::Display>(ty: &str, constants: impl IntoIterator<Item = T>) -> String {
    let each: Vec<String> = constants.into_iter().map(|c| format!("{ty} {c}")).collect();
    format!("<{}>", each.join(", "))
}

impl Form {
    /// Its LLVM type.
    pub(super) fn ty(self) -> String {
        wide(self.lanes, scalar(self.scalar))
    }
    /// The same for another scalar.
    pub(super) fn of(self, scalar: Scalar) -> Form {
        Form { scalar, ..self }
    }
    /// The type of truth values of it.
    pub(super) fn truth(self) -> String {
        self.of(Scalar::Bool).ty()
    }
    /// The integer type of as many bits.
    pub(super) fn bits(self) -> String {
        wide(self.lanes, &format!("i{}", 8 * self.scalar.bytes()))
    }
    /// The whole number everywhere; of integers and truth values.
    pub(super) fn number(self, x: i64) -> String {
        splat(self.lanes, scalar(self.scalar), &x.to_string())
    }
    /// The value everywhere.
    pub(super) fn constant(self, x: ScalarValue) -> String {
        splat(self.lanes, scalar(self.scalar), &constant(x))
    }
    /// What the names of intrinsics say about it: `f64`, `v8i32`.
    pub(super) fn suffix(self) -> String {
        let letter = if self.scalar.is_float() { 'f' } else { 'i' };
        let bits = if self.scalar == Scalar::Bool { 1 } else { 8 * self.scalar.bytes() };
        if self.lanes == 1 { format!("{letter}{bits}") } else { format!("v{}{letter}{bits}", self.lanes) }
    }
    /// Whether a scalar has a sign.
    pub(super) fn is_signed(self) -> bool {
        self.scalar.is_signed()
    }
    /// Whether it is of floats.
    pub(super) fn is_float(self) -> bool {
        self.scalar.is_float()
    }
}
