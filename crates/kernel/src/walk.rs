//! Walks over instructions.

use crate::ir::Ins;

/// Calls `f` with every instruction of a block, those inside after the one they are in.
pub fn walk<'a>(block: &'a [Ins], f: &mut dyn FnMut(&'a Ins)) {
    for ins in block {
        f(ins);
        ins.blocks().into_iter().for_each(|b| walk(b, f));
    }
}

/// The instructions of a block with those inside.
pub fn size(block: &[Ins]) -> usize {
    let mut count = 0;
    walk(block, &mut |_| count += 1);
    count
}
