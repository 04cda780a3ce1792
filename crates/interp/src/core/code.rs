//! Programs resolved for evaluation: variables are slots of a frame, and every last use is known.
//!
//! Guarantee: an operand marked [`Arg::Move`] is never read again in this execution of its body, so an array in it may be
//! overwritten. Slots that die without such an operand are listed in `drops`.

use super::compile::deep;
use pullback_base::{Span, Symbol};
use pullback_core::{Check, FusedForm, Type};
use pullback_prim::{Prim, Scalar, ScalarValue};

/// A slot of the frame of a function.
pub(crate) type Slot = u32;

/// An operand.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Arg {
    /// A variable that is used again.
    Keep(Slot),
    /// A variable at its last use.
    Move(Slot),
    /// A constant.
    Const(ScalarValue),
}

/// A function.
#[derive(Debug)]
pub(crate) struct FunCode {
    pub(crate) name: Symbol,
    pub(crate) slots: usize,
    pub(crate) lam: LamCode,
}

/// Parameters and a body.
#[derive(Debug)]
pub(crate) struct LamCode {
    pub(crate) params: Box<[Slot]>,
    pub(crate) body: BodyCode,
}

/// Statements, then results.
#[derive(Debug)]
pub(crate) struct BodyCode {
    /// Slots that are not used in here, but in another arm or not at all.
    pub(crate) drops: Vec<Slot>,
    pub(crate) stms: Vec<StmCode>,
    pub(crate) result: Box<[Arg]>,
}

impl Drop for BodyCode {
    fn drop(&mut self) {
        // Nested bodies of any depth: the stack grows where it must.
        let stms = std::mem::take(&mut self.stms);
        if !stms.is_empty() {
            deep(|| drop(stms));
        }
    }
}

/// A statement.
#[derive(Debug)]
pub(crate) struct StmCode {
    pub(crate) pat: Box<[Slot]>,
    pub(crate) exp: ExpCode,
    pub(crate) span: Option<Span>,
    /// The rule of differentiation that made it, if one did.
    pub(crate) rule: Option<&'static str>,
    /// Those of `pat` that are tapes of a derivative.
    pub(crate) tapes: Vec<Slot>,
    /// Slots that are dead after it.
    pub(crate) drops: Vec<Slot>,
}

/// A right-hand side.
#[derive(Debug)]
pub(crate) enum ExpCode {
    /// Exactly one result and no body.
    Simple(Simple),
    /// Any number of results.
    Compound(Box<Compound>),
}

/// A slice of the outer dimension.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SliceCode {
    pub(crate) start: Arg,
    pub(crate) len: Arg,
    pub(crate) stride: Arg,
}

/// The type of an element of an array, as far as evaluation needs it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Elem {
    /// The scalar type below all dimensions; `None`: boxed values.
    pub(crate) kind: Option<Scalar>,
    /// Number of dimensions of the element.
    pub(crate) rank: usize,
}

/// Expressions with one result and without bodies; see `pullback_core::Exp`.
#[derive(Debug)]
pub(crate) enum Simple {
    Atom(Arg),
    Prim1(Prim, Arg),
    Prim2(Prim, Arg, Arg),
    PrimN(Prim, Box<[Arg]>),
    Tuple(Box<[Arg]>),
    Proj(Arg, usize),
    Inject(usize, Box<[Arg]>),
    ArrayLit(Elem, Box<[Arg]>),
    Index(Arg, Box<[Arg]>),
    Slice(Arg, SliceCode),
    Update(Arg, Box<[Arg]>, Arg),
    UpdateSlice(Arg, SliceCode, Arg),
    Gather(Arg, Arg),
    Size(Arg, usize),
    Iota(Arg),
    Replicate(Elem, Box<[Arg]>, Arg),
    Rearrange(Box<[usize]>, Arg),
    Reshape(Box<[Arg]>, usize, Arg),
    Concat(Box<[Arg]>),
    Reverse(Arg),
    Rotate(Arg, Arg),
    Scatter { width: Arg, dst: Arg, indices: Arg, values: Arg },
    AccView(Arg, ViewCode),
    AccAdd(Arg, Box<[Arg]>, Arg),
    Plus(Arg, Arg),
    StopGradient(Arg),
    Assert(Arg, Symbol, Box<[Arg]>),
    Check(Check, Box<[Arg]>),
}

/// Part of an accumulator.
#[derive(Debug)]
pub(crate) enum ViewCode {
    Index(Box<[Arg]>),
    Slice(SliceCode),
    Proj(usize),
    Rearrange(Box<[usize]>),
    Reshape(Box<[Arg]>, usize),
    Reverse,
    Rotate(Arg),
}

/// Expressions with bodies; see `pullback_core::Exp`.
#[derive(Debug)]
pub(crate) enum Compound {
    Match(Arg, Vec<LamCode>),
    If(Arg, BodyCode, BodyCode),
    Loop(LoopCode),
    Call(usize, Box<[Arg]>),
    Map {
        width: Arg,
        lam: LamCode,
        arrays: Box<[Arg]>,
        elems: Box<[Elem]>,
    },
    Reduce {
        width: Arg,
        lam: LamCode,
        neutral: Box<[Arg]>,
        arrays: Box<[Arg]>,
        commutative: bool,
    },
    Scan {
        width: Arg,
        lam: LamCode,
        neutral: Box<[Arg]>,
        arrays: Box<[Arg]>,
        elems: Box<[Elem]>,
    },
    Fused(FusedCode),
    Hist(HistCode),
    WithAcc(Box<[Arg]>, LamCode),
    Diff(DiffCode),
    /// A body run once with its parameters bound (custom derivatives).
    Apply(LamCode, Box<[Arg]>),
    Body(BodyCode),
    Par(Vec<BodyCode>),
}

/// A loop.
#[derive(Debug)]
pub(crate) struct LoopCode {
    pub(crate) params: Box<[Slot]>,
    pub(crate) init: Box<[Arg]>,
    pub(crate) form: FormCode,
    pub(crate) body: BodyCode,
    /// The types of the collected values.
    pub(crate) collect: Box<[Elem]>,
}

/// When a loop stops.
#[derive(Debug)]
pub(crate) enum FormCode {
    For { i: Slot, n: Arg, scalar: Scalar },
    While(BodyCode),
}

/// A reduction or scan of what another function makes of the elements.
#[derive(Debug)]
pub(crate) struct FusedCode {
    pub(crate) form: FusedForm,
    pub(crate) width: Arg,
    pub(crate) pre: LamCode,
    pub(crate) lam: LamCode,
    pub(crate) neutral: Box<[Arg]>,
    pub(crate) arrays: Box<[Arg]>,
    /// The types of the results of `pre`, those that are combined first.
    pub(crate) elems: Box<[Elem]>,
}

/// A histogram.
#[derive(Debug)]
pub(crate) struct HistCode {
    pub(crate) width: Arg,
    pub(crate) lam: LamCode,
    pub(crate) neutral: Box<[Arg]>,
    pub(crate) dst: Box<[Arg]>,
    pub(crate) indices: Arg,
    pub(crate) values: Box<[Arg]>,
}

/// A derivative.
#[derive(Debug)]
pub(crate) struct DiffCode {
    /// Whether it is reverse mode.
    pub(crate) reverse: bool,
    pub(crate) lam: LamCode,
    /// Slots that the body reads from outside.
    pub(crate) captures: Vec<Slot>,
    pub(crate) args: Box<[Arg]>,
    /// Tangents, or cotangents in reverse mode.
    pub(crate) directions: Box<[Arg]>,
    /// The number of directions at once, if they are stacked.
    pub(crate) seeds: Option<Arg>,
    pub(crate) arg_types: Vec<Type>,
    pub(crate) result_types: Vec<Type>,
}
