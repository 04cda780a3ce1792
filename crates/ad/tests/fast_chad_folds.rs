//! Reductions and scans, operator by operator and rule by rule: against the interpreter's dual numbers, against each
//! other, under simulated parallel schedules, and in steps and span. One file, because all tests share the operators.

use crate::common;

use crate::common::{Numbers, add_vjp, direction, first, mismatch, parse};
use pullback_ad::fast_chad::{Config, ReduceRule, ScanRule};
use pullback_core::{FunId, Lam, Program, Value};
use pullback_interp::core::{Counts, Options};

fn fs(xs: &[f64]) -> Value {
    Value::f64s(xs)
}

/// An operator: the parameters of one side (name and type, without the letter of the side), its neutral elements, its
/// statements with the letters `l` and `r`, and its results.
struct Operator {
    name: &'static str,
    components: &'static [(&'static str, &'static str)],
    neutral: &'static str,
    body: &'static str,
    results: &'static str,
    smooth: bool,
}

const OPERATORS: &[Operator] = &[
    Operator {
        name: "product",
        components: &[("a", "f64")],
        neutral: "1.0f64",
        body: "let z: f64 = mul.f64(la, ra)",
        results: "z",
        smooth: true,
    },
    Operator {
        name: "affine maps",
        components: &[("a", "f64"), ("b", "f64")],
        neutral: "1.0f64, 0.0f64",
        body: "let x: f64 = mul.f64(la, ra) let y: f64 = mul.f64(lb, ra) let z: f64 = add.f64(y, rb)",
        results: "x, z",
        smooth: true,
    },
    Operator {
        name: "sum of pairwise products",
        components: &[("p", "f64"), ("s", "f64")],
        neutral: "0.0f64, 0.0f64",
        body: "let x: f64 = mul.f64(ls, rs) let y: f64 = add.f64(lp, rp) let p: f64 = add.f64(x, y)
            let s: f64 = add.f64(ls, rs)",
        results: "p, s",
        smooth: true,
    },
    Operator {
        name: "matrices of four numbers",
        components: &[("a", "f64"), ("b", "f64"), ("c", "f64"), ("d", "f64")],
        neutral: "1.0f64, 0.0f64, 0.0f64, 1.0f64",
        body: "let p: f64 = mul.f64(la, ra) let q: f64 = mul.f64(lb, rc) let w: f64 = add.f64(p, q)
            let p1: f64 = mul.f64(la, rb) let q1: f64 = mul.f64(lb, rd) let x: f64 = add.f64(p1, q1)
            let p2: f64 = mul.f64(lc, ra) let q2: f64 = mul.f64(ld, rc) let y: f64 = add.f64(p2, q2)
            let p3: f64 = mul.f64(lc, rb) let q3: f64 = mul.f64(ld, rd) let z: f64 = add.f64(p3, q3)",
        results: "w, x, y, z",
        smooth: true,
    },
    Operator {
        name: "log of a sum of exponentials",
        components: &[("a", "f64")],
        neutral: "-f64.inf",
        body: "let x: f64 = exp.f64(la) let y: f64 = exp.f64(ra) let s: f64 = add.f64(x, y) let z: f64 = log.f64(s)",
        results: "z",
        smooth: true,
    },
    Operator {
        name: "free factor",
        components: &[("a", "f64")],
        neutral: "one",
        body: "let z: f64 = mul.f64(la, ra) let w: f64 = mul.f64(z, c)",
        results: "w",
        smooth: true,
    },
    Operator {
        name: "free array",
        components: &[("a", "f64")],
        neutral: "1.0f64",
        body: "let t: f64 = ws[1i64] let z: f64 = mul.f64(la, ra) let w: f64 = mul.f64(z, t)",
        results: "w",
        smooth: true,
    },
    Operator {
        name: "maximum as a conditional",
        components: &[("a", "f64")],
        neutral: "-f64.inf",
        body: "let g: bool = le.f64(ra, la) let z: f64 = if g { in la } else { in ra }",
        results: "z",
        smooth: false,
    },
    Operator {
        name: "largest and where, and its partner",
        components: &[("a", "f64"), ("b", "f64"), ("i", "i64")],
        neutral: "-f64.inf, 0.0f64, -1i64",
        body: "let g: bool = lt.f64(ra, la)
            let x: f64, y: f64, j: i64 = if g { in la, lb, li } else {
                let e: bool = eq.f64(ra, la)
                let first: bool = lt.i64(li, ri)
                let h: bool = and.bool(e, first)
                let k: i64 = min.i64(li, ri)
                let x2: f64 = select.f64(h, la, ra)
                let y2: f64 = select.f64(h, lb, rb)
                in x2, y2, k
            }",
        results: "x, y, j",
        smooth: false,
    },
    Operator {
        name: "sum, minimum, count and product at once",
        components: &[("a", "f64"), ("b", "f64"), ("i", "i64"), ("c", "f64")],
        neutral: "0.0f64, f64.inf, 0i64, 1.0f64",
        body: "let x: f64 = add.f64(la, ra) let y: f64 = min.f64(lb, rb) let k: i64 = add.i64(li, ri)
            let z: f64 = mul.f64(lc, rc)",
        results: "x, y, k, z",
        smooth: false,
    },
    Operator {
        name: "powers as loops",
        components: &[("i", "i64"), ("a", "f64")],
        neutral: "0i64, 0.0f64",
        body: "let k: i64 = add.i64(li, ri)
            let s: f64 = loop (t: f64 = la) for q: i64 < ri { let u: f64 = mul.f64(t, 0.9f64) in u }
            let z: f64 = add.f64(s, ra)",
        results: "k, z",
        smooth: true,
    },
    Operator {
        name: "clipped product",
        components: &[("a", "f64")],
        neutral: "1.0f64",
        body: "let p: f64 = mul.f64(la, ra) let z: f64 = min.f64(p, 1.5f64)",
        results: "z",
        smooth: false,
    },
    Operator {
        name: "sums of rows of pairs",
        components: &[("a", "[]f64"), ("b", "[]f64")],
        neutral: "ones, units",
        body: "let y: []f64, z: []f64 = map 2i64 [la, lb, ra, rb] (e: f64, g: f64, h: f64, k: f64) {
                let p: f64 = add.f64(e, h) let q: f64 = add.f64(k, g) in p, q }",
        results: "y, z",
        smooth: true,
    },
    Operator {
        name: "rows of products",
        components: &[("a", "[]f64")],
        neutral: "units",
        body: "let m: i64 = size(la, 0)
            let z: []f64 = map m [ra, la] (x: f64, y: f64) { let p: f64 = mul.f64(y, x) in p }",
        results: "z",
        smooth: true,
    },
    Operator {
        name: "rows of scaled minima",
        components: &[("a", "[]f64")],
        neutral: "ones",
        body: "let z: []f64 = map 2i64 [la, ws, ra] (x: f64, t: f64, y: f64) {
                let p: f64 = min.f64(x, y) let q: f64 = mul.f64(p, t) in q }",
        results: "z",
        smooth: false,
    },
    Operator {
        name: "matrices",
        components: &[("a", "[][]f64")],
        neutral: "eye",
        body: "let z: [][]f64 = map 2i64 [la] (row: []f64) {
                let t: [][]f64 = rearrange([1, 0], ra)
                let out: []f64 = map 2i64 [t] (col: []f64) {
                    let ps: []f64 = map 2i64 [row, col] (x: f64, y: f64) { let p: f64 = mul.f64(x, y) in p }
                    let s: f64 = reduce 2i64 [0.0f64] [ps] (g: f64, h: f64) { let k: f64 = add.f64(g, h) in k }
                    in s
                }
                in out
            }",
        results: "z",
        smooth: true,
    },
    Operator {
        name: "shortest paths",
        components: &[("a", "[][]f64")],
        neutral: "square",
        body: "let z: [][]f64 = map 2i64 [la] (row: []f64) {
                let t: [][]f64 = rearrange([1, 0], ra)
                let out: []f64 = map 2i64 [t] (col: []f64) {
                    let ps: []f64 = map 2i64 [row, col] (x: f64, y: f64) { let p: f64 = add.f64(x, y) in p }
                    let s: f64 = reduce 2i64 [f64.inf] [ps] (g: f64, h: f64) { let k: f64 = min.f64(g, h) in k }
                    in s
                }
                in out
            }",
        results: "z",
        smooth: false,
    },
    Operator {
        name: "the row with the largest first number",
        components: &[("a", "[]f64")],
        neutral: "lows",
        body: "let x: f64 = la[0i64] let y: f64 = ra[0i64] let g: bool = le.f64(y, x)
            let z: []f64 = if g { in la } else { in ra }",
        results: "z",
        smooth: false,
    },
];

impl Operator {
    /// The program with the arrays, the free variables and the elements that neutral elements are made of as arguments.
    fn program(&self, fold: &str) -> String {
        let array = |t: &str| format!("[]{t}");
        let params: Vec<String> =
            self.components.iter().map(|(x, t)| format!("{x}s: {}", array(t))).collect();
        let side = |s: &str| {
            let params = self.components.iter().map(|(x, t)| format!("{s}{x}: {t}"));
            params.collect::<Vec<_>>().join(", ")
        };
        let outs: Vec<String> = self
            .components
            .iter()
            .map(|(_, t)| if fold == "scan" { array(t) } else { (*t).to_string() })
            .collect();
        let pattern: Vec<String> = outs.iter().enumerate().map(|(k, t)| format!("out{k}: {t}")).collect();
        let names: Vec<String> = (0..outs.len()).map(|k| format!("out{k}")).collect();
        let arrays: Vec<String> = self.components.iter().map(|(x, _)| format!("{x}s")).collect();
        format!(
            "fun f(n: i64, c: f64, ws: []f64, one: f64, ones: []f64, square: [][]f64, {}): {} {{
                let lows: []f64 = replicate([2i64], -f64.inf)
                let units: []f64 = replicate([2i64], 1.0f64)
                let e1: []f64 = array(1.0f64, 0.0f64): f64
                let e2: []f64 = array(0.0f64, 1.0f64): f64
                let eye: [][]f64 = array(e1, e2): []f64
                let {} = {fold} n [{}] [{}] ({}, {}) {{ {} in {} }}
                in {}
            }}",
            params.join(", "),
            outs.join(", "),
            pattern.join(", "),
            self.neutral,
            arrays.join(", "),
            side("l"),
            side("r"),
            self.body,
            self.results,
            names.join(", ")
        )
    }

    fn args(&self, n: usize) -> Vec<Value> {
        let mut r = Numbers(3 + n as u64);
        let mut number = || (1.0 + 0.6 * r.next()).abs();
        let mut args = vec![
            Value::i64(n as i64),
            Value::f64(0.9),
            fs(&[0.8, 1.1]),
            Value::f64(1.0 / 0.9),
            fs(&[1.0, 1.0]),
            Value::f64_array(&[2, 2], &[1.0, 0.25, 0.0, 1.0]),
        ];
        for (_, ty) in self.components {
            let mut many = |count: usize| (0..count).map(|_| number()).collect::<Vec<f64>>();
            args.push(match *ty {
                "i64" => Value::i64s(&vec![1; n]),
                "f64" => fs(&many(n)),
                "[]f64" => Value::f64_array(&[n, 2], &many(2 * n)),
                _ => Value::f64_array(&[n, 2, 2], &many(4 * n)),
            });
        }
        args
    }
}

const SCANS: [ScanRule; 4] = [ScanRule::Chosen, ScanRule::Jacobians, ScanRule::Lifted, ScanRule::Backward];

#[test]
fn every_scan_rule_is_right_for_every_operator() {
    for o in OPERATORS {
        for scan in SCANS {
            let config = Config { scan, ..Config::default() };
            for n in [0, 1, 2, 5] {
                if let Some(reason) = mismatch(&o.program("scan"), &o.args(n), &config) {
                    panic!("{}, {n} elements, {scan:?}: {reason}", o.name);
                }
            }
        }
    }
}

#[test]
fn every_reduce_rule_is_right_for_every_operator() {
    use ReduceRule::{Blocks, Chosen, Prefixes, TwoScans};
    for o in OPERATORS {
        for reduce in [Chosen, TwoScans, Prefixes, Blocks] {
            // Brackets that the interpreter does not use move kinks and last bits: see the test of blocks.
            if reduce == Blocks || reduce == TwoScans && !o.smooth {
                continue;
            }
            for scan in SCANS {
                let config = Config { reduce, scan, ..Config::default() };
                for n in [0, 1, 2, 5] {
                    if let Some(reason) = mismatch(&o.program("reduce"), &o.args(n), &config) {
                        panic!("{}, {n} elements, {reduce:?}, {scan:?}: {reason}", o.name);
                    }
                }
            }
        }
    }
}

/// Results of the derivative for a random cotangent, under a schedule.
fn derivative(
    text: &str,
    args: &[Value],
    config: &Config,
    seed: Option<u64>,
) -> (Vec<Vec<f64>>, Counts, Program) {
    let mut program = parse(text);
    let f = first(&program);
    let plain = pullback_interp::core::run(&program, f, args.to_vec(), &Options::default()).expect("runs");
    let id = add_vjp(&mut program, f, config).expect("supported");
    let mut r = Numbers(11);
    let results = program.funs[f].results.clone();
    let bars = results.iter().zip(&plain.results).filter_map(|(t, v)| direction(&program, t, v, &mut r));
    let all: Vec<Value> = args.iter().cloned().chain(bars).collect();
    let options = Options { schedule_seed: seed, ..Options::default() };
    let out = pullback_interp::core::run(&program, id, all, &options).expect("runs");
    (out.results.iter().map(flat).collect(), out.counts, program)
}

fn flat(v: &Value) -> Vec<f64> {
    match v {
        Value::Array(a) => a.elements().flat_map(|x| flat(&x)).collect(),
        Value::Scalar(s) => vec![s.as_f64()],
        other => panic!("{other:?}"),
    }
}

fn close(x: &[Vec<f64>], y: &[Vec<f64>]) -> bool {
    let near = |a: &f64, b: &f64| (a - b).abs() <= 1e-9 * (1.0 + b.abs());
    x.len() == y.len()
        && x.iter().zip(y).all(|(x, y)| x.len() == y.len() && x.iter().zip(y).all(|(a, b)| near(a, b)))
}

/// Operators that are associative, also in their derivatives, at the numbers used here.
fn associative() -> impl Iterator<Item = &'static Operator> {
    OPERATORS.iter().filter(|o| {
        !matches!(o.name, "clipped product" | "rows of scaled minima" | "free array" | "shortest paths")
    })
}

#[test]
fn lifted_operators_are_associative() {
    // Under a schedule, scans run in blocks of random sizes with their partial results combined: the operators of the
    // emitted scans must be associative for the derivative to stay the same.
    for o in associative() {
        for scan in SCANS {
            let config = Config { scan, ..Config::default() };
            for fold in ["scan", "reduce"] {
                let (text, args) = (o.program(fold), o.args(17));
                let (plain, ..) = derivative(&text, &args, &config, None);
                for seed in 0..6 {
                    let (shuffled, ..) = derivative(&text, &args, &config, Some(seed));
                    assert!(
                        close(&shuffled, &plain),
                        "{} {fold} {scan:?} {seed}: {shuffled:?} {plain:?}",
                        o.name
                    );
                }
            }
        }
    }
}

#[test]
fn blocks_agree_with_prefixes() {
    for o in associative() {
        for n in [1, 2, 3, 10] {
            let (text, args) = (o.program("reduce"), o.args(n));
            let of = |reduce| derivative(&text, &args, &Config { reduce, ..Config::default() }, None).0;
            assert!(close(&of(ReduceRule::Blocks), &of(ReduceRule::Prefixes)), "{}, {n} elements", o.name);
        }
    }
}

/// Span of the derivative at two sizes.
fn spans(o: &Operator, fold: &str, config: &Config) -> (u64, u64) {
    let span = |n| derivative(&o.program(fold), &o.args(n), config, None).1.span;
    (span(32), span(1024))
}

#[test]
fn parallel_rules_keep_the_depth_logarithmic() {
    for o in OPERATORS {
        for fold in ["scan", "reduce"] {
            let (small, large) = spans(o, fold, &Config::default());
            // 32 to 1024 elements: a logarithm doubles, a root grows 5.7-fold, a line 32-fold.
            let parallel = o.name != "shortest paths";
            assert_eq!(large < 3 * small, parallel, "{} {fold}: {small} {large}", o.name);
        }
    }
    let affine = &OPERATORS[1];
    let backward = Config { scan: ScanRule::Backward, ..Config::default() };
    let (small, large) = spans(affine, "scan", &backward);
    assert!(large > 20 * small, "{small} {large}");
    let blocks = Config { reduce: ReduceRule::Blocks, ..Config::default() };
    let (small, large) = spans(OPERATORS.last().expect("some"), "reduce", &blocks);
    assert!(large < 10 * small, "{small} {large}");
}

/// Work of the derivative over work of the program.
fn ratio(o: &Operator, fold: &str, n: usize, config: &Config) -> f64 {
    let (text, args) = (o.program(fold), o.args(n));
    let program = parse(&text);
    let (_, plain) = common::run(&program, first(&program), &args);
    derivative(&text, &args, config, None).1.work as f64 / plain.work as f64
}

#[test]
fn the_work_stays_a_constant_factor() {
    for o in OPERATORS {
        for fold in ["scan", "reduce"] {
            for scan in SCANS {
                let config = Config { scan, ..Config::default() };
                let (small, large) = (ratio(o, fold, 64, &config), ratio(o, fold, 512, &config));
                println!("{:45} {fold:7} {scan:10?} {large:.1}", o.name);
                assert!(large <= 1.15 * small, "{} {fold} {scan:?}: {small} {large}", o.name);
            }
        }
    }
}

#[test]
fn dense_jacobians_are_not_multiplied() {
    // Associative, with a neutral element on the left only, which is what scans need.
    let dense = Operator {
        name: "weighted by sums",
        components: &[("a", "f64"), ("b", "f64"), ("c", "f64"), ("d", "f64"), ("e", "f64")],
        neutral: "1.0f64, 0.0f64, 0.0f64, 0.0f64, 0.0f64",
        body: "let s: f64 = add.f64(la, lb) let t: f64 = add.f64(s, lc) let u: f64 = add.f64(t, ld)
            let m: f64 = add.f64(u, le) let v: f64 = mul.f64(m, ra) let w: f64 = mul.f64(m, rb)
            let x: f64 = mul.f64(m, rc) let y: f64 = mul.f64(m, rd) let z: f64 = mul.f64(m, re)",
        results: "v, w, x, y, z",
        smooth: true,
    };
    for scan in SCANS {
        let config = Config { scan, ..Config::default() };
        assert_eq!(mismatch(&dense.program("scan"), &dense.args(5), &config), None, "{scan:?}");
    }
    let of = |scan| ratio(&dense, "scan", 64, &Config { scan, ..Config::default() });
    let (chosen, lifted, jacobians) = (of(ScanRule::Chosen), of(ScanRule::Lifted), of(ScanRule::Jacobians));
    assert!(chosen == lifted && 1.5 * lifted < jacobians, "{chosen} {lifted} {jacobians}");
}

#[test]
fn a_loop_inside_an_operator_makes_two_scans_grow() {
    // CE15: the cost of the operator is the number of elements that its right argument stands for.
    let powers = OPERATORS.iter().find(|o| o.name == "powers as loops").expect("is there");
    let chosen = Config::default();
    let two_scans = Config { reduce: ReduceRule::TwoScans, ..Config::default() };
    let (small, large) = (ratio(powers, "reduce", 16, &chosen), ratio(powers, "reduce", 256, &chosen));
    assert!(large <= 1.15 * small, "{small} {large}");
    let (small, large) = (ratio(powers, "reduce", 16, &two_scans), ratio(powers, "reduce", 256, &two_scans));
    assert!(large > 6.0 * small, "two scans do not show the growth: {small} {large}");
}

/// The forward derivative of the program's first function as a function.
fn with_jvp(text: &str) -> (Program, FunId, FunId) {
    let mut program = parse(text);
    let f = first(&program);
    let fun = program.funs[f].clone();
    let wanted = vec![true; fun.params.len()];
    let lam = Lam { params: fun.params, body: fun.body };
    let derived = pullback_ad::forward::jvp(&mut program, &lam, &wanted).expect("supported");
    let id = common::add_function(&mut program, "f_jvp", derived);
    (program, f, id)
}

fn tangents(program: &Program, f: FunId, args: &[Value]) -> Vec<Value> {
    let mut r = Numbers(5);
    let params = program.funs[f].params.iter().zip(args);
    params.filter_map(|(&p, v)| direction(program, &program.vars[p].ty, v, &mut r)).collect()
}

#[test]
fn forward_mode_uses_the_dual_operator() {
    for o in OPERATORS {
        for fold in ["scan", "reduce"] {
            let (program, f, id) = with_jvp(&o.program(fold));
            let run = |n: usize| {
                let args = o.args(n);
                let dots = tangents(&program, f, &args);
                let all: Vec<Value> = args.iter().chain(&dots).cloned().collect();
                let (results, counts) = common::run(&program, id, &all);
                let oracle = pullback_interp::dual::jvp(&program, f, &args, &dots, &Options::default());
                let oracle = oracle.expect("runs");
                let (values, mine) = results.split_at(oracle.results.len());
                assert_eq!(values, oracle.results, "{} {fold}: primal results are bit-equal", o.name);
                // The oracle also has tangents, of nothing, for integers.
                let mine: Vec<f64> = mine.iter().flat_map(flat).collect();
                let theirs: Vec<f64> = oracle.tangents.iter().flat_map(flat).collect();
                assert!(close(&[mine], &[theirs]), "{} {fold}, {n} elements", o.name);
                counts.span
            };
            let (small, large) = (run(32), run(1024));
            run(0);
            assert!(large < 3 * small, "{} {fold}: span {small} {large}", o.name);
        }
    }
}

#[test]
fn of_equal_elements_the_first_one_varies_in_every_schedule() {
    let text = "fun f(n: i64, a: []f64): f64 {
        let y: f64 = reduce_comm n [-f64.inf] [a] (u: f64, v: f64) { let w: f64 = max.f64(u, v) in w }
        in y
    }";
    let (program, _, id) = with_jvp(text);
    let args = [Value::i64(6), fs(&[1.0, 3.0, 3.0, 0.5, 3.0, 2.0]), fs(&[1.0, 20.0, 30.0, 4.0, 50.0, 6.0])];
    for seed in 0..20 {
        let options = Options { schedule_seed: Some(seed), ..Options::default() };
        let out = pullback_interp::core::run(&program, id, args.to_vec(), &options).expect("runs");
        assert_eq!(out.results, [Value::f64(3.0), Value::f64(20.0)], "schedule {seed}");
    }
    let bars = [Value::i64(6), fs(&[1.0, 3.0, 3.0, 0.5, 3.0, 2.0]), Value::f64(1.0)];
    let mut program = parse(text);
    let f = first(&program);
    let id = add_vjp(&mut program, f, &Config::default()).expect("supported");
    for seed in 0..20 {
        let options = Options { schedule_seed: Some(seed), ..Options::default() };
        let out = pullback_interp::core::run(&program, id, bars.to_vec(), &options).expect("runs");
        assert_eq!(out.results[1], fs(&[0.0, 1.0, 0.0, 0.0, 0.0, 0.0]), "schedule {seed}");
    }
}

/// The first number that is equal to the maximum varies: zeros are equal, NaN is passed over, and where the neutral element is
/// as large, or nothing is a number, nothing varies.
#[test]
fn of_zeros_and_numbers_that_are_none_the_right_one_varies() {
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    let cases: [(f64, &[f64], Option<usize>); 9] = [
        (-inf, &[nan, -0.0, 0.0, -1.0], Some(1)),
        (-inf, &[-1.0, nan, 0.0, -0.0, nan], Some(2)),
        (-inf, &[nan, nan], None),
        (-inf, &[-inf, nan], None),
        (nan, &[nan, nan, nan], None),
        (nan, &[nan, -inf, nan, -inf], Some(1)),
        (2.0, &[1.0, 2.0, 2.0], None),
        (-inf, &[], None),
        (nan, &[], None),
    ];
    for (operator, sign) in [("max", 1.0), ("min", -1.0)] {
        for (neutral, xs, winner) in cases {
            let e = match sign * neutral {
                x if x.is_nan() => "f64.nan".to_string(),
                x if x.is_infinite() => if x < 0.0 { "-f64.inf" } else { "f64.inf" }.to_string(),
                x => format!("{x:.1}f64"),
            };
            let text = format!(
                "fun f(n: i64, a: []f64): f64 {{
                    let y: f64 = reduce_comm n [{e}] [a] (u: f64, v: f64) {{ let w: f64 = {operator}.f64(u, v) in w }}
                    in y
                }}"
            );
            let mut program = parse(&text);
            let f = first(&program);
            let id = add_vjp(&mut program, f, &Config::default()).expect("supported");
            let xs: Vec<f64> = xs.iter().map(|x| sign * x).collect();
            let mut bars = vec![0.0; xs.len()];
            winner.into_iter().for_each(|k| bars[k] = 5.0);
            let args = [Value::i64(xs.len() as i64), fs(&xs), Value::f64(5.0)];
            for seed in 0..20 {
                let options = Options { schedule_seed: Some(seed), ..Options::default() };
                let out = pullback_interp::core::run(&program, id, args.to_vec(), &options).expect("runs");
                assert_eq!(out.results[1], fs(&bars), "{operator} from {e}, {xs:?}, schedule {seed}");
            }
        }
    }
}
