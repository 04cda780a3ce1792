//! Functions of core as programs of the fragment, and the algorithm `bulk`: a function of core becomes its reverse derivative, by all steps of this folder.
//!
//! Source: T. Smeding, thesis, chapter 4, for the algorithm; 4.2.2 and 4.4.2 for what a user's language adds. The translation is ours (decision 75).
//!
//! Judgement: a statement `let ys = e` becomes bindings `ys_1 = t_1 ..` of terms. A function `\xs -> ys` becomes `\xs y_bars -> ys x_bars`: its own body, then the bindings of its cotangents.
//!
//! Types:
//! ```text
//! r           Array [] r                       (t, u)       one term for each component
//! []..[]r     Array [k_1, .., k_n] r           all others   refused, where a derivative goes through them
//! k           a polynomial over sizes of arrays at hand and integers at hand
//! ```
//!
//! Notation: *at hand*: bound outside of all inner bodies of the function, or outside of the function · *active*: varies with a wanted input · `t as sh` is `t`, or `gather sh t (\is. is)` if its shape is another
//! polynomial; it is used where core has checked that the sizes are equal
//!
//! Rules:
//! ```text
//! known      an active value that is at hand is not computed again, but read
//! at hand    a value that is not active is an input without derivative;  sizes and their sums and products, iota, and arrays of one constant are terms
//! sizes      two that core asserts to be equal, outside of inner bodies, are one variable;  a number of elements that may be negative is max(k, 0), in an inner body
//! products   \x -> y, where x and y are products => \x_1 x_2 -> y_1 y_2, with x = (x_1, x_2) first and y_k = proj y k last
//! atom, prim, tuple, proj, size, iota, replicate, rearrange, array_lit: as they are;  literals of rows: as the first row
//! if         if c then us else vs              => cond c u v, of each result;  both bodies are bound outside
//! loop       for i < 3 do body                 => body three times
//! folded     for i < n do body                 => index (scanl n (\a [x ..]. body) z ts) [n],  where ts are what the body computes without its state a
//! packed     states of one type                => one array: [t_1, .., t_n], or all elements of t_1, then of t_2 ..
//! collected  for i < n do body, collecting t   => build1 n (\i. t [index (scanl ..) [i] / a])
//! call       f xs                              => the body of f, before all else
//! index      a[ix]                             => index a ix
//! slice      a[s], a[s + d], .., n of them     => gather (n ::: rest) a (\[i]. [s + d i])                  gather, reverse, rotate: their indices
//! update     a with [ix] = v                   => build1 k (\i. .. cond (i = ix_1 and ..) v (index a [i ..]))
//! reshape    as (sh) a                         => reshape sh a, or gather sh a (\is. the index of the same place) if only core knows that the numbers of elements agree
//! concat     a ++ b                            => build1 (k + l) (\i. cond (i < k) (index a [i]) (index b [i - k]))
//! map        map n f as                        => build1 n (\i. f (index as [i])), of each result
//! reduce     reduce n (+) z a                  => z + sumOuter (a as n ::: rest);   other operators: f (f z a[0]) a[1] .. if n is a small number
//!            reduce n max z a                  => cond (j < 0 or x <= z) z x, where j = argMax (a as [n]) and x = index (a as [n]) [j];   min: argMin, z <= x
//!            z where j < 0, if no number is worse than z
//!            reduce n (\ps qs. if p_k < q_k then qs else ps) zs as  => cond (0 <= j and z_k < index a_k [j]) (index a [j]) z, of each a, where j = argMax a_k;   q_k < p_k: argMin
//!            reduce n (\p i q j. (max p q, the least counter of it)) (the worst number, -1) a (iota n)  => the maximum of a, argMax a;   min: argMin
//! scan       scan n f z a                      => the states after the first one of scanl n f z [a as n ::: rest];   reductions by other operators: its last state
//! hist       hist (+) dst is vs                => dst + scatter (shape dst) vs (\[i]. [index is [i]])
//!            hist max dst is vs                => build1 k (\p. cond (j < 0 or index vs [j] <= index dst [p]) (index dst [p]) (index vs [j])), where j = index (argMaxAt [k] vs (\[i]. [index is [i]])) [p];   min: argMinAt
//! scatter    scatter dst is vs                 => build1 k (\p. cond (j < 0) (index dst [p]) (index vs [j])), where j = index (argMaxAt [k] (iota n) (\[i]. [index is [i]])) [p]
//! plus       x + y                             => x + (y as the shape of x)
//! marked, par: their bodies                    assert, check: nothing, the function's own body has them
//! ```
//!
//! Differences from the paper:
//! 1. The fragment is not the user's language. Constructs without a form are refused, or computed by the function itself where they are not active.
//! 2. A map with several results shares: each statement of its body becomes an array (B3), and its results are of these arrays.
//! 3. Both alternatives of `if` are evaluated (4.4.2). So zeros stop at all partial derivatives of what is used in alternatives only ([`Zeros::StopAll`]): the one that was not
//!    chosen contributes nothing, whatever its value is.
//!
//! Guarantee: the derivative stops where the function stops, and its first results are the function's, to the bit: the function's body runs first. The fragment is total, so nothing that comes after it
//! stops. The work is a constant times that of the function, without `if`, whose alternatives both cost, and where no map has zero iterations. But an element that is read or overwritten outside of a map
//! costs as much as its array. Of equal numbers in a reduction by `max` or `min` the first one gets the cotangent, `z` before all others, as in Fast CHAD; `z` gets it too where no element is a number.
//! Of -0 and 0 the one that is chosen is read, whichever the function has. The same holds of histograms. Of rows that a scatter sends to one place, the last one gets the cotangent.
//!
//! Not supported: inject, match; fused, with_acc, acc_view, acc_add; update_slice with a distance that is not a constant; custom; vjp, jvp (expanded before). Histograms with other operators than `+`, `min` and `max` of numbers; histograms of integers by `+` in inner bodies; `while`; loops, scans and reductions of many iterations that `loops` says; sizes that differ between the iterations of a map; branches that give arrays of different sizes; `stop_gradient` in inner bodies; arrays of products.

mod forms;
mod loops;
mod sizes;
mod soacs;

use super::a_core::{Names, Term, Var as Variable};
use super::b_bot::{Step, transform_all};
use super::e_symbolic::cotangents;
use super::evaluate::Mismatch;
use super::partials::Zeros;
use super::sizes::{Size, SizeVar};
use super::to_core::{Known, emit};
use crate::activity::active_variables;
use crate::contract::{Algorithm, Bound, Mode, Status, Unsupported};
use crate::products::{Apart, put_back, taken_apart};
use crate::size_names::SizeNames;
use crate::translation::{STATEMENTS, bound_inside, inlined, needed, place, refusal, wanted_inputs};
use pullback_base::Span;
use pullback_base::index::{IdMap, IdSet};
use pullback_core::shapes::Dim;
use pullback_core::{Atom, Builder, Exp, Lam, Origin, Program, Stm, Var};
use std::collections::BTreeMap;

/// The entry of the table of algorithms.
pub const ALGORITHM: Algorithm = Algorithm {
    id: "bulk",
    title: "Bulk dual numbers",
    citation: "Smeding, thesis, chapter 4",
    mode: Mode::Reverse,
    bound: Bound::None,
    status: Status::Selectable,
    sources: &[
        include_str!("mod.rs"),
        include_str!("forms.rs"),
        include_str!("loops.rs"),
        include_str!("sizes.rs"),
        include_str!("soacs.rs"),
    ],
    transform: vjp,
    derivatives: None,
    many: None,
    sizes: true,
};

/// Bindings, each a term over the inputs and the bindings before it, and results, which are terms over all of them.
#[derive(Clone, Debug)]
pub struct Listing {
    /// The bindings.
    pub bindings: Vec<(Variable, Term)>,
    /// The results.
    pub results: Vec<Term>,
}

/// What the derivative of a function is made of, step by step.
#[derive(Clone, Debug)]
pub struct Steps {
    /// What the sizes `n0`, `n1`, .. are.
    pub sizes: Vec<Known>,
    /// The inputs, each with its variable of core.
    pub inputs: Vec<(Variable, Var)>,
    /// Arrays of the reverse pass that the function's own body makes, each with its variable of core.
    pub known: Vec<(Variable, Var)>,
    /// The inputs with cotangents.
    pub wanted: Vec<Variable>,
    /// The function in the fragment: those results that vary with a wanted input.
    pub source: Listing,
    /// The rules of the bulk-operation transformation, in order.
    pub applied: Vec<Step>,
    /// The function in bulk operations.
    pub bulk: Listing,
    /// The cotangent of each result that can have one; `None`: the result does not vary.
    pub seeds: Vec<Option<Variable>>,
    /// The symbolic reverse pass: primal bindings and shared cotangents, and the cotangent of each wanted input.
    pub reverse: Listing,
    /// From which of its bindings on all are cotangents, whose zeros stop.
    pub backwards: usize,
    /// Where a zero cotangent stops.
    pub zeros: Zeros,
}

/// `\xs -> ys` to `\xs y_bars -> ys x_bars`; see [`crate::contract`]. Cost: the size of the program, with loops and calls written out, times its depth.
///
/// # Errors
/// [`Unsupported`] where a derivative goes through something that the fragment has no form for; with its place.
pub fn vjp(program: &mut Program, lam: &Lam, wanted: &[bool]) -> Result<Lam, Unsupported> {
    // [bulk.call]  the body of f
    let whole = inlined(program, lam);
    // [bulk.products]  x = (x_1, x_2) first, y_k = proj y k last; cotangents the other way round
    let (lam, of_components) = taken_apart(program, Apart::Varying, whole.clone(), wanted);
    let made = step_by_step(program, &lam, &of_components)?;
    let derivative = put_together(program, lam, &made)?;
    Ok(put_back(program, (Apart::Varying, "bulk.products"), (&whole, wanted), derivative))
}

/// What [`vjp`] makes the derivative of, for readers. Only names of variables are added to the program.
///
/// # Errors
/// As [`vjp`].
pub fn steps(program: &mut Program, lam: &Lam, wanted: &[bool]) -> Result<Steps, Unsupported> {
    let lam = inlined(program, lam);
    let (lam, wanted) = taken_apart(program, Apart::Varying, lam, wanted);
    step_by_step(program, &lam, &wanted)
}

/// The function in the fragment, the bulk-operation transformation, dual arrays and the symbolic reverse pass.
pub(super) fn step_by_step(program: &Program, lam: &Lam, wanted: &[bool]) -> Result<Steps, Unsupported> {
    let wanted = wanted_inputs(program, lam, wanted);
    let mut from = FromCore::new(program, lam, &wanted);
    let results = from.lambda(lam, &wanted)?;
    let zeros = from.zeros()?;
    let FromCore { mut names, sizes, inputs, mut scopes, known, .. } = from;
    let seeds: Vec<Option<Variable>> =
        results.iter().map(|t| t.as_ref().map(|t| names.fresh("c", t.ty().clone()))).collect();
    let bindings = scopes.pop().unwrap_or_default();
    let source = Listing { bindings, results: results.into_iter().flatten().collect() };
    let mut bulk = source.clone();
    let applied = transform_all(&mut names, &mut bulk.bindings, &mut bulk.results);
    let variable = |x: &Var| inputs.iter().find(|(_, v)| v == x).map(|(variable, _)| variable.clone());
    let wanted: Vec<Variable> = wanted.iter().filter_map(variable).collect();
    let known = known.into_iter().filter(|(x, _)| bulk.bindings.iter().any(|(y, _)| x == y));
    let known: Vec<(u32, Variable, Var)> = known.map(|(x, v)| (x.id(), names.again(&x), v)).collect();
    let cs = || seeds.iter().flatten();
    let variables: Vec<Variable> =
        cs().chain(inputs.iter().map(|(x, _)| x)).chain(known.iter().map(|(_, y, _)| y)).cloned().collect();
    let at = known.iter().map(|(x, y, _)| (*x, y.clone())).collect();
    let pairs: Vec<(Term, Variable)> = bulk.results.iter().cloned().zip(cs().cloned()).collect();
    let made = cotangents(&names, (&variables, &wanted), (&bulk.bindings, &at), &pairs, zeros);
    let made = made.map_err(|why| mismatch(&why, place(program, lam)))?;
    let backwards = if zeros == Zeros::Multiply { usize::MAX } else { made.reverse };
    let reverse = Listing { bindings: made.bindings, results: made.results };
    let known = known.into_iter().map(|(_, y, v)| (y, v)).collect();
    Ok(Steps { sizes, inputs, known, wanted, source, applied, bulk, seeds, reverse, backwards, zeros })
}

// [bulk.lambda]  the function's own body, then the bindings of its cotangents, as core
fn put_together(program: &mut Program, lam: Lam, made: &Steps) -> Result<Lam, Unsupported> {
    let span = place(program, &lam);
    let mut b = Builder::new(program);
    b.origin = Origin { span, rule: Some(("bulk.lambda", None)) };
    let Lam { mut params, mut body } = lam;
    let active: Vec<Atom> = body.result.iter().copied().filter(|a| b.program.is_active(&b.ty(*a))).collect();
    let mut inputs = Vec::new();
    for (y, c) in active.into_iter().zip(&made.seeds) {
        let ty = b.ty(y);
        b.program.add_cotangent_types(&ty);
        let Ok(Some(ty)) = b.program.cotangent(&ty) else { unreachable!("it is active") };
        let y_bar = b.fresh(ty, "y_bar");
        params.push(y_bar);
        inputs.extend(c.clone().map(|c| (c, Atom::from(y_bar))));
    }
    inputs.extend(made.inputs.iter().chain(&made.known).map(|(x, v)| (x.clone(), Atom::from(*v))));
    let Listing { bindings, results } = &made.reverse;
    let bindings = (&bindings[..], made.backwards);
    let x_bars = emit(&mut b, &inputs, &made.sizes, bindings, results).map_err(|why| mismatch(&why, span))?;
    body.stms.extend(b.finish());
    body.result.extend(x_bars);
    Ok(Lam { params, body })
}

fn mismatch(why: &Mismatch, span: Option<Span>) -> Unsupported {
    refusal(ALGORITHM.id, &format!("this function: {why}"), span)
}

/// What a variable of core is in the fragment.
#[derive(Clone, Debug)]
enum Part {
    Array(Term),
    Tuple(Vec<Part>),
    /// Nothing: it is at hand, or nobody asks for it.
    AtHand,
}

/// The translation of one function.
struct FromCore<'p> {
    program: &'p Program,
    shapes: SizeNames,
    active: IdSet<Var>,
    /// The variables that are not at hand.
    inner: IdSet<Var>,
    names: Names,
    sizes: Vec<Known>,
    size_vars: BTreeMap<Dim, SizeVar>,
    at_least_zero: BTreeMap<Size, SizeVar>,
    inputs: Vec<(Variable, Var)>,
    /// Bindings that are at hand, too.
    known: Vec<(Variable, Var)>,
    parts: IdMap<Var, Part>,
    /// The bindings of the function, and of each `build1` that is open.
    scopes: Vec<Vec<(Variable, Term)>>,
    /// How many branches are open.
    branches: usize,
    /// Whether something active is evaluated that may not be chosen.
    chooses: bool,
    left: usize,
    place: Option<Span>,
}

impl<'p> FromCore<'p> {
    fn new(program: &'p Program, lam: &Lam, inputs: &[Var]) -> FromCore<'p> {
        FromCore {
            program,
            // [bulk.assert]  sizes that are asserted to be equal are one variable, and so are the width of an operation and the sizes of its arrays
            shapes: SizeNames::new(program, lam),
            active: active_variables(program, lam, inputs),
            inner: bound_inside(lam),
            names: Names::default(),
            sizes: Vec::new(),
            size_vars: BTreeMap::new(),
            at_least_zero: BTreeMap::new(),
            inputs: Vec::new(),
            known: Vec::new(),
            parts: IdMap::new(),
            scopes: vec![Vec::new()],
            branches: 0,
            chooses: false,
            left: STATEMENTS,
            place: None,
        }
    }

    /// The terms of the active results.
    fn lambda(&mut self, lam: &Lam, inputs: &[Var]) -> Result<Vec<Option<Term>>, Unsupported> {
        for x in inputs {
            self.place = self.program.vars[*x].origin.span;
            self.input(*x)?;
        }
        let needed = self.needed(&lam.body.stms, &lam.body.result, true);
        for (stm, is_needed) in lam.body.stms.iter().zip(needed) {
            self.place = self.program.vars[stm.pat[0]].origin.span;
            if is_needed {
                let live: Vec<bool> = stm.pat.iter().map(|v| self.active.contains(v)).collect();
                self.statement(stm, &live)?;
            } else {
                self.at_hand(stm);
            }
        }
        let mut results = Vec::new();
        for y in &lam.body.result {
            let is_active = y.var().is_some_and(|v| self.active.contains(&v));
            if self.program.is_active(&self.program.atom_type(*y)) {
                results.push(if is_active { Some(self.array(*y)?) } else { None });
            }
        }
        Ok(results)
    }

    /// Zeros stop everywhere, where something is evaluated that was not chosen.
    fn zeros(&self) -> Result<Zeros, Unsupported> {
        match (self.chooses, self.program.ieee_partials) {
            (true, true) => {
                self.refuse("a branch, where zeros are multiplied as numbers are: both sides are evaluated")
            }
            (true, false) => Ok(Zeros::StopAll),
            (false, true) => Ok(Zeros::Multiply),
            (false, false) => Ok(Zeros::Stop),
        }
    }

    fn refuse<T>(&self, construct: &str) -> Result<T, Unsupported> {
        Err(refusal(ALGORITHM.id, construct, self.place))
    }

    fn is_at_hand(&self, v: Var) -> bool {
        !self.inner.contains(&v)
    }

    /// Whether code here runs whenever the function runs.
    fn is_outside(&self) -> bool {
        self.scopes.len() == 1 && self.branches == 0
    }

    fn is_active(&self, a: Atom) -> bool {
        a.var().is_some_and(|v| self.active.contains(&v))
    }

    /// Those statements that the results need; of those outside, only active ones, because others are at hand.
    fn needed(&self, stms: &[Stm], results: &[Atom], outside: bool) -> Vec<bool> {
        needed(stms, results, &|v| !outside || self.active.contains(v))
    }

    // [bulk.at_hand]  sizes, iota, arrays of one constant: as terms, so that the transformation knows them
    fn at_hand(&mut self, stm: &Stm) {
        let part = match &stm.exp {
            Exp::Atom(a) => a.var().and_then(|v| self.parts.get(&v)).cloned(),
            Exp::Size(..) => match self.called(self.shapes.name(stm.pat[0].into())) {
                Dim::Value(v) if v == stm.pat[0] => None,
                d => self.dim(d).ok().map(|n| Part::Array(Term::size(&n))),
            },
            Exp::Prim(prim, args) => self.size_of(*prim, args).map(|n| Part::Array(Term::size(&n))),
            Exp::Iota(_) | Exp::Replicate(_, Atom::Const(_)) => {
                self.form(stm, &[true]).ok().and_then(|mut p| p.pop())
            }
            _ => None,
        };
        if let Some(part) = part {
            self.parts.insert(stm.pat[0], part);
        }
    }

    /// What a value is; one that is at hand becomes an input.
    fn part(&mut self, a: Atom) -> Result<Part, Unsupported> {
        let v = match a {
            Atom::Const(c) => return Ok(Part::Array(Term::scalar(c))),
            Atom::Var(v) => v,
        };
        match self.parts.get(&v) {
            Some(part @ (Part::Array(_) | Part::Tuple(_))) => Ok(part.clone()),
            Some(Part::AtHand) | None => Ok(Part::Array(self.input(v)?)),
        }
    }

    fn array(&mut self, a: Atom) -> Result<Term, Unsupported> {
        match self.part(a)? {
            Part::Array(t) => Ok(t),
            Part::Tuple(_) | Part::AtHand => self.refuse("a product, as a whole"),
        }
    }

    fn arrays(&mut self, atoms: &[Atom]) -> Result<Vec<Term>, Unsupported> {
        atoms.iter().map(|a| self.array(*a)).collect()
    }
}
