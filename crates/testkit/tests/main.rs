//! The integration tests of the crate, as one program: each file is a module.

mod accelerate;
mod accelerate_experiments;
mod accumulators;
mod book;
mod bulk;
mod chad;
mod chad_arrays;
mod chad_growth;
mod chad_lowered;
mod checks;
mod dual_numbers;
mod dual_numbers_growth;
mod dual_numbers_mutants;
mod dual_numbers_texts;
mod growth;
mod hostile;
mod mutants;
mod native;
mod partials;
mod passes;
mod pieces;
mod random;
mod sorting;
mod steps;
