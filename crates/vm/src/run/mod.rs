//! The loop that runs bytecode.
//!
//! Frames lie at the end of the workspace and grow downwards, open calls are a list: calls of the program are none of this
//! function, so that they need no stack.

#![allow(unsafe_code, reason = "frames and memory are raw; `run` states what it assumes")]
#![allow(
    unsafe_op_in_unsafe_fn,
    reason = "what instructions do with memory is allowed by the condition of `run`: one reason for all of them"
)]

mod context;
mod sites;

use crate::code::{At, FunctionCode, Op};
use crate::executable::Executable;
use crate::kernels::element::{Float, Number};
use crate::kernels::{CHUNK, copy};
pub(crate) use context::{Context, Frame, Stop};
use sites::{active_lanes, count, failed, fill, fold, lane, outside_where, place_of_mask, table};
use std::sync::OnceLock;
use std::time::Instant;

/// So much work is done between two looks at the flag for cancellation: a few milliseconds.
const QUANTUM: i64 = 1 << 20;
/// So many lanes, or elements of memory, are as much work as one instruction on scalars.
const LANES_OF_WORK: usize = 32;

/// Calls a function.
///
/// # Safety
/// The code is the translation of a module whose accesses to memory are allowed if the arguments are as the function expects;
/// they are. The workspace of the context is used by nobody else.
pub(crate) unsafe fn run(
    executable: &Executable,
    function: usize,
    cx: &mut Context<'_>,
    args: &[u64],
    results: &mut [u64],
) -> Result<(), Stop> {
    let code = &executable.code;
    let poison = executable.options.poison;
    let mut function = function;
    let mut f: &FunctionCode = &code.functions[function];
    let mut base = cx.enter(code, function, cx.frames_end, executable)?;
    for (at, w) in f.params.iter().zip(args) {
        base.add(*at as usize).cast::<u64>().write(*w);
    }
    let mut ip: *const Op = f.ops.as_ptr();
    let mut active = code.lanes;
    let mut lanes_work = work_of(active);
    let mut fuel = QUANTUM;

    // Words and places of the frame.
    macro_rules! at {
        ($at:expr) => {
            base.add($at as usize)
        };
    }
    macro_rules! word {
        ($at:expr) => {
            at!($at).cast::<u64>().read()
        };
    }
    macro_rules! int {
        ($at:expr) => {
            word!($at) as i64
        };
    }
    macro_rules! float {
        ($at:expr) => {
            at!($at).cast::<f64>().read()
        };
    }
    macro_rules! set {
        ($at:expr, $value:expr) => {
            at!($at).cast::<u64>().write($value)
        };
    }
    macro_rules! set_float {
        ($at:expr, $value:expr) => {
            at!($at).cast::<f64>().write($value)
        };
    }
    // Two operations; the second one may read the result of the first as another operand too.
    macro_rules! pair {
        ($t:ident = $a:ident $first:tt $b:ident, $c:ident; $to:ident = |$x:ident, $y:ident| $second:expr) => {{
            let $x = float!($a) $first float!($b);
            set_float!($t, $x);
            let $y = float!($c);
            set_float!($to, $second);
        }};
    }
    macro_rules! pointer {
        ($at:expr) => {
            at!($at).cast::<*mut u8>().read()
        };
    }
    macro_rules! element {
        ($t:ty, $pointer:expr, $index:expr) => {
            pointer!($pointer).cast::<$t>().offset(int!($index) as isize)
        };
    }
    macro_rules! jump {
        ($to:expr) => {
            ip = f.ops.as_ptr().add($to as usize)
        };
    }
    macro_rules! spend {
        ($work:expr) => {
            fuel -= i64::from($work);
            if fuel < 0 {
                cx.poll(QUANTUM - fuel)?;
                fuel = QUANTUM;
            }
        };
    }

    loop {
        let op = &*ip;
        ip = ip.add(1);
        match *op {
            Op::Copy { to, from } => set!(to, word!(from)),
            Op::Copy2 { to, from, to2, from2 } => {
                set!(to, word!(from));
                set!(to2, word!(from2));
            }
            Op::Copies { first, count } => {
                for (to, from) in f.copies.get_unchecked(first as usize..(first + count) as usize) {
                    set!(*to, word!(*from));
                }
            }
            Op::AddF64 { to, a, b } => set_float!(to, float!(a) + float!(b)),
            Op::SubF64 { to, a, b } => set_float!(to, float!(a) - float!(b)),
            Op::MulF64 { to, a, b } => set_float!(to, float!(a) * float!(b)),
            Op::DivF64 { to, a, b } => set_float!(to, float!(a) / float!(b)),
            Op::MinF64 { to, a, b } => set_float!(to, Number::min(float!(a), float!(b))),
            Op::MaxF64 { to, a, b } => set_float!(to, Number::max(float!(a), float!(b))),
            Op::StrongMulF64 { to, a, b } => set_float!(to, Float::strong_mul(float!(a), float!(b))),
            Op::MutualMulF64 { to, a, b } => set_float!(to, Float::mutual_mul(float!(a), float!(b))),
            Op::SqrtF64 { to, a } => set_float!(to, Float::sqrt(float!(a))),
            Op::LtF64 { to, a, b } => set!(to, u64::from(float!(a) < float!(b))),
            Op::LeF64 { to, a, b } => set!(to, u64::from(float!(a) <= float!(b))),
            Op::EqF64 { to, a, b } => set!(to, u64::from(float!(a) == float!(b))),
            Op::NeF64 { to, a, b } => set!(to, u64::from(float!(a) != float!(b))),
            Op::AddI64 { to, a, b } => set!(to, word!(a).wrapping_add(word!(b))),
            Op::SubI64 { to, a, b } => set!(to, word!(a).wrapping_sub(word!(b))),
            Op::MulI64 { to, a, b } => set!(to, word!(a).wrapping_mul(word!(b))),
            Op::LtI64 { to, a, b } => set!(to, u64::from(int!(a) < int!(b))),
            Op::LeI64 { to, a, b } => set!(to, u64::from(int!(a) <= int!(b))),
            Op::EqWord { to, a, b } => set!(to, u64::from(word!(a) == word!(b))),
            Op::NeWord { to, a, b } => set!(to, u64::from(word!(a) != word!(b))),
            Op::AndWord { to, a, b } => set!(to, word!(a) & word!(b)),
            Op::OrWord { to, a, b } => set!(to, word!(a) | word!(b)),
            Op::XorWord { to, a, b } => set!(to, word!(a) ^ word!(b)),
            Op::NotBool { to, a } => set!(to, word!(a) ^ 1),
            Op::Select { to, condition, a, b } => {
                let from = if word!(condition) != 0 { a } else { b };
                set!(to, word!(from));
            }
            Op::AddAddF64 { t, a, b, to, c } => pair!(t = a + b, c; to = |x, y| x + y),
            Op::AddSubF64 { t, a, b, to, c } => pair!(t = a + b, c; to = |x, y| x - y),
            Op::AddFromF64 { t, a, b, to, c } => pair!(t = a + b, c; to = |x, y| y - x),
            Op::AddMulF64 { t, a, b, to, c } => pair!(t = a + b, c; to = |x, y| x * y),
            Op::AddDivF64 { t, a, b, to, c } => pair!(t = a + b, c; to = |x, y| x / y),
            Op::AddUnderF64 { t, a, b, to, c } => pair!(t = a + b, c; to = |x, y| y / x),
            Op::SubAddF64 { t, a, b, to, c } => pair!(t = a - b, c; to = |x, y| x + y),
            Op::SubSubF64 { t, a, b, to, c } => pair!(t = a - b, c; to = |x, y| x - y),
            Op::SubFromF64 { t, a, b, to, c } => pair!(t = a - b, c; to = |x, y| y - x),
            Op::SubMulF64 { t, a, b, to, c } => pair!(t = a - b, c; to = |x, y| x * y),
            Op::SubDivF64 { t, a, b, to, c } => pair!(t = a - b, c; to = |x, y| x / y),
            Op::SubUnderF64 { t, a, b, to, c } => pair!(t = a - b, c; to = |x, y| y / x),
            Op::MulAddF64 { t, a, b, to, c } => pair!(t = a * b, c; to = |x, y| x + y),
            Op::MulSubF64 { t, a, b, to, c } => pair!(t = a * b, c; to = |x, y| x - y),
            Op::MulFromF64 { t, a, b, to, c } => pair!(t = a * b, c; to = |x, y| y - x),
            Op::MulMulF64 { t, a, b, to, c } => pair!(t = a * b, c; to = |x, y| x * y),
            Op::MulDivF64 { t, a, b, to, c } => pair!(t = a * b, c; to = |x, y| x / y),
            Op::MulUnderF64 { t, a, b, to, c } => pair!(t = a * b, c; to = |x, y| y / x),
            Op::DivAddF64 { t, a, b, to, c } => pair!(t = a / b, c; to = |x, y| x + y),
            Op::DivSubF64 { t, a, b, to, c } => pair!(t = a / b, c; to = |x, y| x - y),
            Op::DivFromF64 { t, a, b, to, c } => pair!(t = a / b, c; to = |x, y| y - x),
            Op::DivMulF64 { t, a, b, to, c } => pair!(t = a / b, c; to = |x, y| x * y),
            Op::DivDivF64 { t, a, b, to, c } => pair!(t = a / b, c; to = |x, y| x / y),
            Op::DivUnderF64 { t, a, b, to, c } => pair!(t = a / b, c; to = |x, y| y / x),
            Op::MulAddI64 { to, a, b, c } => {
                set!(to, word!(a).wrapping_mul(word!(b)).wrapping_add(word!(c)));
            }
            Op::SelectEqF64 { to, a, b, then, otherwise } => {
                let from = if float!(a) == float!(b) { then } else { otherwise };
                set!(to, word!(from));
            }
            Op::SelectLtF64 { to, a, b, then, otherwise } => {
                let from = if float!(a) < float!(b) { then } else { otherwise };
                set!(to, word!(from));
            }
            Op::SelectLeF64 { to, a, b, then, otherwise } => {
                let from = if float!(a) <= float!(b) { then } else { otherwise };
                set!(to, word!(from));
            }
            Op::Apply { kernel, to, a, b, c } => {
                code.kernels[kernel as usize](1, at!(to), at!(a), at!(b), at!(c));
            }
            Op::ApplyLow { kernel, to, a, b, c } => {
                code.kernels[kernel as usize](1, at!(to), at!(a), at!(b), at!(c));
                set!(to, word!(to) & 0xFFFF_FFFF);
            }
            Op::ApplyLanes { kernel, to, a, b, c } => {
                fuel -= lanes_work;
                code.kernels[kernel as usize](active, at!(to), at!(a), at!(b), at!(c));
            }
            Op::ApplyViews { kernel, views, to, a, b, c } => {
                fuel -= lanes_work;
                let argument = |at: At, k: u8| if views & (1 << k) != 0 { pointer!(at) } else { at!(at) };
                let (a, b, c) = (argument(a, 0), argument(b, 1), argument(c, 2));
                code.kernels[kernel as usize](active, at!(to), a, b, c);
            }
            Op::ApplyTo { kernel, shift, a, b, c, pointer, index } => {
                fuel -= 2 * lanes_work;
                let memory = pointer!(pointer).wrapping_offset((int!(index) << shift) as isize);
                code.kernels[kernel as usize](active, memory, at!(a), at!(b), at!(c));
            }
            Op::View { shift, to, register, pointer, index } => {
                fuel -= lanes_work;
                let mut memory = pointer!(pointer).wrapping_offset((int!(index) << shift) as isize);
                if !active.is_multiple_of(CHUNK) && !cx.has(memory, active.next_multiple_of(CHUNK) << shift) {
                    copy(memory, at!(register), active << shift);
                    memory = at!(register);
                }
                at!(to).cast::<*mut u8>().write(memory);
            }
            Op::Table { site } => table(&f.tables[site as usize], base, active),
            Op::Load1 { to, pointer, index } => set!(to, u64::from(element!(u8, pointer, index).read())),
            Op::Load1Signed { to, pointer, index } => {
                set!(to, i64::from(element!(i8, pointer, index).read()) as u64);
            }
            Op::Load2 { to, pointer, index } => set!(to, u64::from(element!(u16, pointer, index).read())),
            Op::Load2Signed { to, pointer, index } => {
                set!(to, i64::from(element!(i16, pointer, index).read()) as u64);
            }
            Op::Load4 { to, pointer, index } => set!(to, u64::from(element!(u32, pointer, index).read())),
            Op::Load4Signed { to, pointer, index } => {
                set!(to, i64::from(element!(i32, pointer, index).read()) as u64);
            }
            Op::Load8 { to, pointer, index } => set!(to, element!(u64, pointer, index).read()),
            Op::Load8Inside { to, pointer, index, size, site } => {
                if int!(index) < 0 || int!(size) <= int!(index) {
                    return Err(failed(f, site, base, 0));
                }
                set!(to, element!(u64, pointer, index).read());
            }
            Op::Store1 { pointer, index, value } => element!(u8, pointer, index).write(word!(value) as u8),
            Op::Store2 { pointer, index, value } => element!(u16, pointer, index).write(word!(value) as u16),
            Op::Store4 { pointer, index, value } => element!(u32, pointer, index).write(word!(value) as u32),
            Op::Store8 { pointer, index, value } => element!(u64, pointer, index).write(word!(value)),
            Op::AddToF64 { pointer, index, value } => {
                let place = element!(f64, pointer, index);
                place.write(place.read() + float!(value));
            }
            Op::Offset { shift, to, pointer, index } => {
                let moved = pointer!(pointer).wrapping_offset((int!(index) << shift) as isize);
                at!(to).cast::<*mut u8>().write(moved);
            }
            Op::OffsetMul { shift, to, pointer, a, b } => {
                let index = int!(a).wrapping_mul(int!(b)) << shift;
                at!(to).cast::<*mut u8>().write(pointer!(pointer).wrapping_offset(index as isize));
            }
            Op::Alloc { shift, to, count } => {
                let Some(memory) = cx.alloc(word!(count), shift, poison) else {
                    return Err(Stop::OutOfMemory { count: word!(count), size: 1 << shift, function, to });
                };
                at!(to).cast::<*mut u8>().write(memory);
            }
            Op::Mark { to } => at!(to).cast::<*mut u8>().write(cx.top),
            Op::Clock { to } => set!(to, clock()),
            Op::Release { mark } => {
                cx.peak = if cx.top > cx.peak { cx.top } else { cx.peak };
                cx.top = pointer!(mark);
            }
            Op::Fill { shift, pointer, count, value } => {
                let count = word!(count) as usize;
                fuel -= work_of(count);
                fill(shift, pointer!(pointer), count, word!(value));
            }
            Op::CopyMemory { shift, to, from, count } => {
                let count = word!(count) as usize;
                fuel -= work_of(count);
                copy(pointer!(from), pointer!(to), count << shift);
            }
            Op::Access { kernel, shift, register, pointer, index } => {
                let memory = pointer!(pointer).wrapping_offset((int!(index) << shift) as isize);
                code.memory_kernels[kernel as usize](
                    1,
                    at!(register),
                    memory,
                    std::ptr::null(),
                    0,
                    std::ptr::null(),
                );
            }
            Op::AccessLanes { kernel, shift, register, pointer, index, stride, mask } => {
                fuel -= lanes_work;
                let memory = pointer!(pointer).wrapping_offset((int!(index) << shift) as isize);
                let mask = place_of_mask(base, mask);
                let kernel = code.memory_kernels[kernel as usize];
                kernel(active, at!(register), memory, std::ptr::null(), int!(stride), mask);
            }
            Op::AccessAt { kernel, register, pointer, indices, stride, mask } => {
                fuel -= lanes_work;
                let mask = place_of_mask(base, mask);
                let kernel = code.memory_kernels[kernel as usize];
                kernel(active, at!(register), pointer!(pointer), at!(indices).cast(), int!(stride), mask);
            }
            Op::LaneNumber { to } => count(at!(to), 0, active),
            Op::Count { to, from } => {
                fuel -= lanes_work;
                count(at!(to), int!(from), active);
            }
            Op::CountIs { to, from, is } => {
                at!(to).write_bytes(0, active);
                let lane = word!(is).wrapping_sub(word!(from));
                if lane < active as u64 {
                    at!(to).add(lane as usize).write(1);
                }
            }
            Op::AnyLanes { to, from, wanted } => {
                let lanes = std::slice::from_raw_parts(at!(from), active);
                // Of truth values, `x ^ 0` is whether it holds and `x ^ 1` whether it does not.
                let flip = wanted ^ 1;
                let any = lanes.iter().fold(0, |any, x| any | (x ^ flip));
                set!(to, u64::from(any ^ flip));
            }
            Op::FoldLanes { site } => fold(&f.folds[site as usize], base, active, code.lanes),
            Op::Lane { shift, is_signed, to, from } => set!(to, lane(at!(from), shift, is_signed)),
            Op::Jump { to } => jump!(to),
            Op::JumpIf { condition, to } => {
                if word!(condition) != 0 {
                    jump!(to);
                }
            }
            Op::JumpIfNot { condition, to } => {
                if word!(condition) == 0 {
                    jump!(to);
                }
            }
            Op::JumpIfNotLtI64 { a, b, to } => {
                if int!(a) >= int!(b) {
                    jump!(to);
                }
            }
            Op::JumpIfNotLeI64 { a, b, to } => {
                if int!(a) > int!(b) {
                    jump!(to);
                }
            }
            Op::JumpIfNotLtF64 { a, b, to } => {
                let holds = float!(a) < float!(b);
                if !holds {
                    jump!(to);
                }
            }
            Op::JumpIfNotLeF64 { a, b, to } => {
                let holds = float!(a) <= float!(b);
                if !holds {
                    jump!(to);
                }
            }
            Op::JumpIfNotEq { a, b, to } => {
                if word!(a) != word!(b) {
                    jump!(to);
                }
            }
            Op::JumpIfEq { a, b, to } => {
                if word!(a) == word!(b) {
                    jump!(to);
                }
            }
            Op::ForStart { i, from, to, end, exit } => {
                let (first, last) = (int!(from), int!(to));
                if first < last {
                    set!(i, first as u64);
                    set!(end, last as u64);
                } else {
                    jump!(exit);
                }
            }
            Op::ForNext { i, end, body, work } => {
                let next = int!(i) + 1;
                spend!(work);
                if next < int!(end) {
                    set!(i, next as u64);
                    jump!(body);
                }
            }
            Op::LanesStart { i, from, to, end, exit } => {
                let (first, last) = (int!(from), int!(to));
                if first < last {
                    set!(i, first as u64);
                    set!(end, last as u64);
                    active = active_lanes(first, last, code.lanes);
                    lanes_work = work_of(active);
                } else {
                    jump!(exit);
                }
            }
            Op::LanesNext { i, end, body, work } => {
                spend!(work);
                let (next, last) = (int!(i).saturating_add(code.lanes as i64), int!(end));
                if next < last {
                    set!(i, next as u64);
                    active = active_lanes(next, last, code.lanes);
                    lanes_work = work_of(active);
                    jump!(body);
                } else {
                    active = code.lanes;
                    lanes_work = work_of(active);
                }
            }
            Op::Again { to, work } => {
                spend!(work);
                jump!(to);
            }
            Op::Fail { condition, site } => {
                if word!(condition) != 0 {
                    return Err(failed(f, site, base, 0));
                }
            }
            Op::FailIfNot { condition, site } => {
                if word!(condition) == 0 {
                    return Err(failed(f, site, base, 0));
                }
            }
            Op::FailOutside { index, size, site } => {
                let (index, size) = (int!(index), int!(size));
                if index < 0 || size <= index {
                    return Err(failed(f, site, base, 0));
                }
            }
            Op::FailOutsideLanes { from, size, site } => {
                let (from, size) = (int!(from), int!(size));
                let left = size.saturating_sub(from);
                if active > 0 && (from < 0 || left < active as i64) {
                    let lane = if from < 0 { 0 } else { Ord::max(left, 0) as usize };
                    return Err(failed(f, site, base, lane));
                }
            }
            Op::FailOutsideWhere { from, size, mask, site } => {
                let lanes = std::slice::from_raw_parts(at!(mask), active);
                if let Some(lane) = outside_where(int!(from), int!(size), lanes) {
                    return Err(failed(f, site, base, lane));
                }
            }
            Op::FailLanes { condition, site } => {
                let lanes = std::slice::from_raw_parts(at!(condition), active);
                if lanes.iter().fold(0, |any, x| any | x) != 0 {
                    let lane = lanes.iter().position(|x| *x != 0).unwrap_or(0);
                    return Err(failed(f, site, base, lane));
                }
            }
            Op::Call { site } => {
                let call = &f.calls[site as usize];
                let callee = &code.functions[call.function];
                let inner = cx.enter(code, call.function, base, executable)?;
                for (to, from) in callee.params.iter().zip(&call.args) {
                    inner.add(*to as usize).cast::<u64>().write(word!(*from));
                }
                cx.frames.push(Frame { function, next: ip, base, active });
                (function, f, base, active) = (call.function, callee, inner, code.lanes);
                lanes_work = work_of(active);
                ip = f.ops.as_ptr();
                spend!(f.work);
            }
            Op::Return => {
                if f.is_recursive {
                    cx.calls -= 1;
                }
                let Some(frame) = cx.frames.pop() else {
                    cx.work_done += (QUANTUM - fuel) as u64;
                    for (w, at) in results.iter_mut().zip(&f.results) {
                        *w = word!(*at);
                    }
                    return Ok(());
                };
                let (inner, from) = (base, &f.results);
                (function, base, active, ip) = (frame.function, frame.base, frame.active, frame.next);
                lanes_work = work_of(active);
                f = &code.functions[function];
                // The call is the instruction before the next one.
                if let Op::Call { site } = *ip.sub(1) {
                    for (to, from) in f.calls[site as usize].to.iter().zip(from) {
                        set!(*to, inner.add(*from as usize).cast::<u64>().read());
                    }
                }
            }
        }
    }
}

/// The work of an instruction on so many lanes or elements.
fn work_of(count: usize) -> i64 {
    (count / LANES_OF_WORK) as i64 + 1
}

/// Nanoseconds since the first call.
fn clock() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_nanos() as u64
}
