//! Inner rows of arrays: their sizes, single elements, and rows that are shorter, longer or reversed. Also numbers of elements.

use super::language::{AVar, Arr, ArrForm, Exp, Names, Slice, Ty, made};
use super::zeros::lambda;
use pullback_prim::{Op, Prim, Scalar};

/// The number of dimensions.
pub(super) fn rank(a: &AVar) -> usize {
    made(a.ty().array()).1
}

/// The number of outer dimensions.
fn outer(a: &AVar) -> usize {
    rank(a) - 1
}

/// The number of an element in row-major order.
pub(super) fn number(shape: &Exp, at: &Exp) -> Exp {
    let row = |n: Exp, k: usize| integer(Op::Add, integer(Op::Mul, n, shape.proj(k)), at.proj(k));
    (0..shape.ty().rank().unwrap_or(0)).fold(Exp::i64(0), row)
}

/// How many elements an array of this shape has.
pub(super) fn elements(shape: &Exp) -> Exp {
    let sizes = (0..shape.ty().rank().unwrap_or(0)).map(|k| shape.proj(k));
    sizes.reduce(|m, n| integer(Op::Mul, m, n)).unwrap_or_else(|| Exp::i64(1))
}

/// `e + n`
pub(super) fn moved(e: Exp, n: i64) -> Exp {
    if n == 0 { e } else { integer(Op::Add, e, Exp::i64(n)) }
}

pub(super) fn integer(op: Op, x: Exp, y: Exp) -> Exp {
    made(Exp::prim(Prim::Op(op, Scalar::I64), vec![x, y]))
}

/// A tuple of integers with another last component.
pub(super) fn with_last(i: &Exp, last: Exp) -> Exp {
    let n = i.ty().rank().unwrap_or(1) - 1;
    Exp::tuple((0..n).map(|k| i.proj(k)).chain([last]).collect())
}

/// The shape without the inner size.
pub(super) fn outer_shape(a: &AVar) -> Exp {
    let shape = made(Exp::shape(a));
    Exp::tuple((0..outer(a)).map(|k| shape.proj(k)).collect())
}

pub(super) fn inner_size(a: &AVar) -> Exp {
    made(Exp::shape(a)).proj(outer(a))
}

/// The element of each row at this place.
pub(super) fn element_of_rows(a: &AVar, at: Exp) -> Arr {
    let slc: Slice = (0..outer(a)).map(|_| None).chain([Some(at)]).collect();
    made(Arr::new(ArrForm::Slice(slc, Arr::var(a))))
}

/// The array, from this element of each row on, with one element less. Rows may be empty, and stay so, unless they are never empty.
pub(super) fn shortened(names: &mut Names, a: &AVar, from: i64, is_never_empty: bool) -> Arr {
    let rank = rank(a);
    let f = lambda(names, "i", Ty::index(rank), |_, i| with_last(&i, moved(i.proj(rank - 1), from)));
    let less = moved(inner_size(a), -1);
    let size = if is_never_empty { less } else { integer(Op::Max, less, Exp::i64(0)) };
    let shape = with_last(&made(Exp::shape(a)), size);
    made(Arr::new(ArrForm::Backpermute(shape, f, Arr::var(a))))
}
