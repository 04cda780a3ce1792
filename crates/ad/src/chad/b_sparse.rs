//! CHAD with sparse cotangents: zeros and one-hot values cost nothing, sums of environments still cost their union.
//!
//! Source: T. Smeding, thesis, 6.3.1: rules Fig. 6.2, environments Fig. 6.5.
//!
//! Judgement: `G |- t : s` becomes `D1[G] |- D_G[t] : (D1[s], D2[s] -> EV)`
//!
//! Types: those of [`super`]; `EV`, for every `G` of the function, is a map from the number of a variable (outermost 0) to `oneof` of the cotangent
//! types of all its variables.
//!
//! Notation: `EMap G` `map(oneof(..))` · `one_x` [`Exp::MapInsert`] into the empty map · `+` of environments (`union`) [`Exp::Plus`] · `pop`, `split`
//! [`Exp::MapPopMax`], as the innermost variable has the largest number
//!
//! Rules:
//! ```text
//! D[x]                 = (x, \d. {x: d})
//! D[r]                 = (r, \d. {})
//! D[op(e1, .., en)]    = let p = (D[e1], .., D[en]) in (op(p.i.0), \d. p.1.1 (d1op d) + .. + p.n.1 (dnop d))
//! D[let x = a in b]    = let p = D[a] in let x = p.0 in let q = D[b] in (q.0, \d. let (v, dx) = pop x (q.1 d) in v + p.1 dx)
//! D[()]                = ((), \d. {})
//! D[(e1, .., en)]      = let p = (D[e1], .., D[en]) in ((p.i.0), \d. p.1.1 d.1 + .. + p.n.1 d.n)
//! D[e.i]               = let p = D[e] in (p.0.i, \d. p.1 <0, .., d, .., 0>)
//! D[#k e]              = let p = D[e] in (#k p.0, \d. p.1 (lcast_k d))
//! D[match e { #k x -> b_k }]
//!                      = let z = D[e] in match z.0 { #k x -> let q = D[b_k] in (q.0, \d. let (v, dx) = pop x (q.1 d) in v + z.1 (linj_k dx)) }
//! D[if c then a else b] = let z = D[c] in if z.0 then D[a] else D[b]
//! D[sign e]            = let p = D[e] in (sign p.0, \d. {})
//! ```
//!
//! Differences from the paper:
//! 1. Products and sums have any number of components; a payload of several fields counts as a product, one without fields binds nothing.
//! 2. Maps hold values of one type, so that the cotangents of an environment are alternatives of one sum.
//!
//! Guarantee: a constant times the program's cost, and the unions: a factor of the logarithm of the number of variables on balanced trees, however fast unions are (6.10.1;
//! `crates/testkit/tests/chad_growth.rs` counts the work of unions).
//!
//! Not supported: functions, arrays, loops, recursive types, derivatives inside.

use super::{Argument, component, cotangent, fresh_name, payload, refuse, refuse_construct, scaled, slopes};
use crate::contract::Unsupported;
use crate::tangent::is_zero;
use pullback_lambda::{Arm, Builder, Exp, FunId, Program, Term, Type, Var, Variant};
use pullback_prim::Prim;
use std::sync::Arc;

/// The name by which it is chosen.
pub const ID: &str = "chad-sparse";

/// Adds, for a function `f : (s1, .., sn) -> t`, the function `(s1, .., sn, D2[t]) -> (t, (D2[s1], .., D2[sn]))`: value and cotangents of the arguments.
///
/// Errors: constructs that are not supported; the program is as before then.
pub fn vjp(program: &mut Program, f: FunId) -> Result<FunId, Unsupported> {
    let inner = transform(program, f)?;
    let fun = program.funs[inner].clone();
    let Type::Tuple(parts) = &fun.result else { return refuse(ID, "a function without a result", fun.span) };
    let kinds = match &parts[1] {
        Type::Map(entry) => match &**entry {
            Type::SparseSum(kinds) => kinds.clone(),
            _ => Arc::from([]),
        },
        _ => Arc::from([]),
    };
    let mut sparse = Sparse { b: Builder::new(program), scope: Vec::new(), kinds };
    let params: Vec<Var> = fun.params.iter().map(|p| sparse.renamed(*p)).collect();
    let args = params.iter().map(|p| sparse.b.var(*p)).collect();
    let pair = sparse.b.call(inner, args);
    let source = &params[..params.len() - 1];
    let bars = source.iter().map(|p| cotangent(ID, &sparse.b.program.vars[*p].ty, fun.span));
    let bars = bars.collect::<Res<Vec<Type>>>()?;
    let body = sparse.bound(pair, |s, r| {
        let parts = bars.iter().enumerate().map(|(level, bar)| {
            let (map, key) = (component(&mut s.b, r, 1), s.b.i64(level as i64));
            let found = s.b.term(Exp::MapLookup(map, key));
            let kind = s.kind(bar);
            s.b.match_(found, |b, k, payload| match k {
                0 => b.term(Exp::Zero(bar.clone())),
                _ => {
                    let value = b.var(payload[0]);
                    b.term(Exp::SparseCast(value, kind))
                }
            })
        });
        let parts = parts.collect();
        let (value, parts) = (component(&mut s.b, r, 0), s.b.tuple(parts));
        Ok(s.b.tuple(vec![value, parts]))
    })?;
    let name = fresh_name(sparse.b.program, f, "vjp");
    let g = sparse.b.declare(&name, &[], body.ty().clone(), None);
    sparse.b.program.funs[g].params = params;
    sparse.b.define(g, body);
    debug_assert!(sparse.b.errors.is_empty(), "{:?}", sparse.b.errors);
    Ok(g)
}

/// Adds the function `(s1, .., sn, D2[t]) -> (t, EV)`: value and environment.
///
/// Errors: constructs that are not supported; the program is as before then.
pub fn transform(program: &mut Program, f: FunId) -> Result<FunId, Unsupported> {
    let before = program.clone();
    let mut sparse = Sparse { b: Builder::new(program), scope: Vec::new(), kinds: Arc::from([]) };
    let made = sparse.function(f);
    let errors = std::mem::take(&mut sparse.b.errors);
    debug_assert!(errors.is_empty(), "{errors:?}");
    if made.is_err() {
        *program = before;
    }
    made
}

struct Sparse<'p> {
    b: Builder<'p>,
    /// Outermost first: the variable of the source, that of the result, its cotangent type.
    scope: Vec<(Var, Var, Type)>,
    /// The cotangent types of all variables.
    kinds: Arc<[Type]>,
}

type Res<T> = Result<T, Unsupported>;

impl Sparse<'_> {
    fn function(&mut self, f: FunId) -> Res<FunId> {
        let fun = self.b.program.funs[f].clone();
        let Some(body) = fun.body else { return refuse(ID, "a function without a body", fun.span) };
        let mut kinds = Vec::new();
        for p in &fun.params {
            let info = self.b.program.vars[*p].clone();
            let bar = cotangent(ID, &info.ty, info.span)?;
            let new = self.b.fresh(info.ty, info.hint.as_str());
            self.scope.push((*p, new, bar.clone()));
            kinds.push(bar);
        }
        self.binders(&body, &mut kinds)?;
        kinds.sort();
        kinds.dedup();
        self.kinds = kinds.into();
        let seed = self.b.fresh(cotangent(ID, &fun.result, fun.span)?, "seed");
        let pair = self.term(&body)?;
        let body = self.bound(pair, |s, r| {
            let value = component(&mut s.b, r, 0);
            let (back, seed) = (component(&mut s.b, r, 1), s.b.var(seed));
            let environment = s.b.apply(back, [seed]);
            Ok(s.b.tuple(vec![value, environment]))
        })?;
        let mut params: Vec<Var> = self.scope.iter().map(|(_, new, _)| *new).collect();
        params.push(seed);
        let name = fresh_name(self.b.program, f, ID);
        let g = self.b.declare(&name, &[], body.ty().clone(), None);
        self.b.program.funs[g].params = params;
        self.b.define(g, body);
        Ok(g)
    }
    /// The cotangent types of the variables that a term binds.
    fn binders(&self, t: &Term, kinds: &mut Vec<Type>) -> Res<()> {
        let mut bind = |v: &Var| {
            let info = &self.b.program.vars[*v];
            kinds.push(cotangent(ID, &info.ty, info.span)?);
            Ok(())
        };
        match t.exp() {
            Exp::Let(v, ..) => bind(v)?,
            Exp::Match(_, arms) => arms.iter().flat_map(|arm| &arm.params).try_for_each(bind)?,
            _ => {}
        }
        let mut children = Vec::new();
        t.exp().children(&mut |child: &Term| children.push(child.clone()));
        children.iter().try_for_each(|child| pullback_lambda::with_stack(|| self.binders(child, kinds)))
    }

    /// `D_G[t]`
    fn term(&mut self, t: &Term) -> Res<Term> {
        let outer = std::mem::replace(&mut self.b.span, t.span());
        let out = pullback_lambda::with_stack(|| self.rule(t));
        self.b.span = outer;
        out
    }
    fn rule(&mut self, t: &Term) -> Res<Term> {
        match t.exp() {
            // [chad_sparse.var]  D[x] = (x, \d. {x: d})
            Exp::Var(x) => {
                let Some(level) = self.scope.iter().rposition(|(source, ..)| source == x) else {
                    return refuse(ID, "a variable that is not in scope", t.span());
                };
                let value = self.b.var(self.scope[level].1);
                let back = self.back(t, |s, d| Ok(s.one_hot(level, d)))?;
                Ok(self.b.tuple(vec![value, back]))
            }
            // [chad_sparse.const]  D[r] = (r, \d. {})
            Exp::Const(c) => {
                let value = self.b.constant(*c);
                let back = self.back(t, |s, _| Ok(s.nothing()))?;
                Ok(self.b.tuple(vec![value, back]))
            }
            // [chad_sparse.prim]  D[op(es)] = let p = (D[es]) in (op(p.i.0), \d. p.1.1 (d1op d) + .. + p.n.1 (dnop d))
            Exp::Prim(prim, args) => self.prim(*prim, args, t),
            // [chad_sparse.let]  D[let x = a in b] = let p = D[a] in let x = p.0 in let q = D[b] in (q.0, \d. let (v, dx) = pop x (q.1 d) in v + p.1 dx)
            Exp::Let(x, a, b) => {
                let p = self.term(a)?;
                self.bound(p, |s, p| {
                    let value = component(&mut s.b, p, 0);
                    let new = s.renamed(*x);
                    let body = s.under(&[(*x, new)], b, |s, dx| {
                        let back = component(&mut s.b, p, 1);
                        s.b.apply(back, [dx])
                    })?;
                    Ok(s.b.term(Exp::Let(new, value, body)))
                })
            }
            // [chad_sparse.tuple]  D[(es)] = let p = (D[es]) in ((p.i.0), \d. p.1.1 d.1 + .. + p.n.1 d.n)
            Exp::Tuple(items) => {
                let n = items.len();
                let all = self.all(items)?;
                self.bound(all, |s, p| {
                    let values = (0..n).map(|i| s.part(p, i, 0)).collect();
                    let value = s.b.tuple(values);
                    let back = s.back(t, |s, d| {
                        let parts = (0..n).map(|i| {
                            let d = s.b.var(d);
                            let d = s.b.term(Exp::SparseProj(d, i));
                            let back = s.part(p, i, 1);
                            s.b.apply(back, [d])
                        });
                        let parts = parts.collect();
                        Ok(s.total(parts))
                    })?;
                    Ok(s.b.tuple(vec![value, back]))
                })
            }
            // [chad_sparse.proj]  D[e.i] = let p = D[e] in (p.0.i, \d. p.1 <0, .., d, .., 0>)
            Exp::Proj(e, i) => {
                let Type::SparseTuple(bars) = cotangent(ID, e.ty(), t.span())? else {
                    return refuse(ID, "a component of what is no product", t.span());
                };
                let p = self.term(e)?;
                self.bound(p, |s, p| {
                    let value = component(&mut s.b, p, 0);
                    let value = s.b.proj(value, *i);
                    let back = s.back(t, |s, d| {
                        let parts = bars.iter().enumerate().map(|(k, bar)| {
                            if k == *i { s.b.var(d) } else { s.b.term(Exp::Zero(bar.clone())) }
                        });
                        let parts = parts.collect();
                        let one_hot = s.b.term(Exp::SparseTuple(parts));
                        let back = component(&mut s.b, p, 1);
                        Ok(s.b.apply(back, [one_hot]))
                    })?;
                    Ok(s.b.tuple(vec![value, back]))
                })
            }
            // [chad_sparse.inject]  D[#k e] = let p = D[e] in (#k p.0, \d. p.1 (lcast_k d))
            Exp::Inject(ty, k, fields) => {
                let p = match &fields[..] {
                    [e] => self.term(e)?,
                    fields => {
                        let product = self.b.tuple(fields.to_vec());
                        self.rule(&product)?
                    }
                };
                let count = fields.len();
                self.bound(p, |s, p| {
                    let value = component(&mut s.b, p, 0);
                    let fields = match count {
                        1 => vec![value],
                        n => (0..n).map(|i| s.b.proj(value.clone(), i)).collect(),
                    };
                    let value = s.b.term(Exp::Inject(ty.clone(), *k, fields));
                    let back = s.back(t, |s, d| {
                        let d = s.b.var(d);
                        let d = s.b.term(Exp::SparseCast(d, *k));
                        let back = component(&mut s.b, p, 1);
                        Ok(s.b.apply(back, [d]))
                    })?;
                    Ok(s.b.tuple(vec![value, back]))
                })
            }
            // [chad_sparse.match]  D[match e { #k x -> b }] = let z = D[e] in match z.0 { #k x -> let q = D[b] in (q.0, \d. let (v, dx) = pop x (q.1 d) in v + z.1 (linj_k dx)) }
            Exp::Match(e, arms) => self.match_(e, arms),
            // [chad_sparse.if]  D[if c then a else b] = let z = D[c] in if z.0 then D[a] else D[b]
            Exp::If(c, a, b) => {
                let z = self.term(c)?;
                self.bound(z, |s, z| {
                    let c = component(&mut s.b, z, 0);
                    let (a, b) = (s.term(a)?, s.term(b)?);
                    Ok(s.b.if_(c, a, b))
                })
            }
            // [chad_sparse.sign]  D[sign e] = let p = D[e] in (sign p.0, \d. {})
            Exp::Sign(e) => {
                let p = self.term(e)?;
                self.bound(p, |s, p| {
                    let value = component(&mut s.b, p, 0);
                    let value = s.b.term(Exp::Sign(value));
                    let back = s.back(t, |s, _| Ok(s.nothing()))?;
                    Ok(s.b.tuple(vec![value, back]))
                })
            }
            // [chad_sparse.stop_gradient]  D[stop e] = let p = D[e] in (p.0, \d. 0)
            Exp::StopGradient(e) => {
                let p = self.term(e)?;
                self.bound(p, |s, p| {
                    let value = component(&mut s.b, p, 0);
                    let back = s.back(t, |s, _| Ok(s.nothing()))?;
                    Ok(s.b.tuple(vec![value, back]))
                })
            }
            _ => refuse_construct(ID, t),
        }
    }

    fn prim(&mut self, prim: Prim, args: &[Term], t: &Term) -> Res<Term> {
        // One product of arguments is the arguments, by its projections.
        let product = args.len() == 1 && matches!(args[0].ty(), Type::Tuple(_));
        let n = if product { prim.params().len() } else { args.len() };
        let all = if product { self.term(&args[0])? } else { self.all(args)? };
        let slopes = slopes(self.b.program, prim, args);
        self.bound(all, |s, p| {
            let argument = |i| if product { Argument::Inside(p, i) } else { Argument::Part(p, i) };
            let args: Vec<Argument> = (0..n).map(argument).collect();
            let values = args.iter().map(|a| a.term(&mut s.b)).collect();
            let value = s.b.term(Exp::Prim(prim, values));
            let back = s.back(t, |s, d| {
                let Some(slopes) = &slopes else { return Ok(s.nothing()) };
                if product {
                    let parts = slopes.iter().map(|slope| scaled(&mut s.b, prim, *slope, &args, d));
                    let parts = parts.collect();
                    let parts = s.b.term(Exp::SparseTuple(parts));
                    let back = component(&mut s.b, p, 1);
                    return Ok(s.b.apply(back, [parts]));
                }
                let some = slopes.iter().enumerate().filter(|(_, slope)| !is_zero(slope.1));
                let parts = some.map(|(i, slope)| {
                    let bar = scaled(&mut s.b, prim, *slope, &args, d);
                    let back = s.part(p, i, 1);
                    s.b.apply(back, [bar])
                });
                let parts = parts.collect();
                Ok(s.total(parts))
            })?;
            Ok(s.b.tuple(vec![value, back]))
        })
    }
    fn match_(&mut self, e: &Term, arms: &[Arm]) -> Res<Term> {
        let variants: Vec<Variant> = self.b.program.variants(e.ty()).unwrap_or_default().to_vec();
        let bar = cotangent(ID, e.ty(), e.span())?;
        let z = self.term(e)?;
        self.bound(z, |s, z| {
            let mut new = Vec::new();
            for (k, (arm, variant)) in arms.iter().zip(&variants).enumerate() {
                let params: Vec<(Var, Var)> = arm.params.iter().map(|x| (*x, s.renamed(*x))).collect();
                let whole = cotangent(ID, &payload(variant), e.span())?;
                let body = s.under(&params, &arm.body, |s, dx| {
                    let dx = if params.is_empty() { s.b.term(Exp::Zero(whole)) } else { dx };
                    let d = s.b.term(Exp::SparseInject(bar.clone(), k, dx));
                    let back = component(&mut s.b, z, 1);
                    s.b.apply(back, [d])
                })?;
                new.push(Arm { params: params.into_iter().map(|(_, new)| new).collect(), body });
            }
            let scrutinee = component(&mut s.b, z, 0);
            Ok(s.b.term(Exp::Match(scrutinee, new)))
        })
    }

    // --- environments ---

    /// `oneof` of all cotangent types.
    fn entry(&self) -> Type {
        Type::SparseSum(self.kinds.clone())
    }
    /// The alternative for cotangents of this type.
    fn kind(&self, bar: &Type) -> usize {
        self.kinds.iter().position(|kind| kind == bar).unwrap_or_default()
    }
    /// `{}`
    fn nothing(&mut self) -> Term {
        let entry = self.entry();
        self.b.term(Exp::MapEmpty(entry))
    }
    /// `{x: d}` for variable number `level`
    fn one_hot(&mut self, level: usize, d: Var) -> Term {
        let entry = self.entry();
        let kind = self.kind(&self.scope[level].2.clone());
        let combine = self.b.lams(&[("a", entry.clone()), ("b", entry.clone())], |b, v| {
            let (x, y) = (b.var(v[0]), b.var(v[1]));
            b.term(Exp::Plus(x, y))
        });
        let (map, key, d) = (self.nothing(), self.b.i64(level as i64), self.b.var(d));
        let value = self.b.term(Exp::SparseInject(entry, kind, d));
        self.b.term(Exp::MapInsert { combine, map, key, value })
    }
    /// `v1 + .. + vn`
    fn total(&mut self, parts: Vec<Term>) -> Term {
        let mut parts = parts.into_iter();
        let Some(first) = parts.next() else { return self.nothing() };
        parts.fold(first, |sum, part| self.b.term(Exp::Plus(sum, part)))
    }
    /// `pop`: the environment without variable number `level`, the innermost, and its cotangent.
    fn split(&mut self, v: Var, level: usize, bar: &Type) -> Term {
        let kind = self.kind(bar);
        let map = self.b.var(v);
        let popped = self.b.term(Exp::MapPopMax(map));
        self.b.match_(popped, |b, k, found| {
            let unchanged = |b: &mut Builder<'_>| {
                let (map, zero) = (b.var(v), b.term(Exp::Zero(bar.clone())));
                b.tuple(vec![map, zero])
            };
            if k == 0 {
                return unchanged(b);
            }
            let (key, value, rest) = (b.var(found[0]), b.var(found[1]), b.var(found[2]));
            let level = b.i64(level as i64);
            let here = b.op2(pullback_prim::Op::Eq, key, level);
            let value = b.term(Exp::SparseCast(value, kind));
            let without = b.tuple(vec![rest, value]);
            let unchanged = unchanged(b);
            b.if_(here, without, unchanged)
        })
    }

    // --- pieces of the rules ---

    /// `p.i.j`
    fn part(&mut self, p: Var, i: usize, j: usize) -> Term {
        let pair = component(&mut self.b, p, i);
        self.b.proj(pair, j)
    }
    /// A variable of the result for one of the source.
    fn renamed(&mut self, x: Var) -> Var {
        let info = self.b.program.vars[x].clone();
        self.b.fresh(info.ty, info.hint.as_str())
    }
    /// `let v = value in f v`
    fn bound(&mut self, value: Term, f: impl FnOnce(&mut Self, Var) -> Res<Term>) -> Res<Term> {
        let v = self.b.fresh(value.ty().clone(), "p");
        let body = f(self, v)?;
        Ok(self.b.term(Exp::Let(v, value, body)))
    }
    /// `\d : D2[type of t]. f d`
    fn back(&mut self, t: &Term, f: impl FnOnce(&mut Self, Var) -> Res<Term>) -> Res<Term> {
        let d = self.b.fresh(cotangent(ID, t.ty(), t.span())?, "d");
        let body = f(self, d)?;
        Ok(self.b.term(Exp::Lam(d, body)))
    }
    /// `(D[e1], .., D[en])`
    fn all(&mut self, items: &[Term]) -> Res<Term> {
        let items = items.iter().map(|e| self.term(e)).collect::<Res<Vec<_>>>()?;
        Ok(self.b.tuple(items))
    }
    /// `let q = D[body] in (q.0, \d. let (v, dx) = pop x (q.1 d) in v + after dx)`, the body under these variables.
    fn under(
        &mut self,
        vars: &[(Var, Var)],
        body: &Term,
        after: impl FnOnce(&mut Self, Term) -> Term,
    ) -> Res<Term> {
        let outside = self.scope.len();
        let mut bars = Vec::new();
        for (x, new) in vars {
            let bar = cotangent(ID, &self.b.program.vars[*x].ty, body.span())?;
            self.scope.push((*x, *new, bar.clone()));
            bars.push(bar);
        }
        let q = self.term(body);
        self.scope.truncate(outside);
        self.bound(q?, |s, q| {
            let value = component(&mut s.b, q, 0);
            let back = s.back(body, |s, d| {
                let (back, d) = (component(&mut s.b, q, 1), s.b.var(d));
                let v = s.b.apply(back, [d]);
                s.popped(v, outside, &bars, Vec::new(), after)
            })?;
            Ok(s.b.tuple(vec![value, back]))
        })
    }
    /// Takes the innermost of these variables out of an environment, then the others; `outside`: the number of the outermost.
    fn popped(
        &mut self,
        v: Term,
        outside: usize,
        bars: &[Type],
        mut found: Vec<Var>,
        after: impl FnOnce(&mut Self, Term) -> Term,
    ) -> Res<Term> {
        self.bound(v, |s, v| {
            let Some((bar, rest)) = bars.split_last() else {
                let dx = match &found[..] {
                    [one] => s.b.var(*one),
                    all => {
                        let parts = all.iter().rev().map(|d| s.b.var(*d)).collect();
                        if all.is_empty() { s.b.unit() } else { s.b.term(Exp::SparseTuple(parts)) }
                    }
                };
                let after = after(s, dx);
                let v = s.b.var(v);
                return Ok(s.b.term(Exp::Plus(v, after)));
            };
            let split = s.split(v, outside + rest.len(), bar);
            s.bound(split, |s, split| {
                let (v, dx) = (component(&mut s.b, split, 0), component(&mut s.b, split, 1));
                let x = s.b.fresh(bar.clone(), "dx");
                found.push(x);
                let body = pullback_lambda::with_stack(|| s.popped(v, outside, rest, found, after))?;
                Ok(s.b.term(Exp::Let(x, dx, body)))
            })
        })
    }
}
