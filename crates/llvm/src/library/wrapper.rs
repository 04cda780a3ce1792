//! The exported function of C types around the entry of a module.

use super::explain::explain;
use super::offsets::{BYTES, FLAG, MESSAGE as BUFFER, MESSAGE_BYTES, STACK, START};
use super::{CANCELLED, CAPACITY, Dim, INVALID, Item, OK, Signature, constant};
use crate::abi;
use crate::text::{Emitted, entry_symbol};
use pullback_base::Span;
use pullback_kernel::{FunctionId, Module};
use pullback_prim::Scalar;
use std::fmt::Write;

/// The product of two numbers, and whether it is too large for one.
const PRODUCT: &str = "llvm.smul.with.overflow.i64";

/// The text of a function of the library `prefix`: the module, which has been emitted, and the exported function.
pub fn function(
    prefix: &str,
    signature: &Signature,
    (module, entry, emitted): (&Module, FunctionId, &Emitted),
    place: &dyn Fn(Span) -> String,
) -> String {
    let symbol = entry_symbol(&module.functions[entry]);
    // Only the function of C types is seen from outside.
    let code = emitted.text.replace("define i32 @\"entry.", "define internal i32 @\"entry.");
    let mut w = Wrapper { out: String::new(), constants: String::new(), next: 0 };
    let widths = |items: &[Item]| items.iter().map(|i| width(i.dims.len())).sum::<usize>();
    let (given, found) = (widths(&signature.params).max(1), widths(&signature.results).max(1));
    w.line(&format!("%words = alloca [{given} x i64], align 8"));
    w.line(&format!("%found = alloca [{found} x i64], align 8"));
    w.line("%is_null = icmp eq ptr %h, null");
    w.out += &format!(
        "  br i1 %is_null, label %no_handle, label %begin\nno_handle:\n  ret i32 {INVALID}\nbegin:\n"
    );
    w.line(&format!("%buffer = getelementptr i8, ptr %h, i64 {BUFFER}"));
    w.line("store i8 0, ptr %buffer");
    w.params(signature);
    w.places_are_there(signature);
    w.context();
    w.line(&format!("%status = call i32 @\"{symbol}\"(ptr %h, ptr %words, ptr %found)"));
    w.line(&format!("%stopped = icmp ne i32 %status, {}", abi::DONE));
    w.out += "  br i1 %stopped, label %why, label %done\nwhy:\n  %code = call i32 @explain(ptr %h)\n";
    // A flag is used up by the call that it cancels.
    w.out += &format!(
        "  %was_cancelled = icmp eq i32 %code, {CANCELLED}\n  br i1 %was_cancelled, label %lower, label %say\n\
         lower:\n  %flag = getelementptr i8, ptr %h, i64 {FLAG}\n  store atomic i8 0, ptr %flag monotonic, align 1\n  \
         br label %say\nsay:\n  ret i32 %code\ndone:\n"
    );
    w.results(prefix, signature);
    w.line(&format!("ret i32 {OK}"));
    let params: Vec<String> =
        parameters(signature).into_iter().map(|(ty, name)| format!("{ty} %{name}")).collect();
    format!(
        "{code}{}{}declare {{ i64, i1 }} @{PRODUCT}(i64, i64)\n\
         declare void @{prefix}.copy(ptr, ptr, ptr, ptr, i64, i64)\n\
         define i32 @{}(ptr %h, {}) nounwind {{\nentry:\n{}}}\n",
        explain(module, place),
        w.constants,
        signature.symbol,
        params.join(", "),
        w.out,
    )
}

/// The number of words of a scalar or array.
fn width(rank: usize) -> usize {
    if rank == 0 { 1 } else { 1 + 2 * rank }
}

/// The parameters after the handle, with their types in LLVM; names are unique.
fn parameters(signature: &Signature) -> Vec<(&'static str, String)> {
    let mut out: Vec<(&str, String)> =
        (0..signature.sizes.len()).map(|k| ("i64", format!("size{k}"))).collect();
    for (k, item) in signature.params.iter().enumerate() {
        if item.dims.is_empty() {
            out.push((value_type(item.scalar), format!("p{k}")));
            continue;
        }
        out.push(("ptr", format!("p{k}")));
        let own = item.dims.iter().enumerate().filter(|(_, d)| **d == Dim::Own);
        out.extend(own.map(|(d, _)| ("i64", format!("p{k}.dim{d}"))));
    }
    for (k, item) in signature.results.iter().enumerate() {
        out.push(("ptr", format!("r{k}")));
        if !item.dims.is_empty() {
            out.push(("i64", format!("r{k}.capacity")));
            out.push(("ptr", format!("r{k}.shape")));
        }
    }
    out
}

/// The type of a scalar as an argument. Of narrow integers only the low bits are used.
fn value_type(s: Scalar) -> &'static str {
    match s {
        Scalar::F32 => "float",
        Scalar::F64 => "double",
        Scalar::I8 | Scalar::U8 | Scalar::Bool => "i8",
        Scalar::I16 | Scalar::U16 => "i16",
        Scalar::I32 | Scalar::U32 => "i32",
        Scalar::I64 | Scalar::U64 => "i64",
    }
}

struct Wrapper {
    out: String,
    constants: String,
    next: usize,
}

impl Wrapper {
    fn line(&mut self, text: &str) {
        let _ = writeln!(self.out, "  {text}");
    }
    fn temp(&mut self) -> String {
        self.next += 1;
        format!("%t{}", self.next)
    }
    fn word(&mut self, base: &str, k: usize) -> String {
        let at = self.temp();
        self.line(&format!("{at} = getelementptr i64, ptr {base}, i64 {k}"));
        at
    }

    /// Ends the call with a message if the condition holds.
    fn refuse_if(&mut self, condition: &str, status: i32, text: &str, values: &str) {
        self.next += 1;
        let (bad, good, name) =
            (format!("bad{}", self.next), format!("good{}", self.next), format!("refusal.{}", self.next));
        self.constants += &constant(&name, text);
        self.line(&format!("br i1 {condition}, label %{bad}, label %{good}"));
        let _ = writeln!(self.out, "{bad}:");
        self.line(&format!(
            "call i32 (ptr, i64, ptr, ...) @snprintf(ptr %buffer, i64 {MESSAGE_BYTES}, ptr @{name}{values})"
        ));
        self.line(&format!("ret i32 {status}"));
        let _ = writeln!(self.out, "{good}:");
    }
    fn refuse_null(&mut self, pointer: &str, name: &str) {
        let is_null = self.temp();
        self.line(&format!("{is_null} = icmp eq ptr {pointer}, null"));
        self.refuse_if(&is_null, INVALID, &format!("the argument {name} is NULL"), "");
    }
    fn refuse_negative(&mut self, value: &str, name: &str) {
        let is_negative = self.temp();
        self.line(&format!("{is_negative} = icmp slt i64 {value}, 0"));
        let text = format!("the argument {name} is negative: %lld");
        self.refuse_if(&is_negative, INVALID, &text, &format!(", i64 {value}"));
    }

    /// The words of the arguments.
    fn params(&mut self, signature: &Signature) {
        for (k, name) in signature.sizes.iter().enumerate() {
            self.refuse_negative(&format!("%size{k}"), name);
        }
        let mut at = 0;
        for (k, item) in signature.params.iter().enumerate() {
            let rank = item.dims.len();
            let to = self.word("%words", at);
            if rank == 0 {
                self.line(&format!("store {} %p{k}, ptr {to}, align 8", value_type(item.scalar)));
            } else {
                self.line(&format!("store ptr %p{k}, ptr {to}, align 8"));
                self.dims(signature, k, item, at);
            }
            at += width(rank);
        }
    }
    fn dims(&mut self, signature: &Signature, k: usize, item: &Item, at: usize) {
        let rank = item.dims.len();
        let mut sizes = Vec::new();
        for (d, dim) in item.dims.iter().enumerate() {
            let size = match dim {
                Dim::Shared(k) => format!("%size{k}"),
                Dim::Parameter(k) => format!("%p{k}"),
                Dim::Constant(n) => n.to_string(),
                Dim::Own => format!("%p{k}.dim{d}"),
            };
            match dim {
                Dim::Own => self.refuse_negative(&size, &format!("{}_dim{d}", item.name)),
                Dim::Parameter(k) => self.refuse_negative(&size, &signature.params[*k].name),
                Dim::Shared(_) | Dim::Constant(_) => {}
            }
            sizes.push(size);
        }
        let (mut stride, mut strides) = ("1".to_string(), Vec::new());
        let (mut wraps, mut empty) = ("false".to_string(), "false".to_string());
        for size in sizes.iter().rev() {
            strides.push(stride.clone());
            let [both, next, here, any, none, empty_here] = [(); 6].map(|()| self.temp());
            self.line(&format!("{both} = call {{ i64, i1 }} @{PRODUCT}(i64 {stride}, i64 {size})"));
            self.line(&format!("{next} = extractvalue {{ i64, i1 }} {both}, 0"));
            self.line(&format!("{here} = extractvalue {{ i64, i1 }} {both}, 1"));
            self.line(&format!("{any} = or i1 {wraps}, {here}"));
            self.line(&format!("{none} = icmp eq i64 {size}, 0"));
            self.line(&format!("{empty_here} = or i1 {empty}, {none}"));
            (stride, wraps, empty) = (next, any, empty_here);
        }
        let (some, bad) = (self.temp(), self.temp());
        self.line(&format!("{some} = xor i1 {empty}, true"));
        self.line(&format!("{bad} = and i1 {wraps}, {some}"));
        self.refuse_if(&bad, INVALID, &format!("the argument {} has too many elements", item.name), "");
        // The last stride is the number of elements; without any the pointer is not used.
        let (some, none, bad) = (self.temp(), self.temp(), self.temp());
        self.line(&format!("{some} = icmp ne i64 {stride}, 0"));
        self.line(&format!("{none} = icmp eq ptr %p{k}, null"));
        self.line(&format!("{bad} = and i1 {some}, {none}"));
        self.refuse_if(&bad, INVALID, &format!("the argument {} is NULL", item.name), "");
        for (d, value) in sizes.iter().chain(strides.iter().rev()).enumerate() {
            let to = self.word("%words", at + 1 + d);
            self.line(&format!("store i64 {value}, ptr {to}"));
        }
        debug_assert_eq!(strides.len(), rank);
    }
    fn places_are_there(&mut self, signature: &Signature) {
        for (k, item) in signature.results.iter().enumerate() {
            if item.dims.is_empty() {
                self.refuse_null(&format!("%r{k}"), &item.name);
            } else {
                self.refuse_negative(&format!("%r{k}.capacity"), &format!("{}_capacity", item.name));
            }
        }
    }

    /// The context of a call that begins.
    fn context(&mut self) {
        let field = |w: &mut Wrapper, offset: usize| {
            let at = w.temp();
            w.line(&format!("{at} = getelementptr i8, ptr %h, i64 {offset}"));
            at
        };
        let (start_at, bytes_at) = (field(self, START), field(self, BYTES));
        let (stack_at, flag) = (field(self, STACK), field(self, FLAG));
        self.line(&format!("%start = load ptr, ptr {start_at}"));
        self.line(&format!("%bytes = load i64, ptr {bytes_at}"));
        self.line("%end = getelementptr i8, ptr %start, i64 %bytes");
        self.line(&format!("%stack = load i64, ptr {stack_at}"));
        self.line("%here = ptrtoint ptr %words to i64");
        // Where the stack is that near the lowest address, all of it may be used.
        self.line("%is_low = icmp ult i64 %here, %stack");
        self.line("%below = sub i64 %here, %stack");
        self.line("%stack_limit = select i1 %is_low, i64 0, i64 %below");
        for (offset, ty, value) in [
            (abi::TOP, "ptr", "%start"),
            (abi::END, "ptr", "%end"),
            (abi::PEAK, "ptr", "%start"),
            (abi::CANCEL, "ptr", flag.as_str()),
            (abi::SHARE, "ptr", "null"),
            (abi::CALLS, "i64", "0"),
            (abi::CALL_LIMIT, "i64", "10000"),
            (abi::STACK_LIMIT, "i64", "%stack_limit"),
        ] {
            let at = field(self, offset);
            self.line(&format!("store {ty} {value}, ptr {at}"));
        }
    }

    /// Copies the results, if all of them fit.
    fn results(&mut self, prefix: &str, signature: &Signature) {
        let mut at = 0;
        for (k, item) in signature.results.iter().enumerate() {
            let rank = item.dims.len();
            if rank > 0 {
                self.fits(k, item, at);
            }
            at += width(rank);
        }
        at = 0;
        for (k, item) in signature.results.iter().enumerate() {
            let rank = item.dims.len();
            let from = self.word("%found", at);
            let value = self.temp();
            if rank == 0 {
                let ty = value_type(item.scalar);
                self.line(&format!("{value} = load {ty}, ptr {from}, align 8"));
                self.line(&format!("store {ty} {value}, ptr %r{k}"));
            } else {
                let (shape, strides) = (self.word("%found", at + 1), self.word("%found", at + 1 + rank));
                self.line(&format!("{value} = load ptr, ptr {from}"));
                self.line(&format!(
                    "call void @{prefix}.copy(ptr {value}, ptr %r{k}, ptr {shape}, ptr {strides}, i64 {rank}, i64 {})",
                    item.scalar.bytes()
                ));
            }
            at += width(rank);
        }
    }
    /// Sets the sizes of a result, and ends the call if there is no room for it. Sizes are below 2^60 together, if none is 0.
    fn fits(&mut self, k: usize, item: &Item, at: usize) {
        let mut count = "1".to_string();
        let mut sizes = String::new();
        let no_shape = self.temp();
        self.line(&format!("{no_shape} = icmp eq ptr %r{k}.shape, null"));
        for d in 0..item.dims.len() {
            let from = self.word("%found", at + 1 + d);
            let (size, to, next) = (self.temp(), self.temp(), self.temp());
            self.line(&format!("{size} = load i64, ptr {from}"));
            let there = self.word(&format!("%r{k}.shape"), d);
            // Without a place for sizes they go where they come from.
            self.line(&format!("{to} = select i1 {no_shape}, ptr {from}, ptr {there}"));
            self.line(&format!("store i64 {size}, ptr {to}"));
            self.line(&format!("{next} = mul i64 {count}, {size}"));
            count = next;
            let _ = write!(sizes, ", i64 {size}");
        }
        let is_large = self.temp();
        self.line(&format!("{is_large} = icmp ugt i64 {count}, %r{k}.capacity"));
        let shape = "[%lld]".repeat(item.dims.len());
        let text = format!("{0} has the shape {shape}: %lld elements, {0}_capacity is %lld", item.name);
        self.refuse_if(&is_large, CAPACITY, &text, &format!("{sizes}, i64 {count}, i64 %r{k}.capacity"));
        let (some, none, bad) = (self.temp(), self.temp(), self.temp());
        self.line(&format!("{some} = icmp ne i64 {count}, 0"));
        self.line(&format!("{none} = icmp eq ptr %r{k}, null"));
        self.line(&format!("{bad} = and i1 {some}, {none}"));
        self.refuse_if(&bad, INVALID, &format!("the argument {} is NULL", item.name), "");
    }
}
