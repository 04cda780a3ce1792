//! The data model of lambda: programs, functions, terms.
//!
//! Only [`crate::Builder`] makes variables and terms. Terms are immutable and shared: cloning one costs O(1), and a
//! pass takes `&Term` and builds new ones. Every node knows its type and its place in the source program.
//! Dropping a term uses no stack in its depth.

use crate::types::{Type, TypeId, Variant};
use pullback_base::index::IndexVec;
use pullback_base::{Span, Symbol};
use pullback_prim::{Prim, Scalar, ScalarValue};
use std::sync::Arc;

pullback_base::index_type! {
    /// A variable: bound exactly once in its whole program.
    pub struct Var
}
pullback_base::index_type! {
    /// A top-level function.
    pub struct FunId
}

/// A whole program.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Program {
    /// The recursive sum types.
    pub types: IndexVec<TypeId, TypeDef>,
    /// Every variable of every function.
    pub vars: IndexVec<Var, VarInfo>,
    /// The functions. Entry points are marked.
    pub funs: IndexVec<FunId, Fun>,
    /// Whether derivatives multiply by partial derivatives as IEEE numbers, so that zero times infinity is NaN. Not part of the text form.
    pub ieee_partials: bool,
}

/// A recursive sum type: its alternatives may mention [`Type::Named`].
#[derive(Clone, Debug, PartialEq)]
pub struct TypeDef {
    /// Its name, unique in the program.
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
    /// Where it was bound.
    pub span: Option<Span>,
}

/// A top-level function. It may call itself and others, and take and return functions.
#[derive(Clone, Debug, PartialEq)]
pub struct Fun {
    /// Its name, unique in the program.
    pub name: Symbol,
    /// Its parameters; calls give them all.
    pub params: Vec<Var>,
    /// The type of its result (known before the body is built, so that recursion needs no inference).
    pub result: Type,
    /// Its body; `None` only while the program is being built.
    pub body: Option<Term>,
    /// For entry points: how the user sees parameters and result.
    pub entry: Option<Entry>,
    /// Where it was defined.
    pub span: Option<Span>,
}

/// The interface of an entry point.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Parameter names and types, in the user's order: one per parameter of the function.
    pub params: Vec<(Symbol, EntryType)>,
    /// The result.
    pub result: EntryType,
}

/// A type as the user sees it.
#[derive(Clone, Debug, PartialEq)]
pub enum EntryType {
    /// A scalar.
    Scalar(Scalar),
    /// An array with the declared size of its outer dimension, if it has a name or a constant (`n`, `3`).
    Array(Option<Symbol>, Box<EntryType>),
    /// A tuple.
    Tuple(Vec<EntryType>),
    /// A record: fields in declaration order. A tuple in [`Type`].
    Record(Vec<(Symbol, EntryType)>),
    /// A sum.
    Sum(Vec<(Symbol, Vec<EntryType>)>),
}

/// A term: a shared, immutable node.
///
/// The option is empty only while a term is being dropped.
#[derive(Clone, Debug)]
pub struct Term(Option<Arc<Node>>);

impl PartialEq for Term {
    /// A shared node is equal to itself, so that equal parts that two terms share are not walked.
    fn eq(&self, other: &Term) -> bool {
        match (&self.0, &other.0) {
            (Some(a), Some(b)) => Arc::ptr_eq(a, b) || a == b,
            (a, b) => a.is_none() && b.is_none(),
        }
    }
}

/// A node of a term.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// What it is.
    pub exp: Exp,
    /// Its type.
    pub ty: Type,
    /// Its place in the source program.
    pub span: Option<Span>,
}

impl Term {
    /// The only way to make a node; the builder computes `ty`.
    pub(crate) fn new(exp: Exp, ty: Type, span: Option<Span>) -> Term {
        Term(Some(Arc::new(Node { exp, ty, span })))
    }
    /// The node.
    fn node(&self) -> &Node {
        match &self.0 {
            Some(node) => node,
            None => unreachable!("a term in use has a node"),
        }
    }
    /// Its type.
    pub fn ty(&self) -> &Type {
        &self.node().ty
    }
    /// Its place in the source program.
    pub fn span(&self) -> Option<Span> {
        self.node().span
    }
    /// What it is.
    pub fn exp(&self) -> &Exp {
        &self.node().exp
    }
    /// The same to be changed, without a change of its type; a node of its own if others share it.
    pub(crate) fn exp_mut(&mut self) -> &mut Exp {
        match &mut self.0 {
            Some(node) => &mut Arc::make_mut(node).exp,
            None => unreachable!("a term in use has a node"),
        }
    }
}

impl std::ops::Deref for Term {
    type Target = Exp;
    fn deref(&self) -> &Exp {
        self.exp()
    }
}

impl Drop for Term {
    /// Unlinks the nodes this is the last owner of one by one, so that deep terms need no stack.
    fn drop(&mut self) {
        let mut pending: Vec<Arc<Node>> = Vec::new();
        let mut current = self.0.take();
        while let Some(mut node) = current {
            if let Some(node) = Arc::get_mut(&mut node) {
                node.exp.children_mut(&mut |child| pending.extend(child.0.take()));
            }
            drop(node);
            current = pending.pop();
        }
    }
}

/// What a term is. Types are stated in the comments; sizes, indices, counts and identities are `i64`.
///
/// The first part is the source language, the second the vocabulary of the algorithms' chapters.
#[derive(Clone, Debug, PartialEq)]
pub enum Exp {
    /// A variable.
    Var(Var),
    /// A scalar constant.
    Const(ScalarValue),
    /// A scalar primitive of its arguments, or of one product of them.
    Prim(Prim, Vec<Term>),
    /// The sign of an `f64`, of [`Type::sign`]: the discrete predicate of the chapters.
    Sign(Term),
    /// `let x = a in b`.
    Let(Var, Term, Term),
    /// `\x -> b`.
    Lam(Var, Term),
    /// `f a`.
    App(Term, Term),
    /// A call of a top-level function with all its arguments.
    Call(FunId, Vec<Term>),
    /// A product; the empty one is unit.
    Tuple(Vec<Term>),
    /// A component of a product.
    Proj(Term, usize),
    /// A value of a sum type (`Type::Sum` or `Type::Named`): alternative and payload.
    Inject(Type, usize, Vec<Term>),
    /// One arm per alternative, in order.
    Match(Term, Vec<Arm>),
    /// A conditional.
    If(Term, Term, Term),
    /// A loop.
    Loop(Loop),

    /// The array of these elements (element type given, for the empty one).
    ArrayLit(Type, Vec<Term>),
    /// `array[ix]`: leading indices; fewer than the rank give a sub-array. Out of bounds is an error.
    Index(Term, Vec<Term>),
    /// `len` elements of the outer dimension from `start` in steps of `stride`. Out of bounds is an error.
    Slice(Term, SliceDim),
    /// `array with [ix] = value`.
    Update(Term, Vec<Term>, Term),
    /// `array with [slice] = value` along the outer dimension.
    UpdateSlice(Term, SliceDim, Term),
    /// Elements of `array` at `indices` (an array of `i64`), along the outer dimension. Out of bounds is an error.
    Gather(Term, Term),
    /// The size of the given dimension (0 = outermost).
    Size(Term, usize),
    /// `0, 1, .., n-1`.
    Iota(Term),
    /// `n` times the value.
    Replicate(Term, Term),
    /// Dimension `i` of the result is dimension `perm[i]` of the argument; dimensions beyond `perm` stay.
    Rearrange(Vec<usize>, Term),
    /// The same elements in another shape: the first `from` dimensions become `shape`. Element counts must agree.
    Reshape {
        /// The new outer dimensions.
        shape: Vec<Term>,
        /// How many outer dimensions they replace.
        from: usize,
        /// The array.
        array: Term,
    },
    /// Arrays one after the other; at least one.
    Concat(Vec<Term>),
    /// The outer dimension reversed.
    Reverse(Term),
    /// Element `i` of the result is element `(i + k) mod n` of the array: `Rotate(k, array)`.
    Rotate(Term, Term),
    /// Arrays of equal outer size to an array of tuples; at least one.
    Zip(Vec<Term>),
    /// An array of tuples to a tuple of arrays.
    Unzip(Term),
    /// A second-order array operation.
    Soac(Soac),

    /// `body`, if the condition holds; else the program stops with the message.
    Assert {
        /// The condition.
        condition: Term,
        /// What is said if it does not hold.
        message: Symbol,
        /// The value.
        body: Term,
    },
    /// `body`, if two sizes agree; else the program stops with a shape mismatch that shows both.
    SameSize {
        /// One size.
        left: Term,
        /// The other.
        right: Term,
        /// What is said if they differ.
        message: Symbol,
        /// The value.
        body: Term,
    },
    /// Reverse derivative: `(f arg, cotangent of arg)`. The cotangents have the types of result and argument
    /// themselves; their discrete parts are ignored on the way in and zero on the way out.
    Vjp(Derivative),
    /// Forward derivative: `(f arg, tangent of the result)`. Types as for [`Exp::Vjp`].
    Jvp(Derivative),
    /// `f arg` with its own reverse rule: `rule : argument -> result -> cotangent of the result -> cotangent of the
    /// argument`.
    Custom {
        /// `a -> b`; with a tape `a -> (t, b)`
        f: Term,
        /// `a -> b -> b -> a`; with a tape `a -> (t, b) -> b -> a`
        rule: Term,
        /// `a`
        arg: Term,
        /// Whether `f` leaves the rule something, which the rule is not about.
        tape: bool,
    },
    /// A term with a mark for reverse mode.
    Marked(Mark, Term),
    /// Its argument, with derivative zero.
    StopGradient(Term),
    /// Fork-join: all terms, possibly in parallel; the tuple of their values.
    Par(Vec<Term>),

    /// `\_x -> b`: a linear function; `b` is linear in `x`.
    LinearLam(Var, Term),
    /// A linear function applied.
    LinearApp(Term, Term),
    /// The zero of a type with addition; of an array type, whose sizes it does not know, the empty array.
    Zero(Type),
    /// Addition: floats add; tuples, sparse values, staged calls and arrays add their parts; integers, booleans and
    /// units: the first; of maps the union, with the sums of what both have. The empty array is neutral. Of two sparse sums with different alternatives: an error.
    Plus(Term, Term),
    /// A sparse product that is not zero (`lpair`).
    SparseTuple(Vec<Term>),
    /// A component of a sparse product (`lfst`, `lsnd`); zero of zero.
    SparseProj(Term, usize),
    /// A sparse sum that is not zero (`linl`, `linr`): its type, alternative and cotangent.
    SparseInject(Type, usize, Term),
    /// The cotangent of that alternative (`lcastl`, `lcastr`); zero of zero, an error for another alternative.
    SparseCast(Term, usize),

    /// The bag of one value: position and value.
    BagOne(Term, Term),
    /// The bag of the values of an array, at the positions that an array of as many `i64` gives (`BArray`). O(1), but what it is
    /// collected for costs its size.
    BagArray(Term, Term),
    /// The array of this size with the sum of what a bag has at each position (`collect`, then `scatter` into zeros):
    /// `BagScatter(n, bag)`. A position outside is an error.
    BagScatter(Term, Term),

    /// `return`: a computation over the cells `env` that adds nothing.
    EvmReturn(Arc<[Type]>, Term),
    /// `m >>= k`.
    EvmBind(Term, Term),
    /// `one_x d`: adds a cotangent to cell number `cell` (0 = innermost).
    EvmAdd {
        /// The cells.
        env: Arc<[Type]>,
        /// Which of them.
        cell: usize,
        /// What is added.
        value: Term,
    },
    /// `scope zero m`: a new innermost cell with this initial value for `m`; returns the pair of its final value and
    /// the value of `m`.
    EvmScope(Term, Term),
    /// `run m initial`: initial is the tuple of the cells' values; gives the pair of the result and the tuple of the
    /// final values.
    EvmRun(Term, Term),

    /// Computations that may run in parallel, at least one; the tuple of their results.
    EvmPar(Vec<Term>),
    /// The computations of an array over the cells `env`, which may run in parallel; the array of their results (`sequence`).
    EvmSequence(Arc<[Type]>, Term),

    /// A staged cotangent without calls.
    StagedCotangent(Term),
    /// A staged call: identity, linear function to staged calls, argument. When two staged values are added, calls
    /// with equal identity become one call at the sum of their arguments.
    StagedCall(Term, Term, Term),
    /// Runs the staged calls, highest identity first, until the cotangent alone is left.
    StagedResolve(Term),

    /// The empty map to values of this type.
    MapEmpty(Type),
    /// `map` with `value` at `key`; if there was a value already, with `combine old value`.
    MapInsert {
        /// `v -> v -> v`
        combine: Term,
        /// The map.
        map: Term,
        /// The key.
        key: Term,
        /// The value.
        value: Term,
    },
    /// The value at a key: `#none | #some v`.
    MapLookup(Term, Term),
    /// The highest key: `#none | #some key value rest`.
    MapPopMax(Term),

    /// A computation without effects.
    IoReturn(Term),
    /// `m >>= k`.
    IoBind(Term, Term),
    /// The result of a computation whose effects nobody else can see.
    IoRun(Term),
    /// Computations that may run in parallel; the tuple of their results.
    IoPar(Vec<Term>),
    /// A new mutable array of `n` cells with this value.
    MutNew(Term, Term),
    /// The value of a cell. Out of bounds is an error.
    MutGet(Term, Term),
    /// `array[i] := value`.
    MutSet(Term, Term, Term),
    /// `array[i] := f array[i]`, atomically; returns the value before.
    MutModify(Term, Term, Term),
    /// A new last cell; returns its position.
    MutPush(Term, Term),
    /// The number of cells.
    MutSize(Term),
    /// The values of all cells.
    MutFreeze(Term),
}

/// An arm of a match.
#[derive(Clone, Debug, PartialEq)]
pub struct Arm {
    /// One variable per payload field.
    pub params: Vec<Var>,
    /// The value.
    pub body: Term,
}

/// A derivative at a point.
#[derive(Clone, Debug, PartialEq)]
pub struct Derivative {
    /// The function, `a -> b`.
    pub f: Term,
    /// The point, `a`.
    pub arg: Term,
    /// The cotangent of the result (`b`) or the tangent of the argument (`a`); an array of them if there are many.
    pub seed: Term,
    /// How many seeds there are.
    pub seeds: Seeds,
    /// The algorithm asked for.
    pub algorithm: Option<Symbol>,
}

/// Whether a derivative is asked for in one direction or in many at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seeds {
    /// One.
    One,
    /// An array of them; the derivative is an array as well, and the function runs once.
    Many,
}

/// What reverse mode should do with the values of a term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// Do not store: run again in the reverse pass.
    Recompute,
    /// Store.
    Store,
}

/// A regular slice of the outer dimension.
#[derive(Clone, Debug, PartialEq)]
pub struct SliceDim {
    /// First index.
    pub start: Term,
    /// Number of elements.
    pub len: Term,
    /// Distance; may be negative.
    pub stride: Term,
}

/// A loop: the state starts as `init` and becomes the value of `body` in each iteration.
#[derive(Clone, Debug, PartialEq)]
pub struct Loop {
    /// The state, in scope of the condition and the body.
    pub state: Var,
    /// Its first value.
    pub init: Term,
    /// When to stop.
    pub form: LoopForm,
    /// The next state.
    pub body: Term,
    /// Attributes.
    pub attrs: LoopAttrs,
}

/// When a loop stops.
#[derive(Clone, Debug, PartialEq)]
pub enum LoopForm {
    /// `i` counts from 0 to `n - 1`, with the integer type of `n`.
    For(Var, Term),
    /// As long as the condition holds.
    While(Term),
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
}

/// A second-order array operation. Operands are terms of (curried) function type.
#[derive(Clone, Debug, PartialEq)]
pub enum Soac {
    /// `map f xs ys ..`: as many curried parameters as arrays, at least one; equal outer sizes.
    Map {
        /// `a -> b -> .. -> r`
        f: Term,
        /// The arrays.
        arrays: Vec<Term>,
    },
    /// `reduce op neutral xs`.
    Reduce {
        /// `a -> a -> a`, associative.
        op: Term,
        /// Its neutral element.
        neutral: Term,
        /// The array.
        array: Term,
        /// Whether the operator is declared commutative.
        commutative: bool,
    },
    /// `scan op neutral xs`, inclusive.
    Scan {
        /// `a -> a -> a`, associative.
        op: Term,
        /// Its neutral element.
        neutral: Term,
        /// The array.
        array: Term,
    },
    /// `reduce_by_index dst op neutral indices values`; out of range: ignored.
    Hist {
        /// `a -> a -> a`, associative and commutative.
        op: Term,
        /// Its neutral element.
        neutral: Term,
        /// The array that is reduced into.
        dst: Term,
        /// Where.
        indices: Term,
        /// What.
        values: Term,
    },
    /// `scatter dst indices values`; out of range: ignored; of several writes the one with the highest position wins.
    Scatter {
        /// The array written to.
        dst: Term,
        /// Where.
        indices: Term,
        /// What.
        values: Term,
    },
}
