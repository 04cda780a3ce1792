//! Folds, scans and permutations that have no rule, as terms that have one: before the phases, of what varies.
//!
//! The text refuses them; the rules are ours. A function is *plain* if it reads no array that varies, and its values are flat tuples with one float type. Then the parallel rules apply; else a loop takes their place.
//!
//! Rules, where `u` has inner rows of `n` elements, `e ++ u` has `e` before each row, and `back u` has the rows from the other end:
//! ```text
//! foldl f e u    f plain, e reads nothing that varies: itself.   f plain: fold1 f (e ++ u).   else: the last elements of collectl f e u
//! fold1 f u      f plain: itself.                                else: the last elements of collectl f (the first elements of u) (the others)
//! scanl f e u    f plain: scanl1 f (e ++ u).                     else: collectl f e u
//! scanr f e u    f plain: back (scanl1 f' (e ++ back u)).        else: collectr f' e u                                                         f' (x, y) = f (y, x)
//! scanl1 f u     f plain: itself.                                else: the first n elements of collectl f (the first elements of u) (the others)
//! permute c d f u    c adds, c is the smaller or larger number that takes the first of equal ones, or nothing varies: itself.   else: `sorted`, a scan of each place's elements
//! ```
//!
//! Guarantee: the value is the same. A term of discrete elements stays.

use super::additions::{extremum, is_addition};
use super::folds::Components;
use super::language::{
    AVar, Arr, ArrForm, Direction, Exp, ExpForm, Fun, Names, Program, Ty, arrs, exps, funs, made,
};
use super::rename::with_arrs;
use super::rows::{element_of_rows, inner_size, integer, moved, outer_shape, shortened, with_last};
use super::sorted::Sorted;
use super::zeros::{lambda, zero_value};
use pullback_prim::Op;
use std::collections::BTreeSet;

/// The body of a program, with such folds, scans and permutations only. Cost: the size of the program, times the depth of its lets.
pub(super) fn sequential(program: &Program, names: &mut Names) -> Arr {
    let mut pass = Sequential { names, varying: BTreeSet::new() };
    pass.bound(&program.param, true);
    pass.arr(&program.body)
}

struct Sequential<'n> {
    names: &'n mut Names,
    /// The arrays whose adjoint may be asked for.
    varying: BTreeSet<AVar>,
}

impl Sequential<'_> {
    fn bound(&mut self, a: &AVar, varies: bool) {
        if varies && a.ty().is_continuous() {
            self.varying.insert(a.clone());
        }
    }

    fn varies(&self, u: &Arr) -> bool {
        let here = match u.form() {
            ArrForm::Var(a) => self.varying.contains(a),
            form => {
                exps(form).into_iter().any(|e| self.reads(e))
                    || funs(form).into_iter().any(|f| self.reads(&f.body))
            }
        };
        u.ty().is_continuous() && (here || arrs(u.form()).into_iter().any(|v| self.varies(v)))
    }

    /// Whether an expression reads an array that varies.
    fn reads(&self, e: &Exp) -> bool {
        match e.form() {
            ExpForm::Const(_) | ExpForm::Var(_) | ExpForm::Shape(_) => false,
            ExpForm::Let(bindings, e) => bindings.iter().any(|(_, u)| self.reads(u)) || self.reads(e),
            ExpForm::Tuple(es) | ExpForm::Prim(_, es) => es.iter().any(|e| self.reads(e)),
            ExpForm::Proj(e, _) => self.reads(e),
            ExpForm::Index(a, e) => self.varying.contains(a) || self.reads(e),
            ExpForm::Cond(c, t, e) => [c, t, e].into_iter().any(|e| self.reads(e)),
        }
    }

    fn is_plain(&self, f: &Fun) -> bool {
        !self.reads(&f.body) && Components::new(f.body.ty()).is_some()
    }

    fn arr(&mut self, u: &Arr) -> Arr {
        if let ArrForm::Let(bindings, body) = u.form() {
            let mut all = Vec::new();
            for (a, v) in bindings {
                let v = self.arr(v);
                let varies = self.varies(&v);
                self.bound(a, varies);
                all.push((a.clone(), v));
            }
            return made(Arr::lets(all, self.arr(body)));
        }
        if let ArrForm::Iterate(_, step, _) = u.form() {
            self.bound(&step.state, true);
        }
        let same = made(Arr::new(with_arrs(u.form(), &mut |v| self.arr(v))));
        if same.ty().is_continuous() { self.row(&same) } else { same }
    }

    fn row(&mut self, same: &Arr) -> Arr {
        match same.form() {
            // [accelerate.sequential.foldl]
            ArrForm::Foldl(f, e, _) if self.is_plain(f) && !self.reads(e) => same.clone(),
            ArrForm::Foldl(f, e, u) if self.is_plain(f) => {
                let all = self.with_first(e, u);
                made(Arr::new(ArrForm::Fold1(f.clone(), all)))
            }
            ArrForm::Foldl(f, e, u) => self.with(u, |this, a| {
                let all = this.states(Direction::Left, f.clone(), e, a);
                this.last(all, inner_size(a))
            }),
            // [accelerate.sequential.fold1]
            ArrForm::Fold1(f, u) if !self.is_plain(f) => self.with(u, |this, a| {
                let rest = shortened(this.names, a, 1, false);
                let first = element_of_rows(a, Exp::i64(0));
                let all = made(Arr::new(ArrForm::Collect(Direction::Left, f.clone(), first, rest)));
                this.last(all, moved(inner_size(a), -1))
            }),
            // [accelerate.sequential.scanl]
            ArrForm::Scanl(f, e, u) if self.is_plain(f) => {
                let all = self.with_first(e, u);
                made(Arr::new(ArrForm::Scanl1(f.clone(), all)))
            }
            ArrForm::Scanl(f, e, u) => self.with(u, |this, a| this.states(Direction::Left, f.clone(), e, a)),
            // [accelerate.sequential.scanr]
            ArrForm::Scanr(f, e, u) if self.is_plain(f) => {
                let u = self.with(u, |this, a| this.reversed(a));
                let all = self.with_first(e, &u);
                let f = self.flipped(f);
                let all = made(Arr::new(ArrForm::Scanl1(f, all)));
                self.with(&all, |this, a| this.reversed(a))
            }
            ArrForm::Scanr(f, e, u) => {
                let f = self.flipped(f);
                self.with(u, |this, a| this.states(Direction::Right, f, e, a))
            }
            // [accelerate.sequential.scanl1]
            ArrForm::Scanl1(f, u) if !self.is_plain(f) => self.with(u, |this, a| this.scanl1(f, a)),
            // [accelerate.sequential.permute]
            ArrForm::Permute(c, d, f, u) if !is_addition(c) && extremum(c).is_none() && self.varies(same) => {
                let sorted = Sorted::new(self.names, c, d, f, u);
                let scan = ArrForm::Scanl1(sorted.operator.clone(), Arr::var(&sorted.steps));
                let states = self.row(&made(Arr::new(scan)));
                sorted.read(self.names, states)
            }
            _ => same.clone(),
        }
    }

    /// `let a = u in ..`
    fn with(&mut self, u: &Arr, body: impl FnOnce(&mut Self, &AVar) -> Arr) -> Arr {
        if let ArrForm::Var(a) = u.form() {
            return body(self, a);
        }
        let a = self.names.fresh("rows", u.ty().clone());
        let body = body(self, &a);
        made(Arr::lets(vec![(a, u.clone())], body))
    }

    fn generate(&mut self, shape: Exp, f: impl FnOnce(Exp) -> Exp) -> Arr {
        let f = lambda(self.names, "i", shape.ty().clone(), |_, i| f(i));
        made(Arr::new(ArrForm::Generate(shape, f)))
    }

    /// `collectl f e a`, `collectr f e a`
    fn states(&mut self, from: Direction, f: Fun, e: &Exp, a: &AVar) -> Arr {
        let first = self.generate(outer_shape(a), |_| e.clone());
        made(Arr::new(ArrForm::Collect(from, f, first, Arr::var(a))))
    }

    /// The element of each row at this place.
    fn last(&mut self, u: Arr, at: Exp) -> Arr {
        self.with(&u, |_, a| element_of_rows(a, at))
    }

    /// `e ++ u`
    fn with_first(&mut self, e: &Exp, u: &Arr) -> Arr {
        self.with(u, |this, a| {
            let shape = with_last(&made(Exp::shape(a)), moved(inner_size(a), 1));
            this.generate(shape, |i| {
                let k = last_of(&i);
                let is_first = integer(Op::Eq, k.clone(), Exp::i64(0));
                let element = made(Exp::index(a, with_last(&i, moved(k, -1))));
                made(Exp::cond(is_first, e.clone(), element))
            })
        })
    }

    /// `back a`
    fn reversed(&mut self, a: &AVar) -> Arr {
        let shape = made(Exp::shape(a));
        let from_end = |i: &Exp| integer(Op::Sub, moved(inner_size(a), -1), last_of(i));
        let f = lambda(self.names, "i", shape.ty().clone(), |_, i| with_last(&i, from_end(&i)));
        made(Arr::new(ArrForm::Backpermute(shape, f, Arr::var(a))))
    }

    /// `\(x, y). f (y, x)`
    fn flipped(&mut self, f: &Fun) -> Fun {
        lambda(self.names, "p", f.param.ty().clone(), |_, p| {
            let turned = Exp::tuple(vec![p.proj(1), p.proj(0)]);
            made(Exp::lets(vec![(f.param.clone(), turned)], f.body.clone()))
        })
    }

    /// Rows may be empty.
    fn scanl1(&mut self, f: &Fun, a: &AVar) -> Arr {
        let elem = f.body.ty().clone();
        let first = self.generate(outer_shape(a), |i| {
            let is_there = integer(Op::Lt, Exp::i64(0), inner_size(a));
            let rank = i.ty().rank().unwrap_or(0);
            let at = Exp::tuple((0..rank).map(|k| i.proj(k)).chain([Exp::i64(0)]).collect());
            made(Exp::cond(is_there, made(Exp::index(a, at)), zero_value(&elem)))
        });
        let rest = shortened(self.names, a, 1, false);
        let all = made(Arr::new(ArrForm::Collect(Direction::Left, f.clone(), first, rest)));
        let cut = lambda(self.names, "p", Ty::Tuple(vec![elem.clone(), elem]), |_, p| p.proj(0));
        made(Arr::new(ArrForm::ZipWith(cut, all, Arr::var(a))))
    }
}

/// The last component of an index.
fn last_of(i: &Exp) -> Exp {
    i.proj(i.ty().rank().unwrap_or(1) - 1)
}
