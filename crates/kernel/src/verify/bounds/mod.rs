//! Shows, without running code, that accesses stay inside of the memory that they are made for.
//!
//! Place in the pipeline: beside [`super::verify`], on code as it is lowered. Nothing is shared with the rules that leave checks of indices out. What is not
//! shown is not an error: it is listed, with its reason.
//!
//! # Claims
//! - A load, a store and an addition use an element that is there; a copy and a fill use elements that are there, if any.
//! - The `room` of an [`crate::Ins::Offset`] is there.
//! - The count of an [`crate::Ins::Alloc`] is not negative, and did not wrap round.
//! - A pointer that is handed on as an array ([`crate::Facts::array`]) has its sizes: they are not negative, and so many elements are there. This is claimed of arguments
//!   at a call, of results at the end of a function, and of registers where a loop begins, where its iteration ends, and where an arm of a branch ends.
//! - A pointer that is stored points to as many elements as the sizes say that are stored beside it. This is never shown.
//!
//! # How
//! A walk over the code (`places`) knows what registers hold as sums of products, with bounds from counters and from tests that the program has made
//! (`ranges`). Memory has a length: the count of its allocation, or the product of the sizes with which it was handed on. A claim is shown if the first element is not
//! below the beginning, and the last one is below the end. Arithmetic on registers wraps round: a sum that is compared is one of whole numbers only where it is shown to
//! be a word. A product of sizes is one where the program has asked, where an array of these sizes was handed on, or where it counts an allocation. Nothing needs
//! to be known of the sums in between: a sum that is in range is the word that the code computes, whatever wrapped round on the way.
//!
//! # What is believed
//! - The code has no alarm of [`super::verify`].
//! - Arguments of a function that nobody in the module calls are arrays with their sizes: the caller from outside has made them (words of a value).
//! - All claims before: whatever was claimed at a place holds behind it.
//! - An allocation that succeeds has at most 2^60 elements, and so has an array.
//! - A pointer that is loaded as an array has the sizes that are loaded after it: they were stored together.
//! - No loop has 2^63 iterations: a number that is not negative and only counts up stays so.
//! - A product of floats is the product of the numbers up to rounding (a relative 1e-12), as counts of elements are compared.
//!
//! Guarantees: if a run of a function from outside of the module uses an element that is not there, some claim that is listed does not hold in that run, at that place or before.
//! So a module without listed claims has no such run.
//!
//! Not looked at: loops in lanes (each access in lanes is listed), and whether elements were written before they are read.
//!
//! Cost: for each instruction a bounded number of steps, and for each loop the registers that it sets ([`Claims::work`]).

mod places;

use super::layout::Layout;
use super::{Around, types};
use crate::ir::Module;
use places::Looking;
use std::collections::BTreeMap;

/// What is claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// An element is there that is loaded, stored or added to.
    Access,
    /// The elements are there that are copied or filled.
    Range,
    /// The room of a pointer that is moved is there.
    Room,
    /// What counts the elements of new memory is a number of elements.
    Count,
    /// An array that is handed on has its sizes.
    Array,
    /// A pointer that is stored has the sizes beside it.
    Stored,
}

/// Why a claim is not shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// Nothing is known of the memory that the pointer points to.
    Memory,
    /// Where it begins is not shown to be inside.
    Begin,
    /// Where it ends is not shown to be inside.
    End,
    /// A size or a count may be negative, or may have wrapped round.
    Size,
    /// It is in lanes.
    Lanes,
}

/// A claim that is not shown.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Open {
    /// The name of the function.
    pub function: String,
    /// The instruction.
    pub instruction: String,
    /// What is claimed.
    pub kind: Kind,
    /// Why it is not shown.
    pub reason: Reason,
    /// The instructions around, the outermost first.
    pub path: Vec<String>,
}

impl std::fmt::Display for Open {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Open { function, instruction, kind, reason, .. } = self;
        write!(f, "function {function}: {instruction}: {kind:?} is not shown: {reason:?}")
    }
}

/// The claims of a module.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Claims {
    /// How many of each kind are right.
    pub shown: BTreeMap<Kind, usize>,
    /// The others.
    pub not_shown: Vec<Open>,
    /// What it cost: instructions gone through, registers renewed, and terms of sums that were touched.
    pub work: u64,
}

impl Claims {
    /// How many are shown.
    pub fn count_shown(&self) -> usize {
        self.shown.values().sum()
    }
    fn add(&mut self, other: Claims) {
        for (kind, count) in other.shown {
            *self.shown.entry(kind).or_default() += count;
        }
        self.not_shown.extend(other.not_shown);
        self.work += other.work;
    }
}

/// Looks at the accesses of a module. Cost: see above. Of a function with registers that are not there nothing is said: [`super::verify`] has an alarm.
pub fn look(module: &Module) -> Claims {
    let around = Around::unknown(module);
    let mut all = Claims::default();
    for f in module.functions.iter().filter(|f| types::types(f, &around).1) {
        all.add(Looking::over((module, f), &Layout::of(f, None), &around.callees));
    }
    all
}
