//! One case in a process of its own, so that its memory is its own and it can be stopped.
//!
//! The child prints one line of JSON. A call before the timed ones is not counted: its memory is new.

use super::cases::{Problem, Sizes};
use super::results::Timed;
use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use pullback_core::Value;
use pullback_driver::{Ready, Settings, argument};
use serde_json::{Value as Json, json};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// What is run, and for how long. These are the words of the command line of the child.
#[derive(Args, Clone, Debug)]
pub(crate) struct Case {
    pub(crate) problem: String,
    #[arg(value_parser = three)]
    pub(crate) sizes: Sizes,
    pub(crate) algorithm: String,
    /// 0: those of the machine.
    pub(crate) threads: usize,
    /// The most timed calls.
    pub(crate) runs: usize,
    /// Seconds after which no other call is made.
    pub(crate) seconds: f64,
    /// Bytes that a call may take.
    pub(crate) memory: u64,
    /// Where machine code is kept for other processes.
    pub(crate) cache: PathBuf,
}

/// Three sizes, separated by commas.
fn three(text: &str) -> Result<Sizes> {
    let sizes = text.split(',').map(str::parse).collect::<Result<Vec<usize>, _>>()?;
    sizes.try_into().map_err(|_| anyhow!("a case has three sizes"))
}

impl Case {
    /// Measures it in this process.
    pub(crate) fn measure(&self) -> Result<Json> {
        let problem = Problem::named(&self.problem)?;
        let threads = NonZeroUsize::new(self.threads);
        let settings = Settings { threads, cache: Some(self.cache.clone()), ..Settings::default() };
        let [objective, derivative] = problem.ready(&self.algorithm, settings)?;
        let [args, of_derivative] = problem.args(self.sizes);
        let start = Instant::now();
        derivative.warm(&of_derivative).map_err(|d| anyhow!(d.message))?;
        let compiling = start.elapsed().as_secs_f64();
        let (times, workspace) = self.repeat(&derivative, &of_derivative)?;
        let process = peak_of_process();
        objective.warm(&args).map_err(|d| anyhow!(d.message))?;
        let (objective, _) = self.repeat(&objective, &args)?;
        Ok(json!({"derivative": times.to_json(), "objective": objective.to_json(), "workspace": workspace,
            "process": process, "compiling": compiling}))
    }
    /// Times of calls, and the most bytes of the workspace that one had in use.
    fn repeat(&self, ready: &Ready, args: &[Value]) -> Result<(Timed, u64)> {
        let mut prepared = ready.prepare(args, self.memory).map_err(|d| anyhow!(d.message))?;
        let args: Option<Vec<_>> = args.iter().map(argument).collect();
        let args = args.context("an argument is no array of numbers")?;
        let mut runs = Vec::new();
        let began = Instant::now();
        loop {
            let start = Instant::now();
            prepared.view(&args, None).map_err(|e| anyhow!(e.to_string()))?;
            runs.push(start.elapsed().as_secs_f64());
            let is_enough = began.elapsed().as_secs_f64() >= self.seconds;
            if runs.len() > self.runs || is_enough && runs.len() > 1 {
                return Ok((Timed::of(&runs[1..]), prepared.peak_bytes()));
            }
        }
    }
    /// Starts a process of this program that measures it, and waits for what it says, but no longer than this.
    pub(crate) fn in_a_process(&self, limit: Duration) -> Result<Json> {
        let mut child = Command::new(std::env::current_exe()?)
            .args([
                "accelerate-case",
                &self.problem,
                &self.sizes.map(|s| s.to_string()).join(","),
                &self.algorithm,
                &self.threads.to_string(),
            ])
            .args([self.runs.to_string(), self.seconds.to_string(), self.memory.to_string()])
            .arg(&self.cache)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        if !ends_within(&mut child, limit)? {
            child.kill()?;
            child.wait()?;
            bail!("time: it was stopped after {:.0} s", limit.as_secs_f64());
        }
        let output = child.wait_with_output()?;
        if !output.status.success() {
            let why = String::from_utf8_lossy(&output.stderr);
            let last = why.lines().find(|l| !l.trim().is_empty()).unwrap_or("it ended without a message");
            bail!("{}", last.trim_start_matches("Error: "));
        }
        serde_json::from_slice(&output.stdout).context("the child said something else than JSON")
    }
}

fn ends_within(child: &mut Child, limit: Duration) -> Result<bool> {
    let start = Instant::now();
    while start.elapsed() < limit {
        if child.try_wait()?.is_some() {
            return Ok(true);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(false)
}

/// The most memory that this process has had, as Linux says.
fn peak_of_process() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| 1024 * kib)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accelerate::results::Measured;

    fn case(sizes: Sizes, runs: usize, seconds: f64) -> Case {
        Case {
            problem: "generate".into(),
            sizes,
            algorithm: "accelerate-store".into(),
            threads: 1,
            runs,
            seconds,
            memory: 1 << 30,
            cache: std::env::temp_dir().join(format!("pullback-accelerate-test-{}", std::process::id())),
        }
    }

    #[test]
    fn calls_end_at_their_limit() {
        let measured = |case: Case| match case.measure() {
            Ok(json) => Some(Measured::from_json(&json).expect("what was measured")),
            Err(e) if e.to_string().starts_with("no native code") => None,
            Err(e) => panic!("{e}"),
        };
        let Some(by_number) = measured(case([5, 2, 3], 4, 1e3)) else {
            return eprintln!("skipped: there is no LLVM");
        };
        assert_eq!((by_number.derivative.runs, by_number.objective.runs), (4, 4));
        // Points, parameters and their gradient alone have 8 (10 + 3 + 6 + 9 + 18) bytes.
        assert!(by_number.workspace >= 8.0 * 18.0, "{by_number:?}");
        let by_time = measured(case([5, 2, 3], 1000, 0.0)).expect("as before");
        assert_eq!((by_time.derivative.runs, by_time.objective.runs), (1, 1));
        let too_large = Case { memory: 1000, ..case([1000, 10, 5], 1, 1.0) };
        let why = too_large.measure().expect_err("a gradient of 330 numbers in 1000 bytes").to_string();
        assert!(why.starts_with("out of memory"), "{why}");
        std::fs::remove_dir_all(&too_large.cache).ok();
    }

    #[test]
    fn a_case_has_three_sizes() {
        assert_eq!(three("1,20,3").expect("sizes"), [1, 20, 3]);
        assert!(three("1,20").is_err() && three("1,2,x").is_err());
    }
}
