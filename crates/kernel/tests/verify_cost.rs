//! The work of the verifier grows with the code, by count: from a thousand instructions to thirty thousand, an instruction costs at most one and
//! a half times as much.

#![allow(clippy::print_stdout, reason = "a test that says how much it saw")]

#[path = "common/families.rs"]
mod families;

use crate::common::parse;
use families::FAMILIES;
use pullback_kernel::schedule::{Model, Options, schedule};
use pullback_kernel::verify::verify;
use pullback_kernel::{Module, lower, size};

fn instructions(module: &Module) -> usize {
    module.functions.iter().map(|f| size(&f.body)).sum()
}

/// Instructions and work, lowered and scheduled for machine code.
fn costs(text: &str) -> [(f64, f64); 2] {
    let (program, f) = parse(text);
    let (module, _) = lower(&program, f).expect("native");
    let mut scheduled = module.clone();
    schedule(&mut scheduled, &Options::new(8, Model::machine(8)));
    [module, scheduled].map(|m| (instructions(&m) as f64, verify(&m).work as f64))
}

#[test]
fn work_grows_with_the_code() {
    for (name, family) in FAMILIES {
        let small = 10;
        let [lowered, _] = costs(&family(small));
        let of = |instructions: f64| (instructions / lowered.0 * small as f64) as usize;
        let (short, long) = (costs(&family(of(1_000.0))), costs(&family(of(30_000.0))));
        for (way, (short, long)) in ["lowered", "scheduled"].into_iter().zip(short.into_iter().zip(long)) {
            let each = [short.1 / short.0, long.1 / long.0];
            println!("{name}, {way}: {} and {} instructions, work {each:.1?} for each", short.0, long.0);
            assert!(each[1] <= 1.5 * each[0], "{name}, {way}: {each:?}");
        }
    }
}
