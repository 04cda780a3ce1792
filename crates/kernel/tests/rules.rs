//! Each rule of kernel IR, as `verify` states them: code that keeps it, and the same code with one thing wrong.

use pullback_base::RuntimeErrorKind;
use pullback_base::index::{Index, IndexVec};
use pullback_kernel::verify::{Rule, verify};
use pullback_kernel::{
    Block, Fold, Function, FunctionId, Ins, Message, MessageId, Module, Operand, Order, Reg, RegInfo, Text,
    Ty,
};
use pullback_prim::{Op, Prim, Scalar, ScalarValue};

const F64: Ty = Ty::Scalar(Scalar::F64);
const ZERO: Operand = Operand::Const(ScalarValue::I64(0));
const FOUR: Operand = Operand::Const(ScalarValue::I64(4));

fn float(x: f64) -> Operand {
    Operand::Const(ScalarValue::F64(x))
}

/// A function that is being written.
#[derive(Default)]
struct Written {
    regs: IndexVec<Reg, RegInfo>,
    params: Vec<Reg>,
    results: Vec<Reg>,
}

impl Written {
    fn reg(&mut self, ty: Ty) -> Reg {
        self.regs.push(RegInfo::new(ty, "r"))
    }
    fn regs<const N: usize>(&mut self, ty: Ty) -> [Reg; N] {
        [(); N].map(|()| self.reg(ty))
    }
    fn param(&mut self, ty: Ty) -> Reg {
        let r = self.reg(ty);
        self.params.push(r);
        r
    }
    fn named(self, name: &str, body: Block) -> Function {
        let Written { regs, params, results } = self;
        Function { name: name.to_string(), params, results, regs, body }
    }
    fn done(self, body: Block) -> Module {
        module([self.named("f", body)])
    }
}

/// A module of at most 8 lanes, with a message.
fn module(functions: impl IntoIterator<Item = Function>) -> Module {
    let mut messages = IndexVec::new();
    messages.push(Message {
        kind: RuntimeErrorKind::AssertFailed,
        text: Text::Plain("no".into()),
        span: None,
    });
    Module { functions: functions.into_iter().collect(), messages, lanes: 8, ..Module::default() }
}

fn set(to: Reg, value: impl Into<Operand>) -> Ins {
    Ins::Set { to, value: value.into() }
}
fn alloc(to: Reg, ty: Ty) -> Ins {
    Ins::Alloc { to, count: FOUR, ty }
}
fn load(to: Reg, pointer: Reg) -> Ins {
    Ins::Load { to, pointer: pointer.into(), index: ZERO }
}
fn store(pointer: Reg, value: impl Into<Operand>, ty: Ty) -> Ins {
    Ins::Store { pointer: pointer.into(), index: ZERO, value: value.into(), ty }
}
fn release(mark: Reg) -> Ins {
    Ins::Release { mark: mark.into() }
}
fn branch(c: Reg, then: Block, otherwise: Block) -> Ins {
    Ins::If { condition: c.into(), then, otherwise }
}
fn count(i: Reg, body: Block) -> Ins {
    Ins::For { i, from: ZERO, to: FOUR, body, order: Order::Given }
}
fn in_any_order(i: Reg, body: Block) -> Ins {
    Ins::For { i, from: ZERO, to: FOUR, body, order: Order::Any(Vec::new()) }
}
fn prim(to: Reg, op: Op, scalar: Scalar, args: [Operand; 2]) -> Ins {
    Ins::Prim { to, prim: Prim::Op(op, scalar), args: args.to_vec() }
}

/// There is no alarm on the code that `write` gives for `true`, and only such of this rule on that for `false`.
fn check(rule: Rule, write: impl Fn(bool) -> Module) {
    let right = verify(&write(true)).alarms;
    assert!(right.is_empty(), "{}", right[0]);
    let wrong = verify(&write(false)).alarms;
    assert!(!wrong.is_empty(), "no alarm of {rule:?}");
    for alarm in wrong {
        assert_eq!(alarm.rule, rule, "{alarm}");
    }
}

// --- registers ---

#[test]
fn a_register_is_set_before_it_is_read() {
    check(Rule::Unset, |right| {
        let mut w = Written::default();
        let [x, y] = w.regs(Ty::I64);
        let read = set(y, x);
        w.done(if right { vec![set(x, ZERO), read] } else { vec![read, set(x, ZERO)] })
    });
}

#[test]
fn what_one_arm_sets_is_there_under_its_condition_only() {
    check(Rule::Unset, |right| {
        let mut w = Written::default();
        let c = w.param(Ty::BOOL);
        let [x, y] = w.regs(Ty::I64);
        let first = branch(c, vec![set(x, ZERO)], Vec::new());
        let (read, nothing) = (vec![set(y, x)], Vec::new());
        w.done(vec![first, if right { branch(c, read, nothing) } else { branch(c, nothing, read) }])
    });
}

#[test]
fn a_condition_that_is_set_again_is_another_one() {
    check(Rule::Unset, |right| {
        let mut w = Written::default();
        let d = w.param(Ty::BOOL);
        let c = w.reg(Ty::BOOL);
        let [x, y] = w.regs(Ty::I64);
        let arm = |ins| branch(c, vec![ins], Vec::new());
        let mut body = vec![set(c, d), arm(set(x, ZERO))];
        body.extend((!right).then(|| set(c, Operand::bool(true))));
        body.push(arm(set(y, x)));
        w.done(body)
    });
}

#[test]
fn an_arm_that_sets_its_condition_again_says_nothing_of_it() {
    check(Rule::Unset, |right| {
        let mut w = Written::default();
        let d = w.param(Ty::BOOL);
        let c = w.reg(Ty::BOOL);
        let [x, y] = w.regs(Ty::I64);
        let mut otherwise = Vec::new();
        otherwise.extend((!right).then(|| set(c, Operand::bool(true))));
        w.done(vec![
            set(c, d),
            branch(c, vec![set(x, ZERO)], otherwise),
            branch(c, vec![set(y, x)], Vec::new()),
        ])
    });
}

#[test]
fn a_loop_may_run_no_iteration() {
    check(Rule::Unset, |right| {
        let mut w = Written::default();
        let [i, x, y] = w.regs(Ty::I64);
        let mut body = vec![count(i, vec![set(x, i)]), set(y, x)];
        if right {
            body.insert(0, set(x, ZERO));
        }
        w.done(body)
    });
}

#[test]
fn the_condition_of_a_loop_runs_before_its_test() {
    check(Rule::Unset, |right| {
        let mut w = Written::default();
        let [x, y] = w.regs(Ty::I64);
        let test = w.reg(Ty::BOOL);
        let compare = prim(test, Op::Lt, Scalar::I64, [x.into(), FOUR]);
        let condition = if right { vec![compare] } else { Vec::new() };
        let body = vec![set(x, FOUR)];
        w.done(vec![set(x, ZERO), Ins::While { condition, test: test.into(), body }, set(y, x)])
    });
}

#[test]
fn nothing_is_asked_behind_a_stop() {
    check(Rule::Unset, |right| {
        let mut w = Written::default();
        let [x, y] = w.regs(Ty::I64);
        let stop =
            Ins::Fail { condition: Operand::bool(right), message: MessageId::new(0), values: Vec::new() };
        w.done(vec![stop, set(y, x)])
    });
}

#[test]
fn iterations_in_any_order_hand_nothing_on() {
    check(Rule::Unset, |right| {
        let mut w = Written::default();
        let [i, x, y] = w.regs(Ty::I64);
        let body = vec![set(y, x), set(x, i)];
        w.done(vec![set(x, ZERO), if right { count(i, body) } else { in_any_order(i, body) }])
    });
    check(Rule::Unset, |right| {
        let mut w = Written::default();
        let [i, x, y] = w.regs(Ty::I64);
        let body = vec![set(x, i)];
        w.done(vec![set(x, ZERO), if right { count(i, body) } else { in_any_order(i, body) }, set(y, x)])
    });
}

#[test]
fn results_are_set() {
    check(Rule::Unset, |right| {
        let mut w = Written::default();
        let x = w.reg(Ty::I64);
        w.results.push(x);
        w.done(if right { vec![set(x, ZERO)] } else { Vec::new() })
    });
}

// --- types and lanes ---

#[test]
fn operands_have_the_types_of_their_instruction() {
    type Wrong = fn(&mut Written, bool) -> Block;
    let all: [Wrong; 8] = [
        |w, right| vec![set(w.reg(if right { F64 } else { Ty::I64 }), float(1.0))],
        |w, right| {
            let to = w.reg(F64);
            vec![prim(to, Op::Add, Scalar::F64, [float(1.0), if right { float(2.0) } else { ZERO }])]
        },
        |w, right| {
            let (a, x) = (w.param(Ty::Pointer), w.reg(F64));
            let index = if right { ZERO } else { float(0.0) };
            vec![Ins::Load { to: x, pointer: a.into(), index }]
        },
        |w, right| {
            let a = w.param(Ty::Pointer);
            vec![store(a, float(1.0), if right { F64 } else { Ty::I64 })]
        },
        |w, right| {
            let a = w.param(Ty::Pointer);
            let (pointer, ty) = (Operand::from(a), if right { F64 } else { Ty::Pointer });
            let value = if right { float(1.0) } else { pointer };
            vec![Ins::Accumulate { pointer, index: ZERO, value, ty, atomic: false }]
        },
        |w, right| vec![alloc(w.reg(if right { Ty::Pointer } else { Ty::I64 }), F64)],
        |w, right| {
            let c = w.param(if right { Ty::BOOL } else { Ty::I64 });
            vec![branch(c, Vec::new(), Vec::new())]
        },
        |w, right| {
            let i = w.reg(if right { Ty::I64 } else { F64 });
            vec![count(i, Vec::new())]
        },
    ];
    for wrong in all {
        check(Rule::Type, |right| {
            let mut w = Written::default();
            let body = wrong(&mut w, right);
            w.done(body)
        });
    }
}

#[test]
fn arguments_and_results_are_those_of_the_callee() {
    for k in 0..3 {
        check(Rule::Type, |right| {
            let mut g = Written::default();
            let x = g.param(Ty::I64);
            g.results.push(x);
            let mut f = Written::default();
            let to = f.reg(if !right && k == 0 { F64 } else { Ty::I64 });
            let arg = if !right && k == 1 { float(1.0) } else { ZERO };
            let mut args = vec![arg];
            args.extend((!right && k == 2).then_some(ZERO));
            let call = Ins::Call { to: vec![to], function: FunctionId::new(0), args };
            module([g.named("g", Vec::new()), f.named("f", vec![call])])
        });
    }
}

#[test]
fn memory_is_used_for_elements_of_its_type() {
    check(Rule::Memory, |right| {
        let mut w = Written::default();
        let (a, x) = (w.reg(Ty::Pointer), w.reg(if right { F64 } else { Ty::I64 }));
        w.done(vec![alloc(a, F64), store(a, float(1.0), F64), load(x, a)])
    });
}

#[test]
fn registers_have_as_many_lanes_as_their_loop() {
    check(Rule::Lanes, |right| {
        let mut w = Written::default();
        let (i, x) = (w.reg(Ty::I64), w.reg(Ty::Lanes(Scalar::I64, if right { 4 } else { 8 })));
        let body = vec![Ins::LaneNumber { to: x }];
        w.done(vec![Ins::Lanes { i, from: ZERO, to: FOUR, lanes: 4, body }])
    });
    check(Rule::Lanes, |right| {
        let mut w = Written::default();
        let [i, j] = w.regs(Ty::I64);
        let inner = Ins::Lanes { i: j, from: ZERO, to: FOUR, lanes: 4, body: Vec::new() };
        let (inside, after) = if right { (Vec::new(), vec![inner]) } else { (vec![inner], Vec::new()) };
        let outer = Ins::Lanes { i, from: ZERO, to: FOUR, lanes: 4, body: inside };
        w.done([vec![outer], after].concat())
    });
    check(Rule::Lanes, |right| {
        let mut w = Written::default();
        let i = w.reg(Ty::I64);
        let lanes = if right { 8 } else { 16 };
        w.done(vec![Ins::Lanes { i, from: ZERO, to: FOUR, lanes, body: Vec::new() }])
    });
    check(Rule::Lanes, |right| {
        let mut w = Written::default();
        let (x, y) =
            (w.reg(Ty::Lanes(Scalar::I64, 4)), w.reg(Ty::Lanes(Scalar::I64, if right { 4 } else { 8 })));
        w.done(vec![Ins::LaneNumber { to: x }, set(y, x)])
    });
}

#[test]
fn lanes_may_keep_what_an_iteration_leaves() {
    let wide = Ty::Lanes(Scalar::F64, 4);
    check(Rule::Unset, |right| {
        let mut w = Written::default();
        let [i, j] = w.regs(Ty::I64);
        let (x, y) = if right { (w.reg(wide), w.reg(wide)) } else { (w.reg(F64), w.reg(F64)) };
        let body = vec![set(x, float(0.0)), in_any_order(j, vec![set(y, x), set(x, float(1.0))])];
        w.done(vec![Ins::Lanes { i, from: ZERO, to: FOUR, lanes: 4, body }])
    });
}

// --- loops ---

#[test]
fn a_counter_is_set_by_its_loop_only() {
    check(Rule::Counter, |right| {
        let mut w = Written::default();
        let [i, x] = w.regs(Ty::I64);
        w.done(vec![count(i, vec![set(if right { x } else { i }, ZERO)])])
    });
    check(Rule::Counter, |right| {
        let mut w = Written::default();
        let [i, j] = w.regs(Ty::I64);
        let inner = count(if right { j } else { i }, Vec::new());
        w.done(vec![count(i, vec![inner]), count(i, Vec::new())])
    });
}

fn fold(w: &mut Written, state: Reg, ty: Ty) -> Fold {
    let [left, right, out] = w.regs(ty);
    let combine = vec![prim(out, Op::Add, Scalar::F64, [left.into(), right.into()])];
    let neutral = vec![float(0.0)];
    Fold { state: vec![state], neutral, combine, left: vec![left], right: vec![right], out: vec![out.into()] }
}

#[test]
fn a_fold_takes_together_what_its_body_sets() {
    let folding = |w: &mut Written, state: Reg, fold: Fold, body: Block| {
        let i = w.reg(Ty::I64);
        let order = Order::Any(vec![fold]);
        vec![set(state, float(0.0)), Ins::For { i, from: ZERO, to: FOUR, body, order }]
    };
    check(Rule::Fold, |right| {
        let mut w = Written::default();
        let [s, x] = w.regs(F64);
        let fold = fold(&mut w, s, F64);
        let to = if right { s } else { x };
        let body = vec![prim(to, Op::Add, Scalar::F64, [s.into(), float(1.0)])];
        let body = folding(&mut w, s, fold, body);
        w.done(body)
    });
    check(Rule::Unset, |right| {
        let mut w = Written::default();
        let s = w.reg(F64);
        let mut fold = fold(&mut w, s, F64);
        if !right {
            fold.combine.clear();
        }
        let body = vec![prim(s, Op::Add, Scalar::F64, [s.into(), float(1.0)])];
        let body = folding(&mut w, s, fold, body);
        w.done(body)
    });
    check(Rule::Type, |right| {
        let mut w = Written::default();
        let s = w.reg(F64);
        let mut fold = fold(&mut w, s, F64);
        if !right {
            fold.neutral = vec![ZERO];
        }
        let body = vec![prim(s, Op::Add, Scalar::F64, [s.into(), float(1.0)])];
        let body = folding(&mut w, s, fold, body);
        w.done(body)
    });
}

// --- memory ---

#[test]
fn memory_is_not_used_after_it_was_given_back() {
    type Use = fn(Reg, Reg) -> Ins;
    let uses: [Use; 5] = [
        |a, x| load(x, a),
        |a, _| store(a, float(1.0), F64),
        |a, _| Ins::Fill { pointer: a.into(), count: FOUR, value: float(1.0), ty: F64 },
        |a, _| Ins::Copy { to: a.into(), from: a.into(), count: FOUR, ty: F64 },
        |a, _| Ins::Accumulate { pointer: a.into(), index: ZERO, value: float(1.0), ty: F64, atomic: false },
    ];
    for used in uses {
        check(Rule::Memory, |right| {
            let mut w = Written::default();
            let [mark, a] = w.regs(Ty::Pointer);
            let x = w.reg(F64);
            let (used, gone) = (used(a, x), release(mark));
            let end = if right { [used, gone] } else { [gone, used] };
            w.done([vec![Ins::Mark { to: mark }, alloc(a, F64)], end.to_vec()].concat())
        });
    }
}

#[test]
fn a_pointer_to_what_is_gone_may_be_moved_but_not_used() {
    check(Rule::Memory, |right| {
        let mut w = Written::default();
        let [mark, a, b] = w.regs(Ty::Pointer);
        let x = w.reg(F64);
        let offset = Ins::Offset { to: b, pointer: a.into(), index: ZERO, ty: F64, room: None };
        let mut body = vec![Ins::Mark { to: mark }, alloc(a, F64), release(mark), offset];
        body.extend((!right).then(|| load(x, b)));
        w.done(body)
    });
}

#[test]
fn one_arm_that_gives_back_is_enough() {
    check(Rule::Memory, |right| {
        let mut w = Written::default();
        let c = w.param(Ty::BOOL);
        let [mark, a] = w.regs(Ty::Pointer);
        let x = w.reg(F64);
        let gone = branch(c, vec![release(mark)], Vec::new());
        let mut body = vec![Ins::Mark { to: mark }, alloc(a, F64), gone, load(x, a)];
        if right {
            body.swap(2, 3);
        }
        w.done(body)
    });
}

#[test]
fn a_state_is_not_given_back_with_its_iteration() {
    check(Rule::Memory, |right| {
        let mut w = Written::default();
        let [mark, state, new] = w.regs(Ty::Pointer);
        let (i, x) = (w.reg(Ty::I64), w.reg(F64));
        let mut body = vec![Ins::Mark { to: mark }, load(x, state), alloc(new, F64), set(state, new)];
        body.extend((!right).then(|| release(mark)));
        w.done(vec![alloc(state, F64), count(i, body), load(x, state)])
    });
}

/// What a loop hands on from register to register is looked at for as long as it takes.
#[test]
fn what_is_gone_is_noticed_some_iterations_later() {
    check(Rule::Memory, |right| {
        let mut w = Written::default();
        let mark = w.reg(Ty::Pointer);
        let states: [Reg; 6] = w.regs(Ty::Pointer);
        let new = w.reg(Ty::Pointer);
        let (i, x) = (w.reg(Ty::I64), w.reg(F64));
        let mut body = vec![Ins::Mark { to: mark }, alloc(new, F64), load(x, states[5])];
        body.extend((1..6).rev().map(|k| set(states[k], states[k - 1])));
        body.push(set(states[0], new));
        body.extend((!right).then(|| release(mark)));
        let start = states.iter().map(|r| alloc(*r, F64));
        w.done(start.chain([count(i, body)]).collect())
    });
}

/// What the iteration before made stays where only the present one's is given back: two faces of one site.
#[test]
fn what_an_earlier_iteration_made_stays() {
    check(Rule::Memory, |right| {
        let mut w = Written::default();
        let [mark, state, new] = w.regs(Ty::Pointer);
        let c = w.param(Ty::BOOL);
        let (i, x) = (w.reg(Ty::I64), w.reg(F64));
        let keep = set(state, new);
        let forget = release(mark);
        let (then, otherwise) =
            if right { (vec![keep], vec![forget]) } else { (vec![keep, forget], Vec::new()) };
        let body = vec![Ins::Mark { to: mark }, alloc(new, F64), branch(c, then, otherwise), load(x, state)];
        w.done(vec![alloc(state, F64), count(i, body)])
    });
}

#[test]
fn memory_behind_memory_is_there_too() {
    check(Rule::Memory, |right| {
        let mut w = Written::default();
        let [mark, all, row, found] = w.regs(Ty::Pointer);
        let x = w.reg(F64);
        let (first, second) = (Ins::Mark { to: mark }, alloc(row, F64));
        let start = if right { [second, first] } else { [first, second] };
        let rest = vec![store(all, row, Ty::Pointer), release(mark), load(found, all), load(x, found)];
        w.done([vec![alloc(all, Ty::Pointer)], start.to_vec(), rest].concat())
    });
}

#[test]
fn arguments_reach_only_what_is_there() {
    for deep in [false, true] {
        check(Rule::Memory, |right| {
            let mut g = Written::default();
            g.param(Ty::Pointer);
            let mut f = Written::default();
            let [mark, all, row] = f.regs(Ty::Pointer);
            let call =
                |r: Reg| Ins::Call { to: Vec::new(), function: FunctionId::new(0), args: vec![r.into()] };
            let call = call(if deep { all } else { row });
            let mut body = vec![
                alloc(all, Ty::Pointer),
                Ins::Mark { to: mark },
                alloc(row, F64),
                store(all, row, Ty::Pointer),
                call,
                release(mark),
            ];
            if !right {
                body.swap(4, 5);
            }
            module([g.named("g", Vec::new()), f.named("f", body)])
        });
    }
}

#[test]
fn results_reach_only_what_is_there() {
    for deep in [false, true] {
        check(Rule::Escape, |right| {
            let mut w = Written::default();
            let [mark, all, row] = w.regs(Ty::Pointer);
            w.results.push(if deep { all } else { row });
            let mut body = vec![alloc(all, Ty::Pointer), Ins::Mark { to: mark }, alloc(row, F64)];
            body.push(store(all, row, Ty::Pointer));
            body.extend((!right).then(|| release(mark)));
            w.done(body)
        });
    }
    check(Rule::Escape, |right| {
        let mut w = Written::default();
        let a = w.param(Ty::Pointer);
        let [mark, row] = w.regs(Ty::Pointer);
        let mut body = vec![Ins::Mark { to: mark }, alloc(row, F64), store(a, row, Ty::Pointer)];
        body.extend((!right).then(|| release(mark)));
        w.done(body)
    });
}

/// A caller knows whether its callee stores pointers, and to whose memory.
#[test]
fn what_a_callee_stores_counts() {
    check(Rule::Memory, |right| {
        let mut g = Written::default();
        let (a, row) = (g.param(Ty::Pointer), g.param(Ty::Pointer));
        let stores = if right { Vec::new() } else { vec![store(a, row, Ty::Pointer)] };
        let mut f = Written::default();
        let [mark, all, own, row, found] = f.regs(Ty::Pointer);
        let x = f.reg(F64);
        let args = vec![all.into(), row.into()];
        let body = vec![
            alloc(all, Ty::Pointer),
            alloc(own, F64),
            store(all, own, Ty::Pointer),
            Ins::Mark { to: mark },
            alloc(row, F64),
            Ins::Call { to: Vec::new(), function: FunctionId::new(0), args },
            release(mark),
            load(found, all),
            load(x, found),
        ];
        module([g.named("g", stores), f.named("f", body)])
    });
}

/// A callee that stores pointers in what an argument reaches stores none in rows of numbers there.
#[test]
fn memory_of_numbers_holds_no_pointers() {
    check(Rule::Memory, |right| {
        let mut g = Written::default();
        let (a, b) = (g.param(Ty::Pointer), g.param(Ty::Pointer));
        let row = g.reg(Ty::Pointer);
        let stores = if right { store(a, row, Ty::Pointer) } else { store(row, b, Ty::Pointer) };
        let mut f = Written::default();
        let [mark, outside, all, more] = f.regs(Ty::Pointer);
        let i = f.reg(Ty::I64);
        let args = vec![all.into(), more.into()];
        let body = vec![
            Ins::Mark { to: mark },
            alloc(all, Ty::Pointer),
            alloc(more, Ty::Pointer),
            store(all, outside, Ty::Pointer),
            store(more, outside, Ty::Pointer),
            Ins::Call { to: Vec::new(), function: FunctionId::new(0), args },
            release(mark),
        ];
        let row_type = if right { F64 } else { Ty::Pointer };
        module([
            g.named("g", vec![load(row, b), stores]),
            f.named("f", vec![alloc(outside, row_type), count(i, body)]),
        ])
    });
}

#[test]
fn what_parts_make_is_given_back() {
    check(Rule::Memory, |right| {
        let mut g = Written::default();
        g.param(Ty::I64);
        let a = g.param(Ty::Pointer);
        let row = g.reg(Ty::Pointer);
        let mut part = vec![alloc(row, F64)];
        part.extend((!right).then(|| store(a, row, Ty::Pointer)));
        let mut f = Written::default();
        let [all, own, found] = f.regs(Ty::Pointer);
        let x = f.reg(F64);
        let chunks = Ins::Chunks { count: FOUR, function: FunctionId::new(0), args: vec![all.into()] };
        let body = vec![
            alloc(all, Ty::Pointer),
            alloc(own, F64),
            store(all, own, Ty::Pointer),
            chunks,
            load(found, all),
            load(x, found),
        ];
        module([g.named("g", part), f.named("f", body)])
    });
}

#[test]
fn iterations_in_any_order_leave_no_memory() {
    check(Rule::Leaves, |right| {
        let mut w = Written::default();
        let [mark, a] = w.regs(Ty::Pointer);
        let i = w.reg(Ty::I64);
        let mut body = vec![Ins::Mark { to: mark }, alloc(a, F64)];
        body.extend(right.then(|| release(mark)));
        w.done(vec![in_any_order(i, body)])
    });
}

// --- marks ---

#[test]
fn a_mark_is_released_while_it_is_open() {
    // The mark before it has been released.
    check(Rule::Mark, |right| {
        let mut w = Written::default();
        let [outer, inner] = w.regs(Ty::Pointer);
        let (first, second) = if right { (inner, outer) } else { (outer, inner) };
        w.done(vec![Ins::Mark { to: outer }, Ins::Mark { to: inner }, release(first), release(second)])
    });
    // It was set again, in the next iteration.
    check(Rule::Mark, |right| {
        let mut w = Written::default();
        let [mark, copy] = w.regs(Ty::Pointer);
        let i = w.reg(Ty::I64);
        let mut body = vec![Ins::Mark { to: mark }, release(copy), set(copy, mark)];
        if right {
            body.swap(1, 2);
        }
        w.done(vec![Ins::Mark { to: copy }, count(i, body)])
    });
    // It is one of two.
    check(Rule::Mark, |right| {
        let mut w = Written::default();
        let c = w.param(Ty::BOOL);
        let [one, two, which] = w.regs(Ty::Pointer);
        let otherwise = set(which, if right { one } else { two });
        let choose = branch(c, vec![set(which, one)], vec![otherwise]);
        w.done(vec![Ins::Mark { to: one }, Ins::Mark { to: two }, choose, release(which)])
    });
    // It is memory.
    check(Rule::Mark, |right| {
        let mut w = Written::default();
        let [mark, a] = w.regs(Ty::Pointer);
        w.done(vec![Ins::Mark { to: mark }, alloc(a, F64), release(if right { mark } else { a })])
    });
}

#[test]
fn a_mark_is_nothing_else() {
    check(Rule::Memory, |right| {
        let mut w = Written::default();
        let [mark, a] = w.regs(Ty::Pointer);
        let x = w.reg(F64);
        w.done(vec![Ins::Mark { to: mark }, alloc(a, F64), load(x, if right { a } else { mark })])
    });
    check(Rule::Mark, |right| {
        let mut w = Written::default();
        let [mark, all] = w.regs(Ty::Pointer);
        let value = if right { Operand::Null } else { mark.into() };
        w.done(vec![Ins::Mark { to: mark }, alloc(all, Ty::Pointer), store(all, value, Ty::Pointer)])
    });
}

/// An alarm says where it is, and what is meant.
#[test]
fn alarms_name_their_place() {
    let mut w = Written::default();
    let c = w.param(Ty::BOOL);
    let [mark, a] = w.regs(Ty::Pointer);
    let x = w.reg(F64);
    let arm = vec![release(mark), load(x, a)];
    let found =
        verify(&w.done(vec![Ins::Mark { to: mark }, alloc(a, F64), branch(c, Vec::new(), arm)])).alarms;
    let [alarm] = &found[..] else { panic!("{found:?}") };
    assert_eq!(alarm.register.as_deref(), Some("r_2"));
    assert_eq!(
        alarm.to_string(),
        "function f, if(r_0) otherwise > r_3 = load(r_2, 0i64): r_2 points to memory of r_2, which was given back"
    );
}
