//! The separated form of a derivative as a checked judgement: primal bindings, and one delta term over them. The symbolic reverse pass reads nothing else.
//!
//! Source: T. Smeding, thesis, 4.6.1 and 4.6.6 (Eqs. 4.5 and 4.6). The names E1 to E4 are ours.
//!
//! Judgement: `x_1 .. x_n |- (p_1 = t_1, .., p_m = t_m, v, d)` holds if `d` is a delta term over the inputs `x` and the primal variables `p`.
//!
//! Notation: *primal term*: its free variables are inputs and primal variables · `shape d` the shape of what `d` says
//!
//! Rules:
//! ```text
//! bindings  t_j is a term over the inputs and p_1 .. p_(j-1);  v is a primal term
//! E1        in Share id d, all identities in d are less than id;  two nodes with one identity are the same node
//! E2        in Scale a d, a is an input, a primal variable or a known scalar
//! E3        indices and index functions are primal terms, with components of type Array [] i64
//! E4        in Input v, v is the number of an input of floats
//! shapes    the type that a node holds is that of its operation, as in the typing rules of a_core
//! ```
//!
//! Differences from the paper:
//! 1. Identities are numbers at once, where the text has variables and numbers them later. So E1 is what the numbers have to be.
//! 2. The text has the form after simplification by the laws of monads; here bindings are collected as they are made.
//! 3. `Scanl` is ours: its states are a primal variable, its arrays primal terms.
//!
//! Guarantee: whatever passes the check has a symbolic reverse pass whose bindings are closed. Cost: the number of edges of the delta term.

use super::a_core::{IllTyped, Program, Term, Ty, Var, permuted};
use super::counts::Nodes;
use super::d_arrays::{Delta, Dual, Node, count};
use super::e_symbolic::{Terms, duals_of};
use super::evaluate::{Closure, Mismatch};
use super::partials::Zeros;
use super::sizes::Size;
use std::collections::{BTreeMap, BTreeSet};

/// Eq. 4.5: primal bindings, the value, and how it varies.
#[derive(Clone, Debug)]
pub struct Separated {
    /// The inputs.
    pub inputs: Vec<Var>,
    /// Each a term over the inputs and the bindings before it.
    pub bindings: Vec<(Var, Term)>,
    /// The value of the program.
    pub value: Term,
    delta: Delta<Term>,
}

/// The separated form of a program of bulk operations. Cost: the size of the program.
///
/// # Errors
/// [`Mismatch`] if there is a `build1` of floats, or if the result has no derivative.
pub fn separated(program: &Program, zeros: Zeros) -> Result<Separated, Mismatch> {
    let (terms, result): (Terms, Dual<Term>) = duals_of(program, zeros)?;
    let delta = result.delta();
    Ok(Separated { inputs: program.inputs.clone(), bindings: terms.bindings, value: result.primal, delta })
}

type Checked = Result<(), IllTyped>;

fn holds(is: bool, why: &str) -> Checked {
    if is { Ok(()) } else { Err(IllTyped(why.to_string())) }
}

impl Separated {
    /// Nodes of the delta term.
    pub fn nodes(&self) -> Nodes {
        count(std::slice::from_ref(&self.delta))
    }

    /// The judgement above.
    ///
    /// # Errors
    /// [`IllTyped`] says which rule does not hold.
    pub fn check(&self) -> Checked {
        let known = self.bound()?;
        let check = Check { inputs: &self.inputs, known };
        let mut opened: BTreeMap<u32, &Delta<Term>> = BTreeMap::new();
        let mut left = vec![(&self.delta, u32::MAX)];
        while let Some((delta, below)) = left.pop() {
            check.node(delta)?;
            let mut below = below;
            // [bulk_separation.e1]  all identities in d are less than id; two nodes with one identity are the same node
            if let Node::Share(id, d) = delta.node() {
                holds(*id < below, "E1: an identity in a term with a smaller one")?;
                below = *id;
                if let Some(known) = opened.insert(*id, d) {
                    holds(known.is_same(d), "E1: two nodes with one identity")?;
                    continue;
                }
            }
            left.extend(delta.parts().into_iter().map(|part| (part, below)));
        }
        Ok(())
    }

    // [bulk_separation.bindings]  t_j is a term over the inputs and p_1 .. p_(j-1);  v is a primal term
    fn bound(&self) -> Result<BTreeSet<u32>, IllTyped> {
        let mut known: BTreeSet<u32> = self.inputs.iter().map(Var::id).collect();
        for (x, t) in &self.bindings {
            holds(t.free().is_subset(&known), "bindings: a variable that is bound later")?;
            known.insert(x.id());
        }
        holds(self.value.free().is_subset(&known), "bindings: a value of an unknown variable")?;
        Ok(known)
    }
}

struct Check<'a> {
    inputs: &'a [Var],
    known: BTreeSet<u32>,
}

impl Check<'_> {
    fn is_primal(&self, t: &Term) -> bool {
        t.free().is_subset(&self.known)
    }

    /// What a node says beside its parts, and its type.
    fn node(&self, delta: &Delta<Term>) -> Checked {
        let shape = delta.shape();
        let holds_type = |wanted: &[Size]| holds(wanted == shape, "shapes: a node with another one");
        match delta.node() {
            Node::Zero => Ok(()),
            Node::Input(v) => self.input(*v, delta.ty()),
            Node::Add(a, b) => {
                holds(a.ty() == delta.ty() && b.ty() == delta.ty(), "shapes: a sum of two types")
            }
            // [bulk_separation.e2]  a is an input, a primal variable or a known scalar
            Node::Scale(a, _, d) => {
                holds(a.is_atom() && self.is_primal(a), "E2: a factor that is no variable")?;
                holds(a.ty() == d.ty(), "E2: a factor of another type")?;
                holds_type(d.shape())
            }
            Node::Share(_, d) => holds(d.ty() == delta.ty(), "shapes: a shared node of another type"),
            Node::Index(d, ix) => {
                self.index(ix)?;
                holds_type(d.shape().get(ix.len()..).unwrap_or_default())
            }
            Node::OneHot(d, ix) => {
                self.index(ix)?;
                holds(shape.get(ix.len()..) == Some(d.shape()), "shapes: an index that is too long")
            }
            Node::SumOuter(d) => holds_type(d.shape().get(1..).unwrap_or_default()),
            Node::Gather(d, f) => self.moved(f, (shape, f.fun.params.len()), (d.shape(), f.fun.index.len())),
            Node::Scatter(d, f) => self.moved(f, (shape, f.fun.index.len()), (d.shape(), f.fun.params.len())),
            Node::Stack(ds) => {
                holds(ds.iter().all(|d| shape.get(1..) == Some(d.shape())), "shapes: rows of a stack")
            }
            Node::Replicate(d) => holds(shape.get(1..) == Some(d.shape()), "shapes: copies of a row"),
            Node::Transpose(j, d) => holds_type(&permuted(j, d.shape()).unwrap_or_default()),
            Node::Reshape(d) => {
                holds(Size::product(shape) == Size::product(d.shape()), "shapes: a number of elements")
            }
            Node::Convert(d) => holds_type(d.shape()),
            Node::Scanl(_, s) => {
                holds(s.states.is_atom() && self.is_primal(&s.states), "E2: states that are no variable")?;
                holds(s.arrays.iter().all(|a| self.is_primal(a)), "E3: an array of unknown variables")?;
                holds(shape.get(1..) == Some(s.start.shape()), "shapes: states of another one")
            }
        }
    }

    // [bulk_separation.e4]  v is the number of an input of floats
    fn input(&self, v: usize, ty: &Ty) -> Checked {
        let of = self.inputs.get(v).map(Var::ty);
        holds(of == Some(ty) && ty.is_float(), "E4: an input that has no derivative, or another type")
    }

    // [bulk_separation.e3]  components of indices are primal terms of type Array [] i64
    fn index(&self, ix: &[Term]) -> Checked {
        holds(ix.iter().all(|t| *t.ty() == Ty::index()), "E3: a component that is no integer")?;
        holds(ix.iter().all(|t| self.is_primal(t)), "E3: an index of unknown variables")
    }

    /// An index function, and the shapes that it takes and gives: their first dimensions are its own, the others are equal.
    fn moved(&self, f: &Closure<Term>, to: (&[Size], usize), from: (&[Size], usize)) -> Checked {
        let is_own = |x: &u32| f.fun.params.iter().any(|i| i.id() == *x);
        let free = || f.fun.index.iter().flat_map(Term::free);
        holds(free().all(|x| is_own(x) || f.env.contains_key(x)), "E3: a function of unknown variables")?;
        holds(f.env.values().all(|t| self.is_primal(t)), "E3: a function of unknown variables")?;
        let rest = to.0.get(to.1..);
        holds(rest.is_some() && rest == from.0.get(from.1..), "shapes: dimensions that are not moved")
    }
}
