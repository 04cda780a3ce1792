//! What a module consists of: instructions counted, and found by the names of the registers that they set.

use pullback_kernel::{Function, Ins, Module, Order, Reg, walk};
use pullback_prim::{Op, Prim, Scalar};

/// How many instructions of a module are of a kind.
pub(crate) fn count(module: &Module, is: impl Fn(&Ins) -> bool) -> usize {
    module.functions.iter().map(|f| inside(&f.body, &is)).sum()
}

/// How many instructions of a block, with those inside, are of a kind.
pub(crate) fn inside(block: &[Ins], is: impl Fn(&Ins) -> bool) -> usize {
    all(block).into_iter().filter(|ins| is(ins)).count()
}

/// All instructions of a block, those inside after the one that they are in.
pub(crate) fn all(block: &[Ins]) -> Vec<&Ins> {
    let mut out = Vec::new();
    walk(block, &mut |ins| out.push(ins));
    out
}

// Kinds

pub(crate) fn allocations(ins: &Ins) -> bool {
    matches!(ins, Ins::Alloc { .. })
}
pub(crate) fn copies(ins: &Ins) -> bool {
    matches!(ins, Ins::Copy { .. })
}
/// Checks that may stop the program.
pub(crate) fn checks(ins: &Ins) -> bool {
    matches!(ins, Ins::Fail { .. })
}
/// Additions to memory, also in lanes.
pub(crate) fn additions(ins: &Ins) -> bool {
    matches!(ins, Ins::Accumulate { .. } | Ins::AccumulateLanes { .. })
}
pub(crate) fn parts(ins: &Ins) -> bool {
    matches!(ins, Ins::Chunks { .. })
}
pub(crate) fn branches(ins: &Ins) -> bool {
    matches!(ins, Ins::If { .. })
}
/// Loops with a counter whose iterations come one by one.
pub(crate) fn loops(ins: &Ins) -> bool {
    matches!(ins, Ins::For { .. })
}
pub(crate) fn in_any_order(ins: &Ins) -> bool {
    matches!(ins, Ins::For { order: Order::Any(_), .. })
}
pub(crate) fn in_lanes(ins: &Ins) -> bool {
    matches!(ins, Ins::Lanes { .. })
}
/// This operation on scalars of this type.
pub(crate) fn operation(op: Op, of: Scalar) -> impl Fn(&Ins) -> bool {
    move |ins| matches!(ins, Ins::Prim { prim, .. } if *prim == Prim::Op(op, of))
}

// Names

/// The instructions that set a register of this name, in all functions.
pub(crate) fn named<'a>(module: &'a Module, name: &str) -> Vec<&'a Ins> {
    let is_named = |f: &Function, r: &Reg| f.regs[*r].hint == name;
    let of = |f: &'a Function| {
        let sets = |ins: &&Ins| ins.sets().iter().any(|r| is_named(f, r));
        all(&f.body).into_iter().filter(sets).collect::<Vec<_>>()
    };
    module.functions.iter().flat_map(of).collect()
}
