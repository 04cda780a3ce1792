//! Programs in processes of their own: one that crashes is a failure like others.
//!
//! To start a process takes as long as some programs do. So one runs a range of seeds, and says of each when it begins and what came
//! of it; if it dies, that is the fault of the seed that had begun, which then runs alone, and another process goes on behind it.

use super::{Counts, examine};
use std::io::{BufRead, BufReader, Write};
use std::ops::Range;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Kilobytes of addresses that a process may have.
const ADDRESSES: u64 = 6 << 20;
/// Seeds that a process begins with.
const BATCH: u64 = 50;
/// No program takes so long.
const PATIENCE: Duration = Duration::from_secs(100);
/// The status of a process in which one did.
const ENDLESS: i32 = 17;

/// What the helper program does: the seeds of a range, with a line for each beginning and each count.
pub fn part(seeds: Range<u64>) {
    std::panic::set_hook(Box::new(|_| {}));
    let mut out = std::io::stdout().lock();
    let begun = Arc::new(AtomicU64::new(0));
    watched(begun.clone());
    for seed in seeds {
        drop(writeln!(out, "seed\t{seed}"));
        drop(out.flush());
        begun.fetch_add(1, Ordering::Relaxed);
        let counts = std::panic::catch_unwind(|| examine(seed)).unwrap_or_else(|e| {
            let text = e.downcast_ref::<String>().map(String::as_str).or(e.downcast_ref::<&str>().copied());
            let failures = vec![format!("panic: {}", text.unwrap_or_default())];
            Counts { failures, ..Counts::default() }
        });
        for (verdict, n) in &counts.verdicts {
            drop(writeln!(out, "count\t{verdict}\t{n}"));
        }
        for text in &counts.failures {
            drop(writeln!(out, "failure\tseed {seed}: {:.2000}", text.replace('\n', " | ")));
        }
        drop(out.flush());
    }
}

/// A program that does not come to its end takes its process with it.
fn watched(begun: Arc<AtomicU64>) {
    std::thread::spawn(move || {
        let (mut last, mut since) = (0, Instant::now());
        loop {
            std::thread::sleep(PATIENCE / 100);
            let now = begun.load(Ordering::Relaxed);
            if now != last {
                (last, since) = (now, Instant::now());
            } else if since.elapsed() > PATIENCE {
                std::process::exit(ENDLESS);
            }
        }
    });
}

/// How a process came to its end.
struct Ran {
    counts: Counts,
    /// The seed that it died of, and how.
    died: Option<(u64, String)>,
}

fn run(helper: &Path, seeds: Range<u64>) -> Ran {
    let mut command = if cfg!(unix) {
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("ulimit -v {ADDRESSES}; exec \"$0\" \"$@\"")]).arg(helper);
        shell
    } else {
        Command::new(helper)
    };
    command.args(["part", &seeds.start.to_string(), &seeds.end.to_string()]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let (mut counts, mut seed) = (Counts::default(), seeds.start);
    let Ok(mut child) = child else {
        return Ran { counts, died: Some((seed, "the process could not be started".into())) };
    };
    for line in
        child.stdout.take().into_iter().flat_map(|out| BufReader::new(out).lines()).map_while(Result::ok)
    {
        match line.split('\t').collect::<Vec<_>>()[..] {
            ["seed", number] => seed = number.parse().unwrap_or(seed),
            ["count", verdict, n] => {
                *counts.verdicts.entry(verdict.into()).or_default() += n.parse().unwrap_or(0)
            }
            ["failure", text] => counts.failures.push(text.into()),
            _ => {}
        }
    }
    let status = child.wait();
    let died = match status {
        Ok(status) if status.success() => None,
        Ok(status) if status.code() == Some(ENDLESS) => Some((seed, "it does not come to its end".into())),
        Ok(status) => Some((seed, format!("the process died: {status}"))),
        Err(e) => Some((seed, e.to_string())),
    };
    Ran { counts, died }
}

/// A range of seeds, in as many processes as crashes ask for.
fn batch(helper: &Path, seeds: Range<u64>) -> Counts {
    let mut counts = Counts::default();
    let mut from = seeds.start;
    while from < seeds.end {
        let ran = run(helper, from..seeds.end);
        counts.extend(ran.counts);
        let Some((seed, how)) = ran.died else { break };
        let alone = run(helper, seed..seed + 1).died;
        let again = alone.map_or("not when it runs alone".to_string(), |(_, how)| format!("alone: {how}"));
        counts.failures.push(format!("seed {seed}: {how}; {again}"));
        from = seed + 1;
    }
    counts
}

/// `count` seeds from `from` on, in so many processes at a time; `watch` sees the counts so far, and of how many seeds they are.
pub fn many(
    helper: &Path,
    from: u64,
    count: u64,
    jobs: usize,
    watch: &(dyn Fn(&Counts, u64) + Sync),
) -> Counts {
    let next = AtomicU64::new(0);
    let all = Mutex::new((Counts::default(), 0));
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                loop {
                    let k = next.fetch_add(BATCH, Ordering::Relaxed);
                    if k >= count {
                        break;
                    }
                    let some = BATCH.min(count - k);
                    let counts = batch(helper, from + k..from + k + some);
                    let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
                    all.0.extend(counts);
                    all.1 += some;
                    watch(&all.0, all.1);
                }
            });
        }
    });
    all.into_inner().unwrap_or_else(PoisonError::into_inner).0
}
