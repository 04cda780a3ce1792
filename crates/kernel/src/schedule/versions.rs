//! Versions of a result: the lowering writes some sums of large results in two ways, and a branch chooses by their size.
//!
//! Where results are too large to go over them for each element of a sum, but loops over these elements could be joined, both are kept until it is known what
//! came of them: in a joined loop the results are gone over once for all elements in lanes.
//!
//! Assumes that either version gives the same values. Guarantees: one of them is left where sizes are expected.

use super::pipeline::Step;
use super::scheduler::Scheduler;
use super::work::{Way, Work};
use super::{fusion, places};
use crate::ir::{Block, Ins, Operand, Reg};
use pullback_base::index::IdSet;
use pullback_prim::Op;
use std::collections::BTreeSet;

/// So much larger results may be where loops over what they are sums of are joined.
const LARGER: i64 = 64;

/// What a byte costs that is written and read again by another loop over more than caches hold, in instructions ([`Model`]). That loop goes over
/// all results for every few elements, which leave the first cache: so more than what memory takes alone (decision 45).
///
/// [`Model`]: super::Model
const FAR: f64 = 2.0;

/// Takes the versions for the expected sizes.
pub(super) const CHOOSE: Step = Step {
    name: "versions",
    optional: false,
    parts: &[],
    does: "takes the version of each sum that is for the expected size of its result; keeps a second one where loops could be joined",
    assumes: "either version gives the same values",
    guarantees: "no choice is left where sizes are expected",
    keeps: false,
    run: choose,
};

/// Takes the better of two versions.
pub(super) const SETTLE: Step = Step {
    name: "version-choice",
    optional: false,
    parts: &[],
    does: "of two versions with joined loops, takes the one that is expected to cost less",
    assumes: "contractions are in tiles, and loops are joined, in both",
    guarantees: "one version is left",
    keeps: false,
    run: settle,
};

fn choose(w: &mut Work<'_>) -> bool {
    let choices: IdSet<Reg> = w.f.regs.ids().filter(|r| w.f.regs[*r].facts.choice).collect();
    if choices.is_empty() {
        return false;
    }
    let body = w.take_body();
    let s = w.scheduler(&body);
    let try_both = w.options.does(fusion::STEP.name) && w.options.does(fusion::LARGER_RESULTS);
    let far = try_both.then(|| s.chosen(body.clone(), &choices, LARGER));
    let near = s.chosen(body, &choices, i64::from(!is_free(w)));
    w.done(s);
    w.other = far.filter(|far| *far != near).map(|body| Way { body, owned: BTreeSet::new() });
    w.f.body = near;
    true
}

fn settle(w: &mut Work<'_>) -> bool {
    let far = w.other.take();
    let has_two = far.is_some();
    if let Some(far) = far
        && far.owned.len() > w.owned.len()
        && (is_free(w) || pays(w, &far))
    {
        w.f.body = far.body;
        w.owned = far.owned;
    }
    for r in std::mem::take(&mut w.owned) {
        w.f.regs[r].facts.owned = Some(r);
    }
    has_two
}

/// Where no memory is near all results are large: so tests see small ones.
fn is_free(w: &Work<'_>) -> bool {
    w.options.model.near == Some(0)
}

/// Whether the other way is expected to cost no more, with what its results take in far memory.
fn pays(w: &mut Work<'_>, far: &Way) -> bool {
    let more: Vec<Reg> = far.owned.difference(&w.owned).copied().collect();
    let cost = |w: &mut Work<'_>, body: &Block| {
        let mut s = w.scheduler(body);
        let cost = s.tried(body, &[]);
        let sizes = std::mem::take(&mut s.sizes);
        w.done(s);
        let places = places::Places::of(&w.f, body);
        let bytes: i64 = more.iter().filter_map(|r| places.bytes(*r, &sizes)).sum();
        cost + FAR * bytes as f64
    };
    let near = w.f.body.clone();
    cost(w, &far.body) <= fusion::TOLERANCE * cost(w, &near)
}

impl Scheduler<'_> {
    /// The block without the ways that are not taken for the expected sizes, where either would do.
    /// `times`: how much larger than they say results may be.
    fn chosen(&self, block: Block, choices: &IdSet<Reg>, times: i64) -> Block {
        let mut out = Vec::with_capacity(block.len());
        for mut ins in block {
            for inner in ins.blocks_mut() {
                *inner = self.chosen(std::mem::take(inner), choices, times);
            }
            match ins {
                Ins::If { condition: Operand::Reg(c), then, otherwise } if choices.contains(&c) => {
                    let sides = match self.ranges.op(c.into()) {
                        Some((Op::Le, [a, b])) => self.costs().size(*a).zip(self.costs().size(*b)),
                        _ => None,
                    };
                    match sides {
                        Some((a, b)) => {
                            out.extend(if a <= b.saturating_mul(times) { then } else { otherwise })
                        }
                        None => out.push(Ins::If { condition: Operand::Reg(c), then, otherwise }),
                    }
                }
                _ => out.push(ins),
            }
        }
        out
    }
}
