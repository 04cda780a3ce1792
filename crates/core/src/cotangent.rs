//! Types of tangents and cotangents.
//!
//! Structural types have structural cotangent types. The cotangent type of a recursive sum is a recursive sum of its own; it
//! must be in the type table before anybody asks for it: [`Program::add_cotangent_types`] puts it there. It is found
//! again by its name (`tree_bar` for `tree`, with a number behind if that was taken) and recognised by its alternatives.

use crate::ir::{Program, TypeDef};
use crate::types::{Type, TypeId, Variant};
use pullback_base::Symbol;
use pullback_base::index::{IdMap, IndexVec};

impl Program {
    /// The cotangent (and tangent) type of a type, `None` for discrete types.
    ///
    /// Floats: themselves. Arrays: arrays of the element's. Products: products, with unit for discrete components.
    /// Sums: alternative 0 is `#none` (zero), then one alternative per alternative of the sum with the cotangents of
    /// its fields, unit for discrete ones. Err: a recursive sum whose cotangent type is not in the type table.
    pub fn cotangent(&self, ty: &Type) -> Result<Option<Type>, TypeId> {
        let find = |id: TypeId| find_bar(&self.types, id).ok_or(id);
        cotangent(&self.types, ty, &find)
    }
    /// Whether values of the type hold floats.
    pub fn is_active(&self, ty: &Type) -> bool {
        has_floats(&self.types, ty, &mut Vec::new())
    }
    /// Puts the cotangent types of the recursive sums in `ty` into the type table, so that [`Program::cotangent`] succeeds.
    pub fn add_cotangent_types(&mut self, ty: &Type) {
        let mut missing = Vec::new();
        collect_missing(&self.types, ty, &mut missing);
        if missing.is_empty() {
            return;
        }
        let mut bars: IdMap<TypeId, TypeId> = IdMap::new();
        for &id in &missing {
            let name = fresh_bar_name(&self.types, self.types[id].name.as_str());
            bars.insert(id, self.types.push(TypeDef { name, variants: Vec::new() }));
        }
        let find = |id: TypeId| bars.get(&id).copied().or_else(|| find_bar(&self.types, id)).ok_or(id);
        let made: Vec<Vec<Variant>> = missing
            .iter()
            .map(|&id| bar_variants(&self.types, &self.types[id].variants, &find).unwrap_or_default())
            .collect();
        for (id, variants) in missing.iter().zip(made) {
            let bar = bars[id];
            self.types[bar].variants = variants;
        }
    }
}

type Types = IndexVec<TypeId, TypeDef>;
type Find<'a> = &'a dyn Fn(TypeId) -> Result<TypeId, TypeId>;

fn cotangent(types: &Types, ty: &Type, find: Find<'_>) -> Result<Option<Type>, TypeId> {
    if !has_floats(types, ty, &mut Vec::new()) {
        return Ok(None);
    }
    let or_unit = |t: &Type| Ok(cotangent(types, t, find)?.unwrap_or_else(Type::unit));
    Ok(Some(match ty {
        Type::Scalar(_) | Type::Acc(_) => ty.clone(),
        Type::Tuple(ts) => Type::Tuple(ts.iter().map(or_unit).collect::<Result<_, _>>()?),
        Type::Array(t) => Type::array(or_unit(t)?),
        Type::Named(id) => Type::Named(find(*id)?),
        Type::Sum(vs) => Type::Sum(bar_variants(types, vs, find)?.into()),
    }))
}

/// `#none`, then the alternatives with the cotangents of their fields.
fn bar_variants(types: &Types, variants: &[Variant], find: Find<'_>) -> Result<Vec<Variant>, TypeId> {
    let none = Variant { name: "none".into(), fields: Vec::new() };
    let or_unit = |t: &Type| Ok(cotangent(types, t, find)?.unwrap_or_else(Type::unit));
    let rest = variants.iter().map(|v| {
        let fields = v.fields.iter().map(or_unit).collect::<Result<_, _>>()?;
        Ok(Variant { name: v.name.clone(), fields })
    });
    std::iter::once(Ok(none)).chain(rest).collect()
}

fn has_floats(types: &Types, ty: &Type, seen: &mut Vec<TypeId>) -> bool {
    match ty {
        Type::Scalar(s) => s.is_float(),
        Type::Tuple(ts) => ts.iter().any(|t| has_floats(types, t, seen)),
        Type::Array(t) => has_floats(types, t, seen),
        Type::Acc(_) => false,
        Type::Sum(vs) => vs.iter().flat_map(|v| &v.fields).any(|t| has_floats(types, t, seen)),
        Type::Named(id) => {
            if seen.contains(id) {
                return false;
            }
            seen.push(*id);
            types.get(*id).is_some_and(|d| {
                d.variants.iter().flat_map(|v| &v.fields).any(|t| has_floats(types, t, seen))
            })
        }
    }
}

fn fresh_bar_name(types: &Types, name: &str) -> Symbol {
    let taken = |wish: &str| types.iter().any(|d| d.name.as_str() == wish);
    let plain = format!("{name}_bar");
    let numbered = (1..).map(|k| format!("{plain}_{k}"));
    std::iter::once(plain.clone())
        .chain(numbered)
        .find(|wish| !taken(wish))
        .unwrap_or_default()
        .as_str()
        .into()
}

/// Whether the name is one that [`fresh_bar_name`] makes.
fn is_bar_name(name: &str, of: &str) -> bool {
    name.strip_prefix(of).and_then(|rest| rest.strip_prefix("_bar")).is_some_and(|rest| {
        rest.is_empty() || rest.strip_prefix('_').is_some_and(|k| k.chars().all(|c| c.is_ascii_digit()))
    })
}

/// The cotangent type of a recursive sum.
fn find_bar(types: &Types, id: TypeId) -> Option<TypeId> {
    let name = types.get(id)?.name.as_str();
    let mut named = types.iter_enumerated().filter(|(_, d)| is_bar_name(d.name.as_str(), name));
    named.find(|(bar, _)| is_bar(types, id, *bar, &mut Vec::new())).map(|(bar, _)| bar)
}

/// Whether `bar` is the cotangent type of `id`, given that this is so for the pairs in `assumed`.
fn is_bar(types: &Types, id: TypeId, bar: TypeId, assumed: &mut Vec<(TypeId, TypeId)>) -> bool {
    if assumed.contains(&(id, bar)) {
        return true;
    }
    assumed.push((id, bar));
    match (types.get(id), types.get(bar)) {
        (Some(d), Some(e)) => bars_match(types, &d.variants, &e.variants, assumed),
        _ => false,
    }
}

fn bars_match(types: &Types, vs: &[Variant], bars: &[Variant], assumed: &mut Vec<(TypeId, TypeId)>) -> bool {
    let Some((none, bars)) = bars.split_first() else { return false };
    none.fields.is_empty()
        && none.name.as_str() == "none"
        && vs.len() == bars.len()
        && vs.iter().zip(bars).all(|(v, w)| {
            v.name == w.name
                && v.fields.len() == w.fields.len()
                && v.fields.iter().zip(&w.fields).all(|(t, u)| bar_matches(types, t, u, assumed))
        })
}

fn bar_matches(types: &Types, ty: &Type, bar: &Type, assumed: &mut Vec<(TypeId, TypeId)>) -> bool {
    if !has_floats(types, ty, &mut Vec::new()) {
        return *bar == Type::unit();
    }
    match (ty, bar) {
        (Type::Tuple(ts), Type::Tuple(us)) => {
            ts.len() == us.len() && ts.iter().zip(us.iter()).all(|(t, u)| bar_matches(types, t, u, assumed))
        }
        (Type::Array(t), Type::Array(u)) => bar_matches(types, t, u, assumed),
        (Type::Named(id), Type::Named(bar)) => is_bar(types, *id, *bar, assumed),
        (Type::Sum(vs), Type::Sum(us)) => bars_match(types, vs, us, assumed),
        _ => ty == bar,
    }
}

/// Recursive sums with floats in `ty` that have no cotangent type yet.
fn collect_missing(types: &Types, ty: &Type, missing: &mut Vec<TypeId>) {
    match ty {
        Type::Scalar(_) => {}
        Type::Tuple(ts) => ts.iter().for_each(|t| collect_missing(types, t, missing)),
        Type::Array(t) | Type::Acc(t) => collect_missing(types, t, missing),
        Type::Sum(vs) => vs.iter().flat_map(|v| &v.fields).for_each(|t| collect_missing(types, t, missing)),
        Type::Named(id) => {
            let known = missing.contains(id) || find_bar(types, *id).is_some();
            if known || !has_floats(types, ty, &mut Vec::new()) {
                return;
            }
            missing.push(*id);
            if let Some(def) = types.get(*id) {
                def.variants.iter().flat_map(|v| &v.fields).for_each(|t| collect_missing(types, t, missing));
            }
        }
    }
}
