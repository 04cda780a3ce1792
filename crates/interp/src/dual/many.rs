//! Derivatives in many directions at once: one run for each direction, results stacked.
//!
//! Assumes directions stacked as [`pullback_core::Type::stacked`] says. Guarantees the results of the function first, then one
//! stack of tangents or cotangents per active result or argument; with no direction at all, empty stacks of the right shape.

use super::derive::{Directions, M, once};
use super::number::Dual;
use crate::core::arrays::Collector;
use crate::core::code::{DiffCode, Elem};
use crate::core::machine::{Res, internal, wrong};
use crate::core::shapes::Known;
use crate::core::value::{Meter, Node, Val};
use pullback_core::Type;
use std::rc::Rc;

/// Runs the derivative once for each of `n` directions.
pub(super) fn many(
    machine: M<'_, '_>,
    code: &DiffCode,
    args: Vec<Val<Dual>>,
    directions: &[Val<Dual>],
    n: usize,
) -> Res<Vec<Val<Dual>>> {
    let mut primal = None;
    let mut rows = Vec::with_capacity(n);
    for i in 0..n {
        let row = directions.iter().map(|d| part(&machine.meter, d, i)).collect::<Res<Vec<_>>>()?;
        let mut out = once(machine, code, args.clone(), Directions::Given(row))?;
        rows.push(out.split_off(code.result_types.len()));
        primal.get_or_insert(out);
    }
    let mut results = match primal {
        Some(results) => results,
        None => once(machine, code, args.clone(), Directions::None)?,
    };
    let (types, like) =
        if code.reverse { (&code.arg_types, args) } else { (&code.result_types, results.clone()) };
    let mut columns = rows.into_iter().map(Vec::into_iter).collect::<Vec<_>>();
    for (ty, like) in types.iter().zip(&like) {
        let cotangent = machine.code.program.cotangent(ty);
        let cotangent = cotangent.map_err(|_| internal("a derivative of a value without cotangent type"))?;
        if let Some(ty) = cotangent {
            let column: Option<Vec<Val<Dual>>> = columns.iter_mut().map(Iterator::next).collect();
            let column = column.ok_or_else(|| internal("a derivative with too few results"))?;
            results.push(stack(&machine.meter, &ty, column, like)?);
        }
    }
    Ok(results)
}

/// Element `i` of a stack.
fn part(meter: &Rc<Meter>, stack: &Val<Dual>, i: usize) -> Res<Val<Dual>> {
    match stack {
        Val::Arr(a) if a.shape.first().is_some_and(|&n| i < n) => Ok(a.row(i)),
        Val::Unit => Ok(Val::Unit),
        Val::Tuple(node) => {
            let items = node.items.iter().map(|v| part(meter, v, i)).collect::<Res<Vec<_>>>()?;
            Ok(Val::Tuple(Node::new(meter, items)?))
        }
        other => Err(wrong("as many directions as were announced", other)),
    }
}

/// The stack of values of a cotangent type; `like` is the value they belong to, for the shape if there are none.
fn stack(meter: &Rc<Meter>, ty: &Type, column: Vec<Val<Dual>>, like: &Val<Dual>) -> Res<Val<Dual>> {
    let Type::Tuple(types) = ty else {
        let elem = Elem { kind: ty.base().scalar(), rank: ty.rank() };
        let n = column.len();
        let mut out = Collector::new(meter, elem, Some(n));
        for value in column {
            out.push(value)?;
        }
        if let Val::Arr(a) = like {
            out.expect(&Known::array(&a.shape))?;
        }
        return out.finish(n);
    };
    if types.is_empty() {
        return Ok(Val::Unit);
    }
    let likes = match like {
        Val::Tuple(node) => node.items.clone(),
        other => return Err(wrong("a product", other)),
    };
    let mut columns: Vec<Vec<Val<Dual>>> = vec![Vec::new(); types.len()];
    for value in column {
        let Val::Tuple(node) = value else { return Err(wrong("a product", &value)) };
        columns.iter_mut().zip(Node::into_items(node)).for_each(|(c, v)| c.push(v));
    }
    let parts = types.iter().zip(columns).zip(&likes).map(|((t, c), like)| stack(meter, t, c, like));
    let parts = parts.collect::<Res<Vec<_>>>()?;
    Ok(Val::Tuple(Node::new(meter, parts)?))
}
