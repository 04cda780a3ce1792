//! The tape: what was computed, as rows of parents and partial derivatives.
//!
//! Source: `T` 3.8.3 of the thesis on dual-numbers reverse AD (contributions written into one array in the forward pass), with
//! constants left out as in its comparison with the library `ad`.
//!
//! - *Indices*: 0 stands for constants: contributions to it go nowhere. The inputs follow; they have indices and no rows. Each
//!   operation is one row with up to two parents. One with more parents is a run of rows: each but the last is marked as
//!   *part*, which means that it has the cotangent of the row above it.
//! - *Factors*: a number is its row and a factor, the derivative of the number with respect to what the row computed. Operations
//!   that depend on one row only change the factor and make no row, as long as it stays between 2^-256 and 2^256 (f32: 2^-32 and
//!   2^32): products of many partial derivatives neither overflow nor vanish before they meet their cotangent.
//! - *Events* are places where the reverse pass does something else than rows: a function with a derivative of its own, a
//!   checkpoint, a fork. They are kept apart, so that the loop over rows knows nothing of them.
//! - *Memory*: 24 bytes a row for f64 (16 for f32) in blocks, and 8 for its cotangent in the reverse pass.

#![allow(unsafe_code, reason = "rows are written through a pointer: a third of the time of a checked list")]

use crate::Scalar;
use crate::error::{Error, stop};
use crate::memory::{self, Block, Class};
use std::cell::{Cell, RefCell};
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// An operation with up to two parents.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Row<S> {
    /// Indices of the parents; [`PART`] may be set in the first.
    pub(crate) parents: [u32; 2],
    /// The derivatives with respect to them.
    pub(crate) partials: [S; 2],
}

/// Marks a row that belongs to the row above it.
pub(crate) const PART: u32 = 1 << 31;
/// Indices are below.
const MOST: u32 = PART - 1;

/// The reverse of a function with a derivative of its own: from inputs, outputs and their cotangents, to the inputs' cotangents. Tapes
/// that it needs for itself are within the limit.
pub(crate) type Reverse<S> = Box<dyn Fn(&Limit, &[S], &[S], &[S]) -> Vec<S> + Send + Sync>;

/// A number that a call takes.
pub(crate) struct Input<S> {
    pub(crate) value: S,
    pub(crate) index: u32,
    pub(crate) factor: S,
}

/// A function whose reverse is not rows.
pub(crate) struct Call<S> {
    pub(crate) inputs: Vec<Input<S>>,
    /// The outputs have the indices from here; their rows are empty.
    pub(crate) first: u32,
    pub(crate) outputs: Vec<S>,
    pub(crate) reverse: Reverse<S>,
}

impl<S: Scalar> Call<S> {
    /// Adds what the cotangents of the outputs give the inputs.
    pub(crate) fn run(&self, limit: &Limit, output: impl Fn(usize) -> S, mut add: impl FnMut(usize, S)) {
        let y_bar: Vec<S> = (0..self.outputs.len()).map(|i| output(self.first as usize + i)).collect();
        if y_bar.iter().all(S::is_inert) {
            return;
        }
        let x: Vec<S> = self.inputs.iter().map(|x| x.value).collect();
        let x_bar = (self.reverse)(limit, &x, &self.outputs, &y_bar);
        assert!(
            x_bar.len() == x.len(),
            "a custom derivative gave {} cotangents for {} inputs: give one for each",
            x_bar.len(),
            x.len()
        );
        for (x, d) in self.inputs.iter().zip(x_bar) {
            add(x.index as usize, d.chain_mul(x.factor));
        }
    }
}

/// How many bytes tapes may take.
#[derive(Clone)]
pub(crate) enum Limit {
    /// One tape, beside the bytes of tapes that wait until it is done.
    Own { limit: usize, before: usize },
    /// All tapes of a run: what is left of the limit.
    #[cfg_attr(not(feature = "parallel"), expect(dead_code, reason = "runs without threads have one tape"))]
    Shared { limit: usize, left: Arc<AtomicUsize> },
}

impl Limit {
    /// So many bytes for one tape, and for those that are made while it waits.
    pub(crate) fn own(limit: usize) -> Limit {
        Limit::Own { limit, before: 0 }
    }
    /// Whether `more` bytes fit when there are `bytes`; the limit if they do not.
    fn spend(&self, bytes: usize, more: usize) -> Result<(), usize> {
        match self {
            Limit::Own { limit, before } => {
                let all = before.saturating_add(bytes).saturating_add(more);
                if all > *limit { Err(*limit) } else { Ok(()) }
            }
            Limit::Shared { limit, left } => {
                let take = |left: usize| left.checked_sub(more);
                left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).map_or(Err(*limit), |_| Ok(()))
            }
        }
    }
    /// What is left for a tape that is made while one of `bytes` waits.
    fn rest(&self, bytes: usize) -> Limit {
        match self {
            Limit::Own { limit, before } => {
                Limit::Own { limit: *limit, before: before.saturating_add(bytes) }
            }
            Limit::Shared { .. } => self.clone(),
        }
    }
    /// A tape of `bytes` is gone.
    fn release(&self, bytes: usize) {
        if let Limit::Shared { left, .. } = self {
            left.fetch_add(bytes, Ordering::Relaxed);
        }
    }
}

/// The rows of one run, in the order in which they were computed.
pub(crate) struct Tape<S, E = Call<S>> {
    /// The row of index `i` is at `rows + i`.
    rows: Cell<*mut Row<S>>,
    /// The next index.
    len: Cell<u32>,
    /// The first index that the last block has no room for.
    end: Cell<u32>,
    last: Cell<*mut Block>,
    /// The first index that has a row.
    first: Cell<u32>,
    bytes: Cell<usize>,
    limit: Limit,
    /// Each with the index before which it happened.
    events: RefCell<Vec<(u32, E)>>,
}

impl<S: Scalar, E> Tape<S, E> {
    /// An empty tape that may take this many bytes.
    pub(crate) fn new(limit: Limit) -> Tape<S, E> {
        Tape {
            rows: Cell::new(ptr::null_mut()),
            len: Cell::new(1),
            end: Cell::new(1),
            last: Cell::new(ptr::null_mut()),
            first: Cell::new(1),
            bytes: Cell::new(0),
            limit,
            events: RefCell::new(Vec::new()),
        }
    }
    /// An index for an input. All inputs come before all rows.
    pub(crate) fn input(&self) -> u32 {
        let index = self.len.get();
        if index > MOST {
            stop(Error::TooManyRows);
        }
        self.len.set(index + 1);
        self.end.set(index + 1);
        self.first.set(index + 1);
        index
    }
    /// The number of inputs.
    pub(crate) fn input_count(&self) -> usize {
        self.first.get() as usize - 1
    }
    /// The indices in use: constants, inputs, rows.
    pub(crate) fn len(&self) -> usize {
        self.len.get() as usize
    }
    /// The number of rows.
    pub(crate) fn row_count(&self) -> usize {
        (self.len.get() - self.first.get()) as usize
    }
    /// The limit for tapes that are made while this one waits.
    pub(crate) fn rest(&self) -> Limit {
        self.limit.rest(self.bytes.get())
    }
    /// The bytes of its blocks.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.get()
    }
    /// Appends a row.
    #[inline(always)]
    pub(crate) fn push(&self, row: Row<S>) -> u32 {
        let index = self.len.get();
        if index == self.end.get() {
            self.grow();
        }
        // SAFETY: `grow` made room for the rows from the block's first index up to `end`; a tape is used by one thread.
        unsafe { self.rows.get().wrapping_add(index as usize).write(row) };
        self.len.set(index + 1);
        index
    }
    /// Appends one value with any number of parents, two in each of these rows.
    pub(crate) fn push_all(&self, rows: impl Iterator<Item = Row<S>>) -> u32 {
        let mut last = Row { parents: [0; 2], partials: [S::zero(); 2] };
        let mut first = true;
        for row in rows {
            if !std::mem::take(&mut first) {
                last.parents[0] |= PART;
                self.push(last);
            }
            last = row;
        }
        self.push(last)
    }
    /// A value without parents: an output of a call.
    pub(crate) fn push_empty(&self) -> u32 {
        self.push(Row { parents: [0; 2], partials: [S::zero(); 2] })
    }
    /// Something that the reverse pass does when it has passed all rows from this index on.
    pub(crate) fn event_at(&self, index: u32, event: E) {
        self.events.borrow_mut().push((index, event));
    }
    /// The events in order.
    pub(crate) fn events(&self) -> std::cell::Ref<'_, Vec<(u32, E)>> {
        self.events.borrow()
    }
    #[cold]
    #[inline(never)]
    fn grow(&self) {
        let index = self.len.get();
        if index > MOST {
            stop(Error::TooManyRows);
        }
        let class = match (NonNull::new(self.last.get()), &self.limit) {
            (Some(last), _) => Class::after(last),
            (None, Limit::Own { .. }) => Class::MEDIUM,
            // The tapes of a run with many tasks begin small.
            (None, Limit::Shared { .. }) => Class::SMALL,
        };
        let more = class.bytes();
        if let Err(limit) = self.limit.spend(self.bytes.get(), more) {
            stop(Error::TapeLimit { limit, rows: self.row_count() });
        }
        let Some(mut block) = class.take() else {
            stop(Error::OutOfMemory { rows: self.row_count() });
        };
        let room = (Block::room(block) / size_of::<Row<S>>()) as u32;
        // SAFETY: the block is ours from now on.
        let head = unsafe { block.as_mut() };
        head.before = self.last.get();
        head.first = index;
        self.last.set(block.as_ptr());
        self.bytes.set(self.bytes.get() + more);
        self.rows.set(Block::content(block).cast::<Row<S>>().wrapping_sub(index as usize));
        self.end.set(index.saturating_add(room).min(MOST + 1));
    }
    /// Visits the rows downwards from below `from`, a block at a time: to each call the first index of a piece and its rows.
    pub(crate) fn walk(&self) -> Walk<'_, S, E> {
        Walk { tape: self, block: self.last.get(), at: self.len.get() }
    }
}

impl<S, E> Drop for Tape<S, E> {
    fn drop(&mut self) {
        self.limit.release(self.bytes.get());
        let mut at = self.last.get();
        while let Some(block) = NonNull::new(at) {
            // SAFETY: the blocks of the chain are ours.
            at = unsafe { block.as_ref().before };
            memory::give_back(block);
        }
    }
}

/// A walk over the rows, downwards.
pub(crate) struct Walk<'a, S, E> {
    tape: &'a Tape<S, E>,
    block: *mut Block,
    /// All indices from here on have been visited.
    at: u32,
}

impl<'a, S: Scalar, E> Walk<'a, S, E> {
    /// The next rows below, no further than `down_to`, in one piece: the index of the first of them, and they.
    pub(crate) fn piece(&mut self, down_to: u32) -> Option<(usize, &'a [Row<S>])> {
        let down_to = down_to.max(self.tape.first.get());
        if self.at <= down_to {
            return None;
        }
        let mut block = NonNull::new(self.block)?;
        // SAFETY: the blocks of the chain live as long as the tape, which is borrowed.
        let mut head = unsafe { block.as_ref() };
        while head.first >= self.at {
            block = NonNull::new(head.before)?;
            self.block = block.as_ptr();
            // SAFETY: as above.
            head = unsafe { block.as_ref() };
        }
        let low = head.first.max(down_to);
        let start: *const Row<S> = Block::content(block).cast();
        // SAFETY: `push` wrote all rows of the block up to `at`.
        let rows = unsafe {
            std::slice::from_raw_parts(start.add((low - head.first) as usize), (self.at - low) as usize)
        };
        self.at = low;
        Some((low as usize, rows))
    }
}
