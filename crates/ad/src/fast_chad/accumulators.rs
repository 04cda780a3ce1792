//! Rules for accumulators in the source: user code, and the output of this algorithm (for derivatives of derivatives).
//!
//! Source: T. Smeding, PhD thesis, section 7.2, transposed: the cotangent of an accumulator's final value is an array
//! that does not change while the body is reversed, and adding `v` at `ix` transposes to reading it at `ix`. An index out
//! of range adds nothing, so it reads zero. The reverse pass never adds to source accumulators again.

use super::cotangent::Cotangent;
use super::desc::Desc;
use super::reverse::{Env, Final, Reverse, unsupported};
use super::scatter::{in_range, zero_part};
use crate::contract::Unsupported;
use pullback_core::rename::{Subst, copy_lam};
use pullback_core::traverse::for_each_stm;
use pullback_core::{Atom, Body, Exp, Lam, Program, Stm, Type, Var, View};
use pullback_prim::Op;

impl<'p> Reverse<'p> {
    pub(crate) fn with_acc(
        &mut self,
        stm: &Stm,
        inits: &[Atom],
        lam: &Lam,
        cts: Vec<Cotangent>,
        env: &mut Env,
    ) -> Result<Vec<Stm>, Unsupported> {
        self.rule("fast_chad.with_acc", stm);
        let (finals, results) = cts.split_at(inits.len());
        let mut to_inits = Vec::new();
        // A branch may choose between accumulators, these and others: then all have a cotangent.
        let all = chooses(self.b.program, &lam.body);
        for (k, c) in finals.iter().enumerate() {
            if all || !c.is_absent() {
                let d = self.dense_of(stm.pat[k].into(), c);
                self.finals.insert(lam.params[k], Final { ct: d.clone(), path: Vec::new() });
                to_inits.push((inits[k], d));
            }
        }
        for (r, c) in lam.body.result.iter().zip(results) {
            self.contribute(env, *r, c.clone());
        }
        let forward = self.stms(&lam.body.stms, env)?;
        for p in &lam.params {
            self.finals.remove(p);
        }
        for (x, d) in to_inits {
            self.contribute(env, x, d);
        }
        // Everything the body binds is visible to the reverse code outside; what is not read is pruned.
        let bound: Vec<Var> = forward.iter().flat_map(|s| s.pat.clone()).collect();
        let kept: Vec<Var> = bound.into_iter().filter(|v| !self.b.program.vars[*v].ty.is_acc()).collect();
        let mut body = lam.body.clone();
        body.stms = forward;
        body.result.extend(kept.iter().map(|&v| Atom::Var(v)));
        let inner = Lam { params: lam.params.clone(), body };
        let lam = copy_lam(self.b.program, &inner, &Subst::new());
        let pat = stm.pat.iter().copied().chain(kept).collect();
        Ok(vec![Stm { pat, exp: Exp::WithAcc(inits.to_vec(), lam) }])
    }

    /// The cotangent of the final value of a part of an accumulator is that part of the cotangent.
    pub(crate) fn derive_final(&mut self, acc: Atom, view: &View, y: Var) {
        let Some(whole) = acc.var().and_then(|v| self.finals.get(&v)).cloned() else { return };
        let part = match view {
            View::Index(ix) => {
                let path = whole.path.iter().chain(ix).copied().collect();
                Final { ct: whole.ct, path }
            }
            View::Proj(i) => {
                let Desc::Product(items) = &whole.ct.desc else { return };
                Final { ct: whole.ct.components(items.len())[*i].clone(), path: whole.path }
            }
            View::Slice(_) | View::Rearrange(_) | View::Reshape { .. } | View::Reverse | View::Rotate(_) => {
                let here = self.row_or_zero(&whole);
                let atoms = here.atoms.iter().map(|&x| self.b.emit(same_view(x, view), "x_bar")).collect();
                let ty = self.b.program.vars[y].ty.clone();
                let Type::Acc(ty) = ty else { return };
                Final { ct: Cotangent::new(self.stored(&ty), atoms), path: Vec::new() }
            }
        };
        self.finals.insert(y, part);
    }

    /// Where a branch chooses between (parts of) accumulators: the same choice between the cotangents of their final values.
    pub(crate) fn derive_chosen_final(&mut self, stm: &Stm) -> Result<(), Unsupported> {
        let scopes = match &stm.exp {
            Exp::If(..) | Exp::Match(..) if !self.finals.is_empty() => stm.exp.bodies(),
            _ => return Ok(()),
        };
        if !self.touches(&stm.exp) {
            return Ok(());
        }
        for (k, &y) in stm.pat.iter().enumerate() {
            if !self.b.program.vars[y].ty.is_acc() {
                continue;
            }
            self.rule("fast_chad.acc_view", stm);
            let mut desc = Desc::Absent;
            let mut lams = Vec::new();
            for scope in scopes.iter() {
                let arm = Lam { params: scope.binds.iter().collect(), body: scope.body.clone() };
                let arm = copy_lam(self.b.program, &arm, &Subst::new());
                self.b.open();
                let here = self.final_in_arm(&arm.body, k, stm)?;
                desc = here.desc;
                lams.push(Lam { params: arm.params, body: self.b.close(here.atoms) });
            }
            let exp = match (&stm.exp, &lams[..]) {
                (Exp::Match(z, _), _) => Exp::Match(*z, lams),
                (Exp::If(z, ..), [x, y]) => Exp::If(*z, x.body.clone(), y.body.clone()),
                _ => continue,
            };
            let atoms = self.b.emit_all(exp, "x_bar").into_iter().map(Atom::Var).collect();
            self.finals.insert(y, Final { ct: Cotangent::new(desc, atoms), path: Vec::new() });
        }
        Ok(())
    }

    /// The cotangent of the final value of the accumulator that an arm gives as result `k`.
    fn final_in_arm(&mut self, arm: &Body, k: usize, stm: &Stm) -> Result<Cotangent, Unsupported> {
        let mut only_names = true;
        for inner in &arm.stms {
            if inner.pat.iter().any(|&v| self.b.program.vars[v].ty.is_acc()) {
                self.derive_final_of(inner)?;
            } else if !self.has_effects(&inner.exp) {
                self.b.emit_stm(inner.clone());
            } else {
                only_names &= inner.pat.iter().all(|&v| self.b.program.vars[v].ty == Type::unit());
            }
        }
        match arm.result[k].var().and_then(|v| self.finals.get(&v)).cloned() {
            Some(part) if only_names => Ok(self.row_or_zero(&part)),
            _ => {
                let construct =
                    "a part of an accumulator that is chosen in a branch after additions with results";
                Err(unsupported(construct, "add before the branch, or after it", self.span(stm)))
            }
        }
    }

    /// A statement that binds only another name for (a part of) an accumulator.
    pub(crate) fn derive_final_of(&mut self, stm: &Stm) -> Result<(), Unsupported> {
        if let Exp::AccView(acc, view) = &stm.exp {
            self.rule("fast_chad.acc_view", stm);
            self.derive_final(*acc, view, stm.pat[0]);
        }
        if let Exp::Atom(Atom::Var(acc)) = &stm.exp
            && let Some(whole) = self.finals.get(acc).cloned()
        {
            self.finals.insert(stm.pat[0], whole);
        }
        self.derive_chosen_final(stm)
    }

    pub(crate) fn acc_add(&mut self, acc: Atom, ix: &[Atom], v: Atom, env: &mut Env) {
        let Some(whole) = acc.var().and_then(|a| self.finals.get(&a)).cloned() else { return };
        if !self.is_active(v) {
            return;
        }
        let path: Vec<Atom> = whole.path.iter().chain(ix).copied().collect();
        let zero = |s: &mut Self| s.dense_of(v, &Cotangent::absent()).atoms;
        let part = self.read_or_zero(&whole.ct, &path, zero);
        self.contribute(env, v, part);
    }

    /// The part at its path, zero (of the shape of other parts) if that is out of range.
    fn row_or_zero(&mut self, whole: &Final) -> Cotangent {
        let zero = |s: &mut Self| {
            let rows = whole.ct.atoms.iter();
            rows.map(|&array| zero_part(&mut s.b, array, whole.path.len())).collect()
        };
        self.read_or_zero(&whole.ct, &whole.path, zero)
    }

    /// The element at `path`, `zero` if that is out of range.
    fn read_or_zero(
        &mut self,
        whole: &Cotangent,
        path: &[Atom],
        zero: impl FnOnce(&mut Self) -> Vec<Atom>,
    ) -> Cotangent {
        if path.is_empty() {
            return whole.clone();
        }
        let Some(&array) = whole.atoms.first() else { return Cotangent::absent() };
        let mut inside = Atom::bool(true);
        for (dim, &i) in path.iter().enumerate() {
            let n = self.b.size(array, dim);
            let here = in_range(&mut self.b, i, n);
            inside = if dim == 0 { here } else { self.b.op2(Op::And, inside, here) };
        }
        self.b.open();
        let part = self.element(whole, path);
        let then = self.b.close(part.atoms);
        self.b.open();
        let zero = zero(self);
        let otherwise = self.b.close(zero);
        let out = self.b.emit_all(Exp::If(inside, then, otherwise), "x_bar");
        Cotangent::new(part.desc, out.into_iter().map(Atom::Var).collect())
    }
}

/// Whether a branch somewhere in the body returns an accumulator.
fn chooses(p: &Program, body: &Body) -> bool {
    let mut found = false;
    for_each_stm(body, &mut |stm| {
        found |=
            matches!(stm.exp, Exp::If(..) | Exp::Match(..)) && stm.pat.iter().any(|&v| p.vars[v].ty.is_acc());
    });
    found
}

fn same_view(x: Atom, view: &View) -> Exp {
    match view {
        View::Index(ix) => Exp::Index(x, ix.clone()),
        View::Slice(slice) => Exp::Slice(x, *slice),
        View::Proj(i) => Exp::Proj(x, *i),
        View::Rearrange(perm) => Exp::Rearrange(perm.clone(), x),
        View::Reshape { shape, from } => Exp::Reshape { shape: shape.clone(), from: *from, array: x },
        View::Reverse => Exp::Reverse(x),
        View::Rotate(k) => Exp::Rotate(x, *k),
    }
}
