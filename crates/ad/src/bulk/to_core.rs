//! Programs of the fragment as functions of core: one more algebra, whose arrays are variables. Sizes stay sizes of arrays, so one function serves all.
//!
//! Every operation becomes what core has for it, or maps: `op` of arrays is a nest of maps, `gather` and `build1` are maps over indices, `scatter` adds to an accumulator. Core stops at an index outside of an
//! array and at a division by zero, the fragment does not: what might stop stands behind a condition.
//!
//! Guarantees: the function gives the values of the program; it checks that sizes of inputs fit. Sizes of an array are those of its type up to the first one that is zero. The sizes inside of
//! that one are those that core gives it: so an array is put into its shape before its dimensions change places.
//!
//! Not supported: `scatter` of integers (accumulators of core add floats only); sizes that are in no input by themselves.

use super::a_core::{Exp as Form, Extremum, Program, Term, Ty, Var as Variable, walk};
use super::e_symbolic::Derivative;
use super::evaluate::{Algebra, Closure, Env, Mismatch, interpret};
use super::sizes::{Size, SizeVar};
use super::values::Tensor;
use pullback_base::Symbol;
use pullback_core::{Atom, Builder, Exp, Fun, FunId, Lam, Program as CoreProgram, Soac, Type};
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
    let mut to = ToCore { b: &mut b, sizes: BTreeMap::new() };
    let arrays = params.iter().zip(inputs).map(|(p, x)| Stored { atom: (*p).into(), ty: x.ty().clone() });
    let arrays: Vec<Stored> = arrays.collect();
    to.learn(&arrays);
    let env = inputs.iter().map(Variable::id).zip(arrays).collect();
    let result = to.all(env, bindings, results);
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
    /// A polynomial over the sizes before it, or zero if it is negative.
    AtLeastZero(Size),
}

/// Bindings and results where the builder stands; inputs are these atoms, and the sizes are what this list says, by their places.
///
/// # Errors
/// As [`function`]; nothing is emitted then.
pub(super) fn emit(
    b: &mut Builder<'_>,
    inputs: &[(Variable, Atom)],
    sizes: &[Known],
    bindings: &[(Variable, Term)],
    results: &[Term],
) -> Result<Vec<Atom>, Mismatch> {
    let known: Vec<SizeVar> = (0..sizes.len()).map(size_var).collect();
    supported(&known, bindings.iter().map(|(_, t)| t).chain(results))?;
    let mut to = ToCore { b, sizes: BTreeMap::new() };
    to.all_known(sizes);
    let stored = |(x, atom): &(Variable, Atom)| (x.id(), Stored { atom: *atom, ty: x.ty().clone() });
    Ok(to.all(inputs.iter().map(stored).collect(), bindings, &results.iter().collect::<Vec<_>>()))
}

fn size_var(k: usize) -> SizeVar {
    SizeVar(u32::try_from(k).unwrap_or(u32::MAX))
}

/// What these sizes are, where the builder stands.
pub(super) fn extents(b: &mut Builder<'_>, sizes: &[Known]) -> Vec<Atom> {
    ToCore { b, sizes: BTreeMap::new() }.all_known(sizes)
}

fn supported<'a>(known: &[SizeVar], terms: impl Iterator<Item = &'a Term>) -> Result<(), Mismatch> {
    let mut refused = None;
    terms.for_each(|t| {
        walk(t, &mut |t| {
            let sizes = t.ty().shape.iter().chain(match t.exp() {
                Form::Size(n) => Some(n),
                _ => None,
            });
            if sizes.flat_map(Size::vars).any(|v| !known.contains(&v)) {
                refused.get_or_insert_with(|| format!("a size of `{t}` is the size of no input"));
            }
            if matches!(t.exp(), Form::Scatter(..)) && !t.ty().is_float() {
                refused.get_or_insert_with(|| format!("core adds up floats only: `{t}`"));
            }
        });
    });
    refused.map_or(Ok(()), |why| Err(Mismatch(why)))
}

fn core_type(ty: &Ty) -> Type {
    Type::array_of_rank(Type::Scalar(ty.scalar), ty.shape.len())
}

/// A variable or a constant of core, with its type in the fragment.
#[derive(Clone, Debug)]
struct Stored {
    atom: Atom,
    ty: Ty,
}

/// The algebra of core's variables.
struct ToCore<'b, 'p> {
    b: &'b mut Builder<'p>,
    sizes: BTreeMap<SizeVar, Atom>,
}

/// What stands at a place: of the elements there, and its index.
type Each<'f, S> = &'f mut dyn FnMut(&mut S, &[Atom], &[Stored]) -> Atom;

impl ToCore<'_, '_> {
    /// What these sizes are, each over those before it.
    fn all_known(&mut self, sizes: &[Known]) -> Vec<Atom> {
        let mut atoms = Vec::new();
        for (k, size) in sizes.iter().enumerate() {
            let atom = match size {
                Known::Dimension(array, d) => self.b.size(*array, *d),
                Known::Integer(n) => self.b.op2(Op::Max, *n, Atom::i64(0)),
                Known::AtLeastZero(n) => {
                    let n = self.extent(n);
                    self.b.op2(Op::Max, n, Atom::i64(0))
                }
            };
            self.sizes.insert(size_var(k), atom);
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
    fn all(&mut self, mut env: Env<Stored>, bindings: &[(Variable, Term)], results: &[&Term]) -> Vec<Atom> {
        for (x, t) in bindings {
            let value = interpret(self, &mut env, t);
            env.insert(x.id(), value);
        }
        results.iter().map(|t| interpret(self, &mut env, t).atom).collect()
    }
    /// The array with all sizes that its type says: where it has no elements, a map may have left it with others.
    fn in_shape(&mut self, t: &Stored) -> Atom {
        let Some((_, outer)) = t.ty.shape.split_last().filter(|(_, outer)| !outer.is_empty()) else {
            return t.atom;
        };
        if outer.iter().all(|n| n.as_constant().is_some_and(|n| n > 0)) {
            return t.atom;
        }
        let shape = self.extents(&t.ty.shape);
        self.b.emit(Exp::Reshape { shape, from: t.ty.shape.len(), array: t.atom }, "whole")
    }
    fn extent(&mut self, n: &Size) -> Atom {
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
    fn extents(&mut self, shape: &[Size]) -> Vec<Atom> {
        shape.iter().map(|n| self.extent(n)).collect()
    }
    fn full(&mut self, x: ScalarValue, shape: &[Size]) -> Atom {
        if shape.is_empty() {
            return Atom::Const(x);
        }
        let extents = self.extents(shape);
        self.b.emit(Exp::Replicate(extents, Atom::Const(x)), "zeros")
    }
    /// A nest of maps over these arrays, or over indices where there are none.
    fn nest(
        &mut self,
        shape: &[Size],
        arrays: &[Atom],
        indices: &mut Vec<Stored>,
        f: Each<'_, Self>,
    ) -> Atom {
        let Some((k, rest)) = shape.split_first() else { return f(self, arrays, indices) };
        let width = self.extent(k);
        let iota = arrays.is_empty().then(|| self.b.emit(Exp::Iota(width), "is"));
        let over: Vec<Atom> = arrays.iter().copied().chain(iota).collect();
        let elems: Vec<Type> = over.iter().map(|a| self.b.elem(*a)).collect();
        let params: Vec<_> = elems.into_iter().map(|t| self.b.fresh(t, "x")).collect();
        let inner: Vec<Atom> = params.iter().take(arrays.len()).map(|p| (*p).into()).collect();
        if iota.is_some() {
            indices.push(Stored { atom: params[0].into(), ty: Ty::index() });
        }
        self.b.open();
        let result = self.nest(rest, &inner, indices, f);
        let body = self.b.close(vec![result]);
        if iota.is_some() {
            indices.pop();
        }
        self.b.emit(Exp::Soac(Soac::Map { width, lam: Lam { params, body }, arrays: over }), "ys")
    }
    /// A primitive, zero where it would stop.
    fn total(&mut self, op: Prim, args: &[Atom]) -> Atom {
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
    fn is_inside(&mut self, ix: &[Stored], shape: &[Size]) -> Atom {
        let mut inside = Atom::bool(true);
        for (i, k) in ix.iter().zip(shape) {
            let k = self.extent(k);
            let (from, to) = (self.b.op2(Op::Le, Atom::i64(0), i.atom), self.b.op2(Op::Lt, i.atom, k));
            inside = self.b.op2(Op::And, inside, from);
            inside = self.b.op2(Op::And, inside, to);
        }
        inside
    }
    fn either(
        &mut self,
        c: Atom,
        then: impl FnOnce(&mut Self) -> Atom,
        other: impl FnOnce(&mut Self) -> Atom,
    ) -> Atom {
        self.b.open();
        let result = then(self);
        let then = self.b.close(vec![result]);
        self.b.open();
        let result = other(self);
        let other = self.b.close(vec![result]);
        self.b.emit(Exp::If(c, then, other), "r")
    }
    fn at(&mut self, t: &Stored, ix: &[Stored]) -> Stored {
        let ty = Ty::new(t.ty.shape[ix.len()..].to_vec(), t.ty.scalar);
        if ix.is_empty() {
            return t.clone();
        }
        let inside = self.is_inside(ix, &t.ty.shape);
        let atoms: Vec<Atom> = ix.iter().map(|i| i.atom).collect();
        let atom = self.either(
            inside,
            |this| this.b.index(t.atom, &atoms),
            |this| this.full(ty.scalar.zero(), &ty.shape),
        );
        Stored { atom, ty }
    }
}

impl Algebra for ToCore<'_, '_> {
    type Array = Stored;

    fn constant(&mut self, c: &Tensor<ScalarValue>) -> Stored {
        let atoms: Vec<Atom> = c.elements.iter().map(|x| Atom::Const(*x)).collect();
        let atom = match (c.shape.len(), atoms.first()) {
            (0, Some(x)) => *x,
            (rank, _) => {
                let flat = self.b.emit(Exp::ArrayLit(Type::Scalar(c.scalar), atoms), "c");
                let shape = self.extents(&c.ty().shape);
                if rank == 1 { flat } else { self.b.emit(Exp::Reshape { shape, from: 1, array: flat }, "c") }
            }
        };
        Stored { atom, ty: c.ty() }
    }
    fn size(&mut self, n: &Size) -> Stored {
        Stored { atom: self.extent(n), ty: Ty::index() }
    }
    fn iota(&mut self, k: &Size) -> Stored {
        let width = self.extent(k);
        Stored { atom: self.b.emit(Exp::Iota(width), "is"), ty: Ty::new(vec![k.clone()], Scalar::I64) }
    }
    fn cond(&mut self, b: &Stored, u: &Stored, v: &Stored) -> Stored {
        Stored { atom: self.either(b.atom, |_| u.atom, |_| v.atom), ty: u.ty.clone() }
    }
    fn op(&mut self, op: Prim, args: &[Stored]) -> Stored {
        let atoms: Vec<Atom> = args.iter().map(|a| a.atom).collect();
        let shape = args[0].ty.shape.clone();
        let atom = self.nest(&shape, &atoms, &mut Vec::new(), &mut |this, xs, _| this.total(op, xs));
        Stored { atom, ty: Ty::new(shape, op.result()) }
    }
    fn index(&mut self, t: &Stored, ix: &[Stored]) -> Stored {
        self.at(t, ix)
    }
    fn one_hot(&mut self, sh: &[Size], ix: &[Stored], t: &Stored) -> Stored {
        let zeros = self.full(t.ty.scalar.zero(), sh);
        let inside = self.is_inside(ix, sh);
        let atoms = ix.iter().map(|i| i.atom).collect();
        let ty = Ty::new(sh.to_vec(), t.ty.scalar);
        let with = |this: &mut Self| this.b.emit(Exp::Update(zeros, atoms, t.atom), "hot");
        let atom = if ix.is_empty() { t.atom } else { self.either(inside, with, |_| zeros) };
        Stored { atom, ty }
    }
    fn sum_outer(&mut self, t: &Stored) -> Stored {
        let (k, rest) = t.ty.shape.split_first().unwrap_or_else(|| unreachable!("checked"));
        let columns = self.columns(t);
        let width = self.extent(k);
        let atom = self.nest(rest, &[columns], &mut Vec::new(), &mut |this, xs, _| this.b.sum(width, xs[0]));
        Stored { atom, ty: Ty::new(rest.to_vec(), t.ty.scalar) }
    }
    fn arg_outer(&mut self, which: Extremum, t: &Stored) -> Stored {
        let (k, rest) = t.ty.shape.split_first().unwrap_or_else(|| unreachable!("checked"));
        let columns = self.columns(t);
        let width = self.extent(k);
        let each: Each<'_, Self> = &mut |this, xs, _| this.first_extremum(which, width, xs[0]);
        let atom = self.nest(rest, &[columns], &mut Vec::new(), each);
        Stored { atom, ty: Ty::new(rest.to_vec(), Scalar::I64) }
    }
    fn gather(&mut self, sh: &[Size], t: &Stored, f: &Closure<Stored>) -> Stored {
        let mut f = f.clone();
        let outer = &sh[..f.fun.params.len()];
        let atom = self.nest(outer, &[], &mut Vec::new(), &mut |this, _, is| {
            let ix = f.call(this, is.to_vec());
            this.at(t, &ix).atom
        });
        Stored { atom, ty: Ty::new(sh.to_vec(), t.ty.scalar) }
    }
    fn scatter(&mut self, sh: &[Size], t: &Stored, f: &Closure<Stored>) -> Stored {
        let ty = Ty::new(sh.to_vec(), t.ty.scalar);
        if sh.is_empty() {
            return self.added_up(t, f.fun.params.len(), ty);
        }
        let zeros = self.full(t.ty.scalar.zero(), sh);
        let acc = self.b.fresh(Type::acc(core_type(&ty)), "acc");
        let mut f = f.clone();
        let outer = t.ty.shape[..f.fun.params.len()].to_vec();
        self.b.open();
        self.nest(&outer, &[], &mut Vec::new(), &mut |this, _, is| {
            let ix: Vec<Atom> = f.call(this, is.to_vec()).into_iter().map(|i| i.atom).collect();
            let from: Vec<Atom> = is.iter().map(|i| i.atom).collect();
            let value = this.b.index(t.atom, &from);
            this.b.emit(Exp::AccAdd(acc.into(), ix, value), "done")
        });
        let body = self.b.close(Vec::new());
        let atom = self.b.emit(Exp::WithAcc(vec![zeros], Lam { params: vec![acc], body }), "sent");
        Stored { atom, ty }
    }
    fn stack(&mut self, ts: &[Stored]) -> Stored {
        let ty = &ts[0].ty;
        let atoms = ts.iter().map(|t| t.atom).collect();
        let atom = self.b.emit(Exp::ArrayLit(core_type(ty), atoms), "rows");
        let n = Size::constant(i64::try_from(ts.len()).unwrap_or(i64::MAX));
        Stored { atom, ty: Ty::new([&[n], ty.shape.as_slice()].concat(), ty.scalar) }
    }
    fn replicate(&mut self, k: &Size, t: &Stored) -> Stored {
        let width = self.extent(k);
        let atom = self.b.emit(Exp::Replicate(vec![width], t.atom), "copies");
        Stored { atom, ty: Ty::new([std::slice::from_ref(k), &t.ty.shape].concat(), t.ty.scalar) }
    }
    fn transpose(&mut self, j: &[usize], t: &Stored) -> Stored {
        let mut shape = t.ty.shape.clone();
        j.iter().enumerate().for_each(|(a, from)| shape[a] = t.ty.shape[*from].clone());
        let atom = if j.is_empty() {
            t.atom
        } else {
            let whole = self.in_shape(t);
            self.b.emit(Exp::Rearrange(j.to_vec(), whole), "turned")
        };
        Stored { atom, ty: Ty::new(shape, t.ty.scalar) }
    }
    fn reshape(&mut self, sh: &[Size], t: &Stored) -> Stored {
        let ty = Ty::new(sh.to_vec(), t.ty.scalar);
        let atom = match (t.ty.shape.len(), sh.len()) {
            (0, 0) => t.atom,
            // An array of one element, and its element.
            (0, _) => self.full_of(t.atom, sh),
            (rank, 0) => self.b.index(t.atom, &vec![Atom::i64(0); rank]),
            (from, _) => {
                let shape = self.extents(sh);
                self.b.emit(Exp::Reshape { shape, from, array: t.atom }, "flat")
            }
        };
        Stored { atom, ty }
    }
    fn build1(&mut self, ty: &Ty, f: &mut dyn FnMut(&mut Self, Stored) -> Stored) -> Stored {
        let atom = self.nest(&ty.shape[..1], &[], &mut Vec::new(), &mut |this, _, is| {
            let i = is[0].clone();
            f(this, i).atom
        });
        Stored { atom, ty: ty.clone() }
    }
}

impl ToCore<'_, '_> {
    /// The outermost dimension as the innermost one.
    fn columns(&mut self, t: &Stored) -> Atom {
        let rank = t.ty.shape.len();
        let whole = self.in_shape(t);
        if rank == 1 {
            return whole;
        }
        self.b.emit(Exp::Rearrange((1..rank).chain([0]).collect(), whole), "columns")
    }
    /// Where the first of the smallest or largest numbers is; -1 if there is no number.
    fn first_extremum(&mut self, which: Extremum, width: Atom, column: Atom) -> Atom {
        let scalar = self.b.elem(column).scalar().unwrap_or_else(|| unreachable!("numbers"));
        let (op, worst) = match which {
            Extremum::Min => (Op::Min, f64::INFINITY),
            Extremum::Max => (Op::Max, f64::NEG_INFINITY),
        };
        let best = self.reduced(Prim::Op(op, scalar).in_operator(), scalar.from_f64(worst), width, column);
        let is = self.b.emit(Exp::Iota(width), "is");
        let nowhere = Atom::i64(i64::MAX);
        let places = self.b.map(width, &[column, is], |b, xs| {
            let here = b.op2(Op::Eq, xs[0].into(), best);
            vec![b.select(here, xs[1].into(), nowhere)]
        });
        let first = Prim::Op(Op::Min, Scalar::I64);
        let first = self.reduced(first, ScalarValue::I64(i64::MAX), width, places[0].into());
        let is_nowhere = self.b.op2(Op::Eq, first, nowhere);
        self.b.select(is_nowhere, Atom::i64(-1), first)
    }
    fn reduced(&mut self, op: Prim, neutral: ScalarValue, width: Atom, array: Atom) -> Atom {
        let t = self.b.elem(array);
        let lam = self.b.lam(&[t.clone(), t], "x", |b, p| {
            vec![b.emit(Exp::Prim(op, vec![p[0].into(), p[1].into()]), "t")]
        });
        let neutral = vec![Atom::Const(neutral)];
        let soac = Soac::Reduce { width, lam, neutral, arrays: vec![array], commutative: true };
        self.b.emit(Exp::Soac(soac), "best")
    }
    fn full_of(&mut self, x: Atom, shape: &[Size]) -> Atom {
        let extents = self.extents(shape);
        self.b.emit(Exp::Replicate(extents, x), "copies")
    }
    /// A number to which all elements are sent.
    fn added_up(&mut self, t: &Stored, dimensions: usize, ty: Ty) -> Stored {
        let sum = (0..dimensions).fold(t.clone(), |t, _| self.sum_outer(&t));
        Stored { atom: sum.atom, ty }
    }
}
