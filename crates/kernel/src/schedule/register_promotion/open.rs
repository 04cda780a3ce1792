//! Sums of a block that are not at their end, and which of them an access may meet.

use crate::ir::{Operand, Reg, Ty};
use pullback_base::index::IndexVec;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// Elements `at`, `at + stride`, .. after a pointer, one for each lane.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) base: Reg,
    pub(super) at: i64,
    pub(super) stride: i64,
    pub(super) lanes: usize,
}

/// Memory that an instruction reads or writes.
#[derive(Clone, Copy)]
pub(super) struct Access {
    pub(super) pointer: Operand,
    /// `None`: somewhere there.
    pub(super) place: Option<Place>,
    pub(super) ty: Ty,
}

impl Access {
    pub(super) fn somewhere(pointer: Operand, ty: Ty) -> Access {
        Access { pointer, place: None, ty }
    }
    /// The same, but somewhere there if not all of it is accessed, or not by this thread alone.
    pub(super) fn all_if(self, is_all: bool) -> Access {
        Access { place: self.place.filter(|_| is_all), ..self }
    }
    /// The elements after these.
    pub(super) fn moved(self, by: i64) -> Access {
        let place = self.place.and_then(|p| Some(Place { at: p.at.checked_add(by)?, ..p }));
        Access { place, ..self }
    }
}

/// Additions to one element with nothing between them that looks at it.
pub(super) struct Sum {
    pub(super) place: Place,
    pub(super) ty: Ty,
    /// The instruction that sets the element first, if there is one.
    pub(super) set: Option<usize>,
    /// The additions.
    pub(super) added: Vec<usize>,
    /// The instruction before which memory must have the sum.
    pub(super) until: usize,
}

/// Which sums an access to their memory closes.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Closes {
    All,
    /// Not those that only add values of the same type.
    AllButAdditions,
}

/// The sums of a block that are not at their end. To find those that an access may meet costs the logarithm of their number, and
/// one step for each that it closes: long blocks store thousands of elements.
pub(super) struct Open<'a> {
    roots: &'a IndexVec<Reg, Option<Reg>>,
    pub(super) sums: BTreeMap<Place, Sum>,
    /// Of each pointer that open sums are counted from: how many of them set their element first, and of which types they are.
    bases: BTreeMap<Reg, Base>,
    /// The elements of one sum lie this far apart at most.
    reach: i64,
    done: Vec<Sum>,
}

/// The open sums that are counted from one pointer.
#[derive(Default)]
struct Base {
    sums: usize,
    set: usize,
    /// Their type; `None` if there are several.
    ty: Option<Ty>,
}

impl<'a> Open<'a> {
    pub(super) fn new(roots: &'a IndexVec<Reg, Option<Reg>>) -> Open<'a> {
        Open { roots, sums: BTreeMap::new(), bases: BTreeMap::new(), reach: 0, done: Vec::new() }
    }
    pub(super) fn insert(&mut self, sum: Sum) -> &mut Sum {
        let place = sum.place;
        self.reach = self.reach.max(place.stride.saturating_mul(place.lanes as i64));
        let base = self.bases.entry(place.base).or_default();
        base.ty = if base.sums == 0 || base.ty == Some(sum.ty) { Some(sum.ty) } else { None };
        base.sums += 1;
        base.set += usize::from(sum.set.is_some());
        self.sums.entry(place).insert_entry(sum).into_mut()
    }
    /// Memory must have the sums that an access may meet before instruction `k`. `root`: what the pointer of the access points into.
    pub(super) fn close(&mut self, a: Access, root: Option<Reg>, k: usize, closes: Closes) {
        let own = a.place.map(|p| p.base);
        let others = self.bases.iter().filter(|(base, of)| {
            let may_meet = root.is_none() || root == self.roots[**base];
            let additions = closes == Closes::AllButAdditions && of.set == 0 && of.ty == Some(a.ty);
            Some(**base) != own && may_meet && !additions
        });
        let others: Vec<Reg> = others.map(|(base, _)| *base).collect();
        for base in others {
            self.close_in(Place::all_of(base), k, |s| closes.has(s, a));
        }
        if let Some(p) = a.place {
            let far = self.reach.max(p.stride.saturating_mul(p.lanes as i64));
            let is_one_type = self.bases.get(&p.base).is_some_and(|of| of.ty == Some(a.ty));
            let near = if is_one_type { Place::near(p, far) } else { Place::all_of(p.base) };
            self.close_in(near, k, |s| s.meets(a) && closes.has(s, a));
        }
    }
    pub(super) fn close_all(&mut self, k: usize) {
        self.bases.clear();
        self.done.extend(std::mem::take(&mut self.sums).into_values().map(|s| Sum { until: k, ..s }));
    }
    fn close_in(&mut self, range: RangeInclusive<Place>, k: usize, is: impl Fn(&Sum) -> bool) {
        for (place, sum) in self.sums.extract_if(range, |_, s| is(s)) {
            if let Some(base) = self.bases.get_mut(&place.base) {
                base.sums -= 1;
                base.set -= usize::from(sum.set.is_some());
                if base.sums == 0 {
                    self.bases.remove(&place.base);
                }
            }
            self.done.push(Sum { until: k, ..sum });
        }
    }
    /// All sums; the open ones go to memory at the end of the block.
    pub(super) fn finish(self) -> Vec<Sum> {
        self.done.into_iter().chain(self.sums.into_values()).collect()
    }
}

impl Closes {
    fn has(self, sum: &Sum, a: Access) -> bool {
        self == Closes::All || sum.set.is_some() || sum.ty != a.ty
    }
}

impl Place {
    /// Where all places that are counted from a pointer are in the order of places.
    fn all_of(base: Reg) -> RangeInclusive<Place> {
        let first = Place { base, at: i64::MIN, stride: i64::MIN, lanes: 0 };
        first..=Place { base, at: i64::MAX, stride: i64::MAX, lanes: usize::MAX }
    }
    /// Where those are that begin so near to this one.
    fn near(p: Place, far: i64) -> RangeInclusive<Place> {
        let first = Place { at: p.at.saturating_sub(far), stride: i64::MIN, lanes: 0, ..p };
        first..=Place { at: p.at.saturating_add(far), stride: i64::MAX, lanes: usize::MAX, ..p }
    }
}

impl Sum {
    /// Whether an access that is counted from the same pointer may be to an element of the sum.
    fn meets(&self, a: Access) -> bool {
        let s = self.place;
        let Some(p) = a.place.filter(|_| a.ty == self.ty) else { return true };
        let apart = p.at - s.at;
        let most = p.lanes.max(s.lanes) as i64;
        let stride = match (p.lanes, s.lanes) {
            (1, _) => s.stride,
            (_, 1) => p.stride,
            _ if p.stride == s.stride => s.stride,
            _ => return true,
        };
        apart % stride == 0 && apart / stride > -most && apart / stride < most
    }
}
