//! What a function mentions, and which functions are parts of loops.

use pullback_base::index::IdSet;
use pullback_kernel::{Block, Function, FunctionId, Ins, Module, Reg, walk};
use std::collections::BTreeSet;

/// The registers that a function mentions: parts of loops have the list of the function that they are from.
pub(super) fn registers(f: &Function) -> IdSet<Reg> {
    let mut out = IdSet::new();
    out.extend(f.params.iter().chain(&f.results).copied());
    walk(&f.body, &mut |ins| {
        out.extend(ins.sets());
        ins.reads(&mut |a| out.extend(a.as_reg()));
    });
    out
}

/// Whether something in a block may write to memory.
pub(super) fn writes(block: &Block) -> bool {
    let mut found = false;
    walk(block, &mut |ins| found |= ins.blocks().is_empty() && !ins.only_sets());
    found
}

/// The functions for parts of loops.
pub(crate) fn parts(module: &Module) -> BTreeSet<FunctionId> {
    let mut out = BTreeSet::new();
    for f in module.functions.iter() {
        walk(&f.body, &mut |ins| {
            if let Ins::Chunks { function, .. } = ins {
                out.insert(*function);
            }
        });
    }
    out
}
