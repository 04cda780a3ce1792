//! The typed source program: what the front end hands to the elaborator.
//!
//! Every name is resolved, every expression carries its type, and every use of a polymorphic definition records the
//! types it is used at, so that the elaborator can monomorphise without any inference of its own.
//!
//! Conventions (relied upon by the elaborator):
//! * A program without error diagnostics has no [`Type::Meta`] left, and [`Size::Meta`] only for binders of function types.
//! * Sizes in types are information only; run-time meaning has only what [`SizeBind`] and [`SizeCheck`] say.
//! * Fields of a record type and alternatives of a sum type are sorted by name; the number of an alternative is its
//!   place in that order.
//! * `&&` and `||` are [`ExpKind::If`]; indices, slice bounds and sizes are always `i64` (conversions are inserted).
//! * Overloaded operators are resolved: they are [`Intrinsic::Prim`] at a concrete scalar type.

use crate::intrinsics::Intrinsic;
use pullback_base::index::IndexVec;
use pullback_base::{Span, Symbol};
use pullback_prim::{Scalar, ScalarValue};
use std::sync::Arc;

pullback_base::index_type! {
    /// A variable bound by a parameter, pattern, loop or local definition; unique in the whole program.
    pub struct VarId
}
pullback_base::index_type! {
    /// A top-level definition.
    pub struct DefId
}
pullback_base::index_type! {
    /// A type parameter of a top-level or local definition; unique in the whole program.
    pub struct TypeParamId
}
pullback_base::index_type! {
    /// A recursive sum type.
    pub struct TypeId
}
pullback_base::index_type! {
    /// An unknown type during inference.
    pub struct MetaId
}
pullback_base::index_type! {
    /// An unknown size during inference, or the binder of a dependent function type.
    pub struct SizeMetaId
}

/// A type.
#[derive(Clone, PartialEq, Debug)]
pub enum Type {
    /// A scalar.
    Scalar(Scalar),
    /// An array: the size of its outer dimension and its elements.
    Array(Size, Arc<Type>),
    /// A tuple of none or at least two components; the empty one is the unit type.
    Tuple(Arc<[Type]>),
    /// A record, fields sorted by name.
    Record(Arc<[(Symbol, Type)]>),
    /// A sum, alternatives sorted by name.
    Sum(Arc<[(Symbol, Vec<Type>)]>),
    /// A function. The binder, if any, stands in the result for the size that the (`i64`) argument is.
    Fun(Option<Binder>, Arc<Type>, Arc<Type>),
    /// A type parameter of an enclosing definition.
    Param(TypeParamId, Symbol),
    /// A recursive sum type.
    Named(TypeId, Symbol),
    /// Not yet known; only during inference.
    Meta(MetaId),
    /// The type of something wrong that was reported already; agrees with every type.
    Error,
}

/// What stands in the result of a function type for the size that the argument is; with its name for printing.
#[derive(Clone, PartialEq, Debug)]
pub struct Binder {
    /// The size it stands for, in the result.
    pub id: SizeMetaId,
    /// The name of the parameter.
    pub name: Symbol,
}

/// The size of a dimension, as far as it is known before the program runs.
#[derive(Clone, PartialEq, Debug)]
pub enum Size {
    /// A constant.
    Const(i64),
    /// An `i64` variable: a size parameter or any other variable.
    Var(VarId, Symbol),
    /// A top-level `i64` constant.
    Def(DefId, Symbol),
    /// A polynomial in variables that is neither a constant nor one variable.
    Expression(Arc<Polynomial>),
    /// Not known: the size of the result of a filter, a slice, a choice.
    Unknown(u32),
    /// Not yet known; only during inference.
    Meta(SizeMetaId),
}

/// A size as a polynomial with whole coefficients: sorted variables of each term, and its coefficient (not 0).
pub type Polynomial = std::collections::BTreeMap<Vec<SizeAtom>, i64>;

/// A variable of a [`Polynomial`].
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum SizeAtom {
    /// As [`Size::Var`].
    Var(VarId, Symbol),
    /// As [`Size::Def`].
    Def(DefId, Symbol),
}

/// A whole program.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// Every variable.
    pub vars: IndexVec<VarId, VarInfo>,
    /// The recursive sum types.
    pub types: IndexVec<TypeId, NamedType>,
    /// The definitions, of the prelude first. A definition mentions itself, earlier ones, and later ones only within
    /// its group of mutually recursive definitions or where the source refers forward.
    pub defs: IndexVec<DefId, Def>,
    /// Definitions in dependency order, mutually recursive ones together.
    pub groups: Vec<Vec<DefId>>,
}

/// What is known about a variable.
#[derive(Clone, Debug)]
pub struct VarInfo {
    /// Its name in the source.
    pub name: Symbol,
    /// Its type; for a polymorphic local function the type with its own parameters free.
    pub ty: Type,
    /// Where it is bound.
    pub span: Span,
}

/// A recursive sum type.
#[derive(Clone, Debug)]
pub struct NamedType {
    /// Its name.
    pub name: Symbol,
    /// Its alternatives, sorted by name; payload types may mention [`Type::Named`].
    pub variants: Vec<(Symbol, Vec<Type>)>,
    /// Where it is defined.
    pub span: Span,
}

/// A top-level definition.
#[derive(Clone, Debug)]
pub struct Def {
    /// Its name in the source.
    pub name: Symbol,
    /// The place of the name.
    pub span: Span,
    /// The function itself; a constant has no parameters.
    pub fun: Function,
    /// The type of the definition as a value: parameters to result.
    pub ty: Type,
    /// Whether it calls itself, directly or through others.
    pub recursive: bool,
    /// Whether it comes from the prelude.
    pub prelude: bool,
    /// The interface, for entry points.
    pub entry: Option<Entry>,
    /// Attributes of the definition.
    pub attributes: Vec<Attribute>,
}

/// A function with named parameters: a top-level or local definition.
///
/// Meaning of a call: bind the parameters, then the sizes, then test the checks (in order), then the body.
#[derive(Clone, Debug)]
pub struct Function {
    /// Type parameters; a use gives one type for each, in this order.
    pub type_params: Vec<TypeParamId>,
    /// Parameters.
    pub params: Vec<Pattern>,
    /// Size parameters and how to obtain each from the parameters. Only those that can be obtained; a size parameter
    /// that is used as a value and cannot be obtained was reported.
    pub sizes: Vec<SizeBind>,
    /// What must hold at entry: sizes that occur in more than one parameter, or in one parameter and as a value.
    pub checks: Vec<SizeCheck>,
    /// Whether type checking could not decide `checks` at every use. Entry points always need them.
    pub needs_checks: bool,
    /// Type of the result.
    pub result: Type,
    /// Body.
    pub body: Exp,
}

/// How to obtain a size from a value that is bound already: `(dimension - offset) / factor`, rounded towards zero.
/// Where the factor is not 1 or the offset not 0 a [`SizeCheck`] tests that nothing is left over.
#[derive(Clone, Debug)]
pub struct SizeBind {
    /// The `i64` variable that holds the size.
    pub var: VarId,
    /// Where its value is found.
    pub place: Place,
    /// What is taken from the dimension first.
    pub offset: i64,
    /// What the rest is divided by; not 0.
    pub factor: i64,
}

/// A dimension of (a part of) a variable: start at the variable, take the steps, then the size of the outer dimension.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    /// The whole value.
    pub root: Root,
    /// Steps inwards; the value after them is an array.
    pub steps: Vec<Step>,
}

/// What a [`Place`] starts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Root {
    /// Parameter `i` of the function.
    Param(usize),
    /// The value that is being bound (`let`) or tested ([`ExpKind::Coerce`]).
    Value,
}

/// A step into a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// From a tuple or record to its component `i` (in the order of its type).
    Component(usize),
    /// From an array to its elements: the next inner dimension, or the same part of all elements. Regular arrays know
    /// inner sizes even where an outer one is 0.
    Element,
}

/// A size that must have a value.
#[derive(Clone, Debug)]
pub struct SizeCheck {
    /// The dimension that is tested.
    pub place: Place,
    /// The value it must have: an `i64` expression over variables in scope.
    pub expected: Exp,
    /// The annotation that asks for it.
    pub span: Span,
}

/// The interface of an entry point.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Parameter names and types. A parameter pattern without a name is called `arg0`, `arg1`, by position.
    pub params: Vec<(Symbol, EntryType)>,
    /// The result.
    pub result: EntryType,
}

/// A type as the user wrote it, abbreviations resolved. Record fields in declaration order (the order of [`Type`] is by name).
#[derive(Clone, Debug, PartialEq)]
pub enum EntryType {
    /// A scalar.
    Scalar(Scalar),
    /// An array and the declared size of its outer dimension (`n`, `3`, `n+1`), if any.
    Array(Option<Symbol>, Box<EntryType>),
    /// A tuple; unit if empty.
    Tuple(Vec<EntryType>),
    /// A record.
    Record(Vec<(Symbol, EntryType)>),
    /// A sum, alternatives sorted by name.
    Sum(Vec<(Symbol, Vec<EntryType>)>),
    /// A recursive sum.
    Named(TypeId),
}

/// An attribute, `#[name]` or `#[name(arguments)]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Attribute {
    /// Its name.
    pub name: Symbol,
    /// Its arguments.
    pub arguments: Vec<AttributeArgument>,
    /// Its place.
    pub span: Span,
}

/// An argument of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum AttributeArgument {
    /// A name, with arguments of its own where it has any.
    Name(Symbol, Vec<AttributeArgument>),
    /// A number.
    Int(i64),
}

/// A pattern.
#[derive(Clone, Debug)]
pub struct Pattern {
    /// What it is.
    pub kind: PatternKind,
    /// The type of the values it is matched against.
    pub ty: Type,
    /// Its place.
    pub span: Span,
}

/// The forms of patterns. In `let`, lambda and parameter position patterns cannot fail.
#[derive(Clone, Debug)]
pub enum PatternKind {
    /// `_`
    Wildcard,
    /// A variable.
    Var(VarId),
    /// A literal.
    Literal(ScalarValue),
    /// A tuple.
    Tuple(Vec<Pattern>),
    /// A record: one pattern per field of the type, in the order of the type.
    Record(Vec<(Symbol, Pattern)>),
    /// An alternative: its name, number and payload patterns.
    Construct(Symbol, usize, Vec<Pattern>),
}

/// An expression.
#[derive(Clone, Debug)]
pub struct Exp {
    /// What it is.
    pub kind: ExpKind,
    /// Its type.
    pub ty: Type,
    /// Its place.
    pub span: Span,
}

impl Drop for Exp {
    /// With enough stack, whatever thread it is: expressions may be high.
    fn drop(&mut self) {
        if !self.kind.is_leaf() {
            let kind = std::mem::replace(&mut self.kind, ExpKind::Error);
            stacker::maybe_grow(64 << 10, 1 << 20, || drop(kind));
        }
    }
}

/// The forms of expressions. Evaluation is strict and from left to right.
#[derive(Clone, Debug)]
pub enum ExpKind {
    /// A scalar.
    Literal(ScalarValue),
    /// A local variable. Types are given for polymorphic local functions ([`Binding::Fun`]) only.
    Var(VarId, Vec<Type>),
    /// A top-level definition at these types.
    Def(DefId, Vec<Type>),
    /// A built-in function at these types (the type parameters of its scheme, in the order of its table row).
    Intrinsic(Intrinsic, Vec<Type>),
    /// A tuple; the empty one is `()`.
    Tuple(Vec<Exp>),
    /// A record: fields in the order written (the order of evaluation); the type has them sorted.
    Record(Vec<(Symbol, Exp)>),
    /// An array literal.
    Array(Vec<Exp>),
    /// An alternative of the sum type of this expression: name, number, payload.
    Construct(Symbol, usize, Vec<Exp>),
    /// Component `i` of a tuple or record (order of the type).
    Project(Box<Exp>, usize),
    /// `record with a.b = value`: the component numbers along the path.
    RecordUpdate(Box<Exp>, Vec<usize>, Box<Exp>),
    /// A call with at least one argument. The function may have more or fewer parameters than there are arguments.
    Apply(Box<Exp>, Vec<Exp>),
    /// A function value with at least one parameter.
    Lambda(Vec<Pattern>, Box<Exp>),
    /// A chain of local definitions (each in scope of the later ones), then the result.
    Let(Vec<Binding>, Box<Exp>),
    /// A conditional.
    If(Box<Exp>, Box<Exp>, Box<Exp>),
    /// `match`; the first arm that fits is taken, and one does.
    Match(Box<Exp>, Vec<(Pattern, Exp)>),
    /// A loop.
    Loop(Box<Loop>),
    /// `array[i, a:b, ..]`: leading dimensions, each indexed or sliced.
    Index(Box<Exp>, Vec<DimIndex>),
    /// `array with [..] = value`.
    With(Box<Exp>, Vec<DimIndex>, Box<Exp>),
    /// `start ... end`, `start ..< end`, `start, second ..> end`; all of one integer type.
    Range(Box<Range>),
    /// The same value, after testing its sizes (type ascription, `:>`, result annotations).
    Coerce(Box<Exp>, Vec<SizeCheck>),
    /// `#[attribute] e`
    Attributed(Vec<Attribute>, Box<Exp>),
    /// `assert condition value`
    Assert(Box<Exp>, Box<Exp>),
    /// Where an error was reported; never in a program without error diagnostics.
    Error,
}

impl ExpKind {
    /// Whether there are no expressions in it.
    fn is_leaf(&self) -> bool {
        use ExpKind::{Def, Error, Intrinsic, Literal, Var};
        matches!(self, Literal(_) | Var(..) | Def(..) | Intrinsic(..) | Error)
    }
}

/// A local definition.
#[derive(Clone, Debug)]
pub enum Binding {
    /// A value.
    Value(Let),
    /// A function, possibly polymorphic, never recursive.
    Fun(LetFun),
}

/// `let pattern = value`, then the sizes that the pattern's annotation binds.
#[derive(Clone, Debug)]
pub struct Let {
    /// Pattern; cannot fail.
    pub pattern: Pattern,
    /// Value (annotations of the pattern are [`ExpKind::Coerce`] in it).
    pub value: Exp,
    /// Sizes bound by `let [n] (x: [n]t) = ..`, with places from [`Root::Value`].
    pub sizes: Vec<SizeBind>,
}

/// `let f 'a [n] (x: t) = body`.
#[derive(Clone, Debug)]
pub struct LetFun {
    /// The variable that holds it.
    pub var: VarId,
    /// The function.
    pub fun: Function,
}

/// A loop: the pattern holds the state.
#[derive(Clone, Debug)]
pub struct Loop {
    /// The state; cannot fail.
    pub pattern: Pattern,
    /// Its first value.
    pub initial: Exp,
    /// What drives it.
    pub form: LoopForm,
    /// The next state.
    pub body: Exp,
}

/// What drives a loop.
#[derive(Clone, Debug)]
pub enum LoopForm {
    /// `for i < bound`: `i` of the integer type of the bound.
    For(VarId, Exp),
    /// `for pattern in array`.
    ForIn(Pattern, Exp),
    /// `while condition`, which sees the state.
    While(Exp),
}

/// An index or a slice of one dimension; all `i64`.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant, reason = "few are made, and none is kept in bulk")]
pub enum DimIndex {
    /// One position: the dimension disappears.
    At(Exp),
    /// `start:end:stride`, each optional, as in Futhark.
    Slice(Option<Exp>, Option<Exp>, Option<Exp>),
}

/// A range.
#[derive(Clone, Debug)]
pub struct Range {
    /// First element.
    pub start: Exp,
    /// Second element, if written.
    pub second: Option<Exp>,
    /// The end.
    pub end: Exp,
    /// How the end is meant.
    pub kind: RangeKind,
}

/// How the end of a range is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeKind {
    /// `...`: inclusive.
    Inclusive,
    /// `..<`: upwards, exclusive.
    UpTo,
    /// `..>`: downwards, exclusive.
    DownTo,
}

impl Type {
    /// The unit type.
    pub fn unit() -> Type {
        Type::Tuple(Arc::from([]))
    }
    /// A function type without binder.
    pub fn fun(param: Type, result: Type) -> Type {
        Type::Fun(None, Arc::new(param), Arc::new(result))
    }
    /// An array type.
    pub fn array(size: Size, element: Type) -> Type {
        Type::Array(size, Arc::new(element))
    }
}
