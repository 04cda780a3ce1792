//! The only way to make core: names are fresh, types are recorded as statements are emitted.
//!
//! ```
//! use pullback_core::{Builder, Program, Type};
//! use pullback_prim::Op;
//! let mut program = Program::default();
//! let f = Builder::function(&mut program, "square", &[("x", Type::F64)], vec![Type::F64], |b, params| {
//!     let x = params[0].into();
//!     vec![b.op2(Op::Mul, x, x)]
//! });
//! assert_eq!(program.funs[f].params.len(), 1);
//! ```

use crate::ir::{
    Atom, Body, Exp, Fun, FunId, Lam, Loop, LoopAttrs, LoopForm, Origin, Program, SliceDim, Soac, Stm, Var,
    VarInfo,
};
use crate::types::Type;
use crate::typing::result_types;
use pullback_base::Symbol;
use pullback_prim::{Op, Prim, Scalar};

/// Emits statements into nested scopes of one program.
///
/// The emitting methods panic if the expression they are given is ill-typed: that is a bug of the caller.
pub struct Builder<'p> {
    /// The program: its variable table grows as statements are emitted.
    pub program: &'p mut Program,
    /// Given to every variable made from now on.
    pub origin: Origin,
    scopes: Vec<Vec<Stm>>,
}

impl<'p> Builder<'p> {
    /// A builder with one open scope.
    pub fn new(program: &'p mut Program) -> Self {
        Self { program, origin: Origin::default(), scopes: vec![Vec::new()] }
    }
    /// The statements of the outermost scope.
    ///
    /// Panics if an inner scope is still open.
    pub fn finish(mut self) -> Vec<Stm> {
        assert_eq!(self.scopes.len(), 1, "an inner scope is open");
        self.scopes.pop().unwrap_or_default()
    }
    /// Adds a function to the program; parameters are hints and types.
    pub fn function(
        program: &'p mut Program,
        name: &str,
        params: &[(&str, Type)],
        results: Vec<Type>,
        build: impl FnOnce(&mut Self, &[Var]) -> Vec<Atom>,
    ) -> FunId {
        let mut b = Builder::new(program);
        let params: Vec<Var> = params.iter().map(|(hint, ty)| b.fresh(ty.clone(), hint)).collect();
        let body = b.scope(|b| build(b, &params));
        let fun = Fun { name: Symbol::new(name), params, body, results, entry: None };
        b.program.funs.push(fun)
    }

    /// A new variable.
    pub fn fresh(&mut self, ty: Type, hint: &str) -> Var {
        let origin = self.origin.clone();
        self.program.vars.push(VarInfo { ty, hint: hint.into(), origin })
    }
    /// A new variable with the type, hint and origin of another.
    pub fn fresh_like(&mut self, v: Var) -> Var {
        let info = self.program.vars[v].clone();
        self.program.vars.push(info)
    }
    /// The type of an atom.
    pub fn ty(&self, a: Atom) -> Type {
        self.program.atom_type(a)
    }
    /// The scalar type of an atom; panics if it is no scalar.
    pub fn scalar(&self, a: Atom) -> Scalar {
        let ty = self.ty(a);
        ty.scalar().unwrap_or_else(|| panic!("expected a scalar, found {ty:?}"))
    }

    /// Emits a statement; returns the variables bound.
    pub fn emit_all(&mut self, exp: Exp, hint: &str) -> Vec<Var> {
        let types = match result_types(self.program, &exp) {
            Ok(types) => types,
            Err(e) => panic!("ill-typed expression given to the builder: {e}: {exp:?}"),
        };
        let pat: Vec<Var> = types.into_iter().map(|t| self.fresh(t, hint)).collect();
        self.emit_to(pat.clone(), exp);
        pat
    }
    /// Emits a statement with one result.
    pub fn emit(&mut self, exp: Exp, hint: &str) -> Atom {
        let pat = self.emit_all(exp, hint);
        assert_eq!(pat.len(), 1, "expected one result");
        pat[0].into()
    }
    /// Emits a statement that binds variables made before (not bound elsewhere, of the right types).
    pub fn emit_to(&mut self, pat: Vec<Var>, exp: Exp) {
        self.emit_stm(Stm { pat, exp });
    }
    /// Emits a finished statement.
    pub fn emit_stm(&mut self, stm: Stm) {
        self.scopes.last_mut().expect("an open scope").push(stm);
    }
    /// Runs `f` in a nested scope and returns the body it emitted.
    pub fn scope(&mut self, f: impl FnOnce(&mut Self) -> Vec<Atom>) -> Body {
        self.scopes.push(Vec::new());
        let result = f(self);
        Body { stms: self.scopes.pop().unwrap_or_default(), result }
    }
    /// Opens a nested scope; for callers whose closure would have to be fallible. Close it with [`Builder::close`].
    pub fn open(&mut self) {
        self.scopes.push(Vec::new());
    }
    /// Closes the innermost scope opened with [`Builder::open`].
    pub fn close(&mut self, result: Vec<Atom>) -> Body {
        Body { stms: self.scopes.pop().unwrap_or_default(), result }
    }
    /// A lambda with parameters of these types.
    pub fn lam(
        &mut self,
        params: &[Type],
        hint: &str,
        f: impl FnOnce(&mut Self, &[Var]) -> Vec<Atom>,
    ) -> Lam {
        let params: Vec<Var> = params.iter().map(|t| self.fresh(t.clone(), hint)).collect();
        let body = self.scope(|b| f(b, &params));
        Lam { params, body }
    }

    /// A primitive of one argument, at the argument's type.
    pub fn op1(&mut self, op: Op, x: Atom) -> Atom {
        let s = self.scalar(x);
        self.emit(Exp::Prim(Prim::Op(op, s), vec![x]), "t")
    }
    /// A primitive of two arguments, at the first argument's type.
    pub fn op2(&mut self, op: Op, x: Atom, y: Atom) -> Atom {
        let s = self.scalar(x);
        self.emit(Exp::Prim(Prim::Op(op, s), vec![x, y]), "t")
    }
    /// `if c then x else y` on scalars already evaluated.
    pub fn select(&mut self, c: Atom, x: Atom, y: Atom) -> Atom {
        let s = self.scalar(x);
        self.emit(Exp::Prim(Prim::Op(Op::Select, s), vec![c, x, y]), "t")
    }
    /// A conversion; nothing is emitted if the type is right already.
    pub fn convert(&mut self, x: Atom, to: Scalar) -> Atom {
        let from = self.scalar(x);
        if from == to { x } else { self.emit(Exp::Prim(Prim::Convert(from, to), vec![x]), "t") }
    }
    /// `array[ix]`.
    pub fn index(&mut self, array: Atom, ix: &[Atom]) -> Atom {
        if ix.is_empty() { array } else { self.emit(Exp::Index(array, ix.to_vec()), "x") }
    }
    /// The size of a dimension.
    pub fn size(&mut self, array: Atom, dim: usize) -> Atom {
        self.emit(Exp::Size(array, dim), "n")
    }
    /// The sizes of all dimensions.
    pub fn shape(&mut self, array: Atom) -> Vec<Atom> {
        (0..self.ty(array).rank()).map(|d| self.size(array, d)).collect()
    }
    /// A `map` over arrays of size `width`; the closure gets the elements.
    pub fn map(
        &mut self,
        width: Atom,
        arrays: &[Atom],
        f: impl FnOnce(&mut Self, &[Var]) -> Vec<Atom>,
    ) -> Vec<Var> {
        let elems: Vec<Type> = arrays.iter().map(|&a| self.elem(a)).collect();
        let lam = self.lam(&elems, "x", f);
        self.emit_all(Exp::Soac(Soac::Map { width, lam, arrays: arrays.to_vec() }), "ys")
    }
    /// The sum of an array of floats or integers.
    pub fn sum(&mut self, width: Atom, array: Atom) -> Atom {
        let t = self.elem(array);
        let s = t.scalar().unwrap_or_else(|| panic!("sum of elements of type {t:?}"));
        let lam = self.lam(&[t.clone(), t], "x", |b, p| vec![b.op2(Op::Add, p[0].into(), p[1].into())]);
        let neutral = vec![Atom::Const(s.zero())];
        self.emit(
            Exp::Soac(Soac::Reduce { width, lam, neutral, arrays: vec![array], commutative: true }),
            "sum",
        )
    }
    /// The element type of an array atom; panics if it is no array.
    pub fn elem(&self, array: Atom) -> Type {
        match self.ty(array) {
            Type::Array(t) => Type::clone(&t),
            t => panic!("expected an array, found {t:?}"),
        }
    }
    /// `for i < n` with state; the closure gets `i` and the state.
    pub fn for_loop(
        &mut self,
        n: Atom,
        init: &[Atom],
        f: impl FnOnce(&mut Self, Var, &[Var]) -> Vec<Atom>,
    ) -> Vec<Var> {
        let i_ty = self.ty(n);
        let i = self.fresh(i_ty, "i");
        let params: Vec<(Var, Atom)> =
            init.iter().map(|&a| (self.fresh(self.program.atom_type(a), "s"), a)).collect();
        let state: Vec<Var> = params.iter().map(|p| p.0).collect();
        let body = self.scope(|b| f(b, i, &state));
        let collect = body.result.len() - state.len();
        let form = LoopForm::For { i, n };
        self.emit_all(Exp::Loop(Loop { params, form, body, collect, attrs: LoopAttrs::default() }), "s")
    }
    /// A conditional.
    pub fn if_(
        &mut self,
        c: Atom,
        then: impl FnOnce(&mut Self) -> Vec<Atom>,
        otherwise: impl FnOnce(&mut Self) -> Vec<Atom>,
    ) -> Vec<Var> {
        let then = self.scope(then);
        let otherwise = self.scope(otherwise);
        self.emit_all(Exp::If(c, then, otherwise), "r")
    }
    /// A `match`; the closure gets the number of the alternative and its payload.
    pub fn match_(
        &mut self,
        x: Atom,
        mut arm: impl FnMut(&mut Self, usize, &[Var]) -> Vec<Atom>,
    ) -> Vec<Var> {
        let ty = self.ty(x);
        let fields: Vec<Vec<Type>> = match self.program.variants(&ty) {
            Some(vs) => vs.iter().map(|v| v.fields.clone()).collect(),
            None => panic!("match on a value of type {ty:?}"),
        };
        let arms =
            fields.iter().enumerate().map(|(k, ts)| self.lam(ts, "p", |b, ps| arm(b, k, ps))).collect();
        self.emit_all(Exp::Match(x, arms), "r")
    }
    /// Opens accumulators for the body.
    pub fn with_acc(&mut self, inits: &[Atom], f: impl FnOnce(&mut Self, &[Var]) -> Vec<Atom>) -> Vec<Var> {
        let types: Vec<Type> = inits.iter().map(|&a| Type::acc(self.ty(a))).collect();
        let lam = self.lam(&types, "acc", f);
        self.emit_all(Exp::WithAcc(inits.to_vec(), lam), "r")
    }
    /// The slice `start, start + stride, ..` of `len` elements.
    pub fn slice(&mut self, array: Atom, start: Atom, len: Atom, stride: Atom) -> Atom {
        self.emit(Exp::Slice(array, SliceDim { start, len, stride }), "xs")
    }
}
