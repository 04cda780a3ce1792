//! The call that gives numbers their brand.
//!
//! A function to be differentiated works for every lifetime `'t`. It takes a reference with that lifetime (else the compiler does
//! not accept that its result mentions it), so its numbers fit together, and nothing else fits them.

#![allow(unsafe_code, reason = "the argument is borrowed for a lifetime that the function may choose")]

/// Runs `f` on `input`, and `then` on its result, while `input` lives.
#[inline(always)]
pub(crate) fn call<'t, A: 't, R, Z>(input: A, f: impl FnOnce(&'t A) -> R, then: impl FnOnce(R) -> Z) -> Z {
    // `f` takes any lifetime, so it keeps the reference in its result only, which `then` uses up; callers give no `then`
    // whose result mentions 't. The input is dropped after that, also if one of them panics.
    let place = &raw const input;
    // SAFETY: as said.
    then(f(unsafe { &*place }))
}
