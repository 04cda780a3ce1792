//! The data model of core: programs, functions, statements, expressions.
//!
//! Only [`crate::Builder`] makes variables. Bodies own their statements; types and origins live in the variable table.

use crate::TypeId;
use crate::types::{Type, Variant};
use pullback_base::index::{IndexVec, SharedVec};
use pullback_base::{Span, Symbol};
use pullback_prim::{Prim, Scalar, ScalarValue};

pullback_base::index_type! {
    /// A variable: bound exactly once in its whole program.
    pub struct Var
}
pullback_base::index_type! {
    /// A function of a program.
    pub struct FunId
}

/// A whole program.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Program {
    /// The recursive sum types.
    pub types: IndexVec<TypeId, TypeDef>,
    /// Every variable of every function.
    pub vars: SharedVec<Var, VarInfo>,
    /// The functions. Entry points are marked.
    pub funs: IndexVec<FunId, Fun>,
    /// Whether derivatives multiply by partial derivatives as IEEE numbers, so that zero times infinity is NaN. Not part of
    /// the text form.
    pub ieee_partials: bool,
}

/// A recursive sum type: its alternatives may mention [`Type::Named`].
#[derive(Clone, Debug, PartialEq)]
pub struct TypeDef {
    /// Its name.
    pub name: Symbol,
    /// Its alternatives.
    pub variants: Vec<Variant>,
}

/// What is known about a variable.
#[derive(Clone, Debug, PartialEq)]
pub struct VarInfo {
    /// Its type.
    pub ty: Type,
    /// A name for printing; not unique.
    pub hint: Symbol,
    /// Where it comes from.
    pub origin: Origin,
}

/// Where a variable comes from: a place in the source program, and the rule that made it, if an AD rule or a pass did.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Origin {
    /// The place in the source program.
    pub span: Option<Span>,
    /// The rule tag (`fast_chad.map`) and the source variable whose statement it was applied to.
    pub rule: Option<(&'static str, Option<Var>)>,
}

impl Origin {
    /// Whether the variable holds what a forward sweep stores for the reverse sweep: the last part of its rule tag is
    /// `tape`.
    pub fn is_tape(&self) -> bool {
        self.rule.is_some_and(|(tag, _)| tag.ends_with(".tape"))
    }
}

/// A function. First-order; may call itself and others.
#[derive(Clone, Debug, PartialEq)]
pub struct Fun {
    /// Its name, unique in the program.
    pub name: Symbol,
    /// Its parameters.
    pub params: Vec<Var>,
    /// Its body; a function has any number of results.
    pub body: Body,
    /// The types of its results (known before the body is built, so that recursion needs no inference).
    pub results: Vec<Type>,
    /// For entry points: names of the parameters as the user wrote them, and how core values form user values.
    pub entry: Option<Entry>,
}

/// The interface of an entry point: how the flattened core parameters and results form the user's values.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Parameter names and types, in the user's order.
    pub params: Vec<(Symbol, EntryType)>,
    /// The result.
    pub result: EntryType,
}

/// A type as the user sees it. Flattening it depth first gives core parameters: scalars and sums are one parameter,
/// a tuple or record contributes its components in the order written here, an array of a tuple is the tuple of arrays.
#[derive(Clone, Debug, PartialEq)]
pub enum EntryType {
    /// A scalar.
    Scalar(Scalar),
    /// An array with the declared size of its outer dimension, if it has a name or a constant (`n`, `3`).
    Array(Option<Symbol>, Box<EntryType>),
    /// A tuple.
    Tuple(Vec<EntryType>),
    /// A record: fields in declaration order.
    Record(Vec<(Symbol, EntryType)>),
    /// A sum. Its payload fields, flattened, are the fields of the core variant.
    Sum(Vec<(Symbol, Vec<EntryType>)>),
}

/// Statements, then results.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Body {
    /// In evaluation order.
    pub stms: Vec<Stm>,
    /// What the body returns.
    pub result: Vec<Atom>,
}

/// `let pat = exp`. Every statement binds at least one variable (unit where there is nothing to return).
#[derive(Clone, Debug, PartialEq)]
pub struct Stm {
    /// The variables bound, one per result of `exp`.
    pub pat: Vec<Var>,
    /// The expression.
    pub exp: Exp,
}

/// A function operand: parameters and a body that may mention outer variables.
#[derive(Clone, Debug, PartialEq)]
pub struct Lam {
    /// Parameters.
    pub params: Vec<Var>,
    /// Body.
    pub body: Body,
}

/// A variable or a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Atom {
    /// A variable.
    Var(Var),
    /// A scalar constant.
    Const(ScalarValue),
}

impl Atom {
    /// The `i64` constant.
    pub fn i64(x: i64) -> Atom {
        Atom::Const(ScalarValue::I64(x))
    }
    /// The `f64` constant.
    pub fn f64(x: f64) -> Atom {
        Atom::Const(ScalarValue::F64(x))
    }
    /// The truth value.
    pub fn bool(x: bool) -> Atom {
        Atom::Const(ScalarValue::Bool(x))
    }
    /// What stands for its variable, if it is one and something does; else the atom itself.
    pub fn replaced(self, by: impl FnOnce(Var) -> Option<Atom>) -> Atom {
        self.var().and_then(by).unwrap_or(self)
    }
    /// The variable, if it is one.
    pub fn var(self) -> Option<Var> {
        match self {
            Atom::Var(v) => Some(v),
            Atom::Const(_) => None,
        }
    }
}
impl From<Var> for Atom {
    fn from(v: Var) -> Atom {
        Atom::Var(v)
    }
}

/// The right-hand side of a statement. Unless said otherwise it has one result.
///
/// Sizes, indices, widths and counts are `i64`. An index is a list of leading indices, so an index shorter than the
/// rank means a sub-array.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the variant documents its fields")]
pub enum Exp {
    /// Another name for an atom.
    Atom(Atom),
    /// A scalar primitive.
    Prim(Prim, Vec<Atom>),
    /// A product.
    Tuple(Vec<Atom>),
    /// A component of a product.
    Proj(Atom, usize),
    /// A value of a sum type (`Type::Sum` or `Type::Named`): alternative number and payload.
    Inject(Type, usize, Vec<Atom>),
    /// One arm per alternative, its parameters are the payload. Any number of results.
    Match(Atom, Vec<Lam>),
    /// A conditional. Any number of results.
    If(Atom, Body, Body),
    /// A loop; see [`Loop`]. Any number of results.
    Loop(Loop),
    /// A call. As many results as the function has.
    Call(FunId, Vec<Atom>),

    /// The array of these elements (element type given, for the empty one).
    ArrayLit(Type, Vec<Atom>),
    /// `array[ix]`. Out of bounds is an error.
    Index(Atom, Vec<Atom>),
    /// `array[start], array[start + stride], ..` (`len` of them) along the outer dimension. Stride may be negative.
    Slice(Atom, SliceDim),
    /// `array with [ix] = value`; value has the type left after indexing. Out of bounds is an error.
    Update(Atom, Vec<Atom>, Atom),
    /// `array with [slice] = value` along the outer dimension.
    UpdateSlice(Atom, SliceDim, Atom),
    /// Elements of `array` at `indices`, along the outer dimension. Out of bounds is an error.
    Gather(Atom, Atom),
    /// The size of the given dimension (0 = outermost).
    Size(Atom, usize),
    /// `0, 1, .., n-1` as `i64`.
    Iota(Atom),
    /// The array of this shape, every element the value (which may itself be an array).
    Replicate(Vec<Atom>, Atom),
    /// Dimension `i` of the result is dimension `perm[i]` of the argument; dimensions beyond `perm` stay.
    Rearrange(Vec<usize>, Atom),
    /// The same elements in another shape: the first `from` dimensions become `shape`. Element counts must agree.
    Reshape { shape: Vec<Atom>, from: usize, array: Atom },
    /// Arrays one after the other.
    Concat(Vec<Atom>),
    /// The outer dimension reversed.
    Reverse(Atom),
    /// Element `i` of the result is element `(i + k) mod n` of the argument.
    Rotate(Atom, Atom),
    /// A second-order array operation. Any number of results.
    Soac(Soac),

    /// Opens one accumulator per initial value for the body, whose first parameters they are.
    /// Results: the final values, then the results of the body. Accumulators may not leave the body.
    WithAcc(Vec<Atom>, Lam),
    /// A part of an accumulator; adding to it adds to that part.
    AccView(Atom, View),
    /// Adds `value` at `ix` (out of range: ignored, so -1 means "nowhere"). Result: unit. Addition is [`Exp::Plus`].
    AccAdd(Atom, Vec<Atom>, Atom),
    /// Addition of cotangents: floats add; products and arrays componentwise; of sums, alternative 0 is zero and
    /// equal alternatives add their payloads. Integers, booleans and units: the first argument.
    Plus(Atom, Atom),

    /// Reverse derivative: `lam` at `args` with one cotangent per result of active type (floats inside).
    /// Results: the results of `lam`, then one cotangent per argument with floats inside. See `Program::cotangent`.
    /// With `seeds` so many at once: every cotangent, given or returned, is stacked (see [`Type::stacked`]); `lam` runs once.
    Vjp { lam: Lam, args: Vec<Atom>, cotangents: Vec<Atom>, seeds: Option<Atom>, algorithm: Option<Symbol> },
    /// Forward derivative: one tangent per argument with floats inside.
    /// Results: the results of `lam`, then one tangent per result with floats inside. `seeds`: as for `Vjp`.
    Jvp { lam: Lam, args: Vec<Atom>, tangents: Vec<Atom>, seeds: Option<Atom>, algorithm: Option<Symbol> },
    /// A function with its own reverse rule. Its first `tape` results are what it leaves for the rule; the others are those that
    /// the rule is about. `rule` takes the arguments, then all results, then one cotangent per active result that it is about; it
    /// returns one cotangent per active argument. Means `primal` everywhere but under reverse mode; there too as far as the
    /// tape has cotangents, as it does where what the rule made of it is differentiated again.
    Custom { primal: Lam, rule: Lam, args: Vec<Atom>, tape: usize },
    /// A body with a mark for reverse mode. Any number of results.
    Marked(Mark, Body),
    /// Its argument, with derivative zero.
    StopGradient(Atom),
    /// Fork-join: all bodies, possibly in parallel; their results one after the other.
    Par(Vec<Body>),
    /// Stops the program with the message unless the condition holds. Result: unit. Values take the places of `{}` in the
    /// message; without such places they are sizes that should agree, and the failure is a shape mismatch that shows them.
    Assert(Atom, Symbol, Vec<Atom>),
    /// Stops the program as an operation would that has no value at these operands. Result: unit. It stays where the operation
    /// goes because nobody needs its value: see [`Check`].
    Check(Check, Vec<Atom>),
}

/// What has to hold of operands, and what would stop the program otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Check {
    /// So many indices, then the shape of the array that they are for ([`Exp::Index`], [`Exp::Update`]).
    Index(usize),
    /// First index, number of elements, distance, and the size that they lie in ([`Exp::Slice`], [`Exp::UpdateSlice`]).
    Slice,
    /// An array of indices, then the shape of the array that they are for ([`Exp::Gather`]).
    Gather,
    /// The arguments of a primitive.
    Prim(Prim),
    /// Sizes of an array, none of them negative ([`Exp::Iota`], [`Exp::Replicate`]).
    Sizes,
    /// So many sizes, then others with the same product ([`Exp::Reshape`]).
    Reshape(usize),
    /// The sizes of rows, an array of them for each dimension: all rows have one shape, or no elements ([`Soac::Map`]).
    Rows,
    /// Two shapes of so many dimensions that are equal, or both without elements.
    Shapes(Shaped, usize),
}

/// What has to be of the shape of something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shaped {
    /// A row of an array that is put together of rows.
    Row,
    /// What is written into an array at an index.
    Part,
    /// What is written into a slice.
    Slice,
    /// The rows of what is put after other rows.
    Joined,
    /// The rows of what is scattered.
    Scattered,
}

impl Shaped {
    /// All.
    pub const ALL: [Shaped; 5] =
        [Shaped::Row, Shaped::Part, Shaped::Slice, Shaped::Joined, Shaped::Scattered];
    /// What messages call it.
    pub fn words(self) -> &'static str {
        match self {
            Shaped::Row => "irregular array",
            Shaped::Part => "update of a part of an array",
            Shaped::Slice => "update of a slice",
            Shaped::Joined => "concat",
            Shaped::Scattered => "scatter",
        }
    }
    /// Its name in the text form.
    pub fn name(self) -> &'static str {
        match self {
            Shaped::Row => "row",
            Shaped::Part => "part",
            Shaped::Slice => "slice",
            Shaped::Joined => "joined",
            Shaped::Scattered => "scattered",
        }
    }
}

/// What reverse mode should do with the values of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// Do not store: run again in the reverse pass.
    Recompute,
    /// Store.
    Store,
}

/// A regular slice of the outer dimension.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SliceDim {
    /// First index.
    pub start: Atom,
    /// Number of elements.
    pub len: Atom,
    /// Distance; may be negative.
    pub stride: Atom,
}

/// Part of an accumulator.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the variant documents its fields")]
pub enum View {
    /// The element (or sub-array) at these indices; out of range: a part that ignores everything.
    Index(Vec<Atom>),
    /// A slice of the outer dimension.
    Slice(SliceDim),
    /// A component of a product.
    Proj(usize),
    /// As [`Exp::Rearrange`].
    Rearrange(Vec<usize>),
    /// As [`Exp::Reshape`].
    Reshape { shape: Vec<Atom>, from: usize },
    /// As [`Exp::Reverse`].
    Reverse,
    /// As [`Exp::Rotate`].
    Rotate(Atom),
}

/// A loop.
///
/// `for i < n` or `while`. State `params` starts as `init`; the body returns the next state, then `collect` further
/// values that are stacked: results are the final state, then one array per collected value (one element per
/// iteration), then, for `while` loops that collect, the number of iterations.
#[derive(Clone, Debug, PartialEq)]
pub struct Loop {
    /// State variables and their first values.
    pub params: Vec<(Var, Atom)>,
    /// When to stop.
    pub form: LoopForm,
    /// One iteration.
    pub body: Body,
    /// How many of the body's last results are stacked.
    pub collect: usize,
    /// Attributes.
    pub attrs: LoopAttrs,
}

/// When a loop stops.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the variant documents its fields")]
pub enum LoopForm {
    /// `i` counts from 0 to `n - 1` (`n <= 0`: no iteration). `i` has the type of `n`, an integer type.
    For { i: Var, n: Atom },
    /// The condition, evaluated on the state before each iteration; one `bool` result.
    While(Body),
}

/// Attributes of a loop for reverse mode.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct LoopAttrs {
    /// `#[tape(..)]`
    pub tape: Option<TapePolicy>,
    /// `#[stripmine(k)]`
    pub stripmine: Option<u32>,
    /// `#[bound(b)]` of a while loop.
    pub bound: Option<u64>,
}

/// What the forward sweep of a loop stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TapePolicy {
    /// Everything the reverse sweep reads.
    All,
    /// The state of each iteration.
    Carry,
    /// Two-level checkpointing.
    Sqrt,
    /// Binomial checkpointing with so many snapshots.
    Revolve(u32),
    /// Everything if it fits so many bytes, else binomial checkpointing with as many snapshots as fit. Chosen at run time.
    Limit(u64),
    /// Everything if that is expected to fit so many bytes, else two-level checkpointing, with blocks that fit half of the bytes, or are one iteration that fits
    /// all, if there are such blocks. Where an iteration keeps no more than its state they have at least so many iterations. Chosen at run time.
    Near {
        /// What the tape may take.
        bytes: u64,
        /// The shortest block of iterations that keep no more than the state.
        least: u32,
    },
}

/// The permutation that takes [`Exp::Rearrange`] back.
pub fn inverse(permutation: &[usize]) -> Vec<usize> {
    let mut out = vec![0; permutation.len()];
    for (i, p) in permutation.iter().enumerate() {
        out[*p] = i;
    }
    out
}

/// What combines the elements of [`Soac::Fused`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "as in `Soac::Reduce`")]
pub enum FusedForm {
    /// `reduce`
    Reduce { commutative: bool },
    /// `scan`
    Scan,
}

/// A second-order array operation. `width` is the size of the outer dimension of every array argument.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the variant documents its fields")]
pub enum Soac {
    /// Results: one array per result of `lam`.
    Map { width: Atom, lam: Lam, arrays: Vec<Atom> },
    /// `lam` takes two groups of `neutral.len()` values (left, right). Results: one value per component.
    Reduce { width: Atom, lam: Lam, neutral: Vec<Atom>, arrays: Vec<Atom>, commutative: bool },
    /// Inclusive scan, else as `Reduce`. Results: arrays.
    Scan { width: Atom, lam: Lam, neutral: Vec<Atom>, arrays: Vec<Atom> },
    /// `reduce` or `scan` of what `pre` makes of each element: the first `neutral.len()` results of `pre` are combined by
    /// `lam`, the others are returned. Results: those of the reduction or scan, then one array per other result of `pre`.
    /// Made by fusion, taken apart by [`crate::fused::split`].
    Fused { form: FusedForm, width: Atom, pre: Lam, lam: Lam, neutral: Vec<Atom>, arrays: Vec<Atom> },
    /// `reduce_by_index`: `dst[j] := lam(dst[j], values[i])` for `j = indices[i]`, in order of `i`; out of range: ignored.
    /// `width`: size of `indices` and `values`. Results: the new `dst` arrays.
    Hist { width: Atom, lam: Lam, neutral: Vec<Atom>, dst: Vec<Atom>, indices: Atom, values: Vec<Atom> },
    /// `dst[indices[i]] := values[i]`; out of range: ignored; of several writes the one with the highest `i` wins.
    Scatter { width: Atom, dst: Atom, indices: Atom, values: Atom },
}
