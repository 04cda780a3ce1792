//! What compiled code calls: the functions of the primitive table, and those that code generation takes for granted.

#![allow(
    unsafe_code,
    reason = "functions on raw memory, called by compiled code with the meaning of their C namesakes"
)]

use pullback_llvm::Symbol;
use pullback_prim::{Op, Prim, Scalar};

/// The address of a primitive that is called; `None` if it is not a function of floats.
pub(crate) fn address(symbol: &Symbol) -> Option<usize> {
    match symbol.prim {
        Prim::Op(op, Scalar::F64) => op.f64_function().map(|f| f.address()),
        Prim::Op(op, Scalar::F32) => op.f32_function().map(|f| f.address()),
        Prim::Op(..) | Prim::Convert(..) => None,
    }
}

/// Functions that LLVM may call for an instruction or a loop.
pub(crate) fn library() -> Vec<(&'static str, usize)> {
    let mut out: Vec<(&'static str, usize)> = vec![
        ("memcpy", memcpy as *const () as usize),
        ("memmove", memmove as *const () as usize),
        ("memset", memset as *const () as usize),
        ("memcmp", memcmp as *const () as usize),
        ("bcmp", memcmp as *const () as usize),
    ];
    // On processors without the instruction.
    out.push(("fma", fma as *const () as usize));
    // Rounding on processors without an instruction for it.
    let rounding = [
        ("floor", "floorf", Op::Floor),
        ("ceil", "ceilf", Op::Ceil),
        ("trunc", "truncf", Op::Trunc),
        ("roundeven", "roundevenf", Op::Round),
        ("rint", "rintf", Op::Round),
    ];
    for (wide, narrow, op) in rounding {
        out.extend(op.f64_function().map(|f| (wide, f.address())));
        out.extend(op.f32_function().map(|f| (narrow, f.address())));
    }
    out
}

/// `x * y + z`, rounded once.
extern "C" fn fma(x: f64, y: f64, z: f64) -> f64 {
    x.mul_add(y, z)
}

/// # Safety
/// As in C.
unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, bytes: usize) -> *mut u8 {
    // SAFETY: the conditions of the C function are those of this one.
    unsafe { std::ptr::copy_nonoverlapping(from, to, bytes) };
    to
}

/// # Safety
/// As in C.
unsafe extern "C" fn memmove(to: *mut u8, from: *const u8, bytes: usize) -> *mut u8 {
    // SAFETY: as above.
    unsafe { std::ptr::copy(from, to, bytes) };
    to
}

/// # Safety
/// As in C.
unsafe extern "C" fn memset(to: *mut u8, byte: i32, bytes: usize) -> *mut u8 {
    // SAFETY: as above.
    unsafe { std::ptr::write_bytes(to, byte as u8, bytes) };
    to
}

/// # Safety
/// As in C.
unsafe extern "C" fn memcmp(left: *const u8, right: *const u8, bytes: usize) -> i32 {
    // SAFETY: both have so many bytes, which are initialised.
    let (left, right) =
        unsafe { (std::slice::from_raw_parts(left, bytes), std::slice::from_raw_parts(right, bytes)) };
    left.cmp(right) as i32
}
