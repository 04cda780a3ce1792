//! Recursive calls that are reversed where they run: no tape, and no second run.
//!
//! Source: ours. Where a function is affine in the results of the calls of itself inside, as sums over subproblems with weights
//!   are, the cotangent of such a result depends on the function's own cotangent and on values that are there before the
//!   call: `y = w * f(x) + ..` gives `f(x)` the cotangent `w * y_bar` whatever `f(x)` is. So `f_now(xs, y_bar)` computes that
//!   first, calls `f_now(x, w * y_bar)`, which returns the result together with the cotangents of its arguments, and reverses
//!   the rest of its body as any other: `w_bar = f(x) * y_bar`.
//! Who calls it: `f_rev` where a tape was given up (see [`super::kept`]), in place of a second forward run and a tape; and all
//!   callers whose forward run was for the tape only ([`Reverse::forget_tapes`]).
//! Assumes: accumulators that a call inside adds to are those that the function itself is given: others are not open yet where
//!   the call runs. All calls inside have the same use of arguments and results as the function.
//! Guarantees: every call runs forward once and is reversed once, and nothing is stored but what a body stores for itself.
//!   Cotangents are those of the other way, but that they are added to accumulators in another order.

use super::calls::{Pair, Role};
use super::operator::{Kind, float_scalar, kinds};
use super::reverse::Reverse;
use crate::tangent::{emit_scaled, is_zero};
use pullback_base::index::{IdMap, IdSet};
use pullback_core::prune::prune_body;
use pullback_core::traverse::{for_each_stm, free_vars, free_vars_exp, leads_to};
use pullback_core::{Atom, Body, Exp, FunId, Lam, Soac, Stm, Var};
use pullback_prim::{Op, Partial, Prim};

/// Inside a function whose calls of itself are reversed where they run.
pub(crate) struct AtOnce {
    /// What is called instead.
    pub(crate) now: FunId,
    /// By the first result of a call: the cotangents of its results.
    pub(crate) bars: IdMap<Var, Vec<Atom>>,
}

impl<'p> Reverse<'p> {
    /// The function with statements that compute the cotangents of its calls of itself before these calls, given those of its
    /// results, and what these are. `None` where they depend on results of the calls, or there are no such calls.
    pub(crate) fn pass_down(
        &mut self,
        pair: &Pair,
        lam: &Lam,
        y_bars: &[Option<Atom>],
    ) -> Option<(Lam, IdMap<Var, Vec<Atom>>)> {
        let given = lam.params.iter().zip(pair.roles.iter()).filter(|(_, r)| **r == Role::Accumulated);
        let given = given.map(|(v, _)| *v).collect();
        let mut descent = Descent {
            s: self,
            pair,
            given,
            dependent: IdSet::new(),
            bars: IdMap::new(),
            found: IdMap::new(),
        };
        if !descent.mark(&lam.body)? {
            return None;
        }
        descent.contribute_all(&lam.body.result, y_bars);
        let body = descent.body(&lam.body)?;
        let found = descent.found;
        (!found.is_empty()).then_some((Lam { params: lam.params.clone(), body }, found))
    }

    /// Forward runs whose tape alone is used are left out where the reverse function needs no tape.
    pub(crate) fn forget_tapes(&mut self, body: &mut Body) {
        let mut used: IdSet<Var> = body.result.iter().filter_map(|a| a.var()).collect();
        for_each_stm(body, &mut |stm| {
            stm.exp.for_each_atom(|a| used.extend(a.var()));
            stm.exp.bodies().iter().for_each(|s| used.extend(s.body.result.iter().filter_map(|a| a.var())));
        });
        self.forget_unused(body, &used);
        prune_body(self.b.program, body);
    }

    fn forget_unused(&self, body: &mut Body, used: &IdSet<Var>) {
        for stm in &mut body.stms {
            for scope in stm.exp.bodies_mut() {
                self.forget_unused(scope.body, used);
            }
            let Exp::Call(f, _) = &stm.exp else { continue };
            let Some(tape) = self.tape_not_needed(*f) else { continue };
            let Some((&last, results)) = stm.pat.split_last() else { continue };
            if !results.iter().any(|v| used.contains(v)) {
                *stm = Stm { pat: vec![last], exp: Exp::Inject(tape, 0, Vec::new()) };
            }
        }
    }
}

/// The walk from the results of a function to its calls of itself.
struct Descent<'a, 'p> {
    s: &'a mut Reverse<'p>,
    pair: &'a Pair,
    /// Parameters that have accumulators.
    given: IdSet<Var>,
    /// What depends on results of calls of the function.
    dependent: IdSet<Var>,
    /// Cotangents of what is dependent; of an array that of every element.
    bars: IdMap<Var, Atom>,
    found: IdMap<Var, Vec<Atom>>,
}

impl Descent<'_, '_> {
    /// Notes what is dependent. Returns whether there are calls of the function; `None` if there are calls that lead to it otherwise.
    fn mark(&mut self, body: &Body) -> Option<bool> {
        let mut any = false;
        for stm in &body.stms {
            let mut here = match &stm.exp {
                Exp::Call(f, _) if *f == self.pair.of => true,
                Exp::Call(f, _) => {
                    let program = &*self.s.b.program;
                    if leads_to(program, &program.funs[*f].body, self.pair.of) {
                        return None;
                    }
                    false
                }
                _ => false,
            };
            for scope in stm.exp.bodies() {
                here |= self.mark(scope.body)?;
            }
            any |= here;
            if here || free_vars_exp(&stm.exp).iter().any(|v| self.dependent.contains(v)) {
                self.dependent.extend(stm.pat.iter().copied());
            }
        }
        Some(any)
    }

    fn depends(&self, a: Atom) -> bool {
        a.var().is_some_and(|v| self.dependent.contains(&v))
    }

    fn contribute(&mut self, x: Atom, bar: Atom) {
        let Some(v) = x.var().filter(|v| self.dependent.contains(v) && self.s.is_active(x)) else { return };
        let total = match self.bars.remove(&v) {
            Some(before) => self.s.b.op2(Op::Add, before, bar),
            None => bar,
        };
        self.bars.insert(v, total);
    }

    fn contribute_all(&mut self, xs: &[Atom], bars: &[Option<Atom>]) {
        for (&x, bar) in xs.iter().zip(bars) {
            if let Some(bar) = *bar {
                self.contribute(x, bar);
            }
        }
    }

    /// What does not depend on calls comes first, then the cotangents, then the rest.
    fn body(&mut self, body: &Body) -> Option<Body> {
        let dependent = |stm: &&Stm| stm.pat.iter().any(|v| self.dependent.contains(v));
        let (after, before): (Vec<&Stm>, Vec<&Stm>) = body.stms.iter().partition(dependent);
        self.s.b.open();
        let rest = self.backwards(&after);
        let bars = self.s.b.close(Vec::new()).stms;
        let stms = before.into_iter().cloned().chain(bars).chain(rest?).collect();
        Some(Body { stms, result: body.result.clone() })
    }

    fn backwards(&mut self, stms: &[&Stm]) -> Option<Vec<Stm>> {
        let mut done = Vec::with_capacity(stms.len());
        for stm in stms.iter().rev() {
            let bars: Vec<Option<Atom>> = stm.pat.iter().map(|v| self.bars.remove(v)).collect();
            let exp = if bars.iter().all(Option::is_none) { stm.exp.clone() } else { self.exp(stm, &bars)? };
            done.push(Stm { pat: stm.pat.clone(), exp });
        }
        done.reverse();
        Some(done)
    }

    /// Hands the cotangents of a statement down to what it is made of. `None` where they are not known before it runs.
    fn exp(&mut self, stm: &Stm, bars: &[Option<Atom>]) -> Option<Exp> {
        match &stm.exp {
            Exp::Atom(x) => {
                self.contribute_all(&[*x], bars);
                Some(stm.exp.clone())
            }
            Exp::Prim(prim, args) => {
                self.prim(stm, *prim, args, bars[0]?)?;
                Some(stm.exp.clone())
            }
            Exp::If(z, x, y) if !self.depends(*z) => {
                let (x, y) = (self.inner(x, bars)?, self.inner(y, bars)?);
                Some(Exp::If(*z, x, y))
            }
            Exp::Match(z, arms) if !self.depends(*z) => {
                let arm =
                    |arm: &Lam| Some(Lam { params: arm.params.clone(), body: self.inner(&arm.body, bars)? });
                Some(Exp::Match(*z, arms.iter().map(arm).collect::<Option<_>>()?))
            }
            Exp::Soac(Soac::Map { width, lam, arrays }) if !arrays.iter().any(|&a| self.depends(a)) => {
                let lam = Lam { params: lam.params.clone(), body: self.inner(&lam.body, bars)? };
                Some(Exp::Soac(Soac::Map { width: *width, lam, arrays: arrays.clone() }))
            }
            Exp::Soac(Soac::Reduce { lam, neutral, arrays, .. }) => {
                let sums = kinds(lam).iter().all(|k| *k == Kind::Add);
                let program = &*self.s.b.program;
                let scalars = lam.params.iter().all(|v| float_scalar(&program.vars[*v].ty).is_some());
                let from_outside = free_vars_exp(&stm.exp)
                    .iter()
                    .all(|v| !self.dependent.contains(v) || arrays.contains(&(*v).into()));
                if !sums || !scalars || !from_outside || neutral.iter().any(|&a| self.depends(a)) {
                    return None;
                }
                self.contribute_all(arrays, bars);
                Some(stm.exp.clone())
            }
            Exp::Call(f, args) if *f == self.pair.of => {
                self.call(stm.pat[0], args, bars)?;
                Some(stm.exp.clone())
            }
            _ => None,
        }
    }

    /// A body inside, which may not read what is dependent around it.
    fn inner(&mut self, body: &Body, bars: &[Option<Atom>]) -> Option<Body> {
        if free_vars(body).iter().any(|v| self.dependent.contains(v)) {
            return None;
        }
        self.contribute_all(&body.result, bars);
        self.body(body)
    }

    /// The operands get what the rule for primitives gives them, if that does not look at anything dependent.
    fn prim(&mut self, stm: &Stm, prim: Prim, args: &[Atom], bar: Atom) -> Option<()> {
        let Prim::Op(op, s) = prim else { return None };
        if op == Op::Select {
            let [z, x, y] = *args else { return None };
            if self.depends(z) {
                return None;
            }
            let zero = Atom::Const(s.zero());
            for (x, yes, no) in [(x, bar, zero), (y, zero, bar)] {
                if self.depends(x) && self.s.is_active(x) {
                    let part = self.s.b.select(z, yes, no);
                    self.contribute(x, part);
                }
            }
            return Some(());
        }
        for (&x, partial) in args.iter().zip(prim.partials()?) {
            if !self.depends(x) || !self.s.is_active(x) || is_zero(partial) {
                continue;
            }
            if self.looks_at_dependent(partial, args) {
                return None;
            }
            let part = emit_scaled(&mut self.s.b, s, partial, args, stm.pat[0].into(), bar);
            self.contribute(x, part);
        }
        Some(())
    }

    fn looks_at_dependent(&self, partial: &Partial, args: &[Atom]) -> bool {
        match partial {
            Partial::Const(_) => false,
            Partial::Arg(i) => self.depends(args[*i as usize]),
            Partial::Result => true,
            Partial::Op(_, operands) => operands.iter().any(|p| self.looks_at_dependent(p, args)),
        }
    }

    fn call(&mut self, first: Var, args: &[Atom], bars: &[Option<Atom>]) -> Option<()> {
        let roles = self.s.roles(self.pair.of, args);
        let open = args.iter().zip(&roles).all(|(a, role)| match role {
            Role::Accumulated => a.var().is_some_and(|v| self.given.contains(&v)),
            Role::Constant | Role::Returned => true,
            Role::Read(..) => false,
        });
        let same = roles[..] == self.pair.roles[..]
            && bars.iter().map(Option::is_some).eq(self.pair.wanted.iter().copied());
        if !open || !same || args.iter().any(|&a| self.depends(a)) {
            return None;
        }
        self.found.insert(first, bars.iter().copied().flatten().collect());
        Some(())
    }
}
