//! Indices, slices, in-place updates and ranges.

use super::{Elaborator, Wrap};
use pullback_front::typed::{self, DimIndex, RangeKind};
use pullback_lambda::term::SliceDim;
use pullback_lambda::{Exp, Term, Type, Var};
use pullback_prim::{Op, Scalar};

/// An index or slice whose parts are variables or constants.
#[derive(Clone)]
enum Dim {
    At(Term),
    /// Start, end and stride as written.
    Slice(Option<Term>, Option<Term>, Option<Term>),
}

impl Dim {
    fn is_whole(&self) -> bool {
        matches!(self, Dim::Slice(None, None, None))
    }
}

impl<'s> Elaborator<'s, '_> {
    fn dims(&mut self, dims: &'s [DimIndex], wraps: &mut Vec<Wrap>) -> Vec<Dim> {
        let mut out = Vec::new();
        for dim in dims {
            out.push(match dim {
                DimIndex::At(i) => Dim::At(self.part(i, wraps)),
                DimIndex::Slice(from, to, stride) => {
                    let from = from.as_ref().map(|e| self.part(e, wraps));
                    let to = to.as_ref().map(|e| self.part(e, wraps));
                    let stride = stride.as_ref().map(|e| self.stride(e, wraps));
                    Dim::Slice(from, to, stride)
                }
            });
        }
        out
    }

    fn part(&mut self, e: &'s typed::Exp, wraps: &mut Vec<Wrap>) -> Term {
        let term = self.exp(e);
        self.atom(term, "i", wraps)
    }

    /// The stride of a slice; 0 stops the program.
    fn stride(&mut self, e: &'s typed::Exp, wraps: &mut Vec<Wrap>) -> Term {
        let stride = self.part(e, wraps);
        if matches!(stride.exp(), Exp::Const(c) if c.as_i64() != 0) {
            return stride;
        }
        let zero = self.b.i64(0);
        let is_zero = self.b.op2(Op::Eq, stride.clone(), zero);
        let valid = self.b.op1(Op::Not, is_zero);
        wraps.push(Wrap::Assert(valid, "this slice goes in steps of 0", Some(e.span)));
        stride
    }

    /// `array[dims]`.
    pub(super) fn index(&mut self, array: &'s typed::Exp, dims: &'s [DimIndex]) -> Term {
        let mut wraps = Vec::new();
        let array = self.exp(array);
        if dims.iter().all(|d| matches!(d, DimIndex::At(_))) {
            let mut indices = Vec::new();
            for dim in dims {
                if let DimIndex::At(i) = dim {
                    indices.push(self.exp(i));
                }
            }
            return self.b.index(array, indices);
        }
        let array = self.atom(array, "xs", &mut wraps);
        let dims = self.dims(dims, &mut wraps);
        let result = self.select(array, &dims, &mut wraps);
        self.close(wraps, result)
    }

    /// The part of a variable that the dimensions select.
    fn select(&mut self, array: Term, dims: &[Dim], wraps: &mut Vec<Wrap>) -> Term {
        let count = dims.iter().take_while(|d| matches!(d, Dim::At(_))).count();
        let (fixed, rest) = dims.split_at(count);
        let indices: Vec<Term> =
            fixed.iter().filter_map(|d| if let Dim::At(i) = d { Some(i.clone()) } else { None }).collect();
        let array = if indices.is_empty() { array } else { self.b.index(array, indices) };
        if rest.iter().all(Dim::is_whole) {
            return array;
        }
        let array = self.atom(array, "xs", wraps);
        let array = if rest[0].is_whole() {
            array
        } else {
            let slice = self.slice(&array, &rest[0], wraps);
            self.b.term(Exp::Slice(array, slice))
        };
        if rest[1..].iter().all(Dim::is_whole) {
            return array;
        }
        let row = array.ty().elem().cloned().unwrap_or_else(Type::unit);
        let var = self.b.fresh(row, "row");
        let inner = self.b.var(var);
        let mut inside = Vec::new();
        let inner = self.select(inner, &rest[1..], &mut inside);
        let inner = self.close(inside, inner);
        let f = self.b.term(Exp::Lam(var, inner));
        self.b.map(f, vec![array])
    }

    /// Start, length and stride of a slice of a variable's outer dimension. Futhark's defaults: with a negative stride
    /// from the last element to the first.
    fn slice(&mut self, array: &Term, dim: &Dim, wraps: &mut Vec<Wrap>) -> SliceDim {
        let (from, to, stride) = match dim {
            Dim::At(i) => (Some(i.clone()), None, None),
            Dim::Slice(from, to, stride) => (from.clone(), to.clone(), stride.clone()),
        };
        let size = self.b.size(array.clone(), 0);
        let size = if from.is_none() || to.is_none() { self.atom(size, "n", wraps) } else { size };
        let Some(stride) = stride else {
            let zero = self.b.i64(0);
            let start = from.unwrap_or(zero);
            let end = to.unwrap_or(size);
            let len = self.minus(end, start.clone());
            let stride = self.b.i64(1);
            return SliceDim { start, len, stride };
        };
        let negative = self.negative(&stride, wraps);
        let start = match from {
            Some(start) => start,
            None => {
                let one = self.b.i64(1);
                let last = self.minus(size.clone(), one);
                let zero = self.b.i64(0);
                let start = self.b.if_(negative.clone(), last, zero);
                self.atom(start, "start", wraps)
            }
        };
        let end = match to {
            Some(end) => end,
            None => {
                let before = self.b.i64(-1);
                let end = self.b.if_(negative.clone(), before, size);
                self.atom(end, "end", wraps)
            }
        };
        let distance = self.minus(end, start.clone());
        let (one, minus_one) = (self.b.i64(1), self.b.i64(-1));
        let sign = self.b.if_(negative, minus_one, one);
        let len = self.steps(distance, &stride, sign);
        SliceDim { start, len, stride }
    }

    fn negative(&mut self, value: &Term, wraps: &mut Vec<Wrap>) -> Term {
        let zero = self.b.i64(0);
        let negative = self.b.op2(Op::Lt, value.clone(), zero);
        self.atom(negative, "down", wraps)
    }

    fn minus(&mut self, a: Term, b: Term) -> Term {
        if let Exp::Const(c) = b.exp()
            && c.as_i64() == 0
        {
            return a;
        }
        self.b.op2(Op::Sub, a, b)
    }

    /// `array with [dims] = value`.
    pub(super) fn with(
        &mut self,
        array: &'s typed::Exp,
        dims: &'s [DimIndex],
        value: &'s typed::Exp,
    ) -> Term {
        let mut wraps = Vec::new();
        let array = self.exp(array);
        let array = self.atom(array, "xs", &mut wraps);
        let dims = self.dims(dims, &mut wraps);
        let value = self.exp(value);
        let value = self.atom(value, "v", &mut wraps);
        let result = self.update(array, &dims, value, &mut wraps);
        self.close(wraps, result)
    }

    /// A variable with the selected part replaced by another variable.
    fn update(&mut self, array: Term, dims: &[Dim], value: Term, wraps: &mut Vec<Wrap>) -> Term {
        let count = dims.iter().take_while(|d| matches!(d, Dim::At(_))).count();
        let (fixed, rest) = dims.split_at(count);
        let indices: Vec<Term> =
            fixed.iter().filter_map(|d| if let Dim::At(i) = d { Some(i.clone()) } else { None }).collect();
        let Some(first) = rest.first() else {
            return self.b.term(Exp::Update(array, indices, value));
        };
        if !indices.is_empty() {
            let inner = self.b.index(array.clone(), indices.clone());
            let inner = self.atom(inner, "xs", wraps);
            let inner = self.update(inner, rest, value, wraps);
            return self.b.term(Exp::Update(array, indices, inner));
        }
        let slice = self.slice(&array, first, wraps);
        let slice = self.atomic_slice(slice, wraps);
        if rest.len() == 1 {
            return self.b.term(Exp::UpdateSlice(array, slice, value));
        }
        let part = self.b.term(Exp::Slice(array.clone(), slice.clone()));
        let row = array.ty().elem().cloned().unwrap_or_else(Type::unit);
        let new_row = value.ty().elem().cloned().unwrap_or_else(Type::unit);
        let (old_var, new_var) = (self.b.fresh(row, "row"), self.b.fresh(new_row, "new"));
        let (old, new) = (self.b.var(old_var), self.b.var(new_var));
        let mut inside = Vec::new();
        let inner = self.update(old, &rest[1..], new, &mut inside);
        let inner = self.close(inside, inner);
        let f = self.b.term(Exp::Lam(new_var, inner));
        let f = self.b.term(Exp::Lam(old_var, f));
        let part = self.b.map(f, vec![part, value]);
        self.b.term(Exp::UpdateSlice(array, slice, part))
    }

    fn atomic_slice(&mut self, slice: SliceDim, wraps: &mut Vec<Wrap>) -> SliceDim {
        SliceDim {
            start: self.atom(slice.start, "start", wraps),
            len: self.atom(slice.len, "len", wraps),
            stride: self.atom(slice.stride, "stride", wraps),
        }
    }

    // ---- ranges

    /// A range as a map over positions. A range that goes the wrong way, or in steps of 0, stops the program.
    pub(super) fn range(&mut self, range: &'s typed::Range) -> Term {
        let mut wraps = Vec::new();
        let start = self.exp(&range.start);
        let Some(scalar) = start.ty().scalar() else {
            self.broken("a range of something that is no integer".to_string());
            return start;
        };
        let start = self.atom(start, "start", &mut wraps);
        let second = range.second.as_ref().map(|e| {
            let second = self.exp(e);
            self.atom(second, "second", &mut wraps)
        });
        let end = self.exp(&range.end);
        let starts_at_zero = matches!(start.exp(), Exp::Const(c) if c.as_i64() == 0);
        if range.kind == RangeKind::UpTo && second.is_none() && starts_at_zero && scalar == Scalar::I64 {
            let result = self.b.term(Exp::Iota(end));
            return self.close(wraps, result);
        }
        let end = self.atom(end, "end", &mut wraps);
        let step = self.range_step(range.kind, &start, &second, scalar, &mut wraps);
        let valid = self.range_is_valid(range.kind, &start, &second, &end, &mut wraps);
        wraps.push(Wrap::Assert(valid, "this range goes the wrong way or in steps of 0", None));
        let count = self.range_count(range.kind, &start, &second, &end, &mut wraps);
        let positions = self.b.term(Exp::Iota(count));
        let i: Var = self.b.fresh(Type::I64, "i");
        let position = self.b.var(i);
        let position = self.b.convert(position, scalar);
        let offset = self.b.op2(Op::Mul, position, step);
        let element = self.b.op2(Op::Add, start, offset);
        let f = self.b.term(Exp::Lam(i, element));
        let result = self.b.map(f, vec![positions]);
        self.close(wraps, result)
    }

    fn range_step(
        &mut self,
        kind: RangeKind,
        start: &Term,
        second: &Option<Term>,
        scalar: Scalar,
        wraps: &mut Vec<Wrap>,
    ) -> Term {
        match second {
            Some(second) => {
                let step = self.b.op2(Op::Sub, second.clone(), start.clone());
                self.atom(step, "step", wraps)
            }
            None => self.b.constant(scalar.from_i64(if kind == RangeKind::DownTo { -1 } else { 1 })),
        }
    }

    fn range_is_valid(
        &mut self,
        kind: RangeKind,
        start: &Term,
        second: &Option<Term>,
        end: &Term,
        wraps: &mut Vec<Wrap>,
    ) -> Term {
        let (start, end) = (start.clone(), end.clone());
        let up = self.b.op2(Op::Le, start.clone(), end.clone());
        let down = self.b.op2(Op::Le, end, start.clone());
        match (kind, second) {
            (RangeKind::Inclusive | RangeKind::UpTo, None) => up,
            (RangeKind::DownTo, None) => down,
            (RangeKind::Inclusive, Some(second)) => {
                let rising = self.b.op2(Op::Lt, start.clone(), second.clone());
                let falling = self.b.op2(Op::Lt, second.clone(), start);
                let falling = self.b.op2(Op::And, falling, down);
                let up = self.atom(up, "up", wraps);
                self.b.if_(rising, up, falling)
            }
            (RangeKind::UpTo, Some(second)) => {
                let rising = self.b.op2(Op::Lt, start, second.clone());
                self.b.op2(Op::And, rising, up)
            }
            (RangeKind::DownTo, Some(second)) => {
                let falling = self.b.op2(Op::Lt, second.clone(), start);
                self.b.op2(Op::And, falling, down)
            }
        }
    }

    /// The number of elements of a valid range. Counted in `i64`, as steps need not fit smaller types.
    fn range_count(
        &mut self,
        kind: RangeKind,
        start: &Term,
        second: &Option<Term>,
        end: &Term,
        wraps: &mut Vec<Wrap>,
    ) -> Term {
        let start = self.b.convert(start.clone(), Scalar::I64);
        let start = self.atom(start, "start", wraps);
        let second = second.as_ref().map(|s| self.b.convert(s.clone(), Scalar::I64));
        let step = self.range_step(kind, &start, &second, Scalar::I64, wraps);
        let end = self.b.convert(end.clone(), Scalar::I64);
        let distance = self.minus(end, start);
        let distance = self.atom(distance, "distance", wraps);
        match kind {
            RangeKind::Inclusive => {
                let steps = self.divided(distance, &step);
                let one = self.b.i64(1);
                self.b.op2(Op::Add, steps, one)
            }
            RangeKind::UpTo | RangeKind::DownTo => {
                // All but the end itself.
                let sign = self.b.i64(if kind == RangeKind::UpTo { 1 } else { -1 });
                self.steps(distance, &step, sign)
            }
        }
    }

    /// The number of steps of this sign over a distance, rounded up.
    fn steps(&mut self, distance: Term, step: &Term, sign: Term) -> Term {
        if matches!(step.exp(), Exp::Const(_)) {
            let rounding = self.minus(step.clone(), sign);
            let distance = self.b.op2(Op::Add, distance, rounding);
            return self.divided(distance, step);
        }
        // The same where the distance and the step together are too large for an integer.
        let before = self.minus(distance, sign);
        let steps = self.divided(before, step);
        let one = self.b.i64(1);
        self.b.op2(Op::Add, steps, one)
    }

    fn divided(&mut self, distance: Term, step: &Term) -> Term {
        if let Exp::Const(c) = step.exp()
            && c.as_i64() == 1
        {
            return distance;
        }
        self.b.op2(Op::Div, distance, step.clone())
    }
}
