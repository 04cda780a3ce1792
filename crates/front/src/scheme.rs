//! Reader of the types in [`crate::intrinsics::TABLE`]: makes an instance with new unknowns directly from the text.
//!
//! Grammar: `t = p -> t | p`, `p = (n: i64) (before an arrow) | (t, ..) | [n]p | []p | i64 | bool | a`. The texts are ours; a
//! wrong one gives [`Type::Error`] parts and fails the test that every row is well formed.

use crate::typed::{Binder, Size, SizeMetaId, Type};
use crate::unify::Metas;
use pullback_base::{Span, Symbol};
use pullback_prim::Scalar;
use std::collections::BTreeMap;
use std::sync::Arc;

struct Reader<'m> {
    metas: &'m mut Metas,
    tokens: Vec<String>,
    at: usize,
    types: BTreeMap<String, Type>,
    sizes: BTreeMap<String, SizeMetaId>,
    span: Span,
}

/// An instance of a type text, and the types that stand for its parameters in alphabetical order.
pub(crate) fn instantiate(metas: &mut Metas, text: &str, span: Span) -> (Type, Vec<Type>) {
    let tokens = tokens(text);
    let mut reader = Reader { metas, tokens, at: 0, types: BTreeMap::new(), sizes: BTreeMap::new(), span };
    let ty = reader.arrow();
    (ty, reader.types.into_values().collect())
}

fn tokens(text: &str) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let mut word = String::new();
    for c in text.chars() {
        if c.is_alphanumeric() {
            word.push(c);
            continue;
        }
        if !word.is_empty() {
            out.push(std::mem::take(&mut word));
        }
        match c {
            ' ' | '-' => {}
            '>' => out.push("->".into()),
            c => out.push(c.to_string()),
        }
    }
    if !word.is_empty() {
        out.push(word);
    }
    out
}

impl Reader<'_> {
    fn peek(&self, ahead: usize) -> &str {
        self.tokens.get(self.at + ahead).map_or("", |s| s.as_str())
    }
    fn next(&mut self) -> String {
        self.at += 1;
        self.tokens.get(self.at - 1).cloned().unwrap_or_default()
    }
    fn size(&mut self, name: &str) -> SizeMetaId {
        if let Some(m) = self.sizes.get(name) {
            return *m;
        }
        let m = self.metas.fresh_size();
        self.sizes.insert(name.into(), m);
        m
    }

    fn arrow(&mut self) -> Type {
        let mut binder = None;
        if self.peek(0) == "(" && self.peek(2) == ":" {
            self.next();
            let name = self.next();
            self.next();
            binder = Some(Binder { id: self.size(&name), name: Symbol::from(name) });
        }
        let param = self.product();
        if binder.is_some() {
            self.next();
        }
        if self.peek(0) != "->" {
            return param;
        }
        self.next();
        let result = self.arrow();
        Type::Fun(binder, Arc::new(param), Arc::new(result))
    }

    fn product(&mut self) -> Type {
        match self.next().as_str() {
            "(" => {
                let mut parts = vec![self.arrow()];
                while self.next() == "," {
                    parts.push(self.arrow());
                }
                if parts.len() == 1 { parts.remove(0) } else { Type::Tuple(Arc::from(parts)) }
            }
            "[" => {
                let size = if self.peek(0) == "]" {
                    self.metas.unknown()
                } else {
                    let name = self.next();
                    Size::Meta(self.size(&name))
                };
                self.next();
                Type::array(size, self.product())
            }
            word => match Scalar::from_name(word) {
                Some(s) => Type::Scalar(s),
                None if word.len() == 1 => {
                    let (metas, span) = (&mut *self.metas, self.span);
                    self.types.entry(word.to_string()).or_insert_with(|| metas.any(span)).clone()
                }
                None => Type::Error,
            },
        }
    }
}
