//! Loops that follow each other run in blocks and in parts. Which are taken, and the values of chains of stages that read their neighbours: those of the interpreter, in every
//! bit, whichever part runs first.

#[path = "common/scheduled.rs"]
mod scheduled;

use crate::common::compiled;
use crate::common::counted::{in_lanes, loops, named};
use crate::common::results_from;
use pullback_core::Value;
use pullback_interp::core::{Compiled, Options};
use pullback_kernel::schedule::{self, Model, schedule};
use pullback_kernel::{Ins, Module, lower, print};
use pullback_testkit::rng::Rng;
use scheduled::{code, model, numbers};

/// Whether there is a loop over blocks, seams or rounds, as its counter says.
fn has(module: &Module, counter: &str) -> bool {
    named(module, counter).into_iter().any(|ins| loops(ins) || in_lanes(ins))
}

fn is_in_blocks(text: &str) -> bool {
    has(&code(&compiled(text), model(), None, &[]), "seam")
}

/// The program in lanes, with arrays of these lengths, against the interpreter. Loops in any order run from their beginnings, and from their ends.
fn compare(text: &str, lengths: &[usize]) {
    let arrays: Vec<Value> = lengths.iter().map(|n| Value::f64_array(&[*n], &numbers(*n))).collect();
    compare_with(text, &arrays);
}

fn compare_with(text: &str, arrays: &[Value]) {
    let program = compiled(text);
    let interpreted = Compiled::new(&program.0);
    let (mut module, id) = lower(&program.0, program.1).expect("native");
    let options = schedule::Options { grain: Some(2.0), ..schedule::Options::new(4, model()) };
    schedule(&mut module, &options);
    for array in arrays {
        let args = [array.clone()];
        let expected = interpreted.run(program.1, &args, &Options::default()).expect("it runs").results;
        for backwards in [false, true] {
            let found = results_from(&program, (&module, id), &args, backwards);
            assert_eq!(found, expected, "{array:?}, {backwards}\n{text}");
        }
    }
}

/// Around the sizes of blocks (16) and of parts (32 or more).
const LENGTHS: [usize; 16] = [0, 1, 2, 7, 15, 16, 17, 31, 32, 33, 48, 63, 64, 65, 100, 150];

/// Stages of one step: each an array that is read somewhere before or after the element.
const HELPERS: &str = "
def at [n] (xs: [n]f64) (i: i64) : f64 = if 0 <= i && i < n then xs[i] else 0
";

#[test]
fn stages_that_read_their_neighbours_run_in_blocks() {
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

/// What stands between loops: sizes and memory, and code that reads first elements.
#[test]
fn code_between_loops_runs_once() {
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
    let differs =
        |n| print(&code(&program, model, n, &[])) != print(&code(&program, model, n, &["blocking"]));
    assert!(differs(Some(100_000)));
    assert!(!differs(Some(1000)) && !differs(None));
}

/// What threads share is neither cut at its borders nor split: of many parts the first and the last one would run alone.
#[test]
fn loops_over_parts_stay_whole() {
    let text = format!(
        "{HELPERS} entry main [n] (xs: [n]f64) : [n]f64 =
           let a = tabulate n (\\i -> at xs i + at xs (i - 1))
           let b = tabulate n (\\i -> at a (i + 1) - at a (i - 1))
           in tabulate n (\\i -> at b i * at b (i - 1))"
    );
    let (program, model) = (compiled(&text), Model::machine(8));
    for n in [200_000, 5_000_000] {
        let code = code(&program, model, Some(n), &[]);
        let [parts, seams] = ["part", "seam"].map(|counter| named(&code, counter));
        let is_one_loop = |counted: &[&Ins]| matches!(counted, [Ins::For { .. }]);
        assert!(is_one_loop(&parts) && is_one_loop(&seams), "{n}\n{}", print(&code));
    }
}

/// Stages of nests: an iteration has a row.
const NESTS: &str = "
def at [n] [m] (a: [n][m]f64) (i: i64) (j: i64) : f64 =
  if 0 <= i && i < n && 0 <= j && j < m then a[i, j] else 0
";

/// Matrices with as many rows as blocks (5) and parts (10 or more) have, and around that.
fn matrices() -> Vec<Value> {
    let shapes =
        [(0, 3), (3, 0), (1, 1), (4, 5), (5, 4), (6, 1), (10, 3), (11, 20), (21, 2), (30, 7), (52, 6)];
    shapes.iter().map(|(n, m)| Value::f64_array(&[*n, *m], &numbers(n * m))).collect()
}

#[test]
fn stages_of_nests_run_in_blocks_of_rows() {
    // (a) rows before and behind, (b) neighbours in a row, (c) both with a state made anew, (d) rows far from each other, (e) a row for a cell.
    let bodies = [
        "let b = tabulate_2d n m (\\i j -> at a i j + at a (i - 1) j)
         in tabulate_2d n m (\\i j -> at b (i - 1) j * at b (i + 1) j)",
        "let b = tabulate_2d n m (\\i j -> at a i j * at a i (j - 2))
         in tabulate_2d n m (\\i j -> at b i (j - 1) - at b (i + 1) (j + 1))",
        "loop a = copy a for _s < 3 do
           let b = tabulate_2d n m (\\i j -> at a i j + at a (i + 1) (j - 1))
           let c = tabulate_2d n m (\\i j -> at b (i - 1) j - at a i (j + 1))
           in tabulate_2d n m (\\i j -> at c (i + 1) j / 2 + at b i j)",
        "let b = tabulate_2d n m (\\i j -> at a i j * 2)
         let c = tabulate_2d n m (\\i j -> at b (i + 1) j + at a (i - 1) j)
         in tabulate_2d n m (\\i j -> at c (i - 1) (j + 1) + at b (i + 1) (j - 1))",
        "let b = tabulate_2d n m (\\i j -> at a i j + at a i (j + 1))
         let s = tabulate n (\\i -> f64.sum b[i])
         let c = tabulate_2d n m (\\i j -> at b (i + 1) j + 1)
         in tabulate_2d n m (\\i j -> at c (i - 1) j + s[i])",
    ];
    for body in bodies {
        let text = format!("{NESTS} entry main [n] [m] (a: [n][m]f64) : [n][m]f64 = {body}");
        assert!(is_in_blocks(&text), "{text}");
        compare_with(&text, &matrices());
    }
}

#[test]
fn rows_that_are_read_elsewhere_are_not_run_in_blocks() {
    let bodies = [
        // Columns, any row, too far.
        "tabulate_2d n m (\\i j -> at b j i)",
        "tabulate_2d n m (\\i j -> at b (n - 1 - i) j)",
        "tabulate_2d n m (\\i j -> at b (i - 3) j)",
        // Further in a row than it is long.
        "tabulate_2d n m (\\i j -> at (unflatten (flatten b :> [n * m]f64)) i (j * 4))",
    ];
    for body in bodies {
        let text = format!(
            "{NESTS} entry main [n] [m] (a: [n][m]f64) : [n][m]f64 =
               let b = tabulate_2d n m (\\i j -> at a i j + at a (i - 1) j) in {body}"
        );
        assert!(!is_in_blocks(&text), "{text}");
        compare_with(&text, &matrices());
    }
}

#[test]
fn blocks_of_rows_stay_near() {
    let text = format!(
        "{NESTS} entry main [n] [m] (a: [n][m]f64) : [n][m]f64 =
           let b = tabulate_2d n m (\\i j -> at a i j + at a (i - 1) j)
           in tabulate_2d n m (\\i j -> at b (i - 1) j * at b (i + 1) j)"
    );
    let (program, model) = (compiled(&text), Model::machine(8));
    let in_blocks = |n, m| {
        let (mut module, id) = lower(&program.0, program.1).expect("native");
        let sizes = vec![(id, vec![None, Some(n), Some(m)])];
        schedule(&mut module, &schedule::Options { sizes, ..schedule::Options::new(8, model) });
        has(&module, "seam")
    };
    assert!(in_blocks(1024, 1024) && in_blocks(1_000_000, 3) && in_blocks(400, 3000));
    // All is near, or not even a block is.
    assert!(!in_blocks(512, 512) && !in_blocks(100, 100_000));
}

fn is_in_rounds(text: &str) -> bool {
    let without = |passes: &[&'static str]| has(&code(&compiled(text), model(), None, passes), "round");
    assert!(!without(&["time-tiling"]), "{text}");
    without(&[])
}

/// Loops over steps, with one stage and several, states in turn and in place, tapes; no step, fewer than a round has, and more. Steps over vectors stay as they are.
#[test]
fn several_steps_run_in_a_block() {
    let vectors = [
        "loop y = copy xs for _s < STEPS do tabulate n (\\i -> (at y i + at y (i - 1) - at y (i + 1)) / 2)",
        "loop y = copy xs for s < STEPS do tabulate n (\\i -> at y (i - 2) / 2 + f64.i64 s * xs[i])",
        "loop y = copy xs for _s < STEPS do
           let a = tabulate n (\\i -> at y i + at y (i - 1))
           let b = tabulate n (\\i -> at a (i - 1) - at y i)
           in map2 (\\u i -> u / 2 + at b (i + 1)) y (iota n)",
        "let (y, v) = loop (y, v) = (copy xs, replicate n 0) for _s < STEPS do
           let v = tabulate n (\\i -> v[i] + at y (i + 1) - 2 * at y i + at y (i - 1))
           in (map2 (\\y v -> y + v / 4) y v, v)
         in map2 (-) y v",
        "vjp (\\xs -> f64.sum (loop y = xs for _s < STEPS do
           tabulate n (\\i -> at y i * at y (i - 1) - at y (i + 1)))) xs 1",
    ];
    let matrices_of = [
        "loop a = copy a for _s < STEPS do
           tabulate_2d n m (\\i j -> (at a (i - 1) j + at a (i + 1) j + at a i (j - 1)) / 4 + at a i (j + 1))",
        "loop a = copy a for _s < STEPS do
           let b = tabulate_2d n m (\\i j -> at a i j + at a (i + 1) (j - 1))
           in tabulate_2d n m (\\i j -> at b (i - 1) j / 2 - at a i (j + 1))",
        "loop a = copy a for s < STEPS do
           let b = tabulate_2d n m (\\i j -> at a i j + at a (i + 1) (j - 1) + f64.i64 s)
           let c = tabulate_2d n m (\\i j -> at b (i - 1) j / 2 - at a i (j + 1))
           in map2 (map2 (\\u v -> u / 2 + v)) a (tabulate_2d n m (\\i j -> at c (i + 1) j + at b i j))",
        "vjp (\\a -> f64.sum (flatten (loop a = a for _s < STEPS do
           tabulate_2d n m (\\i j -> at a (i - 1) j * at a (i + 1) j - at a i (j + 1) / 2)))) a 1",
    ];
    for steps in [0, 1, 3, 4, 5, 11] {
        let with = |text: &str| text.replace("STEPS", &steps.to_string());
        for body in vectors {
            let text = with(&format!("{HELPERS} entry main [n] (xs: [n]f64) : [n]f64 = {body}"));
            assert!(!is_in_rounds(&text), "{text}");
            compare(&text, &[0, 1, 17, 33, 150, 333]);
        }
        for body in matrices_of {
            let text = with(&format!("{NESTS} entry main [n] [m] (a: [n][m]f64) : [n][m]f64 = {body}"));
            assert!(steps <= 1 || is_in_rounds(&text), "{text}");
            compare_with(&text, &matrices());
        }
    }
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

/// The same with matrices, of which a stage reads neighbours in rows near its own.
fn chain_of_nests(rng: &mut Rng, gradient: bool) -> String {
    let mut text = String::new();
    let count = 2 + rng.below(3);
    let mut names = vec!["y".to_string()];
    for k in 0..count {
        let mut near = || rng.range(0, 2) as i64 - 1;
        let terms: Vec<String> = (0..2)
            .map(|t| {
                format!("at {} (i + {}) (j + {})", names[names.len() - 1 - t % names.len()], near(), near())
            })
            .collect();
        text += &format!("let b{k} = tabulate_2d n m (\\i j -> ({}) / 4)\n", terms.join(" - "));
        names.push(format!("b{k}"));
    }
    let last = &names[count];
    let steps = rng.range(1, 3);
    let loss =
        format!("loop y = copy a for _s < {steps} do\n{text} in map2 (map2 (\\u v -> u / 2 + v)) y {last}");
    let main = format!("{NESTS} entry main [n] [m] (a: [n][m]f64) : [n][m]f64 =");
    match gradient {
        true => format!("{main} vjp (\\a -> f64.sum (flatten ({loss}))) a 1"),
        false => format!("{main} {loss}"),
    }
}

#[test]
fn random_stages_of_nests_agree() {
    let mut rng = Rng::new(49);
    let mut taken = 0;
    for k in 0..30 {
        let text = chain_of_nests(&mut rng, k % 2 == 1);
        taken += usize::from(is_in_blocks(&text));
        compare_with(&text, &matrices());
    }
    assert!(taken > 15, "{taken} of 30");
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
