//! Memory of tapes: blocks that are kept and used again.
//!
//! A tape is a chain of blocks, each with a link to the one before, so that growing never copies and dropping never recurs. What is
//! given back is kept in lists by size, up to [`KEPT`] bytes of each, and is what the next tape begins with. A thread keeps its small blocks
//! for itself, which needs no lock. All others have a *home*: the list of the thread that took them first. Branches record on one
//! thread and are dropped on another, and a thread that takes the blocks of another one waits for its cache, line by line: that costs more
//! than the rows that are written there. New memory costs more still, but once; so a thread whose list is empty takes from the others only
//! where they keep much, and what is larger than any class.

#![allow(unsafe_code, reason = "blocks are raw memory: rows of any scalar type are written into them")]

use std::alloc::{Layout, alloc, dealloc};
use std::cell::Cell;
use std::mem::MaybeUninit;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Sizes of blocks of tapes, in bytes with the head.
const CLASSES: [usize; 6] = [1 << 8, 1 << 10, 1 << 12, 1 << 14, 1 << 18, 1 << 22];
/// Bytes that are kept of each class.
const KEPT: usize = 128 << 20;
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
    /// The list to which it goes back.
    home: u32,
    /// The class of its size.
    class: u32,
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

/// Classes from here on are kept for all threads.
const SHARED: usize = 4;
/// Lists for all threads; threads beyond these share them.
const HOMES: usize = 32;

/// A list of free blocks.
struct List {
    first: *mut Block,
    /// Their bytes.
    held: usize,
}

impl List {
    const EMPTY: List = List { first: ptr::null_mut(), held: 0 };

    /// The first block, if it has room for so much.
    fn pop(&mut self, content: usize) -> Option<NonNull<Block>> {
        let block = NonNull::new(self.first).filter(|b| Block::room(*b) >= content)?;
        // SAFETY: blocks in the list are live and belong to nobody else.
        let head = unsafe { block.as_ref() };
        self.first = head.before;
        self.held -= head.bytes;
        Some(block)
    }
    /// Keeps a block, unless that would be too much.
    fn push(&mut self, mut block: NonNull<Block>, most: usize) -> bool {
        // SAFETY: the caller has the block and gives it up.
        let head = unsafe { block.as_mut() };
        if self.held + head.bytes > most {
            return false;
        }
        head.before = self.first;
        self.held += head.bytes;
        self.first = block.as_ptr();
        true
    }
    fn release(&mut self) {
        while let Some(block) = self.pop(0) {
            free(block);
        }
    }
}

impl Drop for List {
    fn drop(&mut self) {
        self.release();
    }
}

// SAFETY: a list owns its blocks.
unsafe impl Send for List {}

/// What a thread keeps for itself.
struct Own {
    small: [Cell<List>; SHARED],
    home: Cell<u32>,
}

thread_local! {
    static OWN: Own = const { Own { small: [const { Cell::new(List::EMPTY) }; SHARED], home: Cell::new(u32::MAX) } };
}

impl Own {
    /// The number of the thread's list for all.
    fn home(&self) -> u32 {
        static THREADS: AtomicU32 = AtomicU32::new(0);
        if self.home.get() == u32::MAX {
            self.home.set(THREADS.fetch_add(1, Ordering::Relaxed) % HOMES as u32);
        }
        self.home.get()
    }
}

/// What is kept for all threads: for each home the blocks of each class, and those larger than any.
static TOGETHER: [[Mutex<List>; CLASSES.len() + 1]; HOMES] =
    [const { [const { Mutex::new(List::EMPTY) }; CLASSES.len() + 1] }; HOMES];
/// The bytes in them, of each class.
static HELD: [AtomicUsize; CLASSES.len() + 1] = [const { AtomicUsize::new(0) }; CLASSES.len() + 1];

/// Runs `f` on the thread's own list of a small class.
fn with_own<R>(own: &Own, class: usize, f: impl FnOnce(&mut List) -> R) -> R {
    let mut list = own.small[class].replace(List::EMPTY);
    let result = f(&mut list);
    // What was there meanwhile is the empty list.
    std::mem::forget(own.small[class].replace(list));
    result
}

/// Runs `f` on the list of a class and a home.
fn with_shared<R>(home: usize, class: usize, f: impl FnOnce(&mut List) -> R) -> R {
    // A list is never left half changed.
    let mut list = TOGETHER[home % HOMES][class].lock().unwrap_or_else(PoisonError::into_inner);
    let before = list.held;
    let result = f(&mut list);
    HELD[class].fetch_add(list.held.wrapping_sub(before), Ordering::Relaxed);
    result
}

/// The class of blocks that hold this many bytes, if one does.
fn class(bytes: usize) -> Option<usize> {
    CLASSES.iter().position(|&c| bytes <= c - size_of::<Block>())
}

/// The sizes of blocks of tapes.
#[derive(Clone, Copy)]
pub(crate) struct Class(usize);

impl Class {
    /// That of the first block of a tape that many others lie beside.
    pub(crate) const SMALL: Class = Class(0);
    /// That of the first block of a tape that is alone.
    pub(crate) const MEDIUM: Class = Class(3);

    /// That of the next block of a tape: larger each time.
    pub(crate) fn after(block: NonNull<Block>) -> Class {
        // SAFETY: the block is live: its user has it.
        let class = unsafe { block.as_ref().class };
        Class((class as usize + 1).min(CLASSES.len() - 1))
    }
    /// The bytes of a block.
    pub(crate) fn bytes(self) -> usize {
        CLASSES[self.0]
    }
    /// A block. `None`: the system has no memory left.
    pub(crate) fn take(self) -> Option<NonNull<Block>> {
        take(self.0, CLASSES[self.0])
    }
}

/// A block of a class with this many bytes, from the lists if there is one. `None`: the system has no memory left.
fn take(class: usize, bytes: usize) -> Option<NonNull<Block>> {
    let content = bytes - size_of::<Block>();
    // None while the thread ends.
    let home = OWN.try_with(|own| {
        let found = (class < SHARED).then(|| with_own(own, class, |list| list.pop(content))).flatten();
        found.ok_or_else(|| own.home())
    });
    let home = match home {
        Ok(Ok(block)) => return Some(block),
        Ok(Err(home)) => home as usize,
        Err(_) => 0,
    };
    // Others are asked where there is much to find.
    let homes =
        if class == CLASSES.len() || HELD[class].load(Ordering::Relaxed) > KEPT / 2 { HOMES } else { 1 };
    for other in home..home + homes {
        // Of blocks larger than any class only the first is looked at: the cotangents of the last long tape.
        if let Some(block) = with_shared(other, class, |list| list.pop(content)) {
            return Some(block);
        }
    }
    let layout = Layout::from_size_align(bytes, ALIGNMENT).ok()?;
    // SAFETY: the size is not 0: it includes the head.
    let block = NonNull::new(unsafe { alloc(layout) }.cast::<Block>())?;
    // SAFETY: the memory is new and large enough for the head.
    unsafe {
        let (before, home, class) = (ptr::null_mut(), home as u32, class as u32);
        block.as_ptr().write(Block { before, bytes, first: 0, home, class });
    }
    Some(block)
}

/// Takes a block back. It must not be used afterwards.
pub(crate) fn give_back(block: NonNull<Block>) {
    // SAFETY: the caller has the block and gives it up.
    let Block { home, class, .. } = *unsafe { block.as_ref() };
    let class = class as usize;
    let kept = OWN.try_with(|own| {
        (class < SHARED && own.home.get() == home)
            .then(|| with_own(own, class, |list| list.push(block, KEPT)))
    });
    let kept = kept.ok().flatten().unwrap_or_else(|| {
        with_shared(home as usize, class, |list| {
            let others = HELD[class].load(Ordering::Relaxed).saturating_sub(list.held);
            list.push(block, KEPT.saturating_sub(others))
        })
    });
    if !kept {
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
    /// `len` elements, which `fill` must all write. `None`: the system has no memory left.
    ///
    /// # Safety
    /// `fill` initialises every element.
    unsafe fn filled(len: usize, fill: impl FnOnce(&mut [MaybeUninit<T>])) -> Option<Buffer<T>> {
        const { assert!(align_of::<T>() <= ALIGNMENT && !std::mem::needs_drop::<T>()) };
        let content = len.checked_mul(size_of::<T>())?;
        let block = match class(content) {
            Some(class) => take(class, CLASSES[class])?,
            None => take(CLASSES.len(), content.checked_add(size_of::<Block>())?)?,
        };
        let start = Block::content(block).cast();
        // SAFETY: the block has room for `len` elements, is aligned for them, and is ours.
        fill(unsafe { std::slice::from_raw_parts_mut(start, len) });
        Some(Buffer { block, len, content: std::marker::PhantomData })
    }
    /// `len` elements. `None`: the system has no memory left.
    pub(crate) fn new(len: usize, element: impl Fn() -> T) -> Option<Buffer<T>> {
        // SAFETY: all are written.
        unsafe {
            Buffer::filled(len, |all| {
                all.iter_mut().for_each(|x| {
                    x.write(element());
                })
            })
        }
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

/// The bytes that are kept for the next tapes: the small blocks of this thread, and what is kept for all.
///
/// ```
/// let _ = pullback_dual::grad(|x| x * x, &3.0);
/// assert!(pullback_dual::kept_memory() > 0);
/// pullback_dual::release_memory();
/// ```
pub fn kept_memory() -> usize {
    let own = |own: &Own| (0..SHARED).map(|class| with_own(own, class, |list| list.held)).sum();
    let held = HELD.iter().map(|held| held.load(Ordering::Relaxed));
    OWN.try_with(own).unwrap_or(0) + held.sum::<usize>()
}

/// Gives the memory that is kept for the next tapes back to the system: the small blocks of this thread, and what is kept for all.
pub fn release_memory() {
    // A thread that ends has released its own already.
    let _ = OWN.try_with(|own| (0..SHARED).for_each(|class| with_own(own, class, List::release)));
    for home in 0..HOMES {
        (0..=CLASSES.len()).for_each(|class| with_shared(home, class, List::release));
    }
}
