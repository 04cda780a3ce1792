//! Loads, stores and additions of lanes.
//!
//! Where lanes lie one after the other, forwards or backwards, they are one vector of memory. Where all are the same element
//! it is one scalar. Elsewhere each lane has an address of its own.

use super::form::{Form, splat, vector};
use super::lanes::numbers;
use super::{Emitter, in_memory, line, scalar};
use crate::abi;
use pullback_kernel::{Operand, Reg, Ty};
use pullback_prim::{Op, Prim, Scalar, ScalarValue};
use std::fmt::Write;

/// Where the lanes of an access are in memory.
#[derive(Clone, Copy)]
pub(super) struct At {
    pub(super) pointer: Operand,
    pub(super) index: Operand,
    pub(super) stride: Operand,
    pub(super) mask: Option<Operand>,
}

/// How they lie there, with addresses.
enum Places {
    /// One after the other.
    Forwards(String),
    /// One before the other; the address of the last lane.
    Backwards(String),
    /// All at one element.
    Same(String),
    /// At equal distances from the first one, which are values.
    Apart(String, String),
    /// A vector of addresses.
    Anywhere(String),
}

/// Lanes as they are in memory: truth values are bytes.
fn stored(k: Form) -> Form {
    if k.scalar == Scalar::Bool { k.of(Scalar::U8) } else { k }
}

impl Emitter<'_> {
    fn places(&mut self, at: At, s: Scalar) -> Places {
        let (width, t) = (self.width(), in_memory(Ty::Scalar(s)));
        let pointer = self.value(at.pointer);
        if self.type_of(at.index).is_lanes() {
            let mut index = self.value(at.index);
            if at.stride.as_i64() != Some(0) {
                let k = self.lanes_of(Scalar::I64);
                let stride = self.wide_value(at.stride);
                let moved = self.let_(format_args!("mul {} {stride}, {}", k.ty(), numbers(width)));
                index = self.let_(format_args!("add {} {index}, {moved}", k.ty()));
            }
            let each = format!("getelementptr {t}, ptr {pointer}, <{width} x i64> {index}");
            return Places::Anywhere(self.let_(each));
        }
        let index = self.value(at.index);
        // The lanes of a mask may lie anywhere, so nothing is said about addresses.
        let place = |this: &mut Self, index: &str| {
            this.let_(format_args!("getelementptr {t}, ptr {pointer}, i64 {index}"))
        };
        match at.stride.as_i64() {
            Some(0) => Places::Same(place(self, &index)),
            Some(1) => Places::Forwards(place(self, &index)),
            Some(-1) => {
                let last = self.let_(format_args!("sub i64 {index}, {}", width - 1));
                Places::Backwards(place(self, &last))
            }
            _ => {
                let first = place(self, &index);
                let stride = self.value(at.stride);
                Places::Apart(first, stride)
            }
        }
    }

    /// A vector of the addresses of places at equal distances.
    fn each(&mut self, first: &str, stride: &str, s: Scalar) -> String {
        let (width, t) = (self.width(), in_memory(Ty::Scalar(s)));
        let k = self.lanes_of(Scalar::I64);
        let stride = self.spread(stride, k);
        let moved = self.let_(format_args!("mul {} {stride}, {}", k.ty(), numbers(width)));
        self.let_(format_args!("getelementptr {t}, ptr {first}, <{width} x i64> {moved}"))
    }
    /// The address of one of them.
    pub(super) fn one(&mut self, first: &str, stride: &str, s: Scalar, lane: usize) -> String {
        let t = in_memory(Ty::Scalar(s));
        let known = stride.parse::<i64>().ok().and_then(|stride| stride.checked_mul(lane as i64));
        let moved = match (lane, known) {
            (0, _) => return first.to_string(),
            (1, _) => stride.to_string(),
            (_, Some(moved)) => moved.to_string(),
            (_, None) => self.let_(format_args!("mul i64 {stride}, {lane}")),
        };
        self.let_(format_args!("getelementptr {t}, ptr {first}, i64 {moved}"))
    }
    /// Lanes in the opposite order.
    fn reversed(&mut self, value: &str, k: Form) -> String {
        let (t, n) = (k.ty(), k.lanes);
        let which = vector("i32", (0..n).rev());
        self.let_(format_args!("shufflevector {t} {value}, {t} poison, <{n} x i32> {which}"))
    }

    pub(super) fn load_lanes(&mut self, to: Reg, s: Scalar, at: At) {
        let scope = self.scopes.suffix(at.pointer).to_string();
        let places = self.places(at, s);
        let mask = self.mask(at.mask);
        let m = stored(self.lanes_of(s));
        let value = match places {
            Places::Same(from) => self.load_same(&from, m, at.mask, &scope),
            Places::Apart(first, stride) if mask.is_none() => {
                let one = scalar(m.scalar);
                let mut all = "poison".to_string();
                for lane in 0..m.lanes {
                    let from = self.one(&first, &stride, s, lane);
                    let x = self.let_(format_args!("load {one}, ptr {from}, align {}{scope}", s.bytes()));
                    all = self.insert(&all, m, &x, lane);
                }
                all
            }
            Places::Anywhere(each) if mask.is_none() => {
                let one = scalar(m.scalar);
                let mut all = "poison".to_string();
                for lane in 0..m.lanes {
                    let from =
                        self.let_(format_args!("extractelement <{} x ptr> {each}, i64 {lane}", m.lanes));
                    let x = self.let_(format_args!("load {one}, ptr {from}, align {}{scope}", s.bytes()));
                    all = self.insert(&all, m, &x, lane);
                }
                all
            }
            other => self.load_places(&other, m, mask, &scope),
        };
        let value = if s == Scalar::Bool {
            self.let_(format_args!("icmp ne {} {value}, {}", m.ty(), m.number(0)))
        } else {
            value
        };
        self.set(to, &value);
    }

    /// One element, if there is an active lane.
    fn load_same(&mut self, from: &str, m: Form, mask: Option<Operand>, scope: &str) -> String {
        let one = scalar(m.scalar);
        let load = format!("load {one}, ptr {from}, align {}{scope}", m.scalar.bytes());
        // Without a mask of its own some lane is active.
        let Some(mask) = mask.and_then(|m| self.mask(Some(m))) else {
            let x = self.let_(load);
            return self.spread(&x, m);
        };
        let any = self.any(&mask);
        let (before, inside, done) = (self.label(), self.label(), self.label());
        line!(self, "br label %{before}");
        self.begin(&before);
        line!(self, "br i1 {any}, label %{inside}, label %{done}");
        self.begin(&inside);
        let x = self.let_(load);
        line!(self, "br label %{done}");
        self.begin(&done);
        let zero = Form { lanes: 1, ..m }.constant(m.scalar.zero());
        let x = self.let_(format_args!("phi {one} [ {zero}, %{before} ], [ {x}, %{inside} ]"));
        self.spread(&x, m)
    }

    /// Lanes as they are in memory; zero where there is no active lane.
    ///
    /// What is loaded with a mask is frozen where the loop also writes to memory. LLVM (22 does, in its pass `instcombine`) makes one masked load
    /// of a masked load and a selection by the same mask, in the place of the selection, though there may be a store between the two.
    /// It does not look through the freezing, which costs nothing.
    fn load_places(&mut self, places: &Places, m: Form, mask: Option<String>, scope: &str) -> String {
        let (t, bytes, suffix) = (m.ty(), m.scalar.bytes(), m.suffix());
        let truth = m.truth();
        let zero = m.constant(m.scalar.zero());
        match places {
            Places::Backwards(from) => {
                let mask = mask.map(|mask| self.reversed(&mask, m.of(Scalar::Bool)));
                let value = self.load_places(&Places::Forwards(from.clone()), m, mask, scope);
                self.reversed(&value, m)
            }
            Places::Forwards(from) => match mask {
                None => self.let_(format_args!("load {t}, ptr {from}, align {bytes}{scope}")),
                Some(mask) => {
                    let name = format!("llvm.masked.load.{suffix}.p0");
                    self.declare(&format!("declare {t} @{name}(ptr, i32, {truth}, {t})"));
                    let value = self.let_(format_args!(
                        "call {t} @{name}(ptr {from}, i32 {bytes}, {truth} {mask}, {t} {zero}){scope}"
                    ));
                    self.kept(&t, value)
                }
            },
            Places::Apart(first, stride) => {
                let each = self.each(first, stride, m.scalar);
                self.load_places(&Places::Anywhere(each), m, mask, scope)
            }
            Places::Same(from) => {
                let each = self.each(from, "0", m.scalar);
                self.load_places(&Places::Anywhere(each), m, mask, scope)
            }
            Places::Anywhere(each) => {
                let mask = mask.unwrap_or_else(|| splat(m.lanes, "i1", "true"));
                let name = format!("llvm.masked.gather.{suffix}.v{}p0", m.lanes);
                let ptrs = format!("<{} x ptr>", m.lanes);
                self.declare(&format!("declare {t} @{name}({ptrs}, i32, {truth}, {t})"));
                let value = self.let_(format_args!(
                    "call {t} @{name}({ptrs} {each}, i32 {bytes}, {truth} {mask}, {t} {zero}){scope}"
                ));
                self.kept(&t, value)
            }
        }
    }

    /// What was loaded with a mask, so that it is not loaded again later: see [`Self::load_places`].
    fn kept(&mut self, ty: &str, value: String) -> String {
        if self.writes { self.let_(format_args!("freeze {ty} {value}")) } else { value }
    }

    pub(super) fn store_lanes(&mut self, at: At, value: Operand, s: Scalar) {
        let scope = self.scopes.suffix(at.pointer).to_string();
        let places = self.places(at, s);
        let mask = self.mask(at.mask);
        let k = self.lanes_of(s);
        let m = stored(k);
        let mut value = self.wide_value(value);
        if s == Scalar::Bool {
            value = self.let_(format_args!("zext {} {value} to {}", k.ty(), m.ty()));
        }
        // LLVM 22 stores too much where the mask is a constant with one lane and the value was cut off a wider integer:
        // see `masked_stores_of_narrow_integers_keep_to_their_lanes`. So these are no masked stores of integers.
        match mask {
            Some(mask) if s.is_integer() && s.bytes() == 4 => {
                let floats = m.of(Scalar::F32);
                let as_floats = self.let_(format_args!("bitcast {} {value} to {}", m.ty(), floats.ty()));
                self.store_places(&places, floats, &as_floats, Some(mask), &scope);
            }
            Some(mask) if s.is_integer() && s.bytes() < 4 => {
                self.store_each(&places, m, &value, &mask, &scope);
            }
            mask => self.store_places(&places, m, &value, mask, &scope),
        }
    }

    /// Stores one lane after the other; lanes that are not active to a place of no use.
    fn store_each(&mut self, places: &Places, k: Form, value: &str, mask: &str, scope: &str) {
        let (one, bytes) = (scalar(k.scalar), k.scalar.bytes());
        let elsewhere = self.elsewhere();
        for lane in 0..k.lanes {
            let to = self.address(places, k, lane);
            let is_active = self.extract(mask, k.of(Scalar::Bool), lane);
            let to = self.let_(format_args!("select i1 {is_active}, ptr {to}, ptr {elsewhere}"));
            let x = self.extract(value, k, lane);
            line!(self, "store {one} {x}, ptr {to}, align {bytes}{scope}");
        }
    }

    /// A place of no use. It is none of this function's own: LLVM would make a branch of each choice between the two places.
    fn elsewhere(&mut self) -> String {
        self.field_address(abi::ELSEWHERE)
    }

    /// Where a lane is.
    fn address(&mut self, places: &Places, k: Form, lane: usize) -> String {
        let t = scalar(k.scalar);
        match places {
            Places::Anywhere(each) => {
                self.let_(format_args!("extractelement <{} x ptr> {each}, i64 {lane}", k.lanes))
            }
            Places::Apart(first, stride) => self.one(first, stride, k.scalar, lane),
            Places::Forwards(first) => self.let_(format_args!("getelementptr {t}, ptr {first}, i64 {lane}")),
            Places::Backwards(last) => {
                self.let_(format_args!("getelementptr {t}, ptr {last}, i64 {}", k.lanes - 1 - lane))
            }
            Places::Same(to) => to.clone(),
        }
    }

    /// Stores lanes as they are in memory, the last one last.
    fn store_places(&mut self, places: &Places, m: Form, value: &str, mask: Option<String>, scope: &str) {
        let (t, bytes, suffix) = (m.ty(), m.scalar.bytes(), m.suffix());
        let (truth, one) = (m.truth(), scalar(m.scalar));
        match places {
            Places::Backwards(to) => {
                let mask = mask.map(|mask| self.reversed(&mask, m.of(Scalar::Bool)));
                let value = self.reversed(value, m);
                self.store_places(&Places::Forwards(to.clone()), m, &value, mask, scope);
            }
            Places::Forwards(to) => match mask {
                None => line!(self, "store {t} {value}, ptr {to}, align {bytes}{scope}"),
                Some(mask) => {
                    let name = format!("llvm.masked.store.{suffix}.p0");
                    self.declare(&format!("declare void @{name}({t}, ptr, i32, {truth})"));
                    line!(
                        self,
                        "call void @{name}({t} {value}, ptr {to}, i32 {bytes}, {truth} {mask}){scope}"
                    );
                }
            },
            Places::Same(to) if mask.is_none() => {
                let last = self.extract(value, m, m.lanes - 1);
                line!(self, "store {one} {last}, ptr {to}, align {bytes}{scope}");
            }
            Places::Apart(first, stride) if mask.is_none() => {
                for lane in 0..m.lanes {
                    let to = self.one(first, stride, m.scalar, lane);
                    let x = self.extract(value, m, lane);
                    line!(self, "store {one} {x}, ptr {to}, align {bytes}{scope}");
                }
            }
            Places::Same(to) => {
                let each = self.each(to, "0", m.scalar);
                self.store_places(&Places::Anywhere(each), m, value, mask, scope);
            }
            Places::Apart(first, stride) => {
                let each = self.each(first, stride, m.scalar);
                self.store_places(&Places::Anywhere(each), m, value, mask, scope);
            }
            Places::Anywhere(each) => {
                let mask = mask.unwrap_or_else(|| splat(m.lanes, "i1", "true"));
                let name = format!("llvm.masked.scatter.{suffix}.v{}p0", m.lanes);
                let ptrs = format!("<{} x ptr>", m.lanes);
                self.declare(&format!("declare void @{name}({t}, {ptrs}, i32, {truth})"));
                line!(
                    self,
                    "call void @{name}({t} {value}, {ptrs} {each}, i32 {bytes}, {truth} {mask}){scope}"
                );
            }
        }
    }

    /// Adds lanes to elements.
    pub(super) fn accumulate_lanes(&mut self, at: At, value: Operand, s: Scalar, atomic: bool) {
        let scope = self.scopes.suffix(at.pointer).to_string();
        let places = self.places(at, s);
        let mask = self.mask(at.mask);
        let k = self.lanes_of(s);
        let value = self.wide_value(value);
        let add = Prim::Op(Op::Add, s);
        match places {
            Places::Same(to) => self.add_same(&to, k, value, (at.mask.is_some(), mask), (&scope, atomic)),
            Places::Forwards(_) | Places::Backwards(_) if !atomic => {
                if mask.is_some() && s.is_integer() && s.bytes() < 8 {
                    // As for stores.
                    return self.add_each(&places, k, &value, mask, (&scope, atomic));
                }
                let before = self.load_places(&places, k, mask.clone(), &scope);
                let sum = self.prim(add, k.lanes, &[before, value]);
                self.store_places(&places, k, &sum, mask, &scope);
            }
            _ => self.add_each(&places, k, &value, mask, (&scope, atomic)),
        }
    }

    /// Adds the sum of all lanes to one element, if there is an active lane. The sum has the order of a fold of lanes.
    fn add_same(
        &mut self,
        to: &str,
        k: Form,
        value: String,
        (has_own, mask): (bool, Option<String>),
        how: (&str, bool),
    ) {
        let add = Prim::Op(Op::Add, k.scalar);
        let done = match &mask {
            Some(mask) if has_own => {
                let any = self.any(mask);
                let (inside, done) = (self.label(), self.label());
                line!(self, "br i1 {any}, label %{inside}, label %{done}");
                self.begin(&inside);
                Some(done)
            }
            _ => None,
        };
        let sum = self.folded(add, nothing(k.scalar), k, value, mask);
        self.add_at(to, k.scalar, &sum, how);
        if let Some(done) = done {
            line!(self, "br label %{done}");
            self.begin(&done);
        }
    }

    /// Adds one lane after the other, since two may be at one element. Lanes that are not active add to a place of no use:
    /// better than a branch for each, which would often be foreseen wrongly.
    fn add_each(&mut self, places: &Places, k: Form, value: &str, mask: Option<String>, how: (&str, bool)) {
        let elsewhere = mask.is_some().then(|| self.elsewhere());
        for lane in 0..k.lanes {
            let mut to = self.address(places, k, lane);
            if let (Some(mask), Some(elsewhere)) = (&mask, &elsewhere) {
                let is_active = self.extract(mask, k.of(Scalar::Bool), lane);
                to = self.let_(format_args!("select i1 {is_active}, ptr {to}, ptr {elsewhere}"));
            }
            let x = self.extract(value, k, lane);
            self.add_at(&to, k.scalar, &x, how);
        }
    }
}

/// What changes nothing when it is added: of floats, zero with a sign.
fn nothing(s: Scalar) -> ScalarValue {
    if s.is_float() { s.from_f64(-0.0) } else { s.zero() }
}
