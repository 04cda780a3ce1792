//! What a block loads twice is loaded once, where nothing was written between: random blocks of kernel IR give the same.

#[path = "common/numbers.rs"]
mod numbers;
#[path = "common/written.rs"]
mod written;

use pullback_kernel::run::{self, Memory, Word, run};
use pullback_kernel::schedule::{Model, Options, schedule};
use pullback_kernel::{Block, Function, FunctionId, Ins, Module, Operand, Ty, print, walk};
use pullback_prim::ScalarValue;
use written::{F64, Written, number};

/// Elements of each memory.
const ELEMENTS: i64 = 8;

/// A block that adds to two memories, and loads all of them at its end.
impl Written {
    fn instruction(&mut self, inside: bool, out: &mut Block) {
        let (pointer, index) = self.place(8);
        match self.numbers.below(12) {
            0 => out.push(Ins::Store { pointer, index, value: self.value(), ty: F64 }),
            1 => self.fill(out),
            2..=5 => self.load((pointer, index), out),
            6 if !inside => {
                let mut then = Vec::new();
                let known = self.values.len();
                self.instruction(true, &mut then);
                self.values.truncate(known);
                let condition = Operand::bool(self.numbers.below(2) == 0);
                out.push(Ins::If { condition, then, otherwise: Vec::new() });
            }
            _ => out.push(Ins::Accumulate { pointer, index, value: self.value(), ty: F64, atomic: false }),
        }
    }
}

/// A function of a number below three.
fn written(seed: u64) -> Module {
    let mut w = Written::new(seed);
    let mut body = Vec::new();
    for _ in 0..2 {
        let to = w.reg(Ty::Pointer);
        let (count, ty) = (Operand::i64(ELEMENTS), F64);
        body.push(Ins::Alloc { to, count, ty });
        body.push(Ins::Fill { pointer: to.into(), count, value: number(3), ty });
        w.points(to, ELEMENTS, &mut body);
    }
    for _ in 0..24 {
        w.instruction(false, &mut body);
    }
    let mut results = Vec::new();
    for (pointer, index) in [0, 2].into_iter().flat_map(|k| (0..ELEMENTS).map(move |i| (k, i))) {
        let to = w.reg(F64);
        let (pointer, index) = (w.pointers[pointer].0.into(), Operand::i64(index));
        body.push(Ins::Load { to, pointer, index });
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
    run(module, f, &args, &mut Memory::new(1 << 12), options).expect("it ends")
}

fn loads(module: &Module, f: FunctionId) -> usize {
    let mut found = 0;
    walk(&module.functions[f].body, &mut |ins| found += usize::from(matches!(ins, Ins::Load { .. })));
    found
}

#[test]
fn blocks_that_load_and_write_give_the_same() {
    let (mut before, mut after) = (0, 0);
    for seed in 0..400 {
        let module = written(seed);
        let f = module.functions.ids().next().expect("a function");
        let mut made = module.clone();
        let options = Options { without: vec!["scalar-replacement"], ..Options::new(2, Model::machine(2)) };
        schedule(&mut made, &options);
        before += loads(&module, f);
        after += loads(&made, f);
        for moved in 0..3 {
            let (expected, found) = (results(&module, moved), results(&made, moved));
            assert_eq!(found, expected, "seed {seed}, {moved}\n{}\n{}", print(&module), print(&made));
        }
    }
    println!("loads: {before}, {after}");
    // The last ones, of all elements, load some of them by two pointers, others after they were looked at.
    assert!(after * 20 < before * 19, "loads: {before}, {after}");
}
