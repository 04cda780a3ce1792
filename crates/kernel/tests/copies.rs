//! What parts of a loop add to: copies of it, but where each iteration has a row of its own.

#[path = "common/scheduled.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod scheduled;

use crate::common::compiled;
use crate::common::counted::{additions, count, named, parts};
use crate::common::results_from;
use pullback_core::Value;
use pullback_interp::core::{Compiled, Options};
use pullback_kernel::lower;
use pullback_kernel::schedule::{self, Model, schedule};
use scheduled::numbers;

/// Whether parts have copies in code for these sizes, and the values at sizes that may be smaller: those of the interpreter whichever part
/// runs first, since all sums are exact.
fn has_copies(text: &str, [shapes, run]: [&[&[usize]]; 2], without: &[&'static str]) -> bool {
    let program = compiled(text);
    let array = |shape: &&[usize]| Value::f64_array(shape, &numbers(shape.iter().product()));
    let args: Vec<Value> = run.iter().map(array).collect();
    let expected =
        Compiled::new(&program.0).run(program.1, &args, &Options::default()).expect("it runs").results;
    let (mut module, id) = lower(&program.0, program.1).expect("native");
    // An address, and then sizes and strides.
    let sizes = shapes.iter().flat_map(|s| {
        let known = s.iter().map(|n| i64::try_from(*n).ok());
        [None].into_iter().chain(known).chain(s.iter().map(|_| None))
    });
    let options = schedule::Options {
        grain: Some(2.0),
        sizes: vec![(id, sizes.collect())],
        without: without.to_vec(),
        ..schedule::Options::new(4, Model::machine(8))
    };
    schedule(&mut module, &options);
    for backwards in [false, true] {
        assert_eq!(results_from(&program, (&module, id), &args, backwards), expected, "{backwards}\n{text}");
    }
    assert!(count(&module, additions) > 0, "nothing is added\n{text}");
    assert!(count(&module, parts) > 0, "there are no parts\n{text}");
    !named(&module, "copy").is_empty()
}

/// Triangular matrices, of which an iteration has one.
const TRIANGLES: &str = "
entry main [n] [k] [d] (x: [n][d]f64) (l: [k][d][d]f64) : [k][d][d]f64 =
  let row (m: [d][d]f64) (p: [d]f64) (i: i64) = f64.sum (map (\\j -> if j <= i then m[i, j] * p[j] else 0) (iota d))
  let one (p: [d]f64) (m: [d][d]f64) = f64.sum (tabulate d (\\i -> row m p i ** 2))
  in vjp (\\l -> f64.sum (map (\\p -> f64.sum (map (one p) l)) x)) l 1
";

#[test]
fn parts_add_to_rows_of_their_own_without_copies() {
    let sizes: [&[&[usize]]; 2] = [&[&[20, 40], &[60, 40, 40]], &[&[5, 9], &[13, 9, 9]]];
    assert!(!has_copies(TRIANGLES, sizes, &[]));
    assert!(has_copies(TRIANGLES, sizes, &["private-rows"]));
}

#[test]
fn parts_that_add_to_the_same_places_have_copies() {
    // Windows of an array: each is beside the next one, and in it.
    let text = "
entry main [n] [m] (a: [n]f64) (w: [m]f64) : [n]f64 =
  let score (a: [n]f64) (i: i64) = f64.sum (map (\\j -> a[i + j] * w[j] * a[i]) (iota m))
  in vjp (\\a -> f64.sum (map (score a) (iota (n - m)))) a 1
";
    assert!(has_copies(text, [&[&[300], &[5]]; 2], &[]));
}
