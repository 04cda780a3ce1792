//! Results do not depend on the number of threads, in any bit.

use pullback_core::{Type, Value};
use pullback_cpu::{Executable, Options};
use pullback_driver::{Kind, Ready, Session, Settings, Wrt};
use pullback_interp::core::Options as Interpreter;
use pullback_kernel::{Block, Ins, Module, Order, lower};
use pullback_testkit::problems::PROBLEMS;
use std::num::NonZeroUsize;
use std::path::Path;

/// The numbers of a gradient on so many threads, and whether a loop was cut into parts.
fn gradient(name: &str, size: usize, threads: usize) -> Option<(Vec<u64>, bool)> {
    let problem = PROBLEMS.iter().find(|p| p.name == name).expect("a problem");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = std::fs::read_to_string(root.join(problem.file)).expect("the program");
    let session = Session::compile(problem.file, &text, Settings::default()).expect("it compiles");
    let entry = session.entry(Some(problem.entry)).expect("the entry point");
    let mut args = (problem.args)(size);
    let primal =
        session.primal(&entry).expect("it lowers").run(&args, &Interpreter::default()).expect("it runs");
    args.extend(primal.results.into_iter().filter(|v| matches!(v, Value::Scalar(_))));
    let selected = session.select(&entry, &Wrt::parse(problem.wrt)).expect("the parameters");
    let ready = session.derivative(&entry, Kind::Vjp, &selected, &mut |_, _| {}).expect("a gradient");
    run(&ready, &args, threads)
}

/// The numbers of three calls on so many threads, and whether a loop was cut into parts.
fn run(ready: &Ready, args: &[Value], threads: usize) -> Option<(Vec<u64>, bool)> {
    let (module, all) = calls(ready, args, threads, false)?;
    let in_parts = module.functions.iter().flat_map(|f| &f.body).any(|i| matches!(i, Ins::Chunks { .. }));
    Some((all, in_parts))
}

/// What is compiled, and the numbers of three calls.
fn calls(ready: &Ready, args: &[Value], threads: usize, relaxed: bool) -> Option<(Module, Vec<u64>)> {
    let (module, id) = lower(&ready.program, ready.fun).expect("native");
    let f = &ready.program.funs[ready.fun];
    let types: Vec<&Type> = f.params.iter().map(|p| &ready.program.vars[*p].ty).collect();
    let args: Vec<(&Type, &Value)> = types.into_iter().zip(args).collect();
    let threads = NonZeroUsize::new(threads).expect("a thread");
    let sizes = vec![(id, pullback_abi::sizes(&args))];
    let executable =
        Executable::new(&module, &Options { sizes, threads, relaxed, ..Options::default() }).ok()?;
    let mut all = Vec::new();
    let mut session = executable.session();
    for _ in 0..3 {
        let out = session.call(id, &args, &f.results, None).expect("it runs");
        all.extend(out.results.iter().flat_map(Value::floats).map(f64::to_bits));
    }
    Some((executable.module().clone(), all))
}

#[test]
fn gradients_have_the_same_bits_on_any_number_of_threads() {
    for (name, size) in [("gmm", 3000), ("kmeans", 20_000), ("lse", 200_000), ("ba", 3000)] {
        let Some((one, in_parts)) = gradient(name, size, 1) else {
            println!("skipped: no LLVM");
            return;
        };
        assert!(in_parts, "{name} has loops in parts");
        for threads in [2, 3, 4] {
            let (several, _) = gradient(name, size, threads).expect("as before");
            assert!(one == several, "{name} on {threads} threads");
        }
    }
}

/// Whether a loop whose iterations come one after the other has one in parts in it.
fn in_loops(block: &Block) -> bool {
    let parts = |b: &Block| b.iter().any(|i| matches!(i, Ins::Chunks { .. }));
    let ordered = |i: &Ins| matches!(i, Ins::For { order: Order::Given, .. } | Ins::While { .. });
    let here = |i: &Ins| ordered(i) && i.blocks().into_iter().any(parts);
    block.iter().any(|i| here(i) || i.blocks().into_iter().any(in_loops))
}

/// Maps, sums and additions inside of loops over time, forward and back; a loop until something holds.
#[test]
fn loops_inside_of_loops_over_time_are_shared_by_threads() {
    let text = "def steps [n] (x: [n]f64) (at: [n]i64) (k: i64) : f64 =
          let end = loop u = copy x for _t < k do
            let mean = f64.sum u / f64.i64 n
            let moved = tabulate n (\\i -> u[at[i]] + 0.1 * u[(i + 1) % n] - 0.05 * mean)
            in map (\\y -> y - 0.1 * y * y * y) moved
          in f64.sum end
        entry gradient [n] (x: [n]f64) (at: [n]i64) (k: i64) : [n]f64 = vjp (\\x -> steps x at k) x 1
        entry halved [n] (x: [n]f64) (most: f64) : [n]f64 =
          loop u = copy x while f64.sum (map (\\y -> y * y) u) > most do map (\\y -> y / 2 + f64.sin y / 9) u";
    let session = Session::compile("time.fut", text, Settings::default()).expect("it compiles");
    let of = |n: usize, name: &str| {
        let xs: Vec<f64> = (0..n).map(|k| ((k * k + 7 * k) % 23) as f64 / 23.0).collect();
        let at: Vec<i64> = (0..n).map(|k| ((k * 31) % n) as i64).collect();
        let args = match name {
            "gradient" => vec![Value::f64s(&xs), Value::i64s(&at), Value::i64(3)],
            _ => vec![Value::f64s(&xs), Value::f64(0.01)],
        };
        let ready = session.primal(&session.entry(Some(name)).expect(name)).expect(name);
        (ready, args)
    };
    for name in ["gradient", "halved"] {
        let (ready, args) = of(300_000, name);
        let Some((module, one)) = calls(&ready, &args, 1, false) else {
            println!("skipped: no LLVM");
            return;
        };
        assert!(
            module.functions.iter().any(|f| in_loops(&f.body)),
            "{name}: a loop in parts in one over time"
        );
        for threads in [2, 3, 4] {
            let (_, several) = calls(&ready, &args, threads, false).expect("as before");
            assert!(one == several, "{name} on {threads} threads");
        }
        let expected = ready.run(&args, &Interpreter::default()).expect("it runs").results;
        let expected: Vec<f64> = expected.iter().flat_map(Value::floats).collect();
        for (found, expected) in one.iter().map(|bits| f64::from_bits(*bits)).zip(expected) {
            assert!(
                (found - expected).abs() <= 1e-10 * expected.abs().max(1.0),
                "{name}: {found}, {expected}"
            );
        }
        // To find out how many parts a small loop is would take a part of its time.
        let (ready, args) = of(30, name);
        let (module, _) = calls(&ready, &args, 2, false).expect("as before");
        assert!(!module.functions.iter().any(|f| in_loops(&f.body)), "{name}: small loops stay whole");
    }
}

/// Operators that are not symmetric: parts of the elements, in their order. The sum is exact, so that the interpreter gives the
/// same bits; of equal elements the first one is the largest.
#[test]
fn operators_that_keep_the_order_are_shared_by_threads() {
    let text = "entry affine [n] (x: [n](f64, f64)) : (f64, f64) =
          reduce (\\(a, b) (c, d) -> (a * c, b * c + d)) (1, 0) x
        entry first [n] (x: [n](f64, f64)) : (f64, f64) =
          let larger (a, i) (b, j) = if a < b then (b, j) else (a, i)
          let (top, i) = reduce larger (-f64.inf, -1) (zip (map (\\(_, b) -> b) x) (iota n))
          in (top, f64.i64 i)
        entry products [n] (x: [n](f64, f64)) : [2][2]f64 =
          let product (a: [2][2]f64) (b: [2][2]f64) =
            tabulate 2 (\\i -> tabulate 2 (\\j -> a[i, 0] * b[0, j] + a[i, 1] * b[1, j]))
          in reduce product [[1, 0], [0, 1]] (map (\\(a, b) -> [[a, b], [0, 1]]) x)";
    let session = Session::compile("operators.fut", text, Settings::default()).expect("it compiles");
    let signs: Vec<f64> = (0..300_000).map(|k| if k % 3 == 0 { -1.0 } else { 1.0 }).collect();
    let steps: Vec<f64> = (0..300_000u64).map(|k| ((k * k + 7 * k) % 23) as f64 - 9.0).collect();
    let args = [Value::f64s(&signs), Value::f64s(&steps)];
    for name in ["affine", "first", "products"] {
        let entry = session.entry(Some(name)).expect("the entry point");
        let ready = session.primal(&entry).expect("it lowers");
        let expected = ready.run(&args, &Interpreter::default()).expect("it runs").results;
        let expected: Vec<u64> = expected.iter().flat_map(Value::floats).map(f64::to_bits).collect();
        for threads in [1, 2, 4] {
            let Some((found, in_parts)) = run(&ready, &args, threads) else {
                println!("skipped: no LLVM");
                return;
            };
            assert!(in_parts, "{name} is in parts");
            assert_eq!(found, expected.repeat(3), "{name} on {threads} threads");
        }
    }
}

/// Sums over indices into an array: the gradient adds where the indices say. They are whole numbers, so that every order gives
/// the same sum.
const INDEXED: &str = "def value [n] [m] (at: [n]i64) (x: [m]f64) : f64 =
      f64.sum (map (\\k -> let y = x[k] in y * y * y) at)
    entry gradient [n] [m] (at: [n]i64) (x: [m]f64) : [m]f64 = vjp (value at) x 1";

/// The indices, the array, and the gradient by hand.
fn indexed(n: usize, m: usize) -> (Vec<Value>, Vec<f64>) {
    let at: Vec<i64> = (0..n).map(|k| ((k * k + 3 * k) % m) as i64).collect();
    let x: Vec<f64> = (0..m).map(|j| (j % 5) as f64 - 2.0).collect();
    let mut expected = vec![0.0; m];
    for k in &at {
        let y = x[*k as usize];
        expected[*k as usize] += 3.0 * y * y;
    }
    (vec![Value::i64s(&at), Value::f64s(&x)], expected)
}

fn adds(block: &Block, atomically: bool) -> bool {
    block.iter().any(|ins| {
        let here = match ins {
            Ins::Accumulate { atomic, .. } | Ins::AccumulateLanes { atomic, .. } => *atomic == atomically,
            _ => false,
        };
        here || ins.blocks().into_iter().any(|b| adds(b, atomically))
    })
}

/// Few elements: a copy for each part. Many: one thread adds, or, relaxed, all of them at the same time.
#[test]
fn sums_over_indices_lose_nothing_on_any_number_of_threads() {
    let session = Session::compile("indexed.fut", INDEXED, Settings::default()).expect("it compiles");
    let entry = session.entry(Some("gradient")).expect("the entry point");
    let ready = session.primal(&entry).expect("it lowers");
    for (n, m) in [(400_000, 50), (400_000, 3_000), (400_000, 100_000), (400_000, 7), (0, 9), (9, 1)] {
        let (args, expected) = indexed(n, m);
        let expected: Vec<u64> = expected.into_iter().map(f64::to_bits).collect::<Vec<_>>().repeat(3);
        for (threads, relaxed) in [(1, false), (1, true), (2, false), (2, true), (4, false), (4, true)] {
            let Some((module, found)) = calls(&ready, &args, threads, relaxed) else {
                println!("skipped: no LLVM");
                return;
            };
            let atomic = module.functions.iter().any(|f| adds(&f.body, true));
            assert_eq!(atomic, n > 0 && relaxed && threads > 1, "{n} indices of {m} on {threads} threads");
            assert!(found == expected, "{n} indices of {m} on {threads} threads, relaxed: {relaxed}");
        }
    }
}
