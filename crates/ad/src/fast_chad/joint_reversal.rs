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
use super::cotangent::{Cotangent, split};
use super::desc::{Desc, optional};
use super::operator::{Kind, float_scalar, kinds};
use super::reverse::{Env, Forward, Reverse};
use crate::contract::Unsupported;
use crate::tangent::{Slope, emit_scaled, is_zero};
use pullback_base::index::{IdMap, IdSet};
use pullback_core::prune::prune_body;
use pullback_core::rename::{Subst, copy_lam};
use pullback_core::traverse::{free_vars, free_vars_exp, leads_to, used_vars};
use pullback_core::{Atom, Body, Exp, FunId, Lam, Soac, Stm, Var};
use pullback_prim::{Op, Partial, Prim};
use std::rc::Rc;

/// Inside a function whose calls of itself are reversed where they run.
pub(crate) struct AtOnce {
    /// What is called instead.
    pub(crate) now: FunId,
    /// By the first result of a call: the cotangents of its results.
    pub(crate) bars: IdMap<Var, Vec<Atom>>,
}

impl<'p> Reverse<'p> {
    /// Makes the function that needs no tape, if its calls of itself can be reversed where they run.
    pub(crate) fn now_function(&mut self, pair: &Pair, bars: &[Desc]) -> Result<Option<FunId>, Unsupported> {
        if !self.config.at_once {
            return Ok(None);
        }
        let fun = self.b.program.funs[pair.of].clone();
        let lam = Lam { params: fun.params, body: fun.body };
        let lam = copy_lam(self.b.program, &lam, &Subst::new());
        lam.params.iter().for_each(|&x| self.add_type(x));
        let lam = self.activated(pair, lam);
        let mut params = lam.params.clone();
        let mut y_bars = Vec::new();
        for (&y, &wanted) in lam.body.result.iter().zip(pair.wanted.iter()) {
            let desc = if wanted { self.stored_of(y) } else { Desc::Absent };
            if wanted && !matches!(desc, Desc::Real(_)) {
                return Ok(None);
            }
            y_bars.push(self.parameters(&desc.types(), "y_bar", &mut params).first().copied());
        }
        let Some((lam, found)) = self.pass_down(pair, &lam, &y_bars) else { return Ok(None) };
        self.activate(&lam.body, &[]);
        self.lifetimes = self.lifetimes_of(&lam);
        let results = fun.results.iter().cloned().chain(bars.iter().flat_map(Desc::types)).collect();
        let now = self.declare(&format!("{}_now", fun.name), results);
        self.at_once = Some(AtOnce { now, bars: found });
        self.b.open();
        let mut env = Env { accs: Rc::new(self.accumulators(pair, &lam, &mut params)), ..Env::default() };
        for (&y, &bar) in lam.body.result.iter().zip(&y_bars) {
            if let Some(bar) = bar {
                let desc = self.stored_of(y);
                self.contribute(&mut env, y, Cotangent::new(desc, vec![bar]));
            }
        }
        let rest = self.stms(&lam.body.stms, &mut env)?;
        let x_bars = self.returned(pair, &lam, &mut env);
        let reverse = self.b.close(Vec::new()).stms;
        let mut stms = self.flush_all(&lam.params);
        stms.extend(rest.into_iter().chain(reverse));
        let result = lam.body.result.iter().copied().chain(x_bars).collect();
        let mut body = Body { stms, result };
        prune_body(self.b.program, &mut body);
        let fun = &mut self.b.program.funs[now];
        (fun.params, fun.body) = (params, body);
        Ok(Some(now))
    }

    /// A call that is reversed where it runs: with the results come the cotangents of arguments.
    pub(crate) fn call_now(
        &mut self,
        stm: &Stm,
        now: FunId,
        (f, args): (FunId, &[Atom]),
        bars: Vec<Atom>,
        env: &mut Env,
    ) -> Forward {
        self.rule("fast_chad.call", stm);
        let roles = self.roles(f, args);
        let used = || args.iter().zip(&roles);
        let returned = used().filter(|(_, r)| **r == Role::Returned).map(|(a, _)| *a);
        let returned: Vec<Atom> = returned.collect();
        let descs: Vec<Desc> = returned.iter().map(|&a| optional(&self.stored_of(a))).collect();
        let types = descs.iter().flat_map(Desc::types);
        let out: Vec<Var> = types.map(|t| self.b.fresh(t, "x_bar")).collect();
        let atoms: Vec<Atom> = out.iter().map(|&v| v.into()).collect();
        for (x, c) in returned.into_iter().zip(split(&descs, &atoms)) {
            self.contribute(env, x, c);
        }
        let accumulated = used().filter(|(_, r)| **r == Role::Accumulated).filter_map(|(a, _)| a.var());
        let accs = accumulated.filter_map(|v| env.accs.get(&v)).flatten().copied();
        let operands = args.iter().copied().chain(bars).chain(accs).collect();
        let pat = stm.pat.iter().copied().chain(out).collect();
        Ok(vec![Stm { pat, exp: Exp::Call(now, operands) }])
    }

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
        let used = used_vars(body);
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
        let Prim::Op(_, s) = prim else { return None };
        for (i, (&x, partial)) in args.iter().zip(prim.partials()?).enumerate() {
            if !self.depends(x) || !self.s.is_active(x) || is_zero(partial) {
                continue;
            }
            if self.looks_at_dependent(partial, args) {
                return None;
            }
            let slope = Slope::new(self.s.b.program, (prim, s), (i, partial), args, stm.pat[0].into());
            let part = emit_scaled(&mut self.s.b, slope, bar);
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
