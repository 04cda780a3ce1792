//! Sizes: that the elements of an array can be counted, and that shapes agree.
//!
//! Products of sizes wrap round. Where an array gets a shape, whether its elements are stored or not, the program stops if there are
//! more than [`MOST`]: then the places of elements and their bytes are numbers. An array with the sizes of another one that is there is
//! not asked again. Shapes that must agree are compared before an element is read by both, but where names say that they agree.

use super::rep::{AccRep, ArrayRep, Rep, words};
use super::{Lower, Res};
use crate::ir::{Operand, Reg, Text};
use pullback_base::RuntimeErrorKind;
use pullback_core::shapes::Dim;
use pullback_core::{Atom, Type};
use pullback_prim::{Op, Prim, Scalar, ScalarValue};

/// An array has at most so many elements.
const MOST: i64 = 1 << 60;

/// What decides over the number of elements: a number, and sizes that it is multiplied by.
pub(super) type Count = (i64, Vec<Reg>);

/// The sizes apart: what is known of their product, and the others.
fn count(dims: &[Operand]) -> Count {
    let number = dims.iter().filter_map(|d| d.as_i64()).fold(1, i64::saturating_mul);
    let mut sizes: Vec<Reg> = dims.iter().filter_map(|d| d.as_reg()).collect();
    sizes.sort();
    (number, sizes)
}

/// Whether no arithmetic is needed to count: there is nothing, or it is a size itself.
fn is_plain((number, sizes): &Count) -> bool {
    *number <= 0 || (*number == 1 && sizes.len() < 2)
}

impl Lower<'_> {
    // --- numbers of elements ---

    /// Notes that a value is there: the elements of its arrays could be counted.
    pub(super) fn note_counted(&mut self, rep: &Rep) {
        let (Rep::Array(array) | Rep::Acc(AccRep { array, .. })) = rep else { return };
        let count = count(&array.dims);
        if !is_plain(&count) && !self.is_counted(&count) {
            self.counted.push(count);
        }
    }
    /// Whether an array with these sizes, or with more elements, is there.
    fn is_counted(&self, (number, sizes): &Count) -> bool {
        self.counted.iter().any(|(n, others)| n >= number && others == sizes)
    }
    /// Stops the program if an array would have more elements than arrays may have. The sizes are not negative.
    pub(super) fn check_elements(&mut self, dims: &[Operand]) {
        let count = count(dims);
        if is_plain(&count) || self.is_counted(&count) {
            return;
        }
        let bad = match (&count.1[..], count.0) {
            ([], number) => Operand::bool(number > MOST),
            ([n], number) => self.op(Op::Lt, Scalar::I64, &[Operand::i64(MOST / number), (*n).into()]),
            _ => self.is_above(MOST as f64, dims),
        };
        self.fail_too_many(bad, dims);
        self.counted.push(count);
    }
    /// The product of sizes that are not negative. Stops the program if it is no number; `whole`: they are those of an array that is there.
    pub(super) fn checked_product(&mut self, dims: &[Operand], whole: bool) -> Operand {
        let product = self.product(dims);
        let count = count(dims);
        if whole || is_plain(&count) || self.is_counted(&count) {
            return product;
        }
        // The product begins again below zero; once it comes back, it is about twice as large.
        let negative = self.op(Op::Lt, Scalar::I64, &[product, Operand::i64(0)]);
        let large = self.is_above(1.5 * (1u64 << 63) as f64, dims);
        let bad = self.either(negative, large);
        self.fail_too_many(bad, dims);
        product
    }
    /// Whether a product is above a number, up to rounding.
    fn is_above(&mut self, most: f64, dims: &[Operand]) -> Operand {
        let float = |x: f64| Operand::Const(ScalarValue::F64(x));
        let mut product = float(1.0);
        for d in dims {
            let d = self.prim(Prim::Convert(Scalar::I64, Scalar::F64), vec![*d], "d");
            product = match product {
                Operand::Const(ScalarValue::F64(1.0)) => d,
                product => self.op(Op::Mul, Scalar::F64, &[product, d]),
            };
        }
        self.op(Op::Lt, Scalar::F64, &[float(most), product])
    }
    fn fail_too_many(&mut self, bad: Operand, dims: &[Operand]) {
        let places = "[{}]".repeat(dims.len());
        let text = Text::Plain(format!("an array of shape {places} has too many elements"));
        self.fail(bad, RuntimeErrorKind::Limit, text, dims.to_vec());
    }
    /// The sum of sizes that are not negative. Stops the program if it is no number.
    pub(super) fn checked_sum(&mut self, sizes: &[Operand]) -> Operand {
        let (sum, bad) = self.sum(sizes);
        let text = Text::Plain("concat: there are too many rows to count".into());
        self.fail(bad, RuntimeErrorKind::Limit, text, Vec::new());
        sum
    }
    /// The sum of sizes that are not negative, and whether it is no number.
    pub(super) fn sum(&mut self, sizes: &[Operand]) -> (Operand, Operand) {
        let (mut sum, mut bad) = (Operand::i64(0), Operand::bool(false));
        for n in sizes {
            let before = sum;
            sum = self.add(before, *n);
            if sum != before && sum != *n {
                let negative = self.op(Op::Lt, Scalar::I64, &[sum, Operand::i64(0)]);
                bad = self.either(bad, negative);
            }
        }
        (sum, bad)
    }

    // --- strides ---

    /// Stops the program if an array among the words of a value is not in row-major order: other strides are not read.
    pub(super) fn check_strides(&mut self, ty: &Type, from: &mut dyn Iterator<Item = Operand>) -> Res<()> {
        match ty {
            Type::Tuple(items) => items.iter().try_for_each(|t| self.check_strides(t, from)),
            Type::Sum(variants) => {
                from.next();
                variants.iter().flat_map(|v| &v.fields).try_for_each(|t| self.check_strides(t, from))
            }
            Type::Array(_) => {
                let pointers = words(self.program, ty.base())?.len();
                let dims: Vec<Operand> = from.skip(pointers).take(ty.rank()).collect();
                let strides: Vec<Operand> = from.take(ty.rank()).collect();
                let expected = self.row_major(&dims);
                let mut bad = Operand::bool(false);
                for (stride, expected) in strides.iter().zip(expected) {
                    let other = self.op(Op::Ne, Scalar::I64, &[*stride, expected]);
                    bad = self.either(bad, other);
                }
                // Without elements there is no order.
                let count = self.product(&dims);
                let some = self.op(Op::Ne, Scalar::I64, &[count, Operand::i64(0)]);
                bad = self.both(bad, some);
                let (sizes, steps) = ("[{}]".repeat(dims.len()), "[{}]".repeat(dims.len()));
                let text = format!(
                    "an argument of shape {sizes} has the strides {steps}: it must be in row-major order"
                );
                let values = dims.into_iter().chain(strides).collect();
                self.fail(bad, RuntimeErrorKind::ShapeMismatch, Text::Plain(text), values);
                Ok(())
            }
            Type::Scalar(_) | Type::Acc(_) | Type::Named(_) => {
                for _ in words(self.program, ty)? {
                    from.next();
                }
                Ok(())
            }
        }
    }

    // --- shapes that agree ---

    /// Stops the program if two shapes differ. Arrays without elements always agree: they may not know their inner sizes.
    pub(super) fn check_shapes(&mut self, what: &str, left: &[Operand], right: &[Operand]) {
        self.check_shapes_if(Operand::bool(true), what, (left, right));
    }
    /// The same where a condition holds.
    pub(super) fn check_shapes_if(
        &mut self,
        condition: Operand,
        what: &str,
        (left, right): (&[Operand], &[Operand]),
    ) {
        let differ = self.differ(left, right);
        let bad = self.both(condition, differ);
        let values = left.iter().chain(right).copied().collect();
        let text = Text::Shapes(what.to_string(), left.len());
        self.fail(bad, RuntimeErrorKind::ShapeMismatch, text, values);
    }
    /// Whether two shapes differ, and one has elements.
    pub(super) fn differ(&mut self, left: &[Operand], right: &[Operand]) -> Operand {
        let mut differ = Operand::bool(false);
        for (l, r) in left.iter().zip(right) {
            if l != r {
                let here = self.op(Op::Ne, Scalar::I64, &[*l, *r]);
                differ = self.either(differ, here);
            }
        }
        // (One of two numbers that differ is not 0.)
        if differ == Operand::bool(false) || left.len() == 1 {
            return differ;
        }
        let (n, m) = (self.product(left), self.product(right));
        let both = self.op(Op::Or, Scalar::I64, &[n, m]);
        let some = self.op(Op::Ne, Scalar::I64, &[both, Operand::i64(0)]);
        self.both(differ, some)
    }
    /// Stops the program if a reshape of the first `from` sizes of an array to others changes the number of elements.
    pub(super) fn check_reshape(&mut self, array: &ArrayRep, from: usize, sizes: &[Operand]) {
        self.check_counts(&array.dims[..from], from == array.rank(), sizes);
    }
    /// Stops the program if arrays of these shapes have different numbers of elements; `whole`: an array of the old one is there.
    pub(super) fn check_counts(&mut self, old: &[Operand], whole: bool, sizes: &[Operand]) {
        let new = self.checked_product(sizes, false);
        let now = self.checked_product(old, whole);
        let differ =
            if new == now { Operand::bool(false) } else { self.op(Op::Ne, Scalar::I64, &[now, new]) };
        let values = old.iter().chain(sizes).copied().collect();
        self.fail(differ, RuntimeErrorKind::ShapeMismatch, Text::Reshape(old.len()), values);
    }
    /// Whether these are, by name, the first sizes of an array.
    pub(super) fn has_sizes(&self, a: Atom, shape: &[Atom]) -> bool {
        let names: Vec<Dim> = shape.iter().map(|n| self.shapes.name(*n)).collect();
        self.names(a).get(..shape.len()).is_some_and(|dims| self.same_sizes(&names, dims))
    }
    /// The names of the sizes of an array, or of one that is added to.
    pub(super) fn names(&self, a: Atom) -> Vec<Dim> {
        a.var().map_or(Vec::new(), |v| self.shapes.of(v).to_vec())
    }
    /// Whether an array has, by name, the sizes that another one has after the first `depth`.
    pub(super) fn is_part(&self, part: Atom, (whole, depth): (Atom, usize)) -> bool {
        self.names(whole).get(depth..).is_some_and(|dims| self.same_sizes(dims, &self.names(part)))
    }
    /// Whether the rows of two arrays have, by name, the same sizes.
    pub(super) fn rows_agree(&self, a: Atom, b: Atom) -> bool {
        let (a, b) = (self.names(a), self.names(b));
        a.len() == b.len() && self.same_sizes(&a[1..], &b[1..])
    }
    /// Whether sizes are equal by name. (One that compiled code lost, since there is no element, comes after one that is 0.)
    pub(super) fn same_sizes(&self, left: &[Dim], right: &[Dim]) -> bool {
        left.len() == right.len() && left.iter().zip(right).all(|(l, r)| self.called(*l) == self.called(*r))
    }
}
