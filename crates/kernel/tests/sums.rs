//! What a block adds to an element several times is summed in a register: random blocks of kernel IR, alone and in loops that run
//! in lanes, give the same.

#[path = "common/numbers.rs"]
mod numbers;
#[path = "common/written.rs"]
mod written;

use pullback_kernel::run::{self, Memory, Word, run};
use pullback_kernel::schedule::{Model, Options, schedule};
use pullback_kernel::{Block, Function, Ins, Module, Operand, Order, Reg, Ty, print, walk};
use pullback_prim::{Op, Prim, Scalar, ScalarValue};
use written::{F64, Written, number};

/// Elements of a row.
const ROW: i64 = 6;

/// Rows of each memory.
const ROWS: i64 = 9;

/// A block that sets, adds to and loads elements of rows.
impl Written {
    fn instruction(&mut self, out: &mut Block) {
        let (pointer, index) = self.place(10);
        match self.numbers.below(16) {
            0 => out.push(Ins::Store { pointer, index, value: self.value(), ty: F64 }),
            1 => self.fill(out),
            2 | 3 => self.load((pointer, index), out),
            _ => out.push(Ins::Accumulate { pointer, index, value: self.value(), ty: F64, atomic: false }),
        }
    }
    /// The row of iteration `i`.
    fn row(&mut self, memory: Reg, i: Operand, out: &mut Block) {
        let (at, row) = (self.reg(Ty::I64), self.reg(Ty::Pointer));
        let prim = Prim::Op(Op::Mul, Scalar::I64);
        out.push(Ins::Prim { to: at, prim, args: vec![i, Operand::i64(ROW)] });
        out.push(Ins::Offset { to: row, pointer: memory.into(), index: at.into(), ty: F64, room: None });
        self.points(row, ROW, out);
    }
}

/// A function of a number below three: a loop over rows if the seed is even, else one row.
fn written(seed: u64) -> Module {
    let mut w = Written::new(seed);
    let mut body = Vec::new();
    let count = Operand::i64(ROW * ROWS);
    let memories = [w.reg(Ty::Pointer), w.reg(Ty::Pointer)];
    for (k, to) in memories.into_iter().enumerate() {
        body.push(Ins::Alloc { to, count, ty: F64 });
        body.push(Ins::Fill { pointer: to.into(), count, value: number(3 + k as i64), ty: F64 });
    }
    let i = w.reg(Ty::I64);
    let (is_loop, mut block) = (seed.is_multiple_of(2), Vec::new());
    for memory in memories {
        let row = if is_loop { i.into() } else { Operand::i64(2) };
        w.row(memory, row, &mut block);
    }
    if is_loop {
        let to = w.reg(F64);
        let prim = Prim::Convert(Scalar::I64, Scalar::F64);
        block.push(Ins::Prim { to, prim, args: vec![i.into()] });
        w.values.push(to.into());
    }
    for _ in 0..24 {
        w.instruction(&mut block);
    }
    match is_loop {
        true => {
            let (from, to) = (Operand::i64(0), Operand::i64(ROWS));
            body.push(Ins::For { i, from, to, body: block, order: Order::Any(Vec::new()) });
        }
        false => body.extend(block),
    }
    let mut results = Vec::new();
    for (memory, index) in memories.into_iter().flat_map(|m| (0..ROW * ROWS).map(move |k| (m, k))) {
        let to = w.reg(F64);
        body.push(Ins::Load { to, pointer: memory.into(), index: Operand::i64(index) });
        results.push(to);
    }
    let mut module = Module::default();
    let params = vec![w.moved];
    module.functions.push(Function { name: "f".to_string(), params, results, regs: w.regs, body });
    module
}

fn results(module: &Module, moved: i64) -> Vec<Word> {
    let f = module.functions.ids().next().expect("a function");
    let options = run::Options { steps: 100_000, backwards: false };
    let args = [Word::Scalar(ScalarValue::I64(moved))];
    run(module, f, &args, &mut Memory::new(1 << 14), options).expect("it ends")
}

/// How often a module adds to memory: by scalars, and in lanes.
fn additions(module: &Module) -> [usize; 2] {
    let mut found = [0; 2];
    for f in module.functions.iter() {
        walk(&f.body, &mut |ins| match ins {
            Ins::Accumulate { .. } => found[0] += 1,
            Ins::AccumulateLanes { .. } => found[1] += 1,
            _ => {}
        });
    }
    found
}

fn scheduled(module: &Module, without: Vec<&'static str>) -> Module {
    let mut made = module.clone();
    schedule(&mut made, &Options { without, ..Options::new(4, Model::machine(4)) });
    made
}

#[test]
fn blocks_that_add_to_elements_give_the_same() {
    let (mut before, mut after) = ([0; 2], [0; 2]);
    for seed in 0..400 {
        let module = written(seed);
        let plain = scheduled(&module, vec!["scalar-replacement", "register-promotion"]);
        let made = scheduled(&module, vec!["scalar-replacement"]);
        for k in 0..2 {
            before[k] += additions(&plain)[k];
            after[k] += additions(&made)[k];
        }
        for moved in 0..3 {
            let (expected, found) = (results(&module, moved), results(&made, moved));
            assert_eq!(found, expected, "seed {seed}, {moved}\n{}\n{}", print(&module), print(&made));
        }
    }
    println!("additions to memory, by scalars and in lanes: {before:?}, {after:?}");
    assert!(before.iter().zip(&after).all(|(b, a)| *b > 1000 && a * 4 < b * 3), "{before:?}, {after:?}");
}
