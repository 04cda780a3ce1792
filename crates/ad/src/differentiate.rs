//! Expands every `vjp` and `jvp` of a program into ordinary core, innermost first.
//!
//! Assumes a checked program. Guarantees: no `Vjp` or `Jvp` is left; everything else is unchanged. Functions are visited
//! callees first, so that an algorithm that looks into a callee finds no derivative there. There is no perturbation
//! confusion, because tangents and cotangents are separate names, never tags.

use crate::contract::{ALGORITHMS, Algorithm, Mode, Unsupported, algorithm};
use crate::many::separate;
use pullback_base::index::{IdMap, IdSet, Index};
use pullback_base::{Span, Symbol};
use pullback_core::traverse::{for_each_stm, free_vars_lam, used_vars};
use pullback_core::{Atom, Body, Exp, FunId, Lam, LoopAttrs, LoopForm, Program, Stm, TapePolicy, Var};

/// Which algorithm to take where the program does not say (`None`: the default one).
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// For `jvp`.
    pub forward: Option<Symbol>,
    /// For `vjp`.
    pub reverse: Option<Symbol>,
    /// The most bytes that loops may put on tapes, if they may not do as they like: see [`limit_tapes`].
    pub tape_limit: Option<u64>,
    /// Whether tangents and cotangents are multiplied by partial derivatives as IEEE numbers, so that zero times infinity is
    /// NaN, instead of a zero that stops ([`pullback_prim::Op::StrongMul`]).
    pub ieee_partials: bool,
}

/// Expands all derivatives of the program.
pub fn differentiate(program: &mut Program, choice: &Choice) -> Result<(), Unsupported> {
    if let Some(bytes) = choice.tape_limit {
        limit_tapes(program, bytes);
    }
    program.ieee_partials = choice.ieee_partials;
    let order = callees_first(program);
    if order.iter().any(|&f| has_derivatives(&program.funs[f].body)) {
        // The rules are those of the parts of fused operations.
        for &f in &order {
            let mut body = std::mem::take(&mut program.funs[f].body);
            pullback_core::fused::split(program, &mut body);
            program.funs[f].body = body;
        }
        pullback_core::choose::all_operators_choose(program);
    }
    for f in order {
        let mut body = std::mem::take(&mut program.funs[f].body);
        let used = used_vars(&body);
        let result = expand_body(program, &mut body, &used, choice, false);
        program.funs[f].body = body;
        result?;
    }
    Ok(())
}

fn has_derivatives(body: &Body) -> bool {
    let mut found = false;
    for_each_stm(body, &mut |s| found |= matches!(s.exp, Exp::Vjp { .. } | Exp::Jvp { .. }));
    found
}

/// Gives the outermost loops of the program, and of each function under `vjp`, a limit for their tapes: all loops the
/// same part. Loops whose attributes say what to keep stay as they are. Inside a map the limit is that of all
/// iterations of the map together.
pub fn limit_tapes(program: &mut Program, bytes: u64) {
    let mut loops = Vec::new();
    for fun in program.funs.iter_mut() {
        outermost_loops(&mut fun.body, false, &mut loops);
    }
    let share = bytes / (loops.len() as u64).max(1);
    for attrs in loops {
        attrs.tape = Some(TapePolicy::Limit(share));
    }
}

fn outermost_loops<'a>(body: &'a mut Body, inside: bool, out: &mut Vec<&'a mut LoopAttrs>) {
    for stm in &mut body.stms {
        match &mut stm.exp {
            Exp::Loop(l) => {
                if let LoopForm::While(condition) = &mut l.form {
                    outermost_loops(condition, true, out);
                }
                outermost_loops(&mut l.body, true, out);
                if !inside && says_nothing(&l.attrs) {
                    out.push(&mut l.attrs);
                }
            }
            exp => {
                let inside = inside && !matches!(exp, Exp::Vjp { .. });
                for scope in exp.bodies_mut() {
                    outermost_loops(scope.body, inside, out);
                }
            }
        }
    }
}

/// Whether the attributes do not say what the loop keeps.
fn says_nothing(attrs: &LoopAttrs) -> bool {
    attrs.tape.is_none() && attrs.stripmine.is_none()
}

/// Loops whose derivatives will be differentiated keep everything if they do not say something else: code for blocks would grow with
/// each derivative, and a later one keeps what the schedule of the first one does.
fn keep_all(body: &mut Body) {
    for stm in &mut body.stms {
        if let Exp::Loop(l) = &mut stm.exp
            && says_nothing(&l.attrs)
        {
            l.attrs.tape = Some(TapePolicy::All);
        }
        for scope in stm.exp.bodies_mut() {
            keep_all(scope.body);
        }
    }
}

/// Functions so that callees come before their callers (of a cycle, in any order).
pub(crate) fn callees_first(program: &Program) -> Vec<FunId> {
    let mut order = Vec::new();
    let mut seen: IdSet<FunId> = IdSet::new();
    for root in program.funs.ids() {
        // An explicit stack: call chains may be long.
        let mut work = vec![(root, false)];
        while let Some((f, done)) = work.pop() {
            if done {
                order.push(f);
            } else if f.index() < program.funs.len() && seen.insert(f) {
                work.push((f, true));
                for_each_stm(&program.funs[f].body, &mut |stm| {
                    if let Exp::Call(callee, _) = &stm.exp {
                        work.push((*callee, false));
                    }
                });
            }
        }
    }
    order
}

fn expand_body(
    program: &mut Program,
    body: &mut Body,
    used: &IdSet<Var>,
    choice: &Choice,
    inside: bool,
) -> Result<(), Unsupported> {
    let mut done = Vec::with_capacity(body.stms.len());
    for mut stm in std::mem::take(&mut body.stms) {
        let derivative = matches!(stm.exp, Exp::Vjp { .. } | Exp::Jvp { .. });
        for scope in stm.exp.bodies_mut() {
            expand_body(program, scope.body, used, choice, inside || derivative)?;
            if inside && derivative {
                keep_all(scope.body);
            }
        }
        let span = program.vars[stm.pat[0]].origin.span;
        match stm.exp {
            Exp::Vjp { lam, args, cotangents, seeds, algorithm } => {
                let name = algorithm.or_else(|| choice.reverse.clone());
                let found = find(Mode::Reverse, name, span)?;
                let given = (vec![true; lam.params.len()], cotangents, seeds);
                splice(program, found, &lam, args, given, used, span, stm.pat, &mut done)?;
            }
            Exp::Jvp { lam, args, tangents, seeds, algorithm } => {
                let name = algorithm.or_else(|| choice.forward.clone());
                let found = find(Mode::Forward, name, span)?;
                let (wanted, tangents) = directions(program, &lam, tangents, seeds);
                let given = (wanted, tangents, seeds);
                splice(program, found, &lam, args, given, used, span, stm.pat, &mut done)?;
            }
            exp => done.push(Stm { pat: stm.pat, exp }),
        }
    }
    body.stms = done;
    Ok(())
}

/// The algorithm of this name, or the default one.
fn find(mode: Mode, name: Option<Symbol>, span: Option<Span>) -> Result<&'static Algorithm, Unsupported> {
    algorithm(mode, name.as_ref().map(Symbol::as_str)).ok_or_else(|| {
        let of_entry_points = |n: &Symbol| {
            let on_lambda = crate::on_lambda::find(n.as_str()).map(|a| a.id);
            on_lambda.or_else(|| crate::bulk::interpreted::find(n.as_str()).map(|a| a.id))
        };
        if let Some(whole) = name.as_ref().and_then(of_entry_points) {
            let construct = "a function inside of a program, only a whole entry point".to_string();
            let help = "leave out --ad: `fast_chad` differentiates it".to_string();
            return Unsupported { algorithm: whole, construct, span, help };
        }
        let known = ALGORITHMS.iter().filter(|a| a.mode == mode).map(|a| a.id);
        let help = format!("choose one of {}", known.collect::<Vec<_>>().join(", "));
        let mode = if mode == Mode::Forward { "forward" } else { "reverse" };
        let wish = name.map_or_else(String::new, |n| n.to_string());
        let construct = format!("with `{wish}`: no {mode}-mode algorithm has that name");
        Unsupported { algorithm: "pullback", construct, span, help }
    })
}

/// The arguments along which a forward derivative is taken, with their tangents: all that can have one, but those whose tangent is the
/// constant zero, as in `jvp f (x, y) (1, 0)`.
fn directions(
    program: &Program,
    lam: &Lam,
    tangents: Vec<Atom>,
    seeds: Option<Atom>,
) -> (Vec<bool>, Vec<Atom>) {
    if seeds.is_some() || program.ieee_partials {
        return (vec![true; lam.params.len()], tangents);
    }
    let is_zero = |a: &Atom| matches!(a, Atom::Const(c) if c.is_float_zero());
    let mut given = tangents.iter();
    let is_wanted = |p: &Var| !program.is_active(&program.vars[*p].ty) || !given.next().is_some_and(is_zero);
    let wanted = lam.params.iter().map(is_wanted).collect();
    (wanted, tangents.iter().copied().filter(|a| !is_zero(a)).collect())
}

/// The function, with the sizes of arrays that it uses and that are taken before it: they say what its integers are.
fn take_sizes(program: &mut Program, lam: &Lam, before: &[Stm]) -> Lam {
    let mut lam = lam.clone();
    let free = free_vars_lam(&lam);
    let is_used = |stm: &&Stm| matches!(stm.exp, Exp::Size(..)) && free.contains(&stm.pat[0]);
    let mut subst = IdMap::new();
    let sizes = pullback_core::rename::copy_stms(
        program,
        &before.iter().filter(is_used).cloned().collect::<Vec<_>>(),
        &mut subst,
    );
    pullback_core::rename::substitute_body(&mut lam.body, &subst);
    lam.body.stms.splice(0..0, sizes);
    lam
}

#[allow(clippy::too_many_arguments, reason = "the parts of one statement, taken apart")]
fn splice(
    program: &mut Program,
    found: &Algorithm,
    lam: &Lam,
    args: Vec<Atom>,
    (wanted, extra, seeds): (Vec<bool>, Vec<Atom>, Option<Atom>),
    used: &IdSet<Var>,
    span: Option<Span>,
    mut pat: Vec<Var>,
    out: &mut Vec<Stm>,
) -> Result<(), Unsupported> {
    let taken = found.sizes.then(|| take_sizes(program, lam, out));
    let lam = taken.as_ref().unwrap_or(lam);
    let primal = lam.body.result.len();
    let unused = !pat[..primal].iter().any(|v| used.contains(v));
    let derivative = match (seeds, found.many) {
        (None, _) => match found.derivatives {
            Some(derivatives) if unused => {
                pat.drain(..primal);
                derivatives(program, lam, &wanted)
            }
            _ => (found.transform)(program, lam, &wanted),
        },
        (Some(k), Some(many)) => many(program, lam, &wanted, k),
        (Some(k), None) => (found.transform)(program, lam, &wanted)
            .map(|one| separate(program, one, lam.params.len(), primal, k)),
    };
    let derivative = derivative.map_err(|e| Unsupported { span: e.span.or(span), ..e })?;
    let mut subst = IdMap::new();
    for (p, a) in derivative.params.iter().zip(args.into_iter().chain(extra)) {
        subst.insert(*p, a);
    }
    let mut body = derivative.body;
    pullback_core::rename::substitute_body(&mut body, &subst);
    out.extend(body.stms);
    out.extend(pat.into_iter().zip(body.result).map(|(v, a)| Stm { pat: vec![v], exp: Exp::Atom(a) }));
    Ok(())
}
