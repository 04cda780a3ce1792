//! What a loop keeps for its reverse: the attributes of loops, and the choice under a limit in bytes.
//!
//! Source: R. Schenck, O. Rønning, T. Henriksen and C. E. Oancea, SC 2022, section III-B (one more run per level of a nest); A.
//! Griewank and A. Walther, ACM TOMS 26(1), 2000 (see `revolve`). Every policy but `revolve` and `limit` is a rewriting of the
//! loop, made just before it is reversed; `n` iterations, state `x`, `save` what one iteration's reverse reads:
//!
//! - `tape(all)`, or nothing: as it is. Memory `n · save`, no iteration runs again.
//! - `tape(carry)`: the body marked `recompute`. Memory `n · x`, each iteration runs once more.
//! - `stripmine(k)`: a nest of `k` loops of at most `m = ⌈n^(1/k)⌉` iterations, each body marked `recompute`. Memory
//!   `k · m · x`, each iteration runs at most `k` times more. The last block of a level is shorter, where the paper has a
//!   loop for the remainder: the body stands in one place. From [`LOGARITHMIC`] on: `revolve` with `⌈log₂ (n + 1)⌉` slots.
//!   With a `tape` attribute too, that one says what the innermost loop keeps.
//! - `tape(sqrt)`: two levels, the inner one as it is. Memory `√n · (x + save)`, each iteration runs once more.
//! - `tape(revolve(s))`: binomial checkpointing. Memory `s · x`.
//! - `bound(b)` of a `while` loop: `for i < b` with the condition inside, and an error if the loop goes on after that.
//! - `tape(near(b, k))`: see `near`. Loops without attributes may get it.
//! - `tape(limit(b))`: at run time `all` if that fits `b` bytes, else `revolve` with as many slots as fit. Inside maps
//!   each iteration of the map has its part of the bytes, for their tapes are alive together. In a function that is
//!   not inlined the bytes are those of one call.
//!
//! A `while` loop under `stripmine`, `sqrt`, `revolve`, `near` or `limit` runs once to count its iterations. A loop that stacks
//! values (the forward sweep of an inner derivative) has them stored already and keeps everything; second derivatives
//! store what the schedule of the first one does.

use super::cotangent::Cotangent;
use super::effects::{can_leave_out, without_effects};
use super::reverse::{Env, Forward, Reverse};
use crate::contract::Unsupported;
use crate::iterations::iterations;
use pullback_core::rename::{Subst, copy_applied, copy_exp};
use pullback_core::{
    Atom, Body, Builder, Exp, Lam, Loop, LoopAttrs, LoopForm, Mark, Stm, TapePolicy, Type, Var,
};
use pullback_prim::{Op, Scalar};

/// `stripmine` with this depth or more means logarithmic depth.
pub(crate) const LOGARITHMIC: u32 = 16;

impl<'p> Reverse<'p> {
    /// Reverses a loop as its attributes say.
    pub(crate) fn attributed_loop(
        &mut self,
        stm: &Stm,
        l: &Loop,
        cts: Vec<Cotangent>,
        env: &mut Env,
    ) -> Forward {
        self.rule("fast_chad.loop", stm);
        let attrs = &l.attrs;
        let whole = Loop { attrs: LoopAttrs::default(), ..l.clone() };
        if l.collect > 0 || !can_leave_out(self.b.program, &l.body) {
            return self.loop_(stm, &whole, cts, env);
        }
        let counts = attrs.stripmine.is_some()
            || matches!(
                attrs.tape,
                Some(
                    TapePolicy::Sqrt
                        | TapePolicy::Revolve(_)
                        | TapePolicy::Limit(_)
                        | TapePolicy::Near { .. }
                )
            );
        let tape = match (attrs.stripmine, attrs.tape) {
            (None, None) => Some(self.tape_of(l)),
            (_, tape) => tape,
        };
        match (&l.form, attrs.stripmine, tape) {
            (LoopForm::While(condition), ..) if attrs.bound.is_some() => {
                let condition = condition.clone();
                self.rewrite(stm, cts, env, |b| bounded(b, l, &condition))
            }
            (LoopForm::While(_), ..) if counts => self.rewrite(stm, cts, env, |b| counted(b, l)),
            (_, Some(k), _) if k >= LOGARITHMIC => self.logarithmic(stm, &whole, cts, env),
            (_, Some(k), tape) => {
                let tape = tape.or(Some(TapePolicy::Carry));
                self.rewrite(stm, cts, env, |b| nest(b, l, k.max(1), tape))
            }
            (_, None, None | Some(TapePolicy::All)) => self.loop_(stm, &whole, cts, env),
            (_, None, Some(TapePolicy::Near { bytes, least })) => {
                self.near(stm, &whole, (bytes, least), cts, env)
            }
            (_, None, Some(TapePolicy::Carry)) => {
                let body = recomputed(&mut self.b, l.body.clone());
                self.rewrite(stm, cts, env, |b| emit_loop(b, Loop { body, ..whole }))
            }
            (_, None, Some(TapePolicy::Sqrt)) => {
                self.rewrite(stm, cts, env, |b| nest(b, l, 2, Some(TapePolicy::All)))
            }
            (_, None, Some(TapePolicy::Revolve(slots))) => {
                let slots = self.slots_of(l).unwrap_or_else(|| Atom::i64(i64::from(slots)));
                self.revolve(stm, &whole, slots, cts, env)
            }
            (_, None, Some(TapePolicy::Limit(bytes))) => self.limited(stm, &whole, bytes, cts, env),
        }
    }

    /// The number of slots of a loop made by [`Self::revolving`].
    fn slots_of(&self, l: &Loop) -> Option<Atom> {
        let LoopForm::For { i, .. } = &l.form else { return None };
        self.slots.get(i).map(|&v| v.into())
    }
    /// The loop, with `revolve` and as many slots as this variable says.
    fn revolving(&mut self, l: Loop, slots: Var) -> Loop {
        if let LoopForm::For { i, .. } = &l.form {
            self.slots.insert(*i, slots);
        }
        Loop { attrs: LoopAttrs { tape: Some(TapePolicy::Revolve(1)), ..LoopAttrs::default() }, ..l }
    }

    fn logarithmic(&mut self, stm: &Stm, l: &Loop, cts: Vec<Cotangent>, env: &mut Env) -> Forward {
        let slots = self.b.fresh(Type::I64, "slots");
        let n = trips(l);
        let l = self.revolving(l.clone(), slots);
        self.rewrite(stm, cts, env, |b| {
            let n = b.convert(n, Scalar::F64);
            let n = b.op2(Op::Max, n, Atom::f64(0.0));
            let n = b.op2(Op::Add, n, Atom::f64(1.0));
            let bits = b.op1(Op::Log2, n);
            let bits = b.op1(Op::Ceil, bits);
            let bits = b.convert(bits, Scalar::I64);
            b.emit_to(vec![slots], Exp::Atom(bits));
            emit_loop(b, l)
        })
    }

    /// `if the whole tape fits { all } else { revolve }`, as a branch of the program.
    ///
    /// What an iteration stores is measured on the first one, which runs once more for that: the sizes that a program
    /// makes are known only when it runs.
    fn limited(&mut self, stm: &Stm, l: &Loop, limit: u64, cts: Vec<Cotangent>, env: &mut Env) -> Forward {
        let first = self.first_iteration(stm, l, &cts, env)?;
        let slots = self.b.fresh(Type::I64, "slots");
        let again = copied(&mut self.b, l);
        let again = self.revolving(again, slots);
        let bytes = number(limit);
        let lanes = self.lanes.clone();
        let arrays = first.body.result.len() + 2;
        let columns = 2 * BOXED * i64::try_from(arrays).unwrap_or(0);
        // In a map the snapshots stand in a column, and the reverse sweep of an iteration moves them in a copy of its own.
        let copies = if lanes.is_empty() { 1 } else { 2 };
        self.rewrite(stm, cts, env, |b| {
            let mut limit = bytes;
            for width in lanes {
                let width = b.convert(width, Scalar::I64);
                let width = b.op2(Op::Max, width, Atom::i64(1));
                limit = b.op2(Op::Div, limit, width);
                // Each iteration's arrays are references to boxes in columns of the map, those of the other arm too.
                limit = b.op2(Op::Sub, limit, Atom::i64(columns));
                limit = b.op2(Op::Max, limit, Atom::i64(0));
            }
            let n = b.convert(trips(l), Scalar::I64);
            let n = b.op2(Op::Max, n, Atom::i64(0));
            let one = first_bytes(b, l, first, n);
            let state = state_bytes(b, l);
            let state = b.op2(Op::Mul, state, Atom::i64(copies));
            let all = b.op2(Op::Mul, n, one);
            let fits = b.op2(Op::Le, all, limit);
            let least = b.op2(Op::Add, state, one);
            let least = b.op2(Op::Min, least, all);
            let possible = b.op2(Op::Le, least, limit);
            let message = "the tape of this loop needs at least {} bytes and may have {}: \
                           give a larger --tape-limit, or a smaller state to the loop";
            b.emit(Exp::Assert(possible, message.into(), vec![least, limit]), "enough");
            let room = b.op2(Op::Sub, limit, one);
            let count = b.op2(Op::Div, room, state);
            let count = b.op2(Op::Max, count, Atom::i64(1));
            b.emit_to(vec![slots], Exp::Atom(count));
            let whole = l.clone();
            let out = b.if_(fits, |b| emit_loop(b, whole), |b| emit_loop(b, again));
            out.into_iter().map(Atom::Var).collect()
        })
    }

    /// What a loop that stores everything does in an iteration: a function of the state and the counter that returns the
    /// next state and what is stored.
    fn first_iteration(
        &mut self,
        stm: &Stm,
        l: &Loop,
        cts: &[Cotangent],
        env: &Env,
    ) -> Result<Lam, Unsupported> {
        let body =
            Body { stms: vec![Stm { pat: stm.pat.clone(), exp: Exp::Loop(l.clone()) }], result: vec![] };
        let copy = self.copy_lam(&Lam { params: Vec::new(), body }).body;
        let mut scratch = Env { accs: env.accs.clone(), ..Env::default() };
        let mut params = Vec::new();
        let mut first = Body::default();
        self.b.open();
        for stm in copy.stms {
            let Exp::Loop(l) = &stm.exp else { continue };
            let forward = self.loop_(&stm, l, cts.to_vec(), &mut scratch)?;
            for stm in forward {
                let Exp::Loop(l) = stm.exp else { continue };
                params = l.params.iter().map(|p| p.0).collect();
                if let LoopForm::For { i, .. } = l.form {
                    params.push(i);
                }
                first = l.body;
            }
            let mut unused = Vec::new();
            for &v in &stm.pat {
                self.flush_sizes(v, &mut unused);
            }
        }
        self.b.close(Vec::new());
        first.stms = without_effects(self.b.program, first.stms);
        Ok(Lam { params, body: first })
    }
}

/// The loop with names of its own.
pub(crate) fn copied(b: &mut Builder<'_>, l: &Loop) -> Loop {
    match copy_exp(b.program, &Exp::Loop(l.clone()), &Subst::new()) {
        Exp::Loop(copy) => copy,
        _ => l.clone(),
    }
}

/// A number that may be too large for an `i64`.
pub(crate) fn number(x: u64) -> Atom {
    Atom::i64(i64::try_from(x).unwrap_or(i64::MAX))
}

/// The number of iterations of a `for` loop.
pub(crate) fn trips(l: &Loop) -> Atom {
    match &l.form {
        LoopForm::For { n, .. } => *n,
        LoopForm::While(_) => Atom::i64(0),
    }
}

/// The body as one statement with the mark `recompute`.
fn recomputed(b: &mut Builder<'_>, body: Body) -> Body {
    let types = b.program.body_types(&body);
    let pat: Vec<Var> = types.into_iter().map(|t| b.fresh(t, "next")).collect();
    let result = pat.iter().map(|&v| v.into()).collect();
    let pat = if pat.is_empty() { vec![b.fresh(Type::BOOL, "done")] } else { pat };
    let mut body = body;
    if body.result.is_empty() {
        body.result.push(Atom::bool(false));
    }
    Body { stms: vec![Stm { pat, exp: Exp::Marked(Mark::Recompute, body) }], result }
}

fn emit_loop(b: &mut Builder<'_>, mut l: Loop) -> Vec<Atom> {
    if l.params.is_empty() && l.collect == 0 {
        // A loop for its effects only still needs a result.
        let done = b.fresh(Type::BOOL, "done");
        l.params.push((done, Atom::bool(false)));
        l.body.result.push(done.into());
    }
    b.emit_all(Exp::Loop(l), "x").into_iter().map(Atom::Var).collect()
}

/// A `while` loop as a `for` loop of at most `bound` iterations.
fn bounded(b: &mut Builder<'_>, l: &Loop, condition: &Body) -> Vec<Atom> {
    let bound = number(l.attrs.bound.unwrap_or(0));
    let params: Vec<Var> = l.params.iter().map(|p| p.0).collect();
    let check = Lam { params: params.clone(), body: condition.clone() };
    b.open();
    for stm in &condition.stms {
        b.emit_stm(stm.clone());
    }
    let go_on = condition.result.first().copied().unwrap_or_else(|| Atom::bool(false));
    let stay = Body { stms: Vec::new(), result: params.iter().map(|&v| v.into()).collect() };
    let next = b.emit_all(Exp::If(go_on, l.body.clone(), stay), "next");
    let body = b.close(next.into_iter().map(Atom::Var).collect());
    let form = LoopForm::For { i: b.fresh(Type::I64, "i"), n: bound };
    let attrs = LoopAttrs { bound: None, ..l.attrs.clone() };
    let out = emit_loop(b, Loop { params: l.params.clone(), form, body, collect: 0, attrs });
    let check = copy_applied(b.program, &check, &out, &Subst::new());
    for stm in check.stms {
        b.emit_stm(stm);
    }
    let over = b.op1(Op::Not, check.result.first().copied().unwrap_or_else(|| Atom::bool(false)));
    let message = "the loop goes on after {} iterations, which #[bound] allows: \
                   give #[bound] a larger number, or leave it out";
    b.emit(Exp::Assert(over, message.into(), vec![bound]), "within");
    out
}

/// A `while` loop as a `for` loop, after a run that counts its iterations.
fn counted(b: &mut Builder<'_>, l: &Loop) -> Vec<Atom> {
    let n = iterations(b, l, without_effects);
    let form = LoopForm::For { i: b.fresh(Type::I64, "i"), n };
    emit_loop(b, Loop { form, ..l.clone() })
}

/// A nest of `depth` loops over the iterations from `start`; the innermost one keeps what `tape` says.
fn nest(b: &mut Builder<'_>, l: &Loop, depth: u32, tape: Option<TapePolicy>) -> Vec<Atom> {
    let n = b.convert(trips(l), Scalar::I64);
    let m = root(b, n, depth);
    // How many iterations a block of a level has, inner levels first.
    let mut sizes = Vec::new();
    for level in 1..depth {
        let size = match sizes.last() {
            Some(&size) if level > 1 => b.op2(Op::Mul, size, m),
            _ => m,
        };
        sizes.push(size);
    }
    let init: Vec<Atom> = l.params.iter().map(|p| p.1).collect();
    level(b, l, &sizes, (Atom::i64(0), n), &init, tape)
}

/// The loops for iterations `from .. from + count`: blocks of the last of `sizes`, each a nest for the sizes before.
pub(crate) fn level(
    b: &mut Builder<'_>,
    l: &Loop,
    sizes: &[Atom],
    (from, count): (Atom, Atom),
    init: &[Atom],
    tape: Option<TapePolicy>,
) -> Vec<Atom> {
    let j = b.fresh(Type::I64, "i");
    let attrs = LoopAttrs { tape, ..LoopAttrs::default() };
    let Some((&size, inner)) = sizes.split_last() else {
        b.open();
        if let LoopForm::For { i, .. } = &l.form {
            let at = b.op2(Op::Add, from, j.into());
            let to = b.scalar((*i).into());
            let at = b.convert(at, to);
            b.emit_to(vec![*i], Exp::Atom(at));
        }
        for stm in &l.body.stms {
            b.emit_stm(stm.clone());
        }
        let body = b.close(l.body.result.clone());
        let params = l.params.iter().zip(init).map(|(p, &a)| (p.0, a)).collect();
        let form = LoopForm::For { i: j, n: count };
        return emit_loop(b, Loop { params, form, body, collect: 0, attrs });
    };
    let params: Vec<(Var, Atom)> = l.params.iter().zip(init).map(|(p, &a)| (b.fresh_like(p.0), a)).collect();
    let x: Vec<Atom> = params.iter().map(|p| p.0.into()).collect();
    b.open();
    let start = b.op2(Op::Mul, j.into(), size);
    let left = b.op2(Op::Sub, count, start);
    let here = b.op2(Op::Min, size, left);
    let start = b.op2(Op::Add, from, start);
    let mut result = level(b, l, inner, (start, here), &x, tape);
    result.truncate(params.len());
    let body = b.close(result);
    let body = recomputed(b, body);
    let last = b.op2(Op::Add, count, size);
    let last = b.op2(Op::Sub, last, Atom::i64(1));
    let blocks = b.op2(Op::Div, last, size);
    let form = LoopForm::For { i: j, n: blocks };
    emit_loop(b, Loop { params, form, body, collect: 0, attrs: LoopAttrs::default() })
}

/// The smallest `m >= 1` with `m^k >= n`.
pub(crate) fn root(b: &mut Builder<'_>, n: Atom, k: u32) -> Atom {
    let n = b.op2(Op::Max, n, Atom::i64(1));
    let x = b.convert(n, Scalar::F64);
    let x = b.op2(Op::Pow, x, Atom::f64(1.0 / f64::from(k)));
    let x = b.op1(Op::Round, x);
    // Rounding leaves the root itself or one less, also when the power is inexact.
    let m = b.convert(x, Scalar::I64);
    let m = b.op2(Op::Max, m, Atom::i64(1));
    let power = b.op2(Op::Pow, m, Atom::i64(i64::from(k)));
    let enough = b.op2(Op::Le, n, power);
    let more = b.op2(Op::Add, m, Atom::i64(1));
    b.select(enough, m, more)
}

/// The bytes that the first iteration stores; none if there is no iteration.
fn first_bytes(b: &mut Builder<'_>, l: &Loop, first: Lam, n: Atom) -> Atom {
    let some = b.op2(Op::Lt, Atom::i64(0), n);
    let mut args: Vec<Atom> = l.params.iter().map(|p| p.1).collect();
    if let Some(&i) = first.params.last()
        && first.params.len() > args.len()
    {
        let counter = b.scalar(i.into());
        args.push(Atom::Const(counter.zero()));
    }
    let out = b.if_(
        some,
        |b| {
            let body = copy_applied(b.program, &first, &args, &Subst::new());
            for stm in body.stms {
                b.emit_stm(stm);
            }
            let mut total = Atom::i64(0);
            for &a in body.result.iter().skip(l.params.len()) {
                let bytes = element_bytes(b, a);
                total = b.op2(Op::Add, total, bytes);
            }
            vec![total]
        },
        |_| vec![Atom::i64(0)],
    );
    out[0].into()
}

/// The bytes of the state of a loop and its counter in slots of a tape.
pub(crate) fn state_bytes(b: &mut Builder<'_>, l: &Loop) -> Atom {
    let mut total = Atom::i64(8);
    for &(_, init) in &l.params {
        let bytes = stored_bytes(b, init);
        total = b.op2(Op::Add, total, bytes);
    }
    total
}

/// The bytes of a value in a slot of a tape: as an array element, in a box if it is neither scalar nor sum.
fn stored_bytes(b: &mut Builder<'_>, a: Atom) -> Atom {
    let inside = element_bytes(b, a);
    match b.ty(a) {
        Type::Scalar(_) | Type::Sum(_) | Type::Named(_) => inside,
        Type::Tuple(_) | Type::Array(_) | Type::Acc(_) => b.op2(Op::Add, inside, Atom::i64(BOXED)),
    }
}

/// The bytes of a reference in an array, and of a field of a product or sum.
const BOXED: i64 = 16;

/// The bytes of a value as an array element. Of values of recursive types only the outermost part is counted.
fn element_bytes(b: &mut Builder<'_>, a: Atom) -> Atom {
    match b.ty(a) {
        Type::Scalar(s) => Atom::i64(s.bytes() as i64),
        Type::Tuple(items) => {
            let mut total = Atom::i64(BOXED);
            for i in 0..items.len() {
                let part = b.emit(Exp::Proj(a, i), "part");
                let bytes = element_bytes(b, part);
                let bytes = b.op2(Op::Add, bytes, Atom::i64(BOXED));
                total = b.op2(Op::Add, total, bytes);
            }
            total
        }
        Type::Sum(_) => {
            let out = b.match_(a, |b, _, fields| {
                let mut total = Atom::i64(BOXED);
                for &v in fields {
                    let bytes = element_bytes(b, v.into());
                    let bytes = b.op2(Op::Add, bytes, Atom::i64(BOXED));
                    total = b.op2(Op::Add, total, bytes);
                }
                vec![total]
            });
            out[0].into()
        }
        Type::Array(_) => {
            let bytes = array_bytes(b, a);
            b.op2(Op::Add, bytes, Atom::i64(BOXED))
        }
        Type::Named(_) | Type::Acc(_) => Atom::i64(BOXED),
    }
}

fn array_bytes(b: &mut Builder<'_>, a: Atom) -> Atom {
    let ty = b.ty(a);
    if let Some(s) = ty.base().scalar() {
        let mut total = Atom::i64(s.bytes() as i64);
        for size in b.shape(a) {
            total = b.op2(Op::Mul, total, size);
        }
        return total;
    }
    let n = b.size(a, 0);
    let rank = ty.rank();
    let each = b.map(n, &[a], |b, x| {
        let x = x[0].into();
        vec![if rank > 1 { array_bytes(b, x) } else { element_bytes(b, x) }]
    });
    b.sum(n, each[0].into())
}
