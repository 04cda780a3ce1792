//! The walk over a function that asks of each use of memory whether it is inside.

use super::super::Callee;
use super::super::alarm::line;
use super::super::layout::{Layout, Point};
use super::super::ranges::sums::{Atom, Sum};
use super::super::ranges::values::{Place, Span, Values, Words};
use super::super::ranges::walk::{Walk, all_sets, blocks_of};
use super::super::types::each_inside;
use super::{Claims, Kind, Open, Reason};
use crate::ir::{Block, Fold, Function, FunctionId, Ins, Module, Operand, Order, Reg, Shape, Ty};
use pullback_prim::{Op, Prim, Scalar};
use std::collections::BTreeMap;
use std::rc::Rc;

/// Memory, and arrays, have at most so many elements.
const MOST: i128 = 1 << 60;

const ZERO: Operand = Operand::Const(pullback_prim::ScalarValue::I64(0));
const ONE: Operand = Operand::Const(pullback_prim::ScalarValue::I64(1));

pub(super) struct Looking<'a, 'f> {
    module: &'a Module,
    f: &'a Function,
    layout: &'f Layout,
    callees: &'f [Callee],
    values: Values<'a>,
    /// So many bytes are there from a base on.
    memory: BTreeMap<Atom, Rc<Sum>>,
    /// Arrays that were loaded, by the last of their sizes, which is not loaded yet.
    loaded: BTreeMap<Reg, Vec<(Atom, Reg)>>,
    /// For each branch around, the pointers that are arrays behind it.
    joined: Vec<Vec<Reg>>,
    path: Vec<&'a Ins>,
    ended: bool,
    visits: u64,
    claims: Claims,
}

impl<'a, 'f> Looking<'a, 'f> {
    /// What a function claims.
    pub(super) fn over(
        (module, f): (&'a Module, &'a Function),
        layout: &'f Layout,
        callees: &'f [Callee],
    ) -> Claims {
        let mut walk = Looking {
            module,
            f,
            layout,
            callees,
            values: Values::new(f, Words::Asked),
            memory: BTreeMap::new(),
            loaded: BTreeMap::new(),
            joined: Vec::new(),
            path: Vec::new(),
            ended: false,
            visits: 0,
            claims: Claims::default(),
        };
        f.params.iter().for_each(|p| walk.values.renew(*p));
        walk.given(&f.params);
        walk.block(&f.body, 0);
        if !walk.ended {
            for r in &f.results {
                if let Some(shape) = &f.regs[*r].facts.array {
                    walk.hands_on(None, (*r).into(), shape, |a| a);
                }
            }
        }
        walk.claims.work += walk.visits + walk.values.numbers.work;
        walk.claims
    }

    // --- instructions ---

    fn instruction(&mut self, ins: &'a Ins, point: Point) {
        match ins {
            Ins::For { .. } | Ins::Lanes { .. } | Ins::While { .. } => self.repeat(ins, point),
            Ins::If { condition, then, otherwise } => {
                self.choose(ins, (*condition, [then, otherwise]), point)
            }
            Ins::Load { to, pointer, index } => {
                self.access(ins, Kind::Access, *pointer, (*index, ONE, self.f.regs[*to].ty));
            }
            Ins::Store { pointer, index, ty, .. } => {
                self.access(ins, Kind::Access, *pointer, (*index, ONE, *ty));
                if *ty == Ty::Pointer {
                    self.note(Some(ins), Kind::Stored, Err(Reason::Memory));
                }
            }
            Ins::Accumulate { pointer, index, ty, .. } => {
                self.access(ins, Kind::Access, *pointer, (*index, ONE, *ty));
            }
            Ins::Fill { pointer, count, ty, .. } => {
                self.access(ins, Kind::Range, *pointer, (ZERO, *count, *ty));
            }
            Ins::Copy { to, from, count, ty } => {
                self.access(ins, Kind::Range, *from, (ZERO, *count, *ty));
                self.access(ins, Kind::Range, *to, (ZERO, *count, *ty));
            }
            Ins::Offset { pointer, index, ty, room: Some(room), .. } => {
                self.access(ins, Kind::Room, *pointer, (*index, *room, *ty));
            }
            Ins::Alloc { to, count, ty } => return self.alloc(ins, *to, (*count, *ty)),
            Ins::LoadLanes { .. } | Ins::StoreLanes { .. } | Ins::AccumulateLanes { .. } => {
                self.note(Some(ins), Kind::Access, Err(Reason::Lanes));
            }
            Ins::Call { to, function, args } => {
                self.arguments(ins, *function, args, 0);
                self.values.instruction(ins);
                return self.results(*function, to);
            }
            Ins::Chunks { function, args, .. } => self.arguments(ins, *function, args, 1),
            _ => {}
        }
        if ins.blocks().is_empty() {
            self.values.instruction(ins);
            self.ended |= ins.always_stops();
        }
        if let Ins::Load { to, .. } = ins {
            self.loads(*to);
        }
    }
    /// A register has been loaded: the pointer of an array, or one of the sizes of arrays.
    fn loads(&mut self, to: Reg) {
        let f = self.f;
        for (base, r) in self.loaded.remove(&to).unwrap_or_default() {
            if let Some(shape) = &f.regs[r].facts.array {
                self.give(base, shape, |a| a);
            }
        }
        if let Some(shape) = &f.regs[to].facts.array
            && let Some(last) = shape.sizes.last().and_then(|n| n.as_reg())
        {
            let base = self.values.place(to.into()).base;
            self.loaded.entry(last).or_default().push((base, to));
        }
    }
    fn alloc(&mut self, ins: &'a Ins, to: Reg, (count, ty): (Operand, Ty)) {
        let number = self.values.number(count);
        let is_count = self.values.is_shown(&[&number], |n| n.is_word(&number) && n.is_natural(&number));
        self.note(Some(ins), Kind::Count, if is_count { Ok(()) } else { Err(Reason::Size) });
        self.values.instruction(ins);
        self.values.numbers.is_not_negative(&number);
        self.values.numbers.is_small(&number, MOST);
        let length = self.values.bytes(&number, ty);
        let base = self.values.place(to.into()).base;
        self.memory.insert(base, Rc::new(length));
    }
    fn choose(&mut self, ins: &'a Ins, (condition, arms): (Operand, [&'a Block; 2]), point: Point) {
        let sets = self.outer(ins, point.blocks[0]);
        self.joined.push(sets);
        self.branch(ins, (condition, arms), point.blocks);
        let sets = self.joined.pop().unwrap_or_default();
        self.given(&sets);
    }
    fn repeat(&mut self, ins: &'a Ins, point: Point) {
        let (begin, sets) = (self.values.begin(), all_sets(ins));
        self.visits += sets.len() as u64;
        let states: Vec<Reg> = self.outer(ins, blocks_of(ins, point)[0]);
        let states: Vec<Reg> = states.into_iter().filter(|r| self.values.is_set(*r)).collect();
        self.hand_on(ins, &states);
        let steps = self.steps(ins);
        match ins {
            Ins::For { i, from, to, body, order } => {
                let [from, to] = [*from, *to].map(|a| self.values.word(a));
                sets.iter().for_each(|r| self.values.renew(*r));
                self.values.counts_up(*i, &from, &to);
                self.begins(&states, &steps);
                if let Order::Any(folds) = order {
                    self.folds(folds, point.combines);
                }
                self.block(body, point.blocks[1]);
            }
            Ins::While { condition, test, body } => {
                sets.iter().for_each(|r| self.values.renew(*r));
                self.begins(&states, &steps);
                self.block(condition, point.blocks[0]);
                // (Behind the loop, what the condition sets is there as well.)
                let mut set = Vec::new();
                crate::walk(condition, &mut |ins| set.extend_from_slice(ins.sets()));
                let here: Vec<Reg> = states.iter().copied().filter(|r| set.contains(r)).collect();
                self.hand_on(ins, &here);
                let test = self.values.test(*test);
                self.values.learn(&test, true);
                self.block(body, point.blocks[1]);
            }
            _ => {
                sets.iter().for_each(|r| self.values.renew(*r));
                self.begins(&states, &steps);
                for (block, id) in ins.blocks().into_iter().zip(blocks_of(ins, point)) {
                    self.block(block, id);
                }
            }
        }
        if !self.ended {
            self.hand_on(ins, &states);
        }
        self.ended = false;
        self.values.end(begin);
        sets.iter().for_each(|r| self.values.renew(*r));
        self.begins(&states, &steps);
    }
    /// Where an iteration begins, and behind the loop.
    fn begins(&mut self, states: &[Reg], steps: &[Reg]) {
        self.given(states);
        for r in steps {
            let number = self.values.number((*r).into());
            self.values.numbers.is_not_negative(&number);
        }
    }
    /// Numbers that are not negative before a loop, and that it sets in one place only: to what is larger.
    fn steps(&mut self, ins: &Ins) -> Vec<Reg> {
        let (mut all, mut steps) = (Vec::new(), Vec::new());
        each_inside(ins, &mut |ins| {
            all.extend_from_slice(ins.sets());
            match ins {
                Ins::Prim { to, prim: Prim::Op(Op::Add, Scalar::I64), args }
                    if args[0] == (*to).into() && args[1].as_i64().is_some_and(|by| by >= 0) =>
                {
                    steps.push(*to);
                }
                _ => {}
            }
        });
        all.sort_unstable();
        let is_once = |r: &Reg| all.partition_point(|q| q <= r) - all.partition_point(|q| q < r) == 1;
        steps.retain(|r| is_once(r) && self.values.is_set(*r));
        steps.retain(|r| {
            let before = self.values.number((*r).into());
            self.values.numbers.is_natural(&before)
        });
        steps
    }
    fn folds(&mut self, folds: &'a [Fold], first: usize) {
        for (k, fold) in folds.iter().enumerate() {
            let begin = self.values.begin();
            let regs = fold.left.iter().chain(&fold.right).chain(&fold.state);
            regs.for_each(|r| self.values.renew(*r));
            self.block(&fold.combine, self.layout.combines[first + k]);
            self.values.end(begin);
            self.ended = false;
        }
    }
    /// The pointers to arrays that an instruction sets inside of a block and that are mentioned outside of it.
    fn outer(&self, ins: &Ins, inside: u32) -> Vec<Reg> {
        let depth = |block: u32| self.layout.blocks[block as usize].depth;
        let mut sets = all_sets(ins);
        sets.retain(|r| {
            self.f.regs[*r].facts.array.is_some() && depth(self.layout.homes[*r]) < depth(inside)
        });
        sets
    }

    // --- claims ---

    fn note(&mut self, ins: Option<&'a Ins>, kind: Kind, shown: Result<(), Reason>) {
        let Err(reason) = shown else {
            *self.claims.shown.entry(kind).or_default() += 1;
            return;
        };
        let line = |ins: &Ins| line(self.f, ins, self.callees);
        let instruction = ins.map_or_else(|| "the end".to_string(), line);
        let path = self.path.iter().map(|ins| line(ins)).collect();
        self.claims.not_shown.push(Open { function: self.f.name.clone(), instruction, kind, reason, path });
    }
    /// So many elements from an index of a pointer on are there.
    fn access(
        &mut self,
        ins: &'a Ins,
        kind: Kind,
        pointer: Operand,
        (index, count, ty): (Operand, Operand, Ty),
    ) {
        let place = self.values.place(pointer);
        let index = self.values.number(index);
        let count = self.values.word(count);
        let by = self.values.bytes(&index, ty);
        let span = Span { from: self.values.sum(&place.offset, &by), length: self.values.bytes(&count, ty) };
        let begin = self.values.begin();
        // (Without elements nothing is used.)
        count.plus_constant(-1).iter().for_each(|more| self.values.numbers.is_not_negative(more));
        let shown =
            if count.as_constant().is_some_and(|n| n <= 0) { Ok(()) } else { self.inside(&place, &span) };
        self.values.end(begin);
        self.note(Some(ins), kind, shown);
    }
    fn inside(&mut self, place: &Place, span: &Span) -> Result<(), Reason> {
        let whole = self
            .memory
            .get(&place.base)
            .map(|length| Span { from: Sum::default(), length: Sum::clone(length) });
        let mut reason = Reason::Memory;
        for room in place.rooms.iter().rev().chain(&whole) {
            let Some((span_end, room_end)) =
                span.from.plus(&span.length, 1).zip(room.from.plus(&room.length, 1))
            else {
                continue;
            };
            let about = [&span.from, &span_end, &room.from, &room_end];
            if !self.values.is_shown(&about, |n| n.is_at_most(&room.from, &span.from)) {
                reason = Reason::Begin;
            } else if !self.values.is_shown(&about, |n| n.is_at_most(&span_end, &room_end)) {
                reason = Reason::End;
            } else {
                return Ok(());
            }
        }
        Err(reason)
    }
    // --- arrays that are handed on ---

    /// From here on the memory of a base is an array. Its sizes are seen here as operands.
    fn give(&mut self, base: Atom, shape: &Shape, seen: impl Fn(Operand) -> Operand) {
        let sizes: Vec<Sum> = shape.sizes.iter().map(|n| self.values.word(seen(*n))).collect();
        sizes.iter().for_each(|n| self.values.numbers.is_not_negative(n));
        let product = sizes.iter().try_fold(Sum::constant(1), |p, n| p.times(n));
        let Some(product) = product else { return };
        self.values.numbers.is_small(&product, MOST);
        let length = self.values.bytes(&product, shape.ty);
        self.memory.insert(base, Rc::new(length));
    }
    /// These registers are arrays, if they are new and point to some.
    fn given(&mut self, regs: &[Reg]) {
        let f = self.f;
        for r in regs {
            let Some(shape) = &f.regs[*r].facts.array else { continue };
            let place = self.values.place((*r).into());
            if place.offset.is_zero() && !self.memory.contains_key(&place.base) {
                self.give(place.base, shape, |a| a);
            }
        }
    }
    /// A register is claimed to be an array.
    fn hand_on(&mut self, ins: &'a Ins, regs: &[Reg]) {
        let f = self.f;
        for r in regs {
            if let Some(shape) = &f.regs[*r].facts.array {
                self.hands_on(Some(ins), (*r).into(), shape, |a| a);
            }
        }
    }
    fn hands_on(
        &mut self,
        ins: Option<&'a Ins>,
        pointer: Operand,
        shape: &Shape,
        seen: impl Fn(Operand) -> Operand,
    ) {
        let sizes: Vec<Sum> = shape.sizes.iter().map(|n| self.values.word(seen(*n))).collect();
        let mut shown = Ok(());
        for n in &sizes {
            if !self.values.is_shown(&[n], |numbers| numbers.is_natural(n)) {
                shown = Err(Reason::Size);
            }
        }
        let product = sizes.iter().try_fold(Sum::constant(1), |p, n| p.times(n));
        if let (Ok(()), Some(product)) = (shown, product) {
            let begin = self.values.begin();
            // (Without elements nothing is used.)
            let more: Vec<Sum> = sizes.iter().filter_map(|n| n.plus_constant(-1)).collect();
            more.iter().for_each(|more| self.values.numbers.is_not_negative(more));
            if product.as_constant() != Some(0) {
                let place = self.values.place(pointer);
                let length = self.values.bytes(&product, shape.ty);
                shown = self.inside(&place, &Span { from: place.offset.clone(), length });
            }
            self.values.end(begin);
        }
        self.note(ins, Kind::Array, shown);
    }
    fn arguments(&mut self, ins: &'a Ins, function: FunctionId, args: &[Operand], first: usize) {
        let Some(callee) = self.module.functions.get(function) else { return };
        for (k, a) in args.iter().enumerate() {
            let Some(param) = callee.params.get(first + k) else { continue };
            let Some(shape) = &callee.regs[*param].facts.array else { continue };
            let seen = |size: Operand| match size {
                Operand::Reg(r) => {
                    let at = callee.params.iter().position(|p| *p == r).and_then(|at| at.checked_sub(first));
                    at.and_then(|at| args.get(at).copied()).unwrap_or(Operand::Null)
                }
                size => size,
            };
            self.hands_on(Some(ins), *a, shape, seen);
        }
    }
    fn results(&mut self, function: FunctionId, to: &[Reg]) {
        let Some(callee) = self.module.functions.get(function) else { return };
        for (r, result) in to.iter().zip(&callee.results) {
            let Some(shape) = &callee.regs[*result].facts.array else { continue };
            let base = self.values.place((*r).into()).base;
            self.give(base, shape, |size| match size {
                Operand::Reg(size) => {
                    let at = callee.results.iter().position(|q| *q == size);
                    at.and_then(|at| to.get(at)).map_or(Operand::Null, |r| (*r).into())
                }
                size => size,
            });
        }
    }
}

impl<'a> Walk<'a> for Looking<'a, '_> {
    fn values(&mut self) -> &mut Values<'a> {
        &mut self.values
    }
    fn ended(&mut self) -> &mut bool {
        &mut self.ended
    }
    fn layout(&self) -> &Layout {
        self.layout
    }
    fn step(&mut self, ins: &'a Ins, point: Point) {
        self.visits += 1;
        self.path.push(ins);
        self.instruction(ins, point);
        self.path.pop();
    }
    fn arm_ends(&mut self, ins: &'a Ins) {
        let regs = self.joined.last().cloned().unwrap_or_default();
        let regs: Vec<Reg> = regs.into_iter().filter(|r| self.values.is_set(*r)).collect();
        self.hand_on(ins, &regs);
    }
}
