//! Loops in lanes, and those that threads share.
//!
//! Of each nest the loops that are expected to cost least in lanes are put in lanes ([`Scheduler`]). The loops around them that are in no other loop in any order
//! become functions, called for their parts ([`chunks`]), where there is much work for them.
//!
//! Guarantees: the same values, but for the order in which folds and additions of floats take elements together. How many parts there are depends on
//! sizes only.

use super::pipeline::Step;
use super::scheduler::Scheduler;
use super::work::Work;
use super::{added, chunks, cost, places};
use crate::ir::{Block, Ins, Order};
use pullback_base::index::IdSet;

/// Rows that are read often are filled where lanes lie side by side (decision 40).
pub(super) const PACKING: &str = "packing";

/// Parts that add to rows of their own have no copies (decision 50).
const PRIVATE_ROWS: &str = "private-rows";

/// Puts loops in lanes, and makes functions of the parts that threads share.
pub(super) const STEP: Step = Step {
    name: "vectorisation",
    optional: false,
    parts: &[PACKING, PRIVATE_ROWS],
    does: "puts the loops in lanes for which that is expected to cost least; threads share those around them in parts",
    assumes: "loops in any order, none in lanes; places have one register each",
    guarantees: "the same values, but for the order of sums",
    keeps: false,
    run,
};

fn run(w: &mut Work<'_>) -> bool {
    let body = w.take_body();
    let is_asked = w.options.grain.is_some() && w.options.does(PRIVATE_ROWS) && added::adds(&body);
    let places = is_asked.then(|| places::Places::of(&w.f, &body));
    let s = w.scheduler(&body);
    let (counts, _) = added::pointers(&body, &s.defined, &s.regs);
    let mut t = Top { s, name: &w.f.name, counts, places, made: &mut *w.made, times: 1.0 };
    w.f.body = if w.options.grain.is_some() { t.block(body) } else { t.s.block(body) };
    let mut s = t.s;
    w.sizes = std::mem::take(&mut s.sizes);
    w.done(s);
    true
}

/// The part of the expected time of a function from which on threads share a loop: for less they gain nothing that could be
/// noticed, and each such loop is a function more.
const SHARE: f64 = 0.005;

/// The part of a grain from which on threads may share a loop that is started again and again: below, to find out how many parts it
/// is takes too much of its time. For larger sizes than expected it may be many.
const AGAIN: f64 = 0.1;

/// The loops of a function that are in no other loop in any order: threads share them. Those inside of loops whose iterations come one
/// after the other are started again and again: threads share those that are not small.
struct Top<'a, 'b> {
    s: Scheduler<'a>,
    name: &'b str,
    counts: added::Sizes,
    /// What is known about places before loops were put in lanes; none where nothing is added to them.
    places: Option<places::Places>,
    made: &'b mut chunks::Made,
    /// How often the present loops are expected to be started.
    times: f64,
}

impl Top<'_, '_> {
    fn block(&mut self, block: Block) -> Block {
        block.into_iter().flat_map(|ins| self.ins(ins)).collect()
    }
    fn ins(&mut self, ins: Ins) -> Block {
        match ins {
            Ins::For { i, from, to, body, order: Order::Any(folds) } => {
                let order = Order::Any(folds.clone());
                let apart = self.places.as_ref().map_or_else(IdSet::new, |places| places.apart(i, &body));
                let code = self.s.for_loop(i, from, to, body, order);
                let wide = |x: &Ins| match x {
                    Ins::Lanes { i: j, lanes, .. } if *j == i => Some(*lanes),
                    _ => None,
                };
                let together = code.iter().find_map(wide).unwrap_or(1);
                let total = self.s.widths.as_ref().map_or(0.0, |w| w.total);
                let cost = self.s.cost(&code);
                let grain = self.s.options.grain.unwrap_or(f64::INFINITY);
                if self.times * cost < SHARE * total || (self.s.depth > 0 && cost < AGAIN * grain) {
                    return code;
                }
                let l = chunks::Scheduled { i, from, to, folds: &folds, code: code.clone(), together };
                let mut regs = self.s.regs.clone();
                let known = chunks::Known {
                    costs: self.s.costs(),
                    lanes: self.s.options.lanes,
                    grain,
                    relaxed: self.s.options.relaxed,
                    roots: &self.s.roots,
                    counts: &self.counts,
                    offsets: &self.s.offsets,
                    apart: &apart,
                };
                match chunks::outline(&l, &known, &mut regs, (self.name, self.made)) {
                    Some(code) => {
                        self.s.regs = regs;
                        code
                    }
                    None => code,
                }
            }
            Ins::For { i, from, to, body, order: Order::Given } => {
                let trips = self.s.costs().trips(from, to);
                let body = self.inside(body, trips);
                vec![Ins::For { i, from, to, body, order: Order::Given }]
            }
            Ins::While { condition, test, body } => {
                let (condition, body) = (self.inside(condition, cost::TRIPS), self.inside(body, cost::TRIPS));
                vec![Ins::While { condition, test, body }]
            }
            Ins::If { condition, then, otherwise } => {
                vec![Ins::If { condition, then: self.block(then), otherwise: self.block(otherwise) }]
            }
            other => self.s.ins(other),
        }
    }
    /// What is in a loop whose iterations, so many, come one after the other.
    fn inside(&mut self, block: Block, trips: f64) -> Block {
        self.s.depth += 1;
        let times = self.times;
        self.times = times * trips;
        let block = self.block(block);
        self.times = times;
        self.s.depth -= 1;
        block
    }
}
