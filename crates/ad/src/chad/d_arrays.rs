//! Efficient CHAD on arrays.
//!
//! Source: T. Smeding, thesis, 6.6: rules Fig. 6.8, the tree of a reduction Fig. 6.9; what runs in parallel 6.7; gathers and bags that are
//! arrays 6.7.1.
//!
//! Judgement: that of [`super::c_accumulating`], whose rules hold for everything that is no operation on arrays.
//!
//! Types: `D1[[]t] = []D1[t]`, `D2[[]t] = bag(D2[t])`
//!
//! Notation: `BEmpty` [`Exp::Zero`] · `BPlus` [`Exp::Plus`] · `BOne (i, d)` [`Exp::BagOne`], here `one i d` · `BArray` [`Exp::BagArray`], with the
//! positions, here `array is ds` · `collect`, then `scatter` into zeros [`Exp::BagScatter`], here `scatter n d` · `sequence`
//! [`Exp::EvmSequence`] · `>>` of computations that do not wait for each other [`Exp::EvmPar`], here `||` · `build n (i. t)` `map (\i. t) (iota n)`
//!
//! Rules:
//! ```text
//! D[iota e]            = let p = D[e] in (iota p.0, \d. return ())
//! D[size e]            = let p = D[e] in (size p.0, \d. return ())
//! D[e[is]]             = let p = (D[e], D[is]) in (p.0.0[p.i.0], \d. p.0.1 (one p.1.0 (.. (one p.k.0 d))))
//! D[[e1, .., en]]      = let p = (D[es]) in ([p.i.0], \d. let ds = scatter n d in p.1.1 ds[0] || .. || p.n.1 ds[n - 1])
//! D[replicate n e]     = let p = (D[n], D[e]) in (replicate p.0.0 p.1.0, \d. p.1.1 (reduce (+) 0 (scatter p.0.0 d)))
//! D[gather e is]       = let p = (D[e], D[is]) in (gather p.0.0 p.1.0, \d. p.0.1 (array p.1.0 (scatter (size p.1.0) d)))
//! D[o e]               = let p = D[e] in (o p.0, \d. let is = o (iota (size p.0)) in p.1 (array is (scatter (size is) d)))       o: a slice, reverse, rotate
//! D[concat es]         = let p = (D[es]) in (concat p.i.0, \d. let ds = scatter n d in p.i.1 (array (iota ni) (slice ds ..)))
//! D[rearrange e]       = let p = D[e] in (rearrange p.0, \d. p.1 (bags (rearrange^-1 (scatters d))))      scatters, bags: in every dimension that moves
//! D[reshape ns e]      = let p = (D[e], D[ns]) in (reshape p.i.0 p.0.0, \d. p.0.1 (bags (reshape (sizes p.0.0) (scatters d))))
//! D[zip es]            = let p = (D[es]) in (zip p.i.0, \d. let ds = scatter n d in p.i.1 (array (iota n) (map (\d. d.i) ds)))
//! D[unzip e]           = let p = D[e] in (unzip p.0, \d. p.1 (array (iota n) (map (\ds. <ds>) (scatter n d.i))))
//! D[map (\xs. b) as]   = let p = (D[as]) in let q = unzip (map (\xs. D[b]) p.i.0) in
//!                        (q.0, \d. r <- sequence (map (\f d. dxs <- scope 0 (f d); return dxs) q.1 (scatter n d)); p.i.1 (array (iota n) (map (\d. d.i) r)))
//! D[reduce (\x y. b) z a] = let p = (D[a], D[z]) in
//!                        let tree = reduce (\l r. let x = root l in let y = root r in let q = D[b] in node l q.0 q.1 r) (leaf 0 p.1.0) (map leaf (1 + iota n) p.0.0)
//!                        in (root tree, \d. r <- spread tree d; let ds = scatter (1 + n) r in p.1.1 ds[0] || p.0.1 (array (iota n) (slice ds 1 n)))
//! spread (leaf i x) d  = return (one i d)
//! spread (node l x f r) d = ds <- scope 0 (f d); (spread l ds.0 || spread r ds.1) >>= \(a, b). return (a + b)
//! ```
//!
//! Differences from the paper:
//! 1. `build` is a map over `iota`; maps run over any arrays, and their elements are variables of the body.
//! 2. `collect` and `scatter` are one operation. The leaves of a tree know their position, so that the cotangents of an array's elements are a bag at
//!    once, without lists (the figure gives a list where a bag is expected).
//! 3. Reductions have a neutral element, which is one more leaf.
//! 4. Data movement, `replicate`, literals, `zip` and `unzip`, which the thesis does not have.
//! 5. `build n (i. a ! t)` is a gather where `a` is a variable ([`Gathers::Recognised`], 6.7.1).
//!
//! Guarantee: work as in [`super::c_accumulating`], where data movement, `zip` and `unzip` count as many steps as they have elements; span:
//! that of the program, a logarithm per array operation, and the depth of the tree of each reduction (`crates/testkit/tests/chad_arrays.rs`).
//!
//! Not supported: scans, histograms, updates and scatters; functions that are no lambdas.

use super::c_accumulating::{Chad, Res, Shape, transform_with, vjp_of};
use super::{component, free_name, refuse};
use crate::contract::Unsupported;
use pullback_lambda::{Arm, Exp, FunId, Program, SliceDim, Soac, Term, Type, Var, Variant};
use pullback_prim::Op;
use std::sync::Arc;

/// The name by which it is chosen.
pub const ID: &str = "chad-arrays";

/// What a map that only picks elements becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gathers {
    /// A map like any other (Fig. 6.8).
    Maps,
    /// A gather, whose derivative is one bag (6.7.1).
    Recognised,
}

/// Adds, for a function `f : (s1, .., sn) -> t`, the function `(s1, .., sn) -> (t, D2[t] -> EVM [D2[sn], .., D2[s1]] ())`, and
/// those for the functions that it calls.
///
/// Errors and cost: as for [`super::c_accumulating::transform`].
pub fn transform(program: &mut Program, f: FunId, gathers: Gathers) -> Result<FunId, Unsupported> {
    transform_with(program, f, Shape::Figure, Some(gathers))
}

/// Adds the function `(s1, .., sn, D2[t]) -> (t, (D2[s1], .., D2[sn]))`: value and cotangents of the arguments.
///
/// Errors and cost: as for [`transform`].
pub fn vjp(program: &mut Program, f: FunId, gathers: Gathers) -> Result<FunId, Unsupported> {
    let transformed = transform(program, f, gathers)?;
    vjp_of(program, f, transformed)
}

impl Chad<'_> {
    /// The derivative of an operation on arrays.
    pub(super) fn array_rule(&mut self, t: &Term, gathers: Gathers) -> Res<Term> {
        match t.exp() {
            // [chad.iota]  D[iota e] = let p = D[e] in (iota p.0, \d. return ())
            Exp::Iota(e) => self.without_derivative(e, t, |s, value| s.b.term(Exp::Iota(value))),
            // [chad.size]  D[size e] = let p = D[e] in (size p.0, \d. return ())
            Exp::Size(e, dim) => self.without_derivative(e, t, |s, value| s.b.size(value, *dim)),
            // [chad.index]  D[e[is]] = let p = (D[e], D[is]) in (p.0.0[p.i.0], \d. p.0.1 (one p.1.0 (.. (one p.k.0 d))))
            Exp::Index(e, ix) => self.index(e, ix, t),
            // [chad.array]  D[[es]] = let p = (D[es]) in ([p.i.0], \d. let ds = scatter n d in p.1.1 ds[0] || .. || p.n.1 ds[n - 1])
            Exp::ArrayLit(elem, items) => self.literal_array(elem, items, t),
            // [chad.replicate]  D[replicate n e] = let p = (D[n], D[e]) in (replicate p.0.0 p.1.0, \d. p.1.1 (reduce (+) 0 (scatter p.0.0 d)))
            Exp::Replicate(n, e) => self.replicate(n, e, t),
            // [chad.gather]  D[gather e is] = let p = (D[e], D[is]) in (gather p.0.0 p.1.0, \d. p.0.1 (array p.1.0 (scatter (size p.1.0) d)))
            Exp::Gather(e, ix) => self.gather(e, ix, t),
            // [chad.move]  D[o e] = let p = D[e] in (o p.0, \d. let is = o (iota (size p.0)) in p.1 (array is (scatter (size is) d)))
            Exp::Reverse(e) => self.moved(e, &[], t, |_, array, _| Exp::Reverse(array)),
            Exp::Rotate(k, e) => self.moved(e, &[k], t, |s, array, p| Exp::Rotate(s.part(p, 1, 0), array)),
            Exp::Slice(e, d) => self.moved(e, &[&d.start, &d.len, &d.stride], t, |s, array, p| {
                let (start, len, stride) = (s.part(p, 1, 0), s.part(p, 2, 0), s.part(p, 3, 0));
                Exp::Slice(array, SliceDim { start, len, stride })
            }),
            // [chad.concat]  D[concat es] = let p = (D[es]) in (concat p.i.0, \d. let ds = scatter n d in p.i.1 (array (iota ni) (slice ds ..)))
            Exp::Concat(items) => self.concat(items, t),
            // [chad.rearrange]  D[rearrange perm e] = let p = D[e] in (rearrange perm p.0, \d. p.1 (bags (rearrange perm^-1 (scatters d))))
            Exp::Rearrange(perm, e) => self.rearrange(perm, e, t),
            // [chad.reshape]  D[reshape ns e] = let p = (D[e], D[ns]) in (reshape p.i.0 p.0.0, \d. p.0.1 (bags (reshape (sizes p.0.0) (scatters d))))
            Exp::Reshape { shape, from, array } => self.reshape(shape, *from, array, t),
            // [chad.zip]  D[zip es] = let p = (D[es]) in (zip p.i.0, \d. let ds = scatter n d in p.i.1 (array (iota n) (map (\d. d.i) ds)))
            Exp::Zip(items) => self.zip(items, t),
            // [chad.unzip]  D[unzip e] = let p = D[e] in (unzip p.0, \d. p.1 (array (iota n) (map (\ds. <ds>) (scatter n d.i))))
            Exp::Unzip(e) => self.unzip(e, t),
            // [chad.map]  D[map (\xs. b) as] = let p = (D[as]) in let q = unzip (map (\xs. D[b]) p.i.0) in (q.0, \d. r <- sequence (..); p.i.1 (array (iota n) r.i))
            Exp::Soac(Soac::Map { f, arrays }) => match (gathers, picks(f, arrays)) {
                (Gathers::Recognised, Some((from, position))) => {
                    let f = self.b.term(Exp::Lam(position.0, position.1));
                    let ix = match f.exp() {
                        Exp::Lam(i, body) if matches!(body.exp(), Exp::Var(v) if v == i) => arrays[0].clone(),
                        _ => self.b.map(f, arrays.clone()),
                    };
                    let gather = self.b.term(Exp::Gather(from, ix));
                    self.rule(&gather)
                }
                _ => self.map(f, arrays, t),
            },
            // [chad.reduce]  D[reduce (\x y. b) z a] = let p = (D[a], D[z]) in let tree = reduce .. in (root tree, \d. r <- spread tree d; let ds = scatter (1 + n) r in p.1.1 ds[0] || ..)
            Exp::Soac(Soac::Reduce { op, neutral, array, commutative }) => {
                self.reduce(op, neutral, array, *commutative, t)
            }
            // [chad.same_size]  D[same_size a b; e] = let p = (D[a], D[b]) in same_size p.0.0 p.1.0; D[e]
            Exp::SameSize { left, right, message, body } => {
                let sizes = self.all(&[left.clone(), right.clone()])?;
                self.bound(sizes, |s, p| {
                    let (left, right) = (s.part(p, 0, 0), s.part(p, 1, 0));
                    let body = s.term(body)?;
                    Ok(s.b.same_size(left, right, message.clone(), body))
                })
            }
            Exp::Soac(Soac::Scan { .. }) => refuse(ID, "a scan", t.span()),
            Exp::Soac(Soac::Hist { .. }) => refuse(ID, "`reduce_by_index`", t.span()),
            Exp::Soac(Soac::Scatter { .. }) | Exp::Update(..) | Exp::UpdateSlice(..) => {
                refuse(ID, "an update of an array", t.span())
            }
            _ => refuse(ID, "what is no operation on arrays", t.span()),
        }
    }

    fn without_derivative(
        &mut self,
        e: &Term,
        t: &Term,
        f: impl FnOnce(&mut Self, Term) -> Term,
    ) -> Res<Term> {
        let p = self.term(e)?;
        self.bound(p, |s, p| {
            let value = component(&mut s.b, p, 0);
            let value = f(s, value);
            let back = s.back(t.ty(), |s, _| s.nothing())?;
            Ok(s.b.tuple(vec![value, back]))
        })
    }
    fn index(&mut self, e: &Term, ix: &[Term], t: &Term) -> Res<Term> {
        let items: Vec<Term> = std::iter::once(e).chain(ix).cloned().collect();
        let all = self.all(&items)?;
        self.bound(all, |s, p| {
            let ix = |s: &mut Self| (1..items.len()).map(|i| s.part(p, i, 0)).collect::<Vec<Term>>();
            let (array, at) = (s.part(p, 0, 0), ix(s));
            let value = s.b.index(array, at);
            let back = s.back(t.ty(), |s, d| {
                let d = s.b.var(d);
                let one_hot = ix(s).into_iter().rev().fold(d, |d, i| s.b.term(Exp::BagOne(i, d)));
                let back = s.part(p, 0, 1);
                s.b.apply(back, [one_hot])
            })?;
            Ok(s.b.tuple(vec![value, back]))
        })
    }
    fn literal_array(&mut self, elem: &Type, items: &[Term], t: &Term) -> Res<Term> {
        let all = self.all(items)?;
        let n = items.len();
        self.bound(all, |s, p| {
            let values = (0..n).map(|i| s.part(p, i, 0)).collect();
            let value = s.b.term(Exp::ArrayLit(elem.clone(), values));
            let back = s.back(t.ty(), |s, d| {
                let size = s.b.i64(n as i64);
                s.with_scattered(size, d, |s, ds| {
                    let parts = (0..n).map(|i| {
                        let (ds, at) = (s.b.var(ds), s.b.i64(i as i64));
                        let d = s.b.index(ds, vec![at]);
                        let back = s.part(p, i, 1);
                        s.b.apply(back, [d])
                    });
                    let parts = parts.collect();
                    s.in_parallel(parts)
                })
            })?;
            Ok(s.b.tuple(vec![value, back]))
        })
    }
    fn replicate(&mut self, n: &Term, e: &Term, t: &Term) -> Res<Term> {
        let bar = self.bar(e.ty())?;
        let all = self.all(&[n.clone(), e.clone()])?;
        self.bound(all, |s, p| {
            let (n, value) = (s.part(p, 0, 0), s.part(p, 1, 0));
            let value = s.b.term(Exp::Replicate(n, value));
            let back = s.back(t.ty(), |s, d| {
                let (n, d) = (s.part(p, 0, 0), s.b.var(d));
                let array = s.b.term(Exp::BagScatter(n, d));
                let op = s.b.lams(&[("a", bar.clone()), ("b", bar.clone())], |b, v| {
                    let (x, y) = (b.var(v[0]), b.var(v[1]));
                    b.term(Exp::Plus(x, y))
                });
                let neutral = s.b.term(Exp::Zero(bar.clone()));
                let sum = s.b.term(Exp::Soac(Soac::Reduce { op, neutral, array, commutative: true }));
                let back = s.part(p, 1, 1);
                s.b.apply(back, [sum])
            })?;
            Ok(s.b.tuple(vec![value, back]))
        })
    }
    fn gather(&mut self, e: &Term, ix: &Term, t: &Term) -> Res<Term> {
        let all = self.all(&[e.clone(), ix.clone()])?;
        self.bound(all, |s, p| {
            let (array, ix) = (s.part(p, 0, 0), s.part(p, 1, 0));
            let value = s.b.term(Exp::Gather(array, ix));
            let back = s.back(t.ty(), |s, d| {
                let (ix, d) = (s.part(p, 1, 0), s.b.var(d));
                let n = s.b.size(ix.clone(), 0);
                let ds = s.b.term(Exp::BagScatter(n, d));
                let bag = s.b.term(Exp::BagArray(ix, ds));
                let back = s.part(p, 0, 1);
                s.b.apply(back, [bag])
            })?;
            Ok(s.b.tuple(vec![value, back]))
        })
    }
    /// An operation that moves the rows of an array, with other operands; the positions that it reads are what it makes of `iota`.
    fn moved(
        &mut self,
        e: &Term,
        others: &[&Term],
        t: &Term,
        o: impl Fn(&mut Self, Term, Var) -> Exp,
    ) -> Res<Term> {
        let items: Vec<Term> = std::iter::once(e).chain(others.iter().copied()).cloned().collect();
        let all = self.all(&items)?;
        self.bound(all, |s, p| {
            let array = s.part(p, 0, 0);
            let value = o(s, array, p);
            let value = s.b.term(value);
            let back = s.back(t.ty(), |s, d| {
                let array = s.part(p, 0, 0);
                let n = s.b.size(array, 0);
                let all = s.b.term(Exp::Iota(n));
                let is = o(s, all, p);
                let is = s.b.term(is);
                let is_var = s.b.fresh(is.ty().clone(), "is");
                let (positions, d) = (s.b.var(is_var), s.b.var(d));
                let n = s.b.size(positions.clone(), 0);
                let ds = s.b.term(Exp::BagScatter(n, d));
                let bag = s.b.term(Exp::BagArray(positions, ds));
                let back = s.part(p, 0, 1);
                let body = s.b.apply(back, [bag]);
                s.b.term(Exp::Let(is_var, is, body))
            })?;
            Ok(s.b.tuple(vec![value, back]))
        })
    }
    fn concat(&mut self, items: &[Term], t: &Term) -> Res<Term> {
        let all = self.all(items)?;
        self.bound(all, |s, p| {
            let values = (0..items.len()).map(|i| s.part(p, i, 0)).collect();
            let value = s.b.term(Exp::Concat(values));
            let back = s.back(t.ty(), |s, d| {
                let size = |s: &mut Self, i: usize| {
                    let array = s.part(p, i, 0);
                    s.b.size(array, 0)
                };
                let before = |s: &mut Self, i: usize| {
                    let zero = s.b.i64(0);
                    (0..i).fold(zero, |sum, j| {
                        let n = size(s, j);
                        s.b.op2(Op::Add, sum, n)
                    })
                };
                let all = before(s, items.len());
                s.with_scattered(all, d, |s, ds| {
                    let parts = (0..items.len()).map(|i| {
                        let (start, len, stride) = (before(s, i), size(s, i), s.b.i64(1));
                        let ds = s.b.var(ds);
                        let part = s.b.term(Exp::Slice(ds, SliceDim { start, len: len.clone(), stride }));
                        let bag = s.whole_bag(len, part);
                        let back = s.part(p, i, 1);
                        s.b.apply(back, [bag])
                    });
                    let parts = parts.collect();
                    s.in_parallel(parts)
                })
            })?;
            Ok(s.b.tuple(vec![value, back]))
        })
    }
    fn rearrange(&mut self, perm: &[usize], e: &Term, t: &Term) -> Res<Term> {
        let mut inverse = vec![0; perm.len()];
        perm.iter().enumerate().for_each(|(i, p)| inverse[*p] = i);
        let p = self.term(e)?;
        self.bound(p, |s, p| {
            let value = component(&mut s.b, p, 0);
            let value = s.b.term(Exp::Rearrange(perm.to_vec(), value));
            let back = s.back(t.ty(), |s, d| {
                let size = |s: &mut Self, i: usize| {
                    let array = component(&mut s.b, p, 0);
                    s.b.size(array, perm[i])
                };
                let d = s.b.var(d);
                let ds = s.scatters(d, 0, perm.len(), &size);
                let ds = s.b.term(Exp::Rearrange(inverse.clone(), ds));
                let bags = s.bags(ds, perm.len());
                let back = component(&mut s.b, p, 1);
                s.b.apply(back, [bags])
            })?;
            Ok(s.b.tuple(vec![value, back]))
        })
    }
    fn reshape(&mut self, shape: &[Term], from: usize, e: &Term, t: &Term) -> Res<Term> {
        let items: Vec<Term> = std::iter::once(e).chain(shape).cloned().collect();
        let all = self.all(&items)?;
        self.bound(all, |s, p| {
            let sizes = |s: &mut Self| (0..shape.len()).map(|i| s.part(p, i + 1, 0)).collect();
            let (array, new) = (s.part(p, 0, 0), sizes(s));
            let value = s.b.term(Exp::Reshape { shape: new, from, array });
            let back = s.back(t.ty(), |s, d| {
                let d = s.b.var(d);
                let ds = s.scatters(d, 0, shape.len(), &|s, i| s.part(p, i + 1, 0));
                let old = (0..from).map(|i| {
                    let array = s.part(p, 0, 0);
                    s.b.size(array, i)
                });
                let old = old.collect();
                let ds = s.b.term(Exp::Reshape { shape: old, from: shape.len(), array: ds });
                let bags = s.bags(ds, from);
                let back = s.part(p, 0, 1);
                s.b.apply(back, [bags])
            })?;
            Ok(s.b.tuple(vec![value, back]))
        })
    }
    fn zip(&mut self, items: &[Term], t: &Term) -> Res<Term> {
        let all = self.all(items)?;
        self.bound(all, |s, p| {
            let values = (0..items.len()).map(|i| s.part(p, i, 0)).collect();
            let value = s.b.term(Exp::Zip(values));
            let back = s.back(t.ty(), |s, d| {
                let array = s.part(p, 0, 0);
                let n = s.b.size(array, 0);
                s.with_scattered(n, d, |s, ds| s.column_bags(p, items.len(), ds))
            })?;
            Ok(s.b.tuple(vec![value, back]))
        })
    }
    fn unzip(&mut self, e: &Term, t: &Term) -> Res<Term> {
        let bars = match self.bar(e.ty())? {
            Type::Bag(row) => match &*row {
                Type::SparseTuple(bars) => bars.to_vec(),
                _ => Vec::new(),
            },
            _ => Vec::new(),
        };
        let p = self.term(e)?;
        self.bound(p, |s, p| {
            let value = component(&mut s.b, p, 0);
            let value = s.b.term(Exp::Unzip(value));
            let back = s.back(t.ty(), |s, d| {
                if bars.is_empty() {
                    return s.nothing();
                }
                let array = component(&mut s.b, p, 0);
                let n = s.b.size(array, 0);
                let columns = (0..bars.len()).map(|i| {
                    let d = s.b.var(d);
                    let bag = s.b.term(Exp::SparseProj(d, i));
                    s.b.term(Exp::BagScatter(n.clone(), bag))
                });
                let columns = columns.collect();
                let params: Vec<(&str, Type)> = bars.iter().map(|bar| ("d", bar.clone())).collect();
                let pair = s.b.lams(&params, |b, vars| {
                    let parts = vars.iter().map(|v| b.var(*v)).collect();
                    b.term(Exp::SparseTuple(parts))
                });
                let ds = s.b.map(pair, columns);
                let bag = s.whole_bag(n.clone(), ds);
                let back = component(&mut s.b, p, 1);
                s.b.apply(back, [bag])
            })?;
            Ok(s.b.tuple(vec![value, back]))
        })
    }
    fn map(&mut self, f: &Term, arrays: &[Term], t: &Term) -> Res<Term> {
        let Some((xs, body)) = lambda(f, arrays.len()) else {
            return refuse(ID, "a map of a function that is no lambda", t.span());
        };
        let all = self.all(arrays)?;
        let result = self.bar(body.ty())?;
        self.bound(all, |s, p| {
            let values: Vec<Term> = (0..arrays.len()).map(|i| s.part(p, i, 0)).collect();
            let (vars, row) = s.row(&xs, body)?;
            let row = vars.iter().rev().fold(row, |row, v| s.b.term(Exp::Lam(*v, row)));
            let rows = s.b.map(row, values);
            let rows = s.b.term(Exp::Unzip(rows));
            s.bound(rows, |s, q| {
                let value = component(&mut s.b, q, 0);
                let back = s.back(t.ty(), |s, d| {
                    let (backs, d) = (component(&mut s.b, q, 1), s.b.var(d));
                    let n = s.b.size(backs.clone(), 0);
                    let ds = s.b.term(Exp::BagScatter(n, d));
                    let of_row = match backs.ty() {
                        Type::Array(f) => Type::clone(f),
                        other => other.clone(),
                    };
                    let apply = s.b.lams(&[("f", of_row), ("d", result.clone())], |b, v| {
                        let (f, d) = (b.var(v[0]), b.var(v[1]));
                        b.apply(f, [d])
                    });
                    let computations = s.b.map(apply, vec![backs, ds]);
                    let env = s.cells.types();
                    let sequence = s.b.term(Exp::EvmSequence(env, computations));
                    s.then(sequence, |s, r| match arrays.len() {
                        1 => {
                            let ds = s.b.var(r);
                            let n = s.b.size(ds.clone(), 0);
                            let bag = s.whole_bag(n, ds);
                            let back = s.part(p, 0, 1);
                            s.b.apply(back, [bag])
                        }
                        k => s.column_bags(p, k, r),
                    })
                })?;
                Ok(s.b.tuple(vec![value, back]))
            })
        })
    }
    fn reduce(&mut self, op: &Term, neutral: &Term, array: &Term, commutative: bool, t: &Term) -> Res<Term> {
        let Some((xs, body)) = lambda(op, 2) else {
            return refuse(ID, "a reduction with a function that is no lambda", t.span());
        };
        let all = self.all(&[array.clone(), neutral.clone()])?;
        let element = neutral.ty().clone();
        self.bound(all, |s, p| {
            let (vars, combined) = s.row(&xs, body)?;
            let Type::Tuple(pair) = combined.ty().clone() else {
                return refuse(ID, "a reduction without a backpropagator", t.span());
            };
            let tree = Tree::declare(s, &element, &pair[1])?;
            let leaf = |s: &mut Self, i: Term, x: Term| s.b.term(Exp::Inject(tree.ty.clone(), 0, vec![i, x]));
            let leaves = {
                let (i, x) = (s.b.fresh(Type::I64, "i"), s.b.fresh(element.clone(), "x"));
                let (i_value, one, value) = (s.b.var(i), s.b.i64(1), s.b.var(x));
                let at = s.b.op2(Op::Add, i_value, one);
                let made = leaf(s, at, value);
                let made = s.b.term(Exp::Lam(x, made));
                let made = s.b.term(Exp::Lam(i, made));
                let values = s.part(p, 0, 0);
                let n = s.b.size(values.clone(), 0);
                let all = s.b.term(Exp::Iota(n));
                s.b.map(made, vec![all, values])
            };
            let (first, neutral) = (s.b.i64(0), s.part(p, 1, 0));
            let neutral = leaf(s, first, neutral);
            let (l, r) = (s.b.fresh(tree.ty.clone(), "l"), s.b.fresh(tree.ty.clone(), "r"));
            let node = {
                let q = s.b.fresh(combined.ty().clone(), "q");
                let fields =
                    vec![s.b.var(l), component(&mut s.b, q, 0), component(&mut s.b, q, 1), s.b.var(r)];
                let node = s.b.term(Exp::Inject(tree.ty.clone(), 1, fields));
                let node = s.b.term(Exp::Let(q, combined, node));
                vars.iter().zip([l, r]).rev().fold(node, |node, (x, of)| {
                    let of = s.b.var(of);
                    let root = s.b.call(tree.root, vec![of]);
                    s.b.term(Exp::Let(*x, root, node))
                })
            };
            let node = s.b.term(Exp::Lam(r, node));
            let op = s.b.term(Exp::Lam(l, node));
            let reduced = s.b.term(Exp::Soac(Soac::Reduce { op, neutral, array: leaves, commutative }));
            s.bound(reduced, |s, all| {
                let whole = s.b.var(all);
                let value = s.b.call(tree.root, vec![whole]);
                let back = s.back(t.ty(), |s, d| {
                    let (all, d) = (s.b.var(all), s.b.var(d));
                    let spread = s.b.call(tree.spread, vec![all, d]);
                    s.then(spread, |s, bag| {
                        let array = s.part(p, 0, 0);
                        let n = s.b.size(array, 0);
                        let one = s.b.i64(1);
                        let all = s.b.op2(Op::Add, n.clone(), one);
                        s.with_scattered(all, bag, |s, ds| {
                            let (whole, zero) = (s.b.var(ds), s.b.i64(0));
                            let first = s.b.index(whole.clone(), vec![zero]);
                            let (start, stride) = (s.b.i64(1), s.b.i64(1));
                            let rest =
                                s.b.term(Exp::Slice(whole, SliceDim { start, len: n.clone(), stride }));
                            let bag = s.whole_bag(n, rest);
                            let (of_neutral, of_array) = (s.part(p, 1, 1), s.part(p, 0, 1));
                            let parts = vec![s.b.apply(of_neutral, [first]), s.b.apply(of_array, [bag])];
                            s.in_parallel(parts)
                        })
                    })
                })?;
                Ok(s.b.tuple(vec![value, back]))
            })
        })
    }

    // --- pieces of the rules ---

    /// `D[body]`, whose backpropagator returns the cotangents of the parameters: of one itself, of several their product; and the parameters.
    fn row(&mut self, xs: &[Var], body: &Term) -> Res<(Vec<Var>, Term)> {
        let vars: Vec<(Var, Var)> = xs
            .iter()
            .map(|x| {
                let info = self.b.program.vars[*x].clone();
                (*x, self.b.fresh(info.ty, info.hint.as_str()))
            })
            .collect();
        let row = self.under(&vars, body, |s, dx| {
            let env = s.cells.types();
            s.b.term(Exp::EvmReturn(env, dx))
        })?;
        Ok((vars.into_iter().map(|(_, new)| new).collect(), row))
    }
    /// `m1 || .. || mn; return ()`
    pub(super) fn in_parallel(&mut self, mut computations: Vec<Term>) -> Term {
        match computations.len() {
            0 => self.nothing(),
            1 => computations.remove(0),
            _ => {
                let all = self.b.term(Exp::EvmPar(computations));
                self.then(all, |s, _| s.nothing())
            }
        }
    }
    /// `m >>= \r. f r`
    fn then(&mut self, m: Term, f: impl FnOnce(&mut Self, Var) -> Term) -> Term {
        let result = match m.ty() {
            Type::Evm(_, t) => Type::clone(t),
            _ => Type::unit(),
        };
        let r = self.b.fresh(result, "r");
        let after = f(self, r);
        let after = self.b.term(Exp::Lam(r, after));
        self.b.term(Exp::EvmBind(m, after))
    }
    /// `let ds = scatter n d in f ds`
    fn with_scattered(&mut self, n: Term, d: Var, f: impl FnOnce(&mut Self, Var) -> Term) -> Term {
        let d = self.b.var(d);
        let scattered = self.b.term(Exp::BagScatter(n, d));
        let ds = self.b.fresh(scattered.ty().clone(), "ds");
        let body = f(self, ds);
        self.b.term(Exp::Let(ds, scattered, body))
    }
    /// The dimensions from `k` up to `to` of a bag as those of an array.
    fn scatters(&mut self, bag: Term, k: usize, to: usize, size: &dyn Fn(&mut Self, usize) -> Term) -> Term {
        let n = size(self, k);
        let rows = self.b.term(Exp::BagScatter(n, bag));
        if k + 1 == to {
            return rows;
        }
        let row = rows.ty().elem().cloned().unwrap_or(Type::unit());
        let row = self.b.fresh(row, "d");
        let inside = self.b.var(row);
        let inside = self.scatters(inside, k + 1, to, size);
        let each = self.b.term(Exp::Lam(row, inside));
        self.b.map(each, vec![rows])
    }
    /// The first `k` dimensions of an array as bags.
    fn bags(&mut self, array: Term, k: usize) -> Term {
        let rows = match array.ty().elem().cloned() {
            Some(row) if k > 1 => {
                let row = self.b.fresh(row, "d");
                let inside = self.b.var(row);
                let inside = self.bags(inside, k - 1);
                let each = self.b.term(Exp::Lam(row, inside));
                self.b.map(each, vec![array])
            }
            _ => array,
        };
        let ds = self.b.fresh(rows.ty().clone(), "ds");
        let all = self.b.var(ds);
        let n = self.b.size(all.clone(), 0);
        let bag = self.whole_bag(n, all);
        self.b.term(Exp::Let(ds, rows, bag))
    }
    /// `array (iota n) ds`
    fn whole_bag(&mut self, n: Term, ds: Term) -> Term {
        let all = self.b.term(Exp::Iota(n));
        self.b.term(Exp::BagArray(all, ds))
    }
    /// `p.1.1 (array (iota n) (map (\d. d.1) ds)) || .. || p.k.1 (array (iota n) (map (\d. d.k) ds))`
    fn column_bags(&mut self, p: Var, k: usize, ds: Var) -> Term {
        let row = match &self.b.program.vars[ds].ty {
            Type::Array(row) => Type::clone(row),
            other => other.clone(),
        };
        let parts = (0..k).map(|i| {
            let column = self.b.lam("d", row.clone(), |b, d| {
                let d = b.var(d);
                b.term(Exp::SparseProj(d, i))
            });
            let ds = self.b.var(ds);
            let n = self.b.size(ds.clone(), 0);
            let column = self.b.map(column, vec![ds]);
            let bag = self.whole_bag(n, column);
            let back = self.part(p, i, 1);
            self.b.apply(back, [bag])
        });
        let parts = parts.collect();
        self.in_parallel(parts)
    }
}

/// How a reduction went: values, and the backpropagators of what combined them.
struct Tree {
    ty: Type,
    /// `tree -> t`
    root: FunId,
    /// `(tree, D2[t]) -> EVM G bag(D2[t])`
    spread: FunId,
}

impl Tree {
    /// The tree of a reduction of such elements, with such backpropagators, and what walks over it.
    fn declare(s: &mut Chad<'_>, element: &Type, back: &Type) -> Res<Tree> {
        let bar = s.bar(element)?;
        let env = s.cells.types();
        let count = s.b.program.types.len();
        let id = s.b.declare_type(&format!("reduction_{count}"));
        let ty = Type::Named(id);
        let variant = |name: &str, fields: Vec<Type>| Variant { name: name.into(), fields };
        let node = vec![ty.clone(), element.clone(), back.clone(), ty.clone()];
        s.b.define_type(
            id,
            vec![variant("leaf", vec![Type::I64, element.clone()]), variant("node", node.clone())],
        );
        let root_name = free_name(s.b.program, &format!("root_{count}"));
        let root = s.b.declare(&root_name, &[("tree", ty.clone())], element.clone(), None);
        let tree = s.b.params(root)[0];
        let whole = s.b.var(tree);
        let body = s.b.match_(whole, |b, _, fields| b.var(fields[1]));
        s.b.define(root, body);
        let spread_name = free_name(s.b.program, &format!("spread_{count}"));
        let result = Type::Evm(env.clone(), Arc::new(Type::bag(bar.clone())));
        let spread = s.b.declare(&spread_name, &[("tree", ty.clone()), ("d", bar.clone())], result, None);
        let params = s.b.params(spread);
        let at_leaf = {
            let (i, x) = (s.b.fresh(Type::I64, "i"), s.b.fresh(element.clone(), "x"));
            let (at, d) = (s.b.var(i), s.b.var(params[1]));
            let bag = s.b.term(Exp::BagOne(at, d));
            let body = s.b.term(Exp::EvmReturn(env.clone(), bag));
            Arm { params: vec![i, x], body }
        };
        let at_node = {
            let fields: Vec<Var> =
                node.iter().zip(["l", "x", "f", "r"]).map(|(t, hint)| s.b.fresh(t.clone(), hint)).collect();
            let (f, d) = (s.b.var(fields[2]), s.b.var(params[1]));
            let both = s.b.apply(f, [d]);
            let body = s.then(both, |s, ds| {
                let sides = [0, 3].into_iter().enumerate().map(|(side, field)| {
                    let (tree, ds) = (s.b.var(fields[field]), s.b.var(ds));
                    let d = s.b.term(Exp::SparseProj(ds, side));
                    s.b.call(spread, vec![tree, d])
                });
                let sides = sides.collect();
                let sides = s.b.term(Exp::EvmPar(sides));
                s.then(sides, |s, bags| {
                    let (a, b) = (component(&mut s.b, bags, 0), component(&mut s.b, bags, 1));
                    let sum = s.b.term(Exp::Plus(a, b));
                    let env = s.cells.types();
                    s.b.term(Exp::EvmReturn(env, sum))
                })
            });
            Arm { params: fields, body }
        };
        let whole = s.b.var(params[0]);
        let body = s.b.term(Exp::Match(whole, vec![at_leaf, at_node]));
        s.b.define(spread, body);
        Ok(Tree { ty, root, spread })
    }
}

/// The parameters and the body of a curried lambda of so many parameters.
fn lambda(f: &Term, params: usize) -> Option<(Vec<Var>, &Term)> {
    let (mut xs, mut body) = (Vec::new(), f);
    while xs.len() < params {
        let Exp::Lam(x, inner) = body.exp() else { return None };
        xs.push(*x);
        body = inner;
    }
    Some((xs, body))
}

/// For `map (\i. a[t]) is`, where `a` is a variable from outside: `a`, and `i` with `t`.
fn picks(f: &Term, arrays: &[Term]) -> Option<(Term, (Var, Term))> {
    let ([_], Exp::Lam(i, body)) = (arrays, f.exp()) else { return None };
    let Exp::Index(a, ix) = body.exp() else { return None };
    match (a.exp(), &ix[..]) {
        (Exp::Var(v), [t]) if v != i => Some((a.clone(), (*i, t.clone()))),
        _ => None,
    }
}
