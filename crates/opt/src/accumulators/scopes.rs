//! Accumulator scopes that have become unnecessary (E10): an accumulator to which only whole values are added, and only
//! in the body of its scope itself, is the sum of its first value and these. One number added to one element is an
//! update.

use pullback_base::index::{IdMap, IdSet};
use pullback_core::traverse::{for_each_stm, free_vars_exp};
use pullback_core::{Atom, Body, Builder, Exp, FunId, Lam, Program, Stm, Var, VarInfo};
use pullback_prim::Op;

/// Simplifies the scopes of a function, inner ones first.
pub(super) fn close(program: &mut Program, id: FunId) {
    let mut body = std::mem::take(&mut program.funs[id].body);
    let mut zeros = IdSet::new();
    for_each_stm(&body, &mut |stm| {
        if let Exp::Replicate(_, Atom::Const(c)) = &stm.exp
            && c.scalar().is_float()
            && c.as_f64() == 0.0
        {
            zeros.extend(&stm.pat);
        }
    });
    close_in(program, &mut body, &zeros);
    program.funs[id].body = body;
}

fn close_in(program: &mut Program, body: &mut Body, zeros: &IdSet<Var>) {
    let mut out = Vec::with_capacity(body.stms.len());
    for mut stm in std::mem::take(&mut body.stms) {
        for scope in stm.exp.bodies_mut() {
            close_in(program, scope.body, zeros);
        }
        match stm.exp {
            Exp::WithAcc(inits, lam) => {
                if let Some(update) = single_addition(program, &inits, &lam) {
                    let stms = one_element(program, &update, stm.pat[0]);
                    out.extend(lam.body.stms.into_iter().map(|s| match s.exp {
                        Exp::AccAdd(..) => Stm { pat: s.pat, exp: Exp::Tuple(Vec::new()) },
                        exp => Stm { pat: s.pat, exp },
                    }));
                    out.extend(stms);
                    continue;
                }
                let scope = Scope { inits, params: lam.params, body: lam.body };
                scope.close(program, stm.pat, zeros, &mut out);
            }
            exp => out.push(Stm { pat: stm.pat, exp }),
        }
    }
    body.stms = out;
}

/// A scope that adds one number to one element.
struct Addition {
    init: Atom,
    index: Atom,
    value: Atom,
}

fn single_addition(program: &Program, inits: &[Atom], lam: &Lam) -> Option<Addition> {
    let ([init], [acc], []) = (inits, &lam.params[..], &lam.body.result[..]) else { return None };
    let mut found = None;
    for stm in &lam.body.stms {
        match &stm.exp {
            Exp::AccAdd(a, ix, v) if *a == Atom::Var(*acc) && found.is_none() => {
                let ([index], Some(_)) = (&ix[..], program.atom_type(*v).scalar()) else { return None };
                found = Some(Addition { init: *init, index: *index, value: *v });
            }
            exp if free_vars_exp(exp).contains(acc) => return None,
            _ => {}
        }
    }
    found
}

/// The array with the value added to one element; an index out of range is nowhere.
fn one_element(program: &mut Program, update: &Addition, result: Var) -> Vec<Stm> {
    let Addition { init, index, value } = *update;
    let mut b = Builder::new(program);
    b.origin = b.program.vars[result].origin.clone();
    let n = b.size(init, 0);
    let (above, below) = (b.op2(Op::Le, Atom::i64(0), index), b.op2(Op::Lt, index, n));
    let inside = b.op2(Op::And, above, below);
    let then = b.scope(|b| {
        let old = b.index(init, &[index]);
        let new = b.op2(Op::Add, old, value);
        vec![b.emit(Exp::Update(init, vec![index], new), "x_bar")]
    });
    let otherwise = Body { stms: Vec::new(), result: vec![init] };
    b.emit_to(vec![result], Exp::If(inside, then, otherwise));
    b.finish()
}

struct Scope {
    inits: Vec<Atom>,
    params: Vec<Var>,
    body: Body,
}

impl Scope {
    fn close(self, program: &mut Program, pat: Vec<Var>, zeros: &IdSet<Var>, out: &mut Vec<Stm>) {
        let Scope { inits, params, mut body } = self;
        let whole: IdMap<Var, Vec<Atom>> =
            params.iter().filter_map(|p| Some((*p, additions(&body, *p)?))).collect();
        // The statements that add are replaced by the unit they return.
        for s in &mut body.stms {
            if let Exp::AccAdd(Atom::Var(acc), ix, _) = &s.exp
                && ix.is_empty()
                && whole.contains_key(acc)
            {
                s.exp = Exp::Tuple(Vec::new());
            }
        }
        let (mut kept, mut kept_inits, mut results, mut sums) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for ((p, init), v) in params.iter().zip(&inits).zip(&pat) {
            match whole.get(p) {
                Some(values) => sums.push((*v, *init, values.clone())),
                None => {
                    kept.push(*p);
                    kept_inits.push(*init);
                    results.push(*v);
                }
            }
        }
        results.extend(&pat[inits.len()..]);
        if kept.is_empty() {
            let aliases: Vec<Stm> = results
                .iter()
                .zip(&body.result)
                .map(|(v, a)| Stm { pat: vec![*v], exp: Exp::Atom(*a) })
                .collect();
            out.extend(body.stms);
            out.extend(aliases);
        } else {
            // What is added later must leave the scope.
            let bound: IdSet<Var> = body.stms.iter().flat_map(|s| s.pat.iter().copied()).collect();
            for (.., values) in &mut sums {
                for a in values {
                    if let Atom::Var(v) = *a
                        && bound.contains(&v)
                    {
                        let info = VarInfo { ..program.vars[v].clone() };
                        let outside = program.vars.push(info);
                        body.result.push(v.into());
                        results.push(outside);
                        *a = outside.into();
                    }
                }
            }
            let lam = Lam { params: kept, body };
            out.push(Stm { pat: results, exp: Exp::WithAcc(kept_inits, lam) });
        }
        for (v, init, values) in sums {
            let is_zero = init.var().is_some_and(|v| zeros.contains(&v));
            let terms: Vec<Atom> = if is_zero && !values.is_empty() {
                values
            } else {
                std::iter::once(init).chain(values).collect()
            };
            sum(program, v, &terms, out);
        }
    }
}

/// Binds `v` to the sum of the terms.
fn sum(program: &mut Program, v: Var, terms: &[Atom], out: &mut Vec<Stm>) {
    let Some((first, rest)) = terms.split_first() else { return };
    let mut total = *first;
    for (k, term) in rest.iter().enumerate() {
        let target = if k + 1 == rest.len() {
            v
        } else {
            let info = program.vars[v].clone();
            program.vars.push(info)
        };
        out.push(Stm { pat: vec![target], exp: Exp::Plus(total, *term) });
        total = target.into();
    }
    if rest.is_empty() {
        out.push(Stm { pat: vec![v], exp: Exp::Atom(total) });
    }
}

/// The values added to an accumulator as a whole by the statements of the body; `None` if it is used otherwise.
fn additions(body: &Body, acc: Var) -> Option<Vec<Atom>> {
    let mut out = Vec::new();
    for stm in &body.stms {
        match &stm.exp {
            Exp::AccAdd(a, ix, v) if *a == Atom::Var(acc) && ix.is_empty() => out.push(*v),
            exp if free_vars_exp(exp).contains(&acc) => return None,
            _ => {}
        }
    }
    Some(out)
}
