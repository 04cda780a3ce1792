//! `verified [SEEDS]`: what the verifier takes beside the lowering and scheduling, for modules of more than a thousand instructions: those of the
//! repository, random ones, and programs of the families that the count of its work is tested on.

#![allow(clippy::print_stdout, clippy::expect_used, reason = "a program for measurements")]

#[path = "../tests/common/families.rs"]
mod families;

use families::FAMILIES;
use pullback_base::SourceMap;
use pullback_core::read;
use pullback_kernel::schedule::{Model, Options, schedule};
use pullback_kernel::verify::verify;
use pullback_kernel::{Module, lower, size};
use pullback_testkit::kernels::{Item, of_repository, of_seed};
use std::time::Instant;

/// The seconds of the quickest of five.
fn quickest<T>(mut work: impl FnMut() -> T) -> f64 {
    let time = |()| {
        let start = Instant::now();
        std::hint::black_box(work());
        start.elapsed().as_secs_f64()
    };
    [(); 5].map(time).into_iter().fold(f64::INFINITY, f64::min)
}

fn instructions(module: &Module) -> usize {
    module.functions.iter().map(|f| size(&f.body)).sum()
}

/// The part that the verifier has of lowering and of scheduling, which ask it themselves; `None`: a small module.
fn parts(item: &Item) -> Option<[f64; 2]> {
    let (module, _) = item.lowered()?;
    if instructions(&module) < 1_000 {
        return None;
    }
    let lowering = quickest(|| lower(&item.program, item.fun));
    let verifying = quickest(|| verify(&module));
    let options = Options::new(8, Model::machine(8));
    let mut scheduled = module.clone();
    schedule(&mut scheduled, &options);
    let scheduling = quickest(|| schedule(&mut module.clone(), &options));
    let again = quickest(|| verify(&scheduled));
    let parts = [verifying / (lowering - verifying), again / (scheduling - again)];
    println!(
        "{:7} {:7} instructions, lowered in {:8.3} ms, verified in {:7.3} ms ({:4.1} %), scheduled in {:8.3} ms, verified in {:7.3} ms ({:4.1} %): {}",
        instructions(&module),
        instructions(&scheduled),
        1e3 * (lowering - verifying),
        1e3 * verifying,
        100.0 * parts[0],
        1e3 * (scheduling - again),
        1e3 * again,
        100.0 * parts[1],
        item.what
    );
    Some(parts)
}

fn main() {
    let seeds = std::env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(20);
    let mut items = Vec::new();
    for (name, family) in FAMILIES {
        for count in [50, 200, 800] {
            let text = family(count);
            let id = SourceMap::new().add("families.core", &text);
            let program = read::read(id, &text).expect("a program");
            let fun = program.funs.ids().next().expect("a function");
            items.push(Item { what: format!("{name} {count}"), program, fun, sizes: Vec::new() });
        }
    }
    items.extend_from_slice(of_repository());
    items.extend((0..seeds).flat_map(|seed| of_seed(2 * seed + 1)));
    let all: Vec<[f64; 2]> = items.iter().filter_map(parts).collect();
    for (k, what) in ["lowering", "scheduling"].into_iter().enumerate() {
        let mut of: Vec<f64> = all.iter().map(|parts| parts[k]).collect();
        of.sort_by(f64::total_cmp);
        let at = |share: f64| 100.0 * of[((of.len() - 1) as f64 * share) as usize];
        println!(
            "{what}: of {} modules, median {:.1} %, nine of ten {:.1} %, most {:.1} %",
            of.len(),
            at(0.5),
            at(0.9),
            at(1.0)
        );
    }
}
