//! What passes work on: a function, and what one pass hands to another.

use super::chunks::Made;
use super::scheduler::{Expected, Scheduler};
use super::{Options, register_promotion};
use crate::ir::{Block, Function, Reg};
use pullback_base::index::IdMap;
use std::collections::BTreeSet;

/// A function on its way through the passes.
pub(super) struct Work<'a> {
    pub(super) options: &'a Options,
    /// The function; of two versions, the first.
    pub(super) f: Function,
    pub(super) expected: Expected<'a>,
    /// A second version of its body.
    pub(super) other: Option<Way>,
    /// Memory that became rows of iterations in the first version.
    pub(super) owned: BTreeSet<Reg>,
    /// What is known of the body, where the pass before kept it.
    pub(super) kept: Option<Scheduler<'a>>,
    /// What registers are expected to hold in loops of lanes.
    pub(super) sizes: IdMap<Reg, i64>,
    /// What is known of the pointers of the function, whose registers its parts have too.
    pub(super) pointers: Option<register_promotion::Pointers>,
    /// Functions of parts, of all functions so far.
    pub(super) made: &'a mut Made,
}

/// A version of a body, and memory that became rows of iterations in it.
pub(super) struct Way {
    pub(super) body: Block,
    pub(super) owned: BTreeSet<Reg>,
}

impl<'a> Work<'a> {
    /// A function that no pass has seen; `args`: what its arguments are expected to be.
    pub(super) fn new(
        f: Function,
        options: &'a Options,
        args: &'a [Option<i64>],
        made: &'a mut Made,
    ) -> Work<'a> {
        Work {
            options,
            f,
            expected: Expected::of(args),
            other: None,
            owned: BTreeSet::new(),
            kept: None,
            sizes: IdMap::new(),
            pointers: None,
            made,
        }
    }
    /// The body, while a pass rewrites it.
    pub(super) fn take_body(&mut self) -> Block {
        std::mem::take(&mut self.f.body)
    }
    /// What is known of the body: what was kept, or worked out. It has the registers of the function until it is given back.
    pub(super) fn scheduler(&mut self, body: &Block) -> Scheduler<'a> {
        match self.kept.take() {
            Some(mut s) => {
                s.regs = std::mem::take(&mut self.f.regs);
                s
            }
            None => Scheduler::new(self.options, &mut self.f, body, &self.expected),
        }
    }
    /// Gives it back.
    pub(super) fn done(&mut self, s: Scheduler<'a>) {
        self.f.regs = s.regs;
    }
    /// Gives it back, and keeps it for the next pass.
    pub(super) fn keep(&mut self, mut s: Scheduler<'a>) {
        self.f.regs = std::mem::take(&mut s.regs);
        self.kept = Some(s);
    }
    /// Runs this on each version.
    pub(super) fn each_version(&mut self, mut run: impl FnMut(&mut Work<'a>)) {
        run(self);
        if self.other.is_some() {
            self.swap();
            run(self);
            self.swap();
        }
    }
    fn swap(&mut self) {
        if let Some(other) = &mut self.other {
            std::mem::swap(&mut self.f.body, &mut other.body);
            std::mem::swap(&mut self.owned, &mut other.owned);
        }
    }
}
