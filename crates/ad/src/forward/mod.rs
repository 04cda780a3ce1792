//! Forward mode: dual numbers on core.
//!
//! Source: T. Smeding, PhD thesis, section 2.2.3 (dual-numbers forward AD, figure 2.5), restated for core.
//! Judgement: `x : t ⊢ e : u` becomes `x : t, x_dot : T(t) ⊢ e, e_dot : u, T(u)`.
//! Types: `T(f32) = f32`, `T(f64) = f64`, `T((t, u)) = (T(t), T(u))`, `T([]t) = []T(t)`,
//!   `T(#a t | #b u) = #none | #a T(t) | #b T(u)`, discrete parts inside a product or sum are unit, discrete types have none.
//! Notation: `x` primal, `x_dot` tangent, `∂ᵢp` the i-th partial of a primitive; `0` a statically absent tangent.
//! Rules: (one per construct, in the order of `Exp`; `D[e]` is the tangent of `e`)
//!
//! ```text
//! D[x] = x_dot            D[p(xs)] = Σ ∂ᵢp(xs) · xᵢ_dot     D[(xs)] = (D[xs])     D[x.i] = x_dot.i     D[#c xs] = #c (D[xs])
//! control flow            every body also returns the tangents of its results; loop state carries its tangents
//! D[linear operation on arrays] = the same operation on tangents
//! D[map f as]             = map (D f) as as_dots
//! D[reduce ⊕]             = reduce of the dual operator (x, x_dot) ⊕ (y, y_dot) = (x ⊕ y, D[x ⊕ y]); likewise scan, hist
//! accumulators            each is accompanied by one for tangents
//! ```
//!
//! Differences from the paper: 1. pairs are split: primal and tangent are separate names, so primal code is untouched and
//!   inactive code is not duplicated. 2. Statically zero tangents are absent instead of computed.
//! Guarantee: work(jvp f) ≤ c · work(f), c independent of sizes; every primal statement is kept and followed by a constant
//!   number of statements per operand (tested in `tests/forward.rs` and by the growth tests).
//! Not supported: vjp jvp (expanded before).

mod many;
mod soacs;

use crate::activity::active_variables;
use crate::contract::{Algorithm, Bound, Mode, Status, Unsupported};
use crate::tangent::{Slope, emit_scaled, fresh_function_name, is_zero, partial_for, unit};
use pullback_base::Span;
use pullback_base::index::{IdMap, IdSet};
use pullback_core::{
    Atom, Body, Builder, Exp, Fun, FunId, Lam, Loop, LoopForm, Program, Stm, Type, Var, rename,
};
use pullback_prim::Prim;

/// The entry of the table of algorithms.
pub const ALGORITHM: Algorithm = Algorithm {
    id: "forward",
    title: "Dual numbers, forward",
    citation: "T. Smeding, PhD thesis, section 2.2.3",
    mode: Mode::Forward,
    bound: Bound::Constant,
    status: Status::Default,
    sources: &[include_str!("mod.rs"), include_str!("soacs.rs"), include_str!("many.rs")],
    transform: jvp,
    derivatives: None,
    many: Some(many::jvp_many),
    sizes: false,
};

/// `\xs -> ys` to `\xs x_dots -> ys y_dots`; see [`crate::contract`].
pub fn jvp(program: &mut Program, lam: &Lam, wanted: &[bool]) -> Result<Lam, Unsupported> {
    run(program, lam, wanted, None)
}

/// With one tangent for each value, or (`seeds`) as many as given.
fn run(program: &mut Program, lam: &Lam, wanted: &[bool], seeds: Option<Atom>) -> Result<Lam, Unsupported> {
    let mut lam = rename::copy_lam(program, lam, &IdMap::new());
    pullback_core::fused::split(program, &mut lam.body);
    pullback_core::choose::operators_choose(program, &mut lam.body);
    let (dots, active, callees) = (IdMap::new(), IdSet::new(), Vec::new());
    Forward { b: Builder::new(program), dots, active, callees, seeds }.lambda(&lam, wanted)
}

/// A function already given a derivative: the activity of its parameters, and the result.
struct Callee {
    of: FunId,
    active: Vec<bool>,
    derivative: FunId,
}

struct Forward<'p> {
    b: Builder<'p>,
    /// The tangent of every active variable in scope.
    dots: IdMap<Var, Atom>,
    active: IdSet<Var>,
    callees: Vec<Callee>,
    /// The number of directions, if there are many at once; see [`many`].
    seeds: Option<Atom>,
}

impl Forward<'_> {
    fn lambda(&mut self, lam: &Lam, wanted: &[bool]) -> Result<Lam, Unsupported> {
        let is_input = |p: &Var, w: &bool| {
            *w && match &self.b.program.vars[*p].ty {
                // A function may be given an accumulator.
                Type::Acc(t) => self.b.program.is_active(t),
                ty => self.b.program.is_active(ty),
            }
        };
        let inputs: Vec<Var> =
            lam.params.iter().zip(wanted).filter(|(p, w)| is_input(p, w)).map(|(p, _)| *p).collect();
        self.active.extend(active_variables(self.b.program, lam, &inputs));
        let mut params = lam.params.clone();
        for &x in &inputs {
            params.push(self.tangent_of(x)?);
        }
        let body = self.body_with(&lam.body, |this, result| {
            let dots = result.iter().filter_map(|&y| this.dense_dot(y)).collect();
            Ok(dots)
        })?;
        Ok(Lam { params, body })
    }

    fn unsupported<T>(&self, construct: &str, help: &str, span: Option<Span>) -> Result<T, Unsupported> {
        let (construct, help) = (construct.to_string(), help.to_string());
        Err(Unsupported { algorithm: ALGORITHM.id, construct, span, help })
    }
    /// The type of the tangent of a value of this type.
    fn tangent_type(&mut self, ty: &Type, span: Option<Span>) -> Result<Type, Unsupported> {
        if let Type::Acc(t) = ty {
            return Ok(Type::acc(self.tangent_type(t, span)?));
        }
        self.b.program.add_cotangent_types(ty);
        match self.b.program.cotangent(ty) {
            Ok(Some(t)) if self.seeds.is_some() && t.is_recursive() => {
                let construct = "a value of a recursive type that holds floats, in many directions at once";
                self.unsupported(construct, "take the directions one by one: map a jvp over them", span)
            }
            Ok(Some(t)) if self.seeds.is_some() => Ok(many::batched(&t)),
            Ok(Some(t)) => Ok(t),
            Ok(None) | Err(_) => Ok(Type::unit()),
        }
    }
    /// A fresh tangent variable for `x`, recorded.
    fn tangent_of(&mut self, x: Var) -> Result<Var, Unsupported> {
        let info = self.b.program.vars[x].clone();
        let ty = self.tangent_type(&info.ty, info.origin.span)?;
        let x_dot = self.b.fresh(ty, &format!("{}_dot", info.hint));
        self.dots.insert(x, x_dot.into());
        Ok(x_dot)
    }
    /// Fresh tangent variables for those of `xs` that are active.
    fn tangents_of(&mut self, xs: &[Var]) -> Result<Vec<Var>, Unsupported> {
        let active: Vec<Var> = xs.iter().copied().filter(|x| self.active.contains(x)).collect();
        active.into_iter().map(|x| self.tangent_of(x)).collect()
    }
    /// The tangent of an atom; `None`: statically zero (or discrete).
    fn dot(&self, a: Atom) -> Option<Atom> {
        a.var().and_then(|v| self.dots.get(&v).copied())
    }
    /// The tangent of an atom, zeros if it is statically zero; `None`: discrete.
    fn dense_dot(&mut self, a: Atom) -> Option<Atom> {
        self.dot(a).or_else(|| many::zero(&mut self.b, self.seeds, a))
    }
    fn dense_dots(&mut self, atoms: &[Atom]) -> Vec<Atom> {
        atoms.iter().filter_map(|&a| self.dense_dot(a)).collect()
    }
    fn dot_or_unit(&mut self, a: Atom) -> Atom {
        self.dense_dot(a).unwrap_or_else(|| unit(&mut self.b))
    }
    fn is_active(&self, v: Var) -> bool {
        self.active.contains(&v)
    }

    /// Transforms a body; its results are followed by what `extra` returns, emitted at its end.
    fn body_with(
        &mut self,
        body: &Body,
        extra: impl FnOnce(&mut Self, &[Atom]) -> Result<Vec<Atom>, Unsupported>,
    ) -> Result<Body, Unsupported> {
        let outer = self.b.origin.clone();
        let result = self.nested(|this| {
            for stm in &body.stms {
                this.stm(stm)?;
            }
            let mut result = body.result.clone();
            result.extend(extra(this, &body.result)?);
            Ok(result)
        });
        self.b.origin = outer;
        result
    }
    /// [`Builder::scope`] for a fallible closure over `self`.
    fn nested(
        &mut self,
        f: impl FnOnce(&mut Self) -> Result<Vec<Atom>, Unsupported>,
    ) -> Result<Body, Unsupported> {
        self.b.open();
        let result = f(self);
        let body = self.b.close(Vec::new());
        Ok(Body { result: result?, ..body })
    }
    /// Transforms a body whose results are bound to `pat`: appends the tangents of the active ones.
    fn branch(&mut self, body: &Body, pat: &[Var]) -> Result<Body, Unsupported> {
        self.body_with(body, |this, result| {
            let active: Vec<Atom> =
                pat.iter().zip(result).filter(|(v, _)| this.is_active(**v)).map(|(_, r)| *r).collect();
            Ok(this.dense_dots(&active))
        })
    }
    /// Emits `exp`, whose results are `pat` followed by the tangents of the active ones of `pat`.
    fn bind(&mut self, pat: &[Var], exp: Exp) -> Result<(), Unsupported> {
        let dots = self.tangents_of(pat)?;
        self.b.emit_to(pat.iter().copied().chain(dots).collect(), exp);
        Ok(())
    }
    /// Emits the primal statement unchanged and, if its single result is active, its tangent.
    fn linear(
        &mut self,
        stm: &Stm,
        tangent: impl FnOnce(&mut Self) -> Option<Exp>,
    ) -> Result<(), Unsupported> {
        self.b.emit_stm(stm.clone());
        let y = stm.pat[0];
        if self.is_active(y)
            && let Some(exp) = tangent(self)
        {
            let y_dot = self.tangent_of(y)?;
            self.b.emit_to(vec![y_dot], exp);
        }
        Ok(())
    }

    fn stm(&mut self, stm: &Stm) -> Result<(), Unsupported> {
        let origin = self.b.program.vars[stm.pat[0]].origin.clone();
        let span = origin.span;
        let tag = rule_tag(&stm.exp);
        self.b.origin = pullback_core::Origin { span, rule: Some((tag, Some(stm.pat[0]))) };
        let pat = &stm.pat;
        match &stm.exp {
            // [forward.atom] D[x] = x_dot
            Exp::Atom(a) => self.linear(stm, |this| this.dot(*a).map(Exp::Atom)),
            // [forward.prim] D[p(xs)] = Σ ∂ᵢp(xs) · xᵢ_dot
            Exp::Prim(prim, args) => self.prim(stm, *prim, args),
            // [forward.tuple] D[(x, y)] = (x_dot, y_dot)
            Exp::Tuple(items) => self
                .linear(stm, |this| Some(Exp::Tuple(items.iter().map(|&a| this.dot_or_unit(a)).collect()))),
            // [forward.proj] D[x.i] = x_dot.i
            Exp::Proj(a, i) => self.linear(stm, |this| Some(Exp::Proj(this.dot(*a)?, *i))),
            // [forward.inject] D[#c xs] = #c xs_dot, one alternative further because 0 is zero; 0 if no field has floats
            Exp::Inject(ty, k, fields) => {
                let target = self.tangent_type(ty, span)?;
                self.linear(stm, |this| {
                    if !fields.iter().any(|&a| this.b.program.is_active(&this.b.ty(a))) {
                        return Some(Exp::Inject(target, 0, Vec::new()));
                    }
                    Some(Exp::Inject(target, k + 1, fields.iter().map(|&a| this.dot_or_unit(a)).collect()))
                })
            }
            // [forward.match] the arm gets the payload's tangents from the tangent's equal alternative
            Exp::Match(z, arms) => self.match_(pat, *z, arms),
            // [forward.if] each branch returns its tangents too
            Exp::If(c, x, y) => {
                let exp = Exp::If(*c, self.branch(x, pat)?, self.branch(y, pat)?);
                self.bind(pat, exp)
            }
            // [forward.loop] the state carries its tangents
            Exp::Loop(l) => self.loop_(pat, l),
            // [forward.call] the derivative of a function is a function, also of a recursive one
            Exp::Call(f, args) => self.call(pat, *f, args),
            // [forward.array_lit] D[[xs]] = [xs_dot]
            Exp::ArrayLit(ty, items) => {
                let target = self.tangent_type(ty, span)?;
                self.linear(stm, |this| Some(Exp::ArrayLit(target, this.dense_dots(items))))
            }
            // [forward.index] D[a[ix]] = a_dot[ix]
            Exp::Index(a, ix) => self.linear(stm, |this| Some(Exp::Index(this.dot(*a)?, ix.clone()))),
            // [forward.slice] D[a[s]] = a_dot[s]
            Exp::Slice(a, s) => self.linear(stm, |this| Some(Exp::Slice(this.dot(*a)?, *s))),
            // [forward.update] D[a with [ix] = x] = a_dot with [ix] = x_dot
            Exp::Update(a, ix, x) => self
                .linear(stm, |this| Some(Exp::Update(this.dense_dot(*a)?, ix.clone(), this.dense_dot(*x)?))),
            // [forward.update_slice] likewise
            Exp::UpdateSlice(a, s, x) => {
                self.linear(stm, |this| Some(Exp::UpdateSlice(this.dense_dot(*a)?, *s, this.dense_dot(*x)?)))
            }
            // [forward.gather] D[gather a is] = gather a_dot is
            Exp::Gather(a, is) => self.linear(stm, |this| Some(Exp::Gather(this.dot(*a)?, *is))),
            // [forward.size] [forward.iota] discrete
            Exp::Size(..) | Exp::Iota(_) => self.linear(stm, |_| None),
            // [forward.replicate] D[replicate n x] = replicate n x_dot
            Exp::Replicate(n, a) => self.linear(stm, |this| Some(Exp::Replicate(n.clone(), this.dot(*a)?))),
            // [forward.rearrange] the same permutation
            Exp::Rearrange(perm, a) => {
                self.linear(stm, |this| Some(Exp::Rearrange(perm.clone(), this.dot(*a)?)))
            }
            // [forward.reshape] the same shape
            Exp::Reshape { shape, from, array } => self.linear(stm, |this| {
                Some(Exp::Reshape { shape: shape.clone(), from: *from, array: this.dot(*array)? })
            }),
            // [forward.concat] D[a ++ b] = a_dot ++ b_dot
            Exp::Concat(arrays) => self.linear(stm, |this| Some(Exp::Concat(this.dense_dots(arrays)))),
            // [forward.reverse] the same
            Exp::Reverse(a) => self.linear(stm, |this| Some(Exp::Reverse(this.dot(*a)?))),
            // [forward.rotate] the same
            Exp::Rotate(a, k) => self.linear(stm, |this| Some(Exp::Rotate(this.dot(*a)?, *k))),
            Exp::Soac(soac) => self.soac(pat, soac),
            // [forward.with_acc] one more accumulator for tangents beside each active one
            Exp::WithAcc(inits, lam) => self.with_acc(pat, inits, lam),
            // [forward.acc_view] the same view of the tangent accumulator
            Exp::AccView(acc, view) => {
                self.linear(stm, |this| Some(Exp::AccView(this.dot(*acc)?, view.clone())))
            }
            // [forward.acc_add] add the tangent to the tangent accumulator
            Exp::AccAdd(acc, ix, x) => {
                self.b.emit_stm(stm.clone());
                if let (Some(acc_dot), Some(x_dot)) = (self.dot(*acc), self.dot(*x)) {
                    self.b.emit(Exp::AccAdd(acc_dot, ix.clone(), x_dot), "unit");
                }
                Ok(())
            }
            // [forward.plus] D[x + y] = x_dot + y_dot
            Exp::Plus(x, y) => {
                self.linear(stm, |this| Some(Exp::Plus(this.dense_dot(*x)?, this.dense_dot(*y)?)))
            }
            // Not supported: expanded before this pass.
            Exp::Vjp { .. } | Exp::Jvp { .. } => {
                let help = "run the pass `differentiate` on the whole program: it expands the innermost derivative first";
                self.unsupported("a derivative that was not expanded before", help, span)
            }
            // [forward.custom] the rule is for reverse mode: the primal is differentiated
            Exp::Custom { primal, args, .. } => {
                for (&p, &a) in primal.params.iter().zip(args) {
                    self.stm(&Stm { pat: vec![p], exp: Exp::Atom(a) })?;
                }
                primal.body.stms.iter().try_for_each(|s| self.stm(s))?;
                let results = pat.iter().zip(&primal.body.result);
                results
                    .into_iter()
                    .try_for_each(|(&y, &r)| self.stm(&Stm { pat: vec![y], exp: Exp::Atom(r) }))
            }
            // [forward.marked] marks are for reverse mode and stay
            Exp::Marked(mark, body) => {
                let exp = Exp::Marked(*mark, self.branch(body, pat)?);
                self.bind(pat, exp)
            }
            // [forward.stop_gradient] zero
            Exp::StopGradient(_) => self.linear(stm, |_| None),
            // [forward.par] each body returns its tangents too
            Exp::Par(bodies) => self.par(pat, bodies),
            // [forward.assert] [forward.check] no value
            Exp::Assert(..) | Exp::Check(..) => self.linear(stm, |_| None),
        }
    }

    fn prim(&mut self, stm: &Stm, prim: Prim, args: &[Atom]) -> Result<(), Unsupported> {
        if let Some(k) = self.seeds {
            return self.prim_many(stm, prim, args, k);
        }
        let y = stm.pat[0];
        self.linear(stm, |this| {
            if let Prim::Convert(_, to) = prim {
                let x_dot = this.dot(args[0])?;
                return Some(Exp::Atom(this.b.convert(x_dot, to)));
            }
            let mut sum: Option<Atom> = None;
            let partials = prim.partials()?;
            for (i, &x) in args.iter().enumerate().take(partials.len()) {
                let partial = partial_for(prim, partials, args, i);
                let Some(x_dot) = this.dot(x).filter(|_| !is_zero(partial)) else { continue };
                let slope = Slope::new(this.b.program, (prim, prim.result()), (i, partial), args, y.into());
                let term = emit_scaled(&mut this.b, slope, x_dot);
                sum = Some(match sum {
                    Some(sum) => this.b.op2(pullback_prim::Op::Add, sum, term),
                    None => term,
                });
            }
            // All partials of active arguments are statically zero (floor): the tangent is zero.
            Some(Exp::Atom(sum.unwrap_or(Atom::Const(prim.result().zero()))))
        })
    }

    fn match_(&mut self, pat: &[Var], z: Atom, arms: &[Lam]) -> Result<(), Unsupported> {
        let z_dot = self.dot(z);
        let mut new_arms = Vec::new();
        for (k, arm) in arms.iter().enumerate() {
            let body = self.nested(|this| {
                if let Some(z_dot) = z_dot {
                    this.payload_tangents(z_dot, k, &arm.params)?;
                }
                let Body { stms, result } = this.branch(&arm.body, pat)?;
                stms.into_iter().for_each(|s| this.b.emit_stm(s));
                Ok(result)
            })?;
            new_arms.push(Lam { params: arm.params.clone(), body });
        }
        self.bind(pat, Exp::Match(z, new_arms))
    }
    /// Binds the tangents of the payload `params` of alternative `k`: those of `z_dot`, or zeros if it is `#none`.
    fn payload_tangents(&mut self, z_dot: Atom, k: usize, params: &[Var]) -> Result<(), Unsupported> {
        let active: Vec<usize> = (0..params.len()).filter(|&i| self.is_active(params[i])).collect();
        if active.is_empty() {
            return Ok(());
        }
        let seeds = self.seeds;
        let payload = self.b.match_(z_dot, |b, alternative, fields| {
            let part = |b: &mut Builder<'_>, &i: &usize| {
                if alternative == k + 1 {
                    fields[i].into()
                } else {
                    many::zero(b, seeds, params[i].into()).unwrap_or_else(|| unit(b))
                }
            };
            active.iter().map(|i| part(b, i)).collect()
        });
        for (&i, dot) in active.iter().zip(payload) {
            self.dots.insert(params[i], dot.into());
        }
        Ok(())
    }

    fn loop_(&mut self, pat: &[Var], l: &Loop) -> Result<(), Unsupported> {
        let state: Vec<Var> = l.params.iter().map(|p| p.0).collect();
        let mut params = l.params.clone();
        for &(v, init) in &l.params {
            if self.is_active(v) {
                let init_dot = self.dot_or_unit(init);
                params.push((self.tangent_of(v)?, init_dot));
            }
        }
        let form = match &l.form {
            LoopForm::For { i, n } => LoopForm::For { i: *i, n: *n },
            LoopForm::While(cond) => LoopForm::While(self.body_with(cond, |_, _| Ok(Vec::new()))?),
        };
        let (states, collected) = pat.split_at(state.len());
        let (collected, count) = collected.split_at(l.collect);
        let mut body = self.body_with(&l.body, |this, result| {
            let mut dots = Vec::new();
            for (v, &r) in state.iter().chain(collected).zip(result) {
                if this.is_active(*v) {
                    dots.push(this.dot_or_unit(r));
                }
            }
            Ok(dots)
        })?;
        // Order of a body's results: next state, tangents of the state, collected, tangents of collected.
        let extra = params.len() - state.len();
        let dots = body.result.split_off(state.len() + l.collect);
        let stacked = body.result.split_off(state.len());
        body.result.extend(&dots[..extra]);
        body.result.extend(stacked);
        body.result.extend(&dots[extra..]);
        let collect = l.collect + dots.len() - extra;
        let mut new_pat = states.to_vec();
        // The tangent of the final state exists iff the state's does.
        for (&v, s) in states.iter().zip(&state) {
            if self.is_active(*s) {
                self.active.insert(v);
                new_pat.push(self.tangent_of(v)?);
            }
        }
        new_pat.extend(collected);
        new_pat.extend(self.tangents_of(collected)?);
        new_pat.extend(count);
        self.b.emit_to(new_pat, Exp::Loop(Loop { params, form, body, collect, attrs: l.attrs.clone() }));
        Ok(())
    }

    fn call(&mut self, pat: &[Var], f: FunId, args: &[Atom]) -> Result<(), Unsupported> {
        let active: Vec<bool> = args.iter().map(|&a| self.dot(a).is_some()).collect();
        if !active.contains(&true) {
            self.b.emit_to(pat.to_vec(), Exp::Call(f, args.to_vec()));
            return Ok(());
        }
        let derivative = self.derivative_of(f, &active)?;
        let dots: Vec<Atom> = args.iter().filter_map(|&a| self.dot(a)).collect();
        let mut new_pat = pat.to_vec();
        for &y in pat {
            if self.b.program.is_active(&self.b.program.vars[y].ty) {
                self.active.insert(y);
                new_pat.push(self.tangent_of(y)?);
            }
        }
        let seeds = self.seeds.into_iter();
        let args = seeds.chain(args.iter().copied()).chain(dots).collect();
        self.b.emit_to(new_pat, Exp::Call(derivative, args));
        Ok(())
    }
    /// The derivative of function `f` for this activity of its parameters; made once.
    fn derivative_of(&mut self, f: FunId, active: &[bool]) -> Result<FunId, Unsupported> {
        if let Some(c) = self.callees.iter().find(|c| c.of == f && c.active == active) {
            return Ok(c.derivative);
        }
        let source = self.b.program.funs[f].clone();
        let tags: String = active.iter().map(|&a| if a { 'a' } else { 'i' }).collect();
        let mut results = source.results.clone();
        for t in &source.results {
            if self.b.program.is_active(t) {
                results.push(self.tangent_type(t, None)?);
            }
        }
        let name = fresh_function_name(self.b.program, &format!("{}_jvp_{tags}", source.name));
        let empty =
            Fun { name: name.clone(), params: Vec::new(), body: Body::default(), results, entry: None };
        let derivative = self.b.program.funs.push(empty);
        self.callees.push(Callee { of: f, active: active.to_vec(), derivative });
        let lam = rename::copy_lam(
            self.b.program,
            &Lam { params: source.params, body: source.body },
            &IdMap::new(),
        );
        let dots = std::mem::take(&mut self.dots);
        // The number of directions is one more parameter.
        let k = self.seeds.map(|_| self.b.fresh(Type::I64, "k"));
        let outer = std::mem::replace(&mut self.seeds, k.map(Atom::Var));
        let lam = self.lambda(&lam, active)?;
        self.seeds = outer;
        self.dots = dots;
        let fun = &mut self.b.program.funs[derivative];
        fun.params = k.into_iter().chain(lam.params).collect();
        fun.body = lam.body;
        Ok(derivative)
    }

    fn with_acc(&mut self, pat: &[Var], inits: &[Atom], lam: &Lam) -> Result<(), Unsupported> {
        let k = inits.len();
        let (finals, rest) = pat.split_at(k);
        let mut new_inits = inits.to_vec();
        for (&init, &p) in inits.iter().zip(&lam.params) {
            if self.is_active(p) {
                new_inits.push(self.dot_or_unit(init));
            }
        }
        let mut params = lam.params.clone();
        params.extend(self.tangents_of(&lam.params)?);
        let body = self.branch(&lam.body, rest)?;
        let mut new_pat = finals.to_vec();
        new_pat.extend(self.tangents_of(finals)?);
        new_pat.extend(rest);
        new_pat.extend(self.tangents_of(rest)?);
        self.b.emit_to(new_pat, Exp::WithAcc(new_inits, Lam { params, body }));
        Ok(())
    }

    fn par(&mut self, pat: &[Var], bodies: &[Body]) -> Result<(), Unsupported> {
        let mut rest = pat;
        let mut new_pat = Vec::new();
        let mut new_bodies = Vec::new();
        for body in bodies {
            let (these, others) = rest.split_at(body.result.len());
            rest = others;
            new_bodies.push(self.branch(body, these)?);
            new_pat.extend(these);
            new_pat.extend(self.tangents_of(these)?);
        }
        self.b.emit_to(new_pat, Exp::Par(new_bodies));
        Ok(())
    }
}

/// The tag of the rule for an expression.
fn rule_tag(exp: &Exp) -> &'static str {
    match exp {
        Exp::Atom(_) => "forward.atom",
        Exp::Prim(..) => "forward.prim",
        Exp::Tuple(_) => "forward.tuple",
        Exp::Proj(..) => "forward.proj",
        Exp::Inject(..) => "forward.inject",
        Exp::Match(..) => "forward.match",
        Exp::If(..) => "forward.if",
        Exp::Loop(_) => "forward.loop",
        Exp::Call(..) => "forward.call",
        Exp::ArrayLit(..) => "forward.array_lit",
        Exp::Index(..) => "forward.index",
        Exp::Slice(..) => "forward.slice",
        Exp::Update(..) => "forward.update",
        Exp::UpdateSlice(..) => "forward.update_slice",
        Exp::Gather(..) => "forward.gather",
        Exp::Size(..) => "forward.size",
        Exp::Iota(_) => "forward.iota",
        Exp::Replicate(..) => "forward.replicate",
        Exp::Rearrange(..) => "forward.rearrange",
        Exp::Reshape { .. } => "forward.reshape",
        Exp::Concat(_) => "forward.concat",
        Exp::Reverse(_) => "forward.reverse",
        Exp::Rotate(..) => "forward.rotate",
        Exp::Soac(s) => soacs::rule_tag(s),
        Exp::WithAcc(..) => "forward.with_acc",
        Exp::AccView(..) => "forward.acc_view",
        Exp::AccAdd(..) => "forward.acc_add",
        Exp::Plus(..) => "forward.plus",
        Exp::Vjp { .. } => "forward.vjp",
        Exp::Jvp { .. } => "forward.jvp",
        Exp::Custom { .. } => "forward.custom",
        Exp::Marked(..) => "forward.marked",
        Exp::StopGradient(_) => "forward.stop_gradient",
        Exp::Par(_) => "forward.par",
        Exp::Assert(..) => "forward.assert",
        Exp::Check(..) => "forward.check",
    }
}
