//! Scalar dual numbers: every number is one with a term that says how it varies, and arrays are arrays of these. The step that the chapter starts from, and whose cost it mends.
//!
//! Source: T. Smeding, thesis, 4.1: Figs. 4.1 to 4.6; 4.3.1 for arrays of dual numbers, Eqs. 4.1 to 4.3.
//!
//! Judgement: `G |- t : Array sh r` becomes `D[G] |- D[t] : Array sh D[r]`, evaluated as it is made: `build1`, `index` and all that moves elements is as before, on other elements.
//!
//! Types:
//! ```text
//! D[float] = (float, Delta)       D[r] = r for all others
//! Delta    = Zero | Input v | Add d1 d2 | Scale r d | Share id d
//! ```
//!
//! Notation: `e_v` the v-th unit vector · `g with [v] + c` a vector with `c` added at `v` · an entry `i: (d, c)` a node `Share i d` that is reached, and its cotangent so far
//!
//! Rules:
//! ```text
//! constant   D[r]                 = (r, Zero)
//! operation  D[op t_1 .. t_n]     = (op x_1 .. x_n, Share id (Add (Scale (d1 op) d_1) .. (Scale (dn op) d_n)))     without Scale by one
//! sum        D[sumOuter t]        = Share id (Add (Add d_1 ..) (Add ..)) for each column, halves by halves; the same for what scatter adds up
//!
//! eval_0     eval_0 Zero e = 0    eval_0 (Input v) e = e_v            eval_0 (Add a b) e = eval_0 a e + eval_0 b e         eval_0 (Scale r d) e = r * eval_0 d e
//! eval_1     eval_1 Zero = 0      eval_1 (Input v) = e_v              eval_1 (Add a b) = eval_1 a + eval_1 b               eval_1 (Scale r d) = r * eval_1 d
//! eval_2     eval_2 Zero g = g    eval_2 (Input v) g = g with [v] + 1 eval_2 (Add a b) g = eval_2 b (eval_2 a g)           eval_2 (Scale r d) g = g + r * eval_2 d 0
//! eval_3     eval_3 c Zero g = g  eval_3 c (Input v) g = g with [v] + c  eval_3 c (Add a b) g = eval_3 c b (eval_3 c a g)  eval_3 c (Scale r d) g = eval_3 (c * r) d g
//!
//! backprop   no entry: the gradient;   else, i: (d, c) with the highest i: it is no entry any more, and eval c d
//! eval       eval c Zero: nothing    eval c (Input v): [v] + c    eval c (Add a b): eval c a, eval c b    eval c (Scale r d): eval (c * r) d
//!            eval c (Share i d): i: (d, c), or i: (d, c' + c) if there is i: (d, c')
//! ```
//!
//! Differences from the paper:
//! 1. The language is that of [`super::a_core`]: functions other than index functions and bodies of `build1` are not in it. Section 4.1 with functions and products is [`crate::delta`].
//! 2. `eval_2` of Scale is printed as `(r .) . eval_2 d`, which multiplies what was collected before as well.
//! 3. The printed sum of 4.3.1 adds along rows; the operation adds along columns.
//! 4. Cotangents are `f64` until they arrive, also those of `f32`. A zero stops at an infinite partial derivative, if [`Zeros::Stop`] is asked for.
//!
//! Guarantee: with `eval` the work is that of the program, times a logarithm, with a node for each operation on a number; `eval_0` to `eval_3` are exponential in the depth of shared values,
//! `eval_0` runs once per number of the inputs, and `eval_1` and `eval_2` touch all of them per operation. Without the bulk-operation transformation nothing else is asked of a program.
//!
//! Not supported: results that are no single number.

use super::a_core::Program;
use super::counts::{Nodes, Visits};
use super::evaluate::{Arrays, Elements, Mismatch, interpret, sizes_for, total};
use super::partials::{Zeros, slopes};
use super::values::Tensor;
use pullback_prim::{Op, Partial, Prim, Scalar, ScalarValue};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// How a number varies with the inputs' numbers. Copies share it.
#[derive(Clone, Debug)]
struct Delta(Rc<Node>);

#[derive(Debug)]
enum Node {
    Zero,
    Input(usize),
    Add(Delta, Delta),
    /// With the product that its cotangent is multiplied by.
    Scale(f64, Op, Delta),
    Share(u64, Delta),
}

/// A number, and how it varies. Others have `Zero`.
#[derive(Clone, Debug)]
pub(super) struct Dual(ScalarValue, Delta);

/// Which evaluator makes a gradient of a term.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Evaluator {
    /// `eval_0`, once for each number of the inputs.
    Directions,
    /// `eval_1`: whole gradients.
    Vectors,
    /// `eval_2`: changes of gradients.
    Changes,
    /// `eval_3`: with the cotangent on the way down.
    Inwards,
    /// `reversePass`: with sharing.
    Shared,
}

/// A gradient, and what it took.
#[derive(Clone, Debug)]
pub struct Gradient {
    /// The value of the program.
    pub value: f64,
    /// The cotangents of the inputs; `None` for those without derivatives.
    pub inputs: Vec<Option<Tensor<ScalarValue>>>,
    /// Nodes of the term.
    pub nodes: Nodes,
    /// Nodes that the evaluator visited.
    pub visits: Visits,
}

/// The gradient of a program whose result is a number.
///
/// # Errors
/// [`Mismatch`] if the arguments do not fit, or if the result is no single floating-point number.
pub fn gradient(
    program: &Program,
    arguments: &[Tensor<ScalarValue>],
    evaluator: Evaluator,
    zeros: Zeros,
) -> Result<Gradient, Mismatch> {
    let sizes = sizes_for(&program.inputs, &[&program.body], arguments)?;
    if !program.body.ty().is_float() || !program.body.ty().shape.is_empty() {
        let ty = program.body.ty();
        return Err(Mismatch(format!(
            "a gradient is of one floating-point number, and the result is {ty}; sum it"
        )));
    }
    let mut arrays = Arrays::new(Duals::new(zeros), sizes);
    let mut env = program.inputs.iter().map(|x| x.id()).zip(inputs(arguments)).collect();
    let result = interpret(&mut arrays, &mut env, &program.body);
    let Dual(value, delta) = &result.elements[0];
    let mut visits = Visits::default();
    let all = evaluator.gradient(delta, numbers(arguments), &mut visits);
    let nodes = count(&[delta]);
    Ok(Gradient { value: value.as_f64(), inputs: in_place(all, arguments), nodes, visits })
}

/// How many numbers have cotangents.
fn numbers(arguments: &[Tensor<ScalarValue>]) -> usize {
    arguments.iter().filter(|a| a.scalar.is_float()).map(|a| a.elements.len()).sum()
}

// [bulk_scalar.input]  (x, Input v), from left to right
pub(super) fn inputs(arguments: &[Tensor<ScalarValue>]) -> Vec<Tensor<Dual>> {
    let mut count = 0;
    let mut named = |x: &ScalarValue| {
        let delta = if x.scalar().is_float() { Node::Input(count) } else { Node::Zero };
        count += usize::from(x.scalar().is_float());
        Dual(*x, Delta::of(delta))
    };
    let mut input = |a: &Tensor<ScalarValue>| {
        let elements = a.elements.iter().map(&mut named).collect();
        Tensor::new(a.scalar, a.shape.clone(), elements)
    };
    arguments.iter().map(&mut input).collect()
}

/// Cotangents of numbers, in the arrays that they are of.
fn in_place(all: Vec<f64>, arguments: &[Tensor<ScalarValue>]) -> Vec<Option<Tensor<ScalarValue>>> {
    let mut left = all.into_iter();
    let of = |a: &Tensor<ScalarValue>| {
        a.scalar.is_float().then(|| {
            let of = left.by_ref().take(a.elements.len()).map(|x| a.scalar.from_f64(x));
            Tensor::new(a.scalar, a.shape.clone(), of.collect())
        })
    };
    arguments.iter().map(of).collect()
}

/// Cotangents of inputs, and what they took.
pub(super) struct Backwards {
    pub(super) inputs: Vec<Option<Tensor<ScalarValue>>>,
    pub(super) nodes: u64,
    pub(super) visits: u64,
}

/// The cotangents of all inputs, for those of several numbers.
pub(super) fn backwards<'a>(
    results: impl Iterator<Item = (f64, &'a Dual)>,
    arguments: &[Tensor<ScalarValue>],
) -> Backwards {
    let results: Vec<(f64, &Delta)> = results.map(|(c, Dual(_, d))| (c, d)).collect();
    let (mut all, mut visits) = (vec![0.0; numbers(arguments)], Visits::default());
    reverse_pass(&results, &mut all, &mut visits);
    let nodes = count(&results.iter().map(|(_, d)| *d).collect::<Vec<_>>()).all;
    Backwards { inputs: in_place(all, arguments), nodes, visits: visits.all }
}

/// Makes terms, with identities in the order of execution.
pub(super) struct Duals {
    next: u64,
    zeros: Zeros,
}

impl Duals {
    pub(super) fn new(zeros: Zeros) -> Duals {
        Duals { next: 0, zeros }
    }
    fn share(&mut self, d: Delta) -> Delta {
        self.next += 1;
        Delta::of(Node::Share(self.next, d))
    }
}

impl Elements for Duals {
    type Element = Dual;
    // [bulk_scalar.constant]  (r, Zero)
    fn constant(&mut self, x: ScalarValue) -> Dual {
        Dual(x, Delta::of(Node::Zero))
    }
    fn primal(x: &Dual) -> ScalarValue {
        x.0
    }
    // [bulk_scalar.operation]  (op x_1 .. x_n, Share id (Add (Scale (d1 op) d_1) .. (Scale (dn op) d_n)))
    fn op(&mut self, op: Prim, args: &[Dual]) -> Dual {
        let xs: Vec<ScalarValue> = args.iter().map(|a| a.0).collect();
        let y = total(op, &xs);
        let parts = slopes(op, self.zeros).into_iter().map(|(k, partial, times)| {
            let d = args[k].1.clone();
            match partial {
                Partial::Const(1.0) => d,
                _ => Delta::of(Node::Scale(value_of(partial, &xs, y), times, d)),
            }
        });
        match parts.reduce(|a, b| Delta::of(Node::Add(a, b))) {
            Some(d) => Dual(y, self.share(d)),
            None => self.constant(y),
        }
    }
    // [bulk_scalar.sum]  Share id (Add (Add d_1 d_2) ..)
    fn sum(&mut self, scalar: Scalar, xs: &[Dual]) -> Dual {
        let add = Prim::Op(Op::Add, scalar);
        let sum = xs.iter().map(|x| x.0).reduce(|x, y| total(add, &[x, y]));
        match (sum, added(xs)) {
            (Some(x), Some(d)) if scalar.is_float() => Dual(x, self.share(d)),
            (Some(x), _) => self.constant(x),
            (None, _) => self.constant(scalar.zero()),
        }
    }
}

/// The sum of the terms, halves by halves: it is as deep as the logarithm of their number.
fn added(xs: &[Dual]) -> Option<Delta> {
    match xs {
        [] => None,
        [x] => Some(x.1.clone()),
        _ => {
            let (a, b) = xs.split_at(xs.len() / 2);
            Some(Delta::of(Node::Add(added(a)?, added(b)?)))
        }
    }
}

fn value_of(partial: &Partial, xs: &[ScalarValue], y: ScalarValue) -> f64 {
    match pullback_prim::eval_partial(partial, xs, y) {
        Ok(slope) => slope,
        Err(why) => unreachable!("a partial derivative of the table: {why}"),
    }
}

fn multiplied(times: Op, c: f64, r: f64) -> f64 {
    total(Prim::Op(times, Scalar::F64), &[c.into(), r.into()]).as_f64()
}

impl Delta {
    fn of(node: Node) -> Delta {
        Delta(Rc::new(node))
    }
}

fn count(deltas: &[&Delta]) -> Nodes {
    let (mut seen, mut nodes, mut left) = (BTreeSet::new(), Nodes::default(), deltas.to_vec());
    while let Some(d) = left.pop() {
        if matches!(*d.0, Node::Zero) || !seen.insert(Rc::as_ptr(&d.0)) {
            continue;
        }
        nodes.all += 1;
        match &*d.0 {
            Node::Zero => {}
            Node::Input(_) => nodes.inputs += 1,
            Node::Add(a, b) => left.extend([a, b]),
            Node::Scale(_, _, d) => left.push(d),
            Node::Share(_, d) => {
                nodes.shares += 1;
                left.push(d);
            }
        }
    }
    nodes
}

impl Evaluator {
    fn gradient(self, d: &Delta, n: usize, visits: &mut Visits) -> Vec<f64> {
        let mut changed = vec![0.0; n];
        match self {
            // [bulk_scalar.directions]  Eq. 4.1: (eval_0 d e_1, .., eval_0 d e_n)
            Evaluator::Directions => return (0..n).map(|v| eval_0(d, v, visits)).collect(),
            Evaluator::Vectors => return eval_1(d, n, visits),
            Evaluator::Changes => eval_2(d, &mut changed, visits),
            Evaluator::Inwards => eval_3(1.0, d, &mut changed, visits),
            Evaluator::Shared => reverse_pass(&[(1.0, d)], &mut changed, visits),
        }
        changed
    }
}

/// A node on the way of an evaluator without sharing.
fn visit(d: &Delta, visits: &mut Visits) {
    match *d.0 {
        Node::Share(id, _) => visits.opened(id),
        Node::Input(v) => {
            visits.all += 1;
            visits.reached(v);
        }
        Node::Zero | Node::Add(..) | Node::Scale(..) => visits.all += 1,
    }
}

// [bulk_scalar.eval_0]  with the unit vector v as e
fn eval_0(d: &Delta, v: usize, visits: &mut Visits) -> f64 {
    visit(d, visits);
    match &*d.0 {
        Node::Zero => 0.0,
        Node::Input(i) => f64::from(u8::from(*i == v)),
        Node::Add(a, b) => eval_0(a, v, visits) + eval_0(b, v, visits),
        Node::Scale(r, times, d) => multiplied(*times, eval_0(d, v, visits), *r),
        Node::Share(_, d) => eval_0(d, v, visits),
    }
}

// [bulk_scalar.eval_1]
fn eval_1(d: &Delta, n: usize, visits: &mut Visits) -> Vec<f64> {
    visit(d, visits);
    match &*d.0 {
        Node::Zero => vec![0.0; n],
        Node::Input(i) => (0..n).map(|v| f64::from(u8::from(*i == v))).collect(),
        Node::Add(a, b) => {
            let (a, b) = (eval_1(a, n, visits), eval_1(b, n, visits));
            a.into_iter().zip(b).map(|(x, y)| x + y).collect()
        }
        Node::Scale(r, times, d) => {
            eval_1(d, n, visits).into_iter().map(|x| multiplied(*times, x, *r)).collect()
        }
        Node::Share(_, d) => eval_1(d, n, visits),
    }
}

// [bulk_scalar.eval_2]
fn eval_2(d: &Delta, g: &mut [f64], visits: &mut Visits) {
    visit(d, visits);
    match &*d.0 {
        Node::Zero => {}
        Node::Input(v) => g[*v] += 1.0,
        Node::Add(a, b) => {
            eval_2(a, g, visits);
            eval_2(b, g, visits);
        }
        Node::Scale(r, times, d) => {
            let mut of = vec![0.0; g.len()];
            eval_2(d, &mut of, visits);
            g.iter_mut().zip(of).for_each(|(g, x)| *g += multiplied(*times, x, *r));
        }
        Node::Share(_, d) => eval_2(d, g, visits),
    }
}

// [bulk_scalar.eval_3]
fn eval_3(c: f64, d: &Delta, g: &mut [f64], visits: &mut Visits) {
    visit(d, visits);
    match &*d.0 {
        Node::Zero => {}
        Node::Input(v) => g[*v] += c,
        Node::Add(a, b) => {
            eval_3(c, a, g, visits);
            eval_3(c, b, g, visits);
        }
        Node::Scale(r, times, d) => eval_3(multiplied(*times, c, *r), d, g, visits),
        Node::Share(_, d) => eval_3(c, d, g, visits),
    }
}

type Entries<'a> = BTreeMap<u64, (&'a Delta, f64)>;

// [bulk_scalar.backprop]  the entry with the highest identity, until there is none
fn reverse_pass(results: &[(f64, &Delta)], g: &mut [f64], visits: &mut Visits) {
    let mut entries = Entries::new();
    results.iter().for_each(|(c, d)| eval(*c, d, g, &mut entries, visits));
    while let Some((id, (d, c))) = entries.pop_last() {
        visits.opened(id);
        eval(c, d, g, &mut entries, visits);
    }
}

// [bulk_scalar.eval]
fn eval<'a>(c: f64, d: &'a Delta, g: &mut [f64], entries: &mut Entries<'a>, visits: &mut Visits) {
    visits.all += 1;
    match &*d.0 {
        Node::Zero => {}
        Node::Input(v) => {
            visits.reached(*v);
            g[*v] += c;
        }
        Node::Add(a, b) => {
            eval(c, a, g, entries, visits);
            eval(c, b, g, entries, visits);
        }
        Node::Scale(r, times, d) => eval(multiplied(*times, c, *r), d, g, entries, visits),
        Node::Share(i, d) => {
            entries.entry(*i).and_modify(|(_, sum)| *sum += c).or_insert((d, c));
        }
    }
}
