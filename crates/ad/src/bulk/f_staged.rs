//! Staging: a program as a function in Rust over the operations of any algebra. One text, four meanings: values, a term, a tape, a derivative.
//!
//! Source: T. Smeding, thesis, 4.10.2 to 4.10.4: Fig. 4.23 is [`super::evaluate::interpret`].
//!
//! Judgement: a program `p : for all algebras T, T's arrays -> an array of T` has in each algebra a meaning:
//!
//! Types:
//! ```text
//! values       arrays                      a value
//! program      terms                       a program of the fragment
//! tape         dual arrays over arrays     a value, and cotangents for one cotangent of it
//! derivative   dual arrays over terms      a derivative, for all arguments
//! ```
//!
//! Notation: `share a` an array that the program uses more than once · `T x U` dual arrays of `T` over an algebra `U`
//!
//! Rules:
//! ```text
//! host       loops and conditionals of Rust are those of the program's text: it is as long as they make it
//! share      share a = a for arrays;   a variable, bound once, for terms;   both halves for dual arrays
//! term       the bindings of share, in the order of making, around the result
//! index fn   \is. ix over variables, with the arrays that it reads
//! second     p over dual arrays over dual arrays: the gradient is a dual array, whose own gradient in a direction is a Hessian times that direction
//! ```
//!
//! Differences from the paper:
//! 1. `tlet` and `tshare` are one operation, for a binding is made at once ([`super::e_symbolic`]). So no `share` stands inside of a `let`.
//! 2. An index function is a term, as [`IndexFn`] has it, also for arrays: what it reads of the program is bound to variables.
//! 3. Dual arrays do not bulk: `build1` of floats is refused there. [`program`] and [`super::b_bot`] make bulk operations of it first.
//!
//! Guarantee: the four meanings agree. A program is run as a term first, where types are checked; so operations on arrays never meet arguments that do not fit.
//!
//! Not supported: a program that asks for values while it runs: it has to be one text for all algebras.

use super::a_core::{IndexFn, Names, Program, Term, Ty, Var};
use super::d_arrays::{Duals, Pullback, backwards, full, pullback};
use super::e_symbolic::{self, Derivative, Terms};
use super::evaluate::{Algebra, Arrays, Closure, Mismatch, Plain, sizes_for};
use super::partials::Zeros;
use super::sizes::{Size, SizeVar};
use super::values::Tensor;
use pullback_prim::{Op, Prim, Scalar, ScalarValue};

/// A program, as a function of its inputs.
pub trait Staged {
    /// The result, made by the operations of an algebra. `names` makes index functions ([`index_function`]).
    fn run<T: Algebra>(&self, alg: &mut T, names: &mut Names, inputs: &[T::Array]) -> T::Array;
}

/// The inputs of a program, and their sizes.
#[derive(Clone, Debug, Default)]
pub struct Inputs {
    sizes: Vec<String>,
    inputs: Vec<Var>,
    names: Names,
}

impl Inputs {
    /// Those of a program, whose terms may be part of what is staged.
    pub fn of(program: &Program) -> Inputs {
        Inputs { sizes: program.sizes.clone(), inputs: program.inputs.clone(), names: program.names.clone() }
    }
    /// A size with this name.
    pub fn size(&mut self, name: &str) -> Size {
        self.sizes.push(name.to_string());
        Size::var(SizeVar::at(self.sizes.len() - 1))
    }
    /// One more input.
    pub fn input(&mut self, name: &str, scalar: Scalar, shape: &[Size]) {
        let x = self.names.fresh(name, Ty::new(shape.to_vec(), scalar));
        self.inputs.push(x);
    }
    fn with<'x, A: Clone>(&'x self, arguments: &'x [A]) -> impl Iterator<Item = (&'x Var, A)> {
        self.inputs.iter().zip(arguments.iter().cloned())
    }
}

// [bulk_staged.index_fn]  \is. ix, with the arrays that it reads
/// An index function of so many variables, over arrays of the program with their types.
pub fn index_function<A: Clone>(
    names: &mut Names,
    params: usize,
    reads: &[(Ty, A)],
    index: impl FnOnce(&[Term], &[Term]) -> Vec<Term>,
) -> Closure<A> {
    let params: Vec<Var> = (0..params).map(|_| names.index("i")).collect();
    let read: Vec<Var> = reads.iter().map(|(ty, _)| names.fresh("a", ty.clone())).collect();
    let terms = |vars: &[Var]| vars.iter().map(Term::var).collect::<Vec<_>>();
    let index = index(&terms(&params), &terms(&read));
    let env = read.iter().map(Var::id).zip(reads.iter().map(|(_, a)| a.clone())).collect();
    Closure { fun: IndexFn { params, index }, env }
}

// [bulk_staged.term]  the bindings of share around the result
/// The program as a term.
///
/// # Errors
/// [`Mismatch`] if an operation has arguments that do not fit: the program is wrong. Cost: what the program does.
pub fn program(inputs: &Inputs, p: &impl Staged) -> Result<Program, Mismatch> {
    let mut terms = Terms::new(inputs.names.clone());
    // For index functions: their variables are replaced by others, so they may have the numbers of these.
    let mut names = inputs.names.clone();
    let vars: Vec<Term> = inputs.inputs.iter().map(Term::var).collect();
    let result = p.run(&mut terms, &mut names, &vars);
    let (body, names) = terms.finish(&result).map_err(|why| Mismatch(why.0))?;
    let (sizes, inputs) = (inputs.sizes.clone(), inputs.inputs.clone());
    let program = Program { sizes, inputs, body, names };
    program.check().map_err(|why| Mismatch(why.0))?;
    Ok(program)
}

/// The arrays for arguments that fit, and what makes names.
fn arrays(
    inputs: &Inputs,
    p: &impl Staged,
    arguments: &[Tensor<ScalarValue>],
) -> Result<(Arrays<Plain>, Names), Mismatch> {
    let program = program(inputs, p)?;
    let sizes = sizes_for(&program.inputs, &[&program.body], arguments)?;
    Ok((Arrays::new(Plain, sizes), program.names))
}

/// The value of the program, and how many elements its operations touched.
///
/// # Errors
/// [`Mismatch`] as [`program`], or if the arguments do not fit.
pub fn values(
    inputs: &Inputs,
    p: &impl Staged,
    arguments: &[Tensor<ScalarValue>],
) -> Result<(Tensor<ScalarValue>, u64), Mismatch> {
    let (mut arrays, mut names) = arrays(inputs, p, arguments)?;
    let value = p.run(&mut arrays, &mut names, arguments);
    Ok((value, arrays.touched))
}

/// Value and cotangents, by a tape.
///
/// # Errors
/// [`Mismatch`] as [`values`], if the cotangent does not fit, or if there is a `build1` of floats.
pub fn tape(
    inputs: &Inputs,
    p: &impl Staged,
    arguments: &[Tensor<ScalarValue>],
    cotangent: &Tensor<ScalarValue>,
    zeros: Zeros,
) -> Result<Pullback, Mismatch> {
    let (mut arrays, mut names) = arrays(inputs, p, arguments)?;
    let mut duals = Duals::new(&mut arrays, zeros);
    let dual_inputs = duals.inputs(inputs.with(arguments));
    let result = p.run(&mut duals, &mut names, &dual_inputs);
    duals.finish()?;
    pullback(arrays, result, arguments, cotangent)
}

/// The derivative, for all arguments.
///
/// # Errors
/// [`Mismatch`] as [`program`], if there is a `build1` of floats, or if the result has no derivative.
pub fn derivative(inputs: &Inputs, p: &impl Staged, zeros: Zeros) -> Result<Derivative, Mismatch> {
    program(inputs, p)?;
    let mut terms = Terms::new(inputs.names.clone());
    let mut names = inputs.names.clone();
    let vars: Vec<Term> = inputs.inputs.iter().map(Term::var).collect();
    let mut duals = Duals::new(&mut terms, zeros);
    let dual_inputs = duals.inputs(inputs.with(&vars));
    let result = p.run(&mut duals, &mut names, &dual_inputs);
    duals.finish()?;
    e_symbolic::derivative(terms, (&inputs.sizes, &inputs.inputs), result)
}

// [bulk_staged.second]  dual arrays over dual arrays
/// The Hessian of a program with one number as result, times a direction; for an input without derivatives `None`.
///
/// # Errors
/// [`Mismatch`] as [`tape`], or if a direction does not fit its input. Cost: a constant times the program's.
pub fn hessian_vector(
    inputs: &Inputs,
    p: &impl Staged,
    arguments: &[Tensor<ScalarValue>],
    direction: &[Tensor<ScalarValue>],
    zeros: Zeros,
) -> Result<Pullback, Mismatch> {
    sizes_for(&inputs.inputs, &[], direction)?;
    let (mut arrays, mut names) = arrays(inputs, p, arguments)?;
    let mut inner = Duals::new(&mut arrays, zeros);
    let first = inner.inputs(inputs.with(arguments));
    let mut outer = Duals::new(&mut inner, zeros);
    let second = outer.inputs(inputs.with(&first));
    let result = p.run(&mut outer, &mut names, &second);
    outer.finish()?;
    if !result.ty.shape.is_empty() || !result.ty.is_float() {
        return Err(Mismatch(format!(
            "a result of type {} has no Hessian: it must be one number",
            result.ty
        )));
    }
    let one = full(&mut inner, result.ty.scalar.from_f64(1.0), &[]);
    let mut gradients = backwards(&mut inner, std::iter::once((one, &result.delta()))).gradients;
    let mut slope = full(&mut inner, result.ty.scalar.zero(), &[]);
    for (v, x) in inputs.inputs.iter().enumerate() {
        if let Some(gradient) = gradients.remove(&v) {
            let along = inner.constant(&direction[v]);
            let part = inner_product(&mut inner, x.ty(), (gradient, along));
            let part = match (x.ty().scalar, result.ty.scalar) {
                (from, to) if from == to => part,
                (from, to) => inner.op(Prim::Convert(from, to), &[part]),
            };
            slope = inner.op(Prim::Op(Op::Add, result.ty.scalar), &[slope, part]);
        }
    }
    inner.finish()?;
    let cotangent = Tensor::scalar(slope.ty.scalar.from_f64(1.0));
    pullback(arrays, slope, arguments, &cotangent)
}

/// The sum of the products of elements.
fn inner_product<T: Algebra>(alg: &mut T, ty: &Ty, (a, b): (T::Array, T::Array)) -> T::Array {
    let products = alg.op(Prim::Op(Op::Mul, ty.scalar), &[a, b]);
    ty.shape.iter().fold(products, |t, _| alg.sum_outer(&t))
}
