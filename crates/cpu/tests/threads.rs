//! Results do not depend on the number of threads, in any bit.

use pullback_core::{Type, Value};
use pullback_cpu::{Executable, Options};
use pullback_driver::{Kind, Ready, Session, Settings, Wrt};
use pullback_interp::core::Options as Interpreter;
use pullback_kernel::{Ins, lower};
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
    let (module, id) = lower(&ready.program, ready.fun).expect("native");
    let f = &ready.program.funs[ready.fun];
    let types: Vec<&Type> = f.params.iter().map(|p| &ready.program.vars[*p].ty).collect();
    let args: Vec<(&Type, &Value)> = types.into_iter().zip(args).collect();
    let threads = NonZeroUsize::new(threads).expect("a thread");
    let options = Options { sizes: vec![(id, pullback_words::sizes(&args))], threads, ..Options::default() };
    let executable = Executable::new(&module, &options).ok()?;
    let in_parts = executable.module().functions[id].body.iter().any(|i| matches!(i, Ins::Chunks { .. }));
    let mut all = Vec::new();
    let mut session = executable.session();
    for _ in 0..3 {
        let out = session.call(id, &args, &f.results, None).expect("it runs");
        all.extend(out.results.iter().flat_map(Value::floats).map(f64::to_bits));
    }
    Some((all, in_parts))
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
