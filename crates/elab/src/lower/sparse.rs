//! Cotangents of the chapters on CHAD as data: their zeros and sums, sparse products and sums, bags.
//!
//! A sparse product is the product of its parts, each of which has a zero that costs O(1). A sparse sum is a sum with one alternative more, for zero.
//! A bag is a recursive sum: `#empty | #one i d | #plus bag bag | #array is ds | #all bags`; a bag of values without leaves has none. What is
//! collected from a bag is collected by a loop with a stack, into arrays in place.

use super::value::Val;
use super::{Lowered, Lowerer};
use pullback_base::Span;
use pullback_core as core;
use pullback_core::{Atom, Exp};
use pullback_lambda::{Exp as Lam, Term, Type};
use pullback_prim::{Op, Prim, Scalar};

/// A type of bags.
pub(super) struct BagKind {
    /// The type of the values.
    element: Type,
    id: core::TypeId,
    /// The core function `(n, bag) -> arrays`.
    collector: Option<core::FunId>,
}

const EMPTY: usize = 0;
const ONE: usize = 1;
const PLUS: usize = 2;
const ARRAY: usize = 3;
const ALL: usize = 4;

impl Lowerer<'_, '_> {
    /// The sum of this sparse sum.
    pub(super) fn sparse_sum(&mut self, alternatives: &[Type], span: Option<Span>) -> Lowered<core::Type> {
        let mut variants = vec![core::Variant { name: "zero".into(), fields: Vec::new() }];
        for (k, t) in alternatives.iter().enumerate() {
            let fields = self.leaves_at(t, span)?;
            variants.push(core::Variant { name: format!("d{k}").into(), fields });
        }
        Ok(core::Type::Sum(variants.into()))
    }
    /// The recursive sum of bags of these values; none if a value has no leaves.
    pub(super) fn bag(&mut self, element: &Type, span: Option<Span>) -> Lowered<Option<core::Type>> {
        let leaves = self.leaves_at(element, span)?;
        if leaves.is_empty() {
            return Ok(None);
        }
        let kind = self.bag_kind(element, leaves);
        Ok(Some(core::Type::Named(self.bags[kind].id)))
    }
    fn bag_kind(&mut self, element: &Type, leaves: Vec<core::Type>) -> usize {
        if let Some(k) = self.bags.iter().position(|b| b.element == *element) {
            return k;
        }
        let name = self.type_name("bag");
        let id = self.b.program.types.push(core::TypeDef { name, variants: Vec::new() });
        let bag = core::Type::Named(id);
        let variant = |name: &str, fields: Vec<core::Type>| core::Variant { name: name.into(), fields };
        let with = |first: core::Type, rest: Vec<core::Type>| {
            std::iter::once(first).chain(rest).collect::<Vec<core::Type>>()
        };
        let arrays = leaves.iter().cloned().map(core::Type::array).collect();
        self.b.program.types[id].variants = vec![
            variant("empty", Vec::new()),
            variant("one", with(core::Type::I64, leaves)),
            variant("plus", vec![bag.clone(), bag.clone()]),
            variant("array", with(core::Type::array(core::Type::I64), arrays)),
            variant("all", vec![core::Type::array(bag)]),
        ];
        self.bags.push(BagKind { element: element.clone(), id, collector: None });
        self.bags.len() - 1
    }

    /// The leaves of the zero of a type.
    pub(super) fn zeros(&mut self, ty: &Type, span: Option<Span>) -> Lowered<Vec<Atom>> {
        match ty {
            Type::Scalar(s) => Ok(vec![Atom::Const(s.zero())]),
            Type::Tuple(ts) | Type::SparseTuple(ts) => {
                let mut out = Vec::new();
                for t in ts.iter() {
                    out.extend(self.zeros(t, span)?);
                }
                Ok(out)
            }
            Type::SparseSum(ts) => {
                let sum = self.sparse_sum(ts, span)?;
                Ok(vec![self.empty(sum)])
            }
            Type::Bag(t) => {
                let bag = self.bag(t, span)?;
                Ok(bag.map(|bag| self.empty(bag)).into_iter().collect())
            }
            // Without elements: the zero of all sizes.
            Type::Array(_) => {
                let mut out = Vec::new();
                for t in self.leaves_at(ty, span)? {
                    let core::Type::Array(element) = t else {
                        return self.bug(span, "an array whose leaves are no arrays");
                    };
                    let zero = self.b.emit(Exp::ArrayLit(core::Type::clone(&element), Vec::new()), "zero");
                    self.known_zeros.extend(zero.var());
                    out.push(zero);
                }
                Ok(out)
            }
            _ => self.unsupported(span, "the zero of a sum, whose alternative is not known,"),
        }
    }
    /// The first alternative of a sum, which is its zero.
    fn empty(&mut self, ty: core::Type) -> Atom {
        let zero = self.b.emit(Exp::Inject(ty, EMPTY, Vec::new()), "zero");
        self.known_zeros.extend(zero.var());
        zero
    }
    fn is_zero(&self, a: Atom) -> bool {
        match a {
            Atom::Const(c) => c == c.scalar().zero(),
            Atom::Var(v) => self.known_zeros.contains(&v),
        }
    }

    /// The sum of two values of a type.
    pub(super) fn sum(
        &mut self,
        ty: &Type,
        a: &[Atom],
        b: &[Atom],
        span: Option<Span>,
    ) -> Lowered<Vec<Atom>> {
        match ty {
            Type::Tuple(ts) | Type::SparseTuple(ts) => {
                let (a, b) = (self.split(ts, a, span)?, self.split(ts, b, span)?);
                let mut out = Vec::new();
                for (t, (a, b)) in ts.iter().zip(a.iter().zip(&b)) {
                    out.extend(self.sum(t, a, b, span)?);
                }
                Ok(out)
            }
            Type::Bag(_) | Type::SparseSum(_) => {
                let (Some(&x), Some(&y)) = (a.first(), b.first()) else { return Ok(Vec::new()) };
                if self.is_zero(x) || self.is_zero(y) {
                    return Ok(vec![if self.is_zero(x) { y } else { x }]);
                }
                let of = self.b.ty(x);
                Ok(vec![match ty {
                    Type::SparseSum(ts) => self.sum_of_sums(ts, of, x, y, span)?,
                    _ => self.b.emit(Exp::Inject(of, PLUS, vec![x, y]), "bag"),
                }])
            }
            Type::Array(_) => {
                let mut out = Vec::new();
                for (&x, &y) in a.iter().zip(b) {
                    out.push(self.sum_of_arrays(x, y, span)?);
                }
                Ok(out)
            }
            _ => {
                let both = a.iter().zip(b);
                Ok(both
                    .map(|(&x, &y)| match (self.is_zero(x), self.is_zero(y)) {
                        (true, _) => y,
                        (_, true) => x,
                        _ => self.b.emit(Exp::Plus(x, y), "t"),
                    })
                    .collect())
            }
        }
    }
    /// The sum of two arrays, either of which may be the zero of all sizes.
    fn sum_of_arrays(&mut self, x: Atom, y: Atom, span: Option<Span>) -> Lowered<Atom> {
        if self.is_zero(x) || self.is_zero(y) {
            return Ok(if self.is_zero(x) { y } else { x });
        }
        let is_empty = |l: &mut Self, a: Atom| {
            let n = l.b.size(a, 0);
            l.b.emit(int(Op::Eq, n, Atom::i64(0)), "empty")
        };
        let first = is_empty(self, x);
        let then = self.body(span, |_| Ok(vec![y]))?;
        let otherwise = self.body(span, |l| {
            let second = is_empty(l, y);
            let then = l.body(span, |_| Ok(vec![x]))?;
            let both = l.body(span, |l| Ok(vec![l.b.emit(Exp::Plus(x, y), "t")]))?;
            Ok(vec![l.b.emit(Exp::If(second, then, both), "t")])
        })?;
        Ok(self.b.emit(Exp::If(first, then, otherwise), "t"))
    }
    fn sum_of_sums(
        &mut self,
        ts: &[Type],
        sum: core::Type,
        x: Atom,
        y: Atom,
        span: Option<Span>,
    ) -> Lowered<Atom> {
        let mut arms = vec![core::Lam { params: Vec::new(), body: self.body(span, |_| Ok(vec![y]))? }];
        for (k, t) in ts.iter().enumerate() {
            let params = self.fresh_leaves(t, span)?;
            let mine: Vec<Atom> = params.iter().map(|&v| v.into()).collect();
            let body = self.body(span, |l| {
                let mut inner = vec![core::Lam { params: Vec::new(), body: l.body(span, |_| Ok(vec![x]))? }];
                for (j, u) in ts.iter().enumerate() {
                    let others = l.fresh_leaves(u, span)?;
                    let theirs: Vec<Atom> = others.iter().map(|&v| v.into()).collect();
                    let body = l.body(span, |l| {
                        if j != k {
                            l.other_alternative();
                            return Ok(vec![x]);
                        }
                        let both = l.sum(t, &mine, &theirs, span)?;
                        Ok(vec![l.b.emit(Exp::Inject(sum.clone(), k + 1, both), "d")])
                    })?;
                    inner.push(core::Lam { params: others, body });
                }
                Ok(vec![l.b.emit(Exp::Match(y, inner), "d")])
            })?;
            arms.push(core::Lam { params, body });
        }
        Ok(self.b.emit(Exp::Match(x, arms), "d"))
    }
    fn fresh_leaves(&mut self, t: &Type, span: Option<Span>) -> Lowered<Vec<core::Var>> {
        let types = self.leaves_at(t, span)?;
        Ok(types.into_iter().map(|t| self.b.fresh(t, "d")).collect())
    }
    /// Stops the program.
    fn other_alternative(&mut self) {
        let never = Atom::Const(pullback_prim::ScalarValue::Bool(false));
        let message = "cotangents of different alternatives of a sum".into();
        self.b.emit(Exp::Assert(never, message, Vec::new()), "ok");
    }

    /// The sum of arrays of a type's leaves.
    pub(super) fn sum_of_all(
        &mut self,
        ty: &Type,
        n: Atom,
        arrays: &[Atom],
        zeros: &[Atom],
        span: Option<Span>,
    ) -> Lowered<Vec<Atom>> {
        match ty {
            Type::Tuple(ts) | Type::SparseTuple(ts) => {
                let (arrays, zeros) = (self.split(ts, arrays, span)?, self.split(ts, zeros, span)?);
                let mut out = Vec::new();
                for (t, (arrays, zeros)) in ts.iter().zip(arrays.iter().zip(&zeros)) {
                    out.extend(self.sum_of_all(t, n, arrays, zeros, span)?);
                }
                Ok(out)
            }
            Type::Bag(t) => {
                let bag = self.bag(t, span)?;
                let all = bag.into_iter().zip(arrays);
                Ok(all.map(|(bag, &all)| self.b.emit(Exp::Inject(bag, ALL, vec![all]), "bag")).collect())
            }
            Type::Scalar(s) => {
                let of = core::Type::from(*s);
                let (x, y) = (self.b.fresh(of.clone(), "x"), self.b.fresh(of, "y"));
                let body = self.body(span, |l| Ok(vec![l.b.emit(Exp::Plus(x.into(), y.into()), "t")]))?;
                let lam = core::Lam { params: vec![x, y], body };
                let (neutral, arrays) = (zeros.to_vec(), arrays.to_vec());
                let reduce = core::Soac::Reduce { width: n, lam, neutral, arrays, commutative: true };
                Ok(self.emit_all(Exp::Soac(reduce), "r"))
            }
            ty => self.repeated(n, zeros, span, |l, i, now| {
                let next = arrays.iter().map(|&a| l.b.emit(Exp::Index(a, vec![i]), "d"));
                let next: Vec<Atom> = next.collect();
                l.sum(ty, now, &next, span)
            }),
        }
    }

    /// A term that makes or takes apart a sparse cotangent.
    pub(super) fn sparse(&mut self, t: &Term) -> Lowered<Val> {
        let span = t.span();
        Ok(Val::data(match t.exp() {
            Lam::SparseTuple(items) => {
                let mut out = Vec::new();
                for item in items {
                    out.extend_from_slice(&self.data(item)?);
                }
                out
            }
            Lam::SparseProj(x, i) => {
                let Type::SparseTuple(ts) = x.ty() else {
                    return self.bug(span, "a component of no sparse product");
                };
                let all = self.data(x)?;
                match self.split(ts, &all, span)?.get(*i) {
                    Some(part) => part.to_vec(),
                    None => return self.bug(span, "a component that is not there"),
                }
            }
            Lam::SparseInject(ty, k, x) => {
                let payload = self.data(x)?.to_vec();
                let Some(sum) = self.leaves_at(ty, span)?.pop() else {
                    return self.bug(span, "a sparse sum without a leaf");
                };
                vec![self.b.emit(Exp::Inject(sum, k + 1, payload), "d")]
            }
            Lam::SparseCast(x, k) => {
                let Type::SparseSum(ts) = x.ty() else {
                    return self.bug(span, "an alternative of no sparse sum");
                };
                let x = self.atom(x)?;
                let ty = t.ty();
                let mut arms =
                    vec![core::Lam { params: Vec::new(), body: self.body(span, |l| l.zeros(ty, span))? }];
                for (j, of) in ts.iter().enumerate() {
                    let params = self.fresh_leaves(of, span)?;
                    let body = self.body(span, |l| {
                        if j == *k {
                            return Ok(params.iter().map(|&v| v.into()).collect());
                        }
                        l.other_alternative();
                        l.zeros(ty, span)
                    })?;
                    arms.push(core::Lam { params, body });
                }
                self.emit_some(Exp::Match(x, arms), "d")
            }
            Lam::BagOne(i, x) => {
                let (i, x) = (self.atom(i)?, self.data(x)?);
                self.bag_of(t, ONE, i, &x)?
            }
            Lam::BagArray(ix, xs) => {
                let (ix, xs) = (self.atom(ix)?, self.data(xs)?);
                self.bag_of(t, ARRAY, ix, &xs)?
            }
            Lam::BagScatter(n, bag) => {
                let n = self.atom(n)?;
                let Type::Bag(element) = bag.ty() else { return self.bug(span, "what is no bag") };
                let bag = self.data(bag)?;
                let arrays = match bag.first() {
                    Some(&bag) => {
                        let f = self.collector(element, span)?;
                        self.emit_all(Exp::Call(f, vec![n, bag]), "ds")
                    }
                    None => {
                        let unit = self.b.emit(Exp::Tuple(Vec::new()), "u");
                        vec![self.b.emit(Exp::Replicate(vec![n], unit), "us")]
                    }
                };
                self.sized(arrays, Some(n))
            }
            _ => return self.bug(span, "no sparse cotangent"),
        }))
    }
    fn bag_of(&mut self, t: &Term, variant: usize, at: Atom, values: &[Atom]) -> Lowered<Vec<Atom>> {
        let leaves = self.leaves_at(t.ty(), t.span())?;
        let payload: Vec<Atom> = std::iter::once(at).chain(values.iter().copied()).collect();
        Ok(leaves
            .into_iter()
            .map(|bag| self.b.emit(Exp::Inject(bag, variant, payload.clone()), "bag"))
            .collect())
    }

    /// `(n, bag) -> arrays`: the sum of what a bag has at each position.
    fn collector(&mut self, element: &Type, span: Option<Span>) -> Lowered<core::FunId> {
        let leaves = self.leaves_at(element, span)?;
        let kind = self.bag_kind(element, leaves.clone());
        if let Some(known) = self.bags[kind].collector {
            return Ok(known);
        }
        let bag_type = core::Type::Named(self.bags[kind].id);
        let stack_name = self.type_name("stack");
        let stack_id = self.b.program.types.push(core::TypeDef { name: stack_name, variants: Vec::new() });
        let stack_type = core::Type::Named(stack_id);
        self.b.program.types[stack_id].variants = vec![
            core::Variant { name: "nil".into(), fields: Vec::new() },
            core::Variant { name: "cons".into(), fields: vec![bag_type.clone(), stack_type.clone()] },
        ];
        let arrays: Vec<core::Type> = leaves.iter().cloned().map(core::Type::array).collect();
        let (n, bag) = (self.b.fresh(core::Type::I64, "n"), self.b.fresh(bag_type, "bag"));
        let name = self.fresh_name(&"collect".into(), false);
        let fun = core::Fun {
            name,
            params: vec![n, bag],
            body: core::Body::default(),
            results: arrays.clone(),
            entry: None,
        };
        let id = self.b.program.funs.push(fun);
        self.bags[kind].collector = Some(id);
        let outer_bodies = std::mem::replace(&mut self.body_depth, 0);
        let body = self.body(span, |l| {
            let zeros = l.zeros(element, span)?;
            let first: Vec<Atom> =
                zeros.into_iter().map(|z| l.b.emit(Exp::Replicate(vec![n.into()], z), "ds")).collect();
            let nil = l.b.emit(Exp::Inject(stack_type.clone(), 0, Vec::new()), "stack");
            let whole = l.b.emit(Exp::Inject(stack_type.clone(), 1, vec![bag.into(), nil]), "stack");
            let stack = l.b.fresh(stack_type.clone(), "stack");
            let state: Vec<core::Var> = arrays.iter().map(|t| l.b.fresh(t.clone(), "ds")).collect();
            let test = l.body(span, |l| {
                let yes_no = |b: bool| Atom::Const(pullback_prim::ScalarValue::Bool(b));
                let empty =
                    core::Lam { params: Vec::new(), body: l.body(span, |_| Ok(vec![yes_no(false)]))? };
                let params = l.fresh_variant(&stack_type, 1);
                let more = core::Lam { params, body: l.body(span, |_| Ok(vec![yes_no(true)]))? };
                Ok(vec![l.b.emit(Exp::Match(stack.into(), vec![empty, more]), "more")])
            })?;
            let now: Vec<Atom> = state.iter().map(|&v| v.into()).collect();
            let body = l.body(span, |l| {
                let unchanged =
                    |stack: Atom| std::iter::once(stack).chain(now.clone()).collect::<Vec<Atom>>();
                let done =
                    core::Lam { params: Vec::new(), body: l.body(span, |_| Ok(unchanged(stack.into())))? };
                let params = l.fresh_variant(&stack_type, 1);
                let (top, rest) = (params[0], Atom::from(params[1]));
                let step = l.body(span, |l| l.collected(element, top, rest, &now, &stack_type, span))?;
                let more = core::Lam { params, body: step };
                Ok(l.emit_all(Exp::Match(stack.into(), vec![done, more]), "s"))
            })?;
            let params = std::iter::once((stack, whole)).chain(state.iter().copied().zip(first)).collect();
            let form = core::LoopForm::While(test);
            let attrs = core::LoopAttrs::default();
            let looped = Exp::Loop(core::Loop { params, form, body, collect: 0, attrs });
            Ok(l.emit_all(looped, "ds").split_off(1))
        })?;
        self.body_depth = outer_bodies;
        self.b.program.funs[id].body = body;
        Ok(id)
    }
    fn fresh_variant(&mut self, ty: &core::Type, k: usize) -> Vec<core::Var> {
        let fields = self.b.program.variants(ty).and_then(|vs| vs.get(k)).map(|v| v.fields.clone());
        fields.unwrap_or_default().into_iter().map(|t| self.b.fresh(t, "x")).collect()
    }
    /// The stack and the arrays after what the bag on top has.
    fn collected(
        &mut self,
        element: &Type,
        top: core::Var,
        rest: Atom,
        now: &[Atom],
        stack: &core::Type,
        span: Option<Span>,
    ) -> Lowered<Vec<Atom>> {
        let bag = self.b.ty(top.into());
        let with =
            |stack: Atom, arrays: Vec<Atom>| std::iter::once(stack).chain(arrays).collect::<Vec<Atom>>();
        let mut arms = Vec::new();
        for variant in [EMPTY, ONE, PLUS, ARRAY, ALL] {
            let params = self.fresh_variant(&bag, variant);
            let x: Vec<Atom> = params.iter().map(|&v| v.into()).collect();
            let body = self.body(span, |l| match variant {
                EMPTY => Ok(with(rest, now.to_vec())),
                ONE => {
                    let arrays = l.added(element, now, x[0], &x[1..], span)?;
                    Ok(with(rest, arrays))
                }
                PLUS => {
                    let second = l.b.emit(Exp::Inject(stack.clone(), 1, vec![x[1], rest]), "stack");
                    let first = l.b.emit(Exp::Inject(stack.clone(), 1, vec![x[0], second]), "stack");
                    Ok(with(first, now.to_vec()))
                }
                ARRAY => {
                    let n = l.b.size(x[0], 0);
                    let arrays = l.repeated(n, now, span, |l, i, now| {
                        let at = l.b.emit(Exp::Index(x[0], vec![i]), "at");
                        let values = x[1..].iter().map(|&a| l.b.emit(Exp::Index(a, vec![i]), "d"));
                        let values: Vec<Atom> = values.collect();
                        l.added(element, now, at, &values, span)
                    })?;
                    Ok(with(rest, arrays))
                }
                _ => {
                    let n = l.b.size(x[0], 0);
                    let pushed = l.repeated(n, &[rest], span, |l, i, below| {
                        // The first one last, so that it is on top.
                        let last = l.b.emit(int(Op::Sub, n, Atom::i64(1)), "i");
                        let at = l.b.emit(int(Op::Sub, last, i), "i");
                        let bag = l.b.emit(Exp::Index(x[0], vec![at]), "bag");
                        Ok(vec![l.b.emit(Exp::Inject(stack.clone(), 1, vec![bag, below[0]]), "stack")])
                    })?;
                    Ok(with(pushed[0], now.to_vec()))
                }
            })?;
            arms.push(core::Lam { params, body });
        }
        Ok(self.emit_all(Exp::Match(top.into(), arms), "s"))
    }
    /// `loop now = first for i < n do next i now`
    fn repeated(
        &mut self,
        n: Atom,
        first: &[Atom],
        span: Option<Span>,
        next: impl FnOnce(&mut Self, Atom, &[Atom]) -> Lowered<Vec<Atom>>,
    ) -> Lowered<Vec<Atom>> {
        let i = self.b.fresh(core::Type::I64, "i");
        let mut params = Vec::new();
        for &a in first {
            let ty = self.b.ty(a);
            params.push((self.b.fresh(ty, "d"), a));
        }
        let now: Vec<Atom> = params.iter().map(|p| p.0.into()).collect();
        let body = self.body(span, |l| next(l, i.into(), &now))?;
        let form = core::LoopForm::For { i, n };
        let attrs = core::LoopAttrs::default();
        Ok(self.emit_all(Exp::Loop(core::Loop { params, form, body, collect: 0, attrs }), "d"))
    }
    /// The arrays with a value added at a position.
    fn added(
        &mut self,
        element: &Type,
        arrays: &[Atom],
        at: Atom,
        values: &[Atom],
        span: Option<Span>,
    ) -> Lowered<Vec<Atom>> {
        let old: Vec<Atom> = arrays.iter().map(|&a| self.b.emit(Exp::Index(a, vec![at]), "d")).collect();
        let new = self.sum(element, &old, values, span)?;
        let both = arrays.iter().zip(new);
        Ok(both.map(|(&a, x)| self.b.emit(Exp::Update(a, vec![at], x), "ds")).collect())
    }

    /// The sign of an `f64`, of [`Type::sign`].
    pub(super) fn sign(&mut self, x: &Term, ty: &Type) -> Lowered<Val> {
        let span = x.span();
        let x = self.atom(x)?;
        let Some(sum) = self.leaves_at(ty, span)?.pop() else {
            return self.bug(span, "a sign without a leaf");
        };
        let side = match &sum {
            core::Type::Sum(variants) => variants.first().and_then(|v| v.fields.first()).cloned(),
            _ => None,
        };
        let Some(side) = side else { return self.bug(span, "a sign without sides") };
        let zero = Atom::Const(Scalar::F64.zero());
        let less = |a: Atom, b: Atom| Exp::Prim(Prim::Op(Op::Lt, Scalar::F64), vec![a, b]);
        let apart = |l: &mut Self, k: usize| {
            let side = l.b.emit(Exp::Inject(side.clone(), k, Vec::new()), "side");
            l.b.emit(Exp::Inject(sum.clone(), 0, vec![side]), "sign")
        };
        let below = self.b.emit(less(x, zero), "below");
        let then = self.body(span, |l| Ok(vec![apart(l, 0)]))?;
        let otherwise = self.body(span, |l| {
            let above = l.b.emit(less(zero, x), "above");
            let then = l.body(span, |l| Ok(vec![apart(l, 1)]))?;
            let none =
                l.body(span, |l| Ok(vec![l.b.emit(Exp::Inject(sum.clone(), 1, Vec::new()), "sign")]))?;
            Ok(vec![l.b.emit(Exp::If(above, then, none), "sign")])
        })?;
        Ok(Val::data([self.b.emit(Exp::If(below, then, otherwise), "sign")]))
    }
}

fn int(op: Op, a: Atom, b: Atom) -> Exp {
    Exp::Prim(Prim::Op(op, Scalar::I64), vec![a, b])
}
