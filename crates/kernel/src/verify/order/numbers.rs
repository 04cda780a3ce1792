//! What is known of numbers: bounds of atoms, and what follows from them.
//!
//! A bound of an atom is a sum of atoms that were made before it, or that the program has compared it with. To show that a sum is at least zero, bounds are put in
//! place of atoms, the last made first. The end is a sum in which no term takes away. What is known at a place ends with the block around it.
//!
//! Cost: a question has [`FUEL`] steps, each of which touches the terms of one sum.

use super::sums::{Atom, Sum};
use pullback_prim::Op;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Steps for a question.
const FUEL: u32 = 48;
/// Bounds that are kept of an atom, above and below.
const BOUNDS: usize = 4;
/// So far is gone into operands of operands for a number that something is not below.
const DEPTH: u32 = 3;
/// Sums that are kept where bounds leave a choice.
const CHOICES: usize = 3;

/// What is known of an atom.
#[derive(Clone, Debug, Default)]
struct Info {
    /// What it is made of has this number at most.
    birth: u32,
    known: Known,
    /// Operation and operands, if it is one of a few operations.
    made: Option<(Op, Vec<Sum>)>,
}

/// What is known at a place.
#[derive(Clone, Debug, Default)]
struct Known {
    /// It is not below this number.
    least: Option<i64>,
    lows: Vec<Rc<Sum>>,
    highs: Vec<Rc<Sum>>,
    /// It is this sum.
    equal: Option<Rc<Sum>>,
    is_not_zero: bool,
}

/// Which way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Down,
    Up,
}

impl Way {
    fn back(self) -> Way {
        if self == Way::Up { Way::Down } else { Way::Up }
    }
}

#[derive(Default)]
pub(super) struct Numbers {
    atoms: Vec<Info>,
    names: BTreeMap<(Op, Vec<Sum>), Atom>,
    /// What was known before, since the outermost block began.
    log: Vec<(Atom, Known)>,
    /// Terms that were touched.
    pub(super) work: u64,
}

impl Numbers {
    /// The number of the next atom: those made from here on have it or a greater one.
    pub(super) fn next(&self) -> u32 {
        self.atoms.len() as u32
    }
    /// A new number.
    pub(super) fn fresh(&mut self) -> Atom {
        let x = self.next();
        self.atoms.push(Info { birth: x, ..Info::default() });
        x
    }
    /// The atom that an operation on sums is: always the same.
    pub(super) fn operation(&mut self, op: Op, args: Vec<Sum>) -> Atom {
        self.work += args.iter().map(|a| a.terms().len() as u64).sum::<u64>();
        let key = (op, args);
        if let Some(x) = self.names.get(&key) {
            return *x;
        }
        let x = self.next();
        let args = key.1.clone();
        let birth = args.iter().map(|a| self.birth_of(a)).max().unwrap_or(0);
        self.atoms.push(Info { birth, made: Some(key.clone()), ..Info::default() });
        self.names.insert(key, x);
        x
    }
    /// Operation and operands of an atom.
    pub(super) fn made(&self, x: Atom) -> Option<&(Op, Vec<Sum>)> {
        self.atoms[x as usize].made.as_ref()
    }
    pub(super) fn birth(&self, x: Atom) -> u32 {
        self.atoms[x as usize].birth
    }
    fn birth_of(&self, sum: &Sum) -> u32 {
        sum.terms().iter().flat_map(|(product, _)| product).map(|x| self.birth(*x)).max().unwrap_or(0)
    }

    // --- what is known ---

    /// The beginning of a block: what is learned from here on can be forgotten.
    pub(super) fn begin(&self) -> usize {
        self.log.len()
    }
    /// The end of the block that began there.
    pub(super) fn end(&mut self, begin: usize) {
        while self.log.len() > begin {
            if let Some((x, known)) = self.log.pop() {
                self.atoms[x as usize].known = known;
            }
        }
    }
    fn learn(&mut self, x: Atom, change: impl FnOnce(&mut Known)) {
        let known = &mut self.atoms[x as usize].known;
        self.log.push((x, known.clone()));
        change(known);
    }
    /// A number of elements: it is not negative; if it is a sum of products, neither are the extents of arrays that it is made of.
    pub(super) fn is_count(&mut self, count: &Sum) {
        self.is_not_negative(count);
        if count.terms().iter().all(|(_, n)| *n > 0) {
            count.atoms().into_iter().for_each(|x| self.at_least(x, 0));
        }
    }
    /// A number that an atom is not below.
    pub(super) fn least(&self, x: Atom) -> Option<i64> {
        self.least_within(x, DEPTH)
    }
    fn least_within(&self, x: Atom, depth: u32) -> Option<i64> {
        let info = &self.atoms[x as usize];
        let made = info.made.as_ref().zip(depth.checked_sub(1)).and_then(|((op, args), depth)| {
            let least = |a: &Sum| self.least_of_within(a, depth);
            let is_natural = |a: &Sum| least(a).is_some_and(|n| n >= 0);
            match (op, &args[..]) {
                (Op::Min, [a, b]) => least(a).zip(least(b)).map(|(a, b)| a.min(b)),
                (Op::Max, [a, b]) => least(a).max(least(b)),
                (Op::Mod, [_, n]) => least(n).is_some_and(|n| n > 0).then_some(0),
                (Op::And, [a, b]) => (is_natural(a) || is_natural(b)).then_some(0),
                (Op::Quot | Op::Rem, [a, n]) => {
                    (is_natural(a) && least(n).is_some_and(|n| n > 0)).then_some(0)
                }
                _ => None,
            }
        });
        info.known.least.max(made)
    }
    fn least_of(&self, sum: &Sum) -> Option<i64> {
        self.least_of_within(sum, DEPTH)
    }
    fn least_of_within(&self, sum: &Sum, depth: u32) -> Option<i64> {
        sum.terms().iter().try_fold(0i64, |all, (product, n)| {
            if product.is_empty() {
                return all.checked_add(*n);
            }
            let least = product.iter().try_fold(1i64, |p, x| {
                let least = self.least_within(*x, depth).filter(|l| *l >= 0 || product.len() == 1)?;
                p.checked_mul(least)
            })?;
            (*n > 0).then_some(())?;
            all.checked_add(n.checked_mul(least)?)
        })
    }
    /// An atom is not below a number.
    pub(super) fn at_least(&mut self, x: Atom, n: i64) {
        if self.least(x).is_none_or(|least| least < n) {
            self.learn(x, |known| known.least = Some(n));
            // Neither is what the smaller of some numbers is taken from.
            if let Some((Op::Min, args)) = self.made(x).cloned() {
                for a in args {
                    a.plus_constant(-n).iter().for_each(|above| self.is_not_negative(above));
                }
            }
        }
    }
    /// A sum is at least zero.
    pub(super) fn is_not_negative(&mut self, sum: &Sum) {
        let sum = self.normal(sum);
        self.work += sum.terms().len() as u64;
        for (product, n) in sum.terms() {
            let [x] = product[..] else {
                self.factors_are_there(&sum, product, *n);
                continue;
            };
            let Some((_, rest)) = sum.split(x).filter(|(a, _)| a.as_constant() == Some(*n)) else { continue };
            match n {
                1 => {
                    let Some(low) = rest.times_constant(-1) else { continue };
                    let least = self.least_of(&low);
                    let known = self.least(x).and_then(|n| rest.plus_constant(n));
                    if low.as_constant().is_none() && known.is_none_or(|above| !self.is_plain(&above)) {
                        self.learn(x, |known| bound(&mut known.lows, low));
                    }
                    least.iter().for_each(|n| self.at_least(x, *n));
                }
                -1 => self.learn(x, |known| bound(&mut known.highs, rest)),
                _ => {}
            }
        }
    }
    /// A product of extents that is not zero has no factor that is zero.
    fn factors_are_there(&mut self, sum: &Sum, product: &[Atom], n: i64) {
        let others = sum.terms().iter().filter(|(other, _)| other != product);
        let takes_away = !product.is_empty()
            && n > 0
            && others.clone().all(|(_, n)| *n < 0)
            && others.clone().any(|(product, _)| product.is_empty())
            && others
                .clone()
                .flat_map(|(product, _)| product)
                .all(|x| self.least(*x).is_some_and(|l| l >= 0));
        if takes_away && product.iter().all(|x| self.least(*x).is_some_and(|l| l >= 0)) {
            product.iter().for_each(|x| self.at_least(*x, 1));
        }
    }
    /// Two sums are equal.
    pub(super) fn are_equal(&mut self, a: &Sum, b: &Sum) {
        let Some(difference) = self.normal(a).minus(&self.normal(b)) else { return };
        self.work += difference.terms().len() as u64;
        // The last atom, if it stands alone, is made of the others.
        let last = difference.atoms().first().and_then(|x| Some((*x, difference.split(*x)?)));
        if let Some((x, (sign, rest))) = last
            && let Some(sign @ (1 | -1)) = sign.as_constant()
            && let Some(value) = rest.times_constant(-sign)
        {
            let least = self.least(x);
            if let (Some(n), Some(y)) = (least, value.as_atom()) {
                self.at_least(y, n);
            }
            return self.learn(x, |known| known.equal = Some(Rc::new(value)));
        }
        for sign in [1, -1] {
            difference.times_constant(sign).iter().for_each(|above| self.is_not_negative(above));
        }
    }
    /// Two sums are different.
    pub(super) fn differ(&mut self, a: &Sum, b: &Sum) {
        let Some(difference) = self.normal(a).minus(&self.normal(b)) else { return };
        if let Some(x) = difference.as_atom() {
            self.learn(x, |known| known.is_not_zero = true);
        }
    }
    /// A number that the magnitude of a sum is not below.
    pub(super) fn magnitude(&self, sum: &Sum) -> i64 {
        let [(product, n)] = sum.terms() else { return 0 };
        let is_there =
            |x: &Atom| self.atoms[*x as usize].known.is_not_zero || self.least(*x).is_some_and(|l| l > 0);
        if product.iter().all(is_there) { n.saturating_abs() } else { 0 }
    }
    /// The sum with what is known to be equal in place of atoms.
    pub(super) fn normal(&mut self, sum: &Sum) -> Sum {
        let mut out = sum.clone();
        for _ in 0..FUEL {
            let known = |x: &Atom| Some((*x, self.atoms[*x as usize].known.equal.clone()?));
            let Some((x, by)) = out.atoms().iter().find_map(known) else { break };
            self.work += out.terms().len() as u64;
            let Some(replaced) = out.replaced(x, &by) else { break };
            out = replaced;
        }
        out
    }

    // --- what follows ---

    /// Whether a sum is surely at least zero.
    pub(super) fn is_natural(&mut self, sum: &Sum) -> bool {
        let mut fuel = FUEL;
        let sum = self.normal(sum);
        self.natural(&sum, &mut fuel)
    }
    /// Whether the first sum is surely at most the second.
    pub(super) fn is_at_most(&mut self, a: &Sum, b: &Sum) -> bool {
        b.minus(a).is_some_and(|difference| self.is_natural(&difference))
    }
    fn natural(&mut self, sum: &Sum, fuel: &mut u32) -> bool {
        let Some(left) = fuel.checked_sub(1) else { return false };
        *fuel = left;
        self.work += 1 + sum.terms().len() as u64;
        if self.is_plain(sum) {
            return true;
        }
        if sum.as_constant().is_some() {
            return false;
        }
        for x in sum.atoms() {
            let Some((a, b)) = sum.split(x) else { continue };
            let Some(bounds) = self.bounds(x, &a, Way::Down, fuel) else { continue };
            for bound in bounds {
                let less = a.times(&bound).and_then(|p| p.plus(&b, 1));
                if less.is_some_and(|less| self.natural(&less, fuel)) {
                    return true;
                }
            }
        }
        false
    }
    /// The bounds of an atom that bound `a` times it; `None`: the sign of `a` is not known.
    fn bounds(&mut self, x: Atom, a: &Sum, way: Way, fuel: &mut u32) -> Option<Vec<Rc<Sum>>> {
        let way = match a.as_constant() {
            Some(n) if n >= 0 => way,
            Some(_) => way.back(),
            None if self.natural(a, fuel) => way,
            None => {
                let negative = a.times_constant(-1)?;
                self.natural(&negative, fuel).then(|| way.back())?
            }
        };
        let (lows, highs) = self.bounds_of_operation(x);
        let known = &self.atoms[x as usize].known;
        let least = self.least(x).map(|n| Rc::new(Sum::constant(n)));
        Some(match way {
            Way::Up => known.highs.iter().cloned().chain(highs).collect(),
            Way::Down => least.into_iter().chain(known.lows.iter().cloned()).chain(lows).collect(),
        })
    }
    /// What an operation on numbers is not below, and not above.
    fn bounds_of_operation(&self, x: Atom) -> (Vec<Rc<Sum>>, Vec<Rc<Sum>>) {
        let Some((op, args)) = self.made(x) else { return Default::default() };
        let all = |sums: &[Sum]| sums.iter().cloned().map(Rc::new).collect();
        let is_natural = |a: &Sum| self.least_of(a).is_some_and(|n| n >= 0);
        match (op, &args[..]) {
            (Op::Min, _) => (Vec::new(), all(args)),
            (Op::Max, _) => (all(args), Vec::new()),
            (Op::Mod | Op::Rem, [_, n]) if self.least_of(n).is_some_and(|n| n > 0) => {
                (Vec::new(), n.plus_constant(-1).map(Rc::new).into_iter().collect())
            }
            (Op::And, [a, b]) => {
                (Vec::new(), [a, b].into_iter().filter(|a| is_natural(a)).cloned().map(Rc::new).collect())
            }
            (Op::Quot, [a, n]) if is_natural(a) && self.least_of(n).is_some_and(|n| n > 0) => {
                (Vec::new(), vec![Rc::new(a.clone())])
            }
            _ => Default::default(),
        }
    }
    /// Whether no term takes away, once each atom is what it has above the number that it is not below.
    fn is_plain(&self, sum: &Sum) -> bool {
        let mut above = sum.clone();
        for x in sum.atoms() {
            let Some(least) = self.least(x) else { return false };
            if least != 0 {
                let Some(moved) = Sum::atom(x).plus_constant(least).and_then(|by| above.replaced(x, &by))
                else {
                    return false;
                };
                above = moved;
            }
        }
        above.terms().iter().all(|(_, n)| *n > 0)
    }
    /// Sums of atoms from before `start` that a sum is surely not above, or not below; none if that is not known.
    pub(super) fn reach(&mut self, sum: &Sum, start: u32, way: Way) -> Vec<Sum> {
        let mut fuel = FUEL;
        let mut out = Vec::new();
        let sum = self.normal(sum);
        self.reached(&sum, start, way, &mut fuel, &mut out);
        out
    }
    fn reached(&mut self, sum: &Sum, start: u32, way: Way, fuel: &mut u32, out: &mut Vec<Sum>) {
        let Some(left) = fuel.checked_sub(1) else { return };
        *fuel = left;
        self.work += 1 + sum.terms().len() as u64;
        let Some(x) = sum.atoms().into_iter().find(|x| self.birth(*x) >= start) else {
            if out.len() < CHOICES && !out.contains(sum) {
                out.push(sum.clone());
            }
            return;
        };
        let Some((a, b)) = sum.split(x) else { return };
        let Some(bounds) = self.bounds(x, &a, way, fuel) else { return };
        for bound in bounds {
            if let Some(next) = a.times(&bound).and_then(|p| p.plus(&b, 1)) {
                let next = self.normal(&next);
                self.reached(&next, start, way, fuel, out);
            }
        }
    }
}

/// One bound more. The first is that of a counter and stays; of the others the newest ones do.
fn bound(bounds: &mut Vec<Rc<Sum>>, sum: Sum) {
    if !bounds.iter().any(|known| **known == sum) {
        bounds.insert(bounds.len().min(1), Rc::new(sum));
        bounds.truncate(BOUNDS);
    }
}
