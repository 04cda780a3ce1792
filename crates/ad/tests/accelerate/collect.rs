//! Loops over inner rows (`collectl`, `collectr`), and the folds and scans that become such. Expected numbers are calculated by hand.

use super::build::*;
use super::gradients::*;
use pullback_ad::accelerate::language::{AVar, Arr, ArrForm, ArrTy, Program, Ty};
use pullback_core::Value;
use pullback_prim::{Op, Scalar};

const EXACT: f64 = 1e-12;

/// A program of a number and a vector.
fn of_both(body: impl FnOnce(&Draft, &Arr, &Arr) -> Arr) -> Program {
    let b = Draft::default();
    b.program(ArrTy::Tuple(vec![scalar(real()), vector(real())]), |p| {
        body(&b, &aproj(&var(p), 0), &aproj(&var(p), 1))
    })
}

fn both(e: f64, xs: &[f64]) -> [Value; 2] {
    [Value::f64(e), reals(xs)]
}

/// 2, 2 * 3, 2 * 3 * 5; and from the right 2, 2 * 5, 2 * 5 * 3.
#[test]
fn states_from_both_ends() {
    let left = of_both(|b, e, u| sum(&b.collectl(|x, y| x * y, e, u)));
    expect(&left, &both(2.0, &[3.0, 5.0]), 38.0, &[19.0, 12.0, 6.0], EXACT);
    let right = of_both(|b, e, u| sum(&b.collectr(|x, y| x * y, e, u)));
    expect(&right, &both(2.0, &[3.0, 5.0]), 42.0, &[21.0, 10.0, 8.0], EXACT);
    for program in [left, right] {
        expect(&program, &both(2.0, &[]), 2.0, &[1.0], EXACT);
    }
}

/// The places of states: each is multiplied by its index.
#[test]
fn states_stand_where_they_belong() {
    let weighted =
        |b: &Draft, u: &Arr| b.alet(u, |a| sum(&b.generate(&shape(a), |i| to_real(&i.get(0)) * at(a, &i))));
    // 10, 11, 13: 11 + 2 * 13.
    let left = of_both(|b, e, u| weighted(b, &b.collectl(|x, y| x + y, e, u)));
    expect(&left, &both(10.0, &[1.0, 2.0]), 37.0, &[3.0, 3.0, 2.0], EXACT);
    // 13, 12, 10: 12 + 2 * 10.
    let right = of_both(|b, e, u| weighted(b, &b.collectr(|x, y| x + y, e, u)));
    expect(&right, &both(10.0, &[1.0, 2.0]), 32.0, &[3.0, 0.0, 1.0], EXACT);
}

/// x' = x - 2 y: neither associative nor commutative. 7, 5, -1.
#[test]
fn a_step_is_any_function() {
    let program = of_both(|b, e, u| sum(&b.collectl(|x, y| x - y * r(2.0), e, u)));
    expect(&program, &both(7.0, &[1.0, 3.0]), 11.0, &[3.0, -4.0, -2.0], EXACT);
}

/// Each step multiplies by the element at a place: 1, a2, a2 a0, a2 a0 a2.
#[test]
fn steps_read_arrays() {
    let b = Draft::default();
    let places = b.avar("places", vector(int()));
    let program = b.program_with(vec![places.clone()], vector(real()), |a| {
        let one = b.generate(&ix([]), |_| r(1.0));
        sum(&b.collectl(|x, k| x * at1(a, &k), &one, &var(&places)))
    });
    expect(&program, &[ints(&[2, 0, 2]), reals(&[2.0, 3.0, 5.0])], 66.0, &[30.0, 0.0, 23.0], EXACT);
    expect(&program, &[ints(&[]), reals(&[2.0])], 1.0, &[0.0], EXACT);
}

/// The state says where an element is read, and whether: (x, k) becomes (x * a[k], k + 2) while k is a place.
#[test]
fn states_say_what_is_read() {
    let b = Draft::default();
    let program = b.program(vector(real()), |a| {
        let first = b.generate(&ix([]), |_| tuple([r(3.0), n(0)]));
        let step = |s: E, _: E| {
            let (x, k) = (s.get(0), s.get(1));
            let next = cond(&k.lt(&size(a, 0)), &(&x * at1(a, &k)), &x);
            tuple([next, k + n(2)])
        };
        let all = b.collectl(step, &first, &b.generate(&ix([4]), |_| tuple([])));
        b.map(|p| p.get(0), &slice([Some(n(4))], &all))
    });
    // 3 a0 a2.
    expect(&program, &[reals(&[2.0, 7.0, 5.0])], 30.0, &[15.0, 0.0, 6.0], EXACT);
}

/// Products and sums in turn, in tuples of tuples: ((1 * 3) + 4) * 5.
#[test]
fn states_are_any_values() {
    let b = Draft::default();
    let program = b.program(vector(real()), |a| {
        let first = b.generate(&ix([]), |_| tuple([tuple([r(1.0)]), tuple([n(0), truth(true)])]));
        let step = |s: E, y: E| {
            let (x, k, times) = (s.get(0).get(0), s.get(1).get(0), s.get(1).get(1));
            let next = cond(&times, &(&x * &y), &(&x + &y));
            tuple([tuple([next]), tuple([k + n(1), times.not()])])
        };
        let all = b.collectl(step, &first, &var(a));
        b.map(|s| s.get(0).get(0), &slice([Some(size(a, 0))], &all))
    });
    expect(&program, &[reals(&[3.0, 4.0, 5.0])], 35.0, &[5.0, 5.0, 7.0], EXACT);
}

/// (x, z) becomes (x + z, z y), where z has 32 bits: of 2, 3 the numbers are 1 + 2 and 6.
#[test]
fn states_have_several_float_types() {
    let b = Draft::default();
    let program = b.program(vector(real()), |a| {
        let first = b.generate(&ix([]), |_| tuple([r(0.0), to_scalar(&r(1.0), Scalar::F32)]));
        let step = |s: E, y: E| {
            let z = s.get(1);
            tuple([s.get(0) + to_real(&z), z * to_scalar(&y, Scalar::F32)])
        };
        let all = b.collectl(step, &first, &var(a));
        b.map(|s| s.get(0) + to_real(&s.get(1)), &slice([Some(size(a, 0))], &all))
    });
    expect(&program, &[reals(&[2.0, 3.0])], 9.0, &[4.0, 2.0], EXACT);
}

/// Two rows; then three first states for two rows, of which the last one has none.
#[test]
fn rows_are_loops_of_their_own() {
    let of = |right: bool| {
        let b = Draft::default();
        b.program(ArrTy::Tuple(vec![vector(real()), matrix(real())]), |p| {
            let (e, u) = (aproj(&var(p), 0), aproj(&var(p), 1));
            let f = |x: E, y: E| x * y;
            sum(&sum(&if right { b.collectr(f, &e, &u) } else { b.collectl(f, &e, &u) }))
        })
    };
    let args = |es: &[f64]| [reals(es), reals_of(&[2, 2], &[3.0, 5.0, 7.0, 11.0])];
    // 2 (1 + 3 + 15) and 1 + 7 + 77.
    let slopes = [12.0, 6.0, 12.0, 7.0];
    expect(&of(false), &args(&[2.0, 1.0]), 123.0, &[&[19.0, 85.0], &slopes[..]].concat(), EXACT);
    expect(&of(false), &args(&[2.0, 1.0, 9.0]), 123.0, &[&[19.0, 85.0, 0.0], &slopes[..]].concat(), EXACT);
    // 2 (1 + 5 + 15) and 1 + 11 + 77.
    let slopes = [10.0, 8.0, 11.0, 8.0];
    expect(&of(true), &args(&[2.0, 1.0, 9.0]), 131.0, &[&[21.0, 89.0, 0.0], &slopes[..]].concat(), EXACT);
    for right in [false, true] {
        let empty = [reals(&[2.0, 1.0]), reals_of(&[2, 0], &[])];
        expect(&of(right), &empty, 3.0, &[1.0, 1.0], EXACT);
        expect(&of(right), &[reals(&[2.0]), reals_of(&[0, 3], &[])], 0.0, &[0.0], EXACT);
    }
}

/// Loops of loops: sums of sums of 1, 2 with the first state 0.
#[test]
fn states_of_states() {
    let program = of_both(|b, e, u| {
        let once = b.collectl(|x, y| x + y, e, u);
        sum(&b.collectr(|x, y| x * y, e, &once))
    });
    // The states are 2, 3; from the right 2, 2 * 3, 2 * 3 * 2: e + e (e + y) + e e (e + y).
    expect(&program, &both(2.0, &[1.0]), 20.0, &[1.0 + 5.0 + 16.0, 6.0], EXACT);
}

fn of_vector(body: impl FnOnce(&Draft, &AVar) -> Arr) -> Program {
    let b = Draft::default();
    b.program(vector(real()), |a| body(&b, a))
}

/// Addition with a constant that is the first element of the argument, which is associative.
fn with(a: &AVar, x: E, y: E) -> E {
    x + y + at1(a, &n(0))
}

#[test]
fn folds_whose_functions_read_what_varies() {
    let two = [reals(&[2.0, 5.0])];
    let fold = of_vector(|b, a| b.fold(|x, y| with(a, x, y), &r(0.0), &var(a)));
    expect(&fold, &two, 11.0, &[3.0, 1.0], EXACT);
    let fold1 = of_vector(|b, a| b.fold1(|x, y| with(a, x, y), &var(a)));
    expect(&fold1, &two, 9.0, &[2.0, 1.0], EXACT);
    let first = of_vector(|b, a| b.alet(&var(a), |c| b.fold(|x, y| x + y, &at1(c, &n(0)), &var(a))));
    expect(&first, &two, 9.0, &[2.0, 1.0], EXACT);
    let rows = of_vector(|b, a| {
        let rows = replicate([Some(n(3)), None], &var(a));
        sum(&b.fold(|x, y| with(a, x, y), &at1(a, &n(1)), &rows))
    });
    // 3 (a1 + a0 + a1 + 2 a0)
    expect(&rows, &two, 48.0, &[9.0, 6.0], EXACT);
}

#[test]
fn folds_of_tuples_in_tuples() {
    let program = of_vector(|b, a| {
        let pairs = b.map(|x| tuple([tuple([x.clone()]), x]), &var(a));
        let f = |x: E, y: E| tuple([tuple([x.get(0).get(0)]), x.get(1) + y.get(1)]);
        b.map(|p| p.get(1), &b.fold(f, &tuple([tuple([r(0.0)]), r(0.0)]), &pairs))
    });
    expect(&program, &[reals(&[2.0, 5.0])], 7.0, &[1.0, 1.0], EXACT);
    // Of the first row of two the first components: what `fold1` keeps.
    let program = of_vector(|b, a| {
        let pairs = b.map(|x| tuple([tuple([x.clone()]), x]), &var(a));
        let f = |x: E, y: E| tuple([tuple([x.get(0).get(0)]), x.get(1) * y.get(1)]);
        b.map(|p| p.get(0).get(0) * p.get(1), &b.fold1(f, &pairs))
    });
    // a0 a0 a1 a2
    expect(&program, &[reals(&[2.0, 3.0, 5.0])], 60.0, &[60.0, 20.0, 12.0], EXACT);
}

#[test]
fn scans_have_derivatives() {
    let two = [reals(&[2.0, 5.0])];
    // 0, a0, a0 + a1
    let left = of_vector(|b, a| sum(&b.scanl(|x, y| x + y, &r(0.0), &var(a))));
    expect(&left, &two, 9.0, &[2.0, 1.0], EXACT);
    let right = of_vector(|b, a| sum(&b.scanr(|x, y| x + y, &r(0.0), &var(a))));
    expect(&right, &two, 12.0, &[1.0, 2.0], EXACT);
    for program in [left, right] {
        expect(&program, &[reals(&[])], 0.0, &[], EXACT);
    }
    // The first value varies, too: a1, a1 a0, a1 a0 a1.
    let first = of_vector(|b, a| sum(&b.scanl(|x, y| x * y, &at1(a, &n(1)), &var(a))));
    expect(&first, &two, 65.0, &[5.0 + 25.0, 1.0 + 2.0 + 20.0], EXACT);
}

/// An operator that does not commute, on rows: the first one of what is left; each has its index as a factor.
#[test]
fn scans_from_the_right_keep_the_order() {
    let program = of_vector(|b, a| {
        let rows = replicate([Some(n(2)), None], &var(a));
        b.alet(&b.scanr(|x, _| x, &r(4.0), &rows), |all| {
            sum(&sum(&b.generate(&shape(all), |i| to_real(&(i.get(1) + n(1))) * at(all, &i))))
        })
    });
    // Twice 1 * 2 + 2 * 5 + 3 * 4.
    expect(&program, &[reals(&[2.0, 5.0])], 48.0, &[2.0, 4.0], EXACT);
}

#[test]
fn scans_whose_functions_read_what_varies() {
    let two = [reals(&[2.0, 5.0])];
    // 0, 2 a0, 3 a0 + a1
    let left = of_vector(|b, a| sum(&b.scanl(|x, y| with(a, x, y), &r(0.0), &var(a))));
    expect(&left, &two, 15.0, &[5.0, 1.0], EXACT);
    // 3 a0 + a1, a0 + a1, 0
    let right = of_vector(|b, a| sum(&b.scanr(|x, y| with(a, x, y), &r(0.0), &var(a))));
    expect(&right, &two, 18.0, &[4.0, 2.0], EXACT);
    // a0, 2 a0 + a1
    let without = of_vector(|b, a| sum(&b.scanl1(|x, y| with(a, x, y), &var(a))));
    expect(&without, &two, 11.0, &[3.0, 1.0], EXACT);
    for program in [left, right, without] {
        expect(&program, &[reals(&[])], 0.0, &[], EXACT);
    }
}

/// The parallel rules stay where they apply: no loop is made.
#[test]
fn plain_functions_have_no_loop() {
    let loops = |program: &Program| {
        let g = derived(program, TRIMMED);
        forms(&g.program.body, |form| matches!(form, ArrForm::Collect(..)))
    };
    let plain = [
        of_vector(|b, a| b.fold(|x, y| x * y, &r(1.0), &var(a))),
        of_vector(|b, a| b.fold(|x, y| x * y, &at1(a, &n(0)), &var(a))),
        of_vector(|b, a| sum(&b.scanl(|x, y| x * y, &r(1.0), &var(a)))),
        of_vector(|b, a| sum(&b.scanr(|x, y| x * y, &at1(a, &n(0)), &var(a)))),
        of_vector(|b, a| sum(&b.scanl1(|x, y| x * y, &var(a)))),
    ];
    plain.iter().for_each(|program| assert_eq!(loops(program), 0, "{program}"));
    // What is read does not vary.
    let b = Draft::default();
    let c = b.avar("c", vector(real()));
    let free = b.program_with(vec![c.clone()], vector(real()), |a| {
        b.fold(|x, y| with(&c, x, y), &r(0.0), &b.map(|x| x * r(3.0), &var(a)))
    });
    assert_eq!(loops(&free), 0);
    expect(&free, &[reals(&[7.0]), reals(&[1.0, 2.0])], 23.0, &[3.0, 3.0], EXACT);
    let reads = of_vector(|b, a| b.fold(|x, y| with(a, x, y), &r(1.0), &var(a)));
    // One for the values, one for the adjoints.
    assert_eq!(loops(&reads), 2);
}

/// Where a function loops over a large and a small number, and its adjoint is zero, nothing is multiplied.
#[test]
fn zero_adjoints_stop_in_loops() {
    let program = of_both(|b, e, u| {
        b.map(|x| x * r(0.0), &slice([Some(n(1))], &b.collectl(|x, y| x * op1(Op::Sqrt, &y), e, u)))
    });
    let found = slope(&program, TRIMMED, &both(2.0, &[0.0]));
    assert_eq!(floats(&found), [0.0, 0.0, 0.0]);
}

#[test]
fn loops_have_types() {
    let b = Draft::default();
    let (v, u, w) = (b.avar("v", vector(real())), b.avar("u", scalar(real())), b.avar("w", vector(int())));
    let f = |t: Ty, s: Ty| b.fun2(t, s, |x, _| x);
    let left = pullback_ad::accelerate::language::Direction::Left;
    let of = |f, e: &AVar, a: &AVar| Arr::new(ArrForm::Collect(left, f, var(e), var(a)));
    assert!(of(f(real(), real()), &u, &v).is_ok() && of(f(real(), int()), &u, &w).is_ok());
    assert!(of(f(real(), int()), &u, &v).is_err() && of(f(int(), real()), &u, &v).is_err());
    assert!(of(f(real(), real()), &v, &v).is_err() && of(f(real(), real()), &u, &u).is_err());
    let other = b.fun2(real(), real(), |_, _| n(0));
    assert!(of(other, &u, &v).is_err());
}

/// Twice: a becomes a times b, element by element; then all states are added: a + a b + a b b.
#[test]
fn states_of_arrays() {
    let of = |count: i64| {
        let b = Draft::default();
        let both = ArrTy::Tuple(vec![vector(real()), vector(real())]);
        b.program(both, |p| {
            let (first, other) = (aproj(&var(p), 0), aproj(&var(p), 1));
            b.alet(&other, |other| {
                sum(&sum(&b.iterate(&n(count), &first, |a, _| b.zip_with(|x, y| x * y, &var(a), &var(other)))))
            })
        })
    };
    let args = [reals(&[2.0, 3.0]), reals(&[5.0, 7.0])];
    // The slopes by a are 1 + b + b b, those by b are a + 2 a b.
    expect(&of(2), &args, 62.0 + 171.0, &[31.0, 57.0, 22.0, 45.0], EXACT);
    expect(&of(0), &args, 5.0, &[1.0, 1.0, 0.0, 0.0], EXACT);
}

/// The state is a number and a matrix; the step reads the number of the iteration, a free array and the argument by index, and has a conditional and a loop of its own.
#[test]
fn steps_of_arrays_are_any_terms() {
    let b = Draft::default();
    let c = b.avar("c", vector(real()));
    let program = b.program_with(vec![c.clone()], vector(real()), |x| {
        let rows = replicate([Some(n(2)), None], &var(x));
        let first = atuple([b.generate(&ix([]), |_| r(1.0)), rows]);
        let all = b.iterate(&n(3), &first, |s, i| {
            let (number, all) = (aproj(&var(s), 0), aproj(&var(s), 1));
            b.alet(&number, |number| {
                b.alet(&all, |all| {
                    let k = at(i, &ix([]));
                    let place = tuple([k.rem(&size(x, 0))]);
                    let next = b.generate(&ix([]), |_| the(number) * at(x, &place) + at1(&c, &n(0)));
                    let scaled = b.map(|v| v * the(number), &var(all));
                    let turned = b.backpermute(&shape(all), |j| tuple([n(1) - j.get(0), j.get(1)]), &scaled);
                    let kept = b.map(|v| v.sin(), &var(all));
                    let inner = b.iterate(&n(2), &kept, |t, _| b.zip_with(|u, v| u * v, &var(t), &var(all)));
                    let inner = slice([Some(n(2)), None, None], &inner);
                    atuple([next, acond(&k.lt(&n(1)), &turned, &inner)])
                })
            })
        });
        b.alet(&all, |all| {
            let last = sum(&sum(&slice([Some(n(3)), None, None], &aproj(&var(all), 1))));
            b.zip_with(|u, v| u + v, &last, &sum(&aproj(&var(all), 0)))
        })
    });
    for options in variants() {
        let why = by_dual_numbers(&program, options, &[reals(&[0.5]), reals(&[0.7, -1.1, 1.3])]);
        assert_eq!(why, None, "{options:?}");
    }
}

/// How the gradient differs from forward mode, of a program whose result is a number.
fn by_dual_numbers(
    program: &Program,
    options: pullback_ad::accelerate::primal::Options,
    args: &[Value],
) -> Option<String> {
    let (core, f) = lowered(program);
    let oracle = pullback_interp::dual::jacobian(&core, f, args, &Default::default()).expect("runs");
    let expected = oracle.pull_back(&[1.0]);
    let found = floats(&slope(program, options, args))[1..].to_vec();
    let skip = expected.len() - found.len();
    let near = found.iter().zip(&expected[skip..]).all(|(x, e)| is_near(*x, *e, 1e-9));
    let is_flat = found.iter().all(|x| *x == 0.0);
    (!near || is_flat).then(|| format!("{found:?}, not {expected:?}"))
}
