//! Accumulating computations (`EVM`): known when the program is lowered, and run there over the leaves of their cells.
//!
//! The cells of the environment are the leaves of their cotangents, outermost first; what a computation adds gives them new values. Where
//! branches meet, the cells that any of them changed are results. The computations of an array are a map, in which each starts with zeros, and
//! whose cells are added up afterwards: what a computation leaves alone costs nothing. A computation that is data, and a function that
//! calls itself, take the cells as arguments and give them as results.

use super::branch::OpenBranch;
use super::value::{Choice, Open, Val, product};
use super::{Lowered, Lowerer};
use pullback_base::Span;
use pullback_base::index::Index;
use pullback_core as core;
use pullback_core::{Atom, Exp};
use pullback_lambda as lambda;
use pullback_lambda::{Exp as Lam, Term, Type};
use std::rc::Rc;
use std::sync::Arc;

/// A computation.
pub(super) enum Action {
    /// `return`
    Return(Val),
    /// `m >>= k`
    Bind(Val, Val),
    /// Adds a cotangent of this type to a cell, counted from the outermost.
    Add(usize, Type, Val),
    /// The first value of a new cell, and what runs with it.
    Scope(Val, Val),
    /// One after the other.
    Par(Vec<Val>),
    /// Those of an array, over these cells.
    Sequence(Arc<[Type]>, Val),
    /// A function that gives a computation, and its argument.
    Apply(Val, Val),
    /// A call of a function that calls itself.
    Call(lambda::FunId, Vec<Val>),
}

impl Action {
    /// The values in it.
    pub(super) fn parts(&self) -> Vec<&Val> {
        match self {
            Action::Return(a) | Action::Add(_, _, a) | Action::Sequence(_, a) => vec![a],
            Action::Bind(a, b) | Action::Scope(a, b) | Action::Apply(a, b) => vec![a, b],
            Action::Par(all) | Action::Call(_, all) => all.iter().collect(),
        }
    }
    /// What it is, without the values in it.
    pub(super) fn head(&self) -> (&'static str, usize) {
        match self {
            Action::Return(_) => ("return", 0),
            Action::Bind(..) => ("bind", 0),
            Action::Add(level, ..) => ("add", *level),
            Action::Scope(..) => ("scope", 0),
            Action::Par(_) => ("par", 0),
            Action::Sequence(..) => ("sequence", 0),
            Action::Apply(..) => ("apply", 0),
            Action::Call(f, _) => ("call", f.index()),
        }
    }
    /// The same with other leaves.
    pub(super) fn rebuilt(&self, leaves: &mut dyn Iterator<Item = Atom>) -> Action {
        let mut new = |v: &Val| v.rebuilt(leaves);
        match self {
            Action::Return(a) => Action::Return(new(a)),
            Action::Add(level, ty, a) => Action::Add(*level, ty.clone(), new(a)),
            Action::Sequence(env, a) => Action::Sequence(env.clone(), new(a)),
            Action::Bind(a, b) => {
                let a = new(a);
                Action::Bind(a, new(b))
            }
            Action::Scope(a, b) => {
                let a = new(a);
                Action::Scope(a, new(b))
            }
            Action::Apply(a, b) => {
                let a = new(a);
                Action::Apply(a, new(b))
            }
            Action::Par(all) => Action::Par(all.iter().map(new).collect()),
            Action::Call(f, all) => Action::Call(*f, all.iter().map(new).collect()),
        }
    }
}

/// The leaves of each cell, outermost first.
pub(super) type CellLeaves = Vec<Rc<[Atom]>>;

/// What a computation gives, and the types of its cells, outermost first.
pub(super) fn of_computation(ty: &Type) -> Option<(&Type, Vec<Type>)> {
    match ty {
        Type::Evm(env, result) => Some((result, env.iter().rev().cloned().collect())),
        _ => None,
    }
}

fn action(a: Action) -> Lowered<Val> {
    Ok(Val::Action(Rc::new(a)))
}

impl Lowerer<'_, '_> {
    /// A term that is a computation, or runs one.
    pub(super) fn computation(&mut self, t: &Term) -> Lowered<Val> {
        let span = t.span();
        match t.exp() {
            Lam::EvmReturn(_, x) => {
                let x = self.term(x)?;
                action(Action::Return(x))
            }
            Lam::EvmBind(m, k) => {
                let (m, k) = (self.term(m)?, self.term(k)?);
                action(Action::Bind(m, k))
            }
            Lam::EvmAdd { env, cell, value } => {
                let ty = value.ty().clone();
                let value = Val::Data(self.data(value)?);
                action(Action::Add(env.len() - 1 - cell, ty, value))
            }
            Lam::EvmScope(zero, m) => {
                let zero = Val::Data(self.data(zero)?);
                let m = self.term(m)?;
                action(Action::Scope(zero, m))
            }
            Lam::EvmPar(ms) => {
                let ms = ms.iter().map(|m| self.term(m)).collect::<Lowered<_>>()?;
                action(Action::Par(ms))
            }
            Lam::EvmSequence(env, ms) => {
                let ms = self.term(ms)?;
                action(Action::Sequence(env.clone(), ms))
            }
            Lam::EvmRun(m, initial) => {
                let m = self.term(m)?;
                let types: Vec<Type> = initial.ty().items().unwrap_or(&[]).to_vec();
                let leaves = self.data(initial)?;
                // Innermost first, as the product has them.
                let mut cells = self.split(&types, &leaves, span)?;
                cells.reverse();
                let value = self.run(&m, &mut cells, span)?;
                let after: Vec<Atom> = cells.iter().rev().flat_map(|c| c.iter().copied()).collect();
                Ok(product(vec![value, Val::data(after)]))
            }
            _ => self.bug(span, "no accumulating computation"),
        }
    }

    /// Leaves of several types, apart.
    pub(super) fn split(
        &mut self,
        types: &[Type],
        leaves: &[Atom],
        span: Option<Span>,
    ) -> Lowered<CellLeaves> {
        let mut rest = leaves;
        let mut out = CellLeaves::new();
        for t in types {
            let n = self.leaf_count(t, span)?.min(rest.len());
            let (these, others) = rest.split_at(n);
            out.push(these.into());
            rest = others;
        }
        Ok(out)
    }

    /// Runs a computation: gives its value, and the cells their new values.
    pub(super) fn run(&mut self, m: &Val, cells: &mut CellLeaves, span: Option<Span>) -> Lowered<Val> {
        lambda::with_stack(|| self.run_here(m, cells, span))
    }
    fn run_here(&mut self, m: &Val, cells: &mut CellLeaves, span: Option<Span>) -> Lowered<Val> {
        let a = match m {
            Val::Action(a) => a,
            Val::Choice(c) => return self.run_choice(c, cells, span, |l, m, cells| l.run(m, cells, span)),
            Val::Open(f) => return self.run_open(*f, Vec::new(), cells, span),
            _ => return self.bug(span, "a computation that is none"),
        };
        match &**a {
            Action::Return(x) => Ok(x.clone()),
            Action::Bind(m, k) => {
                let x = self.run(m, cells, span)?;
                self.run_applied(k, x, cells, span)
            }
            Action::Add(level, ty, value) => {
                let Some(cell) = cells.get(*level).cloned() else {
                    return self.bug(span, "a cell that is not there");
                };
                cells[*level] = self.sum(ty, &cell, &value.all_leaves(), span)?.into();
                Ok(Val::data([]))
            }
            Action::Scope(zero, m) => {
                cells.push(zero.all_leaves().into());
                let x = self.run(m, cells, span)?;
                let Some(cell) = cells.pop() else { return self.bug(span, "a cell that is not there") };
                Ok(product(vec![Val::Data(cell), x]))
            }
            Action::Par(ms) => {
                let all = ms.iter().map(|m| self.run(m, cells, span)).collect::<Lowered<Vec<Val>>>()?;
                Ok(product(all))
            }
            Action::Sequence(env, ms) => self.run_all(env, ms, cells, span),
            Action::Apply(f, x) => self.run_applied(f, x.clone(), cells, span),
            Action::Call(f, args) => {
                let (id, given) = self.version_for(*f, args, span)?;
                let result = self.source.funs[*f].result.clone();
                self.call_with_cells(id, given, &result, cells, span)
            }
        }
    }

    /// `m <- f x; m`
    pub(super) fn run_applied(
        &mut self,
        f: &Val,
        x: Val,
        cells: &mut CellLeaves,
        span: Option<Span>,
    ) -> Lowered<Val> {
        match f {
            Val::Choice(c) => {
                self.run_choice(c, cells, span, |l, f, cells| l.run_applied(f, x.clone(), cells, span))
            }
            Val::Open(open) => {
                let Type::Fun(from, _) = self.kinds[open.kind].ty.clone() else {
                    return self.bug(span, "application of a value that is no function");
                };
                let x = self.coerced(&from, x, span)?;
                self.run_open(*open, x, cells, span)
            }
            f => {
                let m = self.apply(f, x, span)?;
                self.run(&m, cells, span)
            }
        }
    }

    pub(super) fn run_open(
        &mut self,
        f: Open,
        args: Vec<Atom>,
        cells: &mut CellLeaves,
        span: Option<Span>,
    ) -> Lowered<Val> {
        let id = self.applier(f.kind, span)?;
        let result = match &self.kinds[f.kind].ty {
            Type::Fun(_, result) => Type::clone(result),
            ty => ty.clone(),
        };
        let given = std::iter::once(f.atom).chain(args).collect();
        self.call_with_cells(id, given, &result, cells, span)
    }

    /// Calls a core function that takes the cells after its arguments and gives them after its results.
    fn call_with_cells(
        &mut self,
        id: core::FunId,
        mut given: Vec<Atom>,
        computation: &Type,
        cells: &mut CellLeaves,
        span: Option<Span>,
    ) -> Lowered<Val> {
        let Some((result, env)) = of_computation(computation) else {
            return self.bug(span, "a call of what is no computation");
        };
        given.extend(cells.iter().flat_map(|c| c.iter().copied()));
        let all = self.emit_some(Exp::Call(id, given), "r");
        let n = self.leaf_count(result, span)?.min(all.len());
        let value = self.of_leaves(result, &all[..n], span)?;
        *cells = self.split(&env, &all[n..], span)?;
        Ok(value)
    }

    /// Runs the one of several computations that a choice is.
    fn run_choice(
        &mut self,
        c: &Choice,
        cells: &mut CellLeaves,
        span: Option<Span>,
        run: impl Fn(&mut Self, &Val, &mut CellLeaves) -> Lowered<Val>,
    ) -> Lowered<Val> {
        let (mut params, mut branches) = (Vec::new(), Vec::new());
        for (vars, alternative) in self.alternatives(c, span)? {
            params.push(vars);
            let mut inside = cells.clone();
            branches.push(self.branch(|l| {
                let value = run(l, &alternative, &mut inside)?;
                let all = inside.iter().flat_map(|c| c.iter().copied()).collect::<Vec<Atom>>();
                Ok(Val::Tuple([value, Val::data(all)].into()))
            })?);
        }
        let sum = c.sum;
        self.meet(branches, cells, span, |bodies| {
            let arms = params.into_iter().zip(bodies).map(|(params, body)| core::Lam { params, body });
            Exp::Match(sum, arms.collect())
        })
    }

    /// Branches that give a value and all cells: only the cells that one of them changed are results.
    fn meet(
        &mut self,
        branches: Vec<OpenBranch>,
        cells: &mut CellLeaves,
        span: Option<Span>,
        make: impl FnOnce(Vec<core::Body>) -> Exp,
    ) -> Lowered<Val> {
        let before: Vec<Atom> = cells.iter().flat_map(|c| c.iter().copied()).collect();
        let mut changed = vec![false; before.len()];
        let mut apart = Vec::new();
        for (stms, both) in branches {
            let Val::Tuple(parts) = both else { return self.bug(span, "a branch without cells") };
            let after = parts[1].all_leaves();
            changed.iter_mut().zip(&before).zip(&after).for_each(|((c, a), b)| *c |= a != b);
            apart.push((stms, parts[0].clone(), after));
        }
        let kept = |after: Vec<Atom>| -> Vec<Atom> {
            after.into_iter().zip(&changed).filter(|(_, c)| **c).map(|(a, _)| a).collect()
        };
        let branches = apart
            .into_iter()
            .map(|(stms, value, after)| (stms, Val::Tuple([value, Val::data(kept(after))].into())));
        let Val::Tuple(parts) = self.branching(branches.collect(), make)? else {
            return self.bug(span, "a branch without cells");
        };
        let mut new = parts[1].all_leaves().into_iter();
        let mut at = changed.iter();
        for cell in cells.iter_mut() {
            let leaves = cell.iter().map(|old| match at.next() {
                Some(true) => new.next().unwrap_or(*old),
                _ => *old,
            });
            *cell = leaves.collect();
        }
        Ok(parts[0].clone())
    }

    /// The computations of an array: a map, in which each starts with zeros; then sums.
    fn run_all(
        &mut self,
        env: &Arc<[Type]>,
        ms: &Val,
        cells: &mut CellLeaves,
        span: Option<Span>,
    ) -> Lowered<Val> {
        let Val::Many(many) = ms else { return self.bug(span, "an array of computations that is none") };
        let Some((result, types)) = of_computation(&many.element).map(|(r, _)| (r.clone(), env.iter().rev()))
        else {
            return self.bug(span, "an array of no computations");
        };
        let types: Vec<Type> = types.cloned().collect();
        let mut zeros = CellLeaves::new();
        for t in &types {
            zeros.push(self.zeros(t, span)?.into());
        }
        let (param, arrays) = self.over(many)?;
        let mut after = zeros.clone();
        let mut changed = Vec::new();
        let body = self.body(span, |l| {
            let m = l.opened(&param, span)?;
            let value = l.run(&m, &mut after, span)?;
            let mut out = l.coerced(&result, value, span)?;
            if out.is_empty() {
                out.push(l.b.emit(Exp::Tuple(Vec::new()), "u"));
            }
            for (level, (new, old)) in after.iter().zip(&zeros).enumerate() {
                if new != old {
                    changed.push(level);
                    out.extend(new.iter().copied());
                }
            }
            Ok(out)
        })?;
        let lam = core::Lam { params: param.vars, body };
        let mut all =
            self.emit_all(Exp::Soac(core::Soac::Map { width: many.size, lam, arrays }), "rs").into_iter();
        let n = self.element_leaves(&result, span)?.len();
        let values: Vec<Atom> = all.by_ref().take(n).collect();
        let values = self.sized(values, Some(many.size));
        for level in changed {
            let arrays: Vec<Atom> = all.by_ref().take(zeros[level].len()).collect();
            let of_all = self.sum_of_all(&types[level], many.size, &arrays, &zeros[level], span)?;
            let cell = cells[level].clone();
            cells[level] = self.sum(&types[level], &cell, &of_all, span)?.into();
        }
        self.of_leaves(&Type::array(result), &values, span)
    }
}

/// Whether a term's value is a computation.
pub(super) fn is_computation(ty: &Type) -> bool {
    matches!(ty, Type::Evm(..))
}
