//! Labels: a number for each node, so that a map can say what has been contributed to it.
//!
//! Source: MSc thesis, 3.4.2 and 3.5. Every node gets a number of its own, a let that of its body.

use super::language::{Arr, ArrForm, Exp, ExpForm, made};
use super::rename::with_arrs;

/// The number of a node.
pub type Label = u32;

/// What a variable is bound to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Key {
    /// The node with this label.
    Node(Label),
    /// The state of the loop with this label.
    State(Label),
    /// The number of its iteration.
    Counter(Label),
    /// The argument of the whole function.
    Argument,
}

/// An expression with labels, counted from `next` on. Cost: the size of the expression.
pub fn label_exp(e: &Exp, next: &mut Label) -> Exp<Label> {
    let form = match e.form() {
        ExpForm::Const(c) => ExpForm::Const(*c),
        ExpForm::Var(x) => ExpForm::Var(x.clone()),
        ExpForm::Let(bindings, body) => {
            let bindings = bindings.iter().map(|(x, u)| (x.clone(), label_exp(u, next))).collect();
            let body = label_exp(body, next);
            let label = *body.label();
            return made(Exp::labelled(ExpForm::Let(bindings, body), label));
        }
        ExpForm::Tuple(es) => ExpForm::Tuple(es.iter().map(|e| label_exp(e, next)).collect()),
        ExpForm::Proj(e, k) => ExpForm::Proj(label_exp(e, next), *k),
        ExpForm::Prim(op, es) => ExpForm::Prim(*op, es.iter().map(|e| label_exp(e, next)).collect()),
        ExpForm::Index(a, e) => ExpForm::Index(a.clone(), label_exp(e, next)),
        ExpForm::Shape(a) => ExpForm::Shape(a.clone()),
        ExpForm::Cond(c, t, e) => ExpForm::Cond(label_exp(c, next), label_exp(t, next), label_exp(e, next)),
    };
    *next += 1;
    made(Exp::labelled(form, *next))
}

/// An array term with labels, counted from `next` on; those of its expressions are their own. Cost: the size of the term.
pub fn label_arr(u: &Arr, next: &mut Label) -> Arr<Label> {
    if let ArrForm::Let(bindings, body) = u.form() {
        let bindings = bindings.iter().map(|(a, v)| (a.clone(), label_arr(v, next))).collect();
        let body = label_arr(body, next);
        let label = *body.label();
        return made(Arr::labelled(ArrForm::Let(bindings, body), label));
    }
    let form = with_arrs(u.form(), &mut |u| label_arr(u, next));
    *next += 1;
    made(Arr::labelled(form, *next))
}
