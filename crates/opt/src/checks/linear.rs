//! Sums of integers with factors, for what is known of indices.

use pullback_core::shapes::Dim;

/// `number + sum of factor * symbol`, in the order of symbols, without factors of zero. A symbol is a variable or a size. Every factor can be
/// negated: the least integer is taken for one that is too large.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Linear {
    pub(super) terms: Vec<(Dim, i64)>,
    pub(super) number: i64,
}

/// More terms than this are not followed.
const TERMS: usize = 6;

impl Linear {
    pub(super) fn number(number: i64) -> Linear {
        Linear { terms: Vec::new(), number }
    }
    pub(super) fn of(dim: Dim) -> Linear {
        match dim {
            Dim::Const(n) => Linear::number(n),
            dim => Linear { terms: vec![(dim, 1)], number: 0 },
        }
    }
    /// `self + factor * other`; `None`: the sum is too long, or a number too large.
    pub(super) fn plus(&self, factor: i64, other: &Linear) -> Option<Linear> {
        let sum = |a: i64, b: i64| a.checked_add(b).filter(|sum| *sum != i64::MIN);
        let number = sum(self.number, factor.checked_mul(other.number)?)?;
        let mut terms = self.terms.clone();
        for (dim, k) in &other.terms {
            let more = factor.checked_mul(*k)?;
            match terms.iter_mut().find(|(d, _)| d == dim) {
                Some((_, k)) => *k = sum(*k, more)?,
                None => terms.push((*dim, sum(0, more)?)),
            }
        }
        terms.retain(|(_, k)| *k != 0);
        (terms.len() <= TERMS).then_some(Linear { terms, number })
    }
    pub(super) fn minus(&self, other: &Linear) -> Option<Linear> {
        self.plus(-1, other)
    }
    pub(super) fn moved(&self, number: i64) -> Option<Linear> {
        self.plus(1, &Linear::number(number))
    }
    pub(super) fn times(&self, factor: i64) -> Option<Linear> {
        Linear::default().plus(factor, self)
    }
    pub(super) fn factor(&self, dim: Dim) -> i64 {
        self.terms.iter().find(|(d, _)| *d == dim).map_or(0, |(_, k)| *k)
    }
    /// With another sum in place of `scale` times a symbol, and all of it `scale` times.
    pub(super) fn replaced(&self, dim: Dim, scale: i64, by: &Linear) -> Option<Linear> {
        let k = self.factor(dim);
        let rest = self.plus(-k, &Linear::of(dim))?;
        rest.times(scale)?.plus(k, by)
    }
}
