//! From sparse cotangents to those that have the type of their value, and back: what a caller gives and gets.
//!
//! ```text
//! dense[f64] x d = d            dense[i64] x d = 0             dense[(ts)] x d = (dense x.i d.i)
//! dense[sum] x d = match x { #k ys -> #k (dense ys (lcast_k d)) }
//! dense[[]t] x d = map dense x (scatter (size x) d)
//! sparse[f64] s = s             sparse[i64] s = ()             sparse[(ts)] s = <sparse s.i>
//! sparse[sum] s = match s { #k ys -> linj_k (sparse ys) }      sparse[[]t] s = array (iota (size s)) (map sparse s)
//! ```

use super::{component, cotangent, fresh_name};
use crate::contract::Unsupported;
use pullback_base::Span;
use pullback_lambda::{Arm, Builder, Exp, FunId, Program, Term, Type, Var, Variant};

/// Adds, for a function `(s1, .., sn) -> t` and its sparse derivative `(s1, .., sn, D2[t]) -> (t, (D2[s1], .., D2[sn]))`, the function
/// `(s1, .., sn, t) -> (t, (s1, .., sn))`. Discrete parts are ignored on the way in and zero on the way out. A cotangent of another alternative
/// than the value's stops the program.
///
/// Errors: types without cotangents. Cost: of the result, the size of arguments and result more.
pub fn dense_vjp(
    id: &'static str,
    program: &mut Program,
    f: FunId,
    sparse: FunId,
) -> Result<FunId, Unsupported> {
    let fun = program.funs[f].clone();
    let types: Vec<Type> = fun.params.iter().map(|p| program.vars[*p].ty.clone()).collect();
    for t in types.iter().chain([&fun.result]) {
        cotangent(id, t, fun.span)?;
    }
    let name = fresh_name(program, f, "dense");
    let hints: Vec<String> = fun.params.iter().map(|p| program.vars[*p].hint.to_string()).collect();
    let params: Vec<(&str, Type)> =
        hints.iter().map(String::as_str).zip(types.clone()).chain([("seed", fun.result.clone())]).collect();
    let result = Type::tuple([fun.result.clone(), Type::tuple(types.clone())]);
    let mut dense = Dense { b: Builder::new(program), id, span: fun.span };
    let g = dense.b.declare(&name, &params, result, None);
    let params = dense.b.params(g);
    let (seed, args) = params.split_last().expect("the seed");
    let mut given: Vec<Term> = args.iter().map(|p| dense.b.var(*p)).collect();
    given.push(dense.sparse(*seed, &fun.result)?);
    let called = dense.b.call(sparse, given);
    let r = dense.b.fresh(called.ty().clone(), "r");
    let value = component(&mut dense.b, r, 0);
    let bars_type = component(&mut dense.b, r, 1).ty().clone();
    let bars = dense.b.fresh(bars_type, "bars");
    let mut parts = Vec::new();
    for (i, (x, t)) in args.iter().zip(&types).enumerate() {
        let d = component(&mut dense.b, bars, i);
        parts.push(dense.named(d, |s, d| s.dense(*x, d, t))?);
    }
    let parts = dense.b.tuple(parts);
    let both = dense.b.tuple(vec![value, parts]);
    let all = component(&mut dense.b, r, 1);
    let body = dense.b.term(Exp::Let(bars, all, both));
    let body = dense.b.term(Exp::Let(r, called, body));
    dense.b.define(g, body);
    debug_assert!(dense.b.errors.is_empty(), "{:?}", dense.b.errors);
    Ok(g)
}

struct Dense<'p> {
    b: Builder<'p>,
    id: &'static str,
    span: Option<Span>,
}

type Res<T> = Result<T, Unsupported>;

impl Dense<'_> {
    /// `let v = value in f v`
    fn named(&mut self, value: Term, f: impl FnOnce(&mut Self, Var) -> Res<Term>) -> Res<Term> {
        let v = self.b.fresh(value.ty().clone(), "d");
        let body = f(self, v)?;
        Ok(self.b.term(Exp::Let(v, value, body)))
    }
    fn variants(&self, t: &Type) -> Vec<Variant> {
        self.b.program.variants(t).unwrap_or_default().to_vec()
    }
    /// The value's cotangent of its own type.
    fn dense(&mut self, x: Var, d: Var, t: &Type) -> Res<Term> {
        match t {
            Type::Scalar(s) if s.is_float() => Ok(self.b.var(d)),
            Type::Scalar(s) => Ok(self.b.constant(s.zero())),
            Type::Tuple(ts) => {
                let mut parts = Vec::new();
                for (i, t) in ts.iter().enumerate() {
                    let (x, d) = (component(&mut self.b, x, i), self.b.var(d));
                    let d = self.b.term(Exp::SparseProj(d, i));
                    parts.push(self.named(x, |s, x| s.named(d, |s, d| s.dense(x, d, t)))?);
                }
                Ok(self.b.tuple(parts))
            }
            Type::Array(element) => {
                let bar = cotangent(self.id, element, self.span)?;
                let (ex, ed) = (self.b.fresh(Type::clone(element), "x"), self.b.fresh(bar, "d"));
                let body = self.dense(ex, ed, element)?;
                let each = self.b.term(Exp::Lam(ed, body));
                let each = self.b.term(Exp::Lam(ex, each));
                let (x, d) = (self.b.var(x), self.b.var(d));
                let n = self.b.size(x.clone(), 0);
                let ds = self.b.term(Exp::BagScatter(n, d));
                Ok(self.b.map(each, vec![x, ds]))
            }
            t => {
                let mut arms = Vec::new();
                for (k, variant) in self.variants(t).into_iter().enumerate() {
                    let params: Vec<Var> =
                        variant.fields.iter().map(|t| self.b.fresh(t.clone(), "x")).collect();
                    let d = self.b.var(d);
                    let payload = self.b.term(Exp::SparseCast(d, k));
                    let body = self.named(payload, |s, d| {
                        let mut fields = Vec::new();
                        for (i, (x, t)) in params.iter().zip(&variant.fields).enumerate() {
                            let field = match &variant.fields[..] {
                                [_] => s.b.var(d),
                                _ => {
                                    let d = s.b.var(d);
                                    s.b.term(Exp::SparseProj(d, i))
                                }
                            };
                            fields.push(s.named(field, |s, d| s.dense(*x, d, t))?);
                        }
                        Ok(s.b.term(Exp::Inject(t.clone(), k, fields)))
                    })?;
                    arms.push(Arm { params, body });
                }
                let x = self.b.var(x);
                Ok(self.b.term(Exp::Match(x, arms)))
            }
        }
    }
    /// The sparse cotangent.
    fn sparse(&mut self, seed: Var, t: &Type) -> Res<Term> {
        match t {
            Type::Scalar(s) if s.is_float() => Ok(self.b.var(seed)),
            Type::Scalar(_) => Ok(self.b.unit()),
            Type::Tuple(ts) if ts.is_empty() => Ok(self.b.unit()),
            Type::Tuple(ts) => {
                let parts: Vec<Term> = (0..ts.len()).map(|i| component(&mut self.b, seed, i)).collect();
                self.sparse_product(parts, ts)
            }
            Type::Array(element) => {
                let s = self.b.fresh(Type::clone(element), "s");
                let body = self.sparse(s, element)?;
                let each = self.b.term(Exp::Lam(s, body));
                let seed = self.b.var(seed);
                let n = self.b.size(seed.clone(), 0);
                let ds = self.b.map(each, vec![seed]);
                let ix = self.b.term(Exp::Iota(n));
                Ok(self.b.term(Exp::BagArray(ix, ds)))
            }
            t => {
                let bar = cotangent(self.id, t, self.span)?;
                let mut arms = Vec::new();
                for (k, variant) in self.variants(t).into_iter().enumerate() {
                    let params: Vec<Var> =
                        variant.fields.iter().map(|t| self.b.fresh(t.clone(), "s")).collect();
                    let payload = match (&params[..], &variant.fields[..]) {
                        ([], _) => self.b.unit(),
                        ([one], [t]) => self.sparse(*one, t)?,
                        (params, types) => {
                            let parts = params.iter().map(|p| self.b.var(*p)).collect();
                            self.sparse_product(parts, types)?
                        }
                    };
                    let body = self.b.term(Exp::SparseInject(bar.clone(), k, payload));
                    arms.push(Arm { params, body });
                }
                let seed = self.b.var(seed);
                Ok(self.b.term(Exp::Match(seed, arms)))
            }
        }
    }
    fn sparse_product(&mut self, parts: Vec<Term>, types: &[Type]) -> Res<Term> {
        let mut made = Vec::new();
        for (part, t) in parts.into_iter().zip(types) {
            made.push(self.named(part, |s, part| s.sparse(part, t))?);
        }
        Ok(self.b.term(Exp::SparseTuple(made)))
    }
}
