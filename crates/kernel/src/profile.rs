//! A module that measures where its time goes: for each loop, call and copy outside of loops that are run whole, ticks of a clock,
//! how often it ran, and the bytes that it asked for.
//!
//! Place in the pipeline: after the schedule, so that what is measured is what runs: loops are joined, in lanes and in parts as they
//! are without it. Assumes that the lowering has noted the sites of registers ([`crate::lower_with_sites`]). Guarantees the results
//! of the module before; the function has one result more, an array of `i64` ([`WORDS`] for each slot after the first word, which is
//! the time at which the call began).
//!
//! What is looked into: branches, loops of the source program whose iterations follow each other (three of them inside each other),
//! and calls, of which each has slots of its own. What is not: loops whose iterations are independent of each other, which threads
//! may share, and recursive functions.

use crate::calls::recursive;
use crate::ir::{Block, Function, FunctionId, Ins, Module, Operand, Order, Reg, RegInfo, Site, Sweep, Ty};
use crate::walk::walk;
use pullback_base::Span;
use pullback_base::index::{IdMap, Index, IndexVec};
use pullback_prim::{Op, Prim, Scalar};
use std::collections::{BTreeMap, BTreeSet};

/// Words of a slot: ticks, how often it ran, bytes that it asked for, and those of them that are tapes.
pub const WORDS: usize = 4;

/// Loops of the source inside each other that are looked into.
const DEPTH: usize = 3;

/// The most functions that are looked into: each call is one more.
const CALLS: usize = 64;

/// What is measured as one thing.
#[derive(Clone, Debug, PartialEq)]
pub struct Slot {
    /// The slot around; only the first one, the whole call, has none.
    pub parent: Option<usize>,
    /// The statement; `None`: code that no statement is known for.
    pub site: Option<Site>,
    /// The sweeps that its work belongs to: also that of what the schedule put into the statement's loops.
    pub sweep: Sweep,
    /// Other statements that are done by the same loops.
    pub others: BTreeSet<Span>,
    /// How it is run.
    pub form: Form,
}

impl Slot {
    fn new(parent: Option<usize>, site: Option<Site>) -> Slot {
        let sweep = site.map_or(Sweep::Primal, |s| s.sweep);
        Slot { parent, site, sweep, others: BTreeSet::new(), form: Form::default() }
    }
}

/// How something is run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Form {
    /// Some of its loops are in lanes.
    pub in_lanes: bool,
    /// Threads share its loops.
    pub in_parts: bool,
    /// It has loops.
    pub has_loops: bool,
    /// It calls functions.
    pub calls: bool,
    /// It has loops that end when a condition says so.
    pub has_whiles: bool,
    /// It has loops whose iterations follow each other.
    pub in_order: bool,
    /// It has loops whose iterations are independent of each other.
    pub in_any_order: bool,
    /// Some of these have loops inside whose number of iterations is another one each time.
    pub varies: bool,
    /// Threads add to the same memory at the same time.
    pub is_atomic: bool,
    /// It takes the copies together that threads have added to.
    pub sums_copies: bool,
}

impl Form {
    fn and(self, other: Form) -> Form {
        Form {
            in_lanes: self.in_lanes | other.in_lanes,
            in_parts: self.in_parts | other.in_parts,
            has_loops: self.has_loops | other.has_loops,
            calls: self.calls | other.calls,
            has_whiles: self.has_whiles | other.has_whiles,
            in_order: self.in_order | other.in_order,
            in_any_order: self.in_any_order | other.in_any_order,
            varies: self.varies | other.varies,
            is_atomic: self.is_atomic | other.is_atomic,
            sums_copies: self.sums_copies | other.sums_copies,
        }
    }
}

/// A module that measures itself.
#[derive(Clone, Debug)]
pub struct Profiled {
    /// The functions that are needed.
    pub module: Module,
    /// The function that measures.
    pub function: FunctionId,
    /// What each slot is; a slot comes after the one around it.
    pub slots: Vec<Slot>,
}

/// A module in which the function measures itself. Cost: the size of the functions, once for each call that is looked into.
pub fn instrument(module: &Module, function: FunctionId) -> Profiled {
    let whole = Slot::new(None, None);
    let mut p = Profiler {
        given: module,
        made: module.clone(),
        recursive: recursive(module),
        slots: vec![whole],
        calls: 0,
    };
    let f = p.entry(function);
    let (module, function) = only_needed(p.made, f);
    Profiled { module, function, slots: p.slots }
}

struct Profiler<'a> {
    given: &'a Module,
    made: Module,
    recursive: IndexVec<FunctionId, bool>,
    slots: Vec<Slot>,
    /// How many have been looked into.
    calls: usize,
}

/// A function being instrumented.
struct Place {
    /// As it was given.
    id: FunctionId,
    regs: IndexVec<Reg, RegInfo>,
    buffer: Reg,
    /// Slots of statements, by the slot around.
    slots: BTreeMap<(usize, Option<Site>), usize>,
}

impl Place {
    fn reg(&mut self, ty: Ty, hint: &str) -> Reg {
        self.regs.push(RegInfo::new(ty, hint))
    }
    fn op(&mut self, op: Op, args: [Operand; 2], out: &mut Block) -> Operand {
        let to = self.reg(Ty::I64, "t");
        out.push(Ins::Prim { to, prim: Prim::Op(op, Scalar::I64), args: args.to_vec() });
        to.into()
    }
    fn clock(&mut self, out: &mut Block) -> Operand {
        let to = self.reg(Ty::I64, "clock");
        out.push(Ins::Clock { to });
        to.into()
    }
    /// Adds to a word of a slot.
    fn add(&mut self, (slot, word): (usize, usize), value: Operand, out: &mut Block) {
        let (pointer, index) = (self.buffer.into(), Operand::i64((1 + slot * WORDS + word) as i64));
        let before = self.reg(Ty::I64, "before");
        out.push(Ins::Load { to: before, pointer, index });
        let value = self.op(Op::Add, [before.into(), value], out);
        out.push(Ins::Store { pointer, index, value, ty: Ty::I64 });
    }
    /// Runs code and adds its time to a slot.
    fn timed(&mut self, slot: usize, code: Block, out: &mut Block) {
        let start = self.clock(out);
        out.extend(code);
        let end = self.clock(out);
        let ticks = self.op(Op::Sub, [end, start], out);
        self.add((slot, 0), ticks, out);
        self.add((slot, 1), Operand::i64(1), out);
    }
}

impl Profiler<'_> {
    fn entry(&mut self, id: FunctionId) -> FunctionId {
        let f = self.given.functions[id].clone();
        let mut regs = f.regs;
        let buffer = regs.push(RegInfo::new(Ty::Pointer, "profile"));
        let mut place = Place { id, regs, buffer, slots: BTreeMap::new() };
        let mut inner = Vec::new();
        self.block(f.body, (0, 0), &mut place, &mut inner);
        // Known when all slots are.
        let count = Operand::i64((1 + self.slots.len() * WORDS) as i64);
        let (pointer, value) = (Operand::Reg(buffer), Operand::i64(0));
        let mut body = vec![
            Ins::Alloc { to: buffer, count, ty: Ty::I64 },
            Ins::Fill { pointer, count, value, ty: Ty::I64 },
        ];
        let start = place.clock(&mut body);
        body.push(Ins::Store { pointer, index: Operand::i64(0), value: start, ty: Ty::I64 });
        place.timed(0, inner, &mut body);
        let mut results = f.results;
        results.push(buffer);
        for value in [count, Operand::i64(1)] {
            let to = place.reg(Ty::I64, "size");
            body.push(Ins::Set { to, value });
            results.push(to);
        }
        self.push(Function { name: f.name, params: f.params, results, regs: place.regs, body })
    }
    /// A copy of a function for one call.
    fn called(&mut self, id: FunctionId, slot: usize, depth: usize) -> FunctionId {
        let f = self.given.functions[id].clone();
        let (mut regs, mut params) = (f.regs, f.params);
        let buffer = regs.push(RegInfo::new(Ty::Pointer, "profile"));
        params.push(buffer);
        let mut place = Place { id, regs, buffer, slots: BTreeMap::new() };
        let mut body = Vec::new();
        self.block(f.body, (slot, depth), &mut place, &mut body);
        self.push(Function { name: f.name, params, results: f.results, regs: place.regs, body })
    }
    fn push(&mut self, mut f: Function) -> FunctionId {
        f.name = format!("{}.profiled.{}", f.name, self.made.functions.len());
        self.made.functions.push(f)
    }

    /// Instruments a block in a slot, so many loops deep.
    fn block(&mut self, block: Block, (parent, depth): (usize, usize), place: &mut Place, out: &mut Block) {
        let mut open: Option<Open> = None;
        for ins in block {
            if let Ins::If { condition, then, otherwise } = ins {
                let mut works = false;
                walk(&then, &mut |ins| works |= is_work(ins));
                walk(&otherwise, &mut |ins| works |= is_work(ins));
                if let Some(run) = open.take_if(|_| works) {
                    run.close(place, out);
                }
                let (mut yes, mut no) = (Vec::new(), Vec::new());
                self.block(then, (parent, depth), place, &mut yes);
                self.block(otherwise, (parent, depth), place, &mut no);
                let to = open.as_mut().map_or(&mut *out, |o| &mut o.after);
                to.push(Ins::If { condition, then: yes, otherwise: no });
                continue;
            }
            if !is_work(&ins) {
                let mut code = Vec::new();
                if let Ins::Alloc { to, count, ty } = &ins {
                    let site = self.given.site(place.id, *to);
                    // What the schedule asks for belongs to what is around.
                    let slot = site.map_or(parent, |site| self.slot(parent, Some(site), place));
                    let bytes = place.op(Op::Mul, [*count, Operand::i64(ty.bytes() as i64)], &mut code);
                    place.add((slot, 2), bytes, &mut code);
                    if self.given.facts(place.id, *to).is_some_and(|facts| facts.tape) {
                        place.add((slot, 3), bytes, &mut code);
                    }
                }
                let to = open.as_mut().map_or(&mut *out, |o| &mut o.after);
                to.push(ins);
                to.extend(code);
                continue;
            }
            let site = self.site(place.id, &ins);
            let slot = self.slot(parent, site, place);
            if slot == parent {
                // What belongs to the loop around is no row of its own.
                let ins = self.inside(ins, (slot, depth), place);
                open.as_mut().map_or(&mut *out, |o| &mut o.after).push(ins);
                continue;
            }
            let form = self.form(&ins);
            let others = self.spans(place.id, &ins);
            let has_reverse = self.has_reverse(place.id, &ins);
            let own = site.and_then(|s| s.span);
            let s = &mut self.slots[slot];
            s.form = s.form.and(form);
            if has_reverse && s.sweep == Sweep::Primal {
                s.sweep = Sweep::Both;
            }
            s.others.extend(others.into_iter().filter(|span| Some(*span) != own));
            let ins = self.inside(ins, (slot, depth), place);
            match &mut open {
                Some(run) if run.slot == slot => {
                    run.code.append(&mut run.after);
                    run.code.push(ins);
                }
                _ => {
                    if let Some(run) = open.take() {
                        run.close(place, out);
                    }
                    open = Some(Open { slot, code: vec![ins], after: Vec::new() });
                }
            }
        }
        if let Some(run) = open {
            run.close(place, out);
        }
    }

    /// What is looked into, instrumented.
    fn inside(&mut self, ins: Ins, (slot, depth): (usize, usize), place: &mut Place) -> Ins {
        let is_loop = self.slots[slot].site.is_some_and(|s| s.construct == "loop");
        match ins {
            Ins::For { i, from, to, body, order: Order::Given } if is_loop && depth < DEPTH => {
                let mut inner = Vec::new();
                self.block(body, (slot, depth + 1), place, &mut inner);
                Ins::For { i, from, to, body: inner, order: Order::Given }
            }
            Ins::While { condition, test, body } if depth < DEPTH => {
                let mut inner = Vec::new();
                self.block(body, (slot, depth + 1), place, &mut inner);
                Ins::While { condition, test, body: inner }
            }
            Ins::Call { to, function, mut args } if !self.recursive[function] && self.calls < CALLS => {
                self.calls += 1;
                let function = self.called(function, slot, depth);
                args.push(place.buffer.into());
                Ins::Call { to, function, args }
            }
            ins => ins,
        }
    }

    fn slot(&mut self, parent: usize, site: Option<Site>, place: &mut Place) -> usize {
        if site.is_some() && site == self.slots[parent].site {
            return parent;
        }
        *place.slots.entry((parent, site)).or_insert_with(|| {
            let parent = Some(parent);
            self.slots.push(Slot::new(parent, site));
            self.slots.len() - 1
        })
    }

    /// The statement that work is for.
    fn site(&self, id: FunctionId, ins: &Ins) -> Option<Site> {
        let of = |r: Reg| self.given.site(id, r);
        let read = |ins: &Ins| {
            let mut found = None;
            ins.reads(&mut |a| found = found.or_else(|| a.as_reg().and_then(of)));
            found
        };
        match ins {
            // The sum of copies has no sites: it is for what it adds to.
            Ins::Chunks { function, .. } => {
                let body = &self.given.functions[*function].body;
                let mut work = body.iter().filter(|ins| !ins.blocks().is_empty());
                let found = work.find_map(|ins| self.site(*function, ins));
                found.or_else(|| read(ins).map(|s| Site { construct: "sum of copies", ..s }))
            }
            Ins::While { body, .. } => {
                let set = || body.iter().flat_map(|ins| ins.sets().iter().copied());
                let found = set().rev().filter_map(of).find(|s| s.construct == "loop");
                found.or_else(|| set().find_map(of))
            }
            Ins::For { body, .. } | Ins::Lanes { body, .. } => {
                let own = ins.sets().iter().copied().find_map(of);
                own.or_else(|| {
                    let mut found = None;
                    walk(body, &mut |ins| {
                        if found.is_none() && matches!(ins, Ins::For { .. } | Ins::Lanes { .. }) {
                            found = ins.sets().iter().copied().find_map(of);
                        }
                    });
                    walk(body, &mut |ins| {
                        found =
                            found.or_else(|| ins.sets().iter().copied().find_map(of)).or_else(|| read(ins));
                    });
                    found
                })
            }
            ins => ins.sets().iter().copied().find_map(of).or_else(|| read(ins)),
        }
    }

    /// The statements that work is done for.
    fn spans(&self, id: FunctionId, ins: &Ins) -> BTreeSet<Span> {
        let mut out = BTreeSet::new();
        self.each(id, ins, &mut |id, ins| {
            if matches!(ins, Ins::For { .. } | Ins::Lanes { .. }) {
                let sites = ins.sets().iter().filter_map(|r| self.given.site(id, *r));
                out.extend(sites.filter(|s| s.construct != "expression").filter_map(|s| s.span));
            }
        });
        out
    }

    /// Whether some of it is for a statement of the reverse sweep.
    fn has_reverse(&self, id: FunctionId, ins: &Ins) -> bool {
        let mut found = false;
        self.each(id, ins, &mut |id, ins| {
            let mut sites = ins.sets().iter().filter_map(|r| self.given.site(id, *r));
            found |= sites.any(|s| s.sweep != Sweep::Primal);
        });
        found
    }

    fn form(&self, ins: &Ins) -> Form {
        let mut form = Form::default();
        let id = FunctionId::new(0);
        self.each(id, ins, &mut |_, ins| match ins {
            Ins::Lanes { body, .. } => {
                (form.has_loops, form.in_lanes, form.in_any_order) = (true, true, true);
                form.varies |= varies(body);
            }
            Ins::For { order: Order::Given, .. } => (form.has_loops, form.in_order) = (true, true),
            Ins::For { order: Order::Any(_), body, .. } => {
                (form.has_loops, form.in_any_order) = (true, true);
                form.varies |= varies(body);
            }
            Ins::While { .. } => (form.has_loops, form.has_whiles) = (true, true),
            Ins::Call { .. } => form.calls = true,
            Ins::Chunks { function, .. } => {
                form.in_parts = true;
                let body = &self.given.functions[*function].body;
                form.sums_copies |= body.iter().all(|ins| self.site(*function, ins).is_none());
            }
            Ins::Accumulate { atomic: true, .. } | Ins::AccumulateLanes { atomic: true, .. } => {
                form.is_atomic = true;
            }
            _ => {}
        });
        form
    }
    /// Calls `f` with an instruction and all inside of it, and with those of the parts that threads share.
    fn each(&self, id: FunctionId, ins: &Ins, f: &mut dyn FnMut(FunctionId, &Ins)) {
        walk(std::slice::from_ref(ins), &mut |ins| {
            f(id, ins);
            if let Ins::Chunks { function, .. } = ins {
                walk(&self.given.functions[*function].body, &mut |ins| f(*function, ins));
            }
        });
    }
}

/// Whether a loop in given order in the body of another one has bounds that are computed there.
fn varies(body: &Block) -> bool {
    let mut set = BTreeSet::new();
    walk(body, &mut |ins| set.extend(ins.sets().iter().copied()));
    let mut found = false;
    walk(body, &mut |ins| {
        if let Ins::For { from, to, order: Order::Given, .. } = ins {
            found |= [from, to].into_iter().filter_map(|a| a.as_reg()).any(|r| set.contains(&r));
        }
    });
    found
}

/// Whether an instruction may take long.
fn is_work(ins: &Ins) -> bool {
    matches!(
        ins,
        Ins::For { .. }
            | Ins::While { .. }
            | Ins::Lanes { .. }
            | Ins::Chunks { .. }
            | Ins::Call { .. }
            | Ins::Fill { .. }
            | Ins::Copy { .. }
    )
}

/// Work of one slot that is being collected.
struct Open {
    slot: usize,
    code: Block,
    /// What came after the last work.
    after: Block,
}

impl Open {
    fn close(self, place: &mut Place, out: &mut Block) {
        place.timed(self.slot, self.code, out);
        out.extend(self.after);
    }
}

/// The functions that one needs, and its number among them.
fn only_needed(module: Module, function: FunctionId) -> (Module, FunctionId) {
    let mut needed = BTreeSet::new();
    let mut todo = vec![function];
    while let Some(id) = todo.pop() {
        if needed.insert(id) {
            walk(&module.functions[id].body, &mut |ins| {
                if let Ins::Call { function, .. } | Ins::Chunks { function, .. } = ins {
                    todo.push(*function);
                }
            });
        }
    }
    let number: IdMap<FunctionId, FunctionId> =
        needed.iter().enumerate().map(|(k, id)| (*id, FunctionId::new(k))).collect();
    let mut out = Module { messages: module.messages, lanes: module.lanes, ..Module::default() };
    for id in &needed {
        let mut f = module.functions[*id].clone();
        renumber(&mut f.body, &number);
        out.functions.push(f);
    }
    (out, number[&function])
}

fn renumber(block: &mut Block, number: &IdMap<FunctionId, FunctionId>) {
    for ins in block {
        if let Ins::Call { function, .. } | Ins::Chunks { function, .. } = ins {
            *function = number[function];
        }
        ins.blocks_mut().into_iter().for_each(|b| renumber(b, number));
    }
}
