//! Which memory lies interleaved.
//!
//! What makes the function cheaper is chosen: first all memory with rows of one size together (the same loops use it), then one by
//! one. A trial makes no code: what a loop in any order would cost, and how its code would use memory, is worked out once for each
//! choice among the memory that it uses, and what is around it follows from that.

use super::{Scheduler, lanes, rows};
use crate::ir::{Block, Ins, Operand, Order, Reg};
use pullback_base::Table;
use pullback_base::index::{IdMap, IdSet};

struct Trials {
    /// Memory that could be interleaved.
    candidates: IdSet<Reg>,
    /// By the counter of a loop in any order: the candidates that it uses. Loops that share a counter have none.
    uses: IdMap<Reg, Option<Vec<Reg>>>,
    /// By the counter of a loop, and the interleaved memory that it uses.
    known: Table<(Reg, Vec<Reg>), Tried>,
}

/// What is known of code.
#[derive(Default)]
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
        self.uses(other);
    }
    fn uses(&mut self, other: &Tried) {
        self.plain.extend(&other.plain);
        self.made.extend(&other.made);
    }
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
        let mut trials = Trials { candidates, uses: IdMap::new(), known: Table::new() };
        self.note_uses(body, &mut trials);
        let mut groups: Vec<Vec<(Reg, Operand)>> = Vec::new();
        for (r, row) in &rows {
            match groups.iter_mut().find(|g| g[0].1 == *row) {
                Some(group) => group.push((*r, *row)),
                None => groups.push(vec![(*r, *row)]),
            }
        }
        let single = groups.iter().filter(|g| g.len() > 1).flatten().map(|x| vec![*x]).collect::<Vec<_>>();
        let (mut best, mut chosen) = (self.trial(body, &mut trials), IdMap::new());
        for group in groups.into_iter().chain(single) {
            if group.iter().all(|(r, _)| chosen.contains_key(r)) {
                continue;
            }
            self.rows = chosen.clone();
            self.rows.extend(group);
            let cost = self.trial(body, &mut trials);
            if !self.rows.is_empty() && cost < best {
                best = cost;
                chosen = self.rows.clone();
            }
        }
        self.rows = chosen;
    }
    /// Notes which candidates loops use; those of the block.
    fn note_uses(&self, block: &Block, trials: &mut Trials) -> IdSet<Reg> {
        let mut all = IdSet::new();
        for ins in block {
            let mut uses: IdSet<Reg> = ins.sets().iter().filter_map(|r| self.candidate(*r, trials)).collect();
            ins.reads(&mut |a| uses.extend(a.as_reg().and_then(|r| self.candidate(r, trials))));
            for inner in ins.blocks() {
                uses.append(&mut self.note_uses(inner, trials));
            }
            if let Ins::For { i, order: Order::Any(_), .. } = ins {
                let one = !trials.uses.contains_key(i);
                trials.uses.insert(*i, one.then(|| uses.iter().copied().collect()));
            }
            all.append(&mut uses);
        }
        all
    }
    /// The candidate that a pointer points into.
    fn candidate(&self, r: Reg, trials: &Trials) -> Option<Reg> {
        self.roots.get(r).copied().flatten().filter(|root| trials.candidates.contains(root))
    }
    /// Leaves that memory interleaved that is only used by lanes, and gives the cost of the function then.
    fn trial(&mut self, body: &Block, trials: &mut Trials) -> f64 {
        loop {
            let tried = self.tried_block(body, trials);
            let before = self.rows.len();
            self.rows.retain(|r, _| tried.made.contains(r) && !tried.plain.contains(r));
            if self.rows.len() == before {
                return tried.cost;
            }
        }
    }
    fn tried_block(&mut self, block: &Block, trials: &mut Trials) -> Tried {
        let mut out = Tried::default();
        for ins in block {
            self.tried_ins(ins, trials, &mut out);
        }
        out
    }
    fn tried_ins(&mut self, ins: &Ins, trials: &mut Trials, out: &mut Tried) {
        match ins {
            Ins::For { i, order: Order::Any(_), .. } => {
                let uses = trials.uses.get(i).and_then(Option::as_ref);
                let key =
                    uses.map(|u| (*i, u.iter().filter(|r| self.rows.contains_key(r)).copied().collect()));
                if let Some(known) = key.as_ref().and_then(|key| trials.known.get(key)) {
                    return out.add(known);
                }
                let tried = self.tried_loop(ins, trials);
                out.add(&tried);
                if let Some(key) = key {
                    trials.known.insert(key, tried);
                }
            }
            Ins::Copy { count, ty, .. } | Ins::Fill { count, ty, .. } if self.is_short(*count, *ty) => {
                let given = self.regs.len();
                match self.in_lanes(ins) {
                    Some(code) => out.add(&self.tried_code(&code, trials)),
                    None => out.add(&self.tried_plain(ins, trials)),
                }
                self.regs.truncate(given);
            }
            _ => out.add(&self.tried_plain(ins, trials)),
        }
    }
    /// A loop in any order: as lanes, or as it is with what is inside in lanes, whichever costs less.
    fn tried_loop(&mut self, ins: &Ins, trials: &mut Trials) -> Tried {
        let plain = self.tried_plain(ins, trials);
        let Ins::For { i, from, to, body, order: Order::Any(folds) } = ins else { return plain };
        let l = lanes::Loop { i: *i, from: *from, to: *to, body, folds };
        let given = self.regs.len();
        let wide = self.side_by_side(&l, self.options.lanes);
        let wide = wide.ok().filter(|code| self.cost(code) < plain.cost);
        let out = wide.map_or(plain, |code| self.tried_code(&code, trials));
        self.regs.truncate(given);
        out
    }
    /// An instruction that is not put in lanes itself.
    fn tried_plain(&mut self, ins: &Ins, trials: &mut Trials) -> Tried {
        let is_loop = matches!(ins, Ins::For { .. } | Ins::While { .. });
        self.depth += usize::from(is_loop);
        let inside: Vec<Tried> = ins.blocks().into_iter().map(|b| self.tried_block(b, trials)).collect();
        self.depth -= usize::from(is_loop);
        let mut costs = inside.iter().map(|t| t.cost);
        let cost = self.costs().around(ins, 1.0, &mut |_, _| costs.next().unwrap_or(0.0));
        let mut out = Tried { cost, ..Tried::default() };
        inside.iter().for_each(|t| out.uses(t));
        if !matches!(ins, Ins::Offset { .. }) {
            ins.reads(&mut |a| out.plain.extend(a.as_reg().and_then(|r| self.candidate(r, trials))));
        }
        if let Ins::Alloc { to, .. } = ins {
            out.made.extend(trials.candidates.get(to));
        }
        out
    }
    /// Code in lanes.
    fn tried_code(&self, code: &Block, trials: &Trials) -> Tried {
        let mut out = Tried { cost: self.cost(code), ..Tried::default() };
        rows::used_outside_lanes(code, &mut |r| out.plain.extend(self.candidate(r, trials)));
        rows::made_outside_lanes(code, &mut out.made);
        out
    }
}
