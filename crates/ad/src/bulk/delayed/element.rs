//! Elements as expressions over counters: how they are made, and the rules that make them smaller.
//!
//! Guarantees: expressions share parts, and no function here copies one part twice; a counter that a `sum` or `arg` binds is bound nowhere else, so nothing that is put in for a counter is caught.

use super::{Axes, Axis};
use crate::bulk::a_core::Extremum;
use crate::bulk::evaluate::total;
use crate::bulk::sizes::Size;
use pullback_core::Atom;
use pullback_prim::{Op, Prim, Scalar, ScalarValue};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// The expression of an element. Copies share it.
#[derive(Clone, Debug)]
pub(in crate::bulk) struct Element(Rc<Node>);

/// Its forms.
#[derive(Clone, Debug)]
pub(in crate::bulk) enum Form {
    /// `c`
    Const(ScalarValue),
    /// A size, as an integer.
    Size(Size),
    /// A scalar of core.
    Atom(Atom),
    /// `i`
    Counter(Axis),
    /// `a[e_1, .., e_n]`: an element of an array of core of this shape; the place is inside of it, or there is an [`Form::Inside`] around it.
    Read(Atom, Rc<[Size]>, Vec<Element>),
    /// `op e_1 .. e_n`, zero where it would stop.
    Op(Prim, Vec<Element>),
    /// `if c then u else v`: one of the two is evaluated.
    If(Element, Element, Element),
    /// `if c then u else 0`, where only `c` shows that the places that `u` reads are inside of their arrays.
    Inside(Element, Element),
    /// `sum i < k. e`
    Sum(Axis, Size, Element),
    /// Where the first extremum of `e` is, for `i < k`.
    Arg(Extremum, Axis, Size, Element),
}

#[derive(Debug)]
struct Node {
    form: Form,
    scalar: Scalar,
    free: BTreeSet<Axis>,
    work: u32,
    nodes: u32,
}

/// What an element costs that is made again where it is read: an operation of floats is 1, functions of the table more, integers nothing, but for quotients.
const CHEAP: u32 = 3;
/// How large an expression may be that is made again.
const SMALL: u32 = 40;

impl Element {
    fn new(form: Form, scalar: Scalar) -> Element {
        let mut node = Node { work: 0, nodes: 1, free: BTreeSet::new(), scalar, form };
        let mut each = |e: &Element| {
            node.work = node.work.saturating_add(e.0.work);
            node.nodes = node.nodes.saturating_add(e.0.nodes);
            node.free.extend(&e.0.free);
        };
        match &node.form {
            Form::Const(_) | Form::Size(_) | Form::Atom(_) | Form::Counter(_) => {}
            Form::Read(_, _, es) | Form::Op(_, es) => es.iter().for_each(each),
            Form::If(c, u, v) => [c, u, v].into_iter().for_each(each),
            Form::Inside(c, u) => [c, u].into_iter().for_each(each),
            Form::Sum(_, _, e) | Form::Arg(_, _, _, e) => each(e),
        }
        match &node.form {
            Form::Counter(a) => drop(node.free.insert(*a)),
            Form::Sum(a, ..) | Form::Arg(_, a, ..) => {
                node.free.remove(a);
                node.work = node.work.saturating_add(1000);
            }
            Form::Op(op, _) => node.work = node.work.saturating_add(price(*op)),
            _ => {}
        }
        Element(Rc::new(node))
    }
    /// The form.
    pub(in crate::bulk) fn form(&self) -> &Form {
        &self.0.form
    }
    /// The type.
    pub(in crate::bulk) fn scalar(&self) -> Scalar {
        self.0.scalar
    }
    /// The counters that it depends on.
    pub(in crate::bulk) fn free(&self) -> &BTreeSet<Axis> {
        &self.0.free
    }
    /// Which expression it is: equal numbers, the same one.
    pub(in crate::bulk) fn id(&self) -> usize {
        Rc::as_ptr(&self.0) as usize
    }
    /// Whether it computes no float: making it again, at more places, costs what reading an array does.
    pub(in crate::bulk) fn is_view(&self) -> bool {
        self.0.work == 0 && self.0.nodes <= SMALL
    }
    /// Whether making it twice costs less than storing it.
    pub(in crate::bulk) fn is_cheap(&self) -> bool {
        self.0.work <= CHEAP && self.0.nodes <= SMALL
    }
    /// Whether there is a sum in it.
    pub(in crate::bulk) fn has_sum(&self) -> bool {
        let mut found = false;
        self.walk(&mut BTreeSet::new(), &mut |e| found |= matches!(e.form(), Form::Sum(..)));
        found
    }
    /// The scalar, if it is known.
    pub(in crate::bulk) fn as_const(&self) -> Option<ScalarValue> {
        match self.form() {
            Form::Const(c) => Some(*c),
            _ => None,
        }
    }
    fn is(&self, x: ScalarValue) -> bool {
        self.as_const() == Some(x)
    }
    /// Whether it is zero, whatever the inputs are.
    pub(in crate::bulk) fn is_zero(&self) -> bool {
        self.is(self.scalar().zero())
    }
    pub(in crate::bulk) fn constant(c: ScalarValue) -> Element {
        Element::new(Form::Const(c), c.scalar())
    }
    pub(in crate::bulk) fn i64(n: i64) -> Element {
        Element::constant(ScalarValue::I64(n))
    }
    pub(in crate::bulk) fn size(n: &Size) -> Element {
        n.as_constant().map_or_else(|| Element::new(Form::Size(n.clone()), Scalar::I64), Element::i64)
    }
    pub(in crate::bulk) fn atom(a: Atom, scalar: Scalar) -> Element {
        match a {
            Atom::Const(c) => Element::constant(c),
            Atom::Var(_) => Element::new(Form::Atom(a), scalar),
        }
    }
    pub(in crate::bulk) fn counter(a: Axis) -> Element {
        Element::new(Form::Counter(a), Scalar::I64)
    }
    pub(in crate::bulk) fn read(a: Atom, shape: &Rc<[Size]>, scalar: Scalar, ix: Vec<Element>) -> Element {
        if ix.is_empty() {
            return Element::atom(a, scalar);
        }
        Element::new(Form::Read(a, shape.clone(), ix), scalar)
    }
    pub(in crate::bulk) fn sum(a: Axis, k: &Size, e: Element) -> Element {
        // [bulk_delayed.sum_of_guarded]  sum i. if c then e else 0 = if c then sum i. e else 0, where c does not depend on i
        if let Some((_, u)) = e.as_guarded().filter(|(c, _)| !c.free().contains(&a)) {
            return e.guard(Element::sum(a, k, u.clone()));
        }
        let scalar = e.scalar();
        Element::new(Form::Sum(a, k.clone(), e), scalar)
    }
    /// A sum of cotangents, whose zeros stop: factors that do not depend on the counter come out of it.
    pub(in crate::bulk) fn sum_of_cotangents(a: Axis, k: &Size, e: Element) -> Element {
        let is_free = |e: &Element| !e.free().contains(&a);
        let sum = |e: &Element| Element::sum_of_cotangents(a, k, e.clone());
        match e.form() {
            Form::If(c, u, _) | Form::Inside(c, u) if e.as_guarded().is_some() && is_free(c) => {
                e.guard(sum(u))
            }
            // [bulk_delayed.sum_of_product]  sum i. u * v = (sum i. u) * v, where v does not depend on i;  u as well
            Form::Op(op @ Prim::Op(Op::Mul | Op::StrongMul, _), es) => match &es[..] {
                [u, v] if is_free(v) => Element::op(*op, vec![sum(u), v.clone()]),
                [u, v] if is_free(u) => Element::op(*op, vec![u.clone(), sum(v)]),
                _ => Element::sum(a, k, e),
            },
            // [bulk_delayed.sum_of_sum]  sum i. sum j. e = sum j. e', where e' = sum i. e is no sum
            Form::Sum(b, n, inner) => {
                let swapped = sum(inner);
                match swapped.form() {
                    Form::Sum(..) => Element::sum(a, k, e),
                    _ => Element::sum(*b, n, swapped),
                }
            }
            _ => Element::sum(a, k, e),
        }
    }
    pub(in crate::bulk) fn arg(which: Extremum, a: Axis, k: &Size, e: Element) -> Element {
        Element::new(Form::Arg(which, a, k.clone(), e), Scalar::I64)
    }

    /// `op e_1 .. e_n`
    pub(in crate::bulk) fn op(op: Prim, es: Vec<Element>) -> Element {
        let known: Option<Vec<ScalarValue>> = es.iter().map(Element::as_const).collect();
        if let Some(known) = known {
            // [bulk_delayed.known]  op c_1 .. c_n = the constant
            return Element::constant(total(op, &known));
        }
        match (op, &es[..]) {
            // [bulk_delayed.known_branches]  op (if c then c_1 else c_2) c_3 = if c then op c_1 c_3 else op c_2 c_3
            (Prim::Op(..), [a, b]) if has_known_branches(a) && b.as_const().is_some() => {
                let Form::If(c, u, v) = a.form() else { unreachable!("it has branches") };
                let of = |u: &Element| Element::op(op, vec![u.clone(), b.clone()]);
                Element::either(c, of(u), of(v))
            }
            (Prim::Op(..), [a, b]) if has_known_branches(b) && a.as_const().is_some() => {
                let Form::If(c, u, v) = b.form() else { unreachable!("it has branches") };
                let of = |u: &Element| Element::op(op, vec![a.clone(), u.clone()]);
                Element::either(c, of(u), of(v))
            }
            // [bulk_delayed.integers]  e + 0 = e,  0 + e = e,  e - 0 = e,  e * 1 = e,  1 * e = e
            (Prim::Op(Op::Add | Op::Sub, Scalar::I64), [a, b]) if b.is(ScalarValue::I64(0)) => a.clone(),
            (Prim::Op(Op::Add, Scalar::I64), [a, b]) if a.is(ScalarValue::I64(0)) => b.clone(),
            (Prim::Op(Op::Mul, Scalar::I64), [a, b]) if b.is(ScalarValue::I64(1)) => a.clone(),
            (Prim::Op(Op::Mul, Scalar::I64), [a, b]) if a.is(ScalarValue::I64(1)) => b.clone(),
            // [bulk_delayed.and]  true and c = c,  c and true = c
            (Prim::Op(Op::And, Scalar::Bool), [a, b]) if b.is(ScalarValue::Bool(true)) => a.clone(),
            (Prim::Op(Op::And, Scalar::Bool), [a, b]) if a.is(ScalarValue::Bool(true)) => b.clone(),
            // [bulk_delayed.same]  e = e is true of integers
            (Prim::Op(Op::Eq, s), [a, b]) if s.is_integer() && a.is_same(b) => {
                Element::constant(ScalarValue::Bool(true))
            }
            // [bulk_delayed.select]  select c u v = if c then u else v
            (Prim::Op(Op::Select, _), [c, u, v]) => Element::either(c, u.clone(), v.clone()),
            _ => Element::new(Form::Op(op, es), op.result()),
        }
    }

    pub(in crate::bulk) fn op2(op: Op, scalar: Scalar, a: &Element, b: &Element) -> Element {
        Element::op(Prim::Op(op, scalar), vec![a.clone(), b.clone()])
    }

    /// `if c then u else v`
    pub(in crate::bulk) fn either(c: &Element, u: Element, v: Element) -> Element {
        match c.form() {
            // [bulk_delayed.decided]  if true then u else v = u,  if false then u else v = v
            Form::Const(ScalarValue::Bool(true)) => u,
            Form::Const(_) => v,
            // [bulk_delayed.same_branches]  if c then e else e = e
            _ if u.is_same(&v) => u,
            // [bulk_delayed.condition]  if c then true else false = c,  if c then false else true = not c
            _ if u.is(ScalarValue::Bool(true)) && v.is(ScalarValue::Bool(false)) => c.clone(),
            _ if u.is(ScalarValue::Bool(false)) && v.is(ScalarValue::Bool(true)) => {
                Element::op(Prim::Op(Op::Not, Scalar::Bool), vec![c.clone()])
            }
            _ => {
                let scalar = u.scalar();
                Element::new(Form::If(c.clone(), u, v), scalar)
            }
        }
    }

    /// `if c then u else 0`, where `u` is evaluated only if `c` holds.
    pub(in crate::bulk) fn inside(c: &Element, u: Element) -> Element {
        match c.form() {
            Form::Const(ScalarValue::Bool(true)) => u,
            Form::Const(_) => Element::constant(u.scalar().zero()),
            _ if u.is_zero() => u,
            _ => {
                let scalar = u.scalar();
                Element::new(Form::Inside(c.clone(), u), scalar)
            }
        }
    }

    /// Condition and value, if it is zero where the condition does not hold.
    pub(in crate::bulk) fn as_guarded(&self) -> Option<(&Element, &Element)> {
        match self.form() {
            Form::If(c, u, v) if v.is_zero() => Some((c, u)),
            Form::Inside(c, u) => Some((c, u)),
            _ => None,
        }
    }

    /// The same guard of another value.
    pub(in crate::bulk) fn guard(&self, value: Element) -> Element {
        match self.form() {
            Form::If(c, ..) => {
                let zero = Element::constant(value.scalar().zero());
                Element::either(c, value, zero)
            }
            Form::Inside(c, _) => Element::inside(c, value),
            _ => value,
        }
    }

    /// Whether they are the same expression.
    pub(in crate::bulk) fn is_same(&self, other: &Element) -> bool {
        let all =
            |a: &[Element], b: &[Element]| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.is_same(b));
        if Rc::ptr_eq(&self.0, &other.0) {
            return true;
        }
        if (self.0.nodes, self.0.work, self.scalar()) != (other.0.nodes, other.0.work, other.scalar())
            || self.0.nodes > SMALL
        {
            return false;
        }
        match (self.form(), other.form()) {
            (Form::Const(a), Form::Const(b)) => a == b,
            (Form::Size(a), Form::Size(b)) => a == b,
            (Form::Atom(a), Form::Atom(b)) => a == b,
            (Form::Counter(a), Form::Counter(b)) => a == b,
            (Form::Read(a, _, xs), Form::Read(b, _, ys)) => a == b && all(xs, ys),
            (Form::Op(a, xs), Form::Op(b, ys)) => a == b && all(xs, ys),
            (Form::If(c, u, v), Form::If(d, x, y)) => c.is_same(d) && u.is_same(x) && v.is_same(y),
            (Form::Inside(c, u), Form::Inside(d, x)) => c.is_same(d) && u.is_same(x),
            _ => false,
        }
    }

    /// Expressions for counters, all at once.
    pub(in crate::bulk) fn put(&self, map: &BTreeMap<Axis, Element>) -> Element {
        if map.iter().all(|(a, e)| matches!(e.form(), Form::Counter(b) if a == b)) {
            return self.clone();
        }
        let relevant = |e: &Element| map.keys().any(|a| e.free().contains(a));
        self.rebuilt(&mut BTreeMap::new(), &relevant, &mut |e| match e.form() {
            Form::Counter(a) => map.get(a).cloned(),
            _ => None,
        })
    }

    /// The expression with other ones in place of some parts, each made once. What is not `relevant` stays.
    pub(in crate::bulk) fn rebuilt(
        &self,
        known: &mut BTreeMap<usize, Element>,
        relevant: &dyn Fn(&Element) -> bool,
        other: &mut dyn FnMut(&Element) -> Option<Element>,
    ) -> Element {
        if !relevant(self) {
            return self.clone();
        }
        if let Some(e) = known.get(&self.id()) {
            return e.clone();
        }
        let made = match other(self) {
            Some(e) => e,
            None => self.with_parts(&mut |e| e.rebuilt(known, relevant, other)),
        };
        known.insert(self.id(), made.clone());
        made
    }

    /// The same form, of other parts.
    pub(in crate::bulk) fn with_parts(&self, part: &mut dyn FnMut(&Element) -> Element) -> Element {
        match self.form() {
            Form::Const(_) | Form::Size(_) | Form::Atom(_) | Form::Counter(_) => self.clone(),
            Form::Read(a, shape, ix) => {
                let ix = ix.iter().map(part).collect();
                Element::read(*a, shape, self.scalar(), ix)
            }
            Form::Op(op, es) => Element::op(*op, es.iter().map(part).collect()),
            Form::If(c, u, v) => Element::either(&part(c), part(u), part(v)),
            Form::Inside(c, u) => Element::inside(&part(c), part(u)),
            Form::Sum(a, k, e) => Element::sum(*a, k, part(e)),
            Form::Arg(which, a, k, e) => Element::arg(*which, *a, k, part(e)),
        }
    }

    /// All parts, each once.
    pub(in crate::bulk) fn walk(&self, seen: &mut BTreeSet<usize>, f: &mut dyn FnMut(&Element)) {
        if !seen.insert(self.id()) {
            return;
        }
        f(self);
        match self.form() {
            Form::Const(_) | Form::Size(_) | Form::Atom(_) | Form::Counter(_) => {}
            Form::Read(_, _, es) | Form::Op(_, es) => es.iter().for_each(|e| e.walk(seen, f)),
            Form::If(c, u, v) => [c, u, v].into_iter().for_each(|e| e.walk(seen, f)),
            Form::Inside(c, u) => [c, u].into_iter().for_each(|e| e.walk(seen, f)),
            Form::Sum(_, _, e) | Form::Arg(_, _, _, e) => e.walk(seen, f),
        }
    }

    /// Between which sizes an integer is, both included, where it is evaluated.
    pub(in crate::bulk) fn range(&self, axes: &Axes) -> Option<(Size, Size)> {
        match self.form() {
            Form::Const(ScalarValue::I64(n)) => Some((Size::constant(*n), Size::constant(*n))),
            Form::Size(n) => Some((n.clone(), n.clone())),
            Form::Counter(a) => axes.size(*a).map(|k| (Size::constant(0), k.minus(&Size::constant(1)))),
            Form::If(_, u, v) => {
                let ((a, b), (c, d)) = (u.range(axes)?, v.range(axes)?);
                Some((lower(&a, &c)?, lower(&d, &b).map(|low| if low == d { b } else { d })?))
            }
            Form::Op(Prim::Op(op, Scalar::I64), es) => {
                let ((a, b), (c, d)) = (es.first()?.range(axes)?, es.get(1)?.range(axes)?);
                match op {
                    Op::Add => Some((a.plus(&c), b.plus(&d))),
                    Op::Sub => Some((a.minus(&d), b.minus(&c))),
                    _ => None,
                }
            }
            _ => None,
        }
    }
}

/// The lower one of two sizes, if it is known which that is.
fn lower(a: &Size, b: &Size) -> Option<Size> {
    if b.minus(a).is_never_negative() {
        Some(a.clone())
    } else {
        a.minus(b).is_never_negative().then(|| b.clone())
    }
}

fn has_known_branches(e: &Element) -> bool {
    matches!(e.form(), Form::If(_, u, v) if u.as_const().is_some() && v.as_const().is_some())
}

/// What an operation costs: that of the table, but one of integers and truth values nothing, unless it is a quotient.
fn price(op: Prim) -> u32 {
    let is_float = op.result().is_float() || op.params().iter().any(|s| s.is_float());
    match op {
        Prim::Op(_, _) if op.may_stop() => 4,
        Prim::Op(which, _) if is_float => u32::try_from(which.row().cost).unwrap_or(u32::MAX),
        Prim::Op(..) => 0,
        Prim::Convert(..) => 1,
    }
}
