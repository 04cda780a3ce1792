//! Permutations whose index function is turned around: an element of the target is found from its place, so no array is made.
//!
//! Rules, for each component of the place; `i` is a counter of the source that no other component has, `a` does not depend on counters:
//! ```text
//! shifted    i + a  =>  place - a
//! reversed   a - i  =>  a - place
//! range      the places of the first and of the last element are inside, or the program stops
//! onto       where source and target have the same sizes, each place has an element; else a place has one where the index is inside
//! ```
//!
//! Source: MSc thesis, 6.1, special cases of `backpermute`: its dual is another one.

use super::delayed::Pull;
use super::{INDEX, Lower};
use crate::accelerate::language::Fun;
use pullback_base::Symbol;
use pullback_core::{Atom, Exp as Core, Stm};
use pullback_prim::{Op, Prim, Scalar};

/// A component of a place.
struct Moved {
    /// The counter that it has.
    counter: usize,
    is_reversed: bool,
    /// What is added.
    offset: Atom,
}

/// A sum of at most one counter, integers, and a constant; `true`: it is subtracted.
#[derive(Default)]
struct Linear {
    counter: Option<(usize, bool)>,
    terms: Vec<(Atom, bool)>,
    constant: i64,
}

impl Linear {
    fn of(a: Atom, stms: &[Stm], ix: &[Atom]) -> Option<Linear> {
        if let Some(k) = ix.iter().position(|i| *i == a) {
            return Some(Linear { counter: Some((k, false)), ..Linear::default() });
        }
        let v = match a {
            Atom::Const(c) => return Some(Linear { constant: c.as_i64(), ..Linear::default() }),
            Atom::Var(v) => v,
        };
        let Some(stm) = stms.iter().find(|s| s.pat.contains(&v)) else {
            return Some(Linear { terms: vec![(a, false)], ..Linear::default() });
        };
        let Core::Prim(Prim::Op(op @ (Op::Add | Op::Sub), INDEX), args) = &stm.exp else { return None };
        let (x, y) = (Linear::of(args[0], stms, ix)?, Linear::of(args[1], stms, ix)?);
        x.plus(y, *op == Op::Sub)
    }
    fn plus(mut self, other: Linear, is_subtracted: bool) -> Option<Linear> {
        self.counter = match (self.counter, other.counter) {
            (Some(_), Some(_)) => return None,
            (mine, None) => mine,
            (None, Some((k, minus))) => Some((k, minus != is_subtracted)),
        };
        self.terms.extend(other.terms.into_iter().map(|(a, minus)| (a, minus != is_subtracted)));
        self.constant = match is_subtracted {
            true => self.constant.wrapping_sub(other.constant),
            false => self.constant.wrapping_add(other.constant),
        };
        Some(self)
    }
}

impl Lower<'_, '_> {
    // [accelerate_to_core.permute_moved]  \j. if the element's index is inside then c (d ! j, u ! it) else d ! j
    pub(super) fn moved(&mut self, c: &Fun, d: &Pull, f: &Fun, p: &Pull) -> Option<Pull> {
        let places = self.turned_around(f, d, p)?;
        self.check_range(&places, d, p);
        let is_onto = places.iter().zip(&d.dims).all(|(m, n)| p.dims[m.counter] == *n);
        let own = self.cost(&c.body).saturating_add(2 * places.len() as u64);
        let cost = own.saturating_add(d.cost()).saturating_add(p.cost());
        let (c, d, p) = (c.clone(), d.clone(), p.clone());
        Some(Pull::delayed(d.ty.clone(), d.dims.clone(), cost, move |this, to| {
            let (mut from, mut inside) = (to.to_vec(), Atom::bool(true));
            for (m, j) in places.iter().zip(to) {
                let (x, y) = if m.is_reversed { (m.offset, *j) } else { (*j, m.offset) };
                let (i, n) = (this.op2(Op::Sub, INDEX, x, y), p.dims[m.counter]);
                if !is_onto {
                    let is_inside = this.is_between(i, n);
                    inside = this.op2(Op::And, Scalar::Bool, inside, is_inside);
                }
                // Where the element is read, its index is inside.
                this.facts.is_below(i, n);
                from[m.counter] = i;
            }
            let x = this.element(&d, to);
            this.combined_if(inside, &c, &x, (&p, &from))
        }))
    }

    /// The components of the place, if each element goes somewhere and the function can be turned around.
    fn turned_around(&mut self, f: &Fun, d: &Pull, p: &Pull) -> Option<Vec<Moved>> {
        if d.dims.len() != p.dims.len() || d.dims.is_empty() {
            return None;
        }
        let ix = self.counters(&p.dims);
        self.b.open();
        let place = self.apply(f, ix.clone());
        let stms = self.b.close(Vec::new()).stms;
        let parts = place[1..].iter().map(|a| Linear::of(*a, &stms, &ix)).collect::<Option<Vec<_>>>()?;
        let mut seen = vec![false; ix.len()];
        for part in &parts {
            let (k, _) = part.counter?;
            if std::mem::replace(&mut seen[k], true) {
                return None;
            }
        }
        (place[0] == Atom::bool(true))
            .then(|| parts.into_iter().filter_map(|part| self.placed(part)).collect())
    }
    fn placed(&mut self, Linear { counter, terms, constant }: Linear) -> Option<Moved> {
        let (counter, is_reversed) = counter?;
        let mut offset = Atom::i64(0);
        for (a, minus) in terms {
            offset = self.size(if minus { Op::Sub } else { Op::Add }, offset, a);
        }
        let offset = self.size(Op::Add, offset, Atom::i64(constant));
        Some(Moved { counter, is_reversed, offset })
    }

    // [accelerate_to_core.permute_range]  an element that would go outside of the target stops the program
    fn check_range(&mut self, places: &[Moved], d: &Pull, p: &Pull) {
        let mut fits = Atom::bool(true);
        for (m, size) in places.iter().zip(&d.dims) {
            let n = p.dims[m.counter];
            if self.facts.fits((m.offset, m.is_reversed), n, *size) {
                continue;
            }
            let before = self.size(Op::Sub, n, Atom::i64(1));
            let last = self.size(if m.is_reversed { Op::Sub } else { Op::Add }, m.offset, before);
            for place in [m.offset, last] {
                let is_inside = self.is_between(place, *size);
                fits = self.op2(Op::And, Scalar::Bool, fits, is_inside);
            }
        }
        if fits == Atom::bool(true) {
            return;
        }
        for n in &p.dims {
            let is_empty = self.op2(Op::Le, INDEX, *n, Atom::i64(0));
            fits = self.op2(Op::Or, Scalar::Bool, fits, is_empty);
        }
        if fits != Atom::bool(true) {
            let message = Symbol::new("permute sends an element outside of its target");
            self.b.emit(Core::Assert(fits, message, Vec::new()), "inside");
        }
    }
    /// `0 <= i < n`
    fn is_between(&mut self, i: Atom, n: Atom) -> Atom {
        let low = self.op2(Op::Le, INDEX, Atom::i64(0), i);
        let high = self.op2(Op::Lt, INDEX, i, n);
        self.op2(Op::And, Scalar::Bool, low, high)
    }
}
