//! What terms mean: one interpreter over any algebra (Fig. 4.23), and the algebra of arrays, whose elements may be numbers or more than that.
//!
//! Evaluation is total (4.4.2): the subarray of an index outside of an array is zero, what `scatter` sends outside is dropped, and an integer divided by zero is zero. It counts the
//! elements that array operations touch: those of the result; of `sumOuter`, `argMax`, `scatter` and `argMaxAt` also those of the argument. An operation on scalars is an array of one element; `let`, variables and constants are
//! free, and an index function costs what its operations cost, at every index.
//!
//! The file is one piece: the trait, its interpreter and its plainest instance are read side by side. `interpret` has an arm for each form, and is longer than other functions for that.

use super::a_core::{Exp, Extremum, Fold, IndexFn, Names, Program, Term, Ty, Var, permuted, walk};
use super::sizes::{Size, SizeVar};
use super::values::{Tensor, position};
use pullback_prim::{Op, Prim, Scalar, ScalarValue};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// What variables are.
pub type Env<A> = BTreeMap<u32, A>;

/// An index function and what its free variables are.
#[derive(Clone, Debug)]
pub struct Closure<A> {
    /// The function.
    pub fun: IndexFn,
    /// Its free variables.
    pub env: Env<A>,
}

/// Where a term stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// It is the value of a variable, of this number.
    Variable(u32),
    /// It is one of several, of which one is chosen.
    Choice,
}

/// What the operations of the language are, for arrays of some kind.
pub trait Algebra {
    /// An array.
    type Array: Clone;
    /// What makes variables, where terms become part of what the algebra makes.
    fn names(&mut self) -> Option<&mut Names> {
        None
    }
    /// Before the terms at a place.
    fn enter(&mut self, _place: Place) {}
    /// After them.
    fn leave(&mut self) {}
    /// A term without derivatives, where the algebra has a way of its own for these.
    fn discrete(&mut self, _env: &Env<Self::Array>, _t: &Term) -> Option<Self::Array> {
        None
    }
    /// An array that is used more than once.
    fn share(&mut self, t: Self::Array) -> Self::Array {
        t
    }
    /// `c`
    fn constant(&mut self, c: &Tensor<ScalarValue>) -> Self::Array;
    /// `n`
    fn size(&mut self, n: &Size) -> Self::Array;
    /// `iota k`
    fn iota(&mut self, k: &Size) -> Self::Array;
    /// `cond b u v`
    fn cond(&mut self, b: &Self::Array, u: &Self::Array, v: &Self::Array) -> Self::Array;
    /// `op t_1 .. t_n`
    fn op(&mut self, op: Prim, args: &[Self::Array]) -> Self::Array;
    /// `index t ix`
    fn index(&mut self, t: &Self::Array, ix: &[Self::Array]) -> Self::Array;
    /// `oneHot sh ix t`: the array with this subarray at this index, and zeros.
    fn one_hot(&mut self, sh: &[Size], ix: &[Self::Array], t: &Self::Array) -> Self::Array;
    /// `sumOuter t`
    fn sum_outer(&mut self, t: &Self::Array) -> Self::Array;
    /// `argMax t`, `argMin t`
    fn arg_outer(&mut self, which: Extremum, t: &Self::Array) -> Self::Array;
    /// `gather sh t f`
    fn gather(&mut self, sh: &[Size], t: &Self::Array, f: &Closure<Self::Array>) -> Self::Array;
    /// `scatter sh t f`
    fn scatter(&mut self, sh: &[Size], t: &Self::Array, f: &Closure<Self::Array>) -> Self::Array;
    /// `argMaxAt sh t f`, `argMinAt sh t f`
    fn arg_scatter(
        &mut self,
        which: Extremum,
        sh: &[Size],
        t: &Self::Array,
        f: &Closure<Self::Array>,
    ) -> Self::Array;
    /// `[t_1, .., t_n]`
    fn stack(&mut self, ts: &[Self::Array]) -> Self::Array;
    /// `replicate k t`
    fn replicate(&mut self, k: &Size, t: &Self::Array) -> Self::Array;
    /// `tr_j t`
    fn transpose(&mut self, j: &[usize], t: &Self::Array) -> Self::Array;
    /// `reshape sh t`
    fn reshape(&mut self, sh: &[Size], t: &Self::Array) -> Self::Array;
    /// `scanl k f z ts`
    fn scanl(&mut self, f: &Arc<Fold>, z: &Self::Array, ts: &[Self::Array]) -> Self::Array;
    /// `build1 k f`, of this type.
    fn build1(&mut self, ty: &Ty, f: &mut dyn FnMut(&mut Self, Self::Array) -> Self::Array) -> Self::Array;
}

/// The meaning of a term in an algebra. `let` adds to the environment, which keeps it: no variable is bound twice.
pub fn interpret<T: Algebra>(alg: &mut T, env: &mut Env<T::Array>, t: &Term) -> T::Array {
    if !t.ty().is_float()
        && let Some(a) = alg.discrete(env, t)
    {
        return a;
    }
    let mut all =
        |alg: &mut T, ts: &[Term]| -> Vec<T::Array> { ts.iter().map(|t| interpret(alg, env, t)).collect() };
    match t.exp() {
        Exp::Const(c) => alg.constant(c),
        Exp::Size(n) => alg.size(n),
        Exp::Iota(k) => alg.iota(k),
        Exp::Var(x) => value_of(env, x),
        Exp::Let(x, u, v) => {
            alg.enter(Place::Variable(x.id()));
            let u = interpret(alg, env, u);
            alg.leave();
            env.insert(x.id(), alg.share(u));
            interpret(alg, env, v)
        }
        Exp::Cond(b, u, v) => {
            let b = interpret(alg, env, b);
            alg.enter(Place::Choice);
            let (u, v) = (interpret(alg, env, u), interpret(alg, env, v));
            alg.leave();
            alg.cond(&b, &u, &v)
        }
        Exp::Op(op, ts) => {
            let ts = all(alg, ts);
            alg.op(*op, &ts)
        }
        Exp::Index(t, ix) => {
            let ix = all(alg, ix);
            let t = interpret(alg, env, t);
            alg.index(&t, &ix)
        }
        Exp::SumOuter(t) => {
            let t = interpret(alg, env, t);
            alg.sum_outer(&t)
        }
        Exp::ArgOuter(which, t) => {
            let t = interpret(alg, env, t);
            alg.arg_outer(*which, &t)
        }
        Exp::Gather(sh, t, f) => {
            let t = interpret(alg, env, t);
            alg.gather(sh, &t, &Closure::new(f, env))
        }
        Exp::Scatter(sh, t, f) => {
            let t = interpret(alg, env, t);
            alg.scatter(sh, &t, &Closure::new(f, env))
        }
        Exp::ArgScatter(which, sh, t, f) => {
            let t = interpret(alg, env, t);
            alg.arg_scatter(*which, sh, &t, &Closure::new(f, env))
        }
        Exp::Stack(ts) => {
            alg.enter(Place::Choice);
            let ts = all(alg, ts);
            alg.leave();
            alg.stack(&ts)
        }
        Exp::Replicate(k, t) => {
            let t = interpret(alg, env, t);
            alg.replicate(k, &t)
        }
        Exp::Transpose(j, t) => {
            let t = interpret(alg, env, t);
            alg.transpose(j, &t)
        }
        Exp::Reshape(sh, t) => {
            let t = interpret(alg, env, t);
            alg.reshape(sh, &t)
        }
        Exp::Scanl(f, z, ts) => {
            let (z, ts) =
                (interpret(alg, env, z), ts.iter().map(|t| interpret(alg, env, t)).collect::<Vec<_>>());
            alg.scanl(f, &z, &ts)
        }
        Exp::Build1(_, i, body) => alg.build1(t.ty(), &mut |alg, at| {
            env.insert(i.id(), at);
            interpret(alg, env, body)
        }),
    }
}

fn value_of<A: Clone>(env: &Env<A>, x: &Var) -> A {
    match env.get(&x.id()) {
        Some(a) => a.clone(),
        None => unreachable!("a checked program binds {x:?}"),
    }
}

impl<A: Clone> Closure<A> {
    /// The function, with what it needs of an environment.
    pub fn new(fun: &IndexFn, env: &Env<A>) -> Closure<A> {
        let free = fun.index.iter().flat_map(Term::free);
        let known = free.filter_map(|x| env.get(x).map(|a| (*x, a.clone())));
        Closure { env: known.collect(), fun: fun.clone() }
    }
    /// The index that it gives.
    pub fn call<T: Algebra<Array = A>>(&mut self, alg: &mut T, is: Vec<A>) -> Vec<A> {
        self.env.extend(self.fun.params.iter().map(Var::id).zip(is));
        self.fun.index.iter().map(|t| interpret(alg, &mut self.env, t)).collect()
    }
}

/// What stands at the places of an array.
pub trait Elements {
    /// One of them.
    type Element: Clone;
    /// A scalar that is known.
    fn constant(&mut self, x: ScalarValue) -> Self::Element;
    /// Its value.
    fn primal(x: &Self::Element) -> ScalarValue;
    /// A primitive, which is total here.
    fn op(&mut self, op: Prim, args: &[Self::Element]) -> Self::Element;
    /// The sum of elements of this type.
    fn sum(&mut self, scalar: Scalar, xs: &[Self::Element]) -> Self::Element;
}

/// Scalars as they are.
#[derive(Clone, Copy, Debug, Default)]
pub struct Plain;

/// The algebra of arrays.
#[derive(Clone, Debug)]
pub struct Arrays<S> {
    /// The sizes of this run.
    pub sizes: BTreeMap<SizeVar, i64>,
    /// What stands at the places.
    pub scalars: S,
    /// The elements touched so far.
    pub touched: u64,
}

/// Arguments that do not fit the inputs of a program: the fault is with who calls it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mismatch(pub String);

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The value of a program, and how many elements its operations touched.
///
/// # Errors
/// [`Mismatch`] if the arguments do not fit.
pub fn evaluate(
    program: &Program,
    arguments: &[Tensor<ScalarValue>],
) -> Result<(Tensor<ScalarValue>, u64), Mismatch> {
    let mut arrays = Arrays::new(Plain, sizes_for(&program.inputs, &[&program.body], arguments)?);
    let mut env = program.inputs.iter().map(Var::id).zip(arguments.iter().cloned()).collect();
    let value = interpret(&mut arrays, &mut env, &program.body);
    Ok((value, arrays.touched))
}

/// The sizes that these arguments of a program have; all arrays of its terms exist then.
///
/// # Errors
/// [`Mismatch`] if there are too few or too many, if types or sizes differ, or if an array of the terms would have a negative size or too many elements to count.
pub fn sizes_for(
    inputs: &[Var],
    terms: &[&Term],
    arguments: &[Tensor<ScalarValue>],
) -> Result<BTreeMap<SizeVar, i64>, Mismatch> {
    let (wanted, found) = (inputs.len(), arguments.len());
    if wanted != found {
        return Err(Mismatch(format!("the program takes {wanted} arguments, and is given {found}")));
    }
    let mut sizes = BTreeMap::new();
    let dimensions = |x: &Var, a: &Tensor<ScalarValue>| -> Vec<(Size, i64)> {
        let known = a.shape.iter().map(|n| i64::try_from(*n).unwrap_or(i64::MAX));
        x.ty().shape.iter().cloned().zip(known).collect()
    };
    for (x, a) in inputs.iter().zip(arguments) {
        for (size, n) in dimensions(x, a) {
            if let Some(v) = size.as_var() {
                sizes.entry(v).or_insert(n);
            }
        }
    }
    for (x, a) in inputs.iter().zip(arguments) {
        let fits = dimensions(x, a).iter().all(|(size, n)| size.value(&sizes) == Some(*n));
        if !fits || x.ty().shape.len() != a.shape.len() || x.ty().scalar != a.scalar {
            return Err(Mismatch(format!(
                "input `{}` is {}, and the argument has shape {:?} of {}",
                x.name(),
                x.ty(),
                a.shape,
                a.scalar
            )));
        }
    }
    exist(terms, &sizes)?;
    Ok(sizes)
}

/// Whether all arrays of these terms exist where sizes are these.
///
/// # Errors
/// [`Mismatch`] if one would have a negative size or too many elements to count.
pub(super) fn exist(terms: &[&Term], sizes: &BTreeMap<SizeVar, i64>) -> Result<(), Mismatch> {
    let mut bad = None;
    let mut exists = |t: &Term| {
        let known = |n: &Size| n.value(sizes).and_then(|n| usize::try_from(n).ok());
        let count = t.ty().shape.iter().try_fold(1usize, |all, n| all.checked_mul(known(n)?));
        if count.is_none_or(|n| isize::try_from(n).is_err()) {
            bad.get_or_insert_with(|| t.ty().to_string());
        }
        if let Exp::Size(n) = t.exp()
            && n.value(sizes).is_none()
        {
            bad.get_or_insert_with(|| n.to_string());
        }
    };
    terms.iter().for_each(|t| walk(t, &mut exists));
    match bad {
        Some(ty) => Err(Mismatch(format!("there is no {ty} for arguments of these sizes"))),
        None => Ok(()),
    }
}

/// The least counter of the smallest or largest numbers; -1 if none is better than the worst of all.
fn first_extremum(which: Extremum, xs: impl Iterator<Item = (i64, ScalarValue)>) -> i64 {
    let (mut place, mut best) = (-1, None);
    for (i, x) in xs {
        let best_yet = best.unwrap_or_else(|| which.worst(x.scalar()));
        let (lower, higher) = if which == Extremum::Min { (x, best_yet) } else { (best_yet, x) };
        let holds = |op| total(Prim::Op(op, x.scalar()), &[lower, higher]).is_true();
        if holds(Op::Lt) || i < place && holds(Op::Eq) {
            (place, best) = (i, Some(x));
        }
    }
    place
}

/// A primitive, zero where it has no value.
pub(super) fn total(op: Prim, args: &[ScalarValue]) -> ScalarValue {
    op.eval(args).unwrap_or_else(|_| op.result().zero())
}

impl Elements for Plain {
    type Element = ScalarValue;
    fn constant(&mut self, x: ScalarValue) -> ScalarValue {
        x
    }
    fn primal(x: &ScalarValue) -> ScalarValue {
        *x
    }
    fn op(&mut self, op: Prim, args: &[ScalarValue]) -> ScalarValue {
        total(op, args)
    }
    fn sum(&mut self, scalar: Scalar, xs: &[ScalarValue]) -> ScalarValue {
        let add = Prim::Op(Op::Add, scalar);
        xs.iter().copied().reduce(|a, b| total(add, &[a, b])).unwrap_or_else(|| scalar.zero())
    }
}

impl<S: Elements> Arrays<S> {
    /// No element is touched yet.
    pub fn new(scalars: S, sizes: BTreeMap<SizeVar, i64>) -> Arrays<S> {
        Arrays { sizes, scalars, touched: 0 }
    }
    fn extent(&self, n: &Size) -> usize {
        match n.value(&self.sizes).and_then(|n| usize::try_from(n).ok()) {
            Some(n) => n,
            None => unreachable!("sizes were checked before the run: {n}"),
        }
    }
    fn shape(&self, sh: &[Size]) -> Vec<usize> {
        sh.iter().map(|n| self.extent(n)).collect()
    }
    fn made(&mut self, scalar: Scalar, shape: Vec<usize>, elements: Vec<S::Element>) -> Tensor<S::Element> {
        self.touched += elements.len() as u64;
        Tensor::new(scalar, shape, elements)
    }
    fn integer(&mut self, x: i64) -> Tensor<S::Element> {
        let x = self.scalars.constant(ScalarValue::I64(x));
        Tensor::new(Scalar::I64, Vec::new(), vec![x])
    }
    /// Adds the subarray at this index, or zeros.
    fn copy(&mut self, from: &Tensor<S::Element>, ix: &[Tensor<S::Element>], to: &mut Vec<S::Element>) {
        let n = from.inner(ix.len());
        match from.position(&components::<S>(ix)) {
            Some(at) => to.extend_from_slice(&from.elements[at..at + n]),
            None => {
                let zero = self.scalars.constant(from.scalar.zero());
                to.extend(std::iter::repeat_n(zero, n));
            }
        }
    }
    /// The index that a function gives, at each index of a shape.
    fn at_each(
        &mut self,
        shape: &[usize],
        f: &Closure<Tensor<S::Element>>,
        mut visit: impl FnMut(&mut Self, &[Tensor<S::Element>]),
    ) {
        let mut f = f.clone();
        for k in 0..shape.iter().product::<usize>() {
            let is: Vec<i64> = coordinates(shape, k);
            let is = is.into_iter().map(|i| self.integer(i)).collect();
            let ix = f.call(self, is);
            visit(self, &ix);
        }
    }
}

/// The index of the k-th element.
fn coordinates(shape: &[usize], mut k: usize) -> Vec<i64> {
    let mut is = vec![0; shape.len()];
    for (i, n) in is.iter_mut().zip(shape).rev() {
        *i = (k % n) as i64;
        k /= n;
    }
    is
}

fn components<S: Elements>(ix: &[Tensor<S::Element>]) -> Vec<i64> {
    ix.iter().map(|i| S::primal(&i.elements[0]).as_i64()).collect()
}

impl<S: Elements> Algebra for Arrays<S> {
    type Array = Tensor<S::Element>;

    fn constant(&mut self, c: &Tensor<ScalarValue>) -> Self::Array {
        let elements = c.elements.iter().map(|x| self.scalars.constant(*x)).collect();
        Tensor::new(c.scalar, c.shape.clone(), elements)
    }
    fn size(&mut self, n: &Size) -> Self::Array {
        match n.value(&self.sizes) {
            Some(n) => self.integer(n),
            None => unreachable!("sizes were checked before the run: {n}"),
        }
    }
    fn iota(&mut self, k: &Size) -> Self::Array {
        let n = self.extent(k);
        let elements = (0..n).map(|i| self.scalars.constant(ScalarValue::I64(i as i64))).collect();
        Tensor::new(Scalar::I64, vec![n], elements)
    }
    fn cond(&mut self, b: &Self::Array, u: &Self::Array, v: &Self::Array) -> Self::Array {
        let chosen = if S::primal(&b.elements[0]).is_true() { u } else { v };
        self.touched += chosen.elements.len() as u64;
        chosen.clone()
    }
    fn op(&mut self, op: Prim, args: &[Self::Array]) -> Self::Array {
        let shape = args[0].shape.clone();
        let mut elements = Vec::with_capacity(args[0].elements.len());
        for k in 0..args[0].elements.len() {
            let at: Vec<S::Element> = args.iter().map(|a| a.elements[k].clone()).collect();
            elements.push(self.scalars.op(op, &at));
        }
        self.made(op.result(), shape, elements)
    }
    fn index(&mut self, t: &Self::Array, ix: &[Self::Array]) -> Self::Array {
        let mut elements = Vec::new();
        self.copy(t, ix, &mut elements);
        self.made(t.scalar, t.shape[ix.len()..].to_vec(), elements)
    }
    fn one_hot(&mut self, sh: &[Size], ix: &[Self::Array], t: &Self::Array) -> Self::Array {
        let shape = self.shape(sh);
        let zero = self.scalars.constant(t.scalar.zero());
        let mut elements = vec![zero; shape.iter().product()];
        if let Some(at) = position(&shape, &components::<S>(ix)) {
            elements[at..at + t.elements.len()].clone_from_slice(&t.elements);
        }
        self.made(t.scalar, shape, elements)
    }
    fn sum_outer(&mut self, t: &Self::Array) -> Self::Array {
        self.touched += t.elements.len() as u64;
        let n = t.inner(1);
        let mut elements = Vec::with_capacity(n);
        for k in 0..n {
            let column: Vec<S::Element> = t.elements.iter().skip(k).step_by(n).cloned().collect();
            elements.push(self.scalars.sum(t.scalar, &column));
        }
        self.made(t.scalar, t.shape[1..].to_vec(), elements)
    }
    fn arg_outer(&mut self, which: Extremum, t: &Self::Array) -> Self::Array {
        self.touched += t.elements.len() as u64;
        let n = t.inner(1);
        let mut elements = Vec::with_capacity(n);
        for k in 0..n {
            let column = (0..).zip(t.elements.iter().skip(k).step_by(n).map(S::primal));
            elements.push(self.scalars.constant(ScalarValue::I64(first_extremum(which, column))));
        }
        self.made(Scalar::I64, t.shape[1..].to_vec(), elements)
    }
    fn gather(&mut self, sh: &[Size], t: &Self::Array, f: &Closure<Self::Array>) -> Self::Array {
        let shape = self.shape(sh);
        let mut elements = Vec::new();
        let (outer, _) = shape.split_at(f.fun.params.len());
        self.at_each(outer, f, |this, ix| this.copy(t, ix, &mut elements));
        self.made(t.scalar, shape, elements)
    }
    fn scatter(&mut self, sh: &[Size], t: &Self::Array, f: &Closure<Self::Array>) -> Self::Array {
        self.touched += t.elements.len() as u64;
        let shape = self.shape(sh);
        let mut sent: Vec<Vec<S::Element>> = vec![Vec::new(); shape.iter().product()];
        let (outer, rest) = t.shape.split_at(f.fun.params.len());
        let n = rest.iter().product::<usize>();
        let mut from = 0;
        self.at_each(outer, f, |_, ix| {
            if let Some(at) = position(&shape, &components::<S>(ix)) {
                for k in 0..n {
                    sent[at + k].push(t.elements[from + k].clone());
                }
            }
            from += n;
        });
        let elements = sent.iter().map(|xs| self.scalars.sum(t.scalar, xs)).collect();
        self.made(t.scalar, shape, elements)
    }
    fn arg_scatter(
        &mut self,
        which: Extremum,
        sh: &[Size],
        t: &Self::Array,
        f: &Closure<Self::Array>,
    ) -> Self::Array {
        self.touched += t.elements.len() as u64;
        let shape = self.shape(sh);
        let mut sent: Vec<Vec<(i64, ScalarValue)>> = vec![Vec::new(); shape.iter().product()];
        let innermost = t.shape.last().copied().unwrap_or(1);
        let mut all = t.elements.iter().map(S::primal).enumerate();
        self.at_each(&t.shape, f, |_, ix| {
            if let (Some((k, x)), Some(at)) = (all.next(), position(&shape, &components::<S>(ix))) {
                sent[at].push(((k % innermost) as i64, x));
            }
        });
        let places = sent.into_iter().map(|xs| first_extremum(which, xs.into_iter()));
        let elements = places.map(|place| self.scalars.constant(ScalarValue::I64(place))).collect();
        self.made(Scalar::I64, shape, elements)
    }
    fn stack(&mut self, ts: &[Self::Array]) -> Self::Array {
        let shape = [&[ts.len()], ts[0].shape.as_slice()].concat();
        let elements = ts.iter().flat_map(|t| t.elements.iter().cloned()).collect();
        self.made(ts[0].scalar, shape, elements)
    }
    fn replicate(&mut self, k: &Size, t: &Self::Array) -> Self::Array {
        let k = self.extent(k);
        let elements = std::iter::repeat_n(t.elements.iter().cloned(), k).flatten().collect();
        self.made(t.scalar, [&[k], t.shape.as_slice()].concat(), elements)
    }
    fn transpose(&mut self, j: &[usize], t: &Self::Array) -> Self::Array {
        let shape = permuted(j, &t.shape).unwrap_or_else(|| unreachable!("checked"));
        let (outer, rest) = shape.split_at(j.len());
        let n = rest.iter().product::<usize>();
        let mut elements = Vec::with_capacity(t.elements.len());
        for k in 0..outer.iter().product::<usize>() {
            let is = coordinates(outer, k);
            let mut source = vec![0; j.len()];
            j.iter().zip(is).for_each(|(a, i)| source[*a] = i);
            let at = t.position(&source).unwrap_or_else(|| unreachable!("an index of the array"));
            elements.extend_from_slice(&t.elements[at..at + n]);
        }
        self.made(t.scalar, shape, elements)
    }
    fn reshape(&mut self, sh: &[Size], t: &Self::Array) -> Self::Array {
        self.touched += t.elements.len() as u64;
        Tensor { scalar: t.scalar, shape: self.shape(sh), elements: t.elements.clone() }
    }
    fn scanl(&mut self, f: &Arc<Fold>, z: &Self::Array, ts: &[Self::Array]) -> Self::Array {
        let n = self.extent(&f.size);
        let mut state = z.clone();
        let mut elements = state.elements.to_vec();
        for i in 0..n {
            let i = self.integer(i as i64);
            let at = ts.iter().map(|t| self.index(t, std::slice::from_ref(&i))).collect::<Vec<_>>();
            let mut env = f.params.iter().map(Var::id).zip(std::iter::once(state).chain(at)).collect();
            state = interpret(self, &mut env, &f.body);
            elements.extend(state.elements.iter().cloned());
        }
        self.made(z.scalar, [&[n + 1], z.shape.as_slice()].concat(), elements)
    }
    fn build1(&mut self, ty: &Ty, f: &mut dyn FnMut(&mut Self, Self::Array) -> Self::Array) -> Self::Array {
        let shape = self.shape(&ty.shape);
        let mut elements = Vec::new();
        for i in 0..shape[0] {
            let i = self.integer(i as i64);
            elements.extend(f(self, i).elements.iter().cloned());
        }
        self.made(ty.scalar, shape, elements)
    }
}
