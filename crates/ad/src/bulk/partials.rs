//! Partial derivatives of primitives, for both levels: those of the table, and how they are multiplied.

use pullback_prim::{Op, Partial, Prim, Product};

/// What becomes of a cotangent that is zero at a partial derivative that may not be finite.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Zeros {
    /// It stops there, as in all algorithms of this crate: the branch that a `cond` did not choose contributes nothing.
    Stop,
    /// It stops at every partial derivative, for programs that evaluate what was not chosen: there a factor of a product may be infinite, too.
    StopAll,
    /// It is multiplied, as numbers are: the text.
    Multiply,
}

/// The arguments that the result of a primitive varies with: which, the partial derivative, and the product with a cotangent.
pub(super) fn slopes(op: Prim, zeros: Zeros) -> Vec<(usize, &'static Partial, Op)> {
    let params = op.params();
    let unknown = vec![None; params.len()];
    let of = |(k, partial): (usize, &'static Partial)| {
        let varies = !matches!(partial, Partial::Const(_));
        let times = match op.product(k, &unknown) {
            Product::Plain if zeros == Zeros::StopAll && varies => Op::StrongMul,
            Product::Strong if zeros != Zeros::Multiply => Op::StrongMul,
            Product::Mutual if zeros != Zeros::Multiply => Op::MutualMul,
            Product::Plain | Product::Strong | Product::Mutual => Op::Mul,
        };
        (params[k].is_float() && *partial != Partial::Const(0.0)).then_some((k, partial, times))
    };
    op.partials().unwrap_or_default().iter().enumerate().filter_map(of).collect()
}
