//! Rows that a loop fills, and that are read often after that, are filled where lanes lie side by side. Programs where that may be
//! and where it may not, and their values, in every bit: those of the interpreter, or of the same code without lanes.

use crate::common;

use pullback_base::index::{Index, IndexVec};
use pullback_core::Value;
use pullback_driver::{Session, Settings};
use pullback_interp::core::{Compiled, Options};
use pullback_kernel::run::{self, Memory, Word, run};
use pullback_kernel::schedule::{self, Model, schedule};
use pullback_kernel::{
    Block, Function, FunctionId, Ins, Module, Operand, Order, Reg, RegInfo, Ty, lower, print,
};
use pullback_prim::{Op, Prim, Scalar, ScalarValue};

/// A row of each of `xs`, made by `FILL` from `r`, number `i`, and what is read of it by `READ`.
const PROGRAM: &str = "
entry main [n] [m] (xs: [n][m]f64) =
  unzip (map2 (\\r i -> let d = FILL in (d, READ)) xs (iota n))
";
/// Of all pairs.
const PAIRS: &str = "loop s = 0 for j < m do loop s for l < m do s * 0.5 + d[j] * d[l]";

/// Whether rows are filled near, in two lanes and in eight. Values are compared for some sizes.
fn is_filled(fill: &str, read: &str) -> bool {
    let text = PROGRAM.replace("FILL", fill).replace("READ", read);
    let session = Session::compile("filled.fut", &text, Settings::default());
    let session = session.unwrap_or_else(|e| panic!("{}", e.render()));
    let entry = session.entry(None).expect("an entry");
    let ready = session.primal(&entry).expect("no derivatives");
    let (program, fun) = (ready.program.clone(), ready.fun);
    let compiled = Compiled::new(&program);
    for (n, m) in [(1, 1), (7, 3), (8, 5), (17, 4), (3, 40), (2, 0)] {
        let xs: Vec<f64> = (0..n * m).map(|i| ((i * 13) % 29) as f64 * 0.05 - 0.3).collect();
        let args = [Value::f64_array(&[n, m], &xs)];
        let expected = compiled.run(fun, &args, &Options::default()).expect("it runs").results;
        for lanes in [2, 8] {
            let module = (program.clone(), fun);
            let found = common::results_with(&module, &args, 1 << 20, lanes, Model::machine(8));
            assert_eq!(found, expected, "{n} rows of {m}, {lanes} lanes\n{text}");
        }
    }
    let code = |lanes, without: &[&'static str]| {
        let (mut module, _) = lower(&program, fun).expect("native");
        let options = schedule::Options::new(lanes, Model::machine(8));
        schedule(&mut module, &schedule::Options { without: without.to_vec(), ..options });
        print(&module)
    };
    let changed = [2, 8].map(|lanes| code(lanes, &[]) != code(lanes, &["packing"]));
    assert_eq!(changed[0], changed[1], "{text}");
    changed[0]
}

#[test]
fn rows_that_are_filled_and_read_often() {
    let fills = [
        "map f64.sin r",
        "map (\\x -> x * f64.i64 i) r",
        "tabulate m (\\j -> r[j] * r[0])",
        "scan (+) 0 r",
        "map (\\x -> loop s = x for j < 5 do s * s) r",
        // Some lanes have no element to read.
        "map (\\x -> if i < 3 then x else f64.exp x) r",
    ];
    for fill in fills {
        assert!(is_filled(fill, PAIRS), "{fill}");
    }
    let reads = [
        "loop s = 0 for j < m do loop s for l < j do s * 0.5 + d[j - l]",
        "loop s = 0 for j < m do loop s for l < i do s * 0.5 + d[j] * d[(j + l) % m]",
        "if i % 2 == 0 then loop s = 0 for j < m do loop s for l < m do s * 0.5 + d[j] * d[l] else 1",
    ];
    for read in reads {
        assert!(is_filled("map f64.sin r", read), "{read}");
    }
}

#[test]
fn rows_that_are_read_seldom_or_filled_otherwise() {
    for read in ["0", "if m > 2 then d[1] else 0", "loop s = 0 for j < m do s * 0.5 + d[j]"] {
        assert!(!is_filled("map f64.sin r", read), "{read}");
    }
    let fills = [
        // By more than one loop, and by none.
        "loop d = map f64.sin r for j < m do if j == 1 then d with [j] = 1 else d",
        "replicate m (f64.i64 i)",
        "copy r",
        // Element after element of the same array.
        "loop d = replicate m 0 for j < m do d with [j] = r[j] + d[(j + 1) % m]",
        // In one arm only.
        "if i % 3 == 1 then map f64.sin r else replicate m 1",
        // Not all, and in another order.
        "let d = replicate m 2 in loop d for j < m - 1 do d with [j] = r[j]",
        "scatter (replicate m 1) (map (\\j -> m - 1 - j) (iota m)) r",
    ];
    for fill in fills {
        let pairs = PAIRS.replace('m', "(length d)");
        assert!(!is_filled(fill, &pairs), "{fill}");
    }
}

const FLOAT: Ty = Ty::Scalar(Scalar::F64);

/// Code by hand, for what no program is lowered to: rows of `out` are filled from rows of `xs`, and then read in two loops.
struct Code {
    regs: IndexVec<Reg, RegInfo>,
    m: Operand,
    /// Two pointers to the row of an iteration: that to which elements are stored, and another one.
    row: Operand,
    other: Operand,
    /// The sum of what was loaded.
    sum: Reg,
}

impl Code {
    fn reg(&mut self, ty: Ty) -> Reg {
        self.regs.push(RegInfo::new(ty, "r"))
    }
    fn op(&mut self, op: Op, s: Scalar, args: [Operand; 2], out: &mut Block) -> Operand {
        let to = self.reg(Ty::Scalar(s));
        out.push(Ins::Prim { to, prim: Prim::Op(op, s), args: args.to_vec() });
        to.into()
    }
    /// The index from the end of the row.
    fn turned(&mut self, index: Operand, out: &mut Block) -> Operand {
        let last = self.op(Op::Sub, Scalar::I64, [self.m, Operand::i64(1)], out);
        self.op(Op::Sub, Scalar::I64, [last, index], out)
    }
    fn load(&mut self, pointer: Operand, index: Operand, out: &mut Block) -> Operand {
        let to = self.reg(FLOAT);
        out.push(Ins::Load { to, pointer, index });
        to.into()
    }
    /// Adds an element to half of the sum.
    fn add(&mut self, pointer: Operand, index: Operand, out: &mut Block) {
        let x = self.load(pointer, index, out);
        let half = Operand::Const(ScalarValue::F64(0.5));
        let halved = self.op(Op::Mul, Scalar::F64, [self.sum.into(), half], out);
        let value = self.op(Op::Add, Scalar::F64, [halved, x], out);
        out.push(Ins::Set { to: self.sum, value });
    }
    fn each(&mut self, from: i64, to: Operand, f: impl FnOnce(&mut Self, Operand, &mut Block)) -> Ins {
        let (i, mut body) = (self.reg(Ty::I64), Vec::new());
        f(self, i.into(), &mut body);
        Ins::For { i, from: Operand::i64(from), to, body, order: Order::Given }
    }
    /// Does something if the number is 0 or 1 (or less).
    fn if_at_most_one(&mut self, x: Operand, ins: Ins, out: &mut Block) {
        let to = self.reg(Ty::BOOL);
        out.push(Ins::Prim { to, prim: Prim::Op(Op::Le, Scalar::I64), args: vec![x, Operand::i64(1)] });
        out.push(Ins::If { condition: to.into(), then: vec![ins], otherwise: Vec::new() });
    }
    fn store(&self, index: Operand, value: Operand) -> Ins {
        Ins::Store { pointer: self.row, index, value, ty: FLOAT }
    }
}

/// How a row is filled.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fill {
    Plain,
    ReadAfter,
    ReadBefore,
    TurnedAfter,
    OtherBefore,
    OtherAfter,
    OtherMemory,
    ThenTheFirst,
    ThenByOther,
    FilledBefore,
    NotTheLast,
    NotTheFirst,
    SomeElements,
    FromTheEnd,
    InOneArm,
    Twice,
}

/// `f(xs, out, sums, more, n, m)`, all loops inside of the one over rows in the given order.
fn by_hand(fill: Fill) -> Module {
    let (zero, one) = (Operand::i64(0), Operand::i64(1));
    let any = Operand::Null;
    let mut c = Code { regs: IndexVec::new(), m: any, row: any, other: any, sum: Reg::new(0) };
    let params: Vec<Reg> = (0..4).map(|_| c.reg(Ty::Pointer)).collect();
    let (n, m) = (c.reg(Ty::I64), c.reg(Ty::I64));
    let [xs, out, sums, more] = params[..] else { unreachable!("four") };
    c.m = m.into();
    c.sum = c.reg(FLOAT);
    let i = c.reg(Ty::I64);
    let mut body = Vec::new();
    let start = c.op(Op::Mul, Scalar::I64, [i.into(), c.m], &mut body);
    let (from, row, other) = (c.reg(Ty::Pointer), c.reg(Ty::Pointer), c.reg(Ty::Pointer));
    let part =
        |to, pointer: Reg, index, room| Ins::Offset { to, pointer: pointer.into(), index, ty: FLOAT, room };
    body.push(part(from, xs, start, None));
    body.push(part(row, out, start, Some(c.m)));
    let sum = Operand::Const(ScalarValue::F64(0.0));
    body.push(Ins::Set { to: c.sum, value: sum });
    // The same row, from its second element on.
    let next = c.op(Op::Add, Scalar::I64, [start, one], &mut body);
    body.push(part(other, out, next, None));
    (c.row, c.other) = (row.into(), other.into());
    if fill == Fill::FilledBefore {
        body.push(Ins::Fill { pointer: c.row, count: c.m, value: sum, ty: FLOAT });
    }
    let less = c.op(Op::Sub, Scalar::I64, [c.m, one], &mut body);
    let end = if fill == Fill::NotTheLast { less } else { c.m };
    let filling = |c: &mut Code, j: Operand, out: &mut Block| {
        let x = c.load(from.into(), j, out);
        let y = c.op(Op::Mul, Scalar::F64, [x, x], out);
        let before = c.op(Op::Sub, Scalar::I64, [j, one], out);
        match fill {
            Fill::ReadBefore => c.add(c.row, j, out),
            Fill::OtherBefore => c.add(c.other, before, out),
            Fill::OtherMemory => c.add(more.into(), j, out),
            _ => {}
        }
        let at = if fill == Fill::FromTheEnd { c.turned(j, out) } else { j };
        let store = c.store(at, y);
        match fill {
            Fill::SomeElements => c.if_at_most_one(j, store, out),
            _ => out.push(store),
        }
        match fill {
            Fill::ReadAfter => c.add(c.row, j, out),
            Fill::TurnedAfter => {
                let at = c.turned(j, out);
                c.add(c.row, at, out);
            }
            Fill::OtherAfter => c.add(c.other, before, out),
            _ => {}
        }
    };
    for _ in 0..if fill == Fill::Twice { 2 } else { 1 } {
        let filled = c.each(i64::from(fill == Fill::NotTheFirst), end, filling);
        match fill {
            Fill::InOneArm => c.if_at_most_one(c.m, filled, &mut body),
            _ => body.push(filled),
        }
    }
    match fill {
        Fill::ThenTheFirst => body.push(c.store(zero, sum)),
        Fill::ThenByOther => {
            body.push(Ins::Store { pointer: c.other, index: Operand::i64(-1), value: sum, ty: FLOAT })
        }
        _ => {}
    }
    let pairs = c.each(0, c.m, |c, j, out| {
        let inner = c.each(0, c.m, |c, l, out| {
            c.add(c.row, j, out);
            c.add(c.row, l, out);
        });
        out.push(inner);
    });
    body.push(pairs);
    body.push(Ins::Store { pointer: sums.into(), index: i.into(), value: c.sum.into(), ty: FLOAT });
    let order = Order::Any(Vec::new());
    let body = vec![Ins::For { i, from: zero, to: n.into(), body, order }];
    let mut module = Module::default();
    let params = params.into_iter().chain([n, m]).collect();
    let (name, results, regs) = ("f".to_string(), Vec::new(), c.regs);
    module.functions.push(Function { name, params, results, regs, body });
    module
}

/// Whether rows are filled near; what is in memory afterwards is compared with code without lanes.
fn by_hand_is_filled(fill: Fill) -> bool {
    let module = by_hand(fill);
    let in_lanes = |lanes, without: &[&'static str]| {
        let mut module = module.clone();
        let model = Model { block: 0.0, lane: 0.0, apart: 0.01, ..Model::machine(8) };
        let options = schedule::Options::new(lanes, model);
        schedule(&mut module, &schedule::Options { without: without.to_vec(), ..options });
        assert!(module.functions.iter().any(|f| matches!(f.body.last(), Some(Ins::Lanes { .. }))));
        module
    };
    let memory_after = |module: &Module, n: i64, m: i64| {
        let mut memory = Memory::new(1 << 16);
        let mut floats = |count: i64, k: i64| {
            let values = (0..count).map(|i| Word::Scalar(ScalarValue::F64(((i * k + 3) % 17) as f64 * 0.25)));
            memory.put(FLOAT, values.collect())
        };
        let pointers = [(n * m, 5), (n * m + 1, 7), (n, 2), (m, 11)].map(|(count, k)| floats(count, k));
        let words = pointers.into_iter().map(Word::Pointer);
        let sizes = [n, m].map(|n| Word::Scalar(ScalarValue::I64(n)));
        let words: Vec<Word> = words.chain(sizes).collect();
        let options = run::Options { steps: 1_000_000, backwards: false };
        run(module, FunctionId::new(0), &words, &mut memory, options).expect("it runs");
        let counts = [n * m, n * m + 1, n];
        let held = pointers.into_iter().zip(counts);
        held.flat_map(|(p, count)| (0..count).map(|i| memory.get(p, i)).collect::<Vec<_>>())
            .collect::<Vec<_>>()
    };
    for (n, m) in [(1, 1), (7, 3), (8, 5), (17, 4), (3, 20), (0, 2), (2, 0)] {
        let expected = memory_after(&module, n, m);
        for lanes in [2, 8] {
            let code = in_lanes(lanes, &[]);
            assert_eq!(memory_after(&code, n, m), expected, "{fill:?}, {n} rows of {m}\n{}", print(&code));
        }
    }
    print(&in_lanes(8, &[])) != print(&in_lanes(8, &["packing"]))
}

/// What a loop reads of memory while it fills a row of it, what else is written there, and which elements it stores.
#[test]
fn rows_are_filled_near_only_if_nothing_else_is_seen_of_them_meanwhile() {
    for fill in [Fill::Plain, Fill::ReadAfter, Fill::OtherMemory] {
        assert!(by_hand_is_filled(fill), "{fill:?}");
    }
    let others = [
        Fill::ReadBefore,
        Fill::TurnedAfter,
        Fill::OtherBefore,
        Fill::OtherAfter,
        Fill::ThenTheFirst,
        Fill::ThenByOther,
        Fill::FilledBefore,
        Fill::NotTheLast,
        Fill::NotTheFirst,
        Fill::SomeElements,
        Fill::FromTheEnd,
        Fill::InOneArm,
        Fill::Twice,
    ];
    for fill in others {
        assert!(!by_hand_is_filled(fill), "{fill:?}");
    }
}
