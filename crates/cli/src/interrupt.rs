//! Ctrl-C: the running program is asked to stop, which all executors do soon; what does not stop soon (reading, compiling, a
//! long loop without loops inside) is ended. Either way the command says so and ends with status 130, within a tenth of a
//! second; no output file is written in part. A second Ctrl-C ends the process at once.
//!
//! Where signals are not those of Unix, Ctrl-C does what the system does by itself.

use crate::Failure;
use pullback_base::Fault;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

/// The exit status of a command that a signal stopped: 128 and the number of the signal.
const STATUS: u8 = 130;

const MESSAGE: &str = "stopped by Ctrl-C";

/// Whether Ctrl-C was pressed.
static STOPPED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Default::default);

/// A file that is being written and is not yet in its place.
static UNFINISHED: Mutex<Option<PathBuf>> = Mutex::new(None);

/// The flag that executors look at.
pub(crate) fn flag() -> &'static AtomicBool {
    &STOPPED
}

/// What a command that stopped after Ctrl-C ends with, and its exit status. What it met on its way is of no interest.
pub(crate) fn stopped() -> Option<(Failure, u8)> {
    flag().load(Ordering::Relaxed).then(|| {
        let report = json!({"code": null, "error": true, "message": MESSAGE, "place": null, "hints": []});
        (Failure { report: vec![report], ..Failure::new(Fault::Program, MESSAGE) }, STATUS)
    })
}

/// Keeps in mind, while it lives, a file that must not be left behind.
pub(crate) struct Unfinished;

impl Unfinished {
    pub(crate) fn new(path: &Path) -> Unfinished {
        *UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner) = Some(path.to_path_buf());
        Unfinished
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        *UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

#[cfg(unix)]
mod unix {
    use super::{MESSAGE, STATUS, STOPPED, UNFINISHED};
    use signal_hook::consts::SIGINT;
    use signal_hook::iterator::Signals;
    use signal_hook::{flag, low_level};
    use std::io::{IsTerminal, Write};
    use std::sync::PoisonError;
    use std::sync::atomic::Ordering;
    use std::time::Duration;

    /// How long the executors have to stop.
    const GRACE: Duration = Duration::from_millis(80);

    /// Listens for Ctrl-C from now on. Where the system refuses, Ctrl-C ends the process as it always does.
    pub(crate) fn listen() {
        let second = flag::register_conditional_shutdown(SIGINT, i32::from(STATUS), STOPPED.clone());
        let Ok(second) = second else { return };
        let started = Signals::new([SIGINT]).and_then(|mut signals| {
            let wait = move || {
                if signals.forever().next().is_some() {
                    STOPPED.store(true, Ordering::Relaxed);
                    std::thread::sleep(GRACE);
                    end();
                }
            };
            std::thread::Builder::new().name("ctrl-c".into()).spawn(wait)
        });
        if started.is_err() {
            low_level::unregister(second);
        }
    }

    /// Ends the process, whatever it is doing.
    fn end() -> ! {
        if let Some(path) = &*UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner) {
            // Best effort: it may have been put into its place just now.
            let _ = std::fs::remove_file(path);
        }
        let mut out = std::io::stderr();
        // Where a spinner may be on the line.
        let clear = if out.is_terminal() { "\r\x1b[K" } else { "" };
        // Nobody is left to tell that this failed.
        let _ = writeln!(out, "{clear}{MESSAGE}");
        low_level::exit(i32::from(STATUS))
    }
}

#[cfg(unix)]
pub(crate) use unix::listen;

#[cfg(not(unix))]
pub(crate) fn listen() {}
