//! Dual arrays: every array of numbers is one with a term that says how all of it varies; a node of that term for each array operation.
//!
//! Source: T. Smeding, thesis, 4.5: Figs. 4.13 to 4.18. Fig. 4.15 is not in the text at hand: its rules are those that Figs. 4.3, 4.16 and 4.19 leave no choice for.
//!
//! Judgement: `G |- t : Array sh float` becomes `D[G] |- D[t] : (Array sh float, Delta sh)`, evaluated as it is made, in any algebra ([`Algebra`]): with arrays as values the term is a tape.
//! `G |- t` of another type becomes `D'[t]`: the term itself, of the primal halves of its variables (Fig. 4.14).
//!
//! Types:
//! ```text
//! D[Array sh float] = (Array sh float, Delta sh)       D[Array sh r] = Array sh r for all others
//! Delta sh          = Zero | Input v | Add d1 d2 | Scale a d | Share id d
//!                   | Index d ix | SumOuter d | Gather d f | Scatter d f | Stack ds | Replicate d | Transpose j d | Reshape d | Convert d
//! ```
//!
//! Notation: `(x, d) <- D[t]` its two halves · `op'_j` the partial derivative of `op` by argument `j`, at `x_1 .. x_n` · `shape d` the shape of what `d` says · an entry `i: (d, c)` as in [`super::c_scalar`]
//!
//! Rules:
//! ```text
//! variable   D[x]               = x
//! constant   D[c]               = (c, Zero)
//! let        D[let x = u in v]  = x <- D[u]; D[v]
//! cond       D[cond b u v]      = D[index [u, v] [cond b 0 1]]
//! op         D[op t_1 .. t_n]   = (op x_1 .. x_n, Share id (Add (Scale op'_1 d_1) .. (Scale op'_n d_n)))      without Scale by one; conversions: Convert d
//! index      D[index t ix]      = (index x D'[ix], Share id (Index d D'[ix]))
//! sum        D[sumOuter t]      = (sumOuter x, Share id (SumOuter d))
//! gather     D[gather sh t f]   = (gather sh x D'[f], Share id (Gather d D'[f]))
//! scatter    D[scatter sh t f]  = (scatter sh x D'[f], Share id (Scatter d D'[f]))
//! stack      D[[t_1, .., t_n]]  = ([x_1, .., x_n], Share id (Stack [d_1, .., d_n]))
//! replicate  D[replicate k t]   = (replicate k x, Share id (Replicate d))
//! transpose  D[tr_j t]          = (tr_j x, Share id (Transpose j d))
//! reshape    D[reshape sh t]    = (reshape sh x, Share id (Reshape d))
//!
//! eval c Zero          nothing                             eval c (Index d ix)      eval (oneHot (shape d) ix c) d
//! eval c (Input v)     [v] + c                             eval c (SumOuter d)      eval (replicate (outermost size of d) c) d
//! eval c (Add a b)     eval c a, eval c b                  eval c (Gather d f)      eval (scatter (shape d) c f) d
//! eval c (Scale a d)   eval (c * a) d                      eval c (Scatter d f)     eval (gather (shape d) c f) d
//! eval c (Share i d)   i: (d, c), or c added to it         eval c (Stack ds)        eval (index c [j]) d_j for all j
//! eval c (Convert d)   eval (c, converted back) d          eval c (Replicate d)     eval (sumOuter c) d
//!                                                          eval c (Transpose j d)   eval (tr_{j backwards} c) d
//!                                                          eval c (Reshape d)       eval (reshape (shape d) c) d
//! ```
//!
//! Differences from the paper:
//! 1. The state of the evaluator is one map of entries where Fig. 4.18 has two with the same keys.
//! 2. `Convert` is ours: floats of two widths. `LitArray` is called `Stack`.
//! 3. A zero cotangent stops at a partial derivative that may be infinite, if [`Zeros::Stop`] is asked for; the text multiplies, and the branch that a `cond` did not choose may make NaN of it.
//! 4. A partial derivative that is a choice of the table (of `min`, `pow` ..) is a factor here; other algorithms choose between products. Infinite cotangents times a chosen zero are NaN here.
//! 5. The result may have any shape, and so has its cotangent.
//!
//! Guarantee: a node of a term for each array operation that a program executes, whatever the sizes are; of gradients after [`super::b_bot`], a constant times the work of the program. Without it, each `index` that
//! is executed makes an array of zeros of the size of what it reads.
//!
//! Not supported: `build1` of floats: [`super::b_bot`] makes bulk operations of it.
//!
//! The file is one piece, and its three walks are long, because they are read side by side: for each form its rule, its transpose, and what it says of tangents.

use super::a_core::{Exp, Program, Term, Ty, Var, made};
use super::evaluate::{Algebra, Arrays, Closure, Env, Mismatch, Plain, interpret, sizes_for};
use super::partials::{Zeros, slopes};
use super::sizes::Size;
use super::values::Tensor;
use pullback_core::inverse;
use pullback_prim::{Op, Partial, Prim, Scalar, ScalarValue};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// How an array varies with the inputs; with its type, so that its shape is at hand. Copies share it.
#[derive(Clone, Debug)]
pub(super) struct Delta<A>(Rc<(Ty, Node<A>)>);

/// Fig. 4.13.
#[derive(Debug)]
enum Node<A> {
    Zero,
    Input(usize),
    Add(Delta<A>, Delta<A>),
    /// With the product that a cotangent is multiplied by.
    Scale(A, Op, Delta<A>),
    Share(u32, Delta<A>),
    Index(Delta<A>, Vec<A>),
    SumOuter(Delta<A>),
    Gather(Delta<A>, Closure<A>),
    Scatter(Delta<A>, Closure<A>),
    Stack(Vec<Delta<A>>),
    Replicate(Delta<A>),
    Transpose(Vec<usize>, Delta<A>),
    Reshape(Delta<A>),
    Convert(Delta<A>),
}

/// Cotangents of the inputs, and what they took.
#[derive(Clone, Debug)]
pub struct Pullback {
    /// The value of the program.
    pub value: Tensor<ScalarValue>,
    /// The cotangents; `None` for inputs without derivatives.
    pub inputs: Vec<Option<Tensor<ScalarValue>>>,
    /// Nodes of the term, each counted once, without `Zero`.
    pub nodes: u64,
    /// Calls of `eval`.
    pub evals: u64,
    /// The identities of shared nodes, in the order in which they were evaluated.
    pub order: Vec<u32>,
    /// Elements touched, forwards and backwards.
    pub touched: u64,
}

/// Value and cotangents of the inputs, for a cotangent of the result.
///
/// # Errors
/// [`Mismatch`] if arguments or cotangent do not fit, or if there is a `build1` of floats.
pub fn vjp(
    program: &Program,
    arguments: &[Tensor<ScalarValue>],
    cotangent: &Tensor<ScalarValue>,
    zeros: Zeros,
) -> Result<Pullback, Mismatch> {
    let (mut arrays, value, delta) = forwards(program, arguments, zeros)?;
    if (cotangent.scalar, &cotangent.shape) != (value.scalar, &value.shape) {
        return Err(Mismatch(format!(
            "the cotangent has shape {:?}, the result {:?}",
            cotangent.shape, value.shape
        )));
    }
    let Reverse { mut gradients, evals, order, .. } =
        Reverse::new(&mut arrays).run(cotangent.clone(), &delta);
    let zeros = |a: &Tensor<ScalarValue>| Tensor::full(a.scalar.zero(), &a.shape);
    let of = |(v, a): (usize, &Tensor<ScalarValue>)| {
        a.scalar.is_float().then(|| gradients.remove(&v).unwrap_or_else(|| zeros(a)))
    };
    let inputs = arguments.iter().enumerate().map(of).collect();
    Ok(Pullback { value, inputs, nodes: delta.count(), evals, order, touched: arrays.touched })
}

/// The tangent of the result, for tangents of all inputs (those of inputs without derivatives are not read).
///
/// # Errors
/// [`Mismatch`] if the arguments do not fit, or if there is a `build1` of floats.
pub fn jvp(
    program: &Program,
    arguments: &[Tensor<ScalarValue>],
    tangents: &[Tensor<ScalarValue>],
) -> Result<Tensor<ScalarValue>, Mismatch> {
    sizes_for(&program.inputs, &[], tangents)?;
    let (mut arrays, _, delta) = forwards(program, arguments, Zeros::Stop)?;
    Ok(Forward { alg: &mut arrays, tangents, known: BTreeMap::new() }.eval(&delta))
}

type Values = Arrays<Plain>;
type Forwards = (Values, Tensor<ScalarValue>, Delta<Tensor<ScalarValue>>);

fn forwards(
    program: &Program,
    arguments: &[Tensor<ScalarValue>],
    zeros: Zeros,
) -> Result<Forwards, Mismatch> {
    let mut arrays = Arrays::new(Plain, sizes_for(&program.inputs, &[&program.body], arguments)?);
    let inputs = program.inputs.iter().zip(arguments.iter().cloned());
    let mut d = Differentiate::new(&mut arrays, zeros, inputs);
    let result = if program.body.ty().is_float() {
        d.rule(&program.body)?
    } else {
        (d.primal(&program.body), Delta::new(program.body.ty(), Node::Zero))
    };
    Ok((arrays, result.0, result.1))
}

/// The transformation, over arrays of an algebra.
pub(super) struct Differentiate<'a, T: Algebra> {
    alg: &'a mut T,
    /// The first halves of variables, or all of them.
    primals: Env<T::Array>,
    /// The second halves.
    deltas: Env<Delta<T::Array>>,
    next: u32,
    zeros: Zeros,
}

type Dual<T> = (<T as Algebra>::Array, Delta<<T as Algebra>::Array>);

impl<'a, T: Algebra> Differentiate<'a, T> {
    /// With the inputs, in their order.
    pub(super) fn new<'x>(
        alg: &'a mut T,
        zeros: Zeros,
        inputs: impl Iterator<Item = (&'x Var, T::Array)>,
    ) -> Differentiate<'a, T> {
        let (mut primals, mut deltas) = (Env::new(), Env::new());
        for (v, (x, a)) in inputs.enumerate() {
            primals.insert(x.id(), a);
            // [bulk_arrays.input]  (x, Input v)
            deltas.insert(x.id(), Delta::new(x.ty(), Node::Input(v)));
        }
        Differentiate { alg, primals, deltas, next: 0, zeros }
    }

    // [bulk_arrays.primal]  D'[t]: Fig. 4.14 is the interpreter, where variables are their first halves
    fn primal(&mut self, t: &Term) -> T::Array {
        let a = interpret(self.alg, &mut self.primals, t);
        self.alg.share(a)
    }
    fn primal_of_all(&mut self, ts: &[Term]) -> Vec<T::Array> {
        ts.iter().map(|t| self.primal(t)).collect()
    }

    /// `x <- D[u]`
    pub(super) fn bind(&mut self, x: &Var, u: &Term) -> Result<(), Mismatch> {
        if u.ty().is_float() {
            let (a, d) = self.rule(u)?;
            self.primals.insert(x.id(), a);
            self.deltas.insert(x.id(), d);
        } else {
            let a = self.primal(u);
            self.primals.insert(x.id(), a);
        }
        Ok(())
    }

    /// `D[t]`, of which the first half may be used more than once.
    pub(super) fn rule(&mut self, t: &Term) -> Result<Dual<T>, Mismatch> {
        let (x, d) = self.form(t)?;
        Ok((self.alg.share(x), d))
    }

    // Figs. 4.15 and 4.16, for terms whose elements are floats.
    fn form(&mut self, t: &Term) -> Result<Dual<T>, Mismatch> {
        let ty = t.ty();
        Ok(match t.exp() {
            // [bulk_arrays.variable]  x
            Exp::Var(x) => match (self.primals.get(&x.id()), self.deltas.get(&x.id())) {
                (Some(x), Some(d)) => (x.clone(), d.clone()),
                _ => unreachable!("a checked program binds {x:?}"),
            },
            // [bulk_arrays.constant]  (c, Zero)
            Exp::Const(c) => (self.alg.constant(c), Delta::new(ty, Node::Zero)),
            // [bulk_arrays.let]  x <- D[u]; D[v]
            Exp::Let(x, u, v) => {
                self.bind(x, u)?;
                self.rule(v)?
            }
            // [bulk_arrays.cond]  D[index [u, v] [cond b 0 1]]
            Exp::Cond(b, u, v) => {
                let which = made(Exp::Cond(b.clone(), Term::i64(0), Term::i64(1)));
                let both = made(Exp::Stack(vec![u.clone(), v.clone()]));
                self.rule(&made(Exp::Index(both, vec![which])))?
            }
            // [bulk_arrays.op]  (op x_1 .. x_n, Share id (Add (Scale op'_1 d_1) .. (Scale op'_n d_n)))
            Exp::Op(op, ts) => self.operation(*op, ts, ty)?,
            // [bulk_arrays.index]  (index x D'[ix], Share id (Index d D'[ix]))
            Exp::Index(t, ix) => {
                let (x, d) = self.rule(t)?;
                let ix = self.primal_of_all(ix);
                (self.alg.index(&x, &ix), self.share(ty, Node::Index(d, ix)))
            }
            // [bulk_arrays.sum]  (sumOuter x, Share id (SumOuter d))
            Exp::SumOuter(t) => {
                let (x, d) = self.rule(t)?;
                (self.alg.sum_outer(&x), self.share(ty, Node::SumOuter(d)))
            }
            // [bulk_arrays.gather]  (gather sh x D'[f], Share id (Gather d D'[f]))
            Exp::Gather(sh, t, f) => {
                let (x, d) = self.rule(t)?;
                let f = Closure::new(f, &self.primals);
                (self.alg.gather(sh, &x, &f), self.share(ty, Node::Gather(d, f)))
            }
            // [bulk_arrays.scatter]  (scatter sh x D'[f], Share id (Scatter d D'[f]))
            Exp::Scatter(sh, t, f) => {
                let (x, d) = self.rule(t)?;
                let f = Closure::new(f, &self.primals);
                (self.alg.scatter(sh, &x, &f), self.share(ty, Node::Scatter(d, f)))
            }
            // [bulk_arrays.stack]  ([x_1, .., x_n], Share id (Stack [d_1, .., d_n]))
            Exp::Stack(ts) => {
                let (xs, ds): (Vec<_>, Vec<_>) = self.rule_of_all(ts)?.into_iter().unzip();
                (self.alg.stack(&xs), self.share(ty, Node::Stack(ds)))
            }
            // [bulk_arrays.replicate]  (replicate k x, Share id (Replicate d))
            Exp::Replicate(k, t) => {
                let (x, d) = self.rule(t)?;
                (self.alg.replicate(k, &x), self.share(ty, Node::Replicate(d)))
            }
            // [bulk_arrays.transpose]  (tr_j x, Share id (Transpose j d))
            Exp::Transpose(j, t) => {
                let (x, d) = self.rule(t)?;
                (self.alg.transpose(j, &x), self.share(ty, Node::Transpose(j.clone(), d)))
            }
            // [bulk_arrays.reshape]  (reshape sh x, Share id (Reshape d))
            Exp::Reshape(sh, t) => {
                let (x, d) = self.rule(t)?;
                (self.alg.reshape(sh, &x), self.share(ty, Node::Reshape(d)))
            }
            Exp::Build1(..) => {
                return Err(Mismatch(format!("dual arrays are of bulk operations: transform `{t}` first")));
            }
            Exp::Size(_) | Exp::Iota(_) | Exp::ArgOuter(..) => unreachable!("integers: {t}"),
        })
    }

    fn rule_of_all(&mut self, ts: &[Term]) -> Result<Vec<Dual<T>>, Mismatch> {
        ts.iter().map(|t| self.rule(t)).collect()
    }

    fn operation(&mut self, op: Prim, ts: &[Term], ty: &Ty) -> Result<Dual<T>, Mismatch> {
        let slopes = slopes(op, self.zeros);
        let (mut xs, mut ds) = (Vec::new(), BTreeMap::new());
        for (k, t) in ts.iter().enumerate() {
            if slopes.iter().any(|(j, ..)| *j == k) {
                let (x, d) = self.rule(t)?;
                xs.push(x);
                ds.insert(k, d);
            } else {
                xs.push(self.primal(t));
            }
        }
        let y = self.alg.op(op, &xs);
        let y = self.alg.share(y);
        let mut sum: Option<Delta<T::Array>> = None;
        for (k, partial, times) in slopes {
            let d = ds[&k].clone();
            let part = match (op, partial) {
                (Prim::Convert(..), _) => Delta::new(ty, Node::Convert(d)),
                (_, Partial::Const(1.0)) => d,
                _ => {
                    let slope = self.slope(partial, ty, (&xs, &y));
                    let slope = self.alg.share(slope);
                    Delta::new(ty, Node::Scale(slope, times, d))
                }
            };
            sum = Some(match sum {
                Some(sum) => Delta::new(ty, Node::Add(sum, part)),
                None => part,
            });
        }
        Ok((
            y,
            match sum {
                Some(d) => self.shared(d),
                None => Delta::new(ty, Node::Zero),
            },
        ))
    }

    /// A partial derivative of the table, elementwise.
    fn slope(&mut self, partial: &Partial, ty: &Ty, at: (&[T::Array], &T::Array)) -> T::Array {
        match partial {
            Partial::Arg(k) => at.0[usize::from(*k)].clone(),
            Partial::Result => at.1.clone(),
            Partial::Const(x) => full(self.alg, ty.scalar.from_f64(*x), &ty.shape),
            Partial::Op(op, operands) => {
                let operands: Vec<_> = operands.iter().map(|p| self.slope(p, ty, at)).collect();
                self.alg.op(Prim::Op(*op, ty.scalar), &operands)
            }
        }
    }

    fn share(&mut self, ty: &Ty, node: Node<T::Array>) -> Delta<T::Array> {
        self.shared(Delta::new(ty, node))
    }
    fn shared(&mut self, d: Delta<T::Array>) -> Delta<T::Array> {
        self.next += 1;
        Delta::new(&d.ty().clone(), Node::Share(self.next, d))
    }
}

/// The same number everywhere.
pub(super) fn full<T: Algebra>(alg: &mut T, x: ScalarValue, shape: &[Size]) -> T::Array {
    let x = alg.constant(&Tensor::scalar(x));
    shape.iter().rev().fold(x, |t, k| alg.replicate(k, &t))
}

impl<A> Delta<A> {
    fn new(ty: &Ty, node: Node<A>) -> Delta<A> {
        Delta(Rc::new((ty.clone(), node)))
    }
    fn ty(&self) -> &Ty {
        &self.0.0
    }
    fn shape(&self) -> &[Size] {
        &self.0.0.shape
    }
    /// Nodes, each once, without `Zero`.
    fn count(&self) -> u64 {
        let (mut seen, mut left) = (BTreeSet::new(), vec![self]);
        while let Some(d) = left.pop() {
            if matches!(d.0.1, Node::Zero) || !seen.insert(Rc::as_ptr(&d.0)) {
                continue;
            }
            match &d.0.1 {
                Node::Zero | Node::Input(_) => {}
                Node::Add(a, b) => left.extend([a, b]),
                Node::Stack(ds) => left.extend(ds),
                Node::Scale(_, _, d)
                | Node::Share(_, d)
                | Node::Index(d, _)
                | Node::SumOuter(d)
                | Node::Gather(d, _)
                | Node::Scatter(d, _)
                | Node::Replicate(d)
                | Node::Transpose(_, d)
                | Node::Reshape(d)
                | Node::Convert(d) => left.push(d),
            }
        }
        seen.len() as u64
    }
}

/// The reverse pass, over arrays of an algebra: Figs. 4.5 and 4.18.
pub(super) struct Reverse<'a, T: Algebra> {
    alg: &'a mut T,
    /// By the number of the input.
    pub(super) gradients: BTreeMap<usize, T::Array>,
    entries: BTreeMap<u32, (Delta<T::Array>, T::Array)>,
    evals: u64,
    order: Vec<u32>,
}

impl<'a, T: Algebra> Reverse<'a, T> {
    pub(super) fn new(alg: &'a mut T) -> Reverse<'a, T> {
        Reverse { alg, gradients: BTreeMap::new(), entries: BTreeMap::new(), evals: 0, order: Vec::new() }
    }

    // [bulk_arrays.backprop]  eval c d; then the entry with the highest identity, until there is none
    pub(super) fn run(mut self, c: T::Array, delta: &Delta<T::Array>) -> Self {
        self.eval(c, delta);
        self.finish()
    }

    /// After the cotangents of all results.
    pub(super) fn finish(mut self) -> Self {
        while let Some((id, (d, c))) = self.entries.pop_last() {
            self.order.push(id);
            self.eval(c, &d);
        }
        self
    }

    // [bulk_arrays.eval]  Fig. 4.18
    pub(super) fn eval(&mut self, c: T::Array, delta: &Delta<T::Array>) {
        self.evals += 1;
        match &delta.0.1 {
            Node::Zero => {}
            Node::Input(v) => {
                let sum = match self.gradients.remove(v) {
                    Some(sum) => self.added(delta, sum, c),
                    None => c,
                };
                self.gradients.insert(*v, sum);
            }
            Node::Add(a, b) => {
                let c = self.alg.share(c);
                self.eval(c.clone(), a);
                self.eval(c, b);
            }
            Node::Scale(a, times, d) => {
                let c = self.alg.op(Prim::Op(*times, d.ty().scalar), &[c, a.clone()]);
                self.eval(c, d);
            }
            Node::Share(id, d) => {
                let sum = match self.entries.remove(id) {
                    Some((_, sum)) => self.added(delta, sum, c),
                    None => c,
                };
                self.entries.insert(*id, (d.clone(), sum));
            }
            Node::Index(d, ix) => {
                let c = self.alg.one_hot(d.shape(), ix, &c);
                self.eval(c, d);
            }
            Node::SumOuter(d) => {
                let c = self.alg.replicate(&d.shape()[0], &c);
                self.eval(c, d);
            }
            Node::Gather(d, f) => {
                let c = self.alg.scatter(d.shape(), &c, f);
                self.eval(c, d);
            }
            Node::Scatter(d, f) => {
                let c = self.alg.gather(d.shape(), &c, f);
                self.eval(c, d);
            }
            Node::Stack(ds) => {
                let c = self.alg.share(c);
                for (j, d) in ds.iter().enumerate() {
                    let j = self.alg.constant(&Tensor::scalar(Scalar::I64.from_i64(j as i64)));
                    let c = self.alg.index(&c, &[j]);
                    self.eval(c, d);
                }
            }
            Node::Replicate(d) => {
                let c = self.alg.sum_outer(&c);
                self.eval(c, d);
            }
            Node::Transpose(j, d) => {
                let c = self.alg.transpose(&inverse(j), &c);
                self.eval(c, d);
            }
            Node::Reshape(d) => {
                let c = self.alg.reshape(d.shape(), &c);
                self.eval(c, d);
            }
            Node::Convert(d) => {
                let c = self.alg.op(Prim::Convert(delta.ty().scalar, d.ty().scalar), &[c]);
                self.eval(c, d);
            }
        }
    }

    fn added(&mut self, d: &Delta<T::Array>, a: T::Array, b: T::Array) -> T::Array {
        self.alg.op(Prim::Op(Op::Add, d.ty().scalar), &[a, b])
    }
}

/// A term as the linear function that it says: the same operations on tangents (4.5.1).
struct Forward<'a, T: Algebra> {
    alg: &'a mut T,
    tangents: &'a [T::Array],
    /// Of shared nodes.
    known: BTreeMap<u32, T::Array>,
}

impl<T: Algebra> Forward<'_, T> {
    // [bulk_arrays.tangent]  Index d ix is index, Gather d f is gather, and so on
    fn eval(&mut self, delta: &Delta<T::Array>) -> T::Array {
        let scalar = delta.ty().scalar;
        match &delta.0.1 {
            Node::Zero => full(self.alg, scalar.zero(), delta.shape()),
            Node::Input(v) => self.tangents[*v].clone(),
            Node::Add(a, b) => {
                let both = [self.eval(a), self.eval(b)];
                self.alg.op(Prim::Op(Op::Add, scalar), &both)
            }
            Node::Scale(a, times, d) => {
                let both = [self.eval(d), a.clone()];
                self.alg.op(Prim::Op(*times, scalar), &both)
            }
            Node::Share(id, d) => match self.known.get(id) {
                Some(known) => known.clone(),
                None => {
                    let x = self.eval(d);
                    self.known.insert(*id, x.clone());
                    x
                }
            },
            Node::Index(d, ix) => {
                let x = self.eval(d);
                self.alg.index(&x, ix)
            }
            Node::SumOuter(d) => {
                let x = self.eval(d);
                self.alg.sum_outer(&x)
            }
            Node::Gather(d, f) => {
                let x = self.eval(d);
                self.alg.gather(delta.shape(), &x, f)
            }
            Node::Scatter(d, f) => {
                let x = self.eval(d);
                self.alg.scatter(delta.shape(), &x, f)
            }
            Node::Stack(ds) => {
                let xs: Vec<_> = ds.iter().map(|d| self.eval(d)).collect();
                self.alg.stack(&xs)
            }
            Node::Replicate(d) => {
                let x = self.eval(d);
                self.alg.replicate(&delta.shape()[0], &x)
            }
            Node::Transpose(j, d) => {
                let x = self.eval(d);
                self.alg.transpose(j, &x)
            }
            Node::Reshape(d) => {
                let x = self.eval(d);
                self.alg.reshape(delta.shape(), &x)
            }
            Node::Convert(d) => {
                let x = self.eval(d);
                self.alg.op(Prim::Convert(d.ty().scalar, scalar), &[x])
            }
        }
    }
}
