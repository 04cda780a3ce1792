//! Loops over threads: a loop becomes a function that runs a part of it, called for every part by [`Ins::Chunks`].
//!
//! How many parts there are depends on sizes only, never on threads: on the work that the loop is estimated to be, from the
//! numbers of iterations that are known before it. So does the order in which floats are added: each part has its own state
//! of folds and its own copy of what it adds to; they are taken together in the order of the parts. Copies are filled by the
//! parts, and threads share the elements of the sum of all copies, so that no work grows with the number of parts on one thread.
//!
//! Memory of which each iteration of the loop has a row to itself needs no copies: parts add to it as it is.
//!
//! Relaxed, parts add to one place with atomic additions where copies would take too much of the work (rule E5 of Fast CHAD).
//!
//! Refused ([`outline`] gives `None`): a loop that adds to memory that it also uses in another way, or, if not relaxed, of which
//! it is not known how large it is.

use super::added::{Added, Offsets, Sizes, added, defined, reads};
use super::cost::Costs;
use super::uses::Uses;
use crate::ir::{Block, Fold, Function, FunctionId, Ins, Module, Operand, Order, Reg, RegInfo, Ty};
use crate::walk::walk;
use pullback_base::index::{IdMap, IdSet, Index, IndexVec};
use pullback_prim::{Op, Prim, Scalar, ScalarValue};
use std::collections::BTreeMap;

/// The most parts.
const MOST: i64 = 64;

/// The work that there is at least for each element that a part has a copy of.
const COPIES: f64 = 64.0;

/// Additions that are worth a part of their own when copies are taken together.
const MERGED: i64 = 1 << 15;

/// A loop as it has been scheduled.
pub(super) struct Scheduled<'a> {
    pub(super) i: Reg,
    pub(super) from: Operand,
    pub(super) to: Operand,
    pub(super) folds: &'a [Fold],
    /// The loop with these bounds, and what belongs to it before and after.
    pub(super) code: Block,
    /// Iterations that stay together.
    pub(super) together: usize,
}

/// What is known about the function.
pub(super) struct Known<'a> {
    pub(super) costs: Costs<'a>,
    /// How many iterations run side by side.
    pub(super) lanes: usize,
    /// Work that is worth a part of its own.
    pub(super) grain: f64,
    /// Parts may add to one place at the same time, so that the order of sums is not fixed.
    pub(super) relaxed: bool,
    /// The memory that a pointer points into, and how it was computed.
    pub(super) roots: &'a IndexVec<Reg, Option<Reg>>,
    /// How many elements an allocation has.
    pub(super) counts: &'a Sizes,
    /// Pointers that are offsets: pointer, index, type.
    pub(super) offsets: &'a Offsets,
    /// Memory of which each iteration uses a row of its own: parts have no place in common.
    pub(super) apart: &'a IdSet<Reg>,
}

/// The functions that parts need.
pub(super) struct Made {
    /// The number of the first one.
    first: usize,
    pub(super) functions: Vec<Function>,
    /// Those that take copies together, by the type of the elements.
    sums: BTreeMap<Ty, FunctionId>,
}

impl Made {
    /// None yet; the first one will have this number.
    pub(super) fn after(first: usize) -> Made {
        Made { first, functions: Vec::new(), sums: BTreeMap::new() }
    }
    /// The number that a function of these will have in the module.
    pub(super) fn id(&self, k: usize) -> FunctionId {
        FunctionId::new(self.first + k)
    }
    fn push(&mut self, mut f: Function) -> FunctionId {
        let number = self.first + self.functions.len();
        f.name = format!("{}.{number}", f.name);
        self.functions.push(f);
        FunctionId::new(number)
    }
    /// The function that adds a part of the elements of copies, so many side by side, to the memory that they are copies of.
    fn sum(&mut self, ty: Ty, lanes: usize) -> FunctionId {
        if let Some(id) = self.sums.get(&ty) {
            return *id;
        }
        let id = self.push(sum_of_copies(ty, lanes));
        self.sums.insert(ty, id);
        id
    }
}

/// The instructions that run the loop in parts. The functions for a part are called after this name.
pub(super) fn outline(
    l: &Scheduled<'_>,
    known: &Known<'_>,
    regs: &mut IndexVec<Reg, RegInfo>,
    (name, made): (&str, &mut Made),
) -> Option<Block> {
    let added = added(l, known)?;
    let mut o = Outline { regs, out: Vec::new(), name, made, known: IdMap::new() };
    let copied = added.sizes();
    if !known.relaxed || added.roots.is_empty() {
        let cut = o.parts(l, known, &copied?);
        o.in_parts(l, known, cut, &added);
        return Some(o.out);
    }
    // Where copies would leave less than half of the parts, all parts add to one place.
    let cut = o.parts(l, known, &Sizes::new());
    let with_copies = copied.map(|sizes| o.parts(l, known, &sizes));
    let few = with_copies.map_or(Operand::i64(1), |(_, parts)| parts);
    let twice = o.int(Op::Mul, [Operand::i64(2), few]);
    let limit = if with_copies.is_some() { twice } else { few };
    let condition = o.prim(Prim::Op(Op::Lt, Scalar::I64), &[limit, cut.1]);
    let before = std::mem::take(&mut o.out);
    let mut code = l.code.clone();
    added.make_atomic(&mut code, known);
    o.in_parts(&Scheduled { code, ..*l }, known, cut, &Added::default());
    let then = std::mem::take(&mut o.out);
    match with_copies {
        Some(cut) => o.in_parts(l, known, cut, &added),
        None => o.out.extend(l.code.iter().cloned()),
    }
    let otherwise = std::mem::replace(&mut o.out, before);
    o.out.push(Ins::If { condition, then, otherwise });
    Some(o.out)
}

/// Adds the elements of a part, in the order of the copies: arguments are the number of the part, the memory, the copies, how
/// many elements it has, how many copies there are, and how many elements a part has.
fn sum_of_copies(ty: Ty, lanes: usize) -> Function {
    let mut regs: IndexVec<Reg, RegInfo> = IndexVec::new();
    let mut reg = |ty: Ty, hint: &str| regs.push(RegInfo::new(ty, hint));
    let (part, count) = (reg(Ty::I64, "part"), reg(Ty::I64, "count"));
    let (root, copies) = (reg(Ty::Pointer, "sum"), reg(Ty::Pointer, "copies"));
    let (parts, size) = (reg(Ty::I64, "parts"), reg(Ty::I64, "size"));
    let (low, end, high) = (reg(Ty::I64, "low"), reg(Ty::I64, "end"), reg(Ty::I64, "high"));
    let (k, start, own) = (reg(Ty::I64, "copy"), reg(Ty::I64, "start"), reg(Ty::Pointer, "own"));
    let wide = ty.scalar().map_or(ty, |s| Ty::Lanes(s, lanes));
    let (j, value) = (reg(Ty::I64, "j"), reg(wide, "x"));
    let int = |to: Reg, op: Op, args: [Reg; 2]| {
        let args = args.map(Operand::from).to_vec();
        Ins::Prim { to, prim: Prim::Op(op, Scalar::I64), args }
    };
    let (index, stride, mask) = (j.into(), Operand::i64(1), None);
    let (pointer, x) = (root.into(), value.into());
    let add = vec![
        Ins::LoadLanes { to: value, pointer: own.into(), index, stride, mask },
        Ins::AccumulateLanes { pointer, index, stride, value: x, ty, mask, atomic: false },
    ];
    let copy = vec![
        int(start, Op::Mul, [k, count]),
        Ins::Offset { to: own, pointer: copies.into(), index: start.into(), ty, room: None },
        Ins::Lanes { i: j, from: low.into(), to: high.into(), lanes, body: add },
    ];
    let (from, to) = (Operand::i64(0), parts.into());
    let body = vec![
        int(low, Op::Mul, [part, size]),
        int(end, Op::Add, [low, size]),
        int(high, Op::Min, [end, count]),
        Ins::For { i: k, from, to, body: copy, order: Order::Given },
    ];
    let params = vec![part, root, copies, count, parts, size];
    Function { name: "sum".to_string(), params, results: Vec::new(), regs, body }
}

/// The module with the parts of loops run one after the other: for executors without threads.
pub fn without_chunks(module: &mut Module) {
    for f in module.functions.iter_mut() {
        let body = std::mem::take(&mut f.body);
        f.body = in_order(body, &mut f.regs);
    }
}

fn in_order(block: Block, regs: &mut IndexVec<Reg, RegInfo>) -> Block {
    let change = |mut ins: Ins| {
        for inner in ins.blocks_mut() {
            *inner = in_order(std::mem::take(inner), regs);
        }
        let Ins::Chunks { count, function, args } = ins else { return ins };
        let mut reg = |ty: Ty, hint: &str| regs.push(RegInfo::new(ty, hint));
        let (i, mark) = (reg(Ty::I64, "part"), reg(Ty::Pointer, "mark"));
        let args = std::iter::once(i.into()).chain(args).collect();
        let call = Ins::Call { to: Vec::new(), function, args };
        let body = vec![Ins::Mark { to: mark }, call, Ins::Release { mark: mark.into() }];
        Ins::For { i, from: Operand::i64(0), to: count, body, order: Order::Given }
    };
    block.into_iter().map(change).collect()
}

struct Outline<'a> {
    regs: &'a mut IndexVec<Reg, RegInfo>,
    out: Block,
    /// What functions are called after.
    name: &'a str,
    made: &'a mut Made,
    /// What the loop computes, and is known before it.
    known: IdMap<Reg, Operand>,
}

/// What a loop sets.
struct Inside {
    set: IdSet<Reg>,
    /// What it computes from numbers that it does not set: it is the same in all iterations.
    known: IdMap<Reg, (Prim, Vec<Operand>)>,
}

impl Inside {
    fn of(code: &Block) -> Inside {
        let uses = Uses::of(code);
        let mut inside = Inside { set: defined(code), known: IdMap::new() };
        walk(code, &mut |ins| {
            if let Ins::Prim { to, prim, args } = ins
                && uses.sets(*to) == 1
                && is_cheap(*prim)
                && args.iter().all(|a| inside.is_known(*a))
            {
                inside.known.insert(*to, (*prim, args.clone()));
            }
        });
        inside
    }
    fn is_known(&self, a: Operand) -> bool {
        a.as_reg().is_none_or(|r| !self.set.contains(&r) || self.known.contains_key(&r))
    }
}

/// Operations on whole numbers and truth values that take no time and do not fail.
fn is_cheap(prim: Prim) -> bool {
    use Op::{Add, And, Eq, Le, Lt, Max, Min, Mul, Ne, Not, Or, Select, Sub};
    let is_op = |op| matches!(op, Add | And | Eq | Le | Lt | Max | Min | Mul | Ne | Not | Or | Select | Sub);
    matches!(prim, Prim::Op(op, Scalar::I64 | Scalar::Bool) if is_op(op))
}

impl Outline<'_> {
    fn reg(&mut self, ty: Ty, hint: &str) -> Reg {
        self.regs.push(RegInfo::new(ty, hint))
    }
    fn in_block(&mut self, block: &mut Block, op: Op, args: [Operand; 2]) -> Operand {
        let to = self.reg(Ty::I64, "t");
        block.push(Ins::Prim { to, prim: Prim::Op(op, Scalar::I64), args: args.to_vec() });
        to.into()
    }
    fn prim(&mut self, prim: Prim, args: &[Operand]) -> Operand {
        let constant = |a: &Operand| if let Operand::Const(c) = a { Some(*c) } else { None };
        let constants: Option<Vec<ScalarValue>> = args.iter().map(constant).collect();
        if let Some(Ok(value)) = constants.map(|c| prim.eval(&c)) {
            return Operand::Const(value);
        }
        let is = |a: &Operand, x: f64| constant(a).is_some_and(|c| c.as_f64() == x);
        match (prim, args) {
            (Prim::Op(Op::Add, _), [a, b]) if is(b, 0.0) => return *a,
            (Prim::Op(Op::Add, _), [a, b]) if is(a, 0.0) => return *b,
            (Prim::Op(Op::Sub, _), [a, b]) if is(b, 0.0) => return *a,
            (Prim::Op(Op::Mul, _), [a, b]) if is(b, 1.0) => return *a,
            _ => {}
        }
        let to = self.reg(Ty::Scalar(prim.result()), "t");
        self.out.push(Ins::Prim { to, prim, args: args.to_vec() });
        to.into()
    }
    fn int(&mut self, op: Op, args: [Operand; 2]) -> Operand {
        self.prim(Prim::Op(op, Scalar::I64), &args)
    }
    fn float<const N: usize>(&mut self, op: Op, args: [Operand; N]) -> Operand {
        self.prim(Prim::Op(op, Scalar::F64), &args)
    }
    /// The lesser one of two numbers that are no NaN.
    fn less(&mut self, a: Operand, b: Operand) -> Operand {
        let is_first = self.prim(Prim::Op(Op::Lt, Scalar::F64), &[a, b]);
        self.float(Op::Select, [is_first, a, b])
    }
    fn alloc(&mut self, count: Operand, ty: Ty) -> Reg {
        let to = self.reg(Ty::Pointer, "parts");
        self.out.push(Ins::Alloc { to, count, ty });
        to
    }

    /// Runs a loop in parts of `size` iterations.
    fn in_parts(
        &mut self,
        l: &Scheduled<'_>,
        known: &Known<'_>,
        (size, parts): (Operand, Operand),
        added: &Added,
    ) {
        // What the parts add to, and the states of their folds.
        let mark = self.reg(Ty::Pointer, "mark");
        self.out.push(Ins::Mark { to: mark });
        let several = self.prim(Prim::Op(Op::Lt, Scalar::I64), &[Operand::i64(1), parts]);
        let mut copies = Vec::new();
        for (root, count, ty) in added.copied() {
            copies.push(self.copies(root, (count, ty), (parts, several)));
        }
        let states: Vec<Reg> = l.folds.iter().flat_map(|f| f.state.iter().copied()).collect();
        let columns: Vec<Reg> = states.iter().map(|s| self.alloc(parts, self.regs[*s].ty)).collect();

        // The function for part `k`.
        let k = self.reg(Ty::I64, "part");
        let (low, high) = (self.reg(Ty::I64, "low"), self.reg(Ty::I64, "high"));
        let mut body = Vec::new();
        {
            let start = self.in_block(&mut body, Op::Mul, [k.into(), size]);
            let first = self.in_block(&mut body, Op::Add, [l.from, start]);
            body.push(Ins::Set { to: low, value: first });
            let end = self.in_block(&mut body, Op::Add, [first, size]);
            let end = self.in_block(&mut body, Op::Min, [end, l.to]);
            body.push(Ins::Set { to: high, value: end });
        }
        for fold in l.folds {
            let start = fold.state.iter().zip(&fold.neutral);
            body.extend(start.map(|(to, value)| Ins::Set { to: *to, value: *value }));
        }
        let mut moved = IdMap::new();
        for ((root, count, ty), copy) in added.copied().zip(&copies) {
            let by = self.in_block(&mut body, Op::Mul, [k.into(), count]);
            // With one part there is no copy.
            let to = self.reg(Ty::Pointer, "own");
            let room = None;
            body.push(Ins::Offset { to, pointer: (*copy).into(), index: by, ty, room });
            let zero = Operand::Const(ty.scalar().map_or(ScalarValue::F64(0.0), Scalar::zero));
            let fill = Ins::Fill { pointer: to.into(), count, value: zero, ty };
            body.push(Ins::If { condition: several, then: vec![fill], otherwise: Vec::new() });
            moved.insert(root, Operand::Reg(to));
        }
        let mut code = l.code.clone();
        bounds(&mut code, (l.i, l.from, l.to), (low.into(), high.into()));
        self.rebase(&mut code, &mut body, &mut moved, known);
        body.extend(code);
        for (state, column) in states.iter().zip(&columns) {
            let ty = self.regs[*state].ty;
            let (pointer, index, value) = ((*column).into(), k.into(), (*state).into());
            body.push(Ins::Store { pointer, index, value, ty });
        }
        let captured = captured(&body, k);
        let args = captured.iter().map(|r| (*r).into()).collect();
        let params = std::iter::once(k).chain(captured).collect();
        let name = self.name.to_string();
        let part = Function { name, params, results: Vec::new(), regs: self.regs.clone(), body };
        let function = self.made.push(part);
        self.out.push(Ins::Chunks { count: parts, function, args });

        // Together again.
        for ((root, count, ty), copy) in added.copied().zip(&copies) {
            let sum = self.made.sum(ty, known.lanes);
            self.merge((root, *copy), count, (parts, several), sum);
        }
        self.folds(l.folds, &states, &columns, parts);
        self.out.push(Ins::Release { mark: mark.into() });
    }

    /// How many iterations a part has, and how many parts there are: at least one.
    fn parts(&mut self, l: &Scheduled<'_>, known: &Known<'_>, added: &Sizes) -> (Operand, Operand) {
        let work = self.work(&l.code, known, &Inside::of(&l.code), 1.0);
        let grains = self.float(Op::Div, [work, real(known.grain)]);
        let mut most = grains;
        // Copies are filled and merged: that is a small part of the work.
        for (count, _) in added.values() {
            let n = self.prim(Prim::Convert(Scalar::I64, Scalar::F64), &[*count]);
            let n = self.float(Op::Mul, [n, real(COPIES)]);
            let n = self.float(Op::Add, [n, real(1.0)]);
            let fits = self.float(Op::Div, [work, n]);
            most = self.less(most, fits);
        }
        let wanted = self.prim(Prim::Convert(Scalar::F64, Scalar::I64), &[most]);
        let wanted = self.int(Op::Min, [wanted, Operand::i64(MOST)]);
        let wanted = self.int(Op::Max, [wanted, Operand::i64(1)]);
        let n = self.int(Op::Sub, [l.to, l.from]);
        let n = self.int(Op::Max, [n, Operand::i64(1)]);
        // Parts of whole blocks.
        let block = Operand::i64(l.together as i64);
        let less = self.int(Op::Sub, [n, Operand::i64(1)]);
        let blocks = self.int(Op::Quot, [less, block]);
        let blocks = self.int(Op::Add, [blocks, Operand::i64(1)]);
        let (each, parts) = self.shared(blocks, wanted);
        let size = self.int(Op::Mul, [each, block]);
        (size, parts)
    }
    /// How many blocks a part has, and how many parts there are, of which about so many are wanted. One part is found without divisions: in
    /// small calls of functions that call themselves these take longer than the loop.
    fn shared(&mut self, blocks: Operand, wanted: Operand) -> (Operand, Operand) {
        let one = Operand::i64(1);
        let condition = self.prim(Prim::Op(Op::Lt, Scalar::I64), &[one, wanted]);
        match condition {
            Operand::Const(ScalarValue::Bool(false)) => return (blocks, one),
            Operand::Const(_) => return self.divided(blocks, wanted),
            Operand::Reg(_) | Operand::Null => {}
        }
        let before = std::mem::take(&mut self.out);
        let several = self.divided(blocks, wanted);
        let (each, parts) = (self.reg(Ty::I64, "each"), self.reg(Ty::I64, "parts"));
        let set = |(a, b)| [Ins::Set { to: each, value: a }, Ins::Set { to: parts, value: b }];
        self.out.extend(set(several));
        let then = std::mem::replace(&mut self.out, before);
        let otherwise = set((blocks, one)).to_vec();
        self.out.push(Ins::If { condition, then, otherwise });
        (each.into(), parts.into())
    }
    /// The same with divisions, for any number that is wanted.
    fn divided(&mut self, blocks: Operand, wanted: Operand) -> (Operand, Operand) {
        let one = Operand::i64(1);
        let less = self.int(Op::Sub, [blocks, one]);
        let each = self.int(Op::Quot, [less, wanted]);
        let each = self.int(Op::Add, [each, one]);
        let parts = self.int(Op::Quot, [less, each]);
        (each, self.int(Op::Add, [parts, one]))
    }
    /// The work of a block, from numbers of iterations that are known here. `active`: lanes for which it is done.
    fn work(&mut self, block: &Block, known: &Known<'_>, inside: &Inside, active: f64) -> Operand {
        let mut fixed = 0.0;
        let mut all = real(0.0);
        for ins in block {
            let (from, to, step, active) = match ins {
                Ins::For { from, to, .. } => (*from, *to, 1.0, active),
                Ins::Lanes { from, to, lanes, .. } => (*from, *to, *lanes as f64, *lanes as f64),
                _ => {
                    fixed += known.costs.ins(ins, active);
                    continue;
                }
            };
            let body = ins.blocks().into_iter().next().cloned().unwrap_or_default();
            let inner = self.work(&body, known, inside, active);
            let trips = if inside.is_known(from) && inside.is_known(to) {
                let (from, to) = (self.before(from, inside), self.before(to, inside));
                let n = self.int(Op::Sub, [to, from]);
                let n = self.int(Op::Max, [n, Operand::i64(0)]);
                self.prim(Prim::Convert(Scalar::I64, Scalar::F64), &[n])
            } else {
                real(16.0)
            };
            let trips = self.float(Op::Mul, [trips, real(1.0 / step)]);
            let product = self.float(Op::Mul, [trips, inner]);
            all = self.float(Op::Add, [all, product]);
        }
        self.float(Op::Add, [all, real(fixed)])
    }
    /// A number that is known before the loop, computed there.
    fn before(&mut self, a: Operand, inside: &Inside) -> Operand {
        let Some((r, (prim, args))) = a.as_reg().and_then(|r| Some((r, inside.known.get(&r)?))) else {
            return a;
        };
        if let Some(known) = self.known.get(&r) {
            return *known;
        }
        let args: Vec<Operand> = args.iter().map(|a| self.before(*a, inside)).collect();
        let known = self.prim(*prim, &args);
        self.known.insert(r, known);
        known
    }
    /// Memory for each part to add to; with one part what is there.
    fn copies(&mut self, root: Reg, (count, ty): (Operand, Ty), (parts, several): (Operand, Operand)) -> Reg {
        let copy = self.reg(Ty::Pointer, "copy");
        let before = std::mem::take(&mut self.out);
        let all = self.int(Op::Mul, [count, parts]);
        let memory = self.alloc(all, ty);
        self.out.push(Ins::Set { to: copy, value: memory.into() });
        let then = std::mem::replace(&mut self.out, before);
        let otherwise = vec![Ins::Set { to: copy, value: root.into() }];
        self.out.push(Ins::If { condition: several, then, otherwise });
        copy
    }
    /// Adds the copies to what they are copies of, each element in the order of the parts.
    fn merge(
        &mut self,
        (root, copy): (Reg, Reg),
        count: Operand,
        (parts, several): (Operand, Operand),
        function: FunctionId,
    ) {
        let before = std::mem::take(&mut self.out);
        // Whole lines of the cache, so that threads do not write to the same one.
        let size = self.int(Op::Quot, [Operand::i64(MERGED / 64), parts]);
        let size = self.int(Op::Add, [size, Operand::i64(1)]);
        let size = self.int(Op::Mul, [size, Operand::i64(64)]);
        let shares = self.int(Op::Add, [count, size]);
        let shares = self.int(Op::Sub, [shares, Operand::i64(1)]);
        let shares = self.int(Op::Quot, [shares, size]);
        let args = vec![root.into(), copy.into(), count, parts, size];
        self.out.push(Ins::Chunks { count: shares, function, args });
        let then = std::mem::replace(&mut self.out, before);
        self.out.push(Ins::If { condition: several, then, otherwise: Vec::new() });
    }
    /// Takes the states of the parts together in their order.
    fn folds(&mut self, folds: &[Fold], states: &[Reg], columns: &[Reg], parts: Operand) {
        let column: IdMap<Reg, Reg> = states.iter().copied().zip(columns.iter().copied()).collect();
        for fold in folds {
            let columns: Vec<Operand> = fold.state.iter().map(|state| column[state].into()).collect();
            self.out.extend(together(fold, &columns, parts, self.regs));
        }
    }
    /// Lets pointers into memory that is added to point into the copy of the part.
    fn rebase(
        &mut self,
        code: &mut Block,
        before: &mut Block,
        moved: &mut IdMap<Reg, Operand>,
        known: &Known<'_>,
    ) {
        let inside = defined(code);
        let mut outside = IdSet::new();
        reads(code, &mut |r| {
            if !inside.contains(&r) {
                outside.insert(r);
            }
        });
        for r in outside {
            if known.roots.get(r).copied().flatten().is_some_and(|root| moved.contains_key(&root)) {
                self.moved(r, before, moved, known);
            }
        }
        replace(code, moved);
    }
    fn moved(
        &mut self,
        r: Reg,
        before: &mut Block,
        moved: &mut IdMap<Reg, Operand>,
        known: &Known<'_>,
    ) -> Operand {
        if let Some(to) = moved.get(&r) {
            return *to;
        }
        // By `is_offset`: see `added`.
        let (pointer, index, ty) = known.offsets[&r];
        let pointer = pointer.as_reg().map_or(pointer, |p| self.moved(p, before, moved, known));
        let to = self.reg(Ty::Pointer, "own");
        before.push(Ins::Offset { to, pointer, index, ty, room: None });
        moved.insert(r, to.into());
        to.into()
    }
}

/// Takes elements of columns, one for each state of a fold, together in their order; there is at least one.
pub(super) fn together(
    fold: &Fold,
    columns: &[Operand],
    count: Operand,
    regs: &mut IndexVec<Reg, RegInfo>,
) -> Block {
    let mut out = Vec::new();
    for (pointer, left) in columns.iter().zip(&fold.left) {
        out.push(Ins::Load { to: *left, pointer: *pointer, index: Operand::i64(0) });
    }
    let i = regs.push(RegInfo::new(Ty::I64, "part"));
    let mut body = Vec::new();
    for (pointer, right) in columns.iter().zip(&fold.right) {
        body.push(Ins::Load { to: *right, pointer: *pointer, index: i.into() });
    }
    body.extend(fold.combine.iter().cloned());
    let mut next = Vec::new();
    for (value, left) in fold.out.iter().zip(&fold.left) {
        let to = regs.push(RegInfo::new(regs[*left].ty, "next"));
        body.push(Ins::Set { to, value: *value });
        next.push(Ins::Set { to: *left, value: to.into() });
    }
    body.extend(next);
    out.push(Ins::For { i, from: Operand::i64(1), to: count, body, order: Order::Given });
    let last = fold.state.iter().zip(&fold.left);
    out.extend(last.map(|(state, left)| Ins::Set { to: *state, value: (*left).into() }));
    out
}

fn real(x: f64) -> Operand {
    Operand::Const(ScalarValue::F64(x))
}

/// What a function body reads and does not set.
fn captured(body: &Block, k: Reg) -> Vec<Reg> {
    let inside = defined(body);
    let mut out = Vec::new();
    reads(body, &mut |r| {
        if r != k && !inside.contains(&r) && !out.contains(&r) {
            out.push(r);
        }
    });
    out
}
fn replace(block: &mut Block, with: &IdMap<Reg, Operand>) {
    for ins in block {
        ins.reads_mut(&mut |a| {
            if let Some(to) = a.as_reg().and_then(|r| with.get(&r)) {
                *a = *to;
            }
        });
        ins.blocks_mut().into_iter().for_each(|b| replace(b, with));
    }
}
/// Gives the loop over `i` other bounds.
fn bounds(block: &mut Block, (i, from, to): (Reg, Operand, Operand), (low, high): (Operand, Operand)) {
    for ins in block {
        match ins {
            Ins::For { i: j, from: f, to: t, .. } | Ins::Lanes { i: j, from: f, to: t, .. }
                if *j == i && (*f, *t) == (from, to) =>
            {
                (*f, *t) = (low, high);
            }
            _ => ins.blocks_mut().into_iter().for_each(|b| bounds(b, (i, from, to), (low, high))),
        }
    }
}
