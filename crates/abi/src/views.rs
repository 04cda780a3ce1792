//! Results where a call has left them: read there, and not copied to places of the caller.

#![allow(
    unsafe_code,
    reason = "elements of results are read where a call left them; each block says why they may be"
)]

use crate::buffers::{Element, Slot, copy, count, without_gaps};
use crate::values::{Room, read, scalar};
use pullback_base::RuntimeError;
use pullback_core::{Array, Value};
use pullback_prim::Scalar;
use std::marker::PhantomData;

/// Results of a call in their order, as long as the memory that they are in is borrowed.
#[derive(Clone, Debug)]
pub struct Views<'a> {
    slots: &'a [Slot],
    words: &'a [u64],
    sizes: &'a [usize],
}

/// A result of a call: a number, or an array whose elements lie in row-major order.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    slot: Slot,
    /// That of a scalar, or the address of elements.
    word: u64,
    sizes: &'a [usize],
    of: PhantomData<&'a ()>,
}

/// Room for what views need beside the words of results.
#[derive(Debug, Default)]
pub struct Kept {
    sizes: Vec<usize>,
    /// The elements of arrays that a call did not leave in row-major order, for each slot, in words so that all are aligned.
    elements: Vec<Vec<u64>>,
}

impl<'a> Views<'a> {
    /// The results that these words are. Arrays that are not in row-major order are copied to `kept`, which allocates only if they are larger than those before.
    ///
    /// # Errors
    /// `Limit` if there is no room for such a copy.
    ///
    /// # Safety
    /// The words are those of results of these types, and the memory that they point to is not changed as long as they are borrowed.
    pub unsafe fn new(
        slots: &'a [Slot],
        words: &'a mut [u64],
        kept: &'a mut Kept,
        mut room: Room,
    ) -> Result<Views<'a>, RuntimeError> {
        let Kept { sizes, elements } = kept;
        sizes.clear();
        elements.resize_with(slots.len(), Vec::new);
        let mut rest = &mut *words;
        for (slot, own) in slots.iter().zip(elements) {
            let (first, others) = rest.split_at_mut(slot.width());
            rest = others;
            let (address, dims) = first.split_at_mut(1);
            let (shape, strides) = dims.split_at(slot.rank());
            sizes.extend(shape.iter().map(|n| *n as usize));
            let all = count(shape.iter().map(|n| *n as usize));
            let in_order =
                all.is_some_and(|n| n <= 1) || without_gaps(shape, strides).is_some_and(|d| d.is_a_range());
            if slot.rank() == 0 || in_order {
                continue;
            }
            let bytes = slot.element().bytes();
            room.take(all.map_or(u128::MAX, |n| n as u128), bytes)?;
            // There is room for them, so they can be counted.
            let all = all.unwrap_or(0) * bytes;
            own.clear();
            own.resize(all.div_ceil(size_of::<u64>()), 0);
            let from = std::ptr::with_exposed_provenance::<u8>(address[0] as usize);
            // SAFETY: there are such elements at these strides by the condition, and room for all of them has just been made.
            unsafe { copy(from, own.as_mut_ptr().cast(), shape, strides, bytes) };
            address[0] = own.as_ptr().expose_provenance() as u64;
        }
        Ok(Views { slots, words, sizes })
    }
}

impl<'a> Iterator for Views<'a> {
    type Item = View<'a>;

    fn next(&mut self) -> Option<View<'a>> {
        let (slot, slots) = self.slots.split_first()?;
        let (words, others) = self.words.split_at(slot.width());
        let (sizes, further) = self.sizes.split_at(slot.rank());
        (self.slots, self.words, self.sizes) = (slots, others, further);
        Some(View { slot: *slot, word: words[0], sizes, of: PhantomData })
    }
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.slots.len(), Some(self.slots.len()))
    }
}
impl ExactSizeIterator for Views<'_> {}

impl<'a> View<'a> {
    /// The number; `None`: it is an array, or a number of another type.
    pub fn scalar<T: Element>(&self) -> Option<T> {
        (self.slot.rank() == 0 && self.element() == T::SCALAR).then(|| {
            let bytes = self.word.to_le_bytes();
            // SAFETY: the bytes of a scalar of this type come first in its word.
            unsafe { std::ptr::read_unaligned(bytes.as_ptr().cast()) }
        })
    }
    /// The elements in row-major order, and the sizes; `None`: it is a number, or an array of other elements.
    pub fn array<T: Element>(&self) -> Option<(&'a [T], &'a [usize])> {
        if self.slot.rank() == 0 || self.element() != T::SCALAR {
            return None;
        }
        let all = self.count();
        if all == 0 {
            return Some((&[], self.sizes));
        }
        let from = std::ptr::with_exposed_provenance::<T>(self.word as usize);
        // SAFETY: so many elements of this type lie there in order, which `Views::new` has seen to, and nobody changes them.
        Some((unsafe { std::slice::from_raw_parts(from, all) }, self.sizes))
    }
    /// The result as a value of core, with elements of its own.
    pub fn value(&self) -> Value {
        if self.slot.rank() == 0 {
            return Value::Scalar(scalar(self.element(), self.word));
        }
        // SAFETY: as for `array`.
        let elements = unsafe { read(self.element(), self.word, &[self.count()], &[1]) };
        Value::Array(Array::new(self.sizes.to_vec(), elements))
    }
    /// The number of elements of an array.
    fn count(&self) -> usize {
        if self.sizes.contains(&0) { 0 } else { self.sizes.iter().product() }
    }
    /// The sizes of an array; none for a number.
    pub fn sizes(&self) -> &'a [usize] {
        self.sizes
    }
    /// Of which type a number or the elements of an array are.
    pub fn element(&self) -> Scalar {
        self.slot.element()
    }
}
