//! Consumption: a variable must not be used after `x with [..] = v` has consumed it.
//!
//! Values are never shared in a way that a program can see, so this is a courtesy to programs that are to run in
//! Futhark too. Only the variable itself is followed, not its other names, and function values are taken on their own.

use crate::typed::*;
use pullback_base::index::IdMap;
use pullback_base::{Code, Diagnostic, Span};

struct Walk<'p> {
    program: &'p Program,
    consumed: IdMap<VarId, Span>,
    diagnostics: &'p mut Vec<Diagnostic>,
}

/// Reports uses of consumed variables in a finished function.
pub(crate) fn check(f: &Function, program: &Program, diagnostics: &mut Vec<Diagnostic>) {
    Walk { program, consumed: IdMap::new(), diagnostics }.exp(&f.body);
}

impl Walk<'_> {
    fn exp(&mut self, e: &Exp) {
        stacker::maybe_grow(256 * 1024, 4 * 1024 * 1024, || self.here(e));
    }

    fn used(&mut self, v: VarId, span: Span) {
        if let Some(place) = self.consumed.get(&v).copied() {
            let name = self.program.vars.get(v).map_or(String::new(), |v| v.name.to_string());
            let message = format!("{name} is used after an in-place update has consumed it");
            self.diagnostics.push(
                Diagnostic::error(Code::Uniqueness, span, message)
                    .label(place, "consumed here")
                    .hint(format!("use the updated array, or update a copy: `copy {name} with ..`")),
            );
        }
    }

    /// Runs alternatives from the same state; afterwards what any of them consumed is consumed.
    fn branches(&mut self, es: &[&Exp]) {
        let before = self.consumed.clone();
        let mut all = before.clone();
        for e in es {
            self.consumed.clone_from(&before);
            self.exp(e);
            all.append(&mut self.consumed);
        }
        self.consumed = all;
    }

    /// A body that runs at another time: its own consumption is not seen outside.
    fn apart(&mut self, e: &Exp) {
        let before = self.consumed.clone();
        self.exp(e);
        self.consumed = before;
    }

    fn dims(&mut self, dims: &[DimIndex]) {
        for d in dims {
            match d {
                DimIndex::At(e) => self.exp(e),
                DimIndex::Slice(a, b, c) => [a, b, c].into_iter().flatten().for_each(|e| self.exp(e)),
            }
        }
    }

    fn here(&mut self, e: &Exp) {
        match &e.kind {
            ExpKind::Literal(_) | ExpKind::Def(..) | ExpKind::Intrinsic(..) | ExpKind::Error => {}
            ExpKind::Var(v, _) => self.used(*v, e.span),
            ExpKind::Tuple(es) | ExpKind::Array(es) | ExpKind::Construct(_, _, es) => {
                es.iter().for_each(|e| self.exp(e));
            }
            ExpKind::Record(fs) => fs.iter().for_each(|(_, e)| self.exp(e)),
            ExpKind::Project(x, _) | ExpKind::Coerce(x, _) | ExpKind::Attributed(_, x) => self.exp(x),
            ExpKind::RecordUpdate(x, _, value) => {
                self.exp(x);
                self.exp(value);
            }
            ExpKind::Apply(f, arguments) => {
                self.exp(f);
                arguments.iter().for_each(|e| self.exp(e));
            }
            ExpKind::Lambda(_, body) => self.apart(body),
            ExpKind::Let(bindings, body) => {
                for b in bindings {
                    match b {
                        Binding::Value(l) => self.exp(&l.value),
                        Binding::Fun(l) => self.apart(&l.fun.body),
                    }
                }
                self.exp(body);
            }
            ExpKind::If(c, a, b) => {
                self.exp(c);
                self.branches(&[a, b]);
            }
            ExpKind::Match(x, arms) => {
                self.exp(x);
                let bodies: Vec<&Exp> = arms.iter().map(|(_, e)| e).collect();
                self.branches(&bodies);
            }
            ExpKind::Loop(l) => {
                self.exp(&l.initial);
                match &l.form {
                    LoopForm::For(_, e) | LoopForm::ForIn(_, e) => self.exp(e),
                    LoopForm::While(e) => self.apart(e),
                }
                self.exp(&l.body);
            }
            ExpKind::Index(x, dims) => {
                self.exp(x);
                self.dims(dims);
            }
            ExpKind::With(x, dims, value) => {
                self.exp(x);
                self.dims(dims);
                self.exp(value);
                if let ExpKind::Var(v, _) = x.kind {
                    self.consumed.insert(v, e.span);
                }
            }
            ExpKind::Range(r) => {
                self.exp(&r.start);
                r.second.iter().for_each(|e| self.exp(e));
                self.exp(&r.end);
            }
            ExpKind::Assert(c, x) => {
                self.exp(c);
                self.exp(x);
            }
        }
    }
}
