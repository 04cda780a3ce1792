//! Symbolic sizes: polynomials over the sizes that the arrays of a program's inputs have.
//!
//! The text has numbers for sizes, so that a program is one for each size of its inputs. Here a size may be a variable, so that one program, and later one compiled
//! text, serves all. Two sizes are the same if they are the same polynomial: that is what the types of Figs. 4.8 and 4.9 ask for.
//!
//! Guarantees: equality is equality of polynomials with whole coefficients; [`Size::is_never_negative`] is true only if it holds for all sizes of inputs.
//! Coefficients saturate: an array with so many elements exists for no input, unless it has none.

use pullback_prim::Op;
use std::collections::BTreeMap;
use std::fmt;

/// A size that is not known before the program runs, by its place in [`Program::sizes`](super::a_core::Program).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct SizeVar(pub u32);

impl SizeVar {
    /// The one at this place.
    pub(crate) fn at(place: usize) -> SizeVar {
        SizeVar(u32::try_from(place).unwrap_or(u32::MAX))
    }
}

/// A size: a polynomial. A product of variables is the sorted list of them; no coefficient is zero.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Size(BTreeMap<Vec<SizeVar>, i128>);

/// Sizes, outermost dimension first.
pub type Shape = Vec<Size>;

impl Size {
    /// A number.
    pub fn constant(n: i64) -> Size {
        Size::of([(Vec::new(), i128::from(n))])
    }
    /// A variable.
    pub fn var(v: SizeVar) -> Size {
        Size::of([(vec![v], 1)])
    }
    fn of(parts: impl IntoIterator<Item = (Vec<SizeVar>, i128)>) -> Size {
        let mut sum: BTreeMap<Vec<SizeVar>, i128> = BTreeMap::new();
        for (product, n) in parts {
            let at = sum.entry(product).or_default();
            *at = at.saturating_add(n);
        }
        sum.retain(|_, n| *n != 0);
        Size(sum)
    }
    /// The sum.
    #[must_use]
    pub fn plus(&self, other: &Size) -> Size {
        Size::of(self.0.iter().chain(&other.0).map(|(product, n)| (product.clone(), *n)))
    }
    /// The difference.
    #[must_use]
    pub fn minus(&self, other: &Size) -> Size {
        self.plus(&Size::of(other.0.iter().map(|(product, n)| (product.clone(), n.saturating_neg()))))
    }
    /// The product.
    #[must_use]
    pub fn times(&self, other: &Size) -> Size {
        let pairs = self.0.iter().flat_map(|a| other.0.iter().map(move |b| (a, b)));
        Size::of(pairs.map(|((p, n), (q, m))| {
            let mut both = [p.as_slice(), q].concat();
            both.sort_unstable();
            (both, n.saturating_mul(*m))
        }))
    }
    /// What this operation makes of two sizes, if it is a polynomial again.
    pub(crate) fn combined(op: Op, a: &Size, b: &Size) -> Option<Size> {
        match op {
            Op::Add => Some(a.plus(b)),
            Op::Sub => Some(a.minus(b)),
            Op::Mul => Some(a.times(b)),
            _ => None,
        }
    }
    /// The product of all sizes of a shape.
    pub fn product(shape: &[Size]) -> Size {
        shape.iter().fold(Size::constant(1), |n, size| n.times(size))
    }
    /// The number, if it is one.
    pub fn as_constant(&self) -> Option<i64> {
        match self.0.len() {
            0 => Some(0),
            1 => self.0.get(&Vec::new()).and_then(|n| i64::try_from(*n).ok()),
            _ => None,
        }
    }
    /// Whether it is known not to be negative, whatever sizes (which are not negative) the inputs have.
    pub fn is_never_negative(&self) -> bool {
        self.0.values().all(|n| *n > 0)
    }
    /// The variables that occur.
    pub fn vars(&self) -> impl Iterator<Item = SizeVar> {
        self.0.keys().flatten().copied()
    }
    /// Its products: a factor, and variables. None of zero.
    pub(crate) fn products(&self) -> impl Iterator<Item = (i64, &[SizeVar])> {
        self.0.iter().map(|(product, n)| (i64::try_from(*n).unwrap_or(i64::MAX), product.as_slice()))
    }
    /// The variable, if it is nothing else.
    pub fn as_var(&self) -> Option<SizeVar> {
        match self.0.iter().next() {
            Some((product, 1)) if self.0.len() == 1 && product.len() == 1 => Some(product[0]),
            _ => None,
        }
    }
    /// Its value; `None` if a variable has none, or the result is no `i64`.
    pub fn value(&self, sizes: &BTreeMap<SizeVar, i64>) -> Option<i64> {
        let mut sum: i128 = 0;
        for (product, n) in &self.0 {
            let mut part = *n;
            for v in product {
                part = part.checked_mul(i128::from(*sizes.get(v)?))?;
            }
            sum = sum.checked_add(part)?;
        }
        i64::try_from(sum).ok()
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("0");
        }
        // The constant comes last: `n - 1`.
        let constant = self.0.iter().take_while(|(product, _)| product.is_empty());
        let others = self.0.iter().skip_while(|(product, _)| product.is_empty());
        for (k, (product, n)) in others.chain(constant).enumerate() {
            let sign = match (k, *n < 0) {
                (0, false) => "",
                (0, true) => "-",
                (_, false) => " + ",
                (_, true) => " - ",
            };
            f.write_str(sign)?;
            let names = product.iter().map(|v| format!("n{}", v.0));
            let size = n.unsigned_abs();
            let factor = (size != 1 || product.is_empty()).then(|| size.to_string());
            let factors: Vec<String> = factor.into_iter().chain(names).collect();
            f.write_str(&factors.join("*"))?;
        }
        Ok(())
    }
}
