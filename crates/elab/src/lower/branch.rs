//! Branches that meet: `if` and `match`, also where their values are functions.

use super::evm::{Action, is_computation};
use super::types::holds_function;
use super::value::{Choice, Closure, Open, Sig, Val};
use super::{Lowered, Lowerer};
use pullback_base::Span;
use pullback_base::index::IdSet;
use pullback_core as core;
use pullback_core::{Atom, Exp};
use pullback_lambda as lambda;
use std::rc::Rc;

/// Chosen functions that capture chosen functions, and so on, so many levels deep are made data where they are chosen once more: written
/// out, each level would be there for each alternative of the next one.
const MAX_CHOICES: usize = 4;
/// A lambda that has been written out so often is a function of its own where it is applied again.
const MAX_COPIES: usize = 16;

/// A branch that has been lowered but not closed: its statements and its value.
pub(super) type OpenBranch = (Vec<core::Stm>, Val);

impl Lowerer<'_, '_> {
    /// Lowers a branch in a scope of its own.
    pub(super) fn branch(&mut self, f: impl FnOnce(&mut Self) -> Lowered<Val>) -> Lowered<OpenBranch> {
        let mut value = None;
        let span = self.b.origin.span;
        let body = self.body(span, |l| {
            value = Some(f(l)?);
            Ok(Vec::new())
        })?;
        match value {
            Some(value) => Ok((body.stms, value)),
            None => self.bug(span, "a branch without a value"),
        }
    }

    /// Closes branches whose values have the same type; gives the bodies and a template of the common value.
    pub(super) fn join(&mut self, branches: Vec<OpenBranch>) -> Lowered<(Vec<core::Body>, Val)> {
        let values: Vec<Val> = branches.iter().map(|b| b.1.clone()).collect();
        let merged = self.merge(&values)?;
        let mut bodies = Vec::new();
        for (k, (stms, value)) in branches.into_iter().enumerate() {
            self.b.open();
            stms.into_iter().for_each(|s| self.b.emit_stm(s));
            let mut result = Vec::new();
            let coerced = self.coerce(&value, &merged, k, &mut result);
            bodies.push(self.b.close(result));
            coerced?;
        }
        Ok((bodies, self.template(&merged)?))
    }

    /// How values of one type from several branches become one.
    fn merge(&mut self, values: &[Val]) -> Lowered<Merged> {
        let sig = values[0].sig();
        if values.iter().all(|v| v.sig() == sig) {
            return Ok(Merged::Same(values[0].clone()));
        }
        if let Val::Tuple(first) = &values[0] {
            let column = |i: usize| -> Vec<Val> {
                values
                    .iter()
                    .filter_map(|v| if let Val::Tuple(items) = v { items.get(i).cloned() } else { None })
                    .collect()
            };
            let parts = (0..first.len()).map(|i| self.merge(&column(i)));
            return Ok(Merged::Tuple(parts.collect::<Lowered<_>>()?));
        }
        if let Val::Many(many) = &values[0] {
            return Ok(Merged::Array(many.element.clone()));
        }
        if values.iter().any(|v| v.choices() >= MAX_CHOICES)
            && let Some(ty) = values[0].function_type(&self.kinds)
        {
            return Ok(Merged::Open(ty));
        }
        let mut alternatives: Vec<Val> = Vec::new();
        let mut which = Vec::new();
        for v in values {
            let sig = v.sig();
            let k = alternatives.iter().position(|a| a.sig() == sig).unwrap_or_else(|| {
                alternatives.push(v.clone());
                alternatives.len() - 1
            });
            which.push(k);
        }
        let variants = alternatives
            .iter()
            .enumerate()
            .map(|(k, a)| core::Variant { name: format!("f{k}").into(), fields: a.leaf_types(&self.b) });
        Ok(Merged::Choice { ty: core::Type::Sum(variants.collect()), alternatives, which })
    }

    /// Appends the leaves of the common value for the value of branch `k`.
    fn coerce(&mut self, value: &Val, merged: &Merged, k: usize, out: &mut Vec<Atom>) -> Lowered<()> {
        match (merged, value) {
            (Merged::Tuple(parts), Val::Tuple(items)) => {
                for (m, v) in parts.iter().zip(items.iter()) {
                    self.coerce(v, m, k, out)?;
                }
            }
            (Merged::Array(_), Val::Many(many)) => {
                let span = self.b.origin.span;
                out.extend(self.unrolled(many, span)?);
                out.push(many.size);
            }
            (Merged::Open(ty), v) => {
                let span = self.b.origin.span;
                out.extend(self.coerced(ty, v.clone(), span)?);
            }
            (Merged::Choice { ty, which, .. }, v) => {
                let payload = v.all_leaves();
                out.push(self.b.emit(Exp::Inject(ty.clone(), which[k], payload), "f"));
            }
            (Merged::Same(_) | Merged::Tuple(_) | Merged::Array(_), v) => v.push_leaves(out),
        }
        Ok(())
    }

    /// A value of the common shape; its leaves have no meaning yet.
    fn template(&mut self, merged: &Merged) -> Lowered<Val> {
        Ok(match merged {
            Merged::Same(v) => v.clone(),
            Merged::Tuple(parts) => {
                let parts = parts.iter().map(|m| self.template(m)).collect::<Lowered<Vec<Val>>>()?;
                Val::Tuple(parts.into())
            }
            Merged::Array(element) => {
                let span = self.b.origin.span;
                self.array_of_data(element, None, Atom::i64(0), span)?
            }
            Merged::Open(ty) => Val::Open(Open { kind: self.kind(ty), atom: Atom::i64(0) }),
            Merged::Choice { alternatives, .. } => {
                let sum = Atom::i64(0);
                Val::Choice(Rc::new(Choice { sum, alternatives: alternatives.clone() }))
            }
        })
    }

    /// Emits a branching expression made of the joined bodies; gives its value.
    pub(super) fn branching(
        &mut self,
        branches: Vec<OpenBranch>,
        make: impl FnOnce(Vec<core::Body>) -> Exp,
    ) -> Lowered<Val> {
        let (mut bodies, template) = self.join(branches)?;
        if bodies.iter().all(|b| b.result.is_empty()) {
            // They may stop the program all the same.
            let nothing = Atom::Const(pullback_prim::ScalarValue::Bool(false));
            bodies.iter_mut().for_each(|b| b.result.push(nothing));
        }
        let results = self.emit_all(make(bodies), "r");
        Ok(template.rebuilt(&mut results.into_iter()))
    }

    /// The functions that a choice may be, as an arm of a match has them: variables for what is captured, and the function.
    pub(super) fn alternatives(
        &mut self,
        c: &Choice,
        span: Option<Span>,
    ) -> Lowered<Vec<(Vec<core::Var>, Val)>> {
        let core::Type::Sum(variants) = self.b.ty(c.sum) else {
            return self.bug(span, "a choice of functions that is no sum");
        };
        let both = variants.iter().zip(&c.alternatives);
        Ok(both
            .map(|(variant, alternative)| {
                let vars: Vec<core::Var> =
                    variant.fields.iter().map(|t| self.b.fresh(t.clone(), "c")).collect();
                let function = alternative.rebuilt(&mut vars.iter().map(|&v| v.into()));
                (vars, function)
            })
            .collect())
    }

    /// Applies a function value.
    pub(super) fn apply(&mut self, f: &Val, arg: Val, span: Option<Span>) -> Lowered<Val> {
        match f {
            Val::Closure(c) => self.enter(c, arg, span),
            Val::Choice(c) => {
                let (mut params, mut branches) = (Vec::new(), Vec::new());
                for (vars, function) in self.alternatives(c, span)? {
                    let arg = arg.clone();
                    params.push(vars);
                    branches.push(self.branch(|l| l.apply(&function, arg, span))?);
                }
                let sum = c.sum;
                self.branching(branches, |bodies| {
                    let arms =
                        params.into_iter().zip(bodies).map(|(params, body)| core::Lam { params, body });
                    Exp::Match(sum, arms.collect())
                })
            }
            Val::Open(open) => {
                let (lambda::Type::Fun(from, to) | lambda::Type::Linear(from, to)) =
                    self.kinds[open.kind].ty.clone()
                else {
                    return self.bug(span, "application of a value that is no function");
                };
                if is_computation(&to) {
                    return Ok(Val::Action(Rc::new(Action::Apply(f.clone(), arg))));
                }
                let id = self.applier(open.kind, span)?;
                let mut given = vec![open.atom];
                given.extend(self.coerced(&from, arg, span)?);
                let results = self.emit_some(Exp::Call(id, given), "r");
                self.of_leaves(&to, &results, span)
            }
            Val::Data(_) | Val::Tuple(_) | Val::Many(_) | Val::Action(_) => {
                self.bug(span, "application of a value that is no function")
            }
        }
    }

    /// Lowers the body of a closure with its parameter bound.
    fn enter(&mut self, c: &Closure, arg: Val, span: Option<Span>) -> Lowered<Val> {
        let (lambda::Exp::Lam(_, body) | lambda::Exp::LinearLam(_, body)) = c.lam.exp() else {
            return self.bug(span, "a closure without a lambda");
        };
        let copies = self.copies.entry(c.param).or_default();
        *copies += 1;
        if *copies > MAX_COPIES
            && arg.is_given_by_leaves()
            && c.env.values().all(Val::is_given_by_leaves)
            && let Some(value) = self.enter_function(c, body, &arg, span)?
        {
            return Ok(value);
        }
        let mut env = c.env.clone();
        env.insert(c.param, arg);
        self.in_env(env, body, span)
    }

    /// The same by a call of a core function: one for each shape of the argument and of what the closure captures. `None` where the result is no
    /// data.
    fn enter_function(
        &mut self,
        c: &Closure,
        body: &lambda::Term,
        arg: &Val,
        span: Option<Span>,
    ) -> Lowered<Option<Val>> {
        let result = body.ty();
        if holds_function(result) || is_computation(result) {
            return Ok(None);
        }
        let given = || c.env.iter().map(|(v, value)| (*v, value)).chain([(c.param, arg)]);
        let key = (c.param, given().map(|(_, value)| value.sig()).collect::<Vec<Sig>>());
        let mut leaves = Vec::new();
        given().for_each(|(_, value)| value.push_leaves(&mut leaves));
        let id = match self.entered.get(&key) {
            Some(&id) => id,
            None => {
                let types: Vec<core::Type> =
                    given().flat_map(|(_, value)| value.leaf_types(&self.b)).collect();
                let params: Vec<core::Var> = types.into_iter().map(|t| self.b.fresh(t, "x")).collect();
                let mut atoms = params.iter().map(|&v| Atom::from(v));
                let env = given().map(|(v, value)| (v, value.rebuilt(&mut atoms))).collect();
                let results = self.leaves_at(result, span)?;
                let made = self.apart(env, span, |l| Ok(l.data(body)?.to_vec()))?;
                let name = self.fresh_name(&"function".into(), false);
                let function = core::Fun { name, params, body: made, results, entry: None };
                let id = self.b.program.funs.push(function);
                self.entered.insert(key, id);
                id
            }
        };
        let results = self.emit_some(Exp::Call(id, leaves), "r");
        Ok(Some(self.of_leaves(result, &results, span)?))
    }

    /// Lowers a term in another environment.
    pub(super) fn in_env(
        &mut self,
        env: pullback_base::index::IdMap<lambda::Var, Val>,
        body: &lambda::Term,
        span: Option<Span>,
    ) -> Lowered<Val> {
        if self.inline_depth >= super::MAX_INLINE_DEPTH {
            return self.unsupported(span, "a chain of function applications this deep");
        }
        self.inline_depth += 1;
        let outer = std::mem::replace(&mut self.env, env);
        let result = self.term(body);
        self.env = outer;
        self.inline_depth -= 1;
        result
    }

    /// A core lambda that applies a function value to these arguments; `close` turns the result into the results of the lambda.
    pub(super) fn operand(
        &mut self,
        f: &Val,
        args: Vec<Param>,
        span: Option<Span>,
        close: impl FnOnce(&mut Self, Val) -> Lowered<Vec<Atom>>,
    ) -> Lowered<core::Lam> {
        let params = args.iter().flat_map(|p| p.vars.iter().copied()).collect();
        let body = self.body(span, |l| {
            let args = args.iter().map(|p| l.opened(p, span)).collect::<Lowered<_>>()?;
            let value = l.apply_all(f, args, span)?;
            close(l, value)
        })?;
        Ok(core::Lam { params, body })
    }
    /// A parameter of this type; an element of an array of units is one unit.
    pub(super) fn param(&mut self, ty: &lambda::Type, of_array: bool, span: Option<Span>) -> Lowered<Param> {
        let types = if of_array { self.element_leaves(ty, span)? } else { self.leaves_at(ty, span)? };
        let vars: Vec<core::Var> = types.into_iter().map(|t| self.b.fresh(t, "x")).collect();
        let mut atoms: Vec<Atom> = vars.iter().map(|&v| v.into()).collect();
        if self.leaf_count(ty, span)? == 0 {
            atoms.clear();
        }
        Ok(Param { vars, inside: Inside::Leaves(ty.clone(), atoms) })
    }
    /// The value of a parameter, in the body of its lambda: boxes are opened there, and sizes of arrays of functions asked.
    pub(super) fn opened(&mut self, param: &Param, span: Option<Span>) -> Lowered<Val> {
        let (template, boxes) = match &param.inside {
            Inside::Leaves(ty, atoms) => return self.of_leaves(ty, atoms, span),
            Inside::Element(template, boxes) => (template, boxes),
        };
        let leaves = template.all_leaves().into_iter();
        let leaves: Vec<Atom> = leaves
            .map(|a| if a.var().is_some_and(|v| boxes.contains(&v)) { self.open_box(a) } else { a })
            .collect();
        Ok(template.rebuilt(&mut leaves.into_iter()))
    }

    fn apply_all(&mut self, f: &Val, args: Vec<Val>, span: Option<Span>) -> Lowered<Val> {
        args.into_iter().try_fold(f.clone(), |f, arg| self.apply(&f, arg, span))
    }
}

/// A parameter of a core lambda.
pub(super) struct Param {
    pub(super) vars: Vec<core::Var>,
    pub(super) inside: Inside,
}

/// The value that a parameter has inside of its lambda.
pub(super) enum Inside {
    /// Of this type, made of these leaves.
    Leaves(lambda::Type, Vec<Atom>),
    /// An element of an array of functions; these variables are boxes with leaves of it.
    Element(Val, IdSet<core::Var>),
}

/// How values from several branches become one.
enum Merged {
    /// All have the shape of this one.
    Same(Val),
    /// A product, merged by component.
    Tuple(Vec<Merged>),
    /// Arrays of different functions of this type, which are data.
    Array(lambda::Type),
    /// Functions of this type as data.
    Open(lambda::Type),
    /// Different functions.
    Choice {
        ty: core::Type,
        alternatives: Vec<Val>,
        /// The alternative of each branch.
        which: Vec<usize>,
    },
}
