//! Single precision against the interpreter's double precision: `single [STRIDE [FUNCTION]]` walks over all bit patterns
//! of `f32` in that stride; stride 1 is all of them (some minutes for each function).
#![allow(clippy::print_stdout, reason = "a command")]

use pullback_maths::portable::One;
use pullback_maths::{Function, MAX_ULP_SINGLE, apply_single};
use pullback_prim::{Prim, Scalar, ScalarValue};

fn main() {
    let args: Vec<_> = std::env::args().skip(1).collect();
    let stride = args.first().and_then(|a| a.parse().ok()).unwrap_or(997);
    for function in Function::ALL.iter().copied() {
        let facts = function.facts();
        let Some(op) = facts.op.filter(|_| facts.arity == 1) else { continue };
        if args.get(1).is_some_and(|name| name != facts.name) {
            continue;
        }
        let (mut worst, mut place, mut count) = (0.0, 0.0, 0u64);
        for bits in (0..=u32::MAX).step_by(stride) {
            let x = f32::from_bits(bits);
            let ours = apply_single(&One, function, &[x]).expect("one argument");
            let value = Prim::Op(op, Scalar::F64).eval(&[ScalarValue::F64(f64::from(x))]);
            let error = distance(ours, value.expect("floats have values").as_f64());
            count += 1;
            if error > worst {
                (worst, place) = (error, x);
            }
        }
        let verdict = if worst <= MAX_ULP_SINGLE { "" } else { "  MORE THAN STATED" };
        println!("{:8} {count} arguments, {worst:.6} at {place:e}{verdict}", facts.name);
    }
}

/// In units in the last place of `exact`, as an `f32`; infinite where one is special and the other is not the same.
fn distance(computed: f32, exact: f64) -> f64 {
    let nearest = exact as f32;
    if nearest.is_nan() || nearest.is_infinite() || computed.is_nan() || computed.is_infinite() {
        let same = nearest.to_bits() == computed.to_bits() || (nearest.is_nan() && computed.is_nan());
        return if same { 0.0 } else { f64::INFINITY };
    }
    let field = (exact.to_bits() >> 52 & 0x7ff) as i32 - 1023;
    let unit = 2f64.powi((field - 23).max(-149));
    (f64::from(computed) - exact).abs() / unit
}
