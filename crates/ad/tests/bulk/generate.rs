//! Random well-typed terms of the fragment, from the type down, and arguments for them.
//!
//! Sizes are 1 to 3, two of them variables, so that symbolic and known sizes meet. Functions are smooth and bounded (`sin`, `tanh`, products with small numbers), or change zero (`cos`, `exp`), or choose
//! by a comparison of integers. Indices are arbitrary integer terms; [`Indices::Inside`] takes them modulo the size.

use super::build::*;
use pullback_ad::bulk::a_core::{Exp, Extremum, Fold, IndexFn, Program, Term, Ty};
use pullback_ad::bulk::sizes::Size;
use pullback_prim::{Op, Prim, Scalar, ScalarValue};
use std::sync::Arc;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Indices {
    /// Anywhere, also outside of arrays.
    Anywhere,
    /// Inside of the array that they index.
    Inside,
}

/// A generator of numbers: splitmix64.
pub(crate) struct Random(pub(crate) u64);
impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64 * 2.0 - 1.0
    }
    fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())].clone()
    }
}

/// As many seeds, or those of `SEED` and `COUNT`.
pub(crate) fn seeds(count: u64) -> std::ops::Range<u64> {
    let number = |name: &str, default: u64| {
        std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
    };
    let first = number("SEED", 0);
    first..first + number("COUNT", count)
}

/// The gradient of a program whose result is a number, by central differences; `None` for integers.
pub(super) fn differences(program: &Program, arguments: &[Value]) -> Vec<Option<Value>> {
    const STEP: f64 = 1e-5;
    let at = |k: usize, j: usize, step: f64| {
        let mut arguments = arguments.to_vec();
        let mut xs = arguments[k].to_f64s();
        xs[j] += step;
        arguments[k] = reals(&arguments[k].shape.clone(), &xs);
        value(program, &arguments).to_f64s()[0]
    };
    let slope = |k: usize, j: usize| (at(k, j, STEP) - at(k, j, -STEP)) / (2.0 * STEP);
    let of = |(k, a): (usize, &Value)| {
        let slopes = || (0..a.elements.len()).map(|j| slope(k, j)).collect::<Vec<f64>>();
        a.scalar.is_float().then(|| reals(&a.shape, &slopes()))
    };
    arguments.iter().enumerate().map(of).collect()
}

/// A program whose result is a number, the sum of three arrays' elements, and arguments.
pub(super) fn scalar_program(seed: u64, indices: Indices) -> (Program, Vec<Value>) {
    let mut g = Generator::new(seed, indices);
    let parts = [3, 4, 5].map(|depth| {
        let rank = g.random.below(4);
        let shape = g.shape(rank);
        total(&g.term(&Ty::new(shape, Scalar::F64), depth))
    });
    g.finish(add(&add(&parts[0], &parts[1]), &parts[2]))
}

/// A program of any type, and arguments.
pub(super) fn program(seed: u64, indices: Indices) -> (Program, Vec<Value>) {
    let mut g = Generator::new(seed, indices);
    let rank = g.random.below(4);
    let ty = Ty::new(g.shape(rank), g.random.pick(&[Scalar::F64, Scalar::F64, Scalar::I64]));
    let body = g.term(&ty, 5);
    g.finish(body)
}

struct Generator {
    random: Random,
    draft: Draft,
    sizes: Vec<Size>,
    /// What the two symbolic sizes are in this run.
    known: [usize; 2],
    scope: Vec<Term>,
    indices: Indices,
}

impl Generator {
    fn new(seed: u64, indices: Indices) -> Generator {
        let mut random = Random(seed);
        let mut draft = Draft::default();
        let (p, q) = (draft.size("p"), draft.size("q"));
        let known = [1 + random.below(3), 1 + random.below(3)];
        let mut scope = vec![
            draft.reals("a", std::slice::from_ref(&p)),
            draft.reals("b", &[q.clone(), p.clone()]),
            draft.reals("c", &[n(3), n(2)]),
            draft.reals("r", &[]),
        ];
        scope.push(draft.input("k", Scalar::I64, std::slice::from_ref(&q)));
        let sizes = vec![n(1), n(2), n(3), p, q];
        Generator { random, draft, sizes, known, scope, indices }
    }
    fn finish(mut self, body: Term) -> (Program, Vec<Value>) {
        let [p, q] = self.known;
        let mut numbers = |k: usize| -> Vec<f64> { (0..k).map(|_| self.random.unit() * 2.0).collect() };
        let mut arguments =
            vec![reals(&[p], &numbers(p)), reals(&[q, p], &numbers(q * p)), reals(&[3, 2], &numbers(6))];
        arguments.push(reals(&[], &numbers(1)));
        let ks: Vec<i64> = numbers(q).iter().map(|x| (x * 2.0) as i64).collect();
        arguments.push(Value::i64s(&[q], &ks));
        (self.draft.program(body), arguments)
    }
    fn shape(&mut self, rank: usize) -> Vec<Size> {
        (0..rank).map(|_| self.random.pick(&self.sizes)).collect()
    }
    fn leaf(&mut self, ty: &Ty) -> Term {
        let known: Vec<Term> = self.scope.iter().filter(|x| x.ty() == ty).cloned().collect();
        if !known.is_empty() && self.random.below(8) > 0 {
            // What is bound last most of the time: a result should depend on it.
            let newest = known.len() - 1 - self.random.below(known.len()).min(self.random.below(known.len()));
            return known[newest].clone();
        }
        let x = match ty.scalar {
            Scalar::I64 => ScalarValue::I64(self.random.below(5) as i64 - 1),
            Scalar::Bool => ScalarValue::Bool(self.random.below(2) == 0),
            _ => ScalarValue::F64((self.random.unit() * 8.0).round() / 4.0),
        };
        let of_number = Ty::new(Vec::new(), ty.scalar);
        let extent = |k: &Size| k.as_constant().map(|k| k as usize);
        let known: Option<Vec<usize>> = ty.shape.iter().map(extent).collect();
        if let (Some(shape), Scalar::F64) = (known, ty.scalar)
            && !shape.is_empty()
            && self.random.below(3) == 0
        {
            let xs: Vec<f64> = (0..shape.iter().product()).map(|_| self.random.unit()).collect();
            return term(Exp::Const(reals(&shape, &xs)));
        }
        let numbers: Vec<Term> = self.scope.iter().filter(|x| *x.ty() == of_number).cloned().collect();
        let constant = match self.random.below(3) {
            0 => Term::scalar(x),
            _ if numbers.is_empty() => Term::scalar(x),
            _ => self.random.pick(&numbers),
        };
        ty.shape.iter().rev().fold(constant, |t, k| replicate(k, &t))
    }
    /// A term of this type, at most so deep.
    fn term(&mut self, ty: &Ty, depth: usize) -> Term {
        if depth == 0 {
            return self.leaf(ty);
        }
        let rank = ty.shape.len();
        let outer = ty.shape.first().cloned();
        match self.random.below(19) {
            0 if depth < 4 => self.leaf(ty),
            1 | 2 => self.elementwise(ty, depth),
            3 | 4 => self.index(ty, depth),
            5 if ty.scalar != Scalar::Bool => {
                let k = self.random.pick(&self.sizes);
                sum(&self.term(&Ty::new([vec![k], ty.shape.clone()].concat(), ty.scalar), depth - 1))
            }
            6 if ty.scalar == Scalar::I64 => self.place(ty, depth),
            6 | 7 => self.bind(ty, depth),
            8 => {
                let b = self.term(&Ty::new(Vec::new(), Scalar::Bool), depth - 1);
                cond(&b, &self.term(ty, depth - 1), &self.term(ty, depth - 1))
            }
            9 => self.gather(ty, depth),
            10 if ty.scalar != Scalar::Bool => self.scatter(ty, depth),
            11 | 12 if rank > 0 => self.rearranged(ty, depth),
            13 if ty.scalar != Scalar::Bool => self.states(ty, depth),
            _ => match outer {
                Some(k) => self.outermost(&k, &Ty::new(ty.shape[1..].to_vec(), ty.scalar), depth),
                None => self.elementwise(ty, depth),
            },
        }
    }
    /// `build1`, most of the time.
    fn outermost(&mut self, k: &Size, ty: &Ty, depth: usize) -> Term {
        match (self.random.below(8), k.as_constant()) {
            (0, _) => replicate(k, &self.term(ty, depth - 1)),
            (1, Some(k)) => {
                let ts: Vec<Term> = (0..k).map(|_| self.term(ty, depth - 1)).collect();
                stack(&ts)
            }
            _ => {
                let i = self.draft.names.index("i");
                let body = self.with(Term::var(&i), |g| g.term(ty, depth - 1));
                term(Exp::Build1(k.clone(), i, body))
            }
        }
    }
    fn with<T>(&mut self, x: Term, f: impl FnOnce(&mut Generator) -> T) -> T {
        self.scope.push(x);
        let made = f(self);
        self.scope.pop();
        made
    }
    fn bind(&mut self, ty: &Ty, depth: usize) -> Term {
        let rank = self.random.below(3);
        let scalar = self.random.pick(&[Scalar::F64, Scalar::F64, Scalar::I64]);
        let shape = self.shape(rank);
        let u = self.term(&Ty::new(shape, scalar), depth - 1);
        let x = self.draft.names.fresh("x", u.ty().clone());
        let body = self.with(Term::var(&x), |g| g.term(ty, depth - 1));
        term(Exp::Let(x, u, body))
    }
    /// Where the largest or smallest numbers are; sometimes of those that are sent to each place.
    fn place(&mut self, ty: &Ty, depth: usize) -> Term {
        if self.random.below(3) == 0 {
            let rank = 1 + self.random.below(2);
            let (from, scalar) = (self.shape(rank), self.random.pick(&[Scalar::F64, Scalar::I64]));
            let t = self.term(&Ty::new(from, scalar), depth - 1);
            let f = self.function(rank, &ty.shape, depth - 1);
            return arg_at(self.random.pick(&[Extremum::Min, Extremum::Max]), &ty.shape, &t, f);
        }
        let k = self.random.pick(&self.sizes);
        let scalar = self.random.pick(&[Scalar::F64, Scalar::F64, Scalar::I64]);
        let t = self.term(&Ty::new([vec![k], ty.shape.clone()].concat(), scalar), depth - 1);
        if self.random.below(2) == 0 { arg_max(&t) } else { arg_min(&t) }
    }
    fn elementwise(&mut self, ty: &Ty, depth: usize) -> Term {
        let of = |g: &mut Generator, scalar| g.term(&Ty::new(ty.shape.clone(), scalar), depth - 1);
        match ty.scalar {
            Scalar::Bool => {
                let (op, scalar) = self.random.pick(&[
                    (Op::Lt, Scalar::I64),
                    (Op::Le, Scalar::I64),
                    (Op::Eq, Scalar::I64),
                    (Op::Or, Scalar::Bool),
                ]);
                let (t, u) = (of(self, scalar), of(self, scalar));
                op2(op, &t, &u)
            }
            Scalar::I64 => {
                let op = self.random.pick(&[Op::Add, Op::Sub, Op::Mul, Op::Div, Op::Mod, Op::Max]);
                let (t, u) = (of(self, Scalar::I64), of(self, Scalar::I64));
                op2(op, &t, &u)
            }
            scalar => match self.random.below(8) {
                0 => op1(Op::Sin, &of(self, scalar)),
                1 => op1(Op::Cos, &of(self, scalar)),
                2 => op1(Op::Exp, &op1(Op::Tanh, &of(self, scalar))),
                3 => op1(Op::Neg, &of(self, scalar)),
                4 => {
                    let whole = of(self, Scalar::I64);
                    term(Exp::Op(Prim::Convert(Scalar::I64, scalar), vec![whole]))
                }
                5 => {
                    let (b, t, u) = (of(self, Scalar::Bool), of(self, scalar), of(self, scalar));
                    term(Exp::Op(Prim::Op(Op::Select, scalar), vec![b, t, u]))
                }
                k => {
                    let op = if k == 6 { Op::Add } else { Op::Mul };
                    let (t, u) = (of(self, scalar), of(self, scalar));
                    op2(op, &op1(Op::Tanh, &t), &op1(Op::Sin, &u))
                }
            },
        }
    }
    /// A component of an index into a dimension of this size.
    fn component(&mut self, k: &Size, depth: usize) -> Term {
        let depth = if self.random.below(2) == 0 { 0 } else { depth.min(2) };
        let t = self.term(&Ty::index(), depth);
        match self.indices {
            Indices::Anywhere => t,
            Indices::Inside => op2(Op::Mod, &t, &Term::size(k)),
        }
    }
    fn index(&mut self, ty: &Ty, depth: usize) -> Term {
        let ends = |x: &&Term| x.ty().scalar == ty.scalar && x.ty().shape.ends_with(&ty.shape);
        let known: Vec<Term> = self.scope.iter().filter(ends).cloned().collect();
        if !known.is_empty() && self.random.below(2) == 0 {
            let x = self.random.pick(&known);
            let outer = x.ty().shape[..x.ty().shape.len() - ty.shape.len()].to_vec();
            let ix: Vec<Term> = outer.iter().map(|k| self.component(k, depth - 1)).collect();
            return index(&x, &ix);
        }
        let components = self.random.below(3);
        let outer = self.shape(components);
        let t = self.term(&Ty::new([outer.clone(), ty.shape.clone()].concat(), ty.scalar), depth - 1);
        let ix: Vec<Term> = outer.iter().map(|k| self.component(k, depth - 1)).collect();
        index(&t, &ix)
    }
    /// The index function from as many indices to an index of this shape.
    fn function(&mut self, params: usize, sh: &[Size], depth: usize) -> IndexFn {
        let params: Vec<_> = (0..params).map(|_| self.draft.names.index("j")).collect();
        let before = self.scope.len();
        self.scope.extend(params.iter().map(Term::var));
        let index = sh.iter().map(|k| self.component(k, depth)).collect();
        self.scope.truncate(before);
        IndexFn { params, index }
    }
    fn gather(&mut self, ty: &Ty, depth: usize) -> Term {
        let (l, m) = (self.random.below(ty.shape.len() + 1), self.random.below(3));
        let outer = self.shape(m);
        let from = [&outer, &ty.shape[l..]].concat();
        let t = self.term(&Ty::new(from, ty.scalar), depth - 1);
        let f = self.function(l, &outer, depth - 1);
        term(Exp::Gather(ty.shape.clone(), t, f))
    }
    fn scatter(&mut self, ty: &Ty, depth: usize) -> Term {
        let (l, m) = (self.random.below(3), self.random.below(ty.shape.len() + 1));
        let outer = self.shape(l);
        let from = [&outer, &ty.shape[m..]].concat();
        let t = self.term(&Ty::new(from, ty.scalar), depth - 1);
        let f = self.function(l, &ty.shape[..m], depth - 1);
        term(Exp::Scatter(ty.shape.clone(), t, f))
    }
    /// One of the states of `scanl`, whose function sees its parameters only.
    fn states(&mut self, ty: &Ty, depth: usize) -> Term {
        let k = self.random.pick(&self.sizes);
        let start = self.term(ty, depth - 1);
        let mut params = vec![self.draft.names.fresh("a", ty.clone())];
        let mut arrays = Vec::new();
        for _ in 0..self.random.below(3) {
            let rank = self.random.below(2);
            let scalar = self.random.pick(&[Scalar::F64, Scalar::F64, Scalar::I64]);
            let row = Ty::new(self.shape(rank), scalar);
            arrays.push(self.term(
                &Ty::new([std::slice::from_ref(&k), row.shape.as_slice()].concat(), scalar),
                depth - 1,
            ));
            params.push(self.draft.names.fresh("x", row));
        }
        let outside = std::mem::replace(&mut self.scope, params.iter().map(Term::var).collect());
        let body = self.term(ty, depth.min(3));
        self.scope = outside;
        let fold = Fold { size: k.clone(), params, body };
        let all = term(Exp::Scanl(Arc::new(fold), start, arrays));
        let at = self.component(&k.plus(&n(1)), depth - 1);
        index(&all, &[at])
    }
    fn rearranged(&mut self, ty: &Ty, depth: usize) -> Term {
        if self.random.below(2) == 0 {
            let whole = Size::product(&ty.shape);
            let from = match self.random.below(3) {
                0 => vec![whole],
                1 => vec![n(1), whole],
                _ => ty.shape.iter().rev().cloned().collect(),
            };
            let t = self.term(&Ty::new(from, ty.scalar), depth - 1);
            return reshape(&ty.shape, &t);
        }
        let mut j: Vec<usize> = (0..1 + self.random.below(ty.shape.len())).collect();
        for k in (1..j.len()).rev() {
            let other = self.random.below(k + 1);
            j.swap(k, other);
        }
        let mut from = ty.shape.clone();
        j.iter().enumerate().for_each(|(a, source)| from[*source] = ty.shape[a].clone());
        let t = self.term(&Ty::new(from, ty.scalar), depth - 1);
        transpose(&j, &t)
    }
}
