//! Accumulators: one stored value per open scope, handles that name parts of it.
//!
//! A handle never copies what it refers to. Parts that no distance per dimension can describe (rotations, reshapes of
//! transposed parts) keep a table of positions. Cost of adding: the scalar leaves added.

use super::arrays::{agree, elements_of, mismatch, rotated, row_major, strided};
use super::code::{Arg, LamCode, ViewCode};
use super::machine::{Machine, Res, fail, internal, wrong};
use super::num::{Domain, Num};
use super::soac::log2;
use super::value::{Arr, Node, Shape, Val};
use pullback_base::RuntimeErrorKind;
use pullback_core::count_elements;
use std::rc::Rc;

/// The value of an open scope.
#[derive(Debug)]
pub(crate) struct AccRoot<D: Domain> {
    value: Val<D>,
    adds: usize,
}

/// A handle.
#[derive(Clone, Debug)]
pub(crate) struct AccRef {
    root: usize,
    /// Components of products, from the root.
    path: Vec<usize>,
    region: Region,
}

/// Which part of what the path leads to.
#[derive(Clone, Debug)]
enum Region {
    Whole,
    /// A part of an array: element `ix` is at `offset + ix * strides`, counted from its first element.
    Strided {
        shape: Shape,
        offset: isize,
        strides: Vec<isize>,
    },
    /// A part of an array: element number `i` is at `positions[i]`; `None`: additions there are ignored.
    Table {
        shape: Shape,
        positions: Rc<Vec<Option<usize>>>,
    },
    /// Additions are ignored.
    Nowhere,
}

impl Region {
    /// All positions in row-major order.
    fn positions(&self) -> Vec<Option<usize>> {
        match self {
            Region::Strided { shape, offset, strides } => {
                positions_of(shape, strides, *offset).map(|p| usize::try_from(p).ok()).collect()
            }
            Region::Table { positions, .. } => positions.to_vec(),
            Region::Whole | Region::Nowhere => Vec::new(),
        }
    }
}

/// The positions of all elements in row-major order; a negative one is outside.
fn positions_of(shape: &[usize], strides: &[isize], offset: isize) -> impl Iterator<Item = isize> + use<> {
    // Strides may be negative: unsigned arithmetic that wraps is exact in the end.
    let strides: Vec<usize> = strides.iter().map(|&s| s as usize).collect();
    strided(shape, &strides, offset as usize).map(|p| p as isize)
}

/// The strides of a part whose elements lie next to each other.
fn dense_strides(shape: &[usize]) -> Vec<isize> {
    row_major(shape).into_iter().map(|s| s as isize).collect()
}

impl<D: Domain> Machine<'_, D> {
    pub(crate) fn with_acc(&mut self, inits: &[Arg], lam: &LamCode) -> Res<()> {
        let first = self.accs.len();
        for &a in inits {
            let value = self.take(a);
            self.accs.push(AccRoot { value, adds: 0 });
        }
        for k in first..self.accs.len() {
            self.stack.push(Val::Acc(Rc::new(AccRef { root: k, path: Vec::new(), region: Region::Whole })));
        }
        let bottom = self.stack.len() - inits.len();
        self.apply(lam)?;
        let results = self.stack.split_off(bottom);
        let mut adds = 0;
        for root in self.accs.drain(first..) {
            adds = adds.max(root.adds);
            self.stack.push(root.value);
        }
        // Additions to one place are a tree in the worst case.
        self.counts.span += log2(adds + 1);
        self.stack.extend(results);
        Ok(())
    }

    fn handle(&mut self, acc: Arg) -> Res<Rc<AccRef>> {
        match self.take(acc) {
            Val::Acc(handle) if handle.root < self.accs.len() => Ok(handle),
            Val::Acc(_) => Err(internal("an accumulator outside its scope")),
            other => Err(wrong("an accumulator", &other)),
        }
    }

    /// The shape of what a handle refers to; `None` if that is no array.
    fn acc_shape(&self, handle: &AccRef) -> Res<Option<Shape>> {
        match &handle.region {
            Region::Strided { shape, .. } | Region::Table { shape, .. } => Ok(Some(shape.clone())),
            Region::Nowhere => Ok(None),
            Region::Whole => {
                let mut value = &self.accs[handle.root].value;
                for &i in &handle.path {
                    value = match value {
                        Val::Tuple(node) => node.items.get(i).ok_or_else(|| internal("no such component"))?,
                        other => return Err(wrong("a product", other)),
                    };
                }
                Ok(match value {
                    Val::Arr(a) => Some(a.shape.clone()),
                    Val::Num(_) | Val::Unit | Val::Tuple(_) | Val::Sum(..) | Val::Acc(_) | Val::Gone => None,
                })
            }
        }
    }

    pub(crate) fn acc_view(&mut self, acc: Arg, view: &ViewCode) -> Res<Val<D>> {
        let handle = self.handle(acc)?;
        if matches!(handle.region, Region::Nowhere) {
            return Ok(Val::Acc(handle));
        }
        let mut handle = AccRef::clone(&handle);
        if let ViewCode::Proj(i) = view {
            handle.path.push(*i);
            return Ok(Val::Acc(Rc::new(handle)));
        }
        let Some(shape) = self.acc_shape(&handle)? else {
            return Err(internal("a view of an accumulator that is no array"));
        };
        let (offset, strides) = match handle.region {
            Region::Strided { offset, strides, .. } => (offset, strides),
            Region::Whole => (0, dense_strides(&shape)),
            Region::Table { positions, .. } => {
                handle.region = self.view_table(&shape, &positions, view)?;
                return Ok(Val::Acc(Rc::new(handle)));
            }
            Region::Nowhere => return Err(internal("handled above")),
        };
        handle.region = self.view_strided(&shape, offset, &strides, view)?;
        Ok(Val::Acc(Rc::new(handle)))
    }

    fn view_strided(&self, shape: &Shape, offset: isize, strides: &[isize], view: &ViewCode) -> Res<Region> {
        let as_table = || {
            let region = Region::Strided { shape: shape.clone(), offset, strides: strides.to_vec() };
            self.view_table(shape, &region.positions(), view)
        };
        match view {
            ViewCode::Index(ix) => {
                let mut at = offset;
                for ((&a, &n), &stride) in ix.iter().zip(shape.iter()).zip(strides) {
                    let i = self.i64(a)?;
                    if i < 0 || i as u64 >= n as u64 {
                        return Ok(Region::Nowhere);
                    }
                    at += i as isize * stride;
                }
                let inner = shape.get(ix.len()..).ok_or_else(|| internal("more indices than dimensions"))?;
                Ok(Region::Strided {
                    shape: Shape::new(inner),
                    offset: at,
                    strides: strides[ix.len()..].to_vec(),
                })
            }
            ViewCode::Slice(s) => {
                let (start, step, len) = (self.i64(s.start)?, self.i64(s.stride)?, self.size(s.len)?);
                let last = i128::from(start) + (len as i128 - 1) * i128::from(step);
                let inside = |i: i128| (0..shape[0] as i128).contains(&i);
                if len > 0 && !(inside(start.into()) && inside(last)) {
                    return as_table();
                }
                let (start, step) = if len == 0 { (0, 1) } else { (start as isize, step as isize) };
                let mut strides = strides.to_vec();
                let offset = offset + start * strides[0];
                strides[0] = if len <= 1 { strides[0] } else { strides[0] * step };
                Ok(Region::Strided { shape: Shape::with_outer(len, &shape[1..]), offset, strides })
            }
            ViewCode::Rearrange(perm) => {
                let full: Vec<usize> = perm.iter().copied().chain(perm.len()..shape.len()).collect();
                if full.len() != shape.len() || perm.iter().any(|&d| d >= shape.len()) {
                    return Err(internal("a permutation of other dimensions"));
                }
                let sizes: Vec<usize> = full.iter().map(|&d| shape[d]).collect();
                let strides = full.iter().map(|&d| strides[d]).collect();
                Ok(Region::Strided { shape: Shape::new(&sizes), offset, strides })
            }
            ViewCode::Reverse => {
                let mut strides = strides.to_vec();
                let last = shape[0].saturating_sub(1) as isize;
                let offset = offset + last * strides[0];
                strides[0] = -strides[0];
                Ok(Region::Strided { shape: shape.clone(), offset, strides })
            }
            ViewCode::Reshape(sizes, from) => {
                if strides != dense_strides(shape) {
                    return as_table();
                }
                let shape = self.reshaped(shape, sizes, *from)?;
                let strides = dense_strides(&shape);
                Ok(Region::Strided { shape, offset, strides })
            }
            ViewCode::Rotate(_) => as_table(),
            ViewCode::Proj(_) => Err(internal("a component of an array")),
        }
    }
    fn reshaped(&self, shape: &Shape, sizes: &[Arg], from: usize) -> Res<Shape> {
        let mut sizes = sizes.iter().map(|&n| self.size(n)).collect::<Res<Vec<_>>>()?;
        let (old, inner) =
            shape.split_at_checked(from).ok_or_else(|| internal("a reshape of missing dimensions"))?;
        if elements_of(&sizes)? != elements_of(old)? {
            return Err(mismatch("reshape of an accumulator", old, &sizes));
        }
        sizes.extend_from_slice(inner);
        Ok(Shape::new(&sizes))
    }
    /// A view of a part given by positions. Physical cost: the size of the part.
    fn view_table(&self, shape: &Shape, positions: &[Option<usize>], view: &ViewCode) -> Res<Region> {
        let inner = shape.get(1..).map_or(1, count_elements);
        let rows = |rows: Vec<Option<usize>>| -> Rc<Vec<Option<usize>>> {
            let cells = rows.iter().flat_map(|r| {
                (0..inner).map(move |c| r.and_then(|r| positions.get(r * inner + c).copied().flatten()))
            });
            Rc::new(cells.collect())
        };
        match view {
            ViewCode::Index(ix) => {
                let mut flat = 0;
                for (&a, &n) in ix.iter().zip(shape.iter()) {
                    let i = self.i64(a)?;
                    if i < 0 || i as u64 >= n as u64 {
                        return Ok(Region::Nowhere);
                    }
                    flat = flat * n + i as usize;
                }
                let inner = shape.get(ix.len()..).ok_or_else(|| internal("more indices than dimensions"))?;
                let size = count_elements(inner);
                let part = positions.get(flat * size..(flat + 1) * size);
                let part = part.ok_or_else(|| internal("a table of positions is too short"))?;
                Ok(Region::Table { shape: Shape::new(inner), positions: Rc::new(part.to_vec()) })
            }
            ViewCode::Slice(s) => {
                let (start, step, len) = (self.i64(s.start)?, self.i64(s.stride)?, self.size(s.len)?);
                let outer = shape[0] as i128;
                let _charge = self.meter.charge(16 * len as u128)?;
                let picked = (0..len as i128).map(|k| {
                    let i = i128::from(start) + k * i128::from(step);
                    (0..outer).contains(&i).then_some(i as usize)
                });
                let positions = rows(picked.collect());
                Ok(Region::Table { shape: Shape::with_outer(len, &shape[1..]), positions })
            }
            ViewCode::Reverse => {
                let positions = rows((0..shape[0]).rev().map(Some).collect());
                Ok(Region::Table { shape: shape.clone(), positions })
            }
            ViewCode::Rotate(k) => {
                let positions = rows(rotated(shape[0], self.i64(*k)?).map(Some).collect());
                Ok(Region::Table { shape: shape.clone(), positions })
            }
            ViewCode::Reshape(sizes, from) => Ok(Region::Table {
                shape: self.reshaped(shape, sizes, *from)?,
                positions: Rc::new(positions.to_vec()),
            }),
            ViewCode::Rearrange(perm) => {
                let full: Vec<usize> = perm.iter().copied().chain(perm.len()..shape.len()).collect();
                if full.len() != shape.len() || perm.iter().any(|&d| d >= shape.len()) {
                    return Err(internal("a permutation of other dimensions"));
                }
                let old = row_major(shape);
                let sizes: Vec<usize> = full.iter().map(|&d| shape[d]).collect();
                let strides: Vec<usize> = full.iter().map(|&d| old[d]).collect();
                let moved = strided(&sizes, &strides, 0).map(|p| positions.get(p).copied().flatten());
                Ok(Region::Table { shape: Shape::new(&sizes), positions: Rc::new(moved.collect()) })
            }
            ViewCode::Proj(_) => Err(internal("a component of an array")),
        }
    }

    pub(crate) fn acc_add(&mut self, acc: Arg, ix: &[Arg], v: Arg) -> Res<Val<D>> {
        let handle = self.handle(acc)?;
        let value = self.take(v);
        if matches!(handle.region, Region::Nowhere) {
            return Ok(Val::Unit);
        }
        if let Val::Num(x) = &value
            && handle.path.is_empty()
            && let Val::Arr(array) = &self.accs[handle.root].value
            && array.is_owned()
            && array.kind().is_some()
            && let Some(position) = self.scalar_position(array, &handle.region, ix)?
        {
            return self.add_scalar(handle.root, position, x);
        }
        let target = match self.acc_shape(&handle)? {
            None if ix.is_empty() => Region::Whole,
            None => return Err(internal("an index into an accumulator that is no array")),
            Some(_) if ix.is_empty() => handle.region.clone(),
            Some(shape) => {
                let (offset, strides) = match &handle.region {
                    Region::Strided { offset, strides, .. } => (*offset, strides.clone()),
                    Region::Whole | Region::Nowhere => (0, dense_strides(&shape)),
                    Region::Table { positions, .. } => {
                        let region = self.view_table(&shape, positions, &ViewCode::Index(ix.into()))?;
                        return self.add_to(&handle, region, value);
                    }
                };
                self.view_strided(&shape, offset, &strides, &ViewCode::Index(ix.into()))?
            }
        };
        self.add_to(&handle, target, value)
    }

    /// The commonest case, a scalar into an unshared array: where it goes. `None`: it is another case. `Some(None)`: nowhere.
    fn scalar_position(&self, array: &Arr<D>, region: &Region, ix: &[Arg]) -> Res<Option<Option<usize>>> {
        let mut flat: isize = 0;
        match region {
            Region::Whole if array.shape.len() == ix.len() => {
                for (&a, &n) in ix.iter().zip(array.shape.iter()) {
                    let i = self.i64(a)?;
                    if i < 0 || i as u64 >= n as u64 {
                        return Ok(Some(None));
                    }
                    flat = flat * n as isize + i as isize;
                }
            }
            Region::Strided { shape, offset, strides } if shape.len() == ix.len() => {
                flat = *offset;
                for ((&a, &n), &stride) in ix.iter().zip(shape.iter()).zip(strides) {
                    let i = self.i64(a)?;
                    if i < 0 || i as u64 >= n as u64 {
                        return Ok(Some(None));
                    }
                    flat += i as isize * stride;
                }
            }
            Region::Whole | Region::Strided { .. } | Region::Table { .. } | Region::Nowhere => {
                return Ok(None);
            }
        }
        Ok(Some(usize::try_from(flat).ok()))
    }
    fn add_scalar(&mut self, root: usize, position: Option<usize>, x: &Num<D>) -> Res<Val<D>> {
        let Some(position) = position else { return Ok(Val::Unit) };
        self.counts.acc_adds += 1;
        self.tick(1)?;
        let root = &mut self.accs[root];
        root.adds += 1;
        if let Val::Arr(array) = &mut root.value {
            let (data, offset) = array.data_mut()?;
            if let Val::Num(old) = data.get(offset + position) {
                data.set(offset + position, Val::Num(old.plus(x)))?;
            }
        }
        Ok(Val::Unit)
    }

    fn add_to(&mut self, handle: &AccRef, region: Region, value: Val<D>) -> Res<Val<D>> {
        if matches!(region, Region::Nowhere) {
            return Ok(Val::Unit);
        }
        let leaves = value.leaves();
        self.counts.acc_adds += leaves;
        self.tick(leaves)?;
        let root = &mut self.accs[handle.root];
        root.adds += 1;
        let whole = std::mem::replace(&mut root.value, Val::Gone);
        let new = self.add_at(whole, &handle.path, &region, value)?;
        self.accs[handle.root].value = new;
        Ok(Val::Unit)
    }
    fn add_at(&mut self, whole: Val<D>, path: &[usize], region: &Region, value: Val<D>) -> Res<Val<D>> {
        if let [i, rest @ ..] = path {
            let Val::Tuple(mut node) = whole else {
                return Err(wrong("a product", &whole));
            };
            let items = Node::items_mut(&mut node, &self.meter)?;
            let Some(item) = items.get_mut(*i) else {
                return Err(internal("no such component"));
            };
            let old = std::mem::replace(item, Val::Gone);
            *item = self.add_at(old, rest, region, value)?;
            return Ok(Val::Tuple(node));
        }
        match region {
            Region::Whole => self.plus(whole, value),
            Region::Nowhere => Ok(whole),
            Region::Strided { shape, offset, strides } => match whole {
                Val::Arr(array) => self.add_strided(array, shape, *offset, strides, value),
                other => Err(wrong("an array", &other)),
            },
            Region::Table { shape, positions } => match whole {
                Val::Arr(array) => {
                    let positions = positions.iter().copied();
                    self.add_each(array, shape, positions, &value)
                }
                other => Err(wrong("an array", &other)),
            },
        }
    }
    fn add_strided(
        &mut self,
        array: Arr<D>,
        shape: &Shape,
        offset: isize,
        strides: &[isize],
        value: Val<D>,
    ) -> Res<Val<D>> {
        match &value {
            Val::Arr(part) if strides == dense_strides(shape) => {
                if !agree(shape, &part.shape) {
                    return Err(mismatch("addition into an accumulator", shape, &part.shape));
                }
                let mut array = self.own(array)?;
                if part.count() > 0 {
                    self.add_in_place(&mut array, offset as usize, part)?;
                }
                Ok(Val::Arr(array))
            }
            _ => {
                let positions = positions_of(shape, strides, offset).map(|p| usize::try_from(p).ok());
                self.add_each(array, shape, positions, &value)
            }
        }
    }
    /// Adds the elements of `value`, which has the shape of the part, one by one.
    fn add_each(
        &mut self,
        array: Arr<D>,
        shape: &Shape,
        positions: impl Iterator<Item = Option<usize>>,
        value: &Val<D>,
    ) -> Res<Val<D>> {
        let count = array.count();
        let mut array = self.own(array)?;
        for (k, position) in positions.enumerate() {
            let element = match value {
                Val::Arr(part) if !agree(shape, &part.shape) => {
                    return Err(mismatch("addition into an accumulator", shape, &part.shape));
                }
                Val::Arr(part) => part.element(k),
                _ if shape.is_empty() => value.clone(),
                other => return Err(wrong("an array", other)),
            };
            let Some(position) = position else { continue };
            if position >= count {
                return Err(fail(RuntimeErrorKind::Internal, "a part outside its accumulator"));
            }
            let (data, offset) = array.data_mut()?;
            let old = data.get(offset + position);
            if data.kind().is_none() {
                // The stored value must be unshared to be added to in place.
                data.set(offset + position, Val::Gone)?;
            }
            let new = self.plus(old, element)?;
            let (data, offset) = array.data_mut()?;
            data.set(offset + position, new)?;
        }
        Ok(Val::Arr(array))
    }
}
