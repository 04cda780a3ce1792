//! The whole: arguments on the way in, numbers of the result and cotangents on the way out.

use super::super::structure::cotangent;
use super::{Forward, Path, Res, Run, Stage, Threads};
use crate::chad::{component, declare_vjp, fresh_name, rebuilt, refuse};
use pullback_base::index::IdMap;
use pullback_lambda::{Arm, Builder, Exp, FunId, Loop, LoopAttrs, LoopForm, Program, Term, Type, Var};
use pullback_prim::{Op, Scalar};
use std::collections::BTreeMap;

pub(super) fn whole<C: Stage>(
    program: &mut Program,
    f: FunId,
    stage: fn(&mut Builder<'_>, &Type) -> C,
) -> Res<FunId> {
    let fun = program.funs[f].clone();
    let types: Vec<Type> = fun.params.iter().map(|p| program.vars[*p].ty.clone()).collect();
    let bars = types.iter().map(|t| cotangent(C::ID, t, fun.span)).collect::<Res<Vec<Type>>>()?;
    let seed_type = cotangent(C::ID, &fun.result, fun.span)?;
    let all = Type::tuple(bars.clone());
    let name = fresh_name(program, f, &format!("{}_vjp", C::ID));
    let mut b = Builder::new(program);
    let stage = stage(&mut b, &all);
    let threads = Threads { io: C::IO, state: stage.state() };
    // No variable is read before it is set.
    let state = b.fresh(threads.state.clone(), "id");
    let (vars, funs, types_map) = (IdMap::new(), IdMap::new(), IdMap::new());
    let (repeats, repeats_while, bindings) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
    let mut s =
        Forward { b, stage, state, threads, bindings, vars, funs, types: types_map, repeats, repeats_while };
    let dual = s.function(f)?;
    let result = Type::tuple([fun.result.clone(), all]);
    let (g, args, seed) = declare_vjp(&mut s.b, f, &name, seed_type, result);
    let body = s.scope(|s| {
        let forward = s.block(|s| {
            s.state = C::start(s);
            let mut given = Vec::new();
            for (k, (x, t)) in args.iter().zip(&types).enumerate() {
                let x = s.arguments(*x, t, &Path::Component(&Path::Whole, &bars, k))?;
                given.push(s.b.var(x));
            }
            given.push(s.b.var(s.state));
            let arguments = s.state;
            let called = s.b.call(dual, given);
            let y = s.run(called, "y");
            Ok(s.tuple(&[y, arguments]))
        })?;
        let forward = if C::IO { s.b.term(Exp::IoRun(forward)) } else { forward };
        let pair = s.emit(forward, "p");
        let (state, result) = (component(&mut s.b, pair, 1), component(&mut s.b, pair, 0));
        s.state = s.emit(state, "id");
        let result = s.emit(result, "r");
        let (arguments, result) = (s.part(result, 1), s.part(result, 0));
        let value = rebuilt(&mut s.b, result, &fun.result, &mut |b, y, t| {
            let y = b.var(y);
            if t.is_float() { b.proj(y, 0) } else { y }
        });
        let value = s.emit(value, "value");
        let run = Run { args: &args, types: &types, result, result_type: &fun.result, seed, arguments };
        let back = C::backward(s, &run)?;
        Ok(s.tuple(&[value, back]))
    })?;
    s.b.define(g, body);
    debug_assert!(s.b.errors.is_empty(), "{:?}", s.b.errors);
    Ok(g)
}

impl<C: Stage> Forward<'_, C> {
    // --- arguments and results ---

    /// The arguments with what stands beside their numbers.
    fn arguments(&mut self, x: Var, t: &Type, path: &Path<'_>) -> Res<Var> {
        self.walk(x, t, path, &mut |s, x, scalar, path| {
            let beside = C::argument(s, scalar, path);
            s.tuple(&[x, beside])
        })
    }
    /// A value with other numbers; `x` has scalars where `t` has them, or pairs with them.
    pub(super) fn walk(
        &mut self,
        x: Var,
        t: &Type,
        path: &Path<'_>,
        number: &mut dyn FnMut(&mut Self, Var, Scalar, &Path<'_>) -> Var,
    ) -> Res<Var> {
        match t {
            Type::Scalar(s) => Ok(if s.is_float() { number(self, x, *s, path) } else { x }),
            Type::Tuple(ts) => {
                let bars = ts.iter().map(|t| cotangent(C::ID, t, None)).collect::<Res<Vec<Type>>>()?;
                let mut parts = Vec::new();
                for (i, t) in ts.iter().enumerate() {
                    let part = self.part(x, i);
                    parts.push(self.walk(part, t, &Path::Component(path, &bars, i), number)?);
                }
                Ok(self.tuple(&parts))
            }
            Type::Array(element) => {
                let n = self.size(x);
                let dual = self.ty(element);
                self.build(n, &dual, |s, i| {
                    let e = s.element(x, i);
                    s.walk(e, element, &Path::Element(path, x, t, i), number)
                })
            }
            Type::Sum(variants) => {
                let bar = cotangent(C::ID, t, None)?;
                let new = self.ty(t);
                let from = self.b.program.variants(&self.b.program.vars[x].ty).unwrap_or_default().to_vec();
                let mut arms = Vec::new();
                for (k, (v, from)) in variants.iter().zip(from).enumerate() {
                    let params: Vec<Var> = from.fields.into_iter().map(|t| self.b.fresh(t, "x")).collect();
                    let bars =
                        v.fields.iter().map(|t| cotangent(C::ID, t, None)).collect::<Res<Vec<Type>>>()?;
                    let body = self.block(|s| {
                        let whole = Path::Alternative(path, &bar, k);
                        let mut fields = Vec::new();
                        for (i, (x, t)) in params.iter().zip(&v.fields).enumerate() {
                            let component = Path::Component(&whole, &bars, i);
                            let path = if bars.len() == 1 { &whole } else { &component };
                            let field = s.walk(*x, t, path, number)?;
                            fields.push(s.b.var(field));
                        }
                        let made = s.b.term(Exp::Inject(new.clone(), k, fields));
                        Ok(s.emit(made, "v"))
                    })?;
                    arms.push(Arm { params, body });
                }
                let x = self.b.var(x);
                let all = self.b.term(Exp::Match(x, arms));
                Ok(self.run(all, "v"))
            }
            t => refuse(C::ID, &format!("an argument of type {t}"), None),
        }
    }
    /// `rest` after `leaf` for every number of the result: what stands beside it, its cotangent as `f64`, what comes after.
    pub(crate) fn results(
        &mut self,
        y: Var,
        t: &Type,
        z: Var,
        rest: Var,
        leaf: &mut dyn FnMut(&mut Self, Var, Var, Var) -> Var,
    ) -> Res<Var> {
        match t {
            Type::Scalar(s) if s.is_float() => {
                let beside = self.part(y, 1);
                let z = self.b.var(z);
                let z = self.b.convert(z, Scalar::F64);
                let z = self.emit(z, "z");
                Ok(leaf(self, beside, z, rest))
            }
            Type::Scalar(_) => Ok(rest),
            Type::Tuple(ts) => {
                let mut rest = rest;
                for (i, t) in ts.iter().enumerate().rev() {
                    let (y, z) = (self.part(y, i), self.part(z, i));
                    rest = self.results(y, t, z, rest, leaf)?;
                }
                Ok(rest)
            }
            Type::Array(t) => {
                let n = self.size(y);
                let (i, state) = {
                    let ty = self.b.program.vars[rest].ty.clone();
                    (self.b.fresh(Type::I64, "i"), self.b.fresh(ty, "s"))
                };
                let body = self.scope(|s| {
                    let (n, one, i) = (s.b.var(n), s.b.i64(1), s.b.var(i));
                    let last = s.b.op2(Op::Sub, n, one);
                    let k = s.b.op2(Op::Sub, last, i);
                    let k = s.emit(k, "k");
                    let (y, z) = (s.element(y, k), s.element(z, k));
                    s.results(y, t, z, state, leaf)
                })?;
                let (init, n) = (self.b.var(rest), self.b.var(n));
                let form = LoopForm::For(i, n);
                let all = Loop { state, init, form, body, attrs: LoopAttrs::default() };
                let all = self.b.term(Exp::Loop(all));
                Ok(self.emit(all, "s"))
            }
            Type::Sum(variants) => {
                let from = self.b.program.variants(&self.b.program.vars[y].ty).unwrap_or_default().to_vec();
                let mut arms = Vec::new();
                for (k, (v, new)) in variants.iter().zip(from).enumerate() {
                    let params: Vec<Var> = new.fields.into_iter().map(|t| self.b.fresh(t, "y")).collect();
                    let body = self.scope(|s| {
                        let d = s.b.var(z);
                        let d = s.b.term(Exp::SparseCast(d, k));
                        let d = s.emit(d, "z");
                        let mut rest = rest;
                        for (i, (y, t)) in params.iter().zip(&v.fields).enumerate().rev() {
                            let part = if params.len() == 1 { d } else { s.part(d, i) };
                            rest = s.results(*y, t, part, rest, leaf)?;
                        }
                        Ok(rest)
                    })?;
                    arms.push(Arm { params, body });
                }
                let y = self.b.var(y);
                let all = self.b.term(Exp::Match(y, arms));
                Ok(self.emit(all, "s"))
            }
            t => refuse(C::ID, &format!("a result of type {t}"), None),
        }
    }
    /// The cotangents of all arguments out of those of their numbers, which are counted as [`Stage::argument`] was asked for them.
    pub(crate) fn gathered(
        &mut self,
        run: &Run<'_>,
        number: &mut dyn FnMut(&mut Self, Var) -> Term,
    ) -> Res<Var> {
        self.counting(|s| {
            let mut parts = Vec::new();
            for (x, t) in run.args.iter().zip(run.types) {
                parts.push(s.gathered_part(*x, t, number)?);
            }
            Ok(s.tuple(&parts))
        })
    }
    fn gathered_part(
        &mut self,
        x: Var,
        t: &Type,
        number: &mut dyn FnMut(&mut Self, Var) -> Term,
    ) -> Res<Var> {
        match t {
            Type::Scalar(s) if s.is_float() => {
                let i = self.next();
                let d = number(self, i);
                let d = self.b.convert(d, *s);
                Ok(self.emit(d, "d"))
            }
            Type::Scalar(_) => {
                let unit = self.b.unit();
                Ok(self.emit(unit, "u"))
            }
            Type::Tuple(ts) => {
                let mut parts = Vec::new();
                for (i, t) in ts.iter().enumerate() {
                    let x = self.part(x, i);
                    parts.push(self.gathered_part(x, t, number)?);
                }
                Ok(self.tuple(&parts))
            }
            Type::Array(element) => {
                let n = self.size(x);
                let bar = cotangent(C::ID, element, None)?;
                self.build(n, &bar, |s, i| {
                    let e = s.element(x, i);
                    s.gathered_part(e, element, number)
                })
            }
            Type::Sum(variants) => {
                let bar = cotangent(C::ID, t, None)?;
                let mut arms = Vec::new();
                for (k, v) in variants.iter().enumerate() {
                    let params: Vec<Var> = v.fields.iter().map(|t| self.b.fresh(t.clone(), "x")).collect();
                    let body = self.block(|s| {
                        let mut parts = Vec::new();
                        for (x, t) in params.iter().zip(&v.fields) {
                            parts.push(s.gathered_part(*x, t, number)?);
                        }
                        let payload = if let [one] = parts[..] { one } else { s.tuple(&parts) };
                        let payload = s.b.var(payload);
                        let made = s.b.term(Exp::SparseInject(bar.clone(), k, payload));
                        Ok(s.emit(made, "d"))
                    })?;
                    arms.push(Arm { params, body });
                }
                let x = self.b.var(x);
                let all = self.b.term(Exp::Match(x, arms));
                Ok(self.run(all, "d"))
            }
            t => refuse(C::ID, &format!("an argument of type {t}"), None),
        }
    }
}
