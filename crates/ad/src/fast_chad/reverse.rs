//! The walk over statements: one arm per construct, in the order of `Exp`.
//!
//! Statements are visited last to first. Reverse code is emitted into the builder's current scope; the augmented
//! forward statements are returned. A statement whose results have no cotangent is copied and needs no reverse code.
//! Where a body is transformed apart from its surroundings (`map`, loops, branches), the forward copy gets fresh names
//! and the reverse code keeps the old ones, bound to what was saved: names stay unique.

use super::calls::Calls;
use super::chosen::Merged;
use super::config::{Config, Variant};
use super::cotangent::{Cotangent, plus};
use super::desc::{Desc, product, stored};
use super::effects::{can_leave_out, without_effects};
use super::gather::as_gather;
use super::hist::Hist;
use super::joint_reversal::AtOnce;
use super::kept::Room;
use super::locate::{Lends, Locate, locate, locate_functions};
use super::operator::Fold;
use super::reloadable::Lifetimes;
use crate::activity::active_variables;
use crate::contract::Unsupported;
use crate::tangent::{Slope, emit_scaled, is_zero, partial_for};
use pullback_base::Span;
use pullback_base::index::{IdMap, IdSet};
use pullback_core::prune::prune_body;
use pullback_core::rename::Subst;
use pullback_core::traverse::{bound_vars, free_vars_exp, free_vars_lam};
use pullback_core::{
    Atom, Body, Builder, Exp, Lam, Mark, Origin, Program, Soac, Stm, Type, Var, View, inverse, rename,
};
use pullback_prim::{Op, Prim};
use std::rc::Rc;

/// More hot entries than this for one variable become a dense array.
const MAX_ENTRIES: usize = 32;

/// Cotangents during the walk over one body.
#[derive(Clone, Default)]
pub(crate) struct Env {
    /// Merged: collected as values (`Gamma_M`).
    pub(crate) cts: IdMap<Var, Cotangent>,
    /// Accumulated: variables with an open accumulator, one per atom of their stored descriptor (`Gamma_A`).
    pub(crate) accs: Rc<IdMap<Var, Vec<Atom>>>,
}

/// The cotangent of a source accumulator's final value, to be read at `path`.
#[derive(Clone)]
pub(crate) struct Final {
    pub(crate) ct: Cotangent,
    pub(crate) path: Vec<Atom>,
}

/// The size of dimension `dim` of a component of a variable, wanted as a forward value.
struct SizeRequest {
    path: Vec<usize>,
    dim: usize,
    size: Var,
}

/// The state of the transformation of one lambda.
pub struct Reverse<'p> {
    /// Where code goes.
    pub b: Builder<'p>,
    pub(crate) config: Config,
    /// Variables that derivatives are taken in, or that depend on these.
    pub active: IdSet<Var>,
    pub(crate) finals: IdMap<Var, Final>,
    sizes: IdMap<Var, Vec<SizeRequest>>,
    pub(crate) calls: Calls,
    /// Per counter of a loop with binomial checkpointing, the number of its slots, where that is known at run time only.
    pub(crate) slots: IdMap<Var, Var>,
    /// The widths of the maps around the statement in its function: each of their iterations has a part of a limit for tapes.
    pub(crate) lanes: Vec<Atom>,
    /// How often the maps and counted loops around the statement in its function run it.
    pub(crate) rounds: Vec<Atom>,
    /// How many functions around this one are being reversed.
    pub(crate) functions: usize,
    /// How many calls may keep their tapes, in a function of which some may not.
    pub(crate) room: Option<Room>,
    /// In a function whose calls of itself are reversed where they run.
    pub(crate) at_once: Option<AtOnce>,
    pub(crate) sparse_depth: usize,
    /// Index arrays without duplicates.
    pub(crate) distinct: IdSet<Var>,
    /// Arrays that their statement did not have to write whole.
    pub(crate) unpaid: IdSet<Var>,
    /// Arrays that are only names, with the statements that say of what.
    pub(crate) names: IdMap<Var, Rc<Stm>>,
    /// Arrays whose cotangents nobody asks for. They have accumulators, since carried arrays may be names of them.
    pub(crate) unread: IdSet<Var>,
    /// Results of branches that may be arrays from outside of these, with the branches.
    pub(super) merged: IdMap<Var, Merged>,
    /// Results of histograms and scatters that run where there are many writes.
    pub(crate) large: IdSet<Var>,
    /// Which arrays reverse code may read again.
    pub(crate) lifetimes: Lifetimes,
    /// Variables that an attribute says to store.
    pub(crate) pinned: IdSet<Var>,
    /// Names under which branches pass arrays from around them to their reverse code.
    pub(crate) passed: IdMap<Var, Var>,
    /// How many bodies have a plan (see `cut`).
    pub(crate) planned: u64,
}

/// What belongs to one function and not to those it calls.
pub(crate) struct Function {
    active: IdSet<Var>,
    finals: IdMap<Var, Final>,
    sizes: IdMap<Var, Vec<SizeRequest>>,
    lanes: Vec<Atom>,
    rounds: Vec<Atom>,
    room: Option<Room>,
    at_once: Option<AtOnce>,
    lifetimes: Lifetimes,
    sparse_depth: usize,
}

/// What a derivative returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Results {
    /// The results of the function, then the cotangents of its arguments.
    All,
    /// The cotangents alone.
    Cotangents,
}

pub(crate) type Forward = Result<Vec<Stm>, Unsupported>;

impl<'p> Reverse<'p> {
    /// The state before the first statement.
    pub fn new(program: &'p mut Program, config: Config) -> Self {
        Reverse {
            b: Builder::new(program),
            config,
            active: IdSet::new(),
            finals: IdMap::new(),
            sizes: IdMap::new(),
            calls: Calls::default(),
            slots: IdMap::new(),
            lanes: Vec::new(),
            rounds: Vec::new(),
            functions: 0,
            room: None,
            at_once: None,
            sparse_depth: 0,
            distinct: IdSet::new(),
            unpaid: IdSet::new(),
            names: IdMap::new(),
            merged: IdMap::new(),
            unread: IdSet::new(),
            large: IdSet::new(),
            lifetimes: Lifetimes::default(),
            pinned: IdSet::new(),
            passed: IdMap::new(),
            planned: 0,
        }
    }
    /// Starts on another function.
    pub(crate) fn enter_function(&mut self) -> Function {
        self.functions += 1;
        Function {
            active: std::mem::take(&mut self.active),
            finals: std::mem::take(&mut self.finals),
            sizes: std::mem::take(&mut self.sizes),
            lanes: std::mem::take(&mut self.lanes),
            rounds: std::mem::take(&mut self.rounds),
            room: std::mem::take(&mut self.room),
            at_once: std::mem::take(&mut self.at_once),
            lifetimes: std::mem::take(&mut self.lifetimes),
            sparse_depth: std::mem::take(&mut self.sparse_depth),
        }
    }
    /// Goes on where [`Self::enter_function`] left off.
    pub(crate) fn leave_function(&mut self, outer: Function) {
        self.functions -= 1;
        Function {
            active: self.active,
            finals: self.finals,
            sizes: self.sizes,
            lanes: self.lanes,
            rounds: self.rounds,
            room: self.room,
            at_once: self.at_once,
            lifetimes: self.lifetimes,
            sparse_depth: self.sparse_depth,
        } = outer;
    }

    /// The lambda with locations, where it is known what in it depends on `inputs`.
    pub(crate) fn located(&mut self, lam: Lam, inputs: &[Var], (how, lends): (Locate, Lends)) -> Lam {
        let (mut sources, mut constants) = (inputs.to_vec(), IdSet::new());
        let lam = if self.config.locations {
            let located = locate(self.b.program, lam, inputs, &mut self.calls.reads, (how, lends));
            sources.extend(located.slots);
            self.unread.extend(located.unread);
            constants = located.constants;
            located.lam
        } else {
            lam
        };
        self.active = active_variables(self.b.program, &lam, &sources);
        self.active.extend(constants);
        self.add_types(&lam, inputs);
        lam
    }

    /// The whole transformation: `\xs -> ys` to `\xs y_bars -> ys x_bars`, or without `ys`. Binders of `lam` must be fresh.
    pub(crate) fn lambda(&mut self, lam: Lam, wanted: &[bool], results: Results) -> Result<Lam, Unsupported> {
        let floats = |s: &Self, a: Atom| {
            let ty = s.b.ty(a);
            s.b.program.is_active(&ty)
        };
        let inputs: Vec<Var> = lam.params.iter().zip(wanted).filter(|(_, w)| **w).map(|(v, _)| *v).collect();
        let inputs: Vec<Var> = inputs.into_iter().filter(|&v| floats(self, v.into())).collect();
        let (lam, lends) = match self.config.locations {
            true => locate_functions(self.b.program, lam, self.config.max_inlined, &mut self.calls.located),
            false => (lam, Lends::new()),
        };
        let lam = self.located(lam, &inputs, (Locate::Once, lends));
        self.lifetimes = self.lifetimes_of(&lam);
        let mut env = Env::default();
        let mut params = lam.params.clone();
        self.b.open();
        for &y in &lam.body.result {
            if floats(self, y) {
                let ty = self.b.ty(y);
                let desc = self.full(&ty);
                let bar = self.b.fresh(desc.value_type(), "y_bar");
                params.push(bar);
                let seed = super::cotangent::unpack(&mut self.b, &desc, bar.into());
                self.contribute(&mut env, y, seed);
            }
        }
        let forward = self.stms(&lam.body.stms, &mut env)?;
        let mut result = match results {
            Results::All => lam.body.result.clone(),
            Results::Cotangents => Vec::new(),
        };
        for &x in &inputs {
            let c = self.take(&mut env, x);
            let ty = self.b.ty(x.into());
            result.push(self.value(&ty, &c, x.into()));
        }
        let reverse = self.b.close(Vec::new());
        // Sizes of parameters and of captured variables.
        let pending: Vec<Var> = self.sizes.keys().copied().collect();
        let mut stms = Vec::new();
        for v in pending {
            self.flush_sizes(v, &mut stms);
        }
        stms.extend(forward);
        stms.extend(reverse.stms);
        let mut body = Body { stms, result };
        prune_body(self.b.program, &mut body);
        self.forget_tapes(&mut body);
        Ok(Lam { params, body })
    }

    /// Makes the cotangent types of recursive sums that the variables of a function need.
    pub(crate) fn add_types(&mut self, lam: &Lam, inputs: &[Var]) {
        let results = lam.body.result.iter().filter_map(|a| a.var());
        let all: Vec<Var> =
            self.active.iter().copied().chain(inputs.iter().copied()).chain(results).collect();
        all.into_iter().for_each(|v| self.add_type(v));
    }
    /// Makes the cotangent types of recursive sums that a variable needs.
    pub(crate) fn add_type(&mut self, v: Var) {
        let ty = self.b.program.vars[v].ty.clone();
        self.b.program.add_cotangent_types(&ty);
    }

    // ---- vocabulary ----

    pub(crate) fn full(&self, ty: &Type) -> Desc {
        full_of(self.b.program, ty).unwrap_or(Desc::Absent)
    }
    pub(crate) fn stored(&self, ty: &Type) -> Desc {
        stored(self.b.program, ty).unwrap_or(Desc::Absent)
    }
    pub(crate) fn stored_of(&self, a: Atom) -> Desc {
        let ty = self.b.ty(a);
        self.stored(&ty)
    }
    pub(crate) fn is_active(&self, a: Atom) -> bool {
        a.var().is_some_and(|v| self.active.contains(&v) && !self.b.program.vars[v].ty.is_acc())
    }
    /// Adds to the cotangent of `x`.
    pub(crate) fn contribute(&mut self, env: &mut Env, x: Atom, c: Cotangent) {
        let Some(v) = x.var() else { return };
        if c.is_absent() || !self.is_active(x) || self.unread.contains(&v) {
            return;
        }
        if let Some(accs) = env.accs.get(&v) {
            let desc = self.stored_of(x);
            let accs = accs.clone();
            self.accumulate(&accs, &desc, &[], &c);
            return;
        }
        let total = match env.cts.remove(&v) {
            Some(before) => plus(&mut self.b, before, c),
            None => c,
        };
        let entries = match &total.desc {
            Desc::Hot { entries, .. } => entries.len(),
            Desc::Absent
            | Desc::Real(_)
            | Desc::Product(_)
            | Desc::Choice(_)
            | Desc::Tree(_)
            | Desc::Array(_)
            | Desc::Maybe(_) => 0,
        };
        if entries > MAX_ENTRIES && !self.stands_for(env, v).1.is_empty() {
            // Through what it stands for; nothing in there can be unsupported.
            let _ = self.contribute_by_name(env, v, total);
            return;
        }
        let total = if entries > MAX_ENTRIES { self.dense_of(x, &total) } else { total };
        env.cts.insert(v, total);
    }
    /// Removes and returns the cotangent of a variable whose definition has been reached.
    pub(crate) fn take(&self, env: &mut Env, v: Var) -> Cotangent {
        env.cts.remove(&v).unwrap_or_else(Cotangent::absent)
    }
    /// The active free variables of a lambda that have no open accumulator.
    pub(crate) fn free_active(&self, frees: IdSet<Var>, env: &Env) -> Vec<Var> {
        frees.into_iter().filter(|v| self.is_active((*v).into()) && !env.accs.contains_key(v)).collect()
    }
    /// Whether the expression adds to a source accumulator whose final value has a cotangent.
    pub(crate) fn touches(&self, exp: &Exp) -> bool {
        !self.finals.is_empty() && free_vars_exp(exp).iter().any(|v| self.finals.contains_key(v))
    }
    /// Whether the expression may add to an accumulator from outside: such code must not run twice.
    pub(crate) fn has_effects(&self, exp: &Exp) -> bool {
        free_vars_exp(exp).iter().any(|v| self.b.program.vars[*v].ty.is_acc())
    }
    /// Marks what is active in new statements.
    pub(crate) fn activate(&mut self, body: &Body, inputs: &[Var]) {
        let lam = Lam { params: Vec::new(), body: body.clone() };
        let inputs: Vec<Var> = self.active.iter().copied().chain(inputs.iter().copied()).collect();
        self.active = active_variables(self.b.program, &lam, &inputs);
    }
    /// A copy of a lambda, with the same activity.
    pub(crate) fn copy_lam(&mut self, lam: &Lam) -> Lam {
        let copy = rename::copy_lam(self.b.program, lam, &Subst::new());
        let pairs = lam.params.iter().zip(&copy.params);
        let inputs: Vec<Var> =
            pairs.filter(|(old, _)| self.active.contains(old)).map(|(_, new)| *new).collect();
        self.activate(&copy.body, &inputs);
        copy
    }
    /// Everything emitted from here on comes from this rule applied to the statement.
    pub(crate) fn rule(&mut self, tag: &'static str, stm: &Stm) {
        let span = self.span(stm);
        self.b.origin = Origin { span, rule: Some((tag, stm.pat.first().copied())) };
    }
    pub(crate) fn span(&self, stm: &Stm) -> Option<Span> {
        stm.pat.first().and_then(|v| self.b.program.vars[*v].origin.span)
    }

    // ---- sizes ----

    /// The size of a dimension as a forward value: computed where the variable is bound, so that reverse code needs
    /// the number and not the array.
    pub(crate) fn size(&mut self, a: Atom, path: &[usize], dim: usize) -> Atom {
        let Some(v) = a.var() else { return Atom::i64(0) };
        let known = self.sizes.get(&v).and_then(|l| l.iter().find(|r| r.path == path && r.dim == dim));
        if let Some(request) = known {
            return request.size.into();
        }
        let size = self.b.fresh(Type::I64, "n");
        self.sizes.entry(v).or_default().push(SizeRequest { path: path.to_vec(), dim, size });
        size.into()
    }
    /// Emits the wanted sizes of a variable: to be called where its forward definition has been placed.
    pub(crate) fn flush_sizes(&mut self, v: Var, forward: &mut Vec<Stm>) {
        for SizeRequest { path, dim, size } in self.sizes.remove(&v).unwrap_or_default() {
            self.b.open();
            let mut part: Atom = v.into();
            for i in path {
                part = self.b.emit(Exp::Proj(part, i), "part");
            }
            self.b.emit_to(vec![size], Exp::Size(part, dim));
            forward.extend(self.b.close(Vec::new()).stms);
        }
    }
    /// Statements that compute the sizes of these variables, or parts of them, that reverse code asks for.
    pub fn flush_all(&mut self, vs: &[Var]) -> Vec<Stm> {
        let mut out = Vec::new();
        for &v in vs {
            self.flush_sizes(v, &mut out);
        }
        out
    }

    // ---- bodies ----

    /// Reverses statements; `env` holds the cotangents of what they define.
    pub(crate) fn stms(&mut self, stms: &[Stm], env: &mut Env) -> Forward {
        self.note_facts(stms);
        self.derive_accumulators(stms, env)?;
        let mut parts = Vec::with_capacity(stms.len());
        for stm in stms.iter().rev() {
            let mut forward = self.stm(stm, env)?;
            for &v in &stm.pat {
                self.flush_sizes(v, &mut forward);
            }
            parts.push(forward);
        }
        Ok(parts.into_iter().rev().flatten().collect())
    }

    /// Reverses statements that the reverse pass runs itself: forward code, then reverse code, both emitted here. Effects
    /// belong to the forward pass and are left out.
    pub(crate) fn rerun(&mut self, stms: &[Stm], params: &[Var], env: &mut Env) -> Result<(), Unsupported> {
        self.b.open();
        let forward = self.stms(stms, env)?;
        let reverse = self.b.close(Vec::new());
        let forward = without_effects(self.b.program, forward);
        for stm in self.flush_all(params).into_iter().chain(forward).chain(reverse.stms) {
            self.b.emit_stm(stm);
        }
        Ok(())
    }

    /// Replaces a statement by others that mean the same, and reverses those.
    pub(crate) fn rewrite(
        &mut self,
        stm: &Stm,
        cts: Vec<Cotangent>,
        env: &mut Env,
        build: impl FnOnce(&mut Builder<'p>) -> Vec<Atom>,
    ) -> Forward {
        self.b.open();
        let results = build(&mut self.b);
        for (&v, a) in stm.pat.iter().zip(results) {
            self.b.emit_to(vec![v], Exp::Atom(a));
        }
        let body = self.b.close(Vec::new());
        self.activate(&body, &[]);
        for (&v, c) in stm.pat.iter().zip(cts) {
            env.cts.insert(v, c);
        }
        self.stms(&body.stms, env)
    }

    fn stm(&mut self, stm: &Stm, env: &mut Env) -> Forward {
        let cts: Vec<Cotangent> = stm.pat.iter().map(|&v| self.take(env, v)).collect();
        let same = || Ok(vec![stm.clone()]);
        if cts.iter().all(Cotangent::is_absent) && !self.touches(&stm.exp) {
            return same();
        }
        let c = cts.first().cloned().unwrap_or_else(Cotangent::absent);
        match &stm.exp {
            // [fast_chad.atom]  y = x:  x_bar += y_bar
            Exp::Atom(x) => {
                self.contribute(env, *x, c);
                same()
            }
            // [fast_chad.prim]  y = p(xs):  xᵢ_bar += ∂ᵢp(xs) · y_bar
            Exp::Prim(prim, args) => {
                self.rule("fast_chad.prim", stm);
                self.prim(stm.pat[0], *prim, args, &c, env);
                same()
            }
            // [fast_chad.tuple]  y = (xs):  xᵢ_bar += y_bar.i
            Exp::Tuple(xs) => {
                for (x, part) in xs.iter().zip(c.components(xs.len())) {
                    self.contribute(env, *x, part);
                }
                same()
            }
            // [fast_chad.proj]  y = x.i:  x_bar += (0, .., y_bar, .., 0), the zeros absent
            Exp::Proj(x, i) => {
                let count = match self.b.ty(*x) {
                    Type::Tuple(items) => items.len(),
                    Type::Scalar(_) | Type::Sum(_) | Type::Named(_) | Type::Array(_) | Type::Acc(_) => 0,
                };
                let mut items = vec![Desc::Absent; count];
                items[*i] = c.desc;
                self.contribute(env, *x, Cotangent::new(product(items), c.atoms));
                same()
            }
            // [fast_chad.inject]  y = #k xs:  xs_bar += the payload of y_bar
            Exp::Inject(_, k, xs) => {
                self.rule("fast_chad.inject", stm);
                self.inject(stm, *k, xs, &c, env);
                same()
            }
            // [fast_chad.match]  reversed arm by arm on the same scrutinee; contributions joined
            Exp::Match(z, arms) => {
                let arms = arms.iter().map(|a| (a.params.clone(), &a.body)).collect();
                self.branch(stm, *z, arms, cts, env)
            }
            // [fast_chad.if]  as match, without payload
            Exp::If(z, x, y) => self.branch(stm, *z, vec![(vec![], x), (vec![], y)], cts, env),
            // [fast_chad.loop]  a loop backwards over the saved values, or over states run again (`checkpoint`)
            Exp::Loop(l) => self.attributed_loop(stm, l, cts, env),
            // [fast_chad.call]  inlined, or  ys, tape = f_fwd(xs)  and  xs_bar += f_rev(tape, ys_bar)
            Exp::Call(f, args) => self.call(stm, *f, args, cts, env),
            // [fast_chad.array_lit]  y = [xs]:  xᵢ_bar += y_bar[i]
            Exp::ArrayLit(_, xs) => {
                self.rule("fast_chad.array_lit", stm);
                let d = self.dense_of(stm.pat[0].into(), &c);
                for (i, x) in xs.iter().enumerate() {
                    let part = self.element(&d, &[Atom::i64(i as i64)]);
                    self.contribute(env, *x, part);
                }
                same()
            }
            // [fast_chad.index]  y = a[ix]:  a_bar += one hot entry
            Exp::Index(a, ix) => {
                self.rule("fast_chad.index", stm);
                self.index(*a, ix, c, env);
                same()
            }
            // [fast_chad.slice]  y = a[s]:  a_bar[s] += y_bar
            Exp::Slice(a, slice) => {
                self.rule("fast_chad.slice", stm);
                self.slice(stm, *a, *slice, &c, env)?;
                same()
            }
            // [fast_chad.update]  y = a with [ix] = v:  v_bar += y_bar[ix];  a_bar += y_bar with [ix] = 0
            Exp::Update(a, ix, v) => {
                self.rule("fast_chad.update", stm);
                self.update(stm, *a, ix, *v, &c, env);
                same()
            }
            // [fast_chad.update_slice]  as update
            Exp::UpdateSlice(a, slice, v) => {
                self.rule("fast_chad.update_slice", stm);
                self.update_slice(stm, *a, *slice, *v, &c, env);
                same()
            }
            // [fast_chad.gather]  y = gather a is:  a_bar += hist (+) 0 is y_bar
            Exp::Gather(a, indices) => self.gather(stm, (*a, *indices), c, env),
            // [fast_chad.size]  discrete
            Exp::Size(..) => same(),
            // [fast_chad.iota]  discrete
            Exp::Iota(_) => same(),
            // [fast_chad.replicate]  y = replicate s x:  x_bar += Σ y_bar
            Exp::Replicate(shape, x) => {
                self.rule("fast_chad.replicate", stm);
                self.replicate(stm, shape, *x, &c, env);
                same()
            }
            // [fast_chad.rearrange]  a_bar += rearrange p⁻¹ y_bar
            Exp::Rearrange(perm, a) => {
                self.rule("fast_chad.rearrange", stm);
                self.dense_map(stm, *a, &c, env, |d| Exp::Rearrange(inverse(perm), d))?;
                same()
            }
            // [fast_chad.reshape]  a_bar += reshape back y_bar
            Exp::Reshape { shape, from, array } => {
                self.rule("fast_chad.reshape", stm);
                let back: Vec<Atom> = (0..*from).map(|d| self.size(*array, &[], d)).collect();
                let from = shape.len();
                self.dense_map(stm, *array, &c, env, |d| Exp::Reshape {
                    shape: back.clone(),
                    from,
                    array: d,
                })?;
                same()
            }
            // [fast_chad.concat]  aᵢ_bar += its part of y_bar
            Exp::Concat(arrays) => {
                self.rule("fast_chad.concat", stm);
                self.concat(stm, arrays, &c, env);
                same()
            }
            // [fast_chad.reverse]  a_bar += reverse y_bar
            Exp::Reverse(a) => {
                self.rule("fast_chad.reverse", stm);
                self.reverse(stm, *a, &c, env)?;
                same()
            }
            // [fast_chad.rotate]  a_bar += rotate (-k) y_bar
            Exp::Rotate(a, k) => {
                self.rule("fast_chad.rotate", stm);
                let back = self.b.op1(Op::Neg, *k);
                self.dense_map(stm, *a, &c, env, |d| Exp::Rotate(d, back))?;
                same()
            }
            Exp::Soac(soac) => self.soac(stm, soac, cts, env),
            // [fast_chad.with_acc]  the cotangent of the final value is read where the source adds
            Exp::WithAcc(inits, lam) => self.with_acc(stm, inits, lam, cts, env),
            // [fast_chad.acc_view]  a view of that cotangent (see `derive_accumulators`)
            Exp::AccView(..) => same(),
            // [fast_chad.acc_add]  acc[ix] += v:  v_bar += final_bar[ix]
            Exp::AccAdd(acc, ix, v) => {
                self.rule("fast_chad.acc_add", stm);
                self.acc_add(*acc, ix, *v, env);
                same()
            }
            // [fast_chad.plus]  y = a + b:  both += y_bar
            Exp::Plus(x, y) => {
                self.contribute(env, *x, c.clone());
                self.contribute(env, *y, c);
                same()
            }
            // [fast_chad.custom]  xs_bar += rule(xs, ts ys, ys_bar), and what ts_bar gives them through the function itself
            Exp::Custom { primal, rule, args, tape } => {
                self.rule("fast_chad.custom", stm);
                let (of_tape, about) = cts.split_at(*tape);
                self.custom(stm, primal, rule, args, about, env)?;
                let forward = self.tape_of_rule(primal, args, of_tape, env)?;
                Ok(std::iter::once(stm.clone()).chain(forward).collect())
            }
            // [fast_chad.marked]  recompute: the reverse pass runs the body again;  store: as its statements
            Exp::Marked(mark, body) => self.marked(stm, *mark, body, cts, env),
            // [fast_chad.stop_gradient]  nothing
            Exp::StopGradient(_) => same(),
            // [fast_chad.par]  as the statements of the bodies, one after the other
            Exp::Par(bodies) => {
                let results = bodies.iter().flat_map(|b| b.result.clone()).collect();
                let stms = bodies.iter().flat_map(|b| b.stms.clone()).collect();
                self.inline(stm, Body { stms, result: results }, cts, env)
            }
            // [fast_chad.assert] [fast_chad.check]  nothing
            Exp::Assert(..) | Exp::Check(..) => same(),
            Exp::Vjp { .. } | Exp::Jvp { .. } => {
                let help = "run the pass `differentiate` on the whole program: it expands the innermost derivative first";
                Err(unsupported("a derivative that was not expanded before", help, self.span(stm)))
            }
        }
    }

    fn prim(&mut self, y: Var, prim: Prim, args: &[Atom], c: &Cotangent, env: &mut Env) {
        let (Some(&d), Some(partials)) = (c.atoms.first(), prim.partials()) else { return };
        match prim {
            Prim::Convert(from, _) => {
                let back = self.b.convert(d, from);
                self.contribute(env, args[0], Cotangent::new(Desc::Real(from), vec![back]));
            }
            Prim::Op(_, s) => {
                for (i, x) in args.iter().enumerate() {
                    let partial = partial_for(prim, partials, args, i);
                    if !self.is_active(*x) || is_zero(partial) {
                        continue;
                    }
                    let slope = Slope::new(self.b.program, (prim, s), (i, partial), args, y.into());
                    let part = emit_scaled(&mut self.b, slope, d);
                    self.contribute(env, *x, Cotangent::new(Desc::Real(s), vec![part]));
                }
            }
        }
    }

    /// The statements of a body instead of the statement.
    pub(crate) fn inline(&mut self, stm: &Stm, body: Body, cts: Vec<Cotangent>, env: &mut Env) -> Forward {
        let mut stms = body.stms;
        stms.extend(stm.pat.iter().zip(body.result).map(|(&v, a)| Stm { pat: vec![v], exp: Exp::Atom(a) }));
        for (&v, c) in stm.pat.iter().zip(cts) {
            env.cts.insert(v, c);
        }
        self.stms(&stms, env)
    }

    fn marked(&mut self, stm: &Stm, mark: Mark, body: &Body, cts: Vec<Cotangent>, env: &mut Env) -> Forward {
        if mark == Mark::Store {
            self.pinned.extend(bound_vars(body));
        }
        if mark == Mark::Store || !can_leave_out(self.b.program, body) {
            return self.inline(stm, body.clone(), cts, env);
        }
        self.rule("fast_chad.marked", stm);
        let copy = self.copy_lam(&Lam { params: Vec::new(), body: body.clone() }).body;
        for (a, c) in copy.result.iter().zip(cts) {
            self.contribute(env, *a, c);
        }
        self.rerun(&copy.stms, &[], env)?;
        Ok(vec![stm.clone()])
    }

    /// What a function leaves for its rule has cotangents where the rule is differentiated: those go through the function, run
    /// for the tape alone. The forward statements of that.
    fn tape_of_rule(&mut self, primal: &Lam, args: &[Atom], cts: &[Cotangent], env: &mut Env) -> Forward {
        if cts.iter().all(Cotangent::is_absent) {
            return Ok(Vec::new());
        }
        let body = rename::copy_applied(self.b.program, primal, args, &Subst::new());
        self.activate(&body, &[]);
        for (&t, c) in body.result.iter().zip(cts) {
            self.contribute(env, t, c.clone());
        }
        self.stms(&body.stms, env)
    }

    /// The user's rule replaces everything; what it captures is a constant. `cts`: of the results that it is about.
    fn custom(
        &mut self,
        stm: &Stm,
        primal: &Lam,
        rule: &Lam,
        args: &[Atom],
        cts: &[Cotangent],
        env: &mut Env,
    ) -> Result<(), Unsupported> {
        if cts.iter().all(Cotangent::is_absent) {
            return Ok(());
        }
        if let Some(&v) = self.free_active(free_vars_lam(primal), &Env::default()).first() {
            let name = &self.b.program.vars[v].hint;
            let construct =
                format!("a function with its own rule that captures the differentiated variable `{name}`");
            let help = "pass the variable as an argument, so that the rule can return its cotangent; or wrap its use in \
                        stop_gradient if it is meant to be a constant";
            return Err(unsupported(&construct, help, self.span(stm)));
        }
        let mut operands: Vec<Atom> = args.iter().copied().chain(stm.pat.iter().map(|&y| y.into())).collect();
        let about = &stm.pat[stm.pat.len() - cts.len()..];
        for (&y, c) in about.iter().zip(cts) {
            let ty = self.b.ty(y.into());
            if self.b.program.is_active(&ty) {
                let bar = self.value(&ty, c, y.into());
                operands.push(bar);
            }
        }
        let body = rename::copy_applied(self.b.program, rule, &operands, &Subst::new());
        for stm in body.stms {
            self.b.emit_stm(stm);
        }
        let mut bars = body.result.into_iter();
        for &x in args {
            let ty = self.b.ty(x);
            if self.b.program.is_active(&ty)
                && let Some(bar) = bars.next()
            {
                let desc = self.full(&ty);
                let c = super::cotangent::unpack(&mut self.b, &desc, bar);
                self.contribute(env, x, c);
            }
        }
        Ok(())
    }

    fn soac(&mut self, stm: &Stm, soac: &Soac, cts: Vec<Cotangent>, env: &mut Env) -> Forward {
        match soac {
            // [fast_chad.map]  a map over the cotangents, saved values and inputs
            Soac::Map { width, lam, arrays } => match as_gather(lam, arrays) {
                Some((a, is)) if !a.var().is_some_and(|v| env.accs.contains_key(&v)) => {
                    self.gather(stm, (a, is), cts[0].clone(), env)
                }
                _ => self.map(stm, *width, lam, arrays, cts, env),
            },
            // [fast_chad.reduce]  by the kind of operator
            Soac::Reduce { width, lam, neutral, arrays, commutative } => {
                let fold = Fold::new(*width, lam, neutral, arrays, Some(*commutative));
                self.reduce(stm, &fold, cts, env)
            }
            // [fast_chad.scan]  by the kind of operator
            Soac::Scan { width, lam, neutral, arrays } => {
                self.scan(stm, &Fold::new(*width, lam, neutral, arrays, None), cts, env)
            }
            // [fast_chad.fused]  taken apart before: the rules are those of map, reduce and scan
            Soac::Fused { .. } => Err(unsupported(
                "a fused operation in a called function",
                "differentiate before the pass `fuse`",
                self.span(stm),
            )),
            // [fast_chad.hist]  by the kind of operator
            Soac::Hist { width, lam, neutral, dst, indices, values } => {
                let (width, indices) = (*width, *indices);
                self.hist(stm, Hist { width, lam, neutral, dst, indices, values }, cts, env)
            }
            // [fast_chad.scatter]  winners gather, their cells become zero
            Soac::Scatter { width, dst, indices, values } => {
                self.scatter(stm, (*width, *dst, *indices, *values), cts[0].clone(), env)
            }
        }
    }

    /// The first hot entry per index; the didactic variant makes a dense array of zeros instead.
    fn index(&mut self, a: Atom, ix: &[Atom], c: Cotangent, env: &mut Env) {
        let mut hot = c;
        for (dim, &i) in ix.iter().enumerate().rev() {
            let len = self.size(a, &[], dim);
            hot = Cotangent::hot(len, i, false, hot);
        }
        let hot = if self.config.variant == Variant::OneHot { self.dense_of(a, &hot) } else { hot };
        self.contribute(env, a, hot);
    }

    /// Names that merely stand for (a part of) something with an open accumulator get a view of it instead of a
    /// cotangent of their own; likewise for views of source accumulators. Emitted before the other reverse code.
    fn derive_accumulators(&mut self, stms: &[Stm], env: &mut Env) -> Result<(), Unsupported> {
        for stm in stms {
            self.derive_final_of(stm)?;
            if !self.config.views || env.accs.is_empty() {
                continue;
            }
            self.rule("fast_chad.acc_view", stm);
            self.derive_names(stm, env);
        }
        Ok(())
    }

    pub(super) fn can_alias(&self, y: Var) -> bool {
        self.is_active(y.into()) && self.b.program.vars[y].ty.rank() > 0
    }
}

/// What a statement is the whole (no view) or a view of.
pub(crate) fn alias(exp: &Exp) -> Option<(Atom, Option<View>)> {
    match exp {
        Exp::Atom(a) => Some((*a, None)),
        Exp::Index(a, ix) => Some((*a, Some(View::Index(ix.clone())))),
        Exp::Slice(a, slice) => Some((*a, Some(View::Slice(*slice)))),
        Exp::Reverse(a) => Some((*a, Some(View::Reverse))),
        Exp::Rotate(a, k) => Some((*a, Some(View::Rotate(*k)))),
        Exp::Rearrange(perm, a) => Some((*a, Some(View::Rearrange(perm.clone())))),
        Exp::Reshape { shape, from, array } => {
            Some((*array, Some(View::Reshape { shape: shape.clone(), from: *from })))
        }
        _ => None,
    }
}

fn full_of(p: &Program, ty: &Type) -> Option<Desc> {
    super::desc::full(p, ty).ok()
}

pub(crate) fn unsupported(construct: &str, help: &str, span: Option<Span>) -> Unsupported {
    Unsupported { algorithm: "fast_chad", construct: construct.to_string(), span, help: help.to_string() }
}
