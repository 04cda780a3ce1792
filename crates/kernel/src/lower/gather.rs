//! Whole arrays added at moved places, element by element.
//!
//! The cotangent of a stencil is a sum of the same array in several positions. One pass over the accumulator for each of
//! them moves as many bytes as there are positions. Here each element of the accumulator is read once, what belongs to it
//! is added, and it is written once.
//!
//! Assumes: the body of the accumulator only makes views and adds whole arrays to them. Views are permutations of
//! dimensions and slices without gaps; anything else takes the general way.
//! Guarantees: an element gets the same numbers in the same order, so the same bits.

use super::acc::PART;
use super::rep::{AccRep, ArrayRep, Leaf, Rep};
use super::{Lower, Res, Val};
use crate::ir::{Block, Ins, Operand};
use pullback_base::index::IdMap;
use pullback_core::{Atom, Exp, Lam, Type, Var, View};
use pullback_prim::Op;

/// For each dimension of a view: the dimension of the accumulator, and where the view begins in it.
type Origin = Vec<(usize, Operand)>;

/// An array that is added, in the dimensions of the accumulator.
struct Added {
    array: ArrayRep,
    there: Operand,
    /// The indices of the accumulator from where up to where it has elements; `None`: everywhere.
    within: Vec<Option<(Operand, Operand)>>,
}

/// Whether the body of an accumulator is of this kind, and adds more than once.
pub(super) fn only_adds_arrays(lam: &Lam, rank: usize, lower: &Lower<'_>) -> bool {
    let mut adds = 0;
    let simple = lam.body.stms.iter().all(|stm| match &stm.exp {
        Exp::AccView(_, View::Rearrange(_)) => true,
        Exp::AccView(_, View::Slice(s)) => s.stride == Atom::i64(1),
        Exp::AccAdd(_, ix, value) => {
            adds += 1;
            let ty = lower.atom_type(*value);
            ix.is_empty() && ty.rank() == rank && matches!(ty.base(), Type::Scalar(s) if s.is_float())
        }
        _ => false,
    });
    simple && rank > 0 && lam.params.len() == 1 && lam.body.result.is_empty() && adds > 1
}

impl Lower<'_> {
    /// Adds what the body of an accumulator adds, if [`only_adds_arrays`].
    pub(super) fn gathered(&mut self, lam: &Lam, acc: &AccRep) -> Res<()> {
        let whole: Origin = (0..acc.array.rank()).map(|d| (d, Operand::i64(0))).collect();
        let mut origins: IdMap<Var, Origin> = IdMap::new();
        origins.insert(lam.params[0], whole);
        self.bind_val(lam.params[0], Val { rep: Rep::Acc(acc.clone()), roots: Default::default() });
        let mut added = Vec::new();
        for stm in &lam.body.stms {
            match &stm.exp {
                Exp::AccView(from, view) => {
                    let rep = self.acc_view(*from, view)?;
                    let mut origin = origin_of(&origins, *from);
                    match view {
                        View::Rearrange(perm) => {
                            let old = origin.clone();
                            perm.iter().enumerate().for_each(|(k, p)| origin[k] = old[*p]);
                        }
                        View::Slice(s) => {
                            let start = self.scalar(s.start);
                            origin[0].1 = self.add(origin[0].1, start);
                        }
                        view => panic!("a view that moves nothing: {view:?}"),
                    }
                    origins.insert(stm.pat[0], origin);
                    self.bind_val(stm.pat[0], Val { rep, roots: Default::default() });
                }
                Exp::AccAdd(to, _, value) => {
                    let Rep::Acc(view) = self.rep(*to) else { panic!("expected an accumulator") };
                    let array = self.whole_array(*value);
                    if !self.is_part(*value, (*to, 0)) {
                        self.check_shapes_if(view.there, PART, (&view.array.dims, &array.dims));
                    }
                    added.push(self.in_place(&view, &array, &origin_of(&origins, *to)));
                }
                exp => panic!("expected a view or an addition, found {exp:?}"),
            }
        }
        self.add_each(&acc.array, &added)
    }

    /// An array in the dimensions of the accumulator.
    fn in_place(&mut self, view: &AccRep, array: &ArrayRep, origin: &Origin) -> Added {
        let mut placed = array.clone();
        let mut within = vec![None; origin.len()];
        for (k, (d, start)) in origin.iter().enumerate() {
            let before = self.mul(array.strides[k], *start);
            let back = self.sub(Operand::i64(0), before);
            placed.leaves = placed.leaves.iter().map(|leaf| self.moved(*leaf, back, None)).collect();
            placed.strides[*d] = array.strides[k];
            placed.dims[*d] = array.dims[k];
            within[*d] = view.within[k].map(|(low, high)| (self.add(low, *start), self.add(high, *start)));
        }
        Added { array: ArrayRep { packed: false, ..placed }, there: view.there, within }
    }

    /// Adds arrays to the elements of an accumulator, one element after the other.
    fn add_each(&mut self, to: &ArrayRep, added: &[Added]) -> Res<()> {
        let unit = |d: usize| (0..to.rank()).map(|k| Operand::i64(i64::from(k == d))).collect();
        let places = added.iter().map(|a| a.array.strides.clone());
        let mut strides = vec![to.strides.clone()];
        strides.extend(places);
        strides.extend((0..to.rank()).map(unit));
        self.every(&to.dims, &strides, &mut Vec::new(), &mut |s, at| {
            let indices = &at[1 + added.len()..];
            for (k, leaf) in to.leaves.iter().enumerate() {
                let Leaf::Memory { pointer, ty } = *leaf else { continue };
                let Some(scalar) = ty.scalar() else { continue };
                let mut sum = s.load_leaf(*leaf, at[0]);
                for (a, place) in added.iter().zip(&at[1..]) {
                    let there = s.is_there(a, indices);
                    let (then, next): (Block, Operand) = s.block(|s| {
                        let x = s.load_leaf(a.array.leaves[k], *place);
                        Ok(s.op(Op::Add, scalar, &[sum, x]))
                    })?;
                    if there == Operand::bool(true) {
                        then.into_iter().for_each(|ins| s.emit(ins));
                        sum = next;
                    } else {
                        let to = s.variable(ty, "sum", sum);
                        let then = then.into_iter().chain([Ins::Set { to, value: next }]).collect();
                        s.emit(Ins::If { condition: there, then, otherwise: Vec::new() });
                        sum = to.into();
                    }
                }
                s.emit(Ins::Store { pointer, index: at[0], value: sum, ty });
            }
            Ok(())
        })
    }

    /// Whether an array has an element for these indices of the accumulator.
    fn is_there(&mut self, a: &Added, indices: &[Operand]) -> Operand {
        let mut all = a.there;
        for (i, within) in indices.iter().zip(&a.within) {
            if let Some(range) = within {
                let inside = self.between(*i, *range);
                all = self.both(all, inside);
            }
        }
        all
    }
}

fn origin_of(origins: &IdMap<Var, Origin>, acc: Atom) -> Origin {
    acc.var().and_then(|v| origins.get(&v)).expect("an accumulator of this body").clone()
}
