//! The derivatives of folds and scans: partial derivatives along a row, and products of them by scans.
//!
//! Source: MSc thesis, 3.4.4; 2.9.11 of our notes. The derivative of `scanl1` is ours: the adjoints of its states are a linear recurrence from the right.
//!
//! The rules stand in `dual`. Of a row `x_0, ..`, with states `s_0 = e, s_(k+1) = f (s_k, x_k)`: the derivative of the result by `x_i` is that of `f` by its second argument at `i`, times those by its first one at all `k > i`.
//! Of tuples with several continuous components (ours) derivatives are small matrices. There is no division, so zeros are fine; the function is associative, so the scans are parallel.

use super::dual::State;
use super::expression::{Split, Temporaries};
use super::label::Label;
use super::language::{AVar, Arr, ArrForm, EVar, Exp, Fun, Names, Ty, made};
use super::primal::{Lets, Pass};
use super::rows::{moved, shortened};
use super::zeros::{add, lambda, map_projection, zero_value};
use pullback_prim::{Op, Prim, Scalar};

impl Pass<'_> {
    /// `d_n`, for each element of its row of `a_m`.
    pub(super) fn for_each_element(&mut self, d: &AVar, m: &Arr<Label>) -> Arr {
        let rank = made(m.ty().array()).1;
        let size = self.shape(m).proj(rank - 1);
        let slc = (1..rank).map(|_| None).chain([Some(size)]).collect();
        made(Arr::new(ArrForm::Replicate(slc, Arr::var(d))))
    }

    /// `\(x, y).` the partial derivatives of `f` there, by `x` and by `y`: a row of each is `D(f)` of an adjoint that is one in one component.
    fn partials(&mut self, f: &Fun, of: &Components) -> Fun {
        let split = Split::new(self.names, f, Temporaries::Needed, self.options.ieee);
        let Split { primal, dual, .. } = split;
        lambda(self.names, "p", primal.param.ty().clone(), |names, p| {
            let value = names.fresh("value", primal.body.ty().clone());
            let tmp = Exp::var(&value).proj(1);
            let mut bindings = vec![(primal.param, p), (value, primal.body)];
            let rows: Vec<Exp> = (0..of.number())
                .map(|r| {
                    let given = Exp::tuple(vec![of.unit(r), tmp.clone()]);
                    let row = made(Exp::lets(vec![(dual.param.clone(), given)], dual.body.clone()));
                    let row = row_of(names, row, &mut bindings);
                    row.proj(0)
                })
                .collect();
            let by = |k: usize| {
                let rows = rows.iter().flat_map(|row| (0..of.number()).map(move |c| (row.proj(k), c)));
                Exp::packed(rows.map(|(row, c)| of.component(&row, c)).collect())
            };
            made(Exp::lets(bindings, Exp::tuple(vec![by(0), by(1)])))
        })
    }

    /// `\(x, y). y x`, of matrices: the derivatives along a row, the later one applied to the earlier one.
    fn chained(&mut self, of: &Components) -> Fun {
        let pair = Ty::Tuple(vec![of.matrix_type(), of.matrix_type()]);
        lambda(self.names, "p", pair, |_, p| of.product(&p.proj(1), &p.proj(0)))
    }

    /// The derivative of a fold by each element, where its result has the adjoint one.
    pub(super) fn slopes(
        &mut self,
        f: &Fun,
        e: &Exp,
        m: &Arr<Label>,
        of: &Components,
        lets: &mut Lets,
    ) -> Arr {
        let all = made(Arr::new(ArrForm::Scanl(f.clone(), e.clone(), self.value(m))));
        let all = self.bind("all", all, lets);
        let before = shortened(self.names, &all, 0, true);
        let partials = self.partials(f, of);
        let parts = made(Arr::new(ArrForm::ZipWith(partials, before, self.value(m))));
        let parts = Arr::var(&self.bind("parts", parts, lets));
        let by_state = map_projection(self.names, 0, parts.clone());
        let after = ArrForm::Scanr(self.chained(of), of.identity(), by_state);
        let after = self.bind("after", made(Arr::new(after)), lets);
        let after = shortened(self.names, &after, 1, true);
        let by_element = map_projection(self.names, 1, parts);
        made(Arr::new(ArrForm::ZipWith(self.chained(of), by_element, after)))
    }

    /// The same of a fold without a first value: that of each row is its first element.
    pub(super) fn slopes1(&mut self, f: &Fun, m: &Arr<Label>, of: &Components, lets: &mut Lets) -> Arr {
        let a = self.values[m.label()].clone();
        let all = self.bind("all", made(Arr::new(ArrForm::Scanl1(f.clone(), self.value(m)))), lets);
        let (before, next) = (shortened(self.names, &all, 0, false), shortened(self.names, &a, 1, false));
        let partials = self.partials(f, of);
        let parts = made(Arr::new(ArrForm::ZipWith(partials, before, next)));
        let parts = self.bind("parts", parts, lets);
        let by_state = map_projection(self.names, 0, Arr::var(&parts));
        let after = ArrForm::Scanr(self.chained(of), of.identity(), by_state);
        let after = made(Arr::new(after));
        let rank = made(a.ty().array()).1;
        // One, then the partial derivatives by the elements after the first.
        let by_element = lambda(self.names, "i", Ty::index(rank), |_, i| {
            let last = i.proj(rank - 1);
            let is_first = Exp::prim(Prim::Op(Op::Eq, Scalar::I64), vec![last.clone(), Exp::i64(0)]);
            let at = (0..rank - 1).map(|k| i.proj(k)).chain([moved(last, -1)]).collect();
            let part = made(Exp::index(&parts, Exp::tuple(at))).proj(1);
            made(Exp::cond(made(is_first), of.identity(), part))
        });
        let by_element = made(Arr::new(ArrForm::Generate(self.shape(m), by_element)));
        made(Arr::new(ArrForm::ZipWith(self.chained(of), by_element, after)))
    }

    /// Each element gets the adjoint of its row times its slope; where the adjoint is zero, zero.
    pub(super) fn folded(
        &mut self,
        slopes: Arr,
        d: &AVar,
        (m, of): (&Arr<Label>, &Components),
        state: &mut State<'_>,
    ) {
        let rows = self.for_each_element(d, m);
        let times = self.strong();
        let pair = Ty::Tuple(vec![of.ty.clone(), of.matrix_type()]);
        let f = lambda(self.names, "p", pair, |_, p| {
            of.element(of.applied(times, &of.vector_of(&p.proj(0)), &p.proj(1)))
        });
        state.give(m, made(Arr::new(ArrForm::ZipWith(f, rows, slopes))));
    }

    /// How an adjoint is multiplied by a derivative.
    fn strong(&self) -> Op {
        if self.options.ieee { Op::Mul } else { Op::StrongMul }
    }

    /// The adjoint of the argument of a fold by the smaller or larger one: that of the result, at the place of the element that it is; nowhere if it is the first value.
    // [accelerate.dual.extremum]
    pub(super) fn at_extremum(
        &mut self,
        (op, e): (Op, &Exp),
        d: &AVar,
        (m, of): (&Arr<Label>, &Components),
        lets: &mut Lets,
    ) -> Arr {
        let (a, s) = (self.values[m.label()].clone(), of.scalar);
        let rank = made(a.ty().array()).1;
        let placed = lambda(self.names, "i", Ty::index(rank), |_, i| {
            Exp::tuple(vec![made(Exp::index(&a, i.clone())), i.proj(rank - 1)])
        });
        let placed = made(Arr::new(ArrForm::Generate(self.shape(m), placed)));
        let elem = made(placed.ty().array()).0.clone();
        let better = lambda(self.names, "p", Ty::Tuple(vec![elem.clone(), elem]), |_, p| {
            let (x, y) = (p.proj(0).proj(0), p.proj(1).proj(0));
            let prim = |op, args| made(Exp::prim(Prim::Op(op, s), args));
            let (low, high) = if op == Op::MaxFirst { (&y, &x) } else { (&x, &y) };
            let stays = prim(Op::Le, vec![low.clone(), high.clone()]);
            let is_no_number = prim(Op::IsNan, vec![y.clone()]);
            let stays = made(Exp::prim(Prim::Op(Op::Or, Scalar::Bool), vec![stays, is_no_number]));
            made(Exp::cond(stays, p.proj(0), p.proj(1)))
        });
        let first = Exp::tuple(vec![e.clone(), Exp::i64(-1)]);
        let best = self.bind("best", made(Arr::new(ArrForm::Foldl(better, first, placed))), lets);
        let zero = Exp::constant(s.zero());
        let there = lambda(self.names, "i", Ty::index(rank), |_, i| {
            let row = Exp::tuple((0..rank - 1).map(|k| i.proj(k)).collect());
            let place = made(Exp::index(&best, row.clone())).proj(1);
            let is_there = Exp::prim(Prim::Op(Op::Eq, Scalar::I64), vec![place, i.proj(rank - 1)]);
            made(Exp::cond(made(is_there), made(Exp::index(d, row)), zero))
        });
        made(Arr::new(ArrForm::Generate(self.shape(m), there)))
    }

    /// The adjoint of the argument of a scan without a first value.
    pub(super) fn scanned(
        &mut self,
        f: &Fun,
        (u, d): (&Arr<Label>, &AVar),
        (m, of): (&Arr<Label>, &Components),
        lets: &mut Lets,
    ) -> Arr {
        let (all, a) = (self.values[u.label()].clone(), self.values[m.label()].clone());
        let (before, next) = (shortened(self.names, &all, 0, false), shortened(self.names, &a, 1, false));
        let partials = self.partials(f, of);
        let parts = self.bind("parts", made(Arr::new(ArrForm::ZipWith(partials, before, next))), lets);
        let rank = made(a.ty().array()).1;
        let size = self.shape(m);
        let beside = |i: &Exp, by: i64| {
            let last = if by == 0 { i.proj(rank - 1) } else { moved(i.proj(rank - 1), by) };
            Exp::tuple((0..rank - 1).map(|k| i.proj(k)).chain([last]).collect())
        };
        // Each element's (partial derivative of the next state by this one, adjoint).
        let steps = lambda(self.names, "i", Ty::index(rank), |_, i| {
            let next = moved(i.proj(rank - 1), 1);
            let is_not_last = Exp::prim(Prim::Op(Op::Lt, Scalar::I64), vec![next, size.proj(rank - 1)]);
            let by_state = made(Exp::index(&parts, i.clone())).proj(0);
            let slope = made(Exp::cond(made(is_not_last), by_state, zero_value(&of.matrix_type())));
            Exp::tuple(vec![slope, Exp::packed(of.vector_of(&made(Exp::index(d, i))))])
        });
        let steps = made(Arr::new(ArrForm::Generate(self.shape(m), steps)));
        let pair = Ty::Tuple(vec![of.matrix_type(), of.vector_type()]);
        let times = self.strong();
        let joined = lambda(self.names, "p", Ty::Tuple(vec![pair.clone(), pair.clone()]), |_, p| {
            let (x, y) = (p.proj(0), p.proj(1));
            let later = Exp::packed(of.applied(times, &of.entries(&y.proj(1)), &x.proj(0)));
            Exp::tuple(vec![of.product(&y.proj(0), &x.proj(0)), add(&x.proj(1), &later)])
        });
        let first = Exp::tuple(vec![of.identity(), zero_value(&of.vector_type())]);
        let sums = self.bind("sums", made(Arr::new(ArrForm::Scanr(joined, first, steps))), lets);
        let result = lambda(self.names, "i", Ty::index(rank), |_, i| {
            let is_first = Exp::prim(Prim::Op(Op::Eq, Scalar::I64), vec![i.proj(rank - 1), Exp::i64(0)]);
            let by_element = made(Exp::index(&parts, beside(&i, -1))).proj(1);
            let slope = made(Exp::cond(made(is_first), of.identity(), by_element));
            let adjoint = made(Exp::index(&sums, i)).proj(1);
            of.element(of.applied(times, &of.entries(&adjoint), &slope))
        });
        made(Arr::new(ArrForm::Generate(self.shape(m), result)))
    }
}

/// Binds an expression, and gives its variable.
fn row_of(names: &mut Names, e: Exp, bindings: &mut Vec<(EVar, Exp)>) -> Exp {
    let x = names.fresh("row", e.ty().clone());
    bindings.push((x.clone(), e));
    Exp::var(&x)
}

/// The continuous components of the elements of a fold, of one float type. Of one component, vectors and matrices are numbers.
#[derive(Clone, Debug)]
pub(super) struct Components {
    ty: Ty,
    scalar: Scalar,
    /// Where they are, if the elements are tuples.
    places: Vec<usize>,
}

impl Components {
    /// Those of a type that is one of flat tuples.
    pub(super) fn new(ty: &Ty) -> Option<Components> {
        let scalars = match ty {
            Ty::Scalar(s) => vec![*s],
            Ty::Tuple(ts) if ts.iter().all(|t| matches!(t, Ty::Scalar(_))) => ty.scalars(),
            Ty::Tuple(_) => return None,
        };
        let places: Vec<usize> = (0..scalars.len()).filter(|k| scalars[*k].is_float()).collect();
        let scalar = scalars[*places.first()?];
        let is_one = places.iter().all(|k| scalars[*k] == scalar);
        is_one.then(|| Components { ty: ty.clone(), scalar, places })
    }
    fn number(&self) -> usize {
        self.places.len()
    }
    fn component(&self, e: &Exp, k: usize) -> Exp {
        match &self.ty {
            Ty::Scalar(_) => e.clone(),
            Ty::Tuple(_) => e.proj(self.places[k]),
        }
    }
    /// The element with these components, and zeros for what is discrete.
    fn element(&self, components: Vec<Exp>) -> Exp {
        let Ty::Tuple(ts) = &self.ty else {
            return components.into_iter().next().unwrap_or_else(|| self.zero());
        };
        let mut all: Vec<Exp> = ts.iter().map(zero_value).collect();
        self.places.iter().zip(components).for_each(|(k, e)| all[*k] = e);
        Exp::tuple(all)
    }
    fn zero(&self) -> Exp {
        Exp::constant(self.scalar.zero())
    }
    fn one(&self) -> Exp {
        Exp::constant(self.scalar.one())
    }
    /// The adjoint that is one in component `k`.
    fn unit(&self, k: usize) -> Exp {
        self.element((0..self.number()).map(|j| if j == k { self.one() } else { self.zero() }).collect())
    }
    fn vector_of(&self, e: &Exp) -> Vec<Exp> {
        (0..self.number()).map(|k| self.component(e, k)).collect()
    }
    fn entries(&self, vector: &Exp) -> Vec<Exp> {
        match self.number() {
            1 => vec![vector.clone()],
            n => (0..n).map(|k| vector.proj(k)).collect(),
        }
    }
    fn vector_type(&self) -> Ty {
        self.some(self.number())
    }
    fn matrix_type(&self) -> Ty {
        self.some(self.number() * self.number())
    }
    fn some(&self, n: usize) -> Ty {
        if n == 1 { Ty::Scalar(self.scalar) } else { Ty::Tuple(vec![Ty::Scalar(self.scalar); n]) }
    }
    /// A matrix is its rows, one after the other.
    fn entry(&self, matrix: &Exp, r: usize, c: usize) -> Exp {
        if self.number() == 1 { matrix.clone() } else { matrix.proj(r * self.number() + c) }
    }
    fn identity(&self) -> Exp {
        let n = self.number();
        let entry = |k: usize| if k / n == k % n { self.one() } else { self.zero() };
        Exp::packed((0..n * n).map(entry).collect())
    }
    fn sum(&self, times: Op, terms: impl Iterator<Item = (Exp, Exp)>) -> Exp {
        let prim = |op, x, y| made(Exp::prim(Prim::Op(op, self.scalar), vec![x, y]));
        let products = terms.map(|(x, y)| prim(times, x, y));
        products.reduce(|x, y| prim(Op::Add, x, y)).unwrap_or_else(|| self.zero())
    }
    /// The matrix product.
    fn product(&self, a: &Exp, b: &Exp) -> Exp {
        let n = self.number();
        let entry = |k: usize| {
            let terms = (0..n).map(|j| (self.entry(a, k / n, j), self.entry(b, j, k % n)));
            self.sum(Op::Mul, terms)
        };
        Exp::packed((0..n * n).map(entry).collect())
    }
    /// The row vector times the matrix.
    fn applied(&self, times: Op, v: &[Exp], m: &Exp) -> Vec<Exp> {
        let column = |c: usize| {
            let terms = v.iter().enumerate().map(|(r, x)| (x.clone(), self.entry(m, r, c)));
            self.sum(times, terms)
        };
        (0..self.number()).map(column).collect()
    }
}
