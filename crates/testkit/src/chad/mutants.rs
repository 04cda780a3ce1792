//! Deliberate errors in what Efficient CHAD makes: each changes one kind of piece of the transformed functions, as a wrong rule would have made it.

use pullback_lambda::{Builder, Exp, FunId, Program, Term, Type};
use pullback_prim::{Op, Prim};
use std::sync::Arc;

/// A deliberate error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutation {
    /// Variables contribute nothing.
    VarLost,
    /// Variables contribute to the next cell outwards, where that has the same type.
    VarInNeighbour,
    /// Variables contribute twice.
    VarDoubled,
    /// Of two computations in turn, the second is lost.
    SecondLost,
    /// Of two computations in turn, the first is lost.
    FirstLost,
    /// What is left in the cell of a `let` or a `match` goes nowhere.
    CellLost,
    /// A cell starts with one instead of zero.
    CellStartsAtOne,
    /// Products hand the cotangents of first and last component to each other.
    ComponentsTurned,
    /// A projection gives its cotangent to the other end of the product.
    OneHotTurned,
    /// A projection gives its cotangent to all components of its type.
    OneHotEverywhere,
    /// The payload of an alternative gets the cotangent of the last alternative.
    CastTurned,
    /// The cotangent of a payload becomes one of the last alternative of its type.
    InjectTurned,
    /// The cotangent of a payload becomes zero.
    InjectLost,
    /// Products of a cotangent and a factor are the cotangent.
    FactorLost,
    /// .. are the factor.
    CotangentLost,
    /// .. are sums.
    ProductIsSum,
    /// Cotangents keep their sign where they should not.
    SignLost,
    /// The cells that a call ran in are handed to the wrong arguments.
    CellsOfCallTurned,
    /// A call runs its computation in cells that are not zero at first.
    CallStartsAtOne,
    /// What a call's computation found is replaced by zero.
    CallLost,
    /// Both arms of a condition that compares are exchanged.
    ConditionTurned,
    /// Computations that contribute nothing contribute one to the innermost cell.
    NothingIsSomething,

    /// Every contribution is made in two steps, the second zero.
    AddsZero,
    /// Every call of a backpropagator is preceded by one with zero.
    CalledWithZero,
    /// Zeros of products have all their components.
    DenseZeros,
    /// What contributes nothing does so in a further cell, that nobody uses.
    FurtherCell,
    /// Cotangents of products are taken apart and put together before they are handed on.
    Rebuilt,
}

impl Mutation {
    /// All that give wrong results.
    pub const WRONG: &[Mutation] = &[
        Mutation::VarLost,
        Mutation::VarInNeighbour,
        Mutation::VarDoubled,
        Mutation::SecondLost,
        Mutation::FirstLost,
        Mutation::CellLost,
        Mutation::CellStartsAtOne,
        Mutation::ComponentsTurned,
        Mutation::OneHotTurned,
        Mutation::OneHotEverywhere,
        Mutation::CastTurned,
        Mutation::InjectTurned,
        Mutation::InjectLost,
        Mutation::FactorLost,
        Mutation::CotangentLost,
        Mutation::ProductIsSum,
        Mutation::SignLost,
        Mutation::CellsOfCallTurned,
        Mutation::CallStartsAtOne,
        Mutation::CallLost,
        Mutation::ConditionTurned,
        Mutation::NothingIsSomething,
    ];
    /// All that give right results at a higher cost.
    pub const WASTEFUL: &[Mutation] = &[
        Mutation::AddsZero,
        Mutation::CalledWithZero,
        Mutation::DenseZeros,
        Mutation::FurtherCell,
        Mutation::Rebuilt,
    ];
}

/// The program with the error in every function from `first` on, which are those that CHAD made.
pub fn mutate(program: &mut Program, first: FunId, mutation: Mutation) {
    let made: Vec<FunId> = program.funs.ids().filter(|f| *f >= first).collect();
    let mut b = Builder::new(program);
    for f in made {
        let Some(body) = b.program.funs[f].body.clone() else { continue };
        let body = Mutator { b: &mut b, mutation, backward: false }.term(&body);
        b.program.funs[f].body = Some(body);
    }
    assert!(b.errors.is_empty(), "{mutation:?}: {:?}", b.errors);
}

struct Mutator<'a, 'p> {
    b: &'a mut Builder<'p>,
    mutation: Mutation,
    /// Whether the term belongs to a backpropagator.
    backward: bool,
}

impl Mutator<'_, '_> {
    fn term(&mut self, t: &Term) -> Term {
        let outer = self.backward;
        self.backward |= matches!(t.exp(), Exp::Lam(..));
        let mut exp = t.exp().clone();
        exp.children_mut(&mut |child| *child = pullback_lambda::with_stack(|| self.term(child)));
        let out = self.changed(exp);
        self.backward = outer;
        out
    }
    fn changed(&mut self, exp: Exp) -> Term {
        use Mutation as M;
        match (self.mutation, exp) {
            (M::VarLost, Exp::EvmAdd { env, .. }) => self.nothing(env),
            (M::VarInNeighbour, Exp::EvmAdd { env, cell, value }) => {
                let next = if env.get(cell + 1) == Some(&env[cell]) { cell + 1 } else { cell };
                self.b.term(Exp::EvmAdd { env, cell: next, value })
            }
            (M::VarDoubled, exp @ Exp::EvmAdd { .. }) => {
                let (first, second) = (self.b.term(exp.clone()), self.b.term(exp));
                self.in_turn(first, second)
            }
            (M::AddsZero, Exp::EvmAdd { env, cell, value }) => {
                let zero = self.b.term(Exp::Zero(env[cell].clone()));
                let first = self.b.term(Exp::EvmAdd { env: env.clone(), cell, value });
                let second = self.b.term(Exp::EvmAdd { env, cell, value: zero });
                self.in_turn(first, second)
            }
            // `let m = second in first >>= \u. m`
            (M::SecondLost, Exp::EvmBind(first, k)) if ignores(&k) => first,
            (M::FirstLost, Exp::EvmBind(first, k)) if ignores(&k) => {
                let env = environment(&first);
                let nothing = self.nothing(env);
                self.b.term(Exp::EvmBind(nothing, k))
            }
            (M::CellLost, Exp::EvmBind(scope, k)) if matches!(scope.exp(), Exp::EvmScope(..)) => {
                let Exp::Lam(r, _) = k.exp() else { return self.b.term(Exp::EvmBind(scope, k)) };
                let nothing = self.nothing(environment(&scope));
                let k = self.b.term(Exp::Lam(*r, nothing));
                self.b.term(Exp::EvmBind(scope, k))
            }
            (M::CellStartsAtOne, Exp::EvmScope(zero, m)) => {
                let one = self.one(&zero);
                self.b.term(Exp::EvmScope(one, m))
            }
            (M::CallStartsAtOne, Exp::EvmRun(m, cells)) => {
                let ones = match cells.exp() {
                    Exp::Tuple(zeros) => {
                        let ones = zeros.iter().map(|zero| self.one(zero)).collect();
                        self.b.tuple(ones)
                    }
                    _ => cells,
                };
                self.b.term(Exp::EvmRun(m, ones))
            }
            (M::FurtherCell, Exp::EvmReturn(env, x)) => {
                let (unit, inner) = (self.b.unit(), self.b.unit());
                let inside: Vec<Type> = std::iter::once(Type::unit()).chain(env.iter().cloned()).collect();
                let returned = self.b.term(Exp::EvmReturn(inside.into(), inner));
                let scope = self.b.term(Exp::EvmScope(unit, returned));
                let ignored = self.b.fresh(scope_result(&scope), "u");
                let nothing = self.b.term(Exp::EvmReturn(env, x));
                let k = self.b.term(Exp::Lam(ignored, nothing));
                self.b.term(Exp::EvmBind(scope, k))
            }
            (M::CallLost, Exp::EvmRun(m, cells)) if self.backward => {
                let nothing = self.nothing(environment(&m));
                self.b.term(Exp::EvmRun(nothing, cells))
            }
            (M::ComponentsTurned, Exp::SparseProj(d, i)) => {
                let i = turned(d.ty(), i);
                self.b.term(Exp::SparseProj(d, i))
            }
            (M::OneHotTurned, Exp::SparseTuple(mut items)) => {
                let last = items.len() - 1;
                if items[0].ty() == items[last].ty() {
                    items.swap(0, last);
                }
                self.b.term(Exp::SparseTuple(items))
            }
            (M::OneHotEverywhere, Exp::SparseTuple(items)) => {
                let hot = items.iter().find(|t| !matches!(t.exp(), Exp::Zero(_) | Exp::Tuple(_))).cloned();
                let fill = |t: Term| match (&hot, t.exp()) {
                    (Some(hot), Exp::Zero(_)) if hot.ty() == t.ty() => hot.clone(),
                    _ => t,
                };
                let items = items.into_iter().map(fill).collect();
                self.b.term(Exp::SparseTuple(items))
            }
            (M::CastTurned, Exp::SparseCast(d, k)) => {
                let k = last_alike(d.ty(), k);
                self.b.term(Exp::SparseCast(d, k))
            }
            (M::InjectTurned, Exp::SparseInject(ty, k, d)) => {
                let k = last_alike(&ty, k);
                self.b.term(Exp::SparseInject(ty, k, d))
            }
            (M::InjectLost, Exp::SparseInject(ty, ..)) => self.b.term(Exp::Zero(ty)),
            (M::FactorLost, Exp::Prim(Prim::Op(Op::Mul, _), args)) if self.scales(&args) => args[0].clone(),
            (M::CotangentLost, Exp::Prim(Prim::Op(Op::Mul, _), args)) if self.scales(&args) => {
                args[1].clone()
            }
            (M::ProductIsSum, Exp::Prim(Prim::Op(Op::Mul, s), args)) if self.scales(&args) => {
                self.b.term(Exp::Prim(Prim::Op(Op::Add, s), args))
            }
            (M::SignLost, Exp::Prim(Prim::Op(Op::Neg, _), args)) if self.backward && args.len() == 1 => {
                args[0].clone()
            }
            (M::CellsOfCallTurned, Exp::Proj(cells, i)) if is_cells(self.b.program, &cells) => {
                let i = turned(cells.ty(), i);
                self.b.proj(cells, i)
            }
            (M::ConditionTurned, Exp::If(c, then, otherwise)) => self.b.if_(c, otherwise, then),
            (M::NothingIsSomething, Exp::EvmReturn(env, x)) => match env.first() {
                Some(Type::Scalar(s)) if s.is_float() => {
                    let value = self.b.constant(s.one());
                    self.b.term(Exp::EvmAdd { env, cell: 0, value })
                }
                _ => self.b.term(Exp::EvmReturn(env, x)),
            },
            (M::CalledWithZero, Exp::App(f, d)) => {
                let once = self.b.term(Exp::App(f.clone(), d.clone()));
                if !matches!(once.ty(), Type::Evm(..)) || !matches!(f.exp(), Exp::Proj(..)) {
                    return once;
                }
                let zero = self.b.term(Exp::Zero(d.ty().clone()));
                let before = self.b.term(Exp::App(f, zero));
                self.in_turn(before, once)
            }
            (M::DenseZeros, Exp::Zero(ty)) => self.dense(&ty),
            (M::Rebuilt, Exp::App(f, d)) => {
                let d = match d.ty().clone() {
                    Type::SparseTuple(parts) => {
                        let v = self.b.fresh(d.ty().clone(), "d");
                        let parts = (0..parts.len()).map(|i| {
                            let d = self.b.var(v);
                            self.b.term(Exp::SparseProj(d, i))
                        });
                        let parts = parts.collect();
                        let again = self.b.term(Exp::SparseTuple(parts));
                        self.b.term(Exp::Let(v, d, again))
                    }
                    _ => d,
                };
                self.b.term(Exp::App(f, d))
            }
            (_, exp) => self.b.term(exp),
        }
    }
    fn nothing(&mut self, env: Arc<[Type]>) -> Term {
        let unit = self.b.unit();
        self.b.term(Exp::EvmReturn(env, unit))
    }
    fn in_turn(&mut self, first: Term, second: Term) -> Term {
        let ignored = self.b.fresh(Type::unit(), "u");
        let k = self.b.term(Exp::Lam(ignored, second));
        self.b.term(Exp::EvmBind(first, k))
    }
    /// One for the zero of a float.
    fn one(&mut self, zero: &Term) -> Term {
        match zero.ty() {
            Type::Scalar(s) if s.is_float() => self.b.constant(s.one()),
            _ => zero.clone(),
        }
    }
    /// Whether it is a product that scales a cotangent.
    fn scales(&self, args: &[Term]) -> bool {
        self.backward && args.len() == 2 && matches!(args[0].exp(), Exp::Var(_))
    }
    fn dense(&mut self, ty: &Type) -> Term {
        match ty {
            Type::SparseTuple(parts) => {
                let parts = parts.iter().map(|t| self.dense(t)).collect();
                self.b.term(Exp::SparseTuple(parts))
            }
            ty => self.b.term(Exp::Zero(ty.clone())),
        }
    }
}

/// Whether a continuation ignores its argument and is a variable: that of two computations in turn.
fn ignores(k: &Term) -> bool {
    matches!(k.exp(), Exp::Lam(u, body) if matches!(body.exp(), Exp::Var(m) if m != u))
}

/// The cells of a computation.
fn environment(m: &Term) -> Arc<[Type]> {
    match m.ty() {
        Type::Evm(env, _) => env.clone(),
        _ => Arc::from([]),
    }
}

fn scope_result(scope: &Term) -> Type {
    match scope.ty() {
        Type::Evm(_, t) => Type::clone(t),
        _ => Type::unit(),
    }
}

/// Whether a variable holds the cells that a call ran in.
fn is_cells(program: &Program, t: &Term) -> bool {
    matches!(t.exp(), Exp::Var(v) if program.vars[*v].hint.as_str() == "cells")
}

/// The other end of a product whose ends have one type.
fn turned(product: &Type, i: usize) -> usize {
    let (Type::SparseTuple(parts) | Type::Tuple(parts)) = product else { return i };
    let last = parts.len() - 1;
    if parts[0] == parts[last] && (i == 0 || i == last) { last - i } else { i }
}

/// The last alternative of the same type.
fn last_alike(sum: &Type, k: usize) -> usize {
    let Type::SparseSum(parts) = sum else { return k };
    parts.iter().rposition(|t| *t == parts[k]).unwrap_or(k)
}
