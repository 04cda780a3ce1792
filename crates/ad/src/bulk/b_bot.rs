//! The bulk-operation transformation: from programs with `build1` to programs of bulk operations, in which no function is left but index functions.
//!
//! Source: T. Smeding, thesis, 4.4: Figs. 4.10 to 4.12 and Theorem 2; the guards and the two repairs are ours, after measurements (below).
//!
//! Judgement: `t ~> t'`, for terms of the same type. Rules are applied to parts before wholes; the order of the arms decides where two apply.
//!
//! Types:
//! ```text
//! t : Array sh r  ~>  t' : Array sh r
//! ```
//!
//! Notation: `FV t` free variables · `sh` the shape of the operation that a rule takes apart · `tr` without permutation swaps the two outermost dimensions · `inside t k` for `0 <= t < k` · `q` a new variable
//!
//! Rules:
//! ```text
//! B2   build1 k (\i. t)                      ~>  replicate k t                                                        i not in FV t
//! B1   build1 k (\i. i)                      ~>  iota k
//! B3'  build1 k (\i. let x = v in u)         ~>  let x = v in build1 k (\i. u)                                        i not in FV v
//! B3   build1 k (\i. let x = v in u)         ~>  let x = build1 k (\i. v) in build1 k (\i. u[index x [i] / x])
//! B4   build1 k (\i. cond b u v)             ~>  build1 k (\i. index [u, v] [cond b 0 1])
//! B5   build1 k (\i. op t u)                 ~>  op (build1 k (\i. t)) (build1 k (\i. u))                             B6 with one argument
//! B7   build1 k (\i. sumOuter t)             ~>  sumOuter (tr (build1 k (\i. t)))
//! B7'  build1 k (\i. argMax t)               ~>  argMax (tr (build1 k (\i. t)))                                      argMin too
//! B8'  build1 k (\i. gather sh t (\is. ix))  ~>  gather (k ::: sh) t (\(i ::: is). ix)                                i not in FV t
//! B8   build1 k (\i. gather sh t (\is. ix))  ~>  gather (k ::: sh) (build1 k (\i. t)) (\(i ::: is). i ::: ix)
//! B9   build1 k (\i. scatter sh t (\is. ix)) ~>  scatter (k ::: sh) (build1 k (\i. t)) (\(i ::: is). i ::: ix)
//! B9'  build1 k (\i. argMaxAt sh t (\is. ix)) ~>  argMaxAt (k ::: sh) (build1 k (\i. t)) (\(i ::: is). i ::: ix)    argMinAt too
//! B10  build1 k (\i. [t_1, .., t_n])         ~>  tr [build1 k (\i. t_1), .., build1 k (\i. t_n)]
//! B11  build1 k (\i. replicate n t)          ~>  tr (replicate n (build1 k (\i. t)))
//! B12  build1 k (\i. tr_{b_0 .. b_n} t)      ~>  tr_{0, b_0 + 1, .., b_n + 1} (build1 k (\i. t))
//! B13  build1 k (\i. reshape sh t)           ~>  reshape (k ::: sh) (build1 k (\i. t))
//!
//! I13  index (gather sh t (\[]. ix)) ix'     ~>  index (index t ix) ix'
//! I1   index t []                            ~>  t
//! I2   index (index t us) ts                 ~>  index t (us ++ ts)
//! I3   index (let x = v in t) ix             ~>  let x = v in index t ix
//! I4   index (cond b u v) ts                 ~>  let is = ts in cond b (index u is) (index v is)
//! I5   index (op t u) ts                     ~>  let is = ts in op (index t is) (index u is)                          I6 with one argument
//! I7   index (sumOuter t) ix                 ~>  sumOuter (index (tr_{1 .. n, 0} t) ix)                               n = length ix
//! I7'  index (argMax t) ix                   ~>  let is = ix in argMax (index (tr_{1 .. n, 0} t) is)                  inside ix sh; argMin too
//! I8   index [t_1 .. t_k] (u ::: us)         ~>  let is = us in index [index t_1 is, .., index t_k is] [u]            us not empty
//! I9   index (replicate k t) (u ::: us)      ~>  index t us                                                           inside u k
//! I10' index (tr_b t) [u_(b_0) .. u_(b_k)]   ~>  index t [u_0 .. u_k]                                                 shorter indices: gather over the others
//! I10  index (tr_b t) ix                     ~>  index (gather sh t (\[i_(b_0) .. i_(b_k)]. [i_0 .. i_k])) ix
//! I11  index (reshape sh t) ix               ~>  index (gather sh t (\is. fromLinearIdx (shape t) (toLinearIdx sh is))) ix          inside ix sh
//! I12  index (gather (k ::: sh) t (\(i ::: is). ix)) (u ::: ix')  ~>  index (gather sh t (\is. ix[u/i])) ix'          inside u k
//! I12' index (gather (k ::: sh) t (\(i ::: is). ix)) (u ::: ix')  ~>  let q = u in index (gather sh t (\is. ix[q/i])) ix'
//!
//! BI0  build1 k (\i. index t ix)             ~>  gather (k ::: sh) t (\[i]. ix)                                       i not in FV t; BI1, BI2: a variable, a constant
//! BI3  build1 k (\i. index [t_1 .. t_m] [t]) ~>  gather (k ::: sh) (build1 k (\i. [t_1 .. t_m])) (\[i]. [i, t])
//! B14  build1 k (\i. scanl n (\a [x ..]. t) z [u ..])  ~>  tr (scanl n (\a [x ..]. build1 k (\i. t[index a [i] / a, index x [i] / x ..])) (build1 k (\i. z)) [tr (build1 k (\i. u)) ..])
//! BI4  build1 k (\i. index (scatter ..) ix)  ~>  gather (k ::: sh) (build1 k (\i. scatter ..)) (\[i]. i ::: ix)    argMaxAt, argMinAt too
//!
//! the guard of a rule t ~> t', whose condition is not known before the program runs:   t ~> index [t'] [cond (the condition) 0 (-1)]
//! ```
//!
//! Differences from the paper:
//! 1. I5 and I6 of an operation that is not zero at zeros, I7', I9, I11 and I12 change what is read outside of an array. [`Rules::Guarded`] asks for their condition: where the interval of an index shows it,
//!    the rule is as printed; else the result is an element of an array of one, chosen at run time. So guarded rules have the normal forms of Theorem 2, too.
//! 2. B8 without B8' turns a product of matrices into one of `m n n` elements; I12 without I12' doubles index expressions per rule. [`Rules::Printed`] has neither; B3' and BI0 (for arrays that do not
//!    depend on the index) save copies, I10' a gather.
//! 3. "Normal forms are unique" is false as text (`build1 k (\i. r + 2)` has two), so the order of rules is fixed: B2 before all others, I13 before I1.
//! 4. I4, I5 and I8 bind components of an index that are variables or known scalars only in [`Rules::Printed`].
//! 5. `iota k` is what B1 makes; it is a constant for BI2.
//! 6. `argMax` and `argMin` are ours, with B7' and I7', in all of [`Rules`]; so are `argMaxAt` and `argMinAt` with B9', and `scanl` with B14. An index of these is treated as one of `scatter`.
//!
//! Guarantee: types stay; the result is in normal form (Theorem 2). Values stay, outside of arrays too with [`Rules::Guarded`]; with the others, if no index is outside. Elements touched: at most a constant
//! times those before, but for B8 and I12 of [`Rules::Printed`]. Memory may grow by the number of iterations (B2, BI3, BI4).
//!
//! Not supported: nothing of [`super::a_core`] is left out.
//!
//! The file is one piece, and two functions are long, because the rules are one rewrite system: an arm for each.

use super::a_core::{Exp, Fold, IndexFn, Names, Program, Term, Ty, Var, made, permuted};
use super::evaluate::total;
use super::sizes::{Shape, Size};
use super::terms::{again, substitute, substitute_all, with_parts};
use pullback_prim::{Op, Prim, Scalar};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Which rules.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rules {
    /// Those of the figures.
    Printed,
    /// With B3', B8', I10', I12' and BI0: no more work than before.
    Repaired,
    /// With guards as well: the same values also outside of arrays.
    Guarded,
}

/// An application of a rule.
#[derive(Clone, Debug)]
pub struct Step {
    /// The rule.
    pub rule: &'static str,
    /// The term.
    pub before: Term,
    /// What it becomes.
    pub after: Term,
}

/// The program in bulk operations, and the rules that were applied, in order.
///
/// Cost: with [`Rules::Guarded`] and [`Rules::Repaired`], the size of the program times its depth.
pub fn transform(program: &Program, rules: Rules) -> (Program, Vec<Step>) {
    let mut bulk = program.clone();
    let mut bot = Bot { names: &mut bulk.names, rules, ranges: BTreeMap::new(), steps: Vec::new() };
    bulk.body = bot.normal_form(&program.body);
    let steps = bot.steps;
    (bulk, steps)
}

/// The same for bindings, each a term over those before it, and for results, which are terms over all of them.
pub(super) fn transform_all(
    names: &mut Names,
    bindings: &mut [(Var, Term)],
    results: &mut [Term],
) -> Vec<Step> {
    let mut bot = Bot { names, rules: Rules::Guarded, ranges: BTreeMap::new(), steps: Vec::new() };
    for (x, u) in bindings {
        *u = bot.normal_form(u);
        let range = bot.range(u);
        bot.ranges.extend(range.map(|r| (x.id(), r)));
    }
    results.iter_mut().for_each(|t| *t = bot.normal_form(t));
    bot.steps
}

struct Bot<'a> {
    names: &'a mut Names,
    rules: Rules,
    /// Between which sizes index variables are, both included; of those that are known.
    ranges: BTreeMap<u32, (Size, Size)>,
    steps: Vec<Step>,
}

type Applied = (&'static str, Term);

impl Bot<'_> {
    fn normal_form(&mut self, t: &Term) -> Term {
        if t.is_normal() {
            return t.clone();
        }
        let t = self.parts_first(t);
        let applied = match t.exp() {
            Exp::Build1(k, i, body) => Some(self.build1(k, i, body)),
            Exp::Index(array, ix) => self.index(&t, array, ix),
            _ => None,
        };
        match applied {
            Some((rule, after)) => {
                self.steps.push(Step { rule, before: t, after: after.clone() });
                self.normal_form(&after)
            }
            None => t,
        }
    }

    fn parts_first(&mut self, t: &Term) -> Term {
        match t.exp() {
            Exp::Let(x, u, v) => {
                let u = self.normal_form(u);
                let range = self.range(&u);
                self.ranges.extend(range.map(|r| (x.id(), r)));
                made(Exp::Let(x.clone(), u, self.normal_form(v)))
            }
            Exp::Build1(k, i, _) => {
                self.enter(i, k);
                with_parts(t, &mut |part| self.normal_form(part))
            }
            Exp::Gather(sh, _, f) => {
                f.params.iter().zip(sh).for_each(|(i, k)| self.enter(i, k));
                with_parts(t, &mut |part| self.normal_form(part))
            }
            Exp::Scatter(_, from, f) | Exp::ArgScatter(_, _, from, f) => {
                f.params.iter().zip(&from.ty().shape).for_each(|(i, k)| self.enter(i, k));
                with_parts(t, &mut |part| self.normal_form(part))
            }
            _ => with_parts(t, &mut |part| self.normal_form(part)),
        }
    }

    // Figs. 4.10 and 4.12. The body is in normal form.
    fn build1(&mut self, k: &Size, i: &Var, t: &Term) -> Applied {
        let is_repaired = self.rules != Rules::Printed;
        match t.exp() {
            // [bulk_bot.invariant]  B2  build1 k (\i. t) ~> replicate k t
            _ if !t.has_free(i) => ("B2", made(Exp::Replicate(k.clone(), t.clone()))),
            // [bulk_bot.variable]  B1  build1 k (\i. i) ~> iota k
            Exp::Var(_) => ("B1", made(Exp::Iota(k.clone()))),
            // [bulk_bot.let]  B3'  build1 k (\i. let x = v in u) ~> let x = v in build1 k (\i. u)
            Exp::Let(x, v, u) if is_repaired && !v.has_free(i) => {
                ("B3'", made(Exp::Let(x.clone(), v.clone(), built(k, i, u))))
            }
            // [bulk_bot.let]  B3  build1 k (\i. let x = v in u) ~> let x = build1 k (\i. v) in build1 k (\i. u[index x [i] / x])
            Exp::Let(x, v, u) => {
                let v = self.built_beside(k, i, v);
                let xs = self.names.fresh(x.name(), v.ty().clone());
                let at = made(Exp::Index(Term::var(&xs), vec![Term::var(i)]));
                let u = substitute(self.names, u, x, &at);
                ("B3", made(Exp::Let(xs, v, built(k, i, &u))))
            }
            // [bulk_bot.cond]  B4  build1 k (\i. cond b u v) ~> build1 k (\i. index [u, v] [cond b 0 1])
            Exp::Cond(b, u, v) => {
                let which = made(Exp::Cond(b.clone(), Term::i64(0), Term::i64(1)));
                let both = made(Exp::Stack(vec![u.clone(), v.clone()]));
                ("B4", built(k, i, &made(Exp::Index(both, vec![which]))))
            }
            // [bulk_bot.op]  B5  build1 k (\i. op t u) ~> op (build1 k (\i. t)) (build1 k (\i. u))
            Exp::Op(op, ts) => {
                let rule = if ts.len() == 1 { "B6" } else { "B5" };
                (rule, made(Exp::Op(*op, self.each_built(k, i, ts))))
            }
            // [bulk_bot.sum]  B7  build1 k (\i. sumOuter t) ~> sumOuter (tr (build1 k (\i. t)))
            Exp::SumOuter(t) => ("B7", made(Exp::SumOuter(swapped(built(k, i, t))))),
            // [bulk_bot.arg]  B7'  build1 k (\i. argMax t) ~> argMax (tr (build1 k (\i. t)))
            Exp::ArgOuter(which, t) => ("B7'", made(Exp::ArgOuter(*which, swapped(built(k, i, t))))),
            // [bulk_bot.gather]  B8'  build1 k (\i. gather sh t (\is. ix)) ~> gather (k ::: sh) t (\(i ::: is). ix)
            Exp::Gather(sh, t, f) if is_repaired && !t.has_free(i) => {
                let f = self.under(i, &f.params, f.index.clone());
                ("B8'", made(Exp::Gather(outside(k, sh), t.clone(), f)))
            }
            // [bulk_bot.gather]  B8  build1 k (\i. gather sh t (\is. ix)) ~> gather (k ::: sh) (build1 k (\i. t)) (\(i ::: is). i ::: ix)
            Exp::Gather(sh, t, f) => {
                let f = self.under(i, &f.params, [vec![Term::var(i)], f.index.clone()].concat());
                ("B8", made(Exp::Gather(outside(k, sh), built(k, i, t), f)))
            }
            // [bulk_bot.scatter]  B9  build1 k (\i. scatter sh t (\is. ix)) ~> scatter (k ::: sh) (build1 k (\i. t)) (\(i ::: is). i ::: ix)
            Exp::Scatter(sh, t, f) => {
                let f = self.under(i, &f.params, [vec![Term::var(i)], f.index.clone()].concat());
                ("B9", made(Exp::Scatter(outside(k, sh), built(k, i, t), f)))
            }
            // [bulk_bot.arg_at]  B9'  build1 k (\i. argMaxAt sh t (\is. ix)) ~> argMaxAt (k ::: sh) (build1 k (\i. t)) (\(i ::: is). i ::: ix)
            Exp::ArgScatter(which, sh, t, f) => {
                let f = self.under(i, &f.params, [vec![Term::var(i)], f.index.clone()].concat());
                ("B9'", made(Exp::ArgScatter(*which, outside(k, sh), built(k, i, t), f)))
            }
            // [bulk_bot.stack]  B10  build1 k (\i. [t_1, .., t_n]) ~> tr [build1 k (\i. t_1), .., build1 k (\i. t_n)]
            Exp::Stack(ts) => ("B10", swapped(made(Exp::Stack(self.each_built(k, i, ts))))),
            // [bulk_bot.replicate]  B11  build1 k (\i. replicate n t) ~> tr (replicate n (build1 k (\i. t)))
            Exp::Replicate(n, t) => ("B11", swapped(made(Exp::Replicate(n.clone(), built(k, i, t))))),
            // [bulk_bot.transpose]  B12  build1 k (\i. tr_{b_0 .. b_n} t) ~> tr_{0, b_0 + 1, .., b_n + 1} (build1 k (\i. t))
            Exp::Transpose(b, t) => {
                let b = std::iter::once(0).chain(b.iter().map(|b| b + 1)).collect();
                ("B12", made(Exp::Transpose(b, built(k, i, t))))
            }
            // [bulk_bot.reshape]  B13  build1 k (\i. reshape sh t) ~> reshape (k ::: sh) (build1 k (\i. t))
            Exp::Reshape(sh, t) => ("B13", made(Exp::Reshape(outside(k, sh), built(k, i, t)))),
            // [bulk_bot.scanl]  B14  build1 k (\i. scanl n (\a xs. t) z us) ~> tr (scanl n (\as xss. build1 k (\i. t[index as [i] / a ..])) (build1 k (\i. z)) [tr (build1 k (\i. u)) ..])
            Exp::Scanl(f, z, us) => ("B14", swapped(self.of_all_states(k, i, f, (z, us)))),
            // [bulk_bot.index]  BI1 to BI4
            Exp::Index(array, ix) => self.build1_of_index(k, i, t, (array, ix)),
            Exp::Const(_) | Exp::Size(_) | Exp::Iota(_) => unreachable!("without free variables: B2"),
            Exp::Build1(..) => unreachable!("the body is in normal form"),
        }
    }

    /// B14, before its result is transposed: the function for all `i` at once is closed as the function is.
    fn of_all_states(&mut self, k: &Size, i: &Var, f: &Fold, (z, us): (&Term, &[Term])) -> Term {
        let j = self.names.again(i);
        let many = |x: &Var| Ty::new(outside(k, &x.ty().shape), x.ty().scalar);
        let params: Vec<Var> = f.params.iter().map(|x| self.names.fresh(x.name(), many(x))).collect();
        let at = |x: &Var| made(Exp::Index(Term::var(x), vec![Term::var(&j)]));
        let map = f.params.iter().map(Var::id).zip(params.iter().map(at)).collect();
        let body = substitute_all(self.names, &f.body, &map);
        let fold = Fold { size: f.size.clone(), params, body: built(k, &j, &body) };
        let z = self.built_beside(k, i, z);
        let us = us.iter().map(|u| swapped(self.built_beside(k, i, u))).collect();
        made(Exp::Scanl(Arc::new(fold), z, us))
    }

    // Fig. 4.12.
    fn build1_of_index(&mut self, k: &Size, i: &Var, t: &Term, (array, ix): (&Term, &[Term])) -> Applied {
        let sh = outside(k, &t.ty().shape);
        let rule = match array.exp() {
            Exp::Var(_) => "BI1",
            Exp::Const(_) | Exp::Iota(_) => "BI2",
            Exp::Stack(_) => "BI3",
            _ => "BI4",
        };
        // [bulk_bot.index_of_invariant]  BI0  build1 k (\i. index t ix) ~> gather (k ::: sh) t (\[i]. ix)
        let is_leaf = matches!(array.exp(), Exp::Var(_) | Exp::Const(_) | Exp::Iota(_));
        if is_leaf || self.rules != Rules::Printed && !array.has_free(i) {
            let f = self.under(i, &[], ix.to_vec());
            let rule = if is_leaf { rule } else { "BI0" };
            return (rule, made(Exp::Gather(sh, array.clone(), f)));
        }
        // [bulk_bot.index_of_dependent]  BI3, BI4  build1 k (\i. index t ix) ~> gather (k ::: sh) (build1 k (\i. t)) (\[i]. i ::: ix)
        let f = self.under(i, &[], [vec![Term::var(i)], ix.to_vec()].concat());
        (rule, made(Exp::Gather(sh, built(k, i, array), f)))
    }

    // Fig. 4.11. The parts are in normal form.
    fn index(&mut self, whole: &Term, t: &Term, ix: &[Term]) -> Option<Applied> {
        Some(match t.exp() {
            // [bulk_bot.index_of_gather_at_an_index]  I13  index (gather sh t (\[]. ix)) ix' ~> index (index t ix) ix'
            Exp::Gather(_, t, f) if f.params.is_empty() => {
                let inner = made(Exp::Index(t.clone(), f.index.clone()));
                ("I13", made(Exp::Index(inner, ix.to_vec())))
            }
            // [bulk_bot.index_by_nothing]  I1  index t [] ~> t
            _ if ix.is_empty() => ("I1", t.clone()),
            // [bulk_bot.index_of_index]  I2  index (index t us) ts ~> index t (us ++ ts)
            Exp::Index(t, us) => ("I2", made(Exp::Index(t.clone(), [us, ix].concat()))),
            // [bulk_bot.index_of_let]  I3  index (let x = v in t) ix ~> let x = v in index t ix
            Exp::Let(x, v, t) => {
                let t = made(Exp::Index(t.clone(), ix.to_vec()));
                ("I3", made(Exp::Let(x.clone(), v.clone(), t)))
            }
            // [bulk_bot.index_of_cond]  I4  index (cond b u v) ts ~> let is = ts in cond b (index u is) (index v is)
            Exp::Cond(b, u, v) => {
                let (is, lets) = self.named(ix);
                let at = each_indexed(&[u.clone(), v.clone()], &is);
                ("I4", let_in(lets, made(Exp::Cond(b.clone(), at[0].clone(), at[1].clone()))))
            }
            // [bulk_bot.index_of_op]  I5  index (op t u) ts ~> let is = ts in op (index t is) (index u is)
            Exp::Op(op, ts) => {
                let is_guarded = self.rules == Rules::Guarded && !keeps_zero(*op);
                let is_copied = ts.len() > 1 || is_guarded;
                let (is, lets) = if is_copied { self.named(ix) } else { (ix.to_vec(), Vec::new()) };
                let at = made(Exp::Op(*op, each_indexed(ts, &is)));
                let at = if is_guarded { self.guarded(&is, &t.ty().shape, at) } else { at };
                (if ts.len() == 1 { "I6" } else { "I5" }, let_in(lets, at))
            }
            // [bulk_bot.index_of_sum]  I7  index (sumOuter t) ix ~> sumOuter (index (tr_{1 .. n, 0} t) ix)
            Exp::SumOuter(t) => {
                let last = (1..=ix.len()).chain([0]).collect();
                let turned = made(Exp::Transpose(last, t.clone()));
                ("I7", made(Exp::SumOuter(made(Exp::Index(turned, ix.to_vec())))))
            }
            // [bulk_bot.index_of_arg]  I7'  index (argMax t) ix ~> let is = ix in argMax (index (tr_{1 .. n, 0} t) is)
            Exp::ArgOuter(which, inner) => {
                let (is, lets) =
                    if self.rules == Rules::Guarded { self.named(ix) } else { (ix.to_vec(), Vec::new()) };
                let last = (1..=ix.len()).chain([0]).collect();
                let turned = made(Exp::Transpose(last, inner.clone()));
                let at = made(Exp::ArgOuter(*which, made(Exp::Index(turned, is.clone()))));
                ("I7'", let_in(lets, self.guarded(&is, &t.ty().shape, at)))
            }
            // [bulk_bot.index_of_stack]  I8  index [t_1 .. t_k] (u ::: us) ~> let is = us in index [index t_1 is, .., index t_k is] [u]
            Exp::Stack(ts) if ix.len() > 1 => {
                let (is, lets) = self.named(&ix[1..]);
                let at = made(Exp::Stack(each_indexed(ts, &is)));
                ("I8", let_in(lets, made(Exp::Index(at, vec![ix[0].clone()]))))
            }
            // [bulk_bot.index_of_replicate]  I9  index (replicate k t) (u ::: us) ~> index t us
            Exp::Replicate(_, inner) => {
                let at = made(Exp::Index(inner.clone(), ix[1..].to_vec()));
                if self.rules != Rules::Guarded {
                    return Some(("I9", at));
                }
                let (first, lets) = self.named(&ix[..1]);
                let at = self.guarded(&first, &t.ty().shape, at);
                ("I9", let_in(lets, at))
            }
            // [bulk_bot.index_of_transpose]  I10'  index (tr_b t) [u_(b_0) .. u_(b_k)] ~> index t [u_0 .. u_k]
            Exp::Transpose(b, inner) if self.rules != Rules::Printed => {
                ("I10'", self.index_of_transposed(b, inner, (&t.ty().shape, ix)))
            }
            // [bulk_bot.index_of_transpose]  I10  index (tr_b t) ix ~> index (gather sh t (\[i_(b_0) .. i_(b_k)]. [i_0 .. i_k])) ix
            Exp::Transpose(b, inner) => {
                let source = (0..b.len()).map(|_| self.names.index("i")).collect::<Vec<_>>();
                let index = source.iter().map(Term::var).collect();
                let params = permuted(b, &source).unwrap_or_else(|| unreachable!("a permutation"));
                let f = IndexFn { params, index };
                ("I10", self.index_of_moved(t, inner, f, ix))
            }
            // [bulk_bot.index_of_reshape]  I11  index (reshape sh t) ix ~> index (gather sh t (\is. fromLinearIdx (shape t) (toLinearIdx sh is))) ix
            Exp::Reshape(sh, inner) => {
                let params: Vec<Var> = sh.iter().map(|_| self.names.index("i")).collect();
                let place = to_linear(sh, &params);
                let f = IndexFn { params, index: from_linear(&inner.ty().shape, &place) };
                ("I11", self.index_of_moved(t, inner, f, ix))
            }
            // [bulk_bot.index_of_gather]  I12  index (gather (k ::: sh) t (\(i ::: is). ix)) (u ::: ix') ~> index (gather sh t (\is. ix[u/i])) ix'
            Exp::Gather(sh, array, f) if self.rules == Rules::Printed => {
                let f = self.applied(f, &ix[0]);
                let rest = made(Exp::Gather(sh[1..].to_vec(), array.clone(), f));
                ("I12", made(Exp::Index(rest, ix[1..].to_vec())))
            }
            // [bulk_bot.index_of_gather]  I12'  index (gather (k ::: sh) t (\(i ::: is). ix)) (u ::: ix') ~> let q = u in index (gather sh t (\is. ix[q/i])) ix'
            Exp::Gather(sh, array, f) => {
                let (is, lets) = self.named(&ix[..1]);
                let f = self.applied(f, &is[0]);
                let rest = made(Exp::Gather(sh[1..].to_vec(), array.clone(), f));
                let at = made(Exp::Index(rest, ix[1..].to_vec()));
                let at = self.guarded(&is, sh, at);
                ("I12'", let_in(lets, at))
            }
            Exp::Stack(_)
            | Exp::Scatter(..)
            | Exp::ArgScatter(..)
            | Exp::Scanl(..)
            | Exp::Var(_)
            | Exp::Const(_)
            | Exp::Iota(_) => return None,
            Exp::Size(_) => unreachable!("a scalar has the index []: {whole}"),
            Exp::Build1(..) => unreachable!("the parts are in normal form"),
        })
    }

    /// I10 and I11: the array as a gather, of which I12 takes the index.
    fn index_of_moved(&mut self, t: &Term, inner: &Term, f: IndexFn, ix: &[Term]) -> Term {
        let moved = made(Exp::Gather(t.ty().shape.clone(), inner.clone(), f));
        made(Exp::Index(moved, ix.to_vec()))
    }

    /// I10': the same element of the array that is not transposed; of an index that is too short, all of them.
    fn index_of_transposed(&mut self, b: &[usize], t: &Term, (sh, ix): (&[Size], &[Term])) -> Term {
        let whole = ix.len().min(b.len());
        let (is, lets) = if ix.len() < b.len() { self.named(ix) } else { (ix.to_vec(), Vec::new()) };
        let params: Vec<Var> = (whole..b.len()).map(|_| self.names.index("i")).collect();
        let all: Vec<Term> = is[..whole].iter().cloned().chain(params.iter().map(Term::var)).collect();
        let mut source = all.clone();
        b.iter().zip(all).for_each(|(a, u)| source[*a] = u);
        let at = if params.is_empty() {
            Exp::Index(t.clone(), [&source, &is[whole..]].concat())
        } else {
            Exp::Gather(sh[whole..].to_vec(), t.clone(), IndexFn { params, index: source })
        };
        let_in(lets, made(at))
    }

    /// `t` where these indices are inside of these sizes, else zero.
    // [bulk_bot.guard]  t' becomes index [t'] [cond (the condition) 0 (-1)]
    fn guarded(&self, is: &[Term], sh: &[Size], t: Term) -> Term {
        if self.rules != Rules::Guarded {
            return t;
        }
        let unknown = is.iter().zip(sh).filter(|(i, k)| !self.is_inside(i, k));
        let conditions = unknown.map(|(i, k)| {
            let from = op(Op::Le, Scalar::I64, &[&Term::i64(0), i]);
            op(Op::And, Scalar::Bool, &[&from, &op(Op::Lt, Scalar::I64, &[i, &Term::size(k)])])
        });
        match conditions.reduce(|a, b| op(Op::And, Scalar::Bool, &[&a, &b])) {
            Some(condition) => {
                let which = made(Exp::Cond(condition, Term::i64(0), Term::i64(-1)));
                made(Exp::Index(made(Exp::Stack(vec![t])), vec![which]))
            }
            None => t,
        }
    }

    fn is_inside(&self, i: &Term, k: &Size) -> bool {
        self.range(i).is_some_and(|(low, high)| {
            low.is_never_negative() && k.minus(&Size::constant(1)).minus(&high).is_never_negative()
        })
    }

    /// Between which sizes an integer is, both included, where the term is evaluated.
    fn range(&self, t: &Term) -> Option<(Size, Size)> {
        if *t.ty() != Ty::index() {
            return None;
        }
        match t.exp() {
            Exp::Const(c) => {
                let n = Size::constant(c.elements[0].as_i64());
                Some((n.clone(), n))
            }
            Exp::Size(n) => Some((n.clone(), n.clone())),
            Exp::Var(x) => self.ranges.get(&x.id()).cloned(),
            Exp::Cond(_, u, v) => {
                let ((a, b), (c, d)) = (self.range(u)?, self.range(v)?);
                let low = if c.minus(&a).is_never_negative() {
                    a
                } else {
                    (a.minus(&c).is_never_negative()).then_some(c)?
                };
                let high = if b.minus(&d).is_never_negative() {
                    b
                } else {
                    (d.minus(&b).is_never_negative()).then_some(d)?
                };
                Some((low, high))
            }
            Exp::Op(Prim::Op(op, _), ts) => self.range_of(*op, ts),
            _ => None,
        }
    }

    fn range_of(&self, op: Op, ts: &[Term]) -> Option<(Size, Size)> {
        let known = |t: &Term| self.range(t).and_then(|(a, b)| a.as_constant().filter(|_| a == b));
        match op {
            Op::Add => {
                let ((a, b), (c, d)) = (self.range(&ts[0])?, self.range(&ts[1])?);
                Some((a.plus(&c), b.plus(&d)))
            }
            Op::Sub => {
                let ((a, b), (c, d)) = (self.range(&ts[0])?, self.range(&ts[1])?);
                Some((a.minus(&d), b.minus(&c)))
            }
            // By a positive number: whatever is divided.
            Op::Mod => {
                let n = known(&ts[1]).filter(|n| *n > 0)?;
                Some((Size::constant(0), Size::constant(n - 1)))
            }
            _ => None,
        }
    }

    fn enter(&mut self, i: &Var, k: &Size) {
        self.ranges.insert(i.id(), (Size::constant(0), k.minus(&Size::constant(1))));
    }

    /// `build1 k (\i. t)` beside another one of the same `i`.
    fn built_beside(&mut self, k: &Size, i: &Var, t: &Term) -> Term {
        let j = self.names.again(i);
        let t = substitute(self.names, t, i, &Term::var(&j));
        built(k, &j, &t)
    }

    fn each_built(&mut self, k: &Size, i: &Var, ts: &[Term]) -> Vec<Term> {
        ts.iter().map(|t| self.built_beside(k, i, t)).collect()
    }

    /// The index function with one more variable in front: `\(i ::: is). ix`, beside a `build1` of `i`.
    fn under(&mut self, i: &Var, is: &[Var], index: Vec<Term>) -> IndexFn {
        again(self.names, &IndexFn { params: [std::slice::from_ref(i), is].concat(), index })
    }

    /// The index function of which the first argument is given.
    fn applied(&mut self, f: &IndexFn, u: &Term) -> IndexFn {
        let index = f.index.iter().map(|t| substitute(self.names, t, &f.params[0], u)).collect();
        IndexFn { params: f.params[1..].to_vec(), index }
    }

    /// Names for the components of an index, and what they are. Repaired rules name nothing that may be copied.
    fn named(&mut self, ts: &[Term]) -> (Vec<Term>, Vec<(Var, Term)>) {
        let mut lets = Vec::new();
        let mut name = |t: &Term| {
            if t.is_atom() && self.rules != Rules::Printed {
                return t.clone();
            }
            let q = self.names.index("q");
            lets.push((q.clone(), t.clone()));
            let range = self.range(t);
            self.ranges.extend(range.map(|r| (q.id(), r)));
            Term::var(&q)
        };
        let is = ts.iter().map(&mut name).collect();
        (is, lets)
    }
}

/// Whether an operation is zero where its arguments are, to the bit.
fn keeps_zero(op: Prim) -> bool {
    let zeros: Vec<_> = op.params().iter().map(|s| s.zero()).collect();
    total(op, &zeros) == op.result().zero()
}

fn built(k: &Size, i: &Var, t: &Term) -> Term {
    made(Exp::Build1(k.clone(), i.clone(), t.clone()))
}

fn each_indexed(ts: &[Term], is: &[Term]) -> Vec<Term> {
    ts.iter().map(|t| made(Exp::Index(t.clone(), is.to_vec()))).collect()
}

fn let_in(lets: Vec<(Var, Term)>, body: Term) -> Term {
    lets.into_iter().rev().fold(body, |body, (x, u)| made(Exp::Let(x, u, body)))
}

fn outside(k: &Size, sh: &[Size]) -> Shape {
    [std::slice::from_ref(k), sh].concat()
}

fn swapped(t: Term) -> Term {
    made(Exp::Transpose(vec![1, 0], t))
}

fn op(op: Op, scalar: Scalar, ts: &[&Term]) -> Term {
    made(Exp::Op(Prim::Op(op, scalar), ts.iter().map(|t| (*t).clone()).collect()))
}

/// `toLinearIdx`: `((i_1 k_2 + i_2) k_3 + i_3) ..`
pub(super) fn to_linear(sh: &[Size], is: &[Var]) -> Term {
    let mut pairs = sh.iter().zip(is);
    let Some((_, first)) = pairs.next() else { return Term::i64(0) };
    pairs.fold(Term::var(first), |place, (k, i)| {
        let rows = op(Op::Mul, Scalar::I64, &[&place, &Term::size(k)]);
        op(Op::Add, Scalar::I64, &[&rows, &Term::var(i)])
    })
}

/// `fromLinearIdx`: component `a` is `(place div stride_a) mod k_a`, without `mod` for the outermost, so that a place outside of the array stays outside.
pub(super) fn from_linear(sh: &[Size], place: &Term) -> Vec<Term> {
    let component = |(a, k): (usize, &Size)| {
        let stride = Size::product(&sh[a + 1..]);
        let row = if stride == Size::constant(1) {
            place.clone()
        } else {
            op(Op::Div, Scalar::I64, &[place, &Term::size(&stride)])
        };
        if a == 0 { row } else { op(Op::Mod, Scalar::I64, &[&row, &Term::size(k)]) }
    };
    sh.iter().enumerate().map(component).collect()
}
