//! Reverse AD for Accelerate (`crates/ad/src/accelerate`). Programs are built by [`build`].

mod build;
mod catalogue;
mod collect;
mod counts;
mod directed;
mod drawn;
mod errata;
mod fuse;
mod generate;
mod gradients;
mod growth;
mod histograms;
mod judgement;
mod laws;
mod loops;
mod loops_compared;
mod lowering;
mod permutes;
mod products;
mod programs;
mod sharing;
mod stencils;
mod translated;
mod worked;
