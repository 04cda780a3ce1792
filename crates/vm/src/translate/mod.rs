//! Kernel IR to bytecode. Once for a module; linear in its size but for looking back at copies and loops.
//!
//! Assumes that all loops of lanes have as many as the module.

use crate::checks::{Checks, Outside};
use crate::coalesce::coalesce;
use crate::code::{
    At, CallSite, Code, FailSite, FoldSite, FunctionCode, NOWHERE, Op, Place, TableSite, Value,
};
use crate::executable::{Functions, Options};
use crate::kernels::pairs::{self, Taken};
use crate::kernels::{self, CHUNK, Kernel, MemoryKernel, Side, Sums};
use crate::simplify::simplify;
use crate::slots::slots;
use crate::uses::Counts;
use crate::uses::{operands, reads};
use lanes::counters;
use pullback_abi::{ALIGNMENT, word};
use pullback_base::index::{Index, IndexVec};
use pullback_kernel::{Block, Function, FunctionId, Ins, Module, Operand, Reg, Ty, recursive, walk};
use pullback_prim::{Op as PrimOp, Prim, Scalar, ScalarValue};
use std::collections::{BTreeMap, BTreeSet};
use words::load;

mod control;
mod lanes;
mod words;

/// An operation of two doubles, one of them in lanes, that a kernel does.
struct Operation {
    /// The number of its instruction.
    ins: usize,
    op: PrimOp,
    to: Reg,
    sides: [Side; 2],
}

/// Registers of lanes that instructions use beside those of the function.
const SPARE_LANES: usize = 4;
/// Words that instructions use beside those of the function.
const SPARE_WORDS: usize = 1;

/// The bytecode of a module.
pub(crate) fn translate(module: &Module, options: &Options) -> Code {
    let recursive = recursive(module);
    let mut shared = Shared { options, lanes: module.lanes, kernels: Vec::new(), memory: Vec::new() };
    let mut functions = Vec::new();
    for (id, f) in module.functions.iter_enumerated() {
        let mut f = f.clone();
        simplify(&mut f);
        coalesce(&mut f);
        let mut code = Translator::new(&f, &mut shared).function();
        code.is_recursive = recursive[id];
        functions.push(code);
    }
    Code { functions, kernels: shared.kernels, memory_kernels: shared.memory, lanes: module.lanes }
}

/// What all functions of a module share.
pub(crate) struct Shared<'a> {
    options: &'a Options,
    lanes: usize,
    kernels: Vec<Kernel>,
    memory: Vec<MemoryKernel>,
}

impl Shared<'_> {
    /// Bytes from one register of lanes to the next: room for a chunk more, so that equal lanes of registers lie in different
    /// sets of the cache.
    fn slot_bytes(&self) -> usize {
        (self.lanes.next_multiple_of(CHUNK) + CHUNK) * 8
    }
    fn kernel(&mut self, kernel: Kernel) -> u16 {
        let known = self.kernels.iter().position(|k| std::ptr::fn_addr_eq(*k, kernel));
        number(known, &mut self.kernels, kernel)
    }
    fn memory(&mut self, kernel: MemoryKernel) -> u16 {
        let known = self.memory.iter().position(|k| std::ptr::fn_addr_eq(*k, kernel));
        number(known, &mut self.memory, kernel)
    }
}

fn number<T>(known: Option<usize>, all: &mut Vec<T>, new: T) -> u16 {
    let index = known.unwrap_or_else(|| {
        all.push(new);
        all.len() - 1
    });
    u16::try_from(index).expect("there are fewer kernels than that")
}

pub(crate) struct Translator<'a, 'b> {
    pub(crate) f: &'a Function,
    shared: &'a mut Shared<'b>,
    pub(crate) out: FunctionCode,
    pub(crate) places: IndexVec<Reg, At>,
    constants: BTreeMap<u64, At>,
    /// How often a register is read and set.
    pub(crate) counts: Counts,
    checks: Checks,
    /// Lanes that stay in memory: words with their addresses.
    pub(crate) views: BTreeMap<Reg, At>,
    /// The next word for such an address.
    pub(crate) next_view: At,
    /// Registers that hold lane numbers and are only read to be added to a scalar.
    counters: BTreeSet<Reg>,
    /// The next word for the end of a loop.
    next_end: At,
    spare_word: At,
    spare_lanes: [At; SPARE_LANES],
    /// Jumps lead here: what comes before may not be joined with what comes after.
    pub(crate) barrier: usize,
    /// The last operation of two doubles in lanes.
    operation: Option<Operation>,
    /// Instructions since the innermost loop around began, without those of loops inside.
    work: u32,
}

impl<'a, 'b> Translator<'a, 'b> {
    fn new(f: &'a Function, shared: &'a mut Shared<'b>) -> Self {
        let (counts, counters) = (Counts::of(f), counters(f));
        let checks = Checks::of(f, &counters, &counts);
        let (slots, slot_count) = slots(f, &checks);
        let mut words = 0;
        let mut word_place = || {
            words += 8;
            words - 8
        };
        let mut places = IndexVec::new();
        let mut out = FunctionCode::default();
        for (r, info) in f.regs.iter_enumerated() {
            if info.ty.is_lanes() {
                places.push(NOWHERE);
            } else {
                places.push(word_place());
                out.words.push(r);
            }
        }
        let mut constants = BTreeMap::new();
        let mut add = |w: u64| {
            constants.entry(w).or_insert_with(|| {
                let at = word_place();
                out.constants.push((at, w));
                at
            });
        };
        [0, 1, word(ScalarValue::F64(-0.0))].into_iter().for_each(&mut add);
        let (mut loops, mut loads) = (0, 0);
        walk(&f.body, &mut |ins| {
            operands(ins, &mut |a| {
                if let Operand::Const(c) = a {
                    add(word(c));
                }
            });
            loads += At::from(matches!(ins, Ins::LoadLanes { .. }));
            loops += At::from(matches!(ins, Ins::For { .. } | Ins::Lanes { .. }));
        });
        let next_end = words;
        words += 8 * (loops + loads + SPARE_WORDS as At);
        let lanes_start = (words as usize).next_multiple_of(ALIGNMENT);
        let has_lanes = slot_count > 0 || f.regs.iter().any(|r| r.ty.is_lanes());
        let slot = |k: usize| (lanes_start + k * shared.slot_bytes()) as At;
        for (r, s) in slots {
            places[r] = slot(s);
        }
        let all_slots = if has_lanes { slot_count + SPARE_LANES } else { 0 };
        out.frame_bytes = (lanes_start + all_slots * shared.slot_bytes()).next_multiple_of(ALIGNMENT);
        Translator {
            f,
            out,
            places,
            constants,
            checks,
            counts,
            views: BTreeMap::new(),
            next_view: next_end + 8 * (loops + SPARE_WORDS as At),
            counters,
            next_end,
            spare_word: next_end + 8 * loops,
            spare_lanes: std::array::from_fn(|k| slot(slot_count + k)),
            barrier: 0,
            operation: None,
            work: 0,
            shared,
        }
    }

    fn function(mut self) -> FunctionCode {
        self.block(&self.f.body);
        self.emit(Op::Return);
        self.out.work = self.work;
        self.out.params = self.f.params.iter().map(|r| self.places[*r]).collect();
        self.out.results = self.f.results.iter().map(|r| self.places[*r]).collect();
        self.out
    }

    // --- places ---

    pub(crate) fn emit(&mut self, op: Op) {
        self.work += 1;
        self.out.ops.push(op);
    }
    /// The number of the next instruction, to which something jumps.
    fn label(&mut self) -> u32 {
        self.barrier = self.out.ops.len();
        self.here()
    }
    fn here(&self) -> u32 {
        self.out.ops.len() as u32
    }
    fn constant(&self, w: u64) -> At {
        self.constants[&w]
    }
    fn ty(&self, a: Operand) -> Ty {
        match a {
            Operand::Reg(r) => self.f.regs[r].ty,
            Operand::Const(c) => Ty::Scalar(c.scalar()),
            Operand::Null => Ty::Pointer,
        }
    }
    pub(crate) fn is_lanes(&self, a: Operand) -> bool {
        self.ty(a).is_lanes()
    }
    pub(crate) fn at(&self, a: Operand) -> At {
        match a {
            Operand::Reg(r) => self.places[r],
            Operand::Const(c) => self.constant(word(c)),
            Operand::Null => self.constant(0),
        }
    }
    fn place(&self, a: Operand) -> Place {
        Place { at: self.at(a), is_lanes: self.is_lanes(a) }
    }
    /// A value of a message; if lanes that count are not computed, from what they count.
    fn value(&self, a: Operand, counts: bool) -> Value {
        let counting = a.as_reg().filter(|_| counts).and_then(|r| self.checks.counting.get(&r));
        match (counting, self.is_lanes(a)) {
            (Some(from), _) => Value::Counted(self.at(*from)),
            (None, true) => Value::Lanes(self.at(a)),
            (None, false) => Value::Word(self.at(a)),
        }
    }
    /// Whether a register is read once only, so that what sets it may be joined with what reads it.
    fn is_read_once(&self, a: Operand) -> bool {
        matches!(a, Operand::Reg(r) if self.counts.reads[r] == 1)
    }
    /// The last instruction, if it may be joined with what comes next.
    fn last(&self) -> Option<Op> {
        if self.out.ops.len() > self.barrier { self.out.ops.last().copied() } else { None }
    }

    // --- instructions ---

    fn block(&mut self, block: &Block) {
        for (k, ins) in block.iter().enumerate() {
            match ins {
                Ins::LoadLanes { to, pointer, index, stride, mask: None }
                    if self.is_near(*index, *stride) && self.may_stay(*to, &block[k + 1..]) =>
                {
                    self.view(*to, *pointer, *index);
                }
                _ => self.ins(ins),
            }
        }
    }
    fn ins(&mut self, ins: &Ins) {
        match ins {
            Ins::Chunks { .. } => panic!("parts of loops are calls here"),
            Ins::Set { to, value } => self.set(*to, *value),
            Ins::Prim { to, .. } if self.checks.unused.contains(to) => {}
            Ins::Prim { to, prim, args } => self.prim(*to, *prim, args),
            Ins::Load { to, pointer, index } => {
                let (to, ty) = (self.places[*to], self.f.regs[*to].ty);
                let (pointer, index) = (self.at(*pointer), self.at(*index));
                match (load(ty, to, pointer, index), self.last()) {
                    (Op::Load8 { .. }, Some(Op::FailOutside { index: same, size, site }))
                        if same == index =>
                    {
                        self.out.ops.pop();
                        self.emit(Op::Load8Inside { to, pointer, index, size, site });
                    }
                    (load, _) => self.emit(load),
                }
            }
            Ins::Store { pointer, index, value, ty } => {
                let (pointer, index, value) = (self.at(*pointer), self.at(*index), self.at(*value));
                self.emit(match ty.bytes() {
                    1 => Op::Store1 { pointer, index, value },
                    2 => Op::Store2 { pointer, index, value },
                    4 => Op::Store4 { pointer, index, value },
                    _ => Op::Store8 { pointer, index, value },
                });
            }
            Ins::Accumulate { pointer, index, value, ty, atomic: _ } => {
                let (pointer, index, value) = (self.at(*pointer), self.at(*index), self.at(*value));
                match ty.scalar() {
                    Some(Scalar::F64) => self.emit(Op::AddToF64 { pointer, index, value }),
                    s => {
                        let kernel = s.and_then(|s| self.accumulate(s)).expect("sums are of numbers");
                        let kernel = self.shared.memory(kernel);
                        self.emit(Op::Access { kernel, shift: shift(*ty), register: value, pointer, index });
                    }
                }
            }
            Ins::Offset { to, pointer, index, ty, room: _ } => self.offset(*to, *pointer, *index, *ty),
            Ins::Alloc { to, count, ty } => {
                let (to, count) = (self.places[*to], self.at(*count));
                self.emit(Op::Alloc { shift: shift(*ty), to, count });
            }
            Ins::Mark { to } => self.emit(Op::Mark { to: self.places[*to] }),
            Ins::Clock { to } => self.emit(Op::Clock { to: self.places[*to] }),
            Ins::Release { mark } => self.emit(Op::Release { mark: self.at(*mark) }),
            Ins::Fill { pointer, count, value, ty } => {
                let (pointer, count, value) = (self.at(*pointer), self.at(*count), self.at(*value));
                self.emit(Op::Fill { shift: shift(*ty), pointer, count, value });
            }
            Ins::Copy { to, from, count, ty } => {
                let (to, from, count) = (self.at(*to), self.at(*from), self.at(*count));
                self.emit(Op::CopyMemory { shift: shift(*ty), to, from, count });
            }
            Ins::For { i, from, to, body, order: _ } => self.counted(*i, *from, *to, body, false),
            Ins::Lanes { i, from, to, lanes, body } => {
                assert_eq!(*lanes, self.shared.lanes, "all loops have as many lanes as the module");
                self.counted(*i, *from, *to, body, true);
            }
            // Where it is only counted from, that is done at once; see `on_lanes`.
            Ins::LaneNumber { to } if self.counters.contains(to) => {}
            Ins::LaneNumber { to } => self.emit(Op::LaneNumber { to: self.places[*to] }),
            Ins::LoadLanes { to, pointer, index, stride, mask } => {
                let s = self.f.regs[*to].ty.scalar().expect("lanes are of scalars");
                let kernel = kernels::load(s, self.shared.options.machine);
                self.access(kernel, s, self.places[*to], (*pointer, *index, *stride), *mask);
            }
            Ins::StoreLanes { pointer, index, stride, value, ty, mask: None }
                if self.is_near(*index, *stride) && self.made_in_place(*pointer, *index, *value, *ty) => {}
            Ins::StoreLanes { pointer, index, stride, value, ty, mask } => {
                let s = ty.scalar().expect("lanes are of scalars");
                let value = self.in_lanes(*value, s, 0);
                let kernel = kernels::store(s, self.shared.options.machine);
                self.access(kernel, s, value, (*pointer, *index, *stride), *mask);
            }
            Ins::AccumulateLanes { pointer, index, stride, value, ty, mask, atomic: _ } => {
                let s = ty.scalar().expect("lanes are of scalars");
                let value = self.in_lanes(*value, s, 0);
                let kernel = self.accumulate(s).expect("sums are of numbers");
                self.access(kernel, s, value, (*pointer, *index, *stride), *mask);
            }
            Ins::FoldLanes { to, prim, neutral, from, mask } => {
                self.fold(*to, *prim, Operand::Const(*neutral), *from, *mask);
            }
            Ins::Lane { to, from, lane } => self.lane(*to, *from, *lane),
            Ins::While { condition, test, body } => {
                let start = self.label();
                let around = std::mem::take(&mut self.work);
                self.block(condition);
                let leave = self.jump_if_not(*test);
                self.block(body);
                self.emit(Op::Again { to: start, work: self.work + 1 });
                self.work = around;
                self.land(leave);
            }
            Ins::If { condition, then, otherwise } => {
                let other = self.jump_if_not(*condition);
                self.block(then);
                if otherwise.is_empty() {
                    self.land(other);
                } else {
                    let end = self.here();
                    self.emit(Op::Jump { to: 0 });
                    self.land(other);
                    self.block(otherwise);
                    self.land(end);
                }
            }
            Ins::Fail { condition, message, values } => {
                let site = self.out.fails.len() as u32;
                let outside = condition.as_reg().and_then(|r| self.checks.outside.get(&r)).copied();
                let values = values.iter().map(|v| self.value(*v, outside.is_some())).collect();
                self.out.fails.push(FailSite { message: *message, values });
                match outside {
                    Some(Outside { from, size, mask }) => {
                        let (from, size) = (self.at(from), self.at(size));
                        self.emit(match mask {
                            Some(mask) => Op::FailOutsideWhere { from, size, mask: self.at(mask), site },
                            None => Op::FailOutsideLanes { from, size, site },
                        });
                    }
                    None => self.fail(*condition, site),
                }
            }
            Ins::Call { to, function, args } => {
                let site = self.out.calls.len() as u32;
                let (to, args) = (
                    to.iter().map(|r| self.places[*r]).collect(),
                    args.iter().map(|a| self.at(*a)).collect(),
                );
                self.out.calls.push(CallSite { function: Index::index(*function as FunctionId), args, to });
                self.emit(Op::Call { site });
                self.label();
            }
        }
    }

    fn set(&mut self, to: Reg, value: Operand) {
        let (place, from) = (self.places[to], self.at(value));
        if value == to.into() {
            return;
        }
        match self.f.regs[to].ty {
            Ty::Lanes(s, _) => {
                let side = if self.is_lanes(value) { Side::Lanes } else { Side::Scalar };
                self.copy_lanes(s, side, place, from);
            }
            Ty::Scalar(_) | Ty::Pointer => self.copy_word(place, from),
        }
    }

    fn prim(&mut self, to: Reg, prim: Prim, args: &[Operand]) {
        let place = self.places[to];
        let to_lanes = self.f.regs[to].ty.is_lanes();
        if !args.iter().any(|a| self.is_lanes(*a)) {
            let word = if to_lanes { self.spare_word } else { place };
            self.on_words(word, prim, args);
            if to_lanes {
                self.copy_lanes(prim.result(), Side::Scalar, place, word);
            }
        } else {
            self.on_lanes(to, prim, args);
        }
    }
    pub(crate) fn sides(&self, args: &[Operand]) -> Vec<Side> {
        args.iter().map(|a| if self.is_lanes(*a) { Side::Lanes } else { Side::Scalar }).collect()
    }
    /// The kernel of a primitive, if it has one that the options allow.
    pub(crate) fn chosen(&self, prim: Prim, sides: &[Side]) -> Option<Kernel> {
        let machine = self.shared.options.machine;
        kernels::exact(prim, sides, machine).or_else(|| match (prim, self.shared.options.functions) {
            (Prim::Op(op, s), Functions::Lanes) => kernels::function(op, s, sides, machine),
            _ => None,
        })
    }
    fn table(&mut self, to: Place, prim: Prim, args: &[Operand]) {
        let args = prim.params().into_iter().zip(args).map(|(s, a)| (s, self.place(*a))).collect();
        let site = self.out.tables.len() as u32;
        self.out.tables.push(TableSite { prim, to, args });
        self.emit(Op::Table { site });
    }
}

/// Three places; those that are not there are read by nobody.
fn padded(at: &[At]) -> [At; 3] {
    std::array::from_fn(|k| at.get(k).or(at.first()).copied().unwrap_or(0))
}

/// Elements have this power of two of bytes.
pub(crate) fn shift(ty: Ty) -> u8 {
    ty.bytes().trailing_zeros() as u8
}
