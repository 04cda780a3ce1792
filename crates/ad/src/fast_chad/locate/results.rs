//! Where the results and the arguments of functions may lie, and the types of locations that say so.
//!
//! An array that a function gets or returns as a part of a larger one comes as two values: the *whole*, and a location that says which part.

use super::forms::Form;
use pullback_core::{Atom, Builder, Lam, Type, Var, Variant};
use std::collections::BTreeSet;

/// A result with more places than this is returned as it is: each is an arm of every branch that finds the result. A choice, not measured.
pub(super) const MAX_PLACES: usize = 16;

/// Parts of arrays that belong to whoever gets them: of which type the whole is, and how they are cut out.
pub(super) type Parts = BTreeSet<(Type, Form)>;

/// The types of the wholes, each once.
pub(super) fn wholes(parts: &Parts) -> impl Iterator<Item = &Type> {
    parts.iter().map(|(ty, _)| ty).collect::<BTreeSet<_>>().into_iter()
}
/// The alternatives of locations that say an array cut out like this.
pub(super) fn variants<'a>(
    name: &'a str,
    forms: impl Iterator<Item = &'a Form> + 'a,
) -> impl Iterator<Item = Variant> + 'a {
    let fields = |form: &Form| vec![Type::I64; form.holes()];
    forms
        .enumerate()
        .map(move |(k, form)| Variant { name: format!("{name}{k}").as_str().into(), fields: fields(form) })
}

/// Where a result may lie.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Places {
    /// In an argument, cut out like this.
    pub(super) arguments: BTreeSet<(usize, Form)>,
    /// In what some call makes, or was given to overwrite. That stands beside this result, or beside an earlier one, of which it is a part, too.
    pub(super) made: BTreeSet<Made>,
}

/// A part of what is made: beside which result it stands, of which type, and how the part is cut out.
pub(super) type Made = (usize, Type, Form);

impl Places {
    fn forms_of_arguments(&self) -> impl Iterator<Item = &Form> {
        self.arguments.iter().map(|(_, form)| form)
    }
    fn forms_of_made(&self) -> impl Iterator<Item = &Form> {
        self.made.iter().map(|(_, _, form)| form)
    }
    /// The type of locations.
    pub(super) fn ty(&self) -> Type {
        let arguments = variants("argument", self.forms_of_arguments());
        Type::Sum(arguments.chain(variants("made", self.forms_of_made())).collect())
    }
    /// The number of the alternative for a part of an argument.
    pub(super) fn number(&self, argument: usize, form: &Form) -> Option<usize> {
        self.arguments.iter().position(|(j, f)| *j == argument && f == form)
    }
    /// The number of the alternative for a part of an array of this type that stands beside a result.
    pub(super) fn number_of_made(&self, beside: usize, ty: &Type, form: &Form) -> Option<usize> {
        let k = self.made.iter().position(|(j, t, f)| *j == beside && t == ty && f == form)?;
        Some(self.arguments.len() + k)
    }
    /// The types of the arrays that stand beside a location, which is that of this result.
    pub(super) fn wholes(&self, result: usize) -> impl Iterator<Item = &Type> {
        let here = self.made.iter().filter(|(j, ..)| *j == result);
        here.map(|(_, ty, _)| ty).collect::<BTreeSet<_>>().into_iter()
    }
    /// The earlier results beside which it may stand.
    pub(super) fn beside(&self, result: usize) -> BTreeSet<usize> {
        self.made.iter().map(|(j, ..)| *j).filter(|j| *j != result).collect()
    }
    /// Adds that this result may be a part of what stands beside an earlier one.
    pub(super) fn beside_too(&mut self, result: usize, (j, earlier): (usize, &Places)) {
        let types: BTreeSet<&Type> = earlier.wholes(j).collect();
        let here = self.made.iter().filter(|(k, ty, _)| *k == result && types.contains(ty));
        let more: Vec<Made> = here.map(|(_, ty, form)| (j, ty.clone(), form.clone())).collect();
        self.made.extend(more);
    }
    /// How many holes the first alternative has.
    pub(super) fn first_holes(&self) -> usize {
        self.forms_of_arguments().chain(self.forms_of_made()).next().map_or(0, Form::holes)
    }
    pub(super) fn is_empty(&self) -> bool {
        self.arguments.is_empty() && self.made.is_empty()
    }
    pub(super) fn count(&self) -> usize {
        self.arguments.len() + self.made.len()
    }
    /// Whether it may be a part of what is made.
    pub(super) fn may_be_part(&self) -> bool {
        self.forms_of_made().any(|form| !form.is_whole())
    }
}

/// Leaves out results of which a location says no more than that they are made.
pub(super) fn only_named(results: &mut [Option<Places>]) {
    let named = |k: usize, places: &Places| {
        let mut others = results.iter().enumerate().filter(|(j, _)| *j != k).filter_map(|(_, p)| p.as_ref());
        let mut others = || others.any(|p| p.made.iter().any(|(j, ..)| *j == k));
        !places.arguments.is_empty() || places.may_be_part() || !places.beside(k).is_empty() || others()
    };
    let named: Vec<bool> =
        results.iter().enumerate().map(|(k, places)| places.as_ref().is_some_and(|p| named(k, p))).collect();
    results.iter_mut().zip(named).filter(|(_, named)| !named).for_each(|(places, _)| *places = None);
}

/// The arm of a branch on a location where it is this part of an array.
pub(super) fn cut(b: &mut Builder<'_>, whole: Atom, form: &Form) -> Lam {
    let params: Vec<Var> = (0..form.holes()).map(|_| b.fresh(Type::I64, "i")).collect();
    let holes: Vec<Atom> = params.iter().map(|&v| v.into()).collect();
    b.open();
    let part = form.cut(b, whole, &holes);
    Lam { params, body: b.close(vec![part]) }
}
