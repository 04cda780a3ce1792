//! Two operations on doubles in one kernel, each rounded by itself: what the first one gives stays in registers of the processor.

use super::{Kernel, Machine, Many, Same, Side, for_each_machine};
use pullback_prim::Op;

/// An operation of two doubles.
pub(crate) trait Step {
    fn of(x: f64, y: f64) -> f64;
}

macro_rules! steps {
    ($($name:ident = |$x:ident, $y:ident| $value:expr;)*) => { $(
        struct $name;
        impl Step for $name {
            #[inline(always)]
            fn of($x: f64, $y: f64) -> f64 {
                $value
            }
        }
    )* };
}
steps! {
    Add = |x, y| x + y;
    Sub = |x, y| x - y;
    From = |x, y| y - x;
    Mul = |x, y| x * y;
}

mod bodies {
    use super::super::{CHUNK, Source, Tail, each};
    use super::Step;
    use std::array::from_fn;

    #[inline(always)]
    pub(super) unsafe fn pair<F: Step, G: Step, A: Source, B: Source, C: Source, T: Tail>(
        n: usize,
        to: *mut u8,
        a: *const u8,
        b: *const u8,
        c: *const u8,
    ) {
        each::<T, f64>(n, to, |number| {
            let (x, y): ([f64; CHUNK], [f64; CHUNK]) = (A::chunk(a, number), B::chunk(b, number));
            let z: [f64; CHUNK] = C::chunk(c, number);
            from_fn(|i| G::of(F::of(x[i], y[i]), z[i]))
        });
    }
    #[inline(always)]
    pub(super) unsafe fn with_itself<F: Step, G: Step, A: Source, B: Source, T: Tail>(
        n: usize,
        to: *mut u8,
        a: *const u8,
        b: *const u8,
        _: *const u8,
    ) {
        each::<T, f64>(n, to, |number| {
            let (x, y): ([f64; CHUNK], [f64; CHUNK]) = (A::chunk(a, number), B::chunk(b, number));
            from_fn(|i| {
                let t = F::of(x[i], y[i]);
                G::of(t, t)
            })
        });
    }
}

for_each_machine! {
    /// `(a first b) second c`.
    fn pair<F: Step, G: Step, A: super::Source, B: super::Source, C: super::Source>(n: usize, to: *mut u8, a: *const u8, b: *const u8, c: *const u8);
    /// `t second t`, where `t` is `a first b`.
    fn with_itself<F: Step, G: Step, A: super::Source, B: super::Source>(n: usize, to: *mut u8, a: *const u8, b: *const u8, c: *const u8);
}

/// Where the second operation takes what the first one gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// As its first argument; the other one comes from there.
    First(Side),
    /// As its second argument.
    Second(Side),
    /// As both.
    Both,
}

/// The kernel of two operations on doubles, if there is one: `sides` are those of the first one.
pub fn two(
    (first, sides): (Op, [Side; 2]),
    (second, taken): (Op, Taken),
    machine: Machine,
) -> Option<Kernel> {
    match first {
        Op::Add => after::<Add>(sides, second, taken, machine),
        Op::Sub => after::<Sub>(sides, second, taken, machine),
        Op::Mul => after::<Mul>(sides, second, taken, machine),
        _ => None,
    }
}

fn after<F: Step>(sides: [Side; 2], second: Op, taken: Taken, machine: Machine) -> Option<Kernel> {
    match (second, taken) {
        (Op::Add, Taken::Both) => doubled::<F, Add>(sides, machine),
        (Op::Mul, Taken::Both) => doubled::<F, Mul>(sides, machine),
        (Op::Add, Taken::First(z) | Taken::Second(z)) => from::<F, Add>(sides, z, machine),
        (Op::Mul, Taken::First(z) | Taken::Second(z)) => from::<F, Mul>(sides, z, machine),
        (Op::Sub, Taken::First(z)) => from::<F, Sub>(sides, z, machine),
        (Op::Sub, Taken::Second(z)) => from::<F, From>(sides, z, machine),
        _ => None,
    }
}

fn doubled<F: Step, G: Step>(sides: [Side; 2], machine: Machine) -> Option<Kernel> {
    Some(match sides {
        [Side::Lanes, Side::Lanes] => with_itself::<F, G, Many, Many>(machine),
        [Side::Lanes, Side::Scalar] => with_itself::<F, G, Many, Same>(machine),
        [Side::Scalar, Side::Lanes] => with_itself::<F, G, Same, Many>(machine),
        [Side::Scalar, Side::Scalar] => return None,
    })
}

fn from<F: Step, G: Step>(sides: [Side; 2], z: Side, machine: Machine) -> Option<Kernel> {
    Some(match (sides, z) {
        ([Side::Lanes, Side::Lanes], Side::Lanes) => pair::<F, G, Many, Many, Many>(machine),
        ([Side::Lanes, Side::Lanes], Side::Scalar) => pair::<F, G, Many, Many, Same>(machine),
        ([Side::Lanes, Side::Scalar], Side::Lanes) => pair::<F, G, Many, Same, Many>(machine),
        ([Side::Lanes, Side::Scalar], Side::Scalar) => pair::<F, G, Many, Same, Same>(machine),
        ([Side::Scalar, Side::Lanes], Side::Lanes) => pair::<F, G, Same, Many, Many>(machine),
        ([Side::Scalar, Side::Lanes], Side::Scalar) => pair::<F, G, Same, Many, Same>(machine),
        ([Side::Scalar, Side::Scalar], _) => return None,
    })
}
