//! `--report`: what a run cost, what ran it, and what compiling took.

use pullback_driver::report::Stage;
use pullback_driver::{CodeReport, Executor, Outcome, Ready};
use serde_json::{Map, Value as Json, json};

/// What a run cost, as JSON. Only the interpreter counts more than bytes.
pub(crate) fn cost_json(outcome: &Outcome) -> Json {
    let c = &outcome.counts;
    match outcome.ran.executor {
        Executor::Interp => {
            json!({"work": c.work, "span": c.span, "flops": c.flops, "peak_bytes": c.peak_bytes,
            "peak_tape_bytes": c.peak_tape_bytes, "accumulations": c.acc_adds})
        }
        Executor::Vm | Executor::Llvm => {
            json!({"peak_bytes": c.peak_bytes, "peak_tape_bytes": c.peak_tape_bytes})
        }
    }
}

/// The same for people.
pub(crate) fn cost_text(what: &str, outcome: &Outcome) -> String {
    let c = &outcome.counts;
    let peak = c.peak_bytes as f64 / (1 << 20) as f64;
    match outcome.ran.executor {
        Executor::Interp => format!(
            "{what}: work {} steps, span {}, {} scalar operations, peak {peak:.2} MiB, tapes {} bytes, {} accumulations",
            c.work, c.span, c.flops, c.peak_tape_bytes, c.acc_adds
        ),
        Executor::Vm | Executor::Llvm => format!(
            "{what}: peak {} bytes of workspace, of which {} for tapes of known sizes (`--backend interp` counts steps)",
            c.peak_bytes, c.peak_tape_bytes
        ),
    }
}

/// What the gradient cost beside the objective: in steps if the interpreter counted both, else in time.
pub(crate) fn ratio_text(primal: &Outcome, gradient: &Outcome) -> String {
    if primal.counts.work > 0 && gradient.counts.work > 0 {
        return format!("ratio of work: {:.2}", gradient.counts.work as f64 / primal.counts.work as f64);
    }
    if primal.ran.executor == gradient.ran.executor {
        return format!("ratio of time: {:.2}", gradient.ran.seconds / primal.ran.seconds);
    }
    "ratio: none, since objective and gradient had different executors (see `--backend`)".to_string()
}

/// All stages of compiling what ran.
fn stages(ready: &Ready, code: Option<&CodeReport>) -> Vec<Stage> {
    ready.stages.iter().chain(code.into_iter().flat_map(|c| &c.stages)).copied().collect()
}

/// What ran, and what compiling took, as JSON.
pub(crate) fn run_json(ready: &Ready, outcome: &Outcome) -> Json {
    let (ran, code) = (&outcome.ran, outcome.ran.code.as_ref());
    let stages = stages(ready, code);
    let seconds: f64 = stages.iter().map(|(_, s)| s).sum();
    let stages: Map<String, Json> = stages.iter().map(|(name, s)| (name.to_string(), json!(s))).collect();
    json!({"executor": ran.executor.name(), "run_seconds": ran.seconds, "compile_seconds": seconds,
           "stages": stages, "compiler": code.map(|c| &c.compiler), "from_cache": code.map(|c| c.was_kept),
           "fallbacks": ran.fallbacks.iter().map(|f| f.text()).collect::<Vec<_>>()})
}

/// The same for people.
pub(crate) fn run_text(ready: &Ready, outcome: &Outcome) -> String {
    let (ran, code) = (&outcome.ran, outcome.ran.code.as_ref());
    let by = match code {
        None => String::new(),
        Some(c) if ran.executor == Executor::Vm => format!(", {}", c.compiler),
        Some(c) if c.was_kept => format!(", code of {} from an earlier run", c.compiler),
        Some(c) => format!(", compiled by {}", c.compiler),
    };
    let (name, compiling) = (ran.executor.name(), stages_text(ready, code));
    let fallbacks: Vec<&str> = ran.fallbacks.iter().map(|f| f.text()).collect();
    let given_up = match fallbacks.len() {
        0 => String::new(),
        n => {
            let what = fallbacks.join(", ");
            format!("\n  {n} times the verifier had an alarm (a bug in Pullback: please report it): {what}")
        }
    };
    format!("  run by {name}{by}: {:.6} s\n  compiling: {compiling}{given_up}", ran.seconds)
}

/// The time of compiling, and that of each stage.
pub(crate) fn stages_text(ready: &Ready, code: Option<&CodeReport>) -> String {
    let stages = stages(ready, code);
    let total: f64 = stages.iter().map(|(_, s)| s * 1e3).sum();
    let parts: Vec<String> = stages.iter().map(|(name, s)| format!("{name} {:.1}", s * 1e3)).collect();
    format!("{total:.1} ms ({})", parts.join(", "))
}
