//! What is known of numbers: bounds of atoms, and what follows from them.
//!
//! A bound of an atom is a sum of atoms that were made before it, or that the program has compared it with. To show that a sum is at least zero, bounds are put in
//! place of atoms, the last made first. The end is a sum in which no term takes away. What is known at a place ends with the block around it.
//!
//! An atom is a word; a sum of atoms is a whole number, and need not be a word. Products of atoms have ceilings, so that it can be shown where one is.
//!
//! The file is long, and one piece: what is learned and what follows from it are two sides of one record of an atom.
//!
//! Cost: a question has [`FUEL`] steps, each of which touches the terms of one sum.

use super::sums::{Atom, Sum};
use pullback_prim::Op;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Steps for a question.
const FUEL: u32 = 160;
/// Bounds that are kept of an atom, above and below.
const BOUNDS: usize = 4;
/// So far is gone into operands of operands for a number that something is not below.
const DEPTH: u32 = 3;
/// Sums that are kept where bounds leave a choice.
const CHOICES: usize = 3;
/// Products of which it is asked whether they bound another one: the last that were found.
const CEILINGS: usize = 12;
/// From so much on it is asked whether a number is larger than all else, by the size of words.
const LARGE: i64 = 1 << 60;

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
pub(in crate::verify) enum Way {
    Down,
    Up,
}

impl Way {
    fn back(self) -> Way {
        if self == Way::Up { Way::Down } else { Way::Up }
    }
}

/// What was learned.
enum Learned {
    /// Something of an atom; what was known before.
    Of(Atom, Known),
    /// That a product is not large.
    Ceiling,
}

#[derive(Default)]
pub(in crate::verify) struct Numbers {
    atoms: Vec<Info>,
    names: BTreeMap<(Op, Vec<Sum>), Atom>,
    /// Products that are not above a number.
    ceilings: Vec<(Vec<Atom>, i128)>,
    /// What was learned, since the outermost block began.
    log: Vec<Learned>,
    /// Terms that were touched.
    pub(in crate::verify) work: u64,
}

impl Numbers {
    /// The number of the next atom: those made from here on have it or a greater one.
    pub(in crate::verify) fn next(&self) -> u32 {
        self.atoms.len() as u32
    }
    /// A new number.
    pub(in crate::verify) fn fresh(&mut self) -> Atom {
        let x = self.next();
        self.atoms.push(Info { birth: x, ..Info::default() });
        x
    }
    /// The atom that an operation on sums is: always the same.
    pub(in crate::verify) fn operation(&mut self, op: Op, args: Vec<Sum>) -> Atom {
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
    pub(in crate::verify) fn made(&self, x: Atom) -> Option<&(Op, Vec<Sum>)> {
        self.atoms[x as usize].made.as_ref()
    }
    pub(in crate::verify) fn birth(&self, x: Atom) -> u32 {
        self.atoms[x as usize].birth
    }
    fn birth_of(&self, sum: &Sum) -> u32 {
        sum.terms().iter().flat_map(|(product, _)| product).map(|x| self.birth(*x)).max().unwrap_or(0)
    }

    // --- what is known ---

    /// The beginning of a block: what is learned from here on can be forgotten.
    pub(in crate::verify) fn begin(&self) -> usize {
        self.log.len()
    }
    /// The end of the block that began there.
    pub(in crate::verify) fn end(&mut self, begin: usize) {
        while self.log.len() > begin {
            match self.log.pop() {
                Some(Learned::Of(x, known)) => self.atoms[x as usize].known = known,
                Some(Learned::Ceiling) => drop(self.ceilings.pop()),
                None => {}
            }
        }
    }
    fn learn(&mut self, x: Atom, change: impl FnOnce(&mut Known)) {
        let known = &mut self.atoms[x as usize].known;
        self.log.push(Learned::Of(x, known.clone()));
        change(known);
    }
    /// A number of elements: it is not negative; if it is a sum of products, neither are the extents of arrays that it is made of.
    pub(in crate::verify) fn is_count(&mut self, count: &Sum) {
        self.is_not_negative(count);
        if count.terms().iter().all(|(_, n)| *n > 0) {
            count.atoms().into_iter().for_each(|x| self.at_least(x, 0));
        }
    }
    /// A number that an atom is not below.
    pub(in crate::verify) fn least(&self, x: Atom) -> Option<i64> {
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
                (Op::Or, [a, b]) => {
                    least(a).zip(least(b)).filter(|(a, b)| *a.min(b) >= 0).map(|(a, b)| a.max(b))
                }
                (Op::Quot | Op::Rem, [a, n]) => {
                    (is_natural(a) && least(n).is_some_and(|n| n > 0)).then_some(0)
                }
                _ => None,
            }
        });
        info.known.least.max(made)
    }
    /// A number that a sum is not below.
    pub(in crate::verify) fn least_of(&self, sum: &Sum) -> Option<i64> {
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
    /// Which of two numbers is the larger one, if that is seen at once.
    pub(in crate::verify) fn larger(&self, a: &Sum, b: &Sum) -> Option<usize> {
        let is_natural = |sum: Option<Sum>| sum.and_then(|sum| self.least_of(&sum)).is_some_and(|n| n >= 0);
        if is_natural(a.minus(b)) { Some(0) } else { is_natural(b.minus(a)).then_some(1) }
    }
    /// An atom is not below a number.
    pub(in crate::verify) fn at_least(&mut self, x: Atom, n: i64) {
        if self.least(x).is_none_or(|least| least < n) {
            self.learn(x, |known| known.least = Some(n));
            // Neither is what the smaller of some numbers is taken from.
            if let Some((Op::Min, args)) = self.made(x).cloned() {
                for a in args {
                    a.plus_constant(-n).iter().for_each(|above| self.is_not_negative(above));
                }
            }
            if n >= 0 {
                self.is_whole(x);
            }
        }
    }
    /// A sum is at least zero.
    pub(in crate::verify) fn is_not_negative(&mut self, sum: &Sum) {
        let sum = self.normal(sum);
        let sum = sum.tightened().unwrap_or(sum);
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
    // --- words ---

    /// A sum is not above a number.
    pub(in crate::verify) fn is_small(&mut self, sum: &Sum, most: i128) {
        let sum = self.normal(sum);
        if let [(product, n)] = sum.terms()
            && *n > 0
            && !product.is_empty()
        {
            self.ceilings.push((product.clone(), most / i128::from(*n)));
            self.log.push(Learned::Ceiling);
            let word = self.names.get(&(Op::Add, vec![sum.clone()])).copied();
            if let Some(word) = word.filter(|x| self.least(*x).is_some_and(|l| l >= 0)) {
                self.is_whole(word);
            }
        } else if let Ok(most) = i64::try_from(most)
            && let Some(above) = Sum::constant(most).minus(&sum)
        {
            self.is_not_negative(&above);
        }
    }
    /// A number that a product of atoms is not above, none of which is negative.
    fn ceiling(&mut self, product: &[Atom]) -> Option<i128> {
        let single = (product.len() == 1).then_some(i128::from(i64::MAX));
        self.work += 1 + self.ceilings.len().min(CEILINGS) as u64;
        let known = self.ceilings.iter().rev().take(CEILINGS).filter_map(|(whole, most)| {
            let mut rest = whole.clone();
            for x in product {
                rest.remove(rest.iter().position(|y| y == x)?);
            }
            let least = rest.iter().try_fold(1i128, |p, x| {
                let least = self.least(*x).filter(|least| *least > 0)?;
                p.checked_mul(i128::from(least))
            })?;
            Some(most / least)
        });
        known.chain(single).min()
    }
    /// A number that a sum is not above; no atom of it is negative where that is asked.
    fn most(&mut self, sum: &Sum) -> Option<i128> {
        sum.terms().iter().try_fold(0i128, |all, (product, n)| {
            let most = match (product.is_empty(), *n > 0) {
                (true, _) => 1,
                (false, true) if product.iter().all(|x| self.least(*x).is_some_and(|l| l >= 0)) => {
                    self.ceiling(product)?
                }
                (false, true) if product.len() == 1 => i128::from(i64::MAX),
                (false, true) => return None,
                (false, false) => {
                    let least = product.iter().try_fold(1i128, |p, x| {
                        p.checked_mul(i128::from(self.least(*x).filter(|l| *l >= 0)?))
                    });
                    least?
                }
            };
            all.checked_add(i128::from(*n).checked_mul(most)?)
        })
    }
    /// Whether a sum of words is surely a word itself: nothing wraps round.
    pub(in crate::verify) fn is_word(&mut self, sum: &Sum) -> bool {
        if sum.as_constant().is_some() || sum.as_atom().is_some() {
            return true;
        }
        // (A product is known by the sizes that it was made of.)
        let is_known = |n: &mut Numbers, sum: &Sum| {
            n.has_naturals(sum)
                && sum.terms().iter().all(|(_, n)| *n > 0)
                && n.most(sum).is_some_and(|most| most <= i128::from(i64::MAX))
        };
        if is_known(self, sum) {
            return true;
        }
        let sum = self.normal(sum);
        let (constant, others) = sum.parted(<[Atom]>::is_empty);
        let constant = constant.as_constant().unwrap_or(0);
        // (What makes it easier is left out where the bound is no word.)
        let low = others.plus_constant(constant.min(0)).and_then(|s| s.plus_constant(i64::MAX - LARGE));
        let high = others.plus_constant(constant.max(0)).and_then(|s| Sum::constant(i64::MAX).minus(&s));
        low.is_some_and(|low| self.is_natural(&low)) && high.is_some_and(|high| self.is_natural(&high))
    }
    /// Whether no atom of a sum is negative.
    pub(in crate::verify) fn has_naturals(&self, sum: &Sum) -> bool {
        sum.atoms().into_iter().all(|x| self.least(x).is_some_and(|l| l >= 0))
    }
    /// The word that a sum is: the sum, if it is one.
    pub(in crate::verify) fn word(&mut self, sum: &Sum) -> Sum {
        if self.is_word(sum) {
            return sum.clone();
        }
        Sum::atom(self.operation(Op::Add, vec![sum.clone()]))
    }
    /// An atom that arithmetic gave is the sum, if it is known by now that this is a word.
    pub(in crate::verify) fn settle(&mut self, x: Atom) {
        let Some((op, args)) = self.made(x).cloned() else { return };
        let sum = match (op, &args[..]) {
            (Op::Add, [a]) => Some(a.clone()),
            (Op::Add, [a, b]) => a.plus(b, 1),
            (Op::Sub, [a, b]) => a.minus(b),
            (Op::Mul, [a, b]) => a.times(b),
            (Op::Neg, [a]) => a.times_constant(-1),
            _ => None,
        };
        if let Some(sum) = sum.filter(|sum| self.atoms[x as usize].known.equal.is_none() && self.is_word(sum))
        {
            self.learn(x, |known| known.equal = Some(Rc::new(sum)));
        }
    }
    /// An atom is not negative: if it is the word of a sum that could have wrapped round once, it has not.
    fn is_whole(&mut self, x: Atom) {
        let Some((Op::Add, args)) = self.made(x).cloned() else { return };
        let [sum] = &args[..] else { return };
        let is_there = self.atoms[x as usize].known.equal.is_none() && self.is_natural(sum);
        if is_there && self.most(sum).is_some_and(|most| most < 1 << 64) {
            self.learn(x, |known| known.equal = Some(Rc::new(sum.clone())));
            self.is_small(sum, i128::from(i64::MAX));
        }
    }

    /// Two sums are equal.
    pub(in crate::verify) fn are_equal(&mut self, a: &Sum, b: &Sum) {
        let Some(difference) = self.normal(a).minus(&self.normal(b)) else { return };
        let difference = difference.primitive();
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
    pub(in crate::verify) fn differ(&mut self, a: &Sum, b: &Sum) {
        let Some(difference) = self.normal(a).minus(&self.normal(b)) else { return };
        if let Some(x) = difference.as_atom() {
            self.learn(x, |known| known.is_not_zero = true);
        }
        // (A product that is not zero has no factor that is.)
        if let [(product, _)] = difference.terms()
            && self.has_naturals(&difference)
        {
            product.iter().for_each(|x| self.at_least(*x, 1));
        }
    }
    /// A number that the magnitude of a sum is not below.
    pub(in crate::verify) fn magnitude(&self, sum: &Sum) -> i64 {
        let [(product, n)] = sum.terms() else { return 0 };
        let is_there =
            |x: &Atom| self.atoms[*x as usize].known.is_not_zero || self.least(*x).is_some_and(|l| l > 0);
        if product.iter().all(is_there) { n.saturating_abs() } else { 0 }
    }
    /// The sum with what is known to be equal in place of atoms.
    pub(in crate::verify) fn normal(&mut self, sum: &Sum) -> Sum {
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
    pub(in crate::verify) fn is_natural(&mut self, sum: &Sum) -> bool {
        let mut fuel = FUEL;
        let sum = self.normal(sum);
        self.natural(&sum, &mut fuel)
    }
    /// Whether the first sum is surely at most the second.
    pub(in crate::verify) fn is_at_most(&mut self, a: &Sum, b: &Sum) -> bool {
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
        if self.is_large(sum) {
            return true;
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
            if self.natural_by_operands(x, (&a, &b), fuel) {
                return true;
            }
        }
        false
    }
    /// The same of `a * x + b` by what `x` is made of: one of two numbers, or a quotient that is multiplied by its divisor.
    fn natural_by_operands(&mut self, x: Atom, (a, b): (&Sum, &Sum), fuel: &mut u32) -> bool {
        let Some((op @ (Op::Min | Op::Max | Op::Quot), args)) = self.made(x).cloned() else { return false };
        let sign = if op == Op::Min { Some(a.clone()) } else { a.times_constant(-1) };
        if !sign.is_some_and(|sign| self.natural(&sign, fuel)) {
            return false;
        }
        let mut with = |times: &Sum, by: &Sum| {
            let sum = times.times(by).and_then(|p| p.plus(b, 1));
            sum.is_some_and(|sum| self.natural(&sum, fuel))
        };
        match (op, &args[..]) {
            (Op::Min | Op::Max, [p, q]) => with(a, p) && with(a, q),
            (Op::Quot, [p, q]) => {
                let Some((times, rest)) = q.as_atom().and_then(|y| a.split(y)) else { return false };
                let is_divided = rest.is_zero() && self.least_of(p).is_some_and(|n| n >= 0);
                is_divided && self.least_of(q).is_some_and(|n| n > 0) && {
                    let sum = times.times(p).and_then(|p| p.plus(b, 1));
                    sum.is_some_and(|sum| self.natural(&sum, fuel))
                }
            }
            _ => false,
        }
    }
    /// Whether the constant of a sum is larger than all that is taken away, by the size of words.
    fn is_large(&mut self, sum: &Sum) -> bool {
        let (constant, others) = sum.parted(<[Atom]>::is_empty);
        let constant = constant.as_constant().unwrap_or(0);
        constant >= LARGE
            && others
                .times_constant(-1)
                .and_then(|others| self.most(&others))
                .is_some_and(|most| most <= i128::from(constant))
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
    pub(in crate::verify) fn reach(&mut self, sum: &Sum, start: u32, way: Way) -> Vec<Sum> {
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
