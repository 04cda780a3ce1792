//! The verifier has no alarm on code that the compiler makes: programs of the repository and random ones with their derivatives, lowered and scheduled.
//! (Scheduling asks the verifier after each pass.)

#![allow(clippy::print_stdout, reason = "a test that says how much it saw")]

use crate::common::results_from;
use pullback_interp::core::{Compiled, Options};
use pullback_kernel::schedule::schedule;
use pullback_kernel::verify::verify;
use pullback_kernel::{Ins, Module, lower, lower_plainly, size, walk};
use pullback_testkit::draws::{draws, some_of};
use pullback_testkit::kernels::{Item, of_repository, of_seed, runs_of_seed};
use pullback_testkit::native::same;
use pullback_testkit::{number, on_all_processors};

/// What was looked at.
#[derive(Default)]
struct Seen {
    modules: usize,
    instructions: usize,
    scheduled: usize,
    alarms: Vec<String>,
}

impl Seen {
    fn look(&mut self, item: &Item) {
        let Some((module, id)) = item.lowered() else { return };
        self.modules += 1;
        self.instructions += instructions(&module);
        self.note(item, "lowered", &module);
        for (way, options) in item.ways(id) {
            let mut module = module.clone();
            schedule(&mut module, &options);
            self.scheduled += instructions(&module);
            self.note(item, way, &module);
        }
    }
    fn note(&mut self, item: &Item, way: &str, module: &Module) {
        // In builds without debug assertions scheduling goes back to the code before it.
        let fallbacks = module.fallbacks.iter();
        self.alarms.extend(fallbacks.map(|given_up| format!("{}, {way}: {}", item.what, given_up.text())));
        let alarms = verify(module).alarms.into_iter();
        self.alarms.extend(alarms.map(|a| format!("{}, {way}: {:?}: {a}", item.what, a.rule)));
    }
    fn and(mut self, other: Seen) -> Seen {
        self.modules += other.modules;
        self.instructions += other.instructions;
        self.scheduled += other.scheduled;
        self.alarms.extend(other.alarms);
        self
    }
    /// What was seen of items: without an alarm, and so many modules at least.
    fn check(all: Vec<Seen>, modules: usize) {
        let seen = all.into_iter().fold(Seen::default(), Seen::and);
        let Seen { modules: found, instructions, scheduled, alarms } = seen;
        println!("{found} modules of {instructions} instructions, {scheduled} when scheduled in four ways");
        assert!(alarms.is_empty(), "{} alarms:\n{}", alarms.len(), alarms[..alarms.len().min(12)].join("\n"));
        assert!(found >= modules, "{found} modules were made");
    }
}

fn instructions(module: &Module) -> usize {
    module.functions.iter().map(|f| size(&f.body)).sum()
}

fn look<'a>(items: impl IntoIterator<Item = &'a Item>) -> Seen {
    let mut seen = Seen::default();
    items.into_iter().for_each(|item| seen.look(item));
    seen
}

#[test]
fn programs_of_the_repository_keep_the_rules() {
    // Some of them every day; `STEP=1` takes all.
    let (some, step) = some_of(of_repository(), 4);
    Seen::check(on_all_processors(some, |item| look([item])), 900 / step);
}

#[test]
fn random_programs_keep_the_rules() {
    let mut seeds = draws("verified", (15, 60), 4);
    let all = on_all_processors(&mut seeds, |seed| look(&of_seed(seed)));
    Seen::check(all, 3 * seeds.drawn() as usize);
}

/// What users get where the verifier has an alarm: no memory is given back, no rule is broken, and the values are the same.
#[test]
fn plain_code_keeps_the_rules_and_has_the_same_values() {
    let compare = |seed: u64| {
        let mut compared = 0;
        for run in runs_of_seed(seed).iter() {
            let Ok((module, id)) = lower_plainly(&run.program, run.fun) else { continue };
            let alarms = verify(&module).alarms;
            assert!(alarms.is_empty(), "{}: {}", run.what, alarms[0]);
            for f in module.functions.iter() {
                walk(&f.body, &mut |ins| assert!(!matches!(ins, Ins::Release { .. }), "{}", run.what));
            }
            let program = (run.program.clone(), run.fun);
            let args = &run.args[0];
            let options = Options { work_limit: 300_000, ..Options::default() };
            if Compiled::new(&run.program).run(run.fun, args, &options).is_err() {
                continue;
            }
            let (full, full_id) = lower(&run.program, run.fun).expect("native");
            let expected = results_from(&program, (&full, full_id), args, false);
            let found = results_from(&program, (&module, id), args, false);
            assert!(expected.iter().zip(&found).all(|(a, b)| same(a, b)), "{}", run.what);
            compared += 1;
        }
        compared
    };
    let compared: usize = on_all_processors(0..number("PLAIN", 12), compare).into_iter().sum();
    assert!(compared > 20, "{compared} runs were compared");
}
