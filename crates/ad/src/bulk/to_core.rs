//! Programs of the fragment as functions of core: one more algebra, whose arrays are variables. Sizes stay sizes of arrays, so one function serves all.
//!
//! Every operation becomes what core has for it, or maps: `op` of arrays is a nest of maps, `gather` and `build1` are maps over indices, `scatter` adds to an accumulator. Core stops at an index outside of an
//! array and at a division by zero, the fragment does not: what might stop stands behind a condition.
//!
//! Guarantees: the function gives the values of the program; it checks that sizes of inputs fit. Sizes of an array are those of its type up to the first one that is zero. The sizes inside of
//! that one are those that core gives it: so an array is put into its shape before its dimensions change places.
//!
//! Not supported: `scatter` of integers (accumulators of core add floats only); sizes that are in no input by themselves.

use super::a_core::{Exp as Source, Extremum, Fold, Program, Term, Ty, Var as Variable, walk};
use super::delayed::{
    Axes, Axis, Delayed, Element, Form, Stored, Sums, indexed, reads_once, scattered, summed,
};
use super::e_symbolic::Derivative;
use super::evaluate::{Algebra, Closure, Env, Mismatch, interpret};
use super::sizes::{Size, SizeVar};
use super::values::Tensor;
use pullback_base::Symbol;
use pullback_core::{
    Atom, Builder, Exp, Fun, FunId, Loop, LoopAttrs, LoopForm, Program as CoreProgram, Soac, Type,
};
use pullback_prim::{Op, Prim, Scalar, ScalarValue};
use std::collections::BTreeMap;
use std::sync::Arc;

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
    let known: Vec<SizeVar> = (0..sizes.len()).map(size_var).collect();
    supported(&known, bindings.iter().map(|(_, t)| t).chain(results))?;
    let mut to = ToCore::new(b);
    to.all_known(sizes);
    let stored = |(x, atom): &(Variable, Atom)| (x.id(), Stored { atom: *atom, ty: x.ty().clone() });
    let results = results.iter().collect::<Vec<_>>();
    Ok(to.all(inputs.iter().map(stored).collect(), (bindings, reverse), &results))
}

fn size_var(k: usize) -> SizeVar {
    SizeVar(u32::try_from(k).unwrap_or(u32::MAX))
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
                Source::Gather(_, _, f) | Source::Scatter(_, _, f) => &f.index,
                _ => &[],
            };
            if inner.iter().any(Term::has_scanl) {
                refused.get_or_insert_with(|| {
                    format!("`scanl` in a function that is not in bulk operations: `{t}`")
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
    fn sums(&self) -> Sums {
        if self.is_reverse { Sums::Cotangents } else { Sums::Values }
    }
    /// Something in memory.
    fn at_hand(&mut self, s: &Stored) -> Delayed {
        if s.ty.shape.is_empty() {
            return Delayed::scalar(Element::atom(s.atom, s.ty.scalar));
        }
        Delayed::stored(&mut self.axes, s)
    }
    // [bulk_to_core.kept]  what is read more than once goes to memory, unless making it again costs less
    fn kept(&mut self, t: Delayed, uses: usize) -> Delayed {
        let is_again = t.is_view() || uses <= 1 || t.element.is_cheap();
        if t.is_open() || (!t.axes.is_empty() && is_again) {
            return t;
        }
        self.stored_inside(&t)
    }
    /// In memory. Of a value that is zero where a condition does not hold, and has fewer counters than the condition, only the value.
    // [bulk_to_core.inside]  \is. if c then e else 0, where c is a view and e has fewer counters: e in memory
    fn stored_inside(&mut self, t: &Delayed) -> Delayed {
        let Form::If(c, e, zero) = t.element.form() else { return self.stored(t) };
        let is_free = |a: &&Axis| e.free().contains(*a);
        let axes: Vec<Axis> = t.axes.iter().filter(is_free).copied().collect();
        if !zero.is_zero() || !c.is_view() || axes.len() == t.axes.len() {
            return self.stored(t);
        }
        let shape = t.axes.iter().zip(&t.ty.shape).filter(|(a, _)| is_free(a)).map(|(_, k)| k.clone());
        let value =
            Delayed { ty: Ty::new(shape.collect(), t.ty.scalar), axes: axes.clone(), element: e.clone() };
        let value = self.stored_inside(&value).at_counters(&axes);
        Delayed { element: t.element.guard(value), ..t.clone() }
    }
    /// What is read at more places than it has goes to memory, unless it is a view.
    fn settled(&mut self, t: &Delayed) -> Delayed {
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
    /// `op` of elements; what a cotangent is that is zero outside of a condition stays that.
    // [bulk_delayed.guarded]  (if c then u else 0) * v = if c then u * v else 0;  the sum of two with one condition
    fn operation(&mut self, op: Prim, es: Vec<Element>) -> Element {
        if let (true, Prim::Op(which, _), [a, b]) = (self.is_reverse, op, &es[..]) {
            match (which, a.as_guarded(), b.as_guarded()) {
                (Op::Mul | Op::StrongMul, Some((_, u)), _) => {
                    return a.guard(self.operation(op, vec![u.clone(), b.clone()]));
                }
                (Op::Add, Some((c, u)), Some((d, v))) if c.is_same(d) => {
                    return a.guard(self.operation(op, vec![u.clone(), v.clone()]));
                }
                _ => {}
            }
        }
        Element::op(op, es)
    }
}

/// How many arrays a stack may have that is not put together. A choice, not measured.
const FEW: usize = 4;

impl Algebra for ToCore<'_, '_> {
    type Array = Delayed;

    fn share(&mut self, t: Delayed) -> Delayed {
        self.kept(t, 2)
    }
    fn constant(&mut self, c: &Tensor<ScalarValue>) -> Delayed {
        let ty = c.ty();
        let is_one = |x: &ScalarValue| c.elements.first() == Some(x);
        if let Some(x) = c.elements.first().filter(|_| c.elements.iter().all(is_one)) {
            return Delayed { axes: self.axes.all(&ty.shape), element: Element::constant(*x), ty };
        }
        let atoms: Vec<Atom> = c.elements.iter().map(|x| Atom::Const(*x)).collect();
        let flat = self.b.emit(Exp::ArrayLit(Type::Scalar(c.scalar), atoms), "c");
        let shape = self.extents(&ty.shape);
        let is_flat = shape.len() == 1;
        let reshaped = Exp::Reshape { shape, from: 1, array: flat };
        let atom = if is_flat { flat } else { self.b.emit(reshaped, "c") };
        self.at_hand(&Stored { atom, ty })
    }
    fn size(&mut self, n: &Size) -> Delayed {
        Delayed::scalar(Element::size(n))
    }
    fn iota(&mut self, k: &Size) -> Delayed {
        let i = self.axes.fresh(k);
        let ty = Ty::new(vec![k.clone()], Scalar::I64);
        Delayed { axes: vec![i], element: Element::counter(i), ty }
    }
    fn cond(&mut self, b: &Delayed, u: &Delayed, v: &Delayed) -> Delayed {
        let c = self.settled(b).element;
        let element = Element::either(&c, u.element.clone(), v.at_counters(&u.axes));
        Delayed { axes: u.axes.clone(), element, ty: u.ty.clone() }
    }
    fn op(&mut self, op: Prim, args: &[Delayed]) -> Delayed {
        let axes = args[0].axes.clone();
        let elements = args.iter().map(|a| a.at_counters(&axes)).collect();
        let element = self.operation(op, elements);
        Delayed { axes, element, ty: Ty::new(args[0].ty.shape.clone(), op.result()) }
    }
    fn index(&mut self, t: &Delayed, ix: &[Delayed]) -> Delayed {
        let t = if ix.iter().any(Delayed::is_open) { self.settled(t) } else { t.clone() };
        let ix: Vec<Element> = ix.iter().map(|i| i.element.clone()).collect();
        indexed(&self.axes, &t, &ix)
    }
    fn one_hot(&mut self, sh: &[Size], ix: &[Delayed], t: &Delayed) -> Delayed {
        let ix: Vec<Element> = ix.iter().map(|i| i.element.clone()).collect();
        self.moved(sh, t, &ix)
    }
    fn sum_outer(&mut self, t: &Delayed) -> Delayed {
        let (k, rest) = t.ty.shape.split_first().unwrap_or_else(|| unreachable!("checked"));
        let of = self.sums();
        let element = summed(&mut self.axes, t.axes[0], k, &t.element, of);
        Delayed { axes: t.axes[1..].to_vec(), element, ty: Ty::new(rest.to_vec(), t.ty.scalar) }
    }
    fn arg_outer(&mut self, which: Extremum, t: &Delayed) -> Delayed {
        let (k, rest) = t.ty.shape.split_first().unwrap_or_else(|| unreachable!("checked"));
        let own = self.axes.fresh(k);
        let element = t.at_counters(&[&[own], &t.axes[1..]].concat());
        let element = Element::arg(which, own, k, element);
        Delayed { axes: t.axes[1..].to_vec(), element, ty: Ty::new(rest.to_vec(), Scalar::I64) }
    }
    fn gather(&mut self, sh: &[Size], t: &Delayed, f: &Closure<Delayed>) -> Delayed {
        let params = self.axes.all(&sh[..f.fun.params.len()]);
        let ix = self.called(f, &params);
        let t = if reads_once(&params, &ix) { t.clone() } else { self.settled(t) };
        let at = indexed(&self.axes, &t, &ix);
        let axes = [params, at.axes].concat();
        Delayed { axes, element: at.element, ty: Ty::new(sh.to_vec(), t.ty.scalar) }
    }
    fn scatter(&mut self, sh: &[Size], t: &Delayed, f: &Closure<Delayed>) -> Delayed {
        let ix = self.called(f, &t.axes[..f.fun.params.len()]);
        self.moved(sh, t, &ix)
    }
    fn stack(&mut self, ts: &[Delayed]) -> Delayed {
        let n = Size::constant(i64::try_from(ts.len()).unwrap_or(i64::MAX));
        let ty = Ty::new([&[n.clone()], ts[0].ty.shape.as_slice()].concat(), ts[0].ty.scalar);
        if ts.len() > FEW && !ts.iter().any(Delayed::is_open) {
            let atoms = ts.iter().map(|t| self.in_memory(t).atom).collect();
            let atom = self.b.emit(Exp::ArrayLit(core_type(&ts[0].ty), atoms), "rows");
            return self.at_hand(&Stored { atom, ty });
        }
        let j = self.axes.fresh(&n);
        let rows: Vec<Element> = ts.iter().map(|t| t.at_counters(&ts[0].axes)).collect();
        let mut rows = rows.into_iter().enumerate().rev();
        let Some((_, last)) = rows.next() else { unreachable!("a stack has rows") };
        let element = rows.fold(last, |other, (k, row)| {
            let is_row = Element::op2(Op::Eq, Scalar::I64, &Element::counter(j), &Element::i64(k as i64));
            Element::either(&is_row, row, other)
        });
        Delayed { axes: [&[j], ts[0].axes.as_slice()].concat(), element, ty }
    }
    fn replicate(&mut self, k: &Size, t: &Delayed) -> Delayed {
        let t = self.settled(t);
        let i = self.axes.fresh(k);
        let ty = Ty::new([std::slice::from_ref(k), &t.ty.shape].concat(), t.ty.scalar);
        Delayed { axes: [&[i], t.axes.as_slice()].concat(), element: t.element, ty }
    }
    fn transpose(&mut self, j: &[usize], t: &Delayed) -> Delayed {
        let (mut axes, mut shape) = (t.axes.clone(), t.ty.shape.clone());
        for (a, from) in j.iter().enumerate() {
            axes[a] = t.axes[*from];
            shape[a] = t.ty.shape[*from].clone();
        }
        Delayed { axes, element: t.element.clone(), ty: Ty::new(shape, t.ty.scalar) }
    }
    fn reshape(&mut self, sh: &[Size], t: &Delayed) -> Delayed {
        let ty = Ty::new(sh.to_vec(), t.ty.scalar);
        if t.axes.iter().all(|a| !t.element.free().contains(a)) {
            // An array of one number.
            return Delayed { axes: self.axes.all(sh), element: t.element.clone(), ty };
        }
        if t.is_open() {
            let axes = self.axes.all(sh);
            let at = self.unflattened(&axes, t);
            return Delayed { axes, element: at, ty };
        }
        let stored = self.in_memory(t);
        if sh.is_empty() {
            let zeros = vec![Element::i64(0); t.axes.len()];
            let stored = self.at_hand(&stored);
            return indexed(&self.axes, &stored, &zeros);
        }
        let shape = self.extents(sh);
        let reshaped = Exp::Reshape { shape, from: t.ty.shape.len(), array: stored.atom };
        let atom = self.b.emit(reshaped, "flat");
        self.at_hand(&Stored { atom, ty })
    }
    // [bulk_to_core.scanl]  a loop that collects its states, and the last one
    fn scanl(&mut self, f: &Arc<Fold>, z: &Delayed, ts: &[Delayed]) -> Delayed {
        let n = self.extent(&f.size);
        let start = self.in_memory(z);
        let mut read = |t: &Delayed| if t.is_view() { t.clone() } else { self.stored(t) };
        let arrays: Vec<Delayed> = ts.iter().map(&mut read).collect();
        let (i, state) = (self.b.fresh(Type::Scalar(Scalar::I64), "i"), self.b.fresh(core_type(&z.ty), "a"));
        self.open();
        let given = self.at_hand(&Stored { atom: state.into(), ty: z.ty.clone() });
        let at = Element::atom(i.into(), Scalar::I64);
        let row = |(x, t): (&Variable, &Delayed)| {
            let element = t.at(std::slice::from_ref(&at));
            (x.id(), Delayed { axes: t.axes[1..].to_vec(), element, ty: x.ty().clone() })
        };
        let mut env: Env<Delayed> = f.params[1..].iter().zip(&arrays).map(row).collect();
        env.insert(f.params[0].id(), given);
        let next = interpret(self, &mut env, &f.body);
        let next = self.in_memory(&next).atom;
        let body = self.close(vec![next, state.into()]);
        let (params, form) = (vec![(state, start.atom)], LoopForm::For { i, n });
        let whole = Loop { params, form, body, collect: 1, attrs: LoopAttrs::default() };
        let all = self.b.emit_all(Exp::Loop(whole), "a");
        let before = Ty::new([std::slice::from_ref(&f.size), &z.ty.shape].concat(), z.ty.scalar);
        let before = self.in_shape(&Stored { atom: all[1].into(), ty: before });
        let last = self.b.emit(Exp::ArrayLit(core_type(&z.ty), vec![all[0].into()]), "last");
        let atom = self.b.emit(Exp::Concat(vec![before, last]), "states");
        let size = f.size.plus(&Size::constant(1));
        self.at_hand(&Stored { atom, ty: Ty::new([&[size], z.ty.shape.as_slice()].concat(), z.ty.scalar) })
    }
    fn build1(&mut self, ty: &Ty, f: &mut dyn FnMut(&mut Self, Delayed) -> Delayed) -> Delayed {
        let i = self.axes.fresh(&ty.shape[0]);
        let row = f(self, Delayed::scalar(Element::counter(i)));
        Delayed { axes: [&[i], row.axes.as_slice()].concat(), element: row.element, ty: ty.clone() }
    }
}

impl ToCore<'_, '_> {
    /// The components of an index at these counters.
    fn called(&mut self, f: &Closure<Delayed>, at: &[Axis]) -> Vec<Element> {
        let is = at.iter().map(|a| Delayed::scalar(Element::counter(*a))).collect();
        f.clone().call(self, is).into_iter().map(|i| i.element).collect()
    }
    /// `scatter sh t (\is. ix)`, where `is` are the first counters of `t`.
    fn moved(&mut self, sh: &[Size], t: &Delayed, ix: &[Element]) -> Delayed {
        // A number is computed before it is sent.
        let t = &if t.axes.is_empty() { self.settled(t) } else { t.clone() };
        let of = self.sums();
        if let Some(moved) = scattered(&mut self.axes, sh, t, ix, (false, of)) {
            return moved;
        }
        if t.is_open() || ix.iter().any(|e| e.free().iter().any(|a| !t.axes.contains(a))) {
            let moved = scattered(&mut self.axes, sh, t, ix, (true, of));
            return moved.unwrap_or_else(|| unreachable!("it may cost anything"));
        }
        // [bulk_delayed.sent]  an accumulator to which each element is added
        let ty = Ty::new(sh.to_vec(), t.ty.scalar);
        let rest = &t.axes[t.axes.len() - (sh.len() - ix.len())..];
        let all = ix.iter().cloned().chain(rest.iter().map(|a| Element::counter(*a))).collect();
        let atom = self.sent(&t.axes, &ty, all, t.element.clone());
        self.at_hand(&Stored { atom, ty })
    }
    /// The element of a reshaped array at these counters.
    fn unflattened(&mut self, at: &[Axis], t: &Delayed) -> Element {
        let on = |op, a: &Element, b: &Element| Element::op2(op, Scalar::I64, a, b);
        let mut place = Element::i64(0);
        for a in at {
            let k = self.axes.size(*a).cloned().unwrap_or_default();
            place = on(Op::Add, &on(Op::Mul, &place, &Element::size(&k)), &Element::counter(*a));
        }
        let component = |(d, k): (usize, &Size)| {
            let stride = Element::size(&Size::product(&t.ty.shape[d + 1..]));
            on(Op::Mod, &on(Op::Div, &place, &stride), &Element::size(k))
        };
        let ix: Vec<Element> = t.ty.shape.iter().enumerate().map(component).collect();
        t.at(&ix)
    }
    /// Where the first of the smallest or largest numbers is; -1 if none is better than the worst of all.
    pub(super) fn first_extremum(&mut self, which: Extremum, width: Atom, column: Atom) -> Atom {
        let scalar = self.b.elem(column).scalar().unwrap_or_else(|| unreachable!("numbers"));
        let op = if which == Extremum::Min { Op::Min } else { Op::Max };
        let nowhere = Atom::i64(i64::MAX);
        let is = self.b.emit(Exp::Iota(width), "is");
        let (t, i) = (Type::Scalar(scalar), Type::Scalar(Scalar::I64));
        let operator = Prim::Op(op, scalar).in_operator();
        let lam = self.b.lam(&[t.clone(), i.clone(), t, i], "x", |b, p| {
            let best = b.emit(Exp::Prim(operator, vec![p[0].into(), p[2].into()]), "best");
            let mut place = |x: Atom, i: Atom| {
                let is_best = b.op2(Op::Eq, x, best);
                b.select(is_best, i, nowhere)
            };
            let (left, right) = (place(p[0].into(), p[1].into()), place(p[2].into(), p[3].into()));
            vec![best, b.op2(Op::Min, left, right)]
        });
        let neutral = vec![Atom::Const(which.worst(scalar)), Atom::i64(-1)];
        let soac = Soac::Reduce { width, lam, neutral, arrays: vec![column, is], commutative: true };
        let place = Atom::from(self.b.emit_all(Exp::Soac(soac), "best")[1]);
        let is_nowhere = self.b.op2(Op::Eq, place, nowhere);
        self.b.select(is_nowhere, Atom::i64(-1), place)
    }
}
