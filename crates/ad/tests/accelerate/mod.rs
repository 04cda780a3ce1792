//! Reverse AD for Accelerate (`crates/ad/src/accelerate`). Programs are built by [`build`].

mod build;
mod drawn;
mod lowering;
mod sharing;
