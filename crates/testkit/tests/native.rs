//! Random programs and their gradients on the native executors, optimised and not, against the interpreter. `cargo xtask soak
//! native` does the same for more of them, in more ways.

use pullback_cpu::Level;
use pullback_testkit::native::Way;
use pullback_testkit::native::soak::{Counts, many};

/// A number from the environment.
fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|s| s.parse().ok()).unwrap_or(default)
}

fn assert_right(counts: &Counts, programs: u64) {
    eprint!("{}", counts.render());
    let failures: Vec<String> =
        counts.failures.iter().take(4).map(|(seed, text)| format!("{seed}: {text}")).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    let compared = counts.compared();
    assert!(
        compared > 2 * programs,
        "too few were compared: {compared} of {programs} programs and gradients"
    );
    assert!(counts.of("lost") * 50 <= compared, "too many sizes are lost");
    assert!(counts.of("unstable") * 10 <= compared, "too many decide nothing");
}

#[test]
fn the_vm_computes_what_the_interpreter_computes() {
    let count = number("VM_COUNT", 2000);
    let ways = |seed: u64, _: usize| {
        let lanes = [4, 64, 512][(seed / 2 % 3) as usize];
        vec![if seed.is_multiple_of(2) { Way::Vm(lanes) } else { Way::VmDefault }]
    };
    assert_right(&many(number("SEED", 0), count, &ways), count);
}

#[test]
fn machine_code_computes_what_the_interpreter_computes() {
    let count = number("COUNT", 500);
    let ways = |seed: u64, _: usize| Way::of_llvm(seed, Level::O1).into_iter().skip(1).collect();
    let counts = many(number("SEED", 0), count, &ways);
    if counts.of("skipped") > 0 && counts.compared() == 0 {
        eprintln!("skipped: no LLVM was found");
        return;
    }
    assert_right(&counts, count);
}
