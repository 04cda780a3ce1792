//! Classical taping, as the end of the derivation: what the reverse pass would find out is written down in the forward pass.
//!
//! Source: T. Smeding, thesis, 3.8.3; constants are kept off the tape, as in the library `ad` (3.11).
//!
//! Judgement: `G |- t : s` becomes `Dt[G] |- Dt[t] : (Z, Tape) -> (Dt[s], (Z, Tape))`, threaded as `super::forward` has it.
//!
//! Types:
//! ```text
//! Dt[f64] = (f64, Z)        an identity; -1 for what does not depend on the arguments
//! Tape = #start | #row [](f64, Z) Tape       one row per identity beyond the arguments, the last one first
//!      | #strong [](f64, Z) Tape              a row of partial derivatives that may be infinite: a zero stops there
//! ```
//!
//! Notation: a row `[(a1, i1), .., (an, in)]`: partial derivatives and identities of the arguments of a primitive
//!
//! Rules:
//! ```text
//! constant     = -1
//! operation    = -1, if all arguments are constants; else i, with #row [(d1op 1, i1), .., (dnop 1, in)] as the first of the tape
//! argument     = i
//! cotangents z = let a = zeros, with zk added at the identities of the result, in
//!                for the rows of the tape, the last one first: a with a[ij] + aj * a[i] for its (aj, ij)
//! ```
//!
//! Differences from the paper:
//! 1. The tape is a list, not an array that grows: it is read from its last row on, which is where a list begins; so the forward pass needs no effects.
//! 2. Constants have no rows.
//! 3. Cotangents of numbers are `f64` until they arrive, also those of `f32`.
//!
//! Guarantee: a gradient costs a constant times the program and the size of its arguments, for programs without array operations of higher cost than their
//! elements (tests count the steps).
//!
//! Not supported: functions with derivatives of their own, derivatives inside of a program; arguments and results that are functions or of recursive types.

use super::forward::{self, Forward, Operation, Path, Res, Run, Stage};
use super::structure::{added, flagged, until};
use crate::chad::component;
use crate::contract::Unsupported;
use pullback_lambda::{Builder, Exp, FunId, LoopAttrs, Program, Term, Type, TypeId, Var, Variant};
use pullback_prim::{Op, Scalar, ScalarValue};
use std::convert::Infallible;

/// The name by which it is chosen.
pub const ID: &str = "dual-taping";

/// Adds, for a function `f : (s1, .., sn) -> t`, the function `(s1, .., sn, d[t]) -> (t, (d[s1], .., d[sn]))`: value and cotangents of the arguments.
///
/// Errors: constructs that are not supported; the program is as before then. Cost: the size of the functions.
pub fn vjp(program: &mut Program, f: FunId) -> Result<FunId, Unsupported> {
    forward::vjp(program, f, |b, _| Taping::new(b))
}

struct Taping {
    tape: TypeId,
}

/// The alternatives of a tape that are rows.
const ROW: usize = 1;
const STRONG: usize = 2;

/// `(f64, Z)`
fn entry() -> Type {
    Type::tuple([Type::F64, Type::I64])
}

impl Taping {
    fn new(b: &mut Builder<'_>) -> Taping {
        let tape = b.declare_type(&format!("tape_{}", b.program.types.len()));
        let row =
            |name: &str| Variant { name: name.into(), fields: vec![Type::array(entry()), Type::Named(tape)] };
        let start = Variant { name: "start".into(), fields: Vec::new() };
        b.define_type(tape, vec![start, row("row"), row("strong")]);
        Taping { tape }
    }
}

impl Stage for Taping {
    const ID: &'static str = ID;

    fn dual(&self) -> Type {
        Type::I64
    }
    fn state(&self) -> Type {
        Type::tuple([Type::I64, Type::Named(self.tape)])
    }
    fn start(f: &mut Forward<'_, Self>) -> Var {
        let tape = Type::Named(f.stage.tape);
        let (zero, empty) = (f.b.i64(0), f.b.term(Exp::Inject(tape, 0, Vec::new())));
        let first = f.b.tuple(vec![zero, empty]);
        f.emit(first, "tape")
    }
    // [dual_taping.constant]  -1
    fn constant(f: &mut Forward<'_, Self>) -> Var {
        let none = f.b.i64(-1);
        f.emit(none, "id")
    }
    // [dual_taping.operation]  i, with #row [(d1op 1, i1), .., (dnop 1, in)] as the first of the tape; -1 of constants
    fn operation(f: &mut Forward<'_, Self>, op: &Operation) -> Var {
        let active: Vec<Term> = op
            .operands()
            .map(|(k, _)| {
                let id = f.beside(op, k);
                is_active(&mut f.b, &id)
            })
            .collect();
        let active = active.into_iter().reduce(|others, active| f.b.op2(Op::Or, others, active));
        let active = active.unwrap_or_else(|| f.b.constant(ScalarValue::Bool(false)));
        let state = f.state;
        let Ok(recorded) = f.block::<Infallible>(|f| {
            let row = f.row(op, entry(), &mut |f, k, factor| {
                let id = f.beside(op, k);
                f.b.tuple(vec![factor, id])
            });
            let (id, tape) = (f.part(state, 0), f.part(state, 1));
            let (now, one, tape) = (f.b.var(id), f.b.i64(1), f.b.var(tape));
            let next = f.b.op2(Op::Add, now, one);
            let ty = Type::Named(f.stage.tape);
            let alternative = if op.is_strong() { STRONG } else { ROW };
            let tape = f.b.term(Exp::Inject(ty, alternative, vec![row, tape]));
            let state = f.b.tuple(vec![next, tape]);
            f.state = f.emit(state, "tape");
            Ok(id)
        });
        let Ok(dropped) = f.block::<Infallible>(|f| Ok(Self::constant(f)));
        let either = f.b.if_(active, recorded, dropped);
        f.run(either, "id")
    }
    // [dual_taping.argument]  i
    fn argument(f: &mut Forward<'_, Self>, _: Scalar, _: &Path<'_>) -> Var {
        let (id, tape) = (f.part(f.state, 0), f.part(f.state, 1));
        let (now, one) = (f.b.var(id), f.b.i64(1));
        let next = f.b.op2(Op::Add, now, one);
        let next = f.emit(next, "next");
        f.state = f.tuple(&[next, tape]);
        id
    }
    // [dual_taping.cotangents]  from the last row to the first: a[ij] + aj * a[i]
    fn backward(f: &mut Forward<'_, Self>, run: &Run<'_>) -> Res<Var> {
        let (count, tape) = (f.part(f.state, 0), f.part(f.state, 1));
        let (n, zero) = (f.b.var(count), f.b.f64(0.0));
        let zeros = f.b.term(Exp::Replicate(n, zero));
        let zeros = f.emit(zeros, "cotangents");
        let seeded = f.results(run.result, run.result_type, run.seed, zeros, &mut |f, id, z, rest| {
            let (id, z) = (f.b.var(id), f.b.var(z));
            let is_active = is_active(&mut f.b, &id);
            let added = added(&mut f.b, rest, id, z);
            let rest = f.b.var(rest);
            let either = f.b.if_(is_active, added, rest);
            f.emit(either, "cotangents")
        })?;
        // What is left of the tape, the identity of its first row + 1, cotangents.
        let start = f.b.term(Exp::Inject(Type::Named(f.stage.tape), 0, Vec::new()));
        let init = [tape, count, seeded].map(|v| f.b.var(v)).to_vec();
        let all = until(&mut f.b, init, |b, p| {
            let a = component(b, p, 3);
            b.let_("a", a, |b, a| {
                let (next, one) = (component(b, p, 2), b.i64(1));
                let id = b.op2(Op::Sub, next, one);
                b.let_("id", id, |b, id| {
                    let tape = component(b, p, 1);
                    b.match_(tape, |b, alternative, row| {
                        let [row, rest] = *row else {
                            let (id, a) = (b.var(id), b.var(a));
                            return flagged(b, false, vec![start.clone(), id, a]);
                        };
                        let (rest, all) = (b.var(rest), contributed(b, alternative, row, id, a));
                        let id = b.var(id);
                        flagged(b, true, vec![rest, id, all])
                    })
                })
            })
        });
        let last = f.b.proj(all, 3);
        let cotangents = f.emit(last, "cotangents");
        f.gathered(run, &mut |f, i| {
            let (a, i) = (f.b.var(cotangents), f.b.var(i));
            f.b.index(a, vec![i])
        })
    }
}

/// `0 <= id`: it is not that of a constant.
fn is_active(b: &mut Builder<'_>, id: &Term) -> Term {
    let zero = b.i64(0);
    b.op2(Op::Le, zero, id.clone())
}

/// `a` with `a[to] + factor * a[id]` for every `(factor, to)` of the row.
fn contributed(b: &mut Builder<'_>, alternative: usize, row: Var, id: Var, a: Var) -> Term {
    let (all, id) = (b.var(a), b.var(id));
    let d = b.index(all, vec![id]);
    b.let_("z", d, |b, d| {
        let (entries, a) = (b.var(row), b.var(a));
        let n = b.size(entries.clone(), 0);
        b.for_loop(n, a, LoopAttrs::default(), |b, k, a| {
            let k = b.var(k);
            let entry = b.index(entries, vec![k]);
            b.let_("e", entry, |b, e| {
                let (factor, to, d, same) = (component(b, e, 0), component(b, e, 1), b.var(d), b.var(a));
                let is_active = is_active(b, &to);
                let product = if alternative == STRONG { Op::StrongMul } else { Op::Mul };
                let z = b.op2(product, d, factor);
                let added = added(b, a, to, z);
                b.if_(is_active, added, same)
            })
        })
    })
}
