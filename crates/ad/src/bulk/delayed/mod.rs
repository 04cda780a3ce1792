//! Arrays as functions of their counters: an array is not made, but the expression of its element is known, until something needs it in memory.
//!
//! Source: delayed arrays are those of Repa (Keller et al., ICFP 2010); the recommendation to see transpositions, slices and sums in gathers and scatters is that of section 4.6.1 of the thesis.
//!
//! Judgement: a term of type `Array [k_1, .., k_n] r` becomes `\i_1 .. i_n. e`, with `e : r`, an [`Element`].
//!
//! Notation: `a(is)` the element of `a` at `is` · `inside t k` for `0 <= t < k` · `[e / i]` put `e` in for the counter `i` · *plain*: a counter of the array that is sent, which no component before it is
//!
//! Rules:
//! ```text
//! op         op a_1 .. a_n             = \is. op a_1(is) .. a_n(is)
//! replicate  replicate k a             = \i is. a(is)
//! transpose  tr_j a                    = \is. a(is, permuted)
//! iota, constant                       = \i. i,  \is. c
//! index      index a ts                = \js. if inside ts then a(ts, js) else 0
//! gather     gather sh a (\is. ts)     = \is js. if inside ts then a(ts, js) else 0
//! sum        sumOuter a                = \js. sum i < k. a(i, js)                                  argMax, argMin as well
//! stack      [a_0, .., a_n]            = \i js. if i = 0 then a_0(js) else .. else a_n(js)         of few arrays
//! scatter    scatter sh a (\is. ts)    = \ks js. if (k = t for all others) and inside is then a(is, js)[k / i] else 0,      where each i is the plain component at k
//! linear     .. a component that is t + i or t - i, where t has no counter that is not plain yet: i = k - t or i = t - k, instead of k
//! dropped    .. a counter that is no plain component is summed up, if there are no others
//! sent       scatter sh a f            = an accumulator to which each element is added, in all other cases
//! arg_at     argMaxAt sh a f           = hist min of the counters of those numbers that are the best one of their place, which is hist max                    argMinAt as well
//! one_hot    oneHot sh ts a            = scatter sh a (\[]. ts)
//! guarded    (if c then u else 0) * v  = if c then u * v else 0,  (if c then u else 0) + (if c then v else 0) = if c then u + v else 0,      where zeros are not multiplied as numbers
//! sum_of_guarded  sum i. if c then e else 0 = if c then sum i. e else 0,   where c does not depend on i
//! sum_of_product  sum i. u * v = (sum i. u) * v, where v does not depend on i, of cotangents;  a factor u as well
//! sum_of_sum  sum i. sum j. e  = sum j. sum i. e, of cotangents, where a factor or a condition comes out of the sum over i
//! hoisted    a sum that does not depend on a counter around it      = an array in memory, read at its counters
//! sparse     \ks. sum i < n. if k = t then e else 0     = an accumulator, to which e is added at t, for all i and the other ks
//!
//! known, known_branches, integers, and, same, select, decided, same_branches, condition: what expressions of constants are
//! ```
//!
//! What is used more than once, or is read at more places than it has, goes to memory, unless it is a view (no operations of floats) or few operations.
//!
//! Guarantees: the values of the terms, up to the order of sums and the sign of zeros. The work is that of the terms, times a constant: what is made again costs less than a small constant.
//!
//! Not supported: what `to_core` does not support.

mod algebra;
mod element;
mod emit;
mod moves;

pub(super) use element::{Element, Form};
pub(super) use emit::places;
pub(super) use moves::{Sums, indexed, reads_once, scattered, summed};

use super::a_core::Ty;
use super::sizes::Size;
use pullback_core::Atom;
use std::collections::BTreeMap;
use std::rc::Rc;

/// A counter.
pub(super) type Axis = u32;

/// How far counters count.
#[derive(Debug, Default)]
pub(super) struct Axes {
    sizes: BTreeMap<Axis, Size>,
}

impl Axes {
    /// A new one.
    pub(super) fn fresh(&mut self, k: &Size) -> Axis {
        let a = u32::try_from(self.sizes.len()).unwrap_or(u32::MAX);
        self.sizes.insert(a, k.clone());
        a
    }
    /// New ones for all dimensions of a shape.
    pub(super) fn all(&mut self, shape: &[Size]) -> Vec<Axis> {
        shape.iter().map(|k| self.fresh(k)).collect()
    }
    /// Its size.
    pub(super) fn size(&self, a: Axis) -> Option<&Size> {
        self.sizes.get(&a)
    }
}

/// A variable or a constant of core, with its type in the fragment.
#[derive(Clone, Debug)]
pub(super) struct Stored {
    pub(super) atom: Atom,
    pub(super) ty: Ty,
}

/// `\is. e`
#[derive(Clone, Debug)]
pub(super) struct Delayed {
    /// `is`, a counter for each dimension.
    pub(super) axes: Vec<Axis>,
    /// `e`; it may have counters of what is around it.
    pub(super) element: Element,
    /// The type.
    pub(super) ty: Ty,
}

impl Delayed {
    /// An array in memory.
    pub(super) fn stored(axes: &mut Axes, s: &Stored) -> Delayed {
        let is = axes.all(&s.ty.shape);
        let shape: Rc<[Size]> = s.ty.shape.clone().into();
        let ix = is.iter().map(|i| Element::counter(*i)).collect();
        Delayed { element: Element::read(s.atom, &shape, s.ty.scalar, ix), axes: is, ty: s.ty.clone() }
    }
    /// A scalar.
    pub(super) fn scalar(element: Element) -> Delayed {
        Delayed { axes: Vec::new(), ty: Ty::new(Vec::new(), element.scalar()), element }
    }
    /// The element at this place; of an index that is too short, with the counters of the other dimensions.
    pub(super) fn at(&self, ix: &[Element]) -> Element {
        self.element.put(&self.axes.iter().copied().zip(ix.iter().cloned()).collect())
    }
    /// The element at these counters.
    pub(super) fn at_counters(&self, axes: &[Axis]) -> Element {
        self.at(&axes.iter().map(|a| Element::counter(*a)).collect::<Vec<_>>())
    }
    /// The array in memory that it is, with its dimensions in some order; all of it.
    pub(super) fn as_turned(&self) -> Option<(Stored, Vec<usize>)> {
        let Form::Read(atom, shape, ix) = self.element.form() else { return None };
        let place = |k: usize| {
            let is_here = |e: &Element| matches!(e.form(), Form::Counter(a) if *a == self.axes[k]);
            ix.iter().position(is_here).filter(|d| shape[*d] == self.ty.shape[k])
        };
        let order: Vec<usize> = (0..self.axes.len()).map_while(place).collect();
        let is_whole = order.len() == ix.len() && order.len() == self.axes.len();
        let ty = Ty::new(shape.to_vec(), self.ty.scalar);
        is_whole.then_some((Stored { atom: *atom, ty }, order))
    }
    /// The array in memory that it is.
    pub(super) fn as_stored(&self) -> Option<Stored> {
        if self.axes.is_empty() {
            return match self.element.form() {
                Form::Const(c) => Some(Stored { atom: Atom::Const(*c), ty: self.ty.clone() }),
                Form::Atom(a) => Some(Stored { atom: *a, ty: self.ty.clone() }),
                _ => None,
            };
        }
        let (stored, order) = self.as_turned()?;
        order.iter().enumerate().all(|(k, d)| k == *d).then_some(stored)
    }
    /// Whether it depends on counters that are not its own.
    pub(super) fn is_open(&self) -> bool {
        self.element.free().iter().any(|a| !self.axes.contains(a))
    }
    /// Whether making it again, at more places, costs what reading does.
    pub(super) fn is_view(&self) -> bool {
        self.element.is_view()
    }
}
