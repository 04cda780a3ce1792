//! Loads, stores and the workspace.

use super::{Emitter, helpers, in_memory, line, ty};
use crate::abi;
use pullback_base::index::Index;
use pullback_kernel::{Operand, Reg, Ty};
use pullback_prim::{Op, Prim, Scalar, ScalarValue};
use std::fmt::Write;

impl Emitter<'_> {
    /// The address of an element that exists.
    fn element(&mut self, pointer: Operand, index: Operand, t: Ty) -> String {
        let (pointer, index) = (self.value(pointer), self.value(index));
        self.let_(format_args!("getelementptr inbounds {}, ptr {pointer}, i64 {index}", in_memory(t)))
    }

    pub(super) fn load(&mut self, to: Reg, pointer: Operand, index: Operand) {
        let t = self.f.regs[to].ty;
        let from = self.element(pointer, index, t);
        let scope = self.scopes.suffix(pointer).to_string();
        let value = match t {
            Ty::Scalar(Scalar::Bool) => {
                let byte = self.let_(format_args!("load i8, ptr {from}, align 1, !range !1{scope}"));
                self.let_(format_args!("trunc i8 {byte} to i1"))
            }
            Ty::Scalar(_) | Ty::Pointer | Ty::Lanes(..) => {
                self.let_(format_args!("load {}, ptr {from}, align {}{scope}", ty(t), t.bytes()))
            }
        };
        self.set(to, &value);
    }

    pub(super) fn store(&mut self, pointer: Operand, index: Operand, value: Operand, t: Ty) {
        let to = self.element(pointer, index, t);
        let value = self.value_in_memory(value, t);
        let scope = self.scopes.suffix(pointer).to_string();
        line!(self, "store {} {value}, ptr {to}, align {}{scope}", in_memory(t), t.bytes());
    }

    /// Adds to an element.
    pub(super) fn accumulate(
        &mut self,
        (pointer, index): (Operand, Operand),
        value: Operand,
        t: Ty,
        atomic: bool,
    ) {
        let Some(s) = t.scalar() else { panic!("an addition to a pointer") };
        let at = self.element(pointer, index, t);
        let scope = self.scopes.suffix(pointer).to_string();
        let value = self.value(value);
        self.add_at(&at, s, &value, (&scope, atomic));
    }
    /// Adds to what is at an address.
    pub(super) fn add_at(&mut self, at: &str, s: Scalar, value: &str, (scope, atomic): (&str, bool)) {
        let (ty, bytes) = (in_memory(Ty::Scalar(s)), s.bytes());
        if atomic {
            // Monotonic: the parts of a loop begin after what was before it and end before what is after it.
            let add = if s.is_float() { "fadd" } else { "add" };
            self.let_(format_args!("atomicrmw {add} ptr {at}, {ty} {value} monotonic"));
            return;
        }
        let before = self.let_(format_args!("load {ty}, ptr {at}, align {bytes}{scope}"));
        let sum = self.prim(Prim::Op(Op::Add, s), 1, &[before, value.to_string()]);
        line!(self, "store {ty} {sum}, ptr {at}, align {bytes}{scope}");
    }

    /// An operand as it is in memory.
    fn value_in_memory(&mut self, value: Operand, t: Ty) -> String {
        let value = self.value(value);
        match t {
            Ty::Scalar(Scalar::Bool) => self.let_(format_args!("zext i1 {value} to i8")),
            Ty::Scalar(_) | Ty::Pointer | Ty::Lanes(..) => value,
        }
    }

    /// Takes elements from the top of the workspace. Top and end are multiples of the alignment, so what fits before it is
    /// rounded up also fits after; and as many elements as fit have a number of bytes.
    pub(super) fn alloc(&mut self, to: Reg, count: Operand, t: Ty) {
        let count = self.value(count);
        let shift = t.bytes().ilog2();
        // Where it was before functions were cut.
        let (function, register) = self.pieces.places.get(&(self.id, to)).copied().unwrap_or((self.id, to));
        if self.is_called() {
            self.helper("pb_alloc", helpers::alloc);
            self.helper("pb_fail4", || helpers::fail(4));
            let (function, register) = (function.index(), register.index());
            let taken = self.let_(format_args!(
                "call ptr @pb_alloc(ptr %cx, i64 {count}, i64 {shift}, i64 {function}, i64 {register})"
            ));
            let is_full = self.let_(format_args!("icmp eq ptr {taken}, null"));
            self.stop_if(&is_full);
            return self.set(to, &taken);
        }
        let top = self.field(abi::TOP, "ptr");
        let end = self.field(abi::END, "ptr");
        let top_address = self.let_(format_args!("ptrtoint ptr {top} to i64"));
        let end_address = self.let_(format_args!("ptrtoint ptr {end} to i64"));
        let free = self.let_(format_args!("sub i64 {end_address}, {top_address}"));
        let room = self.let_(format_args!("lshr i64 {free}, {shift}"));
        let is_full = self.let_(format_args!("icmp ugt i64 {count}, {room}"));
        let place = [function.index().to_string(), register.index().to_string()];
        let about = [count.clone(), t.bytes().to_string()].into_iter().chain(place).collect::<Vec<_>>();
        self.stop_with_if(&is_full, abi::OUT_OF_MEMORY, &about);
        let bytes = self.let_(format_args!("shl i64 {count}, {shift}"));
        let padded = self.let_(format_args!("add i64 {bytes}, {}", abi::ALIGNMENT - 1));
        let rounded = self.let_(format_args!("and i64 {padded}, -{}", abi::ALIGNMENT));
        let after = self.let_(format_args!("getelementptr inbounds i8, ptr {top}, i64 {rounded}"));
        self.set_field(abi::TOP, "ptr", &after);
        self.set(to, &top);
    }

    /// The height of the workspace as a pointer or as a number, as the register has it.
    pub(super) fn mark(&mut self, to: Reg) {
        let top = self.field(abi::TOP, ty(self.f.regs[to].ty));
        self.set(to, &top);
    }

    /// Goes back to a height. The highest one is always reached just before a release or at the end.
    pub(super) fn release(&mut self, mark: Operand) {
        let mark = self.value(mark);
        if self.is_called() {
            self.helper("pb_release", helpers::release);
            line!(self, "call void @pb_release(ptr %cx, ptr {mark})");
        } else {
            let top = self.field(abi::TOP, "ptr");
            let peak = self.field(abi::PEAK, "ptr");
            let higher = self.let_(format_args!("icmp ugt ptr {top}, {peak}"));
            let peak = self.let_(format_args!("select i1 {higher}, ptr {top}, ptr {peak}"));
            self.set_field(abi::PEAK, "ptr", &peak);
            self.set_field(abi::TOP, "ptr", &mark);
        }
        // What is allocated from now on may be where something else was: see `scopes`.
        self.fence();
    }

    /// Work with memory stays on its side of this place. It is no instruction.
    pub(super) fn fence(&mut self) {
        line!(self, "fence syncscope(\"singlethread\") seq_cst");
    }

    /// Reads the clock of the processor. Work with memory stays on its side of it.
    pub(super) fn clock(&mut self, to: Reg) {
        self.declare("declare i64 @llvm.readcyclecounter()");
        self.fence();
        let ticks = self.let_("call i64 @llvm.readcyclecounter()");
        self.fence();
        self.set(to, &ticks);
    }

    pub(super) fn fill(&mut self, pointer: Operand, count: Operand, value: Operand, t: Ty) {
        let is_byte = t.bytes() == 1;
        let stored = self.value_in_memory(value, t);
        let (pointer, count) = (self.value(pointer), self.value(count));
        if is_byte || is_zero(value) {
            self.declare("declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)");
            let byte = if is_byte { stored.as_str() } else { "0" };
            let bytes = self.let_(format_args!("mul i64 {count}, {}", t.bytes()));
            line!(
                self,
                "call void @llvm.memset.p0.i64(ptr align {} {pointer}, i8 {byte}, i64 {bytes}, i1 false)",
                t.bytes()
            );
            return;
        }
        let (before, head, inside, done) = (self.label(), self.label(), self.label(), self.label());
        line!(self, "br label %{before}");
        self.begin(&before);
        line!(self, "br label %{head}");
        self.begin(&head);
        let (i, next) = (self.temp(), self.temp());
        line!(self, "{i} = phi i64 [ 0, %{before} ], [ {next}, %{inside} ]");
        let test = self.let_(format_args!("icmp slt i64 {i}, {count}"));
        line!(self, "br i1 {test}, label %{inside}, label %{done}");
        self.begin(&inside);
        let m = in_memory(t);
        let to = self.let_(format_args!("getelementptr inbounds {m}, ptr {pointer}, i64 {i}"));
        line!(self, "store {m} {stored}, ptr {to}, align {}", t.bytes());
        line!(self, "{next} = add nsw i64 {i}, 1");
        line!(self, "br label %{head}");
        self.begin(&done);
    }

    pub(super) fn copy(&mut self, to: Operand, from: Operand, count: Operand, t: Ty) {
        let (to, from, count) = (self.value(to), self.value(from), self.value(count));
        let bytes = self.let_(format_args!("mul i64 {count}, {}", t.bytes()));
        self.copy_bytes(&to, &from, &bytes, t.bytes());
    }
    pub(super) fn copy_bytes(&mut self, to: &str, from: &str, bytes: &str, align: usize) {
        self.declare("declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)");
        line!(
            self,
            "call void @llvm.memcpy.p0.p0.i64(ptr align {align} {to}, ptr align {align} {from}, i64 {bytes}, i1 false)"
        );
    }

    /// Adds a declaration to the module.
    pub(super) fn declare(&mut self, text: &str) {
        self.helper(text, || text.to_string());
    }
    /// Adds a function to the module, which is written once.
    pub(super) fn helper(&mut self, name: &str, text: impl FnOnce() -> String) {
        if !self.shared.declarations.contains_key(name) {
            self.shared.declarations.insert(name.to_string(), text());
        }
    }
}

/// Whether all bytes of a constant are zero.
fn is_zero(value: Operand) -> bool {
    match value {
        Operand::Const(ScalarValue::F32(x)) => x.to_bits() == 0,
        Operand::Const(ScalarValue::F64(x)) => x.to_bits() == 0,
        Operand::Const(c) => c.as_i64() == 0,
        Operand::Null => true,
        Operand::Reg(_) => false,
    }
}
