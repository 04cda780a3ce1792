//! Concatenations, whose parts are made where they belong.
//!
//! A part that is made in the same body, and only reshaped on the way, is asked for at its place in the whole (`Lower::wanted`). The
//! whole is then made before the first part for which all sizes are known; what is made before that, or elsewhere, is copied. Numbers of which
//! sizes are computed later in the body, and that cannot stop the program, are computed then.
//! Where the whole is asked for at a place itself, the parts are made there if their sizes are known to fill it.
//! The whole has the roots of the parts that lie in it: nobody writes over one while the other is needed.

use super::rep::{ArrayRep, Leaf, Rep, has_boxes};
use super::{Lower, Res, Val};
use crate::ir::Operand;
use pullback_base::index::{IdMap, IdSet};
use pullback_core::shapes::Dim;
use pullback_core::{Atom, Body, Exp, Shaped, Stm, Var};
use pullback_prim::{Op, Scalar};
use std::collections::BTreeSet;

/// A concatenation of a body.
#[derive(Debug)]
pub(super) struct Whole {
    result: Var,
    parts: Vec<Part>,
    /// The memory, once it is there.
    memory: Option<Vec<Leaf>>,
}

#[derive(Debug)]
struct Part {
    /// The variable in the concatenation.
    array: Var,
    /// The variable for which the elements are made.
    maker: Var,
    /// Whether this body makes them, and for no other part.
    here: bool,
    place: Option<ArrayRep>,
}

/// The concatenations of a body.
pub(super) fn wholes(body: &Body) -> Vec<Whole> {
    let mut out = Vec::new();
    if !body.stms.iter().any(|s| matches!(s.exp, Exp::Concat(_))) {
        return out;
    }
    let made = body.stms.iter().flat_map(|stm| stm.pat.iter().map(move |v| (*v, stm)));
    let made: IdMap<Var, &Stm> = made.collect();
    let mut taken: IdSet<Var> = IdSet::new();
    for stm in &body.stms {
        let (Exp::Concat(arrays), [result]) = (&stm.exp, &stm.pat[..]) else { continue };
        let part = |a: &Atom| {
            let maker = maker(&made, a.var()?);
            let here = made.get(&maker).is_some_and(|stm| makes_anew(&stm.exp)) && taken.insert(maker);
            Some(Part { array: a.var()?, maker, here, place: None })
        };
        let parts: Option<Vec<Part>> = arrays.iter().map(part).collect();
        out.extend(parts.map(|parts| Whole { result: *result, parts, memory: None }));
    }
    out
}

/// Where the numbers of a body are computed that arithmetic alone gives and that cannot stop the program.
pub(super) struct Numbers<'a> {
    stms: &'a [Stm],
    at: IdMap<Var, usize>,
}

impl<'a> Numbers<'a> {
    /// Those of a body; of one without concatenations nobody asks for them.
    pub(super) fn of(body: &'a Body, wholes: &[Whole]) -> Numbers<'a> {
        let stms = if wholes.is_empty() { &[] } else { &body.stms[..] };
        let cannot_stop = |stm: &Stm| matches!(&stm.exp, Exp::Prim(prim, _) if !prim.may_stop());
        let numbers = stms.iter().enumerate().filter(|(_, stm)| cannot_stop(stm));
        Numbers { stms, at: numbers.map(|(k, stm)| (stm.pat[0], k)).collect() }
    }
}

/// The variable for which the elements of another one were made.
fn maker(made: &IdMap<Var, &Stm>, mut v: Var) -> Var {
    while let Some(Exp::Atom(Atom::Var(w)) | Exp::Reshape { array: Atom::Var(w), .. }) =
        made.get(&v).map(|stm| &stm.exp)
    {
        v = *w;
    }
    v
}

/// Whether the elements get memory of their own.
fn makes_anew(exp: &Exp) -> bool {
    matches!(exp, Exp::Soac(_) | Exp::ArrayLit(..) | Exp::Gather(..) | Exp::Rotate(..))
}

impl Lower<'_> {
    /// Asks that what a statement makes be made in the concatenations that it is a part of. Some `numbers` may be computed for that.
    pub(super) fn want_in_wholes(
        &mut self,
        wholes: &mut [Whole],
        stm: &Stm,
        numbers: &Numbers<'_>,
    ) -> Res<()> {
        for whole in wholes {
            let is_made = |part: &Part| part.here && stm.pat.contains(&part.maker);
            if !whole.parts.iter().any(is_made) {
                continue;
            }
            if let Some(place) = self.wanted.get(&whole.result) {
                if !(place.packed && place.in_memory() && self.is_filled(whole)) {
                    continue;
                }
                whole.memory = Some(place.leaves.clone());
            }
            let sizes: Vec<Vec<Dim>> = whole.parts.iter().map(|p| self.shapes.of(p.maker).to_vec()).collect();
            for d in sizes.iter().flatten() {
                self.compute_early(*d, numbers)?;
            }
            if !sizes.iter().flatten().all(|d| self.is_in_scope(*d)) {
                continue;
            }
            let Some(dims) = sizes.iter().map(|d| self.known_sizes(d)).collect::<Option<Vec<_>>>() else {
                continue;
            };
            let counts: Vec<Operand> = sizes.iter().zip(&dims).map(|(s, d)| self.counted(s, d)).collect();
            let elem = self.ty(whole.result).base().clone();
            let memory = match &whole.memory {
                Some(memory) => memory.clone(),
                None => {
                    let count = self.checked_sum(&counts);
                    self.new_array(vec![count], &elem)?.leaves
                }
            };
            whole.memory = Some(memory.clone());
            let mut start = Operand::i64(0);
            for ((part, dims), count) in whole.parts.iter_mut().zip(dims).zip(counts) {
                if part.here && stm.pat.contains(&part.maker) {
                    let leaves = memory.iter().map(|leaf| self.moved(*leaf, start, Some(count))).collect();
                    let strides = self.row_major(&dims);
                    let place = ArrayRep { dims, strides, leaves, packed: true };
                    self.wanted.insert(part.maker, place.clone());
                    part.place = Some(place);
                }
                start = self.add(start, count);
            }
        }
        Ok(())
    }
    /// Whether the parts have as many elements together as the whole by its name, whatever is checked later.
    fn is_filled(&self, whole: &Whole) -> bool {
        let sizes = |v: Var| self.shapes.of(v).split_first();
        let all = sizes(whole.result);
        let fits = |part: &Part| match (sizes(part.array), all) {
            (Some((Dim::Const(_), row)), Some((_, rows))) => row == rows && part.array == part.maker,
            _ => false,
        };
        whole.parts.iter().all(fits) && matches!(all, Some((Dim::Const(_), _)))
    }
    /// Computes the number that a size is named after, if it is arithmetic on what is there.
    fn compute_early(&mut self, d: Dim, numbers: &Numbers<'_>) -> Res<()> {
        let Dim::Value(v) = d else { return Ok(()) };
        for k in self.arithmetic(v, numbers).unwrap_or_default() {
            let stm = &numbers.stms[k];
            self.stm(stm, &[])?;
            self.early.extend(stm.pat.iter().copied());
        }
        Ok(())
    }
    /// The statements that compute a number from what is there, in order; `None` if others are needed.
    fn arithmetic(&self, v: Var, numbers: &Numbers<'_>) -> Option<BTreeSet<usize>> {
        let (mut open, mut needed) = (vec![v], BTreeSet::new());
        while let Some(v) = open.pop() {
            if self.env.contains_key(&v) {
                continue;
            }
            let k = *numbers.at.get(&v)?;
            if needed.insert(k) {
                open.extend(numbers.stms[k].exp.atoms().into_iter().filter_map(|a| a.var()));
            }
        }
        Some(needed)
    }
    /// Whether what a size is named after is there.
    fn is_in_scope(&self, d: Dim) -> bool {
        match d {
            Dim::Const(_) => true,
            Dim::Size(v, _) | Dim::Value(v) => self.env.contains_key(&v),
            Dim::Unknown => false,
        }
    }
    /// How many elements there are, of which there are not too many. A part of less than none stops the program when it is made; others may
    /// be made before.
    fn counted(&mut self, names: &[Dim], sizes: &[Operand]) -> Operand {
        let room = |(name, n): (&Dim, &Operand)| match name {
            Dim::Size(..) => *n,
            Dim::Const(k) => Operand::i64((*k).max(0)),
            Dim::Value(_) | Dim::Unknown => self.op(Op::Max, Scalar::I64, &[*n, Operand::i64(0)]),
        };
        let room: Vec<Operand> = names.iter().zip(sizes).map(room).collect();
        self.check_elements(&room);
        self.product(&room)
    }

    pub(super) fn concat(&mut self, pat: &[Var], arrays: &[Atom], wholes: &[Whole]) -> Res<Val> {
        let reps: Vec<ArrayRep> = arrays.iter().map(|a| self.form(*a)).collect();
        let ty = self.atom_type(arrays[0]);
        // The first array with rows says how long rows are: one without need not know.
        let mut dims = reps[0].dims.clone();
        if reps.iter().any(|r| r.dims[1..] != dims[1..]) {
            let zero = Operand::i64(0);
            let some: Vec<Operand> =
                reps.iter().map(|r| self.op(Op::Lt, Scalar::I64, &[zero, r.dims[0]])).collect();
            for (k, n) in dims.iter_mut().enumerate().skip(1) {
                for (r, some) in reps.iter().zip(&some).rev() {
                    if r.dims[k] != *n {
                        *n = self.op(Op::Select, Scalar::I64, &[*some, r.dims[k], *n]);
                    }
                }
            }
            for (r, some) in reps.iter().zip(&some) {
                self.check_shapes_if(*some, Shaped::Joined.words(), (&dims[1..], &r.dims[1..]));
            }
        }
        let rows: Vec<Operand> = reps.iter().map(|r| r.dims[0]).collect();
        dims[0] = self.checked_sum(&rows);
        let whole = wholes.iter().find(|w| pat.contains(&w.result));
        let to = match whole.and_then(|w| w.memory.clone()) {
            Some(leaves) => {
                pat.iter().for_each(|v| drop(self.wanted.remove(v)));
                let strides = self.row_major(&dims);
                ArrayRep { dims, strides, leaves, packed: true }
            }
            None => self.array_for(pat.first().copied(), dims, ty.base())?,
        };
        // A part that was made elsewhere after all is not asked for any more.
        for part in whole.iter().flat_map(|w| &w.parts) {
            self.wanted.remove(&part.maker);
        }
        let mut roots = self.owners.fresh();
        let (mut start, mut in_place) = (Operand::i64(0), Vec::new());
        for (k, (r, a)) in reps.iter().zip(arrays).enumerate() {
            let place = whole.and_then(|w| w.parts[k].place.as_ref());
            if place.is_some_and(|place| place.leaves == r.leaves) {
                roots.extend(self.owners.of(a.var()));
                in_place.push(*a);
            } else {
                let r = &self.array(*a);
                let place = self.sliced(&to, (start, r.dims[0], Operand::i64(1)));
                self.copy(&ArrayRep { dims: r.dims.clone(), ..place }, r)?;
            }
            start = self.add(start, r.dims[0]);
        }
        // They are still what they were made to be.
        in_place.into_iter().for_each(|a| drop(self.whole(a)));
        if has_boxes(ty.base()) {
            roots.extend(arrays.iter().flat_map(|a| self.owners.of(a.var())));
        }
        Ok(Val { rep: Rep::Array(to), roots })
    }
}
