//! Makes a failing case small: statements first, then results and parameters, then sizes, then values.
//!
//! Assumes a predicate that runs the failing property. Guarantees: the shrunk case still satisfies the predicate, is
//! accepted by the checker, and is printed as a ready suite file. Cost: one run of the predicate per candidate, at most
//! [`MOST_RUNS`].

use crate::properties::{Case, Property, Reverse, Verdict};
use pullback_base::index::IdMap;
use pullback_core::check::{Rules, check};
use pullback_core::prune::prune_program;
use pullback_core::rename::substitute_body;
use pullback_core::{Atom, Body, Exp, LoopForm, Program, Soac, Stm, Type, Value, Var};
use pullback_prim::ScalarValue;

/// How often the predicate runs at most.
pub const MOST_RUNS: usize = 6_000;

/// A smaller case on which the property still fails in the same way.
pub fn shrink(case: &Case, property: Property, reverse: Reverse<'_>) -> Case {
    let Verdict::Fails(text) = quietly(property, case, reverse) else { return case.clone() };
    let kind = kind_of(&text);
    shrink_with(
        case,
        &mut |candidate| matches!(quietly(property, candidate, reverse), Verdict::Fails(t) if kind_of(&t) == kind),
    )
}

/// The part of a failure text that says what kind of failure it is, without its numbers. Of a run that stopped that is
/// the error with its message: otherwise a shrunk program would stop for another reason.
pub fn kind_of(text: &str) -> String {
    let head = if text.contains(" stopped: ") {
        text
    } else {
        let digits = text.find(|c: char| c.is_ascii_digit()).unwrap_or(text.len());
        &text[..digits.min(text.find(": ").map_or(text.len(), |k| k + 2))]
    };
    head.split(|c: char| c.is_ascii_digit()).filter(|part| !part.is_empty()).collect::<Vec<_>>().join("#")
}

fn quietly(property: Property, case: &Case, reverse: Reverse<'_>) -> Verdict {
    let run = std::panic::AssertUnwindSafe(|| property.check(case, reverse));
    std::panic::catch_unwind(run).unwrap_or_else(|_| Verdict::Fails("panic: ".into()))
}

/// A smaller case for which the predicate still holds.
pub fn shrink_with(case: &Case, still: &mut dyn FnMut(&Case) -> bool) -> Case {
    let mut shrinker = Shrinker { best: case.clone(), runs: 0, still };
    loop {
        let before = shrinker.runs;
        let changed = shrinker.statements() | shrinker.results() | shrinker.parameters() | shrinker.sizes();
        if !changed || shrinker.runs >= MOST_RUNS || shrinker.runs == before {
            break;
        }
    }
    shrinker.values();
    shrinker.best
}

struct Shrinker<'a> {
    best: Case,
    runs: usize,
    still: &'a mut dyn FnMut(&Case) -> bool,
}

impl Shrinker<'_> {
    /// Takes the candidate if the failure is still there.
    fn offer(&mut self, mut candidate: Case) -> bool {
        if self.runs >= MOST_RUNS || check(&candidate.program, Rules::SURFACE).is_err() {
            return false;
        }
        prune_program(&mut candidate.program);
        self.runs += 1;
        let good = (self.still)(&candidate);
        if good {
            self.best = candidate;
        }
        good
    }

    /// Replaces statements by something simpler, last ones first.
    fn statements(&mut self) -> bool {
        let mut changed = false;
        let mut k = count_statements(&self.best.program);
        while k > 0 {
            k -= 1;
            let mut taken = false;
            for way in 0..WAYS {
                let mut candidate = self.best.clone();
                if replace(&mut candidate.program, k, way) && self.offer(candidate) {
                    taken = true;
                    break;
                }
            }
            changed |= taken;
            k = k.min(count_statements(&self.best.program));
        }
        changed
    }

    /// Drops results of the main function.
    fn results(&mut self) -> bool {
        let mut changed = false;
        let mut k = self.best.program.funs[self.best.main].results.len();
        while k > 0 {
            k -= 1;
            let mut candidate = self.best.clone();
            let fun = &mut candidate.program.funs[candidate.main];
            if fun.results.len() < 2 {
                break;
            }
            fun.results.remove(k);
            fun.body.result.remove(k);
            changed |= self.offer(candidate);
        }
        changed
    }

    /// Drops parameters of the main function that nothing uses.
    fn parameters(&mut self) -> bool {
        let mut changed = false;
        let mut k = self.best.args.len();
        while k > 0 {
            k -= 1;
            let mut candidate = self.best.clone();
            let fun = &mut candidate.program.funs[candidate.main];
            if pullback_core::traverse::used_vars(&fun.body).contains(&fun.params[k]) {
                continue;
            }
            fun.params.remove(k);
            candidate.args.remove(k);
            candidate.growing.iter_mut().for_each(|args| drop(args.remove(k)));
            changed |= self.offer(candidate);
        }
        changed
    }

    /// Cuts all dimensions of one size by one.
    fn sizes(&mut self) -> bool {
        let mut changed = false;
        for size in (1..=12).rev() {
            for smaller in [1, size - 1] {
                let mut candidate = self.best.clone();
                candidate.args = candidate.args.iter().map(|v| cut(v, size, smaller)).collect();
                if smaller < size && candidate.args != self.best.args {
                    changed |= self.offer(candidate);
                }
            }
        }
        changed
    }

    /// Rounds floats to numbers that are easy to read.
    fn values(&mut self) {
        let total: usize = self.best.args.iter().map(|v| v.floats().len()).sum();
        for k in 0..total {
            for simple in [Simple::Zero, Simple::One, Simple::Half, Simple::Rounded] {
                let mut at = 0;
                let mut candidate = self.best.clone();
                for v in &mut candidate.args {
                    let mut floats = v.floats();
                    for x in &mut floats {
                        if at == k {
                            *x = simple.of(*x);
                        }
                        at += 1;
                    }
                    *v = pullback_interp::dual::with_floats(v, &mut floats.into_iter());
                }
                if candidate.args == self.best.args || self.offer(candidate) {
                    break;
                }
            }
        }
    }
}

#[derive(Clone, Copy)]
enum Simple {
    Zero,
    One,
    Half,
    Rounded,
}

impl Simple {
    fn of(self, x: f64) -> f64 {
        match self {
            Simple::Zero => 0.0,
            Simple::One => 1.0,
            Simple::Half => 0.5,
            Simple::Rounded => (x * 8.0).round() / 8.0,
        }
    }
}

/// The value with every dimension of `size` cut to `smaller`.
fn cut(value: &Value, size: usize, smaller: usize) -> Value {
    use pullback_core::{Array, Buffer};
    match value {
        Value::Tuple(vs) => Value::Tuple(vs.iter().map(|v| cut(v, size, smaller)).collect()),
        Value::Sum(k, vs) => {
            Value::Sum(*k, std::sync::Arc::new(vs.iter().map(|v| cut(v, size, smaller)).collect()))
        }
        Value::Array(a) => {
            let shape: Vec<usize> = a.shape.iter().map(|n| if *n == size { smaller } else { *n }).collect();
            let mut data = Buffer::with_capacity(a.data.scalar(), shape.iter().product());
            for flat in 0..shape.iter().product::<usize>() {
                let mut rest = flat;
                let mut ix = vec![0; shape.len()];
                for d in (0..shape.len()).rev() {
                    ix[d] = rest % shape[d];
                    rest /= shape[d];
                }
                data.push(a.at(&ix));
            }
            Value::Array(Array::new(shape, data))
        }
        Value::Scalar(_) | Value::Acc(_) => value.clone(),
    }
}

fn count_statements(program: &Program) -> usize {
    let mut count = 0;
    for fun in program.funs.iter() {
        pullback_core::traverse::for_each_stm(&fun.body, &mut |_| count += 1);
    }
    count
}

/// Ways to replace a statement.
const WAYS: usize = 9;

/// Replaces statement number `k` (in order of writing) in the given way; `false` if that is not possible.
fn replace(program: &mut Program, k: usize, way: usize) -> bool {
    let mut left = k;
    let ids: Vec<_> = program.funs.ids().collect();
    for id in ids {
        let mut body = std::mem::take(&mut program.funs[id].body);
        let mut scope = program.funs[id].params.clone();
        let done = replace_in(program, &mut body, &mut scope, &mut left, way, false);
        program.funs[id].body = body;
        if let Some(done) = done {
            return done;
        }
    }
    false
}

/// Looks for the statement; `Some` when it was found, with whether it was replaced. Statements of the operators of
/// reductions are left alone: what came out would not be associative, and fail for that reason.
fn replace_in(
    program: &mut Program,
    body: &mut Body,
    scope: &mut Vec<Var>,
    left: &mut usize,
    way: usize,
    operator: bool,
) -> Option<bool> {
    let mark = scope.len();
    for at in 0..body.stms.len() {
        if *left == 0 {
            return Some(!operator && simplify(program, body, at, scope, way));
        }
        *left -= 1;
        let operator = operator
            || matches!(
                body.stms[at].exp,
                Exp::Soac(Soac::Reduce { .. } | Soac::Scan { .. } | Soac::Fused { .. } | Soac::Hist { .. })
            );
        for inner in body.stms[at].exp.bodies_mut() {
            let params: Vec<Var> = inner.binds.iter().collect();
            scope.extend(&params);
            let done = replace_in(program, inner.body, scope, left, way, operator);
            scope.truncate(scope.len() - params.len());
            if done.is_some() {
                return done;
            }
        }
        scope.extend(&body.stms[at].pat);
    }
    scope.truncate(mark);
    None
}

/// Puts something simpler in place of the statement at `at`.
fn simplify(program: &mut Program, body: &mut Body, at: usize, scope: &[Var], way: usize) -> bool {
    let stm = body.stms[at].clone();
    match way {
        0 => splice(body, at, &stm),
        1 => constants(program, body, at, &stm, 0),
        2..=4 => aliases(program, body, at, &stm, scope, way - 2),
        5..=7 => constants(program, body, at, &stm, way - 4),
        _ => one_iteration(body, at, &stm),
    }
}

/// `if`, marked bodies: the first body in place of the statement.
fn splice(body: &mut Body, at: usize, stm: &Stm) -> bool {
    let inner = match &stm.exp {
        Exp::If(_, then, _) => then.clone(),
        Exp::Marked(_, inner) => inner.clone(),
        _ => return false,
    };
    let mut stms = inner.stms;
    stms.extend(stm.pat.iter().zip(inner.result).map(|(v, a)| Stm { pat: vec![*v], exp: Exp::Atom(a) }));
    body.stms.splice(at..=at, stms);
    true
}

/// Every variable bound becomes a constant of its type; arrays have `size` elements per dimension.
fn constants(program: &Program, body: &mut Body, at: usize, stm: &Stm, size: usize) -> bool {
    if let [v] = stm.pat.as_slice()
        && matches!(stm.exp, Exp::Atom(Atom::Const(_)))
    {
        let _ = v;
        return false;
    }
    let mut stms = Vec::new();
    for v in &stm.pat {
        let ty = &program.vars[*v].ty;
        let Some(exp) = constant(ty, size) else { return false };
        if exp == stm.exp || (size > 0 && ty.rank() == 0) {
            return false;
        }
        stms.push(Stm { pat: vec![*v], exp });
    }
    body.stms.splice(at..=at, stms);
    true
}

fn constant(ty: &Type, size: usize) -> Option<Exp> {
    match ty {
        Type::Scalar(s) => {
            Some(Exp::Atom(Atom::Const(if s.is_float() { s.from_f64(0.5) } else { s.zero() })))
        }
        Type::Array(_) => {
            let scalar = ty.base().scalar()?;
            let shape = vec![Atom::i64(size as i64); ty.rank()];
            let value: ScalarValue = if scalar.is_float() { scalar.from_f64(0.5) } else { scalar.zero() };
            Some(Exp::Replicate(shape, Atom::Const(value)))
        }
        Type::Tuple(items) => {
            let atoms = items.iter().map(|t| t.scalar().map(|s| Atom::Const(s.zero())));
            Some(Exp::Tuple(atoms.collect::<Option<Vec<_>>>()?))
        }
        Type::Sum(variants) => variants.iter().enumerate().find_map(|(k, v)| {
            let atoms = v.fields.iter().map(|t| t.scalar().map(|s| Atom::Const(s.zero())));
            Some(Exp::Inject(ty.clone(), k, atoms.collect::<Option<Vec<_>>>()?))
        }),
        Type::Named(_) | Type::Acc(_) => None,
    }
}

/// Every variable bound becomes an earlier variable of its type: the `which`-th nearest.
fn aliases(program: &Program, body: &mut Body, at: usize, stm: &Stm, scope: &[Var], which: usize) -> bool {
    if matches!(stm.exp, Exp::Atom(_)) {
        return rename_away(body, at, stm);
    }
    let mut stms = Vec::new();
    for v in &stm.pat {
        let ty = &program.vars[*v].ty;
        let Some(other) = scope.iter().rev().filter(|w| program.vars[**w].ty == *ty).nth(which) else {
            return false;
        };
        stms.push(Stm { pat: vec![*v], exp: Exp::Atom((*other).into()) });
    }
    body.stms.splice(at..=at, stms);
    true
}

/// Removes a statement that only gives another name.
fn rename_away(body: &mut Body, at: usize, stm: &Stm) -> bool {
    let Exp::Atom(a) = stm.exp else { return false };
    body.stms.remove(at);
    let mut subst = IdMap::new();
    subst.insert(stm.pat[0], a);
    substitute_body(body, &subst);
    true
}

/// A loop or SOAC over constants of one iteration.
fn one_iteration(body: &mut Body, at: usize, stm: &Stm) -> bool {
    let mut exp = stm.exp.clone();
    let one = |n: &mut Atom| {
        let old = *n;
        if let Atom::Const(c) = old
            && c.as_i64() <= 1
        {
            return false;
        }
        *n = match old {
            Atom::Const(c) => Atom::Const(c.scalar().from_i64(1)),
            Atom::Var(_) => Atom::i64(1),
        };
        true
    };
    let changed = match &mut exp {
        Exp::Loop(l) => match &mut l.form {
            LoopForm::For { n, .. } => one(n),
            LoopForm::While(_) => false,
        },
        Exp::Soac(Soac::Map { width, .. }) => one(width),
        _ => false,
    };
    body.stms[at].exp = exp;
    changed
}

/// The case as a suite file: program text, arguments, seed, what failed.
pub fn suite_file(case: &Case, property: Property, text: &str) -> String {
    let mut out = format!("# Shrunk from random program {}\n\n", case.seed);
    out += &format!("The property `{}` failed: {text}\n\n", property.name());
    out += &format!("```core\n{}```\n", pullback_core::print::print(&case.program));
    let args: Vec<String> = case.args.iter().map(crate::text::show).collect();
    out += &format!(
        "```case seed-{}\nmain {}\nproperty {}\norigin shrunk\n```\n",
        case.seed,
        args.join(" "),
        property.name()
    );
    out
}
