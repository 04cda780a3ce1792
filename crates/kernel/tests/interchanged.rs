//! Sums inside maps, with the loop of the sum as far out as the results inside of it stay near: which order is taken for which
//! sizes, and the values of all orders.

use crate::common::counted::{additions, in_lanes, loops};
use crate::common::parse;
use pullback_core::{FunId, Program, Value};
use pullback_kernel::run::{self, Memory, Word, run};
use pullback_kernel::schedule::{self, Model, schedule};
use pullback_kernel::values::{from_words, to_words};
use pullback_kernel::{Block, FunctionId, Ins, Module, Operand, lower, print};

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
fn nests(code: &Block) -> Vec<Vec<Operand>> {
    fn find(code: &Block, around: &[Operand], out: &mut Vec<Vec<Operand>>) {
        for ins in code {
            let end = match ins {
                Ins::For { to, .. } | Ins::Lanes { to, .. } => Some(*to),
                _ => None,
            };
            if additions(ins) {
                out.push(around.to_vec());
            }
            let inside: Vec<Operand> = around.iter().copied().chain(end).collect();
            ins.blocks().into_iter().for_each(|block| find(block, &inside, out));
        }
    }
    let mut out = Vec::new();
    find(code, &[], &mut out);
    out
}

/// The numbers of the first result of a function, as kernel IR.
fn floats((program, f): (&Program, FunId), (module, id): (&Module, FunctionId), args: &[Value]) -> Vec<f64> {
    let fun = &program.funs[f];
    let mut memory = Memory::new(1 << 22);
    let mut words: Vec<Word> = Vec::new();
    for (p, value) in fun.params.iter().zip(args) {
        to_words(&mut memory, value, &program.vars[*p].ty, &mut words).expect("arguments");
    }
    let options = run::Options { steps: 400_000_000, backwards: false };
    let results = run(module, id, &words, &mut memory, options).expect("it runs");
    from_words(&memory, &fun.results[0], &mut results.into_iter()).expect("values").floats()
}

/// The place of the sum's loop among the four, for sizes known when loops are chosen; values are compared on the way.
fn ordered([p, k, d]: [i64; 3]) -> usize {
    let (program, f) = parse(PRODUCTS);
    let (module, id) = lower(&program, f).expect("native");
    // A pointer, sizes, strides.
    let sizes = vec![None, Some(p), Some(k), Some(d), None, None, None];
    let options = schedule::Options {
        sizes: vec![(id, sizes)],
        without: schedule::optional(),
        ..schedule::Options::new(1, Model::machine(1))
    };
    let mut chosen = module.clone();
    schedule(&mut chosen, &options);
    // An order that was chosen for some sizes is right for all; as they were lowered, loops choose theirs while they run.
    for (module, [p, k, d]) in [(&module, [p, k, d]), (&chosen, [p, k, d.min(33)]), (&chosen, [3, 2, 5])] {
        // Sixteenths, so that no sum rounds.
        let a: Vec<f64> = (0..p * k * d).map(|x| ((x * 7) % 61 - 30) as f64 / 16.0).collect();
        let product = |k_: i64, i: i64, j: i64| {
            (0..p).map(|p| a[((p * k + k_) * d + i) as usize] * a[((p * k + k_) * d + j) as usize]).sum()
        };
        let expected: Vec<f64> = (0..k * d * d).map(|at| product(at / (d * d), at / d % d, at % d)).collect();
        let arg = Value::f64_array(&[p as usize, k as usize, d as usize], &a);
        let found = floats((&program, f), (module, id), std::slice::from_ref(&arg));
        assert_eq!(found, expected, "{p} {k} {d}");
    }
    let all = nests(&module.functions[id].body);
    assert_eq!(all.len(), 3, "an order for each place of the sum's loop\n{}", print(&module));
    let f = &chosen.functions[id];
    let [nest] = &nests(&f.body)[..] else { panic!("one order is left\n{}", print(&chosen)) };
    let points = Operand::Reg(f.params[1]);
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

/// The same for a triangle, of vectors that another loop over the points makes.
const OF_DIFFERENCES: &str = "
fun f(xs: [][]f64, mus: [][]f64): [][][]f64 {
    let p: i64 = size(xs, 0)
    let k: i64 = size(mus, 0)
    let d: i64 = size(mus, 1)
    let a: [][][]f64 = map p [xs] (x: []f64) {
        let ak: [][]f64 = map k [mus] (mu: []f64) {
            let ad: []f64 = map d [x, mu] (u: f64, v: f64) {
                let w: f64 = sub.f64(u, v)
                in w
            }
            in ad
        }
        in ak
    }
    let a2: [][][]f64 = rearrange([1, 2, 0], a)
    let is: []i64 = iota(d)
    let out: [][][]f64 = map k [a2] (ak: [][]f64) {
        let rows: [][]f64 = map d [is, ak] (i: i64, x: []f64) {
            let row: []f64 = map d [is, ak] (j: i64, y: []f64) {
                let below: bool = le.i64(j, i)
                let r: f64 = if below {
                    let sum: f64 = map_reduce_comm p [0.0f64] [x, y] (u: f64, v: f64) {
                        let uv: f64 = mul.f64(u, v)
                        in uv
                    } with (l: f64, r: f64) { let s: f64 = add.f64(l, r) in s }
                    in sum
                } else { in 0.0f64 }
                in r
            }
            in row
        }
        in rows
    }
    in out }";

/// Whether all is done in one loop over the points, for sizes known when loops are chosen; values are compared on the way.
fn is_joined([p, k, d]: [i64; 3], without: &[&'static str]) -> bool {
    let (program, f) = parse(OF_DIFFERENCES);
    let (mut module, id) = lower(&program, f).expect("native");
    let sizes = [Some(p), Some(d), None, None, None, Some(k), Some(d), None, None];
    let sizes = [&[None][..], &sizes].concat();
    let options = schedule::Options {
        sizes: vec![(id, sizes)],
        without: without.to_vec(),
        most: 64,
        ..schedule::Options::new(8, Model::machine(8))
    };
    schedule(&mut module, &options);
    // Code that was chosen for some sizes is right for all: the interpreter has time for these.
    for [p, k, d] in [[p.min(67), k.min(3), d.min(9)], [1, 2, 17], [8, 1, 1], [0, 2, 3], [3, 0, 2]] {
        let xs: Vec<f64> = (0..p * d).map(|x| ((x * 7) % 61 - 30) as f64 / 16.0).collect();
        let mus: Vec<f64> = (0..k * d).map(|x| ((x * 5) % 53 - 26) as f64 / 16.0).collect();
        let difference = |p: i64, k: i64, i: i64| xs[(p * d + i) as usize] - mus[(k * d + i) as usize];
        let product = |k: i64, i: i64, j: i64| {
            let sum = (0..p).map(|p| difference(p, k, i) * difference(p, k, j)).sum();
            if j <= i { sum } else { 0.0 }
        };
        let expected: Vec<f64> = (0..k * d * d).map(|at| product(at / (d * d), at / d % d, at % d)).collect();
        let [p, k, d] = [p, k, d].map(|n| n as usize);
        let args = [Value::f64_array(&[p, d], &xs), Value::f64_array(&[k, d], &mus)];
        assert_eq!(floats((&program, f), (&module, id), &args), expected, "{p} {k} {d}");
    }
    let is_loop = |ins: &&Ins| loops(ins) || in_lanes(ins);
    let outermost: Vec<&Ins> = module.functions[id].body.iter().filter(is_loop).collect();
    let [points, rest @ ..] = &outermost[..] else { panic!("no loop\n{}", print(&module)) };
    in_lanes(points) && rest.is_empty()
}

/// Results that are not near are gone over once for all points in lanes, if the points' loops can be joined.
#[test]
fn results_may_be_larger_where_loops_over_the_points_are_joined() {
    assert!(is_joined([200, 9, 64], &[]), "295 kB");
    assert!(!is_joined([200, 9, 64], &["fusion"]));
    assert!(!is_joined([200, 9, 64], &["larger-results"]));
    assert!(!is_joined([2, 33, 256], &[]), "17 MB");
}
