//! The accumulation monad in terms of other things: what `run`, `one` and `scope` cost when nobody declares it.
//!
//! Efficient CHAD accumulates by the terms `evm_add`, `evm_scope` and `evm_run`, whose cost the interpreter declares. Here they become terms that need no
//! declaration (thesis 6.3.2 and 6.4): first functions from a finite map to a finite map, which cost a logarithm of the number of variables, then
//! computations with one growable mutable array, which cost a constant.
//!
//! ```text
//!                    over a map                                         over cells
//! EVM G a            map(E) -> (a, map(E))                              mut(E) -> io(a)
//! return x           \s. (x, s)                                         \s. return x
//! m >>= k            \s. let r = m s in k r.0 r.1                       \s. m s >>= \x. k x s
//! one_x d            \s. ((), s with d added at x)                      \s. modify s[x] by (+ d)
//! scope z m          \s. let r = m (s with x: z) in ((r.1[x], r.0),     \s. put z at s[x] (a new cell, if it is the first one there);
//!                        r.1 without x)                                      m s >>= \r. s[x] >>= \d. return (d, r)
//! run m (d1, ..)     let r = m {1: d1, ..} in (r.0, (r.1[1], ..))       run (new array of d1, ..; m; read the cells)
//! ```
//! `x` is the number of a variable from the outermost, `E` is `oneof` of the cells' types.

use super::{c_accumulating, fresh_name};
use crate::contract::Unsupported;
use pullback_base::index::IdMap;
use pullback_lambda::{Arm, Builder, Exp, FunId, LoopForm, Program, Term, Type, Var};
use std::sync::Arc;

/// What accumulates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Monad {
    /// A state that is a finite map.
    OverMap,
    /// A growable mutable array.
    OverCells,
}

impl Monad {
    /// The name by which it is chosen.
    pub const fn id(self) -> &'static str {
        match self {
            Monad::OverMap => "chad-accumulating-map",
            Monad::OverCells => "chad-accumulating-cells",
        }
    }
}

/// [`c_accumulating::vjp`], with its computations implemented. Errors: those of it.
pub fn vjp(program: &mut Program, f: FunId, monad: Monad) -> Result<FunId, Unsupported> {
    let declared = c_accumulating::vjp(program, f, c_accumulating::Shape::Figure)?;
    Ok(implement(program, declared, monad))
}

/// Adds a function that does the same as `f`, which is made by [`super::c_accumulating`] and takes and returns no computations, without the terms of the
/// monad; and those that it calls. Cost: linear in their size.
pub fn implement(program: &mut Program, f: FunId, monad: Monad) -> FunId {
    let mut reachable = vec![f];
    let mut kinds = Vec::new();
    let mut next = 0;
    while let Some(f) = reachable.get(next).copied() {
        next += 1;
        if let Some(body) = &program.funs[f].body {
            collect(body, &mut kinds, &mut reachable);
        }
    }
    kinds.sort();
    kinds.dedup();
    let mut s = Implementation {
        b: Builder::new(program),
        monad,
        kinds: kinds.into(),
        vars: IdMap::new(),
        funs: IdMap::new(),
    };
    for f in &reachable {
        let fun = s.b.program.funs[*f].clone();
        let params: Vec<Var> = fun.params.iter().map(|p| s.renamed(*p)).collect();
        let result = s.ty(&fun.result);
        let suffix = if monad == Monad::OverMap { "map" } else { "cells" };
        let name = fresh_name(s.b.program, *f, suffix);
        let new = s.b.declare(&name, &[], result, None);
        s.b.program.funs[new].params = params;
        s.funs.insert(*f, new);
    }
    for f in &reachable {
        if let Some(body) = s.b.program.funs[*f].body.clone() {
            let body = s.term(&body);
            s.b.define(s.funs[f], body);
        }
    }
    debug_assert!(s.b.errors.is_empty(), "{:?}", s.b.errors);
    s.funs[&f]
}

/// The types of cells in a term, and the functions that it calls.
fn collect(t: &Term, kinds: &mut Vec<Type>, called: &mut Vec<FunId>) {
    match t.exp() {
        Exp::EvmAdd { env, cell, .. } => kinds.push(env[*cell].clone()),
        Exp::EvmScope(zero, _) => kinds.push(zero.ty().clone()),
        Exp::EvmRun(_, cells) => kinds.extend(cells.ty().items().unwrap_or_default().iter().cloned()),
        Exp::Call(f, _) if !called.contains(f) => called.push(*f),
        _ => {}
    }
    t.exp().children(&mut |child| pullback_lambda::with_stack(|| collect(child, kinds, called)));
}

struct Implementation<'p> {
    b: Builder<'p>,
    monad: Monad,
    /// The types of cells.
    kinds: Arc<[Type]>,
    vars: IdMap<Var, Var>,
    funs: IdMap<FunId, FunId>,
}

impl Implementation<'_> {
    /// `E`
    fn entry(&self) -> Type {
        Type::SparseSum(self.kinds.clone())
    }
    fn state(&self) -> Type {
        match self.monad {
            Monad::OverMap => Type::Map(Arc::new(self.entry())),
            Monad::OverCells => Type::MutArray(Arc::new(self.entry())),
        }
    }
    /// The type without the monad.
    fn ty(&self, t: &Type) -> Type {
        match t {
            Type::Evm(_, a) => {
                let (a, state) = (self.ty(a), self.state());
                match self.monad {
                    Monad::OverMap => Type::fun(state.clone(), Type::tuple([a, state])),
                    Monad::OverCells => Type::fun(state, Type::io(a)),
                }
            }
            Type::Tuple(ts) => Type::tuple(ts.iter().map(|t| self.ty(t)).collect::<Vec<_>>()),
            Type::Fun(a, b) => Type::fun(self.ty(a), self.ty(b)),
            t => t.clone(),
        }
    }
    fn renamed(&mut self, v: Var) -> Var {
        let info = self.b.program.vars[v].clone();
        let ty = self.ty(&info.ty);
        let new = self.b.fresh(ty, info.hint.as_str());
        self.vars.insert(v, new);
        new
    }
    fn term(&mut self, t: &Term) -> Term {
        pullback_lambda::with_stack(|| self.translated(t))
    }
    fn translated(&mut self, t: &Term) -> Term {
        match t.exp() {
            Exp::Var(v) => {
                let v = self.vars[v];
                self.b.var(v)
            }
            Exp::Let(v, a, b) => {
                let a = self.term(a);
                let v = self.renamed(*v);
                let b = self.term(b);
                self.b.term(Exp::Let(v, a, b))
            }
            Exp::Lam(v, b) => {
                let v = self.renamed(*v);
                let b = self.term(b);
                self.b.term(Exp::Lam(v, b))
            }
            Exp::Match(x, arms) => {
                let x = self.term(x);
                let arms = arms.iter().map(|arm| {
                    let params = arm.params.iter().map(|p| self.renamed(*p)).collect();
                    Arm { params, body: self.term(&arm.body) }
                });
                let arms = arms.collect();
                self.b.term(Exp::Match(x, arms))
            }
            Exp::Call(f, args) => {
                let args = args.iter().map(|t| self.term(t)).collect();
                let f = self.funs[f];
                self.b.call(f, args)
            }
            Exp::EvmReturn(_, x) => {
                let x = self.term(x);
                self.computation(|s, state| s.pure(state, x))
            }
            Exp::EvmBind(m, k) => {
                let (m, k) = (self.term(m), self.term(k));
                self.computation(|s, state| s.bind(state, m, k))
            }
            Exp::EvmAdd { env, cell, value } => {
                let d = self.term(value);
                let (level, kind) = (env.len() - 1 - cell, self.kind(&env[*cell]));
                self.computation(|s, state| s.add(state, level, kind, d))
            }
            Exp::EvmScope(zero, m) => {
                let level = match t.ty() {
                    Type::Evm(env, _) => env.len(),
                    _ => 0,
                };
                let kind = self.kind(zero.ty());
                let (zero, m) = (self.term(zero), self.term(m));
                self.computation(|s, state| s.scope(state, (level, kind), zero, m))
            }
            Exp::EvmRun(m, cells) => {
                let kinds: Vec<usize> =
                    cells.ty().items().unwrap_or_default().iter().map(|t| self.kind(t)).collect();
                let (m, cells) = (self.term(m), self.term(cells));
                self.run(m, cells, &kinds)
            }
            exp => {
                let mut exp = exp.clone();
                if let Exp::Loop(l) = &mut exp {
                    l.state = self.renamed(l.state);
                    if let LoopForm::For(i, _) = &mut l.form {
                        *i = self.renamed(*i);
                    }
                }
                exp.children_mut(&mut |child| *child = self.term(child));
                self.b.term(exp)
            }
        }
    }
    fn kind(&self, bar: &Type) -> usize {
        self.kinds.iter().position(|t| t == bar).unwrap_or_default()
    }
    /// `\s. f s`
    fn computation(&mut self, f: impl FnOnce(&mut Self, Var) -> Term) -> Term {
        let state = self.state();
        let s = self.b.fresh(state, "s");
        let body = f(self, s);
        self.b.term(Exp::Lam(s, body))
    }
    /// `let v = value in f v`
    fn bound(&mut self, value: Term, f: impl FnOnce(&mut Self, Var) -> Term) -> Term {
        let v = self.b.fresh(value.ty().clone(), "r");
        let body = f(self, v);
        self.b.term(Exp::Let(v, value, body))
    }
    /// `m >>= \x. f x` for computations with cells.
    fn and_then(&mut self, m: Term, f: impl FnOnce(&mut Self, Var) -> Term) -> Term {
        let result = match m.ty() {
            Type::Io(t) => Type::clone(t),
            _ => Type::unit(),
        };
        let x = self.b.fresh(result, "x");
        let body = f(self, x);
        let k = self.b.term(Exp::Lam(x, body));
        self.b.term(Exp::IoBind(m, k))
    }
    fn component(&mut self, v: Var, i: usize) -> Term {
        super::component(&mut self.b, v, i)
    }
    /// `linj_kind d`
    fn entered(&mut self, kind: usize, d: Term) -> Term {
        let entry = self.entry();
        self.b.term(Exp::SparseInject(entry, kind, d))
    }
    /// `\a b. a + b`
    fn addition(&mut self) -> Term {
        let entry = self.entry();
        self.b.lams(&[("a", entry.clone()), ("b", entry)], |b, v| {
            let (x, y) = (b.var(v[0]), b.var(v[1]));
            b.term(Exp::Plus(x, y))
        })
    }

    // --- the operations ---

    fn pure(&mut self, state: Var, x: Term) -> Term {
        match self.monad {
            Monad::OverMap => {
                let s = self.b.var(state);
                self.b.tuple(vec![x, s])
            }
            Monad::OverCells => self.b.term(Exp::IoReturn(x)),
        }
    }
    fn bind(&mut self, state: Var, m: Term, k: Term) -> Term {
        let s = self.b.var(state);
        let first = self.b.apply(m, [s]);
        match self.monad {
            Monad::OverMap => self.bound(first, |s, r| {
                let (x, after) = (s.component(r, 0), s.component(r, 1));
                s.b.apply(k, [x, after])
            }),
            Monad::OverCells => self.and_then(first, |s, x| {
                let (x, state) = (s.b.var(x), s.b.var(state));
                s.b.apply(k, [x, state])
            }),
        }
    }
    fn add(&mut self, state: Var, level: usize, kind: usize, d: Term) -> Term {
        let value = self.entered(kind, d);
        let (state, level) = (self.b.var(state), self.b.i64(level as i64));
        match self.monad {
            Monad::OverMap => {
                let combine = self.addition();
                let map = self.b.term(Exp::MapInsert { combine, map: state, key: level, value });
                let unit = self.b.unit();
                self.b.tuple(vec![unit, map])
            }
            Monad::OverCells => {
                let entry = self.entry();
                let f = self.b.lam("old", entry, |b, old| {
                    let old = b.var(old);
                    b.term(Exp::Plus(old, value))
                });
                let modified = self.b.term(Exp::MutModify(state, level, f));
                self.and_then(modified, |s, _| {
                    let unit = s.b.unit();
                    s.b.term(Exp::IoReturn(unit))
                })
            }
        }
    }
    fn scope(&mut self, state: Var, (level, kind): (usize, usize), zero: Term, m: Term) -> Term {
        let value = self.entered(kind, zero);
        let (s, at) = (self.b.var(state), self.b.i64(level as i64));
        match self.monad {
            Monad::OverMap => {
                let combine = self.addition();
                let with = self.b.term(Exp::MapInsert { combine, map: s, key: at, value });
                let ran = self.b.apply(m, [with]);
                let bar = self.kinds[kind].clone();
                self.bound(ran, |s, r| {
                    // The new variable has the largest number of all.
                    let map = s.component(r, 1);
                    let popped = s.b.term(Exp::MapPopMax(map));
                    s.b.match_(popped, |b, k, found| {
                        if k == 0 {
                            let (map, x) = (super::component(b, r, 1), super::component(b, r, 0));
                            let zero = b.term(Exp::Zero(bar.clone()));
                            let pair = b.tuple(vec![zero, x]);
                            return b.tuple(vec![pair, map]);
                        }
                        let (value, rest) = (b.var(found[1]), b.var(found[2]));
                        let d = b.term(Exp::SparseCast(value, kind));
                        let x = super::component(b, r, 0);
                        let pair = b.tuple(vec![d, x]);
                        b.tuple(vec![pair, rest])
                    })
                })
            }
            Monad::OverCells => {
                let size = self.b.term(Exp::MutSize(s));
                let prepared = self.and_then(size, |s, n| {
                    let (n, level) = (s.b.var(n), s.b.i64(level as i64));
                    let first = s.b.op2(pullback_prim::Op::Eq, n, level.clone());
                    let array = s.b.var(state);
                    let pushed = s.b.term(Exp::MutPush(array.clone(), value.clone()));
                    let pushed = s.and_then(pushed, |s, _| {
                        let unit = s.b.unit();
                        s.b.term(Exp::IoReturn(unit))
                    });
                    let set = s.b.term(Exp::MutSet(array, level, value));
                    s.b.if_(first, pushed, set)
                });
                self.and_then(prepared, |s, _| {
                    let cells = s.b.var(state);
                    let ran = s.b.apply(m, [cells]);
                    s.and_then(ran, |s, x| {
                        let cells = s.b.var(state);
                        let read = s.b.term(Exp::MutGet(cells, at));
                        s.and_then(read, |s, d| {
                            let (d, x) = (s.b.var(d), s.b.var(x));
                            let d = s.b.term(Exp::SparseCast(d, kind));
                            let pair = s.b.tuple(vec![d, x]);
                            s.b.term(Exp::IoReturn(pair))
                        })
                    })
                })
            }
        }
    }
    /// `kinds`: those of the cells, innermost first.
    fn run(&mut self, m: Term, cells: Term, kinds: &[usize]) -> Term {
        let count = kinds.len();
        let kinds = kinds.to_vec();
        self.bound(cells, |s, cells| match s.monad {
            Monad::OverMap => {
                let entry = s.entry();
                let mut map = s.b.term(Exp::MapEmpty(entry));
                for (i, kind) in kinds.iter().enumerate() {
                    let d = s.component(cells, i);
                    let (value, combine) = (s.entered(*kind, d), s.addition());
                    let key = s.b.i64((count - 1 - i) as i64);
                    map = s.b.term(Exp::MapInsert { combine, map, key, value });
                }
                let ran = s.b.apply(m, [map]);
                s.bound(ran, |s, r| {
                    let parts = kinds.iter().enumerate().map(|(i, kind)| {
                        let (map, key) = (s.component(r, 1), s.b.i64((count - 1 - i) as i64));
                        let found = s.b.term(Exp::MapLookup(map, key));
                        let bar = s.kinds[*kind].clone();
                        s.b.match_(found, |b, k, payload| match k {
                            0 => b.term(Exp::Zero(bar.clone())),
                            _ => {
                                let value = b.var(payload[0]);
                                b.term(Exp::SparseCast(value, *kind))
                            }
                        })
                    });
                    let parts = parts.collect();
                    let (x, parts) = (s.component(r, 0), s.b.tuple(parts));
                    s.b.tuple(vec![x, parts])
                })
            }
            Monad::OverCells => {
                // Outermost first.
                let entry = s.entry();
                let (n, zero) = (s.b.i64(0), s.b.term(Exp::Zero(entry)));
                let made = s.b.term(Exp::MutNew(n, zero));
                let io = s.and_then(made, |s, array| s.filled(array, cells, &kinds, count, m));
                s.b.term(Exp::IoRun(io))
            }
        })
    }
    /// Pushes the cells that are left to be pushed, runs the computation, reads the cells.
    fn filled(&mut self, array: Var, cells: Var, kinds: &[usize], left: usize, m: Term) -> Term {
        if left > 0 {
            let d = self.component(cells, left - 1);
            let value = self.entered(kinds[left - 1], d);
            let a = self.b.var(array);
            let pushed = self.b.term(Exp::MutPush(a, value));
            return self.and_then(pushed, |s, _| {
                pullback_lambda::with_stack(|| s.filled(array, cells, kinds, left - 1, m))
            });
        }
        let a = self.b.var(array);
        let ran = self.b.apply(m, [a]);
        self.and_then(ran, |s, x| {
            let a = s.b.var(array);
            let all = s.b.term(Exp::MutFreeze(a));
            s.and_then(all, |s, all| {
                let count = kinds.len();
                let parts = kinds.iter().enumerate().map(|(i, kind)| {
                    let (array, at) = (s.b.var(all), s.b.i64((count - 1 - i) as i64));
                    let value = s.b.index(array, vec![at]);
                    s.b.term(Exp::SparseCast(value, *kind))
                });
                let parts = parts.collect();
                let (x, parts) = (s.b.var(x), s.b.tuple(parts));
                let pair = s.b.tuple(vec![x, parts]);
                s.b.term(Exp::IoReturn(pair))
            })
        })
    }
}
