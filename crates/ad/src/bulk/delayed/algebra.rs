//! The operations of the language on delayed arrays: an algebra, in the order of its trait.
//!
//! Assumes and guarantees what the module above does.

use super::moves::inside;
use super::{Axis, Delayed, Element, Stored, indexed, reads_once, scattered, summed};
use crate::bulk::a_core::{Extremum, Fold, Ty, Var};
use crate::bulk::evaluate::{Algebra, Closure, Env, interpret};
use crate::bulk::sizes::Size;
use crate::bulk::to_core::{ToCore, core_type};
use crate::bulk::values::Tensor;
use crate::fast_chad::operator::NOBODY;
use pullback_core::{Atom, Exp, Loop, LoopAttrs, LoopForm, Soac, Type};
use pullback_prim::{Op, Prim, Scalar, ScalarValue};
use std::sync::Arc;

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
    // [bulk_delayed.arg_at]  hist min of the counters of those numbers that are the best one of their place
    fn arg_scatter(&mut self, which: Extremum, sh: &[Size], t: &Delayed, f: &Closure<Delayed>) -> Delayed {
        let (scalar, room) = (t.ty.scalar, vec![Size::product(sh)]);
        let ix = self.called(f, &t.axes);
        let place = self.place_in(sh, &ix);
        let (places, values) = (self.flat(t, place.clone()), self.flat(t, t.element.clone()));
        let worst = which.worst(scalar);
        let best = self.best_at(&room, (which, worst), (places, values));
        let best = self.at_hand(&Stored { atom: best, ty: Ty::new(room.clone(), scalar) });
        let best = indexed(&self.axes, &best, std::slice::from_ref(&place)).element;
        let is_best = Element::op2(Op::Eq, scalar, &t.element, &best);
        let is_any = Element::op2(Op::Ne, scalar, &t.element, &Element::constant(worst));
        let holds = Element::op2(Op::And, Scalar::Bool, &is_best, &is_any);
        let counter = t.axes.last().map_or_else(|| Element::i64(0), |a| Element::counter(*a));
        let counters = self.flat(t, Element::either(&holds, counter, Element::i64(NOBODY)));
        let found = self.best_at(&room, (Extremum::Min, ScalarValue::I64(NOBODY)), (places, counters));
        let found = self.at_hand(&Stored { atom: found, ty: Ty::new(room, Scalar::I64) });
        let is_nowhere = Element::op2(Op::Eq, Scalar::I64, &found.element, &Element::i64(NOBODY));
        let element = Element::either(&is_nowhere, Element::i64(-1), found.element.clone());
        self.reshape(sh, &Delayed { element, ..found })
    }
    fn stack(&mut self, ts: &[Delayed]) -> Delayed {
        let n = Size::constant(i64::try_from(ts.len()).unwrap_or(i64::MAX));
        let ty = Ty::new([std::slice::from_ref(&n), ts[0].ty.shape.as_slice()].concat(), ts[0].ty.scalar);
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
        let row = |(x, t): (&Var, &Delayed)| {
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
        let is = self.b.emit(Exp::Iota(width), "is");
        let (t, i) = (Type::Scalar(scalar), Type::Scalar(Scalar::I64));
        let operator = of_two(which, scalar);
        let lam = self.b.lam(&[t.clone(), i.clone(), t, i], "x", |b, p| {
            let best = b.emit(Exp::Prim(operator, vec![p[0].into(), p[2].into()]), "best");
            let mut place = |x: Atom, i: Atom| {
                let is_best = b.op2(Op::Eq, x, best);
                b.select(is_best, i, Atom::i64(NOBODY))
            };
            let (left, right) = (place(p[0].into(), p[1].into()), place(p[2].into(), p[3].into()));
            vec![best, b.op2(Op::Min, left, right)]
        });
        let neutral = vec![Atom::Const(which.worst(scalar)), Atom::i64(-1)];
        let soac = Soac::Reduce { width, lam, neutral, arrays: vec![column, is], commutative: true };
        let place = Atom::from(self.b.emit_all(Exp::Soac(soac), "best")[1]);
        let is_nowhere = self.b.op2(Op::Eq, place, Atom::i64(NOBODY));
        self.b.select(is_nowhere, Atom::i64(-1), place)
    }
    /// The best of the numbers that are sent to each of so many places, or what none is worse than.
    fn best_at(
        &mut self,
        room: &[Size],
        (which, worst): (Extremum, ScalarValue),
        (indices, values): (Atom, Atom),
    ) -> Atom {
        let (width, extents, t) = (self.b.size(values, 0), self.extents(room), Type::Scalar(worst.scalar()));
        let operator = of_two(which, worst.scalar());
        let lam = self.b.lam(&[t.clone(), t], "x", |b, p| {
            vec![b.emit(Exp::Prim(operator, vec![p[0].into(), p[1].into()]), "best")]
        });
        let (neutral, values) = (vec![Atom::Const(worst)], vec![values]);
        let dst = vec![self.b.emit(Exp::Replicate(extents, neutral[0]), "room")];
        self.b.emit(Exp::Soac(Soac::Hist { width, lam, neutral, dst, indices, values }), "best")
    }
    /// The number of the element at an index, row by row; -1 outside.
    fn place_in(&mut self, sh: &[Size], ix: &[Element]) -> Element {
        let on = |op, a: &Element, b: &Element| Element::op2(op, Scalar::I64, a, b);
        let row = |place: Element, (k, i): (&Size, &Element)| {
            on(Op::Add, &on(Op::Mul, &place, &Element::size(k)), i)
        };
        let place = sh.iter().zip(ix).fold(Element::i64(0), row);
        Element::either(&inside(&self.axes, ix, sh), place, Element::i64(-1))
    }
    /// An array of these elements in memory, with one dimension for all counters of another one.
    fn flat(&mut self, like: &Delayed, element: Element) -> Atom {
        let ty = Ty::new(like.ty.shape.clone(), element.scalar());
        let whole = Delayed { axes: like.axes.clone(), element, ty };
        let flat = self.reshape(&[Size::product(&like.ty.shape)], &whole);
        self.in_memory(&flat).atom
    }
}

/// The better one of two numbers; what is no number is never the better one.
fn of_two(which: Extremum, scalar: Scalar) -> Prim {
    let op = if which == Extremum::Min { Op::Min } else { Op::Max };
    Prim::Op(op, scalar).in_operator()
}
