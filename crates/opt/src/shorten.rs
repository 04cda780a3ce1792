//! Reductions move up to where the arrays that they reduce have been made, so that these live for a shorter time.
//!
//! A statement moves if it only computes its results, and an array that nothing else uses ends there, which has a larger rank than each result. Reshapes and
//! the like between the two move with it. It does not move past what may stop the program with an assertion, or adds to an accumulator.
//! Steps and values stay as they are.
//!
//! Fusion needs this: it runs a map where an earlier map of the same width runs, so that its result waits for its reader.
//!
//! Source: classic (scheduling for fewer live values: Goodman and Hsu, ICS 1988), of arrays.

use crate::Ctx;
use crate::effects::{accumulates, is_silent_stm};
use pullback_base::index::{IdMap, IdSet};
use pullback_core::traverse::free_vars_exp;
use pullback_core::{Body, Exp, Program, Soac, Stm, Var};

/// Runs the pass. Cost: the size of the program times its nesting depth.
pub fn shorten(program: &mut Program, _ctx: &Ctx) {
    let ids: Vec<_> = program.funs.ids().collect();
    for id in ids {
        let mut body = std::mem::take(&mut program.funs[id].body);
        shorten_in(program, &mut body);
        program.funs[id].body = body;
    }
}

fn shorten_in(program: &Program, body: &mut Body) {
    if body.stms.iter().filter(|s| is_long(&s.exp)).count() > 1 {
        let keys = Lives::of(program, body).keys();
        let mut stms: Vec<_> = keys.into_iter().zip(std::mem::take(&mut body.stms)).collect();
        stms.sort_by_key(|(key, _)| *key);
        body.stms = stms.into_iter().map(|(_, s)| s).collect();
    }
    for stm in &mut body.stms {
        for scope in stm.exp.bodies_mut() {
            shorten_in(program, scope.body);
        }
    }
}

/// Whether an array that waits for it waits for long.
fn is_long(exp: &Exp) -> bool {
    matches!(exp, Exp::Soac(_) | Exp::Loop(_))
}

/// What the statements of a body define and use.
struct Lives<'p> {
    program: &'p Program,
    stms: &'p [Stm],
    free: Vec<IdSet<Var>>,
    defined: IdMap<Var, usize>,
    /// How many statements use a variable; a result is one more.
    uses: IdMap<Var, usize>,
    /// How many statements before this one do more than compute their results.
    loud: Vec<usize>,
}

impl<'p> Lives<'p> {
    fn of(program: &'p Program, body: &'p Body) -> Self {
        let free: Vec<IdSet<Var>> = body.stms.iter().map(|s| free_vars_exp(&s.exp)).collect();
        let (mut defined, mut uses) = (IdMap::new(), IdMap::new());
        for (k, s) in body.stms.iter().enumerate() {
            defined.extend(s.pat.iter().map(|v| (*v, k)));
        }
        for v in free.iter().flatten().copied().chain(body.result.iter().filter_map(|a| a.var())) {
            *uses.entry(v).or_default() += 1;
        }
        let mut loud = vec![0];
        for s in &body.stms {
            loud.push(loud[loud.len() - 1] + usize::from(!is_silent_stm(s)));
        }
        Lives { program, stms: &body.stms, free, defined, uses, loud }
    }

    /// Where each statement goes: after the statement with the first number, in the order of the second ones.
    fn keys(&self) -> Vec<(usize, usize)> {
        let mut keys: Vec<(usize, usize)> = (0..self.stms.len()).map(|k| (k, k)).collect();
        for k in 0..self.stms.len() {
            let Some(chain) = self.ends(k) else { continue };
            let of_views = |v: &Var| self.defined.get(v).is_none_or(|d| !chain.contains(d));
            let needed =
                chain.iter().chain([&k]).flat_map(|s| self.free[*s].iter().copied()).filter(of_views);
            let after = needed.filter_map(|v| self.defined.get(&v)).map(|d| keys[*d].0).max();
            let Some(after) = after else { continue };
            if self.loud[after + 1] == self.loud[k] {
                for s in chain.into_iter().chain([k]) {
                    keys[s].0 = after;
                }
            }
        }
        keys
    }

    /// The views between the statement and the arrays that it reduces, if one of these ends there.
    fn ends(&self, k: usize) -> Option<Vec<usize>> {
        let stm = &self.stms[k];
        let Exp::Soac(soac) = &stm.exp else { return None };
        if !matches!(soac, Soac::Map { .. } | Soac::Reduce { .. } | Soac::Fused { .. })
            || self.loud[k] != self.loud[k + 1]
            || accumulates(self.program, &stm.exp)
        {
            return None;
        }
        let rank = |v: &Var| self.program.vars[*v].ty.rank();
        let largest = stm.pat.iter().map(rank).max()?;
        let (mut chain, mut is_end) = (Vec::new(), false);
        let mut open: Vec<Var> = self.free[k].iter().copied().collect();
        while let Some(v) = open.pop() {
            let Some(d) = self.defined.get(&v) else { continue };
            if self.uses.get(&v) != Some(&1) {
                continue;
            }
            if matches!(self.stms[*d].exp, Exp::Reshape { .. } | Exp::Rearrange(..)) {
                chain.push(*d);
                open.extend(self.free[*d].iter().copied());
            } else {
                is_end |= rank(&v) > largest;
            }
        }
        is_end.then_some(chain)
    }
}
