//! Inlining of calls to functions that are not recursive.
//!
//! Callees first, so that each body is copied in its final form. Guarantees: variables stay unique (copies are renamed);
//! functions that can reach themselves are called as before; so are calls where the result would exceed
//! [`Ctx::inline_limit`] or the nesting limit of the checker, and functions whose copies would exceed [`Ctx::copies_limit`]: a chain
//! of functions that each call the one before twice is not written out. Functions stay in the program; see
//! [`crate::drop_unused_functions`]. Cost: linear in the size of the result.

use crate::{Ctx, size};
use pullback_base::index::{IdMap, IdSet};
use pullback_core::check::MAX_DEPTH;
use pullback_core::metrics::body_metrics;
use pullback_core::rename::copy_applied;
use pullback_core::traverse::{called_functions, for_each_stm, leads_to};
use pullback_core::{Atom, Body, Exp, FunId, Lam, Program, Stm};

/// Callees this small are inlined whatever the size of the caller: the call itself is as long.
const SMALL: usize = 4;

/// Runs the pass.
pub fn inline(program: &mut Program, ctx: &Ctx) {
    let order = callees_first(program);
    let sites = call_sites(program);
    let mut ready: IdMap<FunId, Callee> = IdMap::new();
    for id in order {
        let mut body = std::mem::take(&mut program.funs[id].body);
        let mut inliner = Inliner { program, ready: &ready, budget: ctx.inline_limit, used: size(&body) };
        inliner.body(&mut body, 1);
        if !leads_to(program, &body, id) {
            let metrics = body_metrics(&body);
            let more = sites.get(&id).map_or(0, |n| n - 1);
            if metrics.statements <= SMALL || more.saturating_mul(metrics.statements) <= ctx.copies_limit {
                let lam = Lam { params: program.funs[id].params.clone(), body: body.clone() };
                ready.insert(id, Callee { lam, size: metrics.statements, depth: metrics.depth });
            }
        }
        program.funs[id].body = body;
    }
}

/// How often functions are called.
fn call_sites(program: &Program) -> IdMap<FunId, usize> {
    let mut sites = IdMap::new();
    for fun in program.funs.iter() {
        for_each_stm(&fun.body, &mut |stm| {
            if let Exp::Call(f, _) = &stm.exp {
                *sites.entry(*f).or_default() += 1;
            }
        });
    }
    sites
}

struct Callee {
    lam: Lam,
    size: usize,
    depth: usize,
}

struct Inliner<'a> {
    program: &'a mut Program,
    ready: &'a IdMap<FunId, Callee>,
    budget: usize,
    used: usize,
}

impl Inliner<'_> {
    fn body(&mut self, body: &mut Body, depth: usize) {
        let mut out = Vec::with_capacity(body.stms.len());
        for mut stm in std::mem::take(&mut body.stms) {
            for scope in stm.exp.bodies_mut() {
                self.body(scope.body, depth + 1);
            }
            match &stm.exp {
                Exp::Call(f, args) if self.fits(*f, depth) => {
                    let callee = &self.ready[f];
                    let copy = copy_applied(self.program, &callee.lam, args, &IdMap::new());
                    self.used += callee.size;
                    out.extend(copy.stms);
                    let results = stm.pat.into_iter().zip(copy.result);
                    out.extend(results.map(|(v, a): (_, Atom)| Stm { pat: vec![v], exp: Exp::Atom(a) }));
                }
                _ => out.push(stm),
            }
        }
        body.stms = out;
    }
    fn fits(&self, f: FunId, depth: usize) -> bool {
        self.ready.get(&f).is_some_and(|callee| {
            (callee.size <= SMALL || self.used + callee.size <= self.budget)
                && depth + callee.depth <= MAX_DEPTH / 2
        })
    }
}

/// Functions so that callees come before callers; of a cycle, in any order.
fn callees_first(program: &Program) -> Vec<FunId> {
    let mut order = Vec::new();
    let mut seen = IdSet::new();
    for root in program.funs.ids() {
        // An explicit stack: chains of calls may be long.
        let mut work = vec![(root, false)];
        while let Some((f, done)) = work.pop() {
            if done {
                order.push(f);
            } else if seen.insert(f) {
                work.push((f, true));
                work.extend(called_functions(&program.funs[f].body).into_iter().map(|g| (g, false)));
            }
        }
    }
    order
}
