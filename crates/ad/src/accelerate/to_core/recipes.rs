//! Leaves of elements that are evaluated again where they are read, rather than stored: an index, a constant, what a few operations make of them.
//!
//! Guarantee: a recipe has operations that never stop the program, reads of arrays at places where they have been read before, and branches of such.

use super::Lower;
use super::delayed::{COSTLY, FEW, SHARED};
use pullback_core::traverse::free_vars_exp;
use pullback_core::{Atom, Body, Exp as Core, Stm, Var};
use pullback_prim::{Prim, ScalarValue};
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

/// Steps over counters, and their result.
pub(super) struct Recipe {
    counters: Vec<Atom>,
    steps: Steps,
    cost: u64,
}

/// Steps, and the results of them.
struct Steps {
    steps: Vec<Step>,
    results: Vec<Atom>,
}

enum Step {
    Prim(Var, Prim, Vec<Atom>),
    Read(Var, Atom, Vec<Atom>),
    If(Vec<Var>, Atom, Steps, Steps),
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
    /// The recipes of the leaves of an element: of those that cost a few operations, and of those that have one reader and share no more than that with other leaves.
    pub(super) fn of_leaves(
        body: &Body,
        counters: &[Atom],
        leaves: &[Atom],
        uses: &[u32],
    ) -> Vec<Option<Recipe>> {
        let read = |k: &usize| uses[*k] > 0;
        let all: Vec<Atom> = (0..leaves.len()).filter(read).map(|k| leaves[k]).collect();
        let whole = operations(&body.stms, &all);
        let shared = |k: usize| {
            let others: Vec<Atom> =
                (0..leaves.len()).filter(|j| *j != k && read(j)).map(|j| leaves[j]).collect();
            operations(&body.stms, &[leaves[k]]) + operations(&body.stms, &others) - whole
        };
        let most = |k: usize| if uses[k] <= 1 && shared(k) <= SHARED { COSTLY } else { FEW };
        (0..leaves.len()).map(|k| Recipe::of(body, counters, leaves[k], most(k))).collect()
    }
    /// The recipe of a result of a body, if it costs at most so much.
    pub(super) fn of(body: &Body, counters: &[Atom], result: Atom, most: u64) -> Option<Recipe> {
        let (steps, cost) = Steps::of(&body.stms, vec![result], most)?;
        Some(Recipe { counters: counters.to_vec(), steps, cost })
    }
}

impl Steps {
    /// The steps that results need, from the last statement to the first, and the operations that they take.
    fn of(stms: &[Stm], results: Vec<Atom>, most: u64) -> Option<(Steps, u64)> {
        let own: BTreeSet<Var> = stms.iter().flat_map(|s| s.pat.iter().copied()).collect();
        let bound = |a: &Atom| a.var().filter(|v| own.contains(v));
        let mut wanted: BTreeSet<Var> = results.iter().filter_map(bound).collect();
        let (mut steps, mut cost) = (Vec::new(), 0u64);
        for stm in stms.iter().rev() {
            let kept: Vec<usize> = (0..stm.pat.len()).filter(|k| wanted.remove(&stm.pat[*k])).collect();
            if kept.is_empty() {
                continue;
            }
            cost += match &stm.exp {
                Core::Prim(prim, args) if !prim.may_stop() => {
                    wanted.extend(args.iter().filter_map(bound));
                    steps.push(Step::Prim(stm.pat[0], *prim, args.clone()));
                    prim.cost()
                }
                Core::Index(array, ix) => {
                    wanted.extend(ix.iter().chain([array]).filter_map(bound));
                    steps.push(Step::Read(stm.pat[0], *array, ix.clone()));
                    1
                }
                Core::If(c, then, other) => {
                    let left = most.checked_sub(cost + 1)?;
                    let branch = |body: &Body| {
                        Steps::of(&body.stms, kept.iter().map(|k| body.result[*k]).collect(), left)
                    };
                    let ((then, a), (other, b)) = (branch(then)?, branch(other)?);
                    wanted.extend(bound(c));
                    let mut found = BTreeSet::new();
                    [&then, &other].into_iter().for_each(|s| s.variables(&mut found));
                    wanted.extend(found.intersection(&own));
                    let pat = kept.iter().map(|k| stm.pat[*k]).collect();
                    steps.push(Step::If(pat, *c, then, other));
                    1 + a.max(b)
                }
                _ => return None,
            };
            if cost > most {
                return None;
            }
        }
        steps.reverse();
        Some((Steps { steps, results }, cost))
    }

    /// The variables that occur.
    fn variables(&self, found: &mut BTreeSet<Var>) {
        for step in &self.steps {
            match step {
                Step::Prim(_, _, args) => found.extend(args.iter().filter_map(|a| a.var())),
                Step::Read(_, array, ix) => found.extend(ix.iter().chain([array]).filter_map(|a| a.var())),
                Step::If(_, c, then, other) => {
                    found.extend(c.var());
                    [then, other].into_iter().for_each(|s| s.variables(found));
                }
            }
        }
        found.extend(self.results.iter().filter_map(|a| a.var()));
    }
}

/// The operations that these results of statements need. What is no step of a recipe costs much.
fn operations(stms: &[Stm], results: &[Atom]) -> u64 {
    let mut wanted = results.iter().filter_map(|a| a.var()).collect();
    operations_of(stms, &mut wanted)
}

/// The same, where variables are wanted; what these need becomes wanted. Names are unique.
fn operations_of(stms: &[Stm], wanted: &mut BTreeSet<Var>) -> u64 {
    let mut count = 0;
    for stm in stms.iter().rev() {
        let kept: Vec<usize> = (0..stm.pat.len()).filter(|k| wanted.contains(&stm.pat[*k])).collect();
        if kept.is_empty() {
            continue;
        }
        count += match &stm.exp {
            Core::If(c, then, other) => {
                wanted.extend(c.var());
                let mut branch = |body: &Body| {
                    wanted.extend(kept.iter().filter_map(|k| body.result[*k].var()));
                    operations_of(&body.stms, wanted)
                };
                1 + branch(then) + branch(other)
            }
            exp => {
                wanted.extend(free_vars_exp(exp).iter());
                match exp {
                    Core::Prim(prim, _) => prim.cost(),
                    Core::Index(..) => 1,
                    _ => COSTLY,
                }
            }
        };
    }
    count
}

impl Lower<'_, '_> {
    /// The result of a recipe at an index.
    pub(super) fn again(&mut self, recipe: &Recipe, ix: &[Atom]) -> Atom {
        let counters = recipe.counters.iter().zip(ix);
        let known = counters.filter_map(|(i, at)| i.var().map(|v| (v, *at))).collect();
        self.steps(&recipe.steps, known)[0]
    }

    fn steps(&mut self, steps: &Steps, mut known: BTreeMap<Var, Atom>) -> Vec<Atom> {
        let at = |known: &BTreeMap<Var, Atom>, a: &Atom| a.replaced(|v| known.get(&v).copied());
        let all = |known: &BTreeMap<Var, Atom>, args: &[Atom]| -> Vec<Atom> {
            args.iter().map(|a| at(known, a)).collect()
        };
        for step in &steps.steps {
            match step {
                Step::Prim(v, prim, args) => {
                    let made = self.prim(*prim, all(&known, args));
                    known.insert(*v, made);
                }
                Step::Read(v, array, ix) => {
                    let made = self.b.index(at(&known, array), &all(&known, ix));
                    known.insert(*v, made);
                }
                Step::If(vs, c, then, other) => {
                    let c = at(&known, c);
                    let made = match c {
                        Atom::Const(ScalarValue::Bool(c)) => {
                            self.steps(if c { then } else { other }, known.clone())
                        }
                        _ => {
                            let mut branch = |steps: &Steps| {
                                self.b.open();
                                let results = self.steps(steps, known.clone());
                                self.b.close(results)
                            };
                            let (then, other) = (branch(then), branch(other));
                            let made = self.b.emit_all(Core::If(c, then, other), "r");
                            made.into_iter().map(Atom::from).collect()
                        }
                    };
                    known.extend(vs.iter().copied().zip(made));
                }
            }
        }
        all(&known, &steps.results)
    }
}
