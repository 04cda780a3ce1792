//! What a call takes at least, by hand.

#[path = "common/text.rs"]
mod text;

use pullback_kernel::{Plan, lower};
use text::parse;

/// The plan of the one function of a core text.
fn plan(text: &str) -> Plan {
    let (program, f) = parse(text);
    let (module, id) = lower(&program, f).expect("native");
    Plan::new(&module, id)
}

#[test]
fn arrays_of_known_sizes_are_added_up() {
    let p = plan(
        "fun f(n: i64, x: f64): []f64, []i32 {
            let m: i64 = add.i64(n, 1i64)
            let is: []i64 = iota(n)
            let a: []f64 = map n [is] (i: i64) { let y: f64 = convert.i64.f64(i) in y }
            let js: []i64 = iota(m)
            let b: []i32 = map m [js] (j: i64) { let k: i32 = convert.i64.i32(j) in k }
            in a, b
        }",
    );
    // 8 n bytes and 4 (n + 1) bytes, each in whole blocks of 64.
    for (n, least) in [(0, 64), (8, 64 + 64), (9, 128 + 64), (1000, 8000 + 4032)] {
        assert_eq!(p.least(&[Some(n), None]).all, least, "n = {n}");
        assert_eq!(p.check(&[Some(n), None], least).map(|b| b.all), Ok(least));
    }
    assert_eq!(p.least(&[None, None]).all, 0, "nothing is known");
    let shortage = p.check(&[Some(1000), None], 8000 + 4031).expect_err("one byte too few");
    assert_eq!((shortage.count, shortage.size, shortage.in_use), (1001, 4, 8000));
    let shortage = p.check(&[Some(i64::MAX / 16), None], 1 << 40).expect_err("more than there can be");
    assert_eq!((shortage.count, shortage.size, shortage.in_use), (i64::MAX as u64 / 16, 8, 0));
}

#[test]
fn branches_on_data_count_what_both_take() {
    let text = |condition: &str| {
        format!(
            "fun f(n: i64, x: f64): f64 {{
                let c: bool = {condition}
                let r: f64 = if c {{
                    let a: []f64 = replicate([n], x)
                    let i: i64 = convert.f64.i64(x)
                    let u: []f64 = update(a, [i], 2.0f64)
                    let y: f64 = u[0i64]
                    in y
                }} else {{
                    let m: i64 = mul.i64(n, 4i64)
                    let a: []f64 = replicate([m], x)
                    let i: i64 = convert.f64.i64(x)
                    let u: []f64 = update(a, [i], 2.0f64)
                    let y: f64 = u[0i64]
                    in y
                }}
                in r
            }}"
        )
    };
    let by_data = plan(&text("lt.f64(x, 0.5f64)"));
    assert_eq!(by_data.least(&[Some(800), None]).all, 6400);
    let by_size = plan(&text("lt.i64(n, 100i64)"));
    assert_eq!(by_size.least(&[Some(8), None]).all, 64);
    assert_eq!(by_size.least(&[Some(800), None]).all, 4 * 6400);
}

#[test]
fn loops_count_one_iteration_and_programs_that_stop_count_what_was_before() {
    let p = plan(
        "fun f(n: i64, steps: i64, x: f64): f64 {
            let r: f64 = loop (s: f64 = x) for i: i64 < steps {
                let a: []f64 = replicate([n], s)
                let k: i64 = convert.f64.i64(s)
                let u: []f64 = update(a, [k], 2.0f64)
                let y: f64 = u[0i64]
                in y
            }
            let small: bool = lt.i64(n, 1000i64)
            let ok: () = assert(small, \"small\", n)
            let m: i64 = mul.i64(n, 3i64)
            let b: []f64 = replicate([m], r)
            let l: i64 = convert.f64.i64(r)
            let v: []f64 = update(b, [l], 2.0f64)
            let z: f64 = v[0i64]
            in z
        }",
    );
    assert_eq!(p.least(&[Some(80), Some(0), None]).all, 3 * 640);
    assert_eq!(p.least(&[Some(80), Some(5), None]).all, 3 * 640, "an iteration gives back what it takes");
    assert_eq!(p.least(&[Some(8000), Some(5), None]).all, 64_000, "the assertion fails");
    assert_eq!(p.least(&[Some(80), None, None]).all, 3 * 640);
}
