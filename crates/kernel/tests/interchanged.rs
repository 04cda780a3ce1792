//! Sums inside maps, with the loop of the sum as far out as the results inside of it stay near: which order is taken for which
//! sizes, and the values of all orders.

mod common;

use common::parse;
use pullback_core::Value;
use pullback_kernel::run::{self, Memory, Word, run};
use pullback_kernel::schedule::{self, Model, Pass, schedule};
use pullback_kernel::values::{from_words, to_words};
use pullback_kernel::{lower, print};

/// For each of a batch, the sum over points of the products of all pairs of elements of a vector.
const PRODUCTS: &str = "
fun f(a: [][][]f64): [][][]f64 {
    let p: i64 = size(a, 0)
    let k: i64 = size(a, 1)
    let d: i64 = size(a, 2)
    let a2: [][][]f64 = rearrange([1, 2, 0], a)
    let out: [][][]f64 = map k [a2] (ak: [][]f64) {
        let rows: [][]f64 = map d [ak] (x: []f64) {
            let row: []f64 = map d [ak] (y: []f64) {
                let sum: f64 = map_reduce_comm p [0.0f64] [x, y] (u: f64, v: f64) {
                    let uv: f64 = mul.f64(u, v)
                    in uv
                } with (l: f64, r: f64) { let s: f64 = add.f64(l, r) in s }
                in sum
            }
            in row
        }
        in rows
    }
    in out }";

/// The ends of the loops around each addition to memory, from the outside in.
fn nests(code: &str) -> Vec<Vec<String>> {
    let mut open: Vec<(usize, String)> = Vec::new();
    let mut out = Vec::new();
    for line in code.lines() {
        let depth = line.len() - line.trim_start().len();
        open.retain(|(at, _)| *at < depth);
        if let Some((_, end)) = line.split_once(" to ").filter(|_| line.ends_with('{')) {
            open.push((depth, end.split(' ').next().unwrap_or_default().to_string()));
        }
        if line.contains(" += ") {
            out.push(open.iter().map(|(_, end)| end.clone()).collect());
        }
    }
    out
}

/// The place of the sum's loop among the four, for sizes known when loops are chosen; values are compared on the way.
fn ordered([p, k, d]: [i64; 3]) -> usize {
    let (program, f) = parse(PRODUCTS);
    // Sixteenths, so that no sum rounds.
    let a: Vec<f64> = (0..p * k * d).map(|x| ((x * 7) % 61 - 30) as f64 / 16.0).collect();
    let product = |k_: i64, i: i64, j: i64| {
        (0..p).map(|p| a[((p * k + k_) * d + i) as usize] * a[((p * k + k_) * d + j) as usize]).sum()
    };
    let expected: Vec<f64> = (0..k * d * d).map(|at| product(at / (d * d), at / d % d, at % d)).collect();
    let arg = Value::f64_array(&[p as usize, k as usize, d as usize], &a);
    let (module, id) = lower(&program, f).expect("native");
    // A pointer, sizes, strides.
    let sizes = vec![None, Some(p), Some(k), Some(d), None, None, None];
    let options = schedule::Options {
        sizes: vec![(id, sizes)],
        without: Pass::ALL.to_vec(),
        ..schedule::Options::new(1, Model::machine(1))
    };
    let mut chosen = module.clone();
    schedule(&mut chosen, &options);
    let fun = &program.funs[f];
    for module in [&module, &chosen] {
        let mut memory = Memory::new(1 << 26);
        let mut words: Vec<Word> = Vec::new();
        to_words(&mut memory, &arg, &program.vars[fun.params[0]].ty, &mut words).expect("arguments");
        let options = run::Options { steps: 400_000_000, backwards: false };
        let results = run(module, id, &words, &mut memory, options).expect("it runs");
        let found = from_words(&memory, &fun.results[0], &mut results.into_iter()).expect("values").floats();
        assert_eq!(found, expected, "{p} {k} {d}");
    }
    let (code, chosen) = (print(&module), print(&chosen));
    assert_eq!(nests(&code).len(), 3, "an order for each place of the sum's loop\n{code}");
    let [nest] = &nests(&chosen)[..] else { panic!("one order is left\n{chosen}") };
    let points = chosen.split(['(', ':', ',']).nth(3).expect("the first size").trim();
    nest.iter().position(|end| *end == points).expect("the sum's loop")
}

#[test]
fn the_loop_of_a_sum_is_as_far_out_as_results_stay_near() {
    // 256 kB of results are near: all of them, those of one of the batch, a row of those.
    assert_eq!(ordered([3, 7, 9]), 0);
    assert_eq!(ordered([2, 5, 96]), 1);
    assert_eq!(ordered([2, 3, 190]), 2);
    assert_eq!(ordered([2, 2, 128]), 0);
    assert_eq!(ordered([2, 3, 128]), 1);
    assert_eq!(ordered([2, 2, 181]), 1);
    assert_eq!(ordered([2, 1, 182]), 2);
    // Sizes that make no results, or no sum.
    assert_eq!(ordered([0, 2, 3]), 0);
    assert_eq!(ordered([2, 0, 3]), 0);
}
