//! Efficient CHAD on first-order programs.
//!
//! Source: T. Smeding, thesis, chapter 6: rules Fig. 6.6, the terms in full 6.10.4, cost theorem (6.8).
//!
//! Judgement: `G |- t : s` becomes `D1[G] |- D_G[t] : (D1[s], D2[s] -> EVM D2[G] ())`
//!
//! Types: those of [`super`].
//!
//! Notation: `EVM G a` `evm[G](a)` · `return` [`Exp::EvmReturn`] · `>>=` [`Exp::EvmBind`] · `one_x` [`Exp::EvmAdd`] · `scope`
//! [`Exp::EvmScope`], which gives the cell first · `run` [`Exp::EvmRun`] · `<d, e>` of cotangents [`Exp::SparseTuple`] · `lfst`,
//! `lsnd` [`Exp::SparseProj`] · `linl`, `linr` [`Exp::SparseInject`] · `lcastl`, `lcastr` [`Exp::SparseCast`]
//!
//! Rules:
//! ```text
//! D[x]                 = (x, \d. one_x d)
//! D[r]                 = (r, \d. return ())
//! D[op e]              = let p = D[e] in (op p.0, \d. p.1 (dop p.0 d))                          one argument, or one product of them
//! D[op(e1, .., en)]    = let p = (D[e1], .., D[en]) in (op(p.i.0), \d. p.1.1 (d1op d); ..; p.n.1 (dnop d))
//! D[let x = a in b]    = let p = D[a] in let x = p.0 in let q = D[b] in (q.0, \d. (dx, _) <- scope 0 (q.1 d); p.1 dx)
//! D[f(e1, .., en)]     = let p = (D[e1], .., D[en]) in let y = D[f](p.i.0) in (y.0, \d. let r = run (y.1 d) 0 in p.1.1 r.1; ..; p.n.1 r.n)
//! D[()]                = ((), \d. return ())
//! D[(e1, .., en)]      = let p = (D[e1], .., D[en]) in ((p.i.0), \d. p.1.1 d.1; ..; p.n.1 d.n)
//! D[e.i]               = let p = D[e] in (p.0.i, \d. p.1 <0, .., d, .., 0>)
//! D[#k e]              = let p = D[e] in (#k p.0, \d. p.1 (lcast_k d))
//! D[match e { #k x -> b_k }]
//!                      = let z = D[e] in match z.0 { #k x -> let q = D[b_k] in (q.0, \d. (dx, _) <- scope 0 (q.1 d); z.1 (linj_k dx)) }
//! D[if c then a else b] = let z = D[c] in if z.0 then D[a] else D[b]
//! D[sign e]            = let p = D[e] in (sign p.0, \d. return ())
//! ```
//!
//! Differences from the paper:
//! 1. Products and sums have any number of components; a payload of several fields counts as a product, one without fields binds nothing.
//! 2. A primitive takes its arguments one by one (Fig. 6.6) or as one product (Agda). Those without derivative drop the backpropagators of their
//!    arguments, as in Fig. 6.6; with [`Shape::Agda`] literals and discrete primitives call them with zero, as the Agda terms do, which
//!    the thesis' constants and the golden costs are about.
//! 3. Top-level functions, also recursive ones: the derivative of a function is a function, and its backpropagator runs in cells of
//!    its own, one per parameter.
//! 4. Marks and `stop_gradient`, which the thesis does not have.
//!
//! Guarantee: forward pass, backpropagator and run cost at most `c * cost(t)`, up to the number of variables and the potentials of the cotangents;
//! `c = 34` for the terms of Agda (`crates/testkit/tests/chad.rs`, which also has what each construct costs exactly).
//!
//! Not supported: functions as values, arrays, loops, recursive types, derivatives inside.

use super::d_arrays::Gathers;
use super::{
    Argument, Cells, component, construct, cotangent, declare_vjp, fresh_name, is_of_arrays, payload, refuse,
    scaled, slopes,
};
use crate::contract::Unsupported;
use crate::tangent::is_zero;
use pullback_base::Span;
use pullback_base::index::IdMap;
use pullback_lambda::{Arm, Builder, Exp, FunId, Program, Term, Type, Var, Variant};
use pullback_prim::{Prim, ScalarValue};

/// The name by which it is chosen.
pub const ID: &str = "chad-accumulating";

/// What it says of arrays, for which there is [`super::d_arrays`].
pub const ARRAYS: &str = "an operation on arrays";

/// What literals and primitives without a derivative become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// They drop what their arguments would propagate (Fig. 6.6).
    Figure,
    /// They propagate zero to their arguments, and a literal is a primitive of the unit value (6.10.4).
    Agda,
}

/// Adds, for a function `f : (s1, .., sn) -> t`, the function `(s1, .., sn) -> (t, D2[t] -> EVM [D2[sn], .., D2[s1]] ())`, and
/// those for the functions that it calls.
///
/// Errors: constructs that are not supported; the program is as before then. Cost: linear in the size of the functions, times the
/// number of variables in scope.
pub fn transform(program: &mut Program, f: FunId, shape: Shape) -> Result<FunId, Unsupported> {
    transform_with(program, f, shape, None)
}

/// The same with the rules for arrays, if they are given.
pub(super) fn transform_with(
    program: &mut Program,
    f: FunId,
    shape: Shape,
    arrays: Option<Gathers>,
) -> Result<FunId, Unsupported> {
    let before = program.clone();
    let mut chad =
        Chad { b: Builder::new(program), shape, arrays, cells: Cells::default(), known: IdMap::new() };
    let made = chad.function(f, None);
    let errors = std::mem::take(&mut chad.b.errors);
    debug_assert!(errors.is_empty(), "{errors:?}");
    if made.is_err() {
        *program = before;
    }
    made
}

/// Adds the function `(s1, .., sn, D2[t]) -> (t, (D2[s1], .., D2[sn]))`: value and cotangents of the arguments.
///
/// Errors and cost: as for [`transform`].
pub fn vjp(program: &mut Program, f: FunId, shape: Shape) -> Result<FunId, Unsupported> {
    let transformed = transform(program, f, shape)?;
    vjp_of(program, f, transformed)
}

/// The reverse derivative of `f`, made of its transformed function.
pub(super) fn vjp_of(program: &mut Program, f: FunId, transformed: FunId) -> Result<FunId, Unsupported> {
    let (bars, seed) = interface(program, f)?;
    let name = fresh_name(program, f, "vjp");
    let mut b = Builder::new(program);
    let result = Type::tuple([b.program.funs[f].result.clone(), Type::tuple(bars.clone())]);
    let (g, args, seed) = declare_vjp(&mut b, f, &name, seed, result);
    let args = args.iter().map(|p| b.var(*p)).collect();
    let pair = b.call(transformed, args);
    let body = b.let_("r", pair, |b, r| {
        let (value, back) = (component(b, r, 0), component(b, r, 1));
        let seed = b.var(seed);
        let computation = b.apply(back, [seed]);
        let zeros = bars.iter().rev().map(|bar| b.term(Exp::Zero(bar.clone()))).collect();
        let zeros = b.tuple(zeros);
        let ran = b.term(Exp::EvmRun(computation, zeros));
        let cells = b.proj(ran, 1);
        b.let_("cells", cells, |b, cells| {
            let count = bars.len();
            let parts = (0..count).map(|i| component(b, cells, count - 1 - i)).collect();
            let parts = b.tuple(parts);
            b.tuple(vec![value, parts])
        })
    });
    b.define(g, body);
    debug_assert!(b.errors.is_empty(), "{:?}", b.errors);
    Ok(g)
}

/// The cotangent types of the parameters and of the result of a function.
pub fn interface(program: &Program, f: FunId) -> Result<(Vec<Type>, Type), Unsupported> {
    let fun = &program.funs[f];
    let bar = |t: &Type| cotangent(ID, t, fun.span);
    let params = fun.params.iter().map(|p| bar(&program.vars[*p].ty)).collect::<Result<Vec<_>, _>>()?;
    Ok((params, bar(&fun.result)?))
}

/// The transformation of a program.
pub(super) struct Chad<'p> {
    pub(super) b: Builder<'p>,
    shape: Shape,
    /// Whether there are rules for arrays.
    pub(super) arrays: Option<Gathers>,
    pub(super) cells: Cells,
    /// The derivatives of functions.
    known: IdMap<FunId, FunId>,
}

pub(super) type Res<T> = Result<T, Unsupported>;

impl Chad<'_> {
    fn function(&mut self, f: FunId, span: Option<Span>) -> Res<FunId> {
        if let Some(known) = self.known.get(&f) {
            return Ok(*known);
        }
        let (bars, seed) = interface(self.b.program, f)?;
        let fun = self.b.program.funs[f].clone();
        let Some(body) = fun.body else { return refuse(ID, "a function without a body", span) };
        let params: Vec<(String, Type)> = fun
            .params
            .iter()
            .map(|p| (self.b.program.vars[*p].hint.to_string(), self.b.program.vars[*p].ty.clone()))
            .collect();
        let params: Vec<(&str, Type)> = params.iter().map(|(hint, ty)| (hint.as_str(), ty.clone())).collect();
        let env: Vec<Type> = bars.iter().rev().cloned().collect();
        let result = Type::tuple([fun.result, Type::fun(seed, Type::evm(env, Type::unit()))]);
        let name = fresh_name(self.b.program, f, ID);
        let new = self.b.declare(&name, &params, result, None);
        self.known.insert(f, new);
        let params = fun.params.iter().zip(self.b.params(new)).zip(bars);
        let here = Cells { all: params.map(|((x, new), bar)| (*x, new, bar)).collect() };
        let outer = std::mem::replace(&mut self.cells, here);
        let body = self.term(&body);
        self.cells = outer;
        self.b.define(new, body?);
        Ok(new)
    }

    /// `D_G[t]`
    pub(super) fn term(&mut self, t: &Term) -> Res<Term> {
        let outer = std::mem::replace(&mut self.b.span, t.span());
        let out = pullback_lambda::with_stack(|| self.rule(t));
        self.b.span = outer;
        out
    }
    pub(super) fn rule(&mut self, t: &Term) -> Res<Term> {
        match t.exp() {
            // [chad.var]  D[x] = (x, \d. one_x d)
            Exp::Var(x) => {
                let Some((cell, new)) = self.cells.find(*x) else {
                    return refuse(ID, "a variable that no cell belongs to", t.span());
                };
                let value = self.b.var(new);
                let env = self.cells.types();
                let back = self.back(t.ty(), |s, d| {
                    let value = s.b.var(d);
                    s.b.term(Exp::EvmAdd { env, cell, value })
                })?;
                Ok(self.b.tuple(vec![value, back]))
            }
            // [chad.const]  D[r] = (r, \d. return ())
            Exp::Const(c) => self.literal(*c, t),
            // [chad.prim]  D[op e] = let p = D[e] in (op p.0, \d. p.1 (dop p.0 d))
            Exp::Prim(prim, args) => match &args[..] {
                [e] => self.prim_of_one(*prim, e, t),
                args => self.prim_of_several(*prim, args, t),
            },
            // [chad.let]  D[let x = a in b] = let p = D[a] in let x = p.0 in let q = D[b] in (q.0, \d. scope 0 (q.1 d) >>= \r. p.1 r.0)
            Exp::Let(x, a, b) => {
                let p = self.term(a)?;
                self.bound(p, |s, p| {
                    let value = component(&mut s.b, p, 0);
                    let new = s.b.fresh(a.ty().clone(), s.b.program.vars[*x].hint.clone().as_str());
                    let body = s.under(&[(*x, new)], b, |s, dx| {
                        let back = component(&mut s.b, p, 1);
                        s.b.apply(back, [dx])
                    })?;
                    Ok(s.b.term(Exp::Let(new, value, body)))
                })
            }
            // [chad.call]  D[f(es)] = let p = (D[es]) in let y = D[f](p.i.0) in (y.0, \d. let r = run (y.1 d) 0 in p.i.1 r.i)
            Exp::Call(f, args) => self.call(*f, args, t),
            // [chad.tuple]  D[(es)] = let p = (D[es]) in ((p.i.0), \d. p.1.1 d.1; ..; p.n.1 d.n)
            Exp::Tuple(items) if items.is_empty() => {
                let value = self.b.unit();
                let back = self.back(t.ty(), |s, _| s.nothing())?;
                Ok(self.b.tuple(vec![value, back]))
            }
            Exp::Tuple(items) => {
                let all = self.all(items)?;
                let n = items.len();
                self.bound(all, |s, p| {
                    let values = (0..n).map(|i| s.part(p, i, 0)).collect();
                    let value = s.b.tuple(values);
                    let back = s.back(t.ty(), |s, d| {
                        let parts = (0..n).map(|i| {
                            let d = s.b.var(d);
                            let d = s.b.term(Exp::SparseProj(d, i));
                            let back = s.part(p, i, 1);
                            s.b.apply(back, [d])
                        });
                        let parts = parts.collect();
                        s.in_turn(parts)
                    })?;
                    Ok(s.b.tuple(vec![value, back]))
                })
            }
            // [chad.proj]  D[e.i] = let p = D[e] in (p.0.i, \d. p.1 <0, .., d, .., 0>)
            Exp::Proj(e, i) => {
                let Type::SparseTuple(bars) = self.bar(e.ty())? else {
                    return refuse(ID, "a component of what is no product", t.span());
                };
                let p = self.term(e)?;
                self.bound(p, |s, p| {
                    let value = component(&mut s.b, p, 0);
                    let value = s.b.proj(value, *i);
                    let back = s.back(t.ty(), |s, d| {
                        let parts = bars.iter().enumerate().map(|(k, bar)| {
                            if k == *i { s.b.var(d) } else { s.b.term(Exp::Zero(bar.clone())) }
                        });
                        let parts = parts.collect();
                        let one_hot = s.b.term(Exp::SparseTuple(parts));
                        let back = component(&mut s.b, p, 1);
                        s.b.apply(back, [one_hot])
                    })?;
                    Ok(s.b.tuple(vec![value, back]))
                })
            }
            // [chad.inject]  D[#k e] = let p = D[e] in (#k p.0, \d. p.1 (lcast_k d))
            Exp::Inject(ty, k, fields) => self.inject(ty, *k, fields, t),
            // [chad.match]  D[match e { #k x -> b }] = let z = D[e] in match z.0 { #k x -> let q = D[b] in (q.0, \d. scope 0 (q.1 d) >>= \r. z.1 (linj_k r.0)) }
            Exp::Match(e, arms) => self.match_(e, arms),
            // [chad.if]  D[if c then a else b] = let z = D[c] in if z.0 then D[a] else D[b]
            Exp::If(c, a, b) => {
                let z = self.term(c)?;
                self.bound(z, |s, z| {
                    let c = component(&mut s.b, z, 0);
                    let (a, b) = (s.term(a)?, s.term(b)?);
                    Ok(s.b.if_(c, a, b))
                })
            }
            // [chad.sign]  D[sign e] = let p = D[e] in (sign p.0, \d. return ())
            Exp::Sign(e) => {
                let p = self.term(e)?;
                let shape = self.shape;
                self.bound(p, |s, p| {
                    let value = component(&mut s.b, p, 0);
                    let value = s.b.term(Exp::Sign(value));
                    let back = s.back(t.ty(), |s, d| match shape {
                        Shape::Figure => s.nothing(),
                        Shape::Agda => s.as_primitive(p, d, |s, _, _| s.b.term(Exp::Zero(Type::F64))),
                    })?;
                    Ok(s.b.tuple(vec![value, back]))
                })
            }
            // [chad.marked]  D[mark e] = D[e]
            Exp::Marked(_, e) => self.term(e),
            // [chad.stop_gradient]  D[stop e] = let p = D[e] in (p.0, \d. return ())
            Exp::StopGradient(e) => {
                let p = self.term(e)?;
                self.bound(p, |s, p| {
                    let value = component(&mut s.b, p, 0);
                    let back = s.back(t.ty(), |s, _| s.nothing())?;
                    Ok(s.b.tuple(vec![value, back]))
                })
            }
            // [chad.assert]  D[assert c; e] = let z = D[c] in assert z.0; D[e]
            Exp::Assert { condition, message, body } => {
                let z = self.term(condition)?;
                self.bound(z, |s, z| {
                    let condition = component(&mut s.b, z, 0);
                    let body = s.term(body)?;
                    Ok(s.b.assert(condition, message.clone(), body))
                })
            }
            other => match self.arrays.filter(|_| is_of_arrays(other)) {
                Some(gathers) => self.array_rule(t, gathers),
                None => refuse(ID, construct(other), t.span()),
            },
        }
    }

    /// Agda: `LIT r` is a primitive of the unit value, so that it costs one more there than here, where the value is written down again.
    fn literal(&mut self, c: ScalarValue, t: &Term) -> Res<Term> {
        if self.shape == Shape::Figure {
            let value = self.b.constant(c);
            let back = self.back(t.ty(), |s, _| s.nothing())?;
            return Ok(self.b.tuple(vec![value, back]));
        }
        let unit = self.b.unit();
        let back = self.back(&Type::unit(), |s, _| s.nothing())?;
        let p = self.b.tuple(vec![unit, back]);
        self.bound(p, |s, p| {
            let value = s.b.constant(c);
            let back = s.back(t.ty(), |s, d| s.as_primitive(p, d, |s, _, _| s.b.unit()))?;
            Ok(s.b.tuple(vec![value, back]))
        })
    }
    fn prim_of_one(&mut self, prim: Prim, e: &Term, t: &Term) -> Res<Term> {
        let p = self.term(e)?;
        let of_product = matches!(e.ty(), Type::Tuple(_));
        let slopes = slopes(self.b.program, prim, std::slice::from_ref(e));
        let bar = self.bar(e.ty())?;
        self.bound(p, |s, p| {
            let value = component(&mut s.b, p, 0);
            let value = s.b.term(Exp::Prim(prim, vec![value]));
            let back = s.back(t.ty(), |s, d| {
                if slopes.is_none() && s.shape == Shape::Figure {
                    return s.nothing();
                }
                s.as_primitive(p, d, |s, x, d| {
                    let Some(slopes) = &slopes else { return s.discrete(&bar) };
                    let args: Vec<Argument> = match of_product {
                        true => (0..slopes.len()).map(|i| Argument::Component(x, i)).collect(),
                        false => vec![Argument::Whole(x)],
                    };
                    let parts = slopes.iter().zip(prim.params()).map(|(slope, scalar)| {
                        if !scalar.is_float() {
                            return s.b.unit();
                        }
                        scaled(&mut s.b, prim, *slope, &args, d)
                    });
                    let mut parts: Vec<Term> = parts.collect();
                    if of_product { s.b.term(Exp::SparseTuple(parts)) } else { parts.remove(0) }
                })
            })?;
            Ok(s.b.tuple(vec![value, back]))
        })
    }
    fn prim_of_several(&mut self, prim: Prim, args: &[Term], t: &Term) -> Res<Term> {
        let all = self.all(args)?;
        let n = args.len();
        let slopes = slopes(self.b.program, prim, args).unwrap_or_default();
        self.bound(all, |s, p| {
            let values = (0..n).map(|i| s.part(p, i, 0)).collect();
            let value = s.b.term(Exp::Prim(prim, values));
            let back = s.back(t.ty(), |s, d| {
                let args: Vec<Argument> = (0..n).map(|i| Argument::Part(p, i)).collect();
                let some = slopes.iter().enumerate().filter(|(_, slope)| !is_zero(slope.1));
                let parts = some.map(|(i, slope)| {
                    let bar = scaled(&mut s.b, prim, *slope, &args, d);
                    let back = s.part(p, i, 1);
                    s.b.apply(back, [bar])
                });
                let parts = parts.collect();
                s.in_turn(parts)
            })?;
            Ok(s.b.tuple(vec![value, back]))
        })
    }
    fn call(&mut self, f: FunId, args: &[Term], t: &Term) -> Res<Term> {
        let new = self.function(f, t.span())?;
        let (bars, _) = interface(self.b.program, f)?;
        let all = self.all(args)?;
        let n = args.len();
        self.bound(all, |s, p| {
            let values = (0..n).map(|i| s.part(p, i, 0)).collect();
            let y = s.b.call(new, values);
            s.bound(y, |s, y| {
                let value = component(&mut s.b, y, 0);
                let back = s.back(t.ty(), |s, d| {
                    let (back, d) = (component(&mut s.b, y, 1), s.b.var(d));
                    let computation = s.b.apply(back, [d]);
                    let zeros = bars.iter().rev().map(|bar| s.b.term(Exp::Zero(bar.clone()))).collect();
                    let zeros = s.b.tuple(zeros);
                    let ran = s.b.term(Exp::EvmRun(computation, zeros));
                    let cells = s.b.proj(ran, 1);
                    let v = s.b.fresh(cells.ty().clone(), "cells");
                    let parts = (0..n).map(|i| {
                        let bar = component(&mut s.b, v, n - 1 - i);
                        let back = s.part(p, i, 1);
                        s.b.apply(back, [bar])
                    });
                    let parts = parts.collect();
                    let body = s.in_turn(parts);
                    s.b.term(Exp::Let(v, cells, body))
                })?;
                Ok(s.b.tuple(vec![value, back]))
            })
        })
    }
    fn inject(&mut self, ty: &Type, k: usize, fields: &[Term], t: &Term) -> Res<Term> {
        let ty = ty.clone();
        let (p, n) = match fields {
            [] => {
                let value = self.b.term(Exp::Inject(ty, k, Vec::new()));
                let back = self.back(t.ty(), |s, _| s.nothing())?;
                return Ok(self.b.tuple(vec![value, back]));
            }
            [e] => (self.term(e)?, None),
            fields => {
                // A payload of several fields is their product.
                let product = self.b.tuple(fields.to_vec());
                (self.rule(&product)?, Some(fields.len()))
            }
        };
        self.bound(p, |s, p| {
            let value = component(&mut s.b, p, 0);
            let fields = match n {
                None => vec![value],
                Some(n) => (0..n).map(|i| s.b.proj(value.clone(), i)).collect(),
            };
            let value = s.b.term(Exp::Inject(ty, k, fields));
            let back = s.back(t.ty(), |s, d| {
                let d = s.b.var(d);
                let d = s.b.term(Exp::SparseCast(d, k));
                let back = component(&mut s.b, p, 1);
                s.b.apply(back, [d])
            })?;
            Ok(s.b.tuple(vec![value, back]))
        })
    }
    fn match_(&mut self, e: &Term, arms: &[Arm]) -> Res<Term> {
        let variants: Vec<Variant> = self.b.program.variants(e.ty()).unwrap_or_default().to_vec();
        let bar = self.bar(e.ty())?;
        let z = self.term(e)?;
        self.bound(z, |s, z| {
            let mut new = Vec::new();
            for (k, (arm, variant)) in arms.iter().zip(&variants).enumerate() {
                let params: Vec<(Var, Var)> = arm
                    .params
                    .iter()
                    .map(|x| {
                        let info = s.b.program.vars[*x].clone();
                        (*x, s.b.fresh(info.ty, info.hint.as_str()))
                    })
                    .collect();
                let whole = s.bar(&payload(variant))?;
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

    // --- pieces of the rules ---

    /// `D2[t]`
    pub(super) fn bar(&mut self, t: &Type) -> Res<Type> {
        cotangent(ID, t, self.b.span)
    }
    /// `let v = value in f v`
    pub(super) fn bound(&mut self, value: Term, f: impl FnOnce(&mut Self, Var) -> Res<Term>) -> Res<Term> {
        let v = self.b.fresh(value.ty().clone(), "p");
        let body = f(self, v)?;
        Ok(self.b.term(Exp::Let(v, value, body)))
    }
    /// `\d : D2[t]. f d`
    pub(super) fn back(&mut self, t: &Type, f: impl FnOnce(&mut Self, Var) -> Term) -> Res<Term> {
        let bar = self.bar(t)?;
        let d = self.b.fresh(bar, "d");
        let body = f(self, d);
        Ok(self.b.term(Exp::Lam(d, body)))
    }
    /// `return ()`
    pub(super) fn nothing(&mut self) -> Term {
        let unit = self.b.unit();
        let env = self.cells.types();
        self.b.term(Exp::EvmReturn(env, unit))
    }
    /// `(D[e1], .., D[en])`
    pub(super) fn all(&mut self, items: &[Term]) -> Res<Term> {
        let items = items.iter().map(|e| self.term(e)).collect::<Res<Vec<_>>>()?;
        Ok(self.b.tuple(items))
    }
    /// `p.i.j`
    pub(super) fn part(&mut self, p: Var, i: usize, j: usize) -> Term {
        let pair = component(&mut self.b, p, i);
        self.b.proj(pair, j)
    }
    /// `m1; ..; mn`, or all at once where arrays are (6.7).
    fn in_turn(&mut self, mut computations: Vec<Term>) -> Term {
        if self.arrays.is_some() {
            return self.in_parallel(computations);
        }
        let Some(mut rest) = computations.pop() else { return self.nothing() };
        while let Some(first) = computations.pop() {
            let x = self.b.fresh(rest.ty().clone(), "m");
            let ignored = self.b.fresh(Type::unit(), "u");
            let then = self.b.var(x);
            let then = self.b.term(Exp::Lam(ignored, then));
            let both = self.b.term(Exp::EvmBind(first, then));
            rest = self.b.term(Exp::Let(x, rest, both));
        }
        rest
    }
    /// `let q = D[body] in (q.0, \d. scope 0 (q.1 d) >>= \r. after r.0)`, the body under these variables.
    pub(super) fn under(
        &mut self,
        vars: &[(Var, Var)],
        body: &Term,
        after: impl FnOnce(&mut Self, Term) -> Term,
    ) -> Res<Term> {
        let mut bars = Vec::new();
        for (x, new) in vars {
            let ty = self.b.program.vars[*x].ty.clone();
            let bar = self.bar(&ty)?;
            self.cells.all.push((*x, *new, bar.clone()));
            bars.push(bar);
        }
        let q = self.term(body);
        let outside = self.cells.all.len() - vars.len();
        self.cells.all.truncate(outside);
        self.bound(q?, |s, q| {
            let value = component(&mut s.b, q, 0);
            let back = s.back(body.ty(), |s, d| {
                let (back, d) = (component(&mut s.b, q, 1), s.b.var(d));
                let mut inner = s.b.apply(back, [d]);
                // The innermost cell belongs to the last variable.
                for bar in bars.iter().rev() {
                    let zero = s.b.term(Exp::Zero(bar.clone()));
                    inner = s.b.term(Exp::EvmScope(zero, inner));
                }
                let r = s.b.fresh(result_of(&inner), "r");
                let dx = match bars.len() {
                    0 => s.b.unit(),
                    1 => component(&mut s.b, r, 0),
                    // (c1, (c2, .. ())), one cell in the other
                    n => {
                        let cells = (0..n).map(|i| {
                            let rest = (0..i).fold(s.b.var(r), |rest, _| s.b.proj(rest, 1));
                            s.b.proj(rest, 0)
                        });
                        let cells = cells.collect();
                        s.b.term(Exp::SparseTuple(cells))
                    }
                };
                let after = after(s, dx);
                let after = s.b.term(Exp::Lam(r, after));
                s.b.term(Exp::EvmBind(inner, after))
            })?;
            Ok(s.b.tuple(vec![value, back]))
        })
    }
    /// `p.1 (let x = p.0 in let e = d in f x e)`, as the terms of Agda have it.
    fn as_primitive(&mut self, p: Var, d: Var, f: impl FnOnce(&mut Self, Var, Var) -> Term) -> Term {
        let (value, cotangent) = (component(&mut self.b, p, 0), self.b.var(d));
        let x = self.b.fresh(value.ty().clone(), "x");
        let e = self.b.fresh(cotangent.ty().clone(), "d");
        let made = f(self, x, e);
        let made = self.b.term(Exp::Let(e, cotangent, made));
        let made = self.b.term(Exp::Let(x, value, made));
        let back = component(&mut self.b, p, 1);
        self.b.apply(back, [made])
    }
    /// The zero that a discrete primitive propagates: for a product one zero per argument.
    fn discrete(&mut self, bar: &Type) -> Term {
        match bar {
            Type::SparseTuple(bars) => {
                let zeros = bars.iter().map(|bar| self.b.term(Exp::Zero(bar.clone()))).collect();
                self.b.term(Exp::SparseTuple(zeros))
            }
            bar => self.b.term(Exp::Zero(bar.clone())),
        }
    }
}

/// What a computation returns.
fn result_of(computation: &Term) -> Type {
    match computation.ty() {
        Type::Evm(_, t) => Type::clone(t),
        _ => Type::unit(),
    }
}
