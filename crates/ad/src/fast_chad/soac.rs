//! Rules for reduce, scan, histogram and scatter.
//!
//! Source: Schenck et al., SC 2022, section IV (reduce, scan, scatter); Schenck et al., IFL 2023 (scan, histogram);
//! T. Smeding, PhD thesis, section 7.4 (fold). The rule is chosen by the operator: sums, minima and maxima, any other
//! operator without active free variables (two scans), and everything else as the loop that it means, which is right for
//! every operator and sequential.

use super::config::Mutation;
use super::ct::Ct;
use super::desc::Desc;
use super::reverse::{Env, Reverse};
use crate::activity::active_variables;
use crate::contract::Unsupported;
use pullback_core::rename::{Subst, copy_applied, copy_lam};
use pullback_core::traverse::{for_each_stm, free_vars_lam};
use pullback_core::{Atom, Body, Builder, Exp, Lam, LoopForm, Soac, Stm, Type, Var};
use pullback_prim::{Op, Prim, Scalar};

/// What an operator does to a component.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Add,
    Min,
    Max,
    Other,
}

/// The kind of each component of an operator.
fn kinds(lam: &Lam) -> Vec<Kind> {
    let count = lam.params.len() / 2;
    let kind = |k: usize| -> Kind {
        let pair = [lam.params[k], lam.params[count + k]];
        let Some(Atom::Var(result)) = lam.body.result.get(k).copied() else { return Kind::Other };
        let Some(stm) = lam.body.stms.iter().find(|s| s.pat == [result]) else { return Kind::Other };
        operation(&stm.exp, pair)
    };
    (0..lam.body.result.len()).map(kind).collect()
}

/// The kind of `exp` as an operator on the two variables.
fn operation(exp: &Exp, [x, y]: [Var; 2]) -> Kind {
    let is_pair = |args: &[Atom]| args == [x.into(), y.into()] || args == [y.into(), x.into()];
    match exp {
        Exp::Prim(Prim::Op(op, s), args) if is_pair(args) && s.is_float() => match op {
            Op::Add => Kind::Add,
            Op::Min => Kind::Min,
            Op::Max => Kind::Max,
            _ => Kind::Other,
        },
        Exp::Plus(a, b) if is_pair(&[*a, *b]) => Kind::Add,
        // An operator on arrays that adds elementwise is an addition.
        Exp::Soac(Soac::Map { lam, arrays, .. }) if is_pair(arrays) => match kinds(lam)[..] {
            [Kind::Add] => Kind::Add,
            _ => Kind::Other,
        },
        _ => Kind::Other,
    }
}

/// Whether the derivative does not depend on how an associative operator is bracketed. At a kink it may: `min` and `max`
/// give everything to their first argument on a tie, and other brackets have other ties.
fn is_smooth(body: &Body) -> bool {
    let mut smooth = true;
    for_each_stm(body, &mut |stm| {
        smooth &= match &stm.exp {
            Exp::If(..) | Exp::Match(..) => false,
            Exp::Prim(Prim::Op(op, s), _) => {
                !s.is_float()
                    || !matches!(
                        op,
                        Op::Abs
                            | Op::Sgn
                            | Op::Min
                            | Op::Max
                            | Op::Floor
                            | Op::Ceil
                            | Op::Round
                            | Op::Trunc
                            | Op::Mod
                            | Op::Rem
                            | Op::Quot
                            | Op::Pow
                            | Op::Hypot
                            | Op::Select
                    )
            }
            Exp::Loop(l) => matches!(l.form, LoopForm::For { .. }),
            _ => true,
        };
    });
    smooth
}

impl<'p> Reverse<'p> {
    #[allow(clippy::too_many_arguments, reason = "the parts of one construct")]
    pub(crate) fn reduce(
        &mut self,
        stm: &Stm,
        width: Atom,
        lam: &Lam,
        neutral: &[Atom],
        arrays: &[Atom],
        cts: Vec<Ct>,
        env: &mut Env,
    ) -> Result<Vec<Stm>, Unsupported> {
        self.rule("fast_chad.reduce", stm);
        let kinds = kinds(lam);
        let closed = self.free_active(free_vars_lam(lam), &Env::default()).is_empty()
            && !neutral.iter().any(|&a| self.is_active(a))
            && !self.touches(&stm.exp);
        if closed && !kinds.contains(&Kind::Other) {
            let mut forward = vec![stm.clone()];
            for (k, kind) in kinds.into_iter().enumerate() {
                if cts[k].is_absent() || !self.is_active(arrays[k]) {
                    continue;
                }
                let (y, a, c) = (stm.pat[k], arrays[k], &cts[k]);
                match kind {
                    Kind::Add | Kind::Other => self.reduce_sum(y, width, a, c, env),
                    Kind::Min | Kind::Max => {
                        forward.extend(self.reduce_extremum(y, width, neutral[k], a, c, env));
                    }
                }
            }
            return Ok(forward);
        }
        if closed && is_smooth(&lam.body) {
            self.reduce_general(stm, width, lam, neutral, arrays, cts, env)?;
            return Ok(vec![stm.clone()]);
        }
        let (lam, neutral, arrays) = (lam.clone(), neutral.to_vec(), arrays.to_vec());
        self.rewrite(stm, cts, env, |b| {
            let out = b.for_loop(width, &neutral, |b, i, state| {
                let elements = arrays.iter().map(|&a| b.index(a, &[i.into()]));
                let elements: Vec<Atom> = elements.collect();
                let args: Vec<Atom> = state.iter().map(|&v| v.into()).chain(elements).collect();
                applied(b, &lam, &args)
            });
            out.into_iter().map(Atom::Var).collect()
        })
    }

    /// `y = Σ a`: every element gets `y_bar`.
    fn reduce_sum(&mut self, y: Var, width: Atom, a: Atom, c: &Ct, env: &mut Env) {
        let d = self.dense_of(y.into(), c);
        let atoms = d.atoms.iter().map(|&x| self.b.emit(Exp::Replicate(vec![width], x), "x_bar")).collect();
        self.contribute(env, a, Ct::new(Desc::Array(Box::new(d.desc)), atoms));
    }

    /// `y = min a`: the first element that attains `y` gets `y_bar`; nobody, if the neutral element does.
    fn reduce_extremum(
        &mut self,
        y: Var,
        width: Atom,
        neutral: Atom,
        a: Atom,
        c: &Ct,
        env: &mut Env,
    ) -> Vec<Stm> {
        self.b.open();
        let is = self.b.emit(Exp::Iota(width), "is");
        let hits = self.b.map(width, &[a, is], |b, p| {
            let hit = b.op2(Op::Eq, p[0].into(), y.into());
            vec![b.select(hit, p[1].into(), width)]
        });
        let least =
            self.b.lam(&[Type::I64, Type::I64], "i", |b, p| vec![b.op2(Op::Min, p[0].into(), p[1].into())]);
        let first = Soac::Reduce {
            width,
            lam: least,
            neutral: vec![width],
            arrays: vec![hits[0].into()],
            commutative: true,
        };
        let first = self.b.emit(Exp::Soac(first), "winner");
        let none = self.b.op2(Op::Eq, first, width);
        let by_neutral = self.b.op2(Op::Eq, neutral, y.into());
        let nobody = self.b.op2(Op::Or, none, by_neutral);
        let mut winner = self.b.select(nobody, Atom::i64(-1), first);
        if self.mutant(Mutation::MinimumWinnerFirst) {
            winner = self.b.select(nobody, Atom::i64(-1), Atom::i64(0));
        }
        let forward = self.b.close(Vec::new()).stms;
        self.contribute(env, a, Ct::hot(width, winner, true, c.clone()));
        forward
    }

    /// Any closed operator: `a_bar[i]` is the derivative of `\x -> (l[i] ⊕ x) ⊕ r[i]` at `a[i]`, where `l[i]` and `r[i]`
    /// combine what stands to the left and to the right of `i`.
    #[allow(clippy::too_many_arguments, reason = "the parts of one construct")]
    fn reduce_general(
        &mut self,
        stm: &Stm,
        width: Atom,
        lam: &Lam,
        neutral: &[Atom],
        arrays: &[Atom],
        cts: Vec<Ct>,
        env: &mut Env,
    ) -> Result<(), Unsupported> {
        let lefts = self.scan_of(lam.clone(), width, neutral, arrays);
        let reversed: Vec<Atom> = arrays.iter().map(|&a| self.b.emit(Exp::Reverse(a), "rev")).collect();
        let mut flipped = lam.clone();
        flipped.params.rotate_left(neutral.len());
        let rights = self.scan_of(flipped, width, neutral, &reversed);
        let seeds: Vec<Ct> = stm.pat.iter().zip(&cts).map(|(&y, c)| self.dense_of(y.into(), c)).collect();
        let active: Vec<Atom> = arrays.iter().copied().filter(|&a| self.is_active(a)).collect();

        let is = self.b.emit(Exp::Iota(width), "is");
        let i = self.b.fresh(Type::I64, "i");
        let elems: Vec<Type> = arrays.iter().map(|&a| self.b.elem(a)).collect();
        let xs: Vec<Var> = elems.into_iter().map(|t| self.b.fresh(t, "x")).collect();
        self.b.open();
        let left = self
            .neighbour(i.into(), Atom::i64(0), neutral, &lefts, |b| b.op2(Op::Sub, i.into(), Atom::i64(1)));
        let last = self.b.op2(Op::Sub, width, Atom::i64(1));
        let mut right = self.neighbour(i.into(), last, neutral, &rights, |b| {
            let after = b.op2(Op::Sub, last, i.into());
            b.op2(Op::Sub, after, Atom::i64(1))
        });
        if self.mutant(Mutation::ReduceRightLost) {
            right = neutral.to_vec();
        }
        self.b.open();
        let args: Vec<Atom> = left.into_iter().chain(xs.iter().map(|&x| x.into())).collect();
        let middle = applied(&mut self.b, lam, &args);
        let args: Vec<Atom> = middle.into_iter().chain(right).collect();
        let results = applied(&mut self.b, lam, &args);
        let body = self.b.close(results);
        let inputs: Vec<Var> =
            xs.iter().zip(arrays).filter(|(_, a)| active.contains(a)).map(|(&x, _)| x).collect();
        let whole = Lam { params: xs.clone(), body: body.clone() };
        let more = active_variables(self.b.program, &whole, &inputs);
        self.active.extend(more);
        let mut inner = Env::default();
        for (a, c) in body.result.iter().zip(seeds) {
            self.contribute(&mut inner, *a, c);
        }
        self.rerun(&body.stms, &xs, &mut inner)?;
        let mut outs = Vec::new();
        for &x in &xs {
            let c = self.take(&mut inner, x);
            outs.push(c);
        }
        let result: Vec<Atom> = outs.iter().flat_map(|c| c.atoms.clone()).collect();
        if result.is_empty() {
            self.b.close(result);
            return Ok(());
        }
        let body = self.b.close(result);
        let params: Vec<Var> = std::iter::once(i).chain(xs).collect();
        let operands = std::iter::once(is).chain(arrays.iter().copied()).collect();
        let map = Soac::Map { width, lam: Lam { params, body }, arrays: operands };
        let atoms = self.b.emit_all(Exp::Soac(map), "x_bar");
        let mut atoms = atoms.into_iter().map(Atom::Var);
        for (&a, c) in arrays.iter().zip(outs) {
            let mine: Vec<Atom> = atoms.by_ref().take(c.atoms.len()).collect();
            self.contribute(env, a, Ct::new(super::desc::array(c.desc), mine));
        }
        Ok(())
    }

    fn scan_of(&mut self, lam: Lam, width: Atom, neutral: &[Atom], arrays: &[Atom]) -> Vec<Atom> {
        let lam = copy_lam(self.b.program, &lam, &Subst::new());
        let scan = Soac::Scan { width, lam, neutral: neutral.to_vec(), arrays: arrays.to_vec() };
        self.b.emit_all(Exp::Soac(scan), "partial").into_iter().map(Atom::Var).collect()
    }

    /// `if i == edge then neutral else arrays[at]`
    fn neighbour(
        &mut self,
        i: Atom,
        edge: Atom,
        neutral: &[Atom],
        arrays: &[Atom],
        at: impl FnOnce(&mut Builder<'p>) -> Atom,
    ) -> Vec<Atom> {
        let first = self.b.op2(Op::Eq, i, edge);
        let out = self.b.if_(
            first,
            |_| neutral.to_vec(),
            |b| {
                let at = at(b);
                arrays.iter().map(|&a| b.index(a, &[at])).collect()
            },
        );
        out.into_iter().map(Atom::Var).collect()
    }

    #[allow(clippy::too_many_arguments, reason = "the parts of one construct")]
    pub(crate) fn scan(
        &mut self,
        stm: &Stm,
        width: Atom,
        lam: &Lam,
        neutral: &[Atom],
        arrays: &[Atom],
        cts: Vec<Ct>,
        env: &mut Env,
    ) -> Result<Vec<Stm>, Unsupported> {
        self.rule("fast_chad.scan", stm);
        let sums = kinds(lam).iter().all(|&k| k == Kind::Add)
            && !neutral.iter().any(|&a| self.is_active(a))
            && !self.touches(&stm.exp);
        if !sums {
            let (lam, neutral, arrays) = (lam.clone(), neutral.to_vec(), arrays.to_vec());
            return self.rewrite(stm, cts, env, |b| scan_loop(b, width, &lam, &neutral, &arrays));
        }
        for (k, (&y, c)) in stm.pat.iter().zip(&cts).enumerate() {
            if c.is_absent() || !self.is_active(arrays[k]) {
                continue;
            }
            let d = self.dense_of(y.into(), c);
            let mut atoms = Vec::new();
            for &x in &d.atoms {
                let operator = self.addition(x);
                let forgotten = self.mutant(Mutation::ScanNotReversed);
                let x = if forgotten { x } else { self.b.emit(Exp::Reverse(x), "x_bar") };
                let zero = self.dense_of(neutral[k], &Ct::absent()).atoms;
                let sums = self.scan_of(operator, width, &zero, &[x])[0];
                atoms.push(if forgotten { sums } else { self.b.emit(Exp::Reverse(sums), "x_bar") });
            }
            self.contribute(env, arrays[k], Ct::new(d.desc, atoms));
        }
        Ok(vec![stm.clone()])
    }

    /// The operator that adds elements of an array of cotangents.
    fn addition(&mut self, array: Atom) -> Lam {
        let elem = self.b.elem(array);
        let scalar = elem.scalar().is_some();
        self.b.lam(&[elem.clone(), elem], "x_bar", |b, p| {
            let (x, y) = (p[0].into(), p[1].into());
            vec![if scalar { b.op2(Op::Add, x, y) } else { b.emit(Exp::Plus(x, y), "x_bar") }]
        })
    }

    pub(crate) fn hist(
        &mut self,
        stm: &Stm,
        width: Atom,
        lam: &Lam,
        (neutral, dst, indices, values): (&[Atom], &[Atom], Atom, &[Atom]),
        cts: Vec<Ct>,
        env: &mut Env,
    ) -> Result<Vec<Stm>, Unsupported> {
        self.rule("fast_chad.hist", stm);
        let scalars = dst.iter().all(|&a| self.b.elem(a).scalar().is_some());
        let sums = kinds(lam).iter().all(|&k| k == Kind::Add);
        if !(scalars && sums) || neutral.iter().any(|&a| self.is_active(a)) || self.touches(&stm.exp) {
            let (lam, dst, values) = (lam.clone(), dst.to_vec(), values.to_vec());
            return self.rewrite(stm, cts, env, |b| hist_loop(b, width, &lam, &dst, indices, &values));
        }
        for (k, c) in cts.iter().enumerate() {
            if c.is_absent() {
                continue;
            }
            let d = self.dense_of(stm.pat[k].into(), c);
            if self.is_active(values[k]) {
                let gathered = self.gather_or_zero(width, d.atoms[0], indices);
                self.contribute(env, values[k], Ct::new(d.desc.clone(), vec![gathered]));
            }
            self.contribute(env, dst[k], d);
        }
        Ok(vec![stm.clone()])
    }

    /// `array[indices[i]]`, zero where that is out of range; elements are scalars.
    fn gather_or_zero(&mut self, width: Atom, array: Atom, indices: Atom) -> Atom {
        let shift = self.mutant(Mutation::HistogramOffByOne);
        let scalar = self.b.elem(array).scalar().unwrap_or(Scalar::F64);
        let size = self.b.size(array, 0);
        let out = self.b.map(width, &[indices], |b, p| {
            let mut i: Atom = p[0].into();
            if shift {
                i = b.op2(Op::Add, i, Atom::i64(1));
            }
            let inside = in_range(b, i, size);
            let out = b.if_(inside, |b| vec![b.index(array, &[i])], |_| vec![Atom::Const(scalar.zero())]);
            vec![out[0].into()]
        });
        out[0].into()
    }

    /// Of several writes to a cell the last one wins: it alone gets the cell's cotangent.
    #[allow(clippy::too_many_arguments, reason = "the parts of one construct")]
    pub(crate) fn scatter(
        &mut self,
        stm: &Stm,
        width: Atom,
        dst: Atom,
        indices: Atom,
        values: Atom,
        c: &Ct,
        env: &mut Env,
    ) -> Result<Vec<Stm>, Unsupported> {
        self.rule("fast_chad.scatter", stm);
        if self.b.elem(dst).scalar().is_none() {
            let body = |b: &mut Builder<'_>| scatter_loop(b, width, dst, indices, values);
            return self.rewrite(stm, vec![c.clone()], env, body);
        }
        let y = stm.pat[0];
        let d = self.dense_of(y.into(), c);
        let bar = d.atoms[0];
        let scalar = self.b.elem(bar).scalar().unwrap_or(Scalar::F64);
        let zero = Atom::Const(scalar.zero());
        if self.is_active(values) {
            let size = self.b.size(bar, 0);
            let none = self.b.emit(Exp::Replicate(vec![size], Atom::i64(-1)), "none");
            let is = self.b.emit(Exp::Iota(width), "is");
            let winners = Soac::Scatter { width, dst: none, indices, values: is };
            let winners = self.b.emit(Exp::Soac(winners), "winners");
            let all = self.mutant(Mutation::ScatterLosersCount);
            let out = self.b.map(width, &[indices, is], |b, p| {
                let (i, me) = (p[0].into(), p[1].into());
                let inside = in_range(b, i, size);
                let read = |b: &mut Builder<'_>| {
                    let winner = b.index(winners, &[i]);
                    let won = b.op2(Op::Eq, winner, me);
                    let x = b.index(bar, &[i]);
                    vec![if all { x } else { b.select(won, x, zero) }]
                };
                let out = b.if_(inside, read, |_| vec![zero]);
                vec![out[0].into()]
            });
            self.contribute(env, values, Ct::new(d.desc.clone(), vec![out[0].into()]));
        }
        if self.is_active(dst) {
            let zeros = self.b.emit(Exp::Replicate(vec![width], zero), "zeros");
            let cleared = Soac::Scatter { width, dst: bar, indices, values: zeros };
            let kept = self.mutant(Mutation::ScatterKept);
            let cleared = if kept { bar } else { self.b.emit(Exp::Soac(cleared), "x_bar") };
            self.contribute(env, dst, Ct::new(d.desc, vec![cleared]));
        }
        Ok(vec![stm.clone()])
    }
}

/// Emits a copy of the operator applied to arguments; returns its results.
fn applied(b: &mut Builder<'_>, lam: &Lam, args: &[Atom]) -> Vec<Atom> {
    let Body { stms, result } = copy_applied(b.program, lam, args, &Subst::new());
    for stm in stms {
        b.emit_stm(stm);
    }
    result
}

/// `0 <= i < n`
pub(crate) fn in_range(b: &mut Builder<'_>, i: Atom, n: Atom) -> Atom {
    let below = b.op2(Op::Lt, i, n);
    let above = b.op2(Op::Le, Atom::i64(0), i);
    b.op2(Op::And, above, below)
}

/// The scan as a loop that stacks its state.
fn scan_loop(b: &mut Builder<'_>, width: Atom, lam: &Lam, neutral: &[Atom], arrays: &[Atom]) -> Vec<Atom> {
    let out = b.for_loop(width, neutral, |b, i, state| {
        let elements: Vec<Atom> = arrays.iter().map(|&a| b.index(a, &[i.into()])).collect();
        let args: Vec<Atom> = state.iter().map(|&v| v.into()).chain(elements).collect();
        let next = applied(b, lam, &args);
        next.iter().chain(&next).copied().collect()
    });
    out.into_iter().skip(neutral.len()).map(Atom::Var).collect()
}

/// The histogram as a loop that updates in place.
fn hist_loop(
    b: &mut Builder<'_>,
    width: Atom,
    lam: &Lam,
    dst: &[Atom],
    indices: Atom,
    values: &[Atom],
) -> Vec<Atom> {
    let size = b.size(dst[0], 0);
    let out = b.for_loop(width, dst, |b, k, state| {
        let i = b.index(indices, &[k.into()]);
        let inside = in_range(b, i, size);
        let state: Vec<Atom> = state.iter().map(|&v| v.into()).collect();
        let keep = state.clone();
        let add = |b: &mut Builder<'_>| {
            let before: Vec<Atom> = state.iter().map(|&a| b.index(a, &[i])).collect();
            let new: Vec<Atom> = values.iter().map(|&a| b.index(a, &[k.into()])).collect();
            let args: Vec<Atom> = before.into_iter().chain(new).collect();
            let after = applied(b, lam, &args);
            let pairs = state.iter().zip(after);
            pairs.map(|(&a, x)| b.emit(Exp::Update(a, vec![i], x), "dst")).collect()
        };
        b.if_(inside, add, |_| keep).into_iter().map(Atom::Var).collect()
    });
    out.into_iter().map(Atom::Var).collect()
}

/// The scatter as a loop that updates in place.
fn scatter_loop(b: &mut Builder<'_>, width: Atom, dst: Atom, indices: Atom, values: Atom) -> Vec<Atom> {
    let size = b.size(dst, 0);
    let out = b.for_loop(width, &[dst], |b, k, state| {
        let state: Atom = state[0].into();
        let i = b.index(indices, &[k.into()]);
        let inside = in_range(b, i, size);
        let write = |b: &mut Builder<'_>| {
            let x = b.index(values, &[k.into()]);
            vec![b.emit(Exp::Update(state, vec![i], x), "dst")]
        };
        b.if_(inside, write, |_| vec![state]).into_iter().map(Atom::Var).collect()
    });
    out.into_iter().map(Atom::Var).collect()
}
