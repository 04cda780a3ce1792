//! What stops a program where an operation has no value, with and without the operation.

use super::rep::ArrayRep;
use super::{Lower, Res};
use crate::ir::{Operand, Order, Text};
use pullback_base::RuntimeErrorKind;
use pullback_core::{Atom, Check, Shaped, SliceDim};
use pullback_prim::{Op, Prim, Scalar};

impl Lower<'_> {
    /// A check alone.
    pub(super) fn check(&mut self, check: Check, args: &[Atom]) -> Res<()> {
        match check {
            Check::Index(count) => {
                let (ix, shape) = args.split_at(count);
                let dims: Vec<_> = shape.iter().map(|n| self.shapes.name(*n)).collect();
                let (operands, shape) = (self.scalars(ix), self.scalars(shape));
                self.check_indices((ix, &operands), &shape, &dims);
            }
            Check::Slice => {
                let slice = SliceDim { start: args[0], len: args[1], stride: args[2] };
                let n = self.scalar(args[3]);
                self.check_slice(&slice, n);
            }
            Check::Gather => {
                let (indices, shape) = (self.array(args[0]), self.scalars(&args[1..]));
                self.count(indices.dims[0], Order::Any(Vec::new()), |s, k| {
                    let p = s.position(&indices, &[k]);
                    let i = s.load_leaf(indices.leaves[0], p);
                    s.check_row(i, &shape);
                    Ok(())
                })?;
            }
            Check::Prim(prim) => {
                let args = self.scalars(args);
                self.check_primitive(prim, &args);
            }
            Check::Sizes => args.iter().for_each(|n| {
                self.size(*n);
            }),
            Check::Reshape(count) => {
                let (old, new) = args.split_at(count);
                let new: Vec<Operand> = new.iter().map(|n| self.size(*n)).collect();
                let old = self.scalars(old);
                self.check_counts(&old, false, &new);
            }
            Check::Shapes(of, rank) => {
                let (left, right) = args.split_at(rank);
                let mut sizes = |ns: &[Atom]| ns.iter().map(|n| self.size(*n)).collect::<Vec<Operand>>();
                let (left, right) = (sizes(left), sizes(right));
                self.check_shapes(of.words(), &left, &right);
            }
            Check::Rows => {
                let columns: Vec<ArrayRep> = args.iter().map(|a| self.whole_array(*a)).collect();
                self.count(columns[0].dims[0], Order::Any(Vec::new()), |s, k| {
                    let mut row = |k: Operand| -> Vec<Operand> {
                        let size = |column: &ArrayRep| {
                            let p = s.position(column, &[k]);
                            s.load_leaf(column.leaves[0], p)
                        };
                        columns.iter().map(size).collect()
                    };
                    let (first, here) = (row(Operand::i64(0)), row(k));
                    s.check_shapes(Shaped::Row.words(), &first, &here);
                    Ok(())
                })?;
            }
        }
        Ok(())
    }

    /// Stops the program if a primitive has no value at these arguments.
    pub(super) fn check_primitive(&mut self, prim: Prim, args: &[Operand]) {
        if let Prim::Op(op, s) = prim
            && s.is_integer()
        {
            let as_i64 = |lower: &mut Self, x: Operand| match s {
                Scalar::I64 => x,
                s => lower.prim(Prim::Convert(s, Scalar::I64), vec![x], "x"),
            };
            match op {
                Op::Div | Op::Mod | Op::Quot | Op::Rem => {
                    let zero = self.op(Op::Eq, s, &[args[1], Operand::Const(s.zero())]);
                    if zero != Operand::bool(false) {
                        let x = as_i64(self, args[0]);
                        let text = Text::Plain("division of {} by zero".into());
                        self.fail(zero, RuntimeErrorKind::DivisionByZero, text, vec![x]);
                    }
                }
                Op::Pow if s.is_signed() => {
                    let negative = self.op(Op::Lt, s, &[args[1], Operand::Const(s.zero())]);
                    if negative != Operand::bool(false) {
                        let values = vec![as_i64(self, args[0]), as_i64(self, args[1])];
                        let text = Text::Plain("the integer {} raised to the negative power {}".into());
                        self.fail(negative, RuntimeErrorKind::AssertFailed, text, values);
                    }
                }
                _ => {}
            }
        }
    }
}
