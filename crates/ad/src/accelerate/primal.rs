//! The primal phase of array terms: a let-stack that computes the values of all nodes, and what the dual phase reads.
//!
//! Source: MSc thesis, 3.4.3: Table 1; 2.7 of our notes. Chapter 5 for [`Keep::Recompute`].
//!
//! Notation: `n` the label of the node · `a_n` its value · `tmp_n` the temporaries of its function · `m`, `m_k` the labels of its arguments · `P(f)` of `expression` · `s_1`, `s_2` what the branches store
//!
//! Rules, after those of the arguments:
//! ```text
//! use, avar, atuple, aproj,
//! reshape, replicate, slice,
//! sum, foldl, fold1, backpermute    let a_n = the same of the values of the arguments
//! generate, map, zipWith            let res = the same with P(f)    let a_n = map (.0) res    let tmp_n = map (.1) res
//!                                   recomputed:  let a_n = map (.0) (the same with P(f))      let tmp_n = map (.1) (the same with P(f))
//! alet a = m in body                that of m, then that of body with a as m
//! acond e m1 m2                     let all = acond e (let .. in (a_m1, s_1, empty)) (let .. in (a_m2, empty, s_2))    let a_n = all.0    and those of s_1 and s_2 again
//! iterate e (\(a, i). u) m           let a_n = iterate e (\(a, i). (the primal phase of u)) a_m;   states are kept, so the dual phase computes the others again
//! scanl, scanr, scanl1, collect, permute     as `use`; `collect` keeps its states only, so the dual phase computes temporaries again
//! ```
//!
//! With [`Keep::Checkpoints`] the dual phase begins with these rules once more, but for checkpoints, whose values are kept:
//! ```text
//! acond, iterate, collect, and sum, foldl, fold1, scans, permute of rank 0, or of less than the largest rank that these have in the program
//! ```
//!
//! `node` is longer than other functions: an arm for each row.
//!
//! Differences from the paper: a variable has no array of its own, where the text copies it; arrays of the two branches are restored from flat tuples. In chapter 5 only temporaries are computed again. That saves little
//! where these are arrays of the program already, so checkpoints are ours (rematerialisation).

use super::expression::{Split, Temporaries};
use super::label::{Key, Label};
use super::language::{AVar, Arr, ArrForm, Exp, Fun, Names, arrs, made};
use super::rename::{rename_exp, rename_fun};
use super::zeros::{gen_empty, map_projection};
use std::collections::{BTreeMap, BTreeSet};

/// Whether the temporaries of functions are kept for the dual phase, or computed there again: chapter 5.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Keep {
    /// They are stored.
    Store,
    /// They are computed again.
    Recompute,
    /// They are computed again, and so are the values of nodes but for checkpoints: see the module.
    Checkpoints,
    /// Those of functions with fewer operations than this are computed again.
    Below(usize),
}

/// How the algorithm goes about it.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Stored or computed again.
    pub keep: Keep,
    /// Which values of functions are temporaries.
    pub temporaries: Temporaries,
    /// Whether zero adjoints are multiplied by partial derivatives as numbers are.
    pub ieee: bool,
}

/// A let-stack.
pub(super) type Lets = Vec<(AVar, Arr)>;
/// What array variables of the source are bound to; constants are not in it.
pub(super) type Env = BTreeMap<AVar, Key>;

/// Both phases of one program.
pub(super) struct Pass<'n> {
    pub(super) names: &'n mut Names,
    pub(super) options: Options,
    /// `a_n`
    pub(super) values: BTreeMap<Label, AVar>,
    /// The functions of nodes in two, and their temporaries.
    pub(super) splits: BTreeMap<Label, (Split, AVar)>,
    /// The state and the counter of the loops that are open, in the output.
    pub(super) loops: BTreeMap<Label, [AVar; 2]>,
    /// What the arrays of the output are the values of: the argument, and nodes.
    pub(super) keys: BTreeMap<AVar, Key>,
    /// Results with temporaries that are stored by choice.
    pub(super) chosen: BTreeSet<AVar>,
    /// In the primal phase that the dual phase begins with: the largest rank of reductions.
    pub(super) again: Option<usize>,
}

impl Pass<'_> {
    pub(super) fn bind(&mut self, name: &str, u: Arr, lets: &mut Lets) -> AVar {
        let a = self.names.fresh(name, u.ty().clone());
        lets.push((a.clone(), u));
        a
    }
    /// `a_m`, as a term.
    pub(super) fn value(&self, m: &Arr<Label>) -> Arr {
        Arr::var(&self.values[m.label()])
    }
    /// The array of the output that a variable of the source is.
    fn renamed(&self, a: &AVar, env: &Env) -> AVar {
        match env.get(a) {
            Some(Key::Node(m)) => self.values[m].clone(),
            Some(Key::State(n)) => self.loops[n][0].clone(),
            Some(Key::Counter(n)) => self.loops[n][1].clone(),
            Some(Key::Argument) | None => a.clone(),
        }
    }
    pub(super) fn exp(&self, e: &Exp, env: &Env) -> Exp {
        rename_exp(e, &|a| self.renamed(a, env))
    }
    pub(super) fn fun(&self, f: &Fun, env: &Env) -> Fun {
        rename_fun(f, &|a| self.renamed(a, env))
    }

    /// What the dual phase reads, computed for it: a primal phase without the checkpoints, whose values are those of the phase before. So the largest arrays
    /// need not live from one phase to the other. Cost: at most that of the primal phase.
    // [accelerate.primal.again]  values but for checkpoints
    pub(super) fn primal_again(&mut self, u: &Arr<Label>, env: &mut Env, lets: &mut Lets) {
        self.again = Some(largest_reduction(u));
        self.primal(u, env, lets, &mut Vec::new());
        self.again = None;
    }

    /// The bindings of a term; `stored` are those that the dual phase may read.
    pub(super) fn primal(&mut self, u: &Arr<Label>, env: &mut Env, lets: &mut Lets, stored: &mut Vec<AVar>) {
        if let Some(largest) = self.again {
            let is_kept = match u.form() {
                ArrForm::Cond(..) | ArrForm::Iterate(..) => return,
                ArrForm::Collect(..) => true,
                _ => reduction(u).is_some_and(|rank| rank == 0 || rank < largest),
            };
            if is_kept {
                arrs(u.form()).into_iter().for_each(|m| self.primal(m, env, lets, stored));
                return;
            }
        }
        let value = match u.form() {
            // [accelerate.primal.use]
            ArrForm::Use(elements, shape, scalar) => {
                made(Arr::new(ArrForm::Use(elements.clone(), shape.clone(), *scalar)))
            }
            // [accelerate.primal.avar]
            ArrForm::Var(a) => {
                let a = self.renamed(a, env);
                self.values.insert(*u.label(), a);
                return;
            }
            // [accelerate.primal.alet]
            ArrForm::Let(bindings, body) => {
                for (a, v) in bindings {
                    self.primal(v, env, lets, stored);
                    env.insert(a.clone(), Key::Node(*v.label()));
                }
                return self.primal(body, env, lets, stored);
            }
            // [accelerate.primal.acond]
            ArrForm::Cond(c, m1, m2) => self.primal_cond((c, m1, m2), env, lets, stored),
            // [accelerate.primal.iterate]
            ArrForm::Iterate(e, step, m) => {
                self.primal(m, env, lets, stored);
                let e = self.exp(e, env);
                let (step, _) = self.primal_step(*u.label(), step, env);
                made(Arr::new(ArrForm::Iterate(e, step, self.value(m))))
            }
            form => {
                for m in arrs(form) {
                    self.primal(m, env, lets, stored);
                }
                self.node(*u.label(), form, env, lets, stored)
            }
        };
        let a = self.bind("a", value, lets);
        self.keys.insert(a.clone(), Key::Node(*u.label()));
        self.values.insert(*u.label(), a.clone());
        stored.push(a);
    }

    /// The row of the table, whose arguments have been computed.
    fn node(
        &mut self,
        n: Label,
        form: &ArrForm<Label>,
        env: &Env,
        lets: &mut Lets,
        stored: &mut Vec<AVar>,
    ) -> Arr {
        let form = match form {
            ArrForm::Use(..)
            | ArrForm::Var(_)
            | ArrForm::Let(..)
            | ArrForm::Cond(..)
            | ArrForm::Iterate(..) => {
                unreachable!("they have rules of their own")
            }
            // [accelerate.primal.atuple]
            ArrForm::Tuple(ms) => ArrForm::Tuple(ms.iter().map(|m| self.value(m)).collect()),
            // [accelerate.primal.aproj]
            ArrForm::Proj(m, k) => ArrForm::Proj(self.value(m), *k),
            // [accelerate.primal.reshape]
            ArrForm::Reshape(e, m) => ArrForm::Reshape(self.exp(e, env), self.value(m)),
            // [accelerate.primal.replicate]
            ArrForm::Replicate(slc, m) => {
                let slc = slc.iter().map(|e| e.as_ref().map(|e| self.exp(e, env))).collect();
                ArrForm::Replicate(slc, self.value(m))
            }
            // [accelerate.primal.slice]
            ArrForm::Slice(slc, m) => {
                let slc = slc.iter().map(|e| e.as_ref().map(|e| self.exp(e, env))).collect();
                ArrForm::Slice(slc, self.value(m))
            }
            // [accelerate.primal.generate]
            ArrForm::Generate(e, f) => {
                let e = self.exp(e, env);
                return self.split((n, f), env, lets, stored, &|p| ArrForm::Generate(e.clone(), p));
            }
            // [accelerate.primal.map]
            ArrForm::Map(f, m) => {
                let m = self.value(m);
                return self.split((n, f), env, lets, stored, &|p| ArrForm::Map(p, m.clone()));
            }
            // [accelerate.primal.zip_with]
            ArrForm::ZipWith(f, m1, m2) => {
                let (m1, m2) = (self.value(m1), self.value(m2));
                let of = |p| ArrForm::ZipWith(p, m1.clone(), m2.clone());
                return self.split((n, f), env, lets, stored, &of);
            }
            // [accelerate.primal.sum]
            ArrForm::Sum(m) => ArrForm::Sum(self.value(m)),
            // [accelerate.primal.foldl]
            ArrForm::Foldl(f, e, m) => ArrForm::Foldl(self.fun(f, env), self.exp(e, env), self.value(m)),
            // [accelerate.primal.fold1]
            ArrForm::Fold1(f, m) => ArrForm::Fold1(self.fun(f, env), self.value(m)),
            // [accelerate.primal.scanl]
            ArrForm::Scanl(f, e, m) => ArrForm::Scanl(self.fun(f, env), self.exp(e, env), self.value(m)),
            // [accelerate.primal.scanr]
            ArrForm::Scanr(f, e, m) => ArrForm::Scanr(self.fun(f, env), self.exp(e, env), self.value(m)),
            // [accelerate.primal.scanl1]
            ArrForm::Scanl1(f, m) => ArrForm::Scanl1(self.fun(f, env), self.value(m)),
            // [accelerate.primal.collect]
            ArrForm::Collect(from, f, m1, m2) => {
                ArrForm::Collect(*from, self.fun(f, env), self.value(m1), self.value(m2))
            }
            // [accelerate.primal.permute]
            ArrForm::Permute(c, d, f, m) => {
                ArrForm::Permute(self.fun(c, env), self.value(d), self.fun(f, env), self.value(m))
            }
            // [accelerate.primal.backpermute]
            ArrForm::Backpermute(e, f, m) => {
                ArrForm::Backpermute(self.exp(e, env), self.fun(f, env), self.value(m))
            }
        };
        made(Arr::new(form))
    }

    /// A combinator of a function that is split: its value, and its temporaries in the let-stack.
    fn split(
        &mut self,
        (n, f): (Label, &Fun),
        env: &Env,
        lets: &mut Lets,
        stored: &mut Vec<AVar>,
        of: &dyn Fn(Fun) -> ArrForm<()>,
    ) -> Arr {
        let f = self.fun(f, env);
        let split = Split::new(self.names, &f, self.options.temporaries, self.options.ieee);
        let whole = made(Arr::new(of(split.primal.clone())));
        let recompute = match self.options.keep {
            Keep::Store => false,
            Keep::Recompute | Keep::Checkpoints => true,
            Keep::Below(operations) => split.operations < operations,
        };
        let whole = if recompute {
            whole
        } else {
            let res = self.bind("res", whole, lets);
            if self.options.keep == Keep::Store {
                self.chosen.insert(res.clone());
            }
            Arr::var(&res)
        };
        let tmp = map_projection(self.names, 1, whole.clone());
        let tmp = self.bind("tmp", tmp, lets);
        stored.push(tmp.clone());
        self.splits.insert(n, (split, tmp));
        map_projection(self.names, 0, whole)
    }

    // [accelerate.primal.acond]
    fn primal_cond(
        &mut self,
        (c, m1, m2): (&Exp, &Arr<Label>, &Arr<Label>),
        env: &mut Env,
        lets: &mut Lets,
        stored: &mut Vec<AVar>,
    ) -> Arr {
        let c = self.exp(c, env);
        let mut branch = |m: &Arr<Label>| {
            let (mut inner, mut s) = (Lets::new(), Vec::new());
            self.primal(m, env, &mut inner, &mut s);
            (inner, self.value(m), s)
        };
        let ((b1, v1, s1), (b2, v2, s2)) = (branch(m1), branch(m2));
        let then = Arr::tuple(vec![v1, here(&s1), absent(self.names, &s2)]);
        let other = Arr::tuple(vec![v2, absent(self.names, &s1), here(&s2)]);
        let (then, other) = (made(Arr::lets(b1, then)), made(Arr::lets(b2, other)));
        let all = self.bind("all", made(Arr::new(ArrForm::Cond(c, then, other))), lets);
        self.restore(lets, &s1, &Arr::var(&all).proj(1));
        self.restore(lets, &s2, &Arr::var(&all).proj(2));
        stored.extend(s1.into_iter().chain(s2));
        Arr::var(&all).proj(0)
    }

    /// Names for the arrays of a branch outside of it. Each name is bound once: so what the dual phase knows by the inner name, it knows by the outer one from now on.
    pub(super) fn restore(&mut self, lets: &mut Lets, s: &[AVar], from: &Arr) {
        for (k, a) in s.iter().enumerate() {
            lets.push((a.clone(), from.proj(k)));
        }
    }
}

/// The rank of the value, if it takes more than an operation for each element.
fn reduction(u: &Arr<Label>) -> Option<usize> {
    match u.form() {
        ArrForm::Sum(_)
        | ArrForm::Foldl(..)
        | ArrForm::Fold1(..)
        | ArrForm::Scanl(..)
        | ArrForm::Scanr(..)
        | ArrForm::Scanl1(..)
        | ArrForm::Permute(..) => u.ty().array().ok().map(|(_, rank)| rank),
        _ => None,
    }
}

/// The largest rank of reductions, conditionals and loops left out.
fn largest_reduction(u: &Arr<Label>) -> usize {
    let inner = match u.form() {
        ArrForm::Cond(..) | ArrForm::Iterate(..) => Vec::new(),
        form => arrs(form),
    };
    inner.into_iter().map(largest_reduction).chain(reduction(u)).max().unwrap_or(0)
}

/// The arrays as a tuple.
pub(super) fn here(s: &[AVar]) -> Arr {
    Arr::tuple(s.iter().map(Arr::var).collect())
}

/// Empty arrays for those of the branch that is not taken.
pub(super) fn absent(names: &mut Names, s: &[AVar]) -> Arr {
    Arr::tuple(s.iter().map(|a| gen_empty(names, a.ty())).collect())
}
