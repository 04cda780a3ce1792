//! Dual numbers of any nesting.
//!
//! A number is a real or, for some level, a pair of a value and a tangent whose own levels are lower. Each derivative that is
//! evaluated draws a level of its own, higher than all before, so perturbations of nested derivatives cannot be confused.
//! A number without a level has a tangent that is statically zero: it never makes a NaN out of an infinite partial.

use crate::core::code::DiffCode;
use crate::core::machine::{Machine, Res};
use crate::core::num::{Domain, Num, eval_in_table};
use crate::core::value::Val;
use pullback_prim::{Op, Partial, Prim, PrimError, Product, Scalar};
use std::rc::Rc;

/// A dual number, or a real one. `f32` numbers are kept as `f64` with rounded primal parts and unrounded tangents.
#[derive(Clone, Debug)]
pub(crate) enum Number {
    Real(f64),
    /// Value and tangent are real.
    Flat {
        level: u32,
        value: f64,
        tangent: f64,
    },
    Deep(Rc<Deep>),
}

/// A dual number whose parts are dual themselves.
#[derive(Debug)]
pub(crate) struct Deep {
    level: u32,
    value: Number,
    tangent: Number,
}

impl Number {
    /// The pair of value and tangent at a level, which is above all levels of both.
    pub(crate) fn pair(level: u32, value: Number, tangent: Number) -> Number {
        match (&value, &tangent) {
            (Number::Real(v), Number::Real(t)) => Number::Flat { level, value: *v, tangent: *t },
            _ => Number::Deep(Rc::new(Deep { level, value, tangent })),
        }
    }
    fn level(&self) -> u32 {
        match self {
            Number::Real(_) => 0,
            Number::Flat { level, .. } => *level,
            Number::Deep(d) => d.level,
        }
    }
    /// The value and, if there is one, the tangent at a level that is not below that of the number.
    pub(crate) fn split(&self, at: u32) -> (Number, Option<Number>) {
        match self {
            Number::Flat { level, value, tangent } if *level == at => {
                (Number::Real(*value), Some(Number::Real(*tangent)))
            }
            Number::Deep(d) if d.level == at => (d.value.clone(), Some(d.tangent.clone())),
            Number::Real(_) | Number::Flat { .. } | Number::Deep(_) => (self.clone(), None),
        }
    }
    /// The real part.
    pub(crate) fn primal(&self) -> f64 {
        let mut x = self;
        loop {
            match x {
                Number::Real(v) => return *v,
                Number::Flat { value, .. } => return *value,
                Number::Deep(d) => x = &d.value,
            }
        }
    }
    fn is_real(&self) -> bool {
        matches!(self, Number::Real(_))
    }
    pub(crate) fn add(&self, other: &Number) -> Number {
        if let (Number::Real(x), Number::Real(y)) = (self, other) {
            return Number::Real(x + y);
        }
        let level = self.level().max(other.level());
        let ((x, dx), (y, dy)) = (self.split(level), other.split(level));
        let tangent = match (dx, dy) {
            (Some(dx), Some(dy)) => dx.add(&dy),
            (Some(d), None) | (None, Some(d)) => d,
            (None, None) => Number::Real(0.0),
        };
        Number::pair(level, x.add(&y), tangent)
    }
    pub(crate) fn mul(&self, other: &Number) -> Number {
        if let (Number::Real(x), Number::Real(y)) = (self, other) {
            return Number::Real(x * y);
        }
        let level = self.level().max(other.level());
        let ((x, dx), (y, dy)) = (self.split(level), other.split(level));
        let left = dx.map(|dx| dx.mul(&y));
        let right = dy.map(|dy| x.mul(&dy));
        let tangent = match (left, right) {
            (Some(l), Some(r)) => l.add(&r),
            (Some(d), None) | (None, Some(d)) => d,
            (None, None) => Number::Real(0.0),
        };
        Number::pair(level, x.mul(&y), tangent)
    }
    /// The product of a tangent or cotangent with a slope: nothing where the tangent is exactly zero, however large the slope is.
    pub(crate) fn strong(&self, slope: &Number) -> Number {
        self.stopping(slope, &|x, y| if x == 0.0 { 0.0 } else { x * y }, &Number::strong)
    }
    /// The same where each of the two may be the tangent.
    fn mutual(&self, other: &Number) -> Number {
        self.stopping(other, &|x, y| if x == 0.0 || y == 0.0 { 0.0 } else { x * y }, &Number::mutual)
    }
    /// A product with rules of its own for reals, and for the term in which the first factor varies.
    fn stopping(
        &self,
        other: &Number,
        reals: &dyn Fn(f64, f64) -> f64,
        first: &dyn Fn(&Number, &Number) -> Number,
    ) -> Number {
        if let (Number::Real(x), Number::Real(y)) = (self, other) {
            return Number::Real(reals(*x, *y));
        }
        let level = self.level().max(other.level());
        let ((x, dx), (y, dy)) = (self.split(level), other.split(level));
        let terms = [dx.map(|dx| first(&dx, &y)), dy.map(|dy| x.mutual(&dy))];
        let tangent = terms.into_iter().flatten().reduce(|a, b| a.add(&b));
        Number::pair(level, x.stopping(&y, reals, first), tangent.unwrap_or(Number::Real(0.0)))
    }
}

/// What an evaluation on dual numbers remembers.
#[derive(Debug, Default)]
pub(crate) struct DualState {
    /// The highest level drawn.
    levels: u32,
    /// How often a primitive was evaluated at or near a point where it is not differentiable.
    pub(crate) kinks: u64,
}

impl DualState {
    /// A level above all others.
    pub(crate) fn fresh_level(&mut self) -> u32 {
        self.levels += 1;
        self.levels
    }
}

/// Dual numbers as a domain.
#[derive(Clone, Debug)]
pub(crate) struct Dual;

impl Domain for Dual {
    type F32 = Number;
    type F64 = Number;
    type State = DualState;

    fn f32(x: f32) -> Number {
        Number::Real(x.into())
    }
    fn f64(x: f64) -> Number {
        Number::Real(x)
    }
    fn primal32(x: &Number) -> f32 {
        x.primal() as f32
    }
    fn primal64(x: &Number) -> f64 {
        x.primal()
    }
    fn add32(x: &Number, y: &Number) -> Number {
        round_primal(&x.add(y))
    }
    fn add64(x: &Number, y: &Number) -> Number {
        x.add(y)
    }
    fn prim(
        state: &mut DualState,
        prim: Prim,
        args: &[Num<Dual>],
        inside: bool,
    ) -> Result<Num<Dual>, PrimError> {
        // An operator is bracketed in any way: of equal arguments it chooses the first.
        let prim = if inside { prim.in_operator() } else { prim };
        if is_near_kink(prim, args) {
            state.kinks += 1;
        }
        eval(prim, args)
    }
    fn stop_gradient(machine: &mut Machine<'_, Dual>, value: Val<Dual>) -> Res<Val<Dual>> {
        super::derive::without_tangents(machine, value)
    }
    fn differentiate(machine: &mut Machine<'_, Dual>, code: &DiffCode) -> Res<()> {
        super::derive::from_dual(machine, code)
    }
}

/// Rounds the primal part to `f32`; tangents keep their digits.
fn round_primal(x: &Number) -> Number {
    match x {
        Number::Real(x) => Number::Real((*x as f32).into()),
        Number::Flat { level, value, tangent } => {
            Number::Flat { level: *level, value: (*value as f32).into(), tangent: *tangent }
        }
        Number::Deep(d) => Number::pair(d.level, round_primal(&d.value), d.tangent.clone()),
    }
}

fn float(x: &Num<Dual>) -> Option<&Number> {
    match x {
        Num::F32(x) | Num::F64(x) => Some(x),
        Num::I8(_)
        | Num::I16(_)
        | Num::I32(_)
        | Num::I64(_)
        | Num::U8(_)
        | Num::U16(_)
        | Num::U32(_)
        | Num::U64(_)
        | Num::Bool(_) => None,
    }
}

/// A scalar of a float type.
fn wrap(scalar: Scalar, x: Number) -> Num<Dual> {
    if scalar == Scalar::F32 { Num::F32(x) } else { Num::F64(x) }
}

/// The value of a primitive and its tangent at the highest level of its arguments, both in lower levels.
fn eval(prim: Prim, args: &[Num<Dual>]) -> Result<Num<Dual>, PrimError> {
    // Choosing between numbers chooses their tangents; the product of a partial of zero with an infinity would not.
    if let (Prim::Op(Op::Select, _), [Num::Bool(c), x, y]) = (prim, args) {
        return Ok(if *c { x.clone() } else { y.clone() });
    }
    let level = args.iter().filter_map(float).map(Number::level).max().unwrap_or(0);
    let partials = prim.partials();
    let (true, Some(partials)) = (level > 0, partials) else {
        return Ok(Num::lift(eval_in_table(prim, args)?));
    };
    let mut values = Vec::with_capacity(args.len());
    let mut tangents = Vec::with_capacity(args.len());
    for arg in args {
        let (value, tangent) = match arg {
            Num::F32(x) => {
                let (value, tangent) = x.split(level);
                (Num::F32(value), tangent)
            }
            Num::F64(x) => {
                let (value, tangent) = x.split(level);
                (Num::F64(value), tangent)
            }
            discrete => (discrete.clone(), None),
        };
        values.push(value);
        tangents.push(tangent);
    }
    let result = eval(prim, &values)?;
    let Some(value) = float(&result) else {
        return Ok(result);
    };
    let context = Context { values: &values, result: &result };
    let mut tangent: Option<Number> = None;
    for (i, (partial, direction)) in partials.iter().zip(tangents).enumerate() {
        let Some(direction) = direction else { continue };
        let term = match context.chosen(partial)? {
            Partial::Const(0.0) => continue,
            Partial::Const(1.0) => direction,
            partial => {
                let slope = context.partial(partial)?;
                let slope = float(&slope).ok_or(PrimError::IllTyped)?;
                match prim.product(i, &[]) {
                    Product::Plain => slope.mul(&direction),
                    Product::Strong => direction.strong(slope),
                    Product::Mutual => direction.mutual(slope),
                }
            }
        };
        tangent = Some(match tangent {
            Some(sum) => sum.add(&term),
            None => term,
        });
    }
    let scalar = result.scalar();
    Ok(match tangent {
        Some(tangent) => wrap(scalar, Number::pair(level, value.clone(), tangent)),
        None => result,
    })
}

/// Where a partial is evaluated: in lower levels than the primitive, so nested derivatives differentiate partials.
struct Context<'a> {
    values: &'a [Num<Dual>],
    result: &'a Num<Dual>,
}

impl Context<'_> {
    /// What a partial that chooses between others chooses here.
    fn chosen<'p>(&self, mut partial: &'p Partial) -> Result<&'p Partial, PrimError> {
        while let Partial::Op(Op::Select, [condition, yes, no]) = partial {
            let Num::Bool(holds) = self.partial(condition)? else { return Err(PrimError::IllTyped) };
            partial = if holds { yes } else { no };
        }
        Ok(partial)
    }
    fn partial(&self, partial: &Partial) -> Result<Num<Dual>, PrimError> {
        // In double precision, so that the oracle is more exact than what it judges.
        let widen = |x: &Num<Dual>| match x {
            Num::F32(x) => Num::F64(x.clone()),
            other => other.clone(),
        };
        match partial {
            Partial::Arg(i) => self.values.get(usize::from(*i)).map(widen).ok_or(PrimError::IllTyped),
            Partial::Result => Ok(widen(self.result)),
            Partial::Const(c) => Ok(Num::F64(Number::Real(*c))),
            Partial::Op(op, operands) => {
                let operands = operands.iter().map(|p| self.partial(p)).collect::<Result<Vec<_>, _>>()?;
                eval(Prim::Op(*op, Scalar::F64), &operands)
            }
        }
    }
}

/// How close to a kink counts as near, relative to the arguments.
const NEAR: f64 = 1e-6;

/// Whether a primitive that carries derivatives is evaluated where it has a kink or a jump, or close to that.
fn is_near_kink(prim: Prim, args: &[Num<Dual>]) -> bool {
    let active = args.iter().filter_map(float).any(|x| !x.is_real());
    if !active {
        return false;
    }
    let x = |i: usize| args.get(i).map_or(f64::NAN, |a: &Num<Dual>| a.primal().as_f64());
    let close = |a: f64, b: f64| (a - b).abs() <= NEAR * (1.0 + a.abs().min(b.abs()));
    match prim {
        Prim::Convert(_, to) => !to.is_float() && close(x(0), x(0).round()),
        Prim::Op(op, _) => match op {
            Op::Eq | Op::Ne | Op::Lt | Op::Le | Op::Min | Op::Max | Op::MinFirst | Op::MaxFirst => {
                close(x(0), x(1))
            }
            Op::Abs | Op::Sgn | Op::Sqrt | Op::Cbrt | Op::Log | Op::Log2 | Op::Log10 => close(x(0), 0.0),
            Op::Log1p => close(x(0), -1.0),
            Op::Floor | Op::Ceil | Op::Trunc => close(x(0), x(0).round()),
            Op::Round => close(x(0).abs().fract(), 0.5),
            Op::Div => close(x(1), 0.0),
            Op::Mod | Op::Quot | Op::Rem => close(x(0) / x(1), (x(0) / x(1)).round()),
            Op::Pow => close(x(0), 0.0),
            Op::Atan2 | Op::Hypot => close(x(0), 0.0) && close(x(1), 0.0),
            Op::Asin | Op::Acos | Op::Atanh => close(x(0).abs(), 1.0),
            Op::Acosh => close(x(0), 1.0),
            Op::Tan => x(0).cos().abs() <= NEAR,
            Op::Lgamma | Op::Gamma | Op::Digamma => x(0) <= NEAR && close(x(0), x(0).round()),
            Op::Polygamma => x(1) <= NEAR && close(x(1), x(1).round()),
            Op::Neg
            | Op::Exp
            | Op::Expm1
            | Op::Sin
            | Op::Cos
            | Op::Atan
            | Op::Sinh
            | Op::Cosh
            | Op::Tanh
            | Op::Asinh
            | Op::Erf
            | Op::Erfc
            | Op::IsNan
            | Op::IsInf
            | Op::Not
            | Op::Add
            | Op::Sub
            | Op::Mul
            | Op::StrongMul
            | Op::MutualMul
            | Op::And
            | Op::Or
            | Op::Xor
            | Op::Shl
            | Op::Shr
            | Op::Select => false,
        },
    }
}
