//! What is known of integers at a place: ranges of counters, what conditions and checks that were passed say, definitions.
//!
//! Whether a sum is never negative is found by replacing its innermost symbol by a bound, which is a sum of symbols from further
//! out, until only a number is left (Fourier and Motzkin, one symbol at a time; bounds are tried in turn). What is not found is
//! not known: a check stays.
//!
//! Counters and sizes are taken to be less than 2^59, which no run reaches.

use super::linear::Linear;
use pullback_base::index::{IdMap, IdTable};
use pullback_core::shapes::{Dim, Shapes};
use pullback_core::{Atom, Exp, Loop, LoopForm, Program, Soac, Stm, Var};
use pullback_prim::{Op, Prim, Scalar};

/// How often a sum is rewritten for one question.
const FUEL: usize = 400;
/// How many symbols are replaced one after the other.
const DEPTH: usize = 12;
/// So many of the facts that were learned last are looked at.
const FACTS: usize = 64;
/// How many definitions are put in for a number.
const DEFINITIONS: usize = 8;

pub(super) struct Known<'p> {
    program: &'p Program,
    pub(super) shapes: Shapes,
    /// The order in which variables are bound.
    order: IdTable<Var, u32>,
    bound: u32,
    defs: IdMap<Var, Exp>,
    /// Numbers of arrays of known elements: the least, and the greatest.
    elements: IdMap<Var, (Linear, Linear)>,
    /// Least and greatest values of variables.
    ranges: IdMap<Var, (Linear, Linear)>,
    /// Sums that are not negative here.
    pub(super) facts: Vec<Linear>,
}

/// What a symbol may be replaced by: a sum in place of so many times the symbol.
type Replacement = (i64, Linear);

impl<'p> Known<'p> {
    pub(super) fn new(program: &'p Program, shapes: Shapes) -> Known<'p> {
        Known {
            program,
            shapes,
            order: IdTable::with_room(program.vars.len()),
            bound: 0,
            defs: IdMap::new(),
            elements: IdMap::new(),
            ranges: IdMap::new(),
            facts: Vec::new(),
        }
    }
    pub(super) fn bind(&mut self, vars: impl IntoIterator<Item = Var>) {
        for v in vars {
            self.order.insert(v, self.bound);
            self.bound += 1;
        }
    }
    pub(super) fn def(&self, a: Atom) -> Option<&Exp> {
        self.defs.get(&a.var()?)
    }
    pub(super) fn sum(&self, a: Atom) -> Linear {
        Linear::of(self.shapes.name(a))
    }

    /// Notes what a statement defines.
    pub(super) fn note(&mut self, stm: &Stm) {
        self.bind(stm.pat.iter().copied());
        let [v] = stm.pat[..] else { return };
        let zero = Linear::number(0);
        let elements = match &stm.exp {
            Exp::Prim(..) => {
                self.defs.insert(v, stm.exp.clone());
                None
            }
            Exp::Iota(n) => self.sum(*n).moved(-1).map(|last| (zero, last)),
            Exp::ArrayLit(_, items) => {
                let integer = |a: &Atom| match a {
                    Atom::Const(c) if c.scalar().is_integer() => Some(c.as_i64()),
                    _ => None,
                };
                let items: Option<Vec<i64>> = items.iter().map(integer).collect();
                items.and_then(|items| {
                    let (least, most) = (items.iter().min()?, items.iter().max()?);
                    Some((Linear::number(*least), Linear::number(*most)))
                })
            }
            Exp::Replicate(_, x) if self.program.atom_type(*x).scalar() == Some(Scalar::I64) => {
                let x = self.sum(*x);
                Some((x.clone(), x))
            }
            Exp::Atom(Atom::Var(a)) | Exp::Reverse(Atom::Var(a)) | Exp::Slice(Atom::Var(a), _) => {
                self.elements.get(a).cloned()
            }
            Exp::Index(Atom::Var(a), _) => {
                if let Some(range) = self.elements.get(a).cloned() {
                    self.ranges.insert(v, range);
                }
                None
            }
            _ => None,
        };
        self.elements.extend(elements.map(|range| (v, range)));
    }

    /// Notes what an expression says of the variables that it binds in its bodies.
    pub(super) fn enter(&mut self, exp: &Exp) {
        for scope in exp.bodies() {
            self.bind(scope.binds.iter());
        }
        match exp {
            Exp::Loop(Loop { form: LoopForm::For { i, n }, .. }) => {
                if let Some(last) = self.sum(*n).moved(-1) {
                    self.ranges.insert(*i, (Linear::number(0), last.clone()));
                    self.facts.push(last); // there is an iteration
                }
            }
            Exp::Soac(Soac::Map { width, lam, arrays } | Soac::Fused { width, pre: lam, arrays, .. }) => {
                for (p, a) in lam.params.iter().zip(arrays) {
                    if let Some(range) = a.var().and_then(|a| self.elements.get(&a)).cloned() {
                        self.ranges.insert(*p, range);
                    }
                }
                // There is an iteration.
                self.facts.extend(self.sum(*width).moved(-1));
            }
            _ => {}
        }
    }

    /// Notes that a condition holds, or does not.
    pub(super) fn assume(&mut self, condition: Atom, holds: bool) {
        let Some(Exp::Prim(Prim::Op(op, s), args)) = self.def(condition).cloned() else { return };
        match (op, s) {
            (Op::Not, Scalar::Bool) => self.assume(args[0], !holds),
            (Op::And, Scalar::Bool) if holds => args.iter().for_each(|a| self.assume(*a, true)),
            (Op::Or, Scalar::Bool) if !holds => args.iter().for_each(|a| self.assume(*a, false)),
            (Op::Lt | Op::Le | Op::Eq | Op::Ne, Scalar::I64) => {
                self.compared(op, self.sum(args[0]), self.sum(args[1]), holds);
                let (a, b) = (self.small(args[0]), self.small(args[1]));
                if let (Some(a), Some(b)) = (a, b) {
                    self.compared(op, a, b, holds);
                }
            }
            _ => {}
        }
    }
    fn compared(&mut self, op: Op, a: Linear, b: Linear, holds: bool) {
        let (Some(more), Some(less)) = (a.minus(&b), b.minus(&a)) else { return };
        match (op, holds) {
            (Op::Lt, true) => self.facts.extend(less.moved(-1)),
            (Op::Lt, false) => self.facts.push(more),
            (Op::Le, true) => self.facts.push(less),
            (Op::Le, false) => self.facts.extend(more.moved(-1)),
            (Op::Eq, true) | (Op::Ne, false) => self.facts.extend([more, less]),
            (Op::Eq, false) | (Op::Ne, true) => {
                if self.is_positive_or_zero(&more) {
                    self.facts.extend(more.moved(-1));
                } else if self.is_positive_or_zero(&less) {
                    self.facts.extend(less.moved(-1));
                }
            }
            _ => {}
        }
    }
    /// Notes that an index is in range.
    pub(super) fn assume_inside(&mut self, i: Atom, n: Atom) {
        let (i, n) = (self.sum(i), self.sum(n));
        let below = n.minus(&i).and_then(|d| d.moved(-1));
        self.facts.extend([Some(i), below].into_iter().flatten());
    }

    /// Whether an index is in range.
    pub(super) fn is_inside(&self, i: Atom, n: Atom) -> bool {
        self.is_between(&self.sum(i), &self.sum(n))
    }
    /// `0 <= i < n`
    pub(super) fn is_between(&self, i: &Linear, n: &Linear) -> bool {
        // Both questions about the same sum, so that it does not matter whether the sums that it was computed by overflow.
        let inside = |i: &Linear, n: &Linear| {
            let below = n.minus(i).and_then(|d| d.moved(-1));
            self.is_positive_or_zero(i) && below.is_some_and(|d| self.is_positive_or_zero(&d))
        };
        inside(i, n) || inside(&self.expanded(i), &self.expanded(n))
    }
    /// Whether all elements of an array are one number.
    pub(super) fn is_uniform(&self, a: Atom) -> bool {
        a.var().and_then(|v| self.elements.get(&v)).is_some_and(|(least, most)| least == most)
    }
    /// Whether two numbers are equal.
    pub(super) fn is_equal(&self, a: Atom, b: Atom) -> bool {
        let (a, b) = (self.sum(a), self.sum(b));
        let holds = |d: Option<Linear>| d.is_some_and(|d| self.is_positive_or_zero(&d));
        a == b || (holds(a.minus(&b)) && holds(b.minus(&a)))
    }
    /// Whether a number is never negative.
    pub(super) fn is_size(&self, n: Atom) -> bool {
        self.is_positive_or_zero(&self.sum(n))
    }

    /// The sum with the definitions of its symbols in it, where they are sums.
    fn expanded(&self, of: &Linear) -> Linear {
        let mut sum = of.clone();
        for _ in 0..DEFINITIONS {
            let next = sum.terms.iter().find_map(|(dim, k)| {
                let definition = self.definition(*dim)?;
                sum.plus(-k, &Linear::of(*dim))?.plus(*k, &definition)
            });
            match next {
                Some(next) => sum = next,
                None => break,
            }
        }
        sum
    }
    /// What a symbol is computed as, if that is a sum.
    fn definition(&self, dim: Dim) -> Option<Linear> {
        let Dim::Value(v) = dim else { return None };
        let (a, b) = match self.defs.get(&v)? {
            Exp::Prim(Prim::Convert(from, Scalar::I64), args) if from.is_integer() && from.bytes() < 8 => {
                return Some(self.sum(args[0]));
            }
            Exp::Prim(Prim::Op(Op::Neg, Scalar::I64), args) => return self.sum(args[0]).times(-1),
            Exp::Prim(Prim::Op(Op::Add, Scalar::I64), args) => (1, args),
            Exp::Prim(Prim::Op(Op::Sub, Scalar::I64), args) => (-1, args),
            Exp::Prim(Prim::Op(Op::Mul, Scalar::I64), args) => {
                return match args[..] {
                    [Atom::Const(c), x] | [x, Atom::Const(c)] => self.sum(x).times(c.as_i64()),
                    _ => None,
                };
            }
            _ => return None,
        };
        self.sum(b[0]).plus(a, &self.sum(b[1]))
    }
    /// The number as a sum of counters and sizes, of which few do not overflow.
    fn small(&self, a: Atom) -> Option<Linear> {
        let sum = self.expanded(&self.sum(a));
        let is_small = |(dim, k): &(Dim, i64)| {
            let counts = match dim {
                Dim::Const(_) | Dim::Size(..) => true,
                Dim::Value(v) => self.ranges.contains_key(v),
                Dim::Unknown => false,
            };
            counts && k.unsigned_abs() <= 4
        };
        (sum.terms.iter().all(is_small) && sum.number.unsigned_abs() <= 1 << 40).then_some(sum)
    }

    /// Whether it is known that a sum is not negative.
    pub(super) fn is_positive_or_zero(&self, sum: &Linear) -> bool {
        let mut fuel = FUEL;
        self.holds(sum, DEPTH, &mut fuel)
    }
    fn holds(&self, sum: &Linear, depth: usize, fuel: &mut usize) -> bool {
        if sum.terms.is_empty() {
            return sum.number >= 0;
        }
        if depth == 0 || *fuel == 0 {
            return false;
        }
        *fuel -= 1;
        let place = |(dim, _): &&(Dim, i64)| match dim {
            Dim::Value(v) | Dim::Size(v, _) => self.order.get(*v).copied(),
            Dim::Const(_) | Dim::Unknown => None,
        };
        let Some(&(last, factor)) = sum.terms.iter().max_by_key(place) else { return false };
        let bounds = self.bounds(last, factor > 0, depth - 1, fuel);
        let mut all = |replaced: Vec<Replacement>| {
            replaced.iter().all(|(scale, by)| {
                sum.replaced(last, *scale, by).is_some_and(|next| self.holds(&next, depth - 1, fuel))
            })
        };
        bounds.into_iter().any(&mut all) || {
            // A fact about the symbol, as often as it takes.
            self.facts.iter().rev().take(FACTS).any(|fact| {
                let k = fact.factor(last);
                let times = if k == 0 { 0 } else { factor / k };
                times > 0
                    && factor % k == 0
                    && sum
                        .plus(-times, fact)
                        .is_some_and(|next| next != *sum && self.holds(&next, depth - 1, fuel))
            })
        }
    }
    /// Alternatives for a symbol in a sum that is to be shown not to be negative: of the least that it is (`low`) or the greatest.
    /// Each is a list of replacements with all of which it has to be shown. `depth`, `fuel`: for what is asked of operands.
    fn bounds(&self, dim: Dim, low: bool, depth: usize, fuel: &mut usize) -> Vec<Vec<Replacement>> {
        let one = |sum: Linear| vec![vec![(1, sum)]];
        let v = match dim {
            Dim::Size(..) if low => return one(Linear::number(0)),
            Dim::Value(v) => v,
            Dim::Size(..) | Dim::Const(_) | Dim::Unknown => return Vec::new(),
        };
        if let Some((least, most)) = self.ranges.get(&v) {
            return one(if low { least } else { most }.clone());
        }
        let Some(Exp::Prim(prim, args)) = self.defs.get(&v) else { return Vec::new() };
        let arg = |k: usize| self.sum(args[k]);
        let number = |k: usize| match args[k] {
            Atom::Const(c) => Some(c.as_i64()),
            Atom::Var(_) => None,
        };
        let both = || vec![(1, arg(0)), (1, arg(1))];
        match *prim {
            Prim::Convert(from, Scalar::I64) if from.is_integer() && !from.is_signed() && low => {
                one(Linear::number(0))
            }
            Prim::Op(Op::Abs, Scalar::I64) if low => one(Linear::number(0)),
            Prim::Op(Op::Min, Scalar::I64) if !low => vec![vec![(1, arg(0))], vec![(1, arg(1))]],
            Prim::Op(Op::Max, Scalar::I64) if low => vec![vec![(1, arg(0))], vec![(1, arg(1))]],
            Prim::Op(Op::Min | Op::Max, Scalar::I64) => vec![both()],
            Prim::Op(Op::Select, Scalar::I64) => vec![vec![(1, arg(1)), (1, arg(2))]],
            // Of a positive divisor.
            Prim::Op(Op::Mod, Scalar::I64) | Prim::Op(Op::Rem, Scalar::I64) => {
                let positive = arg(1).moved(-1).is_some_and(|d| self.holds(&d, depth, fuel));
                let sign = *prim == Prim::Op(Op::Mod, Scalar::I64) || self.holds(&arg(0), depth, fuel);
                match (positive, low) {
                    (true, true) if sign => one(Linear::number(0)),
                    (true, false) => arg(1).moved(-1).map_or(Vec::new(), one),
                    _ => Vec::new(),
                }
            }
            Prim::Op(Op::Div | Op::Quot, Scalar::I64) => match number(1) {
                // `c q <= x <= c q + c - 1`, of a dividend that is not negative.
                Some(c) if c > 0 && self.holds(&arg(0), depth, fuel) => {
                    let by = if low { arg(0).moved(1 - c) } else { Some(arg(0)) };
                    let mut out: Vec<Vec<Replacement>> = by.into_iter().map(|by| vec![(c, by)]).collect();
                    if low {
                        out.push(vec![(1, Linear::number(0))]);
                    }
                    out
                }
                _ => Vec::new(),
            },
            _ => match self.small_definition(dim) {
                Some(sum) => one(sum),
                None => Vec::new(),
            },
        }
    }
    /// The definition of a symbol as a sum of counters and sizes.
    fn small_definition(&self, dim: Dim) -> Option<Linear> {
        let Dim::Value(v) = dim else { return None };
        self.definition(dim)?;
        self.small(v.into())
    }
}
