//! Activity analysis: which variables depend differentiably on the wanted inputs.
//!
//! Forward, flow-insensitive within loops (fixpoint on the loop state). Assumes a program without `vjp`/`jvp` inside.
//! Guarantees: a variable outside the set has derivative zero with respect to the inputs; every variable in the set has
//! a type with floats. Accumulators for values with floats always count as active, because what is added to them is only
//! known at their uses.

use pullback_base::index::IdSet;
use pullback_core::{Atom, Body, Exp, Lam, LoopForm, Program, Soac, Type, Var};

/// The active variables of a lambda whose parameters in `inputs` are active.
pub fn active_variables(program: &Program, lam: &Lam, inputs: &[Var]) -> IdSet<Var> {
    let mut a = Activity { program, active: inputs.iter().copied().collect() };
    a.body(&lam.body);
    a.active
}

struct Activity<'p> {
    program: &'p Program,
    active: IdSet<Var>,
}

impl Activity<'_> {
    fn is(&self, a: &Atom) -> bool {
        a.var().is_some_and(|v| self.active.contains(&v))
    }
    fn any(&self, atoms: &[Atom]) -> bool {
        atoms.iter().any(|a| self.is(a))
    }
    /// Marks `v`, if its type can be active; says whether that is news.
    fn mark(&mut self, v: Var, on: bool) -> bool {
        let ty = &self.program.vars[v].ty;
        let can = match ty {
            Type::Acc(t) => self.program.is_active(t),
            Type::Scalar(_) | Type::Tuple(_) | Type::Sum(_) | Type::Named(_) | Type::Array(_) => {
                self.program.is_active(ty)
            }
        };
        on && can && self.active.insert(v)
    }
    fn mark_all(&mut self, vs: &[Var], on: bool) {
        for &v in vs {
            self.mark(v, on);
        }
    }
    fn mark_results(&mut self, vs: &[Var], body: &Body) {
        for (&v, r) in vs.iter().zip(&body.result) {
            let on = self.is(r);
            self.mark(v, on);
        }
    }
    fn body(&mut self, body: &Body) {
        for stm in &body.stms {
            self.stm(&stm.pat, &stm.exp);
        }
    }
    fn stm(&mut self, pat: &[Var], exp: &Exp) {
        let on = match exp {
            Exp::Atom(a)
            | Exp::Proj(a, _)
            | Exp::Index(a, _)
            | Exp::Slice(a, _)
            | Exp::Gather(a, _)
            | Exp::Replicate(_, a)
            | Exp::Rearrange(_, a)
            | Exp::Reverse(a)
            | Exp::Rotate(a, _) => self.is(a),
            Exp::Reshape { array, .. } => self.is(array),
            Exp::Prim(_, args)
            | Exp::Tuple(args)
            | Exp::Inject(_, _, args)
            | Exp::ArrayLit(_, args)
            | Exp::Concat(args)
            | Exp::Call(_, args) => self.any(args),
            Exp::Update(a, _, x) | Exp::UpdateSlice(a, _, x) | Exp::Plus(a, x) => self.is(a) || self.is(x),
            Exp::Size(..)
            | Exp::Iota(_)
            | Exp::StopGradient(_)
            | Exp::AccAdd(..)
            | Exp::Assert(..)
            | Exp::Check(..) => false,
            Exp::AccView(..) => true,
            Exp::Match(z, arms) => {
                let on = self.is(z);
                for arm in arms {
                    self.mark_all(&arm.params, on);
                    self.body(&arm.body);
                    self.mark_results(pat, &arm.body);
                }
                return;
            }
            Exp::If(_, x, y) => {
                for body in [x, y] {
                    self.body(body);
                    self.mark_results(pat, body);
                }
                return;
            }
            Exp::Loop(l) => {
                let state: Vec<Var> = l.params.iter().map(|p| p.0).collect();
                for (v, init) in &l.params {
                    let on = self.is(init);
                    self.mark(*v, on);
                }
                loop {
                    if let LoopForm::While(cond) = &l.form {
                        self.body(cond);
                    }
                    self.body(&l.body);
                    let news = state.iter().zip(&l.body.result).fold(false, |news, (&v, r)| {
                        let on = self.is(r);
                        self.mark(v, on) || news
                    });
                    if !news {
                        break;
                    }
                }
                // The final state is active if the state is, also after zero iterations.
                for (&v, s) in pat.iter().zip(&state) {
                    let on = self.active.contains(s);
                    self.mark(v, on);
                }
                for (&v, r) in pat.iter().zip(&l.body.result).skip(state.len()) {
                    let on = self.is(r);
                    self.mark(v, on);
                }
                return;
            }
            Exp::Soac(soac) => return self.soac(pat, soac),
            Exp::WithAcc(_, lam) => {
                self.mark_all(&lam.params, true);
                self.body(&lam.body);
                let (finals, rest) = pat.split_at(lam.params.len());
                self.mark_all(finals, true);
                self.mark_results(rest, &lam.body);
                return;
            }
            Exp::Vjp { lam, args, cotangents, .. } => {
                self.call(pat, lam, args);
                self.any(args) || self.any(cotangents)
            }
            Exp::Jvp { lam, args, tangents, .. } => {
                self.call(pat, lam, args);
                self.any(args) || self.any(tangents)
            }
            Exp::Custom { primal, args, .. } => return self.call(pat, primal, args),
            Exp::Marked(_, body) => {
                self.body(body);
                return self.mark_results(pat, body);
            }
            Exp::Par(bodies) => {
                let mut rest = pat;
                for body in bodies {
                    self.body(body);
                    self.mark_results(rest, body);
                    rest = &rest[body.result.len().min(rest.len())..];
                }
                return;
            }
        };
        self.mark_all(pat, on);
    }
    fn call(&mut self, pat: &[Var], lam: &Lam, args: &[Atom]) {
        for (&p, a) in lam.params.iter().zip(args) {
            let on = self.is(a);
            self.mark(p, on);
        }
        self.body(&lam.body);
        self.mark_results(pat, &lam.body);
    }
    fn soac(&mut self, pat: &[Var], soac: &Soac) {
        match soac {
            Soac::Map { lam, arrays, .. } => self.call(pat, lam, arrays),
            Soac::Reduce { lam, neutral, arrays, .. } | Soac::Scan { lam, neutral, arrays, .. } => {
                let on = self.any(neutral) || self.any(arrays);
                self.operator(lam, on);
                let on =
                    on || lam.params.iter().any(|p| self.active.contains(p)) || self.any(&lam.body.result);
                self.mark_all(pat, on);
            }
            Soac::Fused { pre, lam, neutral, arrays, .. } => {
                self.call(&[], pre, arrays);
                let on = self.any(neutral) || self.any(&pre.body.result);
                self.operator(lam, on);
                self.mark_all(pat, on || self.any(&lam.body.result));
            }
            Soac::Hist { lam, neutral, dst, values, .. } => {
                let on = self.any(neutral) || self.any(dst) || self.any(values);
                self.operator(lam, on);
                let on = on || self.any(&lam.body.result);
                self.mark_all(pat, on);
            }
            Soac::Scatter { dst, values, .. } => {
                let on = self.is(dst) || self.is(values);
                self.mark_all(pat, on);
            }
        }
    }
    /// An operator mixes its components, so one active component makes all of them active.
    fn operator(&mut self, lam: &Lam, on: bool) {
        self.mark_all(&lam.params, on);
        self.body(&lam.body);
        if !on && self.any(&lam.body.result) {
            self.mark_all(&lam.params, true);
            self.body(&lam.body);
        }
    }
}
