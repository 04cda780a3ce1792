//! Places: which writes do not hit which variables, and which loops do not hit what they read in other iterations.
//!
//! The walk is that of [`super::super::order`]: it knows what registers hold as sums, and bounds of numbers.

use super::super::flow::{Face, site_of};
use super::super::layout::Makes;
use super::super::order::rows;
use super::super::order::uses::{Around, Looking, Use};
use super::super::order::{Effects as Uses, How};
use super::super::ranges::sums::Sum;
use super::super::ranges::values::{Place, Span, Values};
use super::{Effects, Layer};
use crate::ghosts::{Dimensions, Ghost};
use crate::ir::{Block, Ins, Operand, Order, Reg};
use std::collections::{BTreeMap, BTreeSet};

/// Not more variables of one memory are compared with a write.
const PAIRS: usize = 24;

/// A base, and bytes counted from there: what is meant is in all of these spans.
type Way = (u32, Vec<Span>);

/// What is known of places.
#[derive(Default)]
pub(in super::super) struct Places {
    /// Whether they were looked at.
    are_known: bool,
    /// Writes through a pointer that do not hit what was bound at a site, in the iteration that it was bound in.
    misses: BTreeSet<(*const Ins, Reg, u32)>,
    /// Loops one after the other whose iterations do not use what others write of this memory.
    apart: BTreeSet<(u32, Face)>,
    /// Loops in any order of which that is not shown: values are used as a whole there.
    meet: BTreeSet<(u32, Face)>,
    /// Loops whose iterations do not write to where others bind variables.
    kept: BTreeSet<(u32, Face)>,
    /// Arms that no run comes into.
    dead: BTreeSet<*const Block>,
}

impl Places {
    pub(super) fn misses(&self, ins: &Ins, pointer: Reg, site: u32) -> bool {
        self.misses.contains(&(std::ptr::from_ref(ins), pointer, site))
    }
    /// Whether no run comes into an arm.
    pub(in super::super) fn is_dead(&self, arm: &Block) -> bool {
        self.dead.contains(&std::ptr::from_ref(arm))
    }
    /// Whether iterations of a loop do not write to where others bind variables.
    pub(super) fn are_kept(&self, number: u32, face: Face) -> bool {
        self.kept.contains(&(number, face))
    }
    /// Whether iterations of a loop do not use what others write. `checks`: values are used as a whole in it.
    pub(super) fn are_apart(&self, (number, checks): (u32, bool), face: Face, is_any_order: bool) -> bool {
        if is_any_order && !self.are_known {
            !checks
        } else if is_any_order {
            !self.meet.contains(&(number, face))
        } else {
            self.apart.contains(&(number, face))
        }
    }
}

/// What is noted on a walk.
pub(in super::super) struct Noting<'f> {
    layer: &'f Layer<'f>,
    /// Where variables are at a moment.
    bound: Vec<(u32, Vec<Way>)>,
    /// Which of them may be at a base.
    near: BTreeMap<u32, Vec<usize>>,
    places: Places,
}

impl<'f> Noting<'f> {
    pub(super) fn new(layer: &'f Layer<'f>) -> Noting<'f> {
        let places = Places { are_known: true, ..Places::default() };
        Noting { layer, bound: Vec::new(), near: BTreeMap::new(), places }
    }
    pub(in super::super) fn passes_by(&mut self, arm: &Block) {
        self.places.dead.insert(std::ptr::from_ref(arm));
    }
    pub(in super::super) fn places(self) -> Places {
        self.places
    }
}

/// What callees do, as the walk needs it: all may be read.
pub(super) fn uses_of(effects: &[Effects]) -> Vec<Uses> {
    let how = |writes: &bool| if *writes { vec![How::Read, How::Write] } else { vec![How::Read] };
    let of = |e: &Effects| Uses { params: e.params.iter().map(how).collect(), beyond: how(&e.beyond) };
    effects.iter().map(of).collect()
}

impl<'a> Looking<'a, '_> {
    /// An event.
    pub(in super::super) fn says(&mut self, ins: &'a Ins) {
        let (Some(noting), Ins::Set { to, value: value @ Operand::Reg(pointer) }) = (&self.noting, ins)
        else {
            return;
        };
        let layer = noting.layer;
        let (ghost, Some((_, site))) = (layer.events.get(to), layer.bound.get(to)) else { return };
        let (Some(Ghost::Bind { shape: Some(shape), .. }) | Some(Ghost::Check { shape })) = ghost else {
            return;
        };
        let (faces, place) = (self.flow.met(ins, *pointer).to_vec(), self.values.place(*value));
        let exact = self.extent(&faces, &place, shape);
        self.uses_at(ins, &faces, How::Read, (&place, exact.as_ref()));
        let ways = self.ways(&place, exact.as_ref());
        if let Some(noting) = &mut self.noting {
            for (base, _) in &ways {
                noting.near.entry(*base).or_default().push(noting.bound.len());
            }
            noting.bound.push((*site, ways));
        }
    }
    /// The bytes of an array of this shape; `None`: it is not seen that it begins there.
    fn extent(&mut self, faces: &[Face], place: &Place, shape: &Dimensions) -> Option<Span> {
        let ty_of = |face: &Face| match self.flow.layout.sites[site_of(*face) as usize].makes {
            Makes::Memory(ty) => ty,
            _ => None,
        };
        let mut memory = faces.iter().filter(|face| self.flow.is_memory(**face));
        let ty = memory.next().and_then(ty_of)?;
        memory.all(|face| ty_of(face) == Some(ty)).then_some(())?;
        let mut length = Sum::constant(1);
        if shape.iter().any(|(n, _)| self.values.number(*n).is_zero()) {
            return Some(Span { from: place.offset.clone(), length: Sum::default() });
        }
        for (n, stride) in shape {
            let (n, stride) = (self.values.number(*n), self.values.number(*stride));
            self.values.numbers.is_natural(&stride).then_some(())?;
            length = length.plus(&n.plus_constant(-1)?.times(&stride)?, 1)?;
        }
        Some(Span { from: place.offset.clone(), length: length.times_constant(ty.bytes() as i64)? })
    }
    /// A write through a pointer: which variables it does not hit.
    pub(in super::super) fn writes(&mut self, ins: &Ins, pointer: Reg, place: &Place, exact: Option<&Span>) {
        if self.noting.is_none() {
            return;
        }
        let ways = self.ways(place, exact);
        let bases: BTreeSet<u32> = ways.iter().map(|(base, _)| *base).collect();
        let Some(noting) = &mut self.noting else { return };
        let near: BTreeSet<usize> =
            bases.iter().filter_map(|base| noting.near.get(base)).flatten().copied().collect();
        let mut known: Vec<(usize, bool)> = Vec::new();
        for k in near.into_iter().rev() {
            self.values.numbers.work += 1;
            let (site, bound) = &noting.bound[k];
            let found = known.iter().find(|(of, _)| noting.bound[*of].1 == *bound).map(|(_, misses)| *misses);
            if found.is_none() && known.len() >= PAIRS {
                break;
            }
            let params = &self.params;
            let misses = found.unwrap_or_else(|| are_apart(&mut self.values, params, &ways, bound));
            known.push((k, misses));
            if misses {
                noting.places.misses.insert((std::ptr::from_ref(ins), pointer, *site));
            }
        }
    }
    /// Where bytes are, on all ways on which the pointer got its value: in its room there, and exactly.
    fn ways(&self, place: &Place, exact: Option<&Span>) -> Vec<Way> {
        let way = |(at, exact): (Place, Option<Span>)| {
            (at.base, exact.into_iter().chain(at.rooms.last().cloned()).collect())
        };
        self.values.ways(place, exact, 0).into_iter().map(way).collect()
    }
    /// Whether iterations of a loop use what others write of some memory.
    pub(in super::super) fn notes(&mut self, number: u32, order: &Order, around: &mut Around<'a>) {
        let uses = std::mem::take(&mut around.uses);
        let Some(noting) = &mut self.noting else { return };
        let events = noting.layer.events;
        let event = |u: &Use<'_>| u.event().and_then(|r| events.get(&r));
        for (face, uses) in uses {
            if uses.iter().all(|u| u.how == How::Read) {
                continue;
            }
            let (binds, mut uses): (Vec<_>, Vec<_>) =
                uses.into_iter().partition(|u| matches!(event(u), Some(Ghost::Bind { .. })));
            let n = &mut self.values.numbers;
            let mut are_apart =
                |uses: &[Use<'_>]| rows::apart(n, (around.counter, around.start), uses).is_ok();
            let apart = are_apart(&uses);
            let is_checked = uses.iter().any(|u| event(u).is_some());
            match order {
                Order::Given if apart => _ = noting.places.apart.insert((number, face)),
                Order::Any(_) if is_checked && !apart => _ = noting.places.meet.insert((number, face)),
                _ => {}
            }
            uses.extend(binds);
            if apart && are_apart(&uses) {
                noting.places.kept.insert((number, face));
            }
        }
    }
}

/// Whether no byte is in both, whatever ways are taken.
fn are_apart(values: &mut Values<'_>, params: &BTreeMap<u32, usize>, a: &[Way], b: &[Way]) -> bool {
    let is_made = |values: &Values<'_>, base: &u32| values.maker(*base).is_some();
    a.iter().all(|(x, one)| {
        b.iter().all(|(y, other)| {
            // What has no bytes is apart from all.
            if one.iter().chain(other).any(|span| span.length.is_zero()) {
                return true;
            }
            if x == y {
                let n = &mut values.numbers;
                return one.iter().any(|a| other.iter().any(|b| rows::are_spans_apart(n, a, b)));
            }
            let (made, other) = if is_made(values, x) { (true, y) } else { (is_made(values, y), x) };
            made && (is_made(values, other) || params.contains_key(other))
        })
    })
}
