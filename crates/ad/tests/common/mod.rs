//! Reverse mode against the interpreter's independent dual numbers.

#![allow(dead_code, reason = "each test file uses a part")]

use pullback_ad::contract::Unsupported;
use pullback_ad::fast_chad::{Accumulate, Config, Tape, vjp_with};
use pullback_base::SourceMap;
use pullback_base::Symbol;
use pullback_core::check::{Rules, check};
use pullback_core::print::print;
use pullback_core::{Array, Buffer, Fun, FunId, Lam, Program, Type, Value, Var, read};
use pullback_interp::core::{Counts, Options};
use pullback_prim::Scalar;
use std::sync::Arc;

pub(crate) fn parse(text: &str) -> Program {
    let mut sources = SourceMap::new();
    let file = sources.add("test.core", text);
    let program = read(file, text);
    program.unwrap_or_else(|d| panic!("{}", d.render(&sources)))
}

pub(crate) fn first(program: &Program) -> FunId {
    program.funs.ids().next().expect("a function")
}

/// Adds the reverse derivative of a function as a function.
pub(crate) fn add_vjp(program: &mut Program, f: FunId, config: &Config) -> Result<FunId, Unsupported> {
    let fun = program.funs[f].clone();
    let lam = Lam { params: fun.params, body: fun.body };
    let wanted = vec![true; lam.params.len()];
    let derived = vjp_with(program, &lam, &wanted, config)?;
    Ok(add_function(program, &format!("{}_vjp", fun.name), derived))
}

/// Adds the reverse derivative of a function by bulk dual numbers.
pub(crate) fn add_bulk(program: &mut Program, f: FunId) -> Result<FunId, Unsupported> {
    let fun = program.funs[f].clone();
    let lam = Lam { params: fun.params, body: fun.body };
    let wanted = vec![true; lam.params.len()];
    let derived = pullback_ad::bulk::from_core::vjp(program, &lam, &wanted)?;
    Ok(add_function(program, &format!("{}_bulk", fun.name), derived))
}

pub(crate) fn add_function(program: &mut Program, name: &str, lam: Lam) -> FunId {
    let results = program.body_types(&lam.body);
    let Lam { params, body } = lam;
    let id = program.funs.push(Fun { name: Symbol::new(name), params, body, results, entry: None });
    if let Err(e) = check(program, Rules::NO_AD) {
        panic!("ill-formed derivative: {}\n{}", e.to_diagnostic().message, print(program));
    }
    id
}

/// A small generator of numbers (the usual multiplier of Knuth's MMIX).
pub(crate) struct Numbers(pub(crate) u64);
impl Numbers {
    pub(crate) fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 33) as f64) / f64::from(1u32 << 31) * 2.0 - 1.0
    }
}

/// A random tangent (or cotangent) of a value.
pub(crate) fn direction(program: &Program, ty: &Type, value: &Value, r: &mut Numbers) -> Option<Value> {
    if !program.is_active(ty) {
        return None;
    }
    let unit = Value::Tuple(Vec::new());
    Some(match (ty, value) {
        (Type::Scalar(Scalar::F32), _) => Value::Scalar(Scalar::F32.from_f64(r.next())),
        (Type::Scalar(_), _) => Value::f64(r.next()),
        (Type::Tuple(ts), Value::Tuple(vs)) => Value::Tuple(
            ts.iter()
                .zip(vs)
                .map(|(t, v)| direction(program, t, v, r).unwrap_or_else(|| unit.clone()))
                .collect(),
        ),
        (Type::Array(_), Value::Array(a)) => {
            let base = ty.base();
            let mut data = Buffer::with_capacity(base.scalar(), a.count());
            for v in a.elements() {
                data.push(direction(program, base, &v, r).expect("active elements"));
            }
            Value::Array(Array::new(a.shape.clone(), data))
        }
        (ty, Value::Sum(k, fields)) => {
            let types = program.variants(ty).expect("a sum")[*k].fields.clone();
            let parts = types.iter().zip(fields.iter());
            let parts = parts.map(|(t, v)| direction(program, t, v, r).unwrap_or_else(|| unit.clone()));
            Value::Sum(k + 1, Arc::new(parts.collect()))
        }
        (ty, v) => panic!("{v:?} of type {ty:?}"),
    })
}

/// The inner product of two tangents; `#none` is zero.
pub(crate) fn inner(x: &Value, y: &Value) -> f64 {
    match (x, y) {
        (Value::Scalar(a), Value::Scalar(b)) => a.as_f64() * b.as_f64(),
        (Value::Tuple(a), Value::Tuple(b)) => a.iter().zip(b).map(|(a, b)| inner(a, b)).sum(),
        (Value::Array(a), Value::Array(b)) => {
            assert_eq!(a.count(), b.count(), "sizes of a tangent and a cotangent");
            a.elements().zip(b.elements()).map(|(a, b)| inner(&a, &b)).sum()
        }
        (Value::Sum(0, _), Value::Sum(..)) | (Value::Sum(..), Value::Sum(0, _)) => 0.0,
        (Value::Sum(j, a), Value::Sum(k, b)) => {
            assert_eq!(j, k, "alternatives of a tangent and a cotangent");
            a.iter().zip(b.iter()).map(|(a, b)| inner(a, b)).sum()
        }
        (x, y) => panic!("{x:?} and {y:?}"),
    }
}

fn types(program: &Program, vs: &[Var]) -> Vec<Type> {
    vs.iter().map(|&v| program.vars[v].ty.clone()).collect()
}

/// Why a derivative is wrong.
pub(crate) fn mismatch(text: &str, args: &[Value], config: &Config) -> Option<String> {
    let mut program = parse(text);
    let f = first(&program);
    let id = match add_vjp(&mut program, f, config) {
        Ok(id) => id,
        Err(e) => return Some(e.to_string()),
    };
    mismatch_of(&program, f, id, args)
}

/// Why the derivative by bulk dual numbers is wrong; `None` also if they refuse the program.
pub(crate) fn bulk_mismatch(text: &str, args: &[Value]) -> Option<String> {
    let mut program = parse(text);
    let f = first(&program);
    let id = add_bulk(&mut program, f).ok()?;
    mismatch_of(&program, f, id, args)
}

pub(crate) fn mismatch_of(program: &Program, f: FunId, id: FunId, args: &[Value]) -> Option<String> {
    let mut r = Numbers(7);
    let param_types = types(program, &program.funs[f].params);
    let plain = match pullback_interp::core::run(program, f, args.to_vec(), &Options::default()) {
        Ok(out) => out,
        Err(e) => panic!("the program itself fails: {e:?}"),
    };
    for _ in 0..3 {
        let x_dots: Vec<Value> =
            param_types.iter().zip(args).filter_map(|(t, v)| direction(program, t, v, &mut r)).collect();
        let results = program.funs[f].results.clone();
        let y_bars: Vec<Value> = results
            .iter()
            .zip(&plain.results)
            .filter_map(|(t, v)| direction(program, t, v, &mut r))
            .collect();
        let oracle = pullback_interp::dual::jvp(program, f, args, &x_dots, &Options::default());
        let oracle = oracle.unwrap_or_else(|e| panic!("the oracle fails: {e:?}"));
        let all: Vec<Value> = args.iter().chain(&y_bars).cloned().collect();
        let ours = match pullback_interp::core::run(program, id, all, &Options::default()) {
            Ok(out) => out,
            Err(e) => return Some(format!("{e:?}\n{}", print(program))),
        };
        let (ys, x_bars) = ours.results.split_at(results.len());
        if ys != plain.results {
            return Some("primal results differ".into());
        }
        let left: f64 = y_bars.iter().zip(&oracle.tangents).map(|(a, b)| inner(a, b)).sum();
        let right: f64 = x_bars.iter().zip(&x_dots).map(|(a, b)| inner(a, b)).sum();
        let good = (left - right).abs() <= 1e-9 * (1.0 + left.abs());
        if !good || x_bars.len() != x_dots.len() {
            return Some(format!(
                "⟨y_bar, J x_dot⟩ = {left}, ⟨Jᵀ y_bar, x_dot⟩ = {right}\n{}",
                print(program)
            ));
        }
    }
    None
}

/// The derivative of the first function is right at these arguments, in every configuration, and by bulk dual numbers where they have it.
pub(crate) fn adjoint(text: &str, args: Vec<Value>) {
    let configs = [
        Config::default(),
        Config { sparse_map: false, views: false, ..Config::default() },
        Config { variant: pullback_ad::fast_chad::Variant::OneHot, ..Config::default() },
        Config { accumulate: Accumulate::Everything, ..Config::default() },
        Config { tape: Tape::Store, ..Config::default() },
        Config { tape: Tape::Recompute, ..Config::default() },
        Config { tape: Tape::Random(1), ..Config::default() },
        Config { kept_calls: -1, ..Config::default() },
        Config { kept_calls: 0, ..Config::default() },
        Config { kept_calls: 4, tape: Tape::Store, ..Config::default() },
        Config { kept_calls: 0, at_once: false, ..Config::default() },
        Config { near: false, ..Config::default() },
    ];
    for config in configs {
        if let Some(reason) = mismatch(text, &args, &config) {
            panic!("{config:?}: {reason}");
        }
    }
    if let Some(reason) = bulk_mismatch(text, &args) {
        panic!("bulk: {reason}");
    }
}

/// Runs a function of a program.
pub(crate) fn run(program: &Program, f: FunId, args: &[Value]) -> (Vec<Value>, Counts) {
    let out = pullback_interp::core::run(program, f, args.to_vec(), &Options::default()).expect("runs");
    (out.results, out.counts)
}

/// The gradient parts of the derivative with cotangents `y_bars`.
pub(crate) fn gradient(text: &str, args: &[Value], y_bars: &[Value]) -> Vec<Value> {
    let mut program = parse(text);
    let f = first(&program);
    let id = add_vjp(&mut program, f, &Config::default()).expect("supported");
    let all: Vec<Value> = args.iter().chain(y_bars).cloned().collect();
    let (mut results, _) = run(&program, id, &all);
    results.split_off(program.funs[f].results.len())
}

/// The derivative of the derivative is right: reverse over reverse, and forward over reverse.
pub(crate) fn twice(text: &str, args: Vec<Value>) {
    twice_with(text, args, &Config::default());
}

pub(crate) fn twice_with(text: &str, args: Vec<Value>, config: &Config) {
    let mut program = parse(text);
    let f = first(&program);
    let g = add_vjp(&mut program, f, config).expect("supported");
    let h = add_vjp(&mut program, g, config).expect("supported twice");
    let (results, _) = run(&program, f, &args);
    let mut r = Numbers(3);
    let outputs = program.funs[f].results.clone();
    let bars = outputs.iter().zip(&results).filter_map(|(t, v)| direction(&program, t, v, &mut r));
    let all: Vec<Value> = args.into_iter().chain(bars).collect();
    if let Some(reason) = mismatch_of(&program, g, h, &all) {
        panic!("{reason}");
    }
    let fun = program.funs[g].clone();
    let wanted = vec![true; fun.params.len()];
    let lam = Lam { params: fun.params.clone(), body: fun.body };
    let forward = pullback_ad::forward::jvp(&mut program, &lam, &wanted).expect("supported");
    let id = add_function(&mut program, "forward_over_reverse", forward);
    let inputs = types(&program, &fun.params);
    let dots: Vec<Value> =
        inputs.iter().zip(&all).filter_map(|(t, v)| direction(&program, t, v, &mut r)).collect();
    let oracle = pullback_interp::dual::jvp(&program, g, &all, &dots, &Options::default()).expect("runs");
    let both: Vec<Value> = all.into_iter().chain(dots).collect();
    let (ours, _) = run(&program, id, &both);
    let floats = |vs: &[Value]| vs.iter().flat_map(Value::floats).collect::<Vec<f64>>();
    let (mine, theirs) = (floats(&ours[fun.results.len()..]), floats(&oracle.tangents));
    assert_eq!(mine.len(), theirs.len());
    for (a, b) in mine.iter().zip(&theirs) {
        assert!((a - b).abs() <= 1e-9 * (1.0 + b.abs()), "{mine:?} {theirs:?}");
    }
}
