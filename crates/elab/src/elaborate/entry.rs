//! Entry points: their interface, and the order of record fields in it.
//!
//! Inside the program the fields of a record are sorted by name; outside, in the interface, they keep the order in
//! which the user declared them. Where the two differ the entry point is a small function around the definition
//! that reorders parameters and result.

use super::Elaborator;
use pullback_base::{Code, Symbol};
use pullback_front::typed::{self, DefId};
use pullback_lambda::{Arm, Entry, EntryType, Exp, Term, Type, Variant};

/// Which way a value goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    In,
    Out,
}

impl Elaborator<'_, '_> {
    /// Makes the function that is called from outside.
    pub(super) fn entry_point(&mut self, id: DefId, entry: &typed::Entry) {
        let entry = Entry {
            params: entry.params.iter().map(|(n, t)| (n.clone(), self.entry_type(t))).collect(),
            result: self.entry_type(&entry.result),
        };
        let sorted = entry.params.iter().all(|(_, t)| is_sorted(t)) && is_sorted(&entry.result);
        if sorted {
            let fun = self.instance(id, Vec::new());
            self.b.program.funs[fun].entry = Some(entry);
            return;
        }
        let def = &self.source.defs[id];
        // The name belongs to the entry point; the definition itself gets another.
        let name = self.function_name(def);
        let params: Vec<(&str, Type)> =
            entry.params.iter().map(|(n, t)| (n.as_str(), interface_type(t))).collect();
        let fun = self.b.declare(&name, &params, interface_type(&entry.result), Some(entry.clone()));
        let inner = self.instance(id, Vec::new());
        let mut arguments = Vec::new();
        for (var, (_, ty)) in self.b.params(fun).into_iter().zip(&entry.params) {
            let value = self.b.var(var);
            arguments.push(self.reorder(value, ty, Direction::In));
        }
        let result = self.b.call(inner, arguments);
        let body = self.reorder(result, &entry.result, Direction::Out);
        self.b.define(fun, body);
    }

    fn entry_type(&mut self, ty: &typed::EntryType) -> EntryType {
        match ty {
            typed::EntryType::Scalar(s) => EntryType::Scalar(*s),
            typed::EntryType::Array(size, t) => {
                let element = self.entry_type(t);
                if is_empty(&element) {
                    self.report(
                        Code::Unsupported,
                        "an array of units cannot be a parameter or result of an entry point".to_string(),
                        "there is nothing in it but its length: take or give that",
                    );
                }
                EntryType::Array(size.clone(), Box::new(element))
            }
            typed::EntryType::Tuple(ts) => EntryType::Tuple(ts.iter().map(|t| self.entry_type(t)).collect()),
            typed::EntryType::Record(fields) => {
                EntryType::Record(fields.iter().map(|(n, t)| (n.clone(), self.entry_type(t))).collect())
            }
            typed::EntryType::Sum(variants) => EntryType::Sum(
                variants
                    .iter()
                    .map(|(n, ts)| (n.clone(), ts.iter().map(|t| self.entry_type(t)).collect()))
                    .collect(),
            ),
            typed::EntryType::Named(id) => {
                let name = self.source.types[*id].name.clone();
                self.report(
                    Code::Unsupported,
                    format!("the recursive type {name} cannot be a parameter or result of an entry point"),
                    "make the value inside the program, from numbers and arrays",
                );
                EntryType::Tuple(Vec::new())
            }
        }
    }

    /// A value of the interface as one of the program, or the other way around.
    fn reorder(&mut self, value: Term, ty: &EntryType, direction: Direction) -> Term {
        if is_sorted(ty) {
            return value;
        }
        let mut wraps = Vec::new();
        let value = self.atom(value, "v", &mut wraps);
        let result = match ty {
            EntryType::Scalar(_) => value,
            EntryType::Array(_, element) => {
                let from = value.ty().elem().cloned().unwrap_or_else(Type::unit);
                let x = self.b.fresh(from, "x");
                let body = self.b.var(x);
                let body = self.reorder(body, element, direction);
                let f = self.b.term(Exp::Lam(x, body));
                self.b.map(f, vec![value])
            }
            EntryType::Tuple(parts) => {
                let mut items = Vec::new();
                for (i, part) in parts.iter().enumerate() {
                    let item = self.b.proj(value.clone(), i);
                    items.push(self.reorder(item, part, direction));
                }
                self.b.tuple(items)
            }
            EntryType::Record(fields) => self.reorder_record(&value, fields, direction),
            EntryType::Sum(variants) => self.reorder_sum(value, variants, direction),
        };
        self.close(wraps, result)
    }

    fn reorder_record(&mut self, value: &Term, fields: &[(Symbol, EntryType)], direction: Direction) -> Term {
        // order[k] is the declared position of the field that is number k by name.
        let mut order: Vec<usize> = (0..fields.len()).collect();
        order.sort_by(|a, b| fields[*a].0.cmp(&fields[*b].0));
        let mut items: Vec<(usize, Term)> = Vec::new();
        for (k, declared) in order.iter().copied().enumerate() {
            let (from, to) = if direction == Direction::In { (declared, k) } else { (k, declared) };
            let item = self.b.proj(value.clone(), from);
            let item = self.reorder(item, &fields[declared].1, direction);
            items.push((to, item));
        }
        items.sort_by_key(|(to, _)| *to);
        self.b.tuple(items.into_iter().map(|(_, item)| item).collect())
    }

    fn reorder_sum(
        &mut self,
        value: Term,
        variants: &[(Symbol, Vec<EntryType>)],
        direction: Direction,
    ) -> Term {
        let target = EntryType::Sum(variants.to_vec());
        let target = if direction == Direction::In { sorted_type(&target) } else { interface_type(&target) };
        let mut arms = Vec::new();
        for (k, (_, fields)) in variants.iter().enumerate() {
            let types: Vec<Type> = fields
                .iter()
                .map(|t| if direction == Direction::In { interface_type(t) } else { sorted_type(t) })
                .collect();
            let params: Vec<_> = types.into_iter().map(|t| self.b.fresh(t, "x")).collect();
            let mut payload = Vec::new();
            for (param, field) in params.iter().zip(fields) {
                let item = self.b.var(*param);
                payload.push(self.reorder(item, field, direction));
            }
            let body = self.b.term(Exp::Inject(target.clone(), k, payload));
            arms.push(Arm { params, body });
        }
        self.b.term(Exp::Match(value, arms))
    }
}

/// Whether the fields of all records are declared in the order of their names.
fn is_sorted(ty: &EntryType) -> bool {
    match ty {
        EntryType::Scalar(_) => true,
        EntryType::Array(_, t) => is_sorted(t),
        EntryType::Tuple(ts) => ts.iter().all(is_sorted),
        EntryType::Record(fields) => {
            fields.windows(2).all(|pair| pair[0].0 <= pair[1].0) && fields.iter().all(|(_, t)| is_sorted(t))
        }
        EntryType::Sum(variants) => variants.iter().flat_map(|(_, ts)| ts).all(is_sorted),
    }
}

/// The type of values in the interface: fields in the order declared.
fn interface_type(ty: &EntryType) -> Type {
    lambda_type(ty, false)
}

/// The type of values in the program: fields sorted by name.
fn sorted_type(ty: &EntryType) -> Type {
    lambda_type(ty, true)
}

fn lambda_type(ty: &EntryType, sort: bool) -> Type {
    let all = |ts: &[EntryType]| ts.iter().map(|t| lambda_type(t, sort)).collect::<Vec<_>>();
    match ty {
        EntryType::Scalar(s) => Type::Scalar(*s),
        EntryType::Array(_, t) => Type::array(lambda_type(t, sort)),
        EntryType::Tuple(ts) => Type::tuple(all(ts)),
        EntryType::Record(fields) => {
            let mut fields: Vec<&(Symbol, EntryType)> = fields.iter().collect();
            if sort {
                fields.sort_by(|a, b| a.0.cmp(&b.0));
            }
            Type::tuple(fields.into_iter().map(|(_, t)| lambda_type(t, sort)).collect::<Vec<_>>())
        }
        EntryType::Sum(variants) => Type::Sum(
            variants.iter().map(|(name, ts)| Variant { name: name.clone(), fields: all(ts) }).collect(),
        ),
    }
}

/// Whether values of this type hold nothing.
fn is_empty(ty: &EntryType) -> bool {
    match ty {
        EntryType::Tuple(items) => items.iter().all(is_empty),
        EntryType::Record(fields) => fields.iter().all(|(_, t)| is_empty(t)),
        EntryType::Array(_, t) => is_empty(t),
        EntryType::Scalar(_) | EntryType::Sum(_) => false,
    }
}
