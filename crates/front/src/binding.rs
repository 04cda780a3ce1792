//! Definitions inside expressions, and what top-level and local functions have in common.

use crate::checker::{Checker, Scheme};
use crate::size;
use crate::typed::*;
use crate::types::AnySize;
use crate::unify::{Kind, Metas};
use pullback_base::index::{IdMap, IdSet, Index};
use pullback_base::{Code, Label, Span, Symbol};
use pullback_prim::Scalar;
use pullback_syntax::ast;
use std::sync::Arc;

/// A function before its type is generalised.
pub(crate) struct OpenFunction {
    pub(crate) type_params: Vec<TypeParamId>,
    /// Size parameters by name.
    pub(crate) size_params: Vec<VarId>,
    /// Sizes written `[]` in parameters: the caller chooses them, but they have no name.
    pub(crate) implicit: Vec<VarId>,
    pub(crate) params: Vec<Pattern>,
    /// Number of variables before the body: those from here on are not in scope at entry.
    pub(crate) outer_vars: usize,
    pub(crate) result: Type,
    pub(crate) body: Exp,
}

/// The parts of a function declaration.
pub(crate) struct Parts<'s> {
    pub(crate) type_params: &'s [ast::TypeParam],
    pub(crate) params: &'s [ast::Pattern],
    pub(crate) return_type: Option<&'s ast::Type>,
    pub(crate) body: &'s ast::Expr,
}

impl<'a> Checker<'a> {
    /// Brings size and type parameters into scope. Returns both, and the names to be given to
    /// [`Checker::leave_type_params`].
    pub(crate) fn enter_type_params(
        &mut self,
        params: &[ast::TypeParam],
    ) -> (Vec<TypeParamId>, Vec<VarId>, Vec<Symbol>) {
        let (mut types, mut sizes, mut names) = (Vec::new(), Vec::new(), Vec::new());
        let mut seen: Vec<&ast::Name> = Vec::new();
        for param in params {
            let name = match param {
                ast::TypeParam::Size(name) | ast::TypeParam::Type(name, _) => name,
            };
            if let Some(first) = seen.iter().find(|n| n.text == name.text) {
                let label = Label { span: first.span, text: "first here".into() };
                self.error(
                    Code::DuplicateName,
                    name.span,
                    format!("the parameter {} occurs twice", name.text),
                )
                .labels
                .push(label);
            }
            seen.push(name);
            match param {
                ast::TypeParam::Size(name) => {
                    let var = self.new_var(name.text.as_str(), Type::Scalar(Scalar::I64), name.span);
                    self.metas.rigid.insert(var);
                    self.bring(&name.text, var);
                    sizes.push(var);
                }
                ast::TypeParam::Type(name, _) => {
                    let id = self.type_param_id();
                    let ty = Type::Param(id, name.text.clone());
                    self.type_params.entry(name.text.clone()).or_default().push(ty);
                    types.push(id);
                    names.push(name.text.clone());
                }
            }
        }
        (types, sizes, names)
    }
    pub(crate) fn leave_type_params(&mut self, names: Vec<Symbol>) {
        for name in names {
            if let Some(stack) = self.type_params.get_mut(&name) {
                stack.pop();
                if stack.is_empty() {
                    self.type_params.remove(&name);
                }
            }
        }
    }
    fn type_param_id(&mut self) -> TypeParamId {
        let id = <TypeParamId as pullback_base::index::Index>::new(self.type_param_count);
        self.type_param_count += 1;
        id
    }

    /// Types a function. `own` is its type for recursive uses, if it has one.
    pub(crate) fn function(&mut self, parts: &Parts<'_>, own: Option<&Type>) -> OpenFunction {
        let mark = self.mark();
        let (type_params, size_params, names) = self.enter_type_params(parts.type_params);
        let params = self.patterns(parts.params);
        for p in &params {
            self.must_fit(p);
            self.rigid_params(p);
        }
        let implicit = self.name_open_sizes(&params);
        let declared = parts.return_type.map(|t| (self.type_of(t, AnySize::Infer), t.span));
        let outer_vars = self.program.vars.len();
        if let Some(own) = own {
            let result = match &declared {
                Some((t, _)) => t.clone(),
                None => self.metas.any(parts.body.span),
            };
            let ty = params.iter().rev().fold(result, |r, p| Type::fun(p.ty.clone(), r));
            self.expect(own, &ty, parts.body.span, "the definition");
        }
        let body = self.infer(parts.body);
        let (body, result) = self.returned(body, declared);
        if let Some(own) = own {
            let mut ty = own.clone();
            for _ in &params {
                if let Type::Fun(_, _, r) = self.metas.shallow(&ty) {
                    ty = (*r).clone();
                }
            }
            // Sizes of a recursive result may differ from call to call.
            if let Err(m) = self.metas.unify(&ty, &result, true) {
                self.mismatch(m, &ty, &result, parts.body.span, "the body");
            }
        }
        self.leave(mark);
        self.leave_type_params(names);
        OpenFunction { type_params, size_params, implicit, params, outer_vars, result, body }
    }

    /// Makes the sizes written `[]` in parameters sizes of the caller's choice.
    fn name_open_sizes(&mut self, params: &[Pattern]) -> Vec<VarId> {
        let mut implicit = Vec::new();
        for p in params {
            let (mut types, mut sizes) = (Vec::new(), Vec::new());
            self.open_parts(&p.ty, &mut types, &mut sizes);
            for m in sizes {
                let name = format!("?{}", self.program.vars.len());
                let var = self.new_var(&name, Type::Scalar(Scalar::I64), p.span);
                self.metas.rigid.insert(var);
                self.metas.set_size(m, Size::Var(var, Symbol::from(name)));
                implicit.push(var);
            }
        }
        implicit
    }

    /// Whole `i64` parameters may be sizes, which the caller chooses.
    fn rigid_params(&mut self, p: &Pattern) {
        if let (PatternKind::Var(v), Type::Scalar(Scalar::I64)) = (&p.kind, self.metas.shallow(&p.ty)) {
            self.metas.rigid.insert(*v);
        }
    }

    /// The body at its declared type.
    fn returned(&mut self, body: Exp, declared: Option<(Type, Span)>) -> (Exp, Type) {
        let Some((wanted, place)) = declared else {
            let ty = body.ty.clone();
            return (body, ty);
        };
        let asked = self.metas.zonk(&wanted);
        let before = self.metas.undecided;
        // The place to look at is the end of the body, not the whole of it.
        let (found, span) = (body.ty.clone(), result_span(&body));
        if !self.expect(&wanted, &found, span, "the result")
            && let Some(d) = self.diagnostics.last_mut()
        {
            d.labels.push(Label { span: place, text: "because of this annotation".into() });
        }
        let undecided = self.metas.undecided > before;
        let whole = body.span;
        let body = self.coerce(body, &wanted, &asked, undecided, place, whole);
        (body, wanted)
    }

    /// Turns the open parts of a function's type into parameters and says how its sizes are obtained.
    pub(crate) fn close(&mut self, open: OpenFunction, span: Span, top: bool) -> (Function, Scheme) {
        let OpenFunction { mut type_params, size_params, implicit, params, outer_vars, result, body } = open;
        let level = self.metas.level;
        let mut sizes = size_params.clone();
        sizes.extend(implicit);
        let metas = &self.metas;
        let mut unknown = false;
        for p in &params {
            metas.map(&p.ty, &mut |s| {
                let s = &metas.size(s);
                unknown |= matches!(s, Size::Unknown(_)) || size::mentions(s, |v| v.index() >= outer_vars);
                metas.size(s)
            });
        }
        // The size of a parameter was inferred to be that of something computed inside: nothing tells the caller.
        self.all_checks |= unknown;
        for p in &params {
            self.generalise(&p.ty, level, top, true, &mut type_params, &mut sizes, span);
        }
        self.generalise(&result, level, top, params.is_empty(), &mut type_params, &mut sizes, span);
        let (binds, checks) = self.entry_sizes(&params, &size_params, outer_vars);
        for v in &size_params {
            if !binds.iter().any(|b| b.var == *v) && self.value_uses.contains(v) {
                let var = self.program.vars[*v].clone();
                self.error(
                    Code::Unsupported,
                    var.span,
                    format!(
                        "the size {} is not the size of any parameter, so its value cannot be obtained",
                        var.name
                    ),
                )
                .hints
                .push(format!("make it a parameter: ({}: i64)", var.name));
            }
        }
        let (ty, binders) = self.function_type_of(&params, &result);
        let scheme = Scheme { type_params: type_params.clone(), sizes, binders, ty };
        let fun = Function { type_params, params, sizes: binds, checks, needs_checks: !top, result, body };
        (fun, scheme)
    }

    /// The curried type of a function, with binders for parameters that sizes mention.
    pub(crate) fn function_type_of(
        &mut self,
        params: &[Pattern],
        result: &Type,
    ) -> (Type, Vec<(VarId, SizeMetaId)>) {
        let mut binders: Vec<(VarId, SizeMetaId)> = Vec::new();
        let mut types: Vec<(Option<Binder>, Type)> = Vec::new();
        for p in params {
            let ty = self.bind_sizes(&p.ty, &binders);
            let mut binder: Option<Binder> = None;
            if let (PatternKind::Var(v), Type::Scalar(Scalar::I64)) = (&p.kind, self.metas.shallow(&p.ty)) {
                let id = self.metas.fresh_size();
                binders.push((*v, id));
                binder = Some(Binder { id, name: self.program.vars[*v].name.clone() });
            }
            types.push((binder, ty));
        }
        let mut ty = self.bind_sizes(result, &binders);
        // Variables inside tuple patterns are no binders: what they mean is lost outside.
        let mut gone = IdSet::new();
        params.iter().for_each(|p| pattern_vars(p, &mut gone));
        binders.iter().for_each(|(v, _)| {
            gone.remove(v);
        });
        ty = self.escape(&ty, &gone);
        for (binder, p) in types.into_iter().rev() {
            let used = binder.filter(|b| self.binder_used(&ty, b.id, &binders));
            ty = Type::Fun(used, Arc::new(p), Arc::new(ty));
        }
        (ty, binders)
    }

    fn binder_used(&self, ty: &Type, b: SizeMetaId, binders: &[(VarId, SizeMetaId)]) -> bool {
        let mut used = false;
        let var = binders.iter().find(|(_, c)| *c == b).map(|(v, _)| *v);
        self.metas.map(ty, &mut |s| {
            let s = self.metas.size(s);
            used |= match &s {
                Size::Meta(m) => *m == b,
                Size::Expression(p) => p.keys().flatten().any(|a| match a {
                    SizeAtom::Var(v, _) => Some(*v) == var,
                    SizeAtom::Def(..) => false,
                }),
                Size::Const(_) | Size::Var(..) | Size::Def(..) | Size::Unknown(_) => false,
            };
            s
        });
        used
    }

    fn bind_sizes(&self, ty: &Type, binders: &[(VarId, SizeMetaId)]) -> Type {
        self.metas.map(ty, &mut |s| match self.metas.size(s) {
            Size::Var(v, name) => match binders.iter().find(|(w, _)| *w == v) {
                Some((_, b)) => Size::Meta(*b),
                None => Size::Var(v, name),
            },
            s => s,
        })
    }

    /// Makes type parameters of unknown types and sizes that belong to this definition only.
    #[allow(clippy::too_many_arguments, reason = "one walk that fills two lists")]
    fn generalise(
        &mut self,
        ty: &Type,
        level: u32,
        top: bool,
        sizes_too: bool,
        types: &mut Vec<TypeParamId>,
        sizes: &mut Vec<VarId>,
        span: Span,
    ) {
        let mut open_types = Vec::new();
        let mut open_sizes = Vec::new();
        self.open_parts(ty, &mut open_types, &mut open_sizes);
        for m in open_types {
            let own = top || self.metas.level_of(m) > level;
            if !own || !matches!(self.metas.kind_of(m), Kind::Any | Kind::Equality) {
                continue;
            }
            if !matches!(self.metas.shallow(&Type::Meta(m)), Type::Meta(_)) {
                continue;
            }
            let id = self.type_param_id();
            let name = Symbol::from(format!("t{}", types.len()));
            self.metas.set(m, Type::Param(id, name));
            types.push(id);
        }
        for m in open_sizes {
            let own = top || self.metas.size_level(m) > level;
            if !own || !matches!(self.metas.size(&Size::Meta(m)), Size::Meta(_)) {
                continue;
            }
            if sizes_too {
                let name = format!("?{}", self.program.vars.len());
                let var = self.new_var(&name, Type::Scalar(Scalar::I64), span);
                self.metas.rigid.insert(var);
                self.metas.set_size(m, Size::Var(var, Symbol::from(name)));
                sizes.push(var);
            } else {
                let size = self.metas.unknown();
                self.metas.set_size(m, size);
            }
        }
    }

    fn open_parts(&self, ty: &Type, types: &mut Vec<MetaId>, sizes: &mut Vec<SizeMetaId>) {
        match self.metas.shallow(ty) {
            Type::Meta(m) => {
                if !types.contains(&m) {
                    types.push(m);
                }
            }
            Type::Array(s, t) => {
                if let Size::Meta(m) = self.metas.size(&s)
                    && !sizes.contains(&m)
                {
                    sizes.push(m);
                }
                self.open_parts(&t, types, sizes);
            }
            Type::Tuple(ts) => ts.iter().for_each(|t| self.open_parts(t, types, sizes)),
            Type::Record(fs) => fs.iter().for_each(|(_, t)| self.open_parts(t, types, sizes)),
            Type::Sum(vs) => vs.iter().flat_map(|(_, ts)| ts).for_each(|t| self.open_parts(t, types, sizes)),
            Type::Fun(binder, p, r) => {
                self.open_parts(&p, types, sizes);
                self.open_parts(&r, types, sizes);
                // A binder stays one.
                sizes.retain(|s| binder.as_ref().is_none_or(|b| b.id != *s));
            }
            Type::Scalar(_) | Type::Param(..) | Type::Named(..) | Type::Error => {}
        }
    }

    /// Where size parameters are found, and what else must hold at entry.
    /// Sizes that mention variables of the body cannot be tested at entry.
    fn entry_sizes(
        &mut self,
        params: &[Pattern],
        named: &[VarId],
        outer_vars: usize,
    ) -> (Vec<SizeBind>, Vec<SizeCheck>) {
        let mut binds: Vec<SizeBind> = Vec::new();
        let mut places: Vec<(Place, Size, Span)> = Vec::new();
        let mut count: IdMap<VarId, usize> = IdMap::new();
        for (i, p) in params.iter().enumerate() {
            let mut found = Vec::new();
            dimensions(&self.metas, &p.ty, &mut vec![], &mut found);
            for (steps, size) in found {
                if let Size::Var(v, _) = &size {
                    *count.entry(*v).or_default() += 1;
                }
                places.push((Place { root: Root::Param(i), steps }, size, p.span));
            }
        }
        let mut params_vars = IdSet::new();
        params.iter().for_each(|p| pattern_vars(p, &mut params_vars));
        let mut checks = Vec::new();
        self.solve_sizes(&places, named, &mut binds);
        for (place, size, at) in places {
            if let Size::Var(v, name) = &size {
                let implicit = name.as_str().starts_with('?');
                let own = named.contains(v) || implicit;
                if own && !binds.iter().any(|b| b.var == *v) {
                    // Sizes without a name matter only if they occur twice.
                    if !implicit || count.get(v).copied().unwrap_or(0) > 1 {
                        binds.push(SizeBind { var: *v, place, offset: 0, factor: 1 });
                    }
                    continue;
                }
                if implicit {
                    let ty = Type::Scalar(Scalar::I64);
                    let expected = Checker::exp(ExpKind::Var(*v, vec![]), ty, at);
                    checks.push(SizeCheck { place, expected, span: at });
                    continue;
                }
            }
            if size::mentions(&size, |v| v.index() >= outer_vars) {
                continue;
            }
            if let Some(expected) = self.size_exp(&size, at) {
                checks.push(SizeCheck { place, expected, span: at });
            }
        }
        (binds, checks)
    }

    /// Size parameters that occur in parameters only as in `[2 * n + 1]`: the dimension gives the size.
    fn solve_sizes(&mut self, places: &[(Place, Size, Span)], named: &[VarId], binds: &mut Vec<SizeBind>) {
        for var in named {
            let plain = |(_, s, _): &&(Place, Size, Span)| matches!(s, Size::Var(v, _) if v == var);
            if places.iter().any(|p| plain(&p)) {
                continue;
            }
            let found = places.iter().find_map(|(place, size, _)| match size {
                Size::Expression(p) => linear(p, *var).map(|(factor, offset)| (place, factor, offset)),
                Size::Const(_) | Size::Var(..) | Size::Def(..) | Size::Unknown(_) | Size::Meta(_) => None,
            });
            if let Some((place, factor, offset)) = found {
                binds.push(SizeBind { var: *var, place: place.clone(), offset, factor });
            }
        }
    }

    // ---- expressions ----

    /// `\p .. : t -> body`.
    pub(crate) fn lambda(
        &mut self,
        params: &[ast::Pattern],
        return_type: Option<&ast::Type>,
        body: &ast::Expr,
        span: Span,
    ) -> Exp {
        let mark = self.mark();
        let params = self.patterns(params);
        params.iter().for_each(|p| self.must_fit(p));
        let declared = return_type.map(|t| (self.type_of(t, AnySize::Infer), t.span));
        let body = self.infer(body);
        let (body, result) = self.returned(body, declared);
        let gone = self.leave(mark);
        let (ty, _) = self.function_type_of(&params, &result);
        // A size computed from a parameter has no name outside; the parameter itself is bound by the type.
        let ty = self.escape(&ty, &gone);
        Checker::exp(ExpKind::Lambda(params, Box::new(body)), ty, span)
    }

    /// A chain of `let`s.
    pub(crate) fn let_chain(&mut self, bindings: &[ast::LetBinding], body: &ast::Expr, span: Span) -> Exp {
        let mark = self.mark();
        let mut out = Vec::new();
        for b in bindings {
            match &b.kind {
                ast::LetKind::Pattern { sizes, pattern, value } => {
                    let value = self.infer(value);
                    out.push(Binding::Value(self.let_value(sizes, pattern, value)));
                }
                ast::LetKind::Function { name, type_params, params, return_type, body } => {
                    let parts = Parts { type_params, params, return_type: return_type.as_ref(), body };
                    out.push(Binding::Fun(self.let_function(name, &parts, b.span)));
                }
                ast::LetKind::Update { name, indices, value } => {
                    let span = name.span;
                    let qualified = ast::QualName { qualifiers: vec![], name: name.clone(), span };
                    let array = self.infer(&ast::Expr::new(ast::ExprKind::Var(qualified), span));
                    let value = self.update_index(array, indices, value, b.span);
                    let pattern = self.fresh_pattern(name.text.as_str(), value.ty.clone(), span);
                    if let PatternKind::Var(v) = pattern.kind {
                        self.bring(&name.text, v);
                    }
                    out.push(Binding::Value(Let { pattern, value, sizes: vec![] }));
                }
            }
        }
        let body = self.infer(body);
        let gone = self.leave(mark);
        let ty = self.escape(&body.ty, &gone);
        Checker::exp(ExpKind::Let(out, Box::new(body)), ty, span)
    }

    fn let_value(&mut self, sizes: &[ast::Name], pattern: &ast::Pattern, value: Exp) -> Let {
        let mut named: Vec<(VarId, SizeMetaId)> = Vec::new();
        for name in sizes {
            let var = self.new_var(name.text.as_str(), Type::Scalar(Scalar::I64), name.span);
            let meta = self.metas.fresh_size();
            // In types the name is whatever size the value has; as a value it is read off the value.
            self.aliases.insert(var, Size::Meta(meta));
            self.bring(&name.text, var);
            named.push((var, meta));
        }
        let pattern = self.pattern(pattern);
        self.must_fit(&pattern);
        let asked = self.metas.zonk(&pattern.ty);
        let binds = self.let_sizes(&named, &asked);
        let before = self.metas.undecided;
        let span = value.span;
        self.expect(&pattern.ty, &value.ty, span, "the value");
        let undecided = self.metas.undecided > before;
        if let (PatternKind::Var(v), Type::Scalar(Scalar::I64)) =
            (&pattern.kind, self.metas.shallow(&value.ty))
            && let Some(size) = self.size_value(&value)
        {
            self.aliases.insert(*v, size);
        }
        let wanted = value.ty.clone();
        let value = if matches!(value.kind, ExpKind::Error) {
            value
        } else {
            self.coerce(value, &wanted, &asked, undecided, pattern.span, span)
        };
        Let { pattern, value, sizes: binds }
    }

    fn let_sizes(&mut self, named: &[(VarId, SizeMetaId)], asked: &Type) -> Vec<SizeBind> {
        let mut found = Vec::new();
        dimensions(&self.metas, asked, &mut vec![], &mut found);
        let mut binds = Vec::new();
        for (var, meta) in named {
            match found.iter().find(|(_, s)| *s == Size::Meta(*meta)) {
                Some((steps, _)) => {
                    let place = Place { root: Root::Value, steps: steps.clone() };
                    binds.push(SizeBind { var: *var, place, offset: 0, factor: 1 });
                }
                None => {
                    let var = self.program.vars[*var].clone();
                    self.error(
                        Code::Pattern,
                        var.span,
                        format!("the size {} does not occur in the pattern", var.name),
                    )
                    .hints
                    .push(format!("annotate the pattern: (x: [{}]t)", var.name));
                }
            }
        }
        binds
    }

    fn let_function(&mut self, name: &ast::Name, parts: &Parts<'_>, span: Span) -> LetFun {
        self.metas.level += 1;
        let open = self.function(parts, None);
        self.metas.level -= 1;
        let (fun, scheme) = self.close(open, span, false);
        let var = self.new_var(name.text.as_str(), scheme.ty.clone(), name.span);
        self.schemes.insert(var, scheme);
        self.bring(&name.text, var);
        LetFun { var, fun }
    }
}

/// Every dimension of a type that can be reached without a choice: steps to it and its size.
pub(crate) fn dimensions(metas: &Metas, ty: &Type, steps: &mut Vec<Step>, out: &mut Vec<(Vec<Step>, Size)>) {
    match metas.shallow(ty) {
        Type::Array(s, t) => {
            out.push((steps.clone(), metas.size(&s)));
            steps.push(Step::Element);
            dimensions(metas, &t, steps, out);
            steps.pop();
        }
        Type::Tuple(ts) => {
            for (i, t) in ts.iter().enumerate() {
                steps.push(Step::Component(i));
                dimensions(metas, t, steps, out);
                steps.pop();
            }
        }
        Type::Record(fs) => {
            for (i, (_, t)) in fs.iter().enumerate() {
                steps.push(Step::Component(i));
                dimensions(metas, t, steps, out);
                steps.pop();
            }
        }
        // Sizes inside sums and functions cannot be read off a value.
        Type::Scalar(_)
        | Type::Sum(_)
        | Type::Fun(..)
        | Type::Param(..)
        | Type::Named(..)
        | Type::Meta(_)
        | Type::Error => {}
    }
}

/// Factor and offset of a size that is linear in one variable and mentions no other.
fn linear(p: &Polynomial, var: VarId) -> Option<(i64, i64)> {
    let (mut factor, mut offset) = (0, 0);
    for (atoms, k) in p {
        match atoms.as_slice() {
            [] => offset = *k,
            [SizeAtom::Var(v, _)] if *v == var => factor = *k,
            _ => return None,
        }
    }
    (factor != 0).then_some((factor, offset))
}

/// The variables of a pattern.
pub(crate) fn pattern_vars(p: &Pattern, out: &mut IdSet<VarId>) {
    match &p.kind {
        PatternKind::Var(v) => {
            out.insert(*v);
        }
        PatternKind::Wildcard | PatternKind::Literal(_) => {}
        PatternKind::Tuple(ps) | PatternKind::Construct(_, _, ps) => {
            ps.iter().for_each(|p| pattern_vars(p, out));
        }
        PatternKind::Record(fs) => fs.iter().for_each(|(_, p)| pattern_vars(p, out)),
    }
}

/// The place of the expression that gives the value of `e`.
fn result_span(e: &Exp) -> Span {
    let mut e = e;
    while let ExpKind::Let(_, body) | ExpKind::Attributed(_, body) = &e.kind {
        e = body;
    }
    e.span
}
