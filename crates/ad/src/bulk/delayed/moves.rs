//! Gathers and scatters as expressions.

use super::{Axes, Axis, Delayed, Element, Form};
use crate::bulk::a_core::Ty;
use crate::bulk::sizes::Size;
use pullback_prim::{Op, Prim, Scalar, ScalarValue};
use std::collections::{BTreeMap, BTreeSet};

/// What is summed up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::bulk) enum Sums {
    /// Cotangents, whose zeros stop at whatever they are multiplied by.
    Cotangents,
    /// Other numbers.
    Values,
}

/// Whether an index is inside of the first dimensions of a shape; true where that is known.
pub(in crate::bulk) fn inside(axes: &Axes, ix: &[Element], shape: &[Size]) -> Element {
    let mut all = Element::constant(ScalarValue::Bool(true));
    for (i, k) in ix.iter().zip(shape) {
        let (low, high) = match i.range(axes) {
            Some((low, high)) => {
                (low.is_never_negative(), k.minus(&Size::constant(1)).minus(&high).is_never_negative())
            }
            None => (false, false),
        };
        if !low {
            let from = Element::op2(Op::Le, Scalar::I64, &Element::i64(0), i);
            all = Element::op2(Op::And, Scalar::Bool, &all, &from);
        }
        if !high {
            let to = Element::op2(Op::Lt, Scalar::I64, i, &Element::size(k));
            all = Element::op2(Op::And, Scalar::Bool, &all, &to);
        }
    }
    all
}

fn zero(scalar: Scalar) -> Element {
    Element::constant(scalar.zero())
}

// [bulk_delayed.index]  \js. if inside ts then a(ts, js) else 0
pub(in crate::bulk) fn indexed(axes: &Axes, a: &Delayed, ix: &[Element]) -> Delayed {
    let n = ix.len();
    let inside = inside(axes, ix, &a.ty.shape);
    let element = Element::inside(&inside, a.at(ix));
    Delayed { axes: a.axes[n..].to_vec(), element, ty: Ty::new(a.ty.shape[n..].to_vec(), a.ty.scalar) }
}

/// Whether each component is a counter, each another one, and there is one for each parameter: no element is read twice.
pub(in crate::bulk) fn reads_once(params: &[Axis], ix: &[Element]) -> bool {
    let counters: BTreeSet<Axis> = ix
        .iter()
        .filter_map(|e| match e.form() {
            Form::Counter(a) if params.contains(a) => Some(*a),
            _ => None,
        })
        .collect();
    counters.len() == params.len()
}

/// `i = e`, for a counter, from `k = t`: what stands at `k` tells which one was sent there.
fn solved(t: &Element, k: Axis, params: &[Axis], found: &BTreeMap<Axis, Element>) -> Option<(Axis, Element)> {
    let is_new = |a: &Axis| params.contains(a) && !found.contains_key(a);
    let here = Element::counter(k);
    let with = |op, rest: &Element| Element::op2(op, Scalar::I64, &here, rest);
    match t.form() {
        Form::Counter(a) if is_new(a) => Some((*a, here)),
        Form::Op(Prim::Op(op @ (Op::Add | Op::Sub), Scalar::I64), es) => {
            let [u, v] = &es[..] else { return None };
            let is_free = |e: &Element| !e.free().iter().any(is_new);
            match (u.form(), v.form()) {
                // [bulk_delayed.linear]  i = k - t,  i = k + t,  i = t - k
                (Form::Counter(a), _) if is_new(a) && is_free(v) => {
                    Some((*a, with(if *op == Op::Add { Op::Sub } else { Op::Add }, v)))
                }
                (_, Form::Counter(a)) if is_new(a) && is_free(u) => Some(match op {
                    Op::Add => (*a, with(Op::Sub, u)),
                    _ => (*a, Element::op2(Op::Sub, Scalar::I64, u, &here)),
                }),
                _ => None,
            }
        }
        _ => None,
    }
}

/// `scatter sh a (\is. ts)` as an expression, where `is` are the first counters of `a`; `None`: it costs less to send its elements one by one.
// [bulk_delayed.scatter]  \ks js. if (k = t for all others) and inside is then a(is, js)[k / i] else 0
pub(in crate::bulk) fn scattered(
    axes: &mut Axes,
    sh: &[Size],
    a: &Delayed,
    ix: &[Element],
    (at_any_cost, of): (bool, Sums),
) -> Option<Delayed> {
    let n = a.ty.shape.len() - (sh.len() - ix.len());
    let (params, rest) = a.axes.split_at(n);
    let ks = axes.all(&sh[..ix.len()]);
    let (mut found, mut others): (BTreeMap<Axis, Element>, _) = (BTreeMap::new(), Vec::new());
    // Plain components first: others may depend on their counters.
    for is_plain in [true, false] {
        for (t, k) in ix.iter().zip(&ks) {
            if matches!(t.form(), Form::Counter(a) if params.contains(a)) != is_plain {
                continue;
            }
            match solved(t, *k, params, &found) {
                Some((a, e)) => {
                    let e = e.put(&found);
                    found.insert(a, e);
                }
                None => others.push((t, *k)),
            }
        }
    }
    let dropped: Vec<Axis> = params.iter().copied().filter(|p| !found.contains_key(p)).collect();
    // [bulk_delayed.dropped]  a counter that is no plain component is summed up
    if !dropped.is_empty() && !others.is_empty() && !at_any_cost {
        return None;
    }
    let places: Vec<Element> = found.values().cloned().collect();
    let sizes: Vec<Size> = found.keys().filter_map(|a| axes.size(*a).cloned()).collect();
    let sent = Element::inside(&inside(axes, &places, &sizes), a.element.put(&found));
    let mut condition = Element::constant(ScalarValue::Bool(true));
    for (t, k) in others {
        let here = Element::op2(Op::Eq, Scalar::I64, &Element::counter(k), &t.put(&found));
        condition = Element::op2(Op::And, Scalar::Bool, &condition, &here);
    }
    let mut element = Element::either(&condition, sent, zero(a.ty.scalar));
    for p in dropped {
        let k = axes.size(p).cloned()?;
        element = summed(axes, p, &k, &element, of);
    }
    let axes = [ks, rest.to_vec()].concat();
    Some(Delayed { axes, element, ty: Ty::new(sh.to_vec(), a.ty.scalar) })
}

// [bulk_delayed.sum]  sum i < k. e, with a counter of its own
pub(in crate::bulk) fn summed(axes: &mut Axes, a: Axis, k: &Size, e: &Element, of: Sums) -> Element {
    let own = axes.fresh(k);
    let e = e.put(&BTreeMap::from([(a, Element::counter(own))]));
    match of {
        Sums::Cotangents => Element::sum_of_cotangents(own, k, e),
        Sums::Values => Element::sum(own, k, e),
    }
}
