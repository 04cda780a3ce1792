//! Accumulators become reductions, plain maps and histograms (Fast CHAD notes, 3.1).
//!
//! An accumulation `acc[e] += v` in a nest of maps is a sum over the points of the nest. It is taken out of the nest and
//! regrouped by the fibres of the index `e`:
//!
//! - E1: dimensions that `e` does not mention are summed by `reduce (+)`, as the innermost loops of a new nest;
//! - E2, E7: a coordinate `s * p + b` becomes a strided slice of the accumulator, to which a whole array is added
//!   (several sites with different offsets are a stencil); mixed-radix coordinates are flattened first;
//! - E3: other indices become one histogram after the scope of the accumulator; numbers added to all components of one
//!   row are one histogram over columns (`plan::columns`);
//! - E4: quotients and remainders `p / c`, `p % c` of a dimension of `m * c` points are dimensions of `m` and `c` points
//!   (`delayed::split`), so that the sum over a segment is a sum over a row;
//! - E6: under a condition the value is 0 where the condition does not hold; nothing is evaluated where it was not; a
//!   condition that a sum does not change is asked once for the sum, one on counters costs nothing (it becomes a bound);
//! - E8: additions in a counted loop whose index does not depend on the iteration are summed after the loop, if what
//!   has to be stacked for it has fewer dimensions than what was added;
//! - E2 in counted loops: if every iteration adds somewhere else, the loop collects what is added, and the stack is added
//!   after it; it is at most as large as the accumulator;
//! - E9: what iterations of any loop add at one place, a number or an array, is a state of the loop, added once after it;
//! - a linear function of an inner sum is applied to one sum over the nest, not to every term (`plan::linear`).
//!
//! Values are followed to the inputs of the nest (`delayed`) and written anew in the order of the sum where that is as
//! cheap as the original; otherwise the nest hands them out as one more result, one map at a time, so that never more
//! than the points of one map are held. `scopes` then removes what is left of an accumulator that is only added to
//! as a whole (E10) or at known places, and unused ones (E11) go with `prune`.
//!
//! Assumes a checked program. Guarantees: values up to the order of summation, which the language leaves open for
//! accumulators; no expression that can stop the program is evaluated where it was not. Not changed: accumulators of
//! products and sums, additions in operators of reductions, additions in loops at places that change in another way.

mod carry;
mod delayed;
mod escape;
pub(crate) mod index;
mod nest;
mod plan;
mod scopes;
mod sites;

use crate::Ctx;
use delayed::Order;
use pullback_base::index::IdSet;
use pullback_core::prune::prune_body;
use pullback_core::{FunId, Program, Var};

/// How many accumulations of a function are treated.
const LIMIT: usize = 400;

/// Runs the pass. Cost: the size of a function times the number of accumulations in it.
pub fn eliminate_accumulators(program: &mut Program, _ctx: &Ctx) {
    let ids: Vec<FunId> = program.funs.ids().collect();
    for id in ids {
        if sites::find(program, id).is_empty() {
            continue;
        }
        let (mut tried, mut open, mut left) = (IdSet::new(), None, LIMIT);
        while left > 0 {
            match step(program, id, &mut tried, open) {
                Step::Taken(scope) => {
                    open = Some(scope);
                    left -= 1;
                }
                Step::Left => {
                    clean(program, id);
                    open = None;
                }
                Step::Done => break,
            }
        }
        // What a scope leaves may be all that another one was kept for.
        let mut before = usize::MAX;
        while crate::size(&program.funs[id].body) < before {
            before = crate::size(&program.funs[id].body);
            clean(program, id);
        }
    }
}

/// Views that only removed accumulations used would keep scopes open.
fn clean(program: &mut Program, id: FunId) {
    let mut body = std::mem::take(&mut program.funs[id].body);
    prune_body(program, &mut body);
    program.funs[id].body = body;
    scopes::close(program, id);
}

/// What has been done.
enum Step {
    /// An accumulation of this scope was taken out of its nest.
    Taken(Var),
    /// What is left to try is in another scope than the one that has changed: that one can be closed.
    Left,
    /// Nothing is left to try.
    Done,
}

/// Treats one accumulation. `open`: the scope that has changed.
fn step(program: &mut Program, id: FunId, tried: &mut IdSet<(Var, usize)>, open: Option<Var>) -> Step {
    let mut order = None;
    for site in sites::find(program, id) {
        for (k, attempt) in site.attempts.iter().enumerate() {
            if tried.contains(&(site.done, k)) {
                continue;
            }
            if open.is_some_and(|scope| scope != site.scope) {
                return Step::Left;
            }
            tried.insert((site.done, k));
            let order = order.get_or_insert_with(|| Order::of(program, &program.funs[id].body));
            if plan::apply(program, id, &site, *attempt, order) {
                scopes::lift_at(program, id, &site);
                return Step::Taken(site.scope);
            }
        }
    }
    Step::Done
}
