//! What compiled code and its caller share: the context of a running call, and numbers for the reasons to stop.
//!
//! Compiled code reads and writes a context at the offsets of its fields.
//!
//! A function of the module is called as `entry(context, arguments, results)`, with one word of eight bytes for each argument
//! and result: the bits of a scalar, zero- or sign-extended, or an address. It gives [`DONE`] or [`STOPPED`].

use std::mem::offset_of;
use std::sync::atomic::AtomicBool;

/// What an entry point is.
pub type Entry = unsafe extern "C" fn(*mut Context, *const u64, *mut u64) -> i32;

/// The status of a call with results.
pub const DONE: i32 = 0;
/// The status of a call that stopped; the context says why.
pub const STOPPED: i32 = 1;

/// Values that a message can hold. More are left out.
pub const MAX_VALUES: usize = 64;

/// [`Context::message`]: the workspace is full. Values: the number of elements asked for, the bytes of each, the index of the
/// function, that of the register that was to point to them.
pub const OUT_OF_MEMORY: i64 = -1;
/// [`Context::message`]: the flag for cancellation is set.
pub const CANCELLED: i64 = -2;
/// [`Context::message`]: too many calls are open. Values: the index of the function.
pub const TOO_MANY_CALLS: i64 = -3;
/// [`Context::message`]: open calls fill the stack. Values: the index of the function.
pub const STACK_FULL: i64 = -4;

/// Allocations start at multiples of this.
pub const ALIGNMENT: usize = 64;

/// Calls an entry point for every number below a count, perhaps by several threads: `share(context, entry, words, how many
/// words, count)`. The first word is the place of the number. Gives [`DONE`], or [`STOPPED`] with the message in the context.
pub type Share = unsafe extern "C" fn(*mut Context, Entry, *const u64, u64, i64) -> i32;

/// The state of one running call.
#[repr(C)]
#[derive(Debug)]
pub struct Context {
    /// The first free byte of the workspace: a multiple of [`ALIGNMENT`].
    pub top: *mut u8,
    /// The end of the workspace: a multiple of [`ALIGNMENT`].
    pub end: *mut u8,
    /// The highest value of `top` before a release.
    pub peak: *mut u8,
    /// Set from outside to stop the call soon.
    pub cancel: *const AtomicBool,
    /// Who shares parts of loops among threads; `None`: they run one after the other.
    pub share: Option<Share>,
    /// What that function needs.
    pub shared: *const u8,
    /// Open calls of recursive functions.
    pub calls: u64,
    /// At most so many.
    pub call_limit: u64,
    /// The stack of recursive functions stays above this address.
    pub stack_limit: usize,
    /// Why the call stopped: the index of a message of the module, or one of the negative numbers above.
    pub message: i64,
    /// How many values the message has.
    pub count: u64,
    /// The values of the message.
    pub values: [i64; MAX_VALUES],
    /// What lanes write that are not active. Nobody reads it.
    pub elsewhere: u64,
}

pub(crate) const TOP: usize = offset_of!(Context, top);
pub(crate) const END: usize = offset_of!(Context, end);
pub(crate) const PEAK: usize = offset_of!(Context, peak);
pub(crate) const CANCEL: usize = offset_of!(Context, cancel);
pub(crate) const SHARE: usize = offset_of!(Context, share);
pub(crate) const CALLS: usize = offset_of!(Context, calls);
pub(crate) const CALL_LIMIT: usize = offset_of!(Context, call_limit);
pub(crate) const STACK_LIMIT: usize = offset_of!(Context, stack_limit);
pub(crate) const MESSAGE: usize = offset_of!(Context, message);
pub(crate) const COUNT: usize = offset_of!(Context, count);
pub(crate) const VALUES: usize = offset_of!(Context, values);
pub(crate) const ELSEWHERE: usize = offset_of!(Context, elsewhere);
