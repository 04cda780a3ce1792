//! Kernel IR to bytecode. Once for a module; linear in its size but for looking back at copies and loops.
//!
//! Assumes that all loops of lanes have as many as the module.

use crate::checks::Checks;
use crate::coalesce::coalesce;
use crate::code::{
    At, CallSite, Code, FailSite, FoldSite, FunctionCode, NOWHERE, Op, Place, TableSite, Value,
};
use crate::executable::{Functions, Options};
use crate::kernels::{self, CHUNK, Kernel, MemoryKernel, Side, Sums};
use crate::slots::slots;
use crate::uses::Counts;
use crate::uses::{operands, reads, walk};
use pullback_base::index::{Index, IndexVec};
use pullback_kernel::{Block, Function, FunctionId, Ins, Module, Operand, Reg, Ty, recursive};
use pullback_prim::{Op as PrimOp, Prim, Scalar};
use pullback_words::{ALIGNMENT, word};
use std::collections::{BTreeMap, BTreeSet};

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
    /// Instructions since the innermost loop around began, without those of loops inside.
    work: u32,
}

impl<'a, 'b> Translator<'a, 'b> {
    fn new(f: &'a Function, shared: &'a mut Shared<'b>) -> Self {
        let (slots, slot_count) = slots(f);
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
        add(0);
        add(1);
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
        let (counts, counters) = (Counts::of(f), counters(f));
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
            checks: Checks::of(f, &counters, &counts),
            counts,
            views: BTreeMap::new(),
            next_view: next_end + 8 * (loops + SPARE_WORDS as At),
            counters,
            next_end,
            spare_word: next_end + 8 * loops,
            spare_lanes: std::array::from_fn(|k| slot(slot_count + k)),
            barrier: 0,
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
                self.emit(load(ty, to, pointer, index));
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
                let kernel = kernels::load(s);
                self.access(kernel, s, self.places[*to], (*pointer, *index, *stride), *mask);
            }
            Ins::StoreLanes { pointer, index, stride, value, ty, mask: None }
                if self.is_near(*index, *stride) && self.made_in_place(*pointer, *index, *value, *ty) => {}
            Ins::StoreLanes { pointer, index, stride, value, ty, mask } => {
                let s = ty.scalar().expect("lanes are of scalars");
                let value = self.in_lanes(*value, s, 0);
                self.access(kernels::store(s), s, value, (*pointer, *index, *stride), *mask);
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
                    Some((from, size)) => {
                        let (from, size) = (self.at(from), self.at(size));
                        self.emit(Op::FailOutsideLanes { from, size, site });
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
    /// Copies one after the other are one instruction.
    fn copy_word(&mut self, to: At, from: At) {
        let joined = match self.last() {
            Some(Op::Copy { to: t, from: f }) => Op::Copy2 { to: t, from: f, to2: to, from2: from },
            Some(Op::Copy2 { to: t, from: f, to2, from2 }) => {
                let first = self.out.copies.len() as u32;
                self.out.copies.extend([(t, f), (to2, from2), (to, from)]);
                Op::Copies { first, count: 3 }
            }
            Some(Op::Copies { first, count }) if (first + count) as usize == self.out.copies.len() => {
                self.out.copies.push((to, from));
                Op::Copies { first, count: count + 1 }
            }
            _ => return self.emit(Op::Copy { to, from }),
        };
        self.out.ops.pop();
        self.emit(joined);
    }
    fn copy_lanes(&mut self, s: Scalar, side: Side, to: At, from: At) {
        let kernel = kernels::identity(s, side, self.shared.options.machine);
        let kernel = self.shared.kernel(kernel);
        self.emit(Op::ApplyLanes { kernel, to, a: from, b: from, c: from });
    }
    /// A register of lanes with the value of an operand: its own, or a spare one.
    fn in_lanes(&mut self, a: Operand, s: Scalar, spare: usize) -> At {
        let at = self.at(a);
        if self.is_lanes(a) {
            return at;
        }
        let to = self.spare_lanes[spare];
        self.copy_lanes(s, Side::Scalar, to, at);
        to
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
            self.on_lanes(place, prim, args);
        }
    }
    fn on_words(&mut self, to: At, prim: Prim, args: &[Operand]) {
        let at: Vec<At> = args.iter().map(|a| self.at(*a)).collect();
        if let Some(joined) = self.multiply_add(to, prim, args, &at) {
            self.out.ops.pop();
            return self.emit(joined);
        }
        if let Some(op) = simple(prim, to, &at) {
            return self.emit(op);
        }
        let Some(kernel) = self.chosen(prim, &vec![Side::Scalar; args.len()]) else {
            return self.table(Place { at: to, is_lanes: false }, prim, args);
        };
        let low = matches!(prim, Prim::Op(op, Scalar::F32) if pullback_maths::Function::of_op(op).is_some());
        let kernel = self.shared.kernel(kernel);
        let [a, b, c] = padded(&at);
        self.emit(if low { Op::ApplyLow { kernel, to, a, b, c } } else { Op::Apply { kernel, to, a, b, c } });
    }
    /// The last product and this sum or difference in one instruction. The results of both are rounded.
    fn multiply_add(&self, to: At, prim: Prim, args: &[Operand], at: &[At]) -> Option<Op> {
        let product = |k: usize| self.is_read_once(args[k]).then_some(at[k]);
        match (prim, self.last()?) {
            (Prim::Op(PrimOp::Sub, Scalar::F64), Op::MulF64 { to: t, a, b }) if at[0] != at[1] => {
                if product(0) == Some(t) {
                    Some(Op::MulSubF64 { to, a, b, c: at[1] })
                } else {
                    (product(1) == Some(t)).then_some(Op::SubMulF64 { to, a, b, c: at[0] })
                }
            }
            (Prim::Op(PrimOp::Add, Scalar::F64), Op::MulF64 { to: t, a, b }) => {
                let other = other_than(t, at, [product(0), product(1)])?;
                Some(Op::MulAddF64 { to, a, b, c: other })
            }
            (Prim::Op(PrimOp::Add, Scalar::I64), Op::MulI64 { to: t, a, b }) => {
                let other = other_than(t, at, [product(0), product(1)])?;
                Some(Op::MulAddI64 { to, a, b, c: other })
            }
            _ => None,
        }
    }
    fn on_lanes(&mut self, to: At, prim: Prim, args: &[Operand]) {
        if let (Prim::Op(PrimOp::Select, s), [condition, x, y]) = (prim, args)
            && !self.is_lanes(*condition)
        {
            return self.choose_lanes(to, s, *condition, *x, *y);
        }
        if let Some(other) = self.counted_from(prim, args) {
            let from = self.at(other);
            return self.emit(Op::Count { to, from });
        }
        let Some(kernel) = self.chosen(prim, &self.sides(args)) else {
            return self.table(Place { at: to, is_lanes: true }, prim, args);
        };
        let kernel = self.shared.kernel(kernel);
        let mut views = 0;
        let at: Vec<At> = (args.iter().enumerate())
            .map(|(k, a)| match a.as_reg().and_then(|r| self.views.get(&r)) {
                Some(view) => {
                    views |= 1 << k;
                    *view
                }
                None => self.at(*a),
            })
            .collect();
        let [a, b, c] = padded(&at);
        self.emit(match views {
            0 => Op::ApplyLanes { kernel, to, a, b, c },
            _ => Op::ApplyViews { kernel, views, to, a, b, c },
        });
    }
    /// The scalar that lane numbers are added to.
    fn counted_from(&self, prim: Prim, args: &[Operand]) -> Option<Operand> {
        match (prim, args) {
            (Prim::Op(PrimOp::Add, Scalar::I64), [Operand::Reg(r), other] | [other, Operand::Reg(r)]) => {
                (self.counters.contains(r) && !self.is_lanes(*other)).then_some(*other)
            }
            _ => None,
        }
    }
    /// One of two registers, for all lanes.
    fn choose_lanes(&mut self, to: At, s: Scalar, condition: Operand, x: Operand, y: Operand) {
        let copy = |t: &mut Self, a: Operand| {
            let side = if t.is_lanes(a) { Side::Lanes } else { Side::Scalar };
            let from = t.at(a);
            t.copy_lanes(s, side, to, from);
        };
        let other = self.jump_if_not(condition);
        copy(self, x);
        let end = self.here();
        self.emit(Op::Jump { to: 0 });
        self.land(other);
        copy(self, y);
        self.land(end);
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

    fn offset(&mut self, to: Reg, pointer: Operand, index: Operand, ty: Ty) {
        let (place, shift) = (self.places[to], shift(ty));
        let (pointer, at) = (self.at(pointer), self.at(index));
        match self.last() {
            Some(Op::MulI64 { to: t, a, b }) if t == at && t != pointer && self.is_read_once(index) => {
                self.out.ops.pop();
                self.emit(Op::OffsetMul { shift, to: place, pointer, a, b });
            }
            _ => self.emit(Op::Offset { shift, to: place, pointer, index: at }),
        }
    }

    fn accumulate(&self, s: Scalar) -> Option<MemoryKernel> {
        let sums = match self.shared.options.functions {
            Functions::Lanes => Sums::Together,
            Functions::Table => Sums::InOrder,
        };
        kernels::accumulate(s, sums, self.shared.options.machine)
    }
    fn access(
        &mut self,
        kernel: MemoryKernel,
        s: Scalar,
        register: At,
        (pointer, index, stride): (Operand, Operand, Operand),
        mask: Option<Operand>,
    ) {
        let around = match mask {
            Some(m) if !self.is_lanes(m) => Some(self.jump_if_not(m)),
            _ => None,
        };
        let mask = mask.filter(|m| self.is_lanes(*m)).map_or(NOWHERE, |m| self.at(m));
        let kernel = self.shared.memory(kernel);
        let (pointer, at, stride) = (self.at(pointer), self.at(index), self.at(stride));
        self.emit(if self.is_lanes(index) {
            Op::AccessAt { kernel, register, pointer, indices: at, stride, mask }
        } else {
            Op::AccessLanes {
                kernel,
                shift: shift(Ty::Scalar(s)),
                register,
                pointer,
                index: at,
                stride,
                mask,
            }
        });
        if let Some(jump) = around {
            self.land(jump);
        }
    }

    fn fold(&mut self, to: Reg, prim: Prim, neutral: Operand, from: Operand, mask: Option<Operand>) {
        let s = prim.result();
        if let (Prim::Op(op @ (PrimOp::And | PrimOp::Or), Scalar::Bool), None, true) =
            (prim, mask, self.is_lanes(from))
            && neutral == Operand::bool(op == PrimOp::And)
        {
            let wanted = u8::from(op == PrimOp::Or);
            let (to, from) = (self.places[to], self.at(from));
            return self.emit(Op::AnyLanes { to, from, wanted });
        }
        let mask = mask.map_or(NOWHERE, |m| self.in_lanes(m, Scalar::Bool, 1));
        let kernel = |prim: Prim, sides: &[Side]| {
            kernels::exact(prim, sides, self.shared.options.machine)
                .expect("lanes are folded by exact operations")
        };
        let side = if self.is_lanes(from) { Side::Lanes } else { Side::Scalar };
        let site = FoldSite {
            to: self.places[to],
            from: self.at(from),
            mask,
            scratch: self.spare_lanes[2],
            neutral: self.at(neutral),
            scalar: s,
            both: kernel(prim, &[Side::Lanes, Side::Lanes]),
            with_word: kernel(prim, &[Side::Lanes, Side::Scalar]),
            taken: kernels::identity(s, side, self.shared.options.machine),
            chosen: kernel(Prim::Op(PrimOp::Select, s), &[Side::Lanes, side, Side::Scalar]),
            fill: kernels::identity(s, Side::Scalar, self.shared.options.machine),
        };
        self.out.folds.push(site);
        self.emit(Op::FoldLanes { site: self.out.folds.len() as u32 - 1 });
    }

    fn lane(&mut self, to: Reg, from: Operand, lane: usize) {
        let to_at = self.places[to];
        let at = self.at(from);
        if !self.is_lanes(from) {
            return self.emit(Op::Copy { to: to_at, from: at });
        }
        let ty = self.f.regs[to].ty;
        let is_signed = ty.scalar().is_some_and(Scalar::is_signed);
        let from = at + (lane * ty.bytes()) as At;
        self.emit(Op::Lane { shift: shift(ty), is_signed, to: to_at, from });
    }

    fn counted(&mut self, i: Reg, from: Operand, to: Operand, body: &Block, is_lanes: bool) {
        let (i, from, to) = (self.places[i], self.at(from), self.at(to));
        let end = self.next_end;
        self.next_end += 8;
        let start = self.here();
        self.emit(if is_lanes {
            Op::LanesStart { i, from, to, end, exit: 0 }
        } else {
            Op::ForStart { i, from, to, end, exit: 0 }
        });
        let first = self.label();
        let around = std::mem::take(&mut self.work);
        self.block(body);
        let work = self.work + 1;
        self.emit(if is_lanes {
            Op::LanesNext { i, end, body: first, work }
        } else {
            Op::ForNext { i, end, body: first, work }
        });
        self.work = around;
        self.land(start);
    }

    /// A jump that is taken if a condition does not hold; where to is filled in later.
    fn jump_if_not(&mut self, condition: Operand) -> u32 {
        let at = self.at(condition);
        let joined = if self.is_read_once(condition) { self.last() } else { None };
        let jump = match joined {
            Some(Op::LtI64 { to, a, b }) if to == at => Op::JumpIfNotLtI64 { a, b, to: 0 },
            Some(Op::LeI64 { to, a, b }) if to == at => Op::JumpIfNotLeI64 { a, b, to: 0 },
            Some(Op::EqWord { to, a, b }) if to == at => Op::JumpIfNotEq { a, b, to: 0 },
            Some(Op::NeWord { to, a, b }) if to == at => Op::JumpIfEq { a, b, to: 0 },
            Some(Op::NotBool { to, a }) if to == at => Op::JumpIf { condition: a, to: 0 },
            _ => {
                let jump = self.here();
                self.emit(Op::JumpIfNot { condition: at, to: 0 });
                return jump;
            }
        };
        self.out.ops.pop();
        let here = self.here();
        self.emit(jump);
        here
    }
    /// A jump leads here.
    fn land(&mut self, jump: u32) {
        let here = self.label();
        match &mut self.out.ops[jump as usize] {
            Op::Jump { to }
            | Op::JumpIf { to, .. }
            | Op::JumpIfNot { to, .. }
            | Op::JumpIfNotLtI64 { to, .. }
            | Op::JumpIfNotLeI64 { to, .. }
            | Op::JumpIfNotEq { to, .. }
            | Op::JumpIfEq { to, .. }
            | Op::ForStart { exit: to, .. }
            | Op::LanesStart { exit: to, .. } => *to = here,
            other => unreachable!("{other:?} is no jump"),
        }
    }
    fn fail(&mut self, condition: Operand, site: u32) {
        let at = self.at(condition);
        if self.is_lanes(condition) {
            return self.emit(Op::FailLanes { condition: at, site });
        }
        match self.last() {
            Some(Op::NotBool { to, a }) if to == at && self.is_read_once(condition) => {
                self.out.ops.pop();
                self.emit(Op::FailIfNot { condition: a, site });
            }
            Some(Op::OrWord { to, a, b }) if to == at && self.is_read_once(condition) => {
                match self.outside(a, b) {
                    Some((index, size)) => {
                        self.out.ops.truncate(self.out.ops.len() - 3);
                        self.emit(Op::FailOutside { index, size, site });
                    }
                    None => self.emit(Op::Fail { condition: at, site }),
                }
            }
            _ => self.emit(Op::Fail { condition: at, site }),
        }
    }
    /// Index and size, if the last three instructions are `a = index < 0; b = size <= index; a | b`, and nobody else reads `a` and `b`.
    fn outside(&self, a: At, b: At) -> Option<(At, At)> {
        let before = &self.out.ops[self.barrier..];
        let [.., Op::LtI64 { to: low, a: index, b: zero }, Op::LeI64 { to: high, a: size, b: same }, _] =
            *before
        else {
            return None;
        };
        let once = |at: At| self.out.register(at).is_some_and(|r| self.counts.reads[r] == 1);
        let fits = (low, high) == (a, b) && index == same && zero == self.constant(0);
        (fits && once(a) && once(b)).then_some((index, size))
    }
}

/// Registers that are set once, to lane numbers, and only read to be added to a scalar.
fn counters(f: &Function) -> BTreeSet<Reg> {
    let (mut numbers, mut others) = (BTreeSet::new(), BTreeSet::new());
    walk(&f.body, &mut |ins| {
        if let Ins::LaneNumber { to } = ins {
            if !numbers.insert(*to) {
                others.insert(*to);
            }
            return;
        }
        others.extend(ins.sets());
        let is_lanes = |a: Operand| matches!(a, Operand::Reg(r) if f.regs[r].ty.is_lanes());
        match ins {
            Ins::Prim { prim: Prim::Op(PrimOp::Add, Scalar::I64), args, .. }
                if args.iter().filter(|a| is_lanes(**a)).count() == 1 => {}
            _ => reads(ins, &mut |r| {
                others.insert(r);
            }),
        }
    });
    &numbers - &others
}

/// The operand that is not the product `t`, if the other one is it and may be joined.
fn other_than(t: At, at: &[At], product: [Option<At>; 2]) -> Option<At> {
    match (product, at) {
        ([Some(p), _], [_, other]) if p == t && *other != t => Some(*other),
        ([_, Some(p)], [other, _]) if p == t && *other != t => Some(*other),
        _ => None,
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

fn load(ty: Ty, to: At, pointer: At, index: At) -> Op {
    let is_signed = ty.scalar().is_some_and(Scalar::is_signed);
    match (ty.bytes(), is_signed) {
        (1, false) => Op::Load1 { to, pointer, index },
        (1, true) => Op::Load1Signed { to, pointer, index },
        (2, false) => Op::Load2 { to, pointer, index },
        (2, true) => Op::Load2Signed { to, pointer, index },
        (4, false) => Op::Load4 { to, pointer, index },
        (4, true) => Op::Load4Signed { to, pointer, index },
        _ => Op::Load8 { to, pointer, index },
    }
}

/// The instruction for a primitive on words, if it has one of its own.
fn simple(prim: Prim, to: At, at: &[At]) -> Option<Op> {
    let Prim::Op(op, s) = prim else { return None };
    let (a, b) = (at[0], at.get(1).copied().unwrap_or(0));
    Some(match (op, s) {
        (PrimOp::Select, _) => Op::Select { to, condition: a, a: b, b: at[2] },
        (PrimOp::Add, Scalar::F64) => Op::AddF64 { to, a, b },
        (PrimOp::Sub, Scalar::F64) => Op::SubF64 { to, a, b },
        (PrimOp::Mul, Scalar::F64) => Op::MulF64 { to, a, b },
        (PrimOp::Div, Scalar::F64) => Op::DivF64 { to, a, b },
        (PrimOp::Min, Scalar::F64) => Op::MinF64 { to, a, b },
        (PrimOp::Max, Scalar::F64) => Op::MaxF64 { to, a, b },
        (PrimOp::Neg, Scalar::F64) => Op::NegF64 { to, a },
        (PrimOp::Sqrt, Scalar::F64) => Op::SqrtF64 { to, a },
        (PrimOp::Lt, Scalar::F64) => Op::LtF64 { to, a, b },
        (PrimOp::Le, Scalar::F64) => Op::LeF64 { to, a, b },
        (PrimOp::Eq, Scalar::F64) => Op::EqF64 { to, a, b },
        (PrimOp::Ne, Scalar::F64) => Op::NeF64 { to, a, b },
        (PrimOp::Add, Scalar::I64 | Scalar::U64) => Op::AddI64 { to, a, b },
        (PrimOp::Sub, Scalar::I64 | Scalar::U64) => Op::SubI64 { to, a, b },
        (PrimOp::Mul, Scalar::I64 | Scalar::U64) => Op::MulI64 { to, a, b },
        // Words of smaller types are extended, so that they compare as numbers.
        (PrimOp::Lt, s) if !s.is_float() && s != Scalar::U64 => Op::LtI64 { to, a, b },
        (PrimOp::Le, s) if !s.is_float() && s != Scalar::U64 => Op::LeI64 { to, a, b },
        (PrimOp::Eq, s) if !s.is_float() => Op::EqWord { to, a, b },
        (PrimOp::Ne, s) if !s.is_float() => Op::NeWord { to, a, b },
        // Extended words stay extended.
        (PrimOp::And, _) => Op::AndWord { to, a, b },
        (PrimOp::Or, _) => Op::OrWord { to, a, b },
        (PrimOp::Xor, _) => Op::XorWord { to, a, b },
        (PrimOp::Not, Scalar::Bool) => Op::NotBool { to, a },
        _ => return None,
    })
}
