//! Writing a sum as a nest: maps over the dimensions that stay, reductions over those that are summed.
//!
//! Arrays whose elements are read at dimensions only are passed as inputs of the maps, transposed to the order of the
//! nest; what can fail is evaluated at the innermost point, under the conditions it had. Factors that do not depend on
//! a summed dimension leave its sum (rule: a linear function of a sum), and so do conditions without which all terms are
//! zero. Assumes nodes without [`Node::Local`].

use super::delayed::{Delayed, Dim, Id, Node};
use super::index::polynomial;
use pullback_base::index::IdMap;
use pullback_core::{Atom, Body, Builder, Exp, Program, Var, inverse};
use pullback_prim::{Op, Prim, Scalar};
use std::collections::{BTreeMap, BTreeSet};

/// Shapes of arrays that were handed out.
pub(super) type Shapes = IdMap<Var, Vec<Id>>;
/// Values emitted so far in the open scopes.
pub(super) type Known = BTreeMap<Id, Atom>;

/// An array on its way into the nest: the next of its dimensions is an input of the map over `axes[0]`.
#[derive(Clone)]
struct Stream {
    node: Id,
    array: Atom,
    axes: Vec<Dim>,
}

/// The nest to write.
pub(super) struct Nest<'v, 'p> {
    pub(super) values: &'v mut Delayed<'p>,
    /// From the outside to the inside: first those that stay, then those that are summed.
    pub(super) loops: Vec<Dim>,
    /// How many stay.
    pub(super) kept: usize,
    /// Shapes of arrays that were handed out (they are regular, but an empty one may not know its inner sizes).
    pub(super) shapes: &'v Shapes,
    /// What has been emitted in front of the nest.
    pub(super) given: Known,
}

impl Nest<'_, '_> {
    /// Emits the nest for this element; the result is an array of the kept dimensions, or a scalar.
    pub(super) fn emit(&mut self, b: &mut Builder<'_>, element: Id) -> Option<Atom> {
        let mut known = self.given.clone();
        let mut streams = Vec::new();
        for d in self.loops.clone() {
            let width = self.values.widths[d];
            self.scalar(b, width, &mut known)?;
        }
        for id in self.reachable(element) {
            if let Some(stream) = self.stream(b, id, &mut known)? {
                streams.push(stream);
            }
        }
        if let [stream] = &streams[..]
            && stream.node == element
            && stream.axes == self.loops
            && self.kept == self.loops.len()
        {
            return Some(stream.array);
        }
        self.level(b, 0, element, streams, &known)
    }

    fn reachable(&self, from: Id) -> Vec<Id> {
        let mut seen = BTreeSet::new();
        let mut work = vec![from];
        while let Some(id) = work.pop() {
            if seen.insert(id) {
                match self.values.node(id) {
                    Node::Prim(_, ids) | Node::Read(_, ids) | Node::Local(_, ids) => work.extend(ids),
                    Node::If(a, b, c) => work.extend([*a, *b, *c]),
                    Node::Const(_) | Node::Var(_) | Node::Dim(_) | Node::Size(..) => {}
                }
            }
        }
        seen.into_iter().collect()
    }

    /// The read as an input of maps, if all its indices are different dimensions (or run backwards through one, or through
    /// several that were one) and the sizes are known to fit.
    #[allow(clippy::type_complexity, reason = "an option inside a result that may fail")]
    fn stream(&mut self, b: &mut Builder<'_>, id: Id, known: &mut Known) -> Option<Option<Stream>> {
        let Node::Read(base, ids) = self.values.node(id).clone() else { return Some(None) };
        let mut axes: Vec<(usize, Dim, bool)> = Vec::new();
        let mut exact = true;
        for (axis, i) in ids.iter().enumerate() {
            let Some((dims, width, backwards)) = self.run(*i) else { return Some(None) };
            for d in &dims {
                let Some(level) = self.loops.iter().position(|l| l == d) else { return Some(None) };
                if axes.iter().any(|(l, ..)| *l == level) {
                    return Some(None);
                }
                axes.push((level, *d, backwards));
            }
            let (size, certain) = match self.shapes.get(&base) {
                Some(shape) => (shape[axis], ids.len() == 1),
                None => (self.values.size(base.into(), super::delayed::OUTSIDE, axis)?, true),
            };
            if !self.values.agree(size, width) {
                return Some(None);
            }
            exact &= certain && dims.len() == 1 && self.values.same(size, width);
        }
        let mut array = Atom::Var(base);
        if !exact {
            let mut shape = Vec::new();
            for (_, d, _) in &axes {
                shape.push(self.scalar(b, self.values.widths[*d], known)?);
            }
            array = b.emit(Exp::Reshape { shape, from: ids.len(), array }, "xs");
        }
        for (axis, (.., backwards)) in axes.iter().enumerate() {
            if *backwards {
                let front = to_front(axis, axes.len());
                array = rearrange(b, &front, array);
                array = b.emit(Exp::Reverse(array), "xs");
                array = rearrange(b, &inverse(&front), array);
            }
        }
        let mut perm: Vec<usize> = (0..axes.len()).collect();
        perm.sort_by_key(|a| axes[*a].0);
        array = rearrange(b, &perm, array);
        let axes = perm.iter().map(|a| axes[*a].1).collect();
        Some(Some(Stream { node: id, array, axes }))
    }

    /// Dimensions from their first position to their last, their extent; or one from the last to the first.
    fn run(&mut self, index: Id) -> Option<(Vec<Dim>, Id, bool)> {
        if let Some((dims, width)) = self.values.run_through(index) {
            return Some((dims, width, false));
        }
        let mut dims = self.values.dims(index).iter();
        let (d, None) = (*dims.next()?, dims.next()) else { return None };
        let width = *self.values.widths.get(d)?;
        let place = self.values.dim(d);
        let one = self.values.int(1);
        let last = polynomial(self.values, width).plus(&polynomial(self.values, one), -1);
        let there = last.plus(&polynomial(self.values, place), -1);
        (polynomial(self.values, index) == there).then(|| (vec![d], width, true))
    }

    fn level(
        &mut self,
        b: &mut Builder<'_>,
        k: usize,
        element: Id,
        streams: Vec<Stream>,
        known: &Known,
    ) -> Option<Atom> {
        let Some(&d) = self.loops.get(k) else {
            let mut known = known.clone();
            return self.scalar(b, element, &mut known);
        };
        let sum = k >= self.kept;
        let mut known = known.clone();
        if sum && let Some(guarded) = self.condition(k, element) {
            return self.sum_under(b, k, guarded, streams, &known);
        }
        let outer = if sum { self.take_factors(k, element) } else { (element, Vec::new()) };
        let (element, factors) = outer;
        let scalar = self.scalar_type(b.program, element)?;
        let needed = self.reachable(element);
        let streams: Vec<Stream> = streams.into_iter().filter(|s| needed.contains(&s.node)).collect();
        let (now, later): (Vec<Stream>, Vec<Stream>) =
            streams.into_iter().partition(|s| s.axes.first() == Some(&d));
        let width = self.scalar(b, self.values.widths[d], &mut known)?;
        let mut arrays: Vec<Atom> = now.iter().map(|s| s.array).collect();
        let place = self.values.dim(d);
        let counts = self.reads_place(element, place);
        if counts {
            arrays.push(b.emit(Exp::Iota(width), "is"));
        }
        let direct = sum && k + 1 == self.loops.len() && now.first().is_some_and(|s| s.node == element);
        let column: Atom = if direct {
            now[0].array
        } else {
            let mut done = Some(());
            let ys = b.map(width, &arrays, |b, ps| {
                let mut inner = known.clone();
                let mut streams = later.clone();
                for (s, p) in now.iter().zip(ps) {
                    match s.axes.len() {
                        1 => {
                            inner.insert(s.node, (*p).into());
                        }
                        _ => streams.push(Stream {
                            node: s.node,
                            array: (*p).into(),
                            axes: s.axes[1..].to_vec(),
                        }),
                    }
                }
                if counts && let Some(p) = ps.last() {
                    inner.insert(place, (*p).into());
                }
                match self.level(b, k + 1, element, streams, &inner) {
                    Some(a) => vec![a],
                    None => {
                        done = None;
                        vec![Atom::Const(scalar.zero())]
                    }
                }
            });
            done?;
            ys[0].into()
        };
        if !sum {
            return Some(column);
        }
        let mut total = b.sum(width, column);
        for (op, factor) in factors {
            let factor = match factor {
                Some(id) => self.scalar(b, id, &mut known)?,
                None => total,
            };
            total = match op {
                Op::Neg => b.op1(Op::Neg, total),
                op => b.op2(op, total, factor),
            };
        }
        Some(total)
    }

    /// A condition that is the same for all that is summed from level `k` on: whether it has to hold, and the terms then.
    fn condition(&mut self, k: usize, element: Id) -> Option<(Id, bool, Id)> {
        let summed: BTreeSet<Dim> = self.loops[k..].iter().copied().collect();
        self.values.guarded(element).filter(|(c, ..)| self.is_fixed(*c, &summed))
    }
    /// A sum under a condition: a sum of zeros is zero.
    fn sum_under(
        &mut self,
        b: &mut Builder<'_>,
        k: usize,
        (condition, holds, element): (Id, bool, Id),
        streams: Vec<Stream>,
        known: &Known,
    ) -> Option<Atom> {
        let mut known = known.clone();
        let zero = Atom::Const(self.scalar_type(b.program, element)?.zero());
        let condition = self.scalar(b, condition, &mut known)?;
        b.open();
        let total = self.level(b, k, element, streams, &known);
        let sum = b.close(vec![total?]);
        let none = Body { stms: Vec::new(), result: vec![zero] };
        let (then, otherwise) = if holds { (sum, none) } else { (none, sum) };
        Some(b.emit(Exp::If(condition, then, otherwise), "sum"))
    }

    fn scalar_type(&self, program: &Program, id: Id) -> Option<Scalar> {
        Some(match self.values.node(id) {
            Node::Const(c) => c.scalar(),
            Node::Dim(_) | Node::Size(..) => Scalar::I64,
            Node::Prim(p, _) => p.result(),
            Node::Var(v) | Node::Read(v, _) | Node::Local(v, _) => {
                program.vars.get(*v)?.ty.base().scalar()?
            }
            Node::If(_, a, _) => return self.scalar_type(program, *a),
        })
    }

    /// Whether the position itself is needed, not only elements passed as inputs.
    fn reads_place(&mut self, element: Id, place: Id) -> bool {
        let mut seen = BTreeSet::new();
        let mut work = vec![element];
        while let Some(id) = work.pop() {
            if id == place {
                return true;
            }
            if !seen.insert(id) {
                continue;
            }
            match self.values.node(id).clone() {
                Node::Read(_, ids) if !self.is_stream(id) => work.extend(ids),
                Node::Prim(_, ids) => work.extend(ids),
                Node::If(a, b, c) => work.extend([a, b, c]),
                _ => {}
            }
        }
        false
    }
    /// As [`Nest::stream`], without emitting anything.
    fn is_stream(&mut self, id: Id) -> bool {
        let Node::Read(base, ids) = self.values.node(id).clone() else { return false };
        let mut seen = BTreeSet::new();
        ids.iter().enumerate().all(|(axis, i)| {
            let Some((dims, width, _)) = self.run(*i) else { return false };
            let size = match self.shapes.get(&base) {
                Some(shape) => Some(shape[axis]),
                None => self.values.size(base.into(), super::delayed::OUTSIDE, axis),
            };
            let apart = dims.iter().all(|d| self.loops.contains(d) && seen.insert(*d));
            apart && size.is_some_and(|s| self.values.agree(s, width))
        })
    }

    /// Splits a product into the part that depends on the dimensions from `k` on, and what can be applied to its sum.
    fn take_factors(&mut self, k: usize, element: Id) -> (Id, Vec<(Op, Option<Id>)>) {
        let summed: BTreeSet<Dim> = self.loops[k..].iter().copied().collect();
        let mut outer = Vec::new();
        let inner = self.without_factors(element, &summed, &mut outer);
        (inner, outer)
    }
    /// Whether this can be evaluated outside the sum over these dimensions: the sum may be empty, so that it must not stop
    /// the program.
    fn is_fixed(&mut self, id: Id, summed: &BTreeSet<Dim>) -> bool {
        let runs =
            |d: &Dim| matches!(self.values.node(self.values.widths[*d]), Node::Const(n) if n.as_i64() > 0);
        self.values.dims(id).is_disjoint(summed) && (summed.iter().all(runs) || self.is_total(id))
    }
    /// Whether evaluating the element cannot stop the program: all that it reads are inputs of maps.
    pub(super) fn is_total(&mut self, id: Id) -> bool {
        if self.values.is_safe(id) || self.is_stream(id) {
            return true;
        }
        match self.values.node(id).clone() {
            Node::Prim(prim, ids) => !prim.may_stop() && ids.iter().all(|i| self.is_total(*i)),
            Node::If(a, b, c) => [a, b, c].iter().all(|i| self.is_total(*i)),
            _ => false,
        }
    }
    fn without_factors(
        &mut self,
        element: Id,
        summed: &BTreeSet<Dim>,
        outer: &mut Vec<(Op, Option<Id>)>,
    ) -> Id {
        let Node::Prim(Prim::Op(op, s), args) = self.values.node(element).clone() else { return element };
        if !s.is_float() {
            return element;
        }
        match (op, &args[..]) {
            (Op::Neg, [x]) if !self.is_fixed(*x, summed) => {
                let inner = self.without_factors(*x, summed, outer);
                outer.push((Op::Neg, None));
                inner
            }
            (Op::Mul, [x, y]) => match (self.is_fixed(*x, summed), self.is_fixed(*y, summed)) {
                (true, false) => {
                    let inner = self.without_factors(*y, summed, outer);
                    outer.push((Op::Mul, Some(*x)));
                    inner
                }
                (false, true) => {
                    let inner = self.without_factors(*x, summed, outer);
                    outer.push((Op::Mul, Some(*y)));
                    inner
                }
                (false, false) => {
                    let a = self.without_factors(*x, summed, outer);
                    let c = self.without_factors(*y, summed, outer);
                    self.values.op2(Op::Mul, s, a, c)
                }
                (true, true) => element,
            },
            (Op::Div, [x, y]) if self.is_fixed(*y, summed) && !self.is_fixed(*x, summed) => {
                let inner = self.without_factors(*x, summed, outer);
                outer.push((Op::Div, Some(*y)));
                inner
            }
            _ => element,
        }
    }

    /// Emits a scalar here.
    pub(super) fn scalar(&mut self, b: &mut Builder<'_>, id: Id, known: &mut Known) -> Option<Atom> {
        if let Some(a) = known.get(&id) {
            return Some(*a);
        }
        let node = self.values.node(id).clone();
        if let (Some(v), false) = (self.values.name(id), matches!(node, Node::Const(_))) {
            return Some(v.into());
        }
        let atom = match node {
            Node::Const(c) => return Some(Atom::Const(c)),
            Node::Var(v) => return Some(v.into()),
            Node::Dim(_) | Node::Local(..) => return None,
            Node::Size(v, axis) => b.size(v.into(), axis),
            Node::Read(v, ids) => {
                let ix = ids.iter().map(|i| self.scalar(b, *i, known)).collect::<Option<Vec<_>>>()?;
                b.index(v.into(), &ix)
            }
            Node::Prim(prim, ids) => {
                let args = ids.iter().map(|i| self.scalar(b, *i, known)).collect::<Option<Vec<_>>>()?;
                b.emit(Exp::Prim(prim, args), "t")
            }
            Node::If(c, x, y) => {
                let c = self.scalar(b, c, known)?;
                b.open();
                let x = self.scalar(b, x, &mut known.clone());
                let then = b.close(vec![x?]);
                b.open();
                let y = self.scalar(b, y, &mut known.clone());
                let otherwise = b.close(vec![y?]);
                b.emit(Exp::If(c, then, otherwise), "t")
            }
        };
        known.insert(id, atom);
        Some(atom)
    }
}

/// `axis` first, the others in their order.
pub(super) fn to_front(axis: usize, rank: usize) -> Vec<usize> {
    std::iter::once(axis).chain((0..rank).filter(|a| *a != axis)).collect()
}

/// The rearrangement; nothing is emitted if it is none.
pub(super) fn rearrange(b: &mut Builder<'_>, perm: &[usize], array: Atom) -> Atom {
    if perm.iter().enumerate().all(|(i, p)| i == *p) {
        array
    } else {
        b.emit(Exp::Rearrange(perm.to_vec(), array), "xs")
    }
}
