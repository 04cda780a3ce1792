//! `permute` by any function, as terms that have a derivative: the elements sorted by their places, and a scan of those of each place.
//!
//! Source: Schenck et al., IFL 2023, section 4, for histograms: segmented scans of sorted values. The thesis has no `permute` as input, so the rule is ours.
//!
//! Notation: `w` the number of elements of the target `d`, which are numbered in row-major order · `n` that of the source `u` · a *row*: the elements that go to one place, in their order
//!
//! Rule:
//! ```text
//! permute c d f u   =>   let places = generate (shape u) (\i. let p = f i in cond p.0 (the number of p.1) w)
//!                        let sorted = the pairs (place, number) of all elements, by place                        each digit of the places in base two: a partition
//!                        let steps  = for each of sorted (it begins a row, c (d ! place, x) if it does and goes somewhere, else x)
//!                        let states = scanl1 (\(s, y). (s.0 or y.0, cond y.0 y.1 (c (s.1, y.1)))) steps
//!                        let counts = permute (+) 0 f 1      let ends = scanl1 (+) counts
//!                        in generate (shape d) (\j. cond (0 < counts ! j) (states ! (ends ! j - 1)).1 (d ! j))
//! ```
//!
//! The sort is of integers, so it has no derivative. Those of the scan multiply partial derivatives, so zeros need no care. What goes nowhere is a row of its own: `c` does not see it.
//!
//! Guarantee: the elements of a place are combined in their order, as `permute` does. Cost: work `n log w + w`.

use super::iterate::at_outer;
use super::language::{AVar, Arr, ArrForm, ArrTy, Exp, Fun, Names, Step, Ty, made};
use super::rows::{elements, integer, moved, number, rank};
use super::zeros::{addition, lambda, zeros};
use pullback_prim::{Op, Prim, Scalar};

/// The binary digits that a size may have: those of an integer without its sign.
const DIGITS: i64 = i64::BITS as i64 - 1;

/// The terms of one `permute`.
pub(super) struct Sorted {
    /// The bindings, in order.
    pub(super) lets: Vec<(AVar, Arr)>,
    /// The elements with what begins a row, for the scan.
    pub(super) steps: AVar,
    /// The operator of the scan.
    pub(super) operator: Fun,
    target: AVar,
    flat: AVar,
    counts: AVar,
    elem: Ty,
}

impl Sorted {
    /// Everything up to the scan. Cost: the size of the two functions.
    pub(super) fn new(names: &mut Names, c: &Fun, d: &Arr, f: &Fun, u: &Arr) -> Sorted {
        let elem = c.body.ty().clone();
        let mut all = Made { names, lets: Vec::new() };
        let (target, source) = (all.bind("target", d.clone()), all.bind("source", u.clone()));
        let (flat, elements) = (all.flat(&target), all.flat(&source));
        let places = all.places(f, (&source, &target));
        let sorted = all.sorted(&places, &size(&target));
        let steps = all.steps(c, &flat, (&elements, &sorted));
        let counts = all.counts(f, &target, &source);
        let operator = all.operator(c);
        Sorted { lets: all.lets, steps, operator, target, flat, counts, elem }
    }

    /// The result, from the states of the scan.
    pub(super) fn read(self, names: &mut Names, states: Arr) -> Arr {
        let Sorted { lets, target, flat, counts, elem, .. } = self;
        let mut all = Made { names, lets };
        let states = all.bind("states", states);
        let add = addition(all.names, &INT);
        let ends = all.bind("ends", arr(ArrForm::Scanl1(add, Arr::var(&counts))));
        let last = |j: Exp| {
            let row = made(Exp::index(&states, Exp::tuple(vec![moved(at(&ends, j.clone()), -1)])));
            let is_there = integer(Op::Lt, Exp::i64(0), at(&counts, j.clone()));
            made(Exp::cond(is_there, whole(&elem, parts(&row).split_off(1)), at(&flat, j)))
        };
        let results = all.generate(size(&target), last);
        let results = all.shaped(results, &target);
        made(Arr::lets(all.lets, results))
    }
}

const INT: Ty = Ty::Scalar(Scalar::I64);

struct Made<'n> {
    names: &'n mut Names,
    lets: Vec<(AVar, Arr)>,
}

impl Made<'_> {
    fn bind(&mut self, name: &str, u: Arr) -> AVar {
        let a = self.names.fresh(name, u.ty().clone());
        self.lets.push((a.clone(), u));
        a
    }

    /// An array of this many elements.
    fn generate(&mut self, n: Exp, f: impl FnOnce(Exp) -> Exp) -> Arr {
        let f = lambda(self.names, "i", Ty::index(1), |_, i| f(i.proj(0)));
        arr(ArrForm::Generate(Exp::tuple(vec![n]), f))
    }

    /// The elements in row-major order.
    fn flat(&mut self, a: &AVar) -> AVar {
        match rank(a) {
            1 => a.clone(),
            _ => self.bind("flat", arr(ArrForm::Reshape(Exp::tuple(vec![size(a)]), Arr::var(a)))),
        }
    }

    /// The elements in the shape of an array.
    fn shaped(&self, u: Arr, like: &AVar) -> Arr {
        match rank(like) {
            1 => u,
            _ => arr(ArrForm::Reshape(made(Exp::shape(like)), u)),
        }
    }

    /// The number of the place of each element, the size of the target if it goes nowhere.
    fn places(&mut self, f: &Fun, (source, target): (&AVar, &AVar)) -> AVar {
        let shape = made(Exp::shape(target));
        let place = self.names.fresh("place", f.body.ty().clone());
        let at = Exp::var(&place);
        let to = made(Exp::cond(at.proj(0), number(&shape, &at.proj(1)), size(target)));
        let body = made(Exp::lets(vec![(place, f.body.clone())], to));
        let all = arr(ArrForm::Generate(made(Exp::shape(source)), Fun { param: f.param.clone(), body }));
        let all = self.bind("places", all);
        self.flat(&all)
    }

    /// The pairs (place, number of the element), by place; those of one place stay in their order.
    fn sorted(&mut self, places: &AVar, width: &Exp) -> AVar {
        let pairs = self.generate(size(places), |i| Exp::tuple(vec![at(places, i.clone()), i]));
        let digit = |k: Exp| {
            let has = integer(Op::Lt, Exp::i64(0), integer(Op::Shr, width.clone(), k));
            made(Exp::cond(has, Exp::i64(1), Exp::i64(0)))
        };
        let digits = self.generate(Exp::i64(DIGITS), digit);
        let digits = self.bind("digits", arr(ArrForm::Sum(digits)));
        let digits = made(Exp::index(&digits, Exp::tuple(Vec::new())));
        let state = self.names.fresh("pairs", pairs.ty().clone());
        let counter = self.names.fresh("digit", ArrTy::Array(INT, 0));
        let body = self.partition(&state, &made(Exp::index(&counter, Exp::tuple(Vec::new()))));
        let sort = arr(ArrForm::Iterate(digits.clone(), Step { state, counter, body }, pairs));
        let sort = self.bind("sort", sort);
        self.bind("sorted", at_outer(&Arr::var(&sort), &digits))
    }

    /// The pairs whose place has a zero at this digit, then the others.
    fn partition(&mut self, pairs: &AVar, digit: &Exp) -> Arr {
        let mut inner = Made { names: &mut *self.names, lets: Vec::new() };
        let pair = made(pairs.ty().array()).0.clone();
        let of_digit = |p: Exp| integer(Op::And, integer(Op::Shr, p.proj(0), digit.clone()), Exp::i64(1));
        let ones = lambda(inner.names, "p", pair.clone(), |_, p| of_digit(p));
        let ones = inner.bind("ones", arr(ArrForm::Map(ones, Arr::var(pairs))));
        let add = addition(inner.names, &INT);
        let before = inner.bind("before", arr(ArrForm::Scanl(add, Exp::i64(0), Arr::var(&ones))));
        let to = lambda(inner.names, "i", Ty::index(1), |_, i| {
            let i = i.proj(0);
            let low = integer(Op::Sub, i.clone(), at(&before, i.clone()));
            let zeros = integer(Op::Sub, size(pairs), at(&before, size(pairs)));
            let high = integer(Op::Add, zeros, at(&before, i.clone()));
            let is_one = integer(Op::Eq, at(&ones, i), Exp::i64(1));
            Exp::tuple(vec![Exp::bool(true), Exp::tuple(vec![made(Exp::cond(is_one, high, low))])])
        });
        let room = zeros(inner.names, made(Exp::shape(pairs)), &pair);
        let add = addition(inner.names, &pair);
        let moved = arr(ArrForm::Permute(add, room, to, Arr::var(pairs)));
        made(Arr::lets(inner.lets, moved))
    }

    /// The elements in the order of their places, each with whether it begins a row; the first one of a place is combined with the target.
    fn steps(&mut self, c: &Fun, target: &AVar, (elements, sorted): (&AVar, &AVar)) -> AVar {
        let elem = c.body.ty().clone();
        let from = lambda(self.names, "i", Ty::index(1), |_, i| {
            Exp::tuple(vec![made(Exp::index(sorted, i)).proj(1)])
        });
        let moved_elements = ArrForm::Backpermute(made(Exp::shape(sorted)), from, Arr::var(elements));
        let gathered = self.bind("gathered", arr(moved_elements));
        let place = |i: Exp| at(sorted, i).proj(0);
        let goes = |p: Exp| integer(Op::Lt, p, size(target));
        let begins = |i: Exp| {
            let is_new = integer(Op::Ne, place(moved(i.clone(), -1)), place(i.clone()));
            let goes_on = made(Exp::cond(goes(place(i.clone())), is_new, Exp::bool(true)));
            let is_later = integer(Op::Lt, Exp::i64(0), i.clone());
            Exp::tuple(vec![place(i), made(Exp::cond(is_later, goes_on, Exp::bool(true)))])
        };
        let marks = self.generate(size(sorted), begins);
        let marks = self.bind("marks", marks);
        let given = Ty::Tuple(vec![Ty::Tuple(vec![INT, Ty::BOOL]), elem.clone()]);
        let step = lambda(self.names, "q", given, |names, q| {
            let (mark, x) = (q.proj(0), q.proj(1));
            let is_first =
                made(Exp::prim(Prim::Op(Op::And, Scalar::Bool), vec![mark.proj(1), goes(mark.proj(0))]));
            let first = applied(c, at(target, mark.proj(0)), x.clone());
            let value = names.fresh("value", elem.clone());
            let bindings = vec![(value.clone(), made(Exp::cond(is_first, first, x)))];
            made(Exp::lets(bindings, marked(mark.proj(1), &Exp::var(&value))))
        });
        self.bind("steps", arr(ArrForm::ZipWith(step, Arr::var(&marks), Arr::var(&gathered))))
    }

    /// How many elements each place has; a place outside of the target stops the program.
    fn counts(&mut self, f: &Fun, target: &AVar, source: &AVar) -> AVar {
        let none = zeros(self.names, made(Exp::shape(target)), &INT);
        let ones = made(Exp::shape(source));
        let ones = lambda(self.names, "i", ones.ty().clone(), |_, _| Exp::i64(1));
        let ones = arr(ArrForm::Generate(made(Exp::shape(source)), ones));
        let add = addition(self.names, &INT);
        let counts = self.bind("counts", arr(ArrForm::Permute(add, none, f.clone(), ones)));
        self.flat(&counts)
    }

    /// `\(s, y). (s.0 or y.0, cond y.0 y.1 (c (s.1, y.1)))`
    fn operator(&mut self, c: &Fun) -> Fun {
        let elem = c.body.ty().clone();
        let step = marked(Exp::bool(true), &Exp::var(&self.names.fresh("x", elem.clone()))).ty().clone();
        lambda(self.names, "p", Ty::Tuple(vec![step.clone(), step]), |names, p| {
            let (s, y) = (p.proj(0), p.proj(1));
            let either = made(Exp::prim(Prim::Op(Op::Or, Scalar::Bool), vec![s.proj(0), y.proj(0)]));
            let [left, right] = [&s, &y].map(|e| whole(&elem, parts(e).split_off(1)));
            let value = names.fresh("value", elem.clone());
            let combined = applied(c, left, right.clone());
            let bindings = vec![(value.clone(), made(Exp::cond(y.proj(0), right, combined)))];
            made(Exp::lets(bindings, marked(either, &Exp::var(&value))))
        })
    }
}

/// `c (x, y)`
fn applied(c: &Fun, x: Exp, y: Exp) -> Exp {
    made(Exp::lets(vec![(c.param.clone(), Exp::tuple(vec![x, y]))], c.body.clone()))
}

/// The components of a tuple; of a scalar, itself.
fn parts(e: &Exp) -> Vec<Exp> {
    match e.ty() {
        Ty::Tuple(ts) => (0..ts.len()).map(|k| e.proj(k)).collect(),
        Ty::Scalar(_) => vec![e.clone()],
    }
}

/// The value of this type that has these components.
fn whole(ty: &Ty, parts: Vec<Exp>) -> Exp {
    match ty {
        Ty::Tuple(_) => Exp::tuple(parts),
        Ty::Scalar(_) => Exp::packed(parts),
    }
}

/// A truth value before the components of a value: so tuples stay flat.
fn marked(is: Exp, value: &Exp) -> Exp {
    Exp::tuple([vec![is], parts(value)].concat())
}

/// The element of a vector.
fn at(a: &AVar, i: Exp) -> Exp {
    made(Exp::index(a, Exp::tuple(vec![i])))
}

/// The number of elements.
fn size(a: &AVar) -> Exp {
    elements(&made(Exp::shape(a)))
}

fn arr(form: ArrForm<()>) -> Arr {
    made(Arr::new(form))
}
