//! Loops: those of the program, and those that array operations with functions are.
//!
//! Collected values are written straight into their array, unless their shape is known only after the first iteration (then it is
//! made there) or their number only at the end (then it grows). State: [`super::state`].

use super::aliasing::Roots;
use super::combine::Combine;
use super::rep::{ArrayRep, Leaf, Rep, has_boxes, words};
use super::shape_inference::Inside;
use super::state::{Cell, keeps_memory};
use super::{Lower, Res, Val, double_buffering, roots};
use crate::ir::{Block, Ins, Operand, Order, Reg, RegInfo, Shape, Text, Ty};
use pullback_base::RuntimeErrorKind;
use pullback_base::index::{IdMap, IdSet, IndexVec};
use pullback_core::shapes::Dim;
use pullback_core::traverse::free_vars_exp;
use pullback_core::{Atom, Body, Exp, FusedForm, Lam, Loop, LoopForm, Shaped, Soac, Type, Var};
use pullback_prim::{Op, Prim, Scalar};

/// What is said of histograms.
const BINS: &str = "reduce_by_index";

/// An array of collected values.
pub(super) struct Collector {
    pub(super) elem: Type,
    pub(super) place: Place,
    /// The result of the body that is collected.
    from: Atom,
    /// What else lies in the memory: an operand whose elements are overwritten one by one.
    over: Roots,
}

pub(super) enum Place {
    /// Made before the loop.
    Ready(ArrayRep),
    /// Made when the first value is there: pointers, and sizes of a value.
    Late(Vec<Reg>, Vec<Reg>),
}

/// How often a loop runs.
pub(super) enum Trip {
    /// So often.
    Count(Operand),
    /// So often; the first iteration is that of this number.
    Part { from: Operand, length: Operand },
    /// Until its condition fails.
    While(Block, Operand),
}

/// Where the collected arrays of an iteration belong.
pub(super) type Slots = [Option<ArrayRep>];
/// An iteration: from counter, state and slots to the next state and the collected values.
type Iteration<'a, L> = dyn FnMut(&mut L, Operand, Vec<Val>, &Slots) -> Res<(Vec<Val>, Vec<Val>)> + 'a;

impl<'p> Lower<'p> {
    // --- collected values ---

    /// Collectors for results of a body, `inside` of which `from` is; `vars` are the variables that will hold the arrays.
    pub(super) fn collectors<'b>(
        &mut self,
        n: Option<Operand>,
        vars: &[Var],
        from: &[Atom],
        inside: impl Fn(&Self) -> Inside<'b>,
    ) -> Res<Vec<Collector>>
    where
        'p: 'b,
    {
        let mut known = None;
        let mut out = Vec::new();
        for (v, a) in vars.iter().zip(from) {
            let elem = match self.ty(*v) {
                Type::Array(t) => Type::clone(t),
                t => t.clone(),
            };
            let inner: Vec<Dim> = self.shapes.of(*v).iter().skip(1).copied().collect();
            let place = match (n, self.known_sizes(&inner)) {
                (Some(n), Some(inner)) => {
                    let dims = std::iter::once(n).chain(inner).collect();
                    Place::Ready(self.array_for(Some(*v), dims, elem.base())?)
                }
                _ => {
                    let pointers = words(self.program, elem.base())?.len();
                    let pointers = (0..pointers).map(|_| self.variable(Ty::Pointer, "made", Operand::Null));
                    let pointers = pointers.collect();
                    let inside = known.get_or_insert_with(|| inside(self));
                    // The sizes without an iteration.
                    let mut sizes = Vec::new();
                    for k in 0..elem.rank() {
                        let (block, size) = self.block(|s| Ok(s.extent(inside, *a, k)))?;
                        if size.is_some() {
                            block.into_iter().for_each(|ins| self.emit(ins));
                        }
                        sizes.push(self.variable(Ty::I64, "size", size.unwrap_or(Operand::i64(0))));
                    }
                    Place::Late(pointers, sizes)
                }
            };
            out.push(Collector { elem, place, from: *a, over: Roots::new() });
        }
        Ok(out)
    }
    /// Collectors of scalars, of which iteration `i` makes number `i` after it has read number `i` of the operands: an operand
    /// that nobody needs afterwards gives its memory, first to the one that is to replace it. `users`: what the body mentions.
    pub(super) fn collectors_over<'b>(
        &mut self,
        n: Operand,
        vars: &[Var],
        lam: &'b Lam,
        (operands, users): (&[Atom], &IdSet<Var>),
    ) -> Res<Vec<Collector>>
    where
        'p: 'b,
    {
        let from = &lam.body.result[lam.body.result.len() - vars.len()..];
        let mut free = self.overwritable(n, operands, users);
        let mut given: Vec<Option<Var>> = vec![None; vars.len()];
        let heirs: Vec<usize> = (0..vars.len()).filter(|k| self.heirs.contains_key(&vars[*k])).collect();
        let others = (0..vars.len()).filter(|k| !heirs.contains(k));
        for number in heirs.iter().copied().chain(others) {
            let v = &vars[number];
            let heir_of = self.heirs.get(v);
            let fits = |o: &Var| {
                self.ty(*o) == self.ty(*v)
                    && heir_of.is_none_or(|wanted| wanted == o)
                    && !self.wanted.contains_key(v)
            };
            given[number] = free.iter().position(fits).map(|k| free.remove(k));
        }
        for (v, operand) in vars.iter().zip(&given) {
            if let Some(operand) = operand {
                let array = self.form((*operand).into());
                self.wanted.insert(*v, array);
            }
        }
        let mut out = self.collectors(Some(n), vars, from, |_| Inside::rows(lam, operands))?;
        for (collector, operand) in out.iter_mut().zip(given) {
            collector.over = self.owners.of(operand);
        }
        Ok(out)
    }
    /// Operands with so many elements, one after the other in memory, that may be overwritten; `users`: what the body mentions.
    fn overwritable(&self, n: Operand, operands: &[Atom], users: &IdSet<Var>) -> Vec<Var> {
        let mut others = users.clone();
        let mut again = IdSet::new();
        for v in operands.iter().filter_map(|a| a.var()) {
            if !others.insert(v) {
                again.insert(v);
            }
        }
        let mut out = Vec::new();
        for v in operands.iter().filter_map(|a| a.var()).filter(|v| !again.contains(v)) {
            let array = self.form(v.into());
            let whole = array.is_writable() && array.dims[..] == [n] && array.strides[0].as_i64() == Some(1);
            others.remove(&v);
            if whole && self.owners.may_write(v, &others) {
                out.push(v);
            }
            others.insert(v);
        }
        out
    }
    /// Where the values of iteration `i` belong.
    fn slots(&mut self, collectors: &[Collector], i: Operand) -> Vec<Option<ArrayRep>> {
        let slot = |c: &Collector| match &c.place {
            Place::Ready(array) if c.elem.rank() > 0 => Some(self.part(array, &[i])),
            Place::Ready(_) | Place::Late(..) => None,
        };
        collectors.iter().map(slot).collect()
    }
    /// Asks the body to make the values in their slots.
    pub(super) fn want_collected(
        &mut self,
        body: &Body,
        collectors: &[Collector],
        slots: &[Option<ArrayRep>],
    ) {
        let mut asked = Vec::new();
        for (c, slot) in collectors.iter().zip(slots) {
            if let Some(slot) = slot
                && !asked.contains(&c.from)
            {
                asked.push(c.from);
                self.want(body, c.from, slot.clone());
            }
        }
    }
    /// Writes the values of an iteration.
    fn collect(
        &mut self,
        collectors: &[Collector],
        slots: &[Option<ArrayRep>],
        (i, n): (Operand, Option<Operand>),
        values: Vec<Val>,
    ) -> Res<()> {
        for ((c, slot), val) in collectors.iter().zip(slots).zip(values) {
            let val = if c.elem.rank() == 0 { self.lasting(val, &c.elem)? } else { val };
            match (&c.place, slot, &val.rep) {
                (Place::Ready(_), Some(slot), Rep::Array(a)) => self.copy(slot, a)?,
                (Place::Ready(array), ..) => self.store(array, &[i], &val.rep, &c.elem)?,
                (Place::Late(pointers, sizes), ..) => {
                    self.collect_late(c, pointers, sizes, (i, n), &val.rep)?;
                }
            }
        }
        Ok(())
    }
    fn collect_late(
        &mut self,
        c: &Collector,
        pointers: &[Reg],
        sizes: &[Reg],
        (i, n): (Operand, Option<Operand>),
        value: &Rep,
    ) -> Res<()> {
        let inner: Vec<Operand> = match value {
            Rep::Array(a) => a.dims.clone(),
            _ => Vec::new(),
        };
        let first = self.op(Op::Eq, Scalar::I64, &[i, Operand::i64(0)]);
        let (room, grows) = match n {
            Some(n) => (n, first),
            None => self.doubled(i),
        };
        let (grow, ()) = self.block(|s| {
            let dims = std::iter::once(room).chain(inner.iter().copied()).collect();
            let bigger = s.new_array(dims, c.elem.base())?;
            let row = s.product(&inner);
            let count = s.mul(i, row);
            for (leaf, p) in bigger.leaves.iter().zip(pointers) {
                if let Leaf::Memory { pointer, ty } = *leaf {
                    if n.is_none() {
                        s.emit(Ins::Copy { to: pointer, from: (*p).into(), count, ty });
                    }
                    s.emit(Ins::Set { to: *p, value: pointer });
                }
            }
            for (size, dim) in sizes.iter().zip(&inner) {
                s.emit(Ins::Set { to: *size, value: *dim });
            }
            Ok(())
        })?;
        self.emit(Ins::If { condition: grows, then: grow, otherwise: Vec::new() });
        let known: Vec<Operand> = sizes.iter().map(|r| Operand::Reg(*r)).collect();
        self.check_shapes(Shaped::Row.words(), &known, &inner);
        let array = self.late(c, pointers, sizes, room)?;
        self.store(&array, &[i], value, &c.elem)
    }
    /// Arrays that grow hold an element for each iteration that is done.
    fn note_growing(&mut self, collectors: &[Collector], done: Reg) -> Res<()> {
        for c in collectors {
            let Place::Late(pointers, sizes) = &c.place else { continue };
            let sizes: Vec<Operand> = [&done].into_iter().chain(sizes).map(|r| Operand::Reg(*r)).collect();
            for (pointer, ty) in pointers.iter().zip(words(self.program, c.elem.base())?) {
                let shape = Shape { ty, sizes: sizes.clone() };
                self.regs[*pointer].facts.array = Some(Box::new(shape));
            }
        }
        Ok(())
    }
    /// For a number of elements that is not known: whether element `i` needs more room, and how much is made then.
    fn doubled(&mut self, i: Operand) -> (Operand, Operand) {
        // Room for 2^k elements is made when element 2^(k-1) comes; for 16 when the first comes.
        let less = self.sub(i, Operand::i64(1));
        let common = self.op(Op::And, Scalar::I64, &[i, less]);
        let power = self.op(Op::Eq, Scalar::I64, &[common, Operand::i64(0)]);
        let late = self.op(Op::Le, Scalar::I64, &[Operand::i64(16), i]);
        let first = self.op(Op::Eq, Scalar::I64, &[i, Operand::i64(0)]);
        let later = self.both(power, late);
        let grows = self.either(first, later);
        let twice = self.mul(i, Operand::i64(2));
        let room = self.op(Op::Max, Scalar::I64, &[twice, Operand::i64(16)]);
        (room, grows)
    }
    fn late(&mut self, c: &Collector, pointers: &[Reg], sizes: &[Reg], n: Operand) -> Res<ArrayRep> {
        let types = words(self.program, c.elem.base())?;
        let leaves = pointers.iter().zip(types).map(|(p, ty)| Leaf::Memory { pointer: (*p).into(), ty });
        let dims: Vec<Operand> = std::iter::once(n).chain(sizes.iter().map(|r| Operand::Reg(*r))).collect();
        let strides = self.row_major(&dims);
        Ok(ArrayRep { dims, strides, leaves: leaves.collect(), packed: true })
    }
    /// The array collected; `pointed`: memory in it or behind it that others point to.
    pub(super) fn collected(&mut self, c: &Collector, n: Operand, pointed: Roots) -> Res<Val> {
        let rep = match &c.place {
            Place::Ready(array) => array.clone(),
            Place::Late(pointers, sizes) => self.late(c, pointers, sizes, n)?,
        };
        // (What is written over an operand is where that was. Chains of maps have one root so.)
        let mut roots = if c.over.is_empty() { self.owners.fresh() } else { c.over.clone() };
        roots.extend(pointed);
        Ok(self.made(Val { rep: Rep::Array(rep), roots }))
    }

    // --- the loop itself ---

    /// A loop, in the frame that the caller has entered; leaves it. `iteration` gets the counter and the state and gives the
    /// next state and what is collected. Results: the final state, the arrays collected, and the number of iterations.
    /// `order`: that of the iterations, if no memory of one of them outlives it.
    pub(super) fn iterate(
        &mut self,
        trip: Trip,
        cells: &[Cell],
        collectors: &[Collector],
        seen: Vec<Val>,
        order: Order,
        iteration: &mut Iteration<'_, Self>,
    ) -> Res<(Vec<Val>, Vec<Val>, Operand)> {
        let i = match &trip {
            Trip::Count(_) | Trip::Part { .. } => self.reg(Ty::I64, "i"),
            Trip::While(..) => self.variable(Ty::I64, "i", Operand::i64(0)),
        };
        let n = match &trip {
            Trip::Count(n) | Trip::Part { length: n, .. } => Some(*n),
            Trip::While(..) => None,
        };
        if n.is_none() {
            self.note_growing(collectors, i)?;
        }
        // What a value that leaves the iteration points to has to stay.
        let stays = cells.iter().any(keeps_memory)
            || collectors.iter().any(|c| has_boxes(&c.elem) || matches!(c.place, Place::Late(..)));
        let mut boxed = Roots::new();
        // What was made in the slot of a collected array, and is also pointed to by what leaves the iteration.
        let mut shared = vec![Roots::new(); collectors.len()];
        let (body, adds) = self.adding(|s| {
            s.block(|s| {
                let at = match &trip {
                    Trip::Part { from, .. } => s.add(*from, i.into()),
                    Trip::Count(_) | Trip::While(..) => i.into(),
                };
                if n.is_some() {
                    cells.iter().for_each(|cell| s.note_state(cell));
                }
                let slots = s.slots(collectors, at);
                let (next, values) = iteration(s, at, seen.clone(), &slots)?;
                boxed.extend(values.iter().chain(&next).flat_map(|v| v.roots.iter().copied()));
                let pointing =
                    collectors.iter().zip(&values).filter(|(c, _)| has_boxes(&c.elem)).map(|(_, v)| v);
                let states = cells.iter().zip(&next).filter(|(cell, _)| keeps_memory(cell)).map(|(_, v)| v);
                let pointed: Roots = pointing.chain(states).flat_map(|v| v.roots.iter().copied()).collect();
                for ((all, slot), val) in shared.iter_mut().zip(&slots).zip(&values) {
                    if slot.is_some() {
                        all.extend(val.roots.intersection(&pointed).copied());
                    }
                }
                s.collect(collectors, &slots, (at, n), values)?;
                s.advance(cells, &seen, next)
            })
        });
        let (mut body, ()) = body?;
        let stays = stays || adds == Some(true);
        if !stays {
            body = self.with_mark(body);
        }
        let done = match trip {
            Trip::Count(n) | Trip::Part { length: n, .. } => {
                let order = if stays || adds.is_some() { Order::Given } else { order };
                self.emit(Ins::For { i, from: Operand::i64(0), to: n, body, order });
                n
            }
            Trip::While(condition, test) => {
                let one = Operand::i64(1);
                let prim = Prim::Op(Op::Add, Scalar::I64);
                body.push(Ins::Prim { to: i, prim, args: vec![i.into(), one] });
                self.emit(Ins::While { condition, test, body });
                i.into()
            }
        };
        // The results are made once, outside of the iterations.
        self.owners.leave();
        let states = cells.iter().map(|c| self.finished(c, done, &boxed)).collect::<Res<Vec<_>>>()?;
        let arrays = collectors.iter().zip(shared).map(|(c, mut roots)| {
            if has_boxes(&c.elem) {
                roots.extend(boxed.iter().copied());
            }
            self.collected(c, done, roots)
        });
        let arrays = arrays.collect::<Res<Vec<_>>>()?;
        Ok((states, arrays, done))
    }
    /// Whether the array in this state variable keeps its shape.
    pub(super) fn is_fixed(&self, v: Var) -> bool {
        let dims = self.shapes.of(v);
        !dims.is_empty() && !dims.iter().enumerate().any(|(k, d)| *d == Dim::Size(v, k))
    }

    pub(super) fn looped(&mut self, pat: &[Var], l: &Loop) -> Res<Vec<Val>> {
        let users = free_vars_exp(&Exp::Loop(Loop {
            params: l.params.iter().map(|p| (p.0, Atom::i64(0))).collect(),
            ..l.clone()
        }));
        let is_counted = matches!(l.form, LoopForm::For { .. });
        let mut turns: IdMap<Var, Cell> = IdMap::new();
        for (c, (v, _)) in l.params.iter().enumerate() {
            if !is_counted || !self.is_fixed(*v) {
                continue;
            }
            let mut ring = double_buffering::ring(l, c);
            let is_same = |k: &usize| {
                let w = l.params[*k].0;
                self.ty(w) == self.ty(*v)
                    && self.shapes.of(w) == self.shapes.of(*v)
                    && !turns.contains_key(&w)
            };
            let alike = ring[1..].iter().take_while(|k| is_same(k)).count();
            ring.truncate(1 + alike);
            let Some(places) = self.places_for(l, &ring)? else { continue };
            for (ago, k) in ring.into_iter().enumerate() {
                let cell = Cell::Turns(places.clone(), ago, self.owners.fresh());
                turns.insert(l.params[k].0, cell);
            }
        }
        let mut cells = Vec::new();
        for (v, init) in &l.params {
            let ty = self.ty(*v).clone();
            if let Some(cell) = turns.remove(v) {
                cells.push(cell);
                continue;
            }
            let others = l.params.iter().filter(|p| p.0 != *v).filter_map(|p| p.1.var());
            let users = users.iter().copied().chain(others).collect();
            cells.push(self.cell(*init, &ty, self.is_fixed(*v), &users)?);
        }
        let states = l.params.len();
        let from = &l.body.result[states..];
        let counted = match &l.form {
            LoopForm::For { i, n } => Some((*i, *n)),
            LoopForm::While(_) => None,
        };
        let n = counted.map(|(_, n)| {
            let count = self.as_i64(n);
            match self.shapes.name(n) {
                Dim::Size(..) => count,
                _ => self.op(Op::Max, Scalar::I64, &[count, Operand::i64(0)]),
            }
        });
        let stacked = &pat[states..states + l.collect];
        let first = |s: &Self| Inside::iteration(l, |v| s.ty(v).rank() > 0);
        let collectors = self.collectors(n, stacked, from, first)?;
        self.owners.enter();
        let seen = cells.iter().map(|c| self.seen(c)).collect::<Res<Vec<_>>>()?;
        for ((v, _), val) in l.params.iter().zip(&seen) {
            self.bind_val(*v, val.clone());
        }
        let trip = match (&l.form, n) {
            (LoopForm::While(condition), _) => {
                let (block, results) = self.block(|s| {
                    cells.iter().for_each(|cell| s.note_state(cell));
                    l.params.iter().for_each(|(v, _)| s.note_bound(*v));
                    s.holding(roots(&seen), |s| s.results(condition))
                })?;
                match &results[..] {
                    [Val { rep: Rep::Scalar(test), .. }] => Trip::While(self.with_mark(block), *test),
                    _ => panic!("a condition that is no scalar"),
                }
            }
            (LoopForm::For { .. }, n) => Trip::Count(n.unwrap_or(Operand::i64(0))),
        };
        let mut iteration = |s: &mut Self, k: Operand, seen: Vec<Val>, slots: &Slots| {
            // (A condition has bound them already.)
            if counted.is_some() {
                l.params.iter().for_each(|(v, _)| s.note_bound(*v));
            }
            let mut places = Vec::new();
            for (n, cell) in cells.iter().enumerate() {
                let Cell::Turns(array, ago, _) = cell else { continue };
                if *ago > 0 {
                    let place = s.place_of(array, k, *ago);
                    s.bind(l.params[n].0, Rep::Array(place), seen[n].roots.clone());
                    continue;
                }
                let both = s.both_places(array, k);
                s.bind(l.params[n].0, Rep::Array(both.now.clone()), seen[n].roots.clone());
                s.want(&l.body, l.body.result[n], both.next.clone());
                places.push((n, both));
            }
            if let Some((i, n)) = counted {
                let counter = s.counter(k, i);
                s.bind(i, Rep::Scalar(counter), Roots::new());
                let bound = s.shapes.name(n);
                s.below.insert(i, bound);
            }
            s.want_collected(&l.body, &collectors, slots);
            let mut next = s.results(&l.body)?;
            let values = next.split_off(states);
            for (n, both) in &places {
                let val = next[*n].clone();
                next[*n] = s.put(both, val)?;
            }
            Ok((next, values))
        };
        // Iterations that hand nothing on are those of a map.
        let order = if states == 0 && is_counted { Order::Any(Vec::new()) } else { Order::Given };
        let (mut out, arrays, done) = self.iterate(trip, &cells, &collectors, seen, order, &mut iteration)?;
        out.extend(arrays);
        if counted.is_none() && l.collect > 0 {
            out.push(Val { rep: Rep::Scalar(done), roots: Roots::new() });
        }
        Ok(out)
    }
    pub(super) fn as_i64(&mut self, n: Atom) -> Operand {
        let x = self.scalar(n);
        match self.atom_type(n).scalar() {
            Some(Scalar::I64) | None => x,
            Some(s) => self.prim(Prim::Convert(s, Scalar::I64), vec![x], "n"),
        }
    }
    fn counter(&mut self, k: Operand, i: Var) -> Operand {
        match self.ty(i).scalar() {
            Some(Scalar::I64) | None => k,
            Some(s) => self.prim(Prim::Convert(Scalar::I64, s), vec![k], "i"),
        }
    }

    // --- array operations with functions ---

    pub(super) fn soac(&mut self, pat: &[Var], soac: &Soac) -> Res<Vec<Val>> {
        match soac {
            Soac::Map { width, lam, arrays } => {
                if let Some(values) = self.interchanged(pat, *width, lam, arrays)? {
                    return Ok(values);
                }
                if let Some(values) = self.in_parts(pat, *width, lam, arrays)? {
                    return Ok(values);
                }
                let n = self.width(*width, arrays);
                let users = pullback_core::traverse::free_vars_lam(lam);
                let collectors = self.collectors_over(n, pat, lam, (arrays, &users))?;
                self.owners.enter();
                let mut iteration = |s: &mut Self, i: Operand, _: Vec<Val>, slots: &Slots| {
                    s.bind_rows(&lam.params, arrays, i)?;
                    s.want_collected(&lam.body, &collectors, slots);
                    Ok((Vec::new(), s.results(&lam.body)?))
                };
                let (any, trip) = (Order::Any(Vec::new()), Trip::Count(n));
                let (_, out, _) = self.iterate(trip, &[], &collectors, Vec::new(), any, &mut iteration)?;
                Ok(out)
            }
            Soac::Reduce { width, lam, neutral, arrays, commutative } => {
                let (width, commutative) = (*width, *commutative);
                self.combine(
                    pat,
                    Combine { width, pre: None, lam, neutral, arrays, scan: false, commutative },
                )
            }
            Soac::Scan { width, lam, neutral, arrays } => {
                let (width, commutative) = (*width, false);
                self.combine(pat, Combine { width, pre: None, lam, neutral, arrays, scan: true, commutative })
            }
            Soac::Fused { form, width, pre, lam, neutral, arrays } => {
                let (scan, commutative) = match form {
                    FusedForm::Scan => (true, false),
                    FusedForm::Reduce { commutative } => (false, *commutative),
                };
                let (width, pre) = (*width, Some(pre));
                self.combine(pat, Combine { width, pre, lam, neutral, arrays, scan, commutative })
            }
            Soac::Hist { width, lam, neutral: _, dst, indices, values } => {
                self.hist(pat, (*width, lam), dst, *indices, values)
            }
            Soac::Scatter { width, dst, indices, values } => {
                Ok(vec![self.scatter(pat, *width, *dst, *indices, *values)?])
            }
        }
    }
    /// The width, checked against the arrays.
    pub(super) fn width(&mut self, width: Atom, arrays: &[Atom]) -> Operand {
        let n = self.size(width);
        for a in arrays {
            let size = self.form(*a).dims[0];
            if !self.has_sizes(*a, &[width]) && size != n {
                let differ = self.op(Op::Ne, Scalar::I64, &[n, size]);
                let text = Text::Plain("arrays of sizes {} and {} are combined".into());
                self.fail(differ, RuntimeErrorKind::ShapeMismatch, text, vec![n, size]);
            }
        }
        n
    }
    /// Stops the program if an array has not so many rows.
    fn check_rows(&mut self, what: &str, width: Atom, array: Atom) {
        if !self.has_sizes(array, &[width]) {
            let (n, rows) = (self.scalar(width), self.form(array).dims[0]);
            self.check_shapes(what, &[rows], &[n]);
        }
    }
    /// Binds parameters to the elements at `i`.
    pub(super) fn bind_rows(&mut self, params: &[Var], arrays: &[Atom], i: Operand) -> Res<()> {
        for (p, a) in params.iter().zip(arrays) {
            let array = self.array(*a);
            let ty = self.ty(*p).clone();
            let rep = self.element(&array, &[i], &ty)?;
            let roots = if let Type::Scalar(_) = ty { Roots::new() } else { self.owners.of(a.var()) };
            self.bind(*p, rep, roots);
            if let [Leaf::Count { start }] = array.leaves[..]
                && start.as_i64() == Some(0)
                && array.strides[0].as_i64() == Some(1)
                && let Some(n) = a.var().and_then(|v| self.shapes.of(v).first().copied())
            {
                self.below.insert(*p, n);
            }
        }
        Ok(())
    }
    fn hist(
        &mut self,
        pat: &[Var],
        (width, lam): (Atom, &Lam),
        dst: &[Atom],
        indices: Atom,
        values: &[Atom],
    ) -> Res<Vec<Val>> {
        let n = self.width(width, values);
        self.check_rows(BINS, width, indices);
        for d in &dst[1..] {
            let outer = |s: &Self, a: Atom| s.names(a).first().map(|d| s.called(*d));
            if outer(self, dst[0]) != outer(self, *d) {
                let (bins, others) = (self.form(dst[0]).dims[0], self.form(*d).dims[0]);
                self.check_shapes(BINS, &[bins], &[others]);
            }
        }
        let mut users: Vec<Atom> =
            pullback_core::traverse::free_vars_lam(lam).into_iter().map(Atom::Var).collect();
        users.extend(values.iter().copied().chain([indices]));
        let mut out = Vec::new();
        for (k, d) in dst.iter().enumerate() {
            let others: Vec<Atom> = dst
                .iter()
                .enumerate()
                .filter(|(j, _)| *j != k)
                .map(|(_, a)| *a)
                .chain(users.clone())
                .collect();
            let slot = pat.get(k..=k).unwrap_or(&[]);
            let (rep, mut roots) = self.writable(slot, *d, &others)?;
            if has_boxes(self.atom_type(*d).base()) {
                roots.extend(users.iter().flat_map(|a| self.owners.of(a.var())));
            }
            out.push(Val { rep: Rep::Array(rep), roots });
        }
        let targets: Vec<ArrayRep> = out.iter().filter_map(as_array).collect();
        // (Rows of another length are for the operator to refuse.)
        let sums = self.adds(lam) && self.rows_agree(dst[0], values[0]);
        self.owners.enter();
        let i = self.reg(Ty::I64, "i");
        let (body, ()) = self.block(|s| {
            let is = s.array(indices);
            let p = s.position(&is, &[i.into()]);
            let j = s.load_leaf(is.leaves[0], p);
            let outside = s.outside(j, targets[0].dims[0]);
            let inside = s.not(outside);
            let (then, ()) = s.block(|s| match (sums, &targets[..], values) {
                (true, [target], [from]) => {
                    let (to, from) = (s.part(target, &[j]), s.array(*from));
                    let ty = s.ty(lam.params[0]).clone();
                    let value = s.element(&from, &[i.into()], &ty)?;
                    s.add_to(&to, &value, &ty)
                }
                _ => s.bin(lam, (dst, &targets), j, values, i.into()),
            })?;
            s.emit(Ins::If { condition: inside, then, otherwise: Vec::new() });
            Ok(())
        })?;
        // What the bins point to stays.
        let keeps = lam.params.iter().any(|p| has_boxes(self.ty(*p)));
        let body = if keeps { body } else { self.with_mark(body) };
        let order = if sums { Order::Any(Vec::new()) } else { Order::Given };
        self.emit(Ins::For { i, from: Operand::i64(0), to: n, body, order });
        self.owners.leave();
        Ok(out.into_iter().map(|val| self.made(val)).collect())
    }
    /// Whether the operation is the addition of two floats, or of two arrays of floats element by element.
    fn adds(&self, lam: &Lam) -> bool {
        let ([left, right], [stm], [result]) = (&lam.params[..], &lam.body.stms[..], &lam.body.result[..])
        else {
            return false;
        };
        let given = [Atom::Var(*left), Atom::Var(*right)];
        let is_float = |v: Var| self.ty(v).base().scalar().is_some_and(Scalar::is_float);
        let adds = match &stm.exp {
            Exp::Prim(Prim::Op(Op::Add, s), args) => s.is_float() && args[..] == given,
            Exp::Plus(a, b) => [*a, *b] == given && is_float(*left),
            Exp::Soac(Soac::Map { lam, arrays, .. }) => arrays[..] == given && self.adds(lam),
            _ => false,
        };
        adds && stm.pat.len() == 1 && *result == Atom::Var(stm.pat[0])
    }
    /// One bin takes one value in.
    fn bin(
        &mut self,
        lam: &Lam,
        (dst, targets): (&[Atom], &[ArrayRep]),
        j: Operand,
        values: &[Atom],
        i: Operand,
    ) -> Res<()> {
        let m = targets.len();
        let mut state = Roots::new();
        for (p, target) in lam.params.iter().zip(targets) {
            self.note_made_array(target);
            let ty = self.ty(*p).clone();
            let rep = self.element(target, &[j], &ty)?;
            let roots = if let Type::Scalar(_) = ty { Roots::new() } else { self.owners.foreign() };
            state.extend(roots.iter().copied());
            self.bind(*p, rep, roots);
        }
        self.bind_rows(&lam.params[m..], values, i)?;
        let mut next = self.results(&lam.body)?;
        let types: Vec<Type> = lam.params[..m].iter().map(|p| self.ty(*p).clone()).collect();
        for (val, ty) in next.iter_mut().zip(&types) {
            if let Rep::Array(a) = &val.rep
                && !val.roots.is_disjoint(&state)
            {
                val.rep = Rep::Array(self.copied(&a.clone(), ty.base())?);
            }
        }
        for (k, ((target, val), ty)) in targets.iter().zip(next).zip(&types).enumerate() {
            if let Rep::Array(row) = &val.rep
                && !self.is_part(lam.body.result[k], (dst[k], 1))
            {
                self.check_shapes(BINS, &target.dims[1..], &row.dims);
            }
            self.store(target, &[j], &val.rep, ty)?;
        }
        Ok(())
    }
    fn scatter(&mut self, pat: &[Var], width: Atom, dst: Atom, indices: Atom, values: Atom) -> Res<Val> {
        let n = self.size(width);
        let (is, from, over) = (self.form(indices), self.form(values), self.form(dst));
        let mut differ = Operand::bool(false);
        for (array, rows) in [(indices, is.dims[0]), (values, from.dims[0])] {
            if !self.has_sizes(array, &[width]) && rows != n {
                let here = self.op(Op::Ne, Scalar::I64, &[rows, n]);
                differ = self.either(differ, here);
            }
        }
        let sizes = vec![is.dims[0], from.dims[0]];
        self.fail(
            differ,
            RuntimeErrorKind::ShapeMismatch,
            Text::Shapes(Shaped::Scattered.words().into(), 1),
            sizes,
        );
        if !self.rows_agree(dst, values) {
            let zero = Operand::i64(0);
            let some = self.op(Op::Lt, Scalar::I64, &[zero, n]);
            let there = self.op(Op::Lt, Scalar::I64, &[zero, over.dims[0]]);
            let written = self.both(some, there);
            self.check_shapes_if(written, Shaped::Scattered.words(), (&over.dims[1..], &from.dims[1..]));
        }
        let (to, mut roots) = self.writable(pat, dst, &[indices, values])?;
        let ty = self.atom_type(dst);
        let row = ty.peel(1).cloned().unwrap_or(ty.clone());
        if has_boxes(&row) {
            roots.extend(self.owners.of(values.var()));
        }
        self.count(n, Order::Given, |s, i| {
            let is = s.array(indices);
            let p = s.position(&is, &[i]);
            let j = s.load_leaf(is.leaves[0], p);
            let outside = s.outside(j, to.dims[0]);
            let inside = s.not(outside);
            let (then, ()) = s.block(|s| {
                let from = s.array(values);
                let value = s.element(&from, &[i], &row)?;
                s.store(&to, &[j], &value, &row)
            })?;
            s.emit(Ins::If { condition: inside, then, otherwise: Vec::new() });
            Ok(())
        })?;
        Ok(self.made(Val { rep: Rep::Array(to), roots }))
    }
    /// The block, giving back at its end what it allocates.
    pub(super) fn with_mark(&mut self, block: Block) -> Block {
        with_mark(block, &mut self.regs)
    }
}

/// The block, giving back at its end what it allocates.
pub(crate) fn with_mark(mut block: Block, regs: &mut IndexVec<Reg, RegInfo>) -> Block {
    if allocates(&block) {
        let mark = regs.push(RegInfo::new(Ty::Pointer, "mark"));
        block.insert(0, Ins::Mark { to: mark });
        block.push(Ins::Release { mark: mark.into() });
    }
    block
}

fn as_array(val: &Val) -> Option<ArrayRep> {
    match &val.rep {
        Rep::Array(a) => Some(a.clone()),
        _ => None,
    }
}

/// Whether the block itself takes memory that it does not give back.
pub(super) fn allocates(block: &Block) -> bool {
    let marked = matches!(block.first(), Some(Ins::Mark { .. }));
    let takes = |ins: &Ins| {
        matches!(ins, Ins::Alloc { .. } | Ins::Call { .. }) || ins.blocks().into_iter().any(allocates)
    };
    !marked && block.iter().any(takes)
}

/// Whether there is a loop in any order whose iterations take memory that they do not give back: threads, which run its parts, would.
pub(super) fn leaves_memory_in_any_order(block: &Block) -> bool {
    let here = |ins: &Ins| matches!(ins, Ins::For { body, order: Order::Any(_), .. } if allocates(body));
    block.iter().any(|ins| here(ins) || ins.blocks().into_iter().any(leaves_memory_in_any_order))
}
