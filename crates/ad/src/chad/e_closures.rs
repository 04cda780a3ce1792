//! Efficient CHAD on functions as values: closures first, so that no function has variables of its own to propagate to.
//!
//! Source: T. Smeding, thesis, 6.8 and 6.10.2: closure conversion, and the finite sum in place of the existential type.
//!
//! Judgement: `G |- t : s` becomes `G^CC |- t^CC : s^CC`, of first order; then [`super::c_accumulating`].
//!
//! Types:
//! ```text
//! (s -> t)^CC = #1 captured | .. | #n captured       one alternative per lambda of type s -> t in the program, with what it captures
//! ```
//! structural on the rest.
//!
//! Notation: `pack` [`Exp::Inject`] · `case .. of pack` the `match` in a function `apply`, one per function type
//!
//! Rules:
//! ```text
//! (\x. t)^CC    = #k (the variables that it captures)
//! (a b)^CC      = apply_{s -> t} (a^CC, b^CC)          apply_{s -> t} (f, x) = match f { #k (captured) -> t_k^CC }
//! ```
//! all other terms structural.
//!
//! Differences from the paper:
//! 1. The existential type with run-time tags is the sum of its instances at once (deexistentialisation, 6.8): the program is known whole.
//! 2. A closure has a field per captured variable, which it reaches in one step, where nested pairs need their depth.
//!
//! Guarantee: that of [`super::c_accumulating`] for the converted program, whose cost is at most a constant times the program's and the sizes of its closures
//! (`crates/testkit/tests/chad_growth.rs`: linear where [`super::a_plain`] doubles with every level).
//!
//! Not supported: functions that capture functions of their own type (the sum would be recursive); what [`super::c_accumulating`] does not support.

use super::{c_accumulating, construct, fresh_name, refuse};
use crate::contract::Unsupported;
use pullback_base::index::IdMap;
use pullback_lambda::{Arm, Builder, Exp, FunId, LoopForm, Program, Term, Type, Var, Variant};
use std::collections::BTreeSet;

/// The name by which it is chosen.
pub const ID: &str = "chad-closures";

/// Adds, for a function `f : (s1, .., sn) -> t` of first-order type, the function `(s1, .., sn, D2[t]) -> (t, (D2[s1], .., D2[sn]))`: value and cotangents of the
/// arguments.
///
/// Errors: constructs that are not supported; the program is as before then.
pub fn vjp(program: &mut Program, f: FunId, config: c_accumulating::Shape) -> Result<FunId, Unsupported> {
    let before = program.clone();
    let made = convert(program, f).and_then(|converted| c_accumulating::vjp(program, converted, config));
    if made.is_err() {
        *program = before;
    }
    made
}

/// Adds a function that does the same as `f`, without functions as values; and those that it calls.
///
/// Errors: functions that capture functions of their own type; a parameter or result that is a function. The program is as before then. Cost: the size of the
/// functions times what their lambdas capture.
pub fn convert(program: &mut Program, f: FunId) -> Result<FunId, Unsupported> {
    let before = program.clone();
    let made = converted(program, f);
    if made.is_err() {
        *program = before;
    }
    made
}

fn converted(program: &mut Program, f: FunId) -> Result<FunId, Unsupported> {
    let mut reachable = vec![f];
    let mut lambdas = Vec::new();
    let mut next = 0;
    while let Some(f) = reachable.get(next).copied() {
        next += 1;
        if let Some(body) = &program.funs[f].body {
            collect(body, &mut lambdas, &mut reachable);
        }
    }
    let fun = &program.funs[f];
    let outside = fun.params.iter().map(|p| &program.vars[*p].ty).chain([&fun.result]);
    if outside.into_iter().any(mentions_function) {
        return refuse(ID, "a function as an argument or result of the whole program", fun.span);
    }
    let mut s = Conversion {
        b: Builder::new(program),
        lambdas,
        vars: IdMap::new(),
        funs: IdMap::new(),
        apply: Vec::new(),
        types: Vec::new(),
        open: Vec::new(),
    };
    for f in &reachable {
        let fun = s.b.program.funs[*f].clone();
        let params = fun.params.iter().map(|p| s.renamed(*p)).collect::<Res<Vec<Var>>>()?;
        let result = s.ty(&fun.result)?;
        let name = fresh_name(s.b.program, *f, "closed");
        let new = s.b.declare(&name, &[], result, None);
        s.b.program.funs[new].params = params;
        s.funs.insert(*f, new);
    }
    for f in &reachable {
        if let Some(body) = s.b.program.funs[*f].body.clone() {
            let body = s.term(&body)?;
            s.b.define(s.funs[f], body);
        }
    }
    // What is applied may apply others.
    let mut next = 0;
    while let Some((ty, apply)) = s.apply.get(next).cloned() {
        next += 1;
        s.applied(&ty, apply)?;
    }
    debug_assert!(s.b.errors.is_empty(), "{:?}", s.b.errors);
    Ok(s.funs[&f])
}

fn mentions_function(t: &Type) -> bool {
    match t {
        Type::Fun(..) => true,
        Type::Tuple(ts) => ts.iter().any(mentions_function),
        Type::Sum(vs) => vs.iter().flat_map(|v| &v.fields).any(mentions_function),
        Type::Array(t) => mentions_function(t),
        _ => false,
    }
}

/// A lambda of the program.
struct Lambda {
    /// Its type.
    ty: Type,
    param: Var,
    body: Term,
    captured: Vec<Var>,
}

/// The lambdas in a term, in their order, and the functions that it calls.
fn collect(t: &Term, lambdas: &mut Vec<Lambda>, called: &mut Vec<FunId>) {
    match t.exp() {
        Exp::Lam(param, body) => {
            let (mut used, mut bound) = (BTreeSet::new(), BTreeSet::from([*param]));
            variables(body, &mut used, &mut bound);
            let captured = used.difference(&bound).copied().collect();
            lambdas.push(Lambda { ty: t.ty().clone(), param: *param, body: body.clone(), captured });
        }
        Exp::Call(f, _) if !called.contains(f) => called.push(*f),
        _ => {}
    }
    t.exp().children(&mut |child| pullback_lambda::with_stack(|| collect(child, lambdas, called)));
}

/// The variables that a term mentions, and those that it binds; each is bound once in its program.
fn variables(t: &Term, used: &mut BTreeSet<Var>, bound: &mut BTreeSet<Var>) {
    match t.exp() {
        Exp::Var(v) => {
            used.insert(*v);
        }
        Exp::Let(v, ..) | Exp::Lam(v, _) | Exp::LinearLam(v, _) => {
            bound.insert(*v);
        }
        Exp::Match(_, arms) => bound.extend(arms.iter().flat_map(|arm| &arm.params)),
        Exp::Loop(l) => {
            bound.insert(l.state);
            if let LoopForm::For(i, _) = l.form {
                bound.insert(i);
            }
        }
        _ => {}
    }
    t.exp().children(&mut |child| pullback_lambda::with_stack(|| variables(child, used, bound)));
}

struct Conversion<'p> {
    b: Builder<'p>,
    lambdas: Vec<Lambda>,
    vars: IdMap<Var, Var>,
    funs: IdMap<FunId, FunId>,
    /// The function that applies functions of a type.
    apply: Vec<(Type, FunId)>,
    /// What function types became.
    types: Vec<(Type, Type)>,
    /// Function types whose sums are being made.
    open: Vec<Type>,
}

type Res<T> = Result<T, Unsupported>;

impl Conversion<'_> {
    /// `t^CC`
    fn ty(&mut self, t: &Type) -> Res<Type> {
        match t {
            Type::Tuple(ts) => Ok(Type::tuple(ts.iter().map(|t| self.ty(t)).collect::<Res<Vec<_>>>()?)),
            Type::Sum(vs) => {
                let variants = vs.iter().map(|v| {
                    let fields = v.fields.iter().map(|t| self.ty(t)).collect::<Res<Vec<_>>>()?;
                    Ok(Variant { name: v.name.clone(), fields })
                });
                Ok(Type::Sum(variants.collect::<Res<Vec<_>>>()?.into()))
            }
            Type::Array(t) => Ok(Type::array(self.ty(t)?)),
            Type::Fun(..) => {
                if let Some((_, known)) = self.types.iter().find(|(from, _)| from == t) {
                    return Ok(known.clone());
                }
                if self.open.contains(t) {
                    let construct = format!("functions that capture functions of their own type {t}");
                    return refuse(ID, &construct, self.b.span);
                }
                self.open.push(t.clone());
                let captured: Vec<Vec<Var>> =
                    self.lambdas.iter().filter(|l| l.ty == *t).map(|l| l.captured.clone()).collect();
                let mut variants = Vec::new();
                for (k, captured) in captured.iter().enumerate() {
                    let mut fields = Vec::new();
                    for v in captured {
                        let ty = self.b.program.vars[*v].ty.clone();
                        fields.push(self.ty(&ty)?);
                    }
                    variants.push(Variant { name: format!("fun{k}").as_str().into(), fields });
                }
                self.open.pop();
                if variants.is_empty() {
                    variants.push(Variant { name: "none".into(), fields: Vec::new() });
                }
                let sum = Type::Sum(variants.into());
                self.types.push((t.clone(), sum.clone()));
                Ok(sum)
            }
            t => Ok(t.clone()),
        }
    }
    fn renamed(&mut self, v: Var) -> Res<Var> {
        let info = self.b.program.vars[v].clone();
        let ty = self.ty(&info.ty)?;
        let new = self.b.fresh(ty, info.hint.as_str());
        self.vars.insert(v, new);
        Ok(new)
    }
    fn term(&mut self, t: &Term) -> Res<Term> {
        let outer = std::mem::replace(&mut self.b.span, t.span());
        let out = pullback_lambda::with_stack(|| self.rule(t));
        self.b.span = outer;
        out
    }
    fn rule(&mut self, t: &Term) -> Res<Term> {
        match t.exp() {
            Exp::Var(v) => {
                let Some(v) = self.vars.get(v).copied() else {
                    return refuse(ID, "a variable that is not in scope", t.span());
                };
                Ok(self.b.var(v))
            }
            Exp::Let(v, a, b) => {
                let a = self.term(a)?;
                let v = self.renamed(*v)?;
                let b = self.term(b)?;
                Ok(self.b.term(Exp::Let(v, a, b)))
            }
            Exp::Match(x, arms) => {
                let x = self.term(x)?;
                let mut new = Vec::new();
                for arm in arms {
                    let params = arm.params.iter().map(|p| self.renamed(*p)).collect::<Res<Vec<_>>>()?;
                    new.push(Arm { params, body: self.term(&arm.body)? });
                }
                Ok(self.b.term(Exp::Match(x, new)))
            }
            Exp::Inject(ty, k, fields) => {
                let ty = self.ty(ty)?;
                let fields = fields.iter().map(|t| self.term(t)).collect::<Res<Vec<_>>>()?;
                Ok(self.b.term(Exp::Inject(ty, *k, fields)))
            }
            Exp::Call(f, args) => {
                let args = args.iter().map(|t| self.term(t)).collect::<Res<Vec<_>>>()?;
                let f = self.funs[f];
                Ok(self.b.call(f, args))
            }
            // [chad_closures.lam]  (\x. t)^CC = #k (captured)
            Exp::Lam(param, _) => {
                let ty = self.ty(t.ty())?;
                let of_type = self.lambdas.iter().filter(|l| l.ty == *t.ty());
                let found = of_type.enumerate().find(|(_, l)| l.param == *param);
                let Some((k, captured)) = found.map(|(k, l)| (k, l.captured.clone())) else {
                    return refuse(ID, "a function that was not there before", t.span());
                };
                let fields = captured.iter().map(|v| self.b.var(self.vars[v])).collect();
                Ok(self.b.term(Exp::Inject(ty, k, fields)))
            }
            // [chad_closures.app]  (a b)^CC = apply (a^CC, b^CC)
            Exp::App(a, b) => {
                let apply = self.apply(a.ty())?;
                let (a, b) = (self.term(a)?, self.term(b)?);
                Ok(self.b.call(apply, vec![a, b]))
            }
            Exp::LinearLam(..) | Exp::LinearApp(..) => refuse(ID, "a linear function", t.span()),
            Exp::Loop(_) => refuse(ID, "a loop", t.span()),
            // Other constructs that take functions, which are none any more.
            Exp::Soac(_) | Exp::Vjp(_) | Exp::Jvp(_) | Exp::Custom { .. } => {
                refuse(ID, construct(t.exp()), t.span())
            }
            exp => {
                let mut exp = exp.clone();
                let mut error = None;
                exp.children_mut(&mut |child| match self.term(child) {
                    Ok(new) => *child = new,
                    Err(e) => error = Some(e),
                });
                match error {
                    Some(e) => Err(e),
                    None => Ok(self.b.term(exp)),
                }
            }
        }
    }
    /// The function that applies functions of this type, declared when it is first needed.
    fn apply(&mut self, ty: &Type) -> Res<FunId> {
        if let Some((_, known)) = self.apply.iter().find(|(t, _)| t == ty) {
            return Ok(*known);
        }
        let Type::Fun(from, to) = ty else {
            return refuse(ID, "the call of what is no function", self.b.span);
        };
        let params = [("f", self.ty(ty)?), ("x", self.ty(from)?)];
        let result = self.ty(to)?;
        let mut names = (0..).map(|k| format!("apply_{k}"));
        let free = |name: &String| self.b.program.funs.iter().all(|f| f.name.as_str() != name);
        let name = names.find(free).unwrap_or_default();
        let new = self.b.declare(&name, &params, result, None);
        self.apply.push((ty.clone(), new));
        Ok(new)
    }
    /// Gives such a function its body.
    fn applied(&mut self, ty: &Type, apply: FunId) -> Res<()> {
        let params = self.b.params(apply);
        let of_type: Vec<(Var, Term, Vec<Var>)> = self
            .lambdas
            .iter()
            .filter(|l| l.ty == *ty)
            .map(|l| (l.param, l.body.clone(), l.captured.clone()))
            .collect();
        let mut arms = Vec::new();
        for (param, body, captured) in of_type {
            let params_of_arm = captured.iter().map(|v| self.renamed(*v)).collect::<Res<Vec<_>>>()?;
            self.vars.insert(param, params[1]);
            arms.push(Arm { params: params_of_arm, body: self.term(&body)? });
        }
        if arms.is_empty() {
            // There is no function of this type: it is never applied.
            let call = {
                let (f, x) = (self.b.var(params[0]), self.b.var(params[1]));
                self.b.call(apply, vec![f, x])
            };
            arms.push(Arm { params: Vec::new(), body: call });
        }
        let f = self.b.var(params[0]);
        let body = self.b.term(Exp::Match(f, arms));
        self.b.define(apply, body);
        Ok(())
    }
}
