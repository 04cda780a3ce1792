//! Values of a running program: flat buffers whose memory is accounted, shared by reference until they are written.
//!
//! Guarantees: dropping a value of any depth takes constant stack; live bytes are exact for array elements and
//! products (16 bytes per boxed value, as a compact executor would need).

use super::acc::AccRef;
use super::compile::deep;
use super::machine::{Res, fail, internal};
use super::num::{Domain, Num};
use pullback_base::RuntimeErrorKind;
use pullback_core::{Array, Buffer, Program, Type, Value, count_elements};
use pullback_prim::{Scalar, ScalarValue};
use std::cell::{Cell, OnceCell};
use std::ops::Deref;
use std::rc::{Rc, Weak};
use std::sync::Arc;

/// How deeply a value that leaves or enters the interpreter may be nested.
const MAX_DEPTH: usize = 2_000;

/// Live memory of a run.
#[derive(Debug)]
pub(crate) struct Meter {
    live: Cell<u64>,
    peak: Cell<u64>,
    /// The part of it that is on tapes, and the most of that.
    tape: Cell<u64>,
    tape_peak: Cell<u64>,
    limit: u64,
}

impl Meter {
    pub(crate) fn new(limit: u64) -> Rc<Meter> {
        Rc::new(Meter {
            live: Cell::new(0),
            peak: Cell::new(0),
            tape: Cell::new(0),
            tape_peak: Cell::new(0),
            limit,
        })
    }
    pub(crate) fn peak(&self) -> u64 {
        self.peak.get()
    }
    pub(crate) fn tape_peak(&self) -> u64 {
        self.tape_peak.get()
    }
    /// Accounts for `bytes` more, before they are allocated.
    pub(crate) fn charge(self: &Rc<Self>, bytes: u128) -> Res<Charge> {
        let mut charge = Charge { bytes: 0, on_tape: Cell::new(false), meter: self.clone() };
        charge.grow(bytes)?;
        Ok(charge)
    }
}

/// Memory that is live as long as this exists.
#[derive(Debug)]
pub(crate) struct Charge {
    bytes: u64,
    on_tape: Cell<bool>,
    meter: Rc<Meter>,
}

impl Charge {
    /// Accounts for `bytes` more.
    pub(crate) fn grow(&mut self, bytes: u128) -> Res<()> {
        let live = u128::from(self.meter.live.get()) + bytes;
        if live > u128::from(self.meter.limit) {
            return Err(fail(
                RuntimeErrorKind::Limit,
                format!(
                    "out of memory: {bytes} more bytes are needed, {} are in use, the limit is {}",
                    self.meter.live.get(),
                    self.meter.limit
                ),
            ));
        }
        // Within the limit, which is a u64.
        self.meter.live.set(live as u64);
        self.meter.peak.set(self.meter.peak.get().max(live as u64));
        self.bytes += bytes as u64;
        if self.on_tape.get() {
            self.meter.tape.set(self.meter.tape.get() + bytes as u64);
            self.meter.tape_peak.set(self.meter.tape_peak.get().max(self.meter.tape.get()));
        }
        Ok(())
    }
    /// Counts the memory as part of a tape from now on; false if it was one before.
    fn put_on_tape(&self) -> bool {
        if self.on_tape.replace(true) {
            return false;
        }
        self.meter.tape.set(self.meter.tape.get() + self.bytes);
        self.meter.tape_peak.set(self.meter.tape_peak.get().max(self.meter.tape.get()));
        true
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.meter.live.set(self.meter.live.get().saturating_sub(self.bytes));
        if self.on_tape.get() {
            self.meter.tape.set(self.meter.tape.get().saturating_sub(self.bytes));
        }
    }
}

/// Sizes of an array; up to three without allocation.
#[derive(Clone, Debug)]
pub(crate) enum Shape {
    Inline(u8, [usize; 3]),
    Heap(Rc<[usize]>),
}

impl Shape {
    pub(crate) fn new(sizes: &[usize]) -> Shape {
        if sizes.len() <= 3 {
            let mut inline = [0; 3];
            inline[..sizes.len()].copy_from_slice(sizes);
            Shape::Inline(sizes.len() as u8, inline)
        } else {
            Shape::Heap(sizes.into())
        }
    }
    /// The shape with one more, outermost, dimension.
    pub(crate) fn with_outer(n: usize, inner: &[usize]) -> Shape {
        let mut sizes = vec![n];
        sizes.extend_from_slice(inner);
        Shape::new(&sizes)
    }
}

impl Deref for Shape {
    type Target = [usize];
    #[inline]
    fn deref(&self) -> &[usize] {
        match self {
            Shape::Inline(n, sizes) => &sizes[..*n as usize],
            Shape::Heap(sizes) => sizes,
        }
    }
}

/// `[2][3]`
pub(crate) fn show_shape(sizes: &[usize]) -> String {
    sizes.iter().map(|n| format!("[{n}]")).collect()
}

/// A value.
#[derive(Clone, Debug)]
pub(crate) enum Val<D: Domain> {
    Num(Num<D>),
    Unit,
    Tuple(Rc<Node<D>>),
    Sum(usize, Rc<Node<D>>),
    Arr(Arr<D>),
    Acc(Rc<AccRef>),
    /// A variable that is not bound, or not any more.
    Gone,
}

/// The components of a product or the payload of a sum.
#[derive(Debug)]
pub(crate) struct Node<D: Domain> {
    pub(crate) items: Vec<Val<D>>,
    charge: Charge,
}

impl<D: Domain> Node<D> {
    pub(crate) fn new(meter: &Rc<Meter>, items: Vec<Val<D>>) -> Res<Rc<Node<D>>> {
        let charge = meter.charge(16 * items.len() as u128)?;
        Ok(Rc::new(Node { items, charge }))
    }
    /// The components, without a copy if nobody else has them.
    pub(crate) fn into_items(node: Rc<Node<D>>) -> Vec<Val<D>> {
        match Rc::try_unwrap(node) {
            Ok(mut node) => std::mem::take(&mut node.items),
            Err(shared) => shared.items.clone(),
        }
    }
    /// The components for writing; copied if somebody else has them.
    pub(crate) fn items_mut<'a>(node: &'a mut Rc<Node<D>>, meter: &Rc<Meter>) -> Res<&'a mut Vec<Val<D>>> {
        if Rc::get_mut(node).is_none() {
            *node = Node::new(meter, node.items.clone())?;
        }
        match Rc::get_mut(node) {
            Some(node) => Ok(&mut node.items),
            None => Err(internal("a fresh product is shared")),
        }
    }
}

impl<D: Domain> Drop for Node<D> {
    fn drop(&mut self) {
        if self.items.iter().any(|v| !matches!(v, Val::Num(_) | Val::Unit | Val::Gone)) {
            drop_flat(std::mem::take(&mut self.items));
        }
        // The charge is given back by its own drop.
        let _ = &self.charge;
    }
}

/// Drops values with a work list instead of recursion.
fn drop_flat<D: Domain>(mut work: Vec<Val<D>>) {
    while let Some(value) = work.pop() {
        match value {
            Val::Tuple(node) | Val::Sum(_, node) => {
                if let Ok(mut node) = Rc::try_unwrap(node) {
                    work.append(&mut node.items);
                }
            }
            Val::Arr(array) => {
                if let Ok(mut buf) = Rc::try_unwrap(array.data)
                    && let Data::Boxed(items) = &mut buf.data
                {
                    work.append(items);
                }
            }
            Val::Num(_) | Val::Unit | Val::Acc(_) | Val::Gone => {}
        }
    }
}

/// A regular array: row-major elements from `offset` of a shared buffer.
#[derive(Clone, Debug)]
pub(crate) struct Arr<D: Domain> {
    pub(crate) shape: Shape,
    pub(crate) offset: usize,
    pub(crate) data: Rc<Buf<D>>,
}

/// Elements and their memory.
#[derive(Debug)]
pub(crate) struct Buf<D: Domain> {
    pub(crate) data: Data<D>,
    charge: Charge,
    /// There as long as the buffer is.
    life: OnceCell<Rc<()>>,
    /// The lives of the buffers that this one would show a part of, if views did not copy here.
    views: Vec<Weak<()>>,
}

impl<D: Domain> Drop for Buf<D> {
    fn drop(&mut self) {
        if let Data::Boxed(items) = &mut self.data {
            drop_flat(std::mem::take(items));
        }
        let _ = &self.charge;
    }
}

/// Elements of one type.
#[derive(Clone, Debug)]
pub(crate) enum Data<D: Domain> {
    F32(Vec<D::F32>),
    F64(Vec<D::F64>),
    I8(Vec<i8>),
    I16(Vec<i16>),
    I32(Vec<i32>),
    I64(Vec<i64>),
    U8(Vec<u8>),
    U16(Vec<u16>),
    U32(Vec<u32>),
    U64(Vec<u64>),
    Bool(Vec<bool>),
    Boxed(Vec<Val<D>>),
}

/// Runs `$body` with `$v` bound to the vector inside.
macro_rules! each_data {
    ($data:expr, $v:ident => $body:expr) => {
        match $data {
            Data::F32($v) => $body,
            Data::F64($v) => $body,
            Data::I8($v) => $body,
            Data::I16($v) => $body,
            Data::I32($v) => $body,
            Data::I64($v) => $body,
            Data::U8($v) => $body,
            Data::U16($v) => $body,
            Data::U32($v) => $body,
            Data::U64($v) => $body,
            Data::Bool($v) => $body,
            Data::Boxed($v) => $body,
        }
    };
}

/// Runs `$body` with the vectors of two buffers of the same kind.
macro_rules! each_pair {
    ($left:expr, $right:expr, $x:ident, $y:ident => $body:expr) => {
        match ($left, $right) {
            (Data::F32($x), Data::F32($y)) => $body,
            (Data::F64($x), Data::F64($y)) => $body,
            (Data::I8($x), Data::I8($y)) => $body,
            (Data::I16($x), Data::I16($y)) => $body,
            (Data::I32($x), Data::I32($y)) => $body,
            (Data::I64($x), Data::I64($y)) => $body,
            (Data::U8($x), Data::U8($y)) => $body,
            (Data::U16($x), Data::U16($y)) => $body,
            (Data::U32($x), Data::U32($y)) => $body,
            (Data::U64($x), Data::U64($y)) => $body,
            (Data::Bool($x), Data::Bool($y)) => $body,
            (Data::Boxed($x), Data::Boxed($y)) => $body,
            _ => return Err(internal("arrays of different element types meet")),
        }
    };
}

/// Runs `$body` with the vector and the scalar of the same type.
macro_rules! each_element {
    ($data:expr, $value:expr, $v:ident, $x:ident => $body:expr) => {
        match ($data, $value) {
            (Data::F32($v), Val::Num(Num::F32($x))) => $body,
            (Data::F64($v), Val::Num(Num::F64($x))) => $body,
            (Data::I8($v), Val::Num(Num::I8($x))) => $body,
            (Data::I16($v), Val::Num(Num::I16($x))) => $body,
            (Data::I32($v), Val::Num(Num::I32($x))) => $body,
            (Data::I64($v), Val::Num(Num::I64($x))) => $body,
            (Data::U8($v), Val::Num(Num::U8($x))) => $body,
            (Data::U16($v), Val::Num(Num::U16($x))) => $body,
            (Data::U32($v), Val::Num(Num::U32($x))) => $body,
            (Data::U64($v), Val::Num(Num::U64($x))) => $body,
            (Data::Bool($v), Val::Num(Num::Bool($x))) => $body,
            (Data::Boxed($v), $x) => $body,
            _ => return Err(internal("an element of another type than its array")),
        }
    };
}

/// Bytes of an element of a kind (`None`: boxed).
pub(crate) fn element_bytes(kind: Option<Scalar>) -> u128 {
    kind.map_or(16, |s| s.bytes() as u128)
}

impl<D: Domain> Data<D> {
    /// An empty buffer with room for some elements.
    pub(crate) fn with_capacity(kind: Option<Scalar>, n: usize) -> Data<D> {
        match kind {
            Some(Scalar::F32) => Data::F32(Vec::with_capacity(n)),
            Some(Scalar::F64) => Data::F64(Vec::with_capacity(n)),
            Some(Scalar::I8) => Data::I8(Vec::with_capacity(n)),
            Some(Scalar::I16) => Data::I16(Vec::with_capacity(n)),
            Some(Scalar::I32) => Data::I32(Vec::with_capacity(n)),
            Some(Scalar::I64) => Data::I64(Vec::with_capacity(n)),
            Some(Scalar::U8) => Data::U8(Vec::with_capacity(n)),
            Some(Scalar::U16) => Data::U16(Vec::with_capacity(n)),
            Some(Scalar::U32) => Data::U32(Vec::with_capacity(n)),
            Some(Scalar::U64) => Data::U64(Vec::with_capacity(n)),
            Some(Scalar::Bool) => Data::Bool(Vec::with_capacity(n)),
            None => Data::Boxed(Vec::with_capacity(n)),
        }
    }
    /// Scalar type of the elements, `None` if boxed.
    pub(crate) fn kind(&self) -> Option<Scalar> {
        Some(match self {
            Data::F32(_) => Scalar::F32,
            Data::F64(_) => Scalar::F64,
            Data::I8(_) => Scalar::I8,
            Data::I16(_) => Scalar::I16,
            Data::I32(_) => Scalar::I32,
            Data::I64(_) => Scalar::I64,
            Data::U8(_) => Scalar::U8,
            Data::U16(_) => Scalar::U16,
            Data::U32(_) => Scalar::U32,
            Data::U64(_) => Scalar::U64,
            Data::Bool(_) => Scalar::Bool,
            Data::Boxed(_) => return None,
        })
    }
    pub(crate) fn len(&self) -> usize {
        each_data!(self, v => v.len())
    }
    /// Element `i`, which exists.
    #[inline]
    pub(crate) fn get(&self, i: usize) -> Val<D> {
        Val::Num(match self {
            Data::F64(v) => Num::F64(v[i].clone()),
            Data::F32(v) => Num::F32(v[i].clone()),
            Data::I8(v) => Num::I8(v[i]),
            Data::I16(v) => Num::I16(v[i]),
            Data::I32(v) => Num::I32(v[i]),
            Data::I64(v) => Num::I64(v[i]),
            Data::U8(v) => Num::U8(v[i]),
            Data::U16(v) => Num::U16(v[i]),
            Data::U32(v) => Num::U32(v[i]),
            Data::U64(v) => Num::U64(v[i]),
            Data::Bool(v) => Num::Bool(v[i]),
            Data::Boxed(v) => return v[i].clone(),
        })
    }
    pub(crate) fn set(&mut self, i: usize, value: Val<D>) -> Res<()> {
        each_element!(self, value, v, x => v[i] = x);
        Ok(())
    }
    pub(crate) fn push(&mut self, value: Val<D>) -> Res<()> {
        each_element!(self, value, v, x => v.push(x));
        Ok(())
    }
    /// Appends `n` copies.
    pub(crate) fn push_many(&mut self, value: Val<D>, n: usize) -> Res<()> {
        each_element!(self, value, v, x => v.resize(v.len() + n, x));
        Ok(())
    }
    /// Appends elements `from .. from + n` of another buffer.
    pub(crate) fn extend(&mut self, other: &Data<D>, from: usize, n: usize) -> Res<()> {
        each_pair!(self, other, v, w => v.extend_from_slice(&w[from..from + n]));
        Ok(())
    }
    /// Appends the elements at these positions of another buffer.
    pub(crate) fn extend_at(&mut self, other: &Data<D>, positions: impl Iterator<Item = usize>) -> Res<()> {
        each_pair!(self, other, v, w => v.extend(positions.map(|i| &w[i]).cloned()));
        Ok(())
    }
    /// Overwrites `n` elements from `at` by those of another buffer from `from`.
    pub(crate) fn copy(&mut self, at: usize, other: &Data<D>, from: usize, n: usize) -> Res<()> {
        each_pair!(self, other, v, w => v[at..at + n].clone_from_slice(&w[from..from + n]));
        Ok(())
    }
}

impl<D: Domain> Arr<D> {
    /// An array that owns its buffer.
    pub(crate) fn new(shape: Shape, data: Data<D>, charge: Charge) -> Arr<D> {
        debug_assert_eq!(count_elements(&shape), data.len());
        let buf = Buf { data, charge, life: OnceCell::new(), views: Vec::new() };
        Arr { shape, offset: 0, data: Rc::new(buf) }
    }
    /// An array that counts as a view of another one although it has a buffer of its own.
    pub(crate) fn view(shape: Shape, data: Data<D>, charge: Charge, of: &Arr<D>) -> Arr<D> {
        let mut views: Vec<Weak<()>> =
            of.data.views.iter().filter(|life| life.strong_count() > 0).cloned().collect();
        if Rc::strong_count(&of.data) > 1 {
            views.push(Rc::downgrade(of.data.life.get_or_init(Rc::default)));
        }
        let buf = Buf { data, charge, life: OnceCell::new(), views };
        Arr { shape, offset: 0, data: Rc::new(buf) }
    }
    pub(crate) fn count(&self) -> usize {
        count_elements(&self.shape)
    }
    pub(crate) fn kind(&self) -> Option<Scalar> {
        self.data.data.kind()
    }
    /// The element or row `i` of the outer dimension, which exists: no copy.
    #[inline]
    pub(crate) fn row(&self, i: usize) -> Val<D> {
        self.part(1, i)
    }
    /// What is left after `depth` leading indices whose flat position is `flat`.
    #[inline]
    pub(crate) fn part(&self, depth: usize, flat: usize) -> Val<D> {
        let inner = &self.shape[depth..];
        if inner.is_empty() {
            self.data.data.get(self.offset + flat)
        } else {
            let size = count_elements(inner);
            let offset = self.offset + flat * size;
            Val::Arr(Arr { shape: Shape::new(inner), offset, data: self.data.clone() })
        }
    }
    /// Element `i` in row-major order.
    pub(crate) fn element(&self, i: usize) -> Val<D> {
        self.data.data.get(self.offset + i)
    }
    /// A copy that owns exactly its elements.
    pub(crate) fn copied(&self, meter: &Rc<Meter>) -> Res<Arr<D>> {
        let n = self.count();
        let charge = meter.charge(element_bytes(self.kind()) * n as u128)?;
        let mut data = Data::with_capacity(self.kind(), n);
        data.extend(&self.data.data, self.offset, n)?;
        Ok(Arr::new(self.shape.clone(), data, charge))
    }
    /// The buffer for writing and the position of the first element. The array must be owned ([`Arr::is_owned`]).
    pub(crate) fn data_mut(&mut self) -> Res<(&mut Data<D>, usize)> {
        match Rc::get_mut(&mut self.data) {
            Some(buf) => Ok((&mut buf.data, self.offset)),
            None => Err(internal("a write to a shared array")),
        }
    }
    /// Whether nobody else sees the buffer.
    pub(crate) fn is_owned(&self) -> bool {
        Rc::strong_count(&self.data) == 1 && self.data.views.iter().all(|life| life.strong_count() == 0)
    }
}

impl<D: Domain> Val<D> {
    /// Counts the memory of the value as part of a tape as long as it is live.
    pub(crate) fn put_on_tape(&self) {
        let mut work = vec![self];
        while let Some(value) = work.pop() {
            match value {
                Val::Num(_) | Val::Unit | Val::Acc(_) | Val::Gone => {}
                Val::Tuple(node) | Val::Sum(_, node) => {
                    if node.charge.put_on_tape() {
                        work.extend(&node.items);
                    }
                }
                Val::Arr(a) => {
                    if a.data.charge.put_on_tape()
                        && let Data::Boxed(items) = &a.data.data
                    {
                        work.extend(items);
                    }
                }
            }
        }
    }
    /// Number of scalar leaves.
    pub(crate) fn leaves(&self) -> u64 {
        let mut count = 0;
        let mut work = vec![self];
        while let Some(value) = work.pop() {
            match value {
                Val::Num(_) => count += 1,
                Val::Unit | Val::Acc(_) | Val::Gone => {}
                Val::Tuple(node) | Val::Sum(_, node) => work.extend(&node.items),
                Val::Arr(a) => match &a.data.data {
                    Data::Boxed(items) => work.extend(&items[a.offset..a.offset + a.count()]),
                    _ => count += a.count() as u64,
                },
            }
        }
        count
    }
    /// Bytes of the value as plain data.
    pub(crate) fn bytes(&self) -> u128 {
        let mut bytes = 0;
        let mut work = vec![self];
        while let Some(value) = work.pop() {
            match value {
                Val::Num(_) | Val::Unit | Val::Acc(_) | Val::Gone => {}
                Val::Tuple(node) | Val::Sum(_, node) => work.extend(&node.items),
                Val::Arr(a) => {
                    let range = a.offset..a.offset + a.count();
                    bytes += element_bytes(a.data.data.kind()) * range.len() as u128;
                    if let Data::Boxed(items) = &a.data.data {
                        work.extend(&items[range]);
                    }
                }
            }
        }
        bytes
    }
    /// The value as plain data; floats lose everything but their primal part.
    pub(crate) fn to_value(&self, depth: usize) -> Res<Value> {
        let Some(depth) = depth.checked_sub(1) else {
            return Err(fail(
                RuntimeErrorKind::Limit,
                format!("a result is nested more than {MAX_DEPTH} levels deep"),
            ));
        };
        let all =
            |items: &[Val<D>]| items.iter().map(|v| deep(|| v.to_value(depth))).collect::<Res<Vec<_>>>();
        Ok(match self {
            Val::Num(x) => Value::Scalar(x.primal()),
            Val::Unit => Value::Tuple(Vec::new()),
            Val::Tuple(node) => Value::Tuple(all(&node.items)?),
            Val::Sum(k, node) => Value::Sum(*k, Arc::new(all(&node.items)?)),
            Val::Arr(a) => Value::Array(a.to_array(depth)?),
            Val::Acc(_) => return Err(internal("an accumulator leaves its scope")),
            Val::Gone => return Err(internal("a variable is read before it is bound")),
        })
    }
    /// Like [`Val::to_value`], with the depth limit for results.
    pub(crate) fn result(&self) -> Res<Value> {
        self.to_value(MAX_DEPTH)
    }
    /// A value of the program from plain data.
    pub(crate) fn from_value(meter: &Rc<Meter>, value: &Value, depth: usize) -> Res<Val<D>> {
        if depth > MAX_DEPTH {
            return Err(fail(
                RuntimeErrorKind::Limit,
                format!("an argument is nested more than {MAX_DEPTH} levels deep"),
            ));
        }
        let all = |items: &[Value]| {
            items.iter().map(|v| deep(|| Val::from_value(meter, v, depth + 1))).collect::<Res<Vec<_>>>()
        };
        Ok(match value {
            Value::Scalar(x) => Val::Num(Num::lift(*x)),
            Value::Tuple(items) if items.is_empty() => Val::Unit,
            Value::Tuple(items) => Val::Tuple(Node::new(meter, all(items)?)?),
            Value::Sum(k, items) => Val::Sum(*k, Node::new(meter, all(items)?)?),
            Value::Array(a) => Val::Arr(Arr::from_array(meter, a, depth)?),
            Value::Acc(_) => return Err(internal("an accumulator as an argument")),
        })
    }
}

impl<D: Domain> Arr<D> {
    fn to_array(&self, depth: usize) -> Res<Array> {
        let range = self.offset..self.offset + self.count();
        let buffer = match &self.data.data {
            Data::F32(v) => Buffer::F32(v[range].iter().map(D::primal32).collect()),
            Data::F64(v) => Buffer::F64(v[range].iter().map(D::primal64).collect()),
            Data::I8(v) => Buffer::I8(v[range].to_vec()),
            Data::I16(v) => Buffer::I16(v[range].to_vec()),
            Data::I32(v) => Buffer::I32(v[range].to_vec()),
            Data::I64(v) => Buffer::I64(v[range].to_vec()),
            Data::U8(v) => Buffer::U8(v[range].to_vec()),
            Data::U16(v) => Buffer::U16(v[range].to_vec()),
            Data::U32(v) => Buffer::U32(v[range].to_vec()),
            Data::U64(v) => Buffer::U64(v[range].to_vec()),
            Data::Bool(v) => Buffer::Bool(v[range].to_vec()),
            Data::Boxed(v) => {
                Buffer::Boxed(v[range].iter().map(|x| deep(|| x.to_value(depth))).collect::<Res<_>>()?)
            }
        };
        Ok(Array::new(self.shape.to_vec(), buffer))
    }
    fn from_array(meter: &Rc<Meter>, array: &Array, depth: usize) -> Res<Arr<D>> {
        let n = array.count();
        if array.shape.is_empty() || array.offset + n > array.data.len() {
            return Err(internal("an argument array whose shape does not fit its elements"));
        }
        let range = array.offset..array.offset + n;
        let charge = meter.charge(element_bytes(array.data.scalar()) * n as u128)?;
        let data = match &*array.data {
            Buffer::F32(v) => Data::F32(v[range].iter().map(|x| D::f32(*x)).collect()),
            Buffer::F64(v) => Data::F64(v[range].iter().map(|x| D::f64(*x)).collect()),
            Buffer::I8(v) => Data::I8(v[range].to_vec()),
            Buffer::I16(v) => Data::I16(v[range].to_vec()),
            Buffer::I32(v) => Data::I32(v[range].to_vec()),
            Buffer::I64(v) => Data::I64(v[range].to_vec()),
            Buffer::U8(v) => Data::U8(v[range].to_vec()),
            Buffer::U16(v) => Data::U16(v[range].to_vec()),
            Buffer::U32(v) => Data::U32(v[range].to_vec()),
            Buffer::U64(v) => Data::U64(v[range].to_vec()),
            Buffer::Bool(v) => Data::Bool(v[range].to_vec()),
            Buffer::Boxed(v) => Data::Boxed(
                v[range].iter().map(|x| deep(|| Val::from_value(meter, x, depth + 1))).collect::<Res<_>>()?,
            ),
        };
        Ok(Arr::new(Shape::new(&array.shape), data, charge))
    }
}

impl<D: Domain> From<ScalarValue> for Val<D> {
    fn from(x: ScalarValue) -> Self {
        Val::Num(Num::lift(x))
    }
}

/// Whether plain data has a type. Scalars inside sums and the ranks of arrays are checked as well.
pub(crate) fn has_type(program: &Program, value: &Value, ty: &Type) -> bool {
    let all = |vs: &[Value], ts: &[Type]| {
        vs.len() == ts.len() && vs.iter().zip(ts).all(|(v, t)| deep(|| has_type(program, v, t)))
    };
    match (value, ty) {
        (Value::Scalar(x), Type::Scalar(s)) => x.scalar() == *s,
        (Value::Tuple(vs), Type::Tuple(ts)) => all(vs, ts),
        (Value::Sum(k, vs), Type::Sum(_) | Type::Named(_)) => {
            program.variants(ty).and_then(|alts| alts.get(*k)).is_some_and(|v| all(vs, &v.fields))
        }
        (Value::Array(a), Type::Array(_)) => {
            a.shape.len() == ty.rank()
                && a.data.scalar() == ty.base().scalar()
                && match &*a.data {
                    Buffer::Boxed(_) => a.elements().all(|v| deep(|| has_type(program, &v, ty.base()))),
                    _ => true,
                }
        }
        _ => false,
    }
}
