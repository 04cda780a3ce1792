//! Functions of core as programs of Idealised Accelerate, and their derivatives as functions of core: the algorithm `accelerate`.
//!
//! Core has maps in maps; the language has arrays of any rank, and scalar functions. So a nest of maps is one combinator, over the counters of all of its maps: what a body binds is a scalar of the
//! nest, and an array operation in a body works on all iterations at once, on an array with the counters of the nest as its outer dimensions.
//!
//! Notation: *nest*: the maps around a statement, each with a counter `i` and a size · *axes*: counters and sizes of a nest · `a[is]` is `a ! (is)`, a read · *at hand*: bound outside of all inner bodies of the function, or outside of it ·
//! *view*: an array of the language with its first indices, which stands for a part of it
//!
//! Rules, of what goes over the axes of a nest (`nests`):
//! ```text
//! aligned    a[is], where is are different counters whose sizes are those of a      => an argument of map or zipWith: a, transposed and replicated over the other axes
//! gathered   a[e], read whenever the nest runs                                      => an argument: backpermute (sizes of the axes) (\is. e) a
//! read       a[e] in a branch, and of what does not vary                            => stays in the scalar function
//! none       no arguments                                                           => generate (sizes of the axes) (\is. ..)
//! several    more than two                                                          => pairs, made by zipWith
//! ```
//! The rules of statements stand in `forms`, those of loops in `loops` and `counted`, those of arguments and results that are products in `ad/src/products.rs`.
//!
//! Generality beyond the text, marked as ours: regular nested parallelism is flattened, where the text refuses it; sizes of inner arrays may not depend on the iteration.
//!
//! Not supported: inject, match; fused, with_acc, acc_view, acc_add; custom; vjp, jvp (expanded before). `while` loops, loops of arrays that collect, and calls of functions that call themselves;
//! products as elements of arrays, as states of loops of arrays, and as results of branches with array operations; array operations in a branch of an inner body; a size that an inner body computes, unless it is a polynomial of sizes; loops
//! of arrays in inner bodies, unless they have few iterations; `stop_gradient` in inner bodies.

mod counted;
mod forms;
mod loops;
mod nests;
mod permutes;
mod sizes;
mod soacs;

use self::counted::counted;
use self::sizes::{Known, Size, Sizes};
use super::combine::{Gradient, gradient};
use super::expression::Temporaries;
use super::fuse::fuse;
use super::language::{AVar, Arr, ArrForm, ArrTy, EVar, Exp, Names, Program as Source, Ty, made};
use super::primal::{Keep, Options};
use super::to_core::{Stored, emit};
use crate::activity::active_variables;
use crate::contract::{Algorithm, Bound, Mode, Status, Unsupported};
use crate::products::{Apart, put_back, taken_apart};
use crate::size_names::SizeNames;
use crate::translation::{STATEMENTS, bound_inside, inlined, place, refusal, wanted_inputs};
use pullback_base::Span;
use pullback_base::index::{IdMap, IdSet};
use pullback_core::traverse::for_each_stm;
use pullback_core::{Atom, Builder, Exp as Core, Lam, Origin, Program, Type, Var};
use pullback_prim::ScalarValue;
use std::collections::{BTreeMap, BTreeSet};

const SOURCES: &[&str] = &[
    include_str!("mod.rs"),
    include_str!("counted.rs"),
    include_str!("forms.rs"),
    include_str!("loops.rs"),
    include_str!("nests.rs"),
    include_str!("permutes.rs"),
    include_str!("soacs.rs"),
];

/// The entry of the table of algorithms.
pub const ALGORITHM: Algorithm = Algorithm {
    id: "accelerate",
    title: "Reverse AD for Accelerate",
    citation: "Smeding, MSc thesis",
    mode: Mode::Reverse,
    bound: Bound::None,
    status: Status::Selectable,
    sources: SOURCES,
    transform: |program, lam, wanted| vjp(program, lam, wanted, Keep::Below(FEW)),
    derivatives: None,
    many: None,
    sizes: true,
};

/// The same, where all temporaries of scalar functions are stored.
pub const STORE: Algorithm = Algorithm {
    id: "accelerate-store",
    title: "Reverse AD for Accelerate, temporaries stored",
    transform: |program, lam, wanted| by(STORE.id, vjp(program, lam, wanted, Keep::Store)),
    ..ALGORITHM
};

/// The same, where none are, and the values of the largest arrays are computed again, too: the least memory.
pub const RECOMPUTE: Algorithm = Algorithm {
    id: "accelerate-recompute",
    title: "Reverse AD for Accelerate, temporaries and large arrays computed again",
    transform: |program, lam, wanted| by(RECOMPUTE.id, vjp(program, lam, wanted, Keep::Checkpoints)),
    ..ALGORITHM
};

/// What a variant refuses, it refuses by its own name.
fn by<T>(id: &'static str, made: Result<T, Unsupported>) -> Result<T, Unsupported> {
    made.map_err(|why| Unsupported { algorithm: id, ..why })
}

/// All variants, with what they do with temporaries.
pub const VARIANTS: [(Algorithm, Keep); 3] =
    [(ALGORITHM, Keep::Below(FEW)), (STORE, Keep::Store), (RECOMPUTE, Keep::Checkpoints)];

/// A scalar function with fewer operations than this is computed again: the author's choice.
const FEW: usize = 20;

/// `\xs y_bars -> ys x_bars`; see [`crate::contract`]. Cost: the size of the program with calls and loops written out, times its depth.
///
/// # Errors
/// [`Unsupported`] for what the language has no form for, and for what the algorithm refuses; with its place.
pub fn vjp(program: &mut Program, lam: &Lam, wanted: &[bool], keep: Keep) -> Result<Lam, Unsupported> {
    // [accelerate.call]  the body of the function
    let whole = prepared(program, lam, wanted);
    // [accelerate.products]  x = (x_1, x_2) first, y_k = y.k last; cotangents the other way round
    let (lam, of_leaves) = taken_apart(program, Apart::All, whole.clone(), wanted);
    let (translated, derived) = step_by_step(program, &lam, &of_leaves, keep)?;
    let derivative = put_together(program, lam, &translated, &derived);
    Ok(put_back(program, (Apart::All, "accelerate.products"), (&whole, wanted), derivative))
}

/// The function and its gradient in the language, for readers. Only names of variables are added to the program.
///
/// # Errors
/// As [`vjp`].
pub fn steps(
    program: &mut Program,
    lam: &Lam,
    wanted: &[bool],
    keep: Keep,
) -> Result<(Translated, Gradient), Unsupported> {
    let lam = prepared(program, lam, wanted);
    let (lam, wanted) = taken_apart(program, Apart::All, lam, wanted);
    step_by_step(program, &lam, &wanted, keep)
}

/// The function with bodies for calls, and with numbers of iterations.
fn prepared(program: &mut Program, lam: &Lam, wanted: &[bool]) -> Lam {
    let lam = inlined(program, lam);
    let wanted = wanted_inputs(program, &lam, wanted);
    counted(program, lam, &wanted)
}

fn step_by_step(
    program: &Program,
    lam: &Lam,
    wanted: &[bool],
    keep: Keep,
) -> Result<(Translated, Gradient), Unsupported> {
    let wanted = wanted_inputs(program, lam, wanted);
    let translated = translate(program, lam, &wanted)?;
    let options = Options { keep, temporaries: Temporaries::Needed, ieee: program.ieee_partials };
    let derived = gradient(&fuse(&translated.source), options);
    Ok((translated, derived))
}

/// A function in the language.
#[derive(Debug)]
pub struct Translated {
    /// The program: its argument is the tuple of the wanted inputs, its result that of the active results that vary.
    pub source: Source,
    /// The wanted inputs.
    pub wanted: Vec<Var>,
    /// Which active results vary.
    pub varies: Vec<bool>,
    /// What the free variables of the program are, and their sizes.
    free: Vec<(AVar, Free, Vec<Size>)>,
    /// The sizes of the wanted inputs.
    inputs: Vec<Vec<Size>>,
    /// The sizes of the results.
    results: Vec<Vec<Size>>,
    known: Known,
}

/// A free variable of the program.
#[derive(Clone, Debug)]
enum Free {
    Value(Var),
    Size(Size),
}

/// The function as a program.
///
/// # Errors
/// [`Unsupported`] for what the language has no form for, with its place.
pub fn translate(program: &Program, lam: &Lam, wanted: &[Var]) -> Result<Translated, Unsupported> {
    FromCore::new(program, lam, wanted).function(lam, wanted)
}

/// What a variable of core is.
#[derive(Clone, Debug)]
enum Part {
    /// A constant, a variable of the nest at this level, or a read at such.
    Scalar(Exp, usize),
    Array(View),
    /// `[0, 1, ..]`
    Iota,
    Tuple(Vec<Part>),
}

/// An array with its first indices, which are variables of the nest at this level.
#[derive(Clone, Debug)]
struct View {
    array: AVar,
    prefix: Vec<Exp>,
    level: usize,
}

/// A counter of a map.
#[derive(Clone, Debug)]
struct Axis {
    counter: EVar,
    size: Size,
}

/// The maps around a statement; the first one has none.
#[derive(Clone, Debug, Default)]
struct Nest {
    axes: Vec<Axis>,
    /// What has been bound; one list for the body, and one for each branch that is open.
    frames: Vec<Vec<(EVar, Exp)>>,
    /// How many of the branches are of arrays.
    of_arrays: usize,
    /// Variables that are arrays over the axes, too.
    lifted: BTreeMap<EVar, AVar>,
}

/// The translation of one function.
struct FromCore<'p> {
    program: &'p Program,
    shapes: SizeNames,
    active: IdSet<Var>,
    /// The variables that are not at hand.
    inner: IdSet<Var>,
    names: Names,
    free: Vec<(AVar, Free)>,
    known: Known,
    size_vars: BTreeMap<Size, AVar>,
    dims: BTreeMap<AVar, Vec<Size>>,
    /// Free variables, and the like: what has no derivative.
    constant: BTreeSet<AVar>,
    parts: IdMap<Var, Part>,
    /// Arrays of one constant.
    constants: IdMap<Var, ScalarValue>,
    /// The let-stack of the function, and of each branch of arrays that is open.
    arrays: Vec<Vec<(AVar, Arr)>>,
    nests: Vec<Nest>,
    left: usize,
    place: Option<Span>,
}

impl<'p> FromCore<'p> {
    fn new(program: &'p Program, lam: &Lam, wanted: &[Var]) -> FromCore<'p> {
        let mut constants = IdMap::new();
        for_each_stm(&lam.body, &mut |stm| {
            if let Core::Replicate(_, Atom::Const(c)) = stm.exp {
                constants.insert(stm.pat[0], c);
            }
        });
        FromCore {
            program,
            shapes: SizeNames::new(program, lam),
            active: active_variables(program, lam, wanted),
            inner: bound_inside(lam),
            names: Names::default(),
            free: Vec::new(),
            known: Known::default(),
            size_vars: BTreeMap::new(),
            dims: BTreeMap::new(),
            constant: BTreeSet::new(),
            parts: IdMap::new(),
            constants,
            arrays: vec![Vec::new()],
            nests: vec![Nest { frames: vec![Vec::new()], ..Nest::default() }],
            left: STATEMENTS,
            place: None,
        }
    }

    fn function(mut self, lam: &Lam, wanted: &[Var]) -> Result<Translated, Unsupported> {
        let mut types = Vec::new();
        for x in wanted {
            self.place = self.program.vars[*x].origin.span;
            types.push(self.array_type(*x)?);
        }
        let param = self.names.fresh("argument", ArrTy::Tuple(types));
        let mut inputs = Vec::new();
        for (k, x) in wanted.iter().enumerate() {
            let dims = self.dims_of(*x)?;
            let a = self.let_(self.program.vars[*x].hint.as_str(), Arr::var(&param).proj(k), dims.clone());
            inputs.push(dims);
            self.parts.insert(*x, self.whole(a));
        }
        let needed = self.needed(&lam.body.stms, &lam.body.result, true);
        for (stm, is_needed) in lam.body.stms.iter().zip(needed) {
            if let Core::Iota(_) = stm.exp {
                self.parts.insert(stm.pat[0], Part::Iota);
            } else if is_needed {
                self.statement(stm)?;
            } else {
                self.learn_size(stm);
            }
        }
        let (mut results, mut varies, mut sizes) = (Vec::new(), Vec::new(), Vec::new());
        for y in &lam.body.result {
            if self.program.is_active(&self.program.atom_type(*y)) {
                varies.push(self.is_active(*y));
                if self.is_active(*y) {
                    let a = self.whole_array(*y)?;
                    let dims = self.dims[&a].clone().into_iter().enumerate();
                    let outside = |(k, n)| {
                        y.var().map_or_else(|| Size::clone(&n), |v| self.at_hand_outside(n.clone(), (v, k)))
                    };
                    sizes.push(dims.map(outside).collect());
                    results.push(Arr::var(&a));
                }
            }
        }
        let lets = self.arrays.pop().unwrap_or_default();
        let body = made(Arr::lets(lets, Arr::tuple(results)));
        let free = self.free.iter().map(|(a, _)| a.clone()).collect();
        let source = made(Source::new(param, free, body, self.names));
        let mut dims = self.dims;
        let with_sizes = |(a, free): (AVar, Free)| {
            let sizes = dims.remove(&a).unwrap_or_default();
            (a, free, sizes)
        };
        let free = self.free.into_iter().map(with_sizes).collect();
        let (wanted, known) = (wanted.to_vec(), self.known);
        Ok(Translated { source, wanted, varies, free, inputs, results: sizes, known })
    }

    fn refuse<T>(&self, construct: &str) -> Result<T, Unsupported> {
        Err(refusal(ALGORITHM.id, construct, self.place))
    }

    fn is_at_hand(&self, v: Var) -> bool {
        !self.inner.contains(&v)
    }

    fn is_active(&self, a: Atom) -> bool {
        a.var().is_some_and(|v| self.active.contains(&v))
    }

    /// The type of an input.
    fn array_type(&self, v: Var) -> Result<ArrTy, Unsupported> {
        let ty = &self.program.vars[v].ty;
        match ty.base() {
            Type::Scalar(s) => Ok(ArrTy::Array(Ty::Scalar(*s), ty.rank())),
            Type::Sum(_) | Type::Named(_) => self.refuse("a value of a sum type"),
            Type::Tuple(_) if ty.rank() > 0 => self.refuse("an array of products"),
            Type::Tuple(_) => self.refuse("a product, as a whole"),
            Type::Acc(_) | Type::Array(_) => self.refuse("an accumulator"),
        }
    }

    /// Binds an array.
    fn let_(&mut self, name: &str, u: Arr, dims: Vec<Size>) -> AVar {
        let a = self.names.fresh(name, u.ty().clone());
        self.dims.insert(a.clone(), dims);
        if let Some(lets) = self.arrays.last_mut() {
            lets.push((a.clone(), u));
        }
        a
    }

    /// An array as the part that stands for it.
    fn whole(&self, a: AVar) -> Part {
        match a.ty() {
            ArrTy::Array(_, 0) => Part::Scalar(made(Exp::index(&a, Exp::tuple(Vec::new()))), 0),
            _ => Part::Array(View { array: a, prefix: Vec::new(), level: 0 }),
        }
    }

    /// An array over the axes of the innermost nest, as the part of each iteration: the opposite of `whole_array`.
    fn own_part(&self, a: AVar) -> Part {
        let counters = self.counters(self.top());
        match a.ty() {
            ArrTy::Array(_, rank) if *rank == counters.len() => {
                Part::Scalar(made(Exp::index(&a, Exp::tuple(counters))), self.top())
            }
            _ => Part::Array(self.own(a)),
        }
    }

    /// A value that is at hand, as a free variable.
    fn free_variable(&mut self, v: Var) -> Result<Part, Unsupported> {
        if !self.is_at_hand(v) {
            return self.refuse("something that an inner body binds and that has no form here");
        }
        let ty = self.array_type(v)?;
        let a = self.names.fresh(self.program.vars[v].hint.as_str(), ty);
        let dims = self.dims_of(v)?;
        self.dims.insert(a.clone(), dims);
        self.constant.insert(a.clone());
        self.free.push((a.clone(), Free::Value(v)));
        let part = self.whole(a);
        self.parts.insert(v, part.clone());
        Ok(part)
    }

    fn each_part(&mut self, atoms: &[Atom]) -> Result<Vec<Part>, Unsupported> {
        atoms.iter().map(|a| self.part(*a)).collect()
    }

    fn part(&mut self, a: Atom) -> Result<Part, Unsupported> {
        match a {
            Atom::Const(c) => Ok(Part::Scalar(Exp::constant(c), 0)),
            Atom::Var(v) => match self.parts.get(&v) {
                Some(part) => Ok(part.clone()),
                None => self.free_variable(v),
            },
        }
    }

    /// A value where we are, as an array of its own over the axes.
    fn whole_array(&mut self, y: Atom) -> Result<AVar, Unsupported> {
        match self.part(y)? {
            Part::Scalar(e, level) => {
                let e = self.carried(&e, level)?;
                self.over_axes("y", &e)
            }
            Part::Array(view) => self.owned(&view),
            Part::Iota | Part::Tuple(_) => self.refuse("a product, as a whole"),
        }
    }
}

// [accelerate.lambda]  the function's own body, then the bindings of value and gradient as core
fn put_together(
    program: &mut Program,
    lam: Lam,
    translated: &Translated,
    Gradient { program: derived, seed, stored: chosen }: &Gradient,
) -> Lam {
    let span = place(program, &lam);
    let mut b = Builder::new(program);
    b.origin = Origin { span, rule: Some(("accelerate.lambda", None)) };
    let Lam { mut params, mut body } = lam;
    let is_active = |b: &Builder<'_>, a: Atom| b.program.is_active(&b.ty(a));
    let active: Vec<usize> = (0..body.result.len()).filter(|k| is_active(&b, body.result[*k])).collect();
    let mut emitter = Sizes::new(&mut b, &translated.known);
    let mut env = BTreeMap::new();
    for (a, free, dims) in &translated.free {
        let leaf = match free {
            Free::Value(v) => Atom::from(*v),
            Free::Size(n) => emitter.atom(n),
        };
        env.insert(a.clone(), stored(&mut emitter, a.ty(), dims, leaf));
    }
    let arrays = |ty: &ArrTy| match ty {
        ArrTy::Tuple(ts) => ts.clone(),
        ArrTy::Array(..) => Vec::new(),
    };
    let inputs = arrays(derived.param.ty()).into_iter().zip(&translated.inputs).zip(&translated.wanted);
    let inputs = inputs.map(|((ty, dims), x)| stored(&mut emitter, &ty, dims, (*x).into())).collect();
    env.insert(derived.param.clone(), Stored::Tuple(inputs));
    let (mut seeds, mut varying) = (Vec::new(), Vec::new());
    let mut of_results = arrays(seed.ty()).into_iter().zip(&translated.results);
    for (k, varies) in active.into_iter().zip(&translated.varies) {
        let ty = emitter.b.ty(body.result[k]);
        emitter.b.program.add_cotangent_types(&ty);
        let Ok(Some(ty)) = emitter.b.program.cotangent(&ty) else { unreachable!("it is active") };
        let y_bar = emitter.b.fresh(ty, "y_bar");
        params.push(y_bar);
        if *varies && let Some((ty, dims)) = of_results.next() {
            seeds.push(stored(&mut emitter, &ty, dims, y_bar.into()));
            varying.push(k);
        }
    }
    env.insert(seed.clone(), Stored::Tuple(seeds));
    let emitted = emit(&mut b, &env, &derived.body, chosen);
    let Stored::Tuple(both) = emitted else { unreachable!("a pair") };
    let [values, gradient] = &both[..] else { unreachable!("a pair") };
    for (k, y) in varying.into_iter().zip(values.atoms()) {
        body.result[k] = y;
    }
    let x_bars = gradient.atoms();
    body.stms.extend(b.finish());
    body.result.extend(x_bars);
    Lam { params, body }
}

fn stored(sizes: &mut Sizes<'_, '_>, ty: &ArrTy, dims: &[Size], leaf: Atom) -> Stored {
    let ArrTy::Array(ty, _) = ty else { unreachable!("an array") };
    let dims = dims.iter().map(|n| sizes.atom(n)).collect();
    Stored::Array { ty: ty.clone(), dims, leaves: vec![leaf] }
}

/// `u`, in the language.
fn arr(form: ArrForm<()>) -> Arr {
    made(Arr::new(form))
}
