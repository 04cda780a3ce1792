//! A copy of the part of a program that taking one accumulation out of its nest changes: the nest, and the statements around
//! it without what else is in them.
//!
//! Programs are large, and a nest is small. Guarantees: positions in the part are those of the program, so that paths lead to
//! the same statements, until statements are inserted; every other statement is there as one that binds nothing. What may be
//! inserted: statements next to the nest, and behind the statements around it.

use pullback_core::{Body, Exp, Fun, FunId, Program, Stm};

pub(super) struct Part {
    pub(super) program: Program,
    function: FunId,
    /// To the nest, which is complete.
    path: Vec<(usize, usize)>,
}

impl Part {
    pub(super) fn new(program: &Program, function: FunId, path: &[(usize, usize)]) -> Part {
        let mut part =
            Program { types: program.types.clone(), vars: program.vars.clone(), ..Program::default() };
        for (id, fun) in program.funs.iter_enumerated() {
            let body = if id == function { shell(&fun.body, path) } else { Body::default() };
            let (name, results) = (fun.name.clone(), fun.results.clone());
            part.funs.push(Fun { name, params: fun.params.clone(), body, results, entry: None });
        }
        Part { program: part, function, path: path.to_vec() }
    }

    /// The program with the part as it is now; of the old one the rest is taken.
    pub(super) fn put_back(self, program: &mut Program) -> Program {
        let Part { program: mut part, function, path } = self;
        let mut body = std::mem::take(&mut part.funs[function].body);
        let mut rest = std::mem::take(program);
        merge(&mut body, std::mem::take(&mut rest.funs[function].body), &path);
        rest.funs[function].body = body;
        rest.vars = part.vars;
        rest
    }
}

/// The body with what is on the path, whose last statement is complete.
fn shell(body: &Body, path: &[(usize, usize)]) -> Body {
    let Some(((at, scope), inner)) = path.split_first() else { return Body::default() };
    let nothing = || Stm { pat: Vec::new(), exp: Exp::Tuple(Vec::new()) };
    let mut stms: Vec<Stm> = body.stms.iter().map(|_| nothing()).collect();
    let stm = &body.stms[*at];
    stms[*at] = if inner.is_empty() {
        stm.clone()
    } else {
        let mut exp = stm.exp.shell();
        let bodies = stm.exp.bodies().into_iter().zip(exp.bodies_mut()).skip(*scope);
        for (from, to) in bodies.take(1) {
            *to.body = shell(from.body, inner);
        }
        Stm { pat: stm.pat.clone(), exp }
    };
    Body { stms, result: body.result.clone() }
}

/// Puts the statements of the old body in the places of those that bind nothing.
fn merge(body: &mut Body, old: Body, path: &[(usize, usize)]) {
    let Some(((at, scope), inner)) = path.split_first() else { return };
    let mut around = None;
    let mut rest = Vec::with_capacity(old.stms.len());
    for (k, stm) in old.stms.into_iter().enumerate() {
        if k == *at { around = Some(stm.exp) } else { rest.push(stm) }
    }
    if let (Some(mut around), false) = (around, inner.is_empty()) {
        let bodies = body.stms[*at].exp.bodies_mut().into_iter().zip(around.bodies_mut());
        for (k, (new, old)) in bodies.enumerate() {
            let old = std::mem::take(old.body);
            if k == *scope { merge(new.body, old, inner) } else { *new.body = old }
        }
    }
    let mut rest = rest.into_iter();
    for stm in &mut body.stms {
        if stm.pat.is_empty()
            && let Some(old) = rest.next()
        {
            *stm = old;
        }
    }
}
