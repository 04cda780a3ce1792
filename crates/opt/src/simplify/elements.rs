//! Arrays that the function of a `map` reads at its own counter only become arguments of the `map`.
//!
//! `map n [iota n] (i) { .. a[i] .. }` is `map n [iota n, a] (i, x) { .. x .. }` where `a` is known to have `n` elements and
//! is mentioned in no other way (but for its size). One step less per element; and under reverse mode the cotangent of `a` is a result of
//! the reverse `map`, without accumulator.

use super::Simplifier;
use pullback_base::index::{IdMap, IdSet};
use pullback_core::traverse::bound_vars;
use pullback_core::{Atom, Body, Exp, Lam, Type, Var, VarInfo};

impl Simplifier<'_> {
    pub(super) fn elements(&mut self, width: Atom, lam: &mut Lam, arrays: &mut Vec<Atom>) {
        let counts = |a: &Atom| matches!(self.def(*a), Some(Exp::Iota(n)) if *n == width);
        let Some(counter) = lam.params.iter().zip(arrays.iter()).find(|(_, a)| counts(a)).map(|(p, _)| *p)
        else {
            return;
        };
        if !self.reads_at(counter, &lam.body) {
            return;
        }
        let mut uses = IdMap::new();
        self.reads(counter, &lam.body, &mut uses);
        let bound: IdSet<Var> = bound_vars(&lam.body);
        let found: Vec<Var> = uses
            .into_iter()
            .filter(|(v, only)| *only && !bound.contains(v) && !lam.params.contains(v))
            .map(|(v, _)| v)
            .filter(|v| self.has_size(*v, width))
            .collect();
        for v in found {
            let Type::Array(elem) = self.program.vars[v].ty.clone() else { continue };
            let info = VarInfo { ty: Type::clone(&elem), ..self.program.vars[v].clone() };
            let x = self.program.vars.push(info);
            self.note_order([x]);
            lam.params.push(x);
            arrays.push(v.into());
            self.read_element(counter, v, x, &mut lam.body);
            self.changed = true;
        }
    }

    /// Whether an array is read at the counter.
    fn reads_at(&self, counter: Var, body: &Body) -> bool {
        body.stms.iter().any(|stm| {
            let here = match &stm.exp {
                Exp::Index(_, ix) => ix.first().map(|i| self.atom(*i)) == Some(counter.into()),
                _ => false,
            };
            here || stm.exp.bodies().into_iter().any(|scope| self.reads_at(counter, scope.body))
        })
    }

    /// For each array that is mentioned: whether that is only as `array[counter, ..]`.
    fn reads(&self, counter: Var, body: &Body, uses: &mut IdMap<Var, bool>) {
        let other = |a: Atom, uses: &mut IdMap<Var, bool>| {
            if let Atom::Var(v) = self.atom(a)
                && self.program.vars[v].ty.rank() > 0
            {
                uses.insert(v, false);
            }
        };
        for stm in &body.stms {
            match &stm.exp {
                Exp::Index(a, ix) if ix.first().map(|i| self.atom(*i)) == Some(counter.into()) => {
                    if let Atom::Var(v) = self.atom(*a) {
                        uses.entry(v).or_insert(true);
                    }
                }
                // Its size, which a check may ask, is no element of it.
                Exp::Size(..) => {}
                exp => exp.for_each_atom(|a| other(a, uses)),
            }
            for scope in stm.exp.bodies() {
                self.reads(counter, scope.body, uses);
            }
        }
        body.result.iter().for_each(|a| other(*a, uses));
    }

    fn read_element(&self, counter: Var, array: Var, x: Var, body: &mut Body) {
        for stm in &mut body.stms {
            if let Exp::Index(a, ix) = &stm.exp
                && self.atom(*a) == array.into()
                && ix.first().map(|i| self.atom(*i)) == Some(counter.into())
            {
                stm.exp = match &ix[1..] {
                    [] => Exp::Atom(x.into()),
                    rest => Exp::Index(x.into(), rest.to_vec()),
                };
            }
            for scope in stm.exp.bodies_mut() {
                self.read_element(counter, array, x, scope.body);
            }
        }
    }

    /// Whether the outer size of the array is certainly this atom.
    fn has_size(&self, array: Var, n: Atom) -> bool {
        let measured = self.sized.get(&array).map(|size| self.atom((*size).into()));
        measured == Some(n)
            || self.size(array.into(), 0) == Some(n)
            || matches!(self.def(n), Some(Exp::Size(a, 0)) if *a == array.into())
    }
}
