//! Addition of cotangents.
//!
//! Floats add up, and so do the parts of products and arrays. Of alternatives the first is zero, and equal ones add their fields. A recursive
//! type has a function of its own, which calls itself ([`Lower::plus_function`]).

use super::aliasing::Roots;
use super::rep::{ArrayRep, Leaf, Rep, has_boxes, kinds, unfolded, words};
use super::stm::ADDED;
use super::{Lower, Res, Val};
use crate::ir::{Function, FunctionId, Ins, Operand, Reg, Ty};
use pullback_base::index::{IdSet, Index};
use pullback_core::{Atom, Type, TypeId, Var};
use pullback_prim::{Op, Scalar};

impl Lower<'_> {
    pub(super) fn plus(&mut self, pat: &[Var], a: Atom, b: Atom) -> Res<Val> {
        let ty = self.atom_type(a);
        let (x, y) = (self.whole(a), self.whole(b));
        if let (Rep::Array(first), Rep::Array(second)) = (&x.rep, &y.rep) {
            if !self.is_part(b, (a, 0)) {
                self.check_shapes(ADDED, &first.dims, &second.dims);
            }
            let others: IdSet<Var> = b.var().into_iter().collect();
            let in_place = first.is_writable() && a.var().is_some_and(|v| self.owners.may_write(v, &others));
            let (to, mut roots) = if in_place {
                (first.clone(), x.roots.clone())
            } else {
                (self.array_for(pat.first().copied(), first.dims.clone(), ty.base())?, self.owners.fresh())
            };
            // Where one is zero, the sum points to what the other points to.
            if has_boxes(&ty) {
                roots.extend(x.roots.union(&y.roots));
            }
            self.plus_arrays(&to, first, second, ty.base())?;
            return Ok(self.made(Val { rep: Rep::Array(to), roots }));
        }
        let roots: Roots = x.roots.union(&y.roots).copied().collect();
        Ok(Val { rep: self.plus_values(&x.rep, &y.rep, &ty)?, roots })
    }
    /// `to[i] = a[i] + b[i]` everywhere.
    pub(super) fn plus_arrays(&mut self, to: &ArrayRep, a: &ArrayRep, b: &ArrayRep, elem: &Type) -> Res<()> {
        let strides = [to.strides.clone(), a.strides.clone(), b.strides.clone()];
        let (to, a, b) = (to.clone(), a.clone(), b.clone());
        self.every(&to.dims.clone(), &strides, &mut Vec::new(), &mut |s, at| {
            let load = |s: &mut Self, array: &ArrayRep, p: Operand| {
                let words: Vec<Operand> = array.leaves.iter().map(|l| s.load_leaf(*l, p)).collect();
                s.unflatten(elem, &mut words.into_iter())
            };
            let (x, y) = (load(s, &a, at[1])?, load(s, &b, at[2])?);
            let sum = s.plus_values(&x, &y, elem)?;
            let sum = s.flatten(&sum, elem)?;
            for (leaf, value) in to.leaves.iter().zip(sum) {
                if let Leaf::Memory { pointer, ty } = *leaf {
                    s.emit(Ins::Store { pointer, index: at[0], value, ty });
                }
            }
            Ok(())
        })
    }
    /// Addition of cotangents that are not arrays (arrays inside sums included).
    pub(super) fn plus_values(&mut self, x: &Rep, y: &Rep, ty: &Type) -> Res<Rep> {
        Ok(match (x, y, ty) {
            (Rep::Scalar(a), Rep::Scalar(b), Type::Scalar(s)) if s.is_float() => {
                Rep::Scalar(self.op(Op::Add, *s, &[*a, *b]))
            }
            (Rep::Tuple(xs), Rep::Tuple(ys), Type::Tuple(types)) => {
                let mut out = Vec::new();
                for ((x, y), t) in xs.iter().zip(ys).zip(types.iter()) {
                    out.push(self.plus_values(x, y, t)?);
                }
                Rep::Tuple(out)
            }
            (Rep::Array(a), Rep::Array(b), Type::Array(_)) => {
                self.check_shapes(ADDED, &a.dims, &b.dims);
                let to = self.new_array(a.dims.clone(), ty.base())?;
                self.plus_arrays(&to, a, b, ty.base())?;
                Rep::Array(to)
            }
            (Rep::Record(id, xs), Rep::Record(_, ys), _) => {
                let function = self.plus_of(*id);
                let to: Vec<Reg> = xs.iter().map(|_| self.reg(Ty::Pointer, "sum")).collect();
                self.emit_call(to.clone(), function, [&xs[..], ys].concat());
                Rep::Record(*id, to.into_iter().map(Operand::Reg).collect())
            }
            (Rep::Sum(a, xs), Rep::Sum(b, ys), Type::Sum(variants)) => {
                self.plus_sums((*a, xs), (*b, ys), ty, variants)?
            }
            (x, _, _) => x.clone(),
        })
    }
    /// Alternative 0 is zero; equal alternatives add their fields.
    fn plus_sums(
        &mut self,
        (a, xs): (Operand, &Vec<Vec<Rep>>),
        (b, ys): (Operand, &Vec<Vec<Rep>>),
        ty: &Type,
        variants: &[pullback_core::Variant],
    ) -> Res<Rep> {
        let zero = Operand::i64(0);
        let first_zero = self.op(Op::Eq, Scalar::I64, &[a, zero]);
        let second_zero = self.op(Op::Eq, Scalar::I64, &[b, zero]);
        let (x, y) = (Rep::Sum(a, xs.clone()), Rep::Sum(b, ys.clone()));
        let (left, left_words) = self.block(|s| s.flatten(&y, ty))?;
        let (middle, middle_words) = self.block(|s| s.flatten(&x, ty))?;
        let mut arms = vec![(first_zero, left, left_words), (second_zero, middle, middle_words)];
        for k in 1..variants.len() {
            let here = self.op(Op::Eq, Scalar::I64, &[a, Operand::i64(k as i64)]);
            let (block, sum) = self.block(|s| {
                let mut fields = xs.clone();
                for (f, t) in variants[k].fields.iter().enumerate() {
                    fields[k][f] = s.plus_values(&xs[k][f], &ys[k][f], t)?;
                }
                s.flatten(&Rep::Sum(a, fields), ty)
            })?;
            arms.push((here, block, sum));
        }
        let to: Vec<Reg> = words(self.program, ty)?.into_iter().map(|t| self.reg(t, "sum")).collect();
        let mut arms = arms.into_iter().rev().map(|(condition, mut block, values)| {
            block.extend(to.iter().zip(values).map(|(to, value)| Ins::Set { to: *to, value }));
            (condition, block)
        });
        // Two that are not zero have the same alternative: nothing else is left for the last.
        let (_, last) = arms.next().expect("alternative 0");
        let chain =
            arms.fold(last, |otherwise, (condition, then)| vec![Ins::If { condition, then, otherwise }]);
        chain.into_iter().for_each(|ins| self.emit(ins));
        self.unflatten(ty, &mut to.into_iter().map(Operand::Reg))
    }
    /// The function that adds values of a recursive type.
    fn plus_of(&mut self, id: TypeId) -> FunctionId {
        let next = FunctionId::new(self.functions.len() + self.plus.len());
        match self.plus.iter().find(|(known, _)| *known == id) {
            Some((_, function)) => *function,
            None => {
                self.plus.push((id, next));
                next
            }
        }
    }
    /// The function that [`Lower::plus_of`] speaks of.
    pub(super) fn plus_function(mut self, id: TypeId) -> Res<Function> {
        let kinds = kinds(self.program, id).len();
        let [xs, ys] =
            ["x", "y"].map(|hint| (0..kinds).map(|_| self.reg(Ty::Pointer, hint)).collect::<Vec<Reg>>());
        let sums = [&xs, &ys].map(|regs| {
            let pointers: Vec<Operand> = regs.iter().map(|r| Operand::Reg(*r)).collect();
            self.unfold(id, &pointers)
        });
        let [x, y] = sums;
        let sum = self.plus_values(&x?, &y?, &unfolded(self.program, id))?;
        let Rep::Record(_, pointers) = self.fold(id, &sum)? else { panic!("expected a record") };
        let results = pointers.into_iter().map(|p| self.variable(Ty::Pointer, "result", p)).collect();
        let name = format!("plus_{}_{}", self.program.types[id].name, id.index());
        let body = self.blocks.pop().unwrap_or_default();
        Ok(Function { name, params: [xs, ys].concat(), results, regs: self.regs, body })
    }
}
