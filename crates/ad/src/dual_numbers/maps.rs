//! Numbers in maps; staged calls in maps, for the stages that have them: what is collected, and for identities the function that will be called with its argument.
//! One rule, that of primitives.
//!
//! ```text
//! Staged = #staged k (map (f64 -> Staged -> Staged, f64))        k: what is collected
//! scall((i, f), x, #staged k m)   = #staged k m'                 m': with (f, x) at i, or, where there is an (f, x') already, (f, x' + x)
//! sresolve(#staged k m)           = k, if m is empty; else sresolve (f x (#staged k m')), where (f, x) is at the highest identity, and m' is the rest
//! ```

use super::forward::{Forward, Operation, Res, Run, Stage};
use super::structure::{flagged, until};
use crate::chad::component;
use pullback_lambda::{Arm, Builder, Exp, FunId, Term, Type, TypeId, Var, Variant};
use pullback_prim::Op;
use std::sync::Arc;

/// `map with key + value`, for a map of numbers.
pub(crate) fn with(b: &mut Builder<'_>, map: Term, key: Term, value: Term) -> Term {
    let combine = b.lams(&[("x", Type::F64), ("y", Type::F64)], |b, v| {
        let (x, y) = (b.var(v[0]), b.var(v[1]));
        b.op2(Op::Add, x, y)
    });
    b.term(Exp::MapInsert { combine, map, key, value })
}

/// The number at `i`; zero if there is none.
pub(crate) fn found(b: &mut Builder<'_>, map: Var, i: Var) -> Term {
    let (map, i) = (b.var(map), b.var(i));
    let found = b.term(Exp::MapLookup(map, i));
    b.match_(found, |b, k, payload| if k == 0 { b.f64(0.0) } else { b.var(payload[0]) })
}

/// The type and its functions; what a stage has of them is the same, whatever is collected.
#[derive(Clone)]
pub(super) struct Maps {
    ty: TypeId,
    collected: Type,
    scall: FunId,
    sresolve: FunId,
}

impl Maps {
    /// The type, where this is collected.
    pub(super) fn new(b: &mut Builder<'_>, collected: &Type) -> Maps {
        let count = b.program.types.len();
        let ty = b.declare_type(&format!("staged_{count}"));
        let staged = Type::Named(ty);
        let call = call_type(&staged);
        let calls = Type::Map(Arc::new(call.clone()));
        let fields = vec![collected.clone(), calls.clone()];
        b.define_type(ty, vec![Variant { name: "staged".into(), fields }]);
        let beside = Type::tuple([Type::I64, back_type(&staged)]);
        let params = [("d", beside), ("x", Type::F64), ("s", staged.clone())];
        let scall = b.declare(&format!("scall_{count}"), &params, staged.clone(), None);
        let v = b.params(scall);
        let s = b.var(v[2]);
        let body = b.match_(s, |b, _, fields| {
            let combine = b.lams(&[("old", call.clone()), ("new", call.clone())], |b, both| {
                let (old, new) = (b.var(both[0]), b.var(both[1]));
                let (f, x, y) = (b.proj(old.clone(), 0), b.proj(old, 1), b.proj(new, 1));
                let sum = b.op2(Op::Add, x, y);
                b.tuple(vec![f, sum])
            });
            let (id, back) = (b.var(v[0]), b.var(v[0]));
            let (key, back, x) = (b.proj(id, 0), b.proj(back, 1), b.var(v[1]));
            let value = b.tuple(vec![back, x]);
            let map = b.var(fields[1]);
            let map = b.term(Exp::MapInsert { combine, map, key, value });
            let collected = b.var(fields[0]);
            b.term(Exp::Inject(staged.clone(), 0, vec![collected, map]))
        });
        b.define(scall, body);
        let sresolve = resolve(b, &format!("sresolve_{count}"), &staged, collected);
        Maps { ty, collected: collected.clone(), scall, sresolve }
    }
    /// `Staged`
    fn staged(&self) -> Type {
        Type::Named(self.ty)
    }
    /// `(Z, f64 -> Staged -> Staged)`
    pub(super) fn dual(&self) -> Type {
        Type::tuple([Type::I64, back_type(&self.staged())])
    }
    /// `(i, \z. id)`
    pub(super) fn constant<C: Stage>(&self, f: &mut Forward<'_, C>) -> Var {
        let id = f.next();
        let back = f.b.lams(&[("z", Type::F64), ("s", self.staged())], |b, v| b.var(v[1]));
        let back = f.emit(back, "d");
        f.tuple(&[id, back])
    }
    /// The result of a primitive changes staged calls: a call for every argument.
    // [dual_maps.operation]  (i, \z. \s. SCall d1 (d1op z) (.. (SCall dn (dnop z) s)))
    pub(super) fn operation<C: Stage>(&self, f: &mut Forward<'_, C>, op: &Operation) -> Var {
        let id = f.next();
        let back = f.lambda("z", Type::F64, |f, z| {
            let inner = f.lambda("s", self.staged(), |f, s| {
                let mut s = s;
                for (k, slope) in op.operands().rev() {
                    let (x, beside, now) = (f.scaled(op, slope, z), f.beside(op, k), f.b.var(s));
                    let called = f.b.call(self.scall, vec![beside, x, now]);
                    s = f.emit(called, "s");
                }
                s
            });
            f.emit(inner, "f")
        });
        let back = f.emit(back, "d");
        f.tuple(&[id, back])
    }
    /// `SResolve ((d1 z1 . .. . dm zm) (#staged collected {}))`, over the numbers of the result.
    pub(super) fn backward<C: Stage>(
        &self,
        f: &mut Forward<'_, C>,
        run: &Run<'_>,
        collected: Term,
    ) -> Res<Term> {
        let start = self.start(&mut f.b, collected);
        let start = f.emit(start, "s");
        let staged = f.results(run.result, run.result_type, run.seed, start, &mut |f, d, z, rest| {
            let (back, z, rest) = (f.part(d, 1), f.b.var(z), f.b.var(rest));
            let back = f.b.var(back);
            let called = f.b.apply(back, [z, rest]);
            f.emit(called, "s")
        })?;
        let staged = f.b.var(staged);
        Ok(f.b.call(self.sresolve, vec![staged]))
    }
    /// No calls, and this collected.
    fn start(&self, b: &mut Builder<'_>, collected: Term) -> Term {
        let none = b.term(Exp::MapEmpty(call_type(&self.staged())));
        b.term(Exp::Inject(self.staged(), 0, vec![collected, none]))
    }
    /// `\z. \s. #staged (f z k) m`, for `s = #staged k m`.
    pub(super) fn collecting(
        &self,
        b: &mut Builder<'_>,
        f: impl FnOnce(&mut Builder<'_>, Var, Var) -> Term,
    ) -> Term {
        let staged = self.staged();
        let z = b.fresh(Type::F64, "z");
        let s = b.fresh(staged.clone(), "s");
        let k = b.fresh(self.collected.clone(), "k");
        let m = b.fresh(Type::Map(Arc::new(call_type(&staged))), "m");
        let collected = f(b, z, k);
        let calls = b.var(m);
        let body = b.term(Exp::Inject(staged, 0, vec![collected, calls]));
        let given = b.var(s);
        let body = b.term(Exp::Match(given, vec![Arm { params: vec![k, m], body }]));
        let inner = b.term(Exp::Lam(s, body));
        b.term(Exp::Lam(z, inner))
    }
}

/// `f64 -> Staged -> Staged`
fn back_type(staged: &Type) -> Type {
    Type::funs([Type::F64, staged.clone()], staged.clone())
}

/// `(f64 -> Staged -> Staged, f64)`
fn call_type(staged: &Type) -> Type {
    Type::tuple([back_type(staged), Type::F64])
}

fn resolve(b: &mut Builder<'_>, name: &str, staged: &Type, collected: &Type) -> FunId {
    let f = b.declare(name, &[("s", staged.clone())], collected.clone(), None);
    let given = b.params(f)[0];
    let first = b.var(given);
    let all = until(b, vec![first], |b, p| {
        let now = component(b, p, 1);
        b.match_(now, |b, _, fields| {
            let (k, m) = (fields[0], b.var(fields[1]));
            let highest = b.term(Exp::MapPopMax(m));
            b.match_(highest, |b, alternative, popped| {
                let collected = b.var(k);
                if alternative == 0 {
                    let none = b.term(Exp::MapEmpty(call_type(staged)));
                    let done = b.term(Exp::Inject(staged.clone(), 0, vec![collected, none]));
                    return flagged(b, false, vec![done]);
                }
                let rest = b.var(popped[2]);
                let rest = b.term(Exp::Inject(staged.clone(), 0, vec![collected, rest]));
                let (back, x) = (component(b, popped[1], 0), component(b, popped[1], 1));
                let next = b.apply(back, [x, rest]);
                flagged(b, true, vec![next])
            })
        })
    });
    let last = b.proj(all, 1);
    let out = b.match_(last, |b, _, fields| b.var(fields[0]));
    b.define(f, out);
    f
}
