//! Each pass of scheduling keeps what is computed: programs of the suite and random ones with their derivatives have the same fingerprints before and
//! after, however their sums are put in order. Where they differ, the first pass after which they do is named.
//!
//! Values are not compared: a wrong element that holds the right number is found, and rounding is no reason for tolerance.

#![allow(clippy::print_stdout, reason = "a test that says how much it saw")]

use pullback_base::RuntimeErrorKind;
use pullback_core::Value;
use pullback_kernel::run::{Fingerprint, Memory, Options, Word, run_with_fingerprints};
use pullback_kernel::schedule::{self, Outcome, PIPELINE};
use pullback_kernel::values::{fingerprints, to_words};
use pullback_kernel::{FunctionId, Ins, Module, Order, Ty, read, walk};
use pullback_prim::{Op, Prim, Scalar, ScalarValue};
use pullback_testkit::draws::draws;
use pullback_testkit::kernels::{Item, of_suite, runs_of_seed};
use pullback_testkit::native::{Run, same};
use pullback_testkit::on_all_processors;
use std::time::Duration;

/// Runs of more instructions are left out.
const STEPS: u64 = 2_000_000;

/// What a run computes: results as fingerprints, or the message of a program that stops. `None`: it takes too long, or too much memory.
fn computed(
    run: &Run,
    code: (&Module, FunctionId),
    args: &[Value],
    backwards: bool,
) -> Option<Result<Vec<Value>, String>> {
    let f = &run.program.funs[run.fun];
    let (mut memory, mut words) = (Memory::new(1 << 20), Vec::new());
    for (p, value) in f.params.iter().zip(args) {
        to_words(&mut memory, value, &run.program.vars[*p].ty, &mut words).ok()?;
    }
    let results =
        match run_with_fingerprints(code.0, code.1, &words, &mut memory, Options { steps: STEPS, backwards })
        {
            Ok(results) => results,
            Err(e) if e.kind == RuntimeErrorKind::Limit => return None,
            Err(e) => return Some(Err(e.message)),
        };
    let mut words = results.into_iter();
    let values = f.results.iter().map(|t| fingerprints(&memory, t, &mut words).expect("results"));
    Some(Ok(values.collect()))
}

fn agree(a: &Result<Vec<Value>, String>, b: &Result<Vec<Value>, String>) -> bool {
    match (a, b) {
        (Ok(a), Ok(b)) => a.iter().zip(b).all(|(a, b)| same(a, b)),
        // Which of several messages it is, the order of iterations decides.
        (Err(_), Err(_)) => true,
        _ => false,
    }
}

/// Whether a loop takes its elements together by functions of which a field knows nothing: `exp(a) exp(b)` is `exp(a + b)` for numbers only, and
/// some operators are associative for no other reason.
fn is_beyond_fields(module: &Module) -> bool {
    let mut beyond = false;
    let mut look = |ins: &Ins| {
        let Ins::For { order: Order::Any(folds), .. } = ins else { return };
        for fold in folds {
            walk(
                &fold.combine,
                &mut |ins| beyond |= matches!(ins, Ins::Prim { prim: Prim::Op(op, _), .. } if [Op::Exp, Op::Log, Op::Log1p].contains(op)),
            );
        }
    };
    module.functions.iter().for_each(|f| walk(&f.body, &mut look));
    beyond
}

/// What was compared, and what differs.
#[derive(Default)]
struct Seen {
    runs: usize,
    wrong: Vec<String>,
}

impl Seen {
    /// Compares a run of lowered code with runs of its schedules.
    fn look(&mut self, run: &Run, ways: &[usize]) {
        let item = Item::of(run);
        let Some((module, id)) = item.lowered().filter(|(module, _)| !is_beyond_fields(module)) else {
            return;
        };
        for args in &run.args {
            let Some(before) = computed(run, (&module, id), args, false) else { continue };
            let all = item.ways(id);
            for (way, options) in ways.iter().map(|k| &all[*k]) {
                let records = schedule::trace(&module, options, &|| Duration::ZERO);
                let differs = |row: usize, backwards: bool| {
                    let after = schedule::after(&module, options, &records, row);
                    let after = computed(run, (&after, id), args, backwards);
                    after.filter(|after| !agree(&before, after)).map(|after| format!("{before:?}\n{after:?}"))
                };
                for backwards in [false, true] {
                    self.runs += 1;
                    let last = PIPELINE.len() - 1;
                    let Some(values) = differs(last, backwards) else { continue };
                    let changed =
                        |row: &usize| records.iter().any(|r| r.row == *row && r.outcome == Outcome::Changed);
                    let lowered = computed(run, (&module, id), args, backwards);
                    let first = (0..=last).filter(changed).find(|row| differs(*row, backwards).is_some());
                    let pass = match first {
                        Some(row) if lowered.is_none_or(|lowered| agree(&before, &lowered)) => {
                            PIPELINE[row].step.name
                        }
                        _ => "lowering",
                    };
                    self.wrong
                        .push(format!("{}, {way}, backwards: {backwards}: after {pass}\n{values}", run.what));
                }
            }
        }
    }
    fn check(all: Vec<Seen>, least: usize) {
        let runs: usize = all.iter().map(|seen| seen.runs).sum();
        let wrong: Vec<String> = all.into_iter().flat_map(|seen| seen.wrong).collect();
        println!("{runs} runs of scheduled code");
        assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong[..wrong.len().min(5)].join("\n\n"));
        assert!(runs >= least, "{runs} runs were compared");
    }
}

#[test]
fn passes_keep_what_random_programs_compute() {
    let mut seeds = draws("schedules", (10, 400), 4);
    let look = |seed: u64| {
        let mut seen = Seen::default();
        for (k, run) in runs_of_seed(seed).iter().enumerate() {
            seen.look(run, &[(seed as usize + k) % 4]);
        }
        seen
    };
    let all = on_all_processors(&mut seeds, look);
    Seen::check(all, 5 * seeds.drawn() as usize);
}

#[test]
fn passes_keep_what_the_suite_computes() {
    let runs = of_suite().iter().enumerate();
    let look = |(k, run): (usize, &Run)| {
        let mut seen = Seen::default();
        seen.look(run, &[k % 4]);
        seen
    };
    Seen::check(on_all_processors(runs, look), 1000);
}

/// The fingerprint of what a function makes of an array.
fn of_text(body: &str, elements: &[f64]) -> (Word, Fingerprint) {
    let module = read(&format!("function f(a_0: pointer) -> (y_1: f64) {{\n{body}\n}}\n")).expect("a text");
    let mut memory = Memory::new(1 << 10);
    let elements = elements.iter().map(|x| Word::Scalar(ScalarValue::F64(*x))).collect();
    let args = [Word::Pointer(memory.put(Ty::Scalar(Scalar::F64), elements))];
    let id = module.functions.ids().next().expect("a function");
    let options = Options { steps: 100, backwards: false };
    run_with_fingerprints(&module, id, &args, &mut memory, options).expect("it runs")[0]
}

#[test]
fn a_wrong_element_that_holds_the_right_number_is_seen() {
    let (value, print) = of_text("  y_1 = a_0[0i64]", &[2.0, 2.0]);
    let (wrong_value, wrong_print) = of_text("  y_1 = a_0[1i64]", &[2.0, 2.0]);
    assert_eq!(value, wrong_value);
    assert_ne!(print, wrong_print);
}

#[test]
fn a_sum_in_another_order_has_the_same_fingerprint() {
    let sum = |order: [i64; 3]| {
        let [i, j, k] = order;
        let body = format!(
            "  b_2: f64 = a_0[{i}i64]\n  c_3: f64 = a_0[{j}i64]\n  d_4: f64 = a_0[{k}i64]\n  e_5: f64 = add.f64(b_2, c_3)\n  y_1 = add.f64(e_5, d_4)"
        );
        of_text(&body, &[1e16, 1.0, -1e16])
    };
    let [(value, print), (other_value, other_print)] = [sum([0, 1, 2]), sum([0, 2, 1])];
    assert_ne!(value, other_value, "rounded");
    assert_eq!(print, other_print);
}
