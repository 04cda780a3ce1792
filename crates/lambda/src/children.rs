//! The direct subterms of a term, in evaluation order.

use crate::check::binders;
use crate::term::{Exp, FunId, LoopForm, Program, Soac, Term, Var};
use pullback_base::index::IdSet;

/// One list of subterms for both kinds of borrow, so that they cannot differ.
macro_rules! visit_children {
    ($exp:expr, $f:expr, $iter:ident) => {{
        let f = $f;
        match $exp {
            Exp::Var(_) | Exp::Const(_) | Exp::Zero(_) | Exp::MapEmpty(_) => {}
            Exp::Prim(_, ts)
            | Exp::Call(_, ts)
            | Exp::Tuple(ts)
            | Exp::Inject(_, _, ts)
            | Exp::ArrayLit(_, ts)
            | Exp::Concat(ts)
            | Exp::Zip(ts)
            | Exp::Par(ts)
            | Exp::SparseTuple(ts)
            | Exp::EvmPar(ts)
            | Exp::IoPar(ts) => ts.$iter().for_each(f),
            Exp::Sign(a)
            | Exp::Lam(_, a)
            | Exp::Proj(a, _)
            | Exp::Size(a, _)
            | Exp::Iota(a)
            | Exp::Rearrange(_, a)
            | Exp::Reverse(a)
            | Exp::Unzip(a)
            | Exp::Marked(_, a)
            | Exp::StopGradient(a)
            | Exp::LinearLam(_, a)
            | Exp::SparseProj(a, _)
            | Exp::SparseInject(_, _, a)
            | Exp::SparseCast(a, _)
            | Exp::EvmReturn(_, a)
            | Exp::EvmAdd { value: a, .. }
            | Exp::EvmSequence(_, a)
            | Exp::StagedCotangent(a)
            | Exp::StagedResolve(a)
            | Exp::MapPopMax(a)
            | Exp::IoReturn(a)
            | Exp::IoRun(a)
            | Exp::MutSize(a)
            | Exp::MutFreeze(a) => f(a),
            Exp::Let(_, a, b)
            | Exp::App(a, b)
            | Exp::Gather(a, b)
            | Exp::Replicate(a, b)
            | Exp::Rotate(a, b)
            | Exp::LinearApp(a, b)
            | Exp::Plus(a, b)
            | Exp::BagOne(a, b)
            | Exp::BagArray(a, b)
            | Exp::BagScatter(a, b)
            | Exp::EvmBind(a, b)
            | Exp::EvmScope(a, b)
            | Exp::EvmRun(a, b)
            | Exp::MapLookup(a, b)
            | Exp::IoBind(a, b)
            | Exp::MutNew(a, b)
            | Exp::MutGet(a, b)
            | Exp::MutPush(a, b)
            | Exp::Assert { condition: a, body: b, .. } => {
                f(a);
                f(b);
            }
            Exp::If(a, b, c)
            | Exp::StagedCall(a, b, c)
            | Exp::MutSet(a, b, c)
            | Exp::MutModify(a, b, c)
            | Exp::SameSize { left: a, right: b, body: c, .. }
            | Exp::Custom { f: a, rule: b, arg: c, tape: _ } => {
                f(a);
                f(b);
                f(c);
            }
            Exp::Match(a, arms) => {
                f(a);
                arms.$iter().for_each(|arm| visit_children!(@field f, arm, body, $iter));
            }
            Exp::Loop(l) => {
                visit_children!(@field f, l, init, $iter);
                match visit_children!(@borrow l, form, $iter) {
                    LoopForm::For(_, n) => f(n),
                    LoopForm::While(c) => f(c),
                }
                visit_children!(@field f, l, body, $iter);
            }
            Exp::Index(a, ix) => {
                f(a);
                ix.$iter().for_each(f);
            }
            Exp::Slice(a, d) => {
                f(a);
                visit_children!(@field f, d, start, $iter);
                visit_children!(@field f, d, len, $iter);
                visit_children!(@field f, d, stride, $iter);
            }
            Exp::Update(a, ix, v) => {
                f(a);
                ix.$iter().for_each(&mut *f);
                f(v);
            }
            Exp::UpdateSlice(a, d, v) => {
                f(a);
                visit_children!(@field f, d, start, $iter);
                visit_children!(@field f, d, len, $iter);
                visit_children!(@field f, d, stride, $iter);
                f(v);
            }
            Exp::Reshape { shape, array, .. } => {
                shape.$iter().for_each(&mut *f);
                f(array);
            }
            Exp::Soac(Soac::Map { f: g, arrays }) => {
                f(g);
                arrays.$iter().for_each(f);
            }
            Exp::Soac(Soac::Reduce { op, neutral, array, .. } | Soac::Scan { op, neutral, array }) => {
                f(op);
                f(neutral);
                f(array);
            }
            Exp::Soac(Soac::Hist { op, neutral, dst, indices, values }) => {
                f(op);
                f(neutral);
                f(dst);
                f(indices);
                f(values);
            }
            Exp::Soac(Soac::Scatter { dst, indices, values }) => {
                f(dst);
                f(indices);
                f(values);
            }
            Exp::Vjp(d) | Exp::Jvp(d) => {
                visit_children!(@field f, d, f, $iter);
                visit_children!(@field f, d, arg, $iter);
                visit_children!(@field f, d, seed, $iter);
            }
            Exp::MapInsert { combine, map, key, value } => {
                f(combine);
                f(map);
                f(key);
                f(value);
            }
        }
    }};
    (@field $f:ident, $owner:ident, $field:ident, iter) => { $f(&$owner.$field) };
    (@field $f:ident, $owner:ident, $field:ident, iter_mut) => { $f(&mut $owner.$field) };
    (@borrow $owner:ident, $field:ident, iter) => { &$owner.$field };
    (@borrow $owner:ident, $field:ident, iter_mut) => { &mut $owner.$field };
}

impl Exp {
    /// Calls `f` with every direct subterm, in evaluation order.
    pub fn children<'a>(&'a self, f: &mut dyn FnMut(&'a Term)) {
        visit_children!(self, f, iter);
    }
    /// Calls `f` with every direct subterm, in evaluation order, to replace it.
    pub fn children_mut(&mut self, f: &mut dyn FnMut(&mut Term)) {
        visit_children!(self, f, iter_mut);
    }
}

impl Term {
    /// The variables that the term uses and does not bind, in the order of their numbers.
    pub fn free_vars(&self) -> Vec<Var> {
        let (mut used, mut bound) = (IdSet::new(), IdSet::new());
        let mut pending = vec![self];
        while let Some(t) = pending.pop() {
            match t.exp() {
                Exp::Var(v) => {
                    used.insert(*v);
                }
                Exp::Let(v, ..) | Exp::Lam(v, _) | Exp::LinearLam(v, _) => {
                    bound.insert(*v);
                }
                other => binders(other, &mut |v| {
                    bound.insert(v);
                }),
            }
            t.exp().children(&mut |child| pending.push(child));
        }
        used.into_iter().filter(|v| !bound.contains(v)).collect()
    }
}

impl Program {
    /// The functions that a function calls, once per call.
    pub fn calls(&self, f: FunId) -> Vec<FunId> {
        let mut called = Vec::new();
        let mut pending: Vec<&Term> = self.funs[f].body.iter().collect();
        while let Some(t) = pending.pop() {
            if let Exp::Call(g, _) = t.exp() {
                called.push(*g);
            }
            t.exp().children(&mut |child| pending.push(child));
        }
        called
    }
    /// The functions that running one may run, itself first.
    pub fn reachable(&self, f: FunId) -> Vec<FunId> {
        let mut found = vec![f];
        let mut next = 0;
        while let Some(g) = found.get(next).copied() {
            next += 1;
            for called in self.calls(g) {
                if !found.contains(&called) {
                    found.push(called);
                }
            }
        }
        found
    }
}
