//! Leaves: the flat core values of an entry point's arguments and result, with the names users know them by.

use crate::values::type_text;
use pullback_base::Symbol;
use pullback_core::{Entry, EntryType, Program, Type};

/// One core parameter or result of an entry point.
#[derive(Clone, Debug, PartialEq)]
pub struct Leaf {
    /// Its name: `params.alpha`, `points.0`, `x`.
    pub path: String,
    /// Its type: a scalar, a sum, or arrays of these.
    pub ty: EntryType,
}

/// The leaves of a value, in the order of its core values.
pub fn leaves(name: &str, ty: &EntryType) -> Vec<Leaf> {
    let inside = |parts: Vec<(String, &EntryType)>| {
        parts.into_iter().flat_map(|(n, t)| leaves(&join(name, &n), t)).collect()
    };
    match ty {
        EntryType::Scalar(_) | EntryType::Sum(_) => vec![Leaf { path: name.to_string(), ty: ty.clone() }],
        EntryType::Tuple(ts) => inside(ts.iter().enumerate().map(|(i, t)| (i.to_string(), t)).collect()),
        EntryType::Record(fs) => inside(fs.iter().map(|(n, t)| (n.to_string(), t)).collect()),
        EntryType::Array(n, t) => leaves(name, t)
            .into_iter()
            .map(|l| Leaf { ty: EntryType::Array(n.clone(), Box::new(l.ty)), ..l })
            .collect(),
    }
}

fn join(prefix: &str, step: &str) -> String {
    if prefix.is_empty() { step.to_string() } else { format!("{prefix}.{step}") }
}

/// The leaves of all parameters, in the order of the core parameters.
pub fn parameter_leaves(entry: &Entry) -> Vec<Leaf> {
    entry.params.iter().flat_map(|(n, t)| leaves(n.as_str(), t)).collect()
}

/// Which parameters a derivative is taken with respect to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Wrt {
    /// Paths of arguments or fields: `params`, `params.alpha`. Empty: every parameter with floats. A path that starts
    /// with `-` freezes: everything but that.
    pub paths: Vec<String>,
}

impl Wrt {
    /// From the text of the option: paths separated by commas.
    pub fn parse(text: &str) -> Wrt {
        let paths = text.split(',').map(|p| p.trim().to_string()).filter(|p| !p.is_empty());
        Wrt { paths: paths.collect() }
    }

    /// Whether each leaf is wanted. Err: a path that names no leaf, or only discrete ones.
    pub fn select(&self, program: &Program, leaves: &[Leaf], types: &[Type]) -> Result<Vec<bool>, String> {
        let covers = |path: &str, leaf: &Leaf| {
            leaf.path == path || leaf.path.strip_prefix(path).is_some_and(|rest| rest.starts_with('.'))
        };
        let active: Vec<bool> = types.iter().map(|t| program.is_active(t)).collect();
        for path in &self.paths {
            let bare = path.trim_start_matches('-');
            let named: Vec<usize> = (0..leaves.len()).filter(|&i| covers(bare, &leaves[i])).collect();
            if named.is_empty() {
                let known: Vec<&str> = leaves.iter().map(|l| l.path.as_str()).collect();
                return Err(format!("no argument or field `{bare}`; there are {}", known.join(", ")));
            }
            if bare == path && !named.iter().any(|&i| active[i]) {
                let ty = type_text(&leaves[named[0]].ty);
                return Err(format!("`{bare}` has type {ty}, which holds no floats: it has no derivative"));
            }
        }
        let (frozen, chosen): (Vec<&String>, Vec<&String>) =
            self.paths.iter().partition(|p| p.starts_with('-'));
        let wanted = |leaf: &Leaf| {
            (chosen.is_empty() || chosen.iter().any(|p| covers(p, leaf)))
                && !frozen.iter().any(|p| covers(&p[1..], leaf))
        };
        let selected: Vec<bool> = leaves.iter().zip(&active).map(|(l, &a)| a && wanted(l)).collect();
        if !selected.contains(&true) {
            return Err(
                "there is nothing to differentiate with respect to: no argument with floats is left".into()
            );
        }
        Ok(selected)
    }
}

/// The type of the cotangent of a value of a leaf type, as the user sees it: sums get the alternative `#none` (zero).
pub fn cotangent_type(ty: &EntryType) -> EntryType {
    match ty {
        EntryType::Scalar(_) => ty.clone(),
        EntryType::Array(n, t) => EntryType::Array(n.clone(), Box::new(cotangent_type(t))),
        EntryType::Tuple(ts) => EntryType::Tuple(ts.iter().map(cotangent_type).collect()),
        EntryType::Record(fs) => {
            EntryType::Record(fs.iter().map(|(n, t)| (n.clone(), cotangent_type(t))).collect())
        }
        EntryType::Sum(vs) => {
            let none = (Symbol::new("none"), Vec::new());
            let rest = vs.iter().map(|(n, ts)| (n.clone(), ts.iter().map(cotangent_type).collect()));
            EntryType::Sum(std::iter::once(none).chain(rest).collect())
        }
    }
}
