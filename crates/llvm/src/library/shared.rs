//! What all functions of a library share: handles with a workspace, and the functions of floats that modules call.

use super::offsets::{ALL, BYTES, FLAG, MESSAGE as BUFFER, STACK, START};
use crate::abi::{PEAK, TOP};
use crate::maths::{self, Machine, Precision, Shape};
use crate::text::Symbol;
use pullback_maths::Function;
use pullback_prim::{Op, Prim, Scalar};
use std::collections::{BTreeMap, BTreeSet};

/// Bytes of a workspace that nobody chose the size of.
pub(super) const DEFAULT_BYTES: u64 = 8 << 30;
/// Bytes of the stack that recursive functions use at most, unless the caller says otherwise.
pub(super) const DEFAULT_STACK: u64 = 1 << 20;

/// What the C library has for an operation that `pullback-maths` has not.
fn of_c(op: Op) -> Option<&'static str> {
    match op {
        Op::Asinh => Some("asinh"),
        Op::Acosh => Some("acosh"),
        Op::Atanh => Some("atanh"),
        Op::Gamma => Some("tgamma"),
        Op::Hypot => Some("hypot"),
        _ => None,
    }
}

fn operation(symbol: &Symbol) -> Option<(Op, Scalar)> {
    match symbol.prim {
        Prim::Op(op, s @ (Scalar::F32 | Scalar::F64)) => Some((op, s)),
        Prim::Op(..) | Prim::Convert(..) => None,
    }
}

/// Those of the symbols that a library has no definition of.
pub fn unavailable(symbols: &[Symbol]) -> Vec<String> {
    let there =
        |s: &&Symbol| operation(s).is_some_and(|(op, _)| Function::of_op(op).is_some() || of_c(op).is_some());
    symbols.iter().filter(|s| !there(s)).map(|s| s.name.clone()).collect()
}

/// The text that all functions of the library `prefix` share. `symbols` are what they call.
pub fn shared(prefix: &str, symbols: &[Symbol]) -> String {
    let all: BTreeMap<&str, (Op, Scalar)> =
        symbols.iter().filter_map(|s| Some((s.name.as_str(), operation(s)?))).collect();
    let mut definitions = BTreeMap::new();
    let (mut wrappers, mut foreign) = (String::new(), BTreeSet::new());
    for (name, (op, s)) in all {
        let (t, precision) = match s {
            Scalar::F32 => ("float", Precision::Single),
            _ => ("double", Precision::Double),
        };
        let (callee, arity) = match (Function::of_op(op), of_c(op)) {
            (Some(function), _) => {
                let shape = Shape { precision, lanes: 1, machine: Machine::Generic };
                let callee = maths::name(function, shape);
                definitions.entry(callee.clone()).or_insert_with(|| maths::definition(function, shape, ""));
                (callee, function.facts().arity)
            }
            (None, Some(c)) => {
                let callee = format!("{c}{}", if s == Scalar::F32 { "f" } else { "" });
                let arity = if op == Op::Hypot { 2 } else { 1 };
                foreign.insert(format!("declare {t} @{callee}({})\n", vec![t; arity].join(", ")));
                (callee, arity)
            }
            (None, None) => continue,
        };
        let list = |with: &dyn Fn(usize) -> String| (0..arity).map(with).collect::<Vec<_>>().join(", ");
        let (params, args) = (list(&|k| format!("{t} %x{k}")), list(&|k| format!("{t} %x{k}")));
        // Two libraries in one program may both have it: it is the same in both.
        wrappers += &format!(
            "define weak hidden {t} @{name}({params}) nounwind {{\n  %r = call {t} @{callee}({args})\n  ret {t} %r\n}}\n"
        );
    }
    let definitions: Vec<_> = definitions.into_values().collect();
    let foreign: String = foreign.into_iter().collect();
    format!("{}{}{foreign}{wrappers}", handles(prefix), maths::module(&definitions))
}

/// Flags of the system for memory that nobody else sees and that has no place in a file.
const MAP_FLAGS: u32 = if cfg!(target_os = "macos") { 0x1042 } else { 0x4022 };

/// Handles: the context of a call, and after it what `offsets` names.
fn handles(prefix: &str) -> String {
    format!(
        "declare ptr @calloc(i64, i64)\n\
declare void @free(ptr)\n\
declare ptr @mmap(ptr, i64, i32, i32, i32, i64)\n\
declare i32 @munmap(ptr, i64)\n\
declare ptr @memcpy(ptr, ptr, i64)\n\
define ptr @{prefix}_new(i64 %wanted) nounwind {{
entry:
  %is_default = icmp sle i64 %wanted, 0
  %bytes = select i1 %is_default, i64 {DEFAULT_BYTES}, i64 %wanted
  %rounded = and i64 %bytes, -64
  %is_small = icmp slt i64 %rounded, 64
  %length = select i1 %is_small, i64 64, i64 %rounded
  %h = call ptr @calloc(i64 1, i64 {ALL})
  %no_handle = icmp eq ptr %h, null
  br i1 %no_handle, label %refused, label %reserve
reserve:
  %start = call ptr @mmap(ptr null, i64 %length, i32 3, i32 {MAP_FLAGS}, i32 -1, i64 0)
  %address = ptrtoint ptr %start to i64
  %failed = icmp eq i64 %address, -1
  br i1 %failed, label %give_back, label %done
give_back:
  call void @free(ptr %h)
  br label %refused
refused:
  ret ptr null
done:
  %start.at = getelementptr i8, ptr %h, i64 {START}
  store ptr %start, ptr %start.at
  %bytes.at = getelementptr i8, ptr %h, i64 {BYTES}
  store i64 %length, ptr %bytes.at
  %stack.at = getelementptr i8, ptr %h, i64 {STACK}
  store i64 {DEFAULT_STACK}, ptr %stack.at
  %top.at = getelementptr i8, ptr %h, i64 {TOP}
  store ptr %start, ptr %top.at
  %peak.at = getelementptr i8, ptr %h, i64 {PEAK}
  store ptr %start, ptr %peak.at
  ret ptr %h
}}
define void @{prefix}_free(ptr %h) nounwind {{
entry:
  %is_null = icmp eq ptr %h, null
  br i1 %is_null, label %done, label %there
there:
  %start.at = getelementptr i8, ptr %h, i64 {START}
  %start = load ptr, ptr %start.at
  %bytes.at = getelementptr i8, ptr %h, i64 {BYTES}
  %length = load i64, ptr %bytes.at
  %ignored = call i32 @munmap(ptr %start, i64 %length)
  call void @free(ptr %h)
  br label %done
done:
  ret void
}}
@{prefix}.no_handle = private unnamed_addr constant [19 x i8] c\"the handle is NULL\\00\"
define ptr @{prefix}_last_error(ptr %h) nounwind {{
  %is_null = icmp eq ptr %h, null
  %buffer = getelementptr i8, ptr %h, i64 {BUFFER}
  %text = select i1 %is_null, ptr @{prefix}.no_handle, ptr %buffer
  ret ptr %text
}}
define void @{prefix}_cancel(ptr %h) nounwind {{
  %flag = getelementptr i8, ptr %h, i64 {FLAG}
  store atomic i8 1, ptr %flag monotonic, align 1
  ret void
}}
define void @{prefix}_set_stack(ptr %h, i64 %bytes) nounwind {{
  %stack.at = getelementptr i8, ptr %h, i64 {STACK}
  store i64 %bytes, ptr %stack.at
  ret void
}}
define i64 @{prefix}_peak_bytes(ptr %h) nounwind {{
  %top.at = getelementptr i8, ptr %h, i64 {TOP}
  %top = load i64, ptr %top.at
  %peak.at = getelementptr i8, ptr %h, i64 {PEAK}
  %peak = load i64, ptr %peak.at
  %start.at = getelementptr i8, ptr %h, i64 {START}
  %start = load i64, ptr %start.at
  %is_higher = icmp ugt i64 %top, %peak
  %highest = select i1 %is_higher, i64 %top, i64 %peak
  %used = sub i64 %highest, %start
  ret i64 %used
}}
define hidden void @{prefix}.copy(ptr %from, ptr %to, ptr %shape, ptr %strides, i64 %rank, i64 %bytes) nounwind {{
entry:
  %next = call ptr @{prefix}.part(ptr %from, ptr %to, ptr %shape, ptr %strides, i64 %rank, i64 %bytes)
  ret void
}}
define internal ptr @{prefix}.part(ptr %from, ptr %to, ptr %shape, ptr %strides, i64 %rank, i64 %bytes) nounwind {{
entry:
  %is_element = icmp eq i64 %rank, 0
  br i1 %is_element, label %one, label %some
one:
  %copied = call ptr @memcpy(ptr %to, ptr %from, i64 %bytes)
  %after = getelementptr i8, ptr %to, i64 %bytes
  ret ptr %after
some:
  %n = load i64, ptr %shape
  %stride = load i64, ptr %strides
  %less = sub i64 %rank, 1
  %is_row = icmp eq i64 %less, 0
  %is_dense = icmp eq i64 %stride, 1
  %at_once = and i1 %is_row, %is_dense
  br i1 %at_once, label %row, label %begin
row:
  %length = mul i64 %n, %bytes
  %copied_row = call ptr @memcpy(ptr %to, ptr %from, i64 %length)
  %after_row = getelementptr i8, ptr %to, i64 %length
  ret ptr %after_row
begin:
  %shapes = getelementptr i64, ptr %shape, i64 1
  %others = getelementptr i64, ptr %strides, i64 1
  %step = mul i64 %stride, %bytes
  br label %head
head:
  %i = phi i64 [ 0, %begin ], [ %i.next, %inside ]
  %there = phi ptr [ %from, %begin ], [ %there.next, %inside ]
  %here = phi ptr [ %to, %begin ], [ %here.next, %inside ]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %inside, label %end
inside:
  %here.next = call ptr @{prefix}.part(ptr %there, ptr %here, ptr %shapes, ptr %others, i64 %less, i64 %bytes)
  %there.next = getelementptr i8, ptr %there, i64 %step
  %i.next = add i64 %i, 1
  br label %head
end:
  ret ptr %here
}}
"
    )
}
