//! Terms made of terms: the same form with other parts, substitution, copies with binders of their own.
//!
//! Guarantee: a term in which each variable is bound once stays such a term. So what is put in for a variable is not caught by a binder.

use super::a_core::{Exp, Fold, IndexFn, Names, Term, Var, made};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The same form, with parts that this function makes of its parts. Binders stay.
pub(super) fn with_parts(t: &Term, f: &mut impl FnMut(&Term) -> Term) -> Term {
    let fun = |f: &mut dyn FnMut(&Term) -> Term, g: &IndexFn| IndexFn {
        params: g.params.clone(),
        index: g.index.iter().map(f).collect(),
    };
    made(match t.exp() {
        Exp::Const(_) | Exp::Size(_) | Exp::Iota(_) | Exp::Var(_) => return t.clone(),
        Exp::Let(x, u, v) => Exp::Let(x.clone(), f(u), f(v)),
        Exp::Cond(b, u, v) => Exp::Cond(f(b), f(u), f(v)),
        Exp::Op(op, ts) => Exp::Op(*op, ts.iter().map(f).collect()),
        Exp::Index(t, ix) => Exp::Index(f(t), ix.iter().map(f).collect()),
        Exp::SumOuter(t) => Exp::SumOuter(f(t)),
        Exp::ArgOuter(which, t) => Exp::ArgOuter(*which, f(t)),
        Exp::Gather(sh, t, g) => Exp::Gather(sh.clone(), f(t), fun(f, g)),
        Exp::Scatter(sh, t, g) => Exp::Scatter(sh.clone(), f(t), fun(f, g)),
        Exp::ArgScatter(which, sh, t, g) => Exp::ArgScatter(*which, sh.clone(), f(t), fun(f, g)),
        Exp::Stack(ts) => Exp::Stack(ts.iter().map(f).collect()),
        Exp::Replicate(k, t) => Exp::Replicate(k.clone(), f(t)),
        Exp::Transpose(j, t) => Exp::Transpose(j.clone(), f(t)),
        Exp::Reshape(sh, t) => Exp::Reshape(sh.clone(), f(t)),
        Exp::Scanl(g, z, ts) => {
            let (z, ts) = (f(z), ts.iter().map(&mut *f).collect());
            let fold = Fold { size: g.size.clone(), params: g.params.clone(), body: f(&g.body) };
            Exp::Scanl(Arc::new(fold), z, ts)
        }
        Exp::Build1(k, i, t) => Exp::Build1(k.clone(), i.clone(), f(t)),
    })
}

/// `t[u/x]`
pub(super) fn substitute(names: &mut Names, t: &Term, x: &Var, u: &Term) -> Term {
    put(names, t, &BTreeMap::from([(x.id(), u.clone())]))
}

/// A copy with a term for each of these variables, and with binders of its own.
pub(super) fn substitute_all(names: &mut Names, t: &Term, map: &BTreeMap<u32, Term>) -> Term {
    let t = copied(names, t);
    put(names, &t, map)
}

/// An index function with new variables.
pub(super) fn again(names: &mut Names, f: &IndexFn) -> IndexFn {
    let params: Vec<Var> = f.params.iter().map(|i| names.again(i)).collect();
    let map = f.params.iter().map(Var::id).zip(params.iter().map(Term::var)).collect();
    IndexFn { index: f.index.iter().map(|t| put(names, t, &map)).collect(), params }
}

/// Several terms for variables at once. Each is copied with new binders where it is put.
fn put(names: &mut Names, t: &Term, map: &BTreeMap<u32, Term>) -> Term {
    if !map.keys().any(|x| t.free().contains(x)) {
        return t.clone();
    }
    match t.exp() {
        Exp::Var(x) => map.get(&x.id()).map_or_else(|| t.clone(), |u| copied(names, u)),
        _ => with_parts(t, &mut |part| put(names, part, map)),
    }
}

/// A copy of a term, to stand beside it.
pub(super) fn copied(names: &mut Names, t: &Term) -> Term {
    match t.exp() {
        Exp::Let(x, u, v) => {
            let y = names.again(x);
            let v = substitute(names, v, x, &Term::var(&y));
            made(Exp::Let(y, copied(names, u), copied(names, &v)))
        }
        Exp::Build1(k, i, t) => {
            let j = names.again(i);
            let t = substitute(names, t, i, &Term::var(&j));
            made(Exp::Build1(k.clone(), j, copied(names, &t)))
        }
        Exp::Gather(sh, t, f) => {
            let f = copied_function(names, f);
            made(Exp::Gather(sh.clone(), copied(names, t), f))
        }
        Exp::Scatter(sh, t, f) => {
            let f = copied_function(names, f);
            made(Exp::Scatter(sh.clone(), copied(names, t), f))
        }
        Exp::ArgScatter(which, sh, t, f) => {
            let f = copied_function(names, f);
            made(Exp::ArgScatter(*which, sh.clone(), copied(names, t), f))
        }
        Exp::Scanl(f, z, ts) => {
            let (z, ts) = (copied(names, z), ts.iter().map(|t| copied(names, t)).collect());
            made(Exp::Scanl(Arc::new(copied_fold(names, f)), z, ts))
        }
        _ => with_parts(t, &mut |part| copied(names, part)),
    }
}

/// A function of `scanl` with binders of its own.
pub(super) fn copied_fold(names: &mut Names, f: &Fold) -> Fold {
    let params: Vec<Var> = f.params.iter().map(|x| names.again(x)).collect();
    let map = f.params.iter().map(Var::id).zip(params.iter().map(Term::var)).collect();
    let body = substitute_all(names, &f.body, &map);
    Fold { size: f.size.clone(), params, body }
}

fn copied_function(names: &mut Names, f: &IndexFn) -> IndexFn {
    let f = again(names, f);
    IndexFn { params: f.params, index: f.index.iter().map(|t| copied(names, t)).collect() }
}
