//! What a well-formed lambda program is. This header is the specification; [`check`] decides it.
//!
//! 1. **Binding.** Every variable is bound at most once in the whole program: as a parameter of a function, by `let`,
//!    by a lambda (ordinary or linear), as a field of a match arm, as the state or the counter of a loop. It is used
//!    only inside what its binder binds it in: the body of the function, lambda, `let` or arm; condition and body for
//!    the state of a loop, the body for its counter.
//! 2. **Types.** Every node carries the type that the rules of [`crate::typing`] give it, all the rules hold, and every
//!    named type mentioned is in the type table and has at least one alternative.
//! 3. **Functions.** Names are unique. Every function has a body of its declared type. An entry point has data for
//!    parameters and result (no functions, computations, maps, mutable arrays) and one signature item per parameter.
//! 4. **Linearity.** The body of a linear lambda is linear in its variable: built from the variable, zero, plus,
//!    tuples and sparse values of linear parts, components, products with terms that do not mention it, negation,
//!    linear functions and staged calls applied to linear parts, `let`, `if` and `match` on other things,
//!    and functions with linear results.
//! 5. **Depth.** Nesting other than in chains of `let` is at most [`crate::MAX_DEPTH`].

use crate::term::{Exp, LoopForm, Program, Soac, Term, Var};
use crate::types::{Type, TypeId};
use crate::typing::type_of;
use pullback_base::index::{IdSet, Index};
use pullback_base::{Code, Diagnostic, Span};
use pullback_prim::{Op, Prim};

/// Checks a program against the specification in the header of this module.
///
/// # Errors
/// The first violations, at most twenty, as bugs of the pass that made the program; nesting beyond the limit as an
/// error of the program.
pub fn check(program: &Program) -> Result<(), Vec<Diagnostic>> {
    let n = program.vars.len();
    let mut c = Checker { program, bound: vec![false; n], scope: vec![false; n], errors: Vec::new() };
    c.types();
    c.functions();
    if c.errors.is_empty() { Ok(()) } else { Err(c.errors) }
}

/// Violations beyond this many are not reported.
const MAX_ERRORS: usize = 20;

struct Checker<'p> {
    program: &'p Program,
    bound: Vec<bool>,
    scope: Vec<bool>,
    errors: Vec<Diagnostic>,
}

impl Checker<'_> {
    fn error(&mut self, span: Option<Span>, message: impl Into<String>) {
        if self.errors.len() < MAX_ERRORS {
            let mut d = Diagnostic::global(Code::Internal, format!("malformed lambda: {}", message.into()));
            d.span = span;
            self.errors.push(d);
        }
    }
    fn types(&mut self) {
        for def in self.program.types.iter() {
            if def.variants.is_empty() {
                self.error(None, format!("type {} has no alternatives", def.name));
            }
            for t in def.variants.iter().flat_map(|v| &v.fields) {
                self.known_type(t, None);
            }
        }
        for info in self.program.vars.iter() {
            self.known_type(&info.ty, info.span);
        }
    }
    fn known_type(&mut self, ty: &Type, span: Option<Span>) {
        match ty {
            Type::Scalar(_) => {}
            Type::Tuple(ts) | Type::SparseTuple(ts) | Type::SparseSum(ts) => {
                ts.iter().for_each(|t| self.known_type(t, span));
            }
            Type::Sum(vs) => vs.iter().flat_map(|v| &v.fields).for_each(|t| self.known_type(t, span)),
            Type::Named(id) => {
                if self.program.types.get(*id).is_none() {
                    self.error(span, format!("unknown type ${}", TypeId::index(*id)));
                }
            }
            Type::Array(t)
            | Type::Bag(t)
            | Type::Staged(t)
            | Type::Map(t)
            | Type::Io(t)
            | Type::MutArray(t) => {
                self.known_type(t, span);
            }
            Type::Fun(a, b) | Type::Linear(a, b) => {
                self.known_type(a, span);
                self.known_type(b, span);
            }
            Type::Evm(env, t) => {
                env.iter().for_each(|t| self.known_type(t, span));
                self.known_type(t, span);
            }
        }
    }
    fn functions(&mut self) {
        let mut names = std::collections::BTreeSet::new();
        for fun in self.program.funs.iter() {
            if !names.insert(&fun.name) {
                self.error(fun.span, format!("two functions are called {}", fun.name));
            }
            if let Some(entry) = &fun.entry {
                let params = fun.params.iter().filter_map(|v| self.program.vars.get(*v)).map(|info| &info.ty);
                let data = params.chain([&fun.result]).all(|t| self.program.is_data(t));
                if !data || entry.params.len() != fun.params.len() {
                    self.error(fun.span, format!("entry point {} has no proper signature", fun.name));
                }
            }
            let Some(body) = &fun.body else {
                self.error(fun.span, format!("{} has no body", fun.name));
                continue;
            };
            if *body.ty() != fun.result {
                self.error(fun.span, format!("{} returns {}, declared {}", fun.name, body.ty(), fun.result));
            }
            fun.params.iter().for_each(|&v| self.bind(v, fun.span));
            self.term(body, 0);
            fun.params.iter().for_each(|&v| self.leave(v));
        }
    }
    fn bind(&mut self, v: Var, span: Option<Span>) {
        match self.bound.get_mut(v.index()) {
            None => self.error(span, "unknown variable"),
            Some(true) => {
                let hint = self.program.vars[v].hint.clone();
                self.error(span, format!("variable {hint} is bound twice"));
            }
            Some(bound) => *bound = true,
        }
        if let Some(scope) = self.scope.get_mut(v.index()) {
            *scope = true;
        }
    }
    fn leave(&mut self, v: Var) {
        if let Some(scope) = self.scope.get_mut(v.index()) {
            *scope = false;
        }
    }
    fn term(&mut self, t: &Term, depth: usize) {
        if depth > crate::MAX_DEPTH {
            if !self.errors.iter().any(|d| d.code == Code::TooDeep) {
                let mut d = Diagnostic::global(Code::TooDeep, "the program is nested too deeply");
                d.span = t.span();
                self.errors.push(d);
            }
            return;
        }
        let mut t = t;
        let mut lets = Vec::new();
        while let Exp::Let(v, value, body) = t.exp() {
            self.term(value, depth + 1);
            self.bind(*v, t.span());
            self.typed(t);
            lets.push(*v);
            t = body;
        }
        crate::with_stack(|| self.node(t, depth + 1));
        lets.into_iter().for_each(|v| self.leave(v));
    }
    /// Rule 2 for one node.
    fn typed(&mut self, t: &Term) {
        let binders_known = {
            let mut known = true;
            binders(t.exp(), &mut |v| known &= self.program.vars.get(v).is_some());
            known
        };
        if !binders_known {
            return self.error(t.span(), "unknown variable");
        }
        match type_of(self.program, t.exp()) {
            Ok(ty) if ty == *t.ty() => {}
            Ok(ty) => self.error(t.span(), format!("a term of type {ty} is recorded as {}", t.ty())),
            Err(message) => self.error(t.span(), message),
        }
        match t.exp() {
            Exp::Inject(ty, ..)
            | Exp::ArrayLit(ty, _)
            | Exp::Zero(ty)
            | Exp::MapEmpty(ty)
            | Exp::SparseInject(ty, ..) => self.known_type(ty, t.span()),
            _ => {}
        }
    }
    fn node(&mut self, t: &Term, depth: usize) {
        self.typed(t);
        match t.exp() {
            Exp::Var(v) => {
                if !self.scope.get(v.index()).copied().unwrap_or(false) {
                    let hint = self.program.vars.get(*v).map(|i| i.hint.to_string()).unwrap_or_default();
                    self.error(t.span(), format!("variable {hint} is used outside its scope"));
                }
            }
            Exp::Lam(v, body) | Exp::LinearLam(v, body) => {
                self.bind(*v, t.span());
                self.term(body, depth);
                self.leave(*v);
                if matches!(t.exp(), Exp::LinearLam(..)) && !is_linear(body, *v) {
                    self.error(t.span(), "the body of a linear function is not linear");
                }
            }
            Exp::Match(x, arms) => {
                self.term(x, depth);
                for arm in arms {
                    arm.params.iter().for_each(|&v| self.bind(v, t.span()));
                    self.term(&arm.body, depth);
                    arm.params.iter().for_each(|&v| self.leave(v));
                }
            }
            Exp::Loop(l) => {
                self.term(&l.init, depth);
                let counter = match &l.form {
                    LoopForm::For(i, n) => {
                        self.term(n, depth);
                        self.bind(*i, t.span());
                        Some(*i)
                    }
                    LoopForm::While(_) => None,
                };
                self.bind(l.state, t.span());
                if let LoopForm::While(c) = &l.form {
                    self.term(c, depth);
                }
                self.term(&l.body, depth);
                self.leave(l.state);
                counter.into_iter().for_each(|i| self.leave(i));
            }
            other => other.children(&mut |child| self.term(child, depth)),
        }
    }
}

/// Calls `f` with every variable that the node itself binds.
pub fn binders(exp: &Exp, f: &mut dyn FnMut(Var)) {
    match exp {
        Exp::Let(v, ..) | Exp::Lam(v, _) | Exp::LinearLam(v, _) => f(*v),
        Exp::Match(_, arms) => arms.iter().flat_map(|a| &a.params).for_each(|&v| f(v)),
        Exp::Loop(l) => {
            f(l.state);
            if let LoopForm::For(i, _) = l.form {
                f(i);
            }
        }
        _ => {}
    }
}

/// How a term depends on the variables it must be linear in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Dependence {
    /// It is zero, whatever they are.
    Zero,
    /// It does not mention them.
    Constant,
    /// It is linear in them.
    Linear,
    /// None of these, as far as rule 4 can tell.
    Other,
}

impl Dependence {
    /// Of a value made of parts of both kinds, and of a choice between both.
    fn join(self, other: Dependence) -> Dependence {
        match (self, other) {
            (Dependence::Zero, d) | (d, Dependence::Zero) => d,
            (a, b) if a == b => a,
            _ => Dependence::Other,
        }
    }
    fn is_constant(self) -> bool {
        matches!(self, Dependence::Zero | Dependence::Constant)
    }
}

/// Whether a term is linear in a variable by rule 4.
fn is_linear(body: &Term, v: Var) -> bool {
    matches!(dependence(body, &mut IdSet::from([v])), Dependence::Zero | Dependence::Linear)
}

fn dependence(t: &Term, vars: &mut IdSet<Var>) -> Dependence {
    crate::with_stack(|| dependence_of(t, vars))
}

fn dependence_of(t: &Term, vars: &mut IdSet<Var>) -> Dependence {
    use Dependence::{Constant, Linear, Other, Zero};
    match t.exp() {
        Exp::Var(v) => {
            if vars.contains(v) {
                Linear
            } else {
                Constant
            }
        }
        Exp::Zero(_) => Zero,
        Exp::Tuple(ts) => join_all(ts, vars),
        Exp::SparseTuple(ts) => match join_all(ts, vars) {
            Zero => Zero,
            d => d,
        },
        Exp::Plus(a, b) => dependence(a, vars).join(dependence(b, vars)),
        Exp::Proj(a, _)
        | Exp::SparseProj(a, _)
        | Exp::SparseInject(_, _, a)
        | Exp::SparseCast(a, _)
        | Exp::StagedCotangent(a)
        | Exp::StagedResolve(a) => dependence(a, vars),
        Exp::LinearApp(f, a) | Exp::App(f, a) => match (dependence(f, vars), dependence(a, vars)) {
            (f, a) if f.is_constant() && matches!(t.exp(), Exp::LinearApp(..)) => a,
            (Linear, a) if a.is_constant() && matches!(t.exp(), Exp::App(..)) => Linear,
            (f, a) if f.is_constant() && a.is_constant() => Constant,
            _ => Other,
        },
        Exp::StagedCall(i, f, a) => {
            if dependence(i, vars).is_constant() && dependence(f, vars).is_constant() {
                dependence(a, vars)
            } else {
                Other
            }
        }
        Exp::Prim(prim, ts) => {
            let args: Vec<Dependence> = ts.iter().map(|t| dependence(t, vars)).collect();
            match (prim, args.as_slice()) {
                (_, args) if args.iter().all(|d| *d == Constant) => Constant,
                (Prim::Op(Op::Mul, s), [a, b]) if s.is_float() => match (a, b) {
                    (Zero, d) | (d, Zero) if *d != Other => Zero,
                    (Constant, d) | (d, Constant) => *d,
                    _ => Other,
                },
                (Prim::Op(Op::Div, s), [d, Constant]) if s.is_float() => *d,
                (Prim::Op(Op::Neg, s), [d]) if s.is_float() => *d,
                (Prim::Op(Op::Add | Op::Sub, s), [a, b]) if s.is_float() => a.join(*b),
                (Prim::Convert(a, b), [d]) if a.is_float() && b.is_float() => *d,
                (_, args) if args.iter().all(|d| d.is_constant()) => Constant,
                _ => Other,
            }
        }
        Exp::Let(x, a, b) => match dependence(a, vars) {
            Other => Other,
            Linear => {
                vars.insert(*x);
                dependence(b, vars)
            }
            Zero | Constant => dependence(b, vars),
        },
        Exp::If(c, a, b) => {
            if dependence(c, vars).is_constant() {
                dependence(a, vars).join(dependence(b, vars))
            } else {
                Other
            }
        }
        Exp::Match(x, arms) => {
            if !dependence(x, vars).is_constant() {
                return Other;
            }
            arms.iter().fold(Zero, |d, arm| d.join(dependence(&arm.body, vars)))
        }
        Exp::Lam(_, b) => dependence(b, vars),
        Exp::Index(a, ix) if ix.iter().all(|i| dependence(i, vars).is_constant()) => dependence(a, vars),
        Exp::Replicate(n, v) if dependence(n, vars).is_constant() => dependence(v, vars),
        Exp::Soac(Soac::Map { f, arrays }) => map_dependence(f, arrays, vars),
        other => {
            let mut all = Constant;
            other.children(&mut |c| {
                if !dependence(c, vars).is_constant() {
                    all = Other;
                }
            });
            all
        }
    }
}

fn join_all(ts: &[Term], vars: &mut IdSet<Var>) -> Dependence {
    ts.iter().fold(Dependence::Zero, |d, t| d.join(dependence(t, vars)))
}

/// A map is linear if its function is, in the parameters for the arrays that are.
fn map_dependence(f: &Term, arrays: &[Term], vars: &mut IdSet<Var>) -> Dependence {
    let mut body = f;
    for a in arrays {
        let d = dependence(a, vars);
        match (body.exp(), d) {
            (Exp::Lam(x, b), Dependence::Linear) => {
                vars.insert(*x);
                body = b;
            }
            (Exp::Lam(_, b), Dependence::Zero | Dependence::Constant) => body = b,
            _ if d.is_constant() && dependence(body, vars).is_constant() => {}
            _ => return Dependence::Other,
        }
    }
    dependence(body, vars)
}
