//! The GradBench protocol: a program that is told, a line of JSON at a time, which function to run on which input, and that
//! answers with the result and the time of each run.
//!
//! Source: the protocol of the GradBench suite (messages `start`, `define`, `evaluate`, `analysis`). Reading order: [`programs`]
//! (the twelve problems), [`message`] (what comes and goes), [`module`] (a problem, compiled), [`tool`] (who answers).
//!
//! A function `f` of a problem is the entry point `f` of its program. An entry point `f_input`, if there is one, makes the arguments of
//! `f` from the message, and `f_output` what is answered from its results; both outside of what is timed. So the problems are
//! programs only: no function of any of them is known here.

pub mod message;
pub mod module;
pub mod programs;
pub mod tool;

pub use tool::Tool;
