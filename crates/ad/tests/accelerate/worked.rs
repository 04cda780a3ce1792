//! The examples of the text that are worked out there, with their numbers (2.0 and 2.15 of the notes).

use super::build::*;
use super::gradients::*;
use pullback_ad::accelerate::expression::{Split, Temporaries};
use pullback_ad::accelerate::language::{AVar, Arr, ArrForm, ExpForm, Program, Ty};
use pullback_core::Value;
use pullback_prim::Op;

const EXACT: f64 = 1e-12;

/// W1: the sum of `x * x * (x + 1)`.
pub(super) fn w1() -> Program {
    let b = Draft::default();
    b.program(vector(real()), |a| {
        let (square, next) = (b.map(|x| &x * &x, &var(a)), b.map(|x| x + r(1.0), &var(a)));
        sum(&b.zip_with(|x, y| x * y, &square, &next))
    })
}

/// The element at the rounded number.
fn rounded(b: &AVar, x: &E) -> E {
    at1(b, &to_int(&op1(Op::Round, x)))
}

/// W2: each element, and the one at its rounded number.
fn w2() -> Program {
    let b = Draft::default();
    b.program(vector(real()), |a| sum(&b.map(|x| &x + rounded(a, &x), &var(a))))
}

/// W4: the same as a product, of an array that is bound.
pub(super) fn w4() -> Program {
    let b = Draft::default();
    b.program(vector(real()), |arg| {
        b.alet(&b.map(|x| x * r(3.0), &var(arg)), |c| sum(&b.map(|x| &x * rounded(c, &x), &var(c))))
    })
}

/// W5: the first five elements, or twice all of them.
fn w5() -> Program {
    let b = Draft::default();
    b.program(vector(real()), |arg| {
        let first = b.backpermute(&ix([5]), |i| i, &var(arg));
        let all = b.map(|x| r(2.0) * x, &var(arg));
        sum(&acond(&at1(arg, &n(0)).lt(&r(0.0)), &first, &all))
    })
}

#[test]
fn w1_the_sum_of_products() {
    expect(&w1(), &[reals(&[0.7, -2.25, 1.2, 3.8])], 66.984875, &[2.87, 10.6875, 6.72, 50.92], EXACT);
    expect(&w1(), &[reals(&[])], 0.0, &[], EXACT);
}

#[test]
fn w2_an_array_that_is_read() {
    expect(&w2(), &[reals(&[0.2, 1.1, 2.4, 0.7])], 9.2, &[2.0, 3.0, 2.0, 1.0], EXACT);
}

#[test]
fn w4_an_array_that_is_bound_and_read() {
    expect(&w4(), &[reals(&[0.1, 0.4, 0.9, 0.0])], 1.53, &[1.8, 7.2, 0.0, 9.0], EXACT);
}

#[test]
fn w5_both_branches() {
    let low = [-1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0];
    expect(&w5(), &[reals(&low)], 13.0, &[1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0], EXACT);
    let high = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0];
    expect(&w5(), &[reals(&high)], 56.0, &[2.0; 7], EXACT);
    // The first branch would read outside of these.
    expect(&w5(), &[reals(&[1.0, 2.0])], 6.0, &[2.0; 2], EXACT);
    for options in variants() {
        let g = derived(&w5(), options);
        let message = stops(&g.program, &with_seeds(&w5(), &[reals(&[-1.0, 2.0])], &[Value::f64(1.0)]));
        assert!(message.contains("out of bounds"), "{message}");
    }
}

/// `h(x, y) = x y - y + ln y x`, as a function of rank 0.
#[test]
fn h_of_two_numbers() {
    let b = Draft::default();
    let h = b.program(scalar(pair(real(), real())), |p| {
        b.map(
            |p| {
                let (x, y) = (p.get(0), p.get(1));
                &x * &y - &y + op1(Op::Log, &y) * &x
            },
            &var(p),
        )
    });
    let (value, dx, dy) = (3.0 - 2.0 + 1.5 * 2f64.ln(), 2.0 + 2f64.ln(), 1.5 - 1.0 + 0.75);
    expect(&h, &[Value::f64(1.5), Value::f64(2.0)], value, &[dx, dy], EXACT);
    assert!(is_near(value, 2.039720771, 1e-9) && is_near(dx, 2.693147181, 1e-9) && dy == 1.25);
}

/// W3: the function, and the array that it reads.
fn w3(b: &Draft, temporaries: Temporaries) -> (AVar, Split) {
    let a = b.avar("a", vector(real()));
    let f = b.fun(pair(real(), int()), |p| p.get(0) * at1(&a, &p.get(1)));
    let split = Split::new(&mut b.names.borrow_mut(), &f, temporaries, false);
    (a, split)
}

#[test]
fn w3_a_function_in_two() {
    for temporaries in [Temporaries::All, Temporaries::Needed] {
        let b = Draft::default();
        let (a, split) = w3(&b, temporaries);
        assert_eq!(split.reads, std::slice::from_ref(&a));
        let entry = Ty::Tuple(vec![real(), Ty::index(1), Ty::BOOL]);
        assert_eq!(*split.dual.body.ty(), pair(pair(real(), int()), Ty::Tuple(vec![entry])));
        let Ty::Tuple(given) = split.dual.param.ty() else { panic!("a pair") };
        assert_eq!((given.len(), &given[0]), (2, &real()));
        assert_eq!(*split.primal.body.ty(), pair(real(), given[1].clone()));
        let program = b.program_with(vec![a.clone()], scalar(pair(real(), int())), |p| {
            let res = Arr::new(ArrForm::Map(split.primal.clone(), var(p))).unwrap();
            b.alet(&res, |res| {
                let one = b.generate(&ix([]), |_| r(1.0));
                let tmp = b.map(|p| p.get(1), &var(res));
                let dual = Arr::new(ArrForm::ZipWith(split.dual.clone(), one, tmp)).unwrap();
                atuple([b.map(|p| p.get(0), &var(res)), dual])
            })
        });
        let found = run(&program, &[reals(&[10.0, 20.0, 30.0]), Value::f64(2.5), Value::i64(1)]);
        let truth = Value::Scalar(pullback_prim::ScalarValue::Bool(true));
        let dual = [Value::f64(20.0), Value::i64(0), Value::f64(2.5), Value::i64(1), truth];
        assert_eq!(found, [&[Value::f64(50.0)], &dual[..]].concat());
    }
}

/// The text keeps the values of all nodes; trimmed are those that the dual lambda does not read.
#[test]
fn w3_temporaries() {
    let of = |temporaries| {
        let (_, split) = w3(&Draft::default(), temporaries);
        let Ty::Tuple(ts) = split.primal.body.ty() else { panic!("a pair") };
        let Ty::Tuple(ts) = &ts[1] else { panic!("a tuple") };
        let mut names: Vec<String> = ts.iter().map(|t| format!("{t:?}")).collect();
        names.sort();
        names.len()
    };
    // The argument, `p.0`, `p.1`, the index, the truth value, the element, and the product.
    assert_eq!(of(Temporaries::All), 7);
    // Both factors, the index, and the truth value.
    assert_eq!(of(Temporaries::Needed), 4);
}

type Test<'a> = &'a dyn Fn(&ArrForm<()>) -> bool;

fn is_sum_of(u: &Arr, has: [Test<'_>; 2]) -> bool {
    matches!(u.form(), ArrForm::ZipWith(_, x, y) if has[0](x.form()) && has[1](y.form()))
}

/// W4: each node has one adjoint, and the array that is bound gets what is contributed where it is read, and where it is used.
#[test]
fn w4_the_trace_of_the_dual_phase() {
    let g = derived(&w4(), TEXT);
    let primal = ["res", "tmp", "a", "res", "tmp", "a", "a"];
    let dual = ["d", "d", "both", "info", "d", "d", "both", "d"];
    assert_eq!(named(&g.program), [&primal[..], &dual].concat());
    let all = bindings(&g.program);
    let d: Vec<&(AVar, Arr)> = all.iter().filter(|(a, _)| a.name() == "d").collect();
    let is_var = |form: &ArrForm<()>, of: &AVar| matches!(form, ArrForm::Var(a) if a == of);
    // The root has the seed; the map a number for each element; the variable, and what is bound, a part of `both`.
    assert!(is_var(d[0].1.form(), &g.seed));
    assert!(matches!(d[1].1.form(), ArrForm::Replicate(_, u) if is_var(u.form(), &d[0].0)));
    assert!(matches!(d[2].1.form(), ArrForm::Map(..)));
    assert!(is_sum_of(&d[3].1, [&is_permute, &|form| is_var(form, &d[2].0)]), "{}", g.program);
    assert!(matches!(d[4].1.form(), ArrForm::Map(..)));
    assert_eq!(forms(&g.program.body, is_permute), 1);
    let ArrForm::Let(_, result) = g.program.body.form() else { panic!("a let") };
    assert!(matches!(result.form(), ArrForm::Tuple(us) if is_var(us[1].form(), &d[4].0)));
    // The permutation starts from zeros of the shape of what is bound, and not of the argument.
    let bound = &all[2].0;
    let ArrForm::ZipWith(_, permuted, _) = d[3].1.form() else { panic!("a sum") };
    let ArrForm::Permute(_, zeros, ..) = permuted.form() else { panic!("a permutation") };
    let ArrForm::Generate(shape, _) = zeros.form() else { panic!("zeros") };
    assert!(matches!(shape.form(), ExpForm::Shape(a) if a == bound));
}

/// What is recomputed has no `res`: each copy is used once.
#[test]
fn w4_recomputed() {
    use pullback_ad::accelerate::primal::{Keep, Options};
    let count = |keep| {
        let names = named(&derived(&w4(), Options { keep, ..TRIMMED }).program);
        (
            names.iter().filter(|name| *name == "res").count(),
            names.iter().filter(|name| *name == "tmp").count(),
        )
    };
    assert_eq!(count(Keep::Store), (2, 2));
    assert_eq!(count(Keep::Recompute), (0, 2));
    // The functions have two and five operations.
    assert_eq!(count(Keep::Below(3)), (1, 2));
    assert_eq!(count(Keep::Below(2)), (2, 2));
    assert_eq!(count(Keep::Below(20)), (0, 2));
    assert_eq!(count(Keep::Below(0)), (2, 2));
}

/// Of three sums, one of the other, the first and largest is computed again from the argument; the others are checkpoints. So are conditionals and
/// loops, and a sum that is one number.
#[test]
fn checkpoints_are_not_computed_again() {
    use pullback_ad::accelerate::primal::{Keep, Options};
    let count = |program: &Program, has: fn(&ArrForm<()>) -> bool| {
        let of = |keep| forms(&derived(program, Options { keep, ..TRIMMED }).program.body, has);
        (of(Keep::Recompute), of(Keep::Checkpoints))
    };
    let is_sum = |form: &ArrForm<()>| matches!(form, ArrForm::Sum(_));
    let b = Draft::default();
    let exps = |u: &Arr| sum(&b.map(|x| x.exp(), u));
    let three = b.program(array(real(), 3), |arg| exps(&exps(&exps(&var(arg)))));
    assert_eq!(count(&three, is_sum), (3, 4));
    let b = Draft::default();
    let one = b.program(vector(real()), |arg| b.map(|x| x.exp(), &sum(&b.map(|x| x.exp(), &var(arg)))));
    assert_eq!(count(&one, is_sum), (1, 1));
    let (before, after) = count(&w5(), |form| matches!(form, ArrForm::Cond(..)));
    assert_eq!(before, after);
    let b = Draft::default();
    let doubled = |state: &AVar| b.map(|x| x.sin(), &var(state));
    let looped = b.program(matrix(real()), |arg| {
        exps(&exps(&slice([Some(n(3)), None, None], &b.iterate(&n(3), &var(arg), |state, _| doubled(state)))))
    });
    let (before, after) = count(&looped, |form| matches!(form, ArrForm::Iterate(..)));
    assert_eq!(before, after);
    assert_eq!(count(&looped, is_sum), (2, 3));
}

/// W1: two contributions of the full shape to the argument are added as they are; those of a `zipWith` to its arguments may be too small.
#[test]
fn w1_the_shape_of_the_dual_phase() {
    let g = derived(&w1(), TRIMMED);
    let padded = |u: &Arr| matches!(u.form(), ArrForm::Generate(..));
    let all = bindings(&g.program);
    let d: Vec<&Arr> = all.iter().filter(|(a, _)| a.name() == "d").map(|(_, u)| u).collect();
    // The sum, the zip, two maps, and the variable in each.
    assert_eq!(d.iter().map(|u| padded(u)).collect::<Vec<_>>(), [false, false, true, false, true, false]);
    let ArrForm::Let(_, result) = g.program.body.form() else { panic!("a let") };
    let ArrForm::Tuple(us) = result.form() else { panic!("a pair") };
    let is_var = |form: &ArrForm<()>| matches!(form, ArrForm::Var(_));
    assert!(is_sum_of(&us[1], [&is_var, &is_var]), "{}", g.program);
    assert_eq!(forms(&g.program.body, is_permute), 0);
}

/// W5: the condition is evaluated in both phases, and each branch leaves its arrays.
#[test]
fn w5_the_shape_of_both_phases() {
    let g = derived(&w5(), TEXT);
    assert_eq!(forms(&g.program.body, |form| matches!(form, ArrForm::Cond(..))), 2);
    let all = bindings(&g.program);
    let conditions: Vec<&Arr> = all.iter().filter(|(a, _)| a.name() == "all").map(|(_, u)| u).collect();
    // The arrays of each branch in the first phase: the gather; the map, and its temporaries. The second phase: the adjoints of the variables.
    let sizes = |u: &Arr, skip: usize| -> Vec<usize> {
        let ArrForm::Cond(_, then, _) = u.form() else { panic!("a conditional") };
        let ArrForm::Let(_, result) = then.form() else { panic!("a let") };
        let ArrForm::Tuple(us) = result.form() else { panic!("a tuple") };
        let size = |u: &Arr| match u.form() {
            ArrForm::Tuple(us) => us.len(),
            _ => panic!("a tuple"),
        };
        us[skip..].iter().map(size).collect()
    };
    assert_eq!((sizes(conditions[0], 1), sizes(conditions[1], 0)), (vec![1, 2], vec![1, 1]));
}
