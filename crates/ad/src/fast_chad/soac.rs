//! Rules for histogram and scatter.
//!
//! Source: Schenck et al., SC 2022, section IV-D (scatter); Schenck et al., IFL 2023 (histogram). A histogram of sums
//! gathers; any other is the loop that it means, which is right for every operator and sequential.

use super::config::Mutation;
use super::ct::Ct;
use super::operator::{Kind, applied, kinds};
use super::reverse::{Env, Reverse};
use crate::contract::Unsupported;
use pullback_core::{Atom, Builder, Exp, Lam, Soac, Stm};
use pullback_prim::{Op, Scalar};

impl<'p> Reverse<'p> {
    pub(crate) fn hist(
        &mut self,
        stm: &Stm,
        width: Atom,
        lam: &Lam,
        (neutral, dst, indices, values): (&[Atom], &[Atom], Atom, &[Atom]),
        cts: Vec<Ct>,
        env: &mut Env,
    ) -> Result<Vec<Stm>, Unsupported> {
        self.rule("fast_chad.hist", stm);
        let scalars = dst.iter().all(|&a| self.b.elem(a).scalar().is_some());
        let sums = kinds(lam).iter().all(|&k| k == Kind::Add);
        if !(scalars && sums) || neutral.iter().any(|&a| self.is_active(a)) || self.touches(&stm.exp) {
            let (lam, dst, values) = (lam.clone(), dst.to_vec(), values.to_vec());
            return self.rewrite(stm, cts, env, |b| hist_loop(b, width, &lam, &dst, indices, &values));
        }
        for (k, c) in cts.iter().enumerate() {
            if c.is_absent() {
                continue;
            }
            let d = self.dense_of(stm.pat[k].into(), c);
            if self.is_active(values[k]) {
                let gathered = self.gather_or_zero(width, d.atoms[0], indices);
                self.contribute(env, values[k], Ct::new(d.desc.clone(), vec![gathered]));
            }
            self.contribute(env, dst[k], d);
        }
        Ok(vec![stm.clone()])
    }

    /// `array[indices[i]]`, zero where that is out of range; elements are scalars.
    fn gather_or_zero(&mut self, width: Atom, array: Atom, indices: Atom) -> Atom {
        let shift = self.mutant(Mutation::HistogramOffByOne);
        let scalar = self.b.elem(array).scalar().unwrap_or(Scalar::F64);
        let size = self.b.size(array, 0);
        let out = self.b.map(width, &[indices], |b, p| {
            let mut i: Atom = p[0].into();
            if shift {
                i = b.op2(Op::Add, i, Atom::i64(1));
            }
            let inside = in_range(b, i, size);
            let out = b.if_(inside, |b| vec![b.index(array, &[i])], |_| vec![Atom::Const(scalar.zero())]);
            vec![out[0].into()]
        });
        out[0].into()
    }

    /// Of several writes to a cell the last one wins: it alone gets the cell's cotangent.
    #[allow(clippy::too_many_arguments, reason = "the parts of one construct")]
    pub(crate) fn scatter(
        &mut self,
        stm: &Stm,
        width: Atom,
        dst: Atom,
        indices: Atom,
        values: Atom,
        c: &Ct,
        env: &mut Env,
    ) -> Result<Vec<Stm>, Unsupported> {
        self.rule("fast_chad.scatter", stm);
        if self.b.elem(dst).scalar().is_none() {
            let body = |b: &mut Builder<'_>| scatter_loop(b, width, dst, indices, values);
            return self.rewrite(stm, vec![c.clone()], env, body);
        }
        let y = stm.pat[0];
        let d = self.dense_of(y.into(), c);
        let bar = d.atoms[0];
        let scalar = self.b.elem(bar).scalar().unwrap_or(Scalar::F64);
        let zero = Atom::Const(scalar.zero());
        if self.is_active(values) {
            let size = self.b.size(bar, 0);
            let none = self.b.emit(Exp::Replicate(vec![size], Atom::i64(-1)), "none");
            let is = self.b.emit(Exp::Iota(width), "is");
            let winners = Soac::Scatter { width, dst: none, indices, values: is };
            let winners = self.b.emit(Exp::Soac(winners), "winners");
            let all = self.mutant(Mutation::ScatterLosersCount);
            let out = self.b.map(width, &[indices, is], |b, p| {
                let (i, me) = (p[0].into(), p[1].into());
                let inside = in_range(b, i, size);
                let read = |b: &mut Builder<'_>| {
                    let winner = b.index(winners, &[i]);
                    let won = b.op2(Op::Eq, winner, me);
                    let x = b.index(bar, &[i]);
                    vec![if all { x } else { b.select(won, x, zero) }]
                };
                let out = b.if_(inside, read, |_| vec![zero]);
                vec![out[0].into()]
            });
            self.contribute(env, values, Ct::new(d.desc.clone(), vec![out[0].into()]));
        }
        if self.is_active(dst) {
            let zeros = self.b.emit(Exp::Replicate(vec![width], zero), "zeros");
            let cleared = Soac::Scatter { width, dst: bar, indices, values: zeros };
            let kept = self.mutant(Mutation::ScatterKept);
            let cleared = if kept { bar } else { self.b.emit(Exp::Soac(cleared), "x_bar") };
            self.contribute(env, dst, Ct::new(d.desc, vec![cleared]));
        }
        Ok(vec![stm.clone()])
    }
}

/// `0 <= i < n`
pub(crate) fn in_range(b: &mut Builder<'_>, i: Atom, n: Atom) -> Atom {
    let below = b.op2(Op::Lt, i, n);
    let above = b.op2(Op::Le, Atom::i64(0), i);
    b.op2(Op::And, above, below)
}

/// The histogram as a loop that updates in place.
fn hist_loop(
    b: &mut Builder<'_>,
    width: Atom,
    lam: &Lam,
    dst: &[Atom],
    indices: Atom,
    values: &[Atom],
) -> Vec<Atom> {
    let size = b.size(dst[0], 0);
    let out = b.for_loop(width, dst, |b, k, state| {
        let i = b.index(indices, &[k.into()]);
        let inside = in_range(b, i, size);
        let state: Vec<Atom> = state.iter().map(|&v| v.into()).collect();
        let keep = state.clone();
        let add = |b: &mut Builder<'_>| {
            let before: Vec<Atom> = state.iter().map(|&a| b.index(a, &[i])).collect();
            let new: Vec<Atom> = values.iter().map(|&a| b.index(a, &[k.into()])).collect();
            let args: Vec<Atom> = before.into_iter().chain(new).collect();
            let after = applied(b, lam, &args);
            let pairs = state.iter().zip(after);
            pairs.map(|(&a, x)| b.emit(Exp::Update(a, vec![i], x), "dst")).collect()
        };
        b.if_(inside, add, |_| keep).into_iter().map(Atom::Var).collect()
    });
    out.into_iter().map(Atom::Var).collect()
}

/// The scatter as a loop that updates in place.
fn scatter_loop(b: &mut Builder<'_>, width: Atom, dst: Atom, indices: Atom, values: Atom) -> Vec<Atom> {
    let size = b.size(dst, 0);
    let out = b.for_loop(width, &[dst], |b, k, state| {
        let state: Atom = state[0].into();
        let i = b.index(indices, &[k.into()]);
        let inside = in_range(b, i, size);
        let write = |b: &mut Builder<'_>| {
            let x = b.index(values, &[k.into()]);
            vec![b.emit(Exp::Update(state, vec![i], x), "dst")]
        };
        b.if_(inside, write, |_| vec![state]).into_iter().map(Atom::Var).collect()
    });
    out.into_iter().map(Atom::Var).collect()
}
