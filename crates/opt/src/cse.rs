//! Common subexpressions: an expression equal to one computed before, whose variables are in scope, is replaced by it.
//!
//! Equal means: the same construct with the same operands (constants by their bits), types and attributes, and bodies
//! that are the same but for the names bound in them. Anything that does not touch an outer accumulator is
//! a candidate: a second `assert` of the same condition is redundant, a second call with the same arguments gives the same
//! results or does not end either. Sizes are equal if they have the same name (`pullback_core::shapes`). Inside a `#[recompute]` body nothing from outside is reused, for the mark asks
//! exactly for that; so recomputing code keeps its cost in memory as long as it keeps its mark.

use crate::Ctx;
use crate::effects::accumulates;
use pullback_base::index::{IdMap, Index};
use pullback_core::metrics::construct;
use pullback_core::rename::{Subst, substitute_atom};
use pullback_core::shapes::{Dim, Shapes, shapes};
use pullback_core::{Atom, Body, Exp, LoopForm, Mark, Program, Soac, Stm, Var, View};
use pullback_prim::ScalarValue;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Runs the pass. Cost: the size of the program times its nesting depth (times a logarithm).
pub fn cse(program: &mut Program, _ctx: &Ctx) {
    let ids: Vec<_> = program.funs.ids().collect();
    for id in ids {
        let shapes = shapes(program, &program.funs[id].params, &program.funs[id].body);
        let mut body = std::mem::take(&mut program.funs[id].body);
        let mut pass = Cse { program, shapes, subst: Subst::new(), table: BTreeMap::new() };
        pass.body(&mut body);
        program.funs[id].body = body;
    }
}

struct Cse<'p> {
    program: &'p Program,
    shapes: Shapes,
    subst: Subst,
    /// Keys of expressions in scope and the variables that hold their results.
    table: BTreeMap<String, Vec<Var>>,
}

impl Cse<'_> {
    fn body(&mut self, body: &mut Body) {
        let mut added = Vec::new();
        let mut out = Vec::with_capacity(body.stms.len());
        for Stm { pat, mut exp } in std::mem::take(&mut body.stms) {
            exp.map_atoms(|a| substitute_atom(a, &self.subst));
            let outer = match &exp {
                Exp::Marked(Mark::Recompute, _) => Some(std::mem::take(&mut self.table)),
                _ => None,
            };
            for scope in exp.bodies_mut() {
                self.body(scope.body);
            }
            if let Some(outer) = outer {
                self.table = outer;
            }
            if accumulates(self.program, &exp) || matches!(exp, Exp::Atom(_)) {
                out.push(Stm { pat, exp });
                continue;
            }
            let key = match self.size(&pat, &exp) {
                Some(Dim::Const(n)) => {
                    self.subst.extend(pat.iter().map(|v| (*v, Atom::i64(n))));
                    continue;
                }
                Some(size) => format!("size {size:?}"),
                None => key(self.program, &exp),
            };
            if let Some(known) = self.table.get(&key) {
                self.subst.extend(pat.iter().zip(known).map(|(v, w)| (*v, Atom::Var(*w))));
                continue;
            }
            self.table.insert(key.clone(), pat.clone());
            added.push(key);
            out.push(Stm { pat, exp });
        }
        body.stms = out;
        for a in &mut body.result {
            *a = substitute_atom(*a, &self.subst);
        }
        for key in added {
            self.table.remove(&key);
        }
    }
    /// The name of the size that the expression asks for, if it is one.
    fn size(&self, pat: &[Var], exp: &Exp) -> Option<Dim> {
        matches!(exp, Exp::Size(..)).then(|| self.shapes.name(pat[0].into()))
    }
}

fn key(program: &Program, exp: &Exp) -> String {
    let mut out = String::new();
    Key { program, bound: IdMap::new(), out: &mut out }.exp(exp);
    out
}

struct Key<'a> {
    program: &'a Program,
    /// Variables bound inside, numbered in the order of binding.
    bound: IdMap<Var, usize>,
    out: &'a mut String,
}

impl Key<'_> {
    fn put(&mut self, args: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = self.out.write_fmt(args);
    }
    fn atom(&mut self, a: Atom) {
        match a {
            Atom::Var(v) => match self.bound.get(&v).copied() {
                Some(k) => self.put(format_args!(" %{k}")),
                None => self.put(format_args!(" v{}", v.index())),
            },
            Atom::Const(ScalarValue::F64(x)) => self.put(format_args!(" f64:{}", x.to_bits())),
            Atom::Const(ScalarValue::F32(x)) => self.put(format_args!(" f32:{}", x.to_bits())),
            Atom::Const(c) => self.put(format_args!(" {c}")),
        }
    }
    fn bind(&mut self, v: Var) {
        let next = self.bound.len();
        self.bound.insert(v, next);
        let ty = &self.program.vars[v].ty;
        self.put(format_args!(" {ty:?}"));
    }
    fn exp(&mut self, exp: &Exp) {
        self.put(format_args!("{}{}", construct(exp), detail(exp)));
        exp.for_each_atom(|a| self.atom(a));
        for scope in exp.bodies() {
            self.put(format_args!(" ("));
            scope.binds.iter().for_each(|v| self.bind(*v));
            self.put(format_args!(") {{"));
            for stm in &scope.body.stms {
                self.put(format_args!(" let"));
                // Only types of binders matter, and these follow from the expression, except where it writes them.
                stm.pat.iter().for_each(|v| self.bind(*v));
                self.put(format_args!(" = "));
                self.exp(&stm.exp);
                self.put(format_args!(";"));
            }
            self.put(format_args!(" in"));
            scope.body.result.iter().for_each(|a| self.atom(*a));
            self.put(format_args!(" }}"));
        }
    }
}

/// What tells two expressions of the same construct with the same operands apart: static parts, and the lengths of
/// operand lists that follow one another.
fn detail(exp: &Exp) -> String {
    match exp {
        Exp::Proj(_, i) | Exp::Size(_, i) => format!(" #{i}"),
        Exp::Inject(t, k, _) => format!(" #{k} {t:?}"),
        Exp::ArrayLit(t, _) => format!(" {t:?}"),
        Exp::Rearrange(perm, _) => format!(" {perm:?}"),
        Exp::Reshape { shape, from, array: _ } => format!(" #{} #{from}", shape.len()),
        Exp::Call(f, _) => format!(" {f:?}"),
        Exp::Loop(l) => {
            let form = match &l.form {
                LoopForm::For { .. } => "for",
                LoopForm::While(_) => "while",
            };
            format!(" {form} #{} #{} {:?}", l.params.len(), l.collect, l.attrs)
        }
        Exp::Soac(soac) => match soac {
            Soac::Map { arrays, .. } => format!(" #{}", arrays.len()),
            Soac::Reduce { neutral, commutative, .. } => format!(" #{} {commutative}", neutral.len()),
            Soac::Fused { form, neutral, arrays, .. } => {
                format!(" {form:?} #{} #{}", neutral.len(), arrays.len())
            }
            Soac::Scan { neutral, .. } | Soac::Hist { neutral, .. } => format!(" #{}", neutral.len()),
            Soac::Scatter { .. } => String::new(),
        },
        Exp::AccView(_, view) => match view {
            View::Index(ix) => format!(" index #{}", ix.len()),
            View::Slice(_) => " slice".to_string(),
            View::Proj(i) => format!(" proj #{i}"),
            View::Rearrange(perm) => format!(" rearrange {perm:?}"),
            View::Reshape { shape, from } => format!(" reshape #{} #{from}", shape.len()),
            View::Reverse => " reverse".to_string(),
            View::Rotate(_) => " rotate".to_string(),
        },
        Exp::Vjp { args, seeds, algorithm, .. } | Exp::Jvp { args, seeds, algorithm, .. } => {
            format!(" #{} {} {algorithm:?}", args.len(), seeds.is_some())
        }
        Exp::Marked(mark, _) => format!(" {mark:?}"),
        Exp::Assert(_, message, _) => format!(" {message:?}"),
        Exp::Atom(_)
        | Exp::Prim(..)
        | Exp::Tuple(_)
        | Exp::Match(..)
        | Exp::If(..)
        | Exp::Index(..)
        | Exp::Slice(..)
        | Exp::Update(..)
        | Exp::UpdateSlice(..)
        | Exp::Gather(..)
        | Exp::Iota(_)
        | Exp::Replicate(..)
        | Exp::Concat(_)
        | Exp::Reverse(_)
        | Exp::Rotate(..)
        | Exp::WithAcc(..)
        | Exp::AccAdd(..)
        | Exp::Plus(..)
        | Exp::Custom { .. }
        | Exp::StopGradient(_)
        | Exp::Par(_) => String::new(),
    }
}
