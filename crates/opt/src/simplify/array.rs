//! Rules for arrays: known elements, known sizes, shape operations that cancel.
//!
//! An index is resolved only where it is certainly in range; a size is that of an array that has been computed, so that
//! errors of its computation have happened before.

use super::{Simplifier, Step};
use pullback_core::{Atom, Exp, Origin, SliceDim, Soac, Stm, VarInfo};
use pullback_prim::ScalarValue;

impl Simplifier<'_> {
    pub(super) fn array(&mut self, exp: Exp) -> Step {
        let found = match &exp {
            Exp::Index(a, ix) => self.index(*a, ix),
            Exp::Size(a, d) => self.size(*a, *d).map(Exp::Atom),
            Exp::Slice(a, s) => self.whole_slice(*a, s).then_some(Exp::Atom(*a)),
            Exp::Reverse(a) => match self.def(*a) {
                Some(Exp::Reverse(b)) => Some(Exp::Atom(*b)),
                // All elements are the same.
                Some(Exp::Replicate(..)) => Some(Exp::Atom(*a)),
                _ => None,
            },
            Exp::Rotate(a, k) if *k == Atom::i64(0) => Some(Exp::Atom(*a)),
            Exp::Rotate(a, _) => match self.def(*a) {
                Some(Exp::Replicate(..)) => Some(Exp::Atom(*a)),
                _ => None,
            },
            Exp::Rearrange(perm, a) => self.rearrange(perm, *a),
            Exp::Reshape { shape, from, array } => match self.def(*array) {
                // The inner reshape only named the same elements differently.
                Some(Exp::Reshape { shape: inner, from: first, array }) if inner.len() == *from => {
                    Some(Exp::Reshape { shape: shape.clone(), from: *first, array: *array })
                }
                _ => None,
            },
            Exp::Concat(arrays) => match arrays[..] {
                [a] => Some(Exp::Atom(a)),
                _ => None,
            },
            Exp::Replicate(shape, a) if shape.is_empty() => Some(Exp::Atom(*a)),
            Exp::Replicate(shape, a) => match self.def(*a) {
                Some(Exp::Replicate(inner, b)) => {
                    Some(Exp::Replicate(shape.iter().chain(inner).copied().collect(), *b))
                }
                _ => None,
            },
            _ => None,
        };
        match found {
            Some(Exp::Atom(a)) => Step::Alias(vec![a]),
            Some(exp) => {
                self.changed = true;
                Step::Become(exp)
            }
            None => Step::Become(exp),
        }
    }

    fn index(&self, a: Atom, ix: &[Atom]) -> Option<Exp> {
        let Some((first, rest)) = ix.split_first() else { return Some(Exp::Atom(a)) };
        if let ([], Some((n, value))) = (rest, a.var().and_then(|v| self.stacked.get(&v)))
            && self.in_range(*first, self.atom(*n))
        {
            return Some(Exp::Atom(self.atom(*value)));
        }
        let element = match self.def(a)? {
            Exp::ArrayLit(_, items) if self.in_range(*first, Atom::i64(items.len() as i64)) => match first {
                Atom::Const(ScalarValue::I64(i)) => items[*i as usize],
                _ => return None,
            },
            Exp::Iota(n) if self.in_range(*first, *n) => *first,
            // One dimension at a time: the element of a longer shape would need a statement of its own.
            Exp::Replicate(shape, v) => match shape[..] {
                [n] if self.in_range(*first, n) => *v,
                _ => return None,
            },
            _ => return None,
        };
        Some(if rest.is_empty() { Exp::Atom(element) } else { Exp::Index(element, rest.to_vec()) })
    }

    /// The size of a dimension, if it is known as an atom. Never answers with the size of another array: to mention
    /// that one again could keep it from being updated in place.
    pub(super) fn size(&self, a: Atom, d: usize) -> Option<Atom> {
        let (mut a, mut d) = (a, d);
        // Chains of definitions may be long; what is known is usually near.
        for _ in 0..64 {
            if let Some(size) = a.var().and_then(|v| self.widths.get(&v)?.get(d)) {
                return Some(*size);
            }
            (a, d) = match self.def(a)? {
                Exp::Replicate(shape, v) => match shape.get(d) {
                    Some(n) => return Some(*n),
                    None => (*v, d - shape.len()),
                },
                Exp::Iota(n) => return Some(*n),
                Exp::ArrayLit(_, items) if d == 0 => return Some(Atom::i64(items.len() as i64)),
                Exp::ArrayLit(_, items) => (*items.first()?, d - 1),
                Exp::Update(b, ..) | Exp::UpdateSlice(b, ..) | Exp::Reverse(b) | Exp::Rotate(b, _) => (*b, d),
                Exp::Soac(Soac::Scatter { dst, .. }) => (*dst, d),
                Exp::Slice(_, s) if d == 0 => return Some(s.len),
                Exp::Slice(b, _) => (*b, d),
                Exp::Gather(_, is) if d == 0 => (*is, 0),
                Exp::Gather(b, _) => (*b, d),
                Exp::Rearrange(perm, b) => (*b, perm.get(d).copied().unwrap_or(d)),
                Exp::Reshape { shape, from, array } => match shape.get(d) {
                    Some(n) => return Some(*n),
                    None => (*array, d - shape.len() + from),
                },
                Exp::Index(b, ix) => (*b, d + ix.len()),
                _ => return None,
            };
        }
        None
    }

    /// The sum of two arrays that are reshaped to the sizes they have: reshaped after the sum, so that it can be fused with what
    /// made them. (A map of width 0 does not know the sizes of its elements, so the reshape cannot go.)
    pub(super) fn plus(&mut self, a: Atom, b: Atom) -> Step {
        let (
            Some(Exp::Reshape { shape, from, array: x }),
            Some(Exp::Reshape { shape: same, from: also, array: y }),
        ) = (self.def(a), self.def(b))
        else {
            return Step::Become(Exp::Plus(a, b));
        };
        let is_named = |x: Atom| self.is_of_shape(x, shape, *from);
        if (shape, from) != (same, also) || !is_named(*x) || !is_named(*y) {
            return Step::Become(Exp::Plus(a, b));
        }
        let (x, y, shape, from) = (*x, *y, shape.clone(), *from);
        let [sum, named] = ["sum", "named"].map(|hint| {
            let ty = self.program.atom_type(a);
            self.program.vars.push(VarInfo { ty, hint: hint.into(), origin: Origin::default() })
        });
        let stms = vec![
            Stm { pat: vec![sum], exp: Exp::Plus(x, y) },
            Stm { pat: vec![named], exp: Exp::Reshape { shape, from, array: sum.into() } },
        ];
        Step::Splice(stms, vec![named.into()])
    }

    /// Whether the first `from` sizes of an array are known to be these.
    fn is_of_shape(&self, a: Atom, shape: &[Atom], from: usize) -> bool {
        shape.len() == from && shape.iter().enumerate().all(|(d, n)| self.size(a, d) == Some(*n))
    }

    /// Whether the slice is the whole array: from 0, as many as there are, one by one.
    fn whole_slice(&self, a: Atom, s: &SliceDim) -> bool {
        s.start == Atom::i64(0)
            && s.stride == Atom::i64(1)
            && (matches!(self.def(s.len), Some(Exp::Size(b, 0)) if *b == a) || self.size(a, 0) == Some(s.len))
    }

    fn rearrange(&self, perm: &[usize], a: Atom) -> Option<Exp> {
        if perm.iter().enumerate().all(|(i, p)| i == *p) {
            return Some(Exp::Atom(a));
        }
        let Some(Exp::Rearrange(inner, b)) = self.def(a) else { return None };
        // Dimension i of the result is dimension perm[i] of a, which is dimension inner[perm[i]] of b.
        let length = perm.len().max(inner.len());
        let through = |p: &[usize], i: usize| p.get(i).copied().unwrap_or(i);
        let both: Vec<usize> = (0..length).map(|i| through(inner, through(perm, i))).collect();
        let identity = both.iter().enumerate().all(|(i, p)| i == *p);
        Some(if identity { Exp::Atom(*b) } else { Exp::Rearrange(both, *b) })
    }
}
