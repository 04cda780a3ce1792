//! Other names for the array variables of expressions. A scalar function reads arrays by name, so each phase renames them first.

use super::language::{AVar, Exp, ExpForm, Fun, made};

/// The expression, with these arrays for its own. Cost: the size of the expression.
pub(super) fn rename_exp(e: &Exp, to: &dyn Fn(&AVar) -> AVar) -> Exp {
    let all = |es: &[Exp]| es.iter().map(|e| rename_exp(e, to)).collect();
    made(Exp::new(match e.form() {
        ExpForm::Const(_) | ExpForm::Var(_) => return e.clone(),
        ExpForm::Let(bindings, e) => {
            let bindings = bindings.iter().map(|(x, u)| (x.clone(), rename_exp(u, to))).collect();
            ExpForm::Let(bindings, rename_exp(e, to))
        }
        ExpForm::Tuple(es) => ExpForm::Tuple(all(es)),
        ExpForm::Proj(e, k) => ExpForm::Proj(rename_exp(e, to), *k),
        ExpForm::Prim(op, es) => ExpForm::Prim(*op, all(es)),
        ExpForm::Index(a, e) => ExpForm::Index(to(a), rename_exp(e, to)),
        ExpForm::Shape(a) => ExpForm::Shape(to(a)),
        ExpForm::Cond(c, t, e) => ExpForm::Cond(rename_exp(c, to), rename_exp(t, to), rename_exp(e, to)),
    }))
}

/// The same of a function.
pub(super) fn rename_fun(f: &Fun, to: &dyn Fn(&AVar) -> AVar) -> Fun {
    Fun { param: f.param.clone(), body: rename_exp(&f.body, to) }
}
