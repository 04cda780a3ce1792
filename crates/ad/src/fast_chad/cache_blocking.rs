//! Tapes that stay near: a long loop over arrays runs in blocks where its whole tape would leave the caches.
//!
//! The whole tape of such a loop goes to memory and comes back. If an iteration does little for each number of its state, running
//! it a second time is cheaper: the forward sweep keeps the states between blocks, and each block runs again, with a tape
//! of its own in a cache, just before it is reversed. Memory falls from `n · save` to `n / m · x + m · save` for blocks of `m` iterations.
//! The last block is the first to be reversed: it keeps its tape and does not run again. Sizes are known when the program runs; where all
//! fits, the last block is everything.
//!
//! Source: two-level checkpointing, R. Schenck, O. Rønning, T. Henriksen and C. E. Oancea, SC 2022, section III-B; when it
//! pays is measured (decision 44).
//! Guarantees: the same values. Loops that do not qualify are left as they are. Each iteration runs at most once more.

use super::checkpoint::{copied, level, number, root, state_bytes, trips};
use super::cotangent::Cotangent;
use super::reverse::{Env, Forward, Reverse};
use pullback_base::index::IdSet;
use pullback_core::traverse::{free_vars_exp, free_vars_lam};
use pullback_core::{Atom, Body, Exp, Loop, LoopForm, Soac, Stm, TapePolicy, Var};
use pullback_prim::{Op, Prim, Scalar};

/// What the tape may take: about what a thread has of a cache of the third level and the one before it.
const NEAR: u64 = 16 << 20;
/// The part of these bytes that the tape of a block may take, as a divisor.
const BLOCK: u64 = 2;
/// Blocks of fewer iterations gain too little where an iteration keeps no more than its state: the states between them go through memory as well.
const LEAST: u32 = 8;
/// What an iteration may cost for each number of its state, in simple operations. By the prices of `cut` a number that goes to
/// memory and comes back costs 56 more than one that stays in a cache.
const CELL: u64 = 48;

impl Reverse<'_> {
    /// What a loop without attributes keeps: outside of maps, loops and functions, cheap loops keep near what they can.
    pub(crate) fn tape_of(&self, l: &Loop) -> TapePolicy {
        let outermost = self.rounds.is_empty() && self.functions == 0;
        if self.config.near && outermost && self.is_cheap(l) {
            TapePolicy::Near { bytes: NEAR, least: LEAST }
        } else {
            TapePolicy::All
        }
    }

    /// Whether an iteration makes its next state as a whole, and does little for each number of it. (Where it writes a few elements,
    /// keeping states would cost more than all iterations.)
    fn is_cheap(&self, l: &Loop) -> bool {
        let types: Vec<_> = l.params.iter().map(|p| &self.b.program.vars[p.0].ty).collect();
        let regular = types.iter().all(|t| t.base().scalar().is_some());
        let rank = types.iter().map(|t| t.rank()).max().unwrap_or(0);
        let arrays = types.iter().filter(|t| t.rank() == rank).count() as u64;
        let counted = matches!(l.form, LoopForm::For { .. });
        let made = |(p, a): (&(Var, Atom), &Atom)| {
            self.b.program.vars[p.0].ty.rank() == 0 || *a == Atom::Var(p.0) || made_whole(&l.body, *a)
        };
        counted
            && regular
            && rank > 0
            && l.params.iter().zip(&l.body.result).all(made)
            && work(&l.body, rank).is_some_and(|w| w <= CELL * arrays)
    }

    /// All blocks but the last, each run again, then the last one, which is all of the loop where that is near.
    ///
    /// What an iteration keeps is taken to be its state, for each array that it does not only take linear functions of: no iteration has to run to measure it.
    pub(crate) fn near(
        &mut self,
        stm: &Stm,
        l: &Loop,
        (bytes, least): (u64, u32),
        cts: Vec<Cotangent>,
        env: &mut Env,
    ) -> Forward {
        let kept = self.arrays_kept(l);
        let start = Atom::i64(0);
        self.rewrite(stm, cts, env, |b| {
            let n = b.convert(trips(l), Scalar::I64);
            let state = state_bytes(b, l);
            // Divided: the product of all could be too large for a number.
            let some = b.op2(Op::Max, n, Atom::i64(1));
            let each = b.op2(Op::Div, number(bytes), some);
            let iteration = b.op2(Op::Mul, state, number(kept));
            let far = b.op2(Op::Lt, each, iteration);
            let fit = b.op2(Op::Div, number(bytes / BLOCK), iteration);
            let all = b.op2(Op::Div, number(bytes), iteration);
            let one = b.op2(Op::Min, all, Atom::i64(1));
            let fit = b.op2(Op::Max, fit, one);
            let size = root(b, n, 2);
            let size = b.op2(Op::Min, size, fit);
            let enough = b.op2(Op::Le, number(if kept > 1 { 1 } else { u64::from(least.max(1)) }), size);
            let far = b.op2(Op::And, far, enough);
            let size = b.select(far, size, some);
            // As many whole blocks as leave something for the last one.
            let before = b.op2(Op::Sub, some, Atom::i64(1));
            let blocks = b.op2(Op::Div, before, size);
            let before = b.op2(Op::Mul, blocks, size);
            let init: Vec<Atom> = l.params.iter().map(|p| p.1).collect();
            let x = level(b, l, &[size], (start, before), &init, Some(TapePolicy::All));
            let left = b.op2(Op::Sub, n, before);
            let from = b.op2(Op::Add, start, before);
            let last = copied(b, l);
            level(b, &last, &[], (from, left), &x, Some(TapePolicy::All))
        })
    }

    /// How many arrays of the state, and of those that operations of the body make, it does not only take linear functions of.
    fn arrays_kept(&self, l: &Loop) -> u64 {
        let made = l.body.stms.iter().filter(|s| !s.exp.bodies().is_empty()).flat_map(|s| &s.pat);
        let arrays = made.chain(l.params.iter().map(|p| &p.0));
        let arrays = arrays.filter(|v| self.b.program.vars[**v].ty.rank() > 0);
        arrays.filter(|v| !l.body.stms.iter().all(|s| is_linear_in(&s.exp, **v))).count().max(1) as u64
    }
}

/// Whether an operation does not mention an array, or is a map that takes linear functions of its elements.
fn is_linear_in(exp: &Exp, array: Var) -> bool {
    if !free_vars_exp(exp).contains(&array) {
        return true;
    }
    let Exp::Soac(Soac::Map { lam, arrays, .. }) = exp else { return false };
    let of_array = |(p, a): (&Var, &Atom)| (*a == Atom::Var(array)).then_some(*p);
    let mut linear: IdSet<Var> = lam.params.iter().zip(arrays).filter_map(of_array).collect();
    let mut inside: IdSet<Var> = lam.params.iter().copied().collect();
    !free_vars_lam(lam).contains(&array)
        && lam.body.stms.iter().all(|s| {
            let varies = |a: &Atom| a.var().is_some_and(|v| inside.contains(&v));
            let stays = free_vars_exp(&s.exp).iter().all(|v| !linear.contains(v));
            let fine = stays
                || match &s.exp {
                    Exp::Prim(Prim::Op(Op::Add | Op::Sub | Op::Neg, _), _) | Exp::Atom(_) => true,
                    Exp::Prim(Prim::Op(Op::Mul, _), args) => args.iter().any(|a| !varies(a)),
                    Exp::Prim(Prim::Op(Op::Div, _), args) => !varies(&args[1]),
                    _ => false,
                };
            linear.extend(s.pat.iter().filter(|_| !stays).copied());
            inside.extend(s.pat.iter().copied());
            fine
        })
}

/// What the body costs for each element of an array of this rank; `None` if it has deeper nests than that, or nobody can say.
fn work(body: &Body, rank: usize) -> Option<u64> {
    let mut total = 0;
    for stm in &body.stms {
        let inside = |body| work(body, rank.checked_sub(1)?);
        let cost = match &stm.exp {
            Exp::Prim(prim, _) => prim.cost(),
            Exp::If(_, a, b) => work(a, rank)? + work(b, rank)?,
            Exp::Marked(_, body) => work(body, rank)?,
            Exp::Soac(Soac::Map { lam, .. } | Soac::Reduce { lam, .. } | Soac::Scan { lam, .. }) => {
                inside(&lam.body)?
            }
            Exp::Loop(Loop { form: LoopForm::For { .. }, body, .. }) => inside(body)?,
            exp if exp.bodies().is_empty() && !matches!(exp, Exp::Call(..)) => 1,
            _ => return None,
        };
        // What runs once for many elements does not count.
        let inner = rank == 0 || !stm.exp.bodies().is_empty();
        total += if inner { cost } else { 0 };
    }
    Some(total)
}

/// Whether the body computes every element of the array.
fn made_whole(body: &Body, a: Atom) -> bool {
    let made =
        a.var().and_then(|v| body.stms.iter().find_map(|s| Some((s, s.pat.iter().position(|p| *p == v)?))));
    let Some((stm, k)) = made else { return false };
    match &stm.exp {
        Exp::Soac(Soac::Map { .. } | Soac::Scan { .. }) => true,
        Exp::Reshape { array: b, .. }
        | Exp::Rearrange(_, b)
        | Exp::Reverse(b)
        | Exp::Rotate(b, _)
        | Exp::Atom(b) => made_whole(body, *b),
        Exp::If(_, then, otherwise) => [then, otherwise].iter().all(|arm| made_whole(arm, arm.result[k])),
        _ => false,
    }
}
