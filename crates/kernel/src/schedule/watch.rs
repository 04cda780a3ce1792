//! What the verifier says of scheduling: after each pass in builds with debug assertions, and so in tests; at the end in all.

use super::Options;
use crate::ir::{Function, Module};
use crate::verify::{Around, Verified, verify};

/// The verifier beside the passes; none where nothing is looked at before the end, nor where the module breaks a rule to begin with.
#[derive(Debug)]
pub(super) struct Watch(Option<Around>);

impl Watch {
    /// For a module that is about to be scheduled.
    pub(super) fn new(module: &Module, options: &Options) -> Watch {
        let around = if cfg!(debug_assertions) { Around::of(module) } else { None };
        Watch(around.map(|around| around.with_lanes(options.lanes.max(options.most))))
    }
    /// A function after a pass.
    ///
    /// # Panics
    /// If there is an alarm.
    pub(super) fn function(&self, pass: &str, f: &Function) {
        if let Some(around) = &self.0 {
            stop(pass, &around.function(f));
        }
    }
    /// The functions that passes made so far, after a pass.
    ///
    /// # Panics
    /// If there is an alarm on one that is new.
    pub(super) fn parts(&mut self, pass: &str, made: &[Function]) {
        let Some(around) = &mut self.0 else { return };
        for verified in around.learn(made) {
            stop(pass, &verified);
        }
    }
    /// Whether there is an alarm on the whole module at the end.
    ///
    /// # Panics
    /// If there is one, where passes are looked at.
    pub(super) fn has_alarm(&self, module: &Module) -> bool {
        if cfg!(debug_assertions) && self.0.is_none() {
            return false;
        }
        let verified = verify(module);
        if self.0.is_some() {
            stop("scheduling", &verified);
        }
        !verified.alarms.is_empty()
    }
}

fn stop(pass: &str, verified: &Verified) {
    if let Some(alarm) = verified.alarms.first() {
        panic!("internal error: after the pass `{pass}`, {alarm}");
    }
}
