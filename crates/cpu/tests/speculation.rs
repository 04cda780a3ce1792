//! Lines of strong products are computed with plain ones first (see `text/speculate.rs` of `pullback-llvm`): random lines in loops
//! and in lanes give the numbers of the reference executor, at zeros, infinities and NaN. Small whole numbers: every order and every
//! rounding is exact. A zero may have either sign. Also where the machine has masks such lines in lanes have guards, and the other way round.

#![allow(unsafe_code, reason = "compiled code is called with words")]

use crate::common::*;
use pullback_cpu::Options;
use pullback_kernel::run::{self, Memory, Word};
use pullback_kernel::{Block, Function, FunctionId, Ins, Module, Operand, Order, Reg, Ty};
use pullback_llvm::text;
use pullback_prim::{Op, Prim, Scalar, ScalarValue};
use pullback_testkit::conformance::{Random, Regs, float};

/// Arrays that are read: factors, and divisors.
const READ: usize = 4;
/// Arrays that are written.
const WRITTEN: usize = 2;
const F: Scalar = Scalar::F64;
const ADD: Prim = Prim::Op(Op::Add, F);

/// Writes the body of a loop.
struct Writer<'a> {
    random: &'a mut Random,
    regs: &'a mut Regs,
    /// How many lanes; 1: scalars.
    lanes: usize,
    /// What was loaded: each step makes numbers larger by no more than such a factor.
    inputs: Vec<Reg>,
    /// What has been set, inputs among it.
    known: Vec<Reg>,
    out: Block,
}

impl Writer<'_> {
    fn below(&mut self, n: usize) -> usize {
        (self.random.next() >> 33) as usize % n
    }
    fn ty(&self, s: Scalar) -> Ty {
        if self.lanes == 1 { Ty::Scalar(s) } else { Ty::Lanes(s, self.lanes) }
    }
    fn any(&mut self) -> Operand {
        let k = self.below(self.known.len());
        // Mostly what was made last: then much depends on much.
        let k = if self.below(2) == 0 { k } else { self.known.len() - 1 - self.below(3) };
        self.known[k].into()
    }
    fn input(&mut self) -> Operand {
        let k = self.below(READ - 1);
        self.inputs[k].into()
    }
    fn prim(&mut self, op: Op, args: Vec<Operand>) {
        // At times into a register that held something else.
        let old = self.below(8) == 0 && self.known.len() > READ;
        let to = if old {
            let k = READ + self.below(self.known.len() - READ);
            self.known[k]
        } else {
            self.regs.add(self.ty(F))
        };
        self.out.push(Ins::Prim { to, prim: Prim::Op(op, F), args });
        if !old {
            self.known.push(to);
        }
    }
    fn step(&mut self) {
        let (x, y, z) = (self.any(), self.any(), self.input());
        match self.below(16) {
            0..=3 => self.prim(Op::StrongMul, vec![z, x]),
            4 | 5 => self.prim(Op::StrongMul, vec![x, z]),
            6 => self.prim(Op::MutualMul, vec![x, z]),
            7 => self.prim(Op::Mul, vec![x, z]),
            8..=10 => self.prim(Op::Add, vec![x, y]),
            11 => self.prim(Op::Sub, vec![x, y]),
            12 => self.prim(Op::Neg, vec![x]),
            13 => {
                let divisor = self.inputs[READ - 1].into();
                self.prim(Op::Div, vec![x, divisor]);
            }
            14 => self.prim(Op::Max, vec![x, z]),
            _ => {
                let is = self.regs.add(self.ty(Scalar::Bool));
                self.out.push(Ins::Prim { to: is, prim: Prim::Op(Op::Lt, F), args: vec![x, z] });
                self.prim(Op::Select, vec![is.into(), y, z]);
            }
        }
    }
}

/// `f(arrays .., n) -> sum` with `n` iterations, and what is added up in them if they are not in lanes.
fn random_function(random: &mut Random, lanes: usize) -> Function {
    let params: Vec<Ty> = (0..READ + WRITTEN).map(|_| PTR).chain([I64]).collect();
    function("f", &params, |regs, p| {
        let (i, sum) = (regs.add(I64), regs.add(F64));
        let state = if lanes == 1 { sum } else { regs.add(Ty::Lanes(F, lanes)) };
        let mut w = Writer { random, regs, lanes, inputs: Vec::new(), known: Vec::new(), out: Vec::new() };
        for &pointer in &p[..READ] {
            let to = w.regs.add(w.ty(F));
            let (pointer, index) = (pointer.into(), i.into());
            w.out.push(match lanes {
                1 => Ins::Load { to, pointer, index },
                _ => Ins::LoadLanes { to, pointer, index, stride: int(1), mask: None },
            });
            w.inputs.push(to);
            w.known.push(to);
        }
        let steps = 4 + w.below(12);
        (0..steps).for_each(|_| w.step());
        if lanes == 1 && w.below(2) == 0 {
            // A branch on what was computed, and a line in an arm.
            let (test, x, z) = (w.regs.add(BOOL), w.any(), w.input());
            w.out.push(Ins::Prim { to: test, prim: Prim::Op(Op::Le, F), args: vec![x, z] });
            let joined = w.regs.add(F64);
            let before = std::mem::take(&mut w.out);
            let outside = w.known.clone();
            let arm = |w: &mut Writer<'_>| {
                w.known.clone_from(&outside);
                (0..4).for_each(|_| w.step());
                let value = w.any();
                w.out.push(Ins::Set { to: joined, value });
                std::mem::take(&mut w.out)
            };
            let (then, otherwise) = (arm(&mut w), arm(&mut w));
            w.out = before;
            w.known = outside;
            w.out.push(Ins::If { condition: test.into(), then, otherwise });
            w.known.push(joined);
        }
        let x = w.any();
        // In lanes that are not active a state keeps what it was: it is set.
        if lanes == 1 && w.below(2) == 0 {
            w.out.push(Ins::Prim { to: state, prim: ADD, args: vec![state.into(), x] });
        } else {
            let next = w.regs.add(w.ty(F));
            w.out.push(Ins::Prim { to: next, prim: ADD, args: vec![state.into(), x] });
            w.out.push(Ins::Set { to: state, value: next.into() });
        }
        for &pointer in &p[READ..READ + WRITTEN] {
            let (pointer, index, value) = (pointer.into(), i.into(), w.any());
            w.out.push(match lanes {
                1 => Ins::Store { pointer, index, value, ty: F64 },
                _ => Ins::StoreLanes { pointer, index, stride: int(1), value, ty: F64, mask: None },
            });
        }
        let (body, from, to) = (w.out, int(0), p[READ + WRITTEN].into());
        let repeat = match lanes {
            1 => Ins::For { i, from, to, body, order: Order::Given },
            _ => Ins::Lanes { i, from, to, lanes, body },
        };
        let mut code = vec![Ins::Set { to: state, value: float(0.0) }, repeat];
        if lanes > 1 {
            let (neutral, from) = (ScalarValue::F64(0.0), state.into());
            code.push(Ins::FoldLanes { to: sum, prim: ADD, neutral, from, mask: None });
        }
        (vec![sum], code)
    })
}

fn id(module: &Module) -> FunctionId {
    module.functions.ids().next().expect("a function")
}

/// What is written, and the sum.
fn by_reference(module: &Module, columns: &[Vec<f64>], n: usize) -> Vec<f64> {
    let mut memory = Memory::new(1 << 20);
    let put = |c: &Vec<f64>| {
        let words = c.iter().map(|x| Word::Scalar(ScalarValue::F64(*x))).collect();
        memory.put(F64, words)
    };
    let pointers: Vec<_> = columns.iter().map(put).collect();
    let n_word = Word::Scalar(ScalarValue::I64(n as i64));
    let args: Vec<Word> = pointers.iter().map(|p| Word::Pointer(*p)).chain([n_word]).collect();
    let options = run::Options { steps: 1 << 20, backwards: false };
    let out = run::run(module, id(module), &args, &mut memory, options).expect("no error");
    let number = |w: Word| match w {
        Word::Scalar(x) => x.as_f64(),
        Word::Pointer(_) => panic!("no pointers"),
    };
    let written = pointers[READ..].iter().flat_map(|p| (0..n as i64).map(|k| (*p, k)).collect::<Vec<_>>());
    let mut all: Vec<f64> = written.map(|(p, k)| number(memory.get(p, k).expect("it is written"))).collect();
    all.extend(out.into_iter().map(number));
    all
}

fn by_executor(executable: &pullback_cpu::Executable, columns: &[Vec<f64>], n: usize) -> Vec<f64> {
    let mut columns = columns.to_vec();
    let mut args: Vec<u64> = columns.iter_mut().map(|c| c.as_mut_ptr().expose_provenance() as u64).collect();
    args.push(n as u64);
    let f = executable.function("f").expect("it is there");
    let mut out = [0];
    // SAFETY: pointers to arrays of `n` numbers or more, and `n`.
    unsafe { executable.session().call_words(f, &args, &mut out, None) }.expect("no error");
    let written = columns[READ..].iter().flat_map(|c| c[..n].to_vec());
    written.chain([f64::from_bits(out[0])]).collect()
}

/// Numbers at which products stop and go on: factors, and for the last array divisors.
fn special(random: &mut Random, column: usize) -> f64 {
    let numbers: &[f64] = match column {
        c if c + 1 == READ => &[1.0, -1.0, 1.0, 1.0, 0.0, -0.0, f64::INFINITY, f64::NAN],
        _ => &[0.0, 0.0, -0.0, 1.0, -1.0, 2.0, -3.0, 3.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN],
    };
    numbers[(random.next() >> 33) as usize % numbers.len()]
}

fn columns(n: usize, mut number: impl FnMut(usize) -> f64) -> Vec<Vec<f64>> {
    (0..READ + WRITTEN).map(|c| (0..n).map(|_| if c < READ { number(c) } else { 0.0 }).collect()).collect()
}

/// Strong products in lanes with guards, and with masks.
fn ways() -> [Options; 2] {
    [false, true].map(|masks| {
        let text = text::Options { masks: Some(masks), ..text::Options::default() };
        Options { text, ..Options::default() }
    })
}

#[test]
fn random_lines_of_strong_products_give_the_numbers_of_the_reference_executor() {
    let count = pullback_testkit::number("COUNT", 120);
    let mut lines = 0;
    for seed in 0..count {
        let mut random = Random(pullback_testkit::number("SEED", 1) ^ (seed << 20));
        let lanes = [1, 1, 2, 4, 8][seed as usize % 5];
        let module = Module {
            lanes: if lanes == 1 { 0 } else { lanes },
            ..module([random_function(&mut random, lanes)])
        };
        let [guards, masks] = ways();
        let text = pullback_llvm::emit(&module, &guards.text).text;
        lines += u64::from(text.contains("pb_again"));
        let ways = if lanes == 1 { vec![guards] } else { vec![guards, masks] };
        for executable in ways.into_iter().flat_map(|way| executables(&module, way).take(1)) {
            for n in [1, 3, 3 * lanes + 5, 61] {
                let data = columns(n, |c| special(&mut random, c));
                let (expected, found) = (by_reference(&module, &data, n), by_executor(&executable, &data, n));
                for (k, (x, y)) in expected.iter().zip(&found).enumerate() {
                    let agree = x == y || (x.is_nan() && y.is_nan());
                    assert!(
                        agree,
                        "SEED={seed} {lanes} lanes, n = {n}, number {k}: {x} and {y}\n{module:?}\n{text}"
                    );
                }
            }
        }
    }
    assert!(libraries().is_empty() || lines * 3 > count, "{lines} of {count} functions have a line");
}

/// In lanes, what one element gives has the same bits whatever its neighbours are: a line that is computed again rounds otherwise.
#[test]
fn an_element_has_the_same_bits_whatever_its_neighbours_are() {
    let (count, n) = (pullback_testkit::number("COUNT", 40), 16);
    for seed in 0..count {
        let mut random = Random(pullback_testkit::number("SEED", 2) ^ (seed << 20));
        let lanes = [2, 4, 8][seed as usize % 3];
        let module = Module { lanes, ..module([random_function(&mut random, lanes)]) };
        for executable in ways().into_iter().flat_map(|way| executables(&module, way).take(1)) {
            let data = columns(n, |_| (random.next() >> 11) as f64 / (1u64 << 53) as f64 - 0.5);
            let before = by_executor(&executable, &data, n);
            for _ in 0..10 {
                let mut changed = data.clone();
                let at = (random.next() >> 33) as usize % n;
                (0..READ).for_each(|c| changed[c][at] = special(&mut random, c));
                let after = by_executor(&executable, &changed, n);
                for k in (0..WRITTEN * n).filter(|k| k % n != at) {
                    let (x, y) = (before[k], after[k]);
                    let same = x.to_bits() == y.to_bits() || (x.is_nan() && y.is_nan());
                    assert!(same, "SEED={seed} {lanes} lanes, element {k}: {x} and {y}");
                }
            }
        }
    }
}
