//! Statements: one arm per construct.

use super::aliasing::Roots;
use super::concat::Whole;
use super::memory::absent;
use super::rep::{ArrayRep, Leaf, Rep, has_boxes, unfolded, words};
use super::{Lower, NotNative, Res, Val, roots};
use crate::ir::{FunctionId, Ins, Operand, Reg, Text};
use pullback_base::RuntimeErrorKind;
use pullback_core::traverse::free_vars;
use pullback_core::{Atom, Exp, Stm, Type, Var};
use pullback_prim::{Op, Prim, Scalar};

/// What is said of sums.
pub(super) const ADDED: &str = "addition of cotangents";

impl Lower<'_> {
    /// Lowers a statement of a body with these concatenations.
    pub(super) fn stm(&mut self, stm: &Stm, wholes: &[Whole]) -> Res<()> {
        let values = self.exp(&stm.pat, &stm.exp, wholes)?;
        for (v, value) in stm.pat.iter().zip(values) {
            self.bind_val(*v, value);
        }
        Ok(())
    }

    /// The values of an expression; `pat` is what they will be bound to.
    fn exp(&mut self, pat: &[Var], exp: &Exp, wholes: &[Whole]) -> Res<Vec<Val>> {
        let one = |v: Val| Ok(vec![v]);
        let plain = |rep: Rep| Ok(vec![Val { rep, roots: Roots::new() }]);
        match exp {
            Exp::Atom(a) | Exp::StopGradient(a) => one(self.val(*a)),
            Exp::Prim(prim, args) => {
                if let (Prim::Op(op, Scalar::I64), [v]) = (prim, pat) {
                    self.note_integer(*v, *op, args);
                }
                let x = self.primitive(*prim, args, pat)?;
                plain(Rep::Scalar(x))
            }
            Exp::Tuple(items) => {
                let rep = Rep::Tuple(items.iter().map(|a| self.whole(*a).rep).collect());
                let roots = items.iter().flat_map(|a| self.owners.of(a.var())).collect();
                one(Val { rep, roots })
            }
            Exp::Proj(a, i) => match self.val(*a) {
                Val { rep: Rep::Tuple(items), roots } => one(Val { rep: items[*i].clone(), roots }),
                Val { rep, .. } => panic!("expected a product, found {rep:?}"),
            },
            Exp::Inject(ty, k, items) => one(self.inject(ty, *k, items)?),
            Exp::Match(a, arms) => self.matched(pat, *a, arms),
            Exp::If(c, then, otherwise) => self.conditional(pat, *c, then, otherwise),
            Exp::Loop(l) => self.looped(pat, l),
            Exp::Call(f, args) => self.call(*f, args),

            Exp::ArrayLit(elem, items) => one(self.literal(pat, elem, items).map(|v| self.made(v))?),
            Exp::Index(a, ix) => one(self.index(*a, ix)?),
            Exp::Slice(a, s) => one(self.slice(*a, s)),
            Exp::Update(a, ix, value) => one(self.update(pat, *a, ix, *value).map(|v| self.made(v))?),
            Exp::UpdateSlice(a, s, value) => {
                one(self.update_slice(pat, *a, s, *value).map(|v| self.made(v))?)
            }
            Exp::Gather(a, is) => one(self.gather(pat, *a, *is).map(|v| self.made(v))?),
            Exp::Size(a, k) => {
                let n = self.form(*a).dims[*k];
                plain(Rep::Scalar(n))
            }
            Exp::Iota(n) => {
                let n = self.size(*n);
                let leaves = vec![Leaf::Count { start: Operand::i64(0) }];
                plain(Rep::Array(ArrayRep {
                    dims: vec![n],
                    strides: vec![Operand::i64(1)],
                    leaves,
                    packed: true,
                }))
            }
            Exp::Replicate(shape, a) => one(self.replicate(shape, *a)?),
            Exp::Rearrange(perm, a) => one(self.rearrange(perm, *a)),
            Exp::Reshape { shape, from, array } => one(self.reshape(shape, *from, *array)?),
            Exp::Concat(arrays) => one(self.concat(pat, arrays, wholes).map(|v| self.made(v))?),
            Exp::Reverse(a) => {
                let Val { rep: Rep::Array(a), roots } = self.val(*a) else { panic!("expected an array") };
                one(Val { rep: Rep::Array(self.reversed(&a)), roots })
            }
            Exp::Rotate(a, k) => one(self.rotate(pat, *a, *k).map(|v| self.made(v))?),
            Exp::Soac(soac) => self.soac(pat, soac),

            Exp::WithAcc(inits, lam) => self.with_acc(pat, inits, lam),
            Exp::AccView(acc, view) => {
                one(Val { rep: self.acc_view(*acc, view)?, roots: self.owners.of(acc.var()) })
            }
            Exp::AccAdd(acc, ix, value) => {
                self.acc_add(*acc, ix, *value)?;
                plain(Rep::Tuple(Vec::new()))
            }
            Exp::Plus(a, b) => one(self.plus(pat, *a, *b)?),

            Exp::Custom { primal, args, rule: _, tape: _ } => {
                let args = args.iter().map(|a| self.whole(*a)).collect();
                self.apply(primal, args)
            }
            Exp::Marked(_, body) => self.results(body),
            Exp::Par(bodies) => {
                let mut out: Vec<Val> = Vec::new();
                for (k, body) in bodies.iter().enumerate() {
                    let later = bodies[k + 1..].iter().flat_map(free_vars);
                    let mut needed: Roots = later.flat_map(|v| self.owners.of(Some(v))).collect();
                    needed.extend(roots(&out));
                    out.extend(self.holding(needed, |s| s.results(body))?);
                }
                bodies.iter().for_each(|body| self.note_kept(&body.result));
                Ok(out)
            }
            Exp::Assert(condition, message, values) => {
                let holds = self.scalar(*condition);
                let fails = self.not(holds);
                let values = self.scalars(values);
                let (kind, text) = assertion(message.as_str(), values.len());
                self.fail(fails, kind, Text::Plain(text), values);
                if let Some((a, b)) = condition.var().and_then(|c| self.comparisons.get(&c)).copied() {
                    self.note_equal(a, b);
                }
                plain(Rep::Tuple(Vec::new()))
            }
            Exp::Check(check, args) => {
                self.check(*check, args)?;
                plain(Rep::Tuple(Vec::new()))
            }
            Exp::Vjp { .. } | Exp::Jvp { .. } => {
                Err(NotNative::new("derivatives", "vjp and jvp are expanded before"))
            }
        }
    }

    /// Notes what is known of an operation on `i64`: comparisons, and indices that count backwards.
    fn note_integer(&mut self, v: Var, op: Op, args: &[Atom]) {
        let (one, minus_one) = (Atom::i64(1), Atom::i64(-1));
        match (op, args) {
            (Op::Eq, [a, b]) => {
                self.comparisons.insert(v, (*a, *b));
            }
            (Op::Sub, [n, k]) if *k == one => {
                self.last.insert(v, self.shapes.name(*n));
            }
            (Op::Add, [n, k] | [k, n]) if *k == minus_one => {
                self.last.insert(v, self.shapes.name(*n));
            }
            // `n - 1 - i` is below `n` where `i` is.
            (Op::Sub, [Atom::Var(last), Atom::Var(i)]) => {
                if let (Some(n), Some(m)) = (self.last.get(last), self.below.get(i))
                    && self.called(*n) == self.called(*m)
                {
                    self.below.insert(v, *m);
                }
            }
            _ => {}
        }
    }

    fn primitive(&mut self, prim: Prim, args: &[Atom], pat: &[Var]) -> Res<Operand> {
        let (prim, args) = (prim.of_values(), self.scalars(args));
        let hint = pat.first().map_or("t".to_string(), |v| self.program.vars[*v].hint.to_string());
        self.check_primitive(prim, &args);
        if let (Prim::Op(Op::Pow, s), [x, Operand::Const(exponent)]) = (prim, args.as_slice())
            && s.is_float()
            && let Some(power) = self.small_power(s, *x, exponent.as_f64())
        {
            return Ok(power);
        }
        Ok(self.prim(prim, args, &hint))
    }

    /// Powers that products and quotients give within two units in the last place, for all `x`: where a square overflows or
    /// underflows, so does the cube. (The square of a square can be three units off.)
    fn small_power(&mut self, s: Scalar, x: Operand, exponent: f64) -> Option<Operand> {
        if exponent == -1.0 {
            return Some(self.op(Op::Div, s, &[Operand::Const(s.one()), x]));
        }
        if exponent == 1.0 {
            return Some(x);
        }
        if exponent != 2.0 && exponent != 3.0 {
            return None;
        }
        let square = self.op(Op::Mul, s, &[x, x]);
        Some(if exponent == 2.0 { square } else { self.op(Op::Mul, s, &[square, x]) })
    }

    fn inject(&mut self, ty: &Type, k: usize, items: &[Atom]) -> Res<Val> {
        if let Type::Named(id) = ty {
            let sum = self.inject(&unfolded(self.program, *id), k, items)?;
            return Ok(Val { rep: self.fold(*id, &sum.rep)?, roots: sum.roots });
        }
        let Type::Sum(variants) = ty else { panic!("expected a sum, found {ty:?}") };
        let mut roots = Roots::new();
        let mut fields = Vec::new();
        for (alternative, variant) in variants.iter().enumerate() {
            let mut here = Vec::new();
            for (f, t) in variant.fields.iter().enumerate() {
                if alternative == k {
                    let value = self.whole(items[f]);
                    let value = self.lasting(value, t)?;
                    roots.extend(value.roots);
                    here.push(value.rep);
                } else {
                    let zeros: Vec<Operand> = words(self.program, t)?.into_iter().map(absent).collect();
                    here.push(self.unflatten(t, &mut zeros.into_iter())?);
                }
            }
            fields.push(here);
        }
        Ok(Val { rep: Rep::Sum(Operand::i64(k as i64), fields), roots })
    }
    /// The value in memory that stays as it is when the iteration ends.
    pub(super) fn lasting(&mut self, value: Val, ty: &Type) -> Res<Val> {
        if ty.rank() == 0 && !has_boxes(ty) {
            return Ok(value);
        }
        match (value.rep, ty) {
            (Rep::Array(a), _) if self.owners.is_reused(&value.roots) => {
                let rep = Rep::Array(self.copied(&a, ty.base())?);
                let mut roots = self.owners.fresh();
                if has_boxes(ty) {
                    roots.extend(value.roots);
                }
                Ok(Val { rep, roots })
            }
            (Rep::Tuple(items), Type::Tuple(types)) => {
                let (mut all, mut roots) = (Vec::new(), Roots::new());
                for (rep, t) in items.into_iter().zip(types.iter()) {
                    let item = self.lasting(Val { rep, roots: value.roots.clone() }, t)?;
                    all.push(item.rep);
                    roots.extend(item.roots);
                }
                Ok(Val { rep: Rep::Tuple(all), roots })
            }
            (rep, _) => Ok(Val { rep, roots: value.roots }),
        }
    }

    fn call(&mut self, f: pullback_core::FunId, args: &[Atom]) -> Res<Vec<Val>> {
        let mut operands = Vec::new();
        let mut roots = self.owners.fresh();
        for a in args {
            let value = self.whole(*a);
            let ty = self.atom_type(*a);
            operands.extend(self.flatten(&value.rep, &ty)?);
            if let Type::Acc(inner) = &ty {
                self.adds_to(*a, inner);
            } else {
                roots.extend(value.roots);
            }
        }
        let results = self.program.funs[f].results.clone();
        let mut to: Vec<Reg> = Vec::new();
        for ty in &results {
            for t in words(self.program, ty)? {
                to.push(self.reg(t, "result"));
            }
        }
        self.emit_call(to.clone(), self.functions[&f], operands);
        let words: Vec<Operand> = to.into_iter().map(Operand::Reg).collect();
        self.note_arrays(&Type::Tuple(results.clone().into()), &words, 0)?;
        let mut words = words.into_iter();
        let mut out = Vec::new();
        for ty in &results {
            out.push(Val { rep: self.unflatten(ty, &mut words)?, roots: roots.clone() });
        }
        Ok(out)
    }

    /// Calls a function, and notes where.
    pub(super) fn emit_call(&mut self, to: Vec<Reg>, function: FunctionId, args: Vec<Operand>) {
        if let Some(span) = self.span
            && self.calls.get(&function).is_none_or(|(caller, _)| *caller != function)
        {
            self.calls.insert(function, (self.id, span));
        }
        self.emit(Ins::Call { to, function, args });
    }

    /// A size, checked not to be negative.
    pub(super) fn size(&mut self, n: Atom) -> Operand {
        let operand = self.scalar(n);
        let name = self.shapes.name(n);
        let known =
            matches!(name, pullback_core::shapes::Dim::Size(..)) || operand.as_i64().is_some_and(|n| n >= 0);
        if !known {
            let negative = self.op(Op::Lt, Scalar::I64, &[operand, Operand::i64(0)]);
            let text = Text::Plain("{} is not the size of an array".into());
            self.fail(negative, RuntimeErrorKind::NegativeSize, text, vec![operand]);
        }
        operand
    }
}

/// The kind and text of a failed assertion, as the reference interpreter says it.
fn assertion(message: &str, values: usize) -> (RuntimeErrorKind, String) {
    if values == 0 {
        // The text may contain braces of its own: there are no values to take their places.
        (RuntimeErrorKind::AssertFailed, format!("assertion failed: {message}"))
    } else if message.contains("{}") {
        (RuntimeErrorKind::AssertFailed, message.to_string())
    } else {
        let sizes = vec!["{}"; values].join(" and ");
        (RuntimeErrorKind::ShapeMismatch, format!("{message}: sizes {sizes} differ"))
    }
}
