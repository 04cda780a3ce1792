//! Which recursive calls keep their tapes, and which run again before they are reversed.
//!
//! Source: "split" and "joint" reversal of calls, A. Griewank and A. Walther, Evaluating Derivatives, 2nd ed., chapter 12; the
//!   choice by counts is ours.
//! `f_fwd` gets a number, its room, and hands each call inside an equal share of it. Where no room is left, `f_count` is called
//! instead: it also returns how many calls it made, itself included, and gives up its tape if they are at most
//! `kept_calls`: what runs again fits a cache. `f_rev` has the arguments of the call. Where it finds no tape it makes one
//! by `f_fwd` with unlimited room (-1), so that no call inside is given up a second time.
//! Guarantees: every call runs forward at most twice, so the cost stays within a constant factor; where all calls fit the
//!   room, none runs twice. Of the calls without room, only tapes of those with more calls inside are kept. Values are the same, bit by
//!   bit.
//! Where a function needs no tape at all (see [`super::at_once`]), `f_rev` does not make one, and the order of sums in accumulators
//!   is another one.
//! Assumes: the function may call itself more than once, takes no accumulators, and only reads arrays. Arguments are
//!   arrays that last, or were made at a cost of their size, and that nobody writes to; else all tapes are kept.

use super::reloadable::{Lifetimes, holds_arrays, lifetimes};
use super::reverse::Reverse;
use pullback_core::prune::prune_body;
use pullback_core::traverse::{called_functions, for_each_stm, leads_to, reachable_functions};
use pullback_core::{Atom, Body, Exp, FunId, Lam, Program, Stm, Type, Var};
use pullback_prim::{Op, Scalar};

/// Inside a function that hands on its room.
#[derive(Clone, Copy)]
pub(crate) struct Room {
    /// How many calls may keep their tapes below this one; all if negative.
    pub(crate) calls: Var,
    /// Between how many calls in its text the function shares it.
    sites: i64,
}

/// Emits what stands for a call: its pattern, the forward function and that which counts, its arguments.
type Replace<'a, 'p> = dyn FnMut(&mut Reverse<'p>, &[Var], (FunId, FunId), &[Atom]) + 'a;

impl<'p> Reverse<'p> {
    /// Whether this call may run again instead of keeping its tape.
    pub(crate) fn may_give_up(&mut self, f: FunId, args: &[Atom]) -> bool {
        let kept = |a: &Atom| {
            let Some(v) = a.var() else { return true };
            !holds_arrays(&self.b.program.vars[v].ty) || self.lifetimes.kept.contains(&v)
        };
        self.config.kept_calls >= 0 && args.iter().all(kept) && self.may_be_given_up(f)
    }

    fn may_be_given_up(&mut self, f: FunId) -> bool {
        if let Some(&known) = self.calls.given_up.get(&f) {
            return known;
        }
        let found = calls_more_than_once(self.b.program, f) && self.only_reads(f);
        self.calls.given_up.insert(f, found);
        found
    }

    /// Whether the function takes nothing with arrays but arrays that it only reads.
    fn only_reads(&mut self, f: FunId) -> bool {
        let program = &*self.b.program;
        let reads = self.calls.reads.of(program, f);
        program.funs[f].params.iter().zip(reads).all(|(&v, &reads)| match &program.vars[v].ty {
            Type::Array(_) => reads,
            ty => !holds_arrays(ty),
        })
    }

    /// How long the arrays of a lambda are there. Functions do not write to what they only read.
    pub(crate) fn lifetimes_of(&mut self, lam: &Lam) -> Lifetimes {
        for f in called_functions(&lam.body) {
            self.calls.reads.of(self.b.program, f);
        }
        let known = self.calls.reads.known();
        let only_read = |f: FunId, k: usize| known.get(&f).is_some_and(|reads| reads[k]);
        lifetimes(self.b.program, lam, &only_read)
    }

    /// The room of a function with this body.
    pub(crate) fn new_room(&mut self, body: &Body) -> Room {
        let mut sites = 0;
        for_each_stm(body, &mut |stm| {
            if let Exp::Call(g, args) = &stm.exp {
                sites += i64::from(self.may_give_up(*g, args));
            }
        });
        Room { calls: self.b.fresh(Type::I64, "room"), sites: sites.max(1) }
    }

    /// Emits the room for a call at this place.
    pub(crate) fn share(&mut self) -> Atom {
        let Some(Room { calls, sites }) = self.room else { return Atom::i64(self.config.kept_calls) };
        let mut shares = Atom::i64(sites);
        for n in self.rounds.clone() {
            let n = self.b.convert(n, Scalar::I64);
            let n = self.b.op2(Op::Max, n, Atom::i64(1));
            shares = if shares == Atom::i64(1) { n } else { self.b.op2(Op::Mul, shares, n) };
        }
        // Rounded down: -1 stays what it is.
        self.b.op2(Op::Div, calls.into(), shares)
    }

    /// The calls of forward functions with room, where it may be used up: then those that count are called.
    pub(crate) fn by_room(&mut self, stms: &[Stm]) -> Vec<Stm> {
        self.replace_calls(stms, &mut |s, pat, (forward, count), args| {
            let Some((&room, rest)) = args.split_last() else { return };
            let none = s.b.op2(Op::Eq, room, Atom::i64(0));
            let out = s.b.if_(
                none,
                |b| {
                    let mut out = b.emit_all(Exp::Call(count, rest.to_vec()), "r");
                    out.pop();
                    out.into_iter().map(Atom::Var).collect()
                },
                |b| b.emit_all(Exp::Call(forward, args.to_vec()), "r").into_iter().map(Atom::Var).collect(),
            );
            pat.iter().zip(out).for_each(|(&v, r)| s.b.emit_to(vec![v], Exp::Atom(r.into())));
        })
    }

    /// The calls of forward functions with room, as calls of those that count; the numbers of calls are added to `total`.
    pub(crate) fn counted(&mut self, stms: &[Stm], total: Var) -> Vec<Stm> {
        self.replace_calls(stms, &mut |s, pat, (_, count), args| {
            let Some((_, rest)) = args.split_last() else { return };
            let calls = s.b.fresh(Type::I64, "calls");
            let pat = pat.iter().copied().chain([calls]).collect();
            s.b.emit_to(pat, Exp::Call(count, rest.to_vec()));
            s.b.emit(Exp::AccAdd(total.into(), vec![Atom::i64(0)], calls.into()), "done");
        })
    }

    fn replace_calls(&mut self, stms: &[Stm], replace: &mut Replace<'_, 'p>) -> Vec<Stm> {
        self.b.open();
        for stm in stms {
            if let Exp::Call(f, args) = &stm.exp
                && let Some(count) = self.counts(*f)
            {
                replace(self, &stm.pat, (*f, count), args);
                continue;
            }
            let mut stm = stm.clone();
            for scope in stm.exp.bodies_mut() {
                scope.body.stms = self.replace_calls(&scope.body.stms, replace);
            }
            self.b.emit_stm(stm);
        }
        self.b.close(Vec::new()).stms
    }

    /// The results of a forward function that counts: those of the function, its tape if it is not given up, the number of calls.
    /// `make` emits the statements and returns the results and what is stored.
    pub(crate) fn counting(
        &mut self,
        tape: &Type,
        results: usize,
        make: impl FnOnce(&mut Self, Var) -> Vec<Atom>,
    ) -> Vec<Atom> {
        let total = self.b.fresh(Type::acc(Type::array(Type::I64)), "total");
        let one = self.b.emit(Exp::ArrayLit(Type::I64, vec![Atom::i64(1)]), "one");
        self.b.open();
        let out = make(self, total);
        let mut body = self.b.close(out);
        prune_body(self.b.program, &mut body);
        let out = self.b.emit_all(Exp::WithAcc(vec![one], Lam { params: vec![total], body }), "r");
        let mut result: Vec<Atom> = out[1..].iter().map(|&v| v.into()).collect();
        let stored = result.split_off(results);
        let calls = self.b.index(out[0].into(), &[Atom::i64(0)]);
        let many = self.b.op2(Op::Lt, Atom::i64(self.config.kept_calls), calls);
        let tape = self.b.if_(
            many,
            |b| vec![b.emit(Exp::Inject(tape.clone(), 1, stored), "tape")],
            |b| vec![b.emit(Exp::Inject(tape.clone(), 0, Vec::new()), "tape")],
        );
        result.extend([tape[0].into(), calls]);
        result
    }
}

/// Whether one of the functions that lead back to `f` calls such functions more than once.
fn calls_more_than_once(program: &Program, f: FunId) -> bool {
    let all = reachable_functions(program, [f]);
    let around: Vec<FunId> =
        all.into_iter().filter(|&g| leads_to(program, &program.funs[g].body, f)).collect();
    let calls = |body: &Body| {
        let mut sites = 0;
        for_each_stm(body, &mut |stm| {
            sites += usize::from(matches!(&stm.exp, Exp::Call(g, _) if around.contains(g)));
        });
        sites
    };
    around.iter().any(|&g| {
        let body = &program.funs[g].body;
        let mut repeated = false;
        for_each_stm(body, &mut |stm| {
            let is_loop = matches!(stm.exp, Exp::Loop(_) | Exp::Soac(_));
            repeated |= is_loop && stm.exp.bodies().iter().any(|s| calls(s.body) > 0);
        });
        repeated || calls(body) > 1
    })
}
