//! What is known of integers and truth values while they are emitted: bounds of counters, sums with constants.
//!
//! Rules:
//! ```text
//! bound      i + c < n is true, and 0 <= i + c, where i counts up to m, c is not negative, and m + c <= n
//! smaller    min m n is at most m, and at most n
//! known      a primitive of constants is a constant, unless it stops
//! unit       x + 0, 0 + x, x - 0, x * 1, 1 * x of integers are x;   b and true, b or false are b;   b and false is false, b or true is true
//! moved      (x + c) + d is x + (c + d), and x if that is zero;   (x + c) - (x + d) is c - d
//! again      an operation on sizes that has been emitted is not emitted again
//! ```

use super::{INDEX, Lower};
use pullback_core::{Atom, Exp as Core, Var};
use pullback_prim::{Op, Prim, Scalar};
use std::collections::{BTreeMap, BTreeSet};

/// A variable that another one is at a distance of, if there is one: the integer is this distance, or a constant.
type Offset = (Option<Var>, i64);

/// What is known.
#[derive(Default)]
pub(super) struct Facts {
    /// Integers that are not negative, and below this size.
    bounds: BTreeMap<Var, Atom>,
    /// Sizes that are the smaller of two, with both.
    below: BTreeMap<Var, [Atom; 2]>,
    /// Integers that are others and a constant.
    offsets: BTreeMap<Var, (Var, i64)>,
    /// Operations on sizes that have been emitted outside of loops.
    sizes: BTreeMap<(Op, Offset, Offset), Atom>,
}

impl Facts {
    /// Says that `0 <= i < n`; what was known before stays.
    pub(super) fn is_below(&mut self, i: Atom, n: Atom) {
        if let Atom::Var(v) = i {
            self.bounds.entry(v).or_insert(n);
        }
    }
    fn offset(&self, a: Atom) -> Offset {
        match a {
            Atom::Const(c) => (None, c.as_i64()),
            Atom::Var(v) => self.offsets.get(&v).map_or((Some(v), 0), |(x, c)| (Some(*x), *c)),
        }
    }
    /// Whether it is known that `0 <= i < n`.
    pub(super) fn is_inside(&self, i: Atom, n: Atom) -> bool {
        let of = |v: &Var, c: i64| c >= 0 && self.bounds.get(v).is_some_and(|m| self.is_at_most(*m, c, n));
        if i.var().is_some_and(|v| of(&v, 0)) {
            return true;
        }
        match self.offset(i) {
            (Some(v), c) => of(&v, c),
            (None, c) => c >= 0 && matches!(n, Atom::Const(n) if c < n.as_i64()),
        }
    }
    /// Whether it is known that `0 <= i`.
    fn is_never_negative(&self, i: Atom) -> bool {
        let is_bounded = |v: Var| self.bounds.contains_key(&v);
        i.var().is_some_and(is_bounded) || matches!(self.offset(i), (Some(v), 0..) if is_bounded(v))
    }
    /// Whether it is known that `m + c <= n`, of sizes.
    fn is_at_most(&self, m: Atom, c: i64, n: Atom) -> bool {
        let (mut todo, mut seen) = (vec![m], BTreeSet::new());
        let (of, most) = self.offset(n);
        while let Some(m) = todo.pop() {
            let (base, k) = self.offset(m);
            if base == of && k.checked_add(c).is_some_and(|k| k <= most) {
                return true;
            }
            if let Atom::Var(v) = m
                && seen.insert(v)
            {
                todo.extend(self.below.get(&v).into_iter().flatten());
            }
        }
        false
    }
    /// Whether all places `i + a`, or `a - i`, of elements `i < n` are known to be inside of this size.
    pub(super) fn fits(&self, (a, is_reversed): (Atom, bool), n: Atom, size: Atom) -> bool {
        match (is_reversed, self.offset(a)) {
            (true, _) => self.is_at_most(a, 1, size) && self.is_at_most(n, -1, a),
            (false, (None, a)) => a >= 0 && self.is_at_most(n, a, size),
            (false, _) => false,
        }
    }
    /// The sum of a variable and a constant that an operation gives.
    fn moved(&self, prim: Prim, args: &[Atom]) -> Option<(Var, i64)> {
        let ((x, c), d) = match (prim, args) {
            (Prim::Op(Op::Add, INDEX), [x, Atom::Const(d)] | [Atom::Const(d), x]) => {
                (self.offset(*x), d.as_i64())
            }
            (Prim::Op(Op::Sub, INDEX), [x, Atom::Const(d)]) => (self.offset(*x), d.as_i64().wrapping_neg()),
            _ => return None,
        };
        x.map(|x| (x, c.wrapping_add(d)))
    }

    fn known(&self, prim: Prim, args: &[Atom]) -> Option<Atom> {
        let constant = |a: &Atom| match a {
            Atom::Const(c) => Some(*c),
            Atom::Var(_) => None,
        };
        if let Some(constants) = args.iter().map(constant).collect::<Option<Vec<_>>>() {
            return prim.eval(&constants).ok().map(Atom::Const);
        }
        let Prim::Op(op, scalar) = prim else { return None };
        let is = |a: Atom, c| a == Atom::Const(c);
        let (zero, one) = (scalar.zero(), scalar.one());
        match (op, scalar, args) {
            (Op::Lt, INDEX, [i, n]) if self.is_inside(*i, *n) => Some(Atom::bool(true)),
            (Op::Le, INDEX, [z, i]) if is(*z, zero) && self.is_never_negative(*i) => Some(Atom::bool(true)),
            (Op::Eq | Op::Le, s, [x, y]) if x == y && !s.is_float() => Some(Atom::bool(true)),
            (Op::Lt | Op::Ne, s, [x, y]) if x == y && !s.is_float() => Some(Atom::bool(false)),
            (Op::Min | Op::Max, s, [x, y]) if x == y && !s.is_float() => Some(*x),
            (Op::Add, s, [x, y]) if s.is_integer() && is(*y, zero) => Some(*x),
            (Op::Add, s, [x, y]) if s.is_integer() && is(*x, zero) => Some(*y),
            (Op::Sub, s, [x, y]) if s.is_integer() && is(*y, zero) => Some(*x),
            (Op::Sub, INDEX, [x, y]) => {
                let ((a, c), (b, d)) = (self.offset(*x), self.offset(*y));
                (a == b).then(|| Atom::i64(c.wrapping_sub(d)))
            }
            (Op::Mul, s, [x, y]) if s.is_integer() && is(*y, one) => Some(*x),
            (Op::Mul, s, [x, y]) if s.is_integer() && is(*x, one) => Some(*y),
            (Op::And, Scalar::Bool, [x, y]) => logical(*x, *y, true),
            (Op::Or, Scalar::Bool, [x, y]) => logical(*x, *y, false),
            (Op::Select, _, [Atom::Const(c), x, y]) => Some(if c.is_true() { *x } else { *y }),
            _ => None,
        }
    }
}

impl Lower<'_, '_> {
    /// A primitive, or what is known that it is.
    // [accelerate_to_core.prim]  op at the values of its arguments
    pub(super) fn prim(&mut self, prim: Prim, args: Vec<Atom>) -> Atom {
        if let Some(atom) = self.facts.known(prim, &args) {
            return atom;
        }
        let moved = self.facts.moved(prim, &args);
        let (prim, args) = match moved {
            Some((x, 0)) => return x.into(),
            Some((x, c)) => (Prim::Op(Op::Add, INDEX), vec![x.into(), Atom::i64(c)]),
            None => (prim, args),
        };
        let key = match (prim, &args[..]) {
            (Prim::Op(op, INDEX), [x, y]) if self.is_size && !prim.may_stop() => {
                Some((op, self.facts.offset(*x), self.facts.offset(*y)))
            }
            _ => None,
        };
        if let Some(atom) = key.and_then(|key| self.facts.sizes.get(&key)) {
            return *atom;
        }
        let atom = self.b.emit(Core::Prim(prim, args), "t");
        self.facts.sizes.extend(key.map(|key| (key, atom)));
        self.facts.offsets.extend(atom.var().zip(moved));
        atom
    }
    /// An operation on sizes, outside of loops.
    pub(super) fn size(&mut self, op: Op, m: Atom, n: Atom) -> Atom {
        self.is_size = true;
        let size = self.op2(op, INDEX, m, n);
        self.is_size = false;
        size
    }
    /// The smaller one of two sizes, outside of loops.
    pub(super) fn smaller_size(&mut self, m: Atom, n: Atom) -> Atom {
        if self.facts.is_at_most(m, 0, n) {
            return m;
        }
        if self.facts.is_at_most(n, 0, m) {
            return n;
        }
        let least = self.size(Op::Min, m, n);
        self.facts.below.extend(least.var().map(|v| (v, [m, n])));
        least
    }
    /// What body gives in a scope of its own: sizes that are emitted there are not known after it.
    pub(super) fn apart<T>(&mut self, body: impl FnOnce(&mut Self) -> T) -> T {
        let sizes = self.facts.sizes.clone();
        let result = body(self);
        self.facts.sizes = sizes;
        result
    }
}

/// `and` (the unit is true) or `or` (the unit is false), where an argument is known.
fn logical(x: Atom, y: Atom, unit: bool) -> Option<Atom> {
    match (x, y) {
        (Atom::Const(c), other) | (other, Atom::Const(c)) => {
            Some(if c.is_true() == unit { other } else { Atom::bool(!unit) })
        }
        (x, y) => (x == y).then_some(x),
    }
}
