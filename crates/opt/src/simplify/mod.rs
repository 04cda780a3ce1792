//! Copy propagation, constant folding, exact identities, known shapes.
//!
//! One walk carries what stands for each variable and the definitions in scope, and is repeated until nothing changes (at
//! most eight times). Rules look at one statement and the definitions of its operands; each is exact for every
//! value of its operands: of floats only `x*1`, `x/1`, `x + -0`, `x - 0`, double negation, selections by a constant, and
//! strong products with a constant in front; folding uses the evaluation of the primitive table, which the interpreter uses too, and leaves what gives
//! NaN (whose payload is not fixed) or an error. Statements that became unused stay for `prune`.
//!
//! Guarantees: variables stay unique; a statement keeps at least one result. Only where [`Ctx::derivatives_done`] holds,
//! `#[store]`, custom rules and `stop_gradient` are replaced by what they contain.

mod array;
mod elements;
mod facts;
mod scalar;

use crate::Ctx;
use crate::effects::is_silent;
use crate::hoist::holds_little;
use pullback_base::index::{IdMap, IdTable};
use pullback_core::{
    Atom, Body, Builder, Exp, Lam, Loop, LoopForm, Mark, Program, Soac, Stm, Type, Var, VarInfo,
};
use pullback_prim::{Op, Prim, Scalar};
use std::cell::LazyCell;
use std::collections::VecDeque;

/// The most walks over a function.
const ROUNDS: usize = 8;

/// Runs the pass. Cost: a few times the size of the program (times a logarithm).
pub fn simplify(program: &mut Program, ctx: &Ctx) {
    let ids: Vec<_> = program.funs.ids().collect();
    for id in ids {
        for _ in 0..ROUNDS {
            let mut body = std::mem::take(&mut program.funs[id].body);
            let mut pass = Simplifier {
                program,
                ctx,
                subst: IdTable::new(),
                defs: Definitions::default(),
                widths: IdMap::new(),
                sized: IdMap::new(),
                below: IdMap::new(),
                stacked: IdMap::new(),
                order: IdTable::new(),
                bound: 0,
                changed: false,
            };
            let params = pass.program.funs[id].params.clone();
            pass.note_order(params);
            pass.body(&mut body);
            let changed = pass.changed;
            program.funs[id].body = body;
            if !changed {
                break;
            }
        }
    }
}

struct Simplifier<'p> {
    program: &'p mut Program,
    ctx: &'p Ctx,
    /// What stands for variables whose statement is gone.
    subst: IdTable<Var, Atom>,
    /// Expressions without bodies by the variable they define. Names are unique, so no entry is ever wrong.
    defs: Definitions,
    /// Sizes of the arrays that array operations return, from the outermost on, as far as they are known.
    widths: IdMap<Var, Vec<Atom>>,
    /// The variables that hold outer sizes of arrays.
    sized: IdMap<Var, Var>,
    /// Variables that are known to be at least zero and less than the atom.
    below: IdMap<Var, Atom>,
    /// Arrays of as many numbers as a loop has iterations, all of them the same: iterations and number.
    stacked: IdMap<Var, (Atom, Atom)>,
    /// The order in which variables are bound.
    order: IdTable<Var, u32>,
    /// How many variables are in the order.
    bound: u32,
    changed: bool,
}

/// Expressions by the variables that they define.
#[derive(Default)]
struct Definitions {
    places: IdTable<Var, u32>,
    exps: Vec<Exp>,
}

impl Definitions {
    fn get(&self, v: Var) -> Option<&Exp> {
        self.places.get(v).map(|place| &self.exps[*place as usize])
    }
    fn insert(&mut self, v: Var, exp: Exp) {
        self.places.insert(v, self.exps.len() as u32);
        self.exps.push(exp);
    }
}

/// Whether a rule may look at the definition: of primitives at those only.
fn is_asked_for(exp: &Exp) -> bool {
    match exp {
        Exp::Prim(Prim::Op(Op::Sub, s), _) => *s == Scalar::I64,
        Exp::Prim(Prim::Op(op, _), _) => matches!(op, Op::Neg | Op::Not | Op::Add | Op::Abs | Op::Eq),
        Exp::Prim(Prim::Convert(..), _) => false,
        _ => true,
    }
}

/// What becomes of a statement.
enum Step {
    /// It stays as it is.
    Keep,
    /// It stays, with this expression.
    Become(Exp),
    /// It goes; these atoms stand for its variables.
    Alias(Vec<Atom>),
    /// These statements come in its place, then its variables are these atoms.
    Splice(Vec<Stm>, Vec<Atom>),
}

impl Simplifier<'_> {
    fn def(&self, a: Atom) -> Option<&Exp> {
        self.defs.get(a.var()?)
    }
    fn atom(&self, a: Atom) -> Atom {
        a.replaced(|v| self.subst.get(v).copied())
    }

    fn body(&mut self, body: &mut Body) {
        let mut queue: VecDeque<Stm> = std::mem::take(&mut body.stms).into();
        let mut out = Vec::with_capacity(queue.len());
        let mut equal = Vec::new();
        while let Some(Stm { mut pat, mut exp }) = queue.pop_front() {
            self.note_order(pat.iter().copied());
            exp.map_atoms(|a| self.atom(a));
            equal.extend(self.asserted(&exp));
            let mut step = self.step(&mut pat, &mut exp, &mut out);
            if let Step::Become(new) = step {
                (exp, step) = (new, Step::Keep);
            }
            match step {
                Step::Keep | Step::Become(_) => {
                    self.note_below(&exp);
                    for scope in exp.bodies_mut() {
                        self.note_order(scope.binds.iter());
                        self.body(scope.body);
                    }
                    self.note_width(&pat, &exp);
                    if let (Exp::Size(Atom::Var(array), 0), [v]) = (&exp, &pat[..]) {
                        self.sized.entry(*array).or_insert(*v);
                    }
                    if let [v] = pat[..]
                        && exp.bodies().is_empty()
                        && is_asked_for(&exp)
                    {
                        self.defs.insert(v, exp.clone());
                    }
                    out.push(Stm { pat, exp });
                }
                Step::Alias(atoms) => {
                    self.changed = true;
                    self.subst.extend(pat.into_iter().zip(atoms));
                }
                Step::Splice(stms, atoms) => {
                    self.changed = true;
                    let aliases = pat.into_iter().zip(atoms).rev();
                    for (v, a) in aliases {
                        queue.push_front(Stm { pat: vec![v], exp: Exp::Atom(a) });
                    }
                    stms.into_iter().rev().for_each(|stm| queue.push_front(stm));
                }
            }
        }
        body.stms = out;
        for a in &mut body.result {
            *a = self.atom(*a);
        }
        // What was asserted in here need not hold outside.
        for v in equal {
            self.subst.remove(v);
        }
    }

    /// One rule for the statement, if one applies. Statements put into `out` come before it. Nearly all statements stay: only the
    /// others are moved.
    fn step(&mut self, pat: &mut Vec<Var>, exp: &mut Exp, out: &mut Vec<Stm>) -> Step {
        match exp {
            Exp::Atom(a) => Step::Alias(vec![*a]),
            Exp::Prim(prim, args) => match self.scalar(*prim, args) {
                Some(a) => Step::Alias(vec![a]),
                None => self.weakened(*prim, args).map_or(Step::Keep, Step::Become),
            },
            Exp::Proj(t, i) => match self.def(*t) {
                Some(Exp::Tuple(items)) if *i < items.len() => Step::Alias(vec![items[*i]]),
                _ => Step::Keep,
            },
            Exp::Assert(Atom::Const(c), ..) if c.is_true() => {
                self.changed = true;
                Step::Become(Exp::Tuple(Vec::new()))
            }
            Exp::Plus(a, b) => match self.program.atom_type(*a) {
                Type::Scalar(s) if !s.is_float() => Step::Alias(vec![*a]),
                Type::Tuple(ts) if ts.is_empty() => Step::Alias(vec![*a]),
                _ => self.plus(*a, *b),
            },
            Exp::StopGradient(a) if self.ctx.derivatives_done => Step::Alias(vec![*a]),
            Exp::If(..)
            | Exp::Match(..)
            | Exp::Loop(_)
            | Exp::Soac(Soac::Map { .. })
            | Exp::Par(_)
            | Exp::Marked(..)
            | Exp::Custom { .. }
            | Exp::Index(..)
            | Exp::Slice(..)
            | Exp::Size(..)
            | Exp::Rearrange(..)
            | Exp::Reshape { .. }
            | Exp::Concat(_)
            | Exp::Reverse(_)
            | Exp::Rotate(..)
            | Exp::Replicate(..) => {
                let exp = std::mem::replace(exp, Exp::Tuple(Vec::new()));
                self.rewrite(pat, exp, out)
            }
            Exp::Tuple(_)
            | Exp::Inject(..)
            | Exp::Call(..)
            | Exp::ArrayLit(..)
            | Exp::Update(..)
            | Exp::UpdateSlice(..)
            | Exp::Gather(..)
            | Exp::Iota(_)
            | Exp::Soac(
                Soac::Reduce { .. }
                | Soac::Scan { .. }
                | Soac::Fused { .. }
                | Soac::Hist { .. }
                | Soac::Scatter { .. },
            )
            | Exp::WithAcc(..)
            | Exp::AccView(..)
            | Exp::AccAdd(..)
            | Exp::Vjp { .. }
            | Exp::Jvp { .. }
            | Exp::StopGradient(_)
            | Exp::Assert(..)
            | Exp::Check(..) => Step::Keep,
        }
    }

    /// The same for what is taken apart for it.
    fn rewrite(&mut self, pat: &mut Vec<Var>, exp: Exp, out: &mut Vec<Stm>) -> Step {
        match exp {
            Exp::If(Atom::Const(c), then, otherwise) => {
                let body = if c.is_true() { then } else { otherwise };
                Step::Splice(body.stms, body.result)
            }
            Exp::If(c, then, otherwise) => self.if_(pat, c, then, otherwise),
            Exp::Match(a, arms) => self.match_(pat, a, arms),
            Exp::Loop(l) => self.loop_(pat, l),
            Exp::Soac(Soac::Map { width, lam, arrays }) => self.map(pat, width, lam, arrays, out),
            Exp::Par(mut bodies) if bodies.len() == 1 => match bodies.pop() {
                Some(body) => Step::Splice(body.stms, body.result),
                None => Step::Become(Exp::Par(bodies)),
            },
            // `#[recompute]` stays around code: `cse` must not undo what the mark asked for.
            Exp::Marked(mark, body)
                if self.ctx.derivatives_done && (mark == Mark::Store || body.stms.is_empty()) =>
            {
                Step::Splice(body.stms, body.result)
            }
            Exp::Custom { primal, rule: _, args, tape: _ } if self.ctx.derivatives_done => {
                self.apply(primal, &args)
            }
            Exp::Par(_) | Exp::Marked(..) | Exp::Custom { .. } => Step::Become(exp),
            exp => self.array(exp),
        }
    }

    /// A lambda of a statement that goes away, applied.
    fn apply(&mut self, lam: Lam, args: &[Atom]) -> Step {
        self.subst.extend(lam.params.iter().copied().zip(args.iter().copied()));
        Step::Splice(lam.body.stms, lam.body.result)
    }

    fn match_(&mut self, pat: &mut Vec<Var>, a: Atom, mut arms: Vec<Lam>) -> Step {
        if let Some(Exp::Inject(_, k, fields)) = self.def(a)
            && *k < arms.len()
        {
            let (k, fields) = (*k, fields.clone());
            return self.apply(arms.swap_remove(k), &fields);
        }
        match self.choice(pat, arms.iter_mut().map(|arm| &mut arm.body).collect()) {
            Some(atoms) => Step::Alias(atoms),
            None => Step::Become(Exp::Match(a, arms)),
        }
    }

    fn if_(&mut self, pat: &mut Vec<Var>, c: Atom, mut then: Body, mut otherwise: Body) -> Step {
        if let ([r], true) = (&pat[..], self.ctx.derivatives_done)
            && let Some(select) = self.selection(*r, c, &then, &otherwise)
        {
            self.changed = true;
            return Step::Become(select);
        }
        if let [r] = pat[..]
            && let Some(stms) = self.connective(r, c, &mut then, &mut otherwise)
        {
            return Step::Splice(stms, Vec::new());
        }
        match self.choice(pat, vec![&mut then, &mut otherwise]) {
            Some(atoms) => Step::Alias(atoms),
            None => Step::Become(Exp::If(c, then, otherwise)),
        }
    }

    /// A conditional that only chooses between two scalars known before.
    fn selection(&self, r: Var, c: Atom, then: &Body, otherwise: &Body) -> Option<Exp> {
        let s = self.program.vars[r].ty.scalar()?;
        let empty = then.stms.is_empty() && otherwise.stms.is_empty();
        let args = vec![c, self.atom(*then.result.first()?), self.atom(*otherwise.result.first()?)];
        empty.then_some(Exp::Prim(Prim::Op(Op::Select, s), args))
    }

    /// A truth value of which one arm is known: `if c then true else x` is `c || x`. The other arm is computed in any case
    /// then: it must be little work, and must not stop the program. Derivatives need not remember which way such a branch went,
    /// and loops know the condition for what it is.
    fn connective(&mut self, r: Var, c: Atom, then: &mut Body, otherwise: &mut Body) -> Option<Vec<Stm>> {
        (self.program.vars[r].ty.scalar()? == Scalar::Bool).then_some(())?;
        let known = |body: &Body| match body.result[..] {
            [Atom::Const(c)] if body.stms.is_empty() => Some(c.is_true()),
            _ => None,
        };
        let (op, negated, other) = match (known(then), known(otherwise)) {
            (Some(true), _) => (Op::Or, false, otherwise),
            (Some(false), _) => (Op::And, true, otherwise),
            (None, Some(false)) => (Op::And, false, then),
            (None, Some(true)) => (Op::Or, true, then),
            (None, None) => return None,
        };
        holds_little(&other.stms).then_some(())?;
        let x = *other.result.first()?;
        let mut b = Builder::new(self.program);
        b.origin = b.program.vars[r].origin.clone();
        std::mem::take(&mut other.stms).into_iter().for_each(|stm| b.emit_stm(stm));
        let c = if negated { b.op1(Op::Not, c) } else { c };
        b.emit_to(vec![r], Exp::Prim(Prim::Op(op, Scalar::Bool), vec![c, x]));
        Some(b.finish())
    }

    /// Results that are the same atom in all branches, or the same as another result in each of them. The atoms for the
    /// pattern, if the whole statement can go.
    fn choice(&mut self, pat: &mut Vec<Var>, mut bodies: Vec<&mut Body>) -> Option<Vec<Atom>> {
        let column = |k: usize| bodies.iter().map(|b| self.atom(b.result[k])).collect::<Vec<_>>();
        let columns: Vec<Vec<Atom>> = (0..pat.len()).map(column).collect();
        let inside = LazyCell::new(|| Inside::of(bodies.iter().flat_map(|b| &b.stms)));
        let outer = |a: Atom| a.var().is_none_or(|v| !inside.contains(v));
        let found: Vec<Option<Atom>> = (columns.iter().enumerate())
            .map(|(k, column)| match column.first() {
                Some(a) if column.len() > 1 && column.iter().all(|b| b == a) && outer(*a) => Some(*a),
                _ => columns[..k].iter().position(|c| c == column).map(|j| pat[j].into()),
            })
            .collect();
        let silent = bodies.iter().all(|b| is_silent(b));
        let Some(keep) = self.take_known(pat, &found, silent) else {
            return Some(found.into_iter().flatten().collect());
        };
        for body in &mut bodies {
            retain(&mut body.result, &keep);
        }
        None
    }

    /// Takes results whose value is known out of a pattern; returns which positions stay. `None`: all are known and
    /// nothing else happens in the statement, so it can go.
    fn take_known(&mut self, pat: &mut Vec<Var>, known: &[Option<Atom>], silent: bool) -> Option<Vec<bool>> {
        let mut keep: Vec<bool> = known.iter().map(Option::is_none).collect();
        if !keep.contains(&true) {
            if silent {
                return None;
            }
            // A statement binds something. The first result stays, and is known all the same.
            keep[0] = true;
        }
        for ((v, a), stays) in pat.iter().zip(known).zip(&keep) {
            let Some(a) = a else { continue };
            // (The one that stays may be known as an element only.)
            if !stays || self.program.atom_type(*a) == self.program.vars[*v].ty {
                self.subst.insert(*v, *a);
                self.changed |= !stays;
            }
        }
        retain(pat, &keep);
        Some(keep)
    }

    /// State that keeps its first value; loops without iterations.
    fn loop_(&mut self, pat: &mut Vec<Var>, mut l: Loop) -> Step {
        if let LoopForm::For { i: _, n: Atom::Const(n) } = &l.form
            && n.as_i64() <= 0
            && n.scalar().is_signed()
            && l.collect == 0
        {
            return Step::Alias(l.params.iter().map(|p| p.1).collect());
        }
        let next = |k: usize| self.atom(l.body.result[k]);
        let fixed = |(k, (v, init)): (usize, &(Var, Atom))| {
            (next(k) == Atom::Var(*v) || next(k) == *init).then_some(*init)
        };
        let mut known: Vec<Option<Atom>> = l.params.iter().enumerate().map(fixed).collect();
        let state = known.len();
        for k in 0..l.collect {
            let same = (0..k).find(|j| next(state + j) == next(state + k));
            known.push(same.map(|j| pat[state + j].into()));
        }
        known.resize(pat.len(), None);
        let silent = is_silent(&l.body) && matches!(l.form, LoopForm::For { .. });
        for ((v, init), known) in l.params.iter().zip(&known) {
            if known.is_some() {
                self.subst.insert(*v, *init);
            }
        }
        let Some(keep) = self.take_known(pat, &known, silent) else {
            return Step::Alias(known.into_iter().flatten().collect());
        };
        l.collect = keep.iter().skip(state).take(l.collect).filter(|k| **k).count();
        retain(&mut l.params, &keep);
        retain(&mut l.body.result, &keep);
        self.note_stacked(pat, &l);
        Step::Become(Exp::Loop(l))
    }

    /// Arguments that are known elementwise; results that are arguments or do not vary.
    fn map(
        &mut self,
        pat: &mut Vec<Var>,
        width: Atom,
        mut lam: Lam,
        mut arrays: Vec<Atom>,
        out: &mut Vec<Stm>,
    ) -> Step {
        self.elements(width, &mut lam, &mut arrays);
        let mut keep = vec![true; arrays.len()];
        for k in 0..arrays.len() {
            let first = arrays.iter().position(|a| *a == arrays[k]).unwrap_or(k);
            let known = match self.def(arrays[k]) {
                Some(Exp::Replicate(shape, v)) if shape[..] == [width] => Some(*v),
                _ if first < k => Some(lam.params[first].into()),
                _ => None,
            };
            if let Some(a) = known {
                let a = self.atom(a);
                self.subst.insert(lam.params[k], a);
                self.changed = true;
                keep[k] = false;
            }
        }
        retain(&mut arrays, &keep);
        retain(&mut lam.params, &keep);

        let inside = Inside::of(lam.body.stms.iter());
        let mut replicas: Vec<(usize, Atom)> = Vec::new();
        let mut known = Vec::new();
        let results: Vec<Atom> = lam.body.result.iter().map(|a| self.atom(*a)).collect();
        for (k, a) in results.iter().enumerate() {
            let a = *a;
            let param = lam.params.iter().position(|p| Atom::Var(*p) == a);
            known.push(match (a, param) {
                (_, Some(j)) => Some(arrays[j]),
                (Atom::Var(v), None) if inside.contains(v) => {
                    results[..k].iter().position(|b| *b == a).map(|j| pat[j].into())
                }
                (_, None) => {
                    replicas.push((k, a));
                    Some(a)
                }
            });
        }
        let silent = is_silent(&lam.body);
        let all = known.iter().all(Option::is_some);
        if all && !silent {
            // Nothing to gain for the result that has to stay.
            replicas.retain(|(k, _)| *k != 0);
        }
        for (k, a) in replicas {
            let info = self.program.vars[pat[k]].clone();
            let copy = self.program.vars.push(VarInfo { ..info });
            out.push(Stm { pat: vec![copy], exp: Exp::Replicate(vec![width], a) });
            self.defs.insert(copy, Exp::Replicate(vec![width], a));
            known[k] = Some(copy.into());
        }
        let Some(keep) = self.take_known(pat, &known, silent) else {
            return Step::Alias(known.into_iter().flatten().collect());
        };
        retain(&mut lam.body.result, &keep);
        Step::Become(Exp::Soac(Soac::Map { width, lam, arrays }))
    }
}

/// What statements bind, not in bodies inside.
struct Inside(Vec<Var>);

impl Inside {
    fn of<'a>(stms: impl Iterator<Item = &'a Stm>) -> Inside {
        let mut vars: Vec<Var> = stms.flat_map(|s| s.pat.iter().copied()).collect();
        vars.sort_unstable();
        Inside(vars)
    }
    fn contains(&self, v: Var) -> bool {
        self.0.binary_search(&v).is_ok()
    }
}

/// Removes the items whose flag is off; items without a flag stay.
fn retain<T>(items: &mut Vec<T>, keep: &[bool]) {
    let mut flags = keep.iter().copied().chain(std::iter::repeat(true));
    items.retain(|_| flags.next().unwrap_or(true));
}
