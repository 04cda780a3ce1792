//! What the text says, where running code would not show it.

use pullback_base::index::IndexVec;
use pullback_kernel::{Fold, Function, Ins, Module, Operand, Order, Reg, RegInfo, Ty};
use pullback_llvm::{Floats, Options, emit};
use pullback_prim::{Op, Prim, Scalar, ScalarValue};

/// `x = a[0]; b[0] = x` with `a` and `b` new; `a` is set again if asked for.
fn copy(again: bool) -> Module {
    let mut regs = IndexVec::new();
    let mut reg = |ty| regs.push(RegInfo::new(ty, "r"));
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
fn constants_in_a_row_are_a_table() {
    let stored = |n: i64| {
        let mut module = copy(false);
        let f = module.functions.iter_mut().next().expect("a function");
        let pointer = f.regs.ids().next().expect("a register").into();
        let store =
            |k| Ins::Store { pointer, index: Operand::i64(k), value: Operand::i64(7 * k), ty: Ty::I64 };
        f.body.splice(2..3, (0..n).map(store));
        emit(&module, &Options::default()).text
    };
    let (few, many) = (stored(8), stored(100));
    let stores = |text: &str| text.matches("store i64").count();
    assert_eq!(stores(&few), stores(&many) + 8, "{many}");
    assert_eq!([&few, &many].map(|text| text.matches("@data.0").count()), [0, 2], "{many}");
    assert!(many.contains("@data.0 = private unnamed_addr constant [100 x i64] [i64 0, i64 7, "), "{many}");
}

#[test]
fn a_width_is_an_attribute_of_functions() {
    let text = emit(&copy(true), &Options { vector_width: Some(512), ..Options::default() }).text;
    assert!(text.contains("\"prefer-vector-width\"=\"512\""), "{text}");
}

/// A loop that adds what a product gives, in any order if asked for.
fn sum(any_order: bool) -> Module {
    let float = Ty::Scalar(Scalar::F64);
    let mut regs = IndexVec::new();
    let mut reg = |ty| regs.push(RegInfo::new(ty, "r"));
    let (i, n, state, term): (Reg, Reg, Reg, Reg) = (reg(Ty::I64), reg(Ty::I64), reg(float), reg(float));
    let (left, right, out) = (reg(float), reg(float), reg(float));
    let prim = |to, op, x: Reg, y: Reg| Ins::Prim {
        to,
        prim: Prim::Op(op, Scalar::F64),
        args: vec![x.into(), y.into()],
    };
    let zero = Operand::Const(ScalarValue::F64(0.0));
    let combine = vec![prim(out, Op::Add, left, right)];
    let fold = Fold {
        state: vec![state],
        neutral: vec![zero],
        combine,
        left: vec![left],
        right: vec![right],
        out: vec![out.into()],
    };
    let order = if any_order { Order::Any(vec![fold]) } else { Order::Given };
    let inside = vec![
        Ins::Prim { to: term, prim: Prim::Convert(Scalar::I64, Scalar::F64), args: vec![i.into()] },
        prim(term, Op::Mul, term, term),
        prim(state, Op::Add, state, term),
    ];
    let body = vec![
        Ins::Set { to: state, value: zero },
        Ins::For { i, from: Operand::i64(0), to: n.into(), body: inside, order },
    ];
    let mut module = Module::default();
    let f = Function { name: "f".to_string(), params: vec![n], results: vec![state], regs, body };
    module.functions.push(f);
    module
}

/// Products and sums: `(f, mul, add)` with the freedom that the text gives.
#[test]
fn sums_may_be_in_another_order_only_where_the_loop_says_so_and_the_policy_allows_it() {
    let text = |any, floats| emit(&sum(any), &Options { floats, ..Options::default() }).text;
    let has = |text: &str, mul: &str, add: &str| {
        assert!(text.contains(&format!("= fmul{mul} double")), "{text}");
        assert!(text.contains(&format!("= fadd{add} double")), "{text}");
    };
    has(&text(true, Floats::Contract), " contract", " reassoc contract");
    has(&text(false, Floats::Contract), " contract", " contract");
    has(&text(true, Floats::Strict), "", "");
    has(&text(true, Floats::Fast), " fast", " fast");
}
