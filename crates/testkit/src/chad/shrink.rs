//! Small terms that fail as a large one does.

use super::Case;
use pullback_lambda::check::check;
use pullback_lambda::{Builder, Exp, FunId, Program, Term, Type};
use pullback_prim::{Scalar, ScalarValue};

/// At most so many smaller terms are tried.
const TRIES: usize = 2_000;

/// A case whose function is as small as can be found and for which `fails` still holds: a term becomes a part of itself, or a literal. The parameters,
/// and so arguments and cotangents, stay; the result's cotangent has to fit, which is up to `fails`.
pub fn shrink(case: &Case, fails: &mut dyn FnMut(&Case) -> bool) -> Case {
    let mut best = case.clone();
    let mut tries = 0;
    let mut at = 0;
    // From the outside in; after a success the same place again, whose parts are new.
    while at < nodes(&best.program, best.f) && tries < TRIES {
        let smaller = candidates(&best.program, best.f, at).into_iter().find_map(|program| {
            tries += 1;
            let case = Case { program, ..best.clone() };
            fails(&case).then_some(case)
        });
        match smaller {
            Some(case) => best = case,
            None => at += 1,
        }
    }
    best
}

/// The number of nodes of a function.
pub fn nodes(program: &Program, f: FunId) -> usize {
    let mut count = 0;
    let mut pending: Vec<&Term> = program.funs[f].body.iter().collect();
    while let Some(t) = pending.pop() {
        count += 1;
        t.exp().children(&mut |child| pending.push(child));
    }
    count
}

/// Well-formed programs with something smaller in the place of node number `at` of a function.
fn candidates(program: &Program, f: FunId, at: usize) -> Vec<Program> {
    let Some(body) = &program.funs[f].body else { return Vec::new() };
    let mut count = at;
    let Some(old) = find(body, &mut count) else { return Vec::new() };
    let mut parts = Vec::new();
    let mut pending = Vec::new();
    old.exp().children(&mut |child| pending.push(child.clone()));
    while let Some(part) = pending.pop() {
        if part.ty() == old.ty() {
            parts.push(part.clone());
        }
        part.exp().children(&mut |child| pending.push(child.clone()));
    }
    // Parts nearer to the leaves first.
    let size = |t: &Term| {
        let (mut count, mut pending) = (0, vec![t.clone()]);
        while let Some(t) = pending.pop() {
            count += 1;
            t.exp().children(&mut |child| pending.push(child.clone()));
        }
        count
    };
    parts.sort_by_key(size);
    let mut out = Vec::new();
    let mut put = |make: &dyn Fn(&mut Builder<'_>) -> Option<Term>| {
        let mut program = program.clone();
        let mut b = Builder::new(&mut program);
        let Some(new) = make(&mut b).filter(|new| size(new) < size(&old)) else { return };
        let mut count = at;
        let body = replaced(&mut b, body, &mut count, &new);
        b.define(f, body);
        if b.errors.is_empty() && check(&program).is_ok() {
            out.push(program);
        }
    };
    put(&|b| literal(b, old.ty()));
    for part in parts {
        put(&|_| Some(part.clone()));
    }
    out
}

fn find(t: &Term, count: &mut usize) -> Option<Term> {
    if *count == 0 {
        return Some(t.clone());
    }
    *count -= 1;
    let mut found = None;
    t.exp().children(&mut |child| {
        if found.is_none() {
            found = find(child, count);
        }
    });
    found
}

/// The term with `new` for its node number `count`.
fn replaced(b: &mut Builder<'_>, t: &Term, count: &mut usize, new: &Term) -> Term {
    if *count == 0 {
        *count = usize::MAX;
        return new.clone();
    }
    if *count == usize::MAX {
        return t.clone();
    }
    *count -= 1;
    let mut exp = t.exp().clone();
    exp.children_mut(&mut |child| *child = replaced(b, &child.clone(), count, new));
    b.term(exp)
}

fn literal(b: &mut Builder<'_>, t: &Type) -> Option<Term> {
    match t {
        Type::Scalar(Scalar::F64) => Some(b.constant(ScalarValue::F64(1.0))),
        Type::Scalar(Scalar::I64) => Some(b.i64(1)),
        Type::Tuple(ts) => {
            let items = ts.iter().map(|t| literal(b, t)).collect::<Option<Vec<_>>>()?;
            Some(b.tuple(items))
        }
        Type::Sum(variants) => {
            let fields = variants[0].fields.iter().map(|t| literal(b, t)).collect::<Option<Vec<_>>>()?;
            Some(b.term(Exp::Inject(t.clone(), 0, fields)))
        }
        _ => None,
    }
}
