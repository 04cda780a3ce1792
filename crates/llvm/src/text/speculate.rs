//! Strong products at the speed of plain ones: a straight line of arithmetic runs as if no zero met an infinity, and again if one did.
//!
//! Source: own design; compilers call it speculation with a guard. A strong product ([`Op::StrongMul`], [`Op::MutualMul`]) is
//!   another number than the product only where that is NaN: zero times an infinity, or times NaN. A comparison and a selection for each
//!   one costs more than the product, keeps LLVM from rounding it together with a sum, and lies on the way to the next one. So in
//!   loops such a line is computed with plain products first.
//! Judgement: a line `y = e[strong products]` becomes `y1 = e[products]; y = if is_nan(guards) then e[strong products] else y1`. In lanes
//!   each lane takes its own.
//! Why that is right: what is computed from a NaN by a sum, a difference, a product, a quotient, a root or a change of sign is NaN.
//!   So the NaN of a product comes to the last values that such operations compute from it. The guards are as few of
//!   those as it takes for all strong products.
//! Assumes: LLVM keeps NaN ([`Floats::Contract`]). Guarantees: the same numbers; a zero may have the sign of the product. What lies in
//!   one lane does not depend on the others.
//! Not in lanes with AVX-512: there a strong product is a plain one with the mask of a comparison (see `prim.rs`).
//! Cost: half a comparison for each guard and one branch, that is expected to go on. The line is there twice.

use super::form::{Form, splat};
use super::{Emitter, Floats, line};
use crate::maths::Machine;
use pullback_kernel::{Ins, Reg, Ty};
use pullback_prim::{Op, Prim, Scalar};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// A line of instructions that is worth it.
#[derive(Debug, PartialEq)]
pub(super) struct Line {
    /// Instructions, some of which have nothing to do with strong products.
    pub(super) length: usize,
    /// The guards: operations by their numbers.
    guards: Vec<usize>,
    /// The registers that are read after it.
    results: Vec<Reg>,
}

/// The memory for calls of functions that compute lines again.
pub(super) const RECORD: &str = "%record";

/// The calling convention of these functions, which are hardly ever called: on x86-64 they save the general and the 16 byte registers. Not
/// `preserve_allcc`: that has 32 byte registers saved too, of which `vzeroupper` clears half before the return.
pub(super) const KEEPS_REGISTERS: &str = if cfg!(target_arch = "x86_64") { "coldcc" } else { "" };

/// Values one after the other in memory.
#[derive(Default)]
struct Record<'a> {
    fields: Vec<Field<'a>>,
    known: BTreeSet<&'a str>,
    bytes: usize,
}

/// A value of a record.
#[derive(Clone, Copy)]
struct Field<'a> {
    value: &'a str,
    form: Form,
    /// In bytes.
    offset: usize,
}

impl<'a> Record<'a> {
    /// Adds a value, if it is not there.
    fn add(&mut self, value: &'a str, form: Form) {
        if self.known.insert(value) {
            self.fields.push(Field { value, form, offset: self.bytes });
            self.bytes += form.scalar.bytes() * form.lanes;
        }
    }
}

/// A line that is being written.
#[derive(Debug, Default)]
pub(super) struct Speculation {
    /// Its operations in order.
    steps: Vec<Step>,
    /// What slots hold that the line sets.
    slots: BTreeMap<Reg, String>,
}

/// An operation of a line. A strong product is written as a plain one.
#[derive(Debug)]
struct Step {
    prim: Prim,
    lanes: usize,
    args: Vec<String>,
    value: String,
}

impl Step {
    fn form(&self) -> Form {
        Form { scalar: self.prim.result(), lanes: self.lanes }
    }
    /// The arguments with their forms.
    fn inputs(&self) -> impl Iterator<Item = (Form, &String)> {
        let forms = self.prim.params().into_iter().map(|scalar| Form { scalar, lanes: self.lanes });
        forms.zip(&self.args)
    }
}

/// The steps that these values need.
fn needed<'a>(steps: &'a [Step], values: &'a [String]) -> Vec<&'a Step> {
    let mut needed: BTreeSet<&str> = values.iter().map(String::as_str).collect();
    let mut used: Vec<&Step> = Vec::new();
    for step in steps.iter().rev() {
        // A conversion to the same type is its argument.
        if needed.contains(step.value.as_str()) && !step.args.contains(&step.value) {
            needed.extend(step.args.iter().map(String::as_str));
            used.push(step);
        }
    }
    used.reverse();
    used
}

/// The strength of a product: at how many factors it stops.
fn stops(prim: Prim) -> usize {
    match prim {
        Prim::Op(Op::StrongMul, _) => 1,
        Prim::Op(Op::MutualMul, _) => 2,
        _ => 0,
    }
}

/// The plain product in the place of a strong one.
fn plain(prim: Prim) -> Prim {
    match prim {
        Prim::Op(Op::StrongMul | Op::MutualMul, s) => Prim::Op(Op::Mul, s),
        _ => prim,
    }
}

/// Whether the result is NaN wherever one of the arguments is.
fn hands_on_nan(prim: Prim) -> bool {
    use Op::{Abs, Add, Div, Mul, MutualMul, Neg, Sqrt, StrongMul, Sub};
    matches!(prim, Prim::Op(Add | Sub | Mul | Div | Neg | Abs | Sqrt | StrongMul | MutualMul, s) if s.is_float())
}

impl Emitter<'_> {
    /// The line at the start of a block, if there is one; and how many instructions were looked at.
    pub(super) fn speculated(&self, block: &[Ins]) -> (Option<Line>, usize) {
        let is_masked = self.lanes.is_some() && self.is_masked();
        if !self.may_speculate() || is_masked || self.open_loops == 0 || !self.folds.is_empty() {
            return (None, block.len());
        }
        let mut plan = Plan::default();
        let length = block.iter().take_while(|ins| plan.takes(ins, self)).count();
        let Some((guards, results)) = plan.guards(self) else { return (None, length.max(1)) };
        // A product, a comparison and a selection for each stop, of which the product could be part of a sum.
        let saved = 2 * plan.stops;
        let branch = if self.lanes.is_some() { 3 } else { 1 };
        let is_worth_it = !results.is_empty() && saved > guards.len() + branch;
        (is_worth_it.then_some(Line { length, guards, results }), length.max(1))
    }

    /// Whether a zero may have another sign, while NaN is kept.
    fn may_speculate(&self) -> bool {
        self.options.floats == Floats::Contract
    }

    /// Whether strong products on lanes are products with the masks of comparisons. They cost less than a line's guard where each
    /// instruction takes a mask: all that a line is computed from is kept until its guard is known.
    pub(super) fn is_masked(&self) -> bool {
        let takes_masks = self.options.machine == Machine::Avx512;
        self.may_speculate() && self.options.masks.unwrap_or(takes_masks)
    }

    /// Writes a line.
    pub(super) fn speculate(&mut self, block: &[Ins], line: &Line) {
        self.speculation = Some(Speculation::default());
        for ins in &block[..line.length] {
            self.ins(ins);
        }
        let Some(written) = self.speculation.take() else { return };
        let first: Vec<String> = line.results.iter().map(|&r| self.held_in(&written, r)).collect();
        let guards: Vec<(Form, &str)> =
            line.guards.iter().map(|&k| &written.steps[k]).map(|s| (s.form(), s.value.as_str())).collect();
        let bad = self.some_nan(&guards);
        let in_lanes = guards.iter().any(|(k, _)| k.lanes > 1);
        let branch = if in_lanes { self.any(&bad) } else { bad.clone() };
        let (guard, cold, on) = (self.label(), self.label(), self.label());
        line!(self, "br label %{guard}");
        self.begin(&guard);
        line!(self, "br i1 {branch}, label %{cold}, label %{on}, !prof !0");
        self.begin(&cold);
        let mut again = self.computed_again(&written.steps, &first);
        if in_lanes {
            for ((new, old), r) in again.iter_mut().zip(&first).zip(&line.results) {
                let Ty::Lanes(scalar, lanes) = self.f.regs[*r].ty else { continue };
                *new = self.select(Form { scalar, lanes }, &bad, new, old);
            }
        }
        line!(self, "br label %{on}");
        self.begin(&on);
        let mut chosen = Vec::new();
        for (&r, (first, again)) in line.results.iter().zip(first.iter().zip(again)) {
            let t = self.ty(self.f.regs[r].ty);
            chosen.push((r, self.let_(format_args!("phi {t} [ {first}, %{guard} ], [ {again}, %{cold} ]"))));
        }
        let plain = written.slots.into_iter().filter(|(r, _)| !line.results.contains(r));
        for (r, value) in plain.chain(chosen) {
            self.set(r, &value);
        }
    }

    /// What a register holds at the end of a line.
    fn held_in(&mut self, written: &Speculation, r: Reg) -> String {
        match written.slots.get(&r) {
            Some(value) => value.clone(),
            None => self.value(r.into()),
        }
    }

    /// Where a guard is NaN: a truth value, or one for each active lane.
    fn some_nan(&mut self, guards: &[(Form, &str)]) -> String {
        let mut out: Option<String> = None;
        for bytes in [4, 8] {
            let these: Vec<_> = guards.iter().filter(|(k, _)| k.scalar.bytes() == bytes).collect();
            let Some(&&(k, first)) = these.first() else { continue };
            // A sum is NaN where a term is; where it is not one of infinities, nothing else is.
            let t = k.ty();
            let (mut x, mut y) = (first.to_string(), these.get(1).map_or(first, |g| g.1).to_string());
            for (j, (_, z)) in these.iter().enumerate().skip(2) {
                let to = if j % 2 == 0 { &mut x } else { &mut y };
                *to = self.let_(format_args!("fadd {t} {to}, {z}"));
            }
            let here = self.let_(format_args!("fcmp uno {t} {x}, {y}"));
            out = Some(match out {
                None => here,
                Some(before) => self.let_(format_args!("or {} {before}, {here}", k.truth())),
            });
        }
        let bad = out.unwrap_or_else(|| "false".to_string());
        match (guards.first(), self.active.clone()) {
            (Some((k, _)), Some(active)) if k.lanes > 1 => {
                let none = splat(k.lanes, "i1", "false");
                self.select(k.of(Scalar::Bool), &active, &bad, &none)
            }
            _ => bad,
        }
    }

    /// Calls a function that computes the line with strong products; gives what stands for these values. Written in place it would keep all that
    /// the line computes on the way in registers. The call [`KEEPS_REGISTERS`] and is given its values in memory, so that it does not decide
    /// what lies in registers around it. Results of the plain line are in that memory, too: LLVM would move what only the usual way needs
    /// behind the branch, and put the two parts of the line in order each for itself.
    fn computed_again(&mut self, steps: &[Step], values: &[String]) -> Vec<String> {
        let used = needed(steps, values);
        let forms: BTreeMap<&str, Form> =
            used.iter().map(|step| (step.value.as_str(), step.form())).collect();
        let mut record = Record::default();
        for (form, a) in used.iter().flat_map(|step| step.inputs()) {
            if a.starts_with('%') && !forms.contains_key(a.as_str()) {
                record.add(a, form);
            }
        }
        let inputs = record.fields.len();
        for v in values {
            if let Some(form) = forms.get(v.as_str()) {
                record.add(v, *form);
            }
        }
        let (given, results) = record.fields.split_at(inputs);
        // The function's own text and numbers.
        let (outer, next) = (std::mem::take(&mut self.out), std::mem::take(&mut self.next));
        let mut names = self.load_fields(given);
        for step in &used {
            let args: Vec<String> =
                step.args.iter().map(|a| names.get(a.as_str()).unwrap_or(a).clone()).collect();
            let value = self.prim(step.prim, step.lanes, &args);
            names.insert(&step.value, value);
        }
        self.store_fields(results, &names);
        line!(self, "ret void");
        let body = std::mem::replace(&mut self.out, outer);
        self.next = next;
        let name = self.shared.again(format!("(ptr noalias nocapture {RECORD}) #6 {{\n{body}}}"));
        self.record = self.record.max(record.bytes);
        self.store_fields(&record.fields, &BTreeMap::new());
        line!(self, "call {KEEPS_REGISTERS} void @{name}(ptr {RECORD})");
        let again = self.load_fields(results);
        values.iter().map(|v| again.get(v.as_str()).unwrap_or(v).clone()).collect()
    }

    /// Stores values, or those that stand for them, to the record.
    fn store_fields(&mut self, fields: &[Field<'_>], names: &BTreeMap<&str, String>) {
        for Field { value, form, offset } in fields {
            let to = self.let_(format_args!("getelementptr inbounds i8, ptr {RECORD}, i64 {offset}"));
            let value = names.get(value).map_or(*value, String::as_str);
            line!(self, "store {} {value}, ptr {to}, align 1", form.ty());
        }
    }
    /// What the record has for values.
    fn load_fields<'a>(&mut self, fields: &[Field<'a>]) -> BTreeMap<&'a str, String> {
        let mut out = BTreeMap::new();
        for Field { value, form, offset } in fields {
            let from = self.let_(format_args!("getelementptr inbounds i8, ptr {RECORD}, i64 {offset}"));
            out.insert(*value, self.let_(format_args!("load {}, ptr {from}, align 1", form.ty())));
        }
        out
    }

    /// The value of a primitive. In a line strong products are plain ones at first.
    pub(super) fn prim_in_line(&mut self, prim: Prim, lanes: usize, args: &[String]) -> String {
        if self.speculation.is_none() {
            return self.prim(prim, lanes, args);
        }
        let value = self.prim(plain(prim), lanes, args);
        if let Some(s) = &mut self.speculation {
            s.steps.push(Step { prim, lanes, args: args.to_vec(), value: value.clone() });
        }
        value
    }
    /// What a slot holds, if the line that is being written has set it.
    pub(super) fn in_line(&self, r: Reg) -> Option<String> {
        self.speculation.as_ref()?.slots.get(&r).cloned()
    }
    /// Whether a line is being written, which keeps what its slots hold.
    pub(super) fn set_in_line(&mut self, r: Reg, value: &str) -> bool {
        let Some(s) = &mut self.speculation else { return false };
        s.slots.insert(r, value.to_string());
        true
    }
}

/// What is found out about a line before it is written.
#[derive(Default)]
struct Plan {
    /// Which operation computed what a register holds, if it depends on a strong product.
    holds: BTreeMap<Reg, usize>,
    /// For each operation: those that compute from it and hand on NaN.
    on: Vec<Vec<usize>>,
    /// Whether it depends on a strong product.
    depends: Vec<bool>,
    /// The strong products.
    strong: Vec<usize>,
    /// How often each register was read.
    read: BTreeMap<Reg, usize>,
    /// What the line sets.
    set: BTreeSet<Reg>,
    stops: usize,
}

impl Plan {
    /// Takes the next instruction into the line, if it can be part of it.
    fn takes(&mut self, ins: &Ins, emitter: &Emitter<'_>) -> bool {
        let mut from = Vec::new();
        let mut registers = Vec::new();
        ins.reads(&mut |a| registers.extend(a.as_reg()));
        from.extend(registers.iter().filter_map(|r| self.holds.get(r).copied()));
        let in_lanes = emitter.lanes.is_some();
        let depends = match ins {
            Ins::Prim { to, prim, .. } => {
                let depends = stops(*prim) > 0 || !from.is_empty();
                if depends && emitter.f.regs[*to].ty.is_lanes() != in_lanes {
                    return false;
                }
                let number = self.on.len();
                self.on.push(Vec::new());
                self.depends.push(depends);
                self.stops += stops(*prim);
                if stops(*prim) > 0 {
                    self.strong.push(number);
                }
                if hands_on_nan(*prim) && !registers.iter().any(|r| self.is_gathered(*r, emitter)) {
                    from.iter().for_each(|k| self.on[*k].push(number));
                }
                depends.then_some(number)
            }
            // In some lanes a register keeps what it held.
            Ins::Set { to, value } => {
                let masked = emitter.active.is_some() && emitter.f.regs[*to].ty.is_lanes();
                if masked && (!from.is_empty() || self.holds.contains_key(to)) {
                    return false;
                }
                value.as_reg().and_then(|r| self.holds.get(&r).copied())
            }
            Ins::Fail { .. } if from.is_empty() => None,
            _ if from.is_empty() && ins.only_sets() => None,
            // Stores are written in rows, and memory is looked at in order.
            _ => return false,
        };
        for r in registers {
            *self.read.entry(r).or_default() += 1;
        }
        for r in ins.sets() {
            self.set.insert(*r);
            match depends {
                Some(k) => self.holds.insert(*r, k),
                None => self.holds.remove(r),
            };
        }
        true
    }

    /// Whether a register gathers something over iterations of a loop in any order. Which ones come before depends on how many threads
    /// there are: a NaN of theirs must not decide how this one is rounded.
    fn is_gathered(&self, r: Reg, emitter: &Emitter<'_>) -> bool {
        emitter.unordered > 0 && emitter.values[r] == super::Held::Slot && !self.set.contains(&r)
    }

    /// The guards, and the registers that are read after the line; `None` if there are too many.
    fn guards(&self, emitter: &Emitter<'_>) -> Option<(Vec<usize>, Vec<Reg>)> {
        let is_read_later = |r: &Reg| {
            emitter.values[*r] == super::Held::Slot
                || emitter.reads[*r] > self.read.get(r).copied().unwrap_or(0)
        };
        let results: Vec<Reg> = self.holds.keys().copied().filter(is_read_later).collect();
        // To which last operations, by their bits, a NaN comes from each operation.
        let mut last = Vec::new();
        let mut ends = vec![0u64; self.on.len()];
        for k in (0..self.on.len()).rev() {
            ends[k] = self.on[k].iter().fold(0, |bits, n| bits | ends[*n]);
            if self.on[k].is_empty() && self.depends[k] {
                ends[k] = 1u64.checked_shl(last.len() as u32)?;
                last.push(k);
            }
        }
        // Each time the one to which most come.
        let mut left: Vec<u64> = self.strong.iter().map(|k| ends[*k]).collect();
        let mut guards = Vec::new();
        while !left.is_empty() {
            let come = |bit: &usize| left.iter().filter(|ends| *ends >> bit & 1 == 1).count();
            let best = (0..last.len()).max_by_key(come)?;
            guards.push(last[best]);
            left.retain(|ends| ends >> best & 1 == 0);
        }
        Some((guards, results))
    }
}
