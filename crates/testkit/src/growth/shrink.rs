//! Smaller programs that fail as well.

use super::terms::{Expr, Frame, INPUTS, Names, Read, Sort, Start, Term, Writes, with_name};
use std::sync::Arc;

/// A term from which nothing can be left out without `fails` becoming false.
pub fn shrink(term: &Term, fails: &mut dyn FnMut(&Term) -> bool) -> Term {
    let mut term = term.clone();
    while let Some(smaller) = smaller(&term).into_iter().find(|t| fails(t)) {
        term = smaller;
    }
    term
}

/// The terms with one thing less.
fn smaller(term: &Term) -> Vec<Term> {
    let mut out = Vec::new();
    let mut push = |change: &dyn Fn(&mut Term)| {
        let mut t = term.clone();
        change(&mut t);
        if t != *term && is_closed(&t) {
            out.push(t);
        }
    };
    for k in 0..term.states.len() {
        push(&|t| without_state(t, k));
    }
    for k in 0..term.lets.len() {
        let name = first_let(term) + k;
        push(&|t| {
            t.lets.remove(k);
            let rename = |a: &Expr| without_name(a, Sort::Vector, name);
            t.lets.iter_mut().skip(k).for_each(|a| *a = rename(a));
            t.read.1 = rename(&t.read.1);
            t.next.iter_mut().for_each(|a| *a = rename(a));
        });
    }
    push(&|t| t.joined = false);
    push(&|t| t.writes = Writes::Element);
    push(&|t| t.frame = Frame::For);
    push(&|t| t.start = Start::Inputs);
    push(&|t| t.read.0 = Read::Element);
    if term.read.0 != Read::Element {
        push(&|t| t.read.0 = Read::Lane);
    }
    for k in 0..term.lets.len() {
        for a in reduced(&term.lets[k], Sort::Vector) {
            push(&|t| t.lets[k] = a.clone());
        }
    }
    for a in reduced(&term.read.1, Sort::Vector) {
        push(&|t| t.read.1 = a.clone());
    }
    for k in 0..term.next.len() {
        for a in reduced(&term.next[k], term.states[k]) {
            push(&|t| t.next[k] = a.clone());
        }
    }
    out
}

fn scope_of(term: &Term) -> Names {
    term.states.iter().fold(INPUTS, |names, sort| with_name(names, *sort))
}
fn first_let(term: &Term) -> usize {
    scope_of(term)[Sort::Vector as usize]
}

fn without_state(t: &mut Term, k: usize) {
    let sort = t.states[k];
    let before = t.states[..k].iter().filter(|s| **s == sort).count();
    let name = INPUTS[sort as usize] + before;
    t.states.remove(k);
    t.next.remove(k);
    let rename = |a: &Expr| without_name(a, sort, name);
    t.lets.iter_mut().for_each(|a| *a = rename(a));
    t.read.1 = rename(&t.read.1);
    t.next.iter_mut().for_each(|a| *a = rename(a));
}

/// The term with one name less in scope: uses of it become another one.
fn without_name(a: &Expr, sort: Sort, name: usize) -> Arc<Expr> {
    let rename = |b: &Arc<Expr>| without_name(b, sort, name);
    Arc::new(match a {
        Expr::Name(s, k) if *s == sort && *k > name => Expr::Name(*s, k - 1),
        Expr::Name(s, k) if *s == sort && *k == name => match sort {
            Sort::Vector => Expr::Name(*s, 0),
            Sort::Matrix => Expr::Rows,
            Sort::Option => Expr::None,
        },
        a => with_parts(a, a.parts().into_iter().map(rename).collect()),
    })
}

/// The same with other parts.
fn with_parts(a: &Expr, parts: Vec<Arc<Expr>>) -> Expr {
    let one = || parts[0].clone();
    let two = || parts[1].clone();
    match a {
        Expr::RowOf(_) => Expr::RowOf(one()),
        Expr::Window(_) => Expr::Window(one()),
        Expr::Get(..) => Expr::Get(one(), two()),
        Expr::WithRow(..) => Expr::WithRow(one(), two()),
        Expr::Some(_) => Expr::Some(one()),
        Expr::If(c, ..) => Expr::If(*c, one(), two()),
        Expr::Map(_) => Expr::Map(one()),
        Expr::With(_) => Expr::With(one()),
        Expr::Back(_) => Expr::Back(one()),
        Expr::Loop(t, ..) => Expr::Loop(*t, one(), two()),
        Expr::Name(..)
        | Expr::Row
        | Expr::Column
        | Expr::Slice
        | Expr::Fixed
        | Expr::New
        | Expr::Rows
        | Expr::Cols
        | Expr::Flat
        | Expr::None => a.clone(),
    }
}

/// The sorts of the parts of a term of a sort.
fn part_sorts(a: &Expr, sort: Sort) -> Vec<Sort> {
    match a {
        Expr::RowOf(_) | Expr::Window(_) => vec![Sort::Matrix],
        Expr::Get(..) => vec![Sort::Option, Sort::Vector],
        Expr::WithRow(..) => vec![Sort::Matrix, Sort::Vector],
        Expr::Some(_) => vec![Sort::Vector],
        a => vec![sort; a.parts().len()],
    }
}

/// The terms with one part less, or a part in place of the whole.
fn reduced(a: &Arc<Expr>, sort: Sort) -> Vec<Arc<Expr>> {
    let mut out = Vec::new();
    let sorts = part_sorts(a, sort);
    let parts = a.parts();
    for (part, s) in parts.iter().zip(&sorts) {
        if *s == sort {
            out.push((*part).clone());
        }
    }
    if !parts.is_empty()
        || matches!(
            **a,
            Expr::Row | Expr::Column | Expr::Slice | Expr::Fixed | Expr::New | Expr::Cols | Expr::Flat
        )
    {
        out.push(Arc::new(match sort {
            Sort::Vector => Expr::Name(sort, 0),
            Sort::Matrix => Expr::Rows,
            Sort::Option => Expr::None,
        }));
    }
    for (k, (part, s)) in parts.iter().zip(&sorts).enumerate() {
        for smaller in reduced(part, *s) {
            let mut all: Vec<Arc<Expr>> = parts.iter().map(|p| (*p).clone()).collect();
            all[k] = smaller;
            out.push(Arc::new(with_parts(a, all)));
        }
    }
    out
}

/// Whether all names are in scope.
fn is_closed(t: &Term) -> bool {
    let mut names = scope_of(t);
    for a in &t.lets {
        if !names_known(a, Sort::Vector, names) {
            return false;
        }
        names = with_name(names, Sort::Vector);
    }
    let states = t.next.iter().zip(&t.states);
    names_known(&t.read.1, Sort::Vector, names) && states.into_iter().all(|(a, s)| names_known(a, *s, names))
}
fn names_known(a: &Expr, sort: Sort, names: Names) -> bool {
    match a {
        Expr::Name(s, k) => *k < names[*s as usize],
        Expr::Loop(_, init, body) => {
            names_known(init, sort, names) && names_known(body, sort, with_name(names, sort))
        }
        a => a.parts().into_iter().zip(part_sorts(a, sort)).all(|(a, s)| names_known(a, s, names)),
    }
}
