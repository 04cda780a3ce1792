//! The free variables of lambdas.

use super::value::LambdaCode;
use pullback_base::index::{IdMap, IdSet, IdTable};
use pullback_lambda::check::binders;
use pullback_lambda::{Exp, Fun, Term, Var};
use std::rc::Rc;

/// Every lambda of these functions, by the variable it binds, with its free variables in the order of their numbers.
pub(super) fn lambdas<'p>(funs: impl Iterator<Item = &'p Fun>) -> IdMap<Var, Rc<LambdaCode>> {
    let mut walk = Walk { depths: IdTable::new(), open: Vec::new(), done: IdMap::new() };
    for fun in funs {
        fun.params.iter().for_each(|&v| walk.bind(v));
        if let Some(body) = &fun.body {
            walk.term(body);
        }
    }
    walk.done
}

struct Walk {
    /// How many lambdas were open where a variable was bound.
    depths: IdTable<Var, usize>,
    /// The free variables, found so far, of the lambdas around.
    open: Vec<IdSet<Var>>,
    done: IdMap<Var, Rc<LambdaCode>>,
}

impl Walk {
    fn bind(&mut self, v: Var) {
        self.depths.insert(v, self.open.len());
    }
    fn term(&mut self, t: &Term) {
        let mut t = t;
        while let Exp::Let(v, value, body) = t.exp() {
            self.term(value);
            self.bind(*v);
            t = body;
        }
        pullback_lambda::with_stack(|| self.node(t));
    }
    fn node(&mut self, t: &Term) {
        match t.exp() {
            Exp::Var(v) => {
                let depth = self.depths.get(*v).copied().unwrap_or(0);
                for free in self.open.iter_mut().skip(depth) {
                    free.insert(*v);
                }
            }
            Exp::Lam(param, body) | Exp::LinearLam(param, body) => {
                self.open.push(IdSet::new());
                self.bind(*param);
                self.term(body);
                let captures = self.open.pop().unwrap_or_default().into_iter().collect();
                self.done.insert(*param, Rc::new(LambdaCode { param: *param, body: body.clone(), captures }));
            }
            other => {
                binders(other, &mut |v| self.bind(v));
                other.children(&mut |child| self.term(child));
            }
        }
    }
}
