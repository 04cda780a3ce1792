//! Malformed programs: each gives a diagnostic with a place and something to do, none a panic or a stack overflow.

use pullback_base::{Diagnostic, RuntimeErrorKind, Severity, SourceMap};
use pullback_core::Value;
use pullback_driver::{Session, Settings};
use pullback_interp::core::Options;

/// The errors of a program; `None` if it is fine.
fn errors(text: &str) -> Option<(Vec<Diagnostic>, SourceMap)> {
    match Session::compile("malformed.fut", text, Settings::default()) {
        Ok(_) => None,
        Err(failed) => Some((failed.diagnostics, failed.sources)),
    }
}

/// Every error has a message, a place inside the text and a hint, and can be shown.
fn check(text: &str) -> bool {
    let shown: String = text.chars().take(200).collect();
    let Some((diagnostics, sources)) = errors(text) else { return false };
    let errors: Vec<&Diagnostic> = diagnostics.iter().filter(|d| d.severity == Severity::Error).collect();
    assert!(!errors.is_empty(), "refused without an error: {shown}");
    for d in errors {
        assert!(!d.message.is_empty(), "{shown}");
        let span = d.span.unwrap_or_else(|| panic!("no place: {} for {shown}", d.message));
        assert!(span.start <= span.end && span.end as usize <= sources.text(span.file).len(), "{shown}");
        assert!(!d.hints.is_empty(), "no hint: {} for {shown}", d.message);
        assert_ne!(d.code, pullback_base::Code::Internal, "{} for {shown}", d.message);
        let text = d.render(&sources);
        assert!(text.contains("-->"), "{text}");
    }
    true
}

/// Programs with one mistake each, by stage.
const WRONG: &[&str] = &[
    // Tokens.
    "entry main (x: f64) : f64 = x $ 1",
    "entry main (x: f64) : f64 = 1.5g",
    "entry main (x: f64) : f64 = 0x",
    "entry main (x: i64) : i64 = 99999999999999999999",
    "entry main (x: i8) : i8 = x + 300",
    "entry main (x: f64) : f64 = x \u{0}",
    "entry main (x: f64) : f64 = 'ab'",
    "\u{feff}\u{feff}entry",
    // Syntax.
    "entry",
    "entry main",
    "entry main =",
    "entry main (x: f64",
    "entry main (x: f64) : f64 =",
    "entry main (x: f64) : f64 = x +",
    "entry main (x: f64) : f64 = (x",
    "entry main (x: f64) : f64 = x)",
    "entry main (x: f64) : f64 = [x, x",
    "entry main (x: f64) : f64 = let y = x",
    "entry main (x: f64) : f64 = let = x in x",
    "entry main (x: f64) : f64 = if x then",
    "entry main (x: f64) : f64 = if x > 0 then x",
    "entry main (x: f64) : f64 = loop",
    "entry main (x: f64) : f64 = loop y = x for i do y",
    "entry main (x: f64) : f64 = loop y = x while do y",
    "entry main (x: f64) : f64 = match x",
    "entry main (x: f64) : f64 = match x case",
    "entry main (x: f64) : f64 = \\ -> x",
    "entry main (x: f64) : f64 = {a = x",
    "entry main (x: f64) : f64 = {a x}",
    "entry main (x: f64) : f64 = x with",
    "entry main (x: f64) : f64 = #",
    "entry main (x: f64) : f64 = x[",
    "entry main (x: f64) : f64 = x[0:",
    "entry main (x: f64) : f64 = x..<",
    "entry main (x: ) : f64 = x",
    "entry main (x: [) : f64 = x",
    "entry main (x: {a: f64) : f64 = x",
    "type = f64",
    "type t",
    "def (+^ x y = x",
    "def f x = x x x x def",
    "in x",
    "#[",
    "#[tape(",
    "}}}}",
    "entry main (x: f64) : f64 = x ** ** x",
    "entry main (x: f64) : f64 = let y = x in in y",
    "42",
    // Names.
    "entry main (x: f64) : f64 = y",
    "entry main (x: f64) : f64 = f64.sinn x",
    "entry main (x: f64) : f64 = f46.sin x",
    "entry main (x: t) : f64 = x",
    "entry main (x: f64) (x: f64) : f64 = x",
    "def f (x: f64) : f64 = x def f (x: f64) : f64 = x entry main (x: f64) : f64 = f x",
    "type t = f64 type t = f32 entry main (x: t) : t = x",
    "entry main (x: [n]f64) : f64 = x[0]",
    "entry main (x: f64) : f64 = x +^ x",
    // Types.
    "entry main (x: f64) : i64 = x",
    "entry main (x: f64) (n: i64) : f64 = x * n",
    "entry main (x: f64) : f64 = if x then x else x",
    "entry main (x: f64) : f64 = if x > 0 then x else 1i64",
    "entry main (x: f64) : f64 = x 1",
    "entry main (x: f64) : f64 = f64.sin x x",
    "entry main (x: f64) : f64 = map f64.sin x",
    "entry main (x: []f64) : f64 = f64.sum (map (\\a b -> a + b) x)",
    "entry main (x: f64) : f64 = x.0",
    "entry main (x: (f64, f64)) : f64 = x.2",
    "entry main (x: {a: f64}) : f64 = x.b",
    "entry main (x: {a: f64}) : f64 = (x with b = 1).a",
    "entry main (x: f64) : f64 = x[0]",
    "entry main (x: []f64) : f64 = x[1.5]",
    "entry main (x: []f64) : f64 = x[0, 0]",
    "entry main (x: []f64) : []f64 = x with [0] = true",
    "entry main (x: f64) : f64 = let (a, b) = x in a",
    "entry main (x: f64) : f64 = let (a, b) = (x, x, x) in a",
    "entry main (x: f64) : f64 = x && true",
    "entry main (x: bool) : bool = x < x + 1",
    "entry main (x: f64) : f64 = !x",
    "entry main (x: bool) : bool = -x",
    "entry main (x: f64) : f64 = [x, 1i64][0]",
    "entry main (x: f64) : f64 = reduce (+) 0i64 [x]",
    "entry main (x: f64) : f64 = loop y = x for i < 3 do i",
    "entry main (x: f64) : f64 = loop y = x while y do y",
    "entry main (x: f64) : f64 = vjp f64.sin x",
    "entry main (x: f64) : f64 = vjp f64.sin x true",
    "entry main (x: f64) : f64 = jvp x x x",
    "entry main (x: f64) : f64 = \\y -> y",
    "def f x = f entry main (x: f64) : f64 = f x",
    "def self x = x x entry main (x: f64) : f64 = self self x",
    "entry main (f: f64 -> f64) : f64 = f 1",
    "entry main 'a (x: a) : a = x",
    "entry main (x: f64) = \\(y: f64) -> x + y",
    // Sums and patterns.
    "type t = #a f64 | #b entry main (x: t) : f64 = match x case #a y -> y",
    "type t = #a f64 | #b entry main (x: t) : f64 = match x case #a y -> y case #c -> 0",
    "type t = #a f64 | #b entry main (x: t) : f64 = match x case #a -> 1 case #b -> 0",
    "entry main (x: f64) : f64 = match x case 0 -> 1",
    "entry main (x: i64) : i64 = match x case 0 -> 1 case 1.5 -> 2 case _ -> 3",
    "entry main (x: bool) : i64 = match x case true -> 1",
    // Sizes.
    "entry main [n] [m] (x: [n]f64) (y: [m]f64) : f64 = f64.sum (map2 (*) x y)",
    "entry main (x: [2]f64) : [3]f64 = x ++ x",
    "entry main (x: [3]f64) : [4]f64 = x",
    "entry main [n] (x: [n]f64) : [n]f64 = iota n",
    "entry main (x: f64) : [2]f64 = [x, x, x]",
    "def f [n] (a: [n]f64) (b: [n]f64) : f64 = a[0] + b[0] entry main (x: [2]f64) (y: [3]f64) : f64 = f x y",
];

#[test]
fn hand_made_mistakes_are_explained() {
    let accepted: Vec<&&str> = WRONG.iter().filter(|text| !check(text)).collect();
    assert!(accepted.is_empty(), "these were accepted: {accepted:#?}");
    assert!(WRONG.len() >= 100);
}

const EXAMPLES: &[&str] = &[
    include_str!("../../../examples/gmm.fut"),
    include_str!("../../../examples/kmeans.fut"),
    include_str!("../../../examples/lstm.fut"),
    include_str!("../../../examples/hand.fut"),
    include_str!("../../../examples/ba.fut"),
];

/// SplitMix64.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[test]
fn broken_examples_are_explained() {
    let tokens = [
        "(", ")", "[", "]", "=", "let", "in", "->", "1.5", "x", ":", ",", "def", "|", "f64", "\\", "with",
        "n",
    ];
    let mut state = 7;
    let mut refused = 0;
    for k in 0..160 {
        let example = EXAMPLES[k % EXAMPLES.len()];
        let at = |state: &mut u64| {
            let mut at = (random(state) as usize) % example.len();
            while !example.is_char_boundary(at) {
                at -= 1;
            }
            at
        };
        let (a, b) = (at(&mut state), at(&mut state));
        let token = tokens[(random(&mut state) as usize) % tokens.len()];
        let text = match k % 4 {
            0 => example[..a].to_string(),
            1 => format!("{} {token} {}", &example[..a], &example[a..]),
            2 => format!("{}{}", &example[..a.min(b)], &example[a.min(b) + (a.max(b) - a.min(b)).min(12)..])
                .replace('\u{fffd}', ""),
            _ => format!("{}{}{}", &example[..a], &example[b..example.len().min(b + 10)], &example[a..]),
        };
        refused += usize::from(check(&text));
    }
    assert!(refused >= 100, "only {refused} of the broken examples were refused");
}

#[test]
fn deep_nesting_is_refused_quickly() {
    let n = 100_000;
    let around = |open: &str, close: &str| {
        format!("entry main (x: f64) : f64 = {}x{}", open.repeat(n), close.repeat(n))
    };
    let programs = [
        around("(", ")"),
        around("[", "]"),
        around("-", ""),
        around("!", ""),
        around("f64.sin (", ")"),
        around("\\y -> ", ""),
        around("let y = ", " in y"),
        around("if true then ", " else x"),
        around("{a = ", "}"),
        around("x + (", ")"),
        around("match x case y -> ", ""),
        around("loop y = ", " for i < 1 do y"),
        around("#a ", ""),
        format!("entry main (x: {}f64) : f64 = 1", "[]".repeat(n)),
        format!("entry main (x: {}f64{}) : f64 = 1", "(".repeat(n), ", f64)".repeat(n)),
        format!("entry main (x: {}f64{}) : f64 = 1", "{a: ".repeat(n), "}".repeat(n)),
        format!("entry main ({}x{}: f64) : f64 = 1", "(".repeat(n), ")".repeat(n)),
        "(".repeat(n),
        "entry main (x: f64) : f64 = ".to_string() + &"(".repeat(n),
    ];
    for text in &programs {
        assert!(check(text), "accepted: {}", text.chars().take(80).collect::<String>());
    }
}

/// A mistake that a text makes a thousand times is shown a hundred times; the last message says how many are left out.
#[test]
fn messages_that_nobody_would_read_are_left_out() {
    for many in [99, 100, 101, 1000] {
        let text = format!("entry main (x: f64) : f64 = {}", "y + ".repeat(many - 1) + "y");
        let (diagnostics, _) = errors(&text).expect("y is not there");
        let is_error = |d: &&Diagnostic| d.severity == Severity::Error;
        assert_eq!(diagnostics.iter().filter(is_error).count(), many.min(100));
        let last = diagnostics.last().expect("some");
        assert_eq!(last.severity == Severity::Warning, many > 100);
        assert!(
            many <= 100 || last.message.starts_with(&format!("{} more messages", many - 100)),
            "{last:?}"
        );
    }
}

#[test]
fn long_but_flat_programs_are_fine_or_explained() {
    let sum = format!("entry main (x: f64) : f64 = x{}", " + x".repeat(20_000));
    let lets: String = (0..5_000).map(|i| format!("let y{} = y{i} + x\n", i + 1)).collect();
    let lets = format!("entry main (x: f64) : f64 =\nlet y0 = x\n{lets}in y5000");
    for text in [sum, lets] {
        // Either it compiles or it is refused with a place and a hint; `check` looks at the second.
        check(&text);
    }
}

fn run(text: &str, args: &[Value]) -> Result<Vec<Value>, pullback_base::RuntimeError> {
    let session = Session::compile("program.fut", text, Settings::default());
    let session = session.unwrap_or_else(|failed| panic!("{}", failed.render()));
    let entry = session.entry(None).unwrap_or_else(|d| panic!("{}", d.message));
    let ready = session.primal(&entry).unwrap_or_else(|d| panic!("{}", d.message));
    let options = Options { work_limit: 10_000_000, memory_limit: 1 << 28, ..Options::default() };
    ready.run(args, &options).map(|o| o.results)
}

#[test]
fn programs_that_stop_say_where() {
    use RuntimeErrorKind::{AssertFailed, DivisionByZero, Limit, NegativeSize, OutOfBounds, ShapeMismatch};
    let cases: &[(&str, &[Value], RuntimeErrorKind)] = &[
        ("def f (n: i64) : i64 = 1 + f (n + 1) entry main (n: i64) : i64 = f n", &[Value::i64(0)], Limit),
        ("entry main (n: i64) : i64 = loop i = n while true do i + 1", &[Value::i64(0)], Limit),
        ("entry main (n: i64) : i64 = (iota 3)[n]", &[Value::i64(7)], OutOfBounds),
        ("entry main (n: i64) : i64 = (iota 3)[n]", &[Value::i64(-1)], OutOfBounds),
        ("entry main (n: i64) : i64 = 5 / n", &[Value::i64(0)], DivisionByZero),
        ("entry main (n: i64) : i64 = 5 % n", &[Value::i64(0)], DivisionByZero),
        ("entry main (n: i64) : i64 = assert (n > 0) n", &[Value::i64(0)], AssertFailed),
        ("entry main (n: i64) : i64 = i64.sum (iota n)", &[Value::i64(-1)], NegativeSize),
        ("entry main (n: i64) : i64 = i64.sum (iota n)", &[Value::i64(1 << 60)], Limit),
        ("entry main (n: i64) : i64 = (replicate n (replicate n 1i64))[0, 0]", &[Value::i64(1 << 31)], Limit),
        (
            "entry main (n: i64) : i64 = let a = iota 3 let b = iota n in i64.sum (map2 (+) a (b :> [3]i64))",
            &[Value::i64(4)],
            ShapeMismatch,
        ),
        ("entry main (n: i64) : i64 = let a = (iota 5)[n:9] in a[0]", &[Value::i64(2)], OutOfBounds),
    ];
    for (text, args, kind) in cases {
        let error = run(text, args).expect_err(text);
        assert!(
            error.kind == *kind || (*kind == ShapeMismatch && error.kind == AssertFailed),
            "{text}: {error:?}"
        );
        assert!(error.span.is_some(), "{text}: {error:?}");
        assert!(!error.message.is_empty());
    }
}
