//! The compiler's own work grows with the length of the program, not with its square.
//!
//! A family is a program of any length, in one of the forms that code generators write. Its work is the number of instructions that the
//! command executes from the text to the result, counted by Valgrind's cachegrind: the same on every run, whatever else the machine does.
//! Measured at one, four and sixteen times a length. Four times the length may cost at most [`MOST`] times the work: linear work gives 4,
//! sorting a little more, squares give 16. The fixed part of the work is taken off.
//!
//! The gate measures a share of the families, another one every day: the gradient on the vm, at one and four times the length, against a
//! program of one number. `STEP=1` takes all families, `LONG=1` measures sixteen times too, and LLVM. Without Valgrind the test is skipped
//! and says so.

use pullback_testkit::draws::some_of;
use pullback_testkit::on_all_processors;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The most that four times the length may cost.
const MOST: f64 = 5.5;

/// Their work still grows faster (decision 68 names them): `LONG=1` measures them, and they are printed.
const GROWS: &str = "chosen closures";

/// Programs that grow.
struct Family {
    name: &'static str,
    /// The shortest length.
    from: usize,
    /// The length that is run for its slope.
    run: usize,
    text: fn(usize) -> String,
    /// The derivative at this point, from a formula.
    at: f64,
    slope: fn(usize, f64) -> f64,
}

const FAMILIES: &[Family] = &[
    Family { name: "array literal", from: 500, run: 1000, text: literal, at: 0.5, slope: |_, _| 0.5 },
    Family {
        name: "array literal of expressions",
        from: 60,
        run: 120,
        text: expressions,
        at: 0.5,
        slope: |n, x| (0..n).map(|i| i as f64 + 0.5 + x.cos()).sum(),
    },
    Family { name: "scalar lets", from: 60, run: 120, text: lets, at: 0.5, slope: lets_slope },
    Family {
        name: "summands",
        from: 60,
        run: 120,
        text: summands,
        at: 0.5,
        slope: |n, x| (0..n).map(|i| i as f64 + 0.5).map(|k| -k * (k * x).sin()).sum(),
    },
    Family { name: "parentheses", from: 60, run: 120, text: parentheses, at: 0.5, slope: |_, _| 1.0 },
    Family { name: "else if", from: 40, run: 80, text: else_if, at: 7.25, slope: |_, _| 8.5 },
    Family { name: "match of numbers", from: 40, run: 80, text: match_numbers, at: 7.25, slope: |_, _| 7.5 },
    Family {
        name: "functions that call twice",
        from: 16,
        run: 14,
        text: call_twice,
        at: 100.5,
        slope: call_twice_slope,
    },
    Family {
        name: "maps in a row",
        from: 40,
        run: 80,
        text: maps,
        at: 0.5,
        slope: |n, _| (0..n).map(|i| 0.5_f64.powi(i as i32 + 1) * (i % 10) as f64).sum(),
    },
    Family {
        name: "sums of an array",
        from: 40,
        run: 80,
        text: sums,
        at: 0.5,
        slope: |n, _| (0..n).map(|i| 45.0 * (i as f64 + 0.5)).sum(),
    },
    Family { name: "chosen closures", from: 2, run: 12, text: closures, at: 0.35, slope: closures_slope },
];

fn joined(n: usize, between: &str, part: impl Fn(usize) -> String) -> String {
    (0..n).map(part).collect::<Vec<_>>().join(between)
}

fn literal(n: usize) -> String {
    let numbers = joined(n, ", ", |i| format!("{i}.5"));
    format!("entry main (x: f64) : f64 = let a = [{numbers}] in x * a[i64.f64 x % {n}]\n")
}

fn expressions(n: usize) -> String {
    let items = joined(n, ", ", |i| format!("x * {i}.5 + f64.sin x"));
    format!("entry main (x: f64) : f64 = f64.sum [{items}]\n")
}

fn lets(n: usize) -> String {
    let lines = joined(n, "\n", |i| format!("  let x{} = f64.sin x{i} * 1.{i}", i + 1));
    format!("entry main (x: f64) : f64 =\n  let x0 = x\n{lines}\n  in x{n}\n")
}

fn lets_slope(n: usize, x: f64) -> f64 {
    let factor = |i: usize| format!("1.{i}").parse::<f64>().expect("a number");
    (0..n).fold((x, 1.0), |(y, d), i| (y.sin() * factor(i), d * y.cos() * factor(i))).1
}

fn summands(n: usize) -> String {
    format!("entry main (x: f64) : f64 = {}\n", joined(n, " + ", |i| format!("f64.cos (x * {i}.5)")))
}

fn parentheses(n: usize) -> String {
    format!("entry main (x: f64) : f64 = {}x{}\n", "(0.5 + ".repeat(n), ")".repeat(n))
}

fn else_if(n: usize) -> String {
    let arms = joined(n, "\n  else ", |i| format!("if x < {i}.0 then x * {i}.5"));
    format!("entry main (x: f64) : f64 =\n  {arms}\n  else f64.exp x\n")
}

fn match_numbers(n: usize) -> String {
    let cases = joined(n, "\n", |i| format!("  case {i} -> x * {i}.5"));
    format!("entry main (x: f64) : f64 =\n  match i64.f64 x\n{cases}\n  case _ -> f64.exp x\n")
}

fn call_twice(n: usize) -> String {
    let functions =
        joined(n, "\n", |i| format!("def f{} (x: f64) : f64 = f{i} (x * 0.4) + f{i} (x * 0.6)", i + 1));
    // Nothing calls the last one at small points: the calls double with each function.
    format!(
        "def f0 (x: f64) : f64 = f64.sin x\n{functions}\nentry main (x: f64) : f64 = if x > 100 then f{n} x else x\n"
    )
}

fn call_twice_slope(n: usize, x: f64) -> f64 {
    match n {
        0 => x.cos(),
        n => 0.4 * call_twice_slope(n - 1, 0.4 * x) + 0.6 * call_twice_slope(n - 1, 0.6 * x),
    }
}

/// Each map takes what the one before gives, and one element of each is needed. (Arrays of fewer elements are unrolled, some of them.)
fn maps(n: usize) -> String {
    let lines = joined(n, "\n", |i| format!("  let a{} = map (\\v -> v * 0.5 + {i}.5) a{i}", i + 1));
    let elements = joined(n, " + ", |i| format!("a{}[{}]", i + 1, i % 10));
    format!(
        "entry main (x: f64) : f64 =\n  let a0 = map (\\i -> x * f64.i64 i) (iota 100)\n{lines}\n  in {elements}\n"
    )
}

fn sums(n: usize) -> String {
    let terms = joined(n, " + ", |i| format!("f64.sum (map (\\v -> v * {i}.5) a)"));
    format!("entry main (x: f64) : f64 =\n  let a = map (\\i -> x * f64.i64 i) (iota 10)\n  in {terms}\n")
}

fn closures(n: usize) -> String {
    let lines = joined(n, "\n", |i| {
        format!("  let f{} = if x > 0.{i} then (\\v -> f64.sin (f{i} v) + x) else f{i}", i + 1)
    });
    format!("entry main (x: f64) : f64 =\n  let f0 = \\v -> v * x\n{lines}\n  in f{n} x\n")
}

/// Of x * x at first; each function that is chosen takes the sine and adds x.
fn closures_slope(n: usize, x: f64) -> f64 {
    let least = |i: usize| format!("0.{i}").parse::<f64>().expect("a number");
    let chosen = (0..n).filter(|i| x > least(*i));
    chosen.fold((x * x, 2.0 * x), |(y, d), _| (y.sin() + x, d * y.cos() + 1.0)).1
}

fn written(family: &Family, n: usize) -> PathBuf {
    let file =
        PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-{n}.fut", family.name.replace(' ', "-")));
    std::fs::write(&file, (family.text)(n)).expect("the program is written");
    file
}

#[test]
fn long_programs_have_the_right_slope_on_every_executor() {
    for family in FAMILIES {
        let n = family.run;
        let expected = (family.slope)(n, family.at);
        let file = written(family, n);
        for backend in ["interp", "vm", "auto"] {
            let out = Command::new(env!("CARGO_BIN_EXE_pullback"))
                .arg("grad")
                .arg(&file)
                .args(["--arg", &format!("x={:?}", family.at), "--no-cache", "--json", "--backend", backend])
                .output()
                .expect("the command starts");
            assert!(out.status.success(), "{}: {}", family.name, String::from_utf8_lossy(&out.stderr));
            let json: serde_json::Value = serde_json::from_slice(&out.stdout).expect("JSON");
            let slope = json["gradient"]["x"].as_f64().unwrap_or_else(|| panic!("{json}"));
            let error = (slope - expected).abs() / expected.abs().max(1.0);
            assert!(error < 1e-10, "{} on {backend}: {slope} for {expected}", family.name);
        }
    }
}

/// Instructions of the whole command, `None` where there is no Valgrind.
fn work(file: &Path, backend: &str) -> Option<f64> {
    let out = Command::new("valgrind")
        .args(["--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"])
        .arg(env!("CARGO_BIN_EXE_pullback"))
        .arg("grad")
        .arg(file)
        .args(["--arg", "x=0.5", "--no-cache", "--backend", backend])
        .output();
    let out = match out {
        Ok(out) => out,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return None,
        Err(e) => panic!("{e}"),
    };
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{}: {said}", file.display());
    let refs = said.lines().find_map(|l| l.split_once("I ")?.1.trim_start().strip_prefix("refs:"));
    let refs = refs.unwrap_or_else(|| panic!("Valgrind says how many instructions: {said}"));
    Some(refs.trim().replace(',', "").parse().expect("a number"))
}

#[test]
fn the_compiler_works_in_proportion_to_the_text() {
    let long = std::env::var_os("LONG").is_some();
    let backends: &[&str] = if long { &["vm", "llvm"] } else { &["vm"] };
    let lengths: &[usize] = if long { &[1, 4, 16] } else { &[1, 4] };
    let (families, _) = some_of(FAMILIES.iter().filter(|family| long || family.name != GROWS), 6);
    let mut worse = Vec::new();
    for backend in backends {
        let identity = Family {
            name: "identity",
            from: 1,
            run: 1,
            text: |_| "entry main (x: f64) : f64 = x\n".into(),
            at: 1.0,
            slope: |_, _| 1.0,
        };
        let Some(fixed) = work(&written(&identity, 1), backend) else {
            return eprintln!("skipped: no Valgrind is found, {} families are not measured", families.len());
        };
        let runs = families.iter().flat_map(|family| lengths.iter().map(move |by| (family, by)));
        let measured = on_all_processors(runs.collect::<Vec<_>>(), |(family, by)| {
            work(&written(family, family.from * by), backend).expect("Valgrind is there") - fixed
        });
        for (family, works) in families.iter().zip(measured.chunks(lengths.len())) {
            let growth: Vec<f64> = works.windows(2).map(|w| w[1] / w[0]).collect();
            println!("{backend} {}: {works:.0?} instructions, growth {growth:.2?}", family.name);
            if family.name != GROWS && growth.iter().any(|g| *g > MOST) {
                worse.push(format!("{backend} {}: {growth:.2?}", family.name));
            }
        }
    }
    assert!(worse.is_empty(), "work grows faster than the text: {worse:#?}");
}
