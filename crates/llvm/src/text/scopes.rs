//! Which accesses cannot meet: those of different allocations, and of an allocation and of what came from outside.
//!
//! Two allocations of the workspace overlap only if the first was released before the second was made. The fence of a release
//! keeps accesses on their side of it, so that between two fences the claim holds. A pointer whose origin is not certain (it
//! was loaded, came out of a call, or its register is set more than once) gives no claim.

use super::Shared;
use pullback_base::Few;
use pullback_base::index::IndexVec;
use pullback_kernel::{Block, Function, Ins, Operand, Reg, Ty};

/// Claims are made for this many origins of a function at most: every access lists all others.
const MOST: usize = 24;

/// Where the memory of a pointer is from: 0 is outside of the function, others are its allocations.
type Origin = usize;

/// What each access of a function says.
#[derive(Default)]
pub(super) struct Scopes {
    origins: IndexVec<Reg, Option<Origin>>,
    /// The suffix of an access by origin; empty for those without a claim.
    suffixes: Vec<String>,
}

impl Scopes {
    fn origin(&self, pointer: Operand) -> Option<Origin> {
        match pointer {
            Operand::Reg(r) => self.origins.get(r).copied().flatten(),
            Operand::Const(_) | Operand::Null => None,
        }
    }
    /// Whether accesses through two pointers cannot meet, between two fences.
    pub(super) fn are_apart(&self, a: Operand, b: Operand) -> bool {
        self.origin(a).zip(self.origin(b)).is_some_and(|(a, b)| a != b)
    }
    /// The metadata of an access through a pointer, with a comma before it.
    pub(super) fn suffix(&self, pointer: Operand) -> &str {
        self.origin(pointer).and_then(|o| self.suffixes.get(o)).map_or("", String::as_str)
    }

    pub(super) fn new(f: &Function, shared: &mut Shared) -> Scopes {
        let mut walk = Walk { f, definitions: IndexVec::new(), origins: IndexVec::new(), weights: vec![0] };
        for _ in f.regs.iter() {
            walk.definitions.push(0);
            walk.origins.push(None);
        }
        for p in &f.params {
            walk.definitions[*p] += 1;
        }
        walk.count(&f.body);
        for p in &f.params {
            if f.regs[*p].ty == Ty::Pointer && walk.definitions[*p] == 1 {
                walk.origins[*p] = Some(0);
            }
        }
        walk.find(&f.body, 1);
        let suffixes = suffixes(&walk.weights, shared);
        Scopes { origins: walk.origins, suffixes }
    }
}

struct Walk<'a> {
    f: &'a Function,
    /// How often a register is set.
    definitions: IndexVec<Reg, usize>,
    origins: IndexVec<Reg, Option<Origin>>,
    /// How many accesses an origin has, those in loops counting more.
    weights: Vec<u64>,
}

/// The blocks of an instruction, and whether they are repeated.
fn blocks(ins: &Ins) -> (Few<&Block>, bool) {
    (ins.blocks(), matches!(ins, Ins::For { .. } | Ins::While { .. } | Ins::Lanes { .. }))
}

impl Walk<'_> {
    fn count(&mut self, block: &Block) {
        for ins in block {
            ins.sets().iter().for_each(|&to| self.definitions[to] += 1);
            for inner in ins.blocks() {
                self.count(inner);
            }
        }
    }

    fn origin(&self, pointer: Operand) -> Option<Origin> {
        match pointer {
            Operand::Reg(r) => self.origins[r],
            Operand::Const(_) | Operand::Null => None,
        }
    }

    /// Finds origins in the order of the text: a register that is set once is set before it is read.
    fn find(&mut self, block: &Block, weight: u64) {
        for ins in block {
            match ins {
                Ins::Alloc { to, .. } if self.definitions[*to] == 1 => {
                    self.origins[*to] = Some(self.weights.len());
                    self.weights.push(0);
                }
                Ins::Offset { to, pointer, .. } | Ins::Set { to, value: pointer }
                    if self.definitions[*to] == 1 && self.f.regs[*to].ty == Ty::Pointer =>
                {
                    self.origins[*to] = self.origin(*pointer);
                }
                Ins::Load { pointer, .. }
                | Ins::Store { pointer, .. }
                | Ins::Accumulate { pointer, .. }
                | Ins::LoadLanes { pointer, .. }
                | Ins::StoreLanes { pointer, .. }
                | Ins::AccumulateLanes { pointer, .. } => {
                    if let Some(origin) = self.origin(*pointer) {
                        self.weights[origin] = self.weights[origin].saturating_add(weight);
                    }
                }
                _ => {}
            }
            let (inner, repeated) = blocks(ins);
            let weight = if repeated { weight.saturating_mul(8) } else { weight };
            for block in inner {
                self.find(block, weight);
            }
        }
    }
}

/// Metadata for the origins with the most accesses.
fn suffixes(weights: &[u64], shared: &mut Shared) -> Vec<String> {
    let mut chosen: Vec<Origin> = (0..weights.len()).filter(|o| weights[*o] > 0).collect();
    chosen.sort_by_key(|o| std::cmp::Reverse(weights[*o]));
    chosen.truncate(MOST);
    let mut out = vec![String::new(); weights.len()];
    if chosen.len() < 2 {
        return out;
    }
    let domain = shared.node(|me| format!("distinct !{{!{me}}}"));
    let scopes: Vec<usize> =
        chosen.iter().map(|_| shared.node(|me| format!("distinct !{{!{me}, !{domain}}}"))).collect();
    for (k, origin) in chosen.iter().enumerate() {
        let own = shared.node(|_| format!("!{{!{}}}", scopes[k]));
        let others: Vec<String> =
            scopes.iter().enumerate().filter(|(j, _)| *j != k).map(|(_, s)| format!("!{s}")).collect();
        let others = shared.node(|_| format!("!{{{}}}", others.join(", ")));
        out[*origin] = format!(", !alias.scope !{own}, !noalias !{others}");
    }
    out
}
