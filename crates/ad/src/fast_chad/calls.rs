//! The rule for calls: small functions are inlined, all others become pairs of functions.
//!
//! Source: T. Smeding, PhD thesis, section 7.4 (`D0`, `D0S`, `D2`), per function instead of per program; last in, first out.
//! `y = f(xs)` becomes `y, tape = f_fwd(xs)` in the forward pass and `xs_bar = f_rev(tape, y_bar)` in the reverse pass.
//! The tape is a recursive sum `#nothing | #call s..` of what one call saves, the tapes of the calls inside among it.
//! A pair is made once per function, use of its arguments and wanted results, so recursion, mutual recursion and long
//! chains of calls all end: code stays linear in the program.
//!
//! Cotangents of arguments are results of `f_rev`, arrays as options, so that a call that adds nothing makes no zeros. An
//! array that a function only reads (see [`Reads`]) is different: `f_rev` gets its open accumulator and adds there. So
//! a recursive function that looks at elements of an array pays for the elements and not for the array in every call.
//!
//! The tapes of functions that call themselves more than once may grow with the number of calls: some are given up and made
//! again (see [`super::kept`]), or needed no more, since `f_now` returns results and cotangents (see [`super::at_once`]).

use super::cotangent::{Cotangent, split, zero};
use super::dense::Place;
use super::desc::{Desc, optional};
use super::joint_reversal::AtOnce;
use super::locate::{Lends, Locate};
use super::reads::Reads;
use super::reverse::{Env, Final, Forward, Reverse};
use crate::contract::Unsupported;
use crate::tangent::{fresh_function_name, fresh_type_name};
use pullback_base::index::{IdMap, IdSet};
use pullback_core::prune::prune_body;
use pullback_core::rename::{Subst, copy_applied, copy_lam};
use pullback_core::traverse::{bound_vars, for_each_stm, leads_to};
use pullback_core::{Atom, Body, Exp, Fun, FunId, Lam, Stm, Type, TypeDef, Var, Variant};
use std::rc::Rc;

/// What is known about calls.
#[derive(Default)]
pub(crate) struct Calls {
    pairs: Vec<Pair>,
    recursive: IdMap<FunId, bool>,
    pub(crate) reads: Reads,
    /// The functions that have locations already.
    pub(crate) located: IdSet<FunId>,
    /// Whether calls of a function may run again instead of keeping their tapes.
    pub(crate) given_up: IdMap<FunId, bool>,
    /// How many statements were inlined.
    inlined: usize,
}

/// What the derivative of a call does about an argument.
#[derive(Clone, PartialEq)]
pub(crate) enum Role {
    /// Nothing.
    Constant,
    /// Its cotangent is returned.
    Returned,
    /// It has open accumulators, to which the reverse function adds.
    Accumulated,
    /// It is a source accumulator. The cotangent of its final value has this form and is read below so many indices.
    Read(Desc, usize),
}

/// The two functions for one use of a function.
#[derive(Clone)]
pub(crate) struct Pair {
    pub(crate) of: FunId,
    pub(crate) roles: Rc<[Role]>,
    pub(crate) wanted: Rc<[bool]>,
    tape: Type,
    forward: FunId,
    /// Where tapes may be given up: the forward function that counts.
    count: Option<FunId>,
    reverse: FunId,
    /// Where tapes may be given up, the function that needs none (see [`super::at_once`]), if there is one.
    now: Option<FunId>,
}

impl<'p> Reverse<'p> {
    /// The forward function that counts, for one with room.
    pub(crate) fn counts(&self, forward: FunId) -> Option<FunId> {
        self.calls.pairs.iter().find(|p| p.forward == forward).and_then(|p| p.count)
    }

    /// The type of the tape that a forward function returns, if the reverse function does not need it.
    pub(crate) fn tape_not_needed(&self, forward: FunId) -> Option<Type> {
        let pair = self.calls.pairs.iter().find(|p| p.forward == forward && p.now.is_some());
        pair.map(|p| p.tape.clone())
    }

    pub(crate) fn call(
        &mut self,
        stm: &Stm,
        f: FunId,
        args: &[Atom],
        cts: Vec<Cotangent>,
        env: &mut Env,
    ) -> Forward {
        if let Some(AtOnce { now, bars }) = &self.at_once
            && let Some(bars) = bars.get(&stm.pat[0])
        {
            return self.call_now(stm, *now, (f, args), bars.clone(), env);
        }
        if self.may_inline(f) {
            let fun = &self.b.program.funs[f];
            let lam = Lam { params: fun.params.clone(), body: fun.body.clone() };
            let body = copy_applied(self.b.program, &lam, args, &Subst::new());
            for v in bound_vars(&body) {
                self.add_type(v);
            }
            self.activate(&body, &[]);
            return self.inline(stm, body, cts, env);
        }
        let roles = self.roles(f, args);
        if roles.iter().all(|r| *r == Role::Constant) {
            return Ok(vec![stm.clone()]);
        }
        let wanted = cts.iter().map(|c| !c.is_absent()).collect();
        let reads = roles.iter().any(|r| matches!(r, Role::Read(..)));
        let given_up = !reads && self.may_give_up(f, args);
        let pair = self.pair(f, (roles.into(), wanted), given_up)?;
        self.rule("fast_chad.call", stm);
        let tape = self.b.fresh(pair.tape.clone(), "tape");
        let mut operands = vec![tape.into()];
        if given_up {
            operands.extend(args);
        }
        for (&y, c) in stm.pat.iter().zip(&cts).filter(|(_, c)| !c.is_absent()) {
            operands.extend(self.dense_of(y.into(), c).atoms);
        }
        let used = || args.iter().zip(pair.roles.iter());
        let mut open = Vec::new();
        for v in used().filter(|(_, r)| **r == Role::Accumulated).filter_map(|(a, _)| a.var()) {
            if !env.accs.contains_key(&v) && !open.contains(&v) {
                open.push(v);
            }
        }
        let out = self.with_accumulators(env, &open, |s, inner| {
            for (a, role) in used() {
                match (a.var(), role) {
                    (Some(v), Role::Accumulated) => {
                        operands.extend(inner.accs.get(&v).into_iter().flatten());
                    }
                    (Some(v), Role::Read(..)) => {
                        if let Some(whole) = s.finals.get(&v) {
                            operands.extend(whole.ct.atoms.iter().chain(&whole.path));
                        }
                    }
                    _ => {}
                }
            }
            let out = s.b.emit_all(Exp::Call(pair.reverse, operands), "x_bar");
            Ok(out.into_iter().map(Atom::Var).collect())
        })?;
        let returned: Vec<Atom> = used().filter(|(_, r)| **r == Role::Returned).map(|(a, _)| *a).collect();
        let descs: Vec<Desc> = returned.iter().map(|&a| optional(&self.stored_of(a))).collect();
        let count = descs.iter().map(Desc::count).sum();
        for (x, c) in returned.into_iter().zip(split(&descs, &out[..count])) {
            self.contribute(env, x, c);
        }
        let pat = stm.pat.iter().copied().chain([tape]).collect();
        let mut args = args.to_vec();
        self.b.open();
        if given_up {
            args.push(self.share());
        }
        self.b.emit_to(pat, Exp::Call(pair.forward, args));
        Ok(self.b.close(Vec::new()).stms)
    }

    /// Whether the function's body may stand for a call of it. If so, its size is counted.
    fn may_inline(&mut self, f: FunId) -> bool {
        let program = &*self.b.program;
        let leads_back = || leads_to(program, &program.funs[f].body, f);
        let recursive = *self.calls.recursive.entry(f).or_insert_with(leads_back);
        let mut size = 0;
        for_each_stm(&program.funs[f].body, &mut |_| size += 1);
        let fits = !recursive && self.calls.inlined + size <= self.config.max_inlined;
        if fits {
            self.calls.inlined += size;
        }
        fits
    }

    pub(crate) fn roles(&mut self, f: FunId, args: &[Atom]) -> Vec<Role> {
        let reads = self.calls.reads.of(self.b.program, f).to_vec();
        let role = |(k, &a): (usize, &Atom)| match a.var().and_then(|v| self.finals.get(&v)) {
            Some(whole) if !whole.ct.is_absent() => Role::Read(whole.ct.desc.clone(), whole.path.len()),
            Some(_) => Role::Constant,
            None if !self.is_active(a) => Role::Constant,
            None if reads[k] => Role::Accumulated,
            None => Role::Returned,
        };
        args.iter().enumerate().map(role).collect()
    }

    /// The pair for a function; made at its first use, and entered before its bodies are built.
    fn pair(
        &mut self,
        f: FunId,
        (roles, wanted): (Rc<[Role]>, Rc<[bool]>),
        given_up: bool,
    ) -> Result<Pair, Unsupported> {
        let known =
            |p: &&Pair| p.of == f && p.roles == roles && p.wanted == wanted && p.count.is_some() == given_up;
        if let Some(pair) = self.calls.pairs.iter().find(known) {
            return Ok(pair.clone());
        }
        let fun = self.b.program.funs[f].clone();
        let lam = copy_lam(self.b.program, &Lam { params: fun.params, body: fun.body }, &Subst::new());
        lam.params.iter().for_each(|&x| self.add_type(x));
        let name = fresh_type_name(self.b.program, &format!("{}_tape", fun.name));
        let nothing = Variant { name: "nothing".into(), fields: Vec::new() };
        let id = self.b.program.types.push(TypeDef { name, variants: vec![nothing.clone()] });
        let tape = Type::Named(id);
        let bars: Vec<Desc> = chosen(&lam.params, &roles, &Role::Returned)
            .map(|x| optional(&self.stored_of(x.into())))
            .collect();
        let mut results: Vec<Type> = bars.iter().flat_map(Desc::types).collect();
        if results.is_empty() {
            results.push(Type::BOOL);
        }
        let outputs: Vec<Type> = fun.results.iter().cloned().chain([tape.clone()]).collect();
        let count = given_up.then(|| {
            let outputs = outputs.iter().cloned().chain([Type::I64]).collect();
            self.declare(&format!("{}_count", fun.name), outputs)
        });
        let forward = self.declare(&format!("{}_fwd", fun.name), outputs);
        let reverse = self.declare(&format!("{}_rev", fun.name), results);
        let mut pair = Pair { of: f, roles, wanted, tape, forward, count, reverse, now: None };
        if given_up {
            let outer = self.enter_function();
            let now = self.now_function(&pair, &bars);
            self.leave_function(outer);
            pair.now = now?;
        }
        self.calls.pairs.push(pair.clone());
        let outer = self.enter_function();
        let saves = self.pair_bodies(&pair, lam, &bars)?;
        self.leave_function(outer);
        let fields = saves.iter().map(|&v| self.tape_type(v)).collect();
        self.b.program.types[id].variants = vec![nothing, Variant { name: "call".into(), fields }];
        Ok(pair)
    }

    pub(crate) fn declare(&mut self, wish: &str, results: Vec<Type>) -> FunId {
        let name = fresh_function_name(self.b.program, wish);
        let empty = Fun { name, params: Vec::new(), body: Body::default(), results, entry: None };
        self.b.program.funs.push(empty)
    }

    /// Builds both functions of a pair for `lam`, a copy of the source function. Returns what is saved.
    fn pair_bodies(&mut self, pair: &Pair, lam: Lam, bars: &[Desc]) -> Result<Vec<Var>, Unsupported> {
        let lam = &self.activated(pair, lam);
        self.unpaid.extend(lam.params.iter().copied().filter(|&x| self.b.ty(x.into()).rank() > 0));
        self.lifetimes = self.lifetimes_of(lam);
        // The body of a function runs many times, too.
        self.lifetimes.repeated.extend(self.lifetimes.parts.clone());
        if pair.count.is_some() {
            self.room = Some(self.new_room(&lam.body));
        } else {
            // A caller may write to what a function takes: then no array is known to last.
            self.lifetimes.lasting.clear();
            self.lifetimes.kept.clear();
        }
        let tape = self.b.fresh(pair.tape.clone(), "tape");
        let mut params = vec![tape];
        if pair.count.is_some() {
            params.extend(&lam.params);
        }
        self.b.open();
        let mut env = Env::default();
        for (&y, _) in lam.body.result.iter().zip(pair.wanted.iter()).filter(|(_, w)| **w) {
            let desc = self.stored_of(y);
            let atoms = self.parameters(&desc.types(), "y_bar", &mut params);
            self.contribute(&mut env, y, Cotangent::new(desc, atoms));
        }
        env.accs = Rc::new(self.accumulators(pair, lam, &mut params));
        for (&x, role) in lam.params.iter().zip(pair.roles.iter()) {
            if let Role::Read(desc, depth) = role {
                let atoms = self.parameters(&desc.types(), "final_bar", &mut params);
                let path = self.parameters(&vec![Type::I64; *depth], "i", &mut params);
                self.finals.insert(x, Final { ct: Cotangent::new(desc.clone(), atoms), path });
            }
        }
        let rest = self.stms(&lam.body.stms, &mut env)?;
        let mut result = self.returned(pair, lam, &mut env);
        if result.is_empty() {
            result.push(Atom::bool(false));
        }
        let mut reverse = self.b.close(result);
        prune_body(self.b.program, &mut reverse);
        let mut forward = self.flush_all(&lam.params);
        forward.extend(rest);
        // What the reverse function does not have at hand.
        let inputs = match self.room {
            Some(room) => vec![room.calls],
            None => lam.params.clone(),
        };
        let plan = self.plan(&reverse, &forward, &inputs);
        reverse.stms.splice(..0, plan.again);
        let saves = plan.stored;
        self.forward_function(pair, lam, &forward, &saves);
        self.reverse_function(pair, params, reverse, &saves, bars);
        Ok(saves)
    }

    /// The function of a pair with locations, where it is known what in it depends on what is differentiated.
    pub(crate) fn activated(&mut self, pair: &Pair, lam: Lam) -> Lam {
        let inputs = active_inputs(pair, &lam);
        let done = self.calls.located.contains(&pair.of);
        let how = if done { Locate::Done } else { Locate::Repeated };
        self.located(lam, &inputs, (how, Lends::new()))
    }

    /// Parameters for the accumulators that a function is given.
    pub(crate) fn accumulators(
        &mut self,
        pair: &Pair,
        lam: &Lam,
        params: &mut Vec<Var>,
    ) -> IdMap<Var, Vec<Atom>> {
        let mut accs = IdMap::new();
        for x in chosen(&lam.params, &pair.roles, &Role::Accumulated) {
            let types = self.stored_of(x.into()).types().into_iter().map(Type::acc).collect::<Vec<_>>();
            let atoms = self.parameters(&types, "acc", params);
            accs.insert(x, atoms);
        }
        accs
    }

    /// The cotangents that a function returns.
    pub(crate) fn returned(&mut self, pair: &Pair, lam: &Lam, env: &mut Env) -> Vec<Atom> {
        let mut result = Vec::new();
        for x in chosen(&lam.params, &pair.roles, &Role::Returned) {
            let c = self.take(env, x);
            let ty = self.b.ty(x.into());
            result.extend(self.optional_of(&ty, &c, &Place::new(x.into())));
        }
        result
    }

    /// Fresh parameters of these types.
    pub(crate) fn parameters(&mut self, types: &[Type], hint: &str, params: &mut Vec<Var>) -> Vec<Atom> {
        let fresh: Vec<Var> = types.iter().map(|t| self.b.fresh(t.clone(), hint)).collect();
        params.extend(&fresh);
        fresh.into_iter().map(Atom::Var).collect()
    }

    fn forward_function(&mut self, pair: &Pair, lam: &Lam, stms: &[Stm], saves: &[Var]) {
        let (mut params, result) = (lam.params.clone(), lam.body.result.clone());
        if let (Some(count), Some(room)) = (pair.count, self.room) {
            self.b.open();
            self.b.emit_to(vec![room.calls], Exp::Atom(Atom::i64(0)));
            let out = self.counting(&pair.tape, result.len(), |s, total| {
                let stms = s.counted(stms, total);
                let stored = s.emit_saving(&stms, saves);
                result.iter().copied().chain(stored).collect()
            });
            let body = self.b.close(out);
            self.define(count, &params, body);
        }
        self.b.open();
        let stored = match self.room {
            Some(room) => {
                params.push(room.calls);
                let stms = self.by_room(stms);
                self.emit_saving(&stms, saves)
            }
            None => self.emit_saving(stms, saves),
        };
        let tape = self.b.emit(Exp::Inject(pair.tape.clone(), 1, stored), "tape");
        let body = self.b.close(result.into_iter().chain([tape]).collect());
        self.define(pair.forward, &params, body);
    }

    /// Gives a function a copy of this body.
    fn define(&mut self, f: FunId, params: &[Var], body: Body) {
        let copy = copy_lam(self.b.program, &Lam { params: params.to_vec(), body }, &Subst::new());
        let fun = &mut self.b.program.funs[f];
        (fun.params, fun.body) = (copy.params, copy.body);
    }

    /// The reverse function opens the tape. Its first alternative stands where a tape was given up, which is made again, or where
    /// no call was made; then it is never opened.
    fn reverse_function(&mut self, pair: &Pair, params: Vec<Var>, body: Body, saves: &[Var], bars: &[Desc]) {
        self.b.open();
        self.b.open();
        let nothing = if let Some(now) = pair.now {
            let operands = params[1..].iter().map(|&x| x.into()).collect();
            let out = self.b.emit_all(Exp::Call(now, operands), "x_bar");
            let results = self.b.program.funs[pair.of].results.len();
            let mut x_bars: Vec<Atom> = out[results..].iter().map(|&v| v.into()).collect();
            if x_bars.is_empty() {
                x_bars.push(Atom::bool(false));
            }
            x_bars
        } else if pair.count.is_some() {
            let count = self.b.program.funs[pair.of].params.len();
            let args = params[1..=count].iter().map(|&x| x.into()).chain([Atom::i64(-1)]).collect();
            let out = self.b.emit_all(Exp::Call(pair.forward, args), "again");
            let tape = out.last().map_or(Atom::bool(false), |&v| v.into());
            let operands = std::iter::once(tape).chain(params[1..].iter().map(|&x| x.into())).collect();
            let out = self.b.emit_all(Exp::Call(pair.reverse, operands), "x_bar");
            out.into_iter().map(Atom::Var).collect()
        } else {
            let mut zeros: Vec<Atom> = bars.iter().flat_map(|d| zero(&mut self.b, d)).collect();
            if zeros.is_empty() {
                zeros.push(Atom::bool(false));
            }
            zeros
        };
        let nothing = self.b.close(nothing);
        self.b.open();
        let mut fields = Vec::new();
        for &v in saves {
            let ty = self.tape_type(v);
            if self.b.program.vars[v].ty == ty {
                fields.push(v);
            } else {
                let stored = self.b.fresh(ty, "tape");
                self.load(v, stored.into());
                fields.push(stored);
            }
        }
        body.stms.into_iter().for_each(|stm| self.b.emit_stm(stm));
        let call = self.b.close(body.result);
        let arms = vec![Lam { params: Vec::new(), body: nothing }, Lam { params: fields, body: call }];
        let out = self.b.emit_all(Exp::Match(params[0].into(), arms), "x_bar");
        let body = self.b.close(out.into_iter().map(Atom::Var).collect());
        let fun = &mut self.b.program.funs[pair.reverse];
        (fun.params, fun.body) = (params, body);
    }

    /// A cotangent in a form whose zero needs no shapes: arrays as options.
    fn optional_of(&mut self, ty: &Type, c: &Cotangent, place: &Place) -> Vec<Atom> {
        let stored = self.stored(ty);
        let to = optional(&stored);
        match (ty, &to) {
            _ if c.desc == to => c.atoms.clone(),
            (_, Desc::Absent) => Vec::new(),
            (Type::Tuple(items), _) => {
                let parts = items.iter().zip(c.components(items.len())).enumerate();
                parts.flat_map(|(i, (t, part))| self.optional_of(t, &part, &place.component(i))).collect()
            }
            (Type::Array(_), _) if c.is_absent() => zero(&mut self.b, &to),
            (Type::Array(_), _) => {
                let atoms = self.dense(ty, c, place);
                super::cotangent::coerce(&mut self.b, &Cotangent::new(stored, atoms), &to)
            }
            _ => self.dense(ty, c, place),
        }
    }
}

/// The parameters whose cotangents are returned or accumulated.
fn active_inputs(pair: &Pair, lam: &Lam) -> Vec<Var> {
    let active = |role: &Role| matches!(role, Role::Returned | Role::Accumulated);
    lam.params.iter().zip(pair.roles.iter()).filter(|(_, r)| active(r)).map(|(v, _)| *v).collect()
}

/// The parameters with a role.
fn chosen<'a>(params: &'a [Var], roles: &'a [Role], role: &'a Role) -> impl Iterator<Item = Var> + 'a {
    params.iter().zip(roles).filter(move |(_, r)| *r == role).map(|(v, _)| *v)
}
