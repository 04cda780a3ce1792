//! `match` with nested patterns to matches of one level.
//!
//! The cases are rows of a matrix whose columns are variables that hold parts of the value. The first test of the
//! first row decides what is tested next; each outcome keeps the rows that can still fit. A value is tested at most
//! once for its alternative on each path. Arms may be copied where patterns overlap; copies are limited.

use super::{Elaborator, Wrap};
use pullback_base::Code;
use pullback_front::typed::{self, Pattern, PatternKind};
use pullback_lambda::{Arm, Exp, Term, Var};
use pullback_prim::{Op, ScalarValue};
use std::collections::BTreeMap;
use std::ops::Range;

/// More copies of arms than this in one program are refused.
const MAX_ARMS: usize = 50_000;

/// A case that can still fit: what is left to test, and its result.
#[derive(Clone)]
struct Row<'s> {
    tests: Vec<(Var, &'s Pattern)>,
    bound: Vec<(typed::VarId, Var)>,
    body: &'s typed::Exp,
}

impl<'s> Elaborator<'s, '_> {
    /// `match value case ...`.
    pub(super) fn match_exp(&mut self, value: &'s typed::Exp, cases: &'s [(Pattern, typed::Exp)]) -> Term {
        let mut wraps = Vec::new();
        let value = self.exp(value);
        let value = self.named(value, "m", &mut wraps);
        let rows = cases
            .iter()
            .map(|(pattern, body)| Row { tests: vec![(value, pattern)], bound: Vec::new(), body })
            .collect();
        let body = self.rows(rows);
        self.close(wraps, body)
    }

    fn rows(&mut self, rows: Vec<Row<'s>>) -> Term {
        stacker::maybe_grow(128 << 10, 1 << 20, || self.rows_inner(rows))
    }

    fn rows_inner(&mut self, mut rows: Vec<Row<'s>>) -> Term {
        let mut wraps = Vec::new();
        self.expand(&mut rows, &mut wraps);
        let Some(first) = rows.first() else { return self.no_case() };
        let Some((var, pattern)) = first.tests.first().copied() else {
            for (id, var) in first.bound.clone() {
                self.vars.insert(id, var);
            }
            self.arms += 1;
            if self.arms > MAX_ARMS {
                return self.too_many_arms();
            }
            let body = self.exp(first.body);
            return self.close(wraps, body);
        };
        let body = match &pattern.kind {
            PatternKind::Construct(..) => self.split_alternatives(&rows, var),
            PatternKind::Literal(literal) => self.split_literal(rows, var, *literal),
            PatternKind::Wildcard | PatternKind::Var(_) | PatternKind::Tuple(_) | PatternKind::Record(_) => {
                self.broken("a pattern was not expanded".to_string());
                self.no_case()
            }
        };
        self.close(wraps, body)
    }

    /// Resolves variables and wildcards and takes products apart, until only alternatives and literals are left.
    fn expand(&mut self, rows: &mut [Row<'s>], wraps: &mut Vec<Wrap>) {
        let mut parts: Vec<(Var, Vec<Option<Var>>)> = Vec::new();
        for row in rows {
            let mut done = Vec::new();
            let mut left: Vec<(Var, &'s Pattern)> = row.tests.drain(..).rev().collect();
            while let Some((var, pattern)) = left.pop() {
                let components: Vec<&'s Pattern> = match &pattern.kind {
                    PatternKind::Wildcard => continue,
                    PatternKind::Var(id) => {
                        row.bound.push((*id, var));
                        continue;
                    }
                    PatternKind::Literal(_) | PatternKind::Construct(..) => {
                        done.push((var, pattern));
                        continue;
                    }
                    PatternKind::Tuple(ps) => ps.iter().collect(),
                    PatternKind::Record(fields) => fields.iter().map(|(_, p)| p).collect(),
                };
                for (i, component) in components.into_iter().enumerate().rev() {
                    if let PatternKind::Wildcard = component.kind {
                        continue;
                    }
                    let inner = self.shared_component(&mut parts, var, i, component, wraps);
                    left.push((inner, component));
                }
            }
            row.tests = done;
        }
    }

    /// The variable that holds component `i` of `var`, the same for all rows.
    fn shared_component(
        &mut self,
        parts: &mut Vec<(Var, Vec<Option<Var>>)>,
        var: Var,
        i: usize,
        pattern: &Pattern,
        wraps: &mut Vec<Wrap>,
    ) -> Var {
        let at = parts.iter().position(|(v, _)| *v == var).unwrap_or_else(|| {
            parts.push((var, Vec::new()));
            parts.len() - 1
        });
        if parts[at].1.len() <= i {
            parts[at].1.resize(i + 1, None);
        }
        if let Some(found) = parts[at].1[i] {
            return found;
        }
        let whole = self.b.var(var);
        let value = self.b.proj(whole, i);
        let name = self.pattern_name(pattern);
        let inner = self.named(value, &name, wraps);
        parts[at].1[i] = Some(inner);
        inner
    }

    /// Tests which alternative `var` is.
    fn split_alternatives(&mut self, rows: &[Row<'s>], var: Var) -> Term {
        let ty = self.b.program.vars[var].ty.clone();
        let variants = self.b.program.variants(&ty).map(<[_]>::to_vec).unwrap_or_default();
        let mut arms = Vec::new();
        for (k, variant) in variants.iter().enumerate() {
            let names = field_names(self, rows, var, k, variant.fields.len());
            let params: Vec<Var> = variant
                .fields
                .iter()
                .zip(&names)
                .map(|(field, name)| self.b.fresh(field.clone(), name))
                .collect();
            let mut kept = Vec::new();
            for row in rows {
                let Some(at) = row.tests.iter().position(|(v, _)| *v == var) else {
                    kept.push(row.clone());
                    continue;
                };
                if let PatternKind::Construct(_, number, parts) = &row.tests[at].1.kind
                    && *number == k
                {
                    let mut row = row.clone();
                    row.tests.splice(at..=at, params.iter().copied().zip(parts));
                    kept.push(row);
                }
            }
            let body = self.rows(kept);
            arms.push(Arm { params, body });
        }
        let value = self.b.var(var);
        self.b.term(Exp::Match(value, arms))
    }

    /// Tests whether `var` is a literal.
    fn split_literal(&mut self, rows: Vec<Row<'s>>, var: Var, literal: ScalarValue) -> Term {
        if let Some(cases) = Cases::of(&rows, var) {
            return self.switch(cases, var);
        }
        let mut equal = Vec::new();
        let mut other = Vec::new();
        for row in rows {
            let Some(at) = row.tests.iter().position(|(v, _)| *v == var) else {
                equal.push(row.clone());
                other.push(row);
                continue;
            };
            let same = matches!(&row.tests[at].1.kind, PatternKind::Literal(l) if *l == literal);
            if same {
                let mut row = row;
                row.tests.remove(at);
                equal.push(row);
            } else {
                // A different literal does not fit where this one does.
                other.push(row);
            }
        }
        let value = self.b.var(var);
        if let ScalarValue::Bool(literal) = literal {
            let equal = self.rows(equal);
            let other = self.rows_after_bool(other, var, !literal);
            return if literal { self.b.if_(value, equal, other) } else { self.b.if_(value, other, equal) };
        }
        let constant = self.b.constant(literal);
        let condition = self.b.op2(Op::Eq, value, constant);
        let equal = self.rows(equal);
        let other = self.rows(other);
        self.b.if_(condition, equal, other)
    }

    /// Tests which of many integers `var` is: by halves, so that the cases are not nested as deeply as they are many. Where the integers
    /// have gaps between them, the number of the case is found first; no arm is there twice because of that.
    fn switch(&mut self, cases: Cases<'s>, var: Var) -> Term {
        let mut wraps = Vec::new();
        let Cases { literals, mut rows, others } = cases;
        let (first, last) = (literals[0], literals[literals.len() - 1]);
        let number = |k: usize| ScalarValue::I64(k as i64);
        let (by, keys) = if integer(last).abs_diff(integer(first)) < literals.len() as u128 {
            (var, literals)
        } else {
            let found = self.halves(var, &literals, 0..literals.len(), &mut |e, k| {
                let (value, literal) = (e.b.var(var), e.b.constant(literals[k]));
                let is_this = e.b.op2(Op::Eq, value, literal);
                let (this, none) = (e.b.constant(number(k)), e.b.constant(ScalarValue::I64(-1)));
                e.b.if_(is_this, this, none)
            });
            let case = self.named(found, "case", &mut wraps);
            (case, (0..literals.len()).map(number).collect())
        };
        let (low, high) = (keys[0], keys[keys.len() - 1]);
        let (value, low) = (self.b.var(by), self.b.constant(low));
        let above = self.b.op2(Op::Le, low, value);
        let (value, high) = (self.b.var(by), self.b.constant(high));
        let below = self.b.op2(Op::Le, value, high);
        let is_case = self.b.op2(Op::And, above, below);
        let one = self.halves(by, &keys, 0..keys.len(), &mut |e, k| e.rows(std::mem::take(&mut rows[k])));
        let none = self.rows(others);
        let body = self.b.if_(is_case, one, none);
        self.close(wraps, body)
    }

    /// A tree of comparisons that finds which of these ascending integers `var` is, if it is one of them: `leaf` makes what is done then.
    pub(super) fn halves(
        &mut self,
        var: Var,
        keys: &[ScalarValue],
        range: Range<usize>,
        leaf: &mut dyn FnMut(&mut Self, usize) -> Term,
    ) -> Term {
        if range.len() == 1 {
            return leaf(self, range.start);
        }
        let middle = range.start + range.len() / 2;
        let below = self.halves(var, keys, range.start..middle, leaf);
        let above = self.halves(var, keys, middle..range.end, leaf);
        let (value, key) = (self.b.var(var), self.b.constant(keys[middle]));
        let is_below = self.b.op2(Op::Lt, value, key);
        self.b.if_(is_below, below, above)
    }

    /// The rows that can fit once `var` is known to be `known`.
    fn rows_after_bool(&mut self, rows: Vec<Row<'s>>, var: Var, known: bool) -> Term {
        let mut kept = Vec::new();
        for mut row in rows {
            if let Some(at) = row.tests.iter().position(|(v, _)| *v == var) {
                let (_, pattern) = row.tests.remove(at);
                if !matches!(&pattern.kind, PatternKind::Literal(l) if *l == ScalarValue::Bool(known)) {
                    continue;
                }
            }
            kept.push(row);
        }
        self.rows(kept)
    }

    /// Never reached: type checking has shown that some case fits.
    fn no_case(&mut self) -> Term {
        self.broken("no case of a match fits".to_string());
        self.b.unit()
    }

    fn too_many_arms(&mut self) -> Term {
        self.report(
            Code::TooDeep,
            "the overlapping patterns of a match need too many copies of its arms".to_string(),
            "order the cases so that they overlap less, or match in two steps",
        );
        self.no_case()
    }
}

/// So many integers are told apart by halves.
const SWITCH: usize = 8;

/// Rows by the integer that they test a variable for.
struct Cases<'s> {
    /// The integers, ascending.
    literals: Vec<ScalarValue>,
    /// For each of them, the rows that can fit, in their order.
    rows: Vec<Vec<Row<'s>>>,
    /// Those that can fit where the variable is none of them.
    others: Vec<Row<'s>>,
}

impl<'s> Cases<'s> {
    /// `None` if there are few, or if they are no integers.
    fn of(rows: &[Row<'s>], var: Var) -> Option<Cases<'s>> {
        let mut known: BTreeMap<i128, (ScalarValue, Vec<usize>)> = BTreeMap::new();
        let mut others = Vec::new();
        for (k, row) in rows.iter().enumerate() {
            match row.tests.iter().find(|(v, _)| *v == var) {
                Some((_, Pattern { kind: PatternKind::Literal(l), .. })) if l.scalar().is_integer() => {
                    known.entry(integer(*l)).or_insert((*l, Vec::new())).1.push(k);
                }
                Some(_) => return None,
                None => others.push(k),
            }
        }
        if known.len() < SWITCH {
            return None;
        }
        let of = |own: &[usize]| {
            let mut all: Vec<usize> = own.iter().chain(&others).copied().collect();
            all.sort_unstable();
            let left = |k: usize| {
                let mut row = rows[k].clone();
                row.tests.retain(|(v, _)| *v != var);
                row
            };
            all.into_iter().map(left).collect::<Vec<Row<'s>>>()
        };
        let rows = known.values().map(|(_, own)| of(own)).collect();
        Some(Cases { literals: known.values().map(|(l, _)| *l).collect(), rows, others: of(&[]) })
    }
}

/// The value of an integer.
fn integer(x: ScalarValue) -> i128 {
    if let ScalarValue::U64(x) = x { x.into() } else { x.as_i64().into() }
}

/// Names for the fields of alternative `k` of `var`: those of the first row that tests for it.
fn field_names(e: &Elaborator<'_, '_>, rows: &[Row<'_>], var: Var, k: usize, count: usize) -> Vec<String> {
    for row in rows {
        for (v, pattern) in &row.tests {
            if let PatternKind::Construct(_, number, parts) = &pattern.kind
                && *v == var
                && *number == k
            {
                return parts.iter().map(|p| e.pattern_name(p)).collect();
            }
        }
    }
    vec!["_".to_string(); count]
}
