//! Zero and addition, sparse values, accumulating computations, staged calls.

use super::machine::{Machine, pairs};
use super::value::{
    Act, Arr, BagForm, Collector, Elems, Entries, FunCode, IoAct, Node, Num, Staged, Store, Val, wrong,
};
use crate::core::arrays::{agree, mismatch};
use crate::core::compile::deep;
use crate::core::machine::{Res, internal};
use crate::core::num::Domain;
use crate::core::soac::log2;
use crate::dual::number::Dual;
use pullback_core::count_elements;
use pullback_lambda::{Exp, Term, Type};
use std::collections::BTreeMap;
use std::rc::Rc;

impl Machine<'_> {
    /// The value of a term of the cotangent vocabulary.
    pub(super) fn cotangent(&mut self, t: &Term) -> Res<Val> {
        match t.exp() {
            Exp::Zero(ty) => self.zero(ty),
            Exp::Plus(a, b) => {
                self.step(1)?;
                let a = self.eval(a)?;
                let b = self.eval(b)?;
                self.plus(a, b)
            }
            Exp::SparseTuple(items) => {
                self.step(pairs(items.len()))?;
                let items = self.eval_all(items)?;
                Ok(Val::SparseTuple(Node::new(&self.meter, items)?))
            }
            Exp::SparseProj(x, i) => {
                self.step(1)?;
                match self.eval(x)? {
                    Val::SparseTuple(node) => node.item(*i).cloned(),
                    // The zero of a float is not made by an operation here: one step for every type.
                    Val::SparseZero => {
                        self.step(1).and_then(|()| self.zero_value(t.ty()).map(|(zero, _)| zero))
                    }
                    other => Err(wrong("a sparse product", &other)),
                }
            }
            Exp::SparseInject(_, k, x) => {
                self.step(1)?;
                let x = self.eval(x)?;
                Ok(Val::SparseSum(*k, Node::new(&self.meter, vec![x])?))
            }
            Exp::SparseCast(x, k) => {
                self.step(1)?;
                match self.eval(x)? {
                    Val::SparseSum(j, node) if j == *k => node.item(0).cloned(),
                    Val::SparseSum(j, _) => Err(internal(format!(
                        "a cotangent of alternative {j} where one of alternative {k} is expected"
                    ))),
                    Val::SparseZero => {
                        self.step(1).and_then(|()| self.zero_value(t.ty()).map(|(zero, _)| zero))
                    }
                    other => Err(wrong("a sparse sum", &other)),
                }
            }
            Exp::BagOne(i, x) => {
                self.step(1)?;
                let i = self.i64(i)?;
                let x = self.eval(x)?;
                Ok(Val::Bag(BagForm::One(i), Node::new(&self.meter, vec![x])?))
            }
            Exp::BagArray(ix, xs) => {
                self.step(1)?;
                let ix = self.eval(ix)?.array()?;
                let xs = self.eval(xs)?.array()?;
                if ix.outer()? != xs.outer()? {
                    return Err(mismatch("a bag", &ix.shape, &xs.shape[..1]));
                }
                Ok(Val::Bag(BagForm::Array, Node::new(&self.meter, vec![Val::Arr(ix), Val::Arr(xs)])?))
            }
            Exp::BagScatter(n, bag) => {
                self.step(1)?;
                let n = self.size(n)?;
                let bag = self.eval(bag)?;
                self.scatter_bag(n, bag, Self::element_type(t)?)
            }
            Exp::EvmReturn(_, x) => self.act(Act::Return, &[x]),
            Exp::EvmBind(m, k) => self.act(Act::Bind, &[m, k]),
            Exp::EvmAdd { cell, value, .. } => self.act(Act::Add(*cell), &[value]),
            Exp::EvmScope(zero, m) => self.act(Act::Scope, &[zero, m]),
            Exp::EvmPar(ms) => self.act(Act::Par, &ms.iter().collect::<Vec<_>>()),
            Exp::EvmSequence(_, ms) => match ms.ty().elem() {
                Some(Type::Evm(_, t)) => self.act(Act::Sequence(Rc::new(Type::clone(t))), &[ms]),
                _ => Err(internal("a sequence of other things than computations")),
            },
            Exp::EvmRun(m, initial) => {
                self.step(1)?;
                let m = self.eval(m)?;
                let Val::Tuple(initial) = self.eval(initial)? else {
                    return Err(internal("initial cells that are no product"));
                };
                let mut cells = Node::into_items(initial);
                // The innermost cell is the last one.
                cells.reverse();
                self.step(1 + cells.len() as u64)?;
                let result = self.perform(m, &mut cells)?;
                cells.reverse();
                let cells = self.tuple(cells)?;
                self.tuple(vec![result, cells])
            }
            Exp::StagedCotangent(x) => {
                self.step(1)?;
                let cotangent = self.eval(x)?;
                Ok(Val::Staged(Rc::new(Staged { cotangent, calls: BTreeMap::new() })))
            }
            Exp::StagedCall(id, f, arg) => {
                self.step(1)?;
                let id = self.i64(id)?;
                let f = self.eval(f)?;
                let arg = self.eval(arg)?;
                let Type::Staged(c) = t.ty() else { return Err(internal("a staged call of another type")) };
                let cotangent = self.zero(c)?;
                Ok(Val::Staged(Rc::new(Staged { cotangent, calls: BTreeMap::from([(id, (f, arg))]) })))
            }
            Exp::StagedResolve(x) => {
                self.step(1)?;
                let staged = self.eval(x)?;
                self.resolve(staged)
            }
            _ => Err(internal("not a cotangent operation")),
        }
    }
    fn act(&mut self, act: Act, operands: &[&Term]) -> Res<Val> {
        self.step(1)?;
        let items = operands.iter().map(|t| self.eval(t)).collect::<Res<Vec<_>>>()?;
        Ok(Val::Evm(act, Node::new(&self.meter, items)?))
    }

    /// The zero of a type, and its cost.
    fn zero(&mut self, ty: &Type) -> Res<Val> {
        let (value, cost) = self.zero_value(ty)?;
        self.profile.touched += floats_in_products(ty, false);
        self.step(cost)?;
        Ok(value)
    }
    fn zero_value(&self, ty: &Type) -> Res<(Val, u64)> {
        Ok(match ty {
            Type::Scalar(s) => (Val::Num(Num::lift(s.zero())), if s.is_float() { 2 } else { 1 }),
            Type::Tuple(ts) => {
                let parts = ts.iter().map(|t| deep(|| self.zero_value(t))).collect::<Res<Vec<_>>>()?;
                let cost = pairs(ts.len()) + parts.iter().map(|(_, cost)| cost).sum::<u64>();
                (self.tuple(parts.into_iter().map(|(v, _)| v).collect())?, cost)
            }
            Type::SparseTuple(_) | Type::SparseSum(_) => (Val::SparseZero, 1),
            Type::Array(t) => (Val::Arr(Collector::new(&self.meter, t, None)?.finish()?), 1),
            Type::Fun(_, b) | Type::Linear(_, b) => {
                let (zero, cost) = deep(|| self.zero_value(b))?;
                (Val::Fun(FunCode::Constant, Node::new(&self.meter, vec![zero])?), 1 + cost)
            }
            Type::Evm(_, b) => {
                let (zero, cost) = deep(|| self.zero_value(b))?;
                (Val::Evm(Act::Return, Node::new(&self.meter, vec![zero])?), 1 + cost)
            }
            Type::Io(b) => {
                let (zero, cost) = deep(|| self.zero_value(b))?;
                (Val::Io(IoAct::Return, Node::new(&self.meter, vec![zero])?), 1 + cost)
            }
            Type::Staged(c) => {
                let (cotangent, cost) = deep(|| self.zero_value(c))?;
                (Val::Staged(Rc::new(Staged { cotangent, calls: BTreeMap::new() })), 1 + cost)
            }
            Type::Bag(_) => (Val::Bag(BagForm::Empty, Node::new(&self.meter, Vec::new())?), 1),
            Type::Map(_) => (Val::Map(Rc::new(Entries { items: BTreeMap::new() })), 1),
            Type::Sum(_) | Type::Named(_) | Type::MutArray(_) => {
                return Err(internal(format!("type {ty} has no zero")));
            }
        })
    }

    /// The sum of two cotangents: one step per pair of nodes that meet.
    pub(super) fn plus(&mut self, a: Val, b: Val) -> Res<Val> {
        self.step(1)?;
        match (a, b) {
            (Val::Num(x), Val::Num(y)) => Ok(Val::Num(x.plus(&y))),
            (Val::Tuple(x), Val::Tuple(y)) => Ok(Val::Tuple(self.plus_nodes(x, y)?)),
            (Val::SparseZero, x) | (x, Val::SparseZero) => Ok(x),
            (Val::SparseTuple(x), Val::SparseTuple(y)) => Ok(Val::SparseTuple(self.plus_nodes(x, y)?)),
            (Val::SparseSum(j, x), Val::SparseSum(k, y)) if j == k => {
                Ok(Val::SparseSum(k, self.plus_nodes(x, y)?))
            }
            (Val::SparseSum(j, _), Val::SparseSum(k, _)) => {
                Err(internal(format!("a sum of cotangents of alternatives {j} and {k}")))
            }
            (Val::Bag(BagForm::Empty, _), x @ Val::Bag(..))
            | (x @ Val::Bag(..), Val::Bag(BagForm::Empty, _)) => Ok(x),
            (x @ Val::Bag(..), y @ Val::Bag(..)) => {
                Ok(Val::Bag(BagForm::Both, Node::new(&self.meter, vec![x, y])?))
            }
            (Val::Arr(x), Val::Arr(y)) => self.plus_arrays(x, y).map(Val::Arr),
            (x @ Val::Fun(..), y @ Val::Fun(..)) => {
                Ok(Val::Fun(FunCode::Sum, Node::new(&self.meter, vec![x, y])?))
            }
            (x @ Val::Evm(..), y @ Val::Evm(..)) => {
                Ok(Val::Evm(Act::Plus, Node::new(&self.meter, vec![x, y])?))
            }
            (x @ Val::Io(..), y @ Val::Io(..)) => {
                Ok(Val::Io(IoAct::Plus, Node::new(&self.meter, vec![x, y])?))
            }
            (Val::Staged(x), Val::Staged(y)) => self.plus_staged(x, y),
            (Val::Map(x), Val::Map(y)) => self.union(x, y).map(Val::Map),
            (a, b) => {
                let b = wrong("a cotangent of the same type", &b);
                Err(internal(format!("{} ({})", b.message, wrong("one", &a).message)))
            }
        }
    }
    fn plus_nodes(&mut self, a: Rc<Node>, b: Rc<Node>) -> Res<Rc<Node>> {
        if a.items.len() != b.items.len() {
            return Err(internal("a sum of products of different sizes"));
        }
        let numbers = a.items.iter().filter(|v| matches!(v, Val::Num(_))).count();
        self.profile.touched += numbers as u64;
        let parts = Node::into_items(a).into_iter().zip(Node::into_items(b));
        let items = parts.map(|(a, b)| deep(|| self.plus(a, b))).collect::<Res<Vec<_>>>()?;
        Node::new(&self.meter, items)
    }
    /// The union of two maps with `m <= n` entries: `m log (n / m + 1)` steps, and the sums of what both have.
    fn union(&mut self, x: Rc<Entries>, y: Rc<Entries>) -> Res<Rc<Entries>> {
        let (few, mut many) = if x.items.len() <= y.items.len() { (x, y) } else { (y, x) };
        if few.items.is_empty() {
            return Ok(many);
        }
        let m = few.items.len();
        self.step(m as u64 * log2(many.items.len() / m + 1))?;
        let all = &mut Rc::make_mut(&mut many).items;
        for (key, value) in &few.items {
            let sum = match all.remove(key) {
                Some(old) => self.plus(old, value.clone())?,
                None => value.clone(),
            };
            all.insert(*key, sum);
        }
        Ok(many)
    }
    fn plus_arrays(&mut self, a: Arr, b: Arr) -> Res<Arr> {
        // The zero of an array type does not know the sizes.
        let unknown = |a: &Arr| a.shape.iter().all(|&n| n == 0);
        if unknown(&a) {
            return Ok(b);
        }
        if unknown(&b) {
            return Ok(a);
        }
        if !agree(&a.shape, &b.shape) {
            return Err(mismatch("addition of cotangents", &a.shape, &b.shape));
        }
        let shape = a.shape.clone();
        match (a.elems, b.elems) {
            (Elems::Product(x), Elems::Product(y)) if x.len() == y.len() => {
                let parts = x.into_iter().zip(y).map(|(x, y)| self.plus_arrays(x, y));
                let elems = Elems::Product(parts.collect::<Res<Vec<_>>>()?);
                Ok(Arr { shape, elems })
            }
            (Elems::Cells { offset: i, data: x }, Elems::Cells { offset: j, data: y }) => {
                let n = count_elements(&shape);
                let mut store = Store::with_capacity(x.store.kind().or(y.store.kind()), n);
                for k in 0..n {
                    store.push(deep(|| self.plus(x.store.get(i + k), y.store.get(j + k)))?)?;
                }
                Arr::from_store(&self.meter, &shape, store)
            }
            (Elems::Product(_) | Elems::Cells { .. }, _) => {
                Err(internal("a sum of arrays of different element types"))
            }
        }
    }
    fn plus_staged(&mut self, a: Rc<Staged>, b: Rc<Staged>) -> Res<Val> {
        let own = |s: Rc<Staged>| match Rc::try_unwrap(s) {
            Ok(mut s) => (std::mem::replace(&mut s.cotangent, Val::Gone), std::mem::take(&mut s.calls)),
            Err(s) => (s.cotangent.clone(), s.calls.clone()),
        };
        let ((c, calls), (d, others)) = (own(a), own(b));
        let cotangent = deep(|| self.plus(c, d))?;
        let (mut calls, others) = if calls.len() >= others.len() { (calls, others) } else { (others, calls) };
        for (id, (f, arg)) in others {
            self.step(1 + log2(calls.len() + 1))?;
            let merged = match calls.remove(&id) {
                Some((f, old)) => (f, deep(|| self.plus(old, arg))?),
                None => (f, arg),
            };
            calls.insert(id, merged);
        }
        Ok(Val::Staged(Rc::new(Staged { cotangent, calls })))
    }
    /// Runs the staged calls, highest identity first: one step per call, and what it costs.
    fn resolve(&mut self, staged: Val) -> Res<Val> {
        let mut staged = staged;
        loop {
            let Val::Staged(mut s) = staged else { return Err(wrong("a staged cotangent", &staged)) };
            if s.calls.is_empty() {
                return Ok(s.cotangent.clone());
            }
            self.step(1 + log2(s.calls.len()))?;
            let Some((_, (f, arg))) = Rc::make_mut(&mut s).calls.pop_last() else {
                return Err(internal("a staged call disappeared"));
            };
            let more = self.apply(&f, arg)?;
            staged = self.plus(Val::Staged(s), more)?;
        }
    }

    /// Runs an accumulating computation.
    fn perform(&mut self, computation: Val, cells: &mut Vec<Val>) -> Res<Val> {
        let mut computation = computation;
        loop {
            self.step(1)?;
            let Val::Evm(act, node) = computation else {
                return Err(wrong("an accumulating computation", &computation));
            };
            match act {
                Act::Return => return node.item(0).cloned(),
                Act::Bind => {
                    let m = node.item(0)?.clone();
                    let x = deep(|| self.perform(m, cells))?;
                    computation = self.apply(node.item(1)?, x)?;
                }
                Act::Add(cell) => {
                    let at = cells.len().checked_sub(cell + 1).ok_or_else(|| internal("no such cell"))?;
                    let value = node.item(0)?.clone();
                    drop(node);
                    self.counts.acc_adds += value.leaves();
                    let old = std::mem::replace(&mut cells[at], Val::Gone);
                    cells[at] = self.plus(value, old)?;
                    return self.unit();
                }
                Act::Scope => {
                    cells.push(node.item(0)?.clone());
                    let m = node.item(1)?.clone();
                    let result = deep(|| self.perform(m, cells))?;
                    let cell = cells.pop().ok_or_else(|| internal("a scope lost its cell"))?;
                    return self.tuple(vec![cell, result]);
                }
                Act::Par => {
                    let items =
                        self.together(node.items.len(), |m, i| m.perform(node.items[i].clone(), cells))?;
                    return self.tuple(items);
                }
                Act::Sequence(elem) => {
                    let all = node.item(0)?.clone().array()?;
                    let n = all.outer()?;
                    let items = self.together(n, |m, i| {
                        let computation = all.part(&m.meter, 1, i)?;
                        m.perform(computation, cells)
                    })?;
                    let mut out = Collector::new(&self.meter, &elem, Some(n))?;
                    for item in items {
                        let touched = out.push(item)?;
                        self.tick(touched)?;
                    }
                    return out.finish().map(Val::Arr);
                }
                Act::Plus => {
                    let (a, b) = (node.item(0)?.clone(), node.item(1)?.clone());
                    let a = deep(|| self.perform(a, cells))?;
                    let b = deep(|| self.perform(b, cells))?;
                    return self.plus(a, b);
                }
            }
        }
    }

    /// Runs `n` computations that share cells, in an order of the schedule. Their additions to one cell combine as in a tree: the
    /// span is that of the longest, and a logarithm.
    fn together(&mut self, n: usize, mut part: impl FnMut(&mut Self, usize) -> Res<Val>) -> Res<Vec<Val>> {
        let items = self.in_parallel(n, |m, i| deep(|| part(m, i)))?;
        self.counts.span += log2(n);
        Ok(items)
    }
    /// The sums of what a bag has at each of `n` positions. Work: one step per position, per node of the bag and per element of its
    /// arrays, and the additions; span: the depth of the bag and a logarithm.
    fn scatter_bag(&mut self, n: usize, bag: Val, elem: &Type) -> Res<Val> {
        let start = self.counts.span;
        let charge = self.meter.charge(16 * n as u128)?;
        self.tick(n as u64)?;
        let mut sums: Vec<Option<Val>> = vec![None; n];
        // The left parts first, so that sums are in the order in which the bag was made.
        let mut pending = vec![(bag, 1)];
        let (mut deepest, mut most) = (0, 0);
        while let Some((bag, depth)) = pending.pop() {
            self.tick(1)?;
            deepest = deepest.max(depth);
            let Val::Bag(form, node) = bag else { return Err(wrong("a bag", &bag)) };
            match form {
                BagForm::Empty => {}
                BagForm::One(i) => {
                    let value =
                        Node::into_items(node).pop().ok_or_else(|| internal("an empty part of a bag"))?;
                    self.add_to_bin(&mut sums, i, value)?;
                }
                BagForm::Both => {
                    pending.extend(Node::into_items(node).into_iter().rev().map(|b| (b, depth + 1)))
                }
                BagForm::Array => {
                    let (ix, values) = (node.item(0)?.clone().array()?, node.item(1)?.clone().array()?);
                    drop(node);
                    let count = ix.outer()?;
                    most = most.max(count);
                    for k in 0..count {
                        self.tick(1)?;
                        let Val::Num(Num::I64(i)) = ix.part(&self.meter, 1, k)? else {
                            return Err(internal("a position that is no i64"));
                        };
                        let value = values.part(&self.meter, 1, k)?;
                        self.add_to_bin(&mut sums, i, value)?;
                    }
                }
            }
        }
        let mut out = Collector::new(&self.meter, elem, Some(n))?;
        for sum in sums {
            let value = match sum {
                Some(sum) => sum,
                None => self.zero_value(elem)?.0,
            };
            let touched = out.push(value)?;
            self.tick(touched)?;
        }
        drop(charge);
        self.counts.span = start + deepest + log2(n) + log2(most);
        out.finish().map(Val::Arr)
    }
    fn add_to_bin(&mut self, sums: &mut [Option<Val>], i: i64, value: Val) -> Res<()> {
        let n = sums.len();
        let bin = usize::try_from(i).ok().and_then(|i| sums.get_mut(i));
        let Some(bin) = bin else { return Err(internal(format!("position {i} of a bag for {n} elements"))) };
        *bin = Some(match bin.take() {
            None => value,
            Some(old) => self.plus(old, value)?,
        });
        Ok(())
    }

    /// The value with every tangent removed; functions and computations stay as they are.
    pub(super) fn without_tangents(&self, value: &Val) -> Res<Val> {
        self.each_float(value, &mut |x| {
            let primal = match x {
                Num::F32(x) => Num::F32(Dual::f32(Dual::primal32(x))),
                Num::F64(x) => Num::F64(Dual::f64(Dual::primal64(x))),
                other => other.clone(),
            };
            Ok(primal)
        })
    }
}

/// The floats of a zero that are components of products.
fn floats_in_products(ty: &Type, inside: bool) -> u64 {
    match ty {
        Type::Scalar(s) => u64::from(inside && s.is_float()),
        Type::Tuple(ts) => ts.iter().map(|t| floats_in_products(t, true)).sum(),
        Type::Staged(c) => floats_in_products(c, inside),
        _ => 0,
    }
}
