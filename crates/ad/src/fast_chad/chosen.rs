//! Accumulators for arrays that are only names: of a part of another array, or of one of several.
//!
//! Source: T. Smeding, PhD thesis, section 7.5.1.4 (reuse of scopes), extended to names that depend on branches. Contributions to a name go into the
//! accumulator of what it stands for. Where that is not open yet, it is opened instead of one for the name: whoever made the
//! array pays for its zeros once, and the cotangent that the state of a loop has is taken over.

use super::cotangent::{coerce, split};
use super::desc::{as_hot, optional};
use super::reverse::{Env, Reverse, alias};
use crate::contract::Unsupported;
use pullback_base::index::{IdMap, IdSet};
use pullback_core::rename::Subst;
use pullback_core::traverse::{free_vars, free_vars_exp};
use pullback_core::{Atom, Body, Exp, Lam, Stm, Var, View};
use std::cell::OnceCell;
use std::rc::Rc;

/// What an arm gives: a variable from outside, and the views on the way from that, first to last.
pub(super) struct Named {
    pub(super) of: Var,
    views: Vec<View>,
}

/// A result of a branch.
#[derive(Clone)]
pub(super) struct Merged {
    stm: Rc<Stm>,
    /// The variables from outside that its arms give as this result, as they are.
    arms: Vec<Option<Var>>,
}

/// What names stand for, while that is looked for.
#[derive(Default)]
struct Leaves {
    leaves: Vec<Var>,
    way: Vec<Var>,
    /// The variables that have been looked at: whether they have accumulators, or stand for what nobody has paid for.
    dear: IdMap<Var, bool>,
}

impl Reverse<'_> {
    /// What a statement binds only as names gets the accumulators of what it stands for, where those are open.
    pub(crate) fn derive_names(&mut self, stm: &Stm, env: &mut Env) {
        (0..stm.pat.len()).for_each(|k| self.derive_name(stm, k, env));
    }
    /// The same for one result.
    fn derive_name(&mut self, stm: &Stm, k: usize, env: &mut Env) {
        let y = stm.pat[k];
        if !self.can_alias(y) {
            return;
        }
        if let Exp::If(..) | Exp::Match(..) = &stm.exp {
            return self.derive_chosen(stm, k, env);
        }
        let Some((a, view)) = alias(&stm.exp) else { return };
        let Some(accs) = a.var().and_then(|v| env.accs.get(&v)).cloned() else { return };
        let views = self.viewed(accs, view.as_slice());
        Rc::make_mut(&mut env.accs).insert(y, views);
    }
    /// These names get their accumulators one after the other, each of what it stands for.
    pub(crate) fn derive_way(&mut self, way: &[Var], env: &mut Env) {
        for y in way {
            let Some(stm) = self.names.get(y).cloned() else { continue };
            let k = stm.pat.iter().position(|p| p == y);
            k.into_iter().for_each(|k| self.derive_name(&stm, k, env));
        }
    }

    fn viewed(&mut self, accs: Vec<Atom>, views: &[View]) -> Vec<Atom> {
        views.iter().fold(accs, |accs, view| {
            accs.iter().map(|&acc| self.b.emit(Exp::AccView(acc, view.clone()), "acc")).collect()
        })
    }

    /// A branch that chooses between (parts of) accumulated variables: the same choice between their accumulators.
    fn derive_chosen(&mut self, stm: &Stm, k: usize, env: &mut Env) {
        let y = stm.pat[k];
        if env.accs.contains_key(&y) {
            return;
        }
        let Some(named) = named_by(stm, k) else { return };
        let chosen: Option<Vec<Vec<Atom>>> = named.iter().map(|arm| env.accs.get(&arm.of).cloned()).collect();
        let Some(chosen) = chosen else { return };
        let scopes = stm.exp.bodies();
        let mut lams = Vec::new();
        for ((scope, named), accs) in scopes.iter().zip(named).zip(chosen) {
            let params: Vec<Var> = scope.binds.iter().map(|p| self.b.fresh_like(p)).collect();
            let subst: Subst = scope.binds.iter().zip(&params).map(|(p, q)| (p, (*q).into())).collect();
            let views: Vec<View> = named.views.iter().map(|v| substituted(v, &subst)).collect();
            self.b.open();
            let result = self.viewed(accs, &views);
            lams.push(Lam { params, body: self.b.close(result) });
        }
        let exp = match (&stm.exp, &lams[..]) {
            (Exp::If(z, ..), [x, y]) => Exp::If(*z, x.body.clone(), y.body.clone()),
            (Exp::Match(z, _), _) => Exp::Match(*z, lams),
            _ => return,
        };
        let accs = self.b.emit_all(exp, "acc").into_iter().map(Atom::Var).collect();
        Rc::make_mut(&mut env.accs).insert(y, accs);
    }

    /// Notes the results of a statement that are only names.
    pub(crate) fn note_names(&mut self, stm: &Stm) {
        let named = |k: usize| match &stm.exp {
            Exp::If(..) | Exp::Match(..) => {
                named_by(stm, k).is_some_and(|arms| arms.iter().all(|arm| self.is_active(arm.of.into())))
            }
            exp => alias(exp).is_some_and(|(a, _)| self.is_active(a)),
        };
        let names = (0..stm.pat.len()).filter(|&k| self.can_alias(stm.pat[k]) && named(k));
        let names: Vec<Var> = names.map(|k| stm.pat[k]).collect();
        if !names.is_empty() {
            let stm = Rc::new(stm.clone());
            self.names.extend(names.into_iter().map(|v| (v, stm.clone())));
        }
        if let Exp::If(..) | Exp::Match(..) = &stm.exp {
            let mut kept = None;
            for (k, &y) in stm.pat.iter().enumerate() {
                if !self.can_alias(y) {
                    continue;
                }
                let arms = passed_on(stm, k);
                if arms.iter().any(Option::is_some) {
                    let stm = kept.get_or_insert_with(|| Rc::new(stm.clone())).clone();
                    self.merged.insert(y, Merged { stm, arms });
                }
            }
        }
    }

    /// The cotangents of what may be an array, handed on to it before their turn: where the array gets an accumulator now,
    /// they are its first value, and not to be added to zeros later.
    pub(crate) fn hand_on(&mut self, env: &mut Env, x: Var) {
        let whole = |c: &super::cotangent::Cotangent| !as_hot(&c.desc).0.is_absent();
        let mut done: Vec<Var> = vec![x];
        loop {
            let mut not = IdSet::new();
            let waiting = env.cts.iter().filter(|(y, c)| whole(c) && !done.contains(y)).map(|(y, _)| *y);
            let waiting: Vec<Var> = waiting.filter(|y| self.may_be(*y, x, &mut not)).collect();
            // One to which no other may hand on.
            let behind = self.reached(waiting.iter().flat_map(|y| self.whole_of(*y)).collect());
            let last = waiting.iter().find(|y| !behind.contains(*y));
            let Some(&last) = last else { return };
            self.hand_on_one(env, last);
            done.push(last);
        }
    }
    /// The arrays of which there are cotangents, and what they may be as a whole.
    fn with_cotangents(&self, env: &Env) -> IdSet<Var> {
        self.reached(env.cts.iter().filter(|(_, c)| !c.is_absent()).map(|(y, _)| *y).collect())
    }
    /// These arrays, and what they may be as a whole, by the branches and names of this function.
    fn reached(&self, mut next: Vec<Var>) -> IdSet<Var> {
        let mut seen: IdSet<Var> = next.iter().copied().collect();
        while let Some(y) = next.pop() {
            next.extend(self.whole_of(y).filter(|z| seen.insert(*z)));
        }
        seen
    }
    /// Whether an array may be another as a whole. `not`: arrays that are known not to be.
    fn may_be(&self, y: Var, x: Var, not: &mut IdSet<Var>) -> bool {
        let mut next = vec![y];
        let mut seen = IdSet::new();
        while let Some(y) = next.pop() {
            for z in self.whole_of(y) {
                if z == x {
                    return true;
                }
                if !not.contains(&z) && seen.insert(z) {
                    next.push(z);
                }
            }
        }
        not.extend(seen);
        false
    }
    /// The arrays that one may be at once.
    fn whole_of(&self, y: Var) -> impl Iterator<Item = Var> + '_ {
        let merged = self.merged.get(&y);
        let name = || match self.names.get(&y)?.exp {
            Exp::Atom(a) => a.var(),
            _ => None,
        };
        let name = merged.is_none().then(name).flatten();
        merged.into_iter().flat_map(|m| m.arms.iter().flatten().copied()).chain(name)
    }
    fn hand_on_one(&mut self, env: &mut Env, y: Var) {
        let c = self.take(env, y);
        let Some(Merged { stm, arms }) = self.merged.get(&y).cloned() else {
            // Another name.
            if let Some(Exp::Atom(a)) = self.names.get(&y).map(|s| s.exp.clone()) {
                self.contribute(env, a, c);
            }
            return;
        };
        let mut targets: Vec<Option<Var>> = Vec::new();
        for arm in &arms {
            if !targets.contains(arm) {
                targets.push(*arm);
            }
        }
        let wide = optional(&c.desc);
        let scopes = stm.exp.bodies();
        let mut lams = Vec::new();
        for (scope, arm) in scopes.iter().zip(&arms) {
            let params: Vec<Var> = scope.binds.iter().map(|p| self.b.fresh_like(p)).collect();
            self.b.open();
            let mut result = Vec::new();
            for target in &targets {
                let part = if target == arm { c.clone() } else { super::cotangent::Cotangent::absent() };
                result.extend(coerce(&mut self.b, &part, &wide));
            }
            lams.push(Lam { params, body: self.b.close(result) });
        }
        let exp = match (&stm.exp, &lams[..]) {
            (Exp::If(z, ..), [x, y]) => Exp::If(*z, x.body.clone(), y.body.clone()),
            (Exp::Match(z, _), _) => Exp::Match(*z, lams),
            _ => return self.contribute(env, y.into(), c),
        };
        let out: Vec<Atom> = self.b.emit_all(exp, "x_bar").into_iter().map(Atom::Var).collect();
        let all = vec![wide; targets.len()];
        for (target, part) in targets.into_iter().zip(split(&all, &out)) {
            // What the arm makes waits for its turn.
            self.contribute(env, target.unwrap_or(y).into(), part);
        }
    }

    /// What to open so that a variable gets an accumulator: what it stands for, if that has one, or nobody in this body
    /// has paid for it; else the variable. Also the names on the way, each after what it stands for.
    pub(crate) fn stands_for(&self, env: &Env, v: Var) -> (Vec<Var>, Vec<Var>) {
        let mut found = Leaves::default();
        let dear = self.add_leaves(env, v, &mut found);
        if found.way.is_empty() || !dear { (vec![v], Vec::new()) } else { (found.leaves, found.way) }
    }
    fn add_leaves(&self, env: &Env, v: Var, found: &mut Leaves) -> bool {
        if let Some(dear) = found.dear.get(&v) {
            return *dear;
        }
        let name = self.names.get(&v).filter(|_| self.config.views && !env.accs.contains_key(&v));
        let dear = match name {
            Some(stm) => {
                let of = stands_for_at_once(stm, v);
                let dear = of.into_iter().fold(false, |dear, w| self.add_leaves(env, w, found) | dear);
                found.way.push(v);
                dear
            }
            None if env.accs.contains_key(&v) => true,
            None => {
                found.leaves.push(v);
                self.unpaid.contains(&v)
            }
        };
        found.dear.insert(v, dear);
        dear
    }

    /// The arrays for which some arm of a branch opens an accumulator although nobody in this body has paid for it: one is opened around
    /// the branch, so that it takes over the cotangent that there is. Where there is none yet, one may come of the arm itself, and would be
    /// added to zeros.
    pub(crate) fn opened_in_arms(&self, stm: &Stm, env: &Env) -> Vec<Var> {
        if !self.config.views {
            return Vec::new();
        }
        let waiting = OnceCell::new();
        let waits = |x: &Var| waiting.get_or_init(|| self.with_cotangents(env)).contains(x);
        let dear = |v: &Var| match self.names.contains_key(v) {
            true => {
                let (leaves, way) = self.stands_for(env, *v);
                !way.is_empty() && (leaves.is_empty() || leaves.iter().any(waits))
            }
            false => self.unpaid.contains(v) && waits(v),
        };
        let scopes = stm.exp.bodies();
        let frees = self.free_active(free_vars_exp(&stm.exp), env).into_iter();
        let frees = frees.filter(|v| self.can_alias(*v) && dear(v));
        frees.filter(|v| scopes.iter().any(|s| opens(s.body, *v))).collect()
    }

    /// The variables, what they stand for, and what they may be: contributions to a name may go there, and what waits for its turn may be
    /// handed on.
    pub(crate) fn with_leaves(&self, mut vs: Vec<Var>, env: &Env) -> Vec<Var> {
        let mut k = 0;
        let mut seen: IdSet<Var> = vs.iter().copied().collect();
        while let Some(&v) = vs.get(k) {
            let mut more: Vec<Var> = self.whole_of(v).filter(|z| self.is_active((*z).into())).collect();
            more.extend(self.stands_for(env, v).0);
            vs.extend(more.into_iter().filter(|z| seen.insert(*z)));
            k += 1;
        }
        vs
    }

    /// Adds a cotangent to a name through the accumulators of what it stands for.
    pub(crate) fn contribute_by_name(
        &mut self,
        env: &mut Env,
        y: Var,
        c: super::cotangent::Cotangent,
    ) -> Result<(), Unsupported> {
        if env.accs.contains_key(&y) {
            self.contribute(env, y.into(), c);
            return Ok(());
        }
        self.with_accumulators(env, &[y], |s, inner| {
            s.contribute(inner, y.into(), c);
            Ok(Vec::new())
        })?;
        Ok(())
    }
    /// Whether a cotangent of a name should go there: nobody in this body pays for making it dense.
    pub(crate) fn goes_by_name(&self, env: &Env, y: Var, c: &super::cotangent::Cotangent) -> bool {
        let ty = self.b.ty(y.into());
        c.desc != self.stored(&ty) && (env.accs.contains_key(&y) || !self.stands_for(env, y).1.is_empty())
    }
}

/// What a name that a statement binds stands for.
fn stands_for_at_once(stm: &Stm, y: Var) -> Vec<Var> {
    match &stm.exp {
        Exp::If(..) | Exp::Match(..) => {
            let arms = stm.pat.iter().position(|p| *p == y).and_then(|k| named_by(stm, k));
            arms.unwrap_or_default().into_iter().map(|named| named.of).collect()
        }
        exp => alias(exp).and_then(|(a, _)| a.var()).into_iter().collect(),
    }
}

/// What the arms of a branch give as result `k`, if all give names from outside, or parts of such by what is known outside or in the
/// scrutinee.
pub(super) fn named_by(stm: &Stm, k: usize) -> Option<Vec<Named>> {
    let arms = stm.exp.bodies();
    arms.iter().map(|s| named(s.body, &s.binds.iter().collect::<Vec<_>>(), s.body.result[k])).collect()
}

/// The variables from outside that the arms of a branch give as result `k`, as they are.
fn passed_on(stm: &Stm, k: usize) -> Vec<Option<Var>> {
    let arms = stm.exp.bodies();
    let whole = |n: Named| n.views.is_empty().then_some(n.of);
    let one = |s: &pullback_core::traverse::Scope<'_>| {
        named(s.body, &s.binds.iter().collect::<Vec<_>>(), s.body.result[k]).and_then(whole)
    };
    arms.iter().map(one).collect()
}

fn named(body: &Body, params: &[Var], result: Atom) -> Option<Named> {
    let inside = |v: Var| body.stms.iter().find(|stm| stm.pat.contains(&v));
    let mut views = Vec::new();
    let mut of = result.var()?;
    while let Some(stm) = inside(of) {
        let (a, view) = alias(&stm.exp)?;
        if let Some(view) = view {
            let known = |a: Atom| a.var().is_none_or(|v| inside(v).is_none());
            if !view_atoms(&view).into_iter().all(known) {
                return None;
            }
            views.push(view);
        }
        of = a.var()?;
    }
    views.reverse();
    (!params.contains(&of)).then_some(Named { of, views })
}

/// The numbers in a view.
fn view_atoms(view: &View) -> Vec<Atom> {
    match view {
        View::Index(ix) => ix.clone(),
        View::Slice(s) => vec![s.start, s.len, s.stride],
        View::Reshape { shape, from: _ } => shape.clone(),
        View::Rotate(k) => vec![*k],
        View::Proj(_) | View::Rearrange(_) | View::Reverse => Vec::new(),
    }
}

pub(super) fn substituted(view: &View, subst: &Subst) -> View {
    let mut exp = Exp::AccView(Atom::bool(false), view.clone());
    pullback_core::rename::substitute_exp(&mut exp, subst);
    match exp {
        Exp::AccView(_, view) => view,
        _ => view.clone(),
    }
}

/// Whether an accumulator is opened for an array where a body is reversed: functions, loops and calls inside mention it, or parts of many
/// of its elements are taken, or such things of a name of it.
pub(super) fn opens(body: &Body, v: Var) -> bool {
    body.stms.iter().any(|stm| {
        let named = || matches!(alias(&stm.exp), Some((a, _)) if a == v.into());
        match &stm.exp {
            Exp::If(..) | Exp::Match(..) | Exp::Marked(..) => {
                stm.exp.bodies().into_iter().any(|s| opens(s.body, v))
            }
            Exp::Gather(a, _) | Exp::Slice(a, _) | Exp::Rearrange(_, a) | Exp::Reshape { array: a, .. } => {
                *a == v.into()
            }
            Exp::Call(_, args) => args.contains(&v.into()),
            exp => {
                exp.bodies().into_iter().any(|s| free_vars(s.body).contains(&v))
                    || (named() && opens(body, stm.pat[0]))
            }
        }
    })
}
