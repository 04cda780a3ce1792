//! Arrays as values: elements in row-major order.

use super::a_core::Ty;
use super::sizes::Size;
use pullback_prim::{Scalar, ScalarValue};
use std::sync::Arc;

/// An array. The product of its sizes is the number of its elements. Copies share them.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor<E> {
    /// The type of its elements, which is known also if there are none.
    pub scalar: Scalar,
    /// Its sizes, outermost first.
    pub shape: Vec<usize>,
    /// Its elements.
    pub elements: Arc<Vec<E>>,
}

impl<E> Tensor<E> {
    /// The array.
    ///
    /// # Panics
    /// If it has another number of elements than its shape says.
    pub fn new(scalar: Scalar, shape: Vec<usize>, elements: Vec<E>) -> Tensor<E> {
        assert_eq!(shape.iter().product::<usize>(), elements.len(), "as many elements as the shape says");
        Tensor { scalar, shape, elements: Arc::new(elements) }
    }
    /// The number of elements of a subarray that this many components of an index choose.
    pub(super) fn inner(&self, components: usize) -> usize {
        self.shape[components..].iter().product()
    }
    /// Where the subarray of an index begins; `None` outside of the array.
    pub(super) fn position(&self, index: &[i64]) -> Option<usize> {
        position(&self.shape, index)
    }
}

/// Where the subarray of an index begins, in an array of this shape; `None` outside of it.
pub(super) fn position(shape: &[usize], index: &[i64]) -> Option<usize> {
    let mut at = 0;
    for (i, n) in index.iter().zip(shape) {
        let i = usize::try_from(*i).ok().filter(|i| i < n)?;
        at = at * n + i;
    }
    Some(at * shape[index.len()..].iter().product::<usize>())
}

impl Tensor<ScalarValue> {
    /// A scalar.
    pub fn scalar(x: ScalarValue) -> Tensor<ScalarValue> {
        Tensor::new(x.scalar(), Vec::new(), vec![x])
    }
    /// Numbers, in an array of this shape.
    ///
    /// # Panics
    /// If there are not as many as the shape says.
    pub fn f64s(shape: &[usize], xs: &[f64]) -> Tensor<ScalarValue> {
        Tensor::new(Scalar::F64, shape.to_vec(), xs.iter().map(|x| ScalarValue::F64(*x)).collect())
    }
    /// Integers, in an array of this shape.
    ///
    /// # Panics
    /// If there are not as many as the shape says.
    pub fn i64s(shape: &[usize], xs: &[i64]) -> Tensor<ScalarValue> {
        Tensor::new(Scalar::I64, shape.to_vec(), xs.iter().map(|x| ScalarValue::I64(*x)).collect())
    }
    /// The same number everywhere.
    pub fn full(x: ScalarValue, shape: &[usize]) -> Tensor<ScalarValue> {
        Tensor::new(x.scalar(), shape.to_vec(), vec![x; shape.iter().product()])
    }
    /// Its elements, as `f64`.
    pub fn to_f64s(&self) -> Vec<f64> {
        self.elements.iter().map(|x| x.as_f64()).collect()
    }
    /// Its type: all its sizes are known.
    pub(super) fn ty(&self) -> Ty {
        let size = |n: &usize| Size::constant(i64::try_from(*n).unwrap_or(i64::MAX));
        Ty::new(self.shape.iter().map(size).collect(), self.scalar)
    }
}
