//! Programs of the fragment, written by hand: short names for its forms.

use pullback_ad::bulk::a_core::{Exp, Extremum, IndexFn, Names, Program, Term, Ty, Var};
use pullback_ad::bulk::evaluate::evaluate;
use pullback_ad::bulk::sizes::{Size, SizeVar};
use pullback_ad::bulk::values::Tensor;
use pullback_prim::{Op, Prim, Scalar, ScalarValue};

/// Inputs, sizes and names of a program that is being written.
#[derive(Default)]
pub(super) struct Draft {
    pub(super) names: Names,
    pub(super) sizes: Vec<String>,
    pub(super) inputs: Vec<Var>,
}

impl Draft {
    pub(super) fn size(&mut self, name: &str) -> Size {
        self.sizes.push(name.to_string());
        Size::var(SizeVar(self.sizes.len() as u32 - 1))
    }
    pub(super) fn input(&mut self, name: &str, scalar: Scalar, shape: &[Size]) -> Term {
        let x = self.names.fresh(name, Ty::new(shape.to_vec(), scalar));
        self.inputs.push(x.clone());
        Term::var(&x)
    }
    /// An input of numbers.
    pub(super) fn reals(&mut self, name: &str, shape: &[Size]) -> Term {
        self.input(name, Scalar::F64, shape)
    }
    pub(super) fn build(&mut self, k: &Size, body: impl FnOnce(&mut Draft, Term) -> Term) -> Term {
        let i = self.names.index("i");
        let body = body(self, Term::var(&i));
        term(Exp::Build1(k.clone(), i, body))
    }
    pub(super) fn let_(&mut self, u: &Term, body: impl FnOnce(&mut Draft, Term) -> Term) -> Term {
        let x = self.names.fresh("x", u.ty().clone());
        let body = body(self, Term::var(&x));
        term(Exp::Let(x, u.clone(), body))
    }
    pub(super) fn function(
        &mut self,
        params: usize,
        index: impl FnOnce(&mut Draft, &[Term]) -> Vec<Term>,
    ) -> IndexFn {
        let params: Vec<Var> = (0..params).map(|_| self.names.index("j")).collect();
        let is: Vec<Term> = params.iter().map(Term::var).collect();
        IndexFn { index: index(self, &is), params }
    }
    pub(super) fn gather(
        &mut self,
        sh: &[Size],
        t: &Term,
        params: usize,
        index: impl FnOnce(&mut Draft, &[Term]) -> Vec<Term>,
    ) -> Term {
        let f = self.function(params, index);
        term(Exp::Gather(sh.to_vec(), t.clone(), f))
    }
    pub(super) fn scatter(
        &mut self,
        sh: &[Size],
        t: &Term,
        params: usize,
        index: impl FnOnce(&mut Draft, &[Term]) -> Vec<Term>,
    ) -> Term {
        let f = self.function(params, index);
        term(Exp::Scatter(sh.to_vec(), t.clone(), f))
    }
    pub(super) fn program(self, body: Term) -> Program {
        let program = Program { sizes: self.sizes, inputs: self.inputs, body, names: self.names };
        program.check().unwrap_or_else(|why| panic!("{why}\n{program}"));
        program
    }
}

pub(super) fn term(exp: Exp) -> Term {
    Term::new(exp).unwrap_or_else(|why| panic!("{why}"))
}
pub(super) fn n(n: i64) -> Size {
    Size::constant(n)
}
pub(super) fn int(x: i64) -> Term {
    Term::i64(x)
}
pub(super) fn real(x: f64) -> Term {
    Term::scalar(ScalarValue::F64(x))
}
pub(super) fn op1(op: Op, t: &Term) -> Term {
    term(Exp::Op(Prim::Op(op, t.ty().scalar), vec![t.clone()]))
}
pub(super) fn op2(op: Op, t: &Term, u: &Term) -> Term {
    term(Exp::Op(Prim::Op(op, t.ty().scalar), vec![t.clone(), u.clone()]))
}
pub(super) fn add(t: &Term, u: &Term) -> Term {
    op2(Op::Add, t, u)
}
pub(super) fn sub(t: &Term, u: &Term) -> Term {
    op2(Op::Sub, t, u)
}
pub(super) fn mul(t: &Term, u: &Term) -> Term {
    op2(Op::Mul, t, u)
}
pub(super) fn cond(b: &Term, u: &Term, v: &Term) -> Term {
    term(Exp::Cond(b.clone(), u.clone(), v.clone()))
}
pub(super) fn to_real(t: &Term) -> Term {
    term(Exp::Op(Prim::Convert(Scalar::I64, Scalar::F64), vec![t.clone()]))
}
pub(super) fn index(t: &Term, ix: &[Term]) -> Term {
    term(Exp::Index(t.clone(), ix.to_vec()))
}
pub(super) fn sum(t: &Term) -> Term {
    term(Exp::SumOuter(t.clone()))
}
pub(super) fn arg_max(t: &Term) -> Term {
    term(Exp::ArgOuter(Extremum::Max, t.clone()))
}
pub(super) fn arg_min(t: &Term) -> Term {
    term(Exp::ArgOuter(Extremum::Min, t.clone()))
}
/// Where the best of what is sent to each place is.
pub(super) fn arg_at(which: Extremum, sh: &[Size], t: &Term, f: IndexFn) -> Term {
    term(Exp::ArgScatter(which, sh.to_vec(), t.clone(), f))
}
/// Over all dimensions.
pub(super) fn total(t: &Term) -> Term {
    t.ty().shape.iter().fold(t.clone(), |t, _| sum(&t))
}
pub(super) fn stack(ts: &[Term]) -> Term {
    term(Exp::Stack(ts.to_vec()))
}
pub(super) fn replicate(k: &Size, t: &Term) -> Term {
    term(Exp::Replicate(k.clone(), t.clone()))
}
pub(super) fn transpose(j: &[usize], t: &Term) -> Term {
    term(Exp::Transpose(j.to_vec(), t.clone()))
}
pub(super) fn reshape(sh: &[Size], t: &Term) -> Term {
    term(Exp::Reshape(sh.to_vec(), t.clone()))
}

pub(super) type Value = Tensor<ScalarValue>;

pub(super) fn value(program: &Program, arguments: &[Value]) -> Value {
    evaluate(program, arguments).unwrap_or_else(|why| panic!("{why}\n{program}")).0
}
/// The elements touched.
pub(super) fn cost(program: &Program, arguments: &[Value]) -> u64 {
    evaluate(program, arguments).unwrap_or_else(|why| panic!("{why}\n{program}")).1
}
pub(super) fn reals(shape: &[usize], xs: &[f64]) -> Value {
    Tensor::f64s(shape, xs)
}
pub(super) fn one_to(n: usize) -> Value {
    reals(&[n], &(1..=n).map(|x| x as f64).collect::<Vec<f64>>())
}
/// Equal numbers, up to rounding; not-a-number is equal to itself.
pub(super) fn agree(a: &Value, b: &Value, tolerance: f64) -> bool {
    let close = |(x, y): (f64, f64)| {
        (x - y).abs() <= tolerance * (1.0 + x.abs().max(y.abs())) || x == y || x.is_nan() && y.is_nan()
    };
    a.shape == b.shape && a.scalar == b.scalar && a.to_f64s().into_iter().zip(b.to_f64s()).all(close)
}
