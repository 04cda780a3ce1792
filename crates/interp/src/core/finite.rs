//! Finds the first scalar operation that makes a NaN or an infinity out of finite numbers.
//!
//! Runs only where [`super::Options::check_nan`] asks for it. What is not finite already, in arguments or constants, is the
//! program's own wish and no finding; a value computed from it is none either.

use super::code::Simple;
use super::machine::{Machine, Res};
use super::num::{Domain, Num};
use super::value::Val;
use pullback_base::{RuntimeError, RuntimeErrorKind};
use pullback_prim::{Op, Prim, ScalarValue};

impl<D: Domain> Machine<'_, D> {
    /// An error if `value`, which `exp` has just computed, is not finite while all operands are.
    pub(super) fn check_finite(&self, exp: &Simple, value: &Val<D>, rule: Option<&'static str>) -> Res<()> {
        let Val::Num(result) = value else { return Ok(()) };
        let result = result.primal();
        if is_finite(result) {
            return Ok(());
        }
        // Scalar operands are read, not moved: they are still in their slots.
        let (prim, operands) = match exp {
            Simple::Prim1(prim, x) => (*prim, vec![self.num(*x)?]),
            Simple::Prim2(prim, x, y) => (*prim, vec![self.num(*x)?, self.num(*y)?]),
            Simple::PrimN(prim, args) => (*prim, args.iter().map(|&a| self.num(a)).collect::<Res<_>>()?),
            _ => return Ok(()),
        };
        let operands: Vec<ScalarValue> = operands.iter().map(Num::primal).collect();
        if operands.iter().all(|&x| is_finite(x)) {
            Err(Box::new(found(prim, &operands, result, rule)))
        } else {
            Ok(())
        }
    }
}

fn is_finite(x: ScalarValue) -> bool {
    !x.scalar().is_float() || x.as_f64().is_finite()
}

fn found(
    prim: Prim,
    operands: &[ScalarValue],
    result: ScalarValue,
    rule: Option<&'static str>,
) -> RuntimeError {
    let show = |x: &ScalarValue| {
        if x.scalar().is_float() { format!("{:?}", x.as_f64()) } else { x.as_i64().to_string() }
    };
    let name = match prim {
        Prim::Op(op, _) => op.name().to_string(),
        Prim::Convert(from, to) => format!("{}_to_{}", from.name(), to.name()),
    };
    let operands: Vec<String> = operands.iter().map(show).collect();
    let what = format!("{name}({}) = {}", operands.join(", "), show(&result));
    let message = match rule {
        None => format!("this operation makes {} out of finite numbers: {what}", show(&result)),
        Some(rule) => format!(
            "the derivative of this operation is not finite (rule {rule}): {what}, out of finite numbers"
        ),
    };
    let hint = match rule {
        Some(_) => DERIVATIVE.to_string(),
        None => primal_hint(prim).to_string(),
    };
    RuntimeError { hint: Some(hint), ..RuntimeError::new(RuntimeErrorKind::NotFinite, message) }
}

const DERIVATIVE: &str = "the function has no finite slope here; keep the argument away from this point before the \
    operation and choose afterwards: `let safe = if ok then x else 1 in if ok then f safe else 0`";

fn primal_hint(prim: Prim) -> &'static str {
    match prim {
        Prim::Op(Op::Div, _) => "the divisor is zero or tiny: guard it, as in `if y != 0 then x / y else 0`",
        Prim::Op(Op::Log | Op::Log2 | Op::Log10 | Op::Log1p, _) => {
            "the logarithm needs a positive argument: clamp it, or choose a safe one before the call"
        }
        Prim::Op(Op::Sqrt | Op::Asin | Op::Acos | Op::Acosh | Op::Atanh, _) => {
            "the argument is outside of the domain of the function: clamp it before the call"
        }
        Prim::Op(Op::Exp | Op::Expm1 | Op::Cosh | Op::Sinh, _) => {
            "the exponential overflows: subtract the largest argument first, as log-sum-exp does"
        }
        Prim::Convert(..) => "the number is too large for the smaller type",
        Prim::Op(..) => "the result is too large or has no value: scale the operands, or guard the operation",
    }
}
