//! Expressions: names, calls, operators, literals, products and sums.
//!
//! Until a definition is finished, an operator node carries its operand type, a literal the widest value of its kind, and
//! a projection a field name: see `finish`.

use crate::checker::{Checker, Global, PENDING_FIELD, nearest};
use crate::intrinsics::{self, Intrinsic, Member};
use crate::size;
use crate::typed::*;
use crate::types::AnySize;
use crate::unify::{Kind, Metas, Mismatch, ScalarSet, component};
use pullback_base::{Code, Span, Symbol};
use pullback_prim::{Op, Prim, Scalar, ScalarValue};
use pullback_syntax::ast;
use std::sync::Arc;

/// How an operator is built from the primitive table.
enum Builtin {
    /// A primitive on operands of one type; with its arguments swapped if set.
    Prim { op: Op, operands: ScalarSet, swapped: bool },
    /// `==`, or `!=` if negated.
    Equality { negated: bool },
    /// `&&`
    And,
    /// `||`
    Or,
}

fn builtin(name: &str) -> Option<Builtin> {
    let numbers = ScalarSet::numbers();
    let integers = ScalarSet::integers();
    let ordered = ScalarSet::of(|_| true);
    let prim = |op, operands| Some(Builtin::Prim { op, operands, swapped: false });
    match name {
        "+" => prim(Op::Add, numbers),
        "-" => prim(Op::Sub, numbers),
        "*" => prim(Op::Mul, numbers),
        "/" => prim(Op::Div, numbers),
        "%" => prim(Op::Mod, numbers),
        "**" => prim(Op::Pow, numbers),
        "//" => prim(Op::Quot, integers),
        "%%" => prim(Op::Rem, integers),
        "&" => prim(Op::And, integers),
        "|" => prim(Op::Or, integers),
        "^" => prim(Op::Xor, integers),
        "<<" => prim(Op::Shl, integers),
        ">>" => prim(Op::Shr, integers),
        "<" => prim(Op::Lt, ordered),
        "<=" => prim(Op::Le, ordered),
        ">" => Some(Builtin::Prim { op: Op::Lt, operands: ordered, swapped: true }),
        ">=" => Some(Builtin::Prim { op: Op::Le, operands: ordered, swapped: true }),
        "==" => Some(Builtin::Equality { negated: false }),
        "!=" => Some(Builtin::Equality { negated: true }),
        "&&" => Some(Builtin::And),
        "||" => Some(Builtin::Or),
        _ => None,
    }
}

impl<'a> Checker<'a> {
    /// Types an expression.
    pub(crate) fn infer(&mut self, e: &ast::Expr) -> Exp {
        // The tree is of limited height, but one level may need kilobytes of stack.
        stacker::maybe_grow(512 * 1024, 4 * 1024 * 1024, || {
            let typed = self.infer_kind(e);
            if self.metas.measure(&typed.ty) {
                typed
            } else {
                self.error(Code::TooDeep, e.span, "the type of this expression is too large")
                    .hints
                    .push("build smaller values, or annotate the types to see where it grows".into());
                Checker::error_exp(e.span)
            }
        })
    }

    fn infer_kind(&mut self, e: &ast::Expr) -> Exp {
        let span = e.span;
        match &e.kind {
            ast::ExprKind::Literal(literal) => self.literal(literal, false, span),
            ast::ExprKind::Var(name) => self.name(name),
            ast::ExprKind::Apply(f, arguments) => self.call(f, arguments, span),
            ast::ExprKind::Binary(op, a, b) => self.binary(op, a, b, span),
            ast::ExprKind::Negate(x) => self.negate(x, span),
            ast::ExprKind::Not(x) => self.not(x, span),
            ast::ExprKind::LeftSection(x, op) => self.left_section(x, op, span),
            ast::ExprKind::RightSection(op, x) => self.right_section(op, x, span),
            ast::ExprKind::ProjectSection(path) => self.project_section(path, span),
            ast::ExprKind::IndexSection(dims) => self.index_section(dims, span),
            ast::ExprKind::Lambda { params, return_type, body } => {
                self.lambda(params, return_type.as_ref(), body, span)
            }
            ast::ExprKind::Let(bindings, body) => self.let_chain(bindings, body, span),
            ast::ExprKind::If(c, a, b) => self.conditional(c, a, b, span),
            ast::ExprKind::Match(x, cases) => self.match_cases(x, cases, span),
            ast::ExprKind::Loop { sizes, pattern, initial, form, body } => {
                self.loop_exp(sizes, pattern, initial.as_deref(), form, body, span)
            }
            ast::ExprKind::Range { start, second, end, kind } => {
                self.range(start, second.as_deref(), end, *kind, span)
            }
            ast::ExprKind::Array(es) => self.array(es, span),
            ast::ExprKind::Tuple(es) => {
                let es: Vec<Exp> = es.iter().map(|e| self.infer(e)).collect();
                let ty = Type::Tuple(es.iter().map(|e| e.ty.clone()).collect());
                Checker::exp(ExpKind::Tuple(es), ty, span)
            }
            ast::ExprKind::Record(fields) => self.record_exp(fields, span),
            ast::ExprKind::Project(x, field) => {
                let x = self.infer(x);
                self.project(x, field, span)
            }
            ast::ExprKind::UpdateField(x, path, value) => self.update_field(x, path, value, span),
            ast::ExprKind::UpdateIndex(x, dims, value) => {
                let x = self.infer(x);
                self.update_index(x, dims, value, span)
            }
            ast::ExprKind::Index(x, dims) => {
                let x = self.infer(x);
                self.index(x, dims, span)
            }
            ast::ExprKind::Constructor(name, payload) => {
                let payload: Vec<Exp> = payload.iter().map(|e| self.infer(e)).collect();
                let types = payload.iter().map(|e| e.ty.clone()).collect();
                let ty = self.of_kind(Kind::Sum(vec![(name.text.clone(), types)]), span);
                Checker::exp(ExpKind::Construct(name.text.clone(), 0, payload), ty, span)
            }
            ast::ExprKind::Ascription(x, ty) | ast::ExprKind::Coercion(x, ty) => {
                let always = matches!(e.kind, ast::ExprKind::Coercion(..));
                self.ascription(x, ty, always, span)
            }
            ast::ExprKind::Assert(c, x) => {
                let c = self.infer(c);
                self.expect(&Type::Scalar(Scalar::Bool), &c.ty, c.span, "the condition of `assert`");
                let x = self.infer(x);
                let ty = x.ty.clone();
                Checker::exp(ExpKind::Assert(Box::new(c), Box::new(x)), ty, span)
            }
            ast::ExprKind::Attributed(attribute, x) => {
                let x = self.infer(x);
                let ty = x.ty.clone();
                let attributes = vec![convert_attribute(attribute)];
                Checker::exp(ExpKind::Attributed(attributes, Box::new(x)), ty, span)
            }
            ast::ExprKind::Error => Checker::error_exp(span),
        }
    }

    // ---- names ----

    fn name(&mut self, name: &ast::QualName) -> Exp {
        match name.qualifiers.as_slice() {
            [] => self.plain_name(&name.name.text, name.span),
            [module] => match Scalar::from_name(module.text.as_str()) {
                Some(scalar) => self.member(scalar, &name.name.text, name.span),
                None => self.no_module(&module.text, name.span),
            },
            [module, ..] => self.no_module(&module.text, name.span),
        }
    }

    fn no_module(&mut self, module: &Symbol, span: Span) -> Exp {
        if module.as_str() == "f16" {
            self.error(Code::Unsupported, span, "the type f16 is not supported yet")
                .hints
                .push("use f32".into());
        } else {
            self.error(Code::UnknownName, span, format!("there is no module {module}")).hints.push(
                "the modules are f32, f64, i8 to i64, u8 to u64 and bool; others are not supported yet"
                    .into(),
            );
        }
        Checker::error_exp(span)
    }

    fn plain_name(&mut self, text: &Symbol, span: Span) -> Exp {
        if let Some(var) = self.local(text) {
            return self.local_use(var, span);
        }
        if let Some(def) = self.global(text)
            && (self.user_names.get(text) == Some(&def) || builtin(text.as_str()).is_none())
        {
            return self.def_use(def, text, span);
        }
        if builtin(text.as_str()).is_some() {
            return self.operator_value(text.as_str(), None, span);
        }
        match text.as_str() {
            "unflatten" => return self.unflatten(span),
            "assert" => return self.assert_value(span),
            _ => {}
        }
        if let Some((intrinsic, ty)) = Checker::intrinsic(text.as_str()) {
            return self.intrinsic_use(intrinsic, ty, span);
        }
        let near = self.similar(text.as_str());
        let current = self.current.and_then(|c| self.declarations.get(&c)).map(|d| d.name.text.clone());
        let d = self.error(Code::UnknownName, span, format!("unknown name {text}"));
        match near {
            Some(near) => d.hints.push(format!("did you mean {near}?")),
            None if current.as_ref() == Some(text) => {
                d.hints.push("give the definition full type annotations to use it here".into());
            }
            None => d.hints.push(
                "define it before its use, or add it as a parameter (a size as `[n]` after the name of the definition)"
                    .into(),
            ),
        }
        Checker::error_exp(span)
    }

    fn local_use(&mut self, var: VarId, span: Span) -> Exp {
        self.value_uses.insert(var);
        if let Some(scheme) = self.schemes.get(&var).cloned() {
            let (ty, types) = self.instantiate(&scheme, span);
            return Checker::exp(ExpKind::Var(var, types), ty, span);
        }
        let ty = self.program.vars[var].ty.clone();
        Checker::exp(ExpKind::Var(var, vec![]), ty, span)
    }

    fn def_use(&mut self, def: DefId, text: &Symbol, span: Span) -> Exp {
        if let Some(current) = self.current {
            self.uses.entry(current).or_default().insert(def);
        }
        match self.globals.get(&def).cloned() {
            Some(Global::Known(scheme)) => {
                let (ty, types) = self.instantiate(&scheme, span);
                Checker::exp(ExpKind::Def(def, types), ty, span)
            }
            Some(Global::InProgress(ty)) => Checker::exp(ExpKind::Def(def, vec![]), ty, span),
            Some(Global::Pending) | None => {
                if let Some(scheme) = self.declared_scheme(def) {
                    let (ty, types) = self.instantiate(&scheme, span);
                    return Checker::exp(ExpKind::Def(def, types), ty, span);
                }
                let place = self.declarations.get(&def).map(|d| d.name.span);
                let d = self.error(
                    Code::Ambiguous,
                    span,
                    format!("{text} is used before its definition, which has no full type annotation"),
                );
                d.hints.push(format!(
                    "move the definition of {text} up, or annotate all its parameters and its result"
                ));
                if let Some(place) = place {
                    d.labels.push(pullback_base::Label { span: place, text: "defined here".into() });
                }
                Checker::error_exp(span)
            }
        }
    }

    pub(crate) fn intrinsic_use(&mut self, intrinsic: Intrinsic, ty: &str, span: Span) -> Exp {
        let (ty, types) = crate::scheme::instantiate(&mut self.metas, ty, span);
        Checker::exp(ExpKind::Intrinsic(intrinsic, types), ty, span)
    }

    /// `unflatten` with its sizes inserted when they are known.
    fn unflatten(&mut self, span: Span) -> Exp {
        let element = self.metas.any(span);
        let (n, m) = (Size::Meta(self.metas.fresh_size()), Size::Meta(self.metas.fresh_size()));
        let flat = Size::Meta(self.metas.fresh_size());
        let result = Type::array(n, Type::array(m, element.clone()));
        let ty = Type::fun(Type::array(flat, element.clone()), result);
        // `finish` turns this into a call with the two sizes, read off the type.
        Checker::exp(ExpKind::Intrinsic(Intrinsic::Unflatten, vec![element]), ty, span)
    }

    /// `assert` as a function value.
    fn assert_value(&mut self, span: Span) -> Exp {
        let ty = self.metas.any(span);
        let condition = self.fresh_pattern("condition", Type::Scalar(Scalar::Bool), span);
        let value = self.fresh_pattern("value", ty.clone(), span);
        let body = ExpKind::Assert(Box::new(self.var_exp(&condition)), Box::new(self.var_exp(&value)));
        let body = Checker::exp(body, ty.clone(), span);
        let whole = Type::fun(Type::Scalar(Scalar::Bool), Type::fun(ty.clone(), ty));
        Checker::exp(ExpKind::Lambda(vec![condition, value], Box::new(body)), whole, span)
    }

    pub(crate) fn fresh_pattern(&mut self, name: &str, ty: Type, span: Span) -> Pattern {
        let var = self.new_var(name, ty.clone(), span);
        Pattern { kind: PatternKind::Var(var), ty, span }
    }
    /// The value of a variable pattern.
    pub(crate) fn var_exp(&self, p: &Pattern) -> Exp {
        match p.kind {
            PatternKind::Var(v) => Checker::exp(ExpKind::Var(v, vec![]), p.ty.clone(), p.span),
            PatternKind::Wildcard
            | PatternKind::Literal(_)
            | PatternKind::Tuple(_)
            | PatternKind::Record(_)
            | PatternKind::Construct(..) => Checker::error_exp(p.span),
        }
    }

    /// `f64.exp` and the like.
    fn member(&mut self, scalar: Scalar, text: &Symbol, span: Span) -> Exp {
        let s = Type::Scalar(scalar);
        match intrinsics::member(scalar, text.as_str()) {
            Some(Member::Constant(value)) => Checker::exp(ExpKind::Literal(value), s, span),
            Some(Member::Prim(prim)) => prim_value(prim, span),
            Some(Member::Operator(name)) => self.operator_value(name, Some(s), span),
            Some(Member::Reduction(op, neutral)) => {
                let array = Type::array(Size::Meta(self.metas.fresh_size()), s.clone());
                let operator = prim_value(Prim::Op(op, scalar), span);
                let neutral = Checker::exp(ExpKind::Literal(neutral), s.clone(), span);
                let rest = Type::fun(array, s.clone());
                let whole = Type::fun(operator.ty.clone(), Type::fun(s.clone(), rest.clone()));
                let reduce = ExpKind::Intrinsic(Intrinsic::ReduceComm, vec![s]);
                let reduce = Checker::exp(reduce, whole, span);
                Checker::exp(ExpKind::Apply(Box::new(reduce), vec![operator, neutral]), rest, span)
            }
            None => {
                let hidden = Symbol::from(format!("{}_{text}", scalar.name()));
                if let Some(def) = self.prelude_names.get(&hidden).copied() {
                    return self.def_use(def, &hidden, span);
                }
                let near = nearest(text.as_str(), intrinsics::member_names());
                let near = near.filter(|n| intrinsics::member(scalar, n).is_some());
                let d = self.error(Code::UnknownName, span, format!("the module {scalar} has no {text}"));
                if let Some(near) = near {
                    d.hints.push(format!("did you mean {scalar}.{near}?"));
                } else {
                    d.hints.push("see the prelude for the members of the scalar modules".into());
                }
                Checker::error_exp(span)
            }
        }
    }

    // ---- calls ----

    fn call(&mut self, f: &ast::Expr, arguments: &[ast::Expr], span: Span) -> Exp {
        let f = self.infer(f);
        let arguments: Vec<Exp> = arguments.iter().map(|a| self.infer(a)).collect();
        self.apply(f, arguments, span)
    }

    /// A call of `f`.
    pub(crate) fn apply(&mut self, f: Exp, arguments: Vec<Exp>, span: Span) -> Exp {
        let before = self.metas.undecided;
        let what = callee(self, &f);
        let mut ty = f.ty.clone();
        for (i, argument) in arguments.iter().enumerate() {
            let name = format!("argument {} of {what}", i + 1);
            match self.metas.shallow(&ty) {
                Type::Fun(binder, param, result) => {
                    self.expect(&param, &argument.ty, argument.span, &name);
                    ty = match binder {
                        Some(b) => self.supply(b, argument, &result),
                        None => (*result).clone(),
                    };
                }
                Type::Error => ty = Type::Error,
                Type::Meta(m) => {
                    let result = self.metas.any(span);
                    let wanted = Type::fun(argument.ty.clone(), result.clone());
                    self.expect(&wanted, &Type::Meta(m), f.span, "the function");
                    ty = result;
                }
                other @ (Type::Scalar(_)
                | Type::Array(..)
                | Type::Tuple(_)
                | Type::Record(_)
                | Type::Sum(_)
                | Type::Param(..)
                | Type::Named(..)) => {
                    self.too_many(&f, &other, i, argument.span, &what);
                    ty = Type::Error;
                }
            }
        }
        self.settle_sizes();
        let ty = self.refresh(&ty, &f, &arguments);
        if self.metas.undecided > before
            && let ExpKind::Def(def, _) = f.kind
        {
            self.needs_checks.insert(def);
        }
        // `f a b` and `(f a) b` are the same.
        match f.kind {
            ExpKind::Apply(inner, mut first) => {
                first.extend(arguments);
                Checker::exp(ExpKind::Apply(inner, first), ty, span)
            }
            kind => {
                let f = Checker::exp(kind, f.ty, f.span);
                Checker::exp(ExpKind::Apply(Box::new(f), arguments), ty, span)
            }
        }
    }

    fn too_many(&mut self, f: &Exp, ty: &Type, given: usize, span: Span, what: &str) {
        let ty = self.show(ty);
        if given == 0 {
            self.error(Code::TypeMismatch, f.span, format!("{what} has type {ty} and is not a function"))
                .hints
                .push("is an operator or a comma missing?".into());
        } else {
            let plural = if given == 1 { "argument" } else { "arguments" };
            self.error(Code::TypeMismatch, span, format!("{what} takes {given} {plural}, this is one more"))
                .hints
                .push("remove it, or put parentheses around an inner call".into());
        }
    }

    /// The result type of a function with a size binder at an argument.
    fn supply(&mut self, binder: SizeMetaId, argument: &Exp, result: &Type) -> Type {
        let size = self.size_value(argument).unwrap_or_else(|| self.metas.unknown());
        let metas = &self.metas;
        let ty = metas.map(result, &mut |s| {
            if metas.size_is(s, binder) { size.clone() } else { s.clone() }
        });
        if let Size::Meta(m) = self.metas.size(&Size::Meta(binder))
            && self.metas.size(&size) != Size::Meta(m)
        {
            self.metas.set_size(m, size);
        }
        ty
    }

    /// Each call makes its own unknown sizes: those of the result that no argument has.
    fn refresh(&mut self, ty: &Type, f: &Exp, arguments: &[Exp]) -> Type {
        let mut unknowns: Vec<Size> = Vec::new();
        let metas = &self.metas;
        let collect = |ty: &Type, into: &mut Vec<Size>| {
            metas.map(ty, &mut |s| {
                let s = metas.size(s);
                if matches!(s, Size::Unknown(_)) {
                    into.push(s.clone());
                }
                s
            });
        };
        collect(ty, &mut unknowns);
        if unknowns.is_empty() {
            return ty.clone();
        }
        let mut given: Vec<Size> = Vec::new();
        for argument in arguments {
            // Sizes that a function argument makes are made anew by each of its calls.
            if !matches!(self.metas.shallow(&argument.ty), Type::Fun(..)) {
                collect(&argument.ty, &mut given);
            }
        }
        // Partial application keeps what it has.
        if matches!(self.metas.shallow(ty), Type::Fun(..)) {
            return ty.clone();
        }
        let _ = f;
        unknowns.retain(|s| !given.contains(s));
        unknowns.sort_by_key(|s| if let Size::Unknown(k) = s { *k } else { 0 });
        unknowns.dedup();
        let new: Vec<Size> = unknowns.iter().map(|_| self.metas.unknown()).collect();
        self.metas.map(ty, &mut |s| {
            let s = self.metas.size(s);
            unknowns.iter().position(|u| *u == s).map_or(s, |i| new[i].clone())
        })
    }

    /// The value of an `i64` expression as a size, where it is one that can be compared.
    pub(crate) fn size_value(&mut self, e: &Exp) -> Option<Size> {
        match &e.kind {
            ExpKind::Literal(ScalarValue::U64(k)) => i64::try_from(*k).ok().map(Size::Const),
            ExpKind::Literal(ScalarValue::I64(k)) => Some(Size::Const(*k)),
            ExpKind::Var(v, _) => {
                let name = self.program.vars.get(*v)?.name.clone();
                let size = self.aliases.get(v).cloned().unwrap_or(Size::Var(*v, name));
                Some(self.metas.size(&size))
            }
            ExpKind::Def(d, _) => {
                let name = self.declarations.get(d)?.name.text.clone();
                Some(self.def_aliases.get(d).cloned().unwrap_or(Size::Def(*d, name)))
            }
            ExpKind::Coerce(x, _) | ExpKind::Attributed(_, x) => self.size_value(x),
            ExpKind::Apply(f, arguments) => match (&f.kind, arguments.as_slice()) {
                (ExpKind::Intrinsic(Intrinsic::Length, _), [x]) => match self.metas.shallow(&x.ty) {
                    Type::Array(s, _) => Some(self.metas.size(&s)).filter(|s| !matches!(s, Size::Unknown(_))),
                    _ => None,
                },
                (ExpKind::Intrinsic(Intrinsic::Prim(Prim::Op(op, _)), _), [x, y]) => {
                    let (x, y) = (self.size_value(x)?, self.size_value(y)?);
                    match op {
                        Op::Add => size::add(&x, &y, 1),
                        Op::Sub => size::add(&x, &y, -1),
                        Op::Mul => size::multiply(&x, &y),
                        _ => None,
                    }
                }
                _ => None,
            },
            _ => None,
        }
    }

    // ---- operators ----

    /// What an operator name means here: a user's function, or something built in.
    fn operator_function(&mut self, op: &ast::Operator) -> Exp {
        self.name(&op.name)
    }

    fn is_builtin(&self, op: &ast::Operator) -> bool {
        let text = &op.name.name.text;
        op.name.qualifiers.is_empty() && self.local(text).is_none() && !self.user_names.contains_key(text)
    }

    fn binary(&mut self, op: &ast::Operator, a: &ast::Expr, b: &ast::Expr, span: Span) -> Exp {
        let text = op.name.name.text.as_str();
        if self.is_builtin(op) {
            if let Some(built) = builtin(text) {
                let a = self.infer(a);
                let b = self.infer(b);
                return self.builtin_call(&built, text, None, a, b, span);
            }
            if text == "|>" || text == "<|" {
                let (x, y) = (self.infer(a), self.infer(b));
                let (f, x) = if text == "|>" { (y, x) } else { (x, y) };
                return self.apply(f, vec![x], span);
            }
        }
        let f = self.operator_function(op);
        let arguments = vec![self.infer(a), self.infer(b)];
        self.apply(f, arguments, span)
    }

    fn builtin_call(
        &mut self,
        built: &Builtin,
        name: &str,
        at: Option<Type>,
        a: Exp,
        b: Exp,
        span: Span,
    ) -> Exp {
        let boolean = Type::Scalar(Scalar::Bool);
        match built {
            Builtin::And | Builtin::Or => {
                self.expect(&boolean, &a.ty, a.span, &format!("the left operand of {name}"));
                self.expect(&boolean, &b.ty, b.span, &format!("the right operand of {name}"));
                let literal = |v: bool| {
                    Box::new(Checker::exp(
                        ExpKind::Literal(ScalarValue::Bool(v)),
                        Type::Scalar(Scalar::Bool),
                        span,
                    ))
                };
                let kind = match built {
                    Builtin::And => ExpKind::If(Box::new(a), Box::new(b), literal(false)),
                    _ => ExpKind::If(Box::new(a), literal(true), Box::new(b)),
                };
                Checker::exp(kind, boolean, span)
            }
            Builtin::Prim { op, operands, swapped } => {
                let kind = Kind::Scalar(*operands);
                let operand = self.operands(kind, at, &a, &b, name, span);
                let result = if matches!(op, Op::Lt | Op::Le) { boolean } else { operand.clone() };
                let f = operator(*op, operand, result.clone(), span);
                let arguments = if *swapped { vec![b, a] } else { vec![a, b] };
                Checker::exp(ExpKind::Apply(Box::new(f), arguments), result, span)
            }
            Builtin::Equality { negated } => {
                let operand = self.operands(Kind::Equality, at, &a, &b, name, span);
                let f = operator(Op::Eq, operand, boolean.clone(), span);
                let equal = Checker::exp(ExpKind::Apply(Box::new(f), vec![a, b]), boolean.clone(), span);
                if !negated {
                    return equal;
                }
                let not = prim_value(Prim::Op(Op::Not, Scalar::Bool), span);
                Checker::exp(ExpKind::Apply(Box::new(not), vec![equal]), boolean, span)
            }
        }
    }

    /// The common type of two operands.
    fn operands(&mut self, kind: Kind, at: Option<Type>, a: &Exp, b: &Exp, name: &str, span: Span) -> Type {
        let operand = match at {
            Some(t) => t,
            None => self.of_kind(kind.clone(), span),
        };
        let left = self.operand(&kind, &operand, a, &format!("the left operand of {name}"));
        if !left {
            return Type::Error;
        }
        match self.metas.unify(&operand, &b.ty, false) {
            Ok(()) => operand,
            Err(m) => {
                // When both operands are wrong for the operator, the common type is not what matters.
                if let (Err(Mismatch::Kind(words, ty)), true) =
                    (self.metas.require(&kind, &b.ty, false), true)
                {
                    let (ty, words) = (self.show(&ty), words.to_string());
                    self.error(
                        Code::TypeMismatch,
                        b.span,
                        format!("the right operand of {name} has type {ty}, which is not {words}"),
                    )
                    .hints
                    .push(elementwise_hint(&ty, name));
                } else {
                    self.mismatch(m, &operand, &b.ty, b.span, &format!("the right operand of {name}"));
                }
                Type::Error
            }
        }
    }

    fn operand(&mut self, kind: &Kind, operand: &Type, e: &Exp, what: &str) -> bool {
        if let Err(Mismatch::Kind(words, ty)) = self.metas.require(kind, &e.ty, false) {
            let ty = self.show(&ty);
            let name = what.rsplit(' ').next().unwrap_or("").to_string();
            self.error(Code::TypeMismatch, e.span, format!("{what} has type {ty}, which is not {words}"))
                .hints
                .push(elementwise_hint(&ty, &name));
            return false;
        }
        self.expect(operand, &e.ty, e.span, what)
    }

    /// An operator as a function value.
    fn operator_value(&mut self, name: &str, at: Option<Type>, span: Span) -> Exp {
        let Some(built) = builtin(name) else { return Checker::error_exp(span) };
        let boolean = Type::Scalar(Scalar::Bool);
        let operand = match (&built, at) {
            (Builtin::And | Builtin::Or, _) => boolean.clone(),
            (Builtin::Prim { operands, .. }, Some(t)) => {
                let kind = Kind::Scalar(*operands);
                if let Err(Mismatch::Kind(words, ty)) = self.metas.require(&kind, &t, false) {
                    let ty = self.show(&ty);
                    self.error(
                        Code::UnknownName,
                        span,
                        format!("the module {ty} has no {name}: {ty} is not {words}"),
                    )
                    .hints
                    .push("use the operator of another module".into());
                }
                t
            }
            (Builtin::Equality { .. }, Some(t)) => t,
            (Builtin::Prim { operands, .. }, None) => self.of_kind(Kind::Scalar(*operands), span),
            (Builtin::Equality { .. }, None) => self.of_kind(Kind::Equality, span),
        };
        if let Builtin::Prim { op, swapped: false, .. } = built {
            let result = if matches!(op, Op::Lt | Op::Le) { boolean } else { operand.clone() };
            return operator(op, operand, result, span);
        }
        if let Builtin::Equality { negated: false } = built {
            return operator(Op::Eq, operand, boolean, span);
        }
        let x = self.fresh_pattern("x", operand.clone(), span);
        let y = self.fresh_pattern("y", operand.clone(), span);
        let (a, b) = (self.var_exp(&x), self.var_exp(&y));
        let body = self.builtin_call(&built, name, Some(operand.clone()), a, b, span);
        let ty = Type::fun(operand.clone(), Type::fun(operand, body.ty.clone()));
        Checker::exp(ExpKind::Lambda(vec![x, y], Box::new(body)), ty, span)
    }

    fn negate(&mut self, x: &ast::Expr, span: Span) -> Exp {
        if let ast::ExprKind::Literal(literal @ (ast::Literal::Int(..) | ast::Literal::Float(..))) = &x.kind {
            return self.literal(literal, true, span);
        }
        let x = self.infer(x);
        self.unary(Op::Neg, ScalarSet::numbers(), x, "the operand of -", span)
    }

    fn not(&mut self, x: &ast::Expr, span: Span) -> Exp {
        let x = self.infer(x);
        let set = ScalarSet::of(|s| s.is_integer() || s == Scalar::Bool);
        // Without further knowledge it is logical negation.
        if let Type::Meta(m) = self.metas.shallow(&x.ty)
            && *self.metas.kind_of(m) == Kind::Any
        {
            self.expect(&Type::Scalar(Scalar::Bool), &x.ty, x.span, "the operand of !");
        }
        self.unary(Op::Not, set, x, "the operand of !", span)
    }

    fn unary(&mut self, op: Op, set: ScalarSet, x: Exp, what: &str, span: Span) -> Exp {
        let kind = Kind::Scalar(set);
        let operand = self.of_kind(kind.clone(), span);
        if !self.operand(&kind, &operand, &x, what) {
            return Checker::error_exp(span);
        }
        let ty = Type::fun(operand.clone(), operand.clone());
        let f = ExpKind::Intrinsic(Intrinsic::Prim(Prim::Op(op, Scalar::Bool)), vec![operand.clone()]);
        let f = Checker::exp(f, ty, span);
        Checker::exp(ExpKind::Apply(Box::new(f), vec![x]), operand, span)
    }

    fn left_section(&mut self, x: &ast::Expr, op: &ast::Operator, span: Span) -> Exp {
        let f = self.section_operator(op);
        let x = self.infer(x);
        self.apply(f, vec![x], span)
    }

    /// `(op x)` is `let y = x in \z -> z op y`.
    fn right_section(&mut self, op: &ast::Operator, x: &ast::Expr, span: Span) -> Exp {
        let f = self.section_operator(op);
        let x = self.infer(x);
        let y = self.fresh_pattern("y", x.ty.clone(), x.span);
        let ty = self.metas.any(span);
        let z = self.fresh_pattern("z", ty.clone(), span);
        let (first, second) = (self.var_exp(&z), self.var_exp(&y));
        let body = self.apply(f, vec![first, second], span);
        let ty = Type::fun(ty, body.ty.clone());
        let function = Checker::exp(ExpKind::Lambda(vec![z], Box::new(body)), ty.clone(), span);
        let binding = Binding::Value(Let { pattern: y, value: x, sizes: vec![] });
        Checker::exp(ExpKind::Let(vec![binding], Box::new(function)), ty, span)
    }

    fn section_operator(&mut self, op: &ast::Operator) -> Exp {
        let text = op.name.name.text.as_str();
        if self.is_builtin(op) && builtin(text).is_some() {
            return self.operator_value(text, None, op.name.span);
        }
        self.operator_function(op)
    }

    // ---- products ----

    fn record_exp(&mut self, fields: &[ast::FieldExpr], span: Span) -> Exp {
        let mut out: Vec<(Symbol, Exp)> = Vec::new();
        for field in fields {
            let value = match &field.value {
                Some(e) => self.infer(e),
                None => self.plain_name(&field.name.text, field.name.span),
            };
            if out.iter().any(|(n, _)| *n == field.name.text) {
                self.error(
                    Code::DuplicateName,
                    field.name.span,
                    format!("field {} occurs twice", field.name.text),
                )
                .hints
                .push("remove one of them".into());
            } else {
                out.push((field.name.text.clone(), value));
            }
        }
        let ty = crate::types::record(out.iter().map(|(n, e)| (n.clone(), e.ty.clone())).collect());
        let kind = if out.is_empty() { ExpKind::Tuple(vec![]) } else { ExpKind::Record(out) };
        Checker::exp(kind, ty, span)
    }

    /// `x.field`.
    pub(crate) fn project(&mut self, x: Exp, field: &ast::Name, span: Span) -> Exp {
        let Some((number, ty)) = self.field(&x.ty, field) else { return Checker::error_exp(span) };
        Checker::exp(ExpKind::Project(Box::new(x), number), ty, span)
    }

    /// The (pending) number and the type of a field.
    fn field(&mut self, record: &Type, field: &ast::Name) -> Option<(usize, Type)> {
        let record = self.metas.shallow(record);
        if let Some((i, t)) = component(&record, &field.text) {
            return Some((i, t));
        }
        match record {
            Type::Meta(_) => {
                let ty = self.metas.any(field.span);
                let kind = Kind::Record(vec![(field.text.clone(), ty.clone())]);
                if let Err(m) = self.metas.require(&kind, &record, false) {
                    self.mismatch(m, &record, &record, field.span, "this value");
                    return None;
                }
                self.fields.push(field.text.clone());
                Some((PENDING_FIELD + self.fields.len() - 1, ty))
            }
            Type::Error => None,
            Type::Record(ref fields) => {
                let near = nearest(field.text.as_str(), fields.iter().map(|(n, _)| n.as_str()));
                let ty = self.show(&record);
                let d = self.error(
                    Code::TypeMismatch,
                    field.span,
                    format!("there is no field {} in {ty}", field.text),
                );
                d.hints.push(
                    near.map_or("check the name of the field".into(), |n| format!("did you mean {n}?")),
                );
                None
            }
            Type::Scalar(_)
            | Type::Array(..)
            | Type::Tuple(_)
            | Type::Sum(_)
            | Type::Fun(..)
            | Type::Param(..)
            | Type::Named(..) => {
                let ty = self.show(&record);
                self.error(
                    Code::TypeMismatch,
                    field.span,
                    format!("there is no field {} in {ty}", field.text),
                )
                .hints
                .push("components of tuples are .0, .1 and so on; fields of arrays need `map (.x)`".into());
                None
            }
        }
    }

    fn project_section(&mut self, path: &[ast::Name], span: Span) -> Exp {
        let ty = self.metas.any(span);
        let x = self.fresh_pattern("x", ty.clone(), span);
        let mut body = self.var_exp(&x);
        for field in path {
            body = self.project(body, field, span);
        }
        let ty = Type::fun(ty, body.ty.clone());
        Checker::exp(ExpKind::Lambda(vec![x], Box::new(body)), ty, span)
    }

    fn update_field(&mut self, x: &ast::Expr, path: &[ast::Name], value: &ast::Expr, span: Span) -> Exp {
        let x = self.infer(x);
        let value = self.infer(value);
        let mut ty = x.ty.clone();
        let mut numbers = Vec::new();
        for field in path {
            let Some((number, t)) = self.field(&ty, field) else { return Checker::error_exp(span) };
            numbers.push(number);
            ty = t;
        }
        self.expect(&ty, &value.ty, value.span, "the new value of the field");
        let ty = x.ty.clone();
        Checker::exp(ExpKind::RecordUpdate(Box::new(x), numbers, Box::new(value)), ty, span)
    }

    // ---- ascription ----

    fn ascription(&mut self, x: &ast::Expr, ty: &ast::Type, always: bool, span: Span) -> Exp {
        let x = self.infer(x);
        let wanted = self.type_of(ty, AnySize::Infer);
        // Before unification: sizes that are inferred need no test.
        let asked = self.metas.zonk(&wanted);
        let before = self.metas.undecided;
        let agreed = match self.metas.unify(&wanted, &x.ty, always) {
            Ok(()) => true,
            Err(m) => {
                self.mismatch(m, &wanted, &x.ty, x.span, "this expression");
                false
            }
        };
        if !agreed {
            return Checker::exp(ExpKind::Error, wanted, span);
        }
        let undecided = always || self.metas.undecided > before;
        self.coerce(x, &wanted, &asked, undecided, ty.span, span)
    }

    /// The value at the wanted type, with the tests that `asked` (the type as annotated) needs if sizes are undecided.
    pub(crate) fn coerce(
        &mut self,
        x: Exp,
        wanted: &Type,
        asked: &Type,
        undecided: bool,
        place: Span,
        span: Span,
    ) -> Exp {
        let mut checks = Vec::new();
        if undecided {
            self.size_checks(asked, Root::Value, place, &mut checks);
        }
        if checks.is_empty() {
            return Checker::exp(x.kind, wanted.clone(), x.span);
        }
        Checker::exp(ExpKind::Coerce(Box::new(x), checks), wanted.clone(), span)
    }

    /// One test for each dimension of a type that has a computable size.
    pub(crate) fn size_checks(&mut self, ty: &Type, root: Root, span: Span, out: &mut Vec<SizeCheck>) {
        let mut dimensions = Vec::new();
        crate::binding::dimensions(&self.metas, ty, &mut vec![], &mut dimensions);
        for (steps, size) in dimensions {
            if let Some(expected) = self.size_exp(&size, span) {
                out.push(SizeCheck { place: Place { root, steps }, expected, span });
            }
        }
    }

    /// An expression for a size that has a value at run time.
    pub(crate) fn size_exp(&mut self, size: &Size, span: Span) -> Option<Exp> {
        let ty = Type::Scalar(Scalar::I64);
        match self.metas.size(size) {
            Size::Const(k) => Some(Checker::i64_literal(k, span)),
            Size::Var(v, name) => {
                if name.as_str().starts_with('?') {
                    return None;
                }
                self.value_uses.insert(v);
                Some(Checker::exp(ExpKind::Var(v, vec![]), ty, span))
            }
            Size::Def(d, _) => Some(Checker::exp(ExpKind::Def(d, vec![]), ty, span)),
            Size::Expression(p) => self.polynomial_exp(&p, span),
            Size::Unknown(_) | Size::Meta(_) => None,
        }
    }

    fn polynomial_exp(&mut self, p: &Polynomial, span: Span) -> Option<Exp> {
        let call = |op: Op, a: Exp, b: Exp| {
            let f = prim_value(Prim::Op(op, Scalar::I64), span);
            Checker::exp(ExpKind::Apply(Box::new(f), vec![a, b]), Type::Scalar(Scalar::I64), span)
        };
        let mut sum: Option<Exp> = None;
        for (atoms, k) in p {
            let mut product = (*k != 1 || atoms.is_empty()).then(|| Checker::i64_literal(*k, span));
            for atom in atoms {
                let factor = match atom {
                    SizeAtom::Var(v, name) => self.size_exp(&Size::Var(*v, name.clone()), span)?,
                    SizeAtom::Def(d, name) => self.size_exp(&Size::Def(*d, name.clone()), span)?,
                };
                product = Some(match product {
                    Some(x) => call(Op::Mul, x, factor),
                    None => factor,
                });
            }
            let term = product?;
            sum = Some(match sum {
                Some(x) => call(Op::Add, x, term),
                None => term,
            });
        }
        sum
    }
}

/// A primitive as a function value.
pub(crate) fn prim_value(prim: Prim, span: Span) -> Exp {
    let (operand, arity) = match prim {
        Prim::Convert(from, _) => (from, 1),
        Prim::Op(op, s) => (s, arity(op)),
    };
    let mut ty = Type::Scalar(prim.result());
    for _ in 0..arity {
        ty = Type::Fun(None, Arc::new(Type::Scalar(operand)), Arc::new(ty));
    }
    Exp { kind: ExpKind::Intrinsic(Intrinsic::Prim(prim), vec![]), ty, span }
}

fn arity(op: Op) -> usize {
    match op {
        Op::Neg
        | Op::Abs
        | Op::Sgn
        | Op::Sqrt
        | Op::Cbrt
        | Op::Exp
        | Op::Expm1
        | Op::Log
        | Op::Log2
        | Op::Log10
        | Op::Log1p
        | Op::Sin
        | Op::Cos
        | Op::Tan
        | Op::Asin
        | Op::Acos
        | Op::Atan
        | Op::Sinh
        | Op::Cosh
        | Op::Tanh
        | Op::Asinh
        | Op::Acosh
        | Op::Atanh
        | Op::Floor
        | Op::Ceil
        | Op::Round
        | Op::Trunc
        | Op::Erf
        | Op::Erfc
        | Op::Lgamma
        | Op::Gamma
        | Op::Digamma
        | Op::IsNan
        | Op::IsInf
        | Op::Not => 1,
        Op::Add
        | Op::Sub
        | Op::Mul
        | Op::Div
        | Op::Mod
        | Op::Quot
        | Op::Rem
        | Op::Pow
        | Op::Min
        | Op::Max
        | Op::Atan2
        | Op::Hypot
        | Op::Polygamma
        | Op::And
        | Op::Or
        | Op::Xor
        | Op::Shl
        | Op::Shr
        | Op::Eq
        | Op::Ne
        | Op::Lt
        | Op::Le => 2,
        Op::Select => 3,
    }
}

/// An operator whose scalar type is decided later.
fn operator(op: Op, operand: Type, result: Type, span: Span) -> Exp {
    let ty = Type::fun(operand.clone(), Type::fun(operand.clone(), result));
    let kind = ExpKind::Intrinsic(Intrinsic::Prim(Prim::Op(op, Scalar::Bool)), vec![operand]);
    Exp { kind, ty, span }
}

fn elementwise_hint(ty: &str, name: &str) -> String {
    if ty.starts_with('[') {
        format!("operators work on single numbers: use `map2 ({name}) xs ys` for arrays")
    } else {
        "check the types of both operands".into()
    }
}

fn callee(c: &Checker<'_>, f: &Exp) -> String {
    match &f.kind {
        ExpKind::Var(v, _) => c.program.vars.get(*v).map_or("the function".into(), |v| v.name.to_string()),
        ExpKind::Def(d, _) => {
            c.declarations.get(d).map_or("the function".into(), |d| d.name.text.to_string())
        }
        ExpKind::Intrinsic(i, _) => intrinsics::TABLE
            .iter()
            .find(|(_, j, _)| i == j)
            .map_or("the function".into(), |r| r.0.to_string()),
        _ => "the function".into(),
    }
}

/// An attribute without its syntax.
pub(crate) fn convert_attribute(a: &ast::Attribute) -> Attribute {
    Attribute { name: a.name.text.clone(), arguments: arguments(a), span: a.span }
}

fn arguments(a: &ast::Attribute) -> Vec<AttributeArgument> {
    let one = |x: &ast::AttributeArgument| match x {
        ast::AttributeArgument::Int(k, _) => AttributeArgument::Int(i64::try_from(*k).unwrap_or(i64::MAX)),
        ast::AttributeArgument::Nested(n) => AttributeArgument::Name(n.name.text.clone(), arguments(n)),
    };
    a.arguments.iter().map(one).collect()
}

impl Metas {
    /// Whether a size is this binder, through any number of steps.
    pub(crate) fn size_is(&self, size: &Size, binder: SizeMetaId) -> bool {
        let mut size = size.clone();
        loop {
            match &size {
                Size::Meta(m) if *m == binder => return true,
                Size::Meta(m) => match self.size_bound(*m) {
                    Some(next) => size = next,
                    None => return false,
                },
                Size::Const(_) | Size::Var(..) | Size::Def(..) | Size::Expression(_) | Size::Unknown(_) => {
                    return false;
                }
            }
        }
    }
}
