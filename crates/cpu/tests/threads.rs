//! Results do not depend on the number of threads, in any bit.

use pullback_core::{Type, Value};
use pullback_cpu::{Executable, Options};
use pullback_driver::{Kind, Session, Settings, Wrt};
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
    let (module, id) = lower(&ready.program, ready.fun).expect("native");
    let f = &ready.program.funs[ready.fun];
    let types: Vec<&Type> = f.params.iter().map(|p| &ready.program.vars[*p].ty).collect();
    let args: Vec<(&Type, &Value)> = types.into_iter().zip(&args).collect();
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
