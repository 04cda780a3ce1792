//! The rule for map, and its rerun for single elements.
//!
//! Source: T. Smeding, PhD thesis, figure 7.8 (build), sections 7.5.1.1 and 7.5.1.4; Schenck et al., SC 2022, section
//! IV-E. Free arrays of the function are accumulated, free scalars are summed up, inputs are read again and never
//! stored. If only finitely many elements of the results have cotangents, only those elements are run again.

use super::chosen::opens;
use super::cotangent::{Cotangent, HotEntry, coerce, split, zero};
use super::desc::{Desc, array, optional};
use super::reverse::{Env, Reverse, alias};
use crate::contract::Unsupported;
use pullback_core::prune::prune_body;
use pullback_core::rename::{Subst, copy_lam};
use pullback_core::traverse::free_vars_lam;
use pullback_core::{Atom, Body, Exp, Lam, Soac, Stm, Type, Var, View};
use pullback_prim::Op;
use std::rc::Rc;

/// At most so many copies of a map's function are made to run single elements again, and none inside so many others:
/// code size stays linear.
const MAX_COPIES: usize = 4;
const MAX_NESTED_RERUNS: usize = 2;

/// What the reverse map needs.
struct Parts<'a> {
    width: Atom,
    arrays: &'a [Atom],
    seeds: Vec<(Atom, Cotangent)>,
    scalars: &'a [Var],
}

impl<'p> Reverse<'p> {
    pub(crate) fn map(
        &mut self,
        stm: &Stm,
        width: Atom,
        lam: &Lam,
        arrays: &[Atom],
        cts: Vec<Cotangent>,
        env: &mut Env,
    ) -> Result<Vec<Stm>, Unsupported> {
        self.rule("fast_chad.map", stm);
        if self.is_sparse(&cts) && !self.has_effects(&stm.exp) {
            self.sparse_depth += 1;
            let done = self.sparse_map(stm, lam, arrays, &cts, env);
            self.sparse_depth -= 1;
            done?;
            return Ok(vec![stm.clone()]);
        }
        let frees = self.free_active(free_vars_lam(lam), env);
        let (mut accumulated, scalars): (Vec<Var>, Vec<Var>) =
            frees.into_iter().partition(|&v| self.accumulates(v));
        accumulated.extend(self.rows_to_open(lam, arrays, env));
        let mut seeds = Vec::new();
        for ((&y, &r), c) in stm.pat.iter().zip(&lam.body.result).zip(cts) {
            if !c.is_absent() {
                let c = if c.desc.element().is_some() { c } else { self.dense_of(y.into(), &c) };
                seeds.push((r, c));
            }
        }
        let mut forward = None;
        let mut descs = Vec::new();
        let out = self.with_accumulators(env, &accumulated, |s, inner| {
            let parts = Parts { width, arrays, seeds, scalars: &scalars };
            s.map_reverse(stm, lam, parts, inner, &mut forward, &mut descs)
        })?;
        self.rule("fast_chad.map", stm);
        let count: usize = descs.iter().map(Desc::count).sum();
        let parts = split(&descs, &out[..count]);
        let (inputs, columns) = parts.split_at(arrays.len());
        for (&a, c) in arrays.iter().zip(inputs) {
            let c = Cotangent::new(array(c.desc.clone()), c.atoms.clone());
            let c = self.with_shape(a, c);
            self.contribute(env, a, c);
        }
        for (&v, c) in scalars.iter().zip(columns) {
            let sums = c.atoms.iter().map(|&column| self.b.sum(width, column)).collect();
            self.contribute(env, v.into(), Cotangent::new(c.desc.clone(), sums));
        }
        Ok(forward.into_iter().collect())
    }

    /// Emits the reverse map and makes the forward one. `descs`: per input and per free scalar, the descriptor of one
    /// element's contribution.
    fn map_reverse(
        &mut self,
        stm: &Stm,
        lam: &Lam,
        parts: Parts<'_>,
        env: &mut Env,
        forward: &mut Option<Stm>,
        descs: &mut Vec<Desc>,
    ) -> Result<Vec<Atom>, Unsupported> {
        let Parts { width, arrays, seeds, scalars } = parts;
        let mut params = lam.params.clone();
        let mut operands = arrays.to_vec();
        let mut seed_params: Vec<Var> = Vec::new();
        let rows = self.rows_with_accumulators(lam, arrays, env);
        let i = self.b.fresh(Type::I64, "i");
        if !rows.is_empty() {
            operands.push(self.b.emit(Exp::Iota(width), "is"));
            seed_params.push(i);
        }
        self.b.open();
        self.b.open();
        for (r, c) in seeds {
            let Some(item) = c.desc.element().cloned() else { continue };
            let row: Vec<Var> = item.types().into_iter().map(|t| self.b.fresh(t, "y_bar")).collect();
            operands.extend(&c.atoms);
            seed_params.extend(&row);
            let row = row.into_iter().map(Atom::Var).collect();
            self.contribute(env, r, Cotangent::new(item, row));
        }
        for (p, accs) in rows {
            let row = View::Index(vec![i.into()]);
            let views = accs.iter().map(|&acc| self.b.emit(Exp::AccView(acc, row.clone()), "acc")).collect();
            Rc::make_mut(&mut env.accs).insert(p, views);
        }
        self.lanes.push(width);
        self.rounds.push(width);
        let rest = self.stms(&lam.body.stms, env);
        self.lanes.pop();
        self.rounds.pop();
        let rest = rest?;
        let outs: Vec<Cotangent> = lam.params.iter().chain(scalars).map(|&v| self.take(env, v)).collect();
        descs.extend(outs.iter().map(|c| c.desc.clone()));
        let mut body = self.b.close(outs.into_iter().flat_map(|c| c.atoms).collect());
        prune_body(self.b.program, &mut body);
        let mut fwd = self.flush_all(&lam.params);
        fwd.extend(rest);
        // The tape: parameters of the reverse function, boxed ones under another name.
        let plan = self.plan(&body, &fwd, &[]);
        let saves = plan.stored;
        let mut tapes = Vec::new();
        let mut tape_params = Vec::new();
        for &v in &saves {
            let ty = self.tape_type(v);
            tapes.push(self.tape(Type::array(ty.clone())));
            if self.b.program.vars[v].ty == ty {
                tape_params.push(v);
            } else {
                let stored = self.b.fresh(ty, "tape");
                self.load(v, stored.into());
                tape_params.push(stored);
            }
        }
        for stm in plan.again.into_iter().chain(body.stms) {
            self.b.emit_stm(stm);
        }
        let mut result = body.result;
        if result.is_empty() {
            result.push(Atom::bool(false));
        }
        let body = self.b.close(result);
        *forward = Some(self.map_forward(stm, lam, (width, arrays), fwd, &saves, &tapes));
        params.extend(tape_params);
        params.extend(seed_params);
        let seed_operands = operands.split_off(arrays.len());
        operands.extend(tapes.iter().map(|&v| Atom::Var(v)));
        operands.extend(seed_operands);
        let map = Soac::Map { width, lam: Lam { params, body }, arrays: operands };
        self.rule("fast_chad.map", stm);
        Ok(self.b.emit_all(Exp::Soac(map), "x_bar").into_iter().map(Atom::Var).collect())
    }

    /// Inputs that stand for other arrays and of which the function takes parts of rows only, where it opens accumulators for those.
    fn rows_to_open(&self, lam: &Lam, arrays: &[Atom], env: &Env) -> Vec<Var> {
        let inputs = lam.params.iter().zip(arrays).filter_map(|(&p, a)| Some((p, a.var()?)));
        let dear = inputs.filter(|&(p, a)| {
            self.config.views
                && self.can_alias(p)
                && opens(&lam.body, p)
                && !goes_over(&lam.body, p)
                && !self.stands_for(env, a).1.is_empty()
        });
        dear.map(|(_, a)| a).collect()
    }

    /// Inputs of which the function takes parts of rows only, with the open accumulators of the arrays: what it gives to a row goes into a view of
    /// them, since a cotangent of the row itself would be an array of zeros for each element.
    fn rows_with_accumulators(&self, lam: &Lam, arrays: &[Atom], env: &Env) -> Vec<(Var, Vec<Atom>)> {
        let inputs = lam.params.iter().zip(arrays);
        let known = inputs.filter_map(|(&p, a)| Some((p, env.accs.get(&a.var()?)?.clone())));
        let in_part = |p: Var| self.config.views && self.can_alias(p) && !goes_over(&lam.body, p);
        known.filter(|(p, _)| in_part(*p)).collect()
    }

    fn map_forward(
        &mut self,
        stm: &Stm,
        lam: &Lam,
        (width, arrays): (Atom, &[Atom]),
        stms: Vec<Stm>,
        saves: &[Var],
        tapes: &[Var],
    ) -> Stm {
        self.b.open();
        let stored = self.emit_saving(&stms, saves);
        let mut result = lam.body.result.clone();
        result.extend(stored);
        let body = self.b.close(result);
        let lam = copy_lam(self.b.program, &Lam { params: lam.params.clone(), body }, &Subst::new());
        let pat = stm.pat.iter().chain(tapes).copied().collect();
        Stm { pat, exp: Exp::Soac(Soac::Map { width, lam, arrays: arrays.to_vec() }) }
    }

    /// Whether only single elements have cotangents, and few enough of them need a copy of the function.
    fn is_sparse(&self, cts: &[Cotangent]) -> bool {
        let mut copies = 1;
        for c in cts.iter().filter(|c| !c.is_absent()) {
            match c.hot_parts() {
                Some(parts) if parts.dense.is_absent() => {
                    copies += parts.entries.iter().filter(|e| e.maybe).count();
                }
                _ => return false,
            }
        }
        self.config.sparse_map && copies <= MAX_COPIES && self.sparse_depth < MAX_NESTED_RERUNS
    }

    fn sparse_map(
        &mut self,
        stm: &Stm,
        lam: &Lam,
        arrays: &[Atom],
        cts: &[Cotangent],
        env: &mut Env,
    ) -> Result<(), Unsupported> {
        let hot = cts.iter().enumerate().filter_map(|(k, c)| Some((k, c.hot_parts()?.entries)));
        let all = hot.flat_map(|(k, entries)| entries.into_iter().map(move |e| (k, e)));
        let (maybe, definite): (Vec<_>, Vec<_>) = all.partition(|(_, e)| e.maybe);
        for (k, e) in maybe {
            let copy = self.copy_lam(lam);
            let seed = (copy.body.result[k], e.payload);
            self.rerun_guarded(stm, &copy, arrays, e.index, seed, env)?;
        }
        if definite.len() > 1 {
            return self.rerun_elements(stm, lam, arrays, definite, env);
        }
        for (k, e) in definite {
            let copy = self.copy_lam(lam);
            let seed = (copy.body.result[k], e.payload);
            self.rerun_element(&copy, arrays, e.index, seed, env)?;
            self.give_elements(&copy.params, arrays, e.index, false, env);
        }
        Ok(())
    }

    /// Runs the function on several elements and reverses that: a map over the literal arrays of these elements, so that
    /// there is one copy of the function, not one per element.
    fn rerun_elements(
        &mut self,
        stm: &Stm,
        lam: &Lam,
        arrays: &[Atom],
        entries: Vec<(usize, HotEntry)>,
        env: &mut Env,
    ) -> Result<(), Unsupported> {
        let width = Atom::i64(entries.len() as i64);
        self.b.open();
        let mut picked = Vec::new();
        for &a in arrays {
            let elements = entries.iter().map(|(_, e)| self.b.index(a, &[e.index])).collect();
            let elem = self.b.elem(a);
            picked.push(self.b.emit(Exp::ArrayLit(elem, elements), "picked"));
        }
        let lam = copy_lam(self.b.program, lam, &Subst::new());
        let map = Soac::Map { width, lam, arrays: picked };
        let results = self.b.emit_all(Exp::Soac(map), "again");
        let body = self.b.close(Vec::new());
        self.activate(&body, &[]);
        self.b.open();
        for (j, (k, e)) in entries.into_iter().enumerate() {
            self.contribute(
                env,
                results[k].into(),
                Cotangent::hot(width, Atom::i64(j as i64), false, e.payload),
            );
        }
        for &y in &results {
            let c = self.take(env, y);
            if !c.is_absent() {
                let dense = self.dense_of(y.into(), &c);
                self.contribute(env, y.into(), dense);
            }
        }
        let forward = self.stms(&body.stms, env)?;
        let reverse = self.b.close(Vec::new());
        self.rule("fast_chad.map", stm);
        for stm in forward.into_iter().chain(reverse.stms) {
            self.b.emit_stm(stm);
        }
        Ok(())
    }

    /// Runs the function on element `index` and reverses it; contributions to its parameters stay in `env`.
    fn rerun_element(
        &mut self,
        copy: &Lam,
        arrays: &[Atom],
        index: Atom,
        seed: (Atom, Cotangent),
        env: &mut Env,
    ) -> Result<(), Unsupported> {
        for (&p, &a) in copy.params.iter().zip(arrays) {
            self.b.emit_to(vec![p], Exp::Index(a, vec![index]));
        }
        self.contribute(env, seed.0, seed.1);
        self.rerun(&copy.body.stms, &copy.params, env)
    }

    fn give_elements(&mut self, params: &[Var], arrays: &[Atom], index: Atom, maybe: bool, env: &mut Env) {
        for (&p, &a) in params.iter().zip(arrays) {
            let c = self.take(env, p);
            let len = self.size(a, &[], 0);
            self.contribute(env, a, Cotangent::hot(len, index, maybe, c));
        }
    }

    /// As [`Self::rerun_element`], if there is an element. Contributions pass through a conditional.
    fn rerun_guarded(
        &mut self,
        stm: &Stm,
        copy: &Lam,
        arrays: &[Atom],
        index: Atom,
        seed: (Atom, Cotangent),
        env: &mut Env,
    ) -> Result<(), Unsupported> {
        let there = self.b.op2(Op::Le, Atom::i64(0), index);
        let mut inner = Env { accs: env.accs.clone(), ..Env::default() };
        self.b.open();
        self.rerun_element(copy, arrays, index, seed, &mut inner)?;
        self.rule("fast_chad.map", stm);
        let of_params: Vec<Cotangent> = copy.params.iter().map(|&p| self.take(&mut inner, p)).collect();
        let others: Vec<(Var, Cotangent)> = std::mem::take(&mut inner.cts).into_iter().collect();
        let all: Vec<Cotangent> =
            of_params.into_iter().chain(others.iter().map(|(_, c)| c.clone())).collect();
        let wide: Vec<Desc> = all.iter().map(|c| optional(&c.desc)).collect();
        let mut result: Vec<Atom> =
            all.iter().zip(&wide).flat_map(|(c, d)| coerce(&mut self.b, c, d)).collect();
        let effects_only = result.is_empty();
        if effects_only {
            result.push(Atom::bool(false));
        }
        let mut then = self.b.close(result);
        prune_body(self.b.program, &mut then);
        self.b.open();
        let mut zeros: Vec<Atom> = wide.iter().flat_map(|d| zero(&mut self.b, d)).collect();
        if effects_only {
            zeros.push(Atom::bool(false));
        }
        let otherwise = self.b.close(zeros);
        let out = self.b.emit_all(Exp::If(there, then, otherwise), "x_bar");
        let out: Vec<Atom> = if effects_only { Vec::new() } else { out.into_iter().map(Atom::Var).collect() };
        let parts = split(&wide, &out);
        for ((&p, &a), c) in copy.params.iter().zip(arrays).zip(&parts) {
            debug_assert!(self.active.contains(&p) || c.is_absent());
            let len = self.size(a, &[], 0);
            self.contribute(env, a, Cotangent::hot(len, index, true, c.clone()));
        }
        for ((v, _), c) in others.iter().zip(&parts[copy.params.len()..]) {
            self.contribute(env, (*v).into(), c.clone());
        }
        Ok(())
    }
}

/// Whether the function of a map certainly goes over all elements of an array: then it pays for zeros of that size. What it returns is
/// copied.
fn goes_over(body: &Body, array: Var) -> bool {
    body.result.contains(&array.into())
        || body.stms.iter().any(|stm| uses_all(stm, array, &|y| goes_over(body, y)))
}

/// Whether the statements of a body certainly go over all elements of an array.
pub(super) fn consumes(body: &Body, array: Var) -> bool {
    body.stms.iter().any(|stm| uses_all(stm, array, &|y| consumes(body, y)))
}

/// Whether a statement goes over all elements of an array, or gives it another name that is gone over.
fn uses_all(stm: &Stm, array: Var, by_name: &dyn Fn(Var) -> bool) -> bool {
    let is = |a: &Atom| *a == Atom::Var(array);
    match &stm.exp {
        Exp::Soac(Soac::Map { lam, arrays, .. }) => {
            let mut rows = lam.params.iter().zip(arrays).filter(|(_, a)| is(a));
            rows.any(|(row, _)| goes_over(&lam.body, *row))
        }
        Exp::Soac(Soac::Reduce { arrays, .. } | Soac::Scan { arrays, .. } | Soac::Fused { arrays, .. })
        | Exp::Soac(Soac::Hist { values: arrays, .. })
        | Exp::Concat(arrays)
        | Exp::ArrayLit(_, arrays) => arrays.iter().any(is),
        Exp::Soac(Soac::Scatter { values, .. }) => is(values),
        Exp::Plus(x, y) => is(x) || is(y),
        exp => match alias(exp) {
            Some((
                a,
                None | Some(View::Reverse | View::Rotate(_) | View::Rearrange(_) | View::Reshape { .. }),
            )) => is(&a) && by_name(stm.pat[0]),
            _ => false,
        },
    }
}
