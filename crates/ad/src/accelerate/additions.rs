//! Functions of two elements that add, and those that choose the larger or smaller number.
//!
//! How such a function is written does not matter: bindings are followed, and components of tuples.

use super::language::{EVar, Exp, ExpForm, Fun, Ty};
use pullback_prim::{Op, Prim};

/// Whether each continuous scalar of the result is the sum of those of the two arguments. What is discrete may be anything.
///
/// Cost: the size of the function times the number of its scalars.
pub(super) fn is_addition(f: &Fun) -> bool {
    let mut bound = Vec::new();
    let e = opened(&f.body, &mut bound);
    let p = Exp::var(&f.param);
    is_sum(e, f.body.ty(), [&p.proj(0), &p.proj(1)], &mut bound)
}

/// The operation, if the function is the larger or smaller of two numbers, which takes the first of equal ones.
///
/// Cost: the size of the function.
pub(super) fn extremum(f: &Fun) -> Option<Op> {
    let mut bound = Vec::new();
    let e = known(&f.body, &mut bound);
    let ExpForm::Prim(Prim::Op(op @ (Op::MaxFirst | Op::MinFirst), s), args) = e.form() else { return None };
    let p = Exp::var(&f.param);
    let [x, y] = [0, 1].map(|k| is_same(&known(&args[k], &mut bound), &p.proj(k)));
    (s.is_float() && x && y).then_some(*op)
}

/// The bindings that are known.
type Bound = Vec<(EVar, Exp)>;

fn is_sum(e: &Exp, ty: &Ty, [x, y]: [&Exp; 2], bound: &mut Bound) -> bool {
    match ty {
        Ty::Scalar(s) if !s.is_float() => true,
        Ty::Scalar(_) => {
            let e = known(e, bound);
            let ExpForm::Prim(Prim::Op(Op::Add, _), args) = e.form() else { return false };
            let [a, b] = [&args[0], &args[1]].map(|a| known(a, bound));
            (is_same(&a, x) && is_same(&b, y)) || (is_same(&a, y) && is_same(&b, x))
        }
        Ty::Tuple(ts) => {
            let e = known(e, bound);
            ts.iter().enumerate().all(|(k, t)| is_sum(&e.proj(k), t, [&x.proj(k), &y.proj(k)], bound))
        }
    }
}

/// The expression without the bindings around it.
fn opened<'e>(mut e: &'e Exp, bound: &mut Bound) -> &'e Exp {
    while let ExpForm::Let(bindings, body) = e.form() {
        bound.extend(bindings.iter().cloned());
        e = body;
    }
    e
}

/// What an expression is, as far as bindings and tuples that are written out tell.
fn known(e: &Exp, bound: &mut Bound) -> Exp {
    let e = opened(e, bound).clone();
    match e.form() {
        ExpForm::Var(x) => match bound.iter().find(|(y, _)| y == x).map(|(_, u)| u.clone()) {
            Some(u) => known(&u, bound),
            None => e,
        },
        ExpForm::Proj(u, k) => {
            let part = known(u, bound).proj(*k);
            if matches!(part.form(), ExpForm::Proj(..)) { part } else { known(&part, bound) }
        }
        _ => e,
    }
}

/// Whether both are the same component of the same variable.
fn is_same(a: &Exp, b: &Exp) -> bool {
    match (a.form(), b.form()) {
        (ExpForm::Var(x), ExpForm::Var(y)) => x == y,
        (ExpForm::Proj(a, j), ExpForm::Proj(b, k)) => j == k && is_same(a, b),
        _ => false,
    }
}
