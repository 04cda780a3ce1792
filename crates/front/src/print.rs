//! Types as Futhark prints them.

use crate::size;
use crate::typed::{Binder, Size, Type};
use crate::unify::{Kind, Metas, ScalarSet};

/// The text of a type; unknown parts are shown by what is required of them.
pub(crate) fn show(metas: &Metas, ty: &Type) -> String {
    let mut out = String::new();
    Printer { metas, binders: Vec::new() }.write(&metas.zonk(ty), Place::Top, &mut out);
    // A type this long helps nobody.
    if out.chars().count() > 400 {
        out = out.chars().take(397).collect::<String>() + "...";
    }
    out
}

/// The text of a finished type, as Futhark prints it.
pub fn type_text(ty: &Type) -> String {
    show(&Metas::default(), ty)
}

/// Where a type stands, which decides about parentheses.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    /// Alone, in a tuple or record.
    Top,
    /// To the left of an arrow.
    Argument,
    /// Element of an array or payload of an alternative.
    Atom,
}

struct Printer<'m> {
    metas: &'m Metas,
    /// Binders of the enclosing function types, outermost first.
    binders: Vec<Binder>,
}

impl Printer<'_> {
    /// A size; binders by the names of their parameters.
    fn size(&self, s: &Size) -> String {
        let place = match s {
            Size::Meta(m) => self.binders.iter().find(|b| b.id == *m),
            Size::Const(_) | Size::Var(..) | Size::Def(..) | Size::Expression(_) | Size::Unknown(_) => None,
        };
        match place {
            Some(b) => b.name.to_string(),
            None => size::show(s),
        }
    }

    fn write(&mut self, ty: &Type, place: Place, out: &mut String) {
        match ty {
            Type::Scalar(s) => out.push_str(s.name()),
            Type::Array(s, t) => {
                out.push('[');
                out.push_str(&self.size(s));
                out.push(']');
                self.write(t, Place::Atom, out);
            }
            Type::Tuple(ts) => {
                out.push('(');
                for (i, t) in ts.iter().enumerate() {
                    out.push_str(if i > 0 { ", " } else { "" });
                    self.write(t, Place::Top, out);
                }
                out.push(')');
            }
            Type::Record(fields) => {
                out.push('{');
                for (i, (name, t)) in fields.iter().enumerate() {
                    out.push_str(if i > 0 { ", " } else { "" });
                    out.push_str(name.as_str());
                    out.push_str(": ");
                    self.write(t, Place::Top, out);
                }
                out.push('}');
            }
            Type::Sum(variants) => {
                let wrap = place != Place::Top;
                out.push_str(if wrap { "(" } else { "" });
                for (i, (name, ts)) in variants.iter().enumerate() {
                    out.push_str(if i > 0 { " | #" } else { "#" });
                    out.push_str(name.as_str());
                    for t in ts {
                        out.push(' ');
                        self.write(t, Place::Atom, out);
                    }
                }
                out.push_str(if wrap { ")" } else { "" });
            }
            Type::Fun(binder, p, r) => {
                let wrap = place != Place::Top;
                out.push_str(if wrap { "(" } else { "" });
                let named = binder.clone().filter(|b| mentions(r, &Size::Meta(b.id)));
                if let Some(b) = &named {
                    self.binders.push(b.clone());
                    out.push_str(&format!("({}: ", b.name));
                    self.write(p, Place::Top, out);
                    out.push(')');
                } else {
                    self.write(p, Place::Argument, out);
                }
                out.push_str(" -> ");
                self.write(r, Place::Top, out);
                if named.is_some() {
                    self.binders.pop();
                }
                out.push_str(if wrap { ")" } else { "" });
            }
            Type::Param(_, name) | Type::Named(_, name) => out.push_str(name.as_str()),
            Type::Meta(m) => match self.metas.kind_of(*m) {
                Kind::Any | Kind::Equality => out.push('_'),
                Kind::Scalar(set) if *set == ScalarSet::floats() => out.push_str("<float>"),
                Kind::Scalar(set) if *set == ScalarSet::integers() => out.push_str("<integer>"),
                Kind::Scalar(_) => out.push_str("<number>"),
                Kind::Record(fields) => {
                    let names: Vec<&str> = fields.iter().map(|(n, _)| n.as_str()).collect();
                    out.push_str(&format!("{{{}, ...}}", names.join(", ")));
                }
                Kind::Sum(variants) => {
                    let names: Vec<String> = variants.iter().map(|(n, _)| format!("#{n}")).collect();
                    out.push_str(&format!("({} | ...)", names.join(" | ")));
                }
            },
            Type::Error => out.push('_'),
        }
    }
}

/// Whether a size occurs in a type.
pub(crate) fn mentions(ty: &Type, size: &Size) -> bool {
    match ty {
        Type::Array(s, t) => s == size || mentions(t, size),
        Type::Tuple(ts) => ts.iter().any(|t| mentions(t, size)),
        Type::Record(fs) => fs.iter().any(|(_, t)| mentions(t, size)),
        Type::Sum(vs) => vs.iter().flat_map(|(_, ts)| ts).any(|t| mentions(t, size)),
        Type::Fun(_, p, r) => mentions(p, size) || mentions(r, size),
        Type::Scalar(_) | Type::Param(..) | Type::Named(..) | Type::Meta(_) | Type::Error => false,
    }
}
