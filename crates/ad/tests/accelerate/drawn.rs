//! Programs that are drawn together with their values: each step makes a term, and does the same to numbers in Rust.
//!
//! Numbers are small integers, so sums are exact in any order.

use super::build::*;
use crate::common::Numbers;
use pullback_ad::accelerate::language::{AVar, Arr};
use pullback_core::Value;

/// An array of numbers: sizes, and elements in row-major order.
#[derive(Clone, Debug)]
struct Tensor {
    shape: Vec<usize>,
    data: Vec<f64>,
}

impl Tensor {
    fn new(shape: Vec<usize>, mut at: impl FnMut(&[usize]) -> f64) -> Tensor {
        let count = shape.iter().product();
        let data = (0..count).map(|number| at(&unflatten(&shape, number))).collect();
        Tensor { shape, data }
    }
    fn at(&self, ix: &[usize]) -> f64 {
        self.data[ix.iter().zip(&self.shape).fold(0, |number, (i, n)| number * n + i)]
    }
    /// What is made of each inner row.
    fn rows(&self, width: Option<usize>, make: impl Fn(&[f64]) -> Vec<f64>) -> Tensor {
        let (n, outer) = self.shape.split_last().expect("a row");
        let count: usize = outer.iter().product();
        let row = |k: usize| make(&self.data[k * n..(k + 1) * n]);
        let shape = outer.iter().copied().chain(width).collect();
        Tensor { shape, data: (0..count).flat_map(row).collect() }
    }
    fn value(&self) -> Value {
        reals_of(&self.shape, &self.data)
    }
}

fn unflatten(shape: &[usize], mut number: usize) -> Vec<usize> {
    let mut ix = vec![0; shape.len()];
    for d in (0..shape.len()).rev() {
        (ix[d], number) = (number % shape[d], number / shape[d]);
    }
    ix
}

/// A program that is being drawn.
struct Drawn<'b> {
    b: &'b Draft,
    random: Numbers,
    bindings: Vec<(AVar, Arr)>,
    /// Terms that may be used, and their values.
    known: Vec<(Arr, Tensor)>,
}

impl Drawn<'_> {
    fn below(&mut self, n: usize) -> usize {
        (((self.random.next() + 1.0) / 2.0 * n as f64) as usize).min(n - 1)
    }
    fn pick(&mut self) -> (Arr, Tensor) {
        // Rather something new.
        let n = self.known.len();
        let from = n.saturating_sub(4);
        let k = if self.below(3) == 0 { self.below(n) } else { from + self.below(n - from) };
        self.known[k].clone()
    }
    /// A variable for the term.
    fn bound(&mut self, u: &Arr) -> AVar {
        let a = self.b.avar("a", u.ty().clone());
        self.bindings.push((a.clone(), u.clone()));
        a
    }
    fn shape_of(shape: &[usize]) -> E {
        E(pullback_ad::accelerate::language::Exp::tuple(shape.iter().map(|k| n(*k as i64).0).collect()))
    }
    fn step(&mut self) -> (Arr, Tensor) {
        let b = self.b;
        let (u, t) = self.pick();
        let rank = t.shape.len();
        let small = |x: &E| x.rem(&r(8.0));
        match self.below(16) {
            0 => (
                b.map(|x| small(&(&x * &x + r(1.0))), &u),
                Tensor { data: t.data.iter().map(|x| (x * x + 1.0) % 8.0).collect(), ..t },
            ),
            1 => {
                let (v, s) = self.pick();
                if s.shape.len() != rank {
                    return (u, t);
                }
                let shape = t.shape.iter().zip(&s.shape).map(|(m, n)| *m.min(n)).collect();
                let made = Tensor::new(shape, |i| t.at(i) - s.at(i) * 2.0);
                (b.zip_with(|x, y| x - y * r(2.0), &u, &v), made)
            }
            2 if rank < 3 => {
                let (k, size) = (self.below(rank + 1), self.below(3));
                let mut slc: Vec<Option<E>> = vec![None; rank];
                slc.insert(k, Some(n(size as i64)));
                let mut shape = t.shape.clone();
                shape.insert(k, size);
                let without = |i: &[usize]| [&i[..k], &i[k + 1..]].concat();
                (replicated(&slc, &u), Tensor::new(shape, |i| t.at(&without(i))))
            }
            3 if rank > 0 && t.shape[0] > 0 => {
                let at = self.below(t.shape[0]);
                let mut slc: Vec<Option<E>> = vec![None; rank];
                slc[0] = Some(n(at as i64));
                (sliced(&slc, &u), Tensor::new(t.shape[1..].to_vec(), |i| t.at(&[&[at], i].concat())))
            }
            4 => (reshape(&Self::shape_of(&[t.data.len()]), &u), Tensor { shape: vec![t.data.len()], ..t }),
            5 if rank == 1 && t.shape[0] % 2 == 0 => {
                let shape = vec![t.shape[0] / 2, 2];
                (reshape(&Self::shape_of(&shape), &u), Tensor { shape, ..t })
            }
            6 if rank > 0 => (sum(&u), t.rows(None, |row| vec![row.iter().fold(0.0, |x, y| x + y)])),
            7 if rank > 0 => {
                let last = |row: &[f64]| vec![row.last().copied().unwrap_or(5.0)];
                (b.fold(|_, y| y, &r(5.0), &u), t.rows(None, last))
            }
            8 if rank > 0 => {
                let sums =
                    |row: &[f64]| (0..=row.len()).map(|k| 3.0 + row[..k].iter().sum::<f64>()).collect();
                let width = t.shape[rank - 1] + 1;
                (b.scanl(|x, y| x + y, &r(3.0), &u), t.rows(Some(width), sums))
            }
            9 if rank > 0 => {
                let first = |row: &[f64]| (0..=row.len()).map(|k| *row.get(k).unwrap_or(&4.0)).collect();
                let width = t.shape[rank - 1] + 1;
                (b.scanr(|x, _| x, &r(4.0), &u), t.rows(Some(width), first))
            }
            10 if rank == 2 => {
                let shape = vec![t.shape[1], t.shape[0]];
                let term = b.backpermute(&Self::shape_of(&shape), |i| tuple([i.get(1), i.get(0)]), &u);
                (term, Tensor::new(shape, |i| t.at(&[i[1], i[0]])))
            }
            11 if rank == 1 => {
                let places = 1 + self.below(3);
                let target = b.generate(&Self::shape_of(&[places]), |i| to_real(&i.get(0)));
                let is_plus = self.below(2) == 0;
                let to = |i: E| {
                    let i = i.get(0);
                    (i.eq(&n(1)).not(), tuple([i.rem(&n(places as i64))]))
                };
                let term = b.permute(|x, y| if is_plus { x + y } else { x.max(&y) }, &target, to, &u);
                let mut made = Tensor::new(vec![places], |i| i[0] as f64);
                for (k, x) in t.data.iter().enumerate().filter(|(k, _)| *k != 1) {
                    let at = &mut made.data[k % places];
                    *at = if is_plus { *at + x } else { at.max(*x) };
                }
                (term, made)
            }
            12 => {
                // Reads at the index, and below it.
                let a = self.bound(&u);
                let limit = self.below(3);
                let f = |i: E| cond(&first(&i, rank).lt(&n(limit as i64)), &(at(&a, &i) + r(1.0)), &r(-1.0));
                let is_below = |i: &[usize]| i.first().copied().unwrap_or(0) < limit;
                let made = Tensor::new(t.shape.clone(), |i| if is_below(i) { t.at(i) + 1.0 } else { -1.0 });
                (b.generate(&shape(&a), f), made)
            }
            13 => {
                let a = self.bound(&u);
                let (v, s) = self.pick();
                if s.shape.len() != rank || rank == 0 {
                    return (u, t);
                }
                let chosen = if t.shape[0] < 2 { t.clone() } else { s };
                (acond(&size(&a, 0).lt(&n(2)), &var(&a), &v), chosen)
            }
            14 if rank > 0 => {
                // A step that is no operator: the state, less twice the element.
                let steps = |row: &[f64]| {
                    let step = |all: &mut f64, x: &f64| {
                        *all -= 2.0 * x;
                        Some(*all)
                    };
                    std::iter::once(1.0).chain(row.iter().scan(1.0, step)).collect()
                };
                let one = self.ones(&t.shape[..rank - 1]);
                (b.collectl(|x, y| x - y * r(2.0), &one, &u), t.rows(Some(t.shape[rank - 1] + 1), steps))
            }
            15 if rank > 0 => {
                let steps = |row: &[f64]| {
                    let mut all = vec![1.0];
                    row.iter().rev().for_each(|x| all.insert(0, 0.5 * all[0] + x));
                    all
                };
                let one = self.ones(&t.shape[..rank - 1]);
                (b.collectr(|x, y| x * r(0.5) + y, &one, &u), t.rows(Some(t.shape[rank - 1] + 1), steps))
            }
            _ => (u, t),
        }
    }
    fn ones(&self, shape: &[usize]) -> Arr {
        self.b.generate(&Self::shape_of(shape), |_| r(1.0))
    }
}

fn first(i: &E, rank: usize) -> E {
    if rank == 0 { n(0) } else { i.get(0) }
}
fn replicated(slc: &[Option<E>], u: &Arr) -> Arr {
    match slc {
        [a] => replicate([a.clone()], u),
        [a, b] => replicate([a.clone(), b.clone()], u),
        [a, b, c] => replicate([a.clone(), b.clone(), c.clone()], u),
        _ => panic!("ranks up to 3"),
    }
}
fn sliced(slc: &[Option<E>], u: &Arr) -> Arr {
    match slc {
        [a] => slice([a.clone()], u),
        [a, b] => slice([a.clone(), b.clone()], u),
        [a, b, c] => slice([a.clone(), b.clone(), c.clone()], u),
        _ => panic!("ranks up to 3"),
    }
}

#[test]
fn drawn_programs_have_their_values() {
    for seed in 0..600 {
        let b = Draft::default();
        let mut expected = Vec::new();
        let mut random = Numbers(seed);
        random.next();
        let size = seed as usize % 5;
        let argument: Vec<f64> = (0..size).map(|k| k as f64 + 1.0).collect();
        let program = b.program(vector(real()), |x| {
            let known = vec![(var(x), Tensor { shape: vec![size], data: argument.clone() })];
            let mut drawn = Drawn { b: &b, random, bindings: Vec::new(), known };
            for _ in 0..24 {
                let (u, t) = drawn.step();
                if t.data.len() > 200 || t.data.iter().any(|x| x.abs() > 1e9) {
                    continue;
                }
                let is_bound = drawn.below(3) > 0;
                let u = if is_bound { var(&drawn.bound(&u)) } else { u };
                drawn.known.push((u, t));
            }
            let results = drawn.known.split_off(drawn.known.len().saturating_sub(3));
            expected = results.iter().map(|(_, t)| t.value()).collect();
            let all = Arr::tuple(results.into_iter().map(|(u, _)| u).collect());
            Arr::lets(drawn.bindings, all).expect("bindings have the types of their variables")
        });
        let found = run(&program, &[reals(&argument)]);
        let is_same = found.len() == expected.len() && found.iter().zip(&expected).all(|(x, y)| agree(x, y));
        let text = || pullback_core::print::print(&lowered(&program).0);
        assert!(is_same, "seed {seed}: {found:?}, expected {expected:?}\n{}", text());
    }
}
