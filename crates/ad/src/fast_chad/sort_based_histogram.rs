//! The rule for histograms with any closed operator: the values sorted by bin.
//!
//! Source: Schenck et al., IFL 2023, figures 4 and 6. Within a bin the result is `((d ⊕ v₁) ⊕ ..) ⊕ vₘ` with `d` from the
//! destination, so `vⱼ_bar` is the derivative of `\x -> (lⱼ ⊕ x) ⊕ rⱼ`, with `lⱼ` what stands to its left (`d` included)
//! and `rⱼ` what stands to its right; both are segmented scans of the sorted values. The sort is by the digits of the
//! bin's number in base two, each a stable partition: work `n log w`, all of it parallel but the loop over digits.
//! Assumes an associative operator without kinks and without active free variables, and a neutral element.

use super::cotangent::Cotangent;
use super::hist::Hist;
use super::operator::applied;
use super::reverse::{Env, Reverse};
use super::scatter::in_range;
use crate::activity::active_variables;
use crate::contract::Unsupported;
use pullback_core::{Atom, Builder, Exp, Lam, Loop, LoopAttrs, LoopForm, Soac, Type, Var};
use pullback_prim::Op;

/// The values in the order of their bins.
struct Sorted {
    /// Bin of each, the number of bins for those out of range.
    bins: Atom,
    /// Where each was.
    positions: Atom,
    /// Whether it is the first, and the last, of its bin.
    firsts: Atom,
    lasts: Atom,
}

impl<'p> Reverse<'p> {
    /// Per component, the cotangents of destination and values; `bars` are those of the results, dense.
    pub(crate) fn hist_general(
        &mut self,
        h: Hist<'_>,
        bars: &[Cotangent],
    ) -> Result<Vec<(Cotangent, Cotangent)>, Unsupported> {
        let size = self.b.size(h.dst[0], 0);
        let sorted = sort(&mut self.b, h.width, h.indices, size);
        let values: Vec<Atom> =
            h.values.iter().map(|&a| self.b.emit(Exp::Gather(a, sorted.positions), "sorted")).collect();
        let lefts = segmented(&mut self.b, h, &values, sorted.firsts, false);
        let rights = segmented(&mut self.b, h, &values, sorted.lasts, true);
        let seeds: Vec<Cotangent> =
            bars.iter().map(|d| self.rows_or_zeros(h.width, d, sorted.bins, None)).collect();
        let parts = self.hist_elements(h, &sorted, &values, (&lefts, &rights), seeds)?;

        let targets = self.b.map(h.width, &[sorted.bins, sorted.positions, sorted.lasts], |b, p| {
            let inside = b.op2(Op::Lt, p[0].into(), size);
            let bin = b.select(p[2].into(), p[0].into(), Atom::i64(-1));
            vec![b.select(inside, p[1].into(), Atom::i64(-1)), b.select(inside, bin, Atom::i64(-1))]
        });
        let (to_position, to_bin) = (targets[0].into(), targets[1].into());
        let mut out = Vec::new();
        for (k, (of_dst, of_value)) in parts.into_iter().enumerate() {
            let zero = self.dense_of(h.values[k], &Cotangent::absent());
            let to_values = self.placed(h.width, to_position, &of_value, &zero);
            let to_dst = self.placed(h.width, to_bin, &of_dst, &bars[k]);
            out.push((to_dst, to_values));
        }
        Ok(out)
    }

    /// `base` with the rows of `c` at these places.
    fn placed(&mut self, width: Atom, places: Atom, c: &Cotangent, base: &Cotangent) -> Cotangent {
        if c.is_absent() {
            return c.clone();
        }
        let pairs = base.atoms.iter().zip(&c.atoms);
        let atoms = pairs.map(|(&dst, &values)| {
            self.b.emit(Exp::Soac(Soac::Scatter { width, dst, indices: places, values }), "x_bar")
        });
        Cotangent::new(base.desc.clone(), atoms.collect())
    }

    /// Per component and sorted position: the cotangent of the destination of the bin (right at the last of a bin), and
    /// that of the value.
    fn hist_elements(
        &mut self,
        h: Hist<'_>,
        sorted: &Sorted,
        values: &[Atom],
        (lefts, rights): (&[Atom], &[Atom]),
        seeds: Vec<Cotangent>,
    ) -> Result<Vec<(Cotangent, Cotangent)>, Unsupported> {
        let size = self.b.size(h.dst[0], 0);
        let count = values.len();
        let j = self.b.fresh(Type::I64, "j");
        let bin = self.b.fresh(Type::I64, "bin");
        let elems: Vec<Type> = values.iter().map(|&a| self.b.elem(a)).collect();
        let xs: Vec<Var> = elems.iter().map(|t| self.b.fresh(t.clone(), "x")).collect();
        let rows: Vec<Var> = seeds
            .iter()
            .flat_map(|c| c.atoms.clone())
            .map(|a| self.b.elem(a))
            .collect::<Vec<_>>()
            .into_iter()
            .map(|t| self.b.fresh(t, "y_bar"))
            .collect();

        self.b.open();
        let b = &mut self.b;
        let inside = b.op2(Op::Lt, bin.into(), size);
        // Nobody needs the elements that are out of range; bin 0 exists wherever one is needed, else any element serves.
        // Not the neutral one: combined with itself it may have no derivative, and the derivative of zero times NaN is NaN.
        let there = b.op2(Op::Lt, Atom::i64(0), size);
        let dsts: Vec<Atom> = {
            let out = b.if_(
                there,
                |b| {
                    let at = b.select(inside, bin.into(), Atom::i64(0));
                    h.dst.iter().map(|&d| b.index(d, &[at])).collect()
                },
                |_| xs.iter().map(|&x| x.into()).collect(),
            );
            out.into_iter().map(Atom::Var).collect()
        };
        let is_first = b.index(sorted.firsts, &[j.into()]);
        let before = or_neutral(b, is_first, h.neutral, lefts, |b| b.op2(Op::Sub, j.into(), Atom::i64(1)));
        let is_last = b.index(sorted.lasts, &[j.into()]);
        let after = or_neutral(b, is_last, h.neutral, rights, |b| {
            // The scan from the right stands reversed.
            let left = b.op2(Op::Sub, h.width, j.into());
            b.op2(Op::Sub, left, Atom::i64(2))
        });
        // Names of their own: what is differentiated with respect to.
        let ds: Vec<Var> = dsts
            .iter()
            .map(|&d| {
                let v = b.fresh(b.ty(d), "d");
                b.emit_to(vec![v], Exp::Atom(d));
                v
            })
            .collect();
        b.open();
        let args: Vec<Atom> = ds.iter().map(|&d| d.into()).chain(before).collect();
        let left = applied(b, h.lam, &args);
        let args: Vec<Atom> = left.into_iter().chain(xs.iter().map(|&x| x.into())).collect();
        let middle = applied(b, h.lam, &args);
        let args: Vec<Atom> = middle.into_iter().chain(after).collect();
        let results = applied(b, h.lam, &args);
        let body = b.close(results);

        let inputs: Vec<Var> = xs
            .iter()
            .zip(h.values)
            .chain(ds.iter().zip(h.dst))
            .filter(|(_, a)| self.is_active(**a))
            .map(|(&x, _)| x)
            .collect();
        let whole = Lam { params: inputs.clone(), body: body.clone() };
        let more = active_variables(self.b.program, &whole, &inputs);
        self.active.extend(more);
        let mut inner = Env::default();
        let mut rest = &rows[..];
        for (a, c) in body.result.iter().zip(&seeds) {
            let Some(item) = c.desc.element().cloned() else { continue };
            let (mine, others) = rest.split_at(c.atoms.len());
            rest = others;
            self.contribute(&mut inner, *a, Cotangent::new(item, mine.iter().map(|&v| v.into()).collect()));
        }
        let mut inputs = ds.clone();
        inputs.extend(&xs);
        self.rerun(&body.stms, &inputs, &mut inner)?;
        // Dense, so that they can be scattered; the sizes that this asks for come first.
        let mut outs = Vec::new();
        self.b.open();
        for &x in &inputs {
            let c = self.take(&mut inner, x);
            outs.push(if c.is_absent() { c } else { self.dense_of(x.into(), &c) });
        }
        let dense = self.b.close(Vec::new()).stms;
        for stm in self.flush_all(&inputs).into_iter().chain(dense) {
            self.b.emit_stm(stm);
        }
        let result: Vec<Atom> = outs.iter().flat_map(|c| c.atoms.clone()).collect();
        let body = self.b.close(result);
        if body.result.is_empty() {
            return Ok(vec![(Cotangent::absent(), Cotangent::absent()); count]);
        }
        let is = self.b.emit(Exp::Iota(h.width), "is");
        let params: Vec<Var> = [j, bin].into_iter().chain(xs).chain(rows).collect();
        let mut operands = vec![is, sorted.bins];
        operands.extend(values);
        operands.extend(seeds.iter().flat_map(|c| c.atoms.clone()));
        let map = Soac::Map { width: h.width, lam: Lam { params, body }, arrays: operands };
        let mut atoms = self.b.emit_all(Exp::Soac(map), "x_bar").into_iter().map(Atom::Var);
        let parts: Vec<Cotangent> = outs
            .into_iter()
            .map(|c| Cotangent::new(super::desc::array(c.desc), atoms.by_ref().take(c.atoms.len()).collect()))
            .collect();
        let (of_dst, of_values) = parts.split_at(count);
        Ok(of_dst.iter().cloned().zip(of_values.iter().cloned()).collect())
    }
}

/// `if edge then neutral else arrays[at]`
fn or_neutral(
    b: &mut Builder<'_>,
    edge: Atom,
    neutral: &[Atom],
    arrays: &[Atom],
    at: impl FnOnce(&mut Builder<'_>) -> Atom,
) -> Vec<Atom> {
    let out = b.if_(
        edge,
        |_| neutral.to_vec(),
        |b| {
            let at = at(b);
            arrays.iter().map(|&a| b.index(a, &[at])).collect()
        },
    );
    out.into_iter().map(Atom::Var).collect()
}

/// Inclusive scans that start anew where `starts` says so. From the right: over the reversed arrays, the operator's
/// arguments exchanged; the result stays reversed.
fn segmented(b: &mut Builder<'_>, h: Hist<'_>, values: &[Atom], starts: Atom, from_right: bool) -> Vec<Atom> {
    let mut arrays: Vec<Atom> = std::iter::once(starts).chain(values.iter().copied()).collect();
    if from_right {
        arrays = arrays.into_iter().map(|a| b.emit(Exp::Reverse(a), "rev")).collect();
    }
    let elems: Vec<Type> = arrays.iter().map(|&a| b.elem(a)).collect();
    let types: Vec<Type> = elems.iter().chain(&elems).cloned().collect();
    let lam = b.lam(&types, "x", |b, p| {
        let p: Vec<Atom> = p.iter().map(|&v| v.into()).collect();
        let (x, y) = p.split_at(elems.len());
        let any = b.op2(Op::Or, x[0], y[0]);
        let new = b.if_(
            y[0],
            |_| y[1..].to_vec(),
            |b| {
                let (first, second) = if from_right { (y, x) } else { (x, y) };
                let args: Vec<Atom> = first[1..].iter().chain(&second[1..]).copied().collect();
                applied(b, h.lam, &args)
            },
        );
        std::iter::once(any).chain(new.into_iter().map(Atom::Var)).collect()
    });
    let neutral = std::iter::once(Atom::bool(false)).chain(h.neutral.iter().copied()).collect();
    let scan = Soac::Scan { width: h.width, lam, neutral, arrays };
    b.emit_all(Exp::Soac(scan), "partial").into_iter().skip(1).map(Atom::Var).collect()
}

/// Sorts positions by bin, those of equal bins in their order.
fn sort(b: &mut Builder<'_>, width: Atom, indices: Atom, size: Atom) -> Sorted {
    let keys = b.map(width, &[indices], |b, p| {
        let inside = in_range(b, p[0].into(), size);
        vec![b.select(inside, p[0].into(), size)]
    });
    let is = b.emit(Exp::Iota(width), "is");
    let digits = digits_of(b, size);
    let out = b.for_loop(digits, &[keys[0].into(), is], |b, digit, state| {
        let (keys, positions) = (state[0].into(), state[1].into());
        let targets = partition(b, width, keys, digit.into());
        [keys, positions]
            .into_iter()
            .map(|values| {
                let dst = b.emit(Exp::Replicate(vec![width], Atom::i64(0)), "room");
                b.emit(Exp::Soac(Soac::Scatter { width, dst, indices: targets, values }), "sorted")
            })
            .collect()
    });
    let (bins, positions) = (out[0].into(), out[1].into());
    let js = b.emit(Exp::Iota(width), "is");
    let last = b.op2(Op::Sub, width, Atom::i64(1));
    let edges = b.map(width, &[js, bins], |b, p| {
        let (j, bin) = (p[0].into(), p[1].into());
        let edge = |b: &mut Builder<'_>, end: Atom, step: i64| -> Atom {
            let at_end = b.op2(Op::Eq, j, end);
            let differs = |b: &mut Builder<'_>| {
                let next = b.op2(Op::Add, j, Atom::i64(step));
                let other = b.index(bins, &[next]);
                vec![b.op2(Op::Ne, bin, other)]
            };
            b.if_(at_end, |_| vec![Atom::bool(true)], differs)[0].into()
        };
        vec![edge(b, Atom::i64(0), -1), edge(b, last, 1)]
    });
    Sorted { bins, positions, firsts: edges[0].into(), lasts: edges[1].into() }
}

/// The number of binary digits of a size.
fn digits_of(b: &mut Builder<'_>, size: Atom) -> Atom {
    let params = vec![(b.fresh(Type::I64, "digits"), Atom::i64(0)), (b.fresh(Type::I64, "rest"), size)];
    let (digits, rest) = (params[0].0, params[1].0);
    let cond = b.scope(|b| vec![b.op2(Op::Lt, Atom::i64(0), rest.into())]);
    let body = b.scope(|b| {
        vec![b.op2(Op::Add, digits.into(), Atom::i64(1)), b.op2(Op::Shr, rest.into(), Atom::i64(1))]
    });
    let form = LoopForm::While(cond);
    let counting = Loop { params, form, body, collect: 0, attrs: LoopAttrs::default() };
    b.emit_all(Exp::Loop(counting), "digits")[0].into()
}

/// Where each element goes if those whose digit is 0 come first, both groups in their order.
fn partition(b: &mut Builder<'_>, width: Atom, keys: Atom, digit: Atom) -> Atom {
    let ones = b.map(width, &[keys], |b, p| {
        let shifted = b.op2(Op::Shr, p[0].into(), digit);
        vec![b.op2(Op::And, shifted, Atom::i64(1))]
    });
    let ones = ones[0].into();
    let add = b.lam(&[Type::I64, Type::I64], "x", |b, p| vec![b.op2(Op::Add, p[0].into(), p[1].into())]);
    let scan = Soac::Scan { width, lam: add, neutral: vec![Atom::i64(0)], arrays: vec![ones] };
    let before = b.emit(Exp::Soac(scan), "before");
    let total = b.sum(width, ones);
    let zeros = b.op2(Op::Sub, width, total);
    let is = b.emit(Exp::Iota(width), "is");
    let targets = b.map(width, &[is, ones, before], |b, p| {
        let (i, one, ones) = (p[0].into(), p[1].into(), p[2].into());
        let low = b.op2(Op::Sub, i, ones);
        let high = b.op2(Op::Add, zeros, ones);
        let high = b.op2(Op::Sub, high, Atom::i64(1));
        let is_one = b.op2(Op::Eq, one, Atom::i64(1));
        vec![b.select(is_one, high, low)]
    });
    targets[0].into()
}
