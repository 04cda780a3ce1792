//! The product of a Hessian with a direction, by every mix of modes: the numbers themselves, for tests that know them.
//! ([`crate::nested`] compares the mixes of any program.)

use crate::nested::{floats, has_floats};
use pullback_ad::differentiate::Choice;
use pullback_base::index::Index;
use pullback_core::{FunId, Program, Value};
use pullback_driver::derive::{self, Kind};
use pullback_driver::pipeline::Checks;
use pullback_driver::session::{EntryPoint, Session};
use pullback_driver::{gradcheck::filled, pipeline};
use pullback_interp::core::{Compiled, Options};
use pullback_interp::dual::inner;

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
