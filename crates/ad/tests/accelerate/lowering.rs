//! Every form of the language as core, at numbers that are computed by hand.

use super::build::*;
use pullback_ad::accelerate::language::{Arr, ArrTy, Program, Ty};
use pullback_core::Value;
use pullback_prim::{Op, Scalar};

/// The only leaf of the result of a program of a vector of numbers.
fn of_vector(xs: &[f64], body: impl FnOnce(&Draft, &Arr) -> Arr) -> Value {
    one(&over(&vector(real()), body), &[reals(xs)])
}
fn of_matrix(shape: [usize; 2], xs: &[f64], body: impl FnOnce(&Draft, &Arr) -> Arr) -> Value {
    one(&over(&matrix(real()), body), &[reals_of(&shape, xs)])
}
fn over(ty: &ArrTy, body: impl FnOnce(&Draft, &Arr) -> Arr) -> Program {
    let b = Draft::default();
    b.program(ty.clone(), |x| body(&b, &var(x)))
}
fn one(program: &Program, args: &[Value]) -> Value {
    let results = run(program, args);
    assert_eq!(results.len(), 1);
    results[0].clone()
}
fn closed(body: impl FnOnce(&Draft) -> Arr) -> Vec<Value> {
    let b = Draft::default();
    run(&b.program(scalar(real()), |_| body(&b)), &[Value::f64(0.0)])
}

#[test]
fn maps_and_generations_of_every_rank() {
    assert_eq!(
        one(&over(&scalar(real()), |b, x| b.map(|x| &x * &x, x)), &[Value::f64(3.0)]),
        Value::f64(9.0)
    );
    assert_eq!(of_vector(&[1.0, 2.0], |b, x| b.map(|x| x + r(1.0), x)), reals(&[2.0, 3.0]));
    assert_eq!(of_vector(&[], |b, x| b.map(|x| x + r(1.0), x)), reals(&[]));
    let doubled = |b: &Draft, x: &Arr| b.map(|x| x * r(2.0), x);
    assert_eq!(of_matrix([1, 2], &[1.0, 2.0], doubled), reals_of(&[1, 2], &[2.0, 4.0]));
    assert_eq!(of_matrix([0, 2], &[], doubled), reals_of(&[0, 2], &[]));
    assert_eq!(of_matrix([2, 0], &[], doubled), reals_of(&[2, 0], &[]));
    let numbers = closed(|b| b.generate(&ix([2, 2, 2]), |i| i.get(0) * n(100) + i.get(1) * n(10) + i.get(2)));
    assert_eq!(numbers, [ints_of(&[2, 2, 2], &[0, 1, 10, 11, 100, 101, 110, 111])]);
    assert_eq!(closed(|b| b.generate(&ix([]), |_| r(4.0))), [Value::f64(4.0)]);
    assert_eq!(closed(|b| b.generate(&ix([0, 3]), |_| r(4.0))), [reals_of(&[0, 3], &[])]);
    assert_eq!(closed(|b| b.generate(&ix([2]), |_| r(4.0))), [reals(&[4.0, 4.0])]);
}

#[test]
fn constants_and_tuples() {
    assert_eq!(
        closed(|_| constants(&[2, 2], &[1.0, 2.0, 3.0, 4.0])),
        [reals_of(&[2, 2], &[1.0, 2.0, 3.0, 4.0])]
    );
    assert_eq!(closed(|_| constants(&[], &[7.0])), [Value::f64(7.0)]);
    assert_eq!(closed(|_| constants(&[0], &[])), [reals(&[])]);
    let two = closed(|b| {
        let u = constants(&[2], &[1.0, 2.0]);
        b.alet(&atuple([u.clone(), b.map(|x| -x, &u)]), |a| atuple([aproj(&var(a), 1), aproj(&var(a), 0)]))
    });
    assert_eq!(two, [reals(&[-1.0, -2.0]), reals(&[1.0, 2.0])]);
    // An array of tuples is a tuple of arrays.
    let pairs = closed(|b| b.map(|x| tuple([&x + &x, x.lt(&r(1.5))]), &constants(&[2], &[1.0, 2.0])));
    assert_eq!(pairs[0], reals(&[2.0, 4.0]));
    assert_eq!(pairs.len(), 2);
    // Nothing is left of elements without scalars but their sizes.
    assert_eq!(closed(|b| b.map(|_| tuple([]), &constants(&[2], &[1.0, 2.0]))), [Value::i64(2)]);
    let b = Draft::default();
    let units = b.program(vector(Ty::Tuple(Vec::new())), |x| b.generate(&shape(x), |_| r(1.0)));
    assert_eq!(run(&units, &[Value::i64(3)]), [reals(&[1.0, 1.0, 1.0])]);
}

#[test]
fn zip_with_takes_the_smaller_size_of_each_dimension() {
    let zipped = |m: [i64; 2], k: [i64; 2]| {
        closed(|b| {
            let first = b.generate(&ix(m), |i| i.get(0) * n(10) + i.get(1));
            let second = b.generate(&ix(k), |i| i.get(0) + n(1000));
            b.zip_with(|x, y| x + y, &first, &second)
        })
    };
    assert_eq!(zipped([2, 1], [1, 3]), [ints_of(&[1, 1], &[1000])]);
    assert_eq!(zipped([2, 3], [3, 2]), [ints_of(&[2, 2], &[1000, 1001, 1011, 1012])]);
    assert_eq!(zipped([2, 0], [2, 2]), [ints_of(&[2, 0], &[])]);
    // Sizes that are known only when it runs.
    let b = Draft::default();
    let program = b.program(ArrTy::Tuple(vec![vector(real()), vector(real())]), |x| {
        b.zip_with(|x, y| x * y, &aproj(&var(x), 0), &aproj(&var(x), 1))
    });
    assert_eq!(run(&program, &[reals(&[2.0, 3.0, 4.0]), reals(&[5.0, 6.0])]), [reals(&[10.0, 18.0])]);
    assert_eq!(run(&program, &[reals(&[]), reals(&[5.0, 6.0])]), [reals(&[])]);
}

#[test]
fn replicate_and_slice_are_those_of_the_text() {
    // Shape [2, 3] with [6, All, 7, All]: element (i, j, k, l) is element (j, l).
    let large = of_matrix([2, 3], &[0.0, 1.0, 2.0, 10.0, 11.0, 12.0], |_, x| {
        replicate([Some(n(6)), None, Some(n(7)), None], x)
    });
    let mut expected = Vec::new();
    for _i in 0..6 {
        for j in 0..2 {
            for _k in 0..7 {
                expected.extend((0..3).map(|l| f64::from(10 * j + l)));
            }
        }
    }
    assert_eq!(large, reals_of(&[6, 2, 7, 3], &expected));
    // Shape [6, 2, 7, 3] with [All, 1, 5, All]: element (i, j) is element (i, 1, 5, j).
    let small = closed(|b| {
        let four = b.generate(&ix([6, 2, 7, 3]), |i| {
            i.get(0) * n(1000) + i.get(1) * n(100) + i.get(2) * n(10) + i.get(3)
        });
        slice([None, Some(n(1)), Some(n(5)), None], &four)
    });
    let expected: Vec<i64> = (0..6).flat_map(|i| (0..3).map(move |j| 1000 * i + 150 + j)).collect();
    assert_eq!(small, [ints_of(&[6, 3], &expected)]);
    assert_eq!(of_vector(&[5.0, 6.0], |_, x| slice([Some(n(1))], x)), Value::f64(6.0));
    assert_eq!(of_vector(&[5.0], |_, x| replicate([Some(n(0)), None], x)), reals_of(&[0, 1], &[]));
    let b = Draft::default();
    let outside = b.program(vector(real()), |x| slice([Some(n(2))], &var(x)));
    assert!(stops(&outside, &[reals(&[1.0, 2.0])]).contains("out of bounds"));
    let delayed = b.program(vector(real()), |x| slice([Some(n(2))], &b.map(|x| x.sin(), &var(x))));
    assert!(stops(&delayed, &[reals(&[1.0, 2.0])]).contains("out of bounds"));
}

#[test]
fn reshape_keeps_the_row_major_order() {
    let xs = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0];
    assert_eq!(of_vector(&xs, |_, x| reshape(&ix([2, 3]), x)), reals_of(&[2, 3], &xs));
    assert_eq!(of_matrix([2, 3], &xs, |_, x| reshape(&ix([3, 2]), x)), reals_of(&[3, 2], &xs));
    let delayed = |b: &Draft, x: &Arr| b.map(|x| x + r(1.0), x);
    let ys = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
    assert_eq!(of_vector(&xs, |b, x| reshape(&ix([2, 3]), &delayed(b, x))), reals_of(&[2, 3], &ys));
    assert_eq!(of_matrix([2, 3], &xs, |b, x| reshape(&ix([3, 2]), &delayed(b, x))), reals_of(&[3, 2], &ys));
    assert_eq!(of_matrix([2, 3], &xs, |b, x| reshape(&ix([6]), &delayed(b, x))), reals(&ys));
    assert_eq!(
        of_matrix([2, 3], &xs, |b, x| reshape(&ix([1, 3, 2]), &delayed(b, x))),
        reals_of(&[1, 3, 2], &ys)
    );
    assert_eq!(
        of_matrix([2, 3], &xs, |b, x| reshape(&ix([2, 1, 3]), &delayed(b, x))),
        reals_of(&[2, 1, 3], &ys)
    );
    // To rank 0 and back.
    assert_eq!(of_vector(&[4.0], |_, x| reshape(&ix([]), x)), Value::f64(4.0));
    assert_eq!(of_vector(&[4.0], |b, x| reshape(&ix([]), &delayed(b, x))), Value::f64(5.0));
    assert_eq!(
        closed(|b| reshape(&ix([1, 1]), &b.generate(&ix([]), |_| r(2.0)))),
        [reals_of(&[1, 1], &[2.0])]
    );
    assert_eq!(of_matrix([0, 3], &[], |b, x| reshape(&ix([5, 0]), &delayed(b, x))), reals_of(&[5, 0], &[]));
    assert_eq!(of_matrix([0, 3], &[], |_, x| reshape(&ix([0]), x)), reals(&[]));
    for body in
        [|_: &Draft, x: &Arr| reshape(&ix([5]), x), |b: &Draft, x: &Arr| reshape(&ix([5]), &b.map(|x| -x, x))]
    {
        stops(&over(&vector(real()), body), &[reals(&xs)]);
    }
}

#[test]
fn backpermute_reads_where_its_function_says() {
    let turned = of_matrix([2, 3], &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0], |b, x| {
        b.backpermute(&ix([3, 2]), |i| tuple([i.get(1), i.get(0)]), x)
    });
    assert_eq!(turned, reals_of(&[3, 2], &[0.0, 3.0, 1.0, 4.0, 2.0, 5.0]));
    let twice = of_vector(&[1.0, 2.0], |b, x| {
        b.backpermute(&ix([4]), |i| tuple([i.get(0).rem(&n(2))]), &b.map(|x| -x, x))
    });
    assert_eq!(twice, reals(&[-1.0, -2.0, -1.0, -2.0]));
    let tail = |b: &Draft, x: &Arr| {
        b.alet(x, |a| b.backpermute(&tuple([size(a, 0) - n(1)]), |i| tuple([i.get(0) + n(1)]), &var(a)))
    };
    assert_eq!(of_vector(&[1.0, 2.0, 3.0], |b, x| tail(b, &b.map(|x| x * r(2.0), x))), reals(&[4.0, 6.0]));
    let b = Draft::default();
    let outside =
        b.program(vector(real()), |x| b.backpermute(&ix([2]), |i| tuple([i.get(0) - n(1)]), &var(x)));
    assert!(stops(&outside, &[reals(&[1.0, 2.0])]).contains("out of bounds"));
    let delayed = b.program(vector(real()), |x| {
        b.backpermute(&ix([2]), |i| tuple([i.get(0) - n(1)]), &b.map(|x| x.sin(), &var(x)))
    });
    assert!(stops(&delayed, &[reals(&[1.0, 2.0])]).contains("out of bounds"));
}

#[test]
fn expressions_by_hand() {
    let b = Draft::default();
    let program = b.program(vector(real()), |x| {
        b.generate(&tuple([size(x, 0) + n(1)]), |i| {
            let i = i.get(0);
            b.let_(&tuple([to_real(&i), i.lt(&size(x, 0))]), |p| {
                cond(&p.get(1), &(p.get(0) + at1(x, &i)), &r(-1.0))
            })
        })
    });
    // The last element reads nothing.
    assert_eq!(run(&program, &[reals(&[10.0, 20.0])]), [reals(&[10.0, 21.0, -1.0])]);
    assert_eq!(run(&program, &[reals(&[])]), [reals(&[-1.0])]);
    let tuples = b.program(vector(real()), |x| {
        let chosen = |x: E| cond(&x.lt(&r(0.0)), &tuple([r(0.0), x.clone()]), &tuple([x.sin(), x.clone()]));
        b.map(|x| chosen(x).get(1), &var(x))
    });
    assert_eq!(run(&tuples, &[reals(&[-2.0, 2.0])]), [reals(&[-2.0, 2.0])]);
    let outside = b.program(vector(real()), |x| b.generate(&ix([]), |_| at1(x, &n(2))));
    assert!(stops(&outside, &[reals(&[1.0, 2.0])]).contains("out of bounds"));
    let shaped = b.program(matrix(real()), |x| b.generate(&ix([]), |_| shape(x)));
    assert_eq!(run(&shaped, &[reals_of(&[2, 3], &[0.0; 6])]), [Value::i64(2), Value::i64(3)]);
}

#[test]
fn sums_of_every_rank() {
    assert_eq!(of_vector(&[1.0, 2.0, 4.0], |_, x| sum(x)), Value::f64(7.0));
    assert_eq!(of_vector(&[], |_, x| sum(x)), Value::f64(0.0));
    assert_eq!(of_matrix([2, 2], &[1.0, 2.0, 3.0, 4.0], |_, x| sum(x)), reals(&[3.0, 7.0]));
    assert_eq!(of_matrix([2, 0], &[], |_, x| sum(x)), reals(&[0.0, 0.0]));
    assert_eq!(of_matrix([0, 2], &[], |_, x| sum(x)), reals(&[]));
    assert_eq!(
        of_matrix([2, 2], &[1.0, 2.0, 3.0, 4.0], |b, x| sum(&sum(&b.map(|x| &x * &x, x)))),
        Value::f64(30.0)
    );
    let cube = closed(|b| sum(&b.generate(&ix([2, 2, 3]), |i| i.get(0) * n(6) + i.get(1) * n(3) + i.get(2))));
    assert_eq!(cube, [ints_of(&[2, 2], &[3, 12, 21, 30])]);
    // Truth values stay false, whatever stands beside them.
    let parts = of_parts(&[1.0, 2.0], |b, x| sum(&b.map(|x| tuple([x.clone(), x.lt(&r(5.0)), n(1)]), x)));
    assert_eq!(parts, [Value::f64(3.0), Value::Scalar(Scalar::Bool.zero()), Value::i64(2)]);
    // A matrix product: rows of one, columns of the other.
    let b = Draft::default();
    let product = b.program(matrix(real()), |x| {
        let left = replicate([None, Some(size(x, 0)), None], &var(x));
        let right = replicate([Some(size(x, 0)), None, None], &var(x));
        sum(&b.zip_with(|x, y| x * y, &left, &right))
    });
    let expected = reals_of(&[2, 2], &[5.0, 11.0, 11.0, 25.0]);
    assert_eq!(run(&product, &[reals_of(&[2, 2], &[1.0, 2.0, 3.0, 4.0])]), [expected]);
}
fn of_parts(xs: &[f64], body: impl FnOnce(&Draft, &Arr) -> Arr) -> Vec<Value> {
    run(&over(&vector(real()), body), &[reals(xs)])
}

/// The operators `first` and `last` are associative, but not commutative; so is the composition of `x -> a x + b`.
#[test]
fn folds_with_any_associative_operator() {
    let xs = [2.0, 3.0, 4.0];
    assert_eq!(of_vector(&xs, |b, x| b.fold(|x, y| x + y, &r(10.0), x)), Value::f64(19.0));
    assert_eq!(of_vector(&xs, |b, x| b.fold(|x, y| x * y, &r(1.0), x)), Value::f64(24.0));
    assert_eq!(of_vector(&xs, |b, x| b.fold(|x, y| x * y, &r(2.0), x)), Value::f64(48.0));
    assert_eq!(of_vector(&xs, |b, x| b.fold(|x, y| x.max(&y), &r(3.5), x)), Value::f64(4.0));
    assert_eq!(of_vector(&xs, |b, x| b.fold(|x, y| x.min(&y), &r(3.5), x)), Value::f64(2.0));
    assert_eq!(of_vector(&[], |b, x| b.fold(|x, y| x.max(&y), &r(3.5), x)), Value::f64(3.5));
    assert_eq!(of_vector(&xs, |b, x| b.fold(|x, _| x, &r(10.0), x)), Value::f64(10.0));
    assert_eq!(of_vector(&xs, |b, x| b.fold(|_, y| y, &r(10.0), x)), Value::f64(4.0));
    assert_eq!(of_vector(&[], |b, x| b.fold(|_, y| y, &r(10.0), x)), Value::f64(10.0));
    assert_eq!(of_vector(&xs, |b, x| b.fold1(|x, _| x, x)), Value::f64(2.0));
    assert_eq!(of_vector(&xs, |b, x| b.fold1(|_, y| y, x)), Value::f64(4.0));
    assert_eq!(of_vector(&xs, |b, x| b.fold1(|x, y| x.max(&y), x)), Value::f64(4.0));
    // x + y + 1 is associative, and has the neutral element -1.
    assert_eq!(of_vector(&xs, |b, x| b.fold(|x, y| x + y + r(1.0), &r(5.0), x)), Value::f64(17.0));
    assert_eq!(of_vector(&[7.0], |b, x| b.fold1(|x, y| x + y + r(1.0), x)), Value::f64(7.0));
    let after = |f: E, g: E| tuple([g.get(0) * f.get(0), g.get(0) * f.get(1) + g.get(1)]);
    let composed = of_parts(&xs, |b, x| {
        let lines = b.map(|x| tuple([x, r(1.0)]), x);
        b.fold(after, &tuple([r(1.0), r(5.0)]), &lines)
    });
    // 5 -> 2 * 5 + 1 = 11 -> 3 * 11 + 1 = 34 -> 4 * 34 + 1 = 137
    assert_eq!(composed, [Value::f64(24.0), Value::f64(137.0)]);
    assert_eq!(
        of_matrix([2, 2], &[1.0, 2.0, 3.0, 4.0], |b, x| b.fold(|_, y| y, &r(0.0), x)),
        reals(&[2.0, 4.0])
    );
    assert_eq!(of_matrix([2, 0], &[], |b, x| b.fold(|_, y| y, &r(6.0), x)), reals(&[6.0, 6.0]));
    assert_eq!(of_matrix([2, 2], &[1.0, 2.0, 3.0, 4.0], |b, x| b.fold1(|x, y| x + y, x)), reals(&[3.0, 7.0]));
}

#[test]
fn fold1_of_an_empty_row_stops() {
    for is_plain in [true, false] {
        let fold = |b: &Draft, x: &Arr| b.fold1(|x, y| if is_plain { x + y } else { y }, x);
        let message = stops(&over(&vector(real()), fold), &[reals(&[])]);
        assert!(message.contains("fold1 of an empty array"), "{message}");
        stops(&over(&matrix(real()), fold), &[reals_of(&[2, 0], &[])]);
        // There is no row.
        assert_eq!(of_matrix([0, 0], &[], fold), reals(&[]));
    }
}

#[test]
fn scans_of_inner_sizes_0_1_2() {
    let left = |xs: &[f64], e: f64| of_vector(xs, |b, x| b.scanl(|x, y| x + y, &r(e), x));
    assert_eq!(left(&[], 5.0), reals(&[5.0]));
    assert_eq!(left(&[1.0], 5.0), reals(&[5.0, 6.0]));
    assert_eq!(left(&[1.0, 2.0], 5.0), reals(&[5.0, 6.0, 8.0]));
    assert_eq!(left(&[1.0, 2.0], 0.0), reals(&[0.0, 1.0, 3.0]));
    let last = |xs: &[f64]| of_vector(xs, |b, x| b.scanl(|_, y| y, &r(5.0), x));
    assert_eq!(last(&[]), reals(&[5.0]));
    assert_eq!(last(&[1.0, 2.0]), reals(&[5.0, 1.0, 2.0]));
    let first = |xs: &[f64]| of_vector(xs, |b, x| b.scanl(|x, _| x, &r(5.0), x));
    assert_eq!(first(&[1.0, 2.0]), reals(&[5.0, 5.0, 5.0]));
    let right = |xs: &[f64]| of_vector(xs, |b, x| b.scanr(|x, y| x * y, &r(2.0), x));
    assert_eq!(right(&[]), reals(&[2.0]));
    assert_eq!(right(&[3.0]), reals(&[6.0, 2.0]));
    assert_eq!(right(&[3.0, 4.0]), reals(&[24.0, 8.0, 2.0]));
    let first = |xs: &[f64]| of_vector(xs, |b, x| b.scanr(|x, _| x, &r(5.0), x));
    assert_eq!(first(&[1.0, 2.0]), reals(&[1.0, 2.0, 5.0]));
    let last = |xs: &[f64]| of_vector(xs, |b, x| b.scanr(|_, y| y, &r(5.0), x));
    assert_eq!(last(&[1.0, 2.0]), reals(&[5.0, 5.0, 5.0]));
    let within = |xs: &[f64]| of_vector(xs, |b, x| b.scanl1(|x, y| x + y, x));
    assert_eq!(within(&[]), reals(&[]));
    assert_eq!(within(&[1.0]), reals(&[1.0]));
    assert_eq!(within(&[1.0, 2.0]), reals(&[1.0, 3.0]));
    let first = |xs: &[f64]| of_vector(xs, |b, x| b.scanl1(|x, _| x, x));
    assert_eq!(first(&[]), reals(&[]));
    assert_eq!(first(&[1.0, 2.0]), reals(&[1.0, 1.0]));
    let m = |shape, xs: &[f64]| {
        of_matrix(shape, xs, |b, x| b.scanl(|x, y| x + y, &r(1.0), &b.map(|x| x * r(2.0), x)))
    };
    assert_eq!(m([2, 2], &[1.0, 2.0, 3.0, 4.0]), reals_of(&[2, 3], &[1.0, 3.0, 7.0, 1.0, 7.0, 15.0]));
    assert_eq!(m([0, 2], &[]), reals_of(&[0, 3], &[]));
    assert_eq!(m([2, 0], &[]), reals_of(&[2, 1], &[1.0, 1.0]));
    let pairs = of_parts(&[1.0, 2.0], |b, x| {
        let both = b.map(|x| tuple([x.clone(), x]), x);
        b.scanl(|x, y| tuple([x.get(0) + y.get(0), y.get(1)]), &tuple([r(0.0), r(9.0)]), &both)
    });
    assert_eq!(pairs, [reals(&[0.0, 1.0, 3.0]), reals(&[9.0, 1.0, 2.0])]);
}

/// Elements at the places i mod 2, those of 1 and 3 in the source nowhere.
fn permuted(xs: &[f64], c: impl FnOnce(E, E) -> E) -> Value {
    of_vector(xs, |b, x| {
        let target = constants(&[3], &[100.0, 200.0, 300.0]);
        let to = |i: E| {
            let i = i.get(0);
            (i.eq(&n(1)).not(), tuple([i.rem(&n(2))]))
        };
        b.permute(c, &target, to, &b.map(|x| x * r(2.0), x))
    })
}

#[test]
fn permutations_of_many_to_one() {
    let xs = [1.0, 2.0, 3.0, 4.0];
    assert_eq!(permuted(&xs, |x, y| x + y), reals(&[108.0, 208.0, 300.0]));
    assert_eq!(permuted(&xs, |x, y| x * y), reals(&[1200.0, 1600.0, 300.0]));
    assert_eq!(permuted(&xs, |x, y| x + y + r(1.0)), reals(&[110.0, 209.0, 300.0]));
    assert_eq!(permuted(&[], |x, y| x + y), reals(&[100.0, 200.0, 300.0]));
    assert_eq!(permuted(&[], |x, y| x * y), reals(&[100.0, 200.0, 300.0]));
    // From rank 2 to rank 2, turned, and to rank 0.
    let turn = |c: fn(E, E) -> E| {
        of_matrix([2, 3], &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0], |b, x| {
            let ones = b.generate(&ix([3, 2]), |_| r(1.0));
            b.permute(c, &ones, |i| (truth(true), tuple([i.get(1), i.get(0)])), x)
        })
    };
    assert_eq!(turn(|x, y| x + y), reals_of(&[3, 2], &[1.0, 4.0, 2.0, 5.0, 3.0, 6.0]));
    assert_eq!(turn(|x, y| x * y), reals_of(&[3, 2], &[0.0, 3.0, 1.0, 4.0, 2.0, 5.0]));
    let all = |c: fn(E, E) -> E| {
        of_matrix([2, 2], &[1.0, 2.0, 3.0, 4.0], |b, x| {
            let start = b.generate(&ix([]), |_| r(10.0));
            b.permute(c, &start, |i| (i.get(0).eq(&i.get(1)), tuple([])), x)
        })
    };
    assert_eq!(all(|x, y| x + y), Value::f64(15.0));
    assert_eq!(all(|x, y| x * y), Value::f64(40.0));
    let whole = closed(|b| {
        let source = b.generate(&ix([]), |_| r(2.0));
        b.permute(|x, y| x + y, &constants(&[2], &[1.0, 1.0]), |_| (truth(true), ix([1])), &source)
    });
    assert_eq!(whole, [reals(&[1.0, 3.0])]);
}

#[test]
fn permutations_of_tuples() {
    // The discrete component of the target stays.
    let kept = closed(|b| {
        let target = b.generate(&ix([2]), |i| tuple([r(1.0), i.get(0)]));
        let source = b.generate(&ix([3]), |_| tuple([r(2.0), n(7)]));
        let c = |x: E, y: E| tuple([x.get(0) + y.get(0), x.get(1)]);
        b.permute(c, &target, |_| (truth(true), ix([0])), &source)
    });
    assert_eq!(kept, [reals(&[7.0, 1.0]), ints(&[0, 1])]);
    let both = closed(|b| {
        let target = b.generate(&ix([2]), |i| tuple([r(1.0), i.get(0)]));
        let source = b.generate(&ix([3]), |_| tuple([r(2.0), n(7)]));
        let c = |x: E, y: E| tuple([x.get(0) + y.get(0), x.get(1) + y.get(1)]);
        b.permute(c, &target, |_| (truth(true), ix([0])), &source)
    });
    assert_eq!(both, [reals(&[7.0, 1.0]), ints(&[21, 1])]);
}

#[test]
fn a_permutation_out_of_its_target_stops() {
    for c in [(|x, y| x + y) as fn(E, E) -> E, |x, y| x * y] {
        for goes in [truth(true), n(0).lt(&n(1))] {
            let b = Draft::default();
            let out = b.program(vector(real()), |x| {
                let target = constants(&[2], &[1.0, 1.0]);
                b.permute(c, &target, |i| (goes.clone(), tuple([i.get(0) + n(1)])), &var(x))
            });
            assert_eq!(run(&out, &[reals(&[3.0])]).len(), 1);
            stops(&out, &[reals(&[3.0, 3.0])]);
        }
        let b = Draft::default();
        let nowhere = b.program(vector(real()), |x| {
            let target = constants(&[2], &[1.0, 1.0]);
            b.permute(c, &target, |i| (i.get(0).lt(&n(1)), tuple([i.get(0) + n(1)])), &var(x))
        });
        assert_eq!(run(&nowhere, &[reals(&[3.0, 3.0])]), [reals(&[1.0, c_of(c, 1.0, 3.0)])]);
        stops(
            &b.program(vector(real()), |x| {
                let target = constants(&[2], &[1.0, 1.0]);
                b.permute(c, &target, |i| (i.get(0).lt(&n(2)), tuple([n(0) - i.get(0)])), &var(x))
            }),
            &[reals(&[3.0, 3.0])],
        );
    }
}
fn c_of(c: fn(E, E) -> E, x: f64, y: f64) -> f64 {
    match c(r(x), r(y)).0.form() {
        pullback_ad::accelerate::language::ExpForm::Prim(pullback_prim::Prim::Op(Op::Add, _), _) => x + y,
        _ => x * y,
    }
}

#[test]
fn of_a_conditional_only_one_alternative_is_evaluated() {
    let b = Draft::default();
    let program = b.program(vector(real()), |x| {
        // The second alternative would read outside of an empty array.
        let first = b.generate(&ix([]), |_| at1(x, &n(0)));
        acond(&n(0).lt(&size(x, 0)), &first, &b.generate(&ix([]), |_| r(-1.0)))
    });
    assert_eq!(run(&program, &[reals(&[4.0])]), [Value::f64(4.0)]);
    assert_eq!(run(&program, &[reals(&[])]), [Value::f64(-1.0)]);
    let sized = b.program(vector(real()), |x| {
        let c = size(x, 0).lt(&n(2));
        let longer = atuple([b.generate(&ix([3]), |_| r(1.0)), var(x)]);
        let both = acond(&c, &longer, &atuple([var(x), b.map(|x| -x, &var(x))]));
        b.alet(&both, |a| {
            let count = |k: usize| b.alet(&aproj(&var(a), k), |p| b.generate(&ix([]), |_| size(p, 0)));
            atuple([aproj(&var(a), 0), aproj(&var(a), 1), count(0), count(1)])
        })
    });
    let short = run(&sized, &[reals(&[5.0])]);
    assert_eq!(short, [reals(&[1.0, 1.0, 1.0]), reals(&[5.0]), Value::i64(3), Value::i64(1)]);
    let long = run(&sized, &[reals(&[5.0, 6.0])]);
    assert_eq!(long, [reals(&[5.0, 6.0]), reals(&[-5.0, -6.0]), Value::i64(2), Value::i64(2)]);
}

#[test]
fn free_variables_come_before_the_argument() {
    let b = Draft::default();
    let c = b.avar("c", vector(real()));
    let program =
        b.program_with(vec![c.clone()], vector(real()), |x| b.zip_with(|x, y| x - y, &var(&c), &var(x)));
    assert_eq!(run(&program, &[reals(&[5.0]), reals(&[2.0])]), [reals(&[3.0])]);
    let pairs = b.program(vector(pair(real(), real())), |x| b.map(|p| p.get(0) + p.get(1), &var(x)));
    assert_eq!(run(&pairs, &[reals(&[5.0]), reals(&[2.0])]), [reals(&[7.0])]);
    assert!(stops(&pairs, &[reals(&[5.0]), reals(&[2.0, 3.0])]).contains("differ in size"));
}
