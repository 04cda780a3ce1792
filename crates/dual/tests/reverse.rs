//! Reverse mode against hand-derived values, forward mode and differences.

use crate::common::{Random, close, expression};
use pullback_dual::{
    Custom, Error, Function, Real, Scalar, Settings, Var, derivative, grad, gradient_forward, hessian, hvp,
    jacobian, jacobian_forward, jvp, value_and_grad, vjp,
};

#[test]
fn sharing_is_addition() {
    // z = x + y, x z: by hand (2x + y, x).
    assert_eq!(value_and_grad(|&[x, y]| x * (x + y), &[12.0, 13.0]), (300.0, [37.0, 12.0]));
}

#[test]
fn chains_of_sums_have_fibonacci_numbers_as_gradients() {
    fn fib<S: Scalar>(n: usize, [mut a, mut b]: [S; 2]) -> S {
        for _ in 1..n {
            (a, b) = (b, a + b);
        }
        b
    }
    assert_eq!(grad(|x| fib(20, *x), &[1.0, 1.0]), [4181.0, 6765.0]);
}

#[test]
fn sharing_a_hundred_times_costs_a_hundred_rows() {
    fn power<S: Scalar>(x: S, z: S) -> S {
        (0..99).fold(x, |y, _| (y + z) + (y - z))
    }
    let outcome = Settings::new().value_and_grad(|&[x, z]| power(x, z), &[1.0, 3.0]).unwrap();
    assert_eq!(outcome.gradient, [2f64.powi(99), 0.0]);
    assert_eq!(outcome.report.rows, 3 * 99);
}

/// Operations on one number, and on two that depend on one row, change its factor.
#[test]
fn what_depends_on_one_row_makes_none() {
    let rows = |f: for<'t> fn(&'t [Var<'t>; 2]) -> Var<'t>| {
        let at = [0.7, 0.4];
        let outcome = Settings::new().value_and_grad(f, &at).unwrap();
        (outcome.report.rows, outcome.gradient)
    };
    // Whatever is made of one number.
    let (n, g) = rows(|&[x, _]| (0..99).fold(x, |y, _| y + y));
    assert_eq!((n, g), (0, [2f64.powi(99), 0.0]));
    let (n, g) = rows(|&[x, _]| ((-x * 3.0 + 1.0).sin() * x - x / (2.0 - x)).exp());
    let d = derivative(|x| ((-x * 3.0 + 1.0).sin() * x - x / (2.0 - x)).exp(), 0.7f64).1;
    assert_eq!(n, 0);
    close(g[0], d);
    // One row for two of them; both results of it share that row.
    let (n, g) = rows(|&[x, z]| {
        let y = x.sin() * (z * 3.0);
        y.exp() * (y + 1.0).recip() - Var::lift(2.0) * y
    });
    assert_eq!(n, 1);
    let y = 0.7f64.sin() * 1.2;
    let dy = y.exp() / (1.0 + y) - y.exp() / (1.0 + y).powi(2) - 2.0;
    close(g[0], dy * 0.7f64.cos() * 1.2);
    close(g[1], dy * 0.7f64.sin() * 3.0);
    // Numbers with factors are what calls, sums and lists of results take.
    let (n, g) = rows(|&[x, z]| {
        let pair = Scalar::custom(&Twisted, &[x * 2.0, z * 5.0]);
        Scalar::total(&[pair[0] * 3.0, pair[1] * 7.0, x * 11.0])
    });
    // Twisted has (10 x1, x0) and (1, 0) as its rows, at x = (1.4, 2).
    assert_eq!(n, 2 + 2);
    close(g[0], 3.0 * 20.0 * 2.0 + 7.0 * 2.0 + 11.0);
    close(g[1], 3.0 * 1.4 * 5.0);
    let (y, j) = jacobian(|&[x, z]| vec![x * 2.0, x * z * 3.0, z * 5.0, -x, z.sin()], &[0.5, 0.25]);
    assert_eq!(y[1], 0.375);
    assert_eq!(j, [[2.0, 0.0], [0.75, 1.5], [0.0, 5.0], [-1.0, 0.0], [0.0, 0.25f64.cos()]]);
    let (_, pullback): ([f64; 2], _) = vjp(|&[x, z]| [x * 2.0, x * z * 3.0], &[0.5, 0.25]);
    assert_eq!(pullback.call(&[1.0, 10.0]).unwrap(), [2.0 + 7.5, 15.0]);
}

/// Products of partial derivatives that leave the middle of the range are not kept as factors.
#[test]
fn factors_neither_overflow_nor_vanish() {
    // 1e-200, twice, is no number; with the cotangent 1e300 it is one. The other way round it would be infinite.
    for (scale, z, d) in [(1e-200, 1e300, 1e-100), (1e200, 1e-300, 1e100)] {
        let g = grad(|&[x, z]| x * scale * scale * z, &[1.0, z]);
        assert!((g[0] / d - 1.0).abs() < 1e-12, "{scale}: {g:?}");
        let h = hessian(|&[x, z]| x * x * scale * scale * z, &[1.0, z]);
        assert!((h[0][0] / (2.0 * d) - 1.0).abs() < 1e-12, "{scale}: {h:?}");
        #[cfg(feature = "parallel")]
        {
            let g = pullback_dual::parallel::grad(|&[x, z]| x * scale * scale * z, &[1.0, z]);
            assert!((g[0] / d - 1.0).abs() < 1e-12, "{scale}: {g:?}");
        }
    }
    let g = grad(|&[x, z]| x * 1e-20f32 * 1e-20 * z, &[1f32, 1e30]);
    assert!((g[0] / 1e-10 - 1.0).abs() < 1e-6, "{g:?}");
    // What does not count may have infinite derivatives; what counts by zero has none.
    let g = grad(|&[x, z]| if x > z { x } else { x + (x - x).sqrt() }, &[2.0, 1.0]);
    assert_eq!(g, [1.0, 0.0]);
    let (_, j) = jacobian(|&[x, z]| vec![(x - x).sqrt(), x * z], &[2.0f64, 1.0]);
    assert!(j[0][0].is_nan());
    assert_eq!(j[1], [1.0, 2.0]);
    assert_eq!(grad(|&[x, z]| x * (z * 0.0).sqrt() * 0.0, &[2.0f64, 1.0]), [0.0, 0.0]);
    assert_eq!(grad(|&x| x.ln() * 0.0 + x, &0.0), 1.0);
    assert_eq!(grad(|&x| x.ln(), &0.0), f64::INFINITY);
}

#[test]
fn closures_conditions_and_recursion() {
    // X14 of the specification of dual-numbers AD: g y = y + 1, h y = e^x y, g (2x) + h (x + 1).
    fn closures<S: Real>(x: S) -> S {
        let g = |y: S| y + 1.0;
        let z = x.exp();
        let h = |y: S| z * y;
        g(x * 2.0) + h(x + 1.0)
    }
    let (value, d) = value_and_grad(|x| closures(*x), &0.5);
    close(value, 4.473_081_906_050_192);
    close(d, 2.0 + 0.5f64.exp() * 2.5);

    fn branch<S: Real>(a: S) -> S {
        let b = a + 1.0;
        if b.value() > 0.0 { a * b } else { b }
    }
    assert_eq!(value_and_grad(|a| branch(*a), &0.5), (0.75, 2.0));
    assert_eq!(value_and_grad(|a| branch(*a), &-3.0), (-2.0, 1.0));

    fn f<S: Real>(x: S) -> S {
        if x.value() < 10.0 { g(x * 0.6) + 1.0 } else { g(x * 0.1) + 2.0 }
    }
    fn g<S: Real>(x: S) -> S {
        if x.value() < 1.0 { x } else { f(x - 1.0) + 2.0 }
    }
    for (x, value, d) in [(0.5, 1.3, 0.6), (5.0, 7.12, 0.216), (50.0, 8.84, 0.036), (37.0, 8.372, 0.036)] {
        let (v, g) = value_and_grad(|x| f(*x), &x);
        close(v, value);
        close(g, d);
    }
}

#[test]
fn rotation_has_the_jacobian_derived_by_hand() {
    fn dot<S: Scalar>(a: [S; 3], b: [S; 3]) -> S {
        S::dot(&a, &b)
    }
    fn rotate<S: Real>(v: [S; 3], q: [S; 4]) -> Vec<S> {
        let (u, s) = ([q[0], q[1], q[2]], q[3]);
        let cross = [u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]];
        (0..3).map(|i| dot(u, v) * 2.0 * u[i] + (s * s - dot(u, u)) * v[i] + s * 2.0 * cross[i]).collect()
    }
    let at = ([1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0]);
    let (y, rows) = jacobian(|(v, q)| rotate(*v, *q), &at);
    assert_eq!(y, [270.0, 180.0, 342.0]);
    assert_eq!(rows[0], ([4.0, -44.0, 118.0], [64.0, 48.0, -16.0, 20.0]));
    assert_eq!(rows[1], ([124.0, 22.0, 4.0], [-48.0, 64.0, 20.0, 16.0]));
    assert_eq!(rows[2], ([-22.0, 116.0, 44.0], [16.0, -20.0, 64.0, 48.0]));
    let (y2, columns) = jacobian_forward(|(v, q)| rotate(*v, *q), &at);
    assert_eq!(y, y2);
    assert_eq!(columns[0], [4.0, 124.0, -22.0]);
    assert_eq!(columns[6], [20.0, 16.0, 48.0]);
}

#[test]
fn pullbacks_are_linear_and_can_be_called_again() {
    let (y, pullback): (Vec<f64>, _) =
        vjp(|&[x, y, z]| vec![x * x * z + x * y * 3.0, x * z * z + y * y * 4.0, z], &[2.0, 3.0, 5.0]);
    assert_eq!(y, [38.0, 86.0, 5.0]);
    let [a, b] = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]].map(|d| pullback.call(&d.to_vec()).unwrap());
    // The Jacobian by hand: (2xz + 3y, 3x, x^2), (z^2, 8y, 2xz).
    assert_eq!((a, b), ([29.0, 6.0, 4.0], [25.0, 24.0, 20.0]));
    let both = pullback.call(&vec![2.0, -3.0, 0.0]).unwrap();
    assert_eq!(both, [0, 1, 2].map(|i| 2.0 * a[i] - 3.0 * b[i]));
    assert_eq!(pullback.call(&vec![0.0; 3]).unwrap(), [0.0; 3]);
    assert!(matches!(pullback.call(&vec![1.0]), Err(Error::Mismatch { .. })));
}

#[test]
fn what_ignores_its_argument_has_a_gradient_of_zero() {
    assert_eq!(grad(|_: &[Var<'_>; 3]| Var::lift(5.0), &[1.0, 2.0, 3.0]), [0.0; 3]);
    assert_eq!(grad(|x| *x, &3.0), 1.0);
    let empty: Vec<f64> = Vec::new();
    assert!(grad(|_: &Vec<Var<'_>>| Var::lift(1.0), &empty).is_empty());
    assert!(hessian(|_| pullback_dual::Second::lift(pullback_dual::Dual::lift(1.0)), &empty).is_empty());
}

#[test]
fn constants_make_no_rows() {
    let outcome = Settings::new()
        .value_and_grad(
            |&[x, y]| {
                let c: Var<'_> = Scalar::from_f64(2.0);
                let d = (c * c).sin() + c * 3.0;
                x * d * (y - d)
            },
            &[1.0, 2.0],
        )
        .unwrap();
    assert_eq!(outcome.report.rows, 1);
    let d = 4f64.sin() + 6.0;
    close(outcome.gradient[0], d * (2.0 - d));
    close(outcome.gradient[1], d);
}

#[test]
fn rows_of_many_parents_equal_loops() {
    let mut random = Random(7);
    for n in [0, 1, 2, 3, 5, 8, 1000, 3001] {
        let xs: Vec<f64> = (0..2 * n).map(|_| random.number()).collect();
        let (a, ga) = value_and_grad(
            |xs| {
                let (l, r) = xs.split_at(n);
                Scalar::dot(l, r) * Scalar::total(xs)
            },
            &xs,
        );
        let (b, gb) = value_and_grad(
            |xs| {
                let (l, r) = xs.split_at(n);
                l.iter().zip(r).map(|(l, r)| l * r).sum::<Var<'_>>() * xs.iter().sum::<Var<'_>>()
            },
            &xs,
        );
        close(a, b);
        ga.iter().zip(&gb).for_each(|(a, b)| close(*a, *b));
    }
    let xs = vec![1.0; 4000];
    let outcome = Settings::new().value_and_grad(|xs| Scalar::total(xs), &xs).unwrap();
    assert_eq!(outcome.report.rows, 2000);
}

#[test]
fn random_programs_have_the_gradients_of_forward_mode_and_of_differences() {
    let mut checked = 0;
    for seed in 0..2000 {
        let x: Vec<f64> = {
            let mut random = Random(seed);
            (0..4).map(|_| random.number() * 1.5).collect()
        };
        let (value, gradient) = value_and_grad(|x| expression(seed, x), &x);
        let (forward_value, forward) = gradient_forward::<3, _, _, _>(|x| expression(seed, x), &x);
        assert_eq!(value, expression(seed, &x), "seed {seed}");
        assert_eq!(value, forward_value, "seed {seed}");
        for i in 0..4 {
            let (a, b) = (gradient[i], forward[i]);
            assert!((a - b).abs() <= 1e-9 * (1.0 + a.abs()), "seed {seed}: {gradient:?} and {forward:?}");
            let h = 1e-6;
            let at = |d: f64| {
                let mut x = x.clone();
                x[i] += d;
                expression(seed, &x)
            };
            let difference = (at(h) - at(-h)) / (2.0 * h);
            // Where the second derivative is large, differences say nothing.
            let halved = (at(h / 2.0) - at(-h / 2.0)) / h;
            if (difference - halved).abs() < 1e-5 * (1.0 + difference.abs()) {
                checked += 1;
                assert!((a - difference).abs() < 1e-4 * (1.0 + a.abs()), "seed {seed}: {a} and {difference}");
            }
        }
    }
    assert!(checked > 7000, "differences decided {checked} of 8000");
}

#[test]
fn second_derivatives_agree_in_all_nestings() {
    for seed in 0..200 {
        let mut random = Random(seed);
        let x: Vec<f64> = (0..4).map(|_| random.number()).collect();
        let h = hessian(|x| expression(seed, x), &x);
        for i in 0..4 {
            let mut e = vec![0.0; 4];
            e[i] = 1.0;
            let (_, _, over) = hvp(|x| expression(seed, x), &x, &e).unwrap();
            // Reverse over reverse: the gradient of the i-th component of the gradient.
            let reverse = grad(|x| grad(|y| expression(seed, y), x)[i], &x);
            // Forward over forward.
            let forward = gradient_forward::<4, _, _, _>(
                |y| gradient_forward::<2, _, _, _>(|z| expression(seed, z), y).1[i],
                &x,
            )
            .1;
            for j in 0..4 {
                let all = [h[i][j], h[j][i], over[j], reverse[j], forward[j]];
                for other in all {
                    assert!((other - all[0]).abs() <= 1e-8 * (1.0 + all[0].abs()), "seed {seed}: {all:?}");
                }
            }
        }
    }
}

#[test]
fn third_derivatives_by_nesting() {
    // x^5: 60 x^2.
    let third = grad(|x| grad(|y| derivative(|z| z.powi(5), *y).1, x), &2.0);
    assert_eq!(third, 240.0);
}

#[test]
fn single_precision() {
    let (value, g) = value_and_grad(|&[x, y]| x * y * 2.0f32 + y.sin(), &[3.0f32, 0.0]);
    assert_eq!((value, g), (0.0f32, [0.0f32, 7.0]));
}

#[test]
fn kinks_are_those_of_the_language() {
    assert_eq!(grad(|x| x.abs(), &0.0), 0.0);
    assert_eq!(grad(|&[x, y]| x.max(y), &[1.0, 1.0]), [0.5, 0.5]);
    assert_eq!(grad(|&[x, y]| x.min(y), &[1.0, 1.0]), [0.5, 0.5]);
    assert_eq!(grad(|&[x, y]| x.max(y), &[f64::NAN, 1.0]), [0.0, 1.0]);
    assert_eq!(grad(|x| x.sqrt(), &0.0), f64::INFINITY);
    assert_eq!(grad(|&[x, y]| x.pow(y), &[0.0, 2.0]), [0.0, 0.0]);
    assert_eq!(grad(|x| x.powf(0.0), &0.0), 0.0);
    assert_eq!(grad(|x| x.powi(0), &0.0), 0.0);
    assert_eq!(grad(|&[x, y]| x.pow(y), &[0.0, 0.0]), [0.0, 0.0]);
    // A negative base: the exponent counts nothing, as in the language.
    assert_eq!(grad(|&[x, y]| x.pow(y), &[-3.0, 2.0]), [-6.0, 0.0]);
    // At exponent 0 the derivative along the base vanishes, but not its own along the exponent: 1 / x.
    assert_eq!(hessian(|[x, y]| x.pow(*y), &[4.0, 0.0])[0][1], 0.25);
    assert_eq!(hessian(|[x, y]| x.pow(*y), &[4.0, 0.0])[1][0], 0.25);
    // A negative base, a constant exponent.
    assert_eq!(grad(|x| x.pow(Scalar::from_f64(2.0)), &-3.0), -6.0);
    assert_eq!(derivative(|x| x.pow(Scalar::from_f64(2.0)), -3.0).1, -6.0);
    // What nothing depends on has no part in the gradient, infinite as its derivative may be.
    assert_eq!(
        grad(
            |x| {
                let _unused = x.sqrt();
                *x
            },
            &0.0
        ),
        1.0
    );
}

#[derive(Clone)]
struct Loop;
impl Function for Loop {
    fn call<S: Scalar>(&self, x: &[S]) -> Vec<S> {
        let mut y = x[0];
        for _ in 0..1000 {
            y = (y * x[1]).sin() + y;
        }
        vec![y, x[1]]
    }
}

#[test]
fn checkpoints_keep_no_rows() {
    let all = Settings::new()
        .value_and_grad(|x| (0..10).fold(x.to_vec(), |x, _| Loop.call(&x))[0], &[0.3, 0.7])
        .unwrap();
    let some = Settings::new()
        .value_and_grad(|x| (0..10).fold(x.to_vec(), |x, _| Scalar::checkpoint(&Loop, &x))[0], &[0.3, 0.7])
        .unwrap();
    assert_eq!(all.value, some.value);
    close(all.gradient[0], some.gradient[0]);
    close(all.gradient[1], some.gradient[1]);
    assert_eq!((all.report.rows, some.report.rows), (20_000, 20));
    // Second derivatives go through.
    let a = hessian(|x| Loop.call(x)[0], &[0.3, 0.7]);
    let b = hessian(|x| Scalar::checkpoint(&Loop, x)[0], &[0.3, 0.7]);
    a.iter().flatten().zip(b.iter().flatten()).for_each(|(a, b)| close(*a, *b));
}

#[derive(Clone)]
struct Twisted;
impl Custom for Twisted {
    fn value<S: Scalar>(&self, x: &[S]) -> Vec<S> {
        vec![x[0] * x[1], x[0]]
    }
    fn vjp<S: Scalar>(&self, x: &[S], y: &[S], y_bar: &[S]) -> Vec<S> {
        // Not the derivative, so that the test sees whose is used.
        vec![y_bar[0] * x[1] * S::from_f64(10.0) + y_bar[1], y_bar[0] * y[1]]
    }
}

#[test]
fn custom_derivatives_are_used_in_both_modes() {
    let (_, rows) = jacobian(|x| Scalar::custom(&Twisted, x), &[3.0, 5.0]);
    assert_eq!(rows, [[50.0, 3.0], [1.0, 0.0]]);
    let (y, y_dot): (Vec<f64>, Vec<f64>) =
        jvp(|x| Scalar::custom(&Twisted, x), &[3.0, 5.0], &[1.0, 100.0]).unwrap();
    assert_eq!((y, y_dot), (vec![15.0, 3.0], vec![350.0, 1.0]));
    let second = hessian(|x| Scalar::custom(&Twisted, x)[0], &[3.0, 5.0]);
    // The gradient is (10 x1, x0): its derivatives along x0, then along x1.
    assert_eq!(second, [[0.0, 1.0], [10.0, 0.0]]);
}

#[test]
fn a_million_rows_are_dropped_without_recursion() {
    let small = std::thread::Builder::new().stack_size(64 << 10);
    let run = || {
        let outcome = Settings::new()
            .value_and_grad(|&[x, z]| (0..1_000_000).fold(x, |y, _| y + z), &[1.0, 1e-6])
            .unwrap();
        assert_eq!((outcome.gradient, outcome.report.rows), ([1.0, 1e6], 1_000_000));
        // 24 bytes a row in whole blocks, and 8 for its cotangent.
        assert!(outcome.report.tape_bytes < 24 * 1_000_000 + (5 << 20));
        assert!(outcome.report.cotangent_bytes <= 8 * 1_000_003);
    };
    small.spawn(run).unwrap().join().unwrap();
}

#[test]
fn limits_are_errors() {
    for _ in 0..3 {
        let error = Settings::new()
            .tape_limit(1 << 20)
            .value_and_grad(|&[x, z]| (0..1 << 20).fold(x, |y, _| y + z), &[1.0, 1.0]);
        let Err(Error::TapeLimit { limit, rows }) = error else { panic!("{error:?}") };
        assert_eq!(limit, 1 << 20);
        assert!(rows > 10_000 && rows < (1 << 20) / 24, "{rows}");
    }
    let message = Error::TapeLimit { limit: 5, rows: 1 }.to_string();
    assert!(message.contains("checkpoint"), "{message}");
}

#[test]
fn a_panic_of_the_function_leaves_the_library_usable() {
    for _ in 0..100 {
        let result = std::panic::catch_unwind(|| {
            grad(
                |x| {
                    let y = x * x;
                    if y.value() > 0.0 {
                        std::panic::resume_unwind(Box::new("user"));
                    }
                    y
                },
                &3.0,
            )
        });
        assert!(result.is_err());
        assert_eq!(grad(|x| x * x, &3.0), 6.0);
    }
}
