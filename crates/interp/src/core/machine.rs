//! The state of a run: frames, counters, limits; bodies and calls.

use super::code::{Arg, BodyCode, ExpCode, LamCode, Slot, StmCode};
use super::compile::deep;
use super::num::{Domain, Num};
use super::schedule::Schedule;
use super::value::{Arr, Meter, Val};
use super::{Compiled, Counts, Options};
use crate::core::acc::AccRoot;
use pullback_base::{RuntimeError, RuntimeErrorKind};
use pullback_prim::{Prim, PrimError, ScalarValue};
use std::rc::Rc;
use std::sync::atomic::Ordering;

/// A result of evaluation. Errors are boxed: they are rare, and results are passed everywhere.
pub(crate) type Res<T> = Result<T, Box<RuntimeError>>;

/// An error of the program.
pub(crate) fn fail(kind: RuntimeErrorKind, message: impl Into<String>) -> Box<RuntimeError> {
    Box::new(RuntimeError::new(kind, message))
}

/// A state that a checked program cannot reach.
pub(crate) fn internal(message: impl Into<String>) -> Box<RuntimeError> {
    fail(RuntimeErrorKind::Internal, message)
}

/// Steps between two looks at the limits and the cancel flag.
const CHECK_EVERY: u64 = 1 << 14;

/// A running program.
pub(crate) struct Machine<'p, D: Domain> {
    pub(crate) code: &'p Compiled<'p>,
    pub(crate) options: Options<'p>,
    pub(crate) meter: Rc<Meter>,
    pub(crate) counts: Counts,
    pub(crate) schedule: Option<Schedule>,
    pub(crate) state: D::State,
    /// The frames of all open calls, one after the other.
    slots: Vec<Val<D>>,
    base: usize,
    /// Results of bodies on their way to whoever asked for them.
    pub(crate) stack: Vec<Val<D>>,
    pub(crate) accs: Vec<AccRoot<D>>,
    calls: usize,
    /// The operators of reductions, scans and histograms that are running.
    pub(crate) operators: u32,
    next_check: u64,
}

impl<'p, D: Domain> Machine<'p, D> {
    pub(crate) fn new(code: &'p Compiled<'p>, options: Options<'p>, meter: Rc<Meter>) -> Self {
        Machine {
            code,
            options,
            meter,
            counts: Counts::default(),
            schedule: options.schedule_seed.map(Schedule::new),
            state: D::State::default(),
            slots: Vec::new(),
            base: 0,
            stack: Vec::new(),
            accs: Vec::new(),
            calls: 0,
            operators: 0,
            next_check: CHECK_EVERY.min(options.work_limit.saturating_add(1)),
        }
    }
    /// A machine of another domain with the open frame's size, limits and counters of this one.
    pub(crate) fn child<E: Domain>(&self) -> Machine<'p, E> {
        let mut child = Machine::new(self.code, self.options, self.meter.clone());
        child.counts = self.counts;
        child.schedule = self.schedule.clone();
        child.calls = self.calls;
        child.operators = self.operators;
        child.next_check = self.next_check;
        child.slots.resize_with(self.slots.len() - self.base, || Val::Gone);
        child
    }
    /// Takes over the counters of a child.
    pub(crate) fn absorb<E: Domain>(&mut self, child: &Machine<'p, E>) {
        self.counts = child.counts;
        self.schedule.clone_from(&child.schedule);
        self.next_check = child.next_check;
    }
    pub(crate) fn counts(&self) -> Counts {
        Counts { peak_bytes: self.meter.peak(), peak_tape_bytes: self.meter.tape_peak(), ..self.counts }
    }
    /// Calls a function and returns its results.
    pub(crate) fn run(&mut self, fun: usize, args: Vec<Val<D>>) -> Res<Vec<Val<D>>> {
        if let Some(cancel) = self.options.cancel
            && cancel.load(Ordering::Relaxed)
        {
            return Err(fail(RuntimeErrorKind::Cancelled, "cancelled"));
        }
        let bottom = self.stack.len();
        self.stack.extend(args);
        self.call(fun)?;
        if self.counts.work > self.options.work_limit {
            self.checkpoint()?;
        }
        Ok(self.stack.split_off(bottom))
    }

    /// Counts steps.
    #[inline]
    pub(crate) fn tick(&mut self, steps: u64) -> Res<()> {
        self.counts.work += steps;
        if self.counts.work >= self.next_check { self.checkpoint() } else { Ok(()) }
    }
    #[cold]
    fn checkpoint(&mut self) -> Res<()> {
        let work = self.counts.work;
        if work > self.options.work_limit {
            let message = format!("the limit of {} steps is reached", self.options.work_limit);
            return Err(fail(RuntimeErrorKind::Limit, message));
        }
        if let Some(cancel) = self.options.cancel
            && cancel.load(Ordering::Relaxed)
        {
            return Err(fail(RuntimeErrorKind::Cancelled, format!("cancelled after {work} steps")));
        }
        if let Some(progress) = self.options.progress {
            progress(work);
        }
        self.next_check = (work + CHECK_EVERY).min(self.options.work_limit.saturating_add(1)).max(work + 1);
        Ok(())
    }

    // Slots.

    #[inline]
    pub(crate) fn slot(&self, slot: Slot) -> &Val<D> {
        &self.slots[self.base + slot as usize]
    }
    #[inline]
    pub(crate) fn set(&mut self, slot: Slot, value: Val<D>) {
        self.slots[self.base + slot as usize] = value;
    }
    /// The value of an operand; moved out of its variable at the last use.
    #[inline]
    pub(crate) fn take(&mut self, arg: Arg) -> Val<D> {
        match arg {
            Arg::Keep(s) => self.slot(s).clone(),
            Arg::Move(s) if !self.options.in_place => self.slot(s).clone(),
            Arg::Move(s) => std::mem::replace(&mut self.slots[self.base + s as usize], Val::Gone),
            Arg::Const(c) => c.into(),
        }
    }
    pub(crate) fn take_all(&mut self, args: &[Arg]) -> Vec<Val<D>> {
        args.iter().map(|&a| self.take(a)).collect()
    }
    #[inline]
    pub(crate) fn num(&self, arg: Arg) -> Res<Num<D>> {
        match arg {
            Arg::Keep(s) | Arg::Move(s) => match self.slot(s) {
                Val::Num(x) => Ok(x.clone()),
                other => Err(wrong("a scalar", other)),
            },
            Arg::Const(c) => Ok(Num::lift(c)),
        }
    }
    #[inline]
    pub(crate) fn i64(&self, arg: Arg) -> Res<i64> {
        match self.num(arg)? {
            Num::I64(x) => Ok(x),
            other => Ok(other.primal().as_i64()),
        }
    }
    #[inline]
    pub(crate) fn bool(&self, arg: Arg) -> Res<bool> {
        match self.num(arg)? {
            Num::Bool(x) => Ok(x),
            other => Err(internal(format!("expected a truth value, found {}", other.primal()))),
        }
    }
    /// An array that is only looked at; see [`Machine::release`].
    #[inline]
    pub(crate) fn array(&self, arg: Arg) -> Res<&Arr<D>> {
        match arg {
            Arg::Keep(s) | Arg::Move(s) => match self.slot(s) {
                Val::Arr(a) => Ok(a),
                other => Err(wrong("an array", other)),
            },
            Arg::Const(c) => Err(internal(format!("expected an array, found {c}"))),
        }
    }
    pub(crate) fn take_array(&mut self, arg: Arg) -> Res<Arr<D>> {
        match self.take(arg) {
            Val::Arr(a) => Ok(a),
            other => Err(wrong("an array", &other)),
        }
    }
    /// Drops an operand that was looked at, if that was its last use.
    #[inline]
    pub(crate) fn release(&mut self, arg: Arg) {
        if let Arg::Move(s) = arg
            && self.options.in_place
        {
            self.set(s, Val::Gone);
        }
    }
    /// A size: not negative, and small enough to count with.
    pub(crate) fn size(&self, arg: Arg) -> Res<usize> {
        let n = self.i64(arg)?;
        usize::try_from(n)
            .map_err(|_| fail(RuntimeErrorKind::NegativeSize, format!("{n} is not the size of an array")))
    }

    // Bodies.

    /// Runs a body; its results end up on the stack.
    pub(crate) fn body(&mut self, body: &BodyCode) -> Res<()> {
        for &s in &body.drops {
            self.set(s, Val::Gone);
        }
        for stm in &body.stms {
            self.stm(stm)?;
        }
        for &a in &body.result {
            let value = self.take(a);
            self.stack.push(value);
        }
        Ok(())
    }
    /// Runs a lambda whose arguments are on the stack.
    pub(crate) fn apply(&mut self, lam: &LamCode) -> Res<()> {
        self.bind(&lam.params)?;
        self.body(&lam.body)
    }
    /// The same of the operator of a reduction, scan or histogram.
    pub(crate) fn apply_operator(&mut self, lam: &LamCode) -> Res<()> {
        self.operators += 1;
        let done = self.apply(lam);
        self.operators -= 1;
        done
    }
    /// Moves the topmost values of the stack into slots.
    pub(crate) fn bind(&mut self, slots: &[Slot]) -> Res<()> {
        for &s in slots.iter().rev() {
            let value = self.pop()?;
            self.set(s, value);
        }
        Ok(())
    }
    pub(crate) fn pop(&mut self) -> Res<Val<D>> {
        self.stack.pop().ok_or_else(|| internal("a body returned too few results"))
    }
    #[inline]
    fn stm(&mut self, stm: &StmCode) -> Res<()> {
        let result = self.stm_without_position(stm);
        result.map_err(|e| Box::new(e.at(stm.span)))
    }
    #[inline]
    fn stm_without_position(&mut self, stm: &StmCode) -> Res<()> {
        self.tick(1)?;
        self.counts.span += 1;
        match &stm.exp {
            ExpCode::Simple(exp) => {
                let value = self.simple(exp)?;
                if self.options.check_nan {
                    self.check_finite(exp, &value, stm.rule)?;
                }
                match &*stm.pat {
                    [s] => self.set(*s, value),
                    _ => return Err(internal("one result for several variables")),
                }
            }
            ExpCode::Compound(exp) => {
                let bottom = self.stack.len();
                deep(|| self.compound(exp))?;
                if self.stack.len() != bottom + stm.pat.len() {
                    return Err(internal("another number of results than variables"));
                }
                self.bind(&stm.pat)?;
            }
        }
        for &s in &stm.tapes {
            self.slot(s).put_on_tape();
        }
        for &s in &stm.drops {
            self.set(s, Val::Gone);
        }
        Ok(())
    }
    /// Calls a function whose arguments are on the stack.
    pub(crate) fn call(&mut self, fun: usize) -> Res<()> {
        let code = self.code;
        let Some(fun) = code.funs.get(fun) else {
            return Err(internal("call of an unknown function"));
        };
        if self.calls >= self.options.call_depth_limit {
            let message =
                format!("more than {} calls are open (in {})", self.options.call_depth_limit, fun.name);
            return Err(fail(RuntimeErrorKind::Limit, message));
        }
        let caller = self.base;
        self.calls += 1;
        self.base = self.slots.len();
        self.slots.resize_with(self.base + fun.slots, || Val::Gone);
        let result = deep(|| self.apply(&fun.lam));
        self.slots.truncate(self.base);
        self.base = caller;
        self.calls -= 1;
        result
    }

    /// Runs a parallel part: afterwards the span is that of the longest part so far. See [`Machine::fork`].
    #[inline]
    pub(crate) fn join(&mut self, fork: &mut Fork) {
        fork.longest = fork.longest.max(self.counts.span);
        self.counts.span = fork.start;
    }
    /// The start of parallel parts.
    #[inline]
    pub(crate) fn fork(&self) -> Fork {
        Fork { start: self.counts.span, longest: self.counts.span }
    }
    #[inline]
    pub(crate) fn joined(&mut self, fork: Fork) {
        self.counts.span = fork.longest;
    }

    /// The error of a primitive, with its arguments.
    #[cold]
    pub(crate) fn prim_error(&self, prim: Prim, args: &[Num<D>], error: PrimError) -> Box<RuntimeError> {
        prim_error(prim, args, error)
    }
}

/// The error of a primitive, with its arguments.
#[cold]
pub(crate) fn prim_error<D: Domain>(prim: Prim, args: &[Num<D>], error: PrimError) -> Box<RuntimeError> {
    let show = |x: &Num<D>| match x.primal() {
        x @ ScalarValue::U64(_) => x.to_string().trim_end_matches("u64").to_string(),
        x if x.scalar().is_integer() => x.as_i64().to_string(),
        x => x.to_string(),
    };
    let args: Vec<String> = args.iter().map(show).collect();
    match (error, &*args) {
        (PrimError::DivisionByZero, [x, _]) => {
            fail(RuntimeErrorKind::DivisionByZero, format!("division of {x} by zero"))
        }
        (PrimError::NegativeExponent, [x, y]) => {
            let message = format!("the integer {x} raised to the negative power {y}");
            fail(RuntimeErrorKind::AssertFailed, message)
        }
        _ => internal(format!("{prim:?} has no value at {}", args.join(", "))),
    }
}

/// See [`Machine::fork`].
pub(crate) struct Fork {
    start: u64,
    longest: u64,
}

/// A value of the wrong kind: a malformed program.
#[cold]
pub(crate) fn wrong<D: Domain>(expected: &str, found: &Val<D>) -> Box<RuntimeError> {
    let found = match found {
        Val::Num(x) => format!("the scalar {}", x.primal()),
        Val::Unit => "a unit".into(),
        Val::Tuple(_) => "a product".into(),
        Val::Sum(k, _) => format!("alternative {k} of a sum"),
        Val::Arr(a) => format!("an array of shape {}", super::value::show_shape(&a.shape)),
        Val::Acc(_) => "an accumulator".into(),
        Val::Gone => "a variable without a value".into(),
    };
    internal(format!("expected {expected}, found {found}"))
}
