//! Branches, and the values that either side may give.

use super::aliasing::Roots;
use super::memory::absent;
use super::rep::{ArrayRep, Leaf, Rep, words};
use super::{Lower, Res, Val};
use crate::ir::{Block, Ins, Operand, Reg, Ty};
use crate::walk;
use pullback_base::index::IdSet;
use pullback_core::{Atom, Body, Lam, Type, Var};
use pullback_prim::{Op, Scalar};

/// One side: its instructions and values.
struct Arm {
    block: Block,
    values: Vec<Val>,
}

impl Lower<'_> {
    pub(super) fn conditional(
        &mut self,
        pat: &[Var],
        c: Atom,
        then: &Body,
        otherwise: &Body,
    ) -> Res<Vec<Val>> {
        let condition = self.scalar(c);
        let places = self.places(pat);
        let arms = vec![self.arm(then, &[], &places)?, self.arm(otherwise, &[], &places)?];
        self.join(pat, vec![condition], arms, places)
    }
    pub(super) fn matched(&mut self, pat: &[Var], a: Atom, arms: &[Lam]) -> Res<Vec<Val>> {
        let Val { rep, roots } = self.val(a);
        let (tag, fields) = match rep {
            Rep::Sum(tag, fields) => (tag, fields),
            Rep::Record(id, pointers) => match self.unfold(id, &pointers)? {
                Rep::Sum(tag, fields) => (tag, fields),
                rep => panic!("expected a sum, found {rep:?}"),
            },
            rep => panic!("expected a sum, found {rep:?}"),
        };
        let val = |rep: &Rep| Val { rep: rep.clone(), roots: roots.clone() };
        if let ([arm], [fields]) = (arms, &fields[..]) {
            // `pat` is made where it is wanted only if the arm makes it.
            for (v, result) in pat.iter().zip(&arm.body.result) {
                if let Some(place) = self.wanted.remove(v) {
                    self.want(&arm.body, *result, place);
                }
            }
            return self.apply(arm, fields.iter().map(val).collect());
        }
        let places = self.places(pat);
        // Arms that give the same are one; it comes last, where no condition is asked.
        let same = alike(arms);
        let last = same.first().copied().unwrap_or(arms.len() - 1);
        let order = (0..arms.len()).filter(|k| *k != last && !same.contains(k)).chain([last]);
        let mut lowered = Vec::new();
        let mut conditions = Vec::new();
        for k in order {
            let (arm, fields) = (&arms[k], &fields[k]);
            if k != last {
                conditions.push(self.op(Op::Eq, Scalar::I64, &[tag, Operand::i64(k as i64)]));
            }
            let params: Vec<(Var, Val)> = arm.params.iter().copied().zip(fields.iter().map(val)).collect();
            lowered.push(self.arm(&arm.body, &params, &places)?);
        }
        self.join(pat, conditions, lowered, places)
    }
    /// Where the arrays are wanted.
    fn places(&mut self, pat: &[Var]) -> Vec<Option<ArrayRep>> {
        pat.iter().map(|v| self.wanted.remove(v)).collect()
    }
    fn arm(&mut self, body: &Body, params: &[(Var, Val)], places: &[Option<ArrayRep>]) -> Res<Arm> {
        let deferred = self.deferred.len();
        let (mut block, values) = self.block(|s| {
            for (p, val) in params {
                s.bind_val(*p, val.clone());
            }
            let mut asked = Vec::new();
            for (result, place) in body.result.iter().zip(places) {
                if let Some(place) = place
                    && !asked.contains(result)
                {
                    asked.push(*result);
                    s.want(body, *result, place.clone());
                }
            }
            let values = s.results(body)?;
            for (val, place) in values.iter().zip(places) {
                if let (Rep::Array(a), Some(place)) = (&val.rep, place) {
                    s.copy(place, a)?;
                }
            }
            Ok(values)
        })?;
        // What the arm set apart of an accumulator, and leaves set apart, is there only if it ran.
        for k in deferred..self.deferred.len() {
            let ran = self.variable(Ty::BOOL, "ran", Operand::bool(false));
            // Whoever looks at the code does not know that it is read only where the arm ran.
            let mut inside = IdSet::new();
            walk(&block, &mut |ins| inside.extend(ins.sets().iter().copied()));
            for to in self.deferred[k].registers().into_iter().filter(|r| inside.contains(r)) {
                let value = absent(self.regs[to].ty);
                self.emit(Ins::Set { to, value });
            }
            let inside = self.deferred[k].ran.replace(ran.into());
            block.push(Ins::Set { to: ran, value: inside.unwrap_or(Operand::bool(true)) });
        }
        Ok(Arm { block, values })
    }
    /// One value for each result, whichever arm runs: the last arm where no condition holds.
    fn join(
        &mut self,
        pat: &[Var],
        conditions: Vec<Operand>,
        mut arms: Vec<Arm>,
        places: Vec<Option<ArrayRep>>,
    ) -> Res<Vec<Val>> {
        // Registers first; what is computed from them comes after the branches.
        let mut joined = Vec::new();
        for (k, v) in pat.iter().enumerate() {
            joined.push(match &places[k] {
                Some(_) => Vec::new(),
                None => self.joined(self.ty(*v), k, &mut arms)?,
            });
        }
        let roots: Vec<Roots> = (0..pat.len())
            .map(|k| arms.iter().flat_map(|arm| arm.values[k].roots.iter().copied()).collect())
            .collect();
        let mut chain: Block = arms.pop().map_or(Vec::new(), |arm| arm.block);
        for (condition, arm) in conditions.into_iter().zip(arms).rev() {
            chain = vec![Ins::If { condition, then: arm.block, otherwise: chain }];
        }
        chain.into_iter().for_each(|ins| self.emit(ins));
        let mut out = Vec::new();
        for (((v, place), words), mut roots) in pat.iter().zip(places).zip(joined).zip(roots) {
            let rep = match place {
                Some(place) => {
                    roots.extend(self.owners.fresh());
                    Rep::Array(place)
                }
                None => {
                    // An arm whose value lay in no memory has made some: that of a loop around it stays as it is.
                    if !matches!(self.ty(*v), Type::Scalar(_) | Type::Acc(_)) {
                        roots.extend(self.owners.fresh());
                    }
                    let rep = self.unflatten(self.ty(*v), &mut words.into_iter())?;
                    self.with_known_sizes(rep, *v)
                }
            };
            out.push(Val { rep, roots });
        }
        Ok(out)
    }
    /// The words of a result after the branches.
    fn joined(&mut self, ty: &Type, k: usize, arms: &mut [Arm]) -> Res<Vec<Operand>> {
        let mut all: Vec<Vec<Operand>> = Vec::new();
        for arm in arms.iter_mut() {
            let block = std::mem::take(&mut arm.block);
            let (block, operands) = self.continued(block, |s| s.flatten(&arm.values[k].rep, ty))?;
            arm.block = block;
            all.push(operands);
        }
        let (types, before) = (words(self.program, ty)?, self.regs.len());
        let mut result = Vec::new();
        for (w, t) in types.into_iter().enumerate() {
            let first = all.first().map_or(absent(t), |operands| operands[w]);
            // A constant is known on every path, and so is what was there before the branch: no arm makes another's registers.
            if all.len() > 1 && all.iter().all(|operands| operands[w] == first) {
                result.push(first);
                continue;
            }
            let to: Reg = self.reg(t, "joined");
            for (arm, operands) in arms.iter_mut().zip(&all) {
                arm.block.push(Ins::Set { to, value: operands[w] });
            }
            result.push(to.into());
        }
        self.note_arrays(ty, &result, before)?;
        Ok(result)
    }
    /// The array with sizes that are known by name outside the branches.
    fn with_known_sizes(&mut self, rep: Rep, v: Var) -> Rep {
        let Rep::Array(mut a) = rep else { return rep };
        let dims = self.shapes.of(v).to_vec();
        for (k, d) in dims.iter().enumerate() {
            if let Some(n) = self.resolve(*d) {
                a.dims[k] = n;
            }
        }
        if a.leaves.iter().all(|l| matches!(l, Leaf::Memory { .. })) && a.packed {
            a.strides = self.row_major(&a.dims.clone());
        }
        Rep::Array(a)
    }
}

/// Arms that give the same values and do nothing: derivatives take one payload of a sum, and zeros for all others.
fn alike(arms: &[Lam]) -> Vec<usize> {
    let is_plain = |arm: &Lam| {
        let gives_payload = |a: &Atom| a.var().is_some_and(|v| arm.params.contains(&v));
        arm.body.stms.is_empty() && !arm.body.result.iter().any(gives_payload)
    };
    let as_arm = |of: &Lam| {
        let is_same = |arm: &Lam| is_plain(arm) && arm.body.result == of.body.result;
        (0..arms.len()).filter(|k| is_same(&arms[*k])).collect::<Vec<usize>>()
    };
    let mut plain = arms.iter().filter(|arm| is_plain(arm));
    let first = plain.next().map(as_arm).unwrap_or_default();
    let last = plain.next_back().map(as_arm).unwrap_or_default();
    if last.len() > first.len() { last } else { first }
}
