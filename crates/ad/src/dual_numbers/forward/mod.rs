//! The forward pass of the stages from 3.4 on: one transformation, whatever stands beside a number.
//!
//! A stage ([`Stage`]) says what that is for constants, primitives and the numbers of the arguments; all else is here, once. The next free identity is state `S`
//! that the program threads from left to right (a product with more in it in later stages).
//!
//! ```text
//! D[f64] = (f64, what the stage says)      D[s -> t] = D[s] -> S -> M D[t]      M t = (t, S), or a computation of it: io (t, S)
//! everything else as it is made of its parts
//!
//! D[x] i               = (x, i)
//! D[r] i               = ((r, constant), i')
//! D[op(es)] i          = D[es] i, then ((op(p.j.0), operation), i')
//! D[op(es)] i          = (op(plain es), i)                                  without floats in its result, see [`Forward::plain`]
//! D[let x = a in b] i  = let (x, i') = D[a] i in D[b] i'
//! D[\x. b] i           = (\x. \i. D[b] i, i)        D[f a] i = D[f] i, then D[a], then f a i''
//! D[if c then a else b] i = let (c, i') = D[c] i in if c then D[a] i' else D[b] i'         `match`, asserts alike
//! D[map f xs] i        = the elements one after the other; so `reduce`, `scan`, histograms, loops
//! D[K(es)] i           = K(D[es]) for all other terms
//! ```
//!
//! Bindings are collected as the translation goes on ([`Forward::term`]) and put around the result at the end of a block.

mod boundary;
mod repeated;
mod rules;

use super::structure::Parts;
use crate::chad::{Argument, component, factor, scaled};
use crate::contract::Unsupported;
use pullback_base::index::IdMap;
use pullback_lambda::{Builder, Exp, FunId, Program, Term, Type, TypeId, Var};
use pullback_prim::{Op, Partial, Prim, Product, Scalar};
use std::collections::BTreeMap;
use std::convert::Infallible;

pub(crate) type Res<T> = Result<T, Unsupported>;

/// What a stage attaches to numbers, and how cotangents come out of it.
pub(crate) trait Stage: Sized {
    /// The name by which it is chosen.
    const ID: &'static str;
    /// Whether the forward pass is a computation with mutable arrays.
    const IO: bool = false;

    /// What stands beside a number.
    fn dual(&self) -> Type;
    /// The state that is threaded: the next free identity, and what else there is.
    fn state(&self) -> Type {
        Type::I64
    }
    /// The first state.
    fn start(f: &mut Forward<'_, Self>) -> Var {
        let zero = f.b.i64(0);
        f.emit(zero, "id")
    }
    /// What stands beside a constant.
    fn constant(f: &mut Forward<'_, Self>) -> Var;
    /// What stands beside the result of a primitive.
    fn operation(f: &mut Forward<'_, Self>, op: &Operation) -> Var;
    /// What stands beside a number of the arguments, which is at the end of this path.
    fn argument(f: &mut Forward<'_, Self>, s: Scalar, path: &Path<'_>) -> Var;
    /// Terms that may run in parallel; one after the other if the stage has nothing better.
    fn par(f: &mut Forward<'_, Self>, ts: &[Term]) -> Res<Var> {
        let parts = ts.iter().map(|t| f.term(t)).collect::<Res<Vec<Var>>>()?;
        Ok(f.tuple(&parts))
    }
    /// The cotangents of the arguments, after the forward pass.
    fn backward(f: &mut Forward<'_, Self>, run: &Run<'_>) -> Res<Var>;
}

/// A forward pass that has been made.
pub(crate) struct Run<'a> {
    /// The arguments, as they were given.
    pub args: &'a [Var],
    /// Their types.
    pub types: &'a [Type],
    /// The result, with what stands beside its numbers.
    pub result: Var,
    /// Its type in the program.
    pub result_type: &'a Type,
    /// Its cotangent.
    pub seed: Var,
    /// The state after the numbers of the arguments.
    pub arguments: Var,
}

/// A primitive with a float among its results, and with floats among its arguments.
pub(crate) struct Operation {
    prim: Prim,
    /// The product of the arguments, floats with what stands beside them.
    args: Var,
    /// The arguments that matter.
    operands: Vec<(usize, Slope)>,
}

/// A partial derivative, with how cotangents are multiplied by it.
pub(crate) type Slope = (Product, &'static Partial);

impl Operation {
    /// The arguments that matter.
    pub(crate) fn operands(&self) -> impl DoubleEndedIterator<Item = (usize, Slope)> {
        self.operands.iter().copied()
    }
    /// Whether a zero stops at partial derivatives of the primitive. Products with those of its partials that are always finite are the
    /// same then.
    pub(crate) fn is_strong(&self) -> bool {
        self.operands.iter().any(|(_, slope)| slope.0 != Product::Plain)
    }
    fn arguments(&self) -> Vec<Argument> {
        (0..self.prim.params().len()).map(|i| Argument::Part(self.args, i)).collect()
    }
}

/// Where a number is in the arguments, from the number to the whole.
pub(crate) enum Path<'a> {
    /// All arguments.
    Whole,
    /// A component of a product, the cotangents of which have these types.
    Component(&'a Path<'a>, &'a [Type], usize),
    /// An element of an array of this type.
    Element(&'a Path<'a>, Var, &'a Type, Var),
    /// The payload of an alternative of a sum with this type of cotangents.
    Alternative(&'a Path<'a>, &'a Type, usize),
}

/// A function in the place of an operand.
enum Function<'t> {
    /// One that is written there.
    Known(&'t Term),
    /// A value.
    Value(Var),
}

/// What is bound before the rest of a block.
enum Binding {
    Let(Var, Term),
    /// The result of a computation.
    Bind(Var, Term),
}

/// How a computation is threaded.
struct Threads {
    io: bool,
    state: Type,
}

impl Threads {
    /// `M t`
    fn threaded(&self, t: Type) -> Type {
        let pair = Type::tuple([t, self.state.clone()]);
        if self.io { Type::io(pair) } else { pair }
    }
}

pub(crate) struct Forward<'p, C> {
    pub b: Builder<'p>,
    pub stage: C,
    /// The current state.
    pub state: Var,
    threads: Threads,
    bindings: Vec<Binding>,
    vars: IdMap<Var, Var>,
    funs: IdMap<FunId, FunId>,
    types: IdMap<TypeId, TypeId>,
    repeats: BTreeMap<(Scalar, Type), FunId>,
    repeats_while: BTreeMap<Type, FunId>,
}

/// Adds, for a function `f : (s1, .., sn) -> t`, the function `(s1, .., sn, d[t]) -> (t, (d[s1], .., d[sn]))`: value and cotangents of the arguments. The
/// stage is made with the type of all cotangents.
///
/// Errors: constructs that are not supported; the program is as before then. Cost: the size of the functions.
pub(crate) fn vjp<C: Stage>(
    program: &mut Program,
    f: FunId,
    stage: fn(&mut Builder<'_>, &Type) -> C,
) -> Res<FunId> {
    let before = program.clone();
    let made = boundary::whole(program, f, stage);
    if made.is_err() {
        *program = before;
    }
    made
}

impl<C: Stage> Forward<'_, C> {
    // --- types ---

    /// `D[t]`
    fn ty(&mut self, t: &Type) -> Type {
        let (stage, threads) = (&self.stage, &self.threads);
        let number = |t: &Type| Type::tuple([t.clone(), stage.dual()]);
        let function = |a, b| Type::funs([a, threads.state.clone()], threads.threaded(b));
        Parts { number: &number, function: &function }.mapped(&mut self.b, &mut self.types, t)
    }

    // --- blocks ---

    /// A variable for a value.
    pub(crate) fn emit(&mut self, value: Term, hint: &str) -> Var {
        if let Exp::Var(x) = value.exp() {
            return *x;
        }
        let v = self.b.fresh(value.ty().clone(), hint);
        self.bindings.push(Binding::Let(v, value));
        v
    }
    /// A variable for the result of a term of type `M t`, after which the state is another one.
    pub(crate) fn run(&mut self, m: Term, hint: &str) -> Var {
        let pair = match m.ty() {
            Type::Io(t) if self.threads.io => {
                let p = self.b.fresh(Type::clone(t), "p");
                self.bindings.push(Binding::Bind(p, m));
                p
            }
            _ => self.emit(m, "p"),
        };
        let state = component(&mut self.b, pair, 1);
        self.state = self.emit(state, "id");
        let value = component(&mut self.b, pair, 0);
        self.emit(value, hint)
    }
    /// A variable for the result of a computation with mutable arrays, in a stage that has them.
    pub(crate) fn perform(&mut self, io: Term, hint: &str) -> Var {
        let result = if let Type::Io(t) = io.ty() { Type::clone(t) } else { Type::unit() };
        let v = self.b.fresh(result, hint);
        self.bindings.push(Binding::Bind(v, io));
        v
    }
    /// What `f` binds, around the term that it gives; the state is as before then.
    pub(crate) fn around<E>(&mut self, f: impl FnOnce(&mut Self) -> Result<Term, E>) -> Result<Term, E> {
        let (outer, state) = (std::mem::take(&mut self.bindings), self.state);
        let out = f(self).map(|last| self.wrapped(last));
        (self.bindings, self.state) = (outer, state);
        out
    }
    /// What `f` binds, around its result: without a state, and without computations.
    fn scope(&mut self, f: impl FnOnce(&mut Self) -> Res<Var>) -> Res<Term> {
        self.around(|s| f(s).map(|x| s.b.var(x)))
    }
    /// What `f` binds, around `M` of its result.
    pub(crate) fn block<E>(&mut self, f: impl FnOnce(&mut Self) -> Result<Var, E>) -> Result<Term, E> {
        self.around(|s| {
            let x = f(s)?;
            let (x, now) = (s.b.var(x), s.b.var(s.state));
            let pair = s.b.tuple(vec![x, now]);
            Ok(if s.threads.io { s.b.term(Exp::IoReturn(pair)) } else { pair })
        })
    }
    /// A block that begins with this state.
    pub(crate) fn block_from(&mut self, state: Var, f: impl FnOnce(&mut Self) -> Res<Var>) -> Res<Term> {
        self.block(|s| {
            s.state = state;
            f(s)
        })
    }
    fn wrapped(&mut self, mut body: Term) -> Term {
        while let Some(binding) = self.bindings.pop() {
            body = match binding {
                Binding::Let(v, value) => self.b.term(Exp::Let(v, value, body)),
                Binding::Bind(v, m) => {
                    let rest = self.b.term(Exp::Lam(v, body));
                    self.b.term(Exp::IoBind(m, rest))
                }
            };
        }
        body
    }
    /// `f` with a counter as the only state, from 0.
    fn counting<R>(&mut self, f: impl FnOnce(&mut Self) -> R) -> R {
        let threads = std::mem::replace(&mut self.threads, Threads { io: false, state: Type::I64 });
        let zero = self.b.i64(0);
        let zero = self.emit(zero, "i");
        let state = std::mem::replace(&mut self.state, zero);
        let out = f(self);
        (self.threads, self.state) = (threads, state);
        out
    }
    /// The number in the state, which is one higher afterwards.
    pub(crate) fn next(&mut self) -> Var {
        let now = self.state;
        let (i, one) = (self.b.var(now), self.b.i64(1));
        let next = self.b.op2(Op::Add, i, one);
        self.state = self.emit(next, "id");
        now
    }

    // --- pieces ---

    /// A product of variables.
    pub(crate) fn tuple(&mut self, parts: &[Var]) -> Var {
        let parts = parts.iter().map(|v| self.b.var(*v)).collect();
        let product = self.b.tuple(parts);
        self.emit(product, "p")
    }
    /// `v.i`
    pub(crate) fn part(&mut self, v: Var, i: usize) -> Var {
        let part = component(&mut self.b, v, i);
        self.emit(part, "p")
    }
    /// `\x. b` of one argument, with a body of its own.
    pub(crate) fn lambda(&mut self, hint: &str, t: Type, f: impl FnOnce(&mut Self, Var) -> Var) -> Term {
        let x = self.b.fresh(t, hint);
        let Ok(body) = self.around(|s| {
            let body = f(s, x);
            Ok::<Term, Infallible>(s.b.var(body))
        });
        self.b.term(Exp::Lam(x, body))
    }
    /// What stands beside argument `i` of a primitive.
    pub(crate) fn beside(&mut self, op: &Operation, i: usize) -> Term {
        let part = component(&mut self.b, op.args, i);
        self.b.proj(part, 1)
    }
    /// `z` times a partial derivative; both are `f64`, whatever the primitive works on.
    pub(crate) fn scaled(&mut self, op: &Operation, slope: Slope, z: Var) -> Term {
        match op.prim {
            Prim::Convert(..) => self.b.var(z),
            Prim::Op(_, Scalar::F64) => scaled(&mut self.b, op.prim, slope, &op.arguments(), z),
            Prim::Op(_, s) => {
                let d = self.b.var(z);
                let d = self.b.convert(d, s);
                let d = self.emit(d, "z");
                let out = scaled(&mut self.b, op.prim, slope, &op.arguments(), d);
                self.b.convert(out, Scalar::F64)
            }
        }
    }
    /// A partial derivative, as `f64`.
    pub(crate) fn factor(&mut self, op: &Operation, partial: &Partial) -> Term {
        match op.prim {
            Prim::Convert(..) => self.b.f64(1.0),
            Prim::Op(_, s) => {
                let factor = factor(&mut self.b, op.prim, s, partial, &op.arguments());
                self.b.convert(factor, Scalar::F64)
            }
        }
    }
    /// The array of what `entry` makes of arguments and partial derivatives, without those that are not chosen.
    pub(crate) fn row(
        &mut self,
        op: &Operation,
        ty: Type,
        entry: &mut dyn FnMut(&mut Self, usize, Term) -> Term,
    ) -> Term {
        self.row_of(op, &ty, &op.operands, &[], entry)
    }
    /// The same with entries of the operands that come before.
    fn row_of(
        &mut self,
        op: &Operation,
        ty: &Type,
        operands: &[(usize, Slope)],
        before: &[Term],
        entry: &mut dyn FnMut(&mut Self, usize, Term) -> Term,
    ) -> Term {
        let Some((&(i, slope), rest)) = operands.split_first() else {
            return self.b.term(Exp::ArrayLit(ty.clone(), before.to_vec()));
        };
        self.by_choices(op, slope, &mut |f, partial| {
            let mut row = before.to_vec();
            if let Some(partial) = partial {
                let factor = f.factor(op, partial);
                row.push(entry(f, i, factor));
            }
            f.row_of(op, ty, rest, &row, entry)
        })
    }
    /// What is made of a partial derivative, by the choices in it: of one that is zero, and of any other one.
    pub(crate) fn by_choices(
        &mut self,
        op: &Operation,
        (product, partial): Slope,
        made: &mut dyn FnMut(&mut Self, Option<&Partial>) -> Term,
    ) -> Term {
        match (op.prim, partial) {
            (Prim::Op(..), Partial::Const(0.0)) => made(self, None),
            (Prim::Op(_, s), Partial::Op(Op::Select, [condition, p, q])) => {
                let condition = factor(&mut self.b, op.prim, s, condition, &op.arguments());
                let (p, q) =
                    (self.by_choices(op, (product, p), made), self.by_choices(op, (product, q), made));
                self.b.if_(condition, p, q)
            }
            // A zero among the factors of a strong product stops the other one.
            _ if product == Product::Mutual => {
                let (factor, zero) = (self.factor(op, partial), self.b.f64(0.0));
                let stops = self.b.op2(Op::Eq, factor, zero);
                let (none, some) = (made(self, None), made(self, Some(partial)));
                self.b.if_(stops, none, some)
            }
            _ => made(self, Some(partial)),
        }
    }
}
