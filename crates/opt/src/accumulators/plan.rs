//! Taking one accumulation out of its nest.
//!
//! Coordinates are classified (`index`): fixed ones, ones with dimensions of their own, others. Dimensions without a
//! coordinate are summed.

mod columns;
mod histogram;
mod linear;
mod loops;
mod part;
mod whole;

use super::carry::carry_out;
use super::delayed::{Delayed, Dim, Id, Node, OUTSIDE, Order};
use super::escape::{Neutral, binds, hand_out};
use super::index::{Affine, Polynomial, affine, polynomial, radix_order};
use super::nest::{Known, Nest, Shapes};
use super::sites::{Attempt, Site, Way};
use part::Part;
use pullback_base::index::{IdMap, IdSet, IdTable};
use pullback_core::{Atom, Body, Builder, Exp, FunId, Program, Soac, Stm, Type, Var, VarInfo, View};
use pullback_prim::{Op, Scalar};
use std::collections::{BTreeMap, BTreeSet};
use whole::add_sum;

/// So many operations per point may be written anew although the nest that held them stays.
const CHEAP: usize = 2;

/// So many elements may be zeros where a condition does not hold.
const SHORT: i64 = 16;

/// Takes this accumulation out of its nest, if the attempt fits. `order`: of the function.
pub(super) fn apply(
    program: &mut Program,
    id: FunId,
    site: &Site,
    attempt: Attempt,
    order: &mut Order,
) -> bool {
    let count = program.vars.len();
    let copies = match attempt.way {
        Way::Anew | Way::Linear | Way::Columns => None,
        Way::HandedOut | Way::Histogram | Way::Carried => match name_values(program, id, site) {
            None => return false,
            Some(copies) => {
                let new = copies.indices.iter().chain([&copies.value]);
                new.for_each(|v| order.add_beside(*v, site.done));
                Some(copies)
            }
        },
    };
    program.vars.share();
    let next = match attempt.way {
        Way::Columns => columns::apply(program, id, site, attempt),
        Way::Linear => linear(program, id, site, attempt, order),
        _ => moved(program, (id, site), attempt, order, copies.as_ref()).map(|work| work.put_back(program)),
    };
    match (next, copies) {
        (Some(next), _) => *program = next,
        (None, Some(copies)) => {
            let body = at_mut(&mut program.funs[id].body, &site.path);
            body.stms.drain(site.at..site.at + 1 + copies.indices.len());
            program.vars.truncate(count);
            return false;
        }
        (None, None) => return false,
    }
    true
}

/// The accumulation as a linear function of a sum.
fn linear(program: &Program, id: FunId, site: &Site, attempt: Attempt, order: &Order) -> Option<Program> {
    let nest = &at(&program.funs[id].body, &site.path[..attempt.nest]).stms[site.path[attempt.nest].0];
    sums(nest).then_some(())?;
    let mut plan = Plan::new(program, id, site, attempt, order)?;
    let coordinates = plan.coordinates(None)?;
    plan.linear(&coordinates)
}

/// Whether there is a reduction in a nest.
fn sums(stm: &Stm) -> bool {
    let inside = |body: &Body| body.stms.iter().any(sums);
    matches!(stm.exp, Exp::Soac(Soac::Reduce { .. })) || stm.exp.bodies().iter().any(|s| inside(s.body))
}

/// The accumulation behind its nest, or behind its scope.
fn moved(
    program: &Program,
    (id, site): (FunId, &Site),
    attempt: Attempt,
    order: &Order,
    copies: Option<&Copies>,
) -> Option<Part> {
    let mut plan = Plan::new(program, id, site, attempt, order)?;
    let coordinates = plan.coordinates(copies)?;
    (attempt.way != Way::Anew || plan.is_proportionate()).then_some(())?;
    let element = plan.element(copies)?;
    let (coordinates, element) = match attempt.way {
        Way::Anew | Way::HandedOut if !plan.is_loop => plan.values.split(coordinates, element)?,
        _ => (coordinates, element),
    };
    if attempt.way == Way::Anew && !plan.worth_writing_anew(element, &coordinates) {
        return None;
    }
    let affine: Vec<Option<Affine>> = coordinates.iter().map(|c| affine(&plan.values, *c)).collect();
    let (axes, is_histogram) = (plan.axes(&affine), attempt.way == Way::Histogram);
    if axes.is_some() == is_histogram {
        return None;
    }
    let mut part = Part::new(program, id, &site.path[..=attempt.nest]);
    match axes {
        Some(axes) => plan.add_as_a_whole(&mut part.program, element, &axes)?,
        None => plan.histogram(&mut part.program, element, &coordinates, &affine)?,
    }
    Some(part)
}

/// The value and the indices of a site, bound by statements of their own where it was.
struct Copies {
    value: Var,
    indices: Vec<Var>,
}

/// Replaces the site by copies of its value and indices. Under a condition only the copies are handed out, so that
/// where the condition does not hold nothing is added.
fn name_values(program: &mut Program, id: FunId, site: &Site) -> Option<Copies> {
    let body = at_mut(&mut program.funs[id].body, &site.path);
    let Exp::AccAdd(_, ix, v) = body.stms[site.at].exp.clone() else { return None };
    let mut stms = Vec::new();
    let mut name = |program: &mut Program, a: Atom| {
        let ty = program.atom_type(a);
        let hint = a.var().map_or("v".into(), |v| program.vars[v].hint.clone());
        let origin = program.vars[site.done].origin.clone();
        let w = program.vars.push(VarInfo { ty, hint, origin });
        stms.push(Stm { pat: vec![w], exp: Exp::Atom(a) });
        w
    };
    let value = name(program, v);
    let indices = ix.into_iter().map(|i| name(program, i)).collect();
    let body = at_mut(&mut program.funs[id].body, &site.path);
    // The accumulation itself stays until it is known that it can go.
    body.stms.splice(site.at..site.at, stms);
    Some(Copies { value, indices })
}

/// The body that a path leads to.
fn at<'a>(body: &'a Body, path: &[(usize, usize)]) -> &'a Body {
    path.iter().fold(body, |body, (stm, scope)| body.stms[*stm].exp.bodies()[*scope].body)
}
fn at_mut<'a>(body: &'a mut Body, path: &[(usize, usize)]) -> &'a mut Body {
    path.iter().fold(body, |body, (stm, scope)| {
        body.stms[*stm].exp.bodies_mut().into_iter().nth(*scope).expect("a path").body
    })
}

/// What becomes of a group of dimensions that share an axis of the accumulator: from the slowest to the fastest.
struct Axis {
    /// The axis of the accumulator.
    number: usize,
    dims: Vec<Dim>,
    start: Id,
    stride: Id,
    /// The axis is covered from its first place to its last.
    whole: bool,
}

/// The axes with an index that is fixed, and those that have dimensions.
struct Axes {
    fixed: Vec<(usize, Id)>,
    moving: Vec<Axis>,
}

struct Plan<'a> {
    function: FunId,
    site: &'a Site,
    attempt: Attempt,
    values: Delayed<'a>,
    /// The add statement.
    add: &'a Stm,
    /// Its environment.
    env: usize,
    /// The accumulator outside the nest, its coordinates in terms of the indices of the site.
    root: Var,
    init: Atom,
    /// The nest is a loop.
    is_loop: bool,
    /// The extents are those of a loop of so many iterations, if that is a positive number.
    trips: Option<Atom>,
    /// Where the extents are, once there is code for them.
    given: Option<Known>,
    /// Dimensions of the value.
    rows: Vec<Dim>,
    /// Conditions on the way from the nest to the site; `None`: one that cannot be written anew.
    guards: Vec<Option<(Id, bool)>>,
    /// Dimensions that are run through only where a condition holds.
    guarded: Vec<Dim>,
}

impl<'a> Plan<'a> {
    fn new(
        program: &'a Program,
        id: FunId,
        site: &'a Site,
        attempt: Attempt,
        order: &'a Order,
    ) -> Option<Plan<'a>> {
        let fun = &program.funs[id];
        let outer = &site.path[..attempt.nest];
        let inside = &site.path[attempt.nest..];
        let mut available: IdTable<Var, ()> = IdTable::with_room(program.vars.len());
        available.extend(fun.params.iter().map(|p| (*p, ())));
        let mut learnt: Vec<&Stm> = Vec::new();
        let mut around: Vec<(&[Var], &[Atom])> = Vec::new();
        let mut body = &fun.body;
        for (n, (stm, scope)) in site.path[..=attempt.nest].iter().enumerate() {
            for s in &body.stms[..*stm] {
                available.extend(s.pat.iter().map(|v| (*v, ())));
                learnt.push(s);
            }
            if n < attempt.nest {
                let scopes = body.stms[*stm].exp.bodies();
                available.extend(scopes[*scope].binds.iter().map(|v| (v, ())));
                if let Exp::Soac(Soac::Map { lam, arrays, .. }) = &body.stms[*stm].exp {
                    around.push((&lam.params, arrays));
                }
                body = scopes[*scope].body;
            }
        }
        let path = &site.path[..=attempt.nest];
        let region = at(&fun.body, outer);
        let nest = &region.stms[inside[0].0];
        let mut values = Delayed::new(program, (&fun.body, path), order, (available, nest));
        around.iter().for_each(|(params, arrays)| values.surround(params, arrays));
        learnt.iter().for_each(|s| values.learn(s));
        values.learn(nest);
        values.begin();
        let holder = at(&fun.body, &site.path);
        let add = holder.stms.iter().find(|s| s.pat.contains(&site.done))?;
        let Exp::AccAdd(_, _, value) = &add.exp else { return None };
        let rank = program.atom_type(*value).rank();
        program.atom_type(*value).base().scalar().filter(|s| s.is_float())?;
        let scope = &at(&fun.body, &site.path[..site.root]).stms[site.path[site.root].0];
        let Exp::WithAcc(inits, lam) = &scope.exp else { return None };
        let mut plan = Plan {
            function: id,
            is_loop: false,
            trips: None,
            given: None,
            site,
            attempt,
            values,
            add,
            env: OUTSIDE,
            root: lam.params[site.number],
            init: inits[site.number],
            rows: Vec::new(),
            guards: Vec::new(),
            guarded: Vec::new(),
        };
        plan.enter(region, inside, rank)?;
        Some(plan)
    }

    /// The environments and dimensions from the nest to the site.
    fn enter(&mut self, region: &'a Body, inside: &[(usize, usize)], rank: usize) -> Option<()> {
        let mut body = region;
        let kind = |e: &Exp| matches!(e, Exp::Soac(_) | Exp::Loop(_));
        let mut depth = 0;
        for (stm, scope) in inside {
            depth += usize::from(kind(&body.stms[*stm].exp));
            body = body.stms[*stm].exp.bodies()[*scope].body;
        }
        self.values.full = (0..depth + rank).collect();
        self.rows = (depth..depth + rank).collect();
        let mut body = region;
        for (n, (stm, scope)) in inside.iter().enumerate() {
            let exp = &body.stms[*stm].exp;
            let d = self.values.widths.len();
            let place = self.values.dim(d);
            let guards = self.guards.len();
            match exp {
                Exp::Soac(Soac::Map { width, lam, arrays }) => {
                    let w = self.values.element(*width, self.env, &[])?;
                    (self.values.dims(w).is_empty() && self.values.is_safe(w)).then_some(())?;
                    self.env = self.values.enter(*width, lam, arrays, self.env, place);
                    self.values.widths.push(w);
                }
                Exp::Loop(l) if n == 0 || self.is_carried() => self.enter_loop(l, *scope, place)?,
                Exp::If(c, ..) => {
                    let guard = self.values.element(*c, self.env, &[]).map(|c| (c, *scope == 0));
                    if let Some((c, holds)) = guard {
                        self.values.assume(c, holds);
                    }
                    self.values.conditions += 1;
                    self.guards.push(guard);
                }
                Exp::Match(_, arms) if arms.len() > 1 => {
                    self.values.conditions += 1;
                    self.guards.push(None);
                }
                Exp::Match(..) | Exp::WithAcc(..) | Exp::Marked(..) => {}
                _ => return None,
            }
            if n == 0 {
                self.values.nest = self.env;
            }
            if guards > 0 {
                self.guarded.extend(d..self.values.widths.len());
            }
            body = exp.bodies()[*scope].body;
        }
        (self.values.widths.len() == depth).then_some(())
    }

    /// The coordinates in the accumulator of the scope, one per axis.
    fn coordinates(&mut self, copies: Option<&Copies>) -> Option<Vec<Id>> {
        let Exp::AccAdd(acc, ix, value) = &self.add.exp else { return None };
        let rows = self.rows.clone();
        for r in 0..rows.len() {
            let width = self.values.size(*value, self.env, r);
            // Where the value does not tell, the accumulator does; below, when its axis is known.
            let unknown = self.values.int(-1);
            self.values.widths.push(width.unwrap_or(unknown));
        }
        let mut out = match copies {
            // Under a condition an index may mean nothing where the condition does not hold.
            Some(copies) if self.attempt.way == Way::Histogram && !self.guards.is_empty() => {
                let locals = copies.indices.iter().map(|i| self.values.local(*i, self.env, &[]));
                locals.collect::<Option<Vec<_>>>()?
            }
            _ => {
                let indices = ix.iter().map(|i| self.values.element(*i, self.env, &[]));
                indices.collect::<Option<Vec<_>>>()?
            }
        };
        for r in &rows {
            out.push(self.values.dim(*r));
        }
        let mut acc = acc.var()?;
        while acc != self.root {
            let (base, view) = self.view(acc)?;
            out = self.through(&view, out)?;
            acc = base;
        }
        let ty = &self.values.program.vars[self.root].ty;
        let Type::Acc(ty) = ty else { return None };
        (ty.rank() == out.len() && ty.base().scalar().is_some()).then_some(())?;
        for r in rows {
            let unknown = self.values.int(-1);
            if self.values.widths[r] == unknown {
                let place = self.values.dim(r);
                let axis = out.iter().position(|c| *c == place)?;
                self.values.widths[r] = self.values.size(self.init, OUTSIDE, axis)?;
            }
        }
        if !self.guards.is_empty() {
            self.guarded.extend(&self.rows);
        }
        Some(out)
    }
    fn view(&self, acc: Var) -> Option<(Var, View)> {
        match self.values.expression(acc)? {
            Exp::AccView(base, view) => Some((base.var()?, view.clone())),
            _ => None,
        }
    }
    /// Coordinates in the accumulator from coordinates in a view of it.
    fn through(&mut self, view: &View, out: Vec<Id>) -> Option<Vec<Id>> {
        match view {
            View::Index(ix) => {
                let ix = ix.iter().map(|i| self.values.element(*i, self.env, &[]));
                let mut whole = ix.collect::<Option<Vec<_>>>()?;
                whole.extend(out);
                Some(whole)
            }
            View::Rearrange(perm) => {
                let mut whole = out.clone();
                for (i, p) in perm.iter().enumerate() {
                    *whole.get_mut(*p)? = *out.get(i)?;
                }
                Some(whole)
            }
            View::Slice(s) => {
                let (first, rest) = out.split_first()?;
                let Node::Dim(d) = *self.values.node(*first) else { return None };
                let len = self.values.element(s.len, self.env, &[])?;
                let width = self.values.widths[d];
                self.values.agree(len, width).then_some(())?;
                let start = self.values.element(s.start, self.env, &[])?;
                let stride = self.values.element(s.stride, self.env, &[])?;
                let far = self.values.op2(Op::Mul, Scalar::I64, stride, *first);
                let i = self.values.op2(Op::Add, Scalar::I64, start, far);
                Some(std::iter::once(i).chain(rest.iter().copied()).collect())
            }
            View::Proj(_) | View::Reshape { .. } | View::Reverse | View::Rotate(_) => None,
        }
    }

    /// The added scalar as a function of the point.
    fn element(&mut self, copies: Option<&Copies>) -> Option<Id> {
        let rows: Vec<Id> = self.rows.clone().into_iter().map(|d| self.values.dim(d)).collect();
        if let Some(copies) = copies {
            let shape: Vec<Id> = self.rows.iter().map(|d| self.values.widths[*d]).collect();
            if self.is_carried() {
                self.values.local_shapes.insert(copies.value, shape);
                return Some(self.values.intern(Node::Local(copies.value, rows)));
            }
            return self.values.local_of_shape(copies.value, self.env, &rows, &shape);
        }
        let Exp::AccAdd(_, _, value) = &self.add.exp else { return None };
        let mut v = self.values.element(*value, self.env, &rows)?;
        let zero = self.values.program.atom_type(*value).base().scalar()?.zero();
        for guard in self.guards.clone().into_iter().rev() {
            let (c, holds) = guard?;
            let zero = self.values.intern(Node::Const(zero));
            self.values.forget(c);
            v = if holds {
                self.values.intern(Node::If(c, v, zero))
            } else {
                self.values.intern(Node::If(c, zero, v))
            };
        }
        Some(v)
    }

    /// Whether what is done where a condition does not hold is a constant.
    fn is_proportionate(&self) -> bool {
        let is_short = |d: &Dim| match self.values.node(self.values.widths[*d]) {
            Node::Const(n) => n.as_i64() <= SHORT,
            _ => false,
        };
        self.guarded.iter().all(is_short)
    }

    /// Whether a nest of its own for the value is as cheap as the nest that computes it: a few operations, or all that is read
    /// has fewer dimensions (a contraction). In a sum, conditions on counters without which a term is zero are no operations:
    /// they become bounds of the sum, where the nest that stays would hand all of its terms out.
    fn worth_writing_anew(&self, element: Id, coordinates: &[Id]) -> bool {
        let kept: BTreeSet<Dim> = coordinates.iter().flat_map(|c| self.values.dims(*c)).copied().collect();
        let is_sum = !self.values.full.is_subset(&kept);
        let is_bound = |id: Id, c: Id| is_sum && self.values.counts(c) && self.values.guarded(id).is_some();
        let mut work = vec![element];
        let mut seen = BTreeSet::new();
        let (mut operations, mut narrow, mut local) = (0, true, true);
        while let Some(id) = work.pop() {
            if !seen.insert(id) {
                continue;
            }
            let is_full = *self.values.dims(id) == self.values.full;
            match self.values.node(id) {
                Node::Prim(_, ids) => {
                    operations += 1;
                    work.extend(ids);
                }
                Node::If(c, x, y) if is_bound(id, *c) => work.extend([*x, *y]),
                Node::If(c, x, y) => {
                    operations += 1;
                    work.extend([*c, *x, *y]);
                }
                Node::Local(..) => {
                    narrow &= !is_full;
                    local &= !is_full;
                }
                Node::Read(_, ids) => {
                    narrow &= !is_full;
                    let moving = ids.iter().filter(|i| self.values.run_through(**i).is_none());
                    work.extend(moving);
                }
                Node::Dim(_) | Node::Const(_) | Node::Var(_) | Node::Size(..) => {}
            }
        }
        let sequential = self.is_loop;
        local && (narrow || (operations <= CHEAP && !sequential))
    }
    /// Every axis with one index, or with dimensions that no other axis mentions.
    fn axes(&mut self, coordinates: &[Option<Affine>]) -> Option<Axes> {
        let mut out = Axes { fixed: Vec::new(), moving: Vec::new() };
        let mut seen: BTreeSet<Dim> = BTreeSet::new();
        for (number, c) in coordinates.iter().enumerate() {
            let c = c.as_ref()?;
            let start = self.values.sum_of(&c.rest);
            if !self.values.is_safe(start) {
                return None;
            }
            if c.strides.is_empty() {
                out.fixed.push((number, start));
                continue;
            }
            let strides: Vec<(Dim, &Polynomial)> = c.strides.iter().map(|(d, s)| (*d, s)).collect();
            if strides.iter().any(|(d, _)| !seen.insert(*d)) {
                return None;
            }
            let widths: Vec<_> = self.values.widths.clone();
            let extents: Vec<_> = widths.iter().map(|w| polynomial(&self.values, *w)).collect();
            let order = match &strides[..] {
                [(d, _)] => vec![*d],
                _ => radix_order(&strides, &|d| extents[d].clone())?,
            };
            let stride = self.values.sum_of(&c.strides[order.first()?]);
            if !self.values.is_safe(stride) {
                return None;
            }
            let size = self.values.size(self.init, OUTSIDE, number)?;
            let (zero, one) = (self.values.int(0), self.values.int(1));
            let whole = order.len() == 1
                && start == zero
                && stride == one
                && self.values.same(size, self.values.widths[order[0]]);
            let dims = order.into_iter().rev().collect();
            out.moving.push(Axis { number, dims, start, stride, whole });
        }
        if self.is_loop { self.around_loop(&seen, out) } else { Some(out) }
    }

    /// E1, E2, E6, E7, E8: the whole sum as an array, and one addition of it.
    fn add_as_a_whole(&mut self, work: &mut Program, element: Id, axes: &Axes) -> Option<()> {
        let kept: Vec<Dim> = axes.moving.iter().flat_map(|a| a.dims.iter().copied()).collect();
        // What is carried has been summed over the loops.
        let summed = (0..self.values.widths.len()).filter(|d| !kept.contains(d) && !self.is_carried());
        let loops: Vec<Dim> = kept.iter().copied().chain(summed).collect();
        let (parts, shapes) = self.hand_out(work, &[element])?;
        let mut b = Builder::new(work);
        b.origin = self.values.program.vars[self.site.done].origin.clone();
        let given = self.extents(&mut b)?;
        let mut nest = Nest { values: &mut self.values, loops, kept: kept.len(), shapes: &shapes, given };
        let sum = nest.emit(&mut b, parts[0])?;
        add_sum(&mut nest, &mut b, self.root, axes, sum)?;
        let stms = b.finish();
        self.insert(work, stms);
        Some(())
    }

    /// Makes the nest return what the nodes need of its inside; the nodes without anything of the inside, and the
    /// shapes of what was handed out.
    fn hand_out(&mut self, work: &mut Program, ids: &[Id]) -> Option<(Vec<Id>, Shapes)> {
        let mut columns: IdMap<Var, Var> = IdMap::new();
        let mut shapes = Shapes::new();
        let mut wanted = IdSet::new();
        ids.iter().for_each(|id| self.values.locals(*id, &mut wanted));
        for v in wanted {
            let shape = self.values.local_shapes.get(&v)?.clone();
            shape.iter().all(|s| self.values.is_safe(*s)).then_some(())?;
            let column = self.column(work, v, &shape)?;
            columns.insert(v, column);
            shapes.insert(column, shape);
        }
        let ids = ids.iter().map(|id| self.values.replace_locals(*id, &columns)).collect();
        Some((ids, shapes))
    }
    fn column(&mut self, work: &mut Program, v: Var, shape: &[Id]) -> Option<Var> {
        let function = self.function;
        let ty = work.vars[v].ty.clone();
        let scalar = ty.base().scalar()?;
        let zero = match scalar {
            // An index that is nowhere.
            Scalar::I64 => Atom::i64(-1),
            Scalar::Bool => Atom::bool(false),
            s => Atom::Const(s.zero()),
        };
        // The shape of the variable itself, in front of the nest.
        let own = &shape[shape.len() - ty.rank()..];
        let mut b = Builder::new(work);
        let given = self.extents(&mut b)?;
        let mut known = given.clone();
        let shapes = IdMap::new();
        let mut nest = Nest { values: &mut self.values, loops: Vec::new(), kept: 0, shapes: &shapes, given };
        let own = own.iter().map(|s| nest.scalar(&mut b, *s, &mut known)).collect::<Option<Vec<_>>>()?;
        let first = match &own[..] {
            _ if !self.is_carried() => zero,
            [] => zero,
            _ => b.emit(Exp::Replicate(own.clone(), zero), "zeros"),
        };
        let stms = b.finish();
        let outer = &self.site.path[..self.attempt.nest];
        let region = at_mut(&mut work.funs[function].body, outer);
        let position = region
            .stms
            .iter()
            .position(|s| s.exp.bodies().iter().any(|scope| binds(scope.body, self.site.done)))?;
        let mut nest = region.stms.remove(position);
        let column = match self.attempt.way {
            Way::Carried => carry_out(work, &mut nest, v, first),
            _ => hand_out(work, &mut nest, v, &Neutral { scalar: zero, shape: own }),
        };
        let region = at_mut(&mut work.funs[function].body, outer);
        region.stms.insert(position, nest);
        region.stms.splice(position..position, stms);
        column
    }

    /// Puts statements after the nest and takes the accumulation out of it.
    fn insert(&self, work: &mut Program, stms: Vec<Stm>) {
        let function = self.function;
        let outer = &self.site.path[..self.attempt.nest];
        let region = at_mut(&mut work.funs[function].body, outer);
        let Some(position) = region
            .stms
            .iter()
            .position(|s| s.exp.bodies().iter().any(|scope| binds(scope.body, self.site.done)))
        else {
            return;
        };
        remove(&mut region.stms[position], self.site.done);
        region.stms.splice(position + 1..position + 1, stms);
    }
}

/// The accumulation becomes the unit that it returned.
fn remove(stm: &mut Stm, done: Var) {
    for scope in stm.exp.bodies_mut() {
        for s in &mut scope.body.stms {
            if s.pat.contains(&done) {
                s.exp = Exp::Tuple(Vec::new());
            } else {
                remove(s, done);
            }
        }
    }
}

fn extent(
    nest: &mut Nest<'_, '_>,
    b: &mut Builder<'_>,
    dims: &[Dim],
    known: &mut BTreeMap<Id, Atom>,
) -> Option<Atom> {
    let mut size = None;
    for d in dims {
        let width = nest.values.widths[*d];
        let width = nest.scalar(b, width, known)?;
        size = Some(size.map_or(width, |s| b.op2(Op::Mul, s, width)));
    }
    size
}
