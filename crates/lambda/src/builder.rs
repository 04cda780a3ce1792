//! The only way to make lambda: variables are fresh, and every node's type is computed when it is made.
//!
//! ```
//! use pullback_lambda::{Builder, Exp, Program, Type};
//! use pullback_prim::Op;
//! let mut program = Program::default();
//! let mut b = Builder::new(&mut program);
//! let square = b.declare("square", &[("x", Type::F64)], Type::F64, None);
//! let x = b.params(square)[0];
//! let body = { let (a, b2) = (b.var(x), b.var(x)); b.op2(Op::Mul, a, b2) };
//! b.define(square, body);
//! assert!(b.errors.is_empty());
//! ```

use crate::term::{
    Entry, Exp, Fun, FunId, Loop, LoopAttrs, LoopForm, Program, Soac, Term, TypeDef, Var, VarInfo,
};
use crate::types::{Type, TypeId, Variant};
use crate::typing::type_of;
use pullback_base::{Span, Symbol};
use pullback_prim::{Op, Prim, Scalar, ScalarValue};

/// Makes variables, terms and functions of one program.
///
/// No method panics on ill-typed terms: the first errors are kept in [`Builder::errors`], such a term has the unit
/// type, and `check` refuses the program.
pub struct Builder<'p> {
    /// The program.
    pub program: &'p mut Program,
    /// Given to every variable and term made from now on.
    pub span: Option<Span>,
    /// Ill-typed terms: a bug of the pass that uses the builder.
    pub errors: Vec<(Option<Span>, String)>,
}

/// Errors beyond this many are dropped.
const MAX_ERRORS: usize = 20;

impl<'p> Builder<'p> {
    /// A builder for the program.
    pub fn new(program: &'p mut Program) -> Self {
        Self { program, span: None, errors: Vec::new() }
    }
    /// Runs `f` with another position for what it makes.
    pub fn at<R>(&mut self, span: Option<Span>, f: impl FnOnce(&mut Self) -> R) -> R {
        let inner = span.or(self.span);
        let outer = std::mem::replace(&mut self.span, inner);
        let result = f(self);
        self.span = outer;
        result
    }

    /// Adds a recursive sum type without alternatives yet, so that they can mention it.
    pub fn declare_type(&mut self, name: &str) -> TypeId {
        self.program.types.push(TypeDef { name: name.into(), variants: Vec::new() })
    }
    /// Gives a declared type its alternatives.
    pub fn define_type(&mut self, id: TypeId, variants: Vec<Variant>) {
        self.program.types[id].variants = variants;
    }
    /// Adds a function without a body yet, so that others and itself can call it; parameters are hints and types.
    pub fn declare(
        &mut self,
        name: &str,
        params: &[(&str, Type)],
        result: Type,
        entry: Option<Entry>,
    ) -> FunId {
        let params = params.iter().map(|(hint, ty)| self.fresh(ty.clone(), hint)).collect();
        let span = self.span;
        self.program.funs.push(Fun { name: name.into(), params, result, body: None, entry, span })
    }
    /// The parameters of a function.
    pub fn params(&self, f: FunId) -> Vec<Var> {
        self.program.funs[f].params.clone()
    }
    /// Gives a declared function its body.
    pub fn define(&mut self, f: FunId, body: Term) {
        let fun = &self.program.funs[f];
        if fun.result != *body.ty() {
            let message = format!("{} returns {}, declared {}", fun.name, body.ty(), fun.result);
            self.error(message);
        }
        self.program.funs[f].body = Some(body);
    }
    /// A new variable.
    pub fn fresh(&mut self, ty: Type, hint: &str) -> Var {
        let span = self.span;
        self.program.vars.push(VarInfo { ty, hint: hint.into(), span })
    }
    /// Any term; its type is computed.
    pub fn term(&mut self, exp: Exp) -> Term {
        let ty = type_of(self.program, &exp).unwrap_or_else(|message| {
            self.error(message);
            Type::unit()
        });
        Term::new(exp, ty, self.span)
    }
    fn error(&mut self, message: String) {
        if self.errors.len() < MAX_ERRORS {
            self.errors.push((self.span, message));
        }
    }

    /// A variable.
    pub fn var(&mut self, v: Var) -> Term {
        self.term(Exp::Var(v))
    }
    /// A constant.
    pub fn constant(&mut self, c: ScalarValue) -> Term {
        self.term(Exp::Const(c))
    }
    /// An `i64` constant.
    pub fn i64(&mut self, x: i64) -> Term {
        self.constant(ScalarValue::I64(x))
    }
    /// An `f64` constant.
    pub fn f64(&mut self, x: f64) -> Term {
        self.constant(ScalarValue::F64(x))
    }
    /// The unit value.
    pub fn unit(&mut self) -> Term {
        self.tuple(Vec::new())
    }
    /// A primitive of one argument, at the argument's type.
    pub fn op1(&mut self, op: Op, x: Term) -> Term {
        let s = x.ty().scalar().unwrap_or(Scalar::F64);
        self.term(Exp::Prim(Prim::Op(op, s), vec![x]))
    }
    /// A primitive of two arguments, at the first argument's type.
    pub fn op2(&mut self, op: Op, x: Term, y: Term) -> Term {
        let s = x.ty().scalar().unwrap_or(Scalar::F64);
        self.term(Exp::Prim(Prim::Op(op, s), vec![x, y]))
    }
    /// A conversion; the argument itself if it has the type already.
    pub fn convert(&mut self, x: Term, to: Scalar) -> Term {
        match x.ty().scalar() {
            Some(from) if from == to => x,
            from => self.term(Exp::Prim(Prim::Convert(from.unwrap_or(Scalar::F64), to), vec![x])),
        }
    }
    /// `let x = value in f x`.
    pub fn let_(&mut self, hint: &str, value: Term, f: impl FnOnce(&mut Self, Var) -> Term) -> Term {
        let v = self.fresh(value.ty().clone(), hint);
        let body = f(self, v);
        self.term(Exp::Let(v, value, body))
    }
    /// `\x -> f x`.
    pub fn lam(&mut self, hint: &str, param: Type, f: impl FnOnce(&mut Self, Var) -> Term) -> Term {
        let v = self.fresh(param, hint);
        let body = f(self, v);
        self.term(Exp::Lam(v, body))
    }
    /// `\x y .. -> f [x, y, ..]`, curried.
    pub fn lams(&mut self, params: &[(&str, Type)], f: impl FnOnce(&mut Self, &[Var]) -> Term) -> Term {
        let vars: Vec<Var> = params.iter().map(|(hint, ty)| self.fresh(ty.clone(), hint)).collect();
        let body = f(self, &vars);
        vars.into_iter().rev().fold(body, |b, v| self.term(Exp::Lam(v, b)))
    }
    /// `f a b ..`.
    pub fn apply(&mut self, f: Term, args: impl IntoIterator<Item = Term>) -> Term {
        args.into_iter().fold(f, |f, a| self.term(Exp::App(f, a)))
    }
    /// A call of a top-level function.
    pub fn call(&mut self, f: FunId, args: Vec<Term>) -> Term {
        self.term(Exp::Call(f, args))
    }
    /// A product.
    pub fn tuple(&mut self, items: Vec<Term>) -> Term {
        self.term(Exp::Tuple(items))
    }
    /// A component of a product.
    pub fn proj(&mut self, t: Term, i: usize) -> Term {
        self.term(Exp::Proj(t, i))
    }
    /// A conditional.
    pub fn if_(&mut self, c: Term, then: Term, otherwise: Term) -> Term {
        self.term(Exp::If(c, then, otherwise))
    }
    /// A `match`; the closure gets the number of the alternative and its payload.
    pub fn match_(&mut self, x: Term, mut arm: impl FnMut(&mut Self, usize, &[Var]) -> Term) -> Term {
        let fields: Vec<Vec<Type>> =
            self.program.variants(x.ty()).unwrap_or(&[]).iter().map(|v| v.fields.clone()).collect();
        let mut arms = Vec::new();
        for (k, types) in fields.into_iter().enumerate() {
            let params: Vec<Var> = types.into_iter().map(|t| self.fresh(t, "p")).collect();
            let body = arm(self, k, &params);
            arms.push(crate::term::Arm { params, body });
        }
        self.term(Exp::Match(x, arms))
    }
    /// `for i < n` with state; the closure gets `i` and the state.
    pub fn for_loop(
        &mut self,
        n: Term,
        init: Term,
        attrs: LoopAttrs,
        f: impl FnOnce(&mut Self, Var, Var) -> Term,
    ) -> Term {
        let i = self.fresh(n.ty().clone(), "i");
        let state = self.fresh(init.ty().clone(), "s");
        let body = f(self, i, state);
        self.term(Exp::Loop(Loop { state, init, form: LoopForm::For(i, n), body, attrs }))
    }
    /// `map f arrays`.
    pub fn map(&mut self, f: Term, arrays: Vec<Term>) -> Term {
        self.term(Exp::Soac(Soac::Map { f, arrays }))
    }
    /// `array[ix]`.
    pub fn index(&mut self, array: Term, ix: Vec<Term>) -> Term {
        self.term(Exp::Index(array, ix))
    }
    /// The size of a dimension.
    pub fn size(&mut self, array: Term, dim: usize) -> Term {
        self.term(Exp::Size(array, dim))
    }
    /// `body`, if the condition holds.
    pub fn assert(&mut self, condition: Term, message: impl Into<Symbol>, body: Term) -> Term {
        self.term(Exp::Assert { condition, message: message.into(), body })
    }
    /// `body`, if the sizes agree.
    pub fn same_size(&mut self, left: Term, right: Term, message: impl Into<Symbol>, body: Term) -> Term {
        self.term(Exp::SameSize { left, right, message: message.into(), body })
    }
}
