//! Sums of which all terms but one are zeros are that term: what a map adds to one element of an array, in the iteration that read it.
//!
//! ```text
//! reduce (+) 0 (map (\i x -> if i == c then f i x else 0) xs)      =>      if 0 <= c && c < n then 0 + f c xs[c] else 0
//! ```
//!
//! What is left of the operation may be a map, which other operations can be joined with.
//!
//! Assumes a checked program after fusion, where such sums are next to other results of one operation. A term that takes loops or array operations to make is left
//! alone. Guarantees: one term is evaluated as it was, no other; fewer steps where there are at least two elements. The
//! same values bit for bit: the zeros that are left out change nothing but the sign of a zero, as the one that stays does.

use crate::Ctx;
use crate::effects::{is_silent, mentions};
use pullback_base::index::{IdMap, IdSet};
use pullback_core::rename::{Subst, copy_stms, substitute_atom};
use pullback_core::traverse::free_vars_exp;
use pullback_core::{Atom, Body, Builder, Exp, FusedForm, Lam, Program, Soac, Stm, Var};
use pullback_prim::{Op, Prim, Scalar, ScalarValue};

/// Runs the pass. Cost: the size of the program.
pub fn reduce_one_hot(program: &mut Program, _ctx: &Ctx) {
    let ids: Vec<_> = program.funs.ids().collect();
    for id in ids {
        let mut body = std::mem::take(&mut program.funs[id].body);
        single_in(program, &mut body, &mut IdSet::new());
        program.funs[id].body = body;
    }
}

/// `counters`: arrays of 0, 1, 2, ..
fn single_in(program: &mut Program, body: &mut Body, counters: &mut IdSet<Var>) {
    let mut out = Vec::with_capacity(body.stms.len());
    for mut stm in std::mem::take(&mut body.stms) {
        if let Exp::Iota(_) = stm.exp {
            counters.extend(stm.pat.iter().copied());
        }
        // The sum of a row may be all that is left of a sum of rows.
        for scope in stm.exp.bodies_mut() {
            single_in(program, scope.body, counters);
        }
        while let Some(term) = find(&stm, counters) {
            let sum = drop_sum(&mut stm, term.number);
            write(program, sum, &term, counters, &mut out);
        }
        if !stm.pat.is_empty() {
            out.push(stm);
        }
    }
    body.stms = out;
}

/// The only term of a sum.
struct Term {
    /// Which result of the operation the sum is.
    number: usize,
    /// The element that the term is made for.
    at: Atom,
    /// Other conditions for it, which are the same for all elements.
    conditions: Vec<Atom>,
    /// What makes it of the elements there.
    stms: Vec<Stm>,
    value: Atom,
    zero: ScalarValue,
    /// The parameters of these statements, and the arrays whose elements they are.
    params: Vec<(Var, Atom)>,
    width: Atom,
}

/// The first result of an operation that is a sum with one term.
fn find(stm: &Stm, counters: &IdSet<Var>) -> Option<Term> {
    let Exp::Soac(Soac::Fused { form: FusedForm::Reduce { .. }, width, pre, lam, neutral, arrays }) =
        &stm.exp
    else {
        return None;
    };
    // Without a result, the operation goes.
    (stm.pat.len() > 1 || is_silent(&pre.body)).then_some(())?;
    let made: IdMap<Var, &Stm> =
        pre.body.stms.iter().flat_map(|s| s.pat.iter().map(move |v| (*v, s))).collect();
    let prim = |a: Atom| match &made.get(&a.var()?)?.exp {
        Exp::Prim(Prim::Op(op, scalar), args) => Some((*op, *scalar, &args[..])),
        _ => None,
    };
    let is_counter = |a: Atom| {
        let place = pre.params.iter().position(|p| Atom::Var(*p) == a);
        place.is_some_and(|k| arrays[k].var().is_some_and(|v| counters.contains(&v)))
    };
    let inside = |a: Atom| a.var().is_some_and(|v| made.contains_key(&v) || pre.params.contains(&v));
    (0..neutral.len()).find_map(|number| {
        let zero = is_sum(lam, neutral, number)?;
        let result = pre.body.result[number];
        let (condition, value) = match (prim(result), made.get(&result.var()?).map(|s| &s.exp)) {
            (Some((Op::Select, _, [c, value, other])), _) if *other == Atom::Const(zero) => (*c, *value),
            (_, Some(Exp::If(c, _, otherwise)))
                if otherwise.stms.is_empty() && otherwise.result[..] == [Atom::Const(zero)] =>
            {
                (*c, result)
            }
            _ => return None,
        };
        let (mut conditions, mut left) = (Vec::new(), vec![condition]);
        while let Some(c) = left.pop() {
            match prim(c) {
                Some((Op::And, Scalar::Bool, [x, y])) => left.extend([*y, *x]),
                _ => conditions.push(c),
            }
        }
        let place = |c: &Atom| {
            let (Op::Eq, Scalar::I64, [a, b]) = prim(*c)? else { return None };
            let at = match (is_counter(*a), is_counter(*b)) {
                (true, _) => *b,
                (_, true) => *a,
                _ => return None,
            };
            (!inside(at)).then_some(at)
        };
        let (k, at) = conditions.iter().enumerate().find_map(|(k, c)| Some((k, place(c)?)))?;
        conditions.remove(k);
        // A condition on the elements is asked where the term is made.
        let value = if conditions.iter().any(|c| inside(*c)) { result } else { value };
        conditions.retain(|c| !inside(*c));
        let stms = slice(&pre.body.stms, value)?;
        let params = pre.params.iter().copied().zip(arrays.iter().copied()).collect();
        Some(Term { number, at, conditions, stms, value, zero, params, width: *width })
    })
}

/// Whether a component of an operator is a sum that no other component depends on: its zero.
fn is_sum(lam: &Lam, neutral: &[Atom], number: usize) -> Option<ScalarValue> {
    let Atom::Const(zero) = neutral[number] else { return None };
    let (x, y) = (lam.params[number], lam.params[neutral.len() + number]);
    let mut sums = lam.body.stms.iter().filter(|s| {
        let mut mentioned = !s.exp.bodies().is_empty();
        s.exp.for_each_atom(|a| mentioned |= a == Atom::Var(x) || a == Atom::Var(y));
        mentioned
    });
    let (Some(sum), None) = (sums.next(), sums.next()) else { return None };
    let Exp::Prim(Prim::Op(Op::Add, _), args) = &sum.exp else { return None };
    let both = args[..] == [x.into(), y.into()] || args[..] == [y.into(), x.into()];
    let only = lam.body.result.iter().enumerate().all(|(k, r)| {
        let is_it = *r == Atom::Var(sum.pat[0]);
        is_it == (k == number) && *r != Atom::Var(x) && *r != Atom::Var(y)
    });
    (both && only && zero.is_float_zero()).then_some(zero)
}

/// The statements that a value is made by, if all of them are simple.
fn slice(stms: &[Stm], value: Atom) -> Option<Vec<Stm>> {
    let mut needed: IdSet<Var> = value.var().into_iter().collect();
    let mut out = Vec::new();
    for stm in stms.iter().rev() {
        if stm.pat.iter().any(|v| needed.contains(v)) {
            is_simple(&stm.exp).then_some(())?;
            needed.extend(free_vars_exp(&stm.exp));
            out.push(stm.clone());
        }
    }
    out.reverse();
    Some(out)
}
fn is_simple(exp: &Exp) -> bool {
    match exp {
        Exp::Prim(..) | Exp::Index(..) | Exp::Atom(_) => true,
        Exp::If(_, then, otherwise) => {
            [then, otherwise].into_iter().all(|b| b.stms.iter().all(|s| is_simple(&s.exp)))
        }
        _ => false,
    }
}

/// Takes a sum out of an operation; what it was bound to.
fn drop_sum(stm: &mut Stm, number: usize) -> Var {
    let mut soac = std::mem::replace(&mut stm.exp, Exp::Tuple(Vec::new()));
    if let Exp::Soac(Soac::Fused { width, mut pre, mut lam, mut neutral, arrays, form }) = soac {
        lam.params.remove(neutral.len() + number);
        lam.params.remove(number);
        let sum = lam.body.result.remove(number);
        lam.body.stms.retain(|s| sum.var().is_none_or(|v| !s.pat.contains(&v)));
        pre.body.result.remove(number);
        neutral.remove(number);
        soac = Exp::Soac(match neutral.is_empty() {
            true => Soac::Map { width, lam: pre, arrays },
            false => Soac::Fused { form, width, pre, lam, neutral, arrays },
        });
    }
    stm.exp = soac;
    stm.pat.remove(number)
}

/// Binds the sum to its term, if there is an element for it.
fn write(program: &mut Program, sum: Var, term: &Term, counters: &IdSet<Var>, out: &mut Vec<Stm>) {
    let mut b = Builder::new(program);
    b.origin = b.program.vars[sum].origin.clone();
    let mut inside = b.op2(Op::Lt, term.at, term.width);
    if !matches!(term.at, Atom::Const(ScalarValue::I64(0..))) {
        let natural = b.op2(Op::Le, Atom::i64(0), term.at);
        inside = b.op2(Op::And, natural, inside);
    }
    for condition in &term.conditions {
        inside = b.op2(Op::And, inside, *condition);
    }
    let then = b.scope(|b| {
        let mentioned =
            |v: &Var| term.value == Atom::Var(*v) || term.stms.iter().any(|s| mentions(&s.exp, &|w| w == *v));
        let mut subst = Subst::new();
        for (param, array) in term.params.iter().filter(|(p, _)| mentioned(p)) {
            let is_counter = array.var().is_some_and(|v| counters.contains(&v));
            let x = if is_counter { term.at } else { b.index(*array, &[term.at]) };
            subst.insert(*param, x);
        }
        copy_stms(b.program, &term.stms, &mut subst).into_iter().for_each(|s| b.emit_stm(s));
        vec![b.op2(Op::Add, Atom::Const(term.zero), substitute_atom(term.value, &subst))]
    });
    let otherwise = Body { stms: Vec::new(), result: vec![Atom::Const(term.zero)] };
    b.emit_to(vec![sum], Exp::If(inside, then, otherwise));
    out.extend(b.finish());
}
