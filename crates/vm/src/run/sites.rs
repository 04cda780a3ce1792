//! Instructions that are more than a line: lanes taken together, evaluation by the table, reasons to stop.

use super::Stop;
use crate::code::{At, FoldSite, FunctionCode, NOWHERE, TableSite, Value};
use crate::kernels::CHUNK;
use crate::kernels::element::Number;
use pullback_abi::{scalar, word};
use pullback_prim::{Op, Prim, PrimError, Scalar, ScalarValue};

/// How many lanes the block has that starts at `first`.
pub(super) fn active_lanes(first: i64, last: i64, lanes: usize) -> usize {
    // The difference of two `i64`, the second one larger, fits an `u64`.
    Ord::min(last.wrapping_sub(first).cast_unsigned(), lanes as u64) as usize
}

/// Lane numbers added to a word.
pub(super) unsafe fn count(to: *mut u8, first: i64, active: usize) {
    let to = to.cast::<i64>();
    (0..active).for_each(|l| to.add(l).write(first.wrapping_add(l as i64)));
}

/// The first of the lanes that are meant where `from` and the number of the lane are no index below `size`.
pub(super) fn outside_where(from: i64, size: i64, mask: &[u8]) -> Option<usize> {
    // Indices are negative in the first lanes, and too large in the last ones.
    let negative = Ord::min(Ord::min(from, 0).unsigned_abs(), mask.len() as u64) as usize;
    let inside = size.saturating_sub(from).clamp(0, mask.len() as i64) as usize;
    (0..negative).chain(Ord::max(negative, inside)..mask.len()).find(|l| mask[*l] != 0)
}

pub(super) unsafe fn place_of_mask(base: *mut u8, mask: At) -> *const u8 {
    if mask == NOWHERE { std::ptr::null() } else { base.add(mask as usize) }
}

pub(super) unsafe fn lane(from: *const u8, shift: u8, is_signed: bool) -> u64 {
    match (shift, is_signed) {
        (0, false) => u64::from(from.read()),
        (0, true) => i64::from(from.cast::<i8>().read()) as u64,
        (1, false) => u64::from(from.cast::<u16>().read()),
        (1, true) => i64::from(from.cast::<i16>().read()) as u64,
        (2, false) => u64::from(from.cast::<u32>().read()),
        (2, true) => i64::from(from.cast::<i32>().read()) as u64,
        _ => from.cast::<u64>().read(),
    }
}

pub(super) unsafe fn fill(shift: u8, to: *mut u8, count: usize, value: u64) {
    match shift {
        0 => to.write_bytes(value as u8, count),
        1 => (0..count).for_each(|k| to.cast::<u16>().add(k).write(value as u16)),
        2 => (0..count).for_each(|k| to.cast::<u32>().add(k).write(value as u32)),
        _ => (0..count).for_each(|k| to.cast::<u64>().add(k).write(value)),
    }
}

#[cold]
pub(super) unsafe fn failed(f: &FunctionCode, site: u32, base: *mut u8, lane: usize) -> Stop {
    let fail = &f.fails[site as usize];
    let value = |v: &Value| match *v {
        Value::Word(at) => base.add(at as usize).cast::<i64>().read(),
        Value::Lanes(at) => base.add(at as usize).cast::<i64>().add(lane).read(),
        Value::Counted(at) => base.add(at as usize).cast::<i64>().read().wrapping_add(lane as i64),
    };
    Stop::Message(fail.message, fail.values.iter().map(value).collect())
}

/// Evaluates by the table, lane by lane. Lanes that are not wanted may have no value: 0.
#[cold]
pub(super) unsafe fn table(site: &TableSite, base: *mut u8, active: usize) {
    let s = site.prim.result();
    let n = if site.to.is_lanes { active } else { 1 };
    let mut args = [ScalarValue::Bool(false); pullback_prim::MAX_ARITY];
    for l in 0..n {
        for (arg, (s, place)) in args.iter_mut().zip(&site.args) {
            let (at, shift) = (base.add(place.at as usize), s.bytes().trailing_zeros() as u8);
            let w = if place.is_lanes {
                lane(at.add(l << shift), shift, s.is_signed())
            } else {
                at.cast::<u64>().read()
            };
            *arg = scalar(*s, w);
        }
        let value = match site.prim.eval(&args[..site.args.len()]) {
            Ok(value) => value,
            Err(PrimError::DivisionByZero | PrimError::NegativeExponent | PrimError::IllTyped) => s.zero(),
        };
        let to = base.add(site.to.at as usize);
        if site.to.is_lanes {
            let bytes = word(value).to_le_bytes();
            to.add(l * s.bytes()).copy_from_nonoverlapping(bytes.as_ptr(), s.bytes());
        } else {
            to.cast::<u64>().write(word(value));
        }
    }
}

/// Takes lanes together: halves with each other as long as their number is even, then one after the other. Lanes that are not
/// meant count as the neutral element; where a whole half is neutral, once is as good as many times.
pub(super) unsafe fn fold(site: &FoldSite, base: *mut u8, active: usize, lanes: usize) {
    let place = |at: At| base.add(at as usize);
    let (scratch, neutral) = (place(site.scratch), place(site.neutral));
    let nothing = std::ptr::null();
    let size = site.scalar.bytes();
    // Where the lanes are: where they came from, until some are taken together.
    let mut from = place(site.from);
    if site.mask != NOWHERE {
        (site.chosen)(active, scratch, place(site.mask), from, neutral);
        from = scratch;
    }
    let mut all = lanes;
    let mut is_with_neutral = false;
    while all > 1 && all.is_multiple_of(2) && active <= all / 2 {
        all /= 2;
        is_with_neutral = true;
    }
    if is_with_neutral {
        (site.with_word)(active, scratch, from, neutral, nothing);
        from = scratch;
    }
    if active < all {
        if from != scratch {
            (site.taken)(active, scratch, from, nothing, nothing);
            from = scratch;
        }
        (site.fill)(all - active, scratch.add(active * size), neutral, nothing, nothing);
    }
    let of_doubles = match site.prim {
        Prim::Op(Op::Add, Scalar::F64) => Some(<f64 as Number>::add as fn(f64, f64) -> f64),
        Prim::Op(Op::Min, Scalar::F64) => Some(<f64 as Number>::min as fn(f64, f64) -> f64),
        Prim::Op(Op::Max, Scalar::F64) => Some(<f64 as Number>::max as fn(f64, f64) -> f64),
        _ => None,
    };
    while all > 1 && all.is_multiple_of(2) && !(of_doubles.is_some() && all <= CHUNK) {
        all /= 2;
        (site.both)(all, scratch, from, from.add(all * size), nothing);
        from = scratch;
    }
    let to = place(site.to).cast::<u64>();
    if let Some(f) = of_doubles
        && all <= CHUNK
    {
        return to.write(together(std::slice::from_raw_parts(from.cast::<f64>(), all), f).to_bits());
    }
    for l in 1..all {
        (site.both)(1, scratch, from, from.add(l * size), nothing);
        from = scratch;
    }
    to.write(lane(from, size.trailing_zeros() as u8, site.scalar.is_signed()));
}

/// The same for a few doubles.
fn together(lanes: &[f64], f: impl Fn(f64, f64) -> f64) -> f64 {
    let mut x = [0.0; CHUNK];
    x[..lanes.len()].copy_from_slice(lanes);
    let mut all = lanes.len();
    while all > 1 && all.is_multiple_of(2) {
        all /= 2;
        for l in 0..all {
            x[l] = f(x[l], x[l + all]);
        }
    }
    x[1..Ord::max(all, 1)].iter().fold(x[0], |sum, y| f(sum, *y))
}
