//! Types as Futhark prints them.

use crate::size;
use crate::typed::{Size, Type};
use crate::unify::{Kind, Metas, ScalarSet};

/// The text of a type; unknown parts are shown by what is required of them.
pub(crate) fn show(metas: &Metas, ty: &Type) -> String {
    let mut out = String::new();
    write(metas, &metas.zonk(ty), Place::Top, &mut out);
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

fn write(metas: &Metas, ty: &Type, place: Place, out: &mut String) {
    let list = |ts: &[Type], out: &mut String| {
        for (i, t) in ts.iter().enumerate() {
            if i > 0 {
                out.push_str(", ");
            }
            write(metas, t, Place::Top, out);
        }
    };
    match ty {
        Type::Scalar(s) => out.push_str(s.name()),
        Type::Array(s, t) => {
            out.push('[');
            out.push_str(&size::show(s));
            out.push(']');
            write(metas, t, Place::Atom, out);
        }
        Type::Tuple(ts) => {
            out.push('(');
            list(ts, out);
            out.push(')');
        }
        Type::Record(fields) => {
            out.push('{');
            for (i, (name, t)) in fields.iter().enumerate() {
                out.push_str(if i > 0 { ", " } else { "" });
                out.push_str(name.as_str());
                out.push_str(": ");
                write(metas, t, Place::Top, out);
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
                    write(metas, t, Place::Atom, out);
                }
            }
            out.push_str(if wrap { ")" } else { "" });
        }
        Type::Fun(binder, p, r) => {
            let wrap = place != Place::Top;
            out.push_str(if wrap { "(" } else { "" });
            let named = binder.is_some_and(|b| mentions(r, &Size::Meta(b)));
            if named {
                out.push_str("(n: ");
                write(metas, p, Place::Top, out);
                out.push(')');
            } else {
                write(metas, p, Place::Argument, out);
            }
            out.push_str(" -> ");
            write(metas, r, Place::Top, out);
            out.push_str(if wrap { ")" } else { "" });
        }
        Type::Param(_, name) | Type::Named(_, name) => out.push_str(name.as_str()),
        Type::Meta(m) => match metas.kind_of(*m) {
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
