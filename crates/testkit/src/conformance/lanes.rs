//! Lanes: random functions give the memory, the results and the errors of the reference executor, bit by bit, at all numbers
//! of iterations around the number of lanes.
//!
//! Sums of one element by several lanes may be done in another order: their operands are small whole numbers, so that every
//! order is exact.

use super::*;
use pullback_base::RuntimeErrorKind;
use pullback_kernel::run::{self, Memory, Word};
use pullback_kernel::{Message, MessageId, Order, Text};

/// The arrays: types of their elements, in the order of the parameters. The last parameter is the number of iterations.
struct Arrays {
    /// Elements of each.
    size: i64,
    /// Of any type; loaded and stored.
    any: Scalar,
    /// Small whole numbers; loaded.
    small: Scalar,
    /// Small whole numbers; added to.
    sums: Scalar,
}

impl Arrays {
    /// Two arrays of any type, indices, small numbers, sums, truth values, floats.
    fn types(&self) -> [Scalar; 7] {
        [self.any, self.any, Scalar::I64, self.small, self.sums, Scalar::Bool, Scalar::F64]
    }
    fn contents(&self, random: &mut Random) -> Vec<Vec<ScalarValue>> {
        let mut one = |column: usize, s: Scalar| match (column, s) {
            (2, _) => s.from_i64((random.next() % self.size as u64) as i64),
            (3 | 4, _) => s.from_i64((random.next() % 16) as i64),
            (_, Scalar::F64) if random.next().is_multiple_of(16) => ScalarValue::F64(f64::NAN),
            (_, Scalar::F64 | Scalar::F32) => {
                s.from_f64(((random.next() >> 11) as f64 / (1u64 << 53) as f64 - 0.5) * 1e3)
            }
            (_, Scalar::Bool) => ScalarValue::Bool(random.next().is_multiple_of(2)),
            _ => s.from_i64(random.next() as i64),
        };
        self.types()
            .iter()
            .enumerate()
            .map(|(column, s)| (0..self.size).map(|_| one(column, *s)).collect())
            .collect()
    }
}

/// Writes a function.
struct Writer<'a> {
    random: &'a mut Random,
    arrays: Arrays,
    regs: &'a mut Regs,
    params: Vec<Reg>,
    /// The number of iterations.
    n: Operand,
    /// The counter of the loop.
    i: Reg,
    /// How many lanes registers of lanes have.
    width: usize,
    /// Registers of lanes that are set.
    lanes: Vec<(Reg, Scalar)>,
    /// Registers of scalars that are set.
    scalars: Vec<(Reg, Scalar)>,
    /// Registers of lanes that gather something over all blocks.
    states: Vec<(Reg, Scalar)>,
    out: Block,
}

/// Primitives that are exact.
fn is_exact(prim: Prim) -> bool {
    match prim {
        Prim::Convert(..) => true,
        Prim::Op(op, s) => {
            let exact = [Op::Neg, Op::Abs, Op::Sgn, Op::Sqrt, Op::Floor, Op::Ceil, Op::Round, Op::Trunc];
            let more = [
                Op::IsNan,
                Op::IsInf,
                Op::Add,
                Op::Sub,
                Op::Mul,
                Op::StrongMul,
                Op::MutualMul,
                Op::Div,
                Op::Min,
                Op::Max,
            ];
            let rest = [Op::Eq, Op::Ne, Op::Lt, Op::Le, Op::Select];
            !s.is_float() || exact.contains(&op) || more.contains(&op) || rest.contains(&op)
        }
    }
}

impl Writer<'_> {
    fn below(&mut self, n: usize) -> usize {
        (self.random.next() >> 33) as usize % n
    }
    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
    fn new_lanes(&mut self, s: Scalar) -> Reg {
        let r = self.regs.add(Ty::Lanes(s, self.width));
        self.lanes.push((r, s));
        r
    }
    fn constant(&mut self, s: Scalar) -> Operand {
        let x = (self.random.next() % 9) as i64 - 4;
        Operand::Const(s.from_i64(x))
    }
    /// An operand of the type: mostly lanes.
    fn operand(&mut self, s: Scalar) -> Operand {
        let lanes: Vec<Reg> = self.lanes.iter().filter(|(_, t)| *t == s).map(|(r, _)| *r).collect();
        let scalars: Vec<Reg> = self.scalars.iter().filter(|(_, t)| *t == s).map(|(r, _)| *r).collect();
        match self.below(8) {
            0 => self.constant(s),
            1 if !scalars.is_empty() => self.pick(&scalars).into(),
            _ if !lanes.is_empty() => self.pick(&lanes).into(),
            _ => self.constant(s),
        }
    }
    fn prim_lanes(&mut self, prim: Prim, args: Vec<Operand>) -> Reg {
        let to = self.new_lanes(prim.result());
        self.out.push(Ins::Prim { to, prim, args });
        to
    }
    fn int(&mut self, op: Op, x: impl Into<Operand>, y: impl Into<Operand>) -> Reg {
        let to = self.regs.add(I64);
        self.out.push(of_ints(to, op, x, y));
        to
    }
    fn mask(&mut self) -> Option<Operand> {
        match self.below(5) {
            0 => Some(Operand::bool(self.random.next().is_multiple_of(2))),
            1 | 2 => Some(self.operand(Scalar::Bool)),
            _ => None,
        }
    }
    /// The index of the first lane and the stride: inside the arrays at every iteration.
    fn place(&mut self) -> (Operand, Operand) {
        let i = self.i;
        match self.below(8) {
            0 | 1 => (i.into(), int(1)),
            2 => (self.int(Op::Add, i, int(3)).into(), int(1)),
            3 => {
                let last = self.int(Op::Sub, self.n, int(1));
                (self.int(Op::Sub, last, i).into(), int(-1))
            }
            4 => (self.int(Op::Mul, i, int(3)).into(), int(3)),
            5 => (int(7), int(0)),
            6 => {
                // A stride that is no constant.
                let two = self.int(Op::Add, int(2), int(0));
                (self.int(Op::Mul, i, two).into(), two.into())
            }
            _ => {
                let index = self.indices();
                let stride = self.below(2) as i64;
                (index.into(), int(stride))
            }
        }
    }
    /// Lanes of indices; with the number of the lane still inside.
    fn indices(&mut self) -> Reg {
        let all = self.new_lanes(Scalar::I64);
        let (pointer, index) = (self.params[2].into(), self.i.into());
        self.out.push(Ins::LoadLanes { to: all, pointer, index, stride: int(1), mask: None });
        let few = self.pick(&[4, 64, 180]);
        self.prim_lanes(Prim::Op(Op::Mod, Scalar::I64), vec![all.into(), int(few)])
    }
    fn load(&mut self) {
        let column = self.pick(&[0, 1, 2, 3, 5, 6]);
        let s = self.arrays.types()[column];
        let (index, stride) = self.place();
        let mask = self.mask();
        let to = self.regs.add(Ty::Lanes(s, self.width));
        self.out.push(Ins::LoadLanes { to, pointer: self.params[column].into(), index, stride, mask });
        let Some(mask) = mask else { return self.lanes.push((to, s)) };
        // What a lane holds where the mask does not is not specified.
        let otherwise = self.operand(s);
        self.prim_lanes(Prim::Op(Op::Select, s), vec![mask, to.into(), otherwise]);
    }
    fn store(&mut self) {
        let column = self.pick(&[0, 1, 5, 6]);
        let s = self.arrays.types()[column];
        let (index, stride) = self.place();
        let (value, mask) = (self.operand(s), self.mask());
        let pointer = self.params[column].into();
        self.out.push(Ins::StoreLanes { pointer, index, stride, value, ty: Ty::Scalar(s), mask });
    }
    fn accumulate(&mut self) {
        let (small, s) = (self.arrays.small, self.arrays.sums);
        let given = self.new_lanes(small);
        let (from, at) = (self.params[3].into(), self.i.into());
        self.out.push(Ins::LoadLanes { to: given, pointer: from, index: at, stride: int(1), mask: None });
        let value = self.prim_lanes(Prim::Convert(small, s), vec![given.into()]);
        let (index, stride) = self.place();
        let mask = self.mask();
        let (pointer, ty) = (self.params[4].into(), Ty::Scalar(s));
        self.out.push(Ins::AccumulateLanes {
            pointer,
            index,
            stride,
            value: value.into(),
            ty,
            mask,
            atomic: false,
        });
    }
    fn primitive(&mut self) {
        let types = [self.arrays.any, Scalar::F64, Scalar::I64, Scalar::Bool, self.arrays.small];
        let s = self.pick(&types);
        let prim = if self.one_in(4) {
            Prim::Convert(s, self.pick(&types))
        } else {
            let all: Vec<Prim> = Op::ALL.iter().map(|op| Prim::Op(*op, s)).collect();
            let all: Vec<Prim> = all.into_iter().filter(|p| p.is_valid() && is_exact(*p)).collect();
            self.pick(&all)
        };
        let mut args: Vec<Operand> = prim.params().into_iter().map(|s| self.operand(s)).collect();
        if let (Prim::Op(op, s), [_, y]) = (prim, args.as_slice())
            && s.is_integer()
            && matches!(op, Op::Div | Op::Mod | Op::Quot | Op::Rem | Op::Pow)
        {
            // Divisors are odd, exponents at most 7.
            let (with, by) = if op == Op::Pow { (Op::And, 7) } else { (Op::Or, 1) };
            let y = self.prim_lanes(Prim::Op(with, s), vec![*y, Operand::Const(s.from_i64(by))]);
            args[1] = y.into();
        }
        self.prim_lanes(prim, args);
    }
    /// A primitive for folds, with its neutral element.
    fn fold(&mut self, s: Scalar) -> (Prim, ScalarValue) {
        let (op, neutral) = match s {
            Scalar::Bool => self.pick(&[(Op::And, 1), (Op::Or, 0), (Op::Xor, 0)]),
            _ => self.pick(&[(Op::Add, 0), (Op::Mul, 1)]),
        };
        let neutral = if op == Op::Add && s.is_float() { s.from_f64(-0.0) } else { s.from_i64(neutral) };
        (Prim::Op(op, s), neutral)
    }
    fn fold_lanes(&mut self) {
        let (from, s) = self.pick(&self.lanes.clone());
        let (prim, neutral) = self.fold(s);
        let mask = self.mask();
        let to = self.regs.add(Ty::Scalar(s));
        self.out.push(Ins::FoldLanes { to, prim, neutral, from: from.into(), mask });
        self.scalars.push((to, s));
        let columns = self.arrays.types();
        if let Some(column) = [0, 5, 6].into_iter().find(|c| columns[*c] == s) {
            let (pointer, index) = (self.params[column].into(), int(self.below(20) as i64));
            self.out.push(Ins::Store { pointer, index, value: to.into(), ty: Ty::Scalar(s) });
        }
    }
    fn gather(&mut self) {
        let (state, s) = self.pick(&self.states.clone());
        let (prim, _) = self.fold(s);
        let value = self.operand(s);
        let next = self.prim_lanes(prim, vec![state.into(), value]);
        self.out.push(Ins::Set { to: state, value: next.into() });
    }
    fn fail(&mut self) {
        let index = self.indices();
        let unwanted = self.below(64) as i64;
        let prim = Prim::Op(Op::Eq, Scalar::I64);
        let mut holds = self.prim_lanes(prim, vec![index.into(), int(unwanted)]);
        if let Some(mask) = self.mask() {
            holds = self.prim_lanes(Prim::Op(Op::And, Scalar::Bool), vec![holds.into(), mask]);
        }
        let values = vec![index.into(), self.i.into(), int(unwanted)];
        self.out.push(Ins::Fail { condition: holds.into(), message: message(), values });
    }
    /// A block inside: what it sets is not read after it.
    fn inner(&mut self, depth: usize) -> Block {
        let before = std::mem::take(&mut self.out);
        let (lanes, scalars) = (self.lanes.len(), self.scalars.len());
        self.steps(depth + 1);
        self.lanes.truncate(lanes);
        self.scalars.truncate(scalars);
        std::mem::replace(&mut self.out, before)
    }
    fn control(&mut self, depth: usize) {
        if self.one_in(2) {
            let condition = match self.scalars.iter().find(|(_, s)| *s == Scalar::Bool) {
                Some((r, _)) => (*r).into(),
                None => {
                    let test = self.regs.add(BOOL);
                    let prim = Prim::Op(Op::Lt, Scalar::I64);
                    self.out.push(Ins::Prim { to: test, prim, args: vec![self.i.into(), int(10)] });
                    test.into()
                }
            };
            let (then, otherwise) = (self.inner(depth), self.inner(depth));
            self.out.push(Ins::If { condition, then, otherwise });
            return;
        }
        let (k, more) = (self.regs.add(I64), self.regs.add(BOOL));
        let times = self.below(4) as i64;
        let mut body = self.inner(depth);
        if self.one_in(2) {
            self.out.push(Ins::For { i: k, from: int(0), to: int(times), body, order: Order::Given });
            return;
        }
        self.out.push(Ins::Set { to: k, value: int(0) });
        let prim = Prim::Op(Op::Lt, Scalar::I64);
        let condition = vec![Ins::Prim { to: more, prim, args: vec![k.into(), int(times)] }];
        body.push(of_ints(k, Op::Add, k, int(1)));
        self.out.push(Ins::While { condition, test: more.into(), body });
    }
    fn steps(&mut self, depth: usize) {
        for _ in 0..3 + self.below(10 / (depth + 1)) {
            match self.below(16) {
                0..=2 => self.load(),
                3 | 4 => self.store(),
                5 => self.accumulate(),
                6 => self.fold_lanes(),
                7 | 8 => self.gather(),
                9 if depth < 2 => self.control(depth),
                10 if self.one_in(4) => self.fail(),
                _ => self.primitive(),
            }
        }
    }
}

fn message() -> MessageId {
    pullback_base::index::Index::new(0)
}

/// A function of all arrays and a number of iterations, which may be a constant instead. Results: what was gathered.
fn random_function(
    name: &str,
    random: &mut Random,
    (size, lanes): (i64, usize),
    constant: Option<i64>,
) -> (Function, [Scalar; 7]) {
    let numbers: Vec<Scalar> = Scalar::ALL.iter().copied().filter(|s| *s != Scalar::Bool).collect();
    let mut number = || numbers[(random.next() >> 33) as usize % numbers.len()];
    let arrays = Arrays { size, any: number(), small: number(), sums: number() };
    let types = arrays.types();
    let params: Vec<Ty> = types.iter().map(|_| PTR).chain([I64]).collect();
    let function = function(name, &params, |regs, p| {
        let i = regs.add(I64);
        let n = constant.map_or(p[7].into(), int);
        let any = arrays.any;
        let mut w = Writer {
            random,
            arrays,
            regs,
            params: p.to_vec(),
            n,
            i,
            width: lanes,
            lanes: vec![],
            scalars: vec![],
            states: vec![],
            out: vec![],
        };
        for s in [any, Scalar::F64, Scalar::Bool] {
            let state = w.regs.add(Ty::Lanes(s, lanes));
            let value = w.constant(s);
            w.out.push(Ins::Set { to: state, value });
            w.states.push((state, s));
        }
        let before = std::mem::take(&mut w.out);
        let number = w.new_lanes(Scalar::I64);
        w.out.push(Ins::LaneNumber { to: number });
        w.load();
        w.steps(0);
        w.store();
        let body = std::mem::replace(&mut w.out, before);
        w.out.push(Ins::Lanes { i, from: int(0), to: n, lanes, body });
        let mut results = Vec::new();
        for (state, s) in w.states.clone() {
            let (prim, neutral) = w.fold(s);
            let (all, last) = (w.regs.add(Ty::Scalar(s)), w.regs.add(Ty::Scalar(s)));
            w.out.push(Ins::FoldLanes { to: all, prim, neutral, from: state.into(), mask: None });
            w.out.push(Ins::Lane { to: last, from: state.into(), lane: 1 });
            results.extend([all, last]);
        }
        (results, std::mem::take(&mut w.out))
    });
    (function, types)
}

/// What a call leaves: results or an error, and memory.
type Left = (Result<Vec<ScalarValue>, String>, Vec<Vec<ScalarValue>>);

fn by_reference(module: &Module, name: &str, contents: &[Vec<ScalarValue>], n: i64) -> Left {
    let mut memory = Memory::new(1 << 20);
    let mut pointers = Vec::new();
    for column in contents {
        let words = column.iter().map(|x| Word::Scalar(*x)).collect();
        pointers.push(memory.put(Ty::Scalar(column[0].scalar()), words));
    }
    let args: Vec<Word> =
        pointers.iter().map(|p| Word::Pointer(*p)).chain([Word::Scalar(ScalarValue::I64(n))]).collect();
    let (id, _) = module.functions.iter_enumerated().find(|(_, f)| f.name == name).expect("it is there");
    let scalar = |w: Word| match w {
        Word::Scalar(x) => x,
        Word::Pointer(_) => panic!("no pointers"),
    };
    let options = run::Options { steps: 1 << 20, backwards: false };
    let out = run::run(module, id, &args, &mut memory, options);
    let after = pointers
        .iter()
        .zip(contents)
        .map(|(p, c)| {
            (0..c.len() as i64).map(|k| scalar(memory.get(*p, k).expect("it is written"))).collect()
        })
        .collect();
    let out = out.map(|words| words.into_iter().map(scalar).collect()).map_err(|e| {
        assert_ne!(e.kind, RuntimeErrorKind::Internal, "{name} {n}: {e}");
        e.to_string()
    });
    (out, after)
}

fn by_executor(executable: &dyn Executable, f: &Function, contents: &[Vec<ScalarValue>], n: i64) -> Left {
    let mut memory: Vec<Vec<u64>> = contents.iter().map(|c| pack(c)).collect();
    let mut words: Vec<u64> = memory.iter_mut().map(|c| c.as_mut_ptr().expose_provenance() as u64).collect();
    words.push(n as u64);
    let id = executable.function(&f.name).expect("it is there");
    let mut out = vec![0; f.results.len()];
    // SAFETY: arrays of the types and sizes that the function was written for; the reference executor checked the accesses.
    let done = unsafe { executable.session().call(id, &words, &mut out, None) };
    let results =
        f.results.iter().zip(&out).map(|(r, w)| from_word(f.regs[*r].ty.scalar().expect("a scalar"), *w));
    let after =
        contents.iter().zip(&memory).map(|(before, m)| unpack(before[0].scalar(), before.len(), m)).collect();
    (done.map(|()| results.collect()).map_err(|e| e.to_string()), after)
}

/// Elements as they are in memory, and eight words behind them.
fn pack(xs: &[ScalarValue]) -> Vec<u64> {
    let mut bytes: Vec<u8> =
        xs.iter().flat_map(|x| to_word(*x).to_le_bytes()[..x.scalar().bytes()].to_vec()).collect();
    bytes.resize(bytes.len().next_multiple_of(8) + 64, 0xAA);
    bytes.chunks(8).map(|b| u64::from_le_bytes(b.try_into().expect("eight"))).collect()
}

fn unpack(s: Scalar, count: usize, words: &[u64]) -> Vec<ScalarValue> {
    let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
    let used = count * s.bytes();
    assert!(bytes[used.next_multiple_of(8)..].iter().all(|b| *b == 0xAA), "a store behind an array");
    let one = |b: &[u8]| {
        let mut word = [0; 8];
        word[..b.len()].copy_from_slice(b);
        from_word(s, u64::from_le_bytes(word))
    };
    bytes[..used].chunks(s.bytes()).map(one).collect()
}

fn same(a: &Left, b: &Left) -> bool {
    let all = |a: &[ScalarValue], b: &[ScalarValue]| a.iter().zip(b).all(|(x, y)| agree(*x, *y));
    let results = match (&a.0, &b.0) {
        (Ok(x), Ok(y)) => all(x, y),
        (Err(x), Err(y)) => x == y,
        _ => false,
    };
    results && a.1.iter().zip(&b.1).all(|(x, y)| all(x, y))
}

/// As its name says: registers of so many lanes, and so many functions. There are loops of all `counts` of iterations.
pub fn random_functions_of_lanes_do_what_the_reference_executor_does(
    make: Make<'_>,
    widths: &[usize],
    counts: &dyn Fn(i64) -> Vec<i64>,
    count: u64,
) {
    let number =
        |name: &str, default: u64| std::env::var(name).ok().and_then(|s| s.parse().ok()).unwrap_or(default);
    let (seed, count) = (number("SEED", 0), number("COUNT", count));
    for &lanes in widths {
        let mut random = Random(seed * 1000 + lanes as u64);
        let counts = counts(lanes as i64);
        // Indices go up to three times the number of iterations, and there are some of at most 180 with a lane added.
        let size = 3 * counts.iter().max().map_or(0, |n| *n) + 190;
        let mut types = Vec::new();
        let mut functions = Vec::new();
        for k in 0..count {
            let constant = (k % 3 == 0).then(|| counts[(random.next() >> 40) as usize % counts.len()]);
            let (f, t) = random_function(&format!("f{k}"), &mut random, (size, lanes), constant);
            functions.push(f);
            types.push((t, constant));
        }
        let mut module = module(functions);
        module.lanes = lanes;
        let text = "index {} at {}, which is {}".to_string();
        module.messages.push(Message {
            kind: RuntimeErrorKind::OutOfBounds,
            text: Text::Plain(text),
            span: None,
        });
        let mut expected = Vec::new();
        for (f, ([any, _, _, small, sums, ..], constant)) in module.functions.iter().zip(&types) {
            let arrays = Arrays { size, any: *any, small: *small, sums: *sums };
            for n in counts.iter().copied().filter(|n| constant.is_none_or(|c| c == *n)) {
                let contents = arrays.contents(&mut random);
                let left = by_reference(&module, &f.name, &contents, n);
                expected.push((f, n, contents, left));
            }
        }
        let failed = expected.iter().filter(|(.., left)| left.0.is_err()).count();
        assert!(failed * 2 < expected.len(), "{failed} of {} stop with an error", expected.len());
        for executable in make(&module, Setup::default()) {
            for (f, n, contents, left) in &expected {
                let found = by_executor(&*executable, f, contents, *n);
                let by = executable.name();
                assert!(
                    same(&found, left),
                    "{lanes} lanes, {n} iterations, {by}\n{}\nfound {found:?}\nnot {left:?}",
                    pullback_kernel::print(&module)
                );
            }
        }
    }
}
