//! Dual arrays (4.5): gradients, what they cost, and the numbers of the notes (sections 7.2 and Appendix B, computed there by an independent prototype and by differences).

use super::bot::product;
use super::build::*;
use super::generate::{Indices, Random, differences, program as any_program, scalar_program, seeds};
use super::scalar::{doubling, figure_4_4};
use pullback_ad::bulk::a_core::{Program, Term};
use pullback_ad::bulk::b_bot::{Rules, transform};
use pullback_ad::bulk::c_scalar::{Evaluator, gradient};
use pullback_ad::bulk::counts::Nodes;
use pullback_ad::bulk::d_arrays::{Pullback, jvp, vjp};
use pullback_ad::bulk::partials::Zeros;
use pullback_ad::bulk::sizes::Size;
use pullback_prim::{Op, Scalar, ScalarValue};

fn of(program: &Program, arguments: &[Value]) -> Pullback {
    let one = reals(&[], &[1.0]);
    vjp(program, arguments, &one, Zeros::Stop).unwrap_or_else(|why| panic!("{why}\n{program}"))
}
fn bulk(program: &Program) -> Program {
    transform(program, Rules::Guarded).0
}
fn numbers(a: &Option<Value>) -> Vec<f64> {
    a.as_ref().map(Value::to_f64s).unwrap_or_default()
}
fn close(xs: &[f64], ys: &[f64], tolerance: f64) -> bool {
    xs.len() == ys.len() && xs.iter().zip(ys).all(|(x, y)| (x - y).abs() <= tolerance * (1.0 + y.abs()))
}
/// A program of one input, its value and gradient: of the bulk program, and by scalar dual numbers of the source.
fn oracle(program: &Program, x: &Value, value: f64, wanted: &[f64]) -> Pullback {
    let g = of(&bulk(program), std::slice::from_ref(x));
    assert!(close(&g.value.to_f64s(), &[value], 1e-11), "{:?}", g.value);
    assert!(close(&numbers(&g.inputs[0]), wanted, 1e-10), "{:?}", g.inputs);
    let scalar = gradient(program, std::slice::from_ref(x), Evaluator::Shared, Zeros::Stop);
    let scalar = scalar.unwrap_or_else(|why| panic!("{why}"));
    assert!(close(&numbers(&scalar.inputs[0]), wanted, 1e-10), "{:?}", scalar.inputs);
    g
}
/// A program of one vector of numbers.
fn of_vector(k: &dyn Fn(&mut Draft) -> Size, body: impl FnOnce(&mut Draft, &Size, &Term) -> Term) -> Program {
    let mut d = Draft::default();
    let k = k(&mut d);
    let x = d.reals("x", std::slice::from_ref(&k));
    let body = body(&mut d, &k, &x);
    d.program(body)
}
fn symbolic(d: &mut Draft) -> Size {
    d.size("n")
}
/// `sum_i x_i x_(n-1-i)`
pub(super) fn self_convolution() -> Program {
    of_vector(&symbolic, |d, k, x| {
        let products = d.build(k, |_, i| {
            let back = sub(&sub(&Term::size(k), &int(1)), &i);
            mul(&index(x, &[i]), &index(x, &[back]))
        });
        sum(&products)
    })
}
/// `sum_i a_i b_i`
pub(super) fn dot_product() -> Program {
    let mut d = Draft::default();
    let k = d.size("n");
    let (a, b) = (d.reals("a", std::slice::from_ref(&k)), d.reals("b", std::slice::from_ref(&k)));
    let products = d.build(&k, |_, i| mul(&index(&a, std::slice::from_ref(&i)), &index(&b, &[i])));
    d.program(sum(&products))
}
/// `sum_i sin (x_i)`, by `build1`.
fn sines() -> Program {
    of_vector(&symbolic, |d, k, x| sum(&d.build(k, |_, i| op1(Op::Sin, &index(x, &[i])))))
}
/// The same, unrolled.
fn unrolled_sines(k: usize) -> Program {
    of_vector(&|_| n(k as i64), |_, _, x| {
        let terms = (0..k as i64).map(|i| op1(Op::Sin, &index(x, &[int(i)])));
        terms.reduce(|a, b| add(&a, &b)).expect("at least one")
    })
}

/// T1 at the level of arrays.
#[test]
fn doublings_are_linear() {
    let g = of(&doubling(16), &[reals(&[], &[1.0])]);
    assert_eq!((g.nodes.all, g.evals, numbers(&g.inputs[0])), (33, 49, vec![65536.0]));
}

/// T2, with identities in the order exp, log, sin, cos, div, add, and counts as by scalar dual numbers; and README of `horde-ad` (O23), recomputed in the notes.
#[test]
fn scalar_programs() {
    let g = of(&figure_4_4(), &[reals(&[], &[0.5])]);
    assert_eq!((g.nodes, g.evals), (Nodes { all: 15, shares: 6, inputs: 1 }, 17));
    assert_eq!(g.order, [6, 5, 4, 3, 2, 1], "each is evaluated once");
    assert!(close(&numbers(&g.inputs[0]), &[2.947_167_681_109_653], 1e-13));
    let mut d = Draft::default();
    let (x, y, z) = (d.reals("x", &[]), d.reals("y", &[]), d.reals("z", &[]));
    let body = d.let_(&mul(&x, &op1(Op::Sin, &y)), |_, w| add(&op2(Op::Atan2, &z, &w), &mul(&z, &w)));
    let g = of(&d.program(body), &[reals(&[], &[1.1]), reals(&[], &[2.2]), reals(&[], &[3.3])]);
    assert!(close(&g.value.to_f64s(), &[4.242_393_641_025_528], 1e-14));
    let all: Vec<f64> = g.inputs.iter().flat_map(numbers).collect();
    assert!(
        close(&all, &[2.439_628_521_905_506_3, -1.953_374_825_727_421, 0.965_482_581_101_262_7], 1e-14),
        "{all:?}"
    );
}

/// T3, T8 and claim C5: as many nodes for each size; and Appendix A.
///
/// Elements of a dot product by hand. Forwards, two gathers and a product of n, and a sum that reads n and writes one. Backwards, n copies of the cotangent, two products of n, and two scatters that read n and write n.
#[test]
fn nodes_are_of_array_operations() {
    let dot = bulk(&dot_product());
    // A sum of a product of two gathers, each with an index function.
    assert_eq!(dot.body.nodes(), 8);
    for n in [1, 3, 40] {
        let g = of(&dot, &[one_to(n), one_to(n)]);
        assert_eq!((g.nodes, g.evals), (Nodes { all: 12, shares: 4, inputs: 2 }, 12));
        assert_eq!(g.order, [4, 3, 2, 1]);
        let k = n as u64;
        assert_eq!(g.touched, (3 * k + k + 1) + (k + 2 * k + 2 * 2 * k));
        assert_eq!(numbers(&g.inputs[1]), one_to(n).to_f64s());
    }
    let program = bulk(&self_convolution());
    for n in [4, 50] {
        let g = of(&program, &[one_to(n)]);
        assert_eq!((g.nodes.all, g.evals), (11, 12));
        // Twice the numbers backwards.
        let wanted: Vec<f64> = (1..=n).rev().map(|x| 2.0 * x as f64).collect();
        assert_eq!(numbers(&g.inputs[0]), wanted);
    }
    let g = of(&program, &[reals(&[4], &[1.0, 2.0, 3.0, 5.0])]);
    assert_eq!((g.value.to_f64s(), numbers(&g.inputs[0])), (vec![22.0], vec![10.0, 6.0, 4.0, 2.0]));
}

/// T4 and claims C6 and C7: without bulk operations each index makes an array of zeros, and a sum of n numbers costs n * n. (The notes have squares; a sine has the same nodes.)
#[test]
fn indices_outside_of_build_are_quadratic() {
    let mut quadratic = Vec::new();
    let mut linear = Vec::new();
    let program = bulk(&sines());
    for n in [10, 20, 40, 80] {
        let unrolled = unrolled_sines(n);
        assert_eq!(cost(&unrolled, &[one_to(n)]), 3 * n as u64 - 1);
        let g = of(&unrolled, &[one_to(n)]);
        assert_eq!(g.nodes.all, 6 * n as u64 - 1);
        quadratic.push(g.touched);
        let g = of(&program, &[one_to(n)]);
        assert_eq!(g.nodes.all, 7);
        linear.push(g.touched);
    }
    assert_eq!(quadratic, [239, 879, 3359, 13119]);
    assert_eq!(linear, [81, 161, 321, 641]);
}

/// T5, with gradients.
#[test]
fn the_gradient_of_a_product_of_matrices_is_linear_by_repaired_rules() {
    let mut d = Draft::default();
    let (k, m, n) = (d.size("k"), d.size("m"), d.size("n"));
    let source = product(&k, &m, &n, d);
    let touched = |rules: Rules| -> Vec<u64> {
        let program = transform(&source, rules).0;
        let arguments = |n: usize| [reals(&[1, 4], &[0.5; 4]), reals(&[4, n], &vec![0.25; 4 * n])];
        [10, 20, 40].into_iter().map(|n| of(&program, &arguments(n)).touched).collect()
    };
    assert_eq!(touched(Rules::Printed), [2079, 6529, 22629]);
    assert_eq!(touched(Rules::Guarded), [867, 1717, 3417]);
    let a = reals(&[2, 3], &[0.1, 0.2, 0.3, 0.4, 0.5, 0.6]);
    let b = reals(&[3, 2], &[1.0, -1.0, 0.5, 2.0, -0.5, 0.25]);
    let g = of(&bulk(&source), &[a, b]);
    assert!(close(&g.value.to_f64s(), &[1.440_788_265_836], 1e-12));
    let to_a =
        [0.068242638483, 2.360390374022, -0.266748224719, 0.207683843974, 1.933064094171, -0.286764139205];
    let to_b =
        [0.475624111178, 0.385726309741, 0.669436408503, 0.551945958819, 0.863248705827, 0.718165607898];
    assert!(close(&numbers(&g.inputs[0]), &to_a, 1e-11), "{g:?}");
    assert!(close(&numbers(&g.inputs[1]), &to_b, 1e-11), "{g:?}");
}

/// T7, O6: the concatenation of an array with itself, by conditionals that read outside of it.
#[test]
fn a_conditional_in_build() {
    let source = of_vector(&symbolic, |d, k, a| {
        let both = d.build(&k.plus(k), |_, i| {
            let first = op2(Op::Lt, &i, &Term::size(k));
            let at = cond(&first, &index(a, std::slice::from_ref(&i)), &index(a, &[sub(&i, &Term::size(k))]));
            mul(&at, &to_real(&i))
        });
        sum(&both)
    });
    let wanted: Vec<f64> = (0..10).map(|i| 10.0 + 2.0 * f64::from(i)).collect();
    oracle(&source, &reals(&[10], &[1.0; 10]), 190.0, &wanted);
}

/// O5: zero-padded convolution by reads outside.
#[test]
fn a_convolution_reads_outside() {
    let mut d = Draft::default();
    let k = d.size("n");
    let (x, w) = (d.reals("x", std::slice::from_ref(&k)), d.reals("w", &[n(3)]));
    let out = d.build(&k, |d, i| {
        let terms = d.build(&n(3), |_, j| {
            let at = sub(&add(&i, &j), &int(1));
            mul(&index(&w, &[j]), &index(&x, &[at]))
        });
        sum(&terms)
    });
    let body = d.let_(&out, |_, out| sum(&mul(&out, &out)));
    let source = d.program(body);
    let program = bulk(&source);
    let arguments = [one_to(4), reals(&[3], &[0.5, -1.0, 2.0])];
    let g = of(&program, &arguments);
    assert_eq!(g.value.to_f64s(), [71.5]);
    assert!(close(&numbers(&g.inputs[0]), &[-1.5, 9.0, 3.5, 29.0], 1e-13), "{g:?}");
    assert!(close(&numbers(&g.inputs[1]), &[18.0, 40.0, 87.0], 1e-13), "{g:?}");
}

/// O7, O8, O13 and T11 (O9).
#[test]
fn bulk_programs() {
    let lse = of_vector(&symbolic, |_, _, x| op1(Op::Log, &sum(&op1(Op::Exp, x))));
    let softmax = [0.03205860328, 0.087144318742, 0.23688281809, 0.643914259888];
    oracle(&lse, &reals(&[4], &[0.0, 1.0, 2.0, 3.0]), 3.440189698561, &softmax);

    let matrix = || {
        let mut d = Draft::default();
        let m = d.reals("m", &[n(2), n(3)]);
        (d, m)
    };
    let x = reals(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let (d, m) = matrix();
    let turned = transpose(&[1, 0], &m);
    let weights = term(pullback_ad::bulk::a_core::Exp::Const(one_to(6)));
    let weighted = mul(&weights, &reshape(&[n(6)], &mul(&turned, &turned)));
    oracle(&d.program(sum(&weighted)), &x, 406.0, &[2.0, 12.0, 30.0, 16.0, 40.0, 72.0]);

    let (mut d, m) = matrix();
    let sent = d.scatter(&[n(2), n(2)], &m, 2, |_, i| {
        vec![op2(Op::Mod, &add(&i[0], &i[1]), &int(2)), op2(Op::Div, &i[1], &int(2))]
    });
    let body = d.let_(&sent, |_, sent| total(&mul(&sent, &sent)));
    oracle(&d.program(body), &x, 117.0, &[12.0, 12.0, 6.0, 12.0, 12.0, 12.0]);

    let mut d = Draft::default();
    let k = d.size("n");
    let v = d.reals("v", std::slice::from_ref(&k));
    let at = d.input("k", Scalar::I64, &[k]);
    let sent = d.scatter(&[n(3)], &v, 1, |_, i| vec![index(&at, i)]);
    let body = d.let_(&sent, |_, h| sum(&mul(&h, &h)));
    let g = of(&bulk(&d.program(body)), &[one_to(5), Value::i64s(&[5], &[0, 2, 2, 0, 7])]);
    assert_eq!((g.value.to_f64s(), numbers(&g.inputs[0])), (vec![50.0], vec![10.0, 10.0, 10.0, 10.0, 0.0]));
    assert_eq!(g.inputs[1], None, "integers have no cotangents");
}

/// T10 (O14).
#[test]
fn a_scatter_in_build() {
    let source = of_vector(&symbolic, |d, k, x| {
        let four = Term::size(k);
        let each = d.build(&n(3), |d, i| {
            let sent =
                d.scatter(std::slice::from_ref(k), x, 1, |_, j| vec![op2(Op::Mod, &mul(&j[0], &i), &four)]);
            index(&sent, &[op2(Op::Mod, &mul(&int(2), &i), &four)])
        });
        sum(&each)
    });
    oracle(&source, &one_to(4), 17.0, &[2.0, 1.0, 3.0, 1.0]);
}

/// O11: a conditional on an index that comes from an array.
#[test]
fn indices_from_arrays() {
    let source = of_vector(&|_| n(4), |d, _, x| {
        let k = term(pullback_ad::bulk::a_core::Exp::Const(Value::i64s(&[4], &[3, 0, 1, 2])));
        let each = d.build(&n(4), |d, i| {
            let at = index(&k, std::slice::from_ref(&i));
            let u = mul(&index(x, std::slice::from_ref(&at)), &to_real(&i));
            d.let_(&u, |_, u| cond(&op2(Op::Lt, &int(1), &at), &op1(Op::Sin, &u), &mul(&u, &u)))
        });
        sum(&each)
    });
    let x = reals(&[4], &[0.5, 1.0, 1.5, 2.0]);
    oracle(&source, &x, 3.272469882335, &[1.0, 8.0, -0.632387398292, 0.0]);
}

/// T12 and O15 to O21: regression tests of `horde-ad`, with reads outside.
#[test]
fn reads_outside_have_no_gradient() {
    let of_number = |body: &dyn Fn(&mut Draft, &Term) -> Term| {
        let mut d = Draft::default();
        let r = d.reals("r", &[]);
        let body = body(&mut d, &r);
        d.program(body)
    };
    let check = |body: &dyn Fn(&mut Draft, &Term) -> Term, at: f64, value: f64, slope: f64| {
        oracle(&of_number(body), &reals(&[], &[at]), value, &[slope]);
    };
    let tens = |d: &mut Draft, r: &Term| sum(&d.build(&n(10), |_, i| mul(r, &to_real(&i))));
    check(&tens, 1.1, 49.5, 45.0);
    let five = |r: &Term| stack(&[r.clone(), real(1.0), real(2.0), real(3.0), real(4.0)]);
    let halves = |d: &mut Draft, r: &Term, is_turned: bool| {
        let a = five(r);
        let each = d.build(&n(10), |_, i| {
            let (here, there) = (index(&a, std::slice::from_ref(&i)), index(&a, &[sub(&i, &int(5))]));
            let (u, v) = if is_turned { (there, here) } else { (here, there) };
            cond(&op2(Op::Lt, &i, &int(5)), &u, &v)
        });
        sum(&each)
    };
    check(&|d, r| halves(d, r, false), 3.4, 26.8, 2.0);
    check(&|d, r| halves(d, r, true), 3.4, 0.0, 0.0);
    check(&|_, r| index(&replicate(&n(1), r), &[int(-1)]), 3.4, 0.0, 0.0);
    let quotients = |d: &mut Draft, r: &Term| {
        let mut once = || {
            let one = replicate(&n(1), r);
            sum(&d.gather(&[n(5)], &one, 1, |_, i| vec![op2(Op::Div, &int(1), &sub(&int(5), &i[0]))]))
        };
        add(&once(), &once())
    };
    check(&quotients, 3.4, 27.2, 8.0);
    let nested = |d: &mut Draft, r: &Term| {
        let rows = d.build(&n(3), |d, i| {
            d.build(&n(4), |_, j| {
                index(&stack(&[to_real(&j), real(7.0), r.clone(), real(-0.2)]), std::slice::from_ref(&i))
            })
        });
        total(&rows)
    };
    check(&nested, 3.4, 47.6, 4.0);
    let rule_9 = of_number(&|_, r| index(&replicate(&n(1), r), &[int(-1)]));
    let printed = transform(&rule_9, Rules::Printed).0;
    assert_eq!(numbers(&of(&printed, &[reals(&[], &[3.4])]).inputs[0]), [1.0], "as printed");
}

/// T13: what `cond` did not choose is multiplied by zero, and `0 * (1 / 0)` is no number. Both numbers of the hazard, and the guarded program.
#[test]
fn zeros_stop_at_infinite_slopes_unless_they_are_multiplied() {
    let logs = |is_guarded: bool| {
        of_vector(&symbolic, |d, k, x| {
            let each = d.build(k, |d, i| {
                d.let_(&index(x, &[i]), |_, at| {
                    let positive = op2(Op::Lt, &real(0.0), &at);
                    let of = if is_guarded { cond(&positive, &at, &real(1.0)) } else { at };
                    cond(&positive, &op1(Op::Log, &of), &real(0.0))
                })
            });
            sum(&each)
        })
    };
    let x = [reals(&[3], &[1.0, 2.0, 0.0])];
    let slope = |program: &Program, zeros| {
        let g = vjp(&bulk(program), &x, &reals(&[], &[1.0]), zeros).expect("fits");
        assert!(close(&g.value.to_f64s(), &[std::f64::consts::LN_2], 1e-15));
        numbers(&g.inputs[0])
    };
    assert_eq!(slope(&logs(false), Zeros::Stop), [1.0, 0.5, 0.0]);
    let multiplied = slope(&logs(false), Zeros::Multiply);
    assert_eq!(multiplied[..2], [1.0, 0.5]);
    assert!(multiplied[2].is_nan());
    assert_eq!(slope(&logs(true), Zeros::Multiply), [1.0, 0.5, 0.0]);
}

/// What an index function computes of numbers makes no node (4.5.3).
#[test]
fn index_functions_are_not_differentiated() {
    let program = |is_computed: bool| {
        of_vector(&symbolic, |d, k, x| {
            let read = d.gather(std::slice::from_ref(k), x, 1, |_, i| {
                let at = op1(Op::Exp, &op1(Op::Sin, &index(x, i)));
                let to = pullback_prim::Prim::Convert(Scalar::F64, Scalar::I64);
                let whole = term(pullback_ad::bulk::a_core::Exp::Op(to, vec![at]));
                vec![if is_computed { whole } else { i[0].clone() }]
            });
            sum(&read)
        })
    };
    assert_eq!(of(&program(true), &[one_to(5)]).nodes, of(&program(false), &[one_to(5)]).nodes);
}

/// Gradients of random programs: by dual arrays of the bulk program, by scalar dual numbers of the source, by differences; and identities go down.
#[test]
fn gradients_of_random_programs_agree() {
    let (mut programs, mut varied) = (0, 0);
    for (seed, indices) in seeds(150).flat_map(|s| [(s, Indices::Inside), (s, Indices::Anywhere)]) {
        let (source, arguments) = scalar_program(seed, indices);
        let program = bulk(&source);
        let g = of(&program, &arguments);
        let scalar = gradient(&source, &arguments, Evaluator::Shared, Zeros::Stop).expect("fits");
        let numeric = differences(&source, &arguments);
        for (k, a) in g.inputs.iter().enumerate() {
            let (Some(a), Some(b), Some(c)) = (a, &scalar.inputs[k], &numeric[k]) else { continue };
            assert!(
                agree(a, b, 1e-10),
                "seed {seed}, {indices:?}, input {k}: {a:?} {b:?}\n{source}{program}"
            );
            assert!(agree(a, c, 1e-5), "seed {seed}, {indices:?}, input {k}: {a:?} {c:?}\n{source}");
        }
        programs += 1;
        varied += usize::from(g.inputs.iter().any(|a| numbers(a).iter().any(|x| *x != 0.0)));
        assert!(g.order.windows(2).all(|w| w[0] > w[1]), "identities go down: {:?}", g.order);
    }
    assert!(varied * 3 > programs * 2, "programs that depend on inputs: {varied} of {programs}");
}

/// `<c, J t> = <J' c, t>` for results of any shape: a term as a linear function, and its transpose (T15 for all operations together).
#[test]
fn tangents_and_cotangents_are_transposes() {
    for (seed, indices) in seeds(200).flat_map(|s| [(s, Indices::Inside), (s, Indices::Anywhere)]) {
        let (source, arguments) = any_program(seed, indices);
        if !source.body.ty().is_float() {
            continue;
        }
        let program = bulk(&source);
        let mut random = Random(seed);
        let mut like = |a: &Value| {
            let xs: Vec<f64> = a.elements.iter().map(|_| random.unit()).collect();
            if a.scalar.is_float() { reals(&a.shape, &xs) } else { a.clone() }
        };
        let tangents: Vec<Value> = arguments.iter().map(&mut like).collect();
        let c = like(&value(&source, &arguments));
        let dot = |a: &Value, b: &Value| a.to_f64s().iter().zip(b.to_f64s()).map(|(x, y)| x * y).sum::<f64>();
        let forwards = jvp(&program, &arguments, &tangents).expect("fits").tangent;
        let g = vjp(&program, &arguments, &c, Zeros::Stop).expect("fits");
        let pairs = g.inputs.iter().zip(&tangents);
        let backwards: f64 = pairs.filter_map(|(a, t)| a.as_ref().map(|a| dot(a, t))).sum();
        let forwards = dot(&c, &forwards);
        assert!(
            (forwards - backwards).abs() <= 1e-9 * (1.0 + forwards.abs()),
            "seed {seed}: {forwards} {backwards}\n{source}"
        );
    }
}

/// Floats of two widths: a cotangent is converted back.
#[test]
fn conversions_between_floats() {
    let mut d = Draft::default();
    let x = d.input("x", Scalar::F32, &[n(2)]);
    let wide = pullback_prim::Prim::Convert(Scalar::F32, Scalar::F64);
    let wide = term(pullback_ad::bulk::a_core::Exp::Op(wide, vec![x]));
    let program = d.program(sum(&mul(&wide, &wide)));
    let x = Value::new(Scalar::F32, vec![2], vec![ScalarValue::F32(1.5), ScalarValue::F32(-2.0)]);
    let wanted = Value::new(Scalar::F32, vec![2], vec![ScalarValue::F32(3.0), ScalarValue::F32(-4.0)]);
    assert_eq!(of(&program, std::slice::from_ref(&x)).inputs, [Some(wanted.clone())]);
    let scalar = gradient(&program, &[x], Evaluator::Shared, Zeros::Stop).expect("fits");
    assert_eq!(scalar.inputs, [Some(wanted)]);
}

#[test]
fn what_does_not_fit_is_refused() {
    let program = sines();
    let one = reals(&[], &[1.0]);
    let refused = |program: &Program, cotangent: &Value, why: &str| {
        let error = vjp(program, &[one_to(3)], cotangent, Zeros::Stop).expect_err("refused");
        assert!(error.0.contains(why), "{error}");
    };
    refused(&program, &one, "dual arrays are of bulk operations");
    refused(&bulk(&program), &one_to(2), "the cotangent has shape");
}
