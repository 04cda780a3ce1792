//! Programs of the text's appendix, and further ones directed at one combinator each, in the language itself.
//!
//! A program has one vector, or a pair of two; numbers that the text draws are constants here.

use super::build::*;
use super::gradients::{product, the};
use pullback_ad::accelerate::language::{AVar, Arr, Program};
use pullback_prim::Op;

/// The only element of an array of rank 0, for a condition outside of functions.
fn with_the(b: &Draft, u: &Arr, body: impl FnOnce(E) -> Arr) -> Arr {
    b.alet(u, |s| body(the(s)))
}
/// `x * x + x`
fn q(b: &Draft, u: &Arr) -> Arr {
    b.map(|x| &x * &x + x, u)
}
fn double(b: &Draft, u: &Arr) -> Arr {
    b.map(|x| r(2.0) * x, u)
}
/// The sum of all elements, as a fold of the flat array.
fn total(b: &Draft, u: &Arr) -> Arr {
    b.alet(u, |v| {
        let rank = var(v).ty().array().expect("an array").1;
        let elements = (0..rank).fold(n(1), |all, d| all * size(v, d));
        b.fold1(|x, y| x + y, &reshape(&tuple([elements]), &var(v)))
    })
}
fn abs(x: &E) -> E {
    cond(&x.lt(&r(0.0)), &-x.clone(), x)
}
fn positive(x: &E) -> E {
    r(0.0).lt(x)
}
fn round(x: &E) -> E {
    to_int(&op1(Op::Round, x))
}
fn number(b: &Draft, x: f64) -> Arr {
    b.generate(&ix([]), |_| r(x))
}
fn one_number(b: &Draft, x: f64) -> Arr {
    b.generate(&ix([1]), |_| r(x))
}

pub(super) type Body = fn(&Draft, &AVar) -> Arr;
pub(super) type Body2 = fn(&Draft, &AVar, &AVar) -> Arr;

/// The programs of one vector.
pub(super) const ONE: &[(&str, Body)] = &[
    ("acond_0", |b, a| {
        with_the(b, &sum(&var(a)), |s| sum(&acond(&positive(&s), &var(a), &double(b, &var(a)))))
    }),
    ("acond_0a", |b, a| {
        with_the(b, &sum(&var(a)), |s| sum(&acond(&positive(&s), &double(b, &var(a)), &var(a))))
    }),
    ("acond_1", |b, a| {
        b.alet(&double(b, &var(a)), |c| {
            with_the(b, &sum(&var(a)), |s| {
                let (ab, ba) = (atuple([var(a), var(c)]), atuple([var(c), var(a)]));
                b.alet(&aproj(&acond(&positive(&s), &ab, &ba), 0), |a1| {
                    sum(&b.map(|x| x * to_real(&size(a1, 0)), &var(c)))
                })
            })
        })
    }),
    ("acond_2a", |b, a| acond_2(b, a, true)),
    ("acond_2b", |b, a| acond_2(b, a, false)),
    ("acond_3a", |b, a| sum(&acond(&truth(true), &one_number(b, 42.0), &var(a)))),
    ("acond_3b", |b, a| {
        let sums = [sum(&double(b, &var(a))), sum(&b.map(|x| x + r(3.0), &var(a)))];
        let other = b.zip_with(|x, y| x + y, &sums[0], &sums[1]);
        acond(&n(0).le(&size(a, 0)), &number(b, 42.0), &other)
    }),
    ("map", |b, a| sum(&b.map(|x| x * r(3.0), &var(a)))),
    ("fold_1", |b, a| product(b, &var(a))),
    ("fold_2", |b, a| b.fold(|x, y| x.max(&y), &r(3.0), &var(a))),
    ("fold_3", |b, a| b.fold(|x, y| abs(&x) + abs(&y), &r(0.0), &var(a))),
    ("fold1_1", |b, a| b.fold1(|x, y| x * y, &var(a))),
    ("fold1_2", |b, a| b.fold1(|x, y| x.max(&y), &var(a))),
    ("replicate_1", |b, a| product(b, &sum(&double(b, &replicate([None, Some(n(5))], &q(b, &var(a))))))),
    ("replicate_2", |b, a| total(b, &b.map(|x| x / r(20.0), &replicate([Some(n(5)), None], &q(b, &var(a)))))),
    ("replicate_3", |b, a| {
        let two = q(b, &replicate([None, Some(n(2))], &var(a)));
        total(b, &double(b, &replicate([None, Some(n(5)), None, Some(n(3))], &two)))
    }),
    ("replicate_4", replicate_4),
    ("slice_1", |_, a| {
        let m = size(a, 0) / n(4) + n(3);
        sum(&slice([Some(n(2)), Some(n(1)), None], &replicate([Some(m.clone()), Some(m), None], &var(a))))
    }),
    ("slice_2", |b, a| {
        let k = size(a, 0);
        let shape = tuple([k.clone(), k.clone(), &k + n(1)]);
        let at = |i: E| tuple([(i.get(0) + i.get(1) + i.get(2)).rem(&k)]);
        let gathered = b.backpermute(&shape, at, &var(a));
        sum(&slice([Some(n(7).rem(&k)), Some(n(12).rem(&k)), None], &gathered))
    }),
    ("reshape_1", |b, a| product(b, &sum(&reshape(&tuple([n(2), size(a, 0) / n(2)]), &var(a))))),
    ("reshape_2", |b, a| {
        let two = reshape(&tuple([n(2), size(a, 0) / n(2)]), &var(a));
        sum(&product(b, &reshape(&tuple([size(a, 0), n(1)]), &two)))
    }),
    ("backpermute_1", |b, a| total(b, &around(b, a))),
    ("backpermute_2", |b, a| {
        let d =
            b.backpermute(&ix([2, 3, 5]), |i| tuple([(i.get(1) * i.get(2)).min(&n(4))]), &sum(&around(b, a)));
        total(b, &slice([None, None, Some(n(2))], &b.map(|x| x / r(2.0), &d)))
    }),
    ("aindex_generate_1", |b, a| {
        sum(&b.generate(&tuple([size(a, 0) / n(2)]), |i| at1(a, &(n(2) * i.get(0)))))
    }),
    ("aindex_generate_2", |b, a| {
        sum(&b.generate(&tuple([n(2) * size(a, 0)]), |i| {
            let i = i.get(0);
            at1(a, &(&i / n(2))) + at1(a, &i.rem(&n(2)).min(&(size(a, 0) - n(1))))
        }))
    }),
    ("aindex_generate_3", aindex_generate_3),
    ("aindex_generate_4", aindex_generate_4),
    ("aindex_map_1", |b, a| sum(&b.map(|x| x + at1(a, &n(2)), &var(a)))),
    ("aindex_map_2", |b, a| sum(&b.map(|x| &x + at1(a, &place(&x, &size(a, 0))), &var(a)))),
    ("aindex_map_3", |b, a| {
        let shape = tuple([size(a, 0), size(a, 0)]);
        let gathered = b.backpermute(&shape, |i| tuple([i.get(0).and(&i.get(1))]), &var(a));
        b.alet(&b.fold(|x, y| x.max(&y), &r(-20.0), &gathered), |c| {
            sum(&b.map(|x| &x * at1(c, &place(&x, &size(a, 0))), &var(a)))
        })
    }),
    ("aindex_map_4", |b, a| {
        let k = size(a, 0);
        let at = |i: E| tuple([op2(Op::Xor, &i.get(0), &i.get(1)).min(&(&k - n(1)))]);
        let c = sum(&b.backpermute(&tuple([k.clone(), k.clone()]), at, &var(a)));
        sum(&b.map(|x| &x * at1(a, &place(&x, &k)), &c))
    }),
    ("aindex_acond", |b, a| {
        with_the(b, &b.map(|x| round(&x), &sum(&var(a))), |s| {
            let inside = n(0).le(&s).and(&s.lt(&size(a, 0)));
            sum(&acond(&inside, &b.generate(&ix([1]), |_| at1(a, &s)), &one_number(b, 0.0)))
        })
    }),
    ("aindex_only", |b, a| sum(&b.generate(&ix([5]), |i| at1(a, &i.get(0).rem(&size(a, 0)))))),
    ("a_ignore_argument", |b, _| number(b, 42.0)),
    ("ignore_argument", |b, a| sum(&b.map(|_| r(42.0), &var(a)))),
    ("nonfloat_lam", |b, a| {
        let pairs = b.map(|x| tuple([round(&x), x.sin()]), &var(a));
        sum(&b.map(|p| to_real(&p.get(0)) * p.get(1), &pairs))
    }),
    ("logsumexp1", |b, a| log_sum_exp(b, a, |b, log, m| b.zip_with(|x, y| x + y, log, &var(m)))),
    ("logsumexp2", |b, a| log_sum_exp(b, a, |_, log, _| log.clone())),
    ("logsumexp3", |b, a| log_sum_exp(b, a, |b, _, m| b.zip_with(|x, y| x + y, &var(m), &var(m)))),
    ("tuple1", |b, a| {
        let both = atuple([double(b, &var(a)), b.map(|x| x + r(3.0), &var(a))]);
        b.alet(&aproj(&both, 0), |c| {
            let sines = b.zip_with(|x, y| x.sin() * y, &var(c), &var(a));
            b.alet(&atuple([sines, var(a), var(c)]), |t| {
                let (a1, a2, a3) = (aproj(&var(t), 0), aproj(&var(t), 1), aproj(&var(t), 2));
                let zipped = b.zip_with(|x, y| tuple([x, y]), &a1, &a2);
                let all = b.zip_with(|p, z| p.get(0) + p.get(1) * z, &zipped, &a3);
                b.map(|x| x + r(5.0), &sum(&all))
            })
        })
    }),
    ("acond_cond1", |b, a| {
        let k = size(a, 0);
        let twice = n(2) * &k;
        b.alet(&double(b, &var(a)), |c| {
            let share = |s: E| {
                let sigmoid = r(1.0) / (r(1.0) + (-s).exp());
                to_int(&op1(Op::Floor, &(sigmoid * (to_real(&twice) - r(0.01)))))
            };
            with_the(b, &b.map(share, &sum(&var(a))), |at| {
                let shape = tuple([twice.clone()]);
                let low = b.generate(&shape, |i| {
                    let i = i.get(0);
                    cond(&i.le(&at), &at1(a, &i), &at1(c, &((&i - &at) / n(2))))
                });
                let high = b.generate(&shape, |i| {
                    let i = i.get(0);
                    let second = cond(&k.le(&i), &at1(c, &(&i - &k)), &at1(a, &i));
                    at1(a, &(&at - &k)) + second
                });
                sum(&acond(&at.lt(&k), &low, &high))
            })
        })
    }),
    ("cond_0", |b, a| sum(&b.map(|x| cond(&positive(&x), &x, &(r(2.0) * &x)), &var(a)))),
    ("cond_1", |b, a| {
        let f = |x: E| r(2.0) * cond(&positive(&x), &(&x * &x).sin(), &(&x * &x * x.exp()));
        sum(&b.map(f, &var(a)))
    }),
    ("cond_3a", |b, a| cond_3(b, a, true)),
    ("cond_3b", |b, a| cond_3(b, a, false)),
    ("cond_4", |b, a| {
        let f = |x: E| {
            let low = cond(&(&x - r(2.0)).lt(&r(-3.0)), &((&x + r(1.0)).exp() - r(2.0)), &x);
            b.let_(&cond(&r(1.0).le(&x), &(op1(Op::Log, &x) + r(1.0)), &low), |u| {
                let y = r(2.0) * u.exp();
                b.let_(&y, |y| &u * cond(&u.lt(&r(-1.0)), &(&u + &y), &y))
            })
        };
        sum(&b.map(f, &var(a)))
    }),
];

/// The programs of two vectors.
pub(super) const TWO: &[(&str, Body2)] = &[
    ("zipWith", |b, a, c| sum(&b.zip_with(|x, y| x.sin() * op1(Op::Cos, &(&x + &y)), &var(a), &var(c)))),
    ("tuple2", |b, a, c| {
        let add = |u: &Arr, v: &Arr| b.zip_with(|x, y| x + y, u, v);
        let product = b.zip_with(|x, y| x * y, &var(a), &var(c));
        b.alet(&atuple([var(c), product]), |t| {
            let (a1, a2) = (aproj(&var(t), 0), aproj(&var(t), 1));
            b.alet(&atuple([add(&a2, &var(c)), a1.clone()]), |u| {
                let (b1, b2) = (aproj(&var(u), 0), aproj(&var(u), 1));
                b.alet(&atuple([b2.clone(), add(&a1, &b2)]), |v| {
                    let (c1, c2) = (aproj(&var(v), 0), aproj(&var(v), 1));
                    let yz = b.zip_with(|x, y| tuple([x, y]), &sum(&b1), &sum(&c1));
                    b.zip_with(|x, p| op1(Op::Log, &(p.get(0) * p.get(1))) + x, &sum(&c2), &yz)
                })
            })
        })
    }),
    ("tuple3", |b, a, c| {
        let first = atuple([replicate([None, Some(n(3))], &var(c)), var(a)]);
        let small = b.generate(&ix([1, 2]), |i| to_real(&(i.get(0) + i.get(1))));
        let t = acond(&size(a, 0).rem(&n(3)).eq(&n(0)), &first, &atuple([small, var(c)]));
        b.alet(&t, |t| {
            b.alet(&aproj(&var(t), 0), |a1| {
                b.alet(&aproj(&var(t), 1), |a2| {
                    let first = cond(&n(0).lt(&size(a1, 0)), &at(a1, &ix([0, 1])), &r(42.0));
                    let place = |i: E| tuple([(i.get(0) * i.get(1)).rem(&size(a2, 0))]);
                    let gathered = b.backpermute(&ix([4, 4]), place, &var(a2));
                    let other = atuple([gathered, slice([None, Some(n(0))], &var(a1))]);
                    b.alet(&acond(&positive(&first), &var(t), &other), |u| {
                        sum(&b.zip_with(|x, y| x + y, &aproj(&var(u), 1), &sum(&aproj(&var(u), 0))))
                    })
                })
            })
        })
    }),
    ("tuple4", |b, a, c| {
        let inner = atuple([sum(&var(c)), var(a), atuple([])]);
        let all = atuple([atuple([var(c), sum(&var(a)), inner, sum(&var(a))]), var(c)]);
        b.alet(&all, |t| {
            let (left, a3) = (aproj(&var(t), 0), aproj(&var(t), 1));
            let [a1, s1, inner, s3] = [0, 1, 2, 3].map(|k| aproj(&left, k));
            let (s2, a2) = (aproj(&inner, 0), aproj(&inner, 1));
            let times = |u: &Arr, v: &Arr| b.zip_with(|x, y| x * y, u, v);
            let add = |u: &Arr, v: &Arr| b.zip_with(|x, y| x + y, u, v);
            let second = times(&add(&times(&sum(&a1), &product(b, &a2)), &s2), &s3);
            add(&times(&s1, &sum(&a3)), &second)
        })
    }),
    ("neural", neural),
];

fn acond_2(b: &Draft, a: &AVar, is_first: bool) -> Arr {
    b.alet(&double(b, &var(a)), |c| {
        with_the(b, &sum(&var(a)), |s| {
            let low = b.map(|x| x + r(1.0), &var(c));
            let high = b.map(|x| x - r(1.0), &double(b, &var(c)));
            let y = acond(&s.le(&r(2.0)), &low, &high);
            let (u, v) = if is_first { (var(c), y) } else { (y, var(c)) };
            sum(&b.zip_with(|x, y| x * y, &u, &v))
        })
    })
}

pub(super) fn replicate_4(b: &Draft, a: &AVar) -> Arr {
    let two = q(b, &replicate([None, Some(n(2))], &var(a)));
    total(b, &double(b, &replicate([Some(n(5)), None, Some(n(3)), None], &two)))
}

pub(super) fn aindex_generate_3(b: &Draft, a: &AVar) -> Arr {
    sum(&b.generate(&tuple([n(2) * size(a, 0)]), |i| {
        let i = i.get(0);
        cond(&i.lt(&n(5)), &at1(a, &(&i / n(2))), &r(42.0))
    }))
}

pub(super) fn aindex_generate_4(b: &Draft, a: &AVar) -> Arr {
    let k = size(a, 0);
    sum(&b.generate(&tuple([n(2) * &k]), |i| {
        let i = i.get(0);
        cond(&i.lt(&k), &at1(a, &i), &at1(a, &(&i - &k)))
    }))
}

/// A place inside, from a number.
fn place(x: &E, size: &E) -> E {
    op1(Op::Abs, &round(x)).rem(size)
}

/// A matrix of 5 by 10 whose rows begin at each other's second element.
fn around(b: &Draft, a: &AVar) -> Arr {
    b.backpermute(&ix([5, 10]), |i| tuple([(i.get(0) + i.get(1)).rem(&size(a, 0))]), &var(a))
}

pub(super) fn log_sum_exp(b: &Draft, a: &AVar, result: impl FnOnce(&Draft, &Arr, &AVar) -> Arr) -> Arr {
    b.alet(&b.fold1(|x, y| x.max(&y), &var(a)), |m| {
        let moved = b.zip_with(|x, y| x - y, &var(a), &replicate([Some(size(a, 0))], &var(m)));
        let log = b.map(|x| op1(Op::Log, &x), &sum(&b.map(|x| x.exp(), &moved)));
        result(b, &log, m)
    })
}

fn cond_3(b: &Draft, a: &AVar, is_first: bool) -> Arr {
    let f = |x: E| {
        b.let_(&(r(2.0) * &x), |u| {
            let v = cond(&x.le(&r(2.0)), &(&u + r(1.0)), &(r(2.0) * &u - r(1.0)));
            b.let_(&v, |v| if is_first { &u * &v } else { &v * &u })
        })
    };
    sum(&b.map(f, &var(a)))
}

/// Three dense layers whose weights are picked from a vector.
fn neural(b: &Draft, input: &AVar, weights: &AVar) -> Arr {
    let pick = |seed: i64, shape: &E, at: &dyn Fn(&E) -> (E, E)| {
        let place = |i: E| {
            let (i, j) = at(&i);
            let x = &i + &j + &j * &j * n(seed);
            let power = (0..seed).fold(x.clone(), |p, _| p * &x);
            tuple([power.rem(&size(weights, 0))])
        };
        b.backpermute(shape, place, &var(weights))
    };
    let pair = |i: &E| (i.get(0), i.get(1));
    let w1 = pick(1, &tuple([n(3), size(input, 0)]), &pair);
    let w2 = pick(2, &ix([2, 3]), &pair);
    let w3 = pick(3, &ix([2]), &|i| (n(0), i.get(0)));
    let times =
        |m: &Arr, rows: i64, v: &Arr| sum(&b.zip_with(|x, y| x * y, m, &replicate([Some(n(rows)), None], v)));
    let sigmoid = |u: &Arr| b.map(|x| r(1.0) / (r(1.0) + (-x).exp()), u);
    let hidden = sigmoid(&times(&w2, 2, &sigmoid(&times(&w1, 3, &var(input)))));
    sigmoid(&sum(&b.zip_with(|x, y| x * y, &w3, &hidden)))
}

/// The program of one of these bodies.
pub(super) fn one(body: Body) -> Program {
    let b = Draft::default();
    b.program(vector(real()), |a| body(&b, a))
}

/// The same of two vectors: the argument is a pair.
pub(super) fn two(body: Body2) -> Program {
    let b = Draft::default();
    b.program(pullback_ad::accelerate::language::ArrTy::Tuple(vec![vector(real()); 2]), |p| {
        b.alet(&aproj(&var(p), 0), |a| b.alet(&aproj(&var(p), 1), |c| body(&b, a, c)))
    })
}
