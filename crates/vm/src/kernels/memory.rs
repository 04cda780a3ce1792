//! Kernels that load lanes from memory, store them, and add them to it.

use super::element::Number;
use super::{Machine, MemoryKernel, for_each_machine, one_by_one};
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

/// Copies bytes: few of them without a call.
///
/// # Safety
/// They are there, and do not overlap.
#[inline(always)]
pub(crate) unsafe fn copy(from: *const u8, to: *mut u8, bytes: usize) {
    const FEW: usize = 256;
    if bytes > FEW {
        return copy_nonoverlapping(from, to, bytes);
    }
    let mut done = 0;
    while done + 32 <= bytes {
        to.add(done).cast::<[u8; 32]>().write(from.add(done).cast::<[u8; 32]>().read());
        done += 32;
        one_by_one();
    }
    for some in [16, 8, 4, 2, 1] {
        if bytes & some != 0 {
            copy_nonoverlapping(from.add(done), to.add(done), some);
            done += some;
        }
    }
}

/// How lanes are added to one element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sums {
    /// One after the other.
    InOrder,
    /// Lanes of a chunk side by side, then together: the same on all instruction sets.
    Together,
}

unsafe fn accumulate_in_order<T: Number>(
    n: usize,
    register: *mut u8,
    memory: *mut u8,
    indices: *const i64,
    stride: i64,
    mask: *const u8,
) {
    let (register, memory) = (register.cast::<T>(), memory.cast::<T>());
    for_each(n, memory, indices, stride, mask, |l, place| {
        place.write(place.read().add(register.add(l).read()));
    });
}

mod bodies {
    use super::super::element::Number;
    use super::super::{CHUNK, Many, Source, Tail, each};
    use super::{copy, for_each};
    use std::array::from_fn;

    #[inline(always)]
    pub(super) unsafe fn load_lanes<E: Copy, T: Tail>(
        n: usize,
        register: *mut u8,
        memory: *mut u8,
        indices: *const i64,
        stride: i64,
        mask: *const u8,
    ) {
        let (to, from) = (register.cast::<E>(), memory.cast::<E>());
        match (stride == 1 && indices.is_null(), mask.is_null()) {
            (true, true) => copy(memory, register, n * size_of::<E>()),
            (true, false) => T::copy_where(from, to, mask, n),
            _ => for_each(n, from, indices, stride, mask, |l, place| to.add(l).write(place.read())),
        }
    }
    #[inline(always)]
    pub(super) unsafe fn store_lanes<E: Copy, T: Tail>(
        n: usize,
        register: *mut u8,
        memory: *mut u8,
        indices: *const i64,
        stride: i64,
        mask: *const u8,
    ) {
        let (from, to) = (register.cast::<E>(), memory.cast::<E>());
        match (stride == 1 && indices.is_null(), mask.is_null()) {
            (true, true) => copy(register, memory, n * size_of::<E>()),
            (true, false) => T::copy_where(from, to, mask, n),
            _ => for_each(n, to, indices, stride, mask, |l, place| place.write(from.add(l).read())),
        }
    }

    /// Lanes that are neighbours in memory, or all of one element: else as in [`super::accumulate_in_order`].
    #[inline(always)]
    pub(super) unsafe fn accumulate_lanes<N: Number, T: Tail>(
        n: usize,
        register: *mut u8,
        memory: *mut u8,
        indices: *const i64,
        stride: i64,
        mask: *const u8,
    ) {
        if n == 0 || !indices.is_null() || !mask.is_null() || !matches!(stride, 0 | 1) {
            return super::accumulate_in_order::<N>(n, register, memory, indices, stride, mask);
        }
        if stride == 1 {
            let (whole, rest) = (n / CHUNK, n % CHUNK);
            each::<T, _>(whole * CHUNK, memory, |number| {
                let (x, y): ([N; CHUNK], [N; CHUNK]) =
                    (Many::chunk(memory, number), Many::chunk(register, number));
                from_fn(|i| x[i].add(y[i]))
            });
            let done = whole * CHUNK * size_of::<N>();
            let (memory, register) = (memory.add(done), register.add(done));
            return super::accumulate_in_order::<N>(rest, register, memory, indices, stride, mask);
        }
        let chunk = |number: usize| -> [N; CHUNK] { Many::chunk(register, number) };
        let (whole, rest) = (n / CHUNK, n % CHUNK);
        let place = memory.cast::<N>();
        let mut sum = place.read();
        if whole > 0 {
            let mut sums = chunk(0);
            for number in 1..whole {
                let x = chunk(number);
                sums = from_fn(|i| sums[i].add(x[i]));
            }
            let eight: [N; 8] = from_fn(|i| sums[i].add(sums[i + 8]));
            let four: [N; 4] = from_fn(|i| eight[i].add(eight[i + 4]));
            sum = sum.add(four[0].add(four[2]).add(four[1].add(four[3])));
        }
        let last = register.cast::<N>().add(whole * CHUNK);
        for l in 0..rest {
            sum = sum.add(last.add(l).read());
        }
        place.write(sum);
    }
}

for_each_machine! {
    /// Loads lanes.
    fn load_lanes<E: Copy>(n: usize, register: *mut u8, memory: *mut u8, indices: *const i64, stride: i64, mask: *const u8);
    /// Stores lanes.
    fn store_lanes<E: Copy>(n: usize, register: *mut u8, memory: *mut u8, indices: *const i64, stride: i64, mask: *const u8);
    /// Adds lanes to memory.
    fn accumulate_lanes<N: Number>(n: usize, register: *mut u8, memory: *mut u8, indices: *const i64, stride: i64, mask: *const u8);
}

/// Loads elements of a type.
pub fn load(s: Scalar, machine: Machine) -> MemoryKernel {
    match s.bytes() {
        1 => load_lanes::<u8>(machine),
        2 => load_lanes::<u16>(machine),
        4 => load_lanes::<u32>(machine),
        _ => load_lanes::<u64>(machine),
    }
}

/// Stores elements of a type.
pub fn store(s: Scalar, machine: Machine) -> MemoryKernel {
    match s.bytes() {
        1 => store_lanes::<u8>(machine),
        2 => store_lanes::<u16>(machine),
        4 => store_lanes::<u32>(machine),
        _ => store_lanes::<u64>(machine),
    }
}

/// Adds to elements of a type; `None` for truth values.
pub fn accumulate(s: Scalar, sums: Sums, machine: Machine) -> Option<MemoryKernel> {
    macro_rules! of {
        ($t:ty) => {
            match sums {
                Sums::InOrder => accumulate_in_order::<$t>,
                Sums::Together => accumulate_lanes::<$t>(machine),
            }
        };
    }
    Some(match s {
        Scalar::F32 => of!(f32),
        Scalar::F64 => of!(f64),
        // Sums of integers are the same in every order.
        Scalar::I8 | Scalar::U8 => accumulate_in_order::<u8>,
        Scalar::I16 | Scalar::U16 => accumulate_in_order::<u16>,
        Scalar::I32 | Scalar::U32 => accumulate_in_order::<u32>,
        Scalar::I64 | Scalar::U64 => accumulate_in_order::<u64>,
        Scalar::Bool => return None,
    })
}
