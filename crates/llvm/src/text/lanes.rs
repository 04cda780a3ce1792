//! Lanes: loops whose iterations run side by side, and what is between lanes and scalars.
//!
//! A loop is a loop over blocks in which all lanes are active, then one block for the rest, in which a mask says which are.
//! So the body is there twice, and nothing in the first copy asks for active lanes.
//!
//! What lanes that are not active hold may be nothing at all, not even the same at each look. It never reaches a branch: masks
//! are combined by selection, which looks at a lane of its second argument only where the first one holds.

use super::form::{Form, splat, vector, wide};
use super::{Emitter, Held, line};
use crate::abi;
use pullback_base::index::Index;
use pullback_kernel::{Block, Ins, MessageId, Module, Operand, Reg, Ty, size};
use pullback_prim::{Prim, Scalar, ScalarValue};
use std::fmt::Write;

/// So many instructions of kernel IR may a module become longer since bodies are there twice.
const TWICE: usize = 1500;

/// The size up to which bodies are there twice, the smallest first; larger ones are there once, with masks everywhere. Masks turn
/// loads and stores of places that are not neighbours into gathers and scatters, which takes time in large bodies too; but
/// where there are many bodies, so does compiling.
pub(super) fn small_enough(module: &Module) -> usize {
    fn bodies(block: &Block, out: &mut Vec<usize>) {
        for ins in block {
            match ins {
                Ins::Lanes { body, .. } => out.push(size(body)),
                _ => ins.blocks().into_iter().for_each(|b| bodies(b, out)),
            }
        }
    }
    let mut sizes = Vec::new();
    module.functions.iter().for_each(|f| bodies(&f.body, &mut sizes));
    sizes.sort_unstable();
    let sums = sizes.iter().scan(0, |sum, n| {
        *sum += n;
        Some(*sum)
    });
    let few = sums.take_while(|sum| *sum <= TWICE).count();
    // Equal bodies are treated alike.
    match sizes.get(few) {
        None => usize::MAX,
        Some(first) => first.saturating_sub(1),
    }
}

impl Emitter<'_> {
    /// How many lanes the present instruction has.
    pub(super) fn width(&self) -> usize {
        self.lanes
            .unwrap_or_else(|| panic!("an instruction on lanes has registers of lanes, or a loop around it"))
    }
    /// Makes the text of an instruction outside of loops of lanes: it has as many as its registers.
    pub(super) fn outside(&mut self, ins: &Ins) {
        let number = |r: Reg| self.f.regs[r].ty.lanes();
        let mut lanes = ins.sets().iter().copied().find_map(number);
        ins.reads(&mut |a| lanes = lanes.or_else(|| a.as_reg().and_then(number)));
        self.lanes = lanes;
        self.ins_of(ins);
        self.lanes = None;
    }
    /// So many lanes of a scalar.
    pub(super) fn lanes_of(&self, scalar: Scalar) -> Form {
        Form { scalar, lanes: self.width() }
    }

    /// All blocks with a mask of the lanes that are active.
    fn masked_loop(&mut self, i: Reg, from: Operand, to: Operand, body: &Block) {
        let (head, inside, done) = (self.label(), self.label(), self.label());
        let width = self.width();
        let (from, to) = (self.value(from), self.value(to));
        self.set(i, &from);
        line!(self, "br label %{head}");
        self.begin(&head);
        if self.open_loops == 0 || body.iter().any(super::loops::is_long) {
            self.poll();
        }
        let here = self.value(i.into());
        let left = self.let_(format_args!("sub i64 {to}, {here}"));
        let test = self.let_(format_args!("icmp slt i64 {here}, {to}"));
        line!(self, "br i1 {test}, label %{inside}, label %{done}");
        self.begin(&inside);
        let k = self.lanes_of(Scalar::I64);
        let left = self.spread(&left, k);
        let active = format_args!("icmp slt {} {}, {left}", k.ty(), numbers(width)).to_string();
        let outer = self.active.take();
        self.active = Some(self.let_(active));
        self.open_loops += 1;
        self.block(body);
        self.open_loops -= 1;
        self.active = outer;
        let here = self.value(i.into());
        // The counter may wrap only after the last block; then it is not read.
        let next = self.let_(format_args!("add i64 {here}, {width}"));
        let last = self.let_(format_args!("sub i64 {to}, {here}"));
        let last = self.let_(format_args!("icmp sle i64 {last}, {width}"));
        self.set(i, &next);
        line!(self, "br i1 {last}, label %{done}, label %{head}");
        self.begin(&done);
    }

    pub(super) fn lanes_loop(&mut self, i: Reg, from: Operand, to: Operand, lanes: usize, body: &Block) {
        self.lanes = Some(lanes);
        self.writes = super::uses::writes(body);
        self.unordered += 1;
        if size(body) > self.small_enough {
            self.masked_loop(i, from, to, body);
        } else {
            self.split_loop(i, from, to, body);
        }
        self.unordered -= 1;
        self.writes = true;
        self.lanes = None;
    }

    /// Whole blocks without a mask, then one with a mask for the rest.
    fn split_loop(&mut self, i: Reg, from: Operand, to: Operand, body: &Block) {
        let (some, done) = (self.label(), self.label());
        let width = self.width();
        let (from, to) = (self.value(from), self.value(to));
        let count = self.let_(format_args!("sub i64 {to}, {from}"));
        let left = self.let_(format_args!("srem i64 {count}, {width}"));
        let end = self.let_(format_args!("sub i64 {to}, {left}"));
        self.set(i, &from);
        let outer = self.active.take();
        self.counted(i, &end, width, body);
        let test = self.let_(format_args!("icmp sgt i64 {left}, 0"));
        line!(self, "br i1 {test}, label %{some}, label %{done}");
        self.begin(&some);
        let k = self.lanes_of(Scalar::I64);
        let left = self.spread(&left, k);
        let active = format_args!("icmp slt {} {}, {left}", k.ty(), numbers(width)).to_string();
        self.active = Some(self.let_(active));
        self.open_loops += 1;
        self.block(body);
        self.open_loops -= 1;
        self.active = outer;
        line!(self, "br label %{done}");
        self.begin(&done);
    }

    /// `to` = 0, 1, 2, ..
    pub(super) fn lane_number(&mut self, to: Reg) {
        self.set(to, &numbers(self.width()));
    }

    /// Sets the active lanes of a register.
    pub(super) fn set_lanes(&mut self, to: Reg, s: Scalar, value: Operand) {
        let k = self.lanes_of(s);
        let mut value = self.wide_value(value);
        if let (Held::Slot, Some(active)) = (&self.values[to], self.active.clone()) {
            let before = self.value(to.into());
            value = self.select(k, &active, &value, &before);
        }
        self.set(to, &value);
    }

    pub(super) fn fold_lanes(
        &mut self,
        to: Reg,
        prim: Prim,
        neutral: ScalarValue,
        from: Operand,
        mask: Option<Operand>,
    ) {
        let k = self.lanes_of(neutral.scalar());
        let all = self.wide_value(from);
        let mask = self.mask(mask);
        let value = self.folded(prim, neutral, k, all, mask);
        self.set(to, &value);
    }

    /// All lanes together: halves with each other as long as their number is even, then one after the other.
    pub(super) fn folded(
        &mut self,
        prim: Prim,
        neutral: ScalarValue,
        k: Form,
        mut all: String,
        mask: Option<String>,
    ) -> String {
        if let Some(mask) = mask {
            all = self.select(k, &mask, &all, &k.constant(neutral));
        }
        let mut n = k.lanes;
        while n.is_multiple_of(2) {
            let k = Form { lanes: n, ..k };
            n /= 2;
            let (low, high) = (self.part(&all, k, 0, n), self.part(&all, k, n, n));
            all = self.prim(prim, n, &[low, high]);
        }
        if n == 1 {
            return all;
        }
        let k = Form { lanes: n, ..k };
        let first = self.extract(&all, k, 0);
        (1..n).fold(first, |sum, lane| {
            let next = self.extract(&all, k, lane);
            self.prim(prim, 1, &[sum, next])
        })
    }

    /// So many lanes from one on.
    pub(super) fn part(&mut self, all: &str, k: Form, from: usize, count: usize) -> String {
        if count == 1 {
            return self.extract(all, k, from);
        }
        let t = k.ty();
        let which = vector("i32", from..from + count);
        self.let_(format_args!("shufflevector {t} {all}, {t} poison, <{count} x i32> {which}"))
    }
    /// What a lane holds.
    pub(super) fn extract(&mut self, all: &str, k: Form, lane: impl std::fmt::Display) -> String {
        self.let_(format_args!("extractelement {} {all}, i64 {lane}", k.ty()))
    }
    /// `all` with another value in a lane.
    pub(super) fn insert(&mut self, all: &str, k: Form, value: &str, lane: usize) -> String {
        let (t, one) = (k.ty(), super::scalar(k.scalar));
        self.let_(format_args!("insertelement {t} {all}, {one} {value}, i64 {lane}"))
    }
    /// The scalar in all lanes.
    pub(super) fn spread(&mut self, value: &str, k: Form) -> String {
        let t = k.ty();
        let first = self.insert("poison", k, value, 0);
        let same = format!("<{} x i32> zeroinitializer", k.lanes);
        self.let_(format_args!("shufflevector {t} {first}, {t} poison, {same}"))
    }

    /// An operand in all lanes.
    pub(super) fn wide_value(&mut self, a: Operand) -> String {
        match (a, self.type_of(a)) {
            (Operand::Const(c), _) => self.lanes_of(c.scalar()).constant(c),
            (_, Ty::Scalar(s)) => {
                let value = self.value(a);
                self.spread(&value, self.lanes_of(s))
            }
            _ => self.value(a),
        }
    }

    /// The lanes that are active and where the mask holds; `None`: all.
    pub(super) fn mask(&mut self, mask: Option<Operand>) -> Option<String> {
        let mask = mask.filter(|m| *m != Operand::bool(true));
        let Some(mask) = mask else { return self.active.clone() };
        let mask = self.wide_value(mask);
        let Some(active) = self.active.clone() else { return Some(mask) };
        let k = self.lanes_of(Scalar::Bool);
        let none = splat(k.lanes, "i1", "false");
        Some(self.select(k, &active, &mask, &none))
    }

    /// The truth values of lanes as bits of an integer, the first lane lowest.
    fn packed(&mut self, mask: &str) -> (String, String) {
        let width = self.width();
        let ty = format!("i{width}");
        // One and the same look at lanes that hold nothing.
        let frozen = self.let_(format_args!("freeze {} {mask}", wide(width, "i1")));
        let packed = self.let_(format_args!("bitcast {} {frozen} to {ty}", wide(width, "i1")));
        (packed, ty)
    }
    /// Whether a mask holds in some lane.
    pub(super) fn any(&mut self, mask: &str) -> String {
        let (packed, ty) = self.packed(mask);
        self.let_(format_args!("icmp ne {ty} {packed}, 0"))
    }

    /// Stops the program if the condition holds in an active lane, with the values of the first one.
    pub(super) fn fail_lanes(&mut self, condition: Operand, message: MessageId, values: &[Operand]) {
        let Some(holds) = self.mask(Some(condition)) else { return };
        let (packed, ty) = self.packed(&holds);
        let any = self.let_(format_args!("icmp ne {ty} {packed}, 0"));
        let goes_on = self.begin_cold(&any);
        self.declare(&format!("declare {ty} @llvm.cttz.{ty}({ty}, i1)"));
        let first = self.let_(format_args!("call {ty} @llvm.cttz.{ty}({ty} {packed}, i1 true)"));
        let lane = self.index(&first, self.width());
        let values: Vec<String> = values
            .iter()
            .take(abi::MAX_VALUES)
            .map(|v| {
                let value = self.value(*v);
                match self.type_of(*v) {
                    Ty::Lanes(s, _) => self.extract(&value, self.lanes_of(s), &lane),
                    Ty::Scalar(_) | Ty::Pointer => value,
                }
            })
            .collect();
        self.stop_with(message.index() as i64, &values);
        self.begin(&goes_on);
    }

    /// A number of so many bits as an index.
    fn index(&mut self, number: &str, bits: usize) -> String {
        match bits.cmp(&64) {
            std::cmp::Ordering::Less => self.let_(format_args!("zext i{bits} {number} to i64")),
            std::cmp::Ordering::Equal => number.to_string(),
            std::cmp::Ordering::Greater => self.let_(format_args!("trunc i{bits} {number} to i64")),
        }
    }

    /// What a lane holds.
    pub(super) fn lane(&mut self, to: Reg, from: Operand, lane: usize) {
        let value = self.value(from);
        let value = match self.type_of(from) {
            Ty::Lanes(s, _) => self.extract(&value, self.lanes_of(s), lane),
            Ty::Scalar(_) | Ty::Pointer => value,
        };
        self.set(to, &value);
    }
}

/// 0, 1, 2, ..
pub(super) fn numbers(lanes: usize) -> String {
    vector("i64", 0..lanes)
}
