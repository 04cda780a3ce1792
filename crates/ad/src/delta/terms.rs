//! The type of delta terms, and the terms of primitives. No rules.
//!
//! ```text
//! Delta = #zero | #input Z | #add Delta Delta | #scale f64 Delta | #share Z Delta
//!       | #strong f64 Delta        as #scale, by a partial derivative that may be infinite: zeros stop there
//! ```

use crate::dual_numbers::forward::{Forward, Operation, Res, Run, Stage};
use pullback_lambda::{Builder, Exp, Term, Type, TypeId, Var, Variant};
use pullback_prim::{Op, Partial};

/// The alternatives, in their order.
pub(super) const ZERO: usize = 0;
pub(super) const INPUT: usize = 1;
pub(super) const ADD: usize = 2;
pub(super) const SCALE: usize = 3;
pub(super) const SHARE: usize = 4;
pub(super) const STRONG: usize = 5;

/// Declares the type.
pub(super) fn declare(b: &mut Builder<'_>) -> TypeId {
    let count = b.program.types.len();
    let id = b.declare_type(&format!("delta_{count}"));
    let delta = Type::Named(id);
    let variant = |name: &str, fields: Vec<Type>| Variant { name: name.into(), fields };
    let variants = vec![
        variant("zero", Vec::new()),
        variant("input", vec![Type::I64]),
        variant("add", vec![delta.clone(), delta.clone()]),
        variant("scale", vec![Type::F64, delta.clone()]),
        variant("share", vec![Type::I64, delta.clone()]),
        variant("strong", vec![Type::F64, delta]),
    ];
    b.define_type(id, variants);
    id
}

/// A term.
pub(super) fn term(b: &mut Builder<'_>, delta: TypeId, alternative: usize, fields: Vec<Term>) -> Term {
    b.term(Exp::Inject(Type::Named(delta), alternative, fields))
}

/// `#zero`
pub(super) fn zero<C: Stage>(f: &mut Forward<'_, C>, delta: TypeId) -> Var {
    let zero = term(&mut f.b, delta, ZERO, Vec::new());
    f.emit(zero, "delta")
}

/// `#input i`
pub(super) fn input<C: Stage>(f: &mut Forward<'_, C>, delta: TypeId, i: Var) -> Var {
    let i = f.b.var(i);
    let input = term(&mut f.b, delta, INPUT, vec![i]);
    f.emit(input, "delta")
}

/// The product of a tangent or cotangent with the factor of a `#scale` or `#strong`.
pub(super) fn times(b: &mut Builder<'_>, alternative: usize, x: Term, factor: Term) -> Term {
    b.op2(if alternative == STRONG { Op::StrongMul } else { Op::Mul }, x, factor)
}

/// `a1 d1 + .. + an dn`: what a primitive makes of the terms of its arguments. A factor that is one is left out.
pub(super) fn linear<C: Stage>(f: &mut Forward<'_, C>, delta: TypeId, op: &Operation) -> Term {
    let mut sum: Option<Term> = None;
    for (k, slope) in op.operands() {
        let alternative = if op.is_strong() { STRONG } else { SCALE };
        let part = f.by_choices(op, slope, &mut |f, partial| match partial {
            None => term(&mut f.b, delta, ZERO, Vec::new()),
            Some(Partial::Const(1.0)) => f.beside(op, k),
            Some(partial) => {
                let (factor, d) = (f.factor(op, partial), f.beside(op, k));
                term(&mut f.b, delta, alternative, vec![factor, d])
            }
        });
        sum = Some(match sum {
            Some(sum) => term(&mut f.b, delta, ADD, vec![sum, part]),
            None => part,
        });
    }
    match sum {
        Some(sum) => sum,
        None => term(&mut f.b, delta, ZERO, Vec::new()),
    }
}

/// `z1 d1 + .. + zm dm`, over the numbers of the result, without those with a cotangent of zero.
pub(super) fn total<C: Stage>(f: &mut Forward<'_, C>, delta: TypeId, run: &Run<'_>) -> Res<Var> {
    let zero = zero(f, delta);
    f.results(run.result, run.result_type, run.seed, zero, &mut |f, d, z, rest| {
        let (z, d, rest) = (f.b.var(z), f.b.var(d), f.b.var(rest));
        let scaled = term(&mut f.b, delta, SCALE, vec![z.clone(), d]);
        let sum = term(&mut f.b, delta, ADD, vec![scaled, rest.clone()]);
        let zero = f.b.f64(0.0);
        let stops = f.b.op2(Op::Eq, z, zero);
        let sum = f.b.if_(stops, rest, sum);
        f.emit(sum, "delta")
    })
}
