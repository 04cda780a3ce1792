//! Types of lambda as leaves: the core types that a value of a lambda type consists of.
//!
//! A scalar or a sum is one leaf; the payload fields of a sum are flattened likewise. A product contributes the leaves of
//! its components. An array contributes one array for each leaf of its element; an array of elements without leaves
//! (units) is one array of units, which keeps its size.

use super::{Lowered, Lowerer};
use pullback_base::Span;
use pullback_base::index::Index;
use pullback_core as core;
use pullback_lambda as lambda;
use pullback_lambda::Type;

/// Whether a value of the type is a function, or a product with a function in it: such values are static.
pub(super) fn holds_function(ty: &Type) -> bool {
    match ty {
        Type::Fun(..) | Type::Linear(..) => true,
        Type::Evm(..) => true,
        Type::Tuple(ts) => ts.iter().any(holds_function),
        Type::Array(t) => holds_function(t),
        Type::Scalar(_)
        | Type::Sum(_)
        | Type::Named(_)
        | Type::SparseTuple(_)
        | Type::SparseSum(_)
        | Type::Bag(_)
        | Type::Staged(_)
        | Type::Map(_)
        | Type::Io(_)
        | Type::MutArray(_) => false,
    }
}

/// Whether it is a type of values that programs take and give: without functions and target vocabulary. Of a recursive sum this says
/// nothing.
pub(super) fn is_of_the_source(ty: &Type) -> bool {
    match ty {
        Type::Scalar(_) | Type::Named(_) => true,
        Type::Tuple(ts) => ts.iter().all(is_of_the_source),
        Type::Sum(vs) => vs.iter().flat_map(|v| &v.fields).all(is_of_the_source),
        Type::Array(t) => is_of_the_source(t),
        Type::Fun(..)
        | Type::Linear(..)
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

impl Lowerer<'_, '_> {
    /// The leaves of a type; the position is for the error.
    pub(super) fn leaves_at(&mut self, ty: &Type, span: Option<Span>) -> Lowered<Vec<core::Type>> {
        let mut leaves = Vec::new();
        self.push_leaves(ty, span, &mut leaves)?;
        Ok(leaves)
    }
    fn push_leaves(&mut self, ty: &Type, span: Option<Span>, out: &mut Vec<core::Type>) -> Lowered<()> {
        match ty {
            Type::Scalar(s) => out.push((*s).into()),
            Type::Tuple(ts) | Type::SparseTuple(ts) => {
                for t in ts.iter() {
                    self.push_leaves(t, span, out)?;
                }
            }
            Type::Sum(vs) => out.push(core::Type::Sum(self.variants(vs, span)?.into())),
            Type::Named(id) => out.push(core::Type::Named(core::TypeId::new(id.index()))),
            Type::Array(t) => out.extend(self.element_leaves(t, span)?.into_iter().map(core::Type::array)),
            Type::Fun(..) | Type::Linear(..) | Type::Evm(..) => {
                let kind = self.kind(ty);
                out.push(core::Type::Named(self.kinds[kind].id));
            }
            Type::SparseSum(ts) => out.push(self.sparse_sum(ts, span)?),
            Type::Bag(t) => out.extend(self.bag(t, span)?),
            Type::Staged(_) => return self.unsupported(span, "a staged call"),
            Type::Map(_) => return self.unsupported(span, "a map"),
            Type::Io(_) | Type::MutArray(_) => return self.unsupported(span, "a mutable array"),
        }
        Ok(())
    }
    fn variants(&mut self, vs: &[lambda::Variant], span: Option<Span>) -> Lowered<Vec<core::Variant>> {
        let mut out = Vec::new();
        for v in vs {
            let mut fields = Vec::new();
            for t in &v.fields {
                self.push_leaves(t, span, &mut fields)?;
            }
            out.push(core::Variant { name: v.name.clone(), fields });
        }
        Ok(out)
    }
    /// The number of leaves of a type.
    pub(super) fn leaf_count(&mut self, ty: &Type, span: Option<Span>) -> Lowered<usize> {
        Ok(self.leaves_at(ty, span)?.len())
    }
    /// The leaves of an array element: those of the type, or one unit.
    pub(super) fn element_leaves(&mut self, ty: &Type, span: Option<Span>) -> Lowered<Vec<core::Type>> {
        let mut leaves = self.leaves_at(ty, span)?;
        if leaves.is_empty() {
            leaves.push(core::Type::unit());
        }
        Ok(leaves)
    }
    /// Gives the core program the recursive sums of the source, with the same numbers.
    pub(super) fn type_table(&mut self) -> Lowered<()> {
        let source = self.source;
        for def in source.types.iter() {
            self.b.program.types.push(core::TypeDef { name: def.name.clone(), variants: Vec::new() });
        }
        for (id, def) in source.types.iter_enumerated() {
            let variants = self.variants(&def.variants, None)?;
            self.b.program.types[core::TypeId::new(id.index())].variants = variants;
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
