//! Instructions on words: those with an instruction of bytecode of their own, and pairs of them.

use super::*;

impl Translator<'_, '_> {
    /// Copies one after the other are one instruction.
    pub(super) fn copy_word(&mut self, to: At, from: At) {
        let joined = match self.last() {
            Some(Op::Copy { to: t, from: f }) => Op::Copy2 { to: t, from: f, to2: to, from2: from },
            Some(Op::Copy2 { to: t, from: f, to2, from2 }) => {
                let first = self.out.copies.len() as u32;
                self.out.copies.extend([(t, f), (to2, from2), (to, from)]);
                Op::Copies { first, count: 3 }
            }
            Some(Op::Copies { first, count }) if (first + count) as usize == self.out.copies.len() => {
                self.out.copies.push((to, from));
                Op::Copies { first, count: count + 1 }
            }
            _ => return self.emit(Op::Copy { to, from }),
        };
        self.out.ops.pop();
        self.emit(joined);
    }
    pub(super) fn on_words(&mut self, to: At, prim: Prim, args: &[Operand]) {
        let at: Vec<At> = args.iter().map(|a| self.at(*a)).collect();
        // The negative of a number is the difference of the negative zero and it.
        let (prim, args, at) = match (prim, &at[..]) {
            (Prim::Op(PrimOp::Neg, Scalar::F64), [x]) => {
                let zero = Operand::Const(ScalarValue::F64(-0.0));
                (Prim::Op(PrimOp::Sub, Scalar::F64), &[zero, args[0]][..], vec![self.at(zero), *x])
            }
            _ => (prim, args, at),
        };
        if let Some(joined) = self.joined(to, prim, args, &at) {
            self.out.ops.pop();
            return self.emit(joined);
        }
        if let Some(op) = simple(prim, to, &at) {
            return self.emit(op);
        }
        let Some(kernel) = self.chosen(prim, &vec![Side::Scalar; args.len()]) else {
            return self.table(Place { at: to, is_lanes: false }, prim, args);
        };
        let low = matches!(prim, Prim::Op(op, Scalar::F32) if pullback_maths::Function::of_op(op).is_some());
        let kernel = self.shared.kernel(kernel);
        let [a, b, c] = padded(&at);
        self.emit(if low { Op::ApplyLow { kernel, to, a, b, c } } else { Op::Apply { kernel, to, a, b, c } });
    }
    /// The last instruction and this one as one. What the first one sets is set too.
    fn joined(&self, to: At, prim: Prim, args: &[Operand], at: &[At]) -> Option<Op> {
        let once = |k: usize| self.is_read_once(args[k]).then_some(at[k]);
        match (prim, self.last()?) {
            (Prim::Op(PrimOp::Add, Scalar::I64), Op::MulI64 { to: t, a, b }) => {
                let other = other_than(t, at, [once(0), once(1)])?;
                Some(Op::MulAddI64 { to, a, b, c: other })
            }
            (Prim::Op(PrimOp::Select, _), last) => {
                let [_, then, otherwise] = *at else { return None };
                match last {
                    Op::EqF64 { to: t, a, b } if once(0) == Some(t) => {
                        Some(Op::SelectEqF64 { to, a, b, then, otherwise })
                    }
                    Op::LtF64 { to: t, a, b } if once(0) == Some(t) => {
                        Some(Op::SelectLtF64 { to, a, b, then, otherwise })
                    }
                    Op::LeF64 { to: t, a, b } if once(0) == Some(t) => {
                        Some(Op::SelectLeF64 { to, a, b, then, otherwise })
                    }
                    _ => None,
                }
            }
            (Prim::Op(op, Scalar::F64), last) => pair(last, op, to, at),
            _ => None,
        }
    }
    pub(super) fn offset(&mut self, to: Reg, pointer: Operand, index: Operand, ty: Ty) {
        let (place, shift) = (self.places[to], shift(ty));
        let (pointer, at) = (self.at(pointer), self.at(index));
        match self.last() {
            Some(Op::MulI64 { to: t, a, b }) if t == at && t != pointer && self.is_read_once(index) => {
                self.out.ops.pop();
                self.emit(Op::OffsetMul { shift, to: place, pointer, a, b });
            }
            _ => self.emit(Op::Offset { shift, to: place, pointer, index: at }),
        }
    }
}

/// The operand that is not the product `t`, if the other one is it and may be joined.
pub(super) fn other_than(t: At, at: &[At], product: [Option<At>; 2]) -> Option<At> {
    match (product, at) {
        ([Some(p), _], [_, other]) if p == t && *other != t => Some(*other),
        ([_, Some(p)], [other, _]) if p == t && *other != t => Some(*other),
        _ => None,
    }
}

pub(super) fn load(ty: Ty, to: At, pointer: At, index: At) -> Op {
    let is_signed = ty.scalar().is_some_and(Scalar::is_signed);
    match (ty.bytes(), is_signed) {
        (1, false) => Op::Load1 { to, pointer, index },
        (1, true) => Op::Load1Signed { to, pointer, index },
        (2, false) => Op::Load2 { to, pointer, index },
        (2, true) => Op::Load2Signed { to, pointer, index },
        (4, false) => Op::Load4 { to, pointer, index },
        (4, true) => Op::Load4Signed { to, pointer, index },
        _ => Op::Load8 { to, pointer, index },
    }
}

/// The instruction for a primitive on words, if it has one of its own.
pub(super) fn simple(prim: Prim, to: At, at: &[At]) -> Option<Op> {
    let Prim::Op(op, s) = prim else { return None };
    let (a, b) = (at[0], at.get(1).copied().unwrap_or(0));
    Some(match (op, s) {
        (PrimOp::Select, _) => Op::Select { to, condition: a, a: b, b: at[2] },
        (PrimOp::Add, Scalar::F64) => Op::AddF64 { to, a, b },
        (PrimOp::Sub, Scalar::F64) => Op::SubF64 { to, a, b },
        (PrimOp::Mul, Scalar::F64) => Op::MulF64 { to, a, b },
        (PrimOp::Div, Scalar::F64) => Op::DivF64 { to, a, b },
        (PrimOp::Min, Scalar::F64) => Op::MinF64 { to, a, b },
        (PrimOp::Max, Scalar::F64) => Op::MaxF64 { to, a, b },
        (PrimOp::StrongMul, Scalar::F64) => Op::StrongMulF64 { to, a, b },
        (PrimOp::MutualMul, Scalar::F64) => Op::MutualMulF64 { to, a, b },
        (PrimOp::Sqrt, Scalar::F64) => Op::SqrtF64 { to, a },
        (PrimOp::Lt, Scalar::F64) => Op::LtF64 { to, a, b },
        (PrimOp::Le, Scalar::F64) => Op::LeF64 { to, a, b },
        (PrimOp::Eq, Scalar::F64) => Op::EqF64 { to, a, b },
        (PrimOp::Ne, Scalar::F64) => Op::NeF64 { to, a, b },
        (PrimOp::Add, Scalar::I64 | Scalar::U64) => Op::AddI64 { to, a, b },
        (PrimOp::Sub, Scalar::I64 | Scalar::U64) => Op::SubI64 { to, a, b },
        (PrimOp::Mul, Scalar::I64 | Scalar::U64) => Op::MulI64 { to, a, b },
        // Words of smaller types are extended, so that they compare as numbers.
        (PrimOp::Lt, s) if !s.is_float() && s != Scalar::U64 => Op::LtI64 { to, a, b },
        (PrimOp::Le, s) if !s.is_float() && s != Scalar::U64 => Op::LeI64 { to, a, b },
        (PrimOp::Eq, s) if !s.is_float() => Op::EqWord { to, a, b },
        (PrimOp::Ne, s) if !s.is_float() => Op::NeWord { to, a, b },
        // Extended words stay extended.
        (PrimOp::And, _) => Op::AndWord { to, a, b },
        (PrimOp::Or, _) => Op::OrWord { to, a, b },
        (PrimOp::Xor, _) => Op::XorWord { to, a, b },
        (PrimOp::Not, Scalar::Bool) => Op::NotBool { to, a },
        _ => return None,
    })
}

/// Two operations on numbers as one instruction: the last one, and one that reads its result.
fn pair(last: Op, op: PrimOp, to: At, at: &[At]) -> Option<Op> {
    let [x, y] = *at else { return None };
    macro_rules! with {
        ($t:ident $a:ident $b:ident $add:ident $sub:ident $from:ident $mul:ident $div:ident $under:ident) => {{
            let (t, a, b) = ($t, $a, $b);
            let (c, is_first) = if x == t { (y, true) } else { (x, false) };
            if x != t && y != t {
                return None;
            }
            match (op, is_first) {
                (PrimOp::Add, _) => Op::$add { t, a, b, to, c },
                (PrimOp::Mul, _) => Op::$mul { t, a, b, to, c },
                (PrimOp::Sub, true) => Op::$sub { t, a, b, to, c },
                (PrimOp::Sub, false) => Op::$from { t, a, b, to, c },
                (PrimOp::Div, true) => Op::$div { t, a, b, to, c },
                (PrimOp::Div, false) => Op::$under { t, a, b, to, c },
                _ => return None,
            }
        }};
    }
    Some(match last {
        Op::AddF64 { to: t, a, b } => {
            with!(t a b AddAddF64 AddSubF64 AddFromF64 AddMulF64 AddDivF64 AddUnderF64)
        }
        Op::SubF64 { to: t, a, b } => {
            with!(t a b SubAddF64 SubSubF64 SubFromF64 SubMulF64 SubDivF64 SubUnderF64)
        }
        Op::MulF64 { to: t, a, b } => {
            with!(t a b MulAddF64 MulSubF64 MulFromF64 MulMulF64 MulDivF64 MulUnderF64)
        }
        Op::DivF64 { to: t, a, b } => {
            with!(t a b DivAddF64 DivSubF64 DivFromF64 DivMulF64 DivDivF64 DivUnderF64)
        }
        _ => return None,
    })
}
