//! What minimum and maximum of floats are inside of operators: choices of the first of equal arguments.
//!
//! The same as `pullback_core::choose`, for algorithms on lambda: an operator of a reduction, a scan or a histogram may be bracketed in any way,
//! and shares of equal elements would depend on the brackets.
//!
//! Assumes that operators are written where they are used, as [`crate::inline`] leaves them; an operator that is a variable stays as it is. Functions that
//! operators call, since they call themselves, are copied, as they are called elsewhere too. Guarantees: the same values, types and costs; a second
//! time nothing changes. Cost: linear in the terms.

use crate::inline::{Loops, inline};
use crate::term::{Exp, FunId, Program, Soac, Term};
use crate::with_stack;
use pullback_base::index::IdMap;

/// How many terms a copy of a function may have. A larger one is called as it is.
const LIMIT: usize = 1_000_000;

/// In a function and in those that it calls.
pub fn operators_choose(program: &mut Program, f: FunId) {
    let called = program.reachable(f);
    let mut choose = Choose { program, copies: IdMap::new() };
    for g in called {
        choose.function(g, false);
    }
}

struct Choose<'p> {
    program: &'p mut Program,
    /// Functions as operators call them.
    copies: IdMap<FunId, FunId>,
}

impl Choose<'_> {
    fn function(&mut self, f: FunId, inside: bool) {
        // (Not taken out: it may have to be copied.)
        if let Some(mut body) = self.program.funs[f].body.clone() {
            self.term(&mut body, inside);
            self.program.funs[f].body = Some(body);
        }
    }
    /// A term; `inside` of an operator.
    fn term(&mut self, t: &mut Term, inside: bool) {
        with_stack(|| match t.exp_mut() {
            Exp::Prim(prim, args) => {
                if inside {
                    *prim = prim.in_operator();
                }
                args.iter_mut().for_each(|a| self.term(a, inside));
            }
            Exp::Call(f, args) => {
                if inside {
                    *f = self.inside_of_operator(*f);
                }
                args.iter_mut().for_each(|a| self.term(a, inside));
            }
            Exp::Soac(Soac::Reduce { op, neutral, array, .. } | Soac::Scan { op, neutral, array }) => {
                self.term(op, true);
                [neutral, array].into_iter().for_each(|t| self.term(t, inside));
            }
            Exp::Soac(Soac::Hist { op, neutral, dst, indices, values }) => {
                self.term(op, true);
                [neutral, dst, indices, values].into_iter().for_each(|t| self.term(t, inside));
            }
            exp => exp.children_mut(&mut |child| self.term(child, inside)),
        });
    }
    /// The function as operators call it: itself where nothing inside of it would change.
    fn inside_of_operator(&mut self, f: FunId) -> FunId {
        if let Some(copy) = self.copies.get(&f) {
            return *copy;
        }
        let changes = |g: FunId| self.program.funs[g].body.as_ref().is_some_and(takes_extrema);
        if !self.program.reachable(f).into_iter().any(changes) {
            return f;
        }
        let copy = inline(self.program, f, Loops::Kept, LIMIT).unwrap_or(f);
        self.copies.insert(f, copy);
        self.copies.insert(copy, copy);
        if copy != f {
            self.function(copy, true);
        }
        copy
    }
}

/// Whether there is a minimum or maximum of floats.
fn takes_extrema(t: &Term) -> bool {
    let mut found = matches!(t.exp(), Exp::Prim(prim, _) if prim.in_operator() != *prim);
    with_stack(|| t.exp().children(&mut |child| found |= takes_extrema(child)));
    found
}
