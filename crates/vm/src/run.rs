//! The loop that runs bytecode.
//!
//! Frames lie at the end of the workspace and grow downwards, open calls are a list: calls of the program are none of this
//! function, so that they need no stack.

#![allow(unsafe_code, reason = "frames and memory are raw; `run` states what it assumes")]
#![allow(
    unsafe_op_in_unsafe_fn,
    reason = "what instructions do with memory is allowed by the condition of `run`: one reason for all of them"
)]

use crate::code::{At, Code, FoldSite, FunctionCode, NOWHERE, Op, TableSite, Value};
use crate::executable::Executable;
use crate::kernels::element::{Float, Number};
use crate::kernels::{CHUNK, copy};
use pullback_kernel::MessageId;
use pullback_prim::{PrimError, ScalarValue};
use pullback_words::{ALIGNMENT, scalar, word};
use std::sync::atomic::{AtomicBool, Ordering};

/// So much work is done between two looks at the flag for cancellation: a few milliseconds.
const QUANTUM: i64 = 1 << 20;
/// So many lanes, or elements of memory, are as much work as one instruction on scalars.
const LANES_OF_WORK: usize = 32;
/// A pattern that is no sensible number of any type.
const POISON: u8 = 0xFB;

/// Why a call stopped.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Stop {
    Message(MessageId, Vec<i64>),
    OutOfMemory { count: u64, size: u64, function: usize, to: At },
    Cancelled,
    OutOfWork,
    TooManyCalls(usize),
    StackFull(usize),
}

/// The state of a running call.
pub(crate) struct Context<'a> {
    /// The workspace: memory up to `end`, of which what is before `top` is in use.
    pub(crate) top: *mut u8,
    pub(crate) end: *mut u8,
    /// Memory for frames.
    pub(crate) frames_start: *mut u8,
    pub(crate) frames_end: *mut u8,
    /// The highest value of `top` before a release.
    pub(crate) peak: *mut u8,
    pub(crate) cancel: Option<&'a AtomicBool>,
    pub(crate) work_done: u64,
    pub(crate) work_limit: u64,
    /// Open calls of recursive functions.
    pub(crate) calls: u64,
    pub(crate) frames: &'a mut Vec<Frame>,
}

/// What is remembered while a function that was called runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    function: usize,
    next: *const Op,
    base: *mut u8,
    active: usize,
}

impl Context<'_> {
    /// Looks at the flag and at the work that was done.
    #[cold]
    fn poll(&mut self, done: i64) -> Result<(), Stop> {
        if self.cancel.is_some_and(|c| c.load(Ordering::Relaxed)) {
            return Err(Stop::Cancelled);
        }
        self.work_done += done as u64;
        if self.work_done > self.work_limit { Err(Stop::OutOfWork) } else { Ok(()) }
    }
    /// New memory, if there is room.
    fn alloc(&mut self, count: u64, shift: u8, poison: bool) -> Option<*mut u8> {
        let free = self.end.addr() - self.top.addr();
        let bytes = count.checked_mul(1 << shift).and_then(|b| usize::try_from(b).ok());
        // The room is a multiple of the alignment.
        match bytes {
            Some(bytes) if bytes <= free => {
                let at = self.top;
                self.top = at.wrapping_add(bytes.next_multiple_of(ALIGNMENT));
                if poison {
                    // SAFETY: the memory was free.
                    unsafe { at.write_bytes(POISON, bytes) };
                }
                Some(at)
            }
            _ => None,
        }
    }
    /// The frame of a function that is called from the frame at `above`.
    ///
    /// # Safety
    /// What is below `above` is free.
    unsafe fn enter(
        &mut self,
        code: &Code,
        function: usize,
        above: *mut u8,
        executable: &Executable,
    ) -> Result<*mut u8, Stop> {
        let f = &code.functions[function];
        if f.is_recursive {
            if self.calls >= executable.options.call_depth_limit {
                return Err(Stop::TooManyCalls(function));
            }
            self.calls += 1;
        }
        if above.addr() - self.frames_start.addr() < f.frame_bytes {
            return Err(Stop::StackFull(function));
        }
        let base = above.sub(f.frame_bytes);
        if executable.options.poison {
            base.write_bytes(POISON, f.frame_bytes);
        }
        for (at, w) in &f.constants {
            base.add(*at as usize).cast::<u64>().write(*w);
        }
        Ok(base)
    }
}

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
            Op::NegF64 { to, a } => set_float!(to, -float!(a)),
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
            Op::MulAddF64 { to, a, b, c } => set_float!(to, float!(a) * float!(b) + float!(c)),
            Op::MulSubF64 { to, a, b, c } => set_float!(to, float!(a) * float!(b) - float!(c)),
            Op::SubMulF64 { to, a, b, c } => set_float!(to, float!(c) - float!(a) * float!(b)),
            Op::MulAddI64 { to, a, b, c } => {
                set!(to, word!(a).wrapping_mul(word!(b)).wrapping_add(word!(c)));
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
                if !active.is_multiple_of(CHUNK) {
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
            Op::LaneNumber { to } => {
                let to = at!(to).cast::<i64>();
                (0..active).for_each(|l| to.add(l).write(l as i64));
            }
            Op::Count { to, from } => {
                fuel -= lanes_work;
                let (to, first) = (at!(to).cast::<i64>(), int!(from));
                (0..active).for_each(|l| to.add(l).write(first.wrapping_add(l as i64)));
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

/// How many lanes the block has that starts at `first`.
fn active_lanes(first: i64, last: i64, lanes: usize) -> usize {
    // The difference of two `i64`, the second one larger, fits an `u64`.
    Ord::min(last.wrapping_sub(first).cast_unsigned(), lanes as u64) as usize
}

unsafe fn place_of_mask(base: *mut u8, mask: At) -> *const u8 {
    if mask == NOWHERE { std::ptr::null() } else { base.add(mask as usize) }
}

unsafe fn lane(from: *const u8, shift: u8, is_signed: bool) -> u64 {
    match (shift, is_signed) {
        (0, false) => u64::from(from.read()),
        (0, true) => i64::from(from.cast::<i8>().read()) as u64,
        (1, false) => u64::from(from.cast::<u16>().read()),
        (1, true) => i64::from(from.cast::<i16>().read()) as u64,
        (2, false) => u64::from(from.cast::<u32>().read()),
        (2, true) => i64::from(from.cast::<i32>().read()) as u64,
        _ => from.cast::<u64>().read(),
    }
}

unsafe fn fill(shift: u8, to: *mut u8, count: usize, value: u64) {
    match shift {
        0 => to.write_bytes(value as u8, count),
        1 => (0..count).for_each(|k| to.cast::<u16>().add(k).write(value as u16)),
        2 => (0..count).for_each(|k| to.cast::<u32>().add(k).write(value as u32)),
        _ => (0..count).for_each(|k| to.cast::<u64>().add(k).write(value)),
    }
}

#[cold]
unsafe fn failed(f: &FunctionCode, site: u32, base: *mut u8, lane: usize) -> Stop {
    let fail = &f.fails[site as usize];
    let value = |v: &Value| match *v {
        Value::Word(at) => base.add(at as usize).cast::<i64>().read(),
        Value::Lanes(at) => base.add(at as usize).cast::<i64>().add(lane).read(),
        Value::Counted(at) => base.add(at as usize).cast::<i64>().read().wrapping_add(lane as i64),
    };
    Stop::Message(fail.message, fail.values.iter().map(value).collect())
}

/// Evaluates by the table, lane by lane. Lanes that are not wanted may have no value: 0.
#[cold]
unsafe fn table(site: &TableSite, base: *mut u8, active: usize) {
    let s = site.prim.result();
    let n = if site.to.is_lanes { active } else { 1 };
    let mut args = [ScalarValue::Bool(false); pullback_prim::MAX_ARITY];
    for l in 0..n {
        for (arg, (s, place)) in args.iter_mut().zip(&site.args) {
            let (at, shift) = (base.add(place.at as usize), s.bytes().trailing_zeros() as u8);
            let w = if place.is_lanes {
                lane(at.add(l << shift), shift, s.is_signed())
            } else {
                at.cast::<u64>().read()
            };
            *arg = scalar(*s, w);
        }
        let value = match site.prim.eval(&args[..site.args.len()]) {
            Ok(value) => value,
            Err(PrimError::DivisionByZero | PrimError::NegativeExponent | PrimError::IllTyped) => s.zero(),
        };
        let to = base.add(site.to.at as usize);
        if site.to.is_lanes {
            let bytes = word(value).to_le_bytes();
            to.add(l * s.bytes()).copy_from_nonoverlapping(bytes.as_ptr(), s.bytes());
        } else {
            to.cast::<u64>().write(word(value));
        }
    }
}

/// Takes lanes together: halves with each other as long as their number is even, then one after the other. Lanes that are not
/// meant count as the neutral element; where a whole half is neutral, once is as good as many times.
unsafe fn fold(site: &FoldSite, base: *mut u8, active: usize, lanes: usize) {
    let place = |at: At| base.add(at as usize);
    let (scratch, from, neutral) = (place(site.scratch), place(site.from), place(site.neutral));
    let nothing = std::ptr::null();
    let size = site.scalar.bytes();
    if site.mask == NOWHERE {
        (site.taken)(active, scratch, from, nothing, nothing);
    } else {
        (site.chosen)(active, scratch, place(site.mask), from, neutral);
    }
    let mut all = lanes;
    let mut is_with_neutral = false;
    while all > 1 && all.is_multiple_of(2) && active <= all / 2 {
        all /= 2;
        is_with_neutral = true;
    }
    if is_with_neutral {
        (site.with_word)(active, scratch, scratch, neutral, nothing);
    }
    if active < all {
        (site.fill)(all - active, scratch.add(active * size), neutral, nothing, nothing);
    }
    while all > 1 && all.is_multiple_of(2) {
        all /= 2;
        (site.both)(all, scratch, scratch, scratch.add(all * size), nothing);
    }
    for l in 1..all {
        (site.both)(1, scratch, scratch, scratch.add(l * size), nothing);
    }
    let shift = size.trailing_zeros() as u8;
    place(site.to).cast::<u64>().write(lane(scratch, shift, site.scalar.is_signed()));
}
