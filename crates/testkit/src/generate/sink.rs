//! Keeping data flowing: what is not used yet is summed up into one number.
//!
//! Without this most generated programs have zero gradients (house plan, section 12). Arrays are summed with weights
//! that depend on the position as often as without, because the plain sum hides every permutation of an array.

use super::shape::Shaped;
use super::{Generator, LIMIT, Val};
use pullback_core::{Atom, Builder, Exp};
use pullback_prim::{Op, Scalar};

impl Generator<'_> {
    /// One `f64` that depends on every unused float variable of the scope from position `mark` on.
    pub(crate) fn total(&mut self, b: &mut Builder<'_>, mark: usize) -> Val {
        let mut sum: Option<Val> = None;
        for k in mark..self.scope.len() {
            if self.scope[k].used || !self.scope[k].shape.has_floats() {
                continue;
            }
            self.scope[k].used = true;
            let entry = self.scope[k].clone();
            let v = self.sink(b, &entry.shape, Val { atom: entry.atom, bound: entry.bound });
            sum = Some(match sum {
                None => v,
                Some(s) => Val { atom: b.op2(Op::Add, s.atom, v.atom), bound: s.bound + v.bound },
            });
        }
        sum.unwrap_or(Val { atom: Atom::f64(0.0), bound: 0.0 })
    }

    /// Lets the unused variables of a body flow into its value, if that holds a float.
    pub(crate) fn absorb(&mut self, b: &mut Builder<'_>, shape: &Shaped, v: Val, mark: usize) -> Val {
        let unused =
            (mark..self.scope.len()).any(|k| !self.scope[k].used && self.scope[k].shape.has_floats());
        if !unused {
            return v;
        }
        match shape {
            Shaped::Scalar(s) if s.is_float() => {
                let total = self.total(b, mark);
                let total = self.limit(b, &Shaped::F64, total, LIMIT);
                let scaled = b.op2(Op::Mul, total.atom, Atom::f64(0.25));
                let scaled = b.convert(scaled, *s);
                Val { atom: b.op2(Op::Add, v.atom, scaled), bound: v.bound + 0.25 * total.bound }
            }
            Shaped::Tuple(items) => {
                let Some(k) = items.iter().position(|t| matches!(t, Shaped::Scalar(s) if s.is_float()))
                else {
                    return v;
                };
                let mut parts = Vec::new();
                for (j, t) in items.iter().enumerate() {
                    let part = Val { atom: b.emit(Exp::Proj(v.atom, j), "x"), bound: v.bound };
                    parts.push(if j == k { self.absorb(b, t, part, mark) } else { part });
                }
                self.build_tuple(b, &parts)
            }
            Shaped::Array(d, element) if shape.is_numeric() => {
                let total = self.total(b, mark);
                let total = self.limit(b, &Shaped::F64, total, LIMIT);
                let scaled = b.op2(Op::Mul, total.atom, Atom::f64(0.25));
                let atom = self.shift(b, *d, element, v.atom, scaled);
                Val { atom, bound: v.bound + 0.25 * total.bound }
            }
            Shaped::Scalar(_) | Shaped::Sum(_) | Shaped::Array(..) => v,
        }
    }

    /// A number added to every element.
    fn shift(
        &mut self,
        b: &mut Builder<'_>,
        d: super::shape::Dim,
        element: &Shaped,
        x: Atom,
        by: Atom,
    ) -> Atom {
        let width = self.dim(b, d);
        let out = b.map(width, &[x], |b, p| {
            vec![match element {
                Shaped::Array(d, inner) => self.shift(b, *d, inner, p[0].into(), by),
                Shaped::Scalar(s) => {
                    let by = b.convert(by, *s);
                    b.op2(Op::Add, p[0].into(), by)
                }
                Shaped::Tuple(_) | Shaped::Sum(_) => p[0].into(),
            }]
        });
        out[0].into()
    }

    /// A number that depends on every float inside a value.
    fn sink(&mut self, b: &mut Builder<'_>, shape: &Shaped, v: Val) -> Val {
        match shape {
            Shaped::Scalar(s) if s.is_float() => Val { atom: b.convert(v.atom, Scalar::F64), bound: v.bound },
            Shaped::Scalar(_) => Val { atom: Atom::f64(0.0), bound: 0.0 },
            Shaped::Tuple(items) => {
                let mut sum: Option<Val> = None;
                for (k, t) in items.iter().enumerate().filter(|(_, t)| t.has_floats()) {
                    let part = Val { atom: b.emit(Exp::Proj(v.atom, k), "x"), bound: v.bound };
                    let part = self.sink(b, t, part);
                    // Components get different weights, so that exchanging two of them shows.
                    let weight = 1.0 + 0.5 * k as f64;
                    let atom = b.op2(Op::Mul, part.atom, Atom::f64(weight));
                    let bound = part.bound * weight;
                    sum = Some(match sum {
                        None => Val { atom, bound },
                        Some(s) => Val { atom: b.op2(Op::Add, s.atom, atom), bound: s.bound + bound },
                    });
                }
                sum.unwrap_or(Val { atom: Atom::f64(0.0), bound: 0.0 })
            }
            Shaped::Sum(alternatives) => {
                let mut bound = 0.0f64;
                let out = b.match_(v.atom, |b, k, payload| {
                    let mut sum = Atom::f64(0.25 * k as f64);
                    let mut total = 0.25 * k as f64;
                    for (p, t) in payload.iter().zip(&alternatives[k]).filter(|(_, t)| t.has_floats()) {
                        let part = self.sink(b, t, Val { atom: (*p).into(), bound: v.bound });
                        sum = b.op2(Op::Add, sum, part.atom);
                        total += part.bound;
                    }
                    bound = bound.max(total);
                    vec![sum]
                });
                Val { atom: out[0].into(), bound }
            }
            Shaped::Array(d, element) => self.sink_array(b, *d, element, v),
        }
    }

    fn sink_array(&mut self, b: &mut Builder<'_>, d: super::shape::Dim, element: &Shaped, v: Val) -> Val {
        let width = self.dim(b, d);
        let count = d.at(self.sizes) as f64;
        if *element == Shaped::F64 && self.rng.chance(0.4) {
            return Val { atom: b.sum(width, v.atom), bound: v.bound * count };
        }
        let weighted = self.rng.chance(0.6);
        let positions = b.emit(Exp::Iota(width), "is");
        let mut bound = 0.0;
        let parts = b.map(width, &[v.atom, positions], |b, p| {
            let part = self.sink(b, element, Val { atom: p[0].into(), bound: v.bound });
            bound = part.bound;
            if !weighted {
                return vec![part.atom];
            }
            let i = b.convert(p[1].into(), Scalar::F64);
            let angle = b.op2(Op::Add, i, Atom::f64(0.3));
            let weight = b.op1(Op::Cos, angle);
            vec![b.op2(Op::Mul, part.atom, weight)]
        });
        Val { atom: b.sum(width, parts[0].into()), bound: bound * count }
    }
}
