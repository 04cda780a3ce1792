//! Statements that only one branch needs move into it: work that the other branch would do for nothing.
//!
//! A statement moves if it only computes its results, and all that mentions them is one arm of one later `if` or
//! `match` of the same body; chains of such statements move together, and on into the branches inside. A statement that
//! reads an array does not pass one that may write an array in place, which would have to copy. Steps never rise. An error
//! of a value that the branch taken does not use no longer happens (`docs/decisions/0006-errors-of-unused-values.md`).
//!
//! Source: classic (let-floating inwards: Peyton Jones, Partain and Santos, ICFP 1996).

use crate::Ctx;
use crate::effects::accumulates;
use crate::fuse::writes;
use pullback_base::index::{IdMap, IdSet};
use pullback_core::traverse::{free_vars, free_vars_exp};
use pullback_core::{Body, Exp, Program, Stm, Type, Var};

/// Runs the pass. Cost: the size of the program times its nesting depth.
pub fn sink(program: &mut Program, _ctx: &Ctx) {
    let ids: Vec<_> = program.funs.ids().collect();
    for id in ids {
        let mut body = std::mem::take(&mut program.funs[id].body);
        sink_in(program, &mut body);
        program.funs[id].body = body;
    }
}

fn sink_in(program: &Program, body: &mut Body) {
    if body.stms.iter().any(|s| matches!(s.exp, Exp::If(..) | Exp::Match(..))) {
        let stms = std::mem::take(&mut body.stms);
        body.stms = Sink::new(program, stms, body).run();
    }
    for stm in &mut body.stms {
        for scope in stm.exp.bodies_mut() {
            sink_in(program, scope.body);
        }
    }
}

struct Sink<'p> {
    program: &'p Program,
    stms: Vec<Stm>,
    free: Vec<IdSet<Var>>,
    /// The statements that mention a variable; the results of the body are one more.
    users: IdMap<Var, IdSet<usize>>,
    /// What the arms of a conditional mention.
    arms: IdMap<usize, Vec<IdSet<Var>>>,
    /// How many statements before this one may write an array.
    writers: Vec<usize>,
}

impl<'p> Sink<'p> {
    fn new(program: &'p Program, stms: Vec<Stm>, body: &Body) -> Self {
        let free: Vec<IdSet<Var>> = stms.iter().map(|s| free_vars_exp(&s.exp)).collect();
        let mut users: IdMap<Var, IdSet<usize>> = IdMap::new();
        for (k, vars) in free.iter().enumerate() {
            for v in vars {
                users.entry(*v).or_default().insert(k);
            }
        }
        for v in body.result.iter().filter_map(|a| a.var()) {
            users.entry(v).or_default().insert(stms.len());
        }
        let arms = stms.iter().enumerate().filter_map(|(k, s)| match &s.exp {
            Exp::If(..) | Exp::Match(..) => {
                Some((k, s.exp.bodies().iter().map(|scope| free_vars(scope.body)).collect()))
            }
            _ => None,
        });
        let arms = arms.collect();
        let mut writers = vec![0];
        for s in &stms {
            writers.push(writers[writers.len() - 1] + usize::from(writes(&s.exp)));
        }
        Sink { program, stms, free, users, arms, writers }
    }

    fn run(mut self) -> Vec<Stm> {
        // What moves into each arm, last statement first.
        let mut moved: IdMap<(usize, usize), Vec<Stm>> = IdMap::new();
        let mut gone = vec![false; self.stms.len()];
        for i in (0..self.stms.len()).rev() {
            let Some((j, arm)) = self.target(i) else { continue };
            let free = std::mem::take(&mut self.free[i]);
            for v in &free {
                if let Some(users) = self.users.get_mut(v) {
                    users.remove(&i);
                    users.insert(j);
                }
            }
            if let Some(arms) = self.arms.get_mut(&j) {
                arms[arm].extend(free);
            }
            let stm = Stm { pat: self.stms[i].pat.clone(), exp: self.stms[i].exp.clone() };
            moved.entry((j, arm)).or_default().push(stm);
            gone[i] = true;
        }
        for ((j, arm), mut stms) in moved {
            stms.reverse();
            let target = self.stms[j].exp.bodies_mut().into_iter().nth(arm).expect("the arm that was found");
            stms.append(&mut target.body.stms);
            target.body.stms = stms;
        }
        let mut gone = gone.into_iter();
        self.stms.retain(|_| !gone.next().unwrap_or(false));
        self.stms
    }

    /// The conditional and its arm that alone need the statement.
    fn target(&self, i: usize) -> Option<(usize, usize)> {
        let stm = &self.stms[i];
        if !moves(self.program, &stm.exp) {
            return None;
        }
        let mut users = stm.pat.iter().flat_map(|v| self.users.get(v).into_iter().flatten());
        let j = *users.next()?;
        if users.any(|k| *k != j) {
            return None;
        }
        let arms = self.arms.get(&j)?;
        let mut condition = false;
        self.stms[j].exp.for_each_atom(|a| condition |= a.var().is_some_and(|v| stm.pat.contains(&v)));
        let mut taking = (0..arms.len()).filter(|k| stm.pat.iter().any(|v| arms[*k].contains(v)));
        let arm = taking.next()?;
        let reads =
            self.free[i].iter().chain(&stm.pat).any(|v| !matches!(self.program.vars[*v].ty, Type::Scalar(_)));
        let written = self.writers[i + 1] != self.writers[j];
        (!condition && taking.next().is_none() && !(reads && written)).then_some((j, arm))
    }
}

fn moves(program: &Program, exp: &Exp) -> bool {
    let plain = match exp {
        Exp::Assert(..)
        | Exp::Check(..)
        | Exp::Call(..)
        | Exp::AccAdd(..)
        | Exp::AccView(..)
        | Exp::Marked(..) => false,
        Exp::Vjp { .. } | Exp::Jvp { .. } | Exp::Custom { .. } => false,
        _ => exp.bodies().iter().all(|scope| crate::effects::is_silent(scope.body)),
    };
    plain && !accumulates(program, exp)
}
