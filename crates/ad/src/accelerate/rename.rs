//! Other names for the array variables of expressions, and other arguments of array terms. A scalar function reads arrays by name, so each phase renames them first.

use super::language::{AVar, Arr, ArrForm, Exp, ExpForm, Fun, Step, made};

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

/// The form with other array arguments, which are made of these in order.
pub(super) fn with_arrs<L, M>(form: &ArrForm<L>, of: &mut dyn FnMut(&Arr<L>) -> Arr<M>) -> ArrForm<M> {
    match form {
        ArrForm::Use(elements, shape, scalar) => ArrForm::Use(elements.clone(), shape.clone(), *scalar),
        ArrForm::Var(a) => ArrForm::Var(a.clone()),
        ArrForm::Let(bindings, body) => {
            let bindings = bindings.iter().map(|(a, v)| (a.clone(), of(v))).collect();
            ArrForm::Let(bindings, of(body))
        }
        ArrForm::Tuple(us) => ArrForm::Tuple(us.iter().map(of).collect()),
        ArrForm::Proj(u, k) => ArrForm::Proj(of(u), *k),
        ArrForm::Reshape(e, u) => ArrForm::Reshape(e.clone(), of(u)),
        ArrForm::Replicate(slc, u) => ArrForm::Replicate(slc.clone(), of(u)),
        ArrForm::Slice(slc, u) => ArrForm::Slice(slc.clone(), of(u)),
        ArrForm::Generate(e, f) => ArrForm::Generate(e.clone(), f.clone()),
        ArrForm::Map(f, u) => ArrForm::Map(f.clone(), of(u)),
        ArrForm::ZipWith(f, u, v) => ArrForm::ZipWith(f.clone(), of(u), of(v)),
        ArrForm::Sum(u) => ArrForm::Sum(of(u)),
        ArrForm::Foldl(f, e, u) => ArrForm::Foldl(f.clone(), e.clone(), of(u)),
        ArrForm::Fold1(f, u) => ArrForm::Fold1(f.clone(), of(u)),
        ArrForm::Scanl(f, e, u) => ArrForm::Scanl(f.clone(), e.clone(), of(u)),
        ArrForm::Scanr(f, e, u) => ArrForm::Scanr(f.clone(), e.clone(), of(u)),
        ArrForm::Scanl1(f, u) => ArrForm::Scanl1(f.clone(), of(u)),
        ArrForm::Collect(from, f, u, v) => ArrForm::Collect(*from, f.clone(), of(u), of(v)),
        ArrForm::Iterate(e, Step { state, counter, body }, first) => {
            let first = of(first);
            let step = Step { state: state.clone(), counter: counter.clone(), body: of(body) };
            ArrForm::Iterate(e.clone(), step, first)
        }
        ArrForm::Permute(c, d, f, u) => ArrForm::Permute(c.clone(), of(d), f.clone(), of(u)),
        ArrForm::Backpermute(e, f, u) => ArrForm::Backpermute(e.clone(), f.clone(), of(u)),
        ArrForm::Cond(c, u, v) => ArrForm::Cond(c.clone(), of(u), of(v)),
    }
}
