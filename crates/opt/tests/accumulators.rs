//! Accumulator elimination on random nests of maps: the same sums as before, whatever the indices.
//!
//! Nests of depth 1 to 3 with extents 0 to 4 add scalars and rows at affine, mixed-radix, data-dependent and other indices,
//! through views, under conditions, at several sites. Levels are maps or, in the second test, loops as reverse sweeps
//! have them: forwards or backwards, with a state, over the tape of a loop that ran before, also with fewer than no
//! iterations, and `while` loops. All numbers are small integers, so that sums are exact
//! in every order and results must be equal bit for bit. The program before the pass, run by the interpreter, which
//! adds one by one, is the brute force.

#![allow(clippy::unwrap_used, reason = "a test stops where it fails")]

use pullback_core::traverse::for_each_stm;
use pullback_core::{
    Atom, Body, Builder, Exp, FunId, Loop, LoopAttrs, LoopForm, Program, Rules, SliceDim, Soac, Type, Value,
    Var, Variant, View, check, print,
};
use pullback_interp::core::{Options, run};
use pullback_opt::{CSE, Ctx, ELIMINATE_ACCUMULATORS, PRUNE, SIMPLIFY};
use pullback_prim::{Op, Prim, Scalar};
use pullback_testkit::rng::Rng;

/// Parameters of every program, in order: extents, then data.
const DIMS: usize = 3;

struct Nest<'r> {
    rng: &'r mut Rng,
    sizes: Vec<Atom>,
    /// `[n0]f64`, `[n1]f64`, `[n2]f64`
    vectors: Vec<Atom>,
    /// `[n0][n1]f64`, `[n1][n2]f64`
    matrices: Vec<Atom>,
    /// `[8]i64` and `[5][4]f64`
    table: Atom,
    rows: Atom,
    /// The length of a row of the accumulator.
    row: Atom,
    scalar: Atom,
    /// Levels may be loops.
    loops: bool,
}

/// What is in scope at a level: positions of dimensions, and floats.
#[derive(Clone, Default)]
struct Scope {
    places: Vec<(usize, Atom)>,
    floats: Vec<Atom>,
    /// Rows of four numbers.
    rows: Vec<Atom>,
}

impl Nest<'_> {
    fn below(&mut self, n: u64) -> u64 {
        self.rng.below(n as usize) as u64
    }
    fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len() as u64) as usize]
    }

    fn level(&mut self, b: &mut Builder<'_>, acc: Atom, depth: usize, scope: &Scope) {
        if self.loops && self.below(3) > 0 {
            return self.sweep(b, acc, depth, scope);
        }
        let d = depth;
        let width = self.sizes[d];
        let mut arrays = vec![b.emit(Exp::Iota(width), "is"), self.vectors[d]];
        if d == 0 || self.below(2) == 0 {
            // A row of a matrix as the input of the next level is the common shape of generated code.
            if d < 2 {
                arrays.push(self.matrices[d]);
            }
        }
        let inner_depth = self.below(3) as usize;
        b.map(width, &arrays, |b, ps| {
            let mut scope = scope.clone();
            scope.places.push((d, ps[0].into()));
            scope.floats.push(ps[1].into());
            if self.below(3) == 0 {
                let t = self.value(b, &scope);
                scope.floats.push(t);
            }
            if let Some(row) = ps.get(2) {
                let n = b.size((*row).into(), 0);
                if self.below(3) == 0 {
                    let total = b.sum(n, (*row).into());
                    scope.floats.push(total);
                }
            }
            if depth + 1 < DIMS && (inner_depth > 0 || depth == 0) {
                self.level(b, acc, depth + 1, &scope);
                if self.below(3) == 0 {
                    self.guarded(b, acc, &scope);
                }
            } else {
                for _ in 0..=self.below(2) {
                    self.guarded(b, acc, &scope);
                }
            }
            vec![Atom::bool(false)]
        });
    }

    /// A loop over the tape of another one.
    fn sweep(&mut self, b: &mut Builder<'_>, acc: Atom, depth: usize, scope: &Scope) {
        let mut n = self.sizes[depth];
        if self.below(3) == 0 {
            n = b.op2(Op::Sub, n, Atom::i64(1));
        }
        let (data, rows) = (self.vectors[depth], self.rows);
        let boxed =
            Type::Sum(vec![Variant { name: "tape".into(), fields: vec![Type::array(Type::F64)] }].into());
        let tape = b.for_loop(n, &[self.scalar], |b, i, s| {
            let x = b.index(data, &[i.into()]);
            let k = b.op2(Op::Mod, i.into(), Atom::i64(5));
            let row = b.index(rows, &[k]);
            let stored = b.emit(Exp::Inject(boxed.clone(), 0, vec![row]), "tape");
            let next = b.op2(Op::Sub, x, s[0].into());
            vec![next, x, next, stored]
        });
        let last = b.op2(Op::Sub, n, Atom::i64(1));
        let backwards = self.below(2) == 0;
        let iteration = |this: &mut Self, b: &mut Builder<'_>, r: Var, state: Var| {
            let t = if backwards { b.op2(Op::Sub, last, r.into()) } else { r.into() };
            let mut scope = scope.clone();
            scope.places.push((depth, t));
            let x = b.index(tape[1].into(), &[t]);
            let y = b.index(tape[2].into(), &[t]);
            scope.floats.extend([x, y, state.into()]);
            let stored = b.index(tape[3].into(), &[t]);
            scope.rows.push(b.match_(stored, |_, _, fields| vec![fields[0].into()])[0].into());
            for _ in 0..this.below(2) {
                this.guarded(b, acc, &scope);
            }
            if depth + 1 < DIMS && this.below(3) > 0 {
                this.level(b, acc, depth + 1, &scope);
            } else {
                this.guarded(b, acc, &scope);
            }
            b.op2(Op::Sub, x, state.into())
        };
        if self.below(4) > 0 {
            b.for_loop(n, &[self.scalar], |b, r, s| vec![iteration(self, b, r, s[0])]);
            return;
        }
        let (k, s) = (b.fresh(Type::I64, "k"), b.fresh(Type::F64, "s"));
        let form = LoopForm::While(b.scope(|b| vec![b.op2(Op::Lt, k.into(), n)]));
        let body = b.scope(|b| {
            let next = iteration(self, b, k, s);
            vec![b.op2(Op::Add, k.into(), Atom::i64(1)), next]
        });
        let params = vec![(k, Atom::i64(0)), (s, self.scalar)];
        b.emit_all(Exp::Loop(Loop { params, form, body, collect: 0, attrs: LoopAttrs::default() }), "s");
    }

    fn guarded(&mut self, b: &mut Builder<'_>, acc: Atom, scope: &Scope) {
        if self.below(3) > 0 {
            return self.site(b, acc, scope);
        }
        let (p, q) = (self.index(b, scope), self.index(b, scope));
        let op = self.pick(&[Op::Lt, Op::Eq, Op::Le]);
        let c = b.op2(op, p, q);
        let swap = self.below(2) == 0;
        let then = b.scope(|b| {
            if !swap {
                self.site(b, acc, scope);
            }
            vec![Atom::bool(false)]
        });
        let otherwise = b.scope(|b| {
            if swap || self.below(2) == 0 {
                self.site(b, acc, scope);
            }
            vec![Atom::bool(false)]
        });
        b.emit(Exp::If(c, then, otherwise), "effect");
    }

    fn site(&mut self, b: &mut Builder<'_>, acc: Atom, scope: &Scope) {
        let (mut acc, whole) = (acc, acc);
        if self.below(5) == 0 {
            let (start, len) = (self.index(b, scope), Atom::i64(self.below(4) as i64));
            let stride = Atom::i64(self.pick(&[1, 1, 2, -1]));
            acc = b.emit(Exp::AccView(acc, View::Slice(SliceDim { start, len, stride })), "part");
        }
        match self.below(if self.loops { 7 } else { 6 }) {
            5 => self.components(b, acc, scope),
            6 => {
                let twice = b.emit(Exp::Plus(self.rows, self.rows), "twice");
                b.emit(Exp::AccAdd(whole, vec![], twice), "done");
            }
            0 => {
                let acc = b.emit(Exp::AccView(acc, View::Rearrange(vec![1, 0])), "turned");
                let (i, j) = (self.index(b, scope), self.index(b, scope));
                let v = self.value(b, scope);
                b.emit(Exp::AccAdd(acc, vec![i, j], v), "done");
            }
            1 => {
                let i = self.index(b, scope);
                let acc = b.emit(Exp::AccView(acc, View::Index(vec![i])), "row");
                let j = self.index(b, scope);
                let v = self.value(b, scope);
                b.emit(Exp::AccAdd(acc, vec![j], v), "done");
            }
            2 => {
                let i = self.index(b, scope);
                let row = self.row(b, scope);
                b.emit(Exp::AccAdd(acc, vec![i], row), "done");
            }
            _ => {
                let (i, j) = (self.index(b, scope), self.index(b, scope));
                let v = self.value(b, scope);
                b.emit(Exp::AccAdd(acc, vec![i, j], v), "done");
            }
        }
    }

    /// Numbers for the components of a row, some of them twice, now and then not for all of them.
    fn components(&mut self, b: &mut Builder<'_>, acc: Atom, scope: &Scope) {
        let i = self.index(b, scope);
        let row = b.emit(Exp::AccView(acc, View::Index(vec![i])), "row");
        let (first, count) = (self.below(4), 3 + self.below(4));
        for k in first..first + count {
            let c = Atom::i64((k % 4) as i64);
            let v = self.value(b, scope);
            if self.below(2) == 0 {
                b.emit(Exp::AccAdd(row, vec![c], v), "done");
            } else {
                b.emit(Exp::AccAdd(acc, vec![i, c], v), "done");
            }
        }
    }

    /// A row of four numbers.
    fn row(&mut self, b: &mut Builder<'_>, scope: &Scope) -> Atom {
        let (_, p) = self.pick(&scope.places);
        let i = b.op2(Op::Mod, p, Atom::i64(5));
        let mut row = b.index(self.rows, &[i]);
        if !scope.rows.is_empty() && self.below(2) == 0 {
            row = self.pick(&scope.rows);
        }
        if self.below(2) == 0 {
            return row;
        }
        let factor = self.pick(&scope.floats);
        if self.below(2) == 0 {
            return self.product(b, factor);
        }
        b.map(self.row, &[row], |b, ps| vec![b.op2(Op::Mul, ps[0].into(), factor)])[0].into()
    }

    /// The transposed table of rows times a vector that depends on the point: a linear function of it.
    fn product(&mut self, b: &mut Builder<'_>, factor: Atom) -> Atom {
        let columns = b.emit(Exp::Rearrange(vec![1, 0], self.rows), "columns");
        let (five, four) = (b.size(self.rows, 0), b.size(self.rows, 1));
        let column = b.index(columns, &[Atom::i64(1)]);
        let z = b.map(five, &[column], |b, ps| vec![b.op2(Op::Mul, ps[0].into(), factor)])[0];
        let negative = self.below(2) == 0;
        let triangular = self.below(2) == 0;
        let (is, js) = (b.emit(Exp::Iota(five), "is"), b.emit(Exp::Iota(four), "js"));
        let row = b.map(four, &[columns, js], |b, ps| {
            let j = ps[1].into();
            let terms = b.map(five, &[z.into(), ps[0].into(), is], |b, ps| {
                let mut term = b.op2(Op::Mul, ps[0].into(), ps[1].into());
                if triangular {
                    term = self.zero_unless(b, term, (j, ps[2].into()));
                }
                vec![term]
            });
            let sum = b.sum(five, terms[0].into());
            vec![if negative { b.op1(Op::Neg, sum) } else { sum }]
        });
        row[0].into()
    }

    /// The number where two counters compare in some way, zero elsewhere; or the other way round.
    fn zero_unless(&mut self, b: &mut Builder<'_>, v: Atom, (i, j): (Atom, Atom)) -> Atom {
        let op = self.pick(&[Op::Le, Op::Lt, Op::Eq, Op::Ne]);
        let c = b.op2(op, i, j);
        let (value, zero) = (|_: &mut Builder<'_>| vec![v], |_: &mut Builder<'_>| vec![Atom::f64(0.0)]);
        let (then, otherwise) = match self.below(2) {
            0 => (b.scope(value), b.scope(zero)),
            _ => (b.scope(zero), b.scope(value)),
        };
        b.emit(Exp::If(c, then, otherwise), "v")
    }

    fn index(&mut self, b: &mut Builder<'_>, scope: &Scope) -> Atom {
        let (d, p) = self.pick(&scope.places);
        let (e, q) = self.pick(&scope.places);
        let c = Atom::i64(self.below(4) as i64 - 1);
        match self.below(12) {
            0 => c,
            1..=4 => p,
            5 => b.op2(Op::Add, p, c),
            6 => b.op2(Op::Sub, c, p),
            7 => {
                let twice = b.op2(Op::Mul, Atom::i64(2), p);
                b.op2(Op::Add, twice, q)
            }
            8 => b.op2(Op::Add, p, q),
            9 if d != e => {
                let far = b.op2(Op::Mul, p, self.sizes[e]);
                b.op2(Op::Add, far, q)
            }
            9 => b.op2(Op::Mul, p, q),
            10 => b.op2(Op::Sub, p, q),
            _ => {
                let k = b.op2(Op::Mod, p, Atom::i64(8));
                b.index(self.table, &[k])
            }
        }
    }

    fn value(&mut self, b: &mut Builder<'_>, scope: &Scope) -> Atom {
        let mut v = self.pick(&scope.floats);
        for _ in 0..self.below(4) {
            let w = if self.below(4) == 0 { self.scalar } else { self.pick(&scope.floats) };
            let op = self.pick(&[Op::Mul, Op::Mul, Op::Add, Op::Sub]);
            v = b.op2(op, v, w);
        }
        if self.below(4) == 0 {
            let (_, p) = self.pick(&scope.places);
            let x = b.emit(Exp::Prim(Prim::Convert(Scalar::I64, Scalar::F64), vec![p]), "x");
            v = b.op2(Op::Mul, v, x);
        }
        if self.below(4) == 0 {
            let (p, q) = (self.index(b, scope), self.index(b, scope));
            v = self.zero_unless(b, v, (p, q));
        }
        v
    }
}

/// `sizes`: extents are 0 to this many, mostly not 0.
fn program(seed: u64, loops: bool, sizes: usize) -> (Program, FunId, Vec<Value>) {
    let mut rng = Rng::new(seed);
    let extents: Vec<usize> =
        (0..DIMS).map(|_| if rng.below(8) == 0 { 0 } else { sizes - rng.below(4) }).collect();
    let mut program = Program::default();
    let matrix = Type::array_of_rank(Type::F64, 2);
    let vector = Type::array(Type::F64);
    let params = [
        ("n0", Type::I64),
        ("n1", Type::I64),
        ("n2", Type::I64),
        ("v0", vector.clone()),
        ("v1", vector.clone()),
        ("v2", vector),
        ("m01", matrix.clone()),
        ("m12", matrix.clone()),
        ("table", Type::array(Type::I64)),
        ("rows", matrix.clone()),
        ("s", Type::F64),
        ("init", matrix.clone()),
    ];
    let zeros = rng.below(2) == 0;
    // Extents as constants make other rules apply than extents as variables.
    let constants = rng.below(3) == 0;
    let id = Builder::function(&mut program, "main", &params, vec![matrix], |b, p| {
        let at = |k: usize| Atom::Var(p[k]);
        let size = |k: usize| if constants { Atom::i64(extents[k] as i64) } else { at(k) };
        let mut nest = Nest {
            rng: &mut rng,
            sizes: (0..DIMS).map(size).collect(),
            vectors: vec![at(3), at(4), at(5)],
            matrices: vec![at(6), at(7)],
            table: at(8),
            rows: at(9),
            row: b.size(at(11), 1),
            scalar: at(10),
            loops,
        };
        let first = nest.below(2) as usize;
        if nest.below(2) == 0 {
            let four = b.op2(Op::Eq, nest.row, Atom::i64(4));
            b.emit(Exp::Assert(four, "four".into(), vec![nest.row, Atom::i64(4)]), "ok");
        }
        let init = if zeros {
            let shape = b.shape(at(11));
            b.emit(Exp::Replicate(shape, Atom::f64(0.0)), "zeros")
        } else {
            at(11)
        };
        let out = b.with_acc(&[init], |b, acc| {
            nest.level(b, acc[0].into(), first, &Scope::default());
            Vec::new()
        });
        vec![out[0].into()]
    });
    let mut whole = |n: usize| (0..n).map(|_| rng.below(7) as f64 - 3.0).collect::<Vec<f64>>();
    let mut args: Vec<Value> = extents.iter().map(|n| Value::i64(*n as i64)).collect();
    args.extend(extents.iter().map(|n| Value::f64s(&whole(*n))));
    args.push(Value::f64_array(&[extents[0], extents[1]], &whole(extents[0] * extents[1])));
    args.push(Value::f64_array(&[extents[1], extents[2]], &whole(extents[1] * extents[2])));
    args.push(Value::i64s(&[0, 3, -1, 1, 1, 2, 4, 9]));
    args.push(Value::f64_array(&[5, 4], &whole(20)));
    args.push(Value::f64(2.0));
    args.push(Value::f64_array(&[5, 4], &whole(20)));
    (program, id, args)
}

/// Accumulations inside array operations and loops.
fn hot(body: &Body, inside: bool) -> usize {
    let mut count = 0;
    for stm in &body.stms {
        count += usize::from(inside && matches!(stm.exp, Exp::AccAdd(..)));
        let inside = inside || matches!(stm.exp, Exp::Soac(Soac::Map { .. }) | Exp::Loop(_));
        count += stm.exp.bodies().iter().map(|s| hot(s.body, inside)).sum::<usize>();
    }
    count
}

fn count(program: &Program, id: FunId, wanted: fn(&Exp) -> bool) -> usize {
    let mut n = 0;
    for_each_stm(&program.funs[id].body, &mut |s| n += usize::from(wanted(&s.exp)));
    n
}

/// What was seen in random nests.
#[derive(Default)]
struct Seen {
    /// Accumulations in maps and loops.
    before: usize,
    after: usize,
    histograms: usize,
    sums: usize,
}

/// The same sums with and without the pass, for all these programs.
fn compare(loops: bool) -> Seen {
    let programs: u64 = std::env::var("PULLBACK_NESTS").ok().and_then(|n| n.parse().ok()).unwrap_or(400);
    let mut seen = Seen::default();
    for seed in 0..programs {
        let (source, id, args) = program(seed, loops, 4);
        check(&source, Rules::NO_AD).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{}", print(&source)));
        let ctx = Ctx { derivatives_done: true, ..Ctx::default() };
        let mut made = source.clone();
        for pass in [&ELIMINATE_ACCUMULATORS, &SIMPLIFY, &CSE, &PRUNE] {
            (pass.run)(&mut made, &ctx);
            check(&made, Rules::NO_AD).unwrap_or_else(|e| {
                panic!("seed {seed}: {}\n{}\n=>\n{}", e.after(pass.name), print(&source), print(&made))
            });
        }
        let first = run(&source, id, args.clone(), &Options::default());
        let expected = first.map(|o| o.results);
        for schedule_seed in [None, Some(seed)] {
            let options = Options { schedule_seed, ..Options::default() };
            let found = run(&made, id, args.clone(), &options).map(|o| o.results);
            assert!(
                format!("{expected:?}").replace("-0.0", "0.0") == format!("{found:?}").replace("-0.0", "0.0"),
                "seed {seed}: {expected:?} and {found:?}\n{}\n=>\n{}\n{args:?}",
                print(&source),
                print(&made)
            );
        }
        seen.before += hot(&source.funs[id].body, false);
        seen.after += hot(&made.funs[id].body, false);
        seen.histograms += count(&made, id, |e| matches!(e, Exp::Soac(Soac::Hist { .. })));
        seen.sums += count(&made, id, |e| matches!(e, Exp::Soac(Soac::Reduce { .. })));
    }
    seen
}

#[test]
fn random_nests_keep_their_sums() {
    let Seen { before, after, histograms, sums } = compare(false);
    // Every rule has had its share.
    assert!(after * 4 < before * 3, "{after} of {before} accumulations are left in maps");
    assert!(histograms > 0 && sums > 0, "{histograms} histograms, {sums} sums");
}

#[test]
fn random_nests_with_loops_keep_their_sums() {
    let Seen { before, after, .. } = compare(true);
    assert!(after * 5 < before * 4, "{after} of {before} accumulations are left in maps and loops");
}

/// Steps of all these programs before and after.
fn steps(loops: bool) -> (u64, u64) {
    let ctx = Ctx { derivatives_done: true, ..Ctx::default() };
    let mut sum = (0, 0);
    for seed in 0..400 {
        let (source, id, args) = program(seed, loops, 12);
        let mut made = source.clone();
        [&ELIMINATE_ACCUMULATORS, &SIMPLIFY, &CSE, &PRUNE]
            .iter()
            .for_each(|pass| (pass.run)(&mut made, &ctx));
        let work = |p: &Program| run(p, id, args.clone(), &Options::default()).map(|o| o.counts.work);
        if let (Ok(before), Ok(after)) = (work(&source), work(&made)) {
            sum = (sum.0 + before, sum.1 + after);
        }
    }
    sum
}

/// A row of `k` numbers is added in `k` steps, but handed out, visited and summed in `3 k`; a loop that carries or stacks
/// what it adds costs what it did.
#[test]
fn elimination_costs_little() {
    let (before, after) = steps(false);
    assert!(after * 4 < before * 5, "maps: {before} steps, then {after}");
    let (before, after) = steps(true);
    assert!(after * 10 < before * 11, "loops: {before} steps, then {after}");
}
