//! Points where derivatives are a matter of convention: partial derivatives that are not finite, ties, and the functions of the
//! prelude that have neither. Random programs against twins of which the derivative is clear.

mod compare;
mod not_taken;
mod prelude;
mod ties;
mod vanishing;

use compare::{Compared, Mean, compare};
use pullback_llvm::Llvm;
use pullback_testkit::draws::draws;
use pullback_testkit::on_all_processors;

/// Compares random programs with their twins; machine code for every eighth one.
fn examine(name: &'static str, most: u64, program: impl Fn(u64) -> Mean + Sync) -> Compared {
    let mut seeds = draws(name, (most / 4, most), 3);
    let machine_code = Llvm::find().is_ok();
    let all = on_all_processors(&mut seeds, |seed| {
        let mean = program(seed);
        let found = compare(&mean, machine_code && seed.is_multiple_of(8));
        found.map_err(|e| format!("seed {seed}: {e}\n{}{:?}\n{}", mean.program, mean.args, mean.twins[0].1))
    });
    let count = seeds.drawn();
    let failures: Vec<&String> = all.iter().filter_map(|r| r.as_ref().err()).collect();
    let shown: Vec<&str> = failures.iter().take(6).map(|s| s.as_str()).collect();
    assert!(failures.is_empty(), "{} of {count}:\n{}", failures.len(), shown.join("\n\n"));
    let total = all.into_iter().flatten().fold(Compared::default(), |a, b| a + b);
    eprintln!("{count} programs: {total:?}");
    assert!(total.on_lambda as u64 > 8 * count, "the algorithms on lambda cover too little: {total:?}");
    assert!(total.second as u64 > count, "too few second derivatives: {total:?}");
    total
}

#[test]
fn what_is_not_taken_spoils_nothing() {
    examine("not taken", 400, not_taken::program);
}

#[test]
fn ties_are_shared_by_primitives_and_decided_by_operators() {
    examine("ties", 300, ties::program);
}

#[test]
fn a_zero_in_front_of_a_finite_slope_is_a_factor_in_every_order() {
    examine("vanishing", 200, vanishing::program);
}
