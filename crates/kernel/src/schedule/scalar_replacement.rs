//! Small memory in registers, and the loops over it written out.
//!
//! Vectors of three numbers, rows of eleven and the seeds of Jacobians are arrays with a known number of elements. Where all
//! places that are loaded and stored are known once loops with known bounds are written out, each element becomes a register,
//! and what the loop asked about its counter is decided (`numbers`).
//!
//! In loops over many iterations in any order, of which lanes are made, so are short loops that choose by their counter what they store:
//! nothing is left to choose, and what each lane stores is a row.
//!
//! Only floats: for the integers of a list of indices it gained nothing, and made the LSTM 8 % slower.
//!
//! Assumes the code that the lowering makes. Guarantees: the same values and messages. The code grows at most by [`MORE`] instructions; memory
//! that is used in another way stays memory, and its loops stay loops.
//!
//! One piece of more than 500 lines: what may become registers is asked of the code as it is and as it was written out.

use super::pipeline::Step;
use super::registers::registers;
use super::uses::{Uses, sets_first};
use super::value_numbering::numbered;
use super::work::Work;
use crate::ir::{Block, Function, Ins, Operand, Order, Reg, RegInfo, Ty};
use crate::walk::size;
use pullback_base::index::{IdMap, IdSet, Index, IndexVec};
use pullback_prim::{Op, Prim, Scalar};

/// Elements of memory that may become registers.
pub(crate) const ELEMENTS: i64 = 64;

/// Instructions that one loop may become.
const LARGE: usize = 1000;

/// Iterations of a loop that is written out for what it chooses by its counter. Measured with 15 columns (bundle adjustment); longer rows
/// were not measured.
const SHORT: i64 = 16;

/// Instructions by which a function may grow.
const MORE: usize = 4000;

/// So many times what is inside has become registers, and its loops may be part of what is around.
const ROUNDS: usize = 4;

/// Keeps the elements of small memory in registers, and writes the loops over them out.
pub(super) const STEP: Step = Step {
    name: "scalar-replacement",
    optional: true,
    parts: &[],
    does: "keeps the elements of small memory in registers, and writes the loops over them out",
    assumes: "code as the lowering makes it",
    guarantees: "the same values and messages; bounded growth",
    keeps: false,
    run,
};

fn run(w: &mut Work<'_>) -> bool {
    let body = w.take_body();
    w.f.body = small(&mut w.f, body);
    true
}

/// Rewrites the body of a function.
pub(super) fn small(f: &mut Function, mut body: Block) -> Block {
    let mut left = MORE;
    if some_chooses(&body) {
        (body, _) = written_out(f, body, None, &mut left);
    }
    for _ in 0..ROUNDS {
        body = numbered(f, body);
        let chosen = Places::of(f, &body).chosen;
        if chosen.is_empty() {
            return body;
        }
        let some;
        (body, some) = written_out(f, body, Some(&chosen), &mut left);
        if some {
            body = numbered(f, body);
        }
        let mut elements = Elements::of(f, &body, &chosen);
        let ends = !some && elements.elements.is_empty();
        if !elements.elements.is_empty() {
            body = elements.block(body);
            elements.zero(&mut body);
        }
        let uses = Uses::within(f, &body);
        body = without_marks(body, &uses);
        if ends {
            break;
        }
    }
    numbered(f, body)
}

/// The iterations of a loop, if it may be written out.
fn iterations(ins: &Ins) -> Option<std::ops::Range<i64>> {
    let Ins::For { from, to, body, .. } = ins else { return None };
    let (from, to) = (from.as_i64()?, to.as_i64()?);
    let trips = usize::try_from(to.checked_sub(from)?.max(0)).ok()?;
    let all = written_size(body)?.checked_mul(trips)?;
    (all <= LARGE).then_some(from..to)
}

/// A body with loops written out, and whether there were any.
fn written_out(
    f: &mut Function,
    body: Block,
    chosen: Option<&IdSet<Reg>>,
    left: &mut usize,
) -> (Block, bool) {
    let (uses, (_, roots)) = (Uses::within(f, &body), registers(f, &body));
    let regs = &mut f.regs;
    let mut w = Written { regs, roots: &roots, chosen, uses, left, some: false, is_in_many: false };
    (w.block(body), w.some)
}

/// Whether there is a loop that [`chooses`].
fn some_chooses(block: &Block) -> bool {
    block.iter().any(|ins| chooses(ins) || ins.blocks().into_iter().any(some_chooses))
}
/// Whether a short loop without loops inside stores what it chooses by comparing its counter with a constant.
fn chooses(ins: &Ins) -> bool {
    let Ins::For { i, from, to, body, .. } = ins else { return false };
    let trips = from.as_i64().zip(to.as_i64()).and_then(|(from, to)| to.checked_sub(from));
    if trips.is_none_or(|n| n > SHORT) || !body.iter().any(|ins| matches!(ins, Ins::Store { .. })) {
        return false;
    }
    let compares = |r: Operand| {
        body.iter().any(|ins| match ins {
            Ins::Prim { to, prim: Prim::Op(Op::Lt | Op::Le | Op::Eq | Op::Ne, Scalar::I64), args } => {
                r == (*to).into() && args.contains(&(*i).into()) && args.iter().any(|a| a.as_i64().is_some())
            }
            _ => false,
        })
    };
    let is_decided = |ins: &Ins| matches!(ins, Ins::If { condition, .. } if compares(*condition));
    body.iter().any(is_decided) && !body.iter().any(is_loop)
}

/// The instructions of a block with all its loops written out; `None`: they cannot be.
fn written_size(block: &Block) -> Option<usize> {
    let each = |ins: &Ins| match ins {
        Ins::For { from, to, body, .. } => {
            let trips = usize::try_from(to.as_i64()?.checked_sub(from.as_i64()?)?.max(0)).ok()?;
            written_size(body)?.checked_mul(trips)
        }
        Ins::If { then, otherwise, .. } => written_size(then)?.checked_add(written_size(otherwise)? + 1),
        Ins::While { .. }
        | Ins::Lanes { .. }
        | Ins::Call { .. }
        | Ins::Chunks { .. }
        | Ins::Alloc { .. }
        | Ins::Mark { .. }
        | Ins::Clock { .. }
        | Ins::Release { .. } => None,
        _ => Some(1),
    };
    block.iter().try_fold(0usize, |sum, ins| sum.checked_add(each(ins)?))
}

/// Which loop a walk is in.
#[derive(Default)]
struct Nest {
    /// The number of the loop around; 0: there is none.
    inside: usize,
    /// How many loops there have been.
    loops: usize,
}

impl Nest {
    /// Before the blocks of an instruction that is a loop, or does not count as one; what was around.
    fn enter(&mut self, is_loop: bool) -> usize {
        let outer = self.inside;
        if is_loop {
            self.loops += 1;
            self.inside = self.loops;
        }
        outer
    }
}

/// Whether an instruction is a loop.
fn is_loop(ins: &Ins) -> bool {
    !ins.blocks().is_empty() && !matches!(ins, Ins::If { .. })
}

/// Memory of few elements, and how it is used: only at places that are known when loops are written out, and written where it is
/// allocated, not in a loop inside.
struct Places {
    /// Registers that are constants then.
    fixed: IdSet<Reg>,
    /// How often each register is set.
    defined: IndexVec<Reg, usize>,
    roots: IndexVec<Reg, Option<Reg>>,
    /// The loops that stay.
    nest: Nest,
    /// In which loop memory is allocated.
    made: IdMap<Reg, usize>,
    chosen: IdSet<Reg>,
}

impl Places {
    fn of(f: &Function, body: &Block) -> Places {
        let (defined, roots) = registers(f, body);
        let (fixed, made, chosen) = (IdSet::new(), IdMap::new(), IdSet::new());
        let mut places = Places { fixed, defined, roots, nest: Nest::default(), made, chosen };
        places.block(body);
        for r in &f.results {
            places.other((*r).into());
        }
        places
    }
    fn is_fixed(&self, a: Operand) -> bool {
        match a {
            Operand::Reg(r) => self.fixed.contains(&r),
            Operand::Const(_) => true,
            Operand::Null => false,
        }
    }
    fn root(&self, a: Operand) -> Option<Reg> {
        self.roots[a.as_reg()?]
    }
    /// A use that is not understood.
    fn other(&mut self, a: Operand) {
        if let Some(root) = self.root(a) {
            self.chosen.remove(&root);
        }
    }
    fn access(&mut self, pointer: Operand, index: Operand, writes: bool) {
        let fine = self.root(pointer).is_some_and(|root| {
            let here = self.made.get(&root) == Some(&self.nest.inside);
            (here || !writes) && self.is_fixed(index)
        });
        if !fine {
            self.other(pointer);
        }
    }
    fn block(&mut self, block: &Block) {
        for ins in block {
            self.ins(ins);
            let outer = self.nest.enter(is_loop(ins) && iterations(ins).is_none());
            ins.blocks().into_iter().for_each(|b| self.block(b));
            self.nest.inside = outer;
        }
    }
    fn ins(&mut self, ins: &Ins) {
        match ins {
            Ins::Alloc { to, count, ty: Ty::Scalar(s) } if self.defined[*to] == 1 => {
                self.made.insert(*to, self.nest.inside);
                if s.is_float() && count.as_i64().is_some_and(|n| (0..=ELEMENTS).contains(&n)) {
                    self.chosen.insert(*to);
                }
            }
            Ins::Prim { to, prim: Prim::Op(_, Scalar::I64), args } if self.defined[*to] == 1 => {
                if args.iter().all(|a| self.is_fixed(*a)) {
                    self.fixed.insert(*to);
                }
            }
            Ins::Load { pointer, index, .. } => self.access(*pointer, *index, false),
            Ins::Store { pointer, index, value, .. } | Ins::Accumulate { pointer, index, value, .. } => {
                self.access(*pointer, *index, true);
                self.other(*value);
            }
            Ins::Offset { to, pointer, index, .. } if self.defined[*to] == 1 => {
                self.access(*pointer, *index, false);
            }
            Ins::Fill { pointer, count, value, .. } => {
                self.access(*pointer, *count, true);
                self.other(*value);
            }
            Ins::Copy { to, from, count, .. } => {
                self.access(*to, *count, true);
                self.access(*from, *count, false);
            }
            Ins::For { i, .. } => {
                if iterations(ins).is_some() {
                    self.fixed.insert(*i);
                }
                ins.reads(&mut |a| self.other(a));
            }
            _ => ins.reads(&mut |a| self.other(a)),
        }
    }
}

/// Writes loops out.
struct Written<'a> {
    regs: &'a mut IndexVec<Reg, RegInfo>,
    roots: &'a IndexVec<Reg, Option<Reg>>,
    /// Loops that load or store this memory are; `None`: loops that choose by their counter what they store.
    chosen: Option<&'a IdSet<Reg>>,
    /// Uses in the whole function as it was.
    uses: Uses,
    /// So many instructions may be added.
    left: &'a mut usize,
    /// Whether a loop has been written out.
    some: bool,
    /// Whether there is a loop around over many iterations in any order.
    is_in_many: bool,
}

impl Written<'_> {
    fn block(&mut self, block: Block) -> Block {
        let mut out = Vec::with_capacity(block.len());
        for mut ins in block {
            let is_wanted = |ins: &Ins| match self.chosen {
                Some(chosen) => self.uses_memory(ins, chosen),
                None => self.is_in_many && chooses(ins),
            };
            let own = iterations(&ins).filter(|_| is_wanted(&ins)).and_then(|each| {
                let own = self.own(&ins)?;
                Some((each, own))
            });
            let outer = self.is_in_many;
            if let Ins::For { from, to, order, .. } = &ins {
                let is_many = from.as_i64().zip(to.as_i64()).is_none();
                self.is_in_many |= is_many && matches!(order, Order::Any(_));
            }
            for inner in ins.blocks_mut() {
                *inner = self.block(std::mem::take(inner));
            }
            self.is_in_many = outer;
            match (own, ins) {
                (Some((each, own)), Ins::For { i, body, .. })
                    if size(&body) * each.clone().count() <= *self.left =>
                {
                    *self.left -= size(&body) * each.clone().count();
                    self.some = true;
                    each.for_each(|k| self.iteration(&body, (i, k), &own, &mut out));
                }
                (_, ins) => out.push(ins),
            }
        }
        out
    }
    fn uses_memory(&self, ins: &Ins, chosen: &IdSet<Reg>) -> bool {
        let mut found = false;
        super::row_layout::mentioned(std::slice::from_ref(ins), &mut |r| {
            let root = self.roots.get(r).copied().flatten();
            found |= root.is_some_and(|root| chosen.contains(&root));
        });
        found
    }
    /// The registers of a loop that mean nothing to another iteration, or after the loop: its counter is one, or `None`.
    fn own(&self, ins: &Ins) -> Option<IdSet<Reg>> {
        let Ins::For { i, body, .. } = ins else { return None };
        let inside = Uses::of(body);
        let stays = |r: Reg| self.uses.reads(r) == inside.reads(r);
        let is_new = |r: Reg| self.uses.sets(r) == 1 || sets_first(body, r) == Some(true);
        let is_own = |r: &Reg| stays(*r) && is_new(*r);
        let mut own: IdSet<Reg> = inside.set().into_iter().filter(is_own).collect();
        own.extend(stays(*i).then_some(*i));
        own.contains(i).then_some(own)
    }
    /// An iteration, with registers of its own for what it hands to nobody. Those of loops inside are among them.
    fn iteration(&mut self, body: &Block, (i, k): (Reg, i64), own: &IdSet<Reg>, out: &mut Block) {
        let given = self.roots.len();
        let is_own = |r: &Reg| r.index() >= given || own.contains(r);
        let mut own: Vec<Reg> = Uses::of(body).set().into_iter().filter(is_own).chain([i]).collect();
        own.sort();
        let mut names = IdMap::new();
        for r in own {
            names.insert(r, self.regs.push(self.regs[r].clone()));
        }
        out.push(Ins::Set { to: names[&i], value: Operand::i64(k) });
        let mut copy = body.clone();
        super::distribution::rename(&mut copy, &names);
        out.extend(copy);
    }
}

/// Memory whose elements become registers.
struct Elements<'a> {
    regs: &'a mut IndexVec<Reg, RegInfo>,
    /// In which loop memory is allocated.
    made: IdMap<Reg, usize>,
    /// Where pointers point: the memory, and the element.
    places: IdMap<Reg, (Reg, i64)>,
    /// The registers of elements.
    elements: IdMap<Reg, Vec<Reg>>,
}

impl Elements<'_> {
    /// Of the memory that was chosen, what is used at constant places only, and written in the loop where it is allocated: a loop may
    /// stay for which there was no room, and its iterations may not hand on a register.
    fn of<'a>(f: &'a mut Function, body: &Block, chosen: &IdSet<Reg>) -> Elements<'a> {
        let (defined, roots) = registers(f, body);
        let (made, places, elements) = (IdMap::new(), IdMap::new(), IdMap::new());
        let mut e = Elements { regs: &mut f.regs, made, places, elements };
        let (mut counts, mut bad) = (IdMap::new(), IdSet::new());
        e.find(body, &defined, chosen, &mut counts, &mut Nest::default());
        e.check(body, &roots, &counts, &mut bad, &mut Nest::default());
        e.places.retain(|_, (root, _)| !bad.contains(root));
        let mut good: Vec<(Reg, (i64, Ty))> =
            counts.iter().filter(|(r, _)| !bad.contains(r)).map(|(r, c)| (*r, *c)).collect();
        good.sort_by_key(|(r, _)| *r);
        for (root, (count, ty)) in good {
            let info = RegInfo::new(ty, &e.regs[root].hint);
            let registers = (0..count).map(|_| e.regs.push(info.clone())).collect();
            e.elements.insert(root, registers);
        }
        e
    }
    fn find(
        &mut self,
        block: &Block,
        defined: &IndexVec<Reg, usize>,
        chosen: &IdSet<Reg>,
        counts: &mut IdMap<Reg, (i64, Ty)>,
        nest: &mut Nest,
    ) {
        for ins in block {
            match ins {
                Ins::Alloc { to, count, ty } if chosen.contains(to) && defined[*to] == 1 => {
                    if let Some(n) = count.as_i64() {
                        self.made.insert(*to, nest.inside);
                        self.places.insert(*to, (*to, 0));
                        counts.insert(*to, (n, *ty));
                    }
                }
                Ins::Offset { to, pointer, index, .. } if defined[*to] == 1 => {
                    let place = self.place(*pointer, *index);
                    self.places.extend(place.map(|p| (*to, p)));
                }
                _ => {}
            }
            let outer = nest.enter(is_loop(ins));
            ins.blocks().into_iter().for_each(|b| self.find(b, defined, chosen, counts, nest));
            nest.inside = outer;
        }
    }
    /// The memory and element of a place, if they are known.
    fn place(&self, pointer: Operand, index: Operand) -> Option<(Reg, i64)> {
        let (root, at) = self.places.get(&pointer.as_reg()?)?;
        Some((*root, at.checked_add(index.as_i64()?)?))
    }
    /// Notes memory that is used in another way.
    fn check(
        &self,
        block: &Block,
        roots: &IndexVec<Reg, Option<Reg>>,
        counts: &IdMap<Reg, (i64, Ty)>,
        bad: &mut IdSet<Reg>,
        nest: &mut Nest,
    ) {
        let fits = |pointer: Operand, index: Operand, elements: i64, t: Option<Ty>| {
            let Some((root, at)) = self.place(pointer, index) else { return false };
            let Some((count, ty)) = counts.get(&root) else { return false };
            at >= 0
                && elements >= 0
                && at.checked_add(elements).is_some_and(|end| end <= *count)
                && t.is_none_or(|t| t == *ty)
        };
        let zero = Operand::i64(0);
        for ins in block {
            let inside = nest.inside;
            let is_here = |pointer: Operand| {
                let root = pointer.as_reg().and_then(|r| roots[r]);
                root.is_some_and(|root| self.made.get(&root) == Some(&inside))
            };
            let mut refuse = |a: Operand, fine: bool| {
                if let Some(root) = a.as_reg().and_then(|r| roots[r])
                    && !fine
                {
                    bad.insert(root);
                }
            };
            match ins {
                Ins::Load { pointer, index, .. } => refuse(*pointer, fits(*pointer, *index, 1, None)),
                Ins::Store { pointer, index, value, ty }
                | Ins::Accumulate { pointer, index, value, ty, .. } => {
                    refuse(*pointer, is_here(*pointer) && fits(*pointer, *index, 1, Some(*ty)));
                    refuse(*value, false);
                }
                Ins::Offset { to, pointer, .. } => refuse(*pointer, self.places.contains_key(to)),
                Ins::Fill { pointer, count, value, ty } => {
                    let count = count.as_i64().unwrap_or(-1);
                    refuse(*pointer, is_here(*pointer) && fits(*pointer, zero, count, Some(*ty)));
                    refuse(*value, false);
                }
                Ins::Copy { to, from, count, ty } => {
                    let count = count.as_i64().unwrap_or(-1);
                    refuse(*to, is_here(*to) && fits(*to, zero, count, Some(*ty)));
                    refuse(*from, fits(*from, zero, count, Some(*ty)));
                }
                _ => ins.reads(&mut |a| refuse(a, false)),
            }
            let outer = nest.enter(is_loop(ins));
            ins.blocks().into_iter().for_each(|b| self.check(b, roots, counts, bad, nest));
            nest.inside = outer;
        }
    }

    /// What is never stored is read where nothing runs, or may be anything: zero.
    fn zero(&self, body: &mut Block) {
        let uses = Uses::of(body);
        let mut zeros = IdMap::new();
        for r in self.elements.values().flatten().filter(|r| uses.sets(**r) == 0) {
            zeros.extend(self.regs[*r].ty.scalar().map(|s| (*r, Operand::Const(s.zero()))));
        }
        fn replace(block: &mut Block, zeros: &IdMap<Reg, Operand>) {
            for ins in block {
                ins.reads_mut(&mut |a| *a = a.as_reg().and_then(|r| zeros.get(&r)).copied().unwrap_or(*a));
                ins.blocks_mut().into_iter().for_each(|b| replace(b, zeros));
            }
        }
        if !zeros.is_empty() {
            replace(body, &zeros);
        }
    }

    fn element(&self, pointer: Operand, index: Operand) -> Option<Reg> {
        let (root, at) = self.place(pointer, index)?;
        self.elements.get(&root)?.get(usize::try_from(at).ok()?).copied()
    }
    fn is_here(&self, pointer: Operand) -> bool {
        pointer.as_reg().is_some_and(|r| self.places.contains_key(&r))
    }
    fn block(&mut self, block: Block) -> Block {
        let mut out = Vec::with_capacity(block.len());
        for mut ins in block {
            for inner in ins.blocks_mut() {
                *inner = self.block(std::mem::take(inner));
            }
            self.ins(ins, &mut out);
        }
        out
    }
    fn ins(&mut self, ins: Ins, out: &mut Block) {
        match ins {
            Ins::Alloc { to, .. } | Ins::Offset { to, .. } if self.places.contains_key(&to) => {}
            Ins::Load { to, pointer, index } => out.push(self.load(to, pointer, index)),
            Ins::Store { pointer, index, value, ty } => out.push(self.store(pointer, index, value, ty)),
            Ins::Accumulate { pointer, index, value, ty, atomic } => {
                match (self.element(pointer, index), ty.scalar()) {
                    (Some(element), Some(s)) => {
                        let to = self.regs.push(RegInfo::new(ty, "sum"));
                        let args = vec![element.into(), value];
                        out.push(Ins::Prim { to, prim: Prim::Op(Op::Add, s), args });
                        out.push(Ins::Set { to: element, value: to.into() });
                    }
                    _ => out.push(Ins::Accumulate { pointer, index, value, ty, atomic }),
                }
            }
            Ins::Fill { pointer, count, value, ty } if self.is_here(pointer) => {
                out.extend(each(count).map(|k| self.store(pointer, k, value, ty)));
            }
            Ins::Copy { to, from, count, ty } if self.is_here(to) || self.is_here(from) => {
                for k in each(count) {
                    let x = self.regs.push(RegInfo::new(ty, "x"));
                    let (load, store) = (self.load(x, from, k), self.store(to, k, x.into(), ty));
                    out.extend([load, store]);
                }
            }
            other => out.push(other),
        }
    }
    fn load(&self, to: Reg, pointer: Operand, index: Operand) -> Ins {
        match self.element(pointer, index) {
            Some(element) => Ins::Set { to, value: element.into() },
            None => Ins::Load { to, pointer, index },
        }
    }
    fn store(&self, pointer: Operand, index: Operand, value: Operand, ty: Ty) -> Ins {
        match self.element(pointer, index) {
            Some(to) => Ins::Set { to, value },
            None => Ins::Store { pointer, index, value, ty },
        }
    }
}

/// The numbers below a constant.
fn each(count: Operand) -> impl Iterator<Item = Operand> {
    (0..count.as_i64().unwrap_or(0)).map(Operand::i64)
}

/// A block without the marks between which nothing is allocated any more.
fn without_marks(mut block: Block, uses: &Uses) -> Block {
    for inner in block.iter_mut().flat_map(Ins::blocks_mut) {
        *inner = without_marks(std::mem::take(inner), uses);
    }
    let mut gone = IdSet::new();
    for (k, ins) in block.iter().enumerate() {
        let Ins::Mark { to } = ins else { continue };
        let is_end = |ins: &Ins| *ins == Ins::Release { mark: (*to).into() };
        let inside = block[k + 1..].iter().take_while(|ins| !is_end(ins)).count();
        let ends = k + 1 + inside < block.len() && uses.reads(*to) == 1 && uses.sets(*to) == 1;
        if ends && !block[k + 1..][..inside].iter().any(takes_memory) {
            gone.insert(*to);
        }
    }
    let is_gone = |ins: &Ins| match ins {
        Ins::Mark { to } | Ins::Release { mark: Operand::Reg(to) } => gone.contains(to),
        _ => false,
    };
    block.retain(|ins| !is_gone(ins));
    block
}

fn takes_memory(ins: &Ins) -> bool {
    matches!(ins, Ins::Alloc { .. } | Ins::Call { .. } | Ins::Chunks { .. } | Ins::Release { .. })
        || ins.blocks().into_iter().flatten().any(takes_memory)
}
