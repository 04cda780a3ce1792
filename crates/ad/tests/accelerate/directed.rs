//! Programs that are not of the text, each directed at one thing: their names begin with `x_`.

use super::build::*;
use super::catalogue::Body;
use super::gradients::the;
use pullback_ad::accelerate::language::{AVar, Arr};
use pullback_prim::Op;

fn square(b: &Draft, u: &Arr) -> Arr {
    b.map(|x| &x * &x, u)
}
fn q(b: &Draft, u: &Arr) -> Arr {
    b.map(|x| &x * &x + x, u)
}
fn is_positive(b: &Draft, a: &AVar, body: impl FnOnce(&E) -> Arr) -> Arr {
    b.alet(&sum(&var(a)), |s| body(&r(0.0).lt(&the(s))))
}
fn round(x: &E) -> E {
    to_int(&op1(Op::Round, x))
}
fn place(x: &E, size: &E) -> E {
    op1(Op::Abs, &round(x)).rem(size)
}

/// The programs.
pub(super) const DIRECTED: &[(&str, Body)] = &[
    ("x_nested_cond_index", |b, a| {
        sum(&b.generate(&shape(a), |i| {
            let i = i.get(0);
            let here = at1(a, &i);
            let falls = at1(a, &i).lt(&at1(a, &(&i - n(1))));
            let c = cond(&n(0).lt(&i), &falls, &truth(false));
            let other = (&here + at1(a, &n(2))) * at1(a, &place(&here, &size(a, 0)));
            cond(&c, &here, &other)
        }))
    }),
    ("x_index_in_index", |b, a| {
        sum(&b.generate(&shape(a), |i| at(a, &i) * at1(a, &place(&at(a, &i), &size(a, 0)))))
    }),
    ("x_acond_nested_let", |b, a| {
        is_positive(b, a, |c| {
            let cubes = b.alet(&square(b, &var(a)), |s| b.zip_with(|x, y| x * y, &var(s), &var(a)));
            let sines = b.alet(&b.map(|x| x.sin(), &var(a)), |s| {
                let scaled = b.map(|x| x * at1(s, &n(1)), &var(s));
                acond(&n(1).lt(&size(a, 0)), &scaled, &var(s))
            });
            sum(&acond(c, &cubes, &sines))
        })
    }),
    ("x_only_untaken", |b, a| {
        b.alet(&square(b, &var(a)), |s| {
            let ones = b.generate(&ix([2]), |_| r(1.0));
            let inner = acond(&size(a, 0).lt(&n(0)), &var(s), &ones);
            sum(&acond(&n(0).le(&size(a, 0)), &inner, &b.map(|x| x * r(3.0), &var(s))))
        })
    }),
    ("x_pair_arrays", |b, a| {
        let k = size(a, 0);
        let turned = |i: E| tuple([&k - n(1) - i.get(1)]);
        let pairs = b.generate(&shape(a), |i| tuple([i.get(0).rem(&n(3)), at(a, &i) * at(a, &i).sin()]));
        let shape = tuple([n(6), k.clone()]);
        let gathered = b.backpermute(&shape, turned, &pairs);
        let reversed = b.backpermute(&shape, turned, &var(a));
        let value = |x: E, p: E| cond(&p.get(0).eq(&n(0)), &(x * p.get(1)), &r(0.0));
        sum(&sum(&b.zip_with(value, &reversed, &gathered)))
    }),
    ("x_scalar_acond", |b, a| {
        b.alet(&sum(&var(a)), |s| acond(&r(0.0).lt(&the(s)), &square(b, &var(s)), &var(s)))
    }),
    ("x_zip2d", |b, a| {
        let (columns, rows) =
            (replicate([None, Some(n(5))], &var(a)), replicate([Some(n(4)), None], &var(a)));
        sum(&sum(&b.zip_with(|x, y| x.sin() * y, &columns, &rows)))
    }),
    ("x_unused_let", |b, a| b.alet(&b.map(|x| x.exp() * at1(a, &n(0)), &var(a)), |_| sum(&var(a)))),
    ("x_two_index_same", |b, a| {
        b.alet(&b.map(|x| r(2.0) * x, &var(a)), |c| {
            sum(&b.generate(&shape(a), |i| {
                let next = (i.get(0) + n(1)).rem(&size(a, 0));
                at(c, &i) * at1(c, &next) + r(2.0) * at1(a, &n(0)) * at1(a, &n(0))
            }))
        })
    }),
    ("x_index_arg_acond", |b, a| {
        is_positive(b, a, |c| {
            let both = b.generate(&shape(a), |i| at(a, &i) * at1(a, &(size(a, 0) - n(1) - i.get(0))));
            sum(&acond(c, &both, &b.generate(&ix([1]), |_| at1(a, &n(0)))))
        })
    }),
    ("x_fold_last", |b, a| b.fold(|_, y| y, &r(0.0), &var(a))),
    ("x_fold_first", |b, a| b.fold(|x, _| x, &r(1.0), &var(a))),
    ("x_fold1_first", |b, a| b.fold1(|x, _| x, &var(a))),
    ("x_fold_xyplus", |b, a| b.fold(|x, y| &x * &y + x + y, &r(0.5), &var(a))),
    ("x_fold_2d", |b, a| {
        let sums = b.generate(&ix([3, 3]), |i| at1(a, &i.get(0)) + at1(a, &i.get(1)));
        sum(&b.fold(|x, y| x * y, &r(2.0), &sums))
    }),
    ("x_fold1_2d", |b, a| {
        let rows = replicate([Some(n(3)), None], &b.map(|x| x / r(4.0), &var(a)));
        sum(&b.fold1(|x, y| x * y, &rows))
    }),
    ("x_fold_captures_scalar", |b, a| b.fold(|x, y| x + y, &to_real(&size(a, 0)), &var(a))),
    ("x_backperm_dup", |b, a| {
        sum(&square(b, &b.backpermute(&ix([7]), |i| tuple([(n(3) * i.get(0)).rem(&n(5))]), &var(a))))
    }),
    ("x_repl_none", |b, a| sum(&q(b, &replicate([None], &var(a))))),
    ("x_repl_all", |b, a| sum(&sum(&square(b, &replicate([Some(n(2)), Some(n(3))], &sum(&var(a))))))),
    ("x_slice_all", |b, a| slice([Some(n(0))], &q(b, &var(a)))),
    ("x_slice_none", |b, a| sum(&q(b, &slice([None], &var(a))))),
    ("x_slice_mid", |b, a| {
        let cube = b.generate(&tuple([size(a, 0), n(2), n(3)]), |i| {
            at1(a, &i.get(0)) * to_real(&(i.get(1) + i.get(2)))
        });
        sum(&sum(&q(b, &slice([None, Some(n(1)), None], &cube))))
    }),
    ("x_perm_2d_transpose", |b, a| {
        let k = size(a, 0);
        let columns = replicate([None, Some(n(4))], &q(b, &var(a)));
        let turned = b.backpermute(&tuple([n(4), k]), |i| tuple([i.get(1), i.get(0)]), &columns);
        sum(&sum(&b.zip_with(|x, y| x * y, &turned, &replicate([Some(n(4)), None], &var(a)))))
    }),
    ("x_cond_pair", |b, a| {
        let f = |x: E| {
            let p = cond(&r(0.0).lt(&x), &tuple([x.clone(), &x * &x]), &tuple([x.sin(), r(1.0)]));
            b.let_(&p, |p| p.get(0) * p.get(1))
        };
        sum(&b.map(f, &var(a)))
    }),
    ("x_let_shared", |b, a| {
        let f = |x: E| b.let_(&(&x * &x), |u| b.let_(&(&u + &x), |v| b.let_(&(&u * &v), |w| &w * (&u + &v))));
        sum(&b.map(f, &var(a)))
    }),
    ("x_cond_let_crossing", |b, a| {
        let f = |x: E| {
            b.let_(&(&x / r(10.0)).exp(), |v| {
                let high = b.let_(&(&x * &v), |w| cond(&r(2.0).lt(&x), &(&w * &v), &(&w + &v)));
                cond(&r(0.0).lt(&x), &high, &(&v * &v))
            })
        };
        sum(&b.map(f, &var(a)))
    }),
    ("x_sq_of_the", |b, a| {
        b.alet(&sum(&var(a)), |s| sum(&b.map(|x| &x * &x * the(s) + x * the(s), &var(a))))
    }),
    ("x_matmul", |b, a| {
        let k = size(a, 0);
        let x = replicate([Some(n(2)), Some(n(3)), None], &var(a));
        let y = b.backpermute(&tuple([n(2), n(3), k]), |i| tuple([i.get(2)]), &var(a));
        sum(&sum(&sum(&b.zip_with(|x, y| x * y, &x, &y))))
    }),
];
