//! Calls and applications of known functions replaced by their bodies.
//!
//! What is left of a program without recursion and without functions in data has no functions as values and no calls: algorithms that do not take
//! them can be used on programs that use them to say things shortly.

use crate::term::{Arm, Exp, FunId, Loop, LoopForm, Program, Term, Var};
use crate::types::Type;
use crate::{Builder, with_stack};
use pullback_base::index::{IdMap, IdSet};
use pullback_prim::{Op, Scalar, ScalarValue};

/// What becomes of loops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loops {
    /// They stay.
    Kept,
    /// Functions that call themselves: one per loop, with the state, the counter and its bound, and what the loop uses of its surroundings. A call
    /// per iteration is open at the end.
    Functions,
}

/// Adds a copy of `f` in which calls of functions that do not call themselves are their bodies, and applications of lambdas are `let`s. Arguments
/// are evaluated once, in order; functions are put in the place of the variables that stand for them.
///
/// `None`: more than `limit` terms would have to be copied; the program is as before then. Chains of functions each of which calls the next one
/// twice have copies of exponential size. Cost: what is copied, times the variables in scope.
pub fn inline(program: &mut Program, f: FunId, loops: Loops, limit: usize) -> Option<FunId> {
    let before = program.clone();
    let recursive = recursive(program, f);
    let fun = program.funs[f].clone();
    let mut inline = Inline { b: Builder::new(program), recursive, loops, pending: Vec::new(), left: limit };
    let hints: Vec<(String, Type)> = fun
        .params
        .iter()
        .map(|p| (inline.b.program.vars[*p].hint.to_string(), inline.b.program.vars[*p].ty.clone()))
        .collect();
    let params: Vec<(&str, Type)> = hints.iter().map(|(hint, ty)| (hint.as_str(), ty.clone())).collect();
    let name = free_name(inline.b.program, &format!("{}_inlined", fun.name));
    let new = inline.b.declare(&name, &params, fun.result.clone(), None);
    inline.b.program.funs[new].span = fun.span;
    let news = inline.b.params(new).into_iter().map(Value::Var);
    let env: Env = fun.params.iter().copied().zip(news).collect();
    if let Some(body) = &fun.body {
        let body = inline.scope(body, &env);
        inline.b.define(new, body);
    }
    if inline.left == 0 {
        *program = before;
        return None;
    }
    Some(new)
}

/// What a variable of the source stands for.
#[derive(Clone)]
enum Value {
    Var(Var),
    /// A lambda with what its variables stand for.
    Lambda(Var, Term, std::rc::Rc<Env>),
}

type Env = IdMap<Var, Value>;

struct Inline<'p> {
    b: Builder<'p>,
    /// Functions that are not inlined.
    recursive: IdSet<FunId>,
    loops: Loops,
    /// `let`s around the term that is being made, outermost first.
    pending: Vec<(Var, Term)>,
    /// So many terms may still be copied. At zero what is being made is given up.
    left: usize,
}

impl Inline<'_> {
    /// The term, with the `let`s that it needs.
    fn scope(&mut self, t: &Term, env: &Env) -> Term {
        let outer = std::mem::take(&mut self.pending);
        let mut term = self.term(t, env);
        for (v, value) in std::mem::replace(&mut self.pending, outer).into_iter().rev() {
            term = self.b.term(Exp::Let(v, value, term));
        }
        term
    }
    fn term(&mut self, t: &Term, env: &Env) -> Term {
        match with_stack(|| self.value(t, env)) {
            Ok(value) => self.written(value),
            Err(term) => term,
        }
    }
    fn written(&mut self, value: Value) -> Term {
        match value {
            Value::Var(v) => self.b.var(v),
            Value::Lambda(x, body, env) => {
                let mut env = Env::clone(&env);
                let new = self.fresh(x, &mut env);
                let body = self.scope(&body, &env);
                self.b.term(Exp::Lam(new, body))
            }
        }
    }
    /// A copy of a variable.
    fn fresh(&mut self, x: Var, env: &mut Env) -> Var {
        let info = self.b.program.vars[x].clone();
        let new = self.b.fresh(info.ty, info.hint.as_str());
        self.b.program.vars[new].span = info.span;
        env.insert(x, Value::Var(new));
        new
    }
    /// Binds a variable to what a term stands for, or else by a `let`.
    fn bind(&mut self, x: Var, t: &Term, of: &Env, env: &mut Env) {
        let value = with_stack(|| self.value(t, of));
        self.bound(x, value, env);
    }
    fn bound(&mut self, x: Var, value: Result<Value, Term>, env: &mut Env) {
        match value {
            Ok(value) => {
                env.insert(x, value);
            }
            Err(term) => {
                let new = self.fresh(x, env);
                self.pending.push((new, term));
            }
        }
    }
    /// What a term stands for, or the term.
    fn value(&mut self, t: &Term, env: &Env) -> Result<Value, Term> {
        // What has no place of its own, as the functions of the prelude, has that of its call.
        let outer = self.b.span;
        self.b.span = t.span().or(outer);
        let out = self.value_of(t, env);
        self.b.span = outer;
        out
    }
    fn value_of(&mut self, t: &Term, env: &Env) -> Result<Value, Term> {
        self.left = self.left.saturating_sub(1);
        if self.left == 0 {
            // Of the right type at least.
            return Err(t.clone());
        }
        match t.exp() {
            Exp::Var(v) => env.get(v).cloned().ok_or_else(|| self.b.var(*v)),
            Exp::Lam(x, body) => Ok(Value::Lambda(*x, body.clone(), std::rc::Rc::new(env.clone()))),
            Exp::Let(..) => {
                // One scope for a chain of them, which may be long: each variable is bound once.
                let (mut inner, mut rest) = (env.clone(), t);
                while let Exp::Let(x, a, b) = rest.exp() {
                    self.left = self.left.saturating_sub(1);
                    let value = with_stack(|| self.value(a, &inner));
                    self.bound(*x, value, &mut inner);
                    rest = b;
                }
                self.value(rest, &inner)
            }
            Exp::App(f, a) => match self.value(f, env) {
                Ok(Value::Lambda(x, body, of)) => {
                    let mut inner = Env::clone(&of);
                    self.bind(x, a, env, &mut inner);
                    self.value(&body, &inner)
                }
                Ok(Value::Var(f)) => {
                    let (f, a) = (self.b.var(f), self.term(a, env));
                    Err(self.b.apply(f, [a]))
                }
                Err(f) => {
                    let a = self.term(a, env);
                    Err(self.b.apply(f, [a]))
                }
            },
            Exp::Call(f, args) if !self.recursive.contains(f) => {
                let fun = self.b.program.funs[*f].clone();
                let Some(body) = &fun.body else { return Err(self.copied(t, env)) };
                let mut inner = Env::default();
                for (p, a) in fun.params.iter().zip(args) {
                    self.bind(*p, a, env, &mut inner);
                }
                self.value(body, &inner)
            }
            _ => Err(self.copied(t, env)),
        }
    }
    /// A loop as the call of a function that calls itself.
    fn called(&mut self, state: Var, init: Term, form: LoopForm, body: &Term) -> Term {
        let (counter, bound, condition) = match form {
            LoopForm::For(i, n) => (Some(i), Some(n), None),
            LoopForm::While(c) => (None, None, Some(c)),
        };
        let mut captured = body.free_vars();
        captured.extend(condition.iter().flat_map(Term::free_vars));
        captured.sort_unstable();
        captured.dedup();
        captured.retain(|v| *v != state && Some(*v) != counter);
        let info = |s: &Self, v: Var| {
            let info = &s.b.program.vars[v];
            (info.hint.to_string(), info.ty.clone())
        };
        let mut hints = vec![info(self, state)];
        hints.extend(counter.map(|i| info(self, i)));
        hints.extend(bound.iter().map(|n| ("n".to_string(), n.ty().clone())));
        hints.extend(captured.iter().map(|v| info(self, *v)));
        let params: Vec<(&str, Type)> = hints.iter().map(|(hint, ty)| (hint.as_str(), ty.clone())).collect();
        let name = free_name(self.b.program, "loop");
        let f = self.b.declare(&name, &params, init.ty().clone(), None);
        self.recursive.insert(f);
        let params = self.b.params(f);
        let first = params.len() - captured.len();
        let renamed = [state].into_iter().chain(counter).zip(&params);
        let renamed = renamed.chain(captured.iter().copied().zip(&params[first..]));
        let env: Env = renamed.map(|(v, p)| (v, Value::Var(*p))).collect();
        let (next, condition) = (self.scope(body, &env), condition.map(|c| self.scope(&c, &env)));
        let rest = |s: &mut Self, from: usize| params[from..].iter().map(|p| s.b.var(*p)).collect::<Vec<_>>();
        let (go, again) = match (condition, &bound) {
            (None, Some(n)) => {
                let one = n.ty().scalar().map_or(ScalarValue::I64(1), Scalar::one);
                let (i, n, one) = (self.b.var(params[1]), self.b.var(params[2]), self.b.constant(one));
                let go = self.b.op2(Op::Lt, i.clone(), n);
                (go, [vec![next, self.b.op2(Op::Add, i, one)], rest(self, 2)].concat())
            }
            (condition, _) => {
                (condition.unwrap_or_else(|| self.b.unit()), [vec![next], rest(self, 1)].concat())
            }
        };
        let again = self.b.call(f, again);
        let done = self.b.var(params[0]);
        let body = self.b.if_(go, again, done);
        self.b.define(f, body);
        let mut args = vec![init];
        if let Some(n) = bound {
            let zero = n.ty().scalar().map_or(ScalarValue::I64(0), Scalar::zero);
            args.extend([self.b.constant(zero), n]);
        }
        args.extend(captured.into_iter().map(|v| self.b.var(v)));
        self.b.call(f, args)
    }
    /// The term with its parts inlined, each in a scope of its own where it may not be evaluated, or more than once.
    fn copied(&mut self, t: &Term, env: &Env) -> Term {
        let exp = match t.exp() {
            Exp::If(c, a, b) => Exp::If(self.term(c, env), self.scope(a, env), self.scope(b, env)),
            Exp::Match(x, arms) => {
                let x = self.term(x, env);
                let arms = arms.iter().map(|arm| {
                    let mut inner = env.clone();
                    let params = arm.params.iter().map(|p| self.fresh(*p, &mut inner)).collect();
                    Arm { params, body: self.scope(&arm.body, &inner) }
                });
                Exp::Match(x, arms.collect())
            }
            Exp::Loop(l) => {
                let init = self.term(&l.init, env);
                let mut inner = env.clone();
                let form = match &l.form {
                    LoopForm::For(i, n) => {
                        let n = self.term(n, env);
                        LoopForm::For(self.fresh(*i, &mut inner), n)
                    }
                    LoopForm::While(_) => LoopForm::While(init.clone()),
                };
                let state = self.fresh(l.state, &mut inner);
                let form = match &l.form {
                    LoopForm::While(c) => LoopForm::While(self.scope(c, &inner)),
                    LoopForm::For(..) => form,
                };
                let body = self.scope(&l.body, &inner);
                if self.loops == Loops::Functions {
                    return self.called(state, init, form, &body);
                }
                Exp::Loop(Loop { state, init, form, body, attrs: l.attrs.clone() })
            }
            Exp::LinearLam(x, body) => {
                let mut inner = env.clone();
                let new = self.fresh(*x, &mut inner);
                Exp::LinearLam(new, self.scope(body, &inner))
            }
            Exp::Assert { condition, message, body } => {
                let condition = self.term(condition, env);
                Exp::Assert { condition, message: message.clone(), body: self.scope(body, env) }
            }
            Exp::SameSize { left, right, message, body } => {
                let (left, right) = (self.term(left, env), self.term(right, env));
                Exp::SameSize { left, right, message: message.clone(), body: self.scope(body, env) }
            }
            Exp::Marked(mark, body) => Exp::Marked(*mark, self.scope(body, env)),
            other => {
                let mut exp = other.clone();
                exp.children_mut(&mut |child| *child = self.term(&child.clone(), env));
                exp
            }
        };
        self.b.term(exp)
    }
}

/// The name, or with a number behind it, so that no function has it.
fn free_name(program: &Program, wish: &str) -> String {
    let mut names = std::iter::once(wish.to_string()).chain((1..).map(|k| format!("{wish}_{k}")));
    names.find(|name| program.funs.iter().all(|f| f.name.as_str() != name)).unwrap_or_default()
}

/// The functions reachable from `f` that may call themselves.
fn recursive(program: &Program, f: FunId) -> IdSet<FunId> {
    let reaches_itself = |f: &FunId| program.calls(*f).into_iter().any(|g| program.reachable(g).contains(f));
    program.reachable(f).into_iter().filter(reaches_itself).collect()
}
