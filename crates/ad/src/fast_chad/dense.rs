//! Dense representations and accumulators: where sparsity ends.
//!
//! Source: T. Smeding, PhD thesis, sections 7.2 (accumulators, `accum` fused with `onehot`) and 7.5.1.1 (selective
//! accumulation). Zeros take their shapes from sizes computed in the forward part. An existing dense contribution is
//! the initial value of the accumulator that takes over.

use super::cotangent::{Cotangent, coerce, pack, split};
use super::desc::{Desc, as_hot};
use super::reverse::{Env, Reverse};
use crate::contract::Unsupported;
use pullback_base::index::IdSet;
use pullback_core::{Atom, Exp, Lam, Soac, Type, Var};
use std::rc::Rc;

/// Whose shape a zero has: a component of a variable without its first dimensions.
#[derive(Clone)]
pub(crate) struct Place {
    of: Atom,
    path: Vec<usize>,
    skip: usize,
}

impl Place {
    pub(crate) fn new(of: Atom) -> Place {
        Place { of, path: Vec::new(), skip: 0 }
    }
    pub(crate) fn component(&self, i: usize) -> Place {
        let mut place = self.clone();
        place.path.push(i);
        place
    }
    fn element(&self) -> Place {
        Place { skip: self.skip + 1, ..self.clone() }
    }
}

impl<'p> Reverse<'p> {
    /// The cotangent of `x` in the stored representation of its type.
    pub(crate) fn dense_of(&mut self, x: Atom, c: &Cotangent) -> Cotangent {
        let ty = self.b.ty(x);
        let atoms = self.dense(&ty, c, &Place::new(x));
        Cotangent::new(self.stored(&ty), atoms)
    }

    /// A cotangent in the stored representation of a type. Cost: the size of the arrays that are not there yet.
    pub(crate) fn dense(&mut self, ty: &Type, c: &Cotangent, place: &Place) -> Vec<Atom> {
        let to = self.stored(ty);
        if c.desc == to {
            return c.atoms.clone();
        }
        match ty {
            Type::Tuple(items) if !to.is_absent() => {
                let parts = c.components(items.len());
                let parts = items.iter().zip(parts).enumerate();
                parts.flat_map(|(i, (t, part))| self.dense(t, &part, &place.component(i))).collect()
            }
            Type::Array(item) => match &to {
                Desc::Array(_) => self.dense_array(ty, item, &to, c, place),
                _ => Vec::new(),
            },
            Type::Scalar(_) | Type::Tuple(_) | Type::Sum(_) | Type::Named(_) | Type::Acc(_) => {
                coerce(&mut self.b, c, &to)
            }
        }
    }

    fn dense_array(&mut self, ty: &Type, item: &Type, to: &Desc, c: &Cotangent, place: &Place) -> Vec<Atom> {
        match &c.desc {
            Desc::Array(row) => {
                let width = self.b.size(c.atoms[0], 0);
                let types: Vec<Type> = row.types();
                let params: Vec<Var> = types.iter().map(|t| self.b.fresh(t.clone(), "row")).collect();
                self.b.open();
                let row = Cotangent::new((**row).clone(), params.iter().map(|&v| v.into()).collect());
                let atoms = self.dense(item, &row, &place.element());
                let body = self.b.close(atoms);
                let lam = Lam { params, body };
                let map = Exp::Soac(Soac::Map { width, lam, arrays: c.atoms.clone() });
                let atoms: Vec<Atom> = self.b.emit_all(map, "x_bar").into_iter().map(Atom::Var).collect();
                self.reshaped(atoms, ty, place)
            }
            Desc::Maybe(inner) => {
                let inner = (**inner).clone();
                self.b.open();
                let zeros = self.zeros(ty, place);
                let none = self.b.close(zeros);
                let params: Vec<Var> = inner.types().into_iter().map(|t| self.b.fresh(t, "x_bar")).collect();
                self.b.open();
                let there = Cotangent::new(inner, params.iter().map(|&v| v.into()).collect());
                let atoms = self.dense(ty, &there, place);
                let some = self.b.close(atoms);
                let arms = vec![Lam { params: vec![], body: none }, Lam { params, body: some }];
                let out = self.b.emit_all(Exp::Match(c.atoms[0], arms), "x_bar");
                out.into_iter().map(Atom::Var).collect()
            }
            Desc::Hot { .. } => {
                let Some(parts) = c.hot_parts() else { return Vec::new() };
                let base = self.dense(ty, &parts.dense, place);
                let entries =
                    Cotangent::new(
                        Desc::Hot { dense: Box::new(Desc::Absent), entries: as_hot(&c.desc).1 },
                        std::iter::once(parts.len)
                            .chain(parts.entries.iter().flat_map(|e| {
                                std::iter::once(e.index).chain(e.payload.atoms.iter().copied())
                            }))
                            .collect(),
                    );
                self.add_into(base, to, &entries)
            }
            Desc::Absent | Desc::Real(_) | Desc::Product(_) | Desc::Choice(_) | Desc::Tree(_) => {
                self.zeros(ty, place)
            }
        }
    }

    /// Adds to dense arrays through accumulators: in place where they are owned.
    pub(crate) fn add_into(&mut self, base: Vec<Atom>, desc: &Desc, c: &Cotangent) -> Vec<Atom> {
        let types: Vec<Type> = base.iter().map(|&a| Type::acc(self.b.ty(a))).collect();
        let accs: Vec<Var> = types.into_iter().map(|t| self.b.fresh(t, "acc")).collect();
        self.b.open();
        let handles: Vec<Atom> = accs.iter().map(|&v| v.into()).collect();
        self.accumulate(&handles, desc, &[], c);
        let body = self.b.close(Vec::new());
        let out = self.b.emit_all(Exp::WithAcc(base, Lam { params: accs, body }), "x_bar");
        out.into_iter().map(Atom::Var).collect()
    }

    /// A dense cotangent made by a map, with the shape of `a`: a map over nothing does not know the inner sizes.
    pub(crate) fn with_shape(&mut self, a: Atom, c: Cotangent) -> Cotangent {
        let ty = self.b.ty(a);
        if c.desc != self.stored(&ty) || !self.is_active(a) {
            return c;
        }
        let atoms = self.reshaped(c.atoms, &ty, &Place::new(a));
        Cotangent::new(c.desc, atoms)
    }
    fn reshaped(&mut self, atoms: Vec<Atom>, ty: &Type, place: &Place) -> Vec<Atom> {
        let rank = ty.rank();
        if rank < 2 {
            return atoms;
        }
        let shape: Vec<Atom> = (0..rank).map(|d| self.size(place.of, &place.path, place.skip + d)).collect();
        let reshape =
            |&array: &Atom| self.b.emit(Exp::Reshape { shape: shape.clone(), from: rank, array }, "x_bar");
        atoms.iter().map(reshape).collect()
    }

    /// The zero of an array type.
    fn zeros(&mut self, ty: &Type, place: &Place) -> Vec<Atom> {
        let rank = ty.rank();
        let desc = self.stored(ty.base());
        let shape: Vec<Atom> = (0..rank).map(|d| self.size(place.of, &place.path, place.skip + d)).collect();
        let zeros = super::cotangent::zero(&mut self.b, &desc);
        zeros.into_iter().map(|z| self.b.emit(Exp::Replicate(shape.clone(), z), "zeros")).collect()
    }

    /// The element of a dense array at these indices.
    pub(crate) fn element(&mut self, d: &Cotangent, ix: &[Atom]) -> Cotangent {
        let mut desc = &d.desc;
        for _ in ix {
            match desc.element() {
                Some(item) => desc = item,
                None => return Cotangent::absent(),
            }
        }
        let desc = desc.clone();
        let atoms = d.atoms.iter().map(|&a| self.b.index(a, ix)).collect();
        Cotangent::new(desc, atoms)
    }

    /// Adds a cotangent to accumulators for the stored representation `desc`, at leading indices `ix`.
    pub(crate) fn accumulate(&mut self, accs: &[Atom], desc: &Desc, ix: &[Atom], c: &Cotangent) {
        if c.is_absent() {
            return;
        }
        if let Desc::Product(items) = desc {
            let mut rest = accs;
            for (item, part) in items.iter().zip(c.components(items.len())) {
                let (mine, others) = rest.split_at(item.count());
                self.accumulate(mine, item, ix, &part);
                rest = others;
            }
            return;
        }
        if c.desc == *desc {
            for (&acc, &x) in accs.iter().zip(&c.atoms) {
                self.b.emit(Exp::AccAdd(acc, ix.to_vec(), x), "done");
            }
            return;
        }
        match (desc, &c.desc) {
            (Desc::Array(item), Desc::Hot { .. }) => {
                let Some(parts) = c.hot_parts() else { return };
                self.accumulate(accs, desc, ix, &parts.dense);
                for e in &parts.entries {
                    let at: Vec<Atom> = ix.iter().copied().chain([e.index]).collect();
                    self.accumulate(accs, item, &at, &e.payload);
                }
            }
            (Desc::Array(_), Desc::Maybe(inner)) => self.accumulate_option(accs, desc, ix, inner, c.atoms[0]),
            (Desc::Array(item), Desc::Array(row)) => {
                let width = self.b.size(c.atoms[0], 0);
                let is = self.b.emit(Exp::Iota(width), "is");
                let i = self.b.fresh(Type::I64, "i");
                let params: Vec<Var> = row.types().into_iter().map(|t| self.b.fresh(t, "row")).collect();
                self.b.open();
                let row = Cotangent::new((**row).clone(), params.iter().map(|&v| v.into()).collect());
                let at: Vec<Atom> = ix.iter().copied().chain([i.into()]).collect();
                self.accumulate(accs, item, &at, &row);
                let body = self.b.close(vec![Atom::bool(false)]);
                let lam = Lam { params: std::iter::once(i).chain(params).collect(), body };
                let arrays = std::iter::once(is).chain(c.atoms.iter().copied()).collect();
                self.b.emit_all(Exp::Soac(Soac::Map { width, lam, arrays }), "done");
            }
            _ => {
                let atoms = coerce(&mut self.b, c, desc);
                for (&acc, x) in accs.iter().zip(atoms) {
                    self.b.emit(Exp::AccAdd(acc, ix.to_vec(), x), "done");
                }
            }
        }
    }

    fn accumulate_option(&mut self, accs: &[Atom], desc: &Desc, ix: &[Atom], inner: &Desc, option: Atom) {
        self.b.open();
        let none = self.b.close(vec![Atom::bool(false)]);
        let params: Vec<Var> = inner.types().into_iter().map(|t| self.b.fresh(t, "x_bar")).collect();
        self.b.open();
        let there = Cotangent::new(inner.clone(), params.iter().map(|&v| v.into()).collect());
        self.accumulate(accs, desc, ix, &there);
        let some = self.b.close(vec![Atom::bool(false)]);
        let arms = vec![Lam { params: vec![], body: none }, Lam { params, body: some }];
        self.b.emit_all(Exp::Match(option, arms), "done");
    }

    /// Runs `f` with an accumulator open for each of `vs` (variables in `Gamma_M` so far), then gives their final
    /// values back as contributions. Returns what `f` returns, as seen from outside.
    pub(crate) fn with_accumulators(
        &mut self,
        env: &mut Env,
        vs: &[Var],
        f: impl FnOnce(&mut Self, &mut Env) -> Result<Vec<Atom>, Unsupported>,
    ) -> Result<Vec<Atom>, Unsupported> {
        if vs.is_empty() {
            let mut inner = Env { accs: env.accs.clone(), ..Env::default() };
            return f(self, &mut inner);
        }
        let (vs, names) = self.to_open(env, vs);
        let mut inits = Vec::new();
        let mut params = Vec::new();
        let mut descs = Vec::new();
        let mut accs = (*env.accs).clone();
        for &v in &vs {
            self.hand_on(env, v);
            let before = self.take(env, v);
            let init = self.dense_of(v.into(), &before);
            let mine: Vec<Var> =
                init.desc.types().into_iter().map(|t| self.b.fresh(Type::acc(t), "acc")).collect();
            accs.insert(v, mine.iter().map(|&a| a.into()).collect());
            params.extend(mine);
            inits.extend(init.atoms);
            descs.push(init.desc);
        }
        let mut inner = Env { accs: Rc::new(accs), ..Env::default() };
        if vs.is_empty() {
            self.derive_way(&names, &mut inner);
            return f(self, &mut inner);
        }
        self.b.open();
        self.derive_way(&names, &mut inner);
        let results = f(self, &mut inner)?;
        let body = self.b.close(results);
        let count = inits.len();
        let out = self.b.emit_all(Exp::WithAcc(inits, Lam { params, body }), "x_bar");
        let out: Vec<Atom> = out.into_iter().map(Atom::Var).collect();
        let (finals, rest) = out.split_at(count);
        for (&v, c) in vs.iter().zip(split(&descs, finals)) {
            self.contribute(env, v.into(), c);
        }
        Ok(rest.to_vec())
    }

    /// What to open for these variables, and the names that get their accumulators of that, each after what it stands for.
    fn to_open(&self, env: &Env, vs: &[Var]) -> (Vec<Var>, Vec<Var>) {
        let (mut open, mut names) = (Vec::new(), Vec::new());
        for &v in vs {
            let (leaves, way) = self.stands_for(env, v);
            open.extend(leaves);
            names.extend(way);
        }
        let (mut opened, mut named) = (IdSet::new(), IdSet::new());
        open.retain(|v| opened.insert(*v));
        names.retain(|v| named.insert(*v));
        (open, names)
    }

    /// A cotangent as a value of the type that the contract says; `x` is the primal value.
    pub fn value(&mut self, ty: &Type, c: &Cotangent, x: Atom) -> Atom {
        let full = self.full(ty);
        if c.desc == full {
            return pack(&mut self.b, c);
        }
        let stored = self.dense(ty, c, &Place::new(x));
        let stored = Cotangent::new(self.stored(ty), stored);
        self.fill(ty, &stored, x)
    }

    /// From the stored representation to the full value: options below sums become arrays.
    fn fill(&mut self, ty: &Type, c: &Cotangent, x: Atom) -> Atom {
        let full = self.full(ty);
        if c.desc == full {
            return pack(&mut self.b, c);
        }
        match ty {
            Type::Tuple(items) => {
                let parts = c.components(items.len());
                let mut values = Vec::new();
                for (i, (t, part)) in items.iter().zip(parts).enumerate() {
                    let primal = self.b.emit(Exp::Proj(x, i), "part");
                    values.push(self.fill(t, &part, primal));
                }
                self.b.emit(Exp::Tuple(values), "x_bar")
            }
            Type::Array(item) => self.fill_array(ty, item, &full, c, x),
            Type::Sum(_) | Type::Named(_) => self.fill_sum(ty, &full, c, x),
            Type::Scalar(_) | Type::Acc(_) => {
                let atoms = coerce(&mut self.b, c, &full);
                pack(&mut self.b, &Cotangent::new(full, atoms))
            }
        }
    }

    fn fill_array(&mut self, ty: &Type, item: &Type, full: &Desc, c: &Cotangent, x: Atom) -> Atom {
        match &c.desc {
            Desc::Array(row) => {
                let width = self.b.size(x, 0);
                let primal = self.b.fresh(item.clone(), "x");
                let params: Vec<Var> = row.types().into_iter().map(|t| self.b.fresh(t, "row")).collect();
                self.b.open();
                let row = Cotangent::new((**row).clone(), params.iter().map(|&v| v.into()).collect());
                let value = self.fill(item, &row, primal.into());
                let body = self.b.close(vec![value]);
                let lam = Lam { params: std::iter::once(primal).chain(params).collect(), body };
                let arrays = std::iter::once(x).chain(c.atoms.iter().copied()).collect();
                self.b.emit_all(Exp::Soac(Soac::Map { width, lam, arrays }), "x_bar")[0].into()
            }
            Desc::Maybe(inner) => {
                let inner = (**inner).clone();
                self.b.open();
                let zero = crate::tangent::zero_like(&mut self.b, x);
                let none = self.b.close(zero.into_iter().collect());
                let params: Vec<Var> = inner.types().into_iter().map(|t| self.b.fresh(t, "x_bar")).collect();
                self.b.open();
                let there = Cotangent::new(inner, params.iter().map(|&v| v.into()).collect());
                let value = self.fill(ty, &there, x);
                let some = self.b.close(vec![value]);
                let arms = vec![Lam { params: vec![], body: none }, Lam { params, body: some }];
                self.b.emit_all(Exp::Match(c.atoms[0], arms), "x_bar")[0].into()
            }
            Desc::Absent
            | Desc::Real(_)
            | Desc::Product(_)
            | Desc::Choice(_)
            | Desc::Tree(_)
            | Desc::Hot { .. } => {
                let atoms = coerce(&mut self.b, c, full);
                pack(&mut self.b, &Cotangent::new(full.clone(), atoms))
            }
        }
    }

    fn fill_sum(&mut self, ty: &Type, full: &Desc, c: &Cotangent, x: Atom) -> Atom {
        let Desc::Choice(alternatives) = &c.desc else {
            let atoms = super::cotangent::zero(&mut self.b, full);
            return pack(&mut self.b, &Cotangent::new(full.clone(), atoms));
        };
        let result = full.value_type();
        let variants = self.b.program.variants(ty).unwrap_or_default().to_vec();
        let mut arms = Vec::new();
        for (k, alternative) in std::iter::once(None).chain(alternatives.iter().map(Some)).enumerate() {
            let bars: Vec<Var> = alternative
                .iter()
                .flat_map(|a| &a.fields)
                .map(Desc::value_type)
                .map(|t| self.b.fresh(t, "x_bar"))
                .collect();
            self.b.open();
            let mut value = self.b.emit(Exp::Inject(result.clone(), 0, Vec::new()), "zero");
            if let Some(alternative) = alternative {
                let primal = Lam { params: Vec::new(), body: Default::default() };
                let mut inner = vec![primal; variants.len()];
                for (j, variant) in variants.iter().enumerate() {
                    let fields: Vec<Var> =
                        variant.fields.iter().map(|t| self.b.fresh(t.clone(), "x")).collect();
                    self.b.open();
                    let mut out = value;
                    if j + 1 == k {
                        let mut values = Vec::new();
                        for (i, t) in variant.fields.iter().enumerate() {
                            let part =
                                super::cotangent::unpack(&mut self.b, &alternative.fields[i], bars[i].into());
                            values.push(self.fill(t, &part, fields[i].into()));
                        }
                        out = self.b.emit(Exp::Inject(result.clone(), k, values), "x_bar");
                    }
                    let body = self.b.close(vec![out]);
                    inner[j] = Lam { params: fields, body };
                }
                value = self.b.emit_all(Exp::Match(x, inner), "x_bar")[0].into();
            }
            let body = self.b.close(vec![value]);
            arms.push(Lam { params: bars, body });
        }
        self.b.emit_all(Exp::Match(c.atoms[0], arms), "x_bar")[0].into()
    }
}
