//! What the text says, where running code would not show it.

use pullback_base::index::IndexVec;
use pullback_kernel::{Function, Ins, Module, Operand, Reg, RegInfo, Ty};
use pullback_llvm::{Options, emit};

/// `x = a[0]; b[0] = x` with `a` and `b` new; `a` is set again if asked for.
fn copy(again: bool) -> Module {
    let mut regs = IndexVec::new();
    let mut reg = |ty| regs.push(RegInfo { ty, hint: "r".to_string() });
    let (a, b, x): (Reg, Reg, Reg) = (reg(Ty::Pointer), reg(Ty::Pointer), reg(Ty::I64));
    let zero = Operand::i64(0);
    let mut body = vec![
        Ins::Alloc { to: a, count: Operand::i64(1), ty: Ty::I64 },
        Ins::Alloc { to: b, count: Operand::i64(1), ty: Ty::I64 },
    ];
    if again {
        body.push(Ins::Set { to: a, value: b.into() });
    }
    body.push(Ins::Store { pointer: a.into(), index: zero, value: zero, ty: Ty::I64 });
    body.push(Ins::Load { to: x, pointer: a.into(), index: zero });
    body.push(Ins::Store { pointer: b.into(), index: zero, value: x.into(), ty: Ty::I64 });
    let mut module = Module::default();
    module.functions.push(Function { name: "f".to_string(), params: vec![], results: vec![x], regs, body });
    module
}

#[test]
fn equal_modules_give_equal_text() {
    let options = Options::default();
    assert_eq!(emit(&copy(false), &options), emit(&copy(false), &options));
}

#[test]
fn accesses_to_different_allocations_are_said_not_to_meet() {
    let text = emit(&copy(false), &Options::default()).text;
    assert_eq!(text.matches(", !noalias !").count(), 3, "{text}");
}

#[test]
fn a_pointer_that_is_set_twice_gives_no_claim() {
    let text = emit(&copy(true), &Options::default()).text;
    assert_eq!(text.matches("!noalias").count(), 0, "{text}");
}

#[test]
fn a_width_is_an_attribute_of_functions() {
    let text = emit(&copy(true), &Options { vector_width: Some(512), ..Options::default() }).text;
    assert!(text.contains("\"prefer-vector-width\"=\"512\""), "{text}");
}
