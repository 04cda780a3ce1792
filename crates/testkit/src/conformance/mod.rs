//! What every executor of kernel IR must do: modules written by hand, with expected values calculated by hand or in Rust.
//!
//! An executor's tests call these functions with a way to make executables ([`Make`]); each checks all that it is given.

#![allow(
    clippy::expect_used,
    clippy::missing_panics_doc,
    unsafe_code,
    reason = "tests: they panic where an executor is wrong, and call it with words that are right by construction"
)]

mod arguments;
mod instructions;
mod lanes;
mod primitives;

pub use arguments::*;
pub use instructions::*;
pub use lanes::*;
pub use primitives::*;

use pullback_base::RuntimeError;
use pullback_base::index::IndexVec;
use pullback_kernel::{Block, Function, FunctionId, Ins, Module, Operand, Reg, RegInfo, Ty};
use pullback_prim::{Op, Prim, Scalar, ScalarValue};
use std::sync::atomic::AtomicBool;

/// A module that is ready to be called.
pub trait Executable: Sync {
    /// What made it, for messages.
    fn name(&self) -> String;
    /// The function with this name.
    fn function(&self, name: &str) -> Option<FunctionId>;
    /// A session: calls one after the other.
    fn session(&self) -> Box<dyn Session + '_>;
}

/// Calls with a workspace that is kept.
pub trait Session {
    /// Calls a function with words.
    ///
    /// # Errors
    /// Those of the program, and limits.
    ///
    /// # Safety
    /// The arguments are of the types of the function's parameters, and memory that they point to is as the function expects.
    unsafe fn call(
        &mut self,
        function: FunctionId,
        args: &[u64],
        results: &mut [u64],
        cancel: Option<&AtomicBool>,
    ) -> Result<(), RuntimeError>;
    /// The most bytes of the workspace that the last call had in use.
    fn peak_bytes(&mut self) -> u64;
}

/// How functions such as `exp` are evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Functions {
    /// By `pullback-maths`.
    Own,
    /// By the primitive table.
    Table,
}

/// How an executable is made.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// Bytes of the workspace.
    pub memory: u64,
    /// Open calls of recursive functions.
    pub calls: u64,
    /// Functions.
    pub functions: Functions,
}

impl Default for Setup {
    fn default() -> Setup {
        Setup { memory: 8 << 30, calls: 10_000, functions: Functions::Table }
    }
}

/// Makes executables of a module: one for each way in which the executor can run it, the most used one first.
pub type Make<'a> = &'a dyn for<'m> Fn(&'m Module, Setup) -> Executables<'m>;

/// Executables, each made when it is asked for.
pub type Executables<'m> = Box<dyn Iterator<Item = Box<dyn Executable>> + 'm>;

/// `f64`
pub const F64: Ty = Ty::Scalar(Scalar::F64);
/// `i64`
pub const I64: Ty = Ty::I64;
/// `bool`
pub const BOOL: Ty = Ty::BOOL;
/// A pointer.
pub const PTR: Ty = Ty::Pointer;

/// The registers of a function.
#[derive(Debug)]
pub struct Regs(IndexVec<Reg, RegInfo>);

impl Regs {
    /// A new one.
    pub fn add(&mut self, ty: Ty) -> Reg {
        self.0.push(RegInfo::new(ty, "r"))
    }
}

/// A function. The closure is given the registers of the parameters, and gives the results and the body.
pub fn function(
    name: &str,
    params: &[Ty],
    body: impl FnOnce(&mut Regs, &[Reg]) -> (Vec<Reg>, Block),
) -> Function {
    let mut regs = Regs(IndexVec::new());
    let params: Vec<Reg> = params.iter().map(|t| regs.add(*t)).collect();
    let (results, body) = body(&mut regs, &params);
    Function { name: name.to_string(), params, results, regs: regs.0, body }
}

/// A module of functions without messages.
pub fn module(functions: impl IntoIterator<Item = Function>) -> Module {
    let mut out = Module::default();
    for f in functions {
        out.functions.push(f);
    }
    out
}

/// The constant.
pub fn int(x: i64) -> Operand {
    Operand::i64(x)
}
/// The constant.
pub fn float(x: f64) -> Operand {
    Operand::Const(ScalarValue::F64(x))
}
/// `to = op(x, y)` on `i64`
pub fn of_ints(to: Reg, op: Op, x: impl Into<Operand>, y: impl Into<Operand>) -> Ins {
    Ins::Prim { to, prim: Prim::Op(op, Scalar::I64), args: vec![x.into(), y.into()] }
}
/// `to = op(x, y)` on `f64`
pub fn of_floats(to: Reg, op: Op, x: impl Into<Operand>, y: impl Into<Operand>) -> Ins {
    Ins::Prim { to, prim: Prim::Op(op, Scalar::F64), args: vec![x.into(), y.into()] }
}

/// The words of numbers.
pub fn floats(xs: &[f64]) -> Vec<u64> {
    xs.iter().map(|x| x.to_bits()).collect()
}

/// SplitMix64.
#[derive(Debug)]
pub struct Random(pub u64);

impl Random {
    /// The next one.
    #[allow(clippy::should_implement_trait, reason = "it has no end")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}

/// Equal bits, or both NaN.
pub fn agree(x: ScalarValue, y: ScalarValue) -> bool {
    let is_nan = |x: ScalarValue| x.scalar().is_float() && x.as_f64().is_nan();
    x == y || (x.scalar() == y.scalar() && is_nan(x) && is_nan(y))
}

/// A scalar as a word, written apart from the code under test.
pub fn to_word(x: ScalarValue) -> u64 {
    match x {
        ScalarValue::F32(x) => u64::from(x.to_bits()),
        ScalarValue::F64(x) => x.to_bits(),
        ScalarValue::I8(x) => i64::from(x) as u64,
        ScalarValue::I16(x) => i64::from(x) as u64,
        ScalarValue::I32(x) => i64::from(x) as u64,
        ScalarValue::I64(x) => x as u64,
        ScalarValue::U8(x) => u64::from(x),
        ScalarValue::U16(x) => u64::from(x),
        ScalarValue::U32(x) => u64::from(x),
        ScalarValue::U64(x) => x,
        ScalarValue::Bool(x) => u64::from(x),
    }
}

/// A word as a scalar, the same.
pub fn from_word(s: Scalar, word: u64) -> ScalarValue {
    match s {
        Scalar::F32 => ScalarValue::F32(f32::from_bits(word as u32)),
        Scalar::F64 => ScalarValue::F64(f64::from_bits(word)),
        Scalar::U64 => ScalarValue::U64(word),
        _ => s.from_i64(word as i64),
    }
}
