//! Derivatives of a program in all ways there are, compared with a mean of those of its twins.

use pullback_ad::on_lambda;
use pullback_base::Code;
use pullback_core::Value;
use pullback_driver::{Backend, EntryPoint, Kind, Session, Settings, Sweep, Wrt};
use pullback_interp::core::Options;
use pullback_testkit::nested::{Function, second as second_order};
use pullback_testkit::suite::near;

/// A program whose derivative is a weighted mean of those of its twins.
#[derive(Clone, Debug)]
pub(crate) struct Mean {
    /// The program: `entry main [n] (x: [n]f64) (w: f64)`.
    pub(crate) program: String,
    /// Weights and twins, with the same arguments.
    pub(crate) twins: Vec<(f64, String)>,
    /// Whether the twins multiply by partial derivatives as IEEE numbers.
    pub(crate) ieee_twins: bool,
    /// The arguments.
    pub(crate) args: Vec<Value>,
    /// Whether second derivatives are compared.
    pub(crate) second: bool,
}

/// The template with the argument in the places marked by `@`.
pub(crate) fn put(template: &str, argument: &str) -> String {
    template.replace('@', argument)
}

/// What was compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Compared {
    /// Derivatives of the first order.
    pub(crate) first: usize,
    /// Of the second order.
    pub(crate) second: usize,
    /// By algorithms on lambda.
    pub(crate) on_lambda: usize,
    /// What an algorithm does not cover.
    pub(crate) unsupported: usize,
}

impl std::ops::Add for Compared {
    type Output = Compared;
    fn add(self, other: Compared) -> Compared {
        Compared {
            first: self.first + other.first,
            second: self.second + other.second,
            on_lambda: self.on_lambda + other.on_lambda,
            unsupported: self.unsupported + other.unsupported,
        }
    }
}

/// The relative error that is allowed.
const ROUNDING: f64 = 1e-9;

/// Compares all derivatives of the program with the mean of those of its twins; machine code too, if it is wanted.
///
/// Errors: what differs.
pub(crate) fn compare(mean: &Mean, machine_code: bool) -> Result<Compared, String> {
    let Mean { program, twins, ieee_twins, args, second } = mean;
    let plain = made_plainly(*ieee_twins);
    let mut compared = Compared::default();
    let mut expected = Vec::new();
    for (weight, twin) in twins {
        let made = made(twin, plain.clone())?;
        let [reverse, forward] =
            [Sweep::Reverse, Sweep::Forward].map(|sweep| jacobian_of(&made, args, sweep));
        let (reverse, forward) = (reverse?, forward?);
        same("forward mode of the twin", &reverse, &forward)?;
        expected.resize(reverse.len(), 0.0);
        expected.iter_mut().zip(&reverse).for_each(|(sum, x)| *sum += weight * x);
    }
    if expected.iter().any(|x| !x.is_finite()) {
        return Err(format!("the twin meets a bad point: {expected:?}"));
    }
    let mut ways = vec![(false, Backend::Interp), (true, Backend::Interp), (true, Backend::Vm)];
    ways.extend(machine_code.then_some((true, Backend::Llvm)));
    for (optimise, backend) in ways {
        for sweep in [Sweep::Reverse, Sweep::Forward] {
            let found = jacobian(program, args, (optimise, backend), sweep)?;
            same(&format!("{sweep:?}, {backend:?}, optimised {optimise}"), &expected, &found)?;
            compared.first += 1;
        }
    }
    same("the interpreter's dual numbers", &expected, &by_oracle(program, args)?)?;
    for algorithm in on_lambda::all() {
        match by_algorithm(program, args, algorithm.id)? {
            Some(found) => {
                same(algorithm.id, &expected, &found)?;
                compared.on_lambda += 1;
            }
            None => compared.unsupported += 1,
        }
    }
    if let ([(_, twin)], true) = (&twins[..], *second) {
        let all = |made: Made| {
            let (session, entry, selected) = &made;
            let direction = [Value::f64s(&vec![0.75; args[0].floats().len()]), Value::f64(-0.5)];
            let f = Function { session, entry, selected, differences: false };
            second_order(f, args, (&[Value::f64(1.0)], &direction))
        };
        let expected = all(made(twin, plain)?)?;
        for optimise in [false, true] {
            let found = all(compiled(program, optimise, Backend::Interp)?)?;
            for ((what, e), (_, f)) in expected.iter().zip(&found) {
                same(&format!("{what}, optimised {optimise}"), e, f)?;
                compared.second += 1;
            }
        }
    }
    Ok(compared)
}

fn same(what: &str, expected: &[f64], found: &[f64]) -> Result<(), String> {
    let equal =
        expected.len() == found.len() && expected.iter().zip(found).all(|(e, f)| near(*e, *f, ROUNDING));
    if equal { Ok(()) } else { Err(format!("{what}: {found:?}, expected {expected:?}")) }
}

type Made = (Session, EntryPoint, Vec<bool>);

fn compiled(text: &str, optimise: bool, backend: Backend) -> Result<Made, String> {
    made(text, Settings { optimise, backend, ..Settings::default() })
}

/// How a twin is compiled: as it is, for the interpreter.
fn made_plainly(ieee_partials: bool) -> Settings {
    let mut settings = Settings { optimise: false, backend: Backend::Interp, ..Settings::default() };
    settings.choice.ieee_partials = ieee_partials;
    settings
}

fn made(text: &str, settings: Settings) -> Result<Made, String> {
    let session = Session::compile("program.fut", text, settings).map_err(|e| e.render())?;
    let entry = session.entry(None).map_err(|d| d.message)?;
    let selected = session.select(&entry, &Wrt::default()).map_err(|d| d.message)?;
    Ok((session, entry, selected))
}

/// The Jacobian, row by row.
pub(crate) fn jacobian(
    text: &str,
    args: &[Value],
    (optimise, backend): (bool, Backend),
    sweep: Sweep,
) -> Result<Vec<f64>, String> {
    let found = jacobian_of(&compiled(text, optimise, backend)?, args, sweep);
    found.map_err(|e| format!("{backend:?}, optimised {optimise}: {e}"))
}

fn jacobian_of((session, entry, selected): &Made, args: &[Value], sweep: Sweep) -> Result<Vec<f64>, String> {
    let found = session.jacobian(entry, selected, args, sweep, &Options::default());
    let found = found.map_err(|d| format!("{sweep:?}: {}", d.message))?;
    Ok(Value::Array(found.dense()).floats())
}

fn by_oracle(text: &str, args: &[Value]) -> Result<Vec<f64>, String> {
    let (session, entry, _) = compiled(text, false, Backend::Interp)?;
    let program = session.lowered();
    let fun = program.funs.iter_enumerated().find(|(_, f)| f.name.as_str() == entry.name);
    let (fun, _) = fun.ok_or("the entry point has no function")?;
    let found = pullback_interp::dual::jacobian(program, fun, args, &Options::default());
    Ok(found.map_err(|e| e.to_string())?.columns.into_iter().flatten().collect())
}

/// The gradient by an algorithm on lambda; `None` if it does not cover the program.
pub(crate) fn by_algorithm(text: &str, args: &[Value], id: &str) -> Result<Option<Vec<f64>>, String> {
    let mut settings = Settings::default();
    settings.choice.reverse = Some(id.into());
    let (session, entry, selected) = made(text, settings)?;
    let ready = match session.derivative(&entry, Kind::Vjp, &selected, &mut |_, _| {}) {
        Ok(ready) => ready,
        Err(d) if d.code == Code::Unsupported => return Ok(None),
        Err(d) => return Err(format!("{id}: {}", d.message)),
    };
    let all: Vec<Value> = args.iter().cloned().chain([Value::f64(1.0)]).collect();
    let out = ready.interpret(&all, &Options::default()).map_err(|e| format!("{id}: {e}"))?;
    let results = entry.result_types.len();
    Ok(Some(out.results[results..].iter().flat_map(Value::floats).collect()))
}
