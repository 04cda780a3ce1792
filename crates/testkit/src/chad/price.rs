//! What the theory costs: gradients of the problems by Efficient CHAD on arrays and by Fast CHAD, counted.

use crate::problems::{PROBLEMS, Problem};
use pullback_ad::chad::d_arrays;
use pullback_base::Diagnostic;
use pullback_core::Value;
use pullback_driver::{Kind, Session, Settings, Wrt};
use pullback_interp::core::Options;
use std::path::Path;

/// A problem at one size.
#[derive(Clone, Debug)]
pub struct Price {
    /// Value and gradient by both.
    pub results: [Vec<Value>; 2],
    /// Steps of the program on lambda, and of its value and gradient there.
    pub on_lambda: [u64; 2],
    /// The same on core, after all passes.
    pub on_core: [u64; 2],
}

/// The costs of a problem; `Err`: why CHAD does not take it.
///
/// # Panics
/// If the problem does not compile or run.
pub fn price(problem: &Problem, size: usize) -> Result<Price, Diagnostic> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text =
        std::fs::read_to_string(root.join(problem.file)).unwrap_or_else(|e| panic!("{}: {e}", problem.file));
    let mut session = Session::compile(problem.file, &text, Settings::default())
        .unwrap_or_else(|e| panic!("{}", e.render()));
    let shown = |d: Diagnostic| -> ! { panic!("{}: {}", problem.name, d.message) };
    let entry = session.entry(Some(problem.entry)).unwrap_or_else(|d| shown(d));
    let wanted = session.select(&entry, &Wrt::parse(problem.wrt)).unwrap_or_else(|d| shown(d));
    let options = Options::default();
    let args = (problem.args)(size);
    let primal = session.primal(&entry).unwrap_or_else(|d| shown(d));
    let value = primal.interpret(&args, &options).unwrap_or_else(|e| panic!("{}: {e}", problem.name));
    let ones = value.results.iter().map(|v| match v {
        Value::Array(a) => Value::f64_array(&a.shape, &vec![1.0; a.count()]),
        _ => Value::f64(1.0),
    });
    let seeded: Vec<Value> = args.iter().cloned().chain(ones).collect();
    let fast = session.derivative(&entry, Kind::Vjp, &wanted, &mut |_, _| {}).unwrap_or_else(|d| shown(d));
    let fast = fast.interpret(&seeded, &options).unwrap_or_else(|e| panic!("{}: {e}", problem.name));
    session.settings.choice.reverse = Some(d_arrays::ID.into());
    let ready = session.derivative(&entry, Kind::Vjp, &wanted, &mut |_, _| {})?;
    let Some(derivative) = &ready.on_lambda else { panic!("an algorithm of another kind") };
    let own = derivative.run_primal(&args, &options).unwrap_or_else(|e| panic!("{}: {e}", problem.name));
    let chad = ready.interpret(&seeded, &options).unwrap_or_else(|e| panic!("{}: {e}", problem.name));
    Ok(Price {
        on_lambda: [own.counts.work, chad.counts.work],
        on_core: [value.counts.work, fast.counts.work],
        results: [chad.results, fast.results],
    })
}

/// The table for the book: how often the program's steps the gradient takes, at two sizes.
pub fn table() -> String {
    let header = ["problem", "size", "program", "chad-arrays", "", "fast_chad", ""];
    let line = |cells: [&str; 7]| {
        let [name, size, steps, ratio, larger, fast, faster] = cells;
        let line = format!("{name:<20} {size:>6} {steps:>9} {ratio:>12} {larger:>6} {fast:>11} {faster:>6}");
        line.trim_end().to_string() + "\n"
    };
    let mut out = line(header);
    for problem in PROBLEMS {
        let [small, large] = SIZES.map(|n| price(problem, n));
        let ratio = |steps: [u64; 2]| format!("{:.1}", steps[1] as f64 / steps[0] as f64);
        out += &match (small, large) {
            (Ok(small), Ok(large)) => line([
                problem.name,
                &SIZES.map(|n| n.to_string()).join(", "),
                &small.on_lambda[0].to_string(),
                &ratio(small.on_lambda),
                &ratio(large.on_lambda),
                &ratio(small.on_core),
                &ratio(large.on_core),
            ]),
            (Err(d), _) | (_, Err(d)) => {
                let why = d.message.split("differentiate ").nth(1).unwrap_or(&d.message);
                format!("{:<20} {}\n", problem.name, format_args!("not taken: {why}"))
            }
        };
    }
    out
}

/// The sizes of the table.
pub const SIZES: [usize; 2] = [8, 64];
