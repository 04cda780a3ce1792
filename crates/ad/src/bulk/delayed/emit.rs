//! Expressions of elements as core: a nest of maps for the counters of an array, sums as reductions inside of it.
//!
//! A map goes over the arrays that are read at its counter, so that core sees rows and elements, not indices. Arrays whose dimensions are read in another order than the nest has are turned before it.
//!
//! Guarantees: an expression that occurs more than once is evaluated once in a scope; an alternative of a condition only where it is chosen.

use super::moves::inside;
use super::{Axis, Delayed, Element, Form, Stored};
use crate::bulk::a_core::Ty;
use crate::bulk::sizes::Size;
use crate::bulk::to_core::{ToCore, core_type};
use pullback_core::{Atom, Exp, Lam, Soac, Type, Var};
use pullback_prim::{Op, Prim, Scalar};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// What a body makes of expressions.
type Finish<'f, S> = &'f mut dyn FnMut(&mut S, &[Element]) -> Atom;

impl ToCore<'_, '_> {
    /// The array in memory, with all sizes that its type says.
    pub(in crate::bulk) fn in_memory(&mut self, t: &Delayed) -> Stored {
        if let Some(stored) = t.as_stored() {
            return stored;
        }
        if let Some((stored, order)) = t.as_turned() {
            let whole = self.in_shape(&stored);
            let atom = self.b.emit(Exp::Rearrange(order, whole), "turned");
            return Stored { atom, ty: t.ty.clone() };
        }
        let free = t.element.free();
        let copies = t.axes.iter().take_while(|a| !free.contains(a)).count();
        let (outer, inner) = t.ty.shape.split_at(copies);
        if copies > 0 {
            // [bulk_delayed.emit_copies]  counters that nothing depends on: replicate
            let row = Delayed {
                axes: t.axes[copies..].to_vec(),
                element: t.element.clone(),
                ty: Ty::new(inner.to_vec(), t.ty.scalar),
            };
            let row = self.in_memory(&row).atom;
            let extents = self.extents(outer);
            let atom = self.b.emit(Exp::Replicate(extents, row), "copies");
            return Stored { atom, ty: t.ty.clone() };
        }
        let t = &Delayed { element: self.hoisted(&t.axes, &t.element), ..t.clone() };
        let atom = match self.sparse(t) {
            Some(atom) => atom,
            None => {
                let of = self.turned(&t.axes, std::slice::from_ref(&t.element));
                self.nest(&t.axes, &of, &mut |this, es| this.scalar(&es[0]))
            }
        };
        let stored = Stored { atom, ty: t.ty.clone() };
        if self.is_reverse && t.axes.len() > 1 && t.element.has_sum() {
            // A contraction stays a nest of its own.
            return Stored { atom: self.in_shape(&stored), ..stored };
        }
        stored
    }

    /// The expression, with sums in memory that do not depend on all loops around them. It has no counters but theirs.
    // [bulk_delayed.hoisted]  a sum that does not depend on a counter around it: an array in memory, read at its counters
    fn hoisted(&mut self, around: &[Axis], e: &Element) -> Element {
        match e.form() {
            Form::Sum(..) | Form::Arg(..) if around.iter().any(|a| !e.free().contains(a)) => {
                let axes: Vec<Axis> = around.iter().filter(|a| e.free().contains(*a)).copied().collect();
                let shape = axes.iter().filter_map(|a| self.axes.size(*a).cloned()).collect();
                let t = Delayed { ty: Ty::new(shape, e.scalar()), axes: axes.clone(), element: e.clone() };
                self.stored(&t).at_counters(&axes)
            }
            Form::Sum(a, ..) | Form::Arg(_, a, ..) => {
                let around = [around, &[*a]].concat();
                e.with_parts(&mut |e| self.hoisted(&around, e))
            }
            // Only its condition shows that there is something to read.
            Form::Inside(..) => e.clone(),
            _ if e.is_view() => e.clone(),
            _ => e.with_parts(&mut |e| self.hoisted(around, e)),
        }
    }
    /// In memory, as an array.
    pub(in crate::bulk) fn stored(&mut self, t: &Delayed) -> Delayed {
        let stored = self.in_memory(t);
        if t.axes.is_empty() {
            return Delayed::scalar(Element::atom(stored.atom, t.ty.scalar));
        }
        Delayed::stored(&mut self.axes, &stored)
    }

    /// Expressions in which arrays are read in the order of the nest, where all of their places are counters.
    fn turned(&mut self, axes: &[Axis], es: &[Element]) -> Vec<Element> {
        let mut depth: BTreeMap<Axis, usize> =
            axes.iter().copied().enumerate().map(|(d, a)| (a, d)).collect();
        let (mut seen, mut reads) = (BTreeSet::new(), Vec::new());
        for e in es {
            e.walk(&mut seen, &mut |e| match e.form() {
                Form::Sum(a, ..) | Form::Arg(_, a, ..) => {
                    let next = depth.len();
                    depth.entry(*a).or_insert(next);
                }
                Form::Read(..) => reads.push(e.clone()),
                _ => {}
            });
        }
        let mut turned: BTreeMap<usize, Element> = BTreeMap::new();
        let mut made: Vec<(Atom, Vec<usize>, Atom)> = Vec::new();
        for e in reads {
            let Form::Read(atom, shape, ix) = e.form() else { continue };
            let Some(order) = self.order(shape, ix, &depth) else { continue };
            let known = made.iter().find(|(a, o, _)| a == atom && *o == order).map(|(_, _, t)| *t);
            let new = known.unwrap_or_else(|| {
                let stored = Stored { atom: *atom, ty: Ty::new(shape.to_vec(), e.scalar()) };
                let whole = self.in_shape(&stored);
                let new = self.b.emit(Exp::Rearrange(order.clone(), whole), "turned");
                made.push((*atom, order.clone(), new));
                new
            });
            let shape: Rc<[Size]> = order.iter().map(|d| shape[*d].clone()).collect();
            let ix = order.iter().map(|d| ix[*d].clone()).collect();
            turned.insert(e.id(), Element::read(new, &shape, e.scalar(), ix));
        }
        if turned.is_empty() {
            return es.to_vec();
        }
        let mut known = BTreeMap::new();
        let mut other = |e: &Element| turned.get(&e.id()).cloned();
        es.iter().map(|e| e.rebuilt(&mut known, &|_| true, &mut other)).collect()
    }

    /// In which order the dimensions are read by the loops of a nest; `None`: in that of the array, or not by a loop for each.
    fn order(&self, shape: &[Size], ix: &[Element], depth: &BTreeMap<Axis, usize>) -> Option<Vec<usize>> {
        let mut places = Vec::new();
        for (d, (e, k)) in ix.iter().zip(shape).enumerate() {
            let Form::Counter(a) = e.form() else { return None };
            if self.axes.size(*a) != Some(k) || places.iter().any(|(other, _)| Some(other) == depth.get(a)) {
                return None;
            }
            places.push((*depth.get(a)?, d));
        }
        let is_in_order = places.is_sorted();
        places.sort_unstable();
        (!is_in_order).then(|| places.into_iter().map(|(_, d)| d).collect())
    }

    /// A nest of maps, one for each counter, around what is made of these expressions.
    pub(in crate::bulk) fn nest(&mut self, axes: &[Axis], es: &[Element], finish: Finish<'_, Self>) -> Atom {
        let Some((a, rest)) = axes.split_first() else { return finish(self, es) };
        let size = self.axes.size(*a).cloned().unwrap_or_else(|| unreachable!("a counter has a size"));
        let width = self.extent(&size);
        self.mapped(*a, &size, width, es, &mut |this, es| this.nest(rest, es, finish))
    }

    /// `map` over the rows and elements that are read at this counter, and over the counter itself if something else depends on it.
    fn mapped(&mut self, a: Axis, size: &Size, width: Atom, es: &[Element], body: Finish<'_, Self>) -> Atom {
        let rows = rows_at(a, size, es);
        let mut params = Vec::new();
        for array in &rows {
            let ty = self.b.elem(*array);
            params.push(self.b.fresh(ty, "x"));
        }
        let at = Rows { a, size, rows: rows.iter().copied().zip(params.iter().copied()).collect() };
        let mut known = BTreeMap::new();
        let es: Vec<Element> = es.iter().map(|e| at.of(e, &mut known)).collect();
        let mut arrays = rows;
        if arrays.is_empty() || es.iter().any(|e| e.free().contains(&a)) {
            arrays.push(self.b.emit(Exp::Iota(width), "is"));
            let i = self.b.fresh(Type::Scalar(Scalar::I64), "i");
            params.push(i);
            self.counters.insert(a, i.into());
        }
        self.open();
        let result = body(self, &es);
        let body = self.close(vec![result]);
        self.b.emit(Exp::Soac(Soac::Map { width, lam: Lam { params, body }, arrays }), "ys")
    }

    pub(in crate::bulk) fn open(&mut self) {
        self.b.open();
        self.made.push(BTreeMap::new());
    }
    pub(in crate::bulk) fn close(&mut self, result: Vec<Atom>) -> pullback_core::Body {
        self.made.pop();
        self.b.close(result)
    }

    /// The value of an expression here.
    pub(in crate::bulk) fn scalar(&mut self, e: &Element) -> Atom {
        if let Some((_, atom)) = self.made.iter().rev().find_map(|made| made.get(&e.id())) {
            return *atom;
        }
        let atom = match e.form() {
            Form::Const(c) => Atom::Const(*c),
            Form::Atom(a) => *a,
            Form::Size(n) => self.extent(n),
            Form::Counter(a) => match self.counters.get(a) {
                Some(i) => *i,
                None => unreachable!("a counter is used inside of its loop"),
            },
            Form::Read(array, _, ix) => {
                let ix: Vec<Atom> = ix.iter().map(|e| self.scalar(e)).collect();
                self.b.index(*array, &ix)
            }
            Form::Op(op, es) => {
                let args: Vec<Atom> = es.iter().map(|e| self.scalar(e)).collect();
                self.total(*op, &args)
            }
            Form::If(c, u, v) => self.branch(c, u, v),
            Form::Inside(c, u) => self.branch(c, u, &Element::constant(u.scalar().zero())),
            Form::Sum(a, k, e) => {
                let (width, column) = self.column(*a, k, e);
                self.b.sum(width, column)
            }
            Form::Arg(which, a, k, e) => {
                let (width, column) = self.column(*a, k, e);
                self.first_extremum(*which, width, column)
            }
        };
        if let (Some(made), Atom::Var(_)) = (self.made.last_mut(), atom) {
            made.insert(e.id(), (e.clone(), atom));
        }
        atom
    }

    fn branch(&mut self, c: &Element, u: &Element, v: &Element) -> Atom {
        let c = self.scalar(c);
        self.open();
        let u = self.scalar(u);
        let then = self.close(vec![u]);
        self.open();
        let v = self.scalar(v);
        let other = self.close(vec![v]);
        self.b.emit(Exp::If(c, then, other), "r")
    }

    /// The elements for all values of a counter.
    fn column(&mut self, a: Axis, k: &Size, e: &Element) -> (Atom, Atom) {
        let width = self.extent(k);
        if let Form::Read(array, shape, ix) = e.form()
            && is_row(a, k, shape, ix)
            && ix.len() == 1
        {
            return (width, *array);
        }
        let es = self.turned(&[a], std::slice::from_ref(e));
        (width, self.mapped(a, k, width, &es, &mut |this, es| this.scalar(&es[0])))
    }

    // [bulk_delayed.sparse]  \ks. sum i < n. if k = t then e else 0: e is added at t
    fn sparse(&mut self, t: &Delayed) -> Option<Atom> {
        let Form::Sum(a, _, e) = t.element.form() else { return None };
        if !self.is_reverse {
            return None;
        }
        let (condition, value) = e.as_guarded()?;
        let (places, others) = places(&t.axes, condition);
        if places.is_empty() {
            return None;
        }
        let holds = Element::constant(pullback_prim::ScalarValue::Bool(true));
        let both = |all: Element, c: &Element| Element::op2(Op::And, Scalar::Bool, &all, c);
        let condition = others.iter().fold(holds, both);
        let value = self.at_places(&places, &Element::inside(&condition, value.clone()));
        let kept: Vec<Axis> = t.axes.iter().copied().filter(|k| !places.contains_key(k)).collect();
        let ix: Vec<Element> =
            t.axes.iter().map(|k| places.get(k).cloned().unwrap_or_else(|| Element::counter(*k))).collect();
        Some(self.sent(&[vec![*a], kept].concat(), &t.ty, ix, value))
    }

    /// The expression at these places; zero where they are outside of what the counters count.
    pub(in crate::bulk) fn at_places(&self, places: &BTreeMap<Axis, Element>, e: &Element) -> Element {
        let at: Vec<Element> = places.values().cloned().collect();
        let sizes: Vec<Size> = places.keys().filter_map(|k| self.axes.size(*k).cloned()).collect();
        Element::inside(&inside(&self.axes, &at, &sizes), e.put(places))
    }

    /// An accumulator to which a value is added at a place, for all values of these counters.
    pub(in crate::bulk) fn sent(&mut self, axes: &[Axis], ty: &Ty, ix: Vec<Element>, value: Element) -> Atom {
        let zeros = self.full(ty.scalar.zero(), &ty.shape);
        let acc = self.b.fresh(Type::acc(core_type(ty)), "acc");
        let all: Vec<Element> = std::iter::once(value).chain(ix).collect();
        let all = self.turned(axes, &all);
        self.open();
        self.nest(axes, &all, &mut |this, es| {
            let ix: Vec<Atom> = es[1..].iter().map(|e| this.scalar(e)).collect();
            let value = this.scalar(&es[0]);
            this.b.emit(Exp::AccAdd(acc.into(), ix, value), "done")
        });
        let body = self.close(Vec::new());
        self.b.emit(Exp::WithAcc(vec![zeros], Lam { params: vec![acc], body }), "sent")
    }
}

/// What a condition says that some of these counters are, and its other parts.
pub(in crate::bulk) fn places(axes: &[Axis], condition: &Element) -> (BTreeMap<Axis, Element>, Vec<Element>) {
    let (mut places, mut others) = (BTreeMap::<Axis, Element>::new(), Vec::new());
    let mut conditions = vec![condition.clone()];
    while let Some(c) = conditions.pop() {
        match c.form() {
            Form::Op(Prim::Op(Op::And, _), es) => conditions.extend(es.iter().cloned()),
            Form::Op(Prim::Op(Op::Eq, Scalar::I64), es) => match (es[0].form(), &es[1]) {
                (Form::Counter(k), place)
                    if axes.contains(k)
                        && !places.contains_key(k)
                        && !place.free().contains(k)
                        && !places.keys().any(|other| place.free().contains(other))
                        && !places.values().any(|other| other.free().contains(k)) =>
                {
                    places.insert(*k, place.clone());
                }
                _ => others.push(c),
            },
            _ => others.push(c),
        }
    }
    (places, others)
}

/// The rows of arrays at a counter, by their names in the body of a loop.
struct Rows<'a> {
    a: Axis,
    size: &'a Size,
    rows: Vec<(Atom, Var)>,
}

impl Rows<'_> {
    /// The expression in the body.
    fn of(&self, e: &Element, known: &mut BTreeMap<usize, Element>) -> Element {
        if !e.free().contains(&self.a) {
            return e.clone();
        }
        if let Some(e) = known.get(&e.id()) {
            return e.clone();
        }
        let row =
            |array: &Atom| self.rows.iter().find(|(atom, _)| atom == array).map(|(_, x)| Atom::from(*x));
        let made = match e.form() {
            Form::Read(array, shape, ix) if is_row(self.a, self.size, shape, ix) => {
                let ix = ix[1..].iter().map(|e| self.of(e, known)).collect();
                let row = row(array).unwrap_or_else(|| unreachable!("all rows are there"));
                Element::read(row, &shape[1..].into(), e.scalar(), ix)
            }
            _ => e.with_parts(&mut |e| self.of(e, known)),
        };
        known.insert(e.id(), made.clone());
        made
    }
}

/// Whether an array is read at this counter first, and the counter goes through all of it.
fn is_row(a: Axis, size: &Size, shape: &[Size], ix: &[Element]) -> bool {
    matches!(ix[0].form(), Form::Counter(b) if *b == a) && shape[0] == *size
}

/// The arrays whose rows are read at this counter.
fn rows_at(a: Axis, size: &Size, es: &[Element]) -> Vec<Atom> {
    let (mut seen, mut rows) = (BTreeSet::new(), Vec::new());
    for e in es {
        e.walk(&mut seen, &mut |e| {
            if let Form::Read(atom, shape, ix) = e.form()
                && is_row(a, size, shape, ix)
                && !rows.contains(atom)
            {
                rows.push(*atom);
            }
        });
    }
    rows
}
