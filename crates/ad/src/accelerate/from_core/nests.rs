//! Nests of maps as combinators over all of their counters: the rules of the module above.
//!
//! Guarantees: a read that may be out of bounds is not moved out of its branch; one that runs whenever the nest runs may become an array of its own, which stops as the read would. Each variable of a nest is computed at one place: if an inner
//! nest reads it, it becomes an array over its axes, which its own nest reads too.
//!
//! `over` is one piece: it makes one combinator, step by step.

use super::forms::{both, integer};
use super::sizes::Size;
use super::{Axis, FromCore, Nest, Part, View, arr};
use crate::accelerate::language::{AVar, Arr, ArrForm, EVar, Exp, ExpForm, Fun, Slice, Ty, made};
use crate::contract::Unsupported;
use pullback_core::Var;
use pullback_prim::Op;
use std::collections::{BTreeMap, BTreeSet};

type Result<T> = std::result::Result<T, Unsupported>;
pub(super) type Lets = Vec<(EVar, Exp)>;

/// An array and an index of it, by their numbers.
pub(super) type Read = (AVar, Vec<Place>);

/// A component of an index, if it is a variable or a constant.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Place {
    Const(i64),
    Var(EVar),
    /// A read, at variables and constants.
    Read(AVar, Vec<Place>),
}

fn place(e: &Exp) -> Option<Place> {
    match e.form() {
        ExpForm::Const(c) => Some(Place::Const(c.as_i64())),
        ExpForm::Var(x) => Some(Place::Var(x.clone())),
        ExpForm::Index(a, e) => Some(Place::Read(a.clone(), places(e)?)),
        _ => None,
    }
}

pub(super) fn places(index: &Exp) -> Option<Vec<Place>> {
    match index.form() {
        ExpForm::Tuple(es) => es.iter().map(place).collect(),
        _ => None,
    }
}

impl FromCore<'_> {
    pub(super) fn top(&self) -> usize {
        self.nests.len() - 1
    }

    pub(super) fn counters(&self, level: usize) -> Vec<Exp> {
        self.nests[level].axes.iter().map(|a| Exp::var(&a.counter)).collect()
    }

    /// Binds a scalar of the innermost nest.
    pub(super) fn bind(&mut self, name: &str, e: Exp) -> Exp {
        if matches!(e.form(), ExpForm::Const(_) | ExpForm::Var(_)) {
            return e;
        }
        let x = self.names.fresh(name, e.ty().clone());
        let nest = self.nests.last_mut();
        if let Some(frame) = nest.and_then(|n| n.frames.last_mut()) {
            frame.push((x.clone(), e));
        }
        Exp::var(&x)
    }

    /// A scalar of an outer nest where we are.
    pub(super) fn carried(&mut self, e: &Exp, level: usize) -> Result<Exp> {
        if level == self.top() {
            return Ok(e.clone());
        }
        match e.form() {
            ExpForm::Index(a, at) => {
                let ExpForm::Tuple(at) = at.form() else { return self.refuse("an index of an inner body") };
                let at = at.iter().map(|e| self.carried(e, level)).collect::<Result<_>>()?;
                Ok(made(Exp::index(a, Exp::tuple(at))))
            }
            ExpForm::Var(x) if self.nests[level].axes.iter().any(|a| a.counter == *x) => Ok(e.clone()),
            ExpForm::Var(x) => {
                let a = self.lifted(x, level)?;
                Ok(made(Exp::index(&a, Exp::tuple(self.counters(level)))))
            }
            _ => Ok(e.clone()),
        }
    }

    /// A variable of an outer nest as an array over its axes; from now on that nest reads it, too.
    fn lifted(&mut self, x: &EVar, level: usize) -> Result<AVar> {
        if let Some(a) = self.nests[level].lifted.get(x) {
            return Ok(a.clone());
        }
        let nest = &self.nests[level];
        let open = nest.frames.iter().skip(1 + nest.of_arrays);
        if open.flatten().any(|(y, _)| y == x) {
            return self.refuse("an array operation in a branch of an inner body");
        }
        let a = self.over(level, x.name(), &Exp::var(x))?;
        let at = made(Exp::index(&a, Exp::tuple(self.counters(level))));
        let nest = &mut self.nests[level];
        if let Some((_, e)) = nest.frames.iter_mut().flatten().find(|(y, _)| y == x) {
            *e = at;
        }
        nest.lifted.insert(x.clone(), a.clone());
        Ok(a)
    }

    /// An expression of the innermost nest as an array over its axes.
    pub(super) fn over_axes(&mut self, name: &str, e: &Exp) -> Result<AVar> {
        self.over(self.top(), name, e)
    }

    /// Runs inside of a nest with these counters more.
    pub(super) fn inside<T>(
        &mut self,
        sizes: &[Size],
        f: impl FnOnce(&mut Self, &[Exp]) -> Result<T>,
    ) -> Result<T> {
        let nest = &self.nests[self.top()];
        if nest.frames.len() > 1 + nest.of_arrays {
            return self.refuse("an array operation in a branch of an inner body");
        }
        let mut axes = nest.axes.clone();
        let own: Vec<EVar> = sizes
            .iter()
            .map(|size| {
                let counter = self.names.fresh("i", Ty::Scalar(pullback_prim::Scalar::I64));
                axes.push(Axis { counter: counter.clone(), size: size.clone() });
                counter
            })
            .collect();
        self.nests.push(Nest { axes, frames: vec![Vec::new()], ..Nest::default() });
        let result = f(self, &own.iter().map(Exp::var).collect::<Vec<_>>());
        self.nests.pop();
        result
    }

    /// An array with the dimensions of this variable, in each iteration of the nest.
    pub(super) fn generate(
        &mut self,
        v: Var,
        element: impl FnOnce(&mut Self, &[Exp]) -> Result<Exp>,
    ) -> Result<Part> {
        let dims = self.dims_of(v)?;
        let name = self.program.vars[v].hint.clone();
        self.array_of(&dims, name.as_str(), element).map(Part::Array)
    }

    pub(super) fn array_of(
        &mut self,
        dims: &[Size],
        name: &str,
        element: impl FnOnce(&mut Self, &[Exp]) -> Result<Exp>,
    ) -> Result<View> {
        let array = self.inside(dims, |this, counters| {
            let e = element(this, counters)?;
            this.over_axes(name, &e)
        })?;
        Ok(self.own(array))
    }

    /// An array over the axes of the innermost nest, as the part of each iteration.
    pub(super) fn own(&self, array: AVar) -> View {
        View { array, prefix: self.counters(self.top()), level: self.top() }
    }

    /// A view where we are.
    pub(super) fn here(&mut self, view: &View) -> Result<View> {
        let prefix = view.prefix.iter().map(|e| self.carried(e, view.level)).collect::<Result<_>>()?;
        Ok(View { array: view.array.clone(), prefix, level: self.top() })
    }

    /// The sizes that a view has.
    pub(super) fn view_dims(&self, view: &View) -> Vec<Size> {
        self.dims[&view.array].iter().skip(view.prefix.len()).cloned().collect()
    }

    /// An element of a view.
    pub(super) fn element(&mut self, view: &View, at: &[Exp]) -> Result<Exp> {
        let view = self.here(view)?;
        let index = view.prefix.into_iter().chain(at.iter().cloned()).collect();
        Ok(made(Exp::index(&view.array, Exp::tuple(index))))
    }

    /// The array over the axes of the innermost nest and the dimensions of the view.
    pub(super) fn owned(&mut self, view: &View) -> Result<AVar> {
        let here = self.here(view)?;
        let wanted: Vec<Size> = self.nests[self.top()].axes.iter().map(|a| a.size.clone()).collect();
        let is_own = here.prefix.len() == wanted.len()
            && here
                .prefix
                .iter()
                .zip(&self.nests[self.top()].axes)
                .all(|(e, axis)| matches!(e.form(), ExpForm::Var(x) if *x == axis.counter))
            && self.dims[&here.array].starts_with(&wanted);
        if is_own {
            return Ok(here.array);
        }
        let dims = self.view_dims(&here);
        Ok(self.array_of(&dims, view.array.name(), |this, at| this.element(&here, at))?.array)
    }

    /// The sizes of axes, as a shape.
    fn sizes(&mut self, axes: &[Axis]) -> Exp {
        let sizes = axes.iter().map(|a| self.size_exp(&a.size)).collect();
        Exp::tuple(sizes)
    }

    /// An expression of a nest as an array over the axes of the nest.
    fn over(&mut self, level: usize, name: &str, e: &Exp) -> Result<AVar> {
        let axes = self.nests[level].axes.clone();
        let dims: Vec<Size> = axes.iter().map(|a| a.size.clone()).collect();
        let mut lets = needed(self.nests[level].frames.iter().flatten(), e);
        let mut e = e.clone();
        if let ExpForm::Index(a, at) = e.form()
            && let Some(read) = places(at)
            && lets.is_empty()
            && self.dims[a] == dims
            && read.iter().zip(&axes).all(|(p, axis)| *p == Place::Var(axis.counter.clone()))
        {
            return Ok(a.clone());
        }
        self.is_closed(&axes, &lets, &e)?;
        let mut arguments: Vec<(Read, AVar)> = Vec::new();
        for (read, always) in reads(&lets, &e) {
            let argument = match self.aligned(&read, &axes) {
                // [accelerate_core.aligned]
                Some(positions) => Some(self.spread(&read.0, &positions, &axes)),
                // [accelerate_core.gathered]
                None if always && self.varies(&read.0) => Some(self.gathered(&read, &axes, &lets)),
                // [accelerate_core.read]
                None => None,
            };
            arguments.extend(argument.map(|a| (read, a)));
        }
        let mut types: Vec<Ty> = arguments.iter().map(|(_, a)| element_type(a)).collect();
        let counters: BTreeSet<EVar> = axes.iter().map(|a| a.counter.clone()).collect();
        let with = |by: &BTreeMap<Read, Exp>, lets: &mut Lets, e: &mut Exp| {
            lets.iter_mut().for_each(|(_, u)| *u = replaced(u, by));
            *e = replaced(e, by);
        };
        // What is left of counters once arguments are passed is one more argument.
        let (mut later, mut last) = (lets.clone(), e.clone());
        let dummy = |(read, a): &(Read, AVar)| (read.clone(), zero(a));
        with(&arguments.iter().map(dummy).collect(), &mut later, &mut last);
        let later = needed(later.iter(), &last);
        let mut free = BTreeSet::new();
        later.iter().for_each(|(_, u)| variables(u, &mut free));
        variables(&last, &mut free);
        let asked: Vec<EVar> = counters.intersection(&free).cloned().collect();
        let shape = self.sizes(&axes);
        if arguments.is_empty() {
            // [accelerate_core.none]
            let f = self.over_counters(&axes, lets, e);
            return Ok(self.let_(name, arr(ArrForm::Generate(shape, f)), dims));
        }
        let mut arrays: Vec<Arr> = arguments.iter().map(|(_, a)| Arr::var(a)).collect();
        if !asked.is_empty() {
            let tuple = Exp::tuple(asked.iter().map(Exp::var).collect());
            types.insert(0, tuple.ty().clone());
            let f = self.over_counters(&axes, Vec::new(), tuple);
            arrays.insert(0, arr(ArrForm::Generate(shape, f)));
        }
        // [accelerate_core.several]
        let (zipped, ty, paths) = self.zipped(arrays, types, dims.clone());
        let param = self.names.fresh("p", ty);
        let mut paths = paths.into_iter().map(|path| path.iter().fold(Exp::var(&param), |e, k| e.proj(*k)));
        let mut bindings = Lets::new();
        if !asked.is_empty()
            && let Some(at) = paths.next()
        {
            bindings.extend(asked.iter().enumerate().map(|(k, x)| (x.clone(), at.proj(k))));
        }
        let by = arguments.into_iter().map(|(read, _)| read).zip(paths).collect();
        with(&by, &mut lets, &mut e);
        bindings.extend(needed(lets.iter(), &e));
        let f = Fun { param, body: made(Exp::lets(bindings, e)) };
        let u = match zipped {
            Zipped::One(u) => ArrForm::Map(f, u),
            Zipped::Two(u, v) => ArrForm::ZipWith(f, u, v),
        };
        Ok(self.let_(name, arr(u), dims))
    }

    /// Whether an expression reads counters and variables of its nest only.
    fn is_closed(&self, axes: &[Axis], lets: &Lets, e: &Exp) -> Result<()> {
        let mut found = BTreeSet::new();
        variables(e, &mut found);
        lets.iter().for_each(|(_, u)| variables(u, &mut found));
        let is_known = |x: &EVar| axes.iter().any(|a| a.counter == *x) || lets.iter().any(|(y, _)| y == x);
        match found.iter().all(is_known) {
            true => Ok(()),
            false => self.refuse("an array operation on the state of a loop, or on operands of an operator"),
        }
    }

    /// `\i. let counters = i in let .. in e`
    fn over_counters(&mut self, axes: &[Axis], lets: Lets, e: Exp) -> Fun {
        let param = self.names.fresh("i", Ty::index(axes.len()));
        let at = Exp::var(&param);
        let counters = axes.iter().enumerate().map(|(k, a)| (a.counter.clone(), at.proj(k)));
        let mut bindings: Lets = counters.chain(lets).collect();
        let mut asked = BTreeSet::new();
        bindings.iter().for_each(|(_, u)| variables(u, &mut asked));
        variables(&e, &mut asked);
        bindings.retain(|(x, _)| asked.contains(x));
        Fun { param, body: made(Exp::lets(bindings, e)) }
    }

    /// Whether an array may have a derivative.
    pub(super) fn varies(&self, a: &AVar) -> bool {
        a.ty().is_continuous() && !self.constant.contains(a)
    }

    /// The axes that an array is read at, if its index is of different counters whose sizes are those of the array.
    pub(super) fn aligned(&self, (a, at): &Read, axes: &[Axis]) -> Option<Vec<usize>> {
        if !self.varies(a) {
            return None;
        }
        let dims = &self.dims[a];
        let position = |(k, p): (usize, &Place)| {
            let Place::Var(x) = p else { return None };
            let j = axes.iter().position(|axis| axis.counter == *x)?;
            (axes[j].size == dims[k]).then_some(j)
        };
        let positions: Vec<usize> = at.iter().enumerate().map(position).collect::<Option<_>>()?;
        let distinct: BTreeSet<usize> = positions.iter().copied().collect();
        (distinct.len() == positions.len()).then_some(positions)
    }

    /// The array over all axes, of which it has these.
    fn spread(&mut self, a: &AVar, positions: &[usize], axes: &[Axis]) -> AVar {
        let mut order: Vec<usize> = (0..positions.len()).collect();
        order.sort_by_key(|k| positions[*k]);
        let mut a = a.clone();
        if !order.iter().copied().eq(0..order.len()) {
            let dims: Vec<Size> = order.iter().map(|k| self.dims[&a][*k].clone()).collect();
            let shape = Exp::tuple(dims.iter().map(|n| self.size_exp(n)).collect());
            let param = self.names.fresh("i", Ty::index(order.len()));
            let at = |k: usize| order.iter().position(|o| *o == k).unwrap_or(k);
            let body = Exp::tuple((0..order.len()).map(|k| Exp::var(&param).proj(at(k))).collect());
            let turned = arr(ArrForm::Backpermute(shape, Fun { param, body }, Arr::var(&a)));
            a = self.let_("turned", turned, dims);
        }
        if positions.len() == axes.len() {
            return a;
        }
        let entry = |(k, axis): (usize, &Axis)| (!positions.contains(&k)).then(|| self.size_exp(&axis.size));
        let slc: Slice = axes.iter().enumerate().map(entry).collect();
        let dims = axes.iter().map(|a| a.size.clone()).collect();
        self.let_("spread", arr(ArrForm::Replicate(slc, Arr::var(&a))), dims)
    }

    /// The array of what is read, over all axes: gathered over those that the index depends on. Where others may be empty, nothing is read: then it reads in a branch.
    fn gathered(&mut self, (a, at): &Read, axes: &[Axis], lets: &Lets) -> AVar {
        let index = Exp::tuple(at.iter().map(expression).collect());
        let lets = needed(lets.iter(), &index);
        let mut asked = BTreeSet::new();
        lets.iter().for_each(|(_, u)| variables(u, &mut asked));
        variables(&index, &mut asked);
        let positions: Vec<usize> = (0..axes.len()).filter(|k| asked.contains(&axes[*k].counter)).collect();
        let own: Vec<Axis> = positions.iter().map(|k| axes[*k].clone()).collect();
        let shape = self.sizes(&own);
        let dims = own.iter().map(|a| a.size.clone()).collect();
        let others = axes.iter().filter(|axis| !asked.contains(&axis.counter));
        let may_be_empty = others.filter(|axis| axis.size.as_constant().is_none_or(|n| n <= 0));
        let sizes: Vec<Size> = may_be_empty.map(|axis| axis.size.clone()).collect();
        let is_there = sizes.iter().map(|n| integer(Op::Lt, &Exp::i64(0), &self.size_exp(n)));
        let found = match is_there.collect::<Vec<Exp>>().into_iter().reduce(both) {
            None => {
                let f = self.over_counters(&own, lets, index);
                ArrForm::Backpermute(shape, f, Arr::var(a))
            }
            Some(c) => {
                let read = made(Exp::lets(lets, made(Exp::index(a, index))));
                let e = made(Exp::cond(c, read, zero(a)));
                ArrForm::Generate(shape, self.over_counters(&own, Vec::new(), e))
            }
        };
        let found = self.let_("gathered", arr(found), dims);
        self.spread(&found, &positions, axes)
    }

    /// Arrays of one shape as one array, or two; and where in its elements each of them is.
    fn zipped(&mut self, arrays: Vec<Arr>, types: Vec<Ty>, dims: Vec<Size>) -> (Zipped, Ty, Vec<Vec<usize>>) {
        let mut all = arrays.into_iter().zip(types);
        let Some((mut one, mut ty)) = all.next() else { unreachable!("there are arguments") };
        let mut paths = vec![Vec::new()];
        let mut rest: Vec<(Arr, Ty)> = all.collect();
        let Some((last, last_ty)) = rest.pop() else { return (Zipped::One(one), ty, paths) };
        for (u, t) in rest {
            let both = Ty::Tuple(vec![ty.clone(), t.clone()]);
            let param = self.names.fresh("p", both.clone());
            let body = Exp::tuple(vec![Exp::var(&param).proj(0), Exp::var(&param).proj(1)]);
            let zip = arr(ArrForm::ZipWith(Fun { param, body }, one, u));
            one = Arr::var(&self.let_("zipped", zip, dims.clone()));
            paths.iter_mut().for_each(|p: &mut Vec<usize>| p.insert(0, 0));
            paths.push(vec![1]);
            ty = both;
        }
        paths.iter_mut().for_each(|p| p.insert(0, 0));
        paths.push(vec![1]);
        (Zipped::Two(one, last), Ty::Tuple(vec![ty, last_ty]), paths)
    }
}

/// The arguments of a combinator.
enum Zipped {
    One(Arr),
    Two(Arr, Arr),
}

fn element_type(a: &AVar) -> Ty {
    made(a.ty().array()).0.clone()
}

/// Something of the type of the elements, without variables.
fn zero(a: &AVar) -> Exp {
    crate::accelerate::zeros::zero_value(&element_type(a))
}

fn expression(p: &Place) -> Exp {
    match p {
        Place::Const(n) => Exp::i64(*n),
        Place::Var(x) => Exp::var(x),
        Place::Read(a, at) => made(Exp::index(a, Exp::tuple(at.iter().map(expression).collect()))),
    }
}

/// The bindings that an expression needs, in order.
pub(super) fn needed<'a>(lets: impl DoubleEndedIterator<Item = &'a (EVar, Exp)>, e: &Exp) -> Lets {
    let mut asked = BTreeSet::new();
    variables(e, &mut asked);
    let mut found = Lets::new();
    for (x, u) in lets.rev() {
        if asked.contains(x) {
            variables(u, &mut asked);
            found.push((x.clone(), u.clone()));
        }
    }
    found.reverse();
    found
}

/// The variables that occur free. (Each is bound once in a function of core.)
pub(super) fn variables(e: &Exp, out: &mut BTreeSet<EVar>) {
    match e.form() {
        ExpForm::Const(_) | ExpForm::Shape(_) => {}
        ExpForm::Var(x) => {
            out.insert(x.clone());
        }
        ExpForm::Let(bindings, e) => {
            bindings.iter().for_each(|(_, u)| variables(u, out));
            variables(e, out);
            bindings.iter().for_each(|(x, _)| {
                out.remove(x);
            });
        }
        ExpForm::Tuple(es) | ExpForm::Prim(_, es) => es.iter().for_each(|e| variables(e, out)),
        ExpForm::Proj(e, _) | ExpForm::Index(_, e) => variables(e, out),
        ExpForm::Cond(c, t, e) => [c, t, e].into_iter().for_each(|e| variables(e, out)),
    }
}

/// The reads, each once, and whether they run whenever the expression does.
fn reads(lets: &Lets, e: &Exp) -> BTreeMap<Read, bool> {
    let mut out = BTreeMap::new();
    lets.iter().map(|(_, u)| u).chain([e]).for_each(|e| add_reads(e, true, &mut out));
    out
}

fn add_reads(e: &Exp, always: bool, out: &mut BTreeMap<Read, bool>) {
    match e.form() {
        ExpForm::Const(_) | ExpForm::Var(_) | ExpForm::Shape(_) => {}
        ExpForm::Let(bindings, e) => {
            bindings.iter().for_each(|(_, u)| add_reads(u, always, out));
            add_reads(e, always, out);
        }
        ExpForm::Tuple(es) | ExpForm::Prim(_, es) => es.iter().for_each(|e| add_reads(e, always, out)),
        ExpForm::Proj(e, _) => add_reads(e, always, out),
        ExpForm::Index(a, at) => {
            if let Some(at) = places(at) {
                *out.entry((a.clone(), at)).or_default() |= always;
            }
        }
        ExpForm::Cond(c, t, e) => {
            add_reads(c, always, out);
            [t, e].into_iter().for_each(|e| add_reads(e, false, out));
        }
    }
}

/// The expression, with these for reads.
fn replaced(e: &Exp, by: &BTreeMap<Read, Exp>) -> Exp {
    let all = |es: &[Exp]| es.iter().map(|e| replaced(e, by)).collect();
    made(Exp::new(match e.form() {
        ExpForm::Const(_) | ExpForm::Var(_) | ExpForm::Shape(_) => return e.clone(),
        ExpForm::Let(bindings, e) => {
            let bindings = bindings.iter().map(|(x, u)| (x.clone(), replaced(u, by))).collect();
            ExpForm::Let(bindings, replaced(e, by))
        }
        ExpForm::Tuple(es) => ExpForm::Tuple(all(es)),
        ExpForm::Proj(e, k) => ExpForm::Proj(replaced(e, by), *k),
        ExpForm::Prim(op, es) => ExpForm::Prim(*op, all(es)),
        ExpForm::Index(a, at) => {
            if let Some(e) = places(at).and_then(|at| by.get(&(a.clone(), at))) {
                return e.clone();
            }
            ExpForm::Index(a.clone(), replaced(at, by))
        }
        ExpForm::Cond(c, t, e) => ExpForm::Cond(replaced(c, by), replaced(t, by), replaced(e, by)),
    }))
}
