//! What is done for one element or iteration after the other: loops and array functions.

use super::super::effects::bound;
use super::super::structure::{flagged, has_sizes};
use super::{Forward, Res, Stage};
use crate::chad::component;
use pullback_lambda::{Builder, Exp, FunId, Loop, LoopAttrs, LoopForm, Soac, Term, Type, Var};
use pullback_prim::{Op, Scalar};

impl<C: Stage> Forward<'_, C> {
    // --- loops ---

    pub(super) fn loop_(&mut self, l: &Loop) -> Res<Var> {
        let init = self.term(&l.init)?;
        match &l.form {
            LoopForm::For(k, n) => {
                let n = self.term(n)?;
                self.iterate(n, init, |s, i, x| {
                    s.vars.insert(*k, i);
                    s.vars.insert(l.state, x);
                    s.term(&l.body)
                })
            }
            LoopForm::While(c) => self.iterate_while(
                init,
                |s, x| {
                    s.vars.insert(l.state, x);
                    s.term(c)
                },
                |s, x| {
                    s.vars.insert(l.state, x);
                    s.term(&l.body)
                },
            ),
        }
    }
    /// `init` after `body` for every number below `n`; `body` is translated once.
    fn iterate(&mut self, n: Var, init: Var, body: impl FnOnce(&mut Self, Var, Var) -> Res<Var>) -> Res<Var> {
        let scalar = self.b.program.vars[n].ty.scalar().unwrap_or(Scalar::I64);
        let i = self.b.fresh(scalar.into(), "i");
        let first = self.tuple(&[init, self.state]);
        let pair = self.b.program.vars[first].ty.clone();
        let p = self.b.fresh(pair.clone(), "s");
        let body = self.block(|s| {
            s.state = s.part(p, 1);
            let x = s.part(p, 0);
            body(s, i, x)
        })?;
        let first = self.b.var(first);
        if !self.threads.io {
            let form = LoopForm::For(i, self.b.var(n));
            let all = Loop { state: p, init: first, form, body, attrs: LoopAttrs::default() };
            let all = self.b.term(Exp::Loop(all));
            return Ok(self.run(all, "r"));
        }
        let step = self.b.term(Exp::Lam(p, body));
        let step = self.b.term(Exp::Lam(i, step));
        let repeat = self.repeat(scalar, &pair);
        let zero = self.b.constant(scalar.zero());
        let n = self.b.var(n);
        let all = self.b.call(repeat, vec![step, zero, n, first]);
        Ok(self.run(all, "r"))
    }
    /// `repeat(f, i, n, x) = if i < n then f i x >>= \x. repeat(f, i + 1, n, x) else return x`
    fn repeat(&mut self, scalar: Scalar, t: &Type) -> FunId {
        if let Some(known) = self.repeats.get(&(scalar, t.clone())) {
            return *known;
        }
        let (count, io) = (Type::Scalar(scalar), Type::io(t.clone()));
        let step = Type::funs([count.clone(), t.clone()], io.clone());
        let name = format!("{}_repeat_{}", C::ID.replace('-', "_"), self.b.program.funs.len());
        let params = [("f", step), ("i", count.clone()), ("n", count), ("x", t.clone())];
        let g = self.b.declare(&name, &params, io, None);
        self.repeats.insert((scalar, t.clone()), g);
        let v = self.b.params(g);
        let again = self.b.lam("x", t.clone(), |b, x| {
            let (f, i, n, x) = (b.var(v[0]), b.var(v[1]), b.var(v[2]), b.var(x));
            let one = b.constant(scalar.one());
            let i = b.op2(Op::Add, i, one);
            b.call(g, vec![f, i, n, x])
        });
        let (f, i, n, x) = (self.b.var(v[0]), self.b.var(v[1]), self.b.var(v[2]), self.b.var(v[3]));
        let go = self.b.op2(Op::Lt, i.clone(), n);
        let first = self.b.apply(f, [i, x.clone()]);
        let then = self.b.term(Exp::IoBind(first, again));
        let done = self.b.term(Exp::IoReturn(x));
        let body = self.b.if_(go, then, done);
        self.b.define(g, body);
        g
    }
    /// `init` after `body` as long as the condition holds. What the condition makes for derivatives is dropped.
    fn iterate_while(
        &mut self,
        init: Var,
        condition: impl FnOnce(&mut Self, Var) -> Res<Var>,
        body: impl FnOnce(&mut Self, Var) -> Res<Var>,
    ) -> Res<Var> {
        let first = self.tuple(&[init, self.state]);
        let pair = self.b.program.vars[first].ty.clone();
        let p = self.b.fresh(pair.clone(), "s");
        let first = self.b.var(first);
        if !self.threads.io {
            let condition = self.scope(|s| {
                s.state = s.part(p, 1);
                let x = s.part(p, 0);
                condition(s, x)
            })?;
            let body = self.block(|s| {
                s.state = s.part(p, 1);
                let x = s.part(p, 0);
                body(s, x)
            })?;
            let form = LoopForm::While(condition);
            let all = Loop { state: p, init: first, form, body, attrs: LoopAttrs::default() };
            let all = self.b.term(Exp::Loop(all));
            return Ok(self.run(all, "r"));
        }
        // `step p = .. if go then body >>= \p. return (true, p) else return (false, p)`
        let step = self.around(|s| {
            s.state = s.part(p, 1);
            let x = s.part(p, 0);
            let go = condition(s, x)?;
            let again = s.block(|s| body(s, x))?;
            let returned = |b: &mut Builder<'_>, go: bool, p: Var| {
                let p = b.var(p);
                let both = flagged(b, go, vec![p]);
                b.term(Exp::IoReturn(both))
            };
            let on = bound(&mut s.b, "p", again, |b, next| returned(b, true, next));
            let now = s.tuple(&[x, s.state]);
            let off = returned(&mut s.b, false, now);
            let go = s.b.var(go);
            // The pair may be one of the bindings, which stand around all of it.
            Ok(s.b.if_(go, on, off))
        })?;
        let step = self.b.term(Exp::Lam(p, step));
        let repeat = self.repeat_while(&pair);
        let all = self.b.call(repeat, vec![step, first]);
        Ok(self.run(all, "r"))
    }
    /// `repeat(f, x) = f x >>= \r. if r.0 then repeat(f, r.1) else return r.1`
    fn repeat_while(&mut self, t: &Type) -> FunId {
        if let Some(known) = self.repeats_while.get(t) {
            return *known;
        }
        let io = Type::io(t.clone());
        let flagged = Type::tuple([Type::BOOL, t.clone()]);
        let step = Type::fun(t.clone(), Type::io(flagged.clone()));
        let name = format!("{}_while_{}", C::ID.replace('-', "_"), self.b.program.funs.len());
        let g = self.b.declare(&name, &[("f", step), ("x", t.clone())], io, None);
        self.repeats_while.insert(t.clone(), g);
        let v = self.b.params(g);
        let rest = self.b.lam("r", flagged, |b, r| {
            let (go, x) = (component(b, r, 0), component(b, r, 1));
            let f = b.var(v[0]);
            let again = b.call(g, vec![f, x.clone()]);
            let done = b.term(Exp::IoReturn(x));
            b.if_(go, again, done)
        });
        let (f, x) = (self.b.var(v[0]), self.b.var(v[1]));
        let first = self.b.apply(f, [x]);
        let body = self.b.term(Exp::IoBind(first, rest));
        self.b.define(g, body);
        g
    }

    // --- array functions ---

    /// The array of `body` for every number below `n`; `body` is translated once.
    ///
    /// Without numbers it is a map over nothing, so that arrays in it have the sizes that `body` would give them; whatever it is made of, its size is
    /// `n`: this can be seen where nothing is run.
    pub(super) fn build(
        &mut self,
        n: Var,
        element: &Type,
        body: impl FnOnce(&mut Self, Var) -> Res<Var>,
    ) -> Res<Var> {
        let none = self.b.term(Exp::ArrayLit(element.clone(), Vec::new()));
        let built = if !self.threads.io && !has_sizes(element) {
            let empty = self.emit(none, "a");
            self.iterate(n, empty, |s, i, a| {
                let y = body(s, i)?;
                Ok(s.put(a, i, n, y))
            })?
        } else {
            let (i, before) = (self.b.fresh(Type::I64, "i"), self.b.fresh(self.threads.state.clone(), "id"));
            let step = self.block_from(before, |s| body(s, i))?;
            let step = self.b.term(Exp::Lam(before, step));
            let step = self.b.term(Exp::Lam(i, step));
            let step = self.emit(step, "step");
            let empty = if has_sizes(element) { self.empty(step) } else { none };
            if self.threads.io {
                self.filled(n, step, empty)?
            } else {
                let empty = self.emit(empty, "a");
                self.iterate(n, empty, |s, i, a| {
                    let y = s.stepped(step, i);
                    Ok(s.put(a, i, n, y))
                })?
            }
        };
        Ok(self.of_size(n, built))
    }
    /// `step i`, in the current state.
    fn stepped(&mut self, step: Var, i: Var) -> Var {
        let (f, i, state) = (self.b.var(step), self.b.var(i), self.b.var(self.state));
        let called = self.b.apply(f, [i, state]);
        self.run(called, "y")
    }
    /// `map step []`
    fn empty(&mut self, step: Var) -> Term {
        let state = self.state;
        let io = self.threads.io;
        let each = self.b.lam("i", Type::I64, |b, i| {
            let (f, i, state) = (b.var(step), b.var(i), b.var(state));
            let called = b.apply(f, [i, state]);
            let pair = if io { b.term(Exp::IoRun(called)) } else { called };
            b.proj(pair, 0)
        });
        let zero = self.b.i64(0);
        let none = self.b.term(Exp::Iota(zero));
        self.b.map(each, vec![none])
    }
    /// A mutable array full of `step 0`, where the others are put.
    fn filled(&mut self, n: Var, step: Var, empty: Term) -> Res<Var> {
        let filled = self.block(|s| {
            let zero = s.b.i64(0);
            let zero = s.emit(zero, "i");
            let y = s.stepped(step, zero);
            let (count, y) = (s.b.var(n), s.b.var(y));
            let cells = s.b.term(Exp::MutNew(count, y));
            let cells = s.perform(cells, "cells");
            let unit = s.b.unit();
            let unit = s.emit(unit, "u");
            s.iterate(n, unit, |s, i, unit| {
                let others = s.block(|s| {
                    let y = s.stepped(step, i);
                    let (cells, at, y) = (s.b.var(cells), s.b.var(i), s.b.var(y));
                    let set = s.b.term(Exp::MutSet(cells, at, y));
                    Ok(s.perform(set, "u"))
                })?;
                let none = s.block(|_| Ok(unit))?;
                let (i, zero) = (s.b.var(i), s.b.i64(0));
                let first = s.b.op2(Op::Eq, i, zero);
                let either = s.b.if_(first, none, others);
                Ok(s.run(either, "u"))
            })?;
            let cells = s.b.var(cells);
            let frozen = s.b.term(Exp::MutFreeze(cells));
            Ok(s.perform(frozen, "a"))
        })?;
        let none = self.block(|s| Ok(s.emit(empty, "a")))?;
        let (count, zero) = (self.b.var(n), self.b.i64(0));
        let is_empty = self.b.op2(Op::Le, count, zero);
        let either = self.b.if_(is_empty, none, filled);
        Ok(self.run(either, "a"))
    }
    /// An array of `n` elements, which says so.
    fn of_size(&mut self, n: Var, array: Var) -> Var {
        let (n, array) = (self.b.var(n), self.b.var(array));
        let said = self.b.term(Exp::Reshape { shape: vec![n], from: 1, array });
        self.emit(said, "a")
    }
    /// `if i == 0 then replicate n y else a with [i] = y`: there is no element before the first.
    fn put(&mut self, a: Var, i: Var, n: Var, y: Var) -> Var {
        let (at, zero, n, first) = (self.b.var(i), self.b.i64(0), self.b.var(n), self.b.var(y));
        let is_first = self.b.op2(Op::Eq, at.clone(), zero);
        let all = self.b.term(Exp::Replicate(n, first));
        let (a, y) = (self.b.var(a), self.b.var(y));
        let one = self.b.term(Exp::Update(a, vec![at], y));
        let either = self.b.if_(is_first, all, one);
        self.emit(either, "a")
    }
    pub(super) fn element(&mut self, a: Var, i: Var) -> Var {
        let (a, i) = (self.b.var(a), self.b.var(i));
        let e = self.b.index(a, vec![i]);
        self.emit(e, "e")
    }
    pub(super) fn size(&mut self, a: Var) -> Var {
        let a = self.b.var(a);
        let n = self.b.size(a, 0);
        self.emit(n, "n")
    }
    pub(super) fn soac(&mut self, soac: &Soac) -> Res<Var> {
        match soac {
            // [dual.map]  D[map f xs] i = build (size xs) (\k. D[f] xs[k])
            Soac::Map { f, arrays } => {
                let f_dual = self.function_operand(f)?;
                let mut arrays_dual = arrays.iter().map(|a| self.term(a)).collect::<Res<Vec<Var>>>()?;
                let result = (0..arrays.len()).try_fold(f.ty().clone(), |t, _| match t {
                    Type::Fun(_, r) => Some(Type::clone(&r)),
                    _ => None,
                });
                let element = self.ty(&result.unwrap_or(Type::unit()));
                let n = self.size(arrays_dual[0]);
                for a in &mut arrays_dual[1..] {
                    let m = self.size(*a);
                    let (left, right, array) = (self.b.var(n), self.b.var(m), self.b.var(*a));
                    let checked = self.b.same_size(left, right, "map", array);
                    *a = self.emit(checked, "a");
                }
                self.build(n, &element, |s, i| {
                    let args: Vec<Var> = arrays_dual.iter().map(|a| s.element(*a, i)).collect();
                    s.applied(&f_dual, &args)
                })
            }
            // [dual.reduce]  D[reduce op e xs] i = loop x = D[e] for k < size xs do D[op] x xs[k]
            Soac::Reduce { op, neutral, array, .. } => {
                let op = self.function_operand(op)?;
                let (init, xs) = (self.term(neutral)?, self.term(array)?);
                let n = self.size(xs);
                self.iterate(n, init, |s, i, x| {
                    let e = s.element(xs, i);
                    s.applied(&op, &[x, e])
                })
            }
            // [dual.scan]  the same, and every x is kept
            Soac::Scan { op, neutral, array } => {
                let op = self.function_operand(op)?;
                let (init, xs) = (self.term(neutral)?, self.term(array)?);
                let n = self.size(xs);
                let (zero, neutral) = (self.b.i64(0), self.b.var(init));
                let empty = self.b.term(Exp::Replicate(zero, neutral));
                let empty = self.emit(empty, "a");
                let init = self.tuple(&[empty, init]);
                let both = self.iterate(n, init, |s, i, p| {
                    let (a, x) = (s.part(p, 0), s.part(p, 1));
                    let e = s.element(xs, i);
                    let y = s.applied(&op, &[x, e])?;
                    let a = s.put(a, i, n, y);
                    Ok(s.tuple(&[a, y]))
                })?;
                let all = self.part(both, 0);
                Ok(self.of_size(n, all))
            }
            // [dual.hist]  D[hist op dst ix vs] i = loop a = D[dst] for k < size ix do a with [ix[k]] = D[op] a[ix[k]] vs[k], where there is such a place
            Soac::Hist { op, dst, indices, values, neutral: _ } => {
                let op = self.function_operand(op)?;
                let (dst, ix, vs) = (self.term(dst)?, self.term(indices)?, self.term(values)?);
                let (n, places) = (self.size(ix), self.size(dst));
                self.iterate(n, dst, |s, i, a| {
                    let k = s.element(ix, i);
                    let then = s.block(|s| {
                        let (old, v) = (s.element(a, k), s.element(vs, i));
                        let y = s.applied(&op, &[old, v])?;
                        let (a, k, y) = (s.b.var(a), s.b.var(k), s.b.var(y));
                        let new = s.b.term(Exp::Update(a, vec![k], y));
                        Ok(s.emit(new, "a"))
                    })?;
                    let otherwise = s.block(|_| Ok(a))?;
                    let (at, zero, places) = (s.b.var(k), s.b.i64(0), s.b.var(places));
                    let (low, high) = (s.b.op2(Op::Le, zero, at.clone()), s.b.op2(Op::Lt, at, places));
                    let inside = s.b.op2(Op::And, low, high);
                    let either = s.b.if_(inside, then, otherwise);
                    Ok(s.run(either, "a"))
                })
            }
            // [dual.scatter]  as it is made of its parts
            Soac::Scatter { dst, indices, values } => {
                let (dst, indices, values) =
                    (self.operand(dst)?, self.operand(indices)?, self.operand(values)?);
                let all = self.b.term(Exp::Soac(Soac::Scatter { dst, indices, values }));
                Ok(self.emit(all, "a"))
            }
        }
    }
}
