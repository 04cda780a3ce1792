//! LSTM: the gradient in all parameters, the hidden dimension across lanes.
//!
//! 14 numbers do not fill two registers of 8: tails are masked, or done one by one. The tape holds gates, tanh of the cell and
//! both states of every step and layer, as in `benches/baseline/lstm.c`.

use crate::lane::Lane;
use crate::run::{Table, filled, room, time};
use crate::text::{Style, Text, V, WIDE};
use pullback_maths::Function;
use pullback_testkit::problems::uniform;
use std::cell::RefCell;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tail {
    /// Loads and stores under a mask.
    Masked,
    /// One by one.
    Scalar,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Variant {
    pub(crate) style: Style,
    pub(crate) tail: Tail,
    /// The functions are left out: what the rest costs, not a right result.
    pub(crate) without_functions: bool,
}

pub(crate) const POINTERS: &[&str] = &[
    "main", "extra", "state", "sequence", "d_main", "d_extra", "tape", "out", "input", "d_hidden", "d_cell",
    "dx",
];
pub(crate) const SIZES: &[&str] = &["l", "c", "b"];

struct Kernel {
    variant: Variant,
    lanes: usize,
}

/// The place of a block of the hidden dimension.
struct Block {
    at: V,
    mask: Option<V>,
}

pub(crate) fn text(variant: Variant) -> String {
    let mut t = Text::new(variant.style);
    let kernel = Kernel { variant, lanes: variant.style.lanes };
    kernel.forward(&mut t);
    kernel.backward(&mut t);
    t.module(POINTERS, SIZES)
}

fn offset(t: &mut Text, memory: &str, parts: &[(&str, &str)]) -> V {
    let mut at = "0".to_owned();
    for (count, size) in parts {
        let part = t.imul(count, size);
        at = t.iadd(&at, &part);
    }
    t.at(memory, &at)
}

impl Kernel {
    /// All blocks of the hidden dimension.
    fn blocks(&self, t: &mut Text, body: &dyn Fn(&mut Text, &Block)) {
        if self.lanes == 1 {
            t.each("0", "%b", 1, |t, i| body(t, &Block { at: i.to_owned(), mask: None }));
            return;
        }
        match self.variant.tail {
            Tail::Masked => t.each("0", "%b", self.lanes, |t, i| {
                let left = t.isub("%b", i);
                let lanes = self.lanes;
                let left = t.splat_integer(&left);
                let numbers: Vec<_> = (0..lanes).map(|w| format!("i64 {w}")).collect();
                let mask = t.line(&format!("icmp slt <{lanes} x i64> <{}>, {left}", numbers.join(", ")));
                body(t, &Block { at: i.to_owned(), mask: Some(mask) });
            }),
            Tail::Scalar => {
                let rest = t.line(&format!("srem i64 %b, {}", self.lanes));
                let whole = t.isub("%b", &rest);
                t.each("0", &whole, self.lanes, |t, i| body(t, &Block { at: i.to_owned(), mask: None }));
                t.style.lanes = 1;
                t.each(&whole, "%b", 1, |t, i| body(t, &Block { at: i.to_owned(), mask: None }));
                t.style.lanes = self.lanes;
            }
        }
    }

    fn forward(&self, t: &mut Text) {
        let steps = t.isub("%c", "1");
        let b7 = t.imul("%b", "7");
        let b8 = t.imul("%b", "8");
        let b2 = t.imul("%b", "2");
        let per_step = t.imul(&b7, "%l");
        t.each("0", &steps, 1, |t, step| {
            let now = offset(t, "%tape", &[(step, &per_step)]);
            let sequence = offset(t, "%sequence", &[(step, "%b")]);
            let input = offset(t, "%input", &[(step, "%b")]);
            self.blocks(t, &|t, k| {
                let x = k.load(t, &sequence, 0);
                let w = k.load(t, "%extra", 0);
                let x = t.mul(&x, &w);
                k.store(t, &x, &input, 0);
            });
            let is_first = t.line(&format!("icmp eq i64 {step}, 0"));
            let before = t.isub(step, "1");
            let before = offset(t, "%tape", &[(&before, &per_step)]);
            let from = t.variable("ptr", &input);
            t.each("0", "%l", 1, |t, layer| {
                let cells = offset(t, &now, &[(layer, &b7)]);
                let old = offset(t, &before, &[(layer, &b7), ("5", "%b")]);
                let start = offset(t, "%state", &[(layer, &b2)]);
                let h = t.line(&format!("select i1 {is_first}, ptr {start}, ptr {old}"));
                let w = offset(t, "%main", &[(layer, &b8)]);
                let x = t.get("ptr", &from);
                self.blocks(t, &|t, k| self.cell(t, k, &cells, &h, &w, &x));
                let hidden = offset(t, &cells, &[("5", "%b")]);
                t.set("ptr", &from, &hidden);
            });
            let x = t.get("ptr", &from);
            let out = offset(t, "%out", &[(step, "%b")]);
            self.blocks(t, &|t, k| {
                let x = k.load(t, &x, 0);
                let w = k.load(t, "%extra", 1);
                let bias = k.load(t, "%extra", 2);
                let y = t.mul_add(&x, &w, &bias);
                let y = if self.variant.without_functions { y } else { t.call(Function::Exp, &y) };
                k.store(t, &y, &out, 0);
            });
        });
    }

    fn cell(&self, t: &mut Text, k: &Block, cells: &str, h: &str, w: &str, x: &str) {
        let (x, h0, c0) = (k.load(t, x, 0), k.load(t, h, 0), k.load(t, h, 1));
        let w: Vec<V> = (0..8).map(|g| k.load(t, w, g)).collect();
        let style = t.style;
        let cell = RefCell::new(std::mem::replace(t, Text::new(style)));
        let lane = |v: &V| Lane::new(&cell, v.clone());
        let (x, h0, c0) = (lane(&x), lane(&h0), lane(&c0));
        let w: Vec<Lane> = w.iter().map(lane).collect();
        let one = x.constant(1.0);
        let without = self.variant.without_functions;
        let sigmoid = |v: Lane<'_>| -> V {
            if without { v.name } else { (&one / &(&one + (-v).call(Function::Exp))).name }
        };
        let tanh = |v: &Lane<'_>| if without { v.name.clone() } else { v.call(Function::Tanh).name };
        let f = lane(&sigmoid(&x * &w[0] + &w[4]));
        let i = lane(&sigmoid(&h0 * &w[1] + &w[5]));
        let o = lane(&sigmoid(&x * &w[2] + &w[6]));
        let ch = lane(&tanh(&(&h0 * &w[3] + &w[7])));
        let c1 = &c0 * &f + &i * &ch;
        let changed = lane(&tanh(&c1));
        let h1 = &o * &changed;
        let all = [f, i, o, ch, changed, h1, c1].map(|l| l.name);
        *t = cell.into_inner();
        for (g, v) in all.iter().enumerate() {
            k.store(t, v, cells, g);
        }
    }

    fn backward(&self, t: &mut Text) {
        let b7 = t.imul("%b", "7");
        let b8 = t.imul("%b", "8");
        let b2 = t.imul("%b", "2");
        let per_step = t.imul(&b7, "%l");
        let lb = t.imul("%l", "%b");
        let main = t.imul("%l", &b8);
        let b3 = t.imul("%b", "3");
        for (memory, count) in [("%d_main", &main), ("%d_extra", &b3), ("%d_hidden", &lb), ("%d_cell", &lb)] {
            t.each("0", count, 1, |t, i| t.store("0.0", memory, i));
        }
        let steps = t.isub("%c", "1");
        let count = t.imul("%b", &steps);
        let count = t.line(&format!("sitofp i64 {count} to double"));
        let scale = t.line(&format!("fdiv double -1.0, {count}"));
        let last_layer = t.isub("%l", "1");
        let last_step = t.isub(&steps, "1");
        t.each("0", &steps, 1, |t, back| {
            let step = t.isub(&last_step, back);
            let now = offset(t, "%tape", &[(&step, &per_step)]);
            let out = offset(t, "%out", &[(&step, "%b")]);
            let next = t.iadd(&step, "1");
            let target = offset(t, "%sequence", &[(&next, "%b")]);
            let last = offset(t, &now, &[(&last_layer, &b7), ("5", "%b")]);
            let sum = t.variable("double", "2.0");
            let ones = t.variable("double", "0.0");
            self.blocks(t, &|t, k| {
                for (memory, total) in [(&out, &sum), (&target, &ones)] {
                    let v = k.load(t, memory, 0);
                    let v = t.sum(&v);
                    let old = t.get("double", total);
                    let new = t.line(&format!("fadd reassoc double {old}, {v}"));
                    t.set("double", total, &new);
                }
            });
            let (sum, ones) = (t.get("double", &sum), t.get("double", &ones));
            let share = t.line(&format!("fdiv double {ones}, {sum}"));
            self.blocks(t, &|t, k| {
                let (y, target) = (k.load(t, &out, 0), k.load(t, &target, 0));
                let (share, scale) = (t.splat(&share), t.splat(&scale));
                let dy = t.mul_sub(&share, &y, &target);
                let dy = t.mul(&scale, &dy);
                let last = k.load(t, &last, 0);
                let product = t.mul(&dy, &last);
                k.add(t, &product, "%d_extra", 1);
                k.add(t, &dy, "%d_extra", 2);
                let w = k.load(t, "%extra", 1);
                let dx = t.mul(&dy, &w);
                k.store(t, &dx, "%dx", 0);
            });
            let is_first = t.line(&format!("icmp eq i64 {step}, 0"));
            let before = t.isub(&step, "1");
            let before = offset(t, "%tape", &[(&before, &per_step)]);
            let input = offset(t, "%input", &[(&step, "%b")]);
            t.each("0", "%l", 1, |t, down| {
                let layer = t.isub(&last_layer, down);
                let cells = offset(t, &now, &[(&layer, &b7)]);
                let old = offset(t, &before, &[(&layer, &b7), ("5", "%b")]);
                let start = offset(t, "%state", &[(&layer, &b2)]);
                let h = t.line(&format!("select i1 {is_first}, ptr {start}, ptr {old}"));
                let below = t.isub(&layer, "1");
                let below = offset(t, &now, &[(&below, &b7), ("5", "%b")]);
                let is_lowest = t.line(&format!("icmp eq i64 {layer}, 0"));
                let x = t.line(&format!("select i1 {is_lowest}, ptr {input}, ptr {below}"));
                let w = offset(t, "%main", &[(&layer, &b8)]);
                let dw = offset(t, "%d_main", &[(&layer, &b8)]);
                let dh = offset(t, "%d_hidden", &[(&layer, "%b")]);
                let dc = offset(t, "%d_cell", &[(&layer, "%b")]);
                self.blocks(t, &|t, k| self.cell_back(t, k, [&cells, &h, &w, &x, &dw, &dh, &dc]));
            });
            let sequence = offset(t, "%sequence", &[(&step, "%b")]);
            self.blocks(t, &|t, k| {
                let (dx, s) = (k.load(t, "%dx", 0), k.load(t, &sequence, 0));
                let product = t.mul(&dx, &s);
                k.add(t, &product, "%d_extra", 0);
            });
        });
    }

    fn cell_back(&self, t: &mut Text, k: &Block, [cells, h, w, x, dw, dh, dc]: [&str; 7]) {
        let gates: Vec<V> = (0..5).map(|g| k.load(t, cells, g)).collect();
        let others = [
            k.load(t, x, 0),
            k.load(t, h, 0),
            k.load(t, h, 1),
            k.load(t, dh, 0),
            k.load(t, dc, 0),
            k.load(t, "%dx", 0),
        ];
        let weights: Vec<V> = (0..4).map(|g| k.load(t, w, g)).collect();
        let style = t.style;
        let cell = RefCell::new(std::mem::replace(t, Text::new(style)));
        let lane = |v: &V| Lane::new(&cell, v.clone());
        let g: Vec<Lane> = gates.iter().map(lane).collect();
        let w: Vec<Lane> = weights.iter().map(lane).collect();
        let [x, h0, c0, dh0, dc0, dx] = others.each_ref().map(lane);
        let one = x.constant(1.0);
        let down = &dh0 + &dx;
        let d = &dc0 + &down * &g[2] * (&one - &g[4] * &g[4]);
        let sums = [
            &d * &c0 * &g[0] * (&one - &g[0]),
            &d * &g[3] * &g[1] * (&one - &g[1]),
            &down * &g[4] * &g[2] * (&one - &g[2]),
            &d * &g[1] * (&one - &g[3] * &g[3]),
        ];
        let dc1 = &d * &g[0];
        let inputs = [&x, &h0, &x, &h0];
        let products: Vec<V> = sums.iter().zip(inputs).map(|(s, x)| (s * x).name).collect();
        let dx1 = &sums[0] * &w[0] + &sums[2] * &w[2];
        let dh1 = &sums[1] * &w[1] + &sums[3] * &w[3];
        let sums = sums.map(|s| s.name);
        let (dc1, dx1, dh1) = (dc1.name, dx1.name, dh1.name);
        *t = cell.into_inner();
        for (i, v) in products.iter().chain(&sums).enumerate() {
            k.add(t, v, dw, i);
        }
        k.store(t, &dc1, dc, 0);
        k.store(t, &dx1, "%dx", 0);
        k.store(t, &dh1, dh, 0);
    }
}

impl Block {
    /// Row `row` of rows of b numbers.
    fn place(&self, t: &mut Text, memory: &str, row: usize) -> V {
        let start = t.imul("%b", &row.to_string());
        let at = t.iadd(&start, &self.at);
        t.at(memory, &at)
    }
    fn load(&self, t: &mut Text, memory: &str, row: usize) -> V {
        let (at, ty, lanes) = (self.place(t, memory, row), t.vector(), t.style.lanes);
        match &self.mask {
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
    fn store(&self, t: &mut Text, v: &str, memory: &str, row: usize) {
        let (at, ty, lanes) = (self.place(t, memory, row), t.vector(), t.style.lanes);
        match &self.mask {
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
    fn add(&self, t: &mut Text, v: &str, memory: &str, row: usize) {
        let old = self.load(t, memory, row);
        let new = t.add(&old, v);
        self.store(t, &new, memory, row);
    }
}

/// All variants.
pub(crate) fn table() {
    let sizes = [2, 1024, 14];
    let table = Table::new("lstm", &sizes, 60);
    let [l, c, b] = sizes;
    let bits: Vec<f64> = uniform(44, c * b).into_iter().map(|x| if x < 0.5 { 0.0 } else { 1.0 }).collect();
    let lanes = |lanes: usize| Style { lanes, ..WIDE };
    let variants = [
        ("scalar text, any order and contraction", lanes(1), Tail::Scalar, false),
        ("4 lanes, masked tail", Style { width: 256, ..lanes(4) }, Tail::Masked, false),
        ("4 lanes, scalar tail", Style { width: 256, ..lanes(4) }, Tail::Scalar, false),
        ("8 lanes, masked tail", WIDE, Tail::Masked, false),
        ("8 lanes, masked tail, no contraction", Style { contract: false, ..WIDE }, Tail::Masked, false),
        ("8 lanes, scalar tail", WIDE, Tail::Scalar, false),
        ("16 lanes, masked tail", lanes(16), Tail::Masked, false),
        ("8 lanes, masked tail, exp and tanh left out (not the gradient)", WIDE, Tail::Masked, true),
    ];
    for (name, style, tail, without_functions) in variants {
        let mut memory = [
            filled(&uniform(41, 8 * l * b)),
            filled(&uniform(42, 3 * b)),
            filled(&uniform(43, 2 * l * b)),
            filled(&bits),
            room(8 * l * b),
            room(3 * b),
            room(7 * b * l * c),
            room(c * b),
            room(c * b),
            room(l * b),
            room(l * b),
            room(b),
        ];
        let best = time(&text(Variant { style, tail, without_functions }), &mut memory, &[l, c, b], 60);
        table.row(name, best, &[memory[4].read(), memory[5].read()].concat());
    }
}
