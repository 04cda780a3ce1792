//! Elements that a block adds to several times are summed in registers.
//!
//! A product of matrices of four rows that is written out (`small`) fills a row of its result with zeros, and adds to each element of
//! it four times. Here each element is a register until the block is done with it: what is added later is added to the register, and
//! only the last addition goes to memory, as a store where the block has set the element first. In lanes, where the elements
//! of a row are apart, reading and writing them is most of the code of such a product, and the stores that remain are those of
//! whole rows, which the executors write together.
//!
//! Comes after lanes are chosen, so that it changes no choice. Guarantees: the same values, but for the order in which floats are
//! added. Only memory that the function allocates is looked at: nobody else sees when it is written.

mod open;

use super::pipeline::Step;
use super::registers::registers;
use super::work::Work;
use crate::ir::{Block, Function, Ins, Operand, Reg, RegInfo, Ty};
use open::{Access, Closes, Open, Place, Sum};
use pullback_base::index::{IdMap, IdSet, IndexVec};
use pullback_prim::{Op, Prim};
use std::collections::BTreeMap;

/// Sums in a register what a block adds to an element several times.
pub(super) const STEP: Step = Step {
    name: "register-promotion",
    optional: true,
    parts: &[],
    does: "sums in a register what a block adds to an element several times",
    assumes: "lanes are chosen",
    guarantees: "the same values, but for the order in which floats are added",
    keeps: false,
    run,
};

fn run(w: &mut Work<'_>) -> bool {
    let body = w.take_body();
    let known = Pointers::of(&w.f, &body, w.pointers.as_ref());
    w.f.body = sums(body, &mut w.f.regs, &known);
    w.pointers.get_or_insert(known);
    true
}

/// So many elements that are set to a constant at once may be the beginnings of sums.
const FEW: i64 = 32;

/// What is known about the pointers of a function.
pub(super) struct Pointers {
    /// How often registers are set.
    defined: IndexVec<Reg, usize>,
    /// Where pointers that are set once point into.
    roots: IndexVec<Reg, Option<Reg>>,
    /// Memory that the function allocates, or the one whose part it is.
    own: IdSet<Reg>,
}

impl Pointers {
    /// Those of a function with this body. `whole`: those of the function that it is a part of, whose registers it has.
    fn of(f: &Function, body: &Block, whole: Option<&Pointers>) -> Pointers {
        let (defined, mut roots) = registers(f, body);
        let mut own = IdSet::new();
        crate::walk(body, &mut |ins| {
            if let Ins::Alloc { to, .. } = ins {
                own.insert(*to);
            }
        });
        if let Some(whole) = whole {
            own.extend(whole.own.iter().copied());
            for root in roots.iter_mut() {
                if let Some(given) = root.filter(|r| f.params.contains(r)) {
                    *root = whole.roots.get(given).copied().flatten();
                }
            }
        }
        Pointers { defined, roots, own }
    }
}

/// Rewrites the body of a function.
fn sums(body: Block, regs: &mut IndexVec<Reg, RegInfo>, pointers: &Pointers) -> Block {
    Sums { regs, pointers, bases: IdMap::new(), lanes: 1 }.block(body)
}

/// What an instruction of a block becomes.
enum Becomes {
    /// The beginning of a sum: the register that holds it.
    Begin(Reg),
    /// One more sum: of the register so far, the register then.
    Add(Reg, Reg),
    /// The same, and it goes to memory, which was set to something before or not, before this instruction.
    End(Reg, Reg, bool, usize),
    /// Elements that are set at once: those of sums, with their registers.
    Elements(BTreeMap<i64, Reg>),
}

struct Sums<'a> {
    regs: &'a mut IndexVec<Reg, RegInfo>,
    pointers: &'a Pointers,
    /// Pointers that are others, moved by a known number of elements of a type.
    bases: IdMap<Reg, (Reg, i64, Ty)>,
    /// How many lanes the block around runs in.
    lanes: usize,
}

impl Sums<'_> {
    fn block(&mut self, mut block: Block) -> Block {
        for ins in &mut block {
            if let Ins::Offset { to, pointer, index, ty, .. } = ins
                && self.is_set_once(*to)
                && let Some(place) = self.element(*pointer, *index, *ty).place
            {
                self.bases.insert(*to, (place.base, place.at, *ty));
            }
            let around = self.lanes;
            if let Ins::Lanes { lanes, .. } = ins {
                self.lanes = *lanes;
            }
            for inner in ins.blocks_mut() {
                *inner = self.block(std::mem::take(inner));
            }
            self.lanes = around;
        }
        let found = self.find(&block);
        if found.is_empty() { block } else { self.rewritten(block, found) }
    }

    fn is_set_once(&self, r: Reg) -> bool {
        self.pointers.defined.get(r) == Some(&1)
    }
    /// What a pointer to elements of this type that is set once is counted from.
    fn base(&self, p: Reg, ty: Ty) -> Option<(Reg, i64)> {
        let (base, at) = match self.bases.get(&p) {
            Some((base, at, of)) if *of == ty => (*base, *at),
            _ => (p, 0),
        };
        self.is_set_once(base).then_some((base, at))
    }
    /// One element.
    fn element(&self, pointer: Operand, index: Operand, ty: Ty) -> Access {
        let place = || {
            let (base, at) = self.base(pointer.as_reg()?, ty)?;
            Some(Place { base, at: at.checked_add(index.as_i64()?)?, stride: 1, lanes: 1 })
        };
        Access { pointer, place: place(), ty }
    }
    /// An element for each lane.
    fn row(&self, pointer: Operand, index: Operand, stride: Operand, ty: Ty) -> Access {
        let lanes = self.lanes;
        let stride = stride.as_i64().filter(|s| *s > 0 && lanes > 1);
        let access = self.element(pointer, index, ty);
        let place = access.place.zip(stride).map(|(place, stride)| Place { stride, lanes, ..place });
        Access { place, ..access }
    }
    fn root(&self, pointer: Operand) -> Option<Reg> {
        self.pointers.roots.get(pointer.as_reg()?).copied().flatten()
    }

    fn find(&self, block: &Block) -> Vec<Sum> {
        let mut open = Open::new(&self.pointers.roots);
        for (k, ins) in block.iter().enumerate() {
            match ins {
                Ins::Store { pointer, index, ty, .. } => {
                    let access = self.element(*pointer, *index, *ty);
                    self.set(access, k, &mut open);
                }
                Ins::StoreLanes { pointer, index, stride, ty, mask, .. } => {
                    let access = self.row(*pointer, *index, *stride, *ty).all_if(mask.is_none());
                    self.set(access, k, &mut open);
                }
                Ins::Accumulate { pointer, index, ty, atomic, .. } => {
                    let access = self.element(*pointer, *index, *ty).all_if(!atomic);
                    self.add(access, k, &mut open);
                }
                Ins::AccumulateLanes { pointer, index, stride, ty, mask, atomic, .. } => {
                    let is_plain = mask.is_none() && !atomic;
                    let access = self.row(*pointer, *index, *stride, *ty).all_if(is_plain);
                    self.add(access, k, &mut open);
                }
                Ins::Load { to, pointer, index } => {
                    let access = self.element(*pointer, *index, self.regs[*to].ty);
                    self.look(access, k, &mut open);
                }
                Ins::LoadLanes { to, pointer, index, stride, mask: _ } => {
                    let access = self.row(*pointer, *index, *stride, element(self.regs[*to].ty));
                    self.look(access, k, &mut open);
                }
                Ins::Copy { to, from, ty, .. } => {
                    for pointer in [*to, *from] {
                        self.look(Access::somewhere(pointer, *ty), k, &mut open);
                    }
                }
                Ins::For { .. } | Ins::Fill { .. } if let Some(f) = self.filled(ins) => {
                    for at in 0..f.count {
                        self.set(f.first.moved(at), k, &mut open);
                    }
                }
                Ins::Fill { pointer, ty, .. } => {
                    self.look(Access::somewhere(*pointer, *ty), k, &mut open);
                }
                Ins::Set { .. }
                | Ins::Prim { .. }
                | Ins::Offset { .. }
                | Ins::Alloc { .. }
                | Ins::Mark { .. }
                | Ins::LaneNumber { .. }
                | Ins::FoldLanes { .. }
                | Ins::Lane { .. }
                | Ins::Fail { .. } => {}
                Ins::Release { .. }
                | Ins::For { .. }
                | Ins::Chunks { .. }
                | Ins::Lanes { .. }
                | Ins::While { .. }
                | Ins::If { .. }
                | Ins::Clock { .. }
                | Ins::Call { .. } => open.close_all(k),
            }
        }
        let mut done = open.finish();
        done.retain(|s| s.added.len() + usize::from(s.set.is_some()) >= 2 && !s.added.is_empty());
        done
    }
    /// Instruction `k` sets an element.
    fn set(&self, a: Access, k: usize, open: &mut Open) {
        open.close(a, self.root(a.pointer), k, Closes::All);
        self.open(a, open, Some(k));
    }
    /// Instruction `k` adds to an element.
    fn add(&self, a: Access, k: usize, open: &mut Open) {
        if let Some(sum) = a.place.and_then(|p| open.sums.get_mut(&p)).filter(|s| s.ty == a.ty) {
            sum.added.push(k);
            return;
        }
        // Additions may change places with each other, but not with what sets an element.
        open.close(a, self.root(a.pointer), k, Closes::AllButAdditions);
        if !a.place.is_some_and(|p| open.sums.contains_key(&p))
            && let Some(sum) = self.open(a, open, None)
        {
            sum.added.push(k);
        }
    }
    /// Instruction `k` reads, or writes somewhere.
    fn look(&self, a: Access, k: usize, open: &mut Open) {
        open.close(a, self.root(a.pointer), k, Closes::All);
    }
    fn open<'s>(&self, a: Access, open: &'s mut Open, set: Option<usize>) -> Option<&'s mut Sum> {
        let is_own = self.root(a.pointer).is_some_and(|r| self.pointers.own.contains(&r));
        let place = a.place.filter(|_| is_own && a.ty.scalar().is_some())?;
        Some(open.insert(Sum { place, ty: a.ty, set, added: Vec::new(), until: usize::MAX }))
    }
    /// What an instruction sets to a constant, if that is all it does.
    fn filled(&self, ins: &Ins) -> Option<Filled> {
        let zero = Operand::i64(0);
        let (count, store) = match ins {
            Ins::Fill { pointer, count, value, ty } => {
                (*count, Ins::Store { pointer: *pointer, index: zero, value: *value, ty: *ty })
            }
            Ins::For { i, from, to, body, .. } if from.as_i64() == Some(0) => match &body[..] {
                [
                    store @ (Ins::Store { index: Operand::Reg(k), .. }
                    | Ins::StoreLanes { index: Operand::Reg(k), mask: None, .. }),
                ] if k == i => (*to, store.clone()),
                _ => return None,
            },
            _ => return None,
        };
        let first = match store {
            Ins::StoreLanes { pointer, stride, ty, .. } => self.row(pointer, zero, stride, ty),
            Ins::Store { pointer, ty, .. } => self.element(pointer, zero, ty),
            _ => return None,
        };
        let count = count.as_i64().filter(|n| (1..=FEW).contains(n))?;
        let is_constant = matches!(value(&store), Some(Operand::Const(_)));
        (is_constant && first.place.is_some()).then_some(Filled { first, count, store })
    }

    fn rewritten(&mut self, block: Block, found: Vec<Sum>) -> Block {
        let mut becomes: BTreeMap<usize, Becomes> = BTreeMap::new();
        for sum in found {
            let ty = match (sum.ty, sum.place.lanes) {
                (Ty::Scalar(s), lanes) if lanes > 1 => Ty::Lanes(s, lanes),
                (ty, _) => ty,
            };
            let new = RegInfo::new(ty, "sum");
            let mut here = self.regs.push(new.clone());
            let mut added = sum.added.iter().copied();
            let begin = match sum.set {
                Some(k) => match self.filled(&block[k]).and_then(|f| f.first.place) {
                    Some(first) => {
                        let entry = becomes.entry(k).or_insert_with(|| Becomes::Elements(BTreeMap::new()));
                        if let Becomes::Elements(elements) = entry {
                            elements.insert(sum.place.at - first.at, here);
                        }
                        None
                    }
                    None => Some(k),
                },
                None => added.next(),
            };
            if let Some(k) = begin {
                becomes.insert(k, Becomes::Begin(here));
            }
            let mut added = added.peekable();
            while let Some(k) = added.next() {
                let then = self.regs.push(new.clone());
                let how = match added.peek() {
                    None => Becomes::End(here, then, sum.set.is_some(), sum.until),
                    Some(_) => Becomes::Add(here, then),
                };
                becomes.insert(k, how);
                here = then;
            }
        }
        let mut out = Vec::with_capacity(block.len());
        // What goes to memory, as late as that needs no register for long: elements of a row together.
        let mut pending: Block = Vec::new();
        // The first instruction before which memory must have some of it.
        let mut first = usize::MAX;
        for (k, ins) in block.into_iter().enumerate() {
            let how = becomes.remove(&k);
            let waits = match &how {
                Some(Becomes::Begin(_) | Becomes::Add(..) | Becomes::End(..)) => true,
                Some(Becomes::Elements(_)) => false,
                None => matches!(
                    ins,
                    Ins::Set { .. }
                        | Ins::Prim { .. }
                        | Ins::Offset { .. }
                        | Ins::Load { .. }
                        | Ins::LoadLanes { .. }
                ),
            };
            if !waits || first <= k {
                out.append(&mut pending);
                first = usize::MAX;
            }
            match how {
                None => out.push(ins),
                Some(Becomes::Elements(elements)) => self.elements(ins, &elements, &mut out),
                Some(Becomes::Begin(to)) => out.extend(value(&ins).map(|value| Ins::Set { to, value })),
                Some(Becomes::Add(sum, to)) => out.extend(plus(sum, &ins, to)),
                Some(Becomes::End(sum, to, is_set, until)) => {
                    out.extend(plus(sum, &ins, to));
                    pending.push(ending(ins, to.into(), is_set));
                    first = first.min(until);
                }
            }
        }
        out.append(&mut pending);
        out
    }
    /// Elements that are set at once: to registers, or each in memory.
    fn elements(&self, ins: Ins, elements: &BTreeMap<i64, Reg>, out: &mut Block) {
        let Some(Filled { count, store, .. }) = self.filled(&ins) else { return out.push(ins) };
        for k in 0..count {
            match elements.get(&k) {
                Some(to) => out.extend(value(&store).map(|value| Ins::Set { to: *to, value })),
                None => out.push(stored_at(store.clone(), k)),
            }
        }
    }
}

/// Elements that an instruction sets to a constant.
struct Filled {
    first: Access,
    count: i64,
    /// The store of one of them.
    store: Ins,
}

/// A store at another index.
fn stored_at(mut store: Ins, k: i64) -> Ins {
    if let Ins::Store { index, .. } | Ins::StoreLanes { index, .. } = &mut store {
        *index = Operand::i64(k);
    }
    store
}

fn element(ty: Ty) -> Ty {
    ty.scalar().map_or(ty, Ty::Scalar)
}

/// What an instruction stores or adds.
fn value(ins: &Ins) -> Option<Operand> {
    match ins {
        Ins::Store { value, .. }
        | Ins::StoreLanes { value, .. }
        | Ins::Accumulate { value, .. }
        | Ins::AccumulateLanes { value, .. } => Some(*value),
        _ => None,
    }
}

/// `to` is the sum and what the instruction adds.
fn plus(sum: Reg, ins: &Ins, to: Reg) -> Option<Ins> {
    let (Ins::Accumulate { ty, .. } | Ins::AccumulateLanes { ty, .. }) = ins else { return None };
    let prim = Prim::Op(Op::Add, ty.scalar()?);
    Some(Ins::Prim { to, prim, args: vec![sum.into(), value(ins)?] })
}

/// The last addition to an element, of the sum; a store where the sum began with what the element was set to.
fn ending(ins: Ins, sum: Operand, is_set: bool) -> Ins {
    match ins {
        Ins::Accumulate { pointer, index, ty, .. } if is_set => Ins::Store { pointer, index, value: sum, ty },
        Ins::AccumulateLanes { pointer, index, stride, ty, mask, .. } if is_set => {
            Ins::StoreLanes { pointer, index, stride, value: sum, ty, mask }
        }
        mut adds => {
            if let Ins::Accumulate { value, .. } | Ins::AccumulateLanes { value, .. } = &mut adds {
                *value = sum;
            }
            adds
        }
    }
}
