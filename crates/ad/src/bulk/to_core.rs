//! Programs of the fragment as functions of core: one more algebra, whose arrays are functions of counters (`delayed`), and are made where they have to be. Sizes stay sizes of arrays, so one function serves all.
//!
//! Core stops at an index outside of an array and at a division by zero, the fragment does not: what might stop stands behind a condition.
//!
//! Rules, of what goes to memory:
//! ```text
//! kept       what is used more than once goes to memory, unless it is a view or costs a few operations
//! inside     of \is. if c then e else 0, where e has fewer counters and c is a view, only e;   where c says k = t, e[t / k] for e
//! ```
//!
//! Guarantees: the function gives the values of the program; it checks that sizes of inputs fit. Sizes of an array are those of its type up to the first one that is zero. The sizes inside of
//! that one are those that core gives it: so an array is put into its shape before its dimensions change places.
//!
//! Not supported: `scatter` of integers (accumulators of core add floats only); sizes that are in no input by themselves.

use super::a_core::{Exp as Source, Program, Term, Ty, Var as Variable, walk};
use super::delayed::{Axes, Axis, Delayed, Element, Form, Stored, Sums, places};
use super::e_symbolic::Derivative;
use super::evaluate::{Env, Mismatch, interpret};
use super::sizes::{Size, SizeVar};
use pullback_base::Symbol;
use pullback_core::{Atom, Builder, Exp, Fun, FunId, Program as CoreProgram, Type};
use pullback_prim::{Op, Prim, Scalar, ScalarValue};
use std::collections::BTreeMap;

/// Adds a program as a function of its inputs.
///
/// # Errors
/// [`Mismatch`] for what core has no form for; nothing is added then. Cost: the size of the program.
pub fn function(core: &mut CoreProgram, program: &Program, name: &str) -> Result<FunId, Mismatch> {
    add(core, name, &program.inputs, &[], &[&program.body])
}

/// Adds a derivative: a function of the inputs and of the cotangent of the result, which gives the value and the cotangents of those inputs that have some.
///
/// # Errors
/// As [`function`].
pub fn derivative(core: &mut CoreProgram, derivative: &Derivative, name: &str) -> Result<FunId, Mismatch> {
    let results: Vec<&Term> =
        std::iter::once(&derivative.value).chain(derivative.cotangents.iter().flatten()).collect();
    add(core, name, &derivative.inputs, &derivative.bindings, &results)
}

fn add(
    core: &mut CoreProgram,
    name: &str,
    inputs: &[Variable],
    bindings: &[(Variable, Term)],
    results: &[&Term],
) -> Result<FunId, Mismatch> {
    let terms = || bindings.iter().map(|(_, t)| t).chain(results.iter().copied());
    let known: Vec<SizeVar> = inputs.iter().flat_map(|x| &x.ty().shape).filter_map(Size::as_var).collect();
    supported(&known, terms())?;
    let types: Vec<Type> = results.iter().map(|t| core_type(t.ty())).collect();
    let mut b = Builder::new(core);
    let params: Vec<_> = inputs.iter().map(|x| b.fresh(core_type(x.ty()), x.name())).collect();
    b.open();
    let mut to = ToCore::new(&mut b);
    let arrays = params.iter().zip(inputs).map(|(p, x)| Stored { atom: (*p).into(), ty: x.ty().clone() });
    let arrays: Vec<Stored> = arrays.collect();
    to.learn(&arrays);
    let arrays = inputs.iter().map(Variable::id).zip(arrays).collect();
    let result = to.all(arrays, (bindings, usize::MAX), results);
    let body = b.close(result);
    Ok(core.funs.push(Fun { name: Symbol::new(name), params, body, results: types, entry: None }))
}

/// What a size is where bindings are put into a function.
#[derive(Clone, Debug)]
pub enum Known {
    /// A dimension of an array.
    Dimension(Atom, usize),
    /// An integer, or zero if it is negative.
    Integer(Atom),
    /// The same of an integer of another type than `i64`.
    Converted(Atom),
    /// A polynomial over the sizes before it, or zero if it is negative.
    AtLeastZero(Size),
}

/// Bindings and results where the builder stands; inputs are these atoms, and the sizes are what this list says, by their places. Bindings
/// from the place `reverse` on are cotangents only, whose zeros stop.
///
/// # Errors
/// As [`function`]; nothing is emitted then.
pub(super) fn emit(
    b: &mut Builder<'_>,
    inputs: &[(Variable, Atom)],
    sizes: &[Known],
    (bindings, reverse): (&[(Variable, Term)], usize),
    results: &[Term],
) -> Result<Vec<Atom>, Mismatch> {
    let known: Vec<SizeVar> = (0..sizes.len()).map(SizeVar::at).collect();
    supported(&known, bindings.iter().map(|(_, t)| t).chain(results))?;
    let mut to = ToCore::new(b);
    to.all_known(sizes);
    let stored = |(x, atom): &(Variable, Atom)| (x.id(), Stored { atom: *atom, ty: x.ty().clone() });
    let results = results.iter().collect::<Vec<_>>();
    Ok(to.all(inputs.iter().map(stored).collect(), (bindings, reverse), &results))
}

/// What these sizes are, where the builder stands.
pub(super) fn extents(b: &mut Builder<'_>, sizes: &[Known]) -> Vec<Atom> {
    ToCore::new(b).all_known(sizes)
}

fn supported<'a>(known: &[SizeVar], terms: impl Iterator<Item = &'a Term>) -> Result<(), Mismatch> {
    let mut refused = None;
    terms.for_each(|t| {
        walk(t, &mut |t| {
            let sizes = t.ty().shape.iter().chain(match t.exp() {
                Source::Size(n) => Some(n),
                _ => None,
            });
            if sizes.flat_map(Size::vars).any(|v| !known.contains(&v)) {
                refused.get_or_insert_with(|| format!("a size of `{t}` is the size of no input"));
            }
            let inner: &[Term] = match t.exp() {
                Source::Build1(_, _, body) => std::slice::from_ref(body),
                Source::Gather(_, _, f) | Source::Scatter(_, _, f) | Source::ArgScatter(_, _, _, f) => {
                    &f.index
                }
                _ => &[],
            };
            if inner.iter().any(Term::has_whole) {
                refused.get_or_insert_with(|| {
                    format!("`scanl` or `argMaxAt` in a function that is not in bulk operations: `{t}`")
                });
            }
            if matches!(t.exp(), Source::Scatter(..)) && !t.ty().is_float() {
                refused.get_or_insert_with(|| format!("core adds up floats only: `{t}`"));
            }
        });
    });
    refused.map_or(Ok(()), |why| Err(Mismatch(why)))
}

pub(super) fn core_type(ty: &Ty) -> Type {
    Type::array_of_rank(Type::Scalar(ty.scalar), ty.shape.len())
}

/// The algebra of arrays of core, which are made only where they have to be.
pub(super) struct ToCore<'b, 'p> {
    pub(super) b: &'b mut Builder<'p>,
    sizes: BTreeMap<SizeVar, Atom>,
    pub(super) axes: Axes,
    /// Counters of the loops that are open.
    pub(super) counters: BTreeMap<Axis, Atom>,
    /// What has been evaluated, in each scope that is open; with the expression, so that it stays the same one.
    pub(super) made: Vec<BTreeMap<usize, (Element, Atom)>>,
    /// Whether what follows is cotangents only, whose zeros are not multiplied as numbers are.
    pub(super) is_reverse: bool,
}

impl ToCore<'_, '_> {
    /// What these sizes are, each over those before it.
    fn all_known(&mut self, sizes: &[Known]) -> Vec<Atom> {
        let mut atoms = Vec::new();
        for (k, size) in sizes.iter().enumerate() {
            let atom = match size {
                Known::Dimension(array, d) => self.b.size(*array, *d),
                Known::Integer(n) => self.b.op2(Op::Max, *n, Atom::i64(0)),
                Known::Converted(n) => {
                    let n = self.b.convert(*n, Scalar::I64);
                    self.b.op2(Op::Max, n, Atom::i64(0))
                }
                Known::AtLeastZero(n) => {
                    let n = self.extent(n);
                    self.b.op2(Op::Max, n, Atom::i64(0))
                }
            };
            self.sizes.insert(SizeVar::at(k), atom);
            atoms.push(atom);
        }
        atoms
    }
    /// What sizes are, from the arguments; arguments that do not fit stop the program.
    fn learn(&mut self, arrays: &[Stored]) {
        let mut others = Vec::new();
        for array in arrays {
            for (d, size) in array.ty.shape.iter().enumerate() {
                let found = self.b.size(array.atom, d);
                match size.as_var() {
                    Some(v) if !self.sizes.contains_key(&v) => {
                        self.sizes.insert(v, found);
                    }
                    _ => others.push((size, found)),
                }
            }
        }
        for (size, found) in others {
            let wanted = self.extent(size);
            let same = self.b.op2(Op::Eq, wanted, found);
            let message = Symbol::new("sizes of arguments differ");
            self.b.emit(Exp::Assert(same, message, vec![wanted, found]), "fits");
        }
    }
    fn new<'b, 'p>(b: &'b mut Builder<'p>) -> ToCore<'b, 'p> {
        ToCore {
            b,
            sizes: BTreeMap::new(),
            axes: Axes::default(),
            counters: BTreeMap::new(),
            made: vec![BTreeMap::new()],
            is_reverse: false,
        }
    }
    /// The results; zeros of the bindings from this place on are not multiplied as numbers are.
    fn all(
        &mut self,
        arrays: Vec<(u32, Stored)>,
        (bindings, reverse): (&[(Variable, Term)], usize),
        results: &[&Term],
    ) -> Vec<Atom> {
        let mut uses: BTreeMap<u32, usize> = BTreeMap::new();
        for t in bindings.iter().map(|(_, t)| t).chain(results.iter().copied()) {
            walk(t, &mut |t| {
                if let Source::Var(x) = t.exp() {
                    *uses.entry(x.id()).or_default() += 1;
                }
            });
        }
        let mut env = Env::new();
        for (x, s) in arrays {
            let array = self.at_hand(&s);
            env.insert(x, array);
        }
        for (k, (x, t)) in bindings.iter().enumerate() {
            self.is_reverse = k >= reverse;
            let value = interpret(self, &mut env, t);
            let value = self.kept(value, uses.get(&x.id()).copied().unwrap_or(0));
            env.insert(x.id(), value);
        }
        self.is_reverse = bindings.len() >= reverse;
        let mut of = |t: &&Term| {
            let value = interpret(self, &mut env, t);
            self.in_memory(&value).atom
        };
        results.iter().map(&mut of).collect()
    }
    pub(super) fn sums(&self) -> Sums {
        if self.is_reverse { Sums::Cotangents } else { Sums::Values }
    }
    /// Something in memory.
    pub(super) fn at_hand(&mut self, s: &Stored) -> Delayed {
        if s.ty.shape.is_empty() {
            return Delayed::scalar(Element::atom(s.atom, s.ty.scalar));
        }
        Delayed::stored(&mut self.axes, s)
    }
    // [bulk_to_core.kept]  what is used more than once goes to memory, unless it is a view or costs a few operations
    pub(super) fn kept(&mut self, t: Delayed, uses: usize) -> Delayed {
        let is_again = t.is_view() || uses <= 1 || t.element.is_cheap();
        if t.is_open() || (!t.axes.is_empty() && is_again) {
            return t;
        }
        self.stored_inside(&t)
    }
    /// In memory. Of a value that is zero where a condition does not hold, and has fewer counters than the condition, only the value.
    // [bulk_to_core.inside]  of \is. if c then e else 0, where e has fewer counters, only e
    fn stored_inside(&mut self, t: &Delayed) -> Delayed {
        let Form::If(c, e, zero) = t.element.form() else { return self.stored(t) };
        if !zero.is_zero() || !c.is_view() {
            return self.stored(t);
        }
        let (places, _) = places(&t.axes, c);
        let e = self.at_places(&places, e);
        let is_free = |a: &&Axis| e.free().contains(*a);
        let axes: Vec<Axis> = t.axes.iter().filter(is_free).copied().collect();
        if axes.len() == t.axes.len() {
            return self.stored(t);
        }
        let shape = t.axes.iter().zip(&t.ty.shape).filter(|(a, _)| is_free(a)).map(|(_, k)| k.clone());
        let ty = Ty::new(shape.collect(), t.ty.scalar);
        let value = Delayed { ty, axes: axes.clone(), element: e };
        let value = self.stored_inside(&value).at_counters(&axes);
        Delayed { element: t.element.guard(value), ..t.clone() }
    }
    /// What is read at more places than it has goes to memory, unless it is a view.
    pub(super) fn settled(&mut self, t: &Delayed) -> Delayed {
        if t.is_open() || t.is_view() { t.clone() } else { self.stored_inside(t) }
    }
    /// The array with all sizes that its type says: where it has no elements, a map may have left it with others.
    pub(super) fn in_shape(&mut self, t: &Stored) -> Atom {
        let Some((_, outer)) = t.ty.shape.split_last().filter(|(_, outer)| !outer.is_empty()) else {
            return t.atom;
        };
        if outer.iter().all(|n| n.as_constant().is_some_and(|n| n > 0)) {
            return t.atom;
        }
        let shape = self.extents(&t.ty.shape);
        self.b.emit(Exp::Reshape { shape, from: t.ty.shape.len(), array: t.atom }, "whole")
    }
    pub(super) fn extent(&mut self, n: &Size) -> Atom {
        match n.as_constant() {
            Some(n) => Atom::i64(n),
            None => {
                let products = n.products().map(|(factor, vars)| (factor, vars.to_vec())).collect::<Vec<_>>();
                let each = products.into_iter().map(|(factor, vars)| {
                    let sizes = vars.iter().map(|v| self.sizes[v]).collect::<Vec<_>>();
                    let factor = (factor != 1 || sizes.is_empty()).then(|| Atom::i64(factor));
                    self.joined(Op::Mul, factor.into_iter().chain(sizes).collect())
                });
                let each = each.collect();
                self.joined(Op::Add, each)
            }
        }
    }
    fn joined(&mut self, op: Op, atoms: Vec<Atom>) -> Atom {
        let one = atoms.into_iter().reduce(|a, b| self.b.op2(op, a, b));
        one.unwrap_or_else(|| unreachable!("a polynomial that is not zero"))
    }
    pub(super) fn extents(&mut self, shape: &[Size]) -> Vec<Atom> {
        shape.iter().map(|n| self.extent(n)).collect()
    }
    pub(super) fn full(&mut self, x: ScalarValue, shape: &[Size]) -> Atom {
        if shape.is_empty() {
            return Atom::Const(x);
        }
        let extents = self.extents(shape);
        self.b.emit(Exp::Replicate(extents, Atom::Const(x)), "zeros")
    }
    /// A primitive, zero where it would stop.
    pub(super) fn total(&mut self, op: Prim, args: &[Atom]) -> Atom {
        let Prim::Op(which, scalar) = op else { return self.b.emit(Exp::Prim(op, args.to_vec()), "t") };
        if !op.may_stop() {
            return self.b.emit(Exp::Prim(op, args.to_vec()), "t");
        }
        let (zero, one) = (Atom::Const(scalar.zero()), Atom::Const(scalar.one()));
        let stops = match which {
            Op::Pow => self.b.op2(Op::Lt, args[1], zero),
            _ => self.b.op2(Op::Eq, args[1], zero),
        };
        let by = self.b.select(stops, one, args[1]);
        let value = self.b.emit(Exp::Prim(op, vec![args[0], by]), "t");
        self.b.select(stops, zero, value)
    }
}
