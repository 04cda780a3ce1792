//! Array operations: leaf by leaf.

use super::branch::Param;
use super::value::Val;
use super::{Lowered, Lowerer};
use pullback_base::Span;
use pullback_core as core;
use pullback_core::{Atom, Exp};
use pullback_lambda as lambda;
use pullback_lambda::{Exp as Lam, Soac, Term, Type};
use pullback_prim::ScalarValue;
use std::rc::Rc;

impl Lowerer<'_, '_> {
    /// One expression for each leaf.
    fn each(&mut self, leaves: &[Atom], hint: &str, mut f: impl FnMut(Atom) -> Exp) -> Vec<Atom> {
        leaves.iter().map(|&a| self.b.emit(f(a), hint)).collect()
    }
    /// The leaves of a value as those of an array element: one unit if there are none.
    pub(super) fn as_element(&mut self, leaves: &[Atom]) -> Vec<Atom> {
        if leaves.is_empty() { vec![self.b.emit(Exp::Tuple(Vec::new()), "u")] } else { leaves.to_vec() }
    }
    /// The leaves of a value of this type from those of an array element.
    fn without_unit(&mut self, ty: &Type, atoms: Vec<Atom>, span: Option<Span>) -> Lowered<Vec<Atom>> {
        Ok(if self.leaf_count(ty, span)? == 0 { Vec::new() } else { atoms })
    }
    pub(super) fn element_type<'t>(&self, t: &'t Term) -> Lowered<&'t Type> {
        match t.ty().elem() {
            Some(e) => Ok(e),
            None => self.bug(t.span(), format!("an array operation on type {}", t.ty())),
        }
    }
    /// The outer size of an array with these leaves.
    pub(super) fn outer_size(&mut self, leaves: &[Atom], span: Option<Span>) -> Lowered<Atom> {
        let Some(&a) = leaves.first() else { return self.bug(span, "an array without leaves") };
        Ok(match self.known_size(a) {
            Some(n) => n,
            None => self.b.size(a, 0),
        })
    }
    fn known_size(&self, a: Atom) -> Option<Atom> {
        a.var().and_then(|v| self.outer_sizes.get(&v)).copied()
    }
    /// Remembers the outer size of new arrays: the size is in scope wherever they are.
    pub(super) fn sized(&mut self, arrays: Vec<Atom>, size: Option<Atom>) -> Vec<Atom> {
        if let Some(n) = size {
            self.outer_sizes.extend(arrays.iter().filter_map(|a| Some((a.var()?, n))));
        }
        arrays
    }
    fn slice_dim(&mut self, d: &lambda::SliceDim) -> Lowered<core::SliceDim> {
        Ok(core::SliceDim {
            start: self.atom(&d.start)?,
            len: self.atom(&d.len)?,
            stride: self.atom(&d.stride)?,
        })
    }

    pub(super) fn array(&mut self, t: &Term) -> Lowered<Vec<Atom>> {
        let span = t.span();
        Ok(match t.exp() {
            Lam::ArrayLit(..) if let Some((shape, numbers)) = large_table(t) => {
                let flat = self.b.emit(Exp::ArrayLit(numbers[0].scalar().into(), atoms(&numbers)), "xs");
                let shape = shape.iter().map(|n| Atom::i64(*n as i64)).collect();
                vec![self.b.emit(Exp::Reshape { shape, from: 1, array: flat }, "xs")]
            }
            Lam::ArrayLit(ty, items) => {
                let types = self.element_leaves(ty, span)?;
                let mut columns: Vec<Vec<Atom>> = vec![Vec::new(); types.len()];
                for item in items {
                    let leaves = self.data(item)?;
                    let leaves = self.as_element(&leaves);
                    columns.iter_mut().zip(leaves).for_each(|(column, a)| column.push(a));
                }
                types.into_iter().zip(columns).map(|(t, c)| self.b.emit(Exp::ArrayLit(t, c), "xs")).collect()
            }
            Lam::Index(a, ix) => {
                let array = self.data(a)?;
                let ix = self.atoms(ix)?;
                if ix.is_empty() {
                    return Ok(array.to_vec());
                }
                let atoms = self.each(&array, "x", |a| Exp::Index(a, ix.clone()));
                self.without_unit(t.ty(), atoms, span)?
            }
            Lam::Slice(a, d) => {
                let a = self.data(a)?;
                let d = self.slice_dim(d)?;
                let xs = self.each(&a, "xs", |a| Exp::Slice(a, d));
                self.sized(xs, Some(d.len))
            }
            Lam::Update(a, ix, v) => {
                let a = self.data(a)?;
                let ix = self.atoms(ix)?;
                let v = self.data(v)?;
                if ix.is_empty() {
                    return Ok(v.to_vec());
                }
                let v = self.as_element(&v);
                let size = a.first().and_then(|&a| self.known_size(a));
                let xs =
                    a.iter().zip(v).map(|(&a, v)| self.b.emit(Exp::Update(a, ix.clone(), v), "xs")).collect();
                self.sized(xs, size)
            }
            Lam::UpdateSlice(a, d, v) => {
                let a = self.data(a)?;
                let d = self.slice_dim(d)?;
                let v = self.data(v)?;
                a.iter().zip(v.iter()).map(|(&a, &v)| self.b.emit(Exp::UpdateSlice(a, d, v), "xs")).collect()
            }
            Lam::Gather(a, ix) => {
                let a = self.data(a)?;
                let ix = self.atom(ix)?;
                self.each(&a, "xs", |a| Exp::Gather(a, ix))
            }
            Lam::Size(a, d) => {
                let a = self.data(a)?;
                let Some(&first) = a.first() else { return self.bug(span, "an array without leaves") };
                let size = if *d == 0 { self.outer_size(&a, span)? } else { self.b.size(first, *d) };
                vec![size]
            }
            Lam::Iota(n) => {
                let n = self.atom(n)?;
                let is = vec![self.b.emit(Exp::Iota(n), "is")];
                self.sized(is, Some(n))
            }
            Lam::Replicate(n, v) => {
                let n = self.atom(n)?;
                let v = self.data(v)?;
                let v = self.as_element(&v);
                let xs = self.each(&v, "xs", |v| Exp::Replicate(vec![n], v));
                self.sized(xs, Some(n))
            }
            Lam::Rearrange(perm, a) => {
                let a = self.data(a)?;
                self.each(&a, "xs", |a| Exp::Rearrange(perm.clone(), a))
            }
            Lam::Reshape { shape, from, array } => {
                let shape = self.atoms(shape)?;
                let array = self.data(array)?;
                self.each(&array, "xs", |array| Exp::Reshape { shape: shape.clone(), from: *from, array })
            }
            Lam::Concat(ts) => {
                let arrays = ts.iter().map(|t| self.data(t)).collect::<Lowered<Vec<_>>>()?;
                let width = arrays.first().map_or(0, |a| a.len());
                (0..width)
                    .map(|leaf| self.b.emit(Exp::Concat(arrays.iter().map(|a| a[leaf]).collect()), "xs"))
                    .collect()
            }
            Lam::Reverse(a) => {
                let a = self.data(a)?;
                let size = a.first().and_then(|&a| self.known_size(a));
                let xs = self.each(&a, "xs", Exp::Reverse);
                self.sized(xs, size)
            }
            Lam::Rotate(k, a) => {
                let k = self.atom(k)?;
                let a = self.data(a)?;
                let size = a.first().and_then(|&a| self.known_size(a));
                let xs = self.each(&a, "xs", |a| Exp::Rotate(a, k));
                self.sized(xs, size)
            }
            Lam::Zip(ts) => self.zip(ts, true)?,
            Lam::Unzip(a) => self.unzip(a)?,
            _ => return self.bug(span, "not an array operation"),
        })
    }

    /// The leaves of the zipped array; optionally checks that the sizes agree.
    fn zip(&mut self, ts: &[Term], check: bool) -> Lowered<Vec<Atom>> {
        let mut leaves = Vec::new();
        let mut units = Vec::new();
        let mut size: Option<Atom> = None;
        for t in ts {
            let array = self.data(t)?;
            if check && ts.len() > 1 {
                let n = self.outer_size(&array, t.span())?;
                match size {
                    Some(first) => self.same_size(first, n, "zip of arrays of different sizes".into()),
                    None => size = Some(n),
                }
            }
            let element = self.element_type(t)?;
            let empty = self.leaf_count(element, t.span())? == 0;
            if empty { units.extend_from_slice(&array) } else { leaves.extend_from_slice(&array) }
        }
        if leaves.is_empty() {
            units.truncate(1);
            return Ok(units);
        }
        Ok(leaves)
    }

    fn unzip(&mut self, a: &Term) -> Lowered<Vec<Atom>> {
        let array = self.data(a)?;
        let items = self.element_type(a)?.items().unwrap_or(&[]);
        let mut out = Vec::new();
        let mut next = array.iter().copied();
        for t in items {
            let n = self.leaf_count(t, a.span())?;
            if n > 0 {
                out.extend(next.by_ref().take(n));
            } else {
                // Units keep the size of the array they come from.
                let size = self.outer_size(&array, a.span())?;
                let unit = self.b.emit(Exp::Tuple(Vec::new()), "u");
                out.push(self.b.emit(Exp::Replicate(vec![size], unit), "us"));
            }
        }
        Ok(out)
    }

    /// The leaves of an array operand of a SOAC, which checks the sizes itself.
    pub(super) fn array_operand(&mut self, t: &Term) -> Lowered<Rc<[Atom]>> {
        match t.exp() {
            Lam::Zip(ts) => Ok(self.zip(ts, false)?.into()),
            _ => self.data(t),
        }
    }
    /// The lambda of an operator on elements of this type.
    fn operator(&mut self, op: &Term, ty: &Type) -> Lowered<core::Lam> {
        let span = op.span();
        let f = self.term(op)?;
        let params = vec![self.param(ty, true, span)?, self.param(ty, true, span)?];
        self.element_operand(&f, params, ty, span)
    }
    fn element_operand(
        &mut self,
        f: &Val,
        params: Vec<Param>,
        result: &Type,
        span: Option<Span>,
    ) -> Lowered<core::Lam> {
        self.operand(f, params, span, |l, value| {
            let atoms = l.coerced(result, value, span)?;
            Ok(l.as_element(&atoms))
        })
    }

    pub(super) fn soac(&mut self, soac: &Soac, t: &Term) -> Lowered<Vec<Atom>> {
        let span = t.span();
        let exp = match soac {
            Soac::Map { f, arrays } => {
                let f = self.term(f)?;
                let mut leaves = Vec::new();
                let mut params = Vec::new();
                for a in arrays {
                    leaves.extend_from_slice(&self.array_operand(a)?);
                    params.push(self.param(self.element_type(a)?, true, a.span())?);
                }
                let width = self.outer_size(&leaves, span)?;
                let result = self.element_type(t)?;
                let lam = self.element_operand(&f, params, result, span)?;
                core::Soac::Map { width, lam, arrays: leaves }
            }
            Soac::Reduce { op, neutral, array, commutative } => {
                let lam = self.operator(op, neutral.ty())?;
                let first = self.data(neutral)?;
                let neutral_atoms = self.as_element(&first);
                let arrays = self.array_operand(array)?.to_vec();
                let width = self.outer_size(&arrays, span)?;
                let commutative = *commutative;
                let exp = core::Soac::Reduce { width, lam, neutral: neutral_atoms, arrays, commutative };
                let results = self.emit_all(Exp::Soac(exp), "r");
                return self.without_unit(neutral.ty(), results, span);
            }
            Soac::Scan { op, neutral, array } => {
                let lam = self.operator(op, neutral.ty())?;
                let neutral = self.data(neutral)?;
                let neutral = self.as_element(&neutral);
                let arrays = self.array_operand(array)?.to_vec();
                let width = self.outer_size(&arrays, span)?;
                core::Soac::Scan { width, lam, neutral, arrays }
            }
            Soac::Hist { op, neutral, dst, indices, values } => {
                let lam = self.operator(op, neutral.ty())?;
                let neutral = self.data(neutral)?;
                let neutral = self.as_element(&neutral);
                let dst = self.data(dst)?.to_vec();
                let indices = self.atom(indices)?;
                let values = self.array_operand(values)?.to_vec();
                let width = self.b.size(indices, 0);
                core::Soac::Hist { width, lam, neutral, dst, indices, values }
            }
            Soac::Scatter { dst, indices, values } => {
                let dst = self.data(dst)?;
                let indices = self.atom(indices)?;
                let values = self.array_operand(values)?;
                let width = self.b.size(indices, 0);
                return Ok(dst
                    .iter()
                    .zip(values.iter())
                    .map(|(&dst, &values)| {
                        self.b.emit(Exp::Soac(core::Soac::Scatter { width, dst, indices, values }), "xs")
                    })
                    .collect());
            }
        };
        let size = match &exp {
            core::Soac::Map { width, .. } | core::Soac::Scan { width, .. } => Some(*width),
            core::Soac::Hist { dst, .. } => dst.first().and_then(|&a| self.known_size(a)),
            core::Soac::Reduce { .. } | core::Soac::Fused { .. } | core::Soac::Scatter { .. } => None,
        };
        let results = self.emit_all(Exp::Soac(exp), "ys");
        Ok(self.sized(results, size))
    }
}

/// Literals of rows with at least so many numbers are one array of numbers. Smaller ones stay: later passes see their elements.
const LARGE: usize = 256;

/// The shape and the numbers of a large literal of two dimensions or more that has constants only: rows one by one would be as many arrays.
fn large_table(t: &Term) -> Option<(Vec<usize>, Vec<ScalarValue>)> {
    let Lam::ArrayLit(Type::Array(_), _) = t.exp() else { return None };
    let mut numbers = Vec::new();
    let shape = shape_of_constants(t, &mut numbers)?;
    (numbers.len() >= LARGE).then_some((shape, numbers))
}

/// The shape of a literal of constants, which are appended; none of anything else, or if rows differ.
fn shape_of_constants(t: &Term, numbers: &mut Vec<ScalarValue>) -> Option<Vec<usize>> {
    match t.exp() {
        Lam::Const(c) => {
            numbers.push(*c);
            Some(Vec::new())
        }
        Lam::ArrayLit(_, items) => {
            let mut shape = None;
            for item in items {
                let row = shape_of_constants(item, numbers)?;
                if shape.get_or_insert_with(|| row.clone()) != &row {
                    return None;
                }
            }
            let mut shape = shape?;
            shape.insert(0, items.len());
            Some(shape)
        }
        _ => None,
    }
}

fn atoms(numbers: &[ScalarValue]) -> Vec<Atom> {
    numbers.iter().map(|c| Atom::Const(*c)).collect()
}
