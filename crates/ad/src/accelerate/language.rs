//! Idealised Accelerate: array programs whose combinators take scalar functions, and nothing else that is parallel.
//!
//! Source: T. Smeding, MSc thesis, 3.1: Fig. 1 and the semantics after it.
//!
//! Judgements: `e : t` for expressions, `a : T` for array terms, where variables carry their types. [`Exp::new`] and [`Arr::new`] make a term only if it
//! has a type; [`Program::new`] makes a program only if each variable is bound where it is read.
//!
//! Types:
//! ```text
//! t   scalar types        st | (t_1, .., t_n)          st: a scalar of the primitive table; float: it is continuous, discrete if not
//! s   shapes, indices     tuples of i64, outermost first; its length is the rank
//! T   array types         t[s] | (T_1, .., T_n)        t[()], of rank 0, has one element
//! ```
//!
//! Notation: `\x. e` an expression function · `+1` one more inner dimension · `slc` a slice: of each dimension of the larger array `All`, or an integer
//!
//! Rules of expressions:
//! ```text
//! const      c : st                                                   var      x : t, as it was bound
//! let        e_j : the type of x_j,  e : t                            =>  let x_1 = e_1 .. x_n = e_n in e : t
//! tuple      e_j : t_j                                                =>  (e_1, .., e_n) : (t_1, .., t_n)
//! proj       e : (t_1, .., t_n)                                       =>  e.k : t_k
//! prim       e_j : st_j                                               =>  op e_1 .. e_n : st    for the primitive op : st_1, .., st_n -> st
//! index      a : t[s], a variable,  e : s                             =>  a ! e : t
//! shape      a : t[s], a variable                                     =>  shape a : s
//! cond       e_1 : bool,  e_2, e_3 : t                                =>  cond e_1 e_2 e_3 : t
//! ```
//!
//! Rules of array terms:
//! ```text
//! use          elements of one scalar type, and a shape of numbers    =>  use c : st[s]
//! avar         a : T, as it was bound
//! alet         u_j : the type of a_j,  u : T                          =>  let a_1 = u_1 .. a_n = u_n in u : T
//! atuple       u_j : T_j                                              =>  (u_1, .., u_n) : (T_1, .., T_n)
//! aproj        u : (T_1, .., T_n)                                     =>  u.k : T_k
//! reshape      e : s',  u : t[s]                                      =>  reshape e u : t[s']
//! replicate    slc[s ~> s'],  u : t[s]                                =>  replicate slc u : t[s']
//! slice        slc[s ~> s'],  u : t[s']                               =>  slice slc u : t[s]
//! generate     e : s,  f : s -> t                                     =>  generate e f : t[s]
//! map          f : t -> t',  u : t[s]                                 =>  map f u : t'[s]
//! zipWith      f : (t_1, t_2) -> t,  u_j : t_j[s]                     =>  zipWith f u_1 u_2 : t[s]
//! sum          u : t[s+1]                                             =>  sum u : t[s]
//! foldl        f : (t, t) -> t,  e : t,  u : t[s+1]                   =>  foldl f e u : t[s]
//! fold1        f : (t, t) -> t,  u : t[s+1]                           =>  fold1 f u : t[s]
//! scanl        f : (t, t) -> t,  e : t,  u : t[s+1]                   =>  scanl f e u : t[s+1]
//! scanr        f : (t, t) -> t,  e : t,  u : t[s+1]                   =>  scanr f e u : t[s+1]
//! scanl1       f : (t, t) -> t,  u : t[s+1]                           =>  scanl1 f u : t[s+1]
//! collect      f : (t, t') -> t,  u_0 : t[s],  u : t'[s+1]            =>  collectl f u_0 u, collectr f u_0 u : t[s+1]        (ours)
//! iterate      e : i64,  u_0 : T,  i : i64[()],  a : T |- u : T            =>  iterate e (\(a, i). u) u_0 : T, each array with one more outer dimension        (ours)
//! permute      c : (t, t) -> t,  d : t[s'],  f : s -> (bool, s'),  u : t[s]   =>  permute c d f u : t[s']
//! backpermute  e : s',  f : s' -> s,  u : t[s]                        =>  backpermute e f u : t[s']
//! acond        e : bool,  u_1, u_2 : T                                =>  acond e u_1 u_2 : T
//! ```
//!
//! Meaning: of `zipWith` the result has in each dimension the smaller size. `foldl` puts `e` on the left of each inner row; its function is associative, and
//! need not be commutative. `scanl` and `scanr` have one inner element more than their argument, `scanl1` as many. `collectl` and `collectr` give the states of a loop over each inner row:
//! `x_0 = u_0, x_(k+1) = f (x_k, u_k)` from the left, `x_n = u_0, x_k = f (x_(k+1), u_k)` from the right; `f` is any function, and outer sizes are the smaller ones. `iterate` gives the `e + 1` states of a loop of array terms, whose sizes stay. The function of `permute` that combines is commutative,
//! too; an element whose index function says `false` goes nowhere. A conditional evaluates one branch. An index outside of an array stops the program.
//!
//! Differences from the paper:
//! 1. Tuples have any number of components, where the text has pairs and `()`; an index is a tuple of integers, outermost first, where the text has pairs from the inside.
//! 2. A let binds several variables, each visible in those after it: the let-stack that the text makes of builders is one term.
//! 3. `fold1` and `scanl1` are in the language: the text's tests need them (2.9.11 of our notes).
//! 4. `sum` of tuples adds componentwise; truth values stay false.
//! 5. `collectl`, `collectr` and `iterate` are ours: the text has no loops.
//!
//! Guarantee: terms have types, and types never change. An expression in an array term is closed but for array variables: so there is no parallelism in a scalar function.
//!
//! The file is one piece, because the grammar and the judgement are read side by side; the functions `exp_type` and `arr_type` are long: they are the judgements, an arm for each rule.

use pullback_prim::{Prim, Scalar, ScalarValue};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// A scalar type `t`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Ty {
    /// `st`
    Scalar(Scalar),
    /// `(t_1, .., t_n)`
    Tuple(Vec<Ty>),
}

/// An array type `T`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ArrTy {
    /// `t[s]`, with the rank of `s`.
    Array(Ty, usize),
    /// `(T_1, .., T_n)`
    Tuple(Vec<ArrTy>),
}

/// A variable of either level: a number, with a name for readers and its type.
#[derive(Debug)]
pub struct Variable<T>(Arc<(u32, String, T)>);
/// An expression variable.
pub type EVar = Variable<Ty>;
/// An array variable.
pub type AVar = Variable<ArrTy>;

/// Makes variables. Each is bound once in a program.
#[derive(Clone, Debug, Default)]
pub struct Names {
    next: u32,
}

/// The forms of expressions: the grammar of Fig. 1.
#[derive(Clone, Debug)]
pub enum ExpForm<L> {
    /// `c`
    Const(ScalarValue),
    /// `x`
    Var(EVar),
    /// `let x_1 = e_1 .. in e`
    Let(Vec<(EVar, Exp<L>)>, Exp<L>),
    /// `(e_1, .., e_n)`
    Tuple(Vec<Exp<L>>),
    /// `e.k`
    Proj(Exp<L>, usize),
    /// `op e_1 .. e_n`
    Prim(Prim, Vec<Exp<L>>),
    /// `a ! e`
    Index(AVar, Exp<L>),
    /// `shape a`
    Shape(AVar),
    /// `cond e_1 e_2 e_3`
    Cond(Exp<L>, Exp<L>, Exp<L>),
}

/// The forms of array terms.
#[derive(Clone, Debug)]
pub enum ArrForm<L> {
    /// `use c`: elements in row-major order, and the shape.
    Use(Vec<ScalarValue>, Vec<usize>, Scalar),
    /// `a`
    Var(AVar),
    /// `let a_1 = u_1 .. in u`
    Let(Vec<(AVar, Arr<L>)>, Arr<L>),
    /// `(u_1, .., u_n)`
    Tuple(Vec<Arr<L>>),
    /// `u.k`
    Proj(Arr<L>, usize),
    /// `reshape e u`
    Reshape(Exp, Arr<L>),
    /// `replicate slc u`
    Replicate(Slice, Arr<L>),
    /// `slice slc u`
    Slice(Slice, Arr<L>),
    /// `generate e f`
    Generate(Exp, Fun),
    /// `map f u`
    Map(Fun, Arr<L>),
    /// `zipWith f u_1 u_2`
    ZipWith(Fun, Arr<L>, Arr<L>),
    /// `sum u`
    Sum(Arr<L>),
    /// `foldl f e u`
    Foldl(Fun, Exp, Arr<L>),
    /// `fold1 f u`
    Fold1(Fun, Arr<L>),
    /// `scanl f e u`
    Scanl(Fun, Exp, Arr<L>),
    /// `scanr f e u`
    Scanr(Fun, Exp, Arr<L>),
    /// `scanl1 f u`
    Scanl1(Fun, Arr<L>),
    /// `collectl f u_0 u`, `collectr f u_0 u`
    Collect(Direction, Fun, Arr<L>, Arr<L>),
    /// `iterate e (\(a, i). u) u_0`
    Iterate(Exp, Step<L>, Arr<L>),
    /// `permute c d f u`
    Permute(Fun, Arr<L>, Fun, Arr<L>),
    /// `backpermute e f u`
    Backpermute(Exp, Fun, Arr<L>),
    /// `acond e u_1 u_2`
    Cond(Exp, Arr<L>, Arr<L>),
}

/// `\(a, i). u`: the next state, of the state and the number of the iteration.
#[derive(Clone, Debug)]
pub struct Step<L = ()> {
    /// `a`
    pub state: AVar,
    /// `i`
    pub counter: AVar,
    /// `u`
    pub body: Arr<L>,
}

/// Where a loop over an inner row begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// With its first element.
    Left,
    /// With its last element.
    Right,
}

/// `slc`, an entry for each dimension of the larger array: `None` is `All`.
pub type Slice = Vec<Option<Exp>>;

/// An expression with its type and label. Copies share it.
#[derive(Clone, Debug)]
pub struct Exp<L = ()>(Arc<(ExpForm<L>, Ty, L)>);

/// An array term with its type and label. Copies share it.
#[derive(Clone, Debug)]
pub struct Arr<L = ()>(Arc<(ArrForm<L>, ArrTy, L)>);

/// `\x. e`
#[derive(Clone, Debug)]
pub struct Fun {
    /// `x`
    pub param: EVar,
    /// `e`
    pub body: Exp,
}

/// `\a. u`, where other array variables may be free: they are constants.
#[derive(Clone, Debug)]
pub struct Program {
    /// `a`
    pub param: AVar,
    /// Array variables that are free.
    pub free: Vec<AVar>,
    /// `u`
    pub body: Arr,
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
    /// The type of indices of arrays of this rank.
    pub fn index(rank: usize) -> Ty {
        Ty::Tuple(vec![Ty::Scalar(Scalar::I64); rank])
    }
    /// `bool`
    pub const BOOL: Ty = Ty::Scalar(Scalar::Bool);
    /// The rank, if it is a type of indices.
    pub fn rank(&self) -> Option<usize> {
        match self {
            Ty::Tuple(ts) => ts.iter().all(|t| *t == Ty::Scalar(Scalar::I64)).then_some(ts.len()),
            Ty::Scalar(_) => None,
        }
    }
    /// Whether some part of it is continuous.
    pub fn is_continuous(&self) -> bool {
        match self {
            Ty::Scalar(s) => s.is_float(),
            Ty::Tuple(ts) => ts.iter().any(Ty::is_continuous),
        }
    }
    /// Its scalars, from left to right.
    pub fn scalars(&self) -> Vec<Scalar> {
        match self {
            Ty::Scalar(s) => vec![*s],
            Ty::Tuple(ts) => ts.iter().flat_map(Ty::scalars).collect(),
        }
    }
}

impl ArrTy {
    /// Whether some part of it is continuous.
    pub fn is_continuous(&self) -> bool {
        match self {
            ArrTy::Array(t, _) => t.is_continuous(),
            ArrTy::Tuple(ts) => ts.iter().any(ArrTy::is_continuous),
        }
    }
    /// Whether it is an array whose elements have no scalars: only its sizes are something.
    pub fn has_no_scalars(&self) -> bool {
        matches!(self, ArrTy::Array(t, _) if t.scalars().is_empty())
    }
    /// With one more outer dimension.
    pub fn repeated(&self) -> ArrTy {
        match self {
            ArrTy::Array(t, rank) => ArrTy::Array(t.clone(), rank + 1),
            ArrTy::Tuple(ts) => ArrTy::Tuple(ts.iter().map(ArrTy::repeated).collect()),
        }
    }
    /// Element type and rank, if it is an array.
    pub fn array(&self) -> Result<(&Ty, usize), IllTyped> {
        match self {
            ArrTy::Array(t, rank) => Ok((t, *rank)),
            ArrTy::Tuple(_) => ill("a tuple of arrays where one array is wanted"),
        }
    }
}

impl<T> Clone for Variable<T> {
    fn clone(&self) -> Self {
        Variable(Arc::clone(&self.0))
    }
}
impl<T> PartialEq for Variable<T> {
    fn eq(&self, other: &Self) -> bool {
        self.id() == other.id()
    }
}
impl<T> Eq for Variable<T> {}
impl<T> PartialOrd for Variable<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl<T> Ord for Variable<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.id().cmp(&other.id())
    }
}
impl<T> Variable<T> {
    /// Its number: two variables are the same if these are.
    pub fn id(&self) -> u32 {
        self.0.0
    }
    /// Its name, for readers.
    pub fn name(&self) -> &str {
        &self.0.1
    }
    /// Its type.
    pub fn ty(&self) -> &T {
        &self.0.2
    }
}

impl Names {
    /// A new variable.
    pub fn fresh<T>(&mut self, name: &str, ty: T) -> Variable<T> {
        self.next += 1;
        Variable(Arc::new((self.next, name.to_string(), ty)))
    }
    /// A new variable like this one.
    pub fn again<T: Clone>(&mut self, x: &Variable<T>) -> Variable<T> {
        self.fresh(x.name(), x.ty().clone())
    }
}

fn ill<T>(why: impl Into<String>) -> Result<T, IllTyped> {
    Err(IllTyped(why.into()))
}

/// A term that is well-typed because of how it is made: by a rule from terms with types.
#[track_caller]
pub fn made<T>(term: Result<T, IllTyped>) -> T {
    term.unwrap_or_else(|why| unreachable!("{why}"))
}

impl<L> Exp<L> {
    /// The form.
    pub fn form(&self) -> &ExpForm<L> {
        &self.0.0
    }
    /// The type.
    pub fn ty(&self) -> &Ty {
        &self.0.1
    }
    /// The label.
    pub fn label(&self) -> &L {
        &self.0.2
    }
    /// With a label.
    ///
    /// # Errors
    /// [`IllTyped`] if it has no type.
    pub fn labelled(form: ExpForm<L>, label: L) -> Result<Exp<L>, IllTyped> {
        let ty = exp_type(&form)?;
        Ok(Exp(Arc::new((form, ty, label))))
    }
}

impl Exp {
    /// The expression.
    ///
    /// # Errors
    /// [`IllTyped`] if it has no type. Cost: the expression itself, and its type.
    pub fn new(form: ExpForm<()>) -> Result<Exp, IllTyped> {
        Exp::labelled(form, ())
    }
    /// `x`
    pub fn var(x: &EVar) -> Exp {
        made(Exp::new(ExpForm::Var(x.clone())))
    }
    /// `c`
    pub fn constant(c: ScalarValue) -> Exp {
        made(Exp::new(ExpForm::Const(c)))
    }
    /// An integer.
    pub fn i64(n: i64) -> Exp {
        Exp::constant(ScalarValue::I64(n))
    }
    /// A truth value.
    pub fn bool(b: bool) -> Exp {
        Exp::constant(ScalarValue::Bool(b))
    }
    /// `(e_1, .., e_n)`
    pub fn tuple(es: Vec<Exp>) -> Exp {
        made(Exp::new(ExpForm::Tuple(es)))
    }
    /// The tuple of these; of one, itself.
    pub fn packed(es: Vec<Exp>) -> Exp {
        match &es[..] {
            [e] => e.clone(),
            _ => Exp::tuple(es),
        }
    }
    /// `e.k`; of a tuple that is written out, the component.
    ///
    /// # Errors
    /// [`IllTyped`] if there is no such component.
    pub fn component(&self, k: usize) -> Result<Exp, IllTyped> {
        match self.form() {
            ExpForm::Tuple(es) if k < es.len() => Ok(es[k].clone()),
            _ => Exp::new(ExpForm::Proj(self.clone(), k)),
        }
    }
    /// `e.k`, where there is such a component.
    pub fn proj(&self, k: usize) -> Exp {
        made(self.component(k))
    }
    /// The primitive at these arguments.
    ///
    /// # Errors
    /// [`IllTyped`] if they are of other types.
    pub fn prim(prim: Prim, args: Vec<Exp>) -> Result<Exp, IllTyped> {
        Exp::new(ExpForm::Prim(prim, args))
    }
    /// `a ! e`
    ///
    /// # Errors
    /// [`IllTyped`] if `a` is no array, or the index has another rank.
    pub fn index(a: &AVar, e: Exp) -> Result<Exp, IllTyped> {
        Exp::new(ExpForm::Index(a.clone(), e))
    }
    /// `shape a`
    ///
    /// # Errors
    /// [`IllTyped`] if `a` is no array.
    pub fn shape(a: &AVar) -> Result<Exp, IllTyped> {
        Exp::new(ExpForm::Shape(a.clone()))
    }
    /// `cond e_1 e_2 e_3`
    ///
    /// # Errors
    /// [`IllTyped`] if the alternatives differ in type, or the condition is none.
    pub fn cond(c: Exp, t: Exp, e: Exp) -> Result<Exp, IllTyped> {
        Exp::new(ExpForm::Cond(c, t, e))
    }
    /// `let .. in e`; without bindings `e` itself.
    ///
    /// # Errors
    /// [`IllTyped`] if a binding has another type than its variable.
    pub fn lets(bindings: Vec<(EVar, Exp)>, e: Exp) -> Result<Exp, IllTyped> {
        if bindings.is_empty() { Ok(e) } else { Exp::new(ExpForm::Let(bindings, e)) }
    }
}

impl<L> Arr<L> {
    /// The form.
    pub fn form(&self) -> &ArrForm<L> {
        &self.0.0
    }
    /// The type.
    pub fn ty(&self) -> &ArrTy {
        &self.0.1
    }
    /// The label.
    pub fn label(&self) -> &L {
        &self.0.2
    }
    /// With a label.
    ///
    /// # Errors
    /// [`IllTyped`] if it has no type.
    pub fn labelled(form: ArrForm<L>, label: L) -> Result<Arr<L>, IllTyped> {
        let ty = arr_type(&form)?;
        Ok(Arr(Arc::new((form, ty, label))))
    }
}

impl Arr {
    /// The term.
    ///
    /// # Errors
    /// [`IllTyped`] if it has no type. Cost: the term itself, and its type.
    pub fn new(form: ArrForm<()>) -> Result<Arr, IllTyped> {
        Arr::labelled(form, ())
    }
    /// `a`
    pub fn var(a: &AVar) -> Arr {
        made(Arr::new(ArrForm::Var(a.clone())))
    }
    /// `(u_1, .., u_n)`
    pub fn tuple(us: Vec<Arr>) -> Arr {
        made(Arr::new(ArrForm::Tuple(us)))
    }
    /// `u.k`; of a tuple that is written out, the component.
    ///
    /// # Errors
    /// [`IllTyped`] if there is no such component.
    pub fn component(&self, k: usize) -> Result<Arr, IllTyped> {
        match self.form() {
            ArrForm::Tuple(us) if k < us.len() => Ok(us[k].clone()),
            _ => Arr::new(ArrForm::Proj(self.clone(), k)),
        }
    }
    /// `u.k`, where there is such a component.
    pub fn proj(&self, k: usize) -> Arr {
        made(self.component(k))
    }
    /// `let .. in u`; without bindings `u` itself.
    ///
    /// # Errors
    /// [`IllTyped`] if a binding has another type than its variable.
    pub fn lets(bindings: Vec<(AVar, Arr)>, u: Arr) -> Result<Arr, IllTyped> {
        if bindings.is_empty() { Ok(u) } else { Arr::new(ArrForm::Let(bindings, u)) }
    }
}

impl Program {
    /// The program.
    ///
    /// # Errors
    /// [`IllTyped`] if a variable is read where it is not bound, or an array is bound where it is in scope.
    pub fn new(param: AVar, free: Vec<AVar>, body: Arr, names: Names) -> Result<Program, IllTyped> {
        let program = Program { param, free, body, names };
        program.check()?;
        Ok(program)
    }
    /// Whether variables are read where they are bound; every pass is followed by it.
    ///
    /// # Errors
    /// [`IllTyped`] with the variable. Cost: the size of the program.
    pub fn check(&self) -> Result<(), IllTyped> {
        let mut scopes = Scopes::default();
        for a in self.free.iter().chain([&self.param]) {
            scopes.bind_array(a)?;
        }
        scopes.arr(&self.body)
    }
}

/// The variables that are bound, here and anywhere.
#[derive(Default)]
struct Scopes {
    arrays: BTreeSet<u32>,
    scalars: BTreeSet<u32>,
}

impl Scopes {
    /// An array of a branch may have its name outside of it, too, after the conditional.
    fn bind_array(&mut self, a: &AVar) -> Result<(), IllTyped> {
        match self.arrays.insert(a.id()) {
            true => Ok(()),
            false => ill(format!("the array `{}` is bound where it is in scope", a.name())),
        }
    }
    fn array(&self, a: &AVar) -> Result<(), IllTyped> {
        if self.arrays.contains(&a.id()) {
            Ok(())
        } else {
            ill(format!("the array `{}` is not bound", a.name()))
        }
    }
    fn fun(&mut self, f: &Fun) -> Result<(), IllTyped> {
        // A function may stand at several places; so its variables may be bound again.
        self.scalars.insert(f.param.id());
        self.exp(&f.body)?;
        self.scalars.remove(&f.param.id());
        Ok(())
    }
    fn exp(&mut self, e: &Exp) -> Result<(), IllTyped> {
        match e.form() {
            ExpForm::Const(_) => Ok(()),
            ExpForm::Var(x) if self.scalars.contains(&x.id()) => Ok(()),
            ExpForm::Var(x) => ill(format!("the scalar `{}` is not bound", x.name())),
            ExpForm::Let(bindings, e) => {
                for (x, u) in bindings {
                    self.exp(u)?;
                    self.scalars.insert(x.id());
                }
                self.exp(e)?;
                bindings.iter().for_each(|(x, _)| {
                    self.scalars.remove(&x.id());
                });
                Ok(())
            }
            ExpForm::Tuple(es) | ExpForm::Prim(_, es) => es.iter().try_for_each(|e| self.exp(e)),
            ExpForm::Proj(e, _) => self.exp(e),
            ExpForm::Index(a, e) => {
                self.array(a)?;
                self.exp(e)
            }
            ExpForm::Shape(a) => self.array(a),
            ExpForm::Cond(c, t, e) => [c, t, e].into_iter().try_for_each(|e| self.exp(e)),
        }
    }
    fn arr(&mut self, u: &Arr) -> Result<(), IllTyped> {
        match u.form() {
            ArrForm::Use(..) => Ok(()),
            ArrForm::Var(a) => self.array(a),
            ArrForm::Let(bindings, u) => {
                for (a, v) in bindings {
                    self.arr(v)?;
                    self.bind_array(a)?;
                }
                self.arr(u)?;
                bindings.iter().for_each(|(a, _)| {
                    self.arrays.remove(&a.id());
                });
                Ok(())
            }
            ArrForm::Iterate(e, step, first) => {
                self.exp(e)?;
                self.arr(first)?;
                self.bind_array(&step.state)?;
                self.bind_array(&step.counter)?;
                self.arr(&step.body)?;
                [&step.state, &step.counter].into_iter().for_each(|a| {
                    self.arrays.remove(&a.id());
                });
                Ok(())
            }
            form => {
                exps(form).into_iter().try_for_each(|e| self.exp(e))?;
                funs(form).into_iter().try_for_each(|f| self.fun(f))?;
                arrs(form).into_iter().try_for_each(|u| self.arr(u))
            }
        }
    }
}

/// The expressions of an array term itself, but for those in functions.
pub fn exps<L>(form: &ArrForm<L>) -> Vec<&Exp> {
    match form {
        ArrForm::Reshape(e, _)
        | ArrForm::Generate(e, _)
        | ArrForm::Foldl(_, e, _)
        | ArrForm::Scanl(_, e, _)
        | ArrForm::Scanr(_, e, _)
        | ArrForm::Iterate(e, ..)
        | ArrForm::Backpermute(e, ..)
        | ArrForm::Cond(e, ..) => vec![e],
        ArrForm::Replicate(slc, _) | ArrForm::Slice(slc, _) => slc.iter().flatten().collect(),
        ArrForm::Use(..)
        | ArrForm::Var(_)
        | ArrForm::Let(..)
        | ArrForm::Tuple(_)
        | ArrForm::Proj(..)
        | ArrForm::Map(..)
        | ArrForm::ZipWith(..)
        | ArrForm::Sum(_)
        | ArrForm::Fold1(..)
        | ArrForm::Scanl1(..)
        | ArrForm::Collect(..)
        | ArrForm::Permute(..) => Vec::new(),
    }
}

/// The functions of an array term itself.
pub fn funs<L>(form: &ArrForm<L>) -> Vec<&Fun> {
    match form {
        ArrForm::Generate(_, f)
        | ArrForm::Map(f, _)
        | ArrForm::ZipWith(f, ..)
        | ArrForm::Foldl(f, ..)
        | ArrForm::Fold1(f, _)
        | ArrForm::Scanl(f, ..)
        | ArrForm::Scanr(f, ..)
        | ArrForm::Scanl1(f, _)
        | ArrForm::Collect(_, f, ..)
        | ArrForm::Backpermute(_, f, _) => vec![f],
        ArrForm::Permute(c, _, f, _) => vec![c, f],
        ArrForm::Use(..)
        | ArrForm::Var(_)
        | ArrForm::Let(..)
        | ArrForm::Tuple(_)
        | ArrForm::Proj(..)
        | ArrForm::Reshape(..)
        | ArrForm::Replicate(..)
        | ArrForm::Slice(..)
        | ArrForm::Sum(_)
        | ArrForm::Iterate(..)
        | ArrForm::Cond(..) => Vec::new(),
    }
}

/// The array arguments of a term, in order; of a let its bindings and its body, and of a loop its first state and its body.
pub fn arrs<L>(form: &ArrForm<L>) -> Vec<&Arr<L>> {
    match form {
        ArrForm::Use(..) | ArrForm::Var(_) | ArrForm::Generate(..) => Vec::new(),
        ArrForm::Let(bindings, u) => bindings.iter().map(|(_, v)| v).chain([u]).collect(),
        ArrForm::Tuple(us) => us.iter().collect(),
        ArrForm::Proj(u, _)
        | ArrForm::Reshape(_, u)
        | ArrForm::Replicate(_, u)
        | ArrForm::Slice(_, u)
        | ArrForm::Map(_, u)
        | ArrForm::Sum(u)
        | ArrForm::Foldl(_, _, u)
        | ArrForm::Fold1(_, u)
        | ArrForm::Scanl(_, _, u)
        | ArrForm::Scanr(_, _, u)
        | ArrForm::Scanl1(_, u)
        | ArrForm::Backpermute(_, _, u) => vec![u],
        ArrForm::ZipWith(_, u, v)
        | ArrForm::Collect(_, _, u, v)
        | ArrForm::Permute(_, u, _, v)
        | ArrForm::Cond(_, u, v) => vec![u, v],
        ArrForm::Iterate(_, step, first) => vec![first, &step.body],
    }
}

fn same<T: PartialEq + fmt::Debug>(found: &T, wanted: &T, of: &str) -> Result<(), IllTyped> {
    if found == wanted { Ok(()) } else { ill(format!("{of}: expected {wanted:?}, found {found:?}")) }
}

// The judgement `e : t`.
fn exp_type<L>(form: &ExpForm<L>) -> Result<Ty, IllTyped> {
    match form {
        ExpForm::Const(c) => Ok(Ty::Scalar(c.scalar())),
        ExpForm::Var(x) => Ok(x.ty().clone()),
        ExpForm::Let(bindings, e) => {
            bindings.iter().try_for_each(|(x, u)| same(u.ty(), x.ty(), x.name()))?;
            Ok(e.ty().clone())
        }
        ExpForm::Tuple(es) => Ok(Ty::Tuple(es.iter().map(|e| e.ty().clone()).collect())),
        ExpForm::Proj(e, k) => match e.ty() {
            Ty::Tuple(ts) if *k < ts.len() => Ok(ts[*k].clone()),
            ty => ill(format!("component {k} of {ty:?}")),
        },
        ExpForm::Prim(prim, es) => {
            let params: Vec<Ty> = prim.params().into_iter().map(Ty::Scalar).collect();
            let args: Vec<Ty> = es.iter().map(|e| e.ty().clone()).collect();
            same(&args, &params, &format!("{prim:?}"))?;
            Ok(Ty::Scalar(prim.result()))
        }
        ExpForm::Index(a, e) => {
            let (elem, rank) = a.ty().array()?;
            same(e.ty(), &Ty::index(rank), &format!("an index of `{}`", a.name()))?;
            Ok(elem.clone())
        }
        ExpForm::Shape(a) => Ok(Ty::index(a.ty().array()?.1)),
        ExpForm::Cond(c, t, e) => {
            same(c.ty(), &Ty::BOOL, "a condition")?;
            same(e.ty(), t.ty(), "alternatives")?;
            Ok(t.ty().clone())
        }
    }
}

fn function(f: &Fun, from: &Ty, to: &Ty) -> Result<(), IllTyped> {
    same(f.param.ty(), from, "the argument of a function")?;
    same(f.body.ty(), to, "the result of a function")
}

fn operator(f: &Fun, t: &Ty) -> Result<(), IllTyped> {
    function(f, &Ty::Tuple(vec![t.clone(), t.clone()]), t)
}

fn row<L>(u: &Arr<L>) -> Result<(&Ty, usize), IllTyped> {
    match u.ty().array()? {
        (_, 0) => ill("an inner dimension of an array of rank 0"),
        (t, rank) => Ok((t, rank)),
    }
}

fn sliced<L>(slc: &Slice, u: &Arr<L>, entries: impl Fn(usize, usize) -> bool) -> Result<(), IllTyped> {
    let kept = slc.iter().filter(|e| e.is_none()).count();
    for e in slc.iter().flatten() {
        same(e.ty(), &Ty::Scalar(Scalar::I64), "an entry of a slice")?;
    }
    if entries(kept, u.ty().array()?.1) { Ok(()) } else { ill("a slice with another number of dimensions") }
}

// The judgement `a : T`.
fn arr_type<L>(form: &ArrForm<L>) -> Result<ArrTy, IllTyped> {
    let array = |t: &Ty, rank: usize| Ok(ArrTy::Array(t.clone(), rank));
    let rank_of = |e: &Exp| e.ty().rank().map_or_else(|| ill(format!("a shape of type {:?}", e.ty())), Ok);
    match form {
        ArrForm::Use(elements, shape, scalar) => {
            same(&elements.len(), &shape.iter().product(), "the number of elements")?;
            elements.iter().try_for_each(|c| same(&c.scalar(), scalar, "an element"))?;
            array(&Ty::Scalar(*scalar), shape.len())
        }
        ArrForm::Var(a) => Ok(a.ty().clone()),
        ArrForm::Let(bindings, u) => {
            bindings.iter().try_for_each(|(a, v)| same(v.ty(), a.ty(), a.name()))?;
            Ok(u.ty().clone())
        }
        ArrForm::Tuple(us) => Ok(ArrTy::Tuple(us.iter().map(|u| u.ty().clone()).collect())),
        ArrForm::Proj(u, k) => match u.ty() {
            ArrTy::Tuple(ts) if *k < ts.len() => Ok(ts[*k].clone()),
            ty => ill(format!("component {k} of {ty:?}")),
        },
        ArrForm::Reshape(e, u) => array(u.ty().array()?.0, rank_of(e)?),
        ArrForm::Replicate(slc, u) => {
            sliced(slc, u, |kept, rank| kept == rank)?;
            array(u.ty().array()?.0, slc.len())
        }
        ArrForm::Slice(slc, u) => {
            sliced(slc, u, |_, rank| slc.len() == rank)?;
            array(u.ty().array()?.0, slc.iter().filter(|e| e.is_none()).count())
        }
        ArrForm::Generate(e, f) => {
            same(f.param.ty(), e.ty(), "the index of a function")?;
            array(f.body.ty(), rank_of(e)?)
        }
        ArrForm::Map(f, u) => {
            let (t, rank) = u.ty().array()?;
            same(f.param.ty(), t, "the argument of a function")?;
            array(f.body.ty(), rank)
        }
        ArrForm::ZipWith(f, u, v) => {
            let ((t, rank), (other, rank_v)) = (u.ty().array()?, v.ty().array()?);
            same(&rank_v, &rank, "the rank of the second array")?;
            same(f.param.ty(), &Ty::Tuple(vec![t.clone(), other.clone()]), "the arguments of a function")?;
            array(f.body.ty(), rank)
        }
        ArrForm::Sum(u) => row(u).and_then(|(t, rank)| array(t, rank - 1)),
        ArrForm::Foldl(f, e, u) => {
            let (t, rank) = row(u)?;
            operator(f, t)?;
            same(e.ty(), t, "the first value of a fold")?;
            array(t, rank - 1)
        }
        ArrForm::Fold1(f, u) => {
            let (t, rank) = row(u)?;
            operator(f, t)?;
            array(t, rank - 1)
        }
        ArrForm::Scanl(f, e, u) | ArrForm::Scanr(f, e, u) => {
            let (t, rank) = row(u)?;
            operator(f, t)?;
            same(e.ty(), t, "the first value of a scan")?;
            array(t, rank)
        }
        ArrForm::Scanl1(f, u) => {
            let (t, rank) = row(u)?;
            operator(f, t)?;
            array(t, rank)
        }
        ArrForm::Collect(_, f, first, u) => {
            let ((t, outer), (elem, rank)) = (first.ty().array()?, row(u)?);
            same(&(outer + 1), &rank, "the rank of the array that a loop takes")?;
            function(f, &Ty::Tuple(vec![t.clone(), elem.clone()]), t)?;
            array(t, rank)
        }
        ArrForm::Iterate(e, Step { state, counter, body }, first) => {
            same(e.ty(), &Ty::Scalar(Scalar::I64), "the number of iterations")?;
            same(counter.ty(), &ArrTy::Array(Ty::Scalar(Scalar::I64), 0), "the number of an iteration")?;
            same(state.ty(), first.ty(), "the state of a loop")?;
            same(body.ty(), first.ty(), "the next state of a loop")?;
            Ok(first.ty().repeated())
        }
        ArrForm::Permute(c, d, f, u) => {
            let ((t, target), (elem, source)) = (d.ty().array()?, u.ty().array()?);
            same(elem, t, "the elements that are permuted")?;
            operator(c, t)?;
            function(f, &Ty::index(source), &Ty::Tuple(vec![Ty::BOOL, Ty::index(target)]))?;
            array(t, target)
        }
        ArrForm::Backpermute(e, f, u) => {
            let (t, rank) = u.ty().array()?;
            function(f, e.ty(), &Ty::index(rank))?;
            array(t, rank_of(e)?)
        }
        ArrForm::Cond(c, u, v) => {
            same(c.ty(), &Ty::BOOL, "a condition")?;
            same(v.ty(), u.ty(), "alternatives")?;
            Ok(u.ty().clone())
        }
    }
}
