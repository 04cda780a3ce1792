//! CHAD and Efficient CHAD (thesis of Smeding, chapters 5 and 6), from lambda to lambda.
//!
//! A term becomes the pair of its value and its *backpropagator*: a function from the cotangent of the value to what it
//! contributes to the cotangents of the variables. The chapters refine what such a contribution is; each step has a file:
//!
//! | file | contribution | chapter | cost |
//! |---|---|---|---|
//! | [`a_plain`] | the cotangents of all variables, zeros included | 5 | that of the environment, per term; exponential in nested functions |
//! | [`b_sparse`] | the cotangents of the variables that there are, as a map | 6.3.1 | unions: a logarithm too much |
//! | [`c_accumulating`] | a computation that adds to one cell per variable (`EVM`) | 6.3.2 to 6.5 | a constant times the program's: the theorem |
//! | [`d_arrays`] | the same with arrays, whose cotangents are bags; parts run in parallel | 6.6, 6.7 | the same |
//! | [`e_closures`] | the same, for programs with functions as values, which become sums first | 6.8 | the same |
//!
//! [`monad`] makes the computations of [`c_accumulating`] out of finite maps, or of mutable arrays (6.3.2, 6.4).
//!
//! Here is what they share: the types of cotangents and the environment of cells. No rules.
//!
//! The cotangents of [`b_sparse`] and [`c_accumulating`], which are sparse (6.3.1):
//! ```text
//! D1[t] = t                              D2[f64] = f64     D2[f32] = f32     D2[another scalar] = ()
//! D2[(t1, .., tn)] = sparse(D2[ti])      D2[()] = ()
//! D2[[]t] = bag(D2[t])
//! D2[#c1 ts1 | .. | #cn tsn] = oneof(D2[ts1], .., D2[tsn])       a payload of one field counts as the field, else as a product
//! ```

pub mod a_plain;
pub mod b_sparse;
pub mod c_accumulating;
pub mod d_arrays;
pub mod dense;
pub mod e_closures;
pub mod monad;
pub mod parts;

use crate::contract::{Bound, Status, Unsupported};
use crate::on_lambda::OnLambda;
use pullback_base::Span;
use pullback_lambda::{Arm, Builder, Exp, FunId, Program, Term, Type, Var, Variant};
use pullback_prim::{Op, Partial, Prim, Product, Scalar, ScalarValue};
use std::sync::Arc;

/// The algorithms on lambda, in the order of the chapters.
pub const ON_LAMBDA: &[OnLambda] = &[
    OnLambda {
        id: a_plain::ID,
        title: "CHAD",
        citation: "Smeding, thesis, chapter 5",
        bound: Bound::None,
        status: Status::Didactic,
        recursion: false,
        vjp: a_plain::vjp,
    },
    OnLambda {
        id: b_sparse::ID,
        title: "CHAD with sparse cotangents",
        citation: "Smeding, thesis, 6.3.1",
        bound: Bound::None,
        status: Status::Didactic,
        recursion: false,
        vjp: b_sparse::vjp,
    },
    OnLambda {
        id: c_accumulating::ID,
        title: "Efficient CHAD",
        citation: "Smeding, thesis, 6.3.2 to 6.5",
        bound: Bound::Constant,
        status: Status::Selectable,
        recursion: true,
        vjp: |program, f| c_accumulating::vjp(program, f, c_accumulating::Shape::Figure),
    },
    OnLambda {
        id: monad::Monad::OverMap.id(),
        title: "Efficient CHAD, its computations over finite maps",
        citation: "Smeding, thesis, 6.3.2",
        bound: Bound::None,
        status: Status::Didactic,
        recursion: true,
        vjp: |program, f| monad::vjp(program, f, monad::Monad::OverMap),
    },
    OnLambda {
        id: monad::Monad::OverCells.id(),
        title: "Efficient CHAD, its computations over mutable cells",
        citation: "Smeding, thesis, 6.4",
        bound: Bound::Constant,
        status: Status::Selectable,
        recursion: true,
        vjp: |program, f| monad::vjp(program, f, monad::Monad::OverCells),
    },
    OnLambda {
        id: d_arrays::ID,
        title: "Efficient CHAD on arrays",
        citation: "Smeding, thesis, 6.6 and 6.7",
        bound: Bound::Constant,
        status: Status::Selectable,
        recursion: true,
        vjp: |program, f| d_arrays::vjp(program, f, d_arrays::Gathers::Recognised),
    },
    OnLambda {
        id: e_closures::ID,
        title: "Efficient CHAD of closed functions",
        citation: "Smeding, thesis, 6.8",
        bound: Bound::Constant,
        status: Status::Selectable,
        recursion: true,
        vjp: |program, f| e_closures::vjp(program, f, c_accumulating::Shape::Figure),
    },
];

/// The cotangent type `D2[t]` of a first-order type. Errors: types without cotangents in these chapters' first part.
pub fn cotangent(id: &'static str, t: &Type, span: Option<Span>) -> Result<Type, Unsupported> {
    let refuse = |what: &str| refuse(id, &format!("{what} (type {t})"), span);
    match t {
        Type::Scalar(s) => Ok(if s.is_float() { t.clone() } else { Type::unit() }),
        Type::Tuple(ts) if ts.is_empty() => Ok(Type::unit()),
        Type::Tuple(ts) => {
            let parts = ts.iter().map(|t| cotangent(id, t, span)).collect::<Result<Vec<_>, _>>()?;
            Ok(Type::SparseTuple(parts.into()))
        }
        Type::Sum(variants) => {
            let parts = variants.iter().map(|v| cotangent(id, &payload(v), span));
            Ok(Type::SparseSum(parts.collect::<Result<Vec<_>, _>>()?.into()))
        }
        Type::Named(_) => refuse("a value of a recursive type"),
        Type::Array(t) => Ok(Type::bag(cotangent(id, t, span)?)),
        Type::Fun(..) => refuse("a function as a value"),
        _ => refuse("a value of the algorithms' own types"),
    }
}

/// The payload of an alternative as one value.
pub fn payload(variant: &Variant) -> Type {
    match &variant.fields[..] {
        [one] => one.clone(),
        fields => Type::tuple(fields),
    }
}

/// The variables in scope, which have one cell each. Cells are counted from the innermost.
#[derive(Debug, Default)]
struct Cells {
    /// Outermost first: the variable of the source, that of the result, the type of its cotangent.
    all: Vec<(Var, Var, Type)>,
}

impl Cells {
    /// The types of the cells, innermost first.
    fn types(&self) -> Arc<[Type]> {
        self.all.iter().rev().map(|(_, _, bar)| bar.clone()).collect()
    }
    /// The number of the cell of a variable of the source, and the variable of the result.
    fn find(&self, x: Var) -> Option<(usize, Var)> {
        let from_inside = self.all.iter().rev().enumerate();
        from_inside.into_iter().find(|(_, (source, ..))| *source == x).map(|(k, (_, new, _))| (k, *new))
    }
}

/// Where the value of an argument of a primitive is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Argument {
    /// `x`
    Whole(Var),
    /// `x.i`
    Component(Var, usize),
    /// `p.0.i`, of the pair of a value and its backpropagator
    Inside(Var, usize),
    /// `p.i.0`, of a product of such pairs
    Part(Var, usize),
}

impl Argument {
    fn term(self, b: &mut Builder<'_>) -> Term {
        match self {
            Argument::Whole(x) => b.var(x),
            Argument::Component(x, i) => component(b, x, i),
            Argument::Inside(p, i) => {
                let value = component(b, p, 0);
                b.proj(value, i)
            }
            Argument::Part(p, i) => {
                let pair = component(b, p, i);
                b.proj(pair, 0)
            }
        }
    }
}

/// `v.i`
pub(crate) fn component(b: &mut Builder<'_>, v: Var, i: usize) -> Term {
    let v = b.var(v);
    b.proj(v, i)
}

/// `d * partial`, without the product where the partial is one, or minus one; zero for a partial that is zero. A
/// partial that chooses chooses between products.
pub(crate) fn scaled(
    b: &mut Builder<'_>,
    prim: Prim,
    (product, partial): (Product, &Partial),
    args: &[Argument],
    d: Var,
) -> Term {
    let s = match prim {
        Prim::Convert(from, _) => {
            let d = b.var(d);
            return b.convert(d, from);
        }
        Prim::Op(_, s) => s,
    };
    match partial {
        Partial::Const(0.0) => b.term(Exp::Zero(s.into())),
        Partial::Const(1.0) => b.var(d),
        Partial::Const(-1.0) => {
            let d = b.var(d);
            b.op1(Op::Neg, d)
        }
        Partial::Op(Op::Select, [condition, p, q]) => {
            let condition = factor(b, prim, s, condition, args);
            let mut chosen = |p: &Partial| match p {
                Partial::Const(0.0) => b.constant(s.zero()),
                p => scaled(b, prim, (product, p), args, d),
            };
            let (p, q) = (chosen(p), chosen(q));
            b.term(Exp::Prim(Prim::Op(Op::Select, s), vec![condition, p, q]))
        }
        partial => {
            let factor = factor(b, prim, s, partial, args);
            let d = b.var(d);
            match product {
                Product::Plain => b.op2(Op::Mul, d, factor),
                Product::Strong => b.op2(Op::StrongMul, d, factor),
                Product::Mutual => b.op2(Op::MutualMul, d, factor),
            }
        }
    }
}

/// The partial derivatives of a primitive of these arguments, with how cotangents are multiplied by them in this program.
pub(crate) fn slopes(
    program: &Program,
    prim: Prim,
    args: &[Term],
) -> Option<Vec<(Product, &'static Partial)>> {
    let args = match args {
        [one] if let Exp::Tuple(items) = one.exp() => items,
        args => args,
    };
    let known: Vec<Option<ScalarValue>> =
        args.iter().map(|a| if let Exp::Const(c) = a.exp() { Some(*c) } else { None }).collect();
    let of = |i| if program.ieee_partials { Product::Plain } else { prim.product(i, &known) };
    Some(prim.partials()?.iter().enumerate().map(|(i, partial)| (of(i), partial)).collect())
}

/// A partial derivative as a term.
pub(crate) fn factor(
    b: &mut Builder<'_>,
    prim: Prim,
    s: Scalar,
    partial: &Partial,
    args: &[Argument],
) -> Term {
    match partial {
        Partial::Arg(i) => args[usize::from(*i)].term(b),
        Partial::Result => {
            let args = args.iter().map(|a| a.term(b)).collect();
            b.term(Exp::Prim(prim, args))
        }
        Partial::Const(c) => b.constant(s.from_f64(*c)),
        Partial::Op(op, operands) => {
            let operands = operands.iter().map(|p| factor(b, prim, s, p, args)).collect();
            b.term(Exp::Prim(Prim::Op(*op, s), operands))
        }
    }
}

/// Declares a function with the parameters of `f` and a `seed` of this type behind them: its parameters, and the seed.
pub(crate) fn declare_vjp(
    b: &mut Builder<'_>,
    f: FunId,
    name: &str,
    seed: Type,
    result: Type,
) -> (FunId, Vec<Var>, Var) {
    let params = b.params(f).into_iter().map(|p| &b.program.vars[p]);
    let params: Vec<(String, Type)> = params.map(|info| (info.hint.to_string(), info.ty.clone())).collect();
    let given = params.iter().map(|(hint, ty)| (hint.as_str(), ty.clone()));
    let signature: Vec<(&str, Type)> = given.chain([("seed", seed)]).collect();
    let g = b.declare(name, &signature, result, None);
    let mut args = b.params(g);
    let seed = args.pop().expect("the seed");
    (g, args, seed)
}

/// A value of type `t` out of `x`, which has the same form, with what `scalar` makes of its scalars. Functions and values of recursive types are
/// refused before.
pub(crate) fn rebuilt(
    b: &mut Builder<'_>,
    x: Var,
    t: &Type,
    scalar: &mut dyn FnMut(&mut Builder<'_>, Var, Scalar) -> Term,
) -> Term {
    match t {
        Type::Scalar(s) => scalar(b, x, *s),
        Type::Tuple(ts) => {
            let parts = ts.iter().enumerate().map(|(i, t)| {
                let part = component(b, x, i);
                b.let_("p", part, |b, part| rebuilt(b, part, t, scalar))
            });
            let parts = parts.collect();
            b.tuple(parts)
        }
        Type::Array(t) => {
            let x = b.var(x);
            let element = x.ty().elem().cloned().unwrap_or(Type::unit());
            let each = b.lam("e", element, |b, e| rebuilt(b, e, t, scalar));
            b.map(each, vec![x])
        }
        Type::Sum(variants) => {
            let x = b.var(x);
            let from = b.program.variants(x.ty()).unwrap_or_default().to_vec();
            let (mut made, mut arms) = (Vec::new(), Vec::new());
            for (v, from) in variants.iter().zip(from) {
                let params: Vec<Var> = from.fields.into_iter().map(|t| b.fresh(t, "x")).collect();
                let fields = params.iter().zip(&v.fields).map(|(x, t)| rebuilt(b, *x, t, scalar));
                let fields: Vec<Term> = fields.collect();
                let types = fields.iter().map(|e| e.ty().clone()).collect();
                made.push(Variant { name: v.name.clone(), fields: types });
                arms.push((params, fields));
            }
            let ty = Type::Sum(made.into());
            let arms = arms.into_iter().enumerate().map(|(k, (params, fields))| Arm {
                params,
                body: b.term(Exp::Inject(ty.clone(), k, fields)),
            });
            let arms = arms.collect();
            b.term(Exp::Match(x, arms))
        }
        _ => b.var(x),
    }
}

/// A function name that is free.
pub(crate) fn fresh_name(program: &Program, f: FunId, suffix: &str) -> String {
    free_name(program, &format!("{}_{}", program.funs[f].name, suffix.replace('-', "_")))
}

/// The name, or with a number behind it, so that no function has it.
fn free_name(program: &Program, wish: &str) -> String {
    let mut names = std::iter::once(wish.to_string()).chain((1..).map(|k| format!("{wish}_{k}")));
    names.find(|name| program.funs.iter().all(|f| f.name.as_str() != name)).unwrap_or_default()
}

/// Whether it is an operation on arrays, for which there is [`d_arrays`].
fn is_of_arrays(exp: &Exp) -> bool {
    matches!(
        exp,
        Exp::ArrayLit(..)
            | Exp::Index(..)
            | Exp::Slice(..)
            | Exp::Update(..)
            | Exp::UpdateSlice(..)
            | Exp::Gather(..)
            | Exp::Size(..)
            | Exp::Iota(_)
            | Exp::Replicate(..)
            | Exp::Rearrange(..)
            | Exp::Reshape { .. }
            | Exp::Concat(_)
            | Exp::Reverse(_)
            | Exp::Rotate(..)
            | Exp::Zip(_)
            | Exp::Unzip(_)
            | Exp::Soac(_)
            | Exp::SameSize { .. }
    )
}

/// What a construct without a rule is called.
fn construct(exp: &Exp) -> &'static str {
    match exp {
        exp if is_of_arrays(exp) => c_accumulating::ARRAYS,
        Exp::Call(..) => "a call of a function",
        Exp::Loop(_) => "a loop",
        Exp::Lam(..) | Exp::App(..) => "a function as a value",
        Exp::Custom { .. } => "a function with a derivative of its own",
        Exp::Vjp(_) | Exp::Jvp(_) => "a derivative inside of a program",
        Exp::Par(_) => "`par`",
        _ => "what another algorithm made",
    }
}

/// The error for a construct without a rule, of an algorithm that takes neither calls nor loops.
fn refuse_construct<T>(id: &'static str, t: &Term) -> Result<T, Unsupported> {
    let mut refused = refuse(id, construct(t.exp()), t.span());
    if let (Exp::Call(..) | Exp::Loop(_), Err(e)) = (t.exp(), &mut refused) {
        let other = c_accumulating::ID;
        e.help =
            format!("use `{other}`, which takes loops and functions that call themselves, or `fast_chad`");
    }
    refused
}

/// The error for a construct that an algorithm does not cover.
pub(crate) fn refuse<T>(id: &'static str, construct: &str, span: Option<Span>) -> Result<T, Unsupported> {
    let help = "use `fast_chad`, which differentiates it".to_string();
    Err(Unsupported { algorithm: id, construct: construct.to_string(), span, help })
}
