//! The properties of derivatives hold on random programs, and fail if an error is put into a derivative from outside; a pure waste of
//! work is found by the cost property and by no other. Errors of the rules themselves are in the folder `mutants`, with the tests here.

use pullback_ad::fast_chad::{Config, Variant, vjp, vjp_with};
use pullback_core::{Atom, Body, Builder, Exp, Lam, Program};
use pullback_prim::{Op, Prim};
use pullback_testkit::properties::{Property, Reverse, Stop, Subject, Verdict, case_of_seed, many_with};
use pullback_testkit::{generate, number, on_all_processors};

/// How many random programs an error may survive.
const PROGRAMS: u64 = 2_000;

/// The first seed on which one of the properties fails, and how.
fn failure(reverse: Reverse<'_>, properties: &[Property], programs: u64) -> Option<(u64, Property, String)> {
    let generator = generate::Config::default();
    (0..programs).find_map(|seed| {
        let case = case_of_seed(seed, &generator);
        let subject = Subject::new(&case, reverse);
        properties.iter().copied().find_map(|p| {
            let run = std::panic::AssertUnwindSafe(|| p.check_on(&subject));
            // An error that makes the transformation panic is found too.
            let verdict = std::panic::catch_unwind(run).unwrap_or(Verdict::Fails("panic".into()));
            if let Verdict::Fails(reason) = verdict { Some((seed, p, reason)) } else { None }
        })
    })
}

/// The rules of reverse mode, for errors in each of them; the property tests of all programs run many more.
#[test]
fn derivatives_of_random_programs_are_right() {
    let found = failure(&vjp, &[Property::Adjoint, Property::Checkpoints], number("COUNT", 50));
    assert!(found.is_none(), "{found:?}");
}

#[test]
fn many_directions_agree_with_one() {
    let generator = generate::Config::default();
    for seed in 0..number("COUNT", 50) {
        let check = many_with(&case_of_seed(seed, &generator), &vjp, &|_, lam, _| lam);
        if let Err(Stop::Fail(reason)) = check {
            panic!("seed {seed}: {reason}");
        }
    }
}

/// An error in a derivative.
#[derive(Clone, Copy, Debug)]
enum Error {
    SumForDifference,
    SumForProduct,
    QuotientTurned,
    OneTermOfSums,
    AddedNowhere,
    NotReversed,
    FirstElement,
}

impl Error {
    const ALL: [Error; 7] = [
        Error::SumForDifference,
        Error::SumForProduct,
        Error::QuotientTurned,
        Error::OneTermOfSums,
        Error::AddedNowhere,
        Error::NotReversed,
        Error::FirstElement,
    ];

    /// Puts the error into all statements that can have it.
    fn put(self, body: &mut Body) {
        for stm in &mut body.stms {
            match (self, &mut stm.exp) {
                (Error::SumForDifference, Exp::Prim(Prim::Op(op @ Op::Sub, s), _)) if s.is_float() => {
                    *op = Op::Add
                }
                (Error::SumForProduct, Exp::Prim(Prim::Op(op @ Op::Mul, s), _)) if s.is_float() => {
                    *op = Op::Add
                }
                (Error::QuotientTurned, Exp::Prim(Prim::Op(Op::Div, s), args)) if s.is_float() => {
                    args.swap(0, 1)
                }
                (Error::OneTermOfSums, exp @ Exp::Plus(..)) => {
                    if let Exp::Plus(one, _) = *exp {
                        *exp = Exp::Atom(one);
                    }
                }
                (Error::AddedNowhere, Exp::AccAdd(_, ix, _)) if !ix.is_empty() => ix[0] = Atom::i64(-1),
                (Error::NotReversed, exp @ Exp::Reverse(_)) => {
                    if let Exp::Reverse(array) = *exp {
                        *exp = Exp::Atom(array);
                    }
                }
                (Error::FirstElement, Exp::Index(_, ix)) => ix[0] = Atom::i64(0),
                _ => {}
            }
            for inner in stm.exp.bodies_mut() {
                self.put(inner.body);
            }
        }
    }
}

#[test]
fn errors_in_derivatives_are_found() {
    let survives = |error: Error| {
        let reverse = |q: &mut Program, l: &Lam, w: &[bool]| {
            let mut derivative = vjp(q, l, w)?;
            error.put(&mut derivative.body);
            Ok(derivative)
        };
        let found = failure(&reverse, &[Property::Adjoint, Property::Checkpoints], PROGRAMS);
        println!("{error:?}: {found:?}");
        found.is_none().then_some(error)
    };
    let survivors: Vec<Error> = on_all_processors(Error::ALL, survives).into_iter().flatten().collect();
    assert!(survivors.is_empty(), "not found in {PROGRAMS} programs: {survivors:?}");
}

/// The results of many directions, in the reverse order of the directions.
fn turned(program: &mut Program, lam: Lam, results: usize) -> Lam {
    let mut b = Builder::new(program);
    b.open();
    lam.body.stms.into_iter().for_each(|stm| b.emit_stm(stm));
    let mut result = lam.body.result;
    for stack in &mut result[results..] {
        if b.ty(*stack).rank() > 0 {
            *stack = b.emit(Exp::Reverse(*stack), "turned");
        }
    }
    Lam { params: lam.params, body: b.close(result) }
}

#[test]
fn directions_in_another_order_are_found() {
    let generator = generate::Config::default();
    let found = (0..400).find(|&seed| {
        let check = many_with(&case_of_seed(seed, &generator), &vjp, &turned);
        matches!(check, Err(Stop::Fail(_)))
    });
    assert!(found.is_some(), "not found in 400 programs");
}

#[test]
fn waste_is_found_by_cost_only() {
    let one_hot = Config { variant: Variant::OneHot, ..Config::default() };
    let wasteful = |q: &mut Program, l: &Lam, w: &[bool]| vjp_with(q, l, w, &one_hot);
    let values = [Property::Primal, Property::Adjoint, Property::Linear];
    assert_eq!(failure(&wasteful, &values, 150), None, "the one-hot rule is right, only dear");
    let found = failure(&wasteful, &[Property::Cost], PROGRAMS);
    println!("{found:?}");
    assert!(found.is_some(), "{PROGRAMS} programs do not show that an array of zeros per index is too dear");
}
