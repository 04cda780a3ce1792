//! Shows, without running code, that iterations of loops in any order ([`crate::Order::Any`]) do not use memory that others write.
//!
//! Place in the pipeline: beside [`super::verify`], on code as it is lowered; a wrong claim of order is what threads and lanes turn into a wrong value. Nothing is shared with the rules that
//! choose the order, nor with those of scheduling. What is not shown is not an error: the rule is simple, and some orders are right for other reasons.
//!
//! # Claims
//! A loop in any order makes a claim for each memory from outside of it that its iterations write. The same holds for memory that they both add to and read. Memory that an iteration makes is its own. Additions may meet
//! each other. A loop that surely has one iteration claims nothing.
//!
//! # The rule
//! All uses of the memory are in `row * i + [c, c + row)` (`rows`). They have one base, one `row` and one `c`; none of these changes with the counter `i`. A base is a register's content that was there before the
//! loop: an allocation, an argument, or what two arms chose. What arms in the loop choose is looked at on each way. Where that is not so, each two uses that may not meet are looked at: they are in such a row; or all that the one uses
//! over all iterations is before or behind the other; or they are in places that change in turn, `row * ((t + a) mod k)` with another `a`.
//!
//! # How
//! A walk over the code (`uses`) knows what registers hold as sums of products (`ranges`). It knows bounds of numbers from counters, counts, and tests that the program has made. So
//! the last index of an inner loop is known, and that it ends in its row. Which memory a pointer may reach comes from the analysis of memory of [`super::verify`].
//! What functions do with memory of their callers is summed up for each parameter.
//!
//! # What it believes
//! - The code has no alarm of [`super::verify`].
//! - An index that has no bounds stays in the `room` of its pointer ([`crate::Ins::Offset`]); a callee stays in that of its argument. A room that is seen to be left is not believed.
//! - The extents of an array are not negative, and offsets in it do not wrap round: where a count is a sum of products, all factors are extents.
//!
//! Guarantees: for a claim that is shown no run has two iterations of which one uses what the other writes, if what is believed is so.
//!
//! Cost: one more pass of [`super::verify`], and for each use of memory a bounded number of steps for each loop in any order around it ([`Claims::work`]).

pub(super) mod rows;
pub(super) mod uses;

use super::flow::Flow;
use super::{callees_first, summary_matters, types};
use crate::ir::Module;
use pullback_base::index::Index;
use uses::Looking;

/// That iterations of a loop in any order do not meet in some memory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Claim {
    /// The name of the function.
    pub function: String,
    /// The counter of the loop.
    pub counter: String,
    /// The memory.
    pub memory: String,
}

/// Why a claim is not shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// Pointers to the memory come from different places, or from one that changes with the iteration.
    Base,
    /// An index has no bounds, nor has its pointer room.
    Index,
    /// Uses are not in the row of their iteration, nor apart otherwise.
    Row,
    /// It is memory of the caller, and what several arguments point to may be the same.
    Caller,
    /// A function that is called uses it, and not through an argument with room in a row.
    Call,
}

/// A claim that is not shown.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Open {
    /// The claim.
    pub claim: Claim,
    /// Why it is not shown.
    pub reason: Reason,
    /// Two instructions that may use the same memory in different iterations.
    pub uses: [String; 2],
    /// The instructions around, the outermost first; the loop is the last.
    pub path: Vec<String>,
}

impl std::fmt::Display for Open {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Open { claim: Claim { function, counter, memory }, uses: [a, b], .. } = self;
        write!(f, "function {function}, loop of {counter} in any order: in {memory} {a} and {b} may meet")
    }
}

/// The claims of loops in any order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Claims {
    /// Those that are right.
    pub shown: Vec<Claim>,
    /// The others.
    pub open: Vec<Open>,
    /// What it cost: what [`super::Verified::work`] counts, uses of memory, and terms of sums that were touched.
    pub work: u64,
}

/// How memory is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum How {
    Read,
    Write,
    Add,
}

/// What a function does with memory of its callers.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Effects {
    /// With that which each parameter points to.
    pub(super) params: Vec<Vec<How>>,
    /// With any that its arguments reach, in another way.
    pub(super) beyond: Vec<How>,
}

/// Looks at the loops in any order of a module. Cost: see above, at most a few times for functions that call themselves. Of a function with registers that are
/// not there nothing is said: [`super::verify`] has an alarm.
pub fn look(module: &Module) -> Claims {
    let (around, verified) = super::all(module);
    let flows: Vec<Option<Flow<'_>>> = module
        .functions
        .iter()
        .map(|f| types::types(f, &around).1.then(|| Flow::noting(f, &around.callees)))
        .collect();
    let mut work = verified.work + flows.iter().flatten().map(Flow::work).sum::<u64>();
    let mut effects = vec![Effects::default(); module.functions.len()];
    let mut found = vec![Claims::default(); module.functions.len()];
    let order = callees_first(module);
    loop {
        let mut grows = false;
        for id in &order {
            let k = id.index();
            let Some(flow) = &flows[k] else { continue };
            let (claims, own) = Looking::over(flow, &effects);
            work += claims.work;
            found[k] = claims;
            grows |= effects[k] != own && summary_matters(module, *id, &order);
            effects[k] = own;
        }
        if !grows {
            break;
        }
    }
    let mut all = Claims { work, ..Claims::default() };
    for claims in found {
        all.shown.extend(claims.shown);
        all.open.extend(claims.open);
    }
    all
}
