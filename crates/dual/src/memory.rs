//! Memory of tapes: blocks that are kept by the thread and used again.
//!
//! A tape is a chain of blocks, each with a link to the one before, so that growing never copies and dropping never recurs. What is
//! given back is kept in a few lists by size, up to [`KEPT`] bytes, and is what the next tape begins with.

#![allow(unsafe_code, reason = "blocks are raw memory: rows of any scalar type are written into them")]

use std::alloc::{Layout, alloc, dealloc};
use std::cell::Cell;
use std::ptr::{self, NonNull};

/// Sizes of blocks of tapes, in bytes with the head.
const CLASSES: [usize; 4] = [1 << 10, 1 << 14, 1 << 18, 1 << 22];
/// Bytes that a thread keeps.
const KEPT: usize = 256 << 20;
/// Every block begins at such an address: that of a line of the cache.
pub(crate) const ALIGNMENT: usize = 64;

/// The head of a block; what it holds follows.
#[repr(C, align(64))]
pub(crate) struct Block {
    /// The block before it, in a tape or in a list of free ones.
    pub(crate) before: *mut Block,
    /// All bytes, with this head.
    bytes: usize,
    /// For tapes: the index of the first row.
    pub(crate) first: u32,
}

impl Block {
    /// Where what it holds begins.
    pub(crate) fn content(block: NonNull<Block>) -> *mut u8 {
        // SAFETY: a block is larger than its head.
        unsafe { block.as_ptr().add(1).cast() }
    }
    /// How many bytes it can hold.
    pub(crate) fn room(block: NonNull<Block>) -> usize {
        // SAFETY: the block is live: its user has it.
        unsafe { block.as_ref().bytes - size_of::<Block>() }
    }
}

/// Free blocks of one thread.
struct Pool {
    lists: [Cell<*mut Block>; CLASSES.len()],
    /// Blocks larger than any class.
    large: Cell<*mut Block>,
    held: Cell<usize>,
}

thread_local! {
    static POOL: Pool = const {
        Pool {
            lists: [const { Cell::new(ptr::null_mut()) }; CLASSES.len()],
            large: Cell::new(ptr::null_mut()),
            held: Cell::new(0),
        }
    };
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.release();
    }
}

impl Pool {
    fn release(&self) {
        for list in self.lists.iter().chain([&self.large]) {
            let mut at = list.replace(ptr::null_mut());
            while let Some(block) = NonNull::new(at) {
                // SAFETY: blocks in the lists are live and belong to nobody else.
                at = unsafe { block.as_ref().before };
                free(block);
            }
        }
        self.held.set(0);
    }
}

/// The class of blocks that hold this many bytes, if one does.
fn class(bytes: usize) -> Option<usize> {
    CLASSES.iter().position(|&c| bytes <= c - size_of::<Block>())
}

/// The bytes that a block for `content` bytes has.
pub(crate) fn block_bytes(content: usize) -> Option<usize> {
    match class(content) {
        Some(class) => Some(CLASSES[class]),
        None => content.checked_add(size_of::<Block>()),
    }
}

/// The content of a small first block of a tape, and of a large one.
pub(crate) const SMALL: usize = CLASSES[0] - size_of::<Block>();
pub(crate) const MEDIUM: usize = CLASSES[1] - size_of::<Block>();

/// The content of the next block of a tape, after one of `room` bytes: larger each time.
pub(crate) fn next_content(room: usize) -> usize {
    let next = class(room).map_or(CLASSES.len() - 1, |c| (c + 1).min(CLASSES.len() - 1));
    CLASSES[next] - size_of::<Block>()
}

/// A block for this many bytes, from the thread's lists if there is one. `None`: the system has no memory left.
pub(crate) fn take(content: usize) -> Option<NonNull<Block>> {
    let found = POOL.try_with(|pool| match class(content) {
        Some(class) => pop(pool, &pool.lists[class]),
        None => {
            // One is kept whole: the adjoints of a long tape.
            let top = NonNull::new(pool.large.get())?;
            if Block::room(top) < content { None } else { pop(pool, &pool.large) }
        }
    });
    if let Ok(Some(block)) = found {
        return Some(block);
    }
    let bytes = block_bytes(content)?;
    let layout = Layout::from_size_align(bytes, ALIGNMENT).ok()?;
    // SAFETY: the size is not 0: it includes the head.
    let block = NonNull::new(unsafe { alloc(layout) }.cast::<Block>())?;
    // SAFETY: the memory is new and large enough for the head.
    unsafe { block.as_ptr().write(Block { before: ptr::null_mut(), bytes, first: 0 }) };
    Some(block)
}

fn pop(pool: &Pool, list: &Cell<*mut Block>) -> Option<NonNull<Block>> {
    let block = NonNull::new(list.get())?;
    // SAFETY: blocks in the lists are live and belong to nobody else.
    let head = unsafe { block.as_ref() };
    list.set(head.before);
    pool.held.set(pool.held.get() - head.bytes);
    Some(block)
}

/// Takes a block back. It must not be used afterwards.
pub(crate) fn give_back(mut block: NonNull<Block>) {
    let kept = POOL.try_with(|pool| {
        // SAFETY: the caller has the block and gives it up.
        let head = unsafe { block.as_mut() };
        let list = match class(head.bytes - size_of::<Block>()) {
            Some(class) => &pool.lists[class],
            None if pool.large.get().is_null() => &pool.large,
            None => return false,
        };
        if pool.held.get() + head.bytes > KEPT {
            return false;
        }
        head.before = list.get();
        list.set(block.as_ptr());
        pool.held.set(pool.held.get() + head.bytes);
        true
    });
    if !kept.unwrap_or(false) {
        free(block);
    }
}

fn free(block: NonNull<Block>) {
    // SAFETY: the block was allocated with this layout, and nobody has it any more.
    unsafe {
        let layout = Layout::from_size_align_unchecked(block.as_ref().bytes, ALIGNMENT);
        dealloc(block.as_ptr().cast(), layout);
    }
}

/// An array in a block: adjoints.
pub(crate) struct Buffer<T> {
    block: NonNull<Block>,
    len: usize,
    content: std::marker::PhantomData<T>,
}

// SAFETY: a buffer owns its block; it is as shared as a slice of what it holds.
unsafe impl<T: Send> Send for Buffer<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Buffer<T> {}

impl<T> Buffer<T> {
    /// `len` elements. `None`: the system has no memory left.
    pub(crate) fn new(len: usize, mut element: impl FnMut() -> T) -> Option<Buffer<T>> {
        const { assert!(align_of::<T>() <= ALIGNMENT && !std::mem::needs_drop::<T>()) };
        let block = take(len.checked_mul(size_of::<T>())?)?;
        let start: *mut T = Block::content(block).cast();
        for i in 0..len {
            // SAFETY: the block has room for `len` elements.
            unsafe { start.add(i).write(element()) };
        }
        Some(Buffer { block, len, content: std::marker::PhantomData })
    }
    /// The bytes that it takes.
    pub(crate) fn bytes(&self) -> usize {
        self.len * size_of::<T>()
    }
}

impl<T> std::ops::Deref for Buffer<T> {
    type Target = [T];
    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: `new` wrote this many elements.
        unsafe { std::slice::from_raw_parts(Block::content(self.block).cast(), self.len) }
    }
}

impl<T> std::ops::DerefMut for Buffer<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: `new` wrote this many elements, and they are borrowed mutably with `self`.
        unsafe { std::slice::from_raw_parts_mut(Block::content(self.block).cast(), self.len) }
    }
}

impl<T> Drop for Buffer<T> {
    fn drop(&mut self) {
        give_back(self.block);
    }
}

/// The bytes that this thread keeps for its next tapes.
///
/// ```
/// let _ = pullback_dual::grad(|x| x * x, &3.0);
/// assert!(pullback_dual::kept_memory() > 0);
/// pullback_dual::release_memory();
/// assert_eq!(pullback_dual::kept_memory(), 0);
/// ```
pub fn kept_memory() -> usize {
    POOL.try_with(|pool| pool.held.get()).unwrap_or(0)
}

/// Gives the memory that this thread keeps for its next tapes back to the system.
pub fn release_memory() {
    // A thread that ends has released it already.
    let _ = POOL.try_with(Pool::release);
}
