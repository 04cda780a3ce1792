//! Derivatives on dual numbers: tangents in and out of values, forward and (by one forward run per input) reverse mode.
//!
//! Tangents and cotangents have the cotangent types of core: unit for discrete parts, alternative `k + 1` for alternative
//! `k` of a sum, alternative 0 for zero. What comes out is always explicit: never alternative 0.

use super::number::{Dual, Number};
use crate::core::code::DiffCode;
use crate::core::compile::deep;
use crate::core::machine::{Machine, Res, internal, wrong};
use crate::core::num::{Num, Primal};
use crate::core::value::{Arr, Data, Node, Val};
use pullback_core::{Program, Type};

pub(super) type M<'m, 'p> = &'m mut Machine<'p, Dual>;

/// Runs a derivative that a program without dual numbers met.
pub(crate) fn from_primal(machine: &mut Machine<'_, Primal>, code: &DiffCode) -> Res<()> {
    let mut child: Machine<'_, Dual> = machine.child();
    let lifted = |child: &Machine<'_, Dual>, v: &Val<Primal>| Val::from_value(&child.meter, &v.result()?, 0);
    for &slot in &code.captures {
        let value = lifted(&child, machine.slot(slot))?;
        child.set(slot, value);
    }
    let args = machine.take_all(&code.args).iter().map(|v| lifted(&child, v)).collect::<Res<Vec<_>>>()?;
    let directions = machine.take_all(&code.directions);
    let directions = directions.iter().map(|v| lifted(&child, v)).collect::<Res<Vec<_>>>()?;
    let seeds = code.seeds.map(|k| machine.size(k)).transpose()?;
    let outcome = differentiate(&mut child, code, args, directions, seeds);
    machine.absorb(&child);
    for value in outcome? {
        let value = Val::from_value(&machine.meter, &value.result()?, 0)?;
        machine.stack.push(value);
    }
    Ok(())
}

/// Runs a derivative inside an evaluation on dual numbers.
pub(crate) fn from_dual(machine: M<'_, '_>, code: &DiffCode) -> Res<()> {
    let args = machine.take_all(&code.args);
    let directions = machine.take_all(&code.directions);
    let seeds = code.seeds.map(|k| machine.size(k)).transpose()?;
    let results = differentiate(machine, code, args, directions, seeds)?;
    machine.stack.extend(results);
    Ok(())
}

fn differentiate(
    machine: M<'_, '_>,
    code: &DiffCode,
    args: Vec<Val<Dual>>,
    directions: Vec<Val<Dual>>,
    seeds: Option<usize>,
) -> Res<Vec<Val<Dual>>> {
    match seeds {
        None => once(machine, code, args, Directions::Given(directions)),
        Some(n) => super::many::many(machine, code, args, &directions, n),
    }
}

/// What to differentiate along.
pub(super) enum Directions {
    /// Nothing: the function is only run.
    None,
    /// One tangent per active argument, or one cotangent per active result.
    Given(Vec<Val<Dual>>),
}

/// The results of the function, and its derivative.
pub(super) fn once(
    machine: M<'_, '_>,
    code: &DiffCode,
    args: Vec<Val<Dual>>,
    directions: Directions,
) -> Res<Vec<Val<Dual>>> {
    let mut run = |machine: M<'_, '_>, args: Vec<Val<Dual>>| {
        let bottom = machine.stack.len();
        machine.stack.extend(args);
        machine.apply(&code.lam)?;
        Ok(machine.stack.split_off(bottom))
    };
    let Directions::Given(directions) = directions else { return run(machine, args) };
    if code.reverse {
        reverse(machine, &code.arg_types, &code.result_types, args, &directions, &mut run)
    } else {
        forward(machine, &code.arg_types, &code.result_types, args, directions, &mut run)
    }
}

/// A run of the function that is differentiated.
pub(crate) type Run<'a> = &'a mut dyn FnMut(M<'_, '_>, Vec<Val<Dual>>) -> Res<Vec<Val<Dual>>>;

/// Results, then one tangent per active result.
pub(crate) fn forward(
    machine: M<'_, '_>,
    arg_types: &[Type],
    result_types: &[Type],
    args: Vec<Val<Dual>>,
    tangents: Vec<Val<Dual>>,
    run: Run<'_>,
) -> Res<Vec<Val<Dual>>> {
    let level = machine.state.fresh_level();
    let program = machine.code.program;
    let mut tangents = tangents.into_iter();
    let mut dual_args = Vec::with_capacity(args.len());
    for (arg, ty) in args.into_iter().zip(arg_types) {
        if program.is_active(ty) {
            let tangent = tangents.next().ok_or_else(|| internal("too few tangents"))?;
            dual_args.push(attach(machine, level, arg, &tangent)?);
        } else {
            dual_args.push(arg);
        }
    }
    let results = run(machine, dual_args)?;
    let mut out = Vec::with_capacity(2 * results.len());
    for value in &results {
        out.push(each_float(machine, value.clone(), &mut |x| x.split(level).0)?);
    }
    for (value, ty) in results.iter().zip(result_types) {
        if program.is_active(ty) {
            out.push(tangent_of(machine, level, value, ty)?);
        }
    }
    Ok(out)
}

/// Results, then one cotangent per active argument. Cost: one run per float of the arguments.
pub(crate) fn reverse(
    machine: M<'_, '_>,
    arg_types: &[Type],
    result_types: &[Type],
    args: Vec<Val<Dual>>,
    cotangents: &[Val<Dual>],
    run: Run<'_>,
) -> Res<Vec<Val<Dual>>> {
    let program = machine.code.program;
    let total: usize = args.iter().map(count_floats).sum();
    let mut slopes = Vec::with_capacity(total);
    let mut results = if total == 0 { Some(run(machine, args.clone())?) } else { None };
    for k in 0..total {
        let level = machine.state.fresh_level();
        let mut position = 0;
        let mut seed = |x: &Number| {
            let here = position == k;
            position += 1;
            if here { Number::pair(level, x.clone(), Number::Real(1.0)) } else { x.clone() }
        };
        let mut dual_args = Vec::with_capacity(args.len());
        for arg in &args {
            dual_args.push(each_float(machine, arg.clone(), &mut seed)?);
        }
        let outs = run(machine, dual_args)?;
        let mut slope = Number::Real(0.0);
        let mut directions = cotangents.iter();
        for (out, ty) in outs.iter().zip(result_types) {
            if program.is_active(ty) {
                let direction = directions.next().ok_or_else(|| internal("too few cotangents"))?;
                dot(level, out, direction, &mut slope)?;
            }
        }
        slopes.push(slope);
        if results.is_none() {
            let mut strip = |x: &Number| x.split(level).0;
            let outs = outs.into_iter().map(|v| each_float(machine, v, &mut strip));
            results = Some(outs.collect::<Res<Vec<_>>>()?);
        }
    }
    let mut out = results.unwrap_or_default();
    let mut slopes = slopes.into_iter();
    let mut next = |_: &Number| slopes.next().unwrap_or(Number::Real(0.0));
    for (arg, ty) in args.iter().zip(arg_types) {
        if program.is_active(ty) {
            out.push(cotangent_like(machine, arg, ty, &mut next)?);
        }
    }
    Ok(out)
}

/// The value with every tangent removed.
pub(crate) fn without_tangents(machine: M<'_, '_>, value: Val<Dual>) -> Res<Val<Dual>> {
    each_float(machine, value, &mut |x| Number::Real(x.primal()))
}

/// Number of floats inside, in any order.
pub(crate) fn count_floats(value: &Val<Dual>) -> usize {
    match value {
        Val::Num(x) => usize::from(x.scalar().is_float()),
        Val::Unit | Val::Acc(_) | Val::Gone => 0,
        Val::Tuple(node) | Val::Sum(_, node) => node.items.iter().map(|v| deep(|| count_floats(v))).sum(),
        Val::Arr(a) => match &a.data.data {
            Data::F32(_) | Data::F64(_) => a.count(),
            Data::Boxed(items) => {
                items[a.offset..a.offset + a.count()].iter().map(|v| deep(|| count_floats(v))).sum()
            }
            _ => 0,
        },
    }
}

/// Replaces every float, in the order of [`pullback_core::Value::floats`].
pub(crate) fn each_float(
    machine: &Machine<'_, Dual>,
    value: Val<Dual>,
    f: &mut dyn FnMut(&Number) -> Number,
) -> Res<Val<Dual>> {
    Ok(match value {
        Val::Num(Num::F32(x)) => Val::Num(Num::F32(f(&x))),
        Val::Num(Num::F64(x)) => Val::Num(Num::F64(f(&x))),
        Val::Num(_) | Val::Unit | Val::Acc(_) | Val::Gone => value,
        Val::Tuple(node) => Val::Tuple(each_float_in(machine, &node, f)?),
        Val::Sum(k, node) => Val::Sum(k, each_float_in(machine, &node, f)?),
        Val::Arr(a) => {
            let mut array = a.copied(&machine.meter)?;
            let (data, _) = array.data_mut()?;
            match data {
                Data::F32(v) | Data::F64(v) => v.iter_mut().for_each(|x| *x = f(x)),
                Data::Boxed(v) => {
                    for x in v {
                        let old = std::mem::replace(x, Val::Gone);
                        *x = deep(|| each_float(machine, old, f))?;
                    }
                }
                _ => return Ok(Val::Arr(a)),
            }
            Val::Arr(array)
        }
    })
}

fn each_float_in(
    machine: &Machine<'_, Dual>,
    node: &Node<Dual>,
    f: &mut dyn FnMut(&Number) -> Number,
) -> Res<std::rc::Rc<Node<Dual>>> {
    let items = node.items.iter().map(|v| deep(|| each_float(machine, v.clone(), f)));
    let items = items.collect::<Res<Vec<_>>>()?;
    Node::new(&machine.meter, items)
}

/// Gives every float of a value its tangent at a level.
fn attach(machine: &Machine<'_, Dual>, level: u32, value: Val<Dual>, tangent: &Val<Dual>) -> Res<Val<Dual>> {
    let all = |node: &Node<Dual>, tangents: &Node<Dual>| {
        if node.items.len() != tangents.items.len() {
            return Err(internal("a tangent with another number of components"));
        }
        let pairs = node.items.iter().zip(&tangents.items);
        let items = pairs.map(|(v, t)| deep(|| attach(machine, level, v.clone(), t)));
        Node::new(&machine.meter, items.collect::<Res<Vec<_>>>()?)
    };
    Ok(match (value, tangent) {
        (Val::Num(Num::F32(x)), Val::Num(Num::F32(t))) => {
            Val::Num(Num::F32(Number::pair(level, x, t.clone())))
        }
        (Val::Num(Num::F64(x)), Val::Num(Num::F64(t))) => {
            Val::Num(Num::F64(Number::pair(level, x, t.clone())))
        }
        (value, Val::Unit) => value,
        (Val::Tuple(node), Val::Tuple(t)) => Val::Tuple(all(&node, t)?),
        (value @ Val::Sum(..), Val::Sum(0, _)) => value,
        (Val::Sum(k, node), Val::Sum(j, t)) if *j == k + 1 => Val::Sum(k, all(&node, t)?),
        (Val::Arr(a), Val::Arr(t)) => Val::Arr(attach_array(machine, level, &a, t)?),
        (_, tangent) => return Err(wrong("a tangent of the type of its value", tangent)),
    })
}

fn attach_array(
    machine: &Machine<'_, Dual>,
    level: u32,
    value: &Arr<Dual>,
    tangent: &Arr<Dual>,
) -> Res<Arr<Dual>> {
    if !crate::core::arrays::agree(&value.shape, &tangent.shape) {
        return Err(crate::core::arrays::mismatch("tangent of an array", &value.shape, &tangent.shape));
    }
    let mut array = value.copied(&machine.meter)?;
    let from = tangent.offset;
    let (data, _) = array.data_mut()?;
    match (data, &tangent.data.data) {
        (Data::F32(v), Data::F32(t)) | (Data::F64(v), Data::F64(t)) => {
            for (x, t) in v.iter_mut().zip(&t[from..]) {
                *x = Number::pair(level, x.clone(), t.clone());
            }
        }
        (Data::Boxed(v), Data::Boxed(t)) => {
            for (x, t) in v.iter_mut().zip(&t[from..]) {
                let old = std::mem::replace(x, Val::Gone);
                *x = deep(|| attach(machine, level, old, t))?;
            }
        }
        _ => return Err(internal("a tangent array of other elements")),
    }
    Ok(array)
}

/// The tangent of a value at a level, in the cotangent type of `ty`.
fn tangent_of(machine: &Machine<'_, Dual>, level: u32, value: &Val<Dual>, ty: &Type) -> Res<Val<Dual>> {
    cotangent_like(machine, value, ty, &mut |x| x.split(level).1.unwrap_or(Number::Real(0.0)))
}

/// A value of the cotangent type of `ty`, made from the floats of a value of type `ty`, in order.
fn cotangent_like(
    machine: &Machine<'_, Dual>,
    value: &Val<Dual>,
    ty: &Type,
    f: &mut dyn FnMut(&Number) -> Number,
) -> Res<Val<Dual>> {
    let program: &Program = machine.code.program;
    if !program.is_active(ty) {
        return Ok(Val::Unit);
    }
    let mut all = |node: &Node<Dual>, types: &[Type]| {
        let pairs = node.items.iter().zip(types);
        let items = pairs.map(|(v, t)| deep(|| cotangent_like(machine, v, t, f)));
        let items = items.collect::<Res<Vec<_>>>()?;
        Node::new(&machine.meter, items)
    };
    Ok(match (value, ty) {
        (Val::Num(Num::F32(x)), Type::Scalar(_)) => Val::Num(Num::F32(f(x))),
        (Val::Num(Num::F64(x)), Type::Scalar(_)) => Val::Num(Num::F64(f(x))),
        (Val::Tuple(node), Type::Tuple(types)) => Val::Tuple(all(node, types)?),
        (Val::Sum(k, node), Type::Sum(_) | Type::Named(_)) => {
            let fields = program.variants(ty).and_then(|vs| vs.get(*k)).map(|v| v.fields.clone());
            Val::Sum(k + 1, all(node, &fields.unwrap_or_default())?)
        }
        (Val::Arr(a), Type::Array(_)) => {
            let mut array = a.copied(&machine.meter)?;
            let (data, _) = array.data_mut()?;
            match data {
                Data::F32(v) | Data::F64(v) => v.iter_mut().for_each(|x| *x = f(x)),
                Data::Boxed(v) => {
                    for x in v {
                        let old = std::mem::replace(x, Val::Gone);
                        *x = deep(|| cotangent_like(machine, &old, ty.base(), f))?;
                    }
                }
                _ => return Err(internal("a tangent of discrete elements")),
            }
            Val::Arr(array)
        }
        (value, _) => return Err(wrong("a value of its type", value)),
    })
}

/// Adds the inner product of the tangents of `value` at a level with a cotangent.
fn dot(level: u32, value: &Val<Dual>, cotangent: &Val<Dual>, sum: &mut Number) -> Res<()> {
    let mut term = |x: &Number, c: &Number| {
        if let Some(t) = x.split(level).1 {
            *sum = sum.add(&c.strong(&t));
        }
    };
    match (value, cotangent) {
        (Val::Num(Num::F32(x)), Val::Num(Num::F32(c))) | (Val::Num(Num::F64(x)), Val::Num(Num::F64(c))) => {
            term(x, c);
        }
        (_, Val::Unit) | (Val::Sum(..), Val::Sum(0, _)) => {}
        (Val::Tuple(v), Val::Tuple(c)) => {
            for (v, c) in v.items.iter().zip(&c.items) {
                deep(|| dot(level, v, c, sum))?;
            }
        }
        (Val::Sum(k, v), Val::Sum(j, c)) if *j == k + 1 => {
            for (v, c) in v.items.iter().zip(&c.items) {
                deep(|| dot(level, v, c, sum))?;
            }
        }
        (Val::Arr(v), Val::Arr(c)) => {
            if !crate::core::arrays::agree(&v.shape, &c.shape) {
                return Err(crate::core::arrays::mismatch("cotangent of an array", &v.shape, &c.shape));
            }
            match (&v.data.data, &c.data.data) {
                (Data::F32(x), Data::F32(y)) | (Data::F64(x), Data::F64(y)) => {
                    let n = v.count();
                    let (x, y) = (&x[v.offset..v.offset + n], &y[c.offset..c.offset + n]);
                    x.iter().zip(y).for_each(|(x, y)| term(x, y));
                }
                _ => {
                    for i in 0..v.count() {
                        deep(|| dot(level, &v.element(i), &c.element(i), sum))?;
                    }
                }
            }
        }
        (_, cotangent) => return Err(wrong("a cotangent of the type of its value", cotangent)),
    }
    Ok(())
}
