//! Kernel IR computes what the reference interpreter computes: on random programs, their gradients, and the problems.

#![allow(clippy::print_stdout, reason = "a test that says how much it saw")]

#[path = "common/text.rs"]
mod text;

use crate::common::counted::{self, count, operation};
use pullback_base::RuntimeError;
use pullback_core::{Fun, FunId, Program, Type, Value};
use pullback_driver::{Kind, Session, Settings, derive, pipeline};
use pullback_interp::core::{Compiled, Options};
use pullback_kernel::run::{self, Memory, Word, run_with_ghosts};
use pullback_kernel::schedule::{self, Model, optional, schedule};
use pullback_kernel::values::{from_words, to_words};
use pullback_kernel::{
    Block, FunctionId, Ghosts, Ins, Module, NotNative, lower, lower_with_ghosts, lower_with_parts, print,
};
use pullback_prim::{Op, Scalar};
use pullback_testkit::draws::draws;
use pullback_testkit::generate::Config;
use pullback_testkit::on_all_processors;
use pullback_testkit::problems::{PROBLEMS, ones};
use pullback_testkit::properties::{Case, case_of_seed};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use text::parse;

/// The numbers of lanes of the loops of a module, without repetition.
fn widths(module: &Module) -> BTreeSet<usize> {
    fn all(block: &Block, out: &mut BTreeSet<usize>) {
        for ins in block {
            if let Ins::Lanes { lanes, .. } = ins {
                out.insert(*lanes);
            }
            ins.blocks().into_iter().for_each(|b| all(b, out));
        }
    }
    let mut out = BTreeSet::new();
    module.functions.iter().for_each(|f| all(&f.body, &mut out));
    out
}

/// Whether loops were joined that have rows for memory around.
fn has_owned(module: &Module) -> bool {
    module.functions.iter().any(|f| f.regs.iter().any(|r| r.facts.owned.is_some()))
}

/// How kernel IR is run.
#[derive(Clone, Copy, Debug)]
enum How {
    /// As it was lowered.
    Plain,
    /// Loops that allow any order from their end.
    Backwards,
    /// As many loops as can be in lanes, at least and at most so many side by side.
    Lanes(usize, usize),
}

/// How many modules each part of scheduling changes.
type Changed = BTreeMap<&'static str, usize>;

thread_local! {
    /// How often a part of scheduling that was left out would have changed the module, on this thread.
    static CHANGED: RefCell<Changed> = const { RefCell::new(Changed::new()) };
}

/// Parts of scheduling that the problems need and random programs of this size do not.
const RARE: [&str; 5] = ["check-motion", "tiling", "time-tiling", "packing", "register-promotion"];

/// And one that needs sizes that are known when loops are chosen: `interchanged.rs` has it.
const OF_SIZES: &str = "larger-results";

/// The parts of scheduling that changed no module.
fn idle(changed: &Changed) -> Vec<&'static str> {
    println!("modules that a part of scheduling changes: {changed:?}");
    optional().into_iter().filter(|name| changed.get(name).is_none_or(|n| *n == 0)).collect()
}

/// How many modules had loops that were joined, with rows in them for memory around.
static OWNED: AtomicUsize = AtomicUsize::new(0);

/// Schedules a module with from `lanes` to `most` lanes, without some passes.
fn schedule_in(module: &mut Module, lanes: usize, most: usize, without: Vec<&'static str>) {
    // Few registers, so that loops get different numbers of lanes.
    // With a price for places apart memory is interleaved, without one more loops are in lanes.
    let apart = if lanes < most { 1.0 } else { 0.01 };
    let model = Model { block: 0.0, lane: 0.0, apart, registers: 8, tiles: [1.0; 4], near: Some(0) };
    let (grain, relaxed, sizes) = (Some(2.0), lanes < most, Vec::new());
    schedule(module, &schedule::Options { lanes, most, model, grain, relaxed, sizes, without });
}

/// Runs a program through kernel IR. `Ok(Err(..))`: the program stopped.
fn kernel(
    program: &Program,
    fun: FunId,
    args: &[Value],
    how: How,
) -> Result<Result<Vec<Value>, String>, Box<NotNative>> {
    let part = if matches!(how, How::Plain) { 64 } else { 2 };
    let (module, id, ghosts) = match how {
        // The same code, which says what it reads: no variable is read after it was written over.
        How::Plain | How::Backwards => lower_with_ghosts(program, fun, part)?,
        How::Lanes(lanes, most) => {
            let (mut module, id) = lower_with_parts(program, fun, part)?;
            schedule_in(&mut module, lanes, most, Vec::new());
            (module, id, Ghosts::default())
        }
    };
    Ok(executed((program, fun), (&module, id, &ghosts), args, matches!(how, How::Backwards)))
}

/// Runs a module in all ways that leave out one of these passes. The text of the first that is wrong. Code that is the same as with all passes
/// has run before (`How::Lanes(2, 8)`).
fn wrong_without(
    program: (&Program, FunId),
    args: &[Value],
    passes: &[&'static str],
    wrong: impl Fn(&str, &Result<Vec<Value>, String>) -> Option<String>,
) -> Option<String> {
    let (lowered, id) = lower_with_parts(program.0, program.1, 2).expect("native, as before");
    let mut whole = lowered.clone();
    schedule_in(&mut whole, 2, 8, Vec::new());
    let whole = print(&whole);
    passes.iter().find_map(|pass| {
        let mut module = lowered.clone();
        schedule_in(&mut module, 2, 8, vec![pass]);
        let differs = print(&module) != whole;
        CHANGED.with_borrow_mut(|changed| *changed.entry(pass).or_default() += usize::from(differs));
        if !differs {
            return None;
        }
        wrong(pass, &executed(program, (&module, id, &Ghosts::default()), args, false))
    })
}

/// Runs code. `Err`: it stopped.
fn executed(
    (program, fun): (&Program, FunId),
    (module, id, ghosts): (&Module, FunctionId, &Ghosts),
    args: &[Value],
    backwards: bool,
) -> Result<Vec<Value>, String> {
    OWNED.fetch_add(usize::from(has_owned(module)), Ordering::Relaxed);
    let mut memory = Memory::new(1 << 24);
    let mut words: Vec<Word> = Vec::new();
    for (p, value) in program.funs[fun].params.iter().zip(args) {
        to_words(&mut memory, value, &program.vars[*p].ty, &mut words).expect("arguments");
    }
    let options = run::Options { steps: 400_000_000, backwards };
    let stopped = |e: RuntimeError| format!("{:?}: {e}", e.kind);
    let results = run_with_ghosts((module, ghosts), id, &words, &mut memory, options).map_err(stopped)?;
    let mut words = results.into_iter();
    let read = |t: &Type| from_words(&memory, t, &mut words).map_err(stopped);
    program.funs[fun].results.iter().map(read).collect()
}

/// Whether two values are the same bits, or floats that differ by at most `tolerance`. Arrays without elements may differ in their
/// other sizes.
fn same(a: &Value, b: &Value, tolerance: f64) -> bool {
    match (a, b) {
        (Value::Array(a), Value::Array(b)) => {
            (a.shape == b.shape || (a.count() == 0 && b.count() == 0))
                && a.elements().zip(b.elements()).all(|(a, b)| same(&a, &b, tolerance))
        }
        (Value::Tuple(a), Value::Tuple(b)) => a.iter().zip(b).all(|(a, b)| same(a, b, tolerance)),
        (Value::Sum(j, a), Value::Sum(k, b)) => {
            j == k && a.iter().zip(b.iter()).all(|(a, b)| same(a, b, tolerance))
        }
        (Value::Scalar(a), Value::Scalar(b)) => {
            let (x, y) = (a.as_f64(), b.as_f64());
            a == b || (x.is_nan() && y.is_nan()) || (a.scalar().is_float() && (x - y).abs() <= tolerance)
        }
        _ => false,
    }
}

/// How a program agrees with the interpreter.
#[derive(Clone, Copy, PartialEq)]
enum Agreement {
    /// In every bit.
    Bits,
    /// But for rounding: what goes through a rotated or reshaped view of an accumulator is added later.
    Rounding,
    /// Only in the order of the source: the last bits of a sum decide a branch.
    Unstable,
}

/// Whether the interpreter gives other values when it adds in another order.
fn is_unstable(program: &Program, fun: FunId, args: &[Value], expected: &[Value], tolerance: f64) -> bool {
    (0..8).any(|seed| {
        let options = Options { schedule_seed: Some(seed), ..Options::default() };
        match Compiled::new(program).run(fun, args, &options) {
            Ok(other) => !expected.iter().zip(&other.results).all(|(a, b)| same(a, b, tolerance)),
            Err(_) => true,
        }
    })
}

/// Compares with the interpreter, also without each of these parts of scheduling; `None` if the program is not native.
fn agrees(
    program: &Program,
    fun: FunId,
    args: &[Value],
    without: &[&'static str],
) -> Option<Result<Agreement, String>> {
    let expected = Compiled::new(program).run(fun, args, &Options::default());
    let found = match kernel(program, fun, args, How::Plain) {
        Ok(found) => found,
        Err(e) if e.is_internal() => return Some(Err(e.to_string())),
        Err(_) => return None,
    };
    Some(match (expected, found) {
        (Ok(expected), Ok(found)) => {
            let largest =
                expected.results.iter().flat_map(Value::floats).fold(0.0, |m: f64, x| m.max(x.abs()));
            let single = program.vars.iter().any(|v| *v.ty.base() == Type::F32);
            let rounding = if single { 1e-5 } else { 1e-12 } * largest;
            let all = |t: f64| expected.results.iter().zip(&found).all(|(a, b)| same(a, b, t));
            let wrong = |how: &str, other: &Result<Vec<Value>, String>| {
                let right = match other {
                    Ok(other) => expected.results.iter().zip(other).all(|(a, b)| same(a, b, rounding)),
                    Err(_) => false,
                };
                (!right).then(|| format!("expected {:?}\nfound {how} {other:?}", expected.results))
            };
            let hows = [How::Backwards, How::Lanes(2, 8), How::Lanes(8, 8)];
            let differs = |how: How| {
                let other = kernel(program, fun, args, how).expect("native, as before");
                wrong(&format!("{how:?}"), &other)
            };
            let without = || wrong_without((program, fun), args, without, wrong);
            if let Some(text) = hows.into_iter().find_map(differs).or_else(without) {
                if is_unstable(program, fun, args, &expected.results, rounding) {
                    Ok(Agreement::Unstable)
                } else {
                    Err(text)
                }
            } else if all(0.0) {
                Ok(Agreement::Bits)
            } else if all(rounding) {
                Ok(Agreement::Rounding)
            } else {
                Err(format!("expected {:?}\nfound {found:?}", expected.results))
            }
        }
        (Err(e), Err(f)) if format!("{:?}: {e}", e.kind) == f => Ok(Agreement::Bits),
        (Ok(_), Err(f)) => Err(format!("stopped: {f}")),
        (Err(e), f) => Err(format!("should stop with {:?}: {e}\nfound {f:?}", e.kind)),
    })
}

/// The program without derivatives inside, optimised or not.
fn finished(program: &Program, fun: FunId, optimise: bool) -> Option<(Program, FunId)> {
    let (mut program, roots) = pipeline::keep_reachable(program, &[fun]);
    let choice = Settings::default().choice;
    pipeline::run(&mut program, pipeline::steps(optimise), &choice, &mut |_, _| {}).ok()?;
    Some((program, roots[0]))
}

/// Programs that found a fault once: pointers that are copies of pointers into what parts of a loop add to; an array from outside
/// of a loop, joined with one from inside, that was written over; elements that became registers, set and read in loops that never run.
const FOUND: [u64; 4] = [71039, 880_035, 50070, 50290];

/// Programs that parts of scheduling change, one for each part in the order of their names: a seed leaves one part out, so few seeds say of few.
const CHANGES: [u64; 12] = [38, 24, 9, 4, 26, 10, 13, 17, 0, 32, 34, 11];

/// What came of programs and gradients.
#[derive(Default)]
struct Counts {
    native: usize,
    rounded: usize,
    unstable: usize,
    lost: usize,
    foreign: usize,
    failures: Vec<String>,
    changed: Changed,
}

impl Counts {
    fn extend(&mut self, other: Counts) {
        self.native += other.native;
        self.rounded += other.rounded;
        self.unstable += other.unstable;
        self.lost += other.lost;
        self.foreign += other.foreign;
        self.failures.extend(other.failures);
        for (name, more) in other.changed {
            *self.changed.entry(name).or_default() += more;
        }
    }
    fn check(&mut self, case: &Case, what: &str, program: &Program, fun: FunId, args: &[Value]) {
        let all = optional();
        let without = [all[case.seed as usize % all.len()]];
        for optimise in [false, true] {
            let Some((program, fun)) = finished(program, fun, optimise) else { continue };
            let run = std::panic::AssertUnwindSafe(|| agrees(&program, fun, args, &without));
            let name = format!("seed {} {what} {optimise}", case.seed);
            match std::panic::catch_unwind(run) {
                Ok(None) => self.foreign += 1,
                Ok(Some(Ok(agreement))) => {
                    self.native += 1;
                    self.rounded += usize::from(agreement == Agreement::Rounding);
                    self.unstable += usize::from(agreement == Agreement::Unstable);
                }
                // Sizes of elements that nobody made: the interpreter infers some that compiled code does not know.
                Ok(Some(Err(text))) if case.empties && is_lost_size(&text) => self.lost += 1,
                Ok(Some(Err(text))) => self.failures.push(format!("{name}: {text}")),
                Err(_) => self.failures.push(format!("{name}: panic")),
            }
        }
    }
}

/// Whether kernel IR stopped, by a check of the program and not by one of the executor.
fn is_lost_size(text: &str) -> bool {
    text.strip_prefix("stopped: ").is_some_and(|error| !error.starts_with("Internal"))
}

/// A random program and its gradient.
fn of_seed(seed: u64, config: &Config) -> Counts {
    let case = case_of_seed(seed, config);
    let mut counts = Counts::default();
    counts.check(&case, "program", &case.program, case.main, &case.args);
    if let Some((program, fun, args)) = gradient(&case) {
        counts.check(&case, "gradient", &program, fun, &args);
    }
    counts.changed = CHANGED.take();
    counts
}

/// Random programs of these seeds, none of which is wrong.
fn all_right(seeds: impl Iterator<Item = u64> + Send, config: &Config) -> Counts {
    let mut all = Counts::default();
    on_all_processors(seeds, |seed| of_seed(seed, config)).into_iter().for_each(|c| all.extend(c));
    let Counts { native, rounded, unstable, lost, foreign, failures, .. } = &all;
    println!(
        "{native} native, {rounded} of them but for rounding, {unstable} unstable, {lost} without a size, {foreign} not, {} wrong",
        failures.len()
    );
    assert!(failures.is_empty(), "{}", failures.iter().take(8).cloned().collect::<Vec<_>>().join("\n\n"));
    assert!(unstable * 50 <= *native, "too many are unstable: {unstable} of {native}");
    assert!(rounded * 100 <= *native, "too much differs by rounding: {rounded} of {native}");
    assert_eq!(*foreign, 0, "not native, of {native}");
    all
}

/// The gradient, with its arguments.
fn gradient(case: &Case) -> Option<(Program, FunId, Vec<Value>)> {
    let Fun { params, results, .. } = &case.program.funs[case.main];
    let wanted: Vec<bool> =
        params.iter().map(|p| case.program.is_active(&case.program.vars[*p].ty)).collect();
    let mut program = case.program.clone();
    let fun = derive::add(&mut program, case.main, Kind::Vjp, &wanted).ok()?;
    let primal = Compiled::new(&case.program).run(case.main, &case.args, &Options::default()).ok()?;
    let bars = primal.results.iter().zip(results).filter(|(_, t)| case.program.is_active(t)).map(|(v, _)| v);
    let typed = !bars.clone().any(has_sum);
    typed.then(|| (program, fun, case.args.iter().chain(bars).cloned().collect()))
}

#[test]
fn random_programs_and_their_gradients() {
    let seeds = draws("lowering", (16, 150), 5);
    let Counts { native, lost, changed, .. } =
        all_right(seeds.chain(FOUND).chain(CHANGES), &Config::default());
    assert!(lost * 1000 <= native, "too many sizes are lost: {lost} of {native}");
    let mut idle = idle(&changed);
    idle.retain(|pass| !RARE.contains(pass) && *pass != OF_SIZES);
    assert!(idle.is_empty(), "these parts of scheduling changed no module: {idle:?}");
    let owned = OWNED.load(Ordering::Relaxed);
    println!("{owned} schedules with rows of iterations");
    assert!(owned * 20 > native, "too few joined loops: {owned} in {native}");
}

/// Memory is given back when nothing reads it any more: bodies that end in branches about what was made before them.
#[test]
fn random_programs_that_end_in_branches() {
    all_right(draws("branches at the end", (8, 30), 3), &Config::endings());
}

/// Whether a cotangent would have another type than the value.
fn has_sum(v: &Value) -> bool {
    match v {
        Value::Sum(..) => true,
        Value::Tuple(items) => items.iter().any(has_sum),
        Value::Array(a) => a.data.scalar().is_none_or(|s| !s.is_float()),
        Value::Scalar(s) => !s.scalar().is_float(),
        Value::Acc(_) => false,
    }
}

#[test]
fn the_problems_and_their_gradients() {
    for problem in PROBLEMS {
        let [primal, ready] = problem.ready();
        let mut args = (problem.args)(5);
        let compare = |what: &str, program: &Program, fun: FunId, args: &[Value]| match agrees(
            program,
            fun,
            args,
            &optional(),
        ) {
            None => panic!("{} {what}: {}", problem.name, lower(program, fun).unwrap_err()),
            Some(Ok(agreement)) => assert!(agreement == Agreement::Bits, "{} {what}", problem.name),
            Some(Err(e)) => panic!("{} {what}: {e}", problem.name),
        };
        compare("objective", &primal.program, primal.fun, &args);
        let plain = Compiled::new(&primal.program).run(primal.fun, &args, &Options::default());
        args.extend(ones(&plain.expect(problem.name).results));
        compare("gradient", &ready.program, ready.fun, &args);
    }
    let mut idle = idle(&CHANGED.take());
    idle.retain(|pass| RARE.contains(pass));
    assert!(idle.is_empty(), "these parts of scheduling changed no problem: {idle:?}");
}

/// Long loops of small bodies have more lanes than short ones, and loops that share an interleaved tape equally many.
#[test]
fn loops_of_a_module_have_lanes_of_their_own() {
    let mut found = Vec::new();
    for (name, size) in [("gmm", 1000), ("lstm", 40)] {
        let problem = PROBLEMS.iter().find(|p| p.name == name).expect("a problem");
        let [_, ready] = problem.ready();
        let (mut module, id) = lower(&ready.program, ready.fun).expect("native");
        // All sizes alike: words that are no sizes do not matter.
        let sizes = vec![(id, module.functions[id].params.iter().map(|_| Some(size)).collect())];
        let model = Model::machine(8);
        schedule(
            &mut module,
            &schedule::Options {
                lanes: 8,
                most: 32,
                model,
                grain: None,
                relaxed: false,
                sizes,
                without: Vec::new(),
            },
        );
        assert_eq!(module.lanes, 32);
        found.push(widths(&module));
    }
    assert_eq!(found, [BTreeSet::from([8, 32]), BTreeSet::from([8])]);
}

/// A slice of the rows of an array that could lie interleaved begins in the middle of a block.
#[test]
fn slices_of_rows_that_loops_of_lanes_made() {
    let slices = [
        "let (c, e) = (b[1:n], b[0:n-1]) in map2 both (c :> [n-1][3]f64) (e :> [n-1][3]f64)",
        "let c = b[m:m+9] in map2 both (c :> [9][3]f64) (b[2:11] :> [9][3]f64)",
        "let c = b[1:n:2] in map (\\r -> both r r) (c :> [(n-1)/2][3]f64)",
        "let c = reverse b in map2 both c b",
        "let c = concat b (map (map (+ 1)) b) in map (\\r -> both r r) c[3:n+2]",
    ];
    for slice in slices {
        let text = format!(
            "def both [d] (x: [d]f64) (y: [d]f64) : f64 = f64.sum (map2 (\\p q -> p * f64.exp q) x y)
             entry f (n: i64) (m: i64) : []f64 =
               let a = tabulate_2d n 3 (\\i j -> f64.i64 ((i * 7 + j * 3) % 11) * 0.01)
               let b = map (\\r -> map (\\x -> f64.exp x * 2) r) a
               in {slice}"
        );
        let session = Session::compile("slices.fut", &text, Settings::default()).expect(slice);
        let entry = session.entry(Some("f")).expect(slice);
        let ready = session.primal(&entry).expect(slice);
        let args = [Value::i64(31), Value::i64(4)];
        let agreement = agrees(&ready.program, ready.fun, &args, &[]).expect("native");
        assert!(agreement.as_ref().is_ok_and(|a| *a == Agreement::Bits), "{slice}: {:?}", agreement.err());
    }
}

/// What a case holds has sizes of its own, of which nothing else is known.
#[test]
fn parts_of_what_a_case_holds_are_updated() {
    let text = "type t [n] = #one f64 | #many ([n][2]f64)
        entry f [n] (xs: *[n][2]f64) (y: f64) : [n][2]f64 =
          let s : t [n] = if y < 0 then #one y else #many xs
          in match s
             case #one x -> replicate n [x, y]
             case #many rows -> let rows = copy rows with [1:3] = [[y, 2 * y], [3 * y, y]] in rows with [0] = [y, y]";
    let session = Session::compile("cases.fut", text, Settings::default()).expect("a program");
    let entry = session.entry(Some("f")).expect("an entry point");
    let ready = session.primal(&entry).expect("ready");
    for y in [2.5, -2.5] {
        let args = [Value::f64_array(&[4, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]), Value::f64(y)];
        let agreement = agrees(&ready.program, ready.fun, &args, &[]).expect("native");
        assert!(agreement.as_ref().is_ok_and(|a| *a == Agreement::Bits), "{y}: {:?}", agreement.err());
    }
}

#[test]
fn rows_of_a_replicated_array_are_not_one_row() {
    let text = "fun f(a: []f64): [][]f64, [][]f64 {
        let n: i64 = size(a, 0)
        let b: []f64 = loop (s: []f64 = a) for i: i64 < n { let x: f64 = s[i] let y: f64 = mul.f64(x, 2.0f64) let u: []f64 = update(s, [i], y) in u }
        let rows: [][]f64 = replicate([3i64], b)
        let written: [][]f64 = update(rows, [1i64], a)
        let c: []f64 = loop (s: []f64 = a) for i: i64 < n { let x: f64 = s[i] let y: f64 = mul.f64(x, 3.0f64) let u: []f64 = update(s, [i], y) in u }
        let more: [][]f64 = replicate([2i64], c)
        let sum: [][]f64 = plus(more, more)
        in written, sum
    }";
    let (program, f) = parse(text);
    let found = kernel(&program, f, &[Value::f64s(&[1.0, 5.0])], How::Plain).expect("native").expect("runs");
    assert_eq!(found[0], Value::f64_array(&[3, 2], &[2.0, 10.0, 1.0, 5.0, 2.0, 10.0]));
    assert_eq!(found[1], Value::f64_array(&[2, 2], &[6.0, 30.0, 6.0, 30.0]));
}

/// A row is made where its reshape to the same sizes is collected; with other sizes it is copied there.
#[test]
fn reshapes_to_the_same_sizes_are_made_where_they_are_collected() {
    for (size, copies) in [("m", 0), ("k", 1)] {
        let text = format!(
            "fun f(n: i64, k: i64, a: []f64): [][]f64 {{
                let m: i64 = size(a, 0)
                let is: []i64 = iota(n)
                let rows: [][]f64 = map n [is] (i: i64) {{
                    let v: []f64 = map m [a] (x: f64) {{ let y: f64 = add.f64(x, 1.0f64) in y }}
                    let w: []f64 = reshape([{size}], 1, v)
                    in w
                }}
                in rows
            }}"
        );
        let (program, f) = parse(&text);
        let (module, _) = lower(&program, f).expect("native");
        assert_eq!(count(&module, counted::copies), copies, "{}", print(&module));
        let args = [Value::i64(2), Value::i64(2), Value::f64s(&[7.0, 10.0])];
        let found = kernel(&program, f, &args, How::Plain).expect("native").expect("runs");
        assert_eq!(found[0], Value::f64_array(&[2, 2], &[8.0, 11.0, 8.0, 11.0]));
    }
}

/// An index that counts backwards is in range; one that begins one further is not known to be.
#[test]
fn backward_counters_need_no_check() {
    for (first, checks) in [("sub.i64(n, 1i64)", 0), ("add.i64(-1i64, n)", 0), ("sub.i64(n, 0i64)", 1)] {
        let text = format!(
            "fun f(a: []f64): f64 {{
                let n: i64 = size(a, 0)
                let last: i64 = {first}
                let r: f64 = loop (s: f64 = 0.0f64) for i: i64 < n {{
                    let k: i64 = sub.i64(last, i)
                    let x: f64 = a[k]
                    let t: f64 = mul.f64(s, 10.0f64)
                    let u: f64 = add.f64(t, x)
                    in u
                }}
                in r
            }}"
        );
        let (program, f) = parse(&text);
        let (module, _) = lower(&program, f).expect("native");
        // (And one for the strides of the argument.)
        assert_eq!(count(&module, counted::checks), checks + 1, "{}", print(&module));
        let found = kernel(&program, f, &[Value::f64s(&[1.0, 2.0, 3.0])], How::Plain).expect("native");
        match checks {
            0 => assert_eq!(found, Ok(vec![Value::f64(321.0)])),
            _ => assert!(found.is_err_and(|e| e.contains("OutOfBounds") || e.contains("out of bounds"))),
        }
    }
}

/// An assertion that an array has two elements is what an index needs.
#[test]
fn constant_indices_below_an_asserted_size_need_no_check() {
    for (index, checks) in [(1, 1), (2, 2), (-1, 2)] {
        let text = format!(
            "fun f(a: []f64): f64 {{
                let n: i64 = size(a, 0)
                let two: bool = eq.i64(n, 2i64)
                let ok: () = assert(two, \"two\", n)
                let x: f64 = a[{index}i64]
                in x
            }}"
        );
        let (program, f) = parse(&text);
        let (module, _) = lower(&program, f).expect("native");
        // (And one for the strides of the argument.)
        assert_eq!(count(&module, counted::checks), checks + 1, "{}", print(&module));
        let found = kernel(&program, f, &[Value::f64s(&[3.0, 5.0])], How::Plain).expect("native");
        match checks {
            1 => assert_eq!(found, Ok(vec![Value::f64(5.0)])),
            _ => assert!(found.is_err()),
        }
    }
}

/// Small whole powers are products, within two units in the last place of the power, at the ends of the range too.
#[test]
fn small_powers_are_products() {
    let huge = [
        0.0,
        f64::INFINITY,
        f64::NAN,
        1.0,
        1.5e154,
        1e160,
        1.3e103,
        2e-108,
        1e-154,
        1e-160,
        5e-324,
        f64::MAX,
    ];
    let many = (0..1000).map(|i| 0.9 + 1.3e-3 * f64::from(i));
    let xs: Vec<f64> = huge.into_iter().chain(many).flat_map(|x| [x, -x]).collect();
    for (exponent, is_power) in
        [(-1, false), (0, true), (1, false), (2, false), (3, false), (4, true), (-2, true)]
    {
        let text = format!("fun f(x: f64): f64 {{ let y: f64 = pow.f64(x, {exponent}.0f64) in y }}");
        let (program, f) = parse(&text);
        let (module, _) = lower(&program, f).expect("native");
        let powers = count(&module, operation(Op::Pow, Scalar::F64));
        assert_eq!(powers > 0, is_power, "exponent {exponent}");
        for &x in &xs {
            let found = kernel(&program, f, &[Value::f64(x)], How::Plain).expect("native").expect("runs");
            let Value::Scalar(found) = &found[0] else { panic!("a number") };
            let (found, expected) = (found.as_f64(), x.powf(f64::from(exponent)));
            let units = (found.to_bits() as i64).wrapping_sub(expected.to_bits() as i64).unsigned_abs();
            assert!(
                units <= 2 || found.is_nan() && expected.is_nan(),
                "{x} to the power {exponent}: {found}, {expected}"
            );
        }
    }
}

/// An array that is added in several moved places is gathered in one pass; where a slice has gaps it is not.
#[test]
fn moved_arrays_are_added_element_by_element() {
    for (stride, in_one_pass) in [(1, true), (2, false)] {
        let text = format!(
            "fun f(base: [][]f64, xs: [][]f64, ys: [][]f64, k: i64): [][]f64 {{
                let n: i64 = size(ys, 0)
                let m: i64 = size(ys, 1)
                let sum: [][]f64 = withacc [base] (acc: acc [][]f64) {{
                    let up: acc [][]f64 = view_slice(acc, k, n, 1i64)
                    let a: () = add_to(up, [], ys)
                    let turned: acc [][]f64 = view_rearrange(acc, [1, 0])
                    let left: acc [][]f64 = view_slice(turned, -1i64, m, {stride}i64)
                    let again: acc [][]f64 = view_slice(left, 2i64, m, 1i64)
                    let back: acc [][]f64 = view_rearrange(again, [1, 0])
                    let higher: acc [][]f64 = view_slice(back, 1i64, n, 1i64)
                    let b: () = add_to(higher, [], ys)
                    let c: () = add_to(acc, [], xs)
                    in
                }}
                in sum
            }}"
        );
        let (program, f) = parse(&text);
        let (module, _) = lower(&program, f).expect("native");
        assert_eq!(count(&module, counted::additions) == 0, in_one_pass, "{}", print(&module));
        for (rows, columns) in [(5, 4), (1, 1), (3, 0), (0, 3), (4, 9)] {
            let array = |seed: f64| {
                let numbers: Vec<f64> = (0..rows * columns).map(|i| seed + (i * i) as f64).collect();
                Value::f64_array(&[rows, columns], &numbers)
            };
            for k in [-3, -1, 0, 1, 2, 7] {
                let args = [array(0.5), array(1e3), array(1e6), Value::i64(k)];
                let expected = Compiled::new(&program).run(f, &args, &Options::default());
                let expected = expected.expect("runs").results;
                for how in [How::Plain, How::Backwards, How::Lanes(2, 8), How::Lanes(8, 8)] {
                    let found = kernel(&program, f, &args, how).expect("native").expect("runs");
                    assert!(
                        same(&found[0], &expected[0], 0.0),
                        "{rows} x {columns}, {k}, {how:?}: {found:?} {expected:?}"
                    );
                }
            }
        }
    }
}

/// Loops that read from the first element to the last leave derivatives that add from the last to the first: the slice is all of the
/// array turned round, whose elements need no look at whether they are there. Of a longer or shorter array it is a part.
#[test]
fn accumulators_are_added_to_from_the_end() {
    let text = "fun f(base: []f64, xs: []f64): []f64 {
        let n: i64 = size(xs, 0)
        let m: i64 = size(base, 0)
        let k: i64 = sub.i64(START)
        let sum: []f64 = withacc [base] (acc: acc []f64) {
            let turned: acc []f64 = view_slice(acc, k, LENGTH, -1i64)
            let done: () = add_to(turned, [], xs)
            in
        }
        in sum
    }";
    let xs = [1.0, 2.0, 4.0, 8.0];
    let cases = [
        ("m, 1i64", "m", vec![8.5, 4.5, 2.5, 1.5], true),
        ("m, 2i64", "m", vec![4.5, 2.5, 1.5, 0.5], false),
        ("m, 1i64", "n", vec![0.5, 0.5, 8.5, 4.5, 2.5, 1.5], false),
        ("n, 1i64", "n", vec![8.5, 4.5, 2.5, 1.5, 0.5, 0.5], false),
        ("m, 1i64", "n", vec![2.5, 1.5], false),
    ];
    for (start, length, expected, is_whole) in cases {
        let (program, f) = parse(&text.replace("START", start).replace("LENGTH", length));
        let (module, _) = lower(&program, f).expect("native");
        let least = count(&module, operation(Op::Min, Scalar::I64));
        assert_eq!(least == 0, is_whole, "{}", print(&module));
        let args = [Value::f64s(&vec![0.5; expected.len()]), Value::f64s(&xs)];
        for how in [How::Plain, How::Backwards, How::Lanes(2, 8), How::Lanes(8, 8)] {
            let found = kernel(&program, f, &args, how).expect("native").expect("runs");
            assert_eq!(found, [Value::f64s(&expected)], "from {start}, {length} of them, {how:?}");
        }
    }
}

/// An array that is the state of a loop as a component of a tuple is not overwritten while the final state is needed.
#[test]
fn states_share_the_memory_of_what_they_began_with() {
    let text = "fun f(n: i64, xs: []f64): []f64, []f64 {
        let a: []f64 = map n [xs] (x: f64) { let y: f64 = mul.f64(x, 2.0f64) in y }
        let t: ([]f64,) = tuple(a)
        let last: ([]f64,) = loop (s: ([]f64,) = t) for i: i64 < n { in s }
        let b: []f64 = update(a, [0i64], 100.0f64)
        let c: []f64 = proj(last, 0)
        in b, c
    }";
    let (program, f) = parse(text);
    for n in [1, 3] {
        let args = [Value::i64(n), Value::f64s(&[1.0, 5.0, 7.0][..n as usize])];
        let found = kernel(&program, f, &args, How::Plain).expect("native").expect("runs");
        assert_eq!(found[1], Value::f64s(&[2.0, 10.0, 14.0][..n as usize]));
    }
}

/// An array that every iteration makes anew is made where it belongs, and not copied. One that is written in place
/// has one place.
#[test]
fn states_made_anew_take_turns() {
    let cases = [
        ("map n [s] (x: f64) { let y: f64 = add.f64(x, 1.0f64) in y }", [4.0, 8.0, 10.0]),
        ("plus(s, r)", [4.0, 8.0, 10.0]),
        ("update(s, [0i64], 9.0f64)", [9.0, 5.0, 7.0]),
    ];
    for (next, expected) in cases {
        let text = format!(
            "fun f(xs: []f64, steps: i64): []f64 {{
                let n: i64 = size(xs, 0)
                let last: []f64 = loop (s: []f64 = xs) for i: i64 < steps {{
                    let r: []f64 = replicate([n], 1.0f64)
                    let t: []f64 = {next}
                    in t
                }}
                in last
            }}"
        );
        let (program, f) = parse(&text);
        let (module, _) = lower(&program, f).expect("native");
        assert_eq!(count(&module, counted::copies), 1, "of the argument: {}", print(&module));
        let args = [Value::f64s(&[1.0, 5.0, 7.0]), Value::i64(3)];
        for how in [How::Plain, How::Backwards, How::Lanes(2, 8)] {
            let found = kernel(&program, f, &args, how).expect("native").expect("runs");
            assert_eq!(found[0], Value::f64s(&expected), "{next}");
        }
    }
}

/// A definition that is there several times stops with one message, so that its copies are equal code; different places, kinds
/// and texts stay apart.
#[test]
fn equal_messages_are_one() {
    let text = "def at [n] (xs: [n]f64) (i: i64) : f64 = xs[i]
        entry f [n] [m] (xs: [n]f64) (ys: [m]f64) (i: i64) (j: i64) : f64 = at xs i + at ys i + xs[j] + ys[j]";
    let session = Session::compile("at.fut", text, Settings::default()).expect("a program");
    let entry = session.entry(Some("f")).expect("an entry point");
    let ready = session.primal(&entry).expect("a program");
    let (module, _) = lower(&ready.program, ready.fun).expect("native");
    let fails = count(&module, counted::checks);
    // Four indices and the strides of two arguments.
    assert_eq!((fails, module.messages.len()), (6, 4), "{}", print(&module));
    let (xs, ys) = (Value::f64s(&[1.0, 2.0]), Value::f64s(&[3.0, 4.0, 5.0]));
    for (i, j) in [(1, 0), (2, 0), (-1, 5), (0, 2), (1, 3), (7, 7)] {
        let args = [xs.clone(), ys.clone(), Value::i64(i), Value::i64(j)];
        let agreement = agrees(&ready.program, ready.fun, &args, &[]).expect("native");
        assert!(agreement.as_ref().is_ok_and(|a| *a == Agreement::Bits), "{i} {j}: {:?}", agreement.err());
    }
}
