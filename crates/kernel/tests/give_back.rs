//! The last branch of a function gives memory back that nobody needs any more, and nothing else.

use crate::common::counted::all;
use crate::common::{parse, results};
use pullback_base::RuntimeErrorKind;
use pullback_base::index::IndexVec;
use pullback_core::Value;
use pullback_kernel::run::{Memory, Options, Word, run};
use pullback_kernel::{Function, Ins, Module, Operand, RegInfo, Ty, lower, print};
use pullback_prim::{Scalar, ScalarValue};

fn truth(holds: bool) -> Value {
    Value::Scalar(ScalarValue::Bool(holds))
}

/// A function that has made `s`, the sums of `a`, and `t`, `s` and 1, and a case that holds `t`; then its last branch.
fn ends_in(branch: &str, types: &str, result: &str) -> String {
    format!(
        "fun f(a: []f64, c: bool, d: bool): {types} {{
            let n: i64 = size(a, 0)
            let s: []f64 = scan n [0.0f64] [a] (x: f64, y: f64) {{ let z: f64 = add.f64(x, y) in z }}
            let t: []f64 = map n [s] (x_1: f64) {{ let y_1: f64 = add.f64(x_1, 1.0f64) in y_1 }}
            let box: (#none | #some []f64) = inject(1, t): (#none | #some []f64)
            let first: f64 = s[0i64]
            {branch}
            in {result}
        }}"
    )
}

/// What an arm makes: the largest so far of `of`, added up.
fn works(name: &str, of: &str) -> String {
    format!(
        "let {name}_all: []f64 = scan n [-9.0f64] [{of}] ({name}_x: f64, {name}_y: f64) {{
            let {name}_z: f64 = max.f64({name}_x, {name}_y)
            in {name}_z
        }}
        let {name}: f64 = reduce n [0.0f64] [{name}_all] ({name}_p: f64, {name}_q: f64) {{
            let {name}_r: f64 = add.f64({name}_p, {name}_q)
            in {name}_r
        }}"
    )
}

/// How many arms give memory back; the values are those of the two branches for `c` and `d` (TT, TF, FT, FF).
fn check(text: &str, arms: usize, expected: [f64; 4]) {
    let program = parse(text);
    let (module, id) = lower(&program.0, program.1).expect("native");
    let code = all(&module.functions[id].body);
    let mark = code.iter().find_map(|ins| if let Ins::Mark { to } = ins { Some(*to) } else { None });
    let gives = |ins: &&&Ins| matches!(ins, Ins::Release { mark: at } if at.as_reg() == mark);
    assert_eq!(code.iter().filter(gives).count(), arms, "{text}\n{}", print(&module));
    for (k, expected) in expected.into_iter().enumerate() {
        let args = [Value::f64s(&[1.0, 2.0, 3.0]), truth(k < 2), truth(k % 2 == 0)];
        for lanes in [0, 2, 8] {
            let found = results(&program, &args, 1, lanes);
            let numbers: Vec<f64> = found.iter().flat_map(Value::floats).collect();
            assert_eq!(numbers.iter().sum::<f64>(), expected, "{k}, {lanes} lanes: {text}");
        }
    }
}

/// s = (1, 3, 6) adds up to 10, t = (2, 4, 7) to 13, a to 6.
#[test]
fn an_arm_that_needs_what_was_made_gives_nothing_back() {
    let simple = |then: &str, x: &str, otherwise: &str, y: &str| {
        format!("let r: f64 = if c {{ {then} in {x} }} else {{ {otherwise} in {y} }}")
    };
    let (of_s, of_t, of_a) = (works("u", "s"), works("v", "t"), works("w", "a"));
    for (branch, arms, expected) in [
        (simple(&of_s, "u", "", "0.5f64"), 1, [10.0, 10.0, 0.5, 0.5]),
        (simple(&of_s, "u", &of_t, "v"), 0, [10.0, 10.0, 13.0, 13.0]),
        (simple(&of_a, "w", "", "first"), 2, [6.0, 6.0, 1.0, 1.0]),
        (simple("let k: f64 = s[2i64]", "k", "", "first"), 1, [6.0, 6.0, 1.0, 1.0]),
    ] {
        check(&ends_in(&branch, "f64", "r"), arms, expected);
    }
}

#[test]
fn an_arm_that_reads_through_a_case_gives_nothing_back() {
    let of_row = works("u", "row");
    let branch = format!(
        "let r: f64 = if c {{
            let inside: f64 = match box case () {{ in 0.0f64 }} case (row: []f64) {{ {of_row} in u }}
            in inside
        }} else {{ in 2.0f64 }}"
    );
    // The arm of the case that holds nothing, and the other arm of the branch.
    check(&ends_in(&branch, "f64", "r"), 2, [13.0, 13.0, 2.0, 2.0]);
}

#[test]
fn what_is_read_after_the_branch_stays() {
    // The number that decides is chosen in the branch, the array is named by both arms.
    let branch = "let both: []f64, x_2: f64 = if c { in s, 1.0f64 } else { in s, 2.0f64 }";
    check(&ends_in(branch, "[]f64, f64", "both, x_2"), 0, [11.0, 11.0, 12.0, 12.0]);
    let branch = "let x_2: f64 = if c { in 1.0f64 } else { in 2.0f64 }
        let last: f64 = s[2i64]";
    check(&ends_in(branch, "f64, f64", "x_2, last"), 0, [7.0, 7.0, 8.0, 8.0]);
}

#[test]
fn an_arm_may_end_in_a_branch() {
    let (of_s, of_t) = (works("u", "s"), works("v", "t"));
    let branch = format!(
        "let r: f64 = if c {{
            {of_t}
            let inner: f64 = if d {{ {of_s} in u }} else {{ in v }}
            in inner
        }} else {{
            let outer: f64 = if d {{ let k: f64 = t[0i64] in k }} else {{ in first }}
            in outer
        }}"
    );
    check(&ends_in(&branch, "f64", "r"), 2, [10.0, 13.0, 2.0, 1.0]);
}

/// Arms that make their results anew need nothing of what was there.
#[test]
fn results_may_lie_in_memory() {
    let branch = "let r: []f64 = if c {
            let copy: []f64 = map n [a] (x_2: f64) { let y_2: f64 = mul.f64(x_2, 2.0f64) in y_2 }
            in copy
        } else { in t }";
    check(&ends_in(branch, "[]f64", "r"), 1, [12.0, 12.0, 13.0, 13.0]);
}

/// Calls in an arm that needs nothing lie at the height at which the function began: a hundred of them need no more than one.
#[test]
fn calls_at_the_end_begin_with_free_memory() {
    let text = "fun f(a: []f64, k: i64, sum: f64): f64 {
        let n: i64 = size(a, 0)
        let s: []f64 = scan n [sum] [a] (x: f64, y: f64) { let z: f64 = add.f64(x, y) in z }
        let last: f64 = s[3i64]
        let less: i64 = sub.i64(k, 1i64)
        let none: bool = eq.i64(k, 0i64)
        let r: f64 = if none { in last } else {
            let more: f64 = call f(a, less, last)
            in more
        }
        in r
    }";
    let program = parse(text);
    let (module, id) = lower(&program.0, program.1).expect("native");
    let mut memory = Memory::new(4 + 8);
    let given = [0.0, 0.0, 0.0, 1.0].map(|x| Word::Scalar(ScalarValue::F64(x)));
    let a = memory.put(Ty::Scalar(Scalar::F64), given.to_vec());
    let number = |n: i64| Word::Scalar(ScalarValue::I64(n));
    let zero = Word::Scalar(ScalarValue::F64(0.0));
    let words = [Word::Pointer(a), number(4), number(1), number(100), zero];
    let out = run(&module, id, &words, &mut memory, Options { steps: 1_000_000, backwards: false });
    let expected = Word::Scalar(ScalarValue::F64(101.0));
    assert_eq!(out.expect("it fits"), [expected]);
}

/// The reference executor notices a pointer to memory that was given back, also where other memory was made since.
#[test]
fn pointers_to_what_is_gone_are_noticed() {
    let mut regs = IndexVec::new();
    let mut reg = |ty: Ty| regs.push(RegInfo::new(ty, "r"));
    let (height, old, new, x) = (reg(Ty::Pointer), reg(Ty::Pointer), reg(Ty::Pointer), reg(Ty::I64));
    let (one, first) = (Operand::i64(1), Operand::i64(0));
    let store = |to| Ins::Store { pointer: Operand::Reg(to), index: first, value: one, ty: Ty::I64 };
    let body = |read| {
        vec![
            Ins::Mark { to: height },
            Ins::Alloc { to: old, count: one, ty: Ty::I64 },
            store(old),
            Ins::Release { mark: height.into() },
            Ins::Alloc { to: new, count: one, ty: Ty::I64 },
            store(new),
            Ins::Load { to: x, pointer: Operand::Reg(read), index: first },
        ]
    };
    for (read, is_there) in [(new, true), (old, false)] {
        let mut module = Module::default();
        let function = Function {
            name: "f".into(),
            params: vec![],
            results: vec![x],
            regs: regs.clone(),
            body: body(read),
        };
        let id = module.functions.push(function);
        let out = run(&module, id, &[], &mut Memory::new(100), Options { steps: 100, backwards: false });
        match out {
            Ok(_) => assert!(is_there, "the load was not noticed"),
            Err(e) => assert!(!is_there && e.kind == RuntimeErrorKind::Internal, "{e}"),
        }
    }
}
