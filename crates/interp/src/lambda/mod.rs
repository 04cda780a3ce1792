//! The reference interpreter of lambda: what a program means and what it costs.
//!
//! Meaning: the documentation of `pullback_lambda::Exp`; errors and edge cases are those of the core interpreter.
