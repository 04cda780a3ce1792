//! Scalars, tuples and sums.

use super::shape::{Dim, Shaped};
use super::{Generator, LIMIT, Val};
use pullback_core::{Atom, Builder, Exp, Soac};
use pullback_prim::{Op, Scalar, ScalarValue};

impl Generator<'_> {
    /// A scalar by an operation.
    pub(crate) fn scalar(&mut self, b: &mut Builder<'_>, s: Scalar) -> Val {
        if s.is_float() {
            self.float(b, s)
        } else if s == Scalar::Bool {
            self.discretely(|g| g.boolean(b))
        } else {
            self.discretely(|g| g.integer(b, s))
        }
    }

    /// A scalar from the scope by at most an index or a conversion, else a constant.
    pub(crate) fn scalar_leaf(&mut self, b: &mut Builder<'_>, s: Scalar) -> Val {
        if s.is_float() {
            if self.rng.chance(0.75)
                && let Some(v) = self.element(b, s)
            {
                return v;
            }
            let other = if s == Scalar::F64 { Scalar::F32 } else { Scalar::F64 };
            for t in [other, s] {
                if self.rng.chance(0.5)
                    && let Some(v) = self.pick(&Shaped::Scalar(t))
                {
                    return Val { atom: b.convert(v.atom, s), bound: v.bound };
                }
            }
            let c = (self.rng.signed() * 100.0).round() / 64.0;
            return Val { atom: Atom::Const(s.from_f64(c)), bound: c.abs() };
        }
        if s == Scalar::Bool
            && self.rng.chance(0.9)
            && let Some(x) = self.discretely(|g| g.element(b, Scalar::F64).or_else(|| g.pick(&Shaped::F64)))
        {
            let t = self.rng.signed() * 0.5 + 0.001_234_567;
            return Val { atom: b.op2(Op::Lt, x.atom, Atom::f64(t)), bound: 0.0 };
        }
        let value = if s == Scalar::Bool {
            ScalarValue::Bool(self.rng.chance(0.5))
        } else {
            s.from_i64(self.rng.below(6) as i64)
        };
        Val { atom: Atom::Const(value), bound: 0.0 }
    }

    /// An element, at random indices, of an array in scope.
    pub(crate) fn element(&mut self, b: &mut Builder<'_>, s: Scalar) -> Option<Val> {
        let fitting: Vec<usize> = (0..self.scope.len())
            .rev()
            .filter(|&k| {
                let shape = &self.scope[k].shape;
                shape.rank() > 0
                    && *shape.innermost() == Shaped::Scalar(s)
                    && shape.dims().iter().all(|d| d.at(self.sizes) > 0)
            })
            .take(4)
            .collect();
        if fitting.is_empty() {
            return None;
        }
        let k = *self.rng.choose(&fitting);
        // The other elements are not used by this.
        self.scope[k].used |= self.rng.chance(0.3);
        let entry = self.scope[k].clone();
        let ix: Vec<Atom> = entry.shape.dims().into_iter().map(|d| self.index_below(b, d)).collect();
        self.features.indexing += 1;
        Some(Val { atom: b.emit(Exp::Index(entry.atom, ix), "x"), bound: entry.bound })
    }

    /// An `i64` in `0 .. d`; the size is not 0.
    pub(crate) fn index_below(&mut self, b: &mut Builder<'_>, d: Dim) -> Atom {
        if self.rng.chance(0.5) {
            return Atom::i64(self.rng.below(d.at(self.sizes)) as i64);
        }
        let i = match self.pick(&Shaped::I64) {
            Some(v) => v.atom,
            None => self.value(b, &Shaped::I64).atom,
        };
        let n = self.dim(b, d);
        b.op2(Op::Mod, i, n)
    }

    fn float(&mut self, b: &mut Builder<'_>, s: Scalar) -> Val {
        let kinks = self.config.kinks;
        match self.rng.weighted(&[3.0, 4.0, kinks, 1.0, 2.0, 0.5, 0.3, 0.5, self.config.stop_gradient * 20.0])
        {
            0 => self.smooth_unary(b, s),
            1 => self.smooth_binary(b, s),
            2 => self.kinked(b, s),
            3 => match self.element(b, s) {
                Some(v) => v,
                None => self.smooth_unary(b, s),
            },
            4 => self.reduction(b, s),
            5 => self.conversion(b, s),
            6 => self.select(b, s),
            7 => self.scalar_leaf(b, s),
            _ => {
                let v = self.value(b, &Shaped::Scalar(s));
                self.features.stop_gradients += 1;
                Val { atom: b.emit(Exp::StopGradient(v.atom), "stop"), bound: v.bound }
            }
        }
    }

    fn smooth_unary(&mut self, b: &mut Builder<'_>, s: Scalar) -> Val {
        let x = self.value(b, &Shaped::Scalar(s));
        let c = |v: f64| Atom::Const(s.from_f64(v));
        let big = x.bound;
        let one = |b: &mut Builder<'_>, op: Op| b.op1(op, x.atom);
        let (atom, bound) = match self.rng.below(20) {
            0 | 1 => (one(b, Op::Sin), 1.0),
            2 => (one(b, Op::Cos), 1.0),
            3 => (one(b, Op::Tanh), 1.0),
            4 => (one(b, Op::Neg), big),
            5 if big <= 2.0 => (one(b, Op::Exp), big.exp()),
            6 if big <= 2.0 => (one(b, Op::Expm1), big.exp() + 1.0),
            7 => (one(b, Op::Atan), 1.6),
            8 => (one(b, Op::Asinh), big),
            9 => (one(b, Op::Erf), 1.0),
            10 if big <= 2.0 => (one(b, Op::Sinh), big.sinh()),
            11 if big <= 0.99 => (one(b, Op::Asin), 1.6),
            12..=16 => {
                // Functions with a restricted domain see x^2 + c, c > 0.
                let square = b.op2(Op::Mul, x.atom, x.atom);
                let offset = [0.5, 0.75, 1.25][self.rng.below(3)];
                let y = b.op2(Op::Add, square, c(offset));
                let top = big * big + offset;
                let log = top.ln().abs().max(0.7);
                match self.rng.below(6) {
                    0 => (b.op1(Op::Sqrt, y), top.max(1.0)),
                    1 => (b.op1(Op::Log, y), log),
                    2 => (b.op1(Op::Log1p, y), (1.0 + top).ln()),
                    3 => (b.op1(Op::Lgamma, y), (top * top).max(1.0)),
                    4 => (b.op1(Op::Cbrt, y), top.max(1.0)),
                    _ => (b.op2(Op::Div, c(1.0), y), 2.0),
                }
            }
            17 => {
                let e = b.op1(Op::Neg, x.atom);
                let e = b.op1(Op::Exp, e);
                let d = b.op2(Op::Add, c(1.0), e);
                (b.op2(Op::Div, c(1.0), d), 1.0)
            }
            _ => (b.op2(Op::Mul, x.atom, x.atom), big * big),
        };
        self.limit(b, &Shaped::Scalar(s), Val { atom, bound }, LIMIT)
    }

    fn smooth_binary(&mut self, b: &mut Builder<'_>, s: Scalar) -> Val {
        let shape = Shaped::Scalar(s);
        let x = self.value(b, &shape);
        let y = self.value(b, &shape);
        let c = |v: f64| Atom::Const(s.from_f64(v));
        let (atom, bound) = match self.rng.below(12) {
            0..=3 => (b.op2(Op::Mul, x.atom, y.atom), x.bound * y.bound),
            4..=6 => (b.op2(Op::Add, x.atom, y.atom), x.bound + y.bound),
            7 | 8 => (b.op2(Op::Sub, x.atom, y.atom), x.bound + y.bound),
            k => {
                let square = b.op2(Op::Mul, y.atom, y.atom);
                let d = b.op2(Op::Add, square, c(0.75));
                match k {
                    9 => (b.op2(Op::Div, x.atom, d), x.bound * 1.4),
                    10 => (b.op2(Op::Atan2, x.atom, d), 1.6),
                    _ if x.bound <= 1.5 && y.bound <= 2.0 => {
                        (b.op2(Op::Pow, d, x.atom), (y.bound * y.bound + 1.4).powf(x.bound))
                    }
                    _ => (b.op2(Op::Hypot, x.atom, d), x.bound + y.bound * y.bound + 0.75),
                }
            }
        };
        self.limit(b, &shape, Val { atom, bound }, LIMIT)
    }

    fn kinked(&mut self, b: &mut Builder<'_>, s: Scalar) -> Val {
        let shape = Shaped::Scalar(s);
        let x = self.value(b, &shape);
        match self.rng.below(5) {
            0 => Val { atom: b.op1(Op::Abs, x.atom), bound: x.bound },
            k => {
                let y = self.value(b, &shape);
                let op = if k % 2 == 0 { Op::Min } else { Op::Max };
                Val { atom: b.op2(op, x.atom, y.atom), bound: x.bound.max(y.bound) }
            }
        }
    }

    fn reduction(&mut self, b: &mut Builder<'_>, s: Scalar) -> Val {
        if self.nesting > self.config.nesting {
            return self.scalar_leaf(b, s);
        }
        let d = self.random_dim();
        let out = self.fold(b, d, s, false);
        let v = out[self.rng.below(out.len())];
        self.limit(b, &Shaped::Scalar(s), v, LIMIT)
    }

    fn conversion(&mut self, b: &mut Builder<'_>, s: Scalar) -> Val {
        if self.rng.chance(0.6) {
            let other = if s == Scalar::F64 { Scalar::F32 } else { Scalar::F64 };
            if self.singles && self.rng.chance(0.3) {
                self.features.singles += 1;
                let v = self.value(b, &Shaped::Scalar(other));
                return Val { atom: b.convert(v.atom, s), bound: v.bound };
            }
        }
        let i = self.value(b, &Shaped::I64);
        let small = b.op2(Op::Mod, i.atom, Atom::i64(5));
        Val { atom: b.convert(small, s), bound: 4.0 }
    }

    fn select(&mut self, b: &mut Builder<'_>, s: Scalar) -> Val {
        let c = self.value(b, &Shaped::BOOL);
        let x = self.value(b, &Shaped::Scalar(s));
        let y = self.value(b, &Shaped::Scalar(s));
        Val { atom: b.select(c.atom, x.atom, y.atom), bound: x.bound.max(y.bound) }
    }

    fn integer(&mut self, b: &mut Builder<'_>, s: Scalar) -> Val {
        let shape = Shaped::Scalar(s);
        let bound = 0.0;
        let atom = match self.rng.weighted(&[2.0, 3.0, 1.0, 1.0, 1.0, 10.0 * self.config.jumps]) {
            0 => Atom::Const(s.from_i64(self.rng.below(7) as i64)),
            1 => {
                let x = self.value(b, &shape);
                let y = self.value(b, &shape);
                let op = *self.rng.choose(&[Op::Add, Op::Sub, Op::Mul, Op::Min, Op::Max, Op::Xor]);
                b.op2(op, x.atom, y.atom)
            }
            2 => {
                let x = self.value(b, &shape);
                let op = *self.rng.choose(&[Op::Div, Op::Mod, Op::Quot, Op::Rem]);
                b.op2(op, x.atom, Atom::Const(s.from_i64(3)))
            }
            3 => b.convert(self.size_atoms.0, s),
            4 => match self.integer_element(b) {
                Some(i) => b.convert(i, s),
                None => Atom::Const(s.from_i64(2)),
            },
            _ => {
                let x = self.value(b, &Shaped::F64);
                let scaled = b.op2(Op::Mul, x.atom, Atom::f64(2.25));
                let floor = b.op1(Op::Floor, scaled);
                b.convert(floor, s)
            }
        };
        Val { atom, bound }
    }

    fn integer_element(&mut self, b: &mut Builder<'_>) -> Option<Atom> {
        let k = self.scope.iter().rposition(
            |e| matches!(&e.shape, Shaped::Array(d, t) if **t == Shaped::I64 && d.at(self.sizes) > 0),
        )?;
        let entry = self.scope[k].clone();
        let Shaped::Array(d, _) = entry.shape else { return None };
        let i = Atom::i64(self.rng.below(d.at(self.sizes)) as i64);
        self.scope[k].used = true;
        Some(b.emit(Exp::Index(entry.atom, vec![i]), "i"))
    }

    fn boolean(&mut self, b: &mut Builder<'_>) -> Val {
        let bound = 0.0;
        let atom = match self.rng.below(5) {
            0 | 1 => {
                let x = self.value(b, &Shaped::F64);
                // A threshold that no grid value and no simple expression of grid values hits.
                let t = self.rng.signed() * 0.9 + 0.001_234_567;
                let op = *self.rng.choose(&[Op::Lt, Op::Le]);
                b.op2(op, x.atom, Atom::f64(t))
            }
            2 => {
                let x = self.value(b, &Shaped::I64);
                let y = b.op2(Op::Mod, x.atom, Atom::i64(3));
                let op = *self.rng.choose(&[Op::Eq, Op::Ne, Op::Lt]);
                b.op2(op, y, Atom::i64(1))
            }
            3 => {
                let x = self.value(b, &Shaped::BOOL);
                b.op1(Op::Not, x.atom)
            }
            _ => {
                let x = self.value(b, &Shaped::BOOL);
                let y = self.value(b, &Shaped::BOOL);
                let op = *self.rng.choose(&[Op::And, Op::Or]);
                b.op2(op, x.atom, y.atom)
            }
        };
        Val { atom, bound }
    }

    /// A tuple of generated parts.
    pub(crate) fn tuple(&mut self, b: &mut Builder<'_>, items: &[Shaped]) -> Val {
        let parts: Vec<Val> = items.iter().map(|t| self.value(b, t)).collect();
        self.build_tuple(b, &parts)
    }

    pub(crate) fn build_tuple(&mut self, b: &mut Builder<'_>, parts: &[Val]) -> Val {
        self.features.tuples += 1;
        let bound = parts.iter().fold(0.0, |m: f64, v| m.max(v.bound));
        Val { atom: b.emit(Exp::Tuple(parts.iter().map(|v| v.atom).collect()), "tup"), bound }
    }

    /// A value of a sum: one alternative, or a conditional between two.
    pub(crate) fn inject(&mut self, b: &mut Builder<'_>, sum: &Shaped, alternatives: &[Vec<Shaped>]) -> Val {
        let k = self.rng.below(alternatives.len());
        if self.rng.chance(0.2) || self.nesting > self.config.nesting {
            return self.inject_one(b, sum, k, &alternatives[k]);
        }
        let j = self.rng.below(alternatives.len());
        let c = self.value(b, &Shaped::BOOL);
        let mut bound = 0.0f64;
        let mut arms = Vec::new();
        for k in [k, j] {
            let scope = b.scope(|b| {
                self.maybe(|g| {
                    let v = g.inject_one(b, sum, k, &alternatives[k]);
                    bound = bound.max(v.bound);
                    vec![v.atom]
                })
            });
            arms.push(scope);
        }
        self.features.conditional += 1;
        let otherwise = arms.pop().unwrap_or_default();
        let then = arms.pop().unwrap_or_default();
        Val { atom: b.emit(Exp::If(c.atom, then, otherwise), "s"), bound }
    }

    fn inject_one(&mut self, b: &mut Builder<'_>, sum: &Shaped, k: usize, fields: &[Shaped]) -> Val {
        self.features.sums += 1;
        let parts: Vec<Val> = fields.iter().map(|t| self.value(b, t)).collect();
        let bound = parts.iter().fold(0.0, |m: f64, v| m.max(v.bound));
        Val { atom: b.emit(Exp::Inject(sum.ty(), k, parts.iter().map(|v| v.atom).collect()), "s"), bound }
    }

    pub(crate) fn inject_leaf(
        &mut self,
        b: &mut Builder<'_>,
        sum: &Shaped,
        k: usize,
        fields: &[Shaped],
    ) -> Val {
        self.features.sums += 1;
        let parts: Vec<Val> = fields.iter().map(|t| self.leaf(b, t)).collect();
        let bound = parts.iter().fold(0.0, |m: f64, v| m.max(v.bound));
        Val { atom: b.emit(Exp::Inject(sum.ty(), k, parts.iter().map(|v| v.atom).collect()), "s"), bound }
    }

    /// The value with floats no larger than `limit`: scaled, or through `sin`.
    pub(crate) fn limit(&mut self, b: &mut Builder<'_>, shape: &Shaped, v: Val, limit: f64) -> Val {
        if v.bound <= limit || !shape.has_floats() {
            return v;
        }
        match shape {
            Shaped::Scalar(s) if s.is_float() => {
                if limit >= 1.0 && (v.bound > 50.0 || self.rng.chance(0.5)) {
                    return Val { atom: b.op1(Op::Sin, v.atom), bound: 1.0 };
                }
                let factor = limit / v.bound;
                Val { atom: b.op2(Op::Mul, v.atom, Atom::Const(s.from_f64(factor))), bound: limit }
            }
            Shaped::Scalar(_) => v,
            Shaped::Tuple(items) => {
                let parts: Vec<Val> = items
                    .iter()
                    .enumerate()
                    .map(|(k, t)| {
                        let atom = b.emit(Exp::Proj(v.atom, k), "x");
                        self.limit(b, t, Val { atom, bound: v.bound }, limit)
                    })
                    .collect();
                self.build_tuple(b, &parts)
            }
            Shaped::Sum(alternatives) => {
                let out = b.match_(v.atom, |b, k, payload| {
                    let fields: Vec<Atom> = payload
                        .iter()
                        .zip(&alternatives[k])
                        .map(|(p, t)| self.limit(b, t, Val { atom: (*p).into(), bound: v.bound }, limit).atom)
                        .collect();
                    vec![b.emit(Exp::Inject(shape.ty(), k, fields), "s")]
                });
                Val { atom: out[0].into(), bound: limit }
            }
            Shaped::Array(d, element) => {
                let width = self.dim(b, *d);
                let lam = b.lam(&[element.ty()], "x", |b, p| {
                    vec![self.limit(b, element, Val { atom: p[0].into(), bound: v.bound }, limit).atom]
                });
                let out = b.emit(Exp::Soac(Soac::Map { width, lam, arrays: vec![v.atom] }), "xs");
                Val { atom: out, bound: limit }
            }
        }
    }
}
