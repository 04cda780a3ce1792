//! The integration tests of the crate, as one program: each file is a module.

mod by_hand;
mod common;
mod kinks;
mod limits;
mod parallel;
mod reference;
mod reverse;
mod shapes;
mod values;
mod zeros;
