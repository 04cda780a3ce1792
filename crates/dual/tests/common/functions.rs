//! The functions of the rules by their names. Where this is a module, `Scalar` is in the module around it.

use super::Scalar;

pub(crate) fn unary<S: Scalar>(name: &str, x: S) -> S {
    match name {
        "recip" => x.recip(),
        "sqrt" => x.sqrt(),
        "cbrt" => x.cbrt(),
        "exp" => x.exp(),
        "exp2" => x.exp2(),
        "exp_m1" => x.exp_m1(),
        "ln" => x.ln(),
        "log2" => x.log2(),
        "log10" => x.log10(),
        "ln_1p" => x.ln_1p(),
        "sin" => x.sin(),
        "cos" => x.cos(),
        "tan" => x.tan(),
        "asin" => x.asin(),
        "acos" => x.acos(),
        "atan" => x.atan(),
        "sinh" => x.sinh(),
        "cosh" => x.cosh(),
        "tanh" => x.tanh(),
        "asinh" => x.asinh(),
        "acosh" => x.acosh(),
        "atanh" => x.atanh(),
        "abs" => x.abs(),
        "sigmoid" => x.sigmoid(),
        _ => panic!("no such function: {name}"),
    }
}

pub(crate) fn binary<S: Scalar>(name: &str, x: S, y: S) -> S {
    match name {
        "add" => x + y,
        "sub" => x - y,
        "mul" => x * y,
        "div" => x / y,
        "pow" => x.pow(y),
        "atan2" => x.atan2(y),
        "hypot" => x.hypot(y),
        "max" => x.max(y),
        "min" => x.min(y),
        _ => panic!("no such function: {name}"),
    }
}
