//! Dual arrays: every array of numbers is one with a term that says how all of it varies; a node of that term for each array operation.
//!
//! Source: T. Smeding, thesis, 4.5: Figs. 4.13 to 4.18. Fig. 4.15 is not in the text at hand: its rules are those that Figs. 4.3, 4.16 and 4.19 leave no choice for.
//!
//! Judgement: `G |- t : Array sh float` becomes `D[G] |- D[t] : (Array sh float, Delta sh)`, evaluated as it is made, in any algebra ([`Algebra`]): with arrays as values the term is a tape.
//! `G |- t` of another type becomes `D'[t]`: the term itself, of the primal halves of its variables (Fig. 4.14). Dual arrays are an algebra themselves, so that `D` is its interpretation (4.10.4).
//!
//! Types:
//! ```text
//! D[Array sh float] = (Array sh float, Delta sh)       D[Array sh r] = Array sh r for all others
//! Delta sh          = Zero | Input v | Add d1 d2 | Scale a d | Share id d
//!                   | Index d ix | OneHot d ix | SumOuter d | Gather d f | Scatter d f | Stack ds | Replicate d | Transpose j d | Reshape d | Convert d | Scanl f y d ds
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
//! one_hot    D[oneHot sh ix t]  = (oneHot sh D'[ix] x, Share id (OneHot d D'[ix]))
//! sum        D[sumOuter t]      = (sumOuter x, Share id (SumOuter d))
//! gather     D[gather sh t f]   = (gather sh x D'[f], Share id (Gather d D'[f]))
//! scatter    D[scatter sh t f]  = (scatter sh x D'[f], Share id (Scatter d D'[f]))
//! stack      D[[t_1, .., t_n]]  = ([x_1, .., x_n], Share id (Stack [d_1, .., d_n]))
//! replicate  D[replicate k t]   = (replicate k x, Share id (Replicate d))
//! transpose  D[tr_j t]          = (tr_j x, Share id (Transpose j d))
//! reshape    D[reshape sh t]    = (reshape sh x, Share id (Reshape d))
//! scanl      D[scanl k f z ts]  = (y = scanl k f x xs, Share id (Scanl f y d ds))
//!
//! eval c Zero          nothing                             eval c (Index d ix)      eval (oneHot (shape d) ix c) d
//! eval c (Input v)     [v] + c                             eval c (SumOuter d)      eval (replicate (outermost size of d) c) d
//! eval c (Add a b)     eval c a, eval c b                  eval c (Gather d f)      eval (scatter (shape d) c f) d
//! eval c (Scale a d)   eval (c * a) d                      eval c (Scatter d f)     eval (gather (shape d) c f) d
//! eval c (Share i d)   i: (d, c), or c added to it         eval c (Stack ds)        eval (index c [j]) d_j for all j
//! eval c (Convert d)   eval (c, converted back) d          eval c (Replicate d)     eval (sumOuter c) d
//! eval c (OneHot d ix)  eval (index c ix) d                eval c (Transpose j d)   eval (tr_{j backwards} c) d
//!                                                          eval c (Reshape d)       eval (reshape (shape d) c) d
//! ```
//!
//! Differences from the paper:
//! 1. The state of the evaluator is one map of entries where Fig. 4.18 has two with the same keys.
//! 2. `Convert` is ours: floats of two widths. `LitArray` is called `Stack`.
//! 3. A zero cotangent stops at a partial derivative that may be infinite, if [`Zeros::Stop`] is asked for; the text multiplies, and the branch that a `cond` did not choose may make NaN of it.
//!    Variables that are known to be used always are exempt from [`Zeros::StopAll`]; what is in a stack never is, of which an index chooses.
//! 4. A partial derivative that is a choice of the table (of `min`, `pow` ..) is a factor here; other algorithms choose between products. Infinite cotangents times a chosen zero are NaN here.
//! 5. The result may have any shape, and so has its cotangent.
//! 6. `OneHot` is ours: with it the reverse pass is made of operations that have rules, and dual arrays can be over dual arrays.
//!
//! Guarantee: a node of a term for each array operation that a program executes, whatever the sizes are; of gradients after [`super::b_bot`], a constant times the work of the program. Without it, each `index` that
//! is executed makes an array of zeros of the size of what it reads. Tangents of a term cost a constant times the program in both cases: each shared node is evaluated once.
//!
//! Not supported: `build1` of floats: [`super::b_bot`] makes bulk operations of it.
//!
//! The file is one piece, and its three walks are long, because they are read side by side: for each form its rule, its transpose, and what it says of tangents.

use super::a_core::{Extremum, Fold, Names, Program, Term, Ty, Var, permuted};
use super::counts::Nodes;
use super::evaluate::{Algebra, Arrays, Closure, Env, Mismatch, Place, Plain, interpret, sizes_for};
use super::folds::{Linear, States};
use super::partials::{Zeros, slopes};
use super::sizes::Size;
use super::values::Tensor;
use pullback_core::inverse;
use pullback_prim::{Op, Partial, Prim, Scalar, ScalarValue};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

/// How an array varies with the inputs; with its type, so that its shape is at hand. Copies share it.
#[derive(Clone, Debug)]
pub(super) struct Delta<A>(Rc<(Ty, Node<A>)>);

/// Fig. 4.13.
#[derive(Debug)]
pub(super) enum Node<A> {
    Zero,
    Input(usize),
    Add(Delta<A>, Delta<A>),
    /// With the product that a cotangent is multiplied by.
    Scale(A, Op, Delta<A>),
    Share(u32, Delta<A>),
    Index(Delta<A>, Vec<A>),
    OneHot(Delta<A>, Vec<A>),
    SumOuter(Delta<A>),
    Gather(Delta<A>, Closure<A>),
    Scatter(Delta<A>, Closure<A>),
    Stack(Vec<Delta<A>>),
    Replicate(Delta<A>),
    Transpose(Vec<usize>, Delta<A>),
    Reshape(Delta<A>),
    Convert(Delta<A>),
    /// With the states, and the arrays; those of floats also as terms.
    Scanl(Rc<Linear>, States<A>),
}

/// Cotangents of the inputs, and what they took.
#[derive(Clone, Debug)]
pub struct Pullback {
    /// The value of the program.
    pub value: Tensor<ScalarValue>,
    /// The cotangents; `None` for inputs without derivatives.
    pub inputs: Vec<Option<Tensor<ScalarValue>>>,
    /// Nodes of the term.
    pub nodes: Nodes,
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
    let (arrays, result) = forwards(program, arguments, zeros)?;
    pullback(arrays, result, arguments, cotangent)
}

/// The cotangents of the inputs, for that of a dual array.
///
/// # Errors
/// [`Mismatch`] if the cotangent does not fit.
pub(super) fn pullback(
    mut arrays: Values,
    result: Dual<Tensor<ScalarValue>>,
    arguments: &[Tensor<ScalarValue>],
    cotangent: &Tensor<ScalarValue>,
) -> Result<Pullback, Mismatch> {
    let (delta, value) = (result.delta(), result.primal);
    if (cotangent.scalar, &cotangent.shape) != (value.scalar, &value.shape) {
        return Err(Mismatch(format!(
            "the cotangent has shape {:?}, the result {:?}",
            cotangent.shape, value.shape
        )));
    }
    let Backwards { mut gradients, evals, order } =
        backwards(&mut arrays, std::iter::once((cotangent.clone(), &delta)));
    let zeros = |a: &Tensor<ScalarValue>| Tensor::full(a.scalar.zero(), &a.shape);
    let of = |(v, a): (usize, &Tensor<ScalarValue>)| {
        a.scalar.is_float().then(|| gradients.remove(&v).unwrap_or_else(|| zeros(a)))
    };
    let inputs = arguments.iter().enumerate().map(of).collect();
    Ok(Pullback { value, inputs, nodes: count(&[delta]), evals, order, touched: arrays.touched })
}

/// The tangent of the result, and what it took.
#[derive(Clone, Debug)]
pub struct Pushforward {
    /// The value of the program.
    pub value: Tensor<ScalarValue>,
    /// The tangent.
    pub tangent: Tensor<ScalarValue>,
    /// Nodes of the term.
    pub nodes: Nodes,
    /// Calls of `tangent`.
    pub evals: u64,
    /// Elements touched, by values and tangents.
    pub touched: u64,
}

/// Value and tangent of the result, for tangents of all inputs (those of inputs without derivatives are not read). Cost: a constant times that of the program.
///
/// # Errors
/// [`Mismatch`] if the arguments do not fit, or if there is a `build1` of floats.
pub fn jvp(
    program: &Program,
    arguments: &[Tensor<ScalarValue>],
    tangents: &[Tensor<ScalarValue>],
) -> Result<Pushforward, Mismatch> {
    sizes_for(&program.inputs, &[], tangents)?;
    let (mut arrays, result) = forwards(program, arguments, Zeros::Stop)?;
    let delta = result.delta();
    let mut forward = Forward::new(&mut arrays, tangents);
    let tangent = forward.eval(&delta);
    let evals = forward.evals;
    Ok(Pushforward { value: result.primal, tangent, nodes: count(&[delta]), evals, touched: arrays.touched })
}

/// Cotangents by the number of the input, and what they took.
pub(super) struct Backwards<A> {
    pub(super) gradients: BTreeMap<usize, A>,
    pub(super) evals: u64,
    order: Vec<u32>,
}

/// The cotangents of all inputs, for those of several dual arrays.
pub(super) fn backwards<'d, T: Algebra>(
    alg: &mut T,
    results: impl Iterator<Item = (T::Array, &'d Delta<T::Array>)>,
) -> Backwards<T::Array>
where
    T::Array: 'd,
{
    let mut reverse = Reverse::new(alg);
    results.for_each(|(c, delta)| reverse.eval(c, delta));
    let Reverse { gradients, evals, order, .. } = reverse.finish();
    Backwards { gradients, evals, order }
}

type Values = Arrays<Plain>;
type Forwards = (Values, Dual<Tensor<ScalarValue>>);

fn forwards(
    program: &Program,
    arguments: &[Tensor<ScalarValue>],
    zeros: Zeros,
) -> Result<Forwards, Mismatch> {
    let mut arrays = Arrays::new(Plain, sizes_for(&program.inputs, &[&program.body], arguments)?);
    let mut duals = Duals::new(&mut arrays, zeros);
    let inputs = duals.inputs(program.inputs.iter().zip(arguments.iter().cloned()));
    let mut env = program.inputs.iter().map(Var::id).zip(inputs).collect();
    let result = interpret(&mut duals, &mut env, &program.body);
    duals.finish()?;
    Ok((arrays, result))
}

/// `D[Array sh r]`: an array, and how it varies, if its elements are floats.
#[derive(Clone, Debug)]
pub(super) struct Dual<A> {
    pub(super) ty: Ty,
    pub(super) primal: A,
    delta: Option<Delta<A>>,
}

/// The algebra of dual arrays over another algebra. To interpret a term in it is the transformation `D` (4.10.4).
pub(super) struct Duals<'a, T: Algebra> {
    alg: &'a mut T,
    next: u32,
    zeros: Zeros,
    refused: Option<Mismatch>,
    /// What `zeros` is where something chooses.
    chosen: Zeros,
    always: BTreeSet<u32>,
    /// What `zeros` is around the places that are open.
    outside: Vec<Zeros>,
}

impl<A: Clone> Dual<A> {
    /// How it varies: not at all, if its elements are no floats.
    pub(super) fn delta(&self) -> Delta<A> {
        self.delta.clone().unwrap_or_else(|| Delta::new(&self.ty, Node::Zero))
    }
    fn node(&self, node: impl FnOnce(Delta<A>) -> Node<A>) -> Option<Node<A>> {
        self.delta.clone().map(node)
    }
    /// The type of what an index of so many components leaves.
    fn rest(&self, components: usize) -> Ty {
        Ty::new(self.ty.shape[components..].to_vec(), self.ty.scalar)
    }
    fn in_shape(&self, shape: &[Size]) -> Ty {
        Ty::new(shape.to_vec(), self.ty.scalar)
    }
}

fn primals<A: Clone>(duals: &[Dual<A>]) -> Vec<A> {
    duals.iter().map(|d| d.primal.clone()).collect()
}

// [bulk_arrays.index_fn]  D'[f]: of the first halves
fn primal_function<A: Clone>(f: &Closure<Dual<A>>) -> Closure<A> {
    Closure { fun: f.fun.clone(), env: f.env.iter().map(|(x, a)| (*x, a.primal.clone())).collect() }
}

impl<'a, T: Algebra> Duals<'a, T> {
    pub(super) fn new(alg: &'a mut T, zeros: Zeros) -> Duals<'a, T> {
        Duals {
            alg,
            next: 0,
            zeros,
            chosen: zeros,
            always: BTreeSet::new(),
            outside: Vec::new(),
            refused: None,
        }
    }

    // [bulk_arrays.input]  (x, Input v)
    pub(super) fn inputs<'x>(
        &mut self,
        inputs: impl Iterator<Item = (&'x Var, T::Array)>,
    ) -> Vec<Dual<T::Array>> {
        let input = |(v, (x, primal)): (usize, (&Var, T::Array))| {
            let delta = x.ty().is_float().then(|| Delta::new(x.ty(), Node::Input(v)));
            Dual { ty: x.ty().clone(), primal, delta }
        };
        inputs.enumerate().map(input).collect()
    }

    /// After all terms.
    ///
    /// # Errors
    /// [`Mismatch`] if one had no rule.
    pub(super) fn finish(self) -> Result<(), Mismatch> {
        self.refused.map_or(Ok(()), Err)
    }

    /// Variables whose values are always used, not only where something chose them: zeros of their cotangents need not stop everywhere.
    pub(super) fn always_used(&mut self, variables: BTreeSet<u32>) {
        (self.always, self.zeros) = (variables, Zeros::Stop);
    }

    /// The same dual array, whose first half is another array with the same elements.
    pub(super) fn with_primal(
        &mut self,
        a: Dual<T::Array>,
        with: impl FnOnce(&mut T, &T::Array) -> T::Array,
    ) -> Dual<T::Array> {
        Dual { primal: with(self.alg, &a.primal), ..a }
    }

    /// The two halves: what is used more than once has a name, in both.
    fn made(&mut self, ty: Ty, primal: T::Array, node: Option<Node<T::Array>>) -> Dual<T::Array> {
        let primal = self.alg.share(primal);
        let delta = node.map(|node| self.shared(Delta::new(&ty, node)));
        Dual { ty, primal, delta }
    }

    // [bulk_arrays.op]  (op x_1 .. x_n, Share id (Add (Scale op'_1 d_1) .. (Scale op'_n d_n)))
    fn operation(&mut self, op: Prim, args: &[Dual<T::Array>]) -> Dual<T::Array> {
        let xs = primals(args);
        let ty = Ty::new(args[0].ty.shape.clone(), op.result());
        let y = self.alg.op(op, &xs);
        let y = self.alg.share(y);
        let mut sum: Option<Delta<T::Array>> = None;
        for (k, partial, times) in slopes(op, self.zeros) {
            let d = args[k].delta();
            let part = match (op, partial) {
                (Prim::Convert(..), _) => Delta::new(&ty, Node::Convert(d)),
                (_, Partial::Const(1.0)) => d,
                _ => {
                    let slope = self.slope(partial, &ty, (&xs, &y));
                    let slope = self.alg.share(slope);
                    Delta::new(&ty, Node::Scale(slope, times, d))
                }
            };
            sum = Some(match sum {
                Some(sum) => Delta::new(&ty, Node::Add(sum, part)),
                None => part,
            });
        }
        let delta = match sum {
            Some(d) => self.shared(d),
            None => Delta::new(&ty, Node::Zero),
        };
        Dual { ty, primal: y, delta: Some(delta) }
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

    fn shared(&mut self, d: Delta<T::Array>) -> Delta<T::Array> {
        self.next += 1;
        Delta::new(&d.ty().clone(), Node::Share(self.next, d))
    }
}

// Figs. 4.15 and 4.16. Where a rule makes a node of `d`, there is one only for floats.
impl<T: Algebra> Algebra for Duals<'_, T> {
    type Array = Dual<T::Array>;

    fn names(&mut self) -> Option<&mut Names> {
        self.alg.names()
    }
    fn enter(&mut self, place: Place) {
        self.outside.push(self.zeros);
        self.zeros = match place {
            Place::Variable(x) if self.always.contains(&x) => Zeros::Stop,
            Place::Variable(_) | Place::Choice => self.chosen,
        };
    }
    fn leave(&mut self) {
        self.zeros = self.outside.pop().unwrap_or(self.chosen);
    }
    // [bulk_arrays.discrete]  D'[t]: Fig. 4.14 is the interpreter, where variables are their first halves
    fn discrete(&mut self, env: &Env<Self::Array>, t: &Term) -> Option<Self::Array> {
        let halves = t.free().iter().filter_map(|x| env.get(x).map(|a| (*x, a.primal.clone())));
        let primal = interpret(self.alg, &mut halves.collect(), t);
        Some(self.made(t.ty().clone(), primal, None))
    }
    // [bulk_arrays.let]  x <- D[u]; D[v]: both halves have names
    fn share(&mut self, t: Self::Array) -> Self::Array {
        Dual { primal: self.alg.share(t.primal), ..t }
    }
    // [bulk_arrays.constant]  (c, Zero)
    fn constant(&mut self, c: &Tensor<ScalarValue>) -> Self::Array {
        let x = self.alg.constant(c);
        let primal = self.alg.share(x);
        let ty = c.ty();
        let delta = ty.is_float().then(|| Delta::new(&ty, Node::Zero));
        Dual { ty, primal, delta }
    }
    fn size(&mut self, n: &Size) -> Self::Array {
        let x = self.alg.size(n);
        self.made(Ty::index(), x, None)
    }
    fn iota(&mut self, k: &Size) -> Self::Array {
        let x = self.alg.iota(k);
        self.made(Ty::new(vec![k.clone()], Scalar::I64), x, None)
    }
    // [bulk_arrays.cond]  D[index [u, v] [cond b 0 1]]
    fn cond(&mut self, b: &Self::Array, u: &Self::Array, v: &Self::Array) -> Self::Array {
        if !u.ty.is_float() {
            let x = self.alg.cond(&b.primal, &u.primal, &v.primal);
            return self.made(u.ty.clone(), x, None);
        }
        let [zero, one] = [0, 1].map(|i| self.alg.constant(&Tensor::scalar(ScalarValue::I64(i))));
        let which = self.alg.cond(&b.primal, &zero, &one);
        let which = self.made(Ty::index(), which, None);
        let both = self.stack(&[u.clone(), v.clone()]);
        self.index(&both, &[which])
    }
    fn op(&mut self, op: Prim, args: &[Self::Array]) -> Self::Array {
        if op.result().is_float() {
            return self.operation(op, args);
        }
        let x = self.alg.op(op, &primals(args));
        self.made(Ty::new(args[0].ty.shape.clone(), op.result()), x, None)
    }
    // [bulk_arrays.index]  (index x D'[ix], Share id (Index d D'[ix]))
    fn index(&mut self, t: &Self::Array, ix: &[Self::Array]) -> Self::Array {
        let ix = primals(ix);
        let (ty, x) = (t.rest(ix.len()), self.alg.index(&t.primal, &ix));
        self.made(ty, x, t.node(|d| Node::Index(d, ix)))
    }
    // [bulk_arrays.one_hot]  (oneHot sh D'[ix] x, Share id (OneHot d D'[ix]))
    fn one_hot(&mut self, sh: &[Size], ix: &[Self::Array], t: &Self::Array) -> Self::Array {
        let ix = primals(ix);
        let x = self.alg.one_hot(sh, &ix, &t.primal);
        self.made(t.in_shape(sh), x, t.node(|d| Node::OneHot(d, ix)))
    }
    // [bulk_arrays.sum]  (sumOuter x, Share id (SumOuter d))
    fn sum_outer(&mut self, t: &Self::Array) -> Self::Array {
        let x = self.alg.sum_outer(&t.primal);
        self.made(t.rest(1), x, t.node(Node::SumOuter))
    }
    fn arg_outer(&mut self, which: Extremum, t: &Self::Array) -> Self::Array {
        let x = self.alg.arg_outer(which, &t.primal);
        self.made(Ty::new(t.ty.shape[1..].to_vec(), Scalar::I64), x, None)
    }
    // [bulk_arrays.gather]  (gather sh x D'[f], Share id (Gather d D'[f]))
    fn gather(&mut self, sh: &[Size], t: &Self::Array, f: &Closure<Self::Array>) -> Self::Array {
        let f = primal_function(f);
        let x = self.alg.gather(sh, &t.primal, &f);
        self.made(t.in_shape(sh), x, t.node(|d| Node::Gather(d, f)))
    }
    // [bulk_arrays.scatter]  (scatter sh x D'[f], Share id (Scatter d D'[f]))
    fn scatter(&mut self, sh: &[Size], t: &Self::Array, f: &Closure<Self::Array>) -> Self::Array {
        let f = primal_function(f);
        let x = self.alg.scatter(sh, &t.primal, &f);
        self.made(t.in_shape(sh), x, t.node(|d| Node::Scatter(d, f)))
    }
    fn arg_scatter(
        &mut self,
        which: Extremum,
        sh: &[Size],
        t: &Self::Array,
        f: &Closure<Self::Array>,
    ) -> Self::Array {
        let x = self.alg.arg_scatter(which, sh, &t.primal, &primal_function(f));
        self.made(Ty::new(sh.to_vec(), Scalar::I64), x, None)
    }
    // [bulk_arrays.stack]  ([x_1, .., x_n], Share id (Stack [d_1, .., d_n]))
    fn stack(&mut self, ts: &[Self::Array]) -> Self::Array {
        let x = self.alg.stack(&primals(ts));
        let n = Size::constant(i64::try_from(ts.len()).unwrap_or(i64::MAX));
        let ty = ts[0].in_shape(&[&[n], ts[0].ty.shape.as_slice()].concat());
        let node = ty.is_float().then(|| Node::Stack(ts.iter().map(Dual::delta).collect()));
        self.made(ty, x, node)
    }
    // [bulk_arrays.replicate]  (replicate k x, Share id (Replicate d))
    fn replicate(&mut self, k: &Size, t: &Self::Array) -> Self::Array {
        let x = self.alg.replicate(k, &t.primal);
        let ty = t.in_shape(&[std::slice::from_ref(k), t.ty.shape.as_slice()].concat());
        self.made(ty, x, t.node(Node::Replicate))
    }
    // [bulk_arrays.transpose]  (tr_j x, Share id (Transpose j d))
    fn transpose(&mut self, j: &[usize], t: &Self::Array) -> Self::Array {
        let x = self.alg.transpose(j, &t.primal);
        let shape = permuted(j, &t.ty.shape).unwrap_or_else(|| unreachable!("checked"));
        self.made(t.in_shape(&shape), x, t.node(|d| Node::Transpose(j.to_vec(), d)))
    }
    // [bulk_arrays.reshape]  (reshape sh x, Share id (Reshape d))
    fn reshape(&mut self, sh: &[Size], t: &Self::Array) -> Self::Array {
        let x = self.alg.reshape(sh, &t.primal);
        self.made(t.in_shape(sh), x, t.node(Node::Reshape))
    }
    // [bulk_arrays.scanl]  (y = scanl k f x xs, Share id (Scanl f y d ds))
    fn scanl(&mut self, f: &Arc<Fold>, z: &Self::Array, ts: &[Self::Array]) -> Self::Array {
        let xs = primals(ts);
        let y = self.alg.scanl(f, &z.primal, &xs);
        let y = self.alg.share(y);
        let ty = z.in_shape(&[&[f.size.plus(&Size::constant(1))], z.ty.shape.as_slice()].concat());
        let mut own = Names::after(&f.body, &f.params);
        let names = self.alg.names().unwrap_or(&mut own);
        let linear = z.ty.is_float().then(|| Linear::new(f, names, self.chosen));
        let node = match linear {
            Some(Ok(linear)) => {
                let deltas = ts.iter().map(|t| t.delta.clone()).collect();
                let states = States { states: y.clone(), arrays: xs, start: z.delta(), deltas };
                Some(Node::Scanl(Rc::new(linear), states))
            }
            Some(Err(why)) => {
                self.refused.get_or_insert(why);
                Some(Node::Zero)
            }
            None => None,
        };
        self.made(ty, y, node)
    }
    /// Refused, and zeros until [`Duals::finish`] says so.
    fn build1(&mut self, ty: &Ty, _: &mut dyn FnMut(&mut Self, Self::Array) -> Self::Array) -> Self::Array {
        let why = format!("dual arrays are of bulk operations: transform the `build1` of {ty} first");
        self.refused.get_or_insert(Mismatch(why));
        full(self, ty.scalar.zero(), &ty.shape)
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
    pub(super) fn ty(&self) -> &Ty {
        &self.0.0
    }
    pub(super) fn shape(&self) -> &[Size] {
        &self.0.0.shape
    }
    pub(super) fn node(&self) -> &Node<A> {
        &self.0.1
    }
    /// Whether it is the same node in memory.
    pub(super) fn is_same(&self, other: &Delta<A>) -> bool {
        Rc::ptr_eq(&self.0, &other.0)
    }
    /// The terms in it.
    pub(super) fn parts(&self) -> Vec<&Delta<A>> {
        match &self.0.1 {
            Node::Zero | Node::Input(_) => Vec::new(),
            Node::Add(a, b) => vec![a, b],
            Node::Stack(ds) => ds.iter().collect(),
            Node::Scanl(_, s) => std::iter::once(&s.start).chain(s.deltas.iter().flatten()).collect(),
            Node::Scale(_, _, d)
            | Node::Share(_, d)
            | Node::Index(d, _)
            | Node::OneHot(d, _)
            | Node::SumOuter(d)
            | Node::Gather(d, _)
            | Node::Scatter(d, _)
            | Node::Replicate(d)
            | Node::Transpose(_, d)
            | Node::Reshape(d)
            | Node::Convert(d) => vec![d],
        }
    }
}

/// Nodes of these terms, each once, without `Zero`.
pub(super) fn count<A>(deltas: &[Delta<A>]) -> Nodes {
    let (mut seen, mut nodes) = (BTreeSet::new(), Nodes::default());
    let mut left: Vec<_> = deltas.iter().collect();
    while let Some(d) = left.pop() {
        if matches!(d.0.1, Node::Zero) || !seen.insert(Rc::as_ptr(&d.0)) {
            continue;
        }
        nodes.all += 1;
        nodes.shares += u64::from(matches!(d.0.1, Node::Share(..)));
        nodes.inputs += u64::from(matches!(d.0.1, Node::Input(_)));
        left.extend(d.parts());
    }
    nodes
}

/// The reverse pass, over arrays of an algebra: Figs. 4.5 and 4.18.
struct Reverse<'a, T: Algebra> {
    alg: &'a mut T,
    /// By the number of the input.
    gradients: BTreeMap<usize, T::Array>,
    entries: BTreeMap<u32, (Delta<T::Array>, T::Array)>,
    evals: u64,
    order: Vec<u32>,
}

impl<'a, T: Algebra> Reverse<'a, T> {
    fn new(alg: &'a mut T) -> Reverse<'a, T> {
        Reverse { alg, gradients: BTreeMap::new(), entries: BTreeMap::new(), evals: 0, order: Vec::new() }
    }

    // [bulk_arrays.backprop]  after eval c d of all results: the entry with the highest identity, until there is none
    fn finish(mut self) -> Self {
        while let Some((id, (d, c))) = self.entries.pop_last() {
            self.order.push(id);
            self.eval(c, &d);
        }
        self
    }

    // [bulk_arrays.eval]  Fig. 4.18
    fn eval(&mut self, c: T::Array, delta: &Delta<T::Array>) {
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
            Node::OneHot(d, ix) => {
                let c = self.alg.index(&c, ix);
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
            Node::Scanl(linear, s) => {
                let (start, arrays) = linear.backwards(self.alg, s, c);
                self.eval(start, &s.start);
                for (c, d) in arrays.into_iter().zip(&s.deltas) {
                    if let (Some(c), Some(d)) = (c, d) {
                        self.eval(c, d);
                    }
                }
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
pub(super) struct Forward<'a, T: Algebra> {
    alg: &'a mut T,
    tangents: &'a [T::Array],
    /// Of shared nodes.
    known: BTreeMap<u32, T::Array>,
    evals: u64,
}

impl<'a, T: Algebra> Forward<'a, T> {
    pub(super) fn new(alg: &'a mut T, tangents: &'a [T::Array]) -> Forward<'a, T> {
        Forward { alg, tangents, known: BTreeMap::new(), evals: 0 }
    }
    // [bulk_arrays.tangent]  Index d ix is index, Gather d f is gather, and so on
    pub(super) fn eval(&mut self, delta: &Delta<T::Array>) -> T::Array {
        self.evals += 1;
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
            Node::OneHot(d, ix) => {
                let x = self.eval(d);
                self.alg.one_hot(delta.shape(), ix, &x)
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
            Node::Scanl(linear, s) => {
                let start = self.eval(&s.start);
                let along = s.deltas.iter().flatten().map(|d| self.eval(d)).collect();
                linear.forwards(self.alg, s, (start, along))
            }
            Node::Convert(d) => {
                let x = self.eval(d);
                self.alg.op(Prim::Convert(d.ty().scalar, scalar), &[x])
            }
        }
    }
}
