//! What minimum and maximum of floats are inside of operators: choices of the first of equal arguments.
//!
//! An operator of a reduction, a scan or a histogram may be bracketed in any way. At ties the primitives give half to each argument, so
//! that the shares of equal elements would depend on the brackets; a choice does not. The values are the same. Derivatives are
//! taken of programs after this; so whatever a rule makes of an operator (a loop, straight code, the operator of another
//! reduction) chooses as the operator does.
//!
//! Assumes a program in which functions may call each other. Guarantees: the same values and costs; a second time nothing changes;
//! functions that operators call are copied, as they are called elsewhere too. Cost: linear in the code.

use crate::ir::{Body, Exp, Fun, FunId, Lam, Program, Soac};
use crate::rename::{Subst, copy_lam};
use crate::traverse::{called_functions, for_each_stm, reachable_functions};
use pullback_base::index::IdMap;
use pullback_prim::Prim;

/// In a body, and in the functions that it calls.
pub fn operators_choose(program: &mut Program, body: &mut Body) {
    let called = reachable_functions(program, called_functions(body));
    let mut choose = Choose { program, copies: IdMap::new() };
    for &f in &called {
        choose.function(f, false);
    }
    choose.body(body, false);
}

/// In all functions of a program that takes derivatives.
pub fn all_operators_choose(program: &mut Program) {
    let mut differentiates = false;
    for fun in program.funs.iter() {
        for_each_stm(&fun.body, &mut |stm| {
            differentiates |= matches!(stm.exp, Exp::Vjp { .. } | Exp::Jvp { .. });
        });
    }
    if !differentiates {
        return;
    }
    let all: Vec<FunId> = program.funs.ids().collect();
    let mut choose = Choose { program, copies: IdMap::new() };
    for f in all {
        choose.function(f, false);
    }
}

struct Choose<'p> {
    program: &'p mut Program,
    /// Functions as operators call them.
    copies: IdMap<FunId, FunId>,
}

impl Choose<'_> {
    fn function(&mut self, f: FunId, inside: bool) {
        let mut body = std::mem::take(&mut self.program.funs[f].body);
        self.body(&mut body, inside);
        self.program.funs[f].body = body;
    }

    /// A body; `inside` of an operator.
    fn body(&mut self, body: &mut Body, inside: bool) {
        for stm in &mut body.stms {
            match &mut stm.exp {
                Exp::Prim(prim, _) if inside => *prim = prim.in_operator(),
                Exp::Call(f, _) if inside => *f = self.inside_of_operator(*f),
                Exp::Soac(Soac::Reduce { lam, .. } | Soac::Scan { lam, .. } | Soac::Hist { lam, .. }) => {
                    self.body(&mut lam.body, true)
                }
                Exp::Soac(Soac::Fused { pre, lam, .. }) => {
                    self.body(&mut pre.body, inside);
                    self.body(&mut lam.body, true);
                }
                exp => {
                    for scope in exp.bodies_mut() {
                        self.body(scope.body, inside);
                    }
                }
            }
        }
    }

    /// The function as operators call it: itself where nothing inside of it would change.
    fn inside_of_operator(&mut self, f: FunId) -> FunId {
        if let Some(&copy) = self.copies.get(&f) {
            return copy;
        }
        if !reachable_functions(self.program, [f]).iter().any(|&g| takes_extrema(&self.program.funs[g].body))
        {
            return f;
        }
        let fun = self.program.funs[f].clone();
        let lam = copy_lam(self.program, &Lam { params: fun.params, body: fun.body }, &Subst::new());
        let name = format!("{}_chosen", fun.name);
        let copy = Fun {
            name: name.as_str().into(),
            params: lam.params,
            body: lam.body,
            results: fun.results,
            entry: None,
        };
        let copy = self.program.funs.push(copy);
        self.copies.insert(f, copy);
        self.function(copy, true);
        copy
    }
}

/// Whether there is a minimum or maximum of floats.
fn takes_extrema(body: &Body) -> bool {
    let mut found = false;
    for_each_stm(body, &mut |stm| {
        found |= matches!(&stm.exp, Exp::Prim(prim @ Prim::Op(..), _) if prim.in_operator() != *prim);
    });
    found
}
