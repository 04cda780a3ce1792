//! Higher derivatives in every mix of modes, on every executor.
//!
//! With `w` fixed, `φ = ⟨w, f⟩` is a number. Its derivatives along a direction `v` are `D φ = ⟨v, ∇φ⟩`, `D² φ = ⟨v, H v⟩` and so
//! on. Each comes by any sequence of modes: where `h` gives `Dᵏ φ = ⟨c, h⟩`, forward mode along `v` gives tangents whose inner product
//! with `c` is the next one, and reverse mode with the cotangent `c` a gradient whose inner product with `v` is. Where there is a
//! reverse mode among them, the last one leaves a gradient, `H v` for two, that must be the same as well.
//!
//! All sequences of one length are compared with each other, two also with differences of gradients away from kinks, and what
//! compiled code makes of each with the interpreter. Nothing is expected that the program under test has written.

use crate::native::{self, Run, Way};
use crate::rng::Rng;
use pullback_ad::differentiate::Choice;
use pullback_base::{Code, Diagnostic};
use pullback_core::{Buffer, FunId, Program, Value};
use pullback_cpu::Level;
use pullback_driver::derive::{self, Kind};
use pullback_driver::gradcheck::filled;
use pullback_driver::pipeline::{self, Checks};
use pullback_driver::session::{EntryPoint, Session};
use pullback_interp::core::{Compiled, Options};
use pullback_interp::dual::{directional, inner, with_floats};

/// What was compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compared {
    /// Values of derivatives, in the interpreter.
    pub values: usize,
    /// Derivatives on native executors.
    pub native: usize,
    /// Derivatives that are not native.
    pub foreign: usize,
    /// Arguments at which there is nothing to compare: sums at the interface, where directions are not numbers in a row, and numbers
    /// that are not finite, for which it depends on the rules of arithmetic alone which mix meets zero times infinity.
    pub left_out: usize,
}

impl std::ops::AddAssign for Compared {
    fn add_assign(&mut self, other: Compared) {
        self.values += other.values;
        self.native += other.native;
        self.foreign += other.foreign;
        self.left_out += other.left_out;
    }
}

/// What is differentiated.
#[derive(Clone, Copy)]
pub struct Function<'a> {
    /// The program.
    pub session: &'a Session,
    /// Its function.
    pub entry: &'a EntryPoint,
    /// In which arguments.
    pub selected: &'a [bool],
    /// Whether it is smooth enough for differences: no gradient is stopped.
    pub differences: bool,
}

impl Function<'_> {
    fn main(&self) -> Result<FunId, String> {
        let mut all = self.session.lowered().funs.iter_enumerated();
        let main = all.find(|(_, fun)| fun.name.as_str() == self.entry.name);
        Ok(main.ok_or("the entry point is no function")?.0)
    }
}

/// A sequence of modes, the first one applied first.
type Modes = Vec<Kind>;

/// All sequences of so many modes.
pub fn mixes(order: usize) -> Vec<Vec<Kind>> {
    let both = [Kind::Jvp, Kind::Vjp];
    (0..1 << order).map(|k: usize| (0..order).map(|j| both[k >> j & 1]).collect()).collect()
}

/// Compares all mixes of so many modes (two or more), of functions that mean the same, with each other at these arguments, and in these
/// ways of running them.
pub fn agree(
    functions: &[Function<'_>],
    order: usize,
    all_args: &[Vec<Value>],
    ways: &[Way],
) -> Result<Compared, String> {
    let mut out = Compared::default();
    let mut models: Vec<Option<Found>> = all_args.iter().map(|_| None).collect();
    for f in functions {
        let primal = Derivative::new(*f, &[])?;
        let points = all_args.iter().map(|args| Point::new(*f, &primal, args));
        let points = points.collect::<Result<Vec<_>, _>>()?;
        out.left_out += points.iter().filter(|p| p.is_none()).count();
        if points.iter().all(Option::is_none) {
            continue;
        }
        let gradient = Derivative::new(*f, &[Kind::Vjp])?;
        for modes in mixes(order) {
            out += one_mix(*f, &modes, &gradient, (&points, &mut models), ways)?;
        }
    }
    Ok(out)
}

/// One mix at all points, compared with what was found there first.
fn one_mix(
    f: Function<'_>,
    modes: &[Kind],
    gradient: &Derivative,
    (points, models): (&[Option<Point<'_>>], &mut [Option<Found>]),
    ways: &[Way],
) -> Result<Compared, String> {
    let mut out = Compared::default();
    let name = name(modes);
    let derivative = Derivative::new(f, modes)?;
    let mut all_args = Vec::new();
    for (point, model) in points.iter().zip(models) {
        let Some(point) = point else { continue };
        let (found, args) = point.along(&derivative)?;
        if found.numbers().any(|x| !x.is_finite() || x.abs() > 1e12) {
            out.left_out += 1;
            continue;
        }
        match model {
            Some(model) => model.compare(&found, &name)?,
            None => *model = Some(found.clone()),
        }
        if modes.len() == 2
            && let Some(vector) = &found.gradient
        {
            point.differences(gradient, vector, &name)?;
        }
        out.values += 1;
        all_args.push(args);
    }
    if all_args.is_empty() {
        return Ok(out);
    }
    let Derivative { program, fun, .. } = derivative;
    let run = Run { what: name.clone(), program, fun, args: all_args, empties: false };
    for way in ways {
        match native::examine(&run, *way) {
            native::Verdict::Fails(text) => return Err(format!("{name}, {}: {text}", way.name())),
            native::Verdict::Foreign => out.foreign += 1,
            native::Verdict::Skipped => {}
            _ => out.native += 1,
        }
    }
    Ok(out)
}

/// The native executors.
pub fn executors() -> [Way; 2] {
    [Way::VmDefault, Way::LlvmDefault(Level::O1)]
}

/// `reverse over forward`: the last mode first.
fn name(modes: &[Kind]) -> String {
    let word = |k: &Kind| if *k == Kind::Jvp { "forward" } else { "reverse" };
    modes.iter().rev().map(word).collect::<Vec<_>>().join(" over ")
}

/// The second derivatives at a point along `v`, of the weighted sum `w` of the results, by all mixes with their names: the product of the
/// Hessian with `v`, and by forward over forward that times `v`.
///
/// # Errors
/// Whatever stops a derivative.
pub fn second(
    f: Function<'_>,
    args: &[Value],
    (w, v): (&[Value], &[Value]),
) -> Result<Vec<(String, Vec<f64>)>, String> {
    let point = Point { f, args, results: Vec::new(), w: w.to_vec(), v: v.to_vec() };
    let one = |modes: &Vec<Kind>| {
        let derivative = Derivative::new(f, modes)?;
        let out = derivative.run(&point.given(modes).0)?;
        let last = |count: usize| floats(&out[out.len() - count..]);
        let numbers = match modes.contains(&Kind::Vjp) {
            true => last(v.len()),
            false => vec![inner(&floats(w), &last(w.len()))],
        };
        Ok((name(modes), numbers))
    };
    mixes(2).iter().map(one).collect()
}

/// A function of a program differentiated in these modes, the first one first, in the same parameters, after all passes.
///
/// # Errors
/// What is not supported, and what passes say.
pub(crate) fn differentiated(
    program: &Program,
    mut fun: FunId,
    selected: &[bool],
    modes: &[Kind],
    optimise: bool,
) -> Result<(Program, FunId), Diagnostic> {
    let mut program = program.clone();
    for &mode in modes {
        let mut wanted = selected.to_vec();
        wanted.resize(program.funs[fun].params.len(), false);
        fun = derive::add(&mut program, fun, mode, &wanted)
            .map_err(|text| Diagnostic::global(Code::Unsupported, text))?;
    }
    let (mut program, roots) = pipeline::keep_reachable(&program, &[fun]);
    let (steps, choice) = (pipeline::steps(optimise), Choice::default());
    pipeline::run_with(&mut program, steps, &choice, Checks::EachStep, &mut |_, _| {})?;
    Ok((program, roots[0]))
}

/// A derivative of the function, ready to run.
struct Derivative {
    modes: Modes,
    program: Program,
    fun: FunId,
}

impl Derivative {
    fn new(f: Function<'_>, modes: &[Kind]) -> Result<Derivative, String> {
        let (program, main) = (f.session.lowered(), f.main()?);
        let made = differentiated(program, main, f.selected, modes, f.session.settings.optimise);
        let (program, fun) = made.map_err(|d| format!("{}: {}", name(modes), d.message))?;
        Ok(Derivative { modes: modes.to_vec(), program, fun })
    }
    fn run(&self, args: &[Value]) -> Result<Vec<Value>, String> {
        let out = Compiled::new(&self.program).run(self.fun, args, &Options::default());
        out.map(|o| o.results).map_err(|e| format!("{}: {e}", name(&self.modes)))
    }
}

/// The value of a derivative.
#[derive(Clone)]
struct Found {
    /// `Dᵏ φ`.
    number: f64,
    /// `∇ Dᵏ⁻¹ φ`, where there is a reverse mode.
    gradient: Option<Vec<f64>>,
}

impl Found {
    fn numbers(&self) -> impl Iterator<Item = f64> {
        std::iter::once(self.number).chain(self.gradient.iter().flatten().copied())
    }
    /// `self` by the first mix, `other` by another one.
    fn compare(&mut self, other: &Found, name: &str) -> Result<(), String> {
        let entries = other.gradient.as_ref().map_or(1, |g| g.len().max(1));
        let scale = 1.0 + self.numbers().chain(other.numbers()).fold(0.0, |m: f64, x| m.max(x.abs()));
        let near = |a: f64, b: f64, tolerance: f64| (a - b).abs() <= tolerance * scale;
        if !near(self.number, other.number, 1e-8 * entries as f64) {
            return Err(format!("{name} gives {:e}, another mix {:e}", other.number, self.number));
        }
        match (&self.gradient, &other.gradient) {
            (Some(a), Some(b)) if a.len() != b.len() || a.iter().zip(b).any(|(a, b)| !near(*a, *b, 1e-8)) => {
                Err(format!("{name} gives the gradient {b:?}, another mix {a:?}"))
            }
            (None, Some(g)) => {
                self.gradient = Some(g.clone());
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// Arguments, and what derivatives are along.
struct Point<'a> {
    f: Function<'a>,
    args: &'a [Value],
    results: Vec<Value>,
    /// A cotangent for each result with floats.
    w: Vec<Value>,
    /// A tangent for each selected argument with floats.
    v: Vec<Value>,
}

impl<'a> Point<'a> {
    /// `None`: there is nothing to compare.
    fn new(f: Function<'a>, primal: &Derivative, args: &'a [Value]) -> Result<Option<Point<'a>>, String> {
        let results = primal.run(args)?;
        let inputs: Vec<Value> =
            args.iter().zip(f.selected).filter(|(_, s)| **s).map(|(v, _)| v.clone()).collect();
        let all = || results.iter().chain(&inputs);
        if all().any(|v| filled(v, 0.0).is_none()) || all().flat_map(Value::floats).any(|x| !x.is_finite()) {
            return Ok(None);
        }
        let mut rng = Rng::new(11);
        let mut random = |values: &[Value]| -> Vec<Value> {
            let number = |v: &Value| with_floats(v, &mut std::iter::repeat_with(|| rng.signed()));
            values.iter().filter(|v| has_floats(v)).map(number).collect()
        };
        let (w, v) = (random(&results), random(&inputs));
        Ok((!w.is_empty() && !v.is_empty()).then_some(Point { f, args, results, w, v }))
    }
    /// The arguments of a derivative along the direction, and that whose inner product with its results with floats is `Dᵏ φ`.
    fn given(&self, modes: &[Kind]) -> (Vec<Value>, Vec<Value>) {
        let mut args = self.args.to_vec();
        let mut c = self.w.clone();
        for mode in modes {
            let zeros: Vec<Value> = c.iter().filter_map(|x| filled(x, 0.0)).collect();
            let (given, next) = match mode {
                Kind::Jvp => (&self.v, c),
                _ => (&c, self.v.clone()),
            };
            args.extend(given.iter().cloned());
            c = zeros.into_iter().chain(next).collect();
        }
        (args, c)
    }
    /// The derivative along the direction, and the arguments it was run with.
    fn along(&self, derivative: &Derivative) -> Result<(Found, Vec<Value>), String> {
        let (args, c) = self.given(&derivative.modes);
        let out: Vec<Value> = derivative.run(&args)?.into_iter().filter(has_floats).collect();
        let number = out.iter().zip(&c).map(|(y, c)| inner(&y.floats(), &c.floats())).sum();
        let gradient =
            derivative.modes.contains(&Kind::Vjp).then(|| floats(&out[out.len() - self.v.len()..]));
        Ok((Found { number, gradient }, args))
    }
    /// Compares `H v` with differences of gradients, where those say something.
    fn differences(&self, gradient: &Derivative, found: &[f64], name: &str) -> Result<(), String> {
        if !self.f.differences || !self.is_smooth()? {
            return Ok(());
        }
        let scale = 1.0 + found.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
        let difference = |h: f64| -> Result<Vec<f64>, String> {
            let (above, below) = (self.gradient(gradient, h)?, self.gradient(gradient, -h)?);
            Ok(above.iter().zip(&below).map(|(a, b)| (a - b) / (2.0 * h)).collect())
        };
        let (coarse, fine) = (difference(1e-4)?, difference(2e-5)?);
        let near = |a: &[f64], b: &[f64], tolerance: f64| {
            a.iter().zip(b).all(|(a, b)| (a - b).abs() <= tolerance * scale)
        };
        if near(&coarse, &fine, 1e-5) && !near(found, &fine, 1e-4) {
            return Err(format!("{name} gives {found:?}, differences of gradients {fine:?}"));
        }
        Ok(())
    }
    /// The gradient at the point moved by `h` along `v`.
    fn gradient(&self, gradient: &Derivative, h: f64) -> Result<Vec<f64>, String> {
        let mut steps = self.v.iter();
        let moved = self.args.iter().zip(self.f.selected).map(|(x, s)| match (s, has_floats(x)) {
            (true, true) => {
                let along = steps.next().map(Value::floats).unwrap_or_default();
                let sum: Vec<f64> = x.floats().iter().zip(&along).map(|(x, d)| x + h * d).collect();
                with_floats(x, &mut sum.into_iter())
            }
            _ => x.clone(),
        });
        let all: Vec<Value> = moved.chain(self.w.iter().cloned()).collect();
        let out = gradient.run(&all)?;
        Ok(floats(&out[out.len() - self.v.len()..]))
    }
    /// Whether the program is in double precision here, and far from kinks.
    fn is_smooth(&self) -> Result<bool, String> {
        let single = |x: &Value| match x {
            Value::Scalar(s) => s.scalar() == pullback_prim::Scalar::F32,
            Value::Array(a) => matches!(&*a.data, Buffer::F32(_)),
            Value::Tuple(_) | Value::Sum(..) | Value::Acc(_) => false,
        };
        if self.args.iter().chain(&self.results).any(single) {
            return Ok(false);
        }
        let mut along = self.v.iter();
        let mut direction = Vec::new();
        for (x, s) in self.args.iter().zip(self.f.selected) {
            let here = if *s && has_floats(x) { along.next() } else { None };
            direction.extend(here.map_or_else(|| vec![0.0; x.floats().len()], Value::floats));
        }
        let code = Compiled::new(self.f.session.lowered());
        let found = directional(&code, self.f.main()?, self.args, &direction, &Options::default());
        Ok(found.map_err(|e| e.to_string())?.kinks == 0)
    }
}

pub(crate) fn has_floats(value: &Value) -> bool {
    match value {
        Value::Scalar(s) => s.scalar().is_float(),
        Value::Array(a) => a.data.scalar().is_some_and(|s| s.is_float()),
        Value::Tuple(_) | Value::Sum(..) | Value::Acc(_) => false,
    }
}

pub(crate) fn floats(values: &[Value]) -> Vec<f64> {
    values.iter().flat_map(Value::floats).collect()
}
