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
use crate::contract::Unsupported;
use pullback_lambda::{
    Builder, Exp, FunId, Loop, LoopAttrs, LoopForm, Program, Term, Type, TypeId, Var, Variant,
};
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

/// `(f64, Z)`
fn entry() -> Type {
    Type::tuple([Type::F64, Type::I64])
}

impl Taping {
    fn new(b: &mut Builder<'_>) -> Taping {
        let tape = b.declare_type(&format!("tape_{}", b.program.types.len()));
        let row = Variant { name: "row".into(), fields: vec![Type::array(entry()), Type::Named(tape)] };
        b.define_type(tape, vec![Variant { name: "start".into(), fields: Vec::new() }, row]);
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
        let items: Vec<_> = Forward::<Self>::operands(op).map(|(k, d)| (d, f.beside(op, k))).collect();
        let active: Vec<Term> = items.iter().map(|(_, id)| is_active(&mut f.b, id)).collect();
        let active = active.into_iter().reduce(|others, active| f.b.op2(Op::Or, others, active));
        let active = active.unwrap_or_else(|| f.b.constant(ScalarValue::Bool(false)));
        let state = f.state;
        let Ok(recorded) = f.block::<Infallible>(|f| {
            let mut entries = Vec::new();
            for (partial, id) in &items {
                let factor = f.factor(op, partial);
                entries.push(f.b.tuple(vec![factor, id.clone()]));
            }
            let row = f.b.term(Exp::ArrayLit(entry(), entries));
            let (id, tape) = (f.part(state, 0), f.part(state, 1));
            let (now, one, tape) = (f.b.var(id), f.b.i64(1), f.b.var(tape));
            let next = f.b.op2(Op::Add, now, one);
            let ty = Type::Named(f.stage.tape);
            let tape = f.b.term(Exp::Inject(ty, 1, vec![row, tape]));
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
            let added = added(f, rest, id, z);
            let rest = f.b.var(rest);
            let either = f.b.if_(is_active, added, rest);
            f.emit(either, "cotangents")
        })?;
        // (is there a row, what is left of the tape, identity of the last row + 1, cotangents)
        let go = f.b.constant(ScalarValue::Bool(true));
        let go = f.emit(go, "go");
        let init = f.tuple(&[go, tape, count, seeded]);
        let ty = f.b.program.vars[init].ty.clone();
        let state = f.b.fresh(ty, "s");
        let condition = {
            let state = f.b.var(state);
            f.b.proj(state, 0)
        };
        let body = f.scope(|f| {
            let a = f.part(state, 3);
            let (tape, next) = (f.part(state, 1), f.part(state, 2));
            let one = f.b.i64(1);
            let next = f.b.var(next);
            let id = f.b.op2(Op::Sub, next.clone(), one);
            let id = f.emit(id, "id");
            let tape = f.b.var(tape);
            let row = f.b.fresh(Type::array(entry()), "row");
            let rest = f.b.fresh(tape.ty().clone(), "rest");
            let on = f.scope(|f| {
                let (cotangents, at) = (f.b.var(a), f.b.var(id));
                let d = f.b.index(cotangents, vec![at]);
                let d = f.emit(d, "z");
                let all = f.b.var(row);
                let n = f.b.size(all, 0);
                let (k, sum) = (f.b.fresh(Type::I64, "k"), f.b.fresh(Type::array(Type::F64), "a"));
                let each = f.scope(|f| {
                    let (all, k) = (f.b.var(row), f.b.var(k));
                    let entry = f.b.index(all, vec![k]);
                    let entry = f.emit(entry, "e");
                    let (factor, to) = (f.part(entry, 0), f.part(entry, 1));
                    let (factor, to, d) = (f.b.var(factor), f.b.var(to), f.b.var(d));
                    let is_active = is_active(&mut f.b, &to);
                    let z = f.b.op2(Op::Mul, d, factor);
                    let added = added(f, sum, to, z);
                    let same = f.b.var(sum);
                    let either = f.b.if_(is_active, added, same);
                    Ok(f.emit(either, "a"))
                })?;
                let init = f.b.var(a);
                let form = LoopForm::For(k, n);
                let all = Loop { state: sum, init, form, body: each, attrs: LoopAttrs::default() };
                let all = f.b.term(Exp::Loop(all));
                let all = f.emit(all, "a");
                let go = f.b.constant(ScalarValue::Bool(true));
                let go = f.emit(go, "go");
                Ok(f.tuple(&[go, rest, id, all]))
            })?;
            let done = f.scope(|f| {
                let go = f.b.constant(ScalarValue::Bool(false));
                let go = f.emit(go, "go");
                let ty = Type::Named(f.stage.tape);
                let empty = f.b.term(Exp::Inject(ty, 0, Vec::new()));
                let empty = f.emit(empty, "tape");
                Ok(f.tuple(&[go, empty, id, a]))
            })?;
            let arms = vec![
                pullback_lambda::Arm { params: Vec::new(), body: done },
                pullback_lambda::Arm { params: vec![row, rest], body: on },
            ];
            let both = f.b.term(Exp::Match(tape, arms));
            Ok(f.emit(both, "s"))
        })?;
        let init = f.b.var(init);
        let form = LoopForm::While(condition);
        let all = Loop { state, init, form, body, attrs: LoopAttrs::default() };
        let all = f.b.term(Exp::Loop(all));
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

/// `a with [i] = a[i] + z`
fn added(f: &mut Forward<'_, Taping>, a: Var, i: Term, z: Term) -> Term {
    // Two terms for one variable: it is written in place at the last of them.
    let (read, written) = (f.b.var(a), f.b.var(a));
    let old = f.b.index(read, vec![i.clone()]);
    let sum = f.b.op2(Op::Add, old, z);
    f.b.term(Exp::Update(written, vec![i], sum))
}
