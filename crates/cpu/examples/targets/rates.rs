//! What this machine can do, by small loops: operations on registers, and bytes from each level of memory.

use crate::run::{filled, room, time};
use crate::text::{Style, Text, V};
use pullback_maths::Function;
use pullback_testkit::problems::uniform;

/// What a loop does, over and over, `%rounds` times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rate {
    /// Products added to 12 independent vectors: `x = x * a + b`.
    MultiplyAdd,
    /// Sums into 12 independent vectors.
    Add,
    /// All `%n` numbers are read.
    Read,
    /// All `%n` numbers are read and written elsewhere.
    Copy,
    /// A function of all `%n` numbers, written elsewhere.
    Call(Function),
}

pub(crate) const POINTERS: &[&str] = &["from", "to"];
pub(crate) const SIZES: &[&str] = &["n", "rounds"];
/// Independent vectors of the loops without memory.
pub(crate) const CHAINS: usize = 12;

pub(crate) fn text(rate: Rate) -> String {
    // Vectors of 64 in the loops over memory: eight registers in turn.
    let lanes = if matches!(rate, Rate::Read | Rate::Copy) { 64 } else { 8 };
    let mut t = Text::new(Style { lanes, contract: true, reassociate: false, width: 512 });
    let vector = t.vector();
    let zero = t.constant(0.0);
    let count = if matches!(rate, Rate::MultiplyAdd | Rate::Add) { CHAINS } else { 1 };
    let sums: Vec<V> = (0..count).map(|_| t.variable(&vector, &zero)).collect();
    let (a, b) = (t.load("%from", "0"), t.load("%from", "1"));
    let (a, b) = (t.splat(&a), t.splat(&b));
    t.each("0", "%rounds", 1, |t, _| match rate {
        Rate::MultiplyAdd | Rate::Add => {
            for sum in &sums {
                let old = t.get(&vector, sum);
                let new = if rate == Rate::Add { t.add(&old, &b) } else { t.mul_add(&old, &a, &b) };
                t.set(&vector, sum, &new);
            }
        }
        Rate::Read => t.each("0", "%n", lanes, |t, i| {
            let x = t.load_lanes("%from", i);
            let old = t.get(&vector, &sums[0]);
            let new = t.add(&old, &x);
            t.set(&vector, &sums[0], &new);
        }),
        Rate::Copy => t.each("0", "%n", lanes, |t, i| {
            let x = t.load_lanes("%from", i);
            t.store_lanes(&x, "%to", i);
        }),
        Rate::Call(function) => t.each("0", "%n", lanes, |t, i| {
            let x = t.load_lanes("%from", i);
            let y = t.call(function, &x);
            t.store_lanes(&y, "%to", i);
        }),
    });
    for (i, sum) in sums.iter().enumerate() {
        let all = t.get(&vector, sum);
        let all = t.sum(&all);
        if count > 1 || rate == Rate::Read {
            t.store(&all, "%to", &i.to_string());
        }
    }
    t.module(POINTERS, SIZES)
}

/// All rates.
pub(crate) fn table() {
    println!("\n| rate of one core | |\n|---|---|");
    let run = |rate: Rate, n: usize, rounds: usize| {
        let from: Vec<f64> = uniform(1, n).iter().map(|x| 0.5 + x).collect();
        let mut memory = [filled(&from), room(n)];
        time(&text(rate), &mut memory, &[n, rounds], 30) / rounds as f64
    };
    let registers = (CHAINS * 8) as f64;
    println!(
        "| products and sums, GFLOP/s | {:.0} |",
        2.0 * registers / run(Rate::MultiplyAdd, 64, 100_000) / 1e9
    );
    println!("| sums, GFLOP/s | {:.0} |", registers / run(Rate::Add, 64, 100_000) / 1e9);
    let levels =
        [("16 kB", 2048, 2000), ("400 kB", 51_200, 100), ("8 MB", 1 << 20, 4), ("400 MB", 50 << 20, 1)];
    for (name, n, rounds) in levels {
        let rate = |rate: Rate, n: usize| 8.0 * n as f64 / run(rate, n, rounds) / 1e9;
        println!("| reading {name}, GB/s | {:.0} |", rate(Rate::Read, n));
        // Half the numbers are read, and written to the other half.
        println!("| copying within {name}, read and written, GB/s | {:.0} |", 2.0 * rate(Rate::Copy, n / 2));
    }
    for function in [Function::Exp, Function::Log, Function::Tanh, Function::Sin] {
        let seconds = run(Rate::Call(function), 2048, 100) / 2048.0;
        println!("| {} of 8 lanes, ns for each number | {:.2} |", function.facts().name, seconds * 1e9);
    }
}
