//! Functions as data: in sums, in the state of loops, as results of functions that call themselves; and arrays of functions.
//!
//! A type of functions (or of computations) becomes one recursive sum, with an alternative for each function of the type that is made data
//! anywhere, and what that one captures; one core function applies them all (defunctionalisation). Both are complete when the whole
//! program is lowered. An array of functions that a map makes is an array for each leaf that varies, as long as it is only mapped over, indexed, or
//! taken apart. Arrays that its functions capture may have different shapes: they are in boxes, which go again where one shape is known (`pullback_opt`,
//! `unbox`).

use super::branch::{Inside, Param};
use super::types::holds_function;
use super::value::{Column, Many, Open, Val};
use super::{Lowered, Lowerer, MAX_VERSIONS};
use pullback_base::Span;
use pullback_base::index::{IdMap, IdSet, Index};
use pullback_core as core;
use pullback_core::{Atom, Exp};
use pullback_lambda::{Term, Type};
use std::rc::Rc;

/// Functions that capture functions, and so on, deeper than this are not made data.
const MAX_DEPTH: usize = 500;

/// A type whose functions are data somewhere.
pub(super) struct Kind {
    pub(super) ty: Type,
    /// Its sum.
    pub(super) id: core::TypeId,
    /// The functions, as templates.
    alternatives: Vec<Val>,
    /// What applies them: to the sum, then the leaves of the argument, then those of the cells.
    applier: Option<Applier>,
}

struct Applier {
    id: core::FunId,
    sum: core::Var,
    /// The argument.
    arg: Vec<core::Var>,
    cells: Vec<core::Var>,
    /// The alternatives that are lowered.
    arms: Vec<core::Lam>,
}

impl Lowerer<'_, '_> {
    /// The kind of functions of this type.
    pub(super) fn kind(&mut self, ty: &Type) -> usize {
        if let Some(k) = self.kinds.iter().position(|k| k.ty == *ty) {
            return k;
        }
        let k = self.kinds.len();
        let name = self.type_name("closures");
        let id = self.b.program.types.push(core::TypeDef { name, variants: Vec::new() });
        self.kinds.push(Kind { ty: ty.clone(), id, alternatives: Vec::new(), applier: None });
        k
    }

    /// A value of a type made of its leaves.
    pub(super) fn of_leaves(&mut self, ty: &Type, atoms: &[Atom], span: Option<Span>) -> Lowered<Val> {
        if !holds_function(ty) {
            return Ok(Val::data(atoms));
        }
        match ty {
            Type::Tuple(ts) => {
                let parts = self.split(ts, atoms, span)?;
                let items = ts.iter().zip(parts).map(|(t, part)| self.of_leaves(t, &part, span));
                Ok(Val::Tuple(items.collect::<Lowered<Vec<Val>>>()?.into()))
            }
            Type::Array(element) => {
                let size = self.outer_size(atoms, span)?;
                self.array_of_data(element, Some(atoms), size, span)
            }
            ty => {
                let kind = self.kind(ty);
                let Some(atom) = atoms.first().copied() else {
                    return self.bug(span, "a function without a leaf");
                };
                Ok(Val::Open(Open { kind, atom }))
            }
        }
    }

    /// An array of functions that are data, or of products with such functions, made of its leaves. Without leaves, it is a template.
    pub(super) fn array_of_data(
        &mut self,
        element: &Type,
        leaves: Option<&[Atom]>,
        size: Atom,
        span: Option<Span>,
    ) -> Lowered<Val> {
        if holds_array_of_functions(element) {
            return self
                .unsupported(span, "an array of arrays of functions as a value of a sum, loop or branch");
        }
        let nothing = vec![Atom::i64(0); self.leaf_count(element, span)?];
        let template = self.of_leaves(element, &nothing, span)?;
        let leaves = leaves.unwrap_or(&nothing).to_vec();
        let (element, columns) = (element.clone(), vec![Column::Each; nothing.len()]);
        Ok(Val::Many(Rc::new(Many { element, template, columns, leaves, size })))
    }

    /// All leaves of a value of this type.
    pub(super) fn coerced(&mut self, ty: &Type, value: Val, span: Option<Span>) -> Lowered<Vec<Atom>> {
        match (value, ty) {
            (Val::Data(atoms), _) => Ok(atoms.to_vec()),
            (Val::Tuple(items), Type::Tuple(ts)) => {
                let mut out = Vec::new();
                for (v, t) in items.iter().zip(ts.iter()) {
                    out.extend(self.coerced(t, v.clone(), span)?);
                }
                Ok(out)
            }
            (Val::Many(many), Type::Array(_)) => self.unrolled(&many, span),
            (value, Type::Fun(..) | Type::Linear(..) | Type::Evm(..)) => {
                Ok(vec![self.packed(ty, value, span)?])
            }
            _ => self.bug(span, format!("a value of another type than {ty}")),
        }
    }

    /// A function as a value of the sum of its type.
    fn packed(&mut self, ty: &Type, value: Val, span: Option<Span>) -> Lowered<Atom> {
        match &value {
            Val::Open(f) => return Ok(f.atom),
            Val::Choice(c) => {
                let mut arms = Vec::new();
                for (params, function) in self.alternatives(c, span)? {
                    let body = self.body(span, |l| Ok(vec![l.packed(ty, function, span)?]))?;
                    arms.push(core::Lam { params, body });
                }
                return Ok(self.b.emit(Exp::Match(c.sum, arms), "f"));
            }
            _ => {}
        }
        let kind = self.kind(ty);
        let sig = value.sig();
        let known = self.kinds[kind].alternatives.iter().position(|a| a.sig() == sig);
        let k = match known {
            Some(k) => k,
            None => {
                let k = self.kinds[kind].alternatives.len();
                if k >= MAX_VERSIONS || sig.deeper_than(MAX_DEPTH) {
                    return self.unsupported(span, "a function whose captured functions grow without end");
                }
                let fields = value.leaf_types(&self.b);
                self.kinds[kind].alternatives.push(value.clone());
                let id = self.kinds[kind].id;
                let variant = core::Variant { name: format!("f{k}").into(), fields };
                self.b.program.types[id].variants.push(variant);
                k
            }
        };
        let ty = core::Type::Named(self.kinds[kind].id);
        Ok(self.b.emit(Exp::Inject(ty, k, value.all_leaves()), "f"))
    }

    /// The core function that applies the functions of a kind, or runs its computations.
    pub(super) fn applier(&mut self, kind: usize, span: Option<Span>) -> Lowered<core::FunId> {
        if let Some(a) = &self.kinds[kind].applier {
            return Ok(a.id);
        }
        let (from, result, env) = self.interface(kind);
        let sum_type = core::Type::Named(self.kinds[kind].id);
        let sum = self.b.fresh(sum_type, "f");
        let vars = |l: &mut Self, t: &Type, hint: &str| -> Lowered<Vec<core::Var>> {
            let types = l.leaves_at(t, span)?;
            Ok(types.into_iter().map(|t| l.b.fresh(t, hint)).collect())
        };
        let arg = match &from {
            Some(t) => vars(self, t, "x")?,
            None => Vec::new(),
        };
        let mut cells = Vec::new();
        for t in &env {
            cells.extend(vars(self, t, "c")?);
        }
        let mut results = self.leaves_at(&result, span)?;
        for t in &env {
            results.extend(self.leaves_at(t, span)?);
        }
        let params = std::iter::once(sum).chain(arg.clone()).chain(cells.clone()).collect();
        let name = self.fresh_name(&"apply".into(), false);
        let body = core::Body::default();
        let id = self.b.program.funs.push(core::Fun { name, params, body, results, entry: None });
        self.kinds[kind].applier = Some(Applier { id, sum, arg, cells, arms: Vec::new() });
        Ok(id)
    }

    /// The argument type of a kind, if it has one, the type of what it gives, and those of its cells, outermost first.
    fn interface(&self, kind: usize) -> (Option<Type>, Type, Vec<Type>) {
        let (from, to) = match &self.kinds[kind].ty {
            Type::Fun(a, b) | Type::Linear(a, b) => (Some(Type::clone(a)), Type::clone(b)),
            ty => (None, ty.clone()),
        };
        match super::evm::of_computation(&to) {
            Some((result, env)) => (from, result.clone(), env),
            None => (from, to, Vec::new()),
        }
    }

    /// Lowers what is applied where a function is data, until nothing new comes up.
    pub(super) fn finish_kinds(&mut self) -> Lowered<()> {
        loop {
            let open = (0..self.kinds.len()).find(|k| {
                let kind = &self.kinds[*k];
                kind.applier.as_ref().is_some_and(|a| a.arms.len() < kind.alternatives.len())
            });
            match open {
                Some(kind) => self.arm(kind)?,
                None => break,
            }
        }
        for kind in 0..self.kinds.len() {
            let id = self.kinds[kind].id;
            if self.b.program.types[id].variants.is_empty() {
                let variant = core::Variant { name: "none".into(), fields: Vec::new() };
                self.b.program.types[id].variants.push(variant);
            }
            let Some(mut a) = self.kinds[kind].applier.take() else { continue };
            self.b.open();
            if a.arms.is_empty() {
                // There is no function of this type: it is never applied.
                let again = self.b.program.funs[a.id].params.iter().map(|&v| v.into()).collect();
                let result = self.body(None, |l| Ok(l.emit_some(Exp::Call(a.id, again), "r")))?;
                a.arms.push(core::Lam { params: Vec::new(), body: result });
            }
            let results = self.emit_some(Exp::Match(a.sum.into(), a.arms), "r");
            self.b.program.funs[a.id].body = self.b.close(results);
        }
        Ok(())
    }

    /// Lowers the next alternative of a kind.
    fn arm(&mut self, kind: usize) -> Lowered<()> {
        let (from, result, env) = self.interface(kind);
        let Some(a) = &self.kinds[kind].applier else { return Ok(()) };
        let k = a.arms.len();
        let (arg, cells) = (a.arg.clone(), a.cells.clone());
        let atoms = |vars: &[core::Var]| vars.iter().map(|&v| Atom::from(v)).collect::<Vec<Atom>>();
        let id = self.kinds[kind].id;
        let fields = self.b.program.types[id].variants[k].fields.clone();
        let params: Vec<core::Var> = fields.into_iter().map(|t| self.b.fresh(t, "c")).collect();
        let function = self.kinds[kind].alternatives[k].rebuilt(&mut params.iter().map(|&v| v.into()));
        let body = self.apart(IdMap::new(), None, |l| {
            let arg = match &from {
                Some(t) => Some(l.of_leaves(t, &atoms(&arg), None)?),
                None => None,
            };
            let mut inside = l.split(&env, &atoms(&cells), None)?;
            let is_computation = matches!(&l.kinds[kind].ty, Type::Evm(..))
                || matches!(&l.kinds[kind].ty, Type::Fun(_, b) if super::evm::is_computation(b));
            let value = match arg {
                Some(x) if is_computation => l.run_applied(&function, x, &mut inside, None)?,
                Some(x) => l.apply(&function, x, None)?,
                None => l.run(&function, &mut inside, None)?,
            };
            let mut out = l.coerced(&result, value, None)?;
            out.extend(inside.iter().flat_map(|c| c.iter().copied()));
            Ok(out)
        })?;
        if let Some(a) = &mut self.kinds[kind].applier {
            a.arms.push(core::Lam { params, body });
        }
        Ok(())
    }

    // --- arrays of functions ---

    /// The parameter of a lambda over the elements of an array of functions, and the arrays that it is for.
    pub(super) fn over(&mut self, many: &Many) -> Lowered<(Param, Vec<Atom>)> {
        let (mut vars, mut element, mut arrays, mut boxes) =
            (Vec::new(), Vec::new(), Vec::new(), IdSet::new());
        for (&column, &leaf) in many.columns.iter().zip(&many.leaves) {
            if column == Column::One {
                element.push(leaf);
                continue;
            }
            let core::Type::Array(ty) = self.b.ty(leaf) else {
                return self.bug(None, "an array of functions without arrays");
            };
            let ty = core::Type::clone(&ty);
            let x = self.b.fresh(ty, "c");
            vars.push(x);
            boxes.extend((column == Column::Boxed).then_some(x));
            element.push(x.into());
            arrays.push(leaf);
        }
        if vars.is_empty() {
            let unit = self.b.emit(Exp::Tuple(Vec::new()), "u");
            arrays.push(self.b.emit(Exp::Replicate(vec![many.size], unit), "us"));
            vars.push(self.b.fresh(core::Type::unit(), "u"));
        }
        let value = many.template.rebuilt(&mut element.into_iter());
        Ok((Param { vars, inside: Inside::Element(value, boxes) }, arrays))
    }
    /// A leaf of an element of an array of functions as an element of its column.
    fn in_column(&mut self, column: Column, a: Atom) -> Atom {
        match column {
            Column::One | Column::Each => a,
            Column::Boxed => {
                let of = core::Type::sum([("captured", vec![self.b.ty(a)])]);
                self.b.emit(Exp::Inject(of, 0, vec![a]), "box")
            }
        }
    }
    /// What is in a box of a column.
    pub(super) fn open_box(&mut self, a: Atom) -> Atom {
        let Some(inside) = self.b.ty(a).boxed().cloned() else { return a };
        let x = self.b.fresh(inside, "c");
        let body = core::Body { stms: Vec::new(), result: vec![x.into()] };
        self.b.emit(Exp::Match(a, vec![core::Lam { params: vec![x], body }]), "c")
    }

    /// A map over arrays of functions, or which makes them: only what is made inside of it varies from element to element.
    pub(super) fn map_of_functions(&mut self, f: &Term, arrays: &[Term], t: &Term) -> Lowered<Val> {
        let span = t.span();
        let f = self.term(f)?;
        let (mut given, mut leaves, mut size) = (Vec::new(), Vec::new(), None);
        for a in arrays {
            if holds_function(a.ty()) {
                let Val::Many(many) = self.term(a)? else {
                    return self.bug(a.span(), "an array of functions that is none");
                };
                size = size.or(Some(many.size));
                given.push(Some(many));
            } else {
                let array = self.array_operand(a)?;
                size = size.or(Some(self.outer_size(&array, a.span())?));
                leaves.push(array);
                given.push(None);
            }
        }
        // What has a higher number is made inside.
        let before = self.b.program.vars.len();
        let mut data = leaves.into_iter();
        let (mut params, mut leaves) = (Vec::new(), Vec::new());
        for (a, many) in arrays.iter().zip(given) {
            if let Some(many) = many {
                let (param, arrays) = self.over(&many)?;
                params.push(param);
                leaves.extend(arrays);
            } else {
                leaves.extend(data.next().iter().flat_map(|array| array.iter().copied()));
                let element = self.element_type(a)?;
                params.push(self.param(element, true, a.span())?);
            }
        }
        let Some(size) = size else { return self.bug(span, "a map over no arrays") };
        let result = self.element_type(t)?;
        let mut made = None;
        let lam = self.operand(&f, params, span, |l, value| {
            if !holds_function(result) {
                let atoms = l.coerced(result, value, span)?;
                return Ok(l.as_element(&atoms));
            }
            let column = |(a, captured): (&Atom, bool)| match a.var() {
                Some(v) if v.index() < before => Column::One,
                None => Column::One,
                Some(v) if captured && l.b.program.vars[v].ty.rank() > 0 => Column::Boxed,
                Some(_) => Column::Each,
            };
            let atoms = value.all_leaves();
            let columns: Vec<Column> = atoms.iter().zip(value.captured()).map(column).collect();
            let varying = atoms.iter().zip(&columns).filter(|(_, column)| **column != Column::One);
            let results: Vec<Atom> = varying.map(|(a, column)| l.in_column(*column, *a)).collect();
            made = Some((value, columns));
            Ok(l.as_element(&results))
        })?;
        let map = core::Soac::Map { width: size, lam, arrays: leaves };
        let all = self.emit_all(Exp::Soac(map), "ys");
        let all = self.sized(all, Some(size));
        let Some((template, columns)) = made else { return Ok(Val::data(all)) };
        let mut all = all.into_iter();
        let outer = template.all_leaves();
        let leaves = outer.iter().zip(&columns).map(|(a, column)| match column {
            Column::One => *a,
            Column::Each | Column::Boxed => all.next().unwrap_or(*a),
        });
        let leaves = leaves.collect();
        Ok(Val::Many(Rc::new(Many { element: result.clone(), template, columns, leaves, size })))
    }

    /// An array of functions as data.
    pub(super) fn unrolled(&mut self, many: &Many, span: Option<Span>) -> Lowered<Vec<Atom>> {
        if many.columns.iter().all(|column| *column == Column::Each) && is_data(&many.template) {
            return Ok(many.leaves.clone());
        }
        let (param, arrays) = self.over(many)?;
        let body = self.body(span, |l| {
            let element = l.opened(&param, span)?;
            let mut out = l.coerced(&many.element, element, span)?;
            if out.is_empty() {
                out.push(l.b.emit(Exp::Tuple(Vec::new()), "u"));
            }
            Ok(out)
        })?;
        let lam = core::Lam { params: param.vars, body };
        let all = self.emit_all(Exp::Soac(core::Soac::Map { width: many.size, lam, arrays }), "fs");
        Ok(self.sized(all, Some(many.size)))
    }

    /// `unzip` of an array of products with functions in them.
    pub(super) fn unzip_many(&mut self, many: &Many, t: &Term) -> Lowered<Val> {
        let (Val::Tuple(items), Type::Tuple(types)) = (&many.template, &many.element) else {
            return self.bug(t.span(), "unzip of an array whose elements are no products");
        };
        let (mut columns, mut leaves) = (many.columns.iter().copied(), many.leaves.iter().copied());
        let mut out = Vec::new();
        for (item, ty) in items.iter().zip(types.iter()) {
            let n = item.all_leaves().len();
            let columns: Vec<Column> = columns.by_ref().take(n).collect();
            let leaves: Vec<Atom> = leaves.by_ref().take(n).collect();
            let size = many.size;
            if holds_function(ty) {
                let (element, template) = (ty.clone(), item.clone());
                out.push(Val::Many(Rc::new(Many { element, template, columns, leaves, size })));
                continue;
            }
            let mut arrays = Vec::new();
            for (column, leaf) in columns.into_iter().zip(leaves) {
                arrays.push(match column {
                    Column::One => self.b.emit(Exp::Replicate(vec![size], leaf), "xs"),
                    Column::Each | Column::Boxed => leaf,
                });
            }
            if n == 0 {
                let unit = self.b.emit(Exp::Tuple(Vec::new()), "u");
                arrays.push(self.b.emit(Exp::Replicate(vec![size], unit), "us"));
            }
            out.push(Val::data(self.sized(arrays, Some(size))));
        }
        Ok(Val::Tuple(out.into()))
    }

    /// `array[ix]` of an array of functions.
    pub(super) fn index_many(&mut self, array: Val, ix: &[Atom], span: Option<Span>) -> Lowered<Val> {
        let mut value = array;
        for i in ix {
            let many = match &value {
                Val::Many(many) => many.clone(),
                _ => return self.bug(span, "an index into what is no array of functions"),
            };
            let mut element = Vec::new();
            for (&column, &leaf) in many.columns.iter().zip(&many.leaves) {
                let one = |l: &mut Self| l.b.emit(Exp::Index(leaf, vec![*i]), "c");
                element.push(match column {
                    Column::One => leaf,
                    Column::Each => one(self),
                    Column::Boxed => {
                        let one = one(self);
                        self.open_box(one)
                    }
                });
            }
            value = many.template.rebuilt(&mut element.into_iter());
        }
        Ok(value)
    }

    /// A name for a type that no other has.
    pub(super) fn type_name(&self, wish: &str) -> pullback_base::Symbol {
        let taken = |name: &str| {
            self.source.types.iter().any(|t| t.name.as_str() == name)
                || self.b.program.types.iter().any(|t| t.name.as_str() == name)
        };
        let mut names = (0..).map(|k| format!("{wish}_{k}"));
        names.find(|name| !taken(name)).unwrap_or_default().as_str().into()
    }
}

/// Whether an element has an array of functions among its components: its size is no leaf of the type.
fn holds_array_of_functions(element: &Type) -> bool {
    match element {
        Type::Array(_) => holds_function(element),
        Type::Tuple(ts) => ts.iter().any(holds_array_of_functions),
        _ => false,
    }
}

/// Whether the leaves of the value are those of its type.
fn is_data(value: &Val) -> bool {
    match value {
        Val::Data(_) | Val::Open(_) => true,
        Val::Tuple(items) => items.iter().all(is_data),
        // The size of a row is a leaf of its own.
        Val::Many(_) | Val::Closure(_) | Val::Choice(_) | Val::Action(_) => false,
    }
}
