//! Columns of a tape that are cheap functions of other columns are not stored: their elements are made again where they are read.
//!
//! Differentiation decides body by body what to store (`fast_chad::cut`). What two maps of one loop store it cannot compare, but
//! after fusion they are one map: `1 / (1 + e)`, which a reader outside wanted, and `e`, which the derivative of the map wanted,
//! are then results of one body, and the first is two simple operations on the second.
//!
//! A column is a collected result of a loop, followed inwards through collecting loops and maps to the scalar that the innermost
//! body computes. Columns with the same way inwards have their elements side by side, at equal indices. One of them goes if
//! - its element follows from those of columns that stay, from constants, and from scalars bound outside the loop, by
//!   primitives that together cost no more than keeping it (the prices of `fast_chad::cut`),
//! - it and the columns it follows from are only indexed, or taken elementwise by maps, after the loop: never returned, never
//!   written to, so that nothing lives longer than before.
//!
//! What does not vary at all follows from no column.
//!
//! Assumes: only differentiation makes loops that collect, and it reads columns in their range; fusion is done, and tapes are out of their boxes. Guarantees: the same values bit for bit; what is not needed any more is left to
//! `prune`, indices that occur twice to `cse`. Source: recomputation as in Smeding, PhD thesis, section 7.5.1.5.

use crate::Ctx;
use pullback_base::index::{IdMap, IdSet};
use pullback_core::rename::{Subst, copy_stms, fresh_like, substitute_atom};
use pullback_core::traverse::bound_vars;
use pullback_core::{Atom, Body, Exp, Lam, Loop, LoopForm, Origin, Program, Soac, Stm, Type, Var, VarInfo};
use std::collections::BTreeMap;

/// Storing a float and reading it, in units of a simple operation.
const STORED: u64 = 8;
/// Running a statement again, besides its operation.
const STATEMENT: u64 = 2;

/// Runs the pass. Cost: the size of the program times its nesting depth, and the number of columns times their number of statements.
pub fn rematerialise(program: &mut Program, _ctx: &Ctx) {
    let ids: Vec<_> = program.funs.ids().collect();
    for id in ids {
        let mut body = std::mem::take(&mut program.funs[id].body);
        remake_in(program, &mut body);
        program.funs[id].body = body;
    }
}

fn remake_in(program: &mut Program, body: &mut Body) {
    for k in 0..body.stms.len() {
        let recipes = recipes(program, body, k);
        if recipes.is_empty() {
            continue;
        }
        let rest = body.stms.split_off(k + 1);
        let mut parts: IdMap<Var, Part<'_>> = IdMap::new();
        for recipe in &recipes {
            parts.insert(recipe.column, Part { recipe, from: recipe.from.clone() });
        }
        body.stms.extend(read_again(program, rest, &mut parts));
        drop_columns(&mut body.stms[k], &recipes);
    }
    for stm in &mut body.stms {
        for scope in stm.exp.bodies_mut() {
            remake_in(program, scope.body);
        }
    }
}

/// A column that a loop collects, and the scalar that is its element.
struct Column {
    var: Var,
    element: Atom,
}

/// How elements of a column are made from elements of others.
struct Recipe {
    column: Var,
    /// The columns it follows from, and their elements.
    from: Vec<Var>,
    elements: Vec<Atom>,
    stms: Vec<Stm>,
    element: Atom,
}

/// The recipes for columns of this statement that can go.
fn recipes(program: &Program, body: &Body, at: usize) -> Vec<Recipe> {
    let stm = &body.stms[at];
    let Exp::Loop(l) = &stm.exp else { return Vec::new() };
    // (A `while` loop that collects says how often it ran.)
    if l.collect == 0 || !matches!(l.form, LoopForm::For { .. }) {
        return Vec::new();
    }
    // Columns by their way inwards, with the innermost body.
    let mut groups: BTreeMap<Vec<Var>, (&Body, Vec<Column>)> = BTreeMap::new();
    for (&var, &a) in stm.pat.iter().zip(&l.body.result).skip(l.params.len()) {
        let mut way = Vec::new();
        if let Some((inner, element)) = element(program, &l.body, a, &mut way) {
            groups.entry(way).or_insert((inner, Vec::new())).1.push(Column { var, element });
        }
    }
    if groups.is_empty() {
        return Vec::new();
    }
    let only_read =
        OnlyRead::of(program, groups.values().flat_map(|(_, cs)| cs).map(|c| c.var), body, at + 1);
    let inside = bound_vars(&l.body);
    let bound: IdSet<Var> =
        inside.into_iter().chain(stm.exp.bodies().iter().flat_map(|s| s.binds.iter())).collect();
    let mut recipes = Vec::new();
    for (inner, mut columns) in groups.into_values() {
        columns.retain(|c| only_read.holds(c.var));
        Kitchen { program, bound: &bound, inner, columns }.cook(&mut recipes);
    }
    if recipes.len() == stm.pat.len() {
        // A statement binds something.
        recipes.pop();
    }
    recipes
}

/// The body that computes the elements of an array and the scalar that is one, if the array is made by maps and loops that
/// collect. `way`: the statements on the way.
fn element<'a>(program: &Program, body: &'a Body, a: Atom, way: &mut Vec<Var>) -> Option<(&'a Body, Atom)> {
    if program.atom_type(a).scalar().is_some() {
        return Some((body, a));
    }
    let v = a.var()?;
    let (stm, k) = body.stms.iter().rev().find_map(|s| Some((s, s.pat.iter().position(|p| *p == v)?)))?;
    let inner = match &stm.exp {
        Exp::Loop(l) if k >= l.params.len() => &l.body,
        Exp::Soac(Soac::Map { lam, .. }) => &lam.body,
        Exp::Soac(Soac::Fused { pre, neutral, .. }) if k >= neutral.len() => &pre.body,
        _ => return None,
    };
    way.push(stm.pat[0]);
    element(program, inner, inner.result[k], way)
}

/// Where recipes of columns side by side are made.
struct Kitchen<'a> {
    program: &'a Program,
    /// What is bound inside the loop, and so not there when columns are read.
    bound: &'a IdSet<Var>,
    inner: &'a Body,
    columns: Vec<Column>,
}

impl Kitchen<'_> {
    fn cook(&self, recipes: &mut Vec<Recipe>) {
        let made: IdMap<Var, usize> = self
            .inner
            .stms
            .iter()
            .enumerate()
            .flat_map(|(k, s)| s.pat.iter().map(move |v| (*v, k)))
            .collect();
        // Later values follow from earlier ones.
        let mut order: Vec<usize> = (0..self.columns.len()).collect();
        let place = |c: usize| self.columns[c].element.var().and_then(|v| made.get(&v)).copied();
        order.sort_by_key(|&c| std::cmp::Reverse(place(c)));
        let mut stays = vec![true; self.columns.len()];
        let mut used = vec![false; self.columns.len()];
        for c in order {
            if used[c] {
                continue;
            }
            stays[c] = false;
            let Some((from, stms)) = self.recipe(c, &stays, &made) else {
                stays[c] = true;
                continue;
            };
            from.iter().for_each(|&f| used[f] = true);
            recipes.push(Recipe {
                column: self.columns[c].var,
                from: from.iter().map(|&f| self.columns[f].var).collect(),
                elements: from.iter().map(|&f| self.columns[f].element).collect(),
                stms: stms.into_iter().map(|k| self.inner.stms[k].clone()).collect(),
                element: self.columns[c].element,
            });
        }
    }

    /// The columns that one follows from, and the statements that make it, if that is cheap enough.
    fn recipe(
        &self,
        c: usize,
        stays: &[bool],
        made: &IdMap<Var, usize>,
    ) -> Option<(Vec<usize>, IdSet<usize>)> {
        let (mut from, mut stms) = (Vec::new(), IdSet::new());
        let mut cost = 0;
        let mut wanted = vec![self.columns[c].element];
        while let Some(a) = wanted.pop() {
            let Some(v) = a.var() else { continue };
            if let Some(f) = (0..stays.len()).find(|&f| stays[f] && self.columns[f].element == a) {
                if !from.contains(&f) {
                    from.push(f);
                }
                continue;
            }
            let Some(&k) = made.get(&v) else {
                let outside = !self.bound.contains(&v) && self.program.vars[v].ty.scalar().is_some();
                if outside { continue } else { return None }
            };
            let operation = match &self.inner.stms[k].exp {
                Exp::Prim(prim, _) => STATEMENT + prim.cost(),
                Exp::Atom(_) => 0,
                _ => return None,
            };
            if stms.insert(k) {
                cost += operation;
                self.inner.stms[k].exp.for_each_atom(|a| wanted.push(a));
            }
            if cost > STORED {
                return None;
            }
        }
        Some((from, stms))
    }
}

/// Which columns are only indexed and taken elementwise.
struct OnlyRead<'p> {
    program: &'p Program,
    /// Columns and their parts, with the column.
    parts: IdMap<Var, Var>,
    not: IdSet<Var>,
}

impl<'p> OnlyRead<'p> {
    fn of(program: &'p Program, columns: impl Iterator<Item = Var>, body: &Body, from: usize) -> Self {
        let mut found = OnlyRead { program, parts: columns.map(|v| (v, v)).collect(), not: IdSet::new() };
        body.stms[from..].iter().for_each(|s| found.stm(s));
        found.results(&body.result);
        found
    }
    fn holds(&self, column: Var) -> bool {
        !self.not.contains(&column)
    }
    fn column(&self, a: Atom) -> Option<Var> {
        a.var().and_then(|v| self.parts.get(&v)).copied()
    }
    fn part(&mut self, v: Var, column: Var) {
        if self.program.vars[v].ty.scalar().is_none() {
            self.parts.insert(v, column);
        }
    }
    fn results(&mut self, results: &[Atom]) {
        for a in results {
            self.not.extend(self.column(*a));
        }
    }
    fn stm(&mut self, stm: &Stm) {
        if let Exp::Index(a, _) = &stm.exp {
            if let Some(column) = self.column(*a) {
                self.part(stm.pat[0], column);
            }
            return;
        }
        let elementwise = match stm.exp.elementwise() {
            Some((lam, arrays)) => {
                for (&p, &a) in lam.params.iter().zip(arrays) {
                    if let Some(column) = self.column(a) {
                        self.part(p, column);
                    }
                }
                arrays.len()
            }
            None => 0,
        };
        // An operation has its arrays last.
        let mut atoms = Vec::new();
        stm.exp.for_each_atom(|a| atoms.push(a));
        atoms.truncate(atoms.len() - elementwise);
        self.results(&atoms);
        for scope in stm.exp.bodies() {
            scope.body.stms.iter().for_each(|s| self.stm(s));
            self.results(&scope.body.result);
        }
    }
}

/// A part of a column that goes, and the same parts of the columns it follows from.
#[derive(Clone)]
struct Part<'r> {
    recipe: &'r Recipe,
    from: Vec<Var>,
}

/// The statements, with what they read of columns that go made from what they follow from.
fn read_again<'r>(program: &mut Program, stms: Vec<Stm>, parts: &mut IdMap<Var, Part<'r>>) -> Vec<Stm> {
    let mut out = Vec::with_capacity(stms.len());
    for mut stm in stms {
        if let Exp::Index(Atom::Var(a), ix) = &stm.exp
            && let Some(part) = parts.get(a).cloned()
        {
            let mut from = Vec::new();
            for v in &part.from {
                let element = after(program, *v, ix.len());
                let read = program.vars.push(VarInfo {
                    ty: element,
                    hint: "tape".into(),
                    origin: Origin::default(),
                });
                out.push(Stm { pat: vec![read], exp: Exp::Index((*v).into(), ix.clone()) });
                from.push(read);
            }
            out.extend(make(program, stm.pat[0], Part { from, ..part }, parts));
            continue;
        }
        if let Exp::Soac(Soac::Map { lam, arrays, .. } | Soac::Fused { pre: lam, arrays, .. }) = &mut stm.exp
        {
            elements_again(program, lam, arrays, parts);
        }
        for scope in stm.exp.bodies_mut() {
            let inner = std::mem::take(&mut scope.body.stms);
            scope.body.stms = read_again(program, inner, parts);
        }
        out.push(stm);
    }
    out
}

/// An operation takes other columns elementwise instead of those that go.
fn elements_again<'r>(
    program: &mut Program,
    lam: &mut Lam,
    arrays: &mut Vec<Atom>,
    parts: &mut IdMap<Var, Part<'r>>,
) {
    let mut k = 0;
    while k < arrays.len() {
        let Some(part) = arrays[k].var().and_then(|v| parts.get(&v)).cloned() else {
            k += 1;
            continue;
        };
        arrays.remove(k);
        let param = lam.params.remove(k);
        let mut from = Vec::new();
        for v in &part.from {
            let p = fresh_like(program, param);
            program.vars[p].ty = after(program, *v, 1);
            lam.params.push(p);
            arrays.push((*v).into());
            from.push(p);
        }
        let made = make(program, param, Part { from, ..part }, parts);
        lam.body.stms.splice(0..0, made);
    }
}

/// What makes a variable that was read from a column: the statements if it is an element, else it is noted.
fn make<'r>(program: &mut Program, v: Var, part: Part<'r>, parts: &mut IdMap<Var, Part<'r>>) -> Vec<Stm> {
    if program.vars[v].ty.scalar().is_none() {
        parts.insert(v, part);
        return Vec::new();
    }
    let elements = part.recipe.elements.iter().filter_map(|a| a.var());
    let mut subst: Subst = elements.zip(part.from.iter().map(|v| Atom::Var(*v))).collect();
    let mut stms = copy_stms(program, &part.recipe.stms, &mut subst);
    let result = substitute_atom(part.recipe.element, &subst);
    stms.push(Stm { pat: vec![v], exp: Exp::Atom(result) });
    stms
}

/// The type of what is left after this many indices.
fn after(program: &Program, v: Var, indices: usize) -> Type {
    let ty = &program.vars[v].ty;
    ty.peel(indices).unwrap_or(ty).clone()
}

fn drop_columns(stm: &mut Stm, recipes: &[Recipe]) {
    let Exp::Loop(Loop { body, collect, .. }) = &mut stm.exp else { return };
    let stays: Vec<bool> = stm.pat.iter().map(|v| recipes.iter().all(|r| r.column != *v)).collect();
    *collect -= stays.iter().filter(|s| !**s).count();
    let mut flags = stays.iter();
    stm.pat.retain(|_| *flags.next().unwrap_or(&true));
    let mut flags = stays.iter();
    body.result.retain(|_| *flags.next().unwrap_or(&true));
}
