//! The rules, one per construct.

use super::super::structure::mentions_function;
use super::{Forward, Function, Operation, Path, Res, Slope, Stage};
use crate::chad::{component, fresh_name, refuse, slopes};
use crate::tangent::is_zero;
use pullback_lambda::{Arm, Exp, FunId, Term, Type, Var, with_stack};
use pullback_prim::{Prim, Scalar};

impl<C: Stage> Forward<'_, C> {
    // --- terms ---

    fn renamed(&mut self, v: Var) -> Var {
        let info = self.b.program.vars[v].clone();
        let ty = self.ty(&info.ty);
        let new = self.b.fresh(ty, info.hint.as_str());
        self.vars.insert(v, new);
        new
    }
    pub(super) fn function(&mut self, f: FunId) -> Res<FunId> {
        if let Some(known) = self.funs.get(&f) {
            return Ok(*known);
        }
        let fun = self.b.program.funs[f].clone();
        let Some(body) = fun.body else { return refuse(C::ID, "a function without a body", fun.span) };
        let name = fresh_name(self.b.program, f, C::ID);
        let result = self.ty(&fun.result);
        let result = self.threads.threaded(result);
        let new = self.b.declare(&name, &[], result, None);
        self.funs.insert(f, new);
        let state = self.b.fresh(self.threads.state.clone(), "id");
        let params = fun.params.iter().map(|p| self.renamed(*p)).chain([state]).collect();
        self.b.program.funs[new].params = params;
        let body = self.block_from(state, |s| s.term(&body))?;
        self.b.define(new, body);
        Ok(new)
    }

    /// `D[t]`, from the current state on.
    pub(crate) fn term(&mut self, t: &Term) -> Res<Var> {
        let outer = std::mem::replace(&mut self.b.span, t.span());
        let out = with_stack(|| self.rule(t));
        self.b.span = outer;
        out
    }
    fn terms(&mut self, ts: &[Term]) -> Res<Vec<Term>> {
        ts.iter().map(|t| self.operand(t)).collect()
    }
    /// `D[t]` as an operand.
    pub(super) fn operand(&mut self, t: &Term) -> Res<Term> {
        let v = self.term(t)?;
        Ok(self.b.var(v))
    }
    fn rule(&mut self, t: &Term) -> Res<Var> {
        match t.exp() {
            // [dual.var]  D[x] i = (x, i)
            Exp::Var(x) => match self.vars.get(x) {
                Some(x) => Ok(*x),
                None => refuse(C::ID, "a variable that is not in scope", t.span()),
            },
            // [dual.const]  D[r] i = ((r, constant), i')
            Exp::Const(c) => {
                let value = self.b.constant(*c);
                let value = self.emit(value, "c");
                Ok(if c.scalar().is_float() { self.constant(value) } else { value })
            }
            // [dual.prim]  D[op(es)] i = D[es] i, then ((op(p.j.0), operation), i')
            Exp::Prim(prim, args) => match self.plain(t).filter(|_| !prim.result().is_float()) {
                // [dual.plain]  D[op(es)] i = (op(plain es), i)
                Some(value) => Ok(self.emit(value, "x")),
                None => self.prim(*prim, args),
            },
            // [dual.sign]  D[sign e] i = let (x, i') = D[e] i in (sign x.0, i')
            Exp::Sign(e) => {
                let value = match self.plain(e) {
                    Some(value) => value,
                    None => {
                        let e = self.term(e)?;
                        component(&mut self.b, e, 0)
                    }
                };
                let sign = self.b.term(Exp::Sign(value));
                Ok(self.emit(sign, "sign"))
            }
            // [dual.stop_gradient]  D[stop e] i = every number in D[e] with a constant
            Exp::StopGradient(e) => {
                let value = self.term(e)?;
                if mentions_function(e.ty()) {
                    let what = "`stop_gradient` of a function or of a value of a recursive type";
                    return refuse(C::ID, what, t.span());
                }
                self.walk(value, e.ty(), &Path::Whole, &mut |s, x, _, _| {
                    let value = component(&mut s.b, x, 0);
                    let value = s.emit(value, "x");
                    s.constant(value)
                })
            }
            // [dual.let]  D[let x = a in b] i = let (x, i') = D[a] i in D[b] i'
            Exp::Let(..) => {
                let mut rest = t;
                while let Exp::Let(x, a, b) = rest.exp() {
                    let a = self.term(a)?;
                    self.vars.insert(*x, a);
                    rest = b;
                }
                self.term(rest)
            }
            // [dual.lam]  D[\x. b] i = (\x. \i. D[b] i, i)
            Exp::Lam(x, b) => {
                let x = self.renamed(*x);
                let state = self.b.fresh(self.threads.state.clone(), "id");
                let body = self.block_from(state, |s| s.term(b))?;
                let inner = self.b.term(Exp::Lam(state, body));
                let outer = self.b.term(Exp::Lam(x, inner));
                Ok(self.emit(outer, "f"))
            }
            // [dual.app]  D[f a] i = D[f] i, then D[a], then f a i''
            Exp::App(f, a) => {
                let (f, a) = (self.term(f)?, self.term(a)?);
                self.applied(&Function::Value(f), &[a])
            }
            // [dual.call]  D[f(es)] i = D[es] i, then D[f](es, i')
            Exp::Call(f, args) => {
                let f = self.function(*f)?;
                let mut args = self.terms(args)?;
                args.push(self.b.var(self.state));
                let called = self.b.call(f, args);
                Ok(self.run(called, "r"))
            }
            // [dual.inject]  D[#k es] i = D[es] i, then (#k es, i')
            Exp::Inject(ty, k, fields) => {
                let ty = self.ty(ty);
                let fields = self.terms(fields)?;
                let value = self.b.term(Exp::Inject(ty, *k, fields));
                Ok(self.emit(value, "v"))
            }
            // [dual.match]  D[match e { #k xs -> b }] i = let (v, i') = D[e] i in match v { #k xs -> D[b] i' }
            Exp::Match(e, arms) => {
                let e = self.operand(e)?;
                let mut new = Vec::new();
                for arm in arms {
                    let params = arm.params.iter().map(|p| self.renamed(*p)).collect();
                    new.push(Arm { params, body: self.block(|s| s.term(&arm.body))? });
                }
                let all = self.b.term(Exp::Match(e, new));
                Ok(self.run(all, "r"))
            }
            // [dual.if]  D[if c then a else b] i = let (c, i') = D[c] i in if c then D[a] i' else D[b] i'
            Exp::If(c, a, b) => {
                let c = self.operand(c)?;
                let (a, b) = (self.block(|s| s.term(a))?, self.block(|s| s.term(b))?);
                let both = self.b.if_(c, a, b);
                Ok(self.run(both, "r"))
            }
            // [dual.assert]  D[assert c e] i = let (c, i') = D[c] i in assert c (D[e] i')
            Exp::Assert { condition, message, body } => {
                let condition = self.operand(condition)?;
                let body = self.block(|s| s.term(body))?;
                let checked = self.b.assert(condition, message.clone(), body);
                Ok(self.run(checked, "r"))
            }
            // [dual.same_size]  as an assert
            Exp::SameSize { left, right, message, body } => {
                let (left, right) = (self.operand(left)?, self.operand(right)?);
                let body = self.block(|s| s.term(body))?;
                let checked = self.b.same_size(left, right, message.clone(), body);
                Ok(self.run(checked, "r"))
            }
            // [dual.marked]  D[mark e] = D[e]
            Exp::Marked(_, e) => self.term(e),
            // [dual.loop]  D[loop x = a for k < n do b] i = loop (x, i) = D[a] i for k < n do D[b] i
            Exp::Loop(l) => self.loop_(l),
            // [dual.par]  D[par es] i = what the stage has for it
            Exp::Par(ts) => C::par(self, ts),
            // [dual.soac]  the elements one after the other
            Exp::Soac(soac) => self.soac(soac),
            // [dual.array]  D[[es]] i = D[es] i, then ([es], i')
            Exp::ArrayLit(ty, items) => {
                let ty = self.ty(ty);
                let items = self.terms(items)?;
                let value = self.b.term(Exp::ArrayLit(ty, items));
                Ok(self.emit(value, "a"))
            }
            Exp::Vjp(_) | Exp::Jvp(_) => refuse(C::ID, "a derivative inside of a program", t.span()),
            Exp::Custom { .. } => refuse(C::ID, "a function with a derivative of its own", t.span()),
            // [dual.structure]  D[K(es)] i = D[es] i, then (K(es), i')
            Exp::Tuple(_)
            | Exp::Proj(..)
            | Exp::Index(..)
            | Exp::Slice(..)
            | Exp::Update(..)
            | Exp::UpdateSlice(..)
            | Exp::Gather(..)
            | Exp::Size(..)
            | Exp::Iota(_)
            | Exp::Replicate(..)
            | Exp::Rearrange(..)
            | Exp::Reshape { .. }
            | Exp::Concat(_)
            | Exp::Reverse(_)
            | Exp::Rotate(..)
            | Exp::Zip(_)
            | Exp::Unzip(_) => {
                let mut exp = t.exp().clone();
                let mut error = None;
                exp.children_mut(&mut |child| match self.operand(child) {
                    Ok(new) => *child = new,
                    Err(e) => error = error.take().or(Some(e)),
                });
                if let Some(e) = error {
                    return Err(e);
                }
                let value = self.b.term(exp);
                Ok(self.emit(value, "v"))
            }
            Exp::LinearLam(..)
            | Exp::LinearApp(..)
            | Exp::Zero(_)
            | Exp::Plus(..)
            | Exp::SparseTuple(_)
            | Exp::SparseProj(..)
            | Exp::SparseInject(..)
            | Exp::SparseCast(..)
            | Exp::BagOne(..)
            | Exp::BagArray(..)
            | Exp::BagScatter(..)
            | Exp::EvmReturn(..)
            | Exp::EvmBind(..)
            | Exp::EvmAdd { .. }
            | Exp::EvmScope(..)
            | Exp::EvmRun(..)
            | Exp::EvmPar(_)
            | Exp::EvmSequence(..)
            | Exp::StagedCotangent(_)
            | Exp::StagedCall(..)
            | Exp::StagedResolve(_)
            | Exp::MapEmpty(_)
            | Exp::MapInsert { .. }
            | Exp::MapLookup(..)
            | Exp::MapPopMax(_)
            | Exp::IoReturn(_)
            | Exp::IoBind(..)
            | Exp::IoRun(_)
            | Exp::IoPar(_)
            | Exp::MutNew(..)
            | Exp::MutGet(..)
            | Exp::MutSet(..)
            | Exp::MutModify(..)
            | Exp::MutPush(..)
            | Exp::MutSize(_)
            | Exp::MutFreeze(_) => refuse(C::ID, "what another algorithm made", t.span()),
        }
    }
    /// A number with what stands beside a constant.
    fn constant(&mut self, value: Var) -> Var {
        let beside = C::constant(self);
        self.tuple(&[value, beside])
    }
    fn prim(&mut self, prim: Prim, args: &[Term]) -> Res<Var> {
        let params = prim.params();
        let p = match args {
            [one] if matches!(one.ty(), Type::Tuple(_)) => self.term(one)?,
            args => {
                let args = args.iter().map(|t| self.term(t)).collect::<Res<Vec<Var>>>()?;
                self.tuple(&args)
            }
        };
        let values = (0..params.len()).map(|i| {
            let part = component(&mut self.b, p, i);
            if params[i].is_float() { self.b.proj(part, 0) } else { part }
        });
        let values = values.collect();
        let value = self.b.term(Exp::Prim(prim, values));
        let value = self.emit(value, "x");
        if !prim.result().is_float() {
            return Ok(value);
        }
        let slopes = slopes(self.b.program, prim, args).unwrap_or_default();
        let operands: Vec<(usize, Slope)> = slopes
            .into_iter()
            .enumerate()
            .filter(|(i, slope)| params[*i].is_float() && !is_zero(slope.1))
            .collect();
        if operands.is_empty() {
            return Ok(self.constant(value));
        }
        let beside = C::operation(self, &Operation { prim, args: p, operands });
        Ok(self.tuple(&[value, beside]))
    }

    /// The value of a term without floats, or of one number, where nothing is made for a derivative: `D_plain` of 3.9, for scalars, components of products,
    /// elements of arrays and what primitives make of them. Variables become their values where they are scalars, so that no array is walked over.
    ///
    /// `None` for other terms, the rules of which follow.
    fn plain(&mut self, t: &Term) -> Option<Term> {
        fn is_plain<C: Stage>(s: &Forward<'_, C>, t: &Term) -> bool {
            with_stack(|| match t.exp() {
                Exp::Var(x) => s.vars.contains_key(x),
                Exp::Const(_) => true,
                Exp::Prim(_, args) => args.iter().all(|a| a.ty().scalar().is_some() && is_plain(s, a)),
                Exp::Proj(e, _) => is_place(s, e),
                Exp::Index(e, ix) => is_place(s, e) && ix.iter().all(|i| is_plain(s, i)),
                Exp::Size(e, _) => is_place(s, e),
                _ => false,
            })
        }
        fn is_place<C: Stage>(s: &Forward<'_, C>, t: &Term) -> bool {
            with_stack(|| match t.exp() {
                Exp::Var(x) => s.vars.contains_key(x),
                Exp::Proj(e, _) => is_place(s, e),
                Exp::Index(e, ix) => is_place(s, e) && ix.iter().all(|i| is_plain(s, i)),
                _ => false,
            })
        }
        (t.ty().scalar().is_some() && is_plain(self, t)).then(|| self.value_of(t))
    }
    fn value_of(&mut self, t: &Term) -> Term {
        let outer = std::mem::replace(&mut self.b.span, t.span());
        let out = with_stack(|| match t.exp() {
            Exp::Const(c) => self.b.constant(*c),
            Exp::Prim(prim, args) => {
                let args = args.iter().map(|a| self.value_of(a)).collect();
                self.b.term(Exp::Prim(*prim, args))
            }
            Exp::Size(e, k) => {
                let place = self.place(e);
                self.b.size(place, *k)
            }
            _ => {
                let place = self.place(t);
                if t.ty().scalar().is_some_and(Scalar::is_float) { self.b.proj(place, 0) } else { place }
            }
        });
        self.b.span = outer;
        out
    }
    /// A variable or a part of one, with what stands beside its numbers.
    fn place(&mut self, t: &Term) -> Term {
        with_stack(|| match t.exp() {
            Exp::Proj(e, i) => {
                let e = self.place(e);
                self.b.proj(e, *i)
            }
            Exp::Index(e, ix) => {
                let e = self.place(e);
                let ix = ix.iter().map(|i| self.value_of(i)).collect();
                self.b.index(e, ix)
            }
            Exp::Var(x) => {
                let x = self.vars.get(x).copied().unwrap_or(*x);
                self.b.var(x)
            }
            _ => t.clone(),
        })
    }

    // --- functions as operands ---

    pub(super) fn function_operand<'t>(&mut self, f: &'t Term) -> Res<Function<'t>> {
        Ok(if let Exp::Lam(..) = f.exp() { Function::Known(f) } else { Function::Value(self.term(f)?) })
    }
    /// A function applied to arguments, one after the other.
    pub(super) fn applied(&mut self, f: &Function<'_>, args: &[Var]) -> Res<Var> {
        match f {
            Function::Known(t) => {
                let (mut t, mut rest) = (*t, args);
                while let (Exp::Lam(x, b), Some((first, others))) = (t.exp(), rest.split_first()) {
                    self.vars.insert(*x, *first);
                    (t, rest) = (b, others);
                }
                let body = self.term(t)?;
                if rest.is_empty() { Ok(body) } else { self.applied(&Function::Value(body), rest) }
            }
            Function::Value(f) => {
                let mut f = *f;
                for a in args {
                    let (g, a, state) = (self.b.var(f), self.b.var(*a), self.b.var(self.state));
                    let called = self.b.apply(g, [a, state]);
                    f = self.run(called, "r");
                }
                Ok(f)
            }
        }
    }
}
