//! The functions, by name.

use pullback_prim::Op;

use crate::lanes::{Lanes, SingleLanes};
use crate::{circular, error_function, exponential, gamma, hyperbolic, inverse, logarithm, power};

/// What is stated about a function.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Facts {
    /// Its name, that of the primitive if there is one.
    pub name: &'static str,
    /// The primitive with the same meaning.
    pub op: Option<Op>,
    /// The number of arguments, 1 or 2.
    pub arity: usize,
    /// The largest error for `f64`, in units in the last place of the exact result.
    pub max_ulp: f64,
}

/// A function as a type.
pub trait Named {
    /// Which one.
    const FUNCTION: Function;
    /// The function of the arguments, lane by lane; `None` if their number is not its arity.
    fn apply<L: Lanes>(cx: &L, args: &[L::F]) -> Option<L::F>;
}

/// What is done with a function as a type.
pub trait Visitor {
    /// What comes of it.
    type Out;
    /// Does it.
    fn visit<F: Named>(self) -> Self::Out;
}

macro_rules! functions {
    ($($variant:ident $name:literal, $op:expr, $max_ulp:literal, $module:ident::$function:ident($($x:ident),+);)*) => {
        /// A function of the crate.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        pub enum Function {
            $(#[doc = concat!("`", $name, "`")] $variant,)*
        }

        impl Function {
            /// All functions.
            pub const ALL: &[Function] = &[$(Function::$variant),*];

            /// What is stated about the function.
            pub fn facts(self) -> Facts {
                match self {
                    $(Function::$variant => {
                        Facts { name: $name, op: $op, arity: [$(stringify!($x)),+].len(), max_ulp: $max_ulp }
                    })*
                }
            }
        }

        /// The functions as types, for code that is compiled once for each of them.
        pub mod named {
            $(#[doc = concat!("`", $name, "`")]
            #[derive(Clone, Copy, Debug)]
            pub struct $variant;)*
        }

        $(impl Named for named::$variant {
            const FUNCTION: Function = Function::$variant;
            #[inline(always)]
            fn apply<L: Lanes>(cx: &L, args: &[L::F]) -> Option<L::F> {
                match args {
                    &[$($x),+] => Some($module::$function(cx, $($x),+)),
                    _ => None,
                }
            }
        })*

        impl Function {
            /// What a visitor makes of the function as a type.
            pub fn visit<V: Visitor>(self, visitor: V) -> V::Out {
                match self {
                    $(Function::$variant => visitor.visit::<named::$variant>(),)*
                }
            }
        }

        /// The function of the arguments, lane by lane; `None` if their number is not its arity.
        #[inline(always)]
        pub fn apply<L: Lanes>(cx: &L, function: Function, args: &[L::F]) -> Option<L::F> {
            match (function, args) {
                $((Function::$variant, &[$($x),+]) => Some($module::$function(cx, $($x),+)),)*
                _ => None,
            }
        }
    };
}

/// The function of `f32` arguments: computed in `f64` and rounded once more, so that the error is hardly more than half a
/// unit in the last place; `None` if their number is not its arity.
#[inline(always)]
pub fn apply_single<L: SingleLanes>(cx: &L, function: Function, args: &[L::S]) -> Option<L::S> {
    let wide = match *args {
        [x] => apply(cx, function, &[cx.widen(x)]),
        [x, y] => apply(cx, function, &[cx.widen(x), cx.widen(y)]),
        _ => None,
    };
    wide.map(|value| cx.narrow(value))
}

/// The largest error of [`apply_single`], in units in the last place of the exact result.
pub const MAX_ULP_SINGLE: f64 = 0.5001;

functions! {
    Exp "exp", Some(Op::Exp), 1.2, exponential::exp(x);
    Exp2 "exp2", None, 1.2, exponential::exp2(x);
    Expm1 "expm1", Some(Op::Expm1), 1.6, exponential::expm1(x);
    Log "log", Some(Op::Log), 1.2, logarithm::log(x);
    Log2 "log2", Some(Op::Log2), 1.0, logarithm::log2(x);
    Log10 "log10", Some(Op::Log10), 1.0, logarithm::log10(x);
    Log1p "log1p", Some(Op::Log1p), 1.0, logarithm::log1p(x);
    Sin "sin", Some(Op::Sin), 1.0, circular::sin(x);
    Cos "cos", Some(Op::Cos), 1.0, circular::cos(x);
    Tan "tan", Some(Op::Tan), 1.2, circular::tan(x);
    Asin "asin", Some(Op::Asin), 1.0, inverse::asin(x);
    Acos "acos", Some(Op::Acos), 1.0, inverse::acos(x);
    Atan "atan", Some(Op::Atan), 1.0, inverse::atan(x);
    Atan2 "atan2", Some(Op::Atan2), 1.6, inverse::atan2(y, x);
    Sinh "sinh", Some(Op::Sinh), 1.6, hyperbolic::sinh(x);
    Cosh "cosh", Some(Op::Cosh), 1.0, hyperbolic::cosh(x);
    Tanh "tanh", Some(Op::Tanh), 1.8, hyperbolic::tanh(x);
    Asinh "asinh", Some(Op::Asinh), 1.0, hyperbolic::asinh(x);
    Acosh "acosh", Some(Op::Acosh), 1.0, hyperbolic::acosh(x);
    Atanh "atanh", Some(Op::Atanh), 1.0, hyperbolic::atanh(x);
    Pow "pow", Some(Op::Pow), 1.3, power::pow(x, y);
    Cbrt "cbrt", Some(Op::Cbrt), 1.0, power::cbrt(x);
    Hypot "hypot", Some(Op::Hypot), 1.0, power::hypot(x, y);
    Erf "erf", Some(Op::Erf), 1.5, error_function::erf(x);
    Erfc "erfc", Some(Op::Erfc), 1.5, error_function::erfc(x);
    Lgamma "lgamma", Some(Op::Lgamma), 1.0, gamma::lgamma(x);
    Sigmoid "sigmoid", None, 1.0, exponential::sigmoid(x);
}

impl Function {
    /// The function that evaluates the primitive.
    pub fn of_op(op: Op) -> Option<Function> {
        Function::ALL.iter().copied().find(|f| f.facts().op == Some(op))
    }

    /// The function with this name.
    pub fn from_name(name: &str) -> Option<Function> {
        Function::ALL.iter().copied().find(|f| f.facts().name == name)
    }
}
