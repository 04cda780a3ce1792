//! Expressions: names, members of scalar modules, calls.
//!
//! Until a definition is finished, an operator node carries its operand type, a literal the widest value of its kind, and
//! a projection a field name: see `finish`.

use crate::checker::{Checker, Global, nearest};
use crate::intrinsics::{self, Intrinsic, Member};
use crate::operator::{builtin, prim_value};
use crate::size;
use crate::typed::*;
use crate::unify::{Kind, Metas};
use pullback_base::{Code, Span, Symbol};
use pullback_prim::{Op, Prim, Scalar, ScalarValue};
use pullback_syntax::ast;

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

    pub(crate) fn name(&mut self, name: &ast::QualName) -> Exp {
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

    pub(crate) fn plain_name(&mut self, text: &Symbol, span: Span) -> Exp {
        if let Some(var) = self.local(text) {
            return self.local_use(var, span);
        }
        if let Some(def) = self.global(text)
            && (self.prelude_names.get(text) != Some(&def) || builtin(text.as_str()).is_none())
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
        self.unflattens.push((span, self.program.vars.len()));
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
        let f = match &f.kind {
            // Before Futhark 0.24 the sizes of `unflatten` were arguments; both forms are understood.
            ast::ExprKind::Var(name)
                if arguments.len() == 3 && name.name.text.as_str() == "unflatten" && self.is_free(name) =>
            {
                let ty = "(n: i64) -> (m: i64) -> [k]a -> [n][m]a";
                self.intrinsic_use(Intrinsic::Unflatten, ty, f.span)
            }
            _ => self.infer(f),
        };
        let arguments: Vec<Exp> = arguments.iter().map(|a| self.infer(a)).collect();
        self.apply(f, arguments, span)
    }

    /// Whether a plain name is neither a local variable nor a definition.
    fn is_free(&self, name: &ast::QualName) -> bool {
        let text = &name.name.text;
        name.qualifiers.is_empty() && self.local(text).is_none() && self.global(text).is_none()
    }

    /// The size of a concatenation or of a flattened array, where the parts have known sizes.
    fn combined_size(&mut self, f: &Exp, arguments: &[Exp], ty: Type) -> Type {
        let outer = |c: &Self, t: &Type| match c.metas.shallow(t) {
            Type::Array(s, t) => Some((c.metas.size(&s), (*t).clone())),
            _ => None,
        };
        let known = match (&f.kind, arguments) {
            (ExpKind::Intrinsic(Intrinsic::Concat, _), [a, b]) => outer(self, &a.ty)
                .zip(outer(self, &b.ty))
                .and_then(|((n, element), (m, _))| Some((size::add(&n, &m, 1)?, element))),
            (ExpKind::Intrinsic(Intrinsic::Flatten, _), [a]) => outer(self, &a.ty).and_then(|(n, row)| {
                let (m, element) = outer(self, &row)?;
                Some((size::multiply(&n, &m)?, element))
            }),
            _ => None,
        };
        known.map_or(ty, |(size, element)| Type::array(size, element))
    }

    /// A call of `f`.
    pub(crate) fn apply(&mut self, f: Exp, arguments: Vec<Exp>, span: Span) -> Exp {
        let before = self.metas.undecided;
        let what = callee(self, &f);
        let mut ty = f.ty.clone();
        let mut is_dependent = false;
        for (i, argument) in arguments.iter().enumerate() {
            let name = format!("argument {} of {what}", i + 1);
            match self.metas.shallow(&ty) {
                Type::Fun(binder, param, result) => {
                    if !self.expect(&param, &argument.ty, argument.span, &name)
                        && let Some(hint) = rule_hint(&f)
                    {
                        self.diagnostics.last_mut().into_iter().for_each(|d| d.hints.push(hint.into()));
                    }
                    ty = match binder {
                        Some(b) => {
                            is_dependent = true;
                            self.supply(b.id, argument, &result)
                        }
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
        let ty = self.combined_size(&f, &arguments, ty);
        if self.metas.undecided > before {
            let functions = arguments.iter().any(|a| matches!(self.metas.shallow(&a.ty), Type::Fun(..)));
            match f.kind {
                ExpKind::Def(def, _) => {
                    self.needs_checks.insert(def);
                    self.all_checks |= functions;
                }
                // Built-in functions test the sizes of their arrays themselves; nobody tests those of functions.
                ExpKind::Intrinsic(..) => self.all_checks |= functions,
                _ => self.all_checks = true,
            }
        }
        // A function that is a value may have been made with other sizes than its type says.
        let is_tested = is_dependent && !matches!(f.kind, ExpKind::Def(..) | ExpKind::Intrinsic(..));
        // `f a b` and `(f a) b` are the same.
        let mut f = f;
        let (f, all) = if let ExpKind::Apply(inner, first) = &mut f.kind {
            let inner = std::mem::replace(&mut **inner, Checker::exp(ExpKind::Error, ty.clone(), span));
            (inner, std::mem::take(first).into_iter().chain(arguments).collect())
        } else {
            (f, arguments)
        };
        let applied = Checker::exp(ExpKind::Apply(Box::new(f), all), ty.clone(), span);
        if is_tested {
            let asked = self.metas.zonk(&ty);
            return self.coerce(applied, &ty, &asked, true, span, span);
        }
        applied
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
                        Op::Mul => self.product_size(&x, &y),
                        _ => None,
                    }
                }
                _ => None,
            },
            _ => None,
        }
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

/// What to look at where an argument of a function with its own reverse rule has the wrong type.
fn rule_hint(f: &Exp) -> Option<&'static str> {
    match &f.kind {
        ExpKind::Apply(inner, _) => rule_hint(inner),
        ExpKind::Intrinsic(Intrinsic::WithVjp, _) => Some(
            "the rule of `with_vjp` takes the result of the function and the cotangent of that; a rule that takes the argument \
             instead belongs to `with_rule`",
        ),
        ExpKind::Intrinsic(Intrinsic::WithVjpTape, _) => Some(
            "the function of `with_vjp_tape` returns a pair (tape, result), and the rule takes the pair (tape, cotangent of the \
             result)",
        ),
        _ => None,
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
