//! What must hold for every program, one function per property.
//!
//! Names and equations are those of the house plan: `checked`, `round-trip`, `opt-preserves`, `primal`, `adjoint`,
//! `agree`, `outside`, `linear`, `symmetric`, `mixes`, `many`, `schedules`, `cost`, `checkpoints`, `tape`, `in-place`. The Jacobian comes from the
//! dual-number evaluator of the interpreter, which shares no code with the AD crate.
//!
//! A property holds, fails, or is skipped for a stated reason; skips are counted, never silent.

mod in_place;
mod many;
mod mixes;
mod tape;

pub use many::{Change, many_with};
pub use mixes::mixes;

use crate::flat::{cotangent_floats, random_cotangent, zero_cotangent};
use crate::generate::shape::Sizes;
use crate::generate::{Config, Generated, generate};
use crate::rng::Rng;
use pullback_ad::contract::Unsupported;
use pullback_ad::differentiate::{Choice, differentiate};
use pullback_base::index::{IdMap, Index};
use pullback_base::{FileId, RuntimeErrorKind};
use pullback_core::check::{Rules, check};
use pullback_core::{Fun, FunId, Lam, Program, Type, Value};
use pullback_interp::core::{Compiled, Options};
use pullback_interp::dual::{central_difference, count_floats, directional, inner};
use pullback_prim::Scalar;
use std::cell::OnceCell;

/// A reverse-mode transformation under test; see [`pullback_ad::contract::Transform`].
pub type Reverse<'a> = &'a (dyn Fn(&mut Program, &Lam, &[bool]) -> Result<Lam, Unsupported> + Sync);

/// A program with arguments.
#[derive(Clone, Debug)]
pub struct Case {
    /// The program.
    pub program: Program,
    /// The function.
    pub main: FunId,
    /// Its arguments.
    pub args: Vec<Value>,
    /// Arguments at growing sizes for the cost property (empty: it is skipped).
    pub growing: Vec<Vec<Value>>,
    /// The seed for directions and cotangents.
    pub seed: u64,
    /// Whether differences are meaningful (no `stop_gradient`).
    pub smooth: bool,
    /// Whether some array is empty: inner sizes may be lost then.
    pub empties: bool,
}

impl Case {
    /// The case of a generated program.
    pub fn of(generated: &Generated) -> Case {
        let Sizes { n, m } = generated.sizes;
        let growing = [2, 6, 18, 54].map(|k| generated.inputs(Sizes { n: n.max(2) * k, m: m.max(2) * k }, 1));
        Case {
            program: generated.program.clone(),
            main: generated.main,
            args: generated.inputs(generated.sizes, 0),
            growing: growing.to_vec(),
            seed: generated.seed,
            smooth: generated.features.stop_gradients == 0,
            empties: generated.features.empty_arrays > 0,
        }
    }
    /// Whether single precision occurs anywhere.
    fn single(&self) -> bool {
        fn mentions(t: &Type) -> bool {
            match t {
                Type::Scalar(s) => *s == Scalar::F32,
                Type::Tuple(ts) => ts.iter().any(mentions),
                Type::Sum(vs) => vs.iter().flat_map(|v| &v.fields).any(mentions),
                Type::Array(t) | Type::Acc(t) => mentions(t),
                Type::Named(_) => false,
            }
        }
        self.program.vars.iter().any(|v| mentions(&v.ty))
    }
    /// The relative tolerance for equalities that hold up to rounding.
    fn tolerance(&self) -> f64 {
        if self.single() { 2e-3 } else { 1e-8 }
    }
}

/// Why a property does not apply to a program.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Skip {
    /// The algorithm does not cover a construct.
    Unsupported(String),
    /// The oracle stepped on a kink.
    Kink,
    /// Numbers beyond the range where comparisons mean something.
    NotFinite,
    /// The program asks for a derivative other than the mathematical one.
    Detached,
    /// Differences of two steps disagree: the program is not smooth enough there.
    NotSmooth,
    /// A shape was lost because an outer dimension is empty (core arrays carry no type-level sizes).
    LostShape,
    /// Too expensive at the sizes of this property.
    TooLarge,
    /// The property is about other programs.
    NotApplicable,
}

/// What came of checking a property on a program.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// It holds.
    Holds,
    /// It does not apply.
    Skipped(Skip),
    /// It fails, with an explanation.
    Fails(String),
}

/// The properties.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Property {
    /// `check(pass(P))` for every pass.
    Checked,
    /// `read(print(P)) = P`, up to numbering.
    RoundTrip,
    /// `eval(opt(P)) ≈ eval(P)`.
    OptPreserves,
    /// The first results of `vjp(P)` are bit-equal to those of `P`.
    Primal,
    /// The same up to rounding: an algorithm may fold in an order of its own, and need not combine a neutral element.
    Values,
    /// `⟨ȳ, J u⟩ = ⟨Jᵀ ȳ, u⟩`.
    Adjoint,
    /// Forward mode computes `J u` too.
    Agree,
    /// Central differences in a random direction, with a loose tolerance.
    Outside,
    /// `vjp(ȳ₁ + ȳ₂) = vjp(ȳ₁) + vjp(ȳ₂)`; the zero cotangent gives zero.
    Linear,
    /// The second derivative is symmetric, and reverse over reverse agrees with it.
    Symmetric,
    /// Second derivatives by all four mixes of modes agree.
    Mixes,
    /// Many directions at once give what one after the other gives, in both modes.
    Many,
    /// Parallel schedules do not change the result.
    Schedules,
    /// Work of the derivative over work of the program does not grow with the size of the data.
    Cost,
    /// The derivative is right whatever attributes loops have.
    Checkpoints,
    /// What is stored and what is computed again changes neither results nor cotangents.
    Tape,
    /// Nothing reads what a write in place has overwritten.
    InPlace,
}

impl Property {
    /// Those of any reverse derivative, without a claim about its cost.
    pub const OF_A_DERIVATIVE: [Property; 6] = [
        Property::Checked,
        Property::RoundTrip,
        Property::Primal,
        Property::Adjoint,
        Property::Linear,
        Property::Many,
    ];
    /// The same of algorithms that translate a function to a language with folds of its own.
    pub const OF_A_TRANSLATION: [Property; 6] = [
        Property::Checked,
        Property::RoundTrip,
        Property::Values,
        Property::Adjoint,
        Property::Linear,
        Property::Many,
    ];
    /// All of them.
    pub const ALL: [Property; 17] = [
        Property::Checked,
        Property::RoundTrip,
        Property::OptPreserves,
        Property::Primal,
        Property::Values,
        Property::Adjoint,
        Property::Agree,
        Property::Outside,
        Property::Linear,
        Property::Symmetric,
        Property::Mixes,
        Property::Many,
        Property::Schedules,
        Property::Cost,
        Property::Checkpoints,
        Property::Tape,
        Property::InPlace,
    ];
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Property::Checked => "checked",
            Property::RoundTrip => "round-trip",
            Property::OptPreserves => "opt-preserves",
            Property::Primal => "primal",
            Property::Values => "values",
            Property::Adjoint => "adjoint",
            Property::Agree => "agree",
            Property::Outside => "outside",
            Property::Linear => "linear",
            Property::Symmetric => "symmetric",
            Property::Mixes => "mixes",
            Property::Many => "many",
            Property::Schedules => "schedules",
            Property::Cost => "cost",
            Property::Checkpoints => "checkpoints",
            Property::Tape => "tape",
            Property::InPlace => "in-place",
        }
    }
    /// Checks it on a case under a reverse-mode algorithm.
    pub fn check(self, case: &Case, reverse: Reverse<'_>) -> Verdict {
        self.check_on(&Subject::new(case, reverse))
    }
    /// The same, of a case that may have been derived for another property.
    pub fn check_on(self, of: &Subject<'_>) -> Verdict {
        let Subject { case, reverse, .. } = *of;
        let result = match self {
            Property::Checked => checked(of),
            Property::RoundTrip => round_trip(of),
            Property::OptPreserves => opt_preserves(case),
            Property::Primal => primal(of),
            Property::Values => values(of),
            Property::Adjoint => adjoint(of),
            Property::Agree => agree(case),
            Property::Outside => outside(case),
            Property::Linear => linear(of),
            Property::Symmetric => symmetric(of),
            // Dear: a few of the programs.
            Property::Mixes if !case.seed.is_multiple_of(16) => Err(Stop::Skip(Skip::NotApplicable)),
            Property::Mixes => mixes(case),
            Property::Many => many::many(of),
            Property::Schedules => schedules(case),
            Property::Cost => cost(case, reverse),
            Property::Checkpoints => crate::checkpoints::checkpoints(case, reverse),
            Property::Tape => tape::tape(of),
            Property::InPlace => in_place::in_place(of),
        };
        match result {
            Ok(()) => Verdict::Holds,
            Err(Stop::Skip(skip)) => Verdict::Skipped(skip),
            Err(Stop::Fail(text)) => Verdict::Fails(text),
        }
    }
}

/// Why a check ends early.
#[derive(Clone, Debug)]
pub enum Stop {
    /// The property does not apply.
    Skip(Skip),
    /// It fails.
    Fail(String),
}

impl From<Unsupported> for Stop {
    fn from(e: Unsupported) -> Stop {
        Stop::Skip(Skip::Unsupported(e.construct))
    }
}

/// Nothing, or why a check ends early.
pub type Check = Result<(), Stop>;

fn fail<T>(text: String) -> Result<T, Stop> {
    Err(Stop::Fail(text))
}

const WORK_LIMIT: u64 = 20_000_000;

fn options() -> Options<'static> {
    Options { work_limit: WORK_LIMIT, memory_limit: 1 << 30, ..Options::default() }
}

fn stopped(case: &Case, what: &str, e: pullback_base::RuntimeError) -> Stop {
    match e.kind {
        RuntimeErrorKind::Limit => Stop::Skip(Skip::TooLarge),
        RuntimeErrorKind::ShapeMismatch | RuntimeErrorKind::OutOfBounds if case.empties => {
            Stop::Skip(Skip::LostShape)
        }
        kind => Stop::Fail(format!("{what} stopped: {kind:?}: {}", e.message)),
    }
}

/// The program with a further function that is the reverse derivative of `main`, pruned.
///
/// Derivatives inside the program are expanded by the default algorithms first.
pub fn reverse_program(case: &Case, reverse: Reverse<'_>) -> Result<(Program, FunId), Unsupported> {
    let mut program = case.program.clone();
    differentiate(&mut program, &Choice::default())?;
    let id = reverse_function(&mut program, case.main, reverse)?;
    pullback_core::prune::prune_program(&mut program);
    Ok((program, id))
}

fn reverse_function(program: &mut Program, main: FunId, reverse: Reverse<'_>) -> Result<FunId, Unsupported> {
    let fun = &program.funs[main];
    let source = Lam { params: fun.params.clone(), body: fun.body.clone() };
    let name = format!("{}_vjp", fun.name.as_str());
    let lam = pullback_core::rename::copy_lam(program, &source, &IdMap::new());
    let wanted = vec![true; lam.params.len()];
    let derived = reverse(program, &lam, &wanted)?;
    let results = program.body_types(&derived.body);
    Ok(program.funs.push(Fun {
        name: name.as_str().into(),
        params: derived.params,
        body: derived.body,
        results,
        entry: None,
    }))
}

/// A case under a reverse-mode algorithm. It is derived once, for all properties that need that.
pub struct Subject<'a> {
    case: &'a Case,
    reverse: Reverse<'a>,
    derived: OnceCell<Result<(Program, FunId), Unsupported>>,
    reversed: OnceCell<Result<Reversed, Stop>>,
}

impl<'a> Subject<'a> {
    /// Nothing is derived yet.
    pub fn new(case: &'a Case, reverse: Reverse<'a>) -> Subject<'a> {
        Subject { case, reverse, derived: OnceCell::new(), reversed: OnceCell::new() }
    }
    /// As [`reverse_program`].
    pub fn derived(&self) -> Result<&(Program, FunId), Unsupported> {
        self.derived.get_or_init(|| reverse_program(self.case, self.reverse)).as_ref().map_err(Clone::clone)
    }
    fn reversed(&self) -> Result<&Reversed, Stop> {
        let of = || Reversed::of(self.case, self.derived()?.clone());
        self.reversed.get_or_init(of).as_ref().map_err(Clone::clone)
    }
}

/// Everything about one case that several properties need.
#[derive(Clone)]
struct Reversed {
    program: Program,
    id: FunId,
    results: Vec<Value>,
    /// Which parameters and which results are active.
    active_params: Vec<bool>,
    active_results: Vec<bool>,
}

impl Reversed {
    fn new(case: &Case, reverse: Reverse<'_>) -> Result<Reversed, Stop> {
        Reversed::of(case, reverse_program(case, reverse)?)
    }
    fn of(case: &Case, (program, id): (Program, FunId)) -> Result<Reversed, Stop> {
        if let Err(e) = check(&program, Rules::NO_AD) {
            return fail(format!("the derivative is malformed: {e}"));
        }
        run_primal(case)?;
        // Bit equality is with the program whose inner derivatives are expanded: another way to compute them rounds
        // differently.
        let code = Compiled::new(&program);
        let out = code.run(case.main, &case.args, &options());
        let results = out.map_err(|e| stopped(case, "the program without inner derivatives", e))?.results;
        let fun = &case.program.funs[case.main];
        let active_params =
            fun.params.iter().map(|p| case.program.is_active(&case.program.vars[*p].ty)).collect();
        let active_results = fun.results.iter().map(|t| case.program.is_active(t)).collect();
        Ok(Reversed { program, id, results, active_params, active_results })
    }
    fn cotangents(&self, rng: &mut Rng) -> Vec<Value> {
        let pairs = self.results.iter().zip(&self.active_results);
        pairs.filter_map(|(v, active)| random_cotangent(v, *active, rng)).collect()
    }
    /// The floats of cotangents of the results, aligned with the floats of the results.
    fn flat_results(&self, cotangents: &[Value]) -> Result<Vec<f64>, Stop> {
        flat(&self.results, &self.active_results, cotangents)
    }
    /// Runs the derivative: primal results, and the floats of the cotangents of the arguments.
    fn run(&self, case: &Case, cotangents: &[Value]) -> Result<(Vec<Value>, Vec<f64>), Stop> {
        let args = case.args.as_slice();
        let code = Compiled::new(&self.program);
        let all: Vec<Value> = args.iter().chain(cotangents).cloned().collect();
        let mut out =
            code.run(self.id, &all, &options()).map_err(|e| stopped(case, "the derivative", e))?.results;
        let bars = out.split_off(self.results.len().min(out.len()));
        let flat = flat(args, &self.active_params, &bars)?;
        Ok((out, flat))
    }
}

fn flat(values: &[Value], active: &[bool], cotangents: &[Value]) -> Result<Vec<f64>, Stop> {
    let mut rest = cotangents.iter();
    let mut out = Vec::new();
    for (v, active) in values.iter().zip(active) {
        if !active {
            continue;
        }
        let Some(c) = rest.next() else { return fail("a cotangent is missing".into()) };
        out.extend(cotangent_floats(v, c).map_err(Stop::Fail)?);
    }
    if rest.next().is_some() {
        return fail("there are more cotangents than active values".into());
    }
    Ok(out)
}

fn run_primal(case: &Case) -> Result<Vec<Value>, Stop> {
    let code = Compiled::new(&case.program);
    let out = code.run(case.main, &case.args, &options()).map_err(|e| stopped(case, "the program", e))?;
    finite(&out.results.iter().flat_map(Value::floats).collect::<Vec<_>>())?;
    Ok(out.results)
}

fn finite(xs: &[f64]) -> Check {
    // Numbers beyond this leave no digits for a comparison of sums.
    if xs.iter().all(|x| x.abs() < 1e12) { Ok(()) } else { Err(Stop::Skip(Skip::NotFinite)) }
}

fn direction(n: usize, rng: &mut Rng) -> Vec<f64> {
    (0..n).map(|_| rng.signed()).collect()
}

/// The sum of magnitudes of the terms of an inner product: the scale of its rounding error.
fn scale(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(a, b)| (a * b).abs()).sum()
}

fn close(what: &str, a: f64, b: f64, scale: f64, tolerance: f64) -> Check {
    if (a - b).abs() <= tolerance * (1.0 + scale) {
        Ok(())
    } else {
        fail(format!("{what}: {a:e} and {b:e} differ (scale {scale:e})"))
    }
}

fn rng_of(case: &Case) -> Rng {
    Rng::new(case.seed ^ 0x0DD_BA11)
}

/// `checked`: the program, the program without derivatives and the derivative are well formed.
fn checked(of: &Subject<'_>) -> Check {
    let case = of.case;
    if let Err(e) = check(&case.program, Rules::SURFACE) {
        return fail(format!("the program is malformed: {e}"));
    }
    let (program, _) = of.derived()?;
    check(program, Rules::NO_AD).map_err(|e| Stop::Fail(format!("the derivative is malformed: {e}")))
}

/// `round-trip`: reading what was printed and printing it again changes nothing.
fn round_trip(of: &Subject<'_>) -> Check {
    let case = of.case;
    text_round_trip(&case.program)?;
    if case.seed.is_multiple_of(4)
        && let Ok((program, _)) = of.derived()
    {
        text_round_trip(program)?;
    }
    Ok(())
}

pub(crate) fn text_round_trip(program: &Program) -> Check {
    let text = pullback_core::print::print(program);
    let again = pullback_core::read::read(FileId::new(0), &text);
    let again =
        again.map_err(|d| Stop::Fail(format!("the printed program cannot be read: {}", d.message)))?;
    let second = pullback_core::print::print(&again);
    if text == second { Ok(()) } else { fail(first_difference(&text, &second)) }
}

fn first_difference(a: &str, b: &str) -> String {
    let pair = a.lines().zip(b.lines()).find(|(x, y)| x != y);
    match pair {
        Some((x, y)) => format!("printed, read and printed again: `{x}` became `{y}`"),
        None => "printed, read and printed again: one text is longer".into(),
    }
}

/// `opt-preserves`: the optimised program has the same results.
fn opt_preserves(case: &Case) -> Check {
    let reference = run_primal(case)?;
    let mut program = case.program.clone();
    // Reassociation is not allowed, so values stay the same up to what derivatives inside do.
    for pass in [&pullback_opt::INLINE, &pullback_opt::SIMPLIFY, &pullback_opt::CSE, &pullback_opt::PRUNE] {
        (pass.run)(&mut program, &pullback_opt::Ctx::default());
        if let Err(e) = check(&program, Rules::SURFACE) {
            return fail(format!("the program is malformed after {}: {e}", pass.name));
        }
        let out = Compiled::new(&program).run(case.main, &case.args, &options());
        let out = out.map_err(|e| stopped(case, "the optimised program", e))?.results;
        same_floats(pass.name, &reference, &out, 1e-12)?;
    }
    Ok(())
}

/// `primal`: the derivative's first results are the program's, bit for bit.
pub(crate) fn primal(of: &Subject<'_>) -> Check {
    let case = of.case;
    let r = of.reversed()?;
    let mut rng = rng_of(case);
    let (out, _) = r.run(case, &r.cotangents(&mut rng))?;
    if out == r.results { Ok(()) } else { fail(format!("primal results: {:?} became {out:?}", r.results)) }
}

/// `values`: the derivative's first results are the program's, up to rounding.
fn values(of: &Subject<'_>) -> Check {
    let case = of.case;
    let r = of.reversed()?;
    let mut rng = rng_of(case);
    let (out, _) = r.run(case, &r.cotangents(&mut rng))?;
    same_floats("primal results", &r.results, &out, case.tolerance())
}

/// `adjoint`: `⟨ȳ, J u⟩ = ⟨Jᵀ ȳ, u⟩` with `J u` by dual numbers.
pub(crate) fn adjoint(of: &Subject<'_>) -> Check {
    let case = of.case;
    let r = of.reversed()?;
    let code = Compiled::new(&case.program);
    let mut rng = rng_of(case);
    for _ in 0..2 {
        let u = direction(count_floats(&case.args), &mut rng);
        let ju = directional(&code, case.main, &case.args, &u, &options())
            .map_err(|e| stopped(case, "the oracle", e))?
            .tangent;
        finite(&ju)?;
        let bars = r.cotangents(&mut rng);
        let y_bar = r.flat_results(&bars)?;
        let (_, x_bar) = r.run(case, &bars)?;
        if x_bar.iter().any(|x| !x.is_finite()) {
            return fail(format!("the gradient is not finite: {x_bar:?}"));
        }
        let (left, right) = (inner(&y_bar, &ju), inner(&x_bar, &u));
        let size = scale(&y_bar, &ju) + scale(&x_bar, &u);
        close("⟨ȳ, J u⟩ and ⟨Jᵀ ȳ, u⟩", left, right, size, case.tolerance())?;
    }
    Ok(())
}

/// `agree`: forward mode gives the tangent of the oracle.
fn agree(case: &Case) -> Check {
    let mut program = case.program.clone();
    differentiate(&mut program, &Choice::default())?;
    let fun = &program.funs[case.main];
    let source = Lam { params: fun.params.clone(), body: fun.body.clone() };
    let lam = pullback_core::rename::copy_lam(&mut program, &source, &IdMap::new());
    let wanted = vec![true; lam.params.len()];
    let derived = (pullback_ad::forward::ALGORITHM.transform)(&mut program, &lam, &wanted)?;
    let results = program.body_types(&derived.body);
    let id = program.funs.push(Fun {
        name: "main_jvp".into(),
        params: derived.params,
        body: derived.body,
        results,
        entry: None,
    });
    if let Err(e) = check(&program, Rules::NO_AD) {
        return fail(format!("the forward derivative is malformed: {e}"));
    }
    let original = run_primal(case)?;
    let expanded = Compiled::new(&program).run(case.main, &case.args, &options());
    let primal = expanded.map_err(|e| stopped(case, "the program without inner derivatives", e))?.results;
    same_floats("results with inner derivatives expanded", &original, &primal, case.tolerance())?;
    let fun = &case.program.funs[case.main];
    let active_params: Vec<bool> =
        fun.params.iter().map(|p| case.program.is_active(&case.program.vars[*p].ty)).collect();
    let active_results: Vec<bool> = fun.results.iter().map(|t| case.program.is_active(t)).collect();
    let mut rng = rng_of(case);
    let tangents: Vec<Value> = case
        .args
        .iter()
        .zip(&active_params)
        .filter_map(|(v, active)| random_cotangent(v, *active, &mut rng))
        .collect();
    let u = flat(&case.args, &active_params, &tangents)?;
    let all: Vec<Value> = case.args.iter().chain(&tangents).cloned().collect();
    let code = Compiled::new(&program);
    let mut out =
        code.run(id, &all, &options()).map_err(|e| stopped(case, "the forward derivative", e))?.results;
    let dots = out.split_off(primal.len().min(out.len()));
    if out != primal {
        return fail(format!("forward mode changed the primal results: {primal:?} became {out:?}"));
    }
    let code = Compiled::new(&case.program);
    let oracle = directional(&code, case.main, &case.args, &u, &options())
        .map_err(|e| stopped(case, "the oracle", e))?;
    finite(&oracle.tangent)?;
    let found = flat(&primal, &active_results, &dots)?;
    if found.len() != oracle.tangent.len() {
        return fail(format!("{} tangents, the oracle has {}", found.len(), oracle.tangent.len()));
    }
    let size = found.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
    for (k, (x, y)) in found.iter().zip(&oracle.tangent).enumerate() {
        close(&format!("tangent {k} of forward mode and oracle"), *x, *y, size, case.tolerance())?;
    }
    Ok(())
}

/// `outside`: central differences in a random direction.
fn outside(case: &Case) -> Check {
    run_primal(case)?;
    if !case.smooth {
        return Err(Stop::Skip(Skip::Detached));
    }
    if case.single() {
        return Err(Stop::Skip(Skip::NotApplicable));
    }
    let code = Compiled::new(&case.program);
    let mut rng = rng_of(case);
    let u = direction(count_floats(&case.args), &mut rng);
    let oracle = directional(&code, case.main, &case.args, &u, &options())
        .map_err(|e| stopped(case, "the oracle", e))?;
    if oracle.kinks > 0 {
        return Err(Stop::Skip(Skip::Kink));
    }
    finite(&oracle.tangent)?;
    let difference = |h: f64| {
        central_difference(&code, case.main, &case.args, &u, h, &options())
            .map_err(|e| stopped(case, "differences", e))
    };
    let (Some(coarse), Some(fine)) = (difference(1e-4)?, difference(2e-5)?) else {
        return Err(Stop::Skip(Skip::NotSmooth));
    };
    let size = oracle.tangent.iter().fold(1.0, |m: f64, x| m.max(x.abs()));
    let values = oracle.results.iter().flat_map(Value::floats).fold(1.0, |m: f64, x| m.max(x.abs()));
    let tolerance = 1e-6 * size + 1e-9 * values;
    for (k, ((x, c), f)) in oracle.tangent.iter().zip(&coarse).zip(&fine).enumerate() {
        if (c - f).abs() > tolerance {
            return Err(Stop::Skip(Skip::NotSmooth));
        }
        if (x - f).abs() > 10.0 * tolerance {
            return fail(format!("tangent {k}: {x:e} by dual numbers, {f:e} by differences"));
        }
    }
    Ok(())
}

/// `linear`: the derivative is linear in the cotangent.
fn linear(of: &Subject<'_>) -> Check {
    let case = of.case;
    let r = of.reversed()?;
    let mut rng = rng_of(case);
    let (a, b) = (r.cotangents(&mut rng), r.cotangents(&mut rng));
    let sum: Vec<Value> = a.iter().zip(&b).map(|(x, y)| add(x, y)).collect();
    let (_, of_a) = r.run(case, &a)?;
    let (_, of_b) = r.run(case, &b)?;
    let (_, of_sum) = r.run(case, &sum)?;
    finite(&of_a)?;
    finite(&of_b)?;
    let size = of_a.iter().chain(&of_b).fold(0.0, |m: f64, x| m.max(x.abs()));
    for k in 0..of_sum.len() {
        let expected = of_a[k] + of_b[k];
        close(&format!("entry {k} of vjp(a + b)"), of_sum[k], expected, size, case.tolerance())?;
    }
    let zero: Vec<Value> = r
        .results
        .iter()
        .zip(&r.active_results)
        .filter(|(_, active)| **active)
        .map(|(v, _)| zero_cotangent(v))
        .collect();
    let (_, of_zero) = r.run(case, &zero)?;
    match of_zero.iter().position(|x| *x != 0.0) {
        Some(k) => fail(format!("entry {k} of vjp(0) is {:e}", of_zero[k])),
        None => Ok(()),
    }
}

fn add(x: &Value, y: &Value) -> Value {
    let sum: Vec<f64> = x.floats().iter().zip(y.floats()).map(|(a, b)| a + b).collect();
    pullback_interp::dual::with_floats(x, &mut sum.into_iter())
}

/// `symmetric`: with `h(u)` the derivative of `Jᵀ ȳ` in direction `u`, `⟨h(u), v⟩ = ⟨h(v), u⟩`; and `vjp` of the
/// derivative gives the same.
pub(crate) fn symmetric(of: &Subject<'_>) -> Check {
    let case = of.case;
    // Dear: half of the programs, without sums at the interface and without single precision.
    fn has_sums(v: &Value) -> bool {
        match v {
            Value::Sum(..) => true,
            Value::Tuple(vs) => vs.iter().any(has_sums),
            Value::Scalar(_) | Value::Array(_) | Value::Acc(_) => false,
        }
    }
    let boxed = |v: &Value| matches!(v, Value::Array(a) if a.data.scalar().is_none());
    if !case.seed.is_multiple_of(2) || case.single() {
        return Err(Stop::Skip(Skip::NotApplicable));
    }
    let r = of.reversed()?;
    if case.args.iter().chain(&r.results).any(|v| has_sums(v) || boxed(v)) {
        return Err(Stop::Skip(Skip::NotApplicable));
    }
    let mut rng = rng_of(case);
    let n = count_floats(&case.args);
    let (u, v) = (direction(n, &mut rng), direction(n, &mut rng));
    let bars = r.cotangents(&mut rng);
    let all: Vec<Value> = case.args.iter().chain(&bars).cloned().collect();
    let code = Compiled::new(&r.program);
    let zeros = vec![0.0; count_floats(&bars)];
    let primal_floats = count_floats(&r.results);
    let second = |u: &[f64]| -> Result<Vec<f64>, Stop> {
        let u: Vec<f64> = u.iter().chain(&zeros).copied().collect();
        let out =
            directional(&code, r.id, &all, &u, &options()).map_err(|e| stopped(case, "the oracle", e))?;
        if out.kinks > 0 {
            return Err(Stop::Skip(Skip::Kink));
        }
        finite(&out.tangent)?;
        Ok(out.tangent[primal_floats..].to_vec())
    };
    let (hu, hv) = (second(&u)?, second(&v)?);
    let size = scale(&hu, &v) + scale(&hv, &u);
    if case.smooth {
        close("⟨H u, v⟩ and ⟨H v, u⟩", inner(&hu, &v), inner(&hv, &u), size, 1e-7)?;
    }
    reverse_over_reverse(case, r, of.reverse, &all, &v, &u, &hu)
}

#[allow(clippy::too_many_arguments, reason = "the parts of one comparison")]
fn reverse_over_reverse(
    case: &Case,
    r: &Reversed,
    reverse: Reverse<'_>,
    all: &[Value],
    v: &[f64],
    u: &[f64],
    hu: &[f64],
) -> Check {
    let mut program = r.program.clone();
    let id = reverse_function(&mut program, r.id, reverse)?;
    pullback_core::prune::prune_program(&mut program);
    if let Err(e) = check(&program, Rules::NO_AD) {
        return fail(format!("the second derivative is malformed: {e}"));
    }
    // Cotangents of the derivative's results: zero for the primal results, v for the gradient.
    let run = Compiled::new(&r.program).run(r.id, all, &options());
    let out = run.map_err(|e| stopped(case, "the derivative", e))?.results;
    let mut rest = v.iter().copied();
    let mut seeds = Vec::new();
    for (k, value) in out.iter().enumerate() {
        if value.floats().is_empty() && !r.program.is_active(&r.program.funs[r.id].results[k]) {
            continue;
        }
        let zero = zero_cotangent(value);
        seeds.push(if k < r.results.len() {
            zero
        } else {
            pullback_interp::dual::with_floats(&zero, &mut rest)
        });
    }
    let args: Vec<Value> = all.iter().cloned().chain(seeds).collect();
    let second = Compiled::new(&program).run(id, &args, &options());
    let second = second.map_err(|e| stopped(case, "the second derivative", e))?.results;
    let Some(bars) = second.get(out.len()..) else { return fail("results are missing".into()) };
    let fun = &r.program.funs[r.id];
    let active: Vec<bool> = fun.params.iter().map(|p| r.program.is_active(&r.program.vars[*p].ty)).collect();
    let x_bar = flat(all, &active, bars)?;
    // By symmetry ⟨H v, u⟩ = ⟨v, H u⟩, where H u is the oracle's.
    let (left, right) = (inner(&x_bar[..u.len()], u), inner(hu, v));
    close("H by vjp of vjp and by dual numbers", left, right, scale(&x_bar, u) + scale(hu, v), 1e-7)
}

/// `schedules`: parallel constructs in any order and bracketing give the same results up to rounding.
fn schedules(case: &Case) -> Check {
    let reference = run_primal(case)?;
    let code = Compiled::new(&case.program);
    let u = vec![0.0; count_floats(&case.args)];
    let kinks = directional(&code, case.main, &case.args, &u, &options())
        .map_err(|e| stopped(case, "the oracle", e))?
        .kinks;
    if kinks > 0 {
        // Near a kink a change by rounding may change which way the program goes.
        return Err(Stop::Skip(Skip::Kink));
    }
    for seed in 1..3 {
        let options = Options { schedule_seed: Some(case.seed ^ seed), ..options() };
        let out =
            code.run(case.main, &case.args, &options).map_err(|e| stopped(case, "a parallel run", e))?;
        same_floats("a parallel run", &reference, &out.results, case.tolerance())?;
    }
    Ok(())
}

fn same_floats(what: &str, expected: &[Value], found: &[Value], tolerance: f64) -> Check {
    let (a, b): (Vec<f64>, Vec<f64>) =
        (expected.iter().flat_map(Value::floats).collect(), found.iter().flat_map(Value::floats).collect());
    if a.len() != b.len() {
        return fail(format!("{what}: results of another shape"));
    }
    let size = a.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
    a.iter().zip(&b).try_for_each(|(x, y)| close(what, *x, *y, size, tolerance))
}

/// The ratio of work at arguments of one size: derivative over program plus inputs. `most`: steps that the program may take.
fn work_ratio(case: &Case, r: &(Program, FunId), args: &[Value], most: u64) -> Result<f64, Stop> {
    let limits = Options { work_limit: most, ..options() };
    let primal = Compiled::new(&case.program).run(case.main, args, &limits);
    let primal = primal.map_err(|e| stopped(case, "the program at a larger size", e))?;
    let fun = &case.program.funs[case.main];
    let mut rng = rng_of(case);
    let bars = primal
        .results
        .iter()
        .zip(&fun.results)
        .filter_map(|(v, t)| random_cotangent(v, case.program.is_active(t), &mut rng));
    let all: Vec<Value> = args.iter().cloned().chain(bars).collect();
    let derivative = Compiled::new(&r.0).run(r.1, &all, &Options { work_limit: 10 * most, ..options() });
    let derivative = derivative.map_err(|e| stopped(case, "the derivative at a larger size", e))?;
    let inputs = count_floats(args) as f64;
    Ok(derivative.counts.work as f64 / (primal.counts.work as f64 + inputs))
}

/// `cost`: the ratio of work does not grow by half each time the sizes grow threefold. Three steps are looked at before
/// a program fails (two, if the third is too large to run), because other data may take another branch, and because a
/// part of the program that is more than proportional to the sizes outgrows the others only slowly.
fn cost(case: &Case, reverse: Reverse<'_>) -> Check {
    if case.growing.is_empty() {
        return Err(Stop::Skip(Skip::NotApplicable));
    }
    // The derivatives inside the program are part of both sides.
    let mut expanded = case.clone();
    differentiate(&mut expanded.program, &Choice::default())?;
    let derived = reverse_program(&expanded, reverse)?;
    let mut ratios: Vec<f64> = Vec::new();
    for args in &case.growing {
        // Few programs come to the last step, so it may be dear.
        let last = ratios.len() > 2;
        let ratio = match work_ratio(&expanded, &derived, args, if last { 20_000_000 } else { 2_000_000 }) {
            Err(Stop::Skip(Skip::TooLarge)) if last => break,
            ratio => ratio?,
        };
        ratios.push(ratio);
        let grows = |two: &[f64]| two[1] > 1.5 * two[0] + 1.0;
        if ratios.len() > 1 && !grows(&ratios[ratios.len() - 2..]) {
            return Ok(());
        }
    }
    let grown: Vec<String> = ratios.iter().map(|r| format!("{r:.2}")).collect();
    fail(format!("work of derivative / work of program grew: {}", grown.join(", ")))
}

/// The case of a seed.
pub fn case_of_seed(seed: u64, config: &Config) -> Case {
    Case::of(&generate(seed, config))
}
