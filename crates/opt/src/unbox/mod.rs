//! Columns of boxed arrays of one shape become regular arrays.
//!
//! Reverse mode stores what iterations computed as columns of a tape. An array is stored in a box (see `Type::boxed`), because
//! arrays of different iterations may have different shapes: a column of `[]f64` is a `[](#tape []f64)`. Where the sizes of
//! all of them have a name outside the iterations, the column becomes a `[][]f64`, which executors write as one block; inject
//! and match go away. Boxes in boxed columns are treated from the inside out.
//!
//! Variables that share boxes are changed together or not at all (`columns`): those that a statement connects by handing on,
//! indexing or collecting. Boxes stay where they meet something that has to keep its type (parameters and results of functions,
//! sums with alternatives, products, accumulators, operators of reductions) or would be copied where a pointer was
//! (`replicate`, `gather`, `concat`, and collected values of `while` loops, whose number is not known).
//!
//! Assumes: nothing. Guarantees: the same values; a body that collects a boxed array now copies it, which costs no more than
//! making it did. Source: regular nested arrays as in Futhark (Henriksen et al., PLDI 2017), recovered after differentiation.

mod columns;

use crate::Ctx;
use columns::{Columns, columns};
use pullback_core::{Body, Exp, Program, Stm, Type};

/// Runs the pass. Cost: the size of the program, and that of naming its sizes.
pub fn unbox(program: &mut Program, _ctx: &Ctx) {
    let ids: Vec<_> = program.funs.ids().collect();
    for id in ids {
        let columns = columns(program, id);
        if columns.is_empty() {
            continue;
        }
        for (v, removed) in columns.iter() {
            let ty = without(&program.vars[v].ty, &removed);
            program.vars[v].ty = ty;
        }
        let mut body = std::mem::take(&mut program.funs[id].body);
        rewrite(program, &columns, &mut body);
        program.funs[id].body = body;
    }
}

/// The type without the boxes for which the flag is set; the outermost comes first.
fn without(ty: &Type, removed: &[bool]) -> Type {
    if let Type::Array(elem) = ty {
        return Type::array(without(elem, removed));
    }
    match (ty, ty.boxed(), removed.split_first()) {
        (_, Some(inside), Some((true, rest))) => without(inside, rest),
        (Type::Sum(variants), Some(inside), Some((false, rest))) => {
            let mut variant = variants[0].clone();
            variant.fields = vec![without(inside, rest)];
            Type::Sum(vec![variant].into())
        }
        _ => ty.clone(),
    }
}

fn rewrite(program: &Program, columns: &Columns, body: &mut Body) {
    let mut out = Vec::with_capacity(body.stms.len());
    for mut stm in std::mem::take(&mut body.stms) {
        for scope in stm.exp.bodies_mut() {
            rewrite(program, columns, scope.body);
        }
        let ty = stm.pat.first().map(|v| &program.vars[*v].ty);
        match (stm.exp, ty) {
            (Exp::Inject(_, _, fields), Some(_)) if columns.opens(stm.pat[0].into()) => {
                stm.exp = Exp::Atom(fields[0]);
            }
            (Exp::Inject(_, k, fields), Some(ty)) => stm.exp = Exp::Inject(ty.clone(), k, fields),
            (Exp::ArrayLit(_, items), Some(Type::Array(elem))) => {
                stm.exp = Exp::ArrayLit(Type::clone(elem), items);
            }
            (Exp::Match(a, mut arms), _) if columns.opens(a) && arms.len() == 1 => {
                let arm = arms.remove(0);
                out.push(Stm { pat: arm.params, exp: Exp::Atom(a) });
                out.extend(arm.body.stms);
                let results = stm.pat.into_iter().zip(arm.body.result);
                out.extend(results.map(|(v, a)| Stm { pat: vec![v], exp: Exp::Atom(a) }));
                continue;
            }
            (exp, _) => stm.exp = exp,
        }
        out.push(stm);
    }
    body.stms = out;
}
