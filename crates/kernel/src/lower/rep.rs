//! How values of core stand in registers and memory.
//!
//! A value is a list of words. A scalar is one; a product those of its components; a sum its alternative (`i64`), then the
//! words of all fields of all alternatives (those that are not there are zero); an array one pointer per leaf of its element,
//! then its sizes, then its strides in elements. The leaves of an element are its words: an array of sums is a column per word.
//! A field that is an array has its words in the columns, and its elements elsewhere in the workspace.

use super::Res;
use crate::ir::{Operand, Reg, Shape, Ty};
use pullback_core::{Program, Type, TypeId};
use std::collections::BTreeSet;

/// A value.
#[derive(Clone, Debug)]
pub(super) enum Rep {
    Scalar(Operand),
    Tuple(Vec<Rep>),
    /// The alternative, and the fields of every alternative.
    Sum(Operand, Vec<Vec<Rep>>),
    Array(ArrayRep),
    Acc(AccRep),
    /// A value of a recursive type: where its record is, one pointer for each type of word in it.
    Record(TypeId, Vec<Operand>),
}

/// An array.
#[derive(Clone, Debug)]
pub(super) struct ArrayRep {
    pub(super) dims: Vec<Operand>,
    /// In elements.
    pub(super) strides: Vec<Operand>,
    pub(super) leaves: Vec<Leaf>,
    /// Whether the strides are those of row-major order without gaps.
    pub(super) packed: bool,
}

/// One word of all elements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Leaf {
    /// In memory.
    Memory { pointer: Operand, ty: Ty },
    /// Element at position `p` is `start + p`, an `i64`.
    Count { start: Operand },
    /// All elements are this.
    Same { value: Operand, ty: Ty },
}

/// What can be added to: memory (of rank 0 for a scalar), or nowhere.
#[derive(Clone, Debug)]
pub(super) struct AccRep {
    pub(super) array: ArrayRep,
    /// If false, what is added is ignored.
    pub(super) there: Operand,
    /// For each dimension, from where up to where elements are there; `None`: all.
    pub(super) within: Vec<Option<(Operand, Operand)>>,
}

impl AccRep {
    pub(super) fn whole(array: ArrayRep) -> AccRep {
        let within = vec![None; array.rank()];
        AccRep { array, there: Operand::bool(true), within }
    }
}

impl ArrayRep {
    pub(super) fn rank(&self) -> usize {
        self.dims.len()
    }
    pub(super) fn in_memory(&self) -> bool {
        self.leaves.iter().all(|l| matches!(l, Leaf::Memory { .. }))
    }
    /// The registers that point to its elements.
    pub(super) fn pointers(&self) -> impl Iterator<Item = Reg> {
        self.leaves.iter().filter_map(|leaf| match leaf {
            Leaf::Memory { pointer: Operand::Reg(pointer), .. } => Some(*pointer),
            _ => None,
        })
    }
    /// Whether elements may be overwritten one by one: each has a place of its own. (The rows of a replicated array, and the
    /// elements of a slice with step 0, are the same memory.)
    pub(super) fn is_writable(&self) -> bool {
        self.packed && self.in_memory()
    }
    /// Whether both are the same elements in the same order.
    pub(super) fn same_place(&self, other: &ArrayRep) -> bool {
        self.leaves == other.leaves
            && self.in_memory()
            && (self.strides == other.strides || (self.packed && other.packed))
    }
}

/// The types of the words of a value; also the leaves of an array with such elements.
pub(super) fn words(program: &Program, ty: &Type) -> Res<Vec<Ty>> {
    let mut out = Vec::new();
    push_words(program, ty, &mut out)?;
    Ok(out)
}

fn push_words(program: &Program, ty: &Type, out: &mut Vec<Ty>) -> Res<()> {
    match ty {
        Type::Scalar(s) => out.push(Ty::Scalar(*s)),
        Type::Tuple(items) => {
            for t in items.iter() {
                push_words(program, t, out)?;
            }
        }
        Type::Sum(variants) => {
            out.push(Ty::I64);
            for t in variants.iter().flat_map(|v| &v.fields) {
                push_words(program, t, out)?;
            }
        }
        Type::Array(_) => {
            let leaves = words(program, ty.base())?.len();
            out.extend(std::iter::repeat_n(Ty::Pointer, leaves));
            out.extend(std::iter::repeat_n(Ty::I64, 2 * ty.rank()));
        }
        Type::Acc(inner) => match &**inner {
            Type::Tuple(items) => {
                for t in items.iter() {
                    push_words(program, &Type::acc(t.clone()), out)?;
                }
            }
            inner => {
                let leaves = words(program, inner.base())?.len();
                out.extend(std::iter::repeat_n(Ty::Pointer, leaves));
                out.extend(std::iter::repeat_n(Ty::I64, 4 * inner.rank()));
                out.push(Ty::BOOL);
            }
        },
        Type::Named(id) => out.extend(vec![Ty::Pointer; kinds(program, *id).len()]),
    }
    Ok(())
}

/// The arrays among the words of a value: a pointer to the elements of each leaf, with their type and the sizes. (Words of arrays are those of packed ones.)
pub(super) fn arrays(program: &Program, ty: &Type, from: &[Operand]) -> Res<Vec<(Operand, Shape)>> {
    let mut out = Vec::new();
    push_arrays(program, ty, &mut from.iter().copied(), &mut out)?;
    Ok(out)
}

fn push_arrays(
    program: &Program,
    ty: &Type,
    from: &mut dyn Iterator<Item = Operand>,
    out: &mut Vec<(Operand, Shape)>,
) -> Res<()> {
    match ty {
        Type::Tuple(items) => items.iter().try_for_each(|t| push_arrays(program, t, from, out))?,
        Type::Sum(variants) => {
            from.next();
            let mut fields = variants.iter().flat_map(|v| &v.fields);
            fields.try_for_each(|t| push_arrays(program, t, from, out))?;
        }
        Type::Array(_) => {
            let leaves = words(program, ty.base())?;
            let pointers: Vec<Operand> = from.take(leaves.len()).collect();
            let sizes: Vec<Operand> = from.take(ty.rank()).collect();
            from.take(ty.rank()).for_each(drop);
            let shape = |ty: Ty| Shape { ty, sizes: sizes.clone() };
            out.extend(pointers.into_iter().zip(leaves.into_iter().map(shape)));
        }
        Type::Scalar(_) | Type::Acc(_) | Type::Named(_) => {
            from.take(words(program, ty)?.len()).for_each(drop);
        }
    }
    Ok(())
}

/// The types of the words of a recursive type's record, without repetition: each has memory of its own.
pub(super) fn kinds(program: &Program, id: TypeId) -> Vec<Ty> {
    fn add(ty: &Type, out: &mut BTreeSet<Ty>) {
        match ty {
            Type::Scalar(s) => {
                out.insert(Ty::Scalar(*s));
            }
            Type::Tuple(items) => items.iter().for_each(|t| add(t, out)),
            Type::Sum(variants) => {
                out.insert(Ty::I64);
                variants.iter().flat_map(|v| &v.fields).for_each(|t| add(t, out));
            }
            Type::Array(_) => out.extend([Ty::I64, Ty::Pointer]),
            Type::Named(_) => {
                out.insert(Ty::Pointer);
            }
            Type::Acc(_) => out.extend([Ty::I64, Ty::Pointer, Ty::BOOL]),
        }
    }
    let mut out = BTreeSet::from([Ty::I64]);
    program.types[id].variants.iter().flat_map(|v| &v.fields).for_each(|t| add(t, &mut out));
    out.into_iter().collect()
}

/// The sum that a record of a recursive type holds.
pub(super) fn unfolded(program: &Program, id: TypeId) -> Type {
    Type::Sum(program.types[id].variants.iter().cloned().collect())
}

/// Whether an array is inside a value of this type that is not itself an array of scalars.
pub(super) fn has_boxes(ty: &Type) -> bool {
    match ty {
        Type::Scalar(_) | Type::Acc(_) => false,
        Type::Array(_) => has_boxes(ty.base()),
        Type::Tuple(items) => items.iter().any(|t| t.rank() > 0 || has_boxes(t)),
        Type::Sum(variants) => variants.iter().flat_map(|v| &v.fields).any(|t| t.rank() > 0 || has_boxes(t)),
        Type::Named(_) => true,
    }
}
