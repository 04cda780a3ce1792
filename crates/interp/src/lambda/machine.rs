//! The evaluator: variables, functions, products, sums, control flow.
//!
//! Every variable is bound once in the program, so its value lives in one slot; whoever binds it again (a recursive call, an
//! iteration, a closure that brings its captured variables) puts the old value back when it is done.

use super::uses::address;
use super::value::{FunCode, LambdaCode, Node, Num, Val, wrong};
use super::{Compiled, Counts, Options, Profile};
use crate::core::compile::deep;
use crate::core::machine::{Res, fail, internal, prim_error};
use crate::core::num::Domain;
use crate::core::schedule::Schedule;
use crate::core::value::Meter;
use crate::dual::number::{Dual, DualState};
use pullback_base::RuntimeErrorKind;
use pullback_base::index::Index;
use pullback_lambda::{Arm, Exp, FunId, Loop, LoopForm, Term, Type, Var};
use pullback_prim::Prim;
use std::rc::Rc;
use std::sync::atomic::Ordering;

/// Steps between two looks at the limits and the cancel flag.
const CHECK_EVERY: u64 = 1 << 14;

/// A running program.
pub(crate) struct Machine<'p> {
    pub(super) code: &'p Compiled<'p>,
    options: Options<'p>,
    pub(super) meter: Rc<Meter>,
    pub(super) counts: Counts,
    pub(super) profile: Profile,
    pub(super) schedule: Option<Schedule>,
    pub(super) dual: DualState,
    /// The operators of reductions, scans and histograms that are running.
    pub(super) operators: u32,
    vars: Vec<Val>,
    /// What the slots held before the open bindings.
    trail: Vec<(Var, Val)>,
    calls: usize,
    next_check: u64,
}

/// Nodes of a product of `n` components as nested pairs.
pub(super) fn pairs(n: usize) -> u64 {
    n.saturating_sub(1).max(1) as u64
}

impl<'p> Machine<'p> {
    pub(super) fn new(code: &'p Compiled<'p>, options: Options<'p>, meter: Rc<Meter>) -> Self {
        Machine {
            code,
            options,
            meter,
            counts: Counts::default(),
            profile: Profile::default(),
            schedule: options.schedule_seed.map(Schedule::new),
            dual: DualState::default(),
            operators: 0,
            vars: vec![Val::Gone; code.program.vars.len()],
            trail: Vec::new(),
            calls: 0,
            next_check: CHECK_EVERY.min(options.work_limit.saturating_add(1)),
        }
    }
    pub(super) fn counts(&self) -> Counts {
        Counts { peak_bytes: self.meter.peak(), ..self.counts }
    }
    /// Calls a top-level function from outside.
    pub(super) fn run(&mut self, fun: FunId, args: Vec<Val>) -> Res<Val> {
        self.cancelled("cancelled")?;
        let result = self.call(fun, args)?;
        if self.counts.work > self.options.work_limit {
            self.checkpoint()?;
        }
        Ok(result)
    }

    /// Counts steps that follow each other.
    #[inline]
    pub(super) fn step(&mut self, steps: u64) -> Res<()> {
        self.counts.span += steps;
        self.tick(steps)
    }
    /// Counts steps of a bulk operation, whose span the caller counts.
    #[inline]
    pub(super) fn tick(&mut self, steps: u64) -> Res<()> {
        self.counts.work = self.counts.work.saturating_add(steps);
        if self.counts.work >= self.next_check { self.checkpoint() } else { Ok(()) }
    }
    fn cancelled(&self, message: &str) -> Res<()> {
        match self.options.cancel {
            Some(cancel) if cancel.load(Ordering::Relaxed) => Err(fail(RuntimeErrorKind::Cancelled, message)),
            _ => Ok(()),
        }
    }
    #[cold]
    fn checkpoint(&mut self) -> Res<()> {
        let work = self.counts.work;
        if work > self.options.work_limit {
            let message = format!("the limit of {} steps is reached", self.options.work_limit);
            return Err(fail(RuntimeErrorKind::Limit, message));
        }
        self.cancelled(&format!("cancelled after {work} steps"))?;
        if let Some(progress) = self.options.progress {
            progress(work);
        }
        self.next_check = work
            .saturating_add(CHECK_EVERY)
            .min(self.options.work_limit.saturating_add(1))
            .max(work.saturating_add(1));
        Ok(())
    }

    // Variables.

    pub(super) fn bind(&mut self, v: Var, value: Val) -> Res<()> {
        let slot = self.vars.get_mut(v.index()).ok_or_else(|| internal("an unknown variable"))?;
        let old = std::mem::replace(slot, value);
        self.trail.push((v, old));
        Ok(())
    }
    fn mark(&self) -> usize {
        self.trail.len()
    }
    fn unbind(&mut self, mark: usize) {
        while self.trail.len() > mark {
            if let Some((v, old)) = self.trail.pop() {
                self.vars[v.index()] = old;
            }
        }
    }
    fn var(&self, v: Var) -> Res<Val> {
        match self.vars.get(v.index()) {
            Some(Val::Gone) | None => Err(internal("a variable is read before it is bound")),
            Some(value) => Ok(value.clone()),
        }
    }

    /// The value of a variable at a use of it; moved out at the last one.
    fn use_of(&mut self, t: &Term, v: Var) -> Res<Val> {
        if self.code.last_uses.get(&address(t)) != Some(&true) {
            return self.var(v);
        }
        match self.vars.get_mut(v.index()).map(|slot| std::mem::replace(slot, Val::Gone)) {
            Some(Val::Gone) | None => Err(internal("a variable is read before it is bound")),
            Some(value) => Ok(value),
        }
    }

    // Functions.

    fn open_call(&mut self, name: &str) -> Res<()> {
        if self.calls >= self.options.call_depth_limit {
            let message = format!("more than {} calls are open (in {name})", self.options.call_depth_limit);
            return Err(fail(RuntimeErrorKind::Limit, message));
        }
        self.calls += 1;
        Ok(())
    }
    fn call(&mut self, fun: FunId, args: Vec<Val>) -> Res<Val> {
        let program = self.code.program;
        let id = fun;
        let Some(fun) = program.funs.get(id) else { return Err(internal("call of an unknown function")) };
        *self.profile.calls.place(id).get_or_insert(0) += 1;
        let Some(body) = &fun.body else { return Err(internal("call of a function without a body")) };
        if fun.params.len() != args.len() {
            return Err(internal("a call with another number of arguments"));
        }
        self.open_call(fun.name.as_str())?;
        let mark = self.mark();
        for (v, value) in fun.params.iter().zip(args) {
            self.bind(*v, value)?;
        }
        let result = deep(|| self.eval(body));
        self.unbind(mark);
        self.calls -= 1;
        result
    }
    /// Applies a function value; costs what its body costs.
    pub(super) fn apply(&mut self, f: &Val, arg: Val) -> Res<Val> {
        self.apply_last(f.clone(), arg)
    }
    /// The last application of a function: if nobody else has it, what it captures is moved into its body, which may write it in place.
    pub(super) fn apply_last(&mut self, f: Val, arg: Val) -> Res<Val> {
        let Val::Fun(code, node) = f else { return Err(wrong("a function", &f)) };
        match code {
            FunCode::Lambda(lambda) => self.apply_lambda(&lambda, node, arg),
            FunCode::Constant => node.item(0).cloned(),
            FunCode::Sum => {
                let (f, g) = (node.item(0)?.clone(), node.item(1)?.clone());
                let left = deep(|| self.apply(&f, arg.clone()))?;
                let right = deep(|| self.apply(&g, arg))?;
                self.plus(left, right)
            }
        }
    }
    fn apply_lambda(&mut self, lambda: &LambdaCode, mut captured: Rc<Node>, arg: Val) -> Res<Val> {
        self.open_call("a function value")?;
        *self.profile.applications.place(lambda.param).get_or_insert(0) += 1;
        let mark = self.mark();
        match Rc::get_mut(&mut captured) {
            Some(own) => {
                for (v, value) in lambda.captures.iter().zip(own.items.drain(..)) {
                    self.bind(*v, value)?;
                }
            }
            None => {
                for (v, value) in lambda.captures.iter().zip(&captured.items) {
                    self.bind(*v, value.clone())?;
                }
            }
        }
        drop(captured);
        self.bind(lambda.param, arg)?;
        let result = deep(|| self.eval(&lambda.body));
        self.unbind(mark);
        self.calls -= 1;
        result
    }
    fn closure(&mut self, param: Var) -> Res<Val> {
        let Some(lambda) = self.code.lambdas.get(&param) else { return Err(internal("an unknown lambda")) };
        let captured = lambda.captures.iter().map(|&v| self.var(v)).collect::<Res<Vec<_>>>()?;
        self.step(1 + captured.len() as u64)?;
        Ok(Val::Fun(FunCode::Lambda(lambda.clone()), Node::new(&self.meter, captured)?))
    }

    // Terms.

    /// The value of a term.
    pub(super) fn eval(&mut self, t: &Term) -> Res<Val> {
        let mark = self.mark();
        let mut t = t;
        while let Exp::Let(v, value, body) = t.exp() {
            self.step(1)?;
            let value = self.eval(value)?;
            self.bind(*v, value)?;
            t = body;
        }
        let result = match t.exp() {
            Exp::Var(v) => self.step(1).and_then(|()| self.use_of(t, *v)),
            _ => deep(|| self.node(t)),
        };
        self.unbind(mark);
        result.map_err(|e| Box::new(e.at(t.span())))
    }
    pub(super) fn eval_all(&mut self, ts: &[Term]) -> Res<Vec<Val>> {
        ts.iter().map(|t| self.eval(t)).collect()
    }
    pub(super) fn unit(&self) -> Res<Val> {
        self.tuple(Vec::new())
    }
    pub(super) fn tuple(&self, items: Vec<Val>) -> Res<Val> {
        Ok(Val::Tuple(Node::new(&self.meter, items)?))
    }
    pub(super) fn i64(&mut self, t: &Term) -> Res<i64> {
        match self.eval(t)? {
            Val::Num(Num::I64(x)) => Ok(x),
            other => Err(wrong("an i64", &other)),
        }
    }
    pub(super) fn truth(&mut self, t: &Term) -> Res<bool> {
        match self.eval(t)? {
            Val::Num(Num::Bool(x)) => Ok(x),
            other => Err(wrong("a truth value", &other)),
        }
    }
    /// A size: not negative.
    pub(super) fn size(&mut self, t: &Term) -> Res<usize> {
        let n = self.i64(t)?;
        checked_size(n)
    }

    fn node(&mut self, t: &Term) -> Res<Val> {
        match t.exp() {
            // Chains of `let` are walked by the caller.
            Exp::Var(_) | Exp::Let(..) => self.eval(t),
            Exp::Const(c) => {
                self.step(2)?;
                Ok(Val::Num(Num::lift(*c)))
            }
            Exp::Prim(prim, args) => self.prim(*prim, args),
            Exp::Sign(x) => {
                self.step(1)?;
                let Val::Num(x) = self.eval(x)? else {
                    return Err(internal("the sign of what is no number"));
                };
                let x = x.primal().as_f64();
                let sum = |k: usize, payload: Val| {
                    Node::new(&self.meter, vec![payload]).map(|node| Val::Sum(k, node))
                };
                if x == 0.0 || x.is_nan() {
                    sum(1, self.unit()?)
                } else {
                    sum(0, sum(usize::from(x > 0.0), self.unit()?)?)
                }
            }
            Exp::Lam(param, _) | Exp::LinearLam(param, _) => self.closure(*param),
            Exp::App(f, a) | Exp::LinearApp(f, a) => {
                self.step(1)?;
                let f = self.eval(f)?;
                let a = self.eval(a)?;
                self.apply_last(f, a)
            }
            Exp::Call(f, args) => {
                self.step(1)?;
                let args = self.eval_all(args)?;
                self.call(*f, args)
            }
            Exp::Tuple(items) => {
                self.step(pairs(items.len()))?;
                let items = self.eval_all(items)?;
                self.tuple(items)
            }
            Exp::Proj(x, i) => {
                self.step(1)?;
                match self.eval(x)? {
                    Val::Tuple(node) => node.item(*i).cloned(),
                    other => Err(wrong("a product", &other)),
                }
            }
            Exp::Inject(_, k, fields) => {
                self.step(if fields.len() == 1 { 1 } else { 1 + pairs(fields.len()) })?;
                let fields = self.eval_all(fields)?;
                Ok(Val::Sum(*k, Node::new(&self.meter, fields)?))
            }
            Exp::Match(x, arms) => self.match_(x, arms),
            Exp::If(c, a, b) => {
                self.step(1)?;
                if self.truth(c)? { self.eval(a) } else { self.eval(b) }
            }
            Exp::Loop(l) => self.loop_(l),
            Exp::Assert { condition, message, body } => {
                self.step(1)?;
                if !self.truth(condition)? {
                    let message = format!("assertion failed: {message}");
                    return Err(fail(RuntimeErrorKind::AssertFailed, message));
                }
                self.eval(body)
            }
            Exp::SameSize { left, right, message, body } => {
                self.step(1)?;
                let (l, r) = (self.i64(left)?, self.i64(right)?);
                if l != r {
                    let message = format!("{message}: sizes {l} and {r} differ");
                    return Err(fail(RuntimeErrorKind::ShapeMismatch, message));
                }
                self.eval(body)
            }
            Exp::Vjp(d) => self.derivative(d, true),
            Exp::Jvp(d) => self.derivative(d, false),
            Exp::Custom { f, rule: _, arg, tape: _ } => {
                self.step(1)?;
                let f = self.eval(f)?;
                let arg = self.eval(arg)?;
                self.apply(&f, arg)
            }
            Exp::Marked(_, x) => self.step(1).and_then(|()| self.eval(x)),
            Exp::StopGradient(x) => {
                self.step(1)?;
                let value = self.eval(x)?;
                self.without_tangents(&value)
            }
            Exp::Par(ts) => {
                self.step(pairs(ts.len()))?;
                let items = self.in_parallel(ts.len(), |m, i| m.eval(&ts[i]))?;
                self.tuple(items)
            }
            Exp::Soac(soac) => self.soac(soac, t),
            Exp::ArrayLit(..)
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
            | Exp::Unzip(_) => self.array(t),
            Exp::Zero(_)
            | Exp::Plus(..)
            | Exp::SparseTuple(_)
            | Exp::SparseProj(..)
            | Exp::SparseInject(..)
            | Exp::SparseCast(..)
            | Exp::EvmReturn(..)
            | Exp::EvmBind(..)
            | Exp::EvmAdd { .. }
            | Exp::EvmScope(..)
            | Exp::BagOne(..)
            | Exp::BagArray(..)
            | Exp::BagScatter(..)
            | Exp::EvmPar(_)
            | Exp::EvmSequence(..)
            | Exp::EvmRun(..)
            | Exp::StagedCotangent(_)
            | Exp::StagedCall(..)
            | Exp::StagedResolve(_) => self.cotangent(t),
            Exp::MapEmpty(_)
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
            | Exp::MutFreeze(_) => self.effect(t),
        }
    }

    fn prim(&mut self, prim: Prim, args: &[Term]) -> Res<Val> {
        self.step(if args.len() == 1 { 1 } else { 1 + pairs(args.len()) })?;
        let number = |value: Val| match value {
            Val::Num(x) => Ok(x),
            other => Err(wrong("a scalar", &other)),
        };
        let args = match args {
            [one] => match self.eval(one)? {
                Val::Tuple(node) => {
                    Node::into_items(node).into_iter().map(number).collect::<Res<Vec<Num>>>()?
                }
                value => vec![number(value)?],
            },
            args => args.iter().map(|t| self.eval(t).and_then(number)).collect::<Res<Vec<Num>>>()?,
        };
        self.counts.flops += 1;
        let inside = self.operators > 0;
        Dual::prim(&mut self.dual, prim, &args, inside).map(Val::Num).map_err(|e| prim_error(prim, &args, e))
    }
    fn match_(&mut self, x: &Term, arms: &[Arm]) -> Res<Val> {
        self.step(1)?;
        match self.eval(x)? {
            Val::Sum(k, node) => {
                let Some(arm) = arms.get(k) else {
                    return Err(internal(format!("a match has no arm for alternative {k}")));
                };
                if node.items.len() != arm.params.len() {
                    return Err(internal("a payload of another size than its arm"));
                }
                let mark = self.mark();
                for (v, value) in arm.params.iter().zip(Node::into_items(node)) {
                    self.bind(*v, value)?;
                }
                let result = self.eval(&arm.body);
                self.unbind(mark);
                result
            }
            other => Err(wrong("a sum", &other)),
        }
    }
    fn loop_(&mut self, l: &Loop) -> Res<Val> {
        self.step(1)?;
        let mut state = self.eval(&l.init)?;
        let mut done: i64 = 0;
        let n = match &l.form {
            LoopForm::For(_, n) => match self.eval(n)? {
                Val::Num(n) => n.primal().as_i64(),
                other => return Err(wrong("a number of iterations", &other)),
            },
            LoopForm::While(_) => i64::MAX,
        };
        while done < n {
            self.step(1)?;
            let mark = self.mark();
            self.bind(l.state, state)?;
            let go = match &l.form {
                LoopForm::For(i, count) => {
                    let scalar =
                        count.ty().scalar().ok_or_else(|| internal("a counter that is no scalar"))?;
                    self.bind(*i, Val::Num(Num::lift(scalar.from_i64(done))))?;
                    true
                }
                LoopForm::While(c) => self.truth(c)?,
            };
            state = if go { self.eval(&l.body)? } else { self.var(l.state)? };
            self.unbind(mark);
            if !go {
                break;
            }
            done += 1;
        }
        Ok(state)
    }

    /// Runs `n` parts in an order of the schedule; their span is that of the longest.
    pub(super) fn in_parallel(
        &mut self,
        n: usize,
        mut part: impl FnMut(&mut Self, usize) -> Res<Val>,
    ) -> Res<Vec<Val>> {
        let (start, mut longest) = (self.counts.span, self.counts.span);
        let mut results = Vec::new();
        if let Some(schedule) = &mut self.schedule {
            // Accounted like the indices and the result slots, so that a huge width is an error.
            let _charge = self.meter.charge(32 * n as u128)?;
            let order = schedule.order(n);
            results.resize(n, Val::Gone);
            for i in order {
                results[i] = part(self, i)?;
                longest = longest.max(std::mem::replace(&mut self.counts.span, start));
            }
        } else {
            for i in 0..n {
                results.push(part(self, i)?);
                longest = longest.max(std::mem::replace(&mut self.counts.span, start));
            }
        }
        self.counts.span = longest;
        Ok(results)
    }
    /// The element type of an array term.
    pub(super) fn element_type(t: &Term) -> Res<&Type> {
        t.ty().elem().ok_or_else(|| internal("an array operation without an array"))
    }
}

/// A size: not negative.
pub(super) fn checked_size(n: i64) -> Res<usize> {
    usize::try_from(n)
        .map_err(|_| fail(RuntimeErrorKind::NegativeSize, format!("{n} is not the size of an array")))
}
