//! Adds derivatives of an entry point to its program, as functions that contain a `vjp` or `jvp`.
//!
//! Assumes a checked program whose entry points have one core parameter per leaf. Guarantees: the program stays checked
//! (under the rules that allow derivatives); nothing is expanded here.

use pullback_core::{Atom, Builder, Exp, FunId, Lam, Program, Type, Var};

/// A derivative to add. Parameters: those of the entry point, then for `..Many` the number of directions `k: i64`, then the
/// directions (stacked for `..Many`: see `Type::stacked`). Results: those of the entry point, then the derivatives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// One cotangent per result with floats to one cotangent per wanted parameter: `Jᵀ w`.
    Vjp,
    /// One tangent per wanted parameter to one tangent per result with floats: `J v`.
    Jvp,
    /// `Vjp` for many cotangents; the entry point runs once.
    VjpMany,
    /// `Jvp` for many tangents; the entry point runs once.
    JvpMany,
    /// A cotangent `w` per result, then a tangent `v` per wanted parameter, to the gradient `Jᵀ w` and its change along `v`
    /// (forward over reverse): for one scalar result and `w = 1` that is `H v`.
    Hvp,
    /// `Hvp` for one `w` and many `v`; entry point and gradient are computed once.
    HvpMany,
    /// A tangent `v` per wanted parameter to `J v` and `Jᵀ J v`.
    GaussNewton,
    /// `GaussNewton` for many tangents.
    GaussNewtonMany,
}

impl Kind {
    /// Whether it takes many directions at once.
    pub fn is_many(self) -> bool {
        matches!(self, Kind::VjpMany | Kind::JvpMany | Kind::HvpMany | Kind::GaussNewtonMany)
    }
    /// Whether an algorithm for reverse derivatives has a part in it.
    pub fn is_reverse(self) -> bool {
        !matches!(self, Kind::Jvp | Kind::JvpMany)
    }
    /// The same in one direction.
    pub fn one(self) -> Kind {
        match self {
            Kind::Vjp | Kind::VjpMany => Kind::Vjp,
            Kind::Jvp | Kind::JvpMany => Kind::Jvp,
            Kind::Hvp | Kind::HvpMany => Kind::Hvp,
            Kind::GaussNewton | Kind::GaussNewtonMany => Kind::GaussNewton,
        }
    }
    fn suffix(self) -> &'static str {
        match self {
            Kind::Vjp => "vjp",
            Kind::Jvp => "jvp",
            Kind::VjpMany => "vjp_many",
            Kind::JvpMany => "jvp_many",
            Kind::Hvp => "hvp",
            Kind::HvpMany => "hvp_many",
            Kind::GaussNewton => "gauss_newton",
            Kind::GaussNewtonMany => "gauss_newton_many",
        }
    }
}

/// Adds the function for a derivative of function `f` in the parameters marked in `wanted`; see [`Kind`].
///
/// `Err`: a type without cotangent type, in words.
pub fn add(program: &mut Program, f: FunId, kind: Kind, wanted: &[bool]) -> Result<FunId, String> {
    let fun = program.funs[f].clone();
    let params: Vec<Type> = fun.params.iter().map(|&p| program.vars[p].ty.clone()).collect();
    let inputs: Vec<Type> = params.iter().zip(wanted).filter(|(_, w)| **w).map(|(t, _)| t.clone()).collect();
    let of_inputs = pullback_core::typing::active(program, &inputs)?;
    let of_results = pullback_core::typing::active(program, &fun.results)?;
    let many = |ts: &[Type]| -> Vec<Type> {
        if kind.is_many() { ts.iter().map(Type::stacked).collect() } else { ts.to_vec() }
    };
    let (weights, directions, more) = match kind {
        Kind::Vjp | Kind::VjpMany => (Vec::new(), many(&of_results), many(&of_inputs)),
        Kind::Jvp | Kind::JvpMany => (Vec::new(), many(&of_inputs), many(&of_results)),
        Kind::Hvp | Kind::HvpMany => {
            (of_results.clone(), many(&of_inputs), [of_inputs.clone(), many(&of_inputs)].concat())
        }
        Kind::GaussNewton | Kind::GaussNewtonMany => {
            (Vec::new(), many(&of_inputs), [many(&of_results), many(&of_inputs)].concat())
        }
    };
    let mask: String = wanted.iter().map(|&w| if w { '1' } else { '0' }).collect();
    let name = format!("{}_{}_{mask}", fun.name, kind.suffix());
    let hints: Vec<String> = fun.params.iter().map(|&p| program.vars[p].hint.to_string()).collect();
    let mut signature: Vec<(&str, Type)> = hints.iter().map(String::as_str).zip(params).collect();
    signature.extend(kind.is_many().then_some(("k", Type::I64)));
    let given = weights.len();
    signature.extend(weights.into_iter().map(|t| ("weight", t)));
    signature.extend(directions.into_iter().map(|t| ("seed", t)));
    let results: Vec<Type> = fun.results.iter().cloned().chain(more).collect();
    let count = fun.params.len();
    let id = Builder::function(program, &name, &signature, results, |b, vars| {
        let (xs, rest) = vars.split_at(count);
        let (k, rest) = rest.split_at(usize::from(kind.is_many()));
        let seeds = k.first().map(|&k| Atom::Var(k));
        let atoms = |vs: &[Var]| vs.iter().map(|&v| Atom::Var(v)).collect::<Vec<Atom>>();
        let (weights, directions) = (atoms(&rest[..given]), atoms(&rest[given..]));
        let args: Vec<Atom> = chosen(xs, wanted).into_iter().map(Atom::Var).collect();
        let lam = call_lambda(b, f, xs, wanted);
        let vjp =
            |lam, cotangents, seeds| Exp::Vjp { lam, args: args.clone(), cotangents, seeds, algorithm: None };
        let jvp = |lam, tangents| Exp::Jvp { lam, args: args.clone(), tangents, seeds, algorithm: None };
        match kind {
            Kind::Vjp | Kind::VjpMany => emit(b, vjp(lam, directions, seeds)),
            Kind::Jvp | Kind::JvpMany => emit(b, jvp(lam, directions)),
            Kind::Hvp | Kind::HvpMany => {
                let gradient = gradient_lambda(b, lam, weights);
                let mut all = emit(b, jvp(gradient, directions));
                // The tangents of the results are not asked for.
                let kept = fun.results.len() + of_inputs.len();
                all.drain(kept..kept + of_results.len());
                all
            }
            Kind::GaussNewton | Kind::GaussNewtonMany => {
                let forward = emit(b, jvp(lam, directions));
                let again = call_lambda(b, f, xs, wanted);
                let y_dots = forward[fun.results.len()..].to_vec();
                let backward = emit(b, vjp(again, y_dots, seeds));
                [forward, backward[fun.results.len()..].to_vec()].concat()
            }
        }
    });
    Ok(id)
}

fn emit(b: &mut Builder<'_>, exp: Exp) -> Vec<Atom> {
    b.emit_all(exp, "r").into_iter().map(Atom::Var).collect()
}

fn chosen(xs: &[Var], wanted: &[bool]) -> Vec<Var> {
    xs.iter().zip(wanted).filter(|(_, w)| **w).map(|(x, _)| *x).collect()
}

/// `\chosen' -> f xs` with `chosen'` in place of the wanted ones of `xs`; the other arguments are captured.
fn call_lambda(b: &mut Builder<'_>, f: FunId, xs: &[Var], wanted: &[bool]) -> Lam {
    let chosen = chosen(xs, wanted);
    let params: Vec<Var> = chosen.iter().map(|&x| b.fresh_like(x)).collect();
    let body = b.scope(|b| {
        let argument = |x: &Var| chosen.iter().position(|c| c == x).map_or(*x, |k| params[k]).into();
        let args: Vec<Atom> = xs.iter().map(argument).collect();
        b.emit_all(Exp::Call(f, args), "y").into_iter().map(Atom::Var).collect()
    });
    Lam { params, body }
}

/// `\xs -> ys x_bars` from `\xs -> ys` and the cotangents of `ys`.
fn gradient_lambda(b: &mut Builder<'_>, lam: Lam, cotangents: Vec<Atom>) -> Lam {
    let params: Vec<Var> = lam.params.iter().map(|&x| b.fresh_like(x)).collect();
    let args: Vec<Atom> = params.iter().map(|&x| x.into()).collect();
    let body = b.scope(|b| {
        let exp = Exp::Vjp { lam, args, cotangents, seeds: None, algorithm: None };
        b.emit_all(exp, "g").into_iter().map(Atom::Var).collect()
    });
    Lam { params, body }
}
