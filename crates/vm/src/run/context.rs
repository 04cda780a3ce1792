//! What a running call works in: its workspace, its frames, and what stops it.

use crate::code::{At, Code, Op};
use crate::executable::Executable;
use pullback_abi::ALIGNMENT;
use pullback_kernel::MessageId;
use std::sync::atomic::{AtomicBool, Ordering};

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
    /// The workspace: memory from `start` to `end`, of which what is before `top` is in use.
    pub(crate) start: *mut u8,
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
    pub(super) function: usize,
    pub(super) next: *const Op,
    pub(super) base: *mut u8,
    pub(super) active: usize,
}

impl Context<'_> {
    /// Looks at the flag and at the work that was done.
    #[cold]
    pub(super) fn poll(&mut self, done: i64) -> Result<(), Stop> {
        if self.cancel.is_some_and(|c| c.load(Ordering::Relaxed)) {
            return Err(Stop::Cancelled);
        }
        self.work_done += done as u64;
        if self.work_done > self.work_limit { Err(Stop::OutOfWork) } else { Ok(()) }
    }
    /// Whether these bytes are all of the workspace, so that they may be read.
    pub(super) fn has(&self, memory: *const u8, bytes: usize) -> bool {
        let (start, at, end) = (self.start.addr(), memory.addr(), self.end.addr());
        start <= at && at <= end && bytes <= end - at
    }
    /// New memory, if there is room.
    pub(super) fn alloc(&mut self, count: u64, shift: u8, poison: bool) -> Option<*mut u8> {
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
    pub(super) unsafe fn enter(
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
