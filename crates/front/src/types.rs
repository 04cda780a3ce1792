//! Type expressions: names, abbreviations, sizes, recursive sums.

use crate::checker::{Checker, TypeName, nearest};
use crate::size;
use crate::typed::*;
use crate::unify::NODE_LIMIT;
use pullback_base::{Code, Span, Symbol};
use pullback_prim::Scalar;
use pullback_syntax::ast;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What `[]` means in a type expression.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnySize {
    /// Whatever fits: parameters, patterns, ascriptions.
    Infer,
    /// A size known at run time only: results of definitions that are used before they are checked.
    Unknown,
}

/// Parameters of the abbreviation being expanded; empty outside.
#[derive(Default)]
pub(crate) struct TypeEnv {
    types: BTreeMap<Symbol, Type>,
    sizes: BTreeMap<Symbol, Size>,
    depth: usize,
}

impl<'a> Checker<'a> {
    /// The type that a type expression means.
    pub(crate) fn type_of(&mut self, ty: &ast::Type, any: AnySize) -> Type {
        self.type_budget = NODE_LIMIT;
        self.convert(ty, any, &TypeEnv::default())
    }

    fn convert(&mut self, ty: &ast::Type, any: AnySize, env: &TypeEnv) -> Type {
        if self.type_budget == 0 || env.depth > 100 {
            if self.type_budget > 0 || env.depth > 100 {
                self.error(
                    Code::TooDeep,
                    ty.span,
                    "this type is too large once its abbreviations are expanded",
                )
                .hints
                .push("use smaller types, or a recursive sum type".into());
            }
            return Type::Error;
        }
        self.type_budget -= 1;
        if self.type_budget == 0 {
            self.error(Code::TooDeep, ty.span, "this type is too large once its abbreviations are expanded")
                .hints
                .push("use smaller types, or a recursive sum type".into());
            return Type::Error;
        }
        match &ty.kind {
            ast::TypeKind::Named(name) => self.named_type(name, &[], any, env, ty.span),
            ast::TypeKind::Apply(name, arguments) => self.named_type(name, arguments, any, env, ty.span),
            ast::TypeKind::Array(size, element) => {
                let size = self.size_of(size, any, env);
                let element = self.convert(element, any, env);
                Type::Array(size, Arc::new(element))
            }
            ast::TypeKind::Tuple(ts) => Type::Tuple(ts.iter().map(|t| self.convert(t, any, env)).collect()),
            ast::TypeKind::Record(fields) => self.record_type(fields, any, env),
            ast::TypeKind::Sum(variants) => self.sum_type(variants, any, env),
            ast::TypeKind::Function { param, from, to } => {
                self.function_type(param.as_ref(), from, to, any, env)
            }
            ast::TypeKind::Unique(t) => self.convert(t, any, env),
            ast::TypeKind::Exists(names, t) => {
                let mut inner =
                    TypeEnv { types: env.types.clone(), sizes: env.sizes.clone(), depth: env.depth };
                for name in names {
                    let size = self.any_size(any);
                    inner.sizes.insert(name.text.clone(), size);
                }
                self.convert(t, any, &inner)
            }
            ast::TypeKind::Error => Type::Error,
        }
    }

    fn any_size(&mut self, any: AnySize) -> Size {
        match any {
            AnySize::Infer => Size::Meta(self.metas.fresh_size()),
            AnySize::Unknown => self.metas.unknown(),
        }
    }

    fn record_type(&mut self, fields: &[(ast::Name, ast::Type)], any: AnySize, env: &TypeEnv) -> Type {
        let mut out: Vec<(Symbol, Type)> = Vec::new();
        for (name, t) in fields {
            let t = self.convert(t, any, env);
            if out.iter().any(|(n, _)| *n == name.text) {
                self.error(Code::DuplicateName, name.span, format!("field {} occurs twice", name.text))
                    .hints
                    .push("remove one of them".into());
            } else {
                out.push((name.text.clone(), t));
            }
        }
        record(out)
    }

    fn sum_type(&mut self, variants: &[(ast::Name, Vec<ast::Type>)], any: AnySize, env: &TypeEnv) -> Type {
        let variants = self.variants(variants, any, env);
        Type::Sum(Arc::from(variants))
    }

    fn variants(
        &mut self,
        variants: &[(ast::Name, Vec<ast::Type>)],
        any: AnySize,
        env: &TypeEnv,
    ) -> Vec<(Symbol, Vec<Type>)> {
        let mut out: Vec<(Symbol, Vec<Type>)> = Vec::new();
        for (name, ts) in variants {
            let ts = ts.iter().map(|t| self.convert(t, any, env)).collect();
            if out.iter().any(|(n, _)| *n == name.text) {
                self.error(
                    Code::DuplicateName,
                    name.span,
                    format!("alternative #{} occurs twice", name.text),
                )
                .hints
                .push("remove one of them".into());
            } else {
                out.push((name.text.clone(), ts));
            }
        }
        out.sort_by(|a, b| a.0.cmp(&b.0));
        out
    }

    fn function_type(
        &mut self,
        param: Option<&ast::Name>,
        from: &ast::Type,
        to: &ast::Type,
        any: AnySize,
        env: &TypeEnv,
    ) -> Type {
        let from = self.convert(from, any, env);
        let Some(param) = param else {
            let to = self.convert(to, any, env);
            return Type::fun(from, to);
        };
        let binder = self.metas.fresh_size();
        let mut inner = TypeEnv { types: env.types.clone(), sizes: env.sizes.clone(), depth: env.depth };
        inner.sizes.insert(param.text.clone(), Size::Meta(binder));
        let to = self.convert(to, any, &inner);
        let binder = Binder { id: binder, name: param.text.clone() };
        Type::Fun(Some(binder), Arc::new(from), Arc::new(to))
    }

    fn named_type(
        &mut self,
        name: &ast::QualName,
        arguments: &[ast::TypeArgument],
        any: AnySize,
        env: &TypeEnv,
        span: Span,
    ) -> Type {
        let text = &name.name.text;
        if let Some(q) = name.qualifiers.first() {
            // `f64.t` is the type of the module itself.
            if let (Some(s), "t") = (Scalar::from_name(q.text.as_str()), text.as_str()) {
                return Type::Scalar(s);
            }
            self.error(
                Code::Unsupported,
                span,
                format!("modules are not supported yet, so there is no {}.{text}", q.text),
            );
            return Type::Error;
        }
        let parameter = env.types.get(text).cloned();
        let parameter = parameter.or_else(|| self.type_params.get(text).and_then(|s| s.last()).cloned());
        if let Some(t) = parameter {
            self.no_arguments(arguments, text, span);
            return t;
        }
        if let Some(found) = self.scope().types.get(text).copied() {
            return self.expand(found, arguments, any, env, span);
        }
        if let Some(s) = Scalar::from_name(text.as_str()) {
            self.no_arguments(arguments, text, span);
            return Type::Scalar(s);
        }
        if text.as_str() == "f16" {
            self.error(Code::Unsupported, span, "the type f16 is not supported yet")
                .hints
                .push("use f32".into());
            return Type::Error;
        }
        let known = self.scope().types.keys().chain(self.type_params.keys()).map(|s| s.as_str());
        let near = nearest(text.as_str(), known.chain(Scalar::ALL.iter().map(|s| s.name())));
        let d = self.error(Code::UnknownName, span, format!("there is no type {text}"));
        d.hints.push(match near {
            Some(near) => format!("did you mean {near}?"),
            None => format!("define it with `type {text} = ..`, or bind it as a type parameter '{text}"),
        });
        Type::Error
    }

    fn no_arguments(&mut self, arguments: &[ast::TypeArgument], name: &Symbol, span: Span) {
        if !arguments.is_empty() {
            self.error(Code::TypeMismatch, span, format!("the type {name} takes no arguments"))
                .hints
                .push("remove the arguments".into());
        }
    }

    fn expand(
        &mut self,
        found: TypeName<'a>,
        arguments: &[ast::TypeArgument],
        any: AnySize,
        env: &TypeEnv,
        span: Span,
    ) -> Type {
        let declaration = found.declaration;
        if found.broken {
            return Type::Error;
        }
        if declaration.params.len() != arguments.len() {
            let (n, m) = (declaration.params.len(), arguments.len());
            self.error(
                Code::TypeMismatch,
                span,
                format!("the type {} takes {n} arguments, here are {m}", declaration.name.text),
            )
            .labels
            .push(pullback_base::Label { span: declaration.name.span, text: "defined here".into() });
            return Type::Error;
        }
        if let Some(id) = found.recursive {
            return Type::Named(id, declaration.name.text.clone());
        }
        let mut inner = TypeEnv { depth: env.depth + 1, ..TypeEnv::default() };
        for (param, argument) in declaration.params.iter().zip(arguments) {
            match (param, argument) {
                (ast::TypeParam::Size(name), ast::TypeArgument::Size(s)) => {
                    let s = self.size_of(s, any, env);
                    inner.sizes.insert(name.text.clone(), s);
                }
                (ast::TypeParam::Type(name, _), ast::TypeArgument::Type(t)) => {
                    let t = self.convert(t, any, env);
                    inner.types.insert(name.text.clone(), t);
                }
                (ast::TypeParam::Size(name), ast::TypeArgument::Type(t)) => {
                    self.error(Code::TypeMismatch, t.span, format!("the parameter {} is a size", name.text))
                        .hints
                        .push("write a size in brackets: `[n]`".into());
                    inner.sizes.insert(name.text.clone(), Size::Const(0));
                }
                (ast::TypeParam::Type(name, _), ast::TypeArgument::Size(_)) => {
                    self.error(Code::TypeMismatch, span, format!("the parameter '{} is a type", name.text))
                        .hints
                        .push("write a type without brackets".into());
                    inner.types.insert(name.text.clone(), Type::Error);
                }
            }
        }
        // The parameters of the enclosing definition are not visible in the abbreviation.
        let outer = std::mem::take(&mut self.type_params);
        let file = std::mem::replace(&mut self.file, found.file);
        let ty = self.convert(&declaration.definition, any, &inner);
        self.file = file;
        self.type_params = outer;
        ty
    }

    fn size_of(&mut self, size: &ast::SizeExpr, any: AnySize, env: &TypeEnv) -> Size {
        match size {
            ast::SizeExpr::Any(_) => self.any_size(any),
            ast::SizeExpr::Exp(e) => match self.static_size(e, env) {
                Some(s) => s,
                None => {
                    let e = self.infer(e);
                    let span = e.span;
                    self.expect(&Type::Scalar(Scalar::I64), &e.ty, span, "a size");
                    self.size_value(&e).unwrap_or_else(|| self.metas.unknown())
                }
            },
        }
    }

    /// The size of an expression over parameters of the type abbreviation (which are no variables).
    fn static_size(&mut self, e: &ast::Expr, env: &TypeEnv) -> Option<Size> {
        if env.sizes.is_empty() {
            return None;
        }
        match &e.kind {
            ast::ExprKind::Var(name) if name.qualifiers.is_empty() => env.sizes.get(&name.name.text).cloned(),
            ast::ExprKind::Binary(op, a, b) if op.name.qualifiers.is_empty() => {
                let (x, y) = (self.static_size(a, env), self.static_size(b, env));
                if x.is_none() && y.is_none() {
                    return None;
                }
                let unknown = |c: &mut Self| Some(c.metas.unknown());
                let x = x.map_or_else(|| self.literal_size(a), Some);
                let y = y.map_or_else(|| self.literal_size(b), Some);
                let (Some(x), Some(y)) = (x, y) else { return unknown(self) };
                let (x, y) = (self.metas.size(&x), self.metas.size(&y));
                let result = match op.name.name.text.as_str() {
                    "+" => size::add(&x, &y, 1),
                    "-" => size::add(&x, &y, -1),
                    "*" => self.product_size(&x, &y),
                    _ => None,
                };
                result.or_else(|| unknown(self))
            }
            _ => None,
        }
    }

    fn literal_size(&mut self, e: &ast::Expr) -> Option<Size> {
        match &e.kind {
            ast::ExprKind::Literal(ast::Literal::Int(k, _)) => i64::try_from(*k).ok().map(Size::Const),
            _ => {
                let e = self.infer(e);
                self.size_value(&e)
            }
        }
    }

    // ---- declarations ----

    /// Registers the type declarations of a file: finds duplicates, recursive sums and cycles.
    pub(crate) fn declare_types(&mut self, declarations: &[&'a ast::TypeDeclaration]) {
        let mut own: BTreeMap<Symbol, Span> = BTreeMap::new();
        for d in declarations {
            if let Some(first) = own.get(&d.name.text).copied() {
                self.error(
                    Code::DuplicateName,
                    d.name.span,
                    format!("the type {} is defined twice", d.name.text),
                )
                .labels
                .push(pullback_base::Label { span: first, text: "first defined here".into() });
                continue;
            }
            own.insert(d.name.text.clone(), d.name.span);
            let name = TypeName { declaration: d, recursive: None, broken: false, file: self.file };
            self.scope_mut().types.insert(d.name.text.clone(), name);
        }
        let mut recursive: Vec<(&'a ast::TypeDeclaration, TypeId)> = Vec::new();
        for d in declarations {
            if !self.reaches_itself(d) {
                continue;
            }
            let sum = matches!(d.definition.kind, ast::TypeKind::Sum(_));
            let entry = if sum && d.params.is_empty() {
                let id = self.program.types.push(NamedType {
                    name: d.name.text.clone(),
                    variants: Vec::new(),
                    span: d.name.span,
                });
                self.metas.named.push(self.program.types[id].clone());
                recursive.push((d, id));
                TypeName { declaration: d, recursive: Some(id), broken: false, file: self.file }
            } else {
                if sum {
                    self.error(
                        Code::Unsupported,
                        d.name.span,
                        "recursive types with parameters are not supported yet",
                    )
                    .hints
                    .push("write the type once for each argument".into());
                } else if self.passes_no_sum(d) {
                    self.error(
                        Code::TypeMismatch,
                        d.name.span,
                        format!("the type {} contains itself", d.name.text),
                    )
                    .hints
                    .push("only sum types (#a t | #b u) may be recursive".into());
                } else {
                    continue;
                }
                TypeName { declaration: d, recursive: None, broken: true, file: self.file }
            };
            self.scope_mut().types.insert(d.name.text.clone(), entry);
        }
        for (d, id) in recursive {
            if let ast::TypeKind::Sum(variants) = &d.definition.kind {
                self.type_budget = NODE_LIMIT;
                let variants = self.variants(variants, AnySize::Unknown, &TypeEnv::default());
                self.program.types[id].variants = variants.clone();
                self.metas.named[id].variants = variants;
            }
        }
        // Abbreviations that nothing uses are checked too.
        for d in declarations {
            let known = self.scope().types.get(&d.name.text).copied();
            if known.is_some_and(|t| !t.broken && t.recursive.is_none()) {
                self.check_type_declaration(d);
            }
        }
    }

    fn check_type_declaration(&mut self, d: &ast::TypeDeclaration) {
        let mut env = TypeEnv::default();
        for param in &d.params {
            let name = match param {
                ast::TypeParam::Size(name) => {
                    let size = self.metas.unknown();
                    env.sizes.insert(name.text.clone(), size).map(|_| name)
                }
                ast::TypeParam::Type(name, _) => {
                    env.types.insert(name.text.clone(), Type::Error).map(|_| name)
                }
            };
            if let Some(name) = name {
                self.error(
                    Code::DuplicateName,
                    name.span,
                    format!("the parameter {} occurs twice", name.text),
                )
                .hints
                .push("remove one of them".into());
            }
        }
        self.type_budget = NODE_LIMIT;
        self.convert(&d.definition, AnySize::Unknown, &env);
    }

    /// Whether a declaration of this file mentions itself, directly or through others.
    fn reaches_itself(&self, d: &ast::TypeDeclaration) -> bool {
        self.reaches(d, &|_| true)
    }

    /// Whether a cyclic declaration reaches itself without passing a recursive sum.
    fn passes_no_sum(&self, d: &ast::TypeDeclaration) -> bool {
        self.reaches(d, &|t| {
            let is_sum = matches!(t.definition.kind, ast::TypeKind::Sum(_));
            !(is_sum && self.reaches_itself(t))
        })
    }

    /// Whether a declaration of this file is mentioned in itself, or in one that it mentions and that `passes`, and so on.
    fn reaches(&self, d: &ast::TypeDeclaration, passes: &dyn Fn(&ast::TypeDeclaration) -> bool) -> bool {
        // A name of another file is no name of this one: no file sees those that import it.
        let mut seen: Vec<Symbol> = Vec::new();
        let mut work: Vec<Symbol> = mentioned(&d.definition);
        while let Some(name) = work.pop() {
            if name == d.name.text {
                return true;
            }
            if seen.contains(&name) {
                continue;
            }
            let known = self.scope().types.get(&name).filter(|t| t.file == self.file);
            if let Some(t) = known.filter(|t| passes(t.declaration)) {
                work.extend(mentioned(&t.declaration.definition));
            }
            seen.push(name);
        }
        false
    }
}

/// A record type with its fields in order; unit if it has none.
pub(crate) fn record(mut fields: Vec<(Symbol, Type)>) -> Type {
    if fields.is_empty() {
        return Type::unit();
    }
    fields.sort_by(|a, b| a.0.cmp(&b.0));
    Type::Record(Arc::from(fields))
}

/// The type names in a type expression.
fn mentioned(ty: &ast::Type) -> Vec<Symbol> {
    let mut out = Vec::new();
    let mut work = vec![ty];
    while let Some(t) = work.pop() {
        match &t.kind {
            ast::TypeKind::Named(name) => out.push(name.name.text.clone()),
            ast::TypeKind::Apply(name, arguments) => {
                out.push(name.name.text.clone());
                work.extend(arguments.iter().filter_map(|a| match a {
                    ast::TypeArgument::Type(t) => Some(t),
                    ast::TypeArgument::Size(_) => None,
                }));
            }
            ast::TypeKind::Array(_, t) | ast::TypeKind::Unique(t) | ast::TypeKind::Exists(_, t) => {
                work.push(t)
            }
            ast::TypeKind::Tuple(ts) => work.extend(ts),
            ast::TypeKind::Record(fields) => work.extend(fields.iter().map(|(_, t)| t)),
            ast::TypeKind::Function { from, to, .. } => work.extend([&**from, &**to]),
            ast::TypeKind::Sum(variants) => work.extend(variants.iter().flat_map(|(_, ts)| ts)),
            ast::TypeKind::Error => {}
        }
    }
    out
}
