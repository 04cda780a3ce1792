//! The work of the verifier grows with the code, by count: from a thousand instructions to thirty thousand, an instruction costs at most one and
//! a half times as much.

#![allow(clippy::print_stdout, reason = "a test that says how much it saw")]

use crate::common::parse;
use pullback_kernel::schedule::{Model, Options, schedule};
use pullback_kernel::verify::verify;
use pullback_kernel::{Module, lower, size};

/// A program of this shape with so many parts.
type Family = (&'static str, fn(usize) -> String);

fn function(lines: &[String], result: &str) -> String {
    format!("fun f(a: []f64, k: i64): f64 {{ let n: i64 = size(a, 0)\n{}\nin {result} }}", lines.join("\n"))
}

/// Arrays made one from the other, all there to the end; each is summed.
fn arrays(count: usize) -> String {
    let mut lines = vec!["let s_0: f64 = a[0i64]".to_string()];
    for k in 1..=count {
        let from = if k == 1 { "a".to_string() } else { format!("b_{}", k - 1) };
        lines.push(format!(
            "let b_{k}: []f64 = scan n [0.0f64] [{from}] (x_{k}: f64, y_{k}: f64) {{
                let z_{k}: f64 = add.f64(x_{k}, y_{k}) in z_{k} }}
            let e_{k}: f64 = b_{k}[0i64]
            let s_{k}: f64 = add.f64(s_{}, e_{k})",
            k - 1
        ));
    }
    function(&lines, &format!("s_{count}"))
}

/// Loops that hand an array on, each with another array inside.
fn states(count: usize) -> String {
    let mut lines = vec!["let c_0: []f64 = map n [a] (o: f64) { let p: f64 = add.f64(o, 1.0f64) in p }".to_string()];
    for k in 1..=count {
        lines.push(format!(
            "let c_{k}: []f64 = loop (v_{k}: []f64 = c_{}) for i_{k} < k {{
                let w_{k}: []f64 = scan n [0.0f64] [v_{k}] (x_{k}: f64, y_{k}: f64) {{
                    let z_{k}: f64 = add.f64(x_{k}, y_{k}) in z_{k} }}
                in w_{k} }}",
            k - 1
        ));
    }
    lines.push(format!("let e: f64 = c_{count}[0i64]"));
    function(&lines, "e")
}

/// Branches one after the other, each with an array in either arm.
fn branches(count: usize) -> String {
    let mut lines = vec!["let s_0: f64 = a[0i64]".to_string()];
    let arm = |k: usize, t: &str, op: &str| {
        format!(
            "let b_{k}{t}: []f64 = scan n [0.0f64] [a] (x_{k}{t}: f64, y_{k}{t}: f64) {{
                let z_{k}{t}: f64 = {op}.f64(x_{k}{t}, y_{k}{t}) in z_{k}{t} }}
            let e_{k}{t}: f64 = b_{k}{t}[0i64]
            in e_{k}{t}"
        )
    };
    for k in 1..=count {
        lines.push(format!(
            "let q_{k}: bool = eq.i64(k, {k}i64)
            let r_{k}: f64 = if q_{k} {{ {} }} else {{ {} }}
            let s_{k}: f64 = add.f64(s_{}, r_{k})",
            arm(k, "_t", "add"),
            arm(k, "_f", "max"),
            k - 1
        ));
    }
    function(&lines, &format!("s_{count}"))
}

/// One loop over time with many arrays in each iteration.
fn iteration(count: usize) -> String {
    let mut inside = vec!["let s_0: f64 = v[0i64]".to_string()];
    for k in 1..=count {
        inside.push(format!(
            "let b_{k}: []f64 = scan n [0.0f64] [v] (x_{k}: f64, y_{k}: f64) {{
                let z_{k}: f64 = add.f64(x_{k}, y_{k}) in z_{k} }}
            let e_{k}: f64 = b_{k}[0i64]
            let s_{k}: f64 = add.f64(s_{}, e_{k})",
            k - 1
        ));
    }
    let last = format!("let next: []f64 = map n [v] (o: f64) {{ let p: f64 = add.f64(o, s_{count}) in p }} in next");
    let body = format!("{}\n{last}", inside.join("\n"));
    let lines = [
        format!("let c: []f64 = loop (v: []f64 = a) for i < k {{ {body} }}"),
        "let e: f64 = c[0i64]".to_string(),
    ];
    function(&lines, "e")
}

const FAMILIES: [Family; 4] =
    [("arrays", arrays), ("states", states), ("branches", branches), ("iteration", iteration)];

fn instructions(module: &Module) -> usize {
    module.functions.iter().map(|f| size(&f.body)).sum()
}

/// Instructions and work, lowered and scheduled for machine code.
fn costs(text: &str) -> [(f64, f64); 2] {
    let (program, f) = parse(text);
    let (module, _) = lower(&program, f).expect("native");
    let mut scheduled = module.clone();
    schedule(&mut scheduled, &Options::new(8, Model::machine(8)));
    [module, scheduled].map(|m| (instructions(&m) as f64, verify(&m).work as f64))
}

#[test]
fn work_grows_with_the_code() {
    for (name, family) in FAMILIES {
        let small = 10;
        let [lowered, _] = costs(&family(small));
        let of = |instructions: f64| (instructions / lowered.0 * small as f64) as usize;
        let (short, long) = (costs(&family(of(1_000.0))), costs(&family(of(30_000.0))));
        for (way, (short, long)) in ["lowered", "scheduled"].into_iter().zip(short.into_iter().zip(long)) {
            let each = [short.1 / short.0, long.1 / long.0];
            println!("{name}, {way}: {} and {} instructions, work {each:.1?} for each", short.0, long.0);
            assert!(each[1] <= 1.5 * each[0], "{name}, {way}: {each:?}");
        }
    }
}
