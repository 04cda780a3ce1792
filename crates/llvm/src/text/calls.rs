//! Calls, and the words that results travel in.

use super::{Emitter, helpers, in_memory, line, quoted, ty};
use crate::abi;
use pullback_base::index::Index;
use pullback_kernel::{FunctionId, Operand, Reg, Ty};
use pullback_prim::Scalar;
use std::fmt::Write;

impl Emitter<'_> {
    pub(super) fn call(&mut self, to: &[Reg], function: FunctionId, args: &[Operand]) {
        let mut given = vec!["ptr %cx".to_string()];
        for a in args {
            let value = self.value(*a);
            given.push(format!("{} {value}", ty(self.type_of(*a))));
        }
        let words = self.temp();
        let _ = writeln!(self.slots, "  {words} = alloca [{} x i64]", to.len());
        given.push(format!("ptr {words}"));
        let name = quoted(&format!("fn.{}", self.pieces.module.functions[function].name));
        let status = self.let_(format_args!("call i32 @{name}({})", given.join(", ")));
        let stopped = self.let_(format_args!("icmp ne i32 {status}, {}", abi::DONE));
        self.stop_if(&stopped);
        for (k, r) in to.iter().enumerate() {
            let from = self.let_(format_args!("getelementptr inbounds i64, ptr {words}, i64 {k}"));
            let value = self.temp();
            self.out += &load_word(&value, &from, self.f.regs[*r].ty);
            self.set(*r, &value);
        }
    }

    /// Calls a function for every number below a count: by the function of the context that shares the calls among threads, or
    /// one after the other if there is none.
    pub(super) fn chunks(&mut self, count: Operand, function: FunctionId, args: &[Operand]) {
        let name = self.pieces.module.functions[function].name.clone();
        let words = self.temp();
        let _ = writeln!(self.slots, "  {words} = alloca [{} x i64]", args.len() + 1);
        let count = self.value(count);
        for (k, a) in args.iter().enumerate() {
            let (value, t) = (self.value(*a), self.type_of(*a));
            self.store_word(&words, k + 1, &value, t);
        }
        self.helper("pb_parts", helpers::parts);
        self.helper("pb_release", helpers::release);
        // As threads call it, so that the part is in the code once. It has no results.
        let entry = quoted(&format!("entry.{name}"));
        let status = self.let_(format_args!(
            "call i32 @pb_parts(ptr %cx, ptr @{entry}, ptr {words}, i64 {}, i64 {count})",
            args.len() + 1
        ));
        let stopped = self.let_(format_args!("icmp ne i32 {status}, {}", abi::DONE));
        self.stop_if(&stopped);
        // What is allocated from now on may be where something else was: see `scopes`.
        self.fence();
    }

    /// Stores word `k`: integers are extended to eight bytes.
    pub(super) fn store_word(&mut self, words: &str, k: usize, value: &str, t: Ty) {
        let to = self.let_(format_args!("getelementptr inbounds i64, ptr {words}, i64 {k}"));
        let wide = match t {
            Ty::Lanes(..) => panic!("lanes are not results"),
            Ty::Pointer => {
                line!(self, "store ptr {value}, ptr {to}");
                return;
            }
            Ty::Scalar(Scalar::F64) => self.let_(format_args!("bitcast double {value} to i64")),
            Ty::Scalar(Scalar::F32) => {
                let bits = self.let_(format_args!("bitcast float {value} to i32"));
                self.let_(format_args!("zext i32 {bits} to i64"))
            }
            Ty::Scalar(Scalar::I64 | Scalar::U64) => value.to_string(),
            Ty::Scalar(s) => {
                let extend = if s.is_signed() { "sext" } else { "zext" };
                self.let_(format_args!("{extend} {} {value} to i64", ty(t)))
            }
        };
        line!(self, "store i64 {wide}, ptr {to}");
    }

    /// Counts a call of a recursive function, and stops if it is one too many or the stack is nearly full.
    pub(super) fn open_call(&mut self) {
        self.declare("declare ptr @llvm.frameaddress.p0(i32)");
        let calls = self.field(abi::CALLS, "i64");
        let limit = self.field(abi::CALL_LIMIT, "i64");
        let many = self.let_(format_args!("icmp uge i64 {calls}, {limit}"));
        let index = [self.id.index().to_string()];
        self.stop_with_if(&many, abi::TOO_MANY_CALLS, &index);
        let frame = self.let_("call ptr @llvm.frameaddress.p0(i32 0)");
        let frame = self.let_(format_args!("ptrtoint ptr {frame} to i64"));
        let limit = self.field(abi::STACK_LIMIT, "i64");
        let deep = self.let_(format_args!("icmp ult i64 {frame}, {limit}"));
        self.stop_with_if(&deep, abi::STACK_FULL, &index);
        let more = self.let_(format_args!("add i64 {calls}, 1"));
        self.set_field(abi::CALLS, "i64", &more);
    }
    /// The end of a call of a recursive function.
    pub(super) fn close_call(&mut self) {
        let calls = self.field(abi::CALLS, "i64");
        let fewer = self.let_(format_args!("sub i64 {calls}, 1"));
        self.set_field(abi::CALLS, "i64", &fewer);
    }
}

/// Loads a value from a word: the low bytes, which come first.
pub(super) fn load_word(to: &str, from: &str, t: Ty) -> String {
    match t {
        Ty::Scalar(Scalar::Bool) => {
            format!("  {to}.byte = load i8, ptr {from}, align 8\n  {to} = icmp ne i8 {to}.byte, 0\n")
        }
        Ty::Scalar(_) | Ty::Pointer | Ty::Lanes(..) => {
            format!("  {to} = load {}, ptr {from}, align 8\n", in_memory(t))
        }
    }
}
