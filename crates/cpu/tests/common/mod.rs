//! Modules written by hand, and every libLLVM of this machine.

#![allow(dead_code, reason = "each test uses some of it")]

use pullback_base::index::IndexVec;
use pullback_cpu::{Executable, Level, Options};
use pullback_kernel::{Block, Function, Ins, Module, Operand, Reg, RegInfo, Ty};
use pullback_prim::{Op, Prim, Scalar, ScalarValue};
use std::path::PathBuf;
use std::sync::OnceLock;

/// `f64`
pub(crate) const F64: Ty = Ty::Scalar(Scalar::F64);
/// `i64`
pub(crate) const I64: Ty = Ty::I64;
/// `bool`
pub(crate) const BOOL: Ty = Ty::BOOL;
/// A pointer.
pub(crate) const PTR: Ty = Ty::Pointer;

/// The registers of a function.
pub(crate) struct Regs(IndexVec<Reg, RegInfo>);

impl Regs {
    pub(crate) fn add(&mut self, ty: Ty) -> Reg {
        self.0.push(RegInfo { ty, hint: "r".to_string() })
    }
}

/// A function. The closure is given the registers of the parameters, and gives the results and the body.
pub(crate) fn function(
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
pub(crate) fn module(functions: impl IntoIterator<Item = Function>) -> Module {
    let mut out = Module::default();
    for f in functions {
        out.functions.push(f);
    }
    out
}

pub(crate) fn int(x: i64) -> Operand {
    Operand::i64(x)
}
pub(crate) fn float(x: f64) -> Operand {
    Operand::Const(ScalarValue::F64(x))
}
/// `to = op(x, y)` on `i64`
pub(crate) fn of_ints(to: Reg, op: Op, x: impl Into<Operand>, y: impl Into<Operand>) -> Ins {
    Ins::Prim { to, prim: Prim::Op(op, Scalar::I64), args: vec![x.into(), y.into()] }
}
/// `to = op(x, y)` on `f64`
pub(crate) fn of_floats(to: Reg, op: Op, x: impl Into<Operand>, y: impl Into<Operand>) -> Ins {
    Ins::Prim { to, prim: Prim::Op(op, Scalar::F64), args: vec![x.into(), y.into()] }
}

/// The libraries of this machine, one of each version that can be opened.
fn libraries() -> &'static [PathBuf] {
    static FOUND: OnceLock<Vec<PathBuf>> = OnceLock::new();
    FOUND.get_or_init(search)
}

fn search() -> Vec<PathBuf> {
    let mut versions = Vec::new();
    let mut out = Vec::new();
    for path in pullback_llvm::load::candidates() {
        if let Ok(llvm) = pullback_llvm::Llvm::open(&path)
            && !versions.contains(&llvm.found().version)
        {
            versions.push(llvm.found().version.clone());
            out.push(path);
        }
    }
    if out.is_empty() {
        eprintln!("skipped: no libLLVM was found, 0 versions are tested");
    }
    out
}

/// Compiles a module with every library at every level, the most used way first.
pub(crate) fn executables(module: &Module, options: &Options) -> impl Iterator<Item = Executable> {
    let levels = libraries().iter().flat_map(|library| [Level::O3, Level::O1].map(|level| (library, level)));
    levels.map(move |(library, level)| {
        let options = Options { level, library: Some(library.clone()), ..options.clone() };
        Executable::new(module, &options).unwrap_or_else(|error| {
            let text = pullback_llvm::emit(module, &options.text).text;
            panic!("{error}\n{text:.20000}")
        })
    })
}

/// The words of numbers.
pub(crate) fn floats(xs: &[f64]) -> Vec<u64> {
    xs.iter().map(|x| x.to_bits()).collect()
}

/// SplitMix64.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}

/// Equal bits, or both NaN.
pub(crate) fn agree(x: ScalarValue, y: ScalarValue) -> bool {
    let is_nan = |x: ScalarValue| x.scalar().is_float() && x.as_f64().is_nan();
    x == y || (x.scalar() == y.scalar() && is_nan(x) && is_nan(y))
}

/// A scalar as a word, written apart from the code under test.
pub(crate) fn to_word(x: ScalarValue) -> u64 {
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

pub(crate) fn from_word(s: Scalar, word: u64) -> ScalarValue {
    match s {
        Scalar::F32 => ScalarValue::F32(f32::from_bits(word as u32)),
        Scalar::F64 => ScalarValue::F64(f64::from_bits(word)),
        Scalar::U64 => ScalarValue::U64(word),
        _ => s.from_i64(word as i64),
    }
}
