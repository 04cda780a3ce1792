//! Code with an alarm of the verifier: it stops the lowering, or is made again plainly.

use pullback_base::index::IndexVec;
use pullback_kernel::internals::{Fault, proved};
use pullback_kernel::verify::Fallback;
use pullback_kernel::{Function, FunctionId, Ins, Module, Operand, RegInfo, Ty};

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
