//! Leaves of elements that are evaluated again where they are read, rather than stored: an index, a constant, what a few operations make of them.
//!
//! Guarantee: a recipe has operations that never stop the program, and reads of arrays at places where they have been read before.

use super::Lower;
use pullback_core::{Atom, Body, Exp as Core, Stm, Var};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// A leaf of a stored array.
#[derive(Clone)]
pub(super) enum Leaf {
    /// In memory.
    Memory(Atom),
    /// Evaluated where it is read.
    Again(Rc<Recipe>),
}

/// Statements over counters, and their result.
pub(super) struct Recipe {
    counters: Vec<Atom>,
    stms: Vec<Stm>,
    result: Atom,
    cost: u64,
}

/// What is bound in a body, or is a counter of it.
pub(super) struct Varies(BTreeSet<Var>);

impl Leaf {
    /// Operations for each read.
    pub(super) fn cost(&self) -> u64 {
        match self {
            Leaf::Memory(_) => 0,
            Leaf::Again(recipe) => recipe.cost,
        }
    }
}

impl Varies {
    pub(super) fn of(body: &Body, counters: &[Atom]) -> Varies {
        let bound = body.stms.iter().flat_map(|s| s.pat.iter().copied());
        Varies(bound.chain(counters.iter().filter_map(|i| i.var())).collect())
    }
    pub(super) fn atom(&self, a: Atom) -> bool {
        a.var().is_some_and(|v| self.0.contains(&v))
    }
}

impl Recipe {
    /// The recipe of a result of a body, if it costs at most so much.
    pub(super) fn of(body: &Body, counters: &[Atom], result: Atom, most: u64) -> Option<Recipe> {
        let varies = Varies::of(body, counters);
        let is_bound = |a: &Atom| varies.atom(*a) && !counters.contains(a);
        let mut wanted: BTreeSet<Var> =
            Some(result).filter(is_bound).and_then(Atom::var).into_iter().collect();
        let (mut stms, mut cost) = (Vec::new(), 0u64);
        // From the last statement to the first: what one needs stands before it.
        for stm in body.stms.iter().rev() {
            let [v] = stm.pat[..] else { continue };
            if !wanted.remove(&v) {
                continue;
            }
            let (own, args) = match &stm.exp {
                Core::Prim(prim, args) if !prim.may_stop() => (prim.cost(), args),
                Core::Index(array, ix) if !is_bound(array) => (1, ix),
                _ => return None,
            };
            cost += own;
            if cost > most {
                return None;
            }
            wanted.extend(args.iter().filter(|a| is_bound(a)).filter_map(|a| a.var()));
            stms.push(stm.clone());
        }
        stms.reverse();
        wanted.is_empty().then(|| Recipe { counters: counters.to_vec(), stms, result, cost })
    }
}

impl Lower<'_, '_> {
    /// The result of a recipe at an index.
    pub(super) fn again(&mut self, recipe: &Recipe, ix: &[Atom]) -> Atom {
        let mut known: BTreeMap<Var, Atom> =
            recipe.counters.iter().zip(ix).filter_map(|(i, at)| i.var().map(|v| (v, *at))).collect();
        for stm in &recipe.stms {
            let all = |args: &[Atom]| -> Vec<Atom> {
                args.iter().map(|a| a.replaced(|v| known.get(&v).copied())).collect()
            };
            let made = match &stm.exp {
                Core::Prim(prim, args) => {
                    let args = all(args);
                    self.prim(*prim, args)
                }
                Core::Index(array, ix) => {
                    let ix = all(ix);
                    self.b.index(*array, &ix)
                }
                exp => unreachable!("a recipe has operations and reads only: {exp:?}"),
            };
            known.extend(stm.pat.iter().map(|v| (*v, made)));
        }
        recipe.result.replaced(|v| known.get(&v).copied())
    }
}
