//! Walking core: the operands of an expression, its sub-bodies with what they bind, free and bound variables.
//!
//! Passes that treat only a few constructs use this module for the others. Every `match` here is exhaustive, so a new
//! construct must say what its operands and bodies are before anything else compiles.
//!
//! Assumes unique binding (checked by `check`): the free variables of a body are the used ones that are not bound in
//! it. Recursion depth is the nesting depth of bodies.

use crate::ir::{Atom, Body, Exp, Fun, FunId, Lam, Loop, LoopForm, Program, SliceDim, Soac, Stm, Var, View};
use pullback_base::Few;
use pullback_base::index::IdSet;

/// The variables that an expression binds for a body.
#[derive(Clone, Copy, Debug, Default)]
pub struct Binds<'a> {
    /// Lambda parameters.
    params: &'a [Var],
    /// Loop state.
    state: &'a [(Var, Atom)],
    /// Loop counter.
    counter: Option<Var>,
}

impl<'a> Binds<'a> {
    fn of(params: &'a [Var]) -> Binds<'a> {
        Binds { params, ..Binds::default() }
    }
    /// The variables, in their order.
    pub fn iter(self) -> impl DoubleEndedIterator<Item = Var> + use<'a> {
        let state = self.state.iter().map(|p| p.0);
        self.params.iter().copied().chain(state).chain(self.counter)
    }
    /// Whether it is one of them.
    pub fn contains(self, v: Var) -> bool {
        self.iter().any(|bound| bound == v)
    }
}

/// A body inside an expression, with the variables that the expression binds for it.
#[derive(Clone, Debug)]
pub struct Scope<'a> {
    /// Lambda parameters, loop state, loop counter. The condition of a `while` loop and the loop's body are two scopes
    /// that share the state variables.
    pub binds: Binds<'a>,
    /// The body.
    pub body: &'a Body,
}

/// [`Scope`] with a body that may be changed.
#[derive(Debug)]
pub struct ScopeMut<'a> {
    /// As [`Scope::binds`].
    pub binds: Binds<'a>,
    /// The body.
    pub body: &'a mut Body,
}

// One list of operands serves the shared and the mutable visitor: `$iter` is `iter` or `iter_mut`, and the bindings of
// the patterns are references of the same kind.
macro_rules! visit_operands {
    ($exp:expr, $f:expr, $iter:ident) => {{
        let f = $f;
        match $exp {
            Exp::Atom(a) | Exp::Proj(a, _) | Exp::StopGradient(a) => f(a),
            Exp::Assert(a, _, values) => {
                f(a);
                values.$iter().for_each(f);
            }
            Exp::Size(a, _) | Exp::Iota(a) | Exp::Rearrange(_, a) | Exp::Reverse(a) => f(a),
            Exp::Prim(_, xs)
            | Exp::Check(_, xs)
            | Exp::Tuple(xs)
            | Exp::Inject(_, _, xs)
            | Exp::Call(_, xs)
            | Exp::ArrayLit(_, xs)
            | Exp::Concat(xs)
            | Exp::WithAcc(xs, _) => xs.$iter().for_each(f),
            Exp::Match(a, _) | Exp::If(a, _, _) => f(a),
            Exp::Loop(Loop { params, form, body: _, collect: _, attrs: _ }) => {
                for (_, init) in params.$iter() {
                    f(init);
                }
                match form {
                    LoopForm::For { i: _, n } => f(n),
                    LoopForm::While(_) => {}
                }
            }
            Exp::Index(a, ix) => {
                f(a);
                ix.$iter().for_each(f);
            }
            Exp::Slice(a, SliceDim { start, len, stride }) => {
                f(a);
                f(start);
                f(len);
                f(stride);
            }
            Exp::Update(a, ix, v) | Exp::AccAdd(a, ix, v) => {
                f(a);
                ix.$iter().for_each(&mut *f);
                f(v);
            }
            Exp::UpdateSlice(a, SliceDim { start, len, stride }, v) => {
                f(a);
                f(start);
                f(len);
                f(stride);
                f(v);
            }
            Exp::Gather(a, b) | Exp::Rotate(a, b) | Exp::Plus(a, b) => {
                f(a);
                f(b);
            }
            Exp::Replicate(shape, a) | Exp::Reshape { shape, from: _, array: a } => {
                shape.$iter().for_each(&mut *f);
                f(a);
            }
            Exp::Soac(soac) => match soac {
                Soac::Map { width, lam: _, arrays } => {
                    f(width);
                    arrays.$iter().for_each(f);
                }
                Soac::Reduce { width, lam: _, neutral, arrays, commutative: _ }
                | Soac::Scan { width, lam: _, neutral, arrays }
                | Soac::Fused { form: _, width, pre: _, lam: _, neutral, arrays } => {
                    f(width);
                    neutral.$iter().for_each(&mut *f);
                    arrays.$iter().for_each(f);
                }
                Soac::Hist { width, lam: _, neutral, dst, indices, values } => {
                    f(width);
                    neutral.$iter().for_each(&mut *f);
                    dst.$iter().for_each(&mut *f);
                    f(indices);
                    values.$iter().for_each(f);
                }
                Soac::Scatter { width, dst, indices, values } => {
                    f(width);
                    f(dst);
                    f(indices);
                    f(values);
                }
            },
            Exp::AccView(a, view) => {
                f(a);
                match view {
                    View::Index(ix) => ix.$iter().for_each(f),
                    View::Slice(SliceDim { start, len, stride }) => {
                        f(start);
                        f(len);
                        f(stride);
                    }
                    View::Proj(_) | View::Rearrange(_) | View::Reverse => {}
                    View::Reshape { shape, from: _ } => shape.$iter().for_each(f),
                    View::Rotate(k) => f(k),
                }
            }
            Exp::Vjp { lam: _, args, cotangents: more, seeds, algorithm: _ }
            | Exp::Jvp { lam: _, args, tangents: more, seeds, algorithm: _ } => {
                args.$iter().for_each(&mut *f);
                more.$iter().for_each(&mut *f);
                seeds.$iter().for_each(f);
            }
            Exp::Custom { primal: _, rule: _, args, tape: _ } => args.$iter().for_each(f),
            Exp::Marked(_, _) | Exp::Par(_) => {}
        }
    }};
}

impl Exp {
    /// Calls `f` with every direct operand in the order in which it is written; not with what sub-bodies mention.
    pub fn for_each_atom(&self, mut f: impl FnMut(Atom)) {
        let mut visit = |a: &Atom| f(*a);
        visit_operands!(self, &mut visit, iter);
    }
    /// Replaces every direct operand; sub-bodies stay as they are.
    pub fn map_atoms(&mut self, mut f: impl FnMut(Atom) -> Atom) {
        let mut visit = |a: &mut Atom| *a = f(*a);
        visit_operands!(self, &mut visit, iter_mut);
    }
    /// The direct operands in the order in which they are written.
    pub fn atoms(&self) -> Vec<Atom> {
        let mut out = Vec::new();
        self.for_each_atom(|a| out.push(a));
        out
    }
    /// The function that an operation maps over arrays, and the arrays: those of a map, also where it is fused with what comes after it.
    pub fn elementwise(&self) -> Option<(&Lam, &[Atom])> {
        let Exp::Soac(soac) = self else { return None };
        match soac {
            Soac::Map { lam, arrays, .. } | Soac::Fused { pre: lam, arrays, .. } => Some((lam, arrays)),
            Soac::Reduce { .. } | Soac::Scan { .. } | Soac::Hist { .. } | Soac::Scatter { .. } => None,
        }
    }
    /// The sub-bodies, in the order in which they are written.
    pub fn bodies(&self) -> Few<Scope<'_>> {
        match self {
            Exp::Match(_, arms) => arms.iter().map(scope).collect(),
            Exp::If(_, then, otherwise) => Few::Two([plain(then), plain(otherwise)]),
            Exp::Loop(l) => {
                let binds = Binds { state: &l.params, ..Binds::default() };
                match &l.form {
                    LoopForm::For { i, n: _ } => {
                        Few::One([Scope { binds: Binds { counter: Some(*i), ..binds }, body: &l.body }])
                    }
                    LoopForm::While(cond) => {
                        Few::Two([Scope { binds, body: cond }, Scope { binds, body: &l.body }])
                    }
                }
            }
            Exp::Soac(soac) => match soac {
                Soac::Map { lam, .. }
                | Soac::Reduce { lam, .. }
                | Soac::Scan { lam, .. }
                | Soac::Hist { lam, .. } => Few::One([scope(lam)]),
                Soac::Fused { pre, lam, .. } => Few::Two([scope(pre), scope(lam)]),
                Soac::Scatter { .. } => Few::None,
            },
            Exp::WithAcc(_, lam) | Exp::Vjp { lam, .. } | Exp::Jvp { lam, .. } => Few::One([scope(lam)]),
            Exp::Custom { primal, rule, args: _, tape: _ } => Few::Two([scope(primal), scope(rule)]),
            Exp::Marked(_, body) => Few::One([plain(body)]),
            Exp::Par(bodies) => bodies.iter().map(plain).collect(),
            Exp::Atom(_)
            | Exp::Prim(..)
            | Exp::Tuple(_)
            | Exp::Proj(..)
            | Exp::Inject(..)
            | Exp::Call(..)
            | Exp::ArrayLit(..)
            | Exp::Index(..)
            | Exp::Slice(..)
            | Exp::Update(..)
            | Exp::UpdateSlice(..)
            | Exp::Gather(..)
            | Exp::Size(..)
            | Exp::Iota(_)
            | Exp::Replicate(..)
            | Exp::Rearrange(..)
            | Exp::Reshape { .. }
            | Exp::Concat(_)
            | Exp::Reverse(_)
            | Exp::Rotate(..)
            | Exp::AccView(..)
            | Exp::AccAdd(..)
            | Exp::Plus(..)
            | Exp::StopGradient(_)
            | Exp::Assert(..)
            | Exp::Check(..) => Few::None,
        }
    }
    /// The sub-bodies, in the order in which they are written, to be changed.
    pub fn bodies_mut(&mut self) -> Few<ScopeMut<'_>> {
        match self {
            Exp::Match(_, arms) => arms.iter_mut().map(scope_mut).collect(),
            Exp::If(_, then, otherwise) => Few::Two([plain_mut(then), plain_mut(otherwise)]),
            Exp::Loop(l) => {
                let binds = Binds { state: &l.params, ..Binds::default() };
                match &mut l.form {
                    LoopForm::For { i, n: _ } => {
                        let binds = Binds { counter: Some(*i), ..binds };
                        Few::One([ScopeMut { binds, body: &mut l.body }])
                    }
                    LoopForm::While(cond) => {
                        Few::Two([ScopeMut { binds, body: cond }, ScopeMut { binds, body: &mut l.body }])
                    }
                }
            }
            Exp::Soac(soac) => match soac {
                Soac::Map { lam, .. }
                | Soac::Reduce { lam, .. }
                | Soac::Scan { lam, .. }
                | Soac::Hist { lam, .. } => Few::One([scope_mut(lam)]),
                Soac::Fused { pre, lam, .. } => Few::Two([scope_mut(pre), scope_mut(lam)]),
                Soac::Scatter { .. } => Few::None,
            },
            Exp::WithAcc(_, lam) | Exp::Vjp { lam, .. } | Exp::Jvp { lam, .. } => Few::One([scope_mut(lam)]),
            Exp::Custom { primal, rule, args: _, tape: _ } => Few::Two([scope_mut(primal), scope_mut(rule)]),
            Exp::Marked(_, body) => Few::One([plain_mut(body)]),
            Exp::Par(bodies) => bodies.iter_mut().map(plain_mut).collect(),
            Exp::Atom(_)
            | Exp::Prim(..)
            | Exp::Tuple(_)
            | Exp::Proj(..)
            | Exp::Inject(..)
            | Exp::Call(..)
            | Exp::ArrayLit(..)
            | Exp::Index(..)
            | Exp::Slice(..)
            | Exp::Update(..)
            | Exp::UpdateSlice(..)
            | Exp::Gather(..)
            | Exp::Size(..)
            | Exp::Iota(_)
            | Exp::Replicate(..)
            | Exp::Rearrange(..)
            | Exp::Reshape { .. }
            | Exp::Concat(_)
            | Exp::Reverse(_)
            | Exp::Rotate(..)
            | Exp::AccView(..)
            | Exp::AccAdd(..)
            | Exp::Plus(..)
            | Exp::StopGradient(_)
            | Exp::Assert(..)
            | Exp::Check(..) => Few::None,
        }
    }
}

fn scope(lam: &Lam) -> Scope<'_> {
    Scope { binds: Binds::of(&lam.params), body: &lam.body }
}
fn plain(body: &Body) -> Scope<'_> {
    Scope { binds: Binds::default(), body }
}
fn scope_mut(lam: &mut Lam) -> ScopeMut<'_> {
    ScopeMut { binds: Binds::of(&lam.params), body: &mut lam.body }
}
fn plain_mut(body: &mut Body) -> ScopeMut<'_> {
    ScopeMut { binds: Binds::default(), body }
}

/// Every variable mentioned in a body, nested bodies included.
pub fn used_vars(body: &Body) -> IdSet<Var> {
    let mut used = Vec::new();
    add_used(body, &mut used);
    used.into_iter().collect()
}

fn add_used(body: &Body, out: &mut Vec<Var>) {
    for stm in &body.stms {
        add_used_in(&stm.exp, out);
    }
    out.extend(body.result.iter().filter_map(|a| a.var()));
}

fn add_used_in(exp: &Exp, out: &mut Vec<Var>) {
    exp.for_each_atom(|a| out.extend(a.var()));
    for scope in exp.bodies() {
        add_used(scope.body, out);
    }
}

/// Every variable bound in a body, nested bodies included.
pub fn bound_vars(body: &Body) -> IdSet<Var> {
    let mut bound = Vec::new();
    add_bound(body, &mut bound);
    bound.into_iter().collect()
}

fn add_bound(body: &Body, out: &mut Vec<Var>) {
    for stm in &body.stms {
        out.extend(&stm.pat);
        add_bound_in(&stm.exp, out);
    }
}

fn add_bound_in(exp: &Exp, out: &mut Vec<Var>) {
    for scope in exp.bodies() {
        out.extend(scope.binds.iter());
        add_bound(scope.body, out);
    }
}

/// Those of `used` that are not in `bound`.
fn difference(mut used: Vec<Var>, mut bound: Vec<Var>) -> IdSet<Var> {
    used.sort_unstable();
    used.dedup();
    bound.sort_unstable();
    let mut bound = bound.into_iter().peekable();
    used.retain(|v| {
        while bound.next_if(|b| b < v).is_some() {}
        bound.peek() != Some(v)
    });
    used.into_iter().collect()
}

/// The variables that a body mentions and does not bind. Cost: its size (times a logarithm).
pub fn free_vars(body: &Body) -> IdSet<Var> {
    let (mut used, mut bound) = (Vec::new(), Vec::new());
    add_used(body, &mut used);
    add_bound(body, &mut bound);
    difference(used, bound)
}

/// The variables that a lambda mentions and does not bind.
pub fn free_vars_lam(lam: &Lam) -> IdSet<Var> {
    let (mut used, mut bound) = (Vec::new(), lam.params.clone());
    add_used(&lam.body, &mut used);
    add_bound(&lam.body, &mut bound);
    difference(used, bound)
}

/// The variables that an expression mentions and does not bind.
pub fn free_vars_exp(exp: &Exp) -> IdSet<Var> {
    let (mut used, mut bound) = (Vec::new(), Vec::new());
    add_used_in(exp, &mut used);
    add_bound_in(exp, &mut bound);
    difference(used, bound)
}

/// The variables that statements followed by results mention and do not bind.
pub fn free_vars_stms(stms: &[Stm], result: &[Atom]) -> IdSet<Var> {
    let mut used: Vec<Var> = result.iter().filter_map(|a| a.var()).collect();
    let mut bound = Vec::new();
    for stm in stms {
        add_used_in(&stm.exp, &mut used);
        bound.extend(&stm.pat);
        add_bound_in(&stm.exp, &mut bound);
    }
    difference(used, bound)
}

/// Calls `f` with every statement of a body, nested ones included, outer before inner, in the order written.
pub fn for_each_stm<'a>(body: &'a Body, f: &mut dyn FnMut(&'a Stm)) {
    for stm in &body.stms {
        f(stm);
        for scope in stm.exp.bodies() {
            for_each_stm(scope.body, f);
        }
    }
}

/// The functions that a body calls, those in nested bodies included.
pub fn called_functions(body: &Body) -> IdSet<FunId> {
    let mut out = IdSet::new();
    for_each_stm(body, &mut |stm| {
        if let Exp::Call(f, _) = &stm.exp {
            out.insert(*f);
        }
    });
    out
}

/// Whether calls in a body can lead to a function.
pub fn leads_to(program: &Program, body: &Body, f: FunId) -> bool {
    reachable_functions(program, called_functions(body)).contains(&f)
}

/// The functions that can be reached by calls from these, themselves included.
pub fn reachable_functions(program: &Program, from: impl IntoIterator<Item = FunId>) -> IdSet<FunId> {
    let mut seen = IdSet::new();
    let mut work: Vec<FunId> = from.into_iter().collect();
    while let Some(id) = work.pop() {
        if !seen.insert(id) {
            continue;
        }
        let Some(Fun { body, .. }) = program.funs.get(id) else { continue };
        work.extend(called_functions(body));
    }
    seen
}
