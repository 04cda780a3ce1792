//! The reference executor of kernel IR: slow, and careful.
//!
//! It checks what compiled code assumes: every load and store is inside memory that was allocated and not yet released, memory
//! is written before it is read, and elements have one type. A violation is an `Internal` error. It is the oracle for
//! executors, and shows whether the lowering or an executor is wrong.
//!
//! Code with events ([`crate::Ghosts`]) is checked for more: no variable is read after it was written over. So each run is a test of ownership,
//! whatever the values are (`ghosts`, `memory`).
//!
//! Each float has a fingerprint beside its value, so that two schedules of one program can be compared exactly (`fingerprint`).
//!
//! Lanes are run one after the other within each instruction. Loops whose order is [`Order::Any`] can be run backwards
//! ([`Options::backwards`]), which shows most wrong claims about order.

pub(crate) mod fingerprint;
mod ghosts;
mod memory;

use crate::ghosts::Ghosts;
use crate::ir::{Block, FunctionId, Ins, Module, Operand, Order, Reg, Ty};
pub use fingerprint::Fingerprint;
use fingerprint::Number;
pub use memory::{Memory, Pointer, Seen, Word};
use memory::{Printed, wrong};
use pullback_base::index::Index;
use pullback_base::{RuntimeError, RuntimeErrorKind};
use pullback_prim::{Op, Prim, PrimError, Scalar, ScalarValue};

/// How a function is run.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How many instructions it may take.
    pub steps: u64,
    /// Whether loops that allow any order run from their end.
    pub backwards: bool,
}

/// Runs a function. Errors: those of the program, `Limit` and `Internal`.
pub fn run(
    module: &Module,
    function: FunctionId,
    args: &[Word],
    memory: &mut Memory,
    options: Options,
) -> Result<Vec<Word>, RuntimeError> {
    run_with_ghosts((module, &Ghosts::default()), function, args, memory, options)
}

/// The same, with the fingerprints of results. Floats of arguments have random ones, told apart by their order and by the order of
/// [`Memory::put`]: they are the same in all runs that are given the same.
pub fn run_with_fingerprints(
    module: &Module,
    function: FunctionId,
    args: &[Word],
    memory: &mut Memory,
    options: Options,
) -> Result<Vec<(Word, Fingerprint)>, RuntimeError> {
    let results = machine((module, &Ghosts::default()), memory, options).start(function, args)?;
    Ok(results.into_iter().map(|r| (r.word, r.print)).collect())
}

/// The same for code that says what it reads ([`crate::lower_with_ghosts`]). A variable that is read after it was written over is an `Internal`
/// error, too; also where a result is read from memory. Cost: that of a run, and the elements of what is compared as a whole.
pub fn run_with_ghosts(
    (module, ghosts): (&Module, &Ghosts),
    function: FunctionId,
    args: &[Word],
    memory: &mut Memory,
    options: Options,
) -> Result<Vec<Word>, RuntimeError> {
    memory.names = ghosts.names.clone();
    let results = machine((module, ghosts), memory, options).start(function, args)?;
    Ok(results.into_iter().map(|r| r.word).collect())
}

fn machine<'a>(
    (module, ghosts): (&'a Module, &'a Ghosts),
    memory: &'a mut Memory,
    options: Options,
) -> Machine<'a> {
    let (steps, active) = (options.steps, usize::MAX);
    Machine { module, ghosts, memory, steps, depth: 0, lanes: None, active, options }
}

struct Machine<'a> {
    module: &'a Module,
    ghosts: &'a Ghosts,
    memory: &'a mut Memory,
    steps: u64,
    depth: usize,
    /// How many lanes the loop around has.
    lanes: Option<usize>,
    /// How many of the lanes are active, if there are so many.
    active: usize,
    options: Options,
}

/// What a register holds; nothing before it is set. Lanes that were never active hold nothing either.
#[derive(Clone, Debug, Default)]
enum Held {
    #[default]
    Nothing,
    One(Printed),
    /// An element that was loaded after it was written over: an error, once somebody uses it. What it says.
    Lost(String),
    Lanes(Vec<Option<Number>>),
}

type Regs = Vec<Held>;
type Res<T> = Result<T, RuntimeError>;

/// A constant, with its fingerprint.
fn constant(x: ScalarValue) -> Number {
    (x, Fingerprint::of(x))
}

impl Machine<'_> {
    fn start(&mut self, id: FunctionId, args: &[Word]) -> Res<Vec<Printed>> {
        let args: Vec<_> = args.iter().enumerate().map(|(k, a)| a.given([0, k as u64])).collect();
        self.call(id, &args)
    }
    fn call(&mut self, id: FunctionId, args: &[Printed]) -> Res<Vec<Printed>> {
        let f = &self.module.functions[id];
        if self.depth >= 10_000 {
            return Err(RuntimeError::new(RuntimeErrorKind::Limit, "too many open calls"));
        }
        let mut regs: Regs = vec![Held::Nothing; f.regs.len()];
        for (p, a) in f.params.iter().zip(args) {
            regs[p.index()] = Held::One(*a);
        }
        self.depth += 1;
        self.block(&f.body, &mut regs, id)?;
        self.depth -= 1;
        f.results.iter().map(|r| self.printed(&regs, Operand::Reg(*r))).collect()
    }
    fn printed(&self, regs: &Regs, a: Operand) -> Res<Printed> {
        match a {
            Operand::Reg(r) => match &regs[r.index()] {
                Held::One(printed) => Ok(*printed),
                Held::Nothing => Err(wrong(format!("register {r:?} is not set"))),
                Held::Lost(what) => Err(wrong(what.as_str())),
                Held::Lanes(_) => Err(wrong(format!("register {r:?} is one of lanes"))),
            },
            Operand::Const(c) => Ok(Word::Scalar(c).printed()),
            Operand::Null => Ok(Word::Pointer(Pointer::NULL).printed()),
        }
    }
    fn value(&self, regs: &Regs, a: Operand) -> Res<Word> {
        Ok(self.printed(regs, a)?.word)
    }
    fn number(&self, regs: &Regs, a: Operand) -> Res<Number> {
        match self.printed(regs, a)? {
            Printed { word: Word::Scalar(x), print } => Ok((x, print)),
            Printed { word: Word::Pointer(_), .. } => Err(wrong("a pointer where a scalar is needed")),
        }
    }
    fn scalar(&self, regs: &Regs, a: Operand) -> Res<ScalarValue> {
        Ok(self.number(regs, a)?.0)
    }
    fn i64(&self, regs: &Regs, a: Operand) -> Res<i64> {
        let x = self.scalar(regs, a)?;
        if x.scalar() == Scalar::I64 { Ok(x.as_i64()) } else { Err(wrong("an index that is no i64")) }
    }
    fn pointer(&self, regs: &Regs, a: Operand) -> Res<Pointer> {
        match self.value(regs, a)? {
            Word::Pointer(p) => Ok(p),
            Word::Scalar(_) => Err(wrong("a scalar where a pointer is needed")),
        }
    }
    fn set(&self, regs: &mut Regs, id: FunctionId, to: Reg, value: Printed) -> Res<()> {
        let Printed { word, print } = value;
        let ty = self.module.functions[id].regs[to].ty;
        if let (Word::Scalar(x), Ty::Lanes(..)) = (word, ty) {
            return self.set_lanes(regs, id, to, |_, _| Ok((x, print)));
        }
        let fits = match (word, ty) {
            (Word::Scalar(x), Ty::Scalar(s)) => x.scalar() == s,
            (Word::Pointer(_), Ty::Pointer) => true,
            _ => false,
        };
        if !fits {
            return Err(wrong(format!("{word:?} does not fit a register of type {ty:?}")));
        }
        regs[to.index()] = Held::One(value);
        Ok(())
    }
    fn set_number(&self, regs: &mut Regs, id: FunctionId, to: Reg, (x, print): Number) -> Res<()> {
        self.set(regs, id, to, Printed { word: Word::Scalar(x), print })
    }
    fn set_i64(&self, regs: &mut Regs, id: FunctionId, to: Reg, x: i64) -> Res<()> {
        self.set(regs, id, to, Word::Scalar(ScalarValue::I64(x)).printed())
    }

    // --- lanes ---

    fn is_lanes(&self, id: FunctionId, a: Operand) -> bool {
        match a {
            Operand::Reg(r) => self.module.functions[id].regs[r].ty.is_lanes(),
            Operand::Const(_) | Operand::Null => false,
        }
    }
    /// What an operand is in a lane.
    fn lane(&self, regs: &Regs, a: Operand, lane: usize) -> Res<Number> {
        match a {
            Operand::Reg(r) => match &regs[r.index()] {
                Held::Lanes(all) if self.lanes.is_some_and(|n| n != all.len()) => {
                    Err(wrong(format!("register {r:?} has {} lanes", all.len())))
                }
                Held::Lanes(all) => all
                    .get(lane)
                    .copied()
                    .flatten()
                    .ok_or_else(|| wrong(format!("lane {lane} of register {r:?} is not set"))),
                _ => self.number(regs, a),
            },
            _ => self.number(regs, a),
        }
    }
    fn lane_i64(&self, regs: &Regs, a: Operand, lane: usize) -> Res<i64> {
        let (x, _) = self.lane(regs, a, lane)?;
        if x.scalar() == Scalar::I64 { Ok(x.as_i64()) } else { Err(wrong("an index that is no i64")) }
    }
    /// How many lanes an instruction has: as many as its registers of lanes, or the loop around.
    fn lanes_of(&self, id: FunctionId, ins: &Ins) -> Res<usize> {
        let regs = &self.module.functions[id].regs;
        let mut all: Vec<usize> = self.lanes.into_iter().collect();
        all.extend(ins.sets().iter().copied().filter_map(|r| regs[r].ty.lanes()));
        ins.reads(&mut |a| all.extend(a.as_reg().and_then(|r| regs[r].ty.lanes())));
        match all[..] {
            [first, ref more @ ..] if more.iter().all(|n| *n == first) => Ok(first),
            _ => Err(wrong(format!("an instruction on {all:?} lanes"))),
        }
    }
    /// The active ones of so many lanes where a mask holds.
    fn chosen(&self, regs: &Regs, lanes: usize, mask: Option<Operand>) -> Res<Vec<usize>> {
        let mut out = Vec::new();
        for lane in 0..lanes.min(self.active) {
            if mask.map_or(Ok(true), |m| self.lane(regs, m, lane).map(|(x, _)| x.is_true()))? {
                out.push(lane);
            }
        }
        Ok(out)
    }
    /// Sets the active lanes.
    fn set_lanes(
        &self,
        regs: &mut Regs,
        id: FunctionId,
        to: Reg,
        value: impl Fn(&Regs, usize) -> Res<Number>,
    ) -> Res<()> {
        let Ty::Lanes(scalar, lanes) = self.module.functions[id].regs[to].ty else {
            return Err(wrong(format!("register {to:?} is not one of lanes")));
        };
        let mut all = match std::mem::take(&mut regs[to.index()]) {
            Held::Lanes(all) => all,
            Held::Nothing | Held::One(_) | Held::Lost(_) => vec![None; lanes],
        };
        // What an operand holds is read before its own register is set.
        let old = Held::Lanes(all.clone());
        regs[to.index()] = old;
        for (lane, cell) in all.iter_mut().enumerate().take(self.active) {
            let (x, print) = value(regs, lane)?;
            if x.scalar() != scalar {
                return Err(wrong(format!("{x:?} does not fit lanes of type {scalar:?}")));
            }
            *cell = Some((x, print));
        }
        regs[to.index()] = Held::Lanes(all);
        Ok(())
    }
    fn prim(&self, prim: Prim, args: &[Number]) -> Res<Number> {
        let values: Vec<ScalarValue> = args.iter().map(|(x, _)| *x).collect();
        match prim.eval(&values) {
            Ok(value) => Ok((value, fingerprint::of_prim(prim, args, value))),
            Err(e @ (PrimError::DivisionByZero | PrimError::NegativeExponent)) => {
                Err(wrong(format!("{e:?} was not checked before")))
            }
            Err(e) => Err(wrong(format!("{}: {e:?}", prim.name()))),
        }
    }
    /// A primitive in all active lanes. Lanes that are not wanted may divide by zero.
    fn prim_lanes(&self, regs: &mut Regs, id: FunctionId, to: Reg, prim: Prim, args: &[Operand]) -> Res<()> {
        self.set_lanes(regs, id, to, |regs, lane| {
            let args = args.iter().map(|a| self.lane(regs, *a, lane)).collect::<Res<Vec<_>>>()?;
            let values: Vec<ScalarValue> = args.iter().map(|(x, _)| *x).collect();
            match prim.eval(&values) {
                Err(PrimError::DivisionByZero | PrimError::NegativeExponent) => {
                    Ok(constant(prim.result().zero()))
                }
                _ => self.prim(prim, &args),
            }
        })
    }
    /// The elements that the chosen lanes are at.
    fn places(
        &self,
        regs: &Regs,
        (pointer, index, stride): (Operand, Operand, Operand),
        (lanes, mask): (usize, Option<Operand>),
    ) -> Res<Vec<(usize, Pointer, i64)>> {
        let p = self.pointer(regs, pointer)?;
        let stride = self.i64(regs, stride)?;
        let place = |lane: usize| {
            let at = self.lane_i64(regs, index, lane)?.wrapping_add(stride.wrapping_mul(lane as i64));
            Ok((lane, p, at))
        };
        self.chosen(regs, lanes, mask)?.into_iter().map(place).collect()
    }
    /// Halves with each other as long as their number is even, then one after the other.
    fn fold(&self, prim: Prim, mut all: Vec<Number>) -> Res<Number> {
        while all.len() > 1 && all.len().is_multiple_of(2) {
            let (low, high) = all.split_at(all.len() / 2);
            all = low.iter().zip(high).map(|(a, b)| self.prim(prim, &[*a, *b])).collect::<Res<_>>()?;
        }
        let Some((first, rest)) = all.split_first() else { return Err(wrong("no lanes")) };
        rest.iter().try_fold(*first, |a, b| self.prim(prim, &[a, *b]))
    }
    fn plus(&mut self, p: Pointer, index: i64, ty: Ty, value: Number) -> Res<()> {
        // What is added to is no variable yet.
        let before = self.memory.printed(Pointer { seen: None, ..p }, index)?;
        let Word::Scalar(x) = before.word else {
            return Err(wrong("an addition to a pointer"));
        };
        let (sum, print) = self.prim(Prim::Op(Op::Add, x.scalar()), &[(x, before.print), value])?;
        self.memory.set(p, index, ty, Printed { word: Word::Scalar(sum), print })
    }

    // --- instructions ---

    fn block(&mut self, block: &Block, regs: &mut Regs, id: FunctionId) -> Res<()> {
        for ins in block {
            self.ins(ins, regs, id).map_err(|mut e| {
                let leaf = ins.blocks().is_empty() && !matches!(ins, Ins::Call { .. } | Ins::Chunks { .. });
                if e.kind == RuntimeErrorKind::Internal && leaf {
                    e.message = format!("{} in {ins:?} of {}", e.message, self.module.functions[id].name);
                }
                e
            })?;
        }
        Ok(())
    }
    fn ins(&mut self, ins: &Ins, regs: &mut Regs, id: FunctionId) -> Res<()> {
        if self.steps == 0 {
            return Err(RuntimeError::new(RuntimeErrorKind::Limit, "too many steps"));
        }
        self.steps -= 1;
        match ins {
            Ins::Set { to, value } if self.is_lanes(id, (*to).into()) => {
                self.set_lanes(regs, id, *to, |regs, lane| self.lane(regs, *value, lane))?;
            }
            Ins::Set { to, value } => {
                let printed = self.printed(regs, *value)?;
                self.set(regs, id, *to, printed)?;
                if let Some(ghost) = self.ghosts.of(id, *to) {
                    self.note(ghost, regs, (*to, *value))?;
                }
            }
            Ins::Prim { to, prim, args } if self.is_lanes(id, (*to).into()) => {
                self.prim_lanes(regs, id, *to, *prim, args)?;
            }
            Ins::Prim { to, prim, args } => {
                let args = args.iter().map(|a| self.number(regs, *a)).collect::<Res<Vec<_>>>()?;
                let value = self.prim(*prim, &args)?;
                self.set_number(regs, id, *to, value)?;
            }
            Ins::Load { to, pointer, index } => {
                let (p, i) = (self.pointer(regs, *pointer)?, self.i64(regs, *index)?);
                match self.memory.compare(p, i) {
                    Ok(()) => self.set(regs, id, *to, self.memory.printed(p, i)?)?,
                    Err(e) => regs[to.index()] = Held::Lost(e.message),
                }
            }
            Ins::Store { pointer, index, value, ty } => {
                let (p, i) = (self.pointer(regs, *pointer)?, self.i64(regs, *index)?);
                let value = self.printed(regs, *value)?;
                self.memory.set(p, i, *ty, value)?;
            }
            Ins::Accumulate { pointer, index, value, ty, atomic: _ } => {
                let (p, i) = (self.pointer(regs, *pointer)?, self.i64(regs, *index)?);
                let value = self.number(regs, *value)?;
                self.plus(p, i, *ty, value)?;
            }
            Ins::Offset { to, pointer, index, ty: _, room: _ } => {
                let (p, i) = (self.pointer(regs, *pointer)?, self.i64(regs, *index)?);
                let moved = Pointer { at: p.at.wrapping_add(i), ..p };
                self.set(regs, id, *to, Word::Pointer(moved).printed())?;
            }
            Ins::Alloc { to, count, ty } => {
                let p = self.memory.alloc(*ty, self.i64(regs, *count)?)?;
                self.set(regs, id, *to, Word::Pointer(p).printed())?;
            }
            Ins::Mark { to } => {
                let height = Pointer { piece: self.memory.height(), ..Pointer::NULL };
                self.set(regs, id, *to, Word::Pointer(height).printed())?;
            }
            Ins::Release { mark } => {
                let height = self.pointer(regs, *mark)?.piece;
                self.memory.release(height)?;
            }
            Ins::Fill { pointer, count, value, ty } => {
                let (p, n) = (self.pointer(regs, *pointer)?, self.i64(regs, *count)?);
                let value = self.printed(regs, *value)?;
                for i in 0..n {
                    self.memory.set(p, i, *ty, value)?;
                }
            }
            Ins::Copy { to, from, count, ty } => {
                let (to, from) = (self.pointer(regs, *to)?, self.pointer(regs, *from)?);
                let n = self.i64(regs, *count)?;
                if (to.piece, to.made) == (from.piece, from.made) && n > 0 && (to.at - from.at).abs() < n {
                    return Err(wrong("a copy of memory onto itself"));
                }
                for i in 0..n {
                    self.memory.copy(to, from, i, *ty)?;
                }
            }
            Ins::For { i, from, to, body, order } => {
                let (from, to) = (self.i64(regs, *from)?, self.i64(regs, *to)?);
                let backwards = self.options.backwards && matches!(order, Order::Any(_));
                for k in from..to {
                    let k = if backwards { to - 1 - (k - from) } else { k };
                    self.set_i64(regs, id, *i, k)?;
                    self.block(body, regs, id)?;
                }
            }
            Ins::Chunks { count, function, args } => {
                let n = self.i64(regs, *count)?;
                let args = args.iter().map(|a| self.printed(regs, *a)).collect::<Res<Vec<_>>>()?;
                for k in 0..n {
                    let k = if self.options.backwards { n - 1 - k } else { k };
                    let k = Word::Scalar(ScalarValue::I64(k)).printed();
                    let height = self.memory.height();
                    let args: Vec<Printed> = std::iter::once(k).chain(args.iter().copied()).collect();
                    self.call(*function, &args)?;
                    self.memory.release(height)?;
                }
            }
            Ins::Lanes { i, from, to, lanes, body } => {
                let (mut first, to) = (self.i64(regs, *from)?, self.i64(regs, *to)?);
                if self.lanes.is_some() || *lanes > self.module.lanes {
                    return Err(wrong("a loop of lanes inside another, or of more than the module has"));
                }
                self.lanes = Some(*lanes);
                while first < to {
                    self.active = usize::try_from(to - first).unwrap_or(usize::MAX).min(*lanes);
                    self.set_i64(regs, id, *i, first)?;
                    self.block(body, regs, id)?;
                    first = first.saturating_add(*lanes as i64);
                }
                (self.lanes, self.active) = (None, usize::MAX);
            }
            // Its own instructions, so that equal runs give equal times.
            Ins::Clock { to } => {
                let ticks = i64::try_from(self.options.steps - self.steps).unwrap_or(i64::MAX);
                self.set_i64(regs, id, *to, ticks)?;
            }
            Ins::LaneNumber { to } => {
                self.set_lanes(regs, id, *to, |_, lane| Ok(constant(ScalarValue::I64(lane as i64))))?;
            }
            Ins::LoadLanes { to, pointer, index, stride, mask } => {
                let lanes = self.lanes_of(id, ins)?;
                let mut all = vec![None; lanes];
                for (lane, p, at) in self.places(regs, (*pointer, *index, *stride), (lanes, *mask))? {
                    match self.memory.printed(p, at)? {
                        Printed { word: Word::Scalar(x), print } => all[lane] = Some((x, print)),
                        Printed { word: Word::Pointer(_), .. } => return Err(wrong("lanes of pointers")),
                    }
                }
                let zero = self.module.functions[id].regs[*to].ty.scalar().map(|s| constant(s.zero()));
                let zero = zero.ok_or_else(|| wrong("lanes of pointers"))?;
                self.set_lanes(regs, id, *to, |_, lane| Ok(all[lane].unwrap_or(zero)))?;
            }
            Ins::StoreLanes { pointer, index, stride, value, ty, mask } => {
                let lanes = self.lanes_of(id, ins)?;
                for (lane, p, at) in self.places(regs, (*pointer, *index, *stride), (lanes, *mask))? {
                    let (x, print) = self.lane(regs, *value, lane)?;
                    self.memory.set(p, at, *ty, Printed { word: Word::Scalar(x), print })?;
                }
            }
            Ins::AccumulateLanes { pointer, index, stride, value, ty, mask, atomic: _ } => {
                let lanes = self.lanes_of(id, ins)?;
                for (lane, p, at) in self.places(regs, (*pointer, *index, *stride), (lanes, *mask))? {
                    let value = self.lane(regs, *value, lane)?;
                    self.plus(p, at, *ty, value)?;
                }
            }
            Ins::FoldLanes { to, prim, neutral, from, mask } => {
                let lanes = self.lanes_of(id, ins)?;
                let mut all = vec![constant(*neutral); lanes];
                for lane in self.chosen(regs, lanes, *mask)? {
                    all[lane] = self.lane(regs, *from, lane)?;
                }
                let value = self.fold(*prim, all)?;
                self.set_number(regs, id, *to, value)?;
            }
            Ins::Lane { to, from, lane } => {
                let value = self.lane(regs, *from, *lane)?;
                self.set_number(regs, id, *to, value)?;
            }
            Ins::While { condition, test, body } => loop {
                self.block(condition, regs, id)?;
                if !self.scalar(regs, *test)?.is_true() {
                    break;
                }
                self.block(body, regs, id)?;
            },
            Ins::If { condition, then, otherwise } => {
                let taken = if self.scalar(regs, *condition)?.is_true() { then } else { otherwise };
                self.block(taken, regs, id)?;
            }
            Ins::Fail { condition, message, values } => {
                let (mut first, mut lane) = (false, 0);
                if self.is_lanes(id, *condition) {
                    if let Some(l) = self.chosen(regs, self.lanes_of(id, ins)?, Some(*condition))?.first() {
                        (first, lane) = (true, *l);
                    }
                } else {
                    first = self.scalar(regs, *condition)?.is_true();
                }
                if first {
                    let values =
                        values.iter().map(|v| self.lane_i64(regs, *v, lane)).collect::<Res<Vec<_>>>()?;
                    let message = &self.module.messages[*message];
                    let error = RuntimeError::new(message.kind.clone(), message.render(&values));
                    return Err(error.at(message.span));
                }
            }
            Ins::Call { to, function, args } => {
                let args = args.iter().map(|a| self.printed(regs, *a)).collect::<Res<Vec<_>>>()?;
                // The loop of lanes around a call is not around the function.
                let around = self.lanes.take().map(|lanes| (lanes, self.active));
                self.active = usize::MAX;
                let results = self.call(*function, &args)?;
                if let Some((lanes, active)) = around {
                    (self.lanes, self.active) = (Some(lanes), active);
                }
                for (to, value) in to.iter().zip(results) {
                    self.set(regs, id, *to, value)?;
                }
            }
        }
        Ok(())
    }
}
