//! `in-place`: nothing reads what a write in place has overwritten.
//!
//! The derivative shares arrays between its two sweeps. It is run as it is, and with every value kept and every write to
//! an array made to a copy: the results agree bit for bit. As it comes and optimised.

use super::{Case, Check, Subject, fail, options, rng_of, stopped};
use pullback_core::check::{Rules, check};
use pullback_core::{FunId, Program, Value};
use pullback_interp::core::{Compiled, Options};

/// Those that move uses of arrays.
const PASSES: [&pullback_opt::Pass; 10] = [
    &pullback_opt::INLINE,
    &pullback_opt::SIMPLIFY,
    &pullback_opt::CSE,
    &pullback_opt::ELIMINATE_ACCUMULATORS,
    &pullback_opt::FUSE,
    &pullback_opt::SINK,
    &pullback_opt::JOIN_BRANCHES,
    &pullback_opt::GUARD_ELIMINATION,
    &pullback_opt::SHORTEN,
    &pullback_opt::PRUNE,
];

pub(super) fn in_place(of: &Subject<'_>) -> Check {
    let case = of.case;
    let mut r = of.reversed()?.clone();
    let bars = r.cotangents(&mut rng_of(case));
    let args: Vec<Value> = case.args.iter().chain(&bars).cloned().collect();
    same(case, "the derivative", &r.program, r.id, &args)?;
    for pass in PASSES {
        (pass.run)(&mut r.program, &pullback_opt::Ctx::default());
    }
    if let Err(e) = check(&r.program, Rules::NO_AD) {
        return fail(format!("malformed after optimisation: {e}"));
    }
    same(case, "the optimised derivative", &r.program, r.id, &args)
}

/// Two runs of a function give the same bits.
fn same(case: &Case, what: &str, program: &Program, id: FunId, args: &[Value]) -> Check {
    let code = Compiled::new(program);
    let run = |options: &Options<'_>| code.run(id, args, options).map_err(|e| stopped(case, what, e));
    let taking = run(&options())?;
    let keeping = run(&Options { in_place: false, ..options() })?;
    let bits = |values: &[Value]| format!("{values:?}");
    if bits(&taking.results) != bits(&keeping.results) {
        return fail(format!(
            "{what}: writes in place change results\nin place: {:?}\ncopied: {:?}",
            taking.results, keeping.results
        ));
    }
    Ok(())
}
