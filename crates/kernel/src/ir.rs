//! Kernel IR: functions of structured loops over registers and explicit memory.
//!
//! It is what executors take. Registers are typed and may be set more than once; memory is reached through pointers to
//! elements of one type; control flow is nested, so that any target can follow it. Nothing here knows arrays, products or
//! sums: the lowering has made pointers, sizes and strides of them.
//!
//! Memory comes from a workspace that grows like a stack: [`Ins::Mark`] remembers its height, [`Ins::Release`] goes back to
//! it. A workspace is kept between calls.
//!
//! # Lanes
//! A register of type [`Ty::Lanes`] holds so many scalars side by side. [`Ins::Lanes`] runs iterations of a loop that way, a
//! block of so many at once; the last block may have fewer *active* lanes. All registers of lanes that an instruction inside
//! mentions have as many as the loop; outside, those of one instruction have equally many, at least one is such a register,
//! and all lanes are active. What lanes that are not active hold is not specified, but for one rule: [`Ins::Set`] leaves them as they are, so
//! that a register can gather something over all blocks. Where an operand of an instruction on lanes is a scalar, all lanes
//! take it. A *mask* is an operand of truth values: lanes where it does not hold are treated as not active by this
//! instruction. Control flow is the same for all lanes: conditions, bounds and pointers are scalars.

use pullback_base::index::IndexVec;
use pullback_base::{Few, RuntimeErrorKind, Span};
use pullback_prim::{Prim, Scalar, ScalarValue};
use std::collections::BTreeMap;

pullback_base::index_type! {
    /// A register of a function.
    pub struct Reg
}
pullback_base::index_type! {
    /// A function of a module.
    pub struct FunctionId
}
pullback_base::index_type! {
    /// What an executor says when a program stops.
    pub struct MessageId
}

/// A module: functions that call each other, and the messages with which they stop.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Module {
    /// The functions.
    pub functions: IndexVec<FunctionId, Function>,
    /// The messages.
    pub messages: IndexVec<MessageId, Message>,
    /// The most scalars that a register of lanes may hold; 0 where no function has one.
    pub lanes: usize,
    /// Where in the source program a function is called, and by which: one of the places, in the function itself if there is one.
    pub calls: BTreeMap<FunctionId, (FunctionId, Span)>,
    /// What was given up to get code without an alarm of the verifier: nothing, unless the compiler has a fault.
    pub fallbacks: Vec<crate::verify::Fallback>,
}

impl Module {
    /// What is known about a register; nothing if there is no such register.
    pub fn facts(&self, f: FunctionId, r: Reg) -> Option<&Facts> {
        Some(&self.functions.get(f)?.regs.get(r)?.facts)
    }
    /// What of the program a register was made for.
    pub(crate) fn site(&self, f: FunctionId, r: Reg) -> Option<Site> {
        self.facts(f, r)?.site.as_deref().copied()
    }
}

/// What is known about a register beside its type. A copy of the register has the same facts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    /// Where in the source program memory is asked for to which it is to point. Not every [`Ins::Alloc`] has a place.
    pub place: Option<Span>,
    /// Whether it is to point to a tape of a derivative.
    pub tape: bool,
    /// If it points to memory which iterations of a loop make, a row each, where the lowering asks for all rows at once: its number in the
    /// code as it was lowered. Scheduling numbers registers anew.
    pub owned: Option<Reg>,
    /// Whether it is a condition that chooses between two ways to do the same: which is better depends on sizes.
    pub choice: bool,
    /// What of the program it was made for; nothing unless it was asked for ([`crate::lower_with_sites`]).
    pub site: Option<Box<Site>>,
    /// Whether it points to the elements of an array wherever it is given from one part of the code to another: as an argument, as a result, or as what a
    /// loop or a branch leaves. Only of code as it is lowered: scheduling forgets it.
    pub array: Option<Box<Shape>>,
}

/// Elements that are one after the other in memory: as many as the product of sizes, none of which is negative.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    /// The type of an element.
    pub ty: Ty,
    /// The sizes.
    pub sizes: Vec<Operand>,
}

/// A statement of the program for which code was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Site {
    /// Where in the source program.
    pub span: Option<Span>,
    /// The construct: `map`, `loop`, ..
    pub construct: &'static str,
    /// Which sweep of a derivative it belongs to.
    pub sweep: Sweep,
}

/// A sweep of a reverse derivative.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sweep {
    /// The program's own statements, and what the tape adds to them.
    Primal,
    /// What rules of differentiation made.
    Reverse,
    /// Both: statements that were fused.
    Both,
}

/// The type of a register, and of an element of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Ty {
    /// A scalar. Booleans take one byte of memory: 0 or 1.
    Scalar(Scalar),
    /// A pointer: eight bytes of memory.
    Pointer,
    /// So many scalars side by side. Only in registers.
    Lanes(Scalar, usize),
}

impl Ty {
    /// `i64`
    pub const I64: Ty = Ty::Scalar(Scalar::I64);
    /// `bool`
    pub const BOOL: Ty = Ty::Scalar(Scalar::Bool);
    /// Bytes of one element in memory; also its alignment.
    pub fn bytes(self) -> usize {
        match self {
            Ty::Scalar(s) | Ty::Lanes(s, _) => s.bytes(),
            Ty::Pointer => 8,
        }
    }
    /// The scalar of a register of scalars or lanes.
    pub fn scalar(self) -> Option<Scalar> {
        match self {
            Ty::Scalar(s) | Ty::Lanes(s, _) => Some(s),
            Ty::Pointer => None,
        }
    }
    /// Whether it is a register of lanes.
    pub fn is_lanes(self) -> bool {
        self.lanes().is_some()
    }
    /// How many lanes a register of lanes has.
    pub fn lanes(self) -> Option<usize> {
        match self {
            Ty::Lanes(_, lanes) => Some(lanes),
            Ty::Scalar(_) | Ty::Pointer => None,
        }
    }
}

/// A function. Its results are what the result registers hold at the end of the body.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Function {
    /// Its name, unique in the module.
    pub name: String,
    /// The registers that hold the arguments at the start.
    pub params: Vec<Reg>,
    /// The registers that hold the results at the end.
    pub results: Vec<Reg>,
    /// All registers.
    pub regs: IndexVec<Reg, RegInfo>,
    /// What it does.
    pub body: Block,
}

/// What is known about a register.
#[derive(Clone, Debug, PartialEq)]
pub struct RegInfo {
    /// Its type.
    pub ty: Ty,
    /// A name for printing; not unique.
    pub hint: String,
    /// What else is known.
    pub facts: Facts,
}

impl RegInfo {
    /// A register of which nothing is known but its type.
    pub fn new(ty: Ty, hint: &str) -> RegInfo {
        RegInfo { ty, hint: hint.to_string(), facts: Facts::default() }
    }
}

/// Instructions in order.
pub type Block = Vec<Ins>;

/// A register or a constant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Operand {
    /// What the register holds.
    Reg(Reg),
    /// A scalar.
    Const(ScalarValue),
    /// The pointer that points nowhere.
    Null,
}

impl Operand {
    /// The `i64` constant.
    pub fn i64(x: i64) -> Operand {
        Operand::Const(ScalarValue::I64(x))
    }
    /// The truth value.
    pub fn bool(x: bool) -> Operand {
        Operand::Const(ScalarValue::Bool(x))
    }
    /// The register, if it is one.
    pub fn as_reg(self) -> Option<Reg> {
        match self {
            Operand::Reg(r) => Some(r),
            Operand::Const(_) | Operand::Null => None,
        }
    }
    /// The `i64` constant, if it is one.
    pub fn as_i64(self) -> Option<i64> {
        match self {
            Operand::Const(ScalarValue::I64(x)) => Some(x),
            Operand::Const(_) | Operand::Reg(_) | Operand::Null => None,
        }
    }
}

impl From<Reg> for Operand {
    fn from(r: Reg) -> Operand {
        Operand::Reg(r)
    }
}

/// An instruction.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the variant documents its fields")]
pub enum Ins {
    /// `to = value`
    Set { to: Reg, value: Operand },
    /// `to = prim(args)`. Integer division by zero and negative exponents have been excluded before by [`Ins::Fail`].
    Prim { to: Reg, prim: Prim, args: Vec<Operand> },
    /// `to = pointer[index]`; the type of `to` is that of the element.
    Load { to: Reg, pointer: Operand, index: Operand },
    /// `pointer[index] = value`, elements of type `ty`.
    Store { pointer: Operand, index: Operand, value: Operand, ty: Ty },
    /// `pointer[index] += value`, elements of the scalar type `ty`. Several of them may be done in any order. `atomic`: other
    /// threads may add to the same element meanwhile.
    Accumulate { pointer: Operand, index: Operand, value: Operand, ty: Ty, atomic: bool },
    /// `to = pointer + index`, counted in elements of type `ty`. `room`: so many elements, if known, are there from the new
    /// place on, each of which could be loaded or stored.
    Offset { to: Reg, pointer: Operand, index: Operand, ty: Ty, room: Option<Operand> },
    /// `to` points to `count` new elements of type `ty` of the workspace, aligned to 64 bytes, of any value. A count that is too
    /// large for the workspace stops the program with an error of kind `Limit`. `count` is not negative.
    Alloc { to: Reg, count: Operand, ty: Ty },
    /// `to` = the height of the workspace.
    Mark { to: Reg },
    /// The workspace goes back to a height; what was allocated since is gone.
    Release { mark: Operand },
    /// `pointer[0 .. count] = value`
    Fill { pointer: Operand, count: Operand, value: Operand, ty: Ty },
    /// `to[0 .. count] = from[0 .. count]`; the two do not overlap.
    Copy { to: Operand, from: Operand, count: Operand, ty: Ty },
    /// `i` from `from` up to, not including, `to`. `i` is an `i64` and is set by nothing else but
    /// loops that are not inside. Polls for cancellation.
    For { i: Reg, from: Operand, to: Operand, body: Block, order: Order },
    /// Calls a function of the module, which has no results, with `k` and the arguments for every `k` from 0 up to `count`; in
    /// any order, also at the same time. What a call allocates is given back at its end. If calls stop the program, it stops with
    /// the message of one of them.
    Chunks { count: Operand, function: FunctionId, args: Vec<Operand> },
    /// Iterations of a loop side by side, so many at once: `i` is the counter of the first lane of a block, the others follow.
    Lanes { i: Reg, from: Operand, to: Operand, lanes: usize, body: Block },
    /// `to` = 0, 1, 2, .. (`i64`) in the lanes.
    LaneNumber { to: Reg },
    /// In lane `l`, `to = pointer[index + l * stride]`. The index may differ between lanes; the stride is a scalar.
    LoadLanes { to: Reg, pointer: Operand, index: Operand, stride: Operand, mask: Option<Operand> },
    /// In lane `l`, `pointer[index + l * stride] = value`, elements of type `ty`, one lane after the other.
    StoreLanes {
        pointer: Operand,
        index: Operand,
        stride: Operand,
        value: Operand,
        ty: Ty,
        mask: Option<Operand>,
    },
    /// In lane `l`, `pointer[index + l * stride] += value`, one lane after the other: several lanes may hit one element. Where
    /// all lanes hit the same one (the index is a scalar and the stride 0), an executor may first take the lanes together, as
    /// [`Ins::FoldLanes`] does. `atomic`: as in [`Ins::Accumulate`].
    AccumulateLanes {
        pointer: Operand,
        index: Operand,
        stride: Operand,
        value: Operand,
        ty: Ty,
        mask: Option<Operand>,
        atomic: bool,
    },
    /// The scalar `to` is all active lanes of `from` taken together with a primitive of two arguments that is associative and
    /// commutative and has `neutral` as its neutral element: lanes that are not active count as that. The order: halves of
    /// the lanes with each other, as long as their number is even, then one after the other.
    FoldLanes { to: Reg, prim: Prim, neutral: ScalarValue, from: Operand, mask: Option<Operand> },
    /// The scalar `to` is what lane number `lane` holds.
    Lane { to: Reg, from: Operand, lane: usize },
    /// While `test` holds after `condition`. Polls for cancellation.
    While { condition: Block, test: Operand, body: Block },
    /// One of two blocks.
    If { condition: Operand, then: Block, otherwise: Block },
    /// Stops the program with a message if the condition holds. The values (`i64`) take the places in the message. If the
    /// condition is one of lanes: if it holds in an active lane, with the values of the first such lane.
    Fail { condition: Operand, message: MessageId, values: Vec<Operand> },
    /// `to` (`i64`) = ticks of a clock that never goes back, of any unit. Work before it is done, work after it not begun. Only
    /// [`crate::profile`] makes it, after loops are scheduled.
    Clock { to: Reg },
    /// Calls a function of the module. Inside of a loop in lanes it is called once for all lanes, and has none of them.
    Call { to: Vec<Reg>, function: FunctionId, args: Vec<Operand> },
}

/// What is known about the order of iterations.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Order {
    /// One after the other.
    #[default]
    Given,
    /// Any order, also side by side: no iteration reads what another one writes, two write different memory, and both add to
    /// memory only with [`Ins::Accumulate`]. Registers that the body sets are set in each iteration before they are read, but
    /// for the states of folds. Inside of a loop of lanes this does not hold for registers of lanes: where a mask does not hold they are as
    /// they were, and nobody looks.
    Any(Vec<Fold>),
}

/// An associative and commutative operation by which a loop takes its elements together.
#[derive(Clone, Debug, PartialEq)]
pub struct Fold {
    /// What has been taken together so far.
    pub state: Vec<Reg>,
    /// The value of `state` before the loop, also the neutral element.
    pub neutral: Vec<Operand>,
    /// `out` is what [`Fold::left`] and [`Fold::right`] are together, after this block.
    pub combine: Block,
    /// Operands of `combine`.
    pub left: Vec<Reg>,
    /// Operands of `combine`.
    pub right: Vec<Reg>,
    /// Results of `combine`.
    pub out: Vec<Operand>,
}

/// Calls `$f` with a reference to every operand that an instruction reads itself, and `$fold` with its folds.
macro_rules! each_read {
    ($ins:expr, $f:expr, $fold:expr) => {
        match $ins {
            Ins::Set { value, .. } => $f(value),
            Ins::Prim { args, .. } | Ins::Call { args, .. } => {
                for a in args {
                    $f(a);
                }
            }
            Ins::Chunks { count, args, .. } => [count].into_iter().chain(args).for_each(&mut *$f),
            Ins::Load { pointer, index, .. } => [pointer, index].into_iter().for_each(&mut *$f),
            Ins::Store { pointer, index, value, .. } | Ins::Accumulate { pointer, index, value, .. } => {
                [pointer, index, value].into_iter().for_each(&mut *$f);
            }
            Ins::Offset { pointer, index, room, .. } => {
                [pointer, index].into_iter().chain(room).for_each(&mut *$f);
            }
            Ins::Alloc { count, .. } => $f(count),
            Ins::Mark { .. } | Ins::LaneNumber { .. } | Ins::Clock { .. } => {}
            Ins::Release { mark } => $f(mark),
            Ins::Fill { pointer, count, value, .. } => [pointer, count, value].into_iter().for_each(&mut *$f),
            Ins::Copy { to, from, count, .. } => [to, from, count].into_iter().for_each(&mut *$f),
            Ins::For { from, to, order, .. } => {
                [from, to].into_iter().for_each(&mut *$f);
                if let Order::Any(folds) = order {
                    for fold in folds {
                        $fold(fold, $f);
                    }
                }
            }
            Ins::Lanes { from, to, .. } => [from, to].into_iter().for_each(&mut *$f),
            Ins::LoadLanes { pointer, index, stride, mask, .. } => {
                [pointer, index, stride].into_iter().chain(mask).for_each(&mut *$f);
            }
            Ins::StoreLanes { pointer, index, stride, value, mask, .. }
            | Ins::AccumulateLanes { pointer, index, stride, value, mask, .. } => {
                [pointer, index, stride, value].into_iter().chain(mask).for_each(&mut *$f);
            }
            Ins::FoldLanes { from, mask, .. } => [from].into_iter().chain(mask).for_each(&mut *$f),
            Ins::Lane { from, .. } => $f(from),
            Ins::While { test, .. } => $f(test),
            Ins::If { condition, .. } => $f(condition),
            Ins::Fail { condition, values, .. } => [condition].into_iter().chain(values).for_each(&mut *$f),
        }
    };
}

/// The registers that an instruction sets itself: `$one` makes them of a register, `$all` of a vector of registers.
macro_rules! registers_set {
    ($ins:expr, $one:path, $all:path, $none:expr) => {
        match $ins {
            Ins::Set { to, .. }
            | Ins::Prim { to, .. }
            | Ins::Load { to, .. }
            | Ins::Offset { to, .. }
            | Ins::Alloc { to, .. }
            | Ins::Mark { to }
            | Ins::LaneNumber { to }
            | Ins::Clock { to }
            | Ins::LoadLanes { to, .. }
            | Ins::FoldLanes { to, .. }
            | Ins::Lane { to, .. }
            | Ins::Lanes { i: to, .. }
            | Ins::For { i: to, .. } => $one(to),
            Ins::Call { to, .. } => $all(to),
            Ins::Store { .. }
            | Ins::Chunks { .. }
            | Ins::Accumulate { .. }
            | Ins::StoreLanes { .. }
            | Ins::AccumulateLanes { .. }
            | Ins::Release { .. }
            | Ins::Fill { .. }
            | Ins::Copy { .. }
            | Ins::While { .. }
            | Ins::If { .. }
            | Ins::Fail { .. } => $none,
        }
    };
}

impl Fold {
    fn reads(&self, f: &mut dyn FnMut(&Operand)) {
        self.neutral.iter().chain(&self.out).for_each(&mut *f);
        all_reads(&self.combine, f);
    }
    fn reads_mut(&mut self, f: &mut dyn FnMut(&mut Operand)) {
        self.neutral.iter_mut().chain(&mut self.out).for_each(&mut *f);
        all_reads_mut(&mut self.combine, f);
    }
}

fn all_reads(block: &Block, f: &mut dyn FnMut(&Operand)) {
    for ins in block {
        each_read!(ins, f, Fold::reads);
        ins.blocks().into_iter().for_each(|b| all_reads(b, f));
    }
}

fn all_reads_mut(block: &mut Block, f: &mut dyn FnMut(&mut Operand)) {
    for ins in block {
        ins.reads_mut(f);
        ins.blocks_mut().into_iter().for_each(|b| all_reads_mut(b, f));
    }
}

impl Ins {
    /// Whether it stops the program whenever it is reached.
    pub fn always_stops(&self) -> bool {
        matches!(self, Ins::Fail { condition: Operand::Const(c), .. } if c.is_true())
    }
    /// Whether it writes pointers to memory itself, not in a block inside or in a function that it calls. Pointers are in no lanes.
    pub fn writes_pointers(&self) -> bool {
        matches!(
            self,
            Ins::Store { ty: Ty::Pointer, .. }
                | Ins::Fill { ty: Ty::Pointer, .. }
                | Ins::Copy { ty: Ty::Pointer, .. }
        )
    }
    /// The registers that it sets itself, not in a block inside.
    pub fn sets(&self) -> &[Reg] {
        registers_set!(self, std::slice::from_ref, Vec::as_slice, &[])
    }
    /// The same for changing them.
    pub fn sets_mut(&mut self) -> &mut [Reg] {
        registers_set!(self, std::slice::from_mut, Vec::as_mut_slice, &mut [])
    }
    /// Calls `f` with every operand that it reads itself, not in a block inside. How a fold combines its states counts as read
    /// by the loop itself.
    pub fn reads(&self, f: &mut dyn FnMut(Operand)) {
        let f = &mut |a: &Operand| f(*a);
        each_read!(self, f, Fold::reads);
    }
    /// The same for changing them.
    pub fn reads_mut(&mut self, f: &mut dyn FnMut(&mut Operand)) {
        each_read!(self, f, Fold::reads_mut);
    }
    /// Whether all it does is to set its registers: it writes no memory, allocates nothing and cannot stop the program.
    pub fn only_sets(&self) -> bool {
        matches!(
            self,
            Ins::Set { .. }
                | Ins::Prim { .. }
                | Ins::Offset { .. }
                | Ins::Load { .. }
                | Ins::LoadLanes { .. }
                | Ins::LaneNumber { .. }
                | Ins::FoldLanes { .. }
                | Ins::Lane { .. }
        )
    }
    /// The blocks inside, for changing them.
    #[inline]
    pub fn blocks_mut(&mut self) -> Few<&mut Block> {
        match self {
            Ins::For { body, .. } | Ins::Lanes { body, .. } => Few::One([body]),
            Ins::While { condition, body, .. } => Few::Two([condition, body]),
            Ins::If { then, otherwise, .. } => Few::Two([then, otherwise]),
            _ => Few::None,
        }
    }
    /// The blocks inside, in the order in which they run.
    #[inline]
    pub fn blocks(&self) -> Few<&Block> {
        match self {
            Ins::For { body, .. } | Ins::Lanes { body, .. } => Few::One([body]),
            Ins::While { condition, body, .. } => Few::Two([condition, body]),
            Ins::If { then, otherwise, .. } => Few::Two([then, otherwise]),
            Ins::Set { .. }
            | Ins::Chunks { .. }
            | Ins::Prim { .. }
            | Ins::Load { .. }
            | Ins::Store { .. }
            | Ins::Accumulate { .. }
            | Ins::LaneNumber { .. }
            | Ins::LoadLanes { .. }
            | Ins::StoreLanes { .. }
            | Ins::AccumulateLanes { .. }
            | Ins::FoldLanes { .. }
            | Ins::Lane { .. }
            | Ins::Offset { .. }
            | Ins::Alloc { .. }
            | Ins::Mark { .. }
            | Ins::Release { .. }
            | Ins::Fill { .. }
            | Ins::Copy { .. }
            | Ins::Fail { .. }
            | Ins::Clock { .. }
            | Ins::Call { .. } => Few::None,
        }
    }
}

/// What is said when a program stops.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// The kind.
    pub kind: RuntimeErrorKind,
    /// The text, from the values of [`Ins::Fail`].
    pub text: Text,
    /// Where in the source program.
    pub span: Option<Span>,
}

/// The text of a message. The wording is that of the reference interpreter.
#[derive(Clone, Debug, PartialEq)]
pub enum Text {
    /// This text; each `{}` is the next value.
    Plain(String),
    /// Values: so many indices, then the shape of the array.
    Index(usize),
    /// This text, then the values as two shapes of this rank.
    Shapes(String, usize),
    /// A slice outside an array. Values: length, start, stride, size of the array.
    Slice,
    /// A reshape. Values: so many old sizes, then the new ones.
    Reshape(usize),
}

impl Message {
    /// The text with the values in it.
    pub fn render(&self, values: &[i64]) -> String {
        let shape = |sizes: &[i64]| sizes.iter().map(|n| format!("[{n}]")).collect::<String>();
        match &self.text {
            Text::Plain(text) => values.iter().fold(text.clone(), |t, v| t.replacen("{}", &v.to_string(), 1)),
            Text::Index(indices) => {
                let (ix, sizes) = values.split_at((*indices).min(values.len()));
                let ix: Vec<String> = ix.iter().map(i64::to_string).collect();
                let what = match ix.len() {
                    1 => ix.concat(),
                    _ => format!("[{}]", ix.join(", ")),
                };
                let of = match (ix.len(), sizes) {
                    (1, [n]) => format!("size {n}"),
                    _ => format!("shape {}", shape(sizes)),
                };
                format!("index {what} is out of bounds for an array of {of}")
            }
            Text::Shapes(what, rank) => {
                let (left, right) = values.split_at((*rank).min(values.len()));
                format!("{what}: shapes {} and {} differ", shape(left), shape(right))
            }
            Text::Slice => {
                let value = |i: usize| values.get(i).copied().unwrap_or(0);
                let (len, start, stride, size) = (value(0), value(1), value(2), value(3));
                let step = if stride == 1 { String::new() } else { format!(" in steps of {stride}") };
                format!(
                    "a slice of {len} elements from index {start}{step} is out of bounds for an array of size {size}"
                )
            }
            Text::Reshape(old) => {
                let (old, new) = values.split_at((*old).min(values.len()));
                let count = |sizes: &[i64]| sizes.iter().fold(1i64, |n, m| n.wrapping_mul(*m));
                format!(
                    "reshape: {} has {} elements, {} has {}",
                    shape(old),
                    count(old),
                    shape(new),
                    count(new)
                )
            }
        }
    }
}
