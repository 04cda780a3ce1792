//! The chapter's language: arrays of any rank, elementwise operations, index functions, and one function that takes a function, `build1`.
//!
//! Source: T. Smeding, thesis, 4.2: Figs. 4.7 to 4.9; 4.4.2 for what an operation must not do. What happens outside of an array is from the documentation of `horde-ad`.
//!
//! Judgement: `t : Array sh r`, where free variables carry their types. [`Term::new`] makes a term only if it has a type.
//!
//! Types:
//! ```text
//! r   scalars of the primitive table      float: r is a floating-point type      numeric: it is not bool
//! sh  sizes, outermost first; k, n: a size, a polynomial over the sizes of the inputs
//! ```
//!
//! Notation: `k ::: sh` a shape with outermost size `k` · `ix` an index, terms of type `Array [] i64` · `\is. ix` an index function · `rest` the dimensions that an index leaves
//!
//! Rules:
//! ```text
//! constant   c : Array sh r                                            size   n : Array [] i64        iota   iota k : Array [k] i64
//! variable   x : Array sh r, as it was bound
//! let        u : the type of x,  v : Array sh r                        =>  let x = u in v : Array sh r
//! cond       b : Array [] bool,  u, v : Array sh r                     =>  cond b u v : Array sh r
//! op         t_j : Array sh r_j                                        =>  op t_1 .. t_n : Array sh r     for the primitive op : r_1, .., r_n -> r
//! index      t : Array (k_1 ::: .. k_m ::: rest) r,  ix of length m    =>  index t ix : Array rest r
//! sum        t : Array (k ::: sh) r,  r numeric                        =>  sumOuter t : Array sh r
//! arg        t : Array (k ::: sh) r,  r numeric                        =>  argMax t, argMin t : Array sh i64
//! gather     t : Array (k_1 ::: .. k_m ::: rest) r,  ix of length m    =>  gather (n_1 ::: .. n_l ::: rest) t (\[i_1 .. i_l]. ix) : Array (n_1 ::: .. n_l ::: rest) r
//! scatter    t : Array (n_1 ::: .. n_l ::: rest) r,  r numeric, ix of length m
//!                                                                      =>  scatter (k_1 ::: .. k_m ::: rest) t (\[i_1 .. i_l]. ix) : Array (k_1 ::: .. k_m ::: rest) r
//! arg_at     t : Array [n_1, .., n_l] r,  r numeric, l > 0, ix of length m
//!                                                                      =>  argMaxAt [k_1, .., k_m] t (\[i_1 .. i_l]. ix), argMinAt .. : Array [k_1, .., k_m] i64
//! stack      t_1 .. t_n : Array sh r,  n > 0                           =>  [t_1, .., t_n] : Array (n ::: sh) r
//! replicate  t : Array sh r                                            =>  replicate k t : Array (k ::: sh) r
//! transpose  t : Array (k_0 ::: .. k_(m-1) ::: rest) r,  j a permutation of 0 .. m - 1
//!                                                                      =>  tr_j t : Array (k_(j_0) ::: .. k_(j_(m-1)) ::: rest) r
//! reshape    t : Array sh' r,  product sh = product sh'                =>  reshape sh t : Array sh r
//! scanl      z : Array sh r,  t_j : Array (k ::: sh_j) r_j,  a : Array sh r, x_j : Array sh_j r_j, and no others |- t : Array sh r
//!                                                                      =>  scanl k (\a [x_1 ..]. t) z [t_1 ..] : Array (k + 1 ::: sh) r
//! build      t : Array sh r,  i : Array [] i64                         =>  build1 k (\i. t) : Array (k ::: sh) r
//! ```
//!
//! Differences from the paper:
//! 1. Sizes are polynomials, not numbers. So `n` (a size as an integer) and `iota k` are terms: in the text both are constants.
//! 2. `op` is any primitive of the table with any number of arguments, at any scalar type; `select` is one of them.
//! 3. A permutation is of the outermost dimensions; the grammar of Fig. 4.7 has one of all of them, the rules of Figs. 4.9 to 4.11 this form.
//! 4. `[]` without elements has no type, and is no term. `gather` may have more index variables than `t` has dimensions.
//! 5. `argMax` and `argMin` are ours: where in each column the first of its largest (smallest) numbers is; -1 if no number in it is larger than minus infinity (smaller than infinity; of integers: than the smallest, the largest one).
//! 6. `argMaxAt` and `argMinAt` are ours: of the numbers that `scatter` would add up at a place, the counter `i_l` of the largest (smallest); the least one of several, and -1 as above.
//! 7. `scanl` is the fold of 4.7 whose function is closed, with all of its states: `z` first.
//!
//! Guarantee: terms have types, and types never change: every rule of the other files makes terms by [`Term::new`]. Evaluation ([`super::evaluate`](mod@super::evaluate)) is total: an element outside of an
//! array is zero, an element sent outside of it is dropped, and an integer divided by zero is zero.
//!
//! Not supported: results whose sizes depend on elements (they have no type here); loops whose number of iterations depends on elements, and recursion; products and nested arrays. Terms
//! are walked by recursion, as deep as they are.
//!
//! The file is one piece, because the grammar and the judgement are read side by side; `type_of` is long: it is the judgement, an arm for each rule.

use super::print::show;
use super::sizes::{Shape, Size, SizeVar};
use super::values::Tensor;
use pullback_prim::{Prim, Scalar, ScalarValue};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

/// `Array sh r`
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ty {
    /// The shape.
    pub shape: Shape,
    /// The type of the elements.
    pub scalar: Scalar,
}

/// A variable: a number, with a name for readers and its type.
#[derive(Clone, Debug)]
pub struct Var(Arc<(u32, String, Ty)>);

/// Makes variables. Each is bound once in a program; so a term can be put anywhere without being caught by a binder.
#[derive(Clone, Debug, Default)]
pub struct Names {
    next: u32,
}

/// `\is. ix`
#[derive(Clone, Debug)]
pub struct IndexFn {
    /// `is`, each of type `Array [] i64`.
    pub params: Vec<Var>,
    /// `ix`
    pub index: Vec<Term>,
}

/// `\a [x_1 ..]. t` of `scanl`, as often as the size says. It is closed: all that it reads are its parameters.
#[derive(Clone, Debug)]
pub struct Fold {
    /// How often it is applied.
    pub size: Size,
    /// The state, and then an element of each array.
    pub params: Vec<Var>,
    /// The next state.
    pub body: Term,
}

/// Which number of a column is chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Extremum {
    /// The smallest.
    Min,
    /// The largest.
    Max,
}

/// The grammar of Fig. 4.7, and what is ours.
#[derive(Clone, Debug)]
pub enum Exp {
    /// `c`: elements that are known.
    Const(Tensor<ScalarValue>),
    /// `n`: a size, as an integer.
    Size(Size),
    /// `[0, .., k-1]`
    Iota(Size),
    /// `x`
    Var(Var),
    /// `let x = u in v`
    Let(Var, Term, Term),
    /// `cond b u v`: both are evaluated.
    Cond(Term, Term, Term),
    /// `op t_1 .. t_n`, elementwise.
    Op(Prim, Vec<Term>),
    /// `index t ix`
    Index(Term, Vec<Term>),
    /// `sumOuter t`
    SumOuter(Term),
    /// `argMax t`, `argMin t`
    ArgOuter(Extremum, Term),
    /// `gather sh t (\is. ix)`
    Gather(Shape, Term, IndexFn),
    /// `scatter sh t (\is. ix)`
    Scatter(Shape, Term, IndexFn),
    /// `argMaxAt sh t (\is. ix)`, `argMinAt sh t (\is. ix)`
    ArgScatter(Extremum, Shape, Term, IndexFn),
    /// `[t_1, .., t_n]`
    Stack(Vec<Term>),
    /// `replicate k t`
    Replicate(Size, Term),
    /// `tr_j t`: dimension `a` of the result is dimension `j_a` of `t`.
    Transpose(Vec<usize>, Term),
    /// `reshape sh t`
    Reshape(Shape, Term),
    /// `scanl k (\a [x_1 ..]. t) z [t_1 ..]`: all states, from the first one on.
    Scanl(Arc<Fold>, Term, Vec<Term>),
    /// `build1 k (\i. t)`
    Build1(Size, Var, Term),
}

/// A term with its type. Copies share it.
#[derive(Clone, Debug)]
pub struct Term(Arc<Node>);

#[derive(Debug)]
struct Node {
    exp: Exp,
    ty: Ty,
    free: BTreeSet<u32>,
    nodes: u64,
    is_normal: bool,
}

/// A program: a term over inputs.
#[derive(Clone, Debug)]
pub struct Program {
    /// The names of the sizes; [`SizeVar`] says which.
    pub sizes: Vec<String>,
    /// The inputs.
    pub inputs: Vec<Var>,
    /// The result.
    pub body: Term,
    /// All variables come from here.
    pub names: Names,
}

/// A term that has no type: the fault is with who wrote it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IllTyped(pub String);

impl fmt::Display for IllTyped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Ty {
    /// `Array sh r`
    pub fn new(shape: Shape, scalar: Scalar) -> Ty {
        Ty { shape, scalar }
    }
    /// `Array [] i64`: a component of an index.
    pub fn index() -> Ty {
        Ty::new(Vec::new(), Scalar::I64)
    }
    /// Whether its elements carry derivatives.
    pub fn is_float(&self) -> bool {
        self.scalar.is_float()
    }
    fn outside(&self, size: Size) -> Ty {
        Ty::new([vec![size], self.shape.clone()].concat(), self.scalar)
    }
}

impl Extremum {
    /// What no number is worse than.
    pub fn worst(self, scalar: Scalar) -> ScalarValue {
        scalar.from_f64(match self {
            Extremum::Min => f64::INFINITY,
            Extremum::Max => f64::NEG_INFINITY,
        })
    }
}

impl Var {
    /// Its number: two variables are the same if these are.
    pub fn id(&self) -> u32 {
        self.0.0
    }
    /// Its name, for readers.
    pub fn name(&self) -> &str {
        &self.0.1
    }
    /// Its type.
    pub fn ty(&self) -> &Ty {
        &self.0.2
    }
}

impl PartialEq for Var {
    fn eq(&self, other: &Var) -> bool {
        self.id() == other.id()
    }
}

impl Names {
    /// For terms that stand beside this one, in a program of their own.
    pub(super) fn after(t: &Term, params: &[Var]) -> Names {
        let mut next = params.iter().map(Var::id).max().unwrap_or(0);
        walk(t, &mut |t| match t.exp() {
            Exp::Var(x) | Exp::Let(x, ..) | Exp::Build1(_, x, _) => next = next.max(x.id()),
            Exp::Gather(_, _, f) | Exp::Scatter(_, _, f) | Exp::ArgScatter(_, _, _, f) => {
                next = f.params.iter().map(Var::id).fold(next, u32::max);
            }
            Exp::Scanl(f, ..) => next = f.params.iter().map(Var::id).fold(next, u32::max),
            _ => {}
        });
        Names { next }
    }
    /// A new variable.
    pub fn fresh(&mut self, name: &str, ty: Ty) -> Var {
        self.next += 1;
        Var(Arc::new((self.next, name.to_string(), ty)))
    }
    /// A new variable like this one.
    pub fn again(&mut self, x: &Var) -> Var {
        self.fresh(x.name(), x.ty().clone())
    }
    /// A new component of an index.
    pub fn index(&mut self, name: &str) -> Var {
        self.fresh(name, Ty::index())
    }
}

impl Term {
    /// The term.
    ///
    /// # Errors
    /// [`IllTyped`] if it has no type. Cost: the term itself, not what is in it, and its free variables.
    pub fn new(exp: Exp) -> Result<Term, IllTyped> {
        let ty = type_of(&exp).map_err(|why| IllTyped(format!("{why}, in `{}`", show(&exp))))?;
        let mut node = Node { free: BTreeSet::new(), nodes: 1, is_normal: true, ty, exp };
        node.is_normal = !matches!(node.exp, Exp::Build1(..)) && !is_reducible_index(&node.exp);
        parts(&node.exp, &mut |part, bound| {
            node.nodes = node.nodes.saturating_add(part.nodes());
            node.is_normal &= part.is_normal();
            node.free.extend(part.0.free.iter().filter(|x| !bound.iter().any(|b| b.id() == **x)));
        });
        if let Exp::Var(x) = &node.exp {
            node.free.insert(x.id());
        }
        Ok(Term(Arc::new(node)))
    }
    /// The form.
    pub fn exp(&self) -> &Exp {
        &self.0.exp
    }
    /// The type.
    pub fn ty(&self) -> &Ty {
        &self.0.ty
    }
    /// Whether the variable is free in it.
    pub fn has_free(&self, x: &Var) -> bool {
        self.0.free.contains(&x.id())
    }
    /// The numbers of its free variables.
    pub fn free(&self) -> &BTreeSet<u32> {
        &self.0.free
    }
    /// The size of the term: its nodes, those that are shared as often as they occur.
    pub fn nodes(&self) -> u64 {
        self.0.nodes
    }
    /// Whether no rule of Figs. 4.10 to 4.12 applies anywhere in it (Theorem 2). There is no `build1`. An `index` by at least one component is of a variable, a constant, a `scatter`, an `argMaxAt`, an `argMinAt` or a `scanl`;
    /// one by one component may be of `[t_1, .., t_n]`.
    pub fn is_normal(&self) -> bool {
        self.0.is_normal
    }
    /// Whether there is a `scanl` in it, or `argMaxAt` or `argMinAt`: what core makes as a whole.
    pub fn has_whole(&self) -> bool {
        let mut has = false;
        walk(self, &mut |t| has |= matches!(t.exp(), Exp::Scanl(..) | Exp::ArgScatter(..)));
        has
    }
    /// Whether it may be copied: a variable or a scalar that is known.
    pub fn is_atom(&self) -> bool {
        match self.exp() {
            Exp::Var(_) | Exp::Size(_) => true,
            Exp::Const(c) => c.shape.is_empty(),
            _ => false,
        }
    }
    /// A variable.
    pub fn var(x: &Var) -> Term {
        made(Exp::Var(x.clone()))
    }
    /// A scalar that is known.
    pub fn scalar(x: ScalarValue) -> Term {
        made(Exp::Const(Tensor::scalar(x)))
    }
    /// An integer that is known.
    pub fn i64(x: i64) -> Term {
        Term::scalar(ScalarValue::I64(x))
    }
    /// A size, as an integer.
    pub fn size(n: &Size) -> Term {
        match n.as_constant() {
            Some(n) => Term::i64(n),
            None => made(Exp::Size(n.clone())),
        }
    }
}

/// A term of a rule, made of terms that have types.
///
/// # Panics
/// If it has no type: the rule is wrong.
pub(crate) fn made(exp: Exp) -> Term {
    Term::new(exp).unwrap_or_else(|why| panic!("rules keep types: {why}"))
}

impl Program {
    /// Sizes, inputs and result, once all terms are well typed.
    ///
    /// # Errors
    /// [`IllTyped`] if the result has other free variables than the inputs, if a variable is bound twice or is used where it is not bound, or if a size has no name.
    pub fn check(&self) -> Result<(), IllTyped> {
        let mut bound: BTreeMap<u32, Ty> = BTreeMap::new();
        let (mut binders, mut uses, mut sizes) = (self.inputs.clone(), Vec::new(), BTreeSet::new());
        self.inputs.iter().for_each(|x| sizes.extend(x.ty().shape.iter().flat_map(Size::vars)));
        walk(&self.body, &mut |t| {
            sizes.extend(t.ty().shape.iter().flat_map(Size::vars));
            match t.exp() {
                Exp::Let(x, ..) | Exp::Build1(_, x, _) => binders.push(x.clone()),
                Exp::Gather(_, _, f) | Exp::Scatter(_, _, f) | Exp::ArgScatter(_, _, _, f) => {
                    binders.extend(f.params.iter().cloned());
                }
                Exp::Scanl(f, ..) => binders.extend(f.params.iter().cloned()),
                Exp::Var(x) => uses.push(x.clone()),
                Exp::Size(n) => sizes.extend(n.vars()),
                _ => {}
            }
        });
        for x in binders {
            if bound.insert(x.id(), x.ty().clone()).is_some() {
                return Err(IllTyped(format!(
                    "variable `{}` is bound twice; each needs a name of its own",
                    x.name()
                )));
            }
        }
        if let Some(x) = uses.iter().find(|x| bound.get(&x.id()) != Some(x.ty())) {
            return Err(IllTyped(format!("variable `{}` is not bound, or with another type", x.name())));
        }
        if let Some(x) = self.body.free().iter().find(|x| !self.inputs.iter().any(|i| i.id() == **x)) {
            return Err(IllTyped(format!(
                "variable {x} is used outside of where it is bound; make it an input"
            )));
        }
        match sizes.into_iter().find(|v| v.0 as usize >= self.sizes.len()) {
            Some(SizeVar(v)) => Err(IllTyped(format!("size {v} has no name"))),
            None => Ok(()),
        }
    }
}

/// All terms in a term, outermost first.
pub(super) fn walk<'a>(t: &'a Term, f: &mut impl FnMut(&'a Term)) {
    f(t);
    parts(t.exp(), &mut |part, _| walk(part, f));
}

/// The direct parts of a term, with the variables that are bound in each.
pub(super) fn parts<'a>(exp: &'a Exp, f: &mut impl FnMut(&'a Term, &'a [Var])) {
    match exp {
        Exp::Const(_) | Exp::Size(_) | Exp::Iota(_) | Exp::Var(_) => {}
        Exp::Let(x, u, v) => {
            f(u, &[]);
            f(v, std::slice::from_ref(x));
        }
        Exp::Cond(b, u, v) => [b, u, v].into_iter().for_each(|t| f(t, &[])),
        Exp::Op(_, ts) | Exp::Stack(ts) => ts.iter().for_each(|t| f(t, &[])),
        Exp::Index(t, ix) => std::iter::once(t).chain(ix).for_each(|t| f(t, &[])),
        Exp::SumOuter(t)
        | Exp::ArgOuter(_, t)
        | Exp::Replicate(_, t)
        | Exp::Transpose(_, t)
        | Exp::Reshape(_, t) => f(t, &[]),
        Exp::Gather(_, t, g) | Exp::Scatter(_, t, g) | Exp::ArgScatter(_, _, t, g) => {
            f(t, &[]);
            g.index.iter().for_each(|u| f(u, &g.params));
        }
        Exp::Scanl(fold, z, ts) => {
            f(z, &[]);
            ts.iter().for_each(|t| f(t, &[]));
            f(&fold.body, &fold.params);
        }
        Exp::Build1(_, i, t) => f(t, std::slice::from_ref(i)),
    }
}

/// Whether a rule of Fig. 4.11 has it on its left side, whose parts are in normal form.
fn is_reducible_index(exp: &Exp) -> bool {
    let Exp::Index(t, ix) = exp else { return false };
    match t.exp() {
        Exp::Var(_)
        | Exp::Const(_)
        | Exp::Iota(_)
        | Exp::Scatter(..)
        | Exp::ArgScatter(..)
        | Exp::Scanl(..) => ix.is_empty(),
        Exp::Stack(_) => ix.len() != 1,
        _ => true,
    }
}

type Typed = Result<Ty, String>;

// The judgement, in the order of the figures.
fn type_of(exp: &Exp) -> Typed {
    match exp {
        // [bulk_core.constant]  c : Array sh r
        Exp::Const(c) => Ok(c.ty()),
        // [bulk_core.size]  n : Array [] i64
        Exp::Size(_) => Ok(Ty::index()),
        // [bulk_core.iota]  iota k : Array [k] i64
        Exp::Iota(k) => Ok(Ty::new(vec![k.clone()], Scalar::I64)),
        // [bulk_core.variable]  x : Array sh r
        Exp::Var(x) => Ok(x.ty().clone()),
        // [bulk_core.let]  let x = u in v : Array sh r
        Exp::Let(x, u, v) => {
            same("a bound variable", x.ty(), u.ty())?;
            Ok(v.ty().clone())
        }
        // [bulk_core.cond]  cond b u v : Array sh r
        Exp::Cond(b, u, v) => {
            same("a condition", &Ty::new(Vec::new(), Scalar::Bool), b.ty())?;
            same("the second alternative", u.ty(), v.ty())?;
            Ok(u.ty().clone())
        }
        // [bulk_core.op]  op t_1 .. t_n : Array sh r
        Exp::Op(op, ts) => elementwise(*op, ts),
        // [bulk_core.index]  index t ix : Array rest r
        Exp::Index(t, ix) => {
            is_index(ix)?;
            let rest = t
                .ty()
                .shape
                .get(ix.len()..)
                .ok_or("an index has more components than the array dimensions")?;
            Ok(Ty::new(rest.to_vec(), t.ty().scalar))
        }
        // [bulk_core.sum]  sumOuter t : Array sh r
        Exp::SumOuter(t) => {
            numeric(t)?;
            let rest = t.ty().shape.get(1..).ok_or("a scalar has nothing to sum")?;
            Ok(Ty::new(rest.to_vec(), t.ty().scalar))
        }
        // [bulk_core.arg]  argMax t, argMin t : Array sh i64
        Exp::ArgOuter(_, t) => {
            numeric(t)?;
            let rest = t.ty().shape.get(1..).ok_or("a scalar has nothing to choose from")?;
            Ok(Ty::new(rest.to_vec(), Scalar::I64))
        }
        // [bulk_core.gather]  gather (n_1 ::: .. n_l ::: rest) t (\[i_1 .. i_l]. ix) : Array (n_1 ::: .. n_l ::: rest) r
        Exp::Gather(sh, t, f) => moved("gather", (sh, f.params.len()), (&t.ty().shape, f.index.len()), t, f),
        // [bulk_core.scatter]  scatter (k_1 ::: .. k_m ::: rest) t (\[i_1 .. i_l]. ix) : Array (k_1 ::: .. k_m ::: rest) r
        Exp::Scatter(sh, t, f) => {
            numeric(t)?;
            moved("scatter", (sh, f.index.len()), (&t.ty().shape, f.params.len()), t, f)
        }
        // [bulk_core.arg_at]  argMaxAt [k_1, .., k_m] t (\[i_1 .. i_l]. ix), argMinAt .. : Array [k_1, .., k_m] i64
        Exp::ArgScatter(_, sh, t, f) => {
            numeric(t)?;
            let (m, l) = (sh.len(), t.ty().shape.len());
            if f.params.is_empty() || (f.params.len(), f.index.len()) != (l, m) {
                return Err("numbers are chosen at an index of each dimension".to_string());
            }
            moved("argMaxAt", (sh, m), (&t.ty().shape, l), t, f)?;
            Ok(Ty::new(sh.clone(), Scalar::I64))
        }
        // [bulk_core.stack]  [t_1, .., t_n] : Array (n ::: sh) r
        Exp::Stack(ts) => {
            let first =
                ts.first().ok_or("an array without elements has no type; replicate something 0 times")?;
            ts.iter().try_for_each(|t| same("an element", first.ty(), t.ty()))?;
            Ok(first.ty().outside(Size::constant(i64::try_from(ts.len()).unwrap_or(i64::MAX))))
        }
        // [bulk_core.replicate]  replicate k t : Array (k ::: sh) r
        Exp::Replicate(k, t) => Ok(t.ty().outside(k.clone())),
        // [bulk_core.transpose]  tr_j t : Array (k_(j_0) ::: .. k_(j_(m-1)) ::: rest) r
        Exp::Transpose(j, t) => {
            let shape = permuted(j, &t.ty().shape).ok_or("no permutation of outermost dimensions")?;
            Ok(Ty::new(shape, t.ty().scalar))
        }
        // [bulk_core.reshape]  reshape sh t : Array sh r
        Exp::Reshape(sh, t) => {
            let (before, after) = (Size::product(&t.ty().shape), Size::product(sh));
            if before != after {
                return Err(format!("a shape of {after} elements for an array of {before}"));
            }
            Ok(Ty::new(sh.clone(), t.ty().scalar))
        }
        // [bulk_core.scanl]  scanl k (\a [x_1 ..]. t) z [t_1 ..] : Array (k + 1 ::: sh) r
        Exp::Scanl(f, z, ts) => states(f, z, ts),
        // [bulk_core.build]  build1 k (\i. t) : Array (k ::: sh) r
        Exp::Build1(k, i, t) => {
            same("the variable of `build1`", &Ty::index(), i.ty())?;
            Ok(t.ty().outside(k.clone()))
        }
    }
}

fn elementwise(op: Prim, ts: &[Term]) -> Typed {
    let params = op.params();
    if !op.is_valid() || params.len() != ts.len() {
        return Err(format!("{op} takes {} arguments, and is given {}", params.len(), ts.len()));
    }
    let shape = ts.first().map(|t| t.ty().shape.clone()).unwrap_or_default();
    for (scalar, t) in params.into_iter().zip(ts) {
        same("an argument", &Ty::new(shape.clone(), scalar), t.ty())?;
    }
    Ok(Ty::new(shape, op.result()))
}

fn states(f: &Fold, z: &Term, ts: &[Term]) -> Typed {
    let (a, xs) = f.params.split_first().ok_or("a function of `scanl` without a state")?;
    same("the first state", a.ty(), z.ty())?;
    same("the next state", a.ty(), f.body.ty())?;
    if xs.len() != ts.len() {
        return Err(format!("`scanl` takes {} arrays, and is given {}", xs.len(), ts.len()));
    }
    xs.iter().zip(ts).try_for_each(|(x, t)| same("an array", &x.ty().outside(f.size.clone()), t.ty()))?;
    if f.body.free().iter().any(|x| f.params.iter().all(|p| p.id() != *x)) {
        return Err("a function of `scanl` that reads more than its parameters".to_string());
    }
    Ok(z.ty().outside(f.size.plus(&Size::constant(1))))
}

/// `sh` is the result of an index function that moves subarrays: its outermost dimensions, and those of the array, are what the indices say; the rest is the same.
fn moved(name: &str, (sh, m): (&Shape, usize), (from, l): (&Shape, usize), t: &Term, f: &IndexFn) -> Typed {
    is_index(&f.index)?;
    f.params.iter().try_for_each(|i| same("a variable of an index function", &Ty::index(), i.ty()))?;
    match (sh.get(m..), from.get(l..)) {
        (Some(rest), Some(same)) if rest == same => Ok(Ty::new(sh.clone(), t.ty().scalar)),
        _ => Err(format!("`{name}` to dimensions that do not end as those of the array")),
    }
}

/// The shape by a permutation of its outermost dimensions; `None` if it is none.
pub(super) fn permuted<T: Clone>(j: &[usize], shape: &[T]) -> Option<Vec<T>> {
    let all: BTreeSet<usize> = j.iter().copied().collect();
    let is_permutation = all.len() == j.len() && all.last().is_none_or(|last| *last + 1 == j.len());
    let (outer, rest) = shape.split_at_checked(j.len()).filter(|_| is_permutation)?;
    Some(j.iter().map(|a| outer[*a].clone()).chain(rest.iter().cloned()).collect())
}

fn is_index(ix: &[Term]) -> Result<(), String> {
    ix.iter().try_for_each(|t| same("a component of an index", &Ty::index(), t.ty()))
}

fn numeric(t: &Term) -> Result<(), String> {
    match t.ty().scalar {
        Scalar::Bool => Err("truth values have no sum, and none is the largest".to_string()),
        _ => Ok(()),
    }
}

fn same(what: &str, wanted: &Ty, found: &Ty) -> Result<(), String> {
    if wanted == found { Ok(()) } else { Err(format!("{what} must be {wanted}, and is {found}")) }
}
