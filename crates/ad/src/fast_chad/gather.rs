//! The rule for gather, also where it is written `map (\i -> a[i]) is`.
//!
//! Source: Schenck et al., SC 2022, section IV-D, transposed: reading at indices becomes adding at indices, a histogram of
//! sums over the cotangent that `a` has already. Indices known to differ need no additions.

use super::cotangent::Cotangent;
use super::reverse::{Env, Reverse};
use super::scatter::zero_row;
use crate::contract::Unsupported;
use pullback_core::{Atom, Exp, Lam, Soac, Stm};
use pullback_prim::Op;

/// The array and the indices, if the map is a gather.
pub(crate) fn as_gather(lam: &Lam, arrays: &[Atom]) -> Option<(Atom, Atom)> {
    let ([i], [stm], [result], [indices]) =
        (&lam.params[..], &lam.body.stms[..], &lam.body.result[..], arrays)
    else {
        return None;
    };
    match &stm.exp {
        Exp::Index(a, ix)
            if *result == stm.pat[0].into() && ix[..] == [Atom::Var(*i)] && *a != Atom::Var(*i) =>
        {
            Some((*a, *indices))
        }
        _ => None,
    }
}

impl Reverse<'_> {
    /// `y = gather a is`: `a_bar += hist (+) 0 is y_bar`.
    pub(crate) fn gather(
        &mut self,
        stm: &Stm,
        (a, indices): (Atom, Atom),
        c: Cotangent,
        env: &mut Env,
    ) -> Result<Vec<Stm>, Unsupported> {
        self.rule("fast_chad.gather", stm);
        if !self.is_active(a) {
            return Ok(vec![stm.clone()]);
        }
        let moved = self.move_entries(a, &c, env, |s, i| {
            let inside = s.b.op2(Op::Le, Atom::i64(0), i);
            let at = |b: &mut pullback_core::Builder<'_>| vec![b.index(indices, &[i])];
            s.b.if_(inside, at, |_| vec![Atom::i64(-1)])[0].into()
        });
        if moved {
            return Ok(vec![stm.clone()]);
        }
        let Some(v) = a.var() else { return Ok(vec![stm.clone()]) };
        if env.accs.contains_key(&v) {
            return self.gather_by_map(stm, (a, indices), c, env);
        }
        if !self.stands_for(env, v).1.is_empty() {
            let mut forward = Vec::new();
            self.with_accumulators(env, &[v], |s, inner| {
                forward = s.gather_by_map(stm, (a, indices), c, inner)?;
                Ok(Vec::new())
            })?;
            return Ok(forward);
        }
        let d = self.dense_of(stm.pat[0].into(), &c);
        let width = self.b.size(indices, 0);
        let before = self.take(env, v);
        let distinct = indices.var().is_some_and(|v| self.distinct.contains(&v));
        let plain = distinct && before.is_absent();
        let base = self.dense_of(a, &before);
        let mut atoms = Vec::new();
        for (&dst, &values) in base.atoms.iter().zip(&d.atoms) {
            let soac = if plain {
                Soac::Scatter { width, dst, indices, values }
            } else {
                let lam = self.addition(values);
                let (neutral, dst, values) = (vec![zero_row(&mut self.b, dst)], vec![dst], vec![values]);
                Soac::Hist { width, lam, neutral, dst, indices, values }
            };
            atoms.push(self.b.emit(Exp::Soac(soac), "x_bar"));
        }
        self.contribute(env, a, Cotangent::new(base.desc, atoms));
        Ok(vec![stm.clone()])
    }

    /// As a map that reads, so that contributions go into the open accumulator of `a`.
    fn gather_by_map(
        &mut self,
        stm: &Stm,
        (a, indices): (Atom, Atom),
        c: Cotangent,
        env: &mut Env,
    ) -> Result<Vec<Stm>, Unsupported> {
        self.rewrite(stm, vec![c], env, |b| {
            let width = b.size(indices, 0);
            let ys = b.map(width, &[indices], |b, i| vec![b.index(a, &[i[0].into()])]);
            vec![ys[0].into()]
        })
    }
}
