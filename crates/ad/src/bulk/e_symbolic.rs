//! The gradient as a program: the transformation and the reverse pass of [`super::d_arrays`], over terms instead of arrays. No delta term is left, and none is made when it runs.
//!
//! Source: T. Smeding, thesis, 4.6: Figs. 4.20 to 4.22, Theorem of 4.6.6; 4.10.4 for the same rules over another algebra.
//!
//! Judgement: a program `x_1 .. x_n |- t : Array sh float` becomes `x_1 .. x_n, c |- let p_1 = .. in .. let s_1 = .. in .. (value, cotangents)`, with `c : Array sh float`, the cotangent of the result.
//!
//! Types:
//! ```text
//! the arrays of the algebra are terms       a binding is a variable and a term over the inputs and the bindings before it
//! ```
//!
//! Notation: `p_j` primal bindings, of the transformation · `s_j` shared cotangents, of the reverse pass · `share t` as Fig. 4.20 has it
//!
//! Rules:
//! ```text
//! operation  op a_1 .. a_n       = the term
//! share      share t             = t, if it is a variable or a known scalar;   else the variable s of a new binding s = t
//! index fn   gather sh a (f, E)  = gather sh a (\is. ix), where ix has new variables is, and E for the other ones
//! oneHot     oneHot sh ix t      = scatter sh t (\[]. ix)
//! known      x = t               = x = y, if y is an input with the elements of x
//! identity   gather sh t (\is. is) = t,  scatter sh t (\is. is) = t,     if sh is the shape of t
//! primal     D shares each array that it makes (the primal bindings), and each factor of a Scale (E2)
//! cotangent  eval c (Add a b) and eval c (Stack ds) share c: nothing else uses a cotangent twice
//! wrapper    D[t], then eval c d and backprop; bindings in the order in which they were made; those that nothing reads are left out
//! ```
//!
//! Differences from the paper:
//! 1. `share` makes a binding at once, where the text puts a node and takes it out again (Fig. 4.21). The order of making is the order of identities, so it is the same `let` in the end.
//! 2. Identity gathers are left out, as 4.6.1 suggests; identity scatters as well.
//! 3. The result may have any shape; inputs without derivatives have no cotangent; an input that the result does not depend on has zeros.
//!
//! Guarantee: as many bindings as array operations that are executed, for all sizes; the work of the tape without the tape. The program is one of bulk operations, so it can be differentiated again.
//!
//! Not supported: `build1` of floats, as in [`super::d_arrays`].

use super::a_core::{
    Exp, Extremum, Fold, IllTyped, IndexFn, Names, Program, Term, Ty, Var, made, parts, walk,
};
use super::d_arrays::{Dual, Duals, backwards, full};
use super::evaluate::{Algebra, Arrays, Closure, Env, Mismatch, Place, Plain, interpret, sizes_for};
use super::partials::Zeros;
use super::sizes::Size;
use super::terms::{copied, copied_fold, substitute_all};
use super::values::Tensor;
use pullback_prim::{Prim, Scalar, ScalarValue};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

/// Value and cotangents as terms over bindings: the artifact of 4.6.5.
#[derive(Clone, Debug)]
pub struct Derivative {
    /// The names of the sizes.
    pub sizes: Vec<String>,
    /// The inputs of the program, and last the cotangent of its result.
    pub inputs: Vec<Var>,
    /// Each a term over the inputs and the bindings before it.
    pub bindings: Vec<(Var, Term)>,
    /// The value of the program.
    pub value: Term,
    /// The cotangents of the program's inputs; `None` for those without derivatives.
    pub cotangents: Vec<Option<Term>>,
    names: Names,
}

/// Value and cotangents, and how many elements were touched.
#[derive(Clone, Debug)]
pub struct Run {
    /// The value of the program.
    pub value: Tensor<ScalarValue>,
    /// The cotangents; `None` for inputs without derivatives.
    pub cotangents: Vec<Option<Tensor<ScalarValue>>>,
    /// Elements touched.
    pub touched: u64,
}

/// The derivative of a program of bulk operations, once for all sizes and arguments.
///
/// # Errors
/// [`Mismatch`] if there is a `build1` of floats, or if the result has no derivative. Cost: the size of the program.
pub fn vjp(program: &Program, zeros: Zeros) -> Result<Derivative, Mismatch> {
    let (terms, result) = duals_of(program, zeros)?;
    derivative(terms, (&program.sizes, &program.inputs), result)
}

/// `D[t]` over terms: the primal bindings, and the dual array of the result. [`super::separation`] says what they have to be.
///
/// # Errors
/// As [`vjp`].
pub(super) fn duals_of(program: &Program, zeros: Zeros) -> Result<(Terms, Dual<Term>), Mismatch> {
    let ty = program.body.ty();
    if !ty.is_float() {
        return Err(Mismatch(format!("a result of type {ty} has no derivative")));
    }
    let mut terms = Terms::new(program.names.clone());
    let mut duals = Duals::new(&mut terms, zeros);
    let duals_of_inputs = duals.inputs(program.inputs.iter().map(|x| (x, Term::var(x))));
    let mut env = program.inputs.iter().map(Var::id).zip(duals_of_inputs).collect();
    let result = interpret(&mut duals, &mut env, &program.body);
    duals.finish()?;
    Ok((terms, result))
}

/// The derivative that a dual array over terms says, whose inputs are these.
///
/// # Errors
/// [`Mismatch`] if an operation had arguments that do not fit.
pub(super) fn derivative(
    mut terms: Terms,
    (sizes, inputs): (&[String], &[Var]),
    result: Dual<Term>,
) -> Result<Derivative, Mismatch> {
    let (delta, value) = (result.delta(), result.primal);
    let c = terms.names.fresh("c", result.ty);
    // [bulk_symbolic.wrapper]  eval c d, backprop
    let mut gradients = backwards(&mut terms, std::iter::once((Term::var(&c), &delta))).gradients;
    let mut cotangents = Vec::new();
    for (v, x) in inputs.iter().enumerate() {
        let ty = x.ty();
        let zero = |terms: &mut Terms| full(terms, ty.scalar.zero(), &ty.shape);
        let of = gradients.remove(&v);
        cotangents.push(ty.is_float().then(|| of.unwrap_or_else(|| zero(&mut terms))));
    }
    let Terms { names, bindings, refused } = terms;
    if let Some(why) = refused {
        return Err(Mismatch(why.0));
    }
    let inputs = inputs.iter().cloned().chain([c]).collect();
    let bindings = pruned(bindings, &mut std::iter::once(&value).chain(cotangents.iter().flatten()));
    Ok(Derivative { sizes: sizes.to_vec(), inputs, bindings, value, cotangents, names })
}

/// Each a term over the inputs and the bindings before it.
pub(super) type Bindings = Vec<(Var, Term)>;

/// Cotangents as terms over bindings.
pub(super) struct Cotangents {
    pub(super) bindings: Bindings,
    /// Where the bindings of cotangents begin, after those of primal values.
    pub(super) reverse: usize,
    pub(super) results: Vec<Term>,
}

/// The cotangents of some inputs, for bindings, each a term over those before it, and results, each with its cotangent: bindings, and a term for each wanted input.
/// Those bindings that are known as inputs, too, are not computed again.
///
/// # Errors
/// As [`vjp`].
pub(super) fn cotangents(
    names: &Names,
    (inputs, wanted): (&[Var], &[Var]),
    (bindings, known): (&[(Var, Term)], &BTreeMap<u32, Var>),
    results: &[(Term, Var)],
    zeros: Zeros,
) -> Result<Cotangents, Mismatch> {
    let mut terms = Terms::new(names.clone());
    let mut duals = Duals::new(&mut terms, zeros);
    let duals_of_inputs = duals.inputs(inputs.iter().map(|x| (x, Term::var(x))));
    let mut env: Env<_> = inputs.iter().map(Var::id).zip(duals_of_inputs).collect();
    if zeros == Zeros::StopAll {
        duals.always_used(always_used(bindings, &mut results.iter().map(|(t, _)| t)));
    }
    for (x, u) in bindings {
        duals.enter(Place::Variable(x.id()));
        let mut dual = interpret(&mut duals, &mut env, u);
        duals.leave();
        if let Some(y) = known.get(&x.id()) {
            dual = duals.with_primal(dual, |terms, a| terms.as_known(a, y));
        }
        env.insert(x.id(), dual);
    }
    let deltas: Vec<_> = results.iter().map(|(t, _)| interpret(&mut duals, &mut env, t).delta()).collect();
    duals.finish()?;
    let primal: BTreeSet<u32> = terms.bindings.iter().map(|(x, _)| x.id()).collect();
    let seeds = results.iter().map(|(_, c)| Term::var(c));
    let mut gradients = backwards(&mut terms, seeds.zip(&deltas)).gradients;
    let of = |x: &Var| {
        let found = inputs.iter().position(|y| x == y).and_then(|v| gradients.remove(&v));
        found.unwrap_or_else(|| full(&mut terms, x.ty().scalar.zero(), &x.ty().shape))
    };
    let all: Vec<Term> = wanted.iter().map(of).collect();
    let bindings = pruned(terms.bindings, &mut all.iter());
    let reverse = bindings.iter().take_while(|(x, _)| primal.contains(&x.id())).count();
    Ok(Cotangents { bindings, reverse, results: all })
}

/// The variables that are used outside of all stacks, of which an index chooses: by the results, and by variables like that.
fn always_used(bindings: &[(Var, Term)], results: &mut dyn Iterator<Item = &Term>) -> BTreeSet<u32> {
    fn visit(t: &Term, used: &mut BTreeSet<u32>) {
        match t.exp() {
            Exp::Var(x) => drop(used.insert(x.id())),
            Exp::Stack(_) => {}
            Exp::Let(x, u, v) => {
                visit(v, used);
                if used.contains(&x.id()) {
                    visit(u, used);
                }
            }
            exp => parts(exp, &mut |part, _| visit(part, used)),
        }
    }
    let mut used = BTreeSet::new();
    results.for_each(|t| visit(t, &mut used));
    for (x, t) in bindings.iter().rev() {
        if used.contains(&x.id()) {
            visit(t, &mut used);
        }
    }
    used
}

/// Without the bindings that nothing reads.
fn pruned(bindings: Bindings, results: &mut dyn Iterator<Item = &Term>) -> Bindings {
    let mut read: BTreeSet<u32> = results.flat_map(Term::free).copied().collect();
    let mut kept = Vec::new();
    for (x, t) in bindings.into_iter().rev() {
        if read.contains(&x.id()) {
            read.extend(t.free());
            kept.push((x, t));
        }
    }
    kept.reverse();
    kept
}

impl Derivative {
    /// The value and the cotangents, for arguments and a cotangent of the result.
    ///
    /// # Errors
    /// [`Mismatch`] if they do not fit.
    pub fn run(&self, arguments: &[Tensor<ScalarValue>]) -> Result<Run, Mismatch> {
        let terms: Vec<&Term> = self.bindings.iter().map(|(_, t)| t).chain(self.results()).collect();
        let mut arrays = Arrays::new(Plain, sizes_for(&self.inputs, &terms, arguments)?);
        let mut env: Env<_> = self.inputs.iter().map(Var::id).zip(arguments.iter().cloned()).collect();
        for (x, t) in &self.bindings {
            let value = interpret(&mut arrays, &mut env, t);
            env.insert(x.id(), value);
        }
        let value = interpret(&mut arrays, &mut env, &self.value);
        let mut of = |t: &Option<Term>| t.as_ref().map(|t| interpret(&mut arrays, &mut env, t));
        let cotangents = self.cotangents.iter().map(&mut of).collect();
        Ok(Run { value, cotangents, touched: arrays.touched })
    }

    /// The program of one result: a term over the inputs and the bindings, such as [`Derivative::value`], or something of several cotangents.
    pub fn program(&self, result: Term) -> Program {
        let body = bound(self.bindings.clone(), result);
        Program { sizes: self.sizes.clone(), inputs: self.inputs.clone(), body, names: self.names.clone() }
    }

    /// One result as a term over the inputs, with the bindings that it needs.
    pub(super) fn term(&self, result: &Term) -> Term {
        bound(pruned(self.bindings.clone(), &mut std::iter::once(result)), result.clone())
    }

    /// What makes names beside these.
    pub(super) fn names(&self) -> &Names {
        &self.names
    }

    fn results(&self) -> impl Iterator<Item = &Term> {
        std::iter::once(&self.value).chain(self.cotangents.iter().flatten())
    }
}

impl fmt::Display for Derivative {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (x, t) in &self.bindings {
            writeln!(f, "let {}{} = {t}", x.name(), x.id())?;
        }
        writeln!(f, "value {}", self.value)?;
        for (x, t) in self.inputs.iter().zip(&self.cotangents) {
            if let Some(t) = t {
                writeln!(f, "cotangent of {}{} {t}", x.name(), x.id())?;
            }
        }
        Ok(())
    }
}

/// The algebra of terms.
pub(super) struct Terms {
    pub(super) names: Names,
    pub(super) bindings: Bindings,
    refused: Option<IllTyped>,
}

/// A body with its bindings.
fn bound(bindings: Bindings, body: Term) -> Term {
    bindings.into_iter().rev().fold(body, |body, (x, t)| made(Exp::Let(x, t, body)))
}

impl Terms {
    pub(super) fn new(names: Names) -> Terms {
        Terms { names, bindings: Vec::new(), refused: None }
    }
    /// A result with all bindings around it. A term that stands in several places without `share` is copied, with binders of its own.
    ///
    /// # Errors
    /// [`IllTyped`] if an operation had arguments that do not fit.
    pub(super) fn finish(mut self, result: &Term) -> Result<(Term, Names), IllTyped> {
        if let Some(why) = self.refused {
            return Err(why);
        }
        let mut copy = |t: &Term| copied(&mut self.names, t);
        let bindings = self.bindings.iter().map(|(x, t)| (x.clone(), copy(t))).collect();
        Ok((bound(bindings, copy(result)), self.names))
    }
    /// The term; if it has no type, that is kept, and some term stands for it.
    fn made(&mut self, exp: Exp) -> Term {
        Term::new(exp).unwrap_or_else(|why| {
            self.refused.get_or_insert(why);
            Term::i64(0)
        })
    }
    /// Whether an index function is given arrays of the types that its variables have.
    fn fits(&mut self, f: &Closure<Term>) -> bool {
        let mut wrong = None;
        let mut visit = |t: &Term| {
            if let Exp::Var(x) = t.exp()
                && let Some(a) = f.env.get(&x.id()).filter(|a| a.ty() != x.ty())
            {
                wrong =
                    Some(IllTyped(format!("an index function takes {}, and is given {}", x.ty(), a.ty())));
            }
        };
        f.fun.index.iter().for_each(|t| walk(t, &mut visit));
        let fits = wrong.is_none();
        self.refused = self.refused.take().or(wrong);
        fits
    }
    // [bulk_symbolic.known]  x = the input with the same elements
    fn as_known(&mut self, a: &Term, y: &Var) -> Term {
        if let Exp::Var(s) = a.exp()
            && let Some((_, t)) = self.bindings.iter_mut().rev().find(|(x, _)| x == s)
        {
            *t = Term::var(y);
        }
        Term::var(y)
    }
    // [bulk_symbolic.index_fn]  \is. ix with new variables is, and what the others are
    fn function(&mut self, f: &Closure<Term>) -> IndexFn {
        if !self.fits(f) {
            return f.fun.clone();
        }
        let params: Vec<Var> = f.fun.params.iter().map(|i| self.names.again(i)).collect();
        let mut map = f.env.clone();
        map.extend(f.fun.params.iter().map(Var::id).zip(params.iter().map(Term::var)));
        let index = f.fun.index.iter().map(|t| substitute_all(&mut self.names, t, &map)).collect();
        IndexFn { params, index }
    }
}

/// Whether each index is its own.
fn is_identity(f: &IndexFn) -> bool {
    let same = |(i, t): (&Var, &Term)| matches!(t.exp(), Exp::Var(x) if x == i);
    f.params.len() == f.index.len() && f.params.iter().zip(&f.index).all(same)
}

impl Algebra for Terms {
    type Array = Term;

    fn names(&mut self) -> Option<&mut Names> {
        Some(&mut self.names)
    }
    // [bulk_symbolic.share]  the variable of a new binding
    fn share(&mut self, t: Term) -> Term {
        if t.is_atom() {
            return t;
        }
        let x = self.names.fresh("s", t.ty().clone());
        let shared = Term::var(&x);
        self.bindings.push((x, t));
        shared
    }
    fn constant(&mut self, c: &Tensor<ScalarValue>) -> Term {
        self.made(Exp::Const(c.clone()))
    }
    fn size(&mut self, n: &Size) -> Term {
        Term::size(n)
    }
    fn iota(&mut self, k: &Size) -> Term {
        self.made(Exp::Iota(k.clone()))
    }
    fn cond(&mut self, b: &Term, u: &Term, v: &Term) -> Term {
        self.made(Exp::Cond(b.clone(), u.clone(), v.clone()))
    }
    fn op(&mut self, op: Prim, args: &[Term]) -> Term {
        self.made(Exp::Op(op, args.to_vec()))
    }
    fn index(&mut self, t: &Term, ix: &[Term]) -> Term {
        self.made(Exp::Index(t.clone(), ix.to_vec()))
    }
    // [bulk_symbolic.one_hot]  scatter sh t (\[]. ix)
    fn one_hot(&mut self, sh: &[Size], ix: &[Term], t: &Term) -> Term {
        let f = IndexFn { params: Vec::new(), index: ix.to_vec() };
        self.made(Exp::Scatter(sh.to_vec(), t.clone(), f))
    }
    fn sum_outer(&mut self, t: &Term) -> Term {
        self.made(Exp::SumOuter(t.clone()))
    }
    fn arg_outer(&mut self, which: Extremum, t: &Term) -> Term {
        self.made(Exp::ArgOuter(which, t.clone()))
    }
    // [bulk_symbolic.identity]  gather sh t (\is. is) = t
    fn gather(&mut self, sh: &[Size], t: &Term, f: &Closure<Term>) -> Term {
        let f = self.function(f);
        if is_identity(&f) && sh == t.ty().shape {
            return t.clone();
        }
        self.made(Exp::Gather(sh.to_vec(), t.clone(), f))
    }
    // [bulk_symbolic.identity]  scatter sh t (\is. is) = t
    fn scatter(&mut self, sh: &[Size], t: &Term, f: &Closure<Term>) -> Term {
        let f = self.function(f);
        if is_identity(&f) && sh == t.ty().shape {
            return t.clone();
        }
        self.made(Exp::Scatter(sh.to_vec(), t.clone(), f))
    }
    fn arg_scatter(&mut self, which: Extremum, sh: &[Size], t: &Term, f: &Closure<Term>) -> Term {
        let f = self.function(f);
        self.made(Exp::ArgScatter(which, sh.to_vec(), t.clone(), f))
    }
    fn stack(&mut self, ts: &[Term]) -> Term {
        self.made(Exp::Stack(ts.to_vec()))
    }
    fn replicate(&mut self, k: &Size, t: &Term) -> Term {
        self.made(Exp::Replicate(k.clone(), t.clone()))
    }
    fn transpose(&mut self, j: &[usize], t: &Term) -> Term {
        self.made(Exp::Transpose(j.to_vec(), t.clone()))
    }
    fn reshape(&mut self, sh: &[Size], t: &Term) -> Term {
        self.made(Exp::Reshape(sh.to_vec(), t.clone()))
    }
    fn scanl(&mut self, f: &Arc<Fold>, z: &Term, ts: &[Term]) -> Term {
        let f = copied_fold(&mut self.names, f);
        self.made(Exp::Scanl(Arc::new(f), z.clone(), ts.to_vec()))
    }
    /// What the body shares stays in it.
    fn build1(&mut self, ty: &Ty, f: &mut dyn FnMut(&mut Self, Term) -> Term) -> Term {
        let i = self.names.fresh("i", Ty::new(Vec::new(), Scalar::I64));
        let outside = std::mem::take(&mut self.bindings);
        let body = f(self, Term::var(&i));
        let inside = std::mem::replace(&mut self.bindings, outside);
        let body = bound(inside, body);
        self.made(Exp::Build1(ty.shape[0].clone(), i, body))
    }
}
