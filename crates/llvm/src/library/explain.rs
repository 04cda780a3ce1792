//! What a function of a library says when it stops: messages as formats for `snprintf`.

use super::offsets::{MESSAGE as BUFFER, MESSAGE_BYTES, START};
use super::*;
use crate::abi;
use pullback_base::index::Index;
use pullback_base::{RuntimeErrorKind, Span};
use pullback_kernel::{Block, FunctionId, Ins, Message, Module, Reg, Text, walk};
use std::collections::BTreeMap;
use std::fmt::Write;

/// A format, and the values it takes: those of the message, or products of some.
#[derive(Clone, Debug, PartialEq)]
pub struct Format {
    /// The format itself.
    pub text: String,
    /// The values.
    pub values: Vec<Value>,
}

/// A value that a format takes.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// One of the message.
    One(usize),
    /// The product of some of them.
    Product(std::ops::Range<usize>),
}

/// The places in the source program where memory is asked for.
fn asked(module: &Module) -> BTreeMap<(FunctionId, Reg), Span> {
    let mut out = BTreeMap::new();
    for (id, f) in module.functions.iter_enumerated() {
        walk(&f.body, &mut |ins| {
            if let Ins::Alloc { to, .. } = ins {
                out.extend(f.regs[*to].facts.place.map(|span| ((id, *to), span)));
            }
        });
    }
    out
}

/// The function `@explain(ptr %h) -> i32`: writes the message of the context to the buffer, and gives the status. `place` shows
/// a position, as `file:line:column: `.
pub(super) fn explain(module: &Module, place: &dyn Fn(Span) -> String) -> String {
    let mut out = Explain { constants: String::new(), cases: String::new(), switch: String::new(), next: 0 };
    let mut counts = BTreeMap::new();
    module.functions.iter().for_each(|f| count_values(&f.body, &mut counts));
    for (id, message) in module.messages.iter_enumerated() {
        let count = counts.get(&id.index()).copied().unwrap_or(0);
        let at = message.span.map(place).unwrap_or_default();
        out.message(id.index() as i64, message, count, &at);
    }
    out.out_of_memory(module, place);
    let nothing = |text: &str| Format { text: text.to_string(), values: Vec::new() };
    out.case(abi::CANCELLED, CANCELLED, &nothing("cancelled"), None);
    let calls = Format { text: "too many calls of recursive functions are open".into(), values: vec![] };
    out.case(abi::TOO_MANY_CALLS, LIMIT, &calls, None);
    out.case(abi::STACK_FULL, LIMIT, &nothing("the stack is full: too many calls are open"), None);
    out.finish()
}

/// How many values each message has.
fn count_values(block: &Block, out: &mut BTreeMap<usize, usize>) {
    for ins in block {
        if let Ins::Fail { message, values, .. } = ins {
            let count = out.entry(message.index()).or_default();
            *count = values.len().min(abi::MAX_VALUES).max(*count);
        }
        ins.blocks().into_iter().for_each(|b| count_values(b, out));
    }
}

fn status(kind: &RuntimeErrorKind) -> i32 {
    match kind {
        RuntimeErrorKind::OutOfBounds => OUT_OF_BOUNDS,
        RuntimeErrorKind::ShapeMismatch => SHAPE_MISMATCH,
        RuntimeErrorKind::DivisionByZero => DIVISION_BY_ZERO,
        RuntimeErrorKind::AssertFailed => ASSERT_FAILED,
        RuntimeErrorKind::EmptyReduction => EMPTY_REDUCTION,
        RuntimeErrorKind::NegativeSize => NEGATIVE_SIZE,
        RuntimeErrorKind::Limit => LIMIT,
        RuntimeErrorKind::Cancelled => CANCELLED,
        RuntimeErrorKind::NotFinite | RuntimeErrorKind::Internal => INTERNAL,
    }
}

/// Numbers that no text contains by itself.
fn marker(k: usize) -> i64 {
    7_340_000_000_001 + 1_000_003 * k as i64
}

/// The text of a message as a format: what [`Message::render`] makes of markers, with `%lld` where they stand.
fn format(message: &Message, values: &[i64]) -> Format {
    let rendered = message.render(values).replace('%', "%%");
    let mut places: Vec<(usize, usize, usize)> = Vec::new();
    for k in 0..values.len() {
        let written = marker(k).to_string();
        places.extend(rendered.match_indices(&written).map(|(at, text)| (at, text.len(), k)));
    }
    places.sort_unstable();
    let (mut text, mut from, mut found) = (String::new(), 0, Vec::new());
    for (at, length, k) in places {
        text += &rendered[from..at];
        text += "%lld";
        found.push(Value::One(k));
        from = at + length;
    }
    text += &rendered[from..];
    Format { text, values: found }
}

/// The format of a message with so many values, and another one for where the third value is 1.
pub fn formats(message: &Message, count: usize) -> (Format, Option<Format>) {
    let mut values: Vec<i64> = (0..count).map(marker).collect();
    match &message.text {
        Text::Reshape(old) => {
            let shape = |n: usize| "[%lld]".repeat(n);
            let old = (*old).min(count);
            let text = format!("reshape: {} has %lld elements, {} has %lld", shape(old), shape(count - old));
            let mut values: Vec<Value> = (0..old).map(Value::One).collect();
            values.push(Value::Product(0..old));
            values.extend((old..count).map(Value::One));
            values.push(Value::Product(old..count));
            (Format { text, values }, None)
        }
        Text::Slice if count > 2 => {
            let steps = format(message, &values);
            values[2] = 1;
            (steps, Some(format(message, &values)))
        }
        Text::Slice | Text::Plain(_) | Text::Index(_) | Text::Shapes(..) => (format(message, &values), None),
    }
}

struct Explain {
    constants: String,
    cases: String,
    switch: String,
    next: usize,
}

impl Explain {
    fn text(&mut self, text: &str) -> String {
        let name = format!("text.{}", self.next);
        self.next += 1;
        self.constants += &constant(&name, text);
        format!("@{name}")
    }
    fn message(&mut self, id: i64, message: &Message, count: usize, at: &str) {
        let (mut usual, mut other) = formats(message, count);
        let at = at.replace('%', "%%");
        usual.text.insert_str(0, &at);
        if let Some(other) = &mut other {
            other.text.insert_str(0, &at);
        }
        self.case(id, status(&message.kind), &usual, other.as_ref());
    }

    /// A case that prints a format; the other one where the third value is 1.
    fn case(&mut self, id: i64, status: i32, usual: &Format, other: Option<&Format>) {
        let label = format!("case{}", self.next);
        self.next += 1;
        let _ = writeln!(self.switch, "    i64 {id}, label %{label}");
        let _ = writeln!(self.cases, "{label}:");
        if let Some(other) = other {
            let name = format!("{label}.third");
            self.load(&name, 2);
            let (one, rest) = (format!("{label}.one"), format!("{label}.rest"));
            let _ = writeln!(self.cases, "  %{name}.one = icmp eq i64 %{name}, 1");
            let _ = writeln!(self.cases, "  br i1 %{name}.one, label %{one}, label %{rest}");
            let _ = writeln!(self.cases, "{one}:");
            self.print(&one, other);
            let _ = writeln!(self.cases, "  ret i32 {status}\n{rest}:");
            self.print(&rest, usual);
        } else {
            self.print(&label, usual);
        }
        let _ = writeln!(self.cases, "  ret i32 {status}");
    }
    fn load(&mut self, name: &str, k: usize) {
        let at = abi::VALUES + 8 * k;
        let _ = writeln!(self.cases, "  %{name}.at = getelementptr i8, ptr %h, i64 {at}");
        let _ = writeln!(self.cases, "  %{name} = load i64, ptr %{name}.at");
    }
    fn print(&mut self, label: &str, format: &Format) {
        let mut given = String::new();
        for (j, value) in format.values.iter().enumerate() {
            let name = format!("{label}.v{j}");
            match value {
                Value::One(k) => self.load(&name, *k),
                Value::Product(range) => {
                    let mut product = "1".to_string();
                    for k in range.clone() {
                        self.load(&format!("{name}.{k}"), k);
                        let _ = writeln!(self.cases, "  %{name}.p{k} = mul i64 {product}, %{name}.{k}");
                        product = format!("%{name}.p{k}");
                    }
                    let _ = writeln!(self.cases, "  %{name} = add i64 {product}, 0");
                }
            }
            let _ = write!(given, ", i64 %{name}");
        }
        let text = self.text(&format.text);
        self.call(&text, &given);
    }
    fn call(&mut self, text: &str, given: &str) {
        let _ = writeln!(
            self.cases,
            "  call i32 (ptr, i64, ptr, ...) @snprintf(ptr %buffer, i64 {MESSAGE_BYTES}, ptr {text}{given})"
        );
    }

    /// The one message whose place depends on its values: those of the function and the register.
    fn out_of_memory(&mut self, module: &Module, place: &dyn Fn(Span) -> String) {
        let none = self.text("");
        let (mut table, mut phi) = (String::new(), String::new());
        for ((function, register), span) in asked(module) {
            let key = (function.index() << 32) + register.index();
            let text = self.text(&place(span));
            let label = format!("place{}", self.next);
            self.next += 1;
            let _ = writeln!(table, "    i64 {key}, label %{label}");
            let _ = writeln!(self.cases, "{label}:\n  br label %memory.said");
            let _ = write!(phi, ", [ {text}, %{label} ]");
        }
        let _ = writeln!(self.switch, "    i64 {}, label %memory", abi::OUT_OF_MEMORY);
        let _ = writeln!(self.cases, "memory:");
        for (k, name) in ["count", "size", "function", "register"].iter().enumerate() {
            self.load(name, k);
        }
        let text =
            self.text("%sout of memory: %llu more bytes are needed, %lld are in use, the limit is %lld");
        let _ = write!(
            self.cases,
            "  %product = mul i64 %count, %size\n  \
               %most = udiv i64 -1, %size\n  \
               %is_huge = icmp ugt i64 %count, %most\n  \
               %bytes = select i1 %is_huge, i64 -1, i64 %product\n  \
               %top.at = getelementptr i8, ptr %h, i64 {}\n  %top = load i64, ptr %top.at\n  \
               %start.at = getelementptr i8, ptr %h, i64 {START}\n  %start = load i64, ptr %start.at\n  \
               %end.at = getelementptr i8, ptr %h, i64 {}\n  %end = load i64, ptr %end.at\n  \
               %used = sub i64 %top, %start\n  %limit = sub i64 %end, %start\n  \
               %high = shl i64 %function, 32\n  %key = or i64 %high, %register\n  \
               switch i64 %key, label %memory.nowhere [\n{table}  ]\n\
             memory.nowhere:\n  br label %memory.said\n\
             memory.said:\n  %place = phi ptr [ {none}, %memory.nowhere ]{phi}\n",
            abi::TOP,
            abi::END,
        );
        self.call(&text, ", ptr %place, i64 %bytes, i64 %used, i64 %limit");
        let _ = writeln!(self.cases, "  ret i32 {LIMIT}");
    }

    fn finish(mut self) -> String {
        let unknown = self.text("the program stopped for an unknown reason");
        format!(
            "{}declare i32 @snprintf(ptr, i64, ptr, ...)\n\
             define internal i32 @explain(ptr %h) noinline cold {{\nentry:\n  \
               %buffer = getelementptr i8, ptr %h, i64 {BUFFER}\n  \
               %message.at = getelementptr i8, ptr %h, i64 {}\n  %message = load i64, ptr %message.at\n  \
               switch i64 %message, label %unknown [\n{}  ]\n{}unknown:\n  \
               call i32 (ptr, i64, ptr, ...) @snprintf(ptr %buffer, i64 {MESSAGE_BYTES}, ptr {unknown})\n  \
               ret i32 {INTERNAL}\n}}\n",
            self.constants,
            abi::MESSAGE,
            self.switch,
            self.cases,
        )
    }
}
