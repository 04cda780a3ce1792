//! Misprints of the text (2.13 of the notes): each printed form is written by hand, and fails; and what is refused.

use super::build::*;
use super::catalogue::{aindex_generate_3, one, replicate_4};
use super::gradients::*;
use pullback_ad::accelerate::expression::{Split, Temporaries};
use pullback_ad::accelerate::language::{AVar, Arr, ArrForm, ArrTy, Exp, ExpForm, Program, Ty};
use pullback_core::Value;
use pullback_prim::{Op, ScalarValue};

const A: [f64; 6] = [0.7, -2.25, 1.2, 3.8, -0.35, 1.65];

/// E1: where the dual rule of `replicate` reads, for the slice `(5, All, 3, All)`, and the inverse of it.
#[test]
fn e1_the_index_of_replicate() {
    // The kept dimensions come first.
    let order = [1, 3, 0, 2];
    let turned = |is_printed: bool| {
        let b = Draft::default();
        b.program(array(real(), 4), |d| {
            let sizes = tuple(order.map(|q| size(d, q)));
            let position = |q: usize| order.iter().position(|o| *o == q).unwrap();
            let source =
                |i: E| tuple([0, 1, 2, 3].map(|q| i.get(if is_printed { order[q] } else { position(q) })));
            sum(&sum(&b.backpermute(&sizes, source, &var(d))))
        })
    };
    let ones = reals_of(&[5, 6, 3, 2], &[1.0; 180]);
    assert_eq!(run(&turned(false), std::slice::from_ref(&ones)), [reals_of(&[6, 2], &[15.0; 12])]);
    assert!(stops(&turned(true), &[ones]).contains("out of bounds"));
    // The gradient of the program that catches it: 60 times the derivative of `x * x + x`, twice.
    let slopes = A.map(|x| 60.0 * (2.0 * x + 1.0));
    expect(&one(replicate_4), &[reals(&A)], 1741.65, &slopes, 1e-12);
}

/// How the rule of a fold may be read.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Fold {
    /// As it is meant.
    Meant,
    /// E2: the first component twice.
    FirstTwice,
    /// E2b: the dual lambda gets the result as its adjoint.
    ResultAsAdjoint,
}

fn without(b: &Draft, a: &AVar, from: i64) -> Arr {
    b.backpermute(&tuple([size(a, 0) - n(1)]), |i| tuple([i.get(0) + n(from)]), &var(a))
}

/// The derivative of a fold of a vector by each element, written by hand.
fn slopes(rule: Fold, op: fn(E, E) -> E, e: f64) -> Program {
    let b = Draft::default();
    let f = b.fun2(real(), real(), op);
    let split = Split::new(&mut b.names.borrow_mut(), &f, Temporaries::All, false);
    let partials = |x: E, y: E| {
        let apply = |f: &pullback_ad::accelerate::language::Fun, e: E| {
            E(Exp::lets(vec![(f.param.clone(), e.0)], f.body.clone()).expect("types"))
        };
        let value = apply(&split.primal, tuple([x, y]));
        let adjoint = if rule == Fold::ResultAsAdjoint { value.get(0) } else { r(1.0) };
        apply(&split.dual, tuple([adjoint, value.get(1)])).get(0)
    };
    b.program(vector(real()), |a| {
        b.alet(&b.scanl(op, &r(e), &var(a)), |all| {
            b.alet(&b.zip_with(partials, &without(&b, all, 0), &var(a)), |parts| {
                let by_state = b.map(|p| p.get(0), &var(parts));
                let by_element = b.map(|p| p.get(usize::from(rule != Fold::FirstTwice)), &var(parts));
                b.alet(&b.scanr(|x, y| x * y, &r(1.0), &by_state), |after| {
                    b.zip_with(|x, y| x * y, &by_element, &without(&b, after, 1))
                })
            })
        })
    })
}

fn magnitudes(x: E, y: E) -> E {
    let abs = |x: E| cond(&x.lt(&r(0.0)), &-x.clone(), &x);
    abs(x) + abs(y)
}

#[test]
fn e2_the_rule_of_folds() {
    let signs = [1.0, -1.0, 1.0, 1.0, -1.0, 1.0];
    let products: Vec<f64> =
        (0..6).map(|k| A.iter().enumerate().filter(|(i, _)| *i != k).map(|(_, x)| x).product()).collect();
    for (op, e, expected) in [(magnitudes as fn(E, E) -> E, 0.0, &signs[..]), (|x, y| x * y, 1.0, &products)]
    {
        let found = |rule| floats(&run(&slopes(rule, op, e), &[reals(&A)]));
        let near = |xs: &[f64]| xs.iter().zip(expected).all(|(x, e)| is_near(*x, *e, 1e-12));
        assert!(near(&found(Fold::Meant)));
        for rule in [Fold::FirstTwice, Fold::ResultAsAdjoint] {
            assert!(!near(&found(rule)), "{rule:?}: {:?}", found(rule));
        }
    }
    let b = Draft::default();
    let fold = b.program(vector(real()), |a| b.fold(magnitudes, &r(0.0), &var(a)));
    expect(&fold, &[reals(&A)], 9.95, &signs, 1e-12);
}

/// E5: with both arguments of the product swapped, the adjoint of the rows stands where that of the elements is.
#[test]
fn e5_the_contribution_of_a_fold_has_no_type() {
    let b = Draft::default();
    let (d, tmp) = (b.avar("d", vector(real())), b.avar("tmp", matrix(real())));
    let times = b.fun2(real(), real(), |x, y| x * y);
    let rows = replicate([None, Some(size(&tmp, 1))], &var(&d));
    assert!(Arr::new(ArrForm::ZipWith(times.clone(), rows, var(&tmp))).is_ok());
    let printed = b.backpermute(&shape(&tmp), |i| i, &var(&tmp));
    let refused = Arr::new(ArrForm::ZipWith(times, printed, var(&d))).unwrap_err();
    assert!(refused.0.contains("rank"), "{refused}");
}

/// A function in two, and its dual lambda without some bindings.
fn generated(b: &Draft, a: &AVar) -> Split {
    let f = b.fun(Ty::index(1), |i| cond(&i.get(0).lt(&n(5)), &at1(a, &(i.get(0) / n(2))), &r(42.0)));
    Split::new(&mut b.names.borrow_mut(), &f, Temporaries::Needed, false)
}

/// E3: the adjoint of an element that is read in a branch is bound outside of it, since `info` mentions it.
#[test]
fn e3_the_adjoint_of_an_index_is_stored() {
    let b = Draft::default();
    let a = b.avar("a", vector(real()));
    let split = generated(&b, &a);
    let ExpForm::Let(bindings, out) = split.dual.body.form() else { panic!("a let") };
    let ExpForm::Var(j) = out.proj(1).proj(0).proj(0).form().clone() else { panic!("a variable") };
    let bound: Vec<&Exp> = bindings.iter().filter(|(x, _)| *x == j).map(|(_, u)| u).collect();
    assert!(matches!(bound[..], [u] if matches!(u.form(), ExpForm::Proj(..))), "{}", split.dual);
    let program = |body: Exp| {
        let f = pullback_ad::accelerate::language::Fun { param: split.dual.param.clone(), body };
        let names = b.names.borrow().clone();
        let param = b.avar("given", ArrTy::Array(f.param.ty().clone(), 1));
        let body = Arr::new(ArrForm::Map(f, var(&param))).unwrap();
        Program::new(param, vec![a.clone()], body, names)
    };
    assert!(program(split.dual.body.clone()).is_ok());
    let rest = bindings.iter().filter(|(x, _)| *x != j).cloned().collect();
    let refused = program(Exp::lets(rest, out.clone()).unwrap()).unwrap_err();
    assert!(refused.0.contains("is not bound"), "{refused}");
    // The same in the whole program.
    let slopes = [2.0, 2.0, 1.0, 0.0, 0.0, 0.0];
    expect(&one(aindex_generate_3), &[reals(&A)], 292.1, &slopes, 1e-12);
}

/// Where no element is read, the primal lambda says so; else an element of an empty array would be sought.
#[test]
fn what_is_not_read_is_false() {
    let b = Draft::default();
    let a = b.avar("a", vector(real()));
    let split = generated(&b, &a);
    let truths = b.program_with(vec![a.clone()], vector(Ty::index(1)), |i| {
        let all = Arr::new(ArrForm::Map(split.primal.clone(), var(i))).unwrap();
        b.map(|p| p.get(1), &all)
    });
    let found = run(&truths, &[reals(&A), ints(&[0, 4, 5, 7])]);
    let truth = |v: &Value| match v {
        Value::Array(a) => a.elements().map(|x| x == Value::Scalar(ScalarValue::Bool(true))).collect(),
        _ => Vec::new(),
    };
    let flags: Vec<Vec<bool>> = found.iter().map(truth).collect();
    assert!(flags.contains(&vec![true, true, false, false]), "{found:?}");
    // An array that is empty, read in a branch of either level.
    let inner = b.program(vector(real()), |a| {
        b.generate(&ix([]), |_| cond(&n(0).lt(&size(a, 0)), &at1(a, &n(0)), &r(42.0)))
    });
    let outer = b.program(vector(real()), |a| {
        let read = b.generate(&ix([]), |_| at1(a, &n(0)));
        acond(&n(0).lt(&size(a, 0)), &read, &b.generate(&ix([]), |_| r(42.0)))
    });
    for program in [inner, outer] {
        expect(&program, &[reals(&[])], 42.0, &[], 0.0);
        expect(&program, &[reals(&[3.0, 4.0])], 3.0, &[1.0, 0.0], 0.0);
    }
}

/// At ties the primitive gives half to each; the printed rule gives all to the second argument.
#[test]
fn ties_of_the_maximum() {
    let of = |op: fn(E, E) -> E| {
        let b = Draft::default();
        b.program(scalar(pair(real(), real())), |p| b.map(|p| op(p.get(0), p.get(1)), &var(p)))
    };
    let args = |x, y| [Value::f64(x), Value::f64(y)];
    let primitive = of(|x, y| x.max(&y));
    let printed = of(|x, y| cond(&y.lt(&x), &x, &y));
    expect(&primitive, &args(2.0, 2.0), 2.0, &[0.5, 0.5], 0.0);
    expect(&printed, &args(2.0, 2.0), 2.0, &[0.0, 1.0], 0.0);
    for program in [&primitive, &printed] {
        expect(program, &args(3.0, 2.0), 3.0, &[1.0, 0.0], 0.0);
        expect(program, &args(2.0, 3.0), 3.0, &[0.0, 1.0], 0.0);
    }
}

/// P2: what a branch stores comes back in the order in which it was stored, from both branches.
#[test]
fn p2_what_branches_store_is_restored_in_order() {
    let b = Draft::default();
    let program = b.program(vector(real()), |a| {
        let product = |u: &Arr, v: &Arr| b.zip_with(|x, y| x * y, u, v);
        let then = product(&b.map(|x| x.sin(), &var(a)), &b.map(|x| x.exp(), &var(a)));
        let other = product(&b.map(|x| x * r(3.0), &var(a)), &b.map(|x| op1(Op::Cos, &x), &var(a)));
        sum(&acond(&size(a, 0).lt(&n(3)), &then, &other))
    });
    let value = |xs: &[f64]| -> f64 { xs.iter().map(|x| x.sin() * x.exp()).sum() };
    let then = |x: &f64| (x.cos() + x.sin()) * x.exp();
    expect(
        &program,
        &[reals(&A[..2])],
        value(&A[..2]),
        &A[..2].iter().map(then).collect::<Vec<f64>>(),
        1e-12,
    );
    let value: f64 = A.iter().map(|x| 3.0 * x * x.cos()).sum();
    expect(&program, &[reals(&A)], value, &A.map(|x| 3.0 * (x.cos() - x * x.sin())), 1e-12);

    let mut count = 0;
    for options in variants() {
        let all = bindings(&derived(&program, options).program);
        for (at, (from, u)) in all.iter().enumerate() {
            let ArrForm::Cond(_, then, other) = u.form() else { continue };
            for (branch, body) in [then, other].into_iter().enumerate() {
                let ArrForm::Let(_, result) = body.form() else { panic!("a let") };
                let ArrForm::Tuple(parts) = result.form() else { panic!("a tuple") };
                let stored = parts.len() - 2 + branch;
                let ArrForm::Tuple(vs) = parts[stored].form() else { panic!("a tuple") };
                for (k, v) in vs.iter().enumerate() {
                    let ArrForm::Var(v) = v.form() else { panic!("a variable") };
                    let restored = all[at..].iter().find(|(a, _)| a == v).expect("it is restored");
                    assert_eq!(format!("{}", restored.1), format!("{}", var(from).proj(stored).proj(k)));
                    count += 1;
                }
            }
        }
    }
    assert!(count > 50, "{count}");
}

/// Two components of one tuple are read in one function: each gets what was contributed to it.
#[test]
fn components_of_one_tuple_are_read() {
    let b = Draft::default();
    let program = b.program(vector(real()), |a| {
        b.alet(&atuple([b.map(|x| x * r(2.0), &var(a)), b.map(|x| &x * &x, &var(a))]), |t| {
            b.alet(&aproj(&var(t), 0), |u| {
                b.alet(&aproj(&var(t), 1), |v| {
                    sum(&b.generate(&shape(a), |i| at(u, &i) * at(v, &i) + at1(u, &n(0)) + at1(v, &n(1))))
                })
            })
        })
    });
    let [x, y] = [2.0, 3.0];
    let value = 2.0 * (8.0 + 27.0) + 2.0 * (2.0 * x + y * y);
    expect(&program, &[reals(&[x, y])], value, &[6.0 * x * x + 4.0, 6.0 * y * y + 4.0 * y], 1e-12);
}

/// Arrays that do not vary may be read, and scanned.
#[test]
fn folds_start_from_what_does_not_vary() {
    let b = Draft::default();
    let c = b.avar("c", vector(real()));
    let scanned = b.program_with(vec![c.clone()], vector(real()), |a| {
        let e = at1(&c, &n(1));
        let counts = b.scanl1(|x, y| x + y, &b.map(|_| n(1), &var(a)));
        let scaled = b.zip_with(|x, k| x * to_real(&k), &var(a), &counts);
        b.fold(|x, y| x + y, &e, &scaled)
    });
    expect(&scanned, &[reals(&[5.0, 7.0]), reals(&[1.0, 2.0])], 12.0, &[1.0, 2.0], 0.0);
}

/// A product with a partial derivative stops at an adjoint that is zero, unless it is that of the numbers.
#[test]
fn zero_adjoints_stop_unless_products_are_plain() {
    let program = |body: fn(&Draft, &Arr) -> Arr| {
        let b = Draft::default();
        b.program(vector(real()), |a| body(&b, &var(a)))
    };
    let root = program(|b, a| sum(&b.map(|x| r(0.0) * op1(Op::Sqrt, &x), a)));
    let folded = program(|b, a| b.map(|x| x * r(0.0), &product(b, a)));
    let (zero, infinite) = ([reals(&[0.0, 4.0])], [reals(&[f64::INFINITY, 2.0])]);
    for options in variants() {
        let plain = pullback_ad::accelerate::primal::Options { ieee: true, ..options };
        let gradient = |program, options, args| floats(&slope(program, options, args))[1..].to_vec();
        assert_eq!(gradient(&root, options, &zero), [0.0, 0.0]);
        let found = gradient(&root, plain, &zero);
        assert!(found[0].is_nan() && found[1] == 0.0, "{found:?}");
        assert_eq!(gradient(&folded, options, &infinite), [0.0, 0.0]);
        let found = gradient(&folded, plain, &infinite);
        assert!(found[0] == 0.0 && found[1].is_nan(), "{found:?}");
    }
}

/// Prefix products of 2, 3, 5 are 2, 6, 30: each element times what comes after it.
#[test]
fn a_scan_without_a_first_value_has_a_derivative() {
    let b = Draft::default();
    let program = b.program(vector(real()), |a| sum(&b.scanl1(|x, y| x * y, &var(a))));
    expect(&program, &[reals(&[2.0, 3.0, 5.0])], 38.0, &[19.0, 12.0, 6.0], 1e-12);
    expect(&program, &[reals(&[2.0])], 2.0, &[1.0], 0.0);
    expect(&program, &[reals(&[])], 0.0, &[], 0.0);
    // A zero stops nothing: 2 + 0 + 0, and what the zero is a factor of.
    expect(&program, &[reals(&[2.0, 0.0, 5.0])], 2.0, &[1.0, 12.0, 0.0], 1e-12);
}

/// Functions x -> m x + c, one after the other: of (x, x) for 2 and 3 the constant is 2 + 2 * 3.
#[test]
fn a_fold_of_pairs_has_a_derivative() {
    let b = Draft::default();
    let composed = |p: E, q: E| tuple([p.get(0) * q.get(0), p.get(0) * q.get(1) + p.get(1)]);
    let program = b.program(vector(real()), |a| {
        let pairs = b.map(|x| tuple([x.clone(), x]), &var(a));
        b.map(|p| p.get(1), &b.fold(composed, &tuple([r(1.0), r(0.0)]), &pairs))
    });
    expect(&program, &[reals(&[2.0, 3.0])], 8.0, &[4.0, 2.0], 1e-12);
    // 2 + 2 * 3 + 2 * 3 * 5
    expect(&program, &[reals(&[2.0, 3.0, 5.0])], 38.0, &[19.0, 12.0, 6.0], 1e-12);
    expect(&program, &[reals(&[])], 0.0, &[], 0.0);
}

/// The larger one of a reduction is an element: the first of equal ones gets the adjoint, and none if no element is better than the first value.
#[test]
fn a_fold_by_the_larger_one_is_an_element() {
    let b = Draft::default();
    for (op, sign) in [(Op::MaxFirst, 1.0), (Op::MinFirst, -1.0)] {
        let of =
            |first: f64| b.program(vector(real()), |a| b.fold(|x, y| op2(op, &x, &y), &r(first), &var(a)));
        let (open, three) = (of(sign * f64::NEG_INFINITY), of(sign * 3.0));
        let at = |xs: &[f64]| [reals(&xs.iter().map(|x| sign * x).collect::<Vec<f64>>())];
        expect(&open, &at(&[1.0, 4.0, 4.0]), sign * 4.0, &[0.0, 1.0, 0.0], 0.0);
        expect(&three, &at(&[1.0, 4.0, 2.0]), sign * 4.0, &[0.0, 1.0, 0.0], 0.0);
        expect(&three, &at(&[1.0, 3.0]), sign * 3.0, &[0.0, 0.0], 0.0);
        expect(&three, &at(&[]), sign * 3.0, &[], 0.0);
        expect(&open, &at(&[f64::NAN, 2.0]), sign * 2.0, &[0.0, 1.0], 0.0);
    }
}
