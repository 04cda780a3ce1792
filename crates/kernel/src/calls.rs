//! Who calls whom.

use crate::ir::{Block, Function, FunctionId, Ins, Module};
use pullback_base::index::IndexVec;

/// Which functions may be called while they are running.
pub fn recursive(module: &Module) -> IndexVec<FunctionId, bool> {
    let called = |f: &Function| {
        let mut out = Vec::new();
        callees(&f.body, &mut out);
        out
    };
    let called: IndexVec<FunctionId, Vec<FunctionId>> = module.functions.iter().map(called).collect();
    let is_recursive = |f: FunctionId| {
        let mut seen: IndexVec<FunctionId, bool> = module.functions.iter().map(|_| false).collect();
        let mut todo = called[f].clone();
        while let Some(g) = todo.pop() {
            if !std::mem::replace(&mut seen[g], true) {
                todo.extend(&called[g]);
            }
        }
        seen[f]
    };
    module.functions.ids().map(is_recursive).collect()
}

fn callees(block: &Block, out: &mut Vec<FunctionId>) {
    for ins in block {
        if let Ins::Call { function, .. } = ins {
            out.push(*function);
        }
        ins.blocks().into_iter().for_each(|b| callees(b, out));
    }
}
