//! Equal scalars get one register.
//!
//! The lowering computes strides where it needs them. Here a primitive or pointer that has been computed before, in this
//! block or one around it, is replaced by that register; instructions nobody needs are dropped. Then equal strides are equal
//! operands, which the scheduler compares.
//!
//! Only registers that are set once, and primitives without functions in them: what is saved is address arithmetic.

use crate::ir::{Block, Ins, Operand, Reg, Ty};
use pullback_base::index::{IdMap, IdSet, IndexVec};
use pullback_prim::{Prim, Scalar};

/// Rewrites the body of a function; `defined`: how often each register is set; `results`: registers read at its end.
pub(super) fn number(body: Block, defined: &IndexVec<Reg, usize>, results: &[Reg]) -> Block {
    let mut n = Numbers { defined, known: Vec::new(), same: IdMap::new() };
    let body = n.block(body);
    let results: IdSet<Reg> = results.iter().copied().collect();
    let mut needed = results;
    // Backwards: what an instruction reads is needed if the instruction is.
    loop {
        let before = needed.len();
        need(&body, &mut needed);
        if needed.len() == before {
            break;
        }
    }
    keep(body, &needed)
}

#[derive(PartialEq)]
enum Key {
    Prim(Prim, Vec<Operand>),
    Offset(Operand, Operand, Ty),
}

struct Numbers<'a> {
    defined: &'a IndexVec<Reg, usize>,
    /// What has been computed, in the blocks that are open.
    known: Vec<(Key, Reg)>,
    same: IdMap<Reg, Operand>,
}

impl Numbers<'_> {
    fn block(&mut self, block: Block) -> Block {
        let open = self.known.len();
        let out = block.into_iter().filter_map(|ins| self.ins(ins)).collect();
        self.known.truncate(open);
        out
    }
    fn is_fixed(&self, a: Operand) -> bool {
        match a {
            Operand::Reg(r) => self.defined[r] == 1,
            Operand::Const(_) | Operand::Null => true,
        }
    }
    fn ins(&mut self, mut ins: Ins) -> Option<Ins> {
        ins.reads_mut(&mut |a| {
            if let Operand::Reg(r) = a
                && let Some(other) = self.same.get(r)
            {
                *a = *other;
            }
        });
        for block in ins.blocks_mut() {
            *block = self.block(std::mem::take(block));
        }
        let (to, key) = match &ins {
            Ins::Prim { to, prim, args } if prim.result() != Scalar::F64 && prim.result() != Scalar::F32 => {
                (*to, Key::Prim(*prim, args.clone()))
            }
            Ins::Offset { to, pointer, index, ty, .. } => (*to, Key::Offset(*pointer, *index, *ty)),
            Ins::Set { to, value } if self.defined[*to] == 1 && self.is_fixed(*value) => {
                self.same.insert(*to, *value);
                return Some(ins);
            }
            _ => return Some(ins),
        };
        let fixed = match &key {
            Key::Prim(_, args) => args.iter().all(|a| self.is_fixed(*a)),
            Key::Offset(pointer, index, _) => self.is_fixed(*pointer) && self.is_fixed(*index),
        };
        if self.defined[to] != 1 || !fixed {
            return Some(ins);
        }
        if let Some((_, known)) = self.known.iter().find(|(k, _)| *k == key) {
            self.same.insert(to, (*known).into());
            return None;
        }
        self.known.push((key, to));
        Some(ins)
    }
}

/// Whether an instruction does something besides setting its register.
fn has_effect(ins: &Ins) -> bool {
    !matches!(ins, Ins::Set { .. } | Ins::Prim { .. } | Ins::Offset { .. } | Ins::Load { .. })
}

fn need(block: &Block, needed: &mut IdSet<Reg>) {
    for ins in block.iter().rev() {
        ins.blocks().into_iter().rev().for_each(|b| need(b, needed));
        if has_effect(ins) || ins.sets().iter().any(|r| needed.contains(r)) {
            ins.reads(&mut |a| {
                if let Operand::Reg(r) = a {
                    needed.insert(r);
                }
            });
        }
    }
}

fn keep(block: Block, needed: &IdSet<Reg>) -> Block {
    let mut out = Vec::with_capacity(block.len());
    for mut ins in block {
        for inner in ins.blocks_mut() {
            *inner = keep(std::mem::take(inner), needed);
        }
        if has_effect(&ins) || ins.sets().iter().any(|r| needed.contains(r)) {
            out.push(ins);
        }
    }
    out
}
