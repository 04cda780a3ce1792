//! Loops over threads: a loop becomes a function that runs a part of it, called for every part by [`Ins::Chunks`].
//!
//! How many parts there are depends on sizes only, never on threads: on the work that the loop is estimated to be, from the
//! numbers of iterations that are known before it. So does the order in which floats are added: each part has its own state
//! of folds and its own copy of what it adds to; they are taken together in the order of the parts.
//!
//! Refused ([`outline`] gives `None`): a loop that adds to memory of which it is not known how large it is, or that it also
//! uses in another way.

use super::cost::Costs;
use crate::ir::{Block, Fold, Function, FunctionId, Ins, Module, Operand, Order, Reg, RegInfo, Ty};
use pullback_base::index::{IdMap, IdSet, IndexVec};
use pullback_prim::{Op, Prim, Scalar, ScalarValue};

/// The most parts.
const MOST: i64 = 64;

/// The work that there is at least for each element that a part has a copy of.
const COPIES: f64 = 64.0;

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
    /// Work that is worth a part of its own.
    pub(super) grain: f64,
    /// The memory that a pointer points into, and how it was computed.
    pub(super) roots: &'a IndexVec<Reg, Option<Reg>>,
    /// How many elements an allocation has.
    pub(super) counts: &'a Sizes,
    /// Pointers that are offsets: pointer, index, type.
    pub(super) offsets: &'a Offsets,
}

/// The instructions that run the loop in parts, and the function for a part, which will have this number.
pub(super) fn outline(
    l: Scheduled<'_>,
    known: &Known<'_>,
    regs: &mut IndexVec<Reg, RegInfo>,
    (name, id): (String, FunctionId),
) -> Option<(Block, Function)> {
    let added = added(&l, known)?;
    let mut o = Outline { regs, out: Vec::new() };
    let (size, parts) = o.parts(&l, known, &added);

    // What the parts add to, and the states of their folds.
    let mark = o.reg(Ty::Pointer, "mark");
    o.out.push(Ins::Mark { to: mark });
    let mut copies = Vec::new();
    for (root, (count, ty)) in &added {
        copies.push(o.copies(*root, *count, *ty, parts));
    }
    let states: Vec<Reg> = l.folds.iter().flat_map(|f| f.state.iter().copied()).collect();
    let columns: Vec<Reg> = states.iter().map(|s| o.alloc(parts, o.regs[*s].ty)).collect();

    // The function for part `k`.
    let k = o.reg(Ty::I64, "part");
    let (low, high) = (o.reg(Ty::I64, "low"), o.reg(Ty::I64, "high"));
    let mut body = Vec::new();
    {
        let start = o.in_block(&mut body, Op::Mul, [k.into(), size]);
        let first = o.in_block(&mut body, Op::Add, [l.from, start]);
        body.push(Ins::Set { to: low, value: first });
        let end = o.in_block(&mut body, Op::Add, [first, size]);
        let end = o.in_block(&mut body, Op::Min, [end, l.to]);
        body.push(Ins::Set { to: high, value: end });
    }
    for fold in l.folds {
        let start = fold.state.iter().zip(&fold.neutral);
        body.extend(start.map(|(to, value)| Ins::Set { to: *to, value: *value }));
    }
    let mut moved = IdMap::new();
    for ((root, (count, ty)), copy) in added.iter().zip(&copies) {
        let by = o.in_block(&mut body, Op::Mul, [k.into(), *count]);
        // With one part there is no copy.
        let to = o.reg(Ty::Pointer, "own");
        let room = None;
        body.push(Ins::Offset { to, pointer: (*copy).into(), index: by, ty: *ty, room });
        moved.insert(*root, Operand::Reg(to));
    }
    let mut code = l.code;
    bounds(&mut code, (l.i, l.from, l.to), (low.into(), high.into()));
    o.rebase(&mut code, &mut body, &mut moved, known);
    body.extend(code);
    for (state, column) in states.iter().zip(&columns) {
        let ty = o.regs[*state].ty;
        let (pointer, index, value) = ((*column).into(), k.into(), (*state).into());
        body.push(Ins::Store { pointer, index, value, ty });
    }
    let captured = captured(&body, k);
    o.out.push(Ins::Chunks {
        count: parts,
        function: id,
        args: captured.iter().map(|r| (*r).into()).collect(),
    });

    // Together again.
    for ((root, (count, ty)), copy) in added.iter().zip(&copies) {
        o.merge(*root, *copy, *count, *ty, parts);
    }
    o.folds(l.folds, &states, &columns, parts);
    o.out.push(Ins::Release { mark: mark.into() });
    let params = std::iter::once(k).chain(captured).collect();
    let function = Function { name, params, results: Vec::new(), regs: o.regs.clone(), body };
    Some((o.out, function))
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
        let mut reg = |ty: Ty, hint: &str| regs.push(RegInfo { ty, hint: hint.to_string() });
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
}

impl Outline<'_> {
    fn reg(&mut self, ty: Ty, hint: &str) -> Reg {
        self.regs.push(RegInfo { ty, hint: hint.to_string() })
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
    fn float(&mut self, op: Op, args: [Operand; 2]) -> Operand {
        self.prim(Prim::Op(op, Scalar::F64), &args)
    }
    fn alloc(&mut self, count: Operand, ty: Ty) -> Reg {
        let to = self.reg(Ty::Pointer, "parts");
        self.out.push(Ins::Alloc { to, count, ty });
        to
    }

    /// How many iterations a part has, and how many parts there are: at least one.
    fn parts(&mut self, l: &Scheduled<'_>, known: &Known<'_>, added: &Sizes) -> (Operand, Operand) {
        let defined = defined(&l.code);
        let work = self.work(&l.code, known, &defined, 1.0);
        let grains = self.float(Op::Div, [work, real(known.grain)]);
        let mut most = grains;
        // Copies are filled and merged: that is a small part of the work.
        for (count, _) in added.values() {
            let n = self.prim(Prim::Convert(Scalar::I64, Scalar::F64), &[*count]);
            let n = self.float(Op::Mul, [n, real(COPIES)]);
            let n = self.float(Op::Max, [n, real(1.0)]);
            let fits = self.float(Op::Div, [work, n]);
            most = self.float(Op::Min, [most, fits]);
        }
        let most = self.float(Op::Min, [most, real(MOST as f64)]);
        let most = self.float(Op::Max, [most, real(1.0)]);
        let wanted = self.prim(Prim::Convert(Scalar::F64, Scalar::I64), &[most]);
        let n = self.int(Op::Sub, [l.to, l.from]);
        let n = self.int(Op::Max, [n, Operand::i64(1)]);
        // Parts of whole blocks.
        let block = Operand::i64(l.together as i64);
        let less = self.int(Op::Sub, [n, Operand::i64(1)]);
        let blocks = self.int(Op::Quot, [less, block]);
        let blocks = self.int(Op::Add, [blocks, Operand::i64(1)]);
        let less = self.int(Op::Sub, [blocks, Operand::i64(1)]);
        let each = self.int(Op::Quot, [less, wanted]);
        let each = self.int(Op::Add, [each, Operand::i64(1)]);
        let parts = self.int(Op::Quot, [less, each]);
        let parts = self.int(Op::Add, [parts, Operand::i64(1)]);
        let size = self.int(Op::Mul, [each, block]);
        (size, parts)
    }
    /// The work of a block, from numbers of iterations that are known here. `active`: lanes for which it is done.
    fn work(&mut self, block: &Block, known: &Known<'_>, inside: &IdSet<Reg>, active: f64) -> Operand {
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
            let is_known = |a: Operand| a.as_reg().is_none_or(|r| !inside.contains(&r));
            let trips = if is_known(from) && is_known(to) {
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
    /// Zeros for each part to add to; with one part what is there.
    fn copies(&mut self, root: Reg, count: Operand, ty: Ty, parts: Operand) -> Reg {
        let copy = self.reg(Ty::Pointer, "copy");
        let several = self.prim(Prim::Op(Op::Lt, Scalar::I64), &[Operand::i64(1), parts]);
        let before = std::mem::take(&mut self.out);
        let all = self.int(Op::Mul, [count, parts]);
        let memory = self.alloc(all, ty);
        let zero = ty.scalar().map_or(ScalarValue::F64(0.0), Scalar::zero);
        let pointer = memory.into();
        self.out.push(Ins::Fill { pointer, count: all, value: Operand::Const(zero), ty });
        self.out.push(Ins::Set { to: copy, value: pointer });
        let then = std::mem::replace(&mut self.out, before);
        let otherwise = vec![Ins::Set { to: copy, value: root.into() }];
        self.out.push(Ins::If { condition: several, then, otherwise });
        copy
    }
    fn merge(&mut self, root: Reg, copy: Reg, count: Operand, ty: Ty, parts: Operand) {
        let several = self.prim(Prim::Op(Op::Lt, Scalar::I64), &[Operand::i64(1), parts]);
        let (k, j) = (self.reg(Ty::I64, "part"), self.reg(Ty::I64, "j"));
        let own = self.reg(Ty::Pointer, "own");
        let value = self.reg(ty, "x");
        let mut body = Vec::new();
        let index = self.in_block(&mut body, Op::Mul, [k.into(), count]);
        body.push(Ins::Offset { to: own, pointer: copy.into(), index, ty, room: None });
        let inner = vec![
            Ins::Load { to: value, pointer: own.into(), index: j.into() },
            Ins::Accumulate { pointer: root.into(), index: j.into(), value: value.into(), ty },
        ];
        let zero = Operand::i64(0);
        body.push(Ins::For { i: j, from: zero, to: count, body: inner, order: Order::Any(Vec::new()) });
        let outer = Ins::For { i: k, from: zero, to: parts, body, order: Order::Given };
        self.out.push(Ins::If { condition: several, then: vec![outer], otherwise: Vec::new() });
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
    let i = regs.push(RegInfo { ty: Ty::I64, hint: "part".to_string() });
    let mut body = Vec::new();
    for (pointer, right) in columns.iter().zip(&fold.right) {
        body.push(Ins::Load { to: *right, pointer: *pointer, index: i.into() });
    }
    body.extend(fold.combine.iter().cloned());
    let mut next = Vec::new();
    for (value, left) in fold.out.iter().zip(&fold.left) {
        let to = regs.push(RegInfo { ty: regs[*left].ty, hint: "next".to_string() });
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

/// Memory: how many elements of which type.
pub(super) type Sizes = IdMap<Reg, (Operand, Ty)>;
/// Pointers that are offsets: pointer, index, type.
pub(super) type Offsets = IdMap<Reg, (Operand, Operand, Ty)>;

/// Memory from outside that the loop adds to. `None`: it cannot be copied.
fn added(l: &Scheduled<'_>, known: &Known<'_>) -> Option<Sizes> {
    let inside = defined(&l.code);
    let (mut out, mut refused, mut other) = (Sizes::new(), false, IdSet::new());
    visit(&l.code, &mut |ins| {
        let target = match ins {
            Ins::Accumulate { pointer, .. } | Ins::AccumulateLanes { pointer, .. } => Some(*pointer),
            _ => None,
        };
        if let Some(pointer) = target {
            let root = pointer.as_reg().and_then(|r| known.roots.get(r).copied().flatten());
            match root {
                None => refused = true,
                Some(root) if inside.contains(&root) => {}
                Some(root) => match known.counts.get(&root) {
                    Some(count) => {
                        out.insert(root, *count);
                    }
                    None => refused = true,
                },
            }
        } else if !matches!(ins, Ins::Offset { .. }) {
            ins.reads(&mut |a| {
                let root = a.as_reg().and_then(|r| known.roots.get(r).copied().flatten());
                other.extend(root);
            });
        }
    });
    let offset = |r: Reg| {
        let root = known.roots.get(r).copied().flatten();
        root.is_none_or(|root| !out.contains_key(&root) || is_offset(r, root, known.offsets))
    };
    let mut simple = true;
    reads(&l.code, &mut |r| simple &= inside.contains(&r) || offset(r));
    let mixed = out.keys().any(|root| other.contains(root));
    (!refused && !mixed && simple).then_some(out)
}

/// Whether a pointer is `root`, or computed from it by offsets only.
fn is_offset(r: Reg, root: Reg, offsets: &Offsets) -> bool {
    r == root
        || offsets
            .get(&r)
            .is_some_and(|(from, ..)| from.as_reg().is_some_and(|r| is_offset(r, root, offsets)))
}

/// The allocations of a function with their sizes, and the pointers that are offsets. Only registers that are set once.
pub(super) fn pointers(
    block: &Block,
    defined: &IndexVec<Reg, usize>,
    regs: &IndexVec<Reg, RegInfo>,
) -> (Sizes, Offsets) {
    let fixed = |a: Operand| a.as_reg().is_none_or(|r| defined.get(r) == Some(&1));
    let (mut counts, mut offsets) = (IdMap::new(), IdMap::new());
    visit(block, &mut |ins| match ins {
        Ins::Alloc { to, count, ty } if fixed((*to).into()) && fixed(*count) => {
            counts.insert(*to, (*count, *ty));
        }
        Ins::Offset { to, pointer, index, ty, .. }
            if [(*to).into(), *pointer, *index].into_iter().all(fixed) && regs[*to].ty == Ty::Pointer =>
        {
            offsets.insert(*to, (*pointer, *index, *ty));
        }
        _ => {}
    });
    (counts, offsets)
}

fn visit(block: &Block, f: &mut dyn FnMut(&Ins)) {
    for ins in block {
        f(ins);
        ins.blocks().into_iter().for_each(|b| visit(b, f));
    }
}
fn reads(block: &Block, f: &mut dyn FnMut(Reg)) {
    visit(block, &mut |ins| ins.reads(&mut |a| a.as_reg().into_iter().for_each(&mut *f)));
}
fn defined(block: &Block) -> IdSet<Reg> {
    let mut out = IdSet::new();
    visit(block, &mut |ins| {
        out.extend(ins.sets());
        if let Ins::For { order: Order::Any(folds), .. } = ins {
            for fold in folds {
                out.extend(fold.left.iter().chain(&fold.right));
                out.extend(defined(&fold.combine));
            }
        }
    });
    out
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
