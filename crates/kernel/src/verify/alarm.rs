//! What the verifier says.

use super::Callee;
use crate::ir::{Function, Ins, Operand, Order, Reg};
use pullback_base::index::Index;

/// Which rule of kernel IR code breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// Registers are set before they are read.
    Unset,
    /// Memory is used between [`Ins::Alloc`] and [`Ins::Release`], and only through pointers to it.
    Memory,
    /// A mark is one that is still there, and nothing else is done with it.
    Mark,
    /// Results, and memory of the caller, reach only memory that is there.
    Escape,
    /// Iterations in any order give back what they allocate.
    Leaves,
    /// Operands and registers have the types of their instruction.
    Type,
    /// Registers of lanes have as many as their loop.
    Lanes,
    /// A counter is set by its loop and by nothing else.
    Counter,
    /// A loop in any order takes together only states that its body sets.
    Fold,
}

/// A rule that is broken, or may be: where, and how.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Alarm {
    /// The rule.
    pub rule: Rule,
    /// The name of the function.
    pub function: String,
    /// The instructions around, the outermost first, and the instruction itself; empty at the end of the function.
    pub path: Vec<String>,
    /// The register that is meant, if it is one.
    pub register: Option<String>,
    /// What is wrong, in a sentence.
    pub text: String,
}

impl std::fmt::Display for Alarm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let place = if self.path.is_empty() { "its end".to_string() } else { self.path.join(" > ") };
        write!(f, "function {}, {place}: {}", self.function, self.text)
    }
}

/// The name of a register, as it is printed.
pub(super) fn name(f: &Function, r: Reg) -> String {
    match f.regs.get(r) {
        Some(info) => format!("{}_{}", info.hint, r.index()),
        None => format!("{r:?}"),
    }
}

pub(super) fn operand(f: &Function, a: Operand) -> String {
    match a {
        Operand::Reg(r) => name(f, r),
        Operand::Const(c) => c.to_string(),
        Operand::Null => "null".to_string(),
    }
}

/// An instruction in a line, without what is inside.
pub(super) fn line(f: &Function, ins: &Ins, callees: &[Callee]) -> String {
    let mut reads = Vec::new();
    match ins {
        Ins::For { from, to, .. } => reads.extend([operand(f, *from), operand(f, *to)]),
        _ => ins.reads(&mut |a| reads.push(operand(f, a))),
    }
    let sets: Vec<String> = ins.sets().iter().map(|r| name(f, *r)).collect();
    let to = if sets.is_empty() { String::new() } else { format!("{} = ", sets.join(", ")) };
    let verb = match ins {
        Ins::Prim { prim, .. } => prim.name(),
        Ins::Call { function, .. } | Ins::Chunks { function, .. } => {
            let callee = callees.get(function.index()).map_or("?", |c| &c.name);
            format!("{} {callee}", verb(ins))
        }
        _ => verb(ins).to_string(),
    };
    format!("{to}{verb}({})", reads.join(", "))
}

fn verb(ins: &Ins) -> &'static str {
    match ins {
        Ins::Set { .. } => "set",
        Ins::Prim { .. } => "prim",
        Ins::Load { .. } => "load",
        Ins::Store { .. } => "store",
        Ins::Accumulate { .. } => "accumulate",
        Ins::Offset { .. } => "offset",
        Ins::Alloc { .. } => "alloc",
        Ins::Mark { .. } => "mark",
        Ins::Release { .. } => "release",
        Ins::Fill { .. } => "fill",
        Ins::Copy { .. } => "copy",
        Ins::For { order: Order::Given, .. } => "for",
        Ins::For { .. } => "for in any order",
        Ins::Chunks { .. } => "chunks of",
        Ins::Lanes { .. } => "lanes",
        Ins::LaneNumber { .. } => "lane numbers",
        Ins::LoadLanes { .. } => "load lanes",
        Ins::StoreLanes { .. } => "store lanes",
        Ins::AccumulateLanes { .. } => "accumulate lanes",
        Ins::FoldLanes { .. } => "fold lanes",
        Ins::Lane { .. } => "lane",
        Ins::While { .. } => "while",
        Ins::If { .. } => "if",
        Ins::Fail { .. } => "fail if",
        Ins::Clock { .. } => "clock",
        Ins::Call { .. } => "call",
    }
}
