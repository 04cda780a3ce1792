//! The rule for scatter, and reading rows at indices that may be out of range.
//!
//! Source: Schenck et al., SC 2022, section IV-D; that of several writes to a cell the last one wins is the meaning of
//! scatter here, so the winners are found by scattering positions. Indices known to differ need no winners.
//!
//! A write of few elements into an array that costs the program nothing (one updated before, or carried by a loop) must not
//! cost the derivative its size: whether there are few is tested when the program runs, and then the rule is the one of the
//! loop that the construct means. The same holds for rows that are not written because their indices are out of range,
//! if the array of rows was made elsewhere.

use super::cotangent::Cotangent;
use super::reverse::{Env, Reverse};
use crate::contract::Unsupported;
use crate::tangent::zero_array;
use pullback_core::{Atom, Body, Builder, Exp, Soac, Stm, Type, Var};
use pullback_prim::Op;

/// So many times more cells (or rows) than writes, and the writes are few.
const FEW: i64 = 8;

impl<'p> Reverse<'p> {
    /// Every value that won gets the cotangent of its cell, and written cells become zero.
    pub(crate) fn scatter(
        &mut self,
        stm: &Stm,
        (width, dst, indices, values): (Atom, Atom, Atom, Atom),
        c: Cotangent,
        env: &mut Env,
    ) -> Result<Vec<Stm>, Unsupported> {
        self.rule("fast_chad.scatter", stm);
        let distinct = indices.var().is_some_and(|v| self.distinct.contains(&v));
        let cells = !distinct && self.is_active(values) && self.may_be_small(stm, dst);
        let rows = self.may_skip_rows(stm, &[values], env);
        if cells || rows {
            let writes = Writes { cells, rows, width, dst, indices };
            let again = |_: &mut Builder<'_>| Exp::Soac(Soac::Scatter { width, dst, indices, values });
            let small = |b: &mut Builder<'_>| loop_of(b, width, dst, indices, values);
            return self.small_or_large(stm, writes, vec![c], env, small, again);
        }
        let d = self.dense_of(stm.pat[0].into(), &c);
        let Some(&bar) = d.atoms.first() else { return Ok(vec![stm.clone()]) };
        if self.is_active(values) {
            let size = self.b.size(bar, 0);
            let winners = if distinct { None } else { Some(self.winners(width, size, indices)) };
            let part = self.rows_or_zeros(width, &d, indices, winners);
            let part = self.with_shape(values, part);
            self.contribute(env, values, part);
        }
        if self.is_active(dst) {
            let mut atoms = Vec::new();
            for &bar in &d.atoms {
                let zeros = zero_rows(&mut self.b, width, bar);
                let cleared = Soac::Scatter { width, dst: bar, indices, values: zeros };
                atoms.push(self.b.emit(Exp::Soac(cleared), "x_bar"));
            }
            self.contribute(env, dst, Cotangent::new(d.desc, atoms));
        }
        Ok(vec![stm.clone()])
    }

    /// Per cell the position that wrote it last, -1 if none did.
    fn winners(&mut self, width: Atom, size: Atom, indices: Atom) -> Atom {
        let none = self.b.emit(Exp::Replicate(vec![size], Atom::i64(-1)), "none");
        let is = self.b.emit(Exp::Iota(width), "is");
        let winners = Soac::Scatter { width, dst: none, indices, values: is };
        self.b.emit(Exp::Soac(winners), "winners")
    }

    /// Row `indices[i]` of the arrays of `d`; zeros where that is out of range, or where `winners` names for it another
    /// position than `i`.
    pub(crate) fn rows_or_zeros(
        &mut self,
        width: Atom,
        d: &Cotangent,
        indices: Atom,
        winners: Option<Atom>,
    ) -> Cotangent {
        let (Some(&first), Some(_)) = (d.atoms.first(), d.desc.element()) else { return Cotangent::absent() };
        let size = self.b.size(first, 0);
        let shapes: Vec<(Vec<Atom>, Type)> =
            d.atoms.iter().map(|&a| (self.b.shape(a).split_off(1), self.b.elem(a))).collect();
        let is = self.b.emit(Exp::Iota(width), "is");
        let rows = self.b.map(width, &[indices, is], |b, p| {
            let i = p[0].into();
            let mut here = in_range(b, i, size);
            if let Some(winners) = winners {
                let won = |b: &mut Builder<'_>| {
                    let winner = b.index(winners, &[i]);
                    vec![b.op2(Op::Eq, winner, p[1].into())]
                };
                here = b.if_(here, won, |_| vec![Atom::bool(false)])[0].into();
            }
            let read = |b: &mut Builder<'_>| d.atoms.iter().map(|&a| b.index(a, &[i])).collect();
            let zeros = |b: &mut Builder<'_>| {
                shapes.iter().map(|(shape, ty)| zero_of(b, shape.clone(), ty)).collect()
            };
            b.if_(here, read, zeros).into_iter().map(Atom::Var).collect()
        });
        Cotangent::new(d.desc.clone(), rows.into_iter().map(Atom::Var).collect())
    }

    /// Whether the statement may write few elements into a large array that nobody has paid for, and that was not yet
    /// asked.
    pub(crate) fn may_be_small(&self, stm: &Stm, dst: Atom) -> bool {
        let unpaid = dst.var().is_some_and(|v| self.unpaid.contains(&v));
        unpaid && !stm.pat.iter().any(|v| self.large.contains(v))
    }

    /// Whether the statement may write few of many rows that it did not pay for, and that was not yet asked.
    pub(crate) fn may_skip_rows(&self, stm: &Stm, values: &[Atom], env: &Env) -> bool {
        let unpaid = |v: &Var| env.accs.contains_key(v) || self.unpaid.contains(v);
        let rows = |&a: &Atom| self.is_active(a) && self.b.ty(a).rank() > 1;
        values.iter().any(|a| rows(a) && a.var().is_some_and(|v| unpaid(&v)))
            && !stm.pat.iter().any(|v| self.large.contains(v))
    }

    /// `if there are few writes then the loop else the construct again`.
    pub(crate) fn small_or_large(
        &mut self,
        stm: &Stm,
        writes: Writes,
        cts: Vec<Cotangent>,
        env: &mut Env,
        small: impl FnOnce(&mut Builder<'p>) -> Vec<Atom>,
        again: impl FnOnce(&mut Builder<'p>) -> Exp,
    ) -> Result<Vec<Stm>, Unsupported> {
        let mut large: Vec<Var> = Vec::new();
        let build = |b: &mut Builder<'p>| {
            let few = writes.are_few(b);
            b.open();
            let results = small(b);
            let then = b.close(results);
            b.open();
            let exp = again(b);
            large = b.emit_all(exp, "y");
            let otherwise = b.close(large.iter().map(|&v| v.into()).collect());
            b.emit_all(Exp::If(few, then, otherwise), "y").into_iter().map(Atom::Var).collect()
        };
        self.b.open();
        let results: Vec<Atom> = build(&mut self.b);
        for (&v, a) in stm.pat.iter().zip(results) {
            self.b.emit_to(vec![v], Exp::Atom(a));
        }
        let Body { stms, .. } = self.b.close(Vec::new());
        self.large.extend(large);
        let new = Body { stms: stms.clone(), result: Vec::new() };
        self.activate(&new, &[]);
        for (&v, c) in stm.pat.iter().zip(cts) {
            env.cts.insert(v, c);
        }
        self.stms(&stms, env)
    }
}

/// What an indexed write is asked before its rule is chosen.
pub(crate) struct Writes {
    /// Whether the writes may be few beside the cells of the destination.
    pub(crate) cells: bool,
    /// Whether they may be few beside the rows that are given.
    pub(crate) rows: bool,
    pub(crate) width: Atom,
    pub(crate) dst: Atom,
    pub(crate) indices: Atom,
}

impl Writes {
    fn are_few(&self, b: &mut Builder<'_>) -> Atom {
        let size = b.size(self.dst, 0);
        let few = |b: &mut Builder<'_>, count: Atom, of: Atom| {
            let scaled = b.op2(Op::Mul, count, Atom::i64(FEW));
            b.op2(Op::Lt, scaled, of)
        };
        let cells = if self.cells { few(b, self.width, size) } else { Atom::bool(false) };
        if !self.rows {
            return cells;
        }
        let inside = b.map(self.width, &[self.indices], |b, i| {
            let inside = in_range(b, i[0].into(), size);
            vec![b.select(inside, Atom::i64(1), Atom::i64(0))]
        });
        let written = b.sum(self.width, inside[0].into());
        let rows = few(b, written, self.width);
        b.op2(Op::Or, cells, rows)
    }
}

/// `0 <= i < n`
pub(crate) fn in_range(b: &mut Builder<'_>, i: Atom, n: Atom) -> Atom {
    let below = b.op2(Op::Lt, i, n);
    let above = b.op2(Op::Le, Atom::i64(0), i);
    b.op2(Op::And, above, below)
}

/// What happens to arrays for a number of a loop and the index that it has.
type Change<'a> = dyn FnMut(&mut Builder<'_>, Atom, Atom, &[Atom]) -> Vec<Atom> + 'a;

/// A loop over so many indices: the arrays after `change`, one index after the other, where the index is in range.
pub(crate) fn each_in_range(
    b: &mut Builder<'_>,
    (width, indices): (Atom, Atom),
    dst: &[Atom],
    change: &mut Change<'_>,
) -> Vec<Atom> {
    let size = b.size(dst[0], 0);
    let out = b.for_loop(width, dst, |b, k, state| {
        let i = b.index(indices, &[k.into()]);
        let inside = in_range(b, i, size);
        let state: Vec<Atom> = state.iter().map(|&v| v.into()).collect();
        let there = |b: &mut Builder<'_>| change(b, k.into(), i, &state);
        b.if_(inside, there, |_| state.clone()).into_iter().map(Atom::Var).collect()
    });
    out.into_iter().map(Atom::Var).collect()
}

/// `width` zeros like the elements of an array of cotangents.
fn zero_rows(b: &mut Builder<'_>, width: Atom, like: Atom) -> Atom {
    let mut shape = b.shape(like);
    shape[0] = width;
    let ty = b.ty(like);
    zero_array(b, shape, &ty)
}

/// The zero of the elements of an array of cotangents.
pub(crate) fn zero_row(b: &mut Builder<'_>, like: Atom) -> Atom {
    zero_part(b, like, 1)
}

/// The zero of what lies below so many indices of an array of cotangents.
pub(crate) fn zero_part(b: &mut Builder<'_>, like: Atom, depth: usize) -> Atom {
    let shape = b.shape(like).split_off(depth);
    let ty = b.ty(like).peel(depth).cloned().unwrap_or_else(|| b.elem(like));
    zero_of(b, shape, &ty)
}

fn zero_of(b: &mut Builder<'_>, shape: Vec<Atom>, ty: &Type) -> Atom {
    match ty {
        Type::Scalar(s) => Atom::Const(s.zero()),
        Type::Array(_) => zero_array(b, shape, ty),
        Type::Sum(_) | Type::Named(_) | Type::Tuple(_) | Type::Acc(_) => {
            b.emit(Exp::Inject(ty.clone(), 0, Vec::new()), "zero")
        }
    }
}

/// The scatter as a loop that updates in place.
fn loop_of(b: &mut Builder<'_>, width: Atom, dst: Atom, indices: Atom, values: Atom) -> Vec<Atom> {
    let size = b.size(dst, 0);
    let out = b.for_loop(width, &[dst], |b, k, state| {
        let state: Atom = state[0].into();
        let i = b.index(indices, &[k.into()]);
        let inside = in_range(b, i, size);
        let write = |b: &mut Builder<'_>| {
            let x = b.index(values, &[k.into()]);
            vec![b.emit(Exp::Update(state, vec![i], x), "dst")]
        };
        b.if_(inside, write, |_| vec![state]).into_iter().map(Atom::Var).collect()
    });
    out.into_iter().map(Atom::Var).collect()
}
