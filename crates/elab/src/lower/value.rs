//! Values at lowering time: leaves of data, and functions with what they capture.

use super::Lowerer;
use super::evm::Action;
use super::open::Kind;
use pullback_base::index::{IdMap, IdSet};
use pullback_core as core;
use pullback_core::Atom;
use pullback_lambda as lambda;
use pullback_lambda::Exp;
use std::rc::Rc;

/// A value. Which form it has depends on its type alone: [`super::types::holds_function`].
#[derive(Clone)]
pub(super) enum Val {
    /// A value without functions: its leaves.
    Data(Rc<[Atom]>),
    /// A product with functions in it.
    Tuple(Rc<[Val]>),
    /// A function known at lowering time.
    Closure(Rc<Closure>),
    /// A function chosen at run time.
    Choice(Rc<Choice>),
    /// A function that is data: one leaf; see [`super::open`].
    Open(Open),
    /// An array of functions, or of products with functions in them.
    Many(Rc<Many>),
    /// An accumulating computation known at lowering time.
    Action(Rc<Action>),
}

/// A function that is data.
#[derive(Clone, Copy)]
pub(super) struct Open {
    /// Which type of functions.
    pub(super) kind: usize,
    /// The value of its sum.
    pub(super) atom: Atom,
}

/// An array whose elements are functions of one shape.
pub(super) struct Many {
    /// The type of an element.
    pub(super) element: lambda::Type,
    /// An element; its leaves have no meaning.
    pub(super) template: Val,
    /// For each leaf of an element, what stands in `leaves` for it.
    pub(super) columns: Vec<Column>,
    pub(super) leaves: Vec<Atom>,
    /// The number of elements.
    pub(super) size: Atom,
}

/// What an array of functions has for a leaf of its elements.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Column {
    /// The leaf, which is the same in all elements.
    One,
    /// An array of the leaf.
    Each,
    /// An array of boxes with the leaf: captured arrays of different elements may have different shapes.
    Boxed,
}

/// A lambda and the values of its free variables.
pub(super) struct Closure {
    /// `Exp::Lam` or `Exp::LinearLam`.
    pub(super) lam: lambda::Term,
    /// The parameter.
    pub(super) param: lambda::Var,
    /// What it captures.
    pub(super) env: IdMap<lambda::Var, Val>,
}

/// A sum with one alternative for each function it may be; the payload is what that function captures.
pub(super) struct Choice {
    /// The value of the sum.
    pub(super) sum: Atom,
    /// The functions, as templates: the leaves in them are those of the place where they were made.
    pub(super) alternatives: Vec<Val>,
}

/// The static shape of a value: equal shapes have the same code and the same number of leaves.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Sig {
    /// Without functions.
    Data,
    /// A product.
    Tuple(Vec<Sig>),
    /// A lambda, named by its parameter, and the shapes of what it captures.
    Closure(lambda::Var, Vec<Sig>),
    /// A choice.
    Choice(Vec<Sig>),
    /// A function that is data.
    Open(usize),
    /// An array of functions.
    Many(Box<Sig>, Vec<Column>),
    /// A computation: which, with which number, of what.
    Action(&'static str, usize, Vec<Sig>),
}

impl Val {
    pub(super) fn data(atoms: impl Into<Rc<[Atom]>>) -> Val {
        Val::Data(atoms.into())
    }
    /// Appends all leaves, those of captured values included, in an order that depends on the shape only.
    pub(super) fn push_leaves(&self, out: &mut Vec<Atom>) {
        match self {
            Val::Data(atoms) => out.extend_from_slice(atoms),
            Val::Tuple(items) => items.iter().for_each(|v| v.push_leaves(out)),
            Val::Closure(c) => c.env.values().for_each(|v| v.push_leaves(out)),
            Val::Choice(c) => out.push(c.sum),
            Val::Open(f) => out.push(f.atom),
            Val::Many(m) => out.extend(m.leaves.iter().copied().chain([m.size])),
            Val::Action(a) => a.parts().iter().for_each(|v| v.push_leaves(out)),
        }
    }
    pub(super) fn all_leaves(&self) -> Vec<Atom> {
        let mut out = Vec::new();
        self.push_leaves(&mut out);
        out
    }
    pub(super) fn leaf_types(&self, b: &core::Builder<'_>) -> Vec<core::Type> {
        self.all_leaves().into_iter().map(|a| b.ty(a)).collect()
    }
    /// For each leaf, whether a function or a computation captures it, in the order of [`Val::push_leaves`].
    pub(super) fn captured(&self) -> Vec<bool> {
        match self {
            Val::Tuple(items) => items.iter().flat_map(Val::captured).collect(),
            Val::Data(atoms) => vec![false; atoms.len()],
            Val::Closure(_) | Val::Choice(_) | Val::Open(_) | Val::Many(_) | Val::Action(_) => {
                vec![true; self.all_leaves().len()]
            }
        }
    }
    /// The same shape with other leaves, in the order of [`Val::push_leaves`].
    pub(super) fn rebuilt(&self, leaves: &mut dyn Iterator<Item = Atom>) -> Val {
        match self {
            Val::Data(atoms) => Val::Data(leaves.take(atoms.len()).collect()),
            Val::Tuple(items) => Val::Tuple(items.iter().map(|v| v.rebuilt(leaves)).collect()),
            Val::Closure(c) => {
                let env = c.env.iter().map(|(x, v)| (*x, v.rebuilt(leaves))).collect();
                Val::Closure(Rc::new(Closure { lam: c.lam.clone(), param: c.param, env }))
            }
            Val::Choice(c) => {
                let sum = leaves.next().unwrap_or(c.sum);
                Val::Choice(Rc::new(Choice { sum, alternatives: c.alternatives.clone() }))
            }
            Val::Open(f) => Val::Open(Open { kind: f.kind, atom: leaves.next().unwrap_or(f.atom) }),
            Val::Many(m) => {
                let new: Vec<Atom> = leaves.take(m.leaves.len()).collect();
                let size = leaves.next().unwrap_or(m.size);
                Val::Many(Rc::new(Many {
                    element: m.element.clone(),
                    template: m.template.clone(),
                    columns: m.columns.clone(),
                    leaves: new,
                    size,
                }))
            }
            Val::Action(a) => Val::Action(Rc::new(a.rebuilt(leaves))),
        }
    }
    /// How many levels deep chosen functions capture chosen functions.
    pub(super) fn choices(&self) -> usize {
        let most = |parts: &mut dyn Iterator<Item = &Val>| parts.map(Val::choices).max().unwrap_or(0);
        match self {
            Val::Data(_) | Val::Open(_) => 0,
            Val::Tuple(items) => most(&mut items.iter()),
            Val::Closure(c) => most(&mut c.env.values()),
            Val::Choice(c) => 1 + most(&mut c.alternatives.iter()),
            Val::Many(m) => m.template.choices(),
            Val::Action(a) => most(&mut a.parts().into_iter()),
        }
    }
    /// The type of a function value.
    pub(super) fn function_type(&self, kinds: &[Kind]) -> Option<lambda::Type> {
        match self {
            Val::Closure(c) => Some(c.lam.ty().clone()),
            Val::Choice(c) => c.alternatives.first()?.function_type(kinds),
            Val::Open(f) => Some(kinds[f.kind].ty.clone()),
            Val::Data(_) | Val::Tuple(_) | Val::Many(_) | Val::Action(_) => None,
        }
    }
    /// Whether a core function that has its leaves has the value.
    pub(super) fn is_given_by_leaves(&self) -> bool {
        match self {
            Val::Data(_) | Val::Open(_) | Val::Choice(_) => true,
            Val::Tuple(items) => items.iter().all(Val::is_given_by_leaves),
            Val::Closure(c) => c.env.values().all(Val::is_given_by_leaves),
            Val::Many(_) | Val::Action(_) => false,
        }
    }
    pub(super) fn sig(&self) -> Sig {
        match self {
            Val::Data(_) => Sig::Data,
            Val::Tuple(items) => Sig::Tuple(items.iter().map(Val::sig).collect()),
            Val::Closure(c) => Sig::Closure(c.param, c.env.values().map(Val::sig).collect()),
            Val::Choice(c) => Sig::Choice(c.alternatives.iter().map(Val::sig).collect()),
            Val::Open(f) => Sig::Open(f.kind),
            Val::Many(m) => Sig::Many(Box::new(m.template.sig()), m.columns.clone()),
            Val::Action(a) => {
                let (name, number) = a.head();
                Sig::Action(name, number, a.parts().iter().map(|v| v.sig()).collect())
            }
        }
    }
}

/// The product of values: data if they all are, which depends on its type alone.
pub(super) fn product(items: Vec<Val>) -> Val {
    if items.iter().any(|v| !matches!(v, Val::Data(_))) {
        return Val::Tuple(items.into());
    }
    let mut atoms = Vec::new();
    items.iter().for_each(|v| v.push_leaves(&mut atoms));
    Val::data(atoms)
}

impl Sig {
    /// Whether functions are captured by functions more than so many levels deep.
    pub(super) fn deeper_than(&self, depth: usize) -> bool {
        match self {
            Sig::Data | Sig::Open(_) => false,
            Sig::Tuple(parts) => parts.iter().any(|s| s.deeper_than(depth)),
            Sig::Many(element, _) => element.deeper_than(depth),
            Sig::Closure(_, parts) | Sig::Choice(parts) | Sig::Action(_, _, parts) => {
                depth == 0 || parts.iter().any(|s| s.deeper_than(depth - 1))
            }
        }
    }
}

impl Lowerer<'_, '_> {
    /// The function value of a lambda term in the present environment.
    pub(super) fn closure(&mut self, lam: &lambda::Term, param: lambda::Var) -> Val {
        let free = match self.free.get(&param) {
            Some(free) => free.clone(),
            None => {
                let free = free_variables(lam);
                self.free.insert(param, free.clone());
                free
            }
        };
        let env = free.iter().filter_map(|x| Some((*x, self.env.get(x)?.clone()))).collect();
        Val::Closure(Rc::new(Closure { lam: lam.clone(), param, env }))
    }
}

/// The variables a term uses and does not bind: binding is unique, so the order does not matter.
fn free_variables(t: &lambda::Term) -> Rc<[lambda::Var]> {
    let mut used = IdSet::new();
    let mut bound = IdSet::new();
    let mut pending = vec![t];
    while let Some(t) = pending.pop() {
        if let Exp::Var(v) = t.exp() {
            used.insert(*v);
        }
        lambda::check::binders(t.exp(), &mut |v| {
            bound.insert(v);
        });
        t.exp().children(&mut |c| pending.push(c));
    }
    used.difference(&bound).copied().collect()
}
