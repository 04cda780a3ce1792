//! Terms other than array operations and derivatives.

use super::evm::{Action, is_computation};
use super::types::holds_function;
use super::value::{Val, product};
use super::{Lowered, Lowerer, MAX_STEPS, MAX_VARS};
use pullback_base::Span;
use pullback_base::index::IdMap;
use pullback_core as core;
use pullback_core::{Atom, Exp};
use pullback_lambda as lambda;
use pullback_lambda::{Exp as Lam, Term, Type};
use pullback_prim::{Op, Prim};
use std::rc::Rc;

impl Lowerer<'_, '_> {
    /// Emits an expression; gives its results.
    pub(super) fn emit_all(&mut self, exp: Exp, hint: &str) -> Vec<Atom> {
        self.b.emit_all(exp, hint).into_iter().map(Atom::from).collect()
    }
    /// A term of a data type: its leaves.
    pub(super) fn data(&mut self, t: &Term) -> Lowered<Rc<[Atom]>> {
        match self.term(t)? {
            Val::Data(atoms) => Ok(atoms),
            value => Ok(self.coerced(t.ty(), value, t.span())?.into()),
        }
    }
    /// A term with one leaf.
    pub(super) fn atom(&mut self, t: &Term) -> Lowered<Atom> {
        let atoms = self.data(t)?;
        match *atoms {
            [a] => Ok(a),
            _ => self.bug(t.span(), format!("a value of type {} has {} leaves", t.ty(), atoms.len())),
        }
    }
    /// A term. Chains of `let` use no stack.
    pub(super) fn term(&mut self, t: &Term) -> Lowered<Val> {
        let outer = self.b.origin.clone();
        let mut t = t;
        loop {
            self.steps += 1;
            if self.steps > MAX_STEPS || self.b.program.vars.len() > MAX_VARS {
                return self.unsupported(t.span(), "a program this large after inlining");
            }
            if let Some(span) = t.span() {
                self.b.origin = core::Origin { span: Some(span), rule: None };
            }
            let Lam::Let(v, value, body) = t.exp() else { break };
            let before = self.b.program.vars.len();
            let value = self.term(value)?;
            self.name(&value, *v, before);
            self.env.insert(*v, value);
            t = body;
        }
        let result = lambda::with_stack(|| self.node(t));
        self.b.origin = outer;
        result
    }
    /// Gives the variables that a `let` made the name that the source gives them.
    fn name(&mut self, value: &Val, v: lambda::Var, before: usize) {
        let hint = &self.source.vars[v].hint;
        if let Val::Data(atoms) = value {
            for x in atoms.iter().filter_map(|a| a.var()) {
                if pullback_base::index::Index::index(x) >= before && !hint.as_str().is_empty() {
                    self.b.program.vars[x].hint = hint.clone();
                }
            }
        }
    }
    fn one(&mut self, exp: Exp, hint: &str) -> Lowered<Val> {
        Ok(Val::data([self.b.emit(exp, hint)]))
    }
    pub(super) fn atoms(&mut self, ts: &[Term]) -> Lowered<Vec<Atom>> {
        ts.iter().map(|t| self.atom(t)).collect()
    }

    fn node(&mut self, t: &Term) -> Lowered<Val> {
        let span = t.span();
        match t.exp() {
            Lam::Var(v) => match self.env.get(v) {
                Some(value) => Ok(value.clone()),
                None => self.bug(span, format!("variable {} has no value", self.source.vars[*v].hint)),
            },
            Lam::Const(c) => Ok(Val::data([Atom::Const(*c)])),
            Lam::Prim(prim, args) => {
                let args = match &args[..] {
                    [one] => self.data(one)?.to_vec(),
                    args => self.atoms(args)?,
                };
                self.one(Exp::Prim(*prim, args), "t")
            }
            Lam::Sign(x) => self.sign(x, t.ty()),
            Lam::Let(..) => self.bug(span, "let is lowered by its chain"),
            Lam::Lam(v, _) | Lam::LinearLam(v, _) => Ok(self.closure(t, *v)),
            Lam::App(f, a) | Lam::LinearApp(f, a) => {
                let f = self.term(f)?;
                let a = self.term(a)?;
                if is_computation(t.ty()) {
                    return Ok(Val::Action(Rc::new(Action::Apply(f, a))));
                }
                self.apply(&f, a, span)
            }
            Lam::Call(f, args) => self.call(*f, args, span),
            Lam::Tuple(items) => {
                let items = items.iter().map(|t| self.term(t)).collect::<Lowered<Vec<Val>>>()?;
                Ok(product(items))
            }
            Lam::Proj(x, i) => self.component(x, *i),
            Lam::Inject(_, k, fields) => {
                let mut payload = Vec::new();
                for f in fields {
                    payload.extend_from_slice(&self.data(f)?);
                }
                let Some(ty) = self.leaves_at(t.ty(), span)?.pop() else {
                    return self.bug(span, "a sum has a leaf");
                };
                self.one(Exp::Inject(ty, *k, payload), "s")
            }
            Lam::Match(x, arms) => self.match_(x, arms),
            Lam::If(c, a, b) => {
                let c = self.atom(c)?;
                let branches = vec![self.branch(|l| l.term(a))?, self.branch(|l| l.term(b))?];
                self.branching(branches, |bodies| {
                    let mut bodies = bodies.into_iter();
                    let (then, otherwise) =
                        (bodies.next().unwrap_or_default(), bodies.next().unwrap_or_default());
                    Exp::If(c, then, otherwise)
                })
            }
            Lam::Loop(l) => self.loop_(l, span),
            Lam::Assert { condition, message, body } => {
                let c = self.atom(condition)?;
                self.b.emit(Exp::Assert(c, message.clone(), Vec::new()), "ok");
                self.term(body)
            }
            Lam::SameSize { left, right, message, body } => {
                let (l, r) = (self.atom(left)?, self.atom(right)?);
                self.same_size(l, r, message.clone());
                self.term(body)
            }
            Lam::Marked(mark, body) => {
                let mark = match mark {
                    lambda::Mark::Recompute => core::Mark::Recompute,
                    lambda::Mark::Store => core::Mark::Store,
                };
                let branch = self.branch(|l| l.term(body))?;
                self.branching(vec![branch], |bodies| {
                    Exp::Marked(mark, bodies.into_iter().next().unwrap_or_default())
                })
            }
            Lam::StopGradient(x) => {
                let value = self.term(x)?;
                let stopped: Vec<Atom> = value
                    .all_leaves()
                    .into_iter()
                    .map(|a| {
                        let active = a.var().is_some() && self.b.program.is_active(&self.b.ty(a));
                        if active { self.b.emit(Exp::StopGradient(a), "x") } else { a }
                    })
                    .collect();
                Ok(value.rebuilt(&mut stopped.into_iter()))
            }
            Lam::Par(ts) => self.par(ts),
            Lam::Index(a, ix) if holds_function(a.ty()) => {
                let a = self.term(a)?;
                let ix = self.atoms(ix)?;
                self.index_many(a, &ix, span)
            }
            Lam::Size(a, 0) if holds_function(a.ty()) => match self.term(a)? {
                Val::Many(many) => Ok(Val::data([many.size])),
                _ => self.bug(span, "an array of functions that is none"),
            },
            Lam::Unzip(a) if holds_function(a.ty()) => match self.term(a)? {
                Val::Many(many) => self.unzip_many(&many, t),
                _ => self.bug(span, "an array of functions that is none"),
            },
            Lam::Soac(lambda::Soac::Map { f, arrays })
                if holds_function(t.ty()) || arrays.iter().any(|a| holds_function(a.ty())) =>
            {
                self.map_of_functions(f, arrays, t)
            }
            Lam::ArrayLit(..)
            | Lam::Index(..)
            | Lam::Slice(..)
            | Lam::Update(..)
            | Lam::UpdateSlice(..)
            | Lam::Gather(..)
            | Lam::Size(..)
            | Lam::Iota(_)
            | Lam::Replicate(..)
            | Lam::Rearrange(..)
            | Lam::Reshape { .. }
            | Lam::Concat(_)
            | Lam::Reverse(_)
            | Lam::Rotate(..)
            | Lam::Zip(_)
            | Lam::Unzip(_) => {
                let leaves = self.array(t)?;
                self.of_leaves(t.ty(), &leaves, span)
            }
            Lam::Soac(soac) => {
                let leaves = self.soac(soac, t)?;
                self.of_leaves(t.ty(), &leaves, span)
            }
            Lam::Vjp(d) => Ok(Val::data(self.vjp(d, span)?)),
            Lam::Jvp(d) => Ok(Val::data(self.jvp(d, span)?)),
            Lam::Custom { f, rule, arg, tape } => Ok(Val::data(self.custom((f, rule, arg), *tape, span)?)),
            Lam::Zero(ty) => self.zero(ty, span),
            Lam::Plus(a, b) => self.plus(a, b),
            Lam::SparseTuple(_)
            | Lam::SparseProj(..)
            | Lam::SparseInject(..)
            | Lam::SparseCast(..)
            | Lam::BagOne(..)
            | Lam::BagArray(..)
            | Lam::BagScatter(..) => self.sparse(t),
            Lam::EvmReturn(..)
            | Lam::EvmBind(..)
            | Lam::EvmAdd { .. }
            | Lam::EvmScope(..)
            | Lam::EvmRun(..)
            | Lam::EvmPar(_)
            | Lam::EvmSequence(..) => self.computation(t),
            Lam::StagedCotangent(_) | Lam::StagedCall(..) | Lam::StagedResolve(_) => {
                self.unsupported(span, "a staged call")
            }
            Lam::MapEmpty(_) | Lam::MapInsert { .. } | Lam::MapLookup(..) | Lam::MapPopMax(_) => {
                self.unsupported(span, "a map")
            }
            Lam::IoReturn(_)
            | Lam::IoBind(..)
            | Lam::IoRun(_)
            | Lam::IoPar(_)
            | Lam::MutNew(..)
            | Lam::MutGet(..)
            | Lam::MutSet(..)
            | Lam::MutModify(..)
            | Lam::MutPush(..)
            | Lam::MutSize(_)
            | Lam::MutFreeze(_) => self.unsupported(span, "a mutable array"),
        }
    }

    /// Stops the program unless two sizes agree.
    pub(super) fn same_size(&mut self, l: Atom, r: Atom, message: pullback_base::Symbol) {
        if l != r {
            let same =
                self.b.emit(Exp::Prim(Prim::Op(Op::Eq, pullback_prim::Scalar::I64), vec![l, r]), "same");
            self.b.emit(Exp::Assert(same, message, vec![l, r]), "ok");
        }
    }

    fn component(&mut self, x: &Term, i: usize) -> Lowered<Val> {
        match self.term(x)? {
            Val::Tuple(items) => match items.get(i) {
                Some(v) => Ok(v.clone()),
                None => self.bug(x.span(), "a component that is not there"),
            },
            Val::Data(atoms) => {
                let items = x.ty().items().unwrap_or(&[]);
                let mut start = 0;
                for t in items.iter().take(i) {
                    start += self.leaf_count(t, x.span())?;
                }
                let len = items.get(i).map_or(Ok(0), |t| self.leaf_count(t, x.span()))?;
                Ok(Val::data(&atoms[start..start + len]))
            }
            Val::Closure(_) | Val::Choice(_) | Val::Open(_) | Val::Many(_) | Val::Action(_) => {
                self.bug(x.span(), "a component of what is no product")
            }
        }
    }

    /// The value of a function without parameters: computed once, at the start of the core function.
    fn constant(&mut self, f: lambda::FunId, span: Option<Span>) -> Lowered<Val> {
        if let Some(value) = self.constants.values.get(&f) {
            return Ok(value.clone());
        }
        let source = self.source;
        let fun = &source.funs[f];
        let Some(body) = &fun.body else { return self.bug(span, format!("{} has no body", fun.name)) };
        self.b.open();
        let value = self.in_env(IdMap::new(), body, span);
        let made = self.b.close(Vec::new());
        let value = value?;
        self.constants.stms.extend(made.stms);
        self.constants.values.insert(f, value.clone());
        Ok(value)
    }

    fn call(&mut self, f: lambda::FunId, args: &[Term], span: Option<Span>) -> Lowered<Val> {
        if args.is_empty() && !self.plan.is_recursive(f) && !holds_function(&self.source.funs[f].result) {
            return self.constant(f, span);
        }
        let args = args.iter().map(|t| self.term(t)).collect::<Lowered<Vec<Val>>>()?;
        let source = self.source;
        let fun = &source.funs[f];
        if self.plan.inlines(f, self.b.program.vars.len()) {
            let Some(body) = &fun.body else { return self.bug(span, format!("{} has no body", fun.name)) };
            let env: IdMap<lambda::Var, Val> = fun.params.iter().copied().zip(args).collect();
            return self.in_env(env, body, span);
        }
        if is_computation(&fun.result) {
            return Ok(Val::Action(Rc::new(Action::Call(f, args))));
        }
        let (id, atoms) = self.version_for(f, &args, span)?;
        // A function without leaves in its result is not called: it has no effect but stopping the program.
        let results = self.emit_some(Exp::Call(id, atoms), "r");
        self.of_leaves(&fun.result, &results, span)
    }

    /// As [`Self::emit_all`]; an expression without results is not emitted.
    pub(super) fn emit_some(&mut self, exp: Exp, hint: &str) -> Vec<Atom> {
        match core::typing::result_types(self.b.program, &exp) {
            Ok(types) if types.is_empty() => Vec::new(),
            _ => self.emit_all(exp, hint),
        }
    }

    fn match_(&mut self, x: &Term, arms: &[lambda::Arm]) -> Lowered<Val> {
        let sum = self.atom(x)?;
        let mut params = Vec::new();
        let mut branches = Vec::new();
        for arm in arms {
            let mut fields = Vec::new();
            for &p in &arm.params {
                let info = &self.source.vars[p];
                let types = self.leaves_at(&info.ty, info.span)?;
                let fresh: Vec<core::Var> =
                    types.into_iter().map(|t| self.b.fresh(t, info.hint.as_str())).collect();
                fields.push(fresh);
            }
            branches.push(self.branch(|l| {
                // Made where the fields are in scope: the size of an array of functions is asked of it.
                for (&p, fresh) in arm.params.iter().zip(&fields) {
                    let info = &l.source.vars[p];
                    let atoms: Vec<Atom> = fresh.iter().map(|&v| v.into()).collect();
                    let value = l.of_leaves(&info.ty, &atoms, info.span)?;
                    l.env.insert(p, value);
                }
                l.term(&arm.body)
            })?);
            params.push(fields.concat());
        }
        self.branching(branches, |bodies| {
            let arms = params.into_iter().zip(bodies).map(|(params, body)| core::Lam { params, body });
            Exp::Match(sum, arms.collect())
        })
    }

    fn loop_(&mut self, l: &lambda::Loop, span: Option<Span>) -> Lowered<Val> {
        let init = self.data(&l.init)?;
        let hint = self.source.vars[l.state].hint.clone();
        let types = self.leaves_at(&self.source.vars[l.state].ty, span)?;
        let state: Vec<core::Var> = types.into_iter().map(|t| self.b.fresh(t, hint.as_str())).collect();
        let atoms: Vec<Atom> = state.iter().map(|&v| v.into()).collect();
        let state_type = self.source.vars[l.state].ty.clone();
        // Made where the state is in scope: the size of an array of functions is asked of it.
        let inside = |l: &mut Self| l.of_leaves(&state_type, &atoms, span);
        let form = match &l.form {
            lambda::LoopForm::For(i, n) => {
                let n = self.atom(n)?;
                let info = &self.source.vars[*i];
                let ty = self.b.ty(n);
                let counter = self.b.fresh(ty, info.hint.as_str());
                self.env.insert(*i, Val::data([counter.into()]));
                core::LoopForm::For { i: counter, n }
            }
            lambda::LoopForm::While(c) => core::LoopForm::While(self.body(span, |lowerer| {
                let value = inside(lowerer)?;
                lowerer.env.insert(l.state, value);
                Ok(lowerer.data(c)?.to_vec())
            })?),
        };
        let body = self.body(span, |lowerer| {
            let value = inside(lowerer)?;
            lowerer.env.insert(l.state, value);
            Ok(lowerer.data(&l.body)?.to_vec())
        })?;
        let attrs = core::LoopAttrs {
            tape: l.attrs.tape.map(|t| match t {
                lambda::TapePolicy::All => core::TapePolicy::All,
                lambda::TapePolicy::Carry => core::TapePolicy::Carry,
                lambda::TapePolicy::Sqrt => core::TapePolicy::Sqrt,
                lambda::TapePolicy::Revolve(s) => core::TapePolicy::Revolve(s),
            }),
            stripmine: l.attrs.stripmine,
            bound: l.attrs.bound,
        };
        let params = state.into_iter().zip(init.iter().copied()).collect();
        let exp = Exp::Loop(core::Loop { params, form, body, collect: 0, attrs });
        let results = self.emit_some(exp, hint.as_str());
        self.of_leaves(&state_type, &results, span)
    }

    fn par(&mut self, ts: &[Term]) -> Lowered<Val> {
        let mut bodies = Vec::new();
        let mut templates = Vec::new();
        for t in ts {
            let branch = self.branch(|l| l.term(t))?;
            let (body, template) = self.join(vec![branch])?;
            bodies.extend(body);
            templates.push(template);
        }
        let results = self.emit_some(Exp::Par(bodies), "p");
        let mut leaves = results.into_iter();
        let items = templates.iter().map(|v| v.rebuilt(&mut leaves)).collect();
        Ok(product(items))
    }

    fn zero(&mut self, ty: &Type, span: Option<Span>) -> Lowered<Val> {
        Ok(Val::data(self.zeros(ty, span)?))
    }

    fn plus(&mut self, a: &Term, b: &Term) -> Lowered<Val> {
        let ty = a.ty();
        let (a, b) = (self.data(a)?, self.data(b)?);
        Ok(Val::data(self.sum(ty, &a, &b, None)?))
    }
}
