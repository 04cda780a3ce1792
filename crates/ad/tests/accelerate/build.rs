//! Programs of Idealised Accelerate, written by hand: short names for its forms.
//!
//! ```text
//! let b = Draft::default();
//! let program = b.program(vector(real()), |x| b.sum(&b.map(|x| &x * &x, &var(x))));
//! ```
//!
//! Methods take `&self`, so closures may use the draft. What has no type panics.

#![allow(dead_code, reason = "each test file uses a part")]

use crate::common;
use pullback_ad::accelerate::language::{
    AVar, Arr, ArrForm, ArrTy, Direction, Exp, ExpForm, Fun, Names, Program, Slice, Step, Ty,
};
use pullback_ad::accelerate::to_core::function;
use pullback_core::check::{Rules, check};
use pullback_core::print::print;
use pullback_core::{Array, Buffer, FunId, Program as CoreProgram, Value};
use pullback_interp::core::{Counts, Options};
use pullback_prim::{Op, Prim, Scalar, ScalarValue};
use std::cell::RefCell;
use std::ops;

/// Names of a program that is being written.
#[derive(Default)]
pub(super) struct Draft {
    pub(super) names: RefCell<Names>,
}

/// An expression, with operators.
#[derive(Clone, Debug)]
pub(super) struct E(pub(super) Exp);

pub(super) fn real() -> Ty {
    Ty::Scalar(Scalar::F64)
}
pub(super) fn int() -> Ty {
    Ty::Scalar(Scalar::I64)
}
pub(super) fn pair(t: Ty, u: Ty) -> Ty {
    Ty::Tuple(vec![t, u])
}
/// Arrays of rank 0.
pub(super) fn scalar(t: Ty) -> ArrTy {
    ArrTy::Array(t, 0)
}
pub(super) fn vector(t: Ty) -> ArrTy {
    ArrTy::Array(t, 1)
}
pub(super) fn matrix(t: Ty) -> ArrTy {
    ArrTy::Array(t, 2)
}
pub(super) fn array(t: Ty, rank: usize) -> ArrTy {
    ArrTy::Array(t, rank)
}

fn exp(form: ExpForm<()>) -> E {
    E(Exp::new(form).unwrap_or_else(|why| panic!("{why}")))
}
fn arr(form: ArrForm<()>) -> Arr {
    Arr::new(form).unwrap_or_else(|why| panic!("{why}"))
}

/// A number.
pub(super) fn r(x: f64) -> E {
    E(Exp::constant(ScalarValue::F64(x)))
}
/// An integer.
pub(super) fn n(x: i64) -> E {
    E(Exp::i64(x))
}
pub(super) fn truth(x: bool) -> E {
    E(Exp::bool(x))
}
pub(super) fn tuple<const N: usize>(es: [E; N]) -> E {
    E(Exp::tuple(es.into_iter().map(|e| e.0).collect()))
}
/// A shape or an index.
pub(super) fn ix<const N: usize>(es: [i64; N]) -> E {
    tuple(es.map(n))
}
pub(super) fn op1(op: Op, x: &E) -> E {
    exp(ExpForm::Prim(Prim::Op(op, x.scalar()), vec![x.0.clone()]))
}
pub(super) fn op2(op: Op, x: &E, y: &E) -> E {
    exp(ExpForm::Prim(Prim::Op(op, x.scalar()), vec![x.0.clone(), y.0.clone()]))
}
pub(super) fn cond(c: &E, t: &E, e: &E) -> E {
    exp(ExpForm::Cond(c.0.clone(), t.0.clone(), e.0.clone()))
}
/// `a ! i`
pub(super) fn at(a: &AVar, i: &E) -> E {
    exp(ExpForm::Index(a.clone(), i.0.clone()))
}
/// `a ! (i,)` of a vector.
pub(super) fn at1(a: &AVar, i: &E) -> E {
    at(a, &tuple([i.clone()]))
}
pub(super) fn shape(a: &AVar) -> E {
    exp(ExpForm::Shape(a.clone()))
}
/// The size of a dimension.
pub(super) fn size(a: &AVar, d: usize) -> E {
    shape(a).get(d)
}
pub(super) fn to_scalar(x: &E, to: Scalar) -> E {
    exp(ExpForm::Prim(Prim::Convert(x.scalar(), to), vec![x.0.clone()]))
}
pub(super) fn to_real(x: &E) -> E {
    to_scalar(x, Scalar::F64)
}
pub(super) fn to_int(x: &E) -> E {
    to_scalar(x, Scalar::I64)
}

impl E {
    fn scalar(&self) -> Scalar {
        match self.0.ty() {
            Ty::Scalar(s) => *s,
            ty => panic!("expected a scalar, found {ty:?}"),
        }
    }
    /// A component; of a tuple that is written out the expression itself.
    pub(super) fn get(&self, k: usize) -> E {
        E(self.0.component(k).unwrap_or_else(|why| panic!("{why}")))
    }
    pub(super) fn lt(&self, y: &E) -> E {
        op2(Op::Lt, self, y)
    }
    pub(super) fn le(&self, y: &E) -> E {
        op2(Op::Le, self, y)
    }
    pub(super) fn eq(&self, y: &E) -> E {
        op2(Op::Eq, self, y)
    }
    pub(super) fn and(&self, y: &E) -> E {
        op2(Op::And, self, y)
    }
    pub(super) fn not(&self) -> E {
        op1(Op::Not, self)
    }
    pub(super) fn max(&self, y: &E) -> E {
        op2(Op::Max, self, y)
    }
    pub(super) fn min(&self, y: &E) -> E {
        op2(Op::Min, self, y)
    }
    pub(super) fn exp(&self) -> E {
        op1(Op::Exp, self)
    }
    pub(super) fn sin(&self) -> E {
        op1(Op::Sin, self)
    }
    pub(super) fn rem(&self, y: &E) -> E {
        op2(Op::Mod, self, y)
    }
}

macro_rules! operator {
    ($trait:ident $method:ident) => {
        impl ops::$trait<&E> for &E {
            type Output = E;
            fn $method(self, y: &E) -> E {
                op2(Op::$trait, self, y)
            }
        }
        impl ops::$trait<E> for &E {
            type Output = E;
            fn $method(self, y: E) -> E {
                op2(Op::$trait, self, &y)
            }
        }
        impl ops::$trait<&E> for E {
            type Output = E;
            fn $method(self, y: &E) -> E {
                op2(Op::$trait, &self, y)
            }
        }
        impl ops::$trait<E> for E {
            type Output = E;
            fn $method(self, y: E) -> E {
                op2(Op::$trait, &self, &y)
            }
        }
    };
}
operator!(Add add);
operator!(Sub sub);
operator!(Mul mul);
operator!(Div div);

impl ops::Neg for E {
    type Output = E;
    fn neg(self) -> E {
        op1(Op::Neg, &self)
    }
}

/// `a` as a term.
pub(super) fn var(a: &AVar) -> Arr {
    Arr::var(a)
}
pub(super) fn atuple<const N: usize>(us: [Arr; N]) -> Arr {
    Arr::tuple(us.to_vec())
}
pub(super) fn aproj(u: &Arr, k: usize) -> Arr {
    arr(ArrForm::Proj(u.clone(), k))
}
/// An array of numbers that is written out.
pub(super) fn constants(shape: &[usize], xs: &[f64]) -> Arr {
    arr(ArrForm::Use(xs.iter().map(|x| ScalarValue::F64(*x)).collect(), shape.to_vec(), Scalar::F64))
}
pub(super) fn reshape(shape: &E, u: &Arr) -> Arr {
    arr(ArrForm::Reshape(shape.0.clone(), u.clone()))
}
/// `None` is `All`.
pub(super) fn replicate<const N: usize>(slc: [Option<E>; N], u: &Arr) -> Arr {
    arr(ArrForm::Replicate(entries(slc), u.clone()))
}
pub(super) fn slice<const N: usize>(slc: [Option<E>; N], u: &Arr) -> Arr {
    arr(ArrForm::Slice(entries(slc), u.clone()))
}
fn entries<const N: usize>(slc: [Option<E>; N]) -> Slice {
    slc.into_iter().map(|e| e.map(|e| e.0)).collect()
}
pub(super) fn sum(u: &Arr) -> Arr {
    arr(ArrForm::Sum(u.clone()))
}
pub(super) fn acond(c: &E, u: &Arr, v: &Arr) -> Arr {
    arr(ArrForm::Cond(c.0.clone(), u.clone(), v.clone()))
}
/// The element type.
fn element(u: &Arr) -> Ty {
    u.ty().array().unwrap_or_else(|why| panic!("{why}")).0.clone()
}
fn rank(u: &Arr) -> usize {
    u.ty().array().unwrap_or_else(|why| panic!("{why}")).1
}

impl Draft {
    /// A function of an argument of this type.
    pub(super) fn fun(&self, ty: Ty, f: impl FnOnce(E) -> E) -> Fun {
        let param = self.names.borrow_mut().fresh("x", ty);
        let body = f(E(Exp::var(&param))).0;
        Fun { param, body }
    }
    /// A function of two arguments of this type.
    pub(super) fn fun2(&self, t: Ty, u: Ty, f: impl FnOnce(E, E) -> E) -> Fun {
        self.fun(pair(t, u), |p| f(p.get(0), p.get(1)))
    }
    /// `let x = e in ..`
    pub(super) fn let_(&self, e: &E, body: impl FnOnce(E) -> E) -> E {
        let x = self.names.borrow_mut().fresh("x", e.0.ty().clone());
        let body = body(E(Exp::var(&x)));
        exp(ExpForm::Let(vec![(x, e.0.clone())], body.0))
    }
    /// `let a = u in ..`
    pub(super) fn alet(&self, u: &Arr, body: impl FnOnce(&AVar) -> Arr) -> Arr {
        let a = self.names.borrow_mut().fresh("a", u.ty().clone());
        let body = body(&a);
        arr(ArrForm::Let(vec![(a, u.clone())], body))
    }
    pub(super) fn generate(&self, shape: &E, f: impl FnOnce(E) -> E) -> Arr {
        let f = self.fun(shape.0.ty().clone(), f);
        arr(ArrForm::Generate(shape.0.clone(), f))
    }
    pub(super) fn map(&self, f: impl FnOnce(E) -> E, u: &Arr) -> Arr {
        let f = self.fun(element(u), f);
        arr(ArrForm::Map(f, u.clone()))
    }
    pub(super) fn zip_with(&self, f: impl FnOnce(E, E) -> E, u: &Arr, v: &Arr) -> Arr {
        let f = self.fun2(element(u), element(v), f);
        arr(ArrForm::ZipWith(f, u.clone(), v.clone()))
    }
    /// `foldl`
    pub(super) fn fold(&self, f: impl FnOnce(E, E) -> E, e: &E, u: &Arr) -> Arr {
        let f = self.fun2(element(u), element(u), f);
        arr(ArrForm::Foldl(f, e.0.clone(), u.clone()))
    }
    pub(super) fn fold1(&self, f: impl FnOnce(E, E) -> E, u: &Arr) -> Arr {
        let f = self.fun2(element(u), element(u), f);
        arr(ArrForm::Fold1(f, u.clone()))
    }
    pub(super) fn scanl(&self, f: impl FnOnce(E, E) -> E, e: &E, u: &Arr) -> Arr {
        let f = self.fun2(element(u), element(u), f);
        arr(ArrForm::Scanl(f, e.0.clone(), u.clone()))
    }
    pub(super) fn scanr(&self, f: impl FnOnce(E, E) -> E, e: &E, u: &Arr) -> Arr {
        let f = self.fun2(element(u), element(u), f);
        arr(ArrForm::Scanr(f, e.0.clone(), u.clone()))
    }
    pub(super) fn scanl1(&self, f: impl FnOnce(E, E) -> E, u: &Arr) -> Arr {
        let f = self.fun2(element(u), element(u), f);
        arr(ArrForm::Scanl1(f, u.clone()))
    }
    /// `collectl f e u`
    pub(super) fn collectl(&self, f: impl FnOnce(E, E) -> E, e: &Arr, u: &Arr) -> Arr {
        let f = self.fun2(element(e), element(u), f);
        arr(ArrForm::Collect(Direction::Left, f, e.clone(), u.clone()))
    }
    /// `collectr f e u`
    pub(super) fn collectr(&self, f: impl FnOnce(E, E) -> E, e: &Arr, u: &Arr) -> Arr {
        let f = self.fun2(element(e), element(u), f);
        arr(ArrForm::Collect(Direction::Right, f, e.clone(), u.clone()))
    }
    /// `iterate e (\(a, i). body) u`
    pub(super) fn iterate(&self, e: &E, u: &Arr, body: impl FnOnce(&AVar, &AVar) -> Arr) -> Arr {
        let (state, counter) = (self.avar("a", u.ty().clone()), self.avar("i", scalar(int())));
        let body = body(&state, &counter);
        arr(ArrForm::Iterate(e.0.clone(), Step { state, counter, body }, u.clone()))
    }
    /// `permute c d f u`; the function of the index gives a truth value and an index.
    pub(super) fn permute(
        &self,
        c: impl FnOnce(E, E) -> E,
        d: &Arr,
        f: impl FnOnce(E) -> (E, E),
        u: &Arr,
    ) -> Arr {
        let c = self.fun2(element(u), element(u), c);
        let f = self.fun(Ty::index(rank(u)), |i| {
            let (goes, to) = f(i);
            tuple([goes, to])
        });
        arr(ArrForm::Permute(c, d.clone(), f, u.clone()))
    }
    pub(super) fn backpermute(&self, shape: &E, f: impl FnOnce(E) -> E, u: &Arr) -> Arr {
        let f = self.fun(shape.0.ty().clone(), f);
        arr(ArrForm::Backpermute(shape.0.clone(), f, u.clone()))
    }
    /// A new array variable.
    pub(super) fn avar(&self, name: &str, ty: ArrTy) -> AVar {
        self.names.borrow_mut().fresh(name, ty)
    }
    /// A program of one argument.
    pub(super) fn program(&self, ty: ArrTy, body: impl FnOnce(&AVar) -> Arr) -> Program {
        self.program_with(Vec::new(), ty, body)
    }
    /// A program with free array variables.
    pub(super) fn program_with(
        &self,
        free: Vec<AVar>,
        ty: ArrTy,
        body: impl FnOnce(&AVar) -> Arr,
    ) -> Program {
        let param = self.avar("argument", ty);
        let body = body(&param);
        let names = self.names.borrow().clone();
        Program::new(param, free, body, names).unwrap_or_else(|why| panic!("{why}"))
    }
}

/// A program as a function of core, which is well-formed.
pub(super) fn lowered(program: &Program) -> (CoreProgram, FunId) {
    let mut core = CoreProgram::default();
    let f = function(&mut core, program, "f");
    if let Err(e) = check(&core, Rules::NO_AD) {
        panic!("ill-formed core: {}\n{}", e.to_diagnostic().message, print(&core));
    }
    (core, f)
}
/// The leaves of the result, and what the interpreter counted.
pub(super) fn counted(program: &Program, args: &[Value]) -> (Vec<Value>, Counts) {
    let (core, f) = lowered(program);
    common::run(&core, f, args)
}
/// The leaves of the result, in two orders of evaluation.
pub(super) fn run(program: &Program, args: &[Value]) -> Vec<Value> {
    let (core, f) = lowered(program);
    let options =
        [None, Some(1), Some(2)].map(|schedule_seed| Options { schedule_seed, ..Options::default() });
    let of = |o: &Options<'_>| {
        let out = pullback_interp::core::run(&core, f, args.to_vec(), o);
        out.unwrap_or_else(|e| panic!("{}\n{}", e.message, print(&core))).results
    };
    let all: Vec<Vec<Value>> = options.iter().map(of).collect();
    let is_same = |other: &Vec<Value>| all[0].iter().zip(other).all(|(a, b)| agree(a, b));
    assert!(all.iter().all(is_same), "the result depends on the order: {all:?}\n{}", print(&core));
    all[0].clone()
}
/// Equal, floats up to rounding; not-a-number is equal to itself.
pub(super) fn agree(a: &Value, b: &Value) -> bool {
    let close = |x: f64, y: f64| {
        (x - y).abs() <= 1e-9 * (1.0 + x.abs().max(y.abs())) || x == y || x.is_nan() && y.is_nan()
    };
    match (a, b) {
        (Value::Scalar(x), Value::Scalar(y)) if x.scalar().is_float() => close(x.as_f64(), y.as_f64()),
        (Value::Array(x), Value::Array(y)) => {
            x.shape == y.shape && x.elements().zip(y.elements()).all(|(x, y)| agree(&x, &y))
        }
        _ => a == b,
    }
}
/// The message with which the program stops.
pub(super) fn stops(program: &Program, args: &[Value]) -> String {
    let (core, f) = lowered(program);
    match pullback_interp::core::run(&core, f, args.to_vec(), &Options::default()) {
        Ok(out) => panic!("{:?}\n{}", out.results, print(&core)),
        Err(e) => e.message,
    }
}

/// A vector of numbers.
pub(super) fn reals(xs: &[f64]) -> Value {
    Value::f64s(xs)
}
/// An array of numbers; of rank 0 a number.
pub(super) fn reals_of(shape: &[usize], xs: &[f64]) -> Value {
    if shape.is_empty() { Value::f64(xs[0]) } else { Value::f64_array(shape, xs) }
}
pub(super) fn ints(xs: &[i64]) -> Value {
    Value::i64s(xs)
}
pub(super) fn ints_of(shape: &[usize], xs: &[i64]) -> Value {
    Value::Array(Array::new(shape.to_vec(), Buffer::I64(xs.to_vec())))
}
