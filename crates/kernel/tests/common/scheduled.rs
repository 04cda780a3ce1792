//! Programs as text, and the code that they are scheduled to where no memory is near.

use pullback_core::{FunId, Program};
use pullback_kernel::schedule::{self, Model, schedule};
use pullback_kernel::{Module, lower};

/// With no near memory, so that short loops are treated as long ones are.
pub(crate) fn model() -> Model {
    Model { near: Some(0), ..Model::machine(8) }
}

/// The code with 8 lanes, and without a part of scheduling; `n`: what the second argument, the size of the array, is expected to be.
pub(crate) fn code(
    (program, f): &(Program, FunId),
    model: Model,
    n: Option<i64>,
    without: &[&'static str],
) -> Module {
    let (mut module, id) = lower(program, *f).expect("native");
    let sizes = vec![(id, vec![None, n])];
    let options = schedule::Options { sizes, without: without.to_vec(), ..schedule::Options::new(8, model) };
    schedule(&mut module, &options);
    module
}

/// Sixteenths, whose sums and products are exact.
pub(crate) fn numbers(count: usize) -> Vec<f64> {
    (0..count).map(|i| ((i * 13) % 29) as f64 / 16.0 - 0.5).collect()
}
