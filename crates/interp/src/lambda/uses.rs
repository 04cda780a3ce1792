//! Where the value of a variable is used for the last time, so that it can be moved out and written in place.
//!
//! A walk against the order of evaluation. Terms may be shared: an occurrence counts as last only if it is in every place.

use pullback_base::index::IdSet;
use pullback_base::table::Table;
use pullback_lambda::check::binders;
use pullback_lambda::{Exp, Fun, LoopForm, Soac, Term, Var};

/// The address of a node, which identifies it as long as its program lives.
pub(super) fn address(t: &Term) -> usize {
    std::ptr::from_ref(t.exp()) as usize
}

/// The variable terms of these functions, by their addresses: whether their variable is not used afterwards.
pub(super) fn last_uses<'p>(funs: impl Iterator<Item = &'p Fun>) -> Table<usize, bool> {
    let mut walk = Walk { live: IdSet::new(), last: Table::new() };
    for body in funs.filter_map(|f| f.body.as_ref()) {
        walk.live.clear();
        walk.term(body);
    }
    walk.last
}

struct Walk {
    /// Variables that are used later.
    live: IdSet<Var>,
    last: Table<usize, bool>,
}

/// The array that an operation writes: evaluated after the other operands if it is a variable, so that they may look at it.
pub(super) fn written(exp: &Exp) -> Option<&Term> {
    let array = match exp {
        Exp::Update(a, ..) | Exp::UpdateSlice(a, ..) => a,
        Exp::Soac(Soac::Hist { dst, .. } | Soac::Scatter { dst, .. }) => dst,
        _ => return None,
    };
    matches!(array.exp(), Exp::Var(_)).then_some(array)
}

impl Walk {
    fn term(&mut self, t: &Term) {
        let mut t = t;
        let mut chain = Vec::new();
        while let Exp::Let(v, value, body) = t.exp() {
            chain.push((*v, value));
            t = body;
        }
        pullback_lambda::with_stack(|| self.node(t));
        for (v, value) in chain.into_iter().rev() {
            self.live.remove(&v);
            self.term(value);
        }
    }
    /// Alternatives, of which one is evaluated.
    fn branches<'t>(&mut self, branches: impl Iterator<Item = &'t Term>) {
        let after = self.live.clone();
        let mut before = after.clone();
        for branch in branches {
            self.live.clone_from(&after);
            self.term(branch);
            before.append(&mut self.live);
        }
        self.live = before;
    }
    fn node(&mut self, t: &Term) {
        match t.exp() {
            Exp::Var(v) => {
                let is_last = self.live.insert(*v);
                *self.last.or_insert_with(address(t), || true) &= is_last;
            }
            Exp::Lam(param, body) | Exp::LinearLam(param, body) => {
                // The closure has its own hold on what it captures.
                let after = std::mem::take(&mut self.live);
                self.term(body);
                self.live.remove(param);
                self.live.extend(after);
            }
            Exp::If(c, a, b) => {
                self.branches([a, b].into_iter());
                self.term(c);
            }
            Exp::Match(x, arms) => {
                self.branches(arms.iter().map(|arm| &arm.body));
                for v in arms.iter().flat_map(|arm| &arm.params) {
                    self.live.remove(v);
                }
                self.term(x);
            }
            Exp::Loop(l) => {
                let mut used = Free::default();
                used.term(&l.body);
                if let LoopForm::While(c) = &l.form {
                    used.term(c);
                }
                // Every iteration uses what is bound outside.
                self.live.extend(used.free());
                self.live.remove(&l.state);
                self.term(&l.body);
                match &l.form {
                    LoopForm::For(i, n) => {
                        self.live.remove(&l.state);
                        self.live.remove(i);
                        self.term(n);
                    }
                    LoopForm::While(c) => {
                        // The state is the result when the condition fails.
                        self.live.insert(l.state);
                        self.term(c);
                        self.live.remove(&l.state);
                    }
                }
                self.term(&l.init);
            }
            Exp::Par(ts) => {
                // In any order.
                let mut used = Free::default();
                ts.iter().for_each(|t| used.term(t));
                self.live.extend(used.free());
                ts.iter().rev().for_each(|t| self.term(t));
            }
            other => {
                let written = written(other);
                if let Some(array) = written {
                    self.term(array);
                }
                let mut children = Vec::new();
                other.children(&mut |child| children.push(child));
                children.retain(|c| !written.is_some_and(|a| std::ptr::eq(*c, a)));
                children.into_iter().rev().for_each(|c| self.term(c));
            }
        }
    }
}

/// The free variables of terms.
#[derive(Default)]
struct Free {
    used: IdSet<Var>,
    bound: IdSet<Var>,
}

impl Free {
    fn term(&mut self, t: &Term) {
        let mut t = t;
        while let Exp::Let(v, value, body) = t.exp() {
            self.bound.insert(*v);
            self.term(value);
            t = body;
        }
        pullback_lambda::with_stack(|| {
            if let Exp::Var(v) = t.exp() {
                self.used.insert(*v);
            }
            binders(t.exp(), &mut |v| {
                self.bound.insert(v);
            });
            t.exp().children(&mut |child| self.term(child));
        });
    }
    fn free(self) -> impl Iterator<Item = Var> {
        let Free { used, bound } = self;
        used.into_iter().filter(move |v| !bound.contains(v))
    }
}
