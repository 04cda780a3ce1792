//! Rules for reduce.
//!
//! Source: Schenck et al., SC 2022, section IV (special operators, two scans); T. Smeding, PhD thesis, section 7.4 (fold).
//! The rule is chosen by the operator: sums, minima and maxima, any other operator without active free variables (two
//! scans), and everything else as the loop that it means, which is right for every operator and sequential.

use super::config::Mutation;
use super::ct::Ct;
use super::desc::Desc;
use super::operator::{Kind, applied, is_smooth, kinds};
use super::reverse::{Env, Reverse};
use crate::activity::active_variables;
use crate::contract::Unsupported;
use pullback_core::traverse::free_vars_lam;
use pullback_core::{Atom, Builder, Exp, Lam, Soac, Stm, Type, Var};
use pullback_prim::Op;

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
}
