//! Binomial checkpointing: a loop whose reverse keeps a given number of snapshots of the state and runs the rest again.
//!
//! Source: A. Griewank and A. Walther, ACM TOMS 26(1), 2000 (Algorithm 799). The number of iterations is known when
//! the loop starts, not when it is compiled, so the schedule is code. With `c(s, r) = binomial(s + r, s)`, `l` iterations
//! left and `s` free snapshots (the one where they start counted), the next snapshot is `m` iterations ahead:
//!
//! > `r` minimal with `c(s, r) >= l`;  `m = min(c(s, r - 1), l - c(s - 1, r - 1))`
//!
//! which makes the number of iterations run again minimal: `T(l, s) = r l - c(s + 1, r - 1)` where `T(l, 1) = l (l - 1) / 2`
//! and `T(l, s) = min_m m + T(l - m, s - 1) + T(m, s)`. The first pass of the schedule is the forward sweep; as that goes
//! on to the end, the iterations between the last snapshot and the last iteration are run once more than in the paper.
//!
//! Assumes a `for` loop that stacks nothing. Guarantees: at most `s` states and what one iteration saves are held at one
//! time; an iteration is run at most `r + 2` times; effects happen once.

use super::control::{ReverseLoop, Reversed};
use super::cotangent::{Cotangent, split};
use super::effects::without_effects;
use super::reverse::{Env, Reverse};
use crate::contract::Unsupported;
use pullback_core::rename::{Subst, copy_lam};
use pullback_core::{Atom, Exp, Lam, Loop, LoopAttrs, LoopForm, Stm, Type, Var};
use pullback_prim::{Op, Scalar};

/// Whether code that is run again keeps its effects.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Effects {
    Kept,
    LeftOut,
}

/// What the forward sweep leaves behind.
struct Snapshots {
    /// The number of iterations.
    n: Atom,
    /// The number of slots.
    slots: Atom,
    /// Per state variable, its values at the snapshots.
    states: Vec<Var>,
    /// Before which iterations they were taken.
    positions: Var,
}

impl<'p> Reverse<'p> {
    pub(crate) fn revolve(
        &mut self,
        stm: &Stm,
        l: &Loop,
        slots: Atom,
        cts: Vec<Cotangent>,
        env: &mut Env,
    ) -> Result<Vec<Stm>, Unsupported> {
        self.loop_by(stm, l, cts, env, |s, stm, l, parts, env, forward| {
            s.revolve_reverse(stm, l, slots, parts, env, forward)
        })
    }

    /// One reversed iteration after the other. Each takes the last snapshot, goes ahead from it to where it is needed,
    /// leaving snapshots on its way while there are free slots, and frees the slot if nothing before needs it.
    fn revolve_reverse(
        &mut self,
        stm: &Stm,
        l: &Loop,
        slots: Atom,
        parts: ReverseLoop<'_>,
        env: &mut Env,
        forward: &mut Vec<Stm>,
    ) -> Reversed {
        let ReverseLoop { state, scalars, init, descs, stacked: _, trips } = parts;
        self.b.open();
        let kept = self.snapshots(stm, l, trips, slots);
        *forward = self.b.close(Vec::new()).stms;
        let last = self.b.op2(Op::Sub, kept.slots, Atom::i64(1));
        let carried = init.iter().copied().chain(kept.states.iter().map(|&v| v.into()));
        let carried: Vec<Atom> = carried.chain([kept.positions.into(), last]).collect();
        let params: Vec<(Var, Atom)> =
            carried.iter().map(|&a| (self.b.fresh(self.b.program.atom_type(a), "x_bar"), a)).collect();
        let names: Vec<Atom> = params.iter().map(|p| p.0.into()).collect();
        let (bars, store) = names.split_at(init.len());
        let r = self.b.fresh(Type::I64, "r");
        self.b.open();
        let end = self.b.op2(Op::Sub, kept.n, Atom::i64(1));
        let at = self.b.op2(Op::Sub, end, r.into());
        let mut store = self.approach(l, &kept, at, store);
        let (x, from) = self.last_snapshot(l, &store);
        let ahead = self.b.op2(Op::Sub, at, from);
        let x = self.advance(l, from, ahead, &x, Effects::LeftOut);

        self.b.open();
        let bars = split(descs, bars);
        let (state_bars, scalar_bars) = bars.split_at(state.len());
        for (&j, c) in state.iter().zip(state_bars) {
            self.contribute(env, l.body.result[j], c.clone());
        }
        let rest = self.stms(&l.body.stms, env)?;
        self.rule("fast_chad.loop", stm);
        let result = self.iteration_bars(l, state, scalars, &descs[state.len()..], scalar_bars, env);
        let reverse = self.b.close(result);
        let mut binders: Vec<Var> = l.params.iter().map(|p| p.0).collect();
        for (&v, x) in binders.iter().zip(x) {
            self.b.emit_to(vec![v], Exp::Atom(x));
        }
        if let LoopForm::For { i, .. } = &l.form {
            let to = self.b.scalar((*i).into());
            let value = self.b.convert(at, to);
            self.b.emit_to(vec![*i], Exp::Atom(value));
            binders.push(*i);
        }
        let again = self.flush_all(&binders).into_iter().chain(without_effects(self.b.program, rest));
        for stm in again.chain(reverse.stms) {
            self.b.emit_stm(stm);
        }
        let top = store.pop().unwrap_or(last);
        let used = self.b.op2(Op::Eq, from, at);
        let before = self.b.op2(Op::Sub, top, Atom::i64(1));
        store.push(self.b.select(used, before, top));
        let body = self.b.close(reverse.result.into_iter().chain(store).collect());
        let form = LoopForm::For { i: r, n: kept.n };
        let reversed = Loop { params, form, body, collect: 0, attrs: LoopAttrs::default() };
        let out = self.b.emit_all(Exp::Loop(reversed), "x_bar");
        Ok(out.into_iter().take(init.len()).map(Atom::Var).collect())
    }

    /// The forward sweep: the loop in as many parts as there are slots, the state stacked before each.
    fn snapshots(&mut self, stm: &Stm, l: &Loop, trips: Atom, slots: Atom) -> Snapshots {
        let n = self.b.convert(trips, Scalar::I64);
        let slots = self.b.op2(Op::Min, slots, n);
        let slots = self.b.op2(Op::Max, slots, Atom::i64(1));
        let mut params: Vec<(Var, Atom)> =
            l.params.iter().map(|&(v, init)| (self.b.fresh_like(v), init)).collect();
        let x: Vec<Atom> = params.iter().map(|p| p.0.into()).collect();
        let from = self.b.fresh(Type::I64, "from");
        params.push((from, Atom::i64(0)));
        let j = self.b.fresh(Type::I64, "slot");
        self.b.open();
        let left = self.b.op2(Op::Sub, n, from.into());
        let free = self.b.op2(Op::Sub, slots, j.into());
        let only = self.b.op2(Op::Eq, free, Atom::i64(1));
        self.b.open();
        let here = self.distance(left, free);
        let otherwise = self.b.close(vec![here]);
        let then = pullback_core::Body { stms: Vec::new(), result: vec![left] };
        let ahead: Atom = self.b.emit_all(Exp::If(only, then, otherwise), "ahead")[0].into();
        let mut result = self.advance(l, from.into(), ahead, &x, Effects::Kept);
        result.push(self.b.op2(Op::Add, from.into(), ahead));
        for &a in &x {
            let stored = self.store(a);
            result.push(stored);
        }
        result.push(from.into());
        let body = self.b.close(result);
        let end = self.b.fresh(Type::I64, "end");
        let states: Vec<Var> = l
            .params
            .iter()
            .map(|&(v, _)| {
                let ty = self.tape_type(v);
                self.tape(Type::array(ty))
            })
            .collect();
        let positions = self.tape(Type::array(Type::I64));
        let pat = stm.pat.iter().chain([&end]).chain(&states).chain([&positions]).copied().collect();
        let collect = states.len() + 1;
        let form = LoopForm::For { i: j, n: slots };
        self.b.emit_to(pat, Exp::Loop(Loop { params, form, body, collect, attrs: LoopAttrs::default() }));
        Snapshots { n, slots, states, positions }
    }

    /// Takes snapshots on the way to iteration `at` while slots are free. `store`: the states, the positions, and which
    /// slot was filled last.
    fn approach(&mut self, l: &Loop, kept: &Snapshots, at: Atom, store: &[Atom]) -> Vec<Atom> {
        let params: Vec<(Var, Atom)> =
            store.iter().map(|&a| (self.b.fresh(self.b.program.atom_type(a), "tape"), a)).collect();
        let names: Vec<Atom> = params.iter().map(|p| p.0.into()).collect();
        let (positions, top) = (names[names.len() - 2], names[names.len() - 1]);
        self.b.open();
        let last = self.b.op2(Op::Sub, kept.slots, Atom::i64(1));
        let from = self.b.index(positions, &[top]);
        let far = self.b.op2(Op::Lt, from, at);
        let free = self.b.op2(Op::Lt, top, last);
        let go_on = self.b.op2(Op::And, far, free);
        let condition = self.b.close(vec![go_on]);
        self.b.open();
        let (x, from) = self.last_snapshot(l, &names);
        let end = self.b.op2(Op::Add, at, Atom::i64(1));
        let left = self.b.op2(Op::Sub, end, from);
        let free = self.b.op2(Op::Sub, kept.slots, top);
        let ahead = self.distance(left, free);
        let x = self.advance(l, from, ahead, &x, Effects::LeftOut);
        let next = self.b.op2(Op::Add, top, Atom::i64(1));
        let mut values: Vec<Atom> = Vec::new();
        for a in x {
            let stored = self.store(a);
            values.push(stored);
        }
        let position = self.b.op2(Op::Add, from, ahead);
        values.push(position);
        let mut result: Vec<Atom> = Vec::new();
        for (&array, value) in names.iter().zip(values) {
            result.push(self.as_tape(|s| s.b.emit(Exp::Update(array, vec![next], value), "tape")));
        }
        result.push(next);
        let body = self.b.close(result);
        let form = LoopForm::While(condition);
        let l = Loop { params, form, body, collect: 0, attrs: LoopAttrs::default() };
        self.b.emit_all(Exp::Loop(l), "tape").into_iter().map(Atom::Var).collect()
    }

    /// The state in the slot filled last, and its position.
    fn last_snapshot(&mut self, l: &Loop, store: &[Atom]) -> (Vec<Atom>, Atom) {
        let (positions, top) = (store[store.len() - 2], store[store.len() - 1]);
        let mut x = Vec::new();
        for (&(v, _), &array) in l.params.iter().zip(store) {
            let stored = self.b.index(array, &[top]);
            let here = self.b.fresh_like(v);
            self.load(here, stored);
            x.push(here.into());
        }
        (x, self.b.index(positions, &[top]))
    }

    /// Runs `count` iterations of the loop from iteration `from`, where the state is `x`.
    fn advance(&mut self, l: &Loop, from: Atom, count: Atom, x: &[Atom], effects: Effects) -> Vec<Atom> {
        let LoopForm::For { i, .. } = &l.form else { return x.to_vec() };
        let mut params: Vec<Var> = l.params.iter().map(|p| p.0).collect();
        params.push(*i);
        let mut lam = copy_lam(self.b.program, &Lam { params, body: l.body.clone() }, &Subst::new());
        if effects == Effects::LeftOut {
            lam.body.stms = without_effects(self.b.program, lam.body.stms);
        }
        let k = self.b.fresh(Type::I64, "k");
        self.b.open();
        if let Some(i) = lam.params.pop() {
            let position = self.b.op2(Op::Add, from, k.into());
            let to = self.b.scalar(i.into());
            let position = self.b.convert(position, to);
            self.b.emit_to(vec![i], Exp::Atom(position));
        }
        for stm in lam.body.stms {
            self.b.emit_stm(stm);
        }
        let body = self.b.close(lam.body.result);
        let params = lam.params.into_iter().zip(x.iter().copied()).collect();
        let form = LoopForm::For { i: k, n: count };
        let l = Loop { params, form, body, collect: 0, attrs: LoopAttrs::default() };
        self.b.emit_all(Exp::Loop(l), "x").into_iter().map(Atom::Var).collect()
    }

    /// The distance to the next snapshot, with `left >= 2` iterations left and `free` slots.
    fn distance(&mut self, left: Atom, free: Atom) -> Atom {
        let (c, r) = (self.b.fresh(Type::I64, "c"), self.b.fresh(Type::I64, "r"));
        self.b.open();
        let go_on = self.b.op2(Op::Lt, c.into(), left);
        let condition = self.b.close(vec![go_on]);
        self.b.open();
        let next = self.b.op2(Op::Add, r.into(), Atom::i64(1));
        let sum = self.b.op2(Op::Add, free, next);
        let product = self.b.op2(Op::Mul, c.into(), sum);
        let larger = self.b.op2(Op::Div, product, next);
        let body = self.b.close(vec![larger, next]);
        let params = vec![(c, Atom::i64(1)), (r, Atom::i64(0))];
        let form = LoopForm::While(condition);
        let l = Loop { params, form, body, collect: 0, attrs: LoopAttrs::default() };
        let out = self.b.emit_all(Exp::Loop(l), "c");
        let (c, r) = (out[0].into(), out[1].into());
        // c(s, r - 1) = c(s, r) r / (s + r) and c(s - 1, r - 1) = c(s, r - 1) s / (s + r - 1)
        let sum = self.b.op2(Op::Add, free, r);
        let product = self.b.op2(Op::Mul, c, r);
        let fewer = self.b.op2(Op::Div, product, sum);
        let less = self.b.op2(Op::Sub, sum, Atom::i64(1));
        let less = self.b.op2(Op::Max, less, Atom::i64(1));
        let product = self.b.op2(Op::Mul, fewer, free);
        let right = self.b.op2(Op::Div, product, less);
        let rest = self.b.op2(Op::Sub, left, right);
        self.b.op2(Op::Min, fewer, rest)
    }
}

/// The number of iterations that are run again to reverse `l` of them with `s` snapshots, the initial state counted:
/// the closed form. For tests of what the emitted schedule does.
pub fn iterations_run_again(l: u64, s: u64) -> u64 {
    if l < 2 {
        return 0;
    }
    // c(s + 1, r - 1) = c(s, r) r / (s + 1)
    let (mut c, mut r) = (1u64, 0u64);
    while c < l {
        r += 1;
        c = c * (s + r) / r;
    }
    r * l - c * r / (s + 1)
}
