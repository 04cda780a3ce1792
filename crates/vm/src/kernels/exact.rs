//! Kernels of the operations whose results are exact or correctly rounded: arithmetic, comparisons, selection, conversions.

use super::element::{Element, Float, Number, To, Truth, Whole};
use super::{Halves, Kernel, Machine, Many, Same, Side, for_each_machine};
use pullback_prim::{Op, Prim, Scalar};
use std::marker::PhantomData;

/// An operation of one argument.
pub(crate) trait Unary {
    type X: Element;
    type R: Element;
    fn of(x: Self::X) -> Self::R;
}

/// An operation of two arguments of one type.
pub(crate) trait Binary {
    type X: Element;
    type R: Element;
    fn of(x: Self::X, y: Self::X) -> Self::R;
}

macro_rules! operations {
    (unary $($name:ident<T: $bound:ident>(x) -> $R:ty = |$x:ident| $value:expr;)*) => { $(
        struct $name<T>(PhantomData<T>);
        impl<T: $bound> Unary for $name<T> {
            type X = T;
            type R = $R;
            #[inline(always)]
            fn of($x: T) -> $R {
                $value
            }
        }
    )* };
    (binary $($name:ident<T: $bound:ident>(x, y) -> $R:ty = |$x:ident, $y:ident| $value:expr;)*) => { $(
        struct $name<T>(PhantomData<T>);
        impl<T: $bound> Binary for $name<T> {
            type X = T;
            type R = $R;
            #[inline(always)]
            fn of($x: T, $y: T) -> $R {
                $value
            }
        }
    )* };
}

operations! { unary
    Identity<T: Element>(x) -> T = |x| x;
    Neg<T: Number>(x) -> T = |x| x.neg();
    Abs<T: Number>(x) -> T = |x| x.abs();
    Sgn<T: Number>(x) -> T = |x| x.sgn();
    Sqrt<T: Float>(x) -> T = |x| x.sqrt();
    Floor<T: Float>(x) -> T = |x| x.floor();
    Ceil<T: Float>(x) -> T = |x| x.ceil();
    Round<T: Float>(x) -> T = |x| x.round();
    Trunc<T: Float>(x) -> T = |x| x.trunc();
    // A number that is not a number differs from itself.
    IsNan<T: Float>(x) -> Truth = |x| x.ne(&x).into();
    IsInf<T: Float>(x) -> Truth = |x| x.is_inf().into();
    Not<T: Whole>(x) -> T = |x| x.not();
}

operations! { binary
    Add<T: Number>(x, y) -> T = |x, y| x.add(y);
    Sub<T: Number>(x, y) -> T = |x, y| x.sub(y);
    Mul<T: Number>(x, y) -> T = |x, y| x.mul(y);
    Min<T: Number>(x, y) -> T = |x, y| x.min(y);
    Max<T: Number>(x, y) -> T = |x, y| x.max(y);
    Div<T: Float>(x, y) -> T = |x, y| x.div(y);
    StrongMul<T: Float>(x, y) -> T = |x, y| x.strong_mul(y);
    MutualMul<T: Float>(x, y) -> T = |x, y| x.mutual_mul(y);
    Fmod<T: Float>(x, y) -> T = |x, y| x.fmod(y);
    FloorDiv<T: Whole>(x, y) -> T = |x, y| x.floor_div(y);
    FloorMod<T: Whole>(x, y) -> T = |x, y| x.floor_mod(y);
    Quot<T: Whole>(x, y) -> T = |x, y| x.quot(y);
    Rem<T: Whole>(x, y) -> T = |x, y| x.rem(y);
    Power<T: Whole>(x, y) -> T = |x, y| x.power(y);
    And<T: Whole>(x, y) -> T = |x, y| x.and(y);
    Or<T: Whole>(x, y) -> T = |x, y| x.or(y);
    Xor<T: Whole>(x, y) -> T = |x, y| x.xor(y);
    Shl<T: Whole>(x, y) -> T = |x, y| x.shift_left(y);
    Shr<T: Whole>(x, y) -> T = |x, y| x.shift_right(y);
    Eq<T: Element>(x, y) -> Truth = |x, y| (x == y).into();
    Ne<T: Element>(x, y) -> Truth = |x, y| (x != y).into();
    Lt<T: Element>(x, y) -> Truth = |x, y| (x < y).into();
    Le<T: Element>(x, y) -> Truth = |x, y| (x <= y).into();
}

/// A conversion.
struct Convert<A, B>(PhantomData<(A, B)>);
impl<A: Element + To<B>, B: Element> Unary for Convert<A, B> {
    type X = A;
    type R = B;
    #[inline(always)]
    fn of(x: A) -> B {
        x.to()
    }
}

/// Negation of truth.
struct Contrary;
impl Unary for Contrary {
    type X = Truth;
    type R = Truth;
    #[inline(always)]
    fn of(x: Truth) -> Truth {
        Truth(x.0 ^ 1)
    }
}

macro_rules! truths {
    ($($name:ident(x, y) = |$x:ident, $y:ident| $value:expr;)*) => { $(
        struct $name;
        impl Binary for $name {
            type X = Truth;
            type R = Truth;
            #[inline(always)]
            fn of($x: Truth, $y: Truth) -> Truth {
                Truth($value)
            }
        }
    )* };
}
truths! {
    Both(x, y) = |x, y| x.0 & y.0;
    Either(x, y) = |x, y| x.0 | y.0;
    Differ(x, y) = |x, y| x.0 ^ y.0;
}

/// The bodies, compiled for each instruction set.
mod bodies {
    use super::super::{CHUNK, Many, Source, Tail, each};
    use super::{Binary, Element, Truth, Unary};
    use std::array::from_fn;

    #[inline(always)]
    pub(super) unsafe fn unary<O: Unary, A: Source, T: Tail>(
        n: usize,
        to: *mut u8,
        a: *const u8,
        _: *const u8,
        _: *const u8,
    ) {
        each::<T, _>(n, to, |number| {
            let x: [O::X; CHUNK] = A::chunk(a, number);
            from_fn(|i| O::of(x[i]))
        });
    }
    #[inline(always)]
    pub(super) unsafe fn binary<O: Binary, A: Source, B: Source, T: Tail>(
        n: usize,
        to: *mut u8,
        a: *const u8,
        b: *const u8,
        _: *const u8,
    ) {
        each::<T, _>(n, to, |number| {
            let (x, y): ([O::X; CHUNK], [O::X; CHUNK]) = (A::chunk(a, number), B::chunk(b, number));
            from_fn(|i| O::of(x[i], y[i]))
        });
    }
    #[inline(always)]
    pub(super) unsafe fn select<E: Element, A: Source, B: Source, T: Tail>(
        n: usize,
        to: *mut u8,
        condition: *const u8,
        a: *const u8,
        b: *const u8,
    ) {
        each::<T, _>(n, to, |number| {
            let c: [Truth; CHUNK] = Many::chunk(condition, number);
            let (x, y): ([E; CHUNK], [E; CHUNK]) = (A::chunk(a, number), B::chunk(b, number));
            from_fn(|i| if c[i].0 != 0 { x[i] } else { y[i] })
        });
    }
}

for_each_machine! {
    /// One argument.
    fn unary<O: Unary, A: super::Source>(n: usize, to: *mut u8, a: *const u8, b: *const u8, c: *const u8);
    /// Two arguments.
    fn binary<O: Binary, A: super::Source, B: super::Source>(n: usize, to: *mut u8, a: *const u8, b: *const u8, c: *const u8);
    /// A choice by a condition of lanes.
    fn select<T: Element, A: super::Source, B: super::Source>(n: usize, to: *mut u8, a: *const u8, b: *const u8, c: *const u8);
}

unsafe fn one_of_scalar<O: Unary>(_: usize, to: *mut u8, a: *const u8, _: *const u8, _: *const u8) {
    to.cast::<u64>().write(O::of(a.cast::<O::X>().read()).word());
}
unsafe fn two_of_scalar<O: Binary>(_: usize, to: *mut u8, a: *const u8, b: *const u8, _: *const u8) {
    to.cast::<u64>().write(O::of(a.cast::<O::X>().read(), b.cast::<O::X>().read()).word());
}

/// Which kernel is wanted: the instruction set, and where the arguments come from. All scalars: the result is a scalar, a word.
#[derive(Clone, Copy)]
struct Wanted<'a> {
    machine: Machine,
    sides: &'a [Side],
}

/// The kernel for the machine, or the portable one for elements that are not common.
macro_rules! for_type {
    ($x:ty, $w:ident, $name:ident::<$($g:ty),+>) => {
        if <$x as Element>::IS_COMMON { $name::<$($g),+>($w.machine) } else { bodies::$name::<$($g,)+ Halves> }
    };
}

fn one<O: Unary>(w: Wanted<'_>) -> Option<Kernel> {
    Some(match w.sides {
        [Side::Scalar] => one_of_scalar::<O>,
        [Side::Lanes] => for_type!(O::X, w, unary::<O, Many>),
        _ => return None,
    })
}

fn two<O: Binary>(w: Wanted<'_>) -> Option<Kernel> {
    Some(match w.sides {
        [Side::Scalar, Side::Scalar] => two_of_scalar::<O>,
        [Side::Lanes, Side::Lanes] => for_type!(O::X, w, binary::<O, Many, Many>),
        [Side::Lanes, Side::Scalar] => for_type!(O::X, w, binary::<O, Many, Same>),
        [Side::Scalar, Side::Lanes] => for_type!(O::X, w, binary::<O, Same, Many>),
        _ => return None,
    })
}

fn choice<T: Element>(w: Wanted<'_>) -> Option<Kernel> {
    Some(match w.sides {
        [Side::Lanes, Side::Lanes, Side::Lanes] => for_type!(T, w, select::<T, Many, Many>),
        [Side::Lanes, Side::Lanes, Side::Scalar] => for_type!(T, w, select::<T, Many, Same>),
        [Side::Lanes, Side::Scalar, Side::Lanes] => for_type!(T, w, select::<T, Same, Many>),
        [Side::Lanes, Side::Scalar, Side::Scalar] => for_type!(T, w, select::<T, Same, Same>),
        _ => return None,
    })
}

fn compare<T: Element>(op: Op, w: Wanted<'_>) -> Option<Kernel> {
    match op {
        Op::Eq => two::<Eq<T>>(w),
        Op::Ne => two::<Ne<T>>(w),
        Op::Lt => two::<Lt<T>>(w),
        Op::Le => two::<Le<T>>(w),
        Op::Select => choice::<T>(w),
        _ => None,
    }
}

fn number<T: Number>(op: Op, w: Wanted<'_>) -> Option<Kernel> {
    match op {
        Op::Neg => one::<Neg<T>>(w),
        Op::Abs => one::<Abs<T>>(w),
        Op::Sgn => one::<Sgn<T>>(w),
        Op::Add => two::<Add<T>>(w),
        Op::Sub => two::<Sub<T>>(w),
        Op::Mul => two::<Mul<T>>(w),
        Op::Min | Op::MinFirst => two::<Min<T>>(w),
        Op::Max | Op::MaxFirst => two::<Max<T>>(w),
        _ => compare::<T>(op, w),
    }
}

fn float<T: Float>(op: Op, w: Wanted<'_>) -> Option<Kernel> {
    match op {
        Op::Sqrt => one::<Sqrt<T>>(w),
        Op::Floor => one::<Floor<T>>(w),
        Op::Ceil => one::<Ceil<T>>(w),
        Op::Round => one::<Round<T>>(w),
        Op::Trunc => one::<Trunc<T>>(w),
        Op::IsNan => one::<IsNan<T>>(w),
        Op::IsInf => one::<IsInf<T>>(w),
        Op::Div => two::<Div<T>>(w),
        Op::StrongMul => two::<StrongMul<T>>(w),
        Op::MutualMul => two::<MutualMul<T>>(w),
        Op::Mod => two::<Fmod<T>>(w),
        _ => number::<T>(op, w),
    }
}

fn whole<T: Whole>(op: Op, w: Wanted<'_>) -> Option<Kernel> {
    match op {
        Op::Not => one::<Not<T>>(w),
        Op::Div => two::<FloorDiv<T>>(w),
        Op::Mod => two::<FloorMod<T>>(w),
        Op::Quot => two::<Quot<T>>(w),
        Op::Rem => two::<Rem<T>>(w),
        Op::Pow => two::<Power<T>>(w),
        Op::And => two::<And<T>>(w),
        Op::Or => two::<Or<T>>(w),
        Op::Xor => two::<Xor<T>>(w),
        Op::Shl => two::<Shl<T>>(w),
        Op::Shr => two::<Shr<T>>(w),
        _ => number::<T>(op, w),
    }
}

fn truth(op: Op, w: Wanted<'_>) -> Option<Kernel> {
    match op {
        Op::Not => one::<Contrary>(w),
        Op::And => two::<Both>(w),
        Op::Or => two::<Either>(w),
        Op::Xor => two::<Differ>(w),
        _ => compare::<Truth>(op, w),
    }
}

/// The value of an expression in which `$t` is the type in memory of a scalar type.
macro_rules! with_type {
    ($s:expr, $t:ident => $value:expr) => {
        with_type!(@ $s, $t, $value, F32 f32, F64 f64, I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64, Bool Truth)
    };
    (@ $s:expr, $t:ident, $value:expr, $($scalar:ident $of:ty),*) => {
        match $s {
            $(Scalar::$scalar => {
                type $t = $of;
                $value
            })*
        }
    };
}

fn converted<A, B: Element>(w: Wanted<'_>) -> Option<Kernel>
where
    A: Element + To<B>,
{
    one::<Convert<A, B>>(w)
}

fn conversion<A>(to: Scalar, w: Wanted<'_>) -> Option<Kernel>
where
    A: Element + To<f32> + To<f64> + To<i8> + To<i16> + To<i32> + To<i64>,
    A: To<u8> + To<u16> + To<u32> + To<u64> + To<Truth>,
{
    with_type!(to, B => converted::<A, B>(w))
}

/// The kernel of a primitive for arguments from these sides; `None` for one that is not exact, and for a condition that is a
/// scalar.
pub fn exact(prim: Prim, sides: &[Side], machine: Machine) -> Option<Kernel> {
    match prim {
        Prim::Op(op, s) => {
            let w = Wanted { machine, sides };
            match s {
                Scalar::F32 => float::<f32>(op, w),
                Scalar::F64 => float::<f64>(op, w),
                Scalar::I8 => whole::<i8>(op, w),
                Scalar::I16 => whole::<i16>(op, w),
                Scalar::I32 => whole::<i32>(op, w),
                Scalar::I64 => whole::<i64>(op, w),
                Scalar::U8 => whole::<u8>(op, w),
                Scalar::U16 => whole::<u16>(op, w),
                Scalar::U32 => whole::<u32>(op, w),
                Scalar::U64 => whole::<u64>(op, w),
                Scalar::Bool => truth(op, w),
            }
        }
        Prim::Convert(from, to) => {
            let w = Wanted { machine, sides };
            with_type!(from, A => conversion::<A>(to, w))
        }
    }
}

fn copied<T: Element>(side: Side, machine: Machine) -> Kernel {
    match side {
        Side::Scalar => unary::<Identity<T>, Same>(machine),
        Side::Lanes => unary::<Identity<T>, Many>(machine),
    }
}

/// The kernel that gives a register of lanes what a scalar or a register holds.
pub fn identity(s: Scalar, side: Side, machine: Machine) -> Kernel {
    match s.bytes() {
        1 => copied::<Truth>(side, machine),
        2 => copied::<u16>(side, machine),
        4 => copied::<u32>(side, machine),
        _ => copied::<u64>(side, machine),
    }
}
