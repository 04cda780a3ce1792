//! The cost claims of the text (2.0 and 2.14 of the notes): the work of the gradient is a constant factor of the program's, whatever the size of the data,
//! and each let adds a constant number of them.

use super::build::*;
use super::catalogue::log_sum_exp;
use super::gradients::*;
use super::worked::{w1, w4};
use pullback_ad::accelerate::language::{AVar, Arr, ArrTy, Program};
use pullback_ad::accelerate::primal::Options;
use pullback_core::Value;

/// Numbers from 0 to 1: those of W4, rounded, are places of at least two elements.
fn numbers(n: usize) -> Vec<f64> {
    (0..n).map(|i| (i as f64 * 0.37).sin().abs() * 0.49).collect()
}

/// A program, its arguments of each size, and the most that the ratio may be.
type Family<'a> = (&'a str, Program, &'a dyn Fn(usize) -> Vec<Value>, f64);

/// Work of the gradient over work of the program.
fn ratio(program: &Program, options: Options, args: &[Value]) -> f64 {
    let g = derived(program, options).program;
    let derivative = counted(&g, &with_seeds(program, args, &[Value::f64(1.0)])).1.work;
    derivative as f64 / counted(program, args).1.work as f64
}

fn matrix_vector() -> Program {
    let b = Draft::default();
    b.program(ArrTy::Tuple(vec![matrix(real()), vector(real())]), |p| {
        let (m, v) = (aproj(&var(p), 0), aproj(&var(p), 1));
        b.alet(&m, |m| {
            let rows = replicate([Some(size(m, 0)), None], &v);
            sum(&sum(&b.zip_with(|x, y| x * y, &var(m), &rows)))
        })
    })
}

fn log_sum_exp_of_vector() -> Program {
    let b = Draft::default();
    b.program(vector(real()), |a| log_sum_exp(&b, a, |b, log, m| b.zip_with(|x, y| x + y, log, &var(m))))
}

fn product_of_vector() -> Program {
    let b = Draft::default();
    b.program(vector(real()), |a| product(&b, &var(a)))
}

/// Each step reads an element of the argument.
fn loop_over_vector() -> Program {
    let b = Draft::default();
    b.program(vector(real()), |a| {
        let one = b.generate(&ix([]), |_| r(1.0));
        let places = b.generate(&shape(a), |i| i.get(0));
        let all = b.collectl(|x, k| &x * at1(a, &k).sin() + &x, &one, &places);
        slice([Some(size(a, 0))], &all)
    })
}

/// As many steps as the argument has elements, of arrays of eight; they read nothing else.
fn loop_of_arrays() -> Program {
    let b = Draft::default();
    b.program(vector(real()), |a| {
        let first = b.generate(&ix([8]), |_| at1(a, &n(0)));
        let all = b.iterate(&size(a, 0), &first, |s, _| b.map(|x| x.sin() * &x, &var(s)));
        sum(&slice([Some(size(a, 0)), None], &all))
    })
}

#[test]
fn the_ratio_does_not_grow_with_the_data() {
    let of_vector = |n: usize| vec![reals(&numbers(n))];
    let of_matrix = |n: usize| {
        let rows = n / 10;
        vec![reals_of(&[rows, 10], &numbers(rows * 10)), reals(&numbers(10))]
    };
    let families: [Family<'_>; 7] = [
        ("W1", w1(), &of_vector, 4.0),
        ("W4", w4(), &of_vector, 6.0),
        ("matrix and vector", matrix_vector(), &of_matrix, 5.0),
        ("logsumexp", log_sum_exp_of_vector(), &of_vector, 8.0),
        ("product", product_of_vector(), &of_vector, 20.0),
        ("loop", loop_over_vector(), &of_vector, 12.0),
        ("loop of arrays", loop_of_arrays(), &of_vector, 6.0),
    ];
    for (name, program, args, most) in &families {
        for options in variants() {
            let ratios = [100, 1000, 4000].map(|n| ratio(program, options, &args(n)));
            assert!(ratios[2] <= ratios[0] * 1.1, "{name}, {options:?}: the ratio grows: {ratios:?}");
            assert!(ratios[2] <= *most, "{name}, {options:?}: the ratio is large: {ratios:?}");
        }
    }
}

/// The work and the bindings of the gradient of a program.
fn costs(program: &Program, options: Options, args: &[Value]) -> [f64; 2] {
    let g = derived(program, options).program;
    let work = counted(&g, &with_seeds(program, args, &[Value::f64(1.0)])).1.work;
    [work as f64, lets(&g.body) as f64]
}

/// One more step costs as much as the step before: of the work and the bindings, or of the bindings alone. What is evaluated again goes to memory after three steps:
/// so numbers of steps are multiples of three.
fn is_linear(name: &str, measures: std::ops::Range<usize>, program: impl Fn(usize) -> Program) {
    for options in variants() {
        let [a, b, c] = [12, 24, 48].map(|k| costs(&program(k), options, &[reals(&[0.5; 10])]));
        for m in measures.clone() {
            let (first, second) = (b[m] - a[m], c[m] - b[m]);
            assert!(second <= first * 2.2, "{name}, {options:?}: {a:?}, {b:?}, {c:?}");
        }
    }
}

/// Lets around each other, each of which uses the one before twice.
fn doubled(k: usize) -> Program {
    let b = Draft::default();
    b.program(vector(real()), |a| {
        let (mut last, mut bindings) = (a.clone(), Vec::new());
        for _ in 0..k {
            let u = b.zip_with(|x, y| x + y, &var(&last), &var(&last));
            last = b.avar("b", vector(real()));
            bindings.push((last.clone(), u));
        }
        sum(&Arr::lets(bindings, var(&last)).expect("types"))
    })
}

/// An array that is bound, and used so many times.
fn used(k: usize) -> Program {
    let b = Draft::default();
    b.program(vector(real()), |a| {
        b.alet(&b.map(|x| x.sin(), &var(a)), |c| {
            let first = b.map(|x| x * r(2.0), &var(c));
            sum(&(1..k).fold(first, |u, _| b.zip_with(|x, y| x * y, &u, &var(c))))
        })
    })
}

/// The same of elements that are read.
fn read(k: usize) -> Program {
    let b = Draft::default();
    b.program(vector(real()), |a| {
        b.alet(&b.map(|x| x.sin(), &var(a)), |c| {
            let place = |i: &E, d: usize| tuple([(i.get(0) + n(d as i64)).rem(&size(c, 0))]);
            sum(&b.generate(&shape(c), |i| (0..k).fold(r(1.0), |x, d| x * at(c, &place(&i, d)))))
        })
    })
}

/// Conditions around each other: what the branches store is handed out once for each.
fn conditions(k: usize) -> Program {
    fn body(b: &Draft, a: &AVar, k: usize) -> Arr {
        match k {
            0 => var(a),
            _ => {
                let c = size(a, 0).lt(&n(k as i64));
                acond(&c, &b.map(|x| x * r(2.0), &var(a)), &body(b, a, k - 1))
            }
        }
    }
    let b = Draft::default();
    b.program(vector(real()), |a| sum(&body(&b, a, k)))
}

#[test]
fn uses_of_an_array_add_up() {
    is_linear("b = a + a", 0..2, doubled);
    is_linear("uses", 0..2, used);
    // The work is quadratic: each permutation of the lowered program lists what is known of all reads.
    is_linear("reads", 1..2, read);
    expect(&doubled(20), &[reals(&[1.0, 2.0])], 3145728.0, &[1048576.0, 1048576.0], 0.0);
}

/// Conditions around each other are no more than quadratic, as the text says: each level hands out what is inside.
#[test]
fn conditions_hand_out_what_they_store() {
    for options in variants() {
        let [a, b, c] = [5, 10, 20].map(|k| costs(&conditions(k), options, &[reals(&[0.5; 30])]));
        for m in 0..2 {
            let (first, second) = (b[m] - a[m], c[m] - b[m]);
            assert!(second <= first * 4.4, "{options:?}: {a:?}, {b:?}, {c:?}");
        }
    }
}
