//! Fusion: array operations of the same width that feed one another, or read the same arrays, become one.
//!
//! *Vertical*: a `map` whose arrays another operation takes elementwise moves into it; where anybody else needs its
//! arrays they become further results. The other operation is a `map`, a `reduce` or a `scan` (the last two become
//! [`Soac::Fused`], see `docs/decisions/0008-fusion.md`), or `plus` of arrays. *Horizontal*: two operations that
//! share an argument and do not depend on each other run side by side.
//!
//! Of several reductions of the same numbers by the same operator one is left. A map does not run beside a reduction, scan or histogram that it only
//! shares an argument with, if a later operation takes its arrays: it moves there first. (Beside another map it may: both can move later.)
//!
//! Nothing is computed twice: a producer is moved, never copied, so the number of steps does not rise. Two statements
//! meet at the place of the first if what the second reads is known there; else at that of the second, unless a statement
//! between them needs the first or may write an array in place (it would have to copy what is read later).
//!
//! Effects: a producer does not add to accumulators; of two operations side by side at most one does, and it does not
//! pass another statement that does, so every accumulator gets its terms in the order of before, and values stay the
//! same bit for bit. Errors of elements may come in another order.
//!
//! Runs after differentiation, whose rules are about the parts. Source: Henriksen et al., "Futhark", PLDI 2017, section
//! 4 (horizontal and vertical fusion); the representation is that of its `redomap` and `scanomap`.

use crate::Ctx;
use crate::effects::{accumulates, is_silent};
use pullback_base::index::{IdMap, IdSet};
use pullback_core::rename::{Subst, fresh_like, substitute_body};
use pullback_core::traverse::{for_each_stm, free_vars_exp, free_vars_lam};
use pullback_core::{Atom, Body, Exp, FusedForm, Lam, Origin, Program, Soac, Stm, Type, Var, VarInfo};
use pullback_prim::{Op, Prim};
use std::cell::OnceCell;

/// How many earlier operations are considered as partners of one.
const WINDOW: usize = 24;

/// Runs the pass. Cost: the size of the program times its nesting depth, and for each array operation the number of
/// statements between it and its partner.
pub fn fuse(program: &mut Program, _ctx: &Ctx) {
    let ids: Vec<_> = program.funs.ids().collect();
    for id in ids {
        let mut body = std::mem::take(&mut program.funs[id].body);
        fuse_in(program, &mut body);
        program.funs[id].body = body;
    }
}

fn fuse_in(program: &mut Program, body: &mut Body) {
    let stms = std::mem::take(&mut body.stms);
    let mut fuser =
        Fuser { program, stms, facts: OnceCell::new(), uses: OnceCell::new(), result: &body.result };
    fuser.run();
    body.stms = fuser.stms;
    let mut same = Subst::new();
    for stm in &mut body.stms {
        crate::merge::merge_equal(stm, &mut same);
    }
    if !same.is_empty() {
        substitute_body(body, &same);
    }
    for stm in &mut body.stms {
        for scope in stm.exp.bodies_mut() {
            fuse_in(program, scope.body);
        }
    }
}

struct Fuser<'a> {
    program: &'a mut Program,
    stms: Vec<Stm>,
    /// Of each statement, once two of them may be partners.
    facts: OnceCell<Vec<Facts>>,
    /// How many statements mention a variable, and whether the result does; known from the first join on.
    uses: OnceCell<IdMap<Var, usize>>,
    result: &'a [Atom],
}

/// What has to be known about a statement.
struct Facts {
    /// What it mentions.
    free: IdSet<Var>,
    /// What it mentions other than as an argument taken elementwise, if that is less.
    inner: Option<IdSet<Var>>,
    /// Whether it may write an array in place.
    writes: bool,
    accumulates: bool,
}

impl Facts {
    fn of(program: &Program, stm: &Stm) -> Facts {
        let inner = match &stm.exp {
            Exp::Soac(Soac::Map { width, lam, arrays: _ }) => {
                let mut inner = free_vars_lam(lam);
                inner.extend(width.var());
                Some(inner)
            }
            Exp::Soac(Soac::Reduce { width, lam, neutral, .. } | Soac::Scan { width, lam, neutral, .. }) => {
                let mut inner = free_vars_lam(lam);
                inner.extend(width.var());
                inner.extend(neutral.iter().filter_map(|a| a.var()));
                Some(inner)
            }
            Exp::Soac(Soac::Fused { width, pre, lam, neutral, .. }) => {
                let mut inner = free_vars_lam(lam);
                inner.extend(free_vars_lam(pre));
                inner.extend(width.var());
                inner.extend(neutral.iter().filter_map(|a| a.var()));
                Some(inner)
            }
            _ => None,
        };
        let free = match &inner {
            None => free_vars_exp(&stm.exp),
            Some(inner) => {
                let mut free = inner.clone();
                stm.exp.for_each_atom(|a| free.extend(a.var()));
                free
            }
        };
        Facts { free, inner, writes: writes(&stm.exp), accumulates: accumulates(program, &stm.exp) }
    }
    fn inner(&self) -> &IdSet<Var> {
        self.inner.as_ref().unwrap_or(&self.free)
    }
    /// Of the statement that two operations became. What their functions mention stays, and so does what they do; their arguments are its own.
    fn of_both(first: &Facts, second: &Facts, stm: &Stm) -> Facts {
        let mut inner = first.inner().clone();
        inner.extend(second.inner().iter().copied());
        let mut free = inner.clone();
        stm.exp.for_each_atom(|a| free.extend(a.var()));
        let (writes, accumulates) = (first.writes || second.writes, first.accumulates || second.accumulates);
        Facts { free, inner: Some(inner), writes, accumulates }
    }
}

/// Whether the statement may write an array in place.
pub(crate) fn writes(exp: &Exp) -> bool {
    let direct = |exp: &Exp| {
        matches!(
            exp,
            Exp::Update(..)
                | Exp::UpdateSlice(..)
                | Exp::WithAcc(..)
                | Exp::Call(..)
                | Exp::Soac(Soac::Scatter { .. } | Soac::Hist { .. })
        )
    };
    let mut found = direct(exp);
    for scope in exp.bodies() {
        for_each_stm(scope.body, &mut |s| found |= direct(&s.exp));
    }
    found
}

/// How two operations may meet.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Vertical,
    Horizontal,
}

impl Fuser<'_> {
    fn facts(&self) -> &[Facts] {
        self.facts.get_or_init(|| self.stms.iter().map(|s| Facts::of(self.program, s)).collect())
    }
    fn run(&mut self) {
        let mut j = 0;
        while j < self.stms.len() {
            if matches!(self.stms[j].exp, Exp::Plus(..)) {
                if let Some(at) = self.plus(j) {
                    j = at;
                    continue;
                }
            } else if let Some((i, way, at)) = self.partner(j) {
                j = self.join(i, j, way, at);
                continue;
            }
            j += 1;
        }
    }

    /// The nearest earlier operation that this one can be fused with, how, and at whose place.
    fn partner(&self, j: usize) -> Option<(usize, Way, usize)> {
        let (width, arrays) = operation(&self.stms[j].exp)?;
        let mut left = WINDOW;
        for i in (0..j).rev() {
            let Some((other, other_arrays)) = operation(&self.stms[i].exp) else { continue };
            left -= 1;
            if other == width {
                let produced = arrays.iter().any(|a| a.var().is_some_and(|v| self.stms[i].pat.contains(&v)));
                let shared = arrays.iter().any(|a| other_arrays.contains(a));
                let way = match (produced, shared) {
                    (true, _) => Some(Way::Vertical),
                    (false, true) => Some(Way::Horizontal),
                    (false, false) => None,
                };
                if let Some(way) = way
                    && self.compatible(i, j, way)
                    && !(way == Way::Horizontal && form_of(&self.stms[i].exp).is_some() && self.has_taker(j))
                    && let Some(at) = self.place(i, j)
                {
                    return Some((i, way, at));
                }
            }
            if left == 0 {
                return None;
            }
        }
        None
    }

    /// Whether this map can move into a later operation that takes its arrays: that one comes to its turn with what the map shares with others.
    fn has_taker(&self, j: usize) -> bool {
        let Exp::Soac(Soac::Map { width, .. }) = &self.stms[j].exp else { return false };
        let takes = |k: usize| {
            let Some((other, arrays)) = operation(&self.stms[k].exp) else { return false };
            other == *width && arrays.iter().any(|a| a.var().is_some_and(|v| self.stms[j].pat.contains(&v)))
        };
        let last = self.stms.len().min(j + 1 + WINDOW);
        let taker = (j + 1..last).find(|k| takes(*k));
        taker.is_some_and(|k| self.compatible(j, k, Way::Vertical) && self.place(j, k).is_some())
    }

    fn compatible(&self, i: usize, j: usize, way: Way) -> bool {
        let (first, second) = (&self.facts()[i], &self.facts()[j]);
        let form = |k: usize| form_of(&self.stms[k].exp);
        match way {
            Way::Vertical => {
                form(i).is_none()
                    && !first.accumulates
                    && self.stms[i].pat.iter().all(|v| !second.inner().contains(v))
            }
            Way::Horizontal => {
                let mixed = matches!(
                    (form(i), form(j)),
                    (Some(FusedForm::Reduce { .. }), Some(FusedForm::Scan))
                        | (Some(FusedForm::Scan), Some(FusedForm::Reduce { .. }))
                );
                let both_accumulate = first.accumulates && second.accumulates;
                !mixed && !both_accumulate && self.stms[i].pat.iter().all(|v| !second.free.contains(v))
            }
        }
    }

    /// Where the two statements can meet.
    fn place(&self, i: usize, j: usize) -> Option<usize> {
        let between = i + 1..j;
        let (first, second) = (&self.facts()[i], &self.facts()[j]);
        let effects = between.clone().any(|b| self.facts()[b].accumulates);
        let early = between.clone().all(|b| self.stms[b].pat.iter().all(|v| !second.free.contains(v)));
        if early && !(second.accumulates && effects) {
            return Some(i);
        }
        let late = between.clone().all(|b| {
            let between = &self.facts()[b];
            !between.writes && self.stms[i].pat.iter().all(|v| !between.free.contains(v))
        });
        (late && !(first.accumulates && effects)).then_some(j)
    }

    /// Fuses statements `i` and `j` at the place of one of them, which is returned.
    fn join(&mut self, i: usize, j: usize, way: Way, at: usize) -> usize {
        let uses = self.uses();
        let (of_first, of_second) = (&self.facts()[i], &self.facts()[j]);
        let used_elsewhere = |v: &Var| {
            let here = usize::from(of_first.free.contains(v)) + usize::from(of_second.free.contains(v));
            uses.get(v).is_some_and(|n| *n > here)
        };
        let needed: Vec<bool> = self.stms[i].pat.iter().map(used_elsewhere).collect();
        let second = self.stms.remove(j);
        let first = self.stms.remove(i);
        let (Some(first), Some(second)) = (self.parts(first), self.parts(second)) else {
            unreachable!("both are array operations")
        };
        let fused = match way {
            Way::Vertical => first.into(second, &needed),
            Way::Horizontal => first.beside(second),
        };
        let stm = fused.statement();
        let at = if at == j { j - 1 } else { i };
        if let Some(facts) = self.facts.get_mut() {
            let (second, first) = (facts.remove(j), facts.remove(i));
            let new = Facts::of_both(&first, &second, &stm);
            mentioned(self.uses.get_mut(), &new, &[&first, &second]);
            facts.insert(at, new);
        }
        self.stms.insert(at, stm);
        at
    }
    fn uses(&self) -> &IdMap<Var, usize> {
        self.uses.get_or_init(|| {
            let mut uses = IdMap::new();
            let mentions = self.facts().iter().flat_map(|f| f.free.iter().copied());
            for v in mentions.chain(self.result.iter().filter_map(|a| a.var())) {
                *uses.entry(v).or_insert(0) += 1;
            }
            uses
        })
    }

    /// `plus` of two arrays becomes a map where that can be fused with what made one of them, or with a map that takes the sum. Of rows it is `plus` again, which
    /// comes to its turn in the body of the map.
    fn plus(&mut self, j: usize) -> Option<usize> {
        let Exp::Plus(a, b) = self.stms[j].exp else { return None };
        let Type::Array(elem) = self.program.atom_type(a) else { return None };
        let elem = Type::clone(&elem);
        if elem.scalar().is_some_and(|s| !s.is_float()) {
            return None; // the first of the two
        }
        let made_by_map = |a: Atom| {
            let made = self.stms[..j].iter().rev().find(|s| s.pat.iter().any(|v| Atom::Var(*v) == a))?;
            match &made.exp {
                Exp::Soac(Soac::Map { width, .. }) => Some(*width),
                _ => None,
            }
        };
        let sum = Atom::Var(self.stms[j].pat[0]);
        let taker = (j + 1..self.stms.len()).find(|&k| self.facts()[k].free.contains(&self.stms[j].pat[0]));
        let taker = taker
            .filter(|&k| matches!(operation(&self.stms[k].exp), Some((_, arrays)) if arrays.contains(&sum)));
        let taken = || operation(&self.stms[taker?].exp).map(|(width, _)| width);
        let width = made_by_map(a).or_else(|| made_by_map(b)).or_else(taken)?;
        let everywhere = |a: Atom| {
            let made = self.stms[..j].iter().rev().find(|s| s.pat.iter().any(|v| Atom::Var(*v) == a))?;
            match &made.exp {
                Exp::Replicate(shape, x) if shape[..] == [width] => Some(*x),
                _ => None,
            }
        };
        let mut lam = Lam { params: Vec::new(), body: Body::default() };
        let mut arrays = Vec::new();
        let mut operands = Vec::new();
        for (operand, constant) in [(a, everywhere(a)), (b, everywhere(b))] {
            operands.push(constant.unwrap_or_else(|| {
                let p = fresh(self.program, elem.clone(), "x");
                lam.params.push(p);
                arrays.push(operand);
                p.into()
            }));
        }
        let sum = fresh(self.program, elem.clone(), "t");
        let exp = match elem.scalar() {
            Some(scalar) => Exp::Prim(Prim::Op(Op::Add, scalar), operands),
            None => Exp::Plus(operands[0], operands[1]),
        };
        lam.body = Body { stms: vec![Stm { pat: vec![sum], exp }], result: vec![sum.into()] };
        let stm = Stm { pat: self.stms[j].pat.clone(), exp: Exp::Soac(Soac::Map { width, lam, arrays }) };
        let plain = self.replace(j, stm);
        match self.partner(j) {
            Some((i, Way::Vertical, at)) => Some(self.join(i, j, Way::Vertical, at)),
            _ => match taker.map(|k| (k, self.partner(k))) {
                // (What comes before the taker is looked at again.)
                Some((k, Some((i, Way::Vertical, at)))) if i == j => {
                    Some(self.join(j, k, Way::Vertical, at).min(j))
                }
                _ => {
                    self.replace(j, plain);
                    None
                }
            },
        }
    }
    /// Puts another statement in the place of one, which is returned.
    fn replace(&mut self, j: usize, stm: Stm) -> Stm {
        let new = Facts::of(self.program, &stm);
        if let Some(facts) = self.facts.get_mut() {
            mentioned(self.uses.get_mut(), &new, &[&facts[j]]);
            facts[j] = new;
        }
        std::mem::replace(&mut self.stms[j], stm)
    }

    fn parts(&mut self, stm: Stm) -> Option<Parts> {
        let Exp::Soac(soac) = stm.exp else { return None };
        let pat = stm.pat;
        Some(match soac {
            Soac::Map { width, lam, arrays } => {
                Parts { width, arrays, pre: lam, combined: 0, pat, fold: None }
            }
            Soac::Reduce { width, lam, neutral, arrays, commutative } => {
                let form = FusedForm::Reduce { commutative };
                self.folded(pat, width, arrays, Fold { form, lam, neutral })
            }
            Soac::Scan { width, lam, neutral, arrays } => {
                self.folded(pat, width, arrays, Fold { form: FusedForm::Scan, lam, neutral })
            }
            Soac::Fused { form, width, pre, lam, neutral, arrays } => {
                let combined = neutral.len();
                Parts { width, arrays, pre, combined, pat, fold: Some(Fold { form, lam, neutral }) }
            }
            Soac::Hist { .. } | Soac::Scatter { .. } => return None,
        })
    }

    /// A reduction or scan of the elements as they are.
    fn folded(&mut self, pat: Vec<Var>, width: Atom, arrays: Vec<Atom>, fold: Fold) -> Parts {
        let combined = fold.neutral.len();
        let params: Vec<Var> =
            fold.lam.params.iter().skip(combined).map(|p| fresh_like(self.program, *p)).collect();
        let result = params.iter().map(|p| Atom::Var(*p)).collect();
        let pre = Lam { params, body: Body { stms: Vec::new(), result } };
        Parts { width, arrays, pre, combined, pat, fold: Some(fold) }
    }
}

/// A statement with these facts is there, and those with others are gone.
fn mentioned(uses: Option<&mut IdMap<Var, usize>>, there: &Facts, gone: &[&Facts]) {
    let Some(uses) = uses else { return };
    for v in &there.free {
        *uses.entry(*v).or_insert(0) += 1;
    }
    for v in gone.iter().flat_map(|f| f.free.iter()) {
        if let Some(n) = uses.get_mut(v) {
            *n -= 1;
        }
    }
}

/// Width and arguments of an operation that can be fused.
fn operation(exp: &Exp) -> Option<(Atom, &[Atom])> {
    match exp {
        Exp::Soac(Soac::Map { width, arrays, .. }) => Some((*width, arrays)),
        Exp::Soac(
            Soac::Reduce { width, lam, arrays, .. }
            | Soac::Scan { width, lam, arrays, .. }
            | Soac::Fused { width, lam, arrays, .. },
        ) if is_silent(&lam.body) => Some((*width, arrays)),
        _ => None,
    }
}

fn form_of(exp: &Exp) -> Option<FusedForm> {
    match exp {
        Exp::Soac(Soac::Reduce { commutative, .. }) => Some(FusedForm::Reduce { commutative: *commutative }),
        Exp::Soac(Soac::Scan { .. }) => Some(FusedForm::Scan),
        Exp::Soac(Soac::Fused { form, .. }) => Some(*form),
        _ => None,
    }
}

/// An operation taken apart: elements go through `pre`; its first `combined` results are combined by `fold`, if there is
/// one, the others are returned as arrays.
struct Parts {
    width: Atom,
    arrays: Vec<Atom>,
    pre: Lam,
    combined: usize,
    pat: Vec<Var>,
    fold: Option<Fold>,
}

struct Fold {
    form: FusedForm,
    lam: Lam,
    neutral: Vec<Atom>,
}

impl Parts {
    /// This map, moved into the operation that takes its arrays.
    fn into(self, mut user: Parts, needed: &[bool]) -> Parts {
        let mut subst = Subst::new();
        let (mut params, mut arrays) = (self.pre.params, self.arrays);
        for (p, a) in user.pre.params.iter().zip(&user.arrays) {
            match self.pat.iter().position(|v| Atom::Var(*v) == *a) {
                Some(k) => {
                    subst.insert(*p, self.pre.body.result[k]);
                }
                None => take(&mut params, &mut arrays, &mut subst, *p, *a),
            }
        }
        substitute_body(&mut user.pre.body, &subst);
        let mut body = self.pre.body;
        body.stms.append(&mut user.pre.body.stms);
        let mut result = user.pre.body.result;
        let mut pat = user.pat;
        for ((v, a), needed) in self.pat.iter().zip(&body.result).zip(needed) {
            if *needed {
                pat.push(*v);
                result.push(*a);
            }
        }
        body.result = result;
        Parts { pat, arrays, pre: Lam { params, body }, ..user }
    }

    /// Both operations in one.
    fn beside(self, mut other: Parts) -> Parts {
        let mut subst = Subst::new();
        let (mut params, mut arrays) = (self.pre.params, self.arrays);
        for (p, a) in other.pre.params.iter().zip(&other.arrays) {
            take(&mut params, &mut arrays, &mut subst, *p, *a);
        }
        substitute_body(&mut other.pre.body, &subst);
        let mut stms = self.pre.body.stms;
        stms.append(&mut other.pre.body.stms);
        let side_by_side = |mut xs: Vec<Atom>, mut ys: Vec<Atom>| {
            let (more_xs, more_ys) = (xs.split_off(self.combined), ys.split_off(other.combined));
            [xs, ys, more_xs, more_ys].concat()
        };
        let result = side_by_side(self.pre.body.result, other.pre.body.result);
        let vars = |vs: Vec<Var>| vs.into_iter().map(Atom::Var).collect();
        let pat = side_by_side(vars(self.pat), vars(other.pat)).into_iter().filter_map(Atom::var).collect();
        let fold = match (self.fold, other.fold) {
            (Some(x), Some(y)) => Some(x.beside(y)),
            (x, y) => x.or(y),
        };
        let pre = Lam { params, body: Body { stms, result } };
        Parts { width: self.width, arrays, pre, combined: self.combined + other.combined, pat, fold }
    }

    fn statement(self) -> Stm {
        let Parts { width, arrays, pre, combined: _, pat, fold } = self;
        let soac = match fold {
            None => Soac::Map { width, lam: pre, arrays },
            Some(Fold { form, lam, neutral }) => Soac::Fused { form, width, pre, lam, neutral, arrays },
        };
        Stm { pat, exp: Exp::Soac(soac) }
    }
}

impl Fold {
    /// One operator on both groups of components.
    fn beside(self, other: Fold) -> Fold {
        let (k, m) = (self.neutral.len(), other.neutral.len());
        let (x, y) = (self.lam, other.lam);
        let params = [&x.params[..k], &y.params[..m], &x.params[k..], &y.params[m..]].concat();
        let body = Body {
            stms: x.body.stms.into_iter().chain(y.body.stms).collect(),
            result: [x.body.result, y.body.result].concat(),
        };
        let form = match (self.form, other.form) {
            (FusedForm::Reduce { commutative: a }, FusedForm::Reduce { commutative: b }) => {
                FusedForm::Reduce { commutative: a && b }
            }
            (form, _) => form,
        };
        Fold { form, lam: Lam { params, body }, neutral: [self.neutral, other.neutral].concat() }
    }
}

/// Adds an argument with its parameter; an argument that is there already gives its parameter.
fn take(params: &mut Vec<Var>, arrays: &mut Vec<Atom>, subst: &mut Subst, p: Var, a: Atom) {
    match arrays.iter().position(|b| *b == a) {
        Some(k) => {
            subst.insert(p, params[k].into());
        }
        None => {
            params.push(p);
            arrays.push(a);
        }
    }
}

fn fresh(program: &mut Program, ty: Type, hint: &str) -> Var {
    program.vars.push(VarInfo { ty, hint: hint.into(), origin: Origin::default() })
}
