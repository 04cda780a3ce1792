//! Loops, and where they look at the flag for cancellation.
//!
//! It is polled in loops that contain a loop, a call or a bulk operation, and in every `While`. Innermost loops stay free of it,
//! so that they can become vector instructions: those in other loops go through, since two nanoseconds for each are much for a
//! few iterations; a loop alone is cut into strips, and it is polled between them.

use super::{Emitter, line};
use crate::abi;
use pullback_kernel::{Block, Ins, Operand, Reg};
use std::fmt::Write;

/// Iterations of a loop alone between two polls: some ten microseconds to some ten milliseconds.
const STRIP: i64 = 1 << 16;

impl Emitter<'_> {
    pub(super) fn for_loop(&mut self, i: Reg, from: Operand, to: Operand, body: &Block) {
        let (from, to) = (self.value(from), self.value(to));
        self.set(i, &from);
        self.counted(i, &to, 1, body);
    }

    /// Runs the body while `i`, which is set, is below `end`, and adds the step each time. The distance is a multiple of the step,
    /// if it is positive.
    pub(super) fn counted(&mut self, i: Reg, end: &str, step: usize, body: &Block) {
        let is_outer = body.iter().any(is_long);
        if !is_outer && self.open_loops == 0 {
            return self.strips(i, end, step, body);
        }
        let (head, inside, done) = (self.label(), self.label(), self.label());
        line!(self, "br label %{head}");
        self.begin(&head);
        if is_outer {
            self.poll();
        }
        let here = self.value(i.into());
        let test = self.let_(format_args!("icmp slt i64 {here}, {end}"));
        line!(self, "br i1 {test}, label %{inside}, label %{done}");
        self.begin(&inside);
        self.iteration(i, step, body);
        line!(self, "br label %{head}");
        self.begin(&done);
    }

    /// The same for a loop alone: strips, and a poll before each but the first.
    fn strips(&mut self, i: Reg, end: &str, step: usize, body: &Block) {
        let (head, enter, inside) = (self.label(), self.label(), self.label());
        let (after, again, done) = (self.label(), self.label(), self.label());
        line!(self, "br label %{head}");
        self.begin(&head);
        let here = self.value(i.into());
        let test = self.let_(format_args!("icmp slt i64 {here}, {end}"));
        line!(self, "br i1 {test}, label %{enter}, label %{done}");
        self.begin(&enter);
        // Below the end: the difference is right as a number without sign, and the strip does not go beyond the end. Where its
        // length is no multiple of the step, its last iteration does, and the next strip begins there.
        let left = self.let_(format_args!("sub i64 {end}, {here}"));
        let is_last = self.let_(format_args!("icmp ult i64 {left}, {STRIP}"));
        let length = self.let_(format_args!("select i1 {is_last}, i64 {left}, i64 {STRIP}"));
        let strip = self.let_(format_args!("add nsw i64 {here}, {length}"));
        line!(self, "br label %{inside}");
        self.begin(&inside);
        let next = self.iteration(i, step, body);
        let test = self.let_(format_args!("icmp slt i64 {next}, {strip}"));
        line!(self, "br i1 {test}, label %{inside}, label %{after}");
        self.begin(&after);
        let test = self.let_(format_args!("icmp slt i64 {strip}, {end}"));
        line!(self, "br i1 {test}, label %{again}, label %{done}, !prof !0");
        self.begin(&again);
        self.poll();
        line!(self, "br label %{head}");
        self.begin(&done);
    }

    /// The body, and the step; gives the next number.
    fn iteration(&mut self, i: Reg, step: usize, body: &Block) -> String {
        self.open_loops += 1;
        self.block(body);
        self.open_loops -= 1;
        let here = self.value(i.into());
        // At most the end, so there is such a number.
        let next = self.let_(format_args!("add nsw i64 {here}, {step}"));
        self.set(i, &next);
        next
    }

    pub(super) fn while_loop(&mut self, condition: &Block, test: Operand, body: &Block) {
        let (head, inside, done) = (self.label(), self.label(), self.label());
        line!(self, "br label %{head}");
        self.begin(&head);
        self.poll();
        self.open_loops += 1;
        self.block(condition);
        let test = self.value(test);
        line!(self, "br i1 {test}, label %{inside}, label %{done}");
        self.begin(&inside);
        self.block(body);
        self.open_loops -= 1;
        line!(self, "br label %{head}");
        self.begin(&done);
    }

    /// Stops if the flag for cancellation is set.
    pub(super) fn poll(&mut self) {
        let flag = self.field(abi::CANCEL, "ptr");
        let flag = self.let_(format_args!("load atomic i8, ptr {flag} monotonic, align 1"));
        let is_set = self.let_(format_args!("icmp ne i8 {flag}, 0"));
        self.stop_with_if(&is_set, abi::CANCELLED, &[]);
    }
}

/// Whether an instruction may take long: a loop that contains it polls for cancellation.
pub(super) fn is_long(ins: &Ins) -> bool {
    let is_bulk = |count: &Operand| count.as_i64().is_none();
    match ins {
        Ins::For { .. } | Ins::Lanes { .. } | Ins::While { .. } | Ins::Call { .. } | Ins::Chunks { .. } => {
            true
        }
        Ins::Fill { count, .. } | Ins::Copy { count, .. } => is_bulk(count),
        _ => ins.blocks().into_iter().flatten().any(is_long),
    }
}
