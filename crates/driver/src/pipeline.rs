//! The pipelines as data, and the one function that runs them.
//!
//! The checker runs before the first step and after the last; in builds with debug assertions, and wherever tests ask for it
//! ([`Checks`]), after every step: it finds errors of the passes, and every step with it takes half as long again.

use pullback_ad::differentiate::Choice;
use pullback_base::{Code, Diagnostic};
use pullback_core::check::{Rules, check};
use pullback_core::traverse::reachable_functions;
use pullback_core::{Body, Exp, Fun, FunId, Program};
use pullback_opt::Pass;
use std::collections::BTreeMap;

/// One step.
#[derive(Clone, Copy)]
pub enum Step {
    /// A pass from core to core.
    Pass(&'static Pass),
    /// Expand `vjp` and `jvp`, innermost first.
    Differentiate,
}

impl Step {
    /// Its name.
    pub fn name(&self) -> &'static str {
        match self {
            Step::Pass(pass) => pass.name,
            Step::Differentiate => "differentiate",
        }
    }
    /// What it does, in a line.
    pub fn description(&self) -> &'static str {
        match self {
            Step::Pass(pass) => pass.description,
            Step::Differentiate => "expand vjp and jvp, innermost first",
        }
    }
}

/// From lowered core to optimised core without derivatives. Before it: parse, check, elaborate, lower.
pub const STANDARD: &[Step] = &[
    Step::Pass(&pullback_opt::INLINE),
    Step::Pass(&pullback_opt::KEEP_CHECKS), // before anything that could stop a program goes
    Step::Pass(&pullback_opt::CHOOSE),      // an operator that is unrolled stays one
    Step::Pass(&pullback_opt::SIMPLIFY),
    Step::Pass(&pullback_opt::UNROLL), // constant indices and no tape for short vectors
    Step::Pass(&pullback_opt::SIMPLIFY),
    Step::Pass(&pullback_opt::CSE),
    Step::Pass(&pullback_opt::HOIST), // what does not vary need not be stored per iteration
    Step::Pass(&pullback_opt::CSE),   // one name per value, so that no value is on a tape twice
    Step::Pass(&pullback_opt::SIMPLIFY),
    Step::Pass(&pullback_opt::SETTLE_CHECKS), // what stays is in the way of other passes
    Step::Pass(&pullback_opt::PRUNE),         // a dead use in a lambda would open an accumulator for nothing
    Step::Differentiate,
    Step::Pass(&pullback_opt::CSE), // partial derivatives that repeat primal work, sizes of states
    Step::Pass(&pullback_opt::SIMPLIFY), // copies and products with one that differentiation left
    Step::Pass(&pullback_opt::PRUNE), // what only the primal result needed
    Step::Pass(&pullback_opt::GUARD_ELIMINATION), // a branch that goes is not joined
    Step::Pass(&pullback_opt::JOIN_BRANCHES), // forward code meets reverse code
    Step::Pass(&pullback_opt::CSE),
    Step::Pass(&pullback_opt::PRUNE), // what an arm handed over to the other branch
    Step::Pass(&pullback_opt::ELIMINATE_ACCUMULATORS),
    Step::Pass(&pullback_opt::SIMPLIFY), // nests that no longer accumulate
    Step::Pass(&pullback_opt::CSE),
    Step::Pass(&pullback_opt::PRUNE),
    Step::Pass(&pullback_opt::HOIST), // sizes and factors that a tape would hold once per iteration
    Step::Pass(&pullback_opt::CSE),
    Step::Pass(&pullback_opt::SIMPLIFY), // columns of a tape that do not vary
    Step::Pass(&pullback_opt::PRUNE),
    Step::Pass(&pullback_opt::FUSE), // after differentiation, whose rules are about the parts
    Step::Pass(&pullback_opt::SIMPLIFY), // what was boxed for a tape meets its reader
    Step::Pass(&pullback_opt::UNBOX), // when what is never read is off the tape
    Step::Pass(&pullback_opt::SIMPLIFY),
    Step::Pass(&pullback_opt::HOIST),
    Step::Pass(&pullback_opt::SIMPLIFY),
    Step::Pass(&pullback_opt::FUSE),
    Step::Pass(&pullback_opt::CSE),
    Step::Pass(&pullback_opt::REMATERIALISE), // columns of a tape that fusion brought together
    Step::Pass(&pullback_opt::CSE),
    Step::Pass(&pullback_opt::SIMPLIFY), // columns that are read once now
    Step::Pass(&pullback_opt::CSE),
    Step::Pass(&pullback_opt::COPY_ELISION), // not before what would find that copies are what they copy
    Step::Pass(&pullback_opt::GATHER),       // sizes have their names now, also those that were on a tape
    Step::Pass(&pullback_opt::FUSE),         // rows that are read where they lie
    Step::Pass(&pullback_opt::ONE_HOT_REDUCTION),
    Step::Pass(&pullback_opt::FUSE), // sums that were in the way
    Step::Pass(&pullback_opt::SINK), // parts of the tape that one branch reads
    Step::Pass(&pullback_opt::DEAD_ARGUMENT_ELIMINATION),
    Step::Pass(&pullback_opt::PRUNE),
    Step::Pass(&pullback_opt::SETTLE_CHECKS), // when it is known what stays
    Step::Pass(&pullback_opt::PRUNE),
    Step::Pass(&pullback_opt::SHORTEN), // what fusion makes early
];

/// Only what is necessary to run: nothing is optimised.
pub const PLAIN: &[Step] = &[Step::Pass(&pullback_opt::KEEP_CHECKS), Step::Differentiate];

/// The steps for an optimisation setting.
pub fn steps(optimise: bool) -> &'static [Step] {
    if optimise { STANDARD } else { PLAIN }
}

/// When the checker looks at the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checks {
    /// Before the first step and after the last.
    Ends,
    /// Before the first step and after each.
    EachStep,
}

impl Default for Checks {
    /// After each step in builds with debug assertions, else at the ends.
    fn default() -> Self {
        if cfg!(debug_assertions) { Checks::EachStep } else { Checks::Ends }
    }
}

/// Runs the steps on a program, with the checks of this build. `watch` sees the program after each step.
///
/// Errors: a construct without derivative (`Unsupported`), or a malformed program (a bug of the step it names, or of one that was
/// not checked before it).
pub fn run(
    program: &mut Program,
    steps: &[Step],
    choice: &Choice,
    watch: &mut dyn FnMut(&'static str, &Program),
) -> Result<(), Diagnostic> {
    run_with(program, steps, choice, Checks::default(), watch)
}

/// [`run`] for one function: what it does not reach any more once calls are replaced by bodies is dropped, so that later steps
/// have nothing to do with it. Returns the new id of the function.
pub fn run_for(
    program: &mut Program,
    fun: FunId,
    steps: &[Step],
    choice: &Choice,
    watch: &mut dyn FnMut(&'static str, &Program),
) -> Result<FunId, Diagnostic> {
    let mut wanted = Some(fun);
    all_steps(program, &mut wanted, steps, choice, Checks::default(), watch)?;
    Ok(wanted.unwrap_or(fun))
}

/// [`run`] with checks as told.
pub fn run_with(
    program: &mut Program,
    steps: &[Step],
    choice: &Choice,
    checks: Checks,
    watch: &mut dyn FnMut(&'static str, &Program),
) -> Result<(), Diagnostic> {
    all_steps(program, &mut None, steps, choice, checks, watch)
}

fn all_steps(
    program: &mut Program,
    wanted: &mut Option<FunId>,
    steps: &[Step],
    choice: &Choice,
    checks: Checks,
    watch: &mut dyn FnMut(&'static str, &Program),
) -> Result<(), Diagnostic> {
    checked(program, Rules::SURFACE, "lower")?;
    watch("lower", program);
    let mut rules = Rules::SURFACE;
    let mut cx = pullback_opt::Ctx::default();
    for (k, step) in steps.iter().enumerate() {
        match step {
            Step::Pass(pass) => {
                (pass.run)(program, &cx);
                if let (Some(fun), true) = (*wanted, pass.name == pullback_opt::INLINE.name) {
                    *wanted = Some(drop_unreachable(program, fun));
                }
            }
            Step::Differentiate => {
                pullback_ad::differentiate(program, choice).map_err(|e| e.to_diagnostic())?;
                rules = Rules::NO_AD;
                cx.derivatives_done = true;
            }
        }
        if checks == Checks::EachStep || k + 1 == steps.len() {
            checked(program, rules, step.name())?;
        }
        watch(step.name(), program);
    }
    Ok(())
}

fn checked(program: &Program, rules: Rules, pass: &str) -> Result<(), Diagnostic> {
    check(program, rules).map_err(|malformed| {
        let message = format!("after the pass `{pass}` the program is malformed: {malformed}");
        let mut d = Diagnostic::global(Code::Internal, message);
        d.span = malformed.span;
        d.hint("this is a bug in Pullback, not in your program: please report it with the program")
    })
}

/// The program with the functions that these can reach, and their new ids, in the order given.
pub fn keep_reachable(program: &Program, roots: &[FunId]) -> (Program, Vec<FunId>) {
    let reachable = reachable_functions(program, roots.iter().copied());
    let (types, vars) = (program.types.clone(), program.vars.clone());
    let mut kept = Program { types, vars, ieee_partials: program.ieee_partials, ..Program::default() };
    let ids: BTreeMap<FunId, FunId> =
        reachable.iter().map(|&f| (f, kept.funs.push(program.funs[f].clone()))).collect();
    kept.funs.iter_mut().for_each(|fun| rename_calls(&mut fun.body, &ids));
    let roots = roots.iter().filter_map(|f| ids.get(f).copied()).collect();
    (kept, roots)
}

/// Drops the functions that this one cannot reach; its new id.
fn drop_unreachable(program: &mut Program, root: FunId) -> FunId {
    let reachable = reachable_functions(program, [root]);
    if reachable.len() == program.funs.len() {
        return root;
    }
    let mut all = std::mem::take(&mut program.funs);
    let mut ids = BTreeMap::new();
    for f in reachable {
        let body = std::mem::take(&mut all[f].body);
        ids.insert(f, program.funs.push(Fun { body, ..all[f].clone() }));
    }
    program.funs.iter_mut().for_each(|fun| rename_calls(&mut fun.body, &ids));
    ids.get(&root).copied().unwrap_or(root)
}

fn rename_calls(body: &mut Body, ids: &BTreeMap<FunId, FunId>) {
    for stm in &mut body.stms {
        if let Exp::Call(f, _) = &mut stm.exp
            && let Some(new) = ids.get(f)
        {
            *f = *new;
        }
        for scope in stm.exp.bodies_mut() {
            rename_calls(scope.body, ids);
        }
    }
}
