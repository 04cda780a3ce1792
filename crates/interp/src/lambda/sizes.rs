//! The inner sizes of a map over nothing: those that its function would return, as far as they can be known without running it.
//!
//! As in the core interpreter: a map over nothing whose function returns arrays has a result `[0][m]`. The size `m` is found by evaluating the
//! function on sizes alone: scalars that depend on elements are unknown, sizes computed from known ones are known. What stays unknown is 0.
//! Where calls go too deep or are too many, a second question asks with less: no function within itself, no scalar known in calls.
//! A computation is known by its result. Takes no steps of the cost model; physical cost: the size of the function, with a bound on calls.

use super::Compiled;
use super::value::{Arr, Elems, FunCode, LambdaCode, Val};
use crate::core::compile::deep;
use crate::core::shapes::{FUEL, OPEN_CALLS};
use pullback_base::index::IdMap;
use pullback_lambda::{Arm, Derivative, Exp, FunId, Loop, LoopForm, Seeds, Soac, Term, Type, Var};
use pullback_prim::{Prim, ScalarValue};
use std::rc::Rc;

/// What is known about a value.
#[derive(Clone, Debug)]
pub(super) enum Known {
    Scalar(Option<ScalarValue>),
    /// Outer size and elements.
    Array(Option<usize>, Rc<Known>),
    Tuple(Rc<[Known]>),
    /// A lambda and what it captured.
    Fun(Rc<LambdaCode>, Rc<[Known]>),
    /// All: it is this value.
    Value(Val),
    Nothing,
}

/// Whether sizes are lost with the elements of an array of this type: there are arrays in them, outside of sums.
pub(super) fn matter(element: &Type) -> bool {
    match element {
        Type::Array(_) => true,
        Type::Tuple(ts) => ts.iter().any(matter),
        Type::Scalar(_)
        | Type::Sum(_)
        | Type::Named(_)
        | Type::Fun(..)
        | Type::Linear(..)
        | Type::SparseTuple(_)
        | Type::SparseSum(_)
        | Type::Bag(_)
        | Type::Evm(..)
        | Type::Staged(_)
        | Type::Map(_)
        | Type::Io(_)
        | Type::MutArray(_) => false,
    }
}

/// What is known about the result of a function of the elements of these arrays.
pub(super) fn of_result(code: &Compiled<'_>, f: &Val, arrays: &[Arr]) -> Known {
    let ask = |depth: usize| {
        let mut guess = Guess { code, vars: IdMap::new(), open: Vec::new(), depth, fuel: FUEL, cut: false };
        let rows = arrays.iter().map(|a| Known::of_array(a, 0).element());
        (rows.fold(Known::Value(f.clone()), |f, row| guess.apply(&f, row)), guess.cut)
    };
    let (known, cut) = ask(OPEN_CALLS);
    if cut { known.completed(&ask(0).0) } else { known }
}

impl Known {
    /// An array without its first `k` dimensions.
    fn of_array(a: &Arr, k: usize) -> Known {
        let base = match &a.elems {
            Elems::Cells { data, .. } if data.store.kind().is_some() => Known::Scalar(None),
            Elems::Cells { .. } => Known::Nothing,
            Elems::Product(parts) => {
                Known::Tuple(parts.iter().map(|p| Known::of_array(p, a.shape.len())).collect())
            }
        };
        a.shape[k..].iter().rev().fold(base, |inner, &n| inner.under(Some(n)))
    }
    /// The same, with the parts of a value beside each other.
    fn opened(&self) -> Known {
        match self {
            Known::Value(Val::Num(x)) => Known::Scalar(Some(x.primal())),
            Known::Value(Val::Tuple(node)) => {
                Known::Tuple(node.items.iter().cloned().map(Known::Value).collect())
            }
            Known::Value(Val::Arr(a)) => Known::of_array(a, 0),
            Known::Value(Val::Fun(FunCode::Lambda(lambda), node)) => {
                Known::Fun(lambda.clone(), node.items.iter().cloned().map(Known::Value).collect())
            }
            Known::Value(_) => Known::Nothing,
            other => other.clone(),
        }
    }
    /// An array of elements like this one.
    fn under(self, outer: Option<usize>) -> Known {
        Known::Array(outer, Rc::new(self))
    }
    pub(super) fn element(&self) -> Known {
        match self.opened() {
            Known::Array(_, element) => Known::clone(&element),
            _ => Known::Nothing,
        }
    }
    /// What is left after so many dimensions.
    fn peeled(&self, k: usize) -> Known {
        (0..k).fold(self.clone(), |known, _| known.element())
    }
    pub(super) fn part(&self, i: usize) -> Known {
        match self.opened() {
            Known::Tuple(parts) => parts.get(i).cloned().unwrap_or(Known::Nothing),
            _ => Known::Nothing,
        }
    }
    pub(super) fn dim(&self, d: usize) -> Option<usize> {
        match self.peeled(d).opened() {
            Known::Array(n, _) => n,
            _ => None,
        }
    }
    fn scalar(&self) -> Option<ScalarValue> {
        match self.opened() {
            Known::Scalar(x) => x,
            _ => None,
        }
    }
    fn size(&self) -> Option<usize> {
        self.scalar().and_then(|n| usize::try_from(n.as_i64()).ok())
    }
    /// The outer sizes of an array, unknown ones as 0, and what is in it.
    pub(super) fn dims(&self, rank: usize) -> (Vec<usize>, Known) {
        ((0..rank).map(|d| self.dim(d).unwrap_or(0)).collect(), self.peeled(rank))
    }
    /// The array of these sizes of elements like this one.
    pub(super) fn within(self, sizes: &[usize]) -> Known {
        sizes.iter().rev().fold(self, |inner, &n| inner.under(Some(n)))
    }
    /// Without the values of scalars: what is known of all iterations, of all elements.
    fn forgotten(&self) -> Known {
        match self.opened() {
            Known::Scalar(_) => Known::Scalar(None),
            Known::Tuple(parts) => Known::Tuple(parts.iter().map(Known::forgotten).collect()),
            other => other,
        }
    }
    /// What is known if it may be either. A size that one of them does not tell is that of the other: they have one type.
    fn or(&self, other: &Known) -> Known {
        match (self.opened(), other.opened()) {
            (Known::Nothing, Known::Scalar(_)) | (Known::Scalar(_), Known::Nothing) => Known::Scalar(None),
            (Known::Nothing, known) | (known, Known::Nothing) => known,
            (Known::Scalar(x), Known::Scalar(y)) => Known::Scalar(x.filter(|x| y == Some(*x))),
            (Known::Array(n, x), Known::Array(m, y)) => {
                let size = match (n, m) {
                    (Some(n), Some(m)) => Some(n).filter(|n| *n == m),
                    (n, m) => n.or(m),
                };
                x.or(&y).under(size)
            }
            (Known::Tuple(x), Known::Tuple(y)) => {
                Known::Tuple(x.iter().zip(y.iter()).map(|(x, y)| x.or(y)).collect())
            }
            // One of two functions: the first one, they have one type.
            (f @ Known::Fun(..), Known::Fun(..)) => f,
            _ => Known::Nothing,
        }
    }
    /// What is known if both are about one value: where this does not tell a size, what the other says.
    fn completed(&self, other: &Known) -> Known {
        match (self.opened(), other.opened()) {
            (Known::Array(n, x), Known::Array(m, y)) => x.completed(&y).under(n.or(m)),
            (Known::Tuple(x), Known::Tuple(y)) => {
                Known::Tuple(x.iter().zip(y.iter()).map(|(x, y)| x.completed(y)).collect())
            }
            (Known::Nothing, other) => other,
            (known, _) => known,
        }
    }
}

fn unit() -> Known {
    Known::Tuple(Rc::new([]))
}

/// One question.
struct Guess<'c, 'p> {
    code: &'c Compiled<'p>,
    vars: IdMap<Var, Known>,
    /// The functions that are called.
    open: Vec<FunId>,
    /// How many calls of one function may be open.
    depth: usize,
    fuel: usize,
    /// Whether something was not looked at.
    cut: bool,
}

impl Guess<'_, '_> {
    /// A body with these variables and no others.
    fn body(&mut self, vars: impl Iterator<Item = (Var, Known)>, body: &Term) -> Known {
        let outer = std::mem::replace(&mut self.vars, vars.collect());
        let known = self.term(body);
        self.vars = outer;
        known
    }
    fn apply(&mut self, f: &Known, arg: Known) -> Known {
        match f {
            Known::Value(Val::Fun(FunCode::Constant, node)) => {
                node.items.first().map_or(Known::Nothing, |x| Known::Value(x.clone()))
            }
            Known::Value(Val::Fun(FunCode::Sum, node)) => {
                let known = node.items.iter().map(|f| self.apply(&Known::Value(f.clone()), arg.clone()));
                known.reduce(|x, y| x.or(&y)).unwrap_or(Known::Nothing)
            }
            f => match f.opened() {
                Known::Fun(lambda, captured) => {
                    let vars = lambda.captures.iter().copied().zip(captured.iter().cloned());
                    self.body(vars.chain([(lambda.param, arg)]), &lambda.body)
                }
                _ => Known::Nothing,
            },
        }
    }
    fn call(&mut self, f: FunId, args: Vec<Known>) -> Known {
        let open = self.open.iter().filter(|g| **g == f).count();
        let Some((fun, body)) = self.code.program.funs.get(f).and_then(|fun| Some((fun, fun.body.as_ref()?)))
        else {
            return Known::Nothing;
        };
        if open > self.depth {
            self.cut = true;
            return Known::Nothing;
        }
        let is_last = open == self.depth;
        let args = args.into_iter().map(|a| if is_last { a.forgotten() } else { a });
        let kept = if open == 0 { self.fuel / 2 } else { 0 };
        self.fuel -= kept;
        self.open.push(f);
        let known = self.body(fun.params.iter().copied().zip(args), body);
        self.open.pop();
        self.fuel += kept;
        known
    }
    fn terms(&mut self, ts: &[Term]) -> Vec<Known> {
        ts.iter().map(|t| self.term(t)).collect()
    }
    fn sizes(&mut self, ts: &[Term]) -> Vec<Option<usize>> {
        ts.iter().map(|t| self.size(t)).collect()
    }
    fn size(&mut self, t: &Term) -> Option<usize> {
        self.term(t).size()
    }
    fn term(&mut self, t: &Term) -> Known {
        let mut t = t;
        while let Exp::Let(v, value, body) = t.exp() {
            let value = self.term(value);
            self.vars.insert(*v, value);
            t = body;
        }
        if self.fuel == 0 {
            self.cut = true;
            return Known::Nothing;
        }
        self.fuel -= 1;
        deep(|| self.node(t))
    }
    fn node(&mut self, t: &Term) -> Known {
        match t.exp() {
            Exp::Let(..) => self.term(t),
            Exp::Var(v) => self.vars.get(v).cloned().unwrap_or(Known::Nothing),
            Exp::Const(c) => Known::Scalar(Some(*c)),
            Exp::Prim(prim, args) => self.prim(*prim, args),
            Exp::Lam(param, _) | Exp::LinearLam(param, _) => match self.code.lambdas.get(param) {
                Some(lambda) => {
                    let captured = lambda.captures.iter().map(|v| self.vars.get(v).cloned());
                    Known::Fun(lambda.clone(), captured.map(|k| k.unwrap_or(Known::Nothing)).collect())
                }
                None => Known::Nothing,
            },
            Exp::App(f, a) | Exp::LinearApp(f, a) | Exp::Custom { f, arg: a, .. } => {
                let (f, a) = (self.term(f), self.term(a));
                self.apply(&f, a)
            }
            // A computation, and what follows on its result.
            Exp::EvmBind(m, k) | Exp::IoBind(m, k) => {
                let (m, k) = (self.term(m), self.term(k));
                self.apply(&k, m)
            }
            Exp::Call(f, args) => {
                let args = self.terms(args);
                self.call(*f, args)
            }
            Exp::Tuple(ts) | Exp::SparseTuple(ts) | Exp::Par(ts) | Exp::EvmPar(ts) | Exp::IoPar(ts) => {
                Known::Tuple(self.terms(ts).into())
            }
            Exp::Proj(x, i) | Exp::SparseProj(x, i) => self.term(x).part(*i),
            Exp::Match(_, arms) => self.arms(arms),
            Exp::If(c, a, b) => match self.term(c).scalar() {
                Some(c) => self.term(if c.is_true() { a } else { b }),
                None => {
                    let a = self.term(a);
                    a.or(&self.term(b))
                }
            },
            Exp::Loop(l) => self.loop_(l),
            Exp::Assert { body: x, .. }
            | Exp::SameSize { body: x, .. }
            | Exp::Marked(_, x)
            | Exp::StopGradient(x)
            | Exp::EvmReturn(_, x)
            | Exp::EvmSequence(_, x)
            | Exp::IoReturn(x)
            | Exp::IoRun(x) => self.term(x),
            Exp::Vjp(d) => self.derivative(d, true),
            Exp::Jvp(d) => self.derivative(d, false),
            Exp::Zero(ty) => of_zero(ty),
            Exp::Plus(a, b) => {
                let a = self.term(a);
                a.or(&self.term(b))
            }
            Exp::EvmAdd { .. } | Exp::MutSet(..) => unit(),
            Exp::EvmScope(first, m) => {
                let cell = self.term(first).forgotten();
                Known::Tuple([cell, self.term(m)].into())
            }
            Exp::EvmRun(m, first) => {
                let result = self.term(m);
                Known::Tuple([result, self.term(first).forgotten()].into())
            }
            Exp::MutGet(a, _) | Exp::MutModify(a, ..) => self.term(a).element(),
            Exp::MutPush(..) | Exp::MutSize(_) => Known::Scalar(None),
            // Cells may have been added.
            Exp::MutFreeze(a) => self.term(a).element().under(None),
            Exp::Soac(soac) => self.soac(soac),
            Exp::ArrayLit(..)
            | Exp::Index(..)
            | Exp::Slice(..)
            | Exp::Update(..)
            | Exp::UpdateSlice(..)
            | Exp::Gather(..)
            | Exp::Size(..)
            | Exp::Iota(_)
            | Exp::Replicate(..)
            | Exp::MutNew(..)
            | Exp::Rearrange(..)
            | Exp::Reshape { .. }
            | Exp::Concat(_)
            | Exp::Reverse(_)
            | Exp::Rotate(..)
            | Exp::Zip(_)
            | Exp::Unzip(_)
            | Exp::BagScatter(..) => self.array(t),
            Exp::Sign(_)
            | Exp::Inject(..)
            | Exp::SparseInject(..)
            | Exp::SparseCast(..)
            | Exp::BagOne(..)
            | Exp::BagArray(..)
            | Exp::StagedCotangent(_)
            | Exp::StagedCall(..)
            | Exp::StagedResolve(_)
            | Exp::MapEmpty(_)
            | Exp::MapInsert { .. }
            | Exp::MapLookup(..)
            | Exp::MapPopMax(_) => Known::Nothing,
        }
    }
    fn prim(&mut self, prim: Prim, args: &[Term]) -> Known {
        let known = self.terms(args);
        let known = match (&known[..], args) {
            ([one], [t]) if matches!(t.ty(), Type::Tuple(_)) => {
                (0..prim.params().len()).map(|i| one.part(i)).collect()
            }
            _ => known,
        };
        let values: Option<Vec<ScalarValue>> = known.iter().map(Known::scalar).collect();
        Known::Scalar(values.and_then(|v| prim.eval(&v).ok()))
    }
    fn arms(&mut self, arms: &[Arm]) -> Known {
        let known = arms.iter().map(|arm| {
            arm.params.iter().for_each(|p| drop(self.vars.insert(*p, Known::Nothing)));
            self.term(&arm.body)
        });
        known.reduce(|a, b| a.or(&b)).unwrap_or(Known::Nothing)
    }
    /// One iteration on what stays the same in all of them.
    fn loop_(&mut self, l: &Loop) -> Known {
        let mut state = self.term(&l.init).forgotten();
        // Twice: sizes that change in the first iteration are unknown in the second.
        for _ in 0..2 {
            if let LoopForm::For(i, _) = &l.form {
                self.vars.insert(*i, Known::Scalar(None));
            }
            self.vars.insert(l.state, state.clone());
            state = state.or(&self.term(&l.body)).forgotten();
        }
        state
    }
    fn derivative(&mut self, d: &Derivative, reverse: bool) -> Known {
        let (f, arg) = (self.term(&d.f), self.term(&d.arg));
        let value = self.apply(&f, arg.clone());
        let derivative = if reverse { arg } else { value.clone() }.forgotten();
        let derivative = match d.seeds {
            Seeds::One => derivative,
            Seeds::Many => derivative.under(self.term(&d.seed).dim(0)),
        };
        Known::Tuple([value, derivative].into())
    }
    fn soac(&mut self, soac: &Soac) -> Known {
        match soac {
            Soac::Map { f, arrays } => {
                let f = self.term(f);
                let arrays = self.terms(arrays);
                let n = arrays.iter().find_map(|a| a.dim(0));
                let result = arrays.iter().fold(f, |f, a| self.apply(&f, a.element()));
                result.forgotten().under(n)
            }
            Soac::Reduce { neutral, .. } => self.term(neutral).forgotten(),
            Soac::Scan { neutral, array, .. } => {
                let n = self.term(array).dim(0);
                self.term(neutral).forgotten().under(n)
            }
            Soac::Hist { dst, .. } | Soac::Scatter { dst, .. } => self.term(dst),
        }
    }
    fn array(&mut self, t: &Term) -> Known {
        match t.exp() {
            Exp::ArrayLit(_, items) => {
                let first = items.first().map_or(Known::Nothing, |x| self.term(x).forgotten());
                first.under(Some(items.len()))
            }
            Exp::Index(a, ix) => self.term(a).peeled(ix.len()),
            Exp::Slice(a, d) => {
                let element = self.term(a).element();
                element.under(self.size(&d.len))
            }
            Exp::Update(a, ..) | Exp::UpdateSlice(a, ..) | Exp::Reverse(a) | Exp::Rotate(_, a) => {
                self.term(a)
            }
            Exp::Gather(a, ix) => {
                let element = self.term(a).element();
                element.under(self.term(ix).dim(0))
            }
            Exp::Size(a, d) => {
                let size = self.term(a).dim(*d);
                Known::Scalar(size.map(|n| ScalarValue::I64(n as i64)))
            }
            Exp::Iota(n) => Known::Scalar(None).under(self.size(n)),
            Exp::Replicate(n, x) | Exp::MutNew(n, x) => {
                let size = self.size(n);
                self.term(x).forgotten().under(size)
            }
            Exp::BagScatter(n, _) => Known::Nothing.under(self.size(n)),
            Exp::Rearrange(perm, a) => {
                let a = self.term(a);
                let inner = a.peeled(perm.len());
                perm.iter().rev().fold(inner, |inner, &d| inner.under(a.dim(d)))
            }
            Exp::Reshape { shape, from, array } => {
                let sizes = self.sizes(shape);
                let inner = self.term(array).peeled(*from);
                sizes.into_iter().rev().fold(inner, Known::under)
            }
            Exp::Concat(ts) => {
                let all = self.terms(ts);
                let total = all.iter().try_fold(0usize, |n, a| n.checked_add(a.dim(0)?));
                let inner = all.iter().map(Known::element).reduce(|a, b| a.or(&b));
                inner.unwrap_or(Known::Nothing).under(total)
            }
            Exp::Zip(ts) => {
                let all = self.terms(ts);
                let n = all.iter().find_map(|a| a.dim(0));
                Known::Tuple(all.iter().map(Known::element).collect()).under(n)
            }
            Exp::Unzip(a) => {
                let a = self.term(a);
                let (n, parts) = (a.dim(0), t.ty().items().map_or(0, <[Type]>::len));
                Known::Tuple((0..parts).map(|i| a.element().part(i).under(n)).collect())
            }
            _ => Known::Nothing,
        }
    }
}

/// The zero of a type: that of arrays does not know their sizes.
fn of_zero(ty: &Type) -> Known {
    match ty {
        Type::Scalar(s) => Known::Scalar(Some(s.zero())),
        Type::Tuple(ts) => Known::Tuple(ts.iter().map(of_zero).collect()),
        _ => Known::Nothing,
    }
}
