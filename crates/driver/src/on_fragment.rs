//! Reverse derivatives whose delta terms are made while they run (`--ad bulk-scalar`, `--ad bulk-tape`; [`pullback_ad::bulk::interpreted`]).
//!
//! The entry point goes through the pipeline as far as derivatives are expanded; those inside of it are by the default algorithm. Outside it looks like a derivative on core: one value per leaf of the
//! arguments, then one cotangent per leaf of the result; the results, then one cotangent per wanted leaf.

use crate::Backend;
use crate::derive::Kind;
use crate::on_lambda::with_place;
use crate::pipeline::{self, Step};
use crate::session::{EntryPoint, Ready, Session, deep};
use pullback_ad::bulk::interpreted::{Derivative, Interpreted, Run};
use pullback_ad::differentiate::Choice;
use pullback_base::{Code, Diagnostic, RuntimeError};
use pullback_core::{Program, Value};
use pullback_interp::core::{Compiled, Options, Outcome};
use std::sync::Arc;
use std::time::Instant;

/// A derivative of this kind, ready to run.
#[derive(Clone, Debug)]
pub struct OnFragment(Arc<Derivative>);

/// The reverse derivative of an entry point. A refusal without a place has that of the entry point.
pub(crate) fn derivative(
    session: &Session,
    algorithm: &Interpreted,
    entry: &EntryPoint,
    of: (Kind, &[bool]),
    watch: &mut dyn FnMut(&'static str, &Program),
) -> Result<Ready, Diagnostic> {
    made(session, algorithm, entry, of, watch).map_err(|d| with_place(session, entry, d))
}

fn made(
    session: &Session,
    algorithm: &Interpreted,
    entry: &EntryPoint,
    (kind, wanted): (Kind, &[bool]),
    watch: &mut dyn FnMut(&'static str, &Program),
) -> Result<Ready, Diagnostic> {
    let id = algorithm.id;
    let refuse = |message: String, hint: &str| Diagnostic::global(Code::Unsupported, message).hint(hint);
    if kind != Kind::Vjp {
        let message = format!(
            "`{id}` gives the reverse derivative for one cotangent, not several or second derivatives"
        );
        return Err(refuse(message, "use `pullback grad` or `pullback vjp`, or `--ad bulk`"));
    }
    if !matches!(session.settings.backend, Backend::Auto | Backend::Interp) {
        let message = format!("`{id}` makes delta terms while it runs, in the reference interpreter");
        return Err(refuse(message, "use --backend interp, or `--ad bulk`, which is compiled"));
    }
    let start = Instant::now();
    let (mut program, roots) = pipeline::keep_reachable(&session.program, &[entry.fun]);
    let steps = pipeline::steps(session.settings.optimise);
    let end = steps.iter().position(|s| matches!(s, Step::Differentiate)).map_or(steps.len(), |k| k + 1);
    let choice = Choice { reverse: None, ..session.settings.choice.clone() };
    let fun = deep(|| pipeline::run_for(&mut program, roots[0], &steps[..end], &choice, watch))?;
    program.ieee_partials = choice.ieee_partials;
    let made = deep(|| algorithm.derivative(&program, fun, wanted)).map_err(|e| e.to_diagnostic())?;
    let (program, fun) = made.first();
    let mut ready = Ready::new(program.clone(), fun, Backend::Interp);
    ready.stages =
        vec![("front end", session.front_seconds), ("differentiate", start.elapsed().as_secs_f64())];
    ready.on_fragment = Some(OnFragment(Arc::new(made)));
    Ok(ready)
}

impl OnFragment {
    /// Runs it: arguments, then cotangents. Elements touched and nodes evaluated count as steps.
    ///
    /// Errors: those of the program, and of the options.
    pub(crate) fn run(&self, args: &[Value], options: &Options<'_>) -> Result<Outcome, RuntimeError> {
        let (mut outcome, run) = self.run_counted(args, options)?;
        outcome.counts.work += run.touched + run.evals;
        outcome.results = run.results.into_iter().chain(run.cotangents).collect();
        Ok(outcome)
    }

    /// Runs it, and says what its delta terms took.
    pub(crate) fn run_counted(
        &self,
        args: &[Value],
        options: &Options<'_>,
    ) -> Result<(Outcome, Run), RuntimeError> {
        let (program, fun) = self.0.first();
        let (args, cotangents) = args.split_at(program.funs[fun].params.len().min(args.len()));
        let mut outcome = Compiled::new(program).run(fun, args, options)?;
        let run = self.0.after(std::mem::take(&mut outcome.results), cotangents)?;
        Ok((outcome, run))
    }

    /// The function's form in the fragment, which runs over dual numbers or dual arrays.
    pub fn derivative(&self) -> &Derivative {
        &self.0
    }
}
