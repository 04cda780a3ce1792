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
pub(crate) struct Dims {
    sizes: [u64; 8],
    strides: [u64; 8],
    rank: usize,
}

impl Dims {
    /// Whether the elements follow each other in memory.
    pub(crate) fn is_a_range(&self) -> bool {
        self.rank == 1 && self.strides[0] == 1
    }
}

/// The same elements in the same order, with dimensions that follow each other without gaps as one; `None` for more dimensions or
/// elements than are looked at.
pub(crate) fn without_gaps(shape: &[u64], strides: &[u64]) -> Option<Dims> {
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
unsafe fn copy_past_caches(from: *const u8, to: *mut u8, bytes: usize) {
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
unsafe fn copy_past_caches(from: *const u8, to: *mut u8, bytes: usize) {
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

#[cfg(test)]
mod tests {
    use super::{Argument, Copies, Place, Slot, copy_past_caches, take_results, without_gaps};
    use pullback_base::{RuntimeError, RuntimeErrorKind};
    use pullback_core::Type;

    fn set_words(slots: &[Slot], args: &[Argument<'_>], words: &mut [u64]) -> Result<(), RuntimeError> {
        super::set_words(slots, args, words, (&mut Copies::default(), 0))
    }

    fn slots(types: &[Type]) -> Vec<Slot> {
        types.iter().map(|t| Slot::of(t).expect("a slot")).collect()
    }

    fn in_order(count: u32, f: &(dyn Fn(u32) + Sync)) {
        (0..count).for_each(f);
    }

    #[test]
    fn arguments_become_words_and_words_become_results() {
        let types = [Type::F32, Type::array_of_rank(Type::F64, 2), Type::BOOL];
        let slots = slots(&types);
        let numbers: [f64; 6] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let args = [Argument::scalar(1.5f32), Argument::array(&numbers, &[2, 3]), Argument::scalar(true)];
        let mut words = [0; 7];
        set_words(&slots, &args, &mut words).expect("right");
        assert_eq!(words[0], u64::from(1.5f32.to_bits()));
        assert_eq!((&words[2..6], words[6]), (&[2, 3, 3, 1][..], 1));
        // The transposition: other sizes, and columns for rows.
        words[2..6].copy_from_slice(&[3, 2, 1, 3]);
        let (mut x, mut ys, mut shape, mut is) = (0f32, [0f64; 7], [0; 2], false);
        let mut places = [Place::scalar(&mut x), Place::array(&mut ys, &mut shape), Place::scalar(&mut is)];
        // SAFETY: the words are those of values that are alive.
        unsafe { take_results(&slots, &words, &mut places, &in_order) }.expect("right");
        assert_eq!((x, shape, is), (1.5, [3, 2], true));
        assert_eq!(ys, [1.0, 4.0, 2.0, 5.0, 3.0, 6.0, 0.0]);
    }

    /// The six numbers as 2 by 3, transposed, with every second column, backwards, a column, one number seen as four, no rows, one.
    #[test]
    fn arguments_in_another_order_are_copied() {
        let numbers: [f64; 6] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let read = |start: usize, shape: &[usize], strides: &[isize], limit: u64| {
            let slots = [Slot::of(&Type::array_of_rank(Type::F64, shape.len())).expect("a slot")];
            let (mut words, mut copies) = (vec![0; 1 + 2 * shape.len()], Copies::default());
            let arg = Argument::strided(&numbers, start, shape, strides);
            super::set_words(&slots, &[arg], &mut words, (&mut copies, limit))?;
            let count = shape.iter().product();
            let from = std::ptr::with_exposed_provenance::<f64>(words[0] as usize);
            // SAFETY: so many numbers are there in order, as the function has seen to.
            let found = unsafe { std::slice::from_raw_parts(from, count) }.to_vec();
            let here = std::ptr::eq(from, &raw const numbers[start]);
            Ok::<_, RuntimeError>((found, here, words[1 + shape.len()..].to_vec()))
        };
        let (two_rows, transposed) = (vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0], vec![1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
        assert_eq!(read(0, &[2, 3], &[3, 1], 0), Ok((two_rows, true, vec![3, 1])));
        assert_eq!(read(0, &[3, 2], &[1, 3], 48), Ok((transposed, false, vec![2, 1])));
        assert_eq!(read(0, &[2, 2], &[3, 2], 48), Ok((vec![1.0, 3.0, 4.0, 6.0], false, vec![2, 1])));
        assert_eq!(read(5, &[3], &[-2], 48), Ok((vec![6.0, 4.0, 2.0], false, vec![1])));
        assert_eq!(read(1, &[2], &[3], 48), Ok((vec![2.0, 5.0], false, vec![1])));
        assert_eq!(read(2, &[2, 2], &[0, 0], 48), Ok((vec![3.0; 4], false, vec![2, 1])));
        assert_eq!(read(1, &[2, 1, 2], &[2, 99, 1], 0), Ok((vec![2.0, 3.0, 4.0, 5.0], true, vec![2, 2, 1])));
        assert_eq!(read(5, &[1, 1], &[70, -8], 0), Ok((vec![6.0], true, vec![1, 1])));
        assert!(read(0, &[0, 1 << 62, 4], &[7, 7, 7], 0).is_ok_and(|(found, ..)| found.is_empty()));
        let refused = |start, shape: &[usize], strides: &[isize]| {
            let e = read(start, shape, strides, 1 << 20).expect_err("refused");
            (e.kind, e.message)
        };
        let (kind, text) = refused(1, &[2, 3], &[3, 1]);
        assert_eq!(kind, RuntimeErrorKind::ShapeMismatch);
        assert!(text.contains("argument 0 has 6 elements") && text.contains("start 1"), "{text}");
        assert_eq!(refused(0, &[2], &[-1]).0, RuntimeErrorKind::ShapeMismatch);
        assert_eq!(refused(6, &[1], &[1]).0, RuntimeErrorKind::ShapeMismatch);
        assert_eq!(refused(0, &[2, 3], &[1]).0, RuntimeErrorKind::ShapeMismatch);
        assert_eq!(refused(0, &[1 << 62, 4], &[0, 0]).0, RuntimeErrorKind::Limit);
        assert_eq!(refused(0, &[usize::MAX, 3], &[isize::MIN, 1]).0, RuntimeErrorKind::ShapeMismatch);
        let text = read(0, &[3, 2], &[1, 3], 47).expect_err("too much").message;
        assert_eq!(text, "out of memory: 48 more bytes are needed, 0 are in use, the limit is 47");
    }

    #[test]
    fn what_does_not_fit_is_refused_and_nothing_is_written() {
        let slots = slots(&[Type::I64, Type::array(Type::F64)]);
        let numbers = [1.0, 2.0];
        let mut words = [0; 4];
        let mut refused =
            |args: &[Argument<'_>]| set_words(&slots, args, &mut words).expect_err("wrong").message;
        assert_eq!(refused(&[Argument::scalar(1i64)]), "1 arguments are given, the function has 2");
        let text = refused(&[Argument::scalar(1i64), Argument::scalar(1.0)]);
        assert_eq!(text, "argument 1 is []f64, not f64");
        let text = refused(&[Argument::scalar(1i64), Argument::array(&numbers, &[3])]);
        assert_eq!(text, "argument 1 has 2 elements, and the sizes [3]");
        let most = [usize::MAX, usize::MAX];
        let text = refused(&[Argument::scalar(1i64), Argument::array(&numbers, &most)]);
        assert_eq!(text, "argument 1 is []f64, not [][]f64");
        let args = [Argument::scalar(7i64), Argument::array(&numbers, &[2])];
        set_words(&slots, &args, &mut words).expect("right");
        let (mut x, mut ys, mut shape) = (0i64, [0f64; 1], [9]);
        let mut places = [Place::scalar(&mut x), Place::array(&mut ys, &mut shape)];
        // SAFETY: the words are those of values that are alive.
        let e = unsafe { take_results(&slots, &words, &mut places, &in_order) }.expect_err("too small");
        assert_eq!(e.message, "result 1 has the sizes [2], its place has room for 1");
        assert_eq!((x, shape), (0, [9]));
    }

    /// Large results are copied in parts, by whoever takes them; arrays without gaps whatever their rank, others as they are.
    #[test]
    fn large_results_are_copied_in_parts() {
        let (rows, columns) = (700, 301);
        let numbers: Vec<f64> = (0..rows * columns).map(|k| k as f64).collect();
        let slots = slots(&[Type::array_of_rank(Type::F64, 2)]);
        let mut words = [0; 5];
        set_words(&slots, &[Argument::array(&numbers, &[rows, columns])], &mut words).expect("right");
        let taken = |words: &[u64]| {
            let parts = std::cell::Cell::new(0);
            let (mut out, mut shape) = (vec![0f64; rows * columns], [0; 2]);
            let backwards = |count: u32, f: &(dyn Fn(u32) + Sync)| {
                parts.set(count);
                std::thread::scope(|s| (0..count).rev().for_each(|k| drop(s.spawn(move || f(k)))));
            };
            let mut places = [Place::array(&mut out, &mut shape)];
            // SAFETY: the words are those of values that are alive.
            unsafe { take_results(&slots, words, &mut places, &backwards) }.expect("right");
            (out, shape, parts.get())
        };
        assert_eq!(taken(&words), (numbers.clone(), [rows, columns], 6));
        words[1..5].copy_from_slice(&[columns as u64, rows as u64, 1, columns as u64]);
        let (turned, shape, parts) = taken(&words);
        assert_eq!((shape, parts), ([columns, rows], 0));
        assert!((0..rows * columns).all(|k| turned[k] == numbers[k % rows * columns + k / rows]));
    }

    #[test]
    fn bytes_are_copied_past_caches_wherever_they_begin() {
        let from: Vec<u8> = (0..200).collect();
        for (first, begin, count) in [(0, 0, 200), (1, 3, 150), (7, 5, 16), (0, 9, 7), (3, 15, 17), (2, 1, 0)]
        {
            let mut to = vec![255u8; 260];
            // SAFETY: so many bytes are there, in two vectors.
            unsafe { copy_past_caches(from[first..].as_ptr(), to[begin..].as_mut_ptr(), count) };
            assert_eq!(to[begin..begin + count], from[first..first + count]);
            assert!(to[..begin].iter().chain(&to[begin + count..]).all(|x| *x == 255));
        }
    }

    #[test]
    fn dimensions_without_gaps_are_one() {
        let merged = |shape: &[u64], strides: &[u64]| {
            let d = without_gaps(shape, strides).expect("few dimensions");
            (d.sizes[..d.rank].to_vec(), d.strides[..d.rank].to_vec())
        };
        assert_eq!(merged(&[2, 3, 4], &[12, 4, 1]), (vec![24], vec![1]));
        assert_eq!(merged(&[2, 3, 4], &[24, 4, 1]), (vec![2, 12], vec![24, 1]));
        assert_eq!(merged(&[2, 3], &[1, 2]), (vec![2, 3], vec![1, 2]));
        assert_eq!(merged(&[5, 3], &[6, 2]), (vec![15], vec![2]));
        assert_eq!(merged(&[7], &[1]), (vec![7], vec![1]));
        assert_eq!(merged(&[3, 4], &[0, 0]), (vec![12], vec![0]));
        assert_eq!(merged(&[1, 2, 1, 3], &[9, 3, 70, 1]), (vec![6], vec![1]));
        assert_eq!(merged(&[1, 1], &[9, 70]), (vec![1], vec![1]));
        assert!(without_gaps(&[2; 9], &[2, 3, 4, 5, 6, 7, 8, 9, 10]).is_none());
    }
}
