//! The state of the checker: names in scope, the program under construction, and diagnostics.

use crate::intrinsics::{self, Intrinsic};
use crate::print;
use crate::size;
use crate::typed::*;
use crate::unify::{Kind, Metas, Mismatch};
use pullback_base::index::{IdMap, IdSet};
use pullback_base::{Code, Diagnostic, Span, Symbol};
use pullback_prim::{Scalar, ScalarValue};
use pullback_syntax::ast;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A polymorphic type: parameters, sizes the caller chooses, and the type that mentions both.
#[derive(Clone, Debug)]
pub(crate) struct Scheme {
    pub(crate) type_params: Vec<TypeParamId>,
    pub(crate) sizes: Vec<VarId>,
    /// Parameters that sizes in the type mention, and the binders that stand for them.
    pub(crate) binders: Vec<(VarId, SizeMetaId)>,
    pub(crate) ty: Type,
}

/// A computed size of an instantiated type, to be resolved when the sizes it mentions are known.
pub(crate) struct DeferredSize {
    meta: SizeMetaId,
    polynomial: Arc<Polynomial>,
    sizes: IdMap<VarId, Size>,
}

/// What is known about a top-level definition while checking.
#[derive(Clone, Debug)]
pub(crate) enum Global {
    /// Its type.
    Known(Scheme),
    /// Being checked, without full annotation: one type inside its own body.
    InProgress(Type),
    /// Not reached yet.
    Pending,
}

/// A type name.
#[derive(Clone, Copy)]
pub(crate) struct TypeName<'a> {
    pub(crate) declaration: &'a ast::TypeDeclaration,
    /// Set for recursive sums.
    pub(crate) recursive: Option<TypeId>,
    /// Set if the declaration is cyclic in a way that has no meaning; reported already.
    pub(crate) broken: bool,
    /// The file of the declaration: a position in [`Checker::scopes`].
    pub(crate) file: usize,
}

/// The names that the definitions of a file see, but for those of the prelude.
#[derive(Default)]
pub(crate) struct Scope<'a> {
    /// The values that it defines.
    pub(crate) own: BTreeMap<Symbol, DefId>,
    /// The values that its imports define.
    pub(crate) imported: BTreeMap<Symbol, DefId>,
    /// The types of both.
    pub(crate) types: BTreeMap<Symbol, TypeName<'a>>,
}

/// The checker.
pub(crate) struct Checker<'a> {
    pub(crate) metas: Metas,
    pub(crate) program: Program,
    pub(crate) diagnostics: Vec<Diagnostic>,
    /// Local names, innermost last.
    locals: BTreeMap<Symbol, Vec<VarId>>,
    /// Names in the order they came into scope.
    trail: Vec<Symbol>,
    pub(crate) schemes: IdMap<VarId, Scheme>,
    /// Variables whose value is known as a size.
    pub(crate) aliases: IdMap<VarId, Size>,
    /// Top-level constants whose value is known as a size.
    pub(crate) def_aliases: IdMap<DefId, Size>,
    /// The definitions whose annotations are being read before their turn. One that is mentioned in its own
    /// annotations (as a size) must not be read again.
    pub(crate) declaring: std::collections::BTreeSet<DefId>,
    pub(crate) type_params: BTreeMap<Symbol, Vec<Type>>,
    pub(crate) prelude_names: BTreeMap<Symbol, DefId>,
    /// The names of each file; the prelude is the first, without values.
    pub(crate) scopes: Vec<Scope<'a>>,
    /// The file being checked, or that of the type being looked into.
    pub(crate) file: usize,
    pub(crate) globals: IdMap<DefId, Global>,
    pub(crate) declarations: IdMap<DefId, &'a ast::ValueDeclaration>,
    /// The definition being checked.
    pub(crate) current: Option<DefId>,
    /// What the definition being checked mentions.
    pub(crate) uses: IdMap<DefId, IdSet<DefId>>,
    /// Definitions of which some use leaves size checks undecided.
    pub(crate) needs_checks: IdSet<DefId>,
    /// Set when sizes changed in a way that the types do not show: then no check may be left out.
    pub(crate) all_checks: bool,
    /// How many loops around this place are being typed for the second time.
    pub(crate) repeats: usize,
    /// Field names of projections whose record type was not known when they were met.
    pub(crate) fields: Vec<Symbol>,
    /// Variables that are used as values (not only as sizes).
    pub(crate) value_uses: IdSet<VarId>,
    pub(crate) deferred: Vec<DeferredSize>,
    /// Where `unflatten` was used, and how many variables there were then.
    pub(crate) unflattens: Vec<(Span, usize)>,
    /// Products of sizes as written in the definition being checked; none where one product was written in two ways.
    products: Vec<(Size, Option<(Size, Size)>)>,
    /// Type parameters of the definition being finished.
    pub(crate) own_params: Vec<TypeParamId>,
    /// Type parameters made so far.
    pub(crate) type_param_count: usize,
    /// Types that a type expression still may make before it is too large.
    pub(crate) type_budget: usize,
}

/// Component numbers from here on are positions in [`Checker::fields`].
pub(crate) const PENDING_FIELD: usize = 1 << 40;

impl<'a> Checker<'a> {
    pub(crate) fn new() -> Self {
        Checker {
            metas: Metas::default(),
            program: Program::default(),
            diagnostics: Vec::new(),
            locals: BTreeMap::new(),
            trail: Vec::new(),
            schemes: IdMap::new(),
            aliases: IdMap::new(),
            def_aliases: IdMap::new(),
            declaring: std::collections::BTreeSet::new(),
            type_params: BTreeMap::new(),
            prelude_names: BTreeMap::new(),
            scopes: Vec::new(),
            file: 0,
            globals: IdMap::new(),
            declarations: IdMap::new(),
            current: None,
            uses: IdMap::new(),
            needs_checks: IdSet::new(),
            all_checks: false,
            repeats: 0,
            fields: Vec::new(),
            value_uses: IdSet::new(),
            deferred: Vec::new(),
            unflattens: Vec::new(),
            products: Vec::new(),
            own_params: Vec::new(),
            type_param_count: 0,
            type_budget: 0,
        }
    }

    // ---- diagnostics ----

    pub(crate) fn error(&mut self, code: Code, span: Span, message: impl Into<String>) -> &mut Diagnostic {
        self.diagnostics.push(Diagnostic::error(code, span, message));
        let last = self.diagnostics.len() - 1;
        &mut self.diagnostics[last]
    }
    pub(crate) fn show(&self, ty: &Type) -> String {
        print::show(&self.metas, ty)
    }

    /// Makes `found` be `expected`, or reports at `span`. `what` names the thing of type `found`.
    /// Returns whether they agree.
    pub(crate) fn expect(&mut self, expected: &Type, found: &Type, span: Span, what: &str) -> bool {
        match self.metas.unify(expected, found, false) {
            Ok(()) => true,
            Err(mismatch) => {
                self.mismatch(mismatch, expected, found, span, what);
                false
            }
        }
    }

    pub(crate) fn mismatch(&mut self, m: Mismatch, expected: &Type, found: &Type, span: Span, what: &str) {
        let (e, f) = (self.show(expected), self.show(found));
        match m {
            Mismatch::Sizes(a, b) => self.size_mismatch(&a, &b, &e, &f, span, what),
            Mismatch::Infinite => {
                self.error(
                    Code::TypeMismatch,
                    span,
                    format!("{what} would have an infinite type: {e} and {f} must be the same"),
                )
                .hints
                .push("a function cannot be applied to itself; annotate the parameters to see why".into());
            }
            Mismatch::Types(..) | Mismatch::Kind(..) | Mismatch::Field(..) | Mismatch::Alternative(..) => {
                let detail = self.detail(&m, expected, found);
                let d = self.error(
                    Code::TypeMismatch,
                    span,
                    format!("{what} has type {f}, expected {e}{detail}"),
                );
                d.hints.push(agreement_hint(&m));
                // One report is enough: do not also say that the type is unknown.
                for ty in [expected, found] {
                    if let Type::Meta(id) = self.metas.shallow(ty)
                        && matches!(self.metas.kind_of(id), Kind::Record(_) | Kind::Sum(_))
                    {
                        self.metas.set(id, Type::Error);
                    }
                }
            }
        }
    }

    fn detail(&self, m: &Mismatch, expected: &Type, found: &Type) -> String {
        match m {
            Mismatch::Types(a, b) => {
                let whole = self.metas.shallow(expected) == *a && self.metas.shallow(found) == *b;
                let swapped = self.metas.shallow(expected) == *b && self.metas.shallow(found) == *a;
                if whole || swapped {
                    String::new()
                } else {
                    format!(" ({} and {} do not agree)", self.show(a), self.show(b))
                }
            }
            Mismatch::Kind(words, ty) => format!(" ({} is not {words})", self.show(ty)),
            Mismatch::Field(name, ty) => format!(" ({} has no field {name})", self.show(ty)),
            Mismatch::Alternative(name, ty) => format!(" (#{name} does not fit {})", self.show(ty)),
            Mismatch::Sizes(..) | Mismatch::Infinite => String::new(),
        }
    }

    fn size_mismatch(&mut self, a: &Size, b: &Size, e: &str, f: &str, span: Span, what: &str) {
        let places: Vec<(Span, String)> = [a, b]
            .into_iter()
            .filter_map(|s| match s {
                Size::Var(v, name) => {
                    let text = if name.as_str().starts_with('?') {
                        "this size has no name".to_string()
                    } else {
                        format!("size {name} is bound here")
                    };
                    Some((self.program.vars.get(*v)?.span, text))
                }
                Size::Const(_) | Size::Def(..) | Size::Expression(_) | Size::Unknown(_) | Size::Meta(_) => {
                    None
                }
            })
            .collect();
        let name = |s: &Size| Some(size::show(s)).filter(|t| !t.is_empty()).unwrap_or("unnamed".into());
        let (a, b) = (name(a), name(b));
        let d = self.error(
            Code::SizeMismatch,
            span,
            format!("{what} has type {f}, expected {e}: sizes {a} and {b} are not known to be equal"),
        );
        for (place, text) in places {
            *d = d.clone().label(place, text);
        }
        d.hints.push(format!("if they are equal at run time, say so with a size coercion: `(..) :> {e}`"));
    }

    // ---- names ----

    /// Makes a variable that is not in scope by name.
    pub(crate) fn new_var(&mut self, name: &str, ty: Type, span: Span) -> VarId {
        self.program.vars.push(VarInfo { name: Symbol::new(name), ty, span })
    }
    /// A place in the scope to return to.
    pub(crate) fn mark(&self) -> usize {
        self.trail.len()
    }
    /// Makes a variable visible.
    pub(crate) fn bring(&mut self, name: &Symbol, var: VarId) {
        self.locals.entry(name.clone()).or_default().push(var);
        self.trail.push(name.clone());
    }
    /// Forgets the names that came into scope since `mark`; returns their variables.
    pub(crate) fn leave(&mut self, mark: usize) -> IdSet<VarId> {
        let mut gone = IdSet::new();
        while self.trail.len() > mark {
            let Some(name) = self.trail.pop() else { break };
            if let Some(stack) = self.locals.get_mut(&name) {
                gone.extend(stack.pop());
                if stack.is_empty() {
                    self.locals.remove(&name);
                }
            }
        }
        gone
    }
    pub(crate) fn local(&self, name: &Symbol) -> Option<VarId> {
        self.locals.get(name).and_then(|stack| stack.last()).copied()
    }
    /// The names of the file being checked.
    pub(crate) fn scope(&self) -> &Scope<'a> {
        &self.scopes[self.file]
    }
    pub(crate) fn scope_mut(&mut self) -> &mut Scope<'a> {
        &mut self.scopes[self.file]
    }
    /// A top-level definition by name: that of the file first, then those of its imports.
    pub(crate) fn global(&self, name: &Symbol) -> Option<DefId> {
        let own = self.scope().own.get(name).copied();
        let imported = self.scope().imported.get(name);
        let outer = imported.or_else(|| self.prelude_names.get(name)).copied();
        match own {
            // A later definition of the file hides another name only after it.
            Some(id) if outer.is_some() && matches!(self.globals.get(&id), Some(Global::Pending)) => outer,
            Some(id) => Some(id),
            None => outer,
        }
    }
    /// Whether a name is that of a value that a user's file defines.
    pub(crate) fn is_users(&self, name: &Symbol) -> bool {
        self.scope().own.contains_key(name) || self.scope().imported.contains_key(name)
    }
    pub(crate) fn intrinsic(name: &str) -> Option<(Intrinsic, &'static str)> {
        intrinsics::TABLE.iter().find(|(n, _, _)| *n == name).map(|(_, i, t)| (*i, *t))
    }
    /// Names in scope that look like `name`.
    pub(crate) fn similar(&self, name: &str) -> Option<String> {
        let locals = {
            let (own, imported) = (self.scope().own.keys(), self.scope().imported.keys());
            self.locals.keys().chain(own).chain(imported).chain(self.prelude_names.keys())
        };
        let names = locals.map(|s| s.as_str()).chain(intrinsics::TABLE.iter().map(|r| r.0));
        nearest(name, names)
    }

    // ---- instantiation ----

    /// A use of a scheme: its type with new unknowns for the parameters, and those unknowns.
    pub(crate) fn instantiate(&mut self, scheme: &Scheme, span: Span) -> (Type, Vec<Type>) {
        let types: Vec<Type> = scheme.type_params.iter().map(|_| self.metas.any(span)).collect();
        let params: IdMap<TypeParamId, Type> =
            scheme.type_params.iter().copied().zip(types.iter().cloned()).collect();
        let sizes: IdMap<VarId, Size> =
            scheme.sizes.iter().map(|v| (*v, Size::Meta(self.metas.fresh_size()))).collect();
        let mut r = Renaming {
            params,
            sizes,
            binders: IdMap::new(),
            unknowns: BTreeMap::new(),
            computed: Vec::new(),
        };
        let ty = self.rename(&scheme.ty, &mut r);
        let bound = scheme.binders.iter().filter_map(|(v, b)| Some((*v, Size::Meta(*r.binders.get(b)?))));
        r.sizes.extend(bound);
        for (meta, polynomial) in r.computed {
            self.deferred.push(DeferredSize { meta, polynomial, sizes: r.sizes.clone() });
        }
        (ty, types)
    }

    /// The size `x * y`, remembered as written so that `unflatten` finds the factors of its argument.
    pub(crate) fn product_size(&mut self, x: &Size, y: &Size) -> Option<Size> {
        let product = size::multiply(x, y)?;
        if matches!(product, Size::Expression(_)) {
            let written = (x.clone(), y.clone());
            match self.products.iter_mut().find(|(p, _)| *p == product) {
                Some((_, known)) if *known != Some(written.clone()) => *known = None,
                Some(_) => {}
                None => self.products.push((product.clone(), Some(written))),
            }
        }
        Some(product)
    }
    /// The factors of a size, if it was written as a product in one way.
    pub(crate) fn factors(&self, size: &Size) -> Option<(Size, Size)> {
        self.products.iter().find(|(p, _)| p == size).and_then(|(_, f)| f.clone())
    }
    /// Forgets the products of the definition before.
    pub(crate) fn forget_products(&mut self) {
        self.products.clear();
    }

    /// Finds the one unknown variable of a computed size that is known itself: from `[2 * n]` being `[2 * m]` that
    /// `n` is `m`. Returns whether it did.
    fn solve(&mut self, d: &DeferredSize) -> bool {
        let whole = self.metas.size(&Size::Meta(d.meta));
        let mut rest = whole.clone();
        let mut open: Option<(SizeMetaId, i64)> = None;
        for (atoms, k) in d.polynomial.iter() {
            let mut product = Size::Const(*k);
            for atom in atoms {
                let factor = match atom {
                    SizeAtom::Var(v, name) => {
                        let known = d.sizes.get(v).cloned();
                        self.metas.size(&known.unwrap_or(Size::Var(*v, name.clone())))
                    }
                    SizeAtom::Def(id, name) => Size::Def(*id, name.clone()),
                };
                match factor {
                    Size::Meta(m) if atoms.len() == 1 && open.is_none() => {
                        open = Some((m, *k));
                        product = Size::Const(0);
                    }
                    Size::Meta(_) => return false,
                    factor => match size::multiply(&product, &factor) {
                        Some(p) => product = p,
                        None => return false,
                    },
                }
            }
            // An unknown whole leaves an unknown rest.
            rest = size::add(&rest, &product, -1).unwrap_or(Size::Unknown(0));
        }
        let Some((meta, factor)) = open else { return false };
        if matches!(whole, Size::Meta(_)) {
            return false;
        }
        let quotient = size::divide(&rest, factor).unwrap_or_else(|| {
            self.metas.undecided += 1;
            self.metas.unknown()
        });
        self.metas.set_size(meta, quotient);
        true
    }

    /// Resolves computed sizes whose variables have become known.
    pub(crate) fn settle_sizes(&mut self) {
        for d in std::mem::take(&mut self.deferred) {
            let mut total = Some(Size::Const(0));
            let mut waits = false;
            for (atoms, k) in d.polynomial.iter() {
                let mut product = Some(Size::Const(*k));
                for atom in atoms {
                    let factor = match atom {
                        SizeAtom::Var(v, name) => {
                            let known = d.sizes.get(v).cloned();
                            self.metas.size(&known.unwrap_or(Size::Var(*v, name.clone())))
                        }
                        SizeAtom::Def(id, name) => Size::Def(*id, name.clone()),
                    };
                    waits |= matches!(factor, Size::Meta(_));
                    product = product.and_then(|p| size::multiply(&p, &factor));
                }
                total = total.zip(product).and_then(|(t, p)| size::add(&t, &p, 1));
            }
            if waits {
                if !self.solve(&d) {
                    self.deferred.push(d);
                }
                continue;
            }
            let total = total.unwrap_or_else(|| self.metas.unknown());
            match self.metas.size(&Size::Meta(d.meta)) {
                Size::Meta(m) => self.metas.set_size(m, total),
                known => self.metas.undecided += usize::from(known != total),
            }
        }
    }

    fn rename(&mut self, ty: &Type, r: &mut Renaming) -> Type {
        match self.metas.shallow(ty) {
            Type::Param(id, name) => r.params.get(&id).cloned().unwrap_or(Type::Param(id, name)),
            Type::Array(s, t) => {
                let s = self.rename_size(&s, r);
                Type::Array(s, Arc::new(self.rename(&t, r)))
            }
            Type::Tuple(ts) => Type::Tuple(ts.iter().map(|t| self.rename(t, r)).collect()),
            Type::Record(fs) => {
                Type::Record(fs.iter().map(|(n, t)| (n.clone(), self.rename(t, r))).collect())
            }
            Type::Sum(vs) => Type::Sum(
                vs.iter()
                    .map(|(n, ts)| (n.clone(), ts.iter().map(|t| self.rename(t, r)).collect()))
                    .collect(),
            ),
            Type::Fun(binder, p, result) => {
                let p = self.rename(&p, r);
                let binder = binder.map(|b| {
                    let id = self.metas.fresh_size();
                    r.binders.insert(b.id, id);
                    Binder { id, name: b.name }
                });
                Type::Fun(binder, Arc::new(p), Arc::new(self.rename(&result, r)))
            }
            t @ (Type::Scalar(_) | Type::Named(..) | Type::Meta(_) | Type::Error) => t,
        }
    }

    fn rename_size(&mut self, s: &Size, r: &mut Renaming) -> Size {
        match self.metas.size(s) {
            Size::Var(v, name) => r.sizes.get(&v).cloned().unwrap_or(Size::Var(v, name)),
            Size::Meta(m) => Size::Meta(r.binders.get(&m).copied().unwrap_or(m)),
            Size::Unknown(k) => {
                let metas = &mut self.metas;
                r.unknowns.entry(k).or_insert_with(|| metas.unknown()).clone()
            }
            Size::Expression(p) => {
                let meta = self.metas.fresh_size();
                r.computed.push((meta, p));
                Size::Meta(meta)
            }
            s @ (Size::Const(_) | Size::Def(..)) => s,
        }
    }

    /// Replaces sizes that mention variables that go out of scope by unknown ones.
    pub(crate) fn escape(&mut self, ty: &Type, gone: &IdSet<VarId>) -> Type {
        if gone.is_empty() {
            return ty.clone();
        }
        let mentions = |s: &Size| size::mentions(s, |v| gone.contains(&v));
        let mut found: Vec<Size> = Vec::new();
        self.metas.map(ty, &mut |s| {
            let s = self.metas.size(s);
            if mentions(&s) && !found.contains(&s) {
                found.push(s.clone());
            }
            s
        });
        if found.is_empty() {
            return ty.clone();
        }
        let new: Vec<Size> = found.iter().map(|_| self.metas.unknown()).collect();
        self.metas.map(ty, &mut |s| {
            let s = self.metas.size(s);
            found.iter().position(|f| *f == s).map_or(s, |i| new[i].clone())
        })
    }

    // ---- expressions made by the checker ----

    pub(crate) fn exp(kind: ExpKind, ty: Type, span: Span) -> Exp {
        Exp { kind, ty, span }
    }
    pub(crate) fn error_exp(span: Span) -> Exp {
        Exp { kind: ExpKind::Error, ty: Type::Error, span }
    }
    pub(crate) fn i64_literal(value: i64, span: Span) -> Exp {
        Exp { kind: ExpKind::Literal(ScalarValue::I64(value)), ty: Type::Scalar(Scalar::I64), span }
    }
    /// An unknown type of a kind.
    pub(crate) fn of_kind(&mut self, kind: Kind, span: Span) -> Type {
        self.metas.fresh(kind, span)
    }
}

struct Renaming {
    params: IdMap<TypeParamId, Type>,
    sizes: IdMap<VarId, Size>,
    binders: IdMap<SizeMetaId, SizeMetaId>,
    unknowns: BTreeMap<u32, Size>,
    computed: Vec<(SizeMetaId, Arc<Polynomial>)>,
}

/// What to do about types that do not agree.
fn agreement_hint(m: &Mismatch) -> String {
    match m {
        Mismatch::Types(Type::Scalar(Scalar::Bool), Type::Scalar(_))
        | Mismatch::Types(Type::Scalar(_), Type::Scalar(Scalar::Bool)) => {
            "compare numbers with `==`, `<`, ..; choose a number with `if`".into()
        }
        Mismatch::Types(Type::Scalar(a), Type::Scalar(b)) => format!("convert with `{a}.{b}` or `{b}.{a}`"),
        Mismatch::Types(Type::Fun(..), _) | Mismatch::Types(_, Type::Fun(..)) => {
            "a function stands where a value is expected, or the other way round: is an argument missing?"
                .into()
        }
        Mismatch::Types(Type::Array(..), _) | Mismatch::Types(_, Type::Array(..)) => {
            "use `map` to work on every element, or an index to choose one".into()
        }
        Mismatch::Kind("an integer", Type::Scalar(s)) if s.is_float() => {
            format!("convert with `i64.{s}`")
        }
        Mismatch::Kind("a float", Type::Scalar(s)) if s.is_integer() => {
            format!("convert with `f64.{s}`")
        }
        Mismatch::Types(Type::Param(_, name), _) | Mismatch::Types(_, Type::Param(_, name)) => {
            format!("{name} stands for any type, so nothing is known about its values")
        }
        Mismatch::Types(..)
        | Mismatch::Kind(..)
        | Mismatch::Field(..)
        | Mismatch::Alternative(..)
        | Mismatch::Sizes(..)
        | Mismatch::Infinite => {
            "change the expression or the annotation so that both types are the same".into()
        }
    }
}

/// The candidate nearest to `name`, if any is near enough to be what was meant.
pub(crate) fn nearest<'n>(name: &str, candidates: impl Iterator<Item = &'n str>) -> Option<String> {
    let length = name.chars().count();
    if length > 40 {
        return None;
    }
    let limit = (length / 3).max(1);
    let scored = candidates.filter(|c| *c != name && !c.starts_with('?')).map(|c| (distance(name, c), c));
    let best = scored.filter(|(d, c)| *d <= limit && *d < c.chars().count()).min();
    best.map(|(_, c)| c.to_string())
}

/// Edit distance with transpositions of neighbours.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    if a.len().abs_diff(b.len()) > 3 {
        return usize::MAX;
    }
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut next = vec![i];
        for j in 1..=b.len() {
            let change = row[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = change.min(row[j] + 1).min(next[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(before[j - 2] + 1);
            }
            next.push(best);
        }
        before = row;
        row = next;
    }
    row[b.len()]
}
