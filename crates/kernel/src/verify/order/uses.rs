//! The walk over a function that notes, for each loop in any order around, how its iterations use memory from outside of it.
//!
//! Which memory a pointer may reach is known from the analysis of memory (`flow`), for each instruction that uses it. Memory that is made inside of
//! a loop in any order is its iteration's own.

use super::super::Callee;
use super::super::alarm::{line, name};
use super::super::flow::{Face, Flow, recent, site_of};
use super::super::layout::{CALLER, Layout, Makes, Point};
use super::super::ranges::sums::Atom;
use super::super::ranges::values::{Place, Span, Values, Words};
use super::super::ranges::walk::{Walk, all_sets, blocks_of};
use super::super::values::places::{Noting, Places};
use super::rows::{self, Regions};
use super::{Claim, Claims, Effects, How, Open, Reason};
use crate::ir::{Block, Fold, FunctionId, Ins, Operand, Order, Reg, Ty};
use pullback_base::index::Index;
use std::collections::BTreeMap;
use std::ops::Range;

/// A use of memory from outside of a loop.
pub(in super::super) struct Use<'a> {
    pub(in super::super) how: How,
    /// Where it is.
    pub(super) regions: Result<Regions, Reason>,
    ins: &'a Ins,
}

impl Use<'_> {
    /// The register of an event: memory is used there without a load.
    pub(in super::super) fn event(&self) -> Option<Reg> {
        if let Ins::Set { to, .. } = self.ins { Some(*to) } else { None }
    }
}

/// A loop in any order that the walk is in; where values are looked at, also one in given order.
pub(in super::super) struct Around<'a> {
    pub(in super::super) counter: Atom,
    /// What has a number below is the same in all iterations.
    pub(in super::super) start: u32,
    sites: Range<u32>,
    pub(in super::super) uses: BTreeMap<Face, Vec<Use<'a>>>,
}

/// Which elements are used.
#[derive(Clone, Copy)]
pub(in super::super) enum Extent {
    /// One, or so many from there on.
    From(Operand, Operand, Ty),
    /// Any that the pointer may be used for.
    Room,
}

pub(in super::super) struct Looking<'a, 'f> {
    pub(in super::super) flow: &'f Flow<'a>,
    pub(in super::super) values: Values<'a>,
    effects: &'f [Effects],
    /// The parameters, as bases.
    pub(in super::super) params: BTreeMap<Atom, usize>,
    /// The loops in any order around, the outermost first.
    around: Vec<Around<'a>>,
    path: Vec<&'a Ins>,
    /// Whether the program has stopped on this way.
    ended: bool,
    visits: u64,
    claims: Claims,
    own: Effects,
    /// What is noted of places, where values are looked at.
    pub(in super::super) noting: Option<Noting<'f>>,
}

const ZERO: Operand = Operand::Const(pullback_prim::ScalarValue::I64(0));
const ONE: Operand = Operand::Const(pullback_prim::ScalarValue::I64(1));

impl<'a, 'f> Looking<'a, 'f> {
    /// What a function claims, and what it does with memory of its callers.
    pub(super) fn over(flow: &'f Flow<'a>, effects: &'f [Effects]) -> (Claims, Effects) {
        let mut walk = Looking::new(flow, effects);
        walk.function();
        walk.claims.work = walk.visits + walk.values.numbers.work;
        (walk.claims, walk.own)
    }
    /// What is noted of places in a function; what it cost.
    pub(in super::super) fn noting(
        flow: &'f Flow<'a>,
        effects: &'f [Effects],
        noting: Noting<'f>,
    ) -> (Places, u64) {
        let mut walk = Looking::new(flow, effects);
        walk.noting = Some(noting);
        walk.function();
        let work = walk.visits + walk.values.numbers.work;
        (walk.noting.map(Noting::places).unwrap_or_default(), work)
    }
    fn new(flow: &'f Flow<'a>, effects: &'f [Effects]) -> Looking<'a, 'f> {
        let f = flow.f;
        Looking {
            flow,
            values: Values::new(f, Words::Believed),
            effects,
            params: BTreeMap::new(),
            around: Vec::new(),
            path: Vec::new(),
            ended: false,
            visits: 0,
            claims: Claims::default(),
            own: Effects { params: vec![Vec::new(); f.params.len()], beyond: Vec::new() },
            noting: None,
        }
    }
    fn function(&mut self) {
        let f = self.flow.f;
        for (k, p) in f.params.iter().enumerate() {
            self.values.renew(*p);
            if f.regs[*p].ty == Ty::Pointer {
                let base = self.values.place((*p).into()).base;
                self.params.insert(base, k);
            }
        }
        self.block(&f.body, 0);
    }
    fn callees(&self) -> &'f [Callee] {
        self.flow.callees
    }

    // --- instructions ---

    fn instruction(&mut self, ins: &'a Ins, point: Point) {
        match ins {
            Ins::For { .. } | Ins::Lanes { .. } | Ins::While { .. } => self.repeat(ins, point),
            Ins::If { condition, then, otherwise } => {
                self.branch(ins, (*condition, [then, otherwise]), point.blocks);
            }
            Ins::Load { pointer, index, to } => {
                let ty = self.flow.f.regs[*to].ty;
                self.used(ins, *pointer, How::Read, Extent::From(*index, ONE, ty));
            }
            Ins::Store { pointer, index, ty, .. } => {
                self.used(ins, *pointer, How::Write, Extent::From(*index, ONE, *ty));
            }
            Ins::Accumulate { pointer, index, ty, .. } => {
                self.used(ins, *pointer, How::Add, Extent::From(*index, ONE, *ty));
            }
            Ins::Fill { pointer, count, ty, .. } => {
                self.used(ins, *pointer, How::Write, Extent::From(ZERO, *count, *ty));
            }
            Ins::Copy { to, from, count, ty } => {
                self.used(ins, *from, How::Read, Extent::From(ZERO, *count, *ty));
                self.used(ins, *to, How::Write, Extent::From(ZERO, *count, *ty));
            }
            Ins::LoadLanes { pointer, .. } => self.used(ins, *pointer, How::Read, Extent::Room),
            Ins::StoreLanes { pointer, .. } => self.used(ins, *pointer, How::Write, Extent::Room),
            Ins::AccumulateLanes { pointer, .. } => self.used(ins, *pointer, How::Add, Extent::Room),
            Ins::Call { function, args, .. } => self.call(ins, *function, args, 0),
            Ins::Chunks { function, args, .. } => self.call(ins, *function, args, 1),
            _ => self.says(ins),
        }
        if ins.blocks().is_empty() {
            self.values.instruction(ins);
            self.ended |= ins.always_stops();
        }
    }
    fn repeat(&mut self, ins: &'a Ins, point: Point) {
        let (begin, sets) = (self.values.begin(), all_sets(ins));
        self.visits += sets.len() as u64;
        match ins {
            Ins::For { i, from, to, body, order } => {
                let [from, to] = [*from, *to].map(|a| self.values.word(a));
                let start = self.values.numbers.next();
                sets.iter().for_each(|r| self.values.renew(*r));
                let counter = self.values.counts_up(*i, &from, &to);
                let is_noted = matches!(order, Order::Any(_)) || self.noting.is_some();
                match counter.as_atom().filter(|_| is_noted) {
                    Some(counter) => {
                        let sites = self.flow.layout.loops[point.number as usize].sites.clone();
                        self.around.push(Around { counter, start, sites, uses: BTreeMap::new() });
                        if let Order::Any(folds) = order {
                            self.folds(folds, point.combines);
                        }
                        self.block(body, point.blocks[1]);
                        let is_single = to.minus(&from).is_some_and(|n| n.as_constant() == Some(1));
                        match self.around.pop() {
                            Some(mut around) if self.noting.is_some() => {
                                self.notes(point.number, order, &mut around);
                            }
                            Some(around) if !is_single => self.decide(*i, around),
                            _ => {}
                        }
                    }
                    None => self.block(body, point.blocks[1]),
                }
            }
            _ => {
                sets.iter().for_each(|r| self.values.renew(*r));
                for (block, id) in ins.blocks().into_iter().zip(blocks_of(ins, point)) {
                    self.block(block, id);
                }
            }
        }
        self.ended = false;
        self.values.end(begin);
        sets.iter().for_each(|r| self.values.renew(*r));
    }
    /// How states are taken together: with what an iteration uses.
    fn folds(&mut self, folds: &'a [Fold], first: usize) {
        for (k, fold) in folds.iter().enumerate() {
            self.block(&fold.combine, self.flow.layout.combines[first + k]);
            self.ended = false;
        }
    }

    // --- uses ---

    fn call(&mut self, ins: &'a Ins, function: FunctionId, args: &[Operand], first: usize) {
        let effects = self.effects;
        let Some(effects) = effects.get(function.index()) else { return };
        for (k, a) in args.iter().enumerate() {
            let Operand::Reg(r) = a else { continue };
            for how in effects.params.get(first + k).into_iter().flatten() {
                self.used(ins, *a, *how, Extent::Room);
            }
            let reached = self.flow.reached(ins, *r).to_vec();
            for how in &effects.beyond {
                self.uses(ins, &reached, *how, &Err(Reason::Call));
            }
        }
    }
    fn used(&mut self, ins: &'a Ins, pointer: Operand, how: How, extent: Extent) {
        let Operand::Reg(r) = pointer else { return };
        let faces = self.flow.met(ins, r).to_vec();
        let place = self.values.place(pointer);
        let exact = match extent {
            Extent::From(index, count, ty) => {
                let (index, count) = (self.values.number(index), self.values.number(count));
                let by = self.values.bytes(&index, ty);
                let (from, length) = (self.values.sum(&place.offset, &by), self.values.bytes(&count, ty));
                Some(Span { from, length })
            }
            Extent::Room => None,
        };
        self.visits += faces.len() as u64;
        if how != How::Read {
            self.writes(ins, r, &place, exact.as_ref());
        }
        self.uses_at(ins, &faces, how, (&place, exact.as_ref()));
    }
    pub(in super::super) fn uses_at(
        &mut self,
        ins: &'a Ins,
        faces: &[Face],
        how: How,
        (place, exact): (&Place, Option<&Span>),
    ) {
        let param = self.params.get(&place.base).copied();
        self.note_own(faces, how, param);
        for l in &mut self.around {
            let outside = faces.iter().filter(|face| is_outside(self.flow, &l.sites, **face));
            let outside: Vec<Face> = outside.copied().collect();
            if outside.is_empty() {
                continue;
            }
            for (at, exact) in self.values.ways(place, exact, l.start) {
                let found = Regions::of(&mut self.values.numbers, (l.counter, l.start), &at, exact.as_ref());
                let regions = found.map_err(|reason| if exact.is_none() { Reason::Call } else { reason });
                // (A way to memory that is made elsewhere is none to this.)
                let maker = self.values.maker(at.base);
                let site = |face: &Face| &self.flow.layout.sites[site_of(*face) as usize];
                for face in outside.iter().filter(|face| maker.is_none() || site(face).to == maker) {
                    l.note(*face, how, regions.clone(), ins);
                }
            }
        }
    }
    fn uses(&mut self, ins: &'a Ins, faces: &[Face], how: How, regions: &Result<Regions, Reason>) {
        self.note_own(faces, how, None);
        for l in &mut self.around {
            for face in faces {
                if is_outside(self.flow, &l.sites, *face) {
                    l.note(*face, how, regions.clone(), ins);
                }
            }
        }
    }
    fn note_own(&mut self, faces: &[Face], how: How, param: Option<usize>) {
        if faces.contains(&recent(CALLER)) {
            let all = match param {
                Some(k) => &mut self.own.params[k],
                None => &mut self.own.beyond,
            };
            if !all.contains(&how) {
                all.push(how);
                all.sort_unstable();
            }
        }
    }

    // --- claims ---

    fn decide(&mut self, i: Reg, around: Around<'a>) {
        let Around { counter, start, uses, .. } = around;
        for (face, uses) in uses {
            let is = |how: How| uses.iter().any(|u| u.how == how);
            let is_claim = is(How::Write) || is(How::Add) && is(How::Read);
            if !is_claim {
                continue;
            }
            let f = self.flow.f;
            let claim = Claim { function: f.name.clone(), counter: name(f, i), memory: self.flow.face(face) };
            match rows::apart(&mut self.values.numbers, (counter, start), &uses) {
                Ok(()) => self.claims.shown.push(claim),
                Err((reason, a, b)) => {
                    let reason =
                        if face == recent(CALLER) && reason != Reason::Row { Reason::Caller } else { reason };
                    let uses = [a, b].map(|k| line(f, uses[k].ins, self.callees()));
                    let path = self.path.iter().map(|ins| line(f, ins, self.callees())).collect();
                    self.claims.open.push(Open { claim, reason, uses, path });
                }
            }
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
        &self.flow.layout
    }
    fn step(&mut self, ins: &'a Ins, point: Point) {
        self.visits += 1;
        self.path.push(ins);
        self.instruction(ins, point);
        self.path.pop();
    }
    fn passes_by(&mut self, arm: &'a Block) {
        if let Some(noting) = &mut self.noting {
            noting.passes_by(arm);
        }
    }
}

impl<'a> Around<'a> {
    fn note(&mut self, memory: Face, how: How, regions: Result<Regions, Reason>, ins: &'a Ins) {
        let uses = self.uses.entry(memory).or_default();
        let is_event = matches!(ins, Ins::Set { .. });
        let is_known = |u: &Use<'_>| u.how == how && u.regions == regions && u.event().is_none();
        if is_event || !uses.iter().rev().take(8).any(is_known) {
            uses.push(Use { how, regions, ins });
        }
    }
}

/// Whether a face is memory that is made outside of the loop with these sites.
fn is_outside(flow: &Flow<'_>, sites: &Range<u32>, face: Face) -> bool {
    let site = site_of(face);
    let is_memory = matches!(flow.layout.sites[site as usize].makes, Makes::Memory(_) | Makes::Caller);
    is_memory && !sites.contains(&site)
}
