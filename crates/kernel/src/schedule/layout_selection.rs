//! Which memory lies interleaved.
//!
//! What makes the function cheaper is chosen: first all memory with rows of one size together (the same loops use it), then one by
//! one. A trial makes no code that stays: what a loop would cost, and how its code would use memory, is worked out once for each
//! choice among the memory that it uses, and what is around it follows from that.

use super::pipeline::Step;
use super::scheduler::Scheduler;
use super::work::Work;
use super::{lanes, row_layout};
use crate::ir::{Block, Ins, Operand, Order, Reg};
use pullback_base::index::{IdMap, IdSet};

/// Chooses the memory whose rows lie interleaved, so that lanes reach elements side by side.
pub(super) const STEP: Step = Step {
    name: "interleaving",
    optional: true,
    parts: &[],
    does: "chooses the memory whose rows lie interleaved, so that lanes reach elements side by side",
    assumes: "loops that no pass but vectorisation changes any more",
    guarantees: "the code stays; the choice is known to the passes behind",
    keeps: true,
    run,
};

fn run(w: &mut Work<'_>) -> bool {
    let body = w.take_body();
    let mut s = w.scheduler(&body);
    let candidates = row_layout::candidates(&body, &s.defined);
    s.choose_rows(candidates, &body, &w.f.results);
    w.f.body = body;
    w.keep(s);
    false
}

/// What is known of code.
#[derive(Clone, Default)]
struct Tried {
    cost: f64,
    /// Candidates that are used outside of lanes.
    plain: IdSet<Reg>,
    /// Candidates that are allocated outside of lanes.
    made: IdSet<Reg>,
}

impl Tried {
    fn add(&mut self, other: &Tried) {
        self.cost += other.cost;
        self.add_uses(other);
    }
    fn add_uses(&mut self, other: &Tried) {
        self.plain.extend(&other.plain);
        self.made.extend(&other.made);
    }
}

/// A block.
struct Parts<'a> {
    /// What stays as it is whatever is chosen.
    rest: Tried,
    parts: Vec<Part<'a>>,
}

/// An instruction that may become another one.
struct Part<'a> {
    ins: &'a Ins,
    inside: Vec<Parts<'a>>,
    /// The candidates that it uses, with what is inside.
    uses: IdSet<Reg>,
    /// What has been tried: the interleaved memory among those, and what came of it.
    known: Vec<(Vec<Reg>, Tried)>,
}

impl Scheduler<'_> {
    /// Chooses the memory that is interleaved among these candidates with the sizes of their rows.
    pub(super) fn choose_rows(&mut self, rows: Vec<(Reg, Operand)>, body: &Block, results: &[Reg]) {
        let fixed: IdSet<Reg> = results.iter().filter_map(|r| self.roots[*r]).collect();
        let rows: Vec<(Reg, Operand)> = rows.into_iter().filter(|(r, _)| !fixed.contains(r)).collect();
        if rows.is_empty() {
            return;
        }
        let candidates = rows.iter().map(|(r, _)| *r).collect();
        let mut parts = self.parts(body, &candidates);
        let mut groups: Vec<Vec<(Reg, Operand)>> = Vec::new();
        for (r, row) in &rows {
            match groups.iter_mut().find(|g| g[0].1 == *row) {
                Some(group) => group.push((*r, *row)),
                None => groups.push(vec![(*r, *row)]),
            }
        }
        let single = groups.iter().filter(|g| g.len() > 1).flatten().map(|x| vec![*x]).collect::<Vec<_>>();
        let (mut best, mut chosen) = (self.trial(&mut parts), IdMap::new());
        for group in groups.into_iter().chain(single) {
            if group.iter().all(|(r, _)| chosen.contains_key(r)) {
                continue;
            }
            self.rows = chosen.clone();
            self.rows.extend(group);
            let cost = self.trial(&mut parts);
            if !self.rows.is_empty() && cost < best {
                best = cost;
                chosen = self.rows.clone();
            }
        }
        self.rows = chosen;
    }
    fn parts<'b>(&self, block: &'b Block, candidates: &IdSet<Reg>) -> Parts<'b> {
        let mut out = Parts { rest: Tried::default(), parts: Vec::new() };
        for ins in block {
            let inside: Vec<Parts<'_>> =
                ins.blocks().into_iter().map(|b| self.parts(b, candidates)).collect();
            if inside.is_empty() && !matches!(ins, Ins::Copy { .. } | Ins::Fill { .. }) {
                out.rest.add(&self.tried_plain(ins, &[], candidates));
                continue;
            }
            let mut uses = IdSet::new();
            row_layout::mentioned(std::slice::from_ref(ins), &mut |r| {
                uses.extend(self.candidate(r, candidates))
            });
            out.parts.push(Part { ins, inside, uses, known: Vec::new() });
        }
        out
    }
    /// The candidate that a pointer points into.
    fn candidate(&self, r: Reg, candidates: &IdSet<Reg>) -> Option<Reg> {
        self.roots.get(r).copied().flatten().filter(|root| candidates.contains(root))
    }
    /// Leaves that memory interleaved that is only used by lanes, and gives the cost of the function then.
    fn trial(&mut self, parts: &mut Parts<'_>) -> f64 {
        loop {
            let tried = self.tried_block(parts);
            let before = self.rows.len();
            self.rows.retain(|r, _| tried.made.contains(r) && !tried.plain.contains(r));
            if self.rows.len() == before {
                return tried.cost;
            }
        }
    }
    fn tried_block(&mut self, parts: &mut Parts<'_>) -> Tried {
        let mut out = parts.rest.clone();
        for part in &mut parts.parts {
            let rows: Vec<Reg> = part.uses.iter().filter(|r| self.rows.contains_key(r)).copied().collect();
            let known = part.known.iter().position(|(key, _)| *key == rows);
            let known = known.unwrap_or_else(|| {
                let tried = self.tried_part(part);
                part.known.push((rows, tried));
                part.known.len() - 1
            });
            out.add(&part.known[known].1);
        }
        out
    }
    /// What becomes of a part: lanes, or what is inside in lanes, whichever costs less.
    fn tried_part(&mut self, part: &mut Part<'_>) -> Tried {
        let is_loop = matches!(part.ins, Ins::For { .. } | Ins::While { .. });
        self.depth += usize::from(is_loop);
        let inside: Vec<Tried> = part.inside.iter_mut().map(|b| self.tried_block(b)).collect();
        self.depth -= usize::from(is_loop);
        let plain = self.tried_plain(part.ins, &inside, &part.uses);
        let given = self.regs.len();
        let wide = match part.ins {
            Ins::For { i, from, to, body, order: Order::Any(folds) } => {
                let l = lanes::Loop { i: *i, from: *from, to: *to, body, folds };
                let wide = self.side_by_side(&l, self.options.lanes);
                wide.ok().filter(|code| self.cost(code) < plain.cost)
            }
            Ins::Copy { count, ty, .. } | Ins::Fill { count, ty, .. } if self.is_short(*count, *ty) => {
                self.in_lanes(part.ins)
            }
            _ => None,
        };
        let out = wide.map_or(plain, |code| {
            let mut out = Tried { cost: self.cost(&code), ..Tried::default() };
            row_layout::used_outside_lanes(&code, &mut |r| out.plain.extend(self.candidate(r, &part.uses)));
            row_layout::made_outside_lanes(&code, &mut out.made);
            out
        });
        self.regs.truncate(given);
        out
    }
    /// An instruction as it is, with this inside.
    fn tried_plain(&self, ins: &Ins, inside: &[Tried], candidates: &IdSet<Reg>) -> Tried {
        let mut costs = inside.iter().map(|t| t.cost);
        let cost = self.costs().around(ins, 1.0, &mut |_, _| costs.next().unwrap_or(0.0));
        let mut out = Tried { cost, ..Tried::default() };
        inside.iter().for_each(|t| out.add_uses(t));
        if !matches!(ins, Ins::Offset { .. }) {
            ins.reads(&mut |a| out.plain.extend(a.as_reg().and_then(|r| self.candidate(r, candidates))));
        }
        if let Ins::Alloc { to, .. } = ins {
            out.made.extend(candidates.get(to));
        }
        out
    }
}
