//! Dual-numbers reverse AD of programs that fork and join: the reverse pass forks where the program joined.
//!
//! Source: T. Smeding, thesis, 3.10: Figs. 3.16 and 3.17, with the contributions of 3.8.
//!
//! Judgement: `G |- t : s` becomes `D5[G] |- D5[t] : (Ref, Job) -> io (D5[s], (Ref, Job))`, threaded as `super::forward` has it.
//!
//! Types:
//! ```text
//! D5[f64] = (f64, ((Z, Z), Contrib))               a compound identity, job and number in it, and to what it contributes
//! Contrib = #contrib [](f64, (Z, Z), Contrib)
//! Job     = (History, Z, Z)                        what was before in its task, its number, how many identities it has made
//! History = #start | #fork Job Job Job             the job before the last fork, the last jobs of the two tasks
//! Ref     = mut(Z)                                 one cell: the next free number of a job
//! ```
//!
//! Notation: `s (*) t` [`Exp::Par`] · `m >>= k`, `return` [`Exp::IoBind`], [`Exp::IoReturn`] · in parallel [`Exp::IoPar`] · `x := x + a` at once [`Exp::MutModify`] · `add` `super::rows`
//!
//! Rules:
//! ```text
//! constant     = (i, #contrib [])                                      i = (j, n) in job (h, j, n), which is (h, j, n + 1) afterwards
//! operation    = (i, #contrib [(d1op 1, d1), .., (dnop 1, dn)])        d1, .., dn: what stands beside the arguments
//! argument     = (i, #contrib [])
//! D5[s (*) t] (ref, job) = j <- ref := ref + 3
//!                ((x, (_, job1)), (y, (_, job2))) <- in parallel (D5[s] (ref, (#start, j, 0))) (D5[t] (ref, (#start, j + 1, 0)))
//!                return ((x, y), (ref, (#fork job job1 job2, j + 2, 0)))
//! cotangents z = the arguments, with what is in m[0] after
//!                m <- for every job its identities (#contrib [], 0), made in parallel; add d1 z1 m; ..; add dm zm m; resolve job m
//!
//! add ((j, i), cb) a m   = m[j][i] := (cb, m[j][i].1 + a)             at once
//! resolve (h, j, n) m    = the identities n - 1, .., 0 of m[j] as in 3.8.2; then, where h = #fork job job1 job2,
//!                          resolve job1 m and resolve job2 m in parallel, then resolve job m
//! ```
//!
//! Differences from the paper:
//! 1. More than two terms in parallel are pairs of halves.
//! 2. Cotangents of numbers are `f64` until they arrive, also those of `f32`.
//! 3. Jobs hand over their state by return values; the paper's continuations are an artefact of its thread pool.
//!
//! Guarantee: the work of a gradient is a constant times the program's and the size of its arguments, its span a constant times the program's and the size of
//! arguments and result (tests count both). Arrays are written in place where the program does: what a computation captures is its own when it runs for the
//! last time.
//!
//! Not supported: functions with derivatives of their own, derivatives inside of a program; arguments and results that are functions or of recursive types.
//! Array functions run one element after the other.

use super::effects::{bound, then, unit};
use super::forward::{self, Forward, Operation, Path, Res, Run, Stage};
use super::rows::{Rows, changed, gathered, resolved};
use crate::chad::component;
use crate::contract::Unsupported;
use pullback_lambda::{Builder, Exp, FunId, Program, Term, Type, TypeId, Var, Variant};
use pullback_prim::{Op, Scalar};
use std::sync::Arc;

/// The name by which it is chosen.
pub const ID: &str = "dual-parallel";

/// Adds, for a function `f : (s1, .., sn) -> t`, the function `(s1, .., sn, d[t]) -> (t, (d[s1], .., d[sn]))`: value and cotangents of the arguments.
///
/// Errors: constructs that are not supported; the program is as before then. Cost: the size of the functions.
pub fn vjp(program: &mut Program, f: FunId) -> Result<FunId, Unsupported> {
    forward::vjp(program, f, |b, _| Parallel::new(b))
}

struct Parallel {
    rows: Rows,
    history: TypeId,
    add: FunId,
    alloc: FunId,
    resolve: FunId,
}

/// `(Z, Z)`
fn identity() -> Type {
    Type::tuple([Type::I64, Type::I64])
}

/// `(History, Z, Z)`
fn job(history: TypeId) -> Type {
    Type::tuple([Type::Named(history), Type::I64, Type::I64])
}

impl Parallel {
    fn new(b: &mut Builder<'_>) -> Parallel {
        let count = b.program.types.len();
        let rows = Rows::new(b, identity(), |cells| Type::MutArray(Arc::new(cells)));
        let history = b.declare_type(&format!("history_{count}"));
        let start = Variant { name: "start".into(), fields: Vec::new() };
        let fork = Variant { name: "fork".into(), fields: vec![job(history); 3] };
        b.define_type(history, vec![start, fork]);
        let add = rows.add(b, |b, m, i, change| {
            let (m, j) = (b.var(m), component(b, i, 0));
            let get = b.term(Exp::MutGet(m, j));
            bound(b, "cells", get, |b, cells| {
                let i = component(b, i, 1);
                changed(b, cells, i, change)
            })
        });
        let contribute = rows.contribute(b, add);
        let alloc = backwards(b, &format!("alloc_{count}"), &rows, history, |b, job, m| {
            let (n, empty) = (component(b, job, 2), rows.empty(b));
            let new = b.term(Exp::MutNew(n, empty));
            bound(b, "cells", new, |b, cells| {
                let (m, j, cells) = (b.var(m), component(b, job, 1), b.var(cells));
                b.term(Exp::MutSet(m, j, cells))
            })
        });
        // Down to the first identity.
        let within = rows.resolve(b, "resolve_job", ("cells", rows.cells()), contribute, |b, v| {
            let (cells, zero) = (b.var(v[1]), b.i64(0));
            (cells, zero)
        });
        let resolve = backwards(b, &format!("resolve_task_{count}"), &rows, history, |b, job, m| {
            let (all, j) = (b.var(m), component(b, job, 1));
            let get = b.term(Exp::MutGet(all, j));
            bound(b, "cells", get, |b, cells| {
                let (n, one, cells, m) = (component(b, job, 2), b.i64(1), b.var(cells), b.var(m));
                let last = b.op2(Op::Sub, n, one);
                b.call(within, vec![last, cells, m])
            })
        });
        Parallel { rows, history, add, alloc, resolve }
    }
}

/// A function of a job: `own` of it, then the function of both tasks of the last fork in parallel, then of the job before it.
fn backwards(
    b: &mut Builder<'_>,
    name: &str,
    rows: &Rows,
    history: TypeId,
    own: impl FnOnce(&mut Builder<'_>, Var, Var) -> Term,
) -> FunId {
    let params = [("job", job(history)), ("m", rows.memory())];
    let f = b.declare(name, &params, Type::io(Type::unit()), None);
    let v = b.params(f);
    let (own, history) = (own(b, v[0], v[1]), component(b, v[0], 0));
    let rest = b.match_(history, |b, _, jobs| {
        let calls = jobs.iter().map(|job| {
            let args = vec![b.var(*job), b.var(v[1])];
            b.call(f, args)
        });
        let mut tasks: Vec<Term> = calls.collect();
        if tasks.is_empty() {
            return unit(b);
        }
        let first = tasks.remove(0);
        let both = b.term(Exp::IoPar(tasks));
        then(b, both, first)
    });
    let body = then(b, own, rest);
    b.define(f, body);
    f
}

/// The identity that comes next in the current job.
fn next(f: &mut Forward<'_, Parallel>) -> Var {
    let (counter, job) = (f.part(f.state, 0), f.part(f.state, 1));
    let (history, j, n) = (f.part(job, 0), f.part(job, 1), f.part(job, 2));
    let id = f.tuple(&[j, n]);
    let (now, one) = (f.b.var(n), f.b.i64(1));
    let more = f.b.op2(Op::Add, now, one);
    let more = f.emit(more, "n");
    let job = f.tuple(&[history, j, more]);
    f.state = f.tuple(&[counter, job]);
    id
}

impl Stage for Parallel {
    const ID: &'static str = ID;
    const IO: bool = true;

    fn dual(&self) -> Type {
        self.rows.dual()
    }
    fn state(&self) -> Type {
        Type::tuple([Type::MutArray(Arc::new(Type::I64)), job(self.history)])
    }
    fn start(f: &mut Forward<'_, Self>) -> Var {
        let (one, first) = (f.b.i64(1), f.b.i64(1));
        let counter = f.b.term(Exp::MutNew(one, first));
        let counter = f.perform(counter, "ref");
        let zero = f.b.i64(0);
        let zero = f.emit(zero, "j");
        let job = started(f, zero);
        f.tuple(&[counter, job])
    }
    // [dual_parallel.constant]  (i, #contrib [])
    fn constant(f: &mut Forward<'_, Self>) -> Var {
        let (id, none) = (next(f), f.stage.rows.clone().nothing(f));
        f.tuple(&[id, none])
    }
    // [dual_parallel.operation]  (i, #contrib [(d1op 1, d1), .., (dnop 1, dn)])
    fn operation(f: &mut Forward<'_, Self>, op: &Operation) -> Var {
        let (id, row) = (next(f), f.stage.rows.clone().row(f, op));
        f.tuple(&[id, row])
    }
    // [dual_parallel.argument]  (i, #contrib [])
    fn argument(f: &mut Forward<'_, Self>, _: Scalar, _: &Path<'_>) -> Var {
        Self::constant(f)
    }
    // [dual_parallel.par]  j <- ref := ref + 3; both in parallel, as jobs j and j + 1; then job j + 2
    fn par(f: &mut Forward<'_, Self>, ts: &[Term]) -> Res<Var> {
        let mut parts = Vec::new();
        forked(f, ts, &mut parts)?;
        Ok(f.tuple(&parts))
    }
    // [dual_parallel.cotangents]  make m; add d1 z1; ..; add dm zm; resolve
    fn backward(f: &mut Forward<'_, Self>, run: &Run<'_>) -> Res<Var> {
        let (counter, job) = (f.part(f.state, 0), f.part(f.state, 1));
        let io = f.around(|f| {
            let (counter, zero) = (f.b.var(counter), f.b.i64(0));
            let count = f.b.term(Exp::MutGet(counter, zero));
            let count = f.perform(count, "jobs");
            let (zero, empty) = (f.b.i64(0), f.stage.rows.empty(&mut f.b));
            let none = f.b.term(Exp::MutNew(zero, empty));
            let none = f.perform(none, "none");
            let (count, none) = (f.b.var(count), f.b.var(none));
            let m = f.b.term(Exp::MutNew(count, none));
            let m = f.perform(m, "m");
            let (last, cells) = (f.b.var(job), f.b.var(m));
            let made = f.b.call(f.stage.alloc, vec![last.clone(), cells.clone()]);
            f.perform(made, "_");
            let resolve = f.b.call(f.stage.resolve, vec![last, cells]);
            resolved(f, run, f.stage.add, m, resolve)?;
            let (m, zero) = (f.b.var(m), f.b.i64(0));
            let first = f.b.term(Exp::MutGet(m, zero));
            let first = f.perform(first, "cells");
            let first = f.b.var(first);
            Ok(f.b.term(Exp::MutFreeze(first)))
        })?;
        gathered(f, run, io)
    }
}

/// `(#start, j, 0)`
fn started(f: &mut Forward<'_, Parallel>, j: Var) -> Var {
    let history = Type::Named(f.stage.history);
    let start = f.b.term(Exp::Inject(history, 0, Vec::new()));
    let zero = f.b.i64(0);
    let (start, zero) = (f.emit(start, "h"), f.emit(zero, "n"));
    f.tuple(&[start, j, zero])
}

/// The values of terms that run in parallel: of two halves, each of which may fork again.
fn forked(f: &mut Forward<'_, Parallel>, ts: &[Term], parts: &mut Vec<Var>) -> Res<()> {
    if let [one] = ts {
        parts.push(f.term(one)?);
        return Ok(());
    }
    if ts.is_empty() {
        return Ok(());
    }
    let (counter, job) = (f.part(f.state, 0), f.part(f.state, 1));
    let change = f.b.lam("j", Type::I64, |b, j| {
        let (j, three) = (b.var(j), b.i64(3));
        b.op2(Op::Add, j, three)
    });
    let (cell, zero) = (f.b.var(counter), f.b.i64(0));
    let j = f.b.term(Exp::MutModify(cell, zero, change));
    let j = f.perform(j, "j");
    let plus = |f: &mut Forward<'_, Parallel>, k: i64| {
        let (j, k) = (f.b.var(j), f.b.i64(k));
        let sum = f.b.op2(Op::Add, j, k);
        f.emit(sum, "j")
    };
    let (left, right) = ts.split_at(ts.len() / 2);
    let mut tasks = Vec::new();
    for (k, half) in [(0, left), (1, right)] {
        let number = plus(f, k);
        let start = started(f, number);
        let state = f.tuple(&[counter, start]);
        tasks.push(f.block_from(state, |f| {
            let mut parts = Vec::new();
            forked(f, half, &mut parts)?;
            Ok(f.tuple(&parts))
        })?);
    }
    let both = f.b.term(Exp::IoPar(tasks));
    let both = f.perform(both, "both");
    let mut jobs = vec![f.b.var(job)];
    for (k, half) in [left, right].into_iter().enumerate() {
        let task = f.part(both, k);
        let (values, state) = (f.part(task, 0), f.part(task, 1));
        let job = f.part(state, 1);
        jobs.push(f.b.var(job));
        for i in 0..half.len() {
            parts.push(f.part(values, i));
        }
    }
    let history = Type::Named(f.stage.history);
    let fork = f.b.term(Exp::Inject(history, 1, jobs));
    let (fork, number, zero) = (f.emit(fork, "h"), plus(f, 2), f.b.i64(0));
    let zero = f.emit(zero, "n");
    let job = f.tuple(&[fork, number, zero]);
    f.state = f.tuple(&[counter, job]);
    Ok(())
}
