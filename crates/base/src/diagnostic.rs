//! Diagnostics (before a program runs) and run-time errors (while it runs).

use crate::source::{SourceMap, Span};
use std::fmt;

/// How bad it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Severity {
    /// The program cannot be used.
    Error,
    /// The program can be used; probably not what was meant.
    Warning,
}

/// Whose fault it is. The three classes are never mixed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
pub enum Fault {
    /// The user's program or input is wrong.
    Program,
    /// The program is fine; Pullback cannot do this yet.
    Unsupported,
    /// Pullback is wrong.
    Bug,
}

/// A stable error code, printed as `E0101`. The page `docs/book/errors/E0101.md` explains it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
pub enum Code {
    /// Text that is no token.
    Lexical,
    /// Tokens that are no program.
    Syntax,
    /// Nesting beyond the limit.
    TooDeep,
    /// An unknown name.
    UnknownName,
    /// A name defined twice.
    DuplicateName,
    /// A file that cannot be imported.
    Import,
    /// Types that do not agree.
    TypeMismatch,
    /// Sizes that do not agree.
    SizeMismatch,
    /// An ambiguous type.
    Ambiguous,
    /// A pattern or match that is wrong.
    Pattern,
    /// A value used after an in-place update consumed it.
    Uniqueness,
    /// An entry point that is wrong or missing.
    Entry,
    /// Not supported yet.
    Unsupported,
    /// An input value that is wrong.
    Input,
    /// A program that stopped while it ran.
    Runtime,
    /// A NaN or an infinity out of finite numbers, where the user asked to stop at one.
    NotFinite,
    /// A malformed program between passes.
    Internal,
}

impl Code {
    /// Every code, in order.
    pub const ALL: &[Code] = &[
        Code::Lexical,
        Code::Syntax,
        Code::TooDeep,
        Code::UnknownName,
        Code::DuplicateName,
        Code::Import,
        Code::TypeMismatch,
        Code::SizeMismatch,
        Code::Ambiguous,
        Code::Pattern,
        Code::Uniqueness,
        Code::Entry,
        Code::Unsupported,
        Code::Input,
        Code::Runtime,
        Code::NotFinite,
        Code::Internal,
    ];
    /// The printed form, `E0101` and so on.
    pub fn as_str(self) -> &'static str {
        match self {
            Code::Lexical => "E0101",
            Code::Syntax => "E0102",
            Code::TooDeep => "E0103",
            Code::UnknownName => "E0201",
            Code::DuplicateName => "E0202",
            Code::Import => "E0203",
            Code::TypeMismatch => "E0301",
            Code::SizeMismatch => "E0302",
            Code::Ambiguous => "E0303",
            Code::Pattern => "E0304",
            Code::Uniqueness => "E0305",
            Code::Entry => "E0306",
            Code::Unsupported => "E0401",
            Code::Input => "E0501",
            Code::Runtime => "E0601",
            Code::NotFinite => "E0602",
            Code::Internal => "E0901",
        }
    }
    /// What to do about an error with this code, where the place has no better hint.
    pub fn advice(self) -> &'static str {
        match self {
            Code::Lexical => "remove or correct the marked text",
            Code::Syntax => "complete the construct; the mistake is often just before the marker",
            Code::TooDeep => "name inner parts with `let`",
            Code::UnknownName => "check the spelling; functions on scalars live in modules, as in `f64.exp`",
            Code::DuplicateName => "rename one of the two",
            Code::Import => "correct the path: it is seen from the folder of the file, and has no ending",
            Code::TypeMismatch => "change one of the two, or convert explicitly, as in `f64.i64 n`",
            Code::SizeMismatch => "use one size name for both, or check at run time with `e :> [n]t`",
            Code::Ambiguous => "write the type: `(e : t)`",
            Code::Pattern => "make the pattern fit the type of what it matches",
            Code::Uniqueness => "use the updated array, or update a copy: `copy a with [i] = x`",
            Code::Entry => {
                "an entry point takes and returns numbers, booleans, arrays, tuples, records and sums"
            }
            Code::Unsupported => {
                "write it with other constructs; docs/book/coverage.md lists those that are supported"
            }
            Code::Input => "compare the value with the type of the argument: `pullback check` prints it",
            Code::Runtime => "the message shows the values involved",
            Code::NotFinite => "guard the operation, so that it never sees such an argument",
            Code::Internal => "please report it with the program",
        }
    }
    /// Whose fault an error with this code is.
    pub fn fault(self) -> Fault {
        match self {
            Code::Unsupported => Fault::Unsupported,
            Code::Internal => Fault::Bug,
            Code::Lexical
            | Code::Syntax
            | Code::TooDeep
            | Code::UnknownName
            | Code::DuplicateName
            | Code::Import
            | Code::TypeMismatch
            | Code::SizeMismatch
            | Code::Ambiguous
            | Code::Pattern
            | Code::Uniqueness
            | Code::Entry
            | Code::Input
            | Code::Runtime
            | Code::NotFinite => Fault::Program,
        }
    }
}

/// A place with a remark.
#[derive(Clone, PartialEq, Debug)]
pub struct Label {
    /// The place.
    pub span: Span,
    /// The remark.
    pub text: String,
}

/// One message about a program.
#[derive(Clone, PartialEq, Debug)]
pub struct Diagnostic {
    /// Stable code.
    pub code: Code,
    /// Error or warning.
    pub severity: Severity,
    /// Main place; absent only where no source text exists.
    pub span: Option<Span>,
    /// What is wrong, in one sentence.
    pub message: String,
    /// Further places.
    pub labels: Vec<Label>,
    /// What to do next.
    pub hints: Vec<String>,
}

impl Diagnostic {
    /// An error at a place.
    pub fn error(code: Code, span: Span, message: impl Into<String>) -> Self {
        Self {
            code,
            severity: Severity::Error,
            span: Some(span),
            message: message.into(),
            labels: Vec::new(),
            hints: Vec::new(),
        }
    }
    /// A warning at a place.
    pub fn warning(code: Code, span: Span, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(code, span, message) }
    }
    /// An error without a place in a source text.
    pub fn global(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            severity: Severity::Error,
            span: None,
            message: message.into(),
            labels: Vec::new(),
            hints: Vec::new(),
        }
    }
    /// Adds a remark at another place.
    pub fn label(mut self, span: Span, text: impl Into<String>) -> Self {
        self.labels.push(Label { span, text: text.into() });
        self
    }
    /// Adds a hint: what to do next.
    pub fn hint(mut self, text: impl Into<String>) -> Self {
        self.hints.push(text.into());
        self
    }
    /// The message as plain text with the source line, an underline, labels and hints.
    pub fn render(&self, sources: &SourceMap) -> String {
        let kind = match (self.severity, self.code.fault()) {
            (Severity::Warning, _) => "warning",
            (_, Fault::Program) => "error",
            (_, Fault::Unsupported) => "not supported yet",
            (_, Fault::Bug) => "bug in pullback",
        };
        let mut out = format!("{kind}[{}]: {}\n", self.code.as_str(), self.message);
        if let Some(span) = self.span {
            out += &excerpt(sources, span, "");
        }
        for label in &self.labels {
            out += &excerpt(sources, label.span, &label.text);
        }
        for hint in &self.hints {
            out += &format!("  hint: {hint}\n");
        }
        out
    }
}

fn excerpt(sources: &SourceMap, span: Span, remark: &str) -> String {
    let (line, column) = sources.line_column(span.file, span.start);
    let text = sources.text(span.file).lines().nth(line - 1).unwrap_or("");
    // Long lines are cut around the place so that a machine-made one-line program stays readable.
    let from = column.saturating_sub(60).max(1);
    let shown: String =
        text.chars().skip(from - 1).take(120).map(|c| if c == '\t' { ' ' } else { c }).collect();
    let length = sources.snippet(span).lines().next().unwrap_or("").chars().count().max(1);
    let length = length.min(shown.chars().count().saturating_sub(column - from).max(1));
    let number = line.to_string();
    let pad = " ".repeat(number.len());
    let under = " ".repeat(column - from) + &"^".repeat(length);
    format!(
        "{pad}--> {}:{line}:{column}\n{pad} |\n{number} | {shown}\n{pad} | {under} {remark}\n",
        sources.name(span.file)
    )
}

/// What stopped a running program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RuntimeErrorKind {
    /// An index or slice outside its array.
    OutOfBounds,
    /// Arrays whose shapes must agree and do not.
    ShapeMismatch,
    /// Integer division by zero.
    DivisionByZero,
    /// A failed `assert`.
    AssertFailed,
    /// A reduction of nothing where that has no value.
    EmptyReduction,
    /// A negative array size.
    NegativeSize,
    /// A NaN or an infinity out of finite numbers; a stop only where it is asked for.
    NotFinite,
    /// Recursion, memory or step limits.
    Limit,
    /// Cancelled from outside.
    Cancelled,
    /// A state that a checked program cannot reach.
    Internal,
}

/// A running program stopped. All executors use the same wording.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RuntimeError {
    /// The kind of stop.
    pub kind: RuntimeErrorKind,
    /// Where in the source program, if known.
    pub span: Option<Span>,
    /// What happened, with the values involved.
    pub message: String,
    /// What to do about it, if there is something to say.
    pub hint: Option<String>,
}

impl RuntimeError {
    /// A stop without position; executors add it with [`RuntimeError::at`].
    pub fn new(kind: RuntimeErrorKind, message: impl Into<String>) -> Self {
        Self { kind, span: None, message: message.into(), hint: None }
    }
    /// Adds the position, unless one is known already.
    pub fn at(mut self, span: Option<Span>) -> Self {
        self.span = self.span.or(span);
        self
    }
    /// The same as a diagnostic.
    pub fn to_diagnostic(&self) -> Diagnostic {
        let code = match self.kind {
            RuntimeErrorKind::Internal => Code::Internal,
            RuntimeErrorKind::NotFinite => Code::NotFinite,
            RuntimeErrorKind::OutOfBounds
            | RuntimeErrorKind::ShapeMismatch
            | RuntimeErrorKind::DivisionByZero
            | RuntimeErrorKind::AssertFailed
            | RuntimeErrorKind::EmptyReduction
            | RuntimeErrorKind::NegativeSize
            | RuntimeErrorKind::Limit
            | RuntimeErrorKind::Cancelled => Code::Runtime,
        };
        let mut d = Diagnostic::global(code, self.message.clone());
        d.span = self.span;
        d.hints.extend(self.hint.clone());
        d
    }
}

impl fmt::Display for RuntimeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
impl std::error::Error for RuntimeError {}
