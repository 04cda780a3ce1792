//! Rules for sums, branches and loops.
//!
//! Source: T. Smeding, PhD thesis, figure 7.8 (case), footnote 18 (loops); Schenck et al., SC 2022, section III (loops).
//! Branches: each arm is reversed with the same cotangents; what the arms contribute to a variable is converted to the
//! join of the descriptors, which pads and never adds. What an arm saves is a result of the forward branch, with a hole
//! in the other arms. Loops: the saved values are stacked by the forward loop and read backwards.

use super::config::Accumulate;
use super::cotangent::{Cotangent, coerce, pack, plus, split, unpack, zero};
use super::cut::Plan;
use super::desc::{Alternative, Desc, choice, join, optional};
use super::reverse::{Env, Reverse};
use crate::contract::Unsupported;
use pullback_base::index::IdSet;
use pullback_core::prune::prune_body;
use pullback_core::rename::{Subst, copy_exp, copy_lam, substitute_body};
use pullback_core::traverse::{free_vars, free_vars_stms};
use pullback_core::{Atom, Body, Exp, Lam, Loop, LoopAttrs, LoopForm, Stm, Type, Var};
use pullback_prim::Op;
use pullback_prim::{Scalar, ScalarValue};

/// What an arm saves.
struct Saved {
    /// The result of the branch that holds it, or a hole if another arm was taken.
    slot: Var,
    value: Var,
    /// Whether the value is from outside the branch.
    outside: bool,
}

/// An arm of a branch after reversal.
struct Arm {
    params: Vec<Var>,
    forward: Vec<Stm>,
    result: Vec<Atom>,
    reverse: Vec<Stm>,
    /// Of the parameters, then of the free variables.
    outs: Vec<Cotangent>,
}

/// A branch after reversal: the forward branch, and what the reverse one gives to the scrutinee's payload and to free variables.
struct Branch {
    forward: Stm,
    payload: Desc,
    frees: Vec<Var>,
    joined: Vec<Desc>,
}

impl<'p> Reverse<'p> {
    pub(crate) fn inject(&mut self, stm: &Stm, k: usize, xs: &[Atom], c: &Cotangent, env: &mut Env) {
        let fields: Vec<Desc> = match &c.desc {
            Desc::Choice(alternatives) => alternatives[k].fields.clone(),
            Desc::Tree(_) => {
                let ty = self.b.ty(stm.pat[0].into());
                let variants = self.b.program.variants(&ty).unwrap_or_default();
                let types = variants.get(k).map_or(Vec::new(), |v| v.fields.clone());
                types.iter().map(|t| self.full(t)).collect()
            }
            _ => return,
        };
        let wide: Vec<Desc> = fields.iter().map(optional).collect();
        let results: Vec<Type> = wide.iter().flat_map(Desc::types).collect();
        if results.is_empty() {
            return;
        }
        let out = self.b.match_(c.atoms[0], |b, j, payload| {
            let mut atoms = Vec::new();
            for (i, (d, w)) in fields.iter().zip(&wide).enumerate() {
                if j == k + 1 {
                    let field = unpack(b, d, payload[i].into());
                    atoms.extend(coerce(b, &field, w));
                } else {
                    atoms.extend(zero(b, w));
                }
            }
            atoms
        });
        let out: Vec<Atom> = out.into_iter().map(Atom::Var).collect();
        for (x, part) in xs.iter().zip(split(&wide, &out)) {
            self.contribute(env, *x, part);
        }
    }

    pub(crate) fn branch(
        &mut self,
        stm: &Stm,
        z: Atom,
        arms: Vec<(Vec<Var>, &Body)>,
        cts: Vec<Cotangent>,
        env: &mut Env,
    ) -> Result<Vec<Stm>, Unsupported> {
        let open = self.opened_in_arms(stm, env);
        let mut made = None;
        let out = if open.is_empty() {
            self.branch_reverse(stm, z, arms, &cts, env, &mut made)?
        } else {
            self.with_accumulators(env, &open, |s, inner| {
                s.branch_reverse(stm, z, arms, &cts, inner, &mut made)
            })?
        };
        let Some(Branch { forward, payload, frees, joined }) = made else { return Ok(vec![stm.clone()]) };
        let (to_z, rest) = out.split_at(payload.count());
        self.contribute(env, z, Cotangent::new(payload, to_z.to_vec()));
        for (v, c) in frees.iter().zip(split(&joined, &rest[..joined.iter().map(Desc::count).sum()])) {
            self.contribute(env, (*v).into(), c);
        }
        Ok(vec![forward])
    }

    /// Emits the reverse branch and makes the forward one; returns what the reverse one gives.
    fn branch_reverse(
        &mut self,
        stm: &Stm,
        z: Atom,
        arms: Vec<(Vec<Var>, &Body)>,
        cts: &[Cotangent],
        env: &mut Env,
        made: &mut Option<Branch>,
    ) -> Result<Vec<Atom>, Unsupported> {
        let is_match = matches!(stm.exp, Exp::Match(..));
        let tag = if is_match { "fast_chad.match" } else { "fast_chad.if" };
        self.rule(tag, stm);
        let mut frees: IdSet<Var> = arms.iter().flat_map(|(_, body)| free_vars(body)).collect();
        for v in arms.iter().flat_map(|(params, _)| params) {
            frees.remove(v);
        }
        let frees = self.free_active(frees, env);
        let frees = self.with_leaves(frees, env);
        let mut done = Vec::new();
        for (params, body) in arms {
            done.push(self.arm(params, body, cts, &frees, env)?);
        }
        self.rule(tag, stm);
        // The descriptors in which the arms meet.
        let payload = self.payload(z, &done);
        let joined: Vec<Desc> = (0..frees.len())
            .map(|i| {
                let mut all = done.iter().map(|arm| arm.outs[arm.params.len() + i].desc.clone());
                let first = all.next().unwrap_or(Desc::Absent);
                all.fold(first, |s, t| join(&s, &t))
            })
            .collect();
        let mut reverse = Vec::new();
        let mut saves: Vec<Vec<Saved>> = Vec::new();
        for (k, arm) in done.iter_mut().enumerate() {
            let mut body = self.arm_reverse(k, arm, &payload, &joined);
            // Sizes of the payload that the cotangent of a recursive sum needs.
            let sizes = self.flush_all(&arm.params);
            arm.forward.splice(0..0, sizes);
            let plan = self.plan(&body, &arm.forward, &[]);
            body.stms.splice(..0, plan.again);
            let passed = self.pass_through(arm, &mut body);
            let stored = plan.stored.into_iter().map(|v| Saved { slot: v, value: v, outside: false });
            let passed = passed.into_iter().map(|(slot, value)| Saved { slot, value, outside: true });
            saves.push(self.in_slots(&saves, stored.collect(), &mut body));
            saves[k].extend(passed);
            reverse.push(Lam { params: arm.params.clone(), body });
        }
        let forward = self.branch_forward(stm, z, &done, &saves, is_match);
        let exp = if is_match { Exp::Match(z, reverse) } else { if_of(z, reverse) };
        let out: Vec<Atom> = self.b.emit_all(exp, "x_bar").into_iter().map(Atom::Var).collect();
        *made = Some(Branch { forward, payload, frees, joined });
        Ok(out)
    }

    fn arm(
        &mut self,
        params: Vec<Var>,
        body: &Body,
        cts: &[Cotangent],
        frees: &[Var],
        env: &Env,
    ) -> Result<Arm, Unsupported> {
        let mut inner = Env { accs: env.accs.clone(), ..Env::default() };
        self.b.open();
        for (r, c) in body.result.iter().zip(cts) {
            self.contribute(&mut inner, *r, c.clone());
        }
        let rest = self.stms(&body.stms, &mut inner)?;
        let outs = params.iter().chain(frees).map(|&v| self.take(&mut inner, v)).collect();
        let reverse = self.b.close(Vec::new()).stms;
        let mut forward = self.flush_all(&params);
        forward.extend(rest);
        Ok(Arm { params, forward, result: body.result.clone(), reverse, outs })
    }

    /// The descriptor of what a `match` contributes to its scrutinee.
    fn payload(&self, z: Atom, done: &[Arm]) -> Desc {
        let ty = self.b.ty(z);
        let Some(variants) = self.b.program.variants(&ty).filter(|_| self.is_active(z)) else {
            return Desc::Absent;
        };
        let named = variants.iter().zip(done).map(|(v, arm)| Alternative {
            name: v.name.clone(),
            fields: arm.outs[..arm.params.len()].iter().map(|c| c.desc.clone()).collect(),
        });
        match choice(named.collect()) {
            Desc::Choice(_) if matches!(ty, Type::Named(_)) => self.full(&ty),
            structural => structural,
        }
    }

    /// The reverse code of an arm with its results converted.
    fn arm_reverse(&mut self, k: usize, arm: &Arm, payload: &Desc, joined: &[Desc]) -> Body {
        self.b.open();
        for stm in &arm.reverse {
            self.b.emit_stm(stm.clone());
        }
        let (fields, frees) = arm.outs.split_at(arm.params.len());
        let mut result = Vec::new();
        if !payload.is_absent() {
            let ty = payload.types().swap_remove(0);
            // Zero for a payload that gets nothing: then it may be added to anything.
            let exp = if fields.iter().all(Cotangent::is_absent) {
                Exp::Inject(ty, 0, Vec::new())
            } else {
                let whole = matches!(payload, Desc::Tree(_));
                let pairs = arm.params.iter().zip(fields);
                let values =
                    pairs.map(|(&v, c)| if whole { self.field_value(v, c) } else { pack(&mut self.b, c) });
                Exp::Inject(ty, k + 1, values.collect())
            };
            result.push(self.b.emit(exp, "x_bar"));
        }
        for (c, d) in frees.iter().zip(joined) {
            result.extend(coerce(&mut self.b, c, d));
        }
        if result.is_empty() {
            result.push(Atom::bool(false));
        }
        let mut body = self.b.close(result);
        prune_body(self.b.program, &mut body);
        body
    }

    /// The cotangent of a field of a recursive sum: whole, since its descriptor cannot say what is absent.
    fn field_value(&mut self, v: Var, c: &Cotangent) -> Atom {
        let ty = self.b.ty(v.into());
        if self.b.program.is_active(&ty) { self.value(&ty, c, v.into()) } else { pack(&mut self.b, c) }
    }

    /// Whole arrays of a repeated body around the branch that the arm's reverse code reads: they pass through the branch,
    /// so that the body stores them only where the arm was taken. Pairs of the name outside and the variable.
    fn pass_through(&mut self, arm: &Arm, reverse: &mut Body) -> Vec<(Var, Var)> {
        let mut read = free_vars_stms(&arm.forward, &arm.result);
        arm.params.iter().for_each(|p| {
            read.remove(p);
        });
        let here = |v: &Var| self.lifetimes.repeated.contains(v) && !self.lifetimes.lasting.contains(v);
        let whole = free_vars(reverse).into_iter().filter(|v| read.contains(v) && here(v));
        let whole: Vec<Var> = whole.collect();
        let passed: Vec<(Var, Var)> = whole.into_iter().map(|v| (self.b.fresh_like(v), v)).collect();
        substitute_body(reverse, &passed.iter().map(|&(slot, v)| (v, slot.into())).collect());
        self.passed.extend(passed.iter().copied());
        passed
    }

    /// What an arm saves, in the slots of earlier arms as far as there are some of the type: only one arm is taken.
    fn in_slots(&mut self, earlier: &[Vec<Saved>], mut stored: Vec<Saved>, reverse: &mut Body) -> Vec<Saved> {
        let ty = |s: &Self, v: Var| s.b.program.vars[v].ty.clone();
        let mut free: Vec<Var> = Vec::new();
        for save in earlier.iter().flatten() {
            if !save.outside && !free.contains(&save.slot) {
                free.push(save.slot);
            }
        }
        let mut subst = Subst::new();
        for save in &mut stored {
            let wanted = ty(self, save.value);
            if let Some(k) = free.iter().position(|slot| ty(self, *slot) == wanted) {
                save.slot = free.remove(k);
                subst.insert(save.value, save.slot.into());
            }
        }
        substitute_body(reverse, &subst);
        stored
    }

    /// The forward branch, which also returns what each arm saves. Outside, saved values have the names of their slots.
    fn branch_forward(
        &mut self,
        stm: &Stm,
        z: Atom,
        arms: &[Arm],
        saves: &[Vec<Saved>],
        is_match: bool,
    ) -> Stm {
        let mut slots: Vec<Var> = Vec::new();
        for save in saves.iter().flatten() {
            if !slots.contains(&save.slot) {
                slots.push(save.slot);
            }
        }
        let mut lams = Vec::new();
        for (k, arm) in arms.iter().enumerate() {
            self.b.open();
            for stm in &arm.forward {
                self.b.emit_stm(stm.clone());
            }
            let mut result = arm.result.clone();
            for slot in &slots {
                let saved = saves[k].iter().find(|save| save.slot == *slot);
                result.push(match saved {
                    None => {
                        let ty = self.b.program.vars[*slot].ty.clone();
                        self.placeholder(&ty)
                    }
                    Some(Saved { value, outside: true, .. }) if self.lifetimes.parts.contains(value) => {
                        self.owned_copy(*value)
                    }
                    Some(Saved { value, .. }) => (*value).into(),
                });
            }
            let body = self.b.close(result);
            let lam = Lam { params: arm.params.clone(), body };
            lams.push(copy_lam(self.b.program, &lam, &Subst::new()));
        }
        for slot in &slots {
            self.b.program.vars[*slot].origin.rule = Some(("fast_chad.tape", Some(*slot)));
        }
        let pat = stm.pat.iter().copied().chain(slots).collect();
        let exp = if is_match { Exp::Match(z, lams) } else { if_of(z, lams) };
        Stm { pat, exp }
    }

    /// A loop that stores what its reverse reads.
    pub(crate) fn loop_(
        &mut self,
        stm: &Stm,
        l: &Loop,
        cts: Vec<Cotangent>,
        env: &mut Env,
    ) -> Result<Vec<Stm>, Unsupported> {
        self.loop_by(stm, l, cts, env, Self::loop_reverse)
    }

    /// Collects the cotangents that go into a reverse loop, makes that loop, and gives away what comes out of it.
    pub(crate) fn loop_by(
        &mut self,
        stm: &Stm,
        l: &Loop,
        cts: Vec<Cotangent>,
        env: &mut Env,
        make: impl FnOnce(&mut Self, &Stm, &Loop, ReverseLoop<'_>, &mut Env, &mut Vec<Stm>) -> Reversed,
    ) -> Result<Vec<Stm>, Unsupported> {
        self.rule("fast_chad.loop", stm);
        let count = l.params.len();
        let state: Vec<usize> = (0..count).filter(|&j| self.is_active(l.params[j].0.into())).collect();
        let frees = self.loop_frees(l, env);
        let (arrays, scalars): (Vec<Var>, Vec<Var>) = frees.into_iter().partition(|&v| self.accumulates(v));

        // The cotangents of the final state, of what was stacked, and of free scalars (summed in the loop).
        let mut init = Vec::new();
        let mut descs = Vec::new();
        for &j in &state {
            let d = self.dense_of(stm.pat[j].into(), &cts[j]);
            init.extend(d.atoms);
            descs.push(d.desc);
        }
        for &v in &scalars {
            let d = self.dense_of(v.into(), &Cotangent::absent());
            init.extend(d.atoms);
            descs.push(d.desc);
        }
        let mut stacked = Vec::new();
        for (k, r) in l.body.result.iter().enumerate().skip(count) {
            if !cts[k].is_absent() {
                stacked.push((*r, self.dense_of(stm.pat[k].into(), &cts[k])));
            }
        }
        let trips = self.trips(stm, l);
        let mut forward = Vec::new();
        let out = self.with_accumulators(env, &arrays, |s, inner| {
            let parts = ReverseLoop { state: &state, scalars: &scalars, init, descs: &descs, stacked, trips };
            make(s, stm, l, parts, inner, &mut forward)
        })?;
        let targets = state.iter().map(|&j| l.params[j].1).chain(scalars.iter().map(|&v| v.into()));
        let targets: Vec<Atom> = targets.collect();
        for (x, c) in targets.into_iter().zip(split(&descs, &out)) {
            self.contribute(env, x, c);
        }
        Ok(forward)
    }

    /// Whether a free variable of a map or loop body gets an accumulator, not a value per iteration.
    pub(crate) fn accumulates(&self, v: Var) -> bool {
        fn walk(ty: &Type) -> bool {
            match ty {
                Type::Scalar(_) => false,
                Type::Tuple(items) => items.iter().any(walk),
                Type::Sum(_) | Type::Named(_) | Type::Array(_) | Type::Acc(_) => true,
            }
        }
        self.config.accumulate == Accumulate::Everything || walk(&self.b.program.vars[v].ty)
    }

    fn loop_frees(&self, l: &Loop, env: &Env) -> Vec<Var> {
        let mut frees = free_vars(&l.body);
        for (v, _) in &l.params {
            frees.remove(v);
        }
        if let LoopForm::For { i, .. } = &l.form {
            frees.remove(i);
        }
        self.free_active(frees, env)
    }

    /// The number of iterations; of a `while` loop, a result that it gets if it has none.
    fn trips(&mut self, stm: &Stm, l: &Loop) -> Atom {
        match &l.form {
            LoopForm::For { n, .. } => *n,
            LoopForm::While(_) if l.collect > 0 => stm.pat[stm.pat.len() - 1].into(),
            LoopForm::While(_) => self.b.fresh(Type::I64, "trips").into(),
        }
    }

    /// Emits the reverse loop and makes the forward one. Returns the cotangents of the first state and of the scalars.
    fn loop_reverse(
        &mut self,
        stm: &Stm,
        l: &Loop,
        parts: ReverseLoop<'_>,
        env: &mut Env,
        forward: &mut Vec<Stm>,
    ) -> Reversed {
        let ReverseLoop { state, scalars, init, descs, stacked, trips } = parts;
        let n = self.b.convert(trips, Scalar::I64);
        let r = self.b.fresh(Type::I64, "r");
        let mut params: Vec<(Var, Atom)> =
            init.iter().map(|&a| (self.b.fresh(self.b.program.atom_type(a), "x_bar"), a)).collect();
        let bars: Vec<Atom> = params.iter().map(|p| p.0.into()).collect();
        self.b.open();
        let last = self.b.op2(Op::Sub, n, Atom::i64(1));
        let index = self.b.op2(Op::Sub, last, r.into());
        self.b.open();
        let bars = split(descs, &bars);
        let (state_bars, scalar_bars) = bars.split_at(state.len());
        for (&j, c) in state.iter().zip(state_bars) {
            self.contribute(env, l.body.result[j], c.clone());
        }
        for (a, d) in stacked {
            let part = self.element(&d, &[index]);
            self.contribute(env, a, part);
        }
        let counted = matches!(l.form, LoopForm::For { .. });
        self.rounds.push(if counted { trips } else { Atom::i64(1) });
        let rest = self.stms(&l.body.stms, env);
        self.rounds.pop();
        let rest = rest?;
        self.rule("fast_chad.loop", stm);
        let result = self.iteration_bars(l, state, scalars, &descs[state.len()..], scalar_bars, env);
        let mut body = self.b.close(result);
        prune_body(self.b.program, &mut body);
        // What the forward loop must stack.
        let binders: Vec<Var> = l.params.iter().map(|p| p.0).collect();
        let mut fwd = self.flush_all(&binders);
        if let LoopForm::For { i, .. } = &l.form {
            fwd.extend(self.flush_all(&[*i]));
        }
        fwd.extend(rest);
        let Plan { stored: saves, again } = self.plan(&body, &fwd, &binders);
        body.stms.splice(..0, again);
        let tapes: Vec<Var> = saves
            .iter()
            .map(|&v| {
                let ty = self.tape_type(v);
                self.tape(Type::array(ty))
            })
            .collect();
        for (&v, &tape) in saves.iter().zip(&tapes) {
            self.load_element(v, tape, index);
        }
        if let LoopForm::For { i, .. } = &l.form
            && free_vars(&body).contains(i)
        {
            let to = self.b.scalar((*i).into());
            let value = self.b.convert(index, to);
            self.b.emit_to(vec![*i], Exp::Atom(value));
        }
        for stm in body.stms {
            self.b.emit_stm(stm);
        }
        let mut body = self.b.close(body.result);
        *forward = vec![self.loop_forward(stm, l, fwd, &saves, &tapes, trips)];
        if params.is_empty() {
            // A loop for its effects only still needs a result.
            params.push((self.b.fresh(Type::BOOL, "done"), Atom::bool(false)));
            body.result.push(Atom::bool(false));
        }
        let form = LoopForm::For { i: r, n };
        let reversed = Loop { params, form, body, collect: 0, attrs: LoopAttrs::default() };
        let out = self.b.emit_all(Exp::Loop(reversed), "x_bar");
        Ok(out.into_iter().take(init.len()).map(Atom::Var).collect())
    }

    /// What one reversed iteration hands to the one before: the cotangents of its state, dense, and the sums so far.
    pub(crate) fn iteration_bars(
        &mut self,
        l: &Loop,
        state: &[usize],
        scalars: &[Var],
        descs: &[Desc],
        before: &[Cotangent],
        env: &mut Env,
    ) -> Vec<Atom> {
        let mut result = Vec::new();
        for &j in state {
            let x = l.params[j].0;
            let c = self.take(env, x);
            result.extend(self.dense_of(x.into(), &c).atoms);
        }
        for ((&v, before), d) in scalars.iter().zip(before).zip(descs) {
            let c = self.take(env, v);
            let total = plus(&mut self.b, before.clone(), c);
            result.extend(coerce(&mut self.b, &total, d));
        }
        result
    }

    fn loop_forward(
        &mut self,
        stm: &Stm,
        l: &Loop,
        stms: Vec<Stm>,
        saves: &[Var],
        tapes: &[Var],
        trips: Atom,
    ) -> Stm {
        self.b.open();
        let stored = self.emit_saving(&stms, saves);
        let mut result = l.body.result.clone();
        result.extend(stored);
        let mut pat: Vec<Var> = stm.pat[..l.body.result.len()].to_vec();
        pat.extend(tapes);
        let mut collect = l.collect + saves.len();
        if let (LoopForm::While(_), Some(trips)) = (&l.form, trips.var()) {
            if collect == 0 {
                // Something must be stacked for the loop to count.
                collect = 1;
                result.push(Atom::Const(ScalarValue::Bool(false)));
                pat.push(self.b.fresh(Type::array(Type::BOOL), "ticks"));
            }
            pat.push(trips);
        }
        let body = self.b.close(result);
        let exp = Exp::Loop(Loop { body, collect, ..l.clone() });
        Stm { pat, exp: copy_exp(self.b.program, &exp, &Subst::new()) }
    }
}

/// What goes into the reverse loop.
pub(crate) struct ReverseLoop<'a> {
    /// The active ones of the loop's parameters.
    pub(crate) state: &'a [usize],
    /// Active free variables whose cotangents are summed in the loop.
    pub(crate) scalars: &'a [Var],
    /// The cotangents of the final state, and zeros for the sums.
    pub(crate) init: Vec<Atom>,
    pub(crate) descs: &'a [Desc],
    /// What the body stacks, with cotangents.
    pub(crate) stacked: Vec<(Atom, Cotangent)>,
    pub(crate) trips: Atom,
}

/// The cotangents of the first state and the sums.
pub(crate) type Reversed = Result<Vec<Atom>, Unsupported>;

fn if_of(z: Atom, arms: Vec<Lam>) -> Exp {
    let mut bodies = arms.into_iter().map(|lam| lam.body);
    Exp::If(z, bodies.next().unwrap_or_default(), bodies.next().unwrap_or_default())
}
