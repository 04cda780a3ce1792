//! How a part is cut out of an array: a chain of views, without the numbers in it.
//!
//! A chain is brought to a normal form: some dimensions are indexed, the others are taken in some order, each whole or sliced; that is
//! one segment. A reshape starts another segment. Views of views of one kind are then one view: two slices are one, an index into a
//! slice is an index. So a loop whose state is a part of the one before has finitely many forms, and the numbers are computed as it
//! goes on. What is left to say at run time are the *holes*: indices, starts, lengths, steps, sizes.
//!
//! Guarantees: [`Form::compose`] and [`Form::cut`] mean what the views mean; all of them take constant time.

use pullback_core::{Atom, Builder, Exp, SliceDim, View};
use pullback_prim::Op;

/// Chains with more reshapes than this are taken for new arrays.
const MAX_SEGMENTS: usize = 4;

/// A chain of views of an array.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Form {
    segments: Vec<Segment>,
}

/// Indices, slices and a permutation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Segment {
    /// How many of the dimensions before are replaced by how many others first.
    reshape: Option<(usize, usize)>,
    /// The dimensions that are indexed, in their order. Holes: the indices.
    fixed: Vec<usize>,
    /// The others, in the order of the result, and whether they are sliced. Holes of those that are: start, length, step.
    kept: Vec<(usize, bool)>,
}

impl Segment {
    fn whole(reshape: Option<(usize, usize)>, rank: usize) -> Segment {
        Segment { reshape, fixed: Vec::new(), kept: (0..rank).map(|d| (d, false)).collect() }
    }
    fn is_whole(&self) -> bool {
        self.fixed.is_empty() && self.kept.iter().enumerate().all(|(k, &(d, sliced))| k == d && !sliced)
    }
    fn rank(&self) -> usize {
        self.fixed.len() + self.kept.len()
    }
    fn holes(&self) -> usize {
        let sizes = self.reshape.map_or(0, |(_, to)| to);
        sizes + self.fixed.len() + 3 * self.kept.iter().filter(|(_, sliced)| *sliced).count()
    }
}

/// The parts of a segment with its holes.
struct Filled {
    sizes: Vec<Atom>,
    fixed: Vec<(usize, Atom)>,
    kept: Vec<(usize, Option<SliceDim>)>,
}

impl Filled {
    fn of(segment: &Segment, holes: &[Atom]) -> Filled {
        let mut rest = holes.iter().copied();
        let mut next = || rest.next().unwrap_or(Atom::i64(0));
        let sizes = (0..segment.reshape.map_or(0, |(_, to)| to)).map(|_| next()).collect();
        let fixed = segment.fixed.iter().map(|&d| (d, next())).collect();
        let slice = |sliced: bool| sliced.then(|| SliceDim { start: next(), len: next(), stride: next() });
        let kept = segment.kept.iter().map(|&(d, sliced)| (d, sliced)).collect::<Vec<_>>();
        let mut slice = slice;
        let kept = kept.into_iter().map(|(d, sliced)| (d, slice(sliced))).collect();
        Filled { sizes, fixed, kept }
    }
    fn split(mut self, reshape: Option<(usize, usize)>) -> (Segment, Vec<Atom>) {
        self.fixed.sort_by_key(|(d, _)| *d);
        let mut holes = self.sizes;
        holes.extend(self.fixed.iter().map(|(_, i)| *i));
        holes.extend(self.kept.iter().filter_map(|k| k.1).flat_map(|s| [s.start, s.len, s.stride]));
        let fixed = self.fixed.into_iter().map(|(d, _)| d).collect();
        let kept = self.kept.into_iter().map(|(d, s)| (d, s.is_some())).collect();
        (Segment { reshape, fixed, kept }, holes)
    }
}

/// Emits an operation on integers; the analysis before there is a program to emit into has no use for its result.
pub(super) type Arithmetic<'a> = dyn FnMut(Op, Atom, Atom) -> Atom + 'a;

impl Form {
    /// The whole array.
    pub(super) fn whole(rank: usize) -> Form {
        Form { segments: vec![Segment::whole(None, rank)] }
    }
    /// Whether it is the whole array.
    pub(super) fn is_whole(&self) -> bool {
        self.segments.iter().all(|segment| segment.reshape.is_none() && segment.is_whole())
    }
    /// The number of holes.
    pub(super) fn holes(&self) -> usize {
        self.segments.iter().map(Segment::holes).sum()
    }

    /// The form of a view of the part. `None`: the chain would be too long.
    pub(super) fn compose(
        &self,
        holes: &[Atom],
        view: &View,
        op: &mut Arithmetic<'_>,
    ) -> Option<(Form, Vec<Atom>)> {
        let mut segments = self.segments.clone();
        let last = segments.pop()?;
        let before = holes.len() - last.holes();
        let (earlier, here) = holes.split_at(before);
        let mut part = Filled::of(&last, here);
        match view {
            View::Index(ix) => {
                for ((d, slice), &i) in part.kept.drain(..ix.len()).zip(ix) {
                    let at = match slice {
                        None => i,
                        Some(s) => before_slice(i, &s, op),
                    };
                    part.fixed.push((d, at));
                }
            }
            View::Slice(s) => {
                let (_, slice) = part.kept.first_mut()?;
                *slice = Some(match *slice {
                    None => *s,
                    Some(before) => {
                        let offset = op(Op::Mul, s.start, before.stride);
                        let start = op(Op::Add, before.start, offset);
                        SliceDim { start, len: s.len, stride: op(Op::Mul, s.stride, before.stride) }
                    }
                });
            }
            View::Rearrange(perm) => {
                let old = part.kept.clone();
                perm.iter().enumerate().for_each(|(k, &p)| part.kept[k] = old[p]);
            }
            View::Reshape { shape, from } => {
                let rank = part.kept.len() - from + shape.len();
                let (last, mut holes) = part.split(last.reshape);
                let mut next = Segment::whole(Some((*from, shape.len())), rank);
                // All of what a reshape gave, reshaped as a whole again: once.
                let again = last.is_whole() && *from == last.rank();
                match last.reshape {
                    Some((first, to)) if again && to == last.rank() => {
                        next.reshape = Some((first, shape.len()));
                        holes.clear();
                    }
                    _ => segments.push(last),
                }
                segments.push(next);
                let holes = earlier.iter().copied().chain(holes).chain(shape.iter().copied()).collect();
                return (segments.len() <= MAX_SEGMENTS).then_some((Form { segments }, holes));
            }
            View::Proj(_) | View::Reverse | View::Rotate(_) => return None,
        }
        let (last, holes) = part.split(last.reshape);
        segments.push(last);
        Some((Form { segments }, earlier.iter().copied().chain(holes).collect()))
    }

    /// The indices in the whole array, which has these sizes, of what lies at these in the part. `None`: indices alone do not say where it lies.
    pub(super) fn indices_in_whole(
        &self,
        (holes, sizes): (&[Atom], &[Atom]),
        ix: &[Atom],
        op: &mut Arithmetic<'_>,
    ) -> Option<Vec<Atom>> {
        if let [Segment { reshape: Some(_), .. }] | [_, _, ..] = &self.segments[..] {
            return self.index_before_reshapes((holes, sizes), ix, op);
        }
        let (form, found) = self.compose(holes, &View::Index(ix.to_vec()), op)?;
        let [Segment { fixed, kept, .. }] = &form.segments[..] else { return None };
        let first = fixed.iter().copied().eq(0..fixed.len());
        let rest = kept.iter().enumerate().all(|(k, &kept)| kept == (fixed.len() + k, false));
        (first && rest).then_some(found)
    }
    /// The same of one element, through all segments.
    fn index_before_reshapes(
        &self,
        (mut holes, sizes): (&[Atom], &[Atom]),
        ix: &[Atom],
        op: &mut Arithmetic<'_>,
    ) -> Option<Vec<Atom>> {
        let mut filled = Vec::new();
        let mut shapes = vec![sizes.to_vec()];
        for segment in &self.segments {
            let (here, rest) = holes.split_at(segment.holes());
            holes = rest;
            let part = Filled::of(segment, here);
            let before = shapes.last()?;
            let from = segment.reshape.map_or(0, |(from, _)| from);
            let given: Vec<Atom> = [&part.sizes[..], before.get(from..)?].concat();
            let shape = part.kept.iter().map(|(d, slice)| slice.map_or(given[*d], |s| s.len));
            shapes.push(shape.collect());
            filled.push((part, segment));
        }
        let mut at = ix.to_vec();
        for ((part, segment), before) in filled.iter().zip(&shapes).rev() {
            if at.len() != part.kept.len() {
                return None;
            }
            let mut given = vec![Atom::i64(0); segment.rank()];
            part.fixed.iter().for_each(|(d, i)| given[*d] = *i);
            for ((d, slice), i) in part.kept.iter().zip(at) {
                given[*d] = slice.map_or(i, |s| before_slice(i, &s, op));
            }
            if let Some((from, to)) = segment.reshape {
                let rest = given.split_off(to);
                let number = part.sizes.iter().zip(given).fold(Atom::i64(0), |all, (n, i)| {
                    let all = op(Op::Mul, all, *n);
                    op(Op::Add, all, i)
                });
                given = unflattened(number, &before[..from], op);
                given.extend(rest);
            }
            at = given;
        }
        Some(at)
    }

    /// Emits the part of `owner`.
    pub(super) fn cut(&self, b: &mut Builder<'_>, owner: Atom, holes: &[Atom]) -> Atom {
        let mut array = owner;
        let mut rest = holes;
        for segment in &self.segments {
            let (here, others) = rest.split_at(segment.holes());
            rest = others;
            let Filled { sizes, fixed, kept } = Filled::of(segment, here);
            if let Some((from, _)) = segment.reshape {
                array = b.emit(Exp::Reshape { shape: sizes, from, array }, "part");
            }
            let order: Vec<usize> = fixed.iter().map(|f| f.0).chain(kept.iter().map(|k| k.0)).collect();
            array = rearranged(b, &order, array);
            let ix: Vec<Atom> = fixed.iter().map(|f| f.1).collect();
            if !ix.is_empty() {
                array = b.emit(Exp::Index(array, ix), "part");
            }
            for (k, slice) in kept.iter().enumerate() {
                let Some(slice) = slice.1 else { continue };
                let there: Vec<usize> = std::iter::once(k).chain(0..k).chain(k + 1..kept.len()).collect();
                let back: Vec<usize> = (1..=k).chain([0]).chain(k + 1..kept.len()).collect();
                array = rearranged(b, &there, array);
                array = b.emit(Exp::Slice(array, slice), "part");
                array = rearranged(b, &back, array);
            }
        }
        array
    }
}

/// The index before a slice of what lies at `i` in it.
fn before_slice(i: Atom, s: &SliceDim, op: &mut Arithmetic<'_>) -> Atom {
    let offset = op(Op::Mul, i, s.stride);
    op(Op::Add, s.start, offset)
}

/// The indices of an element with this number in an array of these sizes.
fn unflattened(mut number: Atom, sizes: &[Atom], op: &mut Arithmetic<'_>) -> Vec<Atom> {
    let mut out = Vec::new();
    for &n in sizes.iter().rev() {
        out.push(op(Op::Mod, number, n));
        number = op(Op::Div, number, n);
    }
    out.reverse();
    out
}

fn rearranged(b: &mut Builder<'_>, order: &[usize], array: Atom) -> Atom {
    if order.iter().enumerate().all(|(k, d)| k == *d) {
        return array;
    }
    b.emit(Exp::Rearrange(order.to_vec(), array), "part")
}
