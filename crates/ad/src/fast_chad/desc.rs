//! Descriptors: statically known sparsity of cotangents.
//!
//! Source: T. Smeding, PhD thesis, section 7.5.1.2 (mixed static and dynamic sparsity), extended by multi-hot arrays
//! (the future work of section 7.6).
//!
//! A descriptor says which core values (*atoms*) represent a cotangent: an [`Desc::Absent`] cotangent has none, a
//! product has those of its components, an array is a struct of arrays over the atoms of its elements. The functions
//! here compute descriptors only; `ct` emits the code that goes with them.
//!
//! | paper | here | atoms |
//! |---|---|---|
//! | A | `Absent` | none: statically zero |
//! | R | `Real` | one float |
//! | P s t | `Product` | those of the components |
//! | C s t | `Choice` | one sum; alternative 0 is `#none`, payload fields are packed values |
//! | – | `Tree` | one recursive sum, the value of `Program::cotangent` |
//! | T s | `Array` | one array per atom of the element |
//! | S s | `Maybe` | one `#none \| #some atoms` |
//! | (7.6) | `Hot` | length, those of the dense part, then per entry its index (-1: absent) and payload |

use pullback_base::Symbol;
use pullback_core::{Program, Type, TypeId, Variant};
use pullback_prim::Scalar;

/// See the module's header.
#[derive(Clone, Debug, PartialEq)]
pub enum Desc {
    /// Zero.
    Absent,
    /// A float.
    Real(Scalar),
    /// Components.
    Product(Vec<Desc>),
    /// A sum: the alternatives after `#none`.
    Choice(Vec<Alternative>),
    /// A recursive sum.
    Tree(TypeId),
    /// An array of such elements.
    Array(Box<Desc>),
    /// One that may be zero.
    Maybe(Box<Desc>),
    /// An array of which some elements are given one by one.
    Hot {
        /// What is added to them.
        dense: Box<Desc>,
        /// The elements.
        entries: Vec<Entry>,
    },
}

/// An alternative of a [`Desc::Choice`].
#[derive(Clone, Debug, PartialEq)]
pub struct Alternative {
    /// Its name in the sum.
    pub name: Symbol,
    /// Those of its payload.
    pub fields: Vec<Desc>,
}

/// One hot element of an array.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Whether the index may be -1 (no entry).
    pub maybe: bool,
    /// That of the element.
    pub payload: Desc,
}

impl Desc {
    /// Whether it is zero.
    pub fn is_absent(&self) -> bool {
        *self == Desc::Absent
    }

    /// The types of its atoms.
    pub fn types(&self) -> Vec<Type> {
        match self {
            Desc::Absent => Vec::new(),
            Desc::Real(s) => vec![Type::Scalar(*s)],
            Desc::Product(items) => items.iter().flat_map(Desc::types).collect(),
            Desc::Choice(alternatives) => {
                let none = Variant { name: "none".into(), fields: Vec::new() };
                let rest = alternatives.iter().map(|a| Variant {
                    name: a.name.clone(),
                    fields: a.fields.iter().map(Desc::value_type).collect(),
                });
                vec![Type::Sum(std::iter::once(none).chain(rest).collect())]
            }
            Desc::Tree(bar) => vec![Type::Named(*bar)],
            Desc::Array(item) => item.types().into_iter().map(Type::array).collect(),
            Desc::Maybe(item) => vec![Type::sum([("none", vec![]), ("some", item.types())])],
            Desc::Hot { dense, entries } => {
                let hot = entries.iter().flat_map(|e| std::iter::once(Type::I64).chain(e.payload.types()));
                std::iter::once(Type::I64).chain(dense.types()).chain(hot).collect()
            }
        }
    }

    /// The number of its atoms.
    pub(crate) fn count(&self) -> usize {
        match self {
            Desc::Absent => 0,
            Desc::Real(_) | Desc::Choice(_) | Desc::Tree(_) | Desc::Maybe(_) => 1,
            Desc::Product(items) => items.iter().map(Desc::count).sum(),
            Desc::Array(item) => item.count(),
            Desc::Hot { dense, entries } => {
                1 + dense.count() + entries.iter().map(|e| 1 + e.payload.count()).sum::<usize>()
            }
        }
    }

    /// The type of the atoms packed into one value: unit for none, products as products.
    pub fn value_type(&self) -> Type {
        match self {
            Desc::Absent => Type::unit(),
            Desc::Product(items) => Type::tuple(items.iter().map(Desc::value_type).collect::<Vec<_>>()),
            Desc::Real(_)
            | Desc::Choice(_)
            | Desc::Tree(_)
            | Desc::Array(_)
            | Desc::Maybe(_)
            | Desc::Hot { .. } => {
                let mut types = self.types();
                if types.len() == 1 { types.swap_remove(0) } else { Type::tuple(types) }
            }
        }
    }

    /// Whether [`pullback_core::Exp::Plus`] adds packed values of this descriptor.
    pub(crate) fn is_plain(&self) -> bool {
        match self {
            Desc::Absent | Desc::Real(_) | Desc::Tree(_) => true,
            Desc::Product(items) => items.iter().all(Desc::is_plain),
            Desc::Choice(alternatives) => alternatives.iter().all(|a| a.fields.iter().all(Desc::is_plain)),
            Desc::Array(item) | Desc::Maybe(item) => item.is_plain(),
            Desc::Hot { .. } => false,
        }
    }

    /// Whether it is an array of something, and what.
    pub(crate) fn element(&self) -> Option<&Desc> {
        match self {
            Desc::Array(item) => Some(item),
            Desc::Absent
            | Desc::Real(_)
            | Desc::Product(_)
            | Desc::Choice(_)
            | Desc::Tree(_)
            | Desc::Maybe(_)
            | Desc::Hot { .. } => None,
        }
    }
}

/// A product; absent if all components are.
pub fn product(items: Vec<Desc>) -> Desc {
    if items.iter().all(Desc::is_absent) { Desc::Absent } else { Desc::Product(items) }
}
/// A choice; absent if all fields are.
pub fn choice(alternatives: Vec<Alternative>) -> Desc {
    if alternatives.iter().all(|a| a.fields.iter().all(Desc::is_absent)) {
        Desc::Absent
    } else {
        Desc::Choice(alternatives)
    }
}
/// An array; absent if the element is.
pub fn array(item: Desc) -> Desc {
    if item.is_absent() { Desc::Absent } else { Desc::Array(Box::new(item)) }
}
/// An option; no option of an option, nor of nothing.
pub fn maybe(item: Desc) -> Desc {
    match item {
        Desc::Absent | Desc::Maybe(_) => item,
        Desc::Real(_)
        | Desc::Product(_)
        | Desc::Choice(_)
        | Desc::Tree(_)
        | Desc::Array(_)
        | Desc::Hot { .. } => Desc::Maybe(Box::new(item)),
    }
}
/// A multi-hot array; the dense part if it has no entries.
pub fn hot(dense: Desc, entries: Vec<Entry>) -> Desc {
    if entries.is_empty() { dense } else { Desc::Hot { dense: Box::new(dense), entries } }
}

/// The full representation of the cotangents of a type; packed, it is the value that `Program::cotangent` describes.
/// Err: a recursive sum whose cotangent type is not in the type table.
pub fn full(p: &Program, ty: &Type) -> Result<Desc, TypeId> {
    build(p, ty, &full)
}

/// The representation in accumulators and loops: as [`full`], but below sums arrays are optional, so that a zero
/// needs no shapes there.
pub(crate) fn stored(p: &Program, ty: &Type) -> Result<Desc, TypeId> {
    build(p, ty, &lazy)
}

/// The zero of this one needs no shapes at all.
fn lazy(p: &Program, ty: &Type) -> Result<Desc, TypeId> {
    Ok(match ty {
        Type::Array(item) => maybe(array(lazy(p, item)?)),
        Type::Tuple(items) => product(items.iter().map(|t| lazy(p, t)).collect::<Result<_, _>>()?),
        Type::Scalar(_) | Type::Sum(_) | Type::Named(_) | Type::Acc(_) => build(p, ty, &lazy)?,
    })
}

type Fields = dyn Fn(&Program, &Type) -> Result<Desc, TypeId>;

/// `below`: what stands below sums.
fn build(p: &Program, ty: &Type, below: &Fields) -> Result<Desc, TypeId> {
    Ok(match ty {
        Type::Scalar(s) if s.is_float() => Desc::Real(*s),
        Type::Scalar(_) | Type::Acc(_) => Desc::Absent,
        Type::Tuple(items) => product(items.iter().map(|t| build(p, t, below)).collect::<Result<_, _>>()?),
        Type::Array(item) => array(build(p, item, below)?),
        Type::Named(id) => {
            if !p.is_active(ty) {
                return Ok(Desc::Absent);
            }
            match p.cotangent(ty) {
                Ok(Some(Type::Named(bar))) => Desc::Tree(bar),
                _ => return Err(*id),
            }
        }
        Type::Sum(variants) => {
            if !p.is_active(ty) {
                return Ok(Desc::Absent);
            }
            let alternatives = variants.iter().map(|v| {
                let fields = v.fields.iter().map(|t| below(p, t)).collect::<Result<_, _>>()?;
                Ok(Alternative { name: v.name.clone(), fields })
            });
            choice(alternatives.collect::<Result<_, _>>()?)
        }
    })
}

/// The smallest descriptor that also has a zero without shapes (`opt` of the notes).
pub fn optional(s: &Desc) -> Desc {
    match s {
        Desc::Absent | Desc::Real(_) | Desc::Choice(_) | Desc::Tree(_) | Desc::Maybe(_) => s.clone(),
        Desc::Product(items) => product(items.iter().map(optional).collect()),
        Desc::Array(_) => maybe(s.clone()),
        Desc::Hot { dense, entries } => {
            let entries =
                entries.iter().map(|e| Entry { maybe: true, payload: optional(&e.payload) }).collect();
            hot(optional(dense), entries)
        }
    }
}

/// A multi-hot descriptor's parts; any other one is the dense part.
pub fn as_hot(s: &Desc) -> (Desc, Vec<Entry>) {
    match s {
        Desc::Hot { dense, entries } => ((**dense).clone(), entries.clone()),
        Desc::Absent
        | Desc::Real(_)
        | Desc::Product(_)
        | Desc::Choice(_)
        | Desc::Tree(_)
        | Desc::Array(_)
        | Desc::Maybe(_) => (s.clone(), Vec::new()),
    }
}

/// The descriptor of a sum. `present`: whether the argument is surely there (the two booleans of `generatePlus`).
pub fn sum(s: &Desc, t: &Desc, s_present: bool, t_present: bool) -> Desc {
    if s.is_absent() {
        return if t_present { t.clone() } else { optional(t) };
    }
    if t.is_absent() {
        return if s_present { s.clone() } else { optional(s) };
    }
    match (s, t) {
        (Desc::Hot { .. }, _) | (_, Desc::Hot { .. }) => {
            let ((d, mut hs), (e, gs)) = (as_hot(s), as_hot(t));
            let weaken = |hs: &mut Vec<Entry>, present: bool| {
                for h in hs {
                    if !present {
                        *h = Entry { maybe: true, payload: optional(&h.payload) };
                    }
                }
            };
            let mut gs = gs;
            weaken(&mut hs, s_present);
            weaken(&mut gs, t_present);
            hs.extend(gs);
            hot(sum(&d, &e, s_present, t_present), hs)
        }
        (Desc::Maybe(s), Desc::Maybe(t)) => maybe(sum(s, t, false, false)),
        (Desc::Maybe(s), t) => {
            if t_present {
                sum(s, t, false, true)
            } else {
                maybe(sum(s, t, false, false))
            }
        }
        (s, Desc::Maybe(t)) => {
            if s_present {
                sum(s, t, true, false)
            } else {
                maybe(sum(s, t, false, false))
            }
        }
        (Desc::Product(xs), Desc::Product(ys)) => {
            product(xs.iter().zip(ys).map(|(x, y)| sum(x, y, s_present, t_present)).collect())
        }
        (Desc::Choice(xs), Desc::Choice(ys)) => zip_choice(xs, ys, &|x, y| sum(x, y, false, false)),
        (Desc::Array(x), Desc::Array(y)) => array(sum(x, y, s_present, t_present)),
        // Both reals; nothing else is a pair of descriptors of one type.
        _ => s.clone(),
    }
}

/// The descriptor that can hold either argument (where branches meet). Multi-hot arrays are laid over each other.
pub fn join(s: &Desc, t: &Desc) -> Desc {
    if s.is_absent() {
        return optional(t);
    }
    if t.is_absent() {
        return optional(s);
    }
    match (s, t) {
        (Desc::Hot { .. }, _) | (_, Desc::Hot { .. }) => {
            let ((d, hs), (e, gs)) = (as_hot(s), as_hot(t));
            let entries = (0..hs.len().max(gs.len())).map(|i| match (hs.get(i), gs.get(i)) {
                (Some(h), Some(g)) => {
                    Entry { maybe: h.maybe || g.maybe, payload: join(&h.payload, &g.payload) }
                }
                (Some(h), None) | (None, Some(h)) => Entry { maybe: true, payload: optional(&h.payload) },
                (None, None) => Entry { maybe: true, payload: Desc::Absent },
            });
            let entries = entries.collect();
            hot(join(&d, &e), entries)
        }
        (Desc::Maybe(s), Desc::Maybe(t)) => maybe(join(s, t)),
        (Desc::Maybe(s), t) | (t, Desc::Maybe(s)) => maybe(join(s, t)),
        (Desc::Product(xs), Desc::Product(ys)) => {
            product(xs.iter().zip(ys).map(|(x, y)| join(x, y)).collect())
        }
        (Desc::Choice(xs), Desc::Choice(ys)) => zip_choice(xs, ys, &join),
        (Desc::Array(x), Desc::Array(y)) => array(join(x, y)),
        _ => s.clone(),
    }
}

fn zip_choice(xs: &[Alternative], ys: &[Alternative], f: &dyn Fn(&Desc, &Desc) -> Desc) -> Desc {
    let both = xs.iter().zip(ys).map(|(x, y)| Alternative {
        name: x.name.clone(),
        fields: x.fields.iter().zip(&y.fields).map(|(a, b)| f(a, b)).collect(),
    });
    choice(both.collect())
}
