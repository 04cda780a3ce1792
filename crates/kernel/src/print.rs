//! Kernel IR as text, for people.

use crate::ir::{Block, Fold, Function, Ins, Module, Operand, Order, Reg, Ty};
use pullback_base::index::Index;
use std::fmt::Write;

/// The whole module.
pub fn print(module: &Module) -> String {
    let mut out = String::new();
    for function in module.functions.iter() {
        print_function(module, function, &mut out);
        out.push('\n');
    }
    out
}

fn print_function(module: &Module, f: &Function, out: &mut String) {
    let printer = Printer { module, f };
    let regs = |regs: &[Reg]| {
        regs.iter()
            .map(|r| format!("{}: {}", printer.reg(*r), ty(f.regs[*r].ty)))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let _ = writeln!(out, "function {}({}) -> ({}) {{", f.name, regs(&f.params), regs(&f.results));
    printer.block(&f.body, 1, out);
    out.push_str("}\n");
}

fn ty(ty: Ty) -> String {
    match ty {
        Ty::Scalar(s) => s.name().to_string(),
        Ty::Pointer => "pointer".to_string(),
        Ty::Lanes(s, n) => format!("{n} lanes of {}", s.name()),
    }
}

struct Printer<'a> {
    module: &'a Module,
    f: &'a Function,
}

impl Printer<'_> {
    fn reg(&self, r: Reg) -> String {
        format!("{}_{}", self.f.regs[r].hint, r.index())
    }
    fn operand(&self, a: Operand) -> String {
        match a {
            Operand::Reg(r) => self.reg(r),
            Operand::Const(c) => c.to_string(),
            Operand::Null => "null".to_string(),
        }
    }
    fn operands(&self, args: &[Operand]) -> String {
        args.iter().map(|a| self.operand(*a)).collect::<Vec<_>>().join(", ")
    }
    fn order(&self, folds: &[Fold]) -> String {
        let states: Vec<String> = folds.iter().flat_map(|f| &f.state).map(|r| self.reg(*r)).collect();
        let states =
            if states.is_empty() { String::new() } else { format!(", folding {}", states.join(", ")) };
        format!(" in any order{states}")
    }
    fn place(&self, pointer: Operand, index: Operand, stride: Operand) -> String {
        format!("{}[{} + lane * {}]", self.operand(pointer), self.operand(index), self.operand(stride))
    }
    fn mask(&self, mask: Option<Operand>) -> String {
        mask.map_or(String::new(), |m| format!(" where {}", self.operand(m)))
    }
    fn block(&self, block: &Block, depth: usize, out: &mut String) {
        for ins in block {
            self.ins(ins, depth, out);
        }
    }
    fn ins(&self, ins: &Ins, depth: usize, out: &mut String) {
        let o = |a: &Operand| self.operand(*a);
        let pad = "  ".repeat(depth);
        out.push_str(&pad);
        let line = match ins {
            Ins::Set { to, value } => format!("{} = {}", self.reg(*to), o(value)),
            Ins::Prim { to, prim, args } => {
                format!("{} = {}({})", self.reg(*to), prim.name(), self.operands(args))
            }
            Ins::Load { to, pointer, index } => format!("{} = {}[{}]", self.reg(*to), o(pointer), o(index)),
            Ins::Store { pointer, index, value, ty: _ } => {
                format!("{}[{}] = {}", o(pointer), o(index), o(value))
            }
            Ins::Accumulate { pointer, index, value, ty: _, atomic } => {
                format!("{}[{}] += {}{}", o(pointer), o(index), o(value), atomically(*atomic))
            }
            Ins::Offset { to, pointer, index, ty: _, room: _ } => {
                format!("{} = {} + {}", self.reg(*to), o(pointer), o(index))
            }
            Ins::Alloc { to, count, ty: t } => format!("{} = alloc {} {}", self.reg(*to), o(count), ty(*t)),
            Ins::Mark { to } => format!("{} = mark", self.reg(*to)),
            Ins::Release { mark } => format!("release {}", o(mark)),
            Ins::Fill { pointer, count, value, ty: _ } => {
                format!("fill {}[0 .. {}] = {}", o(pointer), o(count), o(value))
            }
            Ins::Copy { to, from, count, ty: _ } => {
                format!("copy {}[0 .. {}] = {}", o(to), o(count), o(from))
            }
            Ins::For { i, from, to, body, order } => {
                let (i, from, to) = (self.reg(*i), o(from), o(to));
                let order = match order {
                    Order::Given => String::new(),
                    Order::Any(folds) => self.order(folds),
                };
                let _ = writeln!(out, "for {i} from {from} to {to}{order} {{");
                self.block(body, depth + 1, out);
                format!("{pad}}}")
            }
            Ins::Chunks { count, function, args } => {
                let name = &self.module.functions[*function].name;
                format!("chunks 0 .. {} of {name}({})", o(count), self.operands(args))
            }
            Ins::Lanes { i, from, to, lanes, body } => {
                let _ = writeln!(out, "{lanes} lanes {} from {} to {} {{", self.reg(*i), o(from), o(to));
                self.block(body, depth + 1, out);
                format!("{pad}}}")
            }
            Ins::Clock { to } => format!("{} = clock", self.reg(*to)),
            Ins::LaneNumber { to } => format!("{} = lane numbers", self.reg(*to)),
            Ins::LoadLanes { to, pointer, index, stride, mask } => {
                let place = self.place(*pointer, *index, *stride);
                format!("{} = {place}{}", self.reg(*to), self.mask(*mask))
            }
            Ins::StoreLanes { pointer, index, stride, value, ty: _, mask } => {
                let place = self.place(*pointer, *index, *stride);
                format!("{place} = {}{}", o(value), self.mask(*mask))
            }
            Ins::AccumulateLanes { pointer, index, stride, value, ty: _, mask, atomic } => {
                let place = self.place(*pointer, *index, *stride);
                format!("{place} += {}{}{}", o(value), self.mask(*mask), atomically(*atomic))
            }
            Ins::FoldLanes { to, prim, neutral: _, from, mask } => {
                format!("{} = {} of lanes {}{}", self.reg(*to), prim.name(), o(from), self.mask(*mask))
            }
            Ins::Lane { to, from, lane } => format!("{} = lane {lane} of {}", self.reg(*to), o(from)),
            Ins::While { condition, test, body } => {
                out.push_str("while {\n");
                self.block(condition, depth + 1, out);
                let _ = writeln!(out, "{pad}}} {} {{", o(test));
                self.block(body, depth + 1, out);
                format!("{pad}}}")
            }
            Ins::If { condition, then, otherwise } => {
                let _ = writeln!(out, "if {} {{", o(condition));
                self.block(then, depth + 1, out);
                if !otherwise.is_empty() {
                    let _ = writeln!(out, "{pad}}} else {{");
                    self.block(otherwise, depth + 1, out);
                }
                format!("{pad}}}")
            }
            Ins::Fail { condition, message, values } => {
                let kind = &self.module.messages[*message].kind;
                format!("fail if {}: {kind:?} ({})", o(condition), self.operands(values))
            }
            Ins::Call { to, function, args } => {
                let to = to.iter().map(|r| self.reg(*r)).collect::<Vec<_>>().join(", ");
                format!("{to} = {}({})", self.module.functions[*function].name, self.operands(args))
            }
        };
        out.push_str(&line);
        out.push('\n');
    }
}

fn atomically(atomic: bool) -> &'static str {
    if atomic { " atomically" } else { "" }
}
