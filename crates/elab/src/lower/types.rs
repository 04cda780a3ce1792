//! Types of lambda as leaves: the core types that a value of a lambda type consists of.
//!
//! A scalar or a sum is one leaf; the payload fields of a sum are flattened likewise. A product contributes the leaves of
//! its components. An array contributes one array for each leaf of its element; an array of elements without leaves
//! (units) is one array of units, which keeps its size.

use super::{Lowered, Lowerer};
use pullback_base::index::Index;
use pullback_base::{Code, Diagnostic, Span};
use pullback_core as core;
use pullback_lambda as lambda;
use pullback_lambda::Type;

/// Whether a value of the type is a function, or a product with a function in it: such values are static.
pub(super) fn holds_function(ty: &Type) -> bool {
    match ty {
        Type::Fun(..) | Type::Linear(..) => true,
        Type::Tuple(ts) => ts.iter().any(holds_function),
        Type::Scalar(_)
        | Type::Sum(_)
        | Type::Named(_)
        | Type::Array(_)
        | Type::SparseTuple(_)
        | Type::SparseSum(_)
        | Type::Bag(_)
        | Type::Evm(..)
        | Type::Staged(_)
        | Type::Map(_)
        | Type::Io(_)
        | Type::MutArray(_) => false,
    }
}

/// What has no leaves, in words.
type NoLeaves = &'static str;

fn push_leaves(ty: &Type, out: &mut Vec<core::Type>) -> Result<(), NoLeaves> {
    match ty {
        Type::Scalar(s) => out.push((*s).into()),
        Type::Tuple(ts) => ts.iter().try_for_each(|t| push_leaves(t, out))?,
        Type::Sum(vs) => out.push(core::Type::Sum(variants(vs)?.into())),
        Type::Named(id) => out.push(core::Type::Named(core::TypeId::new(id.index()))),
        Type::Array(t) => out.extend(element_leaves(t)?.into_iter().map(core::Type::array)),
        Type::Fun(..) | Type::Linear(..) => {
            return Err("a function value in an array, a sum or the state of a loop");
        }
        Type::SparseTuple(_) | Type::SparseSum(_) | Type::Bag(_) => return Err("a sparse cotangent"),
        Type::Evm(..) => return Err("an accumulating computation"),
        Type::Staged(_) => return Err("a staged call"),
        Type::Map(_) => return Err("a map"),
        Type::Io(_) | Type::MutArray(_) => return Err("a mutable array"),
    }
    Ok(())
}

fn variants(vs: &[lambda::Variant]) -> Result<Vec<core::Variant>, NoLeaves> {
    vs.iter()
        .map(|v| {
            let mut fields = Vec::new();
            v.fields.iter().try_for_each(|t| push_leaves(t, &mut fields))?;
            Ok(core::Variant { name: v.name.clone(), fields })
        })
        .collect()
}

fn element_leaves(ty: &Type) -> Result<Vec<core::Type>, NoLeaves> {
    let mut leaves = Vec::new();
    push_leaves(ty, &mut leaves)?;
    if leaves.is_empty() {
        leaves.push(core::Type::unit());
    }
    Ok(leaves)
}

fn at<T>(result: Result<T, NoLeaves>, span: Option<Span>) -> Lowered<T> {
    result.map_err(|what| {
        let mut d = Diagnostic::global(Code::Unsupported, format!("{what} cannot be compiled"));
        d.span = span;
        Box::new(d)
    })
}

impl Lowerer<'_, '_> {
    /// The leaves of a type.
    pub(super) fn leaves(&self, ty: &Type) -> Lowered<Vec<core::Type>> {
        self.leaves_at(ty, None)
    }
    /// The leaves of a type; the position is for the error.
    pub(super) fn leaves_at(&self, ty: &Type, span: Option<Span>) -> Lowered<Vec<core::Type>> {
        let mut leaves = Vec::new();
        at(push_leaves(ty, &mut leaves), span)?;
        Ok(leaves)
    }
    /// The number of leaves of a type.
    pub(super) fn leaf_count(&self, ty: &Type, span: Option<Span>) -> Lowered<usize> {
        Ok(self.leaves_at(ty, span)?.len())
    }
    /// The leaves of an array element: those of the type, or one unit.
    pub(super) fn element_leaves(&self, ty: &Type, span: Option<Span>) -> Lowered<Vec<core::Type>> {
        at(element_leaves(ty), span)
    }
    /// Gives the core program the recursive sums of the source, with the same numbers.
    pub(super) fn type_table(&mut self) -> Lowered<()> {
        for def in self.source.types.iter() {
            let variants = at(variants(&def.variants), None)?;
            self.b.program.types.push(core::TypeDef { name: def.name.clone(), variants });
        }
        Ok(())
    }
}

/// The interface of an entry point.
pub(super) fn entry(entry: &lambda::Entry) -> core::Entry {
    let params = entry.params.iter().map(|(name, t)| (name.clone(), entry_type(t))).collect();
    core::Entry { params, result: entry_type(&entry.result) }
}

fn entry_type(t: &lambda::EntryType) -> core::EntryType {
    match t {
        lambda::EntryType::Scalar(s) => core::EntryType::Scalar(*s),
        lambda::EntryType::Array(n, t) => core::EntryType::Array(n.clone(), Box::new(entry_type(t))),
        lambda::EntryType::Tuple(ts) => core::EntryType::Tuple(ts.iter().map(entry_type).collect()),
        lambda::EntryType::Record(fields) => {
            core::EntryType::Record(fields.iter().map(|(name, t)| (name.clone(), entry_type(t))).collect())
        }
        lambda::EntryType::Sum(variants) => core::EntryType::Sum(
            variants.iter().map(|(name, ts)| (name.clone(), ts.iter().map(entry_type).collect())).collect(),
        ),
    }
}
