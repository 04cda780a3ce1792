//! Stencil: the gradient of the sum of squares after T steps in the first grid, columns across lanes.
//!
//! The border is a branch of the program: a mask in each row. The reverse step is taken as a sum over neighbours into each
//! cell, or as additions from each cell into its neighbours.

use crate::run::{Table, filled, room, time};
use crate::text::{Style, Text, V, WIDE};
use pullback_testkit::problems::uniform;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Back {
    /// Each cell takes from its neighbours' q, made in an array of its own.
    Take,
    /// Each cell adds to its neighbours in a new grid.
    Give,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Variant {
    pub(crate) style: Style,
    pub(crate) back: Back,
    /// Blocks of a row begin inside the border and the last is masked; else whole rows are masked.
    pub(crate) split: bool,
}

pub(crate) const POINTERS: &[&str] = &["u", "tape", "a", "b", "g", "h", "q"];
pub(crate) const SIZES: &[&str] = &["n", "t"];

struct Kernel {
    variant: Variant,
    lanes: usize,
    inner: V,
    cells: V,
}

pub(crate) fn text(variant: Variant) -> String {
    let mut t = Text::new(variant.style);
    let inner = t.isub("%n", "1");
    let cells = t.imul("%n", "%n");
    let kernel = Kernel { variant, lanes: variant.style.lanes, inner, cells };
    kernel.write(&mut t);
    t.module(POINTERS, SIZES)
}

impl Kernel {
    /// Blocks of the interior of a row: `body(first column, mask)`.
    fn interior(&self, t: &mut Text, body: &dyn Fn(&mut Text, &str, Option<&str>)) {
        let lanes = self.lanes;
        if lanes == 1 {
            t.each("1", &self.inner, 1, |t, j| body(t, j, None));
            return;
        }
        let start = if self.variant.split { "1" } else { "0" };
        let end = if self.variant.split { self.inner.clone() } else { "%n".to_owned() };
        t.each(start, &end, lanes, |t, j| {
            let all = t.splat_integer(j);
            let numbers: Vec<_> = (0..lanes).map(|w| format!("i64 {w}")).collect();
            let ty = t.integers();
            let columns = t.line(&format!("add {ty} {all}, <{}>", numbers.join(", ")));
            let end = t.splat_integer(&self.inner);
            let mut mask = t.line(&format!("icmp slt {ty} {columns}, {end}"));
            if !self.variant.split {
                let low = t.line(&format!("icmp sgt {ty} {columns}, zeroinitializer"));
                mask = t.line(&format!("and <{lanes} x i1> {mask}, {low}"));
            }
            body(t, j, Some(&mask));
        });
    }

    fn load(&self, t: &mut Text, memory: &str, at: &str, mask: Option<&str>) -> V {
        let (at, ty, lanes) = (t.at(memory, at), t.vector(), self.lanes);
        match mask {
            None => t.line(&format!("load {ty}, ptr {at}, align 8")),
            Some(mask) => {
                t.declare(format!(
                    "declare {ty} @llvm.masked.load.v{lanes}f64.p0(ptr, i32, <{lanes} x i1>, {ty})"
                ));
                t.line(&format!(
                    "call {ty} @llvm.masked.load.v{lanes}f64.p0(ptr {at}, i32 8, <{lanes} x i1> {mask}, {ty} zeroinitializer)"
                ))
            }
        }
    }
    fn store(&self, t: &mut Text, v: &str, memory: &str, at: &str, mask: Option<&str>) {
        let (at, ty, lanes) = (t.at(memory, at), t.vector(), self.lanes);
        match mask {
            None => t.raw(&format!("store {ty} {v}, ptr {at}, align 8")),
            Some(mask) => {
                t.declare(format!(
                    "declare void @llvm.masked.store.v{lanes}f64.p0({ty}, ptr, i32, <{lanes} x i1>)"
                ));
                t.raw(&format!(
                    "call void @llvm.masked.store.v{lanes}f64.p0({ty} {v}, ptr {at}, i32 8, <{lanes} x i1> {mask})"
                ));
            }
        }
    }
    fn neighbours(&self, t: &mut Text, at: &str) -> [V; 5] {
        [at.to_owned(), t.isub(at, "%n"), t.iadd(at, "%n"), t.isub(at, "1"), t.iadd(at, "1")]
    }

    fn write(&self, t: &mut Text) {
        let copy = |t: &mut Text, to: &str, from: &str, twice: bool| {
            t.each("0", &self.cells, 1, |t, i| {
                let x = t.load(from, i);
                let x = if twice { t.line(&format!("fadd double {x}, {x}")) } else { x };
                t.store(&x, to, i);
            });
        };
        copy(t, "%a", "%u", false);
        copy(t, "%b", "%u", false);
        let (now, next) = (t.variable("ptr", "%a"), t.variable("ptr", "%b"));
        t.each("0", "%t", 1, |t, step| {
            let (from, to) = (t.get("ptr", &now), t.get("ptr", &next));
            let kept = t.imul(step, &self.cells);
            let kept = t.at("%tape", &kept);
            t.each("1", &self.inner, 1, |t, i| {
                let row = t.imul(i, "%n");
                self.interior(t, &|t, j, mask| {
                    let at = t.iadd(&row, j);
                    let around = self.neighbours(t, &at);
                    let mut v = self.load(t, &from, &around[0], mask);
                    for place in &around[1..] {
                        let u = self.load(t, &from, place, mask);
                        v = t.add(&v, &u);
                    }
                    let c = t.constant(0.2);
                    let v = t.mul(&c, &v);
                    self.store(t, &v, &kept, &at, mask);
                    let square = t.mul(&v, &v);
                    let c = t.constant(0.01);
                    let one = t.constant(1.0);
                    let factor = t.mul_sub(&c, &square, &one);
                    let new = t.mul(&v, &factor);
                    self.store(t, &new, &to, &at, mask);
                });
            });
            t.set("ptr", &now, &to);
            t.set("ptr", &next, &from);
        });
        let last = t.get("ptr", &now);
        copy(t, "%g", &last, true);
        t.each("0", &self.cells, 1, |t, i| t.store("0.0", "%q", i));
        let (g, h) = (t.variable("ptr", "%g"), t.variable("ptr", "%h"));
        let last = t.isub("%t", "1");
        t.each("0", "%t", 1, |t, back| {
            let step = t.isub(&last, back);
            let kept = t.imul(&step, &self.cells);
            let kept = t.at("%tape", &kept);
            let (from, to) = (t.get("ptr", &g), t.get("ptr", &h));
            match self.variant.back {
                Back::Take => self.take(t, &kept, &from),
                Back::Give => {
                    self.give(t, &kept, &from, &to);
                    t.set("ptr", &g, &to);
                    t.set("ptr", &h, &from);
                }
            }
        });
        let last = t.get("ptr", &g);
        copy(t, "%b", &last, false);
    }

    fn q(&self, t: &mut Text, kept: &str, g: &str, at: &str, mask: Option<&str>) -> V {
        let v = self.load(t, kept, at, mask);
        let g = self.load(t, g, at, mask);
        let square = t.mul(&v, &v);
        let (c, one) = (t.constant(0.03), t.constant(1.0));
        let factor = t.mul_sub(&c, &square, &one);
        t.mul(&g, &factor)
    }

    /// q of the whole grid, then every cell from its neighbours. Borders add up along their one neighbour inside.
    fn take(&self, t: &mut Text, kept: &str, g: &str) {
        t.each("1", &self.inner, 1, |t, i| {
            let row = t.imul(i, "%n");
            self.interior(t, &|t, j, mask| {
                let at = t.iadd(&row, j);
                let q = self.q(t, kept, g, &at, mask);
                self.store(t, &q, "%q", &at, mask);
            });
        });
        let fifth = "0x3FC999999999999A";
        let edge = |t: &mut Text, at: &str, from: &str| {
            let q = t.load("%q", from);
            let part = t.line(&format!("fmul double {q}, {fifth}"));
            let old = t.load(g, at);
            let new = t.line(&format!("fadd double {old}, {part}"));
            t.store(&new, g, at);
        };
        t.each("1", &self.inner, 1, |t, i| {
            let below = t.iadd(i, "%n");
            edge(t, i, &below);
            let bottom = t.imul(&self.inner, "%n");
            let bottom = t.iadd(&bottom, i);
            let above = t.isub(&bottom, "%n");
            edge(t, &bottom, &above);
            let left = t.imul(i, "%n");
            let right = t.iadd(&left, "1");
            edge(t, &left, &right);
            let far = t.iadd(&left, &self.inner);
            let near = t.isub(&far, "1");
            edge(t, &far, &near);
        });
        t.each("1", &self.inner, 1, |t, i| {
            let row = t.imul(i, "%n");
            self.interior(t, &|t, j, mask| {
                let at = t.iadd(&row, j);
                let around = self.neighbours(t, &at);
                let mut sum = self.load(t, "%q", &around[0], mask);
                for place in &around[1..] {
                    let q = self.load(t, "%q", place, mask);
                    sum = t.add(&sum, &q);
                }
                let c = t.constant(0.2);
                let new = t.mul(&c, &sum);
                self.store(t, &new, g, &at, mask);
            });
        });
    }

    fn give(&self, t: &mut Text, kept: &str, g: &str, to: &str) {
        // The new grid: the border keeps its own, the inside starts at zero.
        t.each("0", &self.cells, 1, |t, i| {
            let x = t.load(g, i);
            t.store(&x, to, i);
        });
        t.each("1", &self.inner, 1, |t, i| {
            let row = t.imul(i, "%n");
            self.interior(t, &|t, j, mask| {
                let at = t.iadd(&row, j);
                let zero = t.constant(0.0);
                self.store(t, &zero, to, &at, mask);
            });
        });
        t.each("1", &self.inner, 1, |t, i| {
            let row = t.imul(i, "%n");
            self.interior(t, &|t, j, mask| {
                let at = t.iadd(&row, j);
                let q = self.q(t, kept, g, &at, mask);
                let c = t.constant(0.2);
                let part = t.mul(&c, &q);
                for place in self.neighbours(t, &at) {
                    let old = self.load(t, to, &place, mask);
                    let new = t.add(&old, &part);
                    self.store(t, &new, to, &place, mask);
                }
            });
        });
    }
}

/// All variants, in the caches and in memory.
pub(crate) fn table() {
    for (n, steps, runs) in [(128, 100, 60), (512, 100, 10)] {
        let table = Table::new("stencil", &[n, steps], runs);
        let u: Vec<f64> = uniform(50, n * n).iter().map(|x| 2.0 * x - 1.0).collect();
        let lanes = |lanes: usize| Style { lanes, ..WIDE };
        let strict = Style { lanes: 1, contract: false, reassociate: false, ..WIDE };
        let variants = [
            ("scalar text, taken from neighbours, strict", strict, Back::Take, true),
            ("scalar text, taken from neighbours, any order and contraction", lanes(1), Back::Take, true),
            ("scalar text, added to neighbours, any order and contraction", lanes(1), Back::Give, true),
            ("4 lanes, taken, masked at the end", Style { width: 256, ..lanes(4) }, Back::Take, true),
            ("8 lanes, taken, masked at the end", WIDE, Back::Take, true),
            ("8 lanes, taken, whole rows masked", WIDE, Back::Take, false),
            ("8 lanes, added to neighbours, masked at the end", WIDE, Back::Give, true),
            ("16 lanes, taken, masked at the end", lanes(16), Back::Take, true),
            ("32 lanes, taken, masked at the end", lanes(32), Back::Take, true),
        ];
        for (name, style, back, split) in variants {
            let grid = || room(n * n);
            let mut memory = [filled(&u), room(n * n * steps), grid(), grid(), grid(), grid(), grid()];
            let best = time(&text(Variant { style, back, split }), &mut memory, &[n, steps], runs);
            table.row(name, best, memory[3].read());
        }
    }
}
