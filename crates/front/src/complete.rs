//! Whether the cases of a `match` cover every value: the usual matrix algorithm, searching for a value that no case fits.

use crate::typed::{Pattern, PatternKind, Type};
use crate::unify::Metas;
use pullback_base::{Code, Diagnostic, Span};
use pullback_prim::{Scalar, ScalarValue};

/// Steps after which a `match` counts as too complex; the search is exponential in the worst case.
const LIMIT: usize = 20_000;

struct Search<'m> {
    metas: &'m Metas,
    steps: usize,
}

/// A row of the matrix; none stands for a pattern that fits everything.
type Row<'p> = Vec<Option<&'p Pattern>>;

/// Reports a value that no pattern fits.
pub(crate) fn check(metas: &Metas, patterns: &[&Pattern], ty: &Type, span: Span, out: &mut Vec<Diagnostic>) {
    let rows: Vec<Row<'_>> = patterns.iter().map(|p| vec![simple(p)]).collect();
    let mut search = Search { metas, steps: 0 };
    let found = search.missing(&rows, std::slice::from_ref(ty));
    if search.steps >= LIMIT {
        out.push(
            Diagnostic::error(Code::TooDeep, span, "this match is too complex to be shown complete")
                .hint("add a last case `case _ -> ..`"),
        );
    } else if let Some(example) = found {
        let example = example.first().cloned().unwrap_or_default();
        out.push(
            Diagnostic::error(Code::Pattern, span, format!("no case fits the value {example}"))
                .hint(format!("add `case {example} -> ..`")),
        );
    }
}

fn simple(p: &Pattern) -> Option<&Pattern> {
    match p.kind {
        PatternKind::Wildcard | PatternKind::Var(_) => None,
        PatternKind::Literal(_)
        | PatternKind::Tuple(_)
        | PatternKind::Record(_)
        | PatternKind::Construct(..) => Some(p),
    }
}

impl Search<'_> {
    /// Texts of values, one per column, that no row fits.
    fn missing(&mut self, rows: &[Row<'_>], types: &[Type]) -> Option<Vec<String>> {
        self.steps += 1;
        if self.steps >= LIMIT {
            return None;
        }
        let Some((first, rest)) = types.split_first() else {
            return rows.is_empty().then(Vec::new);
        };
        let heads: Vec<&Pattern> = rows.iter().filter_map(|r| r.first().copied().flatten()).collect();
        let Some(head) = heads.first() else {
            return self.with_default(rows, rest, "_".into());
        };
        match &head.kind {
            PatternKind::Tuple(ps) => {
                let columns = component_types(first, ps.len());
                self.product(rows, columns, rest, |texts| format!("({})", texts.join(", ")))
            }
            PatternKind::Record(fs) => {
                let columns = component_types(first, fs.len());
                let names: Vec<String> = fs.iter().map(|(n, _)| n.to_string()).collect();
                self.product(rows, columns, rest, |texts| {
                    let fields: Vec<String> =
                        names.iter().zip(texts).map(|(n, t)| format!("{n} = {t}")).collect();
                    format!("{{{}}}", fields.join(", "))
                })
            }
            PatternKind::Construct(..) => self.sum(rows, first, rest),
            PatternKind::Literal(_) if *first == Type::Scalar(Scalar::Bool) => {
                for value in [true, false] {
                    let chosen: Vec<Row<'_>> = rows
                        .iter()
                        .filter(|r| match r.first().copied().flatten().map(|p| &p.kind) {
                            Some(PatternKind::Literal(v)) => *v == ScalarValue::Bool(value),
                            _ => true,
                        })
                        .map(|r| r.iter().skip(1).copied().collect())
                        .collect();
                    if let Some(found) = self.missing(&chosen, rest) {
                        return Some(prepend(value.to_string(), found));
                    }
                }
                None
            }
            // Numbers are too many to be listed, so what decides are the rows that fit any.
            PatternKind::Literal(_) => self.with_default(rows, rest, "_".into()),
            PatternKind::Wildcard | PatternKind::Var(_) => self.with_default(rows, rest, "_".into()),
        }
    }

    fn with_default(&mut self, rows: &[Row<'_>], rest: &[Type], text: String) -> Option<Vec<String>> {
        let chosen: Vec<Row<'_>> = rows
            .iter()
            .filter(|r| r.first().copied().flatten().is_none())
            .map(|r| r.iter().skip(1).copied().collect())
            .collect();
        self.missing(&chosen, rest).map(|found| prepend(text, found))
    }

    fn product(
        &mut self,
        rows: &[Row<'_>],
        columns: Vec<Type>,
        rest: &[Type],
        text: impl Fn(&[String]) -> String,
    ) -> Option<Vec<String>> {
        let n = columns.len();
        let open: Vec<Row<'_>> = rows
            .iter()
            .map(|r| {
                let mut parts: Row<'_> = match r.first().copied().flatten().map(|p| &p.kind) {
                    Some(PatternKind::Tuple(ps)) => ps.iter().map(simple).collect(),
                    Some(PatternKind::Record(fs)) => fs.iter().map(|(_, p)| simple(p)).collect(),
                    _ => vec![None; n],
                };
                parts.resize(n, None);
                parts.extend(r.iter().skip(1));
                parts
            })
            .collect();
        let types: Vec<Type> = columns.into_iter().chain(rest.iter().cloned()).collect();
        let found = self.missing(&open, &types)?;
        let (inner, outer) = found.split_at(n.min(found.len()));
        Some(prepend(text(inner), outer.to_vec()))
    }

    fn sum(&mut self, rows: &[Row<'_>], ty: &Type, rest: &[Type]) -> Option<Vec<String>> {
        for (name, payload) in self.metas.alternatives(ty)? {
            let chosen: Vec<Row<'_>> = rows
                .iter()
                .filter_map(|r| {
                    let mut parts: Row<'_> = match r.first().copied().flatten().map(|p| &p.kind) {
                        Some(PatternKind::Construct(n, _, ps)) if *n == name => {
                            ps.iter().map(simple).collect()
                        }
                        Some(_) => return None,
                        None => vec![None; payload.len()],
                    };
                    parts.resize(payload.len(), None);
                    parts.extend(r.iter().skip(1));
                    Some(parts)
                })
                .collect();
            let types: Vec<Type> = payload.iter().cloned().chain(rest.iter().cloned()).collect();
            if let Some(found) = self.missing(&chosen, &types) {
                let (inner, outer) = found.split_at(payload.len().min(found.len()));
                let wrap = |t: &String| {
                    if t.starts_with('#') && t.contains(' ') { format!("({t})") } else { t.clone() }
                };
                let text =
                    std::iter::once(format!("#{name}")).chain(inner.iter().map(wrap)).collect::<Vec<_>>();
                return Some(prepend(text.join(" "), outer.to_vec()));
            }
        }
        None
    }
}

fn component_types(ty: &Type, n: usize) -> Vec<Type> {
    let mut out: Vec<Type> = match ty {
        Type::Tuple(ts) => ts.to_vec(),
        Type::Record(fs) => fs.iter().map(|(_, t)| t.clone()).collect(),
        Type::Scalar(_)
        | Type::Array(..)
        | Type::Sum(_)
        | Type::Fun(..)
        | Type::Param(..)
        | Type::Named(..)
        | Type::Meta(_)
        | Type::Error => vec![],
    };
    out.resize(n, Type::Error);
    out
}

fn prepend(text: String, rest: Vec<String>) -> Vec<String> {
    std::iter::once(text).chain(rest).collect()
}
