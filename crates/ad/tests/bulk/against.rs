//! Bulk dual numbers against the other algorithms of the crate, on functions of core.

use super::generate::{Indices, scalar_program, seeds};
use super::translated::{both, to_core};
use crate::common::{add_vjp, mismatch_of};
use pullback_ad::fast_chad::Config;
use pullback_core::Value;
use pullback_interp::core::{Options, run};

/// Gradients of random programs: Fast CHAD of the source, which has `build1` as maps and indices behind conditions, and the gradient that bulk dual numbers make.
#[test]
fn fast_chad_has_the_same_gradients() {
    let mut tried = 0;
    for (seed, indices) in seeds(60).flat_map(|s| [(s, Indices::Inside), (s, Indices::Anywhere)]) {
        let (source, arguments) = scalar_program(seed, indices);
        let Some((mut core, f, g)) = both(&source) else { continue };
        let chad = add_vjp(&mut core, f, &Config::default()).expect("supported");
        let mut all: Vec<Value> = arguments.iter().map(to_core).collect();
        all.push(Value::f64(1.5));
        let of = |id| run(&core, id, all.clone(), &Options::default()).expect("runs").results;
        let floats = |vs: Vec<Value>| vs.iter().flat_map(Value::floats).collect::<Vec<f64>>();
        let (ours, theirs) = (floats(of(g)), floats(of(chad)));
        let same = ours.iter().zip(&theirs).all(|(x, y)| (x - y).abs() <= 1e-9 * (1.0 + y.abs()));
        assert!(same && ours.len() == theirs.len(), "seed {seed}: {ours:?} {theirs:?}\n{source}");
        tried += 1;
    }
    assert!(tried > 50, "{tried}");
}

/// The gradient is an ordinary function: reverse mode of it, by Fast CHAD, and forward mode of it by the interpreter agree.
#[test]
fn gradients_are_differentiated_by_others() {
    let mut tried = 0;
    for seed in seeds(25) {
        let (source, arguments) = scalar_program(seed, Indices::Anywhere);
        let Some((mut core, _, g)) = both(&source) else { continue };
        let Ok(second) = add_vjp(&mut core, g, &Config::default()) else { continue };
        let mut all: Vec<Value> = arguments.iter().map(to_core).collect();
        all.push(Value::f64(1.5));
        assert_eq!(mismatch_of(&core, g, second, &all), None, "seed {seed}");
        tried += 1;
    }
    assert!(tried > 10, "{tried}");
}
