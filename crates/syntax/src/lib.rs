//! Source text to syntax tree: lexer, parser with recovery, and the tree.
//!
//! Place in the pipeline: first; above `base` only. Assumes nothing about the text. Guarantees: parsing never fails
//! and never panics; whatever is wrong with the text is a diagnostic with a span and a hint; nesting is limited.
//! Pure: no files, clock, threads or global state.

pub mod ast;
mod lexer;
pub mod parser;
pub mod prelude;

pub use parser::parse;
pub use prelude::{PRELUDE, PRELUDE_NAME, prelude_of};
