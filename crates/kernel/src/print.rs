//! Kernel IR as text, in two styles of one printer: [`print`] for people, and [`print_whole`] with all that a module holds, from
//! which [`crate::read()`] makes it again. The grammar of the second is in [`mod@crate::read`].
//!
//! [`Printer::ins`] is long: it has one arm per instruction, and an instruction is a line of text.

use crate::ir::{
    Block, Facts, Fold, Function, FunctionId, Ins, Message, Module, Operand, Order, Reg, Shape, Site, Sweep,
    Text, Ty,
};
use pullback_base::Span;
use pullback_base::index::{Index, IndexVec};
use pullback_prim::ScalarValue;
use std::fmt::Write;

/// The whole module for people, without types of elements, messages and the like.
pub fn print(module: &Module) -> String {
    styled(module, Style::Brief)
}

/// The whole module with all that it holds: [`crate::read()`] gives an equal module. Cost: the size of the module.
pub fn print_whole(module: &Module) -> String {
    styled(module, Style::Whole)
}

#[derive(Clone, Copy, PartialEq)]
enum Style {
    /// For people.
    Brief,
    /// For people and the reader.
    Whole,
}

fn styled(module: &Module, style: Style) -> String {
    let mut out = String::new();
    if style == Style::Whole {
        print_head(module, &mut out);
    }
    for (id, f) in module.functions.iter_enumerated() {
        let declared = f.regs.iter().map(|_| false).collect();
        let printer = Printer { module, id, f, style, declared, early: Vec::new(), out: String::new() };
        out += &printer.function();
        out.push('\n');
    }
    out
}

/// What belongs to no function.
fn print_head(module: &Module, out: &mut String) {
    if module.lanes > 0 {
        let _ = writeln!(out, "lanes {}", module.lanes);
    }
    for fallback in &module.fallbacks {
        let _ = writeln!(out, "without {}", fallback.name());
    }
    for (id, message) in module.messages.iter_enumerated() {
        let Message { kind, text, span } = message;
        let place = span.map_or(String::new(), |s| format!(" at {}", place(s)));
        let _ = writeln!(out, "message_{}: {kind:?} {}{place}", id.index(), print_text(text));
    }
    if !out.is_empty() {
        out.push('\n');
    }
}

fn print_text(text: &Text) -> String {
    match text {
        Text::Plain(text) => format!("plain {}", quoted(text)),
        Text::Index(indices) => format!("index {indices}"),
        Text::Shapes(what, rank) => format!("shapes {} {rank}", quoted(what)),
        Text::Slice => "slice".to_string(),
        Text::Reshape(old) => format!("reshape {old}"),
    }
}

fn place(span: Span) -> String {
    format!("{}:{}..{}", span.file.index(), span.start, span.end)
}

/// A string between quotes, on one line.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out += "\\n",
            c if c.is_control() => {
                let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// A name of a function, or the name of a register before its number: as it is if it is a word without a dot.
fn name(name: &str) -> String {
    let in_words = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '\'';
    let is_word = name.chars().all(in_words) && !name.starts_with(|c: char| c.is_ascii_digit() || c == '\'');
    if is_word { name.to_string() } else { quoted(name) }
}

fn function_name(of: &str) -> String {
    if of.is_empty() || of == "function" { quoted(of) } else { name(of) }
}

fn ty(ty: Ty) -> String {
    match ty {
        Ty::Scalar(s) => s.name().to_string(),
        Ty::Pointer => "pointer".to_string(),
        Ty::Lanes(s, n) => format!("{n} lanes of {}", s.name()),
    }
}

/// What is known about a register, in brackets; nothing if nothing is.
fn facts(facts: &Facts, sizes: impl Fn(&Operand) -> String) -> String {
    let Facts { place: made_at, tape, owned, choice, site, array } = facts;
    let owned = owned.map(|r| format!("owned {}", r.index()));
    let flags = [tape.then(|| "tape".to_string()), owned, choice.then(|| "choice".to_string())];
    let flags = flags.into_iter().flatten();
    let made_at = made_at.map(|span| format!("at {}", place(span)));
    let site = site.as_deref().map(|Site { span, construct, sweep }| {
        let sweep = match sweep {
            Sweep::Primal => "primal",
            Sweep::Reverse => "reverse",
            Sweep::Both => "both",
        };
        let at = span.map_or(String::new(), |s| format!(" {}", place(s)));
        format!("for {} {sweep}{at}", quoted(construct))
    });
    let array = array.as_deref().map(|Shape { ty: of, sizes: all }| {
        format!("array of {}[{}]", ty(*of), all.iter().map(sizes).collect::<Vec<_>>().join(", "))
    });
    let all: Vec<String> = flags.chain(made_at).chain(site).chain(array).collect();
    if all.is_empty() { String::new() } else { format!(" #[{}]", all.join(", ")) }
}

struct Printer<'a> {
    module: &'a Module,
    id: FunctionId,
    f: &'a Function,
    style: Style,
    /// Whether the type of a register has been printed.
    declared: IndexVec<Reg, bool>,
    /// Registers that the text reads before it sets them.
    early: Vec<Reg>,
    /// The body so far.
    out: String,
}

impl Printer<'_> {
    fn function(mut self) -> String {
        let whole = self.style == Style::Whole;
        let name = if whole { function_name(&self.f.name) } else { self.f.name.clone() };
        let f = self.f;
        let (params, results) = (self.typed(&f.params), self.typed(&f.results));
        let call = self.module.calls.get(&self.id).filter(|_| whole);
        let call = call.map_or(String::new(), |(by, span)| {
            let by = self.module.functions.get(*by).map_or("", |f| &f.name);
            format!(" called by {} at {}", function_name(by), place(*span))
        });
        self.block(&f.body, 1);
        let mut out = format!("function {name}({params}) -> ({results}){call} {{\n");
        if whole {
            let unused: Vec<Reg> = self.f.regs.ids().filter(|r| !self.declared[*r]).collect();
            self.early.extend(unused);
            self.early.sort_unstable();
            for r in &self.early {
                let _ = writeln!(out, "  register {}{}", self.name(*r), self.known(*r));
            }
        }
        out + &self.out + "}\n"
    }

    // Registers and operands

    fn name(&self, r: Reg) -> String {
        let hint = &self.f.regs[r].hint;
        match self.style {
            Style::Brief => format!("{hint}_{}", r.index()),
            Style::Whole => format!("{}_{}", name(hint), r.index()),
        }
    }
    /// The type of a register, and what is known about it.
    fn known(&self, r: Reg) -> String {
        let info = &self.f.regs[r];
        // (A size may be set after the register: where it is mentioned here, it is not declared.)
        let size = |a: &Operand| match a {
            Operand::Reg(r) => self.name(*r),
            Operand::Const(c) => self.constant(*c),
            Operand::Null => "null".to_string(),
        };
        format!(": {}{}", ty(info.ty), facts(&info.facts, size))
    }
    /// Registers of the head of a function.
    fn typed(&mut self, regs: &[Reg]) -> String {
        match self.style {
            Style::Brief => {
                let one = |r: &Reg| format!("{}: {}", self.name(*r), ty(self.f.regs[*r].ty));
                regs.iter().map(one).collect::<Vec<_>>().join(", ")
            }
            Style::Whole => self.sets(regs),
        }
    }
    /// A register that is set here: with its type, if it is mentioned for the first time.
    fn set(&mut self, r: Reg) -> String {
        let name = self.name(r);
        if self.style == Style::Brief || std::mem::replace(&mut self.declared[r], true) {
            return name;
        }
        name + &self.known(r)
    }
    fn sets(&mut self, regs: &[Reg]) -> String {
        regs.iter().map(|r| self.set(*r)).collect::<Vec<_>>().join(", ")
    }
    fn operand(&mut self, a: Operand) -> String {
        match a {
            Operand::Reg(r) => {
                if !std::mem::replace(&mut self.declared[r], true) {
                    self.early.push(r);
                }
                self.name(r)
            }
            Operand::Const(c) => self.constant(c),
            Operand::Null => "null".to_string(),
        }
    }
    /// A constant; a number that is none with its bits, if they are not the usual ones.
    fn constant(&self, c: ScalarValue) -> String {
        match c {
            ScalarValue::F32(x) if self.style == Style::Whole && x.is_nan() && c != f32::NAN.into() => {
                format!("f32.bits({:#x})", x.to_bits())
            }
            ScalarValue::F64(x) if self.style == Style::Whole && x.is_nan() && c != f64::NAN.into() => {
                format!("f64.bits({:#x})", x.to_bits())
            }
            c => c.to_string(),
        }
    }
    fn operands(&mut self, args: &[Operand]) -> String {
        args.iter().map(|a| self.operand(*a)).collect::<Vec<_>>().join(", ")
    }
    fn place(&mut self, (pointer, index): (Operand, Operand)) -> String {
        format!("{}[{}]", self.operand(pointer), self.operand(index))
    }
    fn places(&mut self, (pointer, index, stride): (Operand, Operand, Operand)) -> String {
        format!("{}[{} + lane * {}]", self.operand(pointer), self.operand(index), self.operand(stride))
    }
    fn mask(&mut self, mask: Option<Operand>) -> String {
        mask.map_or(String::new(), |m| format!(" where {}", self.operand(m)))
    }

    // Details that only the reader needs

    /// A text in the style with all details.
    fn detail(&mut self, text: impl FnOnce(&mut Self) -> String) -> String {
        if self.style == Style::Whole { text(self) } else { String::new() }
    }
    /// The type of elements, after their place.
    fn of(&self, t: Ty) -> String {
        if self.style == Style::Whole { format!(": {}", ty(t)) } else { String::new() }
    }
    fn called(&self, function: FunctionId) -> String {
        let name = &self.module.functions[function].name;
        if self.style == Style::Whole { function_name(name) } else { name.clone() }
    }

    // Instructions

    fn line(&mut self, depth: usize, text: &str) {
        self.out.push_str(&"  ".repeat(depth));
        self.out.push_str(text);
        self.out.push('\n');
    }
    fn block(&mut self, block: &Block, depth: usize) {
        for ins in block {
            let last = self.ins(ins, depth);
            self.line(depth, &last);
        }
    }
    /// The head of a loop in any order, with what it folds.
    fn order(&mut self, mut head: String, folds: &[Fold], depth: usize) {
        if self.style == Style::Brief {
            let states: Vec<String> = folds.iter().flat_map(|f| &f.state).map(|r| self.name(*r)).collect();
            if !states.is_empty() {
                let _ = write!(head, ", folding {}", states.join(", "));
            }
            return self.line(depth, &(head + " {"));
        }
        for fold in folds {
            let Fold { state, neutral, combine, left, right, out } = fold;
            let _ = write!(head, " folding ({}) neutral ({})", self.sets(state), self.operands(neutral));
            let _ = write!(head, " left ({}) right ({}) {{", self.sets(left), self.sets(right));
            self.line(depth, &head);
            self.block(combine, depth + 1);
            head = format!("}} out ({})", self.operands(out));
        }
        self.line(depth, &(head + " {"));
    }
    /// Prints an instruction but for its last line, which it returns.
    fn ins(&mut self, ins: &Ins, depth: usize) -> String {
        match ins {
            Ins::Set { to, value } => format!("{} = {}", self.set(*to), self.operand(*value)),
            Ins::Prim { to, prim, args } => {
                format!("{} = {}({})", self.set(*to), prim.name(), self.operands(args))
            }
            Ins::Load { to, pointer, index } => {
                format!("{} = {}", self.set(*to), self.place((*pointer, *index)))
            }
            Ins::Store { pointer, index, value, ty } => {
                format!("{}{} = {}", self.place((*pointer, *index)), self.of(*ty), self.operand(*value))
            }
            Ins::Accumulate { pointer, index, value, ty, atomic } => {
                let (place, of) = (self.place((*pointer, *index)), self.of(*ty));
                format!("{place}{of} += {}{}", self.operand(*value), atomically(*atomic))
            }
            Ins::Offset { to, pointer, index, ty: t, room } => {
                let to = self.set(*to);
                let sum = format!("{} + {}", self.operand(*pointer), self.operand(*index));
                let of = self.detail(|p| {
                    let room = room.map_or(String::new(), |n| format!(" room {}", p.operand(n)));
                    format!(" of {}{room}", ty(*t))
                });
                format!("{to} = {sum}{of}")
            }
            Ins::Alloc { to, count, ty: t } => {
                format!("{} = alloc {} {}", self.set(*to), self.operand(*count), ty(*t))
            }
            Ins::Mark { to } => format!("{} = mark", self.set(*to)),
            Ins::Release { mark } => format!("release {}", self.operand(*mark)),
            Ins::Fill { pointer, count, value, ty } => {
                let all = format!("{}[0 .. {}]", self.operand(*pointer), self.operand(*count));
                format!("fill {all}{} = {}", self.of(*ty), self.operand(*value))
            }
            Ins::Copy { to, from, count, ty } => {
                let all = format!("{}[0 .. {}]", self.operand(*to), self.operand(*count));
                format!("copy {all}{} = {}", self.of(*ty), self.operand(*from))
            }
            Ins::Chunks { count, function, args } => {
                let (count, name) = (self.operand(*count), self.called(*function));
                format!("chunks 0 .. {count} of {name}({})", self.operands(args))
            }
            Ins::Clock { to } => format!("{} = clock", self.set(*to)),
            Ins::Fail { condition, message, values } => {
                let condition = self.operand(*condition);
                let message = match self.style {
                    Style::Brief => format!("{:?}", self.module.messages[*message].kind),
                    Style::Whole => format!("message_{}", message.index()),
                };
                format!("fail if {condition}: {message} ({})", self.operands(values))
            }
            Ins::Call { to, function, args } => {
                let (to, name) = (self.sets(to), self.called(*function));
                let args = self.operands(args);
                match self.style {
                    Style::Brief => format!("{to} = {name}({args})"),
                    Style::Whole if to.is_empty() => format!("call {name}({args})"),
                    Style::Whole => format!("{to} = call {name}({args})"),
                }
            }
            Ins::For { i, from, to, body, order } => {
                let i = self.set(*i);
                let head = format!("for {i} from {} to {}", self.operand(*from), self.operand(*to));
                match order {
                    Order::Given => self.line(depth, &(head + " {")),
                    Order::Any(folds) => self.order(head + " in any order", folds, depth),
                }
                self.block(body, depth + 1);
                "}".to_string()
            }
            Ins::Lanes { i, from, to, lanes, body } => {
                let i = self.set(*i);
                let range = format!("{i} from {} to {}", self.operand(*from), self.operand(*to));
                self.line(depth, &format!("{lanes} lanes {range} {{"));
                self.block(body, depth + 1);
                "}".to_string()
            }
            Ins::While { condition, test, body } => {
                self.line(depth, "while {");
                self.block(condition, depth + 1);
                let test = self.operand(*test);
                self.line(depth, &format!("}} {test} {{"));
                self.block(body, depth + 1);
                "}".to_string()
            }
            Ins::If { condition, then, otherwise } => {
                let condition = self.operand(*condition);
                self.line(depth, &format!("if {condition} {{"));
                self.block(then, depth + 1);
                if !otherwise.is_empty() {
                    self.line(depth, "} else {");
                    self.block(otherwise, depth + 1);
                }
                "}".to_string()
            }
            Ins::LaneNumber { to } => format!("{} = lane numbers", self.set(*to)),
            Ins::LoadLanes { to, pointer, index, stride, mask } => {
                let (to, places) = (self.set(*to), self.places((*pointer, *index, *stride)));
                format!("{to} = {places}{}", self.mask(*mask))
            }
            Ins::StoreLanes { pointer, index, stride, value, ty, mask } => {
                let (places, of) = (self.places((*pointer, *index, *stride)), self.of(*ty));
                format!("{places}{of} = {}{}", self.operand(*value), self.mask(*mask))
            }
            Ins::AccumulateLanes { pointer, index, stride, value, ty, mask, atomic } => {
                let (places, of) = (self.places((*pointer, *index, *stride)), self.of(*ty));
                let value = self.operand(*value);
                format!("{places}{of} += {value}{}{}", self.mask(*mask), atomically(*atomic))
            }
            Ins::FoldLanes { to, prim, neutral, from, mask } => {
                let (to, from) = (self.set(*to), self.operand(*from));
                let neutral = self.detail(|p| format!(" neutral {}", p.constant(*neutral)));
                format!("{to} = {} of lanes {from}{neutral}{}", prim.name(), self.mask(*mask))
            }
            Ins::Lane { to, from, lane } => {
                format!("{} = lane {lane} of {}", self.set(*to), self.operand(*from))
            }
        }
    }
}

fn atomically(atomic: bool) -> &'static str {
    if atomic { " atomically" } else { "" }
}
