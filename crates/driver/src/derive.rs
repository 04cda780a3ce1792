//! Adds derivatives of an entry point to its program, as functions that contain a `vjp` or `jvp`.
//!
//! Assumes a checked program whose entry points have one core parameter per leaf. Guarantees: the program stays checked
//! (under the rules that allow derivatives); nothing is expanded here.

use pullback_core::{Atom, Builder, Exp, FunId, Lam, Program, Type, Var};

/// A derivative to add.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Parameters, then one cotangent per result with floats, to results, then one cotangent per wanted parameter.
    Vjp,
    /// Parameters, then one tangent per wanted parameter, to results, then one tangent per result with floats.
    Jvp,
}

/// Adds `\xs extra -> ys, derivatives` for function `f`, differentiated in the parameters marked in `wanted`.
///
/// `Err`: a type without cotangent type, in words.
pub fn add(program: &mut Program, f: FunId, kind: Kind, wanted: &[bool]) -> Result<FunId, String> {
    let fun = program.funs[f].clone();
    let params: Vec<Type> = fun.params.iter().map(|&p| program.vars[p].ty.clone()).collect();
    let inputs: Vec<Type> = params.iter().zip(wanted).filter(|(_, w)| **w).map(|(t, _)| t.clone()).collect();
    let x_dots = pullback_core::typing::active(program, &inputs)?;
    let y_bars = pullback_core::typing::active(program, &fun.results)?;
    let (extra, more, suffix) = match kind {
        Kind::Vjp => (y_bars, x_dots, "vjp"),
        Kind::Jvp => (x_dots, y_bars, "jvp"),
    };
    let mask: String = wanted.iter().map(|&w| if w { '1' } else { '0' }).collect();
    let name = format!("{}_{suffix}_{mask}", fun.name);
    let hints: Vec<String> = fun.params.iter().map(|&p| program.vars[p].hint.to_string()).collect();
    let mut signature: Vec<(&str, Type)> = hints.iter().map(String::as_str).zip(params).collect();
    signature.extend(extra.into_iter().map(|t| ("seed", t)));
    let results: Vec<Type> = fun.results.iter().cloned().chain(more).collect();
    let count = fun.params.len();
    let id = Builder::function(program, &name, &signature, results, |b, vars| {
        let (xs, seeds) = vars.split_at(count);
        let chosen: Vec<Var> = xs.iter().zip(wanted).filter(|(_, w)| **w).map(|(x, _)| *x).collect();
        let lam = call_lambda(b, f, xs, &chosen);
        let args: Vec<Atom> = chosen.into_iter().map(Atom::Var).collect();
        let seeds: Vec<Atom> = seeds.iter().map(|&s| s.into()).collect();
        let exp = match kind {
            Kind::Vjp => Exp::Vjp { lam, args, cotangents: seeds, seeds: None, algorithm: None },
            Kind::Jvp => Exp::Jvp { lam, args, tangents: seeds, seeds: None, algorithm: None },
        };
        b.emit_all(exp, "r").into_iter().map(Atom::Var).collect()
    });
    Ok(id)
}

/// `\chosen' -> f xs` with `chosen'` in place of `chosen`; the other arguments are captured.
fn call_lambda(b: &mut Builder<'_>, f: FunId, xs: &[Var], chosen: &[Var]) -> Lam {
    let params: Vec<Var> = chosen.iter().map(|&x| b.fresh_like(x)).collect();
    let body = b.scope(|b| {
        let argument = |x: &Var| chosen.iter().position(|c| c == x).map_or(*x, |k| params[k]).into();
        let args: Vec<Atom> = xs.iter().map(argument).collect();
        b.emit_all(Exp::Call(f, args), "y").into_iter().map(Atom::Var).collect()
    });
    Lam { params, body }
}
