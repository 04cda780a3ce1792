//! Second derivatives in every mix of modes.
//!
//! With `w` fixed, `g = ⟨w, f⟩` has the gradient `Jᵀ w` and a Hessian `H`. Its product with a direction `v` comes by forward over
//! reverse, reverse over forward and reverse over reverse; forward over forward gives `⟨w, ∂²f(v, v)⟩ = ⟨v, H v⟩`. All are
//! compared with each other, `H` with its transpose, and away from kinks with differences of gradients. Nothing is expected
//! that the program under test has written.

use crate::rng::Rng;
use pullback_ad::differentiate::Choice;
use pullback_base::index::Index;
use pullback_core::{Buffer, FunId, Program, Value};
use pullback_driver::derive::{self, Kind};
use pullback_driver::pipeline::Checks;
use pullback_driver::session::{EntryPoint, Session};
use pullback_driver::{gradcheck::filled, pipeline};
use pullback_interp::core::{Compiled, Options};
use pullback_interp::dual::{directional, inner, with_floats};

/// What came of the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All mixes agree.
    Agree,
    /// There are sums at the interface: directions are not numbers in a row.
    Sums,
    /// A number is not finite there.
    NotFinite,
}

/// Compares the mixes at one point.
pub fn second_order(
    session: &Session,
    entry: &EntryPoint,
    selected: &[bool],
    args: &[Value],
) -> Result<Outcome, String> {
    let fun = session.lowered().funs.iter_enumerated().find(|(_, f)| f.name.as_str() == entry.name);
    let (main, _) = fun.ok_or("the entry point is no function")?;
    let results = run(session.lowered(), main, args, session.settings.optimise)?;
    let inputs: Vec<Value> = args.iter().zip(selected).filter(|(_, s)| **s).map(|(v, _)| v.clone()).collect();
    if results.iter().chain(&inputs).any(|v| filled(v, 0.0).is_none()) {
        return Ok(Outcome::Sums);
    }
    // Zero times an infinite value is no number: which mix meets it depends on the rules of arithmetic only.
    if results.iter().chain(&inputs).flat_map(Value::floats).any(|x| !x.is_finite()) {
        return Ok(Outcome::NotFinite);
    }
    let mut rng = Rng::new(11);
    let mut random = |values: &[Value]| -> Vec<Value> {
        let floats = |v: &&Value| has_floats(v);
        values
            .iter()
            .filter(floats)
            .map(|v| with_floats(v, &mut std::iter::repeat_with(|| rng.signed())))
            .collect()
    };
    let (w, u, v) = (random(&results), random(&inputs), random(&inputs));
    let p = Point { session, main, selected, args, results: &results };
    let (hu, hv) = (p.forward_over_reverse(&w, &u)?, p.forward_over_reverse(&w, &v)?);
    if [&hu, &hv].iter().any(|h| h.iter().any(|x| !x.is_finite() || x.abs() > 1e12)) {
        return Ok(Outcome::NotFinite);
    }
    let scale = 1.0 + hv.iter().chain(&hu).fold(0.0, |m: f64, x| m.max(x.abs()));
    let same = |what: &str, a: &[f64], b: &[f64], tolerance: f64| -> Result<(), String> {
        if a.len() != b.len() {
            return Err(format!("{what}: {} numbers, forward over reverse gives {}", b.len(), a.len()));
        }
        let agree = |x: f64, y: f64| (x - y).abs() <= tolerance * scale;
        match a.iter().zip(b).find(|(x, y)| !agree(**x, **y)) {
            Some((x, y)) => Err(format!("{what}: {y:e}, forward over reverse gives {x:e}")),
            None => Ok(()),
        }
    };
    same("reverse over forward", &hv, &p.reverse_over_forward(&w, &v)?, 1e-8)?;
    same("reverse over reverse", &hv, &p.reverse_over_reverse(&w, &v)?, 1e-8)?;
    let (flat_u, flat_v) = (floats(&u), floats(&v));
    let size = flat_v.len().max(1) as f64;
    same("symmetry", &[inner(&flat_u, &hv)], &[inner(&flat_v, &hu)], 1e-8 * size)?;
    let twice = inner(&flat_v, &hv);
    same("forward over forward", &[twice], &[p.forward_over_forward(&w, &v)?], 1e-8 * size)?;
    if p.is_smooth(&v)? {
        let difference = |h: f64| -> Result<Vec<f64>, String> {
            let (above, below) = (p.gradient(&w, &v, h)?, p.gradient(&w, &v, -h)?);
            Ok(above.iter().zip(&below).map(|(a, b)| (a - b) / (2.0 * h)).collect())
        };
        let (coarse, fine) = (difference(1e-4)?, difference(2e-5)?);
        // Where two steps disagree, differences say nothing.
        if coarse.iter().zip(&fine).all(|(c, f)| (c - f).abs() <= 1e-5 * scale) {
            same("differences of gradients", &hv, &fine, 1e-4)?;
        }
    }
    Ok(Outcome::Agree)
}

/// The product of a Hessian with a direction in the mixes that give it, and that with the direction twice in the other one.
#[derive(Clone, Debug, PartialEq)]
pub struct Mixes {
    forward_over_reverse: Vec<f64>,
    reverse_over_forward: Vec<f64>,
    reverse_over_reverse: Vec<f64>,
    forward_over_forward: f64,
}

impl Mixes {
    /// At a point, along `v`, for the weights `w` of the results.
    ///
    /// Errors: whatever stops a derivative.
    pub fn new(
        session: &Session,
        entry: &EntryPoint,
        selected: &[bool],
        args: &[Value],
        (w, v): (&[Value], &[Value]),
    ) -> Result<Mixes, String> {
        let fun = session.lowered().funs.iter_enumerated().find(|(_, f)| f.name.as_str() == entry.name);
        let (main, _) = fun.ok_or("the entry point is no function")?;
        let results = run(session.lowered(), main, args, session.settings.optimise)?;
        let p = Point { session, main, selected, args, results: &results };
        Ok(Mixes {
            forward_over_reverse: p.forward_over_reverse(w, v)?,
            reverse_over_forward: p.reverse_over_forward(w, v)?,
            reverse_over_reverse: p.reverse_over_reverse(w, v)?,
            forward_over_forward: p.forward_over_forward(w, v)?,
        })
    }
    /// All of them, with their names.
    pub fn all(&self) -> [(&'static str, Vec<f64>); 4] {
        [
            ("forward over reverse", self.forward_over_reverse.clone()),
            ("reverse over forward", self.reverse_over_forward.clone()),
            ("reverse over reverse", self.reverse_over_reverse.clone()),
            ("forward over forward", vec![self.forward_over_forward]),
        ]
    }
}

struct Point<'a> {
    session: &'a Session,
    main: FunId,
    selected: &'a [bool],
    args: &'a [Value],
    results: &'a [Value],
}

impl Point<'_> {
    /// The derivative `outer` of the derivative `inner` of the function, run with the values `more` for what both ask for;
    /// the second wants the selected parameters only.
    fn nested(&self, inner: Kind, outer: Kind, more: &[&[Value]]) -> Result<Vec<Value>, String> {
        let mut program = self.session.lowered().clone();
        let first = derive::add(&mut program, self.main, inner, self.selected)?;
        let mut wanted = self.selected.to_vec();
        wanted.resize(program.funs[first].params.len(), false);
        let second = derive::add(&mut program, first, outer, &wanted)?;
        let all: Vec<Value> = self.args.iter().chain(more.iter().copied().flatten()).cloned().collect();
        run(&program, second, &all, self.session.settings.optimise)
    }
    /// Zeros for the results with floats.
    fn zeros(&self) -> Vec<Value> {
        self.results.iter().filter(|v| has_floats(v)).filter_map(|v| filled(v, 0.0)).collect()
    }
    fn inputs(&self) -> usize {
        self.selected.iter().filter(|s| **s).count()
    }
    fn forward_over_reverse(&self, w: &[Value], v: &[Value]) -> Result<Vec<f64>, String> {
        let out = self.nested(Kind::Vjp, Kind::Jvp, &[w, v])?;
        Ok(floats(&out[out.len() - self.inputs()..]))
    }
    fn reverse_over_forward(&self, w: &[Value], v: &[Value]) -> Result<Vec<f64>, String> {
        let out = self.nested(Kind::Jvp, Kind::Vjp, &[v, &self.zeros(), w])?;
        Ok(floats(&out[out.len() - self.inputs()..]))
    }
    fn reverse_over_reverse(&self, w: &[Value], v: &[Value]) -> Result<Vec<f64>, String> {
        let out = self.nested(Kind::Vjp, Kind::Vjp, &[w, &self.zeros(), v])?;
        Ok(floats(&out[out.len() - self.inputs()..]))
    }
    fn forward_over_forward(&self, w: &[Value], v: &[Value]) -> Result<f64, String> {
        let out = self.nested(Kind::Jvp, Kind::Jvp, &[v, v])?;
        Ok(inner(&floats(w), &floats(&out[out.len() - w.len()..])))
    }
    /// The gradient at the point moved by `h` along `v`.
    fn gradient(&self, w: &[Value], v: &[Value], h: f64) -> Result<Vec<f64>, String> {
        let mut program = self.session.lowered().clone();
        let reverse = derive::add(&mut program, self.main, Kind::Vjp, self.selected)?;
        let mut steps = v.iter();
        let moved = self.args.iter().zip(self.selected).map(|(x, s)| match (s, steps.len()) {
            (true, 1..) => {
                let along = steps.next().map(Value::floats).unwrap_or_default();
                let sum: Vec<f64> = x.floats().iter().zip(&along).map(|(x, d)| x + h * d).collect();
                with_floats(x, &mut sum.into_iter())
            }
            _ => x.clone(),
        });
        let all: Vec<Value> = moved.chain(w.iter().cloned()).collect();
        let out = run(&program, reverse, &all, self.session.settings.optimise)?;
        Ok(floats(&out[out.len() - self.inputs()..]))
    }
    /// Whether the program is in double precision here, and far from kinks.
    fn is_smooth(&self, v: &[Value]) -> Result<bool, String> {
        let single = |x: &Value| match x {
            Value::Scalar(s) => s.scalar() == pullback_prim::Scalar::F32,
            Value::Array(a) => matches!(&*a.data, Buffer::F32(_)),
            Value::Tuple(_) | Value::Sum(..) | Value::Acc(_) => false,
        };
        if self.args.iter().chain(self.results).any(single) {
            return Ok(false);
        }
        let mut along = v.iter();
        let mut direction = Vec::new();
        for (x, s) in self.args.iter().zip(self.selected) {
            let here = if *s { along.next() } else { None };
            direction.extend(here.map_or_else(|| vec![0.0; x.floats().len()], Value::floats));
        }
        let code = Compiled::new(self.session.lowered());
        let found = directional(&code, self.main, self.args, &direction, &Options::default());
        Ok(found.map_err(|e| e.to_string())?.kinks == 0)
    }
}

fn run(program: &Program, fun: FunId, args: &[Value], optimise: bool) -> Result<Vec<Value>, String> {
    let (mut program, roots) = pipeline::keep_reachable(program, &[fun]);
    debug_assert!(roots[0].index() < program.funs.len());
    let (steps, choice) = (pipeline::steps(optimise), Choice::default());
    let done = pipeline::run_with(&mut program, steps, &choice, Checks::EachStep, &mut |_, _| {});
    done.map_err(|d| d.message)?;
    let out = Compiled::new(&program).run(roots[0], args, &Options::default());
    out.map(|o| o.results).map_err(|e| e.to_string())
}

fn has_floats(value: &Value) -> bool {
    match value {
        Value::Scalar(s) => s.scalar().is_float(),
        Value::Array(a) => a.data.scalar().is_some_and(|s| s.is_float()),
        Value::Tuple(_) | Value::Sum(..) | Value::Acc(_) => false,
    }
}

fn floats(values: &[Value]) -> Vec<f64> {
    values.iter().flat_map(Value::floats).collect()
}
