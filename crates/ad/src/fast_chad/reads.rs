//! Which array parameters a function only reads.
//!
//! Such a parameter, or a part of it, is indexed, sliced, mapped over, copied, or handed to functions that only read it. It is not
//! updated in place, returned, carried by a loop or stored in a value: the cotangents of those are whole arrays, which
//! cost nothing when they are returned and their size when they are added to an accumulator. Optimistic over
//! recursion: a parameter is taken to be only read until some function says otherwise.
//!
//! And which of them a branch chooses among others, in the function or in one that it calls. If the others depend on what is differentiated, so does
//! the choice, and it needs accumulators of all: also of a parameter that does not depend on it.

use super::chosen::named_by;
use super::reverse::alias;
use pullback_base::index::IdMap;
use pullback_core::traverse::{for_each_stm, reachable_functions};
use pullback_core::{Atom, Body, Exp, FunId, Program, Soac, Stm, Var};
use std::collections::BTreeSet;

/// The answers so far.
#[derive(Default)]
pub(crate) struct Reads {
    known: IdMap<FunId, Vec<bool>>,
    /// For each parameter whether it is chosen among others.
    chosen: IdMap<FunId, Vec<bool>>,
}

impl Reads {
    /// The answers for the functions that were asked about, and all that they call.
    pub(crate) fn known(&self) -> &IdMap<FunId, Vec<bool>> {
        &self.known
    }
    /// For each parameter whether it is an array that the function only reads and chooses among others.
    pub(crate) fn chosen(&mut self, program: &Program, f: FunId) -> Vec<bool> {
        let reads = self.of(program, f).to_vec();
        reads.into_iter().zip(&self.chosen[&f]).map(|(reads, chosen)| reads && *chosen).collect()
    }
    /// For each parameter whether it is an array that the function only reads.
    pub(crate) fn of(&mut self, program: &Program, f: FunId) -> &[bool] {
        if !self.known.contains_key(&f) {
            let all = reachable_functions(program, [f]);
            for &g in &all {
                let arrays = program.funs[g].params.iter().map(|&p| program.vars[p].ty.rank() > 0);
                let arrays: Vec<bool> = arrays.collect();
                self.chosen.entry(g).or_insert(vec![false; arrays.len()]);
                self.known.entry(g).or_insert(arrays);
            }
            while all.iter().filter(|&&g| self.visit(program, g)).count() > 0 {}
        }
        self.known.get(&f).map_or(&[], Vec::as_slice)
    }

    /// The arrays that functions called in a body choose among others, with the results of those calls.
    pub(crate) fn asked(&mut self, program: &Program, body: &Body) -> Vec<(Var, Vec<Var>)> {
        let mut asked = Vec::new();
        for_each_stm(body, &mut |stm| {
            let Exp::Call(f, args) = &stm.exp else { return };
            let chosen = args.iter().zip(self.chosen(program, *f)).filter(|(_, chosen)| *chosen);
            let arrays =
                chosen.filter_map(|(a, _)| a.var()).filter(|v| program.is_active(&program.vars[*v].ty));
            asked.extend(arrays.map(|v| (v, stm.pat.clone())));
        });
        asked
    }

    /// Looks at a function again; says whether that is news.
    fn visit(&mut self, program: &Program, f: FunId) -> bool {
        let fun = &program.funs[f];
        let mut walk = Walk {
            program,
            known: &self.known,
            chosen_in: &self.chosen,
            aliases: IdMap::new(),
            escaped: BTreeSet::new(),
            chosen: BTreeSet::new(),
            after: Vec::new(),
            names: IdMap::new(),
        };
        for (k, &p) in fun.params.iter().enumerate() {
            walk.names.insert(p, k);
            walk.alias(p, BTreeSet::from([k]));
        }
        walk.body(&fun.body);
        walk.escape_all(&fun.body.result);
        let Walk { escaped, chosen, .. } = walk;
        let (Some(known), Some(before)) = (self.known.get_mut(&f), self.chosen.get_mut(&f)) else {
            return false;
        };
        let mut news = false;
        for k in escaped {
            news |= std::mem::take(&mut known[k]);
        }
        for k in chosen {
            news |= !std::mem::replace(&mut before[k], true);
        }
        news
    }
}

struct Walk<'a> {
    program: &'a Program,
    /// Of each body around the present statement the statements that follow, and the results.
    after: Vec<(&'a [Stm], &'a [Atom])>,
    /// The parameters of which variables are names or parts, whichever way the program takes.
    names: IdMap<Var, usize>,
    known: &'a IdMap<FunId, Vec<bool>>,
    chosen_in: &'a IdMap<FunId, Vec<bool>>,
    /// The parameters that a variable may be (a part of).
    aliases: IdMap<Var, BTreeSet<usize>>,
    escaped: BTreeSet<usize>,
    chosen: BTreeSet<usize>,
}

impl<'a> Walk<'a> {
    fn params(&self, a: Atom) -> BTreeSet<usize> {
        a.var().and_then(|v| self.aliases.get(&v)).cloned().unwrap_or_default()
    }
    /// Only arrays matter: an element that is no array is a value of its own.
    fn alias(&mut self, v: Var, params: BTreeSet<usize>) {
        if self.program.vars[v].ty.rank() > 0 {
            self.aliases.insert(v, params);
        }
    }
    fn escape(&mut self, a: Atom) {
        let params = self.params(a);
        self.escaped.extend(params);
    }
    fn escape_all(&mut self, atoms: &[Atom]) {
        atoms.iter().for_each(|&a| self.escape(a));
    }
    fn body(&mut self, body: &'a Body) {
        for (at, stm) in body.stms.iter().enumerate() {
            self.after.push((&body.stms[at + 1..], &body.result));
            self.stm(stm);
            self.after.pop();
        }
    }
    /// An array is overwritten: of a parameter that is used later a copy is.
    fn overwrite(&mut self, a: Atom) {
        let given = self.params(a).into_iter();
        let is = |a: Atom, k: usize| a.var().and_then(|v| self.names.get(&v)) == Some(&k);
        let later = |k: usize| self.after.iter().any(|(stms, result)| is_used(stms, result, &|a| is(a, k)));
        let given = given.filter(|&k| !later(k));
        self.escaped.extend(given.collect::<Vec<_>>());
    }
    fn stm(&mut self, stm: &'a Stm) {
        let scopes = stm.exp.bodies();
        scopes.iter().for_each(|scope| self.body(scope.body));
        match &stm.exp {
            // What a branch gives is a name in the arms that give names, and read as the branch's result is.
            Exp::If(..) | Exp::Match(..) => {
                for (k, &y) in stm.pat.iter().enumerate() {
                    let named =
                        named_by(stm, k).map(|arms| arms.into_iter().map(|arm| arm.of.into()).collect());
                    let arms: Vec<Atom> =
                        named.unwrap_or_else(|| scopes.iter().map(|s| s.body.result[k]).collect());
                    let params: Vec<BTreeSet<usize>> = arms.into_iter().map(|a| self.params(a)).collect();
                    let all: BTreeSet<usize> = params.iter().flatten().copied().collect();
                    if params.iter().any(|one| *one != all) {
                        self.chosen.extend(&all);
                    }
                    self.alias(y, all);
                }
                return;
            }
            Exp::Call(f, args) => {
                for (k, &a) in args.iter().enumerate() {
                    if !self.known.get(f).is_some_and(|reads| reads[k]) {
                        self.escape(a);
                    }
                    if self.chosen_in.get(f).is_some_and(|chosen| chosen[k]) {
                        let params = self.params(a);
                        self.chosen.extend(params);
                    }
                }
            }
            Exp::Update(a, ..) | Exp::UpdateSlice(a, ..) | Exp::Soac(Soac::Scatter { dst: a, .. }) => {
                self.overwrite(*a)
            }
            Exp::Soac(Soac::Hist { dst, .. }) => dst.iter().for_each(|a| self.overwrite(*a)),
            Exp::Loop(l) => l.params.iter().for_each(|(_, init)| self.escape(*init)),
            Exp::Tuple(atoms) | Exp::Inject(_, _, atoms) | Exp::WithAcc(atoms, _) => self.escape_all(atoms),
            exp => {
                if let (Some((a, _)), [y]) = (alias(exp), &stm.pat[..]) {
                    let params = self.params(a);
                    self.alias(*y, params);
                    let name = a.var().and_then(|v| self.names.get(&v)).copied();
                    if let Some(k) = name.filter(|_| self.program.vars[*y].ty.rank() > 0) {
                        self.names.insert(*y, k);
                    }
                }
            }
        }
        for scope in scopes {
            self.escape_all(&scope.body.result);
        }
    }
}

/// Whether statements or results use an array whichever way the program takes: a write to it before them makes a copy.
pub(super) fn is_used(stms: &[Stm], result: &[Atom], is: &dyn Fn(Atom) -> bool) -> bool {
    let used = |stm: &Stm| match &stm.exp {
        Exp::If(..) | Exp::Match(..) => {
            stm.exp.bodies().iter().all(|s| is_used(&s.body.stms, &s.body.result, is))
        }
        exp => exp.atoms().into_iter().any(is),
    };
    result.iter().any(|a| is(*a)) || stms.iter().any(used)
}
