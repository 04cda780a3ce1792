//! Which operators give the same with their arguments exchanged.
//!
//! The body is evaluated twice on names: as it stands, and with the two groups of parameters exchanged. Equal expressions get
//! equal names, where primitives such as `+` may have their arguments in either order; the operator is symmetric if the
//! results have the same names. With associativity, which `reduce` asks of its operator, the elements may then be taken in
//! any order. Operators that are symmetric for another reason are not found.

use pullback_base::index::IdMap;
use pullback_core::{Atom, Body, Exp, Lam, Var};
use pullback_prim::{Op, Prim};

/// Whether exchanging the two groups of parameters changes nothing.
pub(super) fn is_symmetric(lam: &Lam) -> bool {
    let count = lam.params.len() / 2;
    let mut names = Names::default();
    let params: Vec<Name> = (0..lam.params.len()).map(|k| names.of(Expression::Param(k))).collect();
    let mut results = |first: &[Name], second: &[Name]| {
        names.env = lam.params.iter().copied().zip(first.iter().chain(second).copied()).collect();
        names.body(&lam.body)
    };
    let (left, right) = params.split_at(count);
    let plain = results(left, right);
    plain.is_some() && plain == results(right, left)
}

/// The name of an expression.
type Name = usize;

#[derive(PartialEq)]
enum Expression {
    Param(usize),
    /// A constant, or a variable from outside.
    Atom(Atom),
    Prim(Prim, Vec<Name>),
    /// The condition, the value if it holds, and the one if not.
    Either(Name, Name, Name),
}

#[derive(Default)]
struct Names {
    /// The expressions by their names.
    known: Vec<Expression>,
    env: IdMap<Var, Name>,
}

impl Names {
    fn of(&mut self, e: Expression) -> Name {
        self.known.iter().position(|known| *known == e).unwrap_or_else(|| {
            self.known.push(e);
            self.known.len() - 1
        })
    }
    fn atom(&mut self, a: Atom) -> Name {
        let known = a.var().and_then(|v| self.env.get(&v)).copied();
        known.unwrap_or_else(|| self.of(Expression::Atom(a)))
    }
    /// The names of the results; `None`: there is more in it than scalars and branches.
    fn body(&mut self, body: &Body) -> Option<Vec<Name>> {
        for stm in &body.stms {
            let values = match &stm.exp {
                Exp::Atom(a) => vec![self.atom(*a)],
                Exp::Prim(prim, args) => {
                    let mut args: Vec<Name> = args.iter().map(|a| self.atom(*a)).collect();
                    if takes_either_order(*prim) {
                        args.sort_unstable();
                    }
                    vec![self.of(Expression::Prim(*prim, args))]
                }
                Exp::If(condition, then, otherwise) => {
                    let condition = self.atom(*condition);
                    let arms = self.body(then)?.into_iter().zip(self.body(otherwise)?);
                    arms.map(|(x, y)| self.of(Expression::Either(condition, x, y))).collect()
                }
                _ => return None,
            };
            self.env.extend(stm.pat.iter().copied().zip(values));
        }
        Some(body.result.iter().map(|a| self.atom(*a)).collect())
    }
}

fn takes_either_order(prim: Prim) -> bool {
    let Prim::Op(op, _) = prim else { return false };
    matches!(op, Op::Add | Op::Mul | Op::Min | Op::Max | Op::And | Op::Or | Op::Xor | Op::Eq | Op::Ne)
}
