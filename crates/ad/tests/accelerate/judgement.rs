//! The judgement of the language: what has no type is no term, and a program binds what it reads.

use super::build::{Draft, r, real, vector};
use pullback_ad::accelerate::language::{Arr, ArrForm, ArrTy, Exp, ExpForm, Fun, Names, Program, Ty};
use pullback_prim::{Op, Prim, Scalar, ScalarValue};

fn array(names: &mut Names, rank: usize) -> Arr {
    Arr::var(&names.fresh("a", ArrTy::Array(Ty::Scalar(Scalar::F64), rank)))
}

fn constant(names: &mut Names, from: Ty, body: Exp) -> Fun {
    Fun { param: names.fresh("x", from), body }
}

#[test]
fn expressions_without_a_type_are_refused() {
    let mut names = Names::default();
    let a = names.fresh("a", ArrTy::Array(Ty::Scalar(Scalar::F64), 2));
    let pair = names.fresh("p", ArrTy::Tuple(Vec::new()));
    let (one, yes) = (Exp::i64(1), Exp::bool(true));
    let x = names.fresh("x", Ty::Scalar(Scalar::F64));
    let add = Prim::Op(Op::Add, Scalar::F64);
    let forms = [
        ExpForm::Prim(add, vec![one.clone(), one.clone()]),
        ExpForm::Prim(add, vec![Exp::constant(ScalarValue::F64(1.0))]),
        ExpForm::Proj(one.clone(), 0),
        ExpForm::Proj(Exp::tuple(vec![one.clone()]), 1),
        ExpForm::Index(a.clone(), Exp::tuple(vec![one.clone()])),
        ExpForm::Index(a, one.clone()),
        ExpForm::Index(pair.clone(), Exp::tuple(Vec::new())),
        ExpForm::Shape(pair),
        ExpForm::Cond(one.clone(), one.clone(), one.clone()),
        ExpForm::Cond(yes.clone(), one.clone(), yes),
        ExpForm::Let(vec![(x, one.clone())], one),
    ];
    for form in forms {
        assert!(Exp::new(form.clone()).is_err(), "{form:?}");
    }
}

#[test]
fn array_terms_without_a_type_are_refused() {
    let mut names = Names::default();
    let (u, v, w) = (array(&mut names, 0), array(&mut names, 1), array(&mut names, 2));
    let f64 = Ty::Scalar(Scalar::F64);
    let zero = Exp::constant(ScalarValue::F64(0.0));
    let one = constant(&mut names, f64.clone(), zero.clone());
    let of_pair = constant(&mut names, Ty::Tuple(vec![f64.clone(), f64.clone()]), zero.clone());
    let of_index = constant(&mut names, Ty::index(1), Exp::tuple(vec![Exp::i64(0)]));
    let forms = [
        ArrForm::Use(vec![ScalarValue::F64(1.0)], vec![2], Scalar::F64),
        ArrForm::Use(vec![ScalarValue::I64(1)], vec![1], Scalar::F64),
        ArrForm::Proj(v.clone(), 0),
        ArrForm::Reshape(zero.clone(), v.clone()),
        ArrForm::Replicate(vec![Some(Exp::i64(1))], v.clone()),
        ArrForm::Replicate(vec![None, Some(zero.clone())], v.clone()),
        ArrForm::Slice(vec![None], w.clone()),
        ArrForm::Generate(Exp::tuple(vec![Exp::i64(1)]), one.clone()),
        ArrForm::Map(of_pair.clone(), v.clone()),
        ArrForm::ZipWith(of_pair.clone(), v.clone(), w.clone()),
        ArrForm::ZipWith(one.clone(), v.clone(), v.clone()),
        ArrForm::Sum(u.clone()),
        ArrForm::Foldl(one, zero.clone(), v.clone()),
        ArrForm::Foldl(of_pair.clone(), Exp::i64(0), v.clone()),
        ArrForm::Fold1(of_pair.clone(), u),
        ArrForm::Scanl(of_pair.clone(), Exp::i64(0), v.clone()),
        ArrForm::Permute(of_pair, v.clone(), of_index.clone(), v.clone()),
        ArrForm::Backpermute(Exp::tuple(vec![Exp::i64(1)]), of_index, w.clone()),
        ArrForm::Cond(Exp::i64(1), v.clone(), v.clone()),
        ArrForm::Cond(Exp::bool(true), v.clone(), w),
        ArrForm::Let(vec![(names.fresh("b", ArrTy::Array(f64, 0)), v.clone())], v),
    ];
    for form in forms {
        assert!(Arr::new(form.clone()).is_err(), "{form:?}");
    }
}

/// An expression in an array term is closed, but for arrays: so no scalar function holds what is parallel.
#[test]
fn programs_bind_what_they_read() {
    let b = Draft::default();
    let program = b.program(vector(real()), |a| b.map(|x| x * r(2.0), &Arr::var(a)));
    assert!(program.check().is_ok());
    let Program { param, names, .. } = program;
    let mut names = names;
    let other = names.fresh("b", ArrTy::Array(Ty::Scalar(Scalar::F64), 1));
    let free = names.fresh("x", Ty::Scalar(Scalar::F64));
    let f = constant(&mut names, Ty::Scalar(Scalar::F64), Exp::var(&free));
    let open = Arr::new(ArrForm::Map(f, Arr::var(&param))).expect("it has a type");
    let read = Exp::index(&other, Exp::tuple(vec![Exp::i64(0)])).expect("it has a type");
    let f = constant(&mut names, Ty::Scalar(Scalar::F64), read);
    let reads = Arr::new(ArrForm::Map(f, Arr::var(&param))).expect("it has a type");
    let twice = Arr::lets(vec![(param.clone(), Arr::var(&param))], Arr::var(&param)).expect("it has a type");
    for body in [Arr::var(&other), open, reads.clone(), twice] {
        assert!(Program::new(param.clone(), Vec::new(), body, names.clone()).is_err());
    }
    assert!(Program::new(param, vec![other], reads, names).is_ok());
}
