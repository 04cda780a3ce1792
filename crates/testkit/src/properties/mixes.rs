//! `mixes`: second derivatives by all four mixes of modes agree.
//!
//! With `w` fixed, `<w, f>` has a second derivative along `v`. Forward over forward gives tangents whose inner product with `w` it is; the other three
//! give `H v`, whose inner product with `v` it is. As the program comes and optimised, in turn.

use super::{Case, Check, Reversed, Skip, Stop, close, fail, finite, flat, options, rng_of, stopped};
use crate::flat::{random_cotangent, zero_cotangent};
use crate::nested::{differentiated, floats};
use pullback_core::{Type, Value};
use pullback_driver::derive::Kind;
use pullback_interp::core::Compiled;
use pullback_interp::dual::{directional, inner};

/// The property of one program.
pub fn mixes(case: &Case) -> Check {
    let r = Reversed::new(case, &pullback_ad::fast_chad::vjp)?;
    let params = case.program.funs[case.main].params.iter().map(|p| &case.program.vars[*p].ty);
    let active = params
        .zip(&r.active_params)
        .chain(case.program.funs[case.main].results.iter().zip(&r.active_results));
    // Elsewhere tangents are no numbers in a row.
    if !active.into_iter().all(|(t, active)| !active || is_float(t)) || case.single() {
        return Err(Stop::Skip(Skip::NotApplicable));
    }
    let mut rng = rng_of(case);
    let inputs = || case.args.iter().zip(&r.active_params);
    let v: Vec<Value> = inputs().filter_map(|(x, active)| random_cotangent(x, *active, &mut rng)).collect();
    let w = r.cotangents(&mut rng);
    let zeros: Vec<Value> = w.iter().map(zero_cotangent).collect();
    let along = flat(&case.args, &r.active_params, &v)?;
    let code = Compiled::new(&case.program);
    let oracle = directional(&code, case.main, &case.args, &along, &options());
    if oracle.map_err(|e| stopped(case, "the oracle", e))?.kinks > 0 {
        return Err(Stop::Skip(Skip::Kink));
    }
    let with = |more: &[&[Value]]| -> Vec<Value> {
        case.args.iter().chain(more.iter().copied().flatten()).cloned().collect()
    };
    let mut found: Vec<(&str, f64, f64)> = Vec::new();
    for (name, modes, args, against) in [
        ("forward over forward", [Kind::Jvp, Kind::Jvp], with(&[&v, &v]), &w),
        ("forward over reverse", [Kind::Vjp, Kind::Jvp], with(&[&w, &v]), &v),
        ("reverse over forward", [Kind::Jvp, Kind::Vjp], with(&[&v, &zeros, &w]), &v),
        ("reverse over reverse", [Kind::Vjp, Kind::Vjp], with(&[&w, &zeros, &v]), &v),
    ] {
        let last = second(case, &r.active_params, modes, &args, name)?;
        let (Some(last), against) = (last.get(last.len().wrapping_sub(against.len())..), floats(against))
        else {
            return fail(format!("{name}: results are missing"));
        };
        let last = floats(last);
        finite(&last)?;
        if last.len() != against.len() {
            return Err(Stop::Skip(Skip::LostShape));
        }
        let size = last.iter().zip(&against).map(|(a, b)| (a * b).abs()).sum();
        found.push((name, inner(&last, &against), size));
    }
    let (first, expected, size) = found[0];
    for (name, number, other) in &found[1..] {
        close(&format!("{first} and {name}"), expected, *number, size + other, case.tolerance())?;
    }
    Ok(())
}

/// The results of a second derivative with respect to the same parameters.
fn second(
    case: &Case,
    wanted: &[bool],
    modes: [Kind; 2],
    args: &[Value],
    what: &str,
) -> Result<Vec<Value>, Stop> {
    let optimise = (case.seed / 16).is_multiple_of(2);
    let made = differentiated(&case.program, case.main, wanted, &modes, optimise);
    let (program, fun) = made.map_err(|d| match d.code.fault() {
        pullback_base::Fault::Bug => Stop::Fail(format!("{what}: {}", d.message)),
        _ => Stop::Skip(Skip::Unsupported(d.message)),
    })?;
    let out = Compiled::new(&program).run(fun, args, &options()).map_err(|e| stopped(case, what, e))?;
    Ok(out.results)
}

fn is_float(ty: &Type) -> bool {
    ty.base().scalar().is_some_and(|s| s.is_float())
}
