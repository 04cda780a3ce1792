//! What callees store in memory of their callers: the verifier has an alarm wherever a run uses memory that was given back, and has none on code that keeps to its memory.

#![allow(clippy::print_stdout, reason = "a test that says how much it saw")]

#[path = "common/numbers.rs"]
mod numbers;

use numbers::Numbers;
use pullback_base::index::{Index, IndexVec};
use pullback_kernel::run::{self, Memory, run};
use pullback_kernel::verify::verify;
use pullback_kernel::{Block, Function, FunctionId, Ins, Module, Operand, Reg, RegInfo, Ty, print, read};
use pullback_prim::{Op, Prim, Scalar};
use pullback_testkit::draws::draws;
use pullback_testkit::on_all_processors;

/// A caller that makes `all`, of pointers to `own`, and `other`; then a row, which it gives back after the call; then it uses what `all` holds, and does `more`.
fn with(callees: &str, call: &str, more: &str) -> Module {
    let text = format!(
        "{callees}
function f() -> () {{
  own_0: pointer = alloc 4i64 pointer
  all_1: pointer = alloc 4i64 pointer
  other_2: pointer = alloc 4i64 pointer
  fill own_0[0 .. 4i64]: pointer = own_0
  fill all_1[0 .. 4i64]: pointer = own_0
  fill other_2[0 .. 4i64]: pointer = other_2
  mark_3: pointer = mark
  row_4: pointer = alloc 4i64 pointer
  fill row_4[0 .. 4i64]: pointer = row_4
  {call}
  release mark_3
  x_5: pointer = all_1[0i64]
  y_6: pointer = x_5[0i64]
  {more}
}}
"
    );
    read(&text).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// Whether there is an alarm where `callees` and `call` stand.
#[track_caller]
fn check(callees: &str, call: &str, alarm: bool) {
    check_and(callees, call, "", alarm);
}

/// The same, with `more` at the end.
#[track_caller]
fn check_and(callees: &str, call: &str, more: &str, alarm: bool) {
    let module = with(callees, call, more);
    let alarms = verify(&module).alarms;
    assert_eq!(!alarms.is_empty(), alarm, "{alarms:?}\n{}", print(&module));
}

const KEEPS: &str = "function g(a_0: pointer, row_1: pointer) -> () {
  x_2: pointer = a_0[1i64]
  a_0[0i64]: pointer = x_2
}";
const STORES: &str = "function g(a_0: pointer, row_1: pointer) -> () {
  a_0[0i64]: pointer = row_1
}";

#[test]
fn a_callee_that_stores_what_it_found_there_hands_nothing_on() {
    check(KEEPS, "call g(all_1, row_4)", false);
    check(STORES, "call g(all_1, own_0)", false);
    check(STORES, "call g(row_4, all_1)", false);
    check(STORES, "call g(all_1, row_4)", true);
}

/// An array is not one of the pointers that it holds, nor is it what these point to.
#[test]
fn memory_that_an_argument_points_to_is_not_all_that_it_reaches() {
    let made = |call: &str| {
        format!("new_7: pointer = alloc 4i64 pointer\n  fill new_7[0 .. 4i64]: pointer = own_0\n  {call}")
    };
    let next = "z_8: pointer = y_6[0i64]";
    let copies = "function g(a_0: pointer, b_1: pointer) -> () {
  x_2: pointer = b_1[0i64]
  a_0[0i64]: pointer = x_2
}";
    check(copies, &made("call g(all_1, new_7)"), false);
    check(copies, "call g(all_1, row_4)", true);
    check_and(STORES, &made("call g(new_7, row_4)"), next, false);
    let beyond = "function g(a_0: pointer, row_1: pointer) -> () {
  x_2: pointer = a_0[0i64]
  x_2[0i64]: pointer = row_1
}";
    check_and(beyond, &made("call g(new_7, row_4)"), next, true);
    check_and(beyond, &made("call g(new_7, own_0)"), next, false);
}

#[test]
fn the_way_through_memory_of_the_callee_counts() {
    let through = |what: &str| {
        format!(
            "function g(a_0: pointer, row_1: pointer) -> () {{
  m_2: pointer = alloc 2i64 pointer
  m_2[0i64]: pointer = row_1
  n_3: pointer = alloc 2i64 pointer
  copy n_3[0 .. 1i64]: pointer = m_2
  x_4: pointer = n_3[0i64]
  a_0[0i64]: pointer = {what}
}}"
        )
    };
    for (what, alarm) in [("x_4", true), ("n_3", true), ("a_0", false)] {
        check(&through(what), "call g(all_1, row_4)", alarm);
    }
}

#[test]
fn two_arguments_may_reach_the_same() {
    let hands_on = "function g(a_0: pointer, b_1: pointer, c_2: pointer, row_3: pointer) -> () {
  a_0[0i64]: pointer = row_3
  x_4: pointer = b_1[0i64]
  c_2[0i64]: pointer = x_4
}";
    check(hands_on, "call g(other_2, other_2, all_1, row_4)", true);
    let the_other_way = "function g(c_0: pointer, b_1: pointer, a_2: pointer, row_3: pointer) -> () {
  a_2[0i64]: pointer = row_3
  x_4: pointer = b_1[0i64]
  c_0[0i64]: pointer = x_4
}";
    check(the_other_way, "call g(all_1, other_2, other_2, row_4)", true);
    check(the_other_way, "call g(all_1, other_2, row_4, row_4)", false);
}

#[test]
fn what_a_callee_returns_may_hold_its_arguments() {
    let text = |uses: &str| {
        format!(
            "function g(row_0: pointer) -> (m_1: pointer) {{
  m_1 = alloc 2i64 pointer
  fill m_1[0 .. 2i64]: pointer = row_0
}}
function f() -> () {{
  own_0: pointer = alloc 2i64 pointer
  fill own_0[0 .. 2i64]: pointer = own_0
  mark_1: pointer = mark
  row_2: pointer = alloc 2i64 pointer
  fill row_2[0 .. 2i64]: pointer = own_0
  made_3: pointer = call g(row_2)
  x_4: pointer = made_3[0i64]
  y_5: pointer = x_4[0i64]
  release mark_1
  z_6: pointer = {uses}[0i64]
}}
"
        )
    };
    for (uses, alarm) in [("own_0", false), ("x_4", true)] {
        let module = read(&text(uses)).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(!verify(&module).alarms.is_empty(), alarm, "{uses}");
    }
}

#[test]
fn functions_that_call_each_other_are_gone_through_until_nothing_is_new() {
    let calls = |first: &str| {
        format!(
            "function g(n_0: i64, a_1: pointer, b_2: pointer, row_3: pointer) -> () {{
  more_4: bool = lt.i64(0i64, n_0)
  m_5: i64 = sub.i64(n_0, 1i64)
  if more_4 {{
    call h(m_5, b_2, row_3, a_1)
  }} else {{
    a_1[0i64]: pointer = {first}
  }}
}}
function h(n_0: i64, a_1: pointer, b_2: pointer, row_3: pointer) -> () {{
  more_4: bool = lt.i64(0i64, n_0)
  m_5: i64 = sub.i64(n_0, 1i64)
  if more_4 {{
    call g(m_5, b_2, row_3, a_1)
  }}
}}"
        )
    };
    // (Arguments turn by one place at each call: what one of them holds, all may.)
    check(&calls("row_3"), "call g(3i64, all_1, other_2, row_4)", true);
    check(&calls("a_1"), "call g(3i64, all_1, other_2, row_4)", false);
}

#[test]
fn parts_have_a_number_before_their_arguments() {
    let part = |value: &str| {
        format!(
            "function g(k_0: i64, a_1: pointer, row_2: pointer) -> () {{
  m_3: pointer = alloc 2i64 pointer
  fill a_1[0 .. 1i64]: pointer = {value}
}}"
        )
    };
    for (value, alarm) in [("a_1", false), ("row_2", true), ("m_3", true)] {
        check(&part(value), "chunks 0 .. 3i64 of g(all_1, row_4)", alarm);
    }
}

// --- random functions ---

/// Elements of each memory.
const CELLS: usize = 2;

/// A function about pointers to pointers: none of them is null, since memory is filled when it is made.
struct Draw {
    numbers: Numbers,
    regs: IndexVec<Reg, RegInfo>,
    /// Registers that are set here.
    set: Vec<Reg>,
}

impl Draw {
    fn reg(&mut self, ty: Ty) -> Reg {
        self.regs.push(RegInfo::new(ty, "r"))
    }
    fn any(&mut self) -> Reg {
        self.set[self.numbers.below(self.set.len())]
    }
    fn index(&mut self) -> Operand {
        Operand::i64(self.numbers.below(CELLS) as i64)
    }
    /// Memory that holds a pointer which is set, or one to itself.
    fn make(&mut self, body: &mut Block) {
        let to = self.reg(Ty::Pointer);
        let is_another = !self.set.is_empty() && self.numbers.below(2) == 0;
        let value = if is_another { self.any() } else { to };
        let count = Operand::i64(CELLS as i64);
        body.push(Ins::Alloc { to, count, ty: Ty::Pointer });
        body.push(Ins::Fill { pointer: to.into(), count, value: value.into(), ty: Ty::Pointer });
        self.set.push(to);
    }
    fn load(&mut self, body: &mut Block) {
        let (pointer, index, to) = (self.any(), self.index(), self.reg(Ty::Pointer));
        body.push(Ins::Load { to, pointer: pointer.into(), index });
        self.set.push(to);
    }
    fn step(&mut self, body: &mut Block, callees: usize, own: Option<(FunctionId, Reg)>) {
        match self.numbers.below(10) {
            0 | 1 => self.make(body),
            2..=4 => self.load(body),
            5..=7 => {
                let (pointer, index, value) = (self.any(), self.index(), self.any());
                body.push(Ins::Store {
                    pointer: pointer.into(),
                    index,
                    value: value.into(),
                    ty: Ty::Pointer,
                });
            }
            8 if callees > 0 => {
                let function = FunctionId::new(self.numbers.below(callees));
                let call = self.call(function, Operand::i64(2));
                self.set.extend(call.sets());
                body.push(call);
            }
            // A call of itself, so many deep; its result is for nobody, since it is not always there.
            9 => {
                let Some((function, depth)) = own else { return };
                let (more, less) = (self.reg(Ty::Scalar(Scalar::Bool)), self.reg(Ty::Scalar(Scalar::I64)));
                let prim = |to, op, args: [Operand; 2]| Ins::Prim {
                    to,
                    prim: Prim::Op(op, Scalar::I64),
                    args: args.to_vec(),
                };
                body.push(prim(more, Op::Lt, [Operand::i64(0), depth.into()]));
                body.push(prim(less, Op::Sub, [depth.into(), Operand::i64(1)]));
                let then = vec![self.call(function, less.into())];
                body.push(Ins::If { condition: more.into(), then, otherwise: Vec::new() });
            }
            _ => {}
        }
    }
    fn call(&mut self, function: FunctionId, depth: Operand) -> Ins {
        let args = [depth].into_iter().chain((0..3).map(|_| self.any().into())).collect();
        Ins::Call { to: vec![self.reg(Ty::Pointer)], function, args }
    }
    /// A function of a depth and three pointers, with a pointer as its result.
    fn callee(numbers: Numbers, id: usize) -> (Function, Numbers) {
        let mut d = Draw { numbers, regs: IndexVec::new(), set: Vec::new() };
        let depth = d.reg(Ty::Scalar(Scalar::I64));
        d.set = (0..3).map(|_| d.reg(Ty::Pointer)).collect();
        let params = [vec![depth], d.set.clone()].concat();
        let mut body = Vec::new();
        for _ in 0..3 + d.numbers.below(7) {
            d.step(&mut body, id, Some((FunctionId::new(id), depth)));
        }
        let results = vec![d.any()];
        (Function { name: format!("g{id}"), params, results, regs: d.regs, body }, d.numbers)
    }
    /// A function that makes memory, makes more above a mark, goes back to it, and uses what it knows from before.
    fn caller(numbers: Numbers, callees: usize) -> Function {
        let mut d = Draw { numbers, regs: IndexVec::new(), set: Vec::new() };
        let mark = d.reg(Ty::Pointer);
        let mut body = Vec::new();
        for _ in 0..4 {
            d.make(&mut body);
        }
        body.push(Ins::Mark { to: mark });
        let before = d.set.clone();
        d.make(&mut body);
        for _ in 0..2 + d.numbers.below(4) {
            d.step(&mut body, callees, None);
        }
        let function = FunctionId::new(d.numbers.below(callees));
        let call = d.call(function, Operand::i64(2));
        d.set.extend(call.sets());
        body.push(call);
        d.load(&mut body);
        body.push(Ins::Release { mark: mark.into() });
        // (One function in four knows a pointer from after the mark.)
        let late = d.any();
        d.set = before;
        d.set.extend((d.numbers.below(4) == 0).then_some(late));
        for _ in 0..2 + d.numbers.below(6) {
            d.load(&mut body);
        }
        Function { name: "f".to_string(), params: Vec::new(), results: Vec::new(), regs: d.regs, body }
    }
}

/// A module of this seed, and its last function.
fn module(seed: u64) -> (Module, FunctionId) {
    let mut module = Module::default();
    let mut numbers = Numbers(seed);
    let callees = 1 + numbers.below(2);
    for id in 0..callees {
        let (f, rest) = Draw::callee(numbers, id);
        module.functions.push(f);
        numbers = rest;
    }
    let id = module.functions.push(Draw::caller(numbers, callees));
    (module, id)
}

#[test]
fn memory_that_a_callee_keeps_is_seen() {
    let mut seeds = draws("stored", (2_000, 20_000), 3);
    let found = on_all_processors(&mut seeds, |seed| {
        let (module, id) = module(seed);
        let alarms = verify(&module).alarms;
        let mut memory = Memory::new(1 << 20);
        let options = run::Options { steps: 100_000, backwards: false };
        let fault = run(&module, id, &[], &mut memory, options).err();
        let missed = alarms.is_empty() && fault.is_some();
        let text = missed.then(|| format!("seed {seed}: {fault:?}\n{}", print(&module)));
        (text, [alarms.is_empty(), fault.is_none(), alarms.is_empty() == fault.is_none()])
    });
    let missed: Vec<&String> = found.iter().filter_map(|(text, _)| text.as_ref()).collect();
    assert!(missed.is_empty(), "{} missed, the first:\n{}", missed.len(), missed[0]);
    let count = |k: usize| found.iter().filter(|(_, is)| is[k]).count();
    let (silent, right, alike) = (count(0), count(1), count(2));
    println!("{} functions: {right} run, {silent} have no alarm, {alike} as the run is", found.len());
    assert!(20 * (found.len() - right) > found.len(), "few runs stop: {right} of {} do not", found.len());
    assert!(2 * silent > right, "{silent} have no alarm, of {right} that run");
}
