//! The lambda interpreter on small programs, sequentially and under simulated schedules.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::lambda_cases;

use lambda_cases::cases;
use pullback_interp::lambda::{Options, run};
use pullback_lambda::check::check;
use pullback_lambda::read::read;

#[test]
fn every_program_gives_what_was_worked_out() {
    let mut failures = Vec::new();
    for case in cases() {
        let program = read(case.text, None).unwrap_or_else(|e| panic!("{}: {e:#?}", case.name));
        check(&program).unwrap_or_else(|e| panic!("{}: {e:#?}", case.name));
        let main = program.funs.iter_enumerated().find(|(_, f)| f.name.as_str() == "main").unwrap().0;
        for schedule_seed in [None, Some(1), Some(2), Some(3)] {
            let options = Options { schedule_seed, ..Options::default() };
            let outcome = run(&program, main, case.args.clone(), &options);
            let ok = match (&outcome, &case.expected) {
                (Ok(outcome), Ok(value)) => outcome.result == *value,
                (Err(e), Err((kind, part))) => {
                    // Under a schedule another of several errors may come first.
                    e.kind == *kind && (e.message.contains(part) || schedule_seed.is_some())
                }
                _ => false,
            };
            if !ok {
                failures.push(format!(
                    "{} (schedule {schedule_seed:?}): {outcome:?}, expected {:?}",
                    case.name, case.expected
                ));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
