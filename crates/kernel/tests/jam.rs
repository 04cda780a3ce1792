//! What the innermost loops of iterations that run together keep in vector registers.

use pullback_base::index::{Index, IndexVec};
use pullback_kernel::internals::{fits, shared};
use pullback_kernel::schedule::Model;
use pullback_kernel::{Block, Ins, Operand, Order, Reg, RegInfo, Ty};
use pullback_prim::{Op, Prim, Scalar, ScalarValue};

/// Instructions on 64 lanes: what each sets, and the two registers that it multiplies.
fn block(regs: usize, products: &[(usize, [usize; 2])]) -> (Block, IndexVec<Reg, RegInfo>) {
    let mut table: IndexVec<Reg, RegInfo> = IndexVec::new();
    let ty = Ty::Lanes(Scalar::F64, 64);
    let names: Vec<Reg> = (0..regs).map(|_| table.push(RegInfo::new(ty, "v"))).collect();
    let product = |(to, [x, y]): &(usize, [usize; 2])| Ins::Prim {
        to: names[*to],
        prim: Prim::Op(Op::Mul, Scalar::F64),
        args: vec![names[*x].into(), names[*y].into()],
    };
    (products.iter().map(product).collect(), table)
}

#[test]
fn what_waits_for_a_second_reader_takes_registers() {
    for (products, expected) in [
        // A value for two sums (0 and 1, which the block keeps): it waits for the second.
        (&[(2, [3, 3]), (0, [0, 2]), (1, [1, 2])][..], 64),
        // Twice in one instruction is one reader.
        (&[(2, [3, 3]), (0, [2, 2])], 0),
        // The first has no reader left when the second is set.
        (&[(2, [3, 3]), (0, [0, 2]), (1, [1, 2]), (4, [3, 3]), (0, [0, 4]), (1, [1, 4])], 64),
        // Both wait.
        (&[(2, [3, 3]), (4, [3, 3]), (0, [0, 2]), (0, [0, 4]), (1, [1, 2]), (1, [1, 4])], 128),
        // Sums that are set and read by several are kept anyway.
        (&[(0, [0, 3]), (1, [0, 1]), (4, [0, 1])], 0),
    ] {
        let (block, regs) = block(5, products);
        assert_eq!(shared(&block, &regs), expected, "{products:?}");
    }
}

/// Three sums of 64 lanes with what they share need more than 32 registers of 8; of two of them there is room.
#[test]
fn sums_fit_with_what_they_share() {
    let model = Model::machine(8);
    for (sums, room) in [(2, true), (3, false)] {
        let products: Vec<_> = (0..sums).map(|k| (k, [k, sums])).collect();
        let (products, mut regs) = block(sums + 1, &products);
        let i = regs.push(RegInfo::new(Ty::I64, "i"));
        let load = Ins::Set { to: Reg::new(sums), value: Operand::Const(ScalarValue::F64(1.0)) };
        let body = std::iter::once(load).chain(products).collect();
        let (from, to) = (Operand::i64(0), Operand::i64(9));
        let l = Ins::For { i, from, to, body, order: Order::Given };
        assert_eq!(fits(&vec![l], &regs, model, 8), room, "{sums} sums");
    }
}
