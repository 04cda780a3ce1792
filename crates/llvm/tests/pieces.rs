//! What becomes a function of its own, and which functions are one.

use pullback_base::index::{Index, IndexVec};
use pullback_base::{RuntimeErrorKind, SourceMap, Span};
use pullback_kernel::run::{self, Memory, Word, run};
use pullback_kernel::{
    Block, Function, FunctionId, Ins, Message, MessageId, Module, Operand, Order, Reg, RegInfo, Text, Ty,
};
use pullback_llvm::pieces::{Limits, Pieces, cut};
use pullback_llvm::{Options, emit, emit_several};
use pullback_prim::{Op, Prim, Scalar, ScalarValue};

const F64: Ty = Ty::Scalar(Scalar::F64);

/// A function that is being written.
#[derive(Default)]
struct Written {
    regs: IndexVec<Reg, RegInfo>,
    body: Block,
}

impl Written {
    fn reg(&mut self, ty: Ty) -> Reg {
        self.regs.push(RegInfo::new(ty, &format!("r{}", self.regs.len())))
    }
    fn alloc(&mut self, n: Reg) -> Reg {
        let to = self.reg(Ty::Pointer);
        self.body.push(Ins::Alloc { to, count: n.into(), ty: F64 });
        to
    }
    /// `for i < n { fail if i > 100; to[i] = x }`
    fn fill(&mut self, to: Reg, n: Reg, x: f64, message: usize) -> Ins {
        let (i, large) = (self.reg(Ty::I64), self.reg(Ty::BOOL));
        let args = vec![Operand::i64(100), i.into()];
        let body = vec![
            Ins::Prim { to: large, prim: Prim::Op(Op::Lt, Scalar::I64), args },
            Ins::Fail { condition: large.into(), message: MessageId::new(message), values: vec![i.into()] },
            Ins::Store {
                pointer: to.into(),
                index: i.into(),
                value: Operand::Const(ScalarValue::F64(x)),
                ty: F64,
            },
        ];
        Ins::For { i, from: Operand::i64(0), to: n.into(), body, order: Order::Given }
    }
    fn load(&mut self, from: Reg, index: i64) -> Reg {
        let to = self.reg(F64);
        self.body.push(Ins::Load { to, pointer: from.into(), index: Operand::i64(index) });
        to
    }
    fn module(self, params: Vec<Reg>, results: Vec<Reg>) -> Module {
        let mut module = Module::default();
        for text in ["first", "second"] {
            let text = Text::Plain(text.to_string());
            module.messages.push(Message { kind: RuntimeErrorKind::Limit, text, span: None });
        }
        let name = "f".to_string();
        module.functions.push(Function { name, params, results, regs: self.regs, body: self.body });
        module
    }
}

/// Two arrays filled with these numbers, failing with these messages; gives an element of each.
fn filled(xs: [f64; 2], messages: [usize; 2]) -> Module {
    let mut w = Written::default();
    let n = w.reg(Ty::I64);
    let arrays = [w.alloc(n), w.alloc(n)];
    for ((to, x), message) in arrays.into_iter().zip(xs).zip(messages) {
        let fill = w.fill(to, n, x, message);
        w.body.push(fill);
    }
    let results = arrays.map(|a| w.load(a, 2));
    w.module(vec![n], results.to_vec())
}

fn results(module: &Module, args: &[i64]) -> Result<Vec<Word>, String> {
    let args: Vec<Word> = args.iter().map(|n| Word::Scalar(ScalarValue::I64(*n))).collect();
    let options = run::Options { steps: 100_000, backwards: false };
    run(module, FunctionId::new(0), &args, &mut Memory::new(10_000), options).map_err(|e| e.to_string())
}

/// In as many pieces as possible, which do the same.
fn checked(module: &Module, args: &[i64]) -> Pieces {
    checked_with(&Limits::SMALL, module, args)
}

fn checked_with(limits: &Limits, module: &Module, args: &[i64]) -> Pieces {
    let pieces = cut(module, limits);
    assert_eq!(results(module, args), results(&pieces.module, args));
    pieces
}

fn count(module: &Module) -> usize {
    let pieces = checked(module, &[5]);
    checked(module, &[200]);
    pieces.module.functions.len() - 1
}

#[test]
fn loops_that_differ_in_names_only_are_one_function() {
    assert_eq!(count(&filled([1.0, 1.0], [0, 0])), 1);
}

#[test]
fn what_differs_in_a_constant_or_a_message_is_not() {
    assert_eq!(count(&filled([1.0, 2.0], [0, 0])), 2);
    assert_eq!(count(&filled([0.0, -0.0], [0, 0])), 2);
    assert_eq!(count(&filled([1.0, 1.0], [0, 1])), 2);
}

#[test]
fn loops_that_ask_for_memory_in_different_places_are_not() {
    let with_places = |places: [Option<usize>; 2]| {
        let mut sources = SourceMap::new();
        let file = sources.add("f.fut", "iota n, iota n");
        let mut w = Written::default();
        let n = w.reg(Ty::I64);
        let mut asked = Vec::new();
        for _ in 0..2 {
            let (i, to) = (w.reg(Ty::I64), w.reg(Ty::Pointer));
            let alloc = Ins::Alloc { to, count: n.into(), ty: F64 };
            let body = vec![alloc.clone(), alloc];
            asked.push(to);
            w.body.push(Ins::For { i, from: Operand::i64(0), to: n.into(), body, order: Order::Given });
        }
        let mut module = w.module(vec![n], vec![n]);
        for (r, at) in asked.into_iter().zip(places) {
            let place = at.map(|at| Span::new(file, at, at + 6));
            module.functions[FunctionId::new(0)].regs[r].facts.place = place;
        }
        checked(&module, &[3])
    };
    let number = |places| with_places(places).module.functions.len() - 1;
    assert_eq!([number([None, None]), number([Some(0), Some(0)])], [1, 1]);
    assert_eq!([number([Some(0), Some(8)]), number([Some(0), None])], [2, 2]);
    // The place is found again.
    let pieces = with_places([Some(0), Some(8)]);
    let is_there =
        |(f, r): &&(FunctionId, Reg)| pieces.module.facts(*f, *r).is_some_and(|facts| facts.place.is_some());
    let found = pieces.places.values().filter(is_there);
    assert_eq!(found.count(), 2);
}

#[test]
fn what_one_branch_sets_another_one_reads() {
    // if n < 3 { x = n + 1 .. }; for i < n { y = y + i .. }; if n < 3 { z = x * 2 .. }
    let mut w = Written::default();
    let (n, small) = (w.reg(Ty::I64), w.reg(Ty::BOOL));
    let [x, y, z, i] = [(); 4].map(|()| w.reg(Ty::I64));
    let op = |to, op, a: Operand, b: i64| Ins::Prim {
        to,
        prim: Prim::Op(op, Scalar::I64),
        args: vec![a, Operand::i64(b)],
    };
    let set = |to: Reg, value: i64| Ins::Set { to, value: Operand::i64(value) };
    w.body = vec![
        op(small, Op::Lt, n.into(), 3),
        set(y, 0),
        set(z, 7),
        Ins::If {
            condition: small.into(),
            then: vec![op(x, Op::Add, n.into(), 1), op(x, Op::Mul, x.into(), 5)],
            otherwise: Vec::new(),
        },
        Ins::For {
            i,
            from: Operand::i64(0),
            to: n.into(),
            body: vec![op(y, Op::Add, y.into(), 3), op(y, Op::Mul, y.into(), 2)],
            order: Order::Given,
        },
        Ins::If {
            condition: small.into(),
            then: vec![op(z, Op::Mul, x.into(), 2), op(z, Op::Add, z.into(), 1)],
            otherwise: Vec::new(),
        },
    ];
    let module = w.module(vec![n], vec![y, z]);
    for n in [0, 1, 2, 3, 5] {
        // Blocks of any length stay whole: branches and loops are cut out only.
        let pieces = checked_with(&Limits { longest: usize::MAX, ..Limits::SMALL }, &module, &[n]);
        assert_eq!(pieces.module.functions.len(), 4);
        // The straight code around them in functions, too.
        assert!(checked(&module, &[n]).module.functions.len() > 4);
    }
}

/// Calls are made once outside of loops and again and again inside, so less is worth one outside.
#[test]
fn small_loops_are_pieces_outside_of_loops() {
    let mut w = Written::default();
    let (n, small) = (w.reg(Ty::I64), w.reg(Ty::BOOL));
    let to = w.alloc(n);
    let fills = [1.0, 2.0, 3.0, 4.0, 5.0].map(|x| w.fill(to, n, x, 0));
    let [alone, first, second, third, fourth] = fills;
    let (i, args) = (w.reg(Ty::I64), vec![n.into(), Operand::i64(100)]);
    w.body.push(Ins::Prim { to: small, prim: Prim::Op(Op::Lt, Scalar::I64), args });
    let inside = vec![first, second];
    w.body.push(alone);
    w.body.push(Ins::For { i, from: Operand::i64(0), to: n.into(), body: inside, order: Order::Given });
    let then = vec![third, fourth];
    w.body.push(Ins::If { condition: small.into(), then, otherwise: Vec::new() });
    let last = w.load(to, 2);
    let module = w.module(vec![n], vec![last]);
    let number = |least_inside: usize| {
        let pieces = cut(&module, &Limits { least_inside, most: 5, ..Limits::SMALL });
        for n in [5, 99, 200] {
            assert_eq!(results(&module, &[n]), results(&pieces.module, &[n]));
        }
        pieces.module.functions.len() - 1
    };
    // All five loops, the one around two of them, and the branch.
    assert_eq!(number(2), 7);
    // Without the two inside of a loop.
    assert_eq!(number(100), 5);
}

/// A piece that leaves less than the least piece behind would be one more call, and no smaller.
#[test]
fn what_is_nearly_the_whole_function_is_no_piece() {
    // An allocation, a loop of 4 instructions, and a load.
    let mut w = Written::default();
    let n = w.reg(Ty::I64);
    let to = w.alloc(n);
    let fill = w.fill(to, n, 1.0, 0);
    w.body.push(fill);
    let last = w.load(to, 2);
    let module = w.module(vec![n], vec![last]);
    let number = |least: usize| {
        let limits = Limits { least, longest: usize::MAX, ..Limits::SMALL };
        checked_with(&limits, &module, &[5]).module.functions.len() - 1
    };
    assert_eq!([number(2), number(3)], [1, 0]);
}

#[test]
fn every_text_says_what_it_calls() {
    let module = filled([1.0, 2.0], [0, 1]);
    let options = Options { pieces: Limits { text: 1, ..Limits::SMALL }, ..Options::default() };
    let texts = emit_several(&module, &options).texts;
    assert_eq!(texts.len(), 3);
    for text in &texts {
        for (k, _) in text.match_indices("call i32 @\"fn.") {
            let name = text[k + 9..].split('(').next().unwrap_or("");
            let is_there = ["define i32 ", "define internal i32 ", "declare i32 "]
                .map(|d| text.contains(&format!("{d}{name}(")));
            assert_eq!(is_there.iter().filter(|there| **there).count(), 1, "{name}\n{text}");
        }
    }
    // One text has them all.
    let whole = emit(&module, &options).text;
    let count = |what: &str| whole.matches(what).count();
    assert_eq!((count("define internal i32 @\"fn."), count("declare i32 @\"fn.")), (3, 0), "{whole}");
}
