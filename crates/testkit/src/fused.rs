//! How many array operations a program has once it is fused.

use pullback_core::{Body, Exp};

/// Counts the array operations that are in no other one: each is a loop over memory of its own. Views of arrays are none, and neither is what
/// only gives elements to others (`iota`, `replicate`).
pub fn array_operations(body: &Body) -> usize {
    let own = |exp: &Exp| match exp {
        Exp::Soac(_) | Exp::Gather(..) | Exp::Concat(_) => 1,
        exp => exp.bodies().into_iter().map(|scope| array_operations(scope.body)).sum(),
    };
    body.stms.iter().map(|stm| own(&stm.exp)).sum()
}
