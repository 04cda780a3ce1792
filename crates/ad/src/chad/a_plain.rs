//! CHAD as chapter 5 has it, simply typed: right, compositional, and too slow, each for a reason that a later step removes.
//!
//! Source: T. Smeding, thesis, chapter 5: rules Figs. 5.3 and 5.4, functions 5.1.4; sums and environments as in Figs. 6.2 and 6.4.
//!
//! Judgement: `G |- t : s` becomes `D1[G] |- D_G[t] : (D1[s], D2[s] -> EV G)`
//!
//! Types:
//! ```text
//! D1[t] = t   without functions              D1[s -> t] = D1[s] -> (D1[t], D2[t] -> D2[s])
//! D2[f64] = f64     D2[f32] = f32     D2[another scalar] = ()     D2[(t1, .., tn)] = (D2[t1], .., D2[tn])
//! D2[#c1 t1 | .. | #cn tn] = oneof(D2[t1], .., D2[tn])            D2[s -> t] = [](D1[s], D2[t])      the calls, with their cotangents
//! EV () = ()     EV (G, x : t) = (EV G, D2[t])
//! ```
//! The cotangent of a sum belongs to the alternative that there is: a predicate (`compat`) here, which tests check, a dependent type there.
//!
//! Notation: `one_x d` `one_hot` · `+` of cotangents `plus` · `zero` `zero` · `copowfold` the loop in the rule of functions
//!
//! Rules:
//! ```text
//! D[x]                 = (x, \d. one_x d)
//! D[r]                 = (r, \d. zero)
//! D[op(e1, .., en)]    = let p = (D[e1], .., D[en]) in (op(p.i.0), \d. p.1.1 (d1op d) + .. + p.n.1 (dnop d))
//! D[let x = a in b]    = let p = D[a] in let x = p.0 in let q = D[b] in (q.0, \d. let v = q.1 d in v.0 + p.1 v.1)
//! D[\x. b]             = let f = \x. D[b] in (\x. let q = f x in (q.0, \d. (q.1 d).1), \log. sum of ((f x).1 d).0 over (x, d) of log)
//! D[a b]               = let f = D[a] in let x = D[b] in let y = f.0 x.0 in (y.0, \d. f.1 [(x.0, d)] + x.1 (y.1 d))
//! D[(e1, .., en)]      = let p = (D[e1], .., D[en]) in ((p.i.0), \d. p.1.1 d.1 + .. + p.n.1 d.n)
//! D[e.i]               = let p = D[e] in (p.0.i, \d. p.1 (0, .., d, .., 0))
//! D[#k e]              = let p = D[e] in (#k p.0, \d. p.1 (lcast_k d))
//! D[match e { #k x -> b_k }]
//!                      = let z = D[e] in match z.0 { #k x -> let q = D[b_k] in (q.0, \d. let v = q.1 d in v.0 + z.1 (linj_k v.1)) }
//! D[if c then a else b] = let z = D[c] in if z.0 then D[a] else D[b]
//! D[sign e]            = let p = D[e] in (sign p.0, \d. zero)
//! ```
//!
//! Differences from the paper:
//! 1. Simply typed: a sum's cotangent may be zero or of the wrong alternative, the latter an error (unreachable for cotangents that fit).
//! 2. Products and sums have any number of components; a payload of several fields counts as a product, one without fields binds nothing.
//! 3. The list of calls is an array, its append a concatenation.
//!
//! Guarantee: none. Zero and `+` cost the size of the environment (6.2), calls are reversed twice: `2^n` for functions nested `n` deep (6.8). Tests demand that it
//! is slow (`crates/testkit/tests/chad_growth.rs`).
//!
//! Not supported: top-level functions, functions inside of sums, arrays, loops, recursive types, derivatives inside.

use super::{Argument, component, fresh_name, payload, refuse, refuse_construct, scaled, slopes};
use crate::contract::Unsupported;
use crate::tangent::is_zero;
use pullback_base::Span;
use pullback_lambda::{
    Arm, Builder, Exp, FunId, Loop, LoopAttrs, LoopForm, Program, Term, Type, Var, Variant,
};
use pullback_prim::Prim;

/// The name by which it is chosen.
pub const ID: &str = "chad";

/// Adds, for a function `f : (s1, .., sn) -> t` of first-order type, the function `(s1, .., sn, D2[t]) -> (t, (D2[s1], .., D2[sn]))`: value and cotangents of the
/// arguments.
///
/// Errors: constructs that are not supported; the program is as before then.
pub fn vjp(program: &mut Program, f: FunId) -> Result<FunId, Unsupported> {
    let before = program.clone();
    let mut plain = Plain { b: Builder::new(program), scope: Vec::new() };
    let made = plain.function(f);
    let errors = std::mem::take(&mut plain.b.errors);
    debug_assert!(errors.is_empty(), "{errors:?}");
    if made.is_err() {
        *program = before;
    }
    made
}

struct Plain<'p> {
    b: Builder<'p>,
    /// Outermost first: the variable of the source, that of the result, its cotangent type.
    scope: Vec<(Var, Var, Type)>,
}

type Res<T> = Result<T, Unsupported>;

impl Plain<'_> {
    fn function(&mut self, f: FunId) -> Res<FunId> {
        let fun = self.b.program.funs[f].clone();
        let Some(body) = fun.body else { return refuse(ID, "a function without a body", fun.span) };
        let mut params = Vec::new();
        for p in &fun.params {
            let info = self.b.program.vars[*p].clone();
            let (ty, bar) = (self.primal(&info.ty, fun.span)?, self.bar(&info.ty, fun.span)?);
            let new = self.b.fresh(ty, info.hint.as_str());
            self.scope.push((*p, new, bar));
            params.push(new);
        }
        let seed_type = self.bar(&fun.result, fun.span)?;
        let seed = self.b.fresh(seed_type, "seed");
        let pair = self.term(&body)?;
        let bars: Vec<Type> = self.scope.iter().map(|(_, _, bar)| bar.clone()).collect();
        let body = self.bound(pair, |s, r| {
            let value = component(&mut s.b, r, 0);
            let back = component(&mut s.b, r, 1);
            let seed = s.b.var(seed);
            let environment = s.b.apply(back, [seed]);
            s.bound(environment, |s, v| {
                let count = bars.len();
                // ((((), d1), d2), .. dn)
                let parts = (0..count).map(|i| {
                    let inside = (i + 1..count).fold(s.b.var(v), |rest, _| s.b.proj(rest, 0));
                    s.b.proj(inside, 1)
                });
                let parts = parts.collect();
                let parts = s.b.tuple(parts);
                Ok(s.b.tuple(vec![value, parts]))
            })
        })?;
        let name = fresh_name(self.b.program, f, ID);
        let g = self.b.declare(&name, &[], body.ty().clone(), None);
        params.push(seed);
        self.b.program.funs[g].params = params;
        self.b.define(g, body);
        Ok(g)
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
            // [chad_plain.var]  D[x] = (x, \d. one_x d)
            Exp::Var(x) => {
                let Some(k) = self.scope.iter().rposition(|(source, ..)| source == x) else {
                    return refuse(ID, "a variable that is not in scope", t.span());
                };
                let value = self.b.var(self.scope[k].1);
                let back = self.back(t, |s, d| Ok(s.one_hot(k, d)))?;
                Ok(self.b.tuple(vec![value, back]))
            }
            // [chad_plain.const]  D[r] = (r, \d. zero)
            Exp::Const(c) => {
                let value = self.b.constant(*c);
                let back = self.back(t, |s, _| Ok(s.nothing()))?;
                Ok(self.b.tuple(vec![value, back]))
            }
            // [chad_plain.prim]  D[op(es)] = let p = (D[es]) in (op(p.i.0), \d. p.1.1 (d1op d) + .. + p.n.1 (dnop d))
            Exp::Prim(prim, args) => self.prim(*prim, args, t),
            // [chad_plain.let]  D[let x = a in b] = let p = D[a] in let x = p.0 in let q = D[b] in (q.0, \d. let v = q.1 d in v.0 + p.1 v.1)
            Exp::Let(x, a, b) => {
                let p = self.term(a)?;
                self.bound(p, |s, p| {
                    let value = component(&mut s.b, p, 0);
                    let new = s.renamed(*x)?;
                    let body = s.under(&[(*x, new)], b, |s, dx| {
                        let back = component(&mut s.b, p, 1);
                        s.b.apply(back, [dx])
                    })?;
                    Ok(s.b.term(Exp::Let(new, value, body)))
                })
            }
            // [chad_plain.lam]  D[\x. b] = let f = \x. D[b] in (\x. let q = f x in (q.0, \d. (q.1 d).1), \log. sum of ((f x).1 d).0 over (x, d) of log)
            Exp::Lam(x, b) => self.lam(*x, b, t),
            // [chad_plain.app]  D[a b] = let f = D[a] in let x = D[b] in let y = f.0 x.0 in (y.0, \d. f.1 [(x.0, d)] + x.1 (y.1 d))
            Exp::App(a, b) => self.app(a, b, t),
            // [chad_plain.tuple]  D[(es)] = let p = (D[es]) in ((p.i.0), \d. p.1.1 d.1 + .. + p.n.1 d.n)
            Exp::Tuple(items) => {
                let n = items.len();
                let all = self.all(items)?;
                self.bound(all, |s, p| {
                    let values = (0..n).map(|i| s.part(p, i, 0)).collect();
                    let value = s.b.tuple(values);
                    let back = s.back(t, |s, d| {
                        let parts = (0..n).map(|i| {
                            let (back, d) = (s.part(p, i, 1), component(&mut s.b, d, i));
                            s.b.apply(back, [d])
                        });
                        let parts = parts.collect();
                        s.total(parts)
                    })?;
                    Ok(s.b.tuple(vec![value, back]))
                })
            }
            // [chad_plain.proj]  D[e.i] = let p = D[e] in (p.0.i, \d. p.1 (0, .., d, .., 0))
            Exp::Proj(e, i) => {
                let Type::Tuple(bars) = self.bar(e.ty(), t.span())? else {
                    return refuse(ID, "a component of what is no product", t.span());
                };
                let p = self.term(e)?;
                self.bound(p, |s, p| {
                    let value = component(&mut s.b, p, 0);
                    let value = s.b.proj(value, *i);
                    let back = s.back(t, |s, d| {
                        let parts = bars.iter().enumerate();
                        let parts = parts.map(|(k, bar)| if k == *i { s.b.var(d) } else { s.zero(bar) });
                        let parts = parts.collect();
                        let one_hot = s.b.tuple(parts);
                        let back = component(&mut s.b, p, 1);
                        Ok(s.b.apply(back, [one_hot]))
                    })?;
                    Ok(s.b.tuple(vec![value, back]))
                })
            }
            // [chad_plain.inject]  D[#k e] = let p = D[e] in (#k p.0, \d. p.1 (lcast_k d))
            Exp::Inject(ty, k, fields) => {
                let p = match &fields[..] {
                    [e] => self.term(e)?,
                    fields => {
                        let product = self.b.tuple(fields.to_vec());
                        self.rule(&product)?
                    }
                };
                let count = fields.len();
                let ty = self.primal(ty, t.span())?;
                self.bound(p, |s, p| {
                    let value = component(&mut s.b, p, 0);
                    let fields = match count {
                        1 => vec![value],
                        n => (0..n).map(|i| s.b.proj(value.clone(), i)).collect(),
                    };
                    let value = s.b.term(Exp::Inject(ty, *k, fields));
                    let back = s.back(t, |s, d| {
                        let d = s.b.var(d);
                        let d = s.b.term(Exp::SparseCast(d, *k));
                        let back = component(&mut s.b, p, 1);
                        Ok(s.b.apply(back, [d]))
                    })?;
                    Ok(s.b.tuple(vec![value, back]))
                })
            }
            // [chad_plain.match]  D[match e { #k x -> b }] = let z = D[e] in match z.0 { #k x -> let q = D[b] in (q.0, \d. let v = q.1 d in v.0 + z.1 (linj_k v.1)) }
            Exp::Match(e, arms) => self.match_(e, arms),
            // [chad_plain.if]  D[if c then a else b] = let z = D[c] in if z.0 then D[a] else D[b]
            Exp::If(c, a, b) => {
                let z = self.term(c)?;
                self.bound(z, |s, z| {
                    let c = component(&mut s.b, z, 0);
                    let (a, b) = (s.term(a)?, s.term(b)?);
                    Ok(s.b.if_(c, a, b))
                })
            }
            // [chad_plain.sign]  D[sign e] = let p = D[e] in (sign p.0, \d. zero)
            Exp::Sign(e) => {
                let p = self.term(e)?;
                self.bound(p, |s, p| {
                    let value = component(&mut s.b, p, 0);
                    let value = s.b.term(Exp::Sign(value));
                    let back = s.back(t, |s, _| Ok(s.nothing()))?;
                    Ok(s.b.tuple(vec![value, back]))
                })
            }
            // [chad_plain.stop_gradient]  D[stop e] = let p = D[e] in (p.0, \d. 0)
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
        let bars: Vec<Type> =
            prim.params().iter().map(|s| if s.is_float() { (*s).into() } else { Type::unit() }).collect();
        self.bound(all, |s, p| {
            let argument = |i| if product { Argument::Inside(p, i) } else { Argument::Part(p, i) };
            let args: Vec<Argument> = (0..n).map(argument).collect();
            let values = args.iter().map(|a| a.term(&mut s.b)).collect();
            let value = s.b.term(Exp::Prim(prim, values));
            let back = s.back(t, |s, d| {
                let Some(slopes) = &slopes else { return Ok(s.nothing()) };
                let mut parts = Vec::new();
                for (i, &slope) in slopes.iter().enumerate() {
                    if is_zero(slope.1) && !product {
                        continue;
                    }
                    let bar = if is_zero(slope.1) {
                        s.zero(&bars[i])
                    } else {
                        scaled(&mut s.b, prim, slope, &args, d)
                    };
                    parts.push((i, bar));
                }
                if product {
                    let parts = parts.into_iter().map(|(_, bar)| bar).collect();
                    let parts = s.b.tuple(parts);
                    let back = component(&mut s.b, p, 1);
                    return Ok(s.b.apply(back, [parts]));
                }
                let parts = parts.into_iter().map(|(i, bar)| {
                    let back = s.part(p, i, 1);
                    s.b.apply(back, [bar])
                });
                let parts = parts.collect();
                s.total(parts)
            })?;
            Ok(s.b.tuple(vec![value, back]))
        })
    }
    fn lam(&mut self, x: Var, b: &Term, t: &Term) -> Res<Term> {
        let new = self.renamed(x)?;
        let ty = self.b.program.vars[x].ty.clone();
        let (param, bar) = (self.b.program.vars[new].ty.clone(), self.bar(&ty, t.span())?);
        self.scope.push((x, new, bar));
        let body = self.term(b);
        self.scope.pop();
        let f = self.b.term(Exp::Lam(new, body?));
        self.bound(f, |s, f| {
            let y = s.b.fresh(param, "x");
            let called = s.call(f, y);
            let function = s.bound(called, |s, q| {
                let value = component(&mut s.b, q, 0);
                let back = s.back(b, |s, d| {
                    let (back, d) = (component(&mut s.b, q, 1), s.b.var(d));
                    let v = s.b.apply(back, [d]);
                    Ok(s.b.proj(v, 1))
                })?;
                Ok(s.b.tuple(vec![value, back]))
            })?;
            let function = s.b.term(Exp::Lam(y, function));
            let back = s.back(t, |s, log| {
                let whole = s.b.var(log);
                let n = s.b.size(whole, 0);
                let init = s.nothing();
                let (i, acc) = (s.b.fresh(Type::I64, "i"), s.b.fresh(init.ty().clone(), "acc"));
                let (array, at) = (s.b.var(log), s.b.var(i));
                let entry = s.b.index(array, vec![at]);
                let body = s.bound(entry, |s, entry| {
                    let x = component(&mut s.b, entry, 0);
                    s.bound(x, |s, x| {
                        let q = s.call(f, x);
                        let back = s.b.proj(q, 1);
                        let d = component(&mut s.b, entry, 1);
                        let v = s.b.apply(back, [d]);
                        let context = s.b.proj(v, 0);
                        let (sum, ty) = (s.b.var(acc), init.ty().clone());
                        s.plus(sum, context, &ty)
                    })
                })?;
                let form = LoopForm::For(i, n);
                let attrs = LoopAttrs::default();
                Ok(s.b.term(Exp::Loop(Loop { state: acc, init: init.clone(), form, body, attrs })))
            })?;
            Ok(s.b.tuple(vec![function, back]))
        })
    }
    fn app(&mut self, a: &Term, b: &Term, t: &Term) -> Res<Term> {
        let f = self.term(a)?;
        self.bound(f, |s, f| {
            let x = s.term(b)?;
            s.bound(x, |s, x| {
                let (function, value) = (component(&mut s.b, f, 0), component(&mut s.b, x, 0));
                let y = s.b.apply(function, [value]);
                s.bound(y, |s, y| {
                    let value = component(&mut s.b, y, 0);
                    let back = s.back(t, |s, d| {
                        let (arg, cotangent) = (component(&mut s.b, x, 0), s.b.var(d));
                        let entry = s.b.tuple(vec![arg, cotangent]);
                        let log = s.b.term(Exp::ArrayLit(entry.ty().clone(), vec![entry]));
                        let to_function = component(&mut s.b, f, 1);
                        let to_function = s.b.apply(to_function, [log]);
                        let (inner, d) = (component(&mut s.b, y, 1), s.b.var(d));
                        let d = s.b.apply(inner, [d]);
                        let to_arg = component(&mut s.b, x, 1);
                        let to_arg = s.b.apply(to_arg, [d]);
                        let ty = to_arg.ty().clone();
                        s.plus(to_function, to_arg, &ty)
                    })?;
                    Ok(s.b.tuple(vec![value, back]))
                })
            })
        })
    }
    fn match_(&mut self, e: &Term, arms: &[Arm]) -> Res<Term> {
        let variants: Vec<Variant> = self.b.program.variants(e.ty()).unwrap_or_default().to_vec();
        let bar = self.bar(e.ty(), e.span())?;
        let z = self.term(e)?;
        self.bound(z, |s, z| {
            let mut new = Vec::new();
            for (k, (arm, variant)) in arms.iter().zip(&variants).enumerate() {
                let params =
                    arm.params.iter().map(|x| Ok((*x, s.renamed(*x)?))).collect::<Res<Vec<(Var, Var)>>>()?;
                let whole = s.bar(&payload(variant), e.span())?;
                let body = s.under(&params, &arm.body, |s, dx| {
                    let dx = if params.is_empty() { s.zero(&whole) } else { dx };
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

    // --- types ---

    /// `D1[t]`
    fn primal(&self, t: &Type, span: Option<Span>) -> Res<Type> {
        match t {
            Type::Scalar(_) => Ok(t.clone()),
            Type::Tuple(ts) => {
                Ok(Type::tuple(ts.iter().map(|t| self.primal(t, span)).collect::<Res<Vec<_>>>()?))
            }
            Type::Fun(a, b) => {
                let (da, db) = (self.bar(a, span)?, self.bar(b, span)?);
                let result = Type::tuple([self.primal(b, span)?, Type::fun(db, da)]);
                Ok(Type::fun(self.primal(a, span)?, result))
            }
            Type::Sum(variants) => {
                let fields = || variants.iter().flat_map(|v| &v.fields);
                match fields().all(|t| matches!(self.primal(t, span), Ok(same) if same == *t)) {
                    true => Ok(t.clone()),
                    false => refuse(ID, &format!("a function inside of a sum (type {t})"), span),
                }
            }
            _ => refuse(ID, &format!("a value of type {t}"), span),
        }
    }
    /// `D2[t]`
    fn bar(&self, t: &Type, span: Option<Span>) -> Res<Type> {
        match t {
            Type::Scalar(s) => Ok(if s.is_float() { t.clone() } else { Type::unit() }),
            Type::Tuple(ts) => {
                Ok(Type::tuple(ts.iter().map(|t| self.bar(t, span)).collect::<Res<Vec<_>>>()?))
            }
            Type::Sum(variants) => {
                self.primal(t, span)?;
                let parts = variants.iter().map(|v| self.bar(&payload(v), span));
                Ok(Type::SparseSum(parts.collect::<Res<Vec<_>>>()?.into()))
            }
            Type::Fun(a, b) => Ok(Type::array(Type::tuple([self.primal(a, span)?, self.bar(b, span)?]))),
            _ => refuse(ID, &format!("a value of type {t}"), span),
        }
    }

    // --- cotangents ---

    fn zero(&mut self, bar: &Type) -> Term {
        match bar {
            Type::Tuple(ts) => {
                let parts = ts.iter().map(|t| self.zero(t)).collect();
                self.b.tuple(parts)
            }
            Type::Array(t) => self.b.term(Exp::ArrayLit(Type::clone(t), Vec::new())),
            bar => self.b.term(Exp::Zero(bar.clone())),
        }
    }
    /// `a + b`: logs of calls are appended, the rest is added.
    fn plus(&mut self, a: Term, b: Term, bar: &Type) -> Res<Term> {
        match bar {
            bar if !has_log(bar) => Ok(self.b.term(Exp::Plus(a, b))),
            Type::Array(_) => Ok(self.b.term(Exp::Concat(vec![a, b]))),
            Type::Tuple(ts) => self.bound(a, |s, a| {
                s.bound(b, |s, b| {
                    let parts = ts.iter().enumerate().map(|(i, t)| {
                        let (x, y) = (component(&mut s.b, a, i), component(&mut s.b, b, i));
                        s.plus(x, y, t)
                    });
                    let parts = parts.collect::<Res<Vec<_>>>()?;
                    Ok(s.b.tuple(parts))
                })
            }),
            _ => refuse(ID, "a function inside of a sum", self.b.span),
        }
    }
    /// `EV G`
    fn environment(&self) -> Type {
        self.scope.iter().fold(Type::unit(), |env, (_, _, bar)| Type::tuple([env, bar.clone()]))
    }
    /// The zero of the environment.
    fn nothing(&mut self) -> Term {
        let environment = self.environment();
        self.zero(&environment)
    }
    /// `one_x d` for variable number `k`, counted from the outermost.
    fn one_hot(&mut self, k: usize, d: Var) -> Term {
        let bars: Vec<Type> = self.scope.iter().map(|(_, _, bar)| bar.clone()).collect();
        let mut out = self.b.unit();
        for (i, bar) in bars.iter().enumerate() {
            let part = if i == k { self.b.var(d) } else { self.zero(bar) };
            out = self.b.tuple(vec![out, part]);
        }
        out
    }
    /// `v1 + .. + vn` of environments.
    fn total(&mut self, parts: Vec<Term>) -> Res<Term> {
        let environment = self.environment();
        let mut parts = parts.into_iter();
        let Some(first) = parts.next() else { return Ok(self.nothing()) };
        parts.try_fold(first, |sum, part| self.plus(sum, part, &environment))
    }

    // --- pieces of the rules ---

    /// `p.i.j`
    fn part(&mut self, p: Var, i: usize, j: usize) -> Term {
        let pair = component(&mut self.b, p, i);
        self.b.proj(pair, j)
    }
    /// `f x`
    fn call(&mut self, f: Var, x: Var) -> Term {
        let (f, x) = (self.b.var(f), self.b.var(x));
        self.b.apply(f, [x])
    }
    /// A variable of the result for one of the source.
    fn renamed(&mut self, x: Var) -> Res<Var> {
        let info = self.b.program.vars[x].clone();
        let ty = self.primal(&info.ty, info.span)?;
        Ok(self.b.fresh(ty, info.hint.as_str()))
    }
    /// `let v = value in f v`
    fn bound(&mut self, value: Term, f: impl FnOnce(&mut Self, Var) -> Res<Term>) -> Res<Term> {
        let v = self.b.fresh(value.ty().clone(), "p");
        let body = f(self, v)?;
        Ok(self.b.term(Exp::Let(v, value, body)))
    }
    /// `\d : D2[type of t]. f d`
    fn back(&mut self, t: &Term, f: impl FnOnce(&mut Self, Var) -> Res<Term>) -> Res<Term> {
        let bar = self.bar(t.ty(), t.span())?;
        let d = self.b.fresh(bar, "d");
        let body = f(self, d)?;
        Ok(self.b.term(Exp::Lam(d, body)))
    }
    /// `(D[e1], .., D[en])`
    fn all(&mut self, items: &[Term]) -> Res<Term> {
        let items = items.iter().map(|e| self.term(e)).collect::<Res<Vec<_>>>()?;
        Ok(self.b.tuple(items))
    }
    /// `let q = D[body] in (q.0, \d. let v = q.1 d in v.0 + after v.1)`, the body under these variables.
    fn under(
        &mut self,
        vars: &[(Var, Var)],
        body: &Term,
        after: impl FnOnce(&mut Self, Term) -> Term,
    ) -> Res<Term> {
        let outside = self.scope.len();
        for (x, new) in vars {
            let ty = self.b.program.vars[*x].ty.clone();
            let bar = self.bar(&ty, body.span())?;
            self.scope.push((*x, *new, bar));
        }
        let q = self.term(body);
        self.scope.truncate(outside);
        self.bound(q?, |s, q| {
            let value = component(&mut s.b, q, 0);
            let back = s.back(body, |s, d| {
                let (back, d) = (component(&mut s.b, q, 1), s.b.var(d));
                let v = s.b.apply(back, [d]);
                s.bound(v, |s, v| {
                    // (((G, d1), ..), dn)
                    let n = vars.len();
                    let inside =
                        |s: &mut Self, k: usize| (0..k).fold(s.b.var(v), |rest, _| s.b.proj(rest, 0));
                    let dx = match n {
                        1 => component(&mut s.b, v, 1),
                        n => {
                            let parts = (0..n).map(|i| {
                                let rest = inside(s, n - 1 - i);
                                s.b.proj(rest, 1)
                            });
                            let parts = parts.collect();
                            s.b.tuple(parts)
                        }
                    };
                    let after = after(s, dx);
                    let context = inside(s, n);
                    let environment = s.environment();
                    s.plus(context, after, &environment)
                })
            })?;
            Ok(s.b.tuple(vec![value, back]))
        })
    }
}

/// Whether there is a log of calls inside.
fn has_log(bar: &Type) -> bool {
    match bar {
        Type::Array(_) => true,
        Type::Tuple(ts) | Type::SparseSum(ts) => ts.iter().any(has_log),
        _ => false,
    }
}
