//! Which array parameters a function only reads.
//!
//! Such a parameter, or a part of it, is indexed, sliced, mapped over, or handed to functions that only read it. It is not
//! updated in place, returned, carried by a loop or stored in a value: the cotangents of those are whole arrays, which
//! cost nothing when they are returned and their size when they are added to an accumulator. Optimistic over
//! recursion: a parameter is taken to be only read until some function says otherwise.

use super::chosen::named_by;
use super::reverse::alias;
use pullback_base::index::IdMap;
use pullback_core::traverse::reachable_functions;
use pullback_core::{Atom, Body, Exp, FunId, Program, Soac, Stm, Var};
use std::collections::BTreeSet;

/// The answers so far.
#[derive(Default)]
pub(crate) struct Reads {
    known: IdMap<FunId, Vec<bool>>,
}

impl Reads {
    /// The answers for the functions that were asked about, and all that they call.
    pub(crate) fn known(&self) -> &IdMap<FunId, Vec<bool>> {
        &self.known
    }
    /// For each parameter whether it is an array that the function only reads.
    pub(crate) fn of(&mut self, program: &Program, f: FunId) -> &[bool] {
        if !self.known.contains_key(&f) {
            let all = reachable_functions(program, [f]);
            for &g in &all {
                let arrays = program.funs[g].params.iter().map(|&p| program.vars[p].ty.rank() > 0);
                let arrays = arrays.collect();
                self.known.entry(g).or_insert(arrays);
            }
            while all.iter().filter(|&&g| self.visit(program, g)).count() > 0 {}
        }
        self.known.get(&f).map_or(&[], Vec::as_slice)
    }

    /// Looks at a function again; says whether that is news.
    fn visit(&mut self, program: &Program, f: FunId) -> bool {
        let fun = &program.funs[f];
        let mut walk = Walk { program, known: &self.known, aliases: IdMap::new(), escaped: BTreeSet::new() };
        for (k, &p) in fun.params.iter().enumerate() {
            walk.alias(p, BTreeSet::from([k]));
        }
        walk.body(&fun.body);
        walk.escape_all(&fun.body.result);
        let escaped = walk.escaped;
        let Some(known) = self.known.get_mut(&f) else { return false };
        let mut news = false;
        for k in escaped {
            news |= std::mem::take(&mut known[k]);
        }
        news
    }
}

struct Walk<'a> {
    program: &'a Program,
    known: &'a IdMap<FunId, Vec<bool>>,
    /// The parameters that a variable may be (a part of).
    aliases: IdMap<Var, BTreeSet<usize>>,
    escaped: BTreeSet<usize>,
}

impl Walk<'_> {
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
    fn body(&mut self, body: &Body) {
        body.stms.iter().for_each(|stm| self.stm(stm));
    }
    fn stm(&mut self, stm: &Stm) {
        let scopes = stm.exp.bodies();
        scopes.iter().for_each(|scope| self.body(scope.body));
        match &stm.exp {
            // A choice between names, some of them of parts of parameters, is a name, or else the whole array is a result.
            Exp::If(..) | Exp::Match(..) => {
                for (k, &y) in stm.pat.iter().enumerate() {
                    if let Some(arms) = named_by(stm, k) {
                        let params = arms.iter().flat_map(|arm| self.params(arm.of.into()));
                        let params = params.collect();
                        self.alias(y, params);
                        continue;
                    }
                    let arms: Vec<Atom> = scopes.iter().map(|s| s.body.result[k]).collect();
                    let params: Vec<BTreeSet<usize>> = arms.iter().map(|&a| self.params(a)).collect();
                    if params.iter().any(BTreeSet::is_empty) {
                        self.escape_all(&arms);
                    } else {
                        self.alias(y, params.into_iter().flatten().collect());
                    }
                }
                return;
            }
            Exp::Call(f, args) => {
                for (k, &a) in args.iter().enumerate() {
                    if !self.known.get(f).is_some_and(|reads| reads[k]) {
                        self.escape(a);
                    }
                }
            }
            Exp::Update(a, ..) | Exp::UpdateSlice(a, ..) | Exp::Soac(Soac::Scatter { dst: a, .. }) => {
                self.escape(*a)
            }
            Exp::Soac(Soac::Hist { dst, .. }) => self.escape_all(dst),
            Exp::Loop(l) => l.params.iter().for_each(|(_, init)| self.escape(*init)),
            Exp::Tuple(atoms) | Exp::Inject(_, _, atoms) | Exp::WithAcc(atoms, _) => self.escape_all(atoms),
            exp => {
                if let (Some((a, _)), [y]) = (alias(exp), &stm.pat[..]) {
                    let params = self.params(a);
                    self.alias(*y, params);
                }
            }
        }
        for scope in scopes {
            self.escape_all(&scope.body.result);
        }
    }
}
