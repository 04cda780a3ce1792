//! Who calls whom.

use crate::ir::{Block, FunctionId, Ins, Module};
use pullback_base::index::IndexVec;

/// Which functions may be called while they are running.
pub fn recursive(module: &Module) -> IndexVec<FunctionId, bool> {
    let called: IndexVec<FunctionId, Vec<FunctionId>> = collect(module.functions.iter().map(|f| {
        let mut out = Vec::new();
        callees(&f.body, &mut out);
        out
    }));
    collect(module.functions.ids().map(|f| {
        let mut seen: IndexVec<FunctionId, bool> = collect(module.functions.iter().map(|_| false));
        let mut todo = called[f].clone();
        while let Some(g) = todo.pop() {
            if !std::mem::replace(&mut seen[g], true) {
                todo.extend(&called[g]);
            }
        }
        seen[f]
    }))
}

fn collect<T>(items: impl Iterator<Item = T>) -> IndexVec<FunctionId, T> {
    let mut out = IndexVec::new();
    for item in items {
        out.push(item);
    }
    out
}

fn callees(block: &Block, out: &mut Vec<FunctionId>) {
    for ins in block {
        if let Ins::Call { function, .. } = ins {
            out.push(*function);
        }
        ins.blocks().into_iter().for_each(|b| callees(b, out));
    }
}
