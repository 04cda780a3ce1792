//! Functions to run, with arguments.

use super::agree::{is_lost_size, rounding};
use super::{Verdict, Way, is_unstable, near};
use crate::generate::shape::Sizes;
use crate::generate::{Config, Generated, generate};
use crate::problems::Problem;
use crate::properties::{Case, Reverse, reverse_program};
use pullback_ad::contract::Algorithm;
use pullback_ad::{accelerate, bulk, fast_chad};
use pullback_base::{Fault, RuntimeErrorKind};
use pullback_core::traverse::leads_to;
use pullback_core::{FunId, Lam, Program, Type, Value, Var};
use pullback_cpu::Level;
use pullback_driver::pipeline::Checks;
use pullback_driver::{Kind, Settings, derive, pipeline};
use pullback_interp::core::{Compiled, Options};

/// Around the numbers of lanes of registers and blocks.
const AWKWARD: [usize; 8] = [0, 1, 7, 8, 9, 63, 64, 65];
/// Around those of registers, for the most part: where more than sizes matter, there is time for more programs.
const SMALL: [usize; 8] = [0, 1, 2, 3, 7, 8, 9, 65];

/// A function without derivatives inside, and arguments for it.
#[derive(Clone, Debug)]
pub struct Run {
    /// What it is, for reports.
    pub what: String,
    /// The program.
    pub program: Program,
    /// The function.
    pub fun: FunId,
    /// Its arguments, for several runs. The first ones say for which sizes loops are scheduled.
    pub args: Vec<Vec<Value>>,
    /// Whether there are arrays without elements.
    pub empties: bool,
}

/// The algorithms with a language of their own.
const TRANSLATED: [Algorithm; 4] = [
    bulk::from_core::ALGORITHM,
    accelerate::from_core::ALGORITHM,
    accelerate::from_core::STORE,
    accelerate::from_core::RECOMPUTE,
];

/// Random programs, and what is run of each.
#[derive(Clone, Debug)]
pub struct Programs {
    /// How they are made.
    pub config: Config,
    /// Whether second derivatives are run too, a mix of modes in turn, and gradients for which recursive calls give up their tapes.
    pub more: bool,
    /// The algorithm of gradients that are compared with those by Fast CHAD; then nothing else is run.
    pub by: Option<Algorithm>,
}

impl Programs {
    /// Programs and their gradients.
    pub fn usual() -> Programs {
        Programs { config: Config::default(), more: false, by: None }
    }
    /// Programs that end in branches, and more of each.
    pub fn endings() -> Programs {
        Programs { config: Config::endings(), more: true, by: None }
    }
    /// Gradients by an algorithm with a language of its own, of programs for bulk dual numbers.
    pub fn translated(by: Algorithm) -> Programs {
        Programs { config: Config::bulk(), more: false, by: Some(by) }
    }
    /// Those of a seed, where both are drawn in turn.
    pub fn in_turn(seed: u64) -> Programs {
        if seed.is_multiple_of(2) { Programs::usual() } else { Programs::endings() }
    }
    /// The ways of a soak run for number `k` of the functions of a seed.
    pub fn ways(&self, seed: u64, k: usize, level: Option<Level>) -> Vec<Way> {
        if self.more { Way::in_turn(seed, k, level) } else { Way::of_soak(seed, k, level) }
    }
    /// Those of a name.
    pub fn named(name: &str) -> Option<Programs> {
        match name {
            "usual" => Some(Programs::usual()),
            "endings" => Some(Programs::endings()),
            _ => TRANSLATED.into_iter().find(|by| by.id == name).map(Programs::translated),
        }
    }

    /// The functions of a seed, each as it is and optimised, at the sizes that the program was made for and at awkward ones. Left out: what
    /// cannot be differentiated.
    ///
    /// # Panics
    /// If a pass makes a malformed program.
    pub fn runs_of_seed(&self, seed: u64) -> Vec<Run> {
        let generated = generate(seed, &self.config);
        self.runs(&[false, true], &Case::of(&generated), &self.all_args(&generated))
    }

    /// What [`Programs::runs_of_seed`] runs, each of its arguments in a case of its own.
    pub fn cases_of_seed(&self, seed: u64) -> Vec<Case> {
        let generated = generate(seed, &self.config);
        self.all_args(&generated).into_iter().map(|args| Case { args, ..Case::of(&generated) }).collect()
    }

    /// The functions of a program, for the arguments of the case alone: what is shrunk.
    ///
    /// # Panics
    /// If a pass makes a malformed program.
    pub fn runs_of_case(&self, case: &Case) -> Vec<Run> {
        self.runs(&[false, true], case, std::slice::from_ref(&case.args))
    }

    /// The verdicts about the gradients by an algorithm, where there are some, against those by Fast CHAD: both on the interpreter, for each of the arguments.
    pub fn against_fast_chad(&self, by: &Algorithm, seed: u64) -> Vec<Verdict> {
        let generated = generate(seed, &self.config);
        let (case, args) = (Case::of(&generated), self.all_args(&generated));
        let whole = Function::of(&case, &args);
        let both = [whole.by(&case, by.id, &by.transform), whole.by(&case, "", &fast_chad::vjp)];
        let [Some(ours), Some(chad)] = both else { return Vec::new() };
        let options = Options { work_limit: super::STEPS, ..Options::default() };
        let (code, other) = (Compiled::new(&ours.program), Compiled::new(&chad.program));
        let one = |args: &Vec<Value>| {
            let wanted = match other.run(chad.fun, args, &options) {
                Ok(out) => out.results,
                Err(_) => return Verdict::Long,
            };
            let found = match code.run(ours.fun, args, &options) {
                Ok(out) => out.results,
                Err(e) if e.kind == RuntimeErrorKind::Limit => return Verdict::Long,
                Err(e) if case.empties && is_lost_size(&e) => return Verdict::Lost,
                Err(e) => return Verdict::Fails(format!("{} stopped: {e}", by.id)),
            };
            let tolerance = rounding(&chad.program, false);
            if wanted.iter().zip(&found).all(|(a, b)| near(a, b, tolerance)) {
                return Verdict::Rounded;
            }
            // Where numbers overflow, the order of operations decides between infinity and no number.
            let overflow = |(x, y): (&f64, &f64)| !x.is_finite() && !y.is_finite();
            let of = |vs: &[Value]| vs.iter().flat_map(Value::floats).collect::<Vec<f64>>();
            let same =
                |(x, y): (&f64, &f64)| overflow((x, y)) || near(&Value::f64(*x), &Value::f64(*y), tolerance);
            let (ours, theirs) = (of(&found), of(&wanted));
            if ours.len() == theirs.len() && theirs.iter().zip(&ours).all(same) {
                return Verdict::Unstable;
            }
            let (program, args) = (chad.program.clone(), vec![args.clone()]);
            let run = Run { what: String::new(), program, fun: chad.fun, args, empties: case.empties };
            if is_unstable(&run, &run.args[0], &wanted, Some(&found), tolerance) {
                return Verdict::Unstable;
            }
            Verdict::Fails(format!("Fast CHAD gives {wanted:?}\n{} {found:?}", by.id))
        };
        chad.args.iter().map(one).collect()
    }

    /// Arguments of the sizes that a program was made for, and larger ones.
    fn all_args(&self, generated: &Generated) -> Vec<Vec<Value>> {
        let Sizes { n, m } = generated.sizes;
        let k = if self.more { SMALL } else { AWKWARD }[(generated.seed % 8) as usize];
        let sizes = [Sizes { n, m }, Sizes { n: n.max(k), m }, Sizes { n, m: m.max(k) }];
        let mut out = vec![generated.inputs(sizes[0], 0)];
        out.extend(sizes[1..].iter().filter(|s| **s != sizes[0]).map(|s| generated.inputs(*s, 0)));
        out
    }

    /// `optimise`: what is asked for of each, as it is and optimised.
    fn runs(&self, optimise: &[bool], case: &Case, args: &[Vec<Value>]) -> Vec<Run> {
        let whole = Function { what: format!("seed {} program", case.seed), ..Function::of(case, args) };
        if let Some(by) = &self.by {
            let gradient = whole.by(case, by.id, &by.transform);
            return gradient.into_iter().flat_map(|f| f.finished(optimise, case.empties)).collect();
        }
        let gradient = whole.derived(Kind::Vjp, "gradient");
        let mut all = Vec::new();
        if self.more {
            let (inner, outer) = MIXES[(case.seed % 4) as usize];
            let first = if inner == Kind::Vjp { gradient.clone() } else { whole.derived(inner, "tangent") };
            all.extend(first.and_then(|f| f.derived(outer, &format!("then {outer:?}"))));
            all.extend(whole.with_few_tapes(case));
        }
        let all = [Some(whole), gradient].into_iter().flatten().chain(all);
        all.flat_map(|f| f.finished(optimise, case.empties)).collect()
    }
}

/// The mixes of modes of second derivatives.
const MIXES: [(Kind, Kind); 4] =
    [(Kind::Vjp, Kind::Jvp), (Kind::Jvp, Kind::Vjp), (Kind::Vjp, Kind::Vjp), (Kind::Jvp, Kind::Jvp)];

/// Those of [`Programs::runs_of_case`] of the usual programs that are optimised.
///
/// # Panics
/// If a pass makes a malformed program.
pub fn optimised_runs_of_case(case: &Case) -> Vec<Run> {
    Programs::usual().runs(&[true], case, std::slice::from_ref(&case.args))
}

/// A function of a program, with arguments.
#[derive(Clone)]
struct Function {
    what: String,
    program: Program,
    fun: FunId,
    /// What it is differentiated with respect to.
    wanted: Vec<bool>,
    args: Vec<Vec<Value>>,
}

impl Function {
    fn of(case: &Case, args: &[Vec<Value>]) -> Function {
        let (program, fun) = (case.program.clone(), case.main);
        let params = &program.funs[fun].params;
        let wanted = params.iter().map(|p| program.is_active(&program.vars[*p].ty)).collect();
        Function { what: String::new(), program, fun, wanted, args: args.to_vec() }
    }
    /// Its derivative with respect to the same parameters; `None`: there is none, or no arguments for it.
    fn derived(&self, kind: Kind, what: &str) -> Option<Function> {
        let mut program = self.program.clone();
        let mut wanted = self.wanted.clone();
        let more: Vec<Option<Vec<Value>>> = match kind {
            Kind::Jvp => {
                let params = &program.funs[self.fun].params;
                let fits = |p: &Var| has_float_base(&program.vars[*p].ty);
                wanted.iter_mut().zip(params).for_each(|(wanted, p)| *wanted &= fits(p));
                let chosen = |args: &Vec<Value>| {
                    args.iter().zip(&wanted).filter(|(_, w)| **w).map(|(v, _)| v.clone()).collect()
                };
                self.args.iter().map(|args| Some(chosen(args))).collect()
            }
            _ => self.args.iter().map(|args| cotangents(&program, self.fun, args)).collect(),
        };
        let all = self.args.iter().zip(more);
        let args: Vec<Vec<Value>> =
            all.filter_map(|(args, more)| Some([&args[..], &more?].concat())).collect();
        if args.is_empty() {
            return None;
        }
        let fun = derive::add(&mut program, self.fun, kind, &wanted).ok()?;
        wanted.resize(program.funs[fun].params.len(), false);
        Some(Function { what: format!("{} {what}", self.what), program, fun, wanted, args })
    }
    /// The gradient where recursive calls give up their tapes, after a few of them, or none.
    fn with_few_tapes(&self, case: &Case) -> Option<Function> {
        let program = &case.program;
        let recursive = |f: FunId| leads_to(program, &program.funs[f].body, f);
        let kept_calls = [0, 3][(case.seed / 4 % 2) as usize];
        let config = fast_chad::Config { kept_calls, ..fast_chad::Config::default() };
        if !program.funs.ids().any(recursive) {
            return None;
        }
        let gradient = |p: &mut Program, l: &Lam, w: &[bool]| fast_chad::vjp_with(p, l, w, &config);
        self.by(case, &format!("{kept_calls} calls keep tapes"), &gradient)
    }
    /// The gradient by an algorithm.
    fn by(&self, case: &Case, name: &str, gradient: Reverse<'_>) -> Option<Function> {
        let (program, fun) = reverse_program(case, gradient).ok()?;
        let with_bars = |args: &Vec<Value>| {
            let bars = cotangents(&case.program, case.main, args)?;
            Some([&args[..], &bars].concat())
        };
        let args: Vec<Vec<Value>> = self.args.iter().filter_map(with_bars).collect();
        let what = format!("{} gradient, {name}", self.what);
        (!args.is_empty()).then(|| Function { what, program, fun, wanted: Vec::new(), args })
    }
    fn finished(self, optimise: &[bool], empties: bool) -> Vec<Run> {
        finished(optimise, &self.what, &self.program, self.fun, &self.args, empties)
    }
}

/// The results, which are cotangents as good as any. `None`: cotangents would be of other types, or it stops.
fn cotangents(program: &Program, fun: FunId, args: &[Value]) -> Option<Vec<Value>> {
    let options = Options { work_limit: super::STEPS, ..Options::default() };
    let primal = Compiled::new(program).run(fun, args, &options).ok()?;
    let types = &program.funs[fun].results;
    let bars = primal.results.iter().zip(types).filter(|(_, t)| program.is_active(t));
    if !bars.clone().all(|(_, t)| has_float_base(t)) {
        return None;
    }
    Some(bars.map(|(v, _)| v.clone()).collect())
}

/// Whether cotangents and tangents have the same type.
fn has_float_base(ty: &Type) -> bool {
    ty.base().scalar().is_some_and(|s| s.is_float())
}

fn finished(
    optimise: &[bool],
    what: &str,
    program: &Program,
    fun: FunId,
    args: &[Vec<Value>],
    empties: bool,
) -> Vec<Run> {
    let made = |optimise: bool| {
        let (mut program, roots) = pipeline::keep_reachable(program, &[fun]);
        let choice = Settings::default().choice;
        let steps = pipeline::steps(optimise);
        let what = format!("{what}{}", if optimise { ", optimised" } else { "" });
        if let Err(d) = pipeline::run_with(&mut program, steps, &choice, Checks::EachStep, &mut |_, _| {}) {
            assert!(d.code.fault() != Fault::Bug, "{what}: {}", d.message);
            return None;
        }
        Some(Run { what, program, fun: roots[0], args: args.to_vec(), empties })
    };
    optimise.iter().copied().filter_map(made).collect()
}

/// The objective of a problem and its gradient.
///
/// # Panics
/// If the problem does not compile.
pub fn runs_of_problem(problem: &Problem) -> [Run; 2] {
    let [primal, ready] = problem.ready();
    let args = (problem.args)(5);
    let bars = Compiled::new(&primal.program).run(primal.fun, &args, &Options::default());
    let all: Vec<Value> = args.iter().cloned().chain(bars.expect(problem.name).results).collect();
    let run = |what: &str, program: &Program, fun: FunId, args: Vec<Value>| Run {
        what: format!("{} {what}", problem.name),
        program: program.clone(),
        fun,
        args: vec![args],
        empties: false,
    };
    [run("objective", &primal.program, primal.fun, args), run("gradient", &ready.program, ready.fun, all)]
}
