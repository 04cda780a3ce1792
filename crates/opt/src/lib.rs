//! Core to core optimisations.
//!
//! Every pass takes a checked program and gives a checked program that computes the same values, bit for bit but for the
//! rounding of sums of accumulators, for every input on which the first one runs to its end. (A pass may remove an error together with the unused value whose
//! computation would have stopped the program; it never turns an error into a wrong value that is used, and `assert` and checks
//! stay: `checks` makes them of what can stop a function that is differentiated. An array without elements may come to know inner sizes that a `map` over nothing could not tell.) No AD algorithm relies on a pass for its cost.

mod accumulators;
mod beside;
mod checks;
mod copy_elision;
mod cse;
mod dead_argument_elimination;
mod effects;
mod fuse;
mod gather;
mod guard_elimination;
mod hoist;
mod inline;
mod join;
mod merge;
mod one_hot_reduction;
mod rematerialise;
mod shorten;
mod simplify;
mod sink;
mod unbox;
mod unroll;

use pullback_base::index::{IdMap, Index};
use pullback_core::prune::prune_program;
use pullback_core::traverse::{for_each_stm, reachable_functions};
use pullback_core::{Exp, FunId, Program};

pub use accumulators::eliminate_accumulators;
pub use checks::{keep_all_checks, keep_checks, settle_checks};
pub use copy_elision::elide_copies;
pub use cse::cse;
pub use dead_argument_elimination::eliminate_dead_arguments;
pub use fuse::fuse;
pub use gather::gather;
pub use guard_elimination::eliminate_guards;
pub use hoist::hoist;
pub use inline::inline;
pub use join::join_branches;
pub use one_hot_reduction::reduce_one_hot;
pub use rematerialise::rematerialise;
pub use shorten::shorten;
pub use simplify::simplify;
pub use sink::sink;
pub use unbox::unbox;
pub use unroll::unroll;

// Only the tests of this crate use these: they examine conditions of a pass by brute force.
#[doc(hidden)]
pub use accumulators::index::{Affine, Polynomial, is_injective};

/// What passes may assume and how far they go.
#[derive(Clone, Debug)]
pub struct Ctx {
    /// No derivative will be taken of this program any more: custom rules, `stop_gradient` and `#[store]` have done
    /// their work and are replaced by what they contain.
    pub derivatives_done: bool,
    /// `inline` does not let a function grow beyond so many statements (functions of a few statements excepted).
    pub inline_limit: usize,
    /// `inline` makes copies of a function, beyond the first, only if they have at most so many statements together.
    pub copies_limit: usize,
}

impl Default for Ctx {
    fn default() -> Self {
        Ctx { derivatives_done: false, inline_limit: 50_000, copies_limit: 8_000 }
    }
}

/// A pass, as data for the driver.
#[derive(Clone, Copy)]
pub struct Pass {
    /// Its name on the command line.
    pub name: &'static str,
    /// One line for people.
    pub description: &'static str,
    /// Where the idea comes from.
    pub source: &'static str,
    /// Runs it on a checked program.
    pub run: fn(&mut Program, &Ctx),
}

impl std::fmt::Debug for Pass {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Pass({})", self.name)
    }
}

/// Calls of functions that are not recursive are replaced by their bodies.
pub static INLINE: Pass = Pass {
    name: "inline",
    description: "replace calls of non-recursive functions by their bodies",
    source: "classic",
    run: inline,
};
/// What can stop a differentiated function.
pub static KEEP_CHECKS: Pass = Pass {
    name: "keep_checks",
    description: "give operations that can stop a function to be differentiated a check that stays where they go",
    source: "ours",
    run: keep_checks,
};
/// Checks that need not run.
pub static SETTLE_CHECKS: Pass = Pass {
    name: "settle_checks",
    description: "remove checks that are known to hold, or that an operation makes anyway",
    source: "linear inequalities: Fourier and Motzkin; array bounds checks: Gupta, LOPLAS 1993",
    run: settle_checks,
};
/// Copies, constants, exact identities, known shapes.
pub static SIMPLIFY: Pass = Pass {
    name: "simplify",
    description: "propagate copies and constants, apply exact identities, use what is known about shapes",
    source: "classic; only identities that hold for every IEEE value",
    run: simplify,
};
/// Minimum and maximum in operators.
pub static CHOOSE: Pass = Pass {
    name: "choose",
    description: "minimum and maximum in operators choose the first of equal arguments, where derivatives are taken",
    source: "ours: what is unrolled or rewritten must choose as the operator did",
    run: |program, _| pullback_core::choose::all_operators_choose(program),
};
/// Common subexpressions.
pub static CSE: Pass = Pass {
    name: "cse",
    description: "compute equal pure expressions once, where the first is in scope",
    source: "classic (value numbering on scoped tables)",
    run: cse,
};
/// Dead code.
pub static PRUNE: Pass = Pass {
    name: "prune",
    description: "remove what no result needs, single results of loops, maps and branches included",
    source: "Fast CHAD notes, E11 and dead-code elimination per component",
    run: |program, _| prune_program(program),
};
/// Invariant code.
pub static HOIST: Pass = Pass {
    name: "hoist",
    description: "move code that does not depend on the iteration out of loops and array operations",
    source: "classic; what may cost or stop the program moves under the condition that it runs at all",
    run: hoist,
};
/// Fusion of array operations.
pub static FUSE: Pass = Pass {
    name: "fuse",
    description: "join array operations of the same width that feed one another or read the same arrays",
    source: "Henriksen et al., Futhark, PLDI 2017",
    run: fuse,
};
/// Short operations over known elements.
pub static UNROLL: Pass = Pass {
    name: "unroll",
    description: "replace short loops, and maps and reductions over arrays with known elements, by straight-line code",
    source: "classic; before differentiation, so that indices stay constant",
    run: unroll,
};
/// Code for one branch only.
pub static SINK: Pass = Pass {
    name: "sink",
    description: "move code that only one branch needs into it",
    source: "let-floating inwards: Peyton Jones, Partain and Santos, ICFP 1996",
    run: sink,
};
/// Reductions where their arrays are made.
pub static SHORTEN: Pass = Pass {
    name: "shorten",
    description: "reduce arrays where they have been made, so that they live for a shorter time",
    source: "scheduling for fewer live values: Goodman and Hsu, ICS 1988; of arrays",
    run: shorten,
};
/// Branches on the same value.
pub static JOIN_BRANCHES: Pass = Pass {
    name: "join_branches",
    description: "join branches on the same value, so that reverse code finds what forward code computed in its arm",
    source: "ours; jump threading, for structured programs",
    run: join_branches,
};
/// Conditions that only ask whether a place exists.
pub static GUARD_ELIMINATION: Pass = Pass {
    name: "guard_elimination",
    description: "add to places that may not exist without asking: what is added there is ignored",
    source: "ours; Fast CHAD notes, 3.1: E2 (stencils) with conditions at borders",
    run: eliminate_guards,
};
/// Interfaces of functions.
pub static DEAD_ARGUMENT_ELIMINATION: Pass = Pass {
    name: "dead_argument_elimination",
    description: "remove parameters that a function does not use and results that no caller uses",
    source: "classic",
    run: eliminate_dead_arguments,
};
/// Tapes without boxes.
pub static UNBOX: Pass = Pass {
    name: "unbox",
    description: "turn arrays of boxed arrays of one shape into regular arrays",
    source: "regular nested arrays: Henriksen et al., Futhark, PLDI 2017",
    run: unbox,
};
/// Columns of tapes that follow from others.
pub static REMATERIALISE: Pass = Pass {
    name: "rematerialise",
    description: "make again what is cheap to make from other columns of a tape, instead of storing it",
    source: "recomputation: Smeding, PhD thesis, 7.5.1.5; across maps that were fused",
    run: rematerialise,
};
/// Rows copied for nothing.
pub static COPY_ELISION: Pass = Pass {
    name: "copy_elision",
    description: "read rows where they lie, do not clear what is written again, copy where the elements are read anyway",
    source: "classic (dead stores, copy forwarding)",
    run: elide_copies,
};
/// Accumulators in nests of maps.
pub static ELIMINATE_ACCUMULATORS: Pass = Pass {
    name: "eliminate_accumulators",
    description: "turn accumulations in nests of maps into reductions, plain maps and histograms",
    source: "Fast CHAD notes, 3.1: E1 to E4, E6 to E10",
    run: eliminate_accumulators,
};
/// Additions at moved places.
pub static GATHER: Pass = Pass {
    name: "gather",
    description: "turn additions of vectors at moved places into maps",
    source: "Fast CHAD notes, 3.1: E2 (stencils)",
    run: gather,
};
/// Sums with one term.
pub static ONE_HOT_REDUCTION: Pass = Pass {
    name: "one_hot_reduction",
    description: "make sums of which all terms but one are zeros of that term alone",
    source: "Fast CHAD notes, 3.1: E6, for the condition that the counter is a number",
    run: reduce_one_hot,
};
/// Functions that no entry point reaches.
pub static DROP_UNUSED_FUNCTIONS: Pass = Pass {
    name: "drop_unused_functions",
    description: "remove functions that no entry point can reach (programs without entry points stay as they are)",
    source: "classic",
    run: |program, _| drop_unused_functions(program),
};

/// All passes of this crate.
pub static PASSES: &[&Pass] = &[
    &INLINE,
    &KEEP_CHECKS,
    &SETTLE_CHECKS,
    &CHOOSE,
    &SIMPLIFY,
    &UNROLL,
    &CSE,
    &PRUNE,
    &HOIST,
    &FUSE,
    &SINK,
    &SHORTEN,
    &JOIN_BRANCHES,
    &GUARD_ELIMINATION,
    &DEAD_ARGUMENT_ELIMINATION,
    &UNBOX,
    &REMATERIALISE,
    &COPY_ELISION,
    &ELIMINATE_ACCUMULATORS,
    &GATHER,
    &ONE_HOT_REDUCTION,
    &DROP_UNUSED_FUNCTIONS,
];

/// The pass of this name.
pub fn pass(name: &str) -> Option<&'static Pass> {
    PASSES.iter().copied().find(|p| p.name == name)
}

/// Removes functions that no entry point can reach, and renumbers the others. Programs without entry points stay as
/// they are.
pub fn drop_unused_functions(program: &mut Program) {
    let entries: Vec<FunId> =
        program.funs.iter_enumerated().filter(|(_, f)| f.entry.is_some()).map(|(id, _)| id).collect();
    if entries.is_empty() {
        return;
    }
    let kept = reachable_functions(program, entries);
    let numbers: IdMap<FunId, FunId> = kept.iter().enumerate().map(|(k, id)| (*id, FunId::new(k))).collect();
    let funs = std::mem::take(&mut program.funs);
    for (id, mut fun) in funs.iter_enumerated().map(|(id, f)| (id, f.clone())) {
        if kept.contains(&id) {
            renumber_calls(&mut fun.body, &numbers);
            program.funs.push(fun);
        }
    }
}

fn renumber_calls(body: &mut pullback_core::Body, numbers: &IdMap<FunId, FunId>) {
    for stm in &mut body.stms {
        if let Exp::Call(f, _) = &mut stm.exp
            && let Some(new) = numbers.get(f)
        {
            *f = *new;
        }
        for scope in stm.exp.bodies_mut() {
            renumber_calls(scope.body, numbers);
        }
    }
}

/// Number of statements in a body, nested ones included.
fn size(body: &pullback_core::Body) -> usize {
    let mut count = 0;
    for_each_stm(body, &mut |_| count += 1);
    count
}
