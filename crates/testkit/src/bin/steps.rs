//! `steps`: the table of what gradients cost, as Markdown.

#![allow(clippy::print_stdout, reason = "a program that prints a table")]

use pullback_driver::Settings;
use pullback_testkit::problems::PROBLEMS;
use pullback_testkit::steps::measure;
use std::path::Path;

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    println!(
        "| problem | size | objective, steps | with gradient, steps | ratio | ratio at twice the size | ratio of flops | adds into accumulators |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    let size = 32;
    for problem in PROBLEMS {
        let settings = Settings::default();
        let (small, big) =
            (measure(&root, problem, size, &settings), measure(&root, problem, 2 * size, &settings));
        let label =
            if problem.size.is_empty() { "-".to_string() } else { format!("{size} {}", problem.size) };
        match (small, big) {
            (Ok(s), Ok(b)) => println!(
                "| {} | {label} | {} | {} | {:.2} | {:.2} | {:.2} | {} |",
                problem.name,
                s.primal.work,
                s.gradient.work,
                s.ratio(),
                b.ratio(),
                s.flops(),
                s.gradient.acc_adds,
            ),
            (Err(e), _) | (_, Err(e)) => println!("| {} | {label} | {e} | | | | | |", problem.name),
        }
    }
}
