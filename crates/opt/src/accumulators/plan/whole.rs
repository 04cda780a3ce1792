//! The addition of a whole array: its dimensions meet the axes of the accumulator, in slices where they do not cover them.

use super::{Axes, extent};
use crate::accumulators::nest::{Nest, to_front};
use pullback_core::{Atom, Builder, Exp, SliceDim, Var, View};

/// Adds an array over the dimensions that stay, in the order of the axes, to the accumulator.
pub(super) fn add_sum(
    nest: &mut Nest<'_, '_>,
    b: &mut Builder<'_>,
    root: Var,
    axes: &Axes,
    sum: Atom,
) -> Option<()> {
    let mut sum = sum;
    let rank: usize = axes.moving.iter().map(|a| a.dims.len()).sum();
    let mut known = nest.given.clone();
    if rank >= 2 || axes.moving.iter().any(|a| a.dims.len() > 1) {
        let mut shape = Vec::new();
        for axis in &axes.moving {
            shape.push(extent(nest, b, &axis.dims, &mut known)?);
        }
        sum = b.emit(Exp::Reshape { shape, from: rank, array: sum }, "x_bar");
    }
    let order = axes.fixed.iter().map(|f| f.0).chain(axes.moving.iter().map(|a| a.number));
    let order: Vec<usize> = order.collect();
    let mut acc = view(b, root.into(), &order);
    let mut ix = Vec::new();
    for (_, start) in &axes.fixed {
        ix.push(nest.scalar(b, *start, &mut known)?);
    }
    if axes.moving.iter().any(|a| !a.whole) {
        if !ix.is_empty() {
            acc = b.emit(Exp::AccView(acc, View::Index(std::mem::take(&mut ix))), "acc");
        }
        let rank = axes.moving.len();
        for (k, axis) in axes.moving.iter().enumerate().filter(|(_, a)| !a.whole) {
            let start = nest.scalar(b, axis.start, &mut known)?;
            let stride = nest.scalar(b, axis.stride, &mut known)?;
            let len = extent(nest, b, &axis.dims, &mut known)?;
            acc = view(b, acc, &to_front(k, rank));
            acc = b.emit(Exp::AccView(acc, View::Slice(SliceDim { start, len, stride })), "acc");
            let mut back = vec![0; rank];
            to_front(k, rank).iter().enumerate().for_each(|(i, p)| back[*p] = i);
            acc = view(b, acc, &back);
        }
    }
    b.emit(Exp::AccAdd(acc, ix, sum), "done");
    Some(())
}

/// A view with its dimensions in another order.
fn view(b: &mut Builder<'_>, acc: Atom, perm: &[usize]) -> Atom {
    if perm.iter().enumerate().all(|(i, p)| i == *p) {
        acc
    } else {
        b.emit(Exp::AccView(acc, View::Rearrange(perm.to_vec())), "acc")
    }
}
