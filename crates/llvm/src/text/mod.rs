//! Kernel IR as LLVM IR text that LLVM 15 to 22 read alike.
//!
//! Large functions are cut into pieces first (see [`crate::pieces`]). Registers that are set once, before what reads them, become values; others slots of the entry block, which LLVM's first pass turns into
//! values. Nested control becomes basic blocks. A function is `i32 @fn.NAME(ptr context, arguments .., ptr results)`; every function also has an exported
//! `i32 @entry.NAME(ptr context, ptr arguments, ptr results)` on words of eight bytes (see [`crate::abi`]).
//!
//! Assumes a module whose registers are set before they are read and whose operands have the types of their places, and two
//! lanes or more where there are some. Guarantees: equal modules give equal text. No operation has undefined behaviour,
//! whatever its operands, except for loads and stores outside memory (and what [`Floats::Fast`] gives up). What LLVM may change
//! about floating point is said by [`Floats`].

mod calls;
mod data;
mod form;
mod functions;
mod helpers;
mod lanes;
mod loops;
mod memory;
mod places;
mod prim;
mod rows;
mod scopes;
mod speculate;
pub(crate) mod uses;
mod whole;

use crate::abi;
use crate::maths::Machine;
use crate::pieces::{Limits, Pieces};
use form::Form;
use places::At;
use pullback_base::index::{Index, IndexVec};
use pullback_kernel::{Block, Fold, Function, FunctionId, Ins, MessageId, Module, Operand, Order, Reg, Ty};
use pullback_prim::{Op, Prim, Scalar, ScalarValue};
use scopes::Scopes;
use speculate::{KEEPS_REGISTERS, RECORD};
use std::collections::BTreeMap;
use std::fmt::Write;
use whole::Whole;

/// How text is made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Options {
    /// The width in bits of the vectors that LLVM should prefer; `None`: what it thinks best for the processor.
    pub vector_width: Option<u32>,
    /// The instructions that functions of lanes may use.
    pub machine: Machine,
    /// What functions such as `exp` are.
    pub functions: Functions,
    /// What LLVM may change about floating point.
    pub floats: Floats,
    /// How large functions are cut.
    pub pieces: Limits,
    /// Whether strong products on lanes are products with masks; `None`: where the machine's instructions take masks.
    pub masks: Option<bool>,
}

/// What functions such as `exp` are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Functions {
    /// Those of `pullback-maths`, as part of the code.
    #[default]
    Own,
    /// Those of the primitive table, which are called: slow, with the bits of the interpreter.
    Table,
}

/// What LLVM may change about floating point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Floats {
    /// A product and a sum may be rounded once. Inner loops whose order is [`Order::Any`] may fold sums and products side by
    /// side; the order then depends on the machine's vectors and on sizes. Nothing else is done in another order.
    #[default]
    Contract,
    /// Nothing: results have the bits of the reference executor.
    Strict,
    /// Everything: order, reciprocals, and what happens at NaN, infinities and zeros with a sign. Where one of these comes up,
    /// a result may be anything, and so may be which branch is taken on it.
    Fast,
}

/// A module as text.
#[derive(Clone, Debug, PartialEq)]
pub struct Emitted {
    /// LLVM IR.
    pub text: String,
    /// Functions that the text calls and does not define.
    pub symbols: Vec<Symbol>,
    /// Whether a function may call itself, directly or through others: it needs a deep stack.
    pub is_recursive: bool,
}

/// A primitive that is called and not computed in place.
#[derive(Clone, Debug, PartialEq)]
pub struct Symbol {
    /// Its name in the text.
    pub name: String,
    /// The primitive. All its arguments and its result are of one float type.
    pub prim: Prim,
}

/// The exported name of a function.
pub fn entry_symbol(function: &Function) -> String {
    format!("entry.{}", function.name)
}

/// A module as texts that are compiled apart and linked.
#[derive(Clone, Debug, PartialEq)]
pub struct Texts {
    /// LLVM IR. Functions of one are called by others.
    pub texts: Vec<String>,
    /// Functions that the texts call and do not define.
    pub symbols: Vec<Symbol>,
    /// Whether a function may call itself, directly or through others: it needs a deep stack.
    pub is_recursive: bool,
    /// The exported names of the functions of the module, in their order. Functions with the same code have one.
    pub entries: Vec<String>,
}

/// The module as one text.
pub fn emit(module: &Module, options: &Options) -> Emitted {
    let whole = Whole::new(module, options, false);
    let (texts, symbols) = whole.texts();
    Emitted { text: texts.concat(), symbols, is_recursive: whole.is_recursive() }
}

/// The module as several texts, if it is large.
pub fn emit_several(module: &Module, options: &Options) -> Texts {
    let whole = Whole::new(module, options, true);
    let (texts, symbols) = whole.texts();
    Texts { texts, symbols, is_recursive: whole.is_recursive(), entries: whole.entries() }
}

/// Attributes of cold paths, of primitives that are called and of [`helpers`]; branch weights, and the range of truth values in memory.
const TAIL: &str = "\
attributes #1 = { nounwind noinline cold }
attributes #2 = { nounwind readnone willreturn speculatable }
attributes #5 = { nounwind noinline }
!0 = !{!\"branch_weights\", i32 1, i32 1000000}
!1 = !{i8 0, i8 2}
";

/// The number of the first node of metadata after those of [`TAIL`].
const FIRST_NODE: usize = 2;

/// What all functions of a module add to.
#[derive(Default)]
struct Shared {
    /// Declarations and helper functions by name.
    declarations: BTreeMap<String, String>,
    symbols: BTreeMap<String, Symbol>,
    /// Metadata, numbered after those of [`TAIL`].
    nodes: Vec<String>,
    /// The numbers of tables of constants.
    tables: BTreeMap<String, usize>,
    /// Functions that compute lines of strong products, by what they are, with their numbers (see [`speculate`]).
    lines: BTreeMap<String, usize>,
}

impl Shared {
    /// A new node of metadata, given its number.
    fn node(&mut self, text: impl FnOnce(usize) -> String) -> usize {
        let number = self.nodes.len() + FIRST_NODE;
        self.nodes.push(text(number));
        number
    }
    /// The name of a function that computes a line, with these parameters and body, which is written once.
    fn again(&mut self, text: String) -> String {
        let count = self.lines.len();
        let name = format!("pb_again{}", self.lines.entry(text.clone()).or_insert(count));
        self.declarations
            .insert(name.clone(), format!("define internal {KEEPS_REGISTERS} void @{name}{text}"));
        name
    }
}

/// The text of one function.
struct Emitter<'a> {
    pieces: &'a Pieces,
    options: &'a Options,
    /// How many lanes the present instruction, or the loop around it, has.
    lanes: Option<usize>,
    /// Bodies of loops of lanes up to this size are there twice.
    small_enough: usize,
    /// Which lanes are active; `None`: all.
    active: Option<String>,
    /// Whether the loop of lanes around writes to memory; true outside of one.
    writes: bool,
    /// What the loop around takes together in any order.
    folds: Vec<(Reg, Prim)>,
    /// Whether the instruction that is being written is part of such a fold.
    is_fold: bool,
    id: FunctionId,
    f: &'a Function,
    scopes: Scopes,
    shared: &'a mut Shared,
    /// Everything after the slots.
    out: String,
    /// The allocations of the entry block.
    slots: String,
    /// What stands for registers.
    values: IndexVec<Reg, Held>,
    /// How often registers are read.
    reads: IndexVec<Reg, usize>,
    /// The line of strong products that is being written.
    speculation: Option<speculate::Speculation>,
    /// Strong products on lanes that are read once, by their values.
    stopped: BTreeMap<String, prim::Stopped>,
    /// Bytes for calls of functions that compute such lines again.
    record: usize,
    /// The next number of a value or label.
    next: usize,
    /// Whether the block `stop` is used.
    has_stop: bool,
    /// The loops of this function that the present place is in.
    open_loops: usize,
    /// Those of them whose iterations are in any order.
    unordered: usize,
    /// Whether this is a large function, or a piece of one: what is done once is called there and not written out.
    is_large: bool,
}

/// Where the value of a register is.
#[derive(Clone, Debug, PartialEq)]
enum Held {
    /// In its slot.
    Slot,
    /// It is this value of LLVM; empty before it is set.
    Value(String),
}

/// A line of the body.
macro_rules! line {
    ($emitter:expr, $($format:tt)*) => {{
        $emitter.out.push_str("  ");
        let _ = writeln!($emitter.out, $($format)*);
    }};
}
use line;

/// The type of a value in a register that is not one of lanes.
fn ty(t: Ty) -> &'static str {
    match t {
        Ty::Pointer => "ptr",
        Ty::Scalar(s) => scalar(s),
        Ty::Lanes(..) => panic!("lanes stay inside a function, in registers"),
    }
}

/// The type of a scalar in a register: truth values are one bit.
fn scalar(s: Scalar) -> &'static str {
    match s {
        Scalar::F32 => "float",
        Scalar::F64 => "double",
        Scalar::I8 | Scalar::U8 => "i8",
        Scalar::I16 | Scalar::U16 => "i16",
        Scalar::I32 | Scalar::U32 => "i32",
        Scalar::I64 | Scalar::U64 => "i64",
        Scalar::Bool => "i1",
    }
}

/// The type of a value in memory: truth values are one byte.
fn in_memory(t: Ty) -> &'static str {
    match t {
        Ty::Scalar(Scalar::Bool) => "i8",
        Ty::Scalar(_) | Ty::Pointer | Ty::Lanes(..) => ty(t),
    }
}

/// A constant. Floats are written by their bits, those of `f32` as the `f64` of the same value.
fn constant(c: ScalarValue) -> String {
    match c {
        ScalarValue::F32(x) => format!("0x{:016X}", f64::from(x).to_bits()),
        ScalarValue::F64(x) => format!("0x{:016X}", x.to_bits()),
        ScalarValue::Bool(x) => x.to_string(),
        ScalarValue::U64(x) => x.to_string(),
        _ => c.as_i64().to_string(),
    }
}

/// Any text as a quoted name.
fn quoted(name: &str) -> String {
    let mut out = String::from("\"");
    for b in name.bytes() {
        match b {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'.' => out.push(char::from(b)),
            _ => {
                let _ = write!(out, "\\{b:02X}");
            }
        }
    }
    out.push('"');
    out
}

impl Emitter<'_> {
    /// The function with this linkage and these attributes.
    fn function(mut self, is_recursive: bool, (linkage, attributes): (&str, &str)) -> String {
        let mut params = vec!["ptr noalias nonnull %cx".to_string()];
        let f = self.f;
        let has_slot = |(r, _): &(Reg, _)| self.values[*r] == Held::Slot;
        for (r, info) in f.regs.iter_enumerated().filter(has_slot) {
            let slot = slot(f, r);
            let _ = writeln!(self.slots, "  {slot} = alloca {}", self.ty(info.ty));
        }
        for (k, r) in f.params.iter().enumerate() {
            let t = ty(f.regs[*r].ty);
            params.push(format!("{t} %a{k}"));
            self.set(*r, &format!("%a{k}"));
        }
        params.push("ptr noalias nonnull %results".to_string());
        if is_recursive {
            self.open_call();
        }
        self.block(&f.body);
        for (k, r) in f.results.iter().enumerate() {
            let value = self.value((*r).into());
            self.store_word("%results", k, &value, f.regs[*r].ty);
        }
        if is_recursive {
            self.close_call();
        }
        if self.record > 0 {
            let _ = writeln!(self.slots, "  {RECORD} = alloca [{} x i8], align 8", self.record);
        }
        line!(self, "ret i32 {}", abi::DONE);
        if self.has_stop {
            let _ = write!(self.out, "stop:\n  ret i32 {}\n", abi::STOPPED);
        }
        format!(
            "define {linkage}i32 @{}({}) {attributes} {{\nentry:\n{}{}}}\n",
            quoted(&format!("fn.{}", f.name)),
            params.join(", "),
            self.slots,
            self.out
        )
    }

    /// The type of a value in a register.
    fn ty(&self, t: Ty) -> String {
        match t {
            Ty::Lanes(scalar, lanes) => Form { scalar, lanes }.ty(),
            Ty::Scalar(_) | Ty::Pointer => ty(t).to_string(),
        }
    }
    /// A new name of a value.
    fn temp(&mut self) -> String {
        self.next += 1;
        format!("%t{}", self.next)
    }
    /// A new name of a block.
    fn label(&mut self) -> String {
        self.next += 1;
        format!("b{}", self.next)
    }
    /// The value of an instruction that is given as text.
    fn let_(&mut self, instruction: impl std::fmt::Display) -> String {
        let to = self.temp();
        line!(self, "{to} = {instruction}");
        to
    }
    /// Starts a block.
    fn begin(&mut self, label: &str) {
        let _ = writeln!(self.out, "{label}:");
    }
    fn type_of(&self, a: Operand) -> Ty {
        match a {
            Operand::Reg(r) => self.f.regs[r].ty,
            Operand::Const(c) => Ty::Scalar(c.scalar()),
            Operand::Null => Ty::Pointer,
        }
    }
    /// An operand as a value.
    fn value(&mut self, a: Operand) -> String {
        match a {
            Operand::Reg(r) => {
                if let Held::Value(value) = &self.values[r] {
                    return value.clone();
                }
                if let Some(value) = self.in_line(r) {
                    return value;
                }
                let (t, from) = (self.ty(self.f.regs[r].ty), slot(self.f, r));
                self.let_(format_args!("load {t}, ptr {from}"))
            }
            Operand::Const(c) => constant(c),
            Operand::Null => "null".to_string(),
        }
    }
    fn set(&mut self, to: Reg, value: &str) {
        if let Held::Value(held) = &mut self.values[to] {
            value.clone_into(held);
            return;
        }
        if self.set_in_line(to, value) {
            return;
        }
        line!(self, "store {} {value}, ptr {}", self.ty(self.f.regs[to].ty), slot(self.f, to));
    }

    fn block(&mut self, block: &Block) {
        let mut k = 0;
        // Up to here it is known that no line begins.
        let mut known = 0;
        while k < block.len() {
            let rest = &block[k..];
            if k >= known {
                let (found, length) = self.speculated(rest);
                known = k + length;
                if let Some(found) = found {
                    self.speculate(rest, &found);
                    k = known;
                    continue;
                }
            }
            if self.lanes.is_none()
                && let Some(data) = data::data(rest)
            {
                self.store_data(&data);
                k += data.length();
                continue;
            }
            match rows::row(rest, &self.scopes).and_then(|row| Some((self.together(&row)?, row))) {
                Some((together, row)) => {
                    self.store_row(rest, &row, together);
                    k += row.length;
                }
                None => {
                    self.ins(&block[k]);
                    k += 1;
                }
            }
        }
    }

    fn ins(&mut self, ins: &Ins) {
        if self.lanes.is_none() && ins.blocks().is_empty() { self.outside(ins) } else { self.ins_of(ins) }
    }

    fn ins_of(&mut self, ins: &Ins) {
        match ins {
            Ins::Set { to, value } => match self.f.regs[*to].ty {
                Ty::Lanes(s, _) => self.set_lanes(*to, s, *value),
                Ty::Scalar(_) | Ty::Pointer => {
                    let value = self.value(*value);
                    self.set(*to, &value);
                }
            },
            Ins::Prim { to, prim, args } => {
                let value = if self.f.regs[*to].ty.is_lanes() {
                    let args: Vec<String> = args.iter().map(|a| self.wide_value(*a)).collect();
                    self.prim_in_lanes(*to, *prim, &args)
                } else {
                    self.is_fold = self.folds.iter().any(|(s, p)| p == prim && args.contains(&(*s).into()));
                    let args: Vec<String> = args.iter().map(|a| self.value(*a)).collect();
                    let value = self.prim_in_line(*prim, 1, &args);
                    self.is_fold = false;
                    value
                };
                self.set(*to, &value);
            }
            Ins::Load { to, pointer, index } => self.load(*to, *pointer, *index),
            Ins::Store { pointer, index, value, ty } => self.store(*pointer, *index, *value, *ty),
            Ins::Accumulate { pointer, index, value, ty, atomic } => {
                self.accumulate((*pointer, *index), *value, *ty, *atomic);
            }
            Ins::Offset { to, pointer, index, ty: t, room: _ } => {
                let (pointer, index) = (self.value(*pointer), self.value(*index));
                let value =
                    self.let_(format_args!("getelementptr {}, ptr {pointer}, i64 {index}", in_memory(*t)));
                self.set(*to, &value);
            }
            Ins::Alloc { to, count, ty } => self.alloc(*to, *count, *ty),
            Ins::Mark { to } => self.mark(*to),
            Ins::Release { mark } => self.release(*mark),
            Ins::Fill { pointer, count, value, ty } => self.fill(*pointer, *count, *value, *ty),
            Ins::Copy { to, from, count, ty } => self.copy(*to, *from, *count, *ty),
            Ins::For { i, from, to, body, order } => {
                let outer = std::mem::replace(&mut self.folds, single_folds(order, body));
                let is_unordered = usize::from(matches!(order, Order::Any(_)));
                self.unordered += is_unordered;
                self.for_loop(*i, *from, *to, body);
                self.unordered -= is_unordered;
                self.folds = outer;
            }
            Ins::Chunks { count, function, args } => self.chunks(*count, *function, args),
            Ins::Lanes { i, from, to, lanes, body } => self.lanes_loop(*i, *from, *to, *lanes, body),
            Ins::Clock { to } => self.clock(*to),
            Ins::LaneNumber { to } => self.lane_number(*to),
            Ins::LoadLanes { to, pointer, index, stride, mask } => {
                let Ty::Lanes(s, _) = self.f.regs[*to].ty else { panic!("lanes are loaded into lanes") };
                let at = At { pointer: *pointer, index: *index, stride: *stride, mask: *mask };
                self.load_lanes(*to, s, at);
            }
            Ins::StoreLanes { pointer, index, stride, value, ty, mask } => {
                let at = At { pointer: *pointer, index: *index, stride: *stride, mask: *mask };
                self.store_lanes(at, *value, scalar_of(*ty));
            }
            Ins::AccumulateLanes { pointer, index, stride, value, ty, mask, atomic } => {
                let at = At { pointer: *pointer, index: *index, stride: *stride, mask: *mask };
                self.accumulate_lanes(at, *value, scalar_of(*ty), *atomic);
            }
            Ins::FoldLanes { to, prim, neutral, from, mask } => {
                self.fold_lanes(*to, *prim, *neutral, *from, *mask);
            }
            Ins::Lane { to, from, lane } => self.lane(*to, *from, *lane),
            Ins::While { condition, test, body } => self.while_loop(condition, *test, body),
            Ins::If { condition, then, otherwise } => self.branch(*condition, then, otherwise),
            Ins::Fail { condition, message, values } => self.fail(*condition, *message, values),
            Ins::Call { to, function, args } => self.call(to, *function, args),
        }
    }

    fn branch(&mut self, condition: Operand, then: &Block, otherwise: &Block) {
        let (yes, no, done) = (self.label(), self.label(), self.label());
        let condition = self.value(condition);
        line!(self, "br i1 {condition}, label %{yes}, label %{no}");
        self.begin(&yes);
        self.block(then);
        line!(self, "br label %{done}");
        self.begin(&no);
        self.block(otherwise);
        line!(self, "br label %{done}");
        self.begin(&done);
    }

    fn fail(&mut self, condition: Operand, message: MessageId, values: &[Operand]) {
        if self.type_of(condition).is_lanes() {
            return self.fail_lanes(condition, message, values);
        }
        let condition = self.value(condition);
        let goes_on = self.begin_cold(&condition);
        let values: Vec<String> = values.iter().take(abi::MAX_VALUES).map(|v| self.value(*v)).collect();
        self.stop_with(message.index() as i64, &values);
        self.begin(&goes_on);
    }

    /// Begins a block for when the condition holds, which is not expected. Gives the block to go on in.
    fn begin_cold(&mut self, condition: &str) -> String {
        let (stops, goes_on) = (self.label(), self.label());
        line!(self, "br i1 {condition}, label %{stops}, label %{goes_on}, !prof !0");
        self.begin(&stops);
        goes_on
    }
    /// Ends a block by stopping the program with a message.
    fn stop_with(&mut self, message: i64, values: &[String]) {
        let name = format!("pb_fail{}", values.len());
        self.helper(&name, || helpers::fail(values.len()));
        let given: String = values.iter().map(|v| format!(", i64 {v}")).collect();
        line!(self, "call void @{name}(ptr %cx, i64 {message}{given})");
        self.has_stop = true;
        line!(self, "br label %stop");
    }
    /// Stops the program if the condition holds; the message is there already.
    fn stop_if(&mut self, condition: &str) {
        let goes_on = self.label();
        self.has_stop = true;
        line!(self, "br i1 {condition}, label %stop, label %{goes_on}, !prof !0");
        self.begin(&goes_on);
    }
    /// Stops the program with a message if the condition holds.
    fn stop_with_if(&mut self, condition: &str, message: i64, values: &[String]) {
        let goes_on = self.begin_cold(condition);
        self.stop_with(message, values);
        self.begin(&goes_on);
    }
    /// Whether what is done here, outside of loops, is a call of [`helpers`]: written out it would be most of a large function.
    fn is_called(&self) -> bool {
        self.is_large && self.open_loops == 0
    }
    /// The address of a field of the context.
    fn field_address(&mut self, offset: usize) -> String {
        if offset == 0 {
            return "%cx".to_string();
        }
        self.let_(format_args!("getelementptr inbounds i8, ptr %cx, i64 {offset}"))
    }
    /// What a field of the context holds.
    fn field(&mut self, offset: usize, ty: &str) -> String {
        let address = self.field_address(offset);
        self.let_(format_args!("load {ty}, ptr {address}"))
    }
    fn set_field(&mut self, offset: usize, ty: &str, value: &str) {
        let address = self.field_address(offset);
        line!(self, "store {ty} {value}, ptr {address}");
    }
}

/// The states of a loop without loops in it that one primitive takes together in any order, with it.
fn single_folds(order: &Order, body: &Block) -> Vec<(Reg, Prim)> {
    let Order::Any(folds) = order else { return Vec::new() };
    if body.iter().any(loops::is_long) {
        return Vec::new();
    }
    let single = |fold: &Fold| match (&fold.combine[..], &fold.state[..]) {
        ([Ins::Prim { prim: prim @ Prim::Op(Op::Add | Op::Mul, s), .. }], [state]) if s.is_float() => {
            Some((*state, *prim))
        }
        _ => None,
    };
    folds.iter().filter_map(single).collect()
}

/// The scalar of an element that lanes are stored to or added to.
fn scalar_of(t: Ty) -> Scalar {
    t.scalar().unwrap_or_else(|| panic!("lanes of pointers"))
}

/// The slot of a register.
fn slot(f: &Function, r: Reg) -> String {
    let hint: String = f.regs[r].hint.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
    format!("%r{}.{hint}", r.index())
}
