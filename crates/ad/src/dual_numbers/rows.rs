//! Contributions as data, for the stages that have them: types, and functions on cells, which hold what a number contributes and its cotangent. One rule, that of primitives.
//!
//! ```text
//! Contrib = #contrib [](f64, Id, Contrib)        times what, to which identity, which has these contributions
//!         | #strong [](f64, Id, Contrib)         the same, where a zero stops at a partial derivative that may be infinite
//! Cell    = (Contrib, f64)
//!
//! add i cb a m         = m[i] := (cb, m[i].1 + a)
//! contribute row k d m = add ij cbj (aj * d) m, for the entries (aj, ij, cbj) of the row from the k-th on
//! resolve i .. m       = let (#contrib row, d) = m[i] in contribute row 0 d m >> resolve (i - 1) .. m, down to the last cell;
//!                        of a #strong row by contribute_strongly, with strong_mul d aj for aj * d
//! ```

use super::effects::{bound, silent, then, unit};
use super::forward::{Forward, Operation, Res, Run, Stage};
use crate::chad::component;
use pullback_base::index::Index;
use pullback_lambda::{Builder, Exp, FunId, Term, Type, TypeId, Var, Variant};
use pullback_prim::Op;
use std::sync::Arc;

/// The alternatives of `Contrib`.
const CONTRIB: usize = 0;
const STRONG: usize = 1;

/// The types, where identities and all cells are of these types.
#[derive(Clone)]
pub(super) struct Rows {
    contrib: TypeId,
    identity: Type,
    memory: Type,
}

impl Rows {
    /// Declares `Contrib`; the type of all cells is made of that of an array of them.
    pub(super) fn new(b: &mut Builder<'_>, identity: Type, memory: impl FnOnce(Type) -> Type) -> Rows {
        let contrib = b.declare_type(&format!("contrib_{}", b.program.types.len()));
        let mut rows = Rows { contrib, identity, memory: Type::unit() };
        let row = vec![Type::array(rows.entry())];
        let variant = |name: &str| Variant { name: name.into(), fields: row.clone() };
        b.define_type(contrib, vec![variant("contrib"), variant("strong")]);
        rows.memory = memory(rows.cells());
        rows
    }
    /// `(Id, Contrib)`
    pub(super) fn dual(&self) -> Type {
        Type::tuple([self.identity.clone(), Type::Named(self.contrib)])
    }
    /// `mut(Cell)`
    pub(super) fn cells(&self) -> Type {
        Type::MutArray(Arc::new(self.cell()))
    }
    /// All cells.
    pub(super) fn memory(&self) -> Type {
        self.memory.clone()
    }
    fn cell(&self) -> Type {
        Type::tuple([Type::Named(self.contrib), Type::F64])
    }
    fn entry(&self) -> Type {
        Type::tuple([Type::F64, self.identity.clone(), Type::Named(self.contrib)])
    }
    fn contrib(&self, b: &mut Builder<'_>, row: Vec<Term>) -> Term {
        let row = b.term(Exp::ArrayLit(self.entry(), row));
        b.term(Exp::Inject(Type::Named(self.contrib), CONTRIB, vec![row]))
    }
    /// `#contrib []`
    pub(super) fn nothing<C: Stage>(&self, f: &mut Forward<'_, C>) -> Var {
        let none = self.contrib(&mut f.b, Vec::new());
        f.emit(none, "cb")
    }
    /// `(#contrib [], 0)`
    pub(super) fn empty(&self, b: &mut Builder<'_>) -> Term {
        let (none, zero) = (self.contrib(b, Vec::new()), b.f64(0.0));
        b.tuple(vec![none, zero])
    }
    /// What the result of a primitive contributes to.
    // [dual_rows.row]  #contrib [(d1op 1, d1), .., (dnop 1, dn)], without those that are not chosen
    pub(super) fn row<C: Stage>(&self, f: &mut Forward<'_, C>, op: &Operation) -> Var {
        let beside: Vec<(usize, Var)> = op
            .operands()
            .map(|(k, _)| {
                let d = f.beside(op, k);
                (k, f.emit(d, "d"))
            })
            .collect();
        let row = f.row(op, self.entry(), &mut |f, k, a| {
            let d =
                beside.iter().find(|(i, _)| *i == k).map_or_else(|| unreachable!("an operand"), |(_, d)| *d);
            let (i, cb) = (component(&mut f.b, d, 0), component(&mut f.b, d, 1));
            f.b.tuple(vec![a, i, cb])
        });
        let alternative = if op.is_strong() { STRONG } else { CONTRIB };
        let made = f.b.term(Exp::Inject(Type::Named(self.contrib), alternative, vec![row]));
        f.emit(made, "cb")
    }
    /// `add`; the closure changes the cell of an identity, in all cells.
    pub(super) fn add(
        &self,
        b: &mut Builder<'_>,
        changed: impl FnOnce(&mut Builder<'_>, Var, Var, Term) -> Term,
    ) -> FunId {
        let contrib = Type::Named(self.contrib);
        let params = [("i", self.identity.clone()), ("cb", contrib), ("a", Type::F64), ("m", self.memory())];
        let f = b.declare(&self.name("add"), &params, Type::io(Type::unit()), None);
        let v = b.params(f);
        let change = b.lam("old", self.cell(), |b, old| {
            let (cb, before, a) = (b.var(v[1]), component(b, old, 1), b.var(v[2]));
            let sum = b.op2(Op::Add, before, a);
            b.tuple(vec![cb, sum])
        });
        let body = changed(b, v[3], v[0], change);
        b.define(f, body);
        f
    }
    /// `contribute`, and `contribute_strongly`
    pub(super) fn contribute(&self, b: &mut Builder<'_>, add: FunId) -> [FunId; 2] {
        [CONTRIB, STRONG].map(|alternative| self.contribute_row(b, add, alternative))
    }
    fn contribute_row(&self, b: &mut Builder<'_>, add: FunId, alternative: usize) -> FunId {
        let row = Type::array(self.entry());
        let params = [("row", row), ("k", Type::I64), ("d", Type::F64), ("m", self.memory())];
        let name = ["contribute", "contribute_strongly"][alternative];
        let f = b.declare(&self.name(name), &params, Type::io(Type::unit()), None);
        let v = b.params(f);
        let (row, k) = (b.var(v[0]), b.var(v[1]));
        let one = b.index(row.clone(), vec![k.clone()]);
        let on = b.let_("e", one, |b, e| {
            let (a, i, cb) = (component(b, e, 0), component(b, e, 1), component(b, e, 2));
            let (d, m) = (b.var(v[2]), b.var(v[3]));
            let a = match alternative {
                STRONG => b.op2(Op::StrongMul, d.clone(), a),
                _ => b.op2(Op::Mul, a, d.clone()),
            };
            let first = b.call(add, vec![i, cb, a, m.clone()]);
            let (row, k, one) = (b.var(v[0]), b.var(v[1]), b.i64(1));
            let k = b.op2(Op::Add, k, one);
            let rest = b.call(f, vec![row, k, d, m]);
            then(b, first, rest)
        });
        let n = b.size(row, 0);
        let more = b.op2(Op::Lt, k, n);
        let end = unit(b);
        let body = b.if_(more, on, end);
        b.define(f, body);
        f
    }
    /// `resolve`, of this name and with this parameter between `i` and `m`; the closure gets the parameters and gives the cells, and the last of them.
    pub(super) fn resolve(
        &self,
        b: &mut Builder<'_>,
        name: &str,
        between: (&str, Type),
        contribute: [FunId; 2],
        cells: impl FnOnce(&mut Builder<'_>, &[Var]) -> (Term, Term),
    ) -> FunId {
        let params = [("i", Type::I64), between, ("m", self.memory())];
        let f = b.declare(&self.name(name), &params, Type::io(Type::unit()), None);
        let v = b.params(f);
        let (i, (cells, last)) = (b.var(v[0]), cells(b, &v));
        let get = b.term(Exp::MutGet(cells, i.clone()));
        let on = bound(b, "c", get, |b, c| {
            let contrib = component(b, c, 0);
            b.match_(contrib, |b, alternative, row| {
                let (row, zero, d, m) = (b.var(row[0]), b.i64(0), component(b, c, 1), b.var(v[2]));
                let first = b.call(contribute[alternative], vec![row, zero, d, m]);
                let (i, one, same, m) = (b.var(v[0]), b.i64(1), b.var(v[1]), b.var(v[2]));
                let i = b.op2(Op::Sub, i, one);
                let rest = b.call(f, vec![i, same, m]);
                then(b, first, rest)
            })
        });
        let done = b.op2(Op::Lt, i, last);
        let end = unit(b);
        let body = b.if_(done, end, on);
        b.define(f, body);
        f
    }
    fn name(&self, of: &str) -> String {
        format!("{of}_{}", self.contrib.index())
    }
}

/// `m[i] := change m[i]`
pub(super) fn changed(b: &mut Builder<'_>, m: Var, i: Term, change: Term) -> Term {
    let m = b.var(m);
    let changed = b.term(Exp::MutModify(m, i, change));
    silent(b, changed)
}

/// `add d1 z1 m >> .. >> add dm zm m >> resolve`, over the numbers of the result, is performed.
pub(super) fn resolved<C: Stage>(
    f: &mut Forward<'_, C>,
    run: &Run<'_>,
    add: FunId,
    m: Var,
    resolve: Term,
) -> Res<()> {
    let resolve = f.emit(resolve, "resolve");
    let all = f.results(run.result, run.result_type, run.seed, resolve, &mut |f, d, z, rest| {
        let (i, cb) = (component(&mut f.b, d, 0), component(&mut f.b, d, 1));
        let (z, m, rest) = (f.b.var(z), f.b.var(m), f.b.var(rest));
        let added = f.b.call(add, vec![i, cb, z, m]);
        let both = then(&mut f.b, added, rest);
        f.emit(both, "all")
    })?;
    let all = f.b.var(all);
    f.perform(all, "_");
    Ok(())
}

/// The cotangents of the arguments, with the numbers that are in the cells that a computation gives.
pub(super) fn gathered<C: Stage>(f: &mut Forward<'_, C>, run: &Run<'_>, cells: Term) -> Res<Var> {
    let cells = f.b.term(Exp::IoRun(cells));
    let cells = f.emit(cells, "cells");
    f.gathered(run, &mut |f, i| {
        let (all, i) = (f.b.var(cells), f.b.var(i));
        let one = f.b.index(all, vec![i]);
        f.b.proj(one, 1)
    })
}
