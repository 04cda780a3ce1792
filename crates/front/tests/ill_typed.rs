//! Programs that are wrong: code and the exact text under the main span of every error.

use crate::common::check;
use pullback_base::Code::{self, *};

/// Checks that a program has exactly these errors.
#[track_caller]
fn errors(text: &str, expected: &[(Code, &str)]) {
    let checked = check(text);
    let found = checked.errors();
    let found: Vec<(Code, &str)> = found.iter().map(|(c, s)| (*c, s.as_str())).collect();
    assert_eq!(found, expected, "{text}\n{}", checked.messages());
    for d in &checked.diagnostics {
        assert!(!d.hints.is_empty() || !d.labels.is_empty(), "no hint: {}", d.message);
    }
}

/// Checks that the messages contain a text.
#[track_caller]
fn says(text: &str, part: &str) {
    let messages = check(text).messages();
    assert!(messages.contains(part), "{messages}");
}

#[test]
fn unknown_names() {
    errors("def f (x: f64) = y + x", &[(UnknownName, "y")]);
    errors("def f (count: i32) = coutn", &[(UnknownName, "coutn")]);
    says("def f (count: i32) = coutn", "did you mean count?");
    says("def f xs = redcue (+) 0 xs", "did you mean reduce?");
    errors("def f = f64.sine", &[(UnknownName, "f64.sine")]);
    says("def f = f64.sqrtt 2", "did you mean f64.sqrt?");
    errors("def f (x: flt) = x", &[(UnknownName, "flt")]);
    errors("def f (x: f46) = x", &[(UnknownName, "f46")]);
    says("def f (x: f46) = x", "did you mean f64?");
    errors("def f (x: 'a) = x", &[(Syntax, "'a")]);
    errors("def f (x: a) = x", &[(UnknownName, "a")]);
    errors("def f (xs: [n]f64) = xs", &[(UnknownName, "n")]);
    errors("def f = 1 +++ 2", &[(UnknownName, "+++")]);
    errors("def f x = let g y = g y in x", &[(UnknownName, "g")]);
    errors("def f = (let x = 1 in x) + x", &[(UnknownName, "x")]);
    errors("def f = a + b", &[(UnknownName, "a"), (UnknownName, "b")]);
    errors("def f = bool.pi", &[(UnknownName, "bool.pi")]);
    errors("def f = (f64.&)", &[(UnknownName, "(f64.&)")]);
}

#[test]
fn duplicate_names() {
    errors("def f = 1\ndef f = 2", &[(DuplicateName, "f")]);
    errors("type t = i32\ntype t = i64", &[(DuplicateName, "t")]);
    errors("def f (x: i32) (x: i32) = x", &[(DuplicateName, "x")]);
    errors("def f = let (a, a) = (1, 2) in a", &[(DuplicateName, "a")]);
    errors("def f [n] [n] (x: [n]i32) = x", &[(DuplicateName, "n")]);
    errors("def f 'a 'a (x: a) = x", &[(DuplicateName, "'a")]);
    errors("def f = {x = 1, y = 2, x = 3}", &[(DuplicateName, "x")]);
    errors("type t = {x: i32, x: f64}", &[(DuplicateName, "x")]);
    errors("type t = #a | #b | #a", &[(DuplicateName, "#a")]);
}

#[test]
fn scalar_types_that_do_not_agree() {
    errors("def f (x: f64) (i: i64) = x * i", &[(TypeMismatch, "i")]);
    says("def f (x: f64) (i: i64) = x * i", "convert with `f64.i64` or `i64.f64`");
    errors("def f (x: f64) : f32 = x + 1", &[(TypeMismatch, "x + 1")]);
    errors("def f = 1 + true", &[(TypeMismatch, "true")]);
    errors("def f (b: bool) = -b", &[(TypeMismatch, "b")]);
    errors("def f (x: f64) = x & 1", &[(TypeMismatch, "x")]);
    errors("def f (x: i32) = x && true", &[(TypeMismatch, "x")]);
    errors("def f (x: i32) = if x then 1 else 2", &[(TypeMismatch, "x")]);
    errors("def f (b: bool) = if b then 1i32 else 2i64", &[(TypeMismatch, "2i64")]);
    errors("def f = 1.5 : i32", &[(TypeMismatch, "1.5")]);
    errors("def f : u8 = 300", &[(TypeMismatch, "300")]);
    errors("def f : u8 = -1", &[(TypeMismatch, "-1")]);
    errors("def f : f32 = 1e39", &[(TypeMismatch, "1e39")]);
    // A suffix makes it wrap round.
    errors("def f = 300u8", &[]);
    errors("def f : i8 = 128", &[(TypeMismatch, "128")]);
    errors("def f (x: f64) = f64.sqrt true", &[(TypeMismatch, "true")]);
    errors("def f (x: f64) = !x", &[(TypeMismatch, "x")]);
    errors("def f (xs: []f64) = map (\\x -> !x) xs", &[(TypeMismatch, "xs")]);
    says("def f (x: f64) = !x", "which is not an integer or a bool");
}

#[test]
fn arrays_and_scalars() {
    errors("def f (xs: []f64) = xs + 1", &[(TypeMismatch, "xs")]);
    says("def f (xs: []f64) = 1 + xs", "use `map2 (+) xs ys`");
    errors("def f (x: f64) = x[0]", &[(TypeMismatch, "0")]);
    errors("def f (xs: []f64) = xs[0, 1]", &[(TypeMismatch, "1")]);
    errors("def f (xs: []f64) (i: f64) = xs[i]", &[(TypeMismatch, "i")]);
    errors("def f (xs: []f64) = xs with [0] = true", &[(TypeMismatch, "true")]);
    errors("def f = [1, true]", &[(TypeMismatch, "true")]);
    errors("def f = map f64.sin 3", &[(TypeMismatch, "3")]);
    errors("def f = 1.5...3", &[(TypeMismatch, "1.5")]);
    errors("def f = iota 2.5", &[(TypeMismatch, "2.5")]);
    errors("def f (n: i32) = iota n", &[(TypeMismatch, "n")]);
}

#[test]
fn functions_and_arguments() {
    errors("def f (x: i32) = x 1", &[(TypeMismatch, "x")]);
    errors("def g (x: i32) = x\ndef f = g 1 2", &[(TypeMismatch, "2")]);
    errors("def f = map (\\x -> x + 1) [true]", &[(TypeMismatch, "[true]")]);
    errors(
        "def f = reduce (\\(a: i32) (b: f64) -> a) 0 [1i32]",
        &[(TypeMismatch, "(\\(a: i32) (b: f64) -> a)")],
    );
    errors("def f g = g g", &[(TypeMismatch, "g")]);
    says("def f g = g g", "infinite type");
    errors("def f (x: f64) = vjp f64.sin x true", &[(TypeMismatch, "true")]);
    errors("def f 'a (x: a) : i32 = x", &[(TypeMismatch, "x")]);
    errors("def f = (\\x -> x) == (\\x -> x)", &[(TypeMismatch, "(\\x -> x)")]);
    errors("def f (x: i32) : i32 = let y = x in y > 2", &[(TypeMismatch, "y > 2")]);
    errors("def f n : i32 = if n == 0i32 then 1 else f true", &[(TypeMismatch, "true")]);
}

#[test]
fn tuples_records_and_sums() {
    errors("def f (p: (i32, i32)) = p.2", &[(TypeMismatch, "2")]);
    errors("def f (p: {x: i32}) = p.y", &[(TypeMismatch, "y")]);
    says("def f (p: {value: i32}) = p.valeu", "did you mean value?");
    errors("def f (p: {x: i32}) = p with x = true", &[(TypeMismatch, "true")]);
    errors("def f = let (a, b) = (1, 2, 3) in a", &[(TypeMismatch, "(1, 2, 3)")]);
    errors("def f (p: {x: i32, y: i32}) = let {x} = p in x", &[(TypeMismatch, "p")]);
    errors("def f : #a | #b = #c", &[(TypeMismatch, "#c")]);
    errors("def f : #a i32 = #a 1 2", &[(TypeMismatch, "#a 1 2")]);
    errors("def f (x: i32) = x.y", &[(TypeMismatch, "y")]);
    errors("type t 'a = [2]a\ndef f (x: t) = x", &[(TypeMismatch, "t")]);
    errors("type t [n] = [n]i32\ndef f (x: t i32) = x", &[(TypeMismatch, "i32")]);
    errors("type t = (i32, t)", &[(TypeMismatch, "t")]);
    errors("type t 'a = #nil | #cons a (t a)", &[(Unsupported, "t")]);
}

#[test]
fn patterns() {
    errors("def f (x: #a i32 | #b) = match x case #a n -> n", &[(Pattern, "match x case #a n -> n")]);
    says("def f (x: #a i32 | #b) = match x case #a n -> n", "no case fits the value #b");
    says("def f (x: (bool, i32)) = match x case (true, _) -> 1 case (_, 0) -> 2", "(false, _)");
    errors("def f (x: bool) = match x case true -> 1", &[(Pattern, "match x case true -> 1")]);
    errors("def f (x: i32) = match x case 1 -> 2", &[(Pattern, "match x case 1 -> 2")]);
    errors("def f (x: #a i32 | #b) = let (#a n) = x in n", &[(Pattern, "#a n")]);
    errors("def f (x: i32) = let 1 = x in 2", &[(Pattern, "1")]);
    errors("def f (x: i32) = match x case 1 -> 2 case true -> 3 case _ -> 4", &[(TypeMismatch, "true")]);
    errors("def f (x: #a | #b) = match x case #a -> 1 case #b -> 2 case #c -> 3", &[(TypeMismatch, "#c")]);
    errors("def f (x: bool) = match x case true -> 1i32 case false -> 2.0", &[(TypeMismatch, "2.0")]);
    errors("def f xs = let [k] (y: i32) = xs in y", &[(Pattern, "k")]);
}

#[test]
fn sizes() {
    errors("def f [n][m] (a: [n]f64) (b: [m]f64) = map2 (+) a b", &[(SizeMismatch, "b")]);
    says("def f [n][m] (a: [n]f64) (b: [m]f64) = map2 (+) a b", "say so with a size coercion");
    says("def f [n][m] (a: [n]f64) (b: [m]f64) = map2 (+) a b", "size m is bound here");
    errors("def f (a: [3]f64) = zip a [1, 2]", &[(SizeMismatch, "[1, 2]")]);
    errors("def f [n] (a: [n]f64) : [n]f64 = a[1:]", &[(SizeMismatch, "a[1:]")]);
    errors("def f [n] (a: [n]f64) : [3]f64 = a", &[(SizeMismatch, "a")]);
    errors("def f = [[1, 2], [3]]", &[(SizeMismatch, "[3]")]);
    errors("def g (a: [2]i32) = a[0]\ndef f = g [1, 2, 3]", &[(SizeMismatch, "[1, 2, 3]")]);
    errors("def f (n: i64) (m: i64) : [n]i64 = iota m", &[(SizeMismatch, "iota m")]);
    errors("def f [n] (x: i32) = n", &[(Unsupported, "n")]);
    errors("def f (n: i32) (xs: [n]i32) = xs", &[(TypeMismatch, "n")]);
    errors("def f (a: [4]f64) = (a : [5]f64)", &[(SizeMismatch, "a")]);
}

#[test]
fn ambiguous_types() {
    errors("def f p = p.x", &[(Ambiguous, "p")]);
    errors("def f = #a", &[(Ambiguous, "#a")]);
    errors("def f = g 1\ndef g x = x + 1", &[(Ambiguous, "g")]);
    errors("def f xs = map (.x) xs", &[(Ambiguous, "(.x)")]);
}

#[test]
fn consumed_variables() {
    errors("def f (a: *[3]i32) = let b = a with [0] = 1 in a[0] + b[0]", &[(Uniqueness, "a")]);
    errors(
        "def f (a: *[3]i32) (c: bool) = let b = if c then a with [0] = 1 else [1, 2, 3] in (b, a)",
        &[(Uniqueness, "a")],
    );
    errors("def f (a: *[3]i32) = (a with [0] = 1, a with [1] = 2)", &[(Uniqueness, "a")]);
}

#[test]
fn loops() {
    errors("def f = loop x = 1i32 for i < 3 do true", &[(TypeMismatch, "true")]);
    errors("def f = loop x = 1i32 while x do x", &[(TypeMismatch, "x")]);
    errors("def f = loop x = 1i32 for i < 2.5 do x", &[(TypeMismatch, "2.5")]);
    errors("def f = loop x = 1i32 for y in 3i32 do x", &[(TypeMismatch, "3i32")]);
}

#[test]
fn entry_points() {
    errors("entry f (g: i32 -> i32) = g 1", &[(Entry, "g: i32 -> i32")]);
    errors("entry f 'a (x: a) = x", &[(Entry, "f")]);
    errors("entry f (x: i32) = \\(y: i32) -> x + y", &[(Entry, "f")]);
}

#[test]
fn several_errors_in_one_program() {
    errors(
        "def a = b\ndef c (x: i32) : i32 = x + true\ndef d = c 1\ndef e = d + 1.5",
        &[(UnknownName, "b"), (TypeMismatch, "true"), (TypeMismatch, "1.5")],
    );
    errors(
        "def f (x: f64) = let y = x + true let z = undefined_name in y + z + 1",
        &[(TypeMismatch, "true"), (UnknownName, "undefined_name")],
    );
}

#[test]
fn unsupported_constructs() {
    errors("def f (x: f16) = x", &[(Unsupported, "f16")]);
    errors("def f = 1f16", &[(Unsupported, "1f16")]);
    errors("def f xs = loop [n] (ys: [n]i32) = xs for i < 2i32 do ys", &[(Unsupported, "n")]);
}

#[test]
fn types_that_grow_without_end_are_an_error_not_a_hang() {
    let mut text = String::from("def f x0 =\n");
    for i in 0..60 {
        text += &format!("  let x{} = (x{i}, x{i})\n", i + 1);
    }
    text += "  in x60";
    let found = check(&text).errors();
    assert_eq!(found.first().map(|e| e.0), Some(TooDeep), "{found:?}");
    let nested = (0..50).fold("x".to_string(), |e, _| format!("dup ({e})"));
    let found = check(&format!("def dup y = (y, y)\ndef f x = {nested}")).errors();
    assert_eq!(found.first().map(|e| e.0), Some(TooDeep), "{found:?}");
    let mut text = String::from("type t0 = (i32, i32)\n");
    for i in 0..60 {
        text += &format!("type t{} = (t{i}, t{i})\n", i + 1);
    }
    let found = check(&(text + "def f (x: t60) = x")).errors();
    assert!(!found.is_empty() && found.iter().all(|e| e.0 == TooDeep), "{found:?}");
}

#[test]
fn cyclic_requirements_do_not_hang() {
    for text in [
        "def f p = p.x == p",
        "def f p = let q = p.x in [p, q]",
        "def f p = [p.x, p.y, p, p.x.x]",
        "def f x = match x case #a y -> [x, y] case _ -> [x]",
        "def f x = (\\y -> x y) x",
    ] {
        assert!(!check(text).errors().is_empty(), "{text}");
    }
}

#[test]
fn deep_programs_do_not_overflow_the_stack() {
    let sum = vec!["x"; 200].join(" + ");
    assert!(check(&format!("def f (x: i32) = {sum}")).diagnostics.is_empty());
    let deep = (0..100).fold("x".to_string(), |e, _| format!("(\\y -> {e}) 1"));
    assert!(check(&format!("def f (x: i32) = {deep}")).diagnostics.is_empty());
    let chain: String = (0..5000).map(|i| format!("let x{} = x{i} + 1\n", i + 1)).collect();
    assert!(check(&format!("def f (x0: i32) = {chain} in x5000")).diagnostics.is_empty());
    let sizes: String = (0..2000).map(|i| format!("let x{} = x{i} * 2 + y\nlet y = x{i}\n", i + 1)).collect();
    assert!(check(&format!("def f (x0: i64) (y: i64) = {sizes} in iota x2000")).diagnostics.is_empty());
}

#[test]
fn a_definition_in_its_own_annotations_is_an_error_not_a_hang() {
    for text in [
        "def f (c: [f]f64) : f64 = 1",
        "def f (c: f64) : [f]f64 = [c]",
        "def f (c: [g]f64) : f64 = 1\ndef g (c: [f]f64) : f64 = 1",
    ] {
        assert!(!check(text).errors().is_empty(), "{text}");
    }
}
