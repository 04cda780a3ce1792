//! Idealised Accelerate as core: array terms are functions of indices until something has to be in memory.
//!
//! Source: T. Smeding, MSc thesis, 2.3 (fusion in Accelerate: delayed arrays) and 3.1 (the meaning of the forms).
//!
//! Rules, of what goes to memory:
//! ```text
//! kept       a binding that is used more than once goes to memory, unless an element costs a few operations; rank 0: always
//! sized      of a binding whose elements nothing reads, only the sizes are evaluated
//! settled    what `replicate`, `backpermute` or a function may read more than once goes to memory, on the same condition
//! stored     a nest of maps over the dimensions; what depends on no counter is replicated
//! again      of an array of tuples, leaves that cost a few operations are evaluated where they are read; so are those that one term reads, if they share no more than a few with others
//! counted    a use of a binding counts once where each element is read at most once: as a term, or at the counters of a `generate`
//! ```
//!
//! Notation: a leaf is one scalar of an element. An array has a core array for each of its leaves (structure of arrays).
//!
//! Guarantees: an element of a binding is evaluated at most once, unless it is cheap. An alternative is evaluated only where it is chosen. Elements, and components of them, that nothing
//! reads need not be evaluated: then they stop no program.
//!
//! Everything of the language has a form in core: nothing is refused.
//!
//! | file | what |
//! |---|---|
//! | `mod` | the interface, functions of core |
//! | `uses` | how often bindings are used |
//! | `expressions` | expressions |
//! | `facts` | primitives, and what is known of integers |
//! | `delayed` | delayed arrays, how they are read and put in memory |
//! | `recipes` | leaves that are evaluated again |
//! | `arrays` | array terms |
//! | `sizes` | terms of which only the sizes are wanted |
//! | `views` | terms that only move elements |
//! | `folds` | sums, folds and scans |
//! | `collect` | the states of loops over rows |
//! | `iterate` | the states of loops of array terms |
//! | `operators` | operators with a neutral element, and those that get one |
//! | `inverse` | permutations that shift or reverse |
//! | `permutes` | permutations with a function that combines |

mod arrays;
mod collect;
mod delayed;
mod expressions;
mod facts;
mod folds;
mod inverse;
mod iterate;
mod operators;
mod permutes;
mod recipes;
mod sizes;
mod uses;
mod views;

use super::language::{AVar, Arr, ArrTy, Program, Ty};
use delayed::{Pull, Value};
use facts::Facts;
use pullback_base::Symbol;
use pullback_core::{Atom, Builder, Exp as Core, Fun, FunId, Program as CoreProgram, Type, Var};
use pullback_prim::{Op, Scalar};
use std::collections::{BTreeMap, BTreeSet};
use uses::Uses;

/// The value of an array term in core.
#[derive(Clone, Debug)]
pub enum Stored {
    /// An array: a core array for each scalar of its element type, in the order of [`Ty::scalars`]. Sizes are outermost first, of type `i64`.
    /// Of rank 0 the leaves are scalars.
    Array {
        /// The type of elements.
        ty: Ty,
        /// The sizes.
        dims: Vec<Atom>,
        /// The leaves.
        leaves: Vec<Atom>,
    },
    /// A tuple of arrays.
    Tuple(Vec<Stored>),
}

impl Stored {
    /// All leaves, depth first. An array whose elements have no scalars gives its sizes.
    pub fn atoms(&self) -> Vec<Atom> {
        match self {
            Stored::Array { dims, leaves, .. } if leaves.is_empty() => dims.clone(),
            Stored::Array { leaves, .. } => leaves.clone(),
            Stored::Tuple(parts) => parts.iter().flat_map(Stored::atoms).collect(),
        }
    }
}

/// Emits the term where the builder stands; free array variables are these. `stored`: variables whose elements are evaluated once, although it costs memory.
///
/// Cost: the size of the term, and once more each delayed part for each place that reads it.
pub fn emit(b: &mut Builder<'_>, env: &BTreeMap<AVar, Stored>, u: &Arr, stored: &BTreeSet<AVar>) -> Stored {
    let mut lower = Lower {
        b,
        arrays: BTreeMap::new(),
        scalars: BTreeMap::new(),
        facts: Facts::default(),
        is_size: false,
        uses: Uses::of(u),
        stored,
    };
    for (a, stored) in env {
        lower.arrays.insert(a.clone(), Value::stored(stored));
    }
    let value = lower.arr(u);
    lower.in_memory(&value)
}

/// Adds a program as a function of core. Parameters are the leaves of the free variables in order, then of the parameter; results are the leaves of the body.
///
/// An array whose elements have no scalars has its sizes in the place of leaves. Leaves of one array that differ in size stop the program.
/// Cost: as [`emit`].
pub fn function(core: &mut CoreProgram, program: &Program, name: &str) -> FunId {
    let mut b = Builder::new(core);
    let mut params = Vec::new();
    let inputs: Vec<&AVar> = program.free.iter().chain([&program.param]).collect();
    let parts: Vec<Vec<Var>> = inputs
        .iter()
        .map(|a| leaf_types(a.ty()).into_iter().map(|t| b.fresh(t, a.name())).collect())
        .collect();
    b.open();
    let mut env = BTreeMap::new();
    for (a, part) in inputs.into_iter().zip(parts) {
        let mut atoms = part.iter().map(|v| Atom::from(*v));
        env.insert(a.clone(), argument(&mut b, a.ty(), &mut atoms));
        params.extend(part);
    }
    let result = emit(&mut b, &env, &program.body, &BTreeSet::new());
    let result = whole(&mut b, &result).atoms();
    let body = b.close(result);
    let results = core.body_types(&body);
    core.funs.push(Fun { name: Symbol::new(name), params, body, results, entry: None })
}

/// The types of the leaves; sizes of an array without leaves.
fn leaf_types(ty: &ArrTy) -> Vec<Type> {
    match ty {
        ArrTy::Array(t, rank) => {
            let scalars = t.scalars();
            if scalars.is_empty() {
                return vec![Type::I64; *rank];
            }
            scalars.into_iter().map(|s| Type::array_of_rank(s.into(), *rank)).collect()
        }
        ArrTy::Tuple(ts) => ts.iter().flat_map(leaf_types).collect(),
    }
}

fn argument(b: &mut Builder<'_>, ty: &ArrTy, atoms: &mut dyn Iterator<Item = Atom>) -> Stored {
    match ty {
        ArrTy::Array(t, rank) => {
            let count = t.scalars().len();
            if count == 0 {
                return Stored::Array {
                    ty: t.clone(),
                    dims: atoms.take(*rank).collect(),
                    leaves: Vec::new(),
                };
            }
            let leaves: Vec<Atom> = atoms.take(count).collect();
            let dims: Vec<Atom> = (0..*rank).map(|d| b.size(leaves[0], d)).collect();
            // [accelerate_to_core.argument]  leaves of one array have one shape
            for leaf in &leaves[1..] {
                for (d, wanted) in dims.iter().enumerate() {
                    let found = b.size(*leaf, d);
                    let same = b.op2(Op::Eq, *wanted, found);
                    let message = Symbol::new("arrays of one array of tuples differ in size");
                    b.emit(Core::Assert(same, message, vec![*wanted, found]), "fits");
                }
            }
            Stored::Array { ty: t.clone(), dims, leaves }
        }
        ArrTy::Tuple(ts) => Stored::Tuple(ts.iter().map(|t| argument(b, t, atoms)).collect()),
    }
}

/// With all sizes: where an array has no elements, a map may have left it with others.
fn whole(b: &mut Builder<'_>, stored: &Stored) -> Stored {
    match stored {
        Stored::Array { ty, dims, leaves } => {
            let is_full = dims.len() < 2
                || dims[..dims.len() - 1].iter().all(|n| matches!(n, Atom::Const(c) if c.as_i64() > 0));
            if is_full {
                return stored.clone();
            }
            let reshaped =
                |array: &Atom| Core::Reshape { shape: dims.clone(), from: dims.len(), array: *array };
            let leaves = leaves.iter().map(|a| b.emit(reshaped(a), "whole")).collect();
            Stored::Array { ty: ty.clone(), dims: dims.clone(), leaves }
        }
        Stored::Tuple(parts) => Stored::Tuple(parts.iter().map(|s| whole(b, s)).collect()),
    }
}

/// The state of the lowering.
struct Lower<'b, 'p> {
    b: &'b mut Builder<'p>,
    /// The array variables that are bound; each is bound once.
    arrays: BTreeMap<AVar, Value>,
    /// The variables of the expression that is being evaluated, leaf by leaf.
    scalars: BTreeMap<u32, Vec<Atom>>,
    facts: Facts,
    /// Whether what is emitted stands outside of loops.
    is_size: bool,
    uses: Uses,
    /// What goes to memory though each of its leaves has one reader.
    stored: &'b BTreeSet<AVar>,
}

impl Lower<'_, '_> {
    /// Everything in memory.
    fn in_memory(&mut self, value: &Value) -> Stored {
        match value {
            Value::Array(p) => {
                let leaves = self.store(p);
                Stored::Array { ty: p.ty.clone(), dims: p.dims.clone(), leaves }
            }
            Value::Tuple(parts) => Stored::Tuple(parts.iter().map(|v| self.in_memory(v)).collect()),
        }
    }
}

impl Value {
    fn stored(stored: &Stored) -> Value {
        match stored {
            Stored::Array { ty, dims, leaves } => {
                Value::Array(Pull::in_memory(ty.clone(), dims.clone(), leaves.clone()))
            }
            Stored::Tuple(parts) => Value::Tuple(parts.iter().map(Value::stored).collect()),
        }
    }
}

/// The scalar type of indices.
const INDEX: Scalar = Scalar::I64;
