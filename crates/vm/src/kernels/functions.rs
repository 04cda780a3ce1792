//! Kernels of functions such as `exp`: those of `pullback-maths`, with the same bits for every instruction set and for scalars.

use super::lanes::Wide;
#[cfg(all(target_arch = "x86_64", not(miri)))]
use super::lanes::x86::{Avx2, Avx512};
use super::{Kernel, Machine, Side};
use pullback_maths::portable::One;
use pullback_maths::{Function, Named, Visitor};
use pullback_prim::{Op, Scalar};

/// The most lanes of any machine.
const MOST: usize = 8;

/// A float as the functions take it.
pub(super) trait Argument: Copy + Default {
    /// Reads as many as there are lanes.
    ///
    /// # Safety
    /// They are there.
    unsafe fn read<L: Wide>(cx: &L, from: *const Self) -> L::F;
    /// Writes as many as there are lanes.
    ///
    /// # Safety
    /// They are there.
    unsafe fn write<L: Wide>(cx: &L, to: *mut Self, x: L::F);
}

impl Argument for f64 {
    #[inline(always)]
    unsafe fn read<L: Wide>(cx: &L, from: *const f64) -> L::F {
        cx.read(from)
    }
    #[inline(always)]
    unsafe fn write<L: Wide>(cx: &L, to: *mut f64, x: L::F) {
        cx.write(to, x);
    }
}

impl Argument for f32 {
    #[inline(always)]
    unsafe fn read<L: Wide>(cx: &L, from: *const f32) -> L::F {
        cx.widen(cx.read_single(from))
    }
    #[inline(always)]
    unsafe fn write<L: Wide>(cx: &L, to: *mut f32, x: L::F) {
        cx.write_single(to, cx.narrow(x));
    }
}

/// Where the two arguments come from; the second one is not read by functions of one.
trait Sides {
    const ARITY: usize;
    const FIRST: Side;
    const SECOND: Side;
}
struct Single;
impl Sides for Single {
    const ARITY: usize = 1;
    const FIRST: Side = Side::Lanes;
    const SECOND: Side = Side::Scalar;
}
macro_rules! pairs {
    ($($name:ident $first:ident $second:ident;)*) => { $(
        struct $name;
        impl Sides for $name {
            const ARITY: usize = 2;
            const FIRST: Side = Side::$first;
            const SECOND: Side = Side::$second;
        }
    )* };
}
pairs! {
    LanesLanes Lanes Lanes;
    LanesScalar Lanes Scalar;
    ScalarLanes Scalar Lanes;
}

/// The argument at lane `at`.
#[inline(always)]
unsafe fn argument<L: Wide, T: Argument>(cx: &L, side: Side, from: *const u8, at: usize) -> L::F {
    match side {
        Side::Lanes => T::read(cx, from.cast::<T>().add(at)),
        Side::Scalar => T::read(cx, [from.cast::<T>().read(); MOST].as_ptr()),
    }
}

#[inline(always)]
unsafe fn applied<L: Wide, N: Named, T: Argument, S: Sides>(
    cx: &L,
    a: *const u8,
    b: *const u8,
    at: usize,
) -> L::F {
    let x = argument::<L, T>(cx, S::FIRST, a, at);
    let value = match S::ARITY {
        1 => N::apply(cx, &[x]),
        _ => N::apply(cx, &[x, argument::<L, T>(cx, S::SECOND, b, at)]),
    };
    // The arity was compared when the kernel was chosen.
    value.unwrap_or(x)
}

/// `n` lanes of a function.
#[inline(always)]
unsafe fn lanes<L: Wide, N: Named, T: Argument, S: Sides>(
    cx: &L,
    n: usize,
    to: *mut u8,
    a: *const u8,
    b: *const u8,
) {
    let to = to.cast::<T>();
    let mut done = 0;
    while done < n {
        let value = applied::<L, N, T, S>(cx, a, b, done);
        if n - done >= L::COUNT {
            T::write(cx, to.add(done), value);
        } else {
            let mut rest = [T::default(); MOST];
            T::write(cx, rest.as_mut_ptr(), value);
            to.add(done).copy_from_nonoverlapping(rest.as_ptr(), n - done);
        }
        done += L::COUNT;
    }
}

unsafe fn portable<N: Named, T: Argument, S: Sides>(
    n: usize,
    to: *mut u8,
    a: *const u8,
    b: *const u8,
    _: *const u8,
) {
    lanes::<One, N, T, S>(&One, n, to, a, b);
}
/// One value, with the instruction for fused multiply-add.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[target_feature(enable = "avx2,fma")]
unsafe fn fused<N: Named, T: Argument, S: Sides>(
    n: usize,
    to: *mut u8,
    a: *const u8,
    b: *const u8,
    _: *const u8,
) {
    lanes::<One, N, T, S>(&One, n, to, a, b);
}
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[target_feature(enable = "avx2,fma")]
unsafe fn avx2<N: Named, T: Argument, S: Sides>(
    n: usize,
    to: *mut u8,
    a: *const u8,
    b: *const u8,
    _: *const u8,
) {
    lanes::<Avx2, N, T, S>(&Avx2, n, to, a, b);
}
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[target_feature(enable = "avx2,fma,avx512f,avx512dq,avx512bw,avx512vl")]
unsafe fn avx512<N: Named, T: Argument, S: Sides>(
    n: usize,
    to: *mut u8,
    a: *const u8,
    b: *const u8,
    _: *const u8,
) {
    lanes::<Avx512, N, T, S>(&Avx512, n, to, a, b);
}

/// The kernel for a function as a type.
struct Choose<'a> {
    s: Scalar,
    sides: &'a [Side],
    machine: Machine,
}

impl Visitor for Choose<'_> {
    type Out = Option<Kernel>;
    fn visit<N: Named>(self) -> Option<Kernel> {
        match self.s {
            Scalar::F64 => self.typed::<N, f64>(),
            Scalar::F32 => self.typed::<N, f32>(),
            _ => None,
        }
    }
}

impl Choose<'_> {
    fn typed<N: Named, T: Argument>(&self) -> Option<Kernel> {
        if N::FUNCTION.facts().arity != self.sides.len() {
            return None;
        }
        Some(match self.sides {
            // One lane at the place of the word. Of an `f32` only the low half is written, and the rest is 0 for every word.
            [Side::Scalar] => self.one_value::<N, T, Single>(),
            [Side::Scalar, Side::Scalar] => self.one_value::<N, T, LanesLanes>(),
            [Side::Lanes] => self.many_values::<N, T, Single>(),
            [Side::Lanes, Side::Lanes] => self.many_values::<N, T, LanesLanes>(),
            [Side::Lanes, Side::Scalar] => self.many_values::<N, T, LanesScalar>(),
            [Side::Scalar, Side::Lanes] => self.many_values::<N, T, ScalarLanes>(),
            _ => return None,
        })
    }
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    fn one_value<N: Named, T: Argument, S: Sides>(&self) -> Kernel {
        match self.machine {
            Machine::Portable => portable::<N, T, S>,
            Machine::Avx2 | Machine::Avx512 => fused::<N, T, S>,
        }
    }
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    fn many_values<N: Named, T: Argument, S: Sides>(&self) -> Kernel {
        match self.machine {
            Machine::Portable => portable::<N, T, S>,
            Machine::Avx2 => avx2::<N, T, S>,
            Machine::Avx512 => avx512::<N, T, S>,
        }
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    fn one_value<N: Named, T: Argument, S: Sides>(&self) -> Kernel {
        portable::<N, T, S>
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    fn many_values<N: Named, T: Argument, S: Sides>(&self) -> Kernel {
        let _ = self.machine;
        portable::<N, T, S>
    }
}

/// The kernel of a function for arguments from these sides; `None` if there is none. One that gives a scalar does one lane,
/// and of the word of an `f32` it sets the low half only.
pub fn function(op: Op, s: Scalar, sides: &[Side], machine: Machine) -> Option<Kernel> {
    Function::of_op(op)?.visit(Choose { s, sides, machine })
}
