//! Rules for reduce.
//!
//! Source: Schenck et al., SC 2022, section IV (special operators, two scans); Schenck et al., IFL 2023, section 3.2
//! (vectorised operators); T. Smeding, PhD thesis, section 7.4 (fold: partial results are stored and replayed).
//! An operator is split into parts that do not depend on each other; each part gets the first rule that fits:
//! addition · product · choice of one argument (minimum, argmax ..) · element by element: by columns · closed and smooth,
//! of steady cost: two scans · every other one: its partial results are stored and replayed.
//! Guarantee: the forward part computes the same values in the same order as the source.

use super::config::ReduceRule;
use super::cotangent::Cotangent;
use super::desc::Desc;
use super::operator::{Choice, Fold, Kind, NOBODY, applied, float_scalar, kinds};
use super::reverse::{Env, Reverse};
use crate::activity::active_variables;
use crate::contract::Unsupported;
use crate::regularity::may_be_bracketed_anew;
use crate::tangent::{emit_product, product_of_quotients};
use pullback_core::rename::{Subst, copy_lam};
use pullback_core::traverse::free_vars_lam;
use pullback_core::{Atom, Builder, Exp, Lam, Soac, Stm, Type, Var};
use pullback_prim::{Op, Scalar, ScalarValue};

/// The forward part of a rule; nothing where it is the statement itself.
pub(crate) type Changed = Result<Option<Vec<Stm>>, Unsupported>;

impl<'p> Reverse<'p> {
    pub(crate) fn reduce(
        &mut self,
        stm: &Stm,
        fold: &Fold,
        cts: Vec<Cotangent>,
        env: &mut Env,
    ) -> Result<Vec<Stm>, Unsupported> {
        if self.touches(&stm.exp) {
            return self.replay_in_loop(stm, fold, cts, env);
        }
        self.by_groups(stm, fold, cts, env, Self::reduce_group)
    }

    /// Applies a rule to each part of an operator that does not depend on the other parts.
    pub(crate) fn by_groups(
        &mut self,
        stm: &Stm,
        fold: &Fold,
        cts: Vec<Cotangent>,
        env: &mut Env,
        rule: impl Fn(&mut Self, &Stm, &Fold, Vec<Cotangent>, &mut Env) -> Changed,
    ) -> Result<Vec<Stm>, Unsupported> {
        let groups = fold.groups();
        if groups.len() == 1 {
            return Ok(rule(self, stm, fold, cts, env)?.unwrap_or_else(|| vec![stm.clone()]));
        }
        let mut forward = Vec::new();
        let mut rest = Vec::new();
        for group in groups {
            let mine: Vec<Cotangent> = group.iter().map(|&k| cts[k].clone()).collect();
            let (part, sub) = self.part(stm, fold, &group);
            match rule(self, &sub, &part, mine, env)? {
                Some(changed) => forward.extend(changed),
                None => rest.extend(group),
            }
        }
        rest.sort_unstable();
        if rest.len() == fold.count() {
            forward.push(stm.clone());
        } else if !rest.is_empty() {
            forward.push(self.part(stm, fold, &rest).1);
        }
        Ok(forward)
    }

    fn part(&mut self, stm: &Stm, fold: &Fold, components: &[usize]) -> (Fold, Stm) {
        let part = fold.part(self.b.program, components);
        let sub = Stm { pat: components.iter().map(|&k| stm.pat[k]).collect(), exp: part.exp() };
        let body = pullback_core::Body { stms: vec![sub.clone()], result: Vec::new() };
        self.activate(&body, &[]);
        (part, sub)
    }

    fn reduce_group(&mut self, stm: &Stm, fold: &Fold, cts: Vec<Cotangent>, env: &mut Env) -> Changed {
        if cts.iter().all(Cotangent::is_absent) {
            return Ok(None);
        }
        self.rule("fast_chad.reduce", stm);
        let inert = !fold.neutral.iter().any(|&e| self.is_active(e));
        let closed = inert && self.free_active(free_vars_lam(&fold.lam), &Env::default()).is_empty();
        let kinds = kinds(&fold.lam);
        if kinds.iter().all(|&k| k == Kind::Add) {
            for (k, c) in cts.iter().enumerate().filter(|(_, c)| !c.is_absent()) {
                self.reduce_sum(stm, fold, k, c, env);
            }
            return Ok(None);
        }
        if kinds == [Kind::Mul] && closed && self.config.reduce == ReduceRule::Chosen {
            self.reduce_product(stm, fold, &cts, env)?;
            return Ok(None);
        }
        if inert && let Some(choice) = self.choice(fold) {
            return Ok(Some(self.reduce_choice(stm, fold, choice, &cts, env)));
        }
        if let Some(columns) = fold.by_columns() {
            return Ok(Some(self.rewrite(stm, cts, env, |b| columns.interchanged(b))?));
        }
        let steady = closed && may_be_bracketed_anew(self.b.program, &fold.lam);
        let two_scans = match self.config.reduce {
            ReduceRule::Chosen => steady,
            ReduceRule::TwoScans => closed,
            ReduceRule::Prefixes | ReduceRule::Blocks => false,
        };
        if two_scans {
            let parts = self.two_scans(fold, stm, &cts)?;
            for (&a, c) in fold.arrays.iter().zip(parts) {
                self.contribute(env, a, c);
            }
            return Ok(None);
        }
        Ok(Some(self.replay(stm, fold, cts, env)?))
    }

    /// `y = Σ a`: every element gets `y_bar`, and so does what the sum starts from.
    fn reduce_sum(&mut self, stm: &Stm, fold: &Fold, k: usize, c: &Cotangent, env: &mut Env) {
        let d = self.dense_of(stm.pat[k].into(), c);
        self.contribute(env, fold.neutral[k], d.clone());
        if self.is_active(fold.arrays[k]) {
            let copies =
                d.atoms.iter().map(|&x| self.b.emit(Exp::Replicate(vec![fold.width], x), "x_bar")).collect();
            self.contribute(env, fold.arrays[k], Cotangent::new(super::desc::array(d.desc), copies));
        }
    }

    /// The operator that also carries an index along, if it chooses one of its arguments.
    pub(crate) fn choice(&mut self, fold: &Fold) -> Option<Choice> {
        let active: Vec<usize> = (0..fold.count()).filter(|&k| self.is_active(fold.left(k).into())).collect();
        fold.choosing(&mut self.b, &active)
    }

    /// The operation that also returns which element was chosen (-1: the neutral one): an operand and the operation.
    pub(crate) fn with_index(&mut self, fold: &Fold, choice: Choice) -> (Stm, Fold) {
        let Choice { lam, by_index } = choice;
        let is = self.b.fresh(Type::array(Type::I64), "is");
        let iota = Stm { pat: vec![is], exp: Exp::Iota(fold.width) };
        let mut indexed = Fold { lam, ..fold.clone() };
        indexed.neutral.push(Atom::i64(-1));
        indexed.arrays.push(is.into());
        // Where a tie is decided by who stands first, the order matters.
        indexed.commutative = fold.commutative.map(|before| before && by_index);
        (iota, indexed)
    }

    /// `y = a[j]`, the element chosen: it alone gets `y_bar`; nobody does if it is the neutral element, or nothing was a number.
    fn reduce_choice(
        &mut self,
        stm: &Stm,
        fold: &Fold,
        choice: Choice,
        cts: &[Cotangent],
        env: &mut Env,
    ) -> Vec<Stm> {
        let by_index = choice.by_index;
        let (iota, indexed) = self.with_index(fold, choice);
        let found = self.b.fresh(Type::I64, "winner");
        let pat = stm.pat.iter().copied().chain([found]).collect();
        let mut forward = vec![iota, Stm { pat, exp: indexed.exp() }];
        let winner = if by_index {
            self.b.open();
            let nobody = self.b.op2(Op::Eq, found.into(), Atom::i64(NOBODY));
            let winner = self.b.select(nobody, Atom::i64(-1), found.into());
            forward.extend(self.b.close(Vec::new()).stms);
            winner
        } else {
            found.into()
        };
        for (&a, c) in fold.arrays.iter().zip(cts) {
            self.contribute(env, a, Cotangent::hot(fold.width, winner, true, c.clone()));
        }
        forward
    }

    /// `y = Π a`. No zero among the elements, which `y` tells: `a_bar = y_bar · y / a`. One zero: with the product `p`
    /// of the others, `y_bar · p` for the zero and `y_bar · p / a · zero` elsewhere. That is zero, and its derivatives
    /// are not. More zeros, or a product out of range: as any other operator.
    fn reduce_product(
        &mut self,
        stm: &Stm,
        fold: &Fold,
        cts: &[Cotangent],
        env: &mut Env,
    ) -> Result<(), Unsupported> {
        let (y, a) = (stm.pat[0].into(), fold.arrays[0]);
        let d = self.dense_of(y, &cts[0]);
        let (Some(s), &[d]) = (float_scalar(&self.b.ty(y)), &d.atoms[..]) else { return Ok(()) };
        let width = fold.width;
        // The product of the other elements may be infinite where that of all is not.
        let of_quotient = product_of_quotients(self.b.program, s);
        self.b.open();
        let quotients = self.b.map(width, &[a], |b, x| {
            let others = b.op2(Op::Div, y, x[0].into());
            vec![emit_product(b, of_quotient, others, d)]
        });
        let without_zero = self.b.close(vec![quotients[0].into()]);
        self.b.open();
        let (zeros, others, sum) = product_without_zeros(&mut self.b, s, fold);
        let ordinary = is_ordinary(&mut self.b, s, others);
        let single = self.b.op2(Op::Eq, zeros, Atom::i64(1));
        let one_zero = self.b.op2(Op::And, single, ordinary);
        self.b.open();
        let zero = Atom::Const(s.zero());
        let parts = self.b.map(width, &[a], |b, x| {
            let x = x[0].into();
            let here = b.op2(Op::Eq, x, zero);
            let out = b.if_(
                here,
                |b| vec![b.op2(Op::Mul, d, others)],
                |b| {
                    let others = b.op2(Op::Div, others, x);
                    let others = emit_product(b, of_quotient, others, sum);
                    vec![b.op2(Op::Mul, d, others)]
                },
            );
            vec![out[0].into()]
        });
        let with_one = self.b.close(vec![parts[0].into()]);
        self.b.open();
        let general = self.two_scans(fold, stm, cts)?;
        let otherwise = self.b.close(general.into_iter().flat_map(|c| c.atoms).collect());
        let out = self.b.emit_all(Exp::If(one_zero, with_one, otherwise), "x_bar");
        let with_zeros = self.b.close(vec![out[0].into()]);
        let ordinary = is_ordinary(&mut self.b, s, y);
        let out = self.b.emit_all(Exp::If(ordinary, without_zero, with_zeros), "x_bar");
        self.contribute(env, a, Cotangent::new(Desc::Array(Box::new(Desc::Real(s))), vec![out[0].into()]));
        Ok(())
    }

    /// Any closed operator: `a_bar[i]` is the derivative of `\x -> (l[i] ⊕ x) ⊕ r[i]` at `a[i]`, where `l[i]` and `r[i]`
    /// combine what stands to the left and to the right of `i`. Returns the cotangents of the arrays.
    fn two_scans(
        &mut self,
        fold: &Fold,
        stm: &Stm,
        cts: &[Cotangent],
    ) -> Result<Vec<Cotangent>, Unsupported> {
        let Fold { width, lam, neutral, arrays, .. } = fold;
        let width = *width;
        let lefts = self.scan_of(lam.clone(), width, neutral, arrays);
        let reversed: Vec<Atom> = arrays.iter().map(|&a| self.b.emit(Exp::Reverse(a), "rev")).collect();
        let mut flipped = lam.clone();
        flipped.params.rotate_left(neutral.len());
        let rights = self.scan_of(flipped, width, neutral, &reversed);
        let seeds: Vec<Cotangent> =
            stm.pat.iter().zip(cts).map(|(&y, c)| self.dense_of(y.into(), c)).collect();

        let is = self.b.emit(Exp::Iota(width), "is");
        let i = self.b.fresh(Type::I64, "i");
        let elems: Vec<Type> = arrays.iter().map(|&a| self.b.elem(a)).collect();
        let xs: Vec<Var> = elems.into_iter().map(|t| self.b.fresh(t, "x")).collect();
        self.b.open();
        let left = self
            .neighbour(i.into(), Atom::i64(0), neutral, &lefts, |b| b.op2(Op::Sub, i.into(), Atom::i64(1)));
        let last = self.b.op2(Op::Sub, width, Atom::i64(1));
        let right = self.neighbour(i.into(), last, neutral, &rights, |b| {
            let after = b.op2(Op::Sub, last, i.into());
            b.op2(Op::Sub, after, Atom::i64(1))
        });
        self.b.open();
        let args: Vec<Atom> = left.into_iter().chain(xs.iter().map(|&x| x.into())).collect();
        let middle = applied(&mut self.b, lam, &args);
        let args: Vec<Atom> = middle.into_iter().chain(right).collect();
        let results = applied(&mut self.b, lam, &args);
        let body = self.b.close(results);
        let inputs: Vec<Var> =
            xs.iter().zip(arrays).filter(|(_, a)| self.is_active(**a)).map(|(&x, _)| x).collect();
        let whole = Lam { params: xs.clone(), body: body.clone() };
        let more = active_variables(self.b.program, &whole, &inputs);
        self.active.extend(more);
        let mut inner = Env::default();
        for (a, c) in body.result.iter().zip(seeds) {
            self.contribute(&mut inner, *a, c);
        }
        self.rerun(&body.stms, &xs, &mut inner)?;
        let outs: Vec<Cotangent> = xs.iter().map(|&x| self.take(&mut inner, x)).collect();
        let result: Vec<Atom> = outs.iter().flat_map(|c| c.atoms.clone()).collect();
        if result.is_empty() {
            self.b.close(result);
            return Ok(outs);
        }
        let body = self.b.close(result);
        let params: Vec<Var> = std::iter::once(i).chain(xs).collect();
        let operands = std::iter::once(is).chain(arrays.iter().copied()).collect();
        let map = Soac::Map { width, lam: Lam { params, body }, arrays: operands };
        let atoms = self.b.emit_all(Exp::Soac(map), "x_bar");
        let mut atoms = atoms.into_iter().map(Atom::Var);
        let arrays = outs.into_iter().map(|c| {
            let mine: Vec<Atom> = atoms.by_ref().take(c.atoms.len()).collect();
            Cotangent::new(super::desc::array(c.desc), mine)
        });
        Ok(arrays.collect())
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

    /// The partial results of the bracketing that is used are stored and replayed: right for every operator, also with
    /// free variables, kinks, and costs that depend on values. They are the prefixes of a scan where scans of the
    /// operator are reversed in parallel, else the states of a loop.
    fn replay(
        &mut self,
        stm: &Stm,
        fold: &Fold,
        cts: Vec<Cotangent>,
        env: &mut Env,
    ) -> Result<Vec<Stm>, Unsupported> {
        if self.config.reduce == ReduceRule::Blocks {
            return self.replay_in_blocks(stm, fold, cts, env);
        }
        if !self.is_scanned_in_parallel(fold) {
            return self.replay_in_loop(stm, fold, cts, env);
        }
        self.rewrite(stm, cts, env, |b| {
            let lam = copy_lam(b.program, &fold.lam, &Subst::new());
            let prefixes = Fold { lam, commutative: None, ..fold.clone() }.exp();
            let prefixes: Vec<Atom> = b.emit_all(prefixes, "prefix").into_iter().map(Atom::Var).collect();
            let some = b.op2(Op::Lt, Atom::i64(0), fold.width);
            let out = b.if_(
                some,
                |b| {
                    let last = b.op2(Op::Sub, fold.width, Atom::i64(1));
                    prefixes.iter().map(|&p| b.index(p, &[last])).collect()
                },
                |_| fold.neutral.clone(),
            );
            out.into_iter().map(Atom::Var).collect()
        })
    }

    fn replay_in_loop(
        &mut self,
        stm: &Stm,
        fold: &Fold,
        cts: Vec<Cotangent>,
        env: &mut Env,
    ) -> Result<Vec<Stm>, Unsupported> {
        self.rule("fast_chad.reduce", stm);
        self.rewrite(stm, cts, env, |b| fold_range(b, fold, &fold.neutral, Atom::i64(0), fold.width))
    }

    /// About √n blocks, folded in parallel, then their totals: the bracketing is another one than the interpreter's.
    fn replay_in_blocks(
        &mut self,
        stm: &Stm,
        fold: &Fold,
        cts: Vec<Cotangent>,
        env: &mut Env,
    ) -> Result<Vec<Stm>, Unsupported> {
        self.rewrite(stm, cts, env, |b| {
            let one = Atom::i64(1);
            let root = b.convert(fold.width, Scalar::F64);
            let root = b.op1(Op::Sqrt, root);
            let root = b.convert(root, Scalar::I64);
            let size = b.op2(Op::Max, root, one);
            let rounded = b.op2(Op::Add, fold.width, size);
            let rounded = b.op2(Op::Sub, rounded, one);
            let blocks = b.op2(Op::Div, rounded, size);
            let is = b.emit(Exp::Iota(blocks), "is");
            let totals = b.map(blocks, &[is], |b, j| {
                let start = b.op2(Op::Mul, j[0].into(), size);
                let left = b.op2(Op::Sub, fold.width, start);
                let length = b.op2(Op::Min, left, size);
                let first: Vec<Atom> = fold.arrays.iter().map(|&a| b.index(a, &[start])).collect();
                let next = b.op2(Op::Add, start, one);
                let length = b.op2(Op::Sub, length, one);
                fold_range(b, fold, &first, next, length)
            });
            let totals = totals.into_iter().map(Atom::Var).collect();
            let of_totals = Fold { arrays: totals, ..fold.clone() };
            fold_range(b, &of_totals, &fold.neutral, Atom::i64(0), blocks)
        })
    }
}

/// `((init ⊕ a[start]) ⊕ a[start + 1]) ⊕ ..`, of `length` elements.
fn fold_range(b: &mut Builder<'_>, fold: &Fold, init: &[Atom], start: Atom, length: Atom) -> Vec<Atom> {
    let out = b.for_loop(length, init, |b, i, state| {
        let i = if start == Atom::i64(0) { i.into() } else { b.op2(Op::Add, start, i.into()) };
        let elements = fold.arrays.iter().map(|&a| b.index(a, &[i]));
        let elements: Vec<Atom> = elements.collect();
        let args: Vec<Atom> = state.iter().map(|&v| v.into()).chain(elements).collect();
        applied(b, &fold.lam, &args)
    });
    out.into_iter().map(Atom::Var).collect()
}

/// The number of zeros, the product of everything else, and the sum of the zeros (so that it varies with them).
fn product_without_zeros(b: &mut Builder<'_>, s: Scalar, fold: &Fold) -> (Atom, Atom, Atom) {
    let (zero, one) = (Atom::Const(s.zero()), Atom::Const(s.one()));
    let parts = b.map(fold.width, &fold.arrays, |b, x| {
        let x = x[0].into();
        let here = b.op2(Op::Eq, x, zero);
        let count = b.select(here, Atom::i64(1), Atom::i64(0));
        vec![count, b.select(here, one, x), b.select(here, x, zero)]
    });
    let types = [Type::I64, Type::Scalar(s), Type::Scalar(s)];
    let types: Vec<Type> = types.iter().chain(&types).cloned().collect();
    let lam = b.lam(&types, "x", |b, p| {
        let mut both = |op, k: usize| b.op2(op, p[k].into(), p[k + 3].into());
        vec![both(Op::Add, 0), both(Op::Mul, 1), both(Op::Add, 2)]
    });
    let neutral = vec![Atom::i64(0), fold.neutral[0], zero];
    let arrays = parts.into_iter().map(Atom::Var).collect();
    let all = Soac::Reduce { width: fold.width, lam, neutral, arrays, commutative: false };
    let out = b.emit_all(Exp::Soac(all), "product");
    (out[0].into(), out[1].into(), out[2].into())
}

/// Whether a number is finite, not zero, and precise.
fn is_ordinary(b: &mut Builder<'_>, s: Scalar, x: Atom) -> Atom {
    let (least, largest) = match s {
        Scalar::F32 => (ScalarValue::F32(f32::MIN_POSITIVE), ScalarValue::F32(f32::MAX)),
        _ => (ScalarValue::F64(f64::MIN_POSITIVE), ScalarValue::F64(f64::MAX)),
    };
    let size = b.op1(Op::Abs, x);
    let above = b.op2(Op::Le, Atom::Const(least), size);
    let below = b.op2(Op::Le, size, Atom::Const(largest));
    b.op2(Op::And, above, below)
}
