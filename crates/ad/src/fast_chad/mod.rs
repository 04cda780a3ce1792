//! Fast CHAD (being written).
use crate::contract::{Algorithm, Bound, Mode, Status, Unsupported};
use pullback_core::{Lam, Program};

/// The entry of the table of algorithms.
pub const ALGORITHM: Algorithm = Algorithm {
    id: "fast_chad",
    title: "Fast CHAD",
    citation: "T. Smeding, PhD thesis, chapter 7",
    mode: Mode::Reverse,
    bound: Bound::Constant,
    status: Status::Default,
    sources: &[include_str!("mod.rs")],
    transform: vjp,
};

/// See [`crate::contract`].
pub fn vjp(_: &mut Program, _: &Lam, _: &[bool]) -> Result<Lam, Unsupported> {
    Err(Unsupported { algorithm: "fast_chad", construct: "anything yet".into(), span: None })
}
