//! Types of operands and registers, lanes, counters, and what folds take together: rules of single instructions.

use super::alarm::{Alarm, Rule, line, name, operand};
use super::{Around, Callee};
use crate::ir::{Block, Fold, Function, FunctionId, Ins, Operand, Order, Reg, Ty};
use pullback_base::index::{IdSet, Index, IndexVec};
use pullback_prim::{Prim, Scalar, ScalarValue};

/// The alarms about a function; whether all that it mentions is there.
pub(super) fn types(f: &Function, around: &Around) -> (Vec<Alarm>, bool) {
    let set = f.regs.iter().map(|_| false).collect();
    let mut t =
        Types { f, around, set, counters: Vec::new(), lanes: None, path: Vec::new(), alarms: Vec::new() };
    if !t.is_whole() {
        return (t.alarms, false);
    }
    t.block(&f.body);
    (t.alarms, true)
}

struct Types<'a> {
    f: &'a Function,
    around: &'a Around,
    /// Which registers are parameters, or set by instructions that are no loops.
    set: IndexVec<Reg, bool>,
    /// The counters of the loops around.
    counters: Vec<Reg>,
    /// How many lanes the loop around has.
    lanes: Option<usize>,
    path: Vec<&'a Ins>,
    alarms: Vec<Alarm>,
}

/// Whether lanes may stand for a scalar.
#[derive(Clone, Copy, PartialEq)]
enum Width {
    One,
    Lanes,
}

impl<'a> Types<'a> {
    fn alarm(&mut self, rule: Rule, register: Option<Reg>, text: String) {
        let path = self.path.iter().map(|ins| line(self.f, ins, &self.around.callees)).collect();
        let register = register.map(|r| name(self.f, r));
        self.alarms.push(Alarm { rule, function: self.f.name.clone(), path, register, text });
    }
    /// Whether registers, functions and messages are there. Notes which registers are no counters.
    fn is_whole(&mut self) -> bool {
        let (f, around) = (self.f, self.around);
        let is_known = |r: &Reg| r.index() < f.regs.len();
        let mut whole = f.params.iter().chain(&f.results).all(is_known);
        let mut look = |ins: &Ins| {
            let mut here = ins.sets().iter().all(is_known);
            ins.reads(&mut |a| here &= a.as_reg().is_none_or(|r| is_known(&r)));
            here &= match ins {
                Ins::Call { function, .. } | Ins::Chunks { function, .. } => {
                    function.index() < around.callees.len()
                }
                Ins::Fail { message, .. } => message.index() < around.messages,
                Ins::For { order: Order::Any(folds), .. } => {
                    folds.iter().all(|f| [&f.state, &f.left, &f.right].into_iter().flatten().all(is_known))
                }
                _ => true,
            };
            whole &= here;
            if here && !matches!(ins, Ins::For { .. } | Ins::Lanes { .. }) {
                ins.sets().iter().for_each(|r| self.set[*r] = true);
            }
        };
        each(&f.body, &mut look);
        if whole {
            f.params.iter().for_each(|r| self.set[*r] = true);
        } else {
            self.alarm(Rule::Type, None, "a register, function or message is not there".to_string());
        }
        whole
    }
    fn ty(&self, a: Operand) -> Ty {
        match a {
            Operand::Reg(r) => self.f.regs[r].ty,
            Operand::Const(c) => Ty::Scalar(c.scalar()),
            Operand::Null => Ty::Pointer,
        }
    }
    fn reg(&mut self, r: Reg, ty: Ty) {
        self.operand(r.into(), ty, Width::One);
    }
    fn operand(&mut self, a: Operand, ty: Ty, width: Width) {
        let found = self.ty(a);
        let in_lanes = width == Width::Lanes && found.is_lanes() && found.scalar() == ty.scalar();
        if found != ty && !in_lanes {
            let text = format!("{} is of type {found:?} where {ty:?} is needed", operand(self.f, a));
            self.alarm(Rule::Type, a.as_reg(), text);
        }
    }
    fn int(&mut self, a: Operand) {
        self.operand(a, Ty::I64, Width::One);
    }
    fn pointer(&mut self, a: Operand) {
        self.operand(a, Ty::Pointer, Width::One);
    }
    fn element(&mut self, ty: Ty) {
        if ty.is_lanes() {
            self.alarm(Rule::Type, None, "memory holds no lanes".to_string());
        }
    }
    fn mask(&mut self, mask: Option<Operand>) {
        mask.iter().for_each(|m| self.operand(*m, Ty::BOOL, Width::Lanes));
    }
    /// Whether the register holds lanes of some scalar.
    fn lanes_of(&mut self, r: Reg) -> Option<Scalar> {
        let Ty::Lanes(scalar, _) = self.f.regs[r].ty else {
            self.alarm(Rule::Lanes, Some(r), format!("{} does not hold lanes", name(self.f, r)));
            return None;
        };
        Some(scalar)
    }
    fn prim(&mut self, prim: Prim, args: &[Operand], (to, width): (Reg, Width)) {
        if !prim.is_valid()
            || args.len() != prim.arity()
            || self.f.regs[to].ty.scalar() != Some(prim.result())
        {
            let text = format!("{} gives no {:?}", prim.name(), self.f.regs[to].ty);
            return self.alarm(Rule::Type, Some(to), text);
        }
        for (a, scalar) in args.iter().zip(prim.params()) {
            self.operand(*a, Ty::Scalar(scalar), width);
        }
    }
    fn block(&mut self, block: &'a Block) {
        for ins in block {
            self.path.push(ins);
            self.ins(ins);
            self.inside(ins);
            self.path.pop();
        }
    }
    fn inside(&mut self, ins: &'a Ins) {
        let around = self.lanes;
        if let Ins::Lanes { lanes, .. } = ins {
            if around.is_some() {
                self.alarm(Rule::Lanes, None, "a loop of lanes is inside another".to_string());
            }
            if *lanes > self.around.lanes || *lanes == 0 {
                let text = format!("the module has no {lanes} lanes");
                self.alarm(Rule::Lanes, None, text);
            }
            self.lanes = Some(*lanes);
        }
        let counters = self.counters.len();
        self.counters
            .extend(ins.sets().first().filter(|_| matches!(ins, Ins::For { .. } | Ins::Lanes { .. })));
        ins.blocks().into_iter().for_each(|b| self.block(b));
        self.counters.truncate(counters);
        self.lanes = around;
        if let Ins::For { body, order: Order::Any(folds), .. } = ins {
            folds.iter().for_each(|fold| self.fold(fold, body));
        }
    }
    /// How many lanes the registers have that an instruction mentions.
    fn widths(&mut self, ins: &Ins) {
        let needs = matches!(
            ins,
            Ins::LoadLanes { .. }
                | Ins::StoreLanes { .. }
                | Ins::AccumulateLanes { .. }
                | Ins::FoldLanes { .. }
                | Ins::LaneNumber { .. }
                | Ins::Lane { .. }
        );
        let mut first = if needs { self.lanes } else { None };
        let mut same = true;
        let mut see = |lanes: usize| {
            let first = *first.get_or_insert(self.lanes.unwrap_or(lanes));
            same &= lanes == first;
        };
        ins.sets().iter().filter_map(|r| self.f.regs[*r].ty.lanes()).for_each(&mut see);
        if !matches!(ins, Ins::For { .. }) {
            ins.reads(&mut |a| self.ty(a).lanes().into_iter().for_each(&mut see));
        }
        if !same || (needs && first.is_none()) {
            self.alarm(Rule::Lanes, None, "registers have other numbers of lanes".to_string());
        }
    }
    fn ins(&mut self, ins: &Ins) {
        self.widths(ins);
        match ins {
            Ins::Set { to, value } => self.operand(*value, as_scalar(self.f.regs[*to].ty), self.width(*to)),
            Ins::Prim { to, prim, args } => self.prim(*prim, args, (*to, self.width(*to))),
            Ins::Load { to, pointer, index } => {
                self.pointer(*pointer);
                self.int(*index);
                self.element(self.f.regs[*to].ty);
            }
            Ins::Store { pointer, index, value, ty } => {
                self.place(*pointer, (*index, Width::One), *ty);
                self.operand(*value, *ty, Width::One);
            }
            Ins::Accumulate { pointer, index, value, ty, atomic: _ } => {
                self.place(*pointer, (*index, Width::One), *ty);
                self.added(*value, *ty, Width::One);
            }
            Ins::Offset { to, pointer, index, ty, room } => {
                self.reg(*to, Ty::Pointer);
                self.place(*pointer, (*index, Width::One), *ty);
                room.iter().for_each(|r| self.int(*r));
            }
            Ins::Alloc { to, count, ty } => {
                self.reg(*to, Ty::Pointer);
                self.int(*count);
                self.element(*ty);
            }
            Ins::Mark { to } => self.reg(*to, Ty::Pointer),
            Ins::Release { mark } => self.pointer(*mark),
            Ins::Fill { pointer, count, value, ty } => {
                self.place(*pointer, (*count, Width::One), *ty);
                self.operand(*value, *ty, Width::One);
            }
            Ins::Copy { to, from, count, ty } => {
                self.place(*to, (*count, Width::One), *ty);
                self.pointer(*from);
            }
            Ins::For { i, from, to, .. } | Ins::Lanes { i, from, to, .. } => {
                self.reg(*i, Ty::I64);
                self.int(*from);
                self.int(*to);
                self.counter(*i);
            }
            Ins::Chunks { count, function, args } => {
                self.int(*count);
                self.chunks(*function, args);
            }
            Ins::LaneNumber { to } => {
                if self.lanes_of(*to).is_some_and(|s| s != Scalar::I64) {
                    self.alarm(Rule::Type, Some(*to), "numbers of lanes are i64".to_string());
                }
            }
            Ins::LoadLanes { to, pointer, index, stride, mask } => {
                self.lanes_of(*to);
                self.place(*pointer, (*index, Width::Lanes), as_scalar(self.f.regs[*to].ty));
                self.int(*stride);
                self.mask(*mask);
            }
            Ins::StoreLanes { pointer, index, stride, value, ty, mask }
            | Ins::AccumulateLanes { pointer, index, stride, value, ty, mask, .. } => {
                self.place(*pointer, (*index, Width::Lanes), *ty);
                self.int(*stride);
                self.added(*value, *ty, Width::Lanes);
                self.mask(*mask);
            }
            Ins::FoldLanes { to, prim, neutral, from, mask } => {
                self.fold_lanes((*to, *from), *prim, *neutral, *mask)
            }
            Ins::Lane { to, from, lane } => {
                let ty = self.f.regs[*to].ty;
                self.operand(*from, ty, Width::Lanes);
                if ty.is_lanes() || self.ty(*from).lanes().is_some_and(|n| *lane >= n) {
                    self.alarm(Rule::Lanes, Some(*to), format!("there is no lane {lane} for it"));
                }
            }
            Ins::While { test, .. } => self.operand(*test, Ty::BOOL, Width::One),
            Ins::If { condition, .. } => self.operand(*condition, Ty::BOOL, Width::One),
            Ins::Fail { condition, values, .. } => {
                let width = if self.ty(*condition).is_lanes() { Width::Lanes } else { Width::One };
                self.operand(*condition, Ty::BOOL, width);
                values.iter().for_each(|v| self.operand(*v, Ty::I64, width));
            }
            Ins::Clock { to } => self.reg(*to, Ty::I64),
            Ins::Call { to, function, args } => self.call(to, *function, args),
        }
    }
    fn width(&self, to: Reg) -> Width {
        if self.f.regs[to].ty.is_lanes() { Width::Lanes } else { Width::One }
    }
    fn place(&mut self, pointer: Operand, (index, width): (Operand, Width), ty: Ty) {
        self.pointer(pointer);
        self.operand(index, Ty::I64, width);
        self.element(ty);
    }
    /// What is added, or stored from lanes: a scalar.
    fn added(&mut self, value: Operand, ty: Ty, width: Width) {
        if ty == Ty::Pointer {
            return self.alarm(
                Rule::Type,
                value.as_reg(),
                "pointers are not added, and not in lanes".to_string(),
            );
        }
        self.operand(value, ty, width);
    }
    fn fold_lanes(
        &mut self,
        (to, from): (Reg, Operand),
        prim: Prim,
        neutral: ScalarValue,
        mask: Option<Operand>,
    ) {
        let scalar = prim.result();
        self.reg(to, Ty::Scalar(scalar));
        if prim.params() != [scalar, scalar] || neutral.scalar() != scalar {
            self.alarm(Rule::Type, Some(to), format!("{} takes no two lanes together", prim.name()));
        }
        self.operand(from, Ty::Scalar(scalar), Width::Lanes);
        self.mask(mask);
    }
    fn counter(&mut self, i: Reg) {
        if self.set[i] || self.counters.contains(&i) {
            let text = format!("the counter {} is set by something else too", name(self.f, i));
            self.alarm(Rule::Counter, Some(i), text);
        }
    }
    fn fold(&mut self, fold: &'a Fold, body: &Block) {
        let lists = [&fold.neutral, &fold.out].map(|operands| operands.iter().map(|a| self.ty(*a)).collect());
        let regs = [&fold.state, &fold.left, &fold.right]
            .map(|regs| regs.iter().map(|r| self.f.regs[*r].ty).collect::<Vec<Ty>>());
        let lists: [Vec<Ty>; 2] = lists;
        if lists.iter().chain(&regs).any(|types| *types != regs[0]) {
            self.alarm(Rule::Type, None, "a fold takes together values of other types".to_string());
        }
        let mut set = IdSet::new();
        crate::walk(body, &mut |ins| set.extend(ins.sets().iter().copied()));
        for r in fold.state.iter().filter(|r| !set.contains(r)) {
            let text = format!("the body does not set the state {} of a fold", name(self.f, *r));
            self.alarm(Rule::Fold, Some(*r), text);
        }
        let around = self.lanes.take();
        self.block(&fold.combine);
        self.lanes = around;
    }
    fn callee(&self, function: FunctionId) -> &'a Callee {
        &self.around.callees[function.index()]
    }
    fn call(&mut self, to: &[Reg], function: FunctionId, args: &[Operand]) {
        let callee = self.callee(function);
        self.arguments(callee, &callee.params, args);
        let found: Vec<Ty> = to.iter().map(|r| self.f.regs[*r].ty).collect();
        if found != callee.results {
            self.alarm(Rule::Type, None, format!("{} gives other results", callee.name));
        }
    }
    fn chunks(&mut self, function: FunctionId, args: &[Operand]) {
        let callee = self.callee(function);
        match callee.params.split_first() {
            Some((counter, params)) if *counter == Ty::I64 && callee.results.is_empty() => {
                self.arguments(callee, params, args)
            }
            _ => self.alarm(Rule::Type, None, format!("{} is not a part of a loop", callee.name)),
        }
    }
    fn arguments(&mut self, callee: &Callee, params: &[Ty], args: &[Operand]) {
        if params.len() != args.len() {
            self.alarm(Rule::Type, None, format!("{} takes other arguments", callee.name));
        }
        for (a, ty) in args.iter().zip(params) {
            self.operand(*a, *ty, Width::One);
        }
    }
}

/// The type of one lane.
fn as_scalar(ty: Ty) -> Ty {
    ty.scalar().map_or(ty, Ty::Scalar)
}

/// Calls `f` with every instruction, those of folds included.
fn each(block: &Block, f: &mut dyn FnMut(&Ins)) {
    for ins in block {
        f(ins);
        each_inside(ins, f);
    }
}
/// The same with those in an instruction.
pub(super) fn each_inside(ins: &Ins, f: &mut dyn FnMut(&Ins)) {
    ins.blocks().into_iter().for_each(|b| each(b, f));
    if let Ins::For { order: Order::Any(folds), .. } = ins {
        folds.iter().for_each(|fold| each(&fold.combine, f));
    }
}
