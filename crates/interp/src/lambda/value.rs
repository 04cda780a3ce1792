//! Values of a running lambda program.
//!
//! Scalars are numbers of the dual-number domain, so that derivatives inside the program can be run; a number without
//! tangents is an ordinary one. An array of products is a product of arrays, as in core; its other elements are flat
//! typed buffers of scalars (boxed once a number with a tangent is stored) or boxed values.
//! Guarantees: dropping a value of any depth takes constant stack.

use super::sizes::Known;
use crate::core::arrays::{agree, elements_of, mismatch};
use crate::core::machine::{Res, internal};
use crate::core::num::Num as DomainNum;
use crate::core::value::{Charge, Meter, Shape, element_bytes};
use crate::dual::number::{Dual, Number};
use pullback_core::{Buffer, Value, count_elements};
use pullback_lambda::{Term, Type, Var};
use pullback_prim::{Scalar, ScalarValue};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// A scalar.
pub(crate) type Num = DomainNum<Dual>;

/// A value.
#[derive(Clone, Debug)]
pub(crate) enum Val {
    Num(Num),
    Tuple(Rc<Node>),
    Sum(usize, Rc<Node>),
    Arr(Arr),
    /// A function; the node holds what it captured.
    Fun(FunCode, Rc<Node>),
    /// A sparse product or sum that is zero.
    SparseZero,
    SparseTuple(Rc<Node>),
    SparseSum(usize, Rc<Node>),
    /// A bag and its parts.
    Bag(BagForm, Rc<Node>),
    /// An accumulating computation and its operands.
    Evm(Act, Rc<Node>),
    /// A computation with mutable arrays and its operands.
    Io(IoAct, Rc<Node>),
    Staged(Rc<Staged>),
    Map(Rc<Entries>),
    Mut(Rc<Cells>),
    /// A variable that is not bound.
    Gone,
}

/// Components, payloads, captured values, operands.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) items: Vec<Val>,
    _charge: Charge,
}

/// The items of a node, moved out of it if nobody else has it.
pub(crate) fn items(mut node: Rc<Node>) -> Vec<Val> {
    match Rc::get_mut(&mut node) {
        Some(node) => std::mem::take(&mut node.items),
        None => node.items.clone(),
    }
}

/// What a function does.
#[derive(Clone, Debug)]
pub(crate) enum FunCode {
    /// A lambda of the program.
    Lambda(Rc<LambdaCode>),
    /// Always the captured value: the zero of a function type.
    Constant,
    /// The sum of two functions.
    Sum,
}

/// A lambda of the program.
#[derive(Debug)]
pub(crate) struct LambdaCode {
    pub(crate) param: Var,
    pub(crate) body: Term,
    /// Its free variables.
    pub(crate) captures: Vec<Var>,
}

/// A bag of values at positions.
#[derive(Clone, Copy, Debug)]
pub(crate) enum BagForm {
    Empty,
    /// One value at this position.
    One(i64),
    /// What two bags have.
    Both,
    /// An array of positions and an array of values.
    Array,
}

/// An accumulating computation.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    Return,
    Bind,
    Add(usize),
    Scope,
    /// All operands, in parallel.
    Par,
    /// The computations of an array, in parallel; with the type of their results.
    Sequence(Rc<Type>),
    Plus,
}

/// A computation with mutable arrays.
#[derive(Clone, Debug)]
pub(crate) enum IoAct {
    Return,
    Bind,
    Par,
    Plus,
    New,
    Get,
    Set,
    Modify,
    Push,
    Size,
    /// With the type of the elements.
    Freeze(Rc<Type>),
}

/// A staged cotangent: what is known of it, and calls by identity: function and argument.
#[derive(Clone, Debug)]
pub(crate) struct Staged {
    pub(crate) cotangent: Val,
    pub(crate) calls: BTreeMap<i64, (Val, Val)>,
}

/// A finite map.
#[derive(Clone, Debug)]
pub(crate) struct Entries {
    pub(crate) items: BTreeMap<i64, Val>,
}

/// A mutable array.
#[derive(Debug)]
pub(crate) struct Cells {
    pub(crate) items: RefCell<Vec<Val>>,
}

impl Drop for Node {
    fn drop(&mut self) {
        drop_flat(std::mem::take(&mut self.items));
    }
}
impl Drop for Staged {
    fn drop(&mut self) {
        drop_flat(take_staged(self));
    }
}
impl Drop for Entries {
    fn drop(&mut self) {
        drop_flat(std::mem::take(&mut self.items).into_values().collect());
    }
}
impl Drop for Cells {
    fn drop(&mut self) {
        drop_flat(std::mem::take(self.items.get_mut()));
    }
}
impl Drop for Buf {
    fn drop(&mut self) {
        if let Store::Boxed(items) = &mut self.store {
            drop_flat(std::mem::take(items));
        }
    }
}

fn take_staged(staged: &mut Staged) -> Vec<Val> {
    let calls = std::mem::take(&mut staged.calls).into_values().flat_map(|(f, a)| [f, a]);
    let mut parts: Vec<Val> = calls.collect();
    parts.push(std::mem::replace(&mut staged.cotangent, Val::Gone));
    parts
}

/// Drops values with a work list instead of recursion.
fn drop_flat(mut work: Vec<Val>) {
    while let Some(value) = work.pop() {
        match value {
            Val::Tuple(mut n)
            | Val::Sum(_, mut n)
            | Val::Fun(_, mut n)
            | Val::SparseTuple(mut n)
            | Val::SparseSum(_, mut n)
            | Val::Bag(_, mut n)
            | Val::Evm(_, mut n)
            | Val::Io(_, mut n) => {
                if let Some(node) = Rc::get_mut(&mut n) {
                    work.append(&mut node.items);
                }
            }
            Val::Staged(mut staged) => {
                if let Some(staged) = Rc::get_mut(&mut staged) {
                    work.append(&mut take_staged(staged));
                }
            }
            Val::Map(mut map) => {
                if let Some(map) = Rc::get_mut(&mut map) {
                    work.extend(std::mem::take(&mut map.items).into_values());
                }
            }
            Val::Mut(mut cells) => {
                if let Some(cells) = Rc::get_mut(&mut cells) {
                    work.append(cells.items.get_mut());
                }
            }
            Val::Arr(Arr { elems: Elems::Cells { mut data, .. }, .. }) => {
                if let Some(Buf { store: Store::Boxed(items), .. }) = Rc::get_mut(&mut data) {
                    work.append(items);
                }
            }
            Val::Arr(Arr { elems: Elems::Product(parts), .. }) => {
                work.extend(parts.into_iter().map(Val::Arr));
            }
            Val::Num(_) | Val::SparseZero | Val::Gone => {}
        }
    }
}

impl Node {
    pub(crate) fn new(meter: &Rc<Meter>, items: Vec<Val>) -> Res<Rc<Node>> {
        let charge = meter.charge(16 * items.len() as u128)?;
        Ok(Rc::new(Node { items, _charge: charge }))
    }
    /// The components, without a copy if nobody else has them.
    pub(crate) fn into_items(mut node: Rc<Node>) -> Vec<Val> {
        match Rc::get_mut(&mut node) {
            Some(node) => std::mem::take(&mut node.items),
            None => node.items.clone(),
        }
    }
    pub(crate) fn item(&self, i: usize) -> Res<&Val> {
        self.items.get(i).ok_or_else(|| internal("no such component"))
    }
}

/// A regular array.
#[derive(Clone, Debug)]
pub(crate) struct Arr {
    /// The dimensions outside of any product.
    pub(crate) shape: Shape,
    pub(crate) elems: Elems,
}

/// The elements of an array.
#[derive(Clone, Debug)]
pub(crate) enum Elems {
    /// Row-major from `offset` of a shared buffer.
    Cells { offset: usize, data: Rc<Buf> },
    /// Arrays with the dimensions of the whole, and perhaps more.
    Product(Vec<Arr>),
}

/// Elements and their memory.
#[derive(Debug)]
pub(crate) struct Buf {
    pub(crate) store: Store,
    _charge: Charge,
}

/// Elements of one type.
#[derive(Debug)]
pub(crate) enum Store {
    Flat(Buffer),
    Boxed(Vec<Val>),
}

/// The scalar, if it has no tangent.
fn plain(x: &Num) -> Option<ScalarValue> {
    match x {
        Num::F32(Number::Flat { .. } | Number::Deep(_)) | Num::F64(Number::Flat { .. } | Number::Deep(_)) => {
            None
        }
        other => Some(other.primal()),
    }
}

impl Store {
    pub(crate) fn with_capacity(kind: Option<Scalar>, n: usize) -> Store {
        match kind {
            Some(_) => Store::Flat(Buffer::with_capacity(kind, n)),
            None => Store::Boxed(Vec::with_capacity(n)),
        }
    }
    pub(crate) fn len(&self) -> usize {
        match self {
            Store::Flat(b) => b.len(),
            Store::Boxed(v) => v.len(),
        }
    }
    pub(crate) fn kind(&self) -> Option<Scalar> {
        match self {
            Store::Flat(b) => b.scalar(),
            Store::Boxed(_) => None,
        }
    }
    /// Element `i`, which is in range.
    pub(crate) fn get(&self, i: usize) -> Val {
        match self {
            Store::Flat(b) => match b.get(i) {
                Value::Scalar(x) => Val::Num(Num::lift(x)),
                Value::Tuple(_) | Value::Sum(..) | Value::Array(_) | Value::Acc(_) => Val::Gone,
            },
            Store::Boxed(v) => v[i].clone(),
        }
    }
    fn boxed(&mut self) -> &mut Vec<Val> {
        if let Store::Flat(_) = self {
            let items = (0..self.len()).map(|i| self.get(i)).collect();
            *self = Store::Boxed(items);
        }
        match self {
            Store::Boxed(v) => v,
            Store::Flat(_) => unreachable!("boxed above"),
        }
    }
    pub(crate) fn push(&mut self, value: Val) -> Res<()> {
        match (&mut *self, &value) {
            (Store::Flat(b), Val::Num(x)) => match plain(x) {
                Some(s) if b.scalar() == Some(s.scalar()) => {
                    b.push(Value::Scalar(s));
                    return Ok(());
                }
                Some(_) => return Err(internal("an element of another type than its array")),
                None => {}
            },
            (Store::Flat(_), _) => return Err(internal("an element that is no scalar")),
            (Store::Boxed(_), _) => {}
        }
        self.boxed().push(value);
        Ok(())
    }
    pub(crate) fn set(&mut self, i: usize, value: Val) -> Res<()> {
        if i >= self.len() {
            return Err(internal("an element outside its array"));
        }
        match (&mut *self, &value) {
            (Store::Flat(b), Val::Num(x)) => match plain(x) {
                Some(s) if b.scalar() == Some(s.scalar()) => {
                    b.set(i, Value::Scalar(s));
                    return Ok(());
                }
                Some(_) => return Err(internal("an element of another type than its array")),
                None => {}
            },
            (Store::Flat(_), _) => return Err(internal("an element that is no scalar")),
            (Store::Boxed(_), _) => {}
        }
        self.boxed()[i] = value;
        Ok(())
    }
    /// Appends elements `from .. from + n` of another buffer.
    pub(crate) fn extend(&mut self, other: &Store, from: usize, n: usize) -> Res<()> {
        (from..from + n).try_for_each(|i| self.push(other.get(i)))
    }
}

impl Arr {
    pub(crate) fn cells(shape: Shape, store: Store, charge: Charge) -> Arr {
        Arr { shape, elems: Elems::Cells { offset: 0, data: Rc::new(Buf { store, _charge: charge }) } }
    }
    pub(crate) fn from_store(meter: &Rc<Meter>, shape: &[usize], store: Store) -> Res<Arr> {
        if elements_of(shape)? != store.len() {
            return Err(internal("an array whose shape does not fit its elements"));
        }
        let charge = meter.charge(element_bytes(store.kind()) * store.len() as u128)?;
        Ok(Arr::cells(Shape::new(shape), store, charge))
    }
    /// Number of elements.
    pub(crate) fn count(&self) -> usize {
        count_elements(&self.shape)
    }
    /// Number of leaves in flat buffers.
    pub(crate) fn leaves(&self) -> u64 {
        match &self.elems {
            Elems::Cells { .. } => self.count() as u64,
            Elems::Product(parts) => parts.iter().map(Arr::leaves).sum(),
        }
    }
    /// The outer size.
    pub(crate) fn outer(&self) -> Res<usize> {
        self.shape.first().copied().ok_or_else(|| internal("an array without dimensions"))
    }
    /// What is at flat position `at` of the first `k` dimensions; in range.
    pub(crate) fn part(&self, meter: &Rc<Meter>, k: usize, at: usize) -> Res<Val> {
        let inner = &self.shape[k..];
        match &self.elems {
            Elems::Cells { offset, data } if inner.is_empty() => Ok(data.store.get(offset + at)),
            Elems::Cells { offset, data } => {
                let size = count_elements(inner);
                let elems = Elems::Cells { offset: offset + at * size, data: data.clone() };
                Ok(Val::Arr(Arr { shape: Shape::new(inner), elems }))
            }
            Elems::Product(parts) => {
                let parts = parts.iter().map(|p| p.part(meter, k, at)).collect::<Res<Vec<_>>>()?;
                if inner.is_empty() {
                    return Ok(Val::Tuple(Node::new(meter, parts)?));
                }
                let parts = parts.into_iter().map(Val::array).collect::<Res<Vec<_>>>()?;
                Ok(Val::Arr(Arr { shape: Shape::new(inner), elems: Elems::Product(parts) }))
            }
        }
    }
    /// A new array whose first `k` dimensions are replaced by `outer`, with the parts at these flat positions.
    pub(crate) fn pick(&self, meter: &Rc<Meter>, k: usize, outer: &[usize], at: &[usize]) -> Res<Arr> {
        let inner = &self.shape[k..];
        let shape: Vec<usize> = outer.iter().chain(inner).copied().collect();
        match &self.elems {
            Elems::Cells { offset, data } => {
                let size = count_elements(inner);
                let n = elements_of(&shape)?;
                let charge = meter.charge(element_bytes(data.store.kind()) * n as u128)?;
                let mut store = Store::with_capacity(data.store.kind(), n);
                for &i in at {
                    store.extend(&data.store, offset + i * size, size)?;
                }
                Ok(Arr::cells(Shape::new(&shape), store, charge))
            }
            Elems::Product(parts) => {
                let parts = parts.iter().map(|p| p.pick(meter, k, outer, at)).collect::<Res<Vec<_>>>()?;
                Ok(Arr { shape: Shape::new(&shape), elems: Elems::Product(parts) })
            }
        }
    }
    /// The same elements with the first `k` dimensions replaced by others of as many elements.
    pub(crate) fn reshaped(self, k: usize, outer: &[usize]) -> Arr {
        let shape: Vec<usize> = outer.iter().chain(&self.shape[k..]).copied().collect();
        let elems = match self.elems {
            Elems::Product(parts) => {
                Elems::Product(parts.into_iter().map(|p| p.reshaped(k, outer)).collect())
            }
            cells @ Elems::Cells { .. } => cells,
        };
        Arr { shape: Shape::new(&shape), elems }
    }
    /// Makes the array the only owner of its buffers; returns how many leaves were copied.
    pub(crate) fn own(&mut self, meter: &Rc<Meter>) -> Res<u64> {
        match &mut self.elems {
            Elems::Cells { data, .. } if Rc::strong_count(data) == 1 => Ok(0),
            Elems::Cells { .. } => {
                let n = self.count();
                let k = self.shape.len();
                let outer = self.shape.to_vec();
                *self = self.pick(meter, k, &outer, &(0..n).collect::<Vec<_>>())?;
                Ok(n as u64)
            }
            Elems::Product(parts) => parts.iter_mut().map(|p| p.own(meter)).sum(),
        }
    }
    /// Overwrites what is at flat position `at` of the first `k` dimensions. The array must be owned.
    pub(crate) fn write(&mut self, what: &str, k: usize, at: usize, value: &Val) -> Res<()> {
        if k < self.shape.len() {
            let Val::Arr(a) = value else { return Err(internal("expected an array")) };
            if !agree(&self.shape[k..], &a.shape) {
                return Err(mismatch(what, &self.shape[k..], &a.shape));
            }
        }
        let size = count_elements(&self.shape[k..]);
        match (&mut self.elems, value) {
            (Elems::Product(parts), Val::Tuple(node)) if k == self.shape.len() => {
                parts.iter_mut().zip(&node.items).try_for_each(|(p, v)| p.write(what, k, at, v))
            }
            (Elems::Product(parts), Val::Arr(Arr { elems: Elems::Product(values), .. })) => {
                for (p, v) in parts.iter_mut().zip(values) {
                    p.write(what, k, at, &Val::Arr(v.clone()))?;
                }
                Ok(())
            }
            (Elems::Cells { offset, data }, value) => {
                let Some(buf) = Rc::get_mut(data) else { return Err(internal("a write to a shared array")) };
                match value {
                    Val::Arr(Arr { elems: Elems::Cells { offset: from, data: source }, .. })
                        if k < self.shape.len() =>
                    {
                        for i in 0..size {
                            buf.store.set(*offset + at * size + i, source.store.get(from + i))?;
                        }
                        Ok(())
                    }
                    value => buf.store.set(*offset + at, value.clone()),
                }
            }
            (Elems::Product(_), _) => Err(internal("an element of another type than its array")),
        }
    }
}

/// Gathers values of one type into an array.
pub(crate) struct Collector {
    /// Number of dimensions of the elements.
    rank: usize,
    /// Number of elements, if known before.
    width: Option<usize>,
    count: usize,
    inner: Option<Shape>,
    to: To,
}

enum To {
    Cells { kind: Option<Scalar>, store: Store, charge: Charge },
    Product(Vec<Collector>),
}

impl Collector {
    pub(crate) fn new(meter: &Rc<Meter>, elem: &Type, width: Option<usize>) -> Res<Collector> {
        let rank = elem.rank();
        let base = elem.peel(rank).unwrap_or(elem);
        let to = match base {
            Type::Tuple(items) => To::Product(
                items
                    .iter()
                    .map(|t| Collector::new(meter, &Type::array_of_rank(t.clone(), rank), width))
                    .collect::<Res<_>>()?,
            ),
            other => {
                let kind = other.scalar();
                To::Cells { kind, store: Store::with_capacity(kind, 0), charge: meter.charge(0)? }
            }
        };
        Ok(Collector { rank, width, count: 0, inner: None, to })
    }
    /// Learns the sizes of the elements from one of them.
    pub(crate) fn see(&mut self, value: &Val) -> Res<()> {
        if self.rank > 0 && self.inner.is_none() {
            let Val::Arr(a) = value else { return Err(internal("an element that is no array")) };
            self.inner = Some(a.shape.clone());
            if let (To::Product(parts), Elems::Product(values)) = (&mut self.to, &a.elems) {
                parts.iter_mut().zip(values).try_for_each(|(p, v)| p.see(&Val::Arr(v.clone())))?;
            }
        } else if let (0, To::Product(parts), Val::Tuple(node)) = (self.rank, &mut self.to, value) {
            parts.iter_mut().zip(&node.items).try_for_each(|(p, v)| p.see(v))?;
        }
        Ok(())
    }
    /// Learns the sizes of the elements, of which there are none, from what is known about them.
    pub(super) fn suppose(&mut self, element: &Known) {
        let (sizes, base) = element.dims(self.rank);
        if self.rank > 0 {
            self.inner = Some(Shape::new(&sizes));
        }
        if let To::Product(parts) = &mut self.to {
            for (i, part) in parts.iter_mut().enumerate() {
                part.suppose(&base.part(i).within(&sizes));
            }
        }
    }
    /// Adds the next element; returns how many leaves beyond one were written.
    pub(crate) fn push(&mut self, value: Val) -> Res<u64> {
        self.see(&value)?;
        self.count += 1;
        let inner = self.inner.clone().unwrap_or_else(|| Shape::new(&[]));
        if let Val::Arr(a) = &value
            && self.rank > 0
            && !agree(&inner, &a.shape)
        {
            return Err(mismatch("irregular array", &inner, &a.shape));
        }
        match (&mut self.to, value) {
            (To::Product(parts), Val::Tuple(node)) if self.rank == 0 => {
                let touched = parts.iter_mut().zip(Node::into_items(node)).map(|(p, v)| p.push(v));
                Ok(touched.collect::<Res<Vec<u64>>>()?.into_iter().sum())
            }
            (To::Product(parts), Val::Arr(Arr { elems: Elems::Product(values), .. })) => {
                let touched = parts.iter_mut().zip(values).map(|(p, v)| p.push(Val::Arr(v)));
                Ok(touched.collect::<Res<Vec<u64>>>()?.into_iter().sum())
            }
            (To::Cells { kind, store, charge }, value) => {
                let size = elements_of(&inner)?;
                if self.count == 1
                    && let Some(width) = self.width
                {
                    let n = elements_of(&[width, size])?;
                    charge.grow(element_bytes(*kind) * n as u128)?;
                    *store = Store::with_capacity(*kind, n);
                } else if self.width.is_none() {
                    charge.grow(element_bytes(*kind) * size as u128)?;
                }
                match value {
                    Val::Arr(Arr { elems: Elems::Cells { offset, data }, .. }) if self.rank > 0 => {
                        store.extend(&data.store, offset, size)?;
                        Ok(size as u64)
                    }
                    value => store.push(value).map(|()| 0),
                }
            }
            (To::Product(_), _) => Err(internal("an element of another type than its array")),
        }
    }
    /// The array of what was pushed.
    pub(crate) fn finish(self) -> Res<Arr> {
        let inner = self.inner.unwrap_or_else(|| Shape::new(&vec![0; self.rank]));
        let shape = Shape::with_outer(self.count, &inner);
        match self.to {
            To::Product(parts) => {
                let parts = parts.into_iter().map(Collector::finish).collect::<Res<Vec<_>>>()?;
                Ok(Arr { shape, elems: Elems::Product(parts) })
            }
            To::Cells { store, charge, .. } => {
                if elements_of(&shape)? != store.len() {
                    return Err(internal("a collected array of the wrong size"));
                }
                Ok(Arr::cells(shape, store, charge))
            }
        }
    }
}

impl Val {
    pub(crate) fn i64(x: i64) -> Val {
        Val::Num(Num::I64(x))
    }
    pub(crate) fn array(self) -> Res<Arr> {
        match self {
            Val::Arr(a) => Ok(a),
            other => Err(wrong("an array", &other)),
        }
    }
    /// Number of scalar leaves of data. A sum is one, as in an array of sums: it is held by reference, and may share what it holds.
    pub(crate) fn leaves(&self) -> u64 {
        match self {
            Val::Tuple(n) | Val::SparseTuple(n) | Val::SparseSum(_, n) | Val::Bag(_, n) => {
                n.items.iter().map(|v| crate::core::compile::deep(|| v.leaves())).sum()
            }
            Val::Arr(a) => a.leaves(),
            Val::Num(_)
            | Val::Sum(..)
            | Val::Fun(..)
            | Val::SparseZero
            | Val::Evm(..)
            | Val::Io(..)
            | Val::Staged(_)
            | Val::Map(_)
            | Val::Mut(_)
            | Val::Gone => 1,
        }
    }
}

/// A value of the wrong kind: a malformed program.
#[cold]
pub(crate) fn wrong(expected: &str, found: &Val) -> Box<pullback_base::RuntimeError> {
    let found = match found {
        Val::Num(x) => format!("the scalar {}", x.primal()),
        Val::Tuple(_) => "a product".into(),
        Val::Sum(k, _) => format!("alternative {k} of a sum"),
        Val::Arr(a) => format!("an array of shape {}", crate::core::value::show_shape(&a.shape)),
        Val::Fun(..) => "a function".into(),
        Val::SparseZero => "a sparse zero".into(),
        Val::SparseTuple(_) => "a sparse product".into(),
        Val::SparseSum(k, _) => format!("alternative {k} of a sparse sum"),
        Val::Bag(..) => "a bag".into(),
        Val::Evm(..) => "an accumulating computation".into(),
        Val::Io(..) => "a computation".into(),
        Val::Staged(_) => "a staged cotangent".into(),
        Val::Map(_) => "a map".into(),
        Val::Mut(_) => "a mutable array".into(),
        Val::Gone => "a variable without a value".into(),
    };
    internal(format!("expected {expected}, found {found}"))
}
