//! No call takes less memory than its plan says; for most problems the plan says most of it, and all that is on tapes.

use pullback_core::{FunId, Program, Type, Value};
use pullback_driver::{Kind, Session, Settings, Wrt, pipeline};
use pullback_interp::core::{Compiled, Options as Interpreter};
use pullback_kernel::schedule::{self, Model, schedule};
use pullback_kernel::{Plan, lower};
use pullback_testkit::generate::Config;
use pullback_testkit::problems::PROBLEMS;
use pullback_testkit::properties::case_of_seed;
use pullback_vm::{Executable, Limits, Options};

/// The planned bytes and those that a call took; `None` if the program is not native or stops.
fn planned_and_taken(program: &Program, fun: FunId, args: &[Value]) -> Option<(u64, u64)> {
    let (module, id) = lower(program, fun).ok()?;
    let f = &program.funs[fun];
    let given: Vec<(&Type, &Value)> = f.params.iter().map(|p| &program.vars[*p].ty).zip(args).collect();
    let plan = Plan::new(&module, id);
    let mut taken = Vec::new();
    let mut in_lanes = module.clone();
    schedule(&mut in_lanes, &schedule::Options::new(64, Model::interpreter()));
    let mut joined = module.clone();
    let model = Model { near: Some(0), ..Model::interpreter() };
    schedule(&mut joined, &schedule::Options::new(8, model));
    for module in [&module, &in_lanes, &joined] {
        let plan = plan.clone().as_scheduled(module);
        let least = plan.least(&pullback_abi::sizes(&given)).all;
        let executable = Executable::new(module, &Options::default());
        let out = executable.session().call(id, &given, &f.results, Limits::default()).ok()?;
        assert!(out.peak_bytes >= least, "{least} bytes were planned, {} taken", out.peak_bytes);
        // One byte less than what is planned is too little; what was taken is enough.
        let sizes = pullback_abi::sizes(&given);
        assert!(plan.check(&sizes, out.peak_bytes).is_ok());
        assert!(least == 0 || plan.check(&sizes, least - 1).is_err());
        taken.push(out.peak_bytes);
    }
    Some((plan.least(&pullback_abi::sizes(&given)).all, taken[0]))
}

/// The bytes of tapes that are planned.
fn tapes(program: &Program, fun: FunId, args: &[Value]) -> u64 {
    let Ok((module, id)) = lower(program, fun) else { return 0 };
    let f = &program.funs[fun];
    let given: Vec<(&Type, &Value)> = f.params.iter().map(|p| &program.vars[*p].ty).zip(args).collect();
    Plan::new(&module, id).least(&pullback_abi::sizes(&given)).tapes
}

#[test]
fn problems_take_what_was_planned() {
    let (mut told, mut regular) = (0, 0);
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for problem in PROBLEMS {
        let text = std::fs::read_to_string(root.join(problem.file)).expect(problem.file);
        let session = Session::compile(problem.file, &text, Settings::default()).expect(problem.name);
        let entry = session.entry(Some(problem.entry)).expect(problem.name);
        let args = (problem.args)(20);
        let primal = session.primal(&entry).expect(problem.name);
        planned_and_taken(&primal.program, primal.fun, &args);
        let selected = session.select(&entry, &Wrt::parse(problem.wrt)).expect(problem.name);
        let ready = session.derivative(&entry, Kind::Vjp, &selected, &mut |_, _| {}).expect(problem.name);
        let bars = Compiled::new(&primal.program).run(primal.fun, &args, &Interpreter::default());
        let args: Vec<Value> = args.into_iter().chain(bars.expect(problem.name).results).collect();
        let counted = Compiled::new(&ready.program).run(ready.fun, &args, &Interpreter::default());
        let counted = counted.expect(problem.name).counts.peak_tape_bytes;
        let tapes = tapes(&ready.program, ready.fun, &args);
        eprintln!("{}: {tapes} bytes of tapes are known, {counted} counted", problem.name);
        // Allocations are whole blocks of 64 bytes.
        assert!(tapes <= counted + 1024, "{}", problem.name);
        regular += usize::from(tapes >= counted);
        let Some((least, taken)) = planned_and_taken(&ready.program, ready.fun, &args) else { continue };
        eprintln!("{}: {least} of {taken} bytes", problem.name);
        told += usize::from(2 * least > taken);
    }
    assert!(4 * regular >= 3 * PROBLEMS.len(), "of {regular} problems the tapes are known");
    assert!(2 * told >= PROBLEMS.len(), "of {told} problems most is known");
}

#[test]
fn random_programs_take_what_was_planned() {
    let mut ran = 0;
    for seed in 880_000..880_100 {
        let case = case_of_seed(seed, &Config::default());
        let (mut program, roots) = pipeline::keep_reachable(&case.program, &[case.main]);
        let choice = Settings::default().choice;
        if pipeline::run(&mut program, pipeline::steps(true), &choice, &mut |_, _| {}).is_ok() {
            ran += usize::from(planned_and_taken(&program, roots[0], &case.args).is_some());
        }
    }
    assert!(ran > 50, "{ran} ran");
}
