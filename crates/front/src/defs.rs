//! Top-level definitions: order, recursion, entry points.

use crate::binding::Parts;
use crate::checker::{Checker, Global, Scheme, Scope};
use crate::expr::convert_attribute;
use crate::size;
use crate::typed::*;
use crate::types::AnySize;
use crate::unify::Kind;
use pullback_base::index::{IdMap, IdSet, Index};
use pullback_base::{Code, Diagnostic, Label, Span, Symbol};
use pullback_prim::Scalar;
use pullback_syntax::ast;
use std::collections::BTreeMap;

/// Names, types and sizes of a program.
///
/// The definitions of the prelude come first and are hidden by the user's. The result has all definitions of both; it
/// satisfies the conventions of [`crate::typed`] if no diagnostic is an error. Time is near linear in the program, but
/// types are limited in size (an error beyond), as Hindley-Milner types may grow exponentially.
pub fn check_program(prelude: &ast::Program, user: &ast::Program) -> (Program, Vec<Diagnostic>) {
    check_files(prelude, &[File { program: user, imports: Vec::new() }])
}

/// A file of a program.
#[derive(Clone, Debug)]
pub struct File<'a> {
    /// Its declarations.
    pub program: &'a ast::Program,
    /// The positions of the files that it imports, in their order: all before its own.
    pub imports: Vec<usize>,
}

/// The same for a program of several files, the last of which is the one to run: its entry points are those of the program.
///
/// A file sees its own definitions and those of the files that it imports, of which later ones hide earlier ones; not what
/// these import (Futhark reference, section "Referring to other files").
pub fn check_files(prelude: &ast::Program, files: &[File<'_>]) -> (Program, Vec<Diagnostic>) {
    let mut checker = Checker::new();
    checker.file(prelude, &[], Role::Prelude);
    for (k, file) in files.iter().enumerate() {
        let role = if k + 1 == files.len() { Role::Root } else { Role::Import };
        checker.file(file.program, &file.imports, role);
    }
    checker.complete();
    (checker.program, checker.diagnostics)
}

/// What a file is in a program.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Prelude,
    Import,
    Root,
}

impl<'a> Checker<'a> {
    fn file(&mut self, file: &'a ast::Program, imports: &[usize], role: Role) {
        self.enter_file(imports);
        let mut types = Vec::new();
        let mut values = Vec::new();
        for d in &file.declarations {
            match d {
                ast::Declaration::Type(t) => types.push(t),
                ast::Declaration::Value(v) => values.push(v),
            }
        }
        self.declare_types(&types);
        let first = self.program.defs.len();
        let mut ids = Vec::new();
        let mut own: BTreeMap<Symbol, Span> = BTreeMap::new();
        for v in values {
            let name = &v.name.text;
            if let Some(first) = own.get(name).copied() {
                self.error(Code::DuplicateName, v.name.span, format!("{name} is defined twice"))
                    .labels
                    .push(Label { span: first, text: "first defined here".into() });
                continue;
            }
            own.insert(name.clone(), v.name.span);
            let id = DefId::new(first + ids.len());
            let prelude = role == Role::Prelude;
            let names = if prelude { &mut self.prelude_names } else { &mut self.scope_mut().own };
            names.insert(name.clone(), id);
            self.globals.insert(id, Global::Pending);
            self.declarations.insert(id, v);
            ids.push((id, v));
        }
        for (id, v) in ids {
            let def = self.definition(id, v, role);
            self.program.defs.push(def);
        }
    }

    /// Makes the scope of a file: the names of its imports, by their positions. The types of the prelude are seen by all files.
    fn enter_file(&mut self, imports: &[usize]) {
        let mut scope = Scope::default();
        self.file = self.scopes.len();
        for k in std::iter::once(0).chain(imports.iter().map(|k| k + 1)) {
            let Some(other) = self.scopes.get(k) else { continue };
            scope.imported.extend(other.own.iter().map(|(name, def)| (name.clone(), *def)));
            let own = other.types.iter().filter(|(_, t)| t.file == k);
            scope.types.extend(own.map(|(name, t)| (name.clone(), *t)));
        }
        self.scopes.push(scope);
    }

    fn definition(&mut self, id: DefId, v: &'a ast::ValueDeclaration, role: Role) -> Def {
        self.current = Some(id);
        self.metas.level = 1;
        self.forget_products();
        self.unflattens.clear();
        let start = self.metas.count();
        let first_var = self.program.vars.len();
        let own = self.metas.any(v.name.span);
        let global = match self.declared_scheme(id) {
            Some(scheme) => Global::Known(scheme),
            None => Global::InProgress(own.clone()),
        };
        let known = matches!(global, Global::Known(_));
        self.globals.insert(id, global);
        let parts = Parts {
            type_params: &v.type_params,
            params: &v.params,
            return_type: v.return_type.as_ref(),
            body: &v.body,
        };
        let open = self.function(&parts, (!known).then_some(&own));
        self.settle_sizes();
        // A computed size that nothing decided was not tested.
        self.all_checks |= !self.deferred.is_empty();
        self.deferred.clear();
        self.default_scalars(start);
        let (mut fun, scheme) = self.close(open, v.name.span, true);
        if fun.params.is_empty()
            && let Some(size) = self.size_value(&fun.body).filter(|s| matches!(s, Size::Const(_)))
        {
            self.def_aliases.insert(id, size);
        }
        self.ambiguous(start);
        let ty = self.metas.zonk(&scheme.ty);
        self.globals.insert(id, Global::Known(Scheme { ty: ty.clone(), ..scheme.clone() }));
        self.finish_function(&mut fun, Some(id));
        for var in (first_var..self.program.vars.len()).map(VarId::new) {
            let ty = self.program.vars[var].ty.clone();
            self.program.vars[var].ty = self.final_type(&ty);
        }
        crate::unique::check(&fun, &self.program, &mut self.diagnostics);
        // As in Futhark, `main` is an entry point however it is declared.
        let exposed = v.kind == ast::ValueKind::Entry || v.name.text.as_str() == "main";
        let entry = (exposed && role == Role::Root).then(|| self.entry(v, &fun));
        self.current = None;
        Def {
            name: v.name.text.clone(),
            span: v.name.span,
            fun,
            ty: self.final_type(&ty),
            recursive: false,
            prelude: role == Role::Prelude,
            entry,
            attributes: v.attributes.iter().map(convert_attribute).collect(),
        }
    }

    /// The type of a definition from its annotations alone, if they are complete.
    pub(crate) fn declared_scheme(&mut self, id: DefId) -> Option<Scheme> {
        if !self.declaring.insert(id) {
            return None;
        }
        let scheme = self.scheme_of_annotations(id);
        self.declaring.remove(&id);
        scheme
    }

    fn scheme_of_annotations(&mut self, id: DefId) -> Option<Scheme> {
        let v = *self.declarations.get(&id)?;
        let result = v.return_type.as_ref()?;
        if !v.params.iter().all(annotated) {
            return None;
        }
        // Problems in the annotations are reported when the definition itself is checked.
        let reported = self.diagnostics.len();
        let level = self.metas.level;
        let mark = self.mark();
        let outer = std::mem::take(&mut self.type_params);
        let (type_params, mut sizes, names) = self.enter_type_params(&v.type_params);
        let params = self.patterns(&v.params);
        let result = self.type_of(result, AnySize::Unknown);
        let (ty, binders) = self.function_type_of(&params, &result);
        // Sizes written `[]` are any size.
        let mut open = Vec::new();
        let metas = &self.metas;
        for p in &params {
            metas.map(&p.ty, &mut |s| {
                let s = metas.size(s);
                if let Size::Meta(m) = s {
                    open.push(m);
                }
                s
            });
        }
        for m in open {
            if binders.iter().any(|(_, b)| *b == m) || self.metas.size_bound(m).is_some() {
                continue;
            }
            let name = format!("?{}", self.program.vars.len());
            let var = self.new_var(&name, Type::Scalar(Scalar::I64), v.name.span);
            self.metas.set_size(m, Size::Var(var, Symbol::from(name)));
            sizes.push(var);
        }
        let ty = self.metas.zonk(&ty);
        self.leave(mark);
        self.leave_type_params(names);
        self.type_params = outer;
        self.metas.level = level;
        self.diagnostics.truncate(reported);
        Some(Scheme { type_params, sizes, binders, ty })
    }

    /// Unknown scalars become `i32` or `f64`.
    fn default_scalars(&mut self, start: usize) {
        for (id, kind, _) in self.metas.unbound_since(start) {
            if let Kind::Scalar(set) = kind {
                self.metas.set(id, Type::Scalar(set.default()));
            }
        }
    }

    /// Reports types that are still open but may not be; makes the rest unit.
    fn ambiguous(&mut self, start: usize) {
        for (id, kind, span) in self.metas.unbound_since(start) {
            match kind {
                Kind::Any | Kind::Equality => self.metas.set(id, Type::unit()),
                Kind::Scalar(set) => self.metas.set(id, Type::Scalar(set.default())),
                Kind::Record(_) | Kind::Sum(_) => {
                    let ty = self.show(&Type::Meta(id));
                    let what = if matches!(kind, Kind::Record(_)) { "record" } else { "sum" };
                    self.error(Code::Ambiguous, span, format!("the {what} type {ty} is not known here"))
                        .hints
                        .push("annotate it: `(x: t)` for a parameter, `(e : t)` for an expression".into());
                    self.metas.set(id, Type::Error);
                }
            }
        }
    }

    // ---- entry points ----

    fn entry(&mut self, v: &ast::ValueDeclaration, fun: &Function) -> Entry {
        if !fun.type_params.is_empty() {
            self.error(Code::Entry, v.name.span, format!("the entry point {} is polymorphic", v.name.text))
                .hints
                .push("entry points have no type parameters; annotate its parameters and result".into());
        }
        let mut params = Vec::new();
        for (i, (p, ast)) in fun.params.iter().zip(&v.params).enumerate() {
            let name = match &p.kind {
                PatternKind::Var(var) => self.program.vars[*var].name.clone(),
                _ => Symbol::from(format!("arg{i}")),
            };
            let ty = self.entry_type(&p.ty, ast.span);
            params.push((name, self.declared_order(ty, pattern_type(ast), self.file, 0)));
        }
        let span = v.return_type.as_ref().map_or(v.name.span, |t| t.span);
        let result = self.entry_type(&fun.result, span);
        let result = self.declared_order(result, v.return_type.as_ref(), self.file, 0);
        Entry { params, result }
    }

    fn entry_type(&mut self, ty: &Type, span: Span) -> EntryType {
        match ty {
            Type::Scalar(s) => EntryType::Scalar(*s),
            Type::Array(s, t) => {
                let name = Some(size::show(s)).filter(|s| !s.is_empty()).map(Symbol::from);
                EntryType::Array(name, Box::new(self.entry_type(t, span)))
            }
            Type::Tuple(ts) => EntryType::Tuple(ts.iter().map(|t| self.entry_type(t, span)).collect()),
            Type::Record(fs) => {
                EntryType::Record(fs.iter().map(|(n, t)| (n.clone(), self.entry_type(t, span))).collect())
            }
            Type::Sum(vs) => EntryType::Sum(
                vs.iter()
                    .map(|(n, ts)| (n.clone(), ts.iter().map(|t| self.entry_type(t, span)).collect()))
                    .collect(),
            ),
            Type::Named(id, _) => EntryType::Named(*id),
            Type::Fun(..) => {
                let ty = self.show(ty);
                self.error(
                    Code::Entry,
                    span,
                    format!("an entry point cannot take or return a function ({ty})"),
                )
                .hints
                .push("give all arguments, or make it a `def`".into());
                EntryType::Tuple(vec![])
            }
            // Type parameters were reported for the whole definition, the others before.
            Type::Param(..) | Type::Meta(_) | Type::Error => EntryType::Tuple(vec![]),
        }
    }

    /// Puts record fields into the order of the annotation, which stands in a file.
    fn declared_order(
        &self,
        ty: EntryType,
        annotation: Option<&ast::Type>,
        file: usize,
        depth: usize,
    ) -> EntryType {
        let Some(annotation) = annotation.filter(|_| depth < 200) else { return ty };
        let (resolved, next) = match &annotation.kind {
            ast::TypeKind::Unique(t) | ast::TypeKind::Exists(_, t) => (Some(&**t), file),
            ast::TypeKind::Named(name) | ast::TypeKind::Apply(name, _) => {
                let known = self.scopes[file].types.get(&name.name.text);
                (known.map(|t| &t.declaration.definition), known.map_or(file, |t| t.file))
            }
            ast::TypeKind::Array(..)
            | ast::TypeKind::Tuple(_)
            | ast::TypeKind::Record(_)
            | ast::TypeKind::Function { .. }
            | ast::TypeKind::Sum(_)
            | ast::TypeKind::Error => (None, file),
        };
        if resolved.is_some() {
            return self.declared_order(ty, resolved, next, depth + 1);
        }
        match (ty, &annotation.kind) {
            (EntryType::Array(s, t), ast::TypeKind::Array(_, a)) => {
                EntryType::Array(s, Box::new(self.declared_order(*t, Some(a), file, depth + 1)))
            }
            (EntryType::Tuple(ts), ast::TypeKind::Tuple(annotations)) => EntryType::Tuple(
                ts.into_iter()
                    .enumerate()
                    .map(|(i, t)| self.declared_order(t, annotations.get(i), file, depth + 1))
                    .collect(),
            ),
            (EntryType::Record(mut fields), ast::TypeKind::Record(annotations)) => {
                let place = |n: &Symbol| annotations.iter().position(|(a, _)| a.text == *n);
                fields.sort_by_key(|(n, _)| place(n));
                let one = |(n, t): (Symbol, EntryType)| {
                    let a = place(&n).and_then(|i| annotations.get(i)).map(|(_, t)| t);
                    (n, self.declared_order(t, a, file, depth + 1))
                };
                EntryType::Record(fields.into_iter().map(one).collect())
            }
            (EntryType::Sum(alternatives), ast::TypeKind::Sum(annotations)) => {
                let one = |(n, ts): (Symbol, Vec<EntryType>)| {
                    let a = annotations.iter().find(|(a, _)| a.text == n).map(|(_, a)| a.as_slice());
                    let a = |i: usize| a.and_then(|a| a.get(i));
                    let ts = ts.into_iter().enumerate();
                    (n, ts.map(|(i, t)| self.declared_order(t, a(i), file, depth + 1)).collect())
                };
                EntryType::Sum(alternatives.into_iter().map(one).collect())
            }
            (ty, _) => ty,
        }
    }

    // ---- the whole program ----

    /// Groups definitions, marks recursion and the checks that are needed.
    fn complete(&mut self) {
        self.program.types = self.metas.named.clone();
        let groups = components(self.program.defs.len(), &self.uses);
        for group in &groups {
            for id in group {
                let own = self.uses.get(id).is_some_and(|u| u.contains(id));
                self.program.defs[*id].recursive = own || group.len() > 1;
            }
        }
        self.program.groups = groups;
        for id in self.program.defs.ids() {
            let def = &mut self.program.defs[id];
            let needed = self.all_checks || self.needs_checks.contains(&id) || def.entry.is_some();
            def.fun.needs_checks = needed && !def.fun.checks.is_empty();
        }
    }
}

/// Whether a parameter has a type annotation.
fn annotated(p: &ast::Pattern) -> bool {
    match &p.kind {
        ast::PatternKind::Ascription(..) => true,
        ast::PatternKind::Tuple(ps) => ps.iter().all(annotated),
        ast::PatternKind::Attributed(_, p) => annotated(p),
        ast::PatternKind::Wildcard
        | ast::PatternKind::Name(_)
        | ast::PatternKind::Record(_)
        | ast::PatternKind::Constructor(..)
        | ast::PatternKind::Literal(_)
        | ast::PatternKind::NegatedLiteral(_)
        | ast::PatternKind::Error => false,
    }
}

fn pattern_type(p: &ast::Pattern) -> Option<&ast::Type> {
    match &p.kind {
        ast::PatternKind::Ascription(_, t) => Some(t),
        ast::PatternKind::Attributed(_, p) => pattern_type(p),
        ast::PatternKind::Wildcard
        | ast::PatternKind::Name(_)
        | ast::PatternKind::Tuple(_)
        | ast::PatternKind::Record(_)
        | ast::PatternKind::Constructor(..)
        | ast::PatternKind::Literal(_)
        | ast::PatternKind::NegatedLiteral(_)
        | ast::PatternKind::Error => None,
    }
}

/// Strongly connected components in dependency order (Tarjan, with an explicit stack), members in source order.
fn components(count: usize, uses: &IdMap<DefId, IdSet<DefId>>) -> Vec<Vec<DefId>> {
    let edges: Vec<Vec<usize>> = (0..count)
        .map(|i| uses.get(&DefId::new(i)).map_or(vec![], |u| u.iter().map(|d| d.index()).collect()))
        .collect();
    let mut order: Vec<Option<usize>> = vec![None; count];
    let mut low: Vec<usize> = vec![0; count];
    let mut on_stack = vec![false; count];
    let (mut stack, mut next, mut out) = (Vec::new(), 0, Vec::new());
    for root in 0..count {
        let mut work = vec![(root, 0)];
        while let Some((node, edge)) = work.pop() {
            if edge == 0 {
                if order[node].is_some() {
                    continue;
                }
                order[node] = Some(next);
                low[node] = next;
                next += 1;
                stack.push(node);
                on_stack[node] = true;
            }
            if let Some(target) = edges[node].get(edge).copied().filter(|t| *t < count) {
                work.push((node, edge + 1));
                match order[target] {
                    None => work.push((target, 0)),
                    Some(at) if on_stack[target] => low[node] = low[node].min(at),
                    Some(_) => {}
                }
                continue;
            }
            if Some(low[node]) == order[node] {
                let mut group = Vec::new();
                while let Some(member) = stack.pop() {
                    on_stack[member] = false;
                    group.push(DefId::new(member));
                    if member == node {
                        break;
                    }
                }
                group.sort();
                out.push(group);
            }
            if let Some((parent, _)) = work.last() {
                low[*parent] = low[*parent].min(low[node]);
            }
        }
    }
    out
}
