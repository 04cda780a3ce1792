//! Vocabulary shared by the algorithms: zeros and partial derivatives as code, names. No control flow over programs.

use pullback_base::Symbol;
use pullback_core::{Atom, Builder, Exp, Program, Type};
use pullback_prim::{Op, Partial, Prim, Product, Scalar, ScalarValue};

/// Emits the zero tangent (cotangent) of a value: of type `Program::cotangent(type of primal)`, with its shape.
///
/// `None` if the type is discrete. Cost: the size of the arrays inside.
pub fn zero_like(b: &mut Builder<'_>, primal: Atom) -> Option<Atom> {
    let ty = b.ty(primal);
    b.program.add_cotangent_types(&ty);
    let target = b.program.cotangent(&ty).ok()??;
    Some(match &ty {
        Type::Scalar(s) => Atom::Const(s.zero()),
        Type::Tuple(items) => {
            let zeros = (0..items.len()).map(|i| {
                let part = b.emit(Exp::Proj(primal, i), "part");
                zero_like(b, part).unwrap_or_else(|| unit(b))
            });
            let zeros = zeros.collect();
            b.emit(Exp::Tuple(zeros), "zero")
        }
        Type::Sum(_) | Type::Named(_) => b.emit(Exp::Inject(target, 0, Vec::new()), "zero"),
        Type::Array(_) => {
            let shape = b.shape(primal);
            zero_array(b, shape, &target)
        }
        Type::Acc(_) => return None,
    })
}

/// Emits the zero cotangent array of this shape; `ty` is its (cotangent) type.
pub fn zero_array(b: &mut Builder<'_>, shape: Vec<Atom>, ty: &Type) -> Atom {
    let element = match ty.base() {
        Type::Scalar(s) => Atom::Const(s.zero()),
        other => b.emit(Exp::Inject(other.clone(), 0, Vec::new()), "zero"),
    };
    b.emit(Exp::Replicate(shape, element), "zeros")
}

/// Emits the unit value.
pub fn unit(b: &mut Builder<'_>) -> Atom {
    b.emit(Exp::Tuple(Vec::new()), "unit")
}

/// Whether a partial is statically zero, so that it contributes nothing (not even a NaN from `0 * inf`).
pub fn is_zero(partial: &Partial) -> bool {
    matches!(partial, Partial::Const(c) if *c == 0.0)
}

/// The partial derivative of a reciprocal: the square of the result needs no second division.
static OF_RECIPROCAL: Partial =
    Partial::Op(Op::Neg, &[Partial::Op(Op::Mul, &[Partial::Result, Partial::Result])]);

/// The partial derivative of a primitive in argument `i`: the table's, or a cheaper one for these arguments.
pub fn partial_for(prim: Prim, partials: &'static [Partial], args: &[Atom], i: usize) -> &'static Partial {
    match prim {
        Prim::Op(Op::Div, s) if i == 1 && args[0] == Atom::Const(s.one()) => &OF_RECIPROCAL,
        Prim::Op(..) | Prim::Convert(..) => &partials[i],
    }
}

/// Emits a partial derivative of a primitive at type `s`, given its arguments and its result.
pub fn emit_partial(b: &mut Builder<'_>, s: Scalar, partial: &Partial, args: &[Atom], result: Atom) -> Atom {
    match partial {
        Partial::Arg(i) => args[*i as usize],
        Partial::Result => result,
        Partial::Const(c) => Atom::Const(s.from_f64(*c)),
        Partial::Op(op, operands) => {
            let operands = operands.iter().map(|p| emit_partial(b, s, p, args, result)).collect();
            b.emit(Exp::Prim(Prim::Op(*op, s), operands), "d")
        }
    }
}

/// A partial derivative of a primitive with what it is a function of: the arguments and the result.
#[derive(Clone, Copy)]
pub struct Slope<'a> {
    /// The partial derivative.
    pub partial: &'a Partial,
    /// The type of the primitive.
    pub scalar: Scalar,
    /// How tangents and cotangents are multiplied by it.
    pub product: Product,
    /// The arguments of the primitive.
    pub args: &'a [Atom],
    /// Its result.
    pub result: Atom,
}

impl<'a> Slope<'a> {
    /// The partial derivative of a primitive of this type by argument `i`.
    pub fn new(
        program: &Program,
        (prim, scalar): (Prim, Scalar),
        (i, partial): (usize, &'a Partial),
        args: &'a [Atom],
        result: Atom,
    ) -> Slope<'a> {
        Slope { partial, scalar, product: product(program, prim, i, args), args, result }
    }
    /// The same of another partial derivative, an alternative of this one.
    pub fn of(self, partial: &'a Partial) -> Slope<'a> {
        Slope { partial, ..self }
    }
    /// Emits its value.
    pub fn emit(self, b: &mut Builder<'_>) -> Atom {
        emit_partial(b, self.scalar, self.partial, self.args, self.result)
    }
}

/// How tangents and cotangents are multiplied by the partial derivative by argument `i` in this program.
pub fn product(program: &Program, prim: Prim, i: usize, args: &[Atom]) -> Product {
    if program.ieee_partials {
        return Product::Plain;
    }
    let known = |a: &Atom| if let Atom::Const(c) = a { Some(*c) } else { None };
    prim.product(i, &args.iter().map(known).collect::<Vec<Option<ScalarValue>>>())
}

/// How numbers are multiplied by quotients in this program.
pub fn product_of_quotients(program: &Program, s: Scalar) -> Product {
    product(program, Prim::Op(Op::Div, s), 0, &[])
}

/// Emits the product of a partial derivative and a tangent or cotangent `x`, without a multiplication where one of them is a
/// constant one, or the partial minus one. Where the partial chooses, the choice is between products, so that what is not
/// chosen contributes nothing, however large it is.
pub fn emit_scaled(b: &mut Builder<'_>, slope: Slope<'_>, x: Atom) -> Atom {
    match slope.partial {
        Partial::Const(0.0) => Atom::Const(slope.scalar.zero()),
        Partial::Const(1.0) => x,
        Partial::Const(-1.0) => b.op1(Op::Neg, x),
        Partial::Op(Op::Select, [condition, p, q]) => {
            let condition = slope.of(condition).emit(b);
            let (p, q) = (emit_scaled(b, slope.of(p), x), emit_scaled(b, slope.of(q), x));
            b.select(condition, p, q)
        }
        Partial::Arg(_) | Partial::Result | Partial::Const(_) | Partial::Op(..) => {
            let d = slope.emit(b);
            if x == Atom::Const(slope.scalar.one()) { d } else { emit_product(b, slope.product, d, x) }
        }
    }
}

/// Emits the product of a partial derivative `d` and a tangent or cotangent `x`.
pub fn emit_product(b: &mut Builder<'_>, product: Product, d: Atom, x: Atom) -> Atom {
    match product {
        Product::Plain => b.op2(Op::Mul, d, x),
        Product::Strong => b.op2(Op::StrongMul, x, d),
        Product::Mutual => b.op2(Op::MutualMul, x, d),
    }
}

/// A function name that the program does not use yet.
pub fn fresh_function_name(program: &Program, wish: &str) -> Symbol {
    fresh_name(wish, |name| program.funs.iter().any(|f| f.name.as_str() == name))
}

/// A name for a recursive type that the program does not use yet.
pub fn fresh_type_name(program: &Program, wish: &str) -> Symbol {
    fresh_name(wish, |name| program.types.iter().any(|t| t.name.as_str() == name))
}

fn fresh_name(wish: &str, taken: impl Fn(&str) -> bool) -> Symbol {
    let numbered = (1..).map(|k| format!("{wish}_{k}"));
    let name = std::iter::once(wish.to_string()).chain(numbered).find(|name| !taken(name));
    name.unwrap_or_default().into()
}
