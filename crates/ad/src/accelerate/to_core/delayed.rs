//! Delayed arrays: sizes, and a function from indices to the leaves of an element.
//!
//! Rules:
//! ```text
//! read       a stored array at indices is an index of core; a delayed one is its function
//! check      before a delayed array is read, its index is checked, unless it is known to be inside
//! store      a nest of maps over iotas; the optimiser of core makes rows of indices
//! mixed      of an array of tuples, leaves that cost a few operations, or that one term reads, do not go to memory (`recipes`)
//! ```
//!
//! Guarantee: an array is put in memory where it stands, so what its functions read is there.

use super::recipes::{Leaf, Recipe, Varies};
use super::uses::MANY;
use super::{INDEX, Lower};
use crate::accelerate::language::Ty;
use pullback_core::{Atom, Body, Check, Exp as Core, Lam, Soac, Stm, Type, prune};
use std::ops::Range;
use std::rc::Rc;

/// What gives the leaves of the element at an index.
pub(super) type Element = Rc<dyn Fn(&mut Lower<'_, '_>, &[Atom]) -> Vec<Atom>>;

/// The value of an array term.
#[derive(Clone)]
pub(super) enum Value {
    Array(Pull),
    Tuple(Vec<Value>),
}

/// An array that is in memory, or is not there yet.
#[derive(Clone)]
pub(super) struct Pull {
    pub(super) ty: Ty,
    pub(super) dims: Vec<Atom>,
    pub(super) form: Form,
    /// The array whose reshape it is, if it is one that is not in memory. Neither has rank 0.
    pub(super) before: Option<Rc<Pull>>,
}

#[derive(Clone)]
pub(super) enum Form {
    /// In memory: the leaves.
    Stored(Vec<Atom>),
    /// An element, and an estimate of the operations that it takes.
    Delayed(Element, u64),
    /// Some leaves are in memory, the others cost a few operations each.
    Mixed(Rc<[Leaf]>),
    /// Nothing reads its elements, or they have no leaves.
    Sized,
}

impl Form {
    /// These leaves of what is in memory.
    pub(super) fn chosen(&self, places: &[usize]) -> Option<Form> {
        match self {
            Form::Stored(leaves) => Some(Form::Stored(places.iter().map(|k| leaves[*k]).collect())),
            Form::Mixed(leaves) => Some(Form::of(places.iter().map(|k| leaves[*k].clone()).collect())),
            Form::Delayed(..) | Form::Sized => None,
        }
    }
    fn of(leaves: Vec<Leaf>) -> Form {
        let in_memory = |leaf: &Leaf| match leaf {
            Leaf::Memory(array) => Some(*array),
            Leaf::Again(_) => None,
        };
        match leaves.iter().map(in_memory).collect() {
            Some(leaves) => Form::Stored(leaves),
            None => Form::Mixed(leaves.into()),
        }
    }
}

/// What may be evaluated again costs at most so many operations. A choice: of 24, measured, programs became slower.
pub(super) const FEW: u64 = 3;
/// What readers of different leaves both evaluate costs at most so many operations: a store and a load cost about as much. A choice: the mixture needs four.
pub(super) const SHARED: u64 = 8;
/// What is not evaluated again.
pub(super) const COSTLY: u64 = 1 << 20;

impl Pull {
    pub(super) fn delayed(
        ty: Ty,
        dims: Vec<Atom>,
        cost: u64,
        element: impl Fn(&mut Lower<'_, '_>, &[Atom]) -> Vec<Atom> + 'static,
    ) -> Pull {
        Pull { ty, dims, form: Form::Delayed(Rc::new(element), cost.min(COSTLY)), before: None }
    }
    pub(super) fn in_memory(ty: Ty, dims: Vec<Atom>, leaves: Vec<Atom>) -> Pull {
        Pull { ty, dims, form: Form::Stored(leaves), before: None }
    }
    pub(super) fn sized(ty: Ty, dims: Vec<Atom>) -> Pull {
        Pull { ty, dims, form: Form::Sized, before: None }
    }
    /// Operations for an element, besides reads.
    pub(super) fn cost(&self) -> u64 {
        match &self.form {
            Form::Stored(_) | Form::Sized => 0,
            Form::Delayed(_, cost) => *cost,
            Form::Mixed(leaves) => leaves.iter().map(Leaf::cost).max().unwrap_or(0),
        }
    }
    /// The leaves, of what is in memory.
    pub(super) fn leaves(&self) -> Vec<Atom> {
        match &self.form {
            Form::Stored(leaves) => leaves.clone(),
            Form::Delayed(..) | Form::Mixed(_) | Form::Sized => Vec::new(),
        }
    }
    /// The array that has in several inner dimensions what this one has in its inner one.
    pub(super) fn unfolded(&self) -> Option<Rc<Pull>> {
        let outer = self.dims.len().checked_sub(1)?;
        let is_unfolded = |q: &&Rc<Pull>| q.dims.len() > outer + 1 && q.dims[..outer] == self.dims[..outer];
        self.before.as_ref().filter(is_unfolded).map(Rc::clone)
    }
    pub(super) fn is_stored(&self) -> bool {
        matches!(self.form, Form::Stored(_) | Form::Mixed(_))
    }
    fn is_cheap(&self) -> bool {
        self.cost() <= FEW
    }
}

impl Value {
    /// The array, where the type says that it is one.
    pub(super) fn array(self) -> Pull {
        match self {
            Value::Array(p) => p,
            Value::Tuple(_) => unreachable!("the type of the term is that of an array"),
        }
    }
}

impl Lower<'_, '_> {
    // [accelerate_to_core.kept]  what is used more than once goes to memory, unless it is cheap; rank 0 always
    pub(super) fn kept(&mut self, p: Pull, uses: u32, leaves: &[u32]) -> Pull {
        let is_again = uses <= 1 || p.is_cheap();
        if uses == 0 || (is_again && !p.dims.is_empty()) { p } else { self.stored(&p, leaves) }
    }
    // [accelerate_to_core.settled]  what may be read more than once goes to memory, unless it is cheap
    pub(super) fn settled(&mut self, p: Pull) -> Pull {
        let often = vec![MANY; p.ty.scalars().len()];
        if p.is_cheap() { p } else { self.stored(&p, &often) }
    }
    // [accelerate_to_core.stored]  leaves in memory, but for those that cost a few operations each time, or that one reader evaluates
    fn stored(&mut self, p: &Pull, uses: &[u32]) -> Pull {
        let element = match &p.form {
            Form::Delayed(element, _) => Rc::clone(element),
            Form::Mixed(_) if !p.is_cheap() => {
                let p = p.clone();
                Rc::new(move |this: &mut Lower<'_, '_>, ix: &[Atom]| this.element(&p, ix)) as Element
            }
            Form::Stored(_) | Form::Mixed(_) | Form::Sized => return p.clone(),
        };
        if p.before.is_some() || p.dims.is_empty() {
            let leaves = self.store(p);
            return Pull::in_memory(p.ty.clone(), p.dims.clone(), leaves);
        }
        let ix = self.counters(&p.dims);
        let iotas = self.open_nest(&p.dims);
        let results = element(self, &ix);
        let mut inner = self.b.close(Vec::new());
        let recipes = Recipe::of_leaves(&inner, &ix, &results, uses);
        // Leaves that are the same share an array.
        let mut wanted: Vec<Atom> = Vec::new();
        for (a, _) in results.iter().zip(&recipes).filter(|(_, r)| r.is_none()) {
            if !wanted.contains(a) {
                wanted.push(*a);
            }
        }
        // Of what is evaluated where it is read, nothing is left here.
        let stms = std::mem::take(&mut inner.stms);
        let keep = prune::Options { asserts: !wanted.is_empty(), ..prune::Options::default() };
        inner.stms = prune::prune_stms(self.b.program, stms, &wanted, &keep);
        let arrays = self.close_nest(&p.dims, &ix, &iotas, inner, wanted.clone());
        let leaf = |(r, a): (Option<Recipe>, Atom)| match r {
            Some(recipe) => Some(Leaf::Again(Rc::new(recipe))),
            None => wanted.iter().position(|w| *w == a).map(|k| Leaf::Memory(arrays[k])),
        };
        let leaves = recipes.into_iter().zip(results).filter_map(leaf).collect();
        Pull { ty: p.ty.clone(), dims: p.dims.clone(), form: Form::of(leaves), before: None }
    }
    /// The leaves in memory.
    pub(super) fn store(&mut self, p: &Pull) -> Vec<Atom> {
        if let Some(q) = &p.before {
            let leaves = self.store(q);
            return self.reshaped(&leaves, &p.dims, q.dims.len());
        }
        match &p.form {
            Form::Stored(leaves) => leaves.clone(),
            Form::Delayed(element, _) => {
                let element = Rc::clone(element);
                self.nest(&p.dims, &mut |this, ix| element(this, ix))
            }
            Form::Mixed(leaves) => self.each(leaves, &mut |_, array| array, &mut |this, recipe| {
                this.nest(&p.dims, &mut |this, ix| vec![this.again(recipe, ix)])[0]
            }),
            Form::Sized => unread(p),
        }
    }
    /// An atom for each leaf.
    fn each(
        &mut self,
        leaves: &[Leaf],
        memory: &mut dyn FnMut(&mut Self, Atom) -> Atom,
        again: &mut dyn FnMut(&mut Self, &Recipe) -> Atom,
    ) -> Vec<Atom> {
        let of = |leaf: &Leaf| match leaf {
            Leaf::Memory(array) => memory(self, *array),
            Leaf::Again(recipe) => again(self, recipe),
        };
        leaves.iter().map(of).collect()
    }

    /// Leaves whose first dimensions become these.
    pub(super) fn reshaped(&mut self, leaves: &[Atom], dims: &[Atom], from: usize) -> Vec<Atom> {
        let of = |array: &Atom| Core::Reshape { shape: dims.to_vec(), from, array: *array };
        leaves.iter().map(|a| self.b.emit(of(a), "reshaped")).collect()
    }
    /// The leaves of the element at an index that is inside.
    pub(super) fn element(&mut self, p: &Pull, ix: &[Atom]) -> Vec<Atom> {
        self.part_of_element(p, ix, 0..p.ty.scalars().len())
    }
    /// Some leaves of the element at an index that is inside.
    fn part_of_element(&mut self, p: &Pull, ix: &[Atom], part: Range<usize>) -> Vec<Atom> {
        match &p.form {
            Form::Stored(leaves) => leaves[part].iter().map(|a| self.b.index(*a, ix)).collect(),
            Form::Delayed(element, _) => {
                let element = Rc::clone(element);
                let is_size = std::mem::replace(&mut self.is_size, false);
                let all = element(self, ix);
                self.is_size = is_size;
                all[part].to_vec()
            }
            Form::Mixed(leaves) => {
                let index = &mut |this: &mut Self, array| this.b.index(array, ix);
                self.each(&leaves[part], index, &mut |this, recipe| this.again(recipe, ix))
            }
            Form::Sized => unread(p),
        }
    }
    /// Some leaves of the element at any index; one outside stops the program.
    // [accelerate_to_core.check]  an index of core checks itself
    pub(super) fn checked(&mut self, p: &Pull, ix: &[Atom], part: Range<usize>) -> Vec<Atom> {
        let checks_itself = match &p.form {
            Form::Stored(leaves) => !leaves[part.clone()].is_empty(),
            Form::Mixed(leaves) => leaves[part.clone()].iter().any(|leaf| matches!(leaf, Leaf::Memory(_))),
            Form::Delayed(..) | Form::Sized => false,
        };
        if !checks_itself {
            self.check_index(ix, &p.dims);
        }
        self.part_of_element(p, ix, part)
    }
    pub(super) fn check_index(&mut self, ix: &[Atom], dims: &[Atom]) {
        if ix.iter().zip(dims).all(|(i, n)| self.facts.is_inside(*i, *n)) {
            return;
        }
        let args = [ix, dims].concat();
        self.b.emit(Core::Check(Check::Index(ix.len()), args), "inside");
    }
    /// Counters of these dimensions.
    pub(super) fn counters(&mut self, dims: &[Atom]) -> Vec<Atom> {
        let counter = |n: &Atom| {
            let i = self.b.fresh(Type::Scalar(INDEX), "i");
            self.facts.is_below(i.into(), *n);
            Atom::from(i)
        };
        dims.iter().map(counter).collect()
    }
    /// What a body gives for all indices of these dimensions: a nest of maps.
    // [accelerate_to_core.nest]  what depends on no counter is replicated
    pub(super) fn nest(
        &mut self,
        dims: &[Atom],
        body: &mut dyn FnMut(&mut Self, &[Atom]) -> Vec<Atom>,
    ) -> Vec<Atom> {
        if dims.is_empty() {
            return body(self, &[]);
        }
        let ix = self.counters(dims);
        let iotas = self.open_nest(dims);
        let results = body(self, &ix);
        let inner = self.b.close(Vec::new());
        let varies = Varies::of(&inner, &ix);
        let varying: Vec<Atom> = results.iter().copied().filter(|a| varies.atom(*a)).collect();
        let mut arrays = self.close_nest(dims, &ix, &iotas, inner, varying).into_iter();
        let mut all = Vec::new();
        for a in results {
            let array = if varies.atom(a) { arrays.next() } else { None };
            all.push(array.unwrap_or_else(|| self.b.emit(Core::Replicate(dims.to_vec(), a), "copies")));
        }
        all
    }
    /// Opens a scope for each dimension.
    fn open_nest(&mut self, dims: &[Atom]) -> Vec<Atom> {
        let mut iotas = Vec::new();
        for n in dims {
            iotas.push(self.b.emit(Core::Iota(*n), "is"));
            self.b.open();
        }
        iotas
    }
    /// The maps around a body of which these results are wanted. A body without results is left out, unless it may stop the program or adds somewhere.
    fn close_nest(
        &mut self,
        dims: &[Atom],
        ix: &[Atom],
        iotas: &[Atom],
        mut inner: Body,
        wanted: Vec<Atom>,
    ) -> Vec<Atom> {
        let count = wanted.len();
        inner.result = wanted;
        let is_plain = |s: &Stm| matches!(&s.exp, Core::Prim(prim, _) if !prim.may_stop());
        if count == 0 && !inner.stms.iter().all(is_plain) {
            self.b.open();
            let unit = self.b.emit(Core::Tuple(Vec::new()), "unit");
            inner.stms.extend(self.b.close(Vec::new()).stms);
            inner.result.push(unit);
        }
        let is_left_out = inner.result.is_empty();
        for d in (0..dims.len()).rev() {
            let mut results = Vec::new();
            if !is_left_out {
                let lam = Lam { params: ix[d].var().into_iter().collect(), body: inner };
                let map = Core::Soac(Soac::Map { width: dims[d], lam, arrays: vec![iotas[d]] });
                results = self.b.emit_all(map, "ys").into_iter().map(Atom::from).collect();
            }
            if d == 0 {
                results.truncate(count);
                return results;
            }
            inner = self.b.close(results);
        }
        Vec::new()
    }

    /// The inner row at these outer indices, leaf by leaf.
    pub(super) fn row(&mut self, p: &Pull, outer: &[Atom]) -> Vec<Atom> {
        if let Some(q) = p.unfolded() {
            let inner = &q.dims[outer.len()..];
            let rows = self.nest(inner, &mut |this, i| this.element(&q, &[outer, i].concat()));
            return self.reshaped(&rows, &p.dims[outer.len()..], inner.len());
        }
        match &p.form {
            Form::Stored(leaves) => leaves.iter().map(|a| self.b.index(*a, outer)).collect(),
            Form::Delayed(element, _) => {
                let element = Rc::clone(element);
                self.nest(&p.dims[outer.len()..], &mut |this, i| element(this, &[outer, i].concat()))
            }
            Form::Mixed(leaves) => {
                let inner = &p.dims[outer.len()..];
                self.each(leaves, &mut |this, array| this.b.index(array, outer), &mut |this, recipe| {
                    this.nest(inner, &mut |this, i| vec![this.again(recipe, &[outer, i].concat())])[0]
                })
            }
            Form::Sized => unread(p),
        }
    }
}

/// The leaves of an element that nothing reads: it has none.
fn unread(p: &Pull) -> Vec<Atom> {
    assert!(p.ty.scalars().is_empty(), "the uses of the binding say that nothing reads its elements");
    Vec::new()
}
