//! The dual phase of array terms: a let-stack that computes the adjoints of all nodes, in reverse order.
//!
//! Source: MSc thesis, 3.4.4: Table 2 and the text after it; 2.8 and 2.9 of our notes, errata E1, E2, E2b, E5 and E6 corrected.
//!
//! Notation: as in `primal` · `d_n` the adjoint of node `n`, and `@` the sum of its contributions · `m <- u` contributes `u` to node `m` · `D(f)` of `expression` · `info_k` what `D(f)` says of the k-th array that `f` reads · `sh` the shape of `a_m`, `sh-` without its inner dimension
//!
//! Rules, before those of the arguments; each begins with `let d_n = @`:
//! ```text
//! use           nothing
//! avar a        what a is bound to <- d_n; d_n is stored
//! alet a = m in body    that of body, then that of m
//! atuple        m_k <- d_n.k
//! aproj m k     m <- d_n, at component k
//! reshape       m <- reshape sh d_n
//! replicate     m <- the sum of d_n over all dimensions that were inserted: of inner ones `sum`, of others permute (+) (zeros as a_m) (\i. (true, the kept components of i)) d_n
//! slice         m <- generate sh (\i. cond (i is in the slice) (d_n ! its place there) 0)
//! generate      let info = map (.1) (zipWith D(f) d_n tmp_n), stored                reads(info)
//! map           let both = zipWith D(f) d_n tmp_n    let info = map (.1) both       m <- map (.0) both, reads(info)
//! zipWith       the same                                                            m_1 <- map (.0.0) both, m_2 <- map (.0.1) both, reads(info)
//! sum           m <- replicate (All, .., the inner size) d_n
//! foldl f e     let before = scanl f e a_m without its last elements    let parts = zipWith (the partial derivatives of f) before a_m
//!               let slopes = zipWith (*) (map (.1) parts) (scanr (*) 1 (map (.0) parts) without its first elements)
//!               m <- zipWith (*) (d_n for each element of its row) slopes
//! foldl max e   let best = foldl (the better of two pairs) (e, -1) (each element with its place)     m <- generate sh (\i. cond (i is the place of the row's best) d_n 0)        (ours)
//! fold1 f       let before = scanl1 f a_m without its last elements     let parts = zipWith (the partial derivatives of f) before (a_m without its first elements)
//!               let slopes = zipWith (*) (1, then map (.1) parts) (scanr (*) 1 (map (.0) parts))
//!               m <- the same
//! backpermute   m <- permute (+) (zeros as a_m) (\x. (true, f x)) d_n
//! acond         m1 <- d_n, m2 <- d_n    let all = acond e (let .. in (s_1, empty)) (let .. in (empty, s_2))    and those of s_1 and s_2 again
//! scanl1 f      let parts = zipWith (the partial derivatives of f) (a_n without its last elements) (a_m without its first elements)              (ours)
//!               let sums = scanr (\((k, c), (k', c')). (k k', c + k c')) (1, 0) (each element's (the partial derivative of the next one by the state, d_n))
//!               m <- map (.1) sums, times (1, then map (.1) parts)
//! collectl f    let back = collectr (\(s, ((d, x), y)). D(f) (d + s.0.0, P(f) (x, y))) zeros (d_n without its first elements, a_n, a_m2)               (ours)
//!               m_1 <- (d_n, back.0.0) at each first element    let info = map (.1) back    m_2 <- map (.0.1) back, reads(info)
//! collectr f    the same from the other end                                                                                                           (ours)
//! iterate       let back = iterate e (\((b, acc ..), k). let j = e - 1 - k, a = a_n at j, the phases of u where it has the adjoint d_n at j + 1, and b, in (the adjoint of a, acc + what u gave ..)) zeros
//!               m <- d_n at 0, and back.0 at e      the others that u reads <- back.1 .. at e, stored                                                (ours)
//! scanl, scanr  none: `sequential` makes other terms of them
//! permute (+) a m2 f    m_1 <- d_n    m_2 <- generate sh (\i. let p = f i in cond p.0 (d_n ! p.1) 0)                                                         (ours)
//! permute max a m2 f    let win = permute min (\j. cond (a_m1 ! j = a_n ! j) -1 w) f' (the number of each element)                      (ours)   f' i: f i, if a_m2 ! i = a_n ! (f i).1;   w: the number of elements of m2
//!               m_1 <- generate (shape a_m1) (\j. cond (win ! j is -1 or w) (d_n ! j) 0)      m_2 <- generate sh (\i. let p = f i in cond (p.0 and win ! p.1 is the number of i) (d_n ! p.1) 0)
//! permute c     none, for other functions that combine: `sequential` makes other terms of them
//! reads         for each array a that f reads:  a <- permute (+) (zeros as a) (\j. (was it read, its index)) (map (its adjoint) info)
//! ```
//!
//! Differences from the paper:
//! 1. Nodes of a discrete type, and those without contributions, have no adjoint.
//! 2. `replicate` sums one dimension after the other, or permutes; the text brings the dimensions that were inserted inside, reshapes and sums once. The permutation reads in the order of memory.
//!
//! `row` is longer than other functions: an arm for each row.

use super::additions::{extremum, is_addition};
use super::contributions::{Contribution, Contributions, sum_contributions};
use super::folds::Components;
use super::label::{Key, Label};
use super::language::{AVar, Arr, ArrForm, Exp, Fun, Slice, Ty, arrs, made};
use super::primal::{Env, Lets, Pass, absent, here};
use super::zeros::{addition, gen_zero, lambda, map, map_projection, zero_value};
use pullback_prim::{Op, Prim, Scalar};

/// What the phase carries along.
pub(super) struct State<'s> {
    pub(super) map: &'s mut Contributions,
    pub(super) lets: &'s mut Lets,
    pub(super) stored: &'s mut Vec<AVar>,
}

impl Pass<'_> {
    /// The bindings of the adjoints of a term; `stored` are those that are read outside of the branch.
    pub(super) fn dual(
        &mut self,
        u: &Arr<Label>,
        env: &mut Env,
        map: &mut Contributions,
        lets: &mut Lets,
        stored: &mut Vec<AVar>,
    ) {
        // [accelerate.dual.alet]
        if let ArrForm::Let(bindings, body) = u.form() {
            for (a, v) in bindings {
                env.insert(a.clone(), Key::Node(*v.label()));
            }
            self.dual(body, env, map, lets, stored);
            return bindings.iter().rev().for_each(|(_, v)| self.dual(v, env, map, lets, stored));
        }
        let contributed = map.take(Key::Node(*u.label()));
        let is_constant = match u.form() {
            // [accelerate.dual.use]
            ArrForm::Use(..) => true,
            ArrForm::Var(a) => !env.contains_key(a),
            _ => false,
        };
        if contributed.is_empty() || is_constant || !u.ty().is_continuous() {
            return;
        }
        let value = self.values[u.label()].clone();
        let adjoint = sum_contributions(self.names, lets, &contributed, &value);
        let d = self.bind("d", adjoint, lets);
        self.row(u, &d, env, &mut State { map, lets, stored });
        match u.form() {
            ArrForm::Cond(..) => return,
            ArrForm::Iterate(_, _, m) => return self.dual(m, env, map, lets, stored),
            _ => {}
        }
        arrs(u.form()).into_iter().for_each(|m| self.dual(m, env, map, lets, stored));
    }

    /// The row of the table.
    fn row(&mut self, u: &Arr<Label>, d: &AVar, env: &mut Env, s: &mut State<'_>) {
        let (n, at) = (*u.label(), Arr::var(d));
        match u.form() {
            ArrForm::Use(..) | ArrForm::Let(..) => {}
            // [accelerate.dual.avar]
            ArrForm::Var(a) => {
                if let Some(key) = env.get(a) {
                    s.map.add(*key, Contribution::full(at));
                }
                s.stored.push(d.clone());
            }
            // [accelerate.dual.atuple]
            ArrForm::Tuple(ms) => {
                ms.iter().enumerate().for_each(|(k, m)| s.give(m, at.proj(k)));
            }
            // [accelerate.dual.aproj]
            ArrForm::Proj(m, k) => {
                let part = Contribution::Component(*k, Box::new(Contribution::full(at)));
                s.map.add(Key::Node(*m.label()), part);
            }
            // [accelerate.dual.reshape]
            ArrForm::Reshape(_, m) => {
                s.give(m, made(Arr::new(ArrForm::Reshape(self.shape(m), at))));
            }
            // [accelerate.dual.replicate]
            ArrForm::Replicate(slc, m) => {
                let sum = self.unreplicated(slc, d, m);
                s.give(m, sum);
            }
            // [accelerate.dual.slice]
            ArrForm::Slice(slc, m) => {
                let slc: Slice = slc.iter().map(|e| e.as_ref().map(|e| self.exp(e, env))).collect();
                let whole = self.unsliced(&slc, d, m);
                s.give(m, whole);
            }
            // [accelerate.dual.generate]
            ArrForm::Generate(..) => {
                let both = self.both(n, at);
                let info = map_projection(self.names, 1, both);
                self.reads(n, info, s);
            }
            // [accelerate.dual.map]
            ArrForm::Map(_, m) => {
                let both = self.both(n, at);
                let both = Arr::var(&self.bind("both", both, s.lets));
                let info = map_projection(self.names, 1, both.clone());
                self.reads(n, info, s);
                s.give(m, map_projection(self.names, 0, both));
            }
            // [accelerate.dual.zip_with]
            ArrForm::ZipWith(_, m1, m2) => {
                let both = self.both(n, at);
                let both = Arr::var(&self.bind("both", both, s.lets));
                let info = map_projection(self.names, 1, both.clone());
                self.reads(n, info, s);
                for (k, m) in [m1, m2].into_iter().enumerate() {
                    let elem = made(both.ty().array()).0.clone();
                    let f = lambda(self.names, "p", elem, |_, p| p.proj(0).proj(k));
                    s.map.add(Key::Node(*m.label()), Contribution::Whole(map(f, both.clone()), false));
                }
            }
            // [accelerate.dual.sum]
            ArrForm::Sum(m) => {
                let rows = self.for_each_element(d, m);
                s.give(m, rows);
            }
            // [accelerate.dual.foldl]
            ArrForm::Foldl(f, e, m) => {
                let (f, e) = (self.fun(f, env), self.exp(e, env));
                let elem = components(m);
                if let Some(op) = extremum(&f) {
                    let u = self.at_extremum((op, &e), d, (m, &elem), s.lets);
                    s.give(m, u);
                } else {
                    let slopes = self.slopes(&f, &e, m, &elem, s.lets);
                    self.folded(slopes, d, (m, &elem), s);
                }
            }
            // [accelerate.dual.fold1]
            ArrForm::Fold1(f, m) => {
                let f = self.fun(f, env);
                let elem = components(m);
                let slopes = self.slopes1(&f, m, &elem, s.lets);
                self.folded(slopes, d, (m, &elem), s);
            }
            ArrForm::Scanl(..) | ArrForm::Scanr(..) => {
                unreachable!("`sequential` leaves no scan with a first value that has an adjoint")
            }
            // [accelerate.dual.scanl1]
            ArrForm::Scanl1(f, m) => {
                let f = self.fun(f, env);
                let elem = components(m);
                let rows = self.scanned(&f, (u, d), (m, &elem), s.lets);
                s.give(m, rows);
            }
            // [accelerate.dual.collect]
            ArrForm::Collect(from, f, m1, m2) => {
                let f = self.fun(f, env);
                self.collected((*from, &f), (u, d), (m1, m2), s);
            }
            // [accelerate.dual.iterate]
            ArrForm::Iterate(e, step, m) => self.dual_iterate((e, step, m), (u, d), env, s),
            // [accelerate.dual.permute]
            ArrForm::Permute(c, target, f, m) => {
                let f = self.fun(f, env);
                if is_addition(c) {
                    s.give(target, at);
                    let u = self.unpermuted(&f, d, m);
                    s.give(m, u);
                } else if extremum(c).is_some() {
                    self.at_winners(&f, (u, d), (target, m), s);
                }
                // Of what is left nothing varies: `sequential` has made other terms of the rest.
            }
            // [accelerate.dual.backpermute]
            ArrForm::Backpermute(_, f, m) => {
                let f = self.fun(f, env);
                let body = Exp::tuple(vec![Exp::bool(true), f.body]);
                let to = Fun { param: f.param, body };
                let zeros = gen_zero(self.names, &self.values[m.label()]);
                s.give(m, self.scattered(zeros, to, at));
            }
            // [accelerate.dual.acond]
            ArrForm::Cond(c, m1, m2) => self.dual_cond((c, m1, m2), at, env, s),
        }
    }

    // [accelerate.dual.acond]
    fn dual_cond(
        &mut self,
        (c, m1, m2): (&Exp, &Arr<Label>, &Arr<Label>),
        at: Arr,
        env: &mut Env,
        s: &mut State<'_>,
    ) {
        let c = self.exp(c, env);
        let before = s.map.counts();
        s.give(m1, at.clone());
        s.give(m2, at);
        let (mut b1, mut s1, mut b2, mut s2) = (Lets::new(), Vec::new(), Lets::new(), Vec::new());
        self.dual(m1, env, s.map, &mut b1, &mut s1);
        self.dual(m2, env, s.map, &mut b2, &mut s2);
        s.map.leave_branch(&before);
        let then = Arr::tuple(vec![here(&s1), absent(self.names, &s2)]);
        let other = Arr::tuple(vec![absent(self.names, &s1), here(&s2)]);
        let (then, other) = (made(Arr::lets(b1, then)), made(Arr::lets(b2, other)));
        let all = self.bind("all", made(Arr::new(ArrForm::Cond(c, then, other))), s.lets);
        self.restore(s.lets, &s1, &Arr::var(&all).proj(0));
        self.restore(s.lets, &s2, &Arr::var(&all).proj(1));
        s.stored.extend(s1.into_iter().chain(s2));
    }

    /// `shape a_m`
    pub(super) fn shape(&self, m: &Arr<Label>) -> Exp {
        made(Exp::shape(&self.values[m.label()]))
    }

    /// `zipWith D(f) d_n tmp_n`
    fn both(&mut self, n: Label, at: Arr) -> Arr {
        let (split, tmp) = &self.splits[&n];
        made(Arr::new(ArrForm::ZipWith(split.dual.clone(), at, Arr::var(tmp))))
    }

    /// What each element of the argument of a permutation is added to.
    fn unpermuted(&mut self, f: &Fun, d: &AVar, m: &Arr<Label>) -> Arr {
        let elem = made(d.ty().array()).0.clone();
        let p = self.names.fresh("p", f.body.ty().clone());
        let read = made(Exp::index(d, Exp::var(&p).proj(1)));
        let chosen = made(Exp::cond(Exp::var(&p).proj(0), read, zero_value(&elem)));
        let body = made(Exp::lets(vec![(p, f.body.clone())], chosen));
        let back = Fun { param: f.param.clone(), body };
        made(Arr::new(ArrForm::Generate(self.shape(m), back)))
    }

    /// `permute (+) zeros to values`
    fn scattered(&mut self, zeros: Arr, to: Fun, values: Arr) -> Arr {
        let elem = made(values.ty().array()).0.clone();
        made(Arr::new(ArrForm::Permute(addition(self.names, &elem), zeros, to, values)))
    }

    fn reads(&mut self, n: Label, info: Arr, s: &mut State<'_>) {
        let arrays = self.splits[&n].0.reads.clone();
        self.reads_of(&arrays, info, s);
    }

    // [accelerate.dual.reads]
    pub(super) fn reads_of(&mut self, arrays: &[AVar], info: Arr, s: &mut State<'_>) {
        if arrays.iter().all(|a| !self.keys.contains_key(a)) {
            return;
        }
        let info = self.bind("info", info, s.lets);
        s.stored.push(info.clone());
        for (k, a) in arrays.iter().enumerate() {
            let Some(key) = self.keys.get(a).copied() else { continue };
            let (elem, rank) = made(info.ty().array());
            let place = |_: &mut _, j: Exp| {
                let of = made(Exp::index(&info, j)).proj(k);
                Exp::tuple(vec![of.proj(2), of.proj(1)])
            };
            let to = lambda(self.names, "j", Ty::index(rank), place);
            let adjoint = lambda(self.names, "p", elem.clone(), |_, p| p.proj(k).proj(0));
            let values = map(adjoint, Arr::var(&info));
            let zeros = gen_zero(self.names, a);
            let sum = self.scattered(zeros, to, values);
            s.map.add(key, Contribution::full(sum));
        }
    }

    /// The sum over the dimensions that were inserted: of inner ones, one after the other; of others, each element is added where it came from, in the order of memory.
    fn unreplicated(&mut self, slc: &Slice, d: &AVar, m: &Arr<Label>) -> Arr {
        let kept: Vec<usize> = (0..slc.len()).filter(|k| slc[*k].is_none()).collect();
        if kept.iter().copied().eq(0..kept.len()) {
            return (kept.len()..slc.len()).fold(Arr::var(d), |u, _| made(Arr::new(ArrForm::Sum(u))));
        }
        let place = |_: &mut _, i: Exp| {
            let at = kept.iter().map(|q| i.proj(*q)).collect();
            Exp::tuple(vec![Exp::bool(true), Exp::tuple(at)])
        };
        let to = lambda(self.names, "i", Ty::index(slc.len()), place);
        let zeros = gen_zero(self.names, &self.values[m.label()]);
        self.scattered(zeros, to, Arr::var(d))
    }

    /// An array of the shape of `a_m` with the adjoint in the slice.
    fn unsliced(&mut self, slc: &Slice, d: &AVar, m: &Arr<Label>) -> Arr {
        let elem = made(d.ty().array()).0.clone();
        let body = |_: &mut _, i: Exp| {
            let same = |(q, e): (usize, &Option<Exp>)| {
                let e = e.as_ref()?;
                Some(made(Exp::prim(Prim::Op(Op::Eq, Scalar::I64), vec![i.proj(q), e.clone()])))
            };
            let both = |x, y| made(Exp::prim(Prim::Op(Op::And, Scalar::Bool), vec![x, y]));
            let is_inside = slc.iter().enumerate().filter_map(same).reduce(both);
            let kept = (0..slc.len()).filter(|q| slc[*q].is_none());
            let here = made(Exp::index(d, Exp::tuple(kept.map(|q| i.proj(q)).collect())));
            match is_inside {
                Some(c) => made(Exp::cond(c, here, zero_value(&elem))),
                None => here,
            }
        };
        let f = lambda(self.names, "i", Ty::index(slc.len()), body);
        made(Arr::new(ArrForm::Generate(self.shape(m), f)))
    }
}

/// The continuous components of the elements of a fold or scan that `sequential` has left.
fn components(m: &Arr<Label>) -> Components {
    match Components::new(made(m.ty().array()).0) {
        Some(of) => of,
        None => unreachable!("`sequential` leaves no fold or scan of other elements"),
    }
}

impl State<'_> {
    /// A contribution of the full shape to this node.
    pub(super) fn give(&mut self, m: &Arr<Label>, u: Arr) {
        self.map.add(Key::Node(*m.label()), Contribution::full(u));
    }
    /// One that may be smaller than the node.
    pub(super) fn give_part(&mut self, m: &Arr<Label>, u: Arr) {
        self.map.add(Key::Node(*m.label()), Contribution::Whole(u, false));
    }
}
