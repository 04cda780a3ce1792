//! Maps, reductions and scans of core in the language.
//!
//! Rules, inside of a nest:
//! ```text
//! map            its body with one more counter; its scalars are arrays over the axes, and so are its arrays
//! reduce (+) 0   sum a                                       a: the array over the axes and the elements
//! reduce         foldl f e a;   by an operator that reads what changes between iterations, as a loop (`loops`)
//! reduce, of rows by an operator on elements                 the same of the elements, with the dimensions of a row before
//! scan           scanl1 f a;    or as a loop
//! scan, of rows by an operator on elements                       the same of the elements, turned
//! hist, scatter  `permutes`
//! ```

use super::forms::Result;
use super::nests::variables;
use super::sizes::Size;
use super::{FromCore, Nest, Part, arr};
use crate::accelerate::language::{AVar, Arr, ArrForm, EVar, Exp, ExpForm, Fun, Ty, made};
use crate::accelerate::zeros::{is_zero, map_projection};
use pullback_core::{Atom, Exp as Core, Lam, Soac, Stm, Var};
use pullback_prim::{Op, Prim};
use std::collections::BTreeSet;

impl FromCore<'_> {
    pub(super) fn soac(&mut self, stm: &Stm, soac: &Soac) -> Result<Vec<Part>> {
        match soac {
            // [accelerate.map]
            Soac::Map { width, lam, arrays } => {
                let n = self.width(*width)?;
                let arrays = self.each_part(arrays)?;
                self.map(stm, n, lam, &arrays)
            }
            // [accelerate.reduce]
            Soac::Reduce { width, lam, neutral, arrays, commutative: _ } => {
                let n = self.width(*width)?;
                let arrays = self.each_part(arrays)?;
                self.reduce(stm, (n, lam), neutral, &arrays)
            }
            // [accelerate.scan]
            Soac::Scan { width, lam, neutral, arrays } => {
                let n = self.width(*width)?;
                let arrays = self.each_part(arrays)?;
                self.scan(stm, (n, lam), neutral, &arrays)
            }
            Soac::Fused { .. } => self.refuse("a fused operation in a called function"),
            Soac::Hist { width, lam, neutral: _, dst, indices, values } => {
                let n = self.width(*width)?;
                self.histogram(stm, (n, lam), (dst, *indices, values))
            }
            Soac::Scatter { width, dst, indices, values } => {
                let n = self.width(*width)?;
                self.scatter(stm, n, (*dst, *indices, *values))
            }
        }
    }

    fn map(&mut self, stm: &Stm, n: Size, lam: &Lam, arrays: &[Part]) -> Result<Vec<Part>> {
        let found = self.inside(&[n], |this, i| {
            for (p, a) in lam.params.iter().zip(arrays) {
                let part = this.at(a, i.to_vec())?;
                this.parts.insert(*p, part);
            }
            let parts = this.body(&lam.body)?;
            let mut scalars = Vec::new();
            for part in &parts {
                if let Part::Scalar(e, level) = part {
                    scalars.push(this.carried(e, *level)?);
                }
            }
            let name = this.program.vars[stm.pat[0]].hint.clone();
            let count = scalars.len();
            let of_scalars = match count {
                0 => Vec::new(),
                _ => {
                    let all = this.over_axes(name.as_str(), &Exp::packed(scalars))?;
                    this.components(all, count)
                }
            };
            let mut of_scalars = of_scalars.into_iter();
            let mut found: Vec<Option<AVar>> = Vec::new();
            for (part, v) in parts.iter().zip(&stm.pat) {
                found.push(match part {
                    Part::Scalar(..) => of_scalars.next(),
                    Part::Array(view) => Some(this.owned(view)?),
                    Part::Iota => {
                        let dims = this.dims_of(*v)?;
                        let view = this.array_of(&dims[1..], "is", |_, j| Ok(j[0].clone()))?;
                        Some(view.array)
                    }
                    Part::Tuple(_) => return this.refuse("a product, as a whole"),
                });
            }
            Ok(found)
        })?;
        Ok(found.into_iter().flatten().map(|a| Part::Array(self.own(a))).collect())
    }

    /// Each component of an array of tuples; of one component, the array itself.
    pub(super) fn components(&mut self, a: AVar, n: usize) -> Vec<AVar> {
        if n == 1 {
            return vec![a];
        }
        let dims = self.dims[&a].clone();
        (0..n)
            .map(|k| {
                let u = map_projection(&mut self.names, k, Arr::var(&a));
                self.let_(a.name(), u, dims.clone())
            })
            .collect()
    }

    /// The elements of several arrays over the axes, the dimensions of a row, and then the elements.
    fn rows(&mut self, n: Size, row: &[Size], arrays: &[Part]) -> Result<AVar> {
        if let ([], [Part::Array(view)]) = (row, arrays) {
            return self.owned(view);
        }
        let dims = [row, &[n]].concat();
        let view = self.array_of(&dims, "rows", |this, j| {
            let Some((i, inner)) = j.split_last() else { return this.refuse("rows without elements") };
            let at = [std::slice::from_ref(i), inner].concat();
            let es = arrays.iter().map(|a| this.element_of(a, &at)).collect::<Result<Vec<Exp>>>()?;
            Ok(Exp::packed(es))
        })?;
        Ok(view.array)
    }

    fn reduce(
        &mut self,
        stm: &Stm,
        (n, lam): (Size, &Lam),
        neutral: &[Atom],
        arrays: &[Part],
    ) -> Result<Vec<Part>> {
        let rank = |v: &Var| self.program.vars[*v].ty.rank();
        let row = match &stm.pat[..] {
            vs if vs.iter().all(|v| rank(v) == 0) => Vec::new(),
            [v] => self.dims_of(*v)?,
            _ => return self.refuse("a reduction of several arrays of arrays"),
        };
        let Some(lam) = on_elements(lam, row.len()) else {
            return self.refuse("a reduction of arrays whose operator is not one on their elements");
        };
        let rows = self.rows(n.clone(), &row, arrays)?;
        let (first, f) = match (self.neutral(neutral)?, self.operator(lam, &rows)?) {
            (Some(first), Some(f)) => (first, f),
            _ if row.is_empty() => return self.folded(n, lam, (neutral, arrays)),
            _ => {
                return self
                    .refuse("a reduction of arrays whose operator reads what changes between iterations");
            }
        };
        let u = match is_sum(&f) && is_zero(&first) && matches!(first.form(), ExpForm::Const(_)) {
            true => ArrForm::Sum(Arr::var(&rows)),
            false => ArrForm::Foldl(f, first, Arr::var(&rows)),
        };
        let mut dims = self.dims[&rows].clone();
        dims.pop();
        let all = self.let_("reduced", arr(u), dims);
        let results = self.components(all, arrays.len());
        let part = |a: AVar| match row.is_empty() {
            false => Part::Array(self.own(a)),
            true => {
                let e = made(Exp::index(&a, Exp::tuple(self.counters(self.top()))));
                Part::Scalar(e, self.top())
            }
        };
        Ok(results.into_iter().map(part).collect())
    }

    fn scan(
        &mut self,
        stm: &Stm,
        (n, lam): (Size, &Lam),
        neutral: &[Atom],
        arrays: &[Part],
    ) -> Result<Vec<Part>> {
        let row = match &stm.pat[..] {
            vs if vs.iter().all(|v| self.program.vars[*v].ty.rank() == 1) => Vec::new(),
            [v] => self.dims_of(*v)?.split_off(1),
            _ => return self.refuse("a scan of several arrays of arrays"),
        };
        let Some(lam) = on_elements(lam, row.len()) else {
            return self.refuse("a scan of arrays whose operator is not one on their elements");
        };
        let rows = self.rows(n.clone(), &row, arrays)?;
        let Some(f) = self.operator(lam, &rows)? else {
            return match row.is_empty() {
                true => self.prefixes(n, lam, (neutral, arrays)),
                false => self.refuse("a scan of arrays whose operator reads what changes between iterations"),
            };
        };
        let dims = self.dims[&rows].clone();
        let all = self.let_("scan", arr(ArrForm::Scanl1(f, Arr::var(&rows))), dims);
        if row.is_empty() {
            return Ok(self
                .components(all, arrays.len())
                .into_iter()
                .map(|a| Part::Array(self.own(a)))
                .collect());
        }
        let (all, dims) = (self.own(all), [&[n], &row[..]].concat());
        let turned = self.array_of(&dims, "scan", |this, j| {
            let at = [&j[1..], &j[..1]].concat();
            this.element(&all, &at)
        })?;
        Ok(vec![Part::Array(turned)])
    }

    /// The first value of a fold, if it reads nothing of the nest.
    fn neutral(&mut self, neutral: &[Atom]) -> Result<Option<Exp>> {
        let mut es = Vec::new();
        for a in neutral {
            es.push(match self.part(*a)? {
                Part::Scalar(e, level) => self.carried(&e, level)?,
                // All elements of a neutral row are alike, or the operator would be another one at each place.
                Part::Array(_) => match a.var().and_then(|v| self.constants.get(&v)) {
                    Some(c) => Exp::constant(*c),
                    None => {
                        return self
                            .refuse("a reduction of arrays whose neutral element is not one constant");
                    }
                },
                Part::Iota | Part::Tuple(_) => return self.refuse("a product, as a whole"),
            });
        }
        let first = Exp::packed(es);
        Ok(reads_only(None, &first).then_some(first))
    }

    /// An operator on elements, if it reads nothing of the nest.
    pub(super) fn operator(&mut self, lam: &Lam, rows: &AVar) -> Result<Option<Fun>> {
        let elem = made(rows.ty().array()).0.clone();
        let pair = Ty::Tuple(vec![elem.clone(), elem]);
        let param = self.names.fresh("p", pair);
        let (left, right) = lam.params.split_at(lam.params.len() / 2);
        let p = Exp::var(&param);
        // The operator stands where we are, with the operands as variables of it.
        let axes = self.nests[self.top()].axes.clone();
        let before = self.nests.len();
        self.nests.push(Nest { axes, frames: vec![Vec::new()], ..Nest::default() });
        for (side, params) in [left, right].into_iter().enumerate() {
            for (k, x) in params.iter().enumerate() {
                let operand = if params.len() == 1 { p.proj(side) } else { p.proj(side).proj(k) };
                let operand = self.bind("x", operand);
                self.parts.insert(*x, Part::Scalar(operand, before));
            }
        }
        let parts = self.body(&lam.body).and_then(|parts| {
            let scalar = |p: &Part| match p {
                Part::Scalar(e, level) => self.carried(e, *level),
                _ => self.refuse("an operator that gives an array"),
            };
            parts.iter().map(scalar).collect::<Result<Vec<Exp>>>()
        });
        let frame = self.nests.pop().and_then(|mut n| n.frames.pop()).unwrap_or_default();
        let body = made(Exp::lets(frame, Exp::packed(parts?)));
        Ok(reads_only(Some(&param), &body).then_some(Fun { param, body }))
    }
}

/// Whether an expression has no free variable but this one.
fn reads_only(x: Option<&EVar>, e: &Exp) -> bool {
    let mut found = BTreeSet::new();
    variables(e, &mut found);
    found.iter().all(|y| Some(y) == x)
}

/// The operator on elements that an operator on arrays of this rank maps.
pub(super) fn on_elements(lam: &Lam, rank: usize) -> Option<&Lam> {
    if rank == 0 {
        return Some(lam);
    }
    let maps: Vec<&Stm> = lam
        .body
        .stms
        .iter()
        .filter(|s| !matches!(s.exp, Core::Size(..) | Core::Assert(..) | Core::Prim(..) | Core::Check(..)))
        .collect();
    let [Stm { pat, exp: Core::Soac(Soac::Map { lam: inner, arrays, .. }) }] = &maps[..] else { return None };
    let params: Vec<Atom> = lam.params.iter().map(|p: &Var| Atom::from(*p)).collect();
    let is_it = *arrays == params && pat.len() == 1 && lam.body.result == [Atom::from(pat[0])];
    if is_it { on_elements(inner, rank - 1) } else { None }
}

/// Whether it is addition.
fn is_sum(f: &Fun) -> bool {
    let mut e = &f.body;
    let mut operands = Vec::new();
    if let ExpForm::Let(bindings, body) = e.form() {
        e = body;
        for (x, u) in bindings {
            match u.form() {
                ExpForm::Proj(p, k) if matches!(p.form(), ExpForm::Var(p) if *p == f.param) => {
                    operands.push((x, *k));
                }
                ExpForm::Prim(..) if matches!(e.form(), ExpForm::Var(y) if y == x) => e = u,
                _ => return false,
            }
        }
    }
    let ExpForm::Prim(Prim::Op(Op::Add, _), args) = e.form() else { return false };
    let side = |e: &Exp| match e.form() {
        ExpForm::Var(x) => operands.iter().find(|(y, _)| *y == x).map(|(_, k)| *k),
        _ => None,
    };
    matches!((side(&args[0]), side(&args[1])), (Some(0), Some(1)) | (Some(1), Some(0)))
}
