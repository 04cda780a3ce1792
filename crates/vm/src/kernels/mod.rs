//! Kernels: one operation on a block of lanes, for each kind of operands and each instruction set.
//!
//! A kernel does `n` lanes, exactly: it computes whole chunks of [`CHUNK`] lanes, and where fewer are wanted leaves the rest of
//! the register as it is. Registers have room for one chunk more than they have lanes. A chunk is read whole before any of it
//! is written, so that the result may lie where an argument lies, and the compiler needs no checks for that.
//!
//! One generic body serves all instruction sets; it is compiled once for each ([`Machine`]).

#![allow(unsafe_code, reason = "kernels work on raw registers; every function states what it assumes")]
#![allow(
    unsafe_op_in_unsafe_fn,
    reason = "all that the bodies do with pointers is allowed by the conditions of `Kernel` and `MemoryKernel`"
)]

pub(crate) mod element;
mod exact;
mod functions;
mod lanes;
mod memory;
pub(crate) mod pairs;

pub use exact::{exact, identity};
pub use functions::function;
pub(crate) use memory::copy;
pub use memory::{Sums, accumulate, load, store};

/// Lanes that are computed together.
pub const CHUNK: usize = 16;

/// `kernel(n, to, a, b, c)`: the operation on `n` lanes of the arguments, of which there are up to three.
///
/// # Safety
/// `to` and those arguments that are lanes have room for `n` elements rounded up to a multiple of [`CHUNK`], those that are
/// scalars are words. The processor has the instruction set that the kernel was chosen for.
pub type Kernel = unsafe fn(usize, *mut u8, *const u8, *const u8, *const u8);

/// `kernel(n, register, memory, indices, stride, mask)`: the first `n` lanes of a register and elements of memory. In lane `l`
/// the element is number `indices[l] + l * stride`. No indices: all are 0. No mask: all lanes are meant.
///
/// # Safety
/// The register and the mask have room for `n` elements rounded up to a multiple of [`CHUNK`], the indices for `n`; the elements
/// of the lanes that are meant may be accessed.
pub type MemoryKernel = unsafe fn(usize, *mut u8, *mut u8, *const i64, i64, *const u8);

/// What an operand is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// A word.
    Scalar,
    /// A register of lanes.
    Lanes,
}

/// An instruction set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Machine {
    /// What every processor of the kind has.
    Portable,
    /// x86 with AVX2 and fused multiply-add: four doubles at a time.
    Avx2,
    /// x86 with AVX-512 (F, DQ, BW, VL): eight doubles at a time.
    Avx512,
}

impl Machine {
    /// All of them.
    pub const ALL: [Machine; 3] = [Machine::Portable, Machine::Avx2, Machine::Avx512];

    /// Whether this processor has it.
    pub fn is_there(self) -> bool {
        match self {
            Machine::Portable => true,
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            Machine::Avx2 => is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma"),
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            Machine::Avx512 => {
                Machine::Avx2.is_there()
                    && is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512vl")
            }
            #[cfg(not(all(target_arch = "x86_64", not(miri))))]
            Machine::Avx2 | Machine::Avx512 => false,
        }
    }

    /// The best one that this processor has.
    pub fn best() -> Machine {
        Machine::ALL.into_iter().rev().find(|m| m.is_there()).unwrap_or(Machine::Portable)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Machine::Portable => "portable",
            Machine::Avx2 => "AVX2",
            Machine::Avx512 => "AVX-512",
        }
    }
}

/// Where an argument comes from, as a type.
pub(crate) trait Source {
    /// A chunk of it.
    ///
    /// # Safety
    /// As for [`Kernel`], of which `p` is an argument.
    unsafe fn chunk<T: Copy>(p: *const u8, number: usize) -> [T; CHUNK];
}

/// Lanes.
pub(crate) struct Many;
/// One word for all lanes.
pub(crate) struct Same;

impl Source for Many {
    #[inline(always)]
    unsafe fn chunk<T: Copy>(p: *const u8, number: usize) -> [T; CHUNK] {
        p.cast::<[T; CHUNK]>().add(number).read()
    }
}

impl Source for Same {
    #[inline(always)]
    unsafe fn chunk<T: Copy>(p: *const u8, _: usize) -> [T; CHUNK] {
        // The low bytes of a word come first.
        const { assert!(cfg!(target_endian = "little"), "words are little-endian") };
        [p.cast::<T>().read(); CHUNK]
    }
}

/// How the first lanes of a chunk are written.
pub(crate) trait Tail {
    /// Writes the first `n` elements of a chunk, fewer than all.
    ///
    /// # Safety
    /// There is room for them, and the processor has the instruction set.
    unsafe fn write<R: Copy>(to: *mut R, new: [R; CHUNK], n: usize);
    /// Copies those of the first `n` elements where the mask holds.
    ///
    /// # Safety
    /// They are there, and do not overlap. The mask has room for `n` lanes rounded up to a multiple of [`CHUNK`]. The processor
    /// has the instruction set.
    #[inline(always)]
    unsafe fn copy_where<R: Copy>(from: *const R, to: *mut R, mask: *const u8, n: usize) {
        for l in 0..n {
            if mask.add(l).read() != 0 {
                to.add(l).write(from.add(l).read());
            }
        }
    }
}

/// Eight, four, two and one, as the number of lanes has them.
pub(crate) struct Halves;
impl Tail for Halves {
    #[inline(always)]
    unsafe fn write<R: Copy>(to: *mut R, new: [R; CHUNK], n: usize) {
        let from = new.as_ptr();
        let mut done = 0;
        for some in [8, 4, 2, 1] {
            if n & some != 0 {
                to.add(done).copy_from_nonoverlapping(from.add(done), some);
                done += some;
            }
        }
    }
}

/// A store with a mask.
#[cfg(all(target_arch = "x86_64", not(miri)))]
pub(crate) struct Masked;
#[cfg(all(target_arch = "x86_64", not(miri)))]
impl Tail for Masked {
    #[inline(always)]
    unsafe fn write<R: Copy>(to: *mut R, new: [R; CHUNK], n: usize) {
        use std::arch::x86_64::*;
        let mask = (1u32 << n) - 1;
        let from = new.as_ptr();
        match size_of::<R>() {
            1 => _mm_mask_storeu_epi8(to.cast(), mask as u16, from.cast::<__m128i>().read_unaligned()),
            2 => _mm256_mask_storeu_epi16(to.cast(), mask as u16, from.cast::<__m256i>().read_unaligned()),
            4 => _mm512_mask_storeu_epi32(to.cast(), mask as u16, from.cast::<__m512i>().read_unaligned()),
            _ => {
                let from = from.cast::<__m512i>();
                _mm512_mask_storeu_epi64(to.cast(), mask as u8, from.read_unaligned());
                let high = from.add(1).read_unaligned();
                _mm512_mask_storeu_epi64(to.add(8).cast(), (mask >> 8) as u8, high);
            }
        }
    }
    /// What a mask leaves out is not accessed.
    #[inline(always)]
    unsafe fn copy_where<R: Copy>(from: *const R, to: *mut R, mask: *const u8, n: usize) {
        use std::arch::x86_64::*;
        for done in (0..n).step_by(CHUNK) {
            let meant =
                _mm_test_epi8_mask(mask.add(done).cast::<__m128i>().read_unaligned(), _mm_set1_epi8(-1));
            let left = n - done;
            let meant = if left < CHUNK { meant & ((1 << left) - 1) } else { meant };
            let (from, to) = (from.add(done), to.add(done));
            match size_of::<R>() {
                1 => _mm_mask_storeu_epi8(to.cast(), meant, _mm_maskz_loadu_epi8(meant, from.cast())),
                2 => _mm256_mask_storeu_epi16(to.cast(), meant, _mm256_maskz_loadu_epi16(meant, from.cast())),
                4 => _mm512_mask_storeu_epi32(to.cast(), meant, _mm512_maskz_loadu_epi32(meant, from.cast())),
                _ => {
                    let (low, high) = (meant as u8, (meant >> 8) as u8);
                    _mm512_mask_storeu_epi64(to.cast(), low, _mm512_maskz_loadu_epi64(low, from.cast()));
                    // Places beyond may be nowhere: they are not accessed where nothing is meant.
                    let (from, to) = (from.wrapping_add(8), to.wrapping_add(8));
                    _mm512_mask_storeu_epi64(to.cast(), high, _mm512_maskz_loadu_epi64(high, from.cast()));
                }
            }
        }
    }
}

/// Iterations of the loop around stay as they are. They are vector instructions already; a compiler that does several of them
/// side by side checks for overlap, and takes the chunks apart again (twice the time).
#[inline(always)]
fn one_by_one() {
    #[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
    // SAFETY: it is nothing.
    unsafe {
        std::arch::asm!("", options(nomem, nostack, preserves_flags));
    }
}

/// Writes `n` lanes of `to`, in chunks that `f` gives.
///
/// # Safety
/// As for [`Kernel`].
#[inline(always)]
pub(crate) unsafe fn each<T: Tail, R: Copy>(n: usize, to: *mut u8, f: impl Fn(usize) -> [R; CHUNK]) {
    let to = to.cast::<R>();
    let (whole, rest) = (n / CHUNK, n % CHUNK);
    for number in 0..whole {
        to.add(CHUNK * number).cast::<[R; CHUNK]>().write(f(number));
        one_by_one();
    }
    if rest != 0 {
        T::write(to.add(CHUNK * whole), f(whole), rest);
    }
}

/// Compiles generic kernels for each instruction set: `name::<parameters>(machine)` is the one for a machine.
macro_rules! for_each_machine {
    ($($(#[$meta:meta])* fn $name:ident<$($g:ident: $bound:path),+>($($x:ident: $t:ty),*);)*) => { $(
        $(#[$meta])*
        pub(crate) fn $name<$($g: $bound),+>(machine: Machine) -> unsafe fn($($t),*) {
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            {
                #[target_feature(enable = "avx2,fma,bmi1,bmi2")]
                unsafe fn avx2<$($g: $bound),+>($($x: $t),*) {
                    bodies::$name::<$($g,)+ crate::kernels::Halves>($($x),*)
                }
                #[target_feature(enable = "avx2,fma,bmi1,bmi2,avx512f,avx512dq,avx512bw,avx512vl")]
                unsafe fn avx512<$($g: $bound),+>($($x: $t),*) {
                    bodies::$name::<$($g,)+ crate::kernels::Masked>($($x),*)
                }
                match machine {
                    Machine::Portable => bodies::$name::<$($g,)+ crate::kernels::Halves>,
                    Machine::Avx2 => avx2::<$($g),+>,
                    Machine::Avx512 => avx512::<$($g),+>,
                }
            }
            #[cfg(not(all(target_arch = "x86_64", not(miri))))]
            {
                let _ = machine;
                bodies::$name::<$($g,)+ crate::kernels::Halves>
            }
        }
    )* };
}
pub(crate) use for_each_machine;
