//! Arrays: SOACs, in-place updates, shape operations.

use super::shape::{Dim, Shaped};
use super::{Entry, Generator, LIMIT, Val};
use pullback_core::{Atom, Builder, Exp, Loop, LoopAttrs, LoopForm, SliceDim, Soac, Type};
use pullback_prim::Op;

impl Generator<'_> {
    /// An array of size `d` by an operation.
    pub(crate) fn array(&mut self, b: &mut Builder<'_>, d: Dim, element: &Shaped) -> Val {
        if element.has_floats() {
            self.array_of(b, d, element)
        } else {
            self.discretely(|g| g.array_of(b, d, element))
        }
    }

    fn array_of(&mut self, b: &mut Builder<'_>, d: Dim, element: &Shaped) -> Val {
        let w = &self.config.array_weights;
        let deep = self.nesting >= self.config.nesting;
        let soac = |weight: f64| if deep { 0.0 } else { weight };
        let float = |weight: f64| if element.base().is_some_and(|s| s.is_float()) { weight } else { 0.0 };
        let weights = [
            soac(w.map),
            float(soac(w.scan)),
            float(w.hist),
            w.scatter,
            w.update,
            w.update_slice,
            w.concat,
            w.reverse,
            w.rotate,
            w.rearrange * f64::from(u8::from(element.rank() > 0)),
            w.reshape,
            w.gather,
            w.slice,
            w.index,
            w.replicate,
            w.literal,
            float(w.with_acc),
            soac(w.collect),
            float(soac(w.scan * 0.3 * element.rank() as f64)),
            soac(w.windows),
        ];
        let shape = Shaped::array(d, element.clone());
        let base = element.base();
        let out = match (self.rng.weighted(&weights), base) {
            (0, _) => Some(self.map(b, d, element)),
            (1, Some(s)) if s.is_float() => Some(match element.rank() {
                0 => self.scan(b, d, s),
                _ => self.row_scan(b, d, element, s),
            }),
            (2, Some(s)) if s.is_float() => Some(self.hist(b, d, element, s)),
            (3, _) => Some(self.scatter(b, d, element)),
            (4, _) => self.update(b, &shape, d),
            (5, _) => self.update_slice(b, &shape, d, element),
            (6, _) => self.concat(b, d, element),
            (7, _) => {
                let v = self.value(b, &shape);
                self.features.shape_operations += 1;
                Some(Val { atom: b.emit(Exp::Reverse(v.atom), "rev"), bound: v.bound })
            }
            (8, _) => {
                let v = self.value(b, &shape);
                let k = self.value(b, &Shaped::I64);
                self.features.shape_operations += 1;
                Some(Val { atom: b.emit(Exp::Rotate(v.atom, k.atom), "rot"), bound: v.bound })
            }
            (9, _) => Some(self.rearrange(b, &shape)),
            (10, _) => self.reshape(b, &shape, d, element),
            (11, _) => self.gather(b, d, element),
            (12, _) => Some(self.slice(b, d, element)),
            (13, _) => Some(self.sub_array(b, &shape)),
            (14, _) => Some(self.replicate(b, d, element)),
            (15, _) => self.literal(b, d, element),
            (16, Some(s)) if s.is_float() => self.with_acc(b, &shape, d, element),
            (17, _) => Some(self.collect(b, d, element)),
            (18, Some(s)) if s.is_float() => Some(self.row_reduce(b, &shape, s)),
            (19, _) => Some(self.windows(b, d, element)),
            _ => None,
        };
        match out {
            Some(v) => v,
            None if !deep => self.map(b, d, element),
            None => self.leaf(b, &shape),
        }
    }

    /// Arrays (of any element) with this outer size: from the scope, generated, or `iota`.
    fn operands(&mut self, b: &mut Builder<'_>, d: Dim, count: usize) -> Vec<(Atom, Shaped, f64)> {
        let mut out = Vec::new();
        for _ in 0..count {
            let fitting: Vec<usize> = (0..self.scope.len())
                .rev()
                .filter(|&k| matches!(&self.scope[k].shape, Shaped::Array(e, _) if *e == d))
                .take(3)
                .collect();
            if !fitting.is_empty() && self.rng.chance(0.8) {
                let k = *self.rng.choose(&fitting);
                self.scope[k].used = true;
                if let Entry { atom, shape: Shaped::Array(_, element), bound, .. } = &self.scope[k] {
                    out.push((*atom, Shaped::clone(element), *bound));
                }
            } else if self.rng.chance(0.3) {
                let n = self.dim(b, d);
                out.push((b.emit(Exp::Iota(n), "is"), Shaped::I64, 0.0));
            } else {
                let element = if self.rng.chance(0.2) {
                    Shaped::array(self.random_dim(), Shaped::F64)
                } else {
                    Shaped::F64
                };
                let v = self.value(b, &Shaped::array(d, element.clone()));
                out.push((v.atom, element, v.bound));
            }
        }
        out
    }

    /// A map of one to three arrays with one or more results; the further results go into the scope.
    fn map(&mut self, b: &mut Builder<'_>, d: Dim, element: &Shaped) -> Val {
        let count = 1 + self.rng.weighted(&[0.6, 0.3, 0.1]);
        let operands = self.operands(b, d, count);
        let mut results = vec![element.clone()];
        if self.rng.chance(0.2) {
            results.push(match self.rng.below(4) {
                0 => Shaped::array(self.random_dim(), Shaped::F64),
                1 => Shaped::I64,
                _ => Shaped::F64,
            });
        }
        self.features.map += 1;
        if self.map_nesting > 0 {
            self.features.nested_map += 1;
        }
        let params: Vec<Type> = operands.iter().map(|o| o.1.ty()).collect();
        let mut bounds = Vec::new();
        self.map_nesting += 1;
        let lam = b.lam(&params, "x", |b, vars| {
            self.inner(|g| {
                let mark = g.scope.len();
                for (v, (_, shape, bound)) in vars.iter().zip(&operands) {
                    g.scope.push(Entry {
                        atom: (*v).into(),
                        shape: shape.clone(),
                        bound: *bound,
                        used: !shape.has_floats(),
                    });
                }
                let values = g.body_values(b, &results, &vec![LIMIT; results.len()], mark);
                bounds.extend(values.iter().map(|v| v.bound));
                values.into_iter().map(|v| v.atom).collect()
            })
        });
        self.map_nesting -= 1;
        let width = self.dim(b, d);
        let arrays = operands.iter().map(|o| o.0).collect();
        let out = b.emit_all(Exp::Soac(Soac::Map { width, lam, arrays }), "ys");
        for k in 1..out.len() {
            let shape = Shaped::array(d, results[k].clone());
            self.push(&out[k..=k], &[shape], bounds[k], false);
        }
        Val { atom: out[0].into(), bound: bounds[0] }
    }

    fn scan(&mut self, b: &mut Builder<'_>, d: Dim, s: pullback_prim::Scalar) -> Val {
        let shape = Shaped::array(d, Shaped::Scalar(s));
        let out = self.fold(b, d, s, true);
        let first = self.limit(b, &shape, out[0], LIMIT);
        for v in &out[1..] {
            let v = self.limit(b, &shape, *v, LIMIT);
            self.scope.push(Entry { atom: v.atom, shape: shape.clone(), bound: v.bound, used: false });
        }
        first
    }

    /// An array to write into: more often than elsewhere one that others may use too.
    fn written(&mut self, b: &mut Builder<'_>, shape: &Shaped) -> Val {
        let shared = if self.rng.chance(0.4) { self.pick(shape) } else { None };
        shared.unwrap_or_else(|| self.value(b, shape))
    }

    fn scatter(&mut self, b: &mut Builder<'_>, d: Dim, element: &Shaped) -> Val {
        let e = self.random_dim();
        let dst = self.written(b, &Shaped::array(d, element.clone()));
        let values = self.value(b, &Shaped::array(e, element.clone()));
        let indices = self.indices(b, e, d, true);
        let width = self.dim(b, e);
        self.features.scatter += 1;
        let atom =
            b.emit(Exp::Soac(Soac::Scatter { width, dst: dst.atom, indices, values: values.atom }), "scat");
        Val { atom, bound: dst.bound.max(values.bound) }
    }

    fn update(&mut self, b: &mut Builder<'_>, shape: &Shaped, d: Dim) -> Option<Val> {
        let dims = shape.dims();
        if d.at(self.sizes) == 0 {
            return None;
        }
        let full = dims.iter().take_while(|d| d.at(self.sizes) > 0).count();
        let depth = self.rng.range(1, full);
        let array = self.written(b, shape);
        let ix: Vec<Atom> = dims[..depth].iter().map(|d| self.index_below(b, *d)).collect();
        let rest = (0..depth).fold(shape, |t, _| match t {
            Shaped::Array(_, e) => e,
            Shaped::Scalar(_) | Shaped::Tuple(_) | Shaped::Sum(_) => t,
        });
        let v = self.value(b, rest);
        self.features.updates += 1;
        Some(Val {
            atom: b.emit(Exp::Update(array.atom, ix, v.atom), "upd"),
            bound: array.bound.max(v.bound),
        })
    }

    fn update_slice(&mut self, b: &mut Builder<'_>, shape: &Shaped, d: Dim, element: &Shaped) -> Option<Val> {
        let size = d.at(self.sizes);
        if size == 0 {
            return None;
        }
        let len = self.rng.range(0, size.min(2));
        let array = self.written(b, shape);
        self.features.empty_arrays += usize::from(len == 0);
        let v = self.value(b, &Shaped::array(Dim::constant(len), element.clone()));
        // Backwards from `len - 1`, or forwards from a start.
        let (start, stride) =
            if len > 0 && self.rng.chance(0.3) { (len - 1, -1) } else { (self.rng.below(size - len + 1), 1) };
        let slice = SliceDim {
            start: Atom::i64(start as i64),
            len: Atom::i64(len as i64),
            stride: Atom::i64(stride),
        };
        self.features.updates += 1;
        let atom = b.emit(Exp::UpdateSlice(array.atom, slice, v.atom), "upd");
        Some(Val { atom, bound: array.bound.max(v.bound) })
    }

    fn concat(&mut self, b: &mut Builder<'_>, d: Dim, element: &Shaped) -> Option<Val> {
        let (first, second) = if d.n >= 2 {
            (Dim::N, Dim { n: d.n - 1, ..d })
        } else if d.c > 0 {
            let c = self.rng.range(0, d.c);
            (Dim { c: d.c - c, ..d }, Dim::constant(c))
        } else {
            return None;
        };
        self.features.empty_arrays += [first, second].iter().filter(|d| **d == Dim::constant(0)).count();
        let x = self.value(b, &Shaped::array(first, element.clone()));
        let y = self.value(b, &Shaped::array(second, element.clone()));
        self.features.shape_operations += 1;
        let parts = if self.rng.chance(0.5) { vec![x.atom, y.atom] } else { vec![y.atom, x.atom] };
        Some(Val { atom: b.emit(Exp::Concat(parts), "cat"), bound: x.bound.max(y.bound) })
    }

    fn rearrange(&mut self, b: &mut Builder<'_>, shape: &Shaped) -> Val {
        let dims = shape.dims();
        let count = self.rng.range(2, dims.len());
        let mut perm: Vec<usize> = (0..count).collect();
        for k in (1..count).rev() {
            perm.swap(k, self.rng.below(k));
        }
        // Dimension i of the result is dimension perm[i] of the argument.
        let mut source = dims.clone();
        for (i, p) in perm.iter().enumerate() {
            source[*p] = dims[i];
        }
        let v = self.value(b, &Shaped::of_dims(&source, shape.innermost().clone()));
        self.features.shape_operations += 1;
        Val { atom: b.emit(Exp::Rearrange(perm, v.atom), "tr"), bound: v.bound }
    }

    /// Joins or splits the outer dimensions, where the sizes stay linear.
    fn reshape(&mut self, b: &mut Builder<'_>, shape: &Shaped, d: Dim, element: &Shaped) -> Option<Val> {
        let dims = shape.dims();
        let (source, from, to) = if dims.len() >= 2 {
            let flat = match (dims[0].as_constant(), dims[1].as_constant()) {
                (Some(k), _) => dims[1].times(k),
                (_, Some(k)) => dims[0].times(k),
                (None, None) => return None,
            };
            let mut source = vec![flat];
            source.extend(&dims[2..]);
            (source, 1, vec![dims[0], dims[1]])
        } else if d.n == 2 && d.m == 0 && d.c == 0 {
            let pair =
                if self.rng.chance(0.5) { [Dim::constant(2), Dim::N] } else { [Dim::N, Dim::constant(2)] };
            (pair.to_vec(), 2, vec![d])
        } else {
            let ones = if self.rng.chance(0.5) { [Dim::constant(1), d] } else { [d, Dim::constant(1)] };
            (ones.to_vec(), 2, vec![d])
        };
        let mut base = element.innermost().clone();
        if dims.len() == 1 {
            base = element.clone();
        }
        let v = self.value(b, &Shaped::of_dims(&source, base));
        let to: Vec<Atom> = to.into_iter().map(|d| self.dim(b, d)).collect();
        self.features.shape_operations += 1;
        Some(Val { atom: b.emit(Exp::Reshape { shape: to, from, array: v.atom }, "resh"), bound: v.bound })
    }

    fn gather(&mut self, b: &mut Builder<'_>, d: Dim, element: &Shaped) -> Option<Val> {
        let e = self.random_dim();
        if e.at(self.sizes) == 0 {
            return None;
        }
        let source = self.value(b, &Shaped::array(e, element.clone()));
        let indices = self.indices(b, d, e, false);
        self.features.indexing += 1;
        Some(Val { atom: b.emit(Exp::Gather(source.atom, indices), "gath"), bound: source.bound })
    }

    fn slice(&mut self, b: &mut Builder<'_>, d: Dim, element: &Shaped) -> Val {
        let len = self.dim(b, d);
        let extra = self.rng.below(3);
        let (source, start, stride) = match self.rng.below(3) {
            0 => (d.plus(Dim::constant(extra)), Atom::i64(self.rng.below(extra + 1) as i64), 1),
            1 => (d.times(2).plus(Dim::constant(1)), Atom::i64(self.rng.below(2) as i64), 2),
            _ => {
                // Backwards from the last element of the first `d`.
                let last = b.op2(Op::Sub, len, Atom::i64(1));
                (d.plus(Dim::constant(extra)), last, -1)
            }
        };
        let v = self.value(b, &Shaped::array(source, element.clone()));
        self.features.shape_operations += 1;
        Val { atom: b.slice(v.atom, start, len, Atom::i64(stride)), bound: v.bound }
    }

    /// `array[i]` of an array of one more dimension, of constant or symbolic size.
    fn sub_array(&mut self, b: &mut Builder<'_>, shape: &Shaped) -> Val {
        let outer = if self.rng.chance(0.5) { Dim::constant(self.rng.range(1, 2)) } else { Dim::N };
        let v = self.value(b, &Shaped::array(outer, shape.clone()));
        let i = self.index_below(b, outer);
        self.features.indexing += 1;
        Val { atom: b.emit(Exp::Index(v.atom, vec![i]), "sub"), bound: v.bound }
    }

    fn replicate(&mut self, b: &mut Builder<'_>, d: Dim, element: &Shaped) -> Val {
        let v = self.value(b, element);
        let n = self.dim(b, d);
        self.features.shape_operations += 1;
        Val { atom: b.emit(Exp::Replicate(vec![n], v.atom), "rep"), bound: v.bound }
    }

    fn literal(&mut self, b: &mut Builder<'_>, d: Dim, element: &Shaped) -> Option<Val> {
        let count = d.as_constant().filter(|c| *c <= 3)?;
        if count == 0 && element.ty().rank() > 0 {
            // A literal without rows does not say how long they are.
            return Some(self.replicate(b, d, element));
        }
        let parts: Vec<Val> = (0..count).map(|_| self.value(b, element)).collect();
        let bound = parts.iter().fold(0.0, |m: f64, v| m.max(v.bound));
        let atoms = parts.iter().map(|v| v.atom).collect();
        Some(Val { atom: b.emit(Exp::ArrayLit(element.ty(), atoms), "lit"), bound })
    }

    /// A map over numbers, each with a slice that begins there, or at a multiple: slices overlap, lie side by side or apart.
    fn windows(&mut self, b: &mut Builder<'_>, d: Dim, element: &Shaped) -> Val {
        let (len, step) = (self.rng.range(1, 4), self.rng.below(4));
        let inner =
            if self.rng.chance(0.5) { Shaped::F64 } else { Shaped::array(self.random_dim(), Shaped::F64) };
        let source = self.value(b, &Shaped::array(d.times(step).plus(Dim::constant(len)), inner.clone()));
        let width = self.dim(b, d);
        let numbers = b.emit(Exp::Iota(width), "is");
        self.features.shape_operations += 1;
        let mut bound = 0.0;
        self.map_nesting += 1;
        let out = b.map(width, &[numbers], |b, p| {
            let start = b.op2(Op::Mul, p[0].into(), Atom::i64(step as i64));
            let atom = b.slice(source.atom, start, Atom::i64(len as i64), Atom::i64(1));
            self.inner(|g| {
                let mark = g.scope.len();
                let shape = Shaped::array(Dim::constant(len), inner.clone());
                g.scope.push(Entry { atom, shape, bound: source.bound, used: false });
                let v = g.body_value(b, element, LIMIT, mark);
                bound = v.bound;
                vec![v.atom]
            })
        });
        self.map_nesting -= 1;
        Val { atom: out[0].into(), bound }
    }

    /// An accumulator over a generated array, added to from a map.
    fn with_acc(&mut self, b: &mut Builder<'_>, shape: &Shaped, d: Dim, element: &Shaped) -> Option<Val> {
        if element.rank() > 1 {
            return None;
        }
        let e = self.random_dim();
        let init = self.value(b, shape);
        let added = self.value(b, &Shaped::array(e, element.clone()));
        let indices = self.indices(b, e, d, true);
        let width = self.dim(b, e);
        self.features.with_acc += 1;
        let out = b.with_acc(&[init.atom], |b, accs| {
            let acc = accs[0].into();
            let done = b.map(width, &[indices, added.atom], |b, p| {
                vec![b.emit(Exp::AccAdd(acc, vec![p[0].into()], p[1].into()), "u")]
            });
            let _ = done;
            Vec::new()
        });
        let bound = init.bound + added.bound * e.at(self.sizes) as f64;
        Some(self.limit(b, shape, Val { atom: out[0].into(), bound }, LIMIT))
    }

    /// A loop of `d` iterations that collects one element per iteration.
    fn collect(&mut self, b: &mut Builder<'_>, d: Dim, element: &Shaped) -> Val {
        let init = self.value(b, &Shaped::F64);
        let limit = init.bound.max(1.0);
        let n = self.dim(b, d);
        let i = b.fresh(Type::I64, "i");
        let x = b.fresh(Type::F64, "x");
        let mut bound = 0.0;
        let body = b.scope(|b| {
            self.inner(|g| {
                let mark = g.scope.len();
                g.push(&[i], &[Shaped::I64], 0.0, true);
                g.push(&[x], &[Shaped::F64], limit, false);
                let out = g.body_values(b, &[Shaped::F64, element.clone()], &[limit, LIMIT], mark);
                bound = out[1].bound;
                out.into_iter().map(|v| v.atom).collect()
            })
        });
        self.features.for_loop += 1;
        let exp = Exp::Loop(Loop {
            params: vec![(x, init.atom)],
            form: LoopForm::For { i, n },
            body,
            collect: 1,
            attrs: LoopAttrs::default(),
        });
        let out = b.emit_all(exp, "col");
        self.push(&out[..1], &[Shaped::F64], limit, false);
        Val { atom: out[1].into(), bound }
    }
}
