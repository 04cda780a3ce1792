//! `many`: derivatives in many directions at once are those in one direction after the other.
//!
//! Both modes, with two directions and with none: the results of the program bit for bit, every element of a stack up to
//! rounding, and a shape that says how many there are.

use super::{Case, Check, Reverse, Stop, Subject, close, fail, finite, options, rng_of, stopped};
use crate::flat::random_cotangent;
use pullback_ad::many::separate;
use pullback_core::check::{Rules, check};
use pullback_core::rename::{Subst, copy_lam};
use pullback_core::{Array, Atom, Buffer, Fun, FunId, Lam, Program, Value};
use pullback_interp::core::Compiled;

/// A derivative in one direction and the same in many, as functions of one program.
struct Pair {
    program: Program,
    one: FunId,
    many: FunId,
}

/// A change of a derivative in many directions; the number tells how many of its results are those of the program.
pub type Change<'a> = &'a dyn Fn(&mut Program, Lam, usize) -> Lam;

pub(super) fn many(of: &Subject<'_>) -> Check {
    changed(of, &|_, lam, _| lam)
}

/// The property of derivatives that are changed: it fails if that makes them wrong.
pub fn many_with(case: &Case, reverse: Reverse<'_>, change: Change<'_>) -> Check {
    changed(&Subject::new(case, reverse), change)
}

fn changed(of: &Subject<'_>, change: Change<'_>) -> Check {
    let case = of.case;
    let r = of.reversed()?;
    let mut rng = rng_of(case);
    let fun = r.program.funs[r.id].clone();
    let (n, m) = (case.args.len(), r.results.len());
    let pair =
        |name: &str, program: &Program, one: Lam, many: &dyn Fn(&mut Program, Lam) -> Result<Lam, Stop>| {
            let mut program = program.clone();
            let copy = copy_lam(&mut program, &one, &Subst::new());
            let alone = copy_lam(&mut program, &one, &Subst::new());
            let one = add(&mut program, &format!("{name}_one"), alone);
            let many = many(&mut program, copy)?;
            let many = change(&mut program, many, m);
            let many = add(&mut program, &format!("{name}_many"), many);
            match check(&program, Rules::NO_AD) {
                Ok(()) => Ok(Pair { program, one, many }),
                Err(e) => fail(format!("the derivative in many directions is malformed: {e}")),
            }
        };
    let backwards = Lam { params: fun.params, body: fun.body };
    let backwards = pair("reverse", &r.program, backwards, &|p, one| {
        Ok(separate(p, one, n, m, Atom::i64(DIRECTIONS as i64)))
    })?;
    let bars: Vec<Vec<Value>> = (0..DIRECTIONS).map(|_| r.cotangents(&mut rng)).collect();
    compare(case, &backwards, m, &bars)?;

    let mut program = r.program.clone();
    let fun = program.funs[case.main].clone();
    let source = Lam { params: fun.params, body: fun.body };
    let forward = pullback_ad::forward::ALGORITHM;
    let Some(jvp_many) = forward.many else {
        return fail("forward mode has no way of many directions".into());
    };
    let wanted = vec![true; n];
    let one = (forward.transform)(&mut program, &source, &wanted)?;
    let forwards = pair("forward", &program, one, &|p, _| {
        Ok(jvp_many(p, &source, &wanted, Atom::i64(DIRECTIONS as i64))?)
    })?;
    let dots: Vec<Vec<Value>> = (0..DIRECTIONS)
        .map(|_| {
            let values = case.args.iter().zip(&r.active_params);
            values.filter_map(|(v, active)| random_cotangent(v, *active, &mut rng)).collect()
        })
        .collect();
    compare(case, &forwards, m, &dots)
}

const DIRECTIONS: usize = 2;

fn add(program: &mut Program, name: &str, lam: Lam) -> FunId {
    let results = program.body_types(&lam.body);
    program.funs.push(Fun { name: name.into(), params: lam.params, body: lam.body, results, entry: None })
}

fn compare(case: &Case, pair: &Pair, results: usize, directions: &[Vec<Value>]) -> Check {
    let code = Compiled::new(&pair.program);
    let run = |f: FunId, what: &str, more: &[Value]| {
        let all: Vec<Value> = case.args.iter().chain(more).cloned().collect();
        code.run(f, &all, &options()).map(|o| o.results).map_err(|e| stopped(case, what, e))
    };
    let columns = directions.first().map_or(0, Vec::len);
    let stacks: Option<Vec<Value>> =
        (0..columns).map(|k| stack(&directions.iter().map(|d| &d[k]).collect::<Vec<_>>())).collect();
    let Some(stacks) = stacks else { return fail("directions of different shapes".into()) };
    let at_once = run(pair.many, "the derivative in many directions", &stacks)?;
    for (i, direction) in directions.iter().enumerate() {
        let alone = run(pair.one, "the derivative", direction)?;
        if alone[..results] != at_once[..results] {
            return fail("the results of the program differ in many directions".into());
        }
        for (one, all) in alone[results..].iter().zip(&at_once[results..]) {
            let expected = one.floats();
            finite(&expected)?;
            let Some(found) = element(all, i, directions.len()) else {
                return fail(format!("not a stack of {}: {all:?}", directions.len()));
            };
            let found = found.floats();
            if found.len() != expected.len() {
                return fail(format!("direction {i}: {} numbers instead of {}", found.len(), expected.len()));
            }
            let size = expected.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
            for (x, y) in expected.iter().zip(&found) {
                close(&format!("direction {i} alone and among others"), *x, *y, size, 1e-12)?;
            }
        }
    }
    Ok(())
}

/// Values side by side; see `Type::stacked`. `None`: they have different structure.
fn stack(values: &[&Value]) -> Option<Value> {
    match values.first()? {
        Value::Tuple(items) => {
            let part = |i: usize| {
                let parts: Option<Vec<&Value>> =
                    values.iter().map(|v| if let Value::Tuple(vs) = v { vs.get(i) } else { None }).collect();
                stack(&parts?)
            };
            Some(Value::Tuple((0..items.len()).map(part).collect::<Option<_>>()?))
        }
        Value::Array(first) => {
            let mut data = Buffer::with_capacity(first.data.scalar(), values.len() * first.count());
            for value in values {
                let Value::Array(a) = value else { return None };
                a.elements().for_each(|x| data.push(x));
            }
            let shape = std::iter::once(values.len()).chain(first.shape.iter().copied()).collect();
            Some(Value::Array(Array::new(shape, data)))
        }
        first => {
            let scalar = if let Value::Scalar(s) = first { Some(s.scalar()) } else { None };
            let mut data = Buffer::with_capacity(scalar, values.len());
            values.iter().for_each(|v| data.push((*v).clone()));
            Some(Value::Array(Array::new(vec![values.len()], data)))
        }
    }
}

/// Element `i` of a stack of `n`.
fn element(stack: &Value, i: usize, n: usize) -> Option<Value> {
    match stack {
        Value::Tuple(items) => {
            Some(Value::Tuple(items.iter().map(|v| element(v, i, n)).collect::<Option<_>>()?))
        }
        Value::Array(a) if a.shape.first() == Some(&n) => Some(a.at(&[i])),
        _ => None,
    }
}
