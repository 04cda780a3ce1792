//! Loops that follow each other run in blocks and in parts. Which are taken, and the values of chains of stages that read their neighbours: those of the interpreter, in every
//! bit, whichever part runs first.

mod common;
#[cfg(feature = "mutations")]
#[path = "common/errors.rs"]
mod errors;
#[path = "common/scheduled.rs"]
mod scheduled;

use common::results_from;
use pullback_core::Value;
use pullback_interp::core::{Compiled, Options};
use pullback_kernel::lower;
use pullback_kernel::schedule::{self, Model, Pass, schedule};
use pullback_testkit::rng::Rng;
use scheduled::{code, compiled, model, numbers};

fn is_in_blocks(text: &str) -> bool {
    code(&compiled(text), model(), None, &[]).contains(" seam_")
}

/// The program in lanes, with arrays of these lengths, against the interpreter. Loops in any order run from their beginnings, and from their ends.
fn compare(text: &str, lengths: &[usize]) {
    let program = compiled(text);
    let interpreted = Compiled::new(&program.0);
    let (mut module, id) = lower(&program.0, program.1).expect("native");
    let options = schedule::Options { grain: Some(2.0), ..schedule::Options::new(4, model()) };
    schedule(&mut module, &options);
    for n in lengths {
        let args = [Value::f64_array(&[*n], &numbers(*n))];
        let expected = interpreted.run(program.1, &args, &Options::default()).expect("it runs").results;
        for backwards in [false, true] {
            let found = results_from(&program, (&module, id), &args, backwards);
            assert_eq!(found, expected, "{n} elements, {backwards}\n{text}");
        }
    }
}

/// Around the sizes of blocks (16) and of parts (32 or more).
const LENGTHS: [usize; 16] = [0, 1, 2, 7, 15, 16, 17, 31, 32, 33, 48, 63, 64, 65, 100, 150];

/// Stages of one step: each an array that is read somewhere before or after the element.
const HELPERS: &str = "
def at [n] (xs: [n]f64) (i: i64) : f64 = if 0 <= i && i < n then xs[i] else 0
";

fn steps_of_stages() {
    // (a) neighbours before, (b) after, (c) on both sides, further ones; (d) a state that is written in place; (e) an argument read at a number.
    let bodies = [
        "let a = tabulate n (\\i -> at xs i + at xs (i - 1)) in tabulate n (\\i -> at a i * at a (i - 1))",
        "let a = tabulate n (\\i -> at xs i + at xs (i + 1)) in tabulate n (\\i -> at a i - at a (i + 1))",
        "let a = tabulate n (\\i -> at xs i + 1)
         let b = tabulate n (\\i -> at a (i - 1) + at a (i + 1))
         in tabulate n (\\i -> at b (i - 1) + at b (i + 2) - at a i)",
        "let a = tabulate n (\\i -> at xs (i + 8) + 1)
         let b = tabulate n (\\i -> at a (i - 3) + at xs i)
         in tabulate n (\\i -> at b (i + 3) + at a (i + 1))",
        "loop y = xs for _s < 3 do
           let a = tabulate n (\\i -> at y i + at y (i - 1))
           let b = tabulate n (\\i -> at a (i - 1) - at y i)
           in map2 (\\u i -> u + at b (i - 1) + at b i) y (iota n)",
        "loop y = copy xs for _s < 3 do
           let a = tabulate n (\\i -> if i == 0 then xs[0] else at y i + at y (i + 1))
           in tabulate n (\\i -> at a (i - 1) + at a (i + 1) + xs[0])",
        "let a = tabulate n (\\i -> at xs i * 2)
         let b = tabulate n (\\i -> at a (i + 1) + at a (i - 1))
         let c = tabulate n (\\i -> at b (i + 1) + at b (i - 1))
         let d = tabulate n (\\i -> at c (i + 1) + at c (i - 1) + at a i)
         in tabulate n (\\i -> at d (i + 2) + at c (i - 2) + at b i)",
    ];
    for body in bodies {
        let text = format!("{HELPERS} entry main [n] (xs: [n]f64) : [n]f64 = {body}");
        assert!(is_in_blocks(&text), "{text}");
        compare(&text, &LENGTHS);
    }
}

#[test]
fn stages_that_read_their_neighbours_run_in_blocks() {
    steps_of_stages();
}

/// What stands between loops: sizes and memory, and code that reads first elements.
fn first_elements() {
    let text = format!(
        "{HELPERS}
         entry main [n] (xs: [n]f64) : ([n]f64, f64) =
           loop (y, s) = (copy xs, 0) for _s < 3 do
             let a = tabulate n (\\i -> at y i + at y (i - 1))
             let first = if 1 < n then a[0] * a[1] else 2
             let b = tabulate n (\\i -> at a (i + 1) - at y (i - 1))
             let second = if 2 < n then b[2] + a[0] else 3
             in (tabulate n (\\i -> at b (i - 1) + at b (i + 1)), s + first + second)"
    );
    assert!(is_in_blocks(&text));
    compare(&text, &LENGTHS);
}

#[test]
fn code_between_loops_runs_once() {
    first_elements();
}

#[test]
fn what_is_read_elsewhere_is_not_run_in_blocks() {
    let bodies = [
        // Any element.
        "let a = tabulate n (\\i -> at xs i + at xs (i - 1)) in tabulate n (\\i -> at a (n - 1 - i))",
        "let a = tabulate n (\\i -> at xs i + at xs (i - 1)) in tabulate n (\\i -> at a (i / 2))",
        // Of all iterations.
        "let a = tabulate n (\\i -> at xs i + at xs (i - 1)) in tabulate n (\\i -> at a i + f64.sum a)",
        // Too far.
        "let a = tabulate n (\\i -> at xs i + at xs (i - 1)) in tabulate n (\\i -> at a (i - 9))",
        // Nothing is handed on.
        "tabulate n (\\i -> at xs i + at xs (i - 1))",
    ];
    for body in bodies {
        let text = format!("{HELPERS} entry main [n] (xs: [n]f64) : [n]f64 = {body}");
        assert!(!is_in_blocks(&text), "{text}");
        compare(&text, &[0, 1, 40, 100]);
    }
}

#[test]
fn near_memory_is_left_alone() {
    let text = format!(
        "{HELPERS} entry main [n] (xs: [n]f64) : [n]f64 =
           let a = tabulate n (\\i -> at xs i + at xs (i - 1)) in tabulate n (\\i -> at a i * at a (i - 1))"
    );
    let (program, model) = (compiled(&text), Model::machine(8));
    let differs = |n| code(&program, model, n, &[]) != code(&program, model, n, &[Pass::Blocks]);
    assert!(differs(Some(100_000)));
    assert!(!differs(Some(1000)) && !differs(None));
}

/// A chain of stages, each a sum of products of earlier ones at places near the element.
fn chain(rng: &mut Rng, gradient: bool) -> String {
    let mut text = String::new();
    let count = 2 + rng.below(4);
    let mut names = vec!["y".to_string()];
    for k in 0..count {
        let mut terms = Vec::new();
        for _ in 0..=rng.below(3) {
            let array = &names[rng.below(names.len())];
            let d = rng.range(0, 8) as i64 - 4;
            let scale = rng.range(1, 3);
            terms.push(format!("{scale} * at {array} (i + {d})"));
        }
        let sum = terms.join(" - ");
        text += &format!("let a{k} = tabulate n (\\i -> ({sum}) / 4)\n");
        if rng.below(4) == 0 {
            text += &format!("let t = if 3 < n then t + a{k}[{}] else t\n", rng.below(3));
        }
        names.push(format!("a{k}"));
    }
    let last = &names[count];
    let next = match rng.below(3) {
        0 => last.clone(),
        1 => format!("map2 (\\u v -> u / 2 + v) y {last}"),
        _ => format!("tabulate n (\\i -> at {last} (i - 1) + at y i / 2)"),
    };
    let steps = rng.range(1, 3);
    let loss = format!("loop (y, t) = (copy xs, 0) for _s < {steps} do\n{text} in ({next}, t)");
    if gradient {
        format!(
            "{HELPERS} entry main [n] (xs: [n]f64) : [n]f64 =
               vjp (\\xs -> let (y, t) = {loss} in f64.sum y + t) xs 1"
        )
    } else {
        format!("{HELPERS} entry main [n] (xs: [n]f64) : ([n]f64, f64) = {loss}")
    }
}

fn random_chains(count: usize) {
    let mut rng = Rng::new(47);
    let mut taken = 0;
    for k in 0..count {
        let text = chain(&mut rng, k % 2 == 1);
        taken += usize::from(is_in_blocks(&text));
        compare(&text, &[0, 1, 5, 33, 64, 101]);
    }
    assert!(taken * 3 > count, "{taken} of {count}");
}

#[test]
fn random_stages_agree() {
    random_chains(60);
}

#[cfg(feature = "mutations")]
#[test]
fn deliberate_errors_are_noticed() {
    let tests: [fn(); 2] = [steps_of_stages, first_elements];
    assert_eq!(errors::unnoticed(pullback_kernel::Mutation::BLOCKS, &tests), []);
}
