//! The work of the verifier grows with the code, by count: from a thousand instructions to thirty thousand, an instruction costs at most one and
//! a half times as much.

#![allow(clippy::print_stdout, reason = "a test that says how much it saw")]

#[path = "common/families.rs"]
mod families;

use crate::common::parse;
use families::FAMILIES;
use pullback_kernel::schedule::{Model, Options, schedule};
use pullback_kernel::verify::{bounds, verify};
use pullback_kernel::{Module, lower, size};

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
