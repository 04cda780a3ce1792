//! Which pointers a function stores in memory of its callers.
//!
//! A points-to analysis by inclusion (Andersen 1994), insensitive to the order of instructions. Memory is in regions. A parameter has two:
//! the memory that it points to, and all that is reached from what that holds; so a part that copies pointers from one array to another
//! keeps the arrays apart. All that an instruction makes is one. That two arguments reach the same memory is not known here. The caller knows: it takes what is
//! said of parameters for all that its arguments reach, until nothing is new (`regions`).
//!
//! Cost: passes over the instructions that move pointers, until nothing is new.

use super::Callee;
use super::sets::{EMPTY, Set, Sets};
use crate::ir::{Fold, Function, FunctionId, Ins, Operand, Order, Reg, Ty};
use pullback_base::index::{Index, IndexVec};

/// What a function does with memory of its callers, and with memory that it makes.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Summary {
    /// Which pointers it stores in which memory of its callers; nothing is said of memory where it stores none.
    pub(super) stores: Vec<(Region, Vec<Region>)>,
    /// Which pointers it stores in memory that it makes.
    pub(super) made: Vec<Region>,
}

/// The memory that a pointer points to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Region {
    /// That which a parameter points to.
    Param(usize),
    /// All that is reached from what is held there.
    Beyond(usize),
    /// That which the function made.
    Own,
}

/// What an argument points to, and all that is reached from what is held there.
#[derive(Clone, Copy)]
pub(super) struct Reached {
    pub(super) at: Set,
    pub(super) beyond: Set,
}

impl Reached {
    pub(super) const NOTHING: Reached = Reached { at: EMPTY, beyond: EMPTY };
}

/// The parameter of a part that is the first argument of [`Ins::Chunks`]: its number comes before.
pub(super) const PART: usize = 1;

impl Summary {
    /// Anything.
    pub(super) fn any(f: &Function) -> Summary {
        let params = || (0..f.params.len()).flat_map(|k| [Region::Param(k), Region::Beyond(k)]);
        let all: Vec<Region> = params().chain([Region::Own]).collect();
        Summary { stores: params().map(|into| (into, all.clone())).collect(), made: all }
    }
}

impl Region {
    /// The memory that this is in a caller, by what its arguments reach, the first parameter's first; memory that the callee makes is `own`.
    pub(super) fn of(self, own: Set, reached: &[Reached]) -> Set {
        match self {
            Region::Param(k) => reached.get(k).map_or(EMPTY, |r| r.at),
            Region::Beyond(k) => reached.get(k).map_or(EMPTY, |r| r.beyond),
            Region::Own => own,
        }
    }
}

/// The same of all these.
pub(super) fn brought(sources: &[Region], own: Set, reached: &[Reached], sets: &mut Sets) -> Set {
    sets.union_of(sources.iter().map(|source| source.of(own, reached)).collect())
}

/// The summary of a function, from what is known of its callees; the work.
pub(super) fn of(f: &Function, callees: &[Callee]) -> (Summary, u64) {
    let of_callers = 2 * f.params.len();
    let mut moves: Vec<(&Ins, usize)> = Vec::new();
    crate::walk(&f.body, &mut |ins| {
        if moves_pointers(f, ins) {
            moves.push((ins, of_callers + moves.len()));
        }
    });
    // (A function that stores no pointer, and calls none that does, is done with.)
    let nothing = Summary::default();
    let stores = |(ins, _): &(&Ins, usize)| match ins {
        Ins::Set { .. } | Ins::Offset { .. } | Ins::Load { .. } | Ins::Alloc { .. } | Ins::For { .. } => {
            false
        }
        Ins::Call { function, .. } | Ins::Chunks { function, .. } => {
            callees[function.index()].summary != nothing
        }
        _ => true,
    };
    if !moves.iter().any(stores) {
        return (Summary::default(), moves.len() as u64);
    }
    let mut search = Search {
        f,
        callees,
        points: f.regs.iter().map(|_| EMPTY).collect(),
        of_callers,
        holds: vec![EMPTY; of_callers + moves.len()],
        sets: Sets::new(),
        grows: true,
    };
    for (k, p) in f.params.iter().enumerate() {
        let own = search.sets.one(at(k));
        search.join(*p, own);
    }
    let mut visits = 0;
    while std::mem::take(&mut search.grows) {
        visits += moves.len() as u64;
        moves.iter().for_each(|(ins, region)| search.ins(ins, *region));
    }
    (search.summary(), visits + search.sets.work)
}

/// Whether an instruction sets a register that is a pointer, or stores pointers, or calls a function that may.
fn moves_pointers(f: &Function, ins: &Ins) -> bool {
    let is_pointer = |r: &Reg| f.regs[*r].ty == Ty::Pointer;
    match ins {
        Ins::Set { to, .. } | Ins::Offset { to, .. } | Ins::Load { to, .. } => is_pointer(to),
        Ins::Store { .. } | Ins::Fill { .. } | Ins::Copy { .. } => ins.writes_pointers(),
        Ins::For { order: Order::Any(folds), .. } => {
            folds.iter().flat_map(|fold| &fold.state).any(is_pointer)
        }
        Ins::Call { to, args, .. } => {
            to.iter().any(is_pointer) || args.iter().filter_map(|a| a.as_reg()).any(|r| is_pointer(&r))
        }
        Ins::Chunks { args, .. } => args.iter().filter_map(|a| a.as_reg()).any(|r| is_pointer(&r)),
        Ins::Alloc { .. } => true,
        _ => false,
    }
}

struct Search<'a> {
    f: &'a Function,
    callees: &'a [Callee],
    /// The regions that each register may point to.
    points: IndexVec<Reg, Set>,
    /// How many regions are memory of callers: two of each parameter.
    of_callers: usize,
    /// The regions that pointers stored in each region point to. Regions of callers hold what is beyond them besides.
    holds: Vec<Set>,
    sets: Sets,
    grows: bool,
}

impl Search<'_> {
    fn of(&self, a: Operand) -> Set {
        a.as_reg().map_or(EMPTY, |r| self.points[r])
    }
    fn join(&mut self, to: Reg, more: Set) {
        if self.f.regs[to].ty == Ty::Pointer {
            let all = self.sets.union(self.points[to], more);
            self.grows |= all != self.points[to];
            self.points[to] = all;
        }
    }
    /// Pointers are stored in regions.
    fn hold(&mut self, into: Set, what: Set) {
        for k in 0..self.sets.items(into).len() {
            let region = self.sets.items(into)[k] as usize;
            let all = self.sets.union(self.holds[region], what);
            self.grows |= all != self.holds[region];
            self.holds[region] = all;
        }
    }
    /// What is loaded from regions.
    fn held(&mut self, from: Set) -> Set {
        let mut held = Vec::new();
        for k in 0..self.sets.items(from).len() {
            let region = self.sets.items(from)[k];
            held.push(self.holds[region as usize]);
            if (region as usize) < self.of_callers {
                held.push(self.sets.one(beyond(region)));
            }
        }
        self.sets.union_of(held)
    }
    fn reached(&mut self, at: Set) -> Reached {
        let mut beyond = self.held(at);
        loop {
            let held = self.held(beyond);
            let more = self.sets.union(beyond, held);
            if more == beyond {
                return Reached { at, beyond };
            }
            beyond = more;
        }
    }
    fn ins(&mut self, ins: &Ins, region: usize) {
        match ins {
            Ins::Set { to, value: from } | Ins::Offset { to, pointer: from, .. } => {
                self.join(*to, self.of(*from));
            }
            Ins::Load { to, pointer, .. } => {
                let held = self.held(self.of(*pointer));
                self.join(*to, held);
            }
            Ins::Store { pointer, value, .. } | Ins::Fill { pointer, value, .. } => {
                self.hold(self.of(*pointer), self.of(*value));
            }
            Ins::Copy { to, from, .. } => {
                let held = self.held(self.of(*from));
                self.hold(self.of(*to), held);
            }
            Ins::Alloc { to, .. } => {
                let own = self.sets.one(region as u32);
                self.join(*to, own);
            }
            Ins::For { order: Order::Any(folds), .. } => folds.iter().for_each(|fold| self.fold(fold)),
            Ins::Call { to, function, args } => {
                let results = self.call(*function, (args, 0), region);
                to.iter().for_each(|r| self.join(*r, results));
            }
            // (What a part makes is given back; that it may be pointed to is told as of other calls.)
            Ins::Chunks { function, args, .. } => {
                self.call(*function, (args, PART), region);
            }
            _ => {}
        }
    }
    fn fold(&mut self, fold: &Fold) {
        for (k, state) in fold.state.iter().enumerate() {
            let both = self.sets.union(self.of(fold.neutral[k]), self.of(fold.out[k]));
            self.join(*state, both);
            [fold.left[k], fold.right[k]].into_iter().for_each(|r| self.join(r, self.points[*state]));
        }
    }
    /// What a callee stores, whose parameter `first` is the first of these arguments; where its results may point to.
    fn call(&mut self, function: FunctionId, (args, first): (&[Operand], usize), region: usize) -> Set {
        let Summary { stores, made } = &self.callees[function.index()].summary;
        let own = self.sets.one(region as u32);
        let mut reached = vec![Reached::NOTHING; first];
        for a in args {
            reached.push(self.reached(self.of(*a)));
        }
        for (into, sources) in stores {
            let what = brought(sources, own, &reached, &mut self.sets);
            self.hold(into.of(own, &reached), what);
        }
        let what = brought(made, own, &reached, &mut self.sets);
        self.hold(own, what);
        let all = reached.iter().flat_map(|r| [r.at, r.beyond]);
        all.fold(own, |all, set| self.sets.union(all, set))
    }
    fn summary(&self) -> Summary {
        let region = |number: usize| match number {
            k if k >= self.of_callers => Region::Own,
            k if k % 2 == 0 => Region::Param(k / 2),
            k => Region::Beyond(k / 2),
        };
        let sources = |sets: &[Set]| {
            let regions = sets.iter().flat_map(|set| self.sets.items(*set));
            let mut all: Vec<Region> = regions.map(|k| region(*k as usize)).collect();
            all.sort_unstable();
            all.dedup();
            all
        };
        let stored_in = (0..self.of_callers).filter(|k| self.holds[*k] != EMPTY);
        Summary {
            stores: stored_in.map(|k| (region(k), sources(&self.holds[k..=k]))).collect(),
            made: sources(&self.holds[self.of_callers..]),
        }
    }
}

/// The region that a parameter points to.
fn at(param: usize) -> u32 {
    2 * param as u32
}

/// The region of what is reached from a region of callers.
fn beyond(region: u32) -> u32 {
    region | 1
}
