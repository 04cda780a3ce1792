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
pub(super) enum Fault {
    Stops,
    LowersAgain,
}

/// Code on which the verifier has no alarm: that which was made, or what is made plainly.
pub(super) fn proved(
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{Function, Operand, RegInfo, Ty};
    use pullback_base::index::IndexVec;

    /// A function that loads from memory, which is given back before where that is asked for.
    fn module(gives_back: bool) -> (Module, FunctionId) {
        let mut regs = IndexVec::new();
        let mut reg = |ty| regs.push(RegInfo::new(ty, "r"));
        let (mark, memory, x) = (reg(Ty::Pointer), reg(Ty::Pointer), reg(Ty::I64));
        let index = Operand::i64(0);
        let mut body = vec![
            Ins::Mark { to: mark },
            Ins::Alloc { to: memory, count: Operand::i64(1), ty: Ty::I64 },
            Ins::Store { pointer: memory.into(), index, value: index, ty: Ty::I64 },
        ];
        if gives_back {
            body.push(Ins::Release { mark: mark.into() });
        }
        body.push(Ins::Load { to: x, pointer: memory.into(), index });
        let mut module = Module::default();
        let f = Function { name: "f".to_string(), params: Vec::new(), results: vec![x], regs, body };
        let id = module.functions.push(f);
        (module, id)
    }

    #[test]
    fn code_without_an_alarm_stays() {
        for fault in [Fault::Stops, Fault::LowersAgain] {
            let made = proved(fault, module(false), || Ok(module(true)));
            assert_eq!(made, Ok(module(false)), "{fault:?}");
        }
    }

    #[test]
    fn an_alarm_stops_or_lowers_again() {
        let plainly = || Ok(module(false));
        let stopped = proved(Fault::Stops, module(true), plainly).expect_err("an alarm");
        assert!(stopped.is_internal() && stopped.found.contains("was given back"), "{stopped}");
        let (again, _) = proved(Fault::LowersAgain, module(true), plainly).expect("plain code");
        assert_eq!(again.fallbacks, [Fallback::Plain]);
        assert_eq!(again.functions, module(false).0.functions);
    }

    #[test]
    fn two_alarms_are_an_error() {
        let stopped = proved(Fault::LowersAgain, module(true), || Ok(module(true))).expect_err("two alarms");
        assert!(stopped.is_internal() && stopped.found.starts_with("after the plain lowering"), "{stopped}");
    }
}
