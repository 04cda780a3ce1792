//! Algorithms whose delta terms are made while a program runs: `bulk-scalar` (a node for each number, [`super::c_scalar`]) and `bulk-tape` (a node for each array, [`super::d_arrays`]).
//!
//! Source: T. Smeding, thesis, 4.1 with 4.3.1, and 4.4 with 4.5. The way from core is that of [`super::from_core`].
//!
//! Judgement: a function of core becomes a function that gives its results, the values that its derivative reads, and sizes. An executor runs it first; then the function's form in the fragment is evaluated over dual
//! numbers or dual arrays, and an evaluator reads the delta terms of the results, from the last identity on.
//!
//! Guarantee: the first results are the function's, to the bit, and the derivative stops where it stops. Cotangents are those of `bulk`, up to the order of additions.
//!
//! Not supported: what `bulk` does not support; arguments and results that are products (those of entry points never are); many cotangents at once; derivatives inside of a program.

use super::a_core::Var as Variable;
use super::c_scalar;
use super::d_arrays::{self, Dual, Duals};
use super::evaluate::{Algebra, Arrays, Env, Mismatch, Plain, exist, interpret};
use super::from_core::{Listing, Steps, step_by_step};
use super::sizes::{Size, SizeVar};
use super::to_core;
use super::values::Tensor;
use crate::contract::{Bound, Status, Unsupported};
use crate::translation::inlined;
use pullback_base::{RuntimeError, RuntimeErrorKind, Symbol};
use pullback_core::value::{Array, Buffer};
use pullback_core::{Atom, Builder, Fun, FunId, Lam, Program, Value};
use pullback_prim::ScalarValue;
use std::collections::BTreeMap;

/// What is a dual number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Level {
    /// Every number.
    Numbers,
    /// Every array.
    Arrays,
}

/// An algorithm of this kind.
#[derive(Debug)]
pub struct Interpreted {
    /// The name it is chosen by (`--ad NAME`).
    pub id: &'static str,
    /// Its title.
    pub title: &'static str,
    /// Where it is from.
    pub citation: &'static str,
    /// Its cost claim.
    pub bound: Bound,
    /// Who it is for.
    pub status: Status,
    level: Level,
}

/// All of them, in the order of the text.
pub const ALGORITHMS: &[Interpreted] = &[
    Interpreted {
        id: "bulk-scalar",
        title: "Dual numbers in arrays, with delta terms",
        citation: "Smeding, thesis, 4.1 and 4.3.1",
        bound: Bound::None,
        status: Status::Didactic,
        level: Level::Numbers,
    },
    Interpreted {
        id: "bulk-tape",
        title: "Bulk dual numbers, with a tape",
        citation: "Smeding, thesis, 4.4 and 4.5",
        bound: Bound::None,
        status: Status::Didactic,
        level: Level::Arrays,
    },
];

/// The one of this name.
pub fn find(name: &str) -> Option<&'static Interpreted> {
    ALGORITHMS.iter().find(|a| a.id == name)
}

/// A reverse derivative that is ready to run.
#[derive(Clone, Debug)]
pub struct Derivative {
    level: Level,
    /// With the function that gives results, values and sizes.
    program: Program,
    fun: FunId,
    /// How many of its results are the function's.
    results: usize,
    steps: Steps,
}

/// What a run gives, and what it took.
#[derive(Clone, Debug)]
pub struct Run {
    /// The function's results.
    pub results: Vec<Value>,
    /// The cotangents of the wanted parameters, in their order.
    pub cotangents: Vec<Value>,
    /// Nodes of the delta terms, each counted once, without `Zero`.
    pub nodes: u64,
    /// Nodes that the evaluator visited.
    pub evals: u64,
    /// Elements touched by the form in the fragment, and by the evaluator.
    pub touched: u64,
}

impl Interpreted {
    /// The reverse derivative of a function, with respect to the wanted parameters. Cost: as `bulk`.
    ///
    /// # Errors
    /// [`Unsupported`] as `bulk`.
    pub fn derivative(
        &self,
        program: &Program,
        fun: FunId,
        wanted: &[bool],
    ) -> Result<Derivative, Unsupported> {
        let mut program = program.clone();
        let source = program.funs[fun].clone();
        let lam = Lam { params: source.params, body: source.body };
        let mine = |e: Unsupported| Unsupported { algorithm: self.id, ..e };
        let lam = inlined(&mut program, &lam);
        let steps = step_by_step(&program, &lam, wanted).map_err(mine)?;
        let results = lam.body.result.len();
        let Lam { params, mut body } = lam;
        let mut b = Builder::new(&mut program);
        let sizes = to_core::extents(&mut b, &steps.sizes);
        body.stms.extend(b.finish());
        body.result.extend(steps.inputs.iter().map(|(_, v)| Atom::from(*v)).chain(sizes));
        let types = body.result.iter().map(|a| program.atom_type(*a)).collect();
        let name = Symbol::new(&format!("{}_read", source.name));
        let fun = program.funs.push(Fun { name, params, body, results: types, entry: None });
        Ok(Derivative { level: self.level, program, fun, results, steps })
    }
}

/// The numbers of the wanted inputs' cotangents, and what they took.
struct Read {
    cotangents: BTreeMap<usize, Tensor<ScalarValue>>,
    nodes: u64,
    evals: u64,
    touched: u64,
}

impl Derivative {
    /// The steps that lead to its form in the fragment.
    pub fn steps(&self) -> &Steps {
        &self.steps
    }

    /// What is a dual number.
    pub fn level(&self) -> Level {
        self.level
    }

    /// The form in the fragment that runs.
    pub fn listing(&self) -> &Listing {
        match self.level {
            Level::Numbers => &self.steps.source,
            Level::Arrays => &self.steps.bulk,
        }
    }

    /// The function to run first, which takes the arguments.
    pub fn first(&self) -> (&Program, FunId) {
        (&self.program, self.fun)
    }

    /// Results and cotangents, for what [`Derivative::first`] gave and a cotangent of each result that can have one.
    ///
    /// # Errors
    /// A cotangent of another shape than its result; arrays that are too large. Cost: that of its form in the fragment.
    pub fn after(&self, mut results: Vec<Value>, cotangents: &[Value]) -> Result<Run, RuntimeError> {
        let given = results.len();
        if given != self.results + self.steps.inputs.len() + self.steps.sizes.len() {
            let message = format!("{given} values of another function");
            return Err(RuntimeError::new(RuntimeErrorKind::Internal, message));
        }
        let mut read = results.split_off(self.results);
        let sizes = sizes_of(read.split_off(self.steps.inputs.len()));
        let listing = self.listing();
        let terms = listing.bindings.iter().map(|(_, t)| t).chain(&listing.results);
        let fits = exist(&terms.collect::<Vec<_>>(), &sizes);
        fits.map_err(|why| RuntimeError::new(RuntimeErrorKind::Limit, why.0))?;
        let inputs = self.steps.inputs.iter().zip(&read);
        let inputs = inputs.map(|((x, _), v)| tensor(v, x, &sizes)).collect::<Result<Vec<_>, _>>()?;
        let varies = self.steps.seeds.iter().zip(cotangents).filter_map(|(c, v)| Some((c.as_ref()?, v)));
        let seeds = varies.map(|(c, v)| tensor(v, c, &sizes)).collect::<Result<Vec<_>, _>>()?;
        let found = match self.level {
            Level::Numbers => self.numbers(sizes, &inputs, &seeds),
            Level::Arrays => self.arrays(sizes, &inputs, &seeds),
        };
        let mut found = found.map_err(|why| RuntimeError::new(RuntimeErrorKind::Internal, why.0))?;
        let mut cotangents = Vec::new();
        for x in &self.steps.wanted {
            let at = self.steps.inputs.iter().position(|(y, _)| x == y);
            let Some((v, input)) = at.and_then(|v| Some((v, inputs.get(v)?))) else { continue };
            let zeros = || Tensor::full(input.scalar.zero(), &input.shape);
            cotangents.push(value(&found.cotangents.remove(&v).unwrap_or_else(zeros), &read[v]));
        }
        let Read { nodes, evals, touched, .. } = found;
        Ok(Run { results, cotangents, nodes, evals, touched })
    }

    fn env<A: Clone>(&self, inputs: Vec<A>) -> Env<A> {
        self.steps.inputs.iter().map(|(x, _)| x.id()).zip(inputs).collect()
    }

    /// The results in an algebra, after the bindings.
    fn results<T: Algebra>(&self, alg: &mut T, env: &mut Env<T::Array>) -> Vec<T::Array> {
        let Listing { bindings, results } = self.listing();
        for (x, t) in bindings {
            let a = interpret(alg, env, t);
            env.insert(x.id(), a);
        }
        results.iter().map(|t| interpret(alg, env, t)).collect()
    }

    // [bulk_interpreted.arrays]  the bindings and results over dual arrays, then eval c d and backprop
    fn arrays(
        &self,
        sizes: BTreeMap<SizeVar, i64>,
        inputs: &[Tensor<ScalarValue>],
        seeds: &[Tensor<ScalarValue>],
    ) -> Result<Read, Mismatch> {
        let mut arrays = Arrays::new(Plain, sizes);
        let mut duals = Duals::new(&mut arrays, self.steps.zeros);
        let variables = self.steps.inputs.iter().map(|(x, _)| x);
        let mut env = self.env(duals.inputs(variables.zip(inputs.iter().cloned())));
        let deltas: Vec<_> = self.results(&mut duals, &mut env).iter().map(Dual::delta).collect();
        duals.finish()?;
        let nodes = d_arrays::count(&deltas).all;
        let found = d_arrays::backwards(&mut arrays, seeds.iter().cloned().zip(&deltas));
        let (cotangents, evals) = (found.gradients, found.evals);
        Ok(Read { cotangents, nodes, evals, touched: arrays.touched })
    }

    // [bulk_interpreted.numbers]  the bindings and results over dual numbers, then eval c d and backprop
    fn numbers(
        &self,
        sizes: BTreeMap<SizeVar, i64>,
        inputs: &[Tensor<ScalarValue>],
        seeds: &[Tensor<ScalarValue>],
    ) -> Result<Read, Mismatch> {
        let mut arrays = Arrays::new(c_scalar::Duals::new(self.steps.zeros), sizes);
        let mut env = self.env(c_scalar::inputs(inputs));
        let duals = self.results(&mut arrays, &mut env);
        let numbers = duals.iter().flat_map(|d| d.elements.iter());
        let cotangents = seeds.iter().flat_map(|c| c.to_f64s());
        let found = c_scalar::backwards(cotangents.zip(numbers), inputs);
        let cotangents = found.inputs.into_iter().enumerate().filter_map(|(v, t)| Some((v, t?))).collect();
        Ok(Read { cotangents, nodes: found.nodes, evals: found.visits, touched: arrays.touched })
    }
}

fn sizes_of(values: Vec<Value>) -> BTreeMap<SizeVar, i64> {
    let size = |v: Value| match v {
        Value::Scalar(n) => n.as_i64(),
        other => unreachable!("a size is a number, and no {other:?}"),
    };
    values.into_iter().enumerate().map(|(k, v)| (SizeVar::at(k), size(v))).collect()
}

/// The value as what this variable is. Where it has no elements, the variable says its other sizes.
fn tensor(
    value: &Value,
    x: &Variable,
    sizes: &BTreeMap<SizeVar, i64>,
) -> Result<Tensor<ScalarValue>, RuntimeError> {
    let extent = |n: &Size| n.value(sizes).and_then(|n| usize::try_from(n).ok());
    let shape: Option<Vec<usize>> = x.ty().shape.iter().map(extent).collect();
    let elements: Vec<ScalarValue> = match value {
        Value::Scalar(x) => vec![*x],
        Value::Array(a) => (a.offset..a.offset + a.count()).filter_map(|k| scalar(a.data.get(k))).collect(),
        Value::Tuple(_) | Value::Sum(..) | Value::Acc(_) => Vec::new(),
    };
    match shape {
        Some(shape) if shape.iter().product::<usize>() == elements.len() => {
            Ok(Tensor::new(x.ty().scalar, shape, elements))
        }
        _ => {
            let message =
                format!("`{}` has {} elements, and its type is {}", x.name(), elements.len(), x.ty());
            Err(RuntimeError::new(RuntimeErrorKind::ShapeMismatch, message))
        }
    }
}

fn scalar(value: Value) -> Option<ScalarValue> {
    match value {
        Value::Scalar(x) => Some(x),
        Value::Tuple(_) | Value::Sum(..) | Value::Array(_) | Value::Acc(_) => None,
    }
}

/// The array as a value of core, with the sizes of this one.
fn value(t: &Tensor<ScalarValue>, like: &Value) -> Value {
    match like {
        Value::Array(a) => {
            let mut data = Buffer::with_capacity(Some(t.scalar), t.elements.len());
            t.elements.iter().for_each(|x| data.push(Value::Scalar(*x)));
            Value::Array(Array::new(a.shape.clone(), data))
        }
        _ => Value::Scalar(t.elements.first().copied().unwrap_or_else(|| t.scalar.zero())),
    }
}
