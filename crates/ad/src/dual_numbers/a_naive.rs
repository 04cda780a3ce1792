//! Dual-numbers reverse AD as section 3.3 has it: right, for every construct there is, and exponential.
//!
//! Source: T. Smeding, thesis, 3.3: Figs. 3.6 and 3.7; recursion, sums and `sign` 3.9.
//!
//! Judgement: `G |- t : s` becomes `D1[G] |- D1[t] : D1[s]`; `c` is the type of the cotangents of the arguments of the whole.
//!
//! Types:
//! ```text
//! D1[f64] = (f64, f64 -> c)     D1[f32] = (f32, f32 -> c)     D1[another scalar] = itself
//! everything else as it is made of its parts: products, sums, recursive sums, arrays, functions
//! d[f64] = f64     d[f32] = f32     d[another scalar] = ()     d[(ts)] = (d[ts])     d[[]t] = []d[t]     d[#c1 ts | ..] = oneof(d[ts], ..)
//! ```
//!
//! Notation: `\_z. b` [`Exp::Lam`] · `0_` and `+` of `c` [`Exp::Zero`], [`Exp::Plus`], where an array without elements is the zero of all sizes
//!
//! Rules:
//! ```text
//! D1[r]                = (r, \_z. 0_)                                     a literal number
//! D1[op(e1, .., en)]   = let p = (D1[e1], .., D1[en]) in (op(p.i.0), \_z. p.1.1 (d1op z) + .. + p.n.1 (dnop z))
//! D1[op(e1, .., en)]   = let p = (D1[e1], .., D1[en]) in op(p.i.0)        without floats in its result
//! D1[convert e]        = (convert D1[e], \_z. 0_)                         of an integer to a float
//! D1[sign e]           = sign D1[e].0
//! D1[stop e]           = every number in D1[e] with \_z. 0_
//! D1[x] = x            all other terms as they are made of their parts
//!
//! whole f              = \(xs, z). let y = D1[f](inter (x, \d. <0, .., d, .., 0>)) in (value y, outer y z)
//! inter_f64 (x, d)     = (x, \_z. d z)
//! inter_(ts) (x, d)    = (inter (x.i, \z. d <0, .., z, .., 0>))
//! inter_[]t (x, d)     = map (\i. inter (x[i], \z. d (zeros x with [i] = z))) (iota (size x))
//! inter_sum (x, d)     = match x { #k ys -> #k (inter (ys, \z. d (linj_k z))) }
//! outer_f64 y z        = y.1 z         outer_(ts) y z = outer y.1 z.1 + .. + outer y.n z.n
//! outer_[]t y z        = loop s = 0 for i < size y do s + outer y[i] z[i]
//! outer_sum y z        = match y { #k ys -> outer ys (lcast_k z) }
//! ```
//!
//! Differences from the paper:
//! 1. Products and sums have any number of components, and primitives take their arguments one by one or as one product.
//! 2. Arrays are collections of numbers: every operation on them is as it was, also those with functions.
//! 3. Top-level functions, also recursive ones, become functions; `c` is the same in all of them.
//! 4. Backpropagators are functions like others: those of arrays write one element, for which linear bodies have no form.
//! 5. Marks and `stop_gradient`, which the thesis does not have.
//!
//! Guarantee: none. A backpropagator is called once per use of its number: `2^n` times where values are shared `n` deep, and every `0_` and `+` costs the
//! size of the arguments. Tests demand that it is slow (`crates/testkit/tests/dual_numbers.rs`).
//!
//! Not supported: functions with derivatives of their own, derivatives inside of a program; arguments and results that are functions or of recursive types.

use super::structure::{Parts, cotangent, mentions_function, one_hot, zeros};
use crate::chad::{Argument, component, declare_vjp, fresh_name, rebuilt, refuse, scaled, slopes};
use crate::contract::Unsupported;
use crate::tangent::is_zero;
use pullback_base::Span;
use pullback_base::index::IdMap;
use pullback_lambda::{
    Arm, Builder, Exp, FunId, Loop, LoopAttrs, LoopForm, Program, Term, Type, TypeId, Var,
};
use pullback_prim::{Prim, Scalar};

/// The name by which it is chosen.
pub const ID: &str = "dual-naive";

type Res<T> = Result<T, Unsupported>;

/// Adds, for a function `f : (s1, .., sn) -> t`, the function `(s1, .., sn, d[t]) -> (t, (d[s1], .., d[sn]))`: value and cotangents of the arguments.
///
/// Errors: constructs that are not supported; the program is as before then. Cost: the size of the functions.
pub fn vjp(program: &mut Program, f: FunId) -> Result<FunId, Unsupported> {
    let before = program.clone();
    let made = whole(program, f);
    if made.is_err() {
        *program = before;
    }
    made
}

fn whole(program: &mut Program, f: FunId) -> Res<FunId> {
    let fun = program.funs[f].clone();
    let types: Vec<Type> = fun.params.iter().map(|p| program.vars[*p].ty.clone()).collect();
    let bars = types.iter().map(|t| cotangent(ID, t, fun.span)).collect::<Res<Vec<Type>>>()?;
    let seed_type = cotangent(ID, &fun.result, fun.span)?;
    let all = Type::tuple(bars.clone());
    let name = fresh_name(program, f, "dual_naive_vjp");
    let b = Builder::new(program);
    let mut s = Naive { b, all: all.clone(), vars: IdMap::new(), funs: IdMap::new(), types: IdMap::new() };
    let dual = s.function(f)?;
    let result = Type::tuple([fun.result.clone(), all]);
    let (g, args, seed) = declare_vjp(&mut s.b, f, &name, seed_type, result);
    let mut given = Vec::new();
    for (k, (x, t)) in args.iter().zip(&types).enumerate() {
        let bars = bars.clone();
        let setter: Setter<'_> = &|s, z| one_hot(&mut s.b, &bars, k, z);
        given.push(s.inter(*x, t, setter)?);
    }
    let y = s.b.call(dual, given);
    let body = s.bound(y, |s, y| {
        let value = s.value(y, &fun.result);
        let back = s.outer(y, &fun.result, seed)?;
        Ok(s.b.tuple(vec![value, back]))
    })?;
    s.b.define(g, body);
    debug_assert!(s.b.errors.is_empty(), "{:?}", s.b.errors);
    Ok(g)
}

/// What a cotangent of a part of the arguments contributes to those of all.
type Setter<'a> = &'a dyn Fn(&mut Naive<'_>, Term) -> Term;

struct Naive<'p> {
    b: Builder<'p>,
    /// `c`
    all: Type,
    vars: IdMap<Var, Var>,
    funs: IdMap<FunId, FunId>,
    types: IdMap<TypeId, TypeId>,
}

impl Naive<'_> {
    /// `D1[t]`
    fn ty(&mut self, t: &Type) -> Type {
        let all = &self.all;
        let number = |t: &Type| Type::tuple([t.clone(), Type::fun(t.clone(), all.clone())]);
        Parts { number: &number, function: &Type::fun }.mapped(&mut self.b, &mut self.types, t)
    }
    fn renamed(&mut self, v: Var) -> Var {
        let info = self.b.program.vars[v].clone();
        let ty = self.ty(&info.ty);
        let new = self.b.fresh(ty, info.hint.as_str());
        self.vars.insert(v, new);
        new
    }
    fn function(&mut self, f: FunId) -> Res<FunId> {
        if let Some(known) = self.funs.get(&f) {
            return Ok(*known);
        }
        let fun = self.b.program.funs[f].clone();
        let Some(body) = fun.body else { return refuse(ID, "a function without a body", fun.span) };
        let name = fresh_name(self.b.program, f, ID);
        let result = self.ty(&fun.result);
        let new = self.b.declare(&name, &[], result, None);
        self.funs.insert(f, new);
        let params = fun.params.iter().map(|p| self.renamed(*p)).collect();
        self.b.program.funs[new].params = params;
        let body = self.term(&body)?;
        self.b.define(new, body);
        Ok(new)
    }

    /// `D1[t]`
    fn term(&mut self, t: &Term) -> Res<Term> {
        let outer = std::mem::replace(&mut self.b.span, t.span());
        let out = pullback_lambda::with_stack(|| self.rule(t));
        self.b.span = outer;
        out
    }
    fn rule(&mut self, t: &Term) -> Res<Term> {
        match t.exp() {
            // [dual_naive.var]  D1[x] = x
            Exp::Var(x) => match self.vars.get(x) {
                Some(x) => Ok(self.b.var(*x)),
                None => refuse(ID, "a variable that is not in scope", t.span()),
            },
            // [dual_naive.const]  D1[r] = (r, \_z. 0_)
            Exp::Const(c) => {
                let value = self.b.constant(*c);
                Ok(if c.scalar().is_float() { self.without(value, c.scalar()) } else { value })
            }
            // [dual_naive.prim]  D1[op(es)] = let p = (D1[es]) in (op(p.i.0), \_z. p.1.1 (d1op z) + .. + p.n.1 (dnop z))
            Exp::Prim(prim, args) => self.prim(*prim, args),
            // [dual_naive.sign]  D1[sign e] = sign D1[e].0
            Exp::Sign(e) => {
                let e = self.term(e)?;
                let value = self.b.proj(e, 0);
                Ok(self.b.term(Exp::Sign(value)))
            }
            // [dual_naive.stop_gradient]  D1[stop e] = every number in D1[e] with \_z. 0_
            Exp::StopGradient(e) => {
                let value = self.term(e)?;
                self.bound(value, |s, x| s.stopped(x, e.ty(), t.span()))
            }
            // [dual_naive.let]  D1[let x = a in b] = let x = D1[a] in D1[b]
            Exp::Let(x, a, b) => {
                let a = self.term(a)?;
                let x = self.renamed(*x);
                let b = self.term(b)?;
                Ok(self.b.term(Exp::Let(x, a, b)))
            }
            // [dual_naive.lam]  D1[\x. b] = \x. D1[b]
            Exp::Lam(x, b) => {
                let x = self.renamed(*x);
                let b = self.term(b)?;
                Ok(self.b.term(Exp::Lam(x, b)))
            }
            // [dual_naive.call]  D1[f(es)] = D1[f](D1[es])
            Exp::Call(f, args) => {
                let f = self.function(*f)?;
                let args = args.iter().map(|e| self.term(e)).collect::<Res<Vec<Term>>>()?;
                Ok(self.b.call(f, args))
            }
            // [dual_naive.inject]  D1[#k es] = #k D1[es]
            Exp::Inject(ty, k, fields) => {
                let ty = self.ty(ty);
                let fields = fields.iter().map(|e| self.term(e)).collect::<Res<Vec<Term>>>()?;
                Ok(self.b.term(Exp::Inject(ty, *k, fields)))
            }
            // [dual_naive.match]  D1[match e { #k xs -> b }] = match D1[e] { #k xs -> D1[b] }
            Exp::Match(e, arms) => {
                let e = self.term(e)?;
                let mut new = Vec::new();
                for arm in arms {
                    let params = arm.params.iter().map(|p| self.renamed(*p)).collect();
                    new.push(Arm { params, body: self.term(&arm.body)? });
                }
                Ok(self.b.term(Exp::Match(e, new)))
            }
            // [dual_naive.loop]  D1[loop x = a for i < n do b] = loop x = D1[a] for i < n do D1[b]
            Exp::Loop(l) => {
                let init = self.term(&l.init)?;
                let state = self.renamed(l.state);
                let form = match &l.form {
                    LoopForm::For(i, n) => {
                        let n = self.term(n)?;
                        LoopForm::For(self.renamed(*i), n)
                    }
                    LoopForm::While(c) => LoopForm::While(self.term(c)?),
                };
                let body = self.term(&l.body)?;
                Ok(self.b.term(Exp::Loop(Loop { state, init, form, body, attrs: l.attrs.clone() })))
            }
            // [dual_naive.array]  D1[[es]] = [D1[es]]
            Exp::ArrayLit(ty, items) => {
                let ty = self.ty(ty);
                let items = items.iter().map(|e| self.term(e)).collect::<Res<Vec<Term>>>()?;
                Ok(self.b.term(Exp::ArrayLit(ty, items)))
            }
            Exp::Vjp(_) | Exp::Jvp(_) => refuse(ID, "a derivative inside of a program", t.span()),
            Exp::Custom { .. } => refuse(ID, "a function with a derivative of its own", t.span()),
            Exp::LinearLam(..) | Exp::Zero(_) | Exp::Plus(..) => {
                refuse(ID, "what another algorithm made", t.span())
            }
            // [dual_naive.structure]  D1[K(es)] = K(D1[es])
            exp => {
                let mut exp = exp.clone();
                let mut error = None;
                exp.children_mut(&mut |child| match self.term(child) {
                    Ok(new) => *child = new,
                    Err(e) => error = error.take().or(Some(e)),
                });
                match error {
                    Some(e) => Err(e),
                    None => Ok(self.b.term(exp)),
                }
            }
        }
    }
    fn prim(&mut self, prim: Prim, args: &[Term]) -> Res<Term> {
        let params = prim.params();
        let all = match args {
            [one] if matches!(one.ty(), Type::Tuple(_)) => self.term(one)?,
            args => {
                let args = args.iter().map(|e| self.term(e)).collect::<Res<Vec<Term>>>()?;
                self.b.tuple(args)
            }
        };
        let result = prim.result();
        let slopes = slopes(self.b.program, prim, args).unwrap_or_default();
        self.bound(all, |s, p| {
            let floats = params.iter().any(|t| t.is_float());
            let values = (0..params.len()).map(|i| {
                let part = component(&mut s.b, p, i);
                if params[i].is_float() { s.b.proj(part, 0) } else { part }
            });
            let values = values.collect();
            let value = s.b.term(Exp::Prim(prim, values));
            if !result.is_float() {
                return Ok(value);
            }
            if !floats {
                return Ok(s.without(value, result));
            }
            let z = s.b.fresh(Type::Scalar(result), "z");
            let arguments: Vec<Argument> = (0..params.len()).map(|i| Argument::Part(p, i)).collect();
            let mut sum: Option<Term> = None;
            for (i, &slope) in slopes.iter().enumerate().filter(|(_, slope)| !is_zero(slope.1)) {
                let d = scaled(&mut s.b, prim, slope, &arguments, z);
                let part = component(&mut s.b, p, i);
                let back = s.b.proj(part, 1);
                let called = s.b.apply(back, [d]);
                sum = Some(match sum {
                    Some(sum) => s.b.term(Exp::Plus(sum, called)),
                    None => called,
                });
            }
            let zero = s.zero();
            let back = s.b.term(Exp::Lam(z, sum.unwrap_or(zero)));
            Ok(s.b.tuple(vec![value, back]))
        })
    }

    // --- the whole ---

    /// A value of the arguments with its backpropagators.
    fn inter(&mut self, x: Var, t: &Type, d: Setter<'_>) -> Res<Term> {
        match t {
            Type::Scalar(s) if s.is_float() => {
                let z = self.b.fresh(t.clone(), "z");
                let given = self.b.var(z);
                let body = d(self, given);
                let back = self.b.term(Exp::Lam(z, body));
                let value = self.b.var(x);
                Ok(self.b.tuple(vec![value, back]))
            }
            Type::Scalar(_) => Ok(self.b.var(x)),
            Type::Tuple(ts) => {
                let bars = ts.iter().map(|t| cotangent(ID, t, None)).collect::<Res<Vec<Type>>>()?;
                let mut parts = Vec::new();
                for (i, t) in ts.iter().enumerate() {
                    let part = component(&mut self.b, x, i);
                    let setter: Setter<'_> = &|s, z| {
                        let whole = one_hot(&mut s.b, &bars, i, z);
                        d(s, whole)
                    };
                    parts.push(self.bound(part, |s, x| s.inter(x, t, setter))?);
                }
                Ok(self.b.tuple(parts))
            }
            Type::Array(element) => {
                let i = self.b.fresh(Type::I64, "i");
                let (array, at) = (self.b.var(x), self.b.var(i));
                let one = self.b.index(array, vec![at]);
                let setter: Setter<'_> = &|s, z| {
                    let zeros = zeros(&mut s.b, x, t);
                    let at = s.b.var(i);
                    let whole = s.b.term(Exp::Update(zeros, vec![at], z));
                    d(s, whole)
                };
                let body = self.bound(one, |s, x| s.inter(x, element, setter))?;
                let each = self.b.term(Exp::Lam(i, body));
                let array = self.b.var(x);
                let n = self.b.size(array, 0);
                let all = self.b.term(Exp::Iota(n));
                Ok(self.b.map(each, vec![all]))
            }
            Type::Sum(variants) => {
                let bar = cotangent(ID, t, None)?;
                let new = self.ty(t);
                let mut arms = Vec::new();
                for (k, v) in variants.iter().enumerate() {
                    let params: Vec<Var> = v.fields.iter().map(|t| self.b.fresh(t.clone(), "x")).collect();
                    let bars = v.fields.iter().map(|t| cotangent(ID, t, None)).collect::<Res<Vec<Type>>>()?;
                    let mut fields = Vec::new();
                    for (i, (x, t)) in params.iter().zip(&v.fields).enumerate() {
                        let setter: Setter<'_> = &|s, z| {
                            let whole = if bars.len() == 1 { z } else { one_hot(&mut s.b, &bars, i, z) };
                            let whole = s.b.term(Exp::SparseInject(bar.clone(), k, whole));
                            d(s, whole)
                        };
                        fields.push(self.inter(*x, t, setter)?);
                    }
                    arms.push(Arm { params, body: self.b.term(Exp::Inject(new.clone(), k, fields)) });
                }
                let x = self.b.var(x);
                Ok(self.b.term(Exp::Match(x, arms)))
            }
            t => refuse(ID, &format!("an argument of type {t}"), None),
        }
    }
    /// A value of the result without its backpropagators.
    fn value(&mut self, y: Var, t: &Type) -> Term {
        rebuilt(&mut self.b, y, t, &mut |b, y, t| {
            let y = b.var(y);
            if t.is_float() { b.proj(y, 0) } else { y }
        })
    }
    /// Every number with a backpropagator that gives zero.
    fn stopped(&mut self, x: Var, t: &Type, span: Option<Span>) -> Res<Term> {
        if mentions_function(t) {
            return refuse(ID, "`stop_gradient` of a function or of a value of a recursive type", span);
        }
        let all = self.all.clone();
        Ok(rebuilt(&mut self.b, x, t, &mut |b, x, t| {
            let x = b.var(x);
            if !t.is_float() {
                return x;
            }
            let value = b.proj(x, 0);
            without(b, &all, value, t)
        }))
    }
    /// What a cotangent of the result contributes to those of the arguments.
    fn outer(&mut self, y: Var, t: &Type, z: Var) -> Res<Term> {
        match t {
            Type::Scalar(s) if s.is_float() => {
                let (back, z) = (component(&mut self.b, y, 1), self.b.var(z));
                Ok(self.b.apply(back, [z]))
            }
            Type::Scalar(_) => Ok(self.zero()),
            Type::Tuple(ts) => {
                let mut sum: Option<Term> = None;
                for (i, t) in ts.iter().enumerate() {
                    let (part, d) = (component(&mut self.b, y, i), component(&mut self.b, z, i));
                    let part = self.bound(part, |s, y| s.bound(d, |s, z| s.outer(y, t, z)))?;
                    sum = Some(match sum {
                        Some(sum) => self.b.term(Exp::Plus(sum, part)),
                        None => part,
                    });
                }
                Ok(sum.unwrap_or_else(|| self.zero()))
            }
            Type::Array(t) => {
                let (state, i) = (self.b.fresh(self.all.clone(), "s"), self.b.fresh(Type::I64, "i"));
                let (array, at) = (self.b.var(y), self.b.var(i));
                let n = self.b.size(array.clone(), 0);
                let element = self.b.index(array, vec![at.clone()]);
                let all = self.b.var(z);
                let d = self.b.index(all, vec![at]);
                let part = self.bound(element, |s, y| s.bound(d, |s, z| s.outer(y, t, z)))?;
                let before = self.b.var(state);
                let body = self.b.term(Exp::Plus(before, part));
                let init = self.zero();
                let (form, attrs) = (LoopForm::For(i, n), LoopAttrs::default());
                Ok(self.b.term(Exp::Loop(Loop { state, init, form, body, attrs })))
            }
            Type::Sum(variants) => {
                let from = self.b.program.variants(&self.b.program.vars[y].ty).unwrap_or_default().to_vec();
                let mut arms = Vec::new();
                for (k, (v, new)) in variants.iter().zip(from).enumerate() {
                    let params: Vec<Var> = new.fields.into_iter().map(|t| self.b.fresh(t, "y")).collect();
                    let d = self.b.var(z);
                    let d = self.b.term(Exp::SparseCast(d, k));
                    let one = params.len() == 1;
                    let body = self.bound(d, |s, d| {
                        let mut sum = s.zero();
                        for (i, (y, t)) in params.iter().zip(&v.fields).enumerate() {
                            let part = if one { s.b.var(d) } else { component(&mut s.b, d, i) };
                            let part = s.bound(part, |s, z| s.outer(*y, t, z))?;
                            sum = s.b.term(Exp::Plus(sum, part));
                        }
                        Ok(sum)
                    })?;
                    arms.push(Arm { params, body });
                }
                let y = self.b.var(y);
                Ok(self.b.term(Exp::Match(y, arms)))
            }
            t => refuse(ID, &format!("a result of type {t}"), None),
        }
    }

    // --- pieces ---

    /// `let v = value in f v`
    fn bound(&mut self, value: Term, f: impl FnOnce(&mut Self, Var) -> Res<Term>) -> Res<Term> {
        let v = self.b.fresh(value.ty().clone(), "p");
        let body = f(self, v)?;
        Ok(self.b.term(Exp::Let(v, value, body)))
    }
    /// `0_`
    fn zero(&mut self) -> Term {
        self.b.term(Exp::Zero(self.all.clone()))
    }
    /// `(value, \_z. 0_)`
    fn without(&mut self, value: Term, s: Scalar) -> Term {
        without(&mut self.b, &self.all, value, s)
    }
}

/// `(value, \_z. 0_)`
fn without(b: &mut Builder<'_>, all: &Type, value: Term, s: Scalar) -> Term {
    let z = b.fresh(Type::Scalar(s), "z");
    let zero = b.term(Exp::Zero(all.clone()));
    let back = b.term(Exp::Lam(z, zero));
    b.tuple(vec![value, back])
}
