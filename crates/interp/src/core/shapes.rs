//! The inner sizes of results of no iterations: what a body would return, as far as sizes can be known without running it.
//!
//! A map over nothing whose function returns arrays has a result `[0][m]`. The size `m` is found by evaluating the body on
//! sizes alone: scalars that depend on elements are unknown, sizes computed from known ones are known. What stays unknown is 0.
//! Where calls go too deep or are too many, a second question asks with less: no function within itself, no scalar known in calls.
//! Takes no steps of the cost model; physical cost: the size of the body, with a bound on calls.

use super::code::*;
use super::compile::deep;
use super::machine::Machine;
use super::num::Domain;
use super::value::{Shape, Val};
use pullback_core::FusedForm;
use pullback_prim::{Op, Prim, Scalar, ScalarValue};
use std::collections::BTreeMap;

/// What is known about a value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Known {
    Scalar(Option<ScalarValue>),
    /// Sizes, outermost first.
    Array(Vec<Option<usize>>),
    /// Nothing, not even the rank.
    Nothing,
}

/// How many expressions one question may look at.
pub(crate) const FUEL: usize = 20_000;
/// How many calls of one function may be open, in the last of which all scalars are unknown: it ends on both sides of its conditions.
pub(crate) const OPEN_CALLS: usize = 16;

impl Known {
    pub(crate) fn array(shape: &[usize]) -> Known {
        Known::Array(shape.iter().map(|&n| Some(n)).collect())
    }
    /// What is known about rows of an array of this shape.
    pub(crate) fn row(shape: &[usize]) -> Known {
        if shape.len() <= 1 { Known::Scalar(None) } else { Known::array(&shape[1..]) }
    }
    /// The shape of an element of the given rank: unknown sizes are 0.
    pub(crate) fn shape(&self, rank: usize) -> Shape {
        let mut sizes = vec![0; rank];
        if let Known::Array(known) = self
            && known.len() == rank
        {
            sizes.iter_mut().zip(known).for_each(|(n, k)| *n = k.unwrap_or(0));
        }
        Shape::new(&sizes)
    }
    /// The same about a value of which the rank is known.
    fn of_rank(self, rank: usize) -> Known {
        match self {
            Known::Nothing if rank == 0 => Known::Scalar(None),
            Known::Nothing => Known::Array(vec![None; rank]),
            Known::Scalar(_) | Known::Array(_) => self,
        }
    }
    fn part(&self, depth: usize) -> Known {
        match self {
            Known::Array(sizes) if sizes.len() > depth => Known::Array(sizes[depth..].to_vec()),
            Known::Array(sizes) if sizes.len() == depth => Known::Scalar(None),
            Known::Array(_) | Known::Scalar(_) | Known::Nothing => Known::Nothing,
        }
    }
    fn size(&self) -> Option<usize> {
        match self {
            Known::Scalar(Some(n)) => usize::try_from(n.as_i64()).ok(),
            Known::Array(_) | Known::Scalar(None) | Known::Nothing => None,
        }
    }
    fn dim(&self, d: usize) -> Option<usize> {
        match self {
            Known::Array(sizes) => sizes.get(d).copied().flatten(),
            Known::Scalar(_) | Known::Nothing => None,
        }
    }
    /// An array of these sizes of elements like this.
    fn under(self, outer: impl IntoIterator<Item = Option<usize>>) -> Known {
        let outer = outer.into_iter();
        match self {
            Known::Scalar(_) => Known::Array(outer.collect()),
            Known::Array(inner) => Known::Array(outer.chain(inner).collect()),
            Known::Nothing => Known::Nothing,
        }
    }
    /// What is known if it may be either. A size that one of them does not tell is that of the other: they have one type.
    fn or(self, other: Known) -> Known {
        match (self, other) {
            (Known::Scalar(x), Known::Scalar(y)) => Known::Scalar(x.filter(|x| y == Some(*x))),
            (Known::Array(x), Known::Array(y)) if x.len() == y.len() => {
                let both = |(x, y): (Option<usize>, Option<usize>)| match (x, y) {
                    (Some(x), Some(y)) => Some(x).filter(|_| x == y),
                    (x, y) => x.or(y),
                };
                Known::Array(x.into_iter().zip(y).map(both).collect())
            }
            (Known::Nothing, k) | (k, Known::Nothing) => match k {
                Known::Scalar(_) => Known::Scalar(None),
                Known::Array(_) | Known::Nothing => k,
            },
            (Known::Array(_) | Known::Scalar(_), Known::Array(_) | Known::Scalar(_)) => Known::Nothing,
        }
    }
    /// What is known if both are about one value: where this does not tell a size, what the other says.
    fn completed(self, other: Known) -> Known {
        match (self, other) {
            (Known::Array(x), Known::Array(y)) if x.len() == y.len() => {
                Known::Array(x.into_iter().zip(y).map(|(x, y)| x.or(y)).collect())
            }
            (Known::Nothing, other) => other,
            (known @ (Known::Scalar(_) | Known::Array(_)), _) => known,
        }
    }
}

fn either(left: Vec<Known>, right: Vec<Known>) -> Vec<Known> {
    left.into_iter().zip(right).map(|(l, r)| l.or(r)).collect()
}

/// One question.
struct Guess<'m, 'p, D: Domain> {
    machine: &'m Machine<'p, D>,
    /// What is known about slots bound by the body; others are read from the frame.
    slots: BTreeMap<Slot, Known>,
    /// Scalars that are sizes of arrays, with the array and the dimension.
    sizes: Vec<(Slot, Slot, usize)>,
    /// Conditions that say that two integers are equal.
    equal: BTreeMap<Slot, (Arg, Arg)>,
    /// Whether slots that are not listed are those of the machine's open frame.
    framed: bool,
    /// The functions that are called.
    open: Vec<usize>,
    /// How many calls of one function may be open.
    depth: usize,
    fuel: usize,
    /// Whether something was not looked at.
    cut: bool,
}

impl<D: Domain> Machine<'_, D> {
    /// What is known about the results of a body whose parameters are like this.
    pub(crate) fn guess(&self, slots: &[Slot], params: &[Known], body: &BodyCode) -> Vec<Known> {
        let ask = |depth: usize| {
            let slots = slots.iter().copied().zip(params.iter().cloned()).collect();
            let mut guess = Guess::new(self, slots, true, (depth, FUEL));
            (guess.body(body), guess.cut)
        };
        let (known, cut) = ask(OPEN_CALLS);
        if !cut {
            return known;
        }
        let (other, _) = ask(0);
        known.into_iter().zip(other).map(|(known, other)| known.completed(other)).collect()
    }
}

impl<'m, 'p, D: Domain> Guess<'m, 'p, D> {
    fn new(
        machine: &'m Machine<'p, D>,
        slots: BTreeMap<Slot, Known>,
        framed: bool,
        (depth, fuel): (usize, usize),
    ) -> Self {
        let (sizes, equal, open) = (Vec::new(), BTreeMap::new(), Vec::new());
        Guess { machine, slots, sizes, equal, framed, open, depth, fuel, cut: false }
    }
    /// What a statement says about sizes beyond the value that it binds.
    fn note(&mut self, pat: &[Slot], exp: &Simple) {
        let [to] = pat else { return };
        match exp {
            Simple::Size(Arg::Keep(a) | Arg::Move(a), d) => self.sizes.push((*to, *a, *d)),
            Simple::Slice(_, s) => self.note_size(s.len, *to, 0),
            Simple::Iota(n) => self.note_size(*n, *to, 0),
            Simple::Replicate(_, shape, _) | Simple::Reshape(shape, ..) => {
                shape.iter().enumerate().for_each(|(d, n)| self.note_size(*n, *to, d));
            }
            Simple::Prim2(Prim::Op(Op::Eq, Scalar::I64), x, y) => {
                self.equal.insert(*to, (*x, *y));
            }
            Simple::Assert(Arg::Keep(c) | Arg::Move(c), ..) => {
                if let Some((x, y)) = self.equal.get(c).copied() {
                    self.learn(y, x, true);
                    self.learn(x, y, false);
                }
            }
            _ => {}
        }
    }
    fn note_width(&mut self, pat: &[Slot], exp: &Compound) {
        let (width, first) = match exp {
            Compound::Map { width, .. } | Compound::Scan { width, .. } => (*width, 0),
            Compound::Fused(f) if f.form == FusedForm::Scan => (f.width, 0),
            Compound::Fused(f) => (f.width, f.neutral.len()),
            Compound::Loop(LoopCode { form: FormCode::For { n, .. }, params, .. }) => (*n, params.len()),
            _ => return,
        };
        pat.iter().skip(first).for_each(|to| self.note_size(width, *to, 0));
    }
    fn note_size(&mut self, n: Arg, array: Slot, d: usize) {
        if let Arg::Keep(s) | Arg::Move(s) = n {
            self.sizes.push((s, array, d));
        }
    }
    /// An assertion has said that these integers are equal: what is known of the first is known of the second, which is bound in
    /// the body. `always`: even if that would be another number, as that of a `filter` of nothing, whose type says its size.
    fn learn(&mut self, from: Arg, to: Arg, always: bool) {
        let (Known::Scalar(Some(n)), Arg::Keep(to) | Arg::Move(to)) = (self.arg(from), to) else { return };
        match self.slots.get(&to) {
            Some(Known::Scalar(old)) if always || old.is_none() => {}
            _ => return,
        }
        let size = usize::try_from(n.as_i64()).ok();
        for (_, array, d) in self.sizes.iter().filter(|(s, ..)| *s == to) {
            if let Some(Known::Array(sizes)) = self.slots.get_mut(array)
                && let Some(old) = sizes.get_mut(*d)
            {
                *old = size;
            }
        }
        self.slots.insert(to, Known::Scalar(Some(n)));
    }
    fn arg(&self, arg: Arg) -> Known {
        match arg {
            Arg::Const(c) => Known::Scalar(Some(c)),
            Arg::Keep(s) | Arg::Move(s) => match self.slots.get(&s) {
                Some(known) => known.clone(),
                None if self.framed => match self.machine.slot(s) {
                    Val::Num(x) => Known::Scalar(Some(x.primal())),
                    Val::Arr(a) => Known::array(&a.shape),
                    Val::Unit | Val::Tuple(_) | Val::Sum(..) | Val::Acc(_) | Val::Gone => Known::Nothing,
                },
                None => Known::Nothing,
            },
        }
    }
    fn args(&self, args: &[Arg]) -> Vec<Known> {
        args.iter().map(|&a| self.arg(a)).collect()
    }
    fn size(&self, arg: Arg) -> Option<usize> {
        self.arg(arg).size()
    }
    fn sizes(&self, args: &[Arg]) -> Vec<Option<usize>> {
        args.iter().map(|&a| self.size(a)).collect()
    }
    fn bind(&mut self, slots: &[Slot], known: impl IntoIterator<Item = Known>) {
        let mut known = known.into_iter();
        for &s in slots {
            self.slots.insert(s, known.next().unwrap_or(Known::Nothing));
        }
    }
    fn body(&mut self, body: &BodyCode) -> Vec<Known> {
        for stm in &body.stms {
            if self.fuel == 0 {
                self.cut = true;
                self.bind(&stm.pat, []);
                continue;
            }
            self.fuel -= 1;
            let known = match &stm.exp {
                ExpCode::Simple(exp) => vec![self.simple(exp)],
                ExpCode::Compound(exp) => deep(|| self.compound(exp)),
            };
            self.bind(&stm.pat, known);
            match &stm.exp {
                ExpCode::Simple(exp) => self.note(&stm.pat, exp),
                ExpCode::Compound(exp) => self.note_width(&stm.pat, exp),
            }
        }
        self.args(&body.result)
    }
    fn lam(&mut self, lam: &LamCode, params: impl IntoIterator<Item = Known>) -> Vec<Known> {
        self.bind(&lam.params, params);
        self.body(&lam.body)
    }

    fn prim(&self, prim: Prim, args: &[Arg]) -> Known {
        let values: Option<Vec<ScalarValue>> = args
            .iter()
            .map(|&a| match self.arg(a) {
                Known::Scalar(x) => x,
                Known::Array(_) | Known::Nothing => None,
            })
            .collect();
        Known::Scalar(values.and_then(|v| prim.eval(&v).ok()))
    }
    fn simple(&self, exp: &Simple) -> Known {
        match exp {
            Simple::Atom(a) | Simple::StopGradient(a) => self.arg(*a),
            Simple::Prim1(prim, x) => self.prim(*prim, &[*x]),
            Simple::Prim2(prim, x, y) => self.prim(*prim, &[*x, *y]),
            Simple::PrimN(prim, args) => self.prim(*prim, args),
            Simple::Size(a, d) => Known::Scalar(self.arg(*a).dim(*d).map(|n| ScalarValue::I64(n as i64))),
            // It may stand for an array that is not there: of its sizes is known what is known of the others.
            Simple::ArrayLit(elem, items) if items.is_empty() => Known::Array(vec![None; elem.rank + 1]),
            Simple::ArrayLit(elem, items) => {
                let first = items.first().map_or(Known::Nothing, |&a| self.arg(a));
                first.of_rank(elem.rank).under([Some(items.len())])
            }
            Simple::Index(a, ix) => self.arg(*a).part(ix.len()),
            Simple::Slice(a, s) => self.arg(*a).part(1).under([self.size(s.len)]),
            Simple::Update(a, ..)
            | Simple::UpdateSlice(a, ..)
            | Simple::Reverse(a)
            | Simple::Rotate(a, _)
            | Simple::Scatter { dst: a, .. } => self.arg(*a),
            Simple::Gather(a, ix) => self.arg(*a).part(1).under([self.arg(*ix).dim(0)]),
            Simple::Iota(n) => Known::Array(vec![self.size(*n)]),
            Simple::Replicate(elem, shape, a) => self.arg(*a).of_rank(elem.rank).under(self.sizes(shape)),
            Simple::Rearrange(perm, a) => match self.arg(*a) {
                Known::Array(sizes) if perm.iter().all(|&d| d < sizes.len()) => {
                    let moved = perm.iter().map(|&d| sizes[d]);
                    Known::Array(moved.chain(sizes.iter().skip(perm.len()).copied()).collect())
                }
                Known::Array(_) | Known::Scalar(_) | Known::Nothing => Known::Nothing,
            },
            Simple::Reshape(shape, from, a) => self.arg(*a).part(*from).under(self.sizes(shape)),
            Simple::Concat(arrays) => {
                let known = self.args(arrays);
                let sum =
                    |n: usize, k: &Known| n.checked_add(k.dim(0)?).filter(|n| *n <= isize::MAX as usize);
                let outer = known.iter().try_fold(0, sum);
                let inner = known.into_iter().map(|k| k.part(1)).reduce(Known::or);
                inner.unwrap_or(Known::Nothing).under([outer])
            }
            Simple::Plus(a, b) => {
                let (a, b) = (self.arg(*a), self.arg(*b));
                if matches!(a, Known::Array(_)) { a } else { b }
            }
            Simple::Tuple(_)
            | Simple::Proj(..)
            | Simple::Inject(..)
            | Simple::AccView(..)
            | Simple::AccAdd(..)
            | Simple::Assert(..)
            | Simple::Check(..) => Known::Nothing,
        }
    }

    fn compound(&mut self, exp: &Compound) -> Vec<Known> {
        match exp {
            Compound::Match(_, arms) => {
                let arms = arms.iter().map(|arm| self.lam(arm, [])).collect::<Vec<_>>();
                arms.into_iter().reduce(either).unwrap_or_default()
            }
            Compound::If(c, then, otherwise) => match self.arg(*c) {
                Known::Scalar(Some(c)) => self.body(if c.is_true() { then } else { otherwise }),
                Known::Scalar(None) | Known::Array(_) | Known::Nothing => {
                    let (then, otherwise) = (self.body(then), self.body(otherwise));
                    either(then, otherwise)
                }
            },
            Compound::Loop(l) => self.loop_(l),
            Compound::Call(fun, args) => self.call(*fun, args),
            Compound::Map { width, lam, arrays, elems } => {
                let n = self.size(*width);
                let rows: Vec<Known> = arrays.iter().map(|&a| self.arg(a).part(1)).collect();
                arrays_of(self.lam(lam, rows), elems, n)
            }
            Compound::Reduce { neutral, .. } => scalars_unknown(self.args(neutral)),
            Compound::Scan { width, neutral, elems, .. } => {
                let n = self.size(*width);
                arrays_of(self.args(neutral), elems, n)
            }
            Compound::Fused(f) => {
                let n = self.size(f.width);
                let combined = self.args(&f.neutral);
                let mut known = match f.form {
                    FusedForm::Reduce { .. } => scalars_unknown(combined),
                    FusedForm::Scan => arrays_of(combined, &f.elems, n),
                };
                let rows: Vec<Known> = f.arrays.iter().map(|&a| self.arg(a).part(1)).collect();
                let others = self.lam(&f.pre, rows).into_iter().skip(f.neutral.len());
                known.extend(arrays_of(others, &f.elems[f.neutral.len()..], n));
                known
            }
            Compound::Hist(h) => self.args(&h.dst),
            Compound::WithAcc(inits, lam) => {
                let mut known = scalars_unknown(self.args(inits));
                known.extend(self.lam(lam, []));
                known
            }
            Compound::Diff(d) => {
                let args = self.args(&d.args);
                let mut known = self.lam(&d.lam, args.iter().cloned());
                let (like, types) =
                    if d.reverse { (args, &d.arg_types) } else { (known.clone(), &d.result_types) };
                let program = self.machine.code.program;
                let active = like.into_iter().zip(types).filter(|(_, t)| program.is_active(t));
                known.extend(scalars_unknown(active.map(|(k, _)| k).collect()));
                known
            }
            Compound::Apply(lam, args) => {
                let args = self.args(args);
                self.lam(lam, args)
            }
            Compound::Body(body) => self.body(body),
            Compound::Par(bodies) => bodies.iter().flat_map(|b| self.body(b)).collect(),
        }
    }
    /// One iteration on what stays the same in all of them.
    fn loop_(&mut self, l: &LoopCode) -> Vec<Known> {
        let mut state = scalars_unknown(self.args(&l.init));
        let count = match &l.form {
            FormCode::For { i, n, .. } => {
                self.slots.insert(*i, Known::Scalar(None));
                Some(self.arg(*n).size().unwrap_or(0))
                    .filter(|_| matches!(self.arg(*n), Known::Scalar(Some(_))))
            }
            FormCode::While(_) => None,
        };
        let mut next = Vec::new();
        // Twice: sizes that change in the first iteration are unknown in the second.
        for _ in 0..2 {
            self.bind(&l.params, state.clone());
            next = self.body(&l.body);
            let after: Vec<Known> = next.iter().take(state.len()).cloned().collect();
            state = scalars_unknown(either(state, after));
        }
        let collected = arrays_of(next.into_iter().skip(l.params.len()), &l.collect, count);
        let mut known = state;
        known.extend(collected);
        if matches!(l.form, FormCode::While(_)) && !l.collect.is_empty() {
            known.push(Known::Scalar(None));
        }
        known
    }
    fn call(&mut self, fun: usize, args: &[Arg]) -> Vec<Known> {
        let open = self.open.iter().filter(|f| **f == fun).count();
        let Some(code) = self.machine.code.funs.get(fun).filter(|_| open <= self.depth) else {
            self.cut = true;
            return Vec::new();
        };
        let params = self.args(args);
        let params = if open == self.depth { scalars_unknown(params) } else { params };
        let slots = code.lam.params.iter().copied().zip(params).collect();
        // Half of the fuel is for what comes after a function and all that it calls again.
        let kept = if open == 0 { self.fuel / 2 } else { 0 };
        let mut inner = Guess::new(self.machine, slots, false, (self.depth, self.fuel - kept));
        inner.open = std::mem::take(&mut self.open);
        inner.open.push(fun);
        let known = deep(|| inner.body(&code.lam.body));
        self.fuel = inner.fuel + kept;
        self.cut |= inner.cut;
        self.open = inner.open;
        self.open.pop();
        known
    }
}

/// Arrays of `n` elements of these types, of which this is known.
fn arrays_of(known: impl IntoIterator<Item = Known>, elems: &[Elem], n: Option<usize>) -> Vec<Known> {
    known.into_iter().zip(elems).map(|(k, e)| k.of_rank(e.rank).under([n])).collect()
}

/// Forgets the values of scalars: only their being scalars is known.
fn scalars_unknown(known: Vec<Known>) -> Vec<Known> {
    known
        .into_iter()
        .map(|k| match k {
            Known::Scalar(_) => Known::Scalar(None),
            Known::Array(_) | Known::Nothing => k,
        })
        .collect()
}
