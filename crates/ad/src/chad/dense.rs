//! From sparse cotangents to those that have the type of their value, and back: what a caller gives and gets.
//!
//! ```text
//! dense[f64] x d = d            dense[i64] x d = 0             dense[(ts)] x d = (dense x.i d.i)
//! dense[sum] x d = match x { #k ys -> #k (dense ys (lcast_k d)) }
//! dense[[]t] x d = map dense x (scatter (size x) d)
//! sparse[f64] s = s             sparse[i64] s = ()             sparse[(ts)] s = <sparse s.i>
//! dense[[]t] x d = map dense x d            where the cotangent is an array, or zeros if it has no elements; sparse likewise
//! sparse[sum] s = match s { #k ys -> linj_k (sparse ys) }      sparse[[]t] s = array (iota (size s)) (map sparse s)
//! ```

use super::{component, declare_vjp, fresh_name, rebuilt};
use pullback_lambda::{Arm, Builder, Exp, FunId, Program, Term, Type, Var, Variant};

/// Adds, for a function `(s1, .., sn) -> t` and its sparse derivative `(s1, .., sn, D2[t]) -> (t, (D2[s1], .., D2[sn]))`, the function
/// `(s1, .., sn, t) -> (t, (s1, .., sn))`. Discrete parts are ignored on the way in and zero on the way out. A cotangent of another alternative
/// than the value's stops the program. Products of cotangents may also be dense, as in [`super::a_plain`].
///
/// Cost: of the result, the size of arguments and result more.
pub fn dense_vjp(program: &mut Program, f: FunId, sparse: FunId) -> FunId {
    let fun = program.funs[f].clone();
    let types: Vec<Type> = fun.params.iter().map(|p| program.vars[*p].ty.clone()).collect();
    let name = fresh_name(program, f, "dense");
    let result = Type::tuple([fun.result.clone(), Type::tuple(types.clone())]);
    let mut dense = Dense { b: Builder::new(program) };
    let (g, args, seed) = declare_vjp(&mut dense.b, f, &name, fun.result.clone(), result);
    let mut given: Vec<Term> = args.iter().map(|p| dense.b.var(*p)).collect();
    let bar = dense.b.params(sparse).last().map(|v| dense.b.program.vars[*v].ty.clone());
    given.push(dense.sparse(seed, &fun.result, &bar.unwrap_or(Type::unit())));
    let called = dense.b.call(sparse, given);
    let r = dense.b.fresh(called.ty().clone(), "r");
    let value = component(&mut dense.b, r, 0);
    let bars_type = component(&mut dense.b, r, 1).ty().clone();
    let bars = dense.b.fresh(bars_type, "bars");
    let mut parts = Vec::new();
    for (i, (x, t)) in args.iter().zip(&types).enumerate() {
        let d = component(&mut dense.b, bars, i);
        parts.push(dense.named(d, |s, d| s.dense(*x, d, t)));
    }
    let parts = dense.b.tuple(parts);
    let both = dense.b.tuple(vec![value, parts]);
    let all = component(&mut dense.b, r, 1);
    let body = dense.b.term(Exp::Let(bars, all, both));
    let body = dense.b.term(Exp::Let(r, called, body));
    dense.b.define(g, body);
    debug_assert!(dense.b.errors.is_empty(), "{:?}", dense.b.errors);
    g
}

struct Dense<'p> {
    b: Builder<'p>,
}

impl Dense<'_> {
    /// `let v = value in f v`
    fn named(&mut self, value: Term, f: impl FnOnce(&mut Self, Var) -> Term) -> Term {
        let v = self.b.fresh(value.ty().clone(), "d");
        let body = f(self, v);
        self.b.term(Exp::Let(v, value, body))
    }
    fn variants(&self, t: &Type) -> Vec<Variant> {
        self.b.program.variants(t).unwrap_or_default().to_vec()
    }
    /// The component of a cotangent of a product.
    fn part(&mut self, d: Var, i: usize) -> Term {
        match self.b.program.vars[d].ty {
            Type::SparseTuple(_) => {
                let d = self.b.var(d);
                self.b.term(Exp::SparseProj(d, i))
            }
            _ => component(&mut self.b, d, i),
        }
    }
    /// The value's cotangent of its own type.
    fn dense(&mut self, x: Var, d: Var, t: &Type) -> Term {
        match t {
            Type::Scalar(s) if s.is_float() => self.b.var(d),
            Type::Scalar(s) => self.b.constant(s.zero()),
            Type::Tuple(ts) => {
                let parts = ts.iter().enumerate().map(|(i, t)| {
                    let (x, d) = (component(&mut self.b, x, i), self.part(d, i));
                    self.named(x, |s, x| s.named(d, |s, d| s.dense(x, d, t)))
                });
                let parts = parts.collect();
                self.b.tuple(parts)
            }
            // Of an algorithm whose cotangents of arrays are arrays: one without elements is the zero of all sizes.
            Type::Array(element) if matches!(self.b.program.vars[d].ty, Type::Array(_)) => {
                let bar = self.b.program.vars[d].ty.elem().cloned().unwrap_or(Type::unit());
                let given = self.each(x, d, element, &bar);
                let zeros = rebuilt(&mut self.b, x, t, &mut |b, _, s| b.constant(s.zero()));
                let d = self.b.var(d);
                let (n, none) = (self.b.size(d, 0), self.b.i64(0));
                let empty = self.b.op2(pullback_prim::Op::Eq, n, none);
                self.b.if_(empty, zeros, given)
            }
            Type::Array(element) => {
                let (x, d) = (self.b.var(x), self.b.var(d));
                let n = self.b.size(x.clone(), 0);
                let ds = self.b.term(Exp::BagScatter(n, d));
                let bar = ds.ty().elem().cloned().unwrap_or(Type::unit());
                let (ex, ed) = (self.b.fresh(Type::clone(element), "x"), self.b.fresh(bar, "d"));
                let body = self.dense(ex, ed, element);
                let each = self.b.term(Exp::Lam(ed, body));
                let each = self.b.term(Exp::Lam(ex, each));
                self.b.map(each, vec![x, ds])
            }
            t => {
                let mut arms = Vec::new();
                for (k, variant) in self.variants(t).into_iter().enumerate() {
                    let params: Vec<Var> =
                        variant.fields.iter().map(|t| self.b.fresh(t.clone(), "x")).collect();
                    let d = self.b.var(d);
                    let payload = self.b.term(Exp::SparseCast(d, k));
                    let body = self.named(payload, |s, d| {
                        let one = variant.fields.len() == 1;
                        let fields = params.iter().zip(&variant.fields).enumerate().map(|(i, (x, t))| {
                            let field = if one { s.b.var(d) } else { s.part(d, i) };
                            s.named(field, |s, d| s.dense(*x, d, t))
                        });
                        let fields = fields.collect();
                        s.b.term(Exp::Inject(t.clone(), k, fields))
                    });
                    arms.push(Arm { params, body });
                }
                let x = self.b.var(x);
                self.b.term(Exp::Match(x, arms))
            }
        }
    }
    /// `map dense x d`
    fn each(&mut self, x: Var, d: Var, element: &Type, bar: &Type) -> Term {
        let (ex, ed) = (self.b.fresh(element.clone(), "x"), self.b.fresh(bar.clone(), "d"));
        let body = self.dense(ex, ed, element);
        let each = self.b.term(Exp::Lam(ed, body));
        let each = self.b.term(Exp::Lam(ex, each));
        let (x, d) = (self.b.var(x), self.b.var(d));
        self.b.map(each, vec![x, d])
    }
    /// The cotangent of this type.
    fn sparse(&mut self, seed: Var, t: &Type, bar: &Type) -> Term {
        match (t, bar) {
            (Type::Scalar(s), _) if s.is_float() => self.b.var(seed),
            (Type::Tuple(ts), bar) if !ts.is_empty() => {
                let parts = (0..ts.len()).map(|i| component(&mut self.b, seed, i)).collect();
                self.product(parts, ts, bar)
            }
            (Type::Array(element), Type::Bag(bar)) => {
                let s = self.b.fresh(Type::clone(element), "s");
                let body = self.sparse(s, element, bar);
                let each = self.b.term(Exp::Lam(s, body));
                let seed = self.b.var(seed);
                let n = self.b.size(seed.clone(), 0);
                let ds = self.b.map(each, vec![seed]);
                let ix = self.b.term(Exp::Iota(n));
                self.b.term(Exp::BagArray(ix, ds))
            }
            (Type::Array(element), Type::Array(bar)) => {
                let s = self.b.fresh(Type::clone(element), "s");
                let body = self.sparse(s, element, bar);
                let each = self.b.term(Exp::Lam(s, body));
                let seed = self.b.var(seed);
                self.b.map(each, vec![seed])
            }
            (t, Type::SparseSum(bars)) => {
                let mut arms = Vec::new();
                for (k, variant) in self.variants(t).into_iter().enumerate() {
                    let params: Vec<Var> =
                        variant.fields.iter().map(|t| self.b.fresh(t.clone(), "s")).collect();
                    let payload = match (&params[..], &variant.fields[..]) {
                        ([], _) => self.b.unit(),
                        ([one], [t]) => self.sparse(*one, t, &bars[k]),
                        (params, types) => {
                            let parts = params.iter().map(|p| self.b.var(*p)).collect();
                            self.product(parts, types, &bars[k])
                        }
                    };
                    let body = self.b.term(Exp::SparseInject(bar.clone(), k, payload));
                    arms.push(Arm { params, body });
                }
                let seed = self.b.var(seed);
                self.b.term(Exp::Match(seed, arms))
            }
            _ => self.b.unit(),
        }
    }
    fn product(&mut self, parts: Vec<Term>, types: &[Type], bar: &Type) -> Term {
        let (bars, is_sparse) = match bar {
            Type::SparseTuple(bars) => (bars, true),
            Type::Tuple(bars) => (bars, false),
            _ => return self.b.unit(),
        };
        let parts = parts.into_iter().zip(types).zip(bars.iter());
        let parts = parts.map(|((part, t), bar)| self.named(part, |s, part| s.sparse(part, t, bar)));
        let parts = parts.collect();
        if is_sparse { self.b.term(Exp::SparseTuple(parts)) } else { self.b.tuple(parts) }
    }
}
