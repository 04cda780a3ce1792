//! The primitive table: one row for each scalar operation, the only place that says what it means and how it varies.
//!
//! A row has the name, the arguments (`[x]` is a condition), the class of the result (`same` as the arguments, or
//! `test`: a boolean), the note that becomes the documentation, the evaluation at each class of types, the cost in
//! steps, and either `discrete` or the partial derivatives together with the boxes on which tests compare them with
//! central differences. A row with neither is not a row: the macro does not match it, so it does not compile.
//!
//! # Conventions
//! - Floats are IEEE 754. Functions are those of the `libm` crate at the argument's own precision, on all platforms;
//!   only `+ - * /` and square root are the machine's. Digamma and polygamma are computed in double precision.
//! - Integers wrap. `div`/`mod` round down, `quot`/`rem` to zero; by zero they are errors; the smallest number
//!   divided by -1 is itself. A negative exponent is an error. Shifts by the width or more give 0 (or -1).
//! - Partial derivatives are expressions over the arguments `x y z` and the result `r`, at the type of the primitive.
//!   They only use operations of this table that have derivatives themselves (or are comparisons under `select`), so
//!   derivatives of any order exist. `0` as a whole partial means that there is statically no contribution.
//! - At kinks one element of the generalised derivative is chosen, written in the note of the row: at ties `min` and `max`
//!   give half to each argument; `abs` and `sgn` have 0 at 0; `sqrt` has infinity at 0; `pow` as its note says; steps
//!   (`floor` ..) have 0 everywhere, `hypot` 0 at the origin.
//! - A partial that is infinite or NaN at some finite arguments is marked `singular`: algorithms multiply it by
//!   `strong_mul`, at which a tangent or cotangent that is exactly zero stops, and all others by `mul`. A partial that
//!   chooses between formulas (`select`) chooses between products with them, so that a formula that is not chosen
//!   contributes nothing.
//! - Expressions that choose between formulas guard the argument of the formula not chosen (`pow`), so that
//!   differentiating them again does not meet zero times infinity.
//!
//! The derivatives are from mathematics (any table of derivatives; Abramowitz and Stegun 6.3, 6.4 and 7.1 for the
//! special functions), the conventions at `abs` and `pow` from Futhark's behaviour. A zero that stops infinities is called a
//! strong zero in Julia's documentation (of `false * NaN`), and in that of Enzyme for derivatives.
//!
//! The file is longer than others because it is one table.

use crate::arith::{Outcome, Real, Whole};
use crate::function::Function;
use crate::prim::{Partial, PrimError};
use crate::scalar::{Scalar, ScalarValue};

/// What the table says about an operation, other than its evaluation.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Row {
    /// The operation.
    pub op: Op,
    /// Its name in both IRs.
    pub name: &'static str,
    /// The number of arguments.
    pub arity: usize,
    /// Whether the first argument is a boolean whatever the type of the others.
    pub has_condition: bool,
    /// Whether the result is a boolean whatever the type of the arguments.
    pub is_test: bool,
    /// The classes of types at which the operation exists.
    pub classes: &'static [Class],
    /// Meaning and conventions, in words.
    pub note: &'static str,
    /// Steps charged for one evaluation.
    pub cost: u64,
    /// The partial derivatives at float types, one for each argument; `None` if the operation is discrete.
    pub partials: Option<&'static [Partial]>,
    /// For each partial derivative, whether it is infinite or NaN at some finite arguments. Empty if discrete.
    pub singular: &'static [bool],
    /// Boxes inside which the operation is smooth: for each, the range of every argument. Empty if discrete.
    pub tested: &'static [Region],
}

/// A box of argument values: the range of every argument.
pub type Region = &'static [(f64, f64)];

/// A class of scalar types.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// `f32` and `f64`.
    Float,
    /// The eight integer types.
    Integer,
    /// `bool`.
    Bool,
}

impl Class {
    /// The class of a type.
    pub fn of(scalar: Scalar) -> Class {
        if scalar.is_float() {
            Class::Float
        } else if scalar.is_integer() {
            Class::Integer
        } else {
            Class::Bool
        }
    }
}

impl Row {
    /// Whether the operation exists at a type.
    pub fn allows(&self, scalar: Scalar) -> bool {
        self.classes.contains(&Class::of(scalar))
    }
}

/// Cost of what is about one machine instruction.
const SIMPLE: u64 = 1;
/// Cost of elementary functions.
const ELEMENTARY: u64 = 8;
/// Cost of the gamma and error functions and their relatives.
const SPECIAL: u64 = 32;

/// `1 / log 2`.
const LOG2_E: f64 = std::f64::consts::LOG2_E;
/// `1 / log 10`.
const LOG10_E: f64 = std::f64::consts::LOG10_E;
/// `2 / sqrt pi`.
const ERF_SLOPE: f64 = std::f64::consts::FRAC_2_SQRT_PI;
/// `-1`, which a row cannot spell as one token.
const MINUS_ONE: f64 = -1.0;
/// `-2 / sqrt pi`.
const ERFC_SLOPE: f64 = -std::f64::consts::FRAC_2_SQRT_PI;

/// A partial derivative in prefix form: `x y z` the arguments, `r` the result, `(Mul x 2.0)` an operation.
macro_rules! partial {
    (x) => { Partial::Arg(0) };
    (y) => { Partial::Arg(1) };
    (z) => { Partial::Arg(2) };
    (r) => { Partial::Result };
    (($op:ident $($operand:tt)+)) => { Partial::Op(Op::$op, &[$(partial!($operand)),+]) };
    ($constant:expr) => { Partial::Const($constant) };
}

/// The derivative columns of a row. The only two forms are these, so a row cannot leave them out.
macro_rules! derivative {
    (discrete) => { None };
    (partials [$($partial:tt $($mark:ident)?),+] on [$($region:expr),+]) => { Some(&[$(partial!($partial)),+]) };
}
macro_rules! singular {
    (discrete) => { &[] };
    (partials [$($partial:tt $($mark:ident)?),+] on [$($region:expr),+]) => { &[$(is_singular!($($mark)?)),+] };
}
macro_rules! is_singular {
    () => {
        false
    };
    (singular) => {
        true
    };
}
macro_rules! regions {
    (discrete) => { &[] };
    (partials [$($partial:tt $($mark:ident)?),+] on [$($region:expr),+]) => { &[$(&$region),+] };
}

macro_rules! class_of {
    (float) => {
        Class::Float
    };
    (int) => {
        Class::Integer
    };
    (bool) => {
        Class::Bool
    };
}

macro_rules! arity {
    (([$first:ident] $($x:ident),+)) => { 1 + [$(stringify!($x)),+].len() };
    (($($x:ident),+)) => { [$(stringify!($x)),+].len() };
}
macro_rules! has_condition {
    (([$first:ident] $($x:ident),+)) => {
        true
    };
    (($($x:ident),+)) => {
        false
    };
}
macro_rules! is_test {
    (same) => {
        false
    };
    (test) => {
        true
    };
}

/// Returns the value of `$value` from the enclosing function if type and arguments are of the class.
macro_rules! evaluate {
    (float $args:tt $value:tt, $s:ident, $given:ident) => { evaluate!([F64 F32] $args $value, $s, $given) };
    (int $args:tt $value:tt, $s:ident, $given:ident) => {
        evaluate!([I64 I32 I8 I16 U8 U16 U32 U64] $args $value, $s, $given)
    };
    (bool $args:tt $value:tt, $s:ident, $given:ident) => { evaluate!([Bool] $args $value, $s, $given) };
    ([$($variant:ident)+] $args:tt $value:tt, $s:ident, $given:ident) => {
        $( evaluate!(at $variant $args $value, $s, $given); )+
    };
    (at $variant:ident ($([$c:ident])? $($x:ident),+) ($value:expr), $s:ident, $given:ident) => {
        if $s == Scalar::$variant
            && let [$(ScalarValue::Bool($c),)? $(ScalarValue::$variant($x)),+] = *$given
        {
            return Outcome::outcome($value);
        }
    };
}

/// The row at a float type as a compiled function. The row's evaluation at floats comes first; nothing for tests and for
/// rows with a condition.
macro_rules! function {
    ($t:ident ($x:ident) same float ($value:expr) $($rest:tt)*) => {{
        extern "C" fn function($x: $t) -> $t {
            $value
        }
        Some(Function::One(function))
    }};
    ($t:ident ($x:ident, $y:ident) same float ($value:expr) $($rest:tt)*) => {{
        extern "C" fn function($x: $t, $y: $t) -> $t {
            $value
        }
        Some(Function::Two(function))
    }};
    ($($other:tt)*) => {
        None
    };
}

macro_rules! prims {
    ($(
        $op:ident $name:literal $args:tt -> $kind:ident {
            $note:literal
            $($class:ident $value:tt),+;
            cost $cost:expr;
            $($derivative:tt)+
        }
    )*) => {
        /// A scalar operation; with a [`Scalar`] type it becomes a [`Prim`](crate::Prim).
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
        pub enum Op { $( #[doc = $note] $op, )* }

        const ROWS: &[Row] = &[$( Row {
            op: Op::$op,
            name: $name,
            arity: arity!($args),
            has_condition: has_condition!($args),
            is_test: is_test!($kind),
            classes: &[$(class_of!($class)),+],
            note: $note,
            cost: $cost,
            partials: derivative!($($derivative)+),
            singular: singular!($($derivative)+),
            tested: regions!($($derivative)+),
        } ),*];

        impl Op {
            /// All operations, in the order of the table.
            pub const ALL: &'static [Op] = &[$(Op::$op),*];

            /// The value of the operation at type `s`.
            pub(crate) fn eval(self, s: Scalar, given: &[ScalarValue]) -> Result<ScalarValue, PrimError> {
                match self { $(
                    Op::$op => { $( evaluate!($class $args $value, s, given); )+ }
                )* }
                Err(PrimError::IllTyped)
            }
            /// The operation on `f64`; `None` if it takes or gives something else.
            pub fn f64_function(self) -> Option<Function<f64>> {
                match self { $( Op::$op => function!(f64 $args $kind $($class $value)+), )* }
            }
            /// The operation on `f32`; `None` if it takes or gives something else.
            pub fn f32_function(self) -> Option<Function<f32>> {
                match self { $( Op::$op => function!(f32 $args $kind $($class $value)+), )* }
            }
        }
    };
}

impl Op {
    /// The row of the operation.
    pub fn row(self) -> &'static Row {
        &ROWS[self as usize]
    }
    /// Its name: the first part of the text form of a primitive.
    pub fn name(self) -> &'static str {
        self.row().name
    }
    /// The operation with this name.
    pub fn from_name(name: &str) -> Option<Op> {
        Op::ALL.iter().copied().find(|op| op.name() == name)
    }
}

prims! {
    // ---- unary, number to same type ----
    Neg "neg" (x) -> same {
        "Negation. The smallest signed integer is its own negation."
        float (-x), int (x.wrapping_neg());
        cost SIMPLE; partials [MINUS_ONE] on [[(-3.0, 3.0)]]
    }
    Abs "abs" (x) -> same {
        "Absolute value. Kink at 0: derivative 0. The smallest signed integer is its own absolute value."
        float (Real::abs(x)), int (x.magnitude());
        cost SIMPLE; partials [(Sgn x)] on [[(0.1, 3.0)], [(-3.0, -0.1)]]
    }
    Sgn "sgn" (x) -> same {
        "-1, 0 or 1; NaN at NaN, 0 at both zeros. Derivative 0 everywhere."
        float (Real::sign(x)), int (Whole::sign(x));
        cost SIMPLE; partials [0.0] on [[(0.1, 3.0)], [(-3.0, -0.1)]]
    }
    // ---- unary, float to same type ----
    Sqrt "sqrt" (x) -> same {
        "Square root. Derivative infinity at 0."
        float (Real::sqrt(x));
        cost SIMPLE; partials [(Div 0.5 r) singular] on [[(0.1, 9.0)]]
    }
    Cbrt "cbrt" (x) -> same {
        "Cube root. Derivative infinity at 0."
        float (Real::cbrt(x));
        cost ELEMENTARY; partials [(Div 1.0 (Mul 3.0 (Mul r r))) singular] on [[(0.1, 9.0)], [(-9.0, -0.1)]]
    }
    Exp "exp" (x) -> same {
        "Exponential function."
        float (Real::exp(x));
        cost ELEMENTARY; partials [r singular] on [[(-3.0, 3.0)]]
    }
    // The result plus one would be cheaper, but has no correct digit left at arguments below -40.
    Expm1 "expm1" (x) -> same {
        "Exponential function minus one, accurate near 0."
        float (Real::expm1(x));
        cost ELEMENTARY; partials [(Exp x) singular] on [[(-3.0, 3.0)]]
    }
    Log "log" (x) -> same {
        "Natural logarithm. At 0 it is minus infinity with derivative infinity."
        float (Real::log(x));
        cost ELEMENTARY; partials [(Div 1.0 x) singular] on [[(0.1, 9.0)]]
    }
    Log2 "log2" (x) -> same {
        "Logarithm to base 2."
        float (Real::log2(x));
        cost ELEMENTARY; partials [(Div LOG2_E x) singular] on [[(0.1, 9.0)]]
    }
    Log10 "log10" (x) -> same {
        "Logarithm to base 10."
        float (Real::log10(x));
        cost ELEMENTARY; partials [(Div LOG10_E x) singular] on [[(0.1, 9.0)]]
    }
    Log1p "log1p" (x) -> same {
        "Natural logarithm of 1 + x, accurate near 0."
        float (Real::log1p(x));
        cost ELEMENTARY; partials [(Div 1.0 (Add 1.0 x)) singular] on [[(-0.9, 9.0)]]
    }
    Sin "sin" (x) -> same {
        "Sine."
        float (Real::sin(x));
        cost ELEMENTARY; partials [(Cos x)] on [[(-7.0, 7.0)]]
    }
    Cos "cos" (x) -> same {
        "Cosine."
        float (Real::cos(x));
        cost ELEMENTARY; partials [(Neg (Sin x))] on [[(-7.0, 7.0)]]
    }
    Tan "tan" (x) -> same {
        "Tangent."
        float (Real::tan(x));
        cost ELEMENTARY; partials [(Add 1.0 (Mul r r))] on [[(-1.3, 1.3)], [(2.0, 4.2)]]
    }
    Asin "asin" (x) -> same {
        "Inverse sine. Derivative infinity at -1 and 1."
        float (Real::asin(x));
        cost ELEMENTARY; partials [(Div 1.0 (Sqrt (Mul (Sub 1.0 x) (Add 1.0 x)))) singular] on [[(-0.95, 0.95)]]
    }
    Acos "acos" (x) -> same {
        "Inverse cosine. Derivative minus infinity at -1 and 1."
        float (Real::acos(x));
        cost ELEMENTARY; partials [(Div MINUS_ONE (Sqrt (Mul (Sub 1.0 x) (Add 1.0 x)))) singular] on [[(-0.95, 0.95)]]
    }
    Atan "atan" (x) -> same {
        "Inverse tangent."
        float (Real::atan(x));
        cost ELEMENTARY; partials [(Div 1.0 (Add 1.0 (Mul x x)))] on [[(-5.0, 5.0)]]
    }
    Sinh "sinh" (x) -> same {
        "Hyperbolic sine."
        float (Real::sinh(x));
        cost ELEMENTARY; partials [(Cosh x) singular] on [[(-3.0, 3.0)]]
    }
    Cosh "cosh" (x) -> same {
        "Hyperbolic cosine."
        float (Real::cosh(x));
        cost ELEMENTARY; partials [(Sinh x) singular] on [[(-3.0, 3.0)]]
    }
    Tanh "tanh" (x) -> same {
        "Hyperbolic tangent."
        float (Real::tanh(x));
        cost ELEMENTARY; partials [(Sub 1.0 (Mul r r))] on [[(-3.0, 3.0)]]
    }
    // hypot: x * x would overflow although the derivative does not vanish.
    Asinh "asinh" (x) -> same {
        "Inverse hyperbolic sine."
        float (Real::asinh(x));
        cost ELEMENTARY; partials [(Div 1.0 (Hypot x 1.0))] on [[(-5.0, 5.0)]]
    }
    // The product of two roots is NaN below -1, where a single root of the product would be a number.
    Acosh "acosh" (x) -> same {
        "Inverse hyperbolic cosine. Derivative infinity at 1."
        float (Real::acosh(x));
        cost ELEMENTARY; partials [(Div 1.0 (Mul (Sqrt (Sub x 1.0)) (Sqrt (Add x 1.0)))) singular] on [[(1.1, 9.0)]]
    }
    Atanh "atanh" (x) -> same {
        "Inverse hyperbolic tangent. Infinite, with derivative infinity, at -1 and 1."
        float (Real::atanh(x));
        cost ELEMENTARY; partials [(Div 1.0 (Mul (Sub 1.0 x) (Add 1.0 x))) singular] on [[(-0.9, 0.9)]]
    }
    Floor "floor" (x) -> same {
        "Largest whole number not above. Derivative 0 everywhere, also at the steps."
        float (Real::floor(x));
        cost SIMPLE; partials [0.0] on [[(0.1, 0.9)], [(-1.9, -1.1)]]
    }
    Ceil "ceil" (x) -> same {
        "Smallest whole number not below. Derivative 0 everywhere, also at the steps."
        float (Real::ceil(x));
        cost SIMPLE; partials [0.0] on [[(0.1, 0.9)], [(-1.9, -1.1)]]
    }
    Round "round" (x) -> same {
        "Nearest whole number, halves to the even one. Derivative 0 everywhere, also at the steps."
        float (Real::round(x));
        cost SIMPLE; partials [0.0] on [[(0.6, 1.4)], [(-1.4, -0.6)]]
    }
    Trunc "trunc" (x) -> same {
        "Whole part, rounded to zero. Derivative 0 everywhere, also at the steps."
        float (Real::trunc(x));
        cost SIMPLE; partials [0.0] on [[(-0.9, 0.9)], [(1.1, 1.9)]]
    }
    Erf "erf" (x) -> same {
        "Error function."
        float (Real::erf(x));
        cost SPECIAL; partials [(Mul ERF_SLOPE (Exp (Neg (Mul x x))))] on [[(-3.0, 3.0)]]
    }
    Erfc "erfc" (x) -> same {
        "Complementary error function, 1 - erf x, accurate for large x."
        float (Real::erfc(x));
        cost SPECIAL; partials [(Mul ERFC_SLOPE (Exp (Neg (Mul x x))))] on [[(-3.0, 3.0)]]
    }
    Lgamma "lgamma" (x) -> same {
        "Logarithm of the absolute value of the gamma function. Infinite at 0 and the negative integers."
        float (Real::lgamma(x));
        cost SPECIAL; partials [(Digamma x) singular] on [[(0.2, 9.0)], [(-0.8, -0.2)], [(-2.8, -2.2)]]
    }
    Gamma "gamma" (x) -> same {
        "Gamma function."
        float (Real::gamma(x));
        cost SPECIAL; partials [(Mul r (Digamma x)) singular] on [[(0.2, 5.0)], [(-0.8, -0.2)], [(-2.8, -2.2)]]
    }
    Digamma "digamma" (x) -> same {
        "Logarithmic derivative of the gamma function. Infinite at 0, NaN at the negative integers."
        float (Real::digamma(x));
        cost SPECIAL; partials [(Polygamma 1.0 x) singular] on [[(0.2, 9.0)], [(-0.8, -0.2)], [(-2.8, -2.2)]]
    }
    // ---- unary, float to bool ----
    IsNan "is_nan" (x) -> test {
        "Whether it is not a number."
        float (x.is_nan());
        cost SIMPLE; discrete
    }
    IsInf "is_inf" (x) -> test {
        "Whether it is infinite, of either sign."
        float (x.is_infinite());
        cost SIMPLE; discrete
    }
    // ---- unary, integer or bool to same type ----
    Not "not" (x) -> same {
        "Complement of all bits; of a boolean, negation."
        int (!x), bool (!x);
        cost SIMPLE; discrete
    }
    // ---- binary, number to same type ----
    Add "add" (x, y) -> same {
        "Sum."
        float (x + y), int (x.wrapping_add(y));
        cost SIMPLE; partials [1.0, 1.0] on [[(-3.0, 3.0), (-3.0, 3.0)]]
    }
    Sub "sub" (x, y) -> same {
        "Difference."
        float (x - y), int (x.wrapping_sub(y));
        cost SIMPLE; partials [1.0, MINUS_ONE] on [[(-3.0, 3.0), (-3.0, 3.0)]]
    }
    Mul "mul" (x, y) -> same {
        "Product."
        float (x * y), int (x.wrapping_mul(y));
        cost SIMPLE; partials [y, x] on [[(-3.0, 3.0), (-3.0, 3.0)]]
    }
    Div "div" (x, y) -> same {
        "Quotient. Of integers: rounded down, an error by zero."
        float (x / y), int (Whole::floor_div(x, y));
        cost SIMPLE; partials [(Div 1.0 y) singular, (Neg (Div r y)) singular] on [[(-3.0, 3.0), (0.3, 3.0)], [(-3.0, 3.0), (-3.0, -0.3)]]
    }
    // The number of times y was taken away is recovered as a whole number: exact, and constant under differentiation.
    Mod "mod" (x, y) -> same {
        "Remainder. Of integers: with the sign of the divisor, an error by zero. Of floats: with the sign of the \
         dividend, as in C; NaN by zero. Derivatives 1 and minus the whole part of x / y, also at the jumps."
        float (Real::fmod(x, y)), int (Whole::floor_mod(x, y));
        cost SIMPLE;
        partials [1.0, (Round (Div (Sub r x) y)) singular]
        on [[(0.1, 0.9), (1.1, 3.0)], [(-5.8, -5.2), (2.0, 2.5)], [(5.2, 5.8), (-2.5, -2.0)]]
    }
    Quot "quot" (x, y) -> same {
        "Quotient of integers rounded to zero; an error by zero."
        int (Whole::quot(x, y));
        cost SIMPLE; discrete
    }
    Rem "rem" (x, y) -> same {
        "Remainder of integers with the sign of the dividend; an error by zero."
        int (Whole::rem(x, y));
        cost SIMPLE; discrete
    }
    // With respect to x the condition must be that both are zero: with y alone, the mixed second derivative at y = 0
    // would be 0 and not 1 / x. The inner selections keep second derivatives free of zero times infinity.
    Pow "pow" (x, y) -> same {
        "Power. With respect to x: 0 if x = 0 and y = 0, else y * x^(y-1). With respect to y: 0 if x <= 0, else \
         x^y * log x. Of integers: a negative exponent is an error; 0^0 = 1."
        float (Real::pow(x, y)), int (Whole::power(x, y));
        cost ELEMENTARY;
        partials [
            (Select (Eq (Add (Abs x) (Abs y)) 0.0)
                0.0
                (Mul y (Pow (Select (Eq (Add (Abs x) (Abs y)) 0.0) 1.0 x) (Sub y 1.0)))) singular,
            (Select (Le x 0.0) 0.0 (Mul r (Log (Select (Le x 0.0) 1.0 x)))) singular
        ]
        on [[(0.2, 4.0), (-3.0, 3.0)]]
    }
    // The result tells which argument it is: with it the two comparisons decide all three cases, and those with NaN.
    Min "min" (x, y) -> same {
        "The smaller one; -0 is below 0; if one is NaN, the other one. The derivative belongs to the argument that \
         is the result; at ties each argument gets half."
        float (Real::minimum(x, y)), int (x.min(y));
        cost SIMPLE;
        partials [
            (Select (Eq x y) 0.5 (Select (Eq y r) 0.0 1.0)),
            (Select (Eq x y) 0.5 (Select (Eq y r) 1.0 0.0))
        ]
        on [[(0.0, 1.0), (2.0, 3.0)], [(2.0, 3.0), (0.0, 1.0)]]
    }
    Max "max" (x, y) -> same {
        "The larger one; -0 is below 0; if one is NaN, the other one. The derivative belongs to the argument that \
         is the result; at ties each argument gets half."
        float (Real::maximum(x, y)), int (x.max(y));
        cost SIMPLE;
        partials [
            (Select (Eq x y) 0.5 (Select (Eq y r) 0.0 1.0)),
            (Select (Eq x y) 0.5 (Select (Eq y r) 1.0 0.0))
        ]
        on [[(0.0, 1.0), (2.0, 3.0)], [(2.0, 3.0), (0.0, 1.0)]]
    }
    // ---- binary, float to same type ----
    // Halves would depend on brackets, and operators may be bracketed in any way; a choice does not.
    MinFirst "min_first" (x, y) -> same {
        "What `min` is in the operator of a reduction, scan or histogram: the same value, but at ties the derivative \
         belongs to the first argument."
        float (Real::minimum(x, y));
        cost SIMPLE;
        partials [
            (Select (Le x y) 1.0 (Select (IsNan y) 1.0 0.0)),
            (Select (Le x y) 0.0 (Select (IsNan y) 0.0 1.0))
        ]
        on [[(0.0, 1.0), (2.0, 3.0)], [(2.0, 3.0), (0.0, 1.0)]]
    }
    MaxFirst "max_first" (x, y) -> same {
        "What `max` is in the operator of a reduction, scan or histogram: the same value, but at ties the derivative \
         belongs to the first argument."
        float (Real::maximum(x, y));
        cost SIMPLE;
        partials [
            (Select (Le y x) 1.0 (Select (IsNan y) 1.0 0.0)),
            (Select (Le y x) 0.0 (Select (IsNan y) 0.0 1.0))
        ]
        on [[(0.0, 1.0), (2.0, 3.0)], [(2.0, 3.0), (0.0, 1.0)]]
    }
    StrongMul "strong_mul" (x, y) -> same {
        "Product of a tangent or cotangent x and a partial derivative y: 0 where x is exactly zero, whatever y is \
         (a strong zero); else the product. Its derivatives are those of the product, and strong as well."
        float (Real::strong_mul(x, y));
        cost SIMPLE; partials [y singular, x singular] on [[(-3.0, 3.0), (-3.0, 3.0)]]
    }
    MutualMul "mutual_mul" (x, y) -> same {
        "Product of a tangent or cotangent and a factor of a strong product: 0 where one of them is exactly zero, \
         whatever the other one is; else the product. Its derivatives are those of the product, and of this kind."
        float (Real::mutual_mul(x, y));
        cost SIMPLE; partials [y singular, x singular] on [[(-3.0, 3.0), (-3.0, 3.0)]]
    }
    // Dividing twice by the hypotenuse neither overflows nor underflows, unlike the sum of squares.
    Atan2 "atan2" (x, y) -> same {
        "Angle of the point whose ordinate is the first and abscissa the second argument. Derivative NaN at the \
         origin, where the angle has no limit."
        float (Real::atan2(x, y));
        cost ELEMENTARY;
        partials [
            (Div (Div y (Hypot x y)) (Hypot x y)) singular,
            (Neg (Div (Div x (Hypot x y)) (Hypot x y))) singular
        ]
        on [[(0.3, 3.0), (-3.0, 3.0)], [(-3.0, -0.3), (-3.0, 3.0)], [(-1.0, 1.0), (0.3, 3.0)]]
    }
    Hypot "hypot" (x, y) -> same {
        "Length of the vector with these components, without overflow. Kink at the origin: derivatives 0, as for abs."
        float (Real::hypot(x, y));
        cost ELEMENTARY;
        partials [(Select (Eq r 0.0) 0.0 (Div x r)), (Select (Eq r 0.0) 0.0 (Div y r))]
        on [[(0.3, 3.0), (-3.0, 3.0)], [(-3.0, 3.0), (-3.0, -0.3)]]
    }
    Polygamma "polygamma" (x, y) -> same {
        "The derivative of digamma at the second argument; the first is the order, a whole number given as a float \
         (0 is digamma itself, NaN if not whole) and not differentiated."
        float (Real::polygamma(x, y));
        cost SPECIAL;
        partials [0.0, (Polygamma (Add x 1.0) y) singular]
        on [[(0.0, 4.0), (0.3, 9.0)], [(1.0, 4.0), (-0.7, -0.3)], [(1.0, 4.0), (-2.7, -2.3)]]
    }
    // ---- binary, integer or bool to same type ----
    And "and" (x, y) -> same {
        "Conjunction, bit by bit."
        int (x & y), bool (x & y);
        cost SIMPLE; discrete
    }
    Or "or" (x, y) -> same {
        "Disjunction, bit by bit."
        int (x | y), bool (x | y);
        cost SIMPLE; discrete
    }
    Xor "xor" (x, y) -> same {
        "Exclusive disjunction, bit by bit."
        int (x ^ y), bool (x ^ y);
        cost SIMPLE; discrete
    }
    Shl "shl" (x, y) -> same {
        "Shift left by the second argument read as unsigned; 0 from the width on."
        int (Whole::shift_left(x, y));
        cost SIMPLE; discrete
    }
    Shr "shr" (x, y) -> same {
        "Shift right by the second argument read as unsigned, keeping the sign; 0 or -1 from the width on."
        int (Whole::shift_right(x, y));
        cost SIMPLE; discrete
    }
    // ---- binary, any scalar to bool ----
    Eq "eq" (x, y) -> test {
        "Equality. Of floats that of IEEE: NaN differs from itself, zeros are equal."
        float (x == y), int (x == y), bool (x == y);
        cost SIMPLE; discrete
    }
    Ne "ne" (x, y) -> test {
        "The negation of equality."
        float (x != y), int (x != y), bool (x != y);
        cost SIMPLE; discrete
    }
    Lt "lt" (x, y) -> test {
        "Less than; false is less than true; false with NaN."
        float (x < y), int (x < y), bool (!x & y);
        cost SIMPLE; discrete
    }
    Le "le" (x, y) -> test {
        "Less or equal; false with NaN."
        float (x <= y), int (x <= y), bool (!x | y);
        cost SIMPLE; discrete
    }
    // ---- ternary ----
    Select "select" ([x] y, z) -> same {
        "The second argument if the first (a boolean) is true, else the third. All are evaluated."
        float (if x { y } else { z }), int (if x { y } else { z }), bool (if x { y } else { z });
        cost SIMPLE;
        partials [0.0, (Select x 1.0 0.0), (Select x 0.0 1.0)]
        on [[(0.0, 1.0), (-3.0, 3.0), (-3.0, 3.0)]]
    }
}
