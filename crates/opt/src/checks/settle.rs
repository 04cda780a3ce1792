//! Checks that need not run become units, for `prune` to remove.
//!
//! A check holds if what is known at its place says so ([`super::known`]). It is made anyway if an operation asks the same wherever
//! it does: one in its body, before or after it, or in a body around. Such an operation has to stay itself, so it counts only if a
//! result needs it. Assumes that the next pass that removes anything is `prune`.

use super::ask::{Part, asked};
use super::known::Known;
use crate::Ctx;
use pullback_base::Table;
use pullback_base::index::{IdMap, IdSet};
use pullback_core::prune::{Options, prune_stms};
use pullback_core::shapes::{Dim, shapes};
use pullback_core::traverse::{bound_vars, for_each_stm};
use pullback_core::{Atom, Body, Check, Exp, FunId, Loop, LoopForm, Program, Stm, Var};
use pullback_prim::{Op, Prim};

/// Runs the pass. Cost: the size of the program, and a bounded number of steps for each check.
pub fn settle_checks(program: &mut Program, ctx: &Ctx) {
    let ids: Vec<FunId> = program.funs.ids().filter(|id| has_checks(&program.funs[*id].body)).collect();
    if ids.is_empty() {
        return;
    }
    let needed = if ctx.derivatives_done { needed(program) } else { IdMap::new() };
    for id in ids {
        let shapes = shapes(program, &program.funs[id].params, &program.funs[id].body);
        let mut body = std::mem::take(&mut program.funs[id].body);
        let mut known = Known::new(program, shapes);
        known.bind(program.funs[id].params.iter().copied());
        Settle { known, needed: needed.get(&id), made: Table::new() }.body(&mut body);
        program.funs[id].body = body;
    }
}

fn has_checks(body: &Body) -> bool {
    let mut found = false;
    for_each_stm(body, &mut |s| found |= matches!(s.exp, Exp::Check(..)));
    found
}

/// By function, the variables of statements that results need, and not checks alone. Functions that are called for their checks alone are
/// left out: the call would go with the checks.
fn needed(program: &mut Program) -> IdMap<FunId, IdSet<Var>> {
    let mut out = IdMap::new();
    let ids: Vec<FunId> = program.funs.ids().collect();
    for id in &ids {
        let body = program.funs[*id].body.clone();
        let options = Options { asserts: false, ..Options::default() };
        let stms = prune_stms(program, body.stms, &body.result, &options);
        out.insert(*id, bound_vars(&Body { stms, result: Vec::new() }).into_iter().collect::<IdSet<Var>>());
    }
    let mut called = IdSet::new();
    for id in ids {
        for_each_stm(&program.funs[id].body, &mut |stm| {
            if let Exp::Call(f, _) = &stm.exp
                && !stm.pat.iter().any(|v| out[&id].contains(v))
            {
                called.insert(*f);
            }
        });
    }
    out.retain(|f, _| !called.contains(f));
    out
}

/// What an operation asks: the names of its operands.
type Asked = (Check, Vec<Dim>);

struct Settle<'p> {
    known: Known<'p>,
    /// The variables of statements that stay in any case, if that is known.
    needed: Option<&'p IdSet<Var>>,
    /// What operations ask wherever this place is reached.
    made: Table<Asked, ()>,
}

impl Settle<'_> {
    fn body(&mut self, body: &mut Body) {
        let facts = self.known.facts.len();
        let mut asked: Vec<Asked> = body.stms.iter().filter_map(|stm| self.asked(stm)).collect();
        asked.retain(|asked| self.made.insert(asked.clone(), ()).is_none());
        for stm in &mut body.stms {
            self.known.note(stm);
            match &mut stm.exp {
                Exp::Check(check, args) => {
                    let (check, args) = (*check, args.clone());
                    if self.holds(check, &args) || self.is_made(check, &args) {
                        stm.exp = Exp::Tuple(Vec::new()); // its name may be a result
                    } else {
                        self.learn(check, &args);
                    }
                }
                Exp::Assert(condition, ..) => self.known.assume(*condition, true),
                Exp::If(condition, then, otherwise) => {
                    let condition = *condition;
                    self.branch(condition, true, then);
                    self.branch(condition, false, otherwise);
                }
                exp => self.inside(exp),
            }
        }
        self.known.facts.truncate(facts);
        asked.iter().for_each(|asked| {
            self.made.remove(asked);
        });
    }
    fn branch(&mut self, condition: Atom, holds: bool, body: &mut Body) {
        let facts = self.known.facts.len();
        self.known.assume(condition, holds);
        self.body(body);
        self.known.facts.truncate(facts);
    }
    fn inside(&mut self, exp: &mut Exp) {
        let facts = self.known.facts.len();
        self.known.enter(exp);
        match exp {
            Exp::Loop(Loop { form: LoopForm::While(condition), body, .. }) => {
                self.body(condition);
                condition.result.iter().for_each(|c| self.known.assume(*c, true));
                self.body(body);
            }
            exp => exp.bodies_mut().into_iter().for_each(|scope| self.body(scope.body)),
        }
        self.known.facts.truncate(facts);
    }

    /// What a statement asks that stays.
    fn asked(&self, stm: &Stm) -> Option<Asked> {
        if !stm.pat.iter().any(|v| self.needed.is_some_and(|needed| needed.contains(v))) {
            return None;
        }
        let shapes = &self.known.shapes;
        let sizes = |a: Atom| a.var().map_or(&[][..], |v| shapes.of(v));
        let (check, parts) = asked(&stm.exp, |a| sizes(a).len())?;
        let name = |part: Part| match part {
            Part::Operand(a) => Some(shapes.name(a)),
            Part::Size(a, d) => sizes(a).get(d).copied(),
        };
        Some((check, parts.into_iter().map(name).collect::<Option<_>>()?))
    }
    fn is_made(&self, check: Check, args: &[Atom]) -> bool {
        let names: Vec<Dim> = args.iter().map(|a| self.known.shapes.name(*a)).collect();
        self.made.contains(&(check, names))
    }

    fn holds(&self, check: Check, args: &[Atom]) -> bool {
        let known = &self.known;
        match check {
            Check::Index(count) => {
                let (ix, shape) = args.split_at(count);
                ix.iter().zip(shape).all(|(i, n)| known.is_inside(*i, *n))
            }
            Check::Slice => self.slice_holds(args),
            Check::Gather => false,
            Check::Rows => args.iter().all(|a| known.is_uniform(*a)),
            Check::Shapes(_, rank) => {
                let (left, right) = args.split_at(rank);
                left.iter().zip(right).all(|(a, b)| known.is_equal(*a, *b))
            }
            Check::Prim(prim) => match (prim, args) {
                (Prim::Op(Op::Pow, _), [_, n]) => known.is_size(*n),
                (_, [_, by]) => {
                    let by = known.sum(*by);
                    [1, -1].iter().any(|sign| {
                        let least = by.times(*sign).and_then(|by| by.moved(-1));
                        least.is_some_and(|d| known.is_positive_or_zero(&d))
                    })
                }
                _ => false,
            },
            Check::Sizes => args.iter().all(|n| known.is_size(*n)),
            Check::Reshape(count) => {
                let (old, new) = args.split_at(count);
                // A size of the old shape that was computed as a product may have wrapped round: it stays a symbol.
                let before = self.product(old, false);
                new.iter().all(|n| known.is_size(*n))
                    && (before == self.product(new, false) || before == self.product(new, true))
            }
        }
    }
    /// First and last element are inside.
    fn slice_holds(&self, args: &[Atom]) -> bool {
        let known = &self.known;
        let [start, len, stride, n] = [0, 1, 2, 3].map(|k| known.sum(args[k]));
        if !stride.terms.is_empty() || !known.is_positive_or_zero(&len) {
            return false;
        }
        // An empty one may begin where the array ends.
        let beyond = match stride.number {
            1 => start.plus(1, &len).and_then(|end| n.minus(&end)),
            _ => None,
        };
        let last = len.moved(-1).and_then(|steps| start.plus(stride.number, &steps));
        beyond.is_some_and(|d| known.is_positive_or_zero(&d) && known.is_positive_or_zero(&start))
            || last.is_some_and(|last| known.is_between(&start, &n) && known.is_between(&last, &n))
    }
    /// The factors of a product of sizes: the constant one, and the others in order. `definitions`: sizes that are products are put in.
    fn product(&self, sizes: &[Atom], definitions: bool) -> (i64, Vec<Dim>) {
        let mut number = 1i64;
        let mut factors = Vec::new();
        let mut work: Vec<Atom> = sizes.to_vec();
        while let Some(a) = work.pop() {
            match (self.known.shapes.name(a), self.known.def(a)) {
                (Dim::Const(n), _) => number = number.saturating_mul(n),
                (_, Some(Exp::Prim(Prim::Op(Op::Mul, _), args))) if definitions => work.extend(args),
                (dim, _) => factors.push(dim),
            }
        }
        factors.sort();
        (number, factors)
    }

    /// What holds after a check.
    fn learn(&mut self, check: Check, args: &[Atom]) {
        match check {
            Check::Index(count) => {
                let (ix, shape) = args.split_at(count);
                ix.iter().zip(shape).for_each(|(i, n)| self.known.assume_inside(*i, *n));
            }
            Check::Sizes => {
                let sums: Vec<_> = args.iter().map(|n| self.known.sum(*n)).collect();
                self.known.facts.extend(sums);
            }
            Check::Slice
            | Check::Gather
            | Check::Prim(_)
            | Check::Reshape(_)
            | Check::Rows
            | Check::Shapes(..) => {}
        }
    }
}
