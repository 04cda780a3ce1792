//! The text of the prelude.

/// The prelude, a program of the language. It is parsed and checked before the user's program.
pub const PRELUDE: &str = include_str!("../../../lib/prelude.fut");

/// The name under which the prelude stands in a source map.
pub const PRELUDE_NAME: &str = "prelude.fut";
