//! Long blocks cut into runs of instructions, each a function of its own.
//!
//! LLVM's register allocation compares every long life of a value with every other one: a block of thousands of instructions
//! whose values are read much later, as in the gradient of a long formula, takes minutes. Here a block that is long although its
//! loops and branches are pieces already becomes a row of calls. Values that one run sets and another one reads live in a *frame*:
//! memory that the function takes at its start, an array for each type of element. A run loads what it needs at its start and
//! stores what others need at its end, so each function is as large as a run and what passes through it, and the calls take
//! pointers. Registers of lanes are rows of a frame; their run is one block of lanes.
//!
//! Assumes that loops and branches have become pieces. Guarantees: the same operations in the same order; a loop with runs inside is in the given order,
//! since iterations share the frames. Cost: the size of the function.

use super::live::{Interface, Uses, Walk, interface};
use super::{Limits, Pieces, Same, add, nothing, size_of};
use pullback_base::index::{IdMap, IdSet};
use pullback_kernel::{Block, Function, FunctionId, Ins, Module, Operand, Order, Reg, RegInfo, Ty, walk};
use pullback_prim::{Op, Prim, Scalar};
use std::collections::{BTreeMap, BTreeSet};

/// Cuts the long blocks of a function. `is_called`: other functions call it, and its frames are given back at its end.
pub(super) fn cut(id: FunctionId, is_called: bool, limits: &Limits, out: &mut Pieces, same: &mut Same) {
    let f = &out.module.functions[id];
    let mut found = Found::default();
    found.block(&f.body, limits);
    if found.runs == 0 {
        return;
    }
    found.fixed.extend(f.params.iter().chain(&f.results));
    found.fixed.extend(found.counters.iter());
    let mut f = f.clone();
    let body = std::mem::take(&mut f.body);
    let all = Uses::new(&f, &body);
    let (homes, frames) = homes(&mut f, &found);
    let mut runs = Runs { f, id, limits, homes, all, found, unset: IdSet::new(), calls: 0, out, same };
    let mut body = runs.block(body, None);
    let unset = runs.unset.iter().map(|r| Ins::Set { to: *r, value: nothing(runs.f.regs[*r].ty) });
    body.splice(0..0, frames.into_iter().chain(unset).collect::<Block>());
    if is_called {
        let mark = runs.register(Ty::Pointer);
        body.insert(0, Ins::Mark { to: mark });
        body.push(Ins::Release { mark: mark.into() });
    }
    let f = Function { body, ..runs.f };
    out.module.functions[id] = f;
}

/// The functions after which memory that they, or what they call, allocate may be needed, or memory that was there before may be gone: nothing
/// may be given back after them. They give a pointer, write one to memory, or give back memory below their own.
pub(super) fn open(module: &Module) -> IdSet<FunctionId> {
    let mut writes: IdSet<FunctionId> = IdSet::new();
    loop {
        let before = writes.len();
        // Pieces come after the functions that they are cut out of.
        for (id, f) in module.functions.iter_enumerated().rev() {
            if !writes.contains(&id) && !is_closed(f, &writes) {
                writes.insert(id);
            }
        }
        if writes.len() == before {
            break;
        }
    }
    let gives = |f: &Function| f.results.iter().any(|r| f.regs[*r].ty == Ty::Pointer);
    writes.extend(module.functions.iter_enumerated().filter(|(_, f)| gives(f)).map(|(id, _)| id));
    writes
}

/// Whether a function writes no pointers to memory, nor calls one of these, and gives back only what it has taken.
fn is_closed(f: &Function, writes: &IdSet<FunctionId>) -> bool {
    let mut is_closed = true;
    let (mut marks, mut released) = (IdSet::new(), IdSet::new());
    walk(&f.body, &mut |ins| match ins {
        _ if ins.writes_pointers() => is_closed = false,
        Ins::Call { function, .. } | Ins::Chunks { function, .. } => is_closed &= !writes.contains(function),
        Ins::Mark { to } => _ = marks.insert(*to),
        Ins::Release { mark } => released.extend(mark.as_reg()),
        _ => {}
    });
    is_closed && released.into_iter().all(|mark| marks.contains(&mark))
}

/// The parts of a block, in order: runs, and instructions that stay where they are because they are large themselves.
fn parts(block: Block, limits: &Limits) -> Vec<Part> {
    let is_large = |ins: &Ins| !ins.blocks().is_empty() && size_of(ins) >= limits.run;
    let small: usize = block.iter().filter(|ins| !is_large(ins)).map(size_of).sum();
    if small <= limits.longest {
        return block.into_iter().map(Part::Stays).collect();
    }
    let (mut parts, mut here, mut run) = (Vec::new(), 0, Vec::new());
    for ins in block {
        let is_large = is_large(&ins);
        if !run.is_empty() && (is_large || here >= limits.run) {
            parts.push(Part::Run(std::mem::take(&mut run)));
            here = 0;
        }
        if is_large {
            parts.push(Part::Stays(ins));
        } else {
            here += size_of(&ins);
            run.push(ins);
        }
    }
    if !run.is_empty() {
        parts.push(Part::Run(run));
    }
    parts
}

enum Part {
    Run(Block),
    Stays(Ins),
}

/// Who mentions a register: one run, the code around runs, or several of them.
#[derive(Clone, Copy, PartialEq)]
enum Mentions {
    One(usize),
    Several,
}

/// The code around runs; runs are counted from 1.
const AROUND: usize = 0;

/// What is known of a function before it is rewritten.
#[derive(Default)]
struct Found {
    mentions: IdMap<Reg, Mentions>,
    /// Registers that a run reads before it sets them, or that are read around runs.
    needed: IdSet<Reg>,
    /// Registers that stay registers: an instruction with blocks inside sets or reads them, not always before or after these.
    fixed: IdSet<Reg>,
    /// Those that count the iterations of loops.
    counters: IdSet<Reg>,
    runs: usize,
}

impl Found {
    fn block(&mut self, block: &Block, limits: &Limits) {
        for part in parts(block.clone(), limits) {
            match part {
                Part::Run(run) => {
                    self.runs += 1;
                    let here = self.runs;
                    walk(&run, &mut |ins| self.ins(ins, here));
                    self.needed.extend(needed(&run));
                }
                Part::Stays(ins) => {
                    self.ins(&ins, AROUND);
                    ins.reads(&mut |a| self.needed.extend(a.as_reg()));
                    ins.blocks().into_iter().for_each(|inner| self.block(inner, limits));
                }
            }
        }
    }
    fn ins(&mut self, ins: &Ins, here: usize) {
        let mut mention = |r: Reg| {
            let mentions = self.mentions.entry(r).or_insert(Mentions::One(here));
            if *mentions != Mentions::One(here) {
                *mentions = Mentions::Several;
            }
        };
        let mut inside = Vec::new();
        ins.reads(&mut |a| inside.extend(a.as_reg()));
        inside.iter().copied().for_each(&mut mention);
        ins.sets().iter().copied().for_each(mention);
        match ins {
            Ins::For { i, order, .. } => {
                self.counters.insert(*i);
                if let Order::Any(folds) = order
                    && !folds.is_empty()
                {
                    self.fixed.extend(inside);
                    for fold in folds {
                        self.fixed.extend(fold.state.iter().chain(&fold.left).chain(&fold.right));
                        walk(&fold.combine, &mut |ins| self.fixed.extend(ins.sets()));
                    }
                }
            }
            Ins::Lanes { i, to, .. } => {
                self.counters.insert(*i);
                self.fixed.extend(to.as_reg());
            }
            Ins::While { .. } => self.fixed.extend(inside),
            _ => {}
        }
    }
}

impl Found {
    /// Whether a run, or the code around, may need what another one has left in a register.
    fn passes(&self, r: Reg) -> bool {
        self.mentions.get(&r) == Some(&Mentions::Several) && self.needed.contains(&r)
    }
}

/// What a run reads before it sets it.
fn needed(run: &Block) -> BTreeSet<Reg> {
    let mut walk = Walk::default();
    run.iter().for_each(|ins| _ = walk.ins(ins));
    walk.needed
}

/// Where a value lives that several runs mention.
#[derive(Clone, Copy)]
struct Home {
    frame: Reg,
    at: Operand,
    element: Ty,
}

/// The homes of registers, and what makes the frames. What is loaded before anything is stored is some value.
fn homes(f: &mut Function, found: &Found) -> (IdMap<Reg, Home>, Block) {
    let mut frames: BTreeMap<Ty, (Reg, i64)> = BTreeMap::new();
    let mut homes = IdMap::new();
    for (r, _) in found.mentions.iter().filter(|(r, m)| **m == Mentions::Several && !found.fixed.contains(r))
    {
        let ty = f.regs[*r].ty;
        let element = ty.scalar().map_or(Ty::Pointer, Ty::Scalar);
        let new = || (f.regs.push(RegInfo::new(Ty::Pointer, "frame")), 0);
        let (frame, count) = frames.entry(element).or_insert_with(new);
        homes.insert(*r, Home { frame: *frame, at: Operand::i64(*count), element });
        *count += ty.lanes().unwrap_or(1) as i64;
    }
    let make = frames.into_iter().flat_map(|(ty, (frame, count))| {
        let count = Operand::i64(count);
        let fill = Ins::Fill { pointer: frame.into(), count, value: nothing(ty), ty };
        [Ins::Alloc { to: frame, count, ty }, fill]
    });
    (homes, make.collect())
}

/// The loop in lanes around a block.
#[derive(Clone, Copy)]
struct Around {
    i: Reg,
    to: Operand,
    lanes: usize,
}

/// Rewrites one function.
struct Runs<'a> {
    /// The function without its body.
    f: Function,
    id: FunctionId,
    limits: &'a Limits,
    homes: IdMap<Reg, Home>,
    /// What the function mentioned before.
    all: Uses,
    found: Found,
    /// Registers that calls are given, though it may be that nothing has set them.
    unset: IdSet<Reg>,
    /// How many runs have become calls.
    calls: usize,
    out: &'a mut Pieces,
    same: &'a mut Same,
}

impl Runs<'_> {
    fn register(&mut self, ty: Ty) -> Reg {
        self.f.regs.push(RegInfo::new(ty, ""))
    }

    fn block(&mut self, block: Block, around: Option<Around>) -> Block {
        let mut new = Vec::new();
        for part in parts(block, self.limits) {
            match part {
                Part::Run(run) => match self.interface(&run) {
                    Some(live) => new.push(self.called(run, live, around)),
                    None => run.into_iter().for_each(|ins| self.ins(ins, around, &mut new)),
                },
                Part::Stays(ins) => self.ins(ins, around, &mut new),
            }
        }
        new
    }

    /// An instruction that stays: it loads what it reads, and stores what it sets.
    fn ins(&mut self, mut ins: Ins, around: Option<Around>, new: &mut Block) {
        let mut reads = IdSet::new();
        ins.reads(&mut |a| reads.extend(a.as_reg()));
        new.extend(reads.into_iter().filter_map(|r| self.load(r)));
        let around = match &ins {
            Ins::Lanes { i, to, lanes, .. } => Some(Around { i: *i, to: *to, lanes: *lanes }),
            _ => around,
        };
        let before = self.calls;
        for inner in ins.blocks_mut() {
            *inner = self.block(std::mem::take(inner), around);
        }
        if let Ins::For { order, .. } = &mut ins
            && self.calls > before
        {
            // Iterations share the frames.
            *order = Order::Given;
        }
        let sets = ins.sets().to_vec();
        new.push(ins);
        new.extend(sets.into_iter().filter_map(|r| self.store(r)));
    }

    fn interface(&self, run: &Block) -> Option<Interface> {
        interface(run, &self.f, &self.all, &|r| self.homes.contains_key(&r))
    }

    /// The call of a run.
    fn called(&mut self, run: Block, live: Interface, around: Option<Around>) -> Ins {
        self.calls += 1;
        let (loads, stores) = (self.each(&live.params, Self::load), self.each(&live.results, Self::store));
        let is_register = |r: &Reg| !self.homes.contains_key(r);
        // Loops set their counters themselves.
        let (needed, counters) = (needed(&run), &self.found.counters);
        let is_param = |r: &Reg| is_register(r) && (needed.contains(r) || !counters.contains(r));
        let registers = live.params.iter().copied().filter(is_param);
        // What nobody else mentions is read without having been set, in a way that no call takes.
        let (own, mut params): (Vec<Reg>, Vec<Reg>) = registers.partition(|r| self.is_own(*r));
        let own = own.into_iter().map(|r| Ins::Set { to: r, value: nothing(self.f.regs[r].ty) });
        let matters = |r: &Reg| is_register(r) && !self.is_own(*r) && !counters.contains(r);
        let results: Vec<Reg> = live.results.iter().copied().filter(matters).collect();
        let homed = live.params.iter().chain(&live.results).filter_map(|r| self.homes.get(r));
        let frames: IdSet<Reg> = homed.map(|home| home.frame).collect();
        let unset: Vec<Reg> = params.iter().copied().filter(|r| !self.is_given(*r)).collect();
        params.extend(frames);
        let mut body: Block = own.chain(loads).chain(live.before).chain(run).chain(stores).collect();
        self.unset.extend(unset);
        if let Some(Around { i, to, lanes }) = around {
            // The block of lanes that begins here.
            let (first, next, end) = (self.register(Ty::I64), self.register(Ty::I64), self.register(Ty::I64));
            let prim = |op| Prim::Op(op, Scalar::I64);
            let args = vec![first.into(), Operand::i64(lanes as i64)];
            params.retain(|r| *r != i);
            params.push(first);
            params.extend(to.as_reg().filter(|r| !params.contains(r)));
            body = vec![
                Ins::Prim { to: next, prim: prim(Op::Add), args },
                Ins::Prim { to: end, prim: prim(Op::Min), args: vec![next.into(), to] },
                Ins::Lanes { i, from: first.into(), to: end.into(), lanes, body },
            ];
            return self.call(body, &params, results, |r| if r == first { i } else { r });
        }
        self.call(body, &params, results, |r| r)
    }

    fn call(&mut self, body: Block, params: &[Reg], to: Vec<Reg>, given: impl Fn(Reg) -> Reg) -> Ins {
        let code = super::same::compact(&self.f, body, (params, &to));
        let function = add(self.out, self.same, self.id, &self.f.name, code);
        Ins::Call { to, function, args: params.iter().map(|r| given(*r).into()).collect() }
    }

    /// Whether a register matters to one run only.
    fn is_own(&self, r: Reg) -> bool {
        !self.found.passes(r) && !self.is_given(r) && !self.f.results.contains(&r)
    }
    /// Whether a register is set before any instruction that mentions it.
    fn is_given(&self, r: Reg) -> bool {
        self.f.params.contains(&r) || self.found.counters.contains(&r)
    }
    fn each(&self, of: &[Reg], make: impl Fn(&Self, Reg) -> Option<Ins>) -> Block {
        of.iter().filter_map(|r| make(self, *r)).collect()
    }
    /// What a register holds, from its home.
    fn load(&self, r: Reg) -> Option<Ins> {
        let Home { frame, at, .. } = *self.homes.get(&r)?;
        let pointer = frame.into();
        Some(match self.f.regs[r].ty {
            Ty::Lanes(..) => {
                Ins::LoadLanes { to: r, pointer, index: at, stride: Operand::i64(1), mask: None }
            }
            Ty::Scalar(_) | Ty::Pointer => Ins::Load { to: r, pointer, index: at },
        })
    }
    /// What a register holds, to its home.
    fn store(&self, r: Reg) -> Option<Ins> {
        let Home { frame, at, element: ty } = *self.homes.get(&r)?;
        let (pointer, value) = (frame.into(), r.into());
        Some(match self.f.regs[r].ty {
            Ty::Lanes(..) => {
                let stride = Operand::i64(1);
                Ins::StoreLanes { pointer, index: at, stride, value, ty, mask: None }
            }
            Ty::Scalar(_) | Ty::Pointer => Ins::Store { pointer, index: at, value, ty },
        })
    }
}
