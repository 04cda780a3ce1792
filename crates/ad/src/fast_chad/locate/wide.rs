//! Statements that overwrite several elements at once, as loops that overwrite one after the other.
//!
//! ```text
//! y = v with [i] = x                      =>   y = loop u = v for k < n do u with [i, k] = x[k]
//! y = v with [start :+ n * step] = x      =>   y = loop u = v for k < n do u with [start + k * step] = x[k]
//! y = scatter v is x                      =>   y = loop u = v for k < n do if is[k] in bounds then u with [is[k]] = x[k] else u
//! y = hist (+) v is x                     =>   y = loop u = v for k < n do if is[k] in bounds then u with [is[k]] = u[is[k]] + x[k] else u
//! ```
//!
//! An element of a part of what lies in a slot is overwritten in the slot ([`super::rewrite`]); several at once would be overwritten in a copy of
//! the part, which may be much larger than they are. Rows are written element by element.
//! Guarantees: the same values, bit by bit, since that is what the operations mean. Work grows by a constant factor; it is sequential. So only those
//! statements are replaced that may overwrite a part of a slot.

use crate::fast_chad::hist::combined;
use crate::fast_chad::scatter::each_in_range;
use pullback_base::index::IdSet;
use pullback_core::{Atom, Body, Builder, Check, Exp, Lam, Program, SliceDim, Soac, Stm, Var};
use pullback_prim::Op;

/// The lambda in which these statements, given by their variables, are loops.
pub(super) fn one_by_one(program: &mut Program, mut lam: Lam, wide: &IdSet<Var>) -> Lam {
    body(program, &mut lam.body, wide);
    lam
}

fn body(program: &mut Program, here: &mut Body, wide: &IdSet<Var>) {
    let mut stms = Vec::with_capacity(here.stms.len());
    for mut stm in std::mem::take(&mut here.stms) {
        stm.exp.bodies_mut().into_iter().for_each(|scope| body(program, scope.body, wide));
        if stm.pat.iter().any(|v| wide.contains(v)) {
            stms.extend(as_loop(program, &stm));
        } else {
            stms.push(stm);
        }
    }
    here.stms = stms;
}

/// The statement as a loop. What overwrites no array stays as it is.
fn as_loop(program: &mut Program, stm: &Stm) -> Vec<Stm> {
    let mut b = Builder::new(program);
    let out = match &stm.exp {
        Exp::Update(of, ix, value) => {
            // Before anything is written.
            let numbers = [&ix[..], &b.shape(*of)].concat();
            b.emit(Exp::Check(Check::Index(ix.len()), numbers), "inside");
            vec![write(&mut b, *of, ix.clone(), *value)]
        }
        Exp::UpdateSlice(of, slice, value) => update_slice(&mut b, *of, slice, *value),
        Exp::Soac(Soac::Scatter { width, dst, indices, values }) => {
            each_in_range(&mut b, (*width, *indices), &[*dst], &mut |b, k, i, state| {
                let x = b.index(*values, &[k]);
                vec![write(b, state[0], vec![i], x)]
            })
        }
        Exp::Soac(Soac::Hist { width, lam, dst, indices, values, .. }) => {
            each_in_range(&mut b, (*width, *indices), dst, &mut |b, k, i, state| {
                let after = combined(b, (lam, values), (k, i), state);
                state.iter().zip(after).map(|(&u, x)| write(b, u, vec![i], x)).collect()
            })
        }
        _ => return vec![stm.clone()],
    };
    for (&v, a) in stm.pat.iter().zip(out) {
        b.emit_to(vec![v], Exp::Atom(a));
    }
    b.finish()
}

fn update_slice(b: &mut Builder<'_>, of: Atom, slice: &SliceDim, value: Atom) -> Vec<Atom> {
    let SliceDim { start, len, stride } = *slice;
    // Before anything is written.
    let size = b.size(of, 0);
    b.emit(Exp::Check(Check::Slice, vec![start, len, stride, size]), "inside");
    let out = b.for_loop(len, &[of], |b, k, state| {
        let x = b.index(value, &[k.into()]);
        let offset = b.op2(Op::Mul, k.into(), stride);
        let i = b.op2(Op::Add, start, offset);
        vec![write(b, state[0].into(), vec![i], x)]
    });
    vec![out[0].into()]
}

/// An array with a value written at indices, element by element.
fn write(b: &mut Builder<'_>, array: Atom, ix: Vec<Atom>, value: Atom) -> Atom {
    if b.ty(value).rank() == 0 {
        return b.emit(Exp::Update(array, ix, value), "written");
    }
    let n = b.size(value, 0);
    let out = b.for_loop(n, &[array], |b, k, state| {
        let x = b.index(value, &[k.into()]);
        let ix = ix.iter().copied().chain([k.into()]).collect();
        vec![write(b, state[0].into(), ix, x)]
    });
    out[0].into()
}
