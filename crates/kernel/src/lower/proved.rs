//! What happens where the verifier has an alarm on lowered code.
//!
//! In builds with debug assertions, and so in tests, it is an error. Users get code without updates in place, where memory is kept until the end: no rule
//! about owners and lifetimes takes part in it. If there is an alarm still, the program is not native, and is interpreted.

use super::loops::allocates;
use super::{NotNative, Res};
use crate::ir::{Block, FunctionId, Ins, Module, Order};
use crate::verify::{Fallback, verify};

/// The rule of [`NotNative`] for code that is not verified.
pub(super) const RULE: &str = "code with an alarm of the verifier (a bug in Pullback: please report it)";

/// How memory is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Economy {
    /// Arrays are overwritten where nobody else will look, and memory is given back.
    Full,
    /// Neither.
    Plain,
}

/// What an alarm does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It is an error.
    Stops,
    /// The code is made again, plainly.
    LowersAgain,
}

/// Code on which the verifier has no alarm: that which was made, or what is made plainly.
pub fn proved(
    fault: Fault,
    made: (Module, FunctionId),
    plainly: impl FnOnce() -> Res<(Module, FunctionId)>,
) -> Res<(Module, FunctionId)> {
    let Some(alarm) = verify(&made.0).alarms.into_iter().next() else { return Ok(made) };
    if fault == Fault::Stops {
        return Err(NotNative::new(RULE, format!("after the lowering, {alarm}")));
    }
    let (mut module, id) = plainly()?;
    match verify(&module).alarms.first() {
        Some(alarm) => Err(NotNative::new(RULE, format!("after the plain lowering, {alarm}"))),
        None => {
            module.fallbacks.push(Fallback::Plain);
            Ok((module, id))
        }
    }
}

/// The block without marks and releases. Loops whose iterations leave memory behind run in their order.
pub(super) fn keep_memory(block: &mut Block) {
    block.retain(|ins| !matches!(ins, Ins::Mark { .. } | Ins::Release { .. }));
    for ins in block {
        ins.blocks_mut().into_iter().for_each(keep_memory);
        if let Ins::For { body, order, .. } = ins
            && allocates(body)
        {
            *order = Order::Given;
        }
    }
}
