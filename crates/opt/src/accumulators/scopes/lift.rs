//! What does not add leaves a scope, and whole values that are added become part of the first value.
//!
//! Accumulators are not read in their scope, so statements that have nothing to do with one may be run before it. A
//! whole value that is known before the scope is then added to the first value there, and replaces it if that is zero:
//! one array of zeros and one addition less, never more steps.

use super::{Scope, facts::Facts};
use crate::effects::mentions;
use pullback_base::index::IdSet;
use pullback_core::{Atom, Exp, Program, Stm, Var, VarInfo};

impl Scope {
    /// `pat`: what the scope binds; what leaves it is bound in front of it.
    pub(super) fn lift(
        &mut self,
        program: &mut Program,
        pat: &mut Vec<Var>,
        facts: &Facts,
        out: &mut Vec<Stm>,
    ) {
        let mut stuck: IdSet<Var> = self.params.iter().copied().collect();
        let mut inside = Vec::new();
        for stm in std::mem::take(&mut self.body.stms) {
            if mentions(&stm.exp, &|v| stuck.contains(&v)) {
                stuck.extend(&stm.pat);
                inside.push(stm);
            } else {
                out.push(stm);
            }
        }
        let others = pat.split_off(self.inits.len());
        let known = |a: &Atom| a.var().is_none_or(|v| !stuck.contains(&v));
        for (v, a) in others.into_iter().zip(std::mem::take(&mut self.body.result)) {
            if known(&a) {
                out.push(Stm { pat: vec![v], exp: Exp::Atom(a) });
            } else {
                pat.push(v);
                self.body.result.push(a);
            }
        }
        for (acc, init) in self.params.iter().zip(&mut self.inits) {
            for stm in &mut inside {
                let Exp::AccAdd(Atom::Var(a), ix, value) = &stm.exp else { continue };
                if a != acc || !ix.is_empty() || !known(value) {
                    continue;
                }
                let value = *value;
                stm.exp = Exp::Tuple(Vec::new());
                if facts.is_zero(*init) {
                    *init = value;
                } else {
                    let info = VarInfo { ty: program.atom_type(*init), ..program.vars[*acc].clone() };
                    let sum = program.vars.push(info);
                    out.push(Stm { pat: vec![sum], exp: Exp::Plus(*init, value) });
                    *init = sum.into();
                }
            }
        }
        self.body.stms = inside;
    }
}
