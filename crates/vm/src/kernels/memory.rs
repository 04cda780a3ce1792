//! Kernels that load lanes from memory, store them, and add them to it.

use super::MemoryKernel;
use super::element::Number;
use pullback_prim::Scalar;
use std::ptr::copy_nonoverlapping;

/// The elements of the lanes that are meant, one after the other.
///
/// # Safety
/// As for [`MemoryKernel`].
#[inline(always)]
unsafe fn for_each<T>(
    n: usize,
    memory: *mut T,
    indices: *const i64,
    stride: i64,
    mask: *const u8,
    mut f: impl FnMut(usize, *mut T),
) {
    let place = |l: usize, index: i64| {
        // Wrapping: only where the element is accessed must it be there.
        memory.wrapping_offset(index.wrapping_add(stride.wrapping_mul(l as i64)) as isize)
    };
    match (indices.is_null(), mask.is_null()) {
        (true, true) => (0..n).for_each(|l| f(l, place(l, 0))),
        (false, true) => (0..n).for_each(|l| f(l, place(l, indices.add(l).read()))),
        (true, false) => {
            for l in 0..n {
                if mask.add(l).read() != 0 {
                    f(l, place(l, 0));
                }
            }
        }
        (false, false) => {
            for l in 0..n {
                if mask.add(l).read() != 0 {
                    f(l, place(l, indices.add(l).read()));
                }
            }
        }
    }
}

unsafe fn load_lanes<T: Copy>(
    n: usize,
    register: *mut u8,
    memory: *mut u8,
    indices: *const i64,
    stride: i64,
    mask: *const u8,
) {
    let (register, memory) = (register.cast::<T>(), memory.cast::<T>());
    if stride == 1 && indices.is_null() && mask.is_null() {
        copy_nonoverlapping(memory, register, n);
    } else {
        for_each(n, memory, indices, stride, mask, |l, place| register.add(l).write(place.read()));
    }
}

unsafe fn store_lanes<T: Copy>(
    n: usize,
    register: *mut u8,
    memory: *mut u8,
    indices: *const i64,
    stride: i64,
    mask: *const u8,
) {
    let (register, memory) = (register.cast::<T>(), memory.cast::<T>());
    if stride == 1 && indices.is_null() && mask.is_null() {
        copy_nonoverlapping(register, memory, n);
    } else {
        for_each(n, memory, indices, stride, mask, |l, place| place.write(register.add(l).read()));
    }
}

unsafe fn accumulate_lanes<T: Number>(
    n: usize,
    register: *mut u8,
    memory: *mut u8,
    indices: *const i64,
    stride: i64,
    mask: *const u8,
) {
    let (register, memory) = (register.cast::<T>(), memory.cast::<T>());
    let stays = stride == 0 && indices.is_null() && n > 0;
    if stays && mask.is_null() {
        // One element takes all lanes, in order.
        memory.write((0..n).fold(memory.read(), |sum, l| sum.add(register.add(l).read())));
    } else {
        for_each(n, memory, indices, stride, mask, |l, place| {
            place.write(place.read().add(register.add(l).read()));
        });
    }
}

/// Loads elements of a type.
pub(crate) fn load(s: Scalar) -> MemoryKernel {
    match s.bytes() {
        1 => load_lanes::<u8>,
        2 => load_lanes::<u16>,
        4 => load_lanes::<u32>,
        _ => load_lanes::<u64>,
    }
}

/// Stores elements of a type.
pub(crate) fn store(s: Scalar) -> MemoryKernel {
    match s.bytes() {
        1 => store_lanes::<u8>,
        2 => store_lanes::<u16>,
        4 => store_lanes::<u32>,
        _ => store_lanes::<u64>,
    }
}

/// Adds to elements of a type; `None` for truth values.
pub(crate) fn accumulate(s: Scalar) -> Option<MemoryKernel> {
    Some(match s {
        Scalar::F32 => accumulate_lanes::<f32>,
        Scalar::F64 => accumulate_lanes::<f64>,
        Scalar::I8 | Scalar::U8 => accumulate_lanes::<u8>,
        Scalar::I16 | Scalar::U16 => accumulate_lanes::<u16>,
        Scalar::I32 | Scalar::U32 => accumulate_lanes::<u32>,
        Scalar::I64 | Scalar::U64 => accumulate_lanes::<u64>,
        Scalar::Bool => return None,
    })
}
