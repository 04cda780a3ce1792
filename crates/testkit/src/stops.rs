//! Derivatives stop where their functions stop.
//!
//! A random program that may stop with an error is run as it is written, with every operation. Each derivative, by each algorithm,
//! optimised or not, on each executor, stops with the same kind of error at the same place, or does not stop either.

use crate::generate::stops::{Stops, stops};
use pullback_base::{RuntimeError, RuntimeErrorKind, Span};
use pullback_core::Value;
use pullback_driver::derive::Kind;
use pullback_driver::session::{Session, Settings};
use pullback_driver::{Backend, leaves::Wrt};
use pullback_interp::core::{Compiled, Options};
use std::collections::BTreeMap;

/// How a run ended: without an error, or with one of this kind at this place.
type End = Option<(RuntimeErrorKind, Option<Span>)>;

/// What came of the programs: how often each way of running a derivative was compared, with functions that stop and with others.
#[derive(Clone, Debug, Default)]
pub struct Compared {
    /// By way: runs that stop, runs that do not, programs that the way does not take.
    pub ways: BTreeMap<String, [usize; 3]>,
    /// What went wrong: a text.
    pub failures: Vec<String>,
}

impl Compared {
    /// Those of both.
    pub fn extend(&mut self, other: Compared) {
        for (way, counts) in other.ways {
            let sum = self.ways.entry(way).or_default();
            (0..3).for_each(|k| sum[k] += counts[k]);
        }
        self.failures.extend(other.failures);
    }
}

/// A way to differentiate and to run.
#[derive(Clone, Debug)]
struct Way {
    kind: Kind,
    /// An algorithm on lambda.
    algorithm: Option<&'static str>,
    optimise: bool,
    lowered: bool,
    backend: Backend,
}

impl Way {
    fn name(&self) -> String {
        let algorithm = self.algorithm.unwrap_or("default");
        let lowered = if self.lowered { ", lowered" } else { "" };
        let passes = if self.optimise { "optimised" } else { "as it is" };
        format!("{:?}, {algorithm}, {passes}{lowered}, {:?}", self.kind, self.backend)
    }
    fn settings(&self) -> Settings {
        let mut settings = Settings {
            optimise: self.optimise,
            backend: self.backend,
            lowered: self.lowered,
            ..Settings::default()
        };
        settings.choice.reverse = self.algorithm.map(Into::into);
        settings
    }
}

/// The ways for a seed. Machine code takes long to make: for few.
fn ways(seed: u64) -> Vec<Way> {
    let mut out = Vec::new();
    for optimise in [false, true] {
        for (kind, backend) in [
            (Kind::Vjp, Backend::Interp),
            (Kind::Jvp, Backend::Interp),
            (Kind::Hvp, Backend::Interp),
            (Kind::Vjp, Backend::Vm),
            (Kind::Jvp, Backend::Vm),
        ] {
            out.push(Way { kind, algorithm: None, optimise, lowered: false, backend });
        }
    }
    if seed.is_multiple_of(8) {
        out.push(Way {
            kind: Kind::Vjp,
            algorithm: None,
            optimise: true,
            lowered: false,
            backend: Backend::Llvm,
        });
    }
    let algorithms: Vec<&'static str> = pullback_ad::on_lambda::all().map(|a| a.id).collect();
    for (k, id) in algorithms.iter().enumerate() {
        let lowered = (seed + k as u64).is_multiple_of(2);
        out.push(Way {
            kind: Kind::Vjp,
            algorithm: Some(id),
            optimise: true,
            lowered,
            backend: Backend::Interp,
        });
    }
    out
}

/// The program of a seed in all ways.
pub fn one(seed: u64) -> Compared {
    let mut out = Compared::default();
    let made = stops(seed);
    let plain =
        Way { kind: Kind::Vjp, algorithm: None, optimise: false, lowered: false, backend: Backend::Interp };
    let session = match Session::compile("stops.fut", &made.text, plain.settings()) {
        Ok(session) => session,
        Err(e) => {
            out.failures.push(format!("seed {seed}: {}\n{}", e.render(), made.text));
            return out;
        }
    };
    let arguments: Vec<(Vec<Value>, End)> = made
        .args
        .iter()
        .map(|(is, k)| {
            let args =
                vec![Value::f64s(&[0.5, -0.25, 1.5]), Value::f64(0.75), Value::i64s(is), Value::i64(*k)];
            let end = primal(&session, &args);
            (args, end)
        })
        .collect();
    for way in ways(seed) {
        one_way(seed, &made, &way, &arguments, &mut out);
    }
    out
}

fn one_way(seed: u64, made: &Stops, way: &Way, arguments: &[(Vec<Value>, End)], out: &mut Compared) {
    let counts = out.ways.entry(way.name()).or_default();
    let session = Session::compile("stops.fut", &made.text, way.settings());
    let Ok(session) = session else { return };
    let Ok(entry) = session.entry(None) else { return };
    let Ok(selected) = session.select(&entry, &Wrt::default()) else { return };
    let Ok(ready) = session.derivative(&entry, way.kind, &selected, &mut |_, _| {}) else {
        counts[2] += 1;
        return;
    };
    for (args, expected) in arguments {
        let all = [args.clone(), seeds(way.kind, args)].concat();
        let found = ready.run(&all, &Options::default());
        if matches!((&found, expected), (Err(e), _) if e.kind == RuntimeErrorKind::Limit)
            || matches!(expected, Some((RuntimeErrorKind::Limit, _)))
        {
            continue;
        }
        counts[usize::from(expected.is_none())] += 1;
        let found = end(found.map(drop));
        // Computations that run later do not know where they were made.
        if !is_same(&found, expected, way.algorithm == Some("dual-parallel")) {
            out.failures.push(format!(
                "seed {seed}, {}: {:?} is {:?} and {:?}\nthe function ends with {expected:?}, its derivative with {found:?}\n{}",
                way.name(),
                made.made,
                args[2],
                args[3],
                made.text
            ));
            return;
        }
    }
}

/// The same kind of error at the same place: one may be that of an operation, the other that of what it is a part of. `placeless`: the
/// place may be missing.
fn is_same(found: &End, expected: &End, placeless: bool) -> bool {
    let overlap = |a: Span, b: Span| a.file == b.file && a.start < b.end && b.start < a.end;
    match (found, expected) {
        (None, None) => true,
        (Some((a, Some(x))), Some((b, Some(y)))) => a == b && overlap(*x, *y),
        (Some((a, None)), Some((b, _))) => a == b && placeless,
        _ => false,
    }
}

fn end(run: Result<(), RuntimeError>) -> End {
    run.err().map(|e| (e.kind, e.span))
}

/// How the function itself ends, as it is written. Derivatives inside are dual numbers of the interpreter, which drop nothing.
fn primal(session: &Session, args: &[Value]) -> End {
    let program = session.lowered();
    let main = program.funs.iter_enumerated().find(|(_, f)| f.name.as_str() == "main");
    let (main, _) = main.expect("an entry point");
    end(Compiled::new(program).run(main, args, &Options::default()).map(drop))
}

/// Cotangents and tangents of one for the entry point's arguments and result.
fn seeds(kind: Kind, args: &[Value]) -> Vec<Value> {
    let tangents = vec![args[0].clone(), args[1].clone()];
    match kind {
        Kind::Jvp => tangents,
        Kind::Hvp => [vec![Value::f64(1.0)], tangents].concat(),
        _ => vec![Value::f64(1.0)],
    }
}
