//! Rules for scan.
//!
//! Source: Schenck et al., IFL 2023, section 5 (prefix sums, vectorised operators, Jacobians of steps); Paszke et al.,
//! FHPNC 2021 (lifted scan). With `y[i] = y[i-1] ⊕ a[i]`, starting from the neutral element, let `r[i]` be the cotangent
//! of `y[i]` by all ways: `r[i] = y_bar[i] + (∂(y[i] ⊕ a[i+1]) / ∂y[i])ᵀ r[i+1]`. Every `a[i]`, and every free variable
//! of the operator, then gets what the step `y[i-1] ⊕ a[i]` with cotangent `r[i]` gives it: a map (`scan_steps`).
//! The rules: addition: `r` is a sum from the right · choice of one argument (running minimum ..): the chosen element gets
//! the cotangent · element by element: by columns · every other one: `r` as `recurrence` computes it, or a loop backwards.

use super::config::ScanRule;
use super::cotangent::{Cotangent, coerce};
use super::operator::{Choice, Fold, Kind, applied, float_scalar, kinds};
use super::reduce::Changed;
use super::reverse::{Env, Reverse};
use crate::contract::Unsupported;
use crate::regularity::may_be_bracketed_anew;
use pullback_core::rename::{Subst, copy_applied, copy_lam};
use pullback_core::traverse::free_vars_lam;
use pullback_core::{Atom, Builder, Exp, Lam, Mark, Soac, Stm, Type, Var};
use pullback_prim::Op;

impl<'p> Reverse<'p> {
    pub(crate) fn scan(
        &mut self,
        stm: &Stm,
        fold: &Fold,
        cts: Vec<Cotangent>,
        env: &mut Env,
    ) -> Result<Vec<Stm>, Unsupported> {
        if self.touches(&stm.exp) {
            return self.scan_backward(stm, fold, cts, env);
        }
        self.by_groups(stm, fold, cts, env, Self::scan_group)
    }

    fn scan_group(&mut self, stm: &Stm, fold: &Fold, cts: Vec<Cotangent>, env: &mut Env) -> Changed {
        if cts.iter().all(Cotangent::is_absent) {
            return Ok(None);
        }
        self.rule("fast_chad.scan", stm);
        let inert = !fold.neutral.iter().any(|&e| self.is_active(e));
        if kinds(&fold.lam).iter().all(|&k| k == Kind::Add) {
            for (k, c) in cts.iter().enumerate().filter(|(_, c)| !c.is_absent()) {
                self.scan_sum(stm, fold, k, c, env);
            }
            return Ok(None);
        }
        if inert && let Some(choice) = self.choice(fold) {
            return Ok(Some(self.scan_choice(stm, fold, choice, &cts, env)?));
        }
        if let Some(columns) = fold.by_columns() {
            return Ok(Some(self.rewrite(stm, cts, env, |b| columns.interchanged(b))?));
        }
        let rule = self.scan_rule(fold);
        if rule == ScanRule::Backward {
            return Ok(Some(self.scan_backward(stm, fold, cts, env)?));
        }
        let r = self.completed(rule, stm, fold, &cts)?;
        self.rule("fast_chad.scan", stm);
        self.scan_steps(stm, fold, &r, env)?;
        self.scan_start(fold, &r, env)?;
        Ok(None)
    }

    /// Whether reductions and scans with the operator may be reversed without a loop over the elements.
    pub(crate) fn is_scanned_in_parallel(&self, fold: &Fold) -> bool {
        self.scan_rule(fold) != ScanRule::Backward
    }

    fn scan_rule(&self, fold: &Fold) -> ScanRule {
        let active = (0..fold.count()).filter(|&k| self.is_active(fold.left(k).into()));
        let mut types = active.map(|k| float_scalar(&self.b.ty(fold.left(k).into())));
        let first = types.next().flatten();
        let scalars = first.is_some() && types.all(|s| s == first);
        let lifted = may_be_bracketed_anew(self.b.program, &fold.lam);
        match self.config.scan {
            ScanRule::Chosen | ScanRule::Jacobians if scalars => ScanRule::Jacobians,
            ScanRule::Chosen | ScanRule::Jacobians | ScanRule::Lifted if lifted => ScanRule::Lifted,
            ScanRule::Chosen | ScanRule::Jacobians | ScanRule::Lifted | ScanRule::Backward => {
                ScanRule::Backward
            }
        }
    }

    /// `y[i] = a[0] + .. + a[i]`: every element gets what stands at it and to its right.
    fn scan_sum(&mut self, stm: &Stm, fold: &Fold, k: usize, c: &Cotangent, env: &mut Env) {
        let d = self.dense_of(stm.pat[k].into(), c);
        let zeros = self.element_zeros(fold, k);
        let mut atoms = Vec::new();
        for (&x, &zero) in d.atoms.iter().zip(&zeros) {
            let operator = self.addition(x);
            let x = self.b.emit(Exp::Reverse(x), "x_bar");
            let sums = self.scan_of(operator, fold.width, &[zero], &[x])[0];
            atoms.push(self.b.emit(Exp::Reverse(sums), "x_bar"));
        }
        if self.is_active(fold.neutral[k]) {
            let pairs = d.atoms.iter().zip(&zeros);
            let total = pairs.map(|(&x, &zero)| self.sum(fold.width, x, zero)).collect();
            let desc = self.stored_of(fold.neutral[k]);
            self.contribute(env, fold.neutral[k], Cotangent::new(desc, total));
        }
        self.contribute(env, fold.arrays[k], Cotangent::new(d.desc, atoms));
    }

    /// Zeros like the neutral element of a component.
    pub(crate) fn element_zeros(&mut self, fold: &Fold, k: usize) -> Vec<Atom> {
        self.dense_of(fold.neutral[k], &Cotangent::absent()).atoms
    }

    /// `y[i] = a[j[i]]`, the element chosen among the first: it gets `y_bar[i]`.
    fn scan_choice(
        &mut self,
        stm: &Stm,
        fold: &Fold,
        choice: Choice,
        cts: &[Cotangent],
        env: &mut Env,
    ) -> Result<Vec<Stm>, Unsupported> {
        let (iota, indexed) = self.with_index(fold, choice);
        let winners = self.b.fresh(Type::array(Type::I64), "winners");
        let chosen: Atom = winners.into();
        let mut seeds = Vec::new();
        for (k, c) in cts.iter().enumerate() {
            if !c.is_absent() && self.is_active(fold.arrays[k]) {
                seeds.push((fold.arrays[k], self.dense_of(stm.pat[k].into(), c)));
            }
        }
        let closed = |a: &Atom| a.var().filter(|v| !env.accs.contains_key(v));
        let mut targets: Vec<Var> = seeds.iter().filter_map(|(a, _)| closed(a)).collect();
        targets.dedup();
        self.with_accumulators(env, &targets, |s, inner| {
            let winner = s.b.fresh(Type::I64, "winner");
            let mut params = vec![winner];
            let mut operands = vec![chosen];
            s.b.open();
            for (a, d) in &seeds {
                let Some(item) = d.desc.element() else { continue };
                let row: Vec<Var> = item.types().into_iter().map(|t| s.b.fresh(t, "y_bar")).collect();
                let bar = Cotangent::new(item.clone(), row.iter().map(|&v| v.into()).collect());
                s.contribute(inner, *a, Cotangent::hot(fold.width, winner.into(), true, bar));
                params.extend(row);
                operands.extend(&d.atoms);
            }
            let body = s.b.close(vec![Atom::bool(false)]);
            let map = Soac::Map { width: fold.width, lam: Lam { params, body }, arrays: operands };
            s.b.emit_all(Exp::Soac(map), "done");
            Ok(Vec::new())
        })?;
        let pat = stm.pat.iter().copied().chain([winners]).collect();
        Ok(vec![iota, Stm { pat, exp: indexed.exp() }])
    }

    /// The steps `y[i-1] ⊕ a[i]` with cotangents `r[i]`: the map rule, with the prefixes as constants and the step run
    /// again, so that nothing is stored but the result.
    fn scan_steps(
        &mut self,
        stm: &Stm,
        fold: &Fold,
        r: &[Cotangent],
        env: &mut Env,
    ) -> Result<(), Unsupported> {
        let mut before = Vec::new();
        for (k, &e) in fold.neutral.iter().enumerate() {
            let y: Atom = stm.pat[k].into();
            let ty = self.b.ty(e);
            let first = self.b.emit(Exp::ArrayLit(ty, vec![e]), "first");
            let all = self.b.emit(Exp::Concat(vec![first, y]), "prefixes");
            before.push(self.b.slice(all, Atom::i64(0), fold.width, Atom::i64(1)));
        }
        self.b.open();
        let inputs: Vec<Atom> = before.into_iter().chain(fold.arrays.iter().copied()).collect();
        let results = self.b.map(fold.width, &inputs, |b, xs| {
            let args: Vec<Atom> = xs.iter().map(|&x| x.into()).collect();
            let step = copy_applied(b.program, &fold.lam, &args, &Subst::new());
            let again = b.emit_all(Exp::Marked(Mark::Recompute, step), "y");
            again.into_iter().map(Atom::Var).collect()
        });
        let steps = self.b.close(Vec::new());
        self.activate(&steps, &[]);
        for (&z, c) in results.iter().zip(r) {
            if !c.is_absent() {
                env.cts.insert(z, c.clone());
            }
        }
        self.rerun(&steps.stms, &[], env)
    }

    /// What the neutral element gets from the first step, if it varies.
    fn scan_start(&mut self, fold: &Fold, r: &[Cotangent], env: &mut Env) -> Result<(), Unsupported> {
        let varying: Vec<usize> = (0..fold.count()).filter(|&k| self.is_active(fold.neutral[k])).collect();
        if varying.is_empty() {
            return Ok(());
        }
        let some = self.b.op2(Op::Lt, Atom::i64(0), fold.width);
        let zero = Atom::i64(0);
        self.b.open();
        let first: Vec<Atom> = fold.arrays.iter().map(|&a| self.b.index(a, &[zero])).collect();
        let seeds: Vec<Cotangent> = r.iter().map(|c| self.element(c, &[zero])).collect();
        let bars = self.left_vjp(&fold.lam, &fold.neutral, &first, &seeds)?;
        let mut atoms = Vec::new();
        for &k in &varying {
            atoms.extend(self.dense_of(fold.neutral[k], &bars[k]).atoms);
        }
        let then = self.b.close(atoms);
        self.b.open();
        let zeros = varying.iter().flat_map(|&k| self.element_zeros(fold, k)).collect();
        let otherwise = self.b.close(zeros);
        let out = self.b.emit_all(Exp::If(some, then, otherwise), "x_bar");
        let mut out = out.into_iter().map(Atom::Var);
        for k in varying {
            let desc = self.stored_of(fold.neutral[k]);
            let mine = out.by_ref().take(desc.count()).collect();
            self.contribute(env, fold.neutral[k], Cotangent::new(desc, mine));
        }
        Ok(())
    }

    /// The scan as a loop that stacks its state, which the loop rule reverses.
    fn scan_backward(
        &mut self,
        stm: &Stm,
        fold: &Fold,
        cts: Vec<Cotangent>,
        env: &mut Env,
    ) -> Result<Vec<Stm>, Unsupported> {
        self.rule("fast_chad.scan", stm);
        self.rewrite(stm, cts, env, |b| scan_loop(b, fold))
    }

    // ---- steps with the left argument as the only variable ----

    /// Other names for the active free variables of a lambda, which are constants there.
    fn constants_for(&mut self, lam: &Lam) -> Subst {
        let frees = self.free_active(free_vars_lam(lam), &Env::default());
        frees.into_iter().map(|v| (v, self.b.emit(Exp::Atom(v.into()), "constant"))).collect()
    }

    /// Emits fresh names for `lefts` and returns them with a copy of the operator's body that varies with them only.
    pub(crate) fn step_of_left(
        &mut self,
        lam: &Lam,
        lefts: &[Atom],
        rights: &[Atom],
    ) -> (Vec<Var>, pullback_core::Body) {
        let constants = self.constants_for(lam);
        let mut fresh = Vec::new();
        for &left in lefts {
            let ty = self.b.ty(left);
            let x = self.b.fresh(ty, "x");
            self.b.emit_to(vec![x], Exp::Atom(left));
            fresh.push(x);
        }
        let args: Vec<Atom> = fresh.iter().map(|&x| x.into()).chain(rights.iter().copied()).collect();
        let body = copy_applied(self.b.program, lam, &args, &constants);
        let varying = lam.params.iter().zip(&fresh).filter(|(p, _)| self.active.contains(p));
        let varying: Vec<Var> = varying.map(|(_, &x)| x).collect();
        let step = Lam { params: fresh.clone(), body: body.clone() };
        self.active.extend(crate::activity::active_variables(self.b.program, &step, &varying));
        (fresh, body)
    }

    /// What the left arguments get from one step with these cotangents of its results.
    pub(crate) fn left_vjp(
        &mut self,
        lam: &Lam,
        lefts: &[Atom],
        rights: &[Atom],
        seeds: &[Cotangent],
    ) -> Result<Vec<Cotangent>, Unsupported> {
        let (xs, body) = self.step_of_left(lam, lefts, rights);
        let mut env = Env::default();
        for (&y, c) in body.result.iter().zip(seeds) {
            self.contribute(&mut env, y, c.clone());
        }
        self.rerun(&body.stms, &xs, &mut env)?;
        Ok(xs.iter().map(|&x| self.take(&mut env, x)).collect())
    }

    // ---- emission ----

    /// The operator that adds elements of an array of cotangents.
    pub(crate) fn addition(&mut self, array: Atom) -> Lam {
        let elem = self.b.elem(array);
        let scalar = elem.scalar().is_some();
        self.b.lam(&[elem.clone(), elem], "x_bar", |b, p| {
            let (x, y) = (p[0].into(), p[1].into());
            vec![if scalar { b.op2(Op::Add, x, y) } else { b.emit(Exp::Plus(x, y), "x_bar") }]
        })
    }

    /// Emits a scan with a copy of the operator.
    pub(crate) fn scan_of(&mut self, lam: Lam, width: Atom, neutral: &[Atom], arrays: &[Atom]) -> Vec<Atom> {
        let lam = copy_lam(self.b.program, &lam, &Subst::new());
        let scan = Soac::Scan { width, lam, neutral: neutral.to_vec(), arrays: arrays.to_vec() };
        self.b.emit_all(Exp::Soac(scan), "partial").into_iter().map(Atom::Var).collect()
    }

    /// `total` in the representation of `like`, which it was added to.
    pub(crate) fn converted(&mut self, total: &Cotangent, like: &Cotangent) -> Vec<Atom> {
        coerce(&mut self.b, total, &like.desc)
    }
}

/// The scan as a loop that stacks its state.
fn scan_loop(b: &mut Builder<'_>, fold: &Fold) -> Vec<Atom> {
    let out = b.for_loop(fold.width, &fold.neutral, |b, i, state| {
        let elements: Vec<Atom> = fold.arrays.iter().map(|&a| b.index(a, &[i.into()])).collect();
        let args: Vec<Atom> = state.iter().map(|&v| v.into()).chain(elements).collect();
        let next = applied(b, &fold.lam, &args);
        next.iter().chain(&next).copied().collect()
    });
    out.into_iter().skip(fold.count()).map(Atom::Var).collect()
}
