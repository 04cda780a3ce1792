//! How bulk dual numbers make a derivative, as text: the function in their fragment, the rules of the bulk-operation transformation, the bulk operations, and the symbolic reverse pass.
//!
//! Assumes a checked program before derivatives are expanded.

use pullback_ad::Unsupported;
use pullback_ad::bulk::a_core::Term;
use pullback_ad::bulk::from_core::{ALGORITHM, Listing, Steps, steps};
use pullback_ad::bulk::interpreted::{Derivative, Level};
use pullback_ad::bulk::to_core::Known;
use pullback_ad::differentiate::{Choice, differentiate};
use pullback_base::Symbol;
use pullback_core::{Atom, Body, Exp, Fun, Lam, Program};
use std::fmt::Write as _;

/// How many rules are shown.
const RULES: usize = 40;

/// How many characters of a term that a rule changes are shown.
const WIDTH: usize = 140;

/// The steps of all derivatives of the program that bulk dual numbers take, and the title of what they become; nothing where there is none.
pub(crate) fn text(program: &Program, choice: &Choice) -> String {
    let mut functions = Vec::new();
    program.funs.iter().for_each(|fun| collect(&fun.body, choice, ALGORITHM.id, &mut functions));
    let title = if functions.is_empty() { "" } else { "The derivative, as a function of core\n" };
    functions.into_iter().map(|lam| of_function(program, choice, lam)).collect::<String>() + title
}

/// The functions whose derivatives the algorithm takes, inner ones first, as they are expanded.
pub(crate) fn collect<'p>(body: &'p Body, choice: &Choice, id: &str, out: &mut Vec<&'p Lam>) {
    for stm in &body.stms {
        stm.exp.bodies().into_iter().for_each(|scope| collect(scope.body, choice, id, out));
        if let Exp::Vjp { lam, algorithm, .. } = &stm.exp
            && algorithm.as_ref().or(choice.reverse.as_ref()).is_some_and(|a| a.as_str() == id)
        {
            out.push(lam);
        }
    }
}

fn of_function(program: &Program, choice: &Choice, lam: &Lam) -> String {
    let mut program = program.clone();
    let made = expanded(&mut program, choice, lam)
        .and_then(|lam| steps(&mut program, &lam, &vec![true; lam.params.len()]));
    match made {
        Ok(steps) => shown(&program, &steps) + "\n",
        Err(why) => format!("A function without steps: {why}\n\n"),
    }
}

/// The function without derivatives inside.
pub(crate) fn expanded(program: &mut Program, choice: &Choice, lam: &Lam) -> Result<Lam, Unsupported> {
    let Lam { params, body } = lam.clone();
    let fun = Fun { name: Symbol::new("inner"), params, body, results: Vec::new(), entry: None };
    let id = program.funs.push(fun);
    differentiate(program, choice)?;
    let Fun { params, body, .. } = program.funs[id].clone();
    Ok(Lam { params, body })
}

/// What runs over dual numbers, or over dual arrays, and how it is made.
pub(crate) fn interpreted(derivative: &Derivative) -> String {
    let steps = derivative.steps();
    let mut out = source(derivative.first().0, steps);
    match derivative.level() {
        Level::Numbers => out += "\nIt runs over dual numbers: each number has a delta term\n",
        Level::Arrays => {
            bulk(&mut out, steps);
            out += "\nIt runs over dual arrays: each array has a delta term\n";
        }
    }
    out
}

fn source(program: &Program, steps: &Steps) -> String {
    let mut out = "The function, in the fragment of bulk dual numbers\n".to_string();
    for (k, known) in steps.sizes.iter().enumerate() {
        let _ = writeln!(out, "  size n{k} = {}", size(program, steps, known));
    }
    for (x, _) in &steps.inputs {
        let constant = if steps.wanted.contains(x) { "" } else { ", a constant" };
        let _ = writeln!(out, "  input {x} : {}{constant}", x.ty());
    }
    listing(&mut out, &steps.source, "result");
    out
}

fn bulk(out: &mut String, steps: &Steps) {
    rules(out, steps);
    *out += "\nThe function, in bulk operations\n";
    listing(out, &steps.bulk, "result");
}

fn shown(program: &Program, steps: &Steps) -> String {
    let mut out = source(program, steps);
    bulk(&mut out, steps);
    out += "\nThe symbolic reverse pass\n";
    let varying = steps.seeds.iter().flatten().zip(&steps.bulk.results);
    varying.for_each(|(c, t)| line(&mut out, &format!("input {c}, the cotangent of"), t));
    for (x, _) in &steps.known {
        let _ = writeln!(out, "  input {x} : {}, which the function has computed", x.ty());
    }
    bindings(&mut out, &steps.reverse);
    for (x, t) in steps.wanted.iter().zip(&steps.reverse.results) {
        line(&mut out, &format!("cotangent of {x} ="), t);
    }
    out
}

fn rules(out: &mut String, steps: &Steps) {
    let count = steps.applied.len();
    let _ = writeln!(out, "\nThe bulk-operation transformation (rules applied: {count})");
    for step in steps.applied.iter().take(RULES) {
        let _ = writeln!(out, "  {:<4} {}\n    ~> {}", step.rule, cut(&step.before), cut(&step.after));
    }
    if count > RULES {
        let _ = writeln!(out, "  and {} more", count - RULES);
    }
}

fn listing(out: &mut String, of: &Listing, result: &str) {
    bindings(out, of);
    of.results.iter().for_each(|t| line(out, result, t));
}

fn bindings(out: &mut String, of: &Listing) {
    of.bindings.iter().for_each(|(x, t)| line(out, &format!("let {x} ="), t));
}

fn line(out: &mut String, what: &str, t: &Term) {
    let _ = writeln!(out, "  {what} {}", t.to_string().replace('\n', "\n    "));
}

/// The term on one line, and not all of it if it is long.
fn cut(t: &Term) -> String {
    let text = t.to_string().replace('\n', " ");
    if text.chars().count() <= WIDTH {
        text
    } else {
        text.chars().take(WIDTH - 1).collect::<String>() + "…"
    }
}

fn size(program: &Program, steps: &Steps, known: &Known) -> String {
    let name = |a: &Atom| match a {
        Atom::Const(c) => c.to_string(),
        Atom::Var(v) => match steps.inputs.iter().find(|(_, w)| v == w) {
            Some((x, _)) => x.to_string(),
            None => program.vars[*v].hint.to_string(),
        },
    };
    match known {
        Known::Dimension(a, d) => format!("dimension {d} of {}", name(a)),
        Known::Integer(n) | Known::Converted(n) => format!("max({}, 0)", name(n)),
        Known::AtLeastZero(n) => format!("max({n}, 0)"),
    }
}
