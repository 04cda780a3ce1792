//! Wrong programs: each gives at least one diagnostic, every diagnostic has a span inside the text and a hint, and
//! nothing panics or overflows the stack.

use pullback_base::{Code, Diagnostic, SourceMap};
use pullback_syntax::ast::{Declaration, Program};
use pullback_syntax::parse;

fn parse_checked(text: &str) -> (Program, Vec<Diagnostic>) {
    let mut sources = SourceMap::new();
    let file = sources.add("test.fut", text);
    let (program, diagnostics) = parse(file, text);
    for d in &diagnostics {
        let span = d.span.unwrap_or_else(|| panic!("no span: {d:?}"));
        assert!(span.start <= span.end && span.end as usize <= text.len(), "{span:?} is outside the text");
        assert!(!d.hints.is_empty(), "no hint: {d:?}");
        assert!(!d.render(&sources).is_empty());
    }
    (program, diagnostics)
}

const MALFORMED: &[&str] = &[
    "def",
    "def f",
    "def f =",
    "def f x",
    "def f (x = 1",
    "def f x : = 1",
    "def = 1",
    "def 1 = 1",
    "def f = (1",
    "def f = (1, 2",
    "def f = 1)",
    "def f = [1, 2",
    "def f = [1, 2)",
    "def f = [1,, 2]",
    "def f = {x = 1",
    "def f = {x = }",
    "def f = {1 2}",
    "def f = if a then b",
    "def f = if a b else c",
    "def f = if then else",
    "def f = let x = 1",
    "def f = let x 1 in x",
    "def f = let = 1 in x",
    "def f = let x = in x",
    "def f = let x = 1 in",
    "def f = let a[ = 1 in a",
    "def f = let a[i] 1 in a",
    "def f = \\ -> 1",
    "def f = \\x 1",
    "def f = \\x ->",
    "def f = match x",
    "def f = match x case -> 1",
    "def f = match x case #a 1",
    "def f = match case",
    "def f = loop x = 1 do x",
    "def f = loop x = 1 for i < do x",
    "def f = loop x = 1 for i < n x",
    "def f = loop x = 1 for i > n do x",
    "def f = loop for do",
    "def f = loop x = 1 while do x",
    "def f = 1 +",
    "def f = * 1",
    "def f = 1 + + 2",
    "def f = a..b",
    "def f = a..b..c",
    "def f = a..<",
    "def f = x.",
    "def f = x.+",
    "def f = a[",
    "def f = a[1",
    "def f = a[]",
    "def f = a[1:2:3:4]",
    "def f = a with = 2",
    "def f = a with [1] 2",
    "def f = e :",
    "def f = e :> ",
    "def f = a `b c",
    "def f = assert x",
    "def f = #[",
    "def f = #[a",
    "def f = #[a(] 1",
    "def f = # x",
    "def f = _",
    "def f = 1x",
    "def f = 1.5i32",
    "def f = 0x",
    "def f = 99999999999999999999",
    "def f = \"abc",
    "def f = \"\\q\"",
    "def f = 'ab'",
    "def f = ''",
    "def f = x ; y",
    "def f = x $ y",
    "def f = é",
    "def f = \u{0}",
    "type",
    "type t",
    "type t =",
    "type t = [n",
    "type t = (a, b",
    "type t = {x: i32",
    "type t = {x i32}",
    "type t = #a |",
    "type t = ?n.t",
    "type t = a ->",
    "type t = (x: a)",
    "type = i32",
    "entry",
    "open foo",
    "import foo",
    "open import \"foo\"",
    "def f = 1 import \"foo\"",
    "module m = { def x = 1 }",
    "local def x = 1",
    "x",
    "1",
    ")",
    "]}",
    "in",
    "then def f = 1",
    "#[foo]",
    "def f (x: i32 = x",
    "def f x = x def",
    "def (+ x y = x",
    "def x + = y",
    "def f = case",
    "def f = with",
    "def f = -",
    "def f = !",
    "def f = (.",
    "def f = (.[",
    "def f = (`f",
    "def f = (+",
    "def f = (x +",
];

#[test]
fn every_malformed_program_gets_a_diagnostic() {
    for text in MALFORMED {
        let (_, diagnostics) = parse_checked(text);
        assert!(!diagnostics.is_empty(), "accepted: {text}");
        assert!(diagnostics.len() <= 4, "{} diagnostics for {text}: {diagnostics:?}", diagnostics.len());
    }
    assert!(MALFORMED.len() >= 60);
}

#[test]
fn malformed_programs_in_the_middle_leave_their_neighbours_alone() {
    for text in MALFORMED {
        // An unterminated string or comment ends with its line, so the neighbour on the next line is always seen.
        let whole = format!("type before = i64\n{text}\ndef after = 2\n");
        let (program, diagnostics) = parse_checked(&whole);
        let names: Vec<&str> = program
            .declarations
            .iter()
            .map(|d| match d {
                Declaration::Value(v) => v.name.text.as_str(),
                Declaration::Type(t) => t.name.text.as_str(),
            })
            .collect();
        assert_eq!(names.first(), Some(&"before"), "{text}");
        assert_eq!(names.last(), Some(&"after"), "{text}: {names:?}");
        // `#[foo]` alone becomes right when a declaration follows it.
        assert!(!diagnostics.is_empty() || *text == "#[foo]", "{text}");
    }
}

#[test]
fn one_mistake_in_each_of_three_definitions_gives_three_diagnostics() {
    let text = "def a = (1 + \ndef b = 2\ndef c = if x then\ndef d = [1, 2\nentry e = 5";
    let (program, diagnostics) = parse_checked(text);
    assert_eq!(diagnostics.len(), 3, "{diagnostics:?}");
    assert_eq!(program.declarations.len(), 5);
}

#[test]
fn a_missing_bracket_names_the_open_one_and_is_supplied() {
    let text = "def f x = let y = g (x + 1 in y\ndef h = 1";
    let (program, diagnostics) = parse_checked(text);
    assert_eq!(diagnostics.len(), 1, "{diagnostics:?}");
    assert_eq!(diagnostics[0].labels.len(), 1);
    assert_eq!(diagnostics[0].labels[0].span.start as usize, text.find('(').expect("there is one"));
    assert_eq!(program.declarations.len(), 2);
}

#[test]
fn modules_are_unsupported_and_not_wrong() {
    let (_, diagnostics) = parse_checked("module m = { def x = 1 }\ndef f = 1");
    assert_eq!(diagnostics[0].code, Code::Unsupported);
}

/// Runs with the stack of the smallest thread that anyone is likely to parse on.
fn on_a_small_stack(work: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(1 << 20).spawn(work).expect("a thread");
    assert!(thread.join().is_ok());
}

#[test]
fn nesting_without_end_is_a_diagnostic() {
    on_a_small_stack(|| {
        let repeat = |s: &str| s.repeat(100_000);
        let texts = [
            format!("def f = {}", repeat("(")),
            format!("def f = {}1{}", repeat("("), repeat(")")),
            format!("def f = {}", repeat("[")),
            format!("def f = {}1{}", repeat("["), repeat("]")),
            format!("def f = {}", repeat("{x = ")),
            format!("def f = {}1", repeat("- ")),
            format!("def f = {}1", repeat("! ")),
            format!("def f = {}1", repeat("if a then b else ")),
            format!("def f = {}1", repeat("if ")),
            format!("def f = {}1", repeat("\\x -> ")),
            format!("def f = {}1", repeat("let x = ")),
            format!("def f = {}1", repeat("let f x = ")),
            format!("def f = {}1", repeat("match x case y -> ")),
            format!("def f = {}1", repeat("loop x = ")),
            format!("def f = {}1", repeat("loop x = 1 for i < n do ")),
            format!("def f = {}1", repeat("#[a] ")),
            format!("def f = #[{} 1", repeat("a(")),
            format!("def f = #[{} 1", repeat("a ")),
            format!("def f = {}1", repeat("1 + ")),
            format!("def f = {}1", repeat("f <| ")),
            format!("def f = {}1", repeat("x |> ")),
            format!("def f = {}1", repeat("a ** ")),
            format!("def f = x{}", repeat("[0]")),
            format!("def f = {}", repeat("x[")),
            format!("def f = x{}", repeat(".y")),
            format!("def f = {}1", repeat("assert (")),
            format!("def f = x{}", repeat(" with [0] = 1")),
            format!("def f = {}", repeat("f (")),
            format!("def f = {}", repeat("(+ ")),
            format!("def f = {}", repeat("#a (")),
            format!("def f = x{}", repeat(" : t")),
            format!("def f = {}", repeat("0..<(")),
            format!("def f = {}", repeat("x[1:(")),
            format!("def f = x : {}", repeat("(")),
            format!("def f = x : {}", repeat("[n]")),
            format!("def f = x : {}", repeat("[")),
            format!("def f = x : {}t", repeat("*")),
            format!("def f = x : {}t", repeat("* ")),
            format!("def f = x : {}t", repeat("a -> ")),
            format!("def f = x : {}t", repeat("(x: a) -> ")),
            format!("def f = x : {}", repeat("{x: ")),
            format!("def f = x : {}", repeat("#a (")),
            format!("def f = x : #a {}t", repeat("[n]")),
            format!("def f = x : {}t", repeat("?[n].")),
            format!("def f {}", repeat("(")),
            format!("def f {}", repeat("{x = ")),
            format!("def f (({}", repeat("#a (")),
            format!("def f = let {}", repeat("#[a] ")),
            format!("type t = {}", repeat("(")),
        ];
        for text in &texts {
            let (_, diagnostics) = parse_checked(text);
            let start: String = text.chars().take(40).collect();
            assert!(!diagnostics.is_empty(), "accepted: {start}...");
        }
    });
}

#[test]
fn long_flat_programs_are_fine() {
    on_a_small_stack(|| {
        let lets = "let x = x + 1 ".repeat(20_000);
        let items = "1, ".repeat(20_000);
        let arguments = "x ".repeat(20_000);
        let ins = "let x = x in ".repeat(20_000);
        for text in [
            format!("def f x = {lets} in x"),
            format!("def f x = {ins} x"),
            format!("def f = [{items} 1]"),
            format!("def f = g {arguments}"),
            format!("def f {arguments} = 1"),
            "def f x = x\n".repeat(20_000),
        ] {
            let (_, diagnostics) = parse_checked(&text);
            assert!(diagnostics.is_empty(), "{:?}", diagnostics.first());
        }
    });
}

/// A right program with every construct: the seed of the mutations.
const SEED: &str = r#"
-- everything once
type point 'a = {x: a, y: (a, i64)}
type~ shape [n] = #circle f64 | #polygon [n]f64 | #empty
#[noinline]
def (+^) [n] 'a (xs: [n]a) (f: (i: i64) -> a) : *[n]a = xs with [0] = f 0i64
def area [n] (s: shape [n]) : f64 =
  match s
  case #circle r -> f64.pi * r ** 2.0
  case #polygon ps -> f64.sum ps / 2
  case #empty -> -1.5e-3f64
entry main [n][m] (xss: [n][m]f64) (p: point f64) ({x, y = (_, k)}) =
  let (a, b) = (p.x, p.y.0) in
  let g [k] (v: [k]f64) : f64 = reduce (+) 0 (map (\z -> z `f64.max` (a * b)) v)
  let ys = copy xss[0, 1:m:2] :> []f64
  let ys[0] = if n > 1 && !(m == 0x1f) then g ys else assert (k >= 0) 'c'
  let r = loop (acc, i) = (0.0, 0) while i < n do (acc + xss[i][0], i + 1)
  let t = loop z = r for (q, w) in zip ys (0..<m) do z <| w |> (.0) >-> (* 2)
  in #[recompute] ((p with x = t), map (.[0]) xss, (1...k), [9..7..>0], "text")
"#;

/// A small deterministic generator (xorshift); the seed is the position in the run.
struct Random(u64);
impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n as u64) as usize
    }
}

#[test]
fn mutated_programs_never_panic() {
    const PIECES: &[&str] = &[
        "(", ")", "[", "]", "{", "}", ",", ".", "..", "...", "..<", ":", ":>", "=", "->", "\\", "`", "'",
        "\"", "#", "#[", "let ", "in ", "def ", "if ", "then ", "else ", "match ", "case ", "loop ", "for ",
        "do ", "while ", "with ", "assert ", "type ", "0", "1e", "0x", "é", "\n", "-", "--", "+", "*", "|",
        "_", "?", "~", "\u{0}", "x[", "x.", " ",
    ];
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut rejected = 0;
    for _ in 0..4000 {
        let mut bytes = SEED.as_bytes().to_vec();
        for _ in 0..=random.below(6) {
            let at = random.below(bytes.len());
            let end = (at + random.below(12)).min(bytes.len());
            match random.below(5) {
                0 => drop(bytes.drain(at..end)),
                1 => bytes[at] = random.below(256) as u8,
                2 => {
                    let piece = PIECES[random.below(PIECES.len())].bytes();
                    drop(bytes.splice(at..at, piece));
                }
                3 => {
                    let copied = bytes[at..end].to_vec();
                    let to = random.below(bytes.len());
                    drop(bytes.splice(to..to, copied));
                }
                _ => bytes.truncate(at.max(1)),
            }
            if bytes.is_empty() {
                bytes.push(b' ');
            }
        }
        let text = String::from_utf8_lossy(&bytes);
        if !parse_checked(&text).1.is_empty() {
            rejected += 1;
        }
    }
    // Most mutations break the program; if not, the loop above tests nothing.
    assert!(rejected > 2000, "only {rejected} rejected");
}

#[test]
fn the_seed_of_the_mutations_is_right() {
    let (program, diagnostics) = parse_checked(SEED);
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
    assert_eq!(program.declarations.len(), 5);
}
