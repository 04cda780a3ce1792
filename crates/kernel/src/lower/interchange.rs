//! Reductions inside maps, with the reduction's loop outside.
//!
//! `map (\.. -> map (\.. -> reduce ..))` reads its arrays along the dimension that is reduced. Where the elements that the
//! innermost map takes one after the other are neighbours in memory and those of the reduction are not, the loops run the
//! other way: every result is kept in memory and takes its next element in turn. For each result the order of the elements is the same, so
//! its bits are. The reduction's loop goes as far out as the results inside of it fit into a cache, at least outside the innermost map.
//!
//! Only for bodies of primitives that cannot stop the program: the order of errors would change. The reduction may stand under
//! a condition without which the result is its neutral element; results begin as that.

use super::aliasing::Roots;
use super::rep::{ArrayRep, Leaf, Rep};
use super::{Lower, Res, Val};
use crate::ir::{Ins, Operand, Order};
use pullback_base::index::IdSet;
use pullback_core::traverse::{free_vars, free_vars_exp};
use pullback_core::{Atom, Body, Exp, FusedForm, Lam, Soac, Stm, Type, Var};
use pullback_prim::{Op, Prim, Scalar};

/// Bytes of results that the reduction's loop may have inside of it, and go over again and again.
const CACHE: i64 = 256 << 10;

/// A map of the nest.
struct Level<'a> {
    width: Atom,
    params: &'a [Var],
    arrays: &'a [Atom],
    /// What stands in front of the rest: conditions, counters.
    before: &'a [Stm],
}

/// A condition, and whether it has to hold.
type Guard = (Atom, bool);

/// A nest of maps around a reduction.
struct Nest<'a> {
    levels: Vec<Level<'a>>,
    /// What the reduction stands under: where it fails, the result is the neutral element.
    guard: Option<Guard>,
    width: Atom,
    pre: Option<&'a Lam>,
    lam: &'a Lam,
    neutral: &'a [Atom],
    arrays: &'a [Atom],
    commutative: bool,
}

impl Lower<'_> {
    /// Lowers a map as several, if they have nothing to do with each other and some are better interchanged; `None`: it is
    /// something else.
    pub(super) fn in_parts(
        &mut self,
        pat: &[Var],
        width: Atom,
        lam: &Lam,
        arrays: &[Atom],
    ) -> Res<Option<Vec<Val>>> {
        if lam.body.result.len() < 2 || !reduces(&lam.body) {
            return Ok(None);
        }
        let parts = parts(lam);
        let gains = |(part, _): &(Lam, Vec<usize>)| {
            nest(width, part, arrays).is_some_and(|n| self.is_worth_it(&n) && self.sizes_agree(&n))
        };
        if parts.len() < 2 || !parts.iter().any(gains) {
            return Ok(None);
        }
        let uses: Vec<Roots> = parts.iter().map(|(part, _)| self.roots_of(part, arrays)).collect();
        let mut out: Vec<Option<Val>> = vec![None; pat.len()];
        for (at, (part, results)) in parts.into_iter().enumerate() {
            // What other parts read or have made is not written over, though nobody needs it after the map.
            let mut needed: Roots = uses[at + 1..].iter().flatten().copied().collect();
            needed.extend(out.iter().flatten().flat_map(|val| val.roots.iter().copied()));
            let here: Vec<Var> = results.iter().map(|k| pat[*k]).collect();
            let map = Soac::Map { width, lam: part, arrays: arrays.to_vec() };
            let values = self.holding(needed, |s| s.soac(&here, &map))?;
            for (k, val) in results.into_iter().zip(values) {
                out[k] = Some(val);
            }
        }
        Ok(Some(out.into_iter().flatten().map(|val| self.made(val)).collect()))
    }
    /// What the variables and arrays that a function reads may lie in.
    fn roots_of(&self, lam: &Lam, arrays: &[Atom]) -> Roots {
        let free = free_vars(&lam.body);
        let rows =
            lam.params.iter().zip(arrays).filter(|(p, _)| free.contains(p)).filter_map(|(_, a)| a.var());
        free.iter().copied().chain(rows).flat_map(|v| self.owners.of(Some(v))).collect()
    }
    /// Lowers a map whose loops are better interchanged; `None`: it is something else.
    pub(super) fn interchanged(
        &mut self,
        pat: &[Var],
        width: Atom,
        lam: &Lam,
        arrays: &[Atom],
    ) -> Res<Option<Vec<Val>>> {
        let Some(nest) = nest(width, lam, arrays) else { return Ok(None) };
        if !self.is_worth_it(&nest) || !self.sizes_agree(&nest) {
            return Ok(None);
        }
        let mut dims = Vec::new();
        for level in &nest.levels {
            dims.push(self.size(level.width));
        }
        let n = self.size(nest.width);
        let mut out = Vec::new();
        // Bytes of one result of all outputs.
        let mut bytes = 0;
        for (v, neutral) in pat.iter().zip(nest.neutral) {
            let elem = self.ty(*v).base().clone();
            let array = self.array_for(Some(*v), dims.clone(), &elem)?;
            let Type::Scalar(s) = elem else { return Ok(None) };
            bytes += s.bytes() as i64;
            let value = self.scalar(*neutral);
            let leaf = Leaf::Same { value, ty: crate::ir::Ty::Scalar(s) };
            let strides = vec![Operand::i64(0); dims.len()];
            self.copy(&array, &ArrayRep { dims: dims.clone(), strides, leaves: vec![leaf], packed: true })?;
            out.push(array);
        }
        self.as_far_out_as_fits(&nest, &dims, (n, bytes), &out, 0)?;
        let values = out.into_iter().map(|a| Val { rep: Rep::Array(a), roots: self.owners.fresh() });
        Ok(Some(values.collect()))
    }
    /// The loops, that of the reduction outside map number `at` if the results of the maps from there on, each of so many bytes, fit into
    /// a cache, else further in.
    fn as_far_out_as_fits(
        &mut self,
        nest: &Nest<'_>,
        dims: &[Operand],
        (n, bytes): (Operand, i64),
        out: &[ArrayRep],
        at: usize,
    ) -> Res<()> {
        if at + 1 == nest.levels.len() {
            return self.ordered(nest, dims, n, out, at);
        }
        let count = self.product(&dims[at..]);
        let inside = self.mul(count, Operand::i64(bytes));
        let small = self.op(Op::Le, Scalar::I64, &[inside, Operand::i64(CACHE)]);
        if let Some(r) = small.as_reg() {
            self.regs[r].facts.choice = true;
        }
        let (then, ()) = self.block(|s| s.ordered(nest, dims, n, out, at))?;
        let (otherwise, ()) = self.block(|s| s.as_far_out_as_fits(nest, dims, (n, bytes), out, at + 1))?;
        self.emit(Ins::If { condition: small, then, otherwise });
        Ok(())
    }
    /// The loops, that of the reduction outside map number `at`.
    fn ordered(
        &mut self,
        nest: &Nest<'_>,
        dims: &[Operand],
        n: Operand,
        out: &[ArrayRep],
        at: usize,
    ) -> Res<()> {
        self.owners.enter();
        self.level(nest, dims, n, out, (0, at), (None, &mut Vec::new()))?;
        self.owners.leave();
        Ok(())
    }
    fn level(
        &mut self,
        nest: &Nest<'_>,
        dims: &[Operand],
        n: Operand,
        out: &[ArrayRep],
        (depth, at): (usize, usize),
        (t, ix): (Option<Operand>, &mut Vec<Operand>),
    ) -> Res<()> {
        if depth == at && t.is_none() {
            let ix = ix.clone();
            let order = if sum(nest).is_some() { Order::Any(Vec::new()) } else { Order::Given };
            return self.count(n, order, |s, t| {
                s.level(nest, dims, n, out, (depth, at), (Some(t), &mut ix.clone()))
            });
        }
        match nest.levels.get(depth) {
            Some(level) => {
                let ix = ix.clone();
                self.count(dims[depth], Order::Any(Vec::new()), |s, i| {
                    s.bind_rows(level.params, level.arrays, i)?;
                    s.body(&Body { stms: level.before.to_vec(), result: Vec::new() })?;
                    let mut ix = ix.clone();
                    ix.push(i);
                    s.level(nest, dims, n, out, (depth + 1, at), (t, &mut ix))
                })
            }
            None => {
                let t = t.unwrap_or(Operand::i64(0));
                let Some((condition, holds)) = nest.guard else { return self.step(nest, t, out, ix) };
                let condition = self.scalar(condition);
                let (step, ()) = self.block(|s| s.step(nest, t, out, ix))?;
                let (then, otherwise) = if holds { (step, Vec::new()) } else { (Vec::new(), step) };
                self.emit(Ins::If { condition, then, otherwise });
                Ok(())
            }
        }
    }
    /// The results at an index take the element `t` in.
    fn step(&mut self, nest: &Nest<'_>, t: Operand, out: &[ArrayRep], ix: &[Operand]) -> Res<()> {
        let m = out.len();
        let made = match nest.pre {
            Some(pre) => {
                self.bind_rows(&pre.params, nest.arrays, t)?;
                self.results(&pre.body)?
            }
            None => Vec::new(),
        };
        if let (Some(s), [array]) = (sum(nest), out) {
            let value = match (&made[..], nest.arrays) {
                ([val], _) => val.rep.clone(),
                (_, [a]) => {
                    let from = self.array(*a);
                    self.element(&from, &[t], &Type::Scalar(s))?
                }
                _ => panic!("a sum of one element"),
            };
            let Rep::Scalar(value) = value else { panic!("a sum of scalars") };
            let index = self.position(array, ix);
            if let Leaf::Memory { pointer, ty } = array.leaves[0] {
                self.emit(Ins::Accumulate { pointer, index, value, ty, atomic: false });
            }
            return Ok(());
        }
        for (p, array) in nest.lam.params.iter().zip(out) {
            let ty = self.ty(*p).clone();
            let rep = self.element(array, ix, &ty)?;
            self.bind(*p, rep, Roots::new());
        }
        match nest.pre {
            Some(_) => {
                for (p, val) in nest.lam.params[m..].iter().zip(made) {
                    self.bind_val(*p, val);
                }
            }
            None => self.bind_rows(&nest.lam.params[m..], nest.arrays, t)?,
        }
        let next = self.results(&nest.lam.body)?;
        for ((array, val), p) in out.iter().zip(next).zip(&nest.lam.params) {
            let ty = self.ty(*p).clone();
            self.store(array, ix, &val.rep, &ty)?;
        }
        Ok(())
    }
    /// Whether neighbours of the innermost map are neighbours in memory, and those of the reduction are not.
    fn is_worth_it(&self, nest: &Nest<'_>) -> bool {
        let last = nest.levels.len() - 1;
        let mut gains = false;
        for a in nest.arrays {
            let Some((strides, through)) = self.strides(nest, *a) else { return false };
            let along = strides.get(through.len()).copied();
            let near = |x: Option<Operand>| x.and_then(Operand::as_i64).is_some_and(|s| s == 1 || s == 0);
            let innermost = through.iter().position(|level| *level == last);
            match innermost {
                // Does not vary with the innermost map: read once for its whole loop.
                None => {}
                Some(k) => gains |= near(strides.get(k).copied()) && !near(along),
            }
            if innermost.is_some() && near(along) && !near(innermost.and_then(|k| strides.get(k).copied())) {
                return false;
            }
        }
        gains
    }
    /// The strides of the array that an atom is a part of, and the maps that select the part.
    fn strides(&self, nest: &Nest<'_>, a: Atom) -> Option<(Vec<Operand>, Vec<usize>)> {
        let mut through = Vec::new();
        let mut at = a;
        while let Some((level, array)) = row_of(nest, at) {
            through.insert(0, level);
            at = array;
        }
        match self.env.get(&at.var()?)? {
            Rep::Array(array) => Some((array.strides.clone(), through)),
            _ => None,
        }
    }
    /// Whether all widths are known before the nest, and known to be those of the arrays.
    fn sizes_agree(&self, nest: &Nest<'_>) -> bool {
        let outside = |a: Atom| a.var().is_none_or(|v| self.env.contains_key(&v) && !is_bound(nest, v));
        let fits = |width: Atom, arrays: &[Atom]| {
            let name = self.called(self.shapes.name(width));
            arrays.iter().all(|a| {
                let outer = a.var().and_then(|v| self.shapes.of(v).first().copied());
                outer.is_some_and(|d| self.called(d) == name)
            })
        };
        nest.levels.iter().all(|l| outside(l.width) && fits(l.width, l.arrays))
            && outside(nest.width)
            && fits(nest.width, nest.arrays)
            && nest.neutral.iter().all(|a| outside(*a))
    }
}

fn is_bound(nest: &Nest<'_>, v: Var) -> bool {
    nest.levels.iter().any(|l| l.params.contains(&v))
}

/// The map whose parameter the atom is, and the array that it is a row of.
fn row_of(nest: &Nest<'_>, a: Atom) -> Option<(usize, Atom)> {
    let v = a.var()?;
    nest.levels.iter().enumerate().find_map(|(k, level)| {
        let p = level.params.iter().position(|p| *p == v)?;
        Some((k, level.arrays[p]))
    })
}

/// The nest that a map is, if there is nothing else in it but conditions and counters.
fn nest<'a>(width: Atom, lam: &'a Lam, arrays: &'a [Atom]) -> Option<Nest<'a>> {
    let level = |width: Atom, lam: &'a Lam, arrays: &'a [Atom]| {
        let (_, before) = lam.body.stms.split_last()?;
        before.iter().all(is_counting).then_some(Level { width, params: &lam.params, arrays, before })
    };
    let mut levels = vec![level(width, lam, arrays)?];
    let mut body = &lam.body;
    let mut guard = None;
    let mut other: &[Atom] = &[];
    loop {
        let stm = body.stms.last()?;
        let results: Vec<Var> = body.result.iter().filter_map(|a| a.var()).collect();
        if results != stm.pat || results.len() != body.result.len() {
            return None;
        }
        let soac = match &stm.exp {
            Exp::Soac(soac) => soac,
            Exp::If(c, then, otherwise) if guard.is_none() => {
                let holds = otherwise.stms.is_empty();
                let (inside, outside) = if holds { (then, otherwise) } else { (otherwise, then) };
                (inside.stms.len() == 1 && outside.stms.is_empty()).then_some(())?;
                (guard, other, body) = (Some((*c, holds)), &outside.result, inside);
                continue;
            }
            _ => return None,
        };
        let (width, pre, lam, neutral, arrays, commutative) = match soac {
            Soac::Map { width, lam, arrays } if guard.is_none() => {
                levels.push(level(*width, lam, arrays)?);
                body = &lam.body;
                continue;
            }
            Soac::Reduce { width, lam, neutral, arrays, commutative } => {
                (*width, None, lam, neutral, arrays, *commutative)
            }
            Soac::Fused { form: FusedForm::Reduce { commutative }, width, pre, lam, neutral, arrays } => {
                (pre.body.result.len() == neutral.len()).then_some(())?;
                (*width, Some(pre), lam, neutral, arrays, *commutative)
            }
            Soac::Map { .. }
            | Soac::Fused { .. }
            | Soac::Scan { .. }
            | Soac::Hist { .. }
            | Soac::Scatter { .. } => return None,
        };
        let plain = pre.is_none_or(|pre| is_plain(&pre.body)) && is_plain(&lam.body);
        let fits = guard.is_none() || other == neutral.as_slice();
        return (plain && fits).then_some(Nest {
            levels,
            guard,
            width,
            pre,
            lam,
            neutral,
            arrays,
            commutative,
        });
    }
}

/// Whether there is a reduction in a body, in maps or under conditions: without one there is nothing to interchange.
fn reduces(body: &Body) -> bool {
    body.stms.iter().any(|stm| match &stm.exp {
        Exp::Soac(Soac::Reduce { .. } | Soac::Fused { .. }) => true,
        Exp::Soac(Soac::Map { lam, .. }) => reduces(&lam.body),
        Exp::If(_, then, otherwise) => reduces(then) || reduces(otherwise),
        _ => false,
    })
}

/// Whether a statement of a map is so cheap that it may be done for each element of the reduction, and cannot stop the program.
fn is_counting(stm: &Stm) -> bool {
    match &stm.exp {
        Exp::Prim(prim @ Prim::Op(_, s), _) => !s.is_float() && !prim.may_stop(),
        Exp::Iota(_) | Exp::Size(..) => true,
        _ => false,
    }
}

/// The type of the elements, if the reduction is a sum of floats that may be taken in any order.
fn sum(nest: &Nest<'_>) -> Option<Scalar> {
    match &nest.lam.body.stms[..] {
        [Stm { pat, exp: Exp::Prim(Prim::Op(Op::Add, s), args) }] if nest.commutative && s.is_float() => {
            let given: Vec<Atom> = nest.lam.params.iter().map(|p| Atom::Var(*p)).collect();
            let result: Vec<Atom> = pat.iter().map(|v| Atom::Var(*v)).collect();
            (*args == given && nest.lam.body.result == result).then_some(*s)
        }
        _ => None,
    }
}

/// Only primitives that cannot stop the program.
fn is_plain(body: &Body) -> bool {
    body.stms.iter().all(|s| match &s.exp {
        Exp::Prim(prim, _) => !prim.may_stop(),
        Exp::Atom(_) => true,
        _ => false,
    })
}

/// The function without parameters that it does not mention and that are counters; the arrays of the others.
fn without_counters(lam: Lam, arrays: &[Atom], is_counter: &dyn Fn(Atom) -> bool) -> (Lam, Vec<Atom>) {
    let used = free_vars(&lam.body);
    let kept = |(p, a): &(&Var, &Atom)| used.contains(p) || !is_counter(**a);
    let (params, arrays) = lam.params.iter().zip(arrays).filter(kept).unzip();
    (Lam { params, body: lam.body }, arrays)
}

/// The parts of a function that have nothing to do with each other, with the numbers of their results: maps inside are
/// taken apart first.
pub(super) fn parts(lam: &Lam) -> Vec<(Lam, Vec<usize>)> {
    let mut stms = Vec::new();
    let iota = |s: &Stm| if let Exp::Iota(n) = s.exp { Some((s.pat[0], n)) } else { None };
    let counters: Vec<(Var, Atom)> = lam.body.stms.iter().filter_map(iota).collect();
    for stm in &lam.body.stms {
        match &stm.exp {
            Exp::Soac(Soac::Map { width, lam, arrays }) => {
                for (part, results) in parts(lam) {
                    let pat = results.iter().map(|k| stm.pat[*k]).collect();
                    let (lam, arrays) = without_counters(part, arrays, &|a| {
                        counters.iter().any(|(v, n)| Atom::Var(*v) == a && n == width)
                    });
                    stms.push(Stm { pat, exp: Exp::Soac(Soac::Map { width: *width, lam, arrays }) });
                }
            }
            _ => stms.push(stm.clone()),
        }
    }
    let mut out: Vec<(Lam, Vec<usize>)> = Vec::new();
    let mut taken = vec![false; stms.len()];
    let mut seen: Vec<IdSet<Var>> = Vec::new();
    // What each result needs, and which results need something in common.
    for (k, result) in lam.body.result.iter().enumerate() {
        let mut needed: IdSet<Var> = result.var().into_iter().collect();
        for stm in stms.iter().rev() {
            if stm.pat.iter().any(|v| needed.contains(v)) {
                needed.extend(free_vars_exp(&stm.exp));
            }
        }
        let made: IdSet<Var> =
            needed.iter().copied().filter(|v| stms.iter().any(|s| s.pat.contains(v))).collect();
        match seen.iter().position(|other| made.iter().any(|v| other.contains(v))) {
            Some(at) => {
                seen[at].extend(made);
                out[at].1.push(k);
            }
            None => {
                seen.push(made);
                out.push((Lam { params: lam.params.clone(), body: Body::default() }, vec![k]));
            }
        }
    }
    for ((part, results), made) in out.iter_mut().zip(&seen) {
        for (stm, taken) in stms.iter().zip(&mut taken) {
            if stm.pat.iter().any(|v| made.contains(v)) {
                part.body.stms.push(stm.clone());
                *taken = true;
            }
        }
        part.body.result = results.iter().map(|k| lam.body.result[*k]).collect();
    }
    // Something that no result needs may stop the program; and parts may have met only later.
    let shared = stms.iter().any(|s| seen.iter().filter(|m| s.pat.iter().any(|v| m.contains(v))).count() > 1);
    if shared || taken.contains(&false) || out.len() < 2 {
        let whole = Body { stms, result: lam.body.result.clone() };
        return vec![(Lam { params: lam.params.clone(), body: whole }, (0..lam.body.result.len()).collect())];
    }
    out
}
