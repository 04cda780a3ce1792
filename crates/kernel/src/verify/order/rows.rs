//! Whether the uses of memory by iterations are apart.
//!
//! A use is in the row of its iteration: `row * i` and from there on from `low` to `high`, where none of the three changes with the iteration. Uses with one base and
//! one row are apart if there is a `c` so that all are in `row * i + [c, c + row)`. Others are apart if all that they use over all iterations is.

use super::super::ranges::numbers::{Numbers, Way};
use super::super::ranges::sums::{Atom, Sum};
use super::super::ranges::values::{Place, Span};
use super::uses::Use;
use super::{How, Reason};
use pullback_prim::Op;

/// Not more different regions of one memory are compared with each other, where they are not in one row.
const PAIRS: usize = 16;

/// Where iterations use memory: each of these is right, the narrowest first.
#[derive(Clone, Debug, PartialEq)]
pub(in super::super) struct Regions(Vec<Region>);

/// One of them.
#[derive(Clone, Debug, PartialEq)]
struct Region {
    base: Atom,
    /// So many bytes an iteration is from the next one.
    row: Sum,
    /// It is not below one of these (all are right), and ends at one of those at the latest.
    low: Vec<Sum>,
    high: Vec<Sum>,
    /// Numbers that atoms are not below where this is used.
    least: Vec<(Atom, i64)>,
}

impl Regions {
    /// Those of a use, for a loop with this counter, in which what has a number below `start` does not change.
    pub(super) fn of(
        n: &mut Numbers,
        around: (Atom, u32),
        place: &Place,
        exact: Option<&Span>,
    ) -> Result<Regions, Reason> {
        if n.birth(place.base) >= around.1 {
            return Err(Reason::Base);
        }
        // A room is believed, unless it is seen that it is left.
        let rooms = place.rooms.iter().rev();
        let kept: Vec<&Span> =
            rooms.filter(|room| exact.is_none_or(|exact| !is_left(n, around.1, exact, room))).collect();
        let spans = exact.into_iter().chain(kept);
        let mut all: Vec<Region> = spans.filter_map(|span| Region::of(n, around, place.base, span)).collect();
        let first = all.iter().position(|region| region.fits(n)).unwrap_or(0);
        all.drain(..first);
        if all.is_empty() { Err(Reason::Index) } else { Ok(Regions(all)) }
    }
    fn base(&self) -> Atom {
        self.first().base
    }
    fn first(&self) -> &Region {
        &self.0[0]
    }
}

impl Region {
    fn of(n: &mut Numbers, (i, start): (Atom, u32), base: Atom, span: &Span) -> Option<Region> {
        let from = n.normal(&span.from);
        let (times, _) = from.split(i)?;
        let (row, _) = times.parted(|product| product.iter().all(|x| n.birth(*x) < start));
        let from = from.minus(&row.times(&Sum::atom(i))?)?;
        let to = from.plus(&span.length, 1)?;
        let (low, high) = (n.reach(&from, start, Way::Down), n.reach(&to, start, Way::Up));
        if low.is_empty() || high.is_empty() {
            return None;
        }
        let mut atoms: Vec<Atom> = low.iter().chain(&high).chain([&row]).flat_map(Sum::atoms).collect();
        atoms.sort_unstable();
        atoms.dedup();
        let least = atoms.into_iter().filter_map(|x| Some((x, n.least(x)?))).collect();
        Some(Region { base, row, low, high, least })
    }
    /// Whether one use is in one row.
    fn fits(&self, n: &mut Numbers) -> bool {
        !self.row.is_zero() && self.low.iter().any(|low| self.is_within(n, low))
    }
    /// Whether it is in the row that begins there.
    fn is_within(&self, n: &mut Numbers, from: &Sum) -> bool {
        let begin = n.begin();
        self.least.iter().for_each(|(x, least)| n.at_least(*x, *least));
        // A row is as long as its magnitude, if its sign is not known.
        let length = Sum::constant(n.magnitude(&self.row));
        let ends = [from.plus(&self.row, 1), from.minus(&self.row), from.plus(&length, 1)];
        let is_in = ends.iter().flatten().any(|end| self.high.iter().any(|high| n.is_at_most(high, end)));
        let is_in = is_in && self.low.iter().any(|low| n.is_at_most(from, low));
        n.end(begin);
        is_in
    }
    /// Where all iterations are: from one of these on, up to one of those.
    fn whole(&self, n: &mut Numbers, (i, start): (Atom, u32)) -> Option<Whole> {
        let rows = self.row.times(&Sum::atom(i))?;
        let mut all = |ends: &[Sum], way: Way| {
            let ends = ends.iter().filter_map(|end| end.plus(&rows, 1)).collect::<Vec<_>>();
            ends.iter().flat_map(|end| n.reach(end, start, way)).collect::<Vec<Sum>>()
        };
        Some((all(&self.low, Way::Down), all(&self.high, Way::Up)))
    }
}

/// From one of these on, up to one of those.
type Whole = (Vec<Sum>, Vec<Sum>);

/// Whether it is seen that a use leaves a room: with counters at their last or first numbers.
fn is_left(n: &mut Numbers, start: u32, exact: &Span, room: &Span) -> bool {
    let end = |span: &Span| span.from.plus(&span.length, 1);
    let above = end(exact).zip(end(room)).and_then(|(a, b)| a.minus(&b));
    let below = exact.from.minus(&room.from);
    let mut is_beyond = |by: Option<Sum>, way: Way, sign: i64| {
        let reached = by.map(|by| n.reach(&by, start, way)).unwrap_or_default();
        let is_beyond = |by: &Sum| {
            by.times_constant(sign).and_then(|by| by.plus_constant(-1)).is_some_and(|by| n.is_natural(&by))
        };
        !reached.is_empty() && reached.iter().all(is_beyond)
    };
    is_beyond(above, Way::Up, 1) || is_beyond(below, Way::Down, -1)
}

/// Whether no iteration uses what another one writes; if that is not shown, why, and which two uses.
pub(in super::super) fn apart(
    n: &mut Numbers,
    around: (Atom, u32),
    uses: &[Use<'_>],
) -> Result<(), (Reason, usize, usize)> {
    let writes = |k: &usize| uses[*k].how != How::Read;
    let written = (0..uses.len()).find(|k| uses[*k].how == How::Write).or((0..uses.len()).find(writes));
    let first = written.unwrap_or(0);
    let mut regions: Vec<(usize, &Regions)> = Vec::new();
    for (k, u) in uses.iter().enumerate() {
        match &u.regions {
            Ok(region) => regions.push((k, region)),
            Err(reason) => return Err((*reason, first, k)),
        }
    }
    let base = regions[first].1.base();
    if let Some((k, _)) = regions.iter().find(|(_, r)| r.base() != base) {
        return Err((Reason::Base, first, *k));
    }
    let narrowest: Vec<&Region> = regions.iter().map(|(_, r)| r.first()).collect();
    if are_in_rows(n, &narrowest) {
        return Ok(());
    }
    // One by one.
    let mut different: Vec<(usize, &Regions)> = Vec::new();
    for (k, region) in regions {
        let is_known = |(j, r): &(usize, &Regions)| *r == region && uses[*j].how == uses[k].how;
        if !different.iter().any(is_known) {
            different.push((k, region));
        }
    }
    if different.len() > PAIRS {
        return Err((Reason::Row, first, different[0].0));
    }
    for (at, (k, a)) in different.iter().enumerate() {
        for (j, b) in &different[at..] {
            let (one, other) = (uses[*k].how, uses[*j].how);
            let meets = one == How::Write || other == How::Write || one != other;
            if meets && !are_in_rows(n, &[a.first(), b.first()]) && !are_apart(n, around, a, b) {
                return Err((Reason::Row, *k, *j));
            }
        }
    }
    Ok(())
}

/// Whether all regions are in the same rows.
fn are_in_rows(n: &mut Numbers, regions: &[&Region]) -> bool {
    let Some(one) = regions.first() else { return true };
    if one.row.is_zero() || regions.iter().any(|r| r.row != one.row) {
        return false;
    }
    // A row begins at the least beginning.
    let mut from = one.low.clone();
    for r in regions {
        let begin = n.begin();
        r.least.iter().for_each(|(x, least)| n.at_least(*x, *least));
        if !from.iter().any(|from| r.low.iter().any(|low| n.is_at_most(from, low))) {
            from.clone_from(&r.low);
        }
        n.end(begin);
    }
    from.iter().any(|from| regions.iter().all(|r| r.is_within(n, from)))
}

/// Whether all that one use has over all iterations is before or behind the other.
fn are_apart(n: &mut Numbers, around: (Atom, u32), a: &Regions, b: &Regions) -> bool {
    a.0.iter().any(|a| b.0.iter().any(|b| are_wholly_apart(n, around, a, b)))
}
fn are_wholly_apart(n: &mut Numbers, around: (Atom, u32), a: &Region, b: &Region) -> bool {
    let begin = n.begin();
    a.least.iter().chain(&b.least).for_each(|(x, least)| n.at_least(*x, *least));
    let apart = a.whole(n, around).zip(b.whole(n, around)).is_some_and(|(a, b)| {
        let mut is_before = |ends: &[Sum], begins: &[Sum]| {
            ends.iter().any(|end| begins.iter().any(|begin| n.is_at_most(end, begin)))
        };
        is_before(&a.1, &b.0) || is_before(&b.1, &a.0) || take_turns(n, &a, &b)
    });
    n.end(begin);
    apart
}

/// Whether two uses have no byte in common.
pub(in super::super) fn are_spans_apart(n: &mut Numbers, a: &Span, b: &Span) -> bool {
    let end = |span: &Span| span.from.plus(&span.length, 1);
    let Some((a_end, b_end)) = end(a).zip(end(b)) else { return false };
    let (a, b) = ((vec![a.from.clone()], vec![a_end]), (vec![b.from.clone()], vec![b_end]));
    n.is_at_most(&a.1[0], &b.0[0]) || n.is_at_most(&b.1[0], &a.0[0]) || take_turns(n, &a, &b)
}

/// Whether two uses are in places that change in turn: `row * ((x + a) mod k)` and `row * ((x + b) mod k)`, where `a` and `b` differ.
fn take_turns(n: &mut Numbers, a: &Whole, b: &Whole) -> bool {
    for x in a.0.iter().flat_map(Sum::atoms).collect::<Vec<_>>() {
        for y in b.0.iter().flat_map(Sum::atoms).collect::<Vec<_>>() {
            if is_other_turn(n, x, y)
                && let (Some(a), Some(b)) = (in_rows_of(a, x), in_rows_of(b, y))
                && are_in_rows(n, &[&a, &b])
            {
                return true;
            }
        }
    }
    false
}
/// Whether two atoms are remainders of numbers whose difference is no multiple of the divisor.
fn is_other_turn(n: &Numbers, x: Atom, y: Atom) -> bool {
    let turn = |x: Atom| {
        let (op, args) = n.made(x)?;
        let divisor = |a: &Sum| match op {
            Op::Mod | Op::Rem => a.as_constant(),
            // (A mask of the lowest bits.)
            Op::And => a.as_constant()?.checked_add(1).filter(|k| k.count_ones() == 1),
            _ => None,
        };
        match &args[..] {
            [of, by] if divisor(by).is_some_and(|k| k > 0) => Some((of, divisor(by)?)),
            [by, of] if *op == Op::And => Some((of, divisor(by)?)),
            _ => None,
        }
    };
    let Some(((of, k), (other, l))) = turn(x).zip(turn(y)) else { return false };
    k == l && of.minus(other).and_then(|d| d.as_constant()).is_some_and(|d| d % k != 0)
}
/// The region in rows that an atom counts.
fn in_rows_of(whole: &Whole, x: Atom) -> Option<Region> {
    let (row, _) = whole.0.iter().filter_map(|low| low.split(x)).find(|(row, _)| !row.is_zero())?;
    let start = row.times(&Sum::atom(x))?;
    let less = |all: &[Sum]| all.iter().filter_map(|end| end.minus(&start)).collect::<Vec<Sum>>();
    Some(Region { base: x, low: less(&whole.0), high: less(&whole.1), row, least: Vec::new() })
}
