//! Ids and index maps, source positions, diagnostics: what every other crate of the workspace may use.
//!
//! Place in the pipeline: below everything. Pure: no files, clock, threads or global state.

pub mod diagnostic;
pub mod few;
pub mod index;
pub mod source;
pub mod table;

pub use diagnostic::{Code, Diagnostic, Fault, Label, RuntimeError, RuntimeErrorKind, Severity};
pub use few::Few;
pub use source::{FileId, SourceMap, Span, Symbol};
pub use table::Table;
