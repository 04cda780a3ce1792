//! Checks for what can stop a function that is differentiated.
//!
//! Differentiated are the functions under `vjp` and `jvp`, and those that they call. Assumes that calls of functions that are not
//! recursive were replaced by their bodies, if they are to be: a function that is called from there keeps its checks wherever it is
//! called from. Guarantees: the same values, and the same errors at the same places.

use super::ask::{Part, asked};
use crate::Ctx;
use crate::hoist::is_cheap_and_safe;
use pullback_base::index::IdSet;
use pullback_core::shapes::{Dim, Shapes, shapes};
use pullback_core::traverse::{called_functions, for_each_stm, reachable_functions};
use pullback_core::{
    Atom, Body, Check, Exp, FunId, Lam, Origin, Program, Shaped, Soac, Stm, Type, Var, VarInfo,
};
use pullback_prim::{Op, Prim, Scalar};

/// Runs the pass. Cost: the size of the program.
pub fn keep_checks(program: &mut Program, _ctx: &Ctx) {
    let mut called = IdSet::new();
    for fun in program.funs.iter() {
        for_each_stm(&fun.body, &mut |stm| {
            if let Exp::Vjp { lam, .. } | Exp::Jvp { lam, .. } = &stm.exp {
                called.extend(called_functions(&lam.body));
            }
        });
    }
    let called: IdSet<FunId> = reachable_functions(program, called).into_iter().collect();
    keep_in(program, |f| called.contains(&f));
}

/// Keeps all checks of a program, for one that is all derivative.
pub fn keep_all_checks(program: &mut Program) {
    keep_in(program, |_| true);
}

fn keep_in(program: &mut Program, whole: impl Fn(FunId) -> bool) {
    let ids: Vec<FunId> = program.funs.ids().collect();
    for id in ids {
        let fun = &program.funs[id];
        let differentiates = |body: &Body| {
            let mut found = false;
            for_each_stm(body, &mut |s| found |= matches!(s.exp, Exp::Vjp { .. } | Exp::Jvp { .. }));
            found
        };
        if !whole(id) && !differentiates(&fun.body) {
            continue;
        }
        let shapes = shapes(program, &fun.params, &fun.body);
        let mut body = std::mem::take(&mut program.funs[id].body);
        Keep { program, shapes }.body(&mut body, whole(id));
        program.funs[id].body = body;
    }
}

struct Keep<'p> {
    program: &'p mut Program,
    shapes: Shapes,
}

impl Keep<'_> {
    /// `inside`: the body is differentiated.
    fn body(&mut self, body: &mut Body, inside: bool) {
        let mut out = Vec::with_capacity(body.stms.len());
        for mut stm in std::mem::take(&mut body.stms) {
            let inner = inside || matches!(stm.exp, Exp::Vjp { .. } | Exp::Jvp { .. });
            for scope in stm.exp.bodies_mut() {
                self.body(scope.body, inner);
            }
            let origin = Origin { rule: None, ..self.program.vars[stm.pat[0]].origin.clone() };
            let mut rows = Vec::new();
            if inside {
                self.before(&stm.exp, &origin, &mut out);
                self.shapes(&stm.exp, &origin, &mut out);
                rows = self.rows(&mut stm, &origin);
            }
            out.push(stm);
            out.extend(rows);
        }
        body.stms = out;
    }
    fn fresh(&mut self, ty: Type, hint: &str, origin: &Origin) -> Var {
        self.program.vars.push(VarInfo { ty, hint: hint.into(), origin: origin.clone() })
    }
    fn check(&mut self, check: Check, args: Vec<Atom>, origin: &Origin) -> Stm {
        Stm { pat: vec![self.fresh(Type::unit(), "holds", origin)], exp: Exp::Check(check, args) }
    }
    /// The sizes of an array.
    fn sizes(&mut self, array: Atom, origin: &Origin, out: &mut Vec<Stm>) -> Vec<Atom> {
        let rank = self.program.atom_type(array).rank();
        let size = |d| {
            let n = self.fresh(Type::I64, "n", origin);
            out.push(Stm { pat: vec![n], exp: Exp::Size(array, d) });
            n.into()
        };
        (0..rank).map(size).collect()
    }

    /// The check of an operation, and what it needs.
    fn before(&mut self, exp: &Exp, origin: &Origin, out: &mut Vec<Stm>) {
        let Some((check, parts)) = asked(exp, |a| self.program.atom_type(a).rank()) else { return };
        let is_size = |part: &Part| matches!(part, Part::Operand(Atom::Const(c)) if c.as_i64() >= 0);
        let holds = match check {
            Check::Prim(_) => is_cheap_and_safe(exp),
            Check::Sizes => parts.iter().all(is_size),
            _ => false,
        };
        if holds {
            return;
        }
        let mut shape = Vec::new();
        let mut args = Vec::new();
        for part in parts {
            args.push(match part {
                Part::Operand(a) => a,
                Part::Size(array, d) => {
                    if shape.is_empty() {
                        shape = self.sizes(array, origin, out);
                    }
                    shape[d]
                }
            });
        }
        let check = self.check(check, args, origin);
        out.push(check);
    }

    /// The checks of the shapes of what is put into an array.
    fn shapes(&mut self, exp: &Exp, origin: &Origin, out: &mut Vec<Stm>) {
        match exp {
            Exp::Update(a, ix, value) => {
                self.same_shape(Shaped::Part, (*a, ix.len()), (*value, 0), &[], origin, out);
            }
            Exp::UpdateSlice(a, s, value) => {
                let rank = self.program.atom_type(*value).rank();
                let (mut left, right) = (self.sizes(*a, origin, out), self.sizes(*value, origin, out));
                left[0] = s.len;
                let check = self.check(Check::Shapes(Shaped::Slice, rank), [left, right].concat(), origin);
                out.push(check);
            }
            Exp::ArrayLit(_, items) => {
                for item in items.iter().skip(1) {
                    self.same_shape(Shaped::Row, (items[0], 0), (*item, 0), &[], origin, out);
                }
            }
            Exp::Concat(arrays) => {
                for a in arrays.iter().skip(1) {
                    let some = [arrays[0], *a];
                    self.same_shape(Shaped::Joined, (arrays[0], 1), (*a, 1), &some, origin, out);
                }
            }
            Exp::Soac(Soac::Scatter { dst, values, .. }) => {
                let some = [*dst, *values];
                self.same_shape(Shaped::Scattered, (*dst, 1), (*values, 1), &some, origin, out);
            }
            _ => {}
        }
    }
    /// That two arrays agree in their dimensions from some number on, if each of `some` has elements.
    fn same_shape(
        &mut self,
        of: Shaped,
        (a, from): (Atom, usize),
        (b, first): (Atom, usize),
        some: &[Atom],
        origin: &Origin,
        out: &mut Vec<Stm>,
    ) {
        let name =
            |a: Atom, from: usize| a.var().map_or(&[][..], |v| self.shapes.of(v).get(from..).unwrap_or(&[]));
        if name(a, from) == name(b, first) {
            return;
        }
        let (left, right) = (self.sizes(a, origin, out), self.sizes(b, origin, out));
        let args = [&left[from..], &right[first..]].concat();
        let check = self.check(Check::Shapes(of, left.len() - from), args, origin);
        let mut condition: Option<Atom> = None;
        for a in some {
            let n = self.sizes(*a, origin, out)[0];
            let prim = Prim::Op(Op::Lt, Scalar::I64);
            let here = self.bind(Exp::Prim(prim, vec![Atom::i64(0), n]), Type::BOOL, origin, out);
            condition = Some(match condition {
                None => here,
                Some(other) => {
                    let both = Exp::Prim(Prim::Op(Op::And, Scalar::Bool), vec![other, here]);
                    self.bind(both, Type::BOOL, origin, out)
                }
            });
        }
        let Some(condition) = condition else { return out.push(check) };
        let then = Body { result: vec![check.pat[0].into()], stms: vec![check] };
        let mut stms = Vec::new();
        let unit = self.bind(Exp::Tuple(Vec::new()), Type::unit(), origin, &mut stms);
        let otherwise = Body { stms, result: vec![unit] };
        self.bind(Exp::If(condition, then, otherwise), Type::unit(), origin, out);
    }
    fn bind(&mut self, exp: Exp, ty: Type, origin: &Origin, out: &mut Vec<Stm>) -> Atom {
        let v = self.fresh(ty, "holds", origin);
        out.push(Stm { pat: vec![v], exp });
        v.into()
    }

    /// The rows that a map makes must have one shape. Where that is not known, the map returns their sizes as well.
    fn rows(&mut self, stm: &mut Stm, origin: &Origin) -> Vec<Stm> {
        let Exp::Soac(Soac::Map { lam: Lam { params: _, body }, .. }) = &mut stm.exp else {
            return Vec::new();
        };
        let mut out = Vec::new();
        for k in 0..body.result.len() {
            let (v, row) = (stm.pat[k], body.result[k]);
            let rank = self.program.atom_type(row).rank();
            let dims = self.shapes.of(v);
            if (1..=rank).all(|d| dims.get(d) != Some(&Dim::Size(v, d))) {
                continue;
            }
            let mut columns = Vec::new();
            for d in 0..rank {
                let n = self.fresh(Type::I64, "n", origin);
                let column = self.fresh(Type::array(Type::I64), "sizes", origin);
                body.stms.push(Stm { pat: vec![n], exp: Exp::Size(row, d) });
                body.result.push(n.into());
                stm.pat.push(column);
                columns.push(column.into());
            }
            out.push(self.check(Check::Rows, columns, origin));
        }
        out
    }
}
