//! Addition of cotangents.

use super::arrays::{agree, mismatch};
use super::compile::deep;
use super::machine::{Machine, Res, internal, wrong};
use super::num::Domain;
use super::value::{Arr, Data, Node, Val};

/// How many scalars are added: where a sum is zero there is nothing to add.
pub(crate) fn added<D: Domain>(a: &Val<D>, b: &Val<D>) -> u64 {
    let pairs = |x: &[Val<D>], y: &[Val<D>]| x.iter().zip(y).map(|(x, y)| added(x, y)).sum();
    match (a, b) {
        (Val::Sum(0, _), _) | (_, Val::Sum(0, _)) => 0,
        (Val::Sum(_, x), Val::Sum(_, y)) | (Val::Tuple(x), Val::Tuple(y)) => {
            deep(|| pairs(&x.items, &y.items))
        }
        (_, b) => b.leaves(),
    }
}

impl<D: Domain> Machine<'_, D> {
    /// The sum of two cotangents, in the memory of one of them if that is at its last use.
    pub(crate) fn plus(&mut self, a: Val<D>, b: Val<D>) -> Res<Val<D>> {
        match (a, b) {
            (Val::Num(x), Val::Num(y)) => Ok(Val::Num(x.plus(&y))),
            (Val::Unit, Val::Unit) => Ok(Val::Unit),
            (Val::Tuple(x), Val::Tuple(y)) if x.items.len() == y.items.len() => {
                let items = self.plus_all(Node::into_items(x), Node::into_items(y))?;
                Ok(Val::Tuple(Node::new(&self.meter, items)?))
            }
            // Alternative 0 is zero.
            (Val::Sum(0, _), b @ Val::Sum(..)) => Ok(b),
            (a @ Val::Sum(..), Val::Sum(0, _)) => Ok(a),
            (Val::Sum(j, x), Val::Sum(k, y)) if j == k && x.items.len() == y.items.len() => {
                let items = self.plus_all(Node::into_items(x), Node::into_items(y))?;
                Ok(Val::Sum(k, Node::new(&self.meter, items)?))
            }
            (Val::Sum(j, _), Val::Sum(k, _)) => {
                Err(internal(format!("a sum of cotangents of alternatives {j} and {k}")))
            }
            (Val::Arr(a), Val::Arr(b)) => self.plus_arrays(a, b),
            (a, b) => {
                let b = wrong("a cotangent of the same type", &b);
                Err(internal(format!("{} ({})", b.message, wrong("one", &a).message)))
            }
        }
    }
    fn plus_all(&mut self, a: Vec<Val<D>>, b: Vec<Val<D>>) -> Res<Vec<Val<D>>> {
        a.into_iter().zip(b).map(|(a, b)| deep(|| self.plus(a, b))).collect()
    }
    fn plus_arrays(&mut self, a: Arr<D>, b: Arr<D>) -> Res<Val<D>> {
        if !agree(&a.shape, &b.shape) {
            return Err(mismatch("addition of cotangents", &a.shape, &b.shape));
        }
        // Addition commutes, so the memory of either argument will do.
        let (target, other) = if !a.is_owned() && b.is_owned() && a.kind().is_some_and(|s| s.is_float()) {
            (b, a)
        } else {
            (a, b)
        };
        let mut target = self.own(target)?;
        self.add_in_place(&mut target, 0, &other)?;
        Ok(Val::Arr(target))
    }
    /// Adds all elements of `value` to the elements of `target` (which is owned) from position `at`.
    pub(crate) fn add_in_place(&mut self, target: &mut Arr<D>, at: usize, value: &Arr<D>) -> Res<()> {
        let n = value.count();
        let (data, offset) = target.data_mut()?;
        let (from, to) = (value.offset, offset + at);
        match (data, &value.data.data) {
            (Data::F64(x), Data::F64(y)) => {
                for (x, y) in x[to..to + n].iter_mut().zip(&y[from..from + n]) {
                    *x = D::add64(x, y);
                }
            }
            (Data::F32(x), Data::F32(y)) => {
                for (x, y) in x[to..to + n].iter_mut().zip(&y[from..from + n]) {
                    *x = D::add32(x, y);
                }
            }
            (Data::Boxed(x), Data::Boxed(y)) => {
                for (x, y) in x[to..to + n].iter_mut().zip(&y[from..from + n]) {
                    let old = std::mem::replace(x, Val::Gone);
                    *x = self.plus(old, y.clone())?;
                }
            }
            // Discrete elements: the first argument stays.
            (x, y) if x.kind() == y.kind() => {}
            _ => return Err(internal("a sum of arrays of different element types")),
        }
        Ok(())
    }
}
