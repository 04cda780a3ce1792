//! Rule E4 of accumulator elimination on random nests: positions of segments, which are quotients and remainders.
//!
//! Maps over `m * c * d` points, alone or in another map, add numbers at quotients and remainders of the position: by
//! factors of the extent and by numbers that are none, shifted, scaled, nested, under conditions; extents are sizes, some
//! of them 0, or constants. All numbers are small integers, so that sums are exact in every order. The program before the
//! pass, run by the interpreter, which adds one by one, is the brute force.

#![allow(clippy::unwrap_used, reason = "a test stops where it fails")]

use pullback_core::traverse::for_each_stm;
use pullback_core::{Atom, Body, Builder, Exp, FunId, Program, Rules, Soac, Type, Value, check, print};
use pullback_interp::core::{Options, run};
use pullback_opt::{CSE, Ctx, ELIMINATE_ACCUMULATORS, PRUNE, SIMPLIFY};
use pullback_prim::Op;
use pullback_testkit::rng::Rng;

struct Nest<'r> {
    rng: &'r mut Rng,
    /// The three factors of the extent, the last two multiplied, and 2.
    divisors: [Atom; 5],
    /// One vector for each factor.
    vectors: [Atom; 3],
    long: Atom,
    /// As many as points.
    xs: Atom,
    /// Two numbers, if there is no point that would read them.
    short: Option<Atom>,
}

impl Nest<'_> {
    fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.rng.below(items.len())]
    }
    /// The numbers of the point in the three factors.
    fn place(&self, b: &mut Builder<'_>, i: Atom, factor: usize) -> Atom {
        let [_, c, d, both, _] = self.divisors;
        match factor {
            0 => b.op2(Op::Div, i, both),
            1 => {
                let q = b.op2(Op::Div, i, d);
                b.op2(Op::Mod, q, c)
            }
            _ => b.op2(Op::Mod, i, d),
        }
    }
    fn index(&mut self, b: &mut Builder<'_>, i: Atom, outer: Atom) -> Atom {
        let divisor = self.pick(&self.divisors.clone());
        let op = self.pick(&[Op::Div, Op::Mod]);
        match self.rng.below(11) {
            0 => i,
            10 => b.op2(op, outer, divisor),
            1 => outer,
            2..=4 => {
                let factor = self.rng.below(3);
                self.place(b, i, factor)
            }
            5 => {
                let next = b.op2(Op::Add, i, Atom::i64(1));
                b.op2(op, next, divisor)
            }
            6 => {
                let q = b.op2(op, i, divisor);
                b.op2(Op::Sub, Atom::i64(3), q)
            }
            7 => {
                let q = b.op2(op, i, divisor);
                let q = b.op2(Op::Mul, Atom::i64(2), q);
                b.op2(Op::Add, q, outer)
            }
            _ => b.op2(op, i, divisor),
        }
    }
    fn value(&mut self, b: &mut Builder<'_>, i: Atom, x: Atom) -> Atom {
        let mut v = x;
        if self.rng.below(12) == 0 {
            // An error at the last point.
            let next = b.op2(Op::Add, i, Atom::i64(1));
            return b.index(self.xs, &[next]);
        }
        for _ in 0..self.rng.below(3) {
            let factor = self.rng.below(3);
            let (array, at) = match self.rng.below(5) {
                0 => (self.long, i),
                1 => (self.long, self.place(b, i, 0)),
                2 if self.short.is_some() => (self.short.unwrap(), self.place(b, i, factor)),
                _ => (self.vectors[factor], self.place(b, i, factor)),
            };
            let y = b.index(array, &[at]);
            let op = self.pick(&[Op::Mul, Op::Mul, Op::Add]);
            v = b.op2(op, v, y);
        }
        v
    }
    fn site(&mut self, b: &mut Builder<'_>, acc: Atom, i: Atom, x: Atom, outer: Atom) {
        let (j, k) = (self.index(b, i, outer), self.index(b, i, outer));
        let j = if self.rng.below(2) == 0 { Atom::i64(1) } else { j };
        let v = self.value(b, i, x);
        b.emit(Exp::AccAdd(acc, vec![j, k], v), "done");
    }
    fn points(&mut self, b: &mut Builder<'_>, acc: Atom, n: Atom, xs: Atom, outer: Atom) {
        let is = b.emit(Exp::Iota(n), "is");
        b.map(n, &[is, xs], |b, ps| {
            let (i, x) = (ps[0].into(), ps[1].into());
            if self.rng.below(4) > 0 {
                self.site(b, acc, i, x, outer);
            } else {
                let c = b.op2(Op::Lt, i, Atom::i64(7));
                let then = b.scope(|b| {
                    self.site(b, acc, i, x, outer);
                    vec![Atom::bool(false)]
                });
                let otherwise = b.scope(|_| vec![Atom::bool(false)]);
                b.emit(Exp::If(c, then, otherwise), "effect");
            }
            vec![Atom::bool(false)]
        });
    }
}

fn program(seed: u64) -> (Program, FunId, Vec<Value>) {
    let mut rng = Rng::new(seed);
    let extents: Vec<usize> = (0..3).map(|_| if rng.below(8) == 0 { 0 } else { 1 + rng.below(5) }).collect();
    let points: usize = extents.iter().product();
    let constants = rng.below(3) == 0;
    let vector = Type::array(Type::F64);
    let matrix = Type::array_of_rank(Type::F64, 2);
    let mut params: Vec<(&str, Type)> =
        ["v0", "v1", "v2", "xs", "long", "short"].map(|name| (name, vector.clone())).to_vec();
    params.push(("init", matrix.clone()));
    let mut program = Program::default();
    let id = Builder::function(&mut program, "main", &params, vec![matrix], |b, p| {
        let vectors = [p[0], p[1], p[2]].map(Atom::Var);
        let sizes: Vec<Atom> = (0..3)
            .map(|k| if constants { Atom::i64(extents[k] as i64) } else { b.size(vectors[k], 0) })
            .collect();
        let both = b.op2(Op::Mul, sizes[1], sizes[2]);
        let n = if constants { Atom::i64(points as i64) } else { b.op2(Op::Mul, sizes[0], both) };
        let xs = Atom::Var(p[3]);
        if rng.below(3) > 0 {
            let size = b.size(xs, 0);
            let same = b.op2(Op::Eq, size, n);
            b.emit(Exp::Assert(same, "points".into(), vec![size, n]), "ok");
        }
        let divisors = [sizes[0], sizes[1], sizes[2], both, Atom::i64(2)];
        let short = (points == 0).then_some(p[5].into());
        let mut nest = Nest { rng: &mut rng, divisors, vectors, long: p[4].into(), xs, short };
        let out = b.with_acc(&[p[6].into()], |b, acc| {
            let acc = acc[0].into();
            if nest.rng.below(2) == 0 {
                nest.points(b, acc, n, xs, Atom::i64(2));
            } else {
                let three = b.emit(Exp::Iota(Atom::i64(3)), "three");
                b.map(Atom::i64(3), &[three], |b, ps| {
                    nest.points(b, acc, n, xs, ps[0].into());
                    vec![Atom::bool(false)]
                });
            }
            Vec::new()
        });
        vec![out[0].into()]
    });
    let mut whole = |n: usize| (0..n).map(|_| rng.below(7) as f64 - 3.0).collect::<Vec<f64>>();
    let mut args: Vec<Value> = extents.iter().map(|n| Value::f64s(&whole(*n))).collect();
    args.extend([points, 200, 2].map(|n| Value::f64s(&whole(n))));
    args.push(Value::f64_array(&[5, 6], &whole(30)));
    (program, id, args)
}

/// Accumulations inside array operations.
fn hot(body: &Body, inside: bool) -> usize {
    let mut count = 0;
    for stm in &body.stms {
        count += usize::from(inside && matches!(stm.exp, Exp::AccAdd(..)));
        let inside = inside || matches!(stm.exp, Exp::Soac(_));
        count += stm.exp.bodies().iter().map(|s| hot(s.body, inside)).sum::<usize>();
    }
    count
}

#[test]
fn random_segments_keep_their_sums() {
    let programs: u64 = std::env::var("PULLBACK_NESTS").ok().and_then(|n| n.parse().ok()).unwrap_or(800);
    let ctx = Ctx { derivatives_done: true, ..Ctx::default() };
    let (mut sums, mut left) = (0, 0);
    for seed in 0..programs {
        let (source, id, args) = program(seed);
        check(&source, Rules::NO_AD).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{}", print(&source)));
        let mut made = source.clone();
        for pass in [&ELIMINATE_ACCUMULATORS, &SIMPLIFY, &CSE, &PRUNE] {
            (pass.run)(&mut made, &ctx);
            check(&made, Rules::NO_AD).unwrap_or_else(|e| {
                panic!("seed {seed}: {}\n{}\n=>\n{}", e.after(pass.name), print(&source), print(&made))
            });
        }
        let expected = run(&source, id, args.clone(), &Options::default()).map(|o| o.results);
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
        left += hot(&made.funs[id].body, false);
        for_each_stm(&made.funs[id].body, &mut |s| {
            sums += u64::from(matches!(s.exp, Exp::Soac(Soac::Reduce { .. })));
        });
    }
    assert!(
        sums * 2 > programs && left * 5 < 3 * programs as usize,
        "{sums} sums, {left} accumulations are left"
    );
}
