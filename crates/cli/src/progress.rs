//! Long runs: Ctrl-C stops them, and after a second a spinner shows the number of steps. It goes to standard error and hides
//! itself where that is no terminal.

use indicatif::{ProgressBar, ProgressStyle};
use pullback_interp::core::Options;
use std::time::{Duration, Instant};

/// Runs `work` with interpreter options that show progress.
pub(crate) fn with_progress<T>(
    inputs: &crate::args::InputArgs,
    what: &str,
    work: impl FnOnce(&Options<'_>) -> T,
) -> T {
    let base = Options {
        schedule_seed: inputs.schedule,
        memory_limit: inputs.memory_limit,
        check_nan: inputs.check_nan,
        cancel: Some(crate::interrupt::flag()),
        ..Options::default()
    };
    if inputs.quiet {
        return work(&base);
    }
    let start = Instant::now();
    let bar = ProgressBar::hidden();
    let style =
        ProgressStyle::with_template("{spinner} {msg}").unwrap_or_else(|_| ProgressStyle::default_spinner());
    bar.set_style(style);
    let show = |steps: u64| {
        if start.elapsed() < Duration::from_secs(1) {
            return;
        }
        if bar.is_hidden() {
            bar.set_draw_target(indicatif::ProgressDrawTarget::stderr_with_hz(5));
        }
        let seconds = start.elapsed().as_secs();
        bar.set_message(format!("{what}: {} million steps, {seconds} s", steps / 1_000_000));
        bar.tick();
    };
    let result = work(&Options { progress: Some(&show), ..base });
    bar.finish_and_clear();
    result
}
