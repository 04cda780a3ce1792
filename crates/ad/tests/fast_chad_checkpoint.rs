//! Loops with attributes: the same derivatives whatever a loop keeps, and counts of what runs again.

use crate::common::{add_function, add_vjp, adjoint, first, mismatch, mismatch_of, parse, run};
use pullback_ad::fast_chad::{Config, iterations_run_again, vjp_with};
use pullback_core::{Lam, Value};

fn f(x: f64) -> Value {
    Value::f64(x)
}
fn fs(xs: &[f64]) -> Value {
    Value::f64s(xs)
}
fn n(x: i64) -> Value {
    Value::i64(x)
}

const ATTRIBUTES: [&str; 16] = [
    "",
    "#[tape(all)]",
    "#[tape(carry)]",
    "#[tape(sqrt)]",
    "#[stripmine(1)]",
    "#[stripmine(2)]",
    "#[stripmine(3)]",
    "#[stripmine(64)]",
    "#[tape(revolve(1))]",
    "#[tape(revolve(2))]",
    "#[tape(revolve(3))]",
    "#[tape(limit(300))]",
    "#[tape(carry)] #[stripmine(2)]",
    "#[tape(near(1, 1))]",
    "#[tape(near(200, 1))]",
    "#[tape(near(100000, 1))]",
];

/// The derivative of the program is right with each attribute in place of `ATTR`.
fn every_attribute(text: &str, args: Vec<Value>) {
    adjoint(&text.replace("ATTR", "#[tape(limit(300))]"), args.clone());
    every_attribute_but_limits(text, args);
}

fn every_attribute_but_limits(text: &str, args: Vec<Value>) {
    for attribute in ATTRIBUTES.into_iter().filter(|a| !a.contains("limit")) {
        adjoint(&text.replace("ATTR", attribute), args.clone());
    }
}

/// The derivative of the derivative too.
fn twice(text: &str, args: &[Value]) {
    for attribute in ATTRIBUTES {
        let mut program = parse(&text.replace("ATTR", attribute));
        let f = first(&program);
        let id = add_vjp(&mut program, f, &Config::default()).expect("supported");
        let fun = program.funs[id].clone();
        let lam = Lam { params: fun.params, body: fun.body };
        let lam = pullback_core::rename::copy_lam(&mut program, &lam, &Default::default());
        let wanted = vec![true; lam.params.len()];
        let second = vjp_with(&mut program, &lam, &wanted, &Config::default()).expect("supported twice");
        let second = add_function(&mut program, "second", second);
        let results = run(&program, f, args).0;
        let bars = results.iter().filter(|v| !v.floats().is_empty()).cloned();
        let all: Vec<Value> = args.iter().cloned().chain(bars).collect();
        if let Some(reason) = mismatch_of(&program, id, second, &all) {
            panic!("{attribute}: {reason}");
        }
    }
}

const SCALARS: &str = "fun f(n: i64, x: f64, c: f64): f64, f64 {
    let y: f64, z: f64 = loop ATTR (s: f64 = x, t: f64 = 1.0f64) for i: i64 < n {
        let k: f64 = convert.i64.f64(i)
        let u: f64 = mul.f64(s, c)
        let v: f64 = sin.f64(u)
        let w: f64 = mul.f64(t, v)
        let d: f64 = add.f64(w, k)
        let q: f64 = cos.f64(d)
        in v, q
    }
    in y, z
}";

const IN_PLACE: &str = "fun f(n: i64, x: f64, c: f64, a: []f64): f64, []f64 {
    let y: f64, z: []f64 = loop ATTR (s: f64 = x, t: []f64 = a) for i: i64 < n {
        let u: f64 = mul.f64(s, c)
        let v: f64 = sin.f64(u)
        let p: f64 = t[i]
        let q: f64 = mul.f64(v, p)
        let r: f64 = mul.f64(q, q)
        let w: []f64 = update(t, [i], r)
        in q, w
    }
    in y, z
}";

const WHILE: &str = "fun f(x: f64, c: f64, b: []f64): f64, []f64 {
    let y: f64, k: i64, z: []f64 = loop ATTR (s: f64 = x, j: i64 = 0i64, e: []f64 = b) while { let go: bool = lt.f64(s, 10.0f64) in go } {
        let p: f64 = b[j]
        let t: f64 = mul.f64(s, p)
        let u: f64 = mul.f64(t, c)
        let o: i64 = sub.i64(1i64, j)
        let g: []f64 = map 2i64 [e] (v: f64) { let w: f64 = mul.f64(v, s) let h: f64 = sin.f64(w) in h }
        in u, o, g
    }
    in y, z
}";

const SUMS: &str = "fun f(n: i32, x: f64, c: f64): f64 {
    let s0: (#none | #some f64) = inject(0): (#none | #some f64)
    let t0: (f64, i64) = tuple(x, 3i64)
    let y: (#none | #some f64), z: (f64, i64) = loop ATTR (s: (#none | #some f64) = s0, t: (f64, i64) = t0) for i: i32 < n {
        let a: f64 = proj(t, 0)
        let k: i64 = proj(t, 1)
        let q: f64 = match s
            case () { let a1: f64 = mul.f64(a, 2.0f64) in a1 }
            case (p: f64) { let a2: f64 = mul.f64(p, a) let a3: f64 = sin.f64(a2) in a3 }
        let b: f64 = mul.f64(q, c)
        let o: (#none | #some f64) = inject(1, b): (#none | #some f64)
        let m: i64 = add.i64(k, 1i64)
        let kf: f64 = convert.i64.f64(k)
        let w: f64 = div.f64(a, kf)
        let e: (f64, i64) = tuple(w, m)
        in o, e
    }
    let r: f64 = proj(z, 0)
    let v: f64 = match y
        case () { in r }
        case (p4: f64) { let a4: f64 = mul.f64(p4, r) in a4 }
    in v
}";

const NESTED: &str = "fun f(n: i64, m: i64, x: f64, a: []f64): f64, []f64 {
    let ys: []f64 = map m [a] (v: f64) {
        let y: f64 = loop ATTR (s: f64 = v) for i: i64 < n {
            let z: f64 = loop ATTR (q: f64 = s) for j: i64 < i {
                let g: f64 = mul.f64(q, x)
                let e: f64 = a[j]
                let d: f64 = add.f64(g, e)
                let h: f64 = sin.f64(d)
                in h
            }
            let c: bool = lt.f64(z, 0.0f64)
            let r: f64 = if c { let r1: f64 = mul.f64(z, x) in r1 } else { let r2: f64 = mul.f64(z, s) in r2 }
            in r
        }
        in y
    }
    let total: f64 = reduce m [0.0f64] [ys] (u: f64, w: f64) { let o: f64 = add.f64(u, w) in o }
    in total, ys
}";

#[test]
fn scalars_under_every_attribute() {
    for k in [0, 1, 2, 3, 7, 10] {
        every_attribute(SCALARS, vec![n(k), f(0.7), f(1.3)]);
    }
    every_attribute(SCALARS, vec![n(-2), f(0.7), f(1.3)]);
}

#[test]
fn arrays_updated_in_place_under_every_attribute() {
    for k in [0, 1, 3, 6] {
        every_attribute(IN_PLACE, vec![n(k), f(0.7), f(1.3), fs(&[0.5, -0.25, 2.0, 0.3, 0.2, 0.1])]);
    }
}

#[test]
fn while_loops_under_every_attribute() {
    for x in [11.0, 6.0, 1.0, 0.01] {
        every_attribute(WHILE, vec![f(x), f(2.0), fs(&[1.5, 0.9])]);
    }
}

#[test]
fn sums_and_products_under_every_attribute() {
    for k in [0, 1, 2, 5] {
        every_attribute(SUMS, vec![Value::Scalar(pullback_prim::ScalarValue::I32(k)), f(0.7), f(1.3)]);
    }
}

#[test]
fn nested_loops_in_maps_under_every_attribute() {
    // A limit is shared by the iterations of the map.
    let limit = NESTED.replace("ATTR", "#[tape(limit(5000))]");
    adjoint(&limit, vec![n(5), n(5), f(0.7), fs(&[0.5, -0.25, 2.0, 0.3, 0.1])]);
    let text = NESTED.replace("loop ATTR (q", "loop (q");
    every_attribute_but_limits(&text, vec![n(5), n(5), f(0.7), fs(&[0.5, -0.25, 2.0, 0.3, 0.1])]);
    every_attribute_but_limits(NESTED, vec![n(5), n(5), f(0.7), fs(&[0.5, -0.25, 2.0, 0.3, 0.1])]);
}

#[test]
fn second_derivatives_under_every_attribute() {
    twice(SCALARS, &[n(4), f(0.7), f(1.3)]);
    twice(IN_PLACE, &[n(3), f(0.7), f(1.3), fs(&[0.5, -0.25, 2.0])]);
    twice(WHILE, &[f(1.0), f(2.0), fs(&[1.5, 0.9])]);
    twice(SUMS, &[Value::Scalar(pullback_prim::ScalarValue::I32(3)), f(0.7), f(1.3)]);
}

/// `T(l, s)` by the recurrence of Griewank and Walther, and the largest `m` for which it is attained.
fn by_recurrence(l: usize, s: usize) -> Vec<Vec<(u64, usize)>> {
    let mut t = vec![vec![(0, 0); s + 1]; l + 1];
    for l in 2..=l {
        t[l][1] = ((l * (l - 1) / 2) as u64, l - 1);
        for s in 2..=s {
            let steps = (1..l).map(|m| (m as u64 + t[l - m][s - 1].0 + t[m][s].0, m));
            t[l][s] = steps.min_by_key(|&(steps, m)| (steps, l - m)).unwrap_or_default();
        }
    }
    t
}

#[test]
fn the_closed_form_of_the_schedule_is_the_recurrence() {
    for (l, s, steps) in [(10, 3, 15), (56, 3, 210), (56, 5, 140), (59, 4, 180)] {
        assert_eq!(iterations_run_again(l, s), steps, "T({l}, {s})");
    }
    let t = by_recurrence(70, 12);
    for (l, row) in t.iter().enumerate() {
        for (s, &(steps, _)) in row.iter().enumerate().skip(1) {
            assert_eq!(iterations_run_again(l as u64, s as u64), steps, "T({l}, {s})");
        }
    }
}

/// How often the body of a loop of `trips` iterations runs in the derivative, from the growth of the cost of primitives as
/// the body gets longer: every run computes a chain of sines that depends on the counter only.
fn runs(attribute: &str, trips: i64) -> u64 {
    let flops = |length: usize| {
        let chain: String = (1..=length).map(|k| format!("let k{k}: f64 = sin.f64(k{})\n", k - 1)).collect();
        let text = format!(
            "fun f(n: i64, x: f64): f64 {{
                let y: f64 = loop {attribute} (s: f64 = x) for i: i64 < n {{
                    let k0: f64 = convert.i64.f64(i)
                    {chain}
                    let u: f64 = mul.f64(s, s)
                    let t: f64 = mul.f64(u, k{length})
                    in t
                }}
                in y
            }}"
        );
        let mut program = parse(&text);
        let main = first(&program);
        let id = add_vjp(&mut program, main, &Config::default()).expect("supported");
        run(&program, id, &[n(trips), f(0.5), f(1.0)]).1.flops
    };
    let one = pullback_prim::Op::Sin;
    let cost = pullback_prim::Prim::Op(one, pullback_prim::Scalar::F64).cost();
    let difference = flops(48) - flops(40);
    assert_eq!(difference % (8 * cost), 0);
    difference / (8 * cost)
}

#[test]
fn each_level_of_a_nest_runs_the_body_once_more() {
    assert_eq!(runs("", 64), 64);
    for (depth, times) in [(1, 2), (2, 3), (3, 4), (6, 7)] {
        assert_eq!(runs(&format!("#[stripmine({depth})]"), 64), 64 * times, "depth {depth}");
    }
    assert_eq!(runs("#[tape(carry)]", 64), 128);
    assert_eq!(runs("#[tape(sqrt)]", 64), 128);
    // A state of 16 bytes: all of it, blocks of 8 of which the last runs once, no block of 9.
    assert_eq!(runs("#[tape(near(1024, 1))]", 64), 64);
    assert_eq!(runs("#[tape(near(1023, 1))]", 64), 128 - 8);
    assert_eq!(runs("#[tape(near(1023, 8))]", 64), 128 - 8);
    assert_eq!(runs("#[tape(near(1023, 9))]", 64), 64);
    for trips in [0, 1, 2, 3, 63, 65, 100] {
        assert!(runs("#[tape(near(16, 1))]", trips) <= 2 * trips as u64);
    }
    // Numbers of iterations that are no powers: never more.
    for trips in [0, 1, 2, 3, 63, 65, 100] {
        assert!(runs("#[stripmine(3)]", trips) <= 4 * trips as u64);
    }
}

#[test]
fn binomial_checkpointing_runs_what_the_recurrence_says() {
    let t = by_recurrence(60, 30);
    for (l, s) in [(10, 3), (56, 3), (56, 5), (59, 4), (20, 1), (20, 20), (20, 30), (1, 3), (2, 1), (2, 2)] {
        // The schedule goes to the last iteration at first. The forward sweep goes there too, but on to the end, so what lies
        // between the last snapshot and there runs again.
        let (mut last, mut left, mut free) = (0, l, s);
        while free > 1 && left > 1 {
            let m = t[left][free].1;
            (last, left, free) = (last + m, left - m, free - 1);
        }
        let expected = l as u64 + t[l][s].0 - last as u64 + l as u64;
        assert_eq!(runs(&format!("#[tape(revolve({s}))]"), l as i64), expected, "T({l}, {s})");
    }
    assert_eq!(runs("#[tape(revolve(3))]", 0), 0);
}

fn error(text: &str, args: &[Value]) -> String {
    let mut program = parse(text);
    let f = first(&program);
    let id = add_vjp(&mut program, f, &Config::default()).expect("supported");
    let out = pullback_interp::core::run(&program, id, args.to_vec(), &Default::default());
    let e = out.expect_err("an error");
    assert!(e.span.is_some(), "without position: {e:?}");
    e.message
}

#[test]
fn a_bound_is_checked() {
    let text = WHILE.replace("ATTR", "#[bound(BOUND)] ATTR");
    let args = vec![f(1.0), f(2.0), fs(&[1.5, 0.9])];
    // 1, 3, 5.4, 16.2: three iterations.
    for bound in ["3", "4", "10"] {
        every_attribute(&text.replace("BOUND", bound), args.clone());
    }
    for bound in ["1", "2"] {
        let text = text.replace("BOUND", bound).replace("ATTR", "");
        let bars = [f(1.0), fs(&[1.0, 1.0])];
        let message = error(&text, &[args.clone(), bars.to_vec()].concat());
        assert!(message.contains(&format!("goes on after {bound} iterations")), "{message}");
    }
}

#[test]
fn a_limit_that_is_too_small_says_how_much_is_needed() {
    let args = [n(10), f(0.7), f(1.3), f(1.0), f(1.0)];
    let message = error(&SCALARS.replace("ATTR", "#[tape(limit(20))]"), &args);
    // A snapshot is two floats and a position, 24 bytes; an iteration stores as much as it reads again.
    let needed: u64 = message.split(' ').filter_map(|w| w.parse().ok()).next().expect("a number");
    assert!((24..200).contains(&needed), "{message}");
    let enough = SCALARS.replace("ATTR", &format!("#[tape(limit({needed}))]"));
    assert_eq!(mismatch(&enough, &args[..3], &Config::default()), None);
    let less = SCALARS.replace("ATTR", &format!("#[tape(limit({}))]", needed - 1));
    error(&less, &args);
}

/// The most floats on tapes at one time, for a loop with one float as state.
fn cells(attribute: &str, trips: i64) -> u64 {
    let text = format!(
        "fun f(n: i64, x: f64): f64 {{
            let y: f64 = loop {attribute} (s: f64 = x) for i: i64 < n {{ let t: f64 = sin.f64(s) in t }}
            in y
        }}"
    );
    let mut program = parse(&text);
    let main = first(&program);
    let id = add_vjp(&mut program, main, &Config::default()).expect("supported");
    let bytes = run(&program, id, &[n(trips), f(0.5), f(1.0)]).1.peak_tape_bytes;
    assert_eq!(bytes % 8, 0);
    bytes / 8
}

#[test]
fn memory_is_bounded_as_the_policies_say() {
    assert_eq!(cells("", 64), 64);
    assert_eq!(cells("#[tape(carry)]", 64), 64);
    // One level holds n^(1/k) states, and k levels are open at a time.
    for (depth, most) in [(1, 64), (2, 16), (3, 12), (6, 12)] {
        assert_eq!(cells(&format!("#[stripmine({depth})]"), 64), most, "depth {depth}");
    }
    assert_eq!(cells("#[tape(sqrt)]", 64), 16);
    assert_eq!(cells("#[tape(sqrt)]", 10_000), 200);
    // Blocks of √n iterations, or as many as fit half of the bytes.
    assert_eq!(cells("#[tape(near(1024, 1))]", 64), 64);
    assert_eq!(cells("#[tape(near(1023, 1))]", 64), 7 + 8, "the last block keeps no state besides");
    assert_eq!(cells("#[tape(near(100, 1))]", 64), 21 + 3);
    assert_eq!(cells("#[tape(near(100, 4))]", 64), 64);
    assert_eq!(cells("#[tape(near(1, 1))]", 64), 64, "no block fits");
    // A snapshot is a state and its position.
    for slots in [1, 2, 5] {
        assert_eq!(cells(&format!("#[tape(revolve({slots}))]"), 64), 2 * slots);
        assert_eq!(cells(&format!("#[tape(revolve({slots}))]"), 1_000), 2 * slots);
    }
    // ⌈log₂ (n + 1)⌉ snapshots.
    assert_eq!(cells("#[stripmine(64)]", 1_000), 20);
    // Everything if it fits, else as many snapshots as fit beside what one iteration stores.
    assert_eq!(cells("#[tape(limit(512))]", 64), 64);
    assert_eq!(cells("#[tape(limit(511))]", 64), 2 * ((511 - 8) / 16));
    assert_eq!(cells("#[tape(limit(100))]", 10_000), 2 * ((100 - 8) / 16));
}

#[test]
fn whole_arrays_are_kept_as_often_as_the_policy_says() {
    // The state is an array of 100 floats that each iteration maps over: 800 bytes, in a box (16) that a tape refers to (16).
    let text = "fun f(n: i64, a: []f64): []f64 {
        let y: []f64 = loop ATTR (s: []f64 = a) for i: i64 < n {
            let t: []f64 = map 100i64 [s] (x: f64) { let u: f64 = sin.f64(x) in u }
            in t
        }
        in y
    }";
    let bytes = |attribute: &str| {
        let mut program = parse(&text.replace("ATTR", attribute));
        let main = first(&program);
        let id = add_vjp(&mut program, main, &Config::default()).expect("supported");
        let ones = fs(&[1.0; 100]);
        run(&program, id, &[n(64), ones.clone(), ones]).1.peak_tape_bytes
    };
    let state = 800 + 32;
    assert_eq!(bytes(""), 64 * state);
    assert_eq!(
        bytes("#[tape(sqrt)]"),
        15 * state + 32,
        "the first state of a block is shared by its two levels"
    );
    let slots = |s: u64| s * (state + 8);
    assert!((slots(4)..=slots(4) + state).contains(&bytes("#[tape(revolve(4))]")));
    assert!(bytes("#[tape(limit(20000))]") <= 20_000);
    assert!(bytes("#[tape(limit(3000))]") <= 3_000);
}

/// Also what the reverse sweep of an iteration copies counts.
#[test]
fn a_limit_holds_in_a_map_whatever_its_width() {
    let text = "fun f(n: i64, k: i64, a: []f64): []f64 {
        let y: []f64 = map k [a] (x: f64) {
            let z: f64 = loop #[tape(limit(3000))] (s: f64 = x) for i: i64 < n { let t: f64 = sin.f64(s) in t }
            in z
        }
        in y
    }";
    let mut program = parse(text);
    let main = first(&program);
    let id = add_vjp(&mut program, main, &Config::default()).expect("supported");
    for width in [1, 2, 4, 5, 7, 10] {
        let ones = fs(&vec![1.0; width]);
        let used = run(&program, id, &[n(500), n(width as i64), ones.clone(), ones]).1.peak_tape_bytes;
        assert!(used <= 3000, "width {width}: {used}");
    }
}

#[test]
fn a_limit_is_shared_by_loops_and_by_the_iterations_of_a_map() {
    // Two outermost loops, one of them in a map over 5 elements; a third is inside the second.
    let text = "fun f(n: i64, m: i64, a: []f64): f64, []f64 {
        let x: f64 = a[0i64]
        let y: f64 = loop (s: f64 = x) for i: i64 < n { let t: f64 = sin.f64(s) in t }
        let ys: []f64 = map 5i64 [a] (v: f64) {
            let z: f64 = loop (s2: f64 = v) for j: i64 < n {
                let w: f64 = loop (s3: f64 = s2) for k: i64 < m { let t2: f64 = cos.f64(s3) in t2 }
                in w
            }
            in z
        }
        in y, ys
    }";
    let args = [n(200), n(3), fs(&[0.1, 0.2, 0.3, 0.4, 0.5])];
    let bytes = |limit: Option<u64>| {
        let mut program = parse(text);
        if let Some(limit) = limit {
            pullback_ad::differentiate::limit_tapes(&mut program, limit);
        }
        let main = first(&program);
        let id = add_vjp(&mut program, main, &Config::default()).expect("supported");
        assert_eq!(mismatch_of(&program, main, id, &args), None);
        let all = [&args[..], &[f(1.0), fs(&[1.0; 5])]].concat();
        run(&program, id, &all).1.peak_tape_bytes
    };
    let free = bytes(None);
    assert!(free >= 8 * (200 + 5 * 200 * 3), "everything: {free}");
    for limit in [100_000, 20_000, 8_000, 4_000] {
        let used = bytes(Some(limit));
        assert!(used <= limit, "{used} bytes with a limit of {limit}");
    }
}

/// Runs and peak of the derivative of a function of a number of iterations and an array, as differentiated by default, and
/// what it returns.
fn by_default(text: &str, near: bool, trips: i64, a: Vec<f64>) -> (u64, Vec<Value>) {
    let mut program = parse(text);
    let main = first(&program);
    let config = Config { near, ..Config::default() };
    let id = add_vjp(&mut program, main, &config).expect("supported");
    let bar = fs(&vec![1.0; a.len()]);
    let (results, counts) = run(&program, id, &[n(trips), fs(&a), bar]);
    (counts.peak_tape_bytes, results)
}

/// 16 MiB of states and more, in a loop that does little for each number, are too many for what is kept by default.
#[test]
fn long_loops_over_arrays_keep_blocks_where_whole_tapes_are_far() {
    let a: Vec<f64> = (0..4000).map(|k| (f64::from(k) * 0.37).sin()).collect();
    let cheap = "let q: f64 = mul.f64(x, x) let u: f64 = sub.f64(x, q) let v: f64 = mul.f64(0.1f64, u)";
    let body = |what: &str| {
        format!(
            "fun f(n: i64, a: []f64): []f64 {{
                let m: i64 = size(a, 0)
                let y: []f64 = loop (s: []f64 = a) for i: i64 < n {{
                    let t: []f64 = map m [s] (x: f64) {{ {what} let w: f64 = add.f64(x, v) in w }}
                    in t
                }}
                in y
            }}"
        )
    };
    let text = body(cheap);
    let state = 4000 * 8;
    // So many iterations are near, one more is not.
    let most = (16 << 20) / (state + 40);
    let (all, _) = by_default(&text, true, most, a.clone());
    assert!(all as i64 >= most * state, "{all}");
    let (all, expected) = by_default(&text, false, most + 1, a.clone());
    let (blocks, results) = by_default(&text, true, most + 1, a.clone());
    assert!(all as i64 > most * state, "{all}");
    assert!((blocks as i64) < 50 * (state + 100), "{blocks}");
    assert_eq!(results, expected);

    // What takes long is kept.
    let sines: String = (1..6).map(|k| format!("let q{k}: f64 = sin.f64(q{}) ", k - 1)).collect();
    let sines = format!("let q0: f64 = sin.f64(x) {sines} let v: f64 = sin.f64(q5)");
    let (all, _) = by_default(&body(&sines), true, most + 1, a.clone());
    assert!(all as i64 > most * state, "{all}");
}

/// Loops in maps and loops, `while` loops and deeper nests keep everything: no code of them runs again.
#[test]
fn what_does_not_qualify_never_runs_again() {
    let blocks = |text: &str| {
        let mut program = parse(text);
        let main = first(&program);
        let id = add_vjp(&mut program, main, &Config::default()).expect("supported");
        let mut found = 0;
        pullback_core::traverse::for_each_stm(&program.funs[id].body, &mut |s| {
            found += usize::from(matches!(s.exp, pullback_core::Exp::Marked(..)));
        });
        found
    };
    let step = "let t: []f64 = map m [s] (x: f64) { let w: f64 = mul.f64(x, x) in w } in t";
    let long = format!("loop (s: []f64 = a) for i: i64 < n {{ {step} }}");
    let fun = |body: &str| {
        format!("fun f(n: i64, a: []f64): []f64 {{ let m: i64 = size(a, 0) let y: []f64 = {body} in y }}")
    };
    assert_eq!(blocks(&fun(&long)), 1);
    assert_eq!(blocks(&fun(&long.replace("loop", "loop #[tape(all)]"))), 0);
    assert_eq!(
        blocks(&fun(&format!(
            "loop (b: []f64 = a) for j: i64 < n {{ let c: []f64 = {} in c }}",
            long.replace("= a", "= b")
        ))),
        0
    );
    let scalars = "loop (s: f64 = 1.0f64) for i: i64 < n { let t: f64 = mul.f64(s, s) in t }";
    assert_eq!(
        blocks(&fun(&format!(
            "map m [a] (x: f64) {{ let z: f64 = {} in z }}",
            scalars.replace("1.0f64", "x")
        ))),
        0
    );
    let condition = "{ let e: f64 = s[0i64] let c: bool = lt.f64(e, 10.0f64) in c }";
    assert_eq!(blocks(&fun(&format!("loop (s: []f64 = a) while {condition} {{ {step} }}"))), 0);
    let product = "let t: []f64 = map m [s] (x: f64) {
        let r: f64 = reduce m [0.0f64] [s] (u: f64, v: f64) { let p: f64 = mul.f64(u, x) let w: f64 = add.f64(p, v) in w } in r
    } in t";
    assert_eq!(blocks(&fun(&format!("loop (s: []f64 = a) for i: i64 < n {{ {product} }}"))), 0);
}
