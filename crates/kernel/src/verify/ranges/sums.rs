//! Sums of products: how numbers are written down where places are compared.
//!
//! A sum is in a normal form: equal sums of the same atoms are equal as values. Sums are of whole numbers, not of words that wrap; one that has too many terms, or
//! a factor too large for a word, is not made.

/// A number of which nothing else is known than bounds.
pub(in crate::verify) type Atom = u32;

/// Not more terms than these, and not more atoms in a product.
const TERMS: usize = 24;
const FACTORS: usize = 8;

/// From products of atoms, in order, to how often each is there.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::verify) struct Sum(Vec<(Vec<Atom>, i64)>);

impl Sum {
    pub(in crate::verify) fn constant(n: i64) -> Sum {
        Sum(if n == 0 { Vec::new() } else { vec![(Vec::new(), n)] })
    }
    pub(in crate::verify) fn atom(x: Atom) -> Sum {
        Sum(vec![(vec![x], 1)])
    }
    pub(in crate::verify) fn is_zero(&self) -> bool {
        self.0.is_empty()
    }
    pub(in crate::verify) fn terms(&self) -> &[(Vec<Atom>, i64)] {
        &self.0
    }
    /// The number, if there are no atoms.
    pub(in crate::verify) fn as_constant(&self) -> Option<i64> {
        match &self.0[..] {
            [] => Some(0),
            [(product, n)] if product.is_empty() => Some(*n),
            _ => None,
        }
    }
    /// The atom, if it is one.
    pub(in crate::verify) fn as_atom(&self) -> Option<Atom> {
        match &self.0[..] {
            [(product, 1)] => <[Atom; 1]>::try_from(&product[..]).ok().map(|[x]| x),
            _ => None,
        }
    }
    /// The atoms, the last made first.
    pub(in crate::verify) fn atoms(&self) -> Vec<Atom> {
        let mut out: Vec<Atom> = self.0.iter().flat_map(|(product, _)| product).copied().collect();
        out.sort_unstable_by(|a, b| b.cmp(a));
        out.dedup();
        out
    }
    /// `self + factor * other`.
    pub(in crate::verify) fn plus(&self, other: &Sum, factor: i64) -> Option<Sum> {
        let mut out = Vec::with_capacity(self.0.len() + other.0.len());
        let (mut a, mut b) = (self.0.iter().peekable(), other.0.iter().peekable());
        loop {
            let order = match (a.peek(), b.peek()) {
                (None, None) => break,
                (Some(_), None) => std::cmp::Ordering::Less,
                (None, Some(_)) => std::cmp::Ordering::Greater,
                (Some((x, _)), Some((y, _))) => x.cmp(y),
            };
            let mine = if order.is_le() { a.next() } else { None };
            let theirs = if order.is_ge() { b.next() } else { None };
            let Some((product, _)) = mine.or(theirs) else { break };
            let more = theirs.map_or(Some(0), |(_, n)| n.checked_mul(factor))?;
            match mine.map_or(0, |(_, n)| *n).checked_add(more)? {
                0 => {}
                n => out.push((product.clone(), n)),
            }
        }
        (out.len() <= TERMS).then_some(Sum(out))
    }
    pub(in crate::verify) fn minus(&self, other: &Sum) -> Option<Sum> {
        self.plus(other, -1)
    }
    pub(in crate::verify) fn plus_constant(&self, n: i64) -> Option<Sum> {
        self.plus(&Sum::constant(n), 1)
    }
    pub(in crate::verify) fn times_constant(&self, n: i64) -> Option<Sum> {
        Sum::default().plus(self, n)
    }
    pub(in crate::verify) fn times(&self, other: &Sum) -> Option<Sum> {
        let mut out = Vec::with_capacity(self.0.len() * other.0.len());
        for (x, n) in &self.0 {
            for (y, m) in &other.0 {
                let mut both = [&x[..], y].concat();
                both.sort_unstable();
                (both.len() <= FACTORS).then_some(())?;
                out.push((both, n.checked_mul(*m)?));
            }
        }
        Sum::of(out)
    }
    /// The sum of terms in any order.
    fn of(mut terms: Vec<(Vec<Atom>, i64)>) -> Option<Sum> {
        terms.sort_unstable();
        let mut out: Vec<(Vec<Atom>, i64)> = Vec::with_capacity(terms.len());
        for (product, n) in terms {
            match out.last_mut() {
                Some((last, m)) if *last == product => *m = m.checked_add(n)?,
                _ => out.push((product, n)),
            }
        }
        out.retain(|(_, n)| *n != 0);
        (out.len() <= TERMS).then_some(Sum(out))
    }
    /// Divided by the greatest number that divides all its terms.
    pub(in crate::verify) fn primitive(self) -> Sum {
        let common = self.0.iter().fold(0u64, |n, (_, m)| {
            let (mut a, mut b) = (n, m.unsigned_abs());
            while b != 0 {
                (a, b) = (b, a % b);
            }
            a
        });
        match i64::try_from(common) {
            Ok(common @ 2..) => Sum(self.0.into_iter().map(|(product, n)| (product, n / common)).collect()),
            _ => self,
        }
    }
    /// `s + floor(c / n)` of `n * s + c`: it is at least zero where that is, since it is a whole number.
    pub(in crate::verify) fn tightened(&self) -> Option<Sum> {
        let (constant, times) = self.parted(<[Atom]>::is_empty);
        let one = times.clone().primitive();
        let n = times.terms().first()?.1.checked_div(one.terms().first()?.1)?;
        (n > 1).then(|| one.plus_constant(constant.as_constant()?.div_euclid(n))).flatten()
    }
    /// `a` and `b` of `a * x + b`, of which neither has the atom; `None`: some product has it twice.
    pub(in crate::verify) fn split(&self, x: Atom) -> Option<(Sum, Sum)> {
        let (mut a, mut b) = (Vec::new(), Vec::new());
        for (product, n) in &self.0 {
            match product.iter().position(|y| *y == x) {
                None => b.push((product.clone(), *n)),
                Some(at) => {
                    let mut rest = product.clone();
                    rest.remove(at);
                    (!rest.contains(&x)).then_some(())?;
                    a.push((rest, *n));
                }
            }
        }
        Some((Sum::of(a)?, Sum(b)))
    }
    /// The terms whose products `is_meant` holds of, and the others.
    pub(in crate::verify) fn parted(&self, is_meant: impl Fn(&[Atom]) -> bool) -> (Sum, Sum) {
        let (meant, others) = self.0.iter().cloned().partition(|(product, _)| is_meant(product));
        (Sum(meant), Sum(others))
    }
    /// With a sum in place of an atom.
    pub(in crate::verify) fn replaced(&self, x: Atom, by: &Sum) -> Option<Sum> {
        let mut out = Sum::default();
        for (product, n) in &self.0 {
            let (same, rest): (Vec<Atom>, Vec<Atom>) = product.iter().partition(|y| **y == x);
            let mut term = Sum(vec![(rest, *n)]);
            for _ in same {
                term = term.times(by)?;
            }
            out = out.plus(&term, 1)?;
        }
        Some(out)
    }
}
