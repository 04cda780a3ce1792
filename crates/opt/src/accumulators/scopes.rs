//! Accumulator scopes that have become unnecessary (E10): an accumulator to which only whole values are added, and only
//! in the body of its scope itself, is the sum of its first value and these. A short vector of zeros to which numbers
//! are added at known places is an array literal. Additions at places that hold zeros are writes (`written`). One number added to one element is an update. Before that, what
//! does not add leaves the scope (`lift`).

mod facts;
mod lift;
mod literal;
mod written;

use super::sites::Site;
use crate::effects::mentions;
use facts::Facts;
use literal::elements;
use pullback_base::index::IdSet;
use pullback_core::{Atom, Body, Builder, Exp, FunId, Lam, Program, Stm, Var, VarInfo};
use pullback_prim::Op;
use written::{Write, writes};

/// Simplifies the scopes of a function, inner ones first.
pub(super) fn close(program: &mut Program, id: FunId) {
    let mut body = std::mem::take(&mut program.funs[id].body);
    let mut facts = Facts::of(&body);
    close_in(program, &mut body, &mut facts);
    program.funs[id].body = body;
}

/// What does not add leaves the scope of a site; scopes inside stay as they are.
pub(super) fn lift_at(program: &mut Program, id: FunId, site: &Site) {
    let mut whole = std::mem::take(&mut program.funs[id].body);
    let (mut facts, mut body) = (Facts::default(), &mut whole);
    let ((at, _), around) = (site.path[site.root], &site.path[..site.root]);
    for (stm, scope) in around {
        body.stms[..*stm].iter().for_each(|s| facts.note(s));
        body = body.stms[*stm].exp.bodies_mut().into_iter().nth(*scope).expect("a path").body;
    }
    body.stms[..at].iter().for_each(|s| facts.note(s));
    let Stm { pat, exp } = &mut body.stms[at];
    let mut out = Vec::new();
    if let Exp::WithAcc(inits, lam) = exp {
        let (inside, inits) = (std::mem::take(&mut lam.body), std::mem::take(inits));
        let mut scope = Scope { inits, params: std::mem::take(&mut lam.params), body: inside };
        scope.lift(program, pat, &facts, &mut out);
        *exp = Exp::WithAcc(scope.inits, Lam { params: scope.params, body: scope.body });
    }
    body.stms.splice(at..at, out);
    program.funs[id].body = whole;
}

fn close_in(program: &mut Program, body: &mut Body, facts: &mut Facts) {
    let entered = facts.enter();
    // What scopes have become, and where they were.
    let mut closed: Vec<(usize, Vec<Stm>)> = Vec::new();
    for (at, stm) in body.stms.iter_mut().enumerate() {
        for scope in stm.exp.bodies_mut() {
            close_in(program, scope.body, facts);
        }
        facts.note(stm);
        if !matches!(stm.exp, Exp::WithAcc(..)) {
            continue;
        }
        if let Exp::WithAcc(inits, lam) = std::mem::replace(&mut stm.exp, Exp::Tuple(Vec::new())) {
            let mut scope = Scope { inits, params: lam.params, body: lam.body };
            let (mut pat, mut out) = (std::mem::take(&mut stm.pat), Vec::new());
            scope.lift(program, &mut pat, facts, &mut out);
            scope.close(program, pat, facts, &mut out);
            closed.push((at, out));
        }
    }
    facts.leave(entered);
    if closed.is_empty() {
        return;
    }
    let mut closed = closed.into_iter().peekable();
    for (at, stm) in std::mem::take(&mut body.stms).into_iter().enumerate() {
        match closed.next_if(|c| c.0 == at) {
            Some((_, stms)) => body.stms.extend(stms),
            None => body.stms.push(stm),
        }
    }
}

/// A scope that adds one number to one element.
struct Addition {
    init: Atom,
    index: Atom,
    value: Atom,
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

/// What an accumulator that is not needed holds in the end.
enum Total {
    /// The sum of a first value, unless that is zero, and of others.
    Sum(Option<Atom>, Vec<Atom>),
    /// A vector: the terms of each element.
    Literal(Vec<Vec<Atom>>),
    /// A first value with other parts.
    Written(Atom, Vec<Write>),
}

impl Total {
    fn atoms_mut(&mut self) -> Vec<&mut Atom> {
        match self {
            Total::Sum(_, values) => values.iter_mut().collect(),
            Total::Literal(elements) => elements.iter_mut().flatten().collect(),
            Total::Written(_, writes) => writes.iter_mut().map(|w| &mut w.1).collect(),
        }
    }
}

impl Scope {
    /// The total of an accumulator all of whose additions are known and stand in the body itself.
    fn total(&self, init: Atom, acc: Var, facts: &Facts) -> Option<Total> {
        if let Some(values) = additions(&self.body, acc) {
            let first = (!facts.is_zero(init) || values.is_empty()).then_some(init);
            return Some(Total::Sum(first, values));
        }
        if let Some(length) = facts.length_of_zeros(init) {
            return elements(&self.body, acc, length).map(Total::Literal);
        }
        writes(&self.body, acc, init, facts).map(|(first, writes)| Total::Written(first, writes))
    }

    fn close(mut self, program: &mut Program, pat: Vec<Var>, facts: &Facts, out: &mut Vec<Stm>) {
        let (mut kept, mut kept_inits, mut results, mut totals) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for ((p, init), v) in self.params.iter().zip(&self.inits).zip(&pat) {
            match self.total(*init, *p, facts) {
                Some(total) => totals.push((*v, *p, total)),
                None => {
                    kept.push(*p);
                    kept_inits.push(*init);
                    results.push(*v);
                }
            }
        }
        // The statements that add are replaced by the unit they return.
        for s in &mut self.body.stms {
            if let Exp::AccAdd(Atom::Var(acc), ..) = &s.exp
                && totals.iter().any(|t| t.1 == *acc)
            {
                s.exp = Exp::Tuple(Vec::new());
            }
        }
        results.extend(&pat[self.inits.len()..]);
        let mut body = self.body;
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
            for (.., total) in &mut totals {
                for a in total.atoms_mut() {
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
            let scope = Scope { inits: kept_inits, params: kept, body };
            scope.reopen(program, results, out);
        }
        for (v, _, total) in totals {
            match total {
                Total::Sum(first, values) => {
                    let terms: Vec<Atom> = first.into_iter().chain(values).collect();
                    sum(program, v, &terms, out);
                }
                Total::Literal(elements) => literal::write(program, v, &elements, out),
                Total::Written(first, writes) => written::write(program, v, first, &writes, facts, out),
            }
        }
    }

    /// What is left of a scope: an update of one element, or the scope.
    fn reopen(self, program: &mut Program, results: Vec<Var>, out: &mut Vec<Stm>) {
        let Some(update) = self.single_addition(program) else {
            let lam = Lam { params: self.params, body: self.body };
            out.push(Stm { pat: results, exp: Exp::WithAcc(self.inits, lam) });
            return;
        };
        out.extend(self.body.stms.into_iter().map(|s| match s.exp {
            Exp::AccAdd(..) => Stm { pat: s.pat, exp: Exp::Tuple(Vec::new()) },
            exp => Stm { pat: s.pat, exp },
        }));
        out.extend(one_element(program, &update, results[0]));
        let rest = results[1..].iter().zip(&self.body.result);
        out.extend(rest.map(|(v, a)| Stm { pat: vec![*v], exp: Exp::Atom(*a) }));
    }

    fn single_addition(&self, program: &Program) -> Option<Addition> {
        let ([init], [acc]) = (&self.inits[..], &self.params[..]) else { return None };
        let mut found = None;
        for stm in &self.body.stms {
            match &stm.exp {
                Exp::AccAdd(a, ix, v) if *a == Atom::Var(*acc) && found.is_none() => {
                    let ([index], Some(_)) = (&ix[..], program.atom_type(*v).scalar()) else { return None };
                    found = Some(Addition { init: *init, index: *index, value: *v });
                }
                exp if mentions(exp, &|v| v == *acc) => return None,
                _ => {}
            }
        }
        found
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
            exp if mentions(exp, &|v| v == acc) => return None,
            _ => {}
        }
    }
    Some(out)
}
