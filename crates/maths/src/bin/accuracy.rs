//! The largest error of every function, over points of every kind: `accuracy [POINTS [SEED [FUNCTION]]]`.
#![allow(clippy::print_stdout, reason = "a command")]

#[path = "../../tests/reference/points.rs"]
mod points;
#[path = "../../tests/reference/mod.rs"]
mod reference;

use pullback_maths::portable::One;
use pullback_maths::{Function, apply};

fn main() {
    let args: Vec<_> = std::env::args().skip(1).collect();
    let number = |i: usize, usual: u64| args.get(i).and_then(|a| a.parse().ok()).unwrap_or(usual);
    let (count, seed) = (number(0, 100_000), number(1, 1));
    for function in Function::ALL.iter().copied() {
        let facts = function.facts();
        if args.get(2).is_some_and(|name| name != facts.name) {
            continue;
        }
        let mut random = points::Random(seed);
        let mut worst = (0.0, Vec::new(), 0.0);
        for _ in 0..count {
            let args = points::point(function, &mut random);
            let computed = apply(&One, function, &args).expect("the arity");
            let error = reference::ulps(computed, reference::value(function, &args));
            if error > worst.0 {
                worst = (error, args, computed);
            }
        }
        let verdict = if worst.0 <= facts.max_ulp { "" } else { "  MORE THAN STATED" };
        println!(
            "{:8} {:.3} of {} at {:?} = {:?}{verdict}",
            facts.name, worst.0, facts.max_ulp, worst.1, worst.2
        );
    }
}
