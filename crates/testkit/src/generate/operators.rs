//! Associative operators with their neutral elements, and the reductions and scans made with them.

use super::shape::{Dim, Shaped};
use super::{Entry, Generator, LIMIT, Val};
use pullback_core::{Atom, Builder, Exp, Lam, Soac};
use pullback_prim::{Op, Scalar};

/// A monoid on tuples of scalars. All are associative on the reals; some only for the inputs they are given here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Monoid {
    Add,
    Mul,
    Min,
    Max,
    /// `min` with its arguments exchanged: of equal elements the last one is the minimum.
    LastMin,
    /// `max` spelled as a conditional: no rule for `max` recognises it.
    ChosenMax,
    /// `(p, s) (q, t) = (p + q + s t, s + t)`: sum of pairwise products.
    PairProducts,
    /// `(a, b) (c, d) = (c a, c b + d)`: composition of affine maps, left one first.
    Affine,
    /// Product of 2 x 2 matrices.
    Matrix,
    /// `log (exp x + exp y)`, with -1000 for minus infinity.
    LogAddExp,
    /// `x + y + x y`.
    OnePlus,
    /// Product of complex numbers.
    Complex,
    /// Sum of numbers and of integers.
    CountAndSum,
    /// Largest number and the first position where it is.
    Largest,
    /// `(x, k) (y, l) = (0.9^l x + y, k + l)`, the power as a loop: the cost depends on the arguments.
    Powers,
    /// `x y c` with a free variable `c`.
    Scaled,
}

const GENERAL: [Monoid; 13] = [
    Monoid::Mul,
    Monoid::Min,
    Monoid::Max,
    Monoid::ChosenMax,
    Monoid::PairProducts,
    Monoid::Affine,
    Monoid::Matrix,
    Monoid::LogAddExp,
    Monoid::OnePlus,
    Monoid::Complex,
    Monoid::CountAndSum,
    Monoid::Largest,
    Monoid::Powers,
];

/// A number below every input of a maximum; used as its neutral element where infinity could come out.
const LOW: f64 = -10.0;

impl Monoid {
    /// The scalar type of each component, for floats of type `s`.
    fn types(self, s: Scalar) -> Vec<Scalar> {
        match self {
            Monoid::Add
            | Monoid::Mul
            | Monoid::Min
            | Monoid::Max
            | Monoid::LastMin
            | Monoid::ChosenMax
            | Monoid::LogAddExp
            | Monoid::OnePlus
            | Monoid::Scaled => vec![s],
            Monoid::PairProducts | Monoid::Affine | Monoid::Complex => vec![s, s],
            Monoid::Matrix => vec![s; 4],
            Monoid::CountAndSum | Monoid::Largest | Monoid::Powers => vec![s, Scalar::I64],
        }
    }
    /// Largest magnitude of input elements.
    fn input_bound(self) -> f64 {
        match self {
            Monoid::Add | Monoid::CountAndSum | Monoid::Powers => LIMIT,
            Monoid::Mul | Monoid::Scaled | Monoid::Affine => 1.25,
            Monoid::PairProducts => 2.0,
            Monoid::Min
            | Monoid::Max
            | Monoid::LastMin
            | Monoid::ChosenMax
            | Monoid::Largest
            | Monoid::LogAddExp => LIMIT,
            Monoid::Matrix => 0.7,
            Monoid::OnePlus => 0.5,
            Monoid::Complex => 0.8,
        }
    }
    /// A bound on the results for `n` inputs within `bound`.
    fn output_bound(self, bound: f64, n: usize) -> f64 {
        let n = n.max(1) as f64;
        match self {
            Monoid::Add | Monoid::CountAndSum | Monoid::Powers => bound * n,
            Monoid::Mul => bound.max(1.0).powf(n),
            Monoid::Scaled => 1.7 * (1.3 * bound).max(1.0).powf(n),
            Monoid::Affine => n * bound.max(1.0).powf(n),
            Monoid::PairProducts => n * n * bound * bound + n * bound,
            Monoid::Min | Monoid::Max | Monoid::LastMin | Monoid::ChosenMax | Monoid::Largest => {
                bound.max(-LOW)
            }
            Monoid::LogAddExp => 1000.0,
            Monoid::Matrix => (2.0 * bound).max(1.0).powf(n),
            Monoid::OnePlus => (1.0 + bound).powf(n),
            Monoid::Complex => (1.5 * bound).max(1.0).powf(n),
        }
    }
    fn commutative(self) -> bool {
        matches!(self, Monoid::Add | Monoid::Mul | Monoid::Min | Monoid::Max)
    }
    /// The neutral element; `infinite`: minus infinity may be used.
    fn neutral(self, s: Scalar, infinite: bool) -> Vec<Atom> {
        let c = |x: f64| Atom::Const(s.from_f64(x));
        let low = if infinite { f64::NEG_INFINITY } else { LOW };
        match self {
            Monoid::Add | Monoid::OnePlus => vec![c(0.0)],
            Monoid::Mul | Monoid::Scaled => vec![c(1.0)],
            Monoid::Min | Monoid::LastMin => vec![c(-low)],
            Monoid::Max | Monoid::ChosenMax => vec![c(low)],
            Monoid::PairProducts => vec![c(0.0), c(0.0)],
            Monoid::Affine => vec![c(1.0), c(0.0)],
            Monoid::Complex => vec![c(1.0), c(0.0)],
            Monoid::Matrix => vec![c(1.0), c(0.0), c(0.0), c(1.0)],
            Monoid::LogAddExp => vec![c(-1000.0)],
            Monoid::CountAndSum | Monoid::Powers => vec![c(0.0), Atom::i64(0)],
            Monoid::Largest => vec![c(LOW), Atom::i64(-1)],
        }
    }
    /// The operator on the components of the left and the right argument; `free`: the free variable of `Scaled`.
    fn apply(self, b: &mut Builder<'_>, l: &[Atom], r: &[Atom], free: Option<Atom>) -> Vec<Atom> {
        match self {
            Monoid::Add => vec![b.op2(Op::Add, l[0], r[0])],
            Monoid::Mul => vec![b.op2(Op::Mul, l[0], r[0])],
            Monoid::Min => vec![b.op2(Op::Min, l[0], r[0])],
            Monoid::Max => vec![b.op2(Op::Max, l[0], r[0])],
            Monoid::LastMin => vec![b.op2(Op::Min, r[0], l[0])],
            Monoid::ChosenMax => {
                let c = b.op2(Op::Le, r[0], l[0]);
                b.if_(c, |_| vec![l[0]], |_| vec![r[0]]).into_iter().map(Atom::from).collect()
            }
            Monoid::PairProducts => {
                let product = b.op2(Op::Mul, l[1], r[1]);
                let p = b.op2(Op::Add, l[0], r[0]);
                vec![b.op2(Op::Add, p, product), b.op2(Op::Add, l[1], r[1])]
            }
            Monoid::Affine => {
                let t = b.op2(Op::Mul, r[0], l[1]);
                vec![b.op2(Op::Mul, r[0], l[0]), b.op2(Op::Add, t, r[1])]
            }
            Monoid::Complex => {
                let mut product = |x, y| b.op2(Op::Mul, x, y);
                let (rr, ii, ri, ir) =
                    (product(l[0], r[0]), product(l[1], r[1]), product(l[0], r[1]), product(l[1], r[0]));
                vec![b.op2(Op::Sub, rr, ii), b.op2(Op::Add, ri, ir)]
            }
            Monoid::Matrix => {
                let mut out = Vec::new();
                for (i, j) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
                    let x = b.op2(Op::Mul, l[2 * i], r[j]);
                    let y = b.op2(Op::Mul, l[2 * i + 1], r[2 + j]);
                    out.push(b.op2(Op::Add, x, y));
                }
                out
            }
            Monoid::LogAddExp => {
                // Without the usual subtraction of the maximum: at a tie that has a kink where this is smooth.
                let x = b.op1(Op::Exp, l[0]);
                let y = b.op1(Op::Exp, r[0]);
                let sum = b.op2(Op::Add, x, y);
                vec![b.op1(Op::Log, sum)]
            }
            Monoid::OnePlus => {
                let sum = b.op2(Op::Add, l[0], r[0]);
                let product = b.op2(Op::Mul, l[0], r[0]);
                vec![b.op2(Op::Add, sum, product)]
            }
            Monoid::CountAndSum => vec![b.op2(Op::Add, l[0], r[0]), b.op2(Op::Add, l[1], r[1])],
            Monoid::Largest => {
                let c = b.op2(Op::Le, r[0], l[0]);
                vec![b.select(c, l[0], r[0]), b.select(c, l[1], r[1])]
            }
            Monoid::Powers => {
                let s = b.scalar(l[0]);
                let step = Atom::Const(s.from_f64(0.9));
                let scaled = b.for_loop(r[1], &[l[0]], |b, _, x| vec![b.op2(Op::Mul, x[0].into(), step)]);
                vec![b.op2(Op::Add, scaled[0].into(), r[0]), b.op2(Op::Add, l[1], r[1])]
            }
            Monoid::Scaled => {
                let product = b.op2(Op::Mul, l[0], r[0]);
                vec![free.map_or(product, |c| b.op2(Op::Mul, product, c))]
            }
        }
    }
}

impl Generator<'_> {
    /// An operator for a reduction or scan.
    fn choose_monoid(&mut self) -> Monoid {
        if self.rng.chance(self.config.free_operator) {
            Monoid::Scaled
        } else if self.rng.chance(self.config.general_operator) {
            *self.rng.choose(&GENERAL)
        } else if self.config.extremum > 0.0 && self.rng.chance(self.config.extremum) {
            *self.rng.choose(&[Monoid::Min, Monoid::Max])
        } else {
            Monoid::Add
        }
    }

    /// A reduction (or scan) of `d` generated elements. Results: the components with floats of type `s`
    /// (for a scan: arrays of them).
    pub(crate) fn fold(&mut self, b: &mut Builder<'_>, d: Dim, s: Scalar, scan: bool) -> Vec<Val> {
        let monoid = self.choose_monoid();
        let types = monoid.types(s);
        let limit = monoid.input_bound();
        let count = d.at(self.sizes);
        if !matches!(monoid, Monoid::Add) {
            self.features.general_operators += 1;
        }
        let mut bound = 0.0f64;
        let mut arrays = Vec::new();
        for t in &types {
            let shape = Shaped::array(d, Shaped::Scalar(*t));
            if monoid == Monoid::Largest && *t == Scalar::I64 {
                let width = self.dim(b, d);
                arrays.push(b.emit(Exp::Iota(width), "is"));
                continue;
            }
            if monoid == Monoid::Powers && *t == Scalar::I64 {
                let width = self.dim(b, d);
                arrays.push(b.emit(Exp::Replicate(vec![width], Atom::i64(1)), "ones"));
                continue;
            }
            let v = self.value(b, &shape);
            let v = self.limit(b, &shape, v, limit);
            bound = bound.max(v.bound);
            arrays.push(v.atom);
        }
        let (free, mut neutral) = (self.free_factor(b, monoid, s), monoid.neutral(s, count > 0));
        if let Some(c) = free {
            neutral = vec![b.op2(Op::Div, Atom::Const(s.from_f64(1.0)), c)];
        }
        let lam = operator(b, monoid, &types, free);
        let width = self.dim(b, d);
        let soac = if scan {
            self.features.scan += 1;
            Soac::Scan { width, lam, neutral, arrays }
        } else {
            self.features.reduce += 1;
            Soac::Reduce { width, lam, neutral, arrays, commutative: monoid.commutative() }
        };
        let out = b.emit_all(Exp::Soac(soac), if scan { "scan" } else { "red" });
        let bound = monoid.output_bound(bound, count);
        out.iter()
            .zip(&types)
            .filter(|(_, t)| **t == s)
            .map(|(v, _)| Val { atom: (*v).into(), bound })
            .collect()
    }

    fn free_factor(&mut self, b: &mut Builder<'_>, monoid: Monoid, s: Scalar) -> Option<Atom> {
        if monoid != Monoid::Scaled {
            return None;
        }
        let c = self.value(b, &Shaped::Scalar(s)).atom;
        let c = b.op1(Op::Sin, c);
        let c = b.op2(Op::Mul, c, Atom::Const(s.from_f64(0.25)));
        Some(b.op2(Op::Add, c, Atom::Const(s.from_f64(1.0))))
    }

    /// An operator on rows: elementwise, or (on vectors) the cyclic convolution.
    fn row_operator(&mut self, b: &mut Builder<'_>, row: &Shaped, s: Scalar) -> RowOperator {
        self.features.general_operators += 1;
        let sizes: Vec<Atom> = row.dims().into_iter().map(|d| self.dim(b, d)).collect();
        if let ([size], true) = (&sizes[..], self.rng.chance(0.15)) {
            return convolution(b, *size, s, row.dims()[0].at(self.sizes));
        }
        let choices = [Monoid::Add, Monoid::Max, Monoid::Mul, Monoid::LogAddExp, Monoid::Scaled];
        let monoid = choices[self.rng.weighted(&[0.5, 0.15, 0.15, 0.1, 0.1])];
        let free = self.free_factor(b, monoid, s);
        let mut neutral = monoid.neutral(s, false)[0];
        if let Some(c) = free {
            neutral = b.op2(Op::Div, Atom::Const(s.from_f64(1.0)), c);
        }
        let neutral = b.emit(Exp::Replicate(sizes.clone(), neutral), "neutral");
        let lam = b.lam(&[row.ty(), row.ty()], "r", |b, p| {
            vec![by_element(b, &sizes, p[0].into(), p[1].into(), &mut |b, x, y| {
                monoid.apply(b, &[x], &[y], free)[0]
            })]
        });
        RowOperator { lam, neutral, kind: RowKind::Elementwise(monoid) }
    }

    /// A scan of rows with an associative operator: the goal has at least two dimensions and a float base.
    pub(crate) fn row_scan(&mut self, b: &mut Builder<'_>, d: Dim, row: &Shaped, s: Scalar) -> Val {
        let shape = Shaped::array(d, row.clone());
        let v = self.value(b, &shape);
        let RowOperator { lam, neutral, kind } = self.row_operator(b, row, s);
        let v = self.limit(b, &shape, v, kind.input_bound());
        let width = self.dim(b, d);
        self.features.scan += 1;
        let out = b
            .emit(Exp::Soac(Soac::Scan { width, lam, neutral: vec![neutral], arrays: vec![v.atom] }), "rows");
        let bound = kind.output_bound(v.bound, d.at(self.sizes));
        self.limit(b, &shape, Val { atom: out, bound }, LIMIT)
    }

    /// The row that combines generated rows with an associative operator.
    pub(crate) fn row_reduce(&mut self, b: &mut Builder<'_>, row: &Shaped, s: Scalar) -> Val {
        let d = self.random_dim();
        let shape = Shaped::array(d, row.clone());
        let v = self.value(b, &shape);
        let RowOperator { lam, neutral, kind } = self.row_operator(b, row, s);
        let v = self.limit(b, &shape, v, kind.input_bound());
        let width = self.dim(b, d);
        self.features.reduce += 1;
        let (arrays, commutative) = (vec![v.atom], kind.commutative());
        let soac = Soac::Reduce { width, lam, neutral: vec![neutral], arrays, commutative };
        let out = b.emit(Exp::Soac(soac), "row");
        let bound = kind.output_bound(v.bound, d.at(self.sizes));
        self.limit(b, row, Val { atom: out, bound }, LIMIT)
    }

    /// `reduce_by_index` into a generated array.
    pub(crate) fn hist(&mut self, b: &mut Builder<'_>, d: Dim, element: &Shaped, s: Scalar) -> Val {
        self.features.hist += 1;
        if element.rank() > 0 {
            return self.row_hist(b, d, element, s);
        }
        let e = self.random_dim();
        let general = self.rng.chance(self.config.general_hist);
        let monoid = if !general {
            Monoid::Add
        } else if self.rng.chance(self.config.free_operator) {
            Monoid::Scaled
        } else {
            *self.rng.choose(&GENERAL)
        };
        // In turn, and not by chance: seeds that found faults stay the programs that they were.
        let exchanged = monoid == Monoid::Min && self.features.hist.is_multiple_of(2);
        let monoid = if exchanged { Monoid::LastMin } else { monoid };
        let types = monoid.types(s);
        let mut bound = 0.0f64;
        let mut dst = Vec::new();
        let mut values = Vec::new();
        for t in &types {
            for (list, size) in [(&mut dst, d), (&mut values, e)] {
                let shape = Shaped::array(size, Shaped::Scalar(*t));
                let v = self.value(b, &shape);
                let v = self.limit(b, &shape, v, monoid.input_bound());
                bound = bound.max(if *t == s { v.bound } else { 0.0 });
                list.push(v.atom);
            }
        }
        let indices = self.indices(b, e, d, true);
        let width = self.dim(b, e);
        let (free, mut neutral) = (self.free_factor(b, monoid, s), monoid.neutral(s, true));
        if let Some(c) = free {
            neutral = vec![b.op2(Op::Div, Atom::Const(s.from_f64(1.0)), c)];
        }
        let lam = operator(b, monoid, &types, free);
        let soac = Soac::Hist { width, lam, neutral, dst, indices, values };
        let out = b.emit_all(Exp::Soac(soac), "hist");
        let bound = monoid.output_bound(bound, e.at(self.sizes) + 1);
        let shape = Shaped::array(d, element.clone());
        let first = self.limit(b, &shape, Val { atom: out[0].into(), bound }, LIMIT);
        for (&v, t) in out.iter().zip(&types).skip(1) {
            if *t == s {
                let v = self.limit(b, &shape, Val { atom: v.into(), bound }, LIMIT);
                self.scope.push(Entry { atom: v.atom, shape: shape.clone(), bound: v.bound, used: false });
            }
        }
        first
    }

    /// `reduce_by_index` with rows as elements and an operator that works element by element.
    fn row_hist(&mut self, b: &mut Builder<'_>, d: Dim, row: &Shaped, s: Scalar) -> Val {
        let e = self.random_dim();
        let (op, monoid) = *self.rng.choose(&[
            (Op::Add, Monoid::Add),
            (Op::Add, Monoid::Add),
            (Op::Mul, Monoid::Mul),
            (Op::Max, Monoid::Max),
        ]);
        let shape = Shaped::array(d, row.clone());
        let dst = self.value(b, &shape);
        let dst = self.limit(b, &shape, dst, monoid.input_bound());
        let values_shape = Shaped::array(e, row.clone());
        let values = self.value(b, &values_shape);
        let values = self.limit(b, &values_shape, values, monoid.input_bound());
        let indices = self.indices(b, e, d, true);
        let width = self.dim(b, e);
        let sizes: Vec<Atom> = row.dims().into_iter().map(|d| self.dim(b, d)).collect();
        let neutral = monoid.neutral(s, true)[0];
        let neutral = vec![b.emit(Exp::Replicate(sizes.clone(), neutral), "neutral")];
        let lam = b.lam(&[row.ty(), row.ty()], "r", |b, p| {
            vec![elementwise(b, op, &sizes, p[0].into(), p[1].into())]
        });
        let (dsts, columns) = (vec![dst.atom], vec![values.atom]);
        let soac = Soac::Hist { width, lam, neutral, dst: dsts, indices, values: columns };
        let out = b.emit(Exp::Soac(soac), "hist");
        let bound = monoid.output_bound(dst.bound.max(values.bound), e.at(self.sizes) + 1);
        self.limit(b, &shape, Val { atom: out, bound }, LIMIT)
    }

    /// `count` indices into an array of size `into`; `outside`: some may be out of range.
    pub(crate) fn indices(&mut self, b: &mut Builder<'_>, count: Dim, into: Dim, outside: bool) -> Atom {
        let raw = if self.rng.chance(0.5) {
            self.value(b, &Shaped::array(count, Shaped::I64)).atom
        } else {
            let n = self.dim(b, count);
            b.emit(Exp::Iota(n), "is")
        };
        let width = self.dim(b, count);
        let size = self.dim(b, into);
        let stride = self.rng.range(1, 3) as i64;
        let shift = self.rng.below(3) as i64;
        let outside = outside && self.rng.chance(0.4);
        let lam = b.lam(&[pullback_core::Type::I64], "i", |b, p| {
            let i = b.op2(Op::Mul, p[0].into(), Atom::i64(stride));
            let i = b.op2(Op::Add, i, Atom::i64(shift));
            if outside {
                // From -1 to one beyond the end.
                let range = b.op2(Op::Add, size, Atom::i64(2));
                let i = b.op2(Op::Mod, i, range);
                vec![b.op2(Op::Sub, i, Atom::i64(1))]
            } else if into.at(self.sizes) == 0 {
                vec![i]
            } else {
                vec![b.op2(Op::Mod, i, size)]
            }
        });
        b.emit(Exp::Soac(Soac::Map { width, lam, arrays: vec![raw] }), "ix")
    }
}

/// An operator on rows.
struct RowOperator {
    lam: Lam,
    neutral: Atom,
    kind: RowKind,
}

/// How large its results may become.
enum RowKind {
    Elementwise(Monoid),
    /// Of vectors of this size.
    Convolution(usize),
}

impl RowKind {
    fn input_bound(&self) -> f64 {
        match self {
            RowKind::Elementwise(monoid) => monoid.input_bound(),
            RowKind::Convolution(_) => 0.7,
        }
    }
    fn output_bound(&self, bound: f64, n: usize) -> f64 {
        match self {
            RowKind::Elementwise(monoid) => monoid.output_bound(bound, n),
            RowKind::Convolution(size) => (*size as f64 * bound).max(1.0).powf(n.max(1) as f64),
        }
    }
    fn commutative(&self) -> bool {
        match self {
            RowKind::Elementwise(monoid) => monoid.commutative(),
            RowKind::Convolution(_) => true,
        }
    }
}

/// `z[k] = Σ x[j] y[(k - j) mod size]`: the product of polynomials modulo `X^size - 1`.
fn convolution(b: &mut Builder<'_>, size: Atom, s: Scalar, count: usize) -> RowOperator {
    let is = b.emit(Exp::Iota(size), "is");
    let (zero, one) = (Atom::Const(s.zero()), Atom::Const(s.one()));
    let unit = b.map(size, &[is], |b, i| {
        let first = b.op2(Op::Eq, i[0].into(), Atom::i64(0));
        vec![b.select(first, one, zero)]
    });
    let row = pullback_core::Type::array(pullback_core::Type::Scalar(s));
    let lam = b.lam(&[row.clone(), row], "r", |b, p| {
        let out = b.map(size, &[is], |b, k| {
            let terms = b.map(size, &[p[0].into(), is], |b, xj| {
                let at = b.op2(Op::Sub, k[0].into(), xj[1].into());
                let at = b.op2(Op::Mod, at, size);
                let y = b.index(p[1].into(), &[at]);
                vec![b.op2(Op::Mul, xj[0].into(), y)]
            });
            vec![b.sum(size, terms[0].into())]
        });
        vec![out[0].into()]
    });
    RowOperator { lam, neutral: unit[0].into(), kind: RowKind::Convolution(count) }
}

fn operator(b: &mut Builder<'_>, monoid: Monoid, types: &[Scalar], free: Option<Atom>) -> Lam {
    let params: Vec<_> = types.iter().chain(types).map(|s| pullback_core::Type::Scalar(*s)).collect();
    b.lam(&params, "a", |b, p| {
        let atoms: Vec<Atom> = p.iter().map(|v| Atom::from(*v)).collect();
        let (l, r) = atoms.split_at(types.len());
        monoid.apply(b, l, r, free)
    })
}

/// Two arrays of these sizes combined element by element.
pub(crate) fn elementwise(b: &mut Builder<'_>, op: Op, sizes: &[Atom], x: Atom, y: Atom) -> Atom {
    by_element(b, sizes, x, y, &mut |b, x, y| b.op2(op, x, y))
}

fn by_element(
    b: &mut Builder<'_>,
    sizes: &[Atom],
    x: Atom,
    y: Atom,
    f: &mut dyn FnMut(&mut Builder<'_>, Atom, Atom) -> Atom,
) -> Atom {
    match sizes.split_first() {
        None => f(b, x, y),
        Some((width, rest)) => {
            let out = b.map(*width, &[x, y], |b, p| vec![by_element(b, rest, p[0].into(), p[1].into(), f)]);
            out[0].into()
        }
    }
}
