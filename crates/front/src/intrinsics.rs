//! The built-in functions: name, type, and the [`Intrinsic`] that stands for them in the typed program.
//!
//! What can be written in the language itself is in the prelude (`lib/prelude.fut`); here is the rest. Members of the
//! scalar modules (`f64.exp`) that are not found here are looked up in the prelude under `f64_exp`.

use pullback_prim::{Op, Prim, Scalar, ScalarValue};

/// A built-in function. The comment gives its type; the types of [`crate::typed::ExpKind::Intrinsic`] are those of `a`, `b`, ...
/// in alphabetical order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Intrinsic {
    /// A scalar operation, curried: `s -> s`, `s -> s -> s`, `s -> s -> bool` and so on.
    Prim(Prim),
    /// `a -> a -> bool`: structural equality of anything without functions, used at non-scalar types only.
    Equal,
    /// `map: (a -> b) -> [n]a -> [n]b`
    Map,
    /// `reduce: (a -> a -> a) -> a -> [n]a -> a`
    Reduce,
    /// `reduce_comm`: as `reduce`, operator commutative.
    ReduceComm,
    /// `scan: (a -> a -> a) -> a -> [n]a -> [n]a`
    Scan,
    /// `reduce_by_index: [k]a -> (a -> a -> a) -> a -> [n]i64 -> [n]a -> [k]a`
    ReduceByIndex,
    /// `hist: (a -> a -> a) -> a -> (k: i64) -> [n]i64 -> [n]a -> [k]a`
    Hist,
    /// `scatter: [k]a -> [n]i64 -> [n]a -> [k]a`
    Scatter,
    /// `zip`, `zip3`, `zip4`, `zip5`: that many arrays of one length to an array of tuples.
    Zip(usize),
    /// `unzip`, `unzip3`, ...: the inverse.
    Unzip(usize),
    /// `iota: (n: i64) -> [n]i64`
    Iota,
    /// `replicate: (n: i64) -> a -> [n]a`
    Replicate,
    /// `transpose: [n][m]a -> [m][n]a`
    Transpose,
    /// `flatten: [n][m]a -> [n*m]a`
    Flatten,
    /// Two outer sizes, then the array: `(n: i64) -> (m: i64) -> [n*m]a -> [n][m]a`. The user's `unflatten` has the sizes
    /// inserted where they follow from types.
    Unflatten,
    /// `concat` and `++`: `[n]a -> [m]a -> []a`
    Concat,
    /// `reverse: [n]a -> [n]a`
    Reverse,
    /// `rotate: i64 -> [n]a -> [n]a`, element `i` of the result is element `i + k` (modulo `n`).
    Rotate,
    /// `length: [n]a -> i64`
    Length,
    /// `vjp: (a -> b) -> a -> b -> a`
    Vjp,
    /// `vjp2: (a -> b) -> a -> b -> (b, a)`
    Vjp2,
    /// `jvp: (a -> b) -> a -> a -> b`
    Jvp,
    /// `jvp2: (a -> b) -> a -> a -> (b, b)`
    Jvp2,
    /// `mjp: (a -> b) -> a -> [k]b -> [k]a`: many cotangents at once
    Mjp,
    /// `mjp2: (a -> b) -> a -> [k]b -> (b, [k]a)`
    Mjp2,
    /// `jmp: (a -> b) -> a -> [k]a -> [k]b`: many tangents at once
    Jmp,
    /// `jmp2: (a -> b) -> a -> [k]a -> (b, [k]b)`
    Jmp2,
    /// `with_rule: (a -> b) -> (a -> b -> a) -> a -> b`: the rule gets the argument and the cotangent of the result
    WithRule,
    /// `with_vjp: (a -> b) -> (b -> b -> a) -> a -> b`: the rule gets the result and its cotangent
    WithVjp,
    /// `with_vjp_tape: (a -> (t, b)) -> ((t, b) -> a) -> a -> b`: the rule gets the tape and the cotangent of the result
    WithVjpTape,
    /// `stop_gradient: a -> a`
    StopGradient,
    /// `par: (a, b) -> (a, b)`: when applied to a tuple expression, its components may be evaluated in parallel.
    Par,
}

/// The built-in functions that users name, with their types. Letters in type position are type parameters, letters in
/// brackets size parameters, `(n: i64) ->` binds a size for the result, `[]` in a result is a new unknown size.
pub const TABLE: &[(&str, Intrinsic, &str)] = &[
    ("map", Intrinsic::Map, "(a -> b) -> [n]a -> [n]b"),
    ("map1", Intrinsic::Map, "(a -> b) -> [n]a -> [n]b"),
    ("reduce", Intrinsic::Reduce, "(a -> a -> a) -> a -> [n]a -> a"),
    ("reduce_comm", Intrinsic::ReduceComm, "(a -> a -> a) -> a -> [n]a -> a"),
    ("scan", Intrinsic::Scan, "(a -> a -> a) -> a -> [n]a -> [n]a"),
    ("reduce_by_index", Intrinsic::ReduceByIndex, "[k]a -> (a -> a -> a) -> a -> [n]i64 -> [n]a -> [k]a"),
    ("hist", Intrinsic::Hist, "(a -> a -> a) -> a -> (k: i64) -> [n]i64 -> [n]a -> [k]a"),
    ("scatter", Intrinsic::Scatter, "[k]a -> [n]i64 -> [n]a -> [k]a"),
    ("zip", Intrinsic::Zip(2), "[n]a -> [n]b -> [n](a, b)"),
    ("zip2", Intrinsic::Zip(2), "[n]a -> [n]b -> [n](a, b)"),
    ("zip3", Intrinsic::Zip(3), "[n]a -> [n]b -> [n]c -> [n](a, b, c)"),
    ("zip4", Intrinsic::Zip(4), "[n]a -> [n]b -> [n]c -> [n]d -> [n](a, b, c, d)"),
    ("zip5", Intrinsic::Zip(5), "[n]a -> [n]b -> [n]c -> [n]d -> [n]e -> [n](a, b, c, d, e)"),
    ("unzip", Intrinsic::Unzip(2), "[n](a, b) -> ([n]a, [n]b)"),
    ("unzip2", Intrinsic::Unzip(2), "[n](a, b) -> ([n]a, [n]b)"),
    ("unzip3", Intrinsic::Unzip(3), "[n](a, b, c) -> ([n]a, [n]b, [n]c)"),
    ("unzip4", Intrinsic::Unzip(4), "[n](a, b, c, d) -> ([n]a, [n]b, [n]c, [n]d)"),
    ("unzip5", Intrinsic::Unzip(5), "[n](a, b, c, d, e) -> ([n]a, [n]b, [n]c, [n]d, [n]e)"),
    ("iota", Intrinsic::Iota, "(n: i64) -> [n]i64"),
    ("replicate", Intrinsic::Replicate, "(n: i64) -> a -> [n]a"),
    ("transpose", Intrinsic::Transpose, "[n][m]a -> [m][n]a"),
    ("flatten", Intrinsic::Flatten, "[n][m]a -> []a"),
    ("concat", Intrinsic::Concat, "[n]a -> [m]a -> []a"),
    ("++", Intrinsic::Concat, "[n]a -> [m]a -> []a"),
    ("reverse", Intrinsic::Reverse, "[n]a -> [n]a"),
    ("rotate", Intrinsic::Rotate, "i64 -> [n]a -> [n]a"),
    ("length", Intrinsic::Length, "[n]a -> i64"),
    ("vjp", Intrinsic::Vjp, "(a -> b) -> a -> b -> a"),
    ("vjp2", Intrinsic::Vjp2, "(a -> b) -> a -> b -> (b, a)"),
    ("jvp", Intrinsic::Jvp, "(a -> b) -> a -> a -> b"),
    ("jvp2", Intrinsic::Jvp2, "(a -> b) -> a -> a -> (b, b)"),
    ("mjp", Intrinsic::Mjp, "(a -> b) -> a -> [k]b -> [k]a"),
    ("mjp2", Intrinsic::Mjp2, "(a -> b) -> a -> [k]b -> (b, [k]a)"),
    ("jmp", Intrinsic::Jmp, "(a -> b) -> a -> [k]a -> [k]b"),
    ("jmp2", Intrinsic::Jmp2, "(a -> b) -> a -> [k]a -> (b, [k]b)"),
    ("with_rule", Intrinsic::WithRule, "(a -> b) -> (a -> b -> a) -> a -> b"),
    ("with_vjp", Intrinsic::WithVjp, "(a -> b) -> (b -> b -> a) -> a -> b"),
    ("with_vjp_tape", Intrinsic::WithVjpTape, "(a -> (t, b)) -> ((t, b) -> a) -> a -> b"),
    ("stop_gradient", Intrinsic::StopGradient, "a -> a"),
    ("par", Intrinsic::Par, "(a, b) -> (a, b)"),
];

/// A member of a scalar module.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Member {
    /// A constant.
    Constant(ScalarValue),
    /// A scalar operation.
    Prim(Prim),
    /// An operator, resolved as the overloaded operator of this name at the type of the module.
    Operator(&'static str),
    /// `reduce` with an operation and its neutral element: `sum`, `product`, `minimum`, `maximum`.
    Reduction(Op, ScalarValue),
}

const FLOAT_UNARY: &[(&str, Op)] = &[
    ("sqrt", Op::Sqrt),
    ("cbrt", Op::Cbrt),
    ("exp", Op::Exp),
    ("expm1", Op::Expm1),
    ("log", Op::Log),
    ("log2", Op::Log2),
    ("log10", Op::Log10),
    ("log1p", Op::Log1p),
    ("sin", Op::Sin),
    ("cos", Op::Cos),
    ("tan", Op::Tan),
    ("asin", Op::Asin),
    ("acos", Op::Acos),
    ("atan", Op::Atan),
    ("sinh", Op::Sinh),
    ("cosh", Op::Cosh),
    ("tanh", Op::Tanh),
    ("asinh", Op::Asinh),
    ("acosh", Op::Acosh),
    ("atanh", Op::Atanh),
    ("floor", Op::Floor),
    ("ceil", Op::Ceil),
    ("round", Op::Round),
    ("trunc", Op::Trunc),
    ("erf", Op::Erf),
    ("erfc", Op::Erfc),
    ("lgamma", Op::Lgamma),
    ("gamma", Op::Gamma),
    ("digamma", Op::Digamma),
    ("isnan", Op::IsNan),
    ("isinf", Op::IsInf),
    ("atan2", Op::Atan2),
    ("hypot", Op::Hypot),
    ("polygamma", Op::Polygamma),
    ("strong_mul", Op::StrongMul),
    ("mutual_mul", Op::MutualMul),
];

const NUMBER: &[(&str, Op)] = &[
    ("abs", Op::Abs),
    ("sgn", Op::Sgn),
    ("neg", Op::Neg),
    ("min", Op::Min),
    ("max", Op::Max),
    ("pow", Op::Pow),
];

const OPERATORS: &[&str] = &[
    "+", "-", "*", "/", "%", "//", "%%", "**", "<", "<=", ">", ">=", "==", "!=", "&", "|", "^", "<<", ">>",
    "&&", "||",
];

/// The member `name` of the module of `scalar`, if it is built in.
pub fn member(scalar: Scalar, name: &str) -> Option<Member> {
    if let Some(operator) = OPERATORS.iter().find(|o| **o == name) {
        return Some(Member::Operator(operator));
    }
    let source = name.strip_prefix("to_").and_then(Scalar::from_name);
    if let Some(to) = source {
        return Some(Member::Prim(Prim::Convert(scalar, to)));
    }
    if let Some(from) = Scalar::from_name(name) {
        return Some(Member::Prim(Prim::Convert(from, scalar)));
    }
    if scalar == Scalar::Bool {
        return None;
    }
    let row = |table: &[(&str, Op)]| {
        table.iter().find(|(n, _)| *n == name).map(|(_, op)| Member::Prim(Prim::Op(*op, scalar)))
    };
    if let Some(found) = row(NUMBER) {
        return Some(found);
    }
    match name {
        "sum" => return Some(Member::Reduction(Op::Add, scalar.zero())),
        "product" => return Some(Member::Reduction(Op::Mul, scalar.one())),
        "minimum" => return Some(Member::Reduction(Op::Min, scalar.greatest())),
        "maximum" => return Some(Member::Reduction(Op::Max, scalar.least())),
        "highest" => return Some(Member::Constant(scalar.greatest())),
        "lowest" => return Some(Member::Constant(scalar.least())),
        _ => {}
    }
    if scalar.is_float() {
        row(FLOAT_UNARY).or_else(|| float_constant(scalar, name).map(Member::Constant))
    } else {
        match name {
            "not" => Some(Member::Prim(Prim::Op(Op::Not, scalar))),
            "num_bits" => Some(Member::Constant(ScalarValue::I32(8 * scalar.bytes() as i32))),
            _ => None,
        }
    }
}

fn float_constant(scalar: Scalar, name: &str) -> Option<ScalarValue> {
    let (narrow, wide) = match name {
        "pi" => (std::f32::consts::PI, std::f64::consts::PI),
        "e" => (std::f32::consts::E, std::f64::consts::E),
        "inf" => (f32::INFINITY, f64::INFINITY),
        "nan" => (f32::NAN, f64::NAN),
        "largest" => (f32::MAX, f64::MAX),
        "smallest" => (f32::MIN_POSITIVE, f64::MIN_POSITIVE),
        "epsilon" => (f32::EPSILON, f64::EPSILON),
        _ => return None,
    };
    Some(if scalar == Scalar::F32 { ScalarValue::F32(narrow) } else { ScalarValue::F64(wide) })
}

/// Names that scalar modules may have, for suggestions.
pub(crate) fn member_names() -> impl Iterator<Item = &'static str> {
    let rows = FLOAT_UNARY.iter().chain(NUMBER).map(|(n, _)| *n);
    let others = [
        "sum", "product", "minimum", "maximum", "highest", "lowest", "pi", "e", "inf", "nan", "largest",
        "smallest",
    ];
    rows.chain(others).chain(Scalar::ALL.into_iter().map(Scalar::name))
}
