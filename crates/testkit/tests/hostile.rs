//! Hostile sizes: random programs of shape operations and their gradients stop compiled code where they stop the interpreter, and give its
//! values elsewhere. `cargo xtask soak native` does the same for more of them.

use pullback_core::Value;
use pullback_prim::ScalarValue;
use pullback_testkit::draws::draws;
use pullback_testkit::hostile::{Counts, parts_of_forms, process, program};
use std::path::Path;

#[test]
fn hostile_sizes_do_to_compiled_code_what_they_do_to_the_interpreter() {
    let mut seeds = draws("hostile sizes", (80, 500), 5);
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let helper = Path::new(env!("CARGO_BIN_EXE_hostile"));
    let mut counts = Counts::default();
    loop {
        let some: Vec<u64> = seeds.by_ref().take(100).collect();
        let Some(&from) = some.first() else { break };
        counts.extend(process::many(helper, from, some.len() as u64, jobs, &|_, _| {}));
    }
    let count = seeds.drawn();
    eprintln!("{:?}", counts.verdicts);
    let failures: Vec<&str> = counts.failures.iter().take(8).map(String::as_str).collect();
    assert!(failures.is_empty(), "{} are wrong:\n{}", counts.failures.len(), failures.join("\n\n"));
    // Of each program several functions run several times.
    let (values, stops) = (counts.of("value"), counts.of("stops"));
    assert!(values > 3 * count && stops > 2 * count, "too few came to an end");
    assert!(10 * counts.of("refused") < count, "too many programs have no types");
    assert!(
        4 * counts.of("memory") < values + stops && 4 * counts.of("long") < values + stops,
        "too many decide nothing"
    );
}

/// The generator makes the programs that the property is about.
#[test]
fn all_forms_are_drawn_and_sizes_wrap_round() {
    let texts: Vec<String> = (0..2000).map(|seed| program(seed).text()).collect();
    for part in parts_of_forms() {
        assert!(texts.iter().any(|t| t.contains(part)), "no program has {part:?}");
    }
    let sizes = |seed: u64| -> Vec<i64> {
        let args = program(seed).args;
        let number = |v: &Value| match v {
            Value::Scalar(ScalarValue::I64(n)) => Some(*n),
            _ => None,
        };
        args.iter().flatten().filter_map(number).collect()
    };
    let wraps = |s: &&[i64]| s[0].checked_mul(s[1]).is_none() && (0..9).contains(&s[0].wrapping_mul(s[1]));
    let wrapping: usize = (0..2000).map(|seed| sizes(seed).chunks(4).filter(wraps).count()).sum();
    assert!(wrapping > 400, "{wrapping}");
}
