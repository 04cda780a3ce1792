//! The language: types, values, what happens outside of arrays, text.

use super::build::*;
use pullback_ad::bulk::a_core::{Exp, Extremum, IndexFn, Program, Term, Ty};
use pullback_ad::bulk::evaluate::evaluate;
use pullback_ad::bulk::sizes::{Size, SizeVar};
use pullback_prim::{Op, Prim, Scalar, ScalarValue};

/// The value of a term without inputs.
fn closed(make: impl FnOnce(&mut Draft) -> Term) -> Value {
    let mut d = Draft::default();
    let body = make(&mut d);
    value(&d.program(body), &[])
}
fn constant(shape: &[usize], xs: &[f64]) -> Term {
    term(Exp::Const(reals(shape, xs)))
}
fn integers(xs: &[i64]) -> Term {
    term(Exp::Const(Value::i64s(&[xs.len()], xs)))
}
fn ill_typed(exp: Exp, why: &str) {
    let error = Term::new(exp).expect_err("has no type");
    assert!(error.0.contains(why), "{error}");
}

#[test]
fn the_examples_of_the_text() {
    // 4.2.2: scatter [6] [1..9] (\[i]. [i div 2])
    let sent = closed(|d| {
        let xs = constant(&[9], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]);
        d.scatter(&[n(6)], &xs, 1, |_, i| vec![op2(Op::Div, &i[0], &int(2))])
    });
    assert_eq!(sent, reals(&[6], &[3.0, 7.0, 11.0, 15.0, 9.0, 0.0]));
    // Shape [5, 3, 6, 9] by tr_{3,0,1,2} is [9, 5, 3, 6]; element (i, j, k, l) of the result is (j, k, l, i) of the array.
    let xs: Vec<f64> = (0..810).map(f64::from).collect();
    let turned = closed(|_| transpose(&[3, 0, 1, 2], &constant(&[5, 3, 6, 9], &xs)));
    assert_eq!(turned.shape, [9, 5, 3, 6]);
    let at = |i: usize, j: usize, k: usize, l: usize| turned.elements[((i * 5 + j) * 3 + k) * 6 + l].as_f64();
    assert_eq!(at(8, 4, 2, 5), 809.0);
    assert_eq!(at(7, 1, 2, 3), ((3.0 + 2.0) * 6.0 + 3.0) * 9.0 + 7.0);
}

/// The first of equal ones, of -0 and 0 too; no number is no candidate, and neither is what nothing is worse than.
#[test]
fn where_the_largest_and_smallest_numbers_are() {
    let at = |xs: &[f64]| {
        let both = [arg_max, arg_min].map(|arg| closed(|_| arg(&constant(&[xs.len()], xs))));
        both.map(|at| at.elements[0].as_i64())
    };
    assert_eq!(at(&[1.0, 3.0, 0.0, 3.0, 0.0]), [1, 2]);
    assert_eq!(at(&[0.0, -0.0]), [0, 0]);
    assert_eq!(at(&[-0.0, 0.0]), [0, 0]);
    assert_eq!(at(&[f64::NAN, 1.0, f64::NAN, 1.0]), [1, 1]);
    assert_eq!(at(&[f64::NEG_INFINITY, f64::INFINITY]), [1, 0]);
    assert_eq!(at(&[f64::NEG_INFINITY, f64::NEG_INFINITY]), [-1, 0]);
    assert_eq!(at(&[f64::INFINITY, f64::INFINITY]), [0, -1]);
    assert_eq!(at(&[f64::NAN, f64::NAN]), [-1, -1]);
    assert_eq!(at(&[]), [-1, -1]);
    let columns = closed(|_| arg_max(&constant(&[2, 3], &[1.0, 5.0, 3.0, 4.0, 2.0, 3.0])));
    assert_eq!(columns, Value::i64s(&[3], &[1, 0, 0]));
    // More than 2^53: as integers.
    let large = (1 << 53) + 1;
    assert_eq!(closed(|_| arg_max(&integers(&[large - 1, large]))), Value::i64s(&[], &[1]));
    // 6 elements are read, and 3 are made.
    let mut d = Draft::default();
    let m = d.reals("m", &[n(2), n(3)]);
    let program = d.program(arg_max(&m));
    assert_eq!(cost(&program, &[reals(&[2, 3], &[0.0; 6])]), 9);
    assert_eq!(program.body.to_string(), "(argMax m1)");
}

/// Of what is sent to each place the counter of the largest or smallest number; of several, the least one. What is sent outside is dropped; -1 where there is no number.
#[test]
fn places_of_extrema_of_what_is_sent() {
    let at = |which, xs: Term, places: &[i64]| {
        closed(|d| {
            let f = d.function(1, |_, i| vec![index(&integers(places), i)]);
            arg_at(which, &[n(3)], &xs, f)
        })
    };
    let xs = || constant(&[6], &[3.0, 5.0, 5.0, f64::NAN, 2.0, 9.0]);
    let places = [0, 0, 0, 1, 2, 7];
    assert_eq!(at(Extremum::Max, xs(), &places), Value::i64s(&[3], &[1, -1, 4]));
    assert_eq!(at(Extremum::Min, xs(), &places), Value::i64s(&[3], &[0, -1, 4]));
    let worst = constant(&[2], &[f64::NEG_INFINITY, f64::INFINITY]);
    assert_eq!(at(Extremum::Max, worst.clone(), &[0, 1]), Value::i64s(&[3], &[-1, 1, -1]));
    assert_eq!(at(Extremum::Min, worst, &[0, 1]), Value::i64s(&[3], &[0, -1, -1]));
    // Columns of both rows meet: 9 is the largest in columns 2 and 0, and in column 1.
    let m = constant(&[2, 3], &[1.0, 2.0, 9.0, 9.0, 4.0, 3.0]);
    let of_columns = closed(|d| {
        let f = d.function(2, |_, i| vec![op2(Op::Mod, &i[1], &int(2)), int(0)]);
        arg_at(Extremum::Max, &[n(2), n(1)], &m, f)
    });
    assert_eq!(of_columns, Value::i64s(&[2, 1], &[0, 1]));
    // 4 elements are read, and 2 are made.
    let mut d = Draft::default();
    let x = d.reals("x", &[n(4)]);
    let f = d.function(1, |_, i| vec![i[0].clone()]);
    let program = d.program(arg_at(Extremum::Min, &[n(2)], &x, f));
    assert_eq!(cost(&program, &[one_to(4)]), 6);
    assert_eq!(program.body.to_string(), "(argMinAt [2] x1 (\\[j2]. [j2]))");
}

#[test]
fn operations_by_hand() {
    let m = || constant(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    assert_eq!(closed(|_| sum(&m())), reals(&[3], &[5.0, 7.0, 9.0]));
    assert_eq!(closed(|_| index(&m(), &[int(1)])), reals(&[3], &[4.0, 5.0, 6.0]));
    assert_eq!(closed(|_| index(&m(), &[int(1), int(2)])), reals(&[], &[6.0]));
    assert_eq!(closed(|_| transpose(&[1, 0], &m())), reals(&[3, 2], &[1.0, 4.0, 2.0, 5.0, 3.0, 6.0]));
    assert_eq!(closed(|_| reshape(&[n(3), n(2)], &m())), reals(&[3, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]));
    assert_eq!(closed(|_| replicate(&n(2), &real(7.0))), reals(&[2], &[7.0, 7.0]));
    assert_eq!(closed(|_| stack(&[real(7.0), real(8.0)])), reals(&[2], &[7.0, 8.0]));
    let columns = closed(|d| d.gather(&[n(3), n(2)], &m(), 2, |_, i| vec![i[1].clone(), i[0].clone()]));
    assert_eq!(columns, reals(&[3, 2], &[1.0, 4.0, 2.0, 5.0, 3.0, 6.0]));
    let rows = closed(|d| d.gather(&[n(2), n(3)], &m(), 1, |_, i| vec![sub(&int(1), &i[0])]));
    assert_eq!(rows, reals(&[2, 3], &[4.0, 5.0, 6.0, 1.0, 2.0, 3.0]));
    let one_hot = closed(|d| d.scatter(&[n(3)], &real(5.0), 0, |_, _| vec![int(1)]));
    assert_eq!(one_hot, reals(&[3], &[0.0, 5.0, 0.0]));
    let squares = closed(|d| d.build(&n(4), |_, i| mul(&i, &i)));
    assert_eq!(squares, Value::i64s(&[4], &[0, 1, 4, 9]));
    let lazy =
        closed(|_| cond(&op2(Op::Lt, &int(1), &int(2)), &real(1.0), &op2(Op::Div, &real(1.0), &real(0.0))));
    assert_eq!(lazy, reals(&[], &[1.0]));
    let twice = closed(|d| d.let_(&real(3.0), |_, x| mul(&x, &x)));
    assert_eq!(twice, reals(&[], &[9.0]));
}

#[test]
fn nothing_stops_outside_of_arrays() {
    let xs = || constant(&[3], &[1.0, 2.0, 3.0]);
    let matrix = || constant(&[2, 2], &[1.0, 2.0, 3.0, 4.0]);
    for at in [-1, 3, i64::MAX, i64::MIN] {
        assert_eq!(closed(|_| index(&xs(), &[int(at)])), reals(&[], &[0.0]), "{at}");
        assert_eq!(closed(|_| index(&matrix(), &[int(at)])), reals(&[2], &[0.0, 0.0]), "a row at {at}");
        assert_eq!(closed(|_| index(&matrix(), &[int(0), int(at)])), reals(&[], &[0.0]), "a column at {at}");
        assert_eq!(closed(|_| index(&integers(&[7]), &[int(at)])), Value::i64s(&[], &[0]));
        let sent = closed(|d| d.scatter(&[n(2)], &xs(), 1, |_, i| vec![add(&i[0], &int(at))]));
        let expected = if at == -1 { [2.0, 3.0] } else { [0.0, 0.0] };
        // i64::MAX + 1 wraps round, and stays outside.
        assert_eq!(sent, reals(&[2], &expected), "{at}");
    }
    for op in [Op::Div, Op::Mod, Op::Quot, Op::Rem] {
        assert_eq!(closed(|_| op2(op, &int(5), &int(0))), Value::i64s(&[], &[0]), "{op:?}");
    }
    assert_eq!(closed(|_| op2(Op::Pow, &int(5), &int(-1))), Value::i64s(&[], &[0]));
    assert_eq!(closed(|_| op2(Op::Div, &real(1.0), &real(0.0))), reals(&[], &[f64::INFINITY]));
}

#[test]
fn sizes_may_be_zero() {
    assert_eq!(closed(|d| d.build(&n(0), |_, _| constant(&[2], &[1.0, 2.0]))), reals(&[0, 2], &[]));
    assert_eq!(closed(|_| sum(&replicate(&n(0), &constant(&[3], &[1.0; 3])))), reals(&[3], &[0.0; 3]));
    let empty = || replicate(&n(0), &real(1.0));
    let read = closed(|d| d.gather(&[n(2)], &empty(), 1, |_, i| vec![i[0].clone()]));
    assert_eq!(read, reals(&[2], &[0.0, 0.0]));
    let sent = closed(|d| d.scatter(&[n(0)], &constant(&[2], &[1.0; 2]), 1, |_, i| vec![i[0].clone()]));
    assert_eq!(sent, reals(&[0], &[]));
    assert_eq!(closed(|_| transpose(&[1, 0], &replicate(&n(2), &empty()))), reals(&[0, 2], &[]));
    assert_eq!(closed(|_| sum(&transpose(&[1, 0], &replicate(&n(2), &empty())))), reals(&[2], &[0.0; 2]));
}

/// Each rule of Figs. 4.8 and 4.9, where it does not apply.
#[test]
fn terms_without_a_type_are_refused() {
    let xs = constant(&[3], &[1.0, 2.0, 3.0]);
    let yes = Term::scalar(ScalarValue::Bool(true));
    let mut d = Draft::default();
    let x = d.names.fresh("x", Ty::new(vec![n(2)], Scalar::F64));
    ill_typed(Exp::Let(x, xs.clone(), real(1.0)), "a bound variable");
    ill_typed(Exp::Cond(int(1), real(1.0), real(2.0)), "a condition");
    ill_typed(Exp::Cond(yes.clone(), real(1.0), int(2)), "the second alternative");
    ill_typed(Exp::Op(Prim::Op(Op::Add, Scalar::F64), vec![xs.clone(), real(1.0)]), "an argument");
    ill_typed(Exp::Op(Prim::Op(Op::Add, Scalar::F64), vec![xs.clone()]), "takes 2 arguments");
    ill_typed(Exp::Op(Prim::Op(Op::Sin, Scalar::I64), vec![int(1)]), "takes");
    ill_typed(Exp::Index(xs.clone(), vec![int(0), int(0)]), "more components");
    ill_typed(Exp::Index(xs.clone(), vec![real(0.0)]), "a component of an index");
    ill_typed(Exp::SumOuter(real(1.0)), "nothing to sum");
    ill_typed(Exp::SumOuter(replicate(&n(2), &yes)), "truth values");
    ill_typed(Exp::ArgOuter(Extremum::Max, real(1.0)), "nothing to choose from");
    ill_typed(Exp::ArgOuter(Extremum::Min, replicate(&n(2), &yes)), "truth values");
    ill_typed(Exp::Stack(Vec::new()), "without elements");
    ill_typed(Exp::Stack(vec![real(1.0), int(1)]), "an element");
    ill_typed(Exp::Transpose(vec![0, 2], xs.clone()), "no permutation");
    ill_typed(Exp::Transpose(vec![1, 0], xs.clone()), "no permutation");
    ill_typed(Exp::Reshape(vec![n(2)], xs.clone()), "a shape of 2 elements");
    let i = d.names.fresh("i", Ty::new(Vec::new(), Scalar::I32));
    ill_typed(Exp::Build1(n(2), i, real(1.0)), "the variable of `build1`");
    let f = |d: &mut Draft| d.function(1, |_, i| vec![i[0].clone()]);
    ill_typed(Exp::Gather(vec![n(2), n(4)], constant(&[3, 5], &[0.0; 15]), f(&mut d)), "do not end");
    ill_typed(Exp::Scatter(vec![n(2), n(4)], constant(&[3, 5], &[0.0; 15]), f(&mut d)), "do not end");
    ill_typed(Exp::Scatter(vec![n(2)], replicate(&n(2), &yes), f(&mut d)), "truth values");
    let arg = |sh: &[Size], t: Term, f: IndexFn| Exp::ArgScatter(Extremum::Max, sh.to_vec(), t, f);
    ill_typed(arg(&[n(2)], replicate(&n(2), &yes), f(&mut d)), "truth values");
    ill_typed(arg(&[n(2)], constant(&[3, 2], &[0.0; 6]), f(&mut d)), "an index of each dimension");
    ill_typed(arg(&[n(2), n(2)], xs.clone(), f(&mut d)), "an index of each dimension");
    let at_once = IndexFn { params: Vec::new(), index: vec![int(0)] };
    ill_typed(arg(&[n(2)], real(1.0), at_once), "an index of each dimension");
    let no_index = IndexFn { params: Vec::new(), index: vec![real(0.0)] };
    ill_typed(Exp::Gather(Vec::new(), xs, no_index), "a component of an index");
}

/// T16: a size can only be one of the inputs', or computed from them. An operation like `filter` has no type to give.
#[test]
fn sizes_are_polynomials_over_those_of_inputs() {
    let mut d = Draft::default();
    let (p, q) = (d.size("p"), d.size("q"));
    let a = d.reals("a", &[p.clone(), q.clone()]);
    let flat = reshape(&[q.times(&p)], &a);
    ill_typed(Exp::Reshape(vec![p.plus(&q)], a.clone()), "a shape of");
    ill_typed(Exp::Index(replicate(&p, &real(1.0)), vec![real(1.0)]), "component");
    let once_more = d.build(&p.plus(&n(1)).minus(&n(1)), |_, i| to_real(&i));
    let body = total(&add(&replicate(&q, &once_more), &transpose(&[1, 0], &reshape(&[p, q], &flat))));
    let program = d.program(body);
    // 0 + 0 + 1 + 1, and all elements.
    assert_eq!(value(&program, &[reals(&[2, 2], &[1.0, 2.0, 3.0, 4.0])]), reals(&[], &[12.0]));
    let unknown = replicate(&Size::var(SizeVar(7)), &real(1.0));
    let why =
        Program { sizes: vec!["n".into()], inputs: Vec::new(), body: unknown, names: program.names.clone() };
    assert!(why.check().is_err_and(|why| why.0.contains("has no name")));
}

#[test]
fn sizes_are_compared_as_polynomials() {
    let (p, q) = (Size::var(SizeVar(0)), Size::var(SizeVar(1)));
    let square = p.plus(&q).times(&p.plus(&q));
    let parts = p.times(&p).plus(&q.times(&q)).plus(&n(2).times(&p).times(&q));
    assert_eq!(square, parts);
    assert_eq!(square.minus(&parts), n(0));
    assert_eq!(p.minus(&q).as_constant(), None);
    assert!(p.times(&q).plus(&n(1)).is_never_negative() && !p.minus(&n(1)).is_never_negative());
    assert_eq!(p.times(&q).minus(&n(3)).plus(&p).to_string(), "n0 + n0*n1 - 3");
    let sizes = [(SizeVar(0), i64::MAX), (SizeVar(1), 2)].into_iter().collect();
    assert_eq!(p.times(&q).value(&sizes), None, "too large");
    assert_eq!(p.minus(&q).value(&sizes), Some(i64::MAX - 2));
}

#[test]
fn programs_are_checked() {
    let mut d = Draft::default();
    let x = d.reals("x", &[]);
    let y = d.names.fresh("y", Ty::new(Vec::new(), Scalar::F64));
    let program = |d: &Draft, body: Term| Program {
        sizes: Vec::new(),
        inputs: d.inputs.clone(),
        body,
        names: d.names.clone(),
    };
    let free = program(&d, Term::var(&y)).check();
    assert!(free.is_err_and(|why| why.0.contains("not bound")));
    let once = term(Exp::Let(y.clone(), x.clone(), Term::var(&y)));
    let twice = program(&d, add(&once, &once)).check();
    assert!(twice.is_err_and(|why| why.0.contains("bound twice")));
    let escaped = program(&d, add(&once, &Term::var(&y))).check();
    assert!(escaped.is_err_and(|why| why.0.contains("outside of where it is bound")));
    assert_eq!(program(&d, add(&once, &x)).check(), Ok(()));
}

#[test]
fn arguments_are_checked() {
    let mut d = Draft::default();
    let k = d.size("n");
    let a = d.reals("a", std::slice::from_ref(&k));
    d.reals("b", &[k.clone(), n(2)]);
    let body = add(&sum(&a), &sum(&replicate(&k.minus(&n(2)), &real(1.0))));
    let program = d.program(body);
    let refused = |arguments: &[Value], why: &str| {
        let error = evaluate(&program, arguments).expect_err("does not fit");
        assert!(error.0.contains(why), "{error}");
    };
    refused(&[one_to(3)], "takes 2 arguments");
    refused(&[one_to(3), reals(&[2, 2], &[0.0; 4])], "input `b`");
    refused(&[one_to(3), reals(&[3], &[0.0; 3])], "input `b`");
    refused(&[one_to(3), Value::i64s(&[3, 2], &[0; 6])], "input `b`");
    refused(&[one_to(1), reals(&[1, 2], &[0.0; 2])], "there is no");
    assert_eq!(value(&program, &[one_to(3), reals(&[3, 2], &[0.0; 6])]), reals(&[], &[7.0]));
}

#[test]
fn a_program_as_text() {
    let mut d = Draft::default();
    let k = d.size("n");
    let a = d.reals("a", std::slice::from_ref(&k));
    let body = d.build(&k, |_, i| {
        let back = sub(&sub(&Term::size(&k), &int(1)), &i);
        mul(&index(&a, &[i]), &index(&a, &[back]))
    });
    let text = d.program(sum(&body)).to_string();
    let expected = "size n0 = n\ninput a1 : Array [n0] f64\n\
        (sumOuter (build1 (n0) (\\i2. (mul.f64 (index a1 [i2]) (index a1 [(sub.i64 (sub.i64 (n0) 1i64) i2)])))))\n";
    assert_eq!(text, expected);
}
