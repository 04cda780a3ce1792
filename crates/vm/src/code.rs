//! Bytecode: what a module of kernel IR is translated to.
//!
//! A function has one frame: first its words (scalar registers, constants, the ends of loops), then its registers of lanes.
//! An operand is the place of a word or of a register in the frame, in bytes, so that the same kernels take all of them.
//! Constants are written when the frame is made.

use crate::kernels::{Kernel, MemoryKernel};
use pullback_kernel::{MessageId, Reg};
use pullback_prim::{Prim, Scalar};

/// A place in the frame, in bytes.
pub(crate) type At = u32;

/// No place: there is no mask.
pub(crate) const NOWHERE: At = At::MAX;

/// An instruction. Those without a type in their name take and give words.
#[derive(Clone, Copy, Debug)]
#[rustfmt::skip]
pub(crate) enum Op {
    Copy { to: At, from: At },
    /// Two copies, one after the other.
    Copy2 { to: At, from: At, to2: At, from2: At },
    /// More of them, in the table of copies.
    Copies { first: u32, count: u32 },
    // Arithmetic that programs are full of.
    AddF64 { to: At, a: At, b: At },
    SubF64 { to: At, a: At, b: At },
    MulF64 { to: At, a: At, b: At },
    DivF64 { to: At, a: At, b: At },
    MinF64 { to: At, a: At, b: At },
    MaxF64 { to: At, a: At, b: At },
    StrongMulF64 { to: At, a: At, b: At },
    MutualMulF64 { to: At, a: At, b: At },
    SqrtF64 { to: At, a: At },
    LtF64 { to: At, a: At, b: At },
    LeF64 { to: At, a: At, b: At },
    EqF64 { to: At, a: At, b: At },
    NeF64 { to: At, a: At, b: At },
    AddI64 { to: At, a: At, b: At },
    SubI64 { to: At, a: At, b: At },
    MulI64 { to: At, a: At, b: At },
    LtI64 { to: At, a: At, b: At },
    LeI64 { to: At, a: At, b: At },
    /// Equality of words: of any type but floats.
    EqWord { to: At, a: At, b: At },
    NeWord { to: At, a: At, b: At },
    AndWord { to: At, a: At, b: At },
    OrWord { to: At, a: At, b: At },
    XorWord { to: At, a: At, b: At },
    NotBool { to: At, a: At },
    Select { to: At, condition: At, a: At, b: At },
    // Two operations, each rounded: `t = a first b`, then `to = t second c`; `From`: `c - t`; `Under`: `c / t`.
    AddAddF64 { t: At, a: At, b: At, to: At, c: At },
    AddSubF64 { t: At, a: At, b: At, to: At, c: At },
    AddFromF64 { t: At, a: At, b: At, to: At, c: At },
    AddMulF64 { t: At, a: At, b: At, to: At, c: At },
    AddDivF64 { t: At, a: At, b: At, to: At, c: At },
    AddUnderF64 { t: At, a: At, b: At, to: At, c: At },
    SubAddF64 { t: At, a: At, b: At, to: At, c: At },
    SubSubF64 { t: At, a: At, b: At, to: At, c: At },
    SubFromF64 { t: At, a: At, b: At, to: At, c: At },
    SubMulF64 { t: At, a: At, b: At, to: At, c: At },
    SubDivF64 { t: At, a: At, b: At, to: At, c: At },
    SubUnderF64 { t: At, a: At, b: At, to: At, c: At },
    MulAddF64 { t: At, a: At, b: At, to: At, c: At },
    MulSubF64 { t: At, a: At, b: At, to: At, c: At },
    MulFromF64 { t: At, a: At, b: At, to: At, c: At },
    MulMulF64 { t: At, a: At, b: At, to: At, c: At },
    MulDivF64 { t: At, a: At, b: At, to: At, c: At },
    MulUnderF64 { t: At, a: At, b: At, to: At, c: At },
    DivAddF64 { t: At, a: At, b: At, to: At, c: At },
    DivSubF64 { t: At, a: At, b: At, to: At, c: At },
    DivFromF64 { t: At, a: At, b: At, to: At, c: At },
    DivMulF64 { t: At, a: At, b: At, to: At, c: At },
    DivDivF64 { t: At, a: At, b: At, to: At, c: At },
    DivUnderF64 { t: At, a: At, b: At, to: At, c: At },
    /// `to = a * b + c`
    MulAddI64 { to: At, a: At, b: At, c: At },
    // `to` = the first value if the comparison holds, else the other one.
    SelectEqF64 { to: At, a: At, b: At, then: At, otherwise: At },
    SelectLtF64 { to: At, a: At, b: At, then: At, otherwise: At },
    SelectLeF64 { to: At, a: At, b: At, then: At, otherwise: At },
    /// A kernel on words.
    Apply { kernel: u16, to: At, a: At, b: At, c: At },
    /// A kernel on words that sets the low half of a word; the other half becomes 0.
    ApplyLow { kernel: u16, to: At, a: At, b: At, c: At },
    /// A kernel on the active lanes.
    ApplyLanes { kernel: u16, to: At, a: At, b: At, c: At },
    /// The same where arguments are words with the addresses of lanes: bit `k` of `views` for argument `k`.
    ApplyViews { kernel: u16, views: u8, to: At, a: At, b: At, c: At },
    /// A kernel on the active lanes that writes neighbours in memory.
    ApplyTo { kernel: u16, shift: u8, a: At, b: At, c: At, pointer: At, index: At },
    /// `to` = the address of neighbours in memory, or of a register with a copy of them if whole chunks of them might not be memory that may be read.
    View { shift: u8, to: At, register: At, pointer: At, index: At },
    /// An evaluation by the primitive table.
    Table { site: u32 },
    // Memory: bytes of an element, and whether it is sign-extended.
    Load1 { to: At, pointer: At, index: At },
    Load1Signed { to: At, pointer: At, index: At },
    Load2 { to: At, pointer: At, index: At },
    Load2Signed { to: At, pointer: At, index: At },
    Load4 { to: At, pointer: At, index: At },
    Load4Signed { to: At, pointer: At, index: At },
    Load8 { to: At, pointer: At, index: At },
    /// Fails unless `0 <= index < size`, then loads.
    Load8Inside { to: At, pointer: At, index: At, size: At, site: u32 },
    Store1 { pointer: At, index: At, value: At },
    Store2 { pointer: At, index: At, value: At },
    Store4 { pointer: At, index: At, value: At },
    Store8 { pointer: At, index: At, value: At },
    AddToF64 { pointer: At, index: At, value: At },
    /// `to = pointer + (index << shift)`
    Offset { shift: u8, to: At, pointer: At, index: At },
    /// `to = pointer + (a * b << shift)`
    OffsetMul { shift: u8, to: At, pointer: At, a: At, b: At },
    Alloc { shift: u8, to: At, count: At },
    Mark { to: At },
    Release { mark: At },
    /// Nanoseconds since the first time that the clock was read.
    Clock { to: At },
    Fill { shift: u8, pointer: At, count: At, value: At },
    CopyMemory { shift: u8, to: At, from: At, count: At },
    /// A memory kernel on one element.
    Access { kernel: u16, shift: u8, register: At, pointer: At, index: At },
    /// A memory kernel on the active lanes; the index is a word.
    AccessLanes { kernel: u16, shift: u8, register: At, pointer: At, index: At, stride: At, mask: At },
    /// A memory kernel on the active lanes; the index is a register of lanes.
    AccessAt { kernel: u16, register: At, pointer: At, indices: At, stride: At, mask: At },
    LaneNumber { to: At },
    /// `to` = lane numbers + a word.
    Count { to: At, from: At },
    /// The lanes whose number added to a word is another word.
    CountIs { to: At, from: At, is: At },
    FoldLanes { site: u32 },
    /// Whether a truth value holds in one of the active lanes, or in all of them (`wanted`: 1, 0).
    AnyLanes { to: At, from: At, wanted: u8 },
    /// A lane of elements of `1 << shift` bytes as a word.
    Lane { shift: u8, is_signed: bool, to: At, from: At },
    // Control.
    Jump { to: u32 },
    JumpIf { condition: At, to: u32 },
    JumpIfNot { condition: At, to: u32 },
    JumpIfNotLtI64 { a: At, b: At, to: u32 },
    JumpIfNotLeI64 { a: At, b: At, to: u32 },
    JumpIfNotLtF64 { a: At, b: At, to: u32 },
    JumpIfNotLeF64 { a: At, b: At, to: u32 },
    JumpIfNotEq { a: At, b: At, to: u32 },
    JumpIfEq { a: At, b: At, to: u32 },
    /// Enters a loop, or goes behind it.
    ForStart { i: At, from: At, to: At, end: At, exit: u32 },
    /// The next iteration. `work`: instructions of this one, without those of loops inside.
    ForNext { i: At, end: At, body: u32, work: u32 },
    LanesStart { i: At, from: At, to: At, end: At, exit: u32 },
    LanesNext { i: At, end: At, body: u32, work: u32 },
    /// The end of an iteration of a `while`.
    Again { to: u32, work: u32 },
    Fail { condition: At, site: u32 },
    FailIfNot { condition: At, site: u32 },
    /// Fails unless `0 <= index < size`.
    FailOutside { index: At, size: At, site: u32 },
    /// Fails unless `0 <= from + l < size` in all active lanes `l`.
    FailOutsideLanes { from: At, size: At, site: u32 },
    /// The same in those active lanes where a mask holds.
    FailOutsideWhere { from: At, size: At, mask: At, site: u32 },
    FailLanes { condition: At, site: u32 },
    Call { site: u32 },
    Return,
}

/// What an operand is, and where.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) at: At,
    pub(crate) is_lanes: bool,
}

/// An evaluation by the primitive table.
#[derive(Clone, Debug)]
pub(crate) struct TableSite {
    pub(crate) prim: Prim,
    pub(crate) to: Place,
    pub(crate) args: Vec<(Scalar, Place)>,
}

/// Lanes taken together.
#[derive(Clone, Debug)]
pub(crate) struct FoldSite {
    pub(crate) to: At,
    pub(crate) from: At,
    pub(crate) mask: At,
    /// A register that nobody else uses.
    pub(crate) scratch: At,
    pub(crate) neutral: At,
    pub(crate) prim: Prim,
    pub(crate) scalar: Scalar,
    /// Lanes with lanes, and lanes with a word.
    pub(crate) both: Kernel,
    pub(crate) with_word: Kernel,
    /// A copy of what is taken together, one where a mask holds, and one of a word.
    pub(crate) taken: Kernel,
    pub(crate) chosen: Kernel,
    pub(crate) fill: Kernel,
}

/// A reason to stop.
#[derive(Clone, Debug)]
pub(crate) struct FailSite {
    pub(crate) message: MessageId,
    pub(crate) values: Vec<Value>,
}

/// A value in a message, in the lane that is the reason.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Value {
    Word(At),
    Lanes(At),
    /// A word and the number of the lane.
    Counted(At),
}

/// A call.
#[derive(Clone, Debug)]
pub(crate) struct CallSite {
    pub(crate) function: usize,
    pub(crate) args: Vec<At>,
    pub(crate) to: Vec<At>,
}

/// A function.
#[derive(Clone, Debug, Default)]
pub(crate) struct FunctionCode {
    pub(crate) ops: Vec<Op>,
    /// A multiple of the alignment.
    pub(crate) frame_bytes: usize,
    pub(crate) constants: Vec<(At, u64)>,
    pub(crate) params: Vec<At>,
    pub(crate) results: Vec<At>,
    /// Copies of words: to, from.
    pub(crate) copies: Vec<(At, At)>,
    pub(crate) calls: Vec<CallSite>,
    pub(crate) fails: Vec<FailSite>,
    pub(crate) folds: Vec<FoldSite>,
    pub(crate) tables: Vec<TableSite>,
    pub(crate) is_recursive: bool,
    /// Instructions outside of loops.
    pub(crate) work: u32,
    /// Scalar registers, in the order of their words.
    pub(crate) words: Vec<Reg>,
}

impl FunctionCode {
    /// The scalar register with this place.
    pub(crate) fn register(&self, at: At) -> Option<Reg> {
        self.words.get(at as usize / 8).copied()
    }
}

/// A module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Code {
    pub(crate) functions: Vec<FunctionCode>,
    pub(crate) kernels: Vec<Kernel>,
    pub(crate) memory_kernels: Vec<MemoryKernel>,
    pub(crate) lanes: usize,
}
