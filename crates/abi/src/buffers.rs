//! Calls with buffers of the caller: numbers and row-major arrays, without a value of core and without allocation.

#![allow(
    unsafe_code,
    reason = "elements of results are copied from where a call left them; each block says why they may be"
)]

use crate::values::{Room, word};
use pullback_base::{RuntimeError, RuntimeErrorKind};
use pullback_core::Type;
use pullback_prim::{Scalar, ScalarValue};
use std::marker::PhantomData;

/// What a parameter or result is: a scalar, or an array of scalars.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    scalar: Scalar,
    /// The number of dimensions; 0 for a scalar.
    rank: usize,
}

impl Slot {
    /// That of a type; `None` for products, sums, and arrays of them.
    pub fn of(ty: &Type) -> Option<Slot> {
        Some(Slot { scalar: ty.base().scalar()?, rank: ty.rank() })
    }
    /// The number of its words.
    pub fn width(self) -> usize {
        if self.rank == 0 { 1 } else { 1 + 2 * self.rank }
    }
    /// The number of dimensions; 0 for a scalar.
    pub(crate) fn rank(self) -> usize {
        self.rank
    }
    /// The type of the scalar, or of elements.
    pub(crate) fn element(self) -> Scalar {
        self.scalar
    }
}

/// A type of Rust that is a scalar of programs, with the same bytes.
pub trait Element: Copy {
    /// Which scalar.
    const SCALAR: Scalar;
    /// As a value.
    fn value(self) -> ScalarValue;
}

macro_rules! elements {
    ($($t:ty: $scalar:ident;)*) => {
        $(impl Element for $t {
            const SCALAR: Scalar = Scalar::$scalar;
            fn value(self) -> ScalarValue {
                ScalarValue::$scalar(self)
            }
        })*
    };
}
elements! {
    f32: F32; f64: F64; i8: I8; i16: I16; i32: I32; i64: I64; u8: U8; u16: U16; u32: U32; u64: U64; bool: Bool;
}

/// An argument: a number, or elements of an array with its sizes.
#[derive(Clone, Copy, Debug)]
pub struct Argument<'a> {
    scalar: Scalar,
    /// The word of a scalar, or the address of elements.
    word: u64,
    elements: usize,
    shape: &'a [usize],
    /// Where the first element is, and how far apart neighbours are in each dimension; `None`: in row-major order.
    order: Option<(usize, &'a [isize])>,
    of: PhantomData<&'a ()>,
}

impl<'a> Argument<'a> {
    /// A number.
    pub fn scalar<T: Element>(x: T) -> Argument<'a> {
        let word = word(x.value());
        Argument { scalar: T::SCALAR, word, elements: 1, shape: &[], order: None, of: PhantomData }
    }
    /// An array in row-major order: as many elements as the product of the sizes.
    pub fn array<T: Element>(elements: &'a [T], shape: &'a [usize]) -> Argument<'a> {
        let word = elements.as_ptr().expose_provenance() as u64;
        Argument { scalar: T::SCALAR, word, elements: elements.len(), shape, order: None, of: PhantomData }
    }
    /// An array in another order, such as a transposed matrix or every second row of one: its first element is number `start` of these, and
    /// neighbours in dimension `d` are `strides[d]` elements apart. A call copies it to row-major order first, unless it is in that order.
    pub fn strided<T: Element>(
        elements: &'a [T],
        start: usize,
        shape: &'a [usize],
        strides: &'a [isize],
    ) -> Argument<'a> {
        Argument { order: Some((start, strides)), ..Argument::array(elements, shape) }
    }
}

/// Where a result goes: a number, or elements of an array in row-major order, with its sizes.
#[derive(Debug)]
pub struct Place<'a> {
    scalar: Scalar,
    address: *mut u8,
    elements: usize,
    shape: &'a mut [usize],
    of: PhantomData<&'a mut ()>,
}

impl<'a> Place<'a> {
    /// A number.
    pub fn scalar<T: Element>(to: &'a mut T) -> Place<'a> {
        let address = std::ptr::from_mut(to).cast();
        Place { scalar: T::SCALAR, address, elements: 1, shape: &mut [], of: PhantomData }
    }
    /// An array: room for its elements, of which there may be fewer, and for its sizes.
    pub fn array<T: Element>(elements: &'a mut [T], shape: &'a mut [usize]) -> Place<'a> {
        let (address, count) = (elements.as_mut_ptr().cast(), elements.len());
        Place { scalar: T::SCALAR, address, elements: count, shape, of: PhantomData }
    }
}

fn wrong(message: String) -> RuntimeError {
    RuntimeError::new(RuntimeErrorKind::ShapeMismatch, message)
}

/// What is wrong with the number of arguments or results.
#[cold]
fn wrong_count(what: &str, given: usize, expected: usize) -> RuntimeError {
    wrong(format!("{given} {what} are given, the function has {expected}"))
}

#[cold]
fn wrong_type(what: &str, k: usize, (scalar, rank): (Scalar, usize), slot: Slot) -> RuntimeError {
    let name = |s: Scalar, rank: usize| format!("{}{}", "[]".repeat(rank), s.name());
    wrong(format!("{what} {k} is {}, not {}", name(slot.scalar, slot.rank), name(scalar, rank)))
}

/// The number of elements; `None` if they cannot be counted.
pub(crate) fn count(shape: impl Iterator<Item = usize> + Clone) -> Option<usize> {
    if shape.clone().any(|n| n == 0) {
        return Some(0);
    }
    shape.into_iter().try_fold(1usize, usize::checked_mul)
}

/// Arguments that were copied to row-major order. The memory is kept for the next call.
#[derive(Debug, Default)]
pub struct Copies(Vec<Vec<u64>>);

/// Sets the words of arguments. They may point to the copies.
///
/// # Errors
/// Arguments of other types than the slots, arrays with other numbers of elements than their sizes say, elements that are not there;
/// `Limit` for a copy of more than so many bytes.
///
/// # Panics
/// If there are not as many words as the slots have.
pub fn set_words(
    slots: &[Slot],
    args: &[Argument<'_>],
    words: &mut [u64],
    (copies, limit): (&mut Copies, u64),
) -> Result<(), RuntimeError> {
    if slots.len() != args.len() {
        return Err(wrong_count("arguments", args.len(), slots.len()));
    }
    let mut at = 0;
    for (k, (slot, arg)) in slots.iter().zip(args).enumerate() {
        let rank = arg.shape.len();
        if (slot.scalar, slot.rank) != (arg.scalar, rank) {
            return Err(wrong_type("argument", k, (arg.scalar, rank), *slot));
        }
        let (address, dims) = words[at..at + slot.width()].split_at_mut(1);
        let (sizes, steps) = dims.split_at_mut(rank);
        sizes.iter_mut().zip(arg.shape).for_each(|(to, n)| *to = *n as u64);
        address[0] = match arg.order {
            None if count(arg.shape.iter().copied()) != Some(arg.elements) => {
                let (shape, elements) = (arg.shape, arg.elements);
                return Err(wrong(format!("argument {k} has {elements} elements, and the sizes {shape:?}")));
            }
            None => arg.word,
            Some(order) => {
                is_there(arg, order).map_err(|why| wrong(format!("argument {k} {why}")))?;
                steps.iter_mut().zip(order.1).for_each(|(to, step)| *to = *step as u64);
                copies.0.resize_with(slots.len().max(copies.0.len()), Vec::new);
                in_order(arg, (order.0, sizes, steps), (&mut copies.0[k], limit))?
            }
        };
        let mut stride = 1u64;
        for (n, step) in arg.shape.iter().zip(steps).rev() {
            *step = stride;
            stride = stride.wrapping_mul(*n as u64);
        }
        at += slot.width();
    }
    Ok(())
}

/// Whether an argument in this order has all elements that its sizes say. Errors: what is wrong.
fn is_there(arg: &Argument<'_>, (start, strides): (usize, &[isize])) -> Result<(), String> {
    let (shape, elements) = (arg.shape, arg.elements as i128);
    if strides.len() != shape.len() {
        return Err(format!("has {} strides, and the sizes {shape:?}", strides.len()));
    }
    // The least and the greatest place.
    let (mut low, mut high) = (start as i128, start as i128);
    for (n, stride) in shape.iter().zip(strides) {
        let last = (*n as i128 - 1).saturating_mul(*stride as i128);
        low = low.saturating_add(last.min(0));
        high = high.saturating_add(last.max(0));
    }
    if shape.contains(&0) || (low >= 0 && high < elements) {
        return Ok(());
    }
    Err(format!(
        "has {elements} elements: not one at each place of the sizes {shape:?}, the strides {strides:?} and the start {start}"
    ))
}

/// The address of the elements of an argument, which are there, in row-major order: where they are, or in a copy.
fn in_order(
    arg: &Argument<'_>,
    (start, sizes, steps): (usize, &[u64], &[u64]),
    (copied, limit): (&mut Vec<u64>, u64),
) -> Result<u64, RuntimeError> {
    let (all, bytes) = (count(arg.shape.iter().copied()), arg.scalar.bytes());
    if all == Some(0) {
        return Ok(arg.word);
    }
    let from = std::ptr::with_exposed_provenance::<u8>(arg.word as usize).wrapping_add(start * bytes);
    if all == Some(1) || without_gaps(sizes, steps).is_some_and(|d| d.is_a_range()) {
        return Ok(from.expose_provenance() as u64);
    }
    let mut room = Room { in_use: 0, limit };
    room.take(all.map_or(u128::MAX, |n| n as u128), bytes)?;
    // There is room for them, so they can be counted.
    copied.clear();
    copied.resize((all.unwrap_or(0) * bytes).div_ceil(size_of::<u64>()), 0);
    // SAFETY: all places are among the elements, by the condition, and there is room for so many.
    unsafe { copy(from, copied.as_mut_ptr().cast(), sizes, steps, bytes) };
    Ok(copied.as_ptr().expose_provenance() as u64)
}

/// Runs a function with each number below a count, perhaps several at the same time.
pub type Spread<'a> = &'a dyn Fn(u32, &(dyn Fn(u32) + Sync));

/// So many bytes are worth a part of their own when results are copied.
const PART: usize = 256 << 10;
/// The most parts of a result.
const PARTS: usize = 64;
/// So many bytes leave the caches before anybody reads them.
const FAR: usize = 16 << 20;

/// Copies results to where they go, large ones in parts by `spread`. If one does not fit, nothing is written.
///
/// # Errors
/// Places of other types than the slots, or too small.
///
/// # Safety
/// The words are those of results of these types, and the memory that they point to is alive and in no place.
pub unsafe fn take_results(
    slots: &[Slot],
    words: &[u64],
    places: &mut [Place<'_>],
    spread: Spread<'_>,
) -> Result<(), RuntimeError> {
    if slots.len() != places.len() {
        return Err(wrong_count("places for results", places.len(), slots.len()));
    }
    let mut at = 0;
    for (k, (slot, place)) in slots.iter().zip(places.iter()).enumerate() {
        let rank = place.shape.len();
        if (slot.scalar, slot.rank) != (place.scalar, rank) {
            return Err(wrong_type("the place of result", k, (place.scalar, rank), *slot));
        }
        let shape = words[at + 1..at + 1 + rank].iter().map(|n| *n as usize);
        if count(shape.clone()).is_none_or(|n| n > place.elements) {
            let shape: Vec<usize> = shape.collect();
            let room = place.elements;
            return Err(wrong(format!("result {k} has the sizes {shape:?}, its place has room for {room}")));
        }
        at += slot.width();
    }
    at = 0;
    for (slot, place) in slots.iter().zip(places) {
        let rank = slot.rank;
        if rank == 0 {
            // The bytes of a scalar come first in its word.
            let bytes = words[at].to_le_bytes();
            // SAFETY: the place is a scalar of this type, so it has so many bytes; truth values are 0 or 1.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), place.address, slot.scalar.bytes()) };
        } else {
            let (shape, strides) = words[at + 1..at + 1 + 2 * rank].split_at(rank);
            for (to, n) in place.shape.iter_mut().zip(shape) {
                *to = *n as usize;
            }
            if !shape.contains(&0) {
                let from = std::ptr::with_exposed_provenance::<u8>(words[at] as usize);
                let dims = without_gaps(shape, strides);
                let (shape, strides) =
                    dims.as_ref().map_or((shape, strides), |d| (&d.sizes[..d.rank], &d.strides[..d.rank]));
                let bytes = slot.scalar.bytes();
                // SAFETY: there are such elements at these strides, and room for them, as was just seen.
                unsafe {
                    if let ([n], [1]) = (shape, strides) {
                        copy_all(from, place.address, *n as usize * bytes, spread);
                    } else {
                        copy(from, place.address, shape, strides, bytes);
                    }
                }
            }
        }
        at += slot.width();
    }
    Ok(())
}

/// Sizes and strides, in room for all that are looked at.
#[derive(Debug)]
pub struct Dims {
    /// The sizes; of those not in use 0.
    pub sizes: [u64; 8],
    /// The strides, in elements.
    pub strides: [u64; 8],
    /// How many are in use.
    pub rank: usize,
}

impl Dims {
    /// Whether the elements follow each other in memory.
    pub(crate) fn is_a_range(&self) -> bool {
        self.rank == 1 && self.strides[0] == 1
    }
}

/// The same elements in the same order, with dimensions that follow each other without gaps as one; `None` for more dimensions or
/// elements than are looked at.
pub fn without_gaps(shape: &[u64], strides: &[u64]) -> Option<Dims> {
    let mut dims = Dims { sizes: [0; 8], strides: [0; 8], rank: 0 };
    // Whatever the stride of a dimension of one is, nothing lies at its next place.
    for (n, step) in shape.iter().zip(strides).filter(|(n, _)| **n != 1) {
        // What is there already lies around this one.
        let around = dims.rank.checked_sub(1).filter(|k| dims.strides[*k] == step.wrapping_mul(*n));
        let k = around.unwrap_or(dims.rank);
        *dims.sizes.get_mut(k)? = if around.is_some() { dims.sizes[k].checked_mul(*n)? } else { *n };
        dims.strides[k] = *step;
        dims.rank = k + 1;
    }
    if dims.rank == 0 && !shape.is_empty() {
        (dims.sizes[0], dims.strides[0], dims.rank) = (1, 1, 1);
    }
    Some(dims)
}

/// Copies bytes, in parts if they are many.
///
/// # Safety
/// So many bytes can be read from `from`, and written to `to`; the two do not overlap.
unsafe fn copy_all(from: *const u8, to: *mut u8, bytes: usize, spread: Spread<'_>) {
    let parts = (bytes / PART).min(PARTS);
    if parts <= 1 {
        // SAFETY: by the condition.
        unsafe { std::ptr::copy_nonoverlapping(from, to, bytes) };
        return;
    }
    // Threads are given addresses.
    let (source, target) = (from.expose_provenance(), to.expose_provenance());
    let begin = |k: usize| (bytes as u128 * k as u128 / parts as u128) as usize;
    spread(parts as u32, &|k| {
        let (first, end) = (begin(k as usize), begin(k as usize + 1));
        let from = std::ptr::with_exposed_provenance::<u8>(source + first);
        let to = std::ptr::with_exposed_provenance_mut::<u8>(target + first);
        // SAFETY: parts are different bytes of those of the condition.
        unsafe {
            if bytes >= FAR {
                copy_past_caches(from, to, end - first);
            } else {
                std::ptr::copy_nonoverlapping(from, to, end - first);
            }
        }
    });
}

/// Copies bytes to memory without reading it into caches first.
///
/// # Safety
/// So many bytes can be read from `from`, and written to `to`; the two do not overlap.
#[cfg(all(target_arch = "x86_64", not(miri)))]
pub unsafe fn copy_past_caches(from: *const u8, to: *mut u8, bytes: usize) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_sfence, _mm_stream_si128};
    const WIDTH: usize = size_of::<__m128i>();
    let head = to.align_offset(WIDTH).min(bytes);
    let blocks = (bytes - head) / WIDTH;
    let tail = head + blocks * WIDTH;
    // SAFETY: all places are among so many bytes; stores are aligned after `head` of them, and loads need not be. This processor
    // has these instructions, as all of its kind. The fence makes what they store visible to those who are told that it is there.
    unsafe {
        std::ptr::copy_nonoverlapping(from, to, head);
        for k in 0..blocks {
            let at = head + k * WIDTH;
            let x = _mm_loadu_si128(from.add(at).cast::<__m128i>());
            _mm_stream_si128(to.add(at).cast::<__m128i>(), x);
        }
        std::ptr::copy_nonoverlapping(from.add(tail), to.add(tail), bytes - tail);
        _mm_sfence();
    }
}
/// The same where there is no such way.
///
/// # Safety
/// So many bytes can be read from `from`, and written to `to`; the two do not overlap.
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
pub unsafe fn copy_past_caches(from: *const u8, to: *mut u8, bytes: usize) {
    // SAFETY: by the condition.
    unsafe { std::ptr::copy_nonoverlapping(from, to, bytes) };
}

/// Copies elements to row-major order; gives where the next one would go.
///
/// # Safety
/// Elements of so many bytes are at these strides from `from`, there is room for them at `to`, and no size is 0.
pub(crate) unsafe fn copy(
    from: *const u8,
    mut to: *mut u8,
    shape: &[u64],
    strides: &[u64],
    bytes: usize,
) -> *mut u8 {
    // SAFETY: only addresses of elements are read, and only so many are written, by the condition.
    unsafe {
        match (shape, strides) {
            ([], _) | (_, []) => {
                std::ptr::copy_nonoverlapping(from, to, bytes);
                to.add(bytes)
            }
            ([n], [1]) => {
                let all = *n as usize * bytes;
                std::ptr::copy_nonoverlapping(from, to, all);
                to.add(all)
            }
            ([n, shape @ ..], [step, strides @ ..]) => {
                let step = (*step as isize).wrapping_mul(bytes as isize);
                for i in 0..*n as isize {
                    to = copy(from.offset(i * step), to, shape, strides, bytes);
                }
                to
            }
        }
    }
}
