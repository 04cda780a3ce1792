//! The syntax tree of a source file, as written: no name is resolved and no type is known.
//!
//! Guarantees of a tree made by the parser: every node has a span inside the text; the tree of a declaration is at
//! most [`MAX_HEIGHT`] nodes high. Recursive passes and the drop of the tree take more stack where there is little left. `let`
//! chains, applications and literals are flat lists and do not count towards the height.
//!
//! Decisions that readers of the tree rely on:
//! * Parentheses leave no node. Operators are already grouped by precedence.
//! * `a.b` is [`ExprKind::Project`], except when `a` names one of the scalar modules ([`is_scalar_module`]), as in
//!   `f64.exp`: then it is a qualified name.
//! * Something that could not be parsed is an `Error` node; a diagnostic was given for it already.

use pullback_base::{Span, Symbol};

/// The greatest height of an expression. Nothing above it leaves the parser. Programs that other programs write have sums of thousands
/// of terms, each a node higher than the one before.
pub const MAX_HEIGHT: u32 = 50_000;
/// The greatest height of a type or pattern.
pub const MAX_TYPE_HEIGHT: u32 = 512;
/// Expressions of at most this height are dropped without a look at the stack.
const SHALLOW: u32 = 64;

/// A name and where it stands. Names of operators are their characters: `+`, `|>`, `+^`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// The text, without back-quotes or parentheses.
    pub text: Symbol,
    /// The place.
    pub span: Span,
}

/// A name with the modules before it: `exp`, `f64.exp`, `f64.+`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QualName {
    /// The modules, outermost first; empty for a plain name.
    pub qualifiers: Vec<Name>,
    /// The name proper.
    pub name: Name,
    /// From the first qualifier to the end of the name.
    pub span: Span,
}

/// Whether `text` is the name of a scalar type, which is also a module (`f64.exp`, `i32.max`).
pub fn is_scalar_module(text: &str) -> bool {
    matches!(
        text,
        "i8" | "i16" | "i32" | "i64" | "u8" | "u16" | "u32" | "u64" | "f16" | "f32" | "f64" | "bool"
    )
}

/// A source file.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    /// The files whose definitions it uses, in order.
    pub imports: Vec<Import>,
    /// The declarations, in order.
    pub declarations: Vec<Declaration>,
}

/// `import "path"`.
#[derive(Clone, Debug, PartialEq)]
pub struct Import {
    /// The path as written, without the ending `.fut`.
    pub path: String,
    /// The declaration.
    pub span: Span,
}

/// A top-level declaration.
///
/// Few of them exist at a time, so boxing the larger variant would buy nothing.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant)]
pub enum Declaration {
    /// `def`, `let` or `entry`.
    Value(ValueDeclaration),
    /// `type`.
    Type(TypeDeclaration),
}

/// How a value was declared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind {
    /// `def`, or the older `let`.
    Def,
    /// `entry`: callable from outside.
    Entry,
}

/// `def name [n] 'a (p: t) ... : t = body`.
#[derive(Clone, Debug, PartialEq)]
pub struct ValueDeclaration {
    /// `def` or `entry`.
    pub kind: ValueKind,
    /// Attributes before the declaration.
    pub attributes: Vec<Attribute>,
    /// What is declared; may be an operator.
    pub name: Name,
    /// Size and type parameters, in order.
    pub type_params: Vec<TypeParam>,
    /// Value parameters; empty for a constant.
    pub params: Vec<Pattern>,
    /// The type after `:`, if given.
    pub return_type: Option<Type>,
    /// The right-hand side.
    pub body: Expr,
    /// The whole declaration.
    pub span: Span,
}

/// `type name [n] 'a = definition`.
#[derive(Clone, Debug, PartialEq)]
pub struct TypeDeclaration {
    /// Attributes before the declaration.
    pub attributes: Vec<Attribute>,
    /// What is declared.
    pub name: Name,
    /// Size and type parameters, in order.
    pub params: Vec<TypeParam>,
    /// The right-hand side.
    pub definition: Type,
    /// How values of the type may be used: `type`, `type~`, `type^`.
    pub liftedness: Liftedness,
    /// The whole declaration.
    pub span: Span,
}

/// What may instantiate a type parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Liftedness {
    /// `'a`: types of known size that are no functions.
    Unlifted,
    /// `'~a`: types that may hide sizes.
    SizeLifted,
    /// `'^a`: any type, functions too.
    Lifted,
}

/// `[n]` or `'a` before the value parameters.
#[derive(Clone, Debug, PartialEq)]
pub enum TypeParam {
    /// `[n]`.
    Size(Name),
    /// `'a`, `'~a`, `'^a`; the name is without the quote.
    Type(Name, Liftedness),
}

/// `#[name]` or `#[name(argument, ...)]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Attribute {
    /// The name.
    pub name: Name,
    /// The arguments.
    pub arguments: Vec<AttributeArgument>,
    /// With the brackets.
    pub span: Span,
}

/// An argument of an attribute. `revolve s` of `#[tape(revolve s)]` is a nested attribute with one argument.
#[derive(Clone, Debug, PartialEq)]
pub enum AttributeArgument {
    /// An integer.
    Int(u64, Span),
    /// A name, with arguments of its own.
    Nested(Attribute),
}

/// A type expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Type {
    /// What it is.
    pub kind: TypeKind,
    /// The place.
    pub span: Span,
    /// Height of the tree; kept by [`Type::new`].
    pub height: u32,
}

/// The size of one array dimension in a type.
#[derive(Clone, Debug, PartialEq)]
pub enum SizeExpr {
    /// `[]`.
    Any(Span),
    /// `[n]`, `[3]`, `[n*m]`.
    Exp(Box<Expr>),
}

/// The forms of a type expression.
#[derive(Clone, Debug, PartialEq)]
pub enum TypeKind {
    /// `f64`, `t`, or a type variable in scope (without quote).
    Named(QualName),
    /// `t [n] f64`.
    Apply(QualName, Vec<TypeArgument>),
    /// `[n]t`.
    Array(SizeExpr, Box<Type>),
    /// `(a, b)`, with `()` for the empty tuple.
    Tuple(Vec<Type>),
    /// `{x: a, y: b}`, in the order written.
    Record(Vec<(Name, Type)>),
    /// `a -> b` and `(x: a) -> b`.
    Function {
        /// The name of the parameter, if given.
        param: Option<Name>,
        /// Its type.
        from: Box<Type>,
        /// The result.
        to: Box<Type>,
    },
    /// `#a t u | #b`: names without `#`, with the types of their payloads.
    Sum(Vec<(Name, Vec<Type>)>),
    /// `*t`.
    Unique(Box<Type>),
    /// `?[n][m].t`.
    Exists(Vec<Name>, Box<Type>),
    /// Not parsed; reported already.
    Error,
}

/// An argument of a type constructor.
#[derive(Clone, Debug, PartialEq)]
pub enum TypeArgument {
    /// `[n]`.
    Size(SizeExpr),
    /// `f64`.
    Type(Type),
}

/// A pattern.
#[derive(Clone, Debug, PartialEq)]
pub struct Pattern {
    /// What it is.
    pub kind: PatternKind,
    /// The place.
    pub span: Span,
    /// Height of the tree; kept by [`Pattern::new`].
    pub height: u32,
}

/// The forms of a pattern.
#[derive(Clone, Debug, PartialEq)]
pub enum PatternKind {
    /// `_`.
    Wildcard,
    /// `x`; may be an operator in parentheses.
    Name(Name),
    /// `(p, q)`, with `()` for the empty tuple.
    Tuple(Vec<Pattern>),
    /// `{x, y = p}`; a field without pattern binds its own name.
    Record(Vec<(Name, Option<Pattern>)>),
    /// `p : t`.
    Ascription(Box<Pattern>, Type),
    /// `#tag p q`.
    Constructor(Name, Vec<Pattern>),
    /// `1`, `true`.
    Literal(Literal),
    /// `-1`.
    NegatedLiteral(Literal),
    /// `#[attribute] p`.
    Attributed(Attribute, Box<Pattern>),
    /// Not parsed; reported already.
    Error,
}

/// The type named by the suffix of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suffix {
    /// `i8`.
    I8,
    /// `i16`.
    I16,
    /// `i32`.
    I32,
    /// `i64`.
    I64,
    /// `u8`.
    U8,
    /// `u16`.
    U16,
    /// `u32`.
    U32,
    /// `u64`.
    U64,
    /// `f16`.
    F16,
    /// `f32`.
    F32,
    /// `f64`.
    F64,
}

impl Suffix {
    /// The suffix with this text.
    pub fn from_text(text: &str) -> Option<Suffix> {
        Some(match text {
            "i8" => Suffix::I8,
            "i16" => Suffix::I16,
            "i32" => Suffix::I32,
            "i64" => Suffix::I64,
            "u8" => Suffix::U8,
            "u16" => Suffix::U16,
            "u32" => Suffix::U32,
            "u64" => Suffix::U64,
            "f16" => Suffix::F16,
            "f32" => Suffix::F32,
            "f64" => Suffix::F64,
            _ => return None,
        })
    }
    /// Its text.
    pub fn as_str(self) -> &'static str {
        match self {
            Suffix::I8 => "i8",
            Suffix::I16 => "i16",
            Suffix::I32 => "i32",
            Suffix::I64 => "i64",
            Suffix::U8 => "u8",
            Suffix::U16 => "u16",
            Suffix::U32 => "u32",
            Suffix::U64 => "u64",
            Suffix::F16 => "f16",
            Suffix::F32 => "f32",
            Suffix::F64 => "f64",
        }
    }
}

/// A literal. Numbers are never negative here: the sign is an operator (or [`PatternKind::NegatedLiteral`]).
#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    /// `12`, `0xffu8`, `1_000i64`. Without suffix the type is inferred and may be a float type.
    Int(u64, Option<Suffix>),
    /// `1.5`, `1e-3`, `2f64`: has a point, an exponent or a float suffix.
    Float(f64, Option<Suffix>),
    /// `true`, `false`.
    Bool(bool),
    /// `'c'`: a `u8`.
    Char(u8),
    /// `"text"`: an array of `u8`.
    String(Vec<u8>),
}

/// An infix operator where it is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operator {
    /// The operator, or the function between back-quotes.
    pub name: QualName,
    /// Whether it stood between back-quotes.
    pub quoted: bool,
}

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// What it is.
    pub kind: ExprKind,
    /// The place.
    pub span: Span,
    /// Height of the tree; kept by [`Expr::new`].
    pub height: u32,
}

/// One dimension of an index or slice.
///
/// Few of them exist at a time, so boxing the larger variant would buy nothing.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant)]
pub enum DimIndex {
    /// `i`.
    Fix(Expr),
    /// `from:to:stride`, every part optional.
    Slice {
        /// First index.
        from: Option<Expr>,
        /// One past the last.
        to: Option<Expr>,
        /// Step.
        stride: Option<Expr>,
        /// The place, of which at least the colon is there.
        span: Span,
    },
}

/// How a range ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeEnd {
    /// `a...b`: up to and with `b`.
    Inclusive,
    /// `a..<b`.
    UpToExclusive,
    /// `a..>b`.
    DownToExclusive,
}

/// How a loop goes on.
#[derive(Clone, Debug, PartialEq)]
pub enum LoopForm {
    /// `for i < n`.
    For(Name, Box<Expr>),
    /// `for p in xs`.
    ForIn(Pattern, Box<Expr>),
    /// `while c`.
    While(Box<Expr>),
}

/// One binding of a `let` chain.
#[derive(Clone, Debug, PartialEq)]
pub struct LetBinding {
    /// What it binds.
    pub kind: LetKind,
    /// From `let` to the end of the right-hand side.
    pub span: Span,
}

/// The forms of a `let` binding.
#[derive(Clone, Debug, PartialEq)]
pub enum LetKind {
    /// `let [n] p = e`.
    Pattern {
        /// The sizes named here.
        sizes: Vec<Name>,
        /// The pattern.
        pattern: Pattern,
        /// The right-hand side.
        value: Expr,
    },
    /// `let f [n] 'a (x: t) : t = e`.
    Function {
        /// The function; may be an operator.
        name: Name,
        /// Size and type parameters.
        type_params: Vec<TypeParam>,
        /// Value parameters, at least one.
        params: Vec<Pattern>,
        /// The type after `:`, if given.
        return_type: Option<Type>,
        /// The right-hand side.
        body: Expr,
    },
    /// `let a[i, j] = e`: `a` is bound anew to the updated array.
    Update {
        /// The array variable.
        name: Name,
        /// The place in it.
        indices: Vec<DimIndex>,
        /// The new part.
        value: Expr,
    },
}

/// One field of a record expression.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldExpr {
    /// The field.
    pub name: Name,
    /// Its value; absent for `{x}`, which is `{x = x}`.
    pub value: Option<Expr>,
}

/// One alternative of a `match`.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// The pattern.
    pub pattern: Pattern,
    /// The result.
    pub body: Expr,
    /// From `case` on.
    pub span: Span,
}

/// The forms of an expression.
#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    /// A literal.
    Literal(Literal),
    /// A variable, a function, or an operator in parentheses.
    Var(QualName),
    /// `f x y`: at least one argument.
    Apply(Box<Expr>, Vec<Expr>),
    /// `a + b`, `` a `f` b ``, pipes and compositions, `&&` and `||`.
    Binary(Operator, Box<Expr>, Box<Expr>),
    /// `-e`.
    Negate(Box<Expr>),
    /// `!e`.
    Not(Box<Expr>),
    /// `(e +)`.
    LeftSection(Box<Expr>, Operator),
    /// `(+ e)`.
    RightSection(Operator, Box<Expr>),
    /// `(.x.y)`.
    ProjectSection(Vec<Name>),
    /// `(.[i, j])`.
    IndexSection(Vec<DimIndex>),
    /// `\p q : t -> e`: at least one parameter.
    Lambda {
        /// Parameters.
        params: Vec<Pattern>,
        /// The type after `:`, if given.
        return_type: Option<Type>,
        /// The result.
        body: Box<Expr>,
    },
    /// A chain of bindings and the expression after the last `in`.
    Let(Vec<LetBinding>, Box<Expr>),
    /// `if c then a else b`.
    If(Box<Expr>, Box<Expr>, Box<Expr>),
    /// `match e case p -> e ...`.
    Match(Box<Expr>, Vec<Case>),
    /// `loop p = e for i < n do body`.
    Loop {
        /// The sizes named before the pattern.
        sizes: Vec<Name>,
        /// The state.
        pattern: Box<Pattern>,
        /// The first state; absent when the pattern's own names give it.
        initial: Option<Box<Expr>>,
        /// How it goes on.
        form: LoopForm,
        /// The next state.
        body: Box<Expr>,
    },
    /// `a..<b`, `a..s...b` and so on.
    Range {
        /// First element.
        start: Box<Expr>,
        /// Second element, which gives the step.
        second: Option<Box<Expr>>,
        /// The end.
        end: Box<Expr>,
        /// How it ends.
        kind: RangeEnd,
    },
    /// `[a, b]`.
    Array(Vec<Expr>),
    /// `(a, b)`, with `()` for the empty tuple.
    Tuple(Vec<Expr>),
    /// `{x, y = e}`.
    Record(Vec<FieldExpr>),
    /// `e.x`, `e.0`.
    Project(Box<Expr>, Name),
    /// `e with x.y = v`.
    UpdateField(Box<Expr>, Vec<Name>, Box<Expr>),
    /// `e with [i, j] = v`.
    UpdateIndex(Box<Expr>, Vec<DimIndex>, Box<Expr>),
    /// `e[i, j:k:s]`.
    Index(Box<Expr>, Vec<DimIndex>),
    /// `#tag a b`.
    Constructor(Name, Vec<Expr>),
    /// `e : t`.
    Ascription(Box<Expr>, Type),
    /// `e :> t`.
    Coercion(Box<Expr>, Type),
    /// `assert c e`.
    Assert(Box<Expr>, Box<Expr>),
    /// `#[attribute] e`.
    Attributed(Attribute, Box<Expr>),
    /// Not parsed; reported already.
    Error,
}

fn tallest(heights: impl Iterator<Item = u32>) -> u32 {
    heights.max().unwrap_or(0)
}

impl Type {
    /// A type node. Computes the height from the children: time O(children).
    pub fn new(kind: TypeKind, span: Span) -> Type {
        let size = |s: &SizeExpr| match s {
            SizeExpr::Any(_) => 0,
            SizeExpr::Exp(e) => e.height,
        };
        let below = match &kind {
            TypeKind::Named(_) | TypeKind::Error => 0,
            TypeKind::Apply(_, arguments) => tallest(arguments.iter().map(|a| match a {
                TypeArgument::Size(s) => size(s),
                TypeArgument::Type(t) => t.height,
            })),
            TypeKind::Array(s, t) => size(s).max(t.height),
            TypeKind::Tuple(ts) => tallest(ts.iter().map(|t| t.height)),
            TypeKind::Record(fields) => tallest(fields.iter().map(|(_, t)| t.height)),
            TypeKind::Function { from, to, .. } => from.height.max(to.height),
            TypeKind::Sum(tags) => tallest(tags.iter().flat_map(|(_, ts)| ts).map(|t| t.height)),
            TypeKind::Unique(t) | TypeKind::Exists(_, t) => t.height,
        };
        Type { kind, span, height: below + 1 }
    }
}

impl Pattern {
    /// A pattern node. Computes the height from the children: time O(children).
    pub fn new(kind: PatternKind, span: Span) -> Pattern {
        let below = match &kind {
            PatternKind::Wildcard
            | PatternKind::Name(_)
            | PatternKind::Literal(_)
            | PatternKind::NegatedLiteral(_)
            | PatternKind::Error => 0,
            PatternKind::Tuple(ps) | PatternKind::Constructor(_, ps) => tallest(ps.iter().map(|p| p.height)),
            PatternKind::Record(fields) => tallest(fields.iter().flat_map(|(_, p)| p).map(|p| p.height)),
            PatternKind::Ascription(p, t) => p.height.max(t.height),
            PatternKind::Attributed(_, p) => p.height,
        };
        Pattern { kind, span, height: below + 1 }
    }
}

impl DimIndex {
    fn height(&self) -> u32 {
        match self {
            DimIndex::Fix(e) => e.height,
            DimIndex::Slice { from, to, stride, .. } => {
                tallest([from, to, stride].into_iter().flatten().map(|e| e.height))
            }
        }
    }
}

impl LetBinding {
    fn height(&self) -> u32 {
        match &self.kind {
            LetKind::Pattern { pattern, value, .. } => pattern.height.max(value.height),
            LetKind::Function { params, return_type, body, .. } => tallest(params.iter().map(|p| p.height))
                .max(return_type.as_ref().map_or(0, |t| t.height))
                .max(body.height),
            LetKind::Update { indices, value, .. } => {
                tallest(indices.iter().map(DimIndex::height)).max(value.height)
            }
        }
    }
}

impl Drop for Expr {
    /// High trees are dropped with enough stack, whatever thread it is.
    fn drop(&mut self) {
        if self.height > SHALLOW {
            let kind = std::mem::replace(&mut self.kind, ExprKind::Error);
            stacker::maybe_grow(64 << 10, 1 << 20, || drop(kind));
        }
    }
}

impl Expr {
    /// An expression node. Computes the height from the children: time O(children).
    pub fn new(kind: ExprKind, span: Span) -> Expr {
        let all = |es: &[Expr]| tallest(es.iter().map(|e| e.height));
        let dims = |ds: &[DimIndex]| tallest(ds.iter().map(DimIndex::height));
        let below = match &kind {
            ExprKind::Literal(_) | ExprKind::Var(_) | ExprKind::ProjectSection(_) | ExprKind::Error => 0,
            ExprKind::Apply(f, arguments) => f.height.max(all(arguments)),
            ExprKind::Binary(_, a, b) | ExprKind::Assert(a, b) => a.height.max(b.height),
            ExprKind::Negate(e)
            | ExprKind::Not(e)
            | ExprKind::LeftSection(e, _)
            | ExprKind::RightSection(_, e)
            | ExprKind::Project(e, _)
            | ExprKind::Attributed(_, e) => e.height,
            ExprKind::IndexSection(ds) => dims(ds),
            ExprKind::Lambda { params, return_type, body } => tallest(params.iter().map(|p| p.height))
                .max(return_type.as_ref().map_or(0, |t| t.height))
                .max(body.height),
            ExprKind::Let(bindings, body) => {
                tallest(bindings.iter().map(LetBinding::height)).max(body.height)
            }
            ExprKind::If(c, a, b) => c.height.max(a.height).max(b.height),
            ExprKind::Match(e, cases) => {
                e.height.max(tallest(cases.iter().map(|c| c.pattern.height.max(c.body.height))))
            }
            ExprKind::Loop { pattern, initial, form, body, .. } => {
                let form = match form {
                    LoopForm::For(_, e) | LoopForm::While(e) => e.height,
                    LoopForm::ForIn(p, e) => p.height.max(e.height),
                };
                pattern.height.max(initial.as_ref().map_or(0, |e| e.height)).max(form).max(body.height)
            }
            ExprKind::Range { start, second, end, .. } => {
                start.height.max(second.as_ref().map_or(0, |e| e.height)).max(end.height)
            }
            ExprKind::Array(es) | ExprKind::Tuple(es) | ExprKind::Constructor(_, es) => all(es),
            ExprKind::Record(fields) => tallest(fields.iter().flat_map(|f| &f.value).map(|e| e.height)),
            ExprKind::UpdateField(e, _, v) => e.height.max(v.height),
            ExprKind::UpdateIndex(e, ds, v) => e.height.max(dims(ds)).max(v.height),
            ExprKind::Index(e, ds) => e.height.max(dims(ds)),
            ExprKind::Ascription(e, t) | ExprKind::Coercion(e, t) => e.height.max(t.height),
        };
        Expr { kind, span, height: below + 1 }
    }
}
