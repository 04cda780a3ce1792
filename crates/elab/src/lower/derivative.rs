//! `vjp`, `jvp` and custom rules.
//!
//! In lambda a cotangent has the type of its value; in core only active leaves have one, and that of a sum has the
//! further alternative 0, `#none`, for zero. The conversions between both are here. Discrete parts of a cotangent are
//! zeros of the value's shape.

use super::value::Val;
use super::{Lowered, Lowerer};
use pullback_base::Span;
use pullback_core as core;
use pullback_core::{Atom, Exp, Type};
use pullback_lambda as lambda;
use pullback_lambda::Term;

impl Lowerer<'_, '_> {
    /// The function of a derivative as a core lambda over the leaves of its argument.
    fn derivative_operand(
        &mut self,
        f: &Val,
        arg: &lambda::Type,
        result: &lambda::Type,
        span: Option<Span>,
    ) -> Lowered<core::Lam> {
        let params = vec![self.param(arg, false, span)?];
        self.operand(f, params, span, |l, value| l.coerced(result, value, span))
    }
    fn result_type<'t>(&self, f: &'t Term) -> Lowered<&'t lambda::Type> {
        match f.ty() {
            lambda::Type::Fun(_, result) => Ok(result),
            _ => self.bug(f.span(), "a derivative of a value that is no function"),
        }
    }
    /// Refuses values whose cotangents core cannot hold.
    fn differentiable(&self, leaves: &[Type], span: Option<Span>) -> Lowered<()> {
        if leaves.iter().any(|t| self.b.program.cotangent(t).is_err()) {
            return self.unsupported(span, "the derivative at a recursive type that holds floats");
        }
        Ok(())
    }
    fn active(&self, ty: &Type) -> bool {
        self.b.program.is_active(ty)
    }
    /// The seeds of the active leaves.
    fn seeds(&mut self, types: &[Type], seed: &[Atom], span: Option<Span>) -> Lowered<Vec<Atom>> {
        let mut out = Vec::new();
        for (t, &s) in types.iter().zip(seed) {
            if self.active(t) {
                out.push(self.core_cotangent(s, span)?);
            }
        }
        Ok(out)
    }
    /// Cotangents of the types of the values themselves, from those of the active leaves; `seeds` of each if there are many.
    fn unseed(
        &mut self,
        values: &[Atom],
        cotangents: &mut dyn Iterator<Item = Atom>,
        seeds: Option<Atom>,
        span: Option<Span>,
    ) -> Lowered<Vec<Atom>> {
        let mut out = Vec::new();
        for &x in values {
            let ty = self.b.ty(x);
            let next = if self.active(&ty) { cotangents.next() } else { None };
            out.push(match (next, seeds) {
                (Some(ct), None) => self.source_cotangent(ct, x, span)?,
                (Some(stack), Some(_)) if self.b.elem(stack) == ty => stack,
                (Some(stack), Some(_)) => {
                    self.map_leaves(&[stack], span, |l, elems| l.source_cotangent(elems[0], x, span))?
                }
                (None, None) => self.zero_like(x, span)?,
                (None, Some(k)) => {
                    let zero = self.zero_like(x, span)?;
                    self.b.emit(Exp::Replicate(vec![k], zero), "zeros")
                }
            });
        }
        Ok(out)
    }
    /// The number of seeds, if there are many.
    fn seed_count(
        &mut self,
        d: &lambda::Derivative,
        seed: &[Atom],
        span: Option<Span>,
    ) -> Lowered<Option<Atom>> {
        Ok(match d.seeds {
            lambda::Seeds::One => None,
            lambda::Seeds::Many => Some(self.outer_size(seed, span)?),
        })
    }
    /// The leaves of an array of values of these types: one array of units if there are none.
    fn stacked(&mut self, derivatives: Vec<Atom>, seeds: Option<Atom>) -> Vec<Atom> {
        match seeds {
            Some(k) if derivatives.is_empty() => {
                let unit = self.unit();
                vec![self.b.emit(Exp::Replicate(vec![k], unit), "units")]
            }
            _ => derivatives,
        }
    }

    pub(super) fn vjp(&mut self, d: &lambda::Derivative, span: Option<Span>) -> Lowered<Vec<Atom>> {
        let f = self.term(&d.f)?;
        let args = self.data(&d.arg)?.to_vec();
        let seed = self.data(&d.seed)?;
        let result = self.result_type(&d.f)?;
        let types = self.leaves_at(result, span)?;
        self.differentiable(&types, span)?;
        self.differentiable(&args.iter().map(|&a| self.b.ty(a)).collect::<Vec<_>>(), span)?;
        let lam = self.derivative_operand(&f, d.arg.ty(), result, span)?;
        let cotangents = self.seeds(&types, &seed, span)?;
        let seeds = self.seed_count(d, &seed, span)?;
        let exp = Exp::Vjp { lam, args: args.clone(), cotangents, seeds, algorithm: d.algorithm.clone() };
        let none = matches!(core::typing::result_types(self.b.program, &exp), Ok(types) if types.is_empty());
        let emitted = if none { Vec::new() } else { self.emit_all(exp, "r") };
        let (values, bars) = emitted.split_at(types.len());
        let x_bars = self.unseed(&args, &mut bars.iter().copied(), seeds, span)?;
        Ok([values.to_vec(), self.stacked(x_bars, seeds)].concat())
    }

    pub(super) fn jvp(&mut self, d: &lambda::Derivative, span: Option<Span>) -> Lowered<Vec<Atom>> {
        let f = self.term(&d.f)?;
        let args = self.data(&d.arg)?.to_vec();
        let seed = self.data(&d.seed)?;
        let result = self.result_type(&d.f)?;
        let types = self.leaves_at(result, span)?;
        let arg_types: Vec<Type> = args.iter().map(|&a| self.b.ty(a)).collect();
        self.differentiable(&types, span)?;
        self.differentiable(&arg_types, span)?;
        let lam = self.derivative_operand(&f, d.arg.ty(), result, span)?;
        let tangents = self.seeds(&arg_types, &seed, span)?;
        let seeds = self.seed_count(d, &seed, span)?;
        let exp = Exp::Jvp { lam, args, tangents, seeds, algorithm: d.algorithm.clone() };
        if types.is_empty() {
            return Ok(self.stacked(Vec::new(), seeds));
        }
        let results = self.emit_all(exp, "r");
        let (values, dots) = results.split_at(types.len());
        let y_dots = self.unseed(values, &mut dots.iter().copied(), seeds, span)?;
        Ok([values.to_vec(), self.stacked(y_dots, seeds)].concat())
    }

    /// `has_tape`: the first component of the function's result is what it leaves for the rule.
    pub(super) fn custom(
        &mut self,
        (f, rule, arg): (&Term, &Term, &Term),
        has_tape: bool,
        span: Option<Span>,
    ) -> Lowered<Vec<Atom>> {
        let function = self.term(f)?;
        let rule = self.term(rule)?;
        let args = self.data(arg)?.to_vec();
        let result = self.result_type(f)?;
        let arg_types: Vec<Type> = args.iter().map(|&a| self.b.ty(a)).collect();
        let result_types = self.leaves_at(result, span)?;
        self.differentiable(&arg_types, span)?;
        self.differentiable(&result_types, span)?;
        let primal = self.derivative_operand(&function, arg.ty(), result, span)?;
        let mut params: Vec<core::Var> = arg_types.iter().map(|t| self.b.fresh(t.clone(), "x")).collect();
        let xs: Vec<Atom> = params.iter().map(|&v| v.into()).collect();
        let ys: Vec<core::Var> = result_types.iter().map(|t| self.b.fresh(t.clone(), "y")).collect();
        params.extend(&ys);
        let ys: Vec<Atom> = ys.into_iter().map(Atom::Var).collect();
        let tape = match result {
            lambda::Type::Tuple(parts) if has_tape => self.leaves_at(&parts[0], span)?.len(),
            _ => 0,
        };
        let mut bars = Vec::new();
        for t in &result_types[tape..] {
            if let Ok(Some(ct)) = self.b.program.cotangent(t) {
                bars.push(self.b.fresh(ct, "bar"));
            }
        }
        params.extend(&bars);
        let body = self.body(span, |l| l.rule_body(&rule, (&xs, &ys, tape), &bars, arg.ty(), span))?;
        let exp = Exp::Custom { primal, rule: core::Lam { params, body }, args, tape };
        if result_types.is_empty() {
            return Ok(Vec::new());
        }
        Ok(self.emit_all(exp, "r"))
    }

    /// The body of a custom rule: the user's rule between the two forms of cotangents. The first `tape` results have none.
    fn rule_body(
        &mut self,
        rule: &Val,
        (xs, ys, tape): (&[Atom], &[Atom], usize),
        bars: &[core::Var],
        arg: &lambda::Type,
        span: Option<Span>,
    ) -> Lowered<Vec<Atom>> {
        let mut next = bars.iter().map(|&v| Atom::from(v));
        let y_bar = self.unseed(&ys[tape..], &mut next, None, span)?;
        let step = self.apply(rule, Val::data(xs), span)?;
        let step = self.apply(&step, Val::data(ys), span)?;
        let x_bar = self.apply(&step, Val::data(y_bar), span)?;
        let x_bar = self.coerced(arg, x_bar, span)?;
        let types: Vec<Type> = xs.iter().map(|&x| self.b.ty(x)).collect();
        self.seeds(&types, &x_bar, span)
    }

    /// The cotangent in core's form of an active leaf.
    fn core_cotangent(&mut self, x: Atom, span: Option<Span>) -> Lowered<Atom> {
        let ty = self.b.ty(x);
        let Ok(Some(ct)) = self.b.program.cotangent(&ty) else {
            return self.bug(span, "a cotangent of a discrete value");
        };
        match &ty {
            Type::Scalar(_) => Ok(x),
            Type::Array(_) if ct == ty => Ok(x),
            Type::Array(_) => {
                let map = self.map_leaves(&[x], span, |l, elems| l.core_cotangent(elems[0], span))?;
                Ok(map)
            }
            Type::Sum(variants) => {
                let mut arms = Vec::new();
                for (k, variant) in variants.iter().enumerate() {
                    let params: Vec<core::Var> =
                        variant.fields.iter().map(|t| self.b.fresh(t.clone(), "p")).collect();
                    let body = self.body(span, |l| {
                        let mut fields = Vec::new();
                        for &p in &params {
                            let active = l.active(&l.b.ty(p.into()));
                            fields.push(if active { l.core_cotangent(p.into(), span)? } else { l.unit() });
                        }
                        Ok(vec![l.b.emit(Exp::Inject(ct.clone(), k + 1, fields), "bar")])
                    })?;
                    arms.push(core::Lam { params, body });
                }
                Ok(self.b.emit(Exp::Match(x, arms), "bar"))
            }
            Type::Tuple(_) | Type::Named(_) | Type::Acc(_) => self.bug(span, "a leaf of unexpected type"),
        }
    }

    /// The cotangent, of the type of the active leaf `x`, from core's form.
    fn source_cotangent(&mut self, ct: Atom, x: Atom, span: Option<Span>) -> Lowered<Atom> {
        let ty = self.b.ty(x);
        match &ty {
            Type::Scalar(_) => Ok(ct),
            Type::Array(_) if self.b.ty(ct) == ty => Ok(ct),
            Type::Array(_) => {
                self.map_leaves(&[ct, x], span, |l, elems| l.source_cotangent(elems[0], elems[1], span))
            }
            Type::Sum(variants) => {
                let Type::Sum(bars) = self.b.ty(ct) else {
                    return self.bug(span, "a cotangent that is no sum");
                };
                let mut arms = vec![core::Lam {
                    params: Vec::new(),
                    body: self.body(span, |l| Ok(vec![l.zero_like(x, span)?]))?,
                }];
                for (k, bar) in bars.iter().enumerate().skip(1) {
                    let params: Vec<core::Var> =
                        bar.fields.iter().map(|t| self.b.fresh(t.clone(), "bar")).collect();
                    let body = self.body(span, |l| {
                        Ok(vec![l.payload_cotangent(&params, k - 1, x, variants, span)?])
                    })?;
                    arms.push(core::Lam { params, body });
                }
                Ok(self.b.emit(Exp::Match(ct, arms), "bar"))
            }
            Type::Tuple(_) | Type::Named(_) | Type::Acc(_) => self.bug(span, "a leaf of unexpected type"),
        }
    }

    /// The cotangent of a sum `x` from the cotangents of the payload of alternative `k`, which is the one of `x`.
    fn payload_cotangent(
        &mut self,
        bars: &[core::Var],
        k: usize,
        x: Atom,
        variants: &[core::Variant],
        span: Option<Span>,
    ) -> Lowered<Atom> {
        let ty = self.b.ty(x);
        let mut arms = Vec::new();
        for (j, variant) in variants.iter().enumerate() {
            let params: Vec<core::Var> =
                variant.fields.iter().map(|t| self.b.fresh(t.clone(), "p")).collect();
            let body = self.body(span, |l| {
                let mut fields = Vec::new();
                for (i, &p) in params.iter().enumerate() {
                    let active = j == k && l.active(&l.b.ty(p.into()));
                    fields.push(if active {
                        l.source_cotangent(bars[i].into(), p.into(), span)?
                    } else {
                        l.zero_like(p.into(), span)?
                    });
                }
                Ok(vec![l.b.emit(Exp::Inject(ty.clone(), j, fields), "bar")])
            })?;
            arms.push(core::Lam { params, body });
        }
        Ok(self.b.emit(Exp::Match(x, arms), "bar"))
    }

    /// The zero of the type and shape of a leaf.
    fn zero_like(&mut self, x: Atom, span: Option<Span>) -> Lowered<Atom> {
        let ty = self.b.ty(x);
        match &ty {
            Type::Scalar(s) => Ok(Atom::Const(s.zero())),
            Type::Tuple(_) => Ok(x),
            Type::Array(_) => match ty.base() {
                Type::Scalar(s) => {
                    let zero = Atom::Const(s.zero());
                    let shape = self.b.shape(x);
                    Ok(self.b.emit(Exp::Replicate(shape, zero), "zeros"))
                }
                Type::Tuple(_) => Ok(x),
                Type::Sum(_) | Type::Named(_) | Type::Array(_) | Type::Acc(_) => {
                    self.map_leaves(&[x], span, |l, elems| l.zero_like(elems[0], span))
                }
            },
            Type::Sum(variants) => {
                let mut arms = Vec::new();
                for (k, variant) in variants.iter().enumerate() {
                    let params: Vec<core::Var> =
                        variant.fields.iter().map(|t| self.b.fresh(t.clone(), "p")).collect();
                    let body = self.body(span, |l| {
                        let fields = params
                            .iter()
                            .map(|&p| l.zero_like(p.into(), span))
                            .collect::<Lowered<Vec<_>>>()?;
                        Ok(vec![l.b.emit(Exp::Inject(ty.clone(), k, fields), "zero")])
                    })?;
                    arms.push(core::Lam { params, body });
                }
                Ok(self.b.emit(Exp::Match(x, arms), "zero"))
            }
            Type::Named(_) => self.unsupported(span, "the zero of a recursive type"),
            Type::Acc(_) => self.bug(span, "an accumulator as a leaf"),
        }
    }

    fn unit(&mut self) -> Atom {
        self.b.emit(Exp::Tuple(Vec::new()), "u")
    }
    /// A `map` with one result over arrays of the same size.
    fn map_leaves(
        &mut self,
        arrays: &[Atom],
        span: Option<Span>,
        f: impl FnOnce(&mut Self, &[Atom]) -> Lowered<Atom>,
    ) -> Lowered<Atom> {
        let width = self.b.size(arrays[0], 0);
        let params: Vec<core::Var> = arrays
            .iter()
            .map(|&a| {
                let t = self.b.elem(a);
                self.b.fresh(t, "x")
            })
            .collect();
        let atoms: Vec<Atom> = params.iter().map(|&v| v.into()).collect();
        let body = self.body(span, |l| Ok(vec![f(l, &atoms)?]))?;
        let lam = core::Lam { params, body };
        Ok(self.b.emit(Exp::Soac(core::Soac::Map { width, lam, arrays: arrays.to_vec() }), "bars"))
    }
}
