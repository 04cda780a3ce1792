//! Passes that move or remove code: run again they find nothing more to do, and a program never takes more steps.
//!
//! On the problems of the benchmark suite, where the pipeline runs each pass, and on random programs. What eliminating
//! accumulators may cost is in `steps.rs`. On random programs there are exceptions, which are bounds here: what unrolling
//! writes out can make the elements of a later array known, and what sinking moves can be followed by what it needed, so
//! that the next run goes on; and an array of equal elements that is written out is read one by one, where the copies of
//! one value are folded into what reads them.

#![allow(clippy::unwrap_used, reason = "a test stops where it fails")]

use pullback_core::{FunId, Program, Rules, Value, check, print};
use pullback_driver::{Kind, Session, Settings, Wrt};
use pullback_interp::core::{Options, run};
use pullback_opt::{
    CSE, Ctx, DEAD_ARGUMENT_ELIMINATION, ELIMINATE_ACCUMULATORS, GUARD_ELIMINATION, JOIN_BRANCHES, PRUNE,
    Pass, SHORTEN, SIMPLIFY, SINK, UNROLL,
};
use pullback_testkit::generate::{Config, generate};
use pullback_testkit::problems::{PROBLEMS, Problem};
use std::path::Path;

const PASSES: [&Pass; 7] = [
    &UNROLL,
    &SINK,
    &SHORTEN,
    &GUARD_ELIMINATION,
    &JOIN_BRANCHES,
    &DEAD_ARGUMENT_ELIMINATION,
    &ELIMINATE_ACCUMULATORS,
];

/// A program in front of a pass, its function and whether derivatives are done.
struct Case {
    name: String,
    pass: &'static Pass,
    program: Program,
    fun: FunId,
    done: bool,
    args: Vec<Value>,
    /// How many runs may change something, and by how many hundredths the steps may grow.
    runs: usize,
    hundredths: u64,
}

impl Case {
    fn apply(&self, program: &Program) -> Program {
        let mut out = program.clone();
        (self.pass.run)(&mut out, &Ctx { derivatives_done: self.done, ..Ctx::default() });
        out
    }
    /// What the pass left behind is cleaned up, as the pipeline does.
    fn tidied(&self, program: &Program) -> Program {
        let mut out = program.clone();
        let ctx = Ctx { derivatives_done: self.done, ..Ctx::default() };
        [&SIMPLIFY, &CSE, &PRUNE].iter().for_each(|p| (p.run)(&mut out, &ctx));
        out
    }
    fn work(&self, program: &Program) -> Option<u64> {
        check(program, Rules::NO_AD).ok()?;
        let options = Options { work_limit: 5_000_000, ..Options::default() };
        run(program, self.fun, self.args.clone(), &options).ok().map(|o| o.counts.work)
    }
    fn check(&self) -> Result<bool, String> {
        let once = self.apply(&self.program);
        let last = (1..self.runs).fold(once.clone(), |program, _| self.apply(&program));
        let label = format!("{}, {}", self.name, self.pass.name);
        if print(&last) != print(&self.apply(&last)) {
            return Err(format!("{label}: run again it changes the program"));
        }
        if self.pass.name == ELIMINATE_ACCUMULATORS.name {
            return Ok(false);
        }
        let (Some(before), Some(after)) =
            (self.work(&self.tidied(&self.program)), self.work(&self.tidied(&once)))
        else {
            return Ok(false);
        };
        if after * 100 > before * (100 + self.hundredths) {
            return Err(format!("{label}: {after} steps instead of {before}"));
        }
        Ok(true)
    }
}

fn of_problem(problem: &Problem) -> Vec<Case> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = std::fs::read_to_string(root.join(problem.file)).unwrap();
    let session = Session::compile(problem.file, &text, Settings::default()).map_err(|e| e.render()).unwrap();
    let entry = session.entry(Some(problem.entry)).unwrap();
    let wanted = session.select(&entry, &Wrt::parse(problem.wrt)).unwrap();
    let args = (problem.args)(8);
    let plain = session.primal(&entry).unwrap().run(&args, &Options::default()).unwrap().results;
    let ones = plain.iter().map(|v| match v {
        Value::Array(a) => Value::f64_array(&a.shape, &vec![1.0; a.count()]),
        _ => Value::f64(1.0),
    });
    let all: Vec<Value> = args.iter().cloned().chain(ones).collect();
    let mut out = Vec::new();
    for (derived, args) in [(false, args), (true, all)] {
        let (mut last, mut done, mut found) = (Program::default(), false, Vec::new());
        let mut watch = |name: &'static str, p: &Program| {
            found.extend(
                PASSES.iter().filter(|pass| pass.name == name).map(|pass| (*pass, last.clone(), done)),
            );
            done |= name == "differentiate";
            last = p.clone();
        };
        let ready = if derived {
            session.derivative(&entry, Kind::Vjp, &wanted, &mut watch)
        } else {
            session.watch(&entry, &mut watch)
        };
        let fun = ready.unwrap().fun;
        out.extend(found.into_iter().map(|(pass, program, done)| Case {
            name: format!("{}{}", problem.name, if derived { ", gradient" } else { "" }),
            pass,
            program,
            fun,
            done,
            args: args.clone(),
            runs: 1,
            hundredths: 0,
        }));
    }
    out
}

fn expect(cases: impl Iterator<Item = Case>, counted: usize) {
    let (mut wrong, mut compared) = (Vec::new(), 0);
    for case in cases {
        match case.check() {
            Ok(ran) => compared += usize::from(ran),
            Err(e) => wrong.push(e),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(compared >= counted, "only {compared} were run");
}

#[test]
fn passes_are_done_after_one_run_and_cost_nothing_on_problems() {
    expect(PROBLEMS.iter().flat_map(of_problem), 60);
}

#[test]
fn passes_are_done_after_one_run_and_cost_nothing_on_random_programs() {
    let random = (0..150).flat_map(|seed| {
        let generated = generate(0x5EED_0000 + seed, &Config::default());
        let args = generated.inputs(generated.sizes, 0);
        PASSES.map(|pass| Case {
            name: format!("seed {seed}"),
            pass,
            program: generated.program.clone(),
            fun: generated.main,
            done: false,
            args: args.clone(),
            runs: match pass.name {
                name if name == UNROLL.name || name == SINK.name => 3,
                name if name == ELIMINATE_ACCUMULATORS.name => 2,
                _ => 1,
            },
            hundredths: match pass.name {
                name if name == UNROLL.name => 5,
                name if name == SINK.name => 1,
                _ => 0,
            },
        })
    });
    expect(random, 60);
}
