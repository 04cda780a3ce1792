//! Room for interleaved memory: whole blocks of rows; none where there are no rows, however long they would be.

use super::pipeline::Step;
use super::scheduler::Scheduler;
use super::work::Work;
use crate::ir::{Block, Ins, Operand, RegInfo, Ty};
use pullback_prim::{Op, Prim, Scalar};

/// Allocates room for whole blocks.
pub(super) const STEP: Step = Step {
    name: "padding",
    optional: false,
    parts: &[],
    does: "allocates whole blocks of rows where memory is interleaved",
    assumes: "it is chosen which memory is interleaved, in how many lanes",
    guarantees: "loops of lanes stay inside of their memory",
    keeps: true,
    run,
};

fn run(w: &mut Work<'_>) -> bool {
    let body = w.take_body();
    let mut s = w.scheduler(&body);
    w.f.body = s.room(body);
    let changed = !s.rows.is_empty();
    w.keep(s);
    changed
}

impl Scheduler<'_> {
    fn room(&mut self, block: Block) -> Block {
        let mut out = Vec::with_capacity(block.len());
        for mut ins in block {
            for inner in ins.blocks_mut() {
                *inner = self.room(std::mem::take(inner));
            }
            if let Ins::Alloc { to, count, .. } = &mut ins
                && let Some(row) = self.rows.get(to)
            {
                let mut with = |op: Op, args: [Operand; 2]| {
                    let to = self.regs.push(RegInfo::new(Ty::I64, "room"));
                    let prim = Prim::Op(op, Scalar::I64);
                    out.push(Ins::Prim { to, prim, args: args.to_vec() });
                    Operand::Reg(to)
                };
                let row = with(Op::Min, [*row, Operand::i64(1 << 50)]);
                let row = with(Op::Min, [row, *count]);
                let lanes = self.widths.as_ref().map_or(self.options.lanes, |w| w.of_memory(*to));
                let more = with(Op::Mul, [row, Operand::i64(lanes as i64)]);
                *count = with(Op::Add, [*count, more]);
            }
            out.push(ins);
        }
        out
    }
}
