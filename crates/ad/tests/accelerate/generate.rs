//! Random well-typed programs of the language, and arguments for them.
//!
//! Sizes are at least 1, and every index is taken modulo the size: so no program stops. Functions are smooth, or choose; operators of folds are associative.
//! Arrays of pairs have a discrete part, which says where other arrays are read. An array that is bound may be used several times, once, or not at all.
//!
//! The file is one piece, and `term` is longer than other functions, because terms and expressions draw each other: an arm for each form.

use super::build::*;
pub(super) use crate::bulk::generate::{Random, seeds};
use pullback_ad::accelerate::language::{AVar, Arr, ArrTy, Exp, Program};
use pullback_core::Value;
use pullback_prim::Op;
use std::rc::Rc;

/// A program of a vector, a matrix, a number, and a vector of pairs; its result is a number, or a number and an array. And arguments.
pub(super) fn program(seed: u64) -> (Program, Vec<Value>) {
    made(seed, false)
}

/// A program in which a combinator takes the results of others, often by a name that is used once, and sometimes as a pair.
pub(super) fn in_pieces(seed: u64) -> (Program, Vec<Value>) {
    made(seed, true)
}

fn made(seed: u64, pieces: bool) -> (Program, Vec<Value>) {
    let b = Rc::new(Draft::default());
    let mut g = Generator { random: Random(seed), b, scope: Vec::new(), lets: vec![Vec::new()], pieces };
    let pairs = vector(pair(real(), int()));
    let ty = ArrTy::Tuple(vec![vector(real()), matrix(real()), scalar(real()), pairs]);
    let param = g.b.avar("argument", ty);
    for k in 0..4 {
        g.bind(&aproj(&var(&param), k));
    }
    let depth = 2 + g.random.below(3);
    let first = g.total(depth);
    let result = match g.random.below(3) {
        0 => first,
        1 => atuple([first, g.term(1, depth - 1)]),
        _ => atuple([first, g.pairs(1, depth - 1)]),
    };
    let body = g.leave(result);
    let names = g.b.names.borrow().clone();
    let program = Program::new(param, Vec::new(), body, names).unwrap_or_else(|why| panic!("{why}"));
    let [p, q, s] = [3, 3, 4].map(|most| 1 + g.random.below(most));
    let mut numbers = |k: usize| -> Vec<f64> { (0..k).map(|_| 2.0 * g.random.unit()).collect() };
    let places: Vec<i64> = numbers(s).iter().map(|x| (x * 3.0) as i64).collect();
    let first = [reals(&numbers(p)), reals_of(&[q, p], &numbers(q * p)), Value::f64(numbers(1)[0])];
    (program, [&first[..], &[reals(&numbers(s)), ints(&places)]].concat())
}

/// The numbers and the integers that are in scope in a function.
#[derive(Clone, Default)]
struct Scalars {
    reals: Vec<E>,
    ints: Vec<E>,
}

struct Generator {
    random: Random,
    b: Rc<Draft>,
    scope: Vec<AVar>,
    /// The bindings of the place where terms are made; those of the places around it come first.
    lets: Vec<Vec<(AVar, Arr)>>,
    /// Whether functions of combinators are written as several combinators.
    pieces: bool,
}

fn rank_of(a: &AVar) -> usize {
    a.ty().array().map_or(0, |(_, rank)| rank)
}

/// Arrays.
impl Generator {
    fn bind(&mut self, u: &Arr) -> AVar {
        let a = self.b.avar("a", u.ty().clone());
        self.lets.last_mut().expect("a place").push((a.clone(), u.clone()));
        self.scope.push(a.clone());
        a
    }
    /// The term with the bindings of its place.
    fn leave(&mut self, u: Arr) -> Arr {
        let bindings = self.lets.pop().expect("a place");
        Arr::lets(bindings, u).unwrap_or_else(|why| panic!("{why}"))
    }
    /// A term at a place of its own.
    fn branch(&mut self, make: impl FnOnce(&mut Generator) -> Arr) -> Arr {
        let known = self.scope.len();
        self.lets.push(Vec::new());
        let u = make(self);
        self.scope.truncate(known);
        self.leave(u)
    }
    fn known(&self, is: impl Fn(&ArrTy) -> bool) -> Vec<AVar> {
        self.scope.iter().filter(|a| is(a.ty())).cloned().collect()
    }
    /// One of these, later ones more often.
    fn pick(&mut self, from: &[AVar]) -> Option<AVar> {
        let age = |n: usize, r: &mut Random| r.below(n).min(r.below(n));
        (!from.is_empty()).then(|| from[from.len() - 1 - age(from.len(), &mut self.random)].clone())
    }
    /// The sum of all elements of a term of some rank.
    fn total(&mut self, depth: usize) -> Arr {
        let rank = self.random.below(3);
        let u = self.term(rank, depth);
        (0..rank).fold(u, |u, _| sum(&u))
    }
    /// A size that is at least 1, outside of functions.
    fn size(&mut self) -> E {
        let known = self.known(|t| t.array().is_ok_and(|t| t.1 > 0));
        match self.random.below(2) {
            0 => {
                let a = self.pick(&known).expect("the argument");
                size(&a, self.random.below(rank_of(&a)))
            }
            _ => n(1 + self.random.below(3) as i64),
        }
    }
    fn shape(&mut self, rank: usize) -> E {
        E(Exp::tuple((0..rank).map(|_| self.size().0).collect()))
    }
    /// A condition that reads an array, or sizes.
    fn condition(&mut self) -> E {
        self.is_chosen(&Scalars::default(), 1)
    }

    /// An array of numbers.
    fn term(&mut self, rank: usize, depth: usize) -> Arr {
        if depth == 0 || self.random.below(9) == 0 {
            let known = self.known(|t| *t == array(real(), rank));
            return match self.pick(&known) {
                Some(a) => var(&a),
                None => self.generated(rank),
            };
        }
        let depth = depth - 1;
        match self.random.below(26) {
            0 | 1 => {
                let u = self.term(rank, depth);
                let a = self.bind(&u);
                let v = self.term(rank, depth);
                self.zipped(&var(&a), &v)
            }
            2 => {
                let u = self.term(rank, depth);
                self.mapped(&u)
            }
            3 => {
                let (u, v) = (self.term(rank, depth), self.term(rank, depth));
                self.zipped(&u, &v)
            }
            4 => self.generated(rank),
            5 if rank < 2 => sum(&self.term(rank + 1, depth)),
            6 | 7 | 20 | 21 if rank < 2 => {
                let u = self.term(rank + 1, depth);
                self.folded(&u)
            }
            8 => self.replicated(rank, depth),
            9 if rank < 2 => self.sliced(rank, depth),
            10 => self.reshaped(rank, depth),
            11 | 12 => {
                let from = self.random.below(3);
                let u = self.term(from, depth);
                self.gathered(&u, rank)
            }
            13 | 14 => {
                let c = self.condition();
                let (u, v) = (self.branch(|g| g.term(rank, depth)), self.branch(|g| g.term(rank, depth)));
                acond(&c, &u, &v)
            }
            15 => self.chosen_tuple(rank, depth),
            16 => {
                let u = self.pairs(rank, depth);
                self.b.map(|p| to_real(&p.get(1)).sin() + p.get(0), &u)
            }
            22 if depth > 0 => self.iterated(rank, depth),
            24 | 25 => self.permuted(rank, depth),
            17 | 18 if rank > 0 => self.looped(rank, depth),
            19 if rank < 2 => {
                let u = self.looped(rank + 1, depth);
                let a = self.bind(&u);
                let last = size(&a, rank) - n(1);
                let slc: Vec<Option<E>> = (0..rank).map(|_| None).chain([Some(last)]).collect();
                sliced(&slc, &var(&a))
            }
            _ => {
                let u = self.term(rank, depth);
                let a = self.bind(&u);
                // It may stay unused.
                if self.random.below(4) == 0 { self.term(rank, depth) } else { var(&a) }
            }
        }
    }

    /// A condition between tuples, one of whose components may go unused.
    fn chosen_tuple(&mut self, rank: usize, depth: usize) -> Arr {
        let c = self.condition();
        let both = |g: &mut Generator| {
            let u = g.term(rank, depth);
            atuple([u, g.term(rank, depth)])
        };
        let (u, v) = (self.branch(both), self.branch(both));
        let a = self.bind(&acond(&c, &u, &v));
        match self.random.below(3) {
            2 => self.zipped(&aproj(&var(&a), 0), &aproj(&var(&a), 1)),
            k => aproj(&var(&a), k),
        }
    }

    /// An array of a number and an integer.
    fn pairs(&mut self, rank: usize, depth: usize) -> Arr {
        let known = self.known(|t| *t == array(pair(real(), int()), rank));
        match self.random.below(4) {
            0 if !known.is_empty() => var(&self.pick(&known).expect("some")),
            1 if depth > 0 => {
                let u = self.pairs(1, depth - 1);
                self.gathered(&u, rank)
            }
            2 if depth > 0 => {
                let c = self.condition();
                let (u, v) =
                    (self.branch(|g| g.pairs(rank, depth - 1)), self.branch(|g| g.pairs(rank, depth - 1)));
                acond(&c, &u, &v)
            }
            _ => {
                let u = self.term(rank, depth.saturating_sub(1));
                let b = self.b.clone();
                b.map(|x| tuple([self.of(std::slice::from_ref(&x), &[], 2), round(&x)]), &u)
            }
        }
    }

    fn generated(&mut self, rank: usize) -> Arr {
        let (b, shape) = (self.b.clone(), self.shape(rank));
        let indices = |i: &E| (0..rank).map(|d| i.get(d)).collect::<Vec<E>>();
        b.generate(&shape, |i| self.of(&[], &indices(&i), 3))
    }
    fn mapped(&mut self, u: &Arr) -> Arr {
        let (b, u) = (self.b.clone(), self.piece(u));
        b.map(|x| self.of(&[x], &[], 3), &u)
    }
    fn zipped(&mut self, u: &Arr, v: &Arr) -> Arr {
        let (b, u, v) = (self.b.clone(), self.piece(u), self.piece(v));
        if self.pieces && self.random.below(2) == 0 {
            let pairs = self.once(b.zip_with(|x, y| tuple([y, &x * r(0.5)]), &u, &v));
            return b.map(|p| self.of(&[p.get(0), p.get(1)], &[], 3), &pairs);
        }
        b.zip_with(|x, y| self.of(&[x, y], &[], 3), &u, &v)
    }
    /// Another array of numbers, if programs are in pieces.
    fn piece(&mut self, u: &Arr) -> Arr {
        let b = self.b.clone();
        match (self.pieces, self.random_of(4)) {
            (false, _) | (_, 0) => u.clone(),
            (_, 1) => b.map(|x| x, u),
            (_, 2) => {
                let inner = b.map(|x| self.of(&[x], &[], 2), u);
                let inner = self.once(inner);
                self.once(b.map(|x| x.sin(), &inner))
            }
            _ => {
                let inner = b.map(|x| self.of(&[x], &[], 2), u);
                self.once(inner)
            }
        }
    }
    /// Not drawn for programs that are whole, whose seeds are known.
    fn random_of(&mut self, n: usize) -> usize {
        if self.pieces { self.random.below(n) } else { 0 }
    }
    /// A name of its own, or none; it is not in scope elsewhere.
    fn once(&mut self, u: Arr) -> Arr {
        if self.random.below(2) == 0 {
            return u;
        }
        let a = self.b.avar("a", u.ty().clone());
        self.lets.last_mut().expect("a place").push((a.clone(), u));
        Arr::var(&a)
    }
    /// The operators are associative, and the first two of them do not commute.
    fn folded(&mut self, u: &Arr) -> Arr {
        let c = self.read(&Scalars::default(), 1);
        let op: Box<dyn Fn(E, E) -> E> = match self.random.below(8) {
            0 => Box::new(|x, _| x),
            1 => Box::new(|_, y| y),
            2 => Box::new(|x, y| x + y),
            3 => Box::new(|x, y| x * y),
            4 => Box::new(|x, y| x.max(&y)),
            5 => Box::new(|x, y| cond(&x.lt(&y), &x, &y)),
            6 => Box::new(move |x, y| x + &c + y),
            _ => Box::new(|x, y| &x * &y + x + y),
        };
        let e = match self.random.below(4) {
            0 => return self.b.fold1(op, u),
            1 => to_real(&self.size()),
            2 => self.read(&Scalars::default(), 1),
            _ => r((self.random.unit() * 8.0).round() / 4.0),
        };
        self.b.fold(op, &e, u)
    }
    /// The states of loops, or a scan.
    fn looped(&mut self, rank: usize, depth: usize) -> Arr {
        let b = self.b.clone();
        let u = self.term(rank, depth);
        let e = self.number(&Scalars::default(), 1);
        let is_left = self.random.below(2) == 0;
        match self.random.below(5) {
            0 if is_left => return b.scanl(|x, y| &x * &y + x + y, &e, &u),
            0 => return b.scanr(|_, y| y, &e, &u),
            _ => {}
        }
        if self.random.below(2) == 0 {
            let first = self.term(rank - 1, depth);
            let f = |x: E, y: E| self.of(&[x, y], &[], 2).sin();
            return if is_left { b.collectl(f, &first, &u) } else { b.collectr(f, &first, &u) };
        }
        let first = self.pairs(rank - 1, depth);
        let f = |s: E, y: E| {
            let scope = Scalars { reals: vec![s.get(0), y], ints: vec![s.get(1)] };
            tuple([self.number(&scope, 2).sin(), self.integer(&scope, 1)])
        };
        let all = if is_left { b.collectl(f, &first, &u) } else { b.collectr(f, &first, &u) };
        b.map(|s| to_real(&s.get(1)).sin() + s.get(0), &all)
    }
    /// The last state of a loop of arrays.
    fn iterated(&mut self, rank: usize, depth: usize) -> Arr {
        let b = self.b.clone();
        let first = self.term(rank, depth - 1);
        let count = n(self.random.below(3) as i64);
        let all = b.iterate(&count, &first, |a, i| {
            self.branch(|g| {
                g.scope.push(a.clone());
                let v = g.term(rank, depth - 1);
                let k = to_real(&at(i, &ix([])));
                let shape = shape(a);
                let v = g.bind(&v);
                let inside = |g: &mut Generator, j: &E| {
                    let place = (0..rank).map(|d| j.get(d).rem(&size(&v, d)).0).collect();
                    g.of(&[at(a, j), at(&v, &E(Exp::tuple(place))), k.clone()], &[], 2).sin()
                };
                let g_b = g.b.clone();
                g_b.generate(&shape, |j| inside(g, &j))
            })
        });
        let slc: Vec<Option<E>> = std::iter::once(Some(count)).chain((0..rank).map(|_| None)).collect();
        sliced(&slc, &all)
    }
    fn replicated(&mut self, rank: usize, depth: usize) -> Arr {
        let is_kept: Vec<bool> = (0..rank).map(|_| self.random.below(2) == 0).collect();
        let u = self.term(is_kept.iter().filter(|k| **k).count(), depth);
        let entries: Vec<Option<E>> = is_kept.iter().map(|k| (!k).then(|| self.size())).collect();
        match &entries[..] {
            [] => replicate([], &u),
            [x] => replicate([x.clone()], &u),
            [x, y] => replicate([x.clone(), y.clone()], &u),
            _ => unreachable!("the rank is at most 2"),
        }
    }
    fn sliced(&mut self, rank: usize, depth: usize) -> Arr {
        let u = self.term(rank + 1, depth);
        let a = self.bind(&u);
        let at = self.random.below(rank + 1);
        let place = n(self.random.below(4) as i64).rem(&size(&a, at));
        match (rank, at) {
            (0, _) => slice([Some(place)], &var(&a)),
            (_, 0) => slice([Some(place), None], &var(&a)),
            _ => slice([None, Some(place)], &var(&a)),
        }
    }
    fn reshaped(&mut self, rank: usize, depth: usize) -> Arr {
        let from = if rank == 0 { 0 } else { self.random.below(3) };
        let u = self.term(from, depth);
        let a = self.bind(&u);
        let all = (0..from).fold(n(1), |all, d| all * size(&a, d));
        let shape = match (rank, from) {
            (0, _) => ix([]),
            (1, _) => tuple([all]),
            (_, 2) if self.random.below(2) == 0 => tuple([size(&a, 1), size(&a, 0)]),
            _ if self.random.below(2) == 0 => tuple([n(1), all]),
            _ => tuple([all, n(1)]),
        };
        reshape(&shape, &var(&a))
    }
    /// Elements sent to places of another array, some of them to one place, and some nowhere. The operators are associative, and they commute.
    fn permuted(&mut self, rank: usize, depth: usize) -> Arr {
        let b = self.b.clone();
        let from = self.random.below(3);
        let (u, d) = (self.term(from, depth), self.term(rank, depth));
        let d = self.bind(&d);
        let (c, op) = (self.read(&Scalars::default(), 1), self.random.below(7));
        let to = |i: E| {
            let scope = Scalars { ints: (0..from).map(|k| i.get(k)).collect(), reals: Vec::new() };
            (self.is_chosen(&scope, 1), self.place(&d, &scope, 1))
        };
        let op: Box<dyn Fn(E, E) -> E> = match op {
            0 => Box::new(|x, y| x * y),
            1 => Box::new(|x, y| x.max(&y)),
            2 => Box::new(|x, y| op2(Op::MaxFirst, &x, &y)),
            3 => Box::new(|x, y| op2(Op::MinFirst, &x, &y)),
            4 => Box::new(move |x, y| &c * &x * &y + x + y),
            5 => Box::new(|x, y| &x * &y + x + y),
            _ => Box::new(|x, y| y + x),
        };
        b.permute(op, &var(&d), to, &u)
    }
    /// Some elements, some of them several times.
    fn gathered(&mut self, u: &Arr, rank: usize) -> Arr {
        let a = self.bind(u);
        let (b, shape) = (self.b.clone(), self.shape(rank));
        let place = |i: E| {
            let scope = Scalars { ints: (0..rank).map(|d| i.get(d)).collect(), reals: Vec::new() };
            self.place(&a, &scope, 1)
        };
        b.backpermute(&shape, place, &var(&a))
    }
}

fn sliced(slc: &[Option<E>], u: &Arr) -> Arr {
    match slc {
        [x] => slice([x.clone()], u),
        [x, y] => slice([x.clone(), y.clone()], u),
        [x, y, z] => slice([x.clone(), y.clone(), z.clone()], u),
        _ => unreachable!("the rank is at most 3"),
    }
}

fn round(x: &E) -> E {
    to_int(&op1(Op::Round, &(x.sin() * r(3.0))))
}

/// Functions.
impl Generator {
    fn of(&mut self, reals: &[E], ints: &[E], depth: usize) -> E {
        self.number(&Scalars { reals: reals.to_vec(), ints: ints.to_vec() }, depth)
    }
    /// An index inside of an array.
    fn place(&mut self, a: &AVar, scope: &Scalars, depth: usize) -> E {
        let part = |g: &mut Generator, d: usize| g.integer(scope, depth).rem(&size(a, d)).0;
        E(Exp::tuple((0..rank_of(a)).map(|d| part(self, d)).collect()))
    }
    /// An element of an array of numbers, or the number of a pair.
    fn read(&mut self, scope: &Scalars, depth: usize) -> E {
        let known = self.known(|t| t.array().is_ok());
        let a = self.pick(&known).expect("the argument");
        let x = at(&a, &self.place(&a, scope, depth));
        if *x.0.ty() == real() { x } else { x.get(0) }
    }
    fn integer(&mut self, scope: &Scalars, depth: usize) -> E {
        let some = |r: &mut Random, es: &[E]| (!es.is_empty()).then(|| es[r.below(es.len())].clone());
        let pairs = self.known(|t| *t == vector(pair(real(), int())));
        let one = some(&mut self.random, &scope.ints).unwrap_or_else(|| n(2));
        match self.random.below(7) {
            0 => n(self.random.below(5) as i64 - 1),
            1 => match some(&mut self.random, &scope.reals) {
                Some(x) => round(&x),
                None => one,
            },
            2 if depth > 0 => {
                let a = self.pick(&pairs).expect("the argument");
                at(&a, &self.place(&a, scope, depth - 1)).get(1)
            }
            3 if depth > 0 => self.integer(scope, depth - 1) + one,
            4 => self.size() - one,
            _ => one,
        }
    }
    fn is_chosen(&mut self, scope: &Scalars, depth: usize) -> E {
        if self.random.below(2) == 0 {
            let x = self.integer(scope, 1);
            return x.rem(&n(2)).eq(&n(self.random.below(2) as i64));
        }
        let x = self.number(scope, depth);
        x.lt(&r(self.random.unit()))
    }
    fn number(&mut self, scope: &Scalars, depth: usize) -> E {
        let here = &scope.reals;
        if depth == 0 || self.random.below(8) == 0 {
            return match self.random.below(4) {
                0 => r((self.random.unit() * 8.0).round() / 4.0),
                1 if !scope.ints.is_empty() => to_real(&scope.ints[self.random.below(scope.ints.len())]),
                2 => self.read(scope, 0),
                _ if !here.is_empty() => here[self.random.below(here.len())].clone(),
                _ => self.read(scope, 0),
            };
        }
        let depth = depth - 1;
        let two = |g: &mut Generator| (g.number(scope, depth), g.number(scope, depth));
        match self.random.below(12) {
            0 => {
                let (x, y) = two(self);
                x + y
            }
            1 | 2 => {
                let (x, y) = two(self);
                x * y
            }
            3 => self.number(scope, depth).sin(),
            4 => op1(Op::Tanh, &self.number(scope, depth)),
            5 => {
                let (x, y) = two(self);
                x / (&y * &y + r(1.0))
            }
            6 => {
                let (x, y) = two(self);
                -x.max(&y)
            }
            7 => {
                let c = self.is_chosen(scope, depth);
                let (x, y) = two(self);
                cond(&c, &x, &y)
            }
            8 => {
                // A pair with a discrete part comes out of the condition.
                let c = self.is_chosen(scope, depth);
                let (x, y) = two(self);
                let p = cond(&c, &tuple([x, n(1)]), &tuple([y, self.integer(scope, 1)]));
                self.b.let_(&p, |p| p.get(0) * to_real(&p.get(1)).sin())
            }
            9 => {
                let u = self.number(scope, depth);
                let b = self.b.clone();
                b.let_(&u, |u| {
                    let mut scope = scope.clone();
                    scope.reals.push(u.clone());
                    u * self.number(&scope, depth)
                })
            }
            _ => self.read(scope, depth),
        }
    }
}
