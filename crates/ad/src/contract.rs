//! The specification that every AD algorithm meets.
//!
//! **Values.** Let `f = \xs -> ys` be a lambda of core, and let `T(t) = Program::cotangent(t)` be the type of tangents
//! and cotangents of values of type `t` (none for discrete types). Free variables of `f` are constants.
//!
//! - forward: `jvp f = \xs x_dots -> ys y_dots`, one `x_dot : T(x)` per active parameter, one `y_dot : T(y)` per result
//!   whose type is active, with `y_dots = J x_dots`.
//! - reverse: `vjp f = \xs y_bars -> ys x_bars`, one `y_bar : T(y)` per result whose type is active, one `x_bar : T(x)`
//!   per wanted active parameter, with `x_bars = Jᵀ y_bars`.
//!
//! `J` is the Jacobian at `xs`. The first results are bit-equal to those of `f`. Defining equation between the two:
//! `⟨y_bars, J x_dots⟩ = ⟨Jᵀ y_bars, x_dots⟩`. At kinks the conventions are those of the primitive table.
//!
//! **Cost.** `work(vjp f) ≤ c · work(f) + c' · |xs|` with `c` independent of the sizes of the data, where an algorithm
//! claims [`Bound::Constant`]. Tested by growth of the step counter, never by a clock.
//!
//! **Form.** The result binds fresh variables only, so that it may be spliced beside `f` and differentiated again.
//!
//! **Errors.** A construct that an algorithm does not cover is an [`Unsupported`] value that names it and its place;
//! never a silent zero.

use pullback_base::{Code, Diagnostic, Span};
use pullback_core::{Atom, Lam, Program};
use std::fmt;

/// A construct that an algorithm does not cover.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsupported {
    /// The algorithm's id.
    pub algorithm: &'static str,
    /// The construct, in the user's words: `a call of the recursive function f`.
    pub construct: String,
    /// Its place in the source program.
    pub span: Option<Span>,
    /// What to do instead, chosen where the error is made.
    pub help: String,
}

impl Unsupported {
    /// The same as a diagnostic.
    pub fn to_diagnostic(&self) -> Diagnostic {
        let message = format!("{} cannot differentiate {}", self.algorithm, self.construct);
        let mut d = Diagnostic::global(Code::Unsupported, message);
        d.span = self.span;
        d.hint(self.help.clone())
    }
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} cannot differentiate {}", self.algorithm, self.construct)
    }
}
impl std::error::Error for Unsupported {}

/// What an algorithm claims about the work of its result relative to the program's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// At most a constant factor, plus the size of the inputs.
    Constant,
    /// A constant factor per nesting depth.
    PerDepth,
    /// No claim: a didactic step.
    None,
}

/// Who an algorithm is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Used unless another is asked for.
    Default,
    /// Selectable by name.
    Selectable,
    /// A step of a derivation, kept runnable.
    Didactic,
}

/// Which derivative an algorithm computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// `jvp`
    Forward,
    /// `vjp`
    Reverse,
}

/// The transformation of one lambda. `wanted[i]`: whether the derivative with respect to parameter `i` is wanted
/// (forward: whether it has a tangent parameter); ignored for discrete parameters.
pub type Transform = fn(&mut Program, &Lam, &[bool]) -> Result<Lam, Unsupported>;

/// The transformation of one lambda for many directions at once, whose number is given: `\xs dss -> ys ess` with stacks
/// (`Type::stacked`) of directions and derivatives. Every primal statement runs once.
pub type TransformMany = fn(&mut Program, &Lam, &[bool], Atom) -> Result<Lam, Unsupported>;

/// An algorithm.
#[derive(Clone, Copy, Debug)]
pub struct Algorithm {
    /// The name it is chosen by (`--ad NAME`, `#[ad(NAME)]`).
    pub id: &'static str,
    /// Its title.
    pub title: &'static str,
    /// Where it is from.
    pub citation: &'static str,
    /// Forward or reverse.
    pub mode: Mode,
    /// Its cost claim.
    pub bound: Bound,
    /// Who it is for.
    pub status: Status,
    /// The text of its source files, which carries the rule tags (read by the coverage table).
    pub sources: &'static [&'static str],
    /// The transformation.
    pub transform: Transform,
    /// The transformation where nobody wants the results of the function: the lambda has the derivatives alone as results. `None`:
    /// it would be no other.
    pub derivatives: Option<Transform>,
    /// How it takes many directions at once. `None`: by [`crate::many::separate`], which keeps what depends on the directions
    /// apart from what does not.
    pub many: Option<TransformMany>,
    /// Whether sizes of arrays that are taken before a function go into it: they say what its integers are.
    pub sizes: bool,
}

/// All algorithms, in reading order.
pub const ALGORITHMS: &[Algorithm] = &[
    crate::forward::ALGORITHM,
    crate::fast_chad::ALGORITHM,
    crate::bulk::from_core::ALGORITHM,
    crate::accelerate::from_core::ALGORITHM,
    crate::accelerate::from_core::STORE,
    crate::accelerate::from_core::RECOMPUTE,
];

/// What an algorithm transforms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// Functions inside of core programs.
    Core,
    /// Entry points on lambda; the reference interpreter runs what it makes.
    Lambda,
    /// Entry points in the fragment of bulk dual numbers; delta terms are made while they run, in the reference interpreter.
    Fragment,
}

/// What there is to say of an algorithm of either language.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// The name it is chosen by.
    pub id: &'static str,
    /// Its title.
    pub title: &'static str,
    /// Where it is from.
    pub citation: &'static str,
    /// What it transforms.
    pub language: Language,
    /// Forward or reverse.
    pub mode: Mode,
    /// Its cost claim.
    pub bound: Bound,
    /// Who it is for.
    pub status: Status,
}

/// All that can be chosen by name: [`ALGORITHMS`], then those of [`crate::bulk::interpreted`] and of [`crate::on_lambda`].
pub fn algorithms() -> impl Iterator<Item = About> {
    let on_core = ALGORITHMS.iter().map(|a| About {
        id: a.id,
        title: a.title,
        citation: a.citation,
        language: Language::Core,
        mode: a.mode,
        bound: a.bound,
        status: a.status,
    });
    let on_lambda = crate::on_lambda::all().map(|a| About {
        id: a.id,
        title: a.title,
        citation: a.citation,
        language: Language::Lambda,
        mode: Mode::Reverse,
        bound: a.bound,
        status: a.status,
    });
    let on_fragment = crate::bulk::interpreted::ALGORITHMS.iter().map(|a| About {
        id: a.id,
        title: a.title,
        citation: a.citation,
        language: Language::Fragment,
        mode: Mode::Reverse,
        bound: a.bound,
        status: a.status,
    });
    on_core.chain(on_fragment).chain(on_lambda)
}

/// The algorithm for a mode: the named one, or the default.
pub fn algorithm(mode: Mode, name: Option<&str>) -> Option<&'static Algorithm> {
    ALGORITHMS.iter().find(|a| a.mode == mode && name.map_or(a.status == Status::Default, |n| a.id == n))
}

/// The constructs of core, as the coverage table names them: the variants of `Exp` and `Soac` in their order.
pub const CONSTRUCTS: &[&str] = &[
    "atom",
    "prim",
    "tuple",
    "proj",
    "inject",
    "match",
    "if",
    "loop",
    "call",
    "array_lit",
    "index",
    "slice",
    "update",
    "update_slice",
    "gather",
    "size",
    "iota",
    "replicate",
    "rearrange",
    "reshape",
    "concat",
    "reverse",
    "rotate",
    "map",
    "reduce",
    "scan",
    "fused",
    "hist",
    "scatter",
    "with_acc",
    "acc_view",
    "acc_add",
    "plus",
    "vjp",
    "jvp",
    "custom",
    "marked",
    "stop_gradient",
    "par",
    "assert",
    "check",
];
