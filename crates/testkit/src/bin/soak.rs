//! `soak COUNT [SEED] [PROPERTY..]`: random programs with all (or the named) properties; exits with 1 if one fails.
//!
//! `soak growth [LARGEST [RANDOM [SEED]]]`: all small loop programs of at most so many terms, then random ones: whether their derivatives are
//! right and cost a constant factor.
//!
//! `soak bulk COUNT [SEED] [PROPERTY..]`: the same for bulk dual numbers, of programs for them; those that are refused are skipped. `soak accelerate ..`, `accelerate-store`,
//! `accelerate-recompute`: the same for reverse AD for Accelerate.
//!
//! `soak native COUNT [SEED] [vm|O0|O1|O3] [usual|endings|NAME]`: random programs and their gradients through the native executors, in processes of
//! their own; `NAME`: gradients by this translated algorithm (`bulk`, `accelerate`, `accelerate-store`, `accelerate-recompute`) (`JOBS` at a time; by default as many as there are processors), so that one that crashes is a failure like others.
//!
//! `soak native-shrink SEED [vm|O0|O1|O3] [usual|endings|NAME]`: a small program that fails like the one of the seed does.

#![allow(clippy::print_stdout, reason = "a program that prints a report")]

use pullback_testkit::generate::Config;
use pullback_testkit::growth::draw::draw;
use pullback_testkit::growth::search::{every, search};
use pullback_testkit::properties::{Property, Reverse, case_of_seed};
use pullback_testkit::shrink::{shrink, suite_file};
use pullback_testkit::soak::soak_with;

/// How many failures are printed as shrunk programs.
const SHRUNK: usize = 8;

fn main() -> std::process::ExitCode {
    let mut args = std::env::args().skip(1).peekable();
    match args.peek().map(String::as_str) {
        Some("growth") => return growth(&args.skip(1).collect::<Vec<_>>()),
        Some("native-shrink") => return native::shrink(&args.skip(1).collect::<Vec<_>>()),
        Some("native") => return native::run(&args.skip(1).collect::<Vec<_>>()),
        Some("native-part") => return native::part(&args.skip(1).collect::<Vec<_>>()),
        _ => {}
    }
    let variants = pullback_ad::accelerate::from_core::VARIANTS.map(|(variant, _)| variant);
    let variant = |name: &str| variants.iter().find(|v| v.id == name);
    let translated = args.next_if(|a| a == "bulk" || variant(a).is_some());
    let (config, reverse): (Config, Reverse<'_>) = match translated.as_deref().map(variant) {
        Some(Some(variant)) => (Config::accelerate(), &variant.transform),
        Some(None) => (Config::bulk(), &pullback_ad::bulk::from_core::vjp),
        None => (Config::default(), &pullback_ad::fast_chad::vjp),
    };
    let count: u64 = args.next().and_then(|a| a.parse().ok()).unwrap_or(2_000);
    let seed: u64 = args.next().and_then(|a| a.parse().ok()).unwrap_or(0);
    let names: Vec<String> = args.collect();
    let properties: Vec<Property> = Property::ALL
        .into_iter()
        .filter(|p| names.is_empty() || names.iter().any(|n| n == p.name()))
        // Those two claim no bound, and no order of folds.
        .filter(|p| match p {
            Property::Cost | Property::Primal | Property::Checkpoints => translated.is_none(),
            Property::Values => translated.is_some(),
            _ => true,
        })
        .collect();
    // A failing property says what happened in the report; the default message would come in between.
    std::panic::set_hook(Box::new(|_| {}));
    let report = soak_with(seed..seed.saturating_add(count), &config, &properties, reverse);
    println!("{}", report.render());
    for failure in report.failures.iter().take(SHRUNK) {
        let case = case_of_seed(failure.seed, &config);
        let small = shrink(&case, failure.property, reverse);
        println!("{}", suite_file(&small, failure.property, &failure.text));
    }
    if report.failures.is_empty() { std::process::ExitCode::SUCCESS } else { std::process::ExitCode::FAILURE }
}

/// The search for growth of cost.
fn growth(args: &[String]) -> std::process::ExitCode {
    let number = |k: usize, default: u64| args.get(k).and_then(|a| a.parse().ok()).unwrap_or(default);
    std::panic::set_hook(Box::new(|_| {}));
    let seed = number(2, 0);
    let mut terms = every(number(0, 4) as usize, 1, 0);
    terms.extend((seed..seed + number(1, 10_000)).map(draw));
    let found = search(terms, &pullback_ad::fast_chad::vjp);
    println!("{}", found.render());
    if found.failures.is_empty() { std::process::ExitCode::SUCCESS } else { std::process::ExitCode::FAILURE }
}

/// Native executors.
mod native {
    use pullback_core::print::print;
    use pullback_cpu::Level;
    use pullback_testkit::native::soak::{Counts, one};
    use pullback_testkit::native::{Programs, Run, Verdict, Way, examine};
    use pullback_testkit::properties::Case;
    use pullback_testkit::shrink::shrink_with;
    use pullback_testkit::text::show;
    use std::process::{Command, ExitCode};
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::sync::{Mutex, PoisonError};
    use std::time::{Duration, Instant};

    /// Seeds of one process.
    const BATCH: u64 = 25;

    struct Wanted {
        count: u64,
        from: u64,
        level: String,
        programs: String,
    }

    impl Wanted {
        fn programs(&self) -> Programs {
            Programs::named(&self.programs).unwrap_or_else(Programs::usual)
        }
    }

    fn wanted(args: &[String]) -> Wanted {
        let number = |k: usize, default: u64| args.get(k).and_then(|a| a.parse().ok()).unwrap_or(default);
        let level = args.get(2).cloned().unwrap_or_else(|| "O3".to_string());
        let programs = args.get(3).cloned().unwrap_or_else(|| "usual".to_string());
        Wanted { count: number(0, 20_000), from: number(1, 0), level, programs }
    }

    /// How LLVM optimises; `vm`: no machine code.
    fn level(name: &str) -> Option<Level> {
        match name {
            "vm" => None,
            "O0" => Some(Level::O0),
            "O1" => Some(Level::O1),
            _ => Some(Level::O3),
        }
    }

    /// The seeds of one process; a line for each count and failure.
    pub(super) fn part(args: &[String]) -> ExitCode {
        std::panic::set_hook(Box::new(|_| {}));
        let w = wanted(args);
        let level = level(&w.level);
        let (mut counts, programs) = (Counts::default(), w.programs());
        for seed in w.from..w.from + w.count {
            let ways = |seed, k| programs.ways(seed, k, level);
            let run = std::panic::AssertUnwindSafe(|| one(&programs, seed, &ways));
            match std::panic::catch_unwind(run) {
                Ok(of_seed) => counts.extend(of_seed),
                Err(payload) => counts.failures.push((seed, format!("panic: {}", words(payload.as_ref())))),
            }
        }
        for ((way, verdict), n) in &counts.verdicts {
            println!("count\t{way}\t{verdict}\t{n}");
        }
        for (seed, text) in &counts.failures {
            println!("failure\t{seed}\t{}", text.replace('\n', " | "));
        }
        ExitCode::SUCCESS
    }

    /// What a panic says.
    fn words(payload: &(dyn std::any::Any + Send)) -> &str {
        let text = payload.downcast_ref::<String>().map(String::as_str);
        text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("without words")
    }

    /// How long a program is made smaller.
    const TIME: Duration = Duration::from_secs(240);

    /// Prints a small program, or gradient, that is wrong in one of the ways in which that of the seed is.
    pub(super) fn shrink(args: &[String]) -> ExitCode {
        std::panic::set_hook(Box::new(|_| {}));
        let seed = args.first().and_then(|a| a.parse().ok()).unwrap_or(0);
        let level = level(args.get(1).map_or("O3", String::as_str));
        let fails = |run: &Run, way: Way| match examine(run, way) {
            Verdict::Fails(text) => Some(text),
            _ => None,
        };
        // Other values stay other values: a smaller program that stops otherwise is another fault.
        let kind =
            |text: &str| ["should stop", "stopped", "not the same", "panic"].map(|k| text.starts_with(k));
        let programs = args.get(2).and_then(|name| Programs::named(name)).unwrap_or_else(Programs::usual);
        let ways: Vec<Way> = (0..9).flat_map(|k| programs.ways(seed, k, level)).collect();
        let failing = programs.cases_of_seed(seed).into_iter().find_map(|case| {
            let runs = programs.runs_of_case(&case);
            let fails = |run: &Run| ways.iter().find_map(|way| Some((*way, kind(&fails(run, *way)?))));
            let (run, (way, kind)) = runs.iter().find_map(|run| Some((run.what.clone(), fails(run)?)))?;
            Some((case, run, way, kind))
        });
        let Some((case, what, way, same)) = failing else {
            println!("seed {seed} is right");
            return ExitCode::SUCCESS;
        };
        eprintln!("{what}, {way:?}: shrinking for {} s at most", TIME.as_secs());
        let begin = Instant::now();
        let wrong = |case: &Case| {
            let run = programs.runs_of_case(case).into_iter().find(|run| run.what == what)?;
            let text = fails(&run, way).filter(|text| kind(text) == same)?;
            Some((run, text))
        };
        let small = shrink_with(&case, &mut |case| begin.elapsed() < TIME && wrong(case).is_some());
        println!("{}", print(&small.program));
        println!("main {}\n", small.args.iter().map(show).collect::<Vec<_>>().join(" "));
        if let Some((run, text)) = wrong(&small) {
            println!("{}, {way:?}: {text}\n\n{}", run.what, print(&run.program));
        }
        ExitCode::FAILURE
    }

    /// Runs seeds in another process; `None`: it did not come to its end.
    fn in_process(from: u64, count: u64, w: &Wanted) -> Option<Counts> {
        let program = std::env::current_exe().ok()?;
        let args = ["native-part", &count.to_string(), &from.to_string(), &w.level, &w.programs];
        let out = Command::new(program).args(args).output().ok()?;
        if !out.status.success() {
            return None;
        }
        let mut counts = Counts::default();
        for line in String::from_utf8_lossy(&out.stdout).lines() {
            match line.split('\t').collect::<Vec<_>>()[..] {
                ["count", way, verdict, n] => {
                    counts.verdicts.insert((way.into(), verdict.into()), n.parse().ok()?);
                }
                ["failure", seed, text] => counts.failures.push((seed.parse().ok()?, text.to_string())),
                _ => {}
            }
        }
        Some(counts)
    }

    /// The same, and if a process crashes, each of its seeds alone.
    fn batch(from: u64, count: u64, w: &Wanted) -> Counts {
        in_process(from, count, w).unwrap_or_else(|| {
            let mut counts = Counts::default();
            for seed in from..from + count {
                match in_process(seed, 1, w) {
                    Some(one) => counts.extend(one),
                    None => counts.failures.push((seed, "the process crashed".to_string())),
                }
            }
            counts
        })
    }

    pub(super) fn run(args: &[String]) -> ExitCode {
        let w = wanted(args);
        let jobs = std::env::var("JOBS").ok().and_then(|j| j.parse().ok());
        let jobs = jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
        let (next, all, start) = (AtomicU64::new(0), Mutex::new((Counts::default(), 0)), Instant::now());
        std::thread::scope(|scope| {
            for _ in 0..jobs {
                scope.spawn(|| {
                    loop {
                        let k = next.fetch_add(BATCH, Ordering::Relaxed);
                        if k >= w.count {
                            break;
                        }
                        let count = BATCH.min(w.count - k);
                        let counts = batch(w.from + k, count, &w);
                        let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
                        for (seed, text) in &counts.failures {
                            println!(
                                "FAILS: seed {seed}: {text}\n  again: soak native 1 {seed} {} {}\n",
                                w.level, w.programs
                            );
                        }
                        all.0.extend(counts);
                        all.1 += count;
                        let seconds = start.elapsed().as_secs();
                        eprintln!(
                            "{} of {} programs in {seconds} s, {} runs compared, {} failures",
                            all.1,
                            w.count,
                            all.0.compared(),
                            all.0.failures.len()
                        );
                    }
                });
            }
        });
        let (counts, _) = all.into_inner().unwrap_or_else(PoisonError::into_inner);
        println!("{} programs ({}) from seed {}, LLVM at {}", w.count, w.programs, w.from, w.level);
        println!("{}{} failures", counts.render(), counts.failures.len());
        if counts.failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}
