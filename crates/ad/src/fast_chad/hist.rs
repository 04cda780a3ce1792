//! Rules for histogram (`reduce_by_index`).
//!
//! Source: Schenck et al., IFL 2023, section 4 (histograms: sums, minima, products, operators in general).
//! The rule is chosen by the operator. Assumes its neutral element is one, as the meaning of `hist` does.
//!
//! - `+` on elements of any type: every value gets the cotangent of its bin, and so does the destination.
//! - `min`, `max`: of a bin the first that attains the result gets everything, the destination before the values.
//! - `*`: the product of the others, by division; where a product is zero, or too small or too large to be divided, the
//!   general rule.
//! - an operator that works element by element on rows: a histogram per column.
//! - any other closed operator without kinks and of steady cost: the values sorted by bin, and segmented scans from both
//!   sides. Work `n log w`.
//! - all others (free variables to be differentiated, kinks, a cost that depends on values): the loop that it means.
//!   Sequential, work `n`.

use super::cotangent::Cotangent;
use super::operator::{Kind, applied, kinds};
use super::reverse::{Env, Reverse};
use super::scatter::{Writes, each_in_range, in_range};
use crate::contract::Unsupported;
use crate::regularity::may_be_bracketed_anew;
use crate::tangent::{emit_product, product_of_quotients};
use pullback_core::rename::{Subst, copy_lam};
use pullback_core::traverse::free_vars_lam;
use pullback_core::{Atom, Builder, Exp, Lam, Soac, Stm, Type};
use pullback_prim::{Op, Product, Scalar};

/// The parts of the construct.
#[derive(Clone, Copy)]
pub(crate) struct Hist<'a> {
    pub(crate) width: Atom,
    pub(crate) lam: &'a Lam,
    pub(crate) neutral: &'a [Atom],
    pub(crate) dst: &'a [Atom],
    pub(crate) indices: Atom,
    pub(crate) values: &'a [Atom],
}

/// What is done for a component.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rule {
    Sum,
    Extremum,
    Product,
    General,
}

fn rules(lam: &Lam) -> Vec<Rule> {
    let rule = |kind: Kind| match kind {
        Kind::Add => Rule::Sum,
        Kind::Min | Kind::Max => Rule::Extremum,
        Kind::Mul => Rule::Product,
        Kind::Other => Rule::General,
    };
    kinds(lam).into_iter().map(rule).collect()
}

impl<'p> Reverse<'p> {
    pub(crate) fn hist(
        &mut self,
        stm: &Stm,
        h: Hist<'_>,
        cts: Vec<Cotangent>,
        env: &mut Env,
    ) -> Result<Vec<Stm>, Unsupported> {
        self.rule("fast_chad.hist", stm);
        let closed = self.free_active(free_vars_lam(h.lam), &Env::default()).is_empty()
            && !h.neutral.iter().any(|&a| self.is_active(a))
            && !self.touches(&stm.exp);
        if !closed {
            return self.hist_loop(stm, h, cts, env);
        }
        let rules = rules(h.lam);
        let wanted = |k: &usize| !cts[*k].is_absent();
        let simple = (0..cts.len()).filter(wanted).all(|k| rules[k] != Rule::General);
        let sums = (0..cts.len()).filter(wanted).all(|k| rules[k] == Rule::Sum);
        let cells = !sums && self.may_be_small(stm, h.dst[0]);
        let rows = self.may_skip_rows(stm, h.values, env);
        if cells || rows {
            let writes = Writes { cells, rows, width: h.width, dst: h.dst[0], indices: h.indices };
            return self.small_or_large(stm, writes, cts, env, |b| loop_of(b, h), |b| h.again(b));
        }
        if simple {
            let mut forward = vec![stm.clone()];
            for (k, c) in cts.iter().enumerate().filter(|(_, c)| !c.is_absent()) {
                match rules[k] {
                    Rule::Sum | Rule::General => self.hist_sum(stm, h, k, c, env),
                    Rule::Extremum => forward.extend(self.hist_extremum(stm, h, k, c, env)),
                    Rule::Product => self.hist_product(stm, h, k, c, env)?,
                }
            }
            return Ok(forward);
        }
        if let Some(inner) = by_columns(h.lam) {
            return self.rewrite(stm, cts, env, |b| columns_of(b, h, &inner));
        }
        if !may_be_bracketed_anew(self.b.program, h.lam) {
            return self.hist_loop(stm, h, cts, env);
        }
        let bars: Vec<Cotangent> =
            stm.pat.iter().zip(&cts).map(|(&y, c)| self.dense_of(y.into(), c)).collect();
        for (k, (to_dst, to_values)) in self.hist_general(h, &bars)?.into_iter().enumerate() {
            self.contribute(env, h.dst[k], to_dst);
            self.contribute(env, h.values[k], to_values);
        }
        Ok(vec![stm.clone()])
    }

    fn hist_loop(
        &mut self,
        stm: &Stm,
        h: Hist<'_>,
        cts: Vec<Cotangent>,
        env: &mut Env,
    ) -> Result<Vec<Stm>, Unsupported> {
        self.rewrite(stm, cts, env, |b| loop_of(b, h))
    }

    /// `y = hist (+) dst is vs`: `dst_bar += y_bar`; `vs_bar[i] += y_bar[is[i]]`, zero where that is out of range.
    fn hist_sum(&mut self, stm: &Stm, h: Hist<'_>, k: usize, c: &Cotangent, env: &mut Env) {
        let d = self.dense_of(stm.pat[k].into(), c);
        if self.is_active(h.values[k]) {
            let part = self.rows_or_zeros(h.width, &d, h.indices, None);
            let part = self.with_shape(h.values[k], part);
            self.contribute(env, h.values[k], part);
        }
        self.contribute(env, h.dst[k], d);
    }

    /// The forward pass finds the winner of each bin: the first position that attains the result, `width` if the
    /// destination does or nobody (then the destination is NaN, as in forward mode).
    fn hist_extremum(&mut self, stm: &Stm, h: Hist<'_>, k: usize, c: &Cotangent, env: &mut Env) -> Vec<Stm> {
        let (y, dst, values) = (Atom::Var(stm.pat[k]), h.dst[k], h.values[k]);
        self.b.open();
        let size = self.b.size(y, 0);
        let is = self.b.emit(Exp::Iota(h.width), "is");
        let attained = self.b.map(h.width, &[h.indices, values, is], |b, p| {
            let inside = in_range(b, p[0].into(), size);
            let out = b.if_(
                inside,
                |b| {
                    let best = b.index(y, &[p[0].into()]);
                    let attains = b.op2(Op::Eq, p[1].into(), best);
                    vec![b.select(attains, p[2].into(), h.width)]
                },
                |_| vec![h.width],
            );
            vec![out[0].into()]
        });
        let none = self.b.emit(Exp::Replicate(vec![size], h.width), "none");
        let least =
            self.b.lam(&[Type::I64, Type::I64], "i", |b, p| vec![b.op2(Op::Min, p[0].into(), p[1].into())]);
        let first = Soac::Hist {
            width: h.width,
            lam: least,
            neutral: vec![Atom::i64(i64::MAX)],
            dst: vec![none],
            indices: h.indices,
            values: vec![attained[0].into()],
        };
        let first = self.b.emit(Exp::Soac(first), "first");
        let winners = self.b.map(size, &[first, dst, y], |b, p| {
            let by_dst = b.op2(Op::Eq, p[1].into(), p[2].into());
            vec![b.select(by_dst, h.width, p[0].into())]
        });
        let winners = Atom::Var(winners[0]);
        let forward = self.b.close(Vec::new()).stms;

        let d = self.dense_of(stm.pat[k].into(), c);
        if self.is_active(values) {
            let part = self.rows_or_zeros(h.width, &d, h.indices, Some(winners));
            self.contribute(env, values, part);
        }
        if self.is_active(dst) {
            let zero = Atom::Const(self.b.elem(d.atoms[0]).scalar().unwrap_or(Scalar::F64).zero());
            let kept = self.b.map(size, &[winners, d.atoms[0]], |b, p| {
                let by_dst = b.op2(Op::Eq, p[0].into(), h.width);
                vec![b.select(by_dst, p[1].into(), zero)]
            });
            self.contribute(env, dst, Cotangent::new(d.desc, vec![kept[0].into()]));
        }
        forward
    }

    /// `y[b] = dst[b] · p` with the product `p` of the values of the bin: `dst_bar[b] += y_bar[b] · p`, and a value `v` gets
    /// `y_bar[b] · dst[b] · p / v`. Where a product is zero or not a normal number (it was rounded too much for the division)
    /// the general rule: the product of the others would do for this derivative, but its own derivatives would lose the
    /// zeros.
    fn hist_product(
        &mut self,
        stm: &Stm,
        h: Hist<'_>,
        k: usize,
        c: &Cotangent,
        env: &mut Env,
    ) -> Result<(), Unsupported> {
        let d = self.dense_of(stm.pat[k].into(), c);
        let (dst, values, bar) = (h.dst[k], h.values[k], d.atoms[0]);
        let s = self.b.elem(bar).scalar().unwrap_or(Scalar::F64);
        let products = products(&mut self.b, h, k, s);
        let normal = all_normal(&mut self.b, products, s);
        self.b.open();
        let of_quotient = product_of_quotients(self.b.program, s);
        let quick = product_bars(&mut self.b, h, k, (products, bar), of_quotient);
        let quick = self.b.close(quick);
        self.b.open();
        let product = self.b.lam(&[Type::Scalar(s), Type::Scalar(s)], "x", |b, p| {
            vec![b.op2(Op::Mul, p[0].into(), p[1].into())]
        });
        let (neutral, dsts, columns) = (&h.neutral[k..=k], &h.dst[k..=k], &h.values[k..=k]);
        let one = Hist { lam: &product, neutral, dst: dsts, values: columns, ..h };
        let mut careful = Vec::new();
        for (to_dst, to_values) in self.hist_general(one, std::slice::from_ref(&d))? {
            careful.extend(self.dense_of(dst, &to_dst).atoms);
            careful.extend(self.dense_of(values, &to_values).atoms);
        }
        let careful = self.b.close(careful);
        let out = self.b.emit_all(Exp::If(normal, quick, careful), "x_bar");
        self.contribute(env, dst, Cotangent::new(d.desc.clone(), vec![out[0].into()]));
        self.contribute(env, values, Cotangent::new(d.desc, vec![out[1].into()]));
        Ok(())
    }
}

/// The product of the values of each bin.
fn products(b: &mut Builder<'_>, h: Hist<'_>, k: usize, s: Scalar) -> Atom {
    let one = Atom::Const(s.one());
    let size = b.size(h.dst[k], 0);
    let types = [Type::Scalar(s), Type::Scalar(s)];
    let lam = b.lam(&types, "x", |b, p| vec![b.op2(Op::Mul, p[0].into(), p[1].into())]);
    let ones = b.emit(Exp::Replicate(vec![size], one), "ones");
    let (neutral, dst, values) = (vec![one], vec![ones], vec![h.values[k]]);
    b.emit(
        Exp::Soac(Soac::Hist { width: h.width, lam, neutral, dst, indices: h.indices, values }),
        "products",
    )
}

/// Whether all numbers are normal: divided by a factor they keep their digits.
fn all_normal(b: &mut Builder<'_>, array: Atom, s: Scalar) -> Atom {
    let smallest = if s == Scalar::F32 { f64::from(f32::MIN_POSITIVE) } else { f64::MIN_POSITIVE };
    let size = b.size(array, 0);
    let normal = b.map(size, &[array], |b, p| {
        let magnitude = b.op1(Op::Abs, p[0].into());
        let above = b.op2(Op::Le, Atom::Const(s.from_f64(smallest)), magnitude);
        let below = b.op2(Op::Lt, magnitude, Atom::Const(s.from_f64(f64::INFINITY)));
        vec![b.op2(Op::And, above, below)]
    });
    let lam = b.lam(&[Type::BOOL, Type::BOOL], "c", |b, p| vec![b.op2(Op::And, p[0].into(), p[1].into())]);
    let (neutral, arrays) = (vec![Atom::bool(true)], vec![normal[0].into()]);
    let all = Soac::Reduce { width: size, lam, neutral, arrays, commutative: true };
    b.emit(Exp::Soac(all), "normal")
}

/// The cotangents of the destination and of the values, where all products are normal.
fn product_bars(
    b: &mut Builder<'_>,
    h: Hist<'_>,
    k: usize,
    (products, bar): (Atom, Atom),
    of_quotient: Product,
) -> Vec<Atom> {
    let size = b.size(bar, 0);
    let zero = Atom::Const(b.elem(bar).scalar().unwrap_or(Scalar::F64).zero());
    let to_dst = b.map(size, &[products, bar], |b, p| vec![b.op2(Op::Mul, p[0].into(), p[1].into())]);
    let to_values = b.map(h.width, &[h.indices, h.values[k]], |b, p| {
        let (i, v) = (p[0].into(), p[1].into());
        let inside = in_range(b, i, size);
        let derivative = |b: &mut Builder<'_>| {
            let (product, d) = (b.index(products, &[i]), b.index(bar, &[i]));
            let factor = b.index(h.dst[k], &[i]);
            let scale = b.op2(Op::Mul, factor, d);
            let others = b.op2(Op::Div, product, v);
            vec![emit_product(b, of_quotient, others, scale)]
        };
        let out = b.if_(inside, derivative, |_| vec![zero]);
        vec![out[0].into()]
    });
    vec![to_dst[0].into(), to_values[0].into()]
}

/// The operator on elements, if the operator on rows does the same with every position.
fn by_columns(lam: &Lam) -> Option<Lam> {
    let mut inner = None;
    for stm in &lam.body.stms {
        match &stm.exp {
            Exp::Soac(Soac::Map { lam: f, arrays, .. }) if inner.is_none() => {
                let whole = arrays.len() == lam.params.len()
                    && arrays.iter().zip(&lam.params).all(|(&a, &p)| a == p.into());
                let results = stm.pat.iter().map(|&v| Atom::Var(v)).eq(lam.body.result.iter().copied());
                if !whole || !results {
                    return None;
                }
                inner = Some(f.clone());
            }
            Exp::Size(..) | Exp::Assert(..) | Exp::Check(..) => {}
            _ => return None,
        }
    }
    let inner = inner?;
    let bound: Vec<_> = lam.body.stms.iter().flat_map(|s| &s.pat).chain(&lam.params).collect();
    let frees = free_vars_lam(&inner);
    (!bound.into_iter().any(|v| frees.contains(v))).then_some(inner)
}

/// A histogram per column: transposed, mapped over, transposed back.
fn columns_of(b: &mut Builder<'_>, h: Hist<'_>, inner: &Lam) -> Vec<Atom> {
    let swap = |b: &mut Builder<'_>, a: &Atom| b.emit(Exp::Rearrange(vec![1, 0], *a), "columns");
    let columns = b.size(h.dst[0], 1);
    let count = h.dst.len();
    let mut arrays = h.neutral.to_vec();
    arrays.extend(h.dst.iter().chain(h.values).map(|a| swap(b, a)));
    let out = b.map(columns, &arrays, |b, p| {
        let p: Vec<Atom> = p.iter().map(|&v| v.into()).collect();
        let lam = copy_lam(b.program, inner, &Subst::new());
        let soac = Soac::Hist {
            width: h.width,
            lam,
            neutral: p[..count].to_vec(),
            dst: p[count..2 * count].to_vec(),
            indices: h.indices,
            values: p[2 * count..].to_vec(),
        };
        b.emit_all(Exp::Soac(soac), "column").into_iter().map(Atom::Var).collect()
    });
    // A map over no columns does not know the other sizes.
    let back = out.into_iter().zip(h.dst).map(|(v, &dst)| {
        let rows = swap(b, &v.into());
        let shape = b.shape(dst);
        let from = shape.len();
        b.emit(Exp::Reshape { shape, from, array: rows }, "rows")
    });
    back.collect()
}

/// The histogram as a loop that updates in place.
fn loop_of(b: &mut Builder<'_>, h: Hist<'_>) -> Vec<Atom> {
    each_in_range(b, (h.width, h.indices), h.dst, &mut |b, k, i, state| {
        let after = combined(b, (h.lam, h.values), (k, i), state);
        let pairs = state.iter().zip(after);
        pairs.map(|(&a, x)| b.emit(Exp::Update(a, vec![i], x), "dst")).collect()
    })
}

/// What bin `i` of the arrays holds once value `k` is taken into it.
pub(crate) fn combined(
    b: &mut Builder<'_>,
    (lam, values): (&Lam, &[Atom]),
    (k, i): (Atom, Atom),
    state: &[Atom],
) -> Vec<Atom> {
    let before: Vec<Atom> = state.iter().map(|&a| b.index(a, &[i])).collect();
    let new: Vec<Atom> = values.iter().map(|&a| b.index(a, &[k])).collect();
    let args: Vec<Atom> = before.into_iter().chain(new).collect();
    applied(b, lam, &args)
}

impl Hist<'_> {
    /// The construct again, with binders of its own.
    fn again(self, b: &mut Builder<'_>) -> Exp {
        Exp::Soac(Soac::Hist {
            width: self.width,
            lam: copy_lam(b.program, self.lam, &Subst::new()),
            neutral: self.neutral.to_vec(),
            dst: self.dst.to_vec(),
            indices: self.indices,
            values: self.values.to_vec(),
        })
    }
}
