//! Unknown types and sizes: unification, resolution, and limits on the size of types.
//!
//! Guarantees: no type with more than [`NODE_LIMIT`] nodes or deeper than [`DEPTH_LIMIT`] leaves [`Metas::measure`]
//! unnoticed, so that the exponential types of Hindley-Milner inference are an error and not a hang.

use crate::size::{Equality, compare};
use crate::typed::{MetaId, NamedType, Size, SizeMetaId, Type, TypeId, VarId};
use pullback_base::index::{IdSet, IndexVec};
use pullback_base::{Span, Symbol};
use pullback_prim::Scalar;
use std::sync::Arc;

/// The greatest number of nodes of a type.
pub(crate) const NODE_LIMIT: usize = 4000;
/// The greatest depth of a type.
pub(crate) const DEPTH_LIMIT: usize = 250;

/// A set of scalar types.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ScalarSet(u16);

impl ScalarSet {
    /// The set of the types with the property.
    pub(crate) fn of(property: impl Fn(Scalar) -> bool) -> ScalarSet {
        let bit = |(i, s): (usize, Scalar)| if property(s) { 1 << i } else { 0 };
        ScalarSet(Scalar::ALL.into_iter().enumerate().map(bit).sum())
    }
    /// All numbers.
    pub(crate) fn numbers() -> ScalarSet {
        ScalarSet::of(|s| s != Scalar::Bool)
    }
    /// All integers.
    pub(crate) fn integers() -> ScalarSet {
        ScalarSet::of(Scalar::is_integer)
    }
    /// Both float types.
    pub(crate) fn floats() -> ScalarSet {
        ScalarSet::of(Scalar::is_float)
    }
    /// What `!` takes: integers, of which it turns every bit, and truth values.
    pub(crate) fn with_negation() -> ScalarSet {
        ScalarSet::of(|s| s.is_integer() || s == Scalar::Bool)
    }
    pub(crate) fn contains(self, s: Scalar) -> bool {
        Scalar::ALL.into_iter().position(|t| t == s).is_some_and(|i| self.0 & (1 << i) != 0)
    }
    fn intersect(self, other: ScalarSet) -> ScalarSet {
        ScalarSet(self.0 & other.0)
    }
    /// The type that an unconstrained member becomes: `i32` for integers, `f64` for floats.
    pub(crate) fn default(self) -> Scalar {
        let order = [Scalar::I32, Scalar::F64];
        order.into_iter().chain(Scalar::ALL).find(|s| self.contains(*s)).unwrap_or(Scalar::I32)
    }
    /// In words, with an article.
    pub(crate) fn words(self) -> &'static str {
        if self == ScalarSet::numbers() {
            "a number"
        } else if self == ScalarSet::integers() {
            "an integer"
        } else if self == ScalarSet::floats() {
            "a float"
        } else if self == ScalarSet::with_negation() {
            "an integer or a bool"
        } else {
            "a number or a bool"
        }
    }
}

/// What is required of an unknown type.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Kind {
    /// Nothing.
    Any,
    /// Contains no function.
    Equality,
    /// One of these scalars.
    Scalar(ScalarSet),
    /// A record (or tuple) with at least these fields.
    Record(Vec<(Symbol, Type)>),
    /// A sum with at least these alternatives.
    Sum(Vec<(Symbol, Vec<Type>)>),
}

struct Meta {
    bound: Option<Type>,
    kind: Kind,
    level: u32,
    span: Span,
}

struct SizeMeta {
    bound: Option<Size>,
    level: u32,
}

/// Why two types do not agree.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Mismatch {
    /// These parts differ.
    Types(Type, Type),
    /// These sizes differ.
    Sizes(Size, Size),
    /// The type would contain itself.
    Infinite,
    /// The type is not of the kind that is required: a text such as "a number".
    Kind(&'static str, Type),
    /// No such field.
    Field(Symbol, Type),
    /// No such alternative, or with another number of values.
    Alternative(Symbol, Type),
}

/// The tables of unknown types and sizes.
#[derive(Default)]
pub(crate) struct Metas {
    types: IndexVec<MetaId, Meta>,
    sizes: IndexVec<SizeMetaId, SizeMeta>,
    unknowns: u32,
    /// Depth of enclosing local functions; unknowns of a deeper level than the current one may be generalised.
    pub(crate) level: u32,
    /// How many size equations could not be decided so far.
    pub(crate) undecided: usize,
    /// Variables that stand for sizes the caller chooses.
    pub(crate) rigid: IdSet<VarId>,
    /// The recursive sum types.
    pub(crate) named: IndexVec<TypeId, NamedType>,
}

impl Metas {
    /// A new unknown type.
    pub(crate) fn fresh(&mut self, kind: Kind, span: Span) -> Type {
        Type::Meta(self.types.push(Meta { bound: None, kind, level: self.level, span }))
    }
    /// A new unknown type of which nothing is required.
    pub(crate) fn any(&mut self, span: Span) -> Type {
        self.fresh(Kind::Any, span)
    }
    /// A new unknown size.
    pub(crate) fn fresh_size(&mut self) -> SizeMetaId {
        self.sizes.push(SizeMeta { bound: None, level: self.level })
    }
    /// A new size known at run time only.
    pub(crate) fn unknown(&mut self) -> Size {
        self.unknowns += 1;
        Size::Unknown(self.unknowns)
    }
    /// Number of unknown types so far; ids at or above it are newer.
    pub(crate) fn count(&self) -> usize {
        self.types.len()
    }
    /// The unbound unknown types from position `start` on, with what is required of them.
    pub(crate) fn unbound_since(&self, start: usize) -> Vec<(MetaId, Kind, Span)> {
        let open = |(id, m): (MetaId, &Meta)| m.bound.is_none().then(|| (id, m.kind.clone(), m.span));
        self.types.iter_enumerated().skip(start).filter_map(open).collect()
    }
    /// The level of an unknown type.
    pub(crate) fn level_of(&self, id: MetaId) -> u32 {
        self.types[id].level
    }
    /// The level of an unknown size.
    pub(crate) fn size_level(&self, id: SizeMetaId) -> u32 {
        self.sizes[id].level
    }
    /// What is required of an unknown type.
    pub(crate) fn kind_of(&self, id: MetaId) -> &Kind {
        &self.types[id].kind
    }
    /// Decides an unknown type without any test.
    pub(crate) fn set(&mut self, id: MetaId, ty: Type) {
        self.types[id].bound = Some(ty);
    }
    /// Decides an unknown size.
    pub(crate) fn set_size(&mut self, id: SizeMetaId, size: Size) {
        self.sizes[id].bound = Some(size);
    }

    /// What an unknown size was decided to be.
    pub(crate) fn size_bound(&self, id: SizeMetaId) -> Option<Size> {
        self.sizes[id].bound.clone()
    }
    /// The type with its head known, as far as it is.
    pub(crate) fn shallow(&self, ty: &Type) -> Type {
        let mut ty = ty;
        while let Type::Meta(m) = ty {
            match self.types.get(*m).map_or(&None, |m| &m.bound) {
                Some(bound) => ty = bound,
                None => break,
            }
        }
        ty.clone()
    }
    /// The size as far as it is known.
    pub(crate) fn size(&self, size: &Size) -> Size {
        let mut size = size;
        while let Size::Meta(m) = size {
            match self.sizes.get(*m).map_or(&None, |m| &m.bound) {
                Some(bound) => size = bound,
                None => break,
            }
        }
        size.clone()
    }
    /// The type with everything filled in that is known.
    pub(crate) fn zonk(&self, ty: &Type) -> Type {
        self.map(ty, &mut |s| self.size(s))
    }
    /// As [`Metas::zonk`], but every size goes through `f`.
    pub(crate) fn map(&self, ty: &Type, f: &mut dyn FnMut(&Size) -> Size) -> Type {
        match self.shallow(ty) {
            Type::Array(s, t) => {
                let s = f(&s);
                Type::Array(s, Arc::new(self.map(&t, f)))
            }
            Type::Tuple(ts) => Type::Tuple(ts.iter().map(|t| self.map(t, f)).collect()),
            Type::Record(fs) => Type::Record(fs.iter().map(|(n, t)| (n.clone(), self.map(t, f))).collect()),
            Type::Sum(vs) => Type::Sum(
                vs.iter().map(|(n, ts)| (n.clone(), ts.iter().map(|t| self.map(t, f)).collect())).collect(),
            ),
            Type::Fun(b, p, r) => Type::Fun(b, Arc::new(self.map(&p, f)), Arc::new(self.map(&r, f))),
            t @ (Type::Scalar(_) | Type::Param(..) | Type::Named(..) | Type::Meta(_) | Type::Error) => t,
        }
    }
    /// Whether the type is within the limits.
    pub(crate) fn measure(&self, ty: &Type) -> bool {
        let mut left = NODE_LIMIT;
        self.count_nodes(ty, 0, &mut left)
    }
    fn count_nodes(&self, ty: &Type, depth: usize, left: &mut usize) -> bool {
        if *left == 0 || depth > DEPTH_LIMIT {
            return false;
        }
        *left -= 1;
        let mut go = |t: &Type| self.count_nodes(t, depth + 1, left);
        match self.shallow(ty) {
            Type::Array(_, t) => go(&t),
            Type::Tuple(ts) => ts.iter().all(go),
            Type::Record(fs) => fs.iter().all(|(_, t)| go(t)),
            Type::Sum(vs) => vs.iter().flat_map(|(_, ts)| ts).all(go),
            Type::Fun(_, p, r) => go(&p) && go(&r),
            Type::Scalar(_) | Type::Param(..) | Type::Named(..) | Type::Meta(_) | Type::Error => true,
        }
    }

    /// Makes two types equal. `loose`: sizes that differ are not an error (branches of `if`, loop states).
    pub(crate) fn unify(&mut self, a: &Type, b: &Type, loose: bool) -> Result<(), Mismatch> {
        let (a, b) = (self.shallow(a), self.shallow(b));
        match (&a, &b) {
            (Type::Error, _) | (_, Type::Error) => Ok(()),
            (Type::Meta(x), Type::Meta(y)) if x == y => Ok(()),
            // The newer one becomes the older one, so that the elements of a long literal are no chain; errors speak of its place.
            (Type::Meta(x), Type::Meta(y)) if x < y => {
                self.bind(*y, &a, loose)?;
                self.types[*x].span = self.types[*y].span;
                Ok(())
            }
            (Type::Meta(x), _) => self.bind(*x, &b, loose),
            (_, Type::Meta(y)) => self.bind(*y, &a, loose),
            (Type::Scalar(x), Type::Scalar(y)) if x == y => Ok(()),
            (Type::Param(x, _), Type::Param(y, _)) if x == y => Ok(()),
            (Type::Named(x, _), Type::Named(y, _)) if x == y => Ok(()),
            (Type::Array(s, t), Type::Array(r, u)) => {
                self.unify(t, u, loose)?;
                self.unify_sizes(s, r, loose)
            }
            (Type::Tuple(ts), Type::Tuple(us)) if ts.len() == us.len() => {
                ts.iter().zip(us.iter()).try_for_each(|(t, u)| self.unify(t, u, loose))
            }
            (Type::Record(fs), Type::Record(gs))
                if fs.len() == gs.len() && fs.iter().zip(gs.iter()).all(|(f, g)| f.0 == g.0) =>
            {
                fs.iter().zip(gs.iter()).try_for_each(|(f, g)| self.unify(&f.1, &g.1, loose))
            }
            (Type::Sum(vs), Type::Sum(ws))
                if vs.len() == ws.len()
                    && vs.iter().zip(ws.iter()).all(|(v, w)| v.0 == w.0 && v.1.len() == w.1.len()) =>
            {
                let pairs = vs.iter().zip(ws.iter()).flat_map(|(v, w)| v.1.iter().zip(&w.1));
                pairs.into_iter().try_for_each(|(t, u)| self.unify(t, u, loose))
            }
            (Type::Fun(_, p, r), Type::Fun(_, q, s)) => {
                self.unify(p, q, loose)?;
                self.unify(r, s, loose)
            }
            _ => Err(Mismatch::Types(a, b)),
        }
    }

    /// Makes two sizes equal.
    fn unify_sizes(&mut self, a: &Size, b: &Size, loose: bool) -> Result<(), Mismatch> {
        let (a, b) = (self.size(a), self.size(b));
        match (&a, &b) {
            (Size::Meta(x), Size::Meta(y)) if x == y => Ok(()),
            (Size::Meta(x), Size::Meta(y)) if x < y => {
                self.bind_size(*y, a);
                Ok(())
            }
            (Size::Meta(x), _) => {
                self.bind_size(*x, b);
                Ok(())
            }
            (_, Size::Meta(y)) => {
                self.bind_size(*y, a);
                Ok(())
            }
            _ => match compare(&a, &b, &self.rigid) {
                Equality::Equal => Ok(()),
                Equality::Clash if !loose => Err(Mismatch::Sizes(a, b)),
                Equality::Clash | Equality::Undecided => {
                    self.undecided += 1;
                    Ok(())
                }
            },
        }
    }

    fn bind_size(&mut self, id: SizeMetaId, size: Size) {
        self.lower_size(&size, self.sizes[id].level);
        self.sizes[id].bound = Some(size);
    }

    fn lower_size(&mut self, size: &Size, level: u32) {
        if let Size::Meta(m) = size {
            let info = &mut self.sizes[*m];
            info.level = info.level.min(level);
        }
    }

    fn bind(&mut self, id: MetaId, ty: &Type, loose: bool) -> Result<(), Mismatch> {
        self.occurs(id, ty, &mut IdSet::new())?;
        let kind = std::mem::replace(&mut self.types[id].kind, Kind::Any);
        let result = self.require(&kind, ty, loose);
        self.types[id].kind = kind;
        result?;
        // Again: what the kind requires may have put the unknown into the type.
        self.occurs(id, ty, &mut IdSet::new())?;
        self.types[id].bound = Some(ty.clone());
        Ok(())
    }

    /// Fails if `id` occurs in `ty`; lowers the levels of the unknowns in it.
    fn occurs(&mut self, id: MetaId, ty: &Type, seen: &mut IdSet<MetaId>) -> Result<(), Mismatch> {
        let level = self.types[id].level;
        match self.shallow(ty) {
            Type::Meta(m) if m == id => Err(Mismatch::Infinite),
            Type::Meta(m) => {
                self.types[m].level = self.types[m].level.min(level);
                if !seen.insert(m) {
                    return Ok(());
                }
                match self.types[m].kind.clone() {
                    Kind::Any | Kind::Equality | Kind::Scalar(_) => Ok(()),
                    Kind::Record(fs) => fs.iter().try_for_each(|(_, t)| self.occurs(id, t, seen)),
                    Kind::Sum(vs) => {
                        vs.iter().flat_map(|(_, ts)| ts).try_for_each(|t| self.occurs(id, t, seen))
                    }
                }
            }
            Type::Array(s, t) => {
                let s = self.size(&s);
                self.lower_size(&s, level);
                self.occurs(id, &t, seen)
            }
            Type::Tuple(ts) => ts.iter().try_for_each(|t| self.occurs(id, t, seen)),
            Type::Record(fs) => fs.iter().try_for_each(|(_, t)| self.occurs(id, t, seen)),
            Type::Sum(vs) => vs.iter().flat_map(|(_, ts)| ts).try_for_each(|t| self.occurs(id, t, seen)),
            Type::Fun(_, p, r) => {
                self.occurs(id, &p, seen)?;
                self.occurs(id, &r, seen)
            }
            Type::Scalar(_) | Type::Param(..) | Type::Named(..) | Type::Error => Ok(()),
        }
    }

    /// Makes `ty` be of a kind.
    pub(crate) fn require(&mut self, kind: &Kind, ty: &Type, loose: bool) -> Result<(), Mismatch> {
        let ty = self.shallow(ty);
        if let Type::Meta(m) = ty {
            return self.merge(m, kind, loose);
        }
        if ty == Type::Error {
            return Ok(());
        }
        match kind {
            Kind::Any => Ok(()),
            Kind::Equality => self.require_equality(&ty),
            Kind::Scalar(set) => match ty {
                Type::Scalar(s) if set.contains(s) => Ok(()),
                _ => Err(Mismatch::Kind(set.words(), ty)),
            },
            Kind::Record(fields) => fields.iter().try_for_each(|(name, field)| {
                let found = component(&ty, name).ok_or_else(|| Mismatch::Field(name.clone(), ty.clone()))?;
                self.unify(&found.1, field, loose)
            }),
            Kind::Sum(variants) => variants.iter().try_for_each(|(name, payload)| {
                let missing = || Mismatch::Alternative(name.clone(), ty.clone());
                let (_, found) = self.alternative(&ty, name).ok_or_else(missing)?;
                if found.len() != payload.len() {
                    return Err(missing());
                }
                found.iter().zip(payload).try_for_each(|(t, u)| self.unify(t, u, loose))
            }),
        }
    }

    fn require_equality(&mut self, ty: &Type) -> Result<(), Mismatch> {
        match self.shallow(ty) {
            Type::Meta(m) => self.merge(m, &Kind::Equality, false),
            t @ Type::Fun(..) => Err(Mismatch::Kind("a type without functions", t)),
            Type::Array(_, t) => self.require_equality(&t),
            Type::Tuple(ts) => ts.iter().try_for_each(|t| self.require_equality(t)),
            Type::Record(fs) => fs.iter().try_for_each(|(_, t)| self.require_equality(t)),
            Type::Sum(vs) => vs.iter().flat_map(|(_, ts)| ts).try_for_each(|t| self.require_equality(t)),
            Type::Scalar(_) | Type::Param(..) | Type::Named(..) | Type::Error => Ok(()),
        }
    }

    /// Adds a requirement to an unknown type.
    fn merge(&mut self, id: MetaId, kind: &Kind, loose: bool) -> Result<(), Mismatch> {
        let old = self.types[id].kind.clone();
        let new = match (old, kind.clone()) {
            (Kind::Any, k) | (k, Kind::Any) => k,
            (Kind::Equality, k @ (Kind::Equality | Kind::Scalar(_) | Kind::Record(_) | Kind::Sum(_)))
            | (k @ (Kind::Scalar(_) | Kind::Record(_) | Kind::Sum(_)), Kind::Equality) => k,
            (Kind::Scalar(a), Kind::Scalar(b)) => {
                let both = a.intersect(b);
                if both == ScalarSet(0) {
                    return Err(Mismatch::Kind(b.words(), Type::Meta(id)));
                }
                Kind::Scalar(both)
            }
            (Kind::Record(mut fields), Kind::Record(more)) => {
                for (name, ty) in more {
                    match fields.iter().find(|(n, _)| *n == name).cloned() {
                        Some((_, old)) => self.unify(&old, &ty, loose)?,
                        None => fields.push((name, ty)),
                    }
                }
                Kind::Record(fields)
            }
            (Kind::Sum(mut variants), Kind::Sum(more)) => {
                for (name, tys) in more {
                    match variants.iter().find(|(n, _)| *n == name).cloned() {
                        Some((_, old)) if old.len() == tys.len() => {
                            old.iter().zip(&tys).try_for_each(|(t, u)| self.unify(t, u, loose))?;
                        }
                        Some(_) => return Err(Mismatch::Alternative(name, Type::Meta(id))),
                        None => variants.push((name, tys)),
                    }
                }
                Kind::Sum(variants)
            }
            (Kind::Scalar(a), Kind::Record(_) | Kind::Sum(_))
            | (Kind::Record(_) | Kind::Sum(_), Kind::Scalar(a)) => {
                return Err(Mismatch::Kind(a.words(), Type::Meta(id)));
            }
            (Kind::Record(_), Kind::Sum(_)) => return Err(Mismatch::Kind("a sum", Type::Meta(id))),
            (Kind::Sum(_), Kind::Record(_)) => return Err(Mismatch::Kind("a record", Type::Meta(id))),
        };
        self.types[id].kind = new;
        Ok(())
    }

    /// The number and payload of an alternative of a sum type.
    pub(crate) fn alternative(&self, ty: &Type, name: &Symbol) -> Option<(usize, Vec<Type>)> {
        let variants = self.alternatives(ty)?;
        let number = variants.iter().position(|(n, _)| n == name)?;
        Some((number, variants.get(number)?.1.clone()))
    }
    /// The alternatives of a sum type.
    pub(crate) fn alternatives(&self, ty: &Type) -> Option<Vec<(Symbol, Vec<Type>)>> {
        match self.shallow(ty) {
            Type::Sum(vs) => Some(vs.to_vec()),
            Type::Named(id, _) => self.named.get(id).map(|n| n.variants.clone()),
            Type::Scalar(_)
            | Type::Array(..)
            | Type::Tuple(_)
            | Type::Record(_)
            | Type::Fun(..)
            | Type::Param(..)
            | Type::Meta(_)
            | Type::Error => None,
        }
    }

    /// The type that two branches have together, after they were unified loosely: sizes that differ become unknown.
    pub(crate) fn join(&mut self, a: &Type, b: &Type) -> Type {
        match (self.shallow(a), self.shallow(b)) {
            (Type::Array(s, t), Type::Array(r, u)) => {
                let (s, r) = (self.size(&s), self.size(&r));
                let size = if s == r { s } else { self.unknown() };
                Type::Array(size, Arc::new(self.join(&t, &u)))
            }
            (Type::Tuple(ts), Type::Tuple(us)) => {
                Type::Tuple(ts.iter().zip(us.iter()).map(|(t, u)| self.join(t, u)).collect())
            }
            (Type::Record(fs), Type::Record(gs)) => Type::Record(
                fs.iter().zip(gs.iter()).map(|(f, g)| (f.0.clone(), self.join(&f.1, &g.1))).collect(),
            ),
            (Type::Error, t) => t,
            (t, _) => t,
        }
    }
}

/// The place and type of a field of a record, or of a tuple (`0`, `1`, ..).
pub(crate) fn component(ty: &Type, name: &Symbol) -> Option<(usize, Type)> {
    match ty {
        Type::Record(fields) => {
            let i = fields.iter().position(|(n, _)| n == name)?;
            Some((i, fields.get(i)?.1.clone()))
        }
        Type::Tuple(ts) => {
            let i: usize = name.as_str().parse().ok()?;
            Some((i, ts.get(i)?.clone()))
        }
        Type::Scalar(_)
        | Type::Array(..)
        | Type::Sum(_)
        | Type::Fun(..)
        | Type::Param(..)
        | Type::Named(..)
        | Type::Meta(_)
        | Type::Error => None,
    }
}
