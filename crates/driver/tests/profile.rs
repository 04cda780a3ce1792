//! Modules that measure themselves, by the reference executor of kernel IR, whose clock counts instructions. The vm and machine code:
//! `src/profile/tests.rs`.

use pullback_core::{FunId, Program, Type, Value};
use pullback_driver::{Kind, Session, Settings, Wrt};
use pullback_kernel::profile::{Profiled, Slot, WORDS, instrument};
use pullback_kernel::run::{self, Memory, Word, run};
use pullback_kernel::schedule::{self, Model, schedule};
use pullback_kernel::values::{from_words, to_words};
use pullback_kernel::{FunctionId, Module, Sweep, lower, lower_with_sites};
use pullback_prim::Scalar;

/// Line 3 runs once for each of the `k` iterations of line 2, lines 5 and 6 once.
const NESTED: &str = "entry f [n] (x: [n]f64) (k: i64) : f64 =
  let y = loop y = x for i < k do
    map (\\a -> a * 0.5 + 1.0) (rotate 1 y)
  let s =
    scan (f64.max) 0.0 y
  in f64.sum (map (\\a -> f64.sqrt a) s)
";

/// A function that is called twice, also in a loop, as text of core: source programs have it inlined.
const CALLS: &str = "fun f(x: []f64): []f64 {
    let y: []f64 = call g(x)
    let z: []f64 = loop (s: []f64 = y) for i: i64 < 3i64 {
        let t: []f64 = call g(s)
        in t
    }
    in z
}
fun g(x: []f64): []f64 {
    let n: i64 = size(x, 0)
    let y: []f64 = map n [x] (a: f64) { let b: f64 = mul.f64(a, a) in b }
    in y
}
";

fn compiled(text: &str) -> (Session, Program, FunId) {
    let session = Session::compile("test.fut", text, Settings::default()).expect("it compiles");
    let entry = session.entry(Some("f")).expect("it has the entry point");
    let ready = session.primal(&entry).expect("it is ready");
    let (program, fun) = (ready.program.clone(), ready.fun);
    (session, program, fun)
}

fn results(
    (module, id): (&Module, FunctionId),
    (program, fun): (&Program, FunId),
    args: &[Value],
    types: &[Type],
) -> Vec<Value> {
    let mut memory = Memory::new(1 << 24);
    let mut words: Vec<Word> = Vec::new();
    for (p, value) in program.funs[fun].params.iter().zip(args) {
        to_words(&mut memory, value, &program.vars[*p].ty, &mut words).expect("arguments");
    }
    let options = run::Options { steps: 100_000_000, backwards: false };
    let mut words = run(module, id, &words, &mut memory, options).expect("it runs").into_iter();
    types.iter().map(|t| from_words(&memory, t, &mut words).expect("results")).collect()
}

/// Slots with their words, of a program in eight lanes and in parts; its results are those without clocks.
fn measured(text: &str, args: &[Value]) -> (Session, Vec<(Slot, Vec<i64>)>) {
    let (session, program, fun) = compiled(text);
    (session, slots(&program, fun, args))
}

fn slots(program: &Program, fun: FunId, args: &[Value]) -> Vec<(Slot, Vec<i64>)> {
    // No memory is near, so that short loops are joined as long ones are.
    let model = Model { block: 0.0, lane: 0.0, apart: 0.01, near: Some(0), ..Model::machine(8) };
    let options = schedule::Options { grain: Some(8.0), ..schedule::Options::new(8, model) };
    let (mut plain, plain_id) = lower(program, fun).expect("native");
    schedule(&mut plain, &options);
    let (mut module, id) = lower_with_sites(program, fun).expect("native");
    schedule(&mut module, &options);
    let Profiled { module, function, slots } = instrument(&module, id);
    let mut types = program.funs[fun].results.clone();
    let expected = results((&plain, plain_id), (program, fun), args, &types);
    types.push(Type::array(Type::Scalar(Scalar::I64)));
    let mut found = results((&module, function), (program, fun), args, &types);
    let Some(Value::Array(words)) = found.pop() else { panic!("an array of words") };
    assert_eq!(expected, found, "clocks change no result");
    let words: Vec<i64> = (words.elements()).map(|x| x.scalar_value()).collect();
    assert_eq!(words.len(), 1 + WORDS * slots.len());
    let each = words[1..].chunks(WORDS).map(<[i64]>::to_vec);
    slots.into_iter().zip(each).collect()
}

trait Number {
    fn scalar_value(&self) -> i64;
}
impl Number for Value {
    fn scalar_value(&self) -> i64 {
        match self {
            Value::Scalar(s) => s.as_i64(),
            other => panic!("expected a number, found {other:?}"),
        }
    }
}

/// Line, construct, line of what it is in, and how often it ran.
fn table(session: &Session, slots: &[(Slot, Vec<i64>)]) -> Vec<(usize, &'static str, usize, i64)> {
    let line = |s: &Slot| {
        let span = s.site.and_then(|s| s.span);
        span.map_or(0, |s| session.sources.line_column(s.file, s.start).0)
    };
    let row = |(s, words): &(Slot, Vec<i64>)| {
        let parent = s.parent.map_or(0, |p| line(&slots[p].0));
        (line(s), s.site.map_or("", |s| s.construct), parent, words[1])
    };
    slots.iter().map(row).filter(|row| row.3 > 0).collect()
}

fn xs(n: usize) -> Value {
    Value::f64s(&(0..n).map(|i| (i * 7 % 13) as f64 + 0.5).collect::<Vec<_>>())
}

#[test]
fn a_loop_runs_once_and_what_is_in_it_once_for_each_iteration() {
    let (session, slots) = measured(NESTED, &[xs(100), Value::i64(5)]);
    let rows = table(&session, &slots);
    assert_eq!(rows[0], (0, "", 0, 1), "the whole call");
    let runs = |line: usize| rows.iter().filter(|r| r.0 == line).map(|r| r.3).collect::<Vec<_>>();
    assert_eq!(runs(2), [1], "{rows:?}");
    assert!(!runs(3).is_empty() && runs(3).iter().all(|n| *n == 5), "{rows:?}");
    assert!(rows.iter().filter(|r| r.0 == 3).all(|r| r.2 == 2), "{rows:?}");
    assert!(rows.iter().any(|r| r.1 == "scan" || r.1 == "map and scan"), "{rows:?}");
    let after: Vec<i64> = rows[1..].iter().filter(|r| r.0 > 3).map(|r| r.3).collect();
    assert!(!after.is_empty() && after.iter().all(|n| *n == 1), "{rows:?}");
    // The functions of parts know their statements too.
    let shared = |(s, _): &&(Slot, Vec<i64>)| s.form.in_parts && !s.form.sums_copies;
    let of_parts: Vec<_> = slots.iter().filter(shared).map(|(s, _)| s.site.and_then(|s| s.span)).collect();
    assert!(!of_parts.is_empty() && of_parts.iter().all(Option::is_some), "{of_parts:?}");
}

#[test]
fn parts_take_no_more_time_than_what_they_are_in() {
    let (_, slots) = measured(NESTED, &[xs(100), Value::i64(5)]);
    for (k, (slot, words)) in slots.iter().enumerate() {
        let inside = slots.iter().filter(|(s, _)| s.parent == Some(k)).map(|(_, w)| w[0]).sum::<i64>();
        assert!(inside <= words[0], "{slot:?}");
        assert!(slot.parent.is_none_or(|p| p < k), "what is around comes before");
    }
    let (all, covered) = (slots[0].1[0], slots.iter().filter(|(s, _)| s.parent == Some(0)));
    let covered: i64 = covered.map(|(_, w)| w[0]).sum();
    assert!(2 * covered > all, "{covered} of {all} instructions");
}

#[test]
fn bytes_are_those_that_a_construct_asks_for() {
    // The result of the map, doubles, and the copy of the argument that the loop begins with.
    let text = "entry f [n] (x: [n]f64) : [n]f64 =\n  map (\\a -> a + 1.0) x\n";
    let (_, slots) = measured(text, &[xs(100)]);
    let map = slots.iter().find(|(s, _)| s.site.is_some_and(|s| s.construct == "map")).expect("a map");
    assert_eq!((map.1[1], map.1[2], map.1[3]), (1, 800, 0));
}

/// The gradient of a function by `x`, measured; the last argument is the seed.
fn gradient(text: &str, args: &[Value]) -> Vec<(Slot, Vec<i64>)> {
    let session = Session::compile("test.fut", text, Settings::default()).expect("it compiles");
    let entry = session.entry(Some("f")).expect("it has the entry point");
    let selected = session.select(&entry, &Wrt::parse("x")).expect("x");
    let ready = session.derivative(&entry, Kind::Vjp, &selected, &mut |_, _| {}).expect("a gradient");
    slots(&ready.program, ready.fun, args)
}

#[test]
fn a_loop_that_adds_cotangents_of_a_gather_belongs_to_both_sweeps() {
    let text = "entry f [n][m] (x: [n]f64) (is: [m]i64) : f64 =
  let ys = map (\\i -> x[i]) is
  in f64.sum (map (\\y -> y * y * y) ys)
";
    let is = Value::i64s(&(0..60).map(|i| i * 7 % 20).collect::<Vec<_>>());
    let slots = gradient(text, &[xs(20), is, Value::f64(1.0)]);
    let sum = |(s, words): &&(Slot, Vec<i64>)| {
        s.site.is_some_and(|s| s.construct == "map and reduce") && words[1] > 0
    };
    let sweeps: Vec<Sweep> = slots.iter().filter(sum).map(|(s, _)| s.sweep).collect();
    assert_eq!(sweeps, [Sweep::Both], "{slots:?}");
    // What has work of one sweep only keeps its name.
    let (_, plain) = measured(NESTED, &[xs(100), Value::i64(5)]);
    assert!(plain.iter().all(|(s, _)| s.sweep == Sweep::Primal));
}

#[test]
fn a_map_around_loops_of_several_lengths_says_so() {
    let body = |end: &str| {
        format!(
            "entry f [n] (x: [n]f64) (k: i64) : f64 =
  f64.sum (map (\\a -> loop y = a {end} do f64.sin y + y * 1.5 + 0.1 * a) x)
"
        )
    };
    for (end, expected) in [("while y < 10", true), ("for _i < k", false)] {
        let slots = gradient(&body(end), &[xs(30), Value::i64(4), Value::f64(1.0)]);
        let mut around = slots.iter().map(|(s, _)| s).filter(|s| s.form.in_order && s.form.in_any_order);
        assert!(around.clone().any(|s| s.sweep != Sweep::Primal), "{end}: {slots:?}");
        assert_eq!(around.any(|s| s.form.varies), expected, "{end}: {slots:?}");
    }
}

#[test]
fn each_call_has_slots_of_its_own() {
    let file = pullback_base::SourceMap::new().add("test.core", CALLS);
    let program = pullback_core::read(file, CALLS).expect("a program");
    let fun = program.funs.ids().next().expect("a function");
    let slots = slots(&program, fun, &[xs(40)]);
    let construct = |s: &Slot| s.site.map_or("", |s| s.construct);
    let row = |(s, words): &(Slot, Vec<i64>)| {
        let around = s.parent.map(|p| &slots[p].0);
        let twice = around.and_then(|s| s.parent).map(|p| &slots[p].0);
        (construct(s), around.map_or("", construct), twice.map_or("", construct), words[1])
    };
    let rows: Vec<_> = slots.iter().map(row).collect();
    for expected in [
        ("call", "", "", 1),
        ("map", "call", "", 1),
        ("loop", "", "", 1),
        ("call", "loop", "", 3),
        ("map", "call", "loop", 3),
    ] {
        assert_eq!(rows.iter().filter(|r| **r == expected).count(), 1, "{expected:?} in {rows:?}");
    }
}

#[test]
fn what_is_not_asked_for_is_not_noted() {
    let (_, program, fun) = compiled(NESTED);
    let (module, _) = lower(&program, fun).expect("native");
    let (mut noted, _) = lower_with_sites(&program, fun).expect("native");
    let registers = noted.functions.iter_mut().flat_map(|f| f.regs.iter_mut());
    assert!(registers.filter_map(|r| r.facts.site.take()).count() > 0);
    assert_eq!(noted, module, "it is noted beside the code");
}
