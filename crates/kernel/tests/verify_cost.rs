//! The work of the verifier grows with the code, by count: from a thousand instructions to thirty thousand (six thousand where values are looked at), an
//! instruction costs at most one and a half times as much.

#![allow(clippy::print_stdout, reason = "a test that says how much it saw")]

#[path = "common/families.rs"]
mod families;

use crate::common::parse;
use families::FAMILIES;
use pullback_kernel::schedule::{Model, Options, schedule};
use pullback_kernel::verify::{bounds, values, verify};
use pullback_kernel::{Ghosts, Module, lower, lower_with_ghosts, size};

fn instructions(module: &Module) -> usize {
    module.functions.iter().map(|f| size(&f.body)).sum()
}

/// Instructions, and the work for each of them.
fn cost(module: &Module, work: fn(&Module) -> u64) -> (usize, f64) {
    let count = instructions(module);
    (count, work(module) as f64 / count as f64)
}

/// The code of so many instructions of a family.
fn code(family: fn(usize) -> String, length: usize) -> Module {
    let of = |count: usize| {
        let (program, f) = parse(&family(count));
        lower(&program, f).expect("native").0
    };
    of(10 * length / instructions(&of(10)))
}

/// It costs at most one and a half times as much for an instruction of the longer code.
fn compare(what: &str, short: &Module, long: &Module, work: fn(&Module) -> u64) {
    let (short, long) = (cost(short, work), cost(long, work));
    println!(
        "{what}: {} and {} instructions, work {:.1} and {:.1} for each",
        short.0, long.0, short.1, long.1
    );
    assert!(long.1 <= 1.5 * short.1, "{what}: {short:?}, {long:?}");
}

#[test]
fn work_grows_with_the_code() {
    for (name, family) in FAMILIES {
        let short = code(family, 1_000);
        compare(name, &short, &code(family, 30_000), |module| verify(module).work);
        // (Scheduling takes longer than there is time for in a test.)
        let scheduled = [short, code(family, 4_000)].map(|mut module| {
            schedule(&mut module, &Options::new(8, Model::machine(8)));
            module
        });
        compare(&format!("{name}, scheduled"), &scheduled[0], &scheduled[1], |module| verify(module).work);
    }
}

#[test]
fn work_on_accesses_grows_with_the_code() {
    for (name, family) in FAMILIES {
        compare(name, &code(family, 1_000), &code(family, 30_000), |module| bounds::look(module).work);
    }
}

/// The code of so many instructions of a family, with what is said of its values.
fn code_with_events(family: fn(usize) -> String, length: usize) -> (Module, Ghosts) {
    let of = |count: usize| {
        let (program, f) = parse(&family(count));
        let (module, _, ghosts) = lower_with_ghosts(&program, f, 64).expect("native");
        (module, ghosts)
    };
    of(10 * length / instructions(&of(10).0))
}

#[test]
fn work_on_values_grows_with_the_code() {
    for (name, family) in FAMILIES {
        let [short, long] = [1_000, 6_000].map(|length| {
            let (module, ghosts) = code_with_events(family, length);
            let found = values::look(&module, &ghosts);
            assert!(found.alarms.is_empty(), "{name}: {}", found.alarms[0]);
            found.work as f64 / instructions(&module) as f64
        });
        println!("{name}, values: work {short:.1} and {long:.1} for each instruction");
        assert!(long <= 1.5 * short, "{name}: {short}, {long}");
    }
}
