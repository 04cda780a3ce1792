//! Dual-numbers reverse AD on mutable arrays: the right cost.
//!
//! Source: T. Smeding, thesis, 3.7: Figs. 3.11 and 3.12.
//!
//! Judgement: `G |- t : s` becomes `D4[G] |- D4[t] : Z -> (D4[s], Z)`, threaded as `super::forward` has it.
//!
//! Types:
//! ```text
//! D4[f64] = (f64, (Z, f64 -> Staged -> io ()))
//! Staged = #staged mut(f64) mut((f64 -> Staged -> io (), f64))        by identity: cotangents of the arguments; functions that will be called, with arguments
//! ```
//!
//! Notation: `m >>= k`, `return` [`Exp::IoBind`], [`Exp::IoReturn`] · `m >> n` one after the other · arrays [`Exp::MutNew`], [`Exp::MutModify`]
//!
//! Rules:
//! ```text
//! constant     = (i, \z. \s. return ())
//! operation    = (i, \z. \s. SCall d1 (d1op z) s >> .. >> SCall dn (dnop z) s)      d1, .., dn: what stands beside the arguments
//! argument     = (i, \z. \s. SOneHot i z s)
//! cotangents z = the arguments, with the cotangents after (SAlloc >>= \s. d1 z1 s >> .. >> dm zm s >> SResolve s) in the place of their numbers
//!
//! SCall (i, f) a (#staged c m) = m[i] := (f, m[i].1 + a)         SOneHot i a (#staged c m) = c[i] := c[i] + a
//! SAlloc                       = #staged (new arguments 0) (new identities (\z. \s. return (), 0))
//! SResolve (#staged c m)       = m[i].0 m[i].1 (#staged c m), for the highest identity i first
//! ```
//!
//! Differences from the paper:
//! 1. Cotangents of numbers are `f64` until they arrive, also those of `f32`.
//!
//! Guarantee: a gradient costs a constant times the program and the size of its arguments, for programs without array operations of higher cost than their
//! elements (tests count the steps).
//!
//! Not supported: functions with derivatives of their own, derivatives inside of a program; arguments and results that are functions or of recursive types.

use super::effects::{bound, silent, then, unit};
use super::forward::{self, Forward, Operation, Path, Res, Run, Stage};
use crate::chad::component;
use crate::contract::Unsupported;
use pullback_lambda::{Builder, Exp, FunId, Program, Term, Type, TypeId, Var, Variant};
use pullback_prim::{Op, Scalar};
use std::sync::Arc;

/// The name by which it is chosen.
pub const ID: &str = "dual-arrays";

/// Adds, for a function `f : (s1, .., sn) -> t`, the function `(s1, .., sn, d[t]) -> (t, (d[s1], .., d[sn]))`: value and cotangents of the arguments.
///
/// Errors: constructs that are not supported; the program is as before then. Cost: the size of the functions.
pub fn vjp(program: &mut Program, f: FunId) -> Result<FunId, Unsupported> {
    forward::vjp(program, f, |b, _| Arrays::new(b))
}

struct Arrays {
    staged: TypeId,
    scall: FunId,
    one_hot: FunId,
    resolve: FunId,
}

impl Arrays {
    fn new(b: &mut Builder<'_>) -> Arrays {
        let count = b.program.types.len();
        let id = b.declare_type(&format!("staged_{count}"));
        let staged = Type::Named(id);
        let call = call_type(id);
        let cells = |t: Type| Type::MutArray(Arc::new(t));
        let fields = vec![cells(Type::F64), cells(call.clone())];
        b.define_type(id, vec![Variant { name: "staged".into(), fields }]);
        let nothing = Type::io(Type::unit());

        // m[i] := (f, m[i].1 + a)
        let beside = Type::tuple([Type::I64, back_type(id)]);
        let params = [("d", beside), ("a", Type::F64), ("s", staged.clone())];
        let scall = b.declare(&format!("scall_{count}"), &params, nothing.clone(), None);
        let v = b.params(scall);
        let s = b.var(v[2]);
        let body = b.match_(s, |b, _, fields| {
            let change = b.lam("old", call.clone(), |b, old| {
                let (back, before, a) = (component(b, v[0], 1), component(b, old, 1), b.var(v[1]));
                let sum = b.op2(Op::Add, before, a);
                b.tuple(vec![back, sum])
            });
            let (m, i) = (b.var(fields[1]), component(b, v[0], 0));
            let changed = b.term(Exp::MutModify(m, i, change));
            silent(b, changed)
        });
        b.define(scall, body);

        // c[i] := c[i] + a
        let params = [("i", Type::I64), ("a", Type::F64), ("s", staged.clone())];
        let one_hot = b.declare(&format!("one_hot_{count}"), &params, nothing.clone(), None);
        let v = b.params(one_hot);
        let s = b.var(v[2]);
        let body = b.match_(s, |b, _, fields| {
            let change = b.lam("old", Type::F64, |b, old| {
                let (old, a) = (b.var(old), b.var(v[1]));
                b.op2(Op::Add, old, a)
            });
            let (c, i) = (b.var(fields[0]), b.var(v[0]));
            let changed = b.term(Exp::MutModify(c, i, change));
            silent(b, changed)
        });
        b.define(one_hot, body);

        // From identity i down to 0.
        let params = [("i", Type::I64), ("s", staged)];
        let resolve = b.declare(&format!("resolve_{count}"), &params, nothing, None);
        let v = b.params(resolve);
        let s = b.var(v[1]);
        let body = b.match_(s, |b, _, fields| {
            let (m, i) = (b.var(fields[1]), b.var(v[0]));
            let get = b.term(Exp::MutGet(m, i));
            let call = bound(b, "fa", get, |b, fa| {
                let (back, a, s) = (component(b, fa, 0), component(b, fa, 1), b.var(v[1]));
                let called = b.apply(back, [a, s]);
                let (i, one, s) = (b.var(v[0]), b.i64(1), b.var(v[1]));
                let next = b.op2(Op::Sub, i, one);
                let rest = b.call(resolve, vec![next, s]);
                then(b, called, rest)
            });
            let (i, zero) = (b.var(v[0]), b.i64(0));
            let done = b.op2(Op::Lt, i, zero);
            let end = unit(b);
            b.if_(done, end, call)
        });
        b.define(resolve, body);
        Arrays { staged: id, scall, one_hot, resolve }
    }
}

/// `f64 -> Staged -> io ()`
fn back_type(staged: TypeId) -> Type {
    Type::funs([Type::F64, Type::Named(staged)], Type::io(Type::unit()))
}

/// `(f64 -> Staged -> io (), f64)`
fn call_type(staged: TypeId) -> Type {
    Type::tuple([back_type(staged), Type::F64])
}

impl Stage for Arrays {
    const ID: &'static str = ID;

    fn dual(&self) -> Type {
        Type::tuple([Type::I64, back_type(self.staged)])
    }
    // [dual_arrays.constant]  (i, \z. \s. return ())
    fn constant(f: &mut Forward<'_, Self>) -> Var {
        let id = f.next();
        let back = nothing(f, "z");
        let back = f.emit(back, "d");
        f.tuple(&[id, back])
    }
    // [dual_arrays.operation]  (i, \z. \s. SCall d1 (d1op z) s >> .. >> SCall dn (dnop z) s)
    fn operation(f: &mut Forward<'_, Self>, op: &Operation) -> Var {
        let id = f.next();
        let (staged, scall) = (Type::Named(f.stage.staged), f.stage.scall);
        let back = f.lambda("z", Type::F64, |f, z| {
            let inner = f.lambda("s", staged, |f, s| {
                let mut all: Option<Term> = None;
                for (k, slope) in op.operands().rev() {
                    let (a, beside, s) = (f.scaled(op, slope, z), f.beside(op, k), f.b.var(s));
                    let call = f.b.call(scall, vec![beside, a, s]);
                    all = Some(match all {
                        Some(rest) => then(&mut f.b, call, rest),
                        None => call,
                    });
                }
                let all = all.unwrap_or_else(|| unit(&mut f.b));
                f.emit(all, "all")
            });
            f.emit(inner, "f")
        });
        let back = f.emit(back, "d");
        f.tuple(&[id, back])
    }
    // [dual_arrays.argument]  (i, \z. \s. SOneHot i z s)
    fn argument(f: &mut Forward<'_, Self>, _: Scalar, _: &Path<'_>) -> Var {
        let id = f.next();
        let (staged, one_hot) = (Type::Named(f.stage.staged), f.stage.one_hot);
        let back = f.b.lams(&[("z", Type::F64), ("s", staged)], |b, v| {
            let (i, z, s) = (b.var(id), b.var(v[0]), b.var(v[1]));
            b.call(one_hot, vec![i, z, s])
        });
        let back = f.emit(back, "d");
        f.tuple(&[id, back])
    }
    // [dual_arrays.cotangents]  SAlloc >>= \s. d1 z1 s >> .. >> dm zm s >> SResolve s
    fn backward(f: &mut Forward<'_, Self>, run: &Run<'_>) -> Res<Var> {
        let state = f.state;
        let io = f.around(|f| {
            let (n, zero) = (f.b.var(run.arguments), f.b.f64(0.0));
            let c = f.b.term(Exp::MutNew(n, zero));
            let c = f.perform(c, "c");
            let (n, zero, dead) = (f.b.var(state), f.b.f64(0.0), nothing(f, "_"));
            let cell = f.b.tuple(vec![dead, zero]);
            let m = f.b.term(Exp::MutNew(n, cell));
            let m = f.perform(m, "m");
            let (cells, calls) = (f.b.var(c), f.b.var(m));
            let s = f.b.term(Exp::Inject(Type::Named(f.stage.staged), 0, vec![cells, calls]));
            let s = f.emit(s, "s");
            let (n, one, staged) = (f.b.var(state), f.b.i64(1), f.b.var(s));
            let last = f.b.op2(Op::Sub, n, one);
            let resolve = f.b.call(f.stage.resolve, vec![last, staged]);
            let resolve = f.emit(resolve, "resolve");
            let all = f.results(run.result, run.result_type, run.seed, resolve, &mut |f, d, z, rest| {
                let (back, z, s, rest) = (f.part(d, 1), f.b.var(z), f.b.var(s), f.b.var(rest));
                let back = f.b.var(back);
                let called = f.b.apply(back, [z, s]);
                let both = then(&mut f.b, called, rest);
                f.emit(both, "all")
            })?;
            let all = f.b.var(all);
            f.perform(all, "_");
            let cells = f.b.var(c);
            Ok(f.b.term(Exp::MutFreeze(cells)))
        })?;
        let cotangents = f.b.term(Exp::IoRun(io));
        let cotangents = f.emit(cotangents, "cotangents");
        f.gathered(run, &mut |f, i| {
            let (all, i) = (f.b.var(cotangents), f.b.var(i));
            f.b.index(all, vec![i])
        })
    }
}

/// `\z. \s. return ()`
fn nothing(f: &mut Forward<'_, Arrays>, hint: &str) -> Term {
    let staged = Type::Named(f.stage.staged);
    f.b.lams(&[(hint, Type::F64), ("s", staged)], |b, _| unit(b))
}
